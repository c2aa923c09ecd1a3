"""Run tests against all implementations of a sample, in this process: for students who work on them.

The grading engine does the same with the tests and the implementations in different processes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attnlib.checks.calling.tested import Implementation, NotWrittenError, Outcome, TestsError, checked_tests, run_test
from attnlib.checks.mutation.answers import Answers, CallRefusedError
from attnlib.checks.mutation.kill_matrix import KillMatrix
from attnlib.checks.mutation.kill_report import KillReport
from attnlib.checks.mutation.sample import Sample, draw_sample
from attnlib.checks.mutation.targets import find_target

MAX_CALLS = 200  # of one implementation, by all tests of a target together
TOO_MANY_CALLS = f"The tests called an implementation more than {MAX_CALLS} times. Use fewer inputs, or fewer tests."


class _Caller:
    """Answers the calls that tests make to one implementation after another, and keeps count."""

    def __init__(self, sample: Sample) -> None:
        self._target, self._answers = sample.target, Answers(sample.target, sample.implementations)
        self.number, self.calls = 0, 0
        self.used: set[str] = set()
        self.refused = ""

    def ask(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> tuple[Any, str | None, Mapping[int, Any]]:
        self.calls += 1
        try:
            if self.calls > MAX_CALLS:
                raise CallRefusedError(TOO_MANY_CALLS)
            answer = self._answers.answer(self.number, arguments, options)
        except CallRefusedError as refused:
            self.refused = self.refused or str(refused)
            raise
        if answer.error is None:
            self.used |= self._target.kinds_of(arguments, options)
        return answer.value, answer.error, answer.changed


def report_on_tests(name: str, tests: Any, *, seed: int, points: float | None = None) -> KillReport:
    """Run tests against a sample, and return the report.

    Raises:
        ValueError: there is no such target.
    """
    sample = draw_sample(find_target(name), seed)
    try:
        functions = checked_tests(tests)
    except NotWrittenError:
        return KillReport(sample.target, None, unwritten=True, points=points)
    except TestsError as error:
        return KillReport(sample.target, None, stopped=f"{error}.", points=points)
    caller = _Caller(sample)
    outcomes: dict[int, list[Outcome]] = {}
    for number in range(len(sample.implementations)):
        caller.number, caller.calls = number, 0
        outcomes[number] = [run_test(test, Implementation(caller.ask)) for test in functions]
        if caller.refused:
            return KillReport(sample.target, None, stopped=caller.refused, points=points)
    return KillReport(sample.target, KillMatrix(sample, outcomes), frozenset(caller.used), points=points)
