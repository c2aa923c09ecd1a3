"""Answers to the notebook "self-attention", as students might write them.

The answers to its task 7, gaussian_mended, are checked under the name "gaussian"; their labels begin with "mended:".
"""

import math

import numpy as np
import torch
from torch.nn import functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    """Note an implementation; it stays the plain function that it is."""

    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


def SOFTMAX(x, axis=-1):
    """A right softmax, for the later answers."""
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def DOT(query, key):
    """A right dot, for the later answers."""
    return query @ np.swapaxes(key, -1, -2)


# ============================================================================================= softmax


@answer("softmax", "numpy", "plain", "right")
def softmax_r1(x, axis=-1):
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


@answer("softmax", "numpy", "log space", "right")
def softmax_r2(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    log_sum = top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True))
    return np.exp(x - log_sum)


@answer("softmax", "numpy", "apply_along_axis", "right")
def softmax_r3(x, axis=-1):
    def one(row):
        e = np.exp(row - row.max())
        return e / e.sum()

    return np.apply_along_axis(one, axis, x)


@answer("softmax", "numpy", "axis moved to the end and back, plain numbers", "right")
def softmax_r4(x, axis=-1):
    moved = np.moveaxis(np.asarray(x, dtype=float), axis, -1)
    result = np.empty(moved.shape)
    for place in np.ndindex(*moved.shape[:-1]):
        row = [float(number) for number in moved[place]]
        top = max(row)
        powers = [math.exp(number - top) for number in row]
        total = math.fsum(powers)
        result[place] = [p / total for p in powers]
    return np.moveaxis(result, -1, axis)


@answer("softmax", "numpy", "logaddexp.reduce, extra temperature", "right")
def softmax_r5(x, axis=-1, temperature=1.0):
    x = np.asarray(x) / temperature
    return np.exp(x - np.expand_dims(np.logaddexp.reduce(x, axis=axis), axis))


@answer("softmax", "numpy", "no maximum", "wrong", "exp overflows for scores such as 1000")
def softmax_w1(x, axis=-1):
    powers = np.exp(x)
    return powers / powers.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "no keepdims", "wrong", "the sums land under the wrong scores, or do not fit")
def softmax_w2(x, axis=-1):
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis)


@answer(
    "softmax",
    "numpy",
    "one maximum for all",
    "wrong",
    "a row that lies 1000 below the largest score of another row underflows to 0 / 0",
)
def softmax_w3(x, axis=-1):
    powers = np.exp(x - x.max())
    return powers / powers.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "axis ignored", "wrong", "always the last axis")
def softmax_w4(x, axis=-1):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@answer("softmax", "numpy", "in place", "wrong", "the caller's scores are changed")
def softmax_w5(x, axis=-1):
    x -= x.max(axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=axis, keepdims=True)
    return x


@answer(
    "softmax",
    "numpy",
    "maximum subtracted in place",
    "wrong",
    "the numbers are right, but the caller's scores are shifted",
)
def softmax_w6(x, axis=-1):
    x -= np.max(x, axis=axis, keepdims=True)
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "one sum for all", "wrong", "everything together sums to 1, instead of each row")
def softmax_w7(x, axis=-1):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


@answer("softmax", "numpy", "[..., None]", "wrong", "the sums are put back at the end, whatever axis they come from")
def softmax_w8(x, axis=-1):
    powers = np.exp(x - x.max(axis=axis)[..., None])
    return powers / powers.sum(axis=axis)[..., None]


