"""equivariance_gap(f, x, order): how far a function is from treating the rows of x as a set."""

from collections.abc import Iterator

import numpy as np

from attnlib.checks.calling.case import Case
from attnlib.checks.calling.row_functions import (
    add_row_number,
    attention_alone,
    attention_with_positions,
    double,
    itself,
    mean_of_rows_so_far,
    multiply_by_row_number,
)
from attnlib.checks.catalogue.positions.sections import SET
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, ATTENTION = "the gap", "attention, with positions and without"
MISTAKES = Mistakes()


def reference(f, x, order):
    """Return the largest difference between f of the shuffled rows and the shuffled rows of f."""
    return float(np.abs(f(x[order]) - f(x)[order]).max())


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: row numbers by hand, a function of each row, then functions that mix rows."""
    hand = {
        "f": add_row_number,
        "x": np.array([[10.0, 40.0], [20.0, 60.0], [50.0, 30.0]]),
        "order": np.array([2, 0, 1]),
    }
    yield Case("a function that adds the number of the row", NUMBERS, hand)
    four = {"f": add_row_number, "x": rng.normal(size=(4, 3)), "order": np.array([1, 2, 3, 0])}
    yield Case("the same function and four rows", NUMBERS, four)
    near = {"f": add_row_number, "x": rng.normal(size=(5, 2)), "order": np.array([1, 2, 0, 4, 3])}
    yield Case("the same function and five rows, which move by at most two places", NUMBERS, near)
    yield Case("a function that doubles each number", NUMBERS, rows(rng, double, 5, 3))
    yield Case("a function that multiplies by the number of the row", NUMBERS, rows(rng, multiply_by_row_number, 5, 4))
    yield Case("the mean of the rows so far", NUMBERS, rows(rng, mean_of_rows_so_far, 7, 2))
    yield Case("attention without positions", ATTENTION, rows(rng, attention_alone, 6, 4))
    yield Case("attention with positions", ATTENTION, rows(rng, attention_with_positions, 5, 4))
    yield Case("inputs that must stay as they are", ATTENTION, rows(rng, double, 4, 3), unchanged=True)
    kept = rows(rng, itself, 5, 2)
    yield Case("a function that returns its own argument, which must stay as it is", ATTENTION, kept, unchanged=True)


def rows(rng: np.random.Generator, f, t: int, d: int):
    """Return a function, t random rows for it, and an order that is not its own inverse and leaves no row in place."""
    cycle = rng.permutation(t)
    order = np.empty(t, dtype=int)
    order[cycle] = np.roll(cycle, 1)
    return {"f": f, "x": rng.normal(size=(t, d)), "order": order}


def _apart(one, other):
    return float(np.abs(one - other).max())


@MISTAKES.add(
    "unchanged instead of shuffled the same way",
    hint="Shuffled words go in. In which order should the vectors come out, for a function that treats all rows alike?",
    more="Take a function that doubles each number, and two rows that change places. Should its two results be equal, "
    "or should they change places as well?",
    section=SET,
)
def invariance(f, x, order):
    """You ask whether the shuffle changes nothing: that is invariance.

    Equivariance means that the result is shuffled in the same way.
    """
    return _apart(f(x[order]), f(x))


@MISTAKES.add(
    "shuffled back the wrong way",
    hint="If row 0 went to place 1, row 1 to place 2 and row 2 to place 0, what brings them back?",
    more="Shuffling once more is not shuffling back, unless rows only change places in pairs. For a function that "
    "doubles each number the two sides have to be the same rows: print both.",
    section=SET,
)
def opposite_ways(f, x, order):
    """The two sides are shuffled in opposite directions, so even a function of each row on its own gets a gap."""
    return _apart(f(x[order])[order], f(x))


@MISTAKES.add(
    "the inverse before, the order after",
    hint="The rows are shuffled before f in one case, after f in the other. Is the same order used both times?",
    more="Print both orders. For a function that doubles each number, both ways have to give the same rows.",
    section=SET,
)
def inverse_before(f, x, order):
    """The words are shuffled by the inverse of the order, the results by the order. Both should use the same one."""
    return _apart(f(x[np.argsort(order)]), f(x)[order])


@MISTAKES.add(
    "both are shuffled by the inverse",
    hint="Which row should come first in the shuffled words: row order[0], or the row whose entry in order is 0?",
    more="In the first case order is 2, 0, 1, so the shuffled words begin with row 2. What do yours begin with?",
    section=SET,
)
def inverse_twice(f, x, order):
    """Both sides are shuffled by the inverse of the order. The new row 0 is the old row order[0]."""
    back = np.argsort(order)
    return _apart(f(x[back]), f(x)[back])


@MISTAKES.add(
    "only the result is shuffled",
    hint="How often does f have to be called, and on what?",
    more="One side is f of the shuffled words, the other the shuffled f of the words. Which of the two is missing?",
    section=SET,
)
def output_alone(f, x, order):
    """You compare f(x) with its own rows in a different order. The words should be shuffled before f as well."""
    return _apart(f(x), f(x)[order])


@MISTAKES.add(
    "the shuffled words are compared, not the result",
    hint="Which two arrays should be equal if f treats all rows alike?",
    more="Both sides are results of f. Which of yours is not?",
    section=SET,
)
def without_f(f, x, order):
    """One side is the shuffled words themselves. Both should be results of f."""
    return _apart(x[order], f(x)[order])


@MISTAKES.add(
    "only the words are looked at",
    hint="Which two arrays should be equal if f treats all rows alike?",
    more="Both sides are results of f, one of them shuffled after f.",
    section=SET,
)
def words_against_result(f, x, order):
    """You compare f of the shuffled words with the words. It should be compared with the shuffled f of the words."""
    return _apart(f(x[order]), x[order])


@MISTAKES.add(
    "the gap is 0 for every function",
    hint="Which two arrays do you subtract? Are they made in two different ways?",
    more="One side is f of the shuffled words, the other the shuffled f of the words. In the first case they differ by "
    "2, 1 and 1.",
    section=SET,
)
def always_zero(f, x, order):
    """Your gap is 0 whatever f does, as if a result were compared with itself. Shuffle before f, and after f."""
    return 0 * _apart(f(x[order]), f(x[order]))


@MISTAKES.add(
    "columns are shuffled, not rows",
    hint="A word is a row. Which axis does the order belong to?",
    more="Print the words before and after the shuffle. Is each row still a word?",
    section=SET,
)
def columns(f, x, order):
    """You shuffle the components of the words. It is the words, the rows, that should change places."""
    return _apart(f(x[:, order]), f(x)[:, order])


@MISTAKES.add(
    "the mean difference, not the largest",
    hint="Which single number says how far apart the two are at the worst place?",
    more="In the first case the differences are 2, 1 and 1 in size. Which of them does the task ask for?",
    section=SET,
)
def mean(f, x, order):
    """You return the mean size of the differences. The task asks for the largest one."""
    return float(np.abs(f(x[order]) - f(x)[order]).mean())


@MISTAKES.add(
    "the sum of the differences, not the largest",
    hint="Which single number says how far apart the two are at the worst place?",
    more="In the first case the differences are 2, 1 and 1 in size. Which of them does the task ask for?",
    section=SET,
)
def total(f, x, order):
    """You return the sum of the sizes of all differences. The task asks for the largest one."""
    return float(np.abs(f(x[order]) - f(x)[order]).sum())


@MISTAKES.add(
    "the length of the difference",
    hint="Which single number says how far apart the two are at the worst place?",
    more="In the first case the differences are 2, 1 and 1 in size. Nothing has to be squared.",
    section=SET,
)
def norm(f, x, order):
    """You return the root of the sum of the squares. The task asks for the largest single difference."""
    return float(np.sqrt(((f(x[order]) - f(x)[order]) ** 2).sum()))


@MISTAKES.add(
    "the mean of the squares",
    hint="Which single number says how far apart the two are at the worst place?",
    more="In the first case the differences are 2, 1 and 1 in size. Nothing has to be squared.",
    section=SET,
)
def mean_square(f, x, order):
    """You return the mean of the squared differences. The task asks for the size of the largest one."""
    return float(((f(x[order]) - f(x)[order]) ** 2).mean())


@MISTAKES.add(
    "the root of the mean of the squares",
    hint="Which single number says how far apart the two are at the worst place?",
    more="In the first case the differences are 2, 1 and 1 in size. Nothing has to be squared.",
    section=SET,
)
def root_mean_square(f, x, order):
    """You return the root of the mean of the squared differences. The task asks for the size of the largest one."""
    return float(np.sqrt(((f(x[order]) - f(x)[order]) ** 2).mean()))


@MISTAKES.add(
    "negative differences do not count",
    hint="Which is larger in size: a difference of -2, or one of 1?",
    more="In the first case the differences of the two sides are -2, 1 and 1. Which size is the largest?",
    section=SET,
)
def signed(f, x, order):
    """You take the largest difference with its sign, so large negative ones are missed. It is the size that counts."""
    return float((f(x[order]) - f(x)[order]).max())


@MISTAKES.add(
    "differences taken the other way round do not count",
    hint="Does a difference that is negative count?",
    more="Subtract the two sides in both orders and print the largest number of each. Which of them does the task ask "
    "for?",
    section=SET,
)
def signed_other(f, x, order):
    """You take the largest difference with its sign, so some large ones are missed. It is the size that counts."""
    return float((f(x)[order] - f(x[order])).max())


@MISTAKES.add(
    "the difference of the largest numbers",
    hint="Which comes first: the difference of two numbers at the same place, or the search for the largest?",
    more="Two arrays may have the same largest number and be quite different. Subtract place by place first.",
    section=SET,
)
def difference_of_maxima(f, x, order):
    """You compare the largest number of each side. The task asks for the largest of all differences."""
    return float(abs(f(x[order]).max() - f(x)[order].max()))


@MISTAKES.add(
    "the smallest difference",
    hint="If one single row is off, should the gap be 0?",
    more="In the first case the differences are 2, 1 and 1 in size. Which of them does the task ask for?",
    section=SET,
)
def smallest(f, x, order):
    """You return the smallest difference. The task asks for the largest one."""
    return float(np.abs(f(x[order]) - f(x)[order]).min())


@MISTAKES.add(
    "yes or no instead of a number",
    hint="How large is the gap? Your function says only whether there is one.",
    more="The comparison of two arrays gives True or False. What do you get if you subtract them instead?",
    section=SET,
)
def yes_or_no(f, x, order):
    """You return True or False. The task asks for the size of the largest difference, a number."""
    return bool(np.allclose(f(x[order]), f(x)[order]))


@MISTAKES.add(
    "no or yes instead of a number",
    hint="How large is the gap? Your function says only whether there is one.",
    more="The comparison of two arrays gives True or False. What do you get if you subtract them instead?",
    section=SET,
)
def no_or_yes(f, x, order):
    """You return whether there is a gap. The task asks for the size of the largest difference, a number."""
    return not np.allclose(f(x[order]), f(x)[order])


@MISTAKES.add(
    "the largest square",
    hint="In the first case the largest difference is 2. Is your gap 4?",
    more="Nothing has to be squared: how else can you make a negative difference positive?",
    section=SET,
)
def largest_square(f, x, order):
    """You return the square of the largest difference. The task asks for its size."""
    return float(((f(x[order]) - f(x)[order]) ** 2).max())


@MISTAKES.add(
    "all differences are returned",
    hint="How many numbers does the task ask for?",
    more="The table of differences is right. One number should be made of it: the largest size.",
    section=SET,
)
def all_differences(f, x, order):
    """You return a table of differences. The task asks for one number, the largest."""
    return np.abs(f(x[order]) - f(x)[order])


@MISTAKES.add(
    "one number for each row",
    hint="How many numbers does the task ask for?",
    more="You have the largest difference of each row, or of each column. Which of them is the largest of all?",
    section=SET,
)
def for_each_row(f, x, order):
    """You return the largest difference of each row. The task asks for one number, the largest of all."""
    return np.abs(f(x[order]) - f(x)[order]).max(axis=-1)


@MISTAKES.add(
    "a share instead of the difference itself",
    hint="What do you divide by, and does the task ask for it?",
    more="In the first case the largest difference is 2. What do you get?",
    section=SET,
)
def relative(f, x, order):
    """You divide the gap by the size of the numbers. The task asks for the largest difference itself."""
    return float(np.abs(f(x[order]) - f(x)[order]).max() / np.abs(f(x)).max())


@MISTAKES.add(
    "the length of the row that differs most",
    hint="Which single number says how far apart the two are at the worst place?",
    more="In the first case, both numbers of a row differ by the same amount. Is your gap larger than that amount?",
    section=SET,
)
def longest_row(f, x, order):
    """You return the length of the row that differs most. The task asks for the largest single difference."""
    return float(np.sqrt(((f(x[order]) - f(x)[order]) ** 2).sum(axis=-1)).max())


@MISTAKES.add(
    "one number for each column",
    hint="How many numbers does the task ask for?",
    more="You have the largest difference of each column. Which of them is the largest of all?",
    section=SET,
)
def for_each_column(f, x, order):
    """You return the largest difference of each column. The task asks for one number, the largest of all."""
    return tuple(np.abs(f(x[order]) - f(x)[order]).max(axis=0))


@MISTAKES.add(
    "both results are sorted first",
    hint="Is it enough that the same numbers are there, or do they have to be in the same rows?",
    more="Sorting undoes any shuffling, including the one that you want to compare with. Which rows belong together "
    "after the order has been applied?",
    section=SET,
)
def sorted_first(f, x, order):
    """You compare sorted numbers, so any order of the same numbers gives a gap of 0. Compare row with row instead."""
    return float(np.abs(np.sort(f(x[order]), axis=0) - np.sort(f(x), axis=0)).max())


@MISTAKES.add(
    "the largest difference minus the smallest",
    hint="In the first case the differences are -2, 1 and 1. Which one is the largest in size?",
    more="The distance between the largest and the smallest difference is a different number. Drop the signs first, "
    "then take the largest.",
    section=SET,
)
def spread(f, x, order):
    """You return how far apart the differences are. The task asks for the size of the largest one."""
    return float(np.ptp(f(x[order]) - f(x)[order]))


@MISTAKES.add(
    "the largest sum of a row",
    hint="In the first case the largest difference is 2. Which number do you get, and how many columns are there?",
    more="For a matrix, a norm of order infinity adds up the sizes along each row and takes the largest sum. Here "
    "nothing is added.",
    section=SET,
)
def sum_of_a_row(f, x, order):
    """You add up the differences of a row, as a norm of the matrix does. The task asks for the largest single one."""
    return float(np.abs(f(x[order]) - f(x)[order]).sum(axis=1).max())


@MISTAKES.add(
    "f is given one row at a time",
    hint="What can attention compute for a row without the other rows?",
    more="The mean of the rows so far changes if the earlier rows are missing. How many rows do you pass to f?",
    section=SET,
)
def row_by_row(f, x, order):
    """On one side, you call f with one row at a time. It needs all rows together to return the right numbers."""
    return _apart(f(x[order]), np.concatenate([f(x[row : row + 1]) for row in order]))


@MISTAKES.add(
    "only the first row is compared",
    hint="How many rows does your loop compare before it returns?",
    more="In the first case, count the rows that your maximum covers. How far is the return line indented?",
    section=SET,
)
def first_row_alone(f, x, order):
    """You compare only the first rows of both sides. The largest difference can be in any row."""
    return _apart(f(x[order])[0], f(x)[order][0])


EXERCISE = Exercise(
    name="equivariance_gap",
    reference=reference,
    outputs={"gap": ()},
    rubric={NUMBERS: 2, ATTENTION: 1},
    section=SET,
    advice="Take the first case. Write on paper: the shuffled words, f of them, f of the words, and that shuffled. "
    "Print the same four tables. The two that are compared should differ by 2, 1 and 1.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    plain=True,
    backends=("numpy",),
    whole_numbers=("order",),
)
