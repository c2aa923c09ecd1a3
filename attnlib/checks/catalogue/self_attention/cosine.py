"""cosine(query, key)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.self_attention.dot import pair, views
from attnlib.checks.catalogue.self_attention.sections import COSINE, SCORES
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, ZERO, UNCHANGED = "the numbers", "batches", "zero vectors", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: 3-4-5 triangles worked by hand, then T queries against S keys, batches, and zero vectors."""
    hand = {"query": np.array([[3.0, 4.0]]), "key": np.array([[6.0, 8.0], [-4.0, 3.0], [0.0, -2.0]])}
    yield Case("one query [3, 4] and the keys [6, 8], [-4, 3], [0, -2]", NUMBERS, hand)
    yield Case("3 queries and 5 keys of width 4", NUMBERS, _directions(rng, (3, 4), (5, 4)))
    yield Case("one query and one key", NUMBERS, _directions(rng, (1, 4), (1, 4)))
    yield Case("vectors in float32", NUMBERS, _directions(rng, (2, 3), (4, 3), np.float32))
    yield Case("4 queries and one key", NUMBERS, _directions(rng, (4, 3), (1, 3)))
    yield Case("3 queries and 3 keys of width 3", NUMBERS, _directions(rng, (3, 3), (3, 3)))  # where every product fits
    repeated = with_duplicate_rows(_directions(rng, (3, 4), (5, 4)), "query", "key")
    yield Case("a repeated query and a repeated key", NUMBERS, repeated)
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, _directions(rng, (2, 3, 4), (2, 5, 4)))
    yield Case("leading dimensions (2, 6)", BATCHES, _directions(rng, (2, 6, 3, 4), (2, 6, 5, 4)))
    turned = {name: x.swapaxes(-1, -2).copy() for name, x in _directions(rng, (2, 3, 4), (2, 5, 4)).items()}
    yield Case("a batch of transposed views", BATCHES, views(turned))
    short = _directions(rng, (2, 3), (4, 3))
    short["query"][0], short["key"][1] = [1.2, 0.0, 1.6], [0.06, 0.0, 0.08]
    yield Case("the very short key [0.06, 0, 0.08] among others", ZERO, short)
    shorter = _directions(rng, (2, 3, 4), (2, 5, 4))
    shorter["key"][0, 2] *= 0.002
    shorter["query"][1, 1] *= 0.002
    yield Case("a key 0.002 long in one sequence, a query 0.002 long in the other", ZERO, shorter)
    zero = pair(rng, (3, 2), (4, 2))
    zero["query"][1] = 0
    zero["key"][2] = 0
    yield Case("one zero query and one zero key", ZERO, zero)
    level = {"query": np.array([[2.0, -2.0]]), "key": np.array([[3.0, -3.0], [-1.0, 2.0], [1.0, 1.0]])}
    yield Case("the query [2, -2] and the keys [3, -3], [-1, 2], [1, 1]", ZERO, level)
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
    more="In the first case [3, 4] meets [6, 8], which points the same way, so the cosine is 1. You have 50. Which two "
    "lengths does it have to be divided by?",
    section=COSINE,
)
def no_normalisation(query, key):
    """A dot product grows with the length of the vectors. A cosine depends on their directions alone."""
    return attnlib.dot(query, key)


@MISTAKES.add(
    "only the queries are normalised",
    hint="Make a key twice as long: which numbers change?",
    more="In the first case you have 10 where 1 is expected: 50 was divided by 5, the length of [3, 4]. Which length "
    "is still in the number?",
    section=COSINE,
)
def query_only(query, key):
    """The length of the queries was divided out, but that of the keys still counts."""
    return attnlib.dot(query / _norm(query), key)


@MISTAKES.add(
    "only the keys are normalised",
    hint="Make a query twice as long: which numbers change?",
    more="In the first case you have 5 where 1 is expected: 50 was divided by 10, the length of [6, 8]. Which length "
    "is still in the number?",
    section=COSINE,
)
def key_only(query, key):
    """The length of the keys was divided out, but that of the queries still counts."""
    return attnlib.dot(query, key / _norm(key))


