"""Silence earns nothing, noise costs nothing, and nobody's notebook stops the class. One run, many students."""

import pytest
from nbformat import NotebookNode
from tiny import runs

from grading._untyped import read_notebook
from grading.course import Course
from grading.report import Row, rows
from grading.run import run

SKIPPED = {"tags": ["skip-execution"]}
LOOP = "while True:\n        pass"
STUBBORN = """import os
print(os.getpid(), flush=True)

def two():
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass
"""
NOISE = """import sys, warnings
def one():
    warnings.warn("watch out")
    print("to stderr", file=sys.stderr)
    print("to stdout")
    return 2.0
"""


def tag(cell: NotebookNode) -> None:
    cell.metadata.update(SKIPPED)


CLASS: dict[str, dict[str, object]] = {
    "right": {},
    "partly_right": {"answer_one": "def one(): return 1.5"},
    "silent": {"answer_one": "def one(): pass"},
    "printed": {"answer_one": "def one(): print(2.0)"},
    "nan": {"answer_one": "def one(): return float('nan')"},
    "infinite": {"answer_one": "def one(): return float('inf')"},
    "negative": {"answer_one": "def one(): return -1.0"},
    "true": {"answer_one": "def one(): return True"},
    "too_much": {"answer_one": "def one(): return 2.5"},
    "numpy_number": {"answer_one": "import numpy as np\ndef one(): return np.float64(2)"},
    "two_results": {"answer_one": "def one():\n    get_ipython().displayhook(2.0)\n    return 2.0"},
    "failed": {"answer_one": "def one():\n    get_ipython().displayhook(2.0)\n    raise ValueError('no')"},
    "noisy": {"answer_one": NOISE},
    "floods": {"answer_one": "def one():\n    for _ in range(3000): print('x' * 1000)\n    return 2.0"},
    "skipped": {"check_one": tag},
    "edited": {"answer_one": "def one(): return 0.5", "check_one": "2.0"},
    "deleted": {"check_one": None},
    "loops": {"answer_two": f"def two():\n    {LOOP}"},
    "stubborn": {"answer_two": STUBBORN},
    "exits": {"answer_two": "import os\ndef two(): os._exit(0)"},
    "markup": {"answer_one": "def one(): raise ValueError('<script>alert(1)</script>')"},
}


@pytest.fixture(scope="module")
def graded(tiny) -> dict[str, Row]:
    for student, edits in CLASS.items():
        tiny.submit(student, **edits)
    tiny.submit_text("truncated", '{"cells": [')
    tiny.submit_text("empty", "")
    tiny.submit_text("renamed", "{}", name="tiny (1).ipynb")
    tiny.submitted("absent", "another").mkdir(parents=True)
    run(tiny, "tiny", jobs=2, timeout=4)
    return {row.outcome.student: row for row in rows(tiny, "tiny")}


def scores(row: Row) -> list[float]:
    return [row.scores[f"check-{name}"][0] for name in ("one", "two", "three")]


def executed(course: Course, student: str) -> NotebookNode:
    return read_notebook(course.autograded(student, "tiny") / "tiny.ipynb")


def feedback(row: Row) -> str:
    return row.feedback[0].read_text()


def test_right_answers_earn_all_points(graded):
    assert scores(graded["right"]) == [2, 2, 2]
    assert graded["right"].points == 6


def test_a_partly_right_answer_earns_its_part(graded):
    assert scores(graded["partly_right"]) == [1.5, 2, 2]


@pytest.mark.parametrize(
    ("student", "reason"),
    [
        ("silent", "showed no result"),
        ("printed", "showed no result"),
        ("skipped", "showed no result"),
        ("nan", "result is nan"),
        ("infinite", "result is inf"),
        ("negative", "result is -1.0"),
        ("true", "result is True"),
        ("numpy_number", "result is np.float64(2.0)"),
        ("too_much", "only 2 points to give"),
        ("two_results", "showed 2 results"),
        ("failed", "ValueError"),
    ],
)
def test_anything_but_one_plain_number_of_points_earns_nothing_and_says_why(graded, student, reason):
    assert scores(graded[student]) == [0, 2, 2]
    assert graded[student].outcome.verdict == "graded"
    assert reason in feedback(graded[student])


def test_a_warning_costs_nothing_and_stays_visible(graded):
    assert scores(graded["noisy"]) == [2, 2, 2]
    assert "watch out" in feedback(graded["noisy"])
    assert "to stderr" in feedback(graded["noisy"])


def test_endless_output_is_cut_but_the_result_counts(graded):
    assert scores(graded["floods"]) == [2, 2, 2]
    assert "Output cut here" in feedback(graded["floods"])
    assert len(feedback(graded["floods"])) < 1_500_000


def test_a_changed_test_cell_is_changed_back(graded):
    assert scores(graded["edited"]) == [0.5, 2, 2]


def test_a_deleted_test_cell_comes_back_and_is_graded(graded):
    assert scores(graded["deleted"]) == [2, 2, 2]


@pytest.mark.parametrize(
    ("student", "verdict", "reason"),
    [
        ("loops", "timeout", "did not end within 4 seconds"),
        ("stubborn", "timeout", "did not end within 4 seconds"),
        ("exits", "crashed", "ended the Python process"),
    ],
)
def test_a_stopped_notebook_keeps_what_it_had_earned_and_no_later_cell_earns_anything(graded, student, verdict, reason):
    row = graded[student]
    assert scores(row) == [2, 0, 0]
    assert row.outcome.verdict == verdict
    assert "check-two" in row.outcome.reason
    assert reason in row.outcome.reason
    assert "Not run, because" in feedback(row)


def test_no_kernel_outlives_its_notebook_even_if_it_catches_the_interrupt(graded, tiny):
    (answer,) = (cell for cell in executed(tiny, "stubborn").cells if cell.id == "answer-two")
    pid = int(answer.outputs[0].text)
    assert not runs(pid)


@pytest.mark.parametrize(
    ("student", "verdict", "reason"),
    [
        ("truncated", "unreadable", "tiny.ipynb is no whole notebook"),
        ("empty", "unreadable", "tiny.ipynb is empty"),
        ("renamed", "missing", "tiny (1).ipynb"),
        ("absent", "missing", "nothing"),
    ],
)
def test_who_has_no_readable_notebook_gets_zero_and_a_reason(graded, student, verdict, reason):
    row = graded[student]
    assert (row.score, row.points) == (0, 6)
    assert row.outcome.verdict == verdict
    assert reason in row.outcome.reason


def test_a_broken_notebook_does_not_stop_the_class(graded):
    assert len(graded) == len(CLASS) + 4
    assert all(row.outcome.verdict != "infrastructure" for row in graded.values())


def test_feedback_runs_nothing_that_came_with_a_submission(graded):
    assert "<script" not in feedback(graded["markup"])
    assert "&lt;script&gt;" in feedback(graded["markup"])
