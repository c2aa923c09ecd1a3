"""additive(query, key, w_query, w_key, v)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.context_vectors.sections import LOOK_BACK, THREE_WORDS
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large sums", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the chapter's three words, then five different widths, then equal ones, batches, large sums."""
    hand = {
        "query": np.array([[-1.0, 0.0]]),
        "key": np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        "w_query": np.eye(2),
        "w_key": np.eye(2),
        "v": np.array([-2.0, 2.0]),
    }
    yield Case("the chapter's memory of three words, whose scores are 0, 3.046 and 1.523", NUMBERS, hand)
    yield Case("3 queries of width 4, 5 keys of width 6, and 7 hidden numbers", NUMBERS, five(rng, (), 3, 5, 4, 6, 7))
    yield Case("the same width, 4, on both sides and inside", NUMBERS, five(rng, (), 3, 2, 4, 4, 4))
    yield Case("one query and one key", NUMBERS, five(rng, (), 1, 1, 3, 2, 4))
    yield Case("vectors in float32", NUMBERS, five(rng, (), 2, 4, 5, 3, 6, np.float32))
    views = five(rng, (), 3, 4, 5, 2, 6)
    views["w_query"] = 0.5 * rng.normal(size=(6, 5)).T
    views["key"] = rng.normal(size=(8, 2))[::2]
    yield Case("every second key of a longer array, and weights that are a transposed view", NUMBERS, views)
    repeated = with_duplicate_rows(five(rng, (), 3, 5, 4, 6, 7), "query", "key")
    yield Case("a repeated query and a repeated key", NUMBERS, repeated)
    yield Case("a batch of 2 (T=3, S=5, D_q=4, D_k=6, D_a=7)", BATCHES, five(rng, (2,), 3, 5, 4, 6, 7))
    yield Case("as many queries as keys, 3, in a batch of 3", BATCHES, five(rng, (3,), 3, 3, 4, 2, 5))
    yield Case("leading dimensions (2, 7)", BATCHES, five(rng, (2, 7), 3, 4, 6, 5, 2))
    large = five(rng, (), 2, 3, 4, 5, 6)
    large["w_query"] = np.abs(large["w_query"]) + 0.5
    large["query"] = (np.abs(large["query"]) + 0.5) * np.array([[900.0], [-900.0]])
    yield Case("sums of a thousand, all positive for one query, all negative for the other", LARGE, large)
    apart = five(rng, (), 2, 3, 4, 5, 6)
    apart["query"][:, 0], apart["w_query"][0] = 1.0, 40.0
    apart["key"][:, 0], apart["w_key"][0] = 1.0, -40.0
    yield Case("projections near 40 and -40, with sums of order 1", LARGE, apart)
    yield Case("inputs that must stay as they are", UNCHANGED, five(rng, (), 3, 4, 2, 5, 6), unchanged=True)


def five(
    rng, leading: tuple[int, ...], t: int, s: int, d_q: int, d_k: int, d_a: int, dtype=np.float64
) -> dict[str, Any]:
    """Return random queries, keys and weights, whose sums are of order 1, where tanh bends."""
    arrays = {
        "query": rng.normal(size=(*leading, t, d_q)),
        "key": rng.normal(size=(*leading, s, d_k)),
        "w_query": rng.normal(size=(d_q, d_a)) / d_q**0.5,
        "w_key": rng.normal(size=(d_k, d_a)) / d_k**0.5,
        "v": rng.normal(size=d_a),
    }
    return {name: array.astype(dtype) for name, array in arrays.items()}


def _pairs(query, key, w_query, w_key):
    """Return the sums for every query with every key, ``(..., T, S, D_a)``."""
    return (query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i. How many rows should the first case have?",
    more="The first case has one query and three keys. Which of the two did you give the new axis of size 1, and which "
    "axis of the sum then comes first?",
    section=LOOK_BACK,
)
def transposed(query, key, w_query, w_key, v):
    """Each number is right, but row i should hold what query i finds in every key. Your rows belong to the keys."""
    return (np.tanh(_pairs(query, key, w_query, w_key)) @ v).swapaxes(-1, -2)


