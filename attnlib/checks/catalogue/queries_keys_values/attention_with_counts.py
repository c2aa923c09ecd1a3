"""attention_with_counts(query, key, value, counts, *, scale=None): each key counts as often as it occurs.

The notebook asks for it as the mended version of a function that scales by the number of keys.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.draw_qkv import draw_qkv
from attnlib.checks.catalogue.queries_keys_values.sections import DIVISOR, SHAPES, SQUARE_ROOT
from attnlib.checks.catalogue.self_attention.sections import SOFTMAX
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, SCALES, BATCHES, UNCHANGED = "the numbers", "a scale of your own", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one key against another that occurs three times, then counts of all sizes, and batches."""
    hand = {
        "query": np.array([[1.0, 0.0]]),
        "key": np.zeros((2, 2)),
        "value": np.array([[0.0], [8.0]]),
        "counts": np.array([1.0, 3.0]),
    }
    yield Case("two keys with the score 0, of which the second occurs three times", NUMBERS, hand)
    yield Case("4 queries, 7 keys of width 6, values of width 3", NUMBERS, _drawn(rng, (), 4, 7, 6, 3))
    yield Case("4 queries, 2 keys of width 9, values of width 3", NUMBERS, _drawn(rng, (), 4, 2, 9, 3))
    once = _drawn(rng, (), 3, 5, 8, 2) | {"counts": np.ones(5)}
    yield Case("every key occurs once", NUMBERS, once)
    yield Case("scale=0.3", SCALES, _drawn(rng, (), 3, 5, 7, 2), {"scale": 0.3})
    yield Case("a batch of 5 (T=3, S=7, D=4)", BATCHES, _drawn(rng, (5,), 3, 7, 4, 6))
    yield Case("leading dimensions (2, 3)", BATCHES, _drawn(rng, (2, 3), 4, 5, 6, 2))
    yield Case("inputs that must stay as they are", UNCHANGED, _drawn(rng, (), 3, 4, 2, 5), unchanged=True)


def _drawn(rng, leading, t, s, d, d_v) -> dict[str, Any]:
    """Return random query, key and value, and counts from 1 to 60 that need not be whole numbers."""
    return draw_qkv(rng, leading, t, s, d, d_v) | {"counts": np.exp(rng.uniform(0, 4, size=s))}


def _scores(query, key, scale):
    return attnlib.scaled_dot(query, key, scale=scale)


def attention_with_counts(query: Any, key: Any, value: Any, counts: Any, *, scale: float | None = None) -> Any:
    """Average the values as if each key, with its value, occurred as often as its count says."""
    return attnlib.softmax(_scores(query, key, scale) + np.log(counts)) @ value


def _divided_by(divisor, query, key, value, counts, scale):
    return attention_with_counts(query, key, value, counts, scale=1 / divisor if scale is None else scale)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Write the shape of the keys with letters, after each line. Which of them is under your root?",
    more="Give the function nine keys of width 4, then four keys of width 9. By what does it divide the scores?",
    section=DIVISOR,
)
def scaled_by_keys(query, key, value, counts, *, scale=None):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return _divided_by(key.shape[-2] ** 0.5, query, key, value, counts, scale)


@MISTAKES.add(
    "scaled by the number of all copies",
    hint="If every key occurs twice as often, should the scores change?",
    more="The counts say how often a key is in the sum of the softmax. They have nothing to do with the size of a dot "
    "product. What has?",
    section=DIVISOR,
)
def scaled_by_copies(query, key, value, counts, *, scale=None):
    """The scores are divided by the root of the sum of all counts. The width D of the vectors belongs there."""
    return _divided_by(counts.sum() ** 0.5, query, key, value, counts, scale)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="There are two widths, D and D_v. Which of them says how many products a score adds up?",
    section=DIVISOR,
)
def scaled_by_value_width(query, key, value, counts, *, scale=None):
    """The scores are divided by the root of the width of the values. It is the width of the keys that counts."""
    return _divided_by(value.shape[-1] ** 0.5, query, key, value, counts, scale)


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is a dot product divided by, and how does that depend on the width D?",
    more="The fault is in the divisor: it needs another number, but it has to stay.",
    section=SQUARE_ROOT,
)
def no_scale(query, key, value, counts, *, scale=None):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return _divided_by(1.0, query, key, value, counts, scale)


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="With components of variance 1, a dot product has variance D. What is its standard deviation?",
    more="For D = 4 the divisor is 2, and for D = 9 it is 3. Print yours.",
    section=SQUARE_ROOT,
)
def scaled_by_width(query, key, value, counts, *, scale=None):
    """The scores are divided by the width itself, so the weights are flatter than they should be."""
    return _divided_by(key.shape[-1], query, key, value, counts, scale)


@MISTAKES.add(
    "the scale is ignored",
    hint="What does your function do with the argument `scale`?",
    more="Call it twice, with two different scales. Which line should make the results differ?",
    section=SQUARE_ROOT,
)
def scale_ignored(query, key, value, counts, *, scale=None):
    """The function takes the argument `scale`, but the scores are the same whatever it is."""
    return attention_with_counts(query, key, value, counts)


@MISTAKES.add(
    "the counts are ignored",
    hint="In the first case both keys have the score 0. Which share of the weight should the second one get?",
    more="Her function takes the counts into account before the softmax. What has become of that in yours?",
    section=SOFTMAX,
)
def counts_ignored(query, key, value, counts, *, scale=None):
    """Every key counts once, whatever its count is."""
    return attnlib.softmax(_scores(query, key, scale)) @ value


@MISTAKES.add(
    "the counts themselves are added to the scores",
    hint="By what is an exponential multiplied if 3 is added to its exponent, and by what if log 3 is?",
    more="In the first case the second key should get three quarters of the weight. Which share does it get in yours?",
    section=SOFTMAX,
)
def counts_added(query, key, value, counts, *, scale=None):
    """The counts were added to the scores as they are. It is their logarithms that multiply the exponentials."""
    return attnlib.softmax(_scores(query, key, scale) + counts) @ value


@MISTAKES.add(
    "the weights are multiplied by the counts, and no longer sum to 1",
    hint="If all values are 1, every output is an average of ones. Which numbers do you get?",
    more="The counts have to enter before the row is divided by its sum. Where do they enter in yours?",
    section=SOFTMAX,
)
def counts_after_softmax(query, key, value, counts, *, scale=None):
    """The counts multiply the weights after the softmax, so the rows of weights no longer sum to 1."""
    return (attnlib.softmax(_scores(query, key, scale)) * counts) @ value


@MISTAKES.add(
    "the logarithms of the counts are scaled as well",
    hint="Which of the two terms grows with the width D: the dot product, or the logarithm of a count?",
    more="In the first case the second key should get three quarters of the weight, whatever the width is.",
    section=SOFTMAX,
)
def counts_scaled(query, key, value, counts, *, scale=None):
    """The logarithms are added to the dot products before these are scaled. They should be added afterwards."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return attnlib.softmax(_scores(query, key, scale) + np.log(counts) * factor) @ value


EXERCISE = Exercise(
    name="attention_with_counts",
    reference=attention_with_counts,
    outputs={"output": ("T", "D_v")},
    rubric={NUMBERS: 8, SCALES: 3, BATCHES: 4, UNCHANGED: 2},
    section=SHAPES,
    advice="Take one query and two keys of width 4 by hand. Print the dot products, the divisor, the scores and the "
    "weights in your function. Which is the first to differ from what you have on paper?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    solved_by=ATTENTION_FUNCTIONS,
)
