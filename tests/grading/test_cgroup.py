"""Each submission has a control group of its own where the kernel allows it; elsewhere grading goes on without one."""

import errno
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from test_sandbox_host import LIMITS, pytestmark, run, text  # noqa: F401 (the mark holds for this file too)

from grading.sandbox import cgroup, cpu_time, memory_usage
from grading.sandbox.cgroup import Group, own_group
from grading.sandbox.cpu_time import Meter
from grading.sandbox.failures import KilledError, StoppedError
from grading.sandbox.limits import Limits

BUSY = "end = time.process_time() + 0.5\nwhile time.process_time() < end: pass\nos._exit(0)\n".replace(
    "\n", "\n        "
)
ORPHAN = f"""
import os, time
reading, writing = os.pipe()
if not os.fork():
    if not os.fork():
        {BUSY}
    os._exit(0)
os.close(writing)
os.read(reading, 1)  # until both have ended; nobody waits for either
"""
DROPPED = f"""
import os, signal, sys, time
sys.stdin.readline()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if True:
    if not os.fork():
        {BUSY}
try: os.wait()
except ChildProcessError: print("none is left", flush=True)
sys.stdin.readline()
"""
EARLIER = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _prepared_anew():
    cgroup._parent.cache_clear()
    yield
    cgroup._parent.cache_clear()


@pytest.fixture
def real(monkeypatch):
    """A control group on this machine that stands for our own, so that tests beside this one have others."""
    own = cgroup.find(Path("/proc/self"))
    if own is None:
        pytest.skip("no cgroup v2 is mounted here")
    folder = own / f"{cgroup.GROUP_PREFIX}-{os.getpid()}-test"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    monkeypatch.setattr(cgroup, "find", lambda process: folder)
    yield folder
    folder.rmdir()


@contextmanager
def started(source="import sys; sys.stdin.readline()"):
    process = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended() -> int:
    """Return the number of a process that there no longer is."""
    with started() as process:
        return process.pid


def groups(folder) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(f"{cgroup.GROUP_PREFIX}-{os.getpid()}-")}


@pytest.mark.slow
def test_the_processor_time_of_children_that_nobody_waits_for_counts_in_full(host, real):
    with host.submission_process(limits=LIMITS) as process:
        before = process.time.now().used
        list(process.ask({"run": ORPHAN}))
        assert process.time.now().used - before >= 0.5
        assert cpu_time.used([process._process]) - before < 0.5, "its parent's counts know nothing of it"


def test_the_processor_time_of_children_that_the_kernel_drops_counts_in_full(real):
    with own_group() as group, started(DROPPED) as process:
        assert group.add(process.pid, 10**9)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"none is left\n"
        assert group.used() >= 0.5
        assert cpu_time.used([psutil.Process(process.pid)]) < 0.5, "its parent's counts know nothing of it"


def test_submissions_side_by_side_are_counted_apart(host, real):
    with host.submission_process(limits=LIMITS) as busy, host.submission_process(limits=LIMITS) as idle:
        assert len(groups(real)) == 2
        before = [process.time.now().used for process in (busy, idle)]
        list(busy.ask({"run": ORPHAN}))
        list(idle.ask({"run": "x = 1"}))
        after = [process.time.now().used for process in (busy, idle)]
    assert after[0] - before[0] >= 0.5
    assert after[1] - before[1] < 0.5


@pytest.mark.parametrize("source", ["x = 1", "import os; os.fork() or os._exit(0); os._exit(1)"])
def test_a_group_lasts_as_long_as_its_submission(host, real, source):
    with host.submission_process(limits=LIMITS) as process:
        (name,) = groups(real)
        lines = Path(f"/proc/{process._process.pid}/cgroup").read_text().splitlines()
        assert [line for line in lines if line.startswith("0::") and line.endswith(f"/{real.name}/{name}")]
        with suppress(StoppedError):
            list(process.ask({"run": source}))
    assert groups(real) == set()


def test_what_is_left_in_a_group_ends_with_it(real):
    with started() as process:
        with own_group() as group:
            assert group.add(process.pid, 10**9)
            if not (group.folder / "cgroup.kill").exists():
                pytest.skip("this kernel has no cgroup.kill")
        assert process.wait(60) == -9
        assert groups(real) == set()


