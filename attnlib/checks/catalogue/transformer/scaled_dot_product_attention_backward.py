"""scaled_dot_product_attention_backward(grad, query, key, value): the gradients by hand."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.transformer.sections import BACKWARD, ON_PAPER, PRODUCT, SOFTMAX, SUM_CHECK
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large scores", "inputs unchanged"
MORE = "more than is asked for"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one query by hand, T queries and S keys, a square one, batches, large scores, extras."""
    hand = {
        "grad": np.array([[1.0, 1.0]]),
        "query": np.ones((1, 4)),
        "key": np.array([[np.log(3.0) / 2] * 4, [0.0] * 4]),
        "value": np.array([[4.0, 0.0], [0.0, 8.0]]),
    }
    yield Case("one query whose weights are 3/4 and 1/4, as worked by hand", NUMBERS, hand)
    yield Case("3 queries, 5 keys of width 4, values of width 2", NUMBERS, given(rng, (), 3, 5, 4, 2))
    yield Case("three of everything, so that every table is square", NUMBERS, given(rng, (), 3, 3, 3, 3))
    yield Case("one query and one key", NUMBERS, given(rng, (), 1, 1, 3, 2))
    yield Case("vectors in float32", NUMBERS, given(rng, (), 6, 2, 3, 5, np.float32))
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, given(rng, (2,), 3, 5, 4, 6))
    yield Case("leading dimensions (2, 7)", BATCHES, given(rng, (2, 7), 3, 5, 4, 6))
    yield Case("heads that are not stored one after the other", BATCHES, strided(rng))
    large = given(rng, (), 3, 4, 5, 2)
    direction, lengths = np.ones(5), np.array([[1.0], [1.5], [0.5], [1.4999]])
    large["query"] += np.array([[3000.0], [-3000.0], [0.0]]) * direction
    large["key"] = 0.01 * large["key"] + lengths * direction
    yield Case("scores of several thousand", LARGE, large)
    yield Case("inputs that must stay as they are", UNCHANGED, given(rng, (), 3, 4, 2, 5), unchanged=True)
    mask = np.array([[1, 0, 1, 1, 1], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0]], bool)
    yield Case("scale=0.3", MORE, given(rng, (), 3, 5, 4, 2), {"scale": 0.3})
    yield Case("the causal rule", MORE, given(rng, (), 3, 5, 4, 2), {"is_causal": True})
    yield Case("a mask of True and False", MORE, given(rng, (2,), 2, 5, 4, 3), {"attn_mask": mask[:2]})
    yield Case("a query that may attend to nothing", MORE, given(rng, (), 3, 5, 4, 2), {"attn_mask": mask})
    yield Case("q_offset=2", MORE, given(rng, (), 3, 5, 4, 2), {"is_causal": True, "q_offset": 2})
    added = {"attn_mask": rng.normal(size=(3, 5))}
    yield Case("numbers added to the scores", MORE, given(rng, (), 3, 5, 4, 2), added)


def given(rng, leading: tuple[int, ...], t: int, s: int, d: int, d_v: int, dtype=np.float64) -> dict[str, Any]:
    """Return a random upstream gradient, query, key and value."""
    shapes = {"grad": (t, d_v), "query": (t, d), "key": (s, d), "value": (s, d_v)}
    return {name: rng.normal(size=(*leading, *shape)).astype(dtype) for name, shape in shapes.items()}


def strided(rng) -> dict[str, NDArray[Any]]:
    """Return arrays (H, T, D) that are views of (T, H, D)."""
    return {name: x.swapaxes(0, 1).copy().swapaxes(0, 1) for name, x in given(rng, (4,), 2, 6, 3, 5).items()}


def _swap(x):
    return np.swapaxes(x, -1, -2)


def _weights(query, key, scale=None):
    return attnlib.softmax(query @ _swap(key) * (query.shape[-1] ** -0.5 if scale is None else scale))


def _average(p, dp):
    return (p * dp).sum(axis=-1, keepdims=True)


def _through(p, dp):
    """The softmax, backwards."""
    return p * (dp - _average(p, dp))


def _gradients(grad, query, key, value, *, back=_through, weights=_weights, scales=(1.0, 1.0)):
    """All three gradients with another way back through the softmax, other weights, or other factors."""
    c, p = query.shape[-1] ** -0.5, weights(query, key)
    ds = back(p, grad @ _swap(value))
    return c * scales[0] * (ds @ key), c * scales[1] * (_swap(ds) @ query), _swap(p) @ grad


# The scale ---------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the scale is missing in the gradient of the queries",
    hint="The scores are c times a product. Which of your gradients contain c?",
    more="Two gradients pass through the scores. Compare the last two lines of your function: do they have the same "
    "factor?",
    section=BACKWARD,
)
def no_scale_for_query(grad, query, key, value):
    """The gradient of the queries is not multiplied by c, one over the root of the width, though the scores were."""
    return _gradients(grad, query, key, value, scales=(query.shape[-1] ** 0.5, 1))


