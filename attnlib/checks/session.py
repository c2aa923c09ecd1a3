"""What the checks of a session have found wrong: it is kept until it passes, and returned by ``failing_case``.

Only ``check`` keeps something here. The grading engine examines answers without it, and with inputs of its own.
"""

from dataclasses import dataclass, replace

from attnlib.checks import browser
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.evaluation import Evaluation, find_exercise
from attnlib.checks.failing_input import FailingCase, NoFailingCase
from attnlib.checks.report import Report
from attnlib.checks.shrinking import shrink

MAX_TRIED = 4  # failing cases of a check that are called again
OFFER = (
    "To get hold of an input that fails, as small as possible: from attnlib.checks import failing_case, then "
    'case = failing_case("{}").'
)
STILL = "The input that failed last time was tried first, and it still fails."
NOT_CHECKED = (
    "No check of {0} has run since the kernel was started. Run the cell with its check first. If it fails, "
    'failing_case("{0}") returns an input that fails.'
)
IN_BROWSER = " There is no torch in the browser: a check that needs it is left out there, and has no inputs."
PASSED = "The last check of {} passed, so no failing input is known."
UNWRITTEN = "{} is not written yet. Replace the line that raises NotImplementedError, and run its check again."
UNSTEADY = (
    "{} is right when it is called again with the inputs that failed. So a single input does not show what is wrong. "
    "Does your code draw random numbers, or keep something from one call to the next? Call it twice with the same "
    "arguments, and compare the results."
)
A_QUESTION = (
    "{} is a multiple-choice question, which has no input. After grading, feedback explains the option that you chose."
)


@dataclass
class _Outcome:
    """The last check of one function: the cases that it fails, or the one that was shrunk, or why there are none."""

    evaluation: Evaluation
    implementation: Implementation
    failing: tuple[Case, ...]
    shrunk: bool
    reason: str


_outcomes: dict[tuple[str, str, str], _Outcome] = {}  # by exercise, backend and name of the function, the last one last


def kept_case(evaluation: Evaluation, implementation: Implementation) -> Case | None:
    """Return the case that the function of that name failed when it was checked before, or None."""
    outcome = _outcomes.get(_key(evaluation, implementation))
    return outcome.failing[0] if outcome and outcome.failing else None


def keep(evaluation: Evaluation, implementation: Implementation, report: Report) -> Report:
    """Keep what a check has found, and return the report, with how to get hold of the case."""
    key = _key(evaluation, implementation)
    before = _outcomes.pop(key, None)
    failing = () if report.failure is None or report.unwritten else report.failure.wrong
    if report.kept and failing:
        failing = (report.kept, *failing)
    reason = (UNWRITTEN if report.unwritten else PASSED).format(key[2])
    shrunk = before is not None and before.shrunk and report.kept is not None
    _outcomes[key] = _Outcome(evaluation, implementation, failing, shrunk, reason)
    offer = f"{STILL} {OFFER}" if report.kept else OFFER
    return replace(report, offer=offer.format(evaluation.exercise.name)) if failing else report


def failing_case(name: str) -> FailingCase | NoFailingCase:
    """Return an input that your function got wrong in the last check of an exercise, as small as possible.

    The input is found by calling your function again with smaller and rounder inputs, at most a hundred times. The next
    check tries it first, and ``failing_case`` returns it again until it passes.

    Args:
        name: an exercise, one of :func:`attnlib.checks.exercises`. If several functions were checked for it, the last
            one that failed counts.

    Returns:
        A :class:`FailingCase`, with ``.arguments`` (by name), ``.expected`` and ``.call(function)``. If there is none,
        an object that is false and says why, and what to do.

    Raises:
        ValueError: there is no such exercise.

    Example:
        >>> import numpy as np
        >>> from attnlib.checks import check, failing_case
        >>> def along_the_last_axis(x, axis=-1):
        ...     return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
        >>> earned = check("softmax", along_the_last_axis, seed=0)  # doctest: +ELLIPSIS
        ✗ softmax: ...
        >>> case = failing_case("softmax")
        >>> case.arguments
        {'x': array([[-1., -1.]]), 'axis': 0}
        >>> case.expected
        array([[1., 1.]])
    """
    if name in QUESTIONS:
        return NoFailingCase(A_QUESTION.format(name))
    exercise = find_exercise(name)
    found = [(key[2], outcome) for key, outcome in _outcomes.items() if key[0] == exercise.name]
    failed = [(function, outcome) for function, outcome in found if outcome.failing]
    if not failed:
        not_checked = NOT_CHECKED + (IN_BROWSER if browser.in_browser() and browser.without_torch() else "")
        return NoFailingCase(found[-1][1].reason if found else not_checked.format(name))
    function, outcome = failed[-1]
    if not outcome.shrunk and not _shrink(outcome):
        return NoFailingCase(UNSTEADY.format(function))
    return FailingCase(outcome.evaluation, outcome.failing[0], function)


def _shrink(outcome: _Outcome) -> bool:
    """Shrink the first failing case that fails again, and put it first. Return whether there is one."""
    for case in outcome.failing[:MAX_TRIED]:
        if found := shrink(outcome.evaluation, case, outcome.implementation):
            outcome.failing, outcome.shrunk = (found,), True
            return True
    return False


def _key(evaluation: Evaluation, implementation: Implementation) -> tuple[str, str, str]:
    function = getattr(implementation, "__name__", type(implementation).__name__)
    return evaluation.exercise.name, evaluation.backend, str(function)
