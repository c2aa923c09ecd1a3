"""What instructors and students call of nbgrader before and after `python -m grading run`."""

import csv
import os
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from jupyter_core.application import NoStart
from nbgrader.apps import NbGraderApp
from nbgrader.utils import get_username
from tiny import OVERFLOWS, REPOSITORY, TinyCourse, tiny_notebook

from grading._nbgrader import Gradebook
from grading._untyped import read_notebook
from grading.exchange import SECRET, TIMESTAMP
from grading.handout import RELEASED_FOLDER, hand_out
from grading.report import rows
from grading.run import refresh, run

pytestmark = pytest.mark.slow

STUDENT = get_username()
SOLVED = "somebody's work, which is nothing for the class"


class Classroom(TinyCourse):
    """A class that hands in by nbgrader's exchange, in which the user of this process is instructor and student."""

    def nbgrader(self, *arguments: str, at=None) -> None:
        """Call nbgrader as its command does, in the folder of the course or in a student's."""
        before = Path.cwd()
        os.chdir(at or self.root)
        NbGraderApp.clear_instance()
        try:
            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nbgrader's own, as its command shows none
                patch.setenv("ATTENTION_CLASS", str(self.folder))
                app = NbGraderApp.instance()
                app.initialize(list(arguments))
                with suppress(NoStart):  # raised when the command is done
                    app.start()
        finally:
            os.chdir(before)
            NbGraderApp.clear_instance()

    @property
    def home(self):
        return self.root.parent / "home"

    def as_student(self, *arguments: str) -> None:
        self.nbgrader(*arguments, at=self.home)


@pytest.fixture(scope="module")
def classroom(tmp_path_factory, boxes):
    place = tmp_path_factory.mktemp("place")
    root, exchange = place / "repository", place / "exchange"
    for folder in (root / "solutions" / "tiny", exchange, place / "home"):
        folder.mkdir(parents=True)
    exchange.chmod(0o777)
    own = f'c.Exchange.root, c.Exchange.cache = "{exchange}", "{place / "cache"}"\n'
    (root / "nbgrader_config.py").write_text((REPOSITORY / "nbgrader_config.py").read_text() + own)
    (place / "home" / "nbgrader_config.py").write_text(
        f'c = get_config()\nc.CourseDirectory.course_id = "attention"\n{own}'
    )
    nbformat.write(tiny_notebook(), root / "solutions" / "tiny" / "tiny.ipynb")
    course = Classroom.at(root, place / "class")
    hand_out(course)
    (root / "exercises" / "tiny" / "tiny.ipynb").write_text(SOLVED)
    course.nbgrader("release_assignment", "tiny")
    course.as_student("fetch_assignment", "tiny")
    shutil.copytree(course.home / "tiny", course.home / "fetched")
    answered = read_notebook(course.home / "tiny" / "tiny.ipynb")
    (cell,) = (cell for cell in answered.cells if cell.id == "answer-one")
    cell.source = OVERFLOWS
    nbformat.write(answered, course.home / "tiny" / "tiny.ipynb")
    course.as_student("submit", "tiny")
    course.nbgrader("collect", "tiny")
    course.submit("by-mail")
    run(course, "tiny", pool=boxes)
    return course


def score(course, student):
    return {row.outcome.student: row.score for row in rows(course, "tiny")}.get(student)


def test_the_class_gets_what_was_released_and_nobodys_work(classroom):
    fetched = (classroom.home / "fetched" / "tiny.ipynb").read_bytes()
    assert fetched == (classroom.root / RELEASED_FOLDER / "tiny" / "tiny.ipynb").read_bytes()
    assert b"YOUR CODE HERE" in fetched
    assert (classroom.home / "fetched" / "tiny.ipynb").stat().st_mode & 0o200  # the student writes into it
    assert (classroom.root / "exercises" / "tiny" / "tiny.ipynb").read_text() == SOLVED


def test_nbgraders_own_command_generates_the_same_and_leaves_what_somebody_did(classroom):
    file = classroom.root / RELEASED_FOLDER / "tiny" / "tiny.ipynb"
    before = file.read_bytes()
    classroom.nbgrader("generate_assignment", "tiny", "--force")
    assert file.read_bytes() == before
    assert file.stat().st_mode & 0o777 == 0o444
    classroom.nbgrader("release_assignment", "tiny", "--force")
    assert (classroom.root / "exercises" / "tiny" / "tiny.ipynb").read_text() == SOLVED


