"""More answers to the notebook "self-attention without parameters", by other readers."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ---- what this student has got right already, and a stand-in for attnlib.dot ----------------------------------------
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def dot(query, key):
    return query @ np.swapaxes(key, -1, -2)


def attention(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    return weights @ value, weights


# =====================================================================================================================
# softmax
# =====================================================================================================================
@answer("softmax", "numpy", "no shift", "wrong", "exp(1000) is inf, and inf / inf is nan.")
def softmax_w1(x, axis=-1):
    numerator = np.exp(x)
    return numerator / np.sum(numerator, axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "largest of all",
    "wrong",
    "Subtracts the largest number of the whole array: a row that lies far below it becomes 0 / 0.",
)
def softmax_w2(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / e.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "sum of all", "wrong", "Divides by the sum of the whole array: the rows together sum to 1.")
def softmax_w3(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum()


@answer(
    "softmax",
    "numpy",
    "keepdims forgotten in the sum",
    "wrong",
    "Without keepdims the sums stand under the wrong scores, or do not fit.",
)
def softmax_w4(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)


@answer(
    "softmax",
    "numpy",
    "new axis always at the end",
    "wrong",
    "[..., None] puts the sums into columns: right for the last axis only.",
)
def softmax_w5(x, axis=-1):
    shifted = x - np.max(x, axis=axis)[..., None]
    e = np.exp(shifted)
    return e / np.sum(e, axis=axis)[..., None]


@answer("softmax", "numpy", "axis ignored", "wrong", "Always works along the last axis.")
def softmax_w6(x, axis=-1):
    x = x - np.max(x, axis=-1, keepdims=True)
    return np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True)


@answer("softmax", "numpy", "shift in the caller's array", "wrong", "x -= changes the scores of the caller.")
def softmax_w7(x, axis=-1):
    x -= np.max(x, axis=axis, keepdims=True)
    e = np.exp(x)
    return e / np.sum(e, axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "asarray is no copy",
    "wrong",
    "np.asarray copies integers, but not float64 scores: those of the caller are overwritten.",
)
def softmax_w8(x, axis=-1):
    w = np.asarray(x, dtype=np.float64)
    w -= w.max(axis=axis, keepdims=True)
    np.exp(w, out=w)
    w /= w.sum(axis=axis, keepdims=True)
    return w


@answer(
    "softmax",
    "numpy",
    "integer result",
    "wrong",
    "empty_like takes over the integers of the scores, and the weights are cut off to 0 and 1.",
)
def softmax_w9(x, axis=-1):
    out = np.empty_like(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    out[...] = e / e.sum(axis=axis, keepdims=True)
    return out


@answer("softmax", "numpy", "mean subtracted", "wrong", "Subtracting the mean does not keep exp from overflowing.")
def softmax_w10(x, axis=-1):
    e = np.exp(x - np.mean(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "largest absolute value",
    "wrong",
    "The shift by max |x| makes scores around -1000 still smaller: all exponentials are 0, and 0 / 0 is nan.",
)
def softmax_w11(x, axis=-1):
    e = np.exp(x - np.abs(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@answer("softmax", "numpy", "clipped scores", "wrong", "Clipping makes all scores above 700 equal.")
def softmax_w12(x, axis=-1):
    e = np.exp(np.clip(x, -700, 700))
    return e / e.sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "divided by the largest",
    "wrong",
    "Divides the scores by the largest; only a shift cancels, not a factor.",
)
def softmax_w13(x, axis=-1):
    x = x / np.max(x, axis=axis, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@answer(
    "softmax", "numpy", "nan made to zero", "wrong", "nan_to_num hides the overflow: the large scores get the weight 0."
)
def softmax_w14(x, axis=-1):
    with np.errstate(all="ignore"):
        e = np.exp(x)
        return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))


@answer(
    "softmax",
    "numpy",
    "max along the last, sum along axis",
    "wrong",
    "The shift is taken along the last axis even if axis=0: then the numbers of one column are shifted by different amounts.",
)
def softmax_w15(x, axis=-1):
    m = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - m)
    return e / np.sum(e, axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "rows one by one",
    "wrong",
    "The loop is made for tables: one vector, or a stack of tables, or axis=0 are not treated.",
)
def softmax_w16(x, axis=-1):
    rows = []
    for row in x:
        e = [math.exp(s - max(row)) for s in row]
        rows.append([value / sum(e) for value in e])
    return np.array(rows)


@answer(
    "softmax",
    "numpy",
    "small number below",
    "wrong",
    "Negative scores are not shifted, and 1e-9 hides the 0 / 0: for scores around -1000 all weights are 0.",
)
def softmax_w17(x, axis=-1):
    top = np.maximum(np.max(x, axis=axis, keepdims=True), 0)  # only large scores can overflow
    e = np.exp(x - top)
    return e / (e.sum(axis=axis, keepdims=True) + 1e-9)


@answer("softmax", "numpy", "transposes for axis 0", "wrong", "For axis=0 the result is never transposed back.")
def softmax_w18(x, axis=-1):
    if axis == 0:
        x = x.T
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@answer("softmax", "numpy", "log-sum-exp", "right")
def softmax_r1(x, axis=-1):
    top = np.expand_dims(np.amax(x, axis), axis)
    log_total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))
    return np.exp(x - top - log_total)


@answer("softmax", "numpy", "moves the axis and loops", "right")
def softmax_r2(x, axis=-1):
    rows = np.moveaxis(np.array(x, dtype=float), axis, -1)
    rows = rows.copy()
    for place in np.ndindex(rows.shape[:-1]):
        top = max(rows[place])
        powers = [math.exp(score - top) for score in rows[place]]
        total = math.fsum(powers)
        rows[place] = [p / total for p in powers]
    return np.moveaxis(rows, -1, axis)


@answer("softmax", "numpy", "logaddexp", "right")
def softmax_r3(x, axis=-1):
    return np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True, dtype=float))


# =====================================================================================================================
# dot
# =====================================================================================================================
@answer("dot", "numpy", "key.T", "wrong", "key.T turns all axes around: right for a table, wrong for a stack.")
def dot_w1(query, key):
    return query @ key.T


@answer("dot", "numpy", "np.dot", "wrong", "np.dot of two stacks makes (B, T, B, S).")
def dot_w2(query, key):
    return np.dot(query, np.swapaxes(key, -1, -2))


@answer(
    "dot",
    "numpy",
    "np.inner",
    "wrong",
    "np.inner of two stacks compares the queries of each sentence with the keys of every sentence: (B, T, B, S).",
)
def dot_w3(query, key):
    return np.inner(query, key)


@answer("dot", "numpy", "rows for the keys", "wrong", "The scores are (S, T): a row for each key.")
def dot_w4(query, key):
    return key @ np.swapaxes(query, -1, -2)


@answer("dot", "numpy", "einsum that pairs", "wrong", "One letter for both: query i meets key i only.")
def dot_w5(query, key):
    return np.einsum("...td,...td->...t", query, key)


@answer("dot", "numpy", "einsum for one batch axis", "wrong", "'btd,bsd->bts' needs exactly three dimensions.")
def dot_w6(query, key):
    return np.einsum("btd,bsd->bts", query, key)


@answer("dot", "numpy", "scaled already", "wrong", "Divides by the root of D, which belongs to task 9.")
def dot_w7(query, key):
    return np.einsum("...td,...sd->...ts", query, key) / math.sqrt(key.shape[-1])


@answer("dot", "numpy", "square table", "wrong", "The inner loop runs over the number of queries, not of keys.")
def dot_w8(query, key):
    T = query.shape[-2]
    scores = np.zeros(query.shape[:-2] + (T, T))
    for i in range(T):
        for j in range(T):
            scores[..., i, j] = np.sum(query[..., i, :] * key[..., j, :], axis=-1)
    return scores


@answer("dot", "numpy", "reshape for transpose", "wrong", "reshape fills (D, S) row by row: that does not transpose.")
def dot_w9(query, key):
    *front, S, D = key.shape
    return query @ key.reshape(*front, D, S)


@answer(
    "dot",
    "numpy",
    "sum over the keys",
    "wrong",
    "The sum runs over axis -2 of (..., T, S, D), so the widths stay and the keys are gone.",
)
def dot_w10(query, key):
    products = query[..., :, None, :] * key[..., None, :, :]
    return products.sum(axis=-2)


@answer(
    "dot",
    "numpy",
    "comprehension for tables",
    "wrong",
    "The comprehension runs over the first axis, which is the batch in a stack.",
)
def dot_w11(query, key):
    return np.array([[np.sum(q * k) for k in key] for q in query])


@answer(
    "dot",
    "numpy",
    "batch index reused",
    "wrong",
    "The key's batch index is left at the last sentence of an earlier loop.",
)
def dot_w12(query, key):
    if query.ndim == 2:
        return query @ key.T
    turned = []
    for b in range(len(key)):
        turned.append(np.swapaxes(key[b], -1, -2))
    return np.stack([query[i] @ turned[b] for i in range(len(query))])


@answer("dot", "numpy", "tensordot", "right")
def dot_r1(query, key):
    front = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    q = np.broadcast_to(query, front + query.shape[-2:])
    k = np.broadcast_to(key, front + key.shape[-2:])
    scores = np.zeros(front + (q.shape[-2], k.shape[-2]), dtype=np.result_type(q, k))
    for place in np.ndindex(*front):
        scores[place] = np.tensordot(q[place], k[place], axes=([1], [1]))
    return scores


@answer("dot", "numpy", "one width after the other", "right")
def dot_r2(query, key):
    return sum(query[..., :, None, d] * key[..., None, :, d] for d in range(query.shape[-1]))


# =====================================================================================================================
# cosine
# =====================================================================================================================
@answer("cosine", "numpy", "zero gives nan", "wrong", "A vector of zeros makes 0 / 0, which is nan.")
def cosine_w1(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return dot(query, key) / lengths


@answer("cosine", "numpy", "zero check for the query only", "wrong", "A key of zeros still makes nan.")
def cosine_w2(query, key):
    nq = np.sqrt((query**2).sum(-1, keepdims=True))
    nk = np.sqrt((key**2).sum(-1, keepdims=True))
    q = np.divide(query, nq, out=np.zeros_like(query, dtype=float), where=nq > 0)
    return dot(q, key / nk)


@answer("cosine", "numpy", "squared lengths", "wrong", "The root is forgotten: divides by the squared lengths.")
def cosine_w3(query, key):
    nq = np.sum(query * query, axis=-1)[..., :, None]
    nk = np.sum(key * key, axis=-1)[..., None, :]
    below = nq * nk
    return dot(query, key) / np.where(below == 0, 1, below)


@answer(
    "cosine",
    "numpy",
    "at least one",
    "wrong",
    "np.maximum(length, 1) changes every vector shorter than 1, not only that of zeros.",
)
def cosine_w4(query, key):
    nq = np.maximum(np.linalg.norm(query, axis=-1, keepdims=True), 1)
    nk = np.maximum(np.linalg.norm(key, axis=-1, keepdims=True), 1)
    return dot(query / nq, key / nk)


@answer(
    "cosine",
    "numpy",
    "eps as in torch",
    "wrong",
    "Clamps the product of the lengths to 1e-8: the cosine of two short vectors comes out too small.",
)
def cosine_w5(query, key, eps=1e-8):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return dot(query, key) / np.maximum(lengths, eps)


@answer(
    "cosine", "numpy", "one more below", "wrong", "Adds 1e-3 below the fraction, so that every cosine is too small."
)
def cosine_w6(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return dot(query, key) / (lengths + 1e-3)


@answer(
    "cosine",
    "numpy",
    "length of the table",
    "wrong",
    "np.linalg.norm without an axis is one number for the whole array.",
)
def cosine_w7(query, key):
    nq, nk = np.linalg.norm(query), np.linalg.norm(key)
    if nq == 0 or nk == 0:
        return np.zeros_like(dot(query, key), dtype=float)
    return dot(query, key) / (nq * nk)


@answer("cosine", "numpy", "any zero, all zero", "wrong", "One vector of zeros makes all cosines 0.")
def cosine_w8(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    if (lengths == 0).any():
        return np.zeros(lengths.shape)
    return dot(query, key) / lengths


@answer("cosine", "numpy", "sum is zero", "wrong", "Takes a vector for zero if its numbers sum to 0: (1, -1) as well.")
def cosine_w9(query, key):
    def unit(x):
        length = np.sqrt((x * x).sum(-1, keepdims=True))
        is_zero = x.sum(-1, keepdims=True) == 0
        return np.where(is_zero, 0.0, x / np.where(length == 0, 1.0, length))

    return dot(unit(query), unit(key))


@answer(
    "cosine",
    "numpy",
    "lengths on the wrong sides",
    "wrong",
    "The lengths of the queries are laid along the keys and the other way round.",
)
def cosine_w10(query, key):
    nq = np.linalg.norm(query, axis=-1)[..., None, :]
    nk = np.linalg.norm(key, axis=-1)[..., :, None]
    nq, nk = np.where(nq == 0, 1, nq), np.where(nk == 0, 1, nk)
    return dot(query, key) / nq / nk


@answer("cosine", "numpy", "normalised in place", "wrong", "Divides the caller's queries and keys.")
def cosine_w11(query, key):
    for x in (query, key):
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        length[length == 0] = 1
        x /= length
    return query @ np.swapaxes(key, -1, -2)


@answer(
    "cosine",
    "numpy",
    "ones where nothing is divided",
    "wrong",
    "Where nothing is divided the ones of out remain: the cosine with a vector of zeros should be 0.",
)
def cosine_w12(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return np.divide(dot(query, key), lengths, where=lengths != 0, out=np.ones_like(lengths))


@answer(
    "cosine", "numpy", "norms along axis 1", "wrong", "axis=1 is the width for a table; in a stack it is the positions."
)
def cosine_w13(query, key):
    nq = np.linalg.norm(query, axis=1, keepdims=True)
    nk = np.linalg.norm(key, axis=1, keepdims=True)
    q = query / np.where(nq > 0, nq, 1)
    k = key / np.where(nk > 0, nk, 1)
    return dot(q, k)


@answer("cosine", "numpy", "cosine distance", "wrong", "Returns 1 minus the cosine, the distance of SciPy.")
def cosine_w14(query, key):
    nq = np.linalg.norm(query, axis=-1, keepdims=True)
    nk = np.linalg.norm(key, axis=-1, keepdims=True)
    return 1 - dot(query / np.where(nq > 0, nq, 1), key / np.where(nk > 0, nk, 1))


@answer("cosine", "numpy", "the angle itself", "wrong", "arccos turns the cosine into an angle.")
def cosine_w15(query, key):
    nq = np.linalg.norm(query, axis=-1, keepdims=True)
    nk = np.linalg.norm(key, axis=-1, keepdims=True)
    c = dot(query / np.where(nq > 0, nq, 1), key / np.where(nk > 0, nk, 1))
    return np.arccos(np.clip(c, -1, 1))


@answer("cosine", "numpy", "negative cut off", "wrong", "The result is clipped to 0 to 1; a cosine may be negative.")
def cosine_w16(query, key):
    nq = np.linalg.norm(query, axis=-1, keepdims=True)
    nk = np.linalg.norm(key, axis=-1, keepdims=True)
    return dot(query / np.where(nq > 0, nq, 1), key / np.where(nk > 0, nk, 1)).clip(0, 1)


@answer(
    "cosine",
    "numpy",
    "sum of absolute values",
    "wrong",
    "Normalises by the sum of absolute values in place of the Euclidean length.",
)
def cosine_w17(query, key):
    nq = np.abs(query).sum(-1, keepdims=True)
    nk = np.abs(key).sum(-1, keepdims=True)
    return dot(query / (nq + (nq == 0)), key / (nk + (nk == 0)))


@answer("cosine", "numpy", "hypot pair by pair", "right")
def cosine_r1(query, key):
    def one_table(qs, ks):
        table = np.zeros((len(qs), len(ks)))
        for (i, q), (j, k) in itertools.product(enumerate(qs), enumerate(ks)):
            lq, lk = math.hypot(*q), math.hypot(*k)
            if lq > 0 and lk > 0:
                table[i, j] = max(-1.0, min(1.0, math.fsum(float(a) / lq * (float(b) / lk) for a, b in zip(q, k))))
        return table

    return np.vectorize(one_table, signature="(t,d),(s,d)->(t,s)", otypes=[float])(query, key)


@answer("cosine", "numpy", "zero counts as length one", "right")
def cosine_r2(query, key):
    def unit(x):
        length = np.sqrt(np.einsum("...d,...d->...", x, x))[..., np.newaxis]
        return x / (length + (length == 0))

    return np.clip(np.einsum("...td,...sd->...ts", unit(query), unit(key)), -1.0, 1.0)


# =====================================================================================================================
# gaussian (task 6)
# =====================================================================================================================
def _differences(query, key):
    return query[..., :, None, :] - key[..., None, :, :]  # the given line


@answer("gaussian", "numpy", "h not squared", "wrong", "Divides by 2h in place of 2h^2.")
def gaussian_w1(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -(differences**2).sum(-1) / (2 * bandwidth)


@answer("gaussian", "numpy", "two squared too", "wrong", "(2h)^2 below the fraction.")
def gaussian_w2(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth) ** 2


@answer(
    "gaussian",
    "numpy",
    "parentheses below the fraction",
    "wrong",
    "/ 2 * h**2 divides by 2 and then multiplies by h^2.",
)
def gaussian_w3(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / 2 * bandwidth**2


@answer("gaussian", "numpy", "sign", "wrong", "The minus is missing: the far key scores higher.")
def gaussian_w4(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return np.einsum("...d,...d->...", differences, differences) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "minus squared away",
    "wrong",
    "(-differences)**2 is positive: the minus has to stand outside the square.",
)
def gaussian_w5(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return np.sum((-differences) ** 2 / (2 * bandwidth**2), axis=-1)


@answer(
    "gaussian",
    "numpy",
    "exp included",
    "wrong",
    "Returns the bell curve itself; the exponential belongs to the softmax.",
)
def gaussian_w6(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return np.exp(-(differences**2).sum(-1) / (2 * bandwidth**2))


@answer("gaussian", "numpy", "distance not squared", "wrong", "The norm is not squared.")
def gaussian_w7(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.linalg.norm(differences, axis=-1) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "sum over the keys", "wrong", "Sums over axis -2, the keys, and keeps the widths.")
def gaussian_w8(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -(differences**2).sum(axis=-2) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "axis 2", "wrong", "axis=2 is the width without a batch only.")
def gaussian_w9(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -0.5 * (differences**2).sum(axis=2) / bandwidth**2


@answer("gaussian", "numpy", "mean of squares", "wrong", "The mean over the widths in place of the sum.")
def gaussian_w10(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.mean(differences**2, axis=-1) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "square of the sum", "wrong", "Adds the differences first and squares the sum.")
def gaussian_w11(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -(differences.sum(axis=-1) ** 2) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "density of the normal distribution",
    "wrong",
    "Adds the logarithm of the normal density's constant, which the formula does not have.",
)
def gaussian_w12(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    z = differences / bandwidth
    return -0.5 * (z * z).sum(-1) - np.log(bandwidth * np.sqrt(2 * np.pi))


@answer("gaussian", "numpy", "half forgotten", "wrong", "The 2 below the fraction is missing.")
def gaussian_w13(query, key, bandwidth=1.0):
    differences = (query[..., :, None, :] - key[..., None, :, :]) / bandwidth
    return -np.square(differences).sum(axis=-1)


@answer(
    "gaussian",
    "numpy",
    "scaled difference, then h again",
    "wrong",
    "The differences are divided by h and the square once more by h^2.",
)
def gaussian_w14(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    differences = differences / bandwidth
    return -np.square(differences).sum(axis=-1) / (2 * bandwidth**2)


@answer("gaussian", "numpy", "bandwidth ignored", "wrong", "The bandwidth never enters: right for h = 1 only.")
def gaussian_w15(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -0.5 * np.sum(differences**2, axis=-1)


@answer("gaussian", "numpy", "einsum of the scaled differences", "right")
def gaussian_r1(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    z = differences / (bandwidth * 2**0.5)
    return -np.einsum("...d,...d", z, z)


@answer("gaussian", "numpy", "norm, squared again", "right")
def gaussian_r2(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    distance = np.linalg.norm(differences, axis=-1)
    return np.negative(0.5 * np.power(distance / bandwidth, 2))


# =====================================================================================================================
# gaussian_mended (task 7, check "gaussian")
# =====================================================================================================================
@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: plus two",
    "wrong",
    "The sign of the middle term: -2 q.k, not +2 q.k.",
)
def gaussian_mended_w1(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    return -(lq + lk + 2 * dot(query, key)) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: length of the query left out",
    "wrong",
    "Leaves out |q|^2 since the softmax does not see it; but the scores are asked for, not the weights.",
)
def gaussian_mended_w2(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lk = np.sum(key * key, axis=-1)[..., None, :]
    return dot(query, key) - lk / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: bandwidth twice",
    "wrong",
    "Scaled by h at the beginning and divided by h^2 at the end.",
)
def gaussian_mended_w3(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    apart = np.maximum(lq + lk - 2 * dot(query, key), 0)
    return -apart / (2 * bandwidth**2)


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: clamped to the wrong side",
    "wrong",
    "np.maximum with 0 on the negative scores: all of them become 0.",
)
def gaussian_mended_w4(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    return np.maximum(-(lq + lk - 2 * dot(query, key)) / 2, 0)


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: each centred by its own mean",
    "wrong",
    "Queries and keys are moved by different vectors, so the distances change.",
)
def gaussian_mended_w5(query, key, bandwidth=1.0):
    query = (query - query.mean(axis=-2, keepdims=True)) / bandwidth
    key = (key - key.mean(axis=-2, keepdims=True)) / bandwidth
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    return -np.maximum(lq + lk - 2 * dot(query, key), 0) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: lengths exchanged",
    "wrong",
    "The new axes of the two lengths are exchanged: right for T = S and equal lengths only.",
)
def gaussian_mended_w6(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.sum(query * query, axis=-1)[..., None, :]
    lk = np.sum(key * key, axis=-1)[..., :, None]
    return -(lq + lk - 2 * dot(query, key)) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: keepdims for both",
    "wrong",
    "The key's lengths stay a column: they are added to the rows of the queries.",
)
def gaussian_mended_w7(query, key, bandwidth=1.0):
    q2 = np.sum(query**2, axis=-1, keepdims=True)
    k2 = np.sum(key**2, axis=-1, keepdims=True)
    return -(q2 + k2 - 2 * query @ np.swapaxes(key, -1, -2)) / (2 * bandwidth**2)


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: lengths not squared",
    "wrong",
    "Uses the lengths where the squared lengths are needed.",
)
def gaussian_mended_w8(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.linalg.norm(query, axis=-1)[..., :, None]
    lk = np.linalg.norm(key, axis=-1)[..., None, :]
    return -(lq + lk - 2 * dot(query, key)) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: half of the product",
    "wrong",
    "The whole is halved and the product is not doubled inside but halved: -q.k / 2 twice is mixed up.",
)
def gaussian_mended_w9(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    return -(lq + lk) / 2 + dot(query, key) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: divides in place",
    "wrong",
    "/= changes the caller's queries and keys.",
)
def gaussian_mended_w10(query, key, bandwidth=1.0):
    query /= bandwidth
    key /= bandwidth
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    return -np.maximum(lq + lk - 2 * dot(query, key), 0) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: only the product scaled",
    "wrong",
    "The lengths are taken before the division by h, the product after it.",
)
def gaussian_mended_w11(query, key, bandwidth=1.0):
    lq = np.sum(query * query, axis=-1)[..., :, None]
    lk = np.sum(key * key, axis=-1)[..., None, :]
    query, key = query / bandwidth, key / bandwidth
    return -(lq + lk - 2 * dot(query, key)) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: diagonal of one table",
    "wrong",
    "Takes the lengths from the diagonal of dot(query, query) with np.diag, which has no batch.",
)
def gaussian_mended_w12(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    lq = np.diag(dot(query, query))[:, None]
    lk = np.diag(dot(key, key))[None, :]
    return -np.maximum(lq + lk - 2 * dot(query, key), 0) / 2


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: product of lengths",
    "wrong",
    "The middle term is 2 |q| |k|: as if all vectors had one direction; right for hours on one side of 0.",
)
def gaussian_mended_w13(query, key, bandwidth=1.0):
    lq = np.sqrt(np.sum(query * query, axis=-1))[..., :, None]
    lk = np.sqrt(np.sum(key * key, axis=-1))[..., None, :]
    apart = lq**2 + lk**2 - 2 * lq * lk
    return -np.maximum(apart, 0) / (2 * bandwidth**2)


@answer(
    "gaussian_without_differences",
    "numpy",
    "mended: the differences again",
    "wrong",
    "The numbers are right, but this is task 6 again, with the array (..., T, S, D) that the task forbids.",
)
def gaussian_mended_w14(query, key, bandwidth=1.0):
    apart = ((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(-1)
    return -apart / (2 * bandwidth**2)


@answer("gaussian_without_differences", "numpy", "mended: centred on the first key", "right")
def gaussian_mended_r1(query, key, bandwidth=1.0):
    origin = key[..., :1, :]
    query, key = (query - origin) / bandwidth, (key - origin) / bandwidth
    lq = np.einsum("...td,...td->...t", query, query)[..., :, None]
    lk = np.einsum("...sd,...sd->...s", key, key)[..., None, :]
    return np.minimum(dot(query, key) - 0.5 * lq - 0.5 * lk, 0)


@answer("gaussian_without_differences", "numpy", "mended: two more columns", "right")
def gaussian_mended_r2(query, key, bandwidth=1.0):
    """|q - k|^2 = (q, |q|^2, 1) . (-2k, 1, |k|^2)."""

    def length(x):
        return (x * x).sum(axis=-1, keepdims=True)

    q = np.concatenate([query, length(query), np.ones_like(length(query))], axis=-1)
    k = np.concatenate([-2 * key, np.ones_like(length(key)), length(key)], axis=-1)
    squared = np.clip(q @ np.swapaxes(k, -1, -2), 0, None)
    return squared / (-2 * bandwidth**2)


# =====================================================================================================================
# attention, NumPy
# =====================================================================================================================
@answer("attention", "numpy", "root of S", "wrong", "Divides by the root of the number of keys, not of the width.")
def attention_w1(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(key.shape[-2]))
    return weights @ value, weights


@answer("attention", "numpy", "root of D_v", "wrong", "Divides by the root of the width of the values.")
def attention_w2(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(value.shape[-1]))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "shape[1]",
    "wrong",
    "shape[1] is the width of a table; in a stack it is the number of queries.",
)
def attention_w3(query, key, value):
    d = query.shape[1]
    weights = softmax(dot(query, key) / np.sqrt(d))
    return weights @ value, weights


@answer("attention", "numpy", "no root", "wrong", "Divides by D, not by its root.")
def attention_w4(query, key, value):
    scores = dot(query, key) / query.shape[-1]
    weights = softmax(scores)
    return weights @ value, weights


@answer("attention", "numpy", "no scale", "wrong", "The scale is missing.")
def attention_w5(query, key, value):
    w = softmax(dot(query, key))
    return np.einsum("...ts,...sv->...tv", w, value), w


@answer("attention", "numpy", "multiplied", "wrong", "Multiplies by the root where it should divide.")
def attention_w6(query, key, value):
    scores = dot(query, key) * np.sqrt(query.shape[-1])
    w = softmax(scores)
    return w @ value, w


@answer(
    "attention",
    "numpy",
    "columns sum to 1",
    "wrong",
    "The softmax runs over the queries: the weights of each key sum to 1.",
)
def attention_w7(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1]), axis=-2)
    return w @ value, w


@answer("attention", "numpy", "axis 1", "wrong", "axis=1 is right for a table only.")
def attention_w8(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1]), axis=1)
    return w @ value, w


@answer(
    "attention",
    "numpy",
    "scale behind the softmax",
    "wrong",
    "The weights are divided by the root, not the scores: they no longer sum to 1.",
)
def attention_w9(query, key, value):
    w = softmax(dot(query, key)) / np.sqrt(query.shape[-1])
    return w @ value, w


@answer("attention", "numpy", "scores returned", "wrong", "Returns the scores in place of the weights.")
def attention_w10(query, key, value):
    scores = dot(query, key) / np.sqrt(query.shape[-1])
    return softmax(scores) @ value, scores


@answer("attention", "numpy", "weights first", "wrong", "The weights are returned first, then the context.")
def attention_w11(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    return w, w @ value


@answer("attention", "numpy", "context alone", "wrong", "Returns the context without the weights.")
def attention_w12(query, key, value):
    return softmax(dot(query, key) / np.sqrt(query.shape[-1])) @ value


@answer("attention", "numpy", "np.dot with the values", "wrong", "np.dot of two stacks makes (B, T, B, D_v).")
def attention_w13(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    return np.dot(w, value), w


@answer("attention", "numpy", "averages the keys", "wrong", "The keys are averaged, not the values.")
def attention_w14(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    return w @ key, w


@answer("attention", "numpy", "scaled twice", "wrong", "The queries are divided by the root, and the scores again.")
def attention_w15(query, key, value):
    root = np.sqrt(query.shape[-1])
    q = query / root
    w = softmax(dot(q, key) / root)
    return w @ value, w


@answer("attention", "numpy", "query scaled in place", "wrong", "query *= changes the caller's queries.")
def attention_w16(query, key, value):
    query *= query.shape[-1] ** -0.5
    w = softmax(query @ key.swapaxes(-2, -1))
    return w @ value, w


@answer(
    "attention",
    "numpy",
    "running sum not reset",
    "wrong",
    "The accumulator is made before the loop over the queries, so each context contains those before it.",
)
def attention_w17(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    contexts = []
    total = np.zeros(value.shape[:-2] + value.shape[-1:])
    for i in range(w.shape[-2]):
        for j in range(w.shape[-1]):
            total = total + w[..., i, j, None] * value[..., j, :]
        contexts.append(total)
    return np.stack(contexts, axis=-2), w


@answer("attention", "numpy", "rounded weights", "wrong", "Rounds the weights to two digits before they are used.")
def attention_w18(query, key, value):
    w = softmax(dot(query, key) / np.sqrt(query.shape[-1])).round(2)
    return w @ value, w


@answer("attention", "numpy", "width of the example", "wrong", "Divides by 2, the root of the 4 of the example.")
def attention_w19(query, key, value):
    w = softmax(dot(query, key) / 2)
    return w @ value, w


@answer("attention", "numpy", "query by query", "right")
def attention_r1(query, key, value):
    contexts, tables = [], []
    for i in range(query.shape[-2]):
        scores = (query[..., i : i + 1, :] * key).sum(-1) / math.sqrt(key.shape[-1])  # (..., S)
        alpha = softmax(scores)
        contexts.append((alpha[..., None] * value).sum(-2))
        tables.append(alpha)
    return np.stack(contexts, -2), np.stack(tables, -2)


@answer("attention", "numpy", "divides at the very end", "right")
def attention_r2(query, key, value):
    fourth_root = query.shape[-1] ** 0.25  # half of the scale on each side
    scores = np.einsum("...td,...sd->...ts", query / fourth_root, key / fourth_root)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = e.sum(axis=-1)[..., None]
    return (e @ value) / total, e / total


@answer("attention", "numpy", "all on the other side", "right")
def attention_r3(query, key, value):
    by_key = key @ np.swapaxes(query, -1, -2) / np.sqrt(key.shape[-1])  # (..., S, T)
    alpha = softmax(by_key, axis=-2)
    context = np.swapaxes(np.swapaxes(value, -1, -2) @ alpha, -1, -2)
    return context, np.swapaxes(alpha, -1, -2)


# =====================================================================================================================
# self_attention
# =====================================================================================================================
@answer(
    "self_attention",
    "numpy",
    "columns",
    "wrong",
    "The softmax runs down the columns; every table is square, so nothing complains.",
)
def self_attention_w1(x):
    weights = softmax(dot(x, x) / np.sqrt(x.shape[-1]), axis=-2)
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "weights turned before the sum",
    "wrong",
    "The weights are transposed before the sum: row i belongs to the word that is asked.",
)
def self_attention_w2(x):
    weights = softmax(dot(x, x) / np.sqrt(x.shape[-1]))
    return np.swapaxes(weights, -1, -2) @ x, weights


@answer(
    "self_attention",
    "numpy",
    "einsum with the wrong letter",
    "wrong",
    "'...ts,...tv->...sv' sums over the words that ask.",
)
def self_attention_w3(x):
    weights = softmax(np.einsum("...td,...sd->...ts", x, x) / np.sqrt(x.shape[-1]))
    return np.einsum("...ts,...tv->...sv", weights, x), weights


@answer(
    "self_attention",
    "numpy",
    "not itself",
    "wrong",
    "Each word is kept from attending to itself; the formula sums over all j.",
)
def self_attention_w4(x):
    scores = dot(x, x) / np.sqrt(x.shape[-1])
    scores = np.where(np.eye(x.shape[-2], dtype=bool), -1e9, scores)
    weights = softmax(scores)
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "causal",
    "wrong",
    "Only earlier words may be looked at, a mask that the task does not have.",
)
def self_attention_w5(x):
    scores = dot(x, x) / np.sqrt(x.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[-2:])) == 1, scores, -np.inf)
    weights = softmax(scores)
    return weights @ x, weights


@answer("self_attention", "numpy", "root of T", "wrong", "Divides by the root of the number of words: shape[-2].")
def self_attention_w6(x):
    T = x.shape[-2]
    weights = softmax(dot(x, x) / T**0.5)
    return weights @ x, weights


@answer("self_attention", "numpy", "residual", "wrong", "Adds x to the context, as a transformer block does.")
def self_attention_w7(x):
    context, weights = attention(x, x, x)
    return x + context, weights


@answer("self_attention", "numpy", "context alone", "wrong", "Forgets to return the weights.")
def self_attention_w8(x):
    return attention(x, x, x)[0]


@answer(
    "self_attention",
    "numpy",
    "updates while it reads",
    "wrong",
    "Later words look at context vectors of earlier ones, since they are written into the same table.",
)
def self_attention_w9(x):
    words = np.array(x, dtype=float)
    rows = []
    for i in range(x.shape[-2]):
        scores = (words[..., i : i + 1, :] * words).sum(-1) / np.sqrt(x.shape[-1])
        w = softmax(scores)
        rows.append(w)
        words[..., i, :] = (w[..., None] * words).sum(-2)
    return words, np.stack(rows, -2)


@answer(
    "self_attention",
    "numpy",
    "one long sequence",
    "wrong",
    "The batch is flattened to one sequence: the words look into other sentences.",
)
def self_attention_w10(x):
    flat = x.reshape(-1, x.shape[-1])
    context, weights = attention(flat, flat, flat)
    if x.ndim == 2:
        return context, weights
    T = x.shape[-2]
    blocks = [weights[i : i + T, i : i + T] for i in range(0, len(flat), T)]
    return context.reshape(x.shape), np.array(blocks).reshape(x.shape[:-1] + (T,))


@answer(
    "self_attention",
    "numpy",
    "normalised words",
    "wrong",
    "The words are normalised first: cosines in place of dot products.",
)
def self_attention_w11(x):
    n = np.linalg.norm(x, axis=-1, keepdims=True)
    unit = x / np.where(n == 0, 1, n)
    return attention(unit, unit, x)


@answer(
    "self_attention",
    "numpy",
    "symmetric weights",
    "wrong",
    "The weights are averaged with their transpose, in the belief that looking goes both ways.",
)
def self_attention_w12(x):
    _, w = attention(x, x, x)
    w = (w + np.swapaxes(w, -1, -2)) / 2
    return w @ x, w


@answer("self_attention", "numpy", "x.T", "wrong", "x.T reverses all axes of a batch.")
def self_attention_w13(x):
    weights = softmax(x @ x.T / np.sqrt(x.shape[-1]))
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "sequence first",
    "wrong",
    "Takes the first axis for the sequence, as PyTorch does without batch_first: in (B, T, D) the sentences attend to each other.",
)
def self_attention_w14(x):
    if x.ndim == 2:
        return attention(x, x, x)
    y = np.swapaxes(x, 0, -2)
    context, weights = attention(y, y, y)
    return np.swapaxes(context, 0, -2), weights


@answer("self_attention", "numpy", "unpacked shape", "wrong", "T, D = x.shape crashes as soon as there is a batch.")
def self_attention_w15(x):
    T, D = x.shape
    weights = np.zeros((T, T))
    for i in range(T):
        weights[i] = softmax(x @ x[i] / np.sqrt(D))
    return weights @ x, weights


@answer("self_attention", "numpy", "Gram table, divided row by row", "right")
def self_attention_r1(x):
    D = x.shape[-1]
    gram = np.matmul(x, np.swapaxes(x, -2, -1))
    half = gram / (2 * math.sqrt(D))
    scores = half + np.swapaxes(half, -1, -2)  # exactly symmetric
    e = np.exp(scores - scores.max(-1, keepdims=True))
    alpha = e / np.einsum("...ts->...t", e)[..., None]
    return np.einsum("...ts,...sd->...td", alpha, x), alpha


@answer("self_attention", "numpy", "sentence by sentence", "right")
def self_attention_r2(x):
    T = x.shape[-2]
    context, weights = np.empty(x.shape), np.empty(x.shape[:-1] + (T,))
    for place in np.ndindex(x.shape[:-2]):
        words = x[place]
        for i, asking in enumerate(words):
            shares = softmax(np.array([np.vdot(asking, word) for word in words]) * len(asking) ** -0.5)
            weights[place][i] = shares
            context[place][i] = shares @ words
    return context, weights


# =====================================================================================================================
# attention_torch (task 13, check "attention", backend torch)
# =====================================================================================================================
@answer("attention", "torch", "through numpy", "wrong", "A detour through NumPy: right numbers, no gradient.")
def attention_torch_w1(query, key, value):
    context, weights = attention(query.detach().numpy(), key.detach().numpy(), value.detach().numpy())
    return torch.from_numpy(context), torch.from_numpy(weights)


@answer("attention", "torch", "weights detached", "wrong", "The weights are cut off: only the values get a gradient.")
def attention_torch_w2(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights.detach() @ value, weights


@answer(
    "attention", "torch", "key as data", "wrong", "key.data is outside of the graph: no gradient flows to the keys."
)
def attention_torch_w3(query, key, value):
    scores = query @ key.data.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = F.softmax(scores, dim=-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "copies of the inputs",
    "wrong",
    "torch.as_tensor of a list makes new tensors, which have no tie to the ones that came in: no gradients.",
)
def attention_torch_w4(query, key, value):
    q, k, v = (
        torch.as_tensor(x.tolist(), dtype=x.dtype, device=x.device).requires_grad_() for x in (query, key, value)
    )
    weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
    return weights @ v, weights


@answer("attention", "torch", "key.T", "wrong", ".T of a stack reverses all axes.")
def attention_torch_w5(query, key, value):
    weights = torch.softmax(torch.matmul(query, key.T) / math.sqrt(query.shape[-1]), dim=-1)
    return torch.matmul(weights, value), weights


@answer(
    "attention",
    "torch",
    "dim 1",
    "wrong",
    "dim=1 is the keys for a table only; in a stack the sums run over the queries.",
)
def attention_torch_w6(query, key, value):
    weights = torch.softmax(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), dim=1)
    return weights @ value, weights


@answer("attention", "torch", "bmm", "wrong", "torch.bmm takes exactly three dimensions (d2l's code).")
def attention_torch_w7(query, key, value):
    d = query.shape[-1]
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(d)
    weights = F.softmax(scores, dim=-1)
    return torch.bmm(weights, value), weights


@answer(
    "attention",
    "torch",
    "softmax without dim",
    "wrong",
    "Without dim torch guesses: dimension 0 for a stack of three dimensions.",
)
def attention_torch_w8(query, key, value):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = F.softmax(query @ key.mT / query.shape[-1] ** 0.5)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "softmax of one's own overflows",
    "wrong",
    "exp over sum without a shift: large scores give nan.",
)
def attention_torch_w9(query, key, value):
    e = torch.exp(query @ key.mT / query.shape[-1] ** 0.5)
    weights = e / e.sum(-1, keepdim=True)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "half precision",
    "wrong",
    "Everything is rounded to float16 on the way: three digits are left, and large numbers become inf.",
)
def attention_torch_w10(query, key, value):
    query, key, value = query.half(), key.half(), value.half()
    weights = torch.softmax((query @ key.mT).float() / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value.float(), weights


@answer(
    "attention",
    "torch",
    "dropout as in the Annotated Transformer",
    "wrong",
    "F.dropout is active by default: a tenth of the weights is 0, and the others are larger.",
)
def attention_torch_w11(query, key, value):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = F.dropout(scores.softmax(dim=-1), p=0.1)
    return torch.matmul(p_attn, value), p_attn


@answer(
    "attention",
    "torch",
    "d of the first axis",
    "wrong",
    "len(query) is the number of queries, or of sentences, not the width.",
)
def attention_torch_w12(query, key, value):
    weights = torch.softmax(torch.einsum("...td,...sd->...ts", query, key) / len(query) ** 0.5, dim=-1)
    return weights @ value, weights


@answer(
    "attention", "torch", "exponent without parentheses", "wrong", "scores / d ** 1 / 2 is scores / d / 2, not a root."
)
def attention_torch_w13(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 1 / 2
    weights = torch.softmax(scores, -1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "one-hot of the largest",
    "wrong",
    "Only the best key counts: hard attention, through which no gradient flows.",
)
def attention_torch_w14(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = F.one_hot(scores.argmax(-1), key.shape[-2]).to(value.dtype)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "item in a loop",
    "wrong",
    "The scores are plain numbers, put into a new tensor: no gradient to query and key.",
)
def attention_torch_w15(query, key, value):
    scores = query.new_zeros(query.shape[:-1] + (key.shape[-2],))
    for place in np.ndindex(*scores.shape):
        *front, i, j = place
        q, k = query[(*front, i)], key[(*front, j)]
        scores[place] = (q * k).sum().item() / query.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return weights @ value, weights


@answer("attention", "torch", "log_softmax", "wrong", "The weights are logarithms of what they should be.")
def attention_torch_w16(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = F.log_softmax(scores, dim=-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "query scaled in place",
    "wrong",
    "mul_ changes the caller's queries, and raises an error for a leaf that wants a gradient.",
)
def attention_torch_w17(query, key, value):
    query.mul_(query.shape[-1] ** -0.5)
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "logsumexp and outer products", "right")
def attention_torch_r1(query, key, value):
    scores = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1).div(query.shape[-1] ** 0.5)
    weights = torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))
    context = (weights.unsqueeze(-1) * value.unsqueeze(-3)).sum(dim=-2)
    return context, weights


@answer("attention", "torch", "query after query", "right")
def attention_torch_r2(query, key, value):
    scale = 1 / math.sqrt(key.size(-1))
    rows, contexts = [], []
    for q in query.unbind(dim=-2):
        alpha = F.softmax(torch.matmul(key, q[..., None]) * scale, dim=-2)  # (..., S, 1)
        contexts.append((alpha * value).sum(-2))
        rows.append(alpha[..., 0])
    return torch.stack(contexts, dim=-2), torch.stack(rows, dim=-2)


@answer("attention", "torch", "einsum and a shift without gradient", "right")
def attention_torch_r3(query, key, value):
    q = query * query.size(-1) ** -0.5
    scores = torch.einsum("...id,...jd->...ij", q, key)
    with torch.no_grad():
        top = scores.amax(-1, keepdim=True)
    e = (scores - top).exp()
    weights = e / e.sum(dim=-1, keepdim=True)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights
