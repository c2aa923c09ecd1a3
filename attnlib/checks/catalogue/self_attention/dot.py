"""dot(query, key)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.self_attention.sections import DOT, SCORES
from attnlib.checks.exercise import Exercise, Mistakes

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
    yield Case("4 queries and one key", NUMBERS, pair(rng, (4, 3), (1, 3)))
    yield Case("3 queries and 3 keys of width 3", NUMBERS, pair(rng, (3, 3), (3, 3)))  # where every product fits
    repeated = with_duplicate_rows(pair(rng, (3, 4), (5, 4)), "query", "key")
    yield Case("a repeated query and a repeated key", NUMBERS, repeated)
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, pair(rng, (2, 3, 4), (2, 5, 4)))
    yield Case("leading dimensions (2, 6)", BATCHES, pair(rng, (2, 6, 3, 4), (2, 6, 5, 4)))
    yield Case("a batch of transposed views", BATCHES, views(pair(rng, (3, 4, 2), (3, 4, 5))))
    yield Case("inputs that must stay as they are", UNCHANGED, pair(rng, (3, 2), (4, 2)), unchanged=True)


def pair(rng: np.random.Generator, query: tuple[int, ...], key: tuple[int, ...], dtype=np.float64) -> dict[str, Any]:
    """Return a random query and key of the given shapes."""
    return {"query": rng.normal(size=query).astype(dtype), "key": rng.normal(size=key).astype(dtype)}


def views(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the same arrays with their last two dimensions exchanged, not contiguous in memory."""
    return {name: x.swapaxes(-1, -2) for name, x in arrays.items()}


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i. How many rows should the first case have?",
    more="In the first case there is one query and there are three keys, so the table has one row and three columns: "
    "3, 8, 0. Which of your two arrays supplies the rows of the product, the left one or the right one?",
    section=SCORES,
)
def transposed(query, key):
    """Row i should hold what query i finds in every key. Yours holds what key i finds in every query."""
    return attnlib.dot(key, query)


@MISTAKES.add(
    "normalised to cosines",
    hint="Which of the two, dot product or cosine, changes when a vector gets longer?",
    more="Work the first case by hand: 1*3 + 2*0 is 3. Yours is less than 1. What was it divided by, and does the "
    "formula of the task divide by anything?",
    section=DOT,
)
def cosines(query, key):
    """These are cosines: the lengths of the vectors were divided out. The dot product keeps them."""
    return attnlib.cosine(query, key)


@MISTAKES.add(
    "already scaled",
    hint="Work the first case by hand: 1*3 + 2*0 is 3.",
    more="You have 2.12 where 3 is expected: the ratio is the square root of 2, and 2 is the width of the vectors. "
    "Dividing by that root is a step of attention; the task here has no division.",
    section=DOT,
)
def scaled(query, key):
    """Your scores are divided by the square root of the width. The plain dot product is not."""
    return attnlib.scaled_dot(query, key)


@MISTAKES.add(
    "multiplied by the square root of the width",
    hint="Work the first case by hand: 1*3 + 2*0 is 3.",
    more="You have 4.24 where 3 is expected: the ratio is the square root of 2, and 2 is the width of the vectors. "
    "The task has no such factor.",
    section=DOT,
)
def multiplied(query, key):
    """Your scores are multiplied by the square root of the width. The plain dot product has no factor."""
    return attnlib.dot(query, key) * query.shape[-1] ** 0.5


@MISTAKES.add(
    "the mean instead of the sum",
    hint="Work the first case by hand: 1*3 + 2*0 is 3, not 1.5.",
    more="The products of the first case are 3 and 0. What do you get when you add them, and what when you average "
    "them? Look for the step that turns the products into one number.",
    section=DOT,
)
def mean(query, key):
    """The products of the components are averaged. In a dot product they are added up."""
    return attnlib.dot(query, key) / query.shape[-1]