@MISTAKES.add(
    "the length of the query is used twice",
    hint="Make a key twice as long: which numbers change?",
    more="In the first case you have 2 where 1 is expected: 50 was divided by 5 and by 5 again. One of the two "
    "lengths has to be that of the key.",
    section=COSINE,
)
def query_twice(query, key):
    """The dot products were divided by the squared length of the query. One of the two has to be that of the key."""
    return attnlib.dot(query / _norm(query) ** 2, key)


@MISTAKES.add(
    "the length of the key is used twice",
    hint="Make a query twice as long: which numbers change?",
    more="In the first case you have 0.5 where 1 is expected: 50 was divided by 10 and by 10 again. One of the two "
    "lengths has to be that of the query.",
    section=COSINE,
)
def key_twice(query, key):
    """The dot products were divided by the squared length of the key. One of the two has to be that of the query."""
    return attnlib.dot(query, key / _norm(key) ** 2)


@MISTAKES.add(
    "the norm runs down the columns",
    hint="Each row is a vector. Along which axis do its components lie?",
    more="Print the lengths of the first query, [3, 4]. There is one vector, so there is one length, 5. You have two "
    "numbers, 3 and 4: one for each column. Which axis did you sum along?",
    section=COSINE,
)
def norm_of_columns(query, key):
    """The components of different vectors were mixed into one length. Each row needs its own."""
    return attnlib.dot(query / _norm(query, -2), key / _norm(key, -2))


@MISTAKES.add(
    "the lengths of the queries run down the columns",
    hint="Compare the two lines that compute lengths. Along which axis does each of them go?",
    more="Print the lengths of the first query, [3, 4]: there is one vector, so there is one length, 5. The keys are "
    "treated correctly; do the same with the queries.",
    section=COSINE,
)
def norm_of_query_columns(query, key):
    """The keys have lengths of their own, but the lengths of the queries mix the components of different vectors."""
    return attnlib.dot(query / _norm(query, -2), key / _norm(key))


@MISTAKES.add(
    "the lengths of the keys run down the columns",
    hint="Compare the two lines that compute lengths. Along which axis does each of them go?",
    more="Print the lengths of the three keys of the first case: they are 10, 5 and 2. The queries are treated "
    "correctly; do the same with the keys.",
    section=COSINE,
)
def norm_of_key_columns(query, key):
    """The queries have lengths of their own, but the lengths of the keys mix the components of different vectors."""
    return attnlib.dot(query / _norm(query), key / _norm(key, -2))


@MISTAKES.add(
    "the axis of the norm is counted from the front",
    hint="Which axis number means the last one, however many there are?",
    more="For a batch of shape (2, 3, 4), axis 1 has the 3 queries, and the components of a vector lie along the "
    "last axis. Counted from the end, it has the same number for matrices and batches.",
    section=COSINE,
)
def norm_from_front(query, key):
    """For a matrix axis 1 holds the components. With a batch in front it runs over the vectors, and mixes them."""
    return attnlib.dot(query / _norm(query, 1), key / _norm(key, 1))


@MISTAKES.add(
    "one norm for the whole array",
    hint="How many lengths do three vectors have? Look at the axis of your norm.",
    more="The three keys of the first case have the lengths 10, 5 and 2. Print yours: it is one number, in which all "
    "three are mixed.",
    section=COSINE,
)
def norm_of_all(query, key):
    """All vectors were divided by one common length. Each row needs its own."""
    return attnlib.dot(query / np.linalg.norm(query), key / np.linalg.norm(key))


@MISTAKES.add(
    "the scores are normalised, not the vectors",
    hint="What do you divide by: the lengths of the vectors, or the length of a row of scores?",
    more="In the first case the dot products are 50, 0 and -8. The first has to be divided by 5 and 10, the last by 5 "
    "and 2. You divide all three by one number.",
    section=COSINE,
)
def norm_of_scores(query, key):
    """Each row of scores was divided by its own length.

    It is the lengths of the vectors that have to be divided out.
    """
    scores = attnlib.dot(query, key)
    return scores / _norm(scores)


@MISTAKES.add(
    "divided by the squared length",
    hint="A vector of length 5 has a sum of squares of 25. Which of the two do you divide by?",
    more="In the first case you have 0.02 where 1 is expected: 50 was divided by 25 and by 100. What turns 25 into 5?",
    section=COSINE,
)
def squared_norm(query, key):
    """The square root of the sum of squares is missing: a vector of length 5 is divided by 25."""
    return attnlib.dot(query / _norm(query) ** 2, key / _norm(key) ** 2)