@MISTAKES.add(
    "the scale is missing in the gradient of the keys",
    hint="The scores are c times a product. Which of your gradients contain c?",
    more="Two gradients pass through the scores. Compare the last two lines of your function: do they have the same "
    "factor?",
    section=BACKWARD,
)
def no_scale_for_key(grad, query, key, value):
    """The gradient of the keys is not multiplied by c, one over the root of the width, though the scores were."""
    return _gradients(grad, query, key, value, scales=(1, query.shape[-1] ** 0.5))


@MISTAKES.add(
    "the scale is missing on the way back",
    hint="The scores are c times a product. Where does c appear on the way back?",
    more="Double c in the formula of the scores. By how much do the gradients of query and key grow, if the weights "
    "stay as they are?",
    section=BACKWARD,
)
def no_scale_backwards(grad, query, key, value):
    """The weights are right, but the gradients of queries and keys are not multiplied by c, though the scores were."""
    root = query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, scales=(root, root))


@MISTAKES.add(
    "the scores are not scaled on the way forward",
    hint="You need the weights of the forward pass once more. What were its scores divided by?",
    more="Print your weights for the example worked by hand. They should be 3/4 and 1/4.",
    section=BACKWARD,
)
def no_scale_forwards(grad, query, key, value):
    """The weights that you recompute come from unscaled scores, so they are not those of the forward pass."""
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, 1.0))


@MISTAKES.add(
    "there is no scale at all",
    hint="What are the scores divided by in scaled dot-product attention?",
    more="Print your weights for the example worked by hand. They should be 3/4 and 1/4. The same factor is needed "
    "again on the way back.",
    section=BACKWARD,
)
def no_scale(grad, query, key, value):
    """The factor c is missing twice: in the scores, and in the gradients of queries and keys."""
    root = query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, 1.0), scales=(root, root))


@MISTAKES.add(
    "divided by D, not by its root",
    hint="What are the scores divided by in scaled dot-product attention: the width, or its root?",
    more="In the example worked by hand the width is 4. What number did you divide by?",
    section=BACKWARD,
)
def scaled_by_width(grad, query, key, value):
    """The factor c is one over the width, but it should be one over the root of the width."""
    c = 1 / query.shape[-1]
    root = c * query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, c), scales=(root, root))


@MISTAKES.add(
    "multiplied by the root of D",
    hint="Is c larger or smaller than 1, for a width of 4?",
    more="Print c for the example worked by hand, and compare it with the task's.",
    section=BACKWARD,
)
def scaled_upwards(grad, query, key, value):
    """The factor c is the root of the width, but it should be one over that root."""
    c = query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, c), scales=(c * c, c * c))


@MISTAKES.add(
    "the scale comes twice",
    hint="How often does c appear in the formula of the scores, and how often in your gradients?",
    more="If the gradient of the scores is multiplied by c already, what do the last two lines still have to do?",
    section=BACKWARD,
)
def scale_twice(grad, query, key, value):
    """The gradients of queries and keys are multiplied by c twice. The scores were multiplied once."""
    c = query.shape[-1] ** -0.5
    return _gradients(grad, query, key, value, scales=(c, c))


@MISTAKES.add(
    "the scale comes twice in the gradient of the keys",
    hint="Which queries are in your product for the keys: those that came in, or scaled ones?",
    more="Compare the factors of your first two gradients with those of the example worked by hand. If the "
    "queries were scaled already, what is left to do?",
    section=BACKWARD,
)
def scale_twice_for_key(grad, query, key, value):
    """The gradient of the keys is multiplied by c twice, that of the queries once. The scores were multiplied once."""
    return _gradients(grad, query, key, value, scales=(1, query.shape[-1] ** -0.5))


@MISTAKES.add(
    "divided by the scale on the way back",
    hint="On the way forward the scores are multiplied by c. What does a factor do on the way back?",
    more="Double c in the formula of the scores. Should the gradients of query and key grow or shrink, if the "
    "weights stay as they are?",
    section=BACKWARD,
)
def divided_by_scale(grad, query, key, value):
    """The gradients of queries and keys are divided by c. A factor is the same in both directions: multiply by it."""
    return _gradients(grad, query, key, value, scales=(query.shape[-1], query.shape[-1]))


