"""attention(query, key, value), with the scaled dot product as score."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.analytic_gradients import through_attention
from attnlib.checks.catalogue.draw_qkv import draw_qkv
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.self_attention.dot import views
from attnlib.checks.catalogue.self_attention.sections import ATTENTION, OVERFLOW, SCALE, SCORES, SOFTMAX, WEIGHTED_SUM
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large scores", "inputs unchanged"
MASKS, OTHER_SCORES = "masks", "other scores"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one query worked by hand, then T queries, S keys and values of another width, batches, size."""
    hand = {
        "query": np.array([[1.0, 0.0, 0.0, 0.0]]),
        "key": np.array([[2 * np.log(3.0), 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]),
        "value": np.array([[8.0], [0.0]]),
    }
    yield Case("one query whose scores are log 3 and 0, and the values 8 and 0", NUMBERS, hand)
    yield Case("3 queries, 5 keys of width 4, values of width 2", NUMBERS, draw_qkv(rng, (), 3, 5, 4, 2))
    yield Case("one query and one key", NUMBERS, draw_qkv(rng, (), 1, 1, 3, 2))
    yield Case("vectors in float32", NUMBERS, draw_qkv(rng, (), 2, 5, 3, 4, np.float32))
    yield Case("3 queries, 3 keys and 3 values of width 3", NUMBERS, draw_qkv(rng, (), 3, 3, 3, 3))  # all products fit
    yield Case("4 queries and one key", NUMBERS, draw_qkv(rng, (), 4, 1, 3, 2))
    repeated = with_duplicate_rows(draw_qkv(rng, (), 3, 6, 5, 4), "query", "key", "value")
    yield Case("queries, keys and values, some of them repeated", BATCHES, repeated)
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, draw_qkv(rng, (2,), 3, 5, 4, 6))
    yield Case("leading dimensions (2, 7)", BATCHES, draw_qkv(rng, (2, 7), 3, 5, 4, 6))
    yield Case("a batch of 1", BATCHES, draw_qkv(rng, (1,), 3, 5, 4, 6))  # where pairing all sequences fits
    turned = {name: x.swapaxes(-1, -2).copy() for name, x in draw_qkv(rng, (3,), 4, 5, 2, 6).items()}
    yield Case("a batch of transposed views", BATCHES, views(turned))
    large = draw_qkv(rng, (), 3, 4, 5, 2)
    direction, lengths = np.ones(5), np.array([[1.0], [1.5], [0.5], [1.49]])
    large["query"] += np.array([[3000.0], [-3000.0], [0.0]]) * direction
    large["key"] = 0.01 * large["key"] + lengths * direction
    yield Case("scores of several thousand, one query positive, one negative", LARGE, large)
    yield Case("inputs that must stay as they are", UNCHANGED, draw_qkv(rng, (), 3, 4, 2, 5), unchanged=True)
    some = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, False]])
    yield Case("a mask that is True where a query may attend", MASKS, draw_qkv(rng, (), 3, 4, 5, 2), {"mask": some})
    first = np.array([[[True, True, True, False, False]], [[True, True, True, True, False]]])
    yield Case("a mask of shape (2, 1, S) for a batch of 2", MASKS, draw_qkv(rng, (2,), 3, 5, 4, 6), {"mask": first})
    none = some & np.array([[True], [False], [True]])
    yield Case("a query that may attend to nothing", MASKS, draw_qkv(rng, (), 3, 4, 5, 2), {"mask": none})
    yield Case("score=cosine", OTHER_SCORES, draw_qkv(rng, (), 3, 5, 4, 2), {"score": attnlib.cosine})


def _attend(scores, value, axis=-1):
    weights = attnlib.softmax(scores, axis)
    return weights @ value, weights


def _normalised(scores, shift):
    e = np.exp(scores - shift)
    return e / e.sum(axis=-1, keepdims=True)


# The scale -----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is the dot product divided by before the softmax, and how does that depend on the width D?",
    more="In the first case the width is 4 and the dot products are 2 log 3 and 0, but the scores are log 3 and 0, "
    "and the weights 3/4 and 1/4. Print your scores just before the softmax.",
    section=SCALE,
)
def no_scale(query, key, value):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return _attend(attnlib.dot(query, key), value)


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="With components of variance 1, the dot product has variance D. What is its standard deviation?",
    more="In the first case the width is 4, so the dot product 2 log 3 is divided by 2. What do you divide it by? Also "
    "check whether you divide twice.",
    section=SCALE,
)
def scaled_by_width(query, key, value):
    """The scores are divided by the width itself, so the weights are flatter than they should be."""
    return _attend(attnlib.dot(query, key) / query.shape[-1], value)


@MISTAKES.add(
    "multiplied by the square root of D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    more="In the first case the width is 4 and the dot product is 2 log 3. Multiplied by 2 it is 4 log 3, divided by "
    "2 it is log 3. Which of the two gives the weights 3/4 and 1/4?",
    section=SCALE,
)
def multiplied_by_root(query, key, value):
    """The scores are multiplied by the root of the width, where they should be divided by it."""
    return _attend(attnlib.dot(query, key) * query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "multiplied by D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    more="In the first case the width is 4 and the dot product is 2 log 3. The score should be log 3. Print yours.",
    section=SCALE,
)
def multiplied_by_width(query, key, value):
    """The scores are multiplied by the width, where they should be divided by its square root."""
    return _attend(attnlib.dot(query, key) * query.shape[-1], value)


@MISTAKES.add(
    "divided by half the width",
    hint="Say the width is 9. What number do you divide by, and what is the square root of 9?",
    more="In the first case the width is 4, and half of it is its square root, by accident. Take a different width. A "
    "power binds more tightly than a division: in which order is your expression evaluated?",
    section=SCALE,
)
def half_the_width(query, key, value):
    """The scores are divided by half the width. It is the square root of the width that belongs there."""
    return _attend(attnlib.dot(query, key) / (query.shape[-1] / 2), value)


