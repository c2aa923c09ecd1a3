"""softmax(x, axis=-1)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.self_attention.sections import OVERFLOW, SOFTMAX
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, AXES, LARGE, UNCHANGED = "the numbers", "every axis", "large scores", "inputs unchanged"
WHOLE = "whole numbers"
MISTAKES = Mistakes()


def softmax(x: Any, axis: int = -1) -> Any:
    """Return attnlib's softmax, which takes real numbers only, of whole numbers too."""
    return attnlib.softmax(1.0 * x, axis)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the row worked by hand in the book, then tables, axes, ranks, and large scores."""
    table = rng.normal(size=(3, 5))
    yield Case("the row log 1, log 2, log 5", NUMBERS, {"x": np.log([1.0, 2.0, 5.0])})
    yield Case("a table of 3 rows and 5 columns", NUMBERS, {"x": table})
    yield Case("a single score", NUMBERS, {"x": rng.normal(size=(1, 1))})
    yield Case("a table in float32", NUMBERS, {"x": rng.normal(size=(5, 2)).astype(np.float32)})
    ties = rng.permuted([[2.0, 0.5, 2.0, -1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, -3.0, -3.0]], axis=1)
    yield Case("scores, some of them repeated", NUMBERS, {"x": ties})
    yield Case("a table with axis=0", AXES, {"x": rng.normal(size=(5, 3))}, {"axis": 0})
    yield Case("a row with axis=0", AXES, {"x": rng.normal(size=4)}, {"axis": 0})
    yield Case("a stack of tables of shape (2, 3, 5)", AXES, {"x": rng.normal(size=(2, 3, 5))})
    yield Case("a stack of tables with axis=1", AXES, {"x": rng.normal(size=(2, 5, 3))}, {"axis": 1})
    yield Case("a stack of stacks with axis=-2", AXES, {"x": rng.normal(size=(2, 3, 5, 4))}, {"axis": -2})
    yield Case("a table that is a transposed view", AXES, {"x": rng.normal(size=(6, 4)).T})
    yield Case("scores around 10 000", LARGE, {"x": 1e4 + rng.normal(size=(3, 4))})
    yield Case("scores around -10 000", LARGE, {"x": -1e4 + rng.normal(size=(4, 3))})
    yield Case("one row around 10 000, one around -10 000", LARGE, {"x": np.array([[1e4], [-1e4]]) + table[:2]})
    yield Case("scores from -1000 to 1000 in one row", LARGE, {"x": np.array([0.0, 1000.0, -1000.0, 999.0])})
    yield Case("the row 1, 0, -2000", LARGE, {"x": np.array([1.0, 0.0, -2000.0])})
    yield Case("a table that must stay as it is", UNCHANGED, {"x": rng.normal(size=(4, 5))}, unchanged=True)
    whole = {"x": rng.integers(-4, 5, size=(3, 4))}
    yield Case("whole numbers, of dtype int64", WHOLE, whole, backends=("numpy",))


# What overflows ------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "overflows for large scores",
    hint="Adding the same number to every score of a row leaves its softmax as it is. Which number makes exp safe?",
    more="Try the row [1000, 999] on paper, then the row [0, -1]. Both have the same differences, so the same weights. "
    "What did you subtract to get from the first to the second, and at which place in your function does it belong?",
    section=OVERFLOW,
)
def no_shift(x, axis=-1):
    """The formula is right on paper. But a computer's exp(1000) is infinite, and infinity over infinity is nan."""
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the maximum is that of the whole table",
    hint="Every row needs its own maximum: which two arguments of max say so?",
    more="Take the two rows [0, 1] and [-2000, -2001]. Subtract 1 from everything and look at the second row: all of "
    "its exponentials are 0. The sum runs along the right axis; check whether the maximum does too.",
    section=OVERFLOW,
)
def global_shift(x, axis=-1):
    """One maximum for all rows shifts a much smaller row so far down that all of its exponentials are 0: 0/0 is nan."""
    e = np.exp(x - x.max())
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the minimum is subtracted",
    hint="After the shift every score should be 0 or less, so that exp stays at most 1.",
    more="Shift the row [-1000, 0, 1000] as your function does, and write the three results down. For which of them "
    "does exp overflow? Then shift it so that the largest becomes 0.",
    section=OVERFLOW,
)
def shift_by_minimum(x, axis=-1):
    """Subtracting the minimum protects against nothing: it is the largest score of a row that overflows."""
    e = np.exp(x - x.min(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the mean is subtracted",
    hint="After the shift every score should be 0 or less, so that exp stays at most 1.",
    more="The mean of [-1000, 0, 1000] is 0, so nothing moves at all. Which number of the row has to move to 0, so "
    "that none is left above it?",
    section=OVERFLOW,
)
def shift_by_mean(x, axis=-1):
    """Subtracting the mean helps only while the scores of a row lie close together: the largest can still overflow."""
    e = np.exp(x - x.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the largest absolute value is subtracted, not the largest score",
    hint="Of the scores -3 and -5, which is the largest, and which has the largest absolute value?",
    more="Shift the row [-1000, -1001] as your function does: both end up near -2000, and both exponentials are 0. "
    "Look at what happens to the scores before their maximum is taken: does the sign survive?",
    section=OVERFLOW,
)
def shift_by_largest_size(x, axis=-1):
    """The largest absolute value was subtracted. For negative scores that shifts them down, not up, and 0/0 is nan."""
    e = np.exp(x - np.abs(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the maximum is added, not subtracted",
    hint="After the shift every score should be 0 or less. Is it, in yours?",
    more="Shift the row [1000, 999] as your function does, and write the two results down. For which of them does exp "
    "overflow?",
    section=OVERFLOW,
)
def maximum_added(x, axis=-1):
    """Small scores come out right, since any shift cancels. But adding the maximum makes large scores larger."""
    e = np.exp(x + x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the mean of the whole table is subtracted",
    hint="After the shift every score should be 0 or less, row by row.",
    more="Take the rows [1000, 999] and [-1000, -999]: the mean of all four is 0, so nothing moves. Which number of "
    "each row has to become 0?",
    section=OVERFLOW,
)
def shift_by_mean_of_all(x, axis=-1):
    """One mean for the whole table was subtracted. A row that lies far from it overflows, or vanishes, as before."""
    e = np.exp(x - x.mean())
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "only the numerator is shifted",
    hint="A shift cancels in the fraction only if both numerator and denominator have it.",
    more="Take the row [0, 1]. Write down the numerator and the denominator in your function. Which of the two was "
    "made from the shifted scores, and which from the others?",
    section=OVERFLOW,
)
def shifted_above_only(x, axis=-1):
    """The exponentials in the numerator are shifted, those in the denominator are not: the weights do not sum to 1."""
    return np.exp(x - x.max(axis=axis, keepdims=True)) / np.exp(x).sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "only the denominator is shifted",
    hint="A shift cancels in the fraction only if both numerator and denominator have it.",
    more="Take the row [0, 1]. Write down the numerator and the denominator in your function. Which of the two was "
    "made from the shifted scores, and which from the others?",
    section=OVERFLOW,
)
def shifted_below_only(x, axis=-1):
    """The exponentials in the denominator are shifted, those in the numerator are not: the weights do not sum to 1."""
    return np.exp(x) / np.exp(x - x.max(axis=axis, keepdims=True)).sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "nan is painted over",
    hint="Which of the scores is the largest, and what weight did it get from you?",
    more="The row [1000, 999] should have weights of about 0.73 and 0.27. Yours are 0 and 0. Keep the overflow from "
    "happening instead of repairing it afterwards: what can be subtracted from a row without changing its weights?",
    section=OVERFLOW,
)
def nan_to_num(x, axis=-1):
    """Where exp overflowed, nan was replaced by a number. That hides the overflow, and the weights are still wrong."""
    e = np.exp(x)
    return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "the scores are cut off",
    hint="1000 and 999 become the same number once they are cut off. Which operation keeps their difference?",
    more="The weights of [1000, 999] and of [1, 0] are the same, about 0.73 and 0.27. Compare what becomes of the two "
    "rows in the line that cuts. A shift would have made them equal and kept the difference of 1.",
    section=OVERFLOW,
)
def clipped(x, axis=-1):
    """Scores beyond a limit are cut down to it, so different large scores get the same weight."""
    e = np.exp(np.clip(x, -500, 500))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the maximum divides instead of being subtracted",
    hint="exp(x - m) = exp(x) / exp(m), so a shift cancels in the fraction. Does a division of x cancel as well?",
    more="Take the scores [0, 2]. Divide them by their maximum and take the softmax; then subtract the maximum and "
    "take it. Only one of the two rows of weights is that of [0, 2]: 0.12 and 0.88.",
    section=OVERFLOW,
)
def divided_by_maximum(x, axis=-1):
    """Dividing the scores by their maximum changes the weights. Only a shift leaves them as they are."""
    return attnlib.softmax(x / x.max(axis=axis, keepdims=True), axis)


