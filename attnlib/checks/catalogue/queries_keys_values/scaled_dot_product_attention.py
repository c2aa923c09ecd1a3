"""scaled_dot_product_attention(query, key, value, *, scale=None); masks and weights only where they are offered."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.analytic_gradients import through_scaled_attention
from attnlib.checks.catalogue.draw_qkv import draw_qkv
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.queries_keys_values.sections import (
    AFTERWARDS,
    ALIGNED,
    COMBINED,
    DIVISOR,
    HAND,
    LARGE_NUMBER,
    LOOKUP,
    MASK,
    MATRICES,
    NOTHING,
    ORDER,
    PARTS,
    SHAPES,
    SQUARE_ROOT,
    TRUE,
    TWO,
)
from attnlib.checks.catalogue.self_attention.sections import OVERFLOW, SOFTMAX
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, SCALES, BATCHES, LARGE = "the numbers", "a scale of your own", "batches", "large scores"
UNCHANGED, MASKS, BIASES, CAUSAL, TALL = "inputs unchanged", "masks", "masks of numbers", "causal", "causal, T >= S"
BOTH, OFFSET = "both masks", "offset"
WEIGHTS, EMPTY, EMPTY_AGAIN = "weights", "nothing to attend to", "nothing to attend to, for other reasons"

ALLOWED = np.array([[1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 0, 1], [1, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 1]], dtype=bool)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: what is asked first, then what only those are asked who have such an argument."""
    yield from plain_inputs(rng)
    yield from masked_inputs(rng)


def plain_inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of the arguments that the exercise asks for."""
    hand = {
        "query": np.array([[1.0, 0.0, 2.0], [2.0, 2.0, 2.0]]),
        "key": np.array([[0.0, 1.0, 1.0], [4.0, 4.0, 0.0], [2.0, 3.0, 1.0]]),
        "value": np.array([[1.0, 2.0, 3.0], [2.0, 8.0, 0.0], [2.0, 6.0, 3.0]]),
    }
    yield Case("the first two queries of the chapter's example, its keys and its values", NUMBERS, hand)
    yield Case("4 queries, 7 keys of width 6, values of width 3", NUMBERS, draw_qkv(rng, (), 4, 7, 6, 3))
    yield Case("4 queries, 4 keys of width 6, values of width 3", NUMBERS, draw_qkv(rng, (), 4, 4, 6, 3))
    yield Case("one query and one key", NUMBERS, draw_qkv(rng, (), 1, 1, 3, 2))
    yield Case("vectors in float32", NUMBERS, ascending(draw_qkv(rng, (), 2, 7, 5, 4, np.float32)))
    repeated = with_duplicate_rows(draw_qkv(rng, (), 3, 6, 5, 4), "query", "key", "value")
    yield Case("queries, keys and values, some of them repeated", BATCHES, repeated)
    yield Case("scale=0.3", SCALES, ascending(draw_qkv(rng, (), 3, 5, 7, 2)), {"scale": 0.3})
    yield Case("scale=1", SCALES, draw_qkv(rng, (), 5, 3, 4, 2), {"scale": 1})
    yield Case("scale=0.0", SCALES, draw_qkv(rng, (), 3, 4, 5, 2), {"scale": 0.0})
    yield Case("3 queries and 150 keys", BATCHES, draw_qkv(rng, (), 3, 150, 4, 2))
    yield Case("a batch of 5 (T=3, S=7, D=4)", BATCHES, draw_qkv(rng, (5,), 3, 7, 4, 6))
    yield Case("a batch of 1 (T=2, S=3, D=5)", BATCHES, draw_qkv(rng, (1,), 2, 3, 5, 4))
    split = {name: x.swapaxes(1, 2) for name, x in draw_qkv(rng, (2, 7), 3, 3, 5, 4).items()}
    yield Case(
        "leading dimensions (2, 3), as views of larger arrays", BATCHES, split | {"query": split["query"][:, :, ::2]}
    )
    yield Case("leading dimensions (2, 3), as many queries as keys", BATCHES, draw_qkv(rng, (2, 3), 4, 4, 6, 5))
    yield Case("scores of several thousand, one query positive, one negative", LARGE, thousands(rng))
    yield Case("inputs that must stay as they are", UNCHANGED, ascending(draw_qkv(rng, (), 3, 4, 2, 5)), unchanged=True)


def masked_inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of arguments that the exercise does not ask for."""
    square = ALLOWED[:, 2:]
    additive = np.where(ALLOWED, 0.0, -np.inf)
    padding = np.array([[True, True, False, True, False], [True, False, True, True, True]])[:, None, None]
    yield Case("a boolean attn_mask (T=S=4)", MASKS, draw_qkv(rng, (), 4, 4, 5, 3), {"attn_mask": square})
    yield Case("a boolean attn_mask (T=4, S=6)", MASKS, draw_qkv(rng, (), 4, 6, 5, 3), {"attn_mask": ALLOWED})
    yield Case("a boolean attn_mask (2, 1, 1, 5)", MASKS, draw_qkv(rng, (2, 3), 4, 5, 6, 2), {"attn_mask": padding})
    causal = {"is_causal": True}
    yield Case("is_causal, 3 queries and 5 keys", CAUSAL, draw_qkv(rng, (), 3, 5, 4, 2), causal)
    yield Case("is_causal, and a batch (T=4, S=7)", CAUSAL, draw_qkv(rng, (2,), 4, 7, 5, 3), causal)
    yield Case("is_causal, 5 queries and 5 keys", TALL, draw_qkv(rng, (), 5, 5, 4, 3), causal)
    yield Case("is_causal, 6 queries and 3 keys", TALL, draw_qkv(rng, (2,), 6, 3, 4, 5), causal)
    both = {"attn_mask": ALLOWED, "is_causal": True}
    yield Case("attn_mask and is_causal", BOTH, draw_qkv(rng, (), 4, 6, 5, 3), both)
    offset = {"is_causal": True, "q_offset": 2}
    yield Case("is_causal and q_offset=2", OFFSET, draw_qkv(rng, (), 3, 7, 4, 2), offset)
    yield Case("q_offset=2 without is_causal", OFFSET, draw_qkv(rng, (), 3, 7, 4, 2), {"q_offset": 2})
    pair = ("output", "weights")
    asked = {"return_weights": True}
    yield Case("return_weights", WEIGHTS, draw_qkv(rng, (2,), 3, 5, 4, 6), asked, outputs=pair)
    hidden = asked | {"attn_mask": ALLOWED}
    yield Case("return_weights and attn_mask", WEIGHTS, draw_qkv(rng, (), 4, 6, 5, 3), hidden, outputs=pair)
    nothing = ALLOWED & (np.arange(4) != 1)[:, None]
    yield Case("a query that may attend to nothing", EMPTY, draw_qkv(rng, (), 4, 6, 5, 3), {"attn_mask": nothing})
    additive = np.where(nothing, 0.0, -np.inf)
    empty = "a query that may attend to nothing"
    yield Case(f"{empty}, by -inf", EMPTY_AGAIN, draw_qkv(rng, (), 4, 6, 5, 3), {"attn_mask": additive})
    offset = {"is_causal": True, "q_offset": -1}
    yield Case(f"{empty}, by q_offset=-1", EMPTY_AGAIN, draw_qkv(rng, (), 3, 7, 4, 2), offset)
    yield Case("an attn_mask of 0 and -inf", BIASES, draw_qkv(rng, (), 4, 6, 5, 3), {"attn_mask": additive})
    bias = {"attn_mask": rng.normal(size=(4, 6))}
    yield Case("an attn_mask of floating point numbers", BIASES, draw_qkv(rng, (), 4, 6, 5, 3), bias)