@MISTAKES.add(
    "divided by twice the width",
    hint="Say the width is 9. What number do you divide by, and what is the square root of 9?",
    more="In the first case the width is 4, and you divide by 8. A power binds more tightly than a division, and two "
    "divisions in a row both divide: in which order is your expression evaluated?",
    section=SCALE,
)
def twice_the_width(query, key, value):
    """The scores are divided by twice the width. It is the square root of the width that belongs there."""
    return _attend(attnlib.dot(query, key) / (2 * query.shape[-1]), value)


@MISTAKES.add(
    "divided by the squared width",
    hint="With components of variance 1, the dot product has variance D. What is its standard deviation?",
    more="In the first case the width is 4, so the dot product 2 log 3 is divided by 2. You divide it by 16: was a "
    "power taken in place of a root?",
    section=SCALE,
)
def scaled_by_square(query, key, value):
    """The scores are divided by the square of the width. It is its square root that belongs there."""
    return _attend(attnlib.dot(query, key) / query.shape[-1] ** 2, value)


@MISTAKES.add(
    "divided by the fourth root of D",
    hint="How many square roots of the width does the formula have, and how many does yours have?",
    more="Dividing by the fourth root is right if both the query and the key are divided by it. You did it once. In "
    "the first case the width is 4, and the scores are log 3 and 0: print yours.",
    section=SCALE,
)
def fourth_root(query, key, value):
    """The scores are divided by the fourth root of the width, so they are larger than they should be."""
    return _attend(attnlib.dot(query, key) / query.shape[-1] ** 0.25, value)


@MISTAKES.add(
    "divided by a fixed number (8)",
    hint="Your number is the root of 64. What width do the vectors here have?",
    more="Published models often have D = 64, so that the root is 8. The width of your own vectors is in their shape: "
    "at which index?",
    section=SCALE,
)
def always_eight(query, key, value):
    """The scores are divided by 8, which is right only for vectors of width 64."""
    return _attend(attnlib.dot(query, key) / 8, value)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Which of the two is the width of a vector: shape[-1] or shape[-2]?",
    more="In the first case there are 2 keys of width 4. You divide by the root of 2. Add a third key: should the "
    "scores of the first two change?",
    section=SCALE,
)
def scaled_by_keys(query, key, value):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / key.shape[-2] ** 0.5, value)


@MISTAKES.add(
    "divided by the number of keys",
    hint="Which of the sizes is the width of a vector, and what is done to it before it divides?",
    more="In the first case there are 2 keys of width 4. Dividing by 2 is right there, by accident. Add a third key: "
    "should the scores of the first two change?",
    section=SCALE,
)
def divided_by_keys(query, key, value):
    """The scores are divided by S, the number of keys. The square root of the width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / key.shape[-2], value)


@MISTAKES.add(
    "scaled by the number of queries",
    hint="Which of the two is the width of a vector: shape[-1] or shape[-2]?",
    more="In the first case there is one query of width 4, so you divide by 1. Which entry of the queries' shape is "
    "the width, and which one does len return?",
    section=SCALE,
)
def scaled_by_queries(query, key, value):
    """The scores are divided by the root of T, the number of queries. The width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / query.shape[-2] ** 0.5, value)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="In the first case the values have width 1 and the keys width 4. A dot product is a sum of 4 products there. "
    "Which of the two numbers says how large such a sum becomes?",
    section=SCALE,
)
def scaled_by_value_width(query, key, value):
    """The scores are divided by the root of the width of the values. It is the width of the keys that counts."""
    return _attend(attnlib.dot(query, key) / value.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "scaled after the softmax",
    hint="Do your weights still sum to 1? Which comes first, the division or the softmax?",
    more="Add up a row of your weights in the first case: it is 1/2, since the width is 4. The division by 2 has to "
    "act on the scores. Follow the order: score, softmax, weighted sum.",
    section=SCALE,
)
def scaled_after_softmax(query, key, value):
    """The weights are divided by the root of the width. It is the scores, before the softmax, that are scaled."""
    weights = attnlib.softmax(attnlib.dot(query, key)) / query.shape[-1] ** 0.5
    return weights @ value, weights


@MISTAKES.add(
    "weights of the right scores, scaled once more",
    hint="Do your weights still sum to 1? How often do you divide by the root of the width?",
    more="The scores are right in your function. Then the weights are divided as well, so that a row of the first case "
    "comes to 1/2. One of the two divisions is too many.",
    section=SCALE,
)
def weights_scaled_again(query, key, value):
    """The scores are scaled, and the weights are divided by the root of the width once more."""
    weights = attnlib.attention(query, key, value)[1] / query.shape[-1] ** 0.5
    return weights @ value, weights


@MISTAKES.add(
    "the context is scaled as well",
    hint="How often do you divide by the root of the width?",
    more="In the first case 3/4 of 8 is 6, and you have 3. The weights are right. Which division comes after the "
    "weighted sum?",
    section=SCALE,
)
def scaled_context(query, key, value):
    """The weights are right, but the context is divided by the root of the width once more."""
    context, weights = attnlib.attention(query, key, value)
    return context / query.shape[-1] ** 0.5, weights


@MISTAKES.add(
    "the context is scaled instead of the scores",
    hint="Which comes first, the division or the softmax?",
    more="Print the scores just before the softmax, in the first case: they should be log 3 and 0. Yours are 2 log 3 "
    "and 0, and the division by 2 comes only at the end.",
    section=SCALE,
)
def context_scaled_instead(query, key, value):
    """The scores go into the softmax unscaled, and the context is divided by the root of the width instead."""
    context, weights = _attend(attnlib.dot(query, key), value)
    return context / query.shape[-1] ** 0.5, weights


