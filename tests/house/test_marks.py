"""`make check` runs the fast tests of every part and `make test` all tests; the marks say which tests are fast."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
MARKS = [text.partition(":")[0] for text in OPTIONS["markers"]]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def arguments_of_pytest(target: str) -> list[list[str]]:
    """What `make` would call pytest with, call by call."""
    surroundings = os.environ | {"MAKEFLAGS": "", "MAKELEVEL": ""}
    command = ["make", "--dry-run", target]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=True, timeout=600)
    calls = re.findall(r"^(?:.*\s)?pytest (.*)$", done.stdout, re.MULTILINE)
    return [shlex.split(call) for call in calls]


def test_the_tests_are_in_the_folders_that_pytest_is_told_of():
    assert {str(path.parent.relative_to(ROOT)) for path in FILES} == set(OPTIONS["testpaths"])


def test_make_test_runs_everything():
    calls = arguments_of_pytest("test")
    assert not [call for call in calls if "-m" in call or "-k" in call or any("ignore" in one for one in call)]
    assert set(OPTIONS["testpaths"]) <= {argument for call in calls for argument in call}
    for call in calls:
        for option, left_out in pairwise(call):
            assert option != "--deselect" or any(left_out in other for other in calls if other is not call)


def test_make_check_runs_what_has_no_mark():
    (call,) = arguments_of_pytest("check")
    assert call[call.index("-m") + 1] == " and ".join(f"not {mark}" for mark in MARKS)
    assert not [one for one in call if one.startswith("tests")]


def test_the_files_that_take_longest_come_first(tmp_path):
    """Pytest forgets a file that is named before its own folder, so there is an option for this."""
    calls = [*arguments_of_pytest("test"), *arguments_of_pytest("library")]
    files = [option for call in calls for name, option in pairwise(call) if name == "--first"]
    assert len(files) > 3
    assert {ROOT / file for file in files} <= set(FILES)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = browser\n")
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text("def test_one(): pass\ndef test_other(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--collect-only",
        "--first",
        "test_d.py",
        "--first",
        "test_b.py",
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600)
    assert re.findall(r"test_(\w)\.py::test_(\w+)", done.stdout) == [
        (file, test) for file in "dbac" for test in ("one", "other")
    ]


def test_an_undeclared_mark_is_an_error():
    assert "--strict-markers" in OPTIONS["addopts"].split()


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_is_in_use(mark):
    others = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert [path for path in others if re.search(rf"\bmark\.{mark}\b", path.read_text())]


@pytest.mark.parametrize("folder", OPTIONS["testpaths"])
def test_make_check_runs_tests_of_each_folder(folder):
    whole_file = re.compile(r"^pytestmark = .*\b(slow|browser|attack)\b", re.MULTILINE)
    assert [path for path in (ROOT / folder).glob("test_*.py") if not whole_file.search(path.read_text())]