def ascending(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the same with the keys in another order: the later a key, the better it matches the first query."""
    order = np.argsort((arrays["key"] * arrays["query"][0]).sum(-1))
    return arrays | {"key": arrays["key"][order]}


def thousands(rng) -> dict[str, Any]:
    """Return query, key and value whose scores are large: at one query positive, at one negative, at one small.

    The positive ones fall from key to key and the negative ones rise, by far more than what an exponential can hold.
    """
    large = draw_qkv(rng, (), 3, 6, 5, 2)
    direction, lengths = np.ones(5), np.array([[1.5], [1.49], [1.2], [1.0], [0.8], [0.5]])
    large["query"] += np.array([[3000.0], [-3000.0], [0.0]]) * direction
    large["key"] = 0.01 * large["key"] + lengths * direction
    return large


# A right attention whose steps can be exchanged one by one ----------------------------------------------------------


def with_all_options(mistake: Callable[..., Any]) -> Callable[..., Any]:
    """Give a mistake the arguments of the library's function, so that it is asked in every case."""

    def implementation(
        query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0, return_weights=False
    ):
        options = {"attn_mask": attn_mask, "is_causal": is_causal, "q_offset": q_offset}
        return mistake(query, key, value, scale=scale, return_weights=return_weights, **options)

    return implementation


def factor(query, scale):
    """Return what dot products are multiplied by."""
    return query.shape[-1] ** -0.5 if scale is None else scale


def earlier(scores, q_offset=0):
    """Return a causal mask for the scores."""
    return np.tri(scores.shape[-2], scores.shape[-1], q_offset, dtype=bool)


def masked(scores, *, attn_mask=None, is_causal=False, q_offset=0, fill=-np.inf):
    """Return scores with what may not be seen filled."""
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, fill) if attn_mask.dtype == bool else scores + attn_mask
    return np.where(earlier(scores, q_offset), scores, fill) if is_causal else scores


def mix(weights, value, return_weights):
    """Return the weighted sum, and the weights if they are requested."""
    return (weights @ value, weights) if return_weights else weights @ value


def by_scores(scores, value, *, soften=attnlib.softmax, mask=masked, return_weights=False, **masks):
    """Mask, soften and mix."""
    return mix(soften(mask(scores, **masks)), value, return_weights)


def attend(query, key, value, *, scale=None, **steps):
    """Score, mask, soften and mix."""
    return by_scores(attnlib.dot(query, key) * factor(query, scale), value, **steps)


def plain(scores):
    """Return the softmax as it is in the book: a row of -inf gives nan."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


MISTAKES = Mistakes(wrap=with_all_options)


# The scale ----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is the dot product divided by before the softmax, and how does that depend on the width D?",
    more="Take the chapter's example. The first row of dot products is 2, 4, 4. What goes into your softmax?",
    section=SQUARE_ROOT,
)
def no_scale(query, key, value, *, scale, **options):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return attend(query, key, value, scale=1.0 if scale is None else scale, **options)


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="With components of variance 1, the dot product has variance D. What is its standard deviation?",
    more="For D = 4 the divisor is 2, and for D = 100 it is 10. Print yours. Or do you scale twice, in two places?",
    section=SQUARE_ROOT,
)
def scaled_by_width(query, key, value, *, scale, **options):
    """The scores are divided by the width itself, so the weights are flatter than they should be."""
    return attend(query, key, value, scale=1 / query.shape[-1] if scale is None else scale, **options)


@MISTAKES.add(
    "multiplied by the square root of D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    more="Look at the line with the root: a factor, or a divisor? Print the largest score before and after it.",
    section=SQUARE_ROOT,
)
def multiplied_by_root(query, key, value, *, scale, **options):
    """The scores are multiplied by the root of the width, where they should be divided by it."""
    return attend(query, key, value, scale=query.shape[-1] ** 0.5 if scale is None else scale, **options)


@MISTAKES.add(
    "the fourth root of D",
    hint="How often is a root taken in your code, and of what?",
    more="If you scale the query and the key separately, each of them needs the fourth root.",
    section=SQUARE_ROOT,
)
def fourth_root(query, key, value, *, scale, **options):
    """The dot products are divided by the root of the root of the width: half of the scaling is missing."""
    return attend(query, key, value, scale=query.shape[-1] ** -0.25 if scale is None else scale, **options)


@MISTAKES.add(
    "always divided by 8",
    hint="Where does the 8 come from, and what would it be for vectors of width 9?",
    more="In the paper the width is 64, and its root is 8. Your inputs have other widths: read the width off the "
    "arrays.",
    section=DIVISOR,
)
def always_eight(query, key, value, *, scale, **options):
    """The divisor is 8 whatever the width. That is the paper's number, for vectors of width 64."""
    return attend(query, key, value, scale=1 / 8 if scale is None else scale, **options)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Write the shape of the keys with letters. Which of them is under your root?",
    more="Give each key a twin: twice as many keys, of the same width. Should the scores change?",
    section=DIVISOR,
)
def scaled_by_keys(query, key, value, *, scale, **options):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return attend(query, key, value, scale=key.shape[-2] ** -0.5 if scale is None else scale, **options)


@MISTAKES.add(
    "scaled by the number of queries",
    hint="Write the shape of the queries with letters. Which of them is under your root?",
    more="Try one query alone, then the same query together with others. Should its scores change?",
    section=DIVISOR,
)
def scaled_by_queries(query, key, value, *, scale, **options):
    """The scores are divided by the root of T, the number of queries. The width D of the vectors belongs there."""
    return attend(query, key, value, scale=query.shape[-2] ** -0.5 if scale is None else scale, **options)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="There are two widths, D and D_v. Which of them says how many products a score adds up?",
    section=DIVISOR,
)
def scaled_by_value_width(query, key, value, *, scale, **options):
    """The scores are divided by the root of the width of the values. It is the width of the keys that counts."""
    return attend(query, key, value, scale=value.shape[-1] ** -0.5 if scale is None else scale, **options)


@MISTAKES.add(
    "scaled after the softmax",
    hint="What is it that grows with the width, and has to be brought down before the softmax?",
    more="If all values are 1, every output is an average of ones. Which number do you get, and which line divides it?",
    section=SQUARE_ROOT,
)
def scaled_after_softmax(query, key, value, *, scale, **options):
    """The softmax gets the plain dot products, and what comes out of it is divided. The scores need the scaling."""
    return attend(query, key, value, scale=1.0, soften=lambda s: attnlib.softmax(s) * factor(query, scale), **options)


@MISTAKES.add(
    "the output is scaled as well",
    hint="How often do you divide by the root of the width?",
    more="If all values are 1, every output is an average of ones. Which number do you get?",
    section=SQUARE_ROOT,
)
def scaled_output(query, key, value, *, scale, **options):
    """The weights are right, but the output is divided by the root of the width once more."""
    return attend(query, key, value * factor(query, scale), scale=scale, **options)


@MISTAKES.add(
    "the scale is ignored",
    hint="What does your function do with the argument `scale`?",
    more="Call it twice, with two different scales. Which line should make the results differ?",
    section=SQUARE_ROOT,
)
def scale_ignored(query, key, value, *, scale, **options):
    """Without a scale the output is right. But if a scale is passed, the root of the width is used all the same."""
    return attend(query, key, value, **options)


@MISTAKES.add(
    "divided by the scale",
    hint="The docstring says what the dot products are multiplied by. Is that what you do?",
    more="With a scale of 0.3 scores get smaller than the dot products. Do yours?",
    section=SQUARE_ROOT,
)
def divided_by_scale(query, key, value, *, scale, **options):
    """The dot products are divided by `scale`. It is a factor: they are multiplied by it."""
    return by_scores(attnlib.dot(query, key) / (query.shape[-1] ** 0.5 if scale is None else scale), value, **options)