@MISTAKES.add(
    "the gradient of the values is scaled too",
    hint="Do the values pass through the scores?",
    more="Follow the arrows from the values to the result in the figure of the chapter. Is c on any of them?",
    section=PRODUCT,
)
def scaled_values(grad, query, key, value):
    """The gradient of the values is multiplied by c as well.

    The values meet the weights, never the scores, so c does not reach them.
    """
    d_query, d_key, d_value = _gradients(grad, query, key, value)
    return d_query, d_key, d_value * query.shape[-1] ** -0.5


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="In the example worked by hand the width of a key is 4 and that of a value 2. Which of them gives c?",
    section=BACKWARD,
)
def scaled_by_value_width(grad, query, key, value):
    """The factor c is made from the width of the values. It is the width of queries and keys that counts."""
    c = value.shape[-1] ** -0.5
    root = c * query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, c), scales=(root, root))


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Which of the two is the width of a vector: the last size of the array, or the one before?",
    more="In the example worked by hand there are 2 keys of width 4. Which of these numbers gives c?",
    section=BACKWARD,
)
def scaled_by_keys(grad, query, key, value):
    """The factor c is made from the number of keys. It is the width of queries and keys that counts."""
    c = key.shape[-2] ** -0.5
    root = c * query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, c), scales=(root, root))


# Through the softmax -----------------------------------------------------------------------------------------------


@MISTAKES.add(
    "nothing is subtracted in the softmax",
    hint="What does the sum of each row of dS have to be?",
    more="Raise all scores of a row by the same amount: the weights stay the same. So what must the gradient of the "
    "scores sum to? Does yours?",
    section=SOFTMAX,
)
def no_subtraction(grad, query, key, value):
    """You multiply by the weights, as you should, but the weighted average of the row has to be subtracted first."""
    return _gradients(grad, query, key, value, back=lambda p, dp: p * dp)


@MISTAKES.add(
    "the softmax is skipped on the way back",
    hint="Which step of the forward pass lies between the scores and the weights?",
    more="You have the gradient of the weights. Next comes the gradient of the scores: are they the same?",
    section=SOFTMAX,
)
def softmax_skipped(grad, query, key, value):
    """The gradient of the weights is used as if it were that of the scores. The softmax lies between them."""
    return _gradients(grad, query, key, value, back=lambda p, dp: dp)


@MISTAKES.add(
    "only the diagonal of the Jacobian",
    hint="If one score rises, which weights change: that one alone, or all of the row?",
    more="Look at the numbers off the diagonal in the figure of the Jacobian. They are not 0. Where are they in "
    "your formula?",
    section=SOFTMAX,
)
def diagonal_only(grad, query, key, value):
    """The softmax is treated like a sigmoid, each weight depending on its own score alone.

    A score changes all weights of its row.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (1 - p) * dp)


@MISTAKES.add(
    "the plain mean is subtracted",
    hint="Which average is it: one where all keys count the same, or one with the weights?",
    more="Add up a row of your dS. It should be 0, and with the plain mean it is not, unless all weights are equal.",
    section=SOFTMAX,
)
def plain_mean(grad, query, key, value):
    """The plain mean of each row is subtracted. It should be the average taken with the weights."""
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - dp.mean(axis=-1, keepdims=True)))


@MISTAKES.add(
    "the sum is subtracted without weights",
    hint="Which average is it: one where all keys count the same, or one with the weights?",
    more="The weights sum to 1, so a sum of products with them is an average. Without them, what is it?",
    section=SOFTMAX,
)
def plain_sum(grad, query, key, value):
    """The plain sum of each row is subtracted. It should be the average taken with the weights."""
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - dp.sum(axis=-1, keepdims=True)))


@MISTAKES.add(
    "the average is subtracted without the weight in front",
    hint="In the formula of dS, what is inside the bracket, and what is outside?",
    more="A key with weight 0 gets no gradient. Does it get one in your formula?",
    section=SOFTMAX,
)
def weight_on_one_term(grad, query, key, value):
    """Only the first term is multiplied by the weight, not the average that is subtracted.

    The weight belongs in front of the whole bracket.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: p * dp - _average(p, dp))


@MISTAKES.add(
    "the weight in front of the bracket is missing",
    hint="A key with weight 0: what gradient does its score get?",
    more="Write the formula of dS for one key. There are two steps: subtract, then one more.",
    section=SOFTMAX,
)
def no_weight_in_front(grad, query, key, value):
    """The average is subtracted, but the difference is not multiplied by the weight."""
    return _gradients(grad, query, key, value, back=lambda p, dp: dp - _average(p, dp))


