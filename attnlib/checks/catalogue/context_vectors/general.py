"""general(query, key, weight)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.context_vectors.sections import OTHER_ORDER
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, UNCHANGED = "the numbers", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: two widths by hand, then equal widths, which hide a transpose, then batches."""
    hand = {
        "query": np.array([[1.0, 2.0]]),
        "key": np.array([[3.0, 0.0, 1.0], [-1.0, 2.0, 0.0]]),
        "weight": np.array([[1.0, 0.0, 2.0], [-1.0, 3.0, 0.0]]),
    }
    yield Case("the query [1, 2], two keys of width 3, and a weight of 2 rows and 3 columns", NUMBERS, hand)
    yield Case("3 queries of width 4, 5 keys of width 6", NUMBERS, triple(rng, (), 3, 5, 4, 6))
    yield Case("queries and keys of the same width, 4", NUMBERS, triple(rng, (), 3, 2, 4, 4))
    yield Case("one query and one key", NUMBERS, triple(rng, (), 1, 1, 3, 2))
    yield Case("vectors in float32", NUMBERS, triple(rng, (), 2, 4, 5, 3, np.float32))
    views = triple(rng, (), 3, 4, 5, 2)
    views["weight"] = 0.5 * rng.normal(size=(2, 5)).T
    views["key"] = rng.normal(size=(8, 2))[::2]
    yield Case("every second key of a longer array, and a weight that is a transposed view", NUMBERS, views)
    yield Case("a batch of 2 (T=3, S=5, D_q=4, D_k=6)", BATCHES, triple(rng, (2,), 3, 5, 4, 6))
    yield Case("a batch of 6 whose queries and keys have the same width, 3", BATCHES, triple(rng, (6,), 4, 5, 3, 3))
    yield Case("leading dimensions (2, 7)", BATCHES, triple(rng, (2, 7), 3, 4, 6, 5))
    yield Case("inputs that must stay as they are", UNCHANGED, triple(rng, (), 3, 4, 2, 5), unchanged=True)


def triple(rng, leading: tuple[int, ...], t: int, s: int, d_q: int, d_k: int, dtype=np.float64) -> dict[str, Any]:
    """Return random queries and keys, and a weight without any symmetry, for scores of order 1."""
    arrays = {
        "query": rng.normal(size=(*leading, t, d_q)),
        "key": rng.normal(size=(*leading, s, d_k)),
        "weight": 0.4 * rng.normal(size=(d_q, d_k)),
    }
    return {name: array.astype(dtype) for name, array in arrays.items()}


def _general(query, key, weight):
    return query @ weight @ key.swapaxes(-1, -2)


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i. How many rows should the first case have?",
    more="The first case has one query and two keys. Write down the shape of your scores, and the one in the task.",
    section=OTHER_ORDER,
)
def transposed(query, key, weight):
    """Each number is right, but row i should hold what query i finds in every key. Your rows belong to the keys."""
    return _general(query, key, weight).swapaxes(-1, -2)


@MISTAKES.add(
    "the weight is used the wrong way round",
    hint="The rows of the weight belong to the query. Which side of the weight do you multiply by it?",
    more="Write the shapes under your product: the width of the queries has to line up with the first size of the "
    "weight. With equal widths no error tells you.",
    section=OTHER_ORDER,
)
def weight_transposed(query, key, weight):
    """The weight is the wrong way round: its rows belong to the query, its columns to the key."""
    return _general(query, key, weight.T)


@MISTAKES.add(
    "queries and keys have changed roles",
    hint="Who asks, and who is asked? Row i of the scores belongs to the one who asks.",
    more="The first case has one query and two keys. How many rows should its scores have, and what is to the "
    "left of the weight?",
    section=OTHER_ORDER,
)
def roles_swapped(query, key, weight):
    """The keys multiply the rows of the weight, and each of them has a row of scores.

    Both places belong to the queries.
    """
    return _general(key, query, weight)


@MISTAKES.add(
    "the weight is not used",
    hint="What distinguishes this score from a plain dot product?",
    more="With equal widths, put in a weight of zeros. What should all scores be, and what are yours?",
    section=OTHER_ORDER,
)
def no_weight(query, key, weight):
    """This is the plain dot product. A learned weight should be between query and key."""
    return query @ key.swapaxes(-1, -2)


@MISTAKES.add(
    "the scores are scaled",
    hint="What are your scores divided by, and where does the formula say so?",
    more="Work the first case by hand: query times weight is (-1, 6, 2). Which score does it get with the first key?",
    section=OTHER_ORDER,
)
def scaled(query, key, weight):
    """Your scores are divided by the square root of the width of the keys. This score is not scaled."""
    return _general(query, key, weight) / key.shape[-1] ** 0.5


