"""Answers to options in an order of a student's own are graded by who handed them in, whatever the notebook states."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
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
from grading.roster.importing import import_roster
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
    "1815": (" Ada.L@uni.edu", Options(QUESTION, "ada.l@uni.edu").label(RIGHT)),  # her login on Canvas
    "1819": ("ada.l@uni.edu", Options(QUESTION, "ada.l@uni.edu").label(RIGHT)),  # a copy of her notebook
    "hana": ("", next(letter for letter in "PQRS" if Options(QUESTION, "hana").letters[letter] != RIGHT)),
}
SAVED = {student: str(Options(QUESTION, "ada")) for student in ("ada", "bela", "cleo", "hana")}  # the last two by a hub
SAVED["1815"] = str(Options(QUESTION, "ada.l@uni.edu"))
CLASS_LIST = """\
Student,ID,SIS User ID,SIS Login ID,Section
Lovelace,1815,S1,ada.l@uni.edu,Monday
Copy,1819,S2,copy,Monday
Iris,1820,S3,iris,Monday
"""


def notebook(student, answer, saved=""):
    given = [
        nbgrader_cell("imports", IMPORTS, locked=True),
        nbgrader_cell("options", 'show_options("shift-or-stretch")', locked=True),
        nbgrader_cell("answer", f'answer = "{answer}"', solution=True),
        nbgrader_cell("check", 'check_choice("shift-or-stretch", answer, points=2)', grade=True, locked=True, points=2),
    ]
    if saved:
        given[1].outputs = [new_output("display_data", data={"text/plain": saved, "text/markdown": "- **P.** x"})]
    own = [new_code_cell(STATES.format(student), id="student")] if student else []
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    return new_notebook(cells=[*given[:1], *own, *given[1:]], metadata=about)


@pytest.fixture(scope="module")
def course(tiny, boxes):
    """A class of seven, graded once."""
    nbformat.write(notebook("", RIGHT), tiny.root / "solutions" / "tiny" / "tiny.ipynb")
    for student, (stated, answer) in ANSWERS.items():
        tiny.submit_notebook(student, notebook(stated, answer, SAVED.get(student, "")))
    (tiny.root / "class-list.csv").write_text(CLASS_LIST)
    import_roster(tiny, tiny.root / "class-list.csv", {})
    run(tiny, "tiny", how=How(pages=False), pool=boxes)
    return tiny


def cells_of(course, student):
    file = course.autograded(student, "tiny") / "tiny.ipynb"
    return {cell.id: cell for cell in nbformat.read(file, as_version=4).cells}


def test_each_is_graded_by_the_id_under_which_the_work_was_handed_in(course):
    assert BELAS != ADAS, "otherwise the copy would be right by chance"
    scores = {row.outcome.student: row.score for row in rows(course, "tiny")}
    assert scores == {"ada": 2, "bela": 0, "cleo": 2, "dora": 0, "1815": 2, "1819": 0, "1820": 0, "hana": 0}
    flags = {row.outcome.student: row.outcome.flags for row in rows(course, "tiny") if row.outcome.flags}
    another = "its options were shown in the order of another student: {!r}"
    saved = "the options saved in it are not in the order of {!r}, in which its answers were read"
    assert flags == {
        "bela": (another.format("ada"),),
        "1819": (another.format("ada.l@uni.edu"),),
        "cleo": (saved.format("cleo"),),
        "hana": (saved.format("hana"),),
    }
    said = {student: cells_of(course, student)["check"].outputs[0].data["text/plain"] for student in ANSWERS}
    assert [student for student in ANSWERS if "handed it in" in said[student]] == ["bela", "1819"]
    assert [student for student in ANSWERS if "saved with the options in another order" in said[student]] == ["hana"]


def test_the_feedback_shows_the_options_as_each_student_saw_them(course):
    for student, as_seen in (("ada", "ada"), ("bela", "bela"), ("cleo", ""), ("1815", "ada.l@uni.edu")):
        (shown,) = cells_of(course, student)["options"].outputs
        assert shown.data["text/markdown"] == Options(QUESTION, as_seen).markdown()


def test_reports_first_answers_and_verification_use_the_written_letter(course):
    wrong = {"bela": Options(QUESTION, "bela").letters[ADAS], "dora": WRONG}
    wrong |= {student: Options(QUESTION, student).letters[ANSWERS[student][1]] for student in ("1819", "hana")}
    mistakes = common_mistakes(rows(course, "tiny"))
    assert {student: one.mistake for one in mistakes for student in one.students} == wrong
    kept = {
        student: json.loads(first_answers_file(course, "tiny", student).read_bytes())["check"] for student in ANSWERS
    }
    assert kept == {"ada": RIGHT, "cleo": RIGHT, "1815": RIGHT} | wrong
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
    """Bela was graded before, and was wrong. The others were not graded yet; iris hands in as 1820."""
    emils, finns = (Options(QUESTION, student).label(RIGHT) for student in ("emil", "finn"))
    attempts = Attempts(course, "tiny")
    irises = Options(QUESTION, "iris").label(RIGHT)
    told = (("bela", "bela", BELAS, ADAS), ("finn", "finn", WRONG, finns), ("emil", "emil", emils, WRONG))
    for student, stated, first, second in (*told, ("1820", "iris", irises, WRONG)):
        for answer, day in ((first, 10), (second, 11)):
            course.submit_notebook(student, notebook(stated, answer))
            folder = course.submitted(student, "tiny")
            (folder / "timestamp.txt").write_text(f"2030-01-{day} 12:00:00 UTC")
            attempts.keep(attempts.submitted(student), {"tiny.ipynb": (folder / "tiny.ipynb").read_bytes()})
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2030-01-20 18:00 UTC")
    said = choose_best(course, "tiny", How(pages=False), boxes)
    for student, points in (("bela", "0, 0"), ("emil", "2, 2"), ("finn", "0, 0"), ("1820", "2, 2")):
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
