"""What is released is never written over anybody's work, and nobody's work is ever taken for what is released."""

import logging
import shutil
import subprocess
import sys
from hashlib import sha256

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell
from tiny import REPOSITORY, TinyCourse, tiny_notebook

from grading.class_settings import ClassSettings, write_class
from grading.course import Course, GradingError
from grading.handout import hand_out, start_work
from grading.release import notebook_templates, register
from grading.submission import asked

NAME = "tiny/tiny.ipynb"


@pytest.fixture
def course(tmp_path) -> TinyCourse:
    root = tmp_path / "repository"
    (root / "solutions" / "tiny").mkdir(parents=True)
    (root / "nbgrader_config.py").write_bytes((REPOSITORY / "nbgrader_config.py").read_bytes())
    course = TinyCourse.at(root, tmp_path / "class")
    solve(course, "1")
    return course


def solve(course: Course, answer: str) -> None:
    """Write an instructor's notebook, whose first cell students see."""
    notebook = tiny_notebook()
    notebook.cells[0].source = f"version = {answer}"
    nbformat.write(notebook, course.root / "solutions" / NAME)


def shown(course: Course) -> str:
    return (course.root / "exercises" / NAME).read_text()


def pristine(course: Course) -> str:
    return (course.root / "_build" / "released" / NAME).read_text()


def test_the_first_release_writes_both_copies_without_the_answers(course):
    assert hand_out(course) == [f"exercises/{NAME}: released"]
    assert shown(course) == pristine(course)
    assert "version = 1" in shown(course)
    assert "YOUR CODE HERE" in shown(course)
    assert hand_out(course) == []


def test_the_list_of_digests_is_one_that_sha256sum_checks(course):
    hand_out(course)
    digest = sha256((course.root / "exercises" / NAME).read_bytes()).hexdigest()
    assert (course.root / "exercises" / "SHA256SUMS").read_text() == f"{digest}  {NAME}\n"
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=course.root / "exercises", capture_output=True, check=False).returncode == 0


def test_exercises_follow_what_an_instructor_changes_again_and_again(course):
    for version in "123":
        solve(course, version)
        assert hand_out(course) == [f"exercises/{NAME}: released"]
        assert f"version = {version}" in shown(course)


def test_an_answered_notebook_stays_and_it_says_how_to_get_a_copy_of_the_new_one(course):
    hand_out(course)
    answered = shown(course).replace("raise NotImplementedError()", "return 42")
    (course.root / "exercises" / NAME).write_text(answered)
    for version in "23":
        solve(course, version)
        (said,) = hand_out(course)
        assert "is not what was released, so it was left as it is" in said
        assert "make work ASSIGNMENT=tiny" in said
        assert f"work/{NAME}; if that file already exists, move or rename it first" in said
        assert "_build" not in said
        assert shown(course) == answered
        assert f"version = {version}" in pristine(course)
        assert "return 42" not in pristine(course)


def test_a_notebook_without_a_recorded_digest_is_taken_for_work(course):
    hand_out(course)
    (course.root / "exercises" / "SHA256SUMS").unlink()
    solve(course, "2")
    (said,) = hand_out(course)
    assert "left as it is" in said
    assert "version = 1" in shown(course)


def test_after_a_pull_of_new_solutions_exercises_and_digests_nothing_is_left_to_do(course):
    hand_out(course)
    solve(course, "2")
    hand_out(course)
    before = {path: path.read_bytes() for path in (course.root / "exercises").rglob("*") if path.is_file()}
    (course.root / "_build" / "released" / NAME).unlink()  # as in the clone that pulls
    assert hand_out(course) == []
    assert {path: path.read_bytes() for path in (course.root / "exercises").rglob("*") if path.is_file()} == before


def test_a_notebook_that_was_deleted_is_released_again(course):
    hand_out(course)
    (course.root / "exercises" / NAME).unlink()
    assert hand_out(course) == [f"exercises/{NAME}: released"]


def test_what_stays_the_same_keeps_its_time(course):
    hand_out(course)
    file = course.root / "_build" / "released" / NAME
    before = file.stat().st_mtime_ns
    hand_out(course)
    assert file.stat().st_mtime_ns == before


