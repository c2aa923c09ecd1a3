"""Mistakes that can occur in every exercise. Each is recognised by a test of the results, and never guessed.

They are tried if none of the known mistakes of the exercise gives the same results as the student's code.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import named_arrays
from attnlib.checks.catalogue.gradients import GRADIENTS
from attnlib.checks.catalogue.self_attention.sections import ATTENTION
from attnlib.checks.exercise import Mistake


@dataclass(frozen=True)
class Evidence:
    """All that is known about a wrong answer.

    Attributes:
        cases: the cases that were run, by their number.
        answers: the results for them.
        expected: the expected results.
        correct: the numbers of the cases whose results are correct.
        first: the number of the first case whose result is wrong.
        difference: a sentence about how that result differs from the expected one.
        repeated: pairs of cases with the same inputs.
    """

    cases: Mapping[int, Case]
    answers: Mapping[int, Answer]
    expected: Mapping[int, Answer]
    correct: frozenset[int]
    first: int
    difference: str
    repeated: tuple[tuple[int, int], ...] = ()

    @property
    def answer(self) -> Answer:
        """Return the results of the first case that was wrong."""
        return self.answers[self.first]


Predicate = Callable[[Evidence], bool]
GENERAL_MISTAKES: list[tuple[Mistake, Predicate]] = []


def general_mistake(title: str, says: str, hint: str, more: str) -> Callable[[Predicate], Predicate]:
    """Register a mistake. The decorated function, after which it is named, tells whether the evidence shows it."""

    def register(applies: Predicate) -> Predicate:
        identifier = applies.__name__.replace("_", "-")
        GENERAL_MISTAKES.append((Mistake(identifier, title, says, hint, more, ATTENTION, _recognised), applies))
        return applies

    return register


def _recognised(*inputs: object) -> None:
    raise NotImplementedError("recognised from the answers, not by an implementation")


@general_mistake(
    "different numbers at every call",
    "Called twice with the same inputs, your function gives different numbers.",
    "Which of your lines draws random numbers, or keeps something from one call to the next?",
    "Dropout is random, and torch.nn.functional.dropout is switched on unless you say otherwise. A default argument "
    "such as [] or {} and a global variable keep what the previous call left in them.",
)
def differs_between_calls(evidence: Evidence) -> bool:
    """Tell whether two calls with the same inputs gave different results."""
    for i, j in evidence.repeated:
        one, other = evidence.answers[i], evidence.answers[j]
        if one.problem is None and other.problem is None and not _alike(one, other):
            return True
    return False


def _alike(one: Answer, other: Answer) -> bool:
    return one.arrays.keys() == other.arrays.keys() and all(
        x.shape == other.arrays[name].shape and np.allclose(x, other.arrays[name], equal_nan=True)
        for name, x in one.arrays.items()
    )


@general_mistake(
    "the numbers are right, but a gradient is not",
    "The numbers are right, but part of the gradient is lost on the way back from the result.",
    "Which inputs contribute to the result in more than one way? Does each of these paths pass its gradient on?",
    "A part that is detached, or read from .data, or rebuilt from plain numbers, is a constant as far as autograd "
    "is concerned.",
)
def gradient_lost_in_part(evidence: Evidence) -> bool:
    """Tell whether all numbers are right, and there are gradients that are wrong."""
    return evidence.cases[evidence.first].criterion == GRADIENTS and evidence.answer.problem is None


@general_mistake(
    "an argument is changed",
    "The result is right, but after the call one of the arguments is no longer what it was.",
    "Which of your lines write into an array instead of making a new one?",
    "An assignment to x[...], an operator such as +=, a method whose name ends in an underscore, and out= all write "
    "in place.",
)
def changes_an_argument(evidence: Evidence) -> bool:
    """Tell whether the first thing that is wrong is an argument that was changed."""
    return (
        evidence.answer.problem is None
        and bool(evidence.answer.changed)
        and "changed its argument" in evidence.difference
    )


@general_mistake(
    "different numbers in training mode",
    "In training mode, your module gives different numbers from those in evaluation mode. The task does not "
    "ask for that.",
    "Which of your layers behaves differently after module.train() than after module.eval()?",
    "Dropout and batch norm do. Neither of them is in the formula of the task.",
)
def differs_in_training(evidence: Evidence) -> bool:
    """Tell whether the first case that is wrong is the one in training."""
    return evidence.cases[evidence.first].training and evidence.answer.problem is None


@general_mistake(
    "not the results that the task asks for",
    "Your function returns a different kind of result, or a different number of results, than the task asks for.",
    "Compare your return line with the last line of the docstring: how many results are promised, and of what kind?",
    "Print the type of what your function returns and, if it is a tuple, how many items it has.",
)
def other_results(evidence: Evidence) -> bool:
    """Tell whether what was returned is not a result of the expected kind at all."""
    return (evidence.answer.problem or "").startswith("returned")


@general_mistake(
    "a dimension of size 1 is lost",
    "Your result has lost a dimension of size 1. Everything else is there.",
    "Which of your lines removes a dimension, and would it also remove one that belongs to the result?",
    "squeeze() without an axis removes dimensions, and so does indexing with a number. Say which one you mean.",
)
def squeezed(evidence: Evidence) -> bool:
    """Tell whether the first wrong case lacks nothing but dimensions of size 1, and no other case lacks more."""
    return bool(_wrong_shapes(evidence, evidence.first)) and all(
        len(got) < len(want) and [n for n in got if n != 1] == [n for n in want if n != 1]
        for i in evidence.cases
        for got, want in _wrong_shapes(evidence, i)
    )


@general_mistake(
    "a dimension of size 1 too many",
    "Your result has the right sizes, but also one or more extra dimensions of size 1.",
    "How many dimensions does the task ask for? Which of your lines adds an extra one?",
    "None in an index, np.newaxis, expand_dims, unsqueeze and keepdims add dimensions of size 1. So does a 1 in the "
    "shape of an array that you make.",
)
def unsqueezed(evidence: Evidence) -> bool:
    """Tell whether the first wrong case has nothing but dimensions of size 1 too many, and no case has too few."""
    first = _wrong_shapes(evidence, evidence.first)
    return (
        bool(first)
        and all([n for n in got if n != 1] == [n for n in want if n != 1] for got, want in first)
        and all(len(got) > len(want) for i in evidence.cases for got, want in _wrong_shapes(evidence, i))
    )


@general_mistake(
    "the result is flat",
    "All numbers of your result are in a single dimension. The other dimensions that the task asks for are lost.",
    "Which of your lines turns an array of several dimensions into one of a single dimension?",
    "np.append and np.repeat do that unless you pass an axis. ravel(), flatten() and reshape(-1) always do.",
)
def flattened(evidence: Evidence) -> bool:
    """Tell whether every shape that is wrong has one dimension, which in the first case has the expected size."""
    first = _wrong_shapes(evidence, evidence.first)
    return (
        bool(first)
        and all(got == (math.prod(want),) for got, want in first)
        and all(len(got) == 1 for i in evidence.cases for got, _ in _wrong_shapes(evidence, i))
    )


def _wrong_shapes(evidence: Evidence, i: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the shapes of a case that are not as expected, each with the expected one."""
    expected = evidence.expected[i].arrays
    shapes = [(x.shape, expected[name].shape) for name, x in evidence.answers[i].arrays.items()]
    return [(got, want) for got, want in shapes if got != want]