@MISTAKES.add(
    "scaled by the width of the queries",
    hint="What are your scores divided by, and where does the formula say so?",
    more="Work the first case by hand: query times weight is (-1, 6, 2). Which score does it get with the first key?",
    section=OTHER_ORDER,
)
def scaled_by_query_width(query, key, weight):
    """Your scores are divided by the square root of the width of the queries. This score is not scaled."""
    return _general(query, key, weight) / query.shape[-1] ** 0.5


@MISTAKES.add(
    "already a softmax",
    hint="Scores may be negative and need not sum to anything. Which step belongs to a later task?",
    more="In the first case the two scores are -1 and 13. What do yours sum to?",
    section=OTHER_ORDER,
)
def weights(query, key, weight):
    """These are weights that sum to 1. The task asks for the scores, before the softmax."""
    return attnlib.softmax(_general(query, key, weight))


@MISTAKES.add(
    "squashed by a tanh",
    hint="Of the three scores in the chapter, which one has a tanh?",
    more="In the first case the two scores are -1 and 13. Can a tanh ever give 13?",
    section=OTHER_ORDER,
)
def squashed(query, key, weight):
    """The scores go through a tanh. That belongs to the additive score: this one consists only of products and sums."""
    return np.tanh(_general(query, key, weight))


@MISTAKES.add(
    "the projected query is squashed",
    hint="Of the three scores in the chapter, which one has a tanh?",
    more="In the first case query times weight is (-1, 6, 2). What do you multiply the keys by?",
    section=OTHER_ORDER,
)
def query_squashed(query, key, weight):
    """The query goes through the weight and then through a tanh. In this score nothing is squashed."""
    return np.tanh(query @ weight) @ key.swapaxes(-1, -2)


@MISTAKES.add(
    "the products are not added up",
    hint="One number for each pair of query and key: which axis has to be summed away?",
    more="Write down the shape of your result for 3 queries, 5 keys and width 6. Which of its sizes is one too many?",
    section=OTHER_ORDER,
)
def no_sum(query, key, weight):
    """Projected query and key are multiplied number by number, but never added up: one dimension is too many."""
    return (query @ weight)[..., :, None, :] * key[..., None, :, :]


@MISTAKES.add(
    "each query meets one key only",
    hint="Every query should meet every key. How many scores do 3 queries and 5 keys make?",
    more="In yours, query number 1 meets key number 1, and number 2 meets number 2. Which two sizes should the table "
    "have?",
    section=OTHER_ORDER,
)
def pairwise(query, key, weight):
    """Query number i meets key number i alone. The task asks for a table, in which every query meets every key."""
    return (query @ weight * key).sum(-1)


@MISTAKES.add(
    "the mean instead of the sum",
    hint="Work the first case by hand: -1 times 3, 6 times 0 and 2 times 1. What do they add up to?",
    more="Your numbers are all too small, by the same factor. Which width is that factor?",
    section=OTHER_ORDER,
)
def mean(query, key, weight):
    """The products of the components are averaged. They should be added up."""
    return _general(query, key, weight) / key.shape[-1]


@MISTAKES.add(
    "the weight is used on both sides",
    hint="How often does the weight appear in the formula?",
    more="With equal widths, put in a weight that doubles every vector. By what factor should the scores grow?",
    section=OTHER_ORDER,
)
def both_projected(query, key, weight):
    """Query and key both go through the weight. It belongs between them, once."""
    return query @ weight @ (key @ weight).swapaxes(-1, -2)


@MISTAKES.add(
    "queries against queries",
    hint="Which of your three arguments does your result not depend on?",
    more="Call your function twice, with different keys. Do the scores differ? Should they?",
    section=OTHER_ORDER,
)
def query_with_query(query, key, weight):
    """Each query is compared with the other queries. The keys are never looked at."""
    return _general(query, query, weight)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your three arguments does your result not depend on?",
    more="Call your function twice, with different queries. Do the scores differ? Should they?",
    section=OTHER_ORDER,
)
def key_with_key(query, key, weight):
    """Each key is compared with the other keys. The queries are never looked at."""
    return _general(key, key, weight)


@MISTAKES.add(
    "the sign is reversed",
    hint="In the first case the second key fits best. Which one has the largest score in yours?",
    more="Work the first case by hand. The scores are -1 and 13. Where does yours get its minus sign from?",
    section=OTHER_ORDER,
)
def reversed_sign(query, key, weight):
    """The key that fits best gets the smallest score: there is one minus sign too many."""
    return -_general(query, key, weight)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="A transpose that reverses all axes moves the batch to the end. Which two axes were meant?",
    section=OTHER_ORDER,
)
def full_transpose(query, key, weight):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return query @ weight @ key.T


@MISTAKES.add(
    "every batch against every other",
    hint="How many dimensions should the scores of a batch have, and how many do yours have?",
    more="Some products pair all leading dimensions of one array with all of the other. Which kind does not?",
    section=OTHER_ORDER,
)
def outer_batches(query, key, weight):
    """Each sequence of the batch is compared with every other sequence. It should be compared only with its own."""
    return np.dot(query @ weight, key.swapaxes(-1, -2))