# Which axis ----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the axis is ignored",
    hint="Follow `axis` through every line: the maximum and the sum both need it.",
    more="Ask for axis=0 of a table and add up each column of your result, then each row. Which of the two sums is 1, "
    "and which should it be? Then look for a line that always takes the last axis.",
    section=SOFTMAX,
)
def ignores_axis(x, axis=-1):
    """The weights always sum to 1 along the last axis, whatever `axis` says."""
    return softmax(x, -1)


@MISTAKES.add(
    "normalised along the first axis",
    hint="In a table of scores each row belongs to one query. Along which axis do the weights of one query lie?",
    more="Add up each row of your result for a small table, then each column. The columns come to 1, and the rows "
    "should. Which axis do your maximum and your sum run along, and what does `axis` say if nobody sets it?",
    section=SOFTMAX,
)
def first_axis(x, axis=-1):
    """The weights sum to 1 down the first axis. If no axis is given, the last one is meant."""
    return softmax(x, 0)


@MISTAKES.add(
    "axis 1 instead of the last one",
    hint="Which axes does a single row have? Follow `axis` through every line.",
    more="A table has the axes 0 and 1, a single row only the axis 0, and in a stack of tables axis 1 is not the last "
    "one. Look for a 1 where the argument, or the default of -1, should be.",
    section=SOFTMAX,
)
def axis_one(x, axis=-1):
    """Axis 1 is the last one of a table.

    A single row has no such axis, and in a stack of tables it is a different one.
    """
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@MISTAKES.add(
    "normalised over the whole array",
    hint="A sum without an axis adds up everything. Which sum belongs under each row?",
    more="For a table of 3 rows, how many sums should there be: one, or three? Print the shape of yours.",
    section=SOFTMAX,
)
def whole_array(x, axis=-1):
    """All weights of all rows together sum to 1, but every row should sum to 1 by itself."""
    e = np.exp(x - x.max())
    return e / e.sum()


