"""Links, FIFOs and hard links that are planted in a class's folder lead the grader to nobody else's file."""

import argparse
import os
import shutil
from pathlib import Path

import pytest

from grading.__main__ import _show
from grading.notebook_template import NotebookTemplate
from grading.repair.messages import RefusedError
from grading.repair.notebook import repair_notebook
from grading.run import How, run
from grading.safe_files import SafeFolder, UnsafeFileError
from grading.timestamp import handed_in

FILES = (
    "run.lock",
    "gradebook.db",
    "logs/tiny.log",
    "release/tiny.registered",
    "release/tiny/tiny.ipynb",
    "reports/tiny/seed",
    "reports/tiny/outcomes/ada.json",
    "reports/tiny/grades.csv",
    "reports/tiny/grades.html",
    "autograded/ada/tiny/tiny.ipynb",
    "feedback/ada/tiny/tiny.html",
)
FOLDERS = (
    "logs",
    "release",
    "reports",
    "reports/tiny",
    "reports/tiny/outcomes",
    "autograded/ada",
    "feedback",
    "submitted",
)
KINDS = {
    "link": lambda path, victim: path.symlink_to(victim),
    "dangling": lambda path, victim: path.symlink_to(victim.with_name("made")),
    "hard-link": lambda path, victim: path.hardlink_to(victim),
    "pipe": lambda path, victim: os.mkfifo(path),
}

# The lock, the gradebook and the log are each opened in a way of their own, the seed and the stamp are read, and
# nbgrader writes the released notebook. All other files are written as an outcome is, so one kind is enough for them.
OWN_WAYS = (
    *("run.lock", "gradebook.db", "logs/tiny.log", "reports/tiny/seed", "reports/tiny/outcomes/ada.json"),
    *("release/tiny.registered", "release/tiny/tiny.ipynb"),
)
PLANTED = [(place, kind) for place in FILES for kind in KINDS if place in OWN_WAYS or kind == "link"]


@pytest.fixture(scope="module")
def course(tiny, boxes):
    tiny.submit("ada")
    grade(tiny, boxes)
    return tiny


@pytest.fixture
def victim(tmp_path) -> Path:
    """Somebody else's file, in a folder in which nothing may change."""
    victim = tmp_path / "victim"
    victim.write_text("root:x:0:0")
    victim.chmod(0o644)
    return victim


def grade(course, boxes):
    """Do everything that reads and writes in the class's folder."""
    asked = argparse.Namespace(assignment="tiny")
    run(course, "tiny", how=How(regrade=True), pool=boxes)
    _show(course, asked)


def assert_untouched(victim):
    assert victim.read_text() == "root:x:0:0"
    assert victim.stat().st_mode & 0o7777 == 0o644
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "kind"), PLANTED)
def test_what_is_planted_in_the_place_of_a_file_is_not_followed(course, boxes, victim, place, kind):
    path, kept = course.folder / place, None
    if path.exists():
        kept = path.read_bytes()
        path.unlink()
    KINDS[kind](path, victim)
    try:
        grade(course, boxes)
        refused = ""
    except UnsafeFileError as error:
        refused = str(error)
    if refused:
        assert str(path) in refused
        assert "remove it" in refused
    else:
        assert path.lstat().st_nlink == 1
        assert not path.exists() or (path.is_file() and not path.is_symlink()), "it was replaced, or is gone"
    assert_untouched(victim)
    path.unlink(missing_ok=True)
    if kept is not None:
        path.write_bytes(kept)


@pytest.mark.parametrize("place", FOLDERS)
def test_a_link_in_the_place_of_a_folder_is_not_followed(course, boxes, victim, place):
    path = course.folder / place
    kept = path.with_name(f".{path.name}.kept")
    path.rename(kept)
    path.symlink_to(victim.parent)
    try:
        with pytest.raises(UnsafeFileError, match=f"{path} is a link or not a folder"):
            grade(course, boxes)
    finally:
        path.unlink()
        kept.rename(path)
    assert_untouched(victim)


@pytest.mark.parametrize("kind", ["link", "hard-link", "pipe"])
def test_a_submission_is_a_file_of_its_own(course, victim, kind):
    folder = course.submitted("mallory", "tiny")
    folder.mkdir(parents=True)
    victim.write_text((course.submitted("ada", "tiny") / "tiny.ipynb").read_text())
    KINDS[kind](folder / "tiny.ipynb", victim)
    (folder / "timestamp.txt").symlink_to(victim)
    template = NotebookTemplate.read(course.folder / "release" / "tiny" / "tiny.ipynb").released
    with pytest.raises(RefusedError):
        repair_notebook(folder, "tiny.ipynb", template)
    assert handed_in(folder).when is None
    shutil.rmtree(folder.parent)


def test_what_is_written_replaces_a_link_and_is_whole_or_not_there(tmp_path, monkeypatch):
    files, file = SafeFolder(tmp_path), tmp_path / "a" / "b"
    files.write(file, b"first")
    monkeypatch.setattr(os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        files.write(file, b"second")
    assert file.read_bytes() == b"first"


def test_a_file_is_read_to_its_bound_and_no_further(tmp_path):
    (tmp_path / "long").write_bytes(b"12345")
    assert SafeFolder(tmp_path).read(tmp_path / "long", 5) == b"12345"
    with pytest.raises(UnsafeFileError, match="more than 4 bytes"):
        SafeFolder(tmp_path).read(tmp_path / "long", 4)


def test_a_folder_is_removed_with_its_links_and_not_with_what_they_lead_to(tmp_path, victim):
    folder = tmp_path.parent / f"{tmp_path.name}-class"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "link").symlink_to(victim.parent)
    (folder / "b").symlink_to(victim.parent)
    for name in ("a", "b", "c"):
        SafeFolder(folder).remove(folder / name)
    assert not list(folder.iterdir())
    assert_untouched(victim)