# The softmax ---------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the columns sum to 1, not the rows",
    hint="Every query has weights of its own that sum to 1. Along which axis of the scores do they lie?",
    more="In the first case there is one query with two keys, so its two weights sum to 1. Yours are 1 and 1: each "
    "key was divided among the queries, and there is only one. Which axis did you give to the softmax?",
    section=SOFTMAX,
)
def softmax_over_queries(query, key, value):
    """The softmax made the queries compete for each key. It is the keys that compete for each query."""
    return _attend(attnlib.scaled_dot(query, key), value, axis=-2)


@MISTAKES.add(
    "not scaled, and the columns sum to 1",
    hint="What are the scores divided by, and along which axis do the weights of one query lie?",
    more="In the first case the scores should be log 3 and 0, and the two weights of the one query should sum to 1. "
    "Print your scores first, fix them, and then look at the axis of the softmax.",
    section=ATTENTION,
)
def no_scale_over_queries(query, key, value):
    """The dot products are not divided by the root of the width, and the softmax runs over the queries."""
    return _attend(attnlib.dot(query, key), value, axis=-2)


@MISTAKES.add(
    "divided by D, and the columns sum to 1",
    hint="A square root is missing. Also, along which axis do the weights of one query lie?",
    more="In the first case the scores should be log 3 and 0, and the two weights of the one query should sum to 1. "
    "Print your scores first, fix them, and then look at the axis of the softmax.",
    section=ATTENTION,
)
def by_width_over_queries(query, key, value):
    """The scores are divided by D, not by its square root, and the softmax runs over the queries, not the keys."""
    return _attend(attnlib.dot(query, key) / query.shape[-1], value, axis=-2)


@MISTAKES.add(
    "the softmax runs over the whole table",
    hint="How many sums of 1 should there be: one, or one per query?",
    more="With 3 queries, add up each row of your weights, and then all of them. Every one of the rows should come to "
    "1. Which axis does the sum in your softmax run along?",
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
    more="Work the first case by hand: the scores are log 3 and 0, and the weights 3/4 and 1/4. You have the scores. "
    "Which of your functions turns the scores into the weights?",
    section=SOFTMAX,
)
def no_softmax(query, key, value):
    """The scores themselves are used as weights: they may be negative, and nothing makes them sum to 1."""
    scores = attnlib.scaled_dot(query, key)
    return scores @ value, scores


@MISTAKES.add(
    "neither scaled nor a softmax",
    hint="Between the dot products and the weighted sum there are two steps. Which?",
    more="Work the first case by hand: the dot products are 2 log 3 and 0, the scores log 3 and 0, the weights 3/4 "
    "and 1/4. You went from the first straight to the weighted sum.",
    section=ATTENTION,
)
def no_scale_no_softmax(query, key, value):
    """The dot products themselves are used as weights. They have to be scaled, and then go through the softmax."""
    scores = attnlib.dot(query, key)
    return scores @ value, scores


@MISTAKES.add(
    "scores divided by their sum",
    hint="Scores may be negative. What makes them positive first, and keeps their order?",
    more="In the first case the scores are log 3 and 0, and the weights 3/4 and 1/4. Where do the 3 and the 1 come "
    "from? Dividing the scores themselves gives 1 and 0.",
    section=SOFTMAX,
)
def no_exponential(query, key, value):
    """The scores were divided by their sum, without an exponential. So weights can be negative, or larger than 1."""
    scores = attnlib.scaled_dot(query, key)
    weights = scores / scores.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax is taken twice",
    hint="Count how often exp is applied to each score.",
    more="In the first case the weights are 3/4 and 1/4. Yours are 0.62 and 0.38, the softmax of these. Does a "
    "function that you call take a softmax already?",
    section=SOFTMAX,
)
def softmax_twice(query, key, value):
    """The weights went through a softmax again, which makes them nearly equal."""
    return _attend(attnlib.softmax(attnlib.scaled_dot(query, key)), value)


@MISTAKES.add(
    "the softmax comes too early",
    hint="What does the softmax act on: the vectors, or the scores?",
    more="Follow the order: score, softmax, weighted sum. The queries and the keys go into the dot product as they "
    "are. Add up a row of your weights in the first case.",
    section=ATTENTION,
)
def softmax_of_vectors(query, key, value):
    """The softmax was applied to the queries and keys themselves. It belongs to the scores, one row per query."""
    weights = attnlib.scaled_dot(attnlib.softmax(query), attnlib.softmax(key))
    return weights @ value, weights


@MISTAKES.add(
    "the logarithms of the weights",
    hint="Weights lie between 0 and 1; yours are negative. Which step is one too many?",
    more="In the first case the weights are 3/4 and 1/4. You have -0.29 and -1.39, their logarithms. Which function "
    "makes weights without the logarithm?",
    section=SOFTMAX,
)
def log_weights(query, key, value):
    """The values were mixed with the logarithms of the weights. The weights themselves belong there."""
    weights = np.log(attnlib.softmax(attnlib.scaled_dot(query, key)))
    return weights @ value, weights


@MISTAKES.add(
    "the weights are not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    more="In the first case you have 3 and 1, the exponentials of the scores. They become 3/4 and 1/4 by one more "
    "step.",
    section=SOFTMAX,
)
def not_normalised(query, key, value):
    """The exponentials of the scores are used as weights, but nothing makes them sum to 1."""
    weights = np.exp(attnlib.scaled_dot(query, key))
    return weights @ value, weights


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other.",
    more="Add up a row of your weights: it is not 1. Change one score and look at the other weights: they should "
    "change as well. Which function ties the scores of a row together?",
    section=SOFTMAX,
)
def sigmoid(query, key, value):
    """Each score is squashed on its own by a sigmoid, and nothing makes the weights of a row sum to 1."""
    weights = 1 / (1 + np.exp(-attnlib.scaled_dot(query, key)))
    return weights @ value, weights


