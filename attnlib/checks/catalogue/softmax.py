"""softmax(x, axis=-1)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.catalogue.sections import OVERFLOW, SOFTMAX
from attnlib.checks.exercise import Case, Exercise, Mistakes

NUMBERS, AXES, LARGE, UNCHANGED = "the numbers", "every axis", "large scores", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the row worked by hand in the book, then tables, axes, ranks, and large scores."""
    table = rng.normal(size=(3, 5))
    yield Case("the row log 1, log 2, log 5", NUMBERS, {"x": np.log([1.0, 2.0, 5.0])})
    yield Case("a table of 3 rows and 5 columns", NUMBERS, {"x": table})
    yield Case("one single score", NUMBERS, {"x": rng.normal(size=(1, 1))})
    yield Case("a table in float32", NUMBERS, {"x": rng.normal(size=(5, 2)).astype(np.float32)})
    yield Case("a table with axis=0", AXES, {"x": rng.normal(size=(5, 3))}, {"axis": 0})
    yield Case("a stack of tables of shape (2, 3, 5)", AXES, {"x": rng.normal(size=(2, 3, 5))})
    yield Case("a stack of tables with axis=1", AXES, {"x": rng.normal(size=(2, 5, 3))}, {"axis": 1})
    yield Case("scores around 10 000", LARGE, {"x": 1e4 + rng.normal(size=(3, 4))})
    yield Case("scores around -10 000", LARGE, {"x": -1e4 + rng.normal(size=(4, 3))})
    yield Case("one row around 10 000, one around -10 000", LARGE, {"x": np.array([[1e4], [-1e4]]) + table[:2]})
    yield Case("scores from -1000 to 1000 in one row", LARGE, {"x": np.array([0.0, 1000.0, -1000.0, 999.0])})
    yield Case("a table that must stay as it is", UNCHANGED, {"x": rng.normal(size=(4, 5))}, unchanged=True)


@MISTAKES.add(
    "overflows for large scores",
    hint="Adding the same number to every score of a row leaves its softmax as it is. Which number makes exp safe?",
    section=OVERFLOW,
)
def no_shift(x, axis=-1):
    """The formula is right on paper. But a computer's exp(1000) is infinite, and infinity over infinity is nan."""
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the maximum is that of the whole table",
    hint="Every row needs its own maximum: which two arguments of max say so?",
    section=OVERFLOW,
)
def global_shift(x, axis=-1):
    """One maximum for all rows shifts a much smaller row so far down that all of its exponentials are 0: 0/0 is nan."""
    e = np.exp(x - x.max())
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the minimum is subtracted",
    hint="After the shift every score should be 0 or less, so that exp stays at most 1.",
    section=OVERFLOW,
)
def shift_by_minimum(x, axis=-1):
    """Subtracting the minimum protects against nothing: it is the largest score of a row that overflows."""
    e = np.exp(x - x.min(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the mean is subtracted",
    hint="After the shift every score should be 0 or less, so that exp stays at most 1.",
    section=OVERFLOW,
)
def shift_by_mean(x, axis=-1):
    """Subtracting the mean helps only while the scores of a row lie close together: the largest can still overflow."""
    e = np.exp(x - x.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "nan is painted over",
    hint="Which of the scores is the largest, and what weight did it get from you?",
    section=OVERFLOW,
)
def nan_to_num(x, axis=-1):
    """Where exp overflowed, nan was replaced by a number. That hides the overflow, and the weights are still wrong."""
    e = np.exp(x)
    return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "the scores are cut off",
    hint="1000 and 999 become the same number once they are cut off. Which operation keeps their difference?",
    section=OVERFLOW,
)
def clipped(x, axis=-1):
    """Scores beyond a limit are cut down to it, so different large scores get the same weight."""
    e = np.exp(np.clip(x, -500, 500))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the axis is ignored",
    hint="Follow `axis` through every line: the maximum and the sum both need it.",
    section=SOFTMAX,
)
def ignores_axis(x, axis=-1):
    """The weights always sum to 1 along the last axis, whatever `axis` says."""
    return attnlib.softmax(x, -1)


@MISTAKES.add(
    "normalised along the first axis",
    hint="In a table of scores each row belongs to one query. Along which axis do the weights of one query lie?",
    section=SOFTMAX,
)
def first_axis(x, axis=-1):
    """The weights sum to 1 down the first axis, whatever `axis` says."""
    return attnlib.softmax(x, 0)


@MISTAKES.add(
    "normalised over the whole array",
    hint="A sum without an axis adds up everything. Which sum belongs under each row?",
    section=SOFTMAX,
)
def whole_array(x, axis=-1):
    """All weights of all rows together sum to 1, but every row should sum to 1 by itself."""
    e = np.exp(x - x.max())
    return e / e.sum()


