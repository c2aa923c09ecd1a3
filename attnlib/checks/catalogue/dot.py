"""dot(query, key)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.catalogue.sections import DOT, SCORES
from attnlib.checks.exercise import Case, Exercise, Mistakes

NUMBERS, BATCHES, UNCHANGED = "the numbers", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: three keys worked by hand, then T queries against S keys, then batches."""
    hand = {"query": np.array([[1.0, 2.0]]), "key": np.array([[3.0, 0.0], [0.0, 4.0], [-2.0, 1.0]])}
    yield Case("one query [1, 2] and the keys [3, 0], [0, 4], [-2, 1]", NUMBERS, hand)
    yield Case("3 queries and 5 keys of width 4", NUMBERS, pair(rng, (3, 4), (5, 4)))
    yield Case("one query and one key", NUMBERS, pair(rng, (1, 4), (1, 4)))
    yield Case("vectors in float32", NUMBERS, pair(rng, (2, 3), (4, 3), np.float32))
    yield Case(
        "keys that are a transposed view", NUMBERS, pair(rng, (2, 3), (3, 5)) | {"key": rng.normal(size=(3, 5)).T}
    )
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, pair(rng, (2, 3, 4), (2, 5, 4)))
    yield Case("leading dimensions (2, 6)", BATCHES, pair(rng, (2, 6, 3, 4), (2, 6, 5, 4)))
    yield Case("inputs that must stay as they are", UNCHANGED, pair(rng, (3, 2), (4, 2)), unchanged=True)


def pair(rng: np.random.Generator, query: tuple[int, ...], key: tuple[int, ...], dtype=np.float64) -> dict[str, Any]:
    """Return a random query and key of the given shapes."""
    return {"query": rng.normal(size=query).astype(dtype), "key": rng.normal(size=key).astype(dtype)}


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i. How many rows should the first case have?",
    section=SCORES,
)
def transposed(query, key):
    """Row i should hold what query i finds in every key. Yours holds what key i finds in every query."""
    return attnlib.dot(key, query)


@MISTAKES.add(
    "normalised to cosines",
    hint="Which of the two, dot product or cosine, changes when a vector gets longer?",
    section=DOT,
)
def cosines(query, key):
    """These are cosines: the lengths of the vectors were divided away. The dot product keeps them."""
    return attnlib.cosine(query, key)


@MISTAKES.add(
    "already scaled",
    hint="Work the first case by hand: 1*3 + 2*0 is 3.",
    section=DOT,
)
def scaled(query, key):
    """Your scores are divided by the square root of the width. The plain dot product is not."""
    return attnlib.scaled_dot(query, key)


@MISTAKES.add(
    "the mean instead of the sum",
    hint="Work the first case by hand: 1*3 + 2*0 is 3, not 1.5.",
    section=DOT,
)
def mean(query, key):
    """The products of the components are averaged. In a dot product they are added up."""
    return attnlib.dot(query, key) / query.shape[-1]


@MISTAKES.add(
    "already a softmax",
    hint="Scores may be negative and need not sum to anything. Which step belongs to a later exercise?",
    section=SCORES,
)
def weights(query, key):
    """These are weights. The scores, before the softmax, are asked for."""
    return attnlib.softmax(attnlib.dot(query, key))


@MISTAKES.add(
    "the products are not added up",
    hint="One number per pair of vectors: which axis has to be summed away?",
    section=DOT,
)
def no_sum(query, key):
    """The components are multiplied pairwise, but never added up: there is one dimension too many."""
    return query[..., :, None, :] * key[..., None, :, :]


@MISTAKES.add(
    "queries against queries",
    hint="Which of your two arguments does the formula not use?",
    section=SCORES,
)
def query_with_query(query, key):
    """Each query is compared with the other queries. The keys are never looked at."""
    return attnlib.dot(query, query)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your two arguments does the formula not use?",
    section=SCORES,
)
def key_with_key(query, key):
    """Each key is compared with the other keys. The queries are never looked at."""
    return attnlib.dot(key, key)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    section=SCORES,
)
def full_transpose(query, key):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return query @ key.T


@MISTAKES.add(
    "every batch against every other",
    hint="np.dot and np.tensordot pair all leading dimensions; @ and einsum keep them together.",
    section=SCORES,
)
def outer_batches(query, key):
    """Each sequence of the batch is compared with every other sequence, where only its own was asked for."""
    return np.dot(query, key.swapaxes(-1, -2))


@MISTAKES.add(
    "the size without the sign",
    hint="Two vectors that point in opposite directions: what should their score be?",
    section=DOT,
)
def absolute(query, key):
    """A negative dot product says that two vectors point apart. Yours has lost that sign."""
    return np.abs(attnlib.dot(query, key))


@MISTAKES.add(
    "distances instead of products",
    hint="Is your score larger or smaller when two vectors are alike?",
    section=DOT,
)
def squared_distance(query, key):
    """These are squared distances: small where vectors are alike. A dot product is large there."""
    return -2 * attnlib.gaussian(query, key)


EXERCISE = Exercise(
    name="dot",
    reference=attnlib.dot,
    outputs={"scores": ("T", "S")},
    parts={NUMBERS: 3, BATCHES: 2, UNCHANGED: 1},
    section=DOT,
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