@MISTAKES.add(
    "the sign is reversed",
    hint="Which of two keys should get the larger weight: the one with the larger score, or with the smaller?",
    more="In the first case the key with score log 3 should get 3/4, and yours gets 1/4. Look for a minus sign at the "
    "scores, or for a difference the wrong way round in your softmax.",
    section=SCORES,
)
def reversed_sign(query, key, value):
    """The key that matches least gets the largest weight: there is one minus sign too many."""
    return _attend(-attnlib.scaled_dot(query, key), value)


@MISTAKES.add(
    "all or nothing (argmax)",
    hint="The second-best key still gets a share: which function gives it one?",
    more="In the first case the weights are 3/4 and 1/4. Yours are 1 and 0. The exponential of log 3 is three times "
    "that of 0, not infinitely larger.",
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
    more="Change the query: your weights stay as they are. Print the scores just before the softmax, and follow them "
    "from there to the weights.",
    section=WEIGHTED_SUM,
)
def uniform(query, key, value):
    """Every value gets the same weight, whatever the query: this is the plain mean."""
    return _attend(0 * attnlib.scaled_dot(query, key), value)


@MISTAKES.add(
    "a dimension was lost in the softmax",
    hint="For 3 queries and 5 keys, what shape has the array of the 3 sums, and what shape does it need?",
    more="The sums have to be in a column, (3, 1), so that each row is divided by its own. With one query it makes no "
    "difference. Fix it in your softmax, and this is fixed too.",
    section=SOFTMAX,
)
def no_keepdims(query, key, value):
    """The sums of the softmax have one dimension less than the scores, so they no longer line up with the rows."""
    e = np.exp(attnlib.scaled_dot(query, key))
    weights = e / e.sum(axis=-1)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax overflows",
    hint="Does your softmax subtract the maximum of each row? Fix it there, and this is fixed too.",
    more="Print the scores of the case that went wrong: they are of the size of thousands. Then ask your softmax for "
    "the row [1000, 999]: its weights are about 0.73 and 0.27.",
    section=OVERFLOW,
)
def overflow(query, key, value):
    """The weights are right for small scores. For large ones exp overflows, and the weights become nan."""
    e = np.exp(attnlib.scaled_dot(query, key))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax uses one maximum for the whole table",
    hint="Every row needs its own maximum in the softmax. Fix it there, and this is fixed too.",
    more="One query has scores of several thousand, another of minus several thousand. Subtract the largest of all "
    "from both rows: what is left of the second?",
    section=OVERFLOW,
)
def global_shift(query, key, value):
    """One maximum for all queries shifts a row of much smaller scores so far down that it becomes 0/0: nan."""
    scores = attnlib.scaled_dot(query, key)
    weights = _normalised(scores, scores.max())
    return weights @ value, weights


@MISTAKES.add(
    "the softmax subtracts the minimum",
    hint="After the shift every score should be 0 or less. Fix it in the softmax, and this is fixed too.",
    more="Ask your softmax for the row [1000, 0]: subtracting the minimum leaves it as it is, and exp(1000) is "
    "infinite.",
    section=OVERFLOW,
)
def shift_by_minimum(query, key, value):
    """Subtracting the minimum protects against nothing: it is the largest score of a row that overflows."""
    scores = attnlib.scaled_dot(query, key)
    weights = _normalised(scores, scores.min(axis=-1, keepdims=True))
    return weights @ value, weights


@MISTAKES.add(
    "the softmax subtracts the mean",
    hint="After the shift every score should be 0 or less. Fix it in the softmax, and this is fixed too.",
    more="Ask your softmax for the row [1000, -1000]: its mean is 0, so nothing moves, and exp(1000) is infinite.",
    section=OVERFLOW,
)
def shift_by_mean(query, key, value):
    """Subtracting the mean helps only while the scores of a row lie close together: the largest can still overflow."""
    scores = attnlib.scaled_dot(query, key)
    weights = _normalised(scores, scores.mean(axis=-1, keepdims=True))
    return weights @ value, weights


@MISTAKES.add(
    "nan is painted over",
    hint="Which of the scores is the largest, and what weight did its key get from you?",
    more="Look at the row of weights that went wrong: does it sum to 1? Keep the overflow from happening in your "
    "softmax, instead of repairing it afterwards.",
    section=OVERFLOW,
)
def nan_to_num(query, key, value):
    """Where exp overflowed, nan was replaced by a number. That hides the overflow, and the weights are still wrong."""
    weights = np.nan_to_num(_normalised(attnlib.scaled_dot(query, key), 0))
    return weights @ value, weights


# What is compared, and what is mixed ---------------------------------------------------------------------------------


@MISTAKES.add(
    "keys are averaged instead of values",
    hint="The keys determine the weights. Which vectors should the weights mix?",
    more="In the first case the context is 3/4 of the value 8, which is 6. Print the shape of yours: it has the width "
    "of the keys. Which array does your last product use?",
    section=WEIGHTED_SUM,
)
def averages_keys(query, key, value):
    """The weights are right, but they average the keys. The values are never looked at."""
    return _attend(attnlib.scaled_dot(query, key), key)


@MISTAKES.add(
    "not scaled, and keys are averaged",
    hint="What are the scores divided by, and what should be mixed?",
    more="In the first case the scores are log 3 and 0, and the context is 3/4 of the value 8. Print your scores "
    "first, fix them, and then see which array your last product uses.",
    section=ATTENTION,
)
def no_scale_averages_keys(query, key, value):
    """The scores are not scaled, and the weights average the keys. The values should be mixed."""
    return _attend(attnlib.dot(query, key), key)