@MISTAKES.add(
    "the scale comes on top of the root",
    hint="By how many factors are the dot products multiplied if the caller passes a scale?",
    more="With scale=1 the softmax should get the plain dot products. Print what it gets from you.",
    section=SQUARE_ROOT,
)
def scale_on_top(query, key, value, *, scale, **options):
    """A scale that is passed replaces the root of the width. In yours both are applied."""
    return by_scores(attnlib.scaled_dot(query, key) * (1.0 if scale is None else scale), value, **options)


@MISTAKES.add(
    "the scale is taken for a width",
    hint="If the caller passes a scale, is there still a root to be taken?",
    more="With scale=0.3 a dot product of 10 becomes 3. Work out what yours becomes.",
    section=SQUARE_ROOT,
)
def scale_as_width(query, key, value, *, scale, **options):
    """You take a root of `scale` and divide by it, as if it were the width. It is the factor itself."""
    width = query.shape[-1] if scale is None else scale
    return by_scores(attnlib.dot(query, key) / width**0.5, value, **options)


@MISTAKES.add(
    "a scale of 0 is treated as no scale",
    hint="What is `scale` if the caller does not pass it, and is that the same as 0?",
    more="In a condition, the number 0 counts as False, just as None does. Test for None with `is None`.",
    section=SQUARE_ROOT,
)
def zero_scale(query, key, value, *, scale, **options):
    """A scale of 0 is a number like any other: all scores become 0. Yours falls back to the root of the width."""
    return attend(query, key, value, scale=scale or None, **options)


# From scores to weights ---------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the columns sum to 1, not the rows",
    hint="Every query has weights of its own that sum to 1. Along which axis of the scores do they lie?",
    more="Print the sums of your weights along both axes. Which of the two should be all ones?",
    section=SOFTMAX,
)
def softmax_over_queries(query, key, value, **options):
    """The softmax made the queries compete for each key. It is the keys that compete for each query."""
    return attend(query, key, value, soften=lambda s: attnlib.softmax(s, axis=-2), **options)


@MISTAKES.add(
    "not scaled, and the columns sum to 1",
    hint="There are two slips, one before the softmax and one in it. Which axis belongs to the keys?",
    more="Print what goes into the softmax, and the sums of what comes out, along both axes.",
    section=HAND,
)
def no_scale_over_queries(query, key, value, *, scale, **options):
    """The dot products are not divided by the root of the width, and the softmax runs over the queries."""
    scale = 1.0 if scale is None else scale
    return attend(query, key, value, scale=scale, soften=lambda s: attnlib.softmax(s, axis=-2), **options)


@MISTAKES.add(
    "divided by D, and the columns sum to 1",
    hint="There are two slips: one in the divisor, one in the axis of the softmax. Which axis belongs to the keys?",
    more="Print what you divide by, and the sums of the weights along both axes.",
    section=HAND,
)
def width_over_queries(query, key, value, *, scale, **options):
    """The dot products are divided by the width, not by its root, and the softmax runs over the queries."""
    scale = 1 / query.shape[-1] if scale is None else scale
    return attend(query, key, value, scale=scale, soften=lambda s: attnlib.softmax(s, axis=-2), **options)


@MISTAKES.add(
    "not scaled, and the weights are not normalised",
    hint="Two divisions are missing: one before the exponential, one after it. What does each of them divide by?",
    more="Print what goes into the exponential, and the sum of each row of weights.",
    section=HAND,
)
def no_scale_not_normalised(query, key, value, *, scale, **options):
    """The dot products are not divided by the root of the width, and their exponentials not by their sum."""
    return attend(query, key, value, scale=1.0 if scale is None else scale, soften=np.exp, **options)


@MISTAKES.add(
    "the softmax runs over the whole table",
    hint="How many sums of 1 should there be: one, or one per query?",
    more="With four queries all your weights should sum to 4. Print their sum.",
    section=SOFTMAX,
)
def softmax_over_all(query, key, value, **options):
    """All weights together sum to 1. Every query should have weights that sum to 1 by themselves."""
    return attend(query, key, value, soften=lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum(), **options)


@MISTAKES.add(
    "the softmax is missing",
    hint="What turns scores, which may be negative, into weights that sum to 1?",
    more="Print what you multiply the values by. Weights are positive, and each row sums to 1.",
    section=HAND,
)
def no_softmax(query, key, value, **options):
    """The scores themselves are used as weights: they may be negative, and nothing makes them sum to 1."""
    return attend(query, key, value, soften=lambda s: s, **options)


@MISTAKES.add(
    "neither scaled nor passed through a softmax",
    hint="There are two steps between the dot products and the weights. Which ones?",
    more="Your output is Q times the transpose of K times V. Compare it with the formula of the chapter.",
    section=MATRICES,
)
def bare_products(query, key, value, *, scale, **options):
    """The plain dot products are used as weights. Divide them by the root of the width, and take the softmax."""
    return attend(query, key, value, scale=1.0 if scale is None else scale, soften=lambda s: s, **options)


@MISTAKES.add(
    "the weights are not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    more="If all values are 1, every output is an average of ones, which is 1. Which numbers do you get?",
    section=SOFTMAX,
)
def not_normalised(query, key, value, **options):
    """The exponentials of the scores are used as weights, but nothing makes them sum to 1."""
    return attend(query, key, value, soften=np.exp, **options)


@MISTAKES.add(
    "the largest weight is 1, not their sum",
    hint="The largest weight of each of your rows is 1. What should the whole row come to?",
    more="Print the sum of each row of your weights. What is missing after the exponential?",
    section=SOFTMAX,
)
def shifted_not_normalised(query, key, value, **options):
    """The exponentials are measured against the largest of their row, but nothing makes them sum to 1."""
    return attend(query, key, value, soften=lambda s: np.exp(s - s.max(-1, keepdims=True)), **options)


@MISTAKES.add(
    "a dimension was lost in the softmax",
    hint="Print the shape of the sum beside that of the exponentials. Is each sum next to its own row?",
    more="A sum along an axis has one dimension less. With as many queries as keys nothing crashes, but the result is "
    "wrong.",
    section=SOFTMAX,
)
def no_keepdims(query, key, value, **options):
    """The sum of each row has one dimension less than the table, so it no longer lines up with the rows."""
    return attend(query, key, value, soften=lambda s: np.exp(s) / np.exp(s).sum(axis=-1), **options)


@MISTAKES.add(
    "divided by the sum, without the exponential",
    hint="Two scores of -1 and 1 sum to 0. What makes every score positive first, and keeps their order?",
    more="Print your weights for random vectors. Are there negative ones among them?",
    section=SOFTMAX,
)
def no_exponential(query, key, value, **options):
    """The scores are divided by their sum. A softmax takes their exponentials first."""
    return attend(query, key, value, soften=lambda s: s / s.sum(-1, keepdims=True), **options)


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other. Does it in yours?",
    more="If all values are 1, every output is an average of ones, which is 1. Which numbers do you get?",
    section=SOFTMAX,
)
def sigmoid(query, key, value, **options):
    """Each score is squashed on its own by a sigmoid, and nothing makes the weights of a row sum to 1."""
    return attend(query, key, value, soften=lambda s: 1 / (1 + np.exp(-s)), **options)