@general_mistake(
    "the result holds only whole numbers",
    "Your result has an integer dtype, so everything after the decimal point is cut off.",
    "What is the dtype of the array that you write your numbers into?",
    "An array made from whole numbers, or by zeros_like from such an array, can hold only whole numbers.",
)
def whole_numbers(evidence: Evidence) -> bool:
    """Tell whether the result has integers where real numbers are expected."""
    expected = evidence.expected[evidence.first].arrays
    return any(x.dtype.kind in "iu" and expected[name].dtype.kind == "f" for name, x in evidence.answer.arrays.items())


@general_mistake(
    "right for only one number of dimensions",
    "Your function relies on a certain number of dimensions: with more leading dimensions, or with fewer, it is wrong.",
    "Which of your lines counts an axis from the front, or unpacks a shape?",
    "Counted from the end, as -1 and -2, axes stay the same whatever comes before them.",
)
def number_of_dimensions(evidence: Evidence) -> bool:
    """Tell whether the number of dimensions decides which cases are right."""
    ranks = {i: _rank(case) for i, case in evidence.cases.items() if case.criterion != GRADIENTS}
    right = {rank for i, rank in ranks.items() if i in evidence.correct}
    wrong = {rank for i, rank in ranks.items() if i not in evidence.correct}
    return bool(right and wrong) and not right & wrong


