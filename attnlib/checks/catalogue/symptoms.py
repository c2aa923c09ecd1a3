"""What is true of many wrong answers, whatever the exercise: recognised from the answers alone, never guessed.

A symptom is looked for where no known mistake of the exercise answers as the student did.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from attnlib.checks.calls import leaves
from attnlib.checks.catalogue.gradients import GRADIENTS
from attnlib.checks.catalogue.self_attention.sections import ATTENTION
from attnlib.checks.exercise import Case, Mistake
from attnlib.checks.probe import Answer


@dataclass(frozen=True)
class Seen:
    """The cases by number, what came and what was expected, which were right, and the first that was wrong."""

    cases: Mapping[int, Case]
    answers: Mapping[int, Answer]
    expected: Mapping[int, Answer]
    right: frozenset[int]
    first: int
    broke: str

    @property
    def answer(self) -> Answer:
        """Return what came in the first case that was wrong."""
        return self.answers[self.first]


Holds = Callable[[Seen], bool]
SYMPTOMS: list[tuple[Mistake, Holds]] = []


def symptom(title: str, says: str, hint: str, more: str) -> Callable[[Holds], Holds]:
    """Register a symptom, whose name is that of the decorated function."""

    def register(holds: Holds) -> Holds:
        identifier = holds.__name__.replace("_", "-")
        SYMPTOMS.append((Mistake(identifier, title, says, hint, more, ATTENTION, _recognised), holds))
        return holds

    return register


def _recognised(*inputs: object) -> None:
    raise NotImplementedError("recognised from the answers, not by an implementation")


@symptom(
    "the numbers are right, but a gradient is not",
    "Somewhere on the way back from the result a piece of the gradient is lost, though the numbers are right.",
    "Which inputs contribute to the result in more than one way? Does each of these paths pass its gradient on?",
    "A part that is detached, or read from .data, or rebuilt from plain numbers, is a constant as far as autograd "
    "is concerned.",
)
def gradient_lost_in_part(seen: Seen) -> bool:
    """Tell whether all numbers are right, and gradients came that are wrong."""
    return seen.cases[seen.first].part == GRADIENTS and seen.answer.problem is None


@symptom(
    "an argument is changed",
    "The result is right, but after the call one of the arguments is no longer what it was.",
    "Which of your lines write into an array, instead of making a new one?",
    "An assignment to x[...], an operator such as +=, a method whose name ends in an underscore, and out= all write "
    "in place.",
)
def changes_an_argument(seen: Seen) -> bool:
    """Tell whether the first thing that is wrong is an argument that was changed."""
    return seen.answer.problem is None and bool(seen.answer.changed) and "changed its argument" in seen.broke


@symptom(
    "different numbers during training and afterwards",
    "While it is being trained, your module gives different numbers than when it is used. The task asks for "
    "nothing of the kind.",
    "Which of your layers behaves differently after module.train() and after module.eval()?",
    "Dropout and batch norm do. Neither of them is in the formula of the task.",
)
def differs_in_training(seen: Seen) -> bool:
    """Tell whether the first case that is wrong is the one in training."""
    return seen.cases[seen.first].training and seen.answer.problem is None


@symptom(
    "not the results that the task asks for",
    "Your function returns results of a different kind, or a different number of them, than the task says.",
    "Compare your return line with the last line of the docstring: how many results are promised, and of which kind?",
    "Print the type of what your function returns and, if it is a tuple, how many things it holds.",
)
def other_results(seen: Seen) -> bool:
    """Tell whether what came back is none of the results at all."""
    return (seen.answer.problem or "").startswith("returned")


@symptom(
    "a dimension of size 1 is lost",
    "Your result has lost a dimension of size 1. Everything else is there.",
    "Which of your lines removes a dimension, and would it also remove one that belongs to the result?",
    "squeeze() without an axis removes dimensions, and so does indexing with a number. Say which one you mean.",
)
def squeezed(seen: Seen) -> bool:
    """Tell whether the first wrong case lacks nothing but dimensions of size 1, and no other case lacks more."""
    return bool(_wrong_shapes(seen, seen.first)) and all(
        len(got) < len(want) and [n for n in got if n != 1] == [n for n in want if n != 1]
        for i in seen.cases
        for got, want in _wrong_shapes(seen, i)
    )


def _wrong_shapes(seen: Seen, i: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the shapes of a case that are not as expected, beside those that are."""
    expected = seen.expected[i].arrays
    shapes = [(x.shape, expected[name].shape) for name, x in seen.answers[i].arrays.items()]
    return [(got, want) for got, want in shapes if got != want]


