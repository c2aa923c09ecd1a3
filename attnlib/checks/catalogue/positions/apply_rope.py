"""apply_rope(x, cos, sin): turn the pairs of components of every vector by the angles of its position."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.analytic_gradients import through_rope
from attnlib.checks.catalogue.positions.sections import PAIRS, ROPE
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, LAYOUT, BATCHES = "half-split pairs", "interleaved pairs", "leading dimensions"
PARTIAL, UNCHANGED = "a part of the width", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one vector by hand, sequences, the other layout, leading dimensions, smaller tables."""
    neighbours = {"interleaved": True}
    yield Case("one vector (10, 20, -5, 5)", NUMBERS, by_hand())
    yield Case("5 positions of width 6", NUMBERS, turns(rng, (), 5, 6))
    yield Case("7 positions of width 4", NUMBERS, turns(rng, (), 7, 4))
    yield Case("vectors in float32", NUMBERS, turns(rng, (), 3, 8, dtype=np.float32))
    yield Case("one vector (10, 20, -5, 5), neighbours paired", LAYOUT, by_hand(), neighbours)
    yield Case("5 positions of width 6, neighbours paired", LAYOUT, turns(rng, (), 5, 6), neighbours)
    yield Case("a batch of 2 (T=5, D=6)", BATCHES, turns(rng, (2,), 5, 6))
    several = turns(rng, (2, 3), 5, 8)
    several["x"] = rng.normal(size=(2, 5, 3, 8)).swapaxes(1, 2)
    yield Case("3 heads cut out of a batch of 2 (T=5, D=8)", BATCHES, several)
    yield Case("a batch of 5 (T=5, D=6)", BATCHES, turns(rng, (5,), 5, 6))  # B = T: the tables fit either axis
    yield Case("a batch of 4 (T=3, D=6), neighbours paired", BATCHES, turns(rng, (4,), 3, 6), neighbours)
    yield Case("tables of width 2 for vectors of width 7", PARTIAL, turns(rng, (), 5, 7, 2), gradients=True)
    yield Case("tables of width 3 for vectors of width 10", PARTIAL, turns(rng, (2,), 4, 10, 3))
    yield Case(
        "tables of width 2 for vectors of width 7, neighbours paired", PARTIAL, turns(rng, (), 5, 7, 2), neighbours
    )
    yield Case("inputs that must stay as they are", UNCHANGED, turns(rng, (), 3, 4), unchanged=True)


def by_hand() -> dict[str, Any]:
    """Return one vector and two angles, whose cosines and sines are 0.8 and 0.6, 0.6 and 0.8."""
    x = np.array([[10.0, 20.0, -5.0, 5.0]])
    return {"x": x, "cos": np.array([[0.8, 0.6]]), "sin": np.array([[0.6, 0.8]])}