@MISTAKES.add(
    "a dimension was lost",
    hint="Print the shape of the sum beside that of the scores: what does keepdims=True change?",
    section=SOFTMAX,
)
def no_keepdims(x, axis=-1):
    """A sum (or a maximum) has one dimension less than the scores, so it no longer lines up with the rows."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)


@MISTAKES.add(
    "not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    section=SOFTMAX,
)
def not_normalised(x, axis=-1):
    """These are exponentials, not weights: nothing makes them sum to 1."""
    return np.exp(x)


@MISTAKES.add(
    "shifted, but not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    section=SOFTMAX,
)
def shifted_not_normalised(x, axis=-1):
    """The exponentials are safe now, but nothing makes them sum to 1."""
    return np.exp(x - x.max(axis=axis, keepdims=True))


@MISTAKES.add(
    "normalised without the exponential",
    hint="Two scores of -1 and 1 sum to 0. What makes every score positive first, and keeps their order?",
    section=SOFTMAX,
)
def no_exponential(x, axis=-1):
    """Dividing scores by their sum gives negative weights for negative scores, and divides by 0 where they cancel."""
    return x / x.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other. Where do the other scores enter in yours?",
    section=SOFTMAX,
)
def sigmoid(x, axis=-1):
    """This is the sigmoid: each score is squashed on its own, and nothing makes the weights of a row sum to 1."""
    return 1 / (1 + np.exp(-x))


@MISTAKES.add(
    "the logarithm of the softmax",
    hint="Weights lie between 0 and 1; yours are negative. Which last step is one too many?",
    section=SOFTMAX,
)
def log_softmax(x, axis=-1):
    """These are the logarithms of the weights, not the weights."""
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "the sign is reversed",
    hint="Which of two scores should get the larger weight, the larger or the smaller?",
    section=SOFTMAX,
)
def softmin(x, axis=-1):
    """The largest score gets the smallest weight: somewhere a minus sign is too many."""
    return attnlib.softmax(-x, axis)


@MISTAKES.add(
    "base 2 instead of e",
    hint="Compare exp(1) with what your function uses for a score of 1.",
    section=SOFTMAX,
)
def base_two(x, axis=-1):
    """The weights sum to 1, but they are built from 2**x. The softmax is built from e**x."""
    return attnlib.softmax(x * np.log(2), axis)


@MISTAKES.add(
    "divided by the largest instead of the sum",
    hint="Your largest weight is always 1. What should the whole row come to?",
    section=SOFTMAX,
)
def divided_by_largest(x, axis=-1):
    """Dividing by the largest exponential makes the largest weight 1, not the sum of the row."""
    e = np.exp(x)
    return e / e.max(axis=axis, keepdims=True)


@MISTAKES.add(
    "all or nothing (argmax)",
    hint="Softmax means a soft maximum: the second-best score still gets a share.",
    section=SOFTMAX,
)
def argmax(x, axis=-1):
    """The best score gets all the weight: that is the maximum itself, not its soft version."""
    return (x == x.max(axis=axis, keepdims=True)).astype(x.dtype)


@MISTAKES.add(
    "the maximum divides instead of being subtracted",
    hint="exp(x - m) = exp(x) / exp(m), so a shift cancels in the fraction. Does a division of x cancel as well?",
    section=OVERFLOW,
)
def divided_by_maximum(x, axis=-1):
    """Dividing the scores by their maximum changes the weights. Only a shift leaves them as they are."""
    return attnlib.softmax(x / x.max(axis=axis, keepdims=True), axis)


@MISTAKES.add(
    "softmax taken twice",
    hint="Count how often exp is applied to each score.",
    section=SOFTMAX,
)
def twice(x, axis=-1):
    """The softmax of a softmax is nearly uniform, since its scores all lie between 0 and 1."""
    return attnlib.softmax(attnlib.softmax(x, axis), axis)


@MISTAKES.add(
    "the standard deviation divides the scores",
    hint="The softmax of [0, 1] and that of [0, 10] differ. With a standardisation they do not.",
    section=SOFTMAX,
)
def standardised(x, axis=-1):
    """Standardising the scores first makes every row equally sharp. The softmax keeps the size of the differences."""
    return attnlib.softmax((x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True), axis)


@MISTAKES.add(
    "changes the array it was given",
    hint="Some operators make a new array, others write into the one they are given. Which of yours write?",
    section=SOFTMAX,
)
def in_place(x, axis=-1):
    """The weights are right, but the scores of whoever called your function are gone: it wrote into its argument."""
    x -= x.max(axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=axis, keepdims=True)
    return x


EXERCISE = Exercise(
    name="softmax",
    reference=attnlib.softmax,
    outputs={"weights": ()},
    parts={NUMBERS: 3, AXES: 2, LARGE: 2, UNCHANGED: 1},
    section=SOFTMAX,
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