@symptom(
    "the result holds whole numbers only",
    "Your result has an integer dtype, so everything after the decimal point is cut off.",
    "What is the dtype of the array that you write your numbers into?",
    "An array made from whole numbers, or by zeros_like from such an array, can hold only whole numbers.",
)
def whole_numbers(seen: Seen) -> bool:
    """Tell whether integers came where real numbers are expected."""
    expected = seen.expected[seen.first].arrays
    return any(x.dtype.kind in "iu" and expected[name].dtype.kind == "f" for name, x in seen.answer.arrays.items())


@symptom(
    "right for one number of dimensions only",
    "Your function counts on a certain number of dimensions: with more in front, or with fewer, it is wrong.",
    "Which of your lines counts an axis from the front, or unpacks a shape?",
    "Counted from the end, as -1 and -2, axes stay the same whatever comes before them.",
)
def number_of_dimensions(seen: Seen) -> bool:
    """Tell whether the number of dimensions decides which cases are right."""
    ranks = {i: _rank(case) for i, case in seen.cases.items() if case.part != GRADIENTS}
    right = {rank for i, rank in ranks.items() if i in seen.right}
    wrong = {rank for i, rank in ranks.items() if i not in seen.right}
    return bool(right) and not right & wrong


@symptom(
    "overflow: large numbers become nan or infinity",
    "Your function is right for numbers of ordinary size, but gives nan or infinity for large ones.",
    "Which of your lines makes a number so large that a computer cannot hold it?",
    "The exponential of 1000 is infinite. What may you subtract from all scores of a row before taking it?",
)
def overflows(seen: Seen) -> bool:
    """Tell whether only cases with large numbers are wrong, and not finite."""
    wrong = [i for i, case in seen.cases.items() if i not in seen.right and case.part != GRADIENTS]
    return all("large" in seen.cases[i].part for i in wrong) and any(
        not np.isfinite(x).all() for x in seen.answer.arrays.values()
    )


@symptom(
    "nearly right: rounded, or a small constant is added",
    "Your numbers are nearly right, but they are off by more than a computer's rounding would explain.",
    "Is there a line that rounds, that works in float16, or that adds a small number to be safe?",
    "Remove every small constant and every rounding. If something then divides by 0, handle that one case separately.",
)
def inexact(seen: Seen) -> bool:
    """Tell whether the first thing that is wrong is wrong by less than a hundredth."""
    return "nearly right" in seen.broke


@symptom(
    "a factor is wrong",
    "All your numbers are the same multiple of the right ones, so everything is there except for one factor.",
    "Which of your lines multiplies or divides everything by one number, and is it the number in the formula?",
    "Compute the factor by hand for the sizes of the case above, with brackets round every step, and print yours.",
)
def wrong_factor(seen: Seen) -> bool:
    """Tell whether all that is wrong is a factor, the same for all numbers of a case."""
    return "times as large as expected, everywhere" in seen.broke


def _rank(case: Case) -> int:
    """Return the number of dimensions of what a case hands in."""
    return max((x.ndim for name, x in leaves(case.inputs).items() if "[" not in name or "value" in name), default=0)


def recognised(seen: Seen) -> Mistake | None:
    """Return the first symptom that holds, or None."""
    return next((mistake for mistake, holds in SYMPTOMS if holds(seen)), None)