@MISTAKES.add(
    "the average runs over the queries",
    hint="Each query has an average of its own. Along which axis of the table do its numbers lie?",
    more="Add up dS along both axes. Which of the sums should be 0, those of the rows or those of the columns?",
    section=SOFTMAX,
)
def average_over_queries(grad, query, key, value):
    """The weighted average is taken down the columns, over the queries.

    It should be taken along each row, over the keys.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - (p * dp).sum(axis=-2, keepdims=True)))


@MISTAKES.add(
    "one average for the whole table",
    hint="How many averages should there be: one, or one for each query?",
    more="What is the shape of the average that you subtract? Compare with the shape of the table.",
    section=SOFTMAX,
)
def average_over_all(grad, query, key, value):
    """One number is subtracted everywhere. Each row has a weighted average of its own."""
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - (p * dp).sum()))


@MISTAKES.add(
    "the average has lost its axis",
    hint="From which numbers of the table should the average of a row be subtracted, and from which does NumPy "
    "subtract it?",
    more="Print the shape of the average. To be subtracted from the rows of a table with T rows it has to be a column.",
    section=SOFTMAX,
)
def average_without_axis(grad, query, key, value):
    """The averages lie in a single row. So they are subtracted from the wrong numbers, or do not fit at all."""
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - (p * dp).sum(axis=-1)))


@MISTAKES.add(
    "the average is divided by the number of keys",
    hint="The weights sum to 1. Does a weighted average still have to be divided by anything?",
    more="For the example worked by hand the average is 5. What is yours?",
    section=SOFTMAX,
)
def mean_of_products(grad, query, key, value):
    """The products with the weights are averaged. They should be summed: the weights have done the dividing already."""
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - (p * dp).mean(axis=-1, keepdims=True)))


@MISTAKES.add(
    "the average is added",
    hint="A key that is exactly as good as the average: what gradient does its score get?",
    more="Add up a row of your dS. It should be 0. Which sign makes it so?",
    section=SOFTMAX,
)
def average_added(grad, query, key, value):
    """The weighted average is added.

    It should be subtracted, so that a key gains only if it is better than the average.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp + _average(p, dp)))


@MISTAKES.add(
    "the difference is reversed",
    hint="A key that is better than the average: should its score rise or fall?",
    more="Compare the signs of your first two gradients with the example worked by hand.",
    section=SOFTMAX,
)
def difference_reversed(grad, query, key, value):
    """The gradient of the weight is subtracted from the average.

    It should be the other way round, so the gradients of queries and keys both have the wrong sign.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: -_through(p, dp))


@MISTAKES.add(
    "the softmax is passed twice on the way back",
    hint="How many times does the forward pass take a softmax, and how many times does your way back go through it?",
    more="Print dS for the example worked by hand: (-3/4, 3/4). What happens to it after that in your function?",
    section=SOFTMAX,
)
def softmax_twice(grad, query, key, value):
    """The softmax rule is applied twice. There is one softmax on the way, so once is enough."""
    return _gradients(grad, query, key, value, back=lambda p, dp: _through(p, _through(p, dp)))


@MISTAKES.add(
    "nothing is subtracted, and the scale is missing",
    hint="What does the sum of each row of dS have to be, and where does c appear on the way back?",
    more="Two things are missing. First make the rows of dS sum to 0, then look at the factor of the last two lines.",
    section=SOFTMAX,
)
def no_subtraction_and_no_scale(grad, query, key, value):
    """Two pieces are missing: the average in the softmax, and the factor c in the gradients of queries and keys."""
    root = query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, back=lambda p, dp: p * dp, scales=(root, root))


@MISTAKES.add(
    "the plain mean is subtracted, and the weight in front is missing",
    hint="What are the two places where the weights enter the formula of dS?",
    more="If the weights were all equal, yours would be right but for a factor. What changes when they are not?",
    section=SOFTMAX,
)
def centred_only(grad, query, key, value):
    """Each row of dP is centred by its plain mean, and that is all.

    The weights are missing twice: in the average, and in front of the difference.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: dp - dp.mean(axis=-1, keepdims=True))


@MISTAKES.add(
    "nothing is subtracted, and two results are swapped",
    hint="What does the sum of each row of dS have to be, and in which order does the task ask for the results?",
    more="Begin with the order: there are T queries and S keys, so how many rows does your first result have? Then "
    "look at dS.",
    section=SOFTMAX,
)
def no_subtraction_and_swapped(grad, query, key, value):
    """Two things went wrong: the average is not subtracted in the softmax, and the gradient of the keys comes first."""
    d_query, d_key, d_value = _gradients(grad, query, key, value, back=lambda p, dp: p * dp)
    return d_key, d_query, d_value


@MISTAKES.add(
    "the scale is missing on the way back, and two results are swapped",
    hint="Where does c appear on the way back, and in which order does the task ask for the results?",
    more="Begin with the order: there are T queries and S keys, so how many rows does your first result have? Then "
    "look at the factor c.",
    section=BACKWARD,
)
def no_scale_and_swapped(grad, query, key, value):
    """Two things went wrong: the factor c is missing on the way back, and the gradient of the keys comes first."""
    root = query.shape[-1] ** 0.5
    d_query, d_key, d_value = _gradients(grad, query, key, value, scales=(root, root))
    return d_key, d_query, d_value


@MISTAKES.add(
    "the softmax runs over the queries",
    hint="Whose weights sum to 1 in the forward pass: those of a query, or those of a key?",
    more="Print your weights for the example worked by hand. They should be 3/4 and 1/4, in one row.",
    section=BACKWARD,
)
def softmax_over_queries(grad, query, key, value):
    """The weights that you recompute sum to 1 along the wrong axis: they are not those of the forward pass."""

    def weights(query, key):
        return attnlib.softmax(query @ _swap(key) / query.shape[-1] ** 0.5, axis=-2)

    return _gradients(grad, query, key, value, weights=weights)


