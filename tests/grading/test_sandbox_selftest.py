"""The selftest finds nothing in a box as it should be, and in one with a hole exactly what gets out through it."""

import json
import platform
import shutil
import stat
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from holes import HoleyHost, holey_host, open_box
from tiny import REPOSITORY

from grading import pool
from grading.course import Course
from grading.run import run
from grading.sandbox import bubblewrap, selftest
from grading.sandbox.bubblewrap import NoSandboxError
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.sandbox.selftest import lay_canaries, missed, require_isolation
from grading.sandbox.selftest.attempts import files, harness
from grading.sandbox.selftest.attempts.calls import REFUSED_ARGUMENTS, REFUSED_CALLS
from grading.sandbox.selftest.canaries import VARIABLE
from grading.sandbox.selftest.exceed_limits import EXCESSES, exceeded
from grading.sandbox.selftest.honest import WORKS, Work, worked
from grading.task import Task

pytestmark = pytest.mark.slow

needs_a_box = pytest.mark.skipif(
    sys.platform != "linux" or bubblewrap.shutil.which("bwrap") is None or bubblewrap.why_not() is not None,
    reason="no sandbox can be had here",
)
# What a kernel may be built without: it then knows no such call, whether or not there is a filter.
OPTIONAL = {
    *("delete_module", "finit_module", "init_module", "ioperm", "iopl", "modify_ldt", "kexec_file_load", "kexec_load"),
    *("kcmp", "memfd_secret", "quotactl", "quotactl_fd", "userfaultfd", "bpf", "acct", "sysfs", "swapon", "swapoff"),
    *(f"mq_{what}" for what in ("getsetattr", "notify", "open", "timedreceive", "timedsend", "unlink")),
}


@pytest.fixture(scope="module")
def box():
    with lay_canaries() as canaries, holey_host() as host:
        host.ready()
        host.canaries = canaries
        yield host


def out(host: HoleyHost, *holes: str) -> set[str]:
    host.holes = holes
    try:
        return {f"{one.family} {one.name}" for one in missed(list(selftest._escape_results(host, host.canaries)))}
    finally:
        host.holes = ()


@needs_a_box
def test_a_box_as_it_should_be_lets_nothing_out(box):
    assert out(box) == set()
    require_isolation(box)


@needs_a_box
def test_without_the_filter_each_call_gets_through_and_nothing_else_is_named(box):
    found = out(box, "install_seccomp_filter")
    calls = {f"call {name}" for name in (*REFUSED_CALLS, *REFUSED_ARGUMENTS)}
    others = {"connect kinds", "connect locks", "call clone", "call rights", "call SIGCHLD"}
    unknown = {f"call {name}" for name in REFUSED_CALLS if name in OPTIONAL or _is_newer(name)}
    assert calls - unknown | others <= found <= calls | others | {"call x32", "see machine"}


def _is_newer(call: str) -> bool:
    """Tell whether a call came after Linux 5.8, so that a kernel in use may lack it, or this machine never had it."""
    number = REFUSED_CALLS[call][platform.machine() == "aarch64"]
    return number is None or number > 438


@needs_a_box
@pytest.mark.parametrize(
    ("hole", "named"),
    [
        ("drop_capabilities", {"call rights"}),
        ("mount_private_proc", {"read environment", "read memory", "see processes", "see machine"}),
        ("_reopen_files", {"read left behind"}),
        ("DEVICES", {"write times"}),
        ("NEWNET", {"connect neighbour"}),
        ("fork_into_pid_namespace", {"see processes", "see signals"}),
    ],
)
def test_a_part_of_the_isolation_that_is_left_out_is_named(box, hole, named):
    assert out(box, hole) == named


@needs_a_box
def test_an_incomplete_isolation_is_not_used(box):
    box.holes = ("become_user",)
    try:
        with pytest.raises(NoSandboxError, match=r"could get out of it .*call root: reached who: root"):
            require_isolation(box)
    finally:
        box.holes = ()


@needs_a_box
def test_an_isolation_that_fails_is_not_used():
    """Without namespaces, a submission changes what the box itself sees, so this test has a box of its own."""
    with holey_host() as box:
        box.holes = ("unshare_namespaces",)
        with pytest.raises(NoSandboxError, match="the isolation failed"):
            require_isolation(box)


