"""More answers to the exercises of chapter 3, queries, keys and values: written from the notebook alone."""

import math
from collections import namedtuple

import numpy as np
import torch
import torch.nn.functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ---- stand-ins for what the notebook has at this point -------------------------------------------------------------


def softmax(x, axis=-1):
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def scaled_dot(query, key, *, scale=None):
    """The student's own function of task 2, right."""
    products = query @ np.swapaxes(key, -1, -2)
    return products / np.sqrt(query.shape[-1]) if scale is None else products * scale


X = np.array([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
W_Q = np.array([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
W_K = np.array([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
W_V = np.array([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
Q, K, V = X @ W_Q, X @ W_K, X @ W_V

# =====================================================================================================================
# Task 2: scaled_dot
# =====================================================================================================================


@answer("scaled_dot", "numpy", "root of T", "wrong", "The root is taken of the number of queries, not of the width.")
def sd_w1(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)  # (..., T, S)
    if scale is None:
        scale = 1 / np.sqrt(query.shape[-2])
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "root of S from the products",
    "wrong",
    "The last size of the products is the number of keys, not the width.",
)
def sd_w2(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)  # (..., T, S)
    *_, T, D = products.shape
    return products * (scale if scale is not None else D**-0.5)


@answer(
    "scaled_dot",
    "numpy",
    "shape[1] is the width",
    "wrong",
    "query.shape[1] is the width only without a batch; with one it is another size.",
)
def sd_w3(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)  # (..., T, S)
    if scale is None:
        return products / np.sqrt(query.shape[1])
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "scale or default",
    "wrong",
    "scale=0 was chosen by the caller but is replaced by the default.",
)
def sd_w4(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    return products * (scale or 1 / math.sqrt(key.shape[-1]))


@answer(
    "scaled_dot", "numpy", "divides by scale", "wrong", "The products are to be multiplied by scale, not divided by it."
)
def sd_w5(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = np.sqrt(query.shape[-1])
    return products / scale


@answer(
    "scaled_dot",
    "numpy",
    "root and scale both",
    "wrong",
    "With a scale of the caller the products are still divided by the root: by nothing else, says the text.",
)
def sd_w6(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scores = products / np.sqrt(query.shape[-1])
    if scale is not None:
        scores = scores * scale
    return scores


@answer("scaled_dot", "numpy", "divides by D", "wrong", "Divides by D, the root is missing.")
def sd_w7(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    D = query.shape[-1]
    return products * scale if scale is not None else products / D


@answer("scaled_dot", "numpy", "floor division", "wrong", "1 // sqrt(D) is 0 for every D above 1, so all scores are 0.")
def sd_w8(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 // np.sqrt(query.shape[-1])
    return products * scale


@answer(
    "scaled_dot", "numpy", "whole-number root", "wrong", "math.isqrt rounds the root down: right only if D is a square."
)
def sd_w9(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    d_k = query.shape[-1]
    factor = 1.0 / math.isqrt(d_k) if scale is None else scale
    return factor * products


@answer(
    "scaled_dot",
    "numpy",
    "rounded like the example",
    "wrong",
    "The scores are rounded to four digits; the numbers are no longer the scores.",
)
def sd_w10(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / query.shape[-1] ** 0.5
    return np.round(products * scale, 4)


@answer(
    "scaled_dot",
    "numpy",
    "only float scales",
    "wrong",
    "A whole number as scale, like 2, is not recognised and replaced by the default.",
)
def sd_w11(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if not isinstance(scale, float):
        scale = 1 / np.sqrt(query.shape[-1])
    return products * scale


@answer("scaled_dot", "numpy", "scales the caller's query", "wrong", "query *= ... changes the array of the caller.")
def sd_w12(query, key, *, scale=None):
    if scale is None:
        scale = 1 / np.sqrt(query.shape[-1])
    query *= scale
    return query @ np.swapaxes(key, -1, -2)


@answer(
    "scaled_dot",
    "numpy",
    "both scaled by the full factor",
    "wrong",
    "Query and key are each multiplied by the whole factor, so the products get its square.",
)
def sd_w13(query, key, *, scale=None):
    factor = scale if scale is not None else 1 / np.sqrt(query.shape[-1])
    return (query * factor) @ np.swapaxes(key * factor, -1, -2)


@answer(
    "scaled_dot",
    "numpy",
    "cosine similarity",
    "wrong",
    "Divides by the lengths of the vectors: that is a cosine, not a scaled product.",
)
def sd_w14(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is not None:
        return products * scale
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return products / lengths


@answer("scaled_dot", "numpy", "no return", "wrong", "The scores are computed but never returned.")
def sd_w15(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)  # (..., T, S)
    if scale is None:
        scores = products / np.sqrt(query.shape[-1])
    else:
        scores = products * scale


@answer(
    "scaled_dot",
    "numpy",
    "width of the notebook's Q",
    "wrong",
    "Reads the width from the Q of the notebook instead of the argument: right only for width 3.",
)
def sd_w16(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / np.sqrt(Q.shape[-1])
    return products * scale


@answer("scaled_dot", "numpy", "scale under the root", "wrong", "Takes scale for the number under the root.")
def sd_w17(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = query.shape[-1]
    return products / np.sqrt(scale)


@answer("scaled_dot", "numpy", "positive scales only", "wrong", "A negative scale, or zero, is taken for 'not chosen'.")
def sd_w18(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    chosen = scale is not None and scale > 0
    return products * scale if chosen else products / np.sqrt(query.shape[-1])


@answer(
    "scaled_dot",
    "numpy",
    "test upside down",
    "wrong",
    "The given scale is only used when it is None, the test is upside down and None * array crashes.",
)
def sd_w19(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is not None:
        return products / np.sqrt(query.shape[-1])
    return products * scale


@answer("scaled_dot", "numpy", "fourth roots", "right")
def sd_r1(query, key, *, scale=None):
    if scale is None:
        quarter = query.shape[-1] ** -0.25  # half of the factor on each side
        return (query * quarter) @ np.swapaxes(key * quarter, -1, -2)
    return scale * (query @ np.swapaxes(key, -1, -2))


@answer("scaled_dot", "numpy", "einsum, width from the key", "right")
def sd_r2(query, key, *, scale=None):
    factor = {True: lambda: key.shape[-1] ** -0.5, False: lambda: scale}[scale is None]()
    return np.einsum("...td,...sd->...ts", query, key) * factor


@answer("scaled_dot", "numpy", "one column per key", "right")
def sd_r3(query, key, *, scale=None):
    columns = []
    for s in range(key.shape[-2]):
        column = (query * key[..., s : s + 1, :]).sum(axis=-1)
        if scale is None:
            column = column / math.sqrt(query.shape[-1])
        else:
            column = column * scale
        columns.append(column)
    return np.stack(columns, axis=-1)


# =====================================================================================================================
# Task 4: scaled_dot_product_attention
# =====================================================================================================================


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "softmax over queries",
    "wrong",
    "The weights of each key sum to 1, not those of each query.",
)
def at_w1(query, key, value, *, scale=None):
    weights = softmax(scaled_dot(query, key, scale=scale), axis=-2)
    return weights @ value


@answer("scaled_dot_product_attention", "numpy", "scale is dropped", "wrong", "scale is not passed on to scaled_dot.")
def at_w2(query, key, value, *, scale=None):
    scores = scaled_dot(query, key)
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "scaled after the softmax",
    "wrong",
    "Divides the weights, not the scores: they no longer sum to 1.",
)
def at_w3(query, key, value, *, scale=None):
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    alpha = softmax(query @ np.swapaxes(key, -1, -2)) * factor
    return alpha @ value


@answer("scaled_dot_product_attention", "numpy", "scaled twice", "wrong", "scaled_dot has divided by the root already.")
def at_w4(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    if scale is None:
        scores = scores / np.sqrt(query.shape[-1])
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "returns weights too",
    "wrong",
    "Returns a pair; the output alone was asked for.",
)
def at_w5(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key, scale=scale))
    out = alpha @ value
    return out, alpha


@answer(
    "scaled_dot_product_attention", "numpy", "averages keys", "wrong", "The keys are averaged instead of the values."
)
def at_w6(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key, scale=scale))
    return np.einsum("...ts,...sd->...td", alpha, key)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "one softmax for the table",
    "wrong",
    "All weights of the table together sum to 1, not each row.",
)
def at_w7(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    e = np.exp(scores - scores.max())
    return (e / e.sum()) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "sum without keepdims",
    "wrong",
    "Without keepdims the sums are divided along the wrong axis: for T = S silently, else a crash.",
)
def at_w8(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    alpha = e / np.sum(e, axis=-1)
    return alpha @ value


@answer(
    "scaled_dot_product_attention", "numpy", "key.T", "wrong", ".T reverses all axes, so that batches crash or mix."
)
def at_w9(query, key, value, *, scale=None):
    if scale is None:
        scale = query.shape[-1] ** -0.5
    return softmax((query @ key.T) * scale) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "broadcast sum without the batch",
    "wrong",
    "alpha[..., None] * value lines up only without a batch: value lacks the axis of the queries.",
)
def at_w10(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key, scale=scale))  # (..., T, S)
    return (alpha[..., None] * value).sum(axis=-2)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "np.dot",
    "wrong",
    "np.dot of two batches pairs every sentence with every other.",
)
def at_w11(query, key, value, *, scale=None):
    d = query.shape[-1]
    s = np.dot(query, np.swapaxes(key, -1, -2)) * (1 / np.sqrt(d) if scale is None else scale)
    return np.dot(softmax(s), value)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "keys reshaped",
    "wrong",
    "reshape does not transpose: the numbers of the keys are mixed.",
)
def at_w12(query, key, value, *, scale=None):
    *lead, S, D = key.shape
    turned = key.reshape(*lead, D, S)
    scores = query @ turned * (D**-0.5 if scale is None else scale)
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "root of the value width",
    "wrong",
    "The root is taken of D_v instead of D.",
)
def at_w13(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / np.sqrt(value.shape[-1])
    return softmax(scaled_dot(query, key, scale=scale)) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "causal by habit",
    "wrong",
    "Forbids later keys, as in a language model; no mask was asked for.",
)
def at_w14(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    T, S = scores.shape[-2:]
    scores = np.where(np.tril(np.ones((T, S), dtype=bool)), scores, -np.inf)
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "winner takes all",
    "wrong",
    "Each query takes the value of its best key; there is no average.",
)
def at_w15(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    best = scores.argmax(axis=-1)
    return np.take_along_axis(value, best[..., None], axis=-2)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "buffer like the query",
    "wrong",
    "The output gets the width of the queries instead of that of the values: crashes if D_v differs from D.",
)
def at_w16(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key, scale=scale))
    out = np.zeros_like(query)
    for t in range(query.shape[-2]):
        out[..., t, :] = (alpha[..., t, :, None] * value).sum(axis=-2)
    return out


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "exp without the maximum",
    "wrong",
    "np.exp of large scores is inf, and the output nan.",
)
def at_w17(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    e = np.exp(scores)
    return e / e.sum(-1, keepdims=True) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "no softmax",
    "wrong",
    "The scores are used as weights; the softmax is missing.",
)
def at_w18(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    return scores @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "plain normalisation",
    "wrong",
    "Divides the scores by their sum instead of taking a softmax.",
)
def at_w19(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    return scores / scores.sum(axis=-1, keepdims=True) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "loop over one batch axis",
    "wrong",
    "Handles no batch and one batch axis; with two the softmax row loop meets the wrong axes.",
)
def at_w20(query, key, value, *, scale=None):
    def head(q, k, v):
        s = q @ k.T
        s = s * scale if scale is not None else s / np.sqrt(q.shape[1])
        return softmax(s) @ v

    if query.ndim == 2:
        return head(query, key, value)
    return np.array([head(q, k, v) for q, k, v in zip(query, key, value)])


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "projects once more",
    "wrong",
    "Multiplies by the matrices of the example again; query, key and value come projected already.",
)
def at_w21(query, key, value, *, scale=None):
    D = query.shape[-1]
    if D == W_Q.shape[0]:
        query, key, value = query @ W_Q, key @ W_K, value @ W_V
    return softmax(scaled_dot(query, key, scale=scale)) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "residual",
    "wrong",
    "Adds the query to the output, as a transformer block does; not asked for.",
)
def at_w22(query, key, value, *, scale=None):
    out = softmax(scaled_dot(query, key, scale=scale)) @ value
    if out.shape == query.shape:
        out = out + query
    return out


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "roles of query and key swapped",
    "wrong",
    "scaled_dot(key, query): the keys ask. The weights come transposed, and for T = S nothing crashes.",
)
def at_w23(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(key, query, scale=scale))
    return alpha @ value


@answer("scaled_dot_product_attention", "numpy", "query by query", "right")
def at_r1(query, key, value, *, scale=None):
    rows = []
    for t in range(query.shape[-2]):
        one = query[..., t : t + 1, :]  # a single query, the axis is kept
        alpha = softmax(scaled_dot(one, key, scale=scale))
        rows.append(alpha @ value)
    return np.concatenate(rows, axis=-2)


@answer("scaled_dot_product_attention", "numpy", "online softmax, key by key", "right")
def at_r2(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    top, total, out = -np.inf, 0.0, 0.0
    for s in range(key.shape[-2]):
        score = scale * np.sum(query * key[..., s, None, :], axis=-1, keepdims=True)
        new_top = np.maximum(top, score)
        shrink, grow = np.exp(top - new_top), np.exp(score - new_top)
        total = total * shrink + grow
        out = out * shrink + grow * value[..., s, None, :]
        top = new_top
    return out / total


class _Head:
    """Object-oriented on purpose."""

    def __init__(self, scale):
        self.scale = scale

    def weights(self, q, k):
        s = scaled_dot(q, k, scale=self.scale)
        s = s - np.max(s, axis=-1, keepdims=True)
        s = s - np.log(np.sum(np.exp(s), axis=-1, keepdims=True))
        return np.exp(s)

    def __call__(self, q, k, v):
        return np.einsum("...ts,...sv->...tv", self.weights(q, k), v)


@answer("scaled_dot_product_attention", "numpy", "class with log-softmax", "right")
def at_r3(query, key, value, *, scale=None):
    return _Head(scale)(query, key, value)


# =====================================================================================================================
# Task 5: mended_attention
# =====================================================================================================================


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "nothing mended",
    "wrong",
    "The last size of the turned keys is still the number of keys.",
)
def me_w1(query, key, value, *, scale=None):
    turned = np.transpose(key, (*range(key.ndim - 2), -1, -2))
    d_k = turned.shape[-1]
    factor = 1 / np.sqrt(d_k) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "first size of the turned keys",
    "wrong",
    "turned.shape[0] is the width without a batch only.",
)
def me_w2(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[0]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "width of the values",
    "wrong",
    "Takes the root of the width of the values.",
)
def me_w3(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(value.shape[-1]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "throws copies away",
    "wrong",
    "Keys that come twice are used once, so a key that is given twice no longer weighs twice.",
)
def me_w4(query, key, value, *, scale=None):
    if key.ndim == 2:
        _, first = np.unique(key, axis=0, return_index=True)
        first.sort()
        key, value = key[first], value[first]
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    return softmax(query @ turned * factor) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "softmax over the other axis",
    "wrong",
    "The axis of the softmax was changed, which was right; the root was not mended.",
)
def me_w5(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    alpha = softmax(query @ turned * factor, axis=-2)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "number of queries",
    "wrong",
    "query.shape[-2] is the number of queries, not the width.",
)
def me_w6(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(query.shape[-2]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention", "numpy", "no fraction left", "wrong", "Multiplies by the root instead of dividing."
)
def me_w7(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = np.sqrt(turned.shape[-2]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "always the default",
    "wrong",
    "The chosen scale is overwritten by the root of the width.",
)
def me_w8(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    scale = 1 / np.sqrt(query.shape[-1])
    alpha = softmax(query @ turned * scale)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "np.transpose of a batch",
    "wrong",
    "np.transpose without axes reverses all of them, so batches break.",
)
def me_w9(query, key, value, *, scale=None):
    turned = np.transpose(key)
    factor = 1 / np.sqrt(key.shape[-1]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer("scaled_dot_product_attention", "numpy", "constant root of 3", "wrong", "The width of the example is built in.")
def me_w10(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(3) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention", "numpy", "zero scale is no scale", "wrong", "`if scale` takes 0 for 'not chosen'."
)
def me_w11(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = scale if scale else 1 / np.sqrt(query.shape[-1])
    return softmax(query @ turned * factor) @ value


@answer("scaled_dot_product_attention", "numpy", "next to last size", "right")
def me_r1(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer("scaled_dot_product_attention", "numpy", "turned the other way round", "right")
def me_r2(query, key, value, *, scale=None):
    D = query.shape[-1]
    factor = scale if scale is not None else np.exp(-0.5 * np.log(D))
    alpha = np.swapaxes(softmax(key @ np.swapaxes(query, -1, -2) * factor, axis=-2), -1, -2)
    return np.matmul(alpha, value)


# =====================================================================================================================
# Task 7: attention_shapes
# =====================================================================================================================


@answer(
    "attention_shapes",
    "numpy",
    "width in the scores",
    "wrong",
    "The scores have a column for each key, not for each component.",
)
def sh_w1(query, key, value):
    *leading, T, D = query
    S, D_v = value[-2:]
    return (*leading, T, D), (*leading, T, D_v)


@answer("attention_shapes", "numpy", "output by key", "wrong", "The output has a row for each query, not for each key.")
def sh_w2(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, T, S), (*leading, S, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "leading as a list inside",
    "wrong",
    "The leading sizes are put into the tuple as one list.",
)
def sh_w3(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (leading, T, S), (leading, T, D_v)


@answer("attention_shapes", "numpy", "batch forgotten", "wrong", "What stands in front is missing.")
def sh_w4(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (T, S), (T, D_v)


@answer("attention_shapes", "numpy", "scores transposed", "wrong", "(S, T): rows belong to queries.")
def sh_w5(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores = tuple(leading) + (S, T)
    output = tuple(leading) + (T, D_v)
    return scores, output


@answer("attention_shapes", "numpy", "output first", "wrong", "The two are returned in the wrong order.")
def sh_w6(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    output = (*leading, T, D_v)
    scores = (*leading, T, S)
    return output, scores


@answer(
    "attention_shapes",
    "numpy",
    "list plus tuple",
    "wrong",
    "leading is a list, and a list plus a tuple is a TypeError.",
)
def sh_w7(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return leading + (T, S), leading + (T, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "output like the query",
    "wrong",
    "The output has the width of the values, not of the queries.",
)
def sh_w8(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return tuple([*leading, T, S]), tuple(query)


@answer("attention_shapes", "numpy", "lists", "wrong", "Lists come back, tuples were asked for.")
def sh_w9(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return leading + [T, S], leading + [T, D_v]


@answer(
    "attention_shapes", "numpy", "only one leading size", "wrong", "Of several leading sizes only the first survives."
)
def sh_w10(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    front = tuple(leading[:1])
    return front + (T, S), front + (T, D_v)


@answer("attention_shapes", "numpy", "one long tuple", "wrong", "Both shapes are glued to one tuple.")
def sh_w11(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores, output = (*leading, T, S), (*leading, T, D_v)
    return scores + output


@answer(
    "attention_shapes", "numpy", "extend returns None", "wrong", "list.extend returns None, so tuple(None) crashes."
)
def sh_w12(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores = tuple(leading.extend([T, S]))
    output = tuple(leading.extend([T, D_v]))
    return scores, output


@answer(
    "attention_shapes",
    "numpy",
    "the same list appended twice",
    "wrong",
    "leading is changed by the first shape, so the second shape has T and S in front too.",
)
def sh_w13(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    leading += [T, S]
    scores = tuple(leading)
    leading += [T, D_v]
    return scores, tuple(leading)


@answer("attention_shapes", "numpy", "meta tensors", "right")
def sh_r1(query, key, value):
    q, k, v = (torch.empty([int(n) for n in shape], device="meta") for shape in (query, key, value))
    scores = q @ k.transpose(-1, -2)
    return tuple(scores.shape), tuple((scores @ v).shape)


@answer("attention_shapes", "numpy", "cut and paste of tuples", "right")
def sh_r2(query, key, value):
    def product(one, other):
        """The shape of a matrix product."""
        return (*one[:-1], other[-1])

    scores = product(tuple(query), (*key[:-2], key[-1], key[-2]))
    return scores, product(scores, tuple(value))


# =====================================================================================================================
# Task 8: attention_cost
# =====================================================================================================================


@answer(
    "attention_cost",
    "numpy",
    "twice the first product",
    "wrong",
    "Both products are counted with D; the second has the width of the values.",
)
def co_w1(T, S, D, D_v):
    return 2 * T * S * D, T * S


@answer(
    "attention_cost",
    "numpy",
    "division counted",
    "wrong",
    "The division of each score is counted too; it was to be left out.",
)
def co_w2(T, S, D, D_v):
    table = T * S
    return table * D + table + table * D_v, table


@answer("attention_cost", "numpy", "additions counted", "wrong", "Counts additions as well as multiplications.")
def co_w3(T, S, D, D_v):
    scores = T * S * (2 * D - 1)
    output = T * D_v * (2 * S - 1)
    return scores + output, T * S


@answer(
    "attention_cost",
    "numpy",
    "projections counted",
    "wrong",
    "The three matrices are counted too; they cost nothing here.",
)
def co_w4(T, S, D, D_v):
    projections = T * D * D + S * D * D + S * D_v * D_v
    return projections + T * S * D + T * S * D_v, T * S


@answer(
    "attention_cost",
    "numpy",
    "keys and values first",
    "wrong",
    "Counts K^T V first, the order of linear attention; the softmax stands in between.",
)
def co_w5(T, S, D, D_v):
    return D * S * D_v + T * D * D_v, T * S


@answer("attention_cost", "numpy", "self-attention only", "wrong", "Takes T for S: the table is counted as T times T.")
def co_w6(T, S, D, D_v):
    return T**2 * (D + D_v), T**2


@answer(
    "attention_cost",
    "numpy",
    "products multiplied",
    "wrong",
    "The costs of the two products are multiplied instead of added.",
)
def co_w7(T, S, D, D_v):
    first = T * S * D
    second = T * S * D_v
    return first * second, T * S


@answer("attention_cost", "numpy", "order of the two", "wrong", "The numbers come back in the wrong order.")
def co_w8(T, S, D, D_v):
    return T * S, T * S * (D + D_v)


@answer(
    "attention_cost", "numpy", "second product without queries", "wrong", "The factor T is missing in the weighted sum."
)
def co_w9(T, S, D, D_v):
    return T * S * D + S * D_v, T * S


@answer(
    "attention_cost",
    "numpy",
    "memory of everything",
    "wrong",
    "Counts queries, keys and values as well; asked for was the table of scores.",
)
def co_w10(T, S, D, D_v):
    multiplications = T * S * D + T * S * D_v
    numbers = T * S + T * D + S * D + S * D_v
    return multiplications, numbers


@answer("attention_cost", "numpy", "bytes", "wrong", "Gives the memory in bytes of float32, not the number of numbers.")
def co_w11(T, S, D, D_v):
    return T * S * (D + D_v), 4 * T * S


@answer(
    "attention_cost",
    "numpy",
    "32-bit product",
    "wrong",
    "Multiplies in 32-bit integers, which overflow for long texts.",
)
def co_w12(T, S, D, D_v):
    sizes = np.array([T, S, D, D_v], dtype=np.int32)
    table = sizes[0] * sizes[1]
    return int(table * (sizes[2] + sizes[3])), int(table)


@answer("attention_cost", "numpy", "only the sum", "wrong", "Only one of the two numbers is returned.")
def co_w13(T, S, D, D_v):
    table = T * S
    return table * D + table * D_v


_Cost = namedtuple("_Cost", "multiplications scores")


@answer("attention_cost", "numpy", "named tuple", "right")
def co_r1(T, S, D, D_v):
    return _Cost(multiplications=math.prod((T, S, D)) + math.prod((T, S, D_v)), scores=math.prod((T, S)))


@answer("attention_cost", "numpy", "per query, then all", "right")
def co_r2(T, S, D, D_v):
    for_one_query = sum(rows * columns for rows, columns in [(S, D), (D_v, S)])
    return T * for_one_query, T * S


# =====================================================================================================================
# Task 10: attention_torch
# =====================================================================================================================


@answer(
    "scaled_dot_product_attention",
    "torch",
    "through NumPy",
    "wrong",
    "The numbers are right, but the detour through NumPy loses the gradients.",
)
def to_w1(query, key, value, *, scale=None):
    q, k, v = (t.detach().cpu().numpy() for t in (query, key, value))
    out = softmax(scaled_dot(q, k, scale=scale)) @ v
    return torch.from_numpy(out).to(query)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "softmax without dim",
    "wrong",
    "F.softmax without dim chooses an axis by the number of dimensions: the last for a table, another for batches.",
)
def to_w2(query, key, value, *, scale=None):
    scores = query @ key.transpose(-2, -1)
    scores = scores / math.sqrt(query.size(-1)) if scale is None else scores * scale
    return F.softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "transpose(0, 1)",
    "wrong",
    "Swaps the first two axes: with a batch these are batch and keys.",
)
def to_w3(query, key, value, *, scale=None):
    if scale is None:
        scale = query.shape[-1] ** -0.5
    alpha = torch.softmax(query @ key.transpose(0, 1) * scale, dim=-1)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "bmm",
    "wrong",
    "torch.bmm takes exactly one batch axis; without one, or with two, it crashes.",
)
def to_w4(query, key, value, *, scale=None):
    d = query.shape[-1]
    scores = torch.bmm(query, key.transpose(1, 2)) * (1 / math.sqrt(d) if scale is None else scale)
    return torch.bmm(F.softmax(scores, dim=-1), value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "weights detached",
    "wrong",
    "The weights are detached, so queries and keys get no gradient.",
)
def to_w5(query, key, value, *, scale=None):
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    alpha = torch.softmax(query @ key.mT * scale, -1).detach()
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "torch.sqrt of an int",
    "wrong",
    "torch.sqrt takes tensors: a whole number is a TypeError.",
)
def to_w6(query, key, value, *, scale=None):
    scores = query @ key.transpose(-2, -1)
    if scale is None:
        scores = scores / torch.sqrt(query.shape[-1])
    else:
        scores = scores * scale
    return torch.softmax(scores, dim=-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "torch's own function",
    "right",
    "Calls torch's function, which does the whole task in one call.",
)
def to_w7(query, key, value, *, scale=None):
    return F.scaled_dot_product_attention(query, key, value, scale=scale)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "softmax dim 1",
    "wrong",
    "dim=1 is the axis of the keys without a batch only.",
)
def to_w8(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / query.shape[-1] ** 0.5
    scores = torch.matmul(query, key.transpose(-1, -2)) * scale
    return torch.matmul(torch.softmax(scores, dim=1), value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "view instead of transpose",
    "wrong",
    "view keeps the numbers in their order in memory: the keys are not transposed.",
)
def to_w9(query, key, value, *, scale=None):
    turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    if scale is None:
        scale = 1 / math.sqrt(key.shape[-1])
    return torch.softmax(query @ turned * scale, dim=-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "dropout",
    "wrong",
    "Drops a tenth of the weights at random, as tutorials do.",
)
def to_w10(query, key, value, *, scale=None):
    scores = query @ key.transpose(-2, -1) * (scale if scale is not None else query.size(-1) ** -0.5)
    p_attn = F.dropout(scores.softmax(dim=-1), p=0.1)
    return p_attn @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "annotated pair",
    "wrong",
    "Returns output and weights, as the Annotated Transformer does.",
)
def to_w11(query, key, value, *, scale=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1))
    scores = scores / math.sqrt(d_k) if scale is None else scores * scale
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


@answer(
    "scaled_dot_product_attention",
    "torch",
    "new leaf",
    "wrong",
    "torch.tensor(...) copies the weights into a new leaf, and the path to query and key is cut.",
)
def to_w12(query, key, value, *, scale=None):
    scores = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    alpha = torch.softmax(scores, dim=-1)
    alpha = torch.tensor(alpha.tolist(), dtype=alpha.dtype, device=alpha.device, requires_grad=True)
    return alpha @ value


@answer(
    "scaled_dot_product_attention", "torch", "no_grad for speed", "wrong", "Everything is computed without gradients."
)
def to_w13(query, key, value, *, scale=None):
    with torch.no_grad():
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        weights = torch.softmax(torch.einsum("...td,...sd->...ts", query, key) * scale, dim=-1)
        return torch.einsum("...ts,...sv->...tv", weights, value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "in-place scaling",
    "wrong",
    "query.mul_ changes the tensor of the caller, and crashes if it is a leaf that wants gradients.",
)
def to_w14(query, key, value, *, scale=None):
    query.mul_(query.shape[-1] ** -0.5 if scale is None else scale)
    return (query @ key.mT).softmax(-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "exp without maximum",
    "wrong",
    "exp of large scores overflows to inf, and inf/inf is nan.",
)
def to_w15(query, key, value, *, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    e = torch.exp(query @ key.transpose(-1, -2) * scale)
    return (e / e.sum(-1, keepdim=True)) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "values detached by item",
    "wrong",
    "The output is filled with plain numbers of the values: no gradient reaches them.",
)
def to_w16(query, key, value, *, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    alpha = torch.softmax(query @ key.transpose(-1, -2) * scale, dim=-1)
    return alpha @ value.data


@answer("scaled_dot_product_attention", "torch", "scale ignored", "wrong", "The argument scale is never used.")
def to_w17(query, key, value, *, scale=None):
    return torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "root of the number of keys",
    "wrong",
    "key.size(-2) is the number of keys, not the width.",
)
def to_w18(query, key, value, *, scale=None):
    scores = query @ key.mT
    scores = scores * scale if scale is not None else scores / math.sqrt(key.size(-2))
    return scores.softmax(-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "maximum of the batch and rounding up the sum",
    "wrong",
    "A small number is added to the sum of the exponentials, after a maximum of the whole batch: rows far below it become 0.",
)
def to_w19(query, key, value, *, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-1, -2) * scale
    e = torch.exp(scores - scores.max())
    return (e / (e.sum(-1, keepdim=True) + 1e-6)) @ value


@answer("scaled_dot_product_attention", "torch", "log-sum-exp", "right")
def to_r1(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.einsum("...td,...sd->...ts", query, key).mul(factor)
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True)) @ value


@answer("scaled_dot_product_attention", "torch", "broadcast products, stacked rows", "right")
def to_r2(query, key, value, *, scale=None):
    scale = math.pow(query.size(-1), -0.5) if scale is None else scale
    rows = []
    for q in query.unbind(dim=-2):  # (..., D)
        scores = (q.unsqueeze(-2) * key).sum(-1) * scale  # (..., S)
        alpha = scores.softmax(dim=-1)
        rows.append((alpha.unsqueeze(-1) * value).sum(-2))
    return torch.stack(rows, dim=-2)


class _TorchHead(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.normalise = torch.nn.Softmax(dim=-2)

    def forward(self, q, k, v):
        columns = self.normalise(k @ (q * self.factor).transpose(-1, -2))  # (..., S, T): keys are rows here
        return columns.transpose(-1, -2) @ v


@answer("scaled_dot_product_attention", "torch", "module with transposed weights", "right")
def to_r3(query, key, value, *, scale=None):
    return _TorchHead(1 / math.sqrt(key.shape[-1]) if scale is None else scale)(query, key, value)


# =====================================================================================================================
# More right answers
# =====================================================================================================================


@answer("scaled_dot", "numpy", "recursive over the batch", "right")
def sd_r4(query, key, *, scale=None):
    if query.ndim > 2:
        return np.array([sd_r4(q, k, scale=scale) for q, k in zip(query, key)])
    if scale is None:
        scale = 1 / math.sqrt(query.shape[1])
    return np.array([[scale * sum(a * b for a, b in zip(q, k)) for k in key] for q in query])


@answer("scaled_dot_product_attention", "numpy", "keys as rows", "right")
def at_r4(query, key, value, *, scale=None):
    columns = np.swapaxes(scaled_dot(query, key, scale=scale), -1, -2)  # (..., S, T)
    columns = np.exp(columns - columns.max(axis=-2, keepdims=True))
    columns /= columns.sum(axis=-2, keepdims=True)
    return np.swapaxes(np.swapaxes(value, -1, -2) @ columns, -1, -2)


@answer("scaled_dot_product_attention", "numpy", "recursive over the batch", "right")
def me_r3(query, key, value, *, scale=None):
    if query.ndim > 2:
        return np.stack([me_r3(*one, scale=scale) for one in zip(query, key, value)])
    (T, D), (S, D_v) = query.shape, value.shape
    factor = D**-0.5 if scale is None else scale
    alpha = softmax(query @ key.T * factor)
    out = np.zeros((T, D_v))
    for s in range(S):
        out += np.outer(alpha[:, s], value[s])
    return out


@answer("attention_shapes", "numpy", "last number replaced", "right")
def sh_r3(query, key, value):
    scores, output = list(query), list(query)
    scores[-1], output[-1] = key[-2], value[-1]
    return tuple(scores), tuple(output)


@answer("attention_cost", "numpy", "counting loop over queries only", "right")
def co_r3(T, S, D, D_v):
    multiplications = numbers = 0
    for _ in range(T):
        numbers += S  # a row of the table
        multiplications += S * D  # its scores
        multiplications += D_v * S  # the sum that it weights
    return multiplications, numbers


@answer("scaled_dot_product_attention", "torch", "log-softmax, recursive over the batch", "right")
def to_r4(query, key, value, *, scale=None):
    if query.dim() > 2:
        return torch.stack([to_r4(q, k, v, scale=scale) for q, k, v in zip(query, key, value)])
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[1])
    return torch.log_softmax(torch.mm(query * scale, key.t()), dim=1).exp().mm(value)