@MISTAKES.add(
    "the softmax runs over the whole table",
    hint="What should sum to 1: each row of the weights, or all of them together?",
    more="Print your weights for three queries. What does each row sum to?",
    section=BACKWARD,
)
def softmax_over_all(grad, query, key, value):
    """The weights of all queries together sum to 1. Each query should have weights of its own that do."""

    def weights(query, key):
        scores = query @ _swap(key) / query.shape[-1] ** 0.5
        e = np.exp(scores - scores.max(axis=(-2, -1), keepdims=True))
        return e / e.sum(axis=(-2, -1), keepdims=True)

    return _gradients(grad, query, key, value, weights=weights)


@MISTAKES.add(
    "scores instead of weights",
    hint="The formulas speak of P. Is what you have the scores, or the weights?",
    more="Print your table P for the example worked by hand. Its row should sum to 1.",
    section=BACKWARD,
)
def no_softmax(grad, query, key, value):
    """The scores are used where the weights belong: the softmax of the forward pass is missing."""
    return _gradients(grad, query, key, value, weights=lambda q, k: q @ _swap(k) / q.shape[-1] ** 0.5)


# Through the products ----------------------------------------------------------------------------------------------


@MISTAKES.add(
    "only the last query counts for keys and values",
    hint="Each key is seen by every query. From how many queries does your gradient of a key come?",
    more="If you loop over the queries: what happens to the contributions of earlier queries? Try two queries.",
    section=PRODUCT,
)
def last_query_alone(grad, query, key, value):
    """The gradients of keys and values hold what the last query contributes. All queries contribute, and are summed."""
    d_query, _, _ = _gradients(grad, query, key, value)
    _, d_key, d_value = _gradients(grad[..., -1:, :], query[..., -1:, :], key, value)
    return d_query, d_key, d_value


@MISTAKES.add(
    "the weights are not transposed for the values",
    hint="A value is corrected by all the queries that looked at it. Along which axis of the weights do they lie?",
    more="Write the shapes of the product for dV one below the other: what has to come out is one row for each key.",
    section=PRODUCT,
)
def weights_not_transposed(grad, query, key, value):
    """For the gradient of the values the table of weights is used as it is, with a row for each query.

    It has to be transposed, with a row for each key.
    """
    d_query, d_key, _ = _gradients(grad, query, key, value)
    return d_query, d_key, _weights(query, key) @ grad


@MISTAKES.add(
    "dS is not transposed for the keys",
    hint="A key is corrected by all the queries. Along which axis of dS do they lie?",
    more="Write the shapes of the product for dK one below the other: what has to come out is one row for each key.",
    section=PRODUCT,
)
def scores_not_transposed(grad, query, key, value):
    """For the gradient of the keys the table dS is used as it is, with a row for each query.

    It has to be transposed, with a row for each key.
    """
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    d_query, _, d_value = _gradients(grad, query, key, value)
    return d_query, c * (_through(p, grad @ _swap(value)) @ query), d_value


@MISTAKES.add(
    "dS is transposed for the queries",
    hint="A query is corrected by all its keys. Along which axis of dS do they lie?",
    more="Write the shapes of the product for dQ one below the other: what has to come out is one row for each query.",
    section=PRODUCT,
)
def scores_transposed_for_query(grad, query, key, value):
    """For the gradient of the queries the table dS is transposed. It has a row for each query already."""
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    _, d_key, d_value = _gradients(grad, query, key, value)
    return c * (_swap(_through(p, grad @ _swap(value))) @ key), d_key, d_value


@MISTAKES.add(
    "dQ and dK transpose the wrong one of the two",
    hint="Which of the two gradients has a row for each query, as dS has?",
    more="Write down the shapes of dS, of the queries and of the keys, and those of the two products.",
    section=PRODUCT,
)
def transposes_swapped(grad, query, key, value):
    """The table dS is transposed for the queries and not for the keys.

    It should be the other way round.
    """
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    ds = _through(p, grad @ _swap(value))
    return c * (_swap(ds) @ key), c * (ds @ query), _swap(p) @ grad


@MISTAKES.add(
    "the keys are transposed on the way back",
    hint="On the way forward the keys were transposed. By what is dS multiplied: the keys, or their transpose?",
    more="Write the shapes of the product for dQ one below the other: what has to come out is as wide as a query.",
    section=PRODUCT,
)
def keys_transposed(grad, query, key, value):
    """The gradient of the queries multiplies by the transposed keys, as the way forward did.

    On the way back the keys are used as they are.
    """
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    _, d_key, d_value = _gradients(grad, query, key, value)
    return c * (_through(p, grad @ _swap(value)) @ _swap(key)), d_key, d_value