@general_mistake(
    "overflow: large numbers become nan or infinity",
    "Your function is right for numbers of ordinary size, but gives nan or infinity for large ones.",
    "Which of your lines makes a number too large for a float?",
    "The exponential of 1000 is infinite. What can you subtract from all scores of a row before taking it?",
)
def overflows(evidence: Evidence) -> bool:
    """Tell whether only cases with large numbers are wrong, and not finite."""
    wrong = [i for i, case in evidence.cases.items() if i not in evidence.correct and case.criterion != GRADIENTS]
    return all("large" in evidence.cases[i].criterion for i in wrong) and any(
        not np.isfinite(x).all() for x in evidence.answer.arrays.values()
    )


@general_mistake(
    "nearly right: rounded, or a small constant is added",
    "Your numbers are nearly right, but they are off by more than a computer's rounding would explain.",
    "Is there a line that rounds, that works in float16, or that adds a small number to be safe?",
    "Remove every small constant and every rounding. If something then divides by 0, handle that one case separately.",
)
def inexact(evidence: Evidence) -> bool:
    """Tell whether the first thing that is wrong is wrong by less than a hundredth."""
    got, want = _first_that_differs(evidence)
    near = bool(want.size) and np.abs(got - want).max() < 0.01 * np.abs(want).max()
    return near or "nearly right" in evidence.difference


@general_mistake(
    "a factor is wrong",
    "All your numbers are the same multiple of the right ones, so everything is there except for one factor.",
    "Which of your lines multiplies or divides everything by one number, and is it the number in the formula?",
    "Compute the factor by hand for the sizes of the case above, with parentheses around every step, and print yours.",
)
def wrong_factor(evidence: Evidence) -> bool:
    """Tell whether the only thing that is wrong is a factor, the same for all numbers of a case."""
    return "times as large as expected, everywhere" in evidence.difference


@general_mistake(
    "a number is too large for 32 bits",
    "For large sizes your number is wrong: it differs from the right one by a multiple of 2 to the power of 32.",
    "Which of your numbers has a type that holds only 32 bits?",
    "Python's own integers have no upper limit. np.int32 and torch.int32 stop at 2,147,483,647 and wrap around "
    "to negative numbers.",
)
def ends_at_32_bits(evidence: Evidence) -> bool:
    """Tell whether whole numbers are wrong by multiples of 2**32."""
    return evidence.answer.problem is None and all(
        x.dtype.kind in "iu"
        and x.shape == evidence.expected[evidence.first].arrays[name].shape
        and not ((evidence.expected[evidence.first].arrays[name] - x) % 2**32).any()
        for name, x in evidence.answer.arrays.items()
    )


@general_mistake(
    "nothing but zeros",
    "Every number of your result is 0.",
    "Is the result ever written to, or is it multiplied by something that is always 0?",
    "// rounds down, so that 1 // 2 is 0. A loop over an empty range never runs. np.minimum(x, 0) and np.maximum(x, 0) "
    "cut off everything on one side of 0.",
)
def zeros(evidence: Evidence) -> bool:
    """Tell whether what is wrong is 0 everywhere, in every case that is wrong and has the right shape."""
    wrong = [i for i, case in evidence.cases.items() if i not in evidence.correct and case.criterion != GRADIENTS]
    return "0 everywhere" in evidence.difference and not any(_first_that_differs(evidence, i)[0].any() for i in wrong)


@general_mistake(
    "more comes after the result",
    "Your result begins with everything that is expected, but does not end there.",
    "How many rows or columns should there be in the case above? Which of your lines decides how many there are?",
    "If you make an array that is larger than needed, return only the part that has been filled. Otherwise, look for a "
    "size or a range that goes too far.",
)
def more_after_the_end(evidence: Evidence) -> bool:
    """Tell whether each array of the wrong shape begins with the expected one."""
    return _misshapen_arrays_are(evidence, lambda got, want: _is_part(want, got, first=True))


@general_mistake(
    "the beginning of the result is missing",
    "Your result is only the last part of the expected one. Everything before it is missing.",
    "Which of your lines drops what comes first, or keeps only a certain number of rows?",
    "A slice such as x[-n:] keeps the last n, and a list of limited length forgets its oldest entries.",
)
def beginning_missing(evidence: Evidence) -> bool:
    """Tell whether each array of the wrong shape is the end of the expected one."""
    return _misshapen_arrays_are(evidence, lambda got, want: _is_part(got, want, first=False))