@MISTAKES.add(
    "the sign is reversed",
    hint="Which of two keys should get the larger weight: the one with the larger score, or with the smaller?",
    more="Take one query and a key that equals it, and another that points the other way. Whose value comes out?",
    section=LOOKUP,
)
def reversed_sign(query, key, value, **options):
    """The key that matches least gets the largest weight: there is one minus sign too many."""
    return attend(-query, key, value, **options)


@MISTAKES.add(
    "all or nothing (argmax)",
    hint="The second-best key still gets a share: which function gives it one?",
    more="Your output is always one of the values. In a soft lookup it lies between them.",
    section=LOOKUP,
)
def hard(query, key, value, **options):
    """Each query takes the value of its best key alone. That is a hard lookup, and nothing can be learned from it."""
    return attend(query, key, value, soften=lambda s: np.eye(s.shape[-1], dtype=s.dtype)[s.argmax(-1)], **options)


@MISTAKES.add(
    "all or nothing, and more than one if they tie",
    hint="Which function gives the second-best key a share as well?",
    more="Print the weights of the first query of the chapter's example, where two keys tie. What do they sum to?",
    section=LOOKUP,
)
def hard_with_ties(query, key, value, **options):
    """Each query takes the values of its best keys whole, and nothing of the others. That is a hard lookup."""
    return attend(query, key, value, soften=lambda s: (s == s.max(-1, keepdims=True)).astype(s.dtype), **options)


@MISTAKES.add(
    "divided by the number of keys once more",
    hint="The weights of a query sum to 1 already. What else do you divide by?",
    more="If all values are 1, every output is 1. Which number do you get for five keys?",
    section=LOOKUP,
)
def mean_of_weighted(query, key, value, **options):
    """You take the mean of the weighted values. They should be added up: the weights already make that an average."""
    return attend(query, key, value / value.shape[-2], **options)


@MISTAKES.add(
    "all keys count the same",
    hint="Where in your formula does the query enter the weights?",
    more="Change the query in a call of your own. Does the output change?",
    section=LOOKUP,
)
def uniform(query, key, value, *, scale, **options):
    """Every value gets the same weight, whatever the query: this is the plain mean."""
    return attend(query, key, value, scale=0.0, **options)


@MISTAKES.add(
    "softmax taken twice",
    hint="Count how often exp is applied to each score. Does a helper of yours take the softmax already?",
    more="Print the weights of one query. If they are all nearly equal, look for a second softmax.",
    section=SOFTMAX,
)
def softmax_twice(query, key, value, **options):
    """The softmax of a softmax is nearly uniform, since its scores all lie between 0 and 1."""
    return attend(query, key, value, soften=lambda s: attnlib.softmax(attnlib.softmax(s)), **options)


@MISTAKES.add(
    "cosines as scores",
    hint="Which similarity does the formula use, and which one divides by the lengths of the vectors?",
    more="The divisor is one number for the whole table. It depends on how wide the vectors are, not on how long.",
    section=MATRICES,
)
def cosine_scores(query, key, value, *, scale, **options):
    """The scores are cosines, so the lengths of the vectors are lost. The task asks for scaled dot products."""
    return by_scores(attnlib.cosine(query, key) * (1.0 if scale is None else scale), value, **options)


@MISTAKES.add(
    "cosines, scaled as well",
    hint="What happens to the length of a key in your scores, and what should happen to it?",
    more="Make one key ten times as long, in a call of your own. In scaled dot products its scores grow tenfold.",
    section=MATRICES,
)
def scaled_cosines(query, key, value, *, scale, **options):
    """Queries and keys are made unit vectors before they are compared. Their lengths should count."""
    return by_scores(attnlib.cosine(query, key) * factor(query, scale), value, **options)


# The three parts, and who meets whom --------------------------------------------------------------------------------


@MISTAKES.add(
    "the keys ask, the queries answer",
    hint="A row of the scores belongs to a query. Which of your two factors comes first?",
    more="Write the shapes of both factors one below the other, and the shape of the table they make. Which factor "
    "supplies the rows?",
    section=TWO,
)
def keys_ask(query, key, value, **options):
    """The table of scores has a row for each key. It should have a row for each query, and a column for each key."""
    return attend(key, query, value, **options)


@MISTAKES.add(
    "the keys are not transposed",
    hint="Along which axis of the keys do the components of one key lie, and along which does the product sum?",
    more="Take one query (1, 2) and the keys (3, 0) and (0, 4). The dot products are 3 and 8. What do you add up?",
    section=SHAPES,
)
def no_transpose(query, key, value, *, scale, **options):
    """The product runs over the wrong axis of the keys: it takes one component of all keys, not all of one key."""
    return by_scores(query @ key * factor(query, scale), value, **options)


@MISTAKES.add(
    "the keys are reshaped, not transposed",
    hint="Does each key stay together in your array, or are the numbers read off in another order?",
    more="Print the keys before and after. The first key, a row before, should be the first column now.",
    section=SHAPES,
)
def keys_reshaped(query, key, value, *, scale, **options):
    """A reshape gives the right shape and mixes up the components. Two axes have to change places."""
    turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    return by_scores(query @ turned * factor(query, scale), value, **options)


@MISTAKES.add(
    "queries against queries",
    hint="Which of your three arguments has no part in the scores?",
    more="Change the keys in a call of your own. Does the output change?",
    section=PARTS,
)
def query_with_query(query, key, value, **options):
    """Each query is compared with the other queries. The keys are never looked at."""
    return attend(query, query, value, **options)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your three arguments is never used?",
    more="Change the queries in a call of your own. Does the output change?",
    section=PARTS,
)
def key_with_key(query, key, value, **options):
    """Each key is compared with the other keys. The queries are never looked at."""
    return attend(key, key, value, **options)


@MISTAKES.add(
    "keys are averaged instead of values",
    hint="The keys determine the weights. Which vectors should the weights mix?",
    more="At the party, everybody would take home name tags. Which array holds the presents?",
    section=PARTS,
)
def averages_keys(query, key, value, **options):
    """The weights are right, but they average the keys. The values are never looked at."""
    return attend(query, key, key, **options)


@MISTAKES.add(
    "queries are averaged instead of values",
    hint="What does each query take home: something from those who ask, or from those who are asked?",
    more="At the party, everybody would take home slips. Which array holds the presents?",
    section=PARTS,
)
def averages_queries(query, key, value, **options):
    """The weights are used to mix the queries. They should mix the values."""
    return attend(query, key, query, **options)


@MISTAKES.add(
    "the values are compared",
    hint="What is compared with the query: what a guest is found by, or what a guest hands over?",
    more="Change the values in a call of your own, and print the weights. They should stay as they are.",
    section=PARTS,
)
def values_compared(query, key, value, **options):
    """Queries are compared with the values. What a word hands over has no say in how much attention it gets."""
    return attend(query, value, value, **options)


@MISTAKES.add(
    "keys and values have changed places",
    hint="Which of the two is compared with the query, and which is averaged?",
    more="Compare the order of the arguments in your definition with the task. Query, then key, then value.",
    section=PARTS,
)
def key_and_value_swapped(query, key, value, **options):
    """You compare with the values and average the keys. Keys are there to be found, values to be handed over."""
    return attend(query, value, key, **options)


@MISTAKES.add(
    "the weights are transposed before they mix",
    hint="Row i of the weights belongs to query i. What does row i of your first factor belong to?",
    more="Print the shapes of both factors of your last product. The weights are T by S, the values S by D_v.",
    section=SHAPES,
)
def weights_transposed(query, key, value, **options):
    """The weights are right, but they are transposed before they meet the values."""
    return attend(query, key, value, soften=lambda s: np.swapaxes(attnlib.softmax(s), -1, -2), **options)