@MISTAKES.add(
    "the values are not transposed for dP",
    hint="The weight of a key should grow if its value points where the output should go. Which dot product says so?",
    more="Write the shapes of the product for dP one below the other: what has to come out is a row for each query and "
    "a column for each key.",
    section=PRODUCT,
)
def values_not_transposed(grad, query, key, value):
    """The gradient of the weights multiplies by the values as they are.

    They have to be transposed, so that each query's gradient meets each value in a dot product.
    """
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    ds = _through(p, grad @ value)
    return c * (ds @ key), c * (_swap(ds) @ query), _swap(p) @ grad


@MISTAKES.add(
    "dP is made with the keys",
    hint="The context is a product of two tables. Which ones?",
    more="By the product rule, dP contains the other factor of the context. Is that the keys or the values?",
    section=PRODUCT,
)
def keys_for_values(grad, query, key, value):
    """The gradient of the weights is a product with the keys.

    The weights were multiplied by the values, so the product should contain the values.
    """
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    ds = _through(p, grad @ _swap(key))
    return c * (ds @ key), c * (_swap(ds) @ query), _swap(p) @ grad


@MISTAKES.add(
    "the gradient of the queries is made of queries",
    hint="What was each query multiplied by, in the scores?",
    more="Where two numbers are multiplied, the gradient of one has the other as its factor. Which is it in "
    "your line for dQ?",
    section=PRODUCT,
)
def queries_for_queries(grad, query, key, value):
    """For the gradient of the queries dS is multiplied by the queries themselves.

    It should be multiplied by the keys, as the queries were.
    """
    ds = _through(_weights(query, key), grad @ _swap(value))
    _, d_key, d_value = _gradients(grad, query, key, value)
    return query.shape[-1] ** -0.5 * (ds @ query), d_key, d_value


@MISTAKES.add(
    "the gradient of the keys is made of keys",
    hint="What was each key multiplied by, in the scores?",
    more="Where two numbers are multiplied, the gradient of one has the other as its factor. Which is it in "
    "your line for dK?",
    section=PRODUCT,
)
def keys_for_keys(grad, query, key, value):
    """For the gradient of the keys dS is multiplied by the keys themselves.

    It should be multiplied by the queries, as the keys were.
    """
    ds = _through(_weights(query, key), grad @ _swap(value))
    d_query, _, d_value = _gradients(grad, query, key, value)
    return d_query, query.shape[-1] ** -0.5 * (_swap(ds) @ key), d_value


@MISTAKES.add(
    "dQ is made with the queries, dK with the keys",
    hint="The score is a product of a query and a key. Which of the two appears in the gradient of the query?",
    more="In a product of two numbers, the derivative with respect to the first is the second. Which array should be "
    "in the line of dQ?",
    section=PRODUCT,
)
def factors_swapped(grad, query, key, value):
    """Each of the two gradients is made from its own vectors.

    That of the queries should be a product with the keys, and that of the keys a product with the queries.
    """
    p, c = _weights(query, key), query.shape[-1] ** -0.5
    ds = _through(p, grad @ _swap(value))
    return c * (ds @ query), c * (_swap(ds) @ key), _swap(p) @ grad


@MISTAKES.add(
    "dV is made with the values",
    hint="The gradient of a value comes from those of the outputs. Which array holds these?",
    more="Double the upstream gradient. All three gradients should double. Do they?",
    section=PRODUCT,
)
def values_for_upstream(grad, query, key, value):
    """The gradient of the values is made from the values themselves. It should be made from the upstream gradient."""
    d_query, d_key, _ = _gradients(grad, query, key, value)
    return d_query, d_key, _swap(_weights(query, key)) @ (_weights(query, key) @ value)


@MISTAKES.add(
    "dV uses dS instead of the weights",
    hint="Through which table do the values reach the context?",
    more="For the example worked by hand the gradient of the values has the rows (3/4, 3/4) and (1/4, 1/4). Which "
    "table has these numbers?",
    section=PRODUCT,
)
def scores_for_weights(grad, query, key, value):
    """The gradient of the values is made with the table dS.

    The values were averaged with the weights P, so P is the table to use.
    """
    d_query, d_key, _ = _gradients(grad, query, key, value)
    return d_query, d_key, _swap(_through(_weights(query, key), grad @ _swap(value))) @ grad


@MISTAKES.add(
    "the upstream gradient is ignored",
    hint="What does the first argument say, and where does your function read it?",
    more="Double the upstream gradient. All three gradients should double. Do they?",
    section=SUM_CHECK,
)
def upstream_ignored(grad, query, key, value):
    """The gradients are those of the plain sum of the context: you use ones where the upstream gradient belongs."""
    return _gradients(np.ones_like(grad), query, key, value)


@MISTAKES.add(
    "the upstream gradient reaches only the values",
    hint="Where in your function is the first argument read: in one place, or in two?",
    more="Double the upstream gradient. All three gradients should double. Which do?",
    section=PRODUCT,
)
def upstream_for_values_only(grad, query, key, value):
    """The gradient of the values is right. For queries and keys, you use ones where the upstream gradient belongs."""
    d_query, d_key, _ = _gradients(np.ones_like(grad), query, key, value)
    return d_query, d_key, _swap(_weights(query, key)) @ grad