def turns(rng, leading: tuple[int, ...], t: int, d: int, width: int = 0, dtype=np.float64) -> dict[str, Any]:
    """Return random vectors and the tables of random angles, one for each position and pair."""
    angle = rng.uniform(-3, 3, size=(t, width or d // 2))
    arrays = {"x": rng.normal(size=(*leading, t, d)), "cos": np.cos(angle), "sin": np.sin(angle)}
    return {name: x.astype(dtype) for name, x in arrays.items()}


def _read(x, width, neighbours):
    """Return the first and the second of each pair, and what is in no pair."""
    turned, rest = x[..., : 2 * width], x[..., 2 * width :]
    if neighbours:
        return turned[..., 0::2], turned[..., 1::2], rest
    return turned[..., :width], turned[..., width:], rest


def _write(pair, rest, neighbours):
    """Put the first and the second of each pair back, in front of what is in no pair."""
    a, b = pair
    pairs = [np.stack([a, b], axis=-1).reshape(*a.shape[:-1], 2 * a.shape[-1])] if neighbours else [a, b]
    return np.concatenate([*pairs, rest] if rest.size else pairs, axis=-1)


def _by(rule, x, cos, sin, neighbours):
    """Return x with every pair (a, b) replaced by what a rule makes of it."""
    a, b, rest = _read(x, cos.shape[-1], neighbours)
    return _write(rule(a, b, cos, sin), rest, neighbours)


def _rotate(a, b, cos, sin):
    return a * cos - b * sin, b * cos + a * sin


def _full(x, cos, sin, alternating, halves):
    """Return x * cos + partner * sin, with tables and partners of full width, each in a layout of its own."""
    width = cos.shape[-1]
    turned, rest = x[..., : 2 * width], x[..., 2 * width :]
    spread = (lambda z: np.repeat(z, 2, axis=-1)) if alternating else (lambda z: np.concatenate([z, z], axis=-1))
    a, b, _ = _read(turned, width, not halves)
    partner = _write((-b, a), turned[..., :0], not halves)
    return np.concatenate([turned * spread(cos) + partner * spread(sin), rest], axis=-1)


@MISTAKES.add(
    "turned in the wrong direction",
    hint="A pair (1, 0) is turned by a small angle. Does its second component become positive or negative?",
    more="Look at the two signs of the sine. The minus belongs where the first component is computed, the plus where "
    "the second is.",
    section=ROPE,
)
def wrong_direction(x, cos, sin, *, interleaved=False):
    """Each pair is turned by the right angle, but backwards: the minus sign goes with the wrong component."""
    return _by(lambda a, b, c, s: (a * c + b * s, b * c - a * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "the minus sign is missing",
    hint="A turn keeps the length of a vector. Does yours?",
    more="Compute a squared plus b squared before and after, for one pair. Of the two sines, one has a minus sign.",
    section=ROPE,
)
def no_minus(x, cos, sin, *, interleaved=False):
    """Both components add the other one times the sine. In a turn one of the two is subtracted."""
    return _by(lambda a, b, c, s: (a * c + b * s, b * c + a * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "two minus signs",
    hint="A turn keeps the length of a vector. Does yours?",
    more="Compute a squared plus b squared before and after, for one pair. Of the two sines, one has a minus sign.",
    section=ROPE,
)
def both_minus(x, cos, sin, *, interleaved=False):
    """Both components subtract the other one times the sine. In a turn one of the two is added."""
    return _by(lambda a, b, c, s: (a * c - b * s, b * c - a * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "the second component has the wrong sign",
    hint="With an angle of 0 nothing should change. What does your function do to the second of a pair?",
    more="Put cosine 1 and sine 0 into your two lines. Both components should come out as they went in.",
    section=ROPE,
)
def mirrored(x, cos, sin, *, interleaved=False):
    """The second component comes out with its sign reversed, so that pairs are mirrored as well as turned."""
    return _by(lambda a, b, c, s: (a * c - b * s, -(b * c + a * s)), x, cos, sin, interleaved)


@MISTAKES.add(
    "mirrored where it should be turned",
    hint="With an angle of 0 nothing should change. What does your function do to the second of a pair?",
    more="Put cosine 1 and sine 0 into your two lines. Both components should come out as they went in. Then see "
    "which of the two sines has the minus.",
    section=ROPE,
)
def reflected(x, cos, sin, *, interleaved=False):
    """Lengths are kept, but this is a reflection, not a turn: at angle 0 the second component changes its sign."""
    return _by(lambda a, b, c, s: (a * c + b * s, a * s - b * c), x, cos, sin, interleaved)


@MISTAKES.add(
    "the cosine has the wrong sign in the second component",
    hint="Put cosine 1 and sine 0 into your second line. Does b come out?",
    more="In the second component, which of the two products has a minus sign in yours, and should it?",
    section=ROPE,
)
def second_line_minus(x, cos, sin, *, interleaved=False):
    """Your second component is a sin minus b cos. The two should be added: at angle 0 it has to be b."""
    return _by(lambda a, b, c, s: (a * c - b * s, a * s - b * c), x, cos, sin, interleaved)


@MISTAKES.add(
    "sine and cosine are exchanged",
    hint="With an angle of 0 nothing should change. What does your function do there?",
    more="At angle 0 the cosine is 1 and the sine 0. Which of the two has to go with the component itself?",
    section=ROPE,
)
def tables_exchanged(x, cos, sin, *, interleaved=False):
    """Each component is multiplied by the sine and its partner by the cosine. It should be the other way round."""
    return _by(_rotate, x, sin, cos, interleaved)


@MISTAKES.add(
    "neighbours are paired instead of halves",
    hint="Which component is turned together with component 0: the next one, or the one half a width further on?",
    more="In the first case the pairs are (10, -5) and (20, 5). Which pairs did you turn?",
    section=PAIRS,
)
def layouts_exchanged(x, cos, sin, *, interleaved=False):
    """You turn components 0 and 1 together. In the half-split layout it is component k and component k + D/2."""
    return _by(_rotate, x, cos, sin, not interleaved)


@MISTAKES.add(
    "the layout asked for is not used",
    hint="What should change when the argument named interleaved is True?",
    more="With interleaved=True the pairs of (10, 20, -5, 5) are (10, 20) and (-5, 5).",
    section=PAIRS,
)
def layout_ignored(x, cos, sin, *, interleaved=False):
    """Halves are paired, whatever the call asks for. With interleaved=True neighbours should be."""
    return _by(_rotate, x, cos, sin, False)


@MISTAKES.add(
    "halves are read, neighbours are written",
    hint="Where should the two results of a pair be put: where its components came from?",
    more="In the first case your numbers are right, but not their places. Look at the step that joins the two parts.",
    section=PAIRS,
)
def written_as_neighbours(x, cos, sin, *, interleaved=False):
    """The pairs are rotated correctly, but put back side by side. They should be half a width apart."""
    a, b, rest = _read(x, cos.shape[-1], interleaved)
    return _write(_rotate(a, b, cos, sin), rest, True)


@MISTAKES.add(
    "neighbours are read, halves are written",
    hint="Which two components make the first pair, and where do you put what becomes of them?",
    more="In the first case the pairs are (10, -5) and (20, 5). Look at the step that takes the vector apart, and at "
    "the one that joins it. The two have to match.",
    section=PAIRS,
)
def read_as_neighbours(x, cos, sin, *, interleaved=False):
    """You take neighbours as pairs, and put the results back as halves. In the half-split layout both are halves."""
    a, b, rest = _read(x, cos.shape[-1], True)
    return _write(_rotate(a, b, cos, sin), rest, False)


@MISTAKES.add(
    "with interleaved=True the results are put back as halves",
    hint="With neighbours as pairs, where should the two results of a pair be put?",
    more="The numbers are right, but not their places. Joining two arrays puts all first components in front. What "
    "has to happen so that they alternate?",
    section=PAIRS,
)
def neighbours_written_as_halves(x, cos, sin, *, interleaved=False):
    """With interleaved=True pairs are rotated correctly, but put back half a width apart. They belong side by side."""
    a, b, rest = _read(x, cos.shape[-1], interleaved)
    return _write(_rotate(a, b, cos, sin), rest, False)


@MISTAKES.add(
    "with interleaved=True halves are read",
    hint="With interleaved=True, which component is turned together with component 0?",
    more="With interleaved=True the pairs of (10, 20, -5, 5) are (10, 20) and (-5, 5). Look at the step that takes the "
    "vector apart.",
    section=PAIRS,
)
def halves_written_as_neighbours(x, cos, sin, *, interleaved=False):
    """With interleaved=True you put results side by side, but the pairs that you turn are still halves."""
    a, b, rest = _read(x, cos.shape[-1], False)
    return _write(_rotate(a, b, cos, sin), rest, interleaved)


@MISTAKES.add(
    "the tables are spread for the other layout",
    hint="Both components of a pair are turned by one angle. Write under each component the angle it gets.",
    more="With tables (c0, c1) and halves as pairs, components 0 and 2 need c0. Which entries do they get in yours?",
    section=PAIRS,
)
def spread_alternating(x, cos, sin, *, interleaved=False):
    """Partners are halves, but each angle is given to two neighbours. Components k and k + D/2 need the same one."""
    return _full(x, cos, sin, not interleaved, not interleaved)


@MISTAKES.add(
    "the partners are neighbours, the angles are for halves",
    hint="Which component is the partner of component 0, and which angle do the two share?",
    more="With halves as pairs, component 0 goes with component D/2. Write the partner of each component under the "
    "vector.",
    section=PAIRS,
)
def partners_alternating(x, cos, sin, *, interleaved=False):
    """The angles are spread for halves, but each component is mixed with its neighbour. Its partner is D/2 away."""
    return _full(x, cos, sin, interleaved, interleaved)


@MISTAKES.add(
    "with interleaved=True the tables are spread for halves",
    hint="With interleaved=True, which two components share the first angle?",
    more="With tables (c0, c1) and neighbours as pairs, the four components need c0, c0, c1, c1. What do they get?",
    section=PAIRS,
)
def tiled_for_neighbours(x, cos, sin, *, interleaved=False):
    """With interleaved=True the partners are neighbours, but the angles are laid out for halves."""
    return _full(x, cos, sin, False, not interleaved)


@MISTAKES.add(
    "with interleaved=True the partners are still halves",
    hint="With interleaved=True, which component is mixed with component 0?",
    more="The angles are in the right places. Write the partner of each component under the vector: it should be its "
    "neighbour, with a minus sign for the first of each pair.",
    section=PAIRS,
)
def partners_in_halves(x, cos, sin, *, interleaved=False):
    """With interleaved=True each angle goes to two neighbours, but each component is mixed with one D/2 away."""
    return _full(x, cos, sin, interleaved, True)


@MISTAKES.add(
    "only the first components are turned",
    hint="A turn changes both components of a pair. Which of yours stayed as it was?",
    more="In the first case the pair (10, -5) becomes (11, 2). Compute the 2 on paper.",
    section=ROPE,
)
def first_alone(x, cos, sin, *, interleaved=False):
    """The first component of each pair is right, the second is as it was. Both have to change."""
    return _by(lambda a, b, c, s: (a * c - b * s, b), x, cos, sin, interleaved)


@MISTAKES.add(
    "only the second components are turned",
    hint="A turn changes both components of a pair. Which of yours stayed as it was?",
    more="In the first case the pair (10, -5) becomes (11, 2). Compute the 11 on paper.",
    section=ROPE,
)
def second_alone(x, cos, sin, *, interleaved=False):
    """The second component of each pair is right, the first is as it was. Both have to change."""
    return _by(lambda a, b, c, s: (a, b * c + a * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "each component is mixed with itself",
    hint="A turn mixes the two components of a pair. What is multiplied by the sine in each of your lines?",
    more="In the first case the pair (10, -5) becomes (11, 2). On paper, which two numbers make the 11?",
    section=ROPE,
)
def own_partner(x, cos, sin, *, interleaved=False):
    """Each component is added to itself: x cos + x sin. The sine belongs to its partner, once with a minus sign."""
    return _by(lambda a, b, c, s: (a * c + a * s, b * c + b * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "nothing is turned",
    hint="Is there a position at which a vector should change? Does yours?",
    more="In the first case the pair (10, -5) becomes (11, 2). Print the pair before and after. And is what you return "
    "the array that you wrote to?",
    section=ROPE,
)
def untouched(x, cos, sin, *, interleaved=False):
    """The vectors come back as they went in. Every pair should be turned by the angle of its position."""
    return x.copy()


@MISTAKES.add(
    "the second line uses what the first has changed",
    hint="When the second component is computed, is the first still the old one?",
    more="Both new components are made of the two old ones. Keep the old first component under a name of its own, and "
    "make sure that it is not a view of an array that you write to.",
    section=ROPE,
)
def one_after_the_other(x, cos, sin, *, interleaved=False):
    """The second component is computed from the first one after its turn. Both need the old values."""

    def rule(a, b, c, s):
        new = a * c - b * s
        return new, b * c + new * s

    return _by(rule, x, cos, sin, interleaved)


@MISTAKES.add(
    "the first line uses what the second has changed",
    hint="When the first component is computed, is the second still the old one?",
    more="Both new components are made of the two old ones. Keep the old second component under a name of its own.",
    section=ROPE,
)
def other_after_the_one(x, cos, sin, *, interleaved=False):
    """The first component is computed from the second one after its turn. Both need the old values."""

    def rule(a, b, c, s):
        new = b * c + a * s
        return a * c - new * s, new

    return _by(rule, x, cos, sin, interleaved)


@MISTAKES.add(
    "the two parts are joined in the wrong order",
    hint="Where should the first components of all pairs be in the result?",
    more="In the first case the result begins with 11. Where is it in yours?",
    section=ROPE,
)
def joined_reversed(x, cos, sin, *, interleaved=False):
    """Both components are right, but they have changed places in the result."""
    return _by(lambda a, b, c, s: _rotate(a, b, c, s)[::-1], x, cos, sin, interleaved)


@MISTAKES.add(
    "first and second are exchanged when they are read",
    hint="Which half of the vector holds the first components of all pairs?",
    more="In the first case the pairs are (10, -5) and (20, 5), with 10 and 20 as first components. Print what "
    "you call first and second.",
    section=ROPE,
)
def read_exchanged(x, cos, sin, *, interleaved=False):
    """You take the second component of each pair for the first, and put the results back the other way round."""
    return _by(lambda a, b, c, s: _rotate(b, a, c, s), x, cos, sin, interleaved)


@MISTAKES.add(
    "the wrong direction, and neighbours paired",
    hint="Which component goes with component 0, and which of the two sines has the minus?",
    more="In the first case the pairs are (10, -5) and (20, 5), and (10, -5) becomes (11, 2).",
    section=PAIRS,
)
def backwards_neighbours(x, cos, sin, *, interleaved=False):
    """You turn components 0 and 1 together, and backwards.

    It should be k and k + D/2, with the minus in the first line.
    """
    return _by(_rotate, x, cos, -sin, not interleaved)


@MISTAKES.add(
    "no minus sign, and neighbours paired",
    hint="Which component goes with component 0, and does your turn keep the length of a vector?",
    more="In the first case the pairs are (10, -5) and (20, 5), and (10, -5) becomes (11, 2).",
    section=PAIRS,
)
def no_minus_neighbours(x, cos, sin, *, interleaved=False):
    """You mix components 0 and 1, and add both products. It should be k and k + D/2, with one product subtracted."""
    return _by(lambda a, b, c, s: (a * c + b * s, b * c + a * s), x, cos, sin, not interleaved)


@MISTAKES.add(
    "sine and cosine are exchanged, and so are the signs",
    hint="What should happen at angle 0, and which of the two components has the minus?",
    more="At angle 0 the cosine is 1 and the sine 0, and nothing should change. Put these two numbers into your lines.",
    section=ROPE,
)
def tables_and_signs_exchanged(x, cos, sin, *, interleaved=False):
    """The sine goes with the component itself, the cosine with its partner, and the minus is in the second line."""
    return _by(lambda a, b, c, s: (a * s + b * c, b * s - a * c), x, cos, sin, interleaved)


@MISTAKES.add(
    "the components are not exchanged for the sine",
    hint="In a turn, what does the sine multiply: the component itself, or its partner?",
    more="Write the new first component of the pair (10, -5) on paper. Which of the two numbers goes with 0.6?",
    section=ROPE,
)
def not_exchanged(x, cos, sin, *, interleaved=False):
    """The sine multiplies the same component as the cosine. It should multiply the other one of the pair."""
    return _by(lambda a, b, c, s: (a * c - a * s, b * c + b * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "nothing but the cosine",
    hint="Does the first component of the result depend on the second of the input?",
    more="Turn the pair (1, 0) by a quarter turn. It should become (0, 1). What do you get?",
    section=ROPE,
)
def cosine_alone(x, cos, sin, *, interleaved=False):
    """Every component is multiplied by the cosine, which makes it shorter. In a turn the two of a pair mix."""
    return _by(lambda a, b, c, s: (a * c, b * c), x, cos, sin, interleaved)


@MISTAKES.add(
    "multiplied component by component",
    hint="Does the first component of the result depend on the second of the input?",
    more="Turn the pair (1, 0) by a quarter turn. It should become (0, 1). What do you get?",
    section=ROPE,
)
def elementwise(x, cos, sin, *, interleaved=False):
    """The first of each pair is multiplied by the cosine, the second by the sine. In a turn the two mix."""
    return _by(lambda a, b, c, s: (a * c, b * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "added, not turned",
    hint="Sinusoids are added to the words. What does RoPE do with queries and keys?",
    more="Turn a vector of zeros: it should stay a vector of zeros.",
    section=ROPE,
)
def added(x, cos, sin, *, interleaved=False):
    """The tables are added to the vectors. RoPE adds nothing: it turns each pair of components."""
    return _by(lambda a, b, c, s: (a + c, b + s), x, cos, sin, interleaved)


@MISTAKES.add(
    "added as sine and cosine, not turned",
    hint="Sinusoids are added to the words. What does RoPE do with queries and keys?",
    more="Turn a vector of zeros: it should stay a vector of zeros.",
    section=ROPE,
)
def added_sine_first(x, cos, sin, *, interleaved=False):
    """The sines and cosines are added, as for sinusoidal positions. RoPE turns each pair of components instead."""
    return _by(lambda a, b, c, s: (a + s, b + c), x, cos, sin, interleaved)


@MISTAKES.add(
    "the turn is added to the vector",
    hint="With an angle of 0 nothing should change. Is your result twice as long there?",
    more="Compute the length of the vector before and after. A turn keeps it.",
    section=ROPE,
)
def residual(x, cos, sin, *, interleaved=False):
    """The result is the vector plus the turned vector. The task asks only for the turned vector."""
    return x + _by(_rotate, x, cos, sin, interleaved)


@MISTAKES.add(
    "turned twice",
    hint="By what angle is the vector at position 1 turned: once or twice the speed of its hand?",
    more="In the first case the pair (10, -5) becomes (11, 2). Turn that by the same angle again: is that what you "
    "get?",
    section=ROPE,
)
def twice(x, cos, sin, *, interleaved=False):
    """Every pair is turned by twice the angle. Somewhere the turn is done a second time."""
    return _by(_rotate, _by(_rotate, x, cos, sin, interleaved), cos, sin, interleaved)


@MISTAKES.add(
    "the tables are taken for angles",
    hint="What do the tables hold: angles, or their cosines and sines?",
    more="With cosine 0.8 and sine 0.6 the pair (10, -5) becomes (11, 2). No further cosine is needed.",
    section=ROPE,
)
def cosine_of_cosine(x, cos, sin, *, interleaved=False):
    """You take the cosine of the table of cosines, and the sine of the sines. Both were taken already."""
    return _by(_rotate, x, np.cos(cos), np.sin(sin), interleaved)


@MISTAKES.add(
    "all positions are turned by the first angles",
    hint="Which row of the tables belongs to position 3?",
    more="Print the shape of the table that you multiply by. How many rows does it have?",
    section=ROPE,
)
def first_row_for_all(x, cos, sin, *, interleaved=False):
    """Every position is turned by the angles of the first one. Each has its own row of the tables."""
    return _by(_rotate, x, cos[:1], sin[:1], interleaved)


@MISTAKES.add(
    "one angle for all pairs",
    hint="How many columns do the tables have, and which pair does each column belong to?",
    more="Print the shape of the table that you multiply by. How many columns does it have?",
    section=ROPE,
)
def first_column_for_all(x, cos, sin, *, interleaved=False):
    """All pairs of a vector are turned by the angle of the first pair. Each has its own column of the tables."""
    return _by(lambda a, b, c, s: _rotate(a, b, c[:, :1], s[:, :1]), x, cos, sin, interleaved)


@MISTAKES.add(
    "the positions are reversed",
    hint="Which row of the tables belongs to the first vector?",
    more="Turn two equal vectors. Which of them should be turned by the angles of row 0?",
    section=ROPE,
)
def rows_reversed(x, cos, sin, *, interleaved=False):
    """The first vector is turned by the angles of the last position, and so on. Row i belongs to vector i."""
    return _by(_rotate, x, cos[::-1], sin[::-1], interleaved)


@MISTAKES.add(
    "the angles are in reverse order",
    hint="Which column of the tables belongs to the first pair?",
    more="In the first case the pair (10, -5) is turned by the angle with cosine 0.8. Which one do you use for it?",
    section=ROPE,
)
def columns_reversed(x, cos, sin, *, interleaved=False):
    """The first pair is turned by the angle of the last pair, and so on. Column k belongs to pair k."""
    return _by(_rotate, x, cos[:, ::-1], sin[:, ::-1], interleaved)


@MISTAKES.add(
    "the two parts are returned one by one",
    hint="How many arrays does the task ask for, and how wide?",
    more="The result has the shape of x. What has to happen to the two parts?",
    section=ROPE,
)
def not_joined(x, cos, sin, *, interleaved=False):
    """You return the first and the second components as two arrays. They have to be joined into one."""
    a, b, _ = _read(x, cos.shape[-1], interleaved)
    return _rotate(a, b, cos, sin)


@MISTAKES.add(
    "the tables get an axis too many",
    hint="The tables are (T, D/2). Which axes of x do they have to line up with?",
    more="Print the shapes of one half of x and of the table that you multiply it by, and write them one below the "
    "other, aligned on the right.",
    section=ROPE,
)
def extra_axis(x, cos, sin, *, interleaved=False):
    """Your tables are made for a layout where heads come between T and D. Here T and D are the last two axes."""
    return _by(_rotate, x, cos[:, None], sin[:, None], interleaved)


@MISTAKES.add(
    "right for a matrix, not for a batch",
    hint="How many dimensions may x have?",
    more="There may be any number of dimensions before T. Count D from the end of the shape, and use three dots for "
    "whatever is in front.",
    section=ROPE,
)
def unpacks_shape(x, cos, sin, *, interleaved=False):
    """You take the shape of x apart into T and D. With a batch in front there are more than two numbers."""
    T, D = x.shape
    return _by(_rotate, x.reshape(T, D), cos, sin, interleaved)


@MISTAKES.add(
    "the components are counted from the front",
    hint="For a matrix axis 1 holds the components. Which axis does when there is a batch in front?",
    more="Print the shapes of the two parts of x for a batch. Which axis became shorter, and which should?",
    section=ROPE,
)
def sliced_from_front(x, cos, sin, *, interleaved=False):
    """You split the second axis. With a batch in front that is T, not D: count from the end."""
    width = cos.shape[-1]
    turned, rest = x[:, : 2 * width], x[:, 2 * width :]
    a, b = (turned[:, 0::2], turned[:, 1::2]) if interleaved else (turned[:, :width], turned[:, width:])
    return _write(_rotate(a, b, cos, sin), rest, interleaved)


@MISTAKES.add(
    "joined along axis 1",
    hint="For a matrix axis 1 holds the components. Which axis does when there is a batch in front?",
    more="Print the shape of your result for a batch. Which axis became longer?",
    section=ROPE,
)
def joined_along_axis_1(x, cos, sin, *, interleaved=False):
    """The parts are joined along axis 1. With a batch in front that is T, not D: count from the end."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    a, b, rest = _read(x, cos.shape[-1], False)
    return np.concatenate([*_rotate(a, b, cos, sin), rest] if rest.size else _rotate(a, b, cos, sin), axis=1)


@MISTAKES.add(
    "the rest of the width is lost",
    hint="How wide should the result be when the tables turn only a part?",
    more="With tables of width 2, four components are turned. Where are the others in your result?",
    section=PAIRS,
)
def rest_lost(x, cos, sin, *, interleaved=False):
    """With smaller tables only the turned components are returned. The others should follow, unchanged."""
    return _by(_rotate, x[..., : 2 * cos.shape[-1]], cos, sin, interleaved)


@MISTAKES.add(
    "the rest of the width becomes 0",
    hint="What should happen to a component that belongs to no pair?",
    more="With tables of width 2, four components are turned. Compare the others before and after.",
    section=PAIRS,
)
def rest_zero(x, cos, sin, *, interleaved=False):
    """With smaller tables the components in no pair come out as 0. They should pass through unchanged."""
    a, b, rest = _read(x, cos.shape[-1], interleaved)
    return _write(_rotate(a, b, cos, sin), 0 * rest, interleaved)


@MISTAKES.add(
    "the rest of the width comes first",
    hint="When the tables are small, the first components are turned. Where are they in the result?",
    more="A component in no pair should be where it was before. Compare the last one before and after.",
    section=PAIRS,
)
def rest_first(x, cos, sin, *, interleaved=False):
    """With smaller tables the components in no pair were put in front. They belong at the end, where they were."""
    a, b, rest = _read(x, cos.shape[-1], interleaved)
    return np.concatenate([rest, _write(_rotate(a, b, cos, sin), rest[..., :0], interleaved)], axis=-1)


@MISTAKES.add(
    "the last components are turned, not the first",
    hint="When the tables are small, which components are turned: the first, or the last?",
    more="With tables of width 2 and vectors of width 7, components 0 to 3 change, and 4 to 6 do not.",
    section=PAIRS,
)
def last_turned(x, cos, sin, *, interleaved=False):
    """With smaller tables you turn the end of the vector. It should be the beginning."""
    start = x.shape[-1] - 2 * cos.shape[-1]
    return np.concatenate([x[..., :start], _by(_rotate, x[..., start:], cos, sin, interleaved)], axis=-1)


@MISTAKES.add(
    "the partner is counted from the middle of the vector",
    hint="When only four components are turned, which one is the partner of component 0?",
    more="With tables of width 2 and vectors of width 7, the pairs are components (0, 2) and (1, 3). Which are yours?",
    section=PAIRS,
)
def partner_from_middle(x, cos, sin, *, interleaved=False):
    """With smaller tables you pair k with k + D/2. Pair k with k + width instead: only that part is turned."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    width, middle, y = cos.shape[-1], x.shape[-1] // 2, x.copy()
    a, b = x[..., :width], x[..., middle : middle + width]
    y[..., :width], y[..., middle : middle + width] = _rotate(a, b, cos, sin)
    return y


@MISTAKES.add(
    "the tables have to be half as wide as the vectors",
    hint="Where should the number of pairs be read from: from the vectors, or from the tables?",
    more="With tables of width 2 and vectors of width 7 there are two pairs, and three components in no pair.",
    section=PAIRS,
)
def width_from_vector(x, cos, sin, *, interleaved=False):
    """You turn the whole width.

    With smaller tables the shapes do not fit: only 2 * width components should be turned.
    """
    return _by(lambda a, b, c, s: _rotate(a, b, cos, sin), x, np.zeros(x.shape[-1] // 2), sin, interleaved)


@MISTAKES.add(
    "in the second line a and b have changed places",
    hint="In the second component, which number goes with the sine: a or b?",
    more="In the first case the pair (10, -5) becomes (11, 2). Compute the 2 on paper, and compare with your second "
    "line.",
    section=ROPE,
)
def second_repeats_first(x, cos, sin, *, interleaved=False):
    """Your second component is a cos plus b sin. It should be b with the cosine and a with the sine."""
    return _by(lambda a, b, c, s: (a * c - b * s, a * c + b * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "one half is read twice",
    hint="Print the two parts into which you split the vector. Are they different?",
    more="In the first case the pairs are (10, -5) and (20, 5). Look at where your second part begins.",
    section=ROPE,
)
def first_read_twice(x, cos, sin, *, interleaved=False):
    """The second components are never read: both parts are the first components."""
    return _by(lambda a, b, c, s: _rotate(a, a, c, s), x, cos, sin, interleaved)


@MISTAKES.add(
    "the first line lacks the sine",
    hint="A turn changes both components by the other one. Which of yours does not see the other?",
    more="In the first case the pair (10, -5) becomes (11, 2). Compute the 11 on paper.",
    section=ROPE,
)
def first_without_sine(x, cos, sin, *, interleaved=False):
    """The first component is only multiplied by the cosine. The sine times the second should be subtracted."""
    return _by(lambda a, b, c, s: (a * c, b * c + a * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "the second line lacks the sine",
    hint="A turn changes both components by the other one. Which of yours does not see the other?",
    more="In the first case the pair (10, -5) becomes (11, 2). Compute the 2 on paper.",
    section=ROPE,
)
def second_without_sine(x, cos, sin, *, interleaved=False):
    """The second component is only multiplied by the cosine. The sine times the first should be added."""
    return _by(lambda a, b, c, s: (a * c - b * s, b * c), x, cos, sin, interleaved)


@MISTAKES.add(
    "the sine is never used",
    hint="With an angle of 0 nothing should change. What does your function do there?",
    more="Which table goes with the partner in your two lines, and which should?",
    section=ROPE,
)
def cosine_for_sine(x, cos, sin, *, interleaved=False):
    """The cosine is in all four places. The partner of each component should be multiplied by the sine."""
    return _by(_rotate, x, cos, cos, interleaved)


@MISTAKES.add(
    "the cosine is never used",
    hint="With an angle of 0 nothing should change. Is your result 0 there?",
    more="Which table goes with the component itself in your two lines, and which should?",
    section=ROPE,
)
def sine_for_cosine(x, cos, sin, *, interleaved=False):
    """The sine is in all four places. Each component itself should be multiplied by the cosine."""
    return _by(_rotate, x, sin, sin, interleaved)


@MISTAKES.add(
    "each vector gets the angles of the one before",
    hint="Which row of the tables belongs to the first vector?",
    more="Print the rows of the table that you use for vectors 0, 1 and 2. They should be rows 0, 1 and 2.",
    section=ROPE,
)
def row_before(x, cos, sin, *, interleaved=False):
    """The rows of the tables are shifted by one: vector i is turned by the angles of position i - 1."""
    return _by(_rotate, x, np.roll(cos, 1, axis=0), np.roll(sin, 1, axis=0), interleaved)


@MISTAKES.add(
    "each vector gets the angles of the next one",
    hint="Which row of the tables belongs to the first vector?",
    more="Print the rows of the table that you use for vectors 0, 1 and 2. They should be rows 0, 1 and 2.",
    section=ROPE,
)
def row_after(x, cos, sin, *, interleaved=False):
    """The rows of the tables are shifted by one: vector i is turned by the angles of position i + 1."""
    return _by(_rotate, x, np.roll(cos, -1, axis=0), np.roll(sin, -1, axis=0), interleaved)


@MISTAKES.add(
    "the parts are joined one below the other",
    hint="How many rows does your result have, and how many does x have?",
    more="Each vector keeps its row. Along which axis do two parts of a row have to be joined?",
    section=ROPE,
)
def joined_below(x, cos, sin, *, interleaved=False):
    """The second components were put below the first ones. Both belong in the same row."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    a, b, _ = _read(x, cos.shape[-1], False)
    return np.concatenate(_rotate(a, b, cos, sin), axis=-2)


@MISTAKES.add(
    "the pairs are left as an axis of their own",
    hint="How many dimensions does x have, and how many does your result have?",
    more="With interleaved=True your last two axes are (D/2, 2). What makes one row of D numbers out of them?",
    section=PAIRS,
)
def pairs_not_flattened(x, cos, sin, *, interleaved=False):
    """With interleaved=True the numbers are right, but the two of each pair form an axis of their own."""
    if not interleaved:
        return attnlib.apply_rope(x, cos, sin)
    a, b, _ = _read(x, cos.shape[-1], True)
    return np.stack(_rotate(a, b, cos, sin), axis=-1)


@MISTAKES.add(
    "a dimension of 1 in front",
    hint="How many dimensions does x have, and how many does your result have?",
    more="Tables (T, D/2) fit any number of dimensions in front of T as they are. Nothing needs to be added.",
    section=ROPE,
)
def axis_in_front(x, cos, sin, *, interleaved=False):
    """Your tables get an axis in front, and so the result gets one that x does not have."""
    return _by(_rotate, x if x.ndim > 2 else x[None], cos, sin, interleaved)


@MISTAKES.add(
    "two dimensions of 1 in front",
    hint="How many dimensions does x have, and how many does your result have?",
    more="Tables (T, D/2) fit any number of dimensions in front of T as they are. Nothing needs to be added.",
    section=ROPE,
)
def two_axes_in_front(x, cos, sin, *, interleaved=False):
    """Your tables are made for a batch of heads, so the result has four dimensions, whatever x has."""
    return _by(_rotate, x[(None,) * max(4 - x.ndim, 0)], cos, sin, interleaved)


@MISTAKES.add(
    "tables for a different order of the axes",
    hint="Which axes of x do the rows and the columns of the tables belong to?",
    more="Here x is (..., T, D), with heads in front of T. Write the shapes of one half of x and of your tables one "
    "below the other, aligned on the right.",
    section=ROPE,
)
def sequence_before_heads(x, cos, sin, *, interleaved=False):
    """Your tables are made for vectors of shape (B, T, heads, D). Here T and D are the last two axes."""
    return _by(_rotate, x, cos[None, :, None], sin[None, :, None], interleaved)


@MISTAKES.add(
    "backwards, but only with interleaved=True",
    hint="With interleaved=True, which of the two sines has the minus sign?",
    more="With interleaved=True the pair (10, 20) becomes (-4, 22). Compare the signs in the two branches of your "
    "function.",
    section=PAIRS,
)
def neighbours_backwards(x, cos, sin, *, interleaved=False):
    """Halves are rotated correctly, but neighbours backwards. The rule for a pair is the same in both layouts."""
    return _by(_rotate, x, cos, -sin if interleaved else sin, interleaved)


@MISTAKES.add(
    "the minus sign is missing with interleaved=True",
    hint="With interleaved=True, does your turn keep the length of a vector?",
    more="With interleaved=True the pair (10, 20) becomes (-4, 22). Compare the signs in the two branches of your "
    "function.",
    section=PAIRS,
)
def neighbours_no_minus(x, cos, sin, *, interleaved=False):
    """Halves are rotated correctly, but with neighbours both products are added. Both layouts follow the same rule."""
    if not interleaved:
        return attnlib.apply_rope(x, cos, sin)
    return _by(lambda a, b, c, s: (a * c + b * s, b * c + a * s), x, cos, sin, True)


@MISTAKES.add(
    "with interleaved=True the two of a pair change places",
    hint="With interleaved=True, which of the two results of a pair comes first?",
    more="With interleaved=True the pair (10, 20) becomes (-4, 22). Yours is the other way round.",
    section=PAIRS,
)
def neighbours_reversed(x, cos, sin, *, interleaved=False):
    """With interleaved=True both components are right, but the second one comes before the first."""
    if not interleaved:
        return attnlib.apply_rope(x, cos, sin)
    return _by(lambda a, b, c, s: _rotate(a, b, c, s)[::-1], x, cos, sin, True)


@MISTAKES.add(
    "sine and cosine are exchanged in the first line",
    hint="With an angle of 0 nothing should change. Does the first component stay?",
    more="In the first case the pair (10, -5) becomes (11, 2). Put cosine 1 and sine 0 into your first line.",
    section=ROPE,
)
def first_tables_exchanged(x, cos, sin, *, interleaved=False):
    """In the first component the sine is where the cosine belongs. The second component is right."""
    return _by(lambda a, b, c, s: (a * s - b * c, b * c + a * s), x, cos, sin, interleaved)


@MISTAKES.add(
    "sine and cosine exchanged, and neighbours paired",
    hint="What should happen at angle 0, and which component goes with component 0?",
    more="In the first case the pairs are (10, -5) and (20, 5). At angle 0 the cosine is 1 and the sine 0, and "
    "nothing should change.",
    section=PAIRS,
)
def tables_exchanged_neighbours(x, cos, sin, *, interleaved=False):
    """The two tables have changed places, and neighbours are turned together. It should be k and k + D/2."""
    return _by(_rotate, x, sin, cos, not interleaved)


@MISTAKES.add(
    "all positions are turned by the last angles",
    hint="Which row of the tables belongs to position 0?",
    more="Print the shape of the table that you multiply by. How many rows does it have?",
    section=ROPE,
)
def last_row_for_all(x, cos, sin, *, interleaved=False):
    """Every position is turned by the angles of the last one. Each has its own row of the tables."""
    return _by(_rotate, x, cos[-1:], sin[-1:], interleaved)


@MISTAKES.add(
    "multiplied component by component, sine first",
    hint="Does the first component of the result depend on the second of the input?",
    more="Turn the pair (1, 0) by a quarter turn. It should become (0, 1). What do you get?",
    section=ROPE,
)
def elementwise_sine_first(x, cos, sin, *, interleaved=False):
    """The first of each pair is multiplied by the sine, the second by the cosine. In a turn the two mix."""
    return _by(lambda a, b, c, s: (a * s, b * c), x, cos, sin, interleaved)


@MISTAKES.add(
    "the vectors of the caller are changed",
    hint="Which of your lines write into the array that was passed in?",
    more="Print x before and after the call. A slice of an array is a view of it: what is written to the slice is "
    "written to the array.",
    section=ROPE,
)
def in_place(x, cos, sin, *, interleaved=False):
    """The result is right, but the caller's vectors are turned as well: your function wrote into them."""
    x[...] = attnlib.apply_rope(x, cos, sin, interleaved=interleaved)
    return x


@MISTAKES.add(
    "the tables are stacked one below the other",
    hint="What is the shape of a table for 5 positions and 3 pairs after you have doubled it: (5, 6) or (10, 3)?",
    more="Joining two tables without naming an axis adds rows. Each row of the tables belongs to a position; it is the "
    "columns that are needed twice.",
    section=PAIRS,
)
def tables_stacked(x, cos, sin, *, interleaved=False):
    """For halves, each angle is needed twice in a row of the tables. You repeat the tables one below the other."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    return np.concatenate([cos, cos]) * x[..., : 2 * cos.shape[-1]]


@MISTAKES.add(
    "the partners are neighbours, but written as halves",
    hint="Which component is the partner of component 0, and where is it among your partners?",
    more="With halves as pairs, the partners of (10, 20, -5, 5) are (5, -5, 10, 20): the second half with a minus "
    "sign, then the first. Print yours, and the angle that each component gets.",
    section=PAIRS,
)
def partners_and_tables_of_neighbours(x, cos, sin, *, interleaved=False):
    """For halves, you take every other component as a partner, and give each angle to two neighbours."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    a, b, rest = _read(x, cos.shape[-1], True)
    turned = x[..., : 2 * cos.shape[-1]] * np.repeat(cos, 2, -1) + _write((-b, a), rest[..., :0], False) * np.repeat(
        sin, 2, -1
    )
    return np.concatenate([turned, rest], axis=-1)


@MISTAKES.add(
    "the tables get a new axis in the middle",
    hint="Which axes of x do the rows and the columns of the tables belong to?",
    more="Write the shapes of x, (2, 5, 6), and of your tables one below the other, aligned on the right. Tables "
    "(T, D/2) already fit any number of dimensions before T.",
    section=ROPE,
)
def tables_for_heads(x, cos, sin, *, interleaved=False):
    """For a batch you reshape the tables to (T, 1, D/2). Their rows then go with sentences, not with positions."""
    if x.ndim > 2:
        cos, sin = cos[:, None], sin[:, None]
    return _by(_rotate, x, cos, sin, interleaved)


@MISTAKES.add(
    "with interleaved=True the whole vector is paired",
    hint="How many pairs are rotated: as many as fit into the vector, or as many as the tables have columns?",
    more="Take tables of width 2 and vectors of width 7: components 0 to 3 are rotated. Which components are in your "
    "pairs?",
    section=PAIRS,
)
def neighbours_from_the_whole(x, cos, sin, *, interleaved=False):
    """You pair all components as neighbours. If the tables are narrower, only the first 2 * width are rotated."""
    if not interleaved:
        return attnlib.apply_rope(x, cos, sin)
    a, b = _rotate(x[..., 0::2], x[..., 1::2], cos, sin)
    return _write((a, b), x[..., :0], True)


@MISTAKES.add(
    "the angles are for neighbours, and the partners have the wrong sign",
    hint="For halves, which angle do components 0 and 1 get? And which partner has the minus sign?",
    more="With halves as pairs, components k and k + width share an angle. Write the angle that each of yours gets "
    "below the vector. Then compare the signs of your partners with the formula.",
    section=PAIRS,
)
def tables_of_neighbours_and_sign(x, cos, sin, *, interleaved=False):
    """You give each angle to two neighbours, not to one component of each half, and negate the wrong partners."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    return _full(x, cos, -sin, True, True)


@MISTAKES.add(
    "the partners come from the whole vector",
    hint="For tables of width 2 and vectors of width 7, what is the partner of component 0: 2, or 3?",
    more="Only the first 2 * width components are rotated, as if they were a vector by themselves. Where do your "
    "halves begin and end?",
    section=PAIRS,
)
def partner_of_the_whole(x, cos, sin, *, interleaved=False):
    """You apply the tables to the first components, but take their partners from the middle of the whole vector."""
    if interleaved:
        return attnlib.apply_rope(x, cos, sin, interleaved=True)
    width, middle = 2 * cos.shape[-1], x.shape[-1] // 2
    partner = np.concatenate([-x[..., middle:], x[..., :middle]], axis=-1)[..., :width]
    twice = [np.concatenate([table, table], axis=-1) for table in (cos, sin)]
    return np.concatenate([x[..., :width] * twice[0] + partner * twice[1], x[..., width:]], axis=-1)


EXERCISE = Exercise(
    name="apply_rope",
    reference=attnlib.apply_rope,
    outputs={"turned": ("T", "D")},
    rubric={NUMBERS: 4, LAYOUT: 2, BATCHES: 2, PARTIAL: 1, UNCHANGED: 1},
    gradients_required=True,
    section=ROPE,
    advice="Take the first case. Write its two pairs on paper, (10, -5) and (20, 5), and turn each: (11, 2) and "
    "(8, 19). Print the two parts of x, and the two new parts, before you join them. Which is the first to differ?",
    inputs=inputs,
    unrounded=("cos", "sin"),
    mistakes=tuple(MISTAKES),
    analytic_gradients=through_rope,
)
