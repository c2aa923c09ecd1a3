"""The mutants of a target: the known mistakes of its exercise that show in a call, with how hard each is to catch."""

import functools
from dataclasses import dataclass

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation
from attnlib.checks.exercise import Mistake
from attnlib.checks.mutation.answers import CallRefusedError, refuse_large
from attnlib.checks.mutation.target import PLAIN, UNCHANGED, Kind, Target

SEED = 0  # of the cases by which the mutants are weighted


@dataclass(frozen=True)
class Mutant:
    """A known mistake. ``weight``, 1 to 3, says how hard it is to catch, and ``kind`` which kind of input shows it."""

    mistake: Mistake
    weight: int
    kind: Kind


@functools.cache
def mutants_of(target: Target) -> tuple[Mutant, ...]:
    """Return the mutants of a target, in the order of the catalogue."""
    evaluation = Evaluation(CATALOGUE[target.exercise], "numpy", SEED)
    kinds = {i: _kinds(target, evaluation, i) for i in range(len(evaluation.cases)) if evaluation.grades(i)}
    usable = {i: names for i, names in kinds.items() if names is not None}
    found = []
    for mistake in evaluation.exercise.mistakes:
        shown = [i for i in evaluation.revealing(mistake) if i in usable]
        if shown:
            changes = any(evaluation.changes(mistake, i) for i in shown)
            kind = UNCHANGED if changes else _kind(target, shown, usable)
            found.append(Mutant(mistake, _weight(len(shown) / len(usable)), kind))
    return tuple(found)


def _kinds(target: Target, evaluation: Evaluation, i: int) -> frozenset[str] | None:
    """Return the kinds of a case, or None if a test could not make that call."""
    arguments, options = target.case(evaluation.cases[i])
    try:
        refuse_large(arguments, options)
    except CallRefusedError:
        return None
    return target.kinds_of(arguments, options)


def _kind(target: Target, shown: list[int], usable: dict[int, frozenset[str]]) -> Kind:
    """Return the rarest kind that is shared by all cases in which a mistake shows."""
    for kind in target.kinds:
        needed = all(kind.name in usable[i] for i in shown)
        if needed and not all(kind.name in names for names in usable.values()):
            return kind
    return PLAIN


def _weight(share: float) -> int:
    """Return the weight of a mistake that shows in this share of the cases."""
    return 1 if share > 1 / 2 else 2 if share > 1 / 4 else 3