@answer("softmax", "numpy", "divided by the maximum", "wrong", "divides by the largest score instead of subtracting it")
def softmax_w9(x, axis=-1):
    powers = np.exp(x / np.max(np.abs(x), axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@answer(
    "softmax", "numpy", "minimum subtracted", "wrong", "overflows where the scores of one row are more than 710 apart"
)
def softmax_w10(x, axis=-1):
    powers = np.exp(x - x.min(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "mean subtracted", "wrong", "overflows where one score lies more than 710 above the mean")
def softmax_w11(x, axis=-1):
    powers = np.exp(x - x.mean(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "clipped",
    "wrong",
    "scores beyond 500 all become 500, so [1000, 1000 + log 3] gets equal weights",
)
def softmax_w12(x, axis=-1):
    powers = np.exp(np.clip(x, -500, 500))
    return powers / powers.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "epsilon below", "wrong", "the weights sum to less than 1, by up to one in a thousand")
def softmax_w13(x, axis=-1):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / (powers.sum(axis=axis, keepdims=True) + 1e-3)


@answer("softmax", "numpy", "small epsilon below", "wrong", "the weights sum to 1 less a millionth")
def softmax_w14(x, axis=-1):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / (powers.sum(axis=axis, keepdims=True) + 1e-6)


@answer("softmax", "numpy", "2.718", "wrong", "e cut after three places, as copied from memory")
def softmax_w15(x, axis=-1):
    powers = 2.718 ** (x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "powers of two", "wrong", "base 2")
def softmax_w16(x, axis=-1):
    powers = np.exp2(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "log softmax", "wrong", "returns the logarithms of the weights")
def softmax_w17(x, axis=-1):
    x = x - x.max(axis=axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


@answer(
    "softmax",
    "numpy",
    "empty_like",
    "wrong",
    "with scores that are whole numbers, such as 0, 1, 2, the weights are cut to 0",
)
def softmax_w18(x, axis=-1):
    weights = np.empty_like(x)
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    weights[...] = powers / powers.sum(axis=axis, keepdims=True)
    return weights


@answer("softmax", "numpy", "0 or the last", "wrong", "knows axis 0 and treats all others as the last")
def softmax_w19(x, axis=-1):
    if axis == 0:
        return softmax_w19(x.T).T
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@answer("softmax", "numpy", "axis not moved back", "wrong", "the axis is moved to the end and stays there")
def softmax_w20(x, axis=-1):
    x = np.moveaxis(x, axis, -1)
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@answer("softmax", "numpy", "nan mended afterwards", "wrong", "where exp overflows, inf / inf is turned into 0")
def softmax_w21(x, axis=-1):
    with np.errstate(all="ignore"):
        powers = np.exp(x)
        return np.nan_to_num(powers / powers.sum(axis=axis, keepdims=True))


@answer(
    "softmax",
    "numpy",
    "rows only",
    "wrong",
    "a loop over rows: an error for one row alone, wrong for a stack and for other axes",
)
def softmax_w22(x, axis=-1):
    return np.array([np.exp(row - np.max(row)) / np.sum(np.exp(row - np.max(row))) for row in x])


@answer(
    "softmax",
    "numpy",
    "float16 to save memory",
    "wrong",
    "the scores are cut to half precision: three digits, and inf beyond 65504",
)
def softmax_w23(x, axis=-1):
    x = np.asarray(x).astype(np.float16)
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return (powers / powers.sum(axis=axis, keepdims=True)).astype(float)


@answer(
    "softmax",
    "numpy",
    "maximum along the last axis only",
    "wrong",
    "the axis is used for the sum, but the maximum is the last axis's, so other factors stand in one sum",
)
def softmax_w24(x, axis=-1):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


# ================================================================================================= dot


@answer("dot", "numpy", "swapaxes", "right")
def dot_r1(query, key):
    return query @ np.swapaxes(key, -1, -2)


@answer("dot", "numpy", "einsum", "right")
def dot_r2(query, key):
    return np.einsum("...id,...jd->...ij", query, key)


@answer("dot", "numpy", "product and sum", "right")
def dot_r3(query, key):
    return (query[..., :, None, :] * key[..., None, :, :]).sum(-1)


@answer("dot", "numpy", "component by component", "right")
def dot_r4(query, key):
    scores = np.zeros(query.shape[:-1] + (key.shape[-2],))
    for d in range(query.shape[-1]):
        scores += query[..., :, None, d] * key[..., None, :, d]
    return scores


@answer("dot", "numpy", "key by key", "right")
def dot_r5(query, key):
    columns = [np.matmul(query, key[..., j, :, None])[..., 0] for j in range(key.shape[-2])]
    return np.stack(columns, axis=-1)


@answer("dot", "numpy", "recursion over the stack", "right")
def dot_r6(query, key, scale=None):
    if query.ndim > 2:
        scores = np.stack([dot_r6(q, k) for q, k in zip(query, key)])
    else:
        scores = np.array([[np.dot(q, k) for k in key] for q in query])
    return scores if scale is None else scores * scale


@answer("dot", "numpy", "key.T", "wrong", ".T turns all axes round: an error or other numbers for a stack")
def dot_w1(query, key):
    return query @ key.T


@answer("dot", "numpy", "rows are keys", "wrong", "the table is (..., S, T)")
def dot_w2(query, key):
    return key @ np.swapaxes(query, -1, -2)


@answer("dot", "numpy", "elementwise", "wrong", "query i meets key i only")
def dot_w3(query, key):
    return np.sum(query * key, axis=-1)


@answer("dot", "numpy", "np.dot", "wrong", "np.dot pairs all sentences of a stack with all others")
def dot_w4(query, key):
    return np.dot(query, np.swapaxes(key, -1, -2))


@answer("dot", "numpy", "np.inner", "wrong", "right for matrices; pairs all with all for a stack")
def dot_w5(query, key):
    return np.inner(query, key)


@answer("dot", "numpy", "einsum without batch", "wrong", "an error for a stack")
def dot_w6(query, key):
    return np.einsum("td,sd->ts", query, key)


@answer("dot", "numpy", "einsum with one batch", "wrong", "an error for matrices and for two dimensions in front")
def dot_w7(query, key):
    return np.einsum("btd,bsd->bts", query, key)


@answer("dot", "numpy", "reshape", "wrong", "reshape is no transpose")
def dot_w8(query, key):
    return query @ key.reshape(key.shape[:-2] + (key.shape[-1], key.shape[-2]))


@answer("dot", "numpy", "scaled", "wrong", "divided by the root of D already here")
def dot_w9(query, key):
    return query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])


@answer("dot", "numpy", "axes 0 and 1", "wrong", "right for matrices only")
def dot_w10(query, key):
    return query @ np.swapaxes(key, 0, 1)


@answer("dot", "numpy", "axes 1 and 2", "wrong", "right for exactly one dimension in front")
def dot_w11(query, key):
    return query @ key.transpose(0, 2, 1)


@answer("dot", "numpy", "off by one", "wrong", "the last component is never multiplied")
def dot_w12(query, key):
    scores = np.zeros(query.shape[:-1] + (key.shape[-2],))
    for d in range(query.shape[-1] - 1):
        scores += query[..., :, None, d] * key[..., None, :, d]
    return scores


@answer(
    "dot",
    "numpy",
    "table of the query's dtype",
    "wrong",
    "queries of whole numbers, such as (1, 2), cut the scores with keys that are not",
)
def dot_w13(query, key):
    scores = np.zeros(query.shape[:-1] + (key.shape[-2],), dtype=query.dtype)
    for j in range(key.shape[-2]):
        scores[..., j] = (query * key[..., j : j + 1, :]).sum(-1)
    return scores


@answer("dot", "numpy", "square table", "wrong", "the table has as many columns as queries: right for T = S only")
def dot_w14(query, key):
    T = query.shape[-2]
    scores = np.zeros((*query.shape[:-1], T))
    for i in range(T):
        for j in range(T):
            scores[..., i, j] = (query[..., i, :] * key[..., j, :]).sum(-1)
    return scores


@answer("dot", "numpy", "first sentence's keys", "wrong", "every sentence of a stack meets the keys of the first")
def dot_w15(query, key):
    while key.ndim > 2:
        key = key[0]
    return query @ key.T


@answer(
    "dot",
    "numpy",
    "upper half mirrored",
    "wrong",
    "computes j >= i only and mirrors it, as if queries and keys were the same vectors",
)
def dot_w16(query, key):
    scores = query @ np.swapaxes(key, -1, -2)
    if scores.shape[-1] != scores.shape[-2]:
        return scores
    upper = np.triu(scores)
    return upper + np.swapaxes(np.triu(scores, 1), -1, -2)


@answer("dot", "numpy", "absolute value", "wrong", "negative scores lose their sign")
def dot_w17(query, key):
    return np.abs(query @ np.swapaxes(key, -1, -2))


# ============================================================================================== cosine


@answer("cosine", "numpy", "directions first, zero lengths replaced", "right")
def cosine_r1(query, key):
    def direction(x):
        length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
        return x / np.where(length == 0, 1, length)

    return direction(query) @ np.swapaxes(direction(key), -1, -2)


@answer("cosine", "numpy", "np.divide with where", "right")
def cosine_r2(query, key):
    dots = np.einsum("...td,...sd->...ts", query, key).astype(float)
    q, k = np.linalg.norm(query, axis=-1), np.linalg.norm(key, axis=-1)
    below = q[..., :, None] * k[..., None, :]
    return np.divide(dots, below, out=np.zeros(below.shape), where=below > 0)


@answer("cosine", "numpy", "loops", "right")
def cosine_r3(query, key):
    result = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(*result.shape):
        *b, i, j = place
        q, k = query[tuple(b)][i], key[tuple(b)][j]
        if q.any() and k.any():
            result[place] = sum(a * c for a, c in zip(q, k)) / (math.hypot(*q) * math.hypot(*k))
    return result


@answer("cosine", "numpy", "clipped to -1 and 1", "right")
def cosine_r4(query, key):
    q = np.linalg.norm(query, axis=-1, keepdims=True)
    k = np.linalg.norm(key, axis=-1, keepdims=True)
    q, k = q + (q == 0), k + (k == 0)
    return np.clip((query / q) @ np.swapaxes(key / k, -1, -2), -1.0, 1.0)


@answer("cosine", "numpy", "smallest number below", "right")
def cosine_r5(query, key, tiny=np.finfo(float).tiny):
    q = np.maximum(np.sqrt((query**2).sum(-1)), tiny)[..., None]
    k = np.maximum(np.sqrt((key**2).sum(-1)), tiny)[..., None]
    return (query / q) @ (key / k).swapaxes(-2, -1)


@answer("cosine", "numpy", "nan for a zero", "wrong", "0 / 0 is nan where a vector is zero")
def cosine_w1(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    with np.errstate(all="ignore"):
        return query @ np.swapaxes(key, -1, -2) / (q * k)


@answer(
    "cosine", "numpy", "1e-8 added", "wrong", "a small number below: wrong for short vectors, such as of length 1e-4"
)
def cosine_w2(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    return query @ np.swapaxes(key, -1, -2) / (q * k + 1e-8)


@answer("cosine", "numpy", "1e-3 added to the lengths", "wrong", "every cosine is a little too small")
def cosine_w3(query, key):
    q = np.linalg.norm(query, axis=-1, keepdims=True) + 1e-3
    k = np.linalg.norm(key, axis=-1, keepdims=True) + 1e-3
    return (query / q) @ np.swapaxes(key / k, -1, -2)


@answer(
    "cosine",
    "numpy",
    "torch's eps",
    "wrong",
    "lengths below 1e-8 count as 1e-8, as in PyTorch: wrong for vectors shorter than that",
)
def cosine_w4(query, key):
    q = np.maximum(np.linalg.norm(query, axis=-1, keepdims=True), 1e-8)
    k = np.maximum(np.linalg.norm(key, axis=-1, keepdims=True), 1e-8)
    return (query / q) @ np.swapaxes(key / k, -1, -2)


@answer("cosine", "numpy", "only zero queries", "wrong", "a zero key still gives nan")
def cosine_w5(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    q = np.where(q == 0, 1, q)
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    with np.errstate(all="ignore"):
        return query @ np.swapaxes(key, -1, -2) / (q * k)


@answer("cosine", "numpy", "lengths squared", "wrong", "the root is forgotten")
def cosine_w6(query, key):
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    below = q * k
    return query @ np.swapaxes(key, -1, -2) / np.where(below == 0, 1, below)


@answer("cosine", "numpy", "length of the whole table", "wrong", "one norm for all queries, and one for all keys")
def cosine_w7(query, key):
    below = np.linalg.norm(query) * np.linalg.norm(key)
    return query @ np.swapaxes(key, -1, -2) / (below if below else 1)


@answer(
    "cosine",
    "numpy",
    "key lengths down the rows",
    "wrong",
    "the lengths of the keys stand along the rows, those of the queries along the columns: right numbers are found for T = S = 1 only",
)
def cosine_w8(query, key):
    q = np.linalg.norm(query, axis=-1)[..., None, :]
    k = np.linalg.norm(key, axis=-1)[..., :, None]
    below = q * k
    return query @ np.swapaxes(key, -1, -2) / np.where(below == 0, 1, below)


@answer("cosine", "numpy", "axis -2", "wrong", "the columns are normalised, not the vectors")
def cosine_w9(query, key):
    q = np.linalg.norm(query, axis=-2, keepdims=True)
    k = np.linalg.norm(key, axis=-2, keepdims=True)
    return (query / np.where(q == 0, 1, q)) @ np.swapaxes(key / np.where(k == 0, 1, k), -1, -2)


@answer("cosine", "numpy", "in place", "wrong", "the caller's vectors are divided by their lengths")
def cosine_w10(query, key):
    for x in (query, key):
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        length[length == 0] = 1
        x /= length
    return query @ np.swapaxes(key, -1, -2)


@answer("cosine", "numpy", "Manhattan length", "wrong", "the lengths are sums of absolute values")
def cosine_w11(query, key):
    q = np.abs(query).sum(-1)[..., :, None]
    k = np.abs(key).sum(-1)[..., None, :]
    below = q * k
    return query @ np.swapaxes(key, -1, -2) / np.where(below == 0, 1, below)


@answer("cosine", "numpy", "distance", "wrong", "1 - cosine, as scipy's cosine distance")
def cosine_w12(query, key):
    q = np.linalg.norm(query, axis=-1, keepdims=True)
    k = np.linalg.norm(key, axis=-1, keepdims=True)
    return 1 - (query / np.where(q == 0, 1, q)) @ np.swapaxes(key / np.where(k == 0, 1, k), -1, -2)


@answer("cosine", "numpy", "centred", "wrong", "the correlation: each vector's mean is subtracted first")
def cosine_w13(query, key):
    query = query - query.mean(-1, keepdims=True)
    key = key - key.mean(-1, keepdims=True)
    q = np.linalg.norm(query, axis=-1, keepdims=True)
    k = np.linalg.norm(key, axis=-1, keepdims=True)
    return (query / np.where(q == 0, 1, q)) @ np.swapaxes(key / np.where(k == 0, 1, k), -1, -2)


@answer("cosine", "numpy", "axis=1", "wrong", "axis 1 is the width for matrices only")
def cosine_w14(query, key):
    q = np.linalg.norm(query, axis=1, keepdims=True)
    k = np.linalg.norm(key, axis=1, keepdims=True)
    return (query / np.where(q == 0, 1, q)) @ np.swapaxes(key / np.where(k == 0, 1, k), -1, -2)


@answer("cosine", "numpy", "a zero anywhere makes all zero", "wrong", "one zero vector makes the whole table 0")
def cosine_w15(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    dots = query @ np.swapaxes(key, -1, -2)
    if np.any(q == 0) or np.any(k == 0):
        return np.zeros(dots.shape)
    return dots / (q * k)


@answer("cosine", "numpy", "a zero is like a zero", "wrong", "two zero vectors get the cosine 1")
def cosine_w16(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    cosines = query @ np.swapaxes(key, -1, -2) / (np.where(q == 0, 1, q) * np.where(k == 0, 1, k))
    return np.where((q == 0) & (k == 0), 1.0, cosines)


@answer(
    "cosine",
    "numpy",
    "two components",
    "wrong",
    "the length is computed from the first two components, as in the example",
)
def cosine_w17(query, key):
    def length(x):
        size = np.sqrt(x[..., 0] ** 2 + x[..., -1] ** 2)
        return np.where(size == 0, 1, size)

    return query @ np.swapaxes(key, -1, -2) / (length(query)[..., :, None] * length(key)[..., None, :])


@answer(
    "cosine",
    "numpy",
    "short ones called zero",
    "wrong",
    "vectors that np.isclose calls zero get the cosine 0 although they have a direction",
)
def cosine_w18(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    below = q * k
    return np.where(np.isclose(below, 0), 0.0, query @ np.swapaxes(key, -1, -2) / np.where(below == 0, 1, below))


@answer("cosine", "numpy", "query not divided", "wrong", "only the keys are brought to length 1")
def cosine_w19(query, key):
    k = np.linalg.norm(key, axis=-1, keepdims=True)
    return query @ np.swapaxes(key / np.where(k == 0, 1, k), -1, -2)


# ============================================================================================ gaussian


@answer("gaussian", "numpy", "plain", "right")
def gaussian_r1(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "einsum, scaled first", "right")
def gaussian_r2(query, key, bandwidth=1.0):
    differences = (query[..., :, None, :] - key[..., None, :, :]) / bandwidth
    return -0.5 * np.einsum("...d,...d->...", differences, differences)


@answer("gaussian", "numpy", "norm", "right")
def gaussian_r3(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    distance = np.linalg.norm(differences, axis=-1)
    return -((distance / bandwidth) ** 2) / 2


@answer("gaussian", "numpy", "loops", "right")
def gaussian_r4(query, key, bandwidth=1.0, weights=None):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for d in range(query.shape[-1]):
        for j in range(key.shape[-2]):
            scores[..., j] += np.square(query[..., d] - key[..., None, j, d])
    return scores / (-2 * bandwidth * bandwidth)


@answer("gaussian", "numpy", "positive", "wrong", "the sign: far keys score higher")
def gaussian_w1(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return np.sum(differences**2, axis=-1) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "bandwidth not squared", "wrong", "2 h below the fraction")
def gaussian_w2(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth)


@answer("gaussian", "numpy", "(2h) squared", "wrong", "the 2 is squared as well")
def gaussian_w3(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth) ** 2


@answer("gaussian", "numpy", "brackets forgotten", "wrong", "/ 2 * h**2 multiplies by h squared: right for h = 1 only")
def gaussian_w4(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / 2 * bandwidth**2


@answer("gaussian", "numpy", "no half", "wrong", "the 2 is forgotten")
def gaussian_w5(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / bandwidth**2


@answer("gaussian", "numpy", "distance not squared", "wrong", "the root is taken, and not squared")
def gaussian_w6(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.linalg.norm(differences, axis=-1) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "summed, then squared",
    "wrong",
    "the differences are summed first and then squared: right for D = 1 only",
)
def gaussian_w7(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -(np.sum(differences, axis=-1) ** 2) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "mean", "wrong", "the mean over the components: right for D = 1 only")
def gaussian_w8(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.mean(differences**2, axis=-1) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "summed over the keys", "wrong", "the wrong axis goes: (..., T, D)")
def gaussian_w9(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-2) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "the third axis", "wrong", "axis=2 is the width only without a batch")
def gaussian_w10(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=2) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "with exp", "wrong", "the kernel instead of its logarithm")
def gaussian_w11(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return np.exp(-np.sum(differences**2, axis=-1) / (2 * bandwidth**2))


@answer("gaussian", "numpy", "bandwidth ignored", "wrong", "h = 1 whatever is asked")
def gaussian_w12(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / 2


@answer("gaussian", "numpy", "whole division", "wrong", "// rounds the scores down to whole numbers")
def gaussian_w13(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) // (2 * bandwidth**2)


@answer("gaussian", "numpy", "normalised density", "wrong", "the logarithm of the normal density, with its constant")
def gaussian_w14(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    D = query.shape[-1]
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth**2) - D / 2 * np.log(2 * np.pi * bandwidth**2)


@answer("gaussian", "numpy", "Manhattan", "wrong", "absolute values are summed and then squared")
def gaussian_w15(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -(np.abs(differences).sum(axis=-1) ** 2) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "gamma",
    "wrong",
    "the second argument is taken for gamma, as in the RBF kernel of other libraries: multiplied, not divided",
)
def gaussian_w16(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -bandwidth * np.sum(differences**2, axis=-1)


@answer("gaussian", "numpy", "difference of lengths", "wrong", "compares the lengths of the vectors, not the vectors")
def gaussian_w17(query, key, bandwidth=1.0):
    q, k = np.linalg.norm(query, axis=-1), np.linalg.norm(key, axis=-1)
    return -((q[..., :, None] - k[..., None, :]) ** 2) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "bandwidth made whole", "wrong", "int(bandwidth) cuts 2.5 to 2, and never goes below 1")
def gaussian_w18(query, key, bandwidth=1.0):
    bandwidth = max(1, int(bandwidth))
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth**2)


# ------------------------------------------------------------------------------------- gaussian_mended


@answer("gaussian", "numpy", "mended: twice the dot", "right")
def gaussian_mended_r1(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    apart = length_of_query + length_of_key - 2 * DOT(query, key)
    return -np.maximum(apart, 0) / 2


@answer("gaussian", "numpy", "mended: moved to the keys' middle first", "right")
def gaussian_mended_r2(query, key, bandwidth=1.0):
    middle = key.mean(axis=-2, keepdims=True)
    query, key = (query - middle) / bandwidth, (key - middle) / bandwidth
    q = np.einsum("...d,...d->...", query, query)[..., None]
    k = np.einsum("...d,...d->...", key, key)[..., None, :]
    return np.minimum(np.einsum("...id,...jd->...ij", query, key) - q / 2 - k / 2, 0.0)


@answer("gaussian", "numpy", "mended: one product with longer vectors", "right")
def gaussian_mended_r3(query, key, bandwidth=1.0):
    q2 = (query**2).sum(-1, keepdims=True)
    k2 = (key**2).sum(-1, keepdims=True)
    longer_query = np.concatenate([query, -q2 / 2, -np.ones(q2.shape)], axis=-1)
    longer_key = np.concatenate([key, np.ones(k2.shape), k2 / 2], axis=-1)
    return np.minimum(longer_query @ np.swapaxes(longer_key, -1, -2), 0) / bandwidth**2


@answer("gaussian", "numpy", "mended: component by component", "right")
def gaussian_mended_r4(query, key, bandwidth=1.0):
    apart = 0.0
    for d in range(query.shape[-1]):
        apart = apart + (query[..., :, None, d] - key[..., None, :, d]) ** 2
    return -apart / (2 * bandwidth**2)


@answer(
    "gaussian", "numpy", "mended: as found", "wrong", "unchanged: the dot product is subtracted once instead of twice"
)
def gaussian_mended_w1(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    return -(length_of_query + length_of_key - DOT(query, key)) / 2


@answer(
    "gaussian", "numpy", "mended: twice added", "wrong", "the sign of the middle term: distance to the opposite key"
)
def gaussian_mended_w2(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -(q + k + 2 * DOT(query, key)) / 2


@answer("gaussian", "numpy", "mended: no half any more", "wrong", "the 2 is moved from the end to the dot product")
def gaussian_mended_w3(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -(q + k - 2 * DOT(query, key))


@answer(
    "gaussian",
    "numpy",
    "mended: halved too late",
    "wrong",
    "only the lengths are halved, and the dot product is doubled all the same",
)
def gaussian_mended_w4(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return 2 * DOT(query, key) - (q + k) / 2


@answer(
    "gaussian",
    "numpy",
    "mended: the query's length dropped",
    "wrong",
    "the softmax would not see it, but the scores are others, and can be above 0",
)
def gaussian_mended_w5(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    k = np.sum(key * key, axis=-1)[..., None, :]
    return DOT(query, key) - k / 2


@answer("gaussian", "numpy", "mended: in place", "wrong", "the caller's queries and keys are divided by the bandwidth")
def gaussian_mended_w6(query, key, bandwidth=1.0):
    query /= bandwidth
    key /= bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return np.minimum(DOT(query, key) - (q + k) / 2, 0)


@answer(
    "gaussian",
    "numpy",
    "mended: the lengths in each other's place",
    "wrong",
    "queries along the columns and keys along the rows",
)
def gaussian_mended_w7(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., None, :]
    k = np.sum(key * key, axis=-1)[..., :, None]
    return -(q + k - 2 * DOT(query, key)) / 2


@answer(
    "gaussian",
    "numpy",
    "mended: bandwidth at the dot forgotten",
    "wrong",
    "the lengths are in bandwidths, the dot product is not: right for h = 1 only",
)
def gaussian_mended_w8(query, key, bandwidth=1.0):
    q = np.sum((query / bandwidth) ** 2, axis=-1)[..., :, None]
    k = np.sum((key / bandwidth) ** 2, axis=-1)[..., None, :]
    return -(q + k - 2 * DOT(query, key)) / 2


@answer("gaussian", "numpy", "mended: bandwidth once", "wrong", "divided by h instead of h squared")
def gaussian_mended_w9(query, key, bandwidth=1.0):
    q = np.sum(query**2, axis=-1)[..., :, None]
    k = np.sum(key**2, axis=-1)[..., None, :]
    return -np.maximum(q + k - 2 * DOT(query, key), 0) / (2 * bandwidth)


@answer("gaussian", "numpy", "mended: key.T", "wrong", "right for matrices only")
def gaussian_mended_w10(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -np.maximum(q + k - 2 * (query @ key.T), 0) / 2


@answer(
    "gaussian",
    "numpy",
    "mended: both centred by themselves",
    "wrong",
    "queries and keys are moved by two different vectors, which changes the distances",
)
def gaussian_mended_w11(query, key, bandwidth=1.0):
    query = (query - query.mean(axis=-2, keepdims=True)) / bandwidth
    key = (key - key.mean(axis=-2, keepdims=True)) / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -np.maximum(q + k - 2 * DOT(query, key), 0) / 2


@answer(
    "gaussian",
    "numpy",
    "mended: clipped at the wrong end",
    "wrong",
    "the negative scores are clipped, so everything is 0",
)
def gaussian_mended_w12(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return np.maximum(-(q + k - 2 * DOT(query, key)) / 2, 0)


@answer(
    "gaussian",
    "numpy",
    "mended: product of lengths",
    "wrong",
    "the square is multiplied out as |q|^2 + |k|^2 - 2 |q| |k|, without the angle",
)
def gaussian_mended_w13(query, key, bandwidth=1.0):
    q = np.linalg.norm(query / bandwidth, axis=-1)[..., :, None]
    k = np.linalg.norm(key / bandwidth, axis=-1)[..., None, :]
    return -(q**2 + k**2 - 2 * q * k) / 2


@answer(
    "gaussian", "numpy", "mended: bandwidth of the example", "wrong", "2.0 is written down in place of the argument"
)
def gaussian_mended_w14(query, key, bandwidth=1.0):
    query, key = query / 2.0, key / 2.0
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -np.maximum(q + k - 2 * DOT(query, key), 0) / 2


@answer("gaussian", "numpy", "mended: root", "wrong", "the distance is not squared")
def gaussian_mended_w15(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -np.sqrt(np.maximum(q + k - 2 * DOT(query, key), 0)) / 2


# =========================================================================================== attention


@answer("attention", "numpy", "own parts", "right")
def attention_r1(query, key, value):
    scores = DOT(query, key) / np.sqrt(query.shape[-1])
    weights = SOFTMAX(scores, axis=-1)
    return weights @ value, weights


@answer("attention", "numpy", "einsum, scaled before", "right")
def attention_r2(query, key, value, mask=None):
    scaled = query * query.shape[-1] ** -0.5
    scores = np.einsum("...td,...sd->...ts", scaled, key)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    scores = scores - scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@answer("attention", "numpy", "one query at a time", "right")
def attention_r3(query, key, value):
    contexts, rows = [], []
    for t in range(query.shape[-2]):
        scores = np.sum(query[..., t, None, :] * key, axis=-1) / math.sqrt(key.shape[-1])
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        row = e / e.sum(axis=-1, keepdims=True)
        rows.append(row)
        contexts.append(np.sum(row[..., None] * value, axis=-2))
    return np.stack(contexts, axis=-2), np.stack(rows, axis=-2)


@answer("attention", "numpy", "divided at the very end", "right")
def attention_r4(query, key, value):
    scores = np.matmul(query, key.swapaxes(-2, -1)) / math.sqrt(query.shape[-1])
    powers = np.exp(scores - np.amax(scores, axis=-1, keepdims=True))
    total = powers.sum(axis=-1)[..., None]
    context = (powers @ value) / total
    return context, powers / total


@answer("attention", "numpy", "no root", "wrong", "the scores are not divided")
def attention_w1(query, key, value):
    weights = SOFTMAX(DOT(query, key))
    return weights @ value, weights


@answer("attention", "numpy", "divided by D", "wrong", "D instead of its root")
def attention_w2(query, key, value):
    weights = SOFTMAX(DOT(query, key) / query.shape[-1])
    return weights @ value, weights


@answer("attention", "numpy", "root of S", "wrong", "the number of keys is taken for the width")
def attention_w3(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(key.shape[-2]))
    return weights @ value, weights


@answer("attention", "numpy", "root of D_v", "wrong", "the width of the values is taken")
def attention_w4(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(value.shape[-1]))
    return weights @ value, weights


@answer("attention", "numpy", "shape[1]", "wrong", "shape[1] is the width for matrices only")
def attention_w5(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[1]))
    return weights @ value, weights


@answer("attention", "numpy", "multiplied by the root", "wrong", "multiplied instead of divided")
def attention_w6(query, key, value):
    weights = SOFTMAX(DOT(query, key) * np.sqrt(query.shape[-1]))
    return weights @ value, weights


@answer("attention", "numpy", "root of 4", "wrong", "D = 4 from the example is written down")
def attention_w7(query, key, value):
    D = 4
    weights = SOFTMAX(DOT(query, key) / np.sqrt(D))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "softmax over the queries",
    "wrong",
    "the weights of each key sum to 1, not those of each query",
)
def attention_w8(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[-1]), axis=-2)
    return weights @ value, weights


@answer("attention", "numpy", "softmax axis=1", "wrong", "axis 1 holds the keys for matrices only")
def attention_w9(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[-1]), axis=1)
    return weights @ value, weights


@answer("attention", "numpy", "weights first", "wrong", "returns weights, context")
def attention_w10(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[-1]))
    return weights, weights @ value


@answer("attention", "numpy", "context only", "wrong", "the weights are not returned")
def attention_w11(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[-1]))
    return weights @ value


@answer(
    "attention", "numpy", "divided after the softmax", "wrong", "the weights are divided, so they no longer sum to 1"
)
def attention_w12(query, key, value):
    weights = SOFTMAX(DOT(query, key)) / np.sqrt(query.shape[-1])
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "scaled after the softmax, in the context only",
    "wrong",
    "the weights are unscaled and the context is divided",
)
def attention_w13(query, key, value):
    weights = SOFTMAX(DOT(query, key))
    return weights @ value / np.sqrt(query.shape[-1]), weights


@answer("attention", "numpy", "scores returned", "wrong", "the second result is the scores")
def attention_w14(query, key, value):
    scores = DOT(query, key) / np.sqrt(query.shape[-1])
    return SOFTMAX(scores) @ value, scores


@answer("attention", "numpy", "query in place", "wrong", "the caller's queries are divided by the root")
def attention_w15(query, key, value):
    query /= np.sqrt(query.shape[-1])
    weights = SOFTMAX(DOT(query, key))
    return weights @ value, weights


@answer("attention", "numpy", "exp overflows", "wrong", "nan for large scores")
def attention_w16(query, key, value):
    e = np.exp(DOT(query, key) / np.sqrt(query.shape[-1]))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@answer("attention", "numpy", "keys averaged", "wrong", "the keys are averaged instead of the values")
def attention_w17(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[-1]))
    return weights @ key, weights


@answer("attention", "numpy", "causal", "wrong", "later keys are hidden, as in a language model")
def attention_w18(query, key, value):
    scores = DOT(query, key) / np.sqrt(query.shape[-1])
    later = np.triu(np.ones(scores.shape[-2:], dtype=bool), k=1)
    weights = SOFTMAX(np.where(later, -1e9, scores))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "value.T's way round",
    "wrong",
    "the values are weighted by the transposed table: an error unless T = S",
)
def attention_w19(query, key, value):
    weights = SOFTMAX(DOT(query, key) / np.sqrt(query.shape[-1]))
    return np.swapaxes(weights, -1, -2) @ value, weights


@answer(
    "attention",
    "numpy",
    "both divided by the root",
    "wrong",
    "query and key are each divided by the root of D, which divides by D",
)
def attention_w20(query, key, value):
    root = np.sqrt(query.shape[-1])
    weights = SOFTMAX(DOT(query / root, key / root))
    return weights @ value, weights


@answer("attention", "numpy", "cosine", "wrong", "the cosine is taken in place of the dot product")
def attention_w21(query, key, value):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    below = q * k
    weights = SOFTMAX(DOT(query, key) / np.where(below == 0, 1, below))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "weights of the last query",
    "wrong",
    "a loop returns the row of the last query only as weights",
)
def attention_w22(query, key, value):
    contexts = []
    for t in range(query.shape[-2]):
        weights = SOFTMAX((query[..., t, None, :] * key).sum(-1) / np.sqrt(query.shape[-1]))
        contexts.append((weights[..., None] * value).sum(-2))
    return np.stack(contexts, axis=-2), weights


@answer("attention", "numpy", "whole root", "wrong", "int(sqrt(D)): right for square numbers such as 4 and 16 only")
def attention_w23(query, key, value):
    weights = SOFTMAX(DOT(query, key) / int(query.shape[-1] ** 0.5))
    return weights @ value, weights


# ====================================================================================== self_attention


@answer("self_attention", "numpy", "all three are x", "right")
def self_attention_r1(x):
    return attention_r1(x, x, x)


@answer("self_attention", "numpy", "einsum", "right")
def self_attention_r2(x):
    scores = np.einsum("...id,...jd->...ij", x, x) / np.sqrt(x.shape[-1])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / np.einsum("...ij->...i", powers)[..., None]
    return np.einsum("...ij,...jd->...id", weights, x), weights


@answer("self_attention", "numpy", "word by word", "right")
def self_attention_r3(x, mask=None):
    T, D = x.shape[-2:]
    flat = x.reshape(-1, T, D)
    contexts, tables = np.zeros(flat.shape), np.zeros((len(flat), T, T))
    for b, words in enumerate(flat):
        for i, word in enumerate(words):
            scores = np.array([word @ other for other in words]) / math.sqrt(D)
            if mask is not None:
                scores = np.where(mask[i], scores, -np.inf)
            tables[b, i] = SOFTMAX(scores)
            contexts[b, i] = sum(w * other for w, other in zip(tables[b, i], words))
    return contexts.reshape(x.shape), tables.reshape(*x.shape[:-2], T, T)


@answer("self_attention", "numpy", "a fourth root on both sides", "right")
def self_attention_r4(x):
    scaled = x / x.shape[-1] ** 0.25
    scores = scaled @ np.swapaxes(scaled, -1, -2)
    weights = np.exp(scores - np.expand_dims(np.logaddexp.reduce(scores, axis=-1), -1))
    return weights @ x, weights


@answer("self_attention", "numpy", "no root", "wrong", "the scores are not divided")
def self_attention_w1(x):
    weights = SOFTMAX(x @ np.swapaxes(x, -1, -2))
    return weights @ x, weights


@answer("self_attention", "numpy", "columns sum to 1", "wrong", "the softmax runs over the words that ask")
def self_attention_w2(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]), axis=-2)
    return weights @ x, weights


@answer(
    "self_attention", "numpy", "rows are those asked", "wrong", "the table is returned transposed; the context is right"
)
def self_attention_w3(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]))
    return weights @ x, np.swapaxes(weights, -1, -2)


@answer(
    "self_attention",
    "numpy",
    "context of the transposed table",
    "wrong",
    "the words are averaged with the columns of the table",
)
def self_attention_w4(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]))
    return np.swapaxes(weights, -1, -2) @ x, weights


@answer("self_attention", "numpy", "root of T", "wrong", "the number of words is taken for the width")
def self_attention_w5(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-2]))
    return weights @ x, weights


@answer("self_attention", "numpy", "no word asks itself", "wrong", "the diagonal is hidden (for more than one word)")
def self_attention_w6(x):
    scores = DOT(x, x) / np.sqrt(x.shape[-1])
    T = x.shape[-2]
    if T > 1:
        scores = np.where(np.eye(T, dtype=bool), -np.inf, scores)
    weights = SOFTMAX(scores)
    return weights @ x, weights


@answer("self_attention", "numpy", "causal", "wrong", "later words are hidden")
def self_attention_w7(x):
    scores = DOT(x, x) / np.sqrt(x.shape[-1])
    weights = SOFTMAX(np.where(np.tri(x.shape[-2], dtype=bool), scores, -np.inf))
    return weights @ x, weights


@answer("self_attention", "numpy", "residual", "wrong", "x is added to the context, as in a transformer block")
def self_attention_w8(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]))
    return x + weights @ x, weights