@MISTAKES.add(
    "the weights are returned",
    hint="Which of your arrays is the weighted sum of the values?",
    more="The output has the width of the values. Compare that with the shape of what you return.",
    section=MATRICES,
)
def returns_weights(query, key, value, *, return_weights, **options):
    """You return the weights of the values. The task asks for their weighted average."""
    output, weights = attend(query, key, value, return_weights=True, **options)
    return (weights, output) if return_weights else weights


@MISTAKES.add(
    "the scores are returned",
    hint="Two steps come after the scores. Which ones?",
    more="The output has the width of the values. Compare that with the shape of what you return.",
    section=MATRICES,
)
def returns_scores(query, key, value, *, scale, return_weights, **options):
    """You return the scores. They still have to go through a softmax, and the resulting weights average the values."""
    scores = attnlib.dot(query, key) * factor(query, scale)
    return (scores, attnlib.softmax(scores)) if return_weights else scores


@MISTAKES.add(
    "two arrays are returned",
    hint="How many arrays does the docstring promise?",
    more="The task asks only for the output, unless the caller wants the weights too. Look at your return line.",
    section=MATRICES,
)
def returns_both(query, key, value, *, return_weights, **options):
    """You return the weights along with the output. The task asks only for the output."""
    return attend(query, key, value, return_weights=True, **options)


@MISTAKES.add(
    "the query is added to the output",
    hint="Is there a sum in the formula besides the weighted one?",
    more="Take one key and one value. Each query must get exactly that value.",
    section=MATRICES,
)
def query_added(query, key, value, **options):
    """Something is added to the weighted sum. A block of a transformer does that later; attention itself does not."""
    output, weights = attend(query, key, value, **options | {"return_weights": True})
    total = output + query
    return (total, weights) if options["return_weights"] else total


# Batches, large scores, in place ------------------------------------------------------------------------------------


@MISTAKES.add(
    "the softmax axis is counted from the front",
    hint="Which axis number means the last one, however many there are?",
    more="Write down the shape of the scores for a batch of 2. Which letter is where your axis points?",
    section=SHAPES,
)
def softmax_from_front(query, key, value, **options):
    """For a matrix axis 1 is the last one. With a batch in front it is another, and the wrong weights sum to 1."""
    return attend(query, key, value, soften=lambda s: attnlib.softmax(s, axis=1), **options)


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, whatever comes before?",
    more="Write down the shape of a query in a batch of 2. Which letter is at the place that you read?",
    section=SHAPES,
)
def width_from_front(query, key, value, *, scale, **options):
    """For a matrix shape[1] is the width. With a batch in front it is the number of queries."""
    return attend(query, key, value, scale=query.shape[1] ** -0.5 if scale is None else scale, **options)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shape of the keys before and after they are transposed. The batch should still come first.",
    section=SHAPES,
)
def full_transpose(query, key, value, *, scale, **options):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return by_scores(query @ key.T * factor(query, scale), value, **options)


@MISTAKES.add(
    "the heads are taken for words",
    hint="In `(..., T, D)`, which axis counts the words, whatever comes before?",
    more="With leading dimensions (2, 3) there are 2 sentences with 3 heads each. Print the shape of your scores.",
    section=SHAPES,
)
def heads_as_words(query, key, value, **options):
    """With two leading dimensions you compare along the second of them. Words are in the second-to-last dimension."""
    if query.ndim < 4:
        return attend(query, key, value, **options)
    swapped = (np.swapaxes(x, -2, -3) for x in (query, key, value))
    return np.swapaxes(attend(*swapped, **options | {"attn_mask": None, "return_weights": False}), -2, -3)


@MISTAKES.add(
    "the softmax overflows",
    hint="The softmax is the same if you subtract a number from all scores of a row. Which number makes exp safe?",
    more="Print the largest score of the case. A computer's exp of a thousand is infinite, and infinity over infinity "
    "is nan.",
    section=OVERFLOW,
)
def overflow(query, key, value, **options):
    """The weights are right for small scores. For large ones exp overflows, and the weights become nan."""
    return attend(query, key, value, soften=lambda s: np.exp(s) / np.exp(s).sum(-1, keepdims=True), **options)


@MISTAKES.add(
    "the softmax uses one maximum for the whole table",
    hint="Does each row of the scores have a maximum of its own in your softmax?",
    more="Print the exponentials of the row with the smallest scores. Are they all 0?",
    section=OVERFLOW,
)
def global_shift(query, key, value, **options):
    """One maximum for all queries shifts a row of much smaller scores so far down that it becomes 0/0: nan."""

    def soften(scores):
        e = np.exp(scores - scores.max())
        return e / e.sum(axis=-1, keepdims=True)

    return attend(query, key, value, soften=soften, **options)


@MISTAKES.add(
    "the maximum never falls below 0",
    hint="What is the largest of some scores that are all negative?",
    more="Print the exponentials of a row whose scores are all about -3000. Which of them should be 1?",
    section=OVERFLOW,
)
def maximum_at_least_zero(query, key, value, **options):
    """A 0 takes part in the search for the maximum: a row of very negative scores becomes 0/0, which is nan."""

    def soften(scores):
        e = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), 0.0))
        return e / e.sum(axis=-1, keepdims=True)

    return attend(query, key, value, soften=soften, **options)


@MISTAKES.add(
    "nan is only hidden",
    hint="Which key has the largest score in that row, and what weight did it get from you?",
    more="Replacing nan hides the overflow. Find the line where the infinity was made.",
    section=OVERFLOW,
)
def painted_over(query, key, value, **options):
    """Where exp overflowed, nan was replaced by a number. That hides the overflow, and the weights are still wrong."""
    soften = lambda s: np.nan_to_num(np.exp(s) / np.exp(s).sum(-1, keepdims=True))  # noqa: E731
    return attend(query, key, value, soften=soften, **options)


@MISTAKES.add(
    "the scores are cut off",
    hint="Two different large scores become the same number once they are cut off. Which operation keeps them apart?",
    more="Print the row of scores before and after you limit it. The largest two should still differ.",
    section=OVERFLOW,
)
def cut_off(query, key, value, **options):
    """Scores beyond a limit are cut down to it, so different large scores get the same weight."""
    return attend(query, key, value, soften=lambda s: attnlib.softmax(np.clip(s, -500, 500)), **options)


@MISTAKES.add(
    "changes the array it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the query before and after the call. The line that scales it is the one to look at.",
    section=HAND,
)
def in_place(query, key, value, *, scale, **options):
    """The output is right, but the caller's query is scaled too: you wrote into it."""
    query *= factor(query, scale)
    return attend(query, key, value, scale=1.0, **options)


@MISTAKES.add(
    "changes the keys it was given",
    hint="Which of your operators write into the array that they are given?",
    more="Print the keys before and after the call. The line that scales them is the one to look at.",
    section=HAND,
)
def in_place_key(query, key, value, *, scale, **options):
    """The output is right, but the caller's keys are scaled too: you wrote into them."""
    key *= factor(query, scale)
    return attend(query, key, value, scale=1.0, **options)


# Masks: only for functions that have such an argument ---------------------------------------------------------------


@MISTAKES.add(
    "the mask is ignored",
    hint="Where in your code does the argument `attn_mask` come in?",
    more="Call your function with a mask and without one. Do the outputs differ?",
    section=MASK,
)
def mask_ignored(query, key, value, *, attn_mask, **options):
    """The function has an argument for a mask, and the output is the same with it as without."""
    return attend(query, key, value, **options)


