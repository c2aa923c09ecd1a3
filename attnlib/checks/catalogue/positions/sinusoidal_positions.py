"""sinusoidal_positions(T, D): for every position the sines and cosines of D/2 hands."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.positions.sections import CLOCKS, LAYOUTS, STEP, WISHES
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BASE, EDGES, LAYOUT = "the numbers", "another base", "one position, one hand", "the other layout"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: two hands, more hands and positions, another base, one of each, the other layout.

    A table follows from its sizes alone, so all but the first are drawn from a wide range.
    """
    yield Case("6 positions of width 4", NUMBERS, {"T": 6, "D": 4})
    few, some, many = (int(n) for n in np.sort(rng.permutation(np.arange(4, 40))[:3]))
    yield Case(f"{many} positions of width {2 * few}", NUMBERS, {"T": many, "D": 2 * few})
    yield Case(f"{few} positions of width {2 * some}", NUMBERS, {"T": few, "D": 2 * some})
    yield Case("3 positions of width 4 and the base 100", BASE, {"T": 3, "D": 4}, {"base": 100.0})
    base = float(rng.uniform(20, 60))
    sizes = {"T": some, "D": 2 * many}
    yield Case(f"{some} positions of width {2 * many} and the base {base:.3g}", BASE, sizes, {"base": base})
    again = {"T": few, "D": 2 * some}
    yield Case(f"{few} positions of width {2 * some} once more, and the base 300", BASE, again, {"base": 300.0})
    yield Case("one position", EDGES, {"T": 1, "D": 2 * some})
    yield Case("one hand (D=2)", EDGES, {"T": many, "D": 2})
    yield Case(f"{40 + some} positions of width 6", EDGES, {"T": 40 + some, "D": 6})
    yield Case("5001 positions of width 2", EDGES, {"T": 5001, "D": 2})
    yield Case("all sines first, then all cosines", LAYOUT, {"T": few, "D": 8}, {"interleaved": False})


def _omega(D, base):
    return base ** (-np.arange(0, D, 2) / D)


def _angle(T, omega):
    return np.arange(T)[:, None] * omega


def _lay(first, second, interleaved):
    """Put two arrays (T, D/2) side by side: alternating, or one after the other."""
    if interleaved:
        return np.stack([first, second], axis=-1).reshape(len(first), -1)
    return np.concatenate([first, second], axis=-1)


def _hands(angle, interleaved):
    return _lay(np.sin(angle), np.cos(angle), interleaved)


@MISTAKES.add(
    "sines and cosines are exchanged",
    hint="What are the sine and the cosine of 0, and which of the two comes first in the row of position 0?",
    more="The row of position 0 should be 0, 1, 0, 1. Look at the line that decides what goes into the even columns.",
    section=CLOCKS,
)
def swapped(T, D, *, base=10000.0, interleaved=True):
    """In each pair your cosine comes first. The sine belongs in the even columns, the cosine next to it."""
    angle = _angle(T, _omega(D, base))
    return _lay(np.cos(angle), np.sin(angle), interleaved)


@MISTAKES.add(
    "all sines first, then all cosines",
    hint="Where is the cosine of the first hand: next to its sine, or half a row further on?",
    more="The row of position 0 should be 0, 1, 0, 1. Yours has the zeros together. Look at the last step, which "
    "makes one table out of two.",
    section=LAYOUTS,
)
def halves(T, D, *, base=10000.0, interleaved=True):
    """The numbers are right, but in the half-split layout. Here each sine is next to its own cosine."""
    return _hands(_angle(T, _omega(D, base)), False)


@MISTAKES.add(
    "cosines first, then sines",
    hint="Write the row of position 0 on paper: it contains only zeros and ones. In which order?",
    more="Two things need to be changed: what comes first in a pair, and whether the two of a pair are neighbours. "
    "The row of position 0 should be 0, 1, 0, 1.",
    section=LAYOUTS,
)
def halves_swapped(T, D, *, base=10000.0, interleaved=True):
    """All cosines are together, and before the sines. Each sine should come first, with its own cosine next to it."""
    angle = _angle(T, _omega(D, base))
    return _lay(np.cos(angle), np.sin(angle), False)


@MISTAKES.add(
    "the hands slow down half as fast as they should",
    hint="The exponent of hand k is 2k/D. Is yours k/D?",
    more="For D = 4 the second hand has the speed 10000 to the power of minus one half, which is 0.01. Print yours.",
    section=CLOCKS,
)
def half_exponent(T, D, *, base=10000.0, interleaved=True):
    """Hand k has the exponent k/D in your table. It should be 2k/D, so that the slowest speed comes near 1/base."""
    return _hands(_angle(T, np.sqrt(_omega(D, base))), interleaved)


@MISTAKES.add(
    "the hands slow down twice as fast as they should",
    hint="The exponent of hand k is 2k/D. Does your counter already go up in steps of two?",
    more="For D = 4 the second hand has the speed 10000 to the power of minus one half, which is 0.01. Print yours, "
    "and count how many factors of two it took.",
    section=CLOCKS,
)
def double_exponent(T, D, *, base=10000.0, interleaved=True):
    """The exponent of hand k is 4k/D in your table. The factor two came in twice; it should be 2k/D."""
    return _hands(_angle(T, _omega(D, base) ** 2), interleaved)