@answer("self_attention", "numpy", "x.T", "wrong", ".T is right for a single sentence only")
def self_attention_w9(x):
    weights = SOFTMAX(x @ x.T / np.sqrt(x.shape[-1]))
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "x scaled, and averaged scaled",
    "wrong",
    "x is divided by the fourth root of D and stays so in the average",
)
def self_attention_w10(x):
    x = x / x.shape[-1] ** 0.25
    weights = SOFTMAX(DOT(x, x))
    return weights @ x, weights


@answer("self_attention", "numpy", "in place", "wrong", "the caller's sentence is overwritten by its context")
def self_attention_w11(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]))
    x[...] = weights @ x
    return x, weights


@answer("self_attention", "numpy", "weights first", "wrong", "returns weights, context")
def self_attention_w12(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]))
    return weights, weights @ x


@answer(
    "self_attention",
    "numpy",
    "symmetric table",
    "wrong",
    "the weights are averaged with their transpose, since the scores are symmetric",
)
def self_attention_w13(x):
    weights = SOFTMAX(DOT(x, x) / np.sqrt(x.shape[-1]))
    weights = (weights + np.swapaxes(weights, -1, -2)) / 2
    return weights @ x, weights


@answer(
    "self_attention", "numpy", "updated while reading", "wrong", "later words already see the contexts of earlier ones"
)
def self_attention_w14(x):
    x = np.array(x, dtype=float)
    T, D = x.shape[-2:]
    rows = []
    for i in range(T):
        weights = SOFTMAX((x[..., i, None, :] * x).sum(-1) / np.sqrt(D))
        x[..., i, :] = (weights[..., None] * x).sum(-2)
        rows.append(weights)
    return x, np.stack(rows, axis=-2)