@MISTAKES.add(
    "divided by the number of keys",
    hint="Take a key away: should the scores of the others change?",
    more="The first case has three keys, and you have 1 where 3 is expected. A score belongs to one query and one key "
    "alone; how many other keys there are does not matter.",
    section=DOT,
)
def divided_by_keys(query, key):
    """Your scores are divided by the number of keys. A score depends on its own two vectors alone."""
    return attnlib.dot(query, key) / key.shape[-2]


@MISTAKES.add(
    "already a softmax",
    hint="Scores may be negative and need not sum to anything. Which step belongs to a later exercise?",
    more="The first row should be 3, 8, 0. Yours is positive and sums to 1. Find the step that makes it so, and leave "
    "it out.",
    section=SCORES,
)
def weights(query, key):
    """These are weights. The task asks for the scores, before the softmax."""
    return attnlib.softmax(attnlib.dot(query, key))


@MISTAKES.add(
    "the products are not added up",
    hint="One number per pair of vectors: which axis has to be summed away?",
    more="Print the shape of your result: it has one dimension too many, and that one runs over the components. In the "
    "first case the products with the first key are 3 and 0. What is left to do with the two?",
    section=DOT,
)
def no_sum(query, key):
    """The components are multiplied pairwise, but never added up: there is one dimension too many."""
    return query[..., :, None, :] * key[..., None, :, :]


@MISTAKES.add(
    "the wrong axis is added up",
    hint="For one query and one key, which numbers are added up to make the score?",
    more="Before the sum you have three dimensions at the end: queries, keys, components. Print the shape before and "
    "after the sum. Which of the three should be gone?",
    section=DOT,
)
def summed_over_keys(query, key):
    """The products were added up over the keys, so one number per component is left. The components should be added."""
    return (query[..., :, None, :] * key[..., None, :, :]).sum(-2)


@MISTAKES.add(
    "component by component",
    hint="How many scores should one query and three keys have?",
    more="You multiply row 1 by row 1, row 2 by row 2, and so on. But every query meets every key: for 3 queries and 5 "
    "keys there are 15 pairs. Which operation goes through all of them?",
    section=SCORES,
)
def componentwise(query, key):
    """The two arrays are multiplied number by number, which pairs row i with row i. Every query meets every key."""
    return query * key


@MISTAKES.add(
    "only row i with row i",
    hint="How many scores should one query and three keys have?",
    more="You multiply row 1 by row 1, row 2 by row 2, and so on, and add up each row. But every query meets every "
    "key: for 3 queries and 5 keys there are 15 scores.",
    section=SCORES,
)
def row_by_row(query, key):
    """Each query was compared with one key alone, the one in the same row. Every query meets every key."""
    return (query * key).sum(-1)


@MISTAKES.add(
    "the keys are not transposed",
    hint="Write the two shapes side by side. Which numbers have to be the same in a matrix product?",
    more="A matrix product takes a row from the left and a column from the right, and both need the same length D. "
    "Your keys are rows of length D. What has to happen to them first, and to which two axes?",
    section=SCORES,
)
def not_transposed(query, key):
    """The shapes (T, D) and (S, D) do not match in a matrix product. The keys have to be columns."""
    return query @ key


@MISTAKES.add(
    "the queries are transposed, not the keys",
    hint="Row i of the scores belongs to query i. Which of the two arrays should keep its rows?",
    more="Write down the shapes: (D, T) on the left and (S, D) on the right. The numbers in the middle have to be the "
    "same, and the outer ones should be T and S. Which array has to be transposed?",
    section=SCORES,
)
def query_transposed(query, key):
    """The queries were turned into columns, and the keys left as rows. It should be the other way round."""
    return query.swapaxes(-1, -2) @ key


@MISTAKES.add(
    "reshaped instead of transposed",
    hint="Print your transposed keys for the first case. Is [3, 0] one of their columns?",
    more="A reshape keeps the numbers in the order in which they lie in memory and cuts them into other rows. So one "
    "column mixes numbers of different keys. Which operation exchanges two axes instead?",
    section=SCORES,
)
def reshaped(query, key):
    """The keys got the right shape by a reshape, which mixes numbers of different keys. A transpose was needed."""
    return query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


