"""Cells that were copied, split, renamed or deleted cost at most the question that they belong to."""

from copy import deepcopy

import pytest
from nbformat.v4 import new_code_cell
from tiny import ONE_MATRIX, QUESTIONS

from grading.report import rows
from grading.run import run

pytestmark = pytest.mark.slow


def names(notebook):
    return [cell.id for cell in notebook.cells]


def duplicate(notebook, name, source=None):
    at = names(notebook).index(name)
    copied = deepcopy(notebook.cells[at])
    copied.id, copied.source = f"{name}-copy", source or copied.source
    notebook.cells.insert(at + 1, copied)


def delete(notebook, *gone):
    notebook.cells = [cell for cell in notebook.cells if cell.id not in gone]


def split(notebook):
    duplicate(notebook, "answer-two", "def two(query, key): return query @ turned(key)")
    turned = "turned = lambda key: np.swapaxes(key, -1, -2)"
    notebook.cells[names(notebook).index("answer-two")].source = turned


def retype(notebook):
    delete(notebook, "answer-two")
    notebook.cells.insert(names(notebook).index("check-two"), new_code_cell(QUESTIONS["two"][1]))


def rename(notebook):
    notebook.cells[names(notebook).index("answer-two")].metadata.nbgrader.grade_id = "mine"


def old(notebook):
    delete(notebook, "answer-two")
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]


CLASS = {
    "copied_answer": (lambda notebook: duplicate(notebook, "answer-two"), [2, 2, 2]),
    "copied_wrong": (lambda notebook: duplicate(notebook, "answer-two", ONE_MATRIX), [2, 4 / 3, 2]),
    "copied_check": (lambda notebook: duplicate(notebook, "check-two"), [2, 2, 2]),
    "split": (split, [2, 2, 2]),
    "renamed": (rename, [2, 2, 2]),
    "retyped": (retype, [2, 2, 2]),
    "deleted_answer": (lambda notebook: delete(notebook, "answer-two"), [2, 0, 2]),
    "deleted_both": (lambda notebook: delete(notebook, "answer-two", "check-two"), [2, 0, 2]),
    "deleted_first": (lambda notebook: delete(notebook, "answer-one", "check-one"), [0, 2, 2]),
    "deleted_four": (
        lambda notebook: delete(notebook, "answer-two", "check-two", "answer-one", "check-one"),
        [0, 0, 2],
    ),
    "old_format": (old, [2, 0, 2]),
}


@pytest.fixture(scope="module")
def graded(tiny, boxes):
    for student, (edit, _) in CLASS.items():
        tiny.submit_edited(student, edit)
    run(tiny, "tiny", pool=boxes)
    return {row.outcome.student: row for row in rows(tiny, "tiny")}


@pytest.mark.parametrize("student", CLASS)
def test_only_the_question_itself_is_lost(graded, student):
    row = graded[student]
    assert [row.scores[f"check-{name}"][0] for name in ("one", "two", "three")] == pytest.approx(CLASS[student][1])
    assert row.outcome.verdict == "graded"