@MISTAKES.add(
    "the cosine has a hand of its own",
    hint="The tip of one hand has a sine and a cosine. How many speeds does one hand have?",
    more="Square the two numbers of a pair and add them up. For one hand the sum is 1, whatever the position.",
    section=CLOCKS,
)
def own_speeds(T, D, *, base=10000.0, interleaved=True):
    """Every column has its own speed in your table. A sine and the cosine next to it belong to one hand."""
    angle = np.arange(T)[:, None] * base ** (-np.arange(D) / D)
    return _lay(np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2]), interleaved)


@MISTAKES.add(
    "columns are taken for hands",
    hint="Columns 0 and 1 belong to hand 0, columns 2 and 3 to hand 1. Which number is k in your exponent?",
    more="Square the two numbers of a pair and add them up: it should be 1. Then compare the speed of columns 2 and 3 "
    "for D = 4, which is 0.01.",
    section=CLOCKS,
)
def column_for_hand(T, D, *, base=10000.0, interleaved=True):
    """In the exponent 2k/D you use the number of the column as k. But k counts hands, and a hand has two columns."""
    angle = np.arange(T)[:, None] * base ** (-2 * np.arange(D) / D)
    return _lay(np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2]), interleaved)


@MISTAKES.add(
    "the cosine takes the speed of the next hand",
    hint="Are the sine and the cosine of a pair taken of the same angle?",
    more="Square the two numbers of a pair and add them up. For one angle the sum is 1. Look at the exponent in the "
    "line that makes the cosines.",
    section=CLOCKS,
)
def next_hand(T, D, *, base=10000.0, interleaved=True):
    """The cosine next to each sine belongs to the next hand. Both should be taken of the same angle."""
    omega = _omega(D, base)
    return _lay(np.sin(_angle(T, omega)), np.cos(_angle(T, omega * base ** (-2 / D))), interleaved)


@MISTAKES.add(
    "the last hand turns too slowly",
    hint="The denominator of the exponent is the width D. Which number did you divide by?",
    more="For D = 4 the second hand has the speed 10000 to the power of minus 2/4, which is 0.01. Does yours turn by "
    "1/10000? Some programs do that; the formula here does not.",
    section=CLOCKS,
)
def reaches_base(T, D, *, base=10000.0, interleaved=True):
    """Your hands are spread so that the last has exactly the speed 1/base. With 2k/D it is faster than that."""
    return _hands(_angle(T, base ** (-np.arange(0, D, 2) / (D - 2))), interleaved)


@MISTAKES.add(
    "half-split, and the last hand is too slow",
    hint="Where is each cosine, and what number is the exponent divided by?",
    more="The row of position 0 should be 0, 1, 0, 1. And for D = 4 the second hand has the speed 0.01. Many programs "
    "differ from the formula of this task in both.",
    section=LAYOUTS,
)
def halves_reaches_base(T, D, *, base=10000.0, interleaved=True):
    """All sines come first, and the last hand has the speed 1/base. The task asks for pairs side by side, and 2k/D."""
    return _hands(_angle(T, base ** (-np.arange(0, D, 2) / (D - 2))), False)


@MISTAKES.add(
    "divided by D - 1",
    hint="The denominator of the exponent is the width D itself. Which number did you divide by?",
    more="For D = 4 the exponents are 0 and 2/4. Write yours beside them.",
    section=CLOCKS,
)
def width_minus_one(T, D, *, base=10000.0, interleaved=True):
    """The exponent is 2k/(D-1) in your table. It should be 2k/D."""
    return _hands(_angle(T, base ** (-np.arange(0, D, 2) / (D - 1))), interleaved)


@MISTAKES.add(
    "each hand has the speed of the next",
    hint="Which k does the first hand have, and what is anything to the power of 0?",
    more="The fastest hand turns by one radian a step: the table has sin 1 = 0.841 in its second row, first column. "
    "Print your exponents.",
    section=CLOCKS,
)
def hands_from_one(T, D, *, base=10000.0, interleaved=True):
    """Your hands are numbered from 1. Hand 0 should come first, with speed 1, that is one radian a step."""
    return _hands(_angle(T, base ** (-(np.arange(0, D, 2) + 2) / D)), interleaved)


@MISTAKES.add(
    "the odd number is in every exponent",
    hint="Columns 2k and 2k+1 share one exponent. Which of the two numbers is in it?",
    more="The fastest hand has the exponent 0 and turns by one radian a step: sin 1 = 0.841 in the second row.",
    section=CLOCKS,
)
def odd_exponent(T, D, *, base=10000.0, interleaved=True):
    """The exponent is (2k+1)/D in both columns of a pair. It should be 2k/D in both."""
    return _hands(_angle(T, base ** (-(np.arange(0, D, 2) + 1) / D)), interleaved)


@MISTAKES.add(
    "the minus sign of the exponent is missing",
    hint="Do your hands get slower from left to right, or faster?",
    more="For D = 4 the second hand should turn by 0.01 radian a step. Does yours turn by 100? Is the power in the "
    "numerator or in the denominator?",
    section=CLOCKS,
)
def faster_and_faster(T, D, *, base=10000.0, interleaved=True):
    """Your angles are multiplied by a power of the base. They should be divided by it, so that hands get slower."""
    return _hands(_angle(T, 1 / _omega(D, base)), interleaved)


@MISTAKES.add(
    "the hands are in reverse order",
    hint="Which pair of columns changes most from one row to the next: the first, or the last?",
    more="The first pair of position 1 should be sin 1 = 0.841 and cos 1 = 0.540. Where in your row is that pair?",
    section=CLOCKS,
)
def reversed_hands(T, D, *, base=10000.0, interleaved=True):
    """Your slowest hand comes first. The fastest, with one radian a step, belongs in columns 0 and 1."""
    return _hands(_angle(T, _omega(D, base)[::-1]), interleaved)


