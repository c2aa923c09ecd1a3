"""cosine(query, key)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.catalogue.dot import pair
from attnlib.checks.catalogue.sections import COSINE, SCORES
from attnlib.checks.exercise import Case, Exercise, Mistakes

NUMBERS, BATCHES, ZERO, UNCHANGED = "the numbers", "batches", "zero vectors", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: 3-4-5 triangles worked by hand, then T queries against S keys, batches, and zero vectors."""
    hand = {"query": np.array([[3.0, 4.0]]), "key": np.array([[6.0, 8.0], [-4.0, 3.0], [0.0, -2.0]])}
    yield Case("one query [3, 4] and the keys [6, 8], [-4, 3], [0, -2]", NUMBERS, hand)
    yield Case("3 queries and 5 keys of width 4", NUMBERS, _directions(rng, (3, 4), (5, 4)))
    yield Case("one query and one key", NUMBERS, _directions(rng, (1, 4), (1, 4)))
    yield Case("vectors in float32", NUMBERS, _directions(rng, (2, 3), (4, 3), np.float32))
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, _directions(rng, (2, 3, 4), (2, 5, 4)))
    yield Case("leading dimensions (2, 6)", BATCHES, _directions(rng, (2, 6, 3, 4), (2, 6, 5, 4)))
    short = pair(rng, (2, 3), (4, 3))
    short["key"][1] = [0.03, 0.0, 0.04]
    yield Case("the very short key [0.03, 0, 0.04] among others", ZERO, short)
    zero = pair(rng, (3, 2), (4, 2))
    zero["query"][1] = 0
    zero["key"][2] = 0
    yield Case("one zero query and one zero key", ZERO, zero)
    yield Case("inputs that must stay as they are", UNCHANGED, _directions(rng, (3, 2), (4, 2)), unchanged=True)


def _directions(rng, query, key, dtype=np.float64):
    """Return random vectors none of which is very short: those have a case of their own."""
    vectors = pair(rng, query, key)
    lengths = {name: rng.uniform(0.5, 2.0, size=(*x.shape[:-1], 1)) for name, x in vectors.items()}
    return {name: (x * lengths[name] / _norm(x)).astype(dtype) for name, x in vectors.items()}


def _norm(x, axis=-1):
    return np.linalg.norm(x, axis=axis, keepdims=True)


@MISTAKES.add(
    "a dot product, not a cosine",
    hint="Make the query twice as long. Which of your numbers change, and should they?",
    section=COSINE,
)
def no_normalisation(query, key):
    """A dot product grows with the length of the vectors. A cosine depends on their directions alone."""
    return attnlib.dot(query, key)


@MISTAKES.add(
    "only the queries are normalised",
    hint="Make a key twice as long: which numbers change?",
    section=COSINE,
)
def query_only(query, key):
    """The length of the queries was divided away, but that of the keys still counts."""
    return attnlib.dot(query / _norm(query), key)


@MISTAKES.add(
    "only the keys are normalised",
    hint="Make a query twice as long: which numbers change?",
    section=COSINE,
)
def key_only(query, key):
    """The length of the keys was divided away, but that of the queries still counts."""
    return attnlib.dot(query, key / _norm(key))


@MISTAKES.add(
    "the norm runs down the columns",
    hint="Each row is a vector. Along which axis do its components lie?",
    section=COSINE,
)
def norm_of_columns(query, key):
    """The components of different vectors were mixed into one length. Each row needs its own."""
    return attnlib.dot(query / _norm(query, -2), key / _norm(key, -2))


@MISTAKES.add(
    "one norm for the whole array",
    hint="How many lengths do three vectors have? Look at the axis of your norm.",
    section=COSINE,
)
def norm_of_all(query, key):
    """All vectors were divided by one common length. Each row needs its own."""
    return attnlib.dot(query / np.linalg.norm(query), key / np.linalg.norm(key))


@MISTAKES.add(
    "divided by the squared length",
    hint="A vector of length 5 has a sum of squares of 25. By which of the two do you divide?",
    section=COSINE,
)
def squared_norm(query, key):
    """The square root of the sum of squares is missing: a vector of length 5 is divided by 25."""
    return attnlib.dot(query / _norm(query) ** 2, key / _norm(key) ** 2)


@MISTAKES.add(
    "the wrong length (sum of absolute values)",
    hint="The vector [3, 4] has length 5, not 7.",
    section=COSINE,
)
def l1_norm(query, key):
    """The absolute components were added up. The length of a vector is the root of the sum of their squares."""
    return attnlib.dot(query / np.abs(query).sum(-1, keepdims=True), key / np.abs(key).sum(-1, keepdims=True))


@MISTAKES.add(
    "the zero vector gives nan",
    hint="By what do you divide a vector of length 0? What could you divide it by instead?",
    section=COSINE,
)
def zero_over_zero(query, key):
    """The zero vector has length 0, and 0/0 is nan. It has no direction, so its cosine is defined as 0."""
    return attnlib.dot(query, key) / (_norm(query) * _norm(key).swapaxes(-1, -2))


@MISTAKES.add(
    "a dimension was lost",
    hint="Print the shape of the norms beside that of the vectors: what does keepdims=True change?",
    section=COSINE,
)
def no_keepdims(query, key):
    """The lengths have one dimension less than the vectors, so they no longer line up with the rows."""
    return attnlib.dot(query / np.linalg.norm(query, axis=-1), key / np.linalg.norm(key, axis=-1))


@MISTAKES.add(
    "the guard against zero is too large",
    hint="What does your guard add to the length of a short vector? Could it act on length 0 alone?",
    section=COSINE,
)
def large_epsilon(query, key):
    """The number that guards against division by zero is not small beside a short vector, and bends its cosine."""
    return attnlib.dot(query / np.sqrt(_norm(query) ** 2 + 1e-6), key / np.sqrt(_norm(key) ** 2 + 1e-6))


@MISTAKES.add(
    "the distance instead of the similarity",
    hint="A vector compared with itself: what is its cosine?",
    section=COSINE,
)
def cosine_distance(query, key):
    """One minus the cosine is 0 for vectors that agree. The cosine itself is 1 there."""
    return 1 - attnlib.cosine(query, key)


@MISTAKES.add(
    "the angle instead of its cosine",
    hint="A vector compared with itself: what is its cosine, and what is the angle?",
    section=COSINE,
)
def angle(query, key):
    """These are angles: 0 for vectors that agree. The cosine of the angle is asked for."""
    return np.arccos(np.clip(attnlib.cosine(query, key), -1, 1))


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i.",
    section=SCORES,
)
def transposed(query, key):
    """Row i should hold what query i finds in every key. Yours holds what key i finds in every query."""
    return attnlib.cosine(key, query)


@MISTAKES.add(
    "the size without the sign",
    hint="Two vectors that point in opposite directions: what should their cosine be?",
    section=COSINE,
)
def absolute(query, key):
    """A negative cosine says that two vectors point apart. Yours has lost that sign."""
    return np.abs(attnlib.cosine(query, key))


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    section=SCORES,
)
def full_transpose(query, key):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return (query / _norm(query)) @ (key / _norm(key)).T


EXERCISE = Exercise(
    name="cosine",
    reference=attnlib.cosine,
    outputs={"scores": ("T", "S")},
    parts={NUMBERS: 3, BATCHES: 1, ZERO: 1, UNCHANGED: 1},
    section=COSINE,
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