@needs_a_box
@pytest.mark.parametrize(
    ("kernels", "name", "instead"),
    [("NPROC", "processes", "nothing was refused"), ("NOFILE", "open files", "nothing"), ("CPU", "limits", "False")],
)
def test_a_limit_that_is_forgotten_is_named(box, kernels, name, instead):
    excess = next(one for one in EXCESSES if one.name == name)
    box.unlimited = (kernels,)
    try:
        assert not (found := exceeded(box, excess)).held
        assert found.happened.startswith(instead)
    finally:
        box.unlimited = ()
    assert exceeded(box, excess).held


@needs_a_box
@pytest.mark.parametrize("name", ["memory", "memory of many", "memory and talk", "shared memory"])
def test_memory_that_is_within_bounds_is_no_excess(box, name):
    excess = next(one for one in EXCESSES if one.name == name)
    roomy = replace(excess, limits=replace(excess.limits, memory=10**10, cell=0.5))
    assert not exceeded(box, roomy).held
    assert exceeded(box, excess).held


@needs_a_box
def test_honest_work_that_does_not_work_is_named(box):
    assert worked(box, WORKS[0]).held
    assert not worked(box, Work("numpy", "import numpy\nprint(numpy.nothing)", "1")).held


@needs_a_box
def test_holes_in_the_box_itself_are_named_each_by_what_gets_out(monkeypatch):
    """One box, with everything wrong that a command line can get wrong."""
    with lay_canaries() as canaries:
        class_folder = canaries.files["class"][2]
        more = ["--share-net"] if bubblewrap.os.getuid() else []
        for parent in reversed(Path(class_folder).parents[:-1]):
            more += ["--perms", "0755", "--dir", str(parent)]
        more += ["--ro-bind", class_folder, class_folder, "--setenv", VARIABLE, canaries.word]
        more += ["--tmpfs", "/open", "--chmod", "0777", "/open"]
        monkeypatch.setattr(selftest, "lay_canaries", lambda _: nullcontext(canaries))
        with open_box(drop=("--unshare-net",), more=more), holey_host() as host:
            host.holes = ("NEWNET",)
            with pytest.raises(NoSandboxError, match="could get out of it") as error:
                require_isolation(host)
    for named in ("read class", "read environment", "connect unix", "connect devices", "write folders"):
        assert f"{named}: reached" in str(error.value)
    for fine in ("read repository", "read references", "call ", "see signals"):
        assert fine not in str(error.value)


@needs_a_box
def test_the_class_in_use_is_probed_wherever_it_is(tmp_path):
    course = Course.at(REPOSITORY, Path(tempfile.mkdtemp(prefix="in-use-", dir="/var/tmp")))
    try:
        seed = course.folder / "reports" / "small" / "seed"
        seed.parent.mkdir(parents=True)
        seed.write_text("1234")
        course.folder.chmod(0o755)
        more = ["--perms", "0755", "--dir", "/var", "--perms", "0755", "--dir", "/var/tmp"]
        more += ["--ro-bind", str(course.folder), str(course.folder)]
        named = pytest.raises(NoSandboxError, match=f"read class: reached {course.folder}")
        with open_box(drop=(), more=more), holey_host() as host, named:
            require_isolation(host, course)
    finally:
        shutil.rmtree(course.folder)


@pytest.mark.parametrize("way", ["class", "a/../class", "link"])
@pytest.mark.parametrize("what", ["class", "course"])
def test_a_folder_that_the_box_shows_is_refused_before_anything_is_run(tiny, monkeypatch, tmp_path, what, way):
    python = tmp_path / "python"
    (python / "class" / "submitted" / "ada").mkdir(parents=True)
    (python / "a").mkdir()
    (python / "link").symlink_to(python / "class")
    monkeypatch.setattr(bubblewrap, "_shown", lambda: [Path("/nowhere"), python])
    if what == "class":
        course = Course(tiny.root, python / way)
    else:
        shutil.copytree(tiny.root, python / "class", dirs_exist_ok=True)
        course = Course(python / way, tmp_path / "elsewhere")
    with pytest.raises(
        NoSandboxError, match=f"is in {python}, which student code must be able to read. Move (the class|it) elsewhere"
    ):
        run(course, "tiny")
    assert not (course.folder / "logs").exists()


def test_a_worker_refuses_where_the_box_would_show_its_own_course(monkeypatch):
    monkeypatch.setattr(bubblewrap, "_shown", lambda: [REPOSITORY])
    monkeypatch.setattr(pool, "_hosts", {})
    with pytest.raises(NoSandboxError, match=f"is in {REPOSITORY}, which student code must be able to read"):
        pool.run_here([Task((), Limits())])


