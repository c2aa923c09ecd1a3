"""Draw the implementations that tests are run against: correct versions and mutants of one target."""

from dataclasses import dataclass

import numpy as np

from attnlib.checks.calling.case import Implementation
from attnlib.checks.mutation.mutants import Mutant, mutants_of
from attnlib.checks.mutation.target import CorrectVersion, Target

CORRECT, MUTANTS = 8, 14  # the same numbers for every target
DRAWN_BY_WEIGHT = {3: 6, 2: 3}  # of the mutants, if there are as many; the others have weight 1


@dataclass(frozen=True)
class Sample:
    """The correct versions and the mutants of a target that tests are run against, numbered in this order."""

    target: Target
    correct: tuple[CorrectVersion, ...]
    mutants: tuple[Mutant, ...]

    @property
    def implementations(self) -> list[Implementation]:
        """All implementations, the correct ones first."""
        return [*(v.implementation for v in self.correct), *(m.mistake.implementation for m in self.mutants)]


def draw_sample(target: Target, seed: int) -> Sample:
    """Return a sample: the hard mutants are drawn first, because nobody needs practice in catching the easy ones."""
    rng = np.random.default_rng(seed)
    known = mutants_of(target)
    chosen: list[int] = []
    for weight, most in DRAWN_BY_WEIGHT.items():
        there = [i for i, mutant in enumerate(known) if mutant.weight == weight]
        chosen += rng.permutation(there)[:most].tolist()
    rest = [i for i, mutant in enumerate(known) if mutant.weight == 1]
    chosen += rng.permutation(rest)[: MUTANTS - len(chosen)].tolist()
    correct = rng.permutation(len(target.correct))[:CORRECT].tolist()
    mutants = sorted((known[i] for i in chosen), key=lambda mutant: (mutant.weight, mutant.kind.name))
    return Sample(target, tuple(target.correct[i] for i in correct), tuple(mutants))
