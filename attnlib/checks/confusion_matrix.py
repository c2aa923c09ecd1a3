"""Test the checks as a classifier: make every known mistake of an exercise, and count the names it is given.

The reference has to pass, and every mistake has to fail and be given its own name, whatever the seed.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation, examine
from attnlib.checks.exercise import Exercise

TIMED_MISTAKES = 4  # about how many mistakes of each exercise are timed
PASSED, UNNAMED = "(passed)", "(unnamed)"


@dataclass(frozen=True)
class MistakeCounts:
    """How often the checks gave one mistake each name, over all seeds."""

    mistake: str
    given: Counter[str]

    @property
    def correct(self) -> int:
        """How often it was given its own name."""
        return self.given[self.mistake]

    @property
    def confused(self) -> dict[str, int]:
        """The other names that it was given, and how often."""
        return {name: count for name, count in self.given.items() if name != self.mistake}


@dataclass(frozen=True)
class ConfusionMatrix:
    """How well the checks name the mistakes of one exercise.

    Attributes:
        exercise: the name of the exercise.
        rows: the counts of each mistake.
        seeds: how many sets of inputs were tried.
        accepted: how often the reference was accepted in each backend.
        seconds: how long a check of a wrong answer took on average.
    """

    exercise: str
    rows: tuple[MistakeCounts, ...]
    seeds: int
    accepted: dict[str, int]
    seconds: float

    @property
    def tried(self) -> int:
        """How many wrong answers were examined."""
        return self.seeds * len(self.rows)

    @property
    def named(self) -> int:
        """How many of them were named correctly."""
        return sum(row.correct for row in self.rows)

    @property
    def perfect(self) -> bool:
        """Whether every mistake was always given its own name, and the reference always accepted."""
        return self.named == self.tried and set(self.accepted.values()) == {self.seeds}

    def __str__(self) -> str:
        accepted = ", ".join(f"{count} of {self.seeds} ({backend})" for backend, count in self.accepted.items())
        head = (
            f"{self.exercise}: {self.named} of {self.tried} wrong answers named correctly, the reference "
            f"accepted {accepted}, {1000 * self.seconds:.0f} ms a check"
        )
        width = max((len(row.mistake) for row in self.rows), default=0)
        lines = [
            f"  {row.mistake:<{width}}  {row.correct:>3} of {self.seeds}{_listed(row.confused)}" for row in self.rows
        ]
        return "\n".join([head, *lines])


def confusion_matrix(name: str, seeds: Iterable[int], done: Callable[[], object] = lambda: None) -> ConfusionMatrix:
    """Make every mistake of an exercise with every seed, and count the names. ``done`` is called after each mistake."""
    exercise, seeds = CATALOGUE[name], tuple(seeds)
    given: dict[str, Counter[str]] = {mistake.id: Counter() for mistake in exercise.mistakes}
    accepted: Counter[str] = Counter(dict.fromkeys(exercise.backends, 0))
    for seed in seeds:
        evaluation = Evaluation(exercise, exercise.backends[0], seed)
        for mistake in exercise.mistakes:
            report = evaluation.of(mistake.implementation)
            report = report.remark or report
            given[mistake.id][report.mistake or (PASSED if report.passed else UNNAMED)] += 1
            done()
        for backend in exercise.backends:
            accepted[backend] += examine(name, exercise.reference_in(backend), backend=backend, seed=seed).passed
    rows = tuple(MistakeCounts(mistake, names) for mistake, names in given.items())
    return ConfusionMatrix(name, rows, len(seeds), dict(accepted), _seconds(exercise))


def _seconds(exercise: Exercise) -> float:
    """Return how long a check of a wrong answer takes on average, measured on some of the mistakes."""
    some = exercise.mistakes[:: max(1, len(exercise.mistakes) // TIMED_MISTAKES)]
    began = time.perf_counter()
    for mistake in some:
        examine(exercise.name, mistake.implementation, backend=exercise.backends[0])
    return (time.perf_counter() - began) / max(1, len(some))


def _listed(confused: dict[str, int]) -> str:
    return f", else {', '.join(f'{name} {count}' for name, count in confused.items())}" if confused else ""
