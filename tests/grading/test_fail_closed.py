"""Silence earns nothing, noise costs nothing, and nobody's notebook stops the class. One run, many students."""

import nbformat
import pytest
from tiny import ONE_MATRIX, OVERFLOWS

from grading._untyped import read_notebook
from grading.course import Course
from grading.report import Row, rows
from grading.run import How, run
from grading.sandbox.limits import Limits

pytestmark = pytest.mark.slow

LOOP = "def two(query, key):\n    while True:\n        pass"
STUBBORN = """import os

def two(query, key):
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass
"""
NOISE = """import sys, warnings
warnings.warn("watch out")
print("to stderr", file=sys.stderr)
print("to stdout")
one_right = lambda x, axis: np.exp(x - x.max(axis, keepdims=True))

def one(x, axis=-1):
    warnings.warn("again")
    print("and again")
    e = one_right(x, axis)
    return e / e.sum(axis, keepdims=True)
"""

CLASS: dict[str, dict[str, object]] = {
    "right": {},
    "partly_right": {"answer_one": OVERFLOWS},
    "silent": {"answer_one": "def one(x, axis=-1): pass"},
    "absent": {"answer_one": ""},
    "printed": {"answer_one": "def one(x, axis=-1): print(2.0)"},
    "nan": {"answer_one": "def one(x, axis=-1): return x * float('nan')"},
    "text": {"answer_one": "def one(x, axis=-1): return '2.0'"},
    "objects": {"answer_one": "def one(x, axis=-1): return x.astype(object)"},
    "number": {"answer_one": "one = 2.0"},
    "failed": {"answer_one": "def one(x, axis=-1): raise ValueError('<script>alert(1)</script>')"},
    "noisy": {"answer_one": NOISE},
    "floods": {"answer_one": "for _ in range(3000): print('x' * 1000)\n" + NOISE},
    "edited": {"answer_two": ONE_MATRIX, "check_two": "2.0"},
    "deleted": {"check_one": None},
    "loops": {"answer_two": LOOP},
    "stubborn": {"answer_two": STUBBORN},
    "loops_outside": {"answer_two": "while True: pass"},
    "exits": {"answer_two": "import os\ndef two(query, key): os._exit(0)"},
    "crashes": {"answer_two": "import ctypes\ndef two(query, key): ctypes.string_at(0)"},
    "grows": {"answer_two": "def two(query, key): return np.ones(10**11)"},
}
SILENT = ("silent", "absent", "printed", "nan", "text", "objects", "number", "failed")


@pytest.fixture(scope="module")
def graded(tiny, boxes) -> dict[str, Row]:
    for student, edits in CLASS.items():
        tiny.submit(student, **edits)
    tiny.submit_text("truncated", '{"cells": [')
    tiny.submit_text("empty", "")
    tiny.submitted("nothing", "another").mkdir(parents=True)
    run(tiny, "tiny", how=How(limits=Limits(cell=0.5, notebook=10, clock=120)), pool=boxes)
    return {row.outcome.student: row for row in rows(tiny, "tiny")}


def scores(row: Row) -> list[float]:
    return [pytest.approx(row.scores[f"check-{name}"][0]) for name in ("one", "two", "three")]


def executed(course: Course, student: str) -> nbformat.NotebookNode:
    return read_notebook(course.autograded(student, "tiny") / "tiny.ipynb")


def feedback(row: Row) -> str:
    return row.feedback[0].read_text()


def test_right_answers_earn_all_points(graded):
    assert scores(graded["right"]) == [2, 2, 2]
    assert graded["right"].points == 6
    assert graded["right"].outcome.verdict == "graded"


def test_a_partly_right_answer_earns_its_part(graded):
    assert scores(graded["partly_right"]) == [1.5, 2, 2]
    assert "1.5 of 2 points" in feedback(graded["partly_right"])


@pytest.mark.parametrize("student", SILENT)
def test_anything_but_the_right_numbers_earns_nothing_and_costs_nobody_else(graded, student):
    assert scores(graded[student]) == [0, 2, 2]
    assert len(graded[student].outcome.findings) == 1


@pytest.mark.parametrize(
    ("student", "reason"),
    [
        ("absent", "name &#39;one&#39; is not defined"),
        ("silent", "returned None"),
        ("number", "of type float, but a function is needed"),
        ("objects", "dtype object"),
        ("failed", "&lt;script&gt;alert"),
    ],
)
def test_the_feedback_says_what_came(graded, student, reason):
    assert reason in feedback(graded[student])
    assert "<script" not in feedback(graded[student])


def test_a_warning_costs_nothing_and_stays_visible(graded):
    assert scores(graded["noisy"]) == [2, 2, 2]
    assert "watch out" in feedback(graded["noisy"])
    assert "to stderr" in feedback(graded["noisy"])


def test_endless_output_is_cut_but_what_comes_after_counts(graded):
    assert scores(graded["floods"]) == [2, 2, 2]
    assert graded["floods"].outcome.verdict == "output-limit"
    assert "Output cut here" in feedback(graded["floods"])
    assert len(feedback(graded["floods"])) < 1_500_000


def test_a_changed_test_cell_is_changed_back(graded):
    assert scores(graded["edited"]) == [2, 4 / 3, 2]
    assert any("check-two" in flag for flag in graded["edited"].outcome.flags)


def test_a_deleted_test_cell_comes_back_and_is_graded(graded):
    assert scores(graded["deleted"]) == [2, 2, 2]


@pytest.mark.parametrize(
    ("student", "verdict", "reason"),
    [
        ("loops", "timeout", "'check-two' did not finish within 0.5 seconds"),
        ("stubborn", "timeout", "'check-two' did not finish within 0.5 seconds"),
        ("loops_outside", "timeout", "'answer-two' did not finish within 0.5 seconds"),
        ("exits", "crashed", "'check-two' ended the Python process"),
        ("crashes", "crashed", "'check-two' ended the Python process that it ran in (SIGSEGV)"),
        ("grows", "out-of-memory", "'check-two'"),
    ],
)
def test_who_does_not_come_to_an_end_loses_that_question_alone(graded, student, verdict, reason):
    row = graded[student]
    assert scores(row) == [2, 0, 2]
    assert row.outcome.verdict == verdict
    assert reason in row.outcome.reason


@pytest.mark.parametrize(
    ("student", "verdict", "reason"),
    [
        ("truncated", "unreadable", "tiny.ipynb is not a complete notebook"),
        ("empty", "unreadable", "tiny.ipynb is empty"),
        ("nothing", "missing", "tiny.ipynb"),
    ],
)
def test_who_has_no_readable_notebook_gets_zero_and_a_reason(graded, student, verdict, reason):
    row = graded[student]
    assert (row.score, row.points) == (0, 6)
    assert row.outcome.verdict == verdict
    assert reason in row.outcome.reason


def test_a_broken_notebook_does_not_stop_the_class(graded):
    assert len(graded) == len(CLASS) + 3
    assert all(row.outcome.verdict != "infrastructure" for row in graded.values())