@MISTAKES.add(
    "the mask is upside down",
    hint="In this course, does True mean that a query may attend, or that it may not?",
    more="Take a mask that is True at one single key. Which value should come out, exactly?",
    section=TRUE,
)
def mask_inverted(query, key, value, *, attn_mask, **options):
    """Your queries attend exactly where the mask is False. True says where a query may attend."""
    inverted = ~attn_mask if attn_mask is not None and attn_mask.dtype == bool else attn_mask
    return attend(query, key, value, attn_mask=inverted, **options)


@MISTAKES.add(
    "True is added as a 1",
    hint="What is a score plus True, and does that forbid anything?",
    more="Print a row of scores before and after the mask. A forbidden place should get the weight 0.",
    section=TRUE,
)
def bool_added(query, key, value, *, attn_mask, **options):
    """The boolean mask is added as if it held numbers: allowed scores grow by 1, and nothing is forbidden."""
    bias = None if attn_mask is None else attn_mask.astype(query.dtype)
    return attend(query, key, value, attn_mask=bias, **options)


@MISTAKES.add(
    "forbidden scores become 0",
    hint="What is the exponential of a score of 0?",
    more="Print the weights. At a forbidden place there should be 0, and there is not. Which score gives the weight 0?",
    section=MASK,
)
def score_of_zero(query, key, value, **options):
    """Forbidden scores are set to 0, and exp(0) is 1: such keys still get a weight. Their scores must be -inf."""

    def mask(scores, *, attn_mask=None, **causal):
        return masked(masked(scores, attn_mask=attn_mask, fill=0.0), **causal)

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "weights are set to 0 after the softmax",
    hint="What do the weights of a row sum to after your mask?",
    more="If all values are 1, the output of a query that may attend to something is 1. What is yours?",
    section=AFTERWARDS,
)
def masked_after_softmax(query, key, value, **options):
    """The mask comes after the softmax, so the weights that are left sum to less than 1. It belongs on the scores."""

    def weigh(scores, *, attn_mask=None, **causal):
        weights = attnlib.softmax(masked(scores, **causal))
        return weights if attn_mask is None else weights * np.exp(masked(np.zeros_like(scores), attn_mask=attn_mask))

    return attend(query, key, value, mask=weigh, soften=lambda w: w, **options)


@MISTAKES.add(
    "a mask of numbers is taken for True and False",
    hint="Which two kinds of mask are there, and what is done with the one of floating point numbers?",
    more="Where a mask of numbers holds 0, nothing changes; where it holds -inf, nothing comes through. Test both.",
    section=TRUE,
)
def float_as_bool(query, key, value, *, attn_mask, **options):
    """Numbers other than 0 are taken for True. A mask of floating point numbers should be added to the scores."""
    allowed = None if attn_mask is None else attn_mask.astype(bool)
    return attend(query, key, value, attn_mask=allowed, **options)


@MISTAKES.add(
    "masks of numbers are ignored",
    hint="What does your function do if the mask is not boolean?",
    more="Pass a mask of numbers that is 5 at one key and 0 elsewhere. That key should get much more weight.",
    section=TRUE,
)
def float_ignored(query, key, value, *, attn_mask, **options):
    """A boolean mask is applied, but one of floating point numbers is not. It should be added to the scores."""
    ignored = attn_mask is None or attn_mask.dtype != bool
    return attend(query, key, value, attn_mask=None if ignored else attn_mask, **options)


@MISTAKES.add(
    "a mask of numbers is multiplied",
    hint="A mask of 0 should change nothing. Which operation with 0 changes nothing?",
    more="Print a row of scores before and after a mask that holds 0 everywhere.",
    section=MASK,
)
def float_multiplied(query, key, value, *, attn_mask, **options):
    """The scores are multiplied by a mask of floating point numbers. It should be added to them."""

    def mask(scores, **masks):
        return masked(scores * attn_mask, **masks)

    if attn_mask is None or attn_mask.dtype == bool:
        return attend(query, key, value, attn_mask=attn_mask, **options)
    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "the mask is scaled with the scores",
    hint="Which comes first, the division by the root of the width or the mask?",
    more="With -inf the order makes no difference. Pass a mask of small numbers, and follow one of them.",
    section=ORDER,
)
def mask_scaled(query, key, value, *, scale, **options):
    """A mask of numbers is added before the division, so it is divided as well. Add it to the scaled scores."""

    def mask(scores, **masks):
        return masked(scores, **masks) * factor(query, scale)

    return attend(query, key, value, scale=1.0, mask=mask, **options)


@MISTAKES.add(
    "the mask is transposed",
    hint="Row i of a mask belongs to query i. Is that so after all your lines?",
    more="Print your mask beside the one that was passed. Are rows and columns where they were?",
    section=MASK,
)
def mask_transposed(query, key, value, *, attn_mask, **options):
    """Rows and columns of the mask are swapped. A row belongs to a query, a column to a key, as in the scores."""
    turned = None if attn_mask is None else np.swapaxes(attn_mask, -1, -2)
    return attend(query, key, value, attn_mask=turned, **options)


def without_diagonal(scores, *, attn_mask=None, is_causal=False, q_offset=0, fill=-np.inf):
    """Mask, and forbid a query its own position too."""
    return masked(scores, attn_mask=attn_mask, is_causal=is_causal, q_offset=q_offset - 1, fill=fill)


@MISTAKES.add(
    "is_causal is ignored",
    hint="Where in your code does the argument `is_causal` come in?",
    more="Change the last value in a call of your own. Does the first output change, although it comes later?",
    section=COMBINED,
)
def causal_ignored(query, key, value, *, is_causal, **options):
    """The function has an argument `is_causal`, and the output is the same with it as without."""
    return attend(query, key, value, **options)


@MISTAKES.add(
    "what comes later gets a score of 0",
    hint="What weight does a score of 0 lead to?",
    more="Print the first row of the weights. There should be a single 1 in it.",
    section=COMBINED,
)
def causal_score_of_zero(query, key, value, **options):
    """The scores of what comes later are set to 0, and exp(0) is 1: it still gets a weight. They must be -inf."""

    def mask(scores, *, attn_mask=None, **causal):
        return masked(masked(scores, **causal, fill=0.0), attn_mask=attn_mask)

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "what comes later is set to 0 after the softmax",
    hint="What do the weights of the first row sum to in your code?",
    more="If all values are 1, every output is 1. What is your first one?",
    section=AFTERWARDS,
)
def causal_after_softmax(query, key, value, **options):
    """The causal rule comes after the softmax, so the weights that are left sum to less than 1."""

    def weigh(scores, *, attn_mask=None, is_causal=False, q_offset=0):
        weights = attnlib.softmax(masked(scores, attn_mask=attn_mask))
        return np.where(earlier(scores, q_offset), weights, 0.0) if is_causal else weights

    return attend(query, key, value, mask=weigh, soften=lambda w: w, **options)


@MISTAKES.add(
    "the diagonal is masked as well",
    hint="May a word attend to itself?",
    more="The first query has no key before it. What is left for it if it may not attend to its own position?",
    section=COMBINED,
)
def causal_without_self(query, key, value, **options):
    """Each query sees only what comes before it. It may attend to its own position too."""
    return attend(query, key, value, mask=without_diagonal, **options)


@MISTAKES.add(
    "the diagonal is masked, and the first row is nan",
    hint="May a word attend to itself? And what is left for the first one if it may not?",
    more="Print the first row of the scores after the mask. All of it is -inf, and the softmax of that is nan.",
    section=COMBINED,
)
def causal_without_self_nan(query, key, value, **options):
    """Each query sees only what comes before it, so the first sees nothing. It may attend to its own position too."""
    soften = plain if options["is_causal"] else attnlib.softmax
    return attend(query, key, value, mask=without_diagonal, soften=soften, **options)


