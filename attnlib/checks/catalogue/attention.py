"""attention(query, key, value), with the scaled dot product as score."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.catalogue.sections import ATTENTION, OVERFLOW, SCALE, SCORES, SOFTMAX, WEIGHTED_SUM
from attnlib.checks.exercise import Case, Exercise, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large scores", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one query worked by hand, then T queries, S keys and values of another width, batches, size."""
    hand = {
        "query": np.array([[1.0, 0.0, 0.0, 0.0]]),
        "key": np.array([[2 * np.log(3.0), 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]),
        "value": np.array([[8.0], [0.0]]),
    }
    yield Case("one query whose scores are log 3 and 0, and the values 8 and 0", NUMBERS, hand)
    yield Case("3 queries, 5 keys of width 4, values of width 2", NUMBERS, triple(rng, (), 3, 5, 4, 2))
    yield Case("one query and one key", NUMBERS, triple(rng, (), 1, 1, 3, 2))
    yield Case("vectors in float32", NUMBERS, triple(rng, (), 2, 5, 3, 4, np.float32))
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, triple(rng, (2,), 3, 5, 4, 6))
    yield Case("leading dimensions (2, 7)", BATCHES, triple(rng, (2, 7), 3, 5, 4, 6))
    large = triple(rng, (), 3, 4, 5, 2)
    direction, lengths = np.ones(5), np.array([[1.0], [1.5], [0.5], [1.49]])
    large["query"] += np.array([[3000.0], [-3000.0], [0.0]]) * direction
    large["key"] = 0.01 * large["key"] + lengths * direction
    yield Case("scores of several thousand, one query positive, one negative", LARGE, large)
    yield Case("inputs that must stay as they are", UNCHANGED, triple(rng, (), 3, 4, 2, 5), unchanged=True)


def triple(rng, leading: tuple[int, ...], t: int, s: int, d: int, d_v: int, dtype=np.float64) -> dict[str, Any]:
    """Return random query, key and value: T queries, S keys of width D, S values of width D_v."""
    shapes = {"query": (t, d), "key": (s, d), "value": (s, d_v)}
    return {name: rng.normal(size=(*leading, *shape)).astype(dtype) for name, shape in shapes.items()}


def _attend(scores, value):
    weights = attnlib.softmax(scores)
    return weights @ value, weights


@MISTAKES.add(
    "the scores are not scaled",
    hint="By what is the dot product divided before the softmax, and how does that depend on the width D?",
    section=SCALE,
)
def no_scale(query, key, value):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return _attend(attnlib.dot(query, key), value)


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="With components of variance 1, the dot product has variance D. What is its standard deviation?",
    section=SCALE,
)
def scaled_by_width(query, key, value):
    """The scores are divided by the width itself, so the weights are flatter than they should be."""
    return _attend(attnlib.dot(query, key) / query.shape[-1], value)


@MISTAKES.add(
    "multiplied by the square root of D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    section=SCALE,
)
def multiplied_by_root(query, key, value):
    """The scores are multiplied by the root of the width, where they should be divided by it."""
    return _attend(attnlib.dot(query, key) * query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Which of the two is the width of a vector: shape[-1] or shape[-2]?",
    section=SCALE,
)
def scaled_by_keys(query, key, value):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / key.shape[-2] ** 0.5, value)