@MISTAKES.add(
    "one square root too many",
    hint="Is your number for [3, 4] and [6, 8] divided by 50, or by the root of 50?",
    more="The lengths of [3, 4] and [6, 8] are 5 and 10, with the roots already taken. Divide by their product as it "
    "is.",
    section=COSINE,
)
def root_of_product(query, key):
    """The root of the product of the two lengths was taken. The lengths contain their roots already."""
    return attnlib.dot(query / np.sqrt(_norm(query)), key / np.sqrt(_norm(key)))


@MISTAKES.add(
    "the lengths are added, not multiplied",
    hint="How do the two lengths appear in the formula's denominator?",
    more="In the first case 50 has to be divided by 5 times 10. You divide it by 5 plus 10.",
    section=COSINE,
)
def sum_of_lengths(query, key):
    """The dot product was divided by the sum of the two lengths. Their product belongs there."""
    return attnlib.dot(query, key) / (_norm(query) + _norm(key).swapaxes(-1, -2))


@MISTAKES.add(
    "the mean of the squares instead of their sum",
    hint="The vector [3, 4] has length 5. What do you have?",
    more="The squares of [3, 4] are 9 and 16. The length is the root of 25, their sum; you took the root of 12.5, "
    "their mean. Your cosines are too large by a factor: which?",
    section=COSINE,
)
def root_mean_square(query, key):
    """The length was taken as the root of the mean of the squares. It is the root of their sum."""
    return attnlib.cosine(query, key) * query.shape[-1]


@MISTAKES.add(
    "the wrong length (sum of absolute values)",
    hint="The vector [3, 4] has length 5, not 7.",
    more="Draw [3, 4] on paper: 3 to the right, 4 up. The length is that of the straight arrow, by Pythagoras. You "
    "have the distance along the two sides.",
    section=COSINE,
)
def l1_norm(query, key):
    """The absolute components were added up. The length of a vector is the root of the sum of their squares."""
    return attnlib.dot(query / np.abs(query).sum(-1, keepdims=True), key / np.abs(key).sum(-1, keepdims=True))


@MISTAKES.add(
    "the wrong length (plain sum)",
    hint="The vector [-4, 3] has length 5, not -1.",
    more="A sum of components can be negative, but a length cannot. Which two steps make a length from the "
    "components? The formula is in the task.",
    section=COSINE,
)
def plain_sum(query, key):
    """The components were added up. The length of a vector is the root of the sum of their squares."""
    return attnlib.dot(query / query.sum(-1, keepdims=True), key / key.sum(-1, keepdims=True))


@MISTAKES.add(
    "the wrong length (largest component)",
    hint="The vector [3, 4] has length 5, not 4.",
    more="You divide by the largest component. Which two steps make a length from all of them? The formula is in the "
    "task.",
    section=COSINE,
)
def largest_component(query, key):
    """The vectors were divided by their largest component, which is smaller than their length."""
    return attnlib.dot(query / np.abs(query).max(-1, keepdims=True), key / np.abs(key).max(-1, keepdims=True))


@MISTAKES.add(
    "the zero vector gives nan",
    hint="What do you divide a vector of length 0 by? What could you divide it by instead?",
    more="A dot product with the zero vector is 0 already. If that 0 were divided by any other number than 0, say 1, "
    "the result would be what the task asks for. Where could you exchange the length 0 for such a number?",
    section=COSINE,
)
def zero_over_zero(query, key):
    """The zero vector has length 0, and 0/0 is nan. It has no direction, so its cosine is defined as 0."""
    return attnlib.dot(query, key) / (_norm(query) * _norm(key).swapaxes(-1, -2))


@MISTAKES.add(
    "a zero key gives nan",
    hint="You made the queries safe. What happens to a key of length 0?",
    more="Look for the column of your result that is nan. The step that saves a query of zeros is needed for the keys "
    "in the same way.",
    section=COSINE,
)
def zero_key(query, key):
    """A query of zeros is treated correctly, but a key of zeros is still divided by its length 0."""
    return attnlib.dot(np.nan_to_num(query / _norm(query)), key / _norm(key))