@MISTAKES.add(
    "the diagonal is masked, and the first row is flat",
    hint="May a word attend to itself? And why does the first query see everything in your code?",
    more="Print the first row of the scores after the mask. If all are equally low, all get the same weight.",
    section=COMBINED,
)
def causal_without_self_flat(query, key, value, **options):
    """Each query sees only what comes before it, so the first row is low throughout, and its weights are equal."""

    def mask(scores, *, attn_mask=None, **causal):
        return without_diagonal(masked(scores, attn_mask=attn_mask), **causal, fill=-1e9)

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "the diagonal is masked, and the first row sees all",
    hint="May a word attend to itself? And which keys does the first query see in your code?",
    more="If the same number is taken from all scores of a row, the softmax does not notice. Print the first row.",
    section=COMBINED,
)
def causal_without_self_open(query, key, value, **options):
    """Each query sees only what comes before it, and the first row is lowered throughout, which changes nothing."""

    def mask(scores, *, attn_mask=None, **causal):
        return masked(scores, attn_mask=attn_mask) + without_diagonal(np.zeros_like(scores), **causal, fill=-1e6)

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "one step into the future",
    hint="May query i see key i + 1?",
    more="Change the second value in a call of your own. Does the first output change?",
    section=COMBINED,
)
def causal_one_late(query, key, value, *, q_offset, **options):
    """Each query sees one key too many: the one that comes right after it."""
    return attend(query, key, value, q_offset=q_offset + 1, **options)


@MISTAKES.add(
    "the causal mask is transposed",
    hint="Which half of the table of scores is the past: below the diagonal, or above it?",
    more="The first query may attend to the first key alone. How many keys does it see in your code?",
    section=COMBINED,
)
def causal_transposed(query, key, value, **options):
    """Each query sees itself and what comes after it. It should see itself and what comes before."""

    def mask(scores, *, attn_mask=None, is_causal=False, q_offset=0):
        scores = masked(scores, attn_mask=attn_mask)
        return np.where(earlier(scores, q_offset - 1), -np.inf, scores) if is_causal else scores

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "the future is kept, the past is masked",
    hint="Does your mask say what may be seen, or what may not?",
    more="The last query may attend to everything. How many keys does it see in your code?",
    section=TRUE,
)
def causal_inverted(query, key, value, **options):
    """The causal mask is upside down: each query sees exactly what comes after it."""

    def mask(scores, *, attn_mask=None, is_causal=False, q_offset=0):
        scores = masked(scores, attn_mask=attn_mask)
        return np.where(earlier(scores, q_offset), -np.inf, scores) if is_causal else scores

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "the causal mask is aligned at the end",
    hint="If there are more keys than queries, which key should the first query be aligned with: the first, or a later "
    "one?",
    more="With 3 queries and 5 keys, write the causal table on paper: the first row has one place that is allowed.",
    section=ALIGNED,
)
def causal_at_the_end(query, key, value, *, q_offset, **options):
    """The last query is aligned with the last key. Without an offset, the first should be aligned with the first."""
    return attend(query, key, value, q_offset=q_offset + key.shape[-2] - query.shape[-2], **options)


@MISTAKES.add(
    "the mask or the causal rule, where both should hold",
    hint="If the mask allows a key and the causal rule does not: may the query attend?",
    more="Everything that limits who may attend is combined in one way. Which word joins the rules: “and” or “or”?",
    section=COMBINED,
)
def mask_or_causal(query, key, value, **options):
    """A key counts if the mask or the causal rule allows it. It should count only if both do."""

    def mask(scores, *, attn_mask=None, is_causal=False, q_offset=0):
        if attn_mask is not None and is_causal and attn_mask.dtype == bool:
            return np.where(attn_mask | earlier(scores, q_offset), scores, -np.inf)
        return masked(scores, attn_mask=attn_mask, is_causal=is_causal, q_offset=q_offset)

    return attend(query, key, value, mask=mask, **options)


@MISTAKES.add(
    "is_causal replaces the mask",
    hint="What happens to the mask if the caller passes both?",
    more="Pass a mask that forbids the first key to every query, and is_causal too. Does the second query look at the "
    "first key?",
    section=COMBINED,
)
def causal_alone(query, key, value, *, attn_mask, is_causal, **options):
    """With is_causal the mask is dropped. A key counts only if both allow it."""
    return attend(query, key, value, attn_mask=None if is_causal else attn_mask, is_causal=is_causal, **options)


@MISTAKES.add(
    "the mask replaces is_causal",
    hint="What happens to is_causal if the caller passes both?",
    more="Pass a mask that allows everything, and is_causal. Does the first query see only the first key?",
    section=COMBINED,
)
def mask_alone(query, key, value, *, attn_mask, is_causal, **options):
    """With a mask the causal rule is dropped. A key counts only if both allow it."""
    return attend(query, key, value, attn_mask=attn_mask, is_causal=is_causal and attn_mask is None, **options)


@MISTAKES.add(
    "the offset is ignored",
    hint="Where is the first query if q_offset is 2?",
    more="With q_offset=2 the first query may see three keys. How many does it see in your code?",
    section=ALIGNED,
)
def offset_ignored(query, key, value, *, q_offset, **options):
    """The output is the same for every q_offset. It should move the queries along the keys."""
    return attend(query, key, value, **options)


@MISTAKES.add(
    "the offset goes the wrong way",
    hint="Does a larger offset let a query see more keys, or fewer?",
    more="With q_offset=2 the first query may see three keys. Does yours see any?",
    section=ALIGNED,
)
def offset_backwards(query, key, value, *, q_offset, **options):
    """The offset moves the queries towards the start. It should say how far after the first key the first query is."""
    return attend(query, key, value, q_offset=-q_offset, **options)


@MISTAKES.add(
    "the offset goes the wrong way, and some rows are nan",
    hint="With a larger offset a query sees more keys. In your code it sees fewer, or none. Which sign is it?",
    more="With q_offset=2 the first query may see three keys. Print its row of scores after the mask.",
    section=ALIGNED,
)
def offset_backwards_nan(query, key, value, *, q_offset, **options):
    """The offset moves the queries towards the start, where there is nothing to see.

    It should move them to later keys.
    """
    soften = plain if q_offset and options["is_causal"] else attnlib.softmax
    return attend(query, key, value, q_offset=-q_offset, soften=soften, **options)


@MISTAKES.add(
    "the weights are never returned",
    hint="What changes in your function if return_weights is True?",
    more="With return_weights the function returns two arrays: the output, then the weights.",
    section=MATRICES,
)
def weights_withheld(query, key, value, *, return_weights, **options):
    """The function has an argument return_weights, and returns the output alone all the same."""
    return attend(query, key, value, **options)


@MISTAKES.add(
    "output and weights are in the wrong order",
    hint="Which of the two comes first if both are returned?",
    more="Both of your arrays are right. Look at the line that returns them.",
    section=MATRICES,
)
def weights_first(query, key, value, *, return_weights, **options):
    """Both arrays are right, but the weights come first. The task asks for the output first."""
    result = attend(query, key, value, return_weights=return_weights, **options)
    return result[::-1] if return_weights else result


@MISTAKES.add(
    "scores are returned as weights",
    hint="Which of your arrays has rows that sum to 1?",
    more="Print the second array that you return. Are there negative numbers in it?",
    section=HAND,
)
def scores_returned(query, key, value, *, scale, return_weights, **options):
    """The output is right, but the second array holds the scores before the softmax, not the weights."""
    output = attend(query, key, value, scale=scale, **options)
    return (output, attnlib.dot(query, key) * factor(query, scale)) if return_weights else output