@MISTAKES.add(
    "scaled by the number of queries",
    hint="Which of the two is the width of a vector: shape[-1] or shape[-2]?",
    section=SCALE,
)
def scaled_by_queries(query, key, value):
    """The scores are divided by the root of T, the number of queries. The width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / query.shape[-2] ** 0.5, value)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    section=SCALE,
)
def scaled_by_value_width(query, key, value):
    """The scores are divided by the root of the width of the values. It is the width of the keys that counts."""
    return _attend(attnlib.dot(query, key) / value.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "scaled after the softmax",
    hint="Do your weights still sum to 1? Which comes first, the division or the softmax?",
    section=SCALE,
)
def scaled_after_softmax(query, key, value):
    """The weights are divided by the root of the width. It is the scores, before the softmax, that are scaled."""
    weights = attnlib.softmax(attnlib.dot(query, key)) / query.shape[-1] ** 0.5
    return weights @ value, weights


@MISTAKES.add(
    "the columns sum to 1, not the rows",
    hint="Every query has weights of its own that sum to 1. Along which axis of the scores do they lie?",
    section=SOFTMAX,
)
def softmax_over_queries(query, key, value):
    """The softmax made the queries compete for each key. It is the keys that compete for each query."""
    weights = attnlib.softmax(attnlib.scaled_dot(query, key), axis=-2)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax runs over the whole table",
    hint="How many sums of 1 should there be: one, or one per query?",
    section=SOFTMAX,
)
def softmax_over_all(query, key, value):
    """All weights together sum to 1. Every query should have weights that sum to 1 by themselves."""
    e = np.exp(attnlib.scaled_dot(query, key))
    weights = e / e.sum()
    return weights @ value, weights


@MISTAKES.add(
    "the softmax is missing",
    hint="What turns scores, which may be negative, into weights that sum to 1?",
    section=SOFTMAX,
)
def no_softmax(query, key, value):
    """The scores themselves are used as weights: they may be negative, and nothing makes them sum to 1."""
    scores = attnlib.scaled_dot(query, key)
    return scores @ value, scores


@MISTAKES.add(
    "scores are returned as weights",
    hint="Which of your two arrays has rows that sum to 1?",
    section=SOFTMAX,
)
def returns_scores(query, key, value):
    """The context is right, but the second result holds the scores before the softmax, not the weights."""
    context, _ = attnlib.attention(query, key, value)
    return context, attnlib.scaled_dot(query, key)


@MISTAKES.add(
    "the softmax overflows",
    hint="Does your softmax subtract the maximum of each row? Mend it there, and this is mended too.",
    section=OVERFLOW,
)
def overflow(query, key, value):
    """The weights are right for small scores. For large ones exp overflows, and the weights become nan."""
    e = np.exp(attnlib.scaled_dot(query, key))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "keys are averaged instead of values",
    hint="The keys decide how much. What is it that is mixed?",
    section=WEIGHTED_SUM,
)
def averages_keys(query, key, value):
    """The weights are right, but they average the keys. The values are never looked at."""
    return _attend(attnlib.scaled_dot(query, key), key)


@MISTAKES.add(
    "the results are in the wrong order",
    hint="Compare your return line with the one in the task.",
    section=ATTENTION,
)
def swapped_results(query, key, value):
    """Both arrays are right, but the weights come first. The context is asked for first."""
    context, weights = attnlib.attention(query, key, value)
    return weights, context


@MISTAKES.add(
    "only the context is returned",
    hint="Compare your return line with the one in the task.",
    section=ATTENTION,
)
def context_only(query, key, value):
    """One array is returned where two are asked for: the context and the weights."""
    return attnlib.attention(query, key, value)[0]


@MISTAKES.add(
    "the softmax uses one maximum for the whole table",
    hint="Every row needs its own maximum in the softmax. Mend it there, and this is mended too.",
    section=OVERFLOW,
)
def global_shift(query, key, value):
    """One maximum for all queries shifts a row of much smaller scores so far down that it becomes 0/0: nan."""
    scores = attnlib.scaled_dot(query, key)
    e = np.exp(scores - scores.max())
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "the weights are not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    section=SOFTMAX,
)
def not_normalised(query, key, value):
    """The exponentials of the scores are used as weights, but nothing makes them sum to 1."""
    weights = np.exp(attnlib.scaled_dot(query, key))
    return weights @ value, weights


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other.",
    section=SOFTMAX,
)
def sigmoid(query, key, value):
    """Each score is squashed on its own by a sigmoid, and nothing makes the weights of a row sum to 1."""
    weights = 1 / (1 + np.exp(-attnlib.scaled_dot(query, key)))
    return weights @ value, weights


@MISTAKES.add(
    "the sign is reversed",
    hint="Which of two keys should get the larger weight: the one with the larger score, or with the smaller?",
    section=SCORES,
)
def reversed_sign(query, key, value):
    """The key that matches least gets the largest weight: somewhere a minus sign is too many."""
    return _attend(-attnlib.scaled_dot(query, key), value)


@MISTAKES.add(
    "the context is scaled as well",
    hint="How often do you divide by the root of the width?",
    section=SCALE,
)
def scaled_context(query, key, value):
    """The weights are right, but the context is divided by the root of the width once more."""
    context, weights = attnlib.attention(query, key, value)
    return context / query.shape[-1] ** 0.5, weights


@MISTAKES.add(
    "cosines as scores",
    hint="Which similarity does the task ask for, and which one divides by the lengths of the vectors?",
    section=SCORES,
)
def cosine_scores(query, key, value):
    """The scores are cosines, between -1 and 1, so the weights are nearly equal. Scaled dot products are asked for."""
    return _attend(attnlib.cosine(query, key), value)


@MISTAKES.add(
    "all or nothing (argmax)",
    hint="The second-best key still gets a share: which function gives it one?",
    section=SOFTMAX,
)
def hard(query, key, value):
    """Each query takes the value of its best key alone. The softmax mixes all values."""
    scores = attnlib.scaled_dot(query, key)
    weights = (scores == scores.max(axis=-1, keepdims=True)).astype(scores.dtype)
    return weights @ value, weights


@MISTAKES.add(
    "all keys count the same",
    hint="Where in your formula does the query enter the weights?",
    section=WEIGHTED_SUM,
)
def uniform(query, key, value):
    """Every value gets the same weight, whatever the query: this is the plain mean."""
    return _attend(0 * attnlib.scaled_dot(query, key), value)


@MISTAKES.add(
    "the softmax axis is counted from the front",
    hint="Which number of an axis means the last one, however many there are?",
    section=SOFTMAX,
)
def softmax_from_front(query, key, value):
    """For a matrix axis 1 is the last one. With a batch in front it is another, and the wrong weights sum to 1."""
    weights = attnlib.softmax(attnlib.scaled_dot(query, key), 1)
    return weights @ value, weights


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    section=SCALE,
)
def width_from_front(query, key, value):
    """For a matrix shape[1] is the width. With a batch in front it is the number of queries."""
    return _attend(attnlib.dot(query, key) / query.shape[1] ** 0.5, value)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    section=SCORES,
)
def full_transpose(query, key, value):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return _attend(query @ key.T / query.shape[-1] ** 0.5, value)


EXERCISE = Exercise(
    name="attention",
    reference=attnlib.attention,
    outputs={"context": ("T", "D_v"), "weights": ("T", "S")},
    parts={NUMBERS: 4, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=ATTENTION,
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
