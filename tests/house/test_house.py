"""The repository itself: the README's code runs, nothing private slipped in."""

import os
import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from attnlib.checks.book_links import LOCAL_BOOK
from grading.course import Course

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_no_two_test_files_share_a_name():
    """The folders are no packages: pytest refuses to run two files of one name together."""
    files = [path.name for path in tracked() if path.is_relative_to(ROOT / "tests") and path.name.startswith("test_")]
    assert sorted(files) == sorted(set(files))


@pytest.mark.parametrize("document", ["README.md", "Makefile", "book/start.md"])
def test_jupyter_is_started_where_it_can_follow_a_link_from_a_notebook_into_the_book(document):
    """Given a notebook and no folder, Jupyter shows the notebook's own folder, and nothing outside of it."""
    from jupyterlab.labapp import LabApp  # imported here, because it is slow and other tests do not need it

    commands = re.findall(r"jupyter lab (.*\.ipynb)", (ROOT / document).read_text(encoding="utf-8"))
    assert commands
    for command in commands:
        folder, notebook = command.split()
        link = Path(notebook).parent / LOCAL_BOOK
        assert LabApp.aliases[folder.partition("=")[0].strip("-")] == "ServerApp.root_dir"
        assert folder.partition("=")[2] == "."
        assert os.path.normpath(link) == "_build/html"


@pytest.mark.slow
def test_the_code_in_the_readme_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_page_on_installing_attnlib_lists_every_extra_and_what_it_installs():
    rows = re.findall(r"^\| (none|`\w+`) \| .* \| (.*) \|$", (ROOT / "book" / "install.md").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"none": project["dependencies"]} | project["optional-dependencies"]
    packages = {extra: [re.match(r"[\w-]+", package)[0] for package in wanted[extra]] for extra in wanted}
    assert {extra.strip("`"): installed.split(", ") for extra, installed in rows} == packages


def test_no_file_names_a_place_on_the_machine_it_was_made_on():
    place = re.compile(rb"/(home|Users|root|work)/\w+/")
    assert not [path for path in tracked() if path.is_file() and place.search(path.read_bytes())]


@pytest.mark.parametrize(
    "name",
    [
        "grades.csv",  # where `nbgrader export` writes by itself
        "canvas.csv",
        "exports/term/grades.csv",
        "class/submitted/ada/02-self-attention/self-attention.ipynb",
        "gradebook.db",
        "work/02-self-attention/self-attention.ipynb",
    ],
)
def test_grades_and_the_work_of_students_cannot_be_committed_by_accident(name):
    ignored = subprocess.run(["git", "check-ignore", "--quiet", "--no-index", name], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_an_export_by_nbgrader_goes_to_the_class(tmp_path):
    config = Course.at(ROOT, tmp_path).config()
    assert config.ExportPlugin.to == str(tmp_path / "grades.csv")


def test_the_digests_are_those_of_the_exercises():
    listed = dict(line.split("  ")[::-1] for line in (ROOT / "exercises" / "SHA256SUMS").read_text().splitlines())
    found = {path.relative_to(ROOT / "exercises").as_posix(): path for path in ROOT.glob("exercises/*/*.ipynb")}
    assert listed == {name: sha256(path.read_bytes()).hexdigest() for name, path in found.items()}
    assert len(listed) == 9