def test_nobody_can_write_into_the_pristine_copy_by_accident(course):
    file = course.root / "_build" / "released" / NAME
    for version in "12":
        solve(course, version)
        hand_out(course)
        assert file.stat().st_mode & 0o777 == 0o444
    file.chmod(0o644)  # as an older version of the course wrote it
    hand_out(course)
    assert file.stat().st_mode & 0o777 == 0o444


def test_one_assignment_released_alone_leaves_the_others_and_their_digests(course):
    (course.root / "solutions" / "other").mkdir()
    (course.root / "solutions" / "other" / "other.ipynb").write_bytes((course.root / "solutions" / NAME).read_bytes())
    hand_out(course)
    digests = (course.root / "exercises" / "SHA256SUMS").read_text()
    hand_out(course, "tiny")
    assert (course.root / "exercises" / "SHA256SUMS").read_text() == digests
    assert (course.root / "_build" / "released" / "other" / "other.ipynb").is_file()


def test_an_assignment_that_is_no_more_leaves_the_book(course):
    hand_out(course)
    (course.root / "solutions" / "tiny").rename(course.root / "solutions" / "renamed")
    hand_out(course)
    assert not (course.root / "_build" / "released" / NAME).exists()
    assert (course.root / "_build" / "released" / "renamed" / "tiny.ipynb").is_file()


class TestWithoutSolutions:
    @pytest.fixture
    def copy(self, course):
        hand_out(course)
        self.released = shown(course)
        (course.root / "solutions" / NAME).unlink()
        (course.root / "solutions" / "tiny").rmdir()
        (course.root / "_build" / "released" / NAME).unlink()
        return course

    def test_what_is_in_exercises_is_what_is_released(self, copy):
        assert hand_out(copy) == []
        assert pristine(copy) == self.released

    def test_an_answer_does_not_get_into_the_pristine_copy(self, copy):
        hand_out(copy)
        (copy.root / "exercises" / NAME).write_text("my work")
        (said,) = hand_out(copy)
        assert "left as it is" in said
        assert (pristine(copy), shown(copy)) == (self.released, "my work")

    def test_git_has_the_original_of_what_was_answered_before_the_first_build(self, copy):
        for command in (["init", "-q"], ["add", "exercises"], ["commit", "-q", "-m", "."]):
            who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", *who, *command], cwd=copy.root, check=True, timeout=600)
        (copy.root / "exercises" / NAME).write_text("my work")
        hand_out(copy)
        assert pristine(copy) == self.released

    def test_where_no_original_is_left_it_says_what_to_do(self, copy):
        (copy.root / "exercises" / NAME).write_text("my work")
        with pytest.raises(GradingError, match=r"no other copy is left.*Move your work elsewhere"):
            hand_out(copy)
        assert shown(copy) == "my work"


def test_work_is_copied_once_and_never_replaced(course):
    hand_out(course)
    folder = course.root / "work"
    (said,) = start_work(course, None, folder)
    assert said == f"{folder / NAME}: copied"
    assert (folder / NAME).read_text() == pristine(course)
    (folder / NAME).write_text("my work")
    solve(course, "2")
    hand_out(course)
    (said,) = start_work(course, "tiny", folder)
    assert said == f"{folder / NAME}: already there, left as it is. To get a fresh copy, move or rename it first"
    assert (folder / NAME).read_text() == "my work"
    (folder / NAME).rename(folder / "tiny" / "mine.ipynb")
    assert start_work(course, "tiny", folder) == [f"{folder / NAME}: copied"]
    assert (folder / NAME).read_text() == pristine(course)
    assert (folder / "tiny" / "mine.ipynb").read_text() == "my work"


HINT = "Reread [“A”] and [“B, or\nC”].\n\n[“A”]: {0}book/masks.html#a\n[“B, or C”]: {0}book/masks.html#b-or-c"


def add_hint(course: Course) -> None:
    notebook = tiny_notebook()
    notebook.cells.insert(0, new_markdown_cell(HINT.format("../../_build/html/"), id="hint"))
    nbformat.write(notebook, course.root / "solutions" / NAME)


