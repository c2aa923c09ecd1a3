"""The checker, tested as a classifier: every known mistake is made, and what it is called is counted.

Of each exercise the reference has to pass and every mistake has to fail and be named as itself, whatever the seed.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation, examine
from attnlib.checks.exercise import Exercise

TIMED = 10  # mistakes of an exercise, about
PASSED, UNNAMED = "(passed)", "(unnamed)"


@dataclass(frozen=True)
class Row:
    """What one mistake was called, over all seeds."""

    made: str
    called: Counter[str]

    @property
    def itself(self) -> int:
        """How often it was named as itself."""
        return self.called[self.made]

    @property
    def otherwise(self) -> dict[str, int]:
        """What else it was called, and how often."""
        return {name: count for name, count in self.called.items() if name != self.made}


@dataclass(frozen=True)
class Confusion:
    """How the checks of one exercise do.

    Attributes:
        exercise: its name.
        rows: one for each mistake.
        seeds: how many sets of inputs were tried.
        right: in which backends the reference was accepted, and how often.
        seconds: how long a check of a wrong answer took, in the mean.
    """

    exercise: str
    rows: tuple[Row, ...]
    seeds: int
    right: dict[str, int]
    seconds: float

    @property
    def tried(self) -> int:
        """How many wrong answers were examined."""
        return self.seeds * len(self.rows)

    @property
    def named(self) -> int:
        """How many of them were named correctly."""
        return sum(row.itself for row in self.rows)

    @property
    def perfect(self) -> bool:
        """Whether every mistake was named as itself, and the reference accepted, every time."""
        return self.named == self.tried and set(self.right.values()) == {self.seeds}

    def __str__(self) -> str:
        right = ", ".join(f"{count} of {self.seeds} ({backend})" for backend, count in self.right.items())
        head = (
            f"{self.exercise}: {self.named} of {self.tried} wrong answers named correctly, the reference "
            f"accepted {right}, {1000 * self.seconds:.0f} ms a check"
        )
        width = max((len(row.made) for row in self.rows), default=0)
        lines = [f"  {row.made:<{width}}  {row.itself:>3} of {self.seeds}{_listed(row.otherwise)}" for row in self.rows]
        return "\n".join([head, *lines])


def confusion(name: str, seeds: Iterable[int], done: Callable[[], object] = lambda: None) -> Confusion:
    """Make every mistake of an exercise with every seed, and count what it is called. ``done`` is called after each."""
    exercise, seeds = CATALOGUE[name], tuple(seeds)
    called: dict[str, Counter[str]] = {mistake.id: Counter() for mistake in exercise.mistakes}
    right: Counter[str] = Counter(dict.fromkeys(exercise.backends, 0))
    for seed in seeds:
        first = Evaluation(exercise, exercise.backends[0], seed)
        for mistake in exercise.mistakes:
            report = first.of(mistake.implementation)
            report = report.remark or report
            called[mistake.id][report.mistake or (PASSED if report.passed else UNNAMED)] += 1
            done()
        for backend in exercise.backends:
            right[backend] += examine(name, exercise.reference_in(backend), backend=backend, seed=seed).passed
    rows = tuple(Row(made, names) for made, names in called.items())
    return Confusion(name, rows, len(seeds), dict(right), _seconds(exercise))


def _seconds(exercise: Exercise) -> float:
    """Return how long a check of a wrong answer takes, in the mean over some of the mistakes."""
    some = exercise.mistakes[:: max(1, len(exercise.mistakes) // TIMED)]
    began = time.perf_counter()
    for mistake in some:
        examine(exercise.name, mistake.implementation, backend=exercise.backends[0])
    return (time.perf_counter() - began) / max(1, len(some))


def _listed(otherwise: dict[str, int]) -> str:
    return f", else {', '.join(f'{name} {count}' for name, count in otherwise.items())}" if otherwise else ""
