"""Answers to options in an order of a student's own are graded by who handed them in, whatever the notebook states."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from tiny import TinyCourse, nbgrader_cell

from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.options import Options
from grading.answer_keys import answer_key
from grading.class_report.common_mistakes import common_mistakes
from grading.collect.attempts import Attempts
from grading.collect.best import choose_best
from grading.course import Course, log_file
from grading.first_answers import first_answers_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.create import open_gradebook
from grading.handout import hand_out, start_work
from grading.regrade.requests import ask
from grading.regrade.rerun import rerun
from grading.report import rows
from grading.run import How, run
from grading.verify import verify

pytestmark = pytest.mark.slow

QUESTION = QUESTIONS["shift-or-stretch"]
RIGHT = answer_key(QUESTION.name).right
WRONG = next(letter for letter in "ABCD" if letter != RIGHT)
ADAS, BELAS = (Options(QUESTION, student).label(RIGHT) for student in ("ada", "bela"))
IMPORTS = "from attnlib.checks import check_choice, show_options"
STATES = 'from attnlib.checks import set_student\n\nset_student("{}")'
ANSWERS = {  # the id that the notebook states, and the answer
    "ada": ("ada", ADAS),
    "bela": ("ada", ADAS),  # a copy of ada's notebook
    "cleo": ("", RIGHT),
    "dora": ("", WRONG),
}


def notebook(student, answer):
    given = [
        nbgrader_cell("imports", IMPORTS, locked=True),
        nbgrader_cell("options", 'show_options("shift-or-stretch")', locked=True),
        nbgrader_cell("answer", f'answer = "{answer}"', solution=True),
        nbgrader_cell("check", 'check_choice("shift-or-stretch", answer, points=2)', grade=True, locked=True, points=2),
    ]
    own = [new_code_cell(STATES.format(student), id="student")] if student else []
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    return new_notebook(cells=[*given[:1], *own, *given[1:]], metadata=about)


@pytest.fixture(scope="module")
def course(tiny, boxes):
    """A class of four, graded once."""
    nbformat.write(notebook("", RIGHT), tiny.root / "solutions" / "tiny" / "tiny.ipynb")
    for student, (stated, answer) in ANSWERS.items():
        tiny.submit_notebook(student, notebook(stated, answer))
    run(tiny, "tiny", how=How(pages=False), pool=boxes)
    return tiny


def cells_of(course, student):
    file = course.autograded(student, "tiny") / "tiny.ipynb"
    return {cell.id: cell for cell in nbformat.read(file, as_version=4).cells}


def test_each_is_graded_by_the_id_under_which_the_work_was_handed_in(course):
    assert BELAS != ADAS, "otherwise the copy would be right by chance"
    scores = {row.outcome.student: row.score for row in rows(course, "tiny")}
    assert scores == {"ada": 2, "bela": 0, "cleo": 2, "dora": 0}
    flags = {row.outcome.student: row.outcome.flags for row in rows(course, "tiny") if row.outcome.flags}
    assert flags == {"bela": ("its options were shown in the order of another student: 'ada'",)}
    said = {student: cells_of(course, student)["check"].outputs[0].data["text/plain"] for student in ANSWERS}
    assert [student for student in ANSWERS if "handed it in" in said[student]] == ["bela"]


def test_the_feedback_shows_the_options_as_each_student_saw_them(course):
    for student, as_seen in (("ada", "ada"), ("bela", "bela"), ("cleo", "")):
        (shown,) = cells_of(course, student)["options"].outputs
        assert shown.data["text/markdown"] == Options(QUESTION, as_seen).markdown()


def test_reports_first_answers_and_verification_use_the_written_letter(course):
    wrong = {"bela": Options(QUESTION, "bela").letters[ADAS], "dora": WRONG}
    mistakes = common_mistakes(rows(course, "tiny"))
    assert {student: one.mistake for one in mistakes for student in one.students} == wrong
    kept = {
        student: json.loads(first_answers_file(course, "tiny", student).read_bytes())["check"] for student in ANSWERS
    }
    assert kept == {"ada": RIGHT, "cleo": RIGHT} | wrong
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        assert verify(course, "tiny", gradebook).wrong == ()


def test_a_rerun_counts_the_first_answer_as_the_grade_does(course, boxes):
    """Ada was right at first, and dora was wrong; both have changed their answers since."""
    course.submit_notebook("ada", notebook("ada", WRONG))
    course.submit_notebook("dora", notebook("", RIGHT))
    run(course, "tiny", ["ada", "dora"], How(pages=False), pool=boxes)
    for student in ("ada", "dora"):
        ask(course, "tiny", student, "check", "I changed my answer")
    said = rerun(course, "tiny", How(pages=False), boxes)
    assert "check: given 2, now 2 of 2" in said
    assert "check: given 0, now 0 of 2" in said


def test_the_earliest_choice_counts_in_all_attempts_and_in_the_grade(course, boxes):
    """Bela was graded before, and was wrong. Emil and finn were not graded yet."""
    emils, finns = (Options(QUESTION, student).label(RIGHT) for student in ("emil", "finn"))
    attempts = Attempts(course, "tiny")
    for student, first, second in (("bela", BELAS, ADAS), ("emil", emils, WRONG), ("finn", WRONG, finns)):
        for answer, day in ((first, 10), (second, 11)):
            course.submit_notebook(student, notebook(student, answer))
            folder = course.submitted(student, "tiny")
            (folder / "timestamp.txt").write_text(f"2030-01-{day} 12:00:00 UTC")
            attempts.keep(attempts.submitted(student), {"tiny.ipynb": (folder / "tiny.ipynb").read_bytes()})
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2030-01-20 18:00 UTC")
    said = choose_best(course, "tiny", How(pages=False), boxes)
    for student, points in (("bela", "0, 0"), ("emil", "2, 2"), ("finn", "0, 0")):
        assert f"{student}: attempt 1 of 2 (points after penalties: {points})" in said
    attempts.submit(attempts.of("finn")[1])
    run(course, "tiny", ["finn"], How(pages=False), pool=boxes)
    assert {row.outcome.student: row.score for row in rows(course, "tiny")}["finn"] == 0


def test_a_copy_for_a_student_says_whose_it_is(tmp_path, tiny: TinyCourse):
    nbformat.write(notebook("", RIGHT), tiny.root / "solutions" / "tiny" / "tiny.ipynb")
    course = Course(tiny.root, tmp_path / "class")
    hand_out(course)
    start_work(course, "tiny", tmp_path / "work", 'zoë "z"')
    cells = nbformat.read(tmp_path / "work" / "tiny" / "tiny.ipynb", as_version=4).cells
    assert [cell.id for cell in cells] == ["imports", "student", "options", "answer", "check"]
    assert cells[1].source == 'from attnlib.checks import set_student\n\nset_student("zoë \\"z\\"")'
    start_work(course, "tiny", tmp_path / "other")
    assert (tmp_path / "other" / "tiny" / "tiny.ipynb").read_bytes() == (
        tiny.root / "exercises" / "tiny" / "tiny.ipynb"
    ).read_bytes()