@MISTAKES.add(
    "queries are averaged instead of values",
    hint="Which vectors should be mixed: those that ask, or those that are handed over?",
    more="The last product has the weights on the left, (T, S). What is on the right must have S rows, one for "
    "each key. Which of the three arrays has been left out so far?",
    section=WEIGHTED_SUM,
)
def averages_queries(query, key, value):
    """The weights are right, but they average the queries. The values are never looked at."""
    return _attend(attnlib.scaled_dot(query, key), query)


@MISTAKES.add(
    "queries against queries",
    hint="Which of your three arguments does the score not use?",
    more="Print the shape of your scores for 3 queries and 5 keys: it should be (3, 5), and it is (3, 3). Find the "
    "second factor of the dot product.",
    section=SCORES,
)
def query_with_query(query, key, value):
    """Each query is compared with the other queries. The keys are never looked at."""
    return _attend(attnlib.scaled_dot(query, query), value)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your three arguments does the score not use?",
    more="Print the shape of your scores for 3 queries and 5 keys: it should be (3, 5), and it is (5, 5). Find the "
    "first factor of the dot product.",
    section=SCORES,
)
def key_with_key(query, key, value):
    """Each key is compared with the other keys. The queries are never looked at."""
    return _attend(attnlib.scaled_dot(key, key), value)


@MISTAKES.add(
    "queries against values",
    hint="Which array should the queries be compared with: the one that decides the weights, or the one that is "
    "averaged?",
    more="In the first case a query has width 4 and a value width 1, so the two do not even fit. Only keys and "
    "queries have the same width in general.",
    section=SCORES,
)
def query_with_value(query, key, value):
    """The queries are compared with the values. They should be compared with the keys."""
    return _attend(query @ value.swapaxes(-1, -2) / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "keys and values have changed places",
    hint="Which of the two is compared with the query, and which one is mixed?",
    more="In the first case a query has width 4 and a value width 1, so these two cannot be compared. Follow the "
    "names of your arguments: key into the score, value into the sum.",
    section=WEIGHTED_SUM,
)
def keys_for_values(query, key, value):
    """The queries are compared with the values, and the keys are averaged. It should be the other way round."""
    return _attend(query @ value.swapaxes(-1, -2) / query.shape[-1] ** 0.5, key)


@MISTAKES.add(
    "the table of scores is transposed",
    hint="Row i of the scores belongs to query i. Which of the two arrays supplies the rows?",
    more="Print the shape of your scores for 3 queries and 5 keys: it should be (3, 5), and it is (5, 3). In a "
    "product, the array on the left supplies the rows.",
    section=SCORES,
)
def keys_first(query, key, value):
    """The rows of your scores belong to keys, and the softmax is taken along them. A row should belong to a query."""
    return _attend(attnlib.scaled_dot(key, query), value)


@MISTAKES.add(
    "the keys are not transposed",
    hint="Write the two shapes side by side. Which numbers have to be the same in a matrix product?",
    more="A matrix product takes a row from the left and a column from the right, and both need the same length D. "
    "Your keys are rows of length D. Is your function for the dot product right?",
    section=SCORES,
)
def not_transposed(query, key, value):
    """The shapes of queries and keys do not match in a matrix product. The keys have to be columns."""
    return _attend(query @ key / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "the queries are transposed, not the keys",
    hint="Row i of the scores belongs to query i. Which of the two arrays should keep its rows?",
    more="Write down the shapes: (D, T) on the left and (S, D) on the right. The numbers in the middle have to be the "
    "same, and the outer ones should be T and S. Which array has to be transposed?",
    section=SCORES,
)
def query_transposed(query, key, value):
    """The queries were turned into columns, and the keys left as rows. It should be the other way round."""
    return _attend(query.swapaxes(-1, -2) @ key / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "the values are transposed",
    hint="Write the shapes of the weights and of the values side by side. Do they fit as they are?",
    more="The weights are (T, S) and the values (S, D_v): the two S are side by side already. The keys had to be "
    "transposed for their product; the values need not be.",
    section=WEIGHTED_SUM,
)
def values_transposed(query, key, value):
    """The weights are right, but the values were transposed before the weighted sum. They belong there as they are."""
    return _attend(attnlib.scaled_dot(query, key), value.swapaxes(-1, -2))


@MISTAKES.add(
    "reshaped instead of transposed",
    hint="Print your transposed keys: is a column one of the keys?",
    more="A reshape keeps the numbers in the order in which they lie in memory and cuts them into other rows. So one "
    "column mixes numbers of different keys. Which operation exchanges two axes instead?",
    section=SCORES,
)
def reshaped(query, key, value):
    """The keys got the right shape by a reshape, which mixes numbers of different keys. A transpose was needed."""
    turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    return _attend(query @ turned / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "cosines as scores",
    hint="Which similarity does the task ask for, and which one divides by the lengths of the vectors?",
    more="In the first case the first key is much longer than the second, and its score is log 3. Print your scores: "
    "is any of them beyond 1?",
    section=SCORES,
)
def cosine_scores(query, key, value):
    """The scores are cosines, between -1 and 1, so the weights are similar. The task asks for scaled dot products."""
    return _attend(attnlib.cosine(query, key), value)


@MISTAKES.add(
    "scaled cosines as scores",
    hint="Which similarity does the task ask for, and which one divides by the lengths of the vectors?",
    more="You divide by the lengths of the vectors and by the root of the width. The formula of the task has only one "
    "of the two.",
    section=SCORES,
)
def scaled_cosine_scores(query, key, value):
    """The scores are cosines, divided by the root of the width as well. The task asks for scaled dot products."""
    return _attend(attnlib.cosine(query, key) / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "distances as scores",
    hint="Which similarity does the task ask for: a product of two vectors, or their distance?",
    more="The scores of the first case are log 3 and 0. Print yours: they are minus half the squared distances. The "
    "formula of the task starts from the dot product.",
    section=SCORES,
)
def gaussian_scores(query, key, value):
    """The scores are those of a Gaussian kernel, made of distances. The task asks for scaled dot products."""
    return _attend(attnlib.gaussian(query, key), value)


