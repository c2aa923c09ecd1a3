"""What make does to the files of a student, and to a site that was built before, target by target.

The Makefile and the code that releases are the real ones, in a small repository of one tiny assignment. What takes
minutes is replaced: the builders of the book write one page that holds what they were given, and no class is graded.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode

import nbformat
import pytest
from _tools.forked_python import forked_python
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NAME = "02-self-attention/self-attention.ipynb"
# "all" includes the exercises, the book and the grades.
TARGETS = ("all", "serve", "work", "clean")
IMPORTED = ("numpy", "nbgrader.api", "nbgrader.converters")
ANSWER = "the answer of a student"
# Stands for the environment's Python: what is quick runs, what takes minutes leaves its files.
PYTHON = """\
#!/bin/sh
echo "$*" >>calls
case "$*" in
    "-m _tools.build"*) test ! -e broken || exit 1
        mkdir -p _build/html && cat _build/released/*/*.ipynb >_build/html/index.html ;;
    "-m _tools.lite"*) mkdir -p _build/html/lite && cat _build/released/*/*.ipynb >_build/html/lite/jupyter-lite.json ;;
    "-m grading sample"*|"-m grading run"*) mkdir -p _build/sample/reports/02-self-attention ;;
    "-m grading report"*) echo "the grades of the class" ;;
    "-m http.server"*) cat _build/html/index.html ;;
    *"import matplotlib.font_manager"*) ;;
    "-m "*) exec {forked} "$@" ;;
    *) exec {python} "$@" ;;
esac
"""


@pytest.fixture(scope="module")
def forked() -> Iterator[list[str]]:
    """A Python process that has imported what `python -m grading` imports, but nothing from the repository."""
    with forked_python(*IMPORTED) as python:
        yield python


@pytest.fixture(scope="module")
def built(tmp_path_factory, forked) -> Path:
    """A small copy of the repository, once built."""
    root = tmp_path_factory.mktemp("built")
    for name in ("grading", "attnlib"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for pattern in ("Makefile", "*.py", "*.txt", "*.toml", "*.yml"):
        for path in ROOT.glob(pattern):
            shutil.copy(path, root)
    for path in [*ROOT.glob("book/_ext/*"), *ROOT.glob("book/_tools/*")]:
        (root / path.parent.relative_to(ROOT)).mkdir(parents=True, exist_ok=True)
        (root / path.relative_to(ROOT)).touch()
    (root / ".venv" / "bin").mkdir(parents=True)
    python = root / ".venv" / "bin" / "python"
    python.write_text(PYTHON.format(python=sys.executable, forked=shlex.join(forked)))
    python.chmod(0o755)
    set_up(root)
    solve(root, "1")
    make(root, "all")
    for name in ("grading", "attnlib"):  # compiled only once: some tests touch the sources, but none changes them
        compile_dir(root / name, quiet=1, force=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    return root


@pytest.fixture
def copy(built, tmp_path) -> Path:
    """A copy of that for one test."""
    return Path(shutil.copytree(built, tmp_path / "copy"))


def solve(copy: Path, version: str) -> None:
    """Write the instructor's notebook, whose answer is not for students."""
    about = {"grade": False, "locked": False, "solution": True, "task": False, "schema_version": 3}
    source = f"# version {version}\n### BEGIN SOLUTION\nsecret = {version}\n### END SOLUTION"
    cell = new_code_cell(source, id="answer", metadata={"nbgrader": about | {"grade_id": "answer"}})
    (copy / "solutions" / NAME).parent.mkdir(parents=True, exist_ok=True)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=[cell], metadata={"kernelspec": kernel}), copy / "solutions" / NAME)


def make(copy: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    surroundings = os.environ | {"PYTHONPATH": str(copy), "MAKEFLAGS": "", "MAKELEVEL": ""}
    command = ["make", *targets]
    return subprocess.run(command, cwd=copy, env=surroundings, capture_output=True, text=True, check=False, timeout=600)


def answer(copy: Path) -> list[Path]:
    """Do the exercise, in both places where a student may have done it."""
    for folder in ("exercises", "work"):
        file = copy / folder / NAME
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ANSWER)
    return [copy / "exercises" / NAME, copy / "work" / NAME]


def renew(copy: Path) -> None:
    """Make everything newer that a pull may bring, and the assignment really new."""
    solve(copy, "2")
    for path in [*copy.glob("grading/*.py"), *copy.glob("*.*"), *copy.glob("book/*/*")]:
        path.touch()
    set_up(copy)


def set_up(copy: Path) -> None:
    """Mark every step of the set-up as done, in the order in which they are done."""
    for step in ("student", "torch", "book", "test", "bench"):
        (copy / ".venv" / f".{step}").touch()


@pytest.mark.parametrize("target", TARGETS)
def test_no_target_touches_what_a_student_wrote_or_puts_it_into_the_book(copy, target):
    files = answer(copy)
    renew(copy)
    done = make(copy, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [file.read_text() for file in files] == [ANSWER, ANSWER]
    made = [path for path in (copy / "_build").rglob("*") if path.is_file()] if target != "clean" else []
    assert not [path for path in made if ANSWER in path.read_text()]
    if target not in ("clean", "work"):  # these release nothing
        assert f"exercises/{NAME} is not what was released" in done.stdout
        assert "make work" in done.stdout
        assert "version 2" in (copy / "_build" / "released" / NAME).read_text()


def test_after_clean_everything_is_built_again_and_the_work_is_still_there(copy):
    files = answer(copy)
    environment = copy / ".venv"
    shutil.copytree(environment, copy.parent / "environment")
    assert make(copy, "clean").returncode == 0
    shutil.copytree(copy.parent / "environment", environment)
    set_up(copy)
    done = make(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [file.read_text() for file in files] == [ANSWER, ANSWER]


def test_what_nobody_changed_follows_the_solutions(copy):
    renew(copy)
    assert make(copy, "exercises").returncode == 0
    assert "version 2" in (copy / "exercises" / NAME).read_text()
    assert "secret" not in (copy / "exercises" / NAME).read_text()


def test_a_released_notebook_that_was_deleted_is_released_again(copy):
    file = copy / "_build" / "released" / NAME
    before = file.read_text()
    file.unlink()
    done = make(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert file.read_text() == before


def test_work_says_what_it_copied_and_what_it_left_alone(copy):
    done = make(copy, "work", "ASSIGNMENT=02-self-attention")
    assert f"work/{NAME}: copied" in done.stdout
    assert "jupyter lab --notebook-dir=. work/" in done.stdout
    assert f"work/{NAME}: already there" in make(copy, "work").stdout


def test_work_takes_an_id_only_from_the_command_line_and_as_it_is_typed(copy, monkeypatch):
    monkeypatch.setenv("ID", "not-the-student")
    make(copy, "work")
    assert "set_student" not in (copy / "work" / NAME).read_text()
    (copy / "work" / NAME).unlink()
    name = """-o'neil "$(touch came)" $$ `touch came`"""
    make(copy, "work", f"ID={name}")
    (stated,) = (cell for cell in nbformat.read(copy / "work" / NAME, 4).cells if cell.id == "student")
    assert stated.source.endswith(f"set_student({json.dumps(name)})")
    assert not (copy / "came").exists()


def test_work_refuses_an_unknown_name_before_anything_is_installed(copy):
    shutil.rmtree(copy / ".venv")
    done = make(copy, "work", "ASSIGNMENT=nonsense", "PYTHON=false")
    assert done.returncode != 0
    assert "There is no assignment nonsense. The assignments are: 02-self-attention" in done.stderr
    assert not (copy / ".venv").exists()


def test_work_takes_a_name_that_was_completed_with_a_slash(copy):
    assert f"work/{NAME}: copied" in make(copy, "work", "ASSIGNMENT=02-self-attention/").stdout


def test_in_the_end_make_says_how_to_find_the_other_commands(copy):
    assert "make help" in make(copy).stdout.splitlines()[-1]


def test_nothing_is_built_again_because_a_student_saved_a_notebook(copy):
    answer(copy)
    make(copy)
    site = copy / "_build" / "html" / "index.html"
    before = site.stat().st_mtime_ns
    (copy / "exercises" / NAME).write_text(f"{ANSWER}, saved again")
    assert make(copy).returncode == 0
    assert site.stat().st_mtime_ns == before


def test_a_second_make_starts_no_python_and_shows_the_same(copy):
    calls = copy / "calls"
    shown = make(copy).stdout
    calls.write_text("")
    assert make(copy).stdout == shown
    assert "the grades of the class" in shown
    assert calls.read_text() == ""


def test_a_build_that_fails_leaves_the_site_and_it_is_served_with_a_warning(copy):
    site = copy / "_build" / "html" / "index.html"
    before = site.read_text()
    renew(copy)
    (copy / "broken").touch()
    assert make(copy, "book").returncode != 0
    assert site.read_text() == before
    served = make(copy, "serve")
    assert served.returncode == 0
    assert "The book could not be built" in served.stdout
    assert before in served.stdout


def test_where_nothing_was_ever_built_nothing_is_served(copy):
    shutil.rmtree(copy / "_build")
    (copy / "broken").touch()
    assert make(copy, "serve").returncode != 0


def test_each_step_of_the_set_up_installs_its_group_after_the_steps_before_it(copy):
    """Of two steps that a computer takes at once, one would find what the other is still installing."""
    (copy / "install.py").write_text("import sys\nprint('installing', *sys.argv[1:])\n")
    for done in (copy / ".venv").glob(".[a-z]*"):
        done.unlink()
    steps = ("student", "torch", "book", "test", "bench")
    said = make(copy, "-j", "2", ".venv/.bench").stdout
    assert re.findall("installing (.*)", said) == list(steps)
    assert make(copy, ".venv/.bench").stdout.endswith("is up to date.\n")


@pytest.mark.parametrize(("target", "group"), [("all", "book"), ("test", "test")])
def test_the_first_run_of_pip_installs_what_later_steps_need(copy, target, group):
    (copy / "install.py").write_text("import sys\nprint('installing', *sys.argv[1:])\n")
    for done in (copy / ".venv").glob(".[a-z]*"):
        done.unlink()
    tools(copy, "nothing")
    done = make(copy, target, "CHROMIUM=none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall("^installing (.*)", done.stdout, re.MULTILINE) == [group]


def test_work_is_copied_as_soon_as_the_student_s_group_is_installed(copy):
    shutil.rmtree(copy / "_build")
    for step in ("torch", "book", "test", "bench"):
        (copy / ".venv" / f".{step}").unlink()
    (copy / "install.py").write_text("raise SystemExit('nothing more has to be installed')\n")
    set_up_again = copy / ".venv" / ".student"
    set_up_again.touch()
    done = make(copy, "work")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (copy / "work" / NAME).read_text() == (copy / "exercises" / NAME).read_text()


@pytest.mark.parametrize("target", ["all", "serve"])
def test_a_copy_without_solutions_is_built_from_what_was_released(copy, target):
    released = (copy / "exercises" / NAME).read_text()
    for folder in ("solutions", "_build"):
        shutil.rmtree(copy / folder)
    (copy / "exercises" / NAME).with_name("self-attention-Copy1.ipynb").write_text(ANSWER)  # as Jupyter duplicates one
    done = make(copy, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (copy / "_build" / "released" / NAME).read_text() == released
    assert (copy / "exercises" / NAME).read_text() == released
    assert "grades of a class" not in done.stdout


@pytest.mark.parametrize("python", ["PYTHONS=python3 python3.11", "PYTHON=no-such-python"])
def test_a_python_that_is_missing_or_too_old_is_called_by_its_name(copy, python):
    shutil.rmtree(copy / ".venv")
    empty = copy / "bin"
    empty.mkdir()
    for name in ("sh", "bash", "rm", "test", "find", "mkdir", "touch", "grep", "make", "expr"):
        (empty / name).symlink_to(shutil.which(name))
    surroundings = {"PATH": str(empty), "HOME": str(copy)}
    command = [str(empty / "make"), "exercises", python]
    done = subprocess.run(command, cwd=copy, env=surroundings, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stdout
    assert "''" not in done.stdout
    assert ("no-such-python" in done.stdout) == ("no-such-python" in python)


TOOL = """\
#!/bin/sh
echo "{name} $*"
case "$*" in *"{fails}"*) exit 1 ;; esac
"""


def tools(copy: Path, fails: str) -> None:
    """Put in the place of the linters and of pytest what says how it was called, and fails for one argument."""
    for name in ("ruff", "mypy", "deno", "pytest"):
        tool = copy / ".venv" / "bin" / name
        tool.write_text(TOOL.format(name=name, fails=fails))
        tool.chmod(0o755)


@pytest.mark.parametrize(
    ("fails", "ok"), [("nothing", True), ("tests/book", False), ("tests/attnlib", False), ("format --check", False)]
)
def test_make_test_says_which_part_a_line_is_of_and_fails_if_one_of_them_does(copy, fails, ok):
    tools(copy, fails)
    done = make(copy, "test", "CHROMIUM=none")
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    parts = {"book": "book", "grading": "grading", "library": "attnlib"}
    parts |= {} if fails == "format --check" else {"rest": "house"}  # this part begins with the linters
    for part, folder in parts.items():
        assert re.search(rf"^{part}: pytest .*tests/{folder}\b", done.stdout, re.MULTILINE)
    assert "rest: ruff check" in done.stdout


@pytest.mark.parametrize(
    ("fails", "ran"),
    [
        ("nothing", ["ruff check", "ruff format", "mypy", "deno check", "pytest -n auto"]),
        ("format --check", ["ruff format"]),
        ("not slow", ["pytest -n auto"]),
    ],
)
def test_make_check_lints_and_tests(copy, fails, ran):
    """Both run side by side: once one of them has failed, the other may not begin any more."""
    tools(copy, fails)
    done = make(copy, "check")
    assert (done.returncode == 0) == (fails == "nothing"), done.stdout + done.stderr
    assert not [tool for tool in ran if tool not in done.stdout]