@MISTAKES.add(
    "the upstream gradient does not reach the values",
    hint="Where in your function is the first argument read: in one place, or in two?",
    more="Double the upstream gradient. All three gradients should double. Which do?",
    section=PRODUCT,
)
def upstream_not_for_values(grad, query, key, value):
    """The gradients of queries and keys are right. For the values, you use ones where the upstream gradient belongs."""
    d_query, d_key, _ = _gradients(grad, query, key, value)
    return d_query, d_key, _swap(_weights(query, key)) @ np.ones_like(grad)


# What is returned, and how -----------------------------------------------------------------------------------------


@MISTAKES.add(
    "the gradients of queries and keys are swapped",
    hint="Compare the order of your results with that of the arguments.",
    more="There are T queries and S keys. How many rows does your first result have?",
    section=BACKWARD,
)
def results_swapped(grad, query, key, value):
    """All three gradients are right, but that of the keys comes first.

    The order is that of the arguments: queries, keys, values.
    """
    d_query, d_key, d_value = _gradients(grad, query, key, value)
    return d_key, d_query, d_value


@MISTAKES.add(
    "the results are in the order in which they are computed",
    hint="Compare the order of your results with that of the arguments.",
    more="On the way back the values come first. In which order does the task ask for the results?",
    section=BACKWARD,
)
def values_first(grad, query, key, value):
    """All three gradients are right, but that of the values comes first.

    The order is that of the arguments: queries, keys, values.
    """
    d_query, d_key, d_value = _gradients(grad, query, key, value)
    return d_value, d_query, d_key


@MISTAKES.add(
    "the gradients of keys and values are swapped",
    hint="In which order are the inputs given, and in which order does the task ask for the results?",
    more="There are S keys and S values, but a value has a different width. How wide is your second result?",
    section=BACKWARD,
)
def keys_last(grad, query, key, value):
    """All three are right, but the gradient of the values comes before that of the keys."""
    d_query, d_key, d_value = _gradients(grad, query, key, value)
    return d_query, d_value, d_key


@MISTAKES.add(
    "the gradient of the queries comes last",
    hint="In which order are the inputs given, and in which order does the task ask for the results?",
    more="There are T queries and S keys. How many rows does your first result have?",
    section=BACKWARD,
)
def queries_last(grad, query, key, value):
    """All three are right, but their order is that of keys, values, queries. It should be queries, keys, values."""
    d_query, d_key, d_value = _gradients(grad, query, key, value)
    return d_key, d_value, d_query


@MISTAKES.add(
    "the results are in reverse order",
    hint="Compare the order of your results with that of the arguments.",
    more="On the way back the values come first. In which order does the task ask for the results?",
    section=BACKWARD,
)
def reversed_results(grad, query, key, value):
    """All three gradients are right, but they come in reverse.

    The order is that of the arguments: queries, keys, values.
    """
    return _gradients(grad, query, key, value)[::-1]


@MISTAKES.add(
    "all signs are reversed",
    hint="Does the task ask for the gradient, or for the step that training makes against it?",
    more="Compare the signs of your gradient of the values with the example worked by hand.",
    section=ON_PAPER,
)
def negated(grad, query, key, value):
    """All three have the wrong sign: this is the step downhill that training makes.

    The gradient itself points uphill.
    """
    return tuple(-x for x in _gradients(grad, query, key, value))


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shape of each transposed array for a batch of 2. The 2 should still be in front.",
    section=BACKWARD,
)
def full_transpose(grad, query, key, value):
    """With a batch in front, the shapes no longer fit: a transpose moved the axis of the batch.

    Only the last two axes change places.
    """
    c = query.shape[-1] ** -0.5
    p = attnlib.softmax(c * query @ key.T)
    ds = _through(p, grad @ value.T)
    return c * ds @ key, c * ds.T @ query, p.T @ grad


@MISTAKES.add(
    "the average is taken along the second axis from the front",
    hint="Which axis number means the last one, however many there are?",
    more="In a batch of tables, the axes are numbered differently. Count from the end.",
    section=SOFTMAX,
)
def axis_from_front(grad, query, key, value):
    """For a table axis 1 runs along the rows.

    With a batch in front it is a different axis, and the wrong numbers are averaged.
    """
    return _gradients(grad, query, key, value, back=lambda p, dp: p * (dp - (p * dp).sum(axis=1, keepdims=True)))


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    more="In a batch of tables, the axes are numbered differently. Count from the end.",
    section=BACKWARD,
)
def width_from_front(grad, query, key, value):
    """For a matrix shape[1] is the width. With a batch in front it is the number of queries, and c is wrong."""
    c = query.shape[1] ** -0.5
    root = c * query.shape[-1] ** 0.5
    return _gradients(grad, query, key, value, weights=lambda q, k: _weights(q, k, c), scales=(root, root))


