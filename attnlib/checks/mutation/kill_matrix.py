"""Which test kills which mutant, what that earns, and the smallest set of tests that kills as many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from attnlib.checks.calling.tested import Outcome
from attnlib.checks.mutation.sample import Sample


@dataclass(frozen=True)
class Rejection:
    """A test that raised for a correct version, and the style of that version."""

    outcome: Outcome
    style: str


@dataclass(frozen=True)
class Survivors:
    """The mutants of one kind: how many survived, of how many, and whether any test used such inputs."""

    kind: str
    survived: int
    of: int
    used: bool


class KillMatrix:
    """The outcomes of a list of tests for every implementation of a sample, by its number."""

    def __init__(self, sample: Sample, outcomes: Mapping[int, Sequence[Outcome]]) -> None:
        self.sample = sample
        self.tests = [outcome.test for outcome in outcomes[0]]
        self._outcomes = outcomes
        first, rejecting = len(sample.correct), self.rejections()
        columns = [outcomes[first + i] for i in range(len(sample.mutants))]
        self.kills = [
            [row not in rejecting and column[row].error is not None for column in columns]
            for row in range(len(self.tests))
        ]

    def rejections(self) -> dict[int, Rejection]:
        """Return, by the number of each test that raised for a correct version, the first such version."""
        found: dict[int, Rejection] = {}
        for number, version in enumerate(self.sample.correct):
            for row, outcome in enumerate(self._outcomes[number]):
                if outcome.error is not None:
                    found.setdefault(row, Rejection(outcome, version.style))
        return dict(sorted(found.items()))

    def killed(self) -> list[bool]:
        """Return which mutants at least one test kills."""
        return [any(row[i] for row in self.kills) for i in range(len(self.sample.mutants))]

    def score(self) -> float:
        """Return the share of the mutants that is killed, by weight; 0 while a test rejects a correct version."""
        if self.rejections():
            return 0.0
        weights = [mutant.weight for mutant in self.sample.mutants]
        return sum(w for w, dead in zip(weights, self.killed(), strict=True) if dead) / sum(weights)

    def survivors(self, used: frozenset[str]) -> list[Survivors]:
        """Return the kinds of mutants that survived; ``used`` names the kinds of input that the tests used."""
        killed: dict[str, list[bool]] = {}
        for mutant, dead in zip(self.sample.mutants, self.killed(), strict=True):
            killed.setdefault(mutant.kind.name, []).append(dead)
        lines = (Survivors(kind, dead.count(False), len(dead), kind in used) for kind, dead in killed.items())
        return [line for line in lines if line.survived]

    def smallest(self) -> list[str]:
        """Return the fewest tests that together kill all the mutants that the whole list kills."""
        rows = [sum(dead << i for i, dead in enumerate(row)) for row in self.kills]
        everything = _union(rows)
        for size in range(len(rows) + 1):
            for chosen in combinations(range(len(rows)), size):
                if _union([rows[i] for i in chosen]) == everything:
                    return [self.tests[i] for i in chosen]
        raise AssertionError("all tests together kill what all tests kill")


def _union(rows: Sequence[int]) -> int:
    found = 0
    for row in rows:
        found |= row
    return found