@MISTAKES.add(
    "queries against queries",
    hint="Which of your two arguments does the formula not use?",
    more="Change a key and call your function again: nothing changes. Find the place where the second factor comes "
    "from.",
    section=SCORES,
)
def query_with_query(query, key):
    """Each query is compared with the other queries. The keys are never looked at."""
    return attnlib.dot(query, query)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your two arguments does the formula not use?",
    more="Change a query and call your function again: nothing changes. Find the place where the first factor comes "
    "from.",
    section=SCORES,
)
def key_with_key(query, key):
    """Each key is compared with the other keys. The queries are never looked at."""
    return attnlib.dot(key, key)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shape of your transposed keys for a key of shape (2, 5, 4). It should be (2, 4, 5): the batch "
    "stays in front, and the last two change places. Some ways to transpose reverse all axes, and a loop over a batch "
    "goes through its sequences, not through the rows.",
    section=SCORES,
)
def full_transpose(query, key):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return query @ key.T


@MISTAKES.add(
    "an einsum only for matrices",
    hint="Your letters name two dimensions of each array. What stands for those in front, however many there are?",
    more="Three dots in front of the letters mean any number of further dimensions, including none. They are needed "
    "in both inputs and in the output.",
    section=SCORES,
)
def einsum_of_matrices(query, key):
    """The letters of the einsum allow for two dimensions and no more, so there is no room for a batch in front."""
    return np.einsum("td,sd->ts", query, key)


@MISTAKES.add(
    "an einsum only for a batch",
    hint="Your letters name one dimension for the batch. What stands for those in front, however many there are?",
    more="Three dots in front of the letters mean any number of further dimensions, including none. With a letter for "
    "the batch there is no room for a single matrix.",
    section=SCORES,
)
def einsum_of_batches(query, key):
    """The letters of the einsum ask for exactly one dimension in front. There may also be none, or two."""
    return np.einsum("btd,bsd->bts", query, key)


@MISTAKES.add(
    "a transpose only for a batch",
    hint="Your transpose numbers three axes. How many does a matrix have?",
    more="Count the two axes that change places from the end: the last one and the one before it have the same "
    "negative numbers whatever comes before.",
    section=SCORES,
)
def transpose_of_batches(query, key):
    """The transpose asks for exactly three dimensions. A single matrix has two, and a stack of stacks has four."""
    return query @ key.transpose(0, 2, 1)


@MISTAKES.add(
    "axes 1 and 2 change places, whatever the shape",
    hint="Which axes are the last two of a matrix, and which are those of a batch?",
    more="A matrix has the axes 0 and 1, so there is no axis 2. Count from the end: the last two axes have the same "
    "negative numbers whatever comes before.",
    section=SCORES,
)
def swapped_from_front(query, key):
    """The axes that change places were counted from the front. That fits a batch of matrices, and no other shape."""
    return query @ key.swapaxes(1, 2)


@MISTAKES.add(
    "every batch against every other",
    hint="np.dot, np.inner and np.tensordot pair all leading dimensions; @ and einsum keep them together.",
    more="Print the shape of your result for a batch of 2. The 2 is there twice: sequence 1 was compared with sequence "
    "2 as well. Use an operation that goes through both batches side by side.",
    section=SCORES,
)
def outer_batches(query, key):
    """Each sequence of the batch is compared with every other sequence. It should be compared only with its own."""
    return np.dot(query, key.swapaxes(-1, -2))


@MISTAKES.add(
    "the first sequence of the batch for all",
    hint="Change the second sequence of a batch: do its scores change?",
    more="Look at how you treat the dimension in front: somewhere its first entry is taken, or a loop stops after one "
    "iteration. Every sequence has keys of its own.",
    section=SCORES,
)
def first_of_the_batch(query, key):
    """All sequences of a batch were compared with the keys of the first one. Each has keys of its own."""
    return attnlib.dot(query, key if key.ndim == 2 else key[:1] + np.zeros_like(key))