@general_mistake(
    "the end of the result is missing",
    "Your result is only the first part of the expected one. Everything after it is missing.",
    "Where does the number of rows or columns come from in your code? Is a maximum built into it?",
    "A table that is made for a fixed number of rows, such as 512, is too short if more are needed. A slice such "
    "as x[:n] keeps only the first n, and range(n) ends before n.",
)
def end_missing(evidence: Evidence) -> bool:
    """Tell whether each array of the wrong shape is the beginning of the expected one."""
    return _misshapen_arrays_are(evidence, lambda got, want: _is_part(got, want, first=True))


def _misshapen_arrays_are(evidence: Evidence, test: Callable[[NDArray[Any], NDArray[Any]], bool]) -> bool:
    """Tell whether the first wrong case has an array of the wrong shape, and ``test`` is true of all such arrays."""
    answers, expected = evidence.answers, evidence.expected
    pairs = {i: [(x, expected[i].arrays[name]) for name, x in answers[i].arrays.items()] for i in evidence.cases}
    misfits = {i: [(got, want) for got, want in both if got.shape != want.shape] for i, both in pairs.items()}
    return bool(misfits[evidence.first]) and all(test(got, want) for both in misfits.values() for got, want in both)


def _is_part(part: NDArray[Any], whole: NDArray[Any], *, first: bool) -> bool:
    """Tell whether an array is the first, or the last, part of another along the one axis in which they differ."""
    if part.ndim != whole.ndim or not part.size:
        return False
    axes = [axis for axis, (n, of) in enumerate(zip(part.shape, whole.shape, strict=True)) if n != of]
    if len(axes) != 1 or part.shape[axes[0]] > whole.shape[axes[0]]:
        return False
    n, of = part.shape[axes[0]], whole.shape[axes[0]]
    return np.allclose(whole.take(range(n) if first else range(of - n, of), axes[0]), part, equal_nan=True)


@general_mistake(
    "one dimension has the size of another",
    "Your result has as many dimensions as it should, but the size of one of them belongs to another.",
    "For each dimension of your result: which argument does its size come from in your code, and which should it come "
    "from?",
    "There can be more keys than queries, and values can be wider or narrower than keys. If your code makes the result "
    "with np.zeros or np.empty, look at the sizes in that line first.",
)
def size_of_another(evidence: Evidence) -> bool:
    """Tell whether every shape that is wrong differs in one size, which is that of another dimension."""
    return bool(_wrong_shapes(evidence, evidence.first)) and all(
        len(got) == len(want) and _is_another(got, want, evidence.cases[i])
        for i in evidence.cases
        for got, want in _wrong_shapes(evidence, i)
    )


def _is_another(got: tuple[int, ...], want: tuple[int, ...], case: Case) -> bool:
    wrong = [n for n, m in zip(got, want, strict=True) if n != m]
    return len(wrong) == 1 and wrong[0] in _sizes(case)


def _sizes(case: Case) -> set[int]:
    """Return the sizes of all inputs of a case."""
    return {n for x in named_arrays(case.inputs).values() for n in x.shape}


@general_mistake(
    "only the first of a batch is right",
    "In a batch, the result of the first sequence is right, but those of the others are not.",
    "Which of your lines uses the first entry of a batch for all of them, as [0] does, or lets all "
    "sequences share one array?",
    "If you count axes from the end and put an ellipsis (...) first, every sequence of a batch is treated alike.",
)
def first_of_a_batch(evidence: Evidence) -> bool:
    """Tell whether in the first array that is wrong the first entry of three or more dimensions alone is right."""
    got, want = _first_that_differs(evidence)
    return want.ndim > 2 and _right(got, want, 0) == [True] + [False] * (len(want) - 1)


@general_mistake(
    "only the first row is right",
    "The first row of the result is right, but the rows after it are not.",
    "What does your code do for the second row that depends on what it did for the first?",
    "A row can be a query, a position, or a sequence of a batch. A loop goes wrong like this if it writes into what "
    "it still has to read or does not start afresh for each row, and so does code that uses the first row for all.",
)
def first_row(evidence: Evidence) -> bool:
    """Tell whether in every case that is wrong the first row alone is right, and could have been wrong."""
    return _one_row_alone(evidence, 0)