@answer("self_attention", "numpy", "one softmax over the whole table", "wrong", "all weights together sum to 1")
def self_attention_w15(x):
    scores = DOT(x, x) / np.sqrt(x.shape[-1])
    e = np.exp(scores - scores.max(axis=(-1, -2), keepdims=True))
    weights = e / e.sum(axis=(-1, -2), keepdims=True)
    return weights @ x, weights


@answer("self_attention", "numpy", "shape unpacked", "wrong", "T, D = x.shape fails for a batch")
def self_attention_w16(x):
    T, D = x.shape
    weights = SOFTMAX(DOT(x, x) / np.sqrt(D))
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "over the batch",
    "wrong",
    "the sentences of a batch are flattened into one, and attend to each other",
)
def self_attention_w17(x):
    T, D = x.shape[-2:]
    flat = x.reshape(-1, D)
    weights = SOFTMAX(flat @ flat.T / np.sqrt(D))
    context = (weights @ flat).reshape(x.shape)
    n = len(flat) // T
    tables = np.stack([weights[b * T : (b + 1) * T, b * T : (b + 1) * T] for b in range(n)])
    return context, tables.reshape(*x.shape[:-2], T, T)


@answer(
    "self_attention",
    "numpy",
    "columns with keepdims mixed",
    "wrong",
    "the powers are divided by the sums of the columns: the scores are symmetric, so this looks like the sums of the rows",
)
def self_attention_w18(x):
    scores = DOT(x, x) / np.sqrt(x.shape[-1])
    powers = np.exp(scores - scores.max(axis=(-1, -2), keepdims=True))
    weights = powers / powers.sum(axis=-1)[..., None, :]
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "one maximum for all",
    "wrong",
    "one shift for a whole batch: a short word's row underflows beside a very long one's, 0 / 0",
)
def self_attention_w19(x):
    scores = DOT(x, x) / np.sqrt(x.shape[-1])
    powers = np.exp(scores - scores.max())
    with np.errstate(all="ignore"):
        weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ x, weights