def test_what_was_collected_is_graded(classroom):
    assert score(classroom, STUDENT) == 1.5
    assert score(classroom, "by-mail") == 6


def test_the_secret_and_the_time_stand_beside_the_feedback(classroom):
    came = classroom.submitted(STUDENT, "tiny")
    for folder in (classroom.feedback(STUDENT, "tiny"), classroom.autograded(STUDENT, "tiny")):
        for name in (TIMESTAMP, SECRET):
            assert (folder / name).read_text() == (came / name).read_text()
        assert (folder / SECRET).stat().st_mode & 0o777 == 0o600


def test_the_student_fetches_the_page_that_was_released(classroom):
    classroom.nbgrader("release_feedback", "tiny")
    classroom.as_student("fetch_feedback", "tiny")
    (page,) = (classroom.home / "tiny" / "feedback").glob("*/tiny.html")
    assert page.read_text() == (classroom.feedback(STUDENT, "tiny") / "tiny.html").read_text()
    assert "1.5 of 2 points" in page.read_text()


def test_nbgraders_own_feedback_can_be_released_too(classroom):
    classroom.nbgrader("generate_feedback", "tiny", "--force")
    assert "1.5 of 2 points" in (classroom.feedback(STUDENT, "tiny") / "tiny.html").read_text()
    classroom.nbgrader("release_feedback", "tiny")


def test_a_submission_without_a_secret_keeps_the_one_that_was_drawn(classroom):
    secret = classroom.feedback("by-mail", "tiny") / SECRET
    before = secret.read_text()
    refresh(classroom, "tiny")
    assert len(before) == 128
    assert secret.read_text() == before


def test_a_time_that_is_taken_back_is_taken_back_everywhere(classroom):
    file = classroom.submitted("by-mail", "tiny") / TIMESTAMP
    made = [folder("by-mail", "tiny") / TIMESTAMP for folder in (classroom.feedback, classroom.autograded)]
    file.write_text("2030-01-31 12:00:00 UTC")
    refresh(classroom, "tiny")
    assert {copy.read_text() for copy in made} == {"2030-01-31 12:00:00 UTC"}
    file.unlink()
    refresh(classroom, "tiny")
    assert {copy.read_text() for copy in made} == {""}, "nbgrader asks for a file, and takes an empty one"


def test_a_secret_that_leads_elsewhere_is_not_followed(classroom, tmp_path):
    (tmp_path / "private").write_text("the instructor's own")
    link = classroom.submitted("by-mail", "tiny") / SECRET
    link.symlink_to(tmp_path / "private")
    refresh(classroom, "tiny")
    link.unlink()
    assert "instructor" not in (classroom.feedback("by-mail", "tiny") / SECRET).read_text()


def test_list_names_what_was_released_and_what_came(classroom, capsys):
    classroom.nbgrader("list", "tiny")
    classroom.nbgrader("list", "--inbound", "tiny")
    said = capsys.readouterr().err
    assert "attention tiny" in said
    assert f"attention {STUDENT} tiny" in said


def test_export_writes_the_scores(classroom, tmp_path):
    classroom.nbgrader("export", "--to", str(tmp_path / "grades.csv"))
    with (tmp_path / "grades.csv").open() as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert scores == {STUDENT: 1.5, "by-mail": 6}


def test_students_that_are_imported_have_names_and_a_row_before_they_submit(classroom, tmp_path):
    (tmp_path / "students.csv").write_text(f"id,first_name,last_name\n{STUDENT},Ada,King\nnew,Ben,Nye\n")
    classroom.nbgrader("db", "student", "import", str(tmp_path / "students.csv"))
    with Gradebook(classroom.config().CourseDirectory.db_url) as gradebook:
        assert gradebook.find_student("new").last_name == "Nye"
        assert gradebook.find_student(STUDENT).first_name == "Ada"
    absent = {row.outcome.student: (row.absent, row.score) for row in rows(classroom, "tiny")}
    assert absent["new"] == (True, 0)
    assert absent[STUDENT] == (False, 1.5)


def test_a_student_who_is_removed_is_no_row_of_the_report(classroom, tmp_path, capsys):
    shutil.copytree(classroom.folder, tmp_path / "class")
    course = Classroom.at(classroom.root, tmp_path / "class")
    course.nbgrader("db", "student", "remove", "by-mail", "--force")
    refresh(course, "tiny")
    assert {row.outcome.student for row in rows(course, "tiny")} - {"new"} == {STUDENT}
    assert "left out, because they are no longer in the gradebook: by-mail" in capsys.readouterr().err
