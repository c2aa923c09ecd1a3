"""Checks that name the mistake.

``check`` is called in a notebook's test cell: it shows a report and returns the points earned. ``failing_case`` returns
an input that failed in it. ``check_tests`` grades tests by the mistakes that they catch. ``show_options`` shows the
options of a question, for which ``check_choice`` takes an answer; ``set_student`` says in whose order.
``examine`` shows nothing: it returns the :class:`Report`. Only ``check`` warns about a correct answer that calls a
function which would solve the exercise.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attnlib.checks import browser
from attnlib.checks.calling.case import Implementation
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.evaluation import examine, exercises, prepare_evaluation
from attnlib.checks.failing_input import FailingCase, NoFailingCase
from attnlib.checks.mutation.kill_report import KillReport
from attnlib.checks.mutation.run_tests import report_on_tests
from attnlib.checks.options import Options, Question
from attnlib.checks.questions import Choice
from attnlib.checks.report import Report
from attnlib.checks.session import failing_case, keep, kept_case
from attnlib.checks.student import current_student, set_student

__all__ = [
    "CheckFailed",
    "Choice",
    "FailingCase",
    "KillReport",
    "NoFailingCase",
    "Report",
    "check",
    "check_choice",
    "check_tests",
    "examine",
    "exercises",
    "failing_case",
    "set_student",
    "show_options",
]

listeners: list[Callable[[Report | Choice | KillReport], Any]] = []  # each is called with every report that is shown


class CheckFailed(AssertionError):
    """Nothing was earned. The text is the report."""

    def _render_traceback_(self) -> list[str]:
        """Tell IPython not to repeat at length what the report above has said."""
        return [str(self).split("\n", 1)[0]]


def check(name: str, implementation: Implementation, *, points: float = 1, hint: int = 1, **options: Any) -> float:
    """Examine an implementation, show the report, and return the points it earned.

    As the last expression of an nbgrader test cell, the returned number is the partial credit: a plain ``float``
    between 0 and ``points``.

    Args:
        name: an exercise, one of :func:`exercises`.
        implementation: the student's function, or class.
        points: what a full score earns, more than 0.
        hint: how many hints a report gives, 1 or 2.
        **options: ``backend``, ``seed`` and ``unasked``, as for :func:`examine`.

    Returns:
        ``score * points``; 0 for a torch exercise in a browser, where there is no torch: it is skipped, with a message.

    Raises:
        CheckFailed: nothing was earned. The report has been shown by then.
        ImportError: the backend is ``"torch"``, and torch or array-api-compat is not installed.
        ValueError: ``points`` is not a positive number, or the exercise, the backend or the hint does not exist.
        TypeError: ``implementation`` cannot be called.

    Example:
        >>> import numpy as np
        >>> check("softmax", lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True), points=4, seed=0)
        ... # doctest: +ELLIPSIS
        ✗ softmax: ...
        3.0
    """
    _require_positive(points)
    if hint not in (1, 2):
        raise ValueError(f"hint is {hint!r}, but there are only two hints: hint=1 and hint=2")
    if options.get("backend") == "torch" and browser.in_browser() and browser.without_torch():
        print(browser.left_out())
        return 0.0
    evaluation = prepare_evaluation(name, implementation, **options)
    report = evaluation.watched(implementation, kept_case(evaluation, implementation))
    report = keep(evaluation, implementation, replace(report, points=float(points), hints=int(hint)))
    _show(report)
    if report.score == 0:
        raise CheckFailed(report.message)
    return report.score * float(points)


def show_options(name: str) -> None:
    """Show the options of a question, in an order of the student's own if :func:`set_student` has said who it is.

    Args:
        name: a question of the course.

    Raises:
        ValueError: there is no such question.

    Example:
        >>> set_student("ada")
        >>> show_options("reading-an-alignment")
        P. 12 and 13
        Q. 8 and 9
        R. 0 and 1
        S. 5 and 6
        >>> set_student("")
    """
    _display(Options(_question(name), current_student()))


def check_choice(name: str, answer: str | None, *, points: float = 1) -> None:
    """Repeat which option of a question is chosen. Whether it is right is known only where answers are graded.

    Args:
        name: a question of the course.
        answer: the letter of the chosen option; ``None`` while there is no answer.
        points: what the right option earns, more than 0.

    Raises:
        CheckFailed: the answer is none of the options, or there is none yet.
        ValueError: ``points`` is not a positive number, or there is no such question.
    """
    _require_positive(points)
    student = current_student()
    choice = Choice(_question(name), answer, float(points), student=student, stated=student)
    _show(choice)
    if not choice.passed:
        raise CheckFailed(choice.message)


def check_tests(name: str, tests: Any, *, points: float = 1, seed: int = 0) -> float:
    """Run tests against correct and wrong implementations, show what they catch, and return the points they earned.

    A test is a function that takes an implementation, calls it, and raises an exception if something is wrong. It earns
    points for the mistakes it catches, each by how hard it is to catch. Nothing is earned as long as a test rejects a
    correct version.

    Args:
        name: what the tests are written for, such as ``"softmax"``.
        tests: a list of 1 to 12 tests.
        points: what catching every mistake earns, more than 0.
        seed: which of the catalogue's mistakes are drawn. While a submission is graded, others are drawn.

    Returns:
        The points, as a plain float.

    Raises:
        CheckFailed: nothing was earned. The report has been shown by then.
        ValueError: ``points`` is not a positive number, or there is no such target.

    Example:
        >>> import numpy as np
        >>> def test_rows(softmax):
        ...     assert np.allclose(softmax(np.array([[0.0, 0.0], [0.0, np.log(3)]])), [[0.5, 0.5], [0.25, 0.75]])
        >>> earned = check_tests("softmax", [test_rows])  # doctest: +ELLIPSIS
        ✗ tests of softmax: ... of 14 mistakes caught · ...
    """
    _require_positive(points)
    report = report_on_tests(name, tests, seed=seed, points=float(points))
    _show(report)
    if report.score == 0:
        raise CheckFailed(report.message)
    return report.score * float(points)


def _question(name: str) -> Question:
    if name not in QUESTIONS:
        raise ValueError(f"there is no question {name!r}. The questions are: {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def _require_positive(points: float) -> None:
    if not 0 < points < float("inf"):
        raise ValueError(f"points is {points}, but a positive number is needed")


def _show(report: Report | Choice | KillReport) -> None:
    for listener in listeners:
        listener(report)
    _display(report)


def _display(shown: Report | Choice | KillReport | Options) -> None:
    """Show something as rich output in a notebook, as text elsewhere. IPython is used only if it already runs."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(shown)
    else:
        print(shown)


browser.begin()