def test_the_groups_of_graders_that_have_ended_are_removed(real):
    stale, ours = (real / f"{cgroup.GROUP_PREFIX}-{pid}-{EARLIER}" for pid in (ended(), os.getpid()))
    for folder in (stale, ours):
        folder.mkdir()
    try:
        with own_group():
            assert (stale.exists(), ours.exists()) == (False, True)
    finally:
        ours.rmdir()


def test_a_stale_group_in_which_something_runs_is_left_alone(real):
    stale = Group(real / f"{cgroup.GROUP_PREFIX}-{ended()}-{EARLIER}")
    stale.folder.mkdir()
    with started() as process:
        assert stale.add(process.pid, 10**9)
        with own_group():
            assert stale.folder.exists()
        assert process.poll() is None
    stale.folder.rmdir()


def fake_process(place, group, *mounts) -> Path:
    (place / "self").mkdir()
    (place / "self" / "cgroup").write_text(f"4:memory:/elsewhere\n1:name=systemd:/elsewhere\n{group}\n")
    lines = (
        f"{i} 23 0:28 {root} {point} rw,relatime shared:4 - {kind} rw\n" for i, (root, point, kind) in enumerate(mounts)
    )
    (place / "self" / "mountinfo").write_text("".join(lines))
    return place / "self"


@pytest.mark.parametrize(
    ("group", "root", "found"),
    [
        ("0::/", "/", ""),
        ("0::/user.slice/a", "/", "user.slice/a"),
        ("0::/docker/1/a", "/docker/1", "a"),  # the mount shows a part of the tree
        ("0::/docker/2", "/docker/1", None),
        ("0::/../a", "/", None),  # it lies outside of the namespace
        ("0::/gone (deleted)", "/", None),
        ("5:cpu:/a", "/", None),  # only version 1
    ],
)
def test_our_own_group_is_found_where_it_is_mounted(tmp_path, group, root, found):
    unified = tmp_path / "cgroup of all" / "unified"
    for name in ("", "a", "user.slice/a"):
        (unified / name).mkdir(parents=True, exist_ok=True)
        (unified / name / "cgroup.procs").touch()
    (unified.parent / "a").mkdir()
    (unified.parent / "a" / "cgroup.procs").touch()
    mounts = [("/", unified.parent, "cgroup"), (root, str(unified).replace(" ", r"\040"), "cgroup2")]
    expected = None if found is None else unified / found
    assert cgroup.find(fake_process(tmp_path, group, *mounts)) == expected


FILES = ("cgroup.procs", "cgroup.controllers", "cgroup.subtree_control", "cgroup.kill", "cpu.stat")
FILES_OF = {"cpu": ("cpu.max",), "memory": ("memory.max", "memory.swap.max", "memory.oom.group", "memory.events")}