@pytest.mark.parametrize("where", ["first", "hidden by the course's own folder"])
def test_a_library_that_was_installed_where_the_box_shows_it_is_refused(tiny, monkeypatch, tmp_path, where):
    packages = tmp_path / "python" / "lib" / "site-packages"
    (packages / "attnlib").mkdir(parents=True)
    (packages / "attnlib" / "__init__.py").touch()
    monkeypatch.setattr(bubblewrap, "_shown", lambda: [tmp_path / "python"])
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path] if where == "first" else [*sys.path, str(packages)])
    with pytest.raises(NoSandboxError, match=f"attnlib, at {packages}/attnlib, is in .*pip install -e"):
        bubblewrap.require_hidden(Course(tiny.root, tmp_path / "class"))


def test_a_library_that_is_installed_in_place_is_not_refused(tiny, monkeypatch, tmp_path):
    (tmp_path / "python" / "attnlib").mkdir(parents=True)  # what an installation may leave behind: no package
    monkeypatch.setattr(bubblewrap, "_shown", lambda: [tmp_path / "python"])
    monkeypatch.setattr(sys, "path", [str(tmp_path / "python"), str(REPOSITORY)])
    bubblewrap.require_hidden(Course(tiny.root, tmp_path / "class"))


@pytest.mark.parametrize("folder", ["class", "pythons", "python/../class"])
def test_a_folder_beside_those_that_the_box_shows_is_not_refused(tiny, monkeypatch, tmp_path, folder):
    (tmp_path / "python").mkdir()
    monkeypatch.setattr(bubblewrap, "_shown", lambda: [tmp_path / "python"])
    bubblewrap.require_hidden(Course(tiny.root, tmp_path / folder))


def test_an_environment_below_a_folder_of_the_system_is_not_taken_for_a_leak(monkeypatch, tmp_path, capsys):
    prefix = tmp_path / "mnt" / "c" / "environment"
    (prefix / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert told(capsys, tmp_path / "mnt") == ""
    (tmp_path / "mnt" / "c" / "gradebook.db").touch()
    assert told(capsys, tmp_path / "mnt") == f"{tmp_path / 'mnt'}: gradebook.db"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere"))
    assert told(capsys, tmp_path / "mnt") == f"{tmp_path / 'mnt'}: c"


def told(capsys, folder: Path) -> str:
    """Return what a attempt says that it reached of a folder."""
    harness.attempt(files.read([str(folder)]))
    reached: str = json.loads(capsys.readouterr().out)["reached"]
    return reached


def wrapped(monkeypatch, tmp_path, script: str) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.mark.parametrize(
    "said",
    [
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
        "namespaces.",
        "bwrap: Creating new namespace failed: Operation not permitted",
        "bwrap: setting up uid map: Permission denied",
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_what_bubblewrap_says_is_passed_on_with_what_to_do(monkeypatch, tmp_path, said):
    wrapped(monkeypatch, tmp_path, f"echo '{said}' >&2; exit 1")
    with Host(Limits()) as host, pytest.raises(NoSandboxError) as error:
        require_isolation(host)
    assert said in str(error.value)
    assert "--security-opt seccomp=unconfined" in str(error.value)
    assert "--unsandboxed" in str(error.value)


def test_without_bubblewrap_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with Host(Limits()) as host, pytest.raises(NoSandboxError, match="apt-get install bubblewrap"):
        require_isolation(host)


def test_on_another_system_it_says_where_to_grade(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(bubblewrap.platform, "system", lambda: "Darwin")
    with Host(Limits()) as host, pytest.raises(NoSandboxError, match="this is Darwin"):
        require_isolation(host)


@needs_a_box
def test_the_table_names_what_got_out_and_the_status_tells(box, monkeypatch, capsys):
    monkeypatch.setattr(selftest, "Host", lambda limits: nullcontext(box))
    monkeypatch.setattr(selftest, "EXCESSES", EXCESSES[-1:])
    monkeypatch.setattr(selftest, "WORKS", WORKS[:1])
    assert selftest.selftest() == 0
    lines = capsys.readouterr().out.splitlines()
    total = len([line for line in lines if line.startswith("✓")])
    assert lines[-1] == f"{total} of {total} held"
    box.holes = ("drop_capabilities",)
    assert selftest.selftest() == 1
    shown = capsys.readouterr().out
    assert [line.split()[1:3] for line in shown.splitlines() if line.startswith("✗")] == [["call", "rights"]]
    assert f"{total - 1} of {total} held" in shown
    assert "Do not grade on this machine" in shown
    box.holes = ()
