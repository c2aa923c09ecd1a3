"""Decide: run every case, compare with the reference, score the parts, and name the mistake. Nothing is shown here."""

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.gradients import CUT_OFF, GRADIENTS
from attnlib.checks.exercise import Case, Exercise, Implementation, Mistake
from attnlib.checks.invariants import what_broke
from attnlib.checks.probe import Answer, probe
from attnlib.checks.report import Finding, Report

TOLERANCE = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 1e-4}

# How NumPy and torch say that two shapes do not fit: one slip, many texts.
MISFIT = re.compile(
    r"could not be broadcast|mismatch in its core|not aligned|must match|cannot be multiplied"
    r"|Expected size|size of tensor|t\(\) expects"
)


def exercises() -> tuple[str, ...]:
    """Return the names of all exercises, in the order of the course."""
    return tuple(CATALOGUE)


def examine(name: str, implementation: Implementation, *, backend: str = "numpy", seed: int | None = None) -> Report:
    """Examine an implementation of an exercise, and report what is right, and which mistake was made.

    Args:
        name: an exercise, one of :func:`exercises`.
        implementation: a function with the signature of ``attnlib``'s own of that name.
        backend: ``"numpy"`` or ``"torch"``: what the implementation is given and must return.
        seed: of the random inputs; ``None`` draws new ones each time.

    Returns:
        A :class:`Report`, with ``.passed``, ``.score`` (0 to 1), ``.mistake`` (id or None) and ``.message``.

    Raises:
        ValueError: there is no such exercise or backend.
        TypeError: ``implementation`` cannot be called.
    """
    exercise = _find(name)
    if backend not in ("numpy", "torch"):
        raise ValueError(f"backend is {backend!r}, but 'numpy' or 'torch' is needed")
    if not callable(implementation):
        raise TypeError(f"implementation is a {type(implementation).__name__}, but a function is needed: pass {name}")
    cases = _cases(exercise, backend, seed)
    outputs = tuple(exercise.outputs)
    expected = [_expected(exercise, case) for case in cases]  # before any student code has seen a case
    answers = [probe(implementation, case, outputs, backend=backend) for case in cases]
    right = [_is_right(*triple) for triple in zip(cases, answers, expected, strict=True)]
    score = _score(exercise, cases, right)
    if all(right):
        return Report(exercise.name, backend, score, None, None)
    first = right.index(False)
    case, answer, want = cases[first], answers[first], expected[first]
    broke = what_broke(exercise, answer, want, _tolerance(case))
    finding = Finding(case, answer, want, broke, exercise, _tolerance(case))
    return Report(exercise.name, backend, score, _name(exercise, cases, answers, first), finding)


def _find(name: str) -> Exercise:
    try:
        return CATALOGUE[name]
    except (KeyError, TypeError):
        near = difflib.get_close_matches(str(name), CATALOGUE, n=1)
        meant = f": did you mean {near[0]!r}?" if near and isinstance(name, str) else "."
        raise ValueError(f"there is no exercise {name!r}{meant} There are: {', '.join(CATALOGUE)}") from None


def _cases(exercise: Exercise, backend: str, seed: int | None) -> list[Case]:
    rng = np.random.default_rng(seed)
    cases = list(exercise.inputs(rng))
    if backend == "torch":  # the second case is the plain one: neither so small nor so special that gradients hide
        outputs = _expected(exercise, cases[1]).arrays
        upstream = {name: rng.normal(size=x.shape) for name, x in outputs.items()}
        cases.append(replace(cases[1], name="the gradients", part=GRADIENTS, upstream=upstream))
    return cases


def _expected(exercise: Exercise, case: Case) -> Answer:
    """Return the reference's answer: in float64 for numbers, by autograd in torch for gradients."""
    exact = replace(case, inputs={name: x.astype(np.float64) for name, x in case.inputs.items()})
    backend = "numpy" if case.upstream is None else "torch"
    return probe(exercise.reference, exact, tuple(exercise.outputs), backend=backend)


def _is_right(case: Case, answer: Answer, expected: Answer) -> bool:
    if answer.problem is not None or (case.unchanged and answer.changed):
        return False
    return _close(case, answer, expected)


def _close(case: Case, answer: Answer, other: Answer, *, equal_nan: bool = False) -> bool:
    tolerance = _tolerance(case)
    return all(
        name in answer.arrays
        and answer.arrays[name].shape == x.shape
        and np.allclose(answer.arrays[name], x, rtol=tolerance, atol=tolerance, equal_nan=equal_nan)
        for name, x in other.arrays.items()
    )


def _tolerance(case: Case) -> float:
    return max(TOLERANCE[x.dtype] for x in case.inputs.values())


def _score(exercise: Exercise, cases: Sequence[Case], right: Sequence[bool]) -> float:
    """Return the weight of the parts whose every case is right; the first part is the foundation of the others.

    Gradients, where they are asked for, weigh as much as all the rest: they are what a torch exercise is about.
    """
    weights = dict(exercise.parts)
    if any(case.part == GRADIENTS for case in cases):
        weights[GRADIENTS] = sum(weights.values())
    kept = {part for part in weights if all(ok for case, ok in zip(cases, right, strict=True) if case.part == part)}
    if next(iter(weights)) not in kept:
        return 0.0
    return math.fsum(weights[part] for part in kept) / sum(weights.values())


def _name(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer], first: int) -> Mistake | None:
    """Return the mistake that answers as the student did, or None where there is none or more than one.

    First over all cases; then over those up to the end of the first part that went wrong, for a student who made
    this mistake and, independently, another one later.
    """
    if cases[first].part == GRADIENTS:
        cut = re.search("no gradient|requires grad", f"{answers[first].problem} {answers[first].error}")
        return CUT_OFF if cut else None
    numbers = [(case, answer) for case, answer in zip(cases, answers, strict=True) if case.part != GRADIENTS]
    part_ends = 1 + max(i for i, (case, _) in enumerate(numbers) if case.part == cases[first].part)
    agree = {mistake.id: _agreement(mistake, numbers, tuple(exercise.outputs)) for mistake in exercise.mistakes}
    for needed in (len(numbers), part_ends):
        same = [mistake for mistake in exercise.mistakes if agree[mistake.id] >= needed]
        if len(same) == 1:
            return same[0]
    return None


def _agreement(mistake: Mistake, numbers: Sequence[tuple[Case, Answer]], outputs: tuple[str, ...]) -> int:
    """Count the cases, from the first on, in which the student answered as the mistake does."""
    for count, (case, answer) in enumerate(numbers):
        if not _same(case, answer, probe(mistake.implementation, case, outputs)):
            return count
    return len(numbers)


def _same(case: Case, answer: Answer, other: Answer) -> bool:
    if answer.problem is not None or other.problem is not None:
        return _outline(answer) == _outline(other)
    if case.unchanged and answer.changed != other.changed:
        return False
    return _close(case, answer, other, equal_nan=True)


def _outline(answer: Answer) -> str | None:
    """Return what went wrong without the words that differ between backends."""
    if answer.error is not None:
        return "misfit" if MISFIT.search(answer.error) else answer.error
    return answer.problem and answer.problem.replace("Tensor", "ndarray").replace("torch.", "")
