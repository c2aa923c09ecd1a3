"""Checks that name the mistake.

``check`` is what stands in a notebook's test cell: it shows a report and returns the points earned.
``examine`` is the same without the show: it returns the :class:`Report`.
"""

import sys
from dataclasses import replace
from typing import Any

from attnlib.checks.examiner import examine, exercises
from attnlib.checks.exercise import Implementation
from attnlib.checks.report import Report

__all__ = ["CheckFailed", "Report", "check", "examine", "exercises"]


class CheckFailed(AssertionError):
    """Nothing was earned. The text is the report."""

    def _render_traceback_(self) -> list[str]:
        """Tell IPython not to repeat at length what the report above has said."""
        return [str(self).split("\n", 1)[0]]


def check(name: str, implementation: Implementation, *, points: float = 1, **options: Any) -> float:
    """Examine an implementation, show the report, and return the points it earned.

    As the last expression of an nbgrader test cell, the returned number is the partial credit: a plain ``float``
    between 0 and ``points``.

    Args:
        name: an exercise, one of :func:`exercises`.
        implementation: the student's function.
        points: what a full score earns, more than 0.
        **options: ``backend`` and ``seed``, as for :func:`examine`.

    Returns:
        ``score * points``.

    Raises:
        CheckFailed: nothing was earned. The report has been shown by then.
        ValueError: ``points`` is not a positive number, or there is no such exercise or backend.
        TypeError: ``implementation`` cannot be called.

    Example:
        >>> import numpy as np
        >>> check("softmax", lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True), points=4, seed=0)
        ... # doctest: +ELLIPSIS
        ✗ softmax: ...
        3.0
    """
    if not 0 < points < float("inf"):
        raise ValueError(f"points is {points}, but a positive number is needed")
    report = replace(examine(name, implementation, **options), points=float(points))
    _show(report)
    if report.score == 0:
        raise CheckFailed(report.message)
    return report.score * float(points)


def _show(report: Report) -> None:
    """Show the report as rich output in a notebook, as text elsewhere. IPython is used where it runs already."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(report)
    else:
        print(report)
