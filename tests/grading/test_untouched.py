"""A task that was left as it was handed out is not attempted, and not a wrong answer."""

import copy
import dataclasses

import nbgrader.utils
import pytest
from nbformat.v4 import new_code_cell
from tiny import REPOSITORY

from grading import _untyped
from grading._untyped import is_grade, is_solution
from grading.class_report.common_mistakes import common_mistakes
from grading.class_report.item_analysis import analyse_items
from grading.course import Course
from grading.notebook_template import NotebookTemplate
from grading.outcome import Finding, Outcome
from grading.report import Row

COURSE = Course.at(REPOSITORY)


def template_of(assignment):
    (name,) = COURSE.notebooks(assignment)
    return NotebookTemplate.read(REPOSITORY / "exercises" / assignment / name)


def tasks(template):
    return [cell.metadata.nbgrader["grade_id"] for cell in template.released.cells if is_grade(cell)]


@pytest.mark.parametrize("assignment", COURSE.assignments())
def test_nothing_is_attempted_in_a_notebook_as_it_is_handed_out_and_everything_in_another(assignment):
    template = template_of(assignment)
    assert list(template.untouched(template.released)) == tasks(template)
    answered = copy.deepcopy(template.released)
    for cell in filter(is_solution, answered.cells):
        cell.source += "\n# something"
    assert template.untouched(answered) == ()


def test_an_answer_makes_its_own_task_attempted_and_no_other():
    template = template_of("02-self-attention")
    answered = copy.deepcopy(template.released)
    next(cell for cell in answered.cells if cell.id == "mended").source = "gaussian_mended = None"
    next(cell for cell in answered.cells if cell.id == "predict").source = "predicted = 'A'"  # no task asks for it
    next(cell for cell in answered.cells if cell.id == "dot").source = ""  # deleted
    assert set(tasks(template)) - set(template.untouched(answered)) == {"mended-check"}


def row(student, a, b, untouched=(), findings=()):
    outcome = Outcome(student, "graded", findings=findings, untouched=untouched)
    return Row(outcome, {"a": (a, 1.0), "b": (b, 1.0)}, 0, ())


def test_what_was_not_attempted_does_not_make_a_question_hard():
    a, b = analyse_items(
        [row("ada", 1, 0.5), row("bela", 0, 0), row("cem", 0, 1, ("a",)), row("hana", 0, 0, ("a", "b"))]
    )
    assert (a.n, a.untried, a.difficulty) == (2, 2, 0.5)
    assert (b.n, b.untried, b.difficulty) == (3, 1, 0.5)


def test_points_for_an_answer_in_another_cell_count():
    a, _ = analyse_items([row("ada", 1, 0, ("a",))])
    assert (a.n, a.untried, a.difficulty) == (1, 0, 1.0)


@pytest.mark.parametrize("title", ["not written yet", "not answered yet"])
def test_what_was_not_attempted_is_no_common_mistake(title):
    undone, wrong = Finding("softmax", None, title), Finding("softmax", None, "wrong numbers")
    assert [one.title for one in common_mistakes([row("ada", 0, 0, findings=(undone, wrong))])] == ["wrong numbers"]


def test_a_run_writes_down_what_was_not_attempted(tiny, boxes):
    from grading.report import rows
    from grading.run import How, run

    tiny.submit("ada", answer_one=None)
    run(tiny, "tiny", how=How(pages=False), pool=boxes)
    (found,) = rows(tiny, "tiny")
    assert found.outcome.untouched == ("check-one",)
    assert Outcome.from_json(found.outcome.to_json()) == found.outcome
    assert dataclasses.replace(found.outcome, untouched=()) != found.outcome


@pytest.mark.parametrize("kind", ["grade", "solution", "task"])
@pytest.mark.parametrize("value", [True, False, 1, None])
def test_the_kind_of_a_cell_is_what_it_is_for_nbgrader(kind, value):
    for metadata in ({}, {"nbgrader": {}}, {"nbgrader": {kind: value}}):
        cell = new_code_cell(metadata=metadata)
        ours, theirs = (getattr(module, f"is_{kind}")(cell) for module in (_untyped, nbgrader.utils))
        assert (ours, type(ours)) == (bool(theirs), bool)