@MISTAKES.add(
    "a zero query gives nan",
    hint="You made the keys safe. What happens to a query of length 0?",
    more="Look for the row of your result that is nan. The step that saves a key of zeros is needed for the queries in "
    "the same way.",
    section=COSINE,
)
def zero_query(query, key):
    """A key of zeros is treated correctly, but a query of zeros is still divided by its length 0."""
    return attnlib.dot(query / _norm(query), np.nan_to_num(key / _norm(key)))


@MISTAKES.add(
    "the zero vector agrees with everything",
    hint="What does the task say about the cosine of a vector of zeros?",
    more="A vector of zeros points nowhere, so it agrees with nothing: its cosines are 0. Find the place where you "
    "put 1 into the result; if the 1 were in the denominator instead, it would be right.",
    section=COSINE,
)
def zero_is_one(query, key):
    """A vector of zeros got the cosine 1 with everything. It has no direction, and its scores should be 0."""
    lengths = _norm(query) * _norm(key).swapaxes(-1, -2)
    return np.where(lengths == 0, 1.0, attnlib.cosine(query, key))


@MISTAKES.add(
    "a dimension was lost",
    hint="Print the shape of the norms beside that of the vectors: what does keepdims=True change?",
    more="Three vectors have three lengths. To divide the rows by them, the lengths have to be in a column, in an "
    "array of shape (3, 1). What shape do yours have?",
    section=COSINE,
)
def no_keepdims(query, key):
    """The lengths have one dimension less than the vectors, so they no longer line up with the rows."""
    return attnlib.dot(query / np.linalg.norm(query, axis=-1), key / np.linalg.norm(key, axis=-1))


@MISTAKES.add(
    "the lengths have lost a dimension",
    hint="For 3 queries and 5 keys there are 3 and 5 lengths. What shapes do they need beside a table of 3 rows and "
    "5 columns?",
    more="Each row of the table is divided by one length of a query, each column by one length of a key. So the "
    "first lengths have to be in a column, the others in a row. Print the shapes of yours.",
    section=COSINE,
)
def lengths_without_columns(query, key):
    """Both arrays of lengths are single rows of numbers. Those of the queries do not line up with their rows."""
    return attnlib.dot(query, key) / (_norm(query)[..., 0] * _norm(key)[..., 0])


@MISTAKES.add(
    "the two arrays of lengths do not fit",
    hint="There are T lengths of queries and S lengths of keys. What shape does a table with all their products have?",
    more="The T lengths of the queries have to be in a column, the S lengths of the keys in a row. Print the shapes "
    "of both: which of them has to be turned, and how?",
    section=COSINE,
)
def lengths_in_two_columns(query, key):
    """Both arrays of lengths are in a column. Those of the keys belong in a row, one above each column of scores."""
    return attnlib.dot(query, key) / (_norm(query) * _norm(key))


@MISTAKES.add(
    "the guard against zero is too large",
    hint="What does your guard add to the length of a short vector? Could it act on length 0 alone?",
    more="The key [0.06, 0, 0.08] has length 0.1, and the query [1.2, 0, 1.6] points the same way, so their cosine is "
    "1. Compute the length with your guard in it. Inside the root, a small number weighs more than it seems.",
    section=COSINE,
)
def large_epsilon(query, key):
    """The number that guards against division by zero is not small next to a short vector, and distorts its cosine."""
    return attnlib.dot(query / np.sqrt(_norm(query) ** 2 + 1e-6), key / np.sqrt(_norm(key) ** 2 + 1e-6))


@MISTAKES.add(
    "the distance instead of the similarity",
    hint="A vector compared with itself: what is its cosine?",
    more="In the first case [3, 4] and [6, 8] point the same way. You have 0, and the cosine is 1. What did you "
    "subtract it from?",
    section=COSINE,
)
def cosine_distance(query, key):
    """One minus the cosine is 0 for vectors that agree. The cosine itself is 1 there."""
    return 1 - attnlib.cosine(query, key)