@MISTAKES.add(
    "a dimension of size 1 was lost",
    hint="One query is still a table of one row. What is the shape of your result in the first case?",
    more="The shape is (1, 3) for one query and three keys, not (3,). Look for a step that removes dimensions of size "
    "1, or an index that picks a single row.",
    section=SCORES,
)
def squeezed(query, key):
    """The numbers are right, but a table with one row or one column has lost a dimension."""
    return attnlib.dot(query, key).squeeze()


@MISTAKES.add(
    "the size without the sign",
    hint="Two vectors that point in opposite directions: what should their score be?",
    more="Take the query [1, 2] and the key [-2, -1] by hand: -2 - 2 is -4. Find the step in your function that turns "
    "it into 4.",
    section=DOT,
)
def absolute(query, key):
    """A negative dot product says that two vectors point apart. Yours has lost that sign."""
    return np.abs(attnlib.dot(query, key))


@MISTAKES.add(
    "absolute values of the components",
    hint="Two components of opposite sign disagree. What should they add to the score?",
    more="Take the query [1, 2] and the key [-2, 1] by hand: -2 + 2 is 0. Yours is 4. Which step lost the minus sign "
    "before the products were added?",
    section=DOT,
)
def sizes(query, key):
    """The components lost their signs before they were multiplied, so disagreement counts as agreement."""
    return attnlib.dot(np.abs(query), np.abs(key))


@MISTAKES.add(
    "negative scores became 0",
    hint="Two vectors that point in opposite directions: what should their score be?",
    more="Take the query [1, 2] and the key [-2, -1] by hand: the score is -4. Find the step in your function that "
    "cuts it off at 0.",
    section=DOT,
)
def relu(query, key):
    """Negative scores were cut off at 0. A dot product is negative where two vectors point apart."""
    return np.maximum(attnlib.dot(query, key), 0)


@MISTAKES.add(
    "the sign is reversed",
    hint="Is your score larger or smaller when two vectors are alike?",
    more="The first score of the first case is 3, and yours is -3. Look for a minus sign, or for a difference taken "
    "the wrong way round.",
    section=DOT,
)
def reversed_sign(query, key):
    """All scores have the wrong sign: vectors that point the same way got a negative score."""
    return -attnlib.dot(query, key)


@MISTAKES.add(
    "the dot products are squared",
    hint="Work the first case by hand: 1*3 + 2*0 is 3, not 9.",
    more="A square loses the sign, so vectors that point apart look alike. Look for a power in your function.",
    section=DOT,
)
def squared(query, key):
    """The dot products were squared, which makes all of them positive. The task asks for the plain dot product."""
    return attnlib.dot(query, key) ** 2


@MISTAKES.add(
    "the components are added, not multiplied",
    hint="What do you do with the first components of the two vectors: add them or multiply them?",
    more="Take the query [1, 2] and the key [3, 0] by hand, as a dot product: 1*3 + 2*0 is 3. Yours is 6, the sum of "
    "all four numbers.",
    section=DOT,
)
def added(query, key):
    """The components of a query and a key were added to each other. A dot product adds up their products."""
    return (query[..., :, None, :] + key[..., None, :, :]).sum(-1)


@MISTAKES.add(
    "the vectors are centred first",
    hint="What do you subtract from the vectors, and does the formula subtract anything?",
    more="The query [1, 2] becomes [-0.5, 0.5] in your function. Use the vectors as they are.",
    section=DOT,
)
def centred(query, key):
    """You subtract from each vector the mean of its components.

    That gives a covariance (times D), not a dot product.
    """
    return attnlib.dot(query - query.mean(-1, keepdims=True), key - key.mean(-1, keepdims=True))


