"""Shrink a case that an implementation fails: find a smaller and rounder one that it fails in the same way.

The search is a sequence of moves (:mod:`attnlib.checks.smaller_cases`), the same each time. It ends after a number of
calls of the implementation, and after a number of seconds.
"""

import re
import time
from collections.abc import Hashable, Iterable
from dataclasses import replace

import numpy as np

from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.evaluation import Evaluation, SingleCase
from attnlib.checks.smaller_cases import Domain, Move, count_numbers, is_same, rounder, smaller, with_gradients
from attnlib.checks.time_limit import time_limit

MAX_CALLS = 100  # of the implementation
MAX_SECONDS = 5.0
MAX_CALL_SECONDS = 1.0


class TooSlowError(BaseException):
    """A call of the implementation took too long. This is not an Exception, so it is no error in the answer."""


def shrink(evaluation: Evaluation, case: Case, implementation: Implementation) -> Case | None:
    """Return a case that is as small as the search finds, or None if the implementation does not fail the case now."""
    search = _Search(evaluation, case, implementation)
    if search.symptom is None:
        return None
    if evaluation.exercise.call_exact is not None:
        return case  # in a vocabulary with equal logits, two answers can be right, so the numbers stay as they are
    domain = Domain(one for one in evaluation.cases if evaluation.exercise.grades(one))
    while True:
        before = search.case
        search.take(smaller(search.case, domain), domain)
        if search.case is before:
            search.take(rounder(search.case, evaluation.exercise.unrounded), domain)
            return search.case


class _Search:
    """Calls an implementation on smaller cases. ``symptom`` is how it fails at first, and has to fail in the end."""

    def __init__(self, evaluation: Evaluation, case: Case, implementation: Implementation) -> None:
        self._evaluation, self._implementation = evaluation, implementation
        self._calls, self._end = 0, time.monotonic() + MAX_SECONDS
        self.case, self.symptom = case, self._symptom_of(case)

    def take(self, moves: Iterable[Move], domain: Domain) -> None:
        """Go on with the first case of each move that fails like the one before."""
        for move in moves:
            for candidate in move(self.case):
                if self._calls >= MAX_CALLS or time.monotonic() > self._end:
                    return
                if self._is_smaller(candidate, domain) and self._fails(candidate):
                    break

    def _is_smaller(self, candidate: Case, domain: Domain) -> bool:
        shrunk = count_numbers(candidate) <= count_numbers(self.case) and not is_same(candidate, self.case)
        return shrunk and domain.has(candidate)

    def _fails(self, candidate: Case) -> bool:
        """Tell whether a case fails in the same way; go on with it if so. The reference has to get it right."""
        if candidate.upstream is not None:
            outputs = SingleCase(self._evaluation, replace(candidate, upstream=None)).expected
            if outputs.problem is not None:
                return False
            candidate = with_gradients(candidate, {name: x.shape for name, x in outputs.arrays.items()})
        if not SingleCase(self._evaluation, candidate).is_sound() or self._symptom_of(candidate) != self.symptom:
            return False
        self.case = candidate
        return True

    def _symptom_of(self, case: Case) -> Hashable:
        """Return how the implementation fails in a case, in general terms, or None if it does not."""
        single = SingleCase(self._evaluation, case)
        self._calls += 1
        try:
            with time_limit(MAX_CALL_SECONDS, TooSlowError):
                answer = single.answer(self._implementation)
        except TooSlowError:
            self._calls = MAX_CALLS  # the next call may take as long
            return "too slow"
        return None if single.is_right(answer) else _symptom(answer, single.expected)


def _symptom(answer: Answer, expected: Answer) -> Hashable:
    """Return the kind of a failure: of the error, of the problem, or what is wrong with each array."""
    if answer.problem is not None:
        return re.sub(r"\d+", "", answer.problem if answer.error is None else answer.error.split(":")[0])
    arrays = [(name, x, expected.arrays.get(name)) for name, x in answer.arrays.items()]
    kinds = [(name, want is not None and x.shape == want.shape, bool(np.isfinite(x).all())) for name, x, want in arrays]
    return (*kinds, answer.changed)