def test_a_class_that_has_published_the_book_hands_out_links_to_it(course):
    add_hint(course)
    hand_out(course)
    before = shown(course)
    assert before == pristine(course)
    write_class(course, ClassSettings(book="https://example.org/b"))
    hand_out(course)
    start_work(course, None, course.root / "work")
    for text in (pristine(course), (course.root / "work" / NAME).read_text()):
        assert nbformat.reads(text, 4).cells[0].source == HINT.format("https://example.org/b/")
        assert text.replace("https://example.org/b/", "../../_build/html/") == before
    assert shown(course) == before, "the copy in exercises/ is the same for all classes"
    shutil.rmtree(course.root / "work")
    (course.root / "exercises" / NAME).write_text("spoilt")
    shutil.rmtree(course.root / "solutions")
    start_work(course, None, course.root / "work")
    assert (course.root / "work" / NAME).read_text() == pristine(course)


def test_graded_notebooks_link_to_the_book_of_the_class_or_only_name_its_sections(course):
    add_hint(course)
    register(course, "tiny", logging.getLogger(__name__))
    expected = {
        "": "Reread “A” and “B, or\nC”.",
        "file:///srv/book": "Reread “A” and “B, or\nC”.",  # feedback would show it as text
        "https://example.org/b": HINT.format("https://example.org/b/"),
        "https://example.org/our book": HINT.format("https://example.org/our%20book/"),
    }
    digests = set()
    for book, text in expected.items():
        write_class(course, ClassSettings(book=book))
        templates = notebook_templates(course, "tiny")
        assert [template.released.cells[0].source for template in templates] == [text]
        digests.add(asked(templates, sandboxed=True, exam=False))
    assert len(digests) == 1, "another address would put marks given by hand up for review"


# Linux lets a process write no more than this into a file, as a full disk would.
COPIES_ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from grading.course import Course
from grading.handout import start_work

resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
start_work(Course.at(Path(sys.argv[1])), None, Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_copy_that_breaks_off_leaves_nothing_and_is_made_by_the_next_call(course):
    hand_out(course)
    folder = course.root / "work"
    command = [sys.executable, "-c", COPIES_ON_A_FULL_DISK, str(course.root), str(folder)]
    failed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert failed.returncode != 0
    assert f"GradingError: cannot write into {folder}: File too large" in failed.stderr
    assert not [path for path in folder.rglob("*") if path.is_file()]
    assert start_work(course, None, folder) == [f"{folder / NAME}: copied"]
    assert (folder / NAME).read_text() == pristine(course)
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / NAME]
    assert (folder / NAME).stat().st_mode & 0o200  # a student writes into it


def test_a_file_in_a_folder_s_place_is_named_in_a_sentence(course):
    (course.root / "_build").touch()
    with pytest.raises(GradingError, match=r"cannot write into .*: Not a directory .*_build.*has to be a folder"):
        hand_out(course)
    (course.root / "_build").unlink()
    hand_out(course)
    (course.root / "work").write_text("my notes")
    with pytest.raises(GradingError, match=r"cannot write into .*work: Not a directory .*run the same command again"):
        start_work(course, None, course.root / "work")
    assert (course.root / "work").read_text() == "my notes"


def test_a_link_that_leads_nowhere_is_not_followed(course, tmp_path):
    hand_out(course)
    (tmp_path / "work" / "tiny").mkdir(parents=True)
    (tmp_path / "work" / NAME).symlink_to(tmp_path / "elsewhere")
    (said,) = start_work(course, "tiny", tmp_path / "work")
    assert "left as it is" in said
    assert not (tmp_path / "elsewhere").exists()


def test_an_assignment_that_is_not_released_is_answered_by_those_that_are(course):
    with pytest.raises(GradingError, match="python -m grading release"):
        start_work(course, None, course.root / "work")
    hand_out(course)
    with pytest.raises(GradingError, match="no-such has not been released; these have: tiny"):
        start_work(course, "no-such", course.root / "work")