@MISTAKES.add(
    "the vectors are made unit length",
    hint="In the first case the scores are -1 and 13. Can a cosine be 13?",
    more="Double a query. What should happen to its scores, and what happens to yours?",
    section=OTHER_ORDER,
)
def cosines(query, key, weight):
    """The lengths of the projected query and of the key were divided out. This score keeps them."""
    return attnlib.cosine(query @ weight, key)


@MISTAKES.add(
    "the softmax of scaled scores",
    hint="Which two steps come after this score, and belong to later tasks?",
    more="In the first case the two scores are -1 and 13. What do yours sum to?",
    section=OTHER_ORDER,
)
def scaled_weights(query, key, weight):
    """These are weights, made of scaled scores. The task asks for the scores, unscaled and before the softmax."""
    return attnlib.softmax(_general(query, key, weight) / key.shape[-1] ** 0.5)


@MISTAKES.add(
    "scaled dot products, without the weight",
    hint="That is a different score. Which argument is not used in yours, and what do your scores have that the "
    "formula does not?",
    more="With equal widths, put in a weight of zeros. What should all scores be, and what are yours?",
    section=OTHER_ORDER,
)
def no_weight_scaled(query, key, weight):
    """These are dot products divided by the root of the width. Here a weight is between them, and nothing is scaled."""
    return query @ key.swapaxes(-1, -2) / key.shape[-1] ** 0.5


@MISTAKES.add(
    "the weight the wrong way round, and scaled",
    hint="Which side of the weight do you multiply by the query, and what are your scores divided by?",
    more="Work the first case by hand: query times weight is (-1, 6, 2). Which score does it get with the first key?",
    section=OTHER_ORDER,
)
def weight_transposed_scaled(query, key, weight):
    """The weight's rows belong to the query, and its columns to the key. And this score is not scaled."""
    return _general(query, key, weight.T) / key.shape[-1] ** 0.5


@MISTAKES.add(
    "the keys are not used",
    hint="Which of your three arguments does your result not depend on?",
    more="In the first case query times weight is (-1, 6, 2). What must it be multiplied by to give a score?",
    section=OTHER_ORDER,
)
def no_key(query, key, weight):
    """This is the query times the weight, not a score yet. It still has to be multiplied by every key."""
    return query @ weight


@MISTAKES.add(
    "the weight on one side, and its transpose on the other",
    hint="How often does the weight appear in the formula?",
    more="With equal widths, put in a weight that doubles every vector. By what factor should the scores grow?",
    section=OTHER_ORDER,
)
def both_projected_apart(query, key, weight):
    """The query goes through the weight, and the key through its transpose. The weight belongs between them, once."""
    return query @ weight @ (key @ weight.T).swapaxes(-1, -2)


@MISTAKES.add(
    "the weight is made symmetric",
    hint="Is the weight the same as its transpose? Does anything require that?",
    more="Take a weight with a single 1 off its diagonal. What becomes of it in your function?",
    section=OTHER_ORDER,
)
def symmetric_part(query, key, weight):
    """If the weight is square, you average it with its own transpose. But a weight need not be symmetric."""
    square = weight.shape[0] == weight.shape[1]
    return _general(query, key, (weight + weight.T) / 2 if square else weight)


@MISTAKES.add(
    "the weight is transposed only when it would not fit otherwise",
    hint="If both ways fit, which of them is right?",
    more="On paper, try a weight that is square but not symmetric.",
    section=OTHER_ORDER,
)
def turned_if_needed(query, key, weight):
    """A square weight is used the wrong way round. The shapes alone cannot tell you which way is right."""
    square = weight.shape[0] == weight.shape[1]
    return _general(query, key, weight.T if square else weight)


@MISTAKES.add(
    "the keys are reshaped, not transposed",
    hint="Does a reshape transpose a matrix?",
    more="Print the keys before and after that step, for two keys of width 3. Where is the first key then?",
    section=OTHER_ORDER,
)
def reshaped_key(query, key, weight):
    """The keys are cut into rows of another length. A transpose keeps each key together, as a column."""
    return query @ weight @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


@MISTAKES.add(
    "the weight is averaged with its transpose",
    hint="For queries of width 2 and keys of width 3, what are the shapes of the weight and of its transpose?",
    more="A symmetric weight gives two words the same score whichever is the query. Nothing in the formula requires "
    "that.",
    section=OTHER_ORDER,
)
def weight_plus_transpose(query, key, weight):
    """You average the weight with its own transpose. It need not be square, and if it is, averaging changes it."""
    return _general(query, key, (weight + weight.T) / 2)


EXERCISE = Exercise(
    name="general",
    reference=attnlib.general,
    outputs={"scores": ("T", "S")},
    rubric={NUMBERS: 3, BATCHES: 2, UNCHANGED: 1},
    section=OTHER_ORDER,
    advice="Take the first case, and write the query times the weight on paper: (-1, 6, 2). Print the same in your "
    "function, with its shape, and then the scores, which are -1 and 13.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