@MISTAKES.add(
    "the softmax overflows",
    hint="What is the exponential of 1000 in floating point, and what is subtracted to avoid it?",
    more="Look at the largest score of a row. Subtract it from all scores of the row, by hand: do the weights change?",
    section=BACKWARD,
)
def overflow(grad, query, key, value):
    """For scores of usual size your gradients are right.

    For large ones the exponential overflows, and they become nan.
    """

    def weights(query, key):
        e = np.exp(query @ _swap(key) / query.shape[-1] ** 0.5)
        return e / e.sum(-1, keepdims=True)

    return _gradients(grad, query, key, value, weights=weights)


@MISTAKES.add(
    "an input is changed",
    hint="Who owns the arrays that your function is called with?",
    more="Print the queries before and after the call. Which line writes into them?",
    section=BACKWARD,
)
def scales_in_place(grad, query, key, value):
    """The gradients are right, but you scale the queries inside the array that came in. The caller still needs it."""
    results = _gradients(grad, query, key, value)
    query *= query.shape[-1] ** -0.5
    return results


# What only some implementations have -------------------------------------------------------------------------------


def _as_asked(grad, query, key, value, **options):
    return attnlib.scaled_dot_product_attention_backward(grad, query, key, value, **options)


@MISTAKES.add(
    "the scale that was given is ignored",
    hint="Your function takes a scale. Which line reads it?",
    more="Call your function with two different scales. Do the results differ?",
    section=BACKWARD,
)
def scale_ignored(grad, query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0):
    """Your function takes a scale, but always uses one over the root of the width."""
    return _as_asked(grad, query, key, value, attn_mask=attn_mask, is_causal=is_causal, q_offset=q_offset)


@MISTAKES.add(
    "the masks are ignored",
    hint="Your function takes a mask. Which line reads it?",
    more="Call your function with a mask and without. Do the results differ?",
    section=BACKWARD,
)
def masks_ignored(grad, query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0):
    """Your function takes masks, but its weights are those of attention without any."""
    return _as_asked(grad, query, key, value, scale=scale)


@MISTAKES.add(
    "the mask is upside down",
    hint="What does True mean in a mask: may attend, or is hidden?",
    more="A key that is hidden gets weight 0 and no gradient. Print the gradient of the values: which rows are 0?",
    section=BACKWARD,
)
def mask_upside_down(grad, query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0):
    """Where the mask is True your function hides the key. Here True means that the query may attend to it."""
    mask = ~attn_mask if attn_mask is not None and attn_mask.dtype == bool else attn_mask
    return _as_asked(grad, query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale, q_offset=q_offset)


@MISTAKES.add(
    "a query that may attend to nothing gives nan",
    hint="What is the largest score of a row in which everything is hidden, and what happens when it is subtracted?",
    more="A query that may attend to nothing has the context 0, whatever the inputs are. So which gradient does it "
    "have?",
    section=BACKWARD,
)
def nan_for_hidden_rows(grad, query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0):
    """Your function is right as long as each query may attend to something.

    Where it may not, zero is divided by zero.
    """
    options = {"attn_mask": attn_mask, "is_causal": is_causal, "scale": scale, "q_offset": q_offset}
    d_query, d_key, d_value = _as_asked(grad, query, key, value, **options)
    if attn_mask is None or attn_mask.dtype != bool or attn_mask.any(axis=-1).all():
        return d_query, d_key, d_value
    hidden = ~attn_mask.any(axis=-1, keepdims=True)
    return np.where(hidden, np.nan, d_query), d_key * np.nan, d_value * np.nan


EXERCISE = Exercise(
    name="scaled_dot_product_attention_backward",
    reference=attnlib.scaled_dot_product_attention_backward,
    outputs={"grad_query": ("T", "D"), "grad_key": ("S", "D"), "grad_value": ("S", "D_v")},
    rubric={NUMBERS: 5, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=BACKWARD,
    advice="Print the weights P, then dP, then dS for the example worked by hand, in that order, and compare each with "
    "the numbers of the task. The rows of dS have to sum to 0. Which table is the first to be wrong?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("attn_mask", "is_causal", "scale", "q_offset"),
    backends=("numpy",),
    solved_by=(
        "torch.autograd.grad",
        "torch.autograd.backward",
        "torch.Tensor.backward",
        "torch.autograd.functional.jacobian",
        "torch.autograd.functional.vjp",
        "torch.autograd.functional.jvp",
        "torch.autograd.functional.hessian",
        "torch.autograd.functional.vhp",
        "torch.autograd.functional.hvp",
        "torch.autograd.forward_ad.make_dual",
        "torch.func.grad",
        "torch.func.grad_and_value",
        "torch.func.jacrev",
        "torch.func.jacfwd",
        "torch.func.hessian",
        "torch.func.linearize",
        "torch.func.vjp",
        "torch.func.jvp",
    ),
)