@general_mistake(
    "only the last row is right",
    "The last row of the result is right, but the rows before it are not.",
    "Which variable in your code holds something from the last row, although you use it for all rows?",
    "A variable keeps its last value after its loop has ended. Also, no position comes after the last row, so a "
    "mistake with later positions does not show there.",
)
def last_row_alone(evidence: Evidence) -> bool:
    """Tell whether in every case that is wrong the last row alone is right, and could have been wrong."""
    return _one_row_alone(evidence, -1)


def _one_row_alone(evidence: Evidence, row: int) -> bool:
    """Tell whether in every case that is wrong this row alone, the first or the last, is right."""
    wrong = [i for i, case in evidence.cases.items() if i not in evidence.correct and case.criterion != GRADIENTS]
    found = [(i, *_first_that_differs(evidence, i)) for i in wrong]
    rows = [(got, want) for i, got, want in found if want.ndim > 1 and not _given(evidence.cases[i], want, row)]
    told = [_right(got, want, -2) for got, want in rows if want.shape[-2] > 1]
    return len(told) > 1 and all(right[row] and sum(right) == 1 for right in told)


def _given(case: Case, want: NDArray[Any], row: int) -> bool:
    """Tell whether the expected row holds only 0 and 1, or equals a row of an input: position 0 changes nothing."""
    one = want[..., row, :]
    same = [x[..., row, :] for x in named_arrays(case.inputs).values() if x.shape == want.shape]
    return bool(np.isin(one, (0, 1)).all()) or any(np.allclose(one, x) for x in same)


@general_mistake(
    "only the last row is wrong",
    "All rows of the result are right except the last one.",
    "Where does your loop, or your slice, end?",
    "range(n) and x[:n] end before n. x[:-1] leaves out the last entry.",
)
def last_row(evidence: Evidence) -> bool:
    """Tell whether in the first array that is wrong the last row alone is wrong."""
    got, want = _first_that_differs(evidence)
    return want.ndim > 1 and want.shape[-2] > 2 and _right(got, want, -2) == [True] * (want.shape[-2] - 1) + [False]


@general_mistake(
    "right for small inputs, wrong for large ones",
    "Your function is right as long as there are few rows. With many, it gives different numbers.",
    "Which number in your code is fixed, whatever the inputs: the size of a block or of a table, a limit?",
    "Make that number as small as you can, 1 or 2. Then a small example that you can follow shows what is wrong.",
)
def many_rows(evidence: Evidence) -> bool:
    """Tell whether only cases that are much larger than all others are wrong, and give numbers."""
    numbers = [i for i, case in evidence.cases.items() if case.criterion != GRADIENTS]
    wrong = [max(_sizes(evidence.cases[i]), default=0) for i in numbers if i not in evidence.correct]
    right = [max(_sizes(evidence.cases[i]), default=0) for i in numbers if i in evidence.correct]
    return evidence.answer.problem is None and min(wrong, default=0) > 4 * max(right, default=0) > 0


def _first_that_differs(evidence: Evidence, i: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first array of a case that has the right shape but wrong numbers, with the expected one.

    Without such an array both are empty. The case is the first wrong one, unless it is given.
    """
    i = evidence.first if i is None else i
    expected = evidence.expected[i].arrays
    for name, got in reversed(evidence.answers[i].arrays.items()):
        want = expected[name]
        if got.shape != want.shape:
            break
        if want.dtype.kind == "f" and not np.allclose(got, want, equal_nan=True):
            return got, want
    return np.empty(0), np.empty(0)


def _right(got: NDArray[Any], want: NDArray[Any], axis: int) -> list[bool]:
    """Return which entries along an axis are right, or nothing if the axis has fewer than two."""
    near = np.isclose(got, want, equal_nan=True).swapaxes(0, axis)
    return [bool(one.all()) for one in near] if len(near) > 1 else []


def _rank(case: Case) -> int:
    """Return the largest number of dimensions among the inputs of a case."""
    arrays = named_arrays(case.inputs).items()
    return max((x.ndim for name, x in arrays if "[" not in name or "value" in name), default=0)


def recognise_general_mistake(evidence: Evidence) -> Mistake | None:
    """Return the first mistake that the evidence shows, or None."""
    with np.errstate(all="ignore"):
        return next((mistake for mistake, applies in GENERAL_MISTAKES if applies(evidence)), None)
