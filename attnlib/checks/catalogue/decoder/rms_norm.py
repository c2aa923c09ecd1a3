"""rms_norm(x, weight, *, eps): each row divided by its root mean square, then multiplied by learned weights."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.decoder.sections import RMS_NORM
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, SMALL, BATCHES, UNCHANGED = "the numbers", "small rows", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one row by hand, rows whose mean is not 0, rows that eps changes, batches."""
    hand = {"x": np.array([[7.0, -1.0]]), "weight": np.array([2.0, 5.0])}
    yield Case("the row (7, -1), whose mean square is 25, and the weights (2, 5)", NUMBERS, hand, {"eps": 0.0})
    yield Case("4 rows of width 6", NUMBERS, _rows(rng, (4, 6)), {"eps": 1e-5})
    yield Case("as many rows as numbers in each, 5", NUMBERS, _rows(rng, (5, 5)), {"eps": 1e-5})
    yield Case("rows of width 1", NUMBERS, _rows(rng, (3, 1)), {"eps": 1e-5})
    yield Case("rows in float32", NUMBERS, _rows(rng, (3, 7), np.float32), {"eps": 1e-5})
    few = _rows(rng, (4, 5))
    few["x"] = few["x"] * np.array([[0.02], [0.1], [0.3], [1.0]])
    yield Case("rows of different lengths, and eps = 0.01", SMALL, few, {"eps": 0.01})
    nothing = _rows(rng, (3, 4))
    nothing["x"][1] = 0.0
    yield Case("a row of zeros", SMALL, nothing, {"eps": 1e-6})
    tiny = _rows(rng, (3, 6))
    tiny["x"] *= 1e-3
    yield Case("rows of numbers near 0.001, and eps = 0.000001", SMALL, tiny, {"eps": 1e-6})
    yield Case("a single vector (E,)", BATCHES, _rows(rng, (6,)), {"eps": 1e-5})
    yield Case("a batch (2, 3, 5)", BATCHES, _rows(rng, (2, 3, 5)), {"eps": 1e-5})
    yield Case("heads, (2, 3, 4, 7)", BATCHES, _rows(rng, (2, 3, 4, 7)), {"eps": 1e-5})
    kept = _rows(rng, (3, 6))
    kept["x"] = np.repeat(kept["x"], 2, axis=0)[::2]
    yield Case("inputs that must stay as they are", UNCHANGED, kept, {"eps": 1e-5}, unchanged=True)


def _rows(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float64) -> dict[str, Any]:
    """Return rows whose means are far from 0, and weights that are neither 1 nor all positive.

    No number is near 0, so that a usual eps makes no difference.
    """
    x = rng.normal(size=shape) + rng.uniform(0.5, 1.5, size=(*shape[:-1], 1))
    x = 2 * (x + np.sign(x))
    weight = rng.uniform(0.5, 2.0, size=shape[-1]) * rng.choice([-1.0, 1.0], size=shape[-1])
    return {"x": x.astype(dtype), "weight": weight.astype(dtype)}


def _mean_square(x, axis=-1):
    return (x**2).mean(axis=axis, keepdims=True)


def _right(x, eps):
    return x / np.sqrt(_mean_square(x) + eps)


