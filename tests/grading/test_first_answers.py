"""The first graded answer to a multiple-choice question counts, and a later one is told so."""

import pytest

from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.questions import Choice
from grading.answer_keys import answer_key
from grading.course import Course, GradingError
from grading.first_answers import keep_first_answers
from grading.graded_cell import GradedCell
from grading.judge import Judge
from grading.task import Answered

QUESTION = QUESTIONS["shift-or-stretch"]
RIGHT = answer_key(QUESTION.name).right
WRONG, OTHER = [letter for letter in QUESTION.options if letter != RIGHT][:2]
CELL = GradedCell("choice-check", "answer", 2.0, question=QUESTION)


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path, tmp_path / "class")


def grade(course, value, student="ada"):
    """Return what the student's answer earns, and what the feedback says."""
    answered = Answered({"value": value, "error": None})
    keep_first_answers(course, "small", student, [(CELL, answered)])
    shown, earned = Judge(1).outputs(CELL, answered, "")
    points = float(earned.data["text/plain"]) if earned.output_type == "execute_result" else 0.0
    return points, shown.data["text/plain"]


def test_a_later_answer_earns_what_the_first_one_did(course):
    assert grade(course, WRONG)[0] == 0
    points, said = grade(course, RIGHT)
    assert points == 0
    assert f"{WRONG}, not right" in said
    assert f"Your first answer that was graded counts, and it was {WRONG}." in said
    assert grade(course, RIGHT, "bela")[0] == 2
    assert grade(course, OTHER, "bela")[0] == 2


def test_the_same_answer_again_is_told_nothing_about_it(course):
    assert grade(course, RIGHT) == grade(course, f" {RIGHT.lower()} ")
    assert "first answer" not in grade(course, RIGHT)[1]


@pytest.mark.parametrize("nothing", [None, "E", "AB", 3])
def test_what_is_no_option_is_no_first_answer(course, nothing):
    assert grade(course, nothing)[0] == 0
    assert grade(course, RIGHT)[0] == 2
    assert grade(course, nothing)[0] == 2


@pytest.mark.parametrize("value", [f"{RIGHT}\t", f"\r\n{RIGHT}\r\n", " " * 599 + f"{RIGHT}x", " " * 601 + RIGHT])
def test_an_answer_is_read_as_the_check_in_the_notebook_reads_it(course, value):
    accepted = Choice(QUESTION, value).is_open
    assert grade(course, value)[0] == (2 if accepted else 0)
    assert grade(course, WRONG)[0] == (2 if accepted else 0), "what earned points counts as the first answer"


def test_a_broken_file_is_named(course):
    grade(course, RIGHT)
    (file,) = course.folder.rglob("first-answers/ada.json")
    file.write_text("{")
    with pytest.raises(GradingError, match=r"ada\.json should hold the student's first answers"):
        grade(course, RIGHT)