@MISTAKES.add(
    "nothing is squashed",
    hint="The score is a small network with one hidden layer. What happens in that layer after the sum?",
    more="For the second word of the chapter's example the sums are -1 and 1, and tanh 1 is 0.762. Which numbers do "
    "you multiply by v?",
    section=LOOK_BACK,
)
def no_tanh(query, key, w_query, w_key, v):
    """The sums are multiplied by v directly: the tanh is missing.

    Without it every query ranks the keys in the same order.
    """
    return _pairs(query, key, w_query, w_key) @ v


@MISTAKES.add(
    "v is not used",
    hint="Which argument does your result not depend on?",
    more="Call your function with v and with twice v. By what factor should the scores grow?",
    section=LOOK_BACK,
)
def no_v(query, key, w_query, w_key, v):
    """The squashed numbers are simply added up. It is v that says how much each of them counts, and with which sign."""
    return np.tanh(_pairs(query, key, w_query, w_key)).sum(-1)


@MISTAKES.add(
    "the hidden numbers are not read off",
    hint="One number for each pair of query and key: which axis has to be summed away?",
    more="Write down the shape of your result for 3 queries, 5 keys and 7 hidden numbers. Which of its sizes is one "
    "too many?",
    section=LOOK_BACK,
)
def not_summed(query, key, w_query, w_key, v):
    """The hidden numbers are multiplied by v one by one, but never added up: there is one dimension too many."""
    return np.tanh(_pairs(query, key, w_query, w_key)) * v


@MISTAKES.add(
    "the mean instead of the sum",
    hint="Work the second word of the chapter's example by hand: the two products are 1.523 each, and their sum is "
    "3.046.",
    more="Your numbers are all too small, by the same factor. How many hidden numbers are there?",
    section=LOOK_BACK,
)
def mean(query, key, w_query, w_key, v):
    """The hidden numbers, times v, are averaged. They should be added up."""
    return np.tanh(_pairs(query, key, w_query, w_key)) @ v / v.shape[-1]


@MISTAKES.add(
    "the scores are scaled",
    hint="What are your scores divided by, and where does the formula say so?",
    more="For the second word of the chapter's example the score is 3.046. By what factor is yours smaller?",
    section=LOOK_BACK,
)
def scaled(query, key, w_query, w_key, v):
    """Your scores are divided by the root of the hidden width. That belongs to dot products, not to this score."""
    return np.tanh(_pairs(query, key, w_query, w_key)) @ v / v.shape[-1] ** 0.5


@MISTAKES.add(
    "v comes before the tanh",
    hint="What is the last thing that happens to the hidden numbers: are they squashed, or multiplied by v?",
    more="For the second word of the chapter's example the score is 3.046. Can a tanh ever give that?",
    section=LOOK_BACK,
)
def tanh_last(query, key, w_query, w_key, v):
    """The sums are multiplied by v first, and the tanh comes last, so no score exceeds 1. Take the tanh first."""
    return np.tanh(_pairs(query, key, w_query, w_key) @ v)


@MISTAKES.add(
    "v is inside the tanh",
    hint="What is squashed: the sums, or the sums times v?",
    more="For the second word of the chapter's example the squashed numbers are -0.762 and 0.762. What are yours?",
    section=LOOK_BACK,
)
def v_inside(query, key, w_query, w_key, v):
    """The sums are multiplied by v, then squashed, then added up.

    They should be squashed first, and then multiplied by v.
    """
    return np.tanh(_pairs(query, key, w_query, w_key) * v).sum(-1)