@MISTAKES.add(
    "the mean is subtracted first, as in layer norm",
    hint="What does this norm do with the mean of a row?",
    more="The row (7, -1) has mean 3. Which two numbers do you divide, and which ones does the task divide?",
    section=RMS_NORM,
)
def layer_norm(x, weight, *, eps):
    """Your rows are centred before they are scaled. That is layer norm: RMSNorm leaves the mean where it is."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(_mean_square(centred) + eps) * weight


@MISTAKES.add(
    "divided by the standard deviation",
    hint="You average squared distances. From which number are they measured?",
    more="The row (7, -1) has the standard deviation 4 and the root mean square 5. Which of them do you divide by?",
    section=RMS_NORM,
)
def standard_deviation(x, weight, *, eps):
    """The rows are divided by their standard deviation, which measures distances from the mean.

    The root mean square measures distances from 0.
    """
    return x / np.sqrt(x.var(axis=-1, keepdims=True) + eps) * weight


@MISTAKES.add(
    "the weights are not used",
    hint="Which of the three arguments can be changed without changing your result?",
    more="In the first case the scaled row is (1.4, -0.2). The second of the weights is 5. What should come out there?",
    section=RMS_NORM,
)
def no_weight(x, weight, *, eps):
    """Each row gets a root mean square of 1, and nothing more. Multiply it by the learned weights."""
    return _right(x, eps)


@MISTAKES.add(
    "the weights are added",
    hint="Do the learned numbers of this norm shift a component, or stretch it?",
    more="If all weights were 0, what should come out? What does your function return?",
    section=RMS_NORM,
)
def weight_added(x, weight, *, eps):
    """The weights are added to the scaled row, as if they were a bias. They should multiply its components."""
    return _right(x, eps) + weight


@MISTAKES.add(
    "the weights are 1 too large",
    hint="What should come out if all weights are 0?",
    more="Gemma stores its weights minus 1, and adds 1 when they are used. Does the formula of the task do that?",
    section=RMS_NORM,
)
def one_plus_weight(x, weight, *, eps):
    """The rows are multiplied by 1 plus the weights, as in Gemma. Here the weights are used as they are."""
    return _right(x, eps) * (1 + weight)


@MISTAKES.add(
    "the weights are applied first",
    hint="Are the squares in the mean those of the row, or those of the row times its weights?",
    more="Do the first case by hand: the mean square of 7 times 2 and -1 times 5 is not that of 7 and -1.",
    section=RMS_NORM,
)
def weight_first(x, weight, *, eps):
    """The row is multiplied by the weights before it is measured. Measure the row itself, then apply the weights."""
    return _right(x * weight, eps)


@MISTAKES.add(
    "divided by the mean square, not by its root",
    hint="If a row is twice as long, by which factor does your divisor grow?",
    more="In the first case the mean square is 25. Which number should the row be divided by?",
    section=RMS_NORM,
)
def no_root(x, weight, *, eps):
    """The rows are divided by their mean square. The root is missing: if the row doubles, your result is halved."""
    return x / (_mean_square(x) + eps) * weight


@MISTAKES.add(
    "multiplied by the root mean square",
    hint="Should a longer row come out longer?",
    more="After the norm, and without weights, the mean square of every row is 1. What is yours?",
    section=RMS_NORM,
)
def multiplied(x, weight, *, eps):
    """The rows are multiplied by their root mean square, so long rows become longer. Divide the rows by it."""
    return x * np.sqrt(_mean_square(x) + eps) * weight


@MISTAKES.add(
    "the sum of the squares in place of their mean",
    hint="By how many numbers is the sum of the squares divided before the root is taken?",
    more="The row (7, -1) has the sum 50 and the mean 25. How long should a row of width E be afterwards?",
    section=RMS_NORM,
)
def sum_of_squares(x, weight, *, eps):
    """Your rows get length 1, because the squares are summed. Take their mean, which gives the rows length √E."""
    return x / np.sqrt((x**2).sum(axis=-1, keepdims=True) + eps) * weight


@MISTAKES.add(
    "the mean of the absolute values",
    hint="What happens to each number before the mean is taken?",
    more="For the row (7, -1) the mean of the absolute values is 4. What is the root of the mean of the squares?",
    section=RMS_NORM,
)
def mean_absolute(x, weight, *, eps):
    """The rows are divided by the mean of their absolute values. Square, average and take the root instead."""
    return x / (np.abs(x).mean(axis=-1, keepdims=True) + eps) * weight


@MISTAKES.add(
    "divided by the largest number",
    hint="Does your divisor change when a small number of the row changes?",
    more="For the row (7, -1) you divide by 7. All numbers of a row should contribute to the divisor.",
    section=RMS_NORM,
)
def largest(x, weight, *, eps):
    """The rows are divided by their largest absolute value. The root mean square takes all components into account."""
    return x / (np.abs(x).max(axis=-1, keepdims=True) + eps) * weight


@MISTAKES.add(
    "the mean square is divided by E - 1",
    hint="By how many numbers do you divide the sum of the squares?",
    more="In the first case the sum of the squares is 50 and E is 2. Which mean do you get?",
    section=RMS_NORM,
)
def one_less(x, weight, *, eps):
    """The sum of the squares is divided by one less than the width.

    That corrects an estimated variance; this task asks for the plain mean.
    """
    return x / np.sqrt((x**2).sum(axis=-1, keepdims=True) / max(x.shape[-1] - 1, 1) + eps) * weight


@MISTAKES.add(
    "one root mean square for the whole array",
    hint="How many numbers do you divide by: one for each row, or one for all of them?",
    more="Change one row of your input. The other rows of the result should stay the same.",
    section=RMS_NORM,
)
def over_everything(x, weight, *, eps):
    """All rows are divided by the same number, computed from the whole array. Each row has its own."""
    return x / np.sqrt((x**2).mean() + eps) * weight


@MISTAKES.add(
    "the mean runs over the positions",
    hint="Along which axis of (T, E) do you average: along that of the rows, or within a row?",
    more="Change one row of your input. The other rows of the result should stay the same.",
    section=RMS_NORM,
)
def over_positions(x, weight, *, eps):
    """The squares are averaged over the positions, for each component. Average over the components of each row."""
    return x / np.sqrt(_mean_square(x, axis=max(-2, -x.ndim)) + eps) * weight


@MISTAKES.add(
    "the mean runs along the first axis",
    hint="Which axis holds the components of a vector, however many dimensions come before it?",
    more="Try an array of shape (2, 3, 5). Along which of its three axes do you average?",
    section=RMS_NORM,
)
def over_first_axis(x, weight, *, eps):
    """The squares are averaged along the first axis. The components of a vector are along the last one."""
    return x / np.sqrt(_mean_square(x, axis=0) + eps) * weight


@MISTAKES.add(
    "the mean runs along axis 1, not along the last axis",
    hint="Which axis holds the components of a vector, however many dimensions come before it?",
    more="Try an array of shape (2, 3, 5), and count the axes from the end.",
    section=RMS_NORM,
)
def over_axis_one(x, weight, *, eps):
    """Your mean runs along axis 1, which is the last axis only for a matrix. Count from the end instead."""
    return x / np.sqrt(_mean_square(x, axis=1) + eps) * weight


@MISTAKES.add(
    "eps is added outside the root",
    hint="What is eps added to: the mean square, or its root?",
    more="Take a row of zeros, and work out what you divide by. Is it eps, or the root of eps?",
    section=RMS_NORM,
)
def eps_outside(x, weight, *, eps):
    """You add eps to the root mean square. Add it to the mean square, under the root."""
    return x / (np.sqrt(_mean_square(x)) + eps) * weight


@MISTAKES.add(
    "eps is not used",
    hint="What is a row of zeros divided by?",
    more="Which of the arguments can be changed without changing your result?",
    section=RMS_NORM,
)
def no_eps(x, weight, *, eps):
    """Nothing is added to the mean square, so a row of zeros becomes 0/0, which is nan."""
    return _right(x, 0.0) * weight


@MISTAKES.add(
    "eps is always a millionth",
    hint="Where does your eps come from?",
    more="Call your function twice with the same row, once with eps = 1. Do the results differ?",
    section=RMS_NORM,
)
def eps_of_a_millionth(x, weight, *, eps):
    """The number under your root is always 0.000001. Models differ in it, so the argument eps has to be used."""
    return _right(x, 1e-6) * weight


@MISTAKES.add(
    "eps is always a hundred-thousandth",
    hint="Where does your eps come from?",
    more="Call your function twice with the same row, once with eps = 1. Do the results differ?",
    section=RMS_NORM,
)
def eps_of_a_hundred_thousandth(x, weight, *, eps):
    """The number under your root is always 0.00001. Models differ in it, so the argument eps has to be used."""
    return _right(x, 1e-5) * weight


@MISTAKES.add(
    "eps is squared",
    hint="What is eps added to, and in which form?",
    more="Take a row of zeros except for one small number, with eps = 0.01. What is under your root?",
    section=RMS_NORM,
)
def eps_squared(x, weight, *, eps):
    """The square of eps is added to the mean square. It should be eps itself."""
    return _right(x, eps**2) * weight


@MISTAKES.add(
    "divided by the weights",
    hint="Should a large weight make a component larger or smaller?",
    more="In the first case the scaled row is (1.4, -0.2) and the first weight is 2. What should come out first?",
    section=RMS_NORM,
)
def divided_by_weight(x, weight, *, eps):
    """The scaled row is divided by the weights. It should be multiplied by them."""
    return _right(x, eps) / weight


EXERCISE = Exercise(
    name="rms_norm",
    reference=attnlib.rms_norm,
    outputs={"y": ("T", "E")},
    rubric={NUMBERS: 4, SMALL: 2, BATCHES: 2, UNCHANGED: 1},
    section=RMS_NORM,
    advice="Take the row (7, -1) with the weights 1, 1 and eps = 0. Write down the squares, their mean, its root, and "
    "the row divided by it: (1.4, -0.2). Which of the four is different in your code?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=(
        "attnlib.numpy.RMSNorm",
        "torch.nn.RMSNorm",
        "torch.nn.functional.rms_norm",
        "torch.rms_norm",
    ),
)