@MISTAKES.add(
    "the angle instead of its cosine",
    hint="A vector compared with itself: what is its cosine, and what is the angle?",
    more="In the first case [3, 4] and [-4, 3] are at right angles. You have 1.57, a quarter of a full turn, and the "
    "cosine is 0. Which last step is one too many?",
    section=COSINE,
)
def angle(query, key):
    """These are angles: 0 for vectors that agree. The task asks for the cosine of the angle."""
    return np.arccos(np.clip(attnlib.cosine(query, key), -1, 1))


@MISTAKES.add(
    "moved to lie between 0 and 1",
    hint="Two vectors at right angles: what is their cosine, and what do you have?",
    more="In the first case [3, 4] and [-4, 3] are at right angles. You have 0.5, and the cosine is 0. A cosine may be "
    "negative; leave out the step that prevents it.",
    section=COSINE,
)
def moved(query, key):
    """The cosines were moved and halved, so that none is negative. A cosine runs from -1 to 1."""
    return (1 + attnlib.cosine(query, key)) / 2


@MISTAKES.add(
    "negative cosines became 0",
    hint="Two vectors that point in opposite directions: what should their cosine be?",
    more="In the first case [3, 4] meets [0, -2]: the cosine is -8/10. Find the step in your function that cuts it off "
    "at 0.",
    section=COSINE,
)
def relu(query, key):
    """Negative cosines were cut off at 0. A cosine is negative where two vectors point apart."""
    return np.maximum(attnlib.cosine(query, key), 0)


@MISTAKES.add(
    "the sign is reversed",
    hint="A vector compared with itself: what is its cosine?",
    more="In the first case [3, 4] and [6, 8] point the same way. You have -1, and the cosine is 1. Look for a minus "
    "sign.",
    section=COSINE,
)
def reversed_sign(query, key):
    """All cosines have the wrong sign: vectors that point the same way got -1."""
    return -attnlib.cosine(query, key)


@MISTAKES.add(
    "the squared cosine",
    hint="Two vectors that point in opposite directions: what should their cosine be?",
    more="In the first case [3, 4] meets [0, -2]: the cosine is -0.8, and you have 0.64. Look for a power in your "
    "function.",
    section=COSINE,
)
def squared(query, key):
    """The cosines were squared, which makes all of them positive."""
    return attnlib.cosine(query, key) ** 2


@MISTAKES.add(
    "centred first (a correlation)",
    hint="What do you subtract from the vectors, and does the formula subtract anything?",
    more="The query [3, 4] becomes [-0.5, 0.5] in your function, which points in quite a different direction. Use the "
    "vectors as they are.",
    section=COSINE,
)
def correlation(query, key):
    """You subtract from each vector the mean of its components, which changes its direction.

    That makes a correlation, not a cosine.
    """
    return attnlib.cosine(query - query.mean(-1, keepdims=True), key - key.mean(-1, keepdims=True))


@MISTAKES.add(
    "already scaled",
    hint="A vector compared with itself: what is its cosine?",
    more="In the first case you have 0.71 where 1 is expected: 1 was divided by the square root of 2, and 2 is the "
    "width of the vectors. A cosine does not depend on the width.",
    section=COSINE,
)
def scaled(query, key):
    """The cosines were divided by the square root of the width as well. Divide only by the two lengths."""
    return attnlib.cosine(query, key) / query.shape[-1] ** 0.5


@MISTAKES.add(
    "divided by the root of the width, not by the lengths",
    hint="Make the query twice as long. Which of your numbers change, and should they?",
    more="The width of [3, 4] is 2, because it has two components. Its length is 5, because the arrow is 5 long. Which "
    "of the two does the formula divide by?",
    section=COSINE,
)
def scaled_dot(query, key):
    """The dot products were divided by the root of the width D. A cosine divides by the lengths of the two vectors."""
    return attnlib.scaled_dot(query, key)


@MISTAKES.add(
    "already a softmax",
    hint="Cosines may be negative and need not sum to anything. Which step belongs to a later exercise?",
    more="The first row should be 1, 0, -0.8. Yours is positive and sums to 1. Find the step that makes it so, and "
    "leave it out.",
    section=SCORES,
)
def weights(query, key):
    """These are weights. The task asks for the cosines, before any softmax."""
    return attnlib.softmax(attnlib.cosine(query, key))


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i.",
    more="In the first case there is one query and there are three keys, so the table has one row and three columns: "
    "1, 0, -0.8. Which of your two arrays supplies the rows of the product?",
    section=SCORES,
)
def transposed(query, key):
    """Row i should hold what query i finds in every key. Yours holds what key i finds in every query."""
    return attnlib.cosine(key, query)