@MISTAKES.add(
    "query and key are squashed one by one",
    hint="How many times is tanh applied for one pair, and to what?",
    more="For the third word of the chapter's example the sum is (0, 1). Which numbers go into a tanh in your "
    "function?",
    section=LOOK_BACK,
)
def squashed_apart(query, key, w_query, w_key, v):
    """Query and key each get a tanh and are added afterwards. The sum comes first, then one tanh."""
    return (np.tanh(query @ w_query)[..., :, None, :] + np.tanh(key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "multiplied instead of added",
    hint="The score is named after an operation. Which one joins the two projections?",
    more="For the first word of the chapter's example the projections are (-1, 0) and (1, 0), and their sum is "
    "(0, 0). What is yours?",
    section=LOOK_BACK,
)
def multiplied(query, key, w_query, w_key, v):
    """The projected query and key are multiplied number by number. They should be added."""
    return np.tanh((query @ w_query)[..., :, None, :] * (key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "subtracted instead of added",
    hint="The score is named after an operation. Which one joins the two projections?",
    more="For the first word of the chapter's example the projections are (-1, 0) and (1, 0), and their sum is "
    "(0, 0). What is yours?",
    section=LOOK_BACK,
)
def subtracted(query, key, w_query, w_key, v):
    """The projected key is taken away from the projected query. The two should be added."""
    return np.tanh(_pairs(query, -key, w_query, w_key)) @ v


@MISTAKES.add(
    "a dot product of the projections",
    hint="That is a different score. Which arguments and which function does yours not use?",
    more="For the second word of the chapter's example the sums are -1 and 1. Where do these two numbers appear in "
    "yours?",
    section=LOOK_BACK,
)
def dot_of_projections(query, key, w_query, w_key, v):
    """The projected query and key meet in a dot product. Here they should be added, squashed, and multiplied by v."""
    return query @ w_query @ (key @ w_key).swapaxes(-1, -2)


@MISTAKES.add(
    "the query is not used",
    hint="Which argument does your result not depend on?",
    more="Call your function with two different queries. Do the scores differ? Should they?",
    section=LOOK_BACK,
)
def no_query(query, key, w_query, w_key, v):
    """The scores depend on the keys alone, so every query would get the same ones."""
    return np.tanh(_pairs(0 * query, key, w_query, w_key)) @ v


@MISTAKES.add(
    "the keys are not used",
    hint="Which argument does your result not depend on?",
    more="Exchange two keys. Which two scores should change places?",
    section=LOOK_BACK,
)
def no_key(query, key, w_query, w_key, v):
    """The scores depend on the query alone, so every key would get the same one."""
    return np.tanh(_pairs(query, 0 * key, w_query, w_key)) @ v


@MISTAKES.add(
    "the two weights have changed places",
    hint="Which of the two weights belongs to the query?",
    more="Write down the widths that each weight connects. With different widths only one pairing fits; with equal "
    "ones no error tells you.",
    section=LOOK_BACK,
)
def weights_swapped(query, key, w_query, w_key, v):
    """The query goes through the keys' weights, and the keys go through the query's.

    It should be the other way round.
    """
    return np.tanh(_pairs(query, key, w_key, w_query)) @ v


@MISTAKES.add(
    "the query's weight for both sides",
    hint="Which of the five arguments does your function not use?",
    more="Call your function with two different values of `w_key`. Do the scores differ? Should they?",
    section=LOOK_BACK,
)
def query_weights_for_both(query, key, w_query, w_key, v):
    """Query and keys both go through `w_query`. The keys have weights of their own."""
    return np.tanh(_pairs(query, key, w_query, w_query)) @ v


@MISTAKES.add(
    "the keys' weight for both sides",
    hint="Which of the five arguments does your function not use?",
    more="Call your function with two different values of `w_query`. Do the scores differ? Should they?",
    section=LOOK_BACK,
)
def key_weights_for_both(query, key, w_query, w_key, v):
    """Query and keys both go through `w_key`. The query has weights of its own."""
    return np.tanh(_pairs(query, key, w_key, w_key)) @ v


@MISTAKES.add(
    "the query's weights are used by columns",
    hint="A query is multiplied along the first axis of its weights. Which axis do you use?",
    more="Write down the shapes of the query, of `w_query` and of their product. With equal widths no error warns you.",
    section=LOOK_BACK,
)
def query_weights_transposed(query, key, w_query, w_key, v):
    """`w_query` is the wrong way round: its rows belong to the query, its columns to the hidden numbers."""
    return np.tanh(_pairs(query, key, w_query.T, w_key)) @ v


@MISTAKES.add(
    "the keys' weights are used by columns",
    hint="A key is multiplied along the first axis of its weights. Which axis do you use?",
    more="Write down the shapes of the keys, of `w_key` and of their product. With equal widths no error warns you.",
    section=LOOK_BACK,
)
def key_weights_transposed(query, key, w_query, w_key, v):
    """`w_key` is the wrong way round: its rows belong to the key, its columns to the hidden numbers."""
    return np.tanh(_pairs(query, key, w_query, w_key.T)) @ v


@MISTAKES.add(
    "both weights are used by columns",
    hint="A vector is multiplied along the first axis of its weights. Which axis do you use?",
    more="These weights do not have the layout of `rnn_cell`. Compare their shapes in the two tasks.",
    section=LOOK_BACK,
)
def both_weights_transposed(query, key, w_query, w_key, v):
    """Both weights are the wrong way round: their rows belong to the vectors, their columns to the hidden numbers."""
    return np.tanh(_pairs(query, key, w_query.T, w_key.T)) @ v


@MISTAKES.add(
    "each query meets one key only",
    hint="Every query should meet every key. How many sums do 3 queries and 5 keys make?",
    more="Two tables of different heights cannot be added row by row. What does an axis of size 1 do in such a sum, "
    "and where would it have to be in each of the two?",
    section=THREE_WORDS,
)
def pairwise(query, key, w_query, w_key, v):
    """Row i of the queries is added to row i of the keys. Every query should be added to every key."""
    return np.tanh(query @ w_query + key @ w_key) @ v


@MISTAKES.add(
    "each query meets one key only, in each batch",
    hint="Every query should meet every key. Which of your axes stands for the queries, and which for the keys?",
    more="Write the two shapes one below the other, aligned on the right, for a batch of 2 with 3 queries and 5 keys. "
    "Which sizes line up?",
    section=THREE_WORDS,
)
def axes_from_front(query, key, w_query, w_key, v):
    """For matrices every query meets every key.

    With a batch in front, your new axes or loops run over its sequences.
    """
    return np.tanh((query @ w_query)[:, None, :] + (key @ w_key)[None, :, :]) @ v


@MISTAKES.add(
    "joined in the wrong order",
    hint="You join two vectors, and you join two weights. Does the same part come first in both?",
    more="Write down which rows of the joined weights multiply the numbers of the query. The total width is right even "
    "in the wrong order.",
    section=LOOK_BACK,
)
def joined_wrongly(query, key, w_query, w_key, v):
    """The vectors are joined in one order and the weights in the other, so each gets the other's weights."""
    shape = (*query.shape[:-1], key.shape[-2])
    q = np.broadcast_to(query[..., :, None, :], (*shape, query.shape[-1]))
    k = np.broadcast_to(key[..., None, :, :], (*shape, key.shape[-1]))
    return np.tanh(np.concatenate([k, q], -1) @ np.concatenate([w_query, w_key])) @ v


@MISTAKES.add(
    "squashed by a sigmoid",
    hint="What should a sum of 0 become: 0, or one half?",
    more="For the first word of the chapter's example both sums are 0. What is its score, and what is yours?",
    section=LOOK_BACK,
)
def sigmoid(query, key, w_query, w_key, v):
    """The sums go through a sigmoid, which lies between 0 and 1. The task asks for a tanh, between -1 and 1."""
    return 1 / (1 + np.exp(-_pairs(query, key, w_query, w_key))) @ v


@MISTAKES.add(
    "cut off at 0 (ReLU)",
    hint="Which function does the formula put around the sum?",
    more="For the second word of the chapter's example the sums are -1 and 1, and v multiplies -0.762 and 0.762. What "
    "does it multiply in yours?",
    section=LOOK_BACK,
)
def relu(query, key, w_query, w_key, v):
    """Negative sums become 0 and positive ones stay as they are. The task asks for a tanh."""
    return np.maximum(_pairs(query, key, w_query, w_key), 0) @ v


@MISTAKES.add(
    "already a softmax",
    hint="Scores may be negative and need not sum to anything. Which step comes later?",
    more="The three scores in the chapter's example are 0, 3.046 and 1.523. What do yours sum to?",
    section=LOOK_BACK,
)
def weights(query, key, w_query, w_key, v):
    """These are weights that sum to 1. The task asks for the scores, before the softmax."""
    return attnlib.softmax(np.tanh(_pairs(query, key, w_query, w_key)) @ v)


@MISTAKES.add(
    "the sign is reversed",
    hint="In the chapter the second word fits best. Which one has the largest score in yours?",
    more="The three scores in the chapter's example are 0, 3.046 and 1.523. Where does yours get its minus sign from?",
    section=THREE_WORDS,
)
def reversed_sign(query, key, w_query, w_key, v):
    """The key that fits best gets the smallest score: there is one minus sign too many."""
    return -(np.tanh(_pairs(query, key, w_query, w_key)) @ v)


@MISTAKES.add(
    "tanh overflows",
    hint="On paper your tanh is right. What is the exponential of 900 on a computer?",
    more="Infinity over infinity is nan. Is there a tanh that already handles such numbers?",
    section=LOOK_BACK,
)
def overflow(query, key, w_query, w_key, v):
    """The tanh is made of exponentials, which become infinite for large sums, and infinity over infinity is nan."""
    s = _pairs(query, key, w_query, w_key)
    return (np.exp(s) - np.exp(-s)) / (np.exp(s) + np.exp(-s)) @ v


@MISTAKES.add(
    "tanh overflows for large positive sums",
    hint="On paper your tanh is right. What is the exponential of 1800 on a computer?",
    more="Infinity over infinity is nan. Is there a tanh that already handles such numbers?",
    section=LOOK_BACK,
)
def overflow_upwards(query, key, w_query, w_key, v):
    """Where a sum is large, the exponential in your tanh becomes infinite, and infinity over infinity is nan."""
    e = np.exp(2 * _pairs(query, key, w_query, w_key))
    return (e - 1) / (e + 1) @ v


@MISTAKES.add(
    "scaled by the width of the queries",
    hint="What are your scores divided by, and where does the formula say so?",
    more="For the second word of the chapter's example the score is 3.046. By what factor is yours smaller?",
    section=LOOK_BACK,
)
def scaled_by_query_width(query, key, w_query, w_key, v):
    """Your scores are divided by the root of the width of the queries. That belongs to dot products."""
    return np.tanh(_pairs(query, key, w_query, w_key)) @ v / query.shape[-1] ** 0.5


@MISTAKES.add(
    "scaled by the width of the keys",
    hint="What are your scores divided by, and where does the formula say so?",
    more="For the second word of the chapter's example the score is 3.046. By what factor is yours smaller?",
    section=LOOK_BACK,
)
def scaled_by_key_width(query, key, w_query, w_key, v):
    """Your scores are divided by the root of the width of the keys. That belongs to dot products."""
    return np.tanh(_pairs(query, key, w_query, w_key)) @ v / key.shape[-1] ** 0.5


@MISTAKES.add(
    "one dimension of size 1 is left over",
    hint="The scores are a table of T rows and S columns. Which extra axis do yours have?",
    more="You multiply by a column to get one number. How wide is that column, and is its axis needed afterwards?",
    section=LOOK_BACK,
)
def column_left(query, key, w_query, w_key, v):
    """The numbers are right, but each of them is still a vector of one number: the last axis has size 1."""
    return np.tanh(_pairs(query, key, w_query, w_key)) @ v[:, None]


@MISTAKES.add(
    "query and keys are not projected",
    hint="Which two of the five arguments does your function not use?",
    more="In the chapter's example both weights are the identity, which hides it. What if a weight doubled everything?",
    section=LOOK_BACK,
)
def not_projected(query, key, w_query, w_key, v):
    """Query and key are added as they are. Each should pass through weights of its own first."""
    return np.tanh(query[..., :, None, :] + key[..., None, :, :]) @ v


@MISTAKES.add(
    "the keys are not projected",
    hint="Which of the five arguments does your function not use?",
    more="In the chapter's example both weights are the identity, which hides it. What if one doubled everything?",
    section=LOOK_BACK,
)
def key_not_projected(query, key, w_query, w_key, v):
    """The keys are added as they are. They should pass through `w_key` first, as the query does through its own."""
    return np.tanh((query @ w_query)[..., :, None, :] + key[..., None, :, :]) @ v


@MISTAKES.add(
    "the query is not projected",
    hint="Which of the five arguments does your function not use?",
    more="In the chapter's example both weights are the identity, which hides it. What if one doubled everything?",
    section=LOOK_BACK,
)
def query_not_projected(query, key, w_query, w_key, v):
    """The query is added as it is. It should pass through `w_query` first, as the keys do through their own."""
    return np.tanh(query[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "only the query is squashed",
    hint="Look where the bracket of your tanh closes.",
    more="For the second word of the chapter's example the sums are -1 and 1. Do these two numbers go into your tanh?",
    section=LOOK_BACK,
)
def only_query_squashed(query, key, w_query, w_key, v):
    """The keys' part is added after the tanh. It belongs inside, next to the query's part."""
    return (np.tanh(query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "queries and keys have changed roles",
    hint="Which argument asks, and which is asked? Row i of the scores belongs to query i.",
    more="The first case has one query and three keys. How many rows should its scores have, and how many have yours?",
    section=LOOK_BACK,
)
def roles_swapped(query, key, w_query, w_key, v):
    """The keys go through the query's weights, and each of them has a row of scores.

    Both places belong to the queries.
    """
    return np.tanh(_pairs(key, query, w_query, w_key)) @ v


@MISTAKES.add(
    "queries against queries",
    hint="Which of your arguments does your result not depend on?",
    more="Call your function twice, with different keys. Do the scores differ? Should they?",
    section=LOOK_BACK,
)
def query_with_query(query, key, w_query, w_key, v):
    """Each query is scored against the other queries. The keys are never looked at."""
    return np.tanh(_pairs(query, query, w_query, w_key)) @ v


@MISTAKES.add(
    "keys against keys",
    hint="Which of your arguments does your result not depend on?",
    more="Call your function twice, with different queries. Do the scores differ? Should they?",
    section=LOOK_BACK,
)
def key_with_key(query, key, w_query, w_key, v):
    """Each key is scored against the other keys. The queries are never looked at."""
    return np.tanh(_pairs(key, key, w_query, w_key)) @ v


@MISTAKES.add(
    "neither tanh nor v",
    hint="Which two steps are missing between the sum and the score?",
    more="For the second word of the chapter's example the sums are -1 and 1. Which two steps turn them into 3.046?",
    section=THREE_WORDS,
)
def bare_sum(query, key, w_query, w_key, v):
    """The sums are added up as they are. They should be squashed, and then multiplied by v."""
    return _pairs(query, key, w_query, w_key).sum(-1)


@MISTAKES.add(
    "joined in the wrong order, the query first",
    hint="You join two vectors, and you join two weights. Does the same part come first in both?",
    more="Write down which rows of the joined weights multiply the numbers of the key. The total width is right even "
    "in the wrong order.",
    section=LOOK_BACK,
)
def joined_wrongly_query_first(query, key, w_query, w_key, v):
    """The vectors are joined with the query first, and the weights with the keys' first, so they do not match."""
    shape = (*query.shape[:-1], key.shape[-2])
    q = np.broadcast_to(query[..., :, None, :], (*shape, query.shape[-1]))
    k = np.broadcast_to(key[..., None, :, :], (*shape, key.shape[-1]))
    return np.tanh(np.concatenate([q, k], -1) @ np.concatenate([w_key, w_query])) @ v


@MISTAKES.add(
    "only the keys are squashed",
    hint="Look where the bracket of your tanh opens.",
    more="For the second word of the chapter's example the sums are -1 and 1. Do these two numbers go into your tanh?",
    section=LOOK_BACK,
)
def only_key_squashed(query, key, w_query, w_key, v):
    """The query's part is added after the tanh. It belongs inside, next to the keys' part."""
    return ((query @ w_query)[..., :, None, :] + np.tanh(key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "the query is taken away from the keys",
    hint="The score is named after an operation. Which one joins the two projections?",
    more="For the first word of the chapter's example the projections are (-1, 0) and (1, 0), and their sum is "
    "(0, 0). What is yours?",
    section=LOOK_BACK,
)
def key_minus_query(query, key, w_query, w_key, v):
    """The projected query is taken away from the projected key. The two should be added."""
    return np.tanh(_pairs(-query, key, w_query, w_key)) @ v


@MISTAKES.add(
    "a mean in place of v",
    hint="Which argument does your result not depend on?",
    more="Call your function with v and with twice v. By what factor should the scores grow?",
    section=LOOK_BACK,
)
def mean_of_hidden(query, key, w_query, w_key, v):
    """The squashed numbers are averaged. It is v that says how much each of them counts, and with which sign."""
    return np.tanh(_pairs(query, key, w_query, w_key)).mean(-1)


@MISTAKES.add(
    "multiplied, and nothing squashed",
    hint="Which operation joins the two projections, and what comes before v?",
    more="For the second word of the chapter's example the sums are -1 and 1, and tanh 1 is 0.762. Which numbers do "
    "you multiply by v?",
    section=THREE_WORDS,
)
def multiplied_no_tanh(query, key, w_query, w_key, v):
    """The projected query and key are multiplied number by number, and go straight to v: no sum, and no tanh."""
    return ((query @ w_query)[..., :, None, :] * (key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "nothing is squashed, and the table is transposed",
    hint="What happens to the sums before they are multiplied by v, and does a row of scores belong to a query or to a "
    "key?",
    more="For the second word of the chapter's example the sums are -1 and 1, and tanh 1 is 0.762. When your numbers "
    "are right, compare the shape: one query and three keys make one row.",
    section=LOOK_BACK,
)
def no_tanh_transposed(query, key, w_query, w_key, v):
    """The tanh is missing, and the rows of the scores belong to the keys, where they should belong to the queries."""
    return (_pairs(query, key, w_query, w_key) @ v).swapaxes(-1, -2)


@MISTAKES.add(
    "the new axes are right only for one batch",
    hint="How many dimensions can come before the queries? From which end do you count your new axes?",
    more="Write down the shapes after you add your new axes, for matrices without a batch. Where should the axis of "
    "size 1 be, counted from the right end?",
    section=LOOK_BACK,
)
def axes_for_one_batch(query, key, w_query, w_key, v):
    """With one dimension in front the scores are right.

    With none, or with two, your new axes are in the wrong place.
    """
    return np.tanh((query @ w_query)[:, :, None] + (key @ w_key)[:, None]) @ v


@MISTAKES.add(
    "the indices are right only for one batch",
    hint="How many dimensions can come before the queries? And how many do your indices expect?",
    more="Three dots in an index stand for any number of dimensions. Where would they help you?",
    section=LOOK_BACK,
)
def indices_for_one_batch(query, key, w_query, w_key, v):
    """With one dimension in front the scores are right. For matrices alone, you have too many indices."""
    return np.tanh((query @ w_query)[:, :, None, :] + (key @ w_key)[:, None, :, :]) @ v


@MISTAKES.add(
    "the last key is left out",
    hint="How many keys does your loop visit, and how many are there?",
    more="Look at the last column of your table: is there anything in it?",
    section=LOOK_BACK,
)
def last_key_left_out(query, key, w_query, w_key, v):
    """The last column of the table stays 0: the last key is never compared."""
    scores = attnlib.additive(query, key, w_query, w_key, v).copy()
    scores[..., -1] = 0
    return scores


@MISTAKES.add(
    "the table is reshaped, not transposed",
    hint="Does a reshape move the numbers, or does it only split the same sequence into different rows?",
    more="Print the table before and after. Which pair does the second number of the first row belong to?",
    section=LOOK_BACK,
)
def reshaped_table(query, key, w_query, w_key, v):
    """You split a table with a row for each key into new rows, without transposing it. Rows and columns get mixed."""
    scores = attnlib.additive(query, key, w_query, w_key, v)
    return np.ascontiguousarray(scores.swapaxes(-1, -2)).reshape(scores.shape)


@MISTAKES.add(
    "query and key are squashed, then multiplied",
    hint="The score is named after an operation. Which one joins the two projections, and is it before the tanh?",
    more="For the second word of the chapter's example the projections are (-1, 0) and (0, 1). Their sum is (-1, 1), "
    "and its tanh is multiplied by v. What do you multiply by v?",
    section=LOOK_BACK,
)
def product_of_squashed(query, key, w_query, w_key, v):
    """Query and key each get a tanh and are multiplied number by number. Add them first, then take one tanh."""
    return (np.tanh(query @ w_query)[..., :, None, :] * np.tanh(key @ w_key)[..., None, :, :]) @ v


@MISTAKES.add(
    "nan where query and key nearly cancel",
    hint="On a computer, what is the tanh of 40, and what is that of 39? Can you still tell the two apart?",
    more="Projections of 40 and -39 have the sum 1, and tanh 1 is 0.762. Which numbers does your function compute on "
    "the way? Do you add before the tanh, or after it?",
    section=LOOK_BACK,
)
def addition_theorem(query, key, w_query, w_key, v):
    """On paper the formula is right. But for large projections each tanh rounds to 1 or -1, and 0/0 is nan."""
    q, k = np.tanh(query @ w_query)[..., :, None, :], np.tanh(key @ w_key)[..., None, :, :]
    return ((q + k) / (1 + q * k)) @ v


@MISTAKES.add(
    "queries and keys are repeated in the same order",
    hint="You make a list of all pairs. Which queries are in its first rows, and which keys are next to them?",
    more="For 3 queries and 5 keys, the first five rows of the list should be the first query with each of the five "
    "keys. Write down which pairs are in your first five rows.",
    section=THREE_WORDS,
)
def tiled_pairs(query, key, w_query, w_key, v):
    """Queries and keys are repeated alike, so pairs are missing from the rows, or not in the order of the table."""
    t, s = query.shape[-2], key.shape[-2]
    q = np.concatenate([query @ w_query] * s, axis=-2)
    k = np.concatenate([key @ w_key] * t, axis=-2)
    scores = np.tanh(q + k) @ v
    return scores.reshape(*scores.shape[:-1], t, s)


@MISTAKES.add(
    "only the first query is compared",
    hint="How many rows should the table have for 3 queries?",
    more="Change the second query and leave everything else as it is. Which of your numbers change? Look for an index "
    "or a slice that takes one query.",
    section=THREE_WORDS,
)
def first_query_alone(query, key, w_query, w_key, v):
    """There is one row of scores, that of the first query. Every query has a row of its own."""
    return attnlib.additive(query[..., :1, :], key, w_query, w_key, v)


@MISTAKES.add(
    "the hidden numbers and v are summed apart",
    hint="Each hidden number has its own number in v. Do you multiply the two before you add?",
    more="Exchange the two numbers of v in the first case. Do your scores change? They should: v says how much each "
    "hidden number counts.",
    section=LOOK_BACK,
)
def sums_multiplied(query, key, w_query, w_key, v):
    """The sum of the hidden numbers is multiplied by the sum of v. Multiply each number by its own entry of v first."""
    return np.tanh(_pairs(query, key, w_query, w_key)).sum(-1) * v.sum()


@MISTAKES.add(
    "the mean of the hidden numbers times the sum of v",
    hint="Each hidden number has its own number in v. Do you multiply the two before you add?",
    more="Exchange the two numbers of v in the first case. Do your scores change? They should: v says how much each "
    "hidden number counts.",
    section=LOOK_BACK,
)
def mean_times_v(query, key, w_query, w_key, v):
    """The hidden numbers are averaged before they are multiplied by v, so all of them count the same."""
    return np.tanh(_pairs(query, key, w_query, w_key)).mean(-1) * v.sum()


EXERCISE = Exercise(
    name="additive",
    reference=attnlib.additive,
    outputs={"scores": ("T", "S")},
    rubric={NUMBERS: 4, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=LOOK_BACK,
    advice="Print the sums for the chapter's three words, before and after the tanh. Before, they are (0, 0), (-1, 1) "
    "and (0, 1). Which is the first to be wrong?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