@MISTAKES.add(
    "the sum ignores the axis",
    hint="The maximum follows `axis`. Does the sum?",
    more="For axis=0 of a table, add up each column of your weights. Each should come to 1. Then look for a sum that "
    "always takes the last axis.",
    section=SOFTMAX,
)
def sum_ignores_axis(x, axis=-1):
    """The maximum runs along `axis`, the sum always along the last one. Both should run along the given axis."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@MISTAKES.add(
    "the lost dimension is put back at the end",
    hint="Where in the shape was the summed dimension before it was lost?",
    more="For a table of shape (5, 3) and axis=0 there are 3 sums, one for each column. Put back at the end they "
    "have the shape (3, 1), but (1, 3) is needed.",
    section=SOFTMAX,
)
def put_back_at_the_end(x, axis=-1):
    """The dimension that a sum loses was put back at the end. That is its place only for the last axis."""
    e = np.exp(x - x.max(axis=axis)[..., None])
    return e / e.sum(axis=axis)[..., None]


@MISTAKES.add(
    "the maximum ignores the axis",
    hint="The sum follows `axis`. Does the maximum?",
    more="For axis=0 of a table, each column is shifted by one number, the largest of the column. Which numbers "
    "did you subtract from the first column: one and the same, or a different one in each row?",
    section=OVERFLOW,
)
def maximum_ignores_axis(x, axis=-1):
    """The sum runs along `axis`, the maximum always along the last one. The shift cancels only along the same axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the maximum is that of the columns",
    hint="A shift cancels only where every score of a row was shifted by the same number. Is it the same in yours?",
    more="Take a table of two rows. Print what you subtract from it: is it one number for each row, or one for each "
    "column? Compare with the shape of the sum.",
    section=OVERFLOW,
)
def maximum_of_columns(x, axis=-1):
    """The maximum was taken down the columns, the sum along the rows. So scores of one row are shifted differently."""
    e = np.exp(x - x.max(axis=0, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the sum is that of the columns",
    hint="Which of your two, the maximum or the sum, runs along the rows?",
    more="Add up each row of your result, then each column. Compare the axis in the line with the maximum with the one "
    "in the line with the sum: both are the axis that was passed.",
    section=SOFTMAX,
)
def sum_of_columns(x, axis=-1):
    """The maximum was taken along the rows, the sum down the columns. Both belong along the same axis."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


@MISTAKES.add(
    "a dimension was lost",
    hint="Print the shape of the sum beside that of the scores: what does keepdims=True change?",
    more="For a table of 3 rows and 5 columns there are 3 sums. To be put under the 3 rows, they have to be in a "
    "column, in an array of shape (3, 1). What shape do they have in your function?",
    section=SOFTMAX,
)
def no_keepdims(x, axis=-1):
    """A sum (or a maximum) has one dimension less than the scores, so it no longer lines up with the rows."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)


@MISTAKES.add(
    "the axis was moved, and not moved back",
    hint="The weights have the same shape as the scores. Do yours, for axis=0?",
    more="You turned the array so that the axis came last. Print the shape of what you return for a table of shape "
    "(5, 3) and axis=0. What is the last step, the one that undoes the first?",
    section=SOFTMAX,
)
def not_moved_back(x, axis=-1):
    """The weights are right, but their axes are in a different order from those of the scores."""
    return softmax(np.moveaxis(x, axis, -1))


@MISTAKES.add(
    "right only for tables",
    hint="A single row has one dimension, a stack of tables three. How many does your code count on?",
    more="The sum of a single row is one number, which cannot be turned into a column any more. There is a way to "
    "keep the summed dimension, with size 1, whatever the shape: reread what the chapter says about columns.",
    section=SOFTMAX,
)
def for_tables(x, axis=-1):
    """The dimension that was lost in the sum is put back in a way that fits tables, and no other shape."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)[:, None]


# What is done to the scores ------------------------------------------------------------------------------------------


@MISTAKES.add(
    "not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    more="Work the row [0, log 3] by hand: the exponentials are 1 and 3. They are positive, but are they shares of 1? "
    "One step is left.",
    section=SOFTMAX,
)
def not_normalised(x, axis=-1):
    """These are exponentials, not weights: nothing makes them sum to 1."""
    return np.exp(x)


@MISTAKES.add(
    "shifted, but not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    more="Work the row [0, log 3] by hand: after the shift the exponentials are 1/3 and 1. They are safe and positive, "
    "but are they shares of 1? One step is left.",
    section=SOFTMAX,
)
def shifted_not_normalised(x, axis=-1):
    """The exponentials are safe now, but nothing makes them sum to 1."""
    return np.exp(x - x.max(axis=axis, keepdims=True))


@MISTAKES.add(
    "normalised without the exponential",
    hint="Two scores of -1 and 1 sum to 0. What makes every score positive first, and keeps their order?",
    more="Work the first case by hand: the scores are log 1 = 0, log 2 and log 5, and the weights are 1/8, 2/8 and "
    "5/8. Where do the 1, the 2 and the 5 come from?",
    section=SOFTMAX,
)
def no_exponential(x, axis=-1):
    """Dividing scores by their sum gives negative weights for negative scores, and divides by 0 where they cancel."""
    return x / x.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "shifted and normalised, without the exponential",
    hint="Your largest score has weight 0. Which step would have made it the largest weight?",
    more="After the shift the scores of [0, log 3] are -log 3 and 0. Dividing these by their sum gives 1 and 0, the "
    "wrong way round. What belongs between the shift and the division?",
    section=SOFTMAX,
)
def shifted_no_exponential(x, axis=-1):
    """The scores were shifted and divided by their sum. The exponential in between is missing."""
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted / shifted.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "stretched from 0 to 1",
    hint="Your smallest weight is 0 and your largest is 1. What should the whole row come to?",
    more="Work the row [0, log 3] by hand with the formula of the task: exponentials, their sum, the fractions. The "
    "result is 1/4 and 3/4, and the smaller score keeps a share.",
    section=SOFTMAX,
)
def min_max(x, axis=-1):
    """The scores were moved and stretched to lie between 0 and 1. A softmax gives weights that sum to 1."""
    low, high = x.min(axis=axis, keepdims=True), x.max(axis=axis, keepdims=True)
    return (x - low) / (high - low)


@MISTAKES.add(
    "squares instead of exponentials",
    hint="Which of the scores -3 and 1 should get the larger weight?",
    more="A square makes every score positive, but it makes a large one of -3. Look for a function that is always "
    "positive and keeps the order.",
    section=SOFTMAX,
)
def squares(x, axis=-1):
    """Squares are positive, but they lose the sign: a very negative score gets a large weight."""
    return x**2 / (x**2).sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "absolute values instead of exponentials",
    hint="Which of the scores -3 and 1 should get the larger weight?",
    more="In absolute value -3 is larger than 1, but as a score it is smaller. Look for a function that is always "
    "positive and keeps the order of the scores.",
    section=SOFTMAX,
)
def sizes(x, axis=-1):
    """Absolute values are positive, but they lose the sign: a very negative score gets a large weight."""
    return np.abs(x) / np.abs(x).sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "normalised before the exponential",
    hint="Two steps: make everything positive, then divide by the sum. In which order are yours?",
    more="Add up a row of your result: it is not 1. Whatever comes after the division changes the sum again, so which "
    "step has to be the last?",
    section=SOFTMAX,
)
def exponential_last(x, axis=-1):
    """The scores were divided by their sum, and then came the exponential. The division has to be the last step."""
    return np.exp(x / x.sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other. Where do the other scores enter in yours?",
    more="Change one score of a row and compare your weights before and after. Which of them changed, and which of "
    "them should have?",
    section=SOFTMAX,
)
def sigmoid(x, axis=-1):
    """This is the sigmoid: each score is squashed on its own, and nothing makes the weights of a row sum to 1."""
    return 1 / (1 + np.exp(-x))


@MISTAKES.add(
    "sigmoids, normalised",
    hint="One point more should be worth the same factor wherever the scores lie. Is it, in yours?",
    more="Compare the scores [0, 1] and [10, 11]. They have the same difference, so they have the same weights, 0.27 "
    "and 0.73. What do you get for the second row?",
    section=SOFTMAX,
)
def sigmoid_normalised(x, axis=-1):
    """The rows sum to 1, but they are made of sigmoids, which flatten large scores. A softmax is made of exp."""
    s = 1 / (1 + np.exp(-x))
    return s / s.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the logarithm of the softmax",
    hint="Weights lie between 0 and 1; yours are negative. Which last step is one too many?",
    more="For [0, log 3] the weights are 1/4 and 3/4, and you return -1.39 and -0.29: their logarithms. Find the "
    "logarithm in your function, or the exponential that should undo it.",
    section=SOFTMAX,
)
def log_softmax(x, axis=-1):
    """These are the logarithms of the weights, not the weights."""
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "the sign is reversed",
    hint="Which of two scores should get the larger weight, the larger or the smaller?",
    more="For [0, log 3] you give 3/4 to the first. Look at what goes into the exponential: is it the score minus the "
    "maximum, or the maximum minus the score?",
    section=SOFTMAX,
)
def softmin(x, axis=-1):
    """The largest score gets the smallest weight: there is one minus sign too many."""
    return softmax(-x, axis)


@MISTAKES.add(
    "base 2 instead of e",
    hint="Compare exp(1) with what your function uses for a score of 1.",
    more="For [0, 1] your weights are 1/3 and 2/3, so one point more is worth the factor 2. In a softmax it is worth "
    "2.718. Which power do you compute?",
    section=SOFTMAX,
)
def base_two(x, axis=-1):
    """The weights sum to 1, but they are built from 2**x. The softmax is built from e**x."""
    return attnlib.softmax(x * np.log(2), axis)


@MISTAKES.add(
    "base 10 instead of e",
    hint="Compare exp(1) with what your function uses for a score of 1.",
    more="For [0, 1] your weights are 1/11 and 10/11, so one point more is worth the factor 10. In a softmax it is "
    "worth 2.718. Which power do you compute?",
    section=SOFTMAX,
)
def base_ten(x, axis=-1):
    """The weights sum to 1, but they are built from 10**x. The softmax is built from e**x."""
    return attnlib.softmax(x * np.log(10), axis)


@MISTAKES.add(
    "exp minus 1",
    hint="What weight does your function give a score of 0, and what should it give?",
    more="The first score of the first case is 0, and its exponential is 1. Find the place where your function has 0 "
    "for it: a function with a similar name computes exp and then subtracts 1.",
    section=SOFTMAX,
)
def exponential_minus_one(x, axis=-1):
    """This is the exponential minus 1, which is 0 for a score of 0 and negative for lower scores.

    The task asks for the exponential.
    """
    return np.expm1(x) / np.expm1(x).sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "divided by the largest instead of the sum",
    hint="Your largest weight is always 1. What should the whole row come to?",
    more="For [0, log 3] the exponentials are 1 and 3. You divide both by 3. What do they have to be divided by to "
    "become shares of 1?",
    section=SOFTMAX,
)
def divided_by_largest(x, axis=-1):
    """Dividing by the largest exponential makes the largest weight 1, not the sum of the row."""
    e = np.exp(x)
    return e / e.max(axis=axis, keepdims=True)


@MISTAKES.add(
    "divided by the mean instead of the sum",
    hint="What does each of your rows sum to? Compare with the number of its scores.",
    more="For [0, log 3] the exponentials are 1 and 3. You divide by 2, their mean, so the row sums to 2. Which "
    "divisor makes it sum to 1?",
    section=SOFTMAX,
)
def divided_by_mean(x, axis=-1):
    """Dividing by the mean of the exponentials makes the mean of the weights 1. It is their sum that has to be 1."""
    e = np.exp(x)
    return e / e.mean(axis=axis, keepdims=True)


@MISTAKES.add(
    "divided by the Euclidean length",
    hint="The squares of your weights sum to 1. What should sum to 1?",
    more="For [0, log 3] the exponentials are 1 and 3. You divide by the root of 1 + 9. What do they have to be "
    "divided by to become shares of 1?",
    section=SOFTMAX,
)
def divided_by_length(x, axis=-1):
    """The exponentials were divided by their length as a vector, the root of the sum of squares, not by their sum."""
    e = np.exp(x)
    return e / np.sqrt((e**2).sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "divided by the sum of the scores",
    hint="What is added up in the denominator: the scores, or their exponentials?",
    more="For [0, log 3] the exponentials are 1 and 3, and their sum is 4. You divide by log 3, the sum of the scores.",
    section=SOFTMAX,
)
def divided_by_scores(x, axis=-1):
    """The exponentials were divided by the sum of the scores. It is their own sum that makes them shares of 1."""
    return np.exp(x) / x.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "shifted, and divided by the sum of the scores",
    hint="What is added up in the denominator: the scores, or their exponentials?",
    more="For [0, log 3] the shifted exponentials are 1/3 and 1, and their sum is 4/3. You divide by log 3, the sum "
    "of the scores.",
    section=SOFTMAX,
)
def shifted_over_scores(x, axis=-1):
    """The shifted exponentials were divided by the sum of the scores. Their own sum makes them shares of 1."""
    return np.exp(x - x.max(axis=axis, keepdims=True)) / x.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "the exponential of the sum, not the sum of the exponentials",
    hint="Which comes first in the denominator: the exponential, or the sum?",
    more="For [0, log 3] the exponentials are 1 and 3, and their sum is 4. You divide by 3, the exponential of 0 + "
    "log 3.",
    section=SOFTMAX,
)
def exponential_of_sum(x, axis=-1):
    """The scores were added up, and the exponential came after. Each score has its own, and these are added up."""
    return np.exp(x - x.sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "the scores lose their sign",
    hint="Which of the scores -3 and 1 should get the larger weight?",
    more="Compare your weights for the scores [-2, 1] with those for [2, 1]. They should not be the same. Where does "
    "the minus sign get lost?",
    section=SOFTMAX,
)
def softmax_of_sizes(x, axis=-1):
    """The softmax was taken of the absolute values of the scores. So a very negative score gets a large weight."""
    return softmax(np.abs(x), axis)


@MISTAKES.add(
    "each score is left out of its own sum",
    hint="For one weight, which exponentials are in the denominator: those of the other scores, or all of them?",
    more="For two equal scores each weight should be 1/2. What is it in yours, and which term of the sum is missing?",
    section=SOFTMAX,
)
def odds(x, axis=-1):
    """Each exponential is divided by the sum of the others. Its own belongs to the sum as well."""
    e = np.exp(x)
    return e / (e.sum(axis=axis, keepdims=True) - e)


@MISTAKES.add(
    "a 1 too many in the sum",
    hint="What does each of your rows sum to, and what is missing?",
    more="For a single score the weight has to be exactly 1. Yours is less. Look at what is added to the sum of the "
    "exponentials: the sum alone belongs there.",
    section=SOFTMAX,
)
def one_more(x, axis=-1):
    """The denominator has an extra 1, as in a sigmoid. So the weights of a row come to less than 1."""
    e = np.exp(x)
    return e / (1 + e.sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "shifted, and a 1 too many in the sum",
    hint="What does each of your rows sum to, and what is missing?",
    more="For a single score the weight has to be exactly 1. Yours is 1/2. Look at what is added to the sum of the "
    "exponentials: the sum alone belongs there.",
    section=SOFTMAX,
)
def shifted_one_more(x, axis=-1):
    """The sum of the shifted exponentials has an extra 1. So the weights of a row come to less than 1."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / (1 + e.sum(axis=axis, keepdims=True))


@MISTAKES.add(
    "the fraction is upside down",
    hint="Your weights are larger than 1. What is in the numerator, and what in the denominator?",
    more="For [0, log 3] the exponentials are 1 and 3, and their sum is 4. Is the weight of the first one 1/4 or 4/1?",
    section=SOFTMAX,
)
def upside_down(x, axis=-1):
    """The sum was divided by the exponentials. It is each exponential that is divided by the sum."""
    e = np.exp(x)
    return e.sum(axis=axis, keepdims=True) / e


@MISTAKES.add(
    "all or nothing (argmax)",
    hint="Softmax means a soft maximum: the second-best score still gets a share.",
    more="For [0, log 3] you give everything to the second. Compare its exponential with the other: is it infinitely "
    "larger, or three times as large?",
    section=SOFTMAX,
)
def argmax(x, axis=-1):
    """The best score gets all the weight: that is the maximum itself, not its soft version."""
    return (x == x.max(axis=axis, keepdims=True)).astype(x.dtype)


@MISTAKES.add(
    "all weights are equal",
    hint="Change one score: do your weights change?",
    more="Print the exponentials for the first case: they should be proportional to 1, 2 and 5. Then follow them "
    "through the division. Where did the differences get lost?",
    section=SOFTMAX,
)
def uniform(x, axis=-1):
    """Every weight is the same, whatever the scores. A larger score should get a larger weight."""
    return np.ones_like(x) / x.shape[axis]


@MISTAKES.add(
    "softmax taken twice",
    hint="Count how often exp is applied to each score.",
    more="Print what you have just before the last division, for [0, log 3]. The exponentials there should be "
    "proportional to 1 and 3. Were they made from the scores, or from something that was a weight already?",
    section=SOFTMAX,
)
def twice(x, axis=-1):
    """The softmax of a softmax is nearly uniform, since its scores all lie between 0 and 1."""
    return softmax(softmax(x, axis), axis)


@MISTAKES.add(
    "the exponential taken twice",
    hint="Count how often exp is applied to each score.",
    more="For [0, log 3] the exponentials are 1 and 3. You took the exponentials of these again, and normalised those. "
    "How many lines of your function contain an exponential?",
    section=SOFTMAX,
)
def exponential_twice(x, axis=-1):
    """The scores went through the exponential twice before they were normalised. Once is right."""
    return attnlib.softmax(np.exp(x), axis)


@MISTAKES.add(
    "the standard deviation divides the scores",
    hint="The softmax of [0, 1] and that of [0, 10] differ. After standardisation they do not.",
    more="Only a shift leaves a softmax as it is; a division does not. Which of the two, the mean or the standard "
    "deviation, is subtracted, and which divides? Leave out the one that divides.",
    section=SOFTMAX,
)
def standardised(x, axis=-1):
    """Standardising the scores first makes every row equally sharp. The softmax keeps the size of the differences."""
    return attnlib.softmax((x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True), axis)


@MISTAKES.add(
    "the scores are scaled first",
    hint="The softmax uses the scores as they are. What have you divided them by?",
    more="For three scores that are log 1, log 2 and log 5, the weights are 1/8, 2/8 and 5/8. Yours are closer "
    "together. The division by a square root belongs to attention, before its softmax, and not in the softmax.",
    section=SOFTMAX,
)
def scaled(x, axis=-1):
    """The scores were divided by the root of their number. That is a step of its own, and not part of the softmax."""
    return attnlib.softmax(x / x.shape[axis] ** 0.5, axis)


@MISTAKES.add(
    "the weights are added up along the row",
    hint="Which of your weights is always 1, and should it be?",
    more="Print your exponentials beside your sum: one number per row, or one per score? A running total has a "
    "different number at every place.",
    section=SOFTMAX,
)
def running_total(x, axis=-1):
    """Each score is divided by, or turned into, a running total along the row. There is one sum for a whole row."""
    return softmax(x, axis).cumsum(axis)


@MISTAKES.add(
    "changes the array it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the scores before and after a call of your function. Then look for an operator that ends in an equals "
    "sign, such as the one for subtracting, or for an argument that says where to write.",
    section=OVERFLOW,
)
def in_place(x, axis=-1):
    """The weights are right, but the caller's scores are gone: your function wrote into its argument."""
    x -= x.max(axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=axis, keepdims=True)
    return x


@MISTAKES.add(
    "every axis except 0 is treated as the last",
    hint="Which axes may a stack of tables have, besides the first and the last?",
    more="Try a stack of shape (2, 5, 3) with axis=1. Along which axis do your weights sum to 1?",
    section=SOFTMAX,
)
def first_or_last(x, axis=-1):
    """Axis 0 is right, but all others are treated as the last."""
    axis = 0 if axis == 0 else -1
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "every row is divided by the sum of the whole array",
    hint="A sum without an axis adds up everything. Which sum belongs under each row?",
    more="The maximum of each row is right. For a table of 3 rows there should also be 3 sums. Print the shape of "
    "yours.",
    section=SOFTMAX,
)
def one_sum_for_all(x, axis=-1):
    """The maximum is taken row by row, but the sum runs over the whole array. Every row has a sum of its own."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum()


@MISTAKES.add(
    "only large scores are shifted",
    hint="What is exp(-1000) on a computer, and what is the sum of a row in which every exponential is that?",
    more="Take the row [-1000, -1001]: its weights are those of [0, -1]. By how much does your function shift it?",
    section=OVERFLOW,
)
def shift_of_large_scores(x, axis=-1):
    """A row is shifted only if its maximum is above 0. Far below 0 all exponentials of a row are 0, and 0/0 is nan."""
    e = np.exp(x - np.maximum(x.max(axis=axis, keepdims=True), 0))
    return e / e.sum(axis=axis, keepdims=True)


@MISTAKES.add(
    "a small number in the sum hides 0/0",
    hint="What is exp(-1000) on a computer, and what are the weights of a row in which every exponential is that?",
    more="Take the row [-1000, -1001]: its weights are those of [0, -1], and yours are 0. A small number in the sum "
    "prevents nan, but not the loss of the exponentials. Which shift would keep them?",
    section=OVERFLOW,
)
def vanishing_rows(x, axis=-1):
    """Rows far below 0 are not shifted up, so their exponentials are all 0, and so are their weights."""
    e = np.exp(x - np.maximum(x.max(axis=axis, keepdims=True), 0))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-9)


@MISTAKES.add(
    "for axis 0 the table is transposed, and never transposed back",
    hint="The weights have the same shape as the scores. Do yours, for axis=0?",
    more="Print the shape of what you return for a table of shape (5, 3) and axis=0. Then try a stack of shape "
    "(2, 5, 3) with axis=1: which axis do you normalise?",
    section=SOFTMAX,
)
def not_transposed_back(x, axis=-1):
    """For axis 0 the weights come out transposed, and every other axis is treated as the last."""
    x = x.T if axis == 0 else x
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@MISTAKES.add(
    "every axis but the last is treated as the first",
    hint="For a stack of tables, which axes change places when you transpose the whole array?",
    more="Try axis=1 for an array of shape (2, 3, 4): which sums should be 1? Every function that you need takes an "
    "axis.",
    section=SOFTMAX,
)
def first_axis_for_any(x, axis=-1):
    """You transpose the whole array unless the axis is -1, so every other axis is treated as the first one."""
    return softmax(x, -1 if axis == -1 else 0)


EXERCISE = Exercise(
    name="softmax",
    reference=softmax,
    outputs={"weights": ()},
    rubric={NUMBERS: 2, AXES: 2, LARGE: 2, UNCHANGED: 1, WHOLE: 1},
    section=SOFTMAX,
    advice="Take two scores, [0, 1], and write the exponentials, their sum and the weights on paper. Then "
    "print the same three things in your function.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=(
        *ATTENTION_FUNCTIONS,
        "scipy.special.softmax",
        "scipy.special.log_softmax",
        "scipy.special.logsumexp",
        "sklearn.utils.extmath.softmax",
        "torch.softmax",
        "torch.log_softmax",
        "torch.logsumexp",
        "torch.Tensor.logsumexp",
        "torch.special.logsumexp",
        "torch.special.softmax",
        "torch.special.log_softmax",
        "torch.sparse.softmax",
        "torch.sparse.log_softmax",
        "torch.Tensor.softmax",
        "torch.Tensor.log_softmax",
        "torch.nn.functional.softmax",
        "torch.nn.functional.log_softmax",
        "torch.nn.functional.softmin",
        "torch.nn.functional.gumbel_softmax",
        "torch.nn.Softmax",
        "torch.nn.LogSoftmax",
        "torch.nn.Softmin",
    ),
)