@MISTAKES.add(
    "all hands turn at the same speed",
    hint="How many different numbers are there in a row? A clock needs slow hands as well. Did some division round to "
    "a whole number?",
    more="For D = 4 the exponents of the two hands are 0 and one half. Print yours, and look at how they are divided.",
    section=CLOCKS,
)
def one_speed(T, D, *, base=10000.0, interleaved=True):
    """Each hand turns by one radian a step. Only the first should; the others get slower from left to right."""
    return _hands(_angle(T, np.ones(D // 2)), interleaved)


@MISTAKES.add(
    "the speeds are evenly spaced",
    hint="From one hand to the next, is the speed divided by a fixed number, or is a fixed number subtracted?",
    more="Divide the speed of each hand by that of the hand before it. All these ratios should be equal.",
    section=CLOCKS,
)
def evenly_spaced(T, D, *, base=10000.0, interleaved=True):
    """Your speeds go down by equal differences. They should go down by equal ratios: powers of the base."""
    return _hands(_angle(T, np.linspace(1, 1 / base, D // 2)), interleaved)


@MISTAKES.add(
    "the base is multiplied where a power is meant",
    hint="What is 10000 to the power of 0, and what is 10000 times 0?",
    more="Print the divisors. For D = 4 they should be 1 and 100.",
    section=CLOCKS,
)
def product(T, D, *, base=10000.0, interleaved=True):
    """You divide by the base times 2k/D, which is 0 for the first hand. It should be the base to the power of 2k/D."""
    return _hands(_angle(T, 1 / (base * np.arange(0, D, 2) / D)), interleaved)


@MISTAKES.add(
    "D divides the power, not the exponent",
    hint="A power is computed before a division. Where do you need parentheses?",
    more="The fastest hand should turn by one radian a step. Does yours turn by 1/D? Print the speeds.",
    section=CLOCKS,
)
def brackets_missing(T, D, *, base=10000.0, interleaved=True):
    """The speed is a power of the base with exponent 2k, divided by D.

    It is the exponent that should be divided by D.
    """
    return _hands(_angle(T, base ** (-np.arange(0.0, D, 2)) / D), interleaved)


@MISTAKES.add(
    "D multiplies the speed",
    hint="A power is computed before a division. Where do you need parentheses in your divisor?",
    more="The fastest hand should turn by one radian a step. Does yours turn by D? Print the divisors.",
    section=CLOCKS,
)
def brackets_missing_below(T, D, *, base=10000.0, interleaved=True):
    """In your divisor the power has the exponent 2k, and is divided by D afterwards. The exponent should be 2k/D."""
    return _hands(_angle(T, D * base ** (-np.arange(0.0, D, 2))), interleaved)


@MISTAKES.add(
    "the exponent is not divided by D",
    hint="Is your last hand slower than 1/base? What does the width D do in the exponent?",
    more="For D = 4 the second hand should turn by 0.01 radian a step. Print your speeds and the exponents.",
    section=CLOCKS,
)
def width_missing(T, D, *, base=10000.0, interleaved=True):
    """The exponent is 2k in your table, so all hands but the first practically stand still. It should be 2k/D."""
    return _hands(_angle(T, base ** (-np.arange(0.0, D, 2))), interleaved)


@MISTAKES.add(
    "the wrong logarithm",
    hint="The exponential function undoes only one logarithm: the one to which base?",
    more="For D = 4 the second hand should turn by 0.01 radian a step. Follow it through the logarithm: ln 10000 is "
    "9.21, and the logarithm to base 10 is 4.",
    section=CLOCKS,
)
def decimal_logarithm(T, D, *, base=10000.0, interleaved=True):
    """A logarithm to base 10 is followed by a power of e. The two have to belong together."""
    return _hands(_angle(T, np.exp(-np.arange(0, D, 2) / D * np.log10(base))), interleaved)


@MISTAKES.add(
    "powers of e, not of the base",
    hint="Where does the base enter your speeds?",
    more="For D = 4 the second hand should turn by 0.01 radian a step. Does yours turn by 0.61, which is e to the "
    "power of minus one half?",
    section=CLOCKS,
)
def base_e(T, D, *, base=10000.0, interleaved=True):
    """The speeds are powers of e. They should be powers of the base, so its logarithm is missing."""
    return _hands(_angle(T, np.exp(-np.arange(0, D, 2) / D)), interleaved)


@MISTAKES.add(
    "rows and columns are exchanged",
    hint="How many rows should the table for 6 positions of width 4 have?",
    more="A row is a position, and is added to the vector of one word. Look at the two arrays that you multiply: "
    "which of them has to be a column?",
    section=CLOCKS,
)
def transposed(T, D, *, base=10000.0, interleaved=True):
    """Each position is a column of your table. It should be a row: the shape is (T, D)."""
    return _hands(_angle(T, _omega(D, base)), interleaved).T


@MISTAKES.add(
    "T and D have changed places",
    hint="Which of the two arguments counts positions, and which is the width of a vector?",
    more="For T = 6 and D = 4 there should be 6 rows and 2 different speeds. Count yours.",
    section=CLOCKS,
)
def arguments_exchanged(T, D, *, base=10000.0, interleaved=True):
    """You made D positions of width T. It should be T positions of width D."""
    return _hands(_angle(D, _omega(T, base)), interleaved)[:, :T]


@MISTAKES.add(
    "positions are counted from 1",
    hint="Where does every hand point at the first position?",
    more="The first row should be 0, 1, 0, 1: all hands point to twelve. Yours begins with sin 1 = 0.841.",
    section=CLOCKS,
)
def from_one(T, D, *, base=10000.0, interleaved=True):
    """Your first row is position 1. Positions are counted from 0."""
    return _hands(_angle(T + 1, _omega(D, base))[1:], interleaved)


@MISTAKES.add(
    "counted from 1, and half-split",
    hint="At which position is the first row, and where is each cosine?",
    more="The first row should be 0, 1, 0, 1. Compare it with yours, number by number.",
    section=LAYOUTS,
)
def halves_from_one(T, D, *, base=10000.0, interleaved=True):
    """Your first row is position 1, and all sines come first. Count from 0, and put each cosine next to its sine."""
    return _hands(_angle(T + 1, _omega(D, base))[1:], False)


@MISTAKES.add(
    "half-split, and the hands slow down half as fast",
    hint="Where is each cosine, and is your exponent 2k/D or k/D?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand turns by 0.01 radian a step.",
    section=LAYOUTS,
)
def halves_half_exponent(T, D, *, base=10000.0, interleaved=True):
    """All sines come first, and the exponent is k/D. Each cosine belongs next to its sine, with the exponent 2k/D."""
    return _hands(_angle(T, np.sqrt(_omega(D, base))), False)


@MISTAKES.add(
    "half-split, and the hands slow down twice as fast",
    hint="Where is each cosine, and how often did the factor two enter the exponent?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand turns by 0.01 radian a step.",
    section=LAYOUTS,
)
def halves_double_exponent(T, D, *, base=10000.0, interleaved=True):
    """All sines come first, and the exponent is 4k/D. Each cosine belongs next to its sine, with the exponent 2k/D."""
    return _hands(_angle(T, _omega(D, base) ** 2), False)


@MISTAKES.add(
    "sines and cosines exchanged, and a speed for each column",
    hint="Which comes first at position 0, and how many speeds does one hand have?",
    more="The first row should be 0, 1, 0, 1. And the squares of the two numbers of a pair should add up to 1.",
    section=CLOCKS,
)
def swapped_own_speeds(T, D, *, base=10000.0, interleaved=True):
    """The cosine comes first, and has a speed of its own. A pair is one hand: its sine, then its cosine."""
    angle = np.arange(T)[:, None] * base ** (-np.arange(D) / D)
    return _lay(np.cos(angle[:, 0::2]), np.sin(angle[:, 1::2]), interleaved)


@MISTAKES.add(
    "one row too many",
    hint="How many positions are there from 0 to T - 1, and how many from 0 to T?",
    more="Count your rows for T = 6. Where does the last position come from?",
    section=CLOCKS,
)
def one_row_too_many(T, D, *, base=10000.0, interleaved=True):
    """Your table goes on to position T. The last one is T - 1."""
    return _hands(_angle(T + 1, _omega(D, base)), interleaved)


@MISTAKES.add(
    "twice as wide as it should be",
    hint="A hand has two columns. How many hands fit into the width D?",
    more="For D = 4 there are two hands, with the exponents 0 and 2/4. How many exponents do you have?",
    section=CLOCKS,
)
def too_wide(T, D, *, base=10000.0, interleaved=True):
    """You made D hands, with a sine and a cosine each: 2 D columns. There should be D/2 hands."""
    return _hands(_angle(T, base ** (-np.arange(D) / D)), interleaved)


@MISTAKES.add(
    "only sines",
    hint="Can you tell from the sine alone whether a hand is on its way up or down?",
    more="Position 0 should have a 1 in every second column. Does yours have any 1?",
    section=CLOCKS,
)
def only_sines(T, D, *, base=10000.0, interleaved=True):
    """Both columns of each pair hold the sine. The second one should hold the cosine of the same angle."""
    sin = np.sin(_angle(T, _omega(D, base)))
    return _lay(sin, sin, interleaved)


@MISTAKES.add(
    "a sine for each column",
    hint="How many hands are there, and what does the second column of each hand hold?",
    more="Position 0 should be 0, 1, 0, 1. Yours is 0 everywhere. Which function gives a 1 there?",
    section=CLOCKS,
)
def sine_for_each_column(T, D, *, base=10000.0, interleaved=True):
    """Each column holds the sine of a speed of its own. There should be D/2 hands, each with a sine and a cosine."""
    return np.sin(np.arange(T)[:, None] * base ** (-np.arange(D) / D))


@MISTAKES.add(
    "only cosines",
    hint="Can you tell from the cosine alone on which side of twelve a hand is?",
    more="Position 0 should have a 0 in every second column. Does yours have any 0?",
    section=CLOCKS,
)
def only_cosines(T, D, *, base=10000.0, interleaved=True):
    """Both columns of each pair hold the cosine. The first one should hold the sine of the same angle."""
    cos = np.cos(_angle(T, _omega(D, base)))
    return _lay(cos, cos, interleaved)


@MISTAKES.add(
    "the cosines are left at zero",
    hint="Which columns of your table are zero in every row, and what belongs there?",
    more="The row of position 0 should be 0, 1, 0, 1. Which line fills the odd columns?",
    section=CLOCKS,
)
def cosines_left_out(T, D, *, base=10000.0, interleaved=True):
    """The columns of the sines are right, and the others are still zero. They should hold the cosines."""
    sin = np.sin(_angle(T, _omega(D, base)))
    return _lay(sin, np.zeros_like(sin), interleaved)


@MISTAKES.add(
    "the cosines are negative",
    hint="What is the cosine of 0?",
    more="The first row should be 0, 1, 0, 1. Where does the minus sign of your 1 come from?",
    section=STEP,
)
def cosines_negative(T, D, *, base=10000.0, interleaved=True):
    """Each cosine has the wrong sign. At position 0 every hand points to twelve: its cosine is 1."""
    angle = _angle(T, _omega(D, base))
    return _lay(np.sin(angle), -np.cos(angle), interleaved)


@MISTAKES.add(
    "positions and hands are counted from 1",
    hint="What should the first row be? And how fast is the first hand?",
    more="Two counts begin with 1: that of the positions, and that of the hands. The first row should be 0, 1, 0, 1, "
    "and the second should begin with sin 1 = 0.841.",
    section=CLOCKS,
)
def both_from_one(T, D, *, base=10000.0, interleaved=True):
    """Your first row is position 1, and your first hand is hand 1. Both are counted from 0."""
    return _hands(_angle(T + 1, base ** (-(np.arange(0, D, 2) + 2) / D))[1:], interleaved)


@MISTAKES.add(
    "sines are negative: the hands turn backwards",
    hint="In which quarter of the clock is a hand after a step of one radian?",
    more="In the second row, sin 1 = 0.841 is positive. Where does the minus sign in your angle come from?",
    section=STEP,
)
def backwards(T, D, *, base=10000.0, interleaved=True):
    """Your angles are negative, so that each sine has the wrong sign. The cosine does not notice."""
    return _hands(-_angle(T, _omega(D, base)), interleaved)


@MISTAKES.add(
    "sines and cosines alternate from row to row",
    hint="Does a word at an odd position get no sines at all? What should alternate: rows or columns?",
    more="Every row should contain sines and cosines. Look at which index you test for being even.",
    section=CLOCKS,
)
def alternating_rows(T, D, *, base=10000.0, interleaved=True):
    """Even positions have sines, odd ones cosines. It is the columns that should alternate, not the positions."""
    angle = np.repeat(_angle(T, _omega(D, base)), 2, axis=1)
    return np.where(np.arange(T)[:, None] % 2 == 0, np.sin(angle), np.cos(angle))


@MISTAKES.add(
    "angles taken for degrees",
    hint="In which unit do sine functions and the formula of this task measure angles?",
    more="After one step the sine of the fastest hand is 0.841. Is yours 0.017?",
    section=CLOCKS,
)
def degrees(T, D, *, base=10000.0, interleaved=True):
    """The angles were converted from degrees. They are radians already."""
    return _hands(np.deg2rad(_angle(T, _omega(D, base))), interleaved)


@MISTAKES.add(
    "angles converted to degrees",
    hint="In which unit do sine functions and the formula of this task measure angles?",
    more="After one step the sine of the fastest hand is 0.841, the sine of one radian. No conversion is needed.",
    section=CLOCKS,
)
def made_degrees(T, D, *, base=10000.0, interleaved=True):
    """The angles were converted to degrees before the sine was taken. Radians are what it needs."""
    return _hands(np.rad2deg(_angle(T, _omega(D, base))), interleaved)


@MISTAKES.add(
    "speeds taken for whole turns",
    hint="One step moves the fastest hand by one radian. Is that a whole turn?",
    more="After a whole turn a hand is where it was. Does your fastest hand ever leave twelve o'clock?",
    section=CLOCKS,
)
def whole_turns(T, D, *, base=10000.0, interleaved=True):
    """The angles contain a factor of two pi. The speeds are radians per step already, not turns per step."""
    return _hands(2 * np.pi * _angle(T, _omega(D, base)), interleaved)


@MISTAKES.add(
    "the angles themselves are returned",
    hint="Are your numbers all between -1 and 1?",
    more="The angle is the direction of a hand. The table holds the tip of the hand: two numbers for each angle.",
    section=CLOCKS,
)
def bare_angles(T, D, *, base=10000.0, interleaved=True):
    """Your table holds angles. The task asks for their sines and cosines."""
    angle = _angle(T, _omega(D, base))
    return _lay(angle, angle, interleaved)


@MISTAKES.add(
    "positions are divided by the length",
    hint="Does the vector of position 1 depend on how long the sentence is? Should it?",
    more="The second row should begin with sin 1 = 0.841, for any T. Look at what you divide the positions by.",
    section=WISHES,
)
def share_of_length(T, D, *, base=10000.0, interleaved=True):
    """You use i/T in place of i, so one more word changes every vector. Positions are whole numbers here."""
    return _hands(_angle(T, _omega(D, base)) / T, interleaved)


@MISTAKES.add(
    "positions run backwards",
    hint="Which row should be 0, 1, 0, 1: the first, or the last?",
    more="All hands point to twelve at position 0, the first word. Find that row in your table.",
    section=CLOCKS,
)
def last_first(T, D, *, base=10000.0, interleaved=True):
    """Your last row is position 0. The first row should be."""
    return _hands(_angle(T, _omega(D, base)), interleaved)[::-1]


@MISTAKES.add(
    "the table is scaled by the root of D",
    hint="How long may a hand be, if its tip is a sine and a cosine?",
    more="The row of position 0 should be 0, 1, 0, 1. It is the words that the paper multiplies by the root of D.",
    section=CLOCKS,
)
def times_root(T, D, *, base=10000.0, interleaved=True):
    """Everything is multiplied by the root of D. The numbers of the table should be sines and cosines, at most 1."""
    return _hands(_angle(T, _omega(D, base)), interleaved) * D**0.5


@MISTAKES.add(
    "the rows have length 1",
    hint="What is the sum of a squared sine and a squared cosine, and how many such sums does a row have?",
    more="The row of position 0 should be 0, 1, 0, 1, whose length is the root of 2. Yours was divided by it.",
    section=CLOCKS,
)
def unit_rows(T, D, *, base=10000.0, interleaved=True):
    """Each row was divided by its length. The table holds the sines and cosines as they are."""
    return _hands(_angle(T, _omega(D, base)), interleaved) / (D / 2) ** 0.5


@MISTAKES.add(
    "reshaped where it had to be transposed",
    hint="Print the two small arrays before the last step. Does each row of the result come from one position?",
    more="Before the last step your angles have the shape (D/2, T). A reshape keeps the order of the numbers, and so "
    "mixes positions. Which shape is needed?",
    section=CLOCKS,
)
def reshaped(T, D, *, base=10000.0, interleaved=True):
    """The shape is right, but the angles had a row for each hand, and reshaping does not exchange rows and columns."""
    return _hands(_angle(T, _omega(D, base)).T, True).reshape(T, D)


@MISTAKES.add(
    "sines and cosines are stacked along the wrong axis",
    hint="Print the shape before the last step. Which axis has length 2, and where does it have to be?",
    more="A reshape reads the last axis first. For a sine to be followed by its cosine, the axis of the two has to "
    "come last.",
    section=LAYOUTS,
)
def stacked_in_front(T, D, *, base=10000.0, interleaved=True):
    """All sines fill the upper rows and all cosines the lower ones. Each row should hold both for one position."""
    angle = _angle(T, _omega(D, base))
    return np.stack([np.sin(angle), np.cos(angle)]).reshape(T, D)


@MISTAKES.add(
    "cosines are below the sines",
    hint="How many rows and columns does your table have for T = 6 and D = 4?",
    more="A position is one row with D numbers. Along which axis do two arrays have to be joined for that?",
    section=LAYOUTS,
)
def joined_below(T, D, *, base=10000.0, interleaved=True):
    """The shape is (2 T, D/2): the cosines were put below the sines. They belong in the same rows."""
    angle = _angle(T, _omega(D, base))
    return np.concatenate([np.sin(angle), np.cos(angle)])


@MISTAKES.add(
    "a dimension of 1 in front",
    hint="How many dimensions does the task ask for?",
    more="Print the shape. It should be (T, D), two numbers.",
    section=CLOCKS,
)
def batch_in_front(T, D, *, base=10000.0, interleaved=True):
    """The shape is (1, T, D). It should be (T, D), which fits any batch as it is."""
    return _hands(_angle(T, _omega(D, base)), interleaved)[None]


@MISTAKES.add(
    "the table holds only whole numbers",
    hint="Which numbers can the array that you filled hold: any, or only whole ones?",
    more="Print the dtype of your table when you make it, and the row of position 1.",
    section=CLOCKS,
)
def whole_numbers(T, D, *, base=10000.0, interleaved=True):
    """Your table holds 0, 1 and -1 only: everything after the decimal point was cut off."""
    return _hands(_angle(T, _omega(D, base)), interleaved).astype(int)


@MISTAKES.add(
    "angles were rounded down",
    hint="Python has two division operators. Which one keeps what is after the decimal point?",
    more="The second hand is at 0.01 radian after one step. Is it 0 in your table?",
    section=CLOCKS,
)
def whole_angles(T, D, *, base=10000.0, interleaved=True):
    """Your angles are whole numbers, so slow hands stand still. The division cut off the digits after the point."""
    return _hands(np.floor(_angle(T, _omega(D, base)) + 1e-9), interleaved)


@MISTAKES.add(
    "divided by T, not by D",
    hint="Should the speed of a hand depend on how many positions there are?",
    more="For D = 4 the second hand turns by 0.01 radian a step, for any T. Which number divides your exponent?",
    section=CLOCKS,
)
def length_for_width(T, D, *, base=10000.0, interleaved=True):
    """The exponent is 2k/T in your table. It is the width D of the vectors that belongs there."""
    return _hands(_angle(T, base ** (-np.arange(0, D, 2) / T)), interleaved)


@MISTAKES.add(
    "positions are shares of the last one",
    hint="Does the vector of position 1 depend on how long the sentence is? Should it?",
    more="The second row should begin with sin 1 = 0.841, for any T. Look at what you divide the positions by.",
    section=WISHES,
)
def share_of_last(T, D, *, base=10000.0, interleaved=True):
    """You use i/(T-1) in place of i, so one more word changes every vector. Positions are whole numbers here."""
    return _hands(_angle(T, _omega(D, base)) / (T - 1), interleaved)


@MISTAKES.add(
    "a logarithm to base 2",
    hint="The exponential function undoes only one logarithm: the one to which base?",
    more="For D = 4 the second hand should turn by 0.01 radian a step. The natural logarithm of 10000 is 9.21; which "
    "one do you use?",
    section=CLOCKS,
)
def binary_logarithm(T, D, *, base=10000.0, interleaved=True):
    """A logarithm to base 2 is followed by a power of e. The two have to belong together."""
    return _hands(_angle(T, np.exp(-np.arange(0, D, 2) / D * np.log2(base))), interleaved)


@MISTAKES.add(
    "one row too few",
    hint="How many positions are there from 0 to T - 1?",
    more="Count your rows for T = 6. Which position is missing, the first or the last?",
    section=CLOCKS,
)
def one_row_too_few(T, D, *, base=10000.0, interleaved=True):
    """Your table ends one position too early. The last one is T - 1."""
    return _hands(_angle(T, _omega(D, base)), interleaved)[:-1]


@MISTAKES.add(
    "the speed multiplies the sine, not the angle",
    hint="Does a slow hand have a shorter arrow, or does it turn by a smaller angle?",
    more="Square the two numbers of a pair and add them up. For every hand the sum is 1, since all hands have length "
    "1.",
    section=CLOCKS,
)
def speed_outside(T, D, *, base=10000.0, interleaved=True):
    """All your hands turn at the same speed, and slow ones are shorter. The speed belongs inside the sine."""
    i = np.arange(T)[:, None]
    return _lay(np.sin(i) * _omega(D, base), np.cos(i) * _omega(D, base), interleaved)


@MISTAKES.add(
    "speed and position are added",
    hint="If a hand makes a step of some size i times, how far has it turned?",
    more="At position 0 all hands point to twelve: 0, 1, 0, 1. What is your angle there?",
    section=CLOCKS,
)
def speed_added(T, D, *, base=10000.0, interleaved=True):
    """The angle is position plus speed in your table. It should be position times speed."""
    return _hands(np.arange(T)[:, None] + _omega(D, base), interleaved)


@MISTAKES.add(
    "two tables instead of one",
    hint="How many arrays does the task ask for, and how wide?",
    more="One row holds the sines and the cosines of a position. What has to happen to the two tables?",
    section=LAYOUTS,
)
def two_tables(T, D, *, base=10000.0, interleaved=True):
    """Sines and cosines are returned as two tables. They belong in one, each cosine next to its sine."""
    angle = _angle(T, _omega(D, base))
    return np.sin(angle), np.cos(angle)


@MISTAKES.add(
    "sines in the first half, and nothing in the second",
    hint="What is missing, and where is each cosine?",
    more="The row of position 0 should be 0, 1, 0, 1. Yours is 0 everywhere.",
    section=LAYOUTS,
)
def half_empty(T, D, *, base=10000.0, interleaved=True):
    """The first half of each row holds the sines, and the rest is zero. Each sine should have its cosine next to it."""
    sin = np.sin(_angle(T, _omega(D, base)))
    return _lay(sin, np.zeros_like(sin), False)


@MISTAKES.add(
    "the columns are shifted by one",
    hint="In which column is the first sine?",
    more="The row of position 0 should be 0, 1, 0, 1, and the second row should begin with sin 1 = 0.841.",
    section=CLOCKS,
)
def shifted_columns(T, D, *, base=10000.0, interleaved=True):
    """Every number is one column too far to the right. The sine of the first hand belongs in column 0."""
    return np.roll(_hands(_angle(T, _omega(D, base)), interleaved), 1, axis=1)


@MISTAKES.add(
    "exchanged, and counted from 1",
    hint="What is the first row, and which comes first in a pair?",
    more="The first row should be 0, 1, 0, 1. Compare it with yours, number by number.",
    section=CLOCKS,
)
def swapped_from_one(T, D, *, base=10000.0, interleaved=True):
    """Your first row is position 1, and the cosine comes before the sine. Count from 0, and let the sine come first."""
    angle = _angle(T + 1, _omega(D, base))[1:]
    return _lay(np.cos(angle), np.sin(angle), interleaved)


@MISTAKES.add(
    "exchanged, and the hands slow down half as fast",
    hint="Which comes first in a pair, and is your exponent 2k/D or k/D?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand turns by 0.01 radian a step.",
    section=CLOCKS,
)
def swapped_half_exponent(T, D, *, base=10000.0, interleaved=True):
    """The cosine comes before the sine, and the exponent is k/D. The sine should come first, with the exponent 2k/D."""
    angle = _angle(T, np.sqrt(_omega(D, base)))
    return _lay(np.cos(angle), np.sin(angle), interleaved)


@MISTAKES.add(
    "exchanged, and the hands slow down twice as fast",
    hint="Which comes first in a pair, and how often did the factor two enter the exponent?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand turns by 0.01 radian a step.",
    section=CLOCKS,
)
def swapped_double_exponent(T, D, *, base=10000.0, interleaved=True):
    """The cosine comes before the sine, and the exponent is 4k/D.

    The sine should come first, with the exponent 2k/D.
    """
    angle = _angle(T, _omega(D, base) ** 2)
    return _lay(np.cos(angle), np.sin(angle), interleaved)


@MISTAKES.add(
    "counted from 1, and the hands slow down half as fast",
    hint="At which position is your first row, and is your exponent 2k/D or k/D?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand turns by 0.01 radian a step.",
    section=CLOCKS,
)
def from_one_half_exponent(T, D, *, base=10000.0, interleaved=True):
    """Your first row is position 1, and the exponent is k/D. Count from 0, and use 2k/D."""
    return _hands(_angle(T + 1, np.sqrt(_omega(D, base)))[1:], interleaved)


@MISTAKES.add(
    "half-split, and the minus sign is missing",
    hint="Where is each cosine, and do the hands get slower or faster?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand should turn by 0.01 radian a step, not by "
    "100.",
    section=LAYOUTS,
)
def halves_faster(T, D, *, base=10000.0, interleaved=True):
    """All sines come first, and the hands get faster.

    Each cosine belongs next to its sine, and hands should slow down.
    """
    return _hands(_angle(T, 1 / _omega(D, base)), False)


@MISTAKES.add(
    "exchanged, and the minus sign is missing",
    hint="Which comes first in a pair, and do the hands get slower or faster?",
    more="The first row should be 0, 1, 0, 1. And for D = 4 the second hand should turn by 0.01 radian a step, not by "
    "100.",
    section=CLOCKS,
)
def swapped_faster(T, D, *, base=10000.0, interleaved=True):
    """The cosine comes before the sine, and the hands get faster.

    The sine should come first, and hands should get slower.
    """
    angle = _angle(T, 1 / _omega(D, base))
    return _lay(np.cos(angle), np.sin(angle), interleaved)


@MISTAKES.add(
    "sines and cosines are added up",
    hint="How many columns does your table have, and how many should it have?",
    more="A hand has two numbers, the sine and the cosine of its angle. Their sum cannot be taken apart.",
    section=CLOCKS,
)
def added_up(T, D, *, base=10000.0, interleaved=True):
    """You add the sine and the cosine of each angle, so the table is half as wide. They should be two columns."""
    angle = _angle(T, _omega(D, base))
    return np.sin(angle) + np.cos(angle)


@MISTAKES.add(
    "all sines, twice",
    hint="Which numbers of the row of position 0 should be 1? Is there any in yours?",
    more="The row of position 0 should be 0, 1, 0, 1: each sine with its own cosine next to it.",
    section=LAYOUTS,
)
def sines_twice(T, D, *, base=10000.0, interleaved=True):
    """The sines of all hands are in the row twice. The cosines are missing: each belongs next to its sine."""
    sin = np.sin(_angle(T, _omega(D, base)))
    return _lay(sin, sin, False)


@MISTAKES.add(
    "the default of the base is 1000",
    hint="Which base does the task ask for when none is given?",
    more="For D = 4 the second hand turns by 0.01 radian a step. Does yours turn by 0.032? Count the zeros.",
    section=CLOCKS,
)
def base_1000(T, D, *, base=10000.0, interleaved=True):
    """A zero is missing from the base: unless another is given, it is 10000."""
    return _hands(_angle(T, _omega(D, 1000.0 if base == 10000.0 else base)), interleaved)


@MISTAKES.add(
    "the base is not used",
    hint="Where does the argument named base appear in your formula?",
    more="With D = 4 and base 100 the second hand turns by 0.1 radian a step. Does yours turn by 0.01?",
    section=CLOCKS,
)
def base_ignored(T, D, *, base=10000.0, interleaved=True):
    """Your table is right for the base 10000, and stays the same for any other."""
    return _hands(_angle(T, _omega(D, 10000.0)), interleaved)


@MISTAKES.add(
    "the layout asked for is not used",
    hint="What should change when the argument named interleaved is False?",
    more="With interleaved=False the row of position 0 is 0, 0, 1, 1.",
    section=LAYOUTS,
)
def layout_ignored(T, D, *, base=10000.0, interleaved=True):
    """Sines and cosines alternate, whatever the call asks for. With interleaved=False all sines should come first."""
    return _hands(_angle(T, _omega(D, base)), True)


@MISTAKES.add(
    "in the half-split layout cosines come first",
    hint="What is the row of position 0 with interleaved=False?",
    more="The alternating layout is right. In the other one the row of position 0 should be 0, 0, 1, 1.",
    section=LAYOUTS,
)
def split_swapped(T, D, *, base=10000.0, interleaved=True):
    """With interleaved=False your cosines come first. It should be all sines, then all cosines."""
    angle = _angle(T, _omega(D, base))
    return _hands(angle, True) if interleaved else _lay(np.cos(angle), np.sin(angle), False)


@MISTAKES.add(
    "the row of position 0 is left empty",
    hint="What is the cosine of 0?",
    more="The row of position 0 should be 0, 1, 0, 1. At which position does your loop begin?",
    section=CLOCKS,
)
def first_row_empty(T, D, *, base=10000.0, interleaved=True):
    """Your row of position 0 is all zeros. Its sines are 0, but its cosines are 1."""
    table = _hands(_angle(T, _omega(D, base)), interleaved)
    table[0] = 0
    return table


@MISTAKES.add(
    "the exponents are rounded down to -1",
    hint="What is -2 // 4, and what is -2 / 4?",
    more="// rounds down, to the next lower whole number. Print your exponents for D = 4: they should be 0 and -0.5.",
    section=CLOCKS,
)
def exponents_rounded_down(T, D, *, base=10000.0, interleaved=True):
    """All hands after the first turn at the speed 1 / base, because you round their exponents down to -1."""
    return _hands(_angle(T, base ** np.floor(-np.arange(0, D, 2) / D)), interleaved)


EXERCISE = Exercise(
    name="sinusoidal_positions",
    reference=attnlib.sinusoidal_positions,
    outputs={"positions": ("T", "D")},
    rubric={NUMBERS: 4, BASE: 1, EDGES: 1},
    section=CLOCKS,
    advice="Take T = 3 and D = 4. Write the two speeds on paper (1 and 0.01), then the angles of position 1, then the "
    "row of position 1: 0.841, 0.540, 0.010, 1.000. Print the same three things. Which is the first to differ?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("interleaved",),
    backends=("numpy",),
    solved_by=("attnlib.rope_tables",),
)