@MISTAKES.add(
    "the size without the sign",
    hint="Two vectors that point in opposite directions: what should their cosine be?",
    more="In the first case [3, 4] meets [0, -2]: the cosine is -8/10. Find the step in your function that turns it "
    "into 0.8.",
    section=COSINE,
)
def absolute(query, key):
    """A negative cosine says that two vectors point apart. Yours has lost that sign."""
    return np.abs(attnlib.cosine(query, key))


@MISTAKES.add(
    "the shapes do not fit: the keys are not transposed",
    hint="Write the two shapes side by side. Which numbers have to be the same in a matrix product?",
    more="A matrix product takes a row from the left and a column from the right, and both need the same length D. "
    "Your keys are rows of length D. Is your function for the dot product right?",
    section=SCORES,
)
def not_transposed(query, key):
    """The shapes (T, D) and (S, D) do not match in a matrix product. The keys have to be columns."""
    return query @ key / (_norm(query) * _norm(key).swapaxes(-1, -2))


@MISTAKES.add(
    "the directions of the keys are not transposed",
    hint="Write the two shapes side by side. Which numbers have to be the same in a matrix product?",
    more="A matrix product takes a row from the left and a column from the right, and both need the same length D. "
    "Your unit keys are rows of length D. What has to happen to them first?",
    section=SCORES,
)
def directions_not_transposed(query, key):
    """As they are, the unit vectors cannot be multiplied as matrices. Those of the keys have to be columns."""
    return (query / _norm(query)) @ (key / _norm(key))


@MISTAKES.add(
    "only row i with row i",
    hint="How many cosines should one query and three keys have?",
    more="You multiply row 1 by row 1, row 2 by row 2, and so on, and add up each row. But every query meets every "
    "key: for 3 queries and 5 keys there are 15 cosines.",
    section=SCORES,
)
def row_by_row(query, key):
    """Each query was compared with one key alone, the one in the same row. Every query meets every key."""
    return (query / _norm(query) * (key / _norm(key))).sum(-1)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shapes for a key of shape (2, 5, 4): transposed, it should be (2, 4, 5), with the batch in front. "
    "And an outer product of lengths, if you use one, mixes the sequences of a batch.",
    section=SCORES,
)
def full_transpose(query, key):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return (query / _norm(query)) @ (key / _norm(key)).T


@MISTAKES.add(
    "every batch against every other",
    hint="np.dot, np.inner and np.tensordot pair all leading dimensions; @ and einsum keep them together.",
    more="Print the shape of your result for a batch of 2. The 2 is there twice: sequence 1 was compared with sequence "
    "2 as well. Use an operation that goes through both batches side by side.",
    section=SCORES,
)
def outer_batches(query, key):
    """Each sequence of the batch is compared with every other sequence. It should be compared only with its own."""
    return np.inner(query / _norm(query), key / _norm(key))


@MISTAKES.add(
    "changes the arrays it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the query before and after a call of your function. Then look for an operator that ends in an equals "
    "sign, such as the one for dividing, or for an argument that says where to write.",
    section=COSINE,
)
def in_place(query, key):
    """The cosines are right, but the caller's vectors now have length 1: your function wrote into them."""
    for x in (query, key):
        x /= np.where(_norm(x) == 0, 1, _norm(x))
    return attnlib.dot(query, key)


@MISTAKES.add(
    "two vectors of zeros count as alike",
    hint="What does the task say about the cosine of a vector of zeros with any vector?",
    more="Look at the place where a query of zeros meets a key of zeros.",
    section=COSINE,
)
def zeros_alike(query, key):
    """Two vectors of zeros get the cosine 1. A vector of zeros has no direction: its cosine with every vector is 0."""
    both = (_norm(query) == 0) & (_norm(key) == 0).swapaxes(-1, -2)
    return attnlib.cosine(query, key) + both