@MISTAKES.add(
    "the last component is left out",
    hint="Count the products in one of your sums: are there as many as there are components?",
    more="For the query [1, 2] and the key [0, 4] the score is 8. Yours is 0, so the second component was never "
    "reached. Where does your loop, or your slice, end?",
    section=DOT,
)
def without_last_component(query, key):
    """The sum stops one component too early."""
    return attnlib.dot(query[..., :-1], key[..., :-1])


@MISTAKES.add(
    "the first component is left out",
    hint="Count the products in one of your sums: are there as many as there are components?",
    more="For the query [1, 2] and the key [3, 0] the score is 3. Yours is 0, so the first component was never "
    "counted. Where does your loop, or your slice, begin?",
    section=DOT,
)
def without_first_component(query, key):
    """The sum begins one component too late."""
    return attnlib.dot(query[..., 1:], key[..., 1:])


@MISTAKES.add(
    "the last key is left out",
    hint="How many keys are there, and how many columns did you fill?",
    more="The last column of your table is 0 everywhere. Where does your loop over the keys end?",
    section=SCORES,
)
def without_last_key(query, key):
    """The last column of the scores was never filled."""
    scores = attnlib.dot(query, key)
    scores[..., -1] = 0
    return scores


@MISTAKES.add(
    "only part of the table is filled",
    hint="Is the score of query 1 with key 3 in your table?",
    more="Your table is 0 to the right of the diagonal. Where does the inner loop end: at the number of keys, or at "
    "the number of the query? Queries and keys are different vectors here, so no half of the table follows from "
    "the other.",
    section=SCORES,
)
def lower_triangle(query, key):
    """Half of the table is 0: query i met only the keys up to key i. Every query meets every key."""
    return np.tril(attnlib.dot(query, key))


@MISTAKES.add(
    "squared distances instead of products",
    hint="Is your score larger or smaller when two vectors are alike?",
    more="For the query [1, 2] and the key [3, 0] you have 4 + 4, the squares of the two differences. The dot product "
    "has the products of the components: 3 and 0.",
    section=DOT,
)
def squared_distance(query, key):
    """These are squared distances: small where vectors are alike. A dot product is large there."""
    return -2 * attnlib.gaussian(query, key)


@MISTAKES.add(
    "distances instead of products",
    hint="Is your score larger or smaller when two vectors are alike?",
    more="For the query [1, 2] and the key [3, 0] you have the root of 4 + 4, the distance between the two. The dot "
    "product is the sum of the products of the components: 3 + 0.",
    section=DOT,
)
def distance(query, key):
    """These are distances: small where vectors are alike. A dot product is large there."""
    return np.sqrt(-2 * attnlib.gaussian(query, key))


@MISTAKES.add(
    "changes the arrays it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the query before and after a call of your function. Then look for an operator that ends in an equals "
    "sign, or for an argument that says where to write.",
    section=SCORES,
)
def in_place(query, key):
    """The scores are right, but the caller's vectors have changed: your function wrote into an argument."""
    scores = attnlib.dot(query, key)
    query *= 2
    return scores


@MISTAKES.add(
    "the last sequence of the batch for all",
    hint="Change the first key of the first sequence of a batch: do any of its scores change?",
    more="If you loop over the batch, compare the index of the query with the index of the key in each line. A loop "
    "variable keeps its last value after its loop has ended.",
    section=SCORES,
)
def last_of_the_batch(query, key):
    """All sequences of a batch were compared with the keys of the last one. Each has keys of its own."""
    return attnlib.dot(query, key if key.ndim == 2 else key[-1:] + np.zeros_like(key))


EXERCISE = Exercise(
    name="dot",
    reference=attnlib.dot,
    outputs={"scores": ("T", "S")},
    rubric={NUMBERS: 3, BATCHES: 2, UNCHANGED: 1},
    section=DOT,
    advice="Take one query (1, 2) and two keys, and write the table of scores on paper: what shape does it have, and "
    "which number is where?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=("attnlib.scaled_dot", "attnlib.general", "sklearn.metrics.pairwise.linear_kernel"),
)