@MISTAKES.add(
    "later keys are hidden",
    hint="Does the formula look at the order of the keys?",
    more="Row 0 of your weights has a single 1. Every query may attend to every key here; hiding some of them is the "
    "subject of a later chapter.",
    section=ATTENTION,
)
def causal(query, key, value):
    """Query i attends to the keys up to i alone: that is a causal mask, which this exercise does not ask for."""
    return attnlib.attention(query, key, value, mask=np.tri(query.shape[-2], key.shape[-2], dtype=bool))


@MISTAKES.add(
    "the weights are transposed in the sum",
    hint="Row i of the weights belongs to query i. Which of its numbers multiplies value j?",
    more="Write the shapes side by side: weights (T, S) and values (S, D_v) fit as they are. In a product, the rows of "
    "the left array are the rows of the result.",
    section=WEIGHTED_SUM,
)
def transposed_in_sum(query, key, value):
    """The weights are right, but the sum uses them by columns: column i of the weights was used where row i belongs."""
    _, weights = attnlib.attention(query, key, value)
    return weights.swapaxes(-1, -2) @ value, weights


@MISTAKES.add(
    "values times weights, not weights times values",
    hint="Which of the two is on the left in the weighted sum?",
    more="Write the shapes side by side: (S, D_v) times (T, S) does not fit, and where it does by accident it mixes "
    "the wrong numbers. Each row of the context is made from a row of the weights.",
    section=WEIGHTED_SUM,
)
def values_first(query, key, value):
    """The two factors of the weighted sum are in the wrong order. The weights belong on the left, one row per query."""
    _, weights = attnlib.attention(query, key, value)
    return value @ weights, weights


@MISTAKES.add(
    "divided by the number of keys once more",
    hint="What do the weights of a query sum to already?",
    more="In the first case 3/4 of 8 is 6, and you have 3: half of it, since there are two keys. A weighted sum with "
    "weights that sum to 1 is an average already.",
    section=WEIGHTED_SUM,
)
def mean_of_values(query, key, value):
    """The weighted values are averaged once more. The weights are shares already: the plain sum is the average."""
    context, weights = attnlib.attention(query, key, value)
    return context / key.shape[-2], weights


# What is returned ----------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "scores are returned as weights",
    hint="Which of your two arrays has rows that sum to 1?",
    more="In the first case the weights are 3/4 and 1/4, and you return log 3 and 0. The context was made with the "
    "right ones: what name do they have in your function?",
    section=SOFTMAX,
)
def returns_scores(query, key, value):
    """The context is right, but the second result holds the scores before the softmax, not the weights."""
    context, _ = attnlib.attention(query, key, value)
    return context, attnlib.scaled_dot(query, key)


@MISTAKES.add(
    "dot products are returned as weights",
    hint="Which of your arrays has rows that sum to 1?",
    more="In the first case the weights are 3/4 and 1/4, and you return 2 log 3 and 0, the dot products. The context "
    "was made with the right ones: what name do they have in your function?",
    section=SOFTMAX,
)
def returns_dot_products(query, key, value):
    """The context is right, but the second result holds the dot products, not the weights."""
    context, _ = attnlib.attention(query, key, value)
    return context, attnlib.dot(query, key)


@MISTAKES.add(
    "the context is made of scores",
    hint="Which of the two has rows that sum to 1, and which did you multiply with the values?",
    more="The weights that you return are right, but they are not those of your weighted sum. In the first case 3/4 "
    "of 8 is 6. What is log 3 times 8?",
    section=WEIGHTED_SUM,
)
def context_of_scores(query, key, value):
    """The weights are right, but the context was made with the scores. The weights belong in the weighted sum."""
    scores = attnlib.scaled_dot(query, key)
    return scores @ value, attnlib.softmax(scores)


@MISTAKES.add(
    "the weights are transposed in the result",
    hint="Row i of the weights belongs to query i. How many rows should 3 queries have?",
    more="The context is right. Look at your last line, at the shape of the second array: it should be (T, S).",
    section=ATTENTION,
)
def weights_transposed(query, key, value):
    """The context is right, but the weights that you return have a row per key. They should have a row per query."""
    context, weights = attnlib.attention(query, key, value)
    return context, weights.swapaxes(-1, -2)


@MISTAKES.add(
    "the context is transposed in the result",
    hint="Row i of the context belongs to query i. How many rows should 3 queries have?",
    more="The weights are right. Look at the shape of your first array: it should be (T, D_v), one row for each query.",
    section=ATTENTION,
)
def context_transposed(query, key, value):
    """The weights are right, but the context has a row per component. It should have a row per query."""
    context, weights = attnlib.attention(query, key, value)
    return context.swapaxes(-1, -2), weights


@MISTAKES.add(
    "the results are in the wrong order",
    hint="Compare your return line with the one in the task.",
    more="The docstring says what is returned, and in which order: the averages of the values come first, and the "
    "weights second.",
    section=ATTENTION,
)
def swapped_results(query, key, value):
    """Both arrays are right, but the weights come first. The task asks for the context first."""
    context, weights = attnlib.attention(query, key, value)
    return weights, context


@MISTAKES.add(
    "not scaled, and the results in the wrong order",
    hint="What are the scores divided by, and which of the two arrays does the task ask for first?",
    more="In the first case the weights are 3/4 and 1/4, and the context is 6. The docstring says which of them "
    "comes first. Then print your scores: log 3 and 0 are right.",
    section=ATTENTION,
)
def no_scale_swapped_results(query, key, value):
    """The dot products are not divided by the root of the width, and the weights come before the context."""
    context, weights = _attend(attnlib.dot(query, key), value)
    return weights, context