class Kernel:
    """What the kernel does with the files of control groups, played in a folder, in which we are in ``own``."""

    def __init__(self, place, controllers):
        self.own, self.controllers = place / "own", controllers
        self.refused = {}  # names of files, or "mkdir", with the number of the error
        self.moved = []
        self.arriving = []  # processes that come into our group while the first is moved away
        self.seen = {}  # what the files of removed groups said

    def make(self, folder, *_, **__):
        if "mkdir" in self.refused:
            raise OSError(self.refused["mkdir"], "refused")
        os.mkdir(folder)  # noqa: PTH102 (this is what Path.mkdir is replaced by)
        parent = (
            (folder.parent / "cgroup.subtree_control").read_text().split() if folder != self.own else self.controllers
        )
        for file in [*FILES, *(file for name in parent for file in FILES_OF[name])]:
            (folder / file).touch()
        (folder / "cgroup.controllers").write_text(" ".join(parent))
        (folder / "cpu.stat").write_text("usage_usec 0\nuser_usec 0\n")

    def remove(self, folder):
        self.seen[folder.name] = files = {path.name: path.read_text() for path in folder.iterdir()}
        if any(psutil.pid_exists(int(pid)) for pid in files["cgroup.procs"].split()):
            raise OSError(errno.EBUSY, "it has processes")
        for file in files:
            (folder / file).unlink()
        os.rmdir(folder)  # noqa: PTH106 (as above)

    def write(self, file, text):
        if not file.exists():
            raise FileNotFoundError
        if file.name in self.refused:
            raise OSError(self.refused[file.name], "refused")
        if file.name == "cgroup.subtree_control":
            self.control(file, text)
        elif file.name == "cgroup.procs":
            self.move(file, text)
        else:
            file.write_text(text)

    def control(self, file, text):
        if text[0] == "+" and (file.parent / "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, "it has processes")
        others = [name for name in file.read_text().split() if name != text[1:]]
        file.write_text(" ".join(others + [text[1:]] * (text[0] == "+")))

    def move(self, file, pid):
        self.moved.append(int(pid))
        for procs in self.own.rglob("cgroup.procs"):
            procs.write_text("".join(f"{x}\n" for x in procs.read_text().split() if x != pid))
        self.put(file.parent, pid)
        self.put(self.own, *self.arriving)
        self.arriving = []

    def put(self, group, *pids):
        with (group / "cgroup.procs").open("a") as file:
            file.writelines(f"{pid}\n" for pid in pids)

    def processes(self, group):
        return {int(pid) for pid in (group / "cgroup.procs").read_text().split()}


@pytest.fixture
def at_exit(monkeypatch):
    """What would be called when the grader ends."""
    calls = []
    monkeypatch.setattr(cgroup.atexit, "register", lambda function, *given: calls.append(lambda: function(*given)))
    return calls


@pytest.fixture
def kernel(tmp_path, monkeypatch, at_exit):
    """A kernel with both controllers, where all processes of our group are our own."""
    kernel = Kernel(tmp_path, ("cpu", "memory"))
    kernel.make(kernel.own)
    kernel.put(kernel.own, os.getpid())
    fake = fake_process(tmp_path, "0::/own", ("/", tmp_path, "cgroup2"))
    monkeypatch.setattr(cgroup, "SELF", fake)
    monkeypatch.setattr(cgroup, "_write", kernel.write)
    monkeypatch.setattr(cgroup, "REMOVAL_SECONDS", 0)
    real_make, real_remove = Path.mkdir, Path.rmdir

    def faked(path):
        return path.is_relative_to(tmp_path)

    monkeypatch.setattr(
        Path, "mkdir", lambda path, *a, **k: kernel.make(path) if faked(path) else real_make(path, *a, **k)
    )
    monkeypatch.setattr(Path, "rmdir", lambda path: kernel.remove(path) if faked(path) else real_remove(path))
    return kernel


def test_a_submission_gets_one_core_and_its_memory_where_the_controllers_are(host, kernel, monkeypatch):
    monkeypatch.setattr(memory_usage, "bytes_of_process", lambda process: 70_000_000)
    monkeypatch.setattr(memory_usage, "max_kernel_bytes", lambda family, sandboxed: 1_000)
    with host.submission_process(limits=LIMITS) as process:
        folder = process._group.folder
        assert kernel.processes(folder) == {process._process.pid}
        assert (folder / "cpu.max").read_text() == "100000 100000"
        assert int((folder / "memory.max").read_text()) == 375_000_000 + 70_001_000
        assert (folder / "memory.swap.max").read_text() == "0"
        assert (folder / "memory.oom.group").read_text() == "1"
    assert kernel.seen[folder.name]["cgroup.kill"] == "1"
    assert not folder.exists()


@pytest.mark.parametrize("one_core", [True, False])
def test_a_submission_that_the_kernel_keeps_to_one_core_is_not_bound_to_one(kernel, monkeypatch, one_core):
    bound = []
    monkeypatch.setattr(cpu_time, "keep_to_one_core", bound.append)
    if not one_core:
        kernel.refused["cpu.max"] = errno.EACCES
    with own_group() as group, started() as process:
        group.add(process.pid, 10**9)
        meter = Meter(psutil.Process(process.pid), Limits(), 180, group)
        (group.folder / "cpu.stat").write_text("usage_usec 3600000000\n")
        meter.look([meter.process])
    assert len(bound) == (not one_core)


def test_time_is_what_the_group_used_and_what_proc_says_where_that_cannot_be_read(kernel, monkeypatch):
    monkeypatch.setattr(cpu_time, "used", lambda family: 7.0)
    with own_group() as group, started() as process:
        group.add(process.pid, 10**9)
        (group.folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1000000\n")
        meter = Meter(psutil.Process(process.pid), Limits(), 180, group)
        assert meter.now().used == 2.5
        (group.folder / "cpu.stat").write_text("")
        assert meter.now().used == 7


def killed(host, events):
    """Kill a submission's process, with so many events counted for its group, and say how that is understood."""
    with host.submission_process(limits=LIMITS) as process:
        (process._group.folder / "memory.events").write_text(events)
        process._process.kill()
        list(process.ask({"run": "x = 1"}))


@pytest.mark.parametrize("events", ["oom_kill 3", "oom_kill 1\noom_group_kill 1"])
def test_a_process_that_the_kernel_kills_at_its_memory_limit_is_out_of_memory(host, kernel, events):
    with pytest.raises(StoppedError) as stop:
        killed(host, f"low 0\nhigh 0\nmax 9\noom 1\n{events}\n")
    assert (stop.value.verdict, str(stop.value)) == ("out-of-memory", "took more than 0.3 GB of memory.")


@pytest.mark.slow
@pytest.mark.parametrize("events", ["oom 1\noom_kill 0\noom_group_kill 0", "oom 0\noom_kill 1\noom_group_kill 1"])
def test_a_process_that_is_killed_for_another_reason_is_not_out_of_memory(host, kernel, events):
    """The kernel counts an ``oom`` for the group whose limit was reached, not where the machine's memory was."""
    with pytest.raises(KilledError):
        killed(host, events)


def test_the_grader_makes_room_for_controllers_and_puts_everything_back_at_its_end(kernel, at_exit):
    with started() as process:
        kernel.put(kernel.own, process.pid)
        with own_group() as group:
            (leaf,) = (kernel.own / name for name in groups(kernel.own) if name != group.folder.name)
            assert kernel.processes(leaf) == {os.getpid(), process.pid}
            assert (kernel.own / "cgroup.subtree_control").read_text() == "cpu memory"
        assert len(at_exit) == 1
        at_exit[0]()
        assert kernel.processes(kernel.own) == {os.getpid(), process.pid}
        assert (kernel.own / "cgroup.subtree_control").read_text() == ""
        assert groups(kernel.own) == set()


def test_the_end_of_a_fork_of_the_grader_leaves_everything_as_it_is(kernel, at_exit):
    with own_group():
        pass
    (leaf,) = (kernel.own / name for name in groups(kernel.own))
    kernel.put(leaf, os.getppid())  # the grader, which a fork of it does not own
    at_exit[0]()
    assert kernel.processes(leaf) == {os.getpid(), os.getppid()}
    assert (kernel.own / "cgroup.subtree_control").read_text() == "cpu memory"


@pytest.mark.parametrize("foreign", [1, 0, os.getppid()])
def test_nothing_is_moved_where_a_foreign_process_is_in_our_group(kernel, at_exit, foreign):
    kernel.put(kernel.own, foreign)
    with own_group() as group:
        assert groups(kernel.own) == {group.folder.name}
    assert (kernel.moved, at_exit) == ([], [])
    assert set(kernel.seen) == {group.folder.name}, "no other group was made"
    assert kernel.processes(kernel.own) == {os.getpid(), foreign}


def test_nothing_is_enabled_where_the_processes_of_our_group_cannot_be_listed(kernel, at_exit):
    (kernel.own / "cgroup.procs").write_text("")
    with own_group():
        assert (kernel.own / "cgroup.subtree_control").read_text() == ""


def test_a_foreign_process_that_comes_while_ours_are_moved_stays_and_ours_move_back(kernel, at_exit):
    kernel.arriving = [1]
    with own_group() as group:
        assert groups(kernel.own) == {group.folder.name}
    assert set(kernel.moved) == {os.getpid()}
    assert at_exit == []
    assert kernel.processes(kernel.own) == {os.getpid(), 1}


REFUSED = [errno.EBUSY, errno.EACCES, errno.EROFS]


@pytest.mark.parametrize("error", REFUSED, ids=errno.errorcode.get)
@pytest.mark.parametrize("what", ["mkdir", "cgroup.procs", "cgroup.subtree_control", "memory.max", "cgroup.kill"])
def test_what_the_kernel_refuses_changes_no_grade(host, kernel, what, error):
    kernel.refused[what] = error
    result = run(host, "print(6 * 7)")
    assert (text(result), result.stops, result.lost, result.again) == ("42\n", {}, "", "")
    assert (kernel.own / "cgroup.subtree_control").read_text() == (
        "" if what in ("mkdir", "cgroup.procs", "cgroup.subtree_control") else "cpu memory"
    )


@pytest.mark.parametrize("what", ["mkdir", "cgroup.procs"])
def test_processor_time_is_limited_without_a_group(host, kernel, what):
    kernel.refused[what] = errno.EACCES
    with host.submission_process(limits=LIMITS) as process:
        assert process._group is None
        before = process.time.now().used
        list(
            process.ask({"run": "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"})
        )
        assert process.time.now().used - before >= 0.25  # /proc counts in hundredths, for each of user and system