@MISTAKES.add(
    "the lengths count only the first two components",
    hint="How many components does a vector have in general?",
    more="Make the third component of a key ten times as large. Does its length change in your function?",
    section=COSINE,
)
def two_components(query, key):
    """The lengths are computed from two components, as in the example. All D of them count."""
    return attnlib.dot(query / _norm(query[..., :2]), key / _norm(key[..., :2]))


@MISTAKES.add(
    "lengths below 1 count as 1",
    hint="Which lengths does your guard against division by zero change? Which should it change?",
    more="A vector of length 0.5 has a direction, so it has to be divided by 0.5. Only a length of exactly 0 needs to "
    "be replaced by another number.",
    section=COSINE,
)
def at_least_one(query, key):
    """Every length is at least 1 in your function, so the cosines of shorter vectors come out too small."""
    return attnlib.dot(query / np.maximum(_norm(query), 1), key / np.maximum(_norm(key), 1))


@MISTAKES.add(
    "a vector whose components sum to 0 counts as zero",
    hint="The components of [2, -2] sum to 0. Is it a vector of zeros?",
    more="Look at the test for the zero vector. Which number is 0 for a vector of zeros and for no other?",
    section=COSINE,
)
def zero_sum(query, key):
    """A vector such as [2, -2] gets the cosine 0 with everything.

    Only a vector all of whose components are 0 should.
    """
    nonzero = (query.sum(-1) != 0)[..., :, None] & (key.sum(-1) != 0)[..., None, :]
    return np.where(nonzero, attnlib.cosine(query, key), 0.0)


@MISTAKES.add(
    "one vector of zeros makes all cosines 0",
    hint="One of several keys is zero. Which of the cosines does that concern?",
    more="Look at the test for vectors of zeros: does it give one answer for the whole array, or one for each vector?",
    section=COSINE,
)
def all_or_nothing(query, key):
    """As soon as one vector is zero, all cosines become 0. The other vectors still have a direction."""
    some = (_norm(query) == 0).any() or (_norm(key) == 0).any()
    return attnlib.cosine(query, key) * (0.0 if some else 1.0)


@MISTAKES.add(
    "the lengths of queries and keys are exchanged",
    hint="Row i of the table belongs to query i. Which length has to divide the whole row?",
    more="Print the shapes of both arrays of lengths for 3 queries and 5 keys. The lengths of the queries have to be a "
    "column, (3, 1), and those of the keys a row, (1, 5).",
    section=COSINE,
)
def lengths_exchanged(query, key):
    """The lengths of the queries lie along the columns and those of the keys along the rows, instead of vice versa."""
    a, b = _norm(query).swapaxes(-1, -2), _norm(key)
    return attnlib.dot(query, key) / np.where(a == 0, 1, a) / np.where(b == 0, 1, b)


@MISTAKES.add(
    "a single 0 makes a vector count as zero",
    hint="Is [0, -2] a vector of zeros? What is its length?",
    more="In the first case the key [0, -2] gets the score -0.8. Compare what any and all return when you test "
    "which of its numbers are 0.",
    section=COSINE,
)
def any_zero(query, key):
    """A vector that contains a 0 gets the score 0. Only a vector of nothing but zeros has no direction."""
    zero = (query == 0).any(axis=-1)[..., :, None] | (key == 0).any(axis=-1)[..., None, :]
    return np.where(zero, 0.0, attnlib.cosine(query, key))


EXERCISE = Exercise(
    name="cosine",
    reference=attnlib.cosine,
    outputs={"scores": ("T", "S")},
    rubric={NUMBERS: 3, BATCHES: 1, ZERO: 1, UNCHANGED: 1},
    section=COSINE,
    advice="Print the two arrays of lengths with their shapes: each fraction needs one of each. Then look "
    "at a vector of zeros.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=(
        "torch.cosine_similarity",
        "torch.nn.CosineSimilarity",
        "scipy.spatial.distance.cosine",
        "scipy.spatial.distance.cdist",
        "scipy.spatial.distance.pdist",
        "sklearn.metrics.pairwise.cosine_similarity",
        "sklearn.metrics.pairwise.cosine_distances",
        "sklearn.metrics.pairwise.pairwise_distances",
        "sklearn.metrics.pairwise.pairwise_kernels",
    ),
)