@MISTAKES.add(
    "only the context is returned",
    hint="Compare your return line with the one in the task.",
    more="The docstring names two results. The second is already in your function: the table that the values were "
    "weighted with.",
    section=ATTENTION,
)
def context_only(query, key, value):
    """One array is returned instead of two: the context and the weights."""
    return attnlib.attention(query, key, value)[0]


@MISTAKES.add(
    "only the weights are returned",
    hint="Compare your return line with the one in the task.",
    more="The docstring names two results. You stopped before the last of the three steps: score, softmax, weighted "
    "sum.",
    section=ATTENTION,
)
def weights_only(query, key, value):
    """One array is returned instead of two: the context and the weights."""
    return attnlib.attention(query, key, value)[1]


# Batches -------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the softmax axis is counted from the front",
    hint="Which axis number means the last one, however many there are?",
    more="For a batch of shape (2, 3, 5), axis 1 has the 3 queries, and the keys lie along the last axis. Counted "
    "from the end, it has the same number for matrices and batches.",
    section=SOFTMAX,
)
def softmax_from_front(query, key, value):
    """For a matrix axis 1 is the last one. With a batch in front it is another, and the wrong weights sum to 1."""
    return _attend(attnlib.scaled_dot(query, key), value, axis=1)


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    more="For a batch of shape (2, 3, 4) the width is 4. Print the number whose root you take. Counted from the end, "
    "the width has the same place for matrices and batches.",
    section=SCALE,
)
def width_from_front(query, key, value):
    """For a matrix shape[1] is the width. With a batch in front it is the number of queries."""
    return _attend(attnlib.dot(query, key) / query.shape[1] ** 0.5, value)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shape of your transposed keys for a key of shape (2, 5, 4). It should be (2, 4, 5): the batch "
    "stays in front, and the last two change places. Some ways to transpose reverse all axes.",
    section=SCORES,
)
def full_transpose(query, key, value):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return _attend(query @ key.T / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "every batch against every other",
    hint="How many tables of scores should a batch of 2 have: 2, or 4?",
    more="Print the shape of your scores for a batch of 2 with T=3 and S=5. It should be (2, 3, 5). In yours the 2 "
    "is there twice: sequence 1 was compared with sequence 2 as well.",
    section=SCORES,
)
def outer_batches(query, key, value):
    """Each sequence of the batch is compared with every other sequence. It should be compared only with its own."""
    return _attend(np.dot(query, key.swapaxes(-1, -2)) / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "an einsum only for matrices",
    hint="Your letters name two dimensions of each array. What stands for those in front, however many there are?",
    more="Three dots in front of the letters mean any number of further dimensions, including none. They are needed "
    "in both inputs and in the output.",
    section=SCORES,
)
def einsum_of_matrices(query, key, value):
    """The letters of the einsum allow for two dimensions and no more, so there is no room for a batch in front."""
    return _attend(np.einsum("td,sd->ts", query, key) / query.shape[-1] ** 0.5, value)


@MISTAKES.add(
    "two dimensions are taken for granted",
    hint="Your code takes a shape apart into two numbers. What if there is a batch in front?",
    more="You need only one number from the shape, the width. Pick it out by its place, counted from the end, instead "
    "of giving a name to every number.",
    section=SCALE,
)
def two_dimensions(query, key, value):
    """The shape was unpacked into exactly two numbers. With a batch in front it has three or more."""
    _, width = query.shape
    return _attend(attnlib.dot(query, key) / width**0.5, value)


@MISTAKES.add(
    "three dimensions are taken for granted",
    hint="Your code takes a shape apart into three numbers. What if there is no batch in front?",
    more="You need only one number from the shape, the width. Pick it out by its place, counted from the end, instead "
    "of giving a name to every number.",
    section=SCALE,
)
def three_dimensions(query, key, value):
    """The shape was unpacked into exactly three numbers. Without a batch in front it has two."""
    _, _, width = query.shape
    return _attend(attnlib.dot(query, key) / width**0.5, value)


@MISTAKES.add(
    "changes the arrays it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the query before and after a call of your function. Then look for an operator that ends in an equals "
    "sign, such as the one for dividing. A second call with the same arrays would scale them again.",
    section=SCALE,
)
def in_place(query, key, value):
    """The results are right, but the caller's queries are scaled now: your function wrote into them."""
    query /= query.shape[-1] ** 0.5
    return _attend(attnlib.dot(query, key), value)


# Masks and other scores, for who has such an argument ----------------------------------------------------------------