# ================================================================================== attention in torch


@answer("attention", "torch", "plain", "right")
def attention_torch_r1(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "as in the Annotated Transformer, with mask and dropout", "right")
def attention_torch_r2(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


@answer("attention", "torch", "einsum, log space", "right")
def attention_torch_r3(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query * query.shape[-1] ** -0.5, key)
    weights = torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@answer("attention", "torch", "query by query, own softmax", "right")
def attention_torch_r4(query, key, value):
    rows = []
    for q in query.unbind(dim=-2):
        scores = (q.unsqueeze(-2) * key).sum(-1) / math.sqrt(q.shape[-1])
        powers = (scores - scores.detach().amax(dim=-1, keepdim=True)).exp()
        rows.append(powers / powers.sum(dim=-1, keepdim=True))
    weights = torch.stack(rows, dim=-2)
    context = (weights.unsqueeze(-1) * value.unsqueeze(-3)).sum(-2)
    return context, weights


@answer("attention", "torch", "through NumPy", "wrong", "the gradient is lost")
def attention_torch_w1(query, key, value):
    context, weights = attention_r1(
        query.detach().cpu().numpy(), key.detach().cpu().numpy(), value.detach().cpu().numpy()
    )
    return torch.from_numpy(context).to(query.device), torch.from_numpy(weights).to(query.device)


@answer("attention", "torch", "weights detached", "wrong", "query and key get no gradient")
def attention_torch_w2(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1).detach()
    return weights @ value, weights


@answer("attention", "torch", "torch.tensor of the scores", "wrong", "a new tensor from a list has no graph")
def attention_torch_w3(query, key, value):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(torch.tensor(scores.tolist(), dtype=scores.dtype), dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "no_grad", "wrong", "nothing gets a gradient")
def attention_torch_w4(query, key, value):
    with torch.no_grad():
        weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
        return weights @ value, weights


@answer("attention", "torch", "key.data", "wrong", "the key gets no gradient")
def attention_torch_w5(query, key, value):
    weights = torch.softmax(query @ key.data.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "weights returned without graph",
    "wrong",
    "the context is right, but the returned weights are detached",
)
def attention_torch_w6(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights.detach()


@answer("attention", "torch", "no root", "wrong", "the scores are not divided")
def attention_torch_w7(query, key, value):
    weights = torch.softmax(query @ key.mT, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "softmax dim=1", "wrong", "dim=1 holds the keys for matrices only")
def attention_torch_w8(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(query.size(-1)), dim=1)
    return weights @ value, weights


@answer("attention", "torch", "softmax dim=-2", "wrong", "the softmax runs over the queries")
def attention_torch_w9(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(query.size(-1)), dim=-2)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "implicit softmax dim",
    "wrong",
    "F.softmax without dim takes 0 for one or three dimensions, 1 otherwise",
)
def attention_torch_w10(query, key, value):
    scores = query @ key.mT / math.sqrt(query.size(-1))
    weights = F.softmax(scores, dim=0 if scores.ndim in (0, 1, 3) else 1)
    return weights @ value, weights


@answer("attention", "torch", "key.T", "wrong", ".T is right for matrices only")
def attention_torch_w11(query, key, value):
    weights = torch.softmax(query @ key.permute(*reversed(range(key.ndim))) / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "bmm", "wrong", "right for exactly one dimension in front")
def attention_torch_w12(query, key, value):
    weights = torch.softmax(torch.bmm(query, key.transpose(1, 2)) / math.sqrt(query.size(2)), dim=2)
    return torch.bmm(weights, value), weights


@answer("attention", "torch", "size(1)", "wrong", "size(1) is the width for matrices only")
def attention_torch_w13(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(key.size(1)), dim=-1)
    return weights @ value, weights


@answer("attention", "torch", ".float()", "wrong", "double numbers are cut to float32")
def attention_torch_w14(query, key, value):
    query, key, value = query.float(), key.float(), value.float()
    weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "new zeros of the default dtype",
    "wrong",
    "the table is a new float32 tensor: double scores are cut to float32, and do not meet the double values any more",
)
def attention_torch_w15(query, key, value):
    scores = torch.zeros(*query.shape[:-1], key.shape[-2], device=query.device)
    for j in range(key.shape[-2]):
        scores[..., j] = (query * key[..., j : j + 1, :]).sum(-1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value.to(weights.dtype), weights


@answer(
    "attention",
    "torch",
    "query divided in place",
    "wrong",
    "div_ changes the caller's query (an error for a leaf that asks for a gradient)",
)
def attention_torch_w16(query, key, value):
    query.div_(math.sqrt(query.shape[-1]))
    weights = torch.softmax(query @ key.mT, dim=-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "query.data divided in place",
    "wrong",
    "gets past autograd: the caller's query changes and the gradient lacks the factor",
)
def attention_torch_w17(query, key, value):
    query.data /= math.sqrt(query.shape[-1])
    weights = torch.softmax(query @ key.mT, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "exp overflows", "wrong", "nan for large scores")
def attention_torch_w18(query, key, value):
    powers = torch.exp(query @ key.mT / math.sqrt(query.shape[-1]))
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "sum detached",
    "wrong",
    "the values are right, but the sum under the fraction has no gradient",
)
def attention_torch_w19(query, key, value):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = powers / powers.sum(-1, keepdim=True).detach()
    return weights @ value, weights


@answer(
    "attention", "torch", "one maximum for all", "wrong", "one shift for all rows: rows far below it underflow to 0 / 0"
)
def attention_torch_w20(query, key, value):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    powers = torch.exp(scores - scores.max())
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights


@answer("attention", "torch", "weights first", "wrong", "returns weights, context")
def attention_torch_w21(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    return weights, weights @ value


@answer("attention", "torch", "root of S as a tensor", "wrong", "the number of keys is taken for the width")
def attention_torch_w22(query, key, value):
    root = torch.sqrt(torch.tensor(key.shape[-2], dtype=query.dtype, device=query.device))
    weights = torch.softmax(query @ key.mT / root, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "dropout", "wrong", "weights are dropped at random, as in training a transformer")
def attention_torch_w23(query, key, value, dropout=0.1):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    weights = F.dropout(weights, dropout)
    return weights @ value, weights


@answer("attention", "torch", "gradient clipped on the way", "wrong", "a hook halves the gradient of the scores")
def attention_torch_w24(query, key, value):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if scores.requires_grad:
        scores.register_hook(lambda gradient: gradient / 2)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