@MISTAKES.add(
    "the weights are returned without the mask",
    hint="Did the mask change the weights that you return, or only those that you used?",
    more="Print the returned weights of a masked query. At a forbidden key there must be 0.",
    section=MASK,
)
def weights_unmasked(query, key, value, *, scale, return_weights, **options):
    """The output is right, but the weights returned with it are those from before the mask."""
    output = attend(query, key, value, scale=scale, **options)
    weights = attnlib.softmax(attnlib.dot(query, key) * factor(query, scale))
    return (output, weights) if return_weights else output


@MISTAKES.add(
    "nan where there is nothing to attend to",
    hint="What does your softmax make of a row that holds -inf throughout?",
    more="The maximum of such a row is -inf, and -inf minus -inf is nan. Which output should that query get?",
    section=NOTHING,
)
def nan_for_nothing(query, key, value, **options):
    """A query that may attend to nothing gets nan. Its output should be 0."""
    return attend(query, key, value, soften=plain, **options)


@MISTAKES.add(
    "everything, where there is nothing to attend to",
    hint="If all scores of a row are equally low, what are its weights?",
    more="Print the weights of a query that may attend to nothing. They sum to 1, over keys that are all forbidden.",
    section=LARGE_NUMBER,
)
def mean_for_nothing(query, key, value, **options):
    """A query that may attend to nothing gets the mean of all values: a large negative number is not -inf."""
    fill = {"mask": lambda s, **masks: masked(s, **masks, fill=-1e9)}
    return attend(query, key, value, soften=plain, **fill, **options)


@MISTAKES.add(
    "no mask, where there is nothing to attend to",
    hint="If the same number is added to all scores of a row, what becomes of its softmax?",
    more="Print the weights of a query that may attend to nothing, with the mask and without it. Are they the same?",
    section=LARGE_NUMBER,
)
def unmasked_for_nothing(query, key, value, **options):
    """A query that may attend to nothing is not masked at all: all of its scores are lowered by the same number."""

    def mask(scores, *, attn_mask=None, is_causal=False, q_offset=0):
        if attn_mask is not None:
            scores = scores + (np.where(attn_mask, 0, -1e6) if attn_mask.dtype == bool else attn_mask)
        return scores + np.where(earlier(scores, q_offset), 0, -1e6) if is_causal else scores

    return attend(query, key, value, mask=mask, soften=plain, **options)


@MISTAKES.add(
    "the square root of a given scale is taken",
    hint="If the caller passes scale=0.3, what should the dot products be multiplied by?",
    more="Your result is right for None, and for 1 as well. Which step do these two hide?",
    section=HAND,
)
def root_of_scale(query, key, value, *, scale, **options):
    """You take the square root of the given scale. Use a scale as it is; only the width needs a square root."""
    return attend(query, key, value, scale=None if scale is None else scale**0.5, **options)


@MISTAKES.add(
    "the last key is left out of the average",
    hint="How many values does your sum add up, and how many are there?",
    more="Give the last key a score far above all others. What should come out then?",
    section=HAND,
)
def last_key_lost(query, key, value, *, return_weights, **options):
    """The weights are right, but the weighted sum stops before the last value."""
    _, weights = attend(query, key, value, return_weights=True, **options)
    output = weights[..., :-1] @ value[..., :-1, :]
    return (output, weights) if return_weights else output


@MISTAKES.add(
    "the later keys are hidden, although the task does not ask for it",
    hint="Which keys may the first query attend to, by the formula of the task?",
    more="Print the weights. All weights above the diagonal are 0: which line makes them 0, and what is it for?",
    section=MATRICES,
)
def causal_unasked(query, key, value, *, is_causal, **options):
    """Each query sees only the keys up to its own position. That is for language models; here it may see all."""
    return attend(query, key, value, is_causal=True, **options)


@MISTAKES.add(
    "always divided by the root of 3",
    hint="Where does the 3 come from, and what would it be for vectors of width 5?",
    more="In the chapter's example the width is 3. Your inputs have other widths: read the width off the arguments.",
    section=DIVISOR,
)
def always_root_of_three(query, key, value, *, scale, **options):
    """The divisor is the root of 3 whatever the width. That is right only for the chapter's example."""
    return attend(query, key, value, scale=3**-0.5 if scale is None else scale, **options)


@MISTAKES.add(
    "a scale that is a whole number is ignored",
    hint="What does your function do with scale=1, and what with scale=1.0?",
    more="A number can be an int or a float, and both are scales. Ask only whether there is a scale at all.",
    section=SQUARE_ROOT,
)
def whole_scale_ignored(query, key, value, *, scale, **options):
    """A scale such as 1 or 2 is replaced by the default. Whether a number has a decimal point makes no difference."""
    return attend(query, key, value, scale=scale if isinstance(scale, float) else None, **options)


@MISTAKES.add(
    "the query is added to the output where it fits",
    hint="Is there a sum in the formula besides the weighted one?",
    more="Take one key and one value. Each query must get exactly that value, whatever the widths are.",
    section=MATRICES,
)
def query_added_where_it_fits(query, key, value, *, return_weights, **options):
    """If output and query have the same shape, you add the two. A transformer block does that; attention does not."""
    output, weights = attend(query, key, value, return_weights=True, **options)
    output = output + query if output.shape == query.shape else output
    return (output, weights) if return_weights else output


@MISTAKES.add(
    "a key that comes twice counts once",
    hint="In “very very good”, how many keys are there?",
    more="Give the same key twice, with two different values. Which values should be in the output?",
    section=LOOKUP,
)
def copies_dropped(query, key, value, **options):
    """Of equal keys, only the first is used. Each of them has a weight and a value of its own."""
    if key.ndim == 2:
        first = np.sort(np.unique(key, axis=0, return_index=True)[1])
        key, value = key[first], value[first]
    return attend(query, key, value, **options)


@MISTAKES.add(
    "the values lack the axis of the queries",
    hint="In the product of weights and values, what are the axes of each, counted from the end?",
    more="For a batch of 5, write the shapes of your two factors one below the other, aligned on the right. Which axis "
    "of the values is below the queries of the weights?",
    section=SHAPES,
)
def values_without_queries(query, key, value, *, return_weights, **options):
    """Weights and values line up for matrices. In a batch, the sequences of the values line up with the queries."""
    _, weights = attend(query, key, value, return_weights=True, **options)
    output = (weights[..., None] * value).sum(axis=-2)
    return (output, weights) if return_weights else output


@MISTAKES.add(
    "the result is only as wide as the queries",
    hint="How wide is a row of the result: as wide as a query, or as wide as a value?",
    more="You add to an array that you made beforehand. Which sizes did you give it, and from which argument does its "
    "last size come?",
    section=SHAPES,
)
def as_wide_as_the_query(query, key, value, *, return_weights, **options):
    """You write into an array that is as wide as the queries. A weighted sum of values is as wide as the values."""
    output, weights = attend(query, key, value, return_weights=True, **options)
    output = np.zeros_like(query) + output
    return (output, weights) if return_weights else output


EXERCISE = Exercise(
    name="scaled_dot_product_attention",
    reference=attnlib.scaled_dot_product_attention,
    outputs={"output": ("T", "D_v")},
    rubric={
        NUMBERS: 8,
        SCALES: 3,
        BATCHES: 4,
        LARGE: 2,
        UNCHANGED: 2,
    },
    section=MATRICES,
    advice="Take the chapter's example and its table of every step. Print your scores, your weights and your output "
    "one after the other, with their shapes. Which is the first to differ from the book?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("attn_mask", "is_causal", "q_offset", "return_weights"),
    analytic_gradients=through_scaled_attention,
    solved_by=ATTENTION_FUNCTIONS,
)