@MISTAKES.add(
    "the mask is ignored",
    hint="Call your function with and without a mask: which of your numbers change?",
    more="The weights of hidden keys have to be exactly 0. Follow the argument through your function: does it act on "
    "the scores before the softmax?",
    section=ATTENTION,
)
def mask_ignored(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """Your function takes a mask, but the weights are the same with and without it."""
    return attnlib.attention(query, key, value, score=score)


@MISTAKES.add(
    "the mask is upside down",
    hint="What does True mean in the mask: may attend, or must not?",
    more="Print a row of the mask above the row of your weights. The zeros should be below False. Yours are below "
    "True.",
    section=ATTENTION,
)
def mask_inverted(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """True was read as “hidden”. In this course True means: the query may attend to the key."""
    return attnlib.attention(query, key, value, score=score, mask=None if mask is None else ~mask)


@MISTAKES.add(
    "hidden keys get the score 0",
    hint="What is the exponential of 0? Which score has the exponential 0?",
    more="A score of 0 is a score like any other, and sometimes the best of its row. Print the weights of the hidden "
    "keys: they should be exactly 0. How small must a score be for that?",
    section=SOFTMAX,
)
def masked_with_zero(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """The scores of hidden keys were set to 0. But exp(0) is 1, so these keys still get a share."""
    scores = score(query, key)
    return _attend(scores if mask is None else np.where(mask, scores, 0.0), value)


@MISTAKES.add(
    "masked after the softmax",
    hint="What do the weights of a query sum to, once some of them have been set to 0?",
    more="Add up the rows of your weights. The hidden keys took their share in the sum of the softmax before they were "
    "removed. Which step has to come first?",
    section=SOFTMAX,
)
def masked_after_softmax(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """The weights of hidden keys were set to 0 after the softmax, so the rows no longer sum to 1."""
    weights = attnlib.softmax(score(query, key))
    weights = weights if mask is None else weights * mask
    return weights @ value, weights


@MISTAKES.add(
    "the mask is added as 0 and 1",
    hint="By how much does your mask change a score, and how much would be enough to hide it?",
    more="Used as a number, True is 1 and False is 0. So an allowed key gets one point more, a factor of 2.7, and a "
    "hidden one is still there.",
    section=SOFTMAX,
)
def mask_added(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """The mask was added to the scores as a number, which raises the allowed ones by 1. Hidden keys keep a share."""
    scores = score(query, key)
    return _attend(scores if mask is None else scores + mask, value)


@MISTAKES.add(
    "nothing to attend to gives nan",
    hint="What is the sum of the exponentials, where all scores of a row are minus infinity?",
    more="For such a query there is nothing to choose from: its weights and its context should be 0. Where is the "
    "division that makes nan, and what could it divide by instead of 0?",
    section=OVERFLOW,
)
def empty_row_nan(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """A query that may attend to nothing got nan: all its scores are minus infinity, and 0/0 is nan.

    It should get 0.
    """
    scores = score(query, key)
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = _normalised(scores, scores.max(axis=-1, keepdims=True))
    return weights @ value, weights


@MISTAKES.add(
    "nothing to attend to gives equal weights",
    hint="A query that may attend to nothing: what should its weights be?",
    more="All scores of that row are the same very negative number, so all differences are 0, and the softmax makes "
    "equal weights: the query sees everything that was hidden from it. Set such rows to 0 afterwards, or choose a "
    "different number.",
    section=SOFTMAX,
)
def empty_row_uniform(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """A query that may attend to nothing got the plain mean of all values. Its weights and its context should be 0."""
    scores = score(query, key)
    return _attend(scores if mask is None else np.where(mask, scores, -1e9), value)


@MISTAKES.add(
    "nothing to attend to becomes everything",
    hint="A query that may attend to nothing: what should its weights be?",
    more="The same very negative number was added to all scores of that row. A softmax does not see such a shift, so "
    "the query attends as if there were no mask. Set such rows to 0 afterwards.",
    section=SOFTMAX,
)
def empty_row_unmasked(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """A query that may attend to nothing attends to everything. Its weights and its context should be 0."""
    scores = score(query, key)
    return _attend(scores if mask is None else scores + np.where(mask, 0.0, -1e9), value)


@MISTAKES.add(
    "the score is ignored",
    hint="Call your function with two different scores: which of your numbers change?",
    more="Your function has an argument for the similarity, but always computes the scaled dot product. Which line "
    "should call the argument instead?",
    section=ATTENTION,
)
def score_ignored(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """Your function takes a score, but always uses the scaled dot product."""
    return attnlib.attention(query, key, value, mask=mask)


@MISTAKES.add(
    "the given score is scaled once more",
    hint="Who is responsible for the scale, if the score can be any function?",
    more="With the cosine as score nothing should be divided by the root of the width. Look for a division outside of "
    "the score.",
    section=SCALE,
)
def score_scaled_again(query, key, value, *, score=attnlib.scaled_dot, mask=None):
    """What the given score returned was divided by the root of the width. A score is used as it is."""

    def scaled(q, k):
        return score(q, k) / q.shape[-1] ** 0.5

    own = score is attnlib.scaled_dot
    return attnlib.attention(query, key, value, score=score if own else scaled, mask=mask)


@MISTAKES.add(
    "the square root of 4, whatever the width",
    hint="What width do the vectors in the task's example have, and what width do your inputs have?",
    more="Look for a 2, or the square root of a 4, in your function. Where does it come from?",
    section=SCALE,
)
def root_of_four(query, key, value):
    """The scores are divided by 2, which is right only for the width of the example."""
    return _attend(attnlib.dot(query, key) / 2, value)


@MISTAKES.add(
    "the square root is rounded down",
    hint="What is the square root of 3, and what does your function turn it into?",
    more="Few integers have an integer square root. Which function returns the square root unrounded?",
    section=SCALE,
)
def whole_root(query, key, value):
    """The square root of the width is rounded down. That is right for 4 and 16 but wrong for most widths."""
    return _attend(attnlib.dot(query, key) / int(query.shape[-1] ** 0.5), value)


@MISTAKES.add(
    "the weights of each sequence average the values of every other",
    hint="How many contexts should a batch of 2 have: 2, or 4?",
    more="Print the shape of your context for a batch of 2. The 2 is there twice: some products pair all leading "
    "dimensions, and others go through both batches side by side.",
    section=WEIGHTED_SUM,
)
def outer_batches_in_sum(query, key, value):
    """The weights are right, but each sequence of the batch averages the values of every other sequence as well."""
    weights = attnlib.attention(query, key, value)[1]
    return np.dot(weights, value), weights


EXERCISE = Exercise(
    name="attention",
    reference=attnlib.attention,
    outputs={"context": ("T", "D_v"), "weights": ("T", "S")},
    rubric={NUMBERS: 4, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=ATTENTION,
    advice="Print the scores, the weights and the context for the smallest case, one after the other, with "
    "their shapes. Which of them is the first to be wrong?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("mask", "score"),
    analytic_gradients=through_attention,
    solved_by=ATTENTION_FUNCTIONS,
)
