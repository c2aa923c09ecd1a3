"""More answers to the exercises of chapter 5, masks: written from the notebook alone."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


def _softmax(x):
    """Stand-in for attnlib.softmax: over the last axis; a row of nothing but -inf becomes zeros."""
    x = np.asarray(x, dtype=float)
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    e = np.exp(x - top)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


attnlib = SimpleNamespace(softmax=_softmax)  # only what the notebook allows in task 7


# ----------------------------------------------------------------------------------------------------------------------
# Task 2: causal_mask
# ----------------------------------------------------------------------------------------------------------------------


@answer("causal_mask", "numpy", "triu negated", "right")
def causal_r1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    future = np.triu(np.ones((T, S), dtype=bool), k=q_offset + 1)
    return ~future


@answer("causal_mask", "numpy", "fromfunction", "right")
def causal_r2(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.fromfunction(lambda i, j: i - j >= -q_offset, (T, S), dtype=int)


@answer("causal_mask", "numpy", "slices with the ends clipped", "right")
def causal_r3(T, S=None, *, q_offset=0):
    S = T if S is None else S
    out = np.zeros((T, S), dtype=np.bool_)
    for row in range(T):
        how_many = min(S, max(0, row + q_offset + 1))
        out[row, :how_many] = True
    return out


@answer("causal_mask", "numpy", "sign of a table of distances", "right")
def causal_r4(T, S=None, *, q_offset=0):
    if S is None:
        S = T
    ahead = np.subtract.outer(-np.arange(T), -np.arange(S))  # j - i
    return np.logical_not(np.greater(ahead, q_offset))


@answer("causal_mask", "numpy", "how many keys each query sees", "right")
def causal_r5(T, S=None, *, q_offset=0):
    S = T if S is None else S
    seen = np.clip(q_offset + 1 + np.arange(T), 0, S)
    return np.arange(S) < seen.reshape(T, 1)


@answer("causal_mask", "numpy", "strict", "wrong", "A word may look at itself: it is j <= i + offset, not <.")
def causal_w1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j < i + q_offset


@answer(
    "causal_mask", "numpy", "offset subtracted", "wrong", "A larger offset must show more keys; here it hides them."
)
def causal_w2(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j <= i - q_offset


@answer(
    "causal_mask",
    "numpy",
    "offset added to the keys",
    "wrong",
    "The offset belongs to the queries: j + o <= i moves the staircase the wrong way.",
)
def causal_w3(T, S=None, *, q_offset=0):
    S = S if S is not None else T
    queries = np.arange(T)
    keys = np.arange(q_offset, q_offset + S)
    return np.array([[k <= q for k in keys] for q in queries], dtype=bool).reshape(T, S)


@answer("causal_mask", "numpy", "offset forgotten", "wrong", "q_offset is never used.")
def causal_w4(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.tril(np.ones((T, S), dtype=bool))


@answer("causal_mask", "numpy", "PyTorch polarity", "wrong", "Inverted: True stands where the query may NOT attend.")
def causal_w5(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.triu(np.ones((T, S)), k=1 + q_offset).astype(bool)


@answer(
    "causal_mask",
    "numpy",
    "looks ahead only",
    "wrong",
    "Turned round: every query sees itself and what stands after it.",
)
def causal_w6(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return i + q_offset <= j


@answer("causal_mask", "numpy", "rows are keys", "wrong", "The mask is (S, T): rows and columns have changed places.")
def causal_w7(T, S=None, *, q_offset=0):
    S = T if S is None else S
    q, k = np.meshgrid(np.arange(T), np.arange(S))
    return k <= q + q_offset


@answer(
    "causal_mask",
    "numpy",
    "slice end below zero",
    "wrong",
    "With a negative offset the end of the slice is negative, and counts from the back: a query that sees nothing sees a lot.",
)
def causal_w8(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.zeros((T, S), dtype=bool)
    for t in range(T):
        mask[t, : t + q_offset + 1] = True
    return mask


@answer(
    "causal_mask",
    "numpy",
    "index past the last key",
    "wrong",
    "If there are fewer keys than i + offset + 1, the index runs out of the mask (IndexError).",
)
def causal_w9(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.full((T, S), False)
    for t in range(T):
        for s in range(t + q_offset + 1):
            mask[t, s] = True
    return mask


@answer(
    "causal_mask",
    "numpy",
    "aligned at the end by itself",
    "wrong",
    "If no offset is given, S - T is used (as some kernels do); the text says 0: the first query meets the first key.",
)
def causal_w10(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    o = q_offset or S - T
    return j <= i + o


@answer(
    "causal_mask",
    "numpy",
    "zero and minus infinity",
    "wrong",
    "It returns numbers to be added (0 and -inf), not True and False.",
)
def causal_w11(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return np.where(j <= i + q_offset, 0.0, -np.inf)


@answer(
    "causal_mask",
    "numpy",
    "Annotated Transformer",
    "wrong",
    "subsequent_mask of the Annotated Transformer: it has a batch dimension, (1, T, T), and knows neither S nor the offset.",
)
def causal_w12(T, S=None, *, q_offset=0):
    attn_shape = (1, T, T)
    subsequent_mask = np.triu(np.ones(attn_shape), k=1).astype("uint8")
    return subsequent_mask == 0


@answer(
    "causal_mask",
    "numpy",
    "zeros and ones",
    "wrong",
    "It returns whole numbers 0 and 1, not True and False; ~mask then means something else.",
)
def causal_w13(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return 1 * (j <= i + q_offset)


@answer(
    "causal_mask",
    "numpy",
    "every query sees something",
    "wrong",
    "A query that sees nothing (negative offset) is allowed the first key, 'to avoid nan'.",
)
def causal_w14(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j <= np.maximum(i + q_offset, 0)


@answer(
    "causal_mask",
    "numpy",
    "earlier keys hidden",
    "wrong",
    "The keys that were there before (the first o) are hidden; they should all be seen.",
)
def causal_w15(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None] + q_offset
    j = np.arange(S)[None, :]
    return (j <= i) & (j >= q_offset)


@answer(
    "causal_mask",
    "numpy",
    "square, then the columns before it",
    "wrong",
    "A block of q_offset True columns is put before a square triangle: the number of columns is o + T, not S, and a negative offset raises an error.",
)
def causal_w16(T, S=None, *, q_offset=0):
    triangle = np.tril(np.ones((T, T), dtype=bool))
    if q_offset == 0 and S is None:
        return triangle
    before = np.ones((T, q_offset), dtype=bool)
    return np.hstack([before, triangle])


@answer(
    "causal_mask",
    "numpy",
    "off by one with an offset",
    "wrong",
    "'After five keys' is read as 'sees five keys': with an offset the query does not see itself.",
)
def causal_w17(T, S=None, *, q_offset=0):
    S = T if S is None else S
    rows = []
    for query in range(T):
        seen = query + 1 if q_offset == 0 else query + q_offset
        rows.append(np.arange(S) < seen)
    return np.stack(rows)


# ----------------------------------------------------------------------------------------------------------------------
# Task 3: padding_mask
# ----------------------------------------------------------------------------------------------------------------------


@answer("padding_mask", "numpy", "outer comparison", "right")
def padding_r1(lengths, S):
    real = np.greater.outer(np.asarray(lengths), np.arange(S))
    return np.expand_dims(real, (1, 2))


@answer("padding_mask", "numpy", "filled sentence by sentence", "right")
def padding_r2(lengths, S):
    mask = np.zeros((len(lengths), 1, 1, S), bool)
    for row, n in zip(mask, lengths):
        row[0, 0, :n] = True
    return mask


@answer("padding_mask", "numpy", "rows of a triangle", "right")
def padding_r3(lengths, S):
    lengths = np.asarray(lengths, dtype=int)
    table = np.arange(S + 1)[:, None] > np.arange(S)  # row n: n real keys
    return table[lengths][:, np.newaxis, np.newaxis, :]


@answer("padding_mask", "numpy", "lists of True and False", "right")
def padding_r4(lengths, S):
    rows = [[True] * int(n) + [False] * (S - int(n)) for n in lengths]
    return np.array(rows, dtype=bool).reshape(len(rows), 1, 1, S)


@answer(
    "padding_mask",
    "numpy",
    "length counted as real",
    "wrong",
    "Off by one: the key number `length` is padding already.",
)
def padding_w1(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return j <= lengths[:, None, None, None]


@answer(
    "padding_mask",
    "numpy",
    "True at the padding",
    "wrong",
    "Inverted: True stands at the padding, as in PyTorch's key_padding_mask.",
)
def padding_w2(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return (j >= lengths[:, None])[:, None, None, :]


@answer(
    "padding_mask",
    "numpy",
    "no room for heads and queries",
    "wrong",
    "The shape is (B, S): laid over (B, H, T, S) it meets the queries, not the sentences.",
)
def padding_w3(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return j < lengths[:, None]


@answer("padding_mask", "numpy", "one dimension short", "wrong", "The shape is (B, 1, S): B stands below the heads.")
def padding_w4(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return j < lengths[:, None, None]


@answer(
    "padding_mask",
    "numpy",
    "lies on the queries",
    "wrong",
    "The shape is (B, 1, S, 1): whole queries are hidden, not keys.",
)
def padding_w5(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return j[None, None, :, None] < lengths[:, None, None, None]


@answer(
    "padding_mask",
    "numpy",
    "ones in front",
    "wrong",
    "The shape is (1, 1, B, S): sentences stand where queries belong.",
)
def padding_w6(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return (j < lengths.reshape(-1, 1))[None, None]


@answer(
    "padding_mask",
    "numpy",
    "padding on the left",
    "wrong",
    "The last keys are taken for the real ones; here the padding stands behind the sentence.",
)
def padding_w7(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return j >= (S - lengths)[:, None, None, None]


@answer(
    "padding_mask",
    "numpy",
    "minus zero",
    "wrong",
    "mask[-0:] is everything: a sentence without padding is hidden whole.",
)
def padding_w8(lengths, S):
    mask = np.ones((len(lengths), 1, 1, S), dtype=bool)
    for b, n in enumerate(lengths):
        filling = S - n
        mask[b, 0, 0, -filling:] = False
    return mask


@answer(
    "padding_mask",
    "numpy",
    "one row for all",
    "wrong",
    "[row] * B is B times the SAME list: each sentence gets the True of all the others.",
)
def padding_w9(lengths, S):
    rows = [[False] * S] * len(lengths)
    for row, length in zip(rows, lengths):
        for j in range(length):
            row[j] = True
    return np.array(rows)[:, None, None, :]


@answer("padding_mask", "numpy", "S from the longest", "wrong", "The last dimension is max(lengths), not S.")
def padding_w10(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(lengths.max())
    return np.less(j, lengths[:, None])[:, None, None]


@answer(
    "padding_mask",
    "numpy",
    "empty sentence keeps a word",
    "wrong",
    "A sentence of length 0 has a row of False alone; here its first key is True.",
)
def padding_w11(lengths, S):
    lengths = np.maximum(np.asarray(lengths), 1)
    return (np.arange(S) < lengths[:, None]).reshape(len(lengths), 1, 1, S)


@answer(
    "padding_mask",
    "numpy",
    "list not converted",
    "wrong",
    "lengths may be a list, and a list cannot be indexed with [:, None] (TypeError).",
)
def padding_w12(lengths, S):
    j = np.arange(S)
    return (j[None, :] < lengths[:, None])[:, None, None, :]


@answer(
    "padding_mask",
    "numpy",
    "queries and keys hidden",
    "wrong",
    "The mask is (B, 1, S, S): it also hides everything from the queries on padding, and does not fit T != S.",
)
def padding_w13(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    real = j < lengths[:, None]
    return real[:, None, :, None] & real[:, None, None, :]


@answer(
    "padding_mask",
    "numpy",
    "reshape instead of broadcasting",
    "wrong",
    "tile and reshape the wrong way round: j is repeated in the order of the batch, so keys and sentences are mixed up.",
)
def padding_w14(lengths, S):
    lengths = np.asarray(lengths)
    B = lengths.size
    keys = np.repeat(np.arange(S), B)
    return (keys < np.tile(lengths, S)).reshape(B, 1, 1, S)


@answer(
    "padding_mask",
    "numpy",
    "the sizes of the example",
    "wrong",
    "The sizes of the example, 2 and 5, are written into the code.",
)
def padding_w15(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return (j < lengths[:, None]).reshape(2, 1, 1, 5)


@answer(
    "padding_mask",
    "numpy",
    "cumulative lengths",
    "wrong",
    "The lengths are added up first (as for packed sentences); every sentence starts at 0 of its own row.",
)
def padding_w16(lengths, S):
    ends = np.cumsum(np.asarray(lengths))
    return (np.arange(S)[None, :] < ends[:, None])[:, None, None, :]


# ----------------------------------------------------------------------------------------------------------------------
# Task 5: masked_attention
# ----------------------------------------------------------------------------------------------------------------------


@answer("masked_attention", "numpy", "row by row, allowed keys only", "right")
def masked_r1(query, key, value, mask):
    D = query.shape[-1]
    scores = np.einsum("...td,...sd->...ts", query, key) / np.sqrt(D)
    allowed = np.broadcast_to(mask, scores.shape)
    weights = np.zeros(scores.shape)
    for where in np.ndindex(scores.shape[:-1]):
        picked = np.flatnonzero(allowed[where])
        if len(picked) == 0:
            continue
        row = scores[where][picked]
        e = np.exp(row - row.max())
        weights[where][picked] = e / e.sum()
    return weights @ value, weights


@answer("masked_attention", "numpy", "masked arrays", "right")
def masked_r2(query, key, value, mask):
    scores = query @ np.swapaxes(key, -2, -1) * query.shape[-1] ** -0.5
    hidden = ~np.broadcast_to(np.asarray(mask, dtype=bool), scores.shape)
    s = np.ma.array(scores, mask=hidden)
    top = s.filled(-np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    e = np.ma.exp(s - np.where(np.isneginf(top), 0.0, top)).filled(0.0)
    below = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, below, out=np.zeros_like(e), where=below > 0)
    return np.matmul(weights, value), weights


@answer("masked_attention", "numpy", "log of the sum", "right")
def masked_r3(query, key, value, mask):
    s = np.where(mask, query @ np.moveaxis(key, -1, -2) / math.sqrt(query.shape[-1]), -np.inf)
    with np.errstate(divide="ignore"):  # log(0) in an empty row
        top = s.max(axis=-1, keepdims=True, initial=-np.inf)
        top = np.where(np.isneginf(top), 0.0, top)
        lse = top + np.log(np.exp(s - top).sum(axis=-1, keepdims=True))
    weights = np.exp(s - np.where(np.isneginf(lse), 0.0, lse))
    return weights @ value, weights


@answer("masked_attention", "numpy", "nan mended on the way", "right")
def masked_r4(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    scores = np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        scores = scores - scores.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    weights = np.where(np.isnan(weights), 0.0, weights)
    return np.einsum("...ij,...jv->...iv", weights, value), weights


@answer("masked_attention", "numpy", "lowest finite number, zeroed again", "right")
def masked_r5(query, key, value, mask):
    scores = np.inner(query, key) if query.ndim == key.ndim == 2 else query @ np.swapaxes(key, -1, -2)
    scores = np.where(mask, scores / np.sqrt(key.shape[-1]), np.finfo(float).min / 4)
    e = (
        np.exp(scores - np.max(scores, -1, keepdims=True, initial=np.finfo(float).min / 4)) * mask
    )  # the empty row had ones: now zeros
    norm = e.sum(-1)[..., None]
    weights = e / (norm + (norm == 0))
    return weights @ value, weights


@answer("masked_attention", "numpy", "itself for each sentence", "right")
def masked_r6(query, key, value, mask):
    mask = np.broadcast_to(mask, (*query.shape[:-1], key.shape[-2]))
    if query.ndim > 2:
        results = [masked_r6(*one) for one in zip(query, key, value, mask)]
        return tuple(np.stack(parts) for parts in zip(*results))

    def row(q, allowed):
        s = [float(q @ k) / len(q) ** 0.5 if ok else None for k, ok in zip(key, allowed)]
        top = max((x for x in s if x is not None), default=0.0)
        e = [0.0 if x is None else math.exp(x - top) for x in s]
        return [x / sum(e) for x in e] if any(allowed) else [0.0] * len(e)

    weights = np.array([row(q, m) for q, m in zip(query, mask)]).reshape(mask.shape)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "zeroed after the softmax",
    "wrong",
    "The mask comes after the softmax, and the row no longer sums to 1.",
)
def masked_w1(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    weights = weights * mask
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "zeroed and divided again",
    "wrong",
    "Masked after the softmax and normalised anew: a large forbidden score presses the allowed weights to exactly 0, and the row becomes empty.",
)
def masked_w2(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.where(mask, e / e.sum(axis=-1, keepdims=True), 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "minus a billion",
    "wrong",
    "-1e9 in place of -inf: a query that may look at nothing looks at everything equally.",
)
def masked_w3(query, key, value, mask):
    d_k = query.shape[-1]
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(d_k)
    scores = np.where(mask, scores, -1e9)
    p_attn = np.exp(scores - scores.max(-1, keepdims=True))
    p_attn /= p_attn.sum(-1, keepdims=True)
    return p_attn @ value, p_attn


@answer(
    "masked_attention",
    "numpy",
    "minus ten thousand added",
    "wrong",
    "-1e4 is ADDED to forbidden scores (as in old BERT code): a forbidden score larger than that comes through; the empty row gets weights, too.",
)
def masked_w4(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    scores = scores + (1.0 - np.asarray(mask, float)) * -10000.0
    e = np.exp(scores - scores.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "nan in the empty row",
    "wrong",
    "In a row without a key the softmax computes -inf minus -inf: nan.",
)
def masked_w5(query, key, value, mask):
    scores = np.einsum("...td,...sd->...ts", query, key) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    scores = scores - np.amax(scores, axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "context mended, weights not",
    "wrong",
    "Only the context of an empty row is made 0; its weights are nan.",
)
def masked_w6(query, key, value, mask):
    s = np.where(mask, query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]), -np.inf)
    with np.errstate(invalid="ignore"):
        s = np.exp(s - s.max(axis=-1, keepdims=True))
        weights = s / s.sum(axis=-1, keepdims=True)
    context = weights @ value
    return np.nan_to_num(context), weights


@answer("masked_attention", "numpy", "scale forgotten", "wrong", "The scores are not divided by sqrt(D).")
def masked_w7(query, key, value, mask):
    s = np.where(mask, query @ np.swapaxes(key, -1, -2), -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(top == -np.inf, 0, top))
    below = e.sum(axis=-1, keepdims=True)
    w = e / np.where(below == 0, 1, below)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "scale of the values",
    "wrong",
    "Divided by the root of the width of the VALUES; it only matters where D_v is not D.",
)
def masked_w8(query, key, value, mask):
    s = np.where(mask, query @ np.swapaxes(key, -1, -2) / value.shape[-1] ** 0.5, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(top == -np.inf, 0, top))
    below = e.sum(axis=-1, keepdims=True)
    w = e / np.where(below == 0, 1, below)
    return w @ value, w


@answer("masked_attention", "numpy", "upside down", "wrong", "The mask is read the other way round: True is hidden.")
def masked_w9(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, -np.inf, scores)
    top = np.max(scores, axis=-1, keepdims=True)
    top[np.isinf(top)] = 0
    e = np.exp(scores - top)
    total = e.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    return e / total @ value, e / total


@answer(
    "masked_attention",
    "numpy",
    "softmax down the queries",
    "wrong",
    "The softmax runs over axis -2, the queries; each row must sum to 1 over the keys.",
)
def masked_w10(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-2, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-2, keepdims=True)
    weights = e / np.where(total == 0, 1.0, total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "one sum for the whole table",
    "wrong",
    "The sum has no axis: all weights of the table together sum to 1.",
)
def masked_w11(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    e = np.where(mask, np.exp(scores - scores.max()), 0.0)
    weights = e / e.sum() if e.sum() else e
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "one maximum for the whole table",
    "wrong",
    "The maximum of the whole table is subtracted: rows with much smaller scores underflow to 0.",
)
def masked_w12(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    largest = scores[np.isfinite(scores)].max() if np.isfinite(scores).any() else 0.0
    e = np.exp(scores - largest)
    total = e.sum(axis=-1, keepdims=True)
    weights = np.where(total > 0, e / np.where(total > 0, total, 1), 0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "no maximum",
    "wrong",
    "Nothing is subtracted before exp: large scores overflow, and the weights become nan.",
)
def masked_w13(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(np.where(mask, scores, -np.inf))
    total = e.sum(axis=-1, keepdims=True)
    total = np.where(total == 0, 1, total)
    return (e / total) @ value, e / total


@answer(
    "masked_attention",
    "numpy",
    "maximum over forbidden scores",
    "wrong",
    "The maximum is taken before masking: one large forbidden score and all allowed exponentials are 0.",
)
def masked_w14(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    total = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total != 0)
    return weights @ value, weights


@answer("masked_attention", "numpy", "weights first", "wrong", "Returned in the wrong order: weights, context.")
def masked_w15(query, key, value, mask):
    scores = np.where(mask, query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]), -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    attention_weights = e / np.where(total == 0, 1.0, total)
    return attention_weights, attention_weights @ value


@answer(
    "masked_attention",
    "numpy",
    "boolean indexing",
    "wrong",
    "scores[~mask] needs a mask of the full shape of the scores: (B, 1, 1, S) or (S,) raises an IndexError or hits the wrong dimension.",
)
def masked_w16(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores[~mask] = -np.inf
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1.0, total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "scores times mask",
    "wrong",
    "Forbidden scores become 0, not -inf: exp(0) = 1 is a lot of weight.",
)
def masked_w17(query, key, value, mask):
    scores = (query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])) * mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    weights = np.where(np.any(mask, axis=-1, keepdims=True), weights, 0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "empty only if all are",
    "wrong",
    "The case of nothing to look at is handled for the whole mask only; a single empty row becomes nan.",
)
def masked_w18(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if not np.any(mask):
        weights = np.zeros_like(scores)
    else:
        scores = np.where(mask, scores, -np.inf)
        with np.errstate(invalid="ignore"):
            e = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "nan_to_num on the scores",
    "wrong",
    "nan_to_num turns -inf into the most negative number: an empty row becomes uniform.",
)
def masked_w19(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.nan_to_num(np.where(mask, scores, -np.inf))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "query scaled in place",
    "wrong",
    "`query /= ...` changes the caller's array: the second call gets other queries.",
)
def masked_w20(query, key, value, mask):
    query /= np.sqrt(query.shape[-1])
    scores = np.where(mask, query @ np.swapaxes(key, -1, -2), -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1.0, total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "empty rows indexed without broadcasting",
    "wrong",
    "The rows without a key are found in the small mask and used as an index of the big array: (B, 1, 1, S) does not fit.",
)
def masked_w21(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    nothing = ~mask.any(axis=-1)
    scores[nothing] = 0.0
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    weights[nothing] = 0.0
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "key transposed whole",
    "wrong",
    "key.T turns all dimensions round; with a batch in front the shapes do not fit (or fit by accident).",
)
def masked_w22(query, key, value, mask):
    scores = np.where(mask, query @ key.T / np.sqrt(query.shape[-1]), -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1.0, total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "two heads-and-batch loops",
    "wrong",
    "Four dimensions are taken for granted: (T, D) or (B, T, D) cannot be unpacked.",
)
def masked_w23(query, key, value, mask):
    B, H, T, D = query.shape
    S = key.shape[2]
    allowed = np.broadcast_to(mask, (B, H, T, S))
    weights = np.zeros((B, H, T, S))
    for b, h, t in itertools.product(range(B), range(H), range(T)):
        row = [query[b, h, t] @ key[b, h, s] / D**0.5 for s in range(S)]
        seen = [r for r, ok in zip(row, allowed[b, h, t]) if ok]
        if not seen:
            continue
        top = max(seen)
        e = [math.exp(r - top) if ok else 0.0 for r, ok in zip(row, allowed[b, h, t])]
        weights[b, h, t] = np.array(e) / sum(e)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "weights masked, context not",
    "wrong",
    "The weights that are returned are masked, but the context is averaged with those before the mask.",
)
def masked_w24(query, key, value, mask):
    def smax(z):
        top = z.max(axis=-1, keepdims=True)
        top = np.where(np.isneginf(top), 0, top)
        ez = np.exp(z - top)
        n = ez.sum(axis=-1, keepdims=True)
        return ez / np.where(n == 0, 1, n)

    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    context = smax(scores) @ value
    weights = smax(np.where(mask, scores, -np.inf))
    return np.where(np.any(mask, axis=-1, keepdims=True), context, 0), weights


@answer(
    "masked_attention",
    "numpy",
    "clipped scores",
    "wrong",
    "Scores are clipped to -50..50 'so that exp does not overflow': large scores that differ get equal weights.",
)
def masked_w25(query, key, value, mask):
    scores = np.clip(query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]), -50, 50)
    e = np.where(mask, np.exp(scores), 0.0)
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1.0, total)
    return weights @ value, weights


# ----------------------------------------------------------------------------------------------------------------------
# Task 7: attend_mended (its cell calls the check masked_attention)
# ----------------------------------------------------------------------------------------------------------------------


@answer("masked_attention", "numpy", "room in front", "right")
def mended_r1(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    while mask.ndim < similarity.ndim:
        mask = np.expand_dims(mask, 0)
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer("masked_attention", "numpy", "flattened batch, one sentence at a time", "right")
def mended_r2(query, key, value, mask):
    lead = query.shape[:-2]
    T, D = query.shape[-2:]
    S, D_v = value.shape[-2:]
    N = math.prod(lead)
    masks = np.broadcast_to(mask, (*lead, T, S)).reshape(N, T, S)
    contexts, shares = [], []
    for q, k, v, m in zip(query.reshape(N, T, D), key.reshape(N, S, D), value.reshape(N, S, D_v), masks):
        similarity = q @ k.T / np.sqrt(D)
        similarity[~m] = -np.inf
        share = attnlib.softmax(similarity)
        shares.append(share)
        contexts.append(share @ v)
    return np.array(contexts).reshape(*lead, T, D_v), np.array(shares).reshape(*lead, T, S)


@answer("masked_attention", "numpy", "added as 0 and minus infinity", "right")
def mended_r3(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    bias = np.zeros(np.shape(mask))
    bias[np.logical_not(mask)] = -np.inf
    share = attnlib.softmax(similarity + bias)
    return share @ value, share


@answer("masked_attention", "numpy", "mask blown up first", "right")
def mended_r4(query, key, value, mask):
    similarity = (query[..., :, None, :] * key[..., None, :, :]).sum(axis=-1) / math.sqrt(key.shape[-1])
    mask = np.logical_and(mask, np.ones(similarity.shape, dtype=bool))
    similarity[~mask] = -np.inf
    share = attnlib.softmax(similarity)
    return np.einsum("...ij,...jv->...iv", share, value), share


@answer(
    "masked_attention",
    "numpy",
    "left as it was",
    "wrong",
    "The axes are still put in at place 1: the causal mask lies over sentences and keys.",
)
def mended_w1(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / np.sqrt(query.shape[-1])
    for _ in range(similarity.ndim - mask.ndim):
        mask = mask[:, None]
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "room at the end",
    "wrong",
    "The new axes are put at the end: the queries of the mask then stand over the wrong dimension.",
)
def mended_w2(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    while mask.ndim < similarity.ndim:
        mask = np.expand_dims(mask, -1)
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "guesses from the first size",
    "wrong",
    "Whether the first dimension of the mask is a batch is guessed from its size: with B = T the old bug is back.",
)
def mended_w3(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    while mask.ndim < similarity.ndim:
        batch_first = mask.shape[0] == query.shape[0]
        mask = np.expand_dims(mask, 1 if batch_first else 0)
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "only two dimensions mended",
    "wrong",
    "Only a (T, S) mask is mended; a mask (S,) or (H, T, S) under four dimensions still gets its axes at place 1.",
)
def mended_w4(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    if mask.ndim == 2:
        mask = mask[None]
    while mask.ndim < similarity.ndim:
        mask = np.expand_dims(mask, 1)  # room for heads and queries
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "mask cut to two dimensions",
    "wrong",
    "Every mask is reduced to its last two dimensions: what differs from sentence to sentence is lost.",
)
def mended_w5(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    while mask.ndim > 2:
        mask = mask[0]
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "sentence by sentence, mask indexed",
    "wrong",
    "mask[b] is taken whenever the mask has more than two dimensions: a mask (1, T, S) for all sentences has no mask[1].",
)
def mended_w6(query, key, value, mask):
    if query.ndim == 2:
        similarity = query @ key.T / query.shape[-1] ** 0.5
        share = attnlib.softmax(np.where(mask, similarity, -np.inf))
        return share @ value, share
    pairs = []
    for b in range(len(query)):
        own = mask if mask.ndim <= 2 else mask[b]
        pairs.append(mended_w6(query[b], key[b], value[b], own))
    return np.stack([c for c, _ in pairs]), np.stack([w for _, w in pairs])


@answer(
    "masked_attention",
    "numpy",
    "tiled for three dimensions",
    "wrong",
    "np.tile assumes queries (B, T, D) and a mask (T, S); other masks get the wrong shape.",
)
def mended_w7(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    if similarity.ndim > 2:
        mask = np.tile(mask, (similarity.shape[0], 1, 1))
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "mask transposed",
    "wrong",
    "The mask is transposed as the 'mend': queries now see the future only; masks that are not square do not fit.",
)
def mended_w8(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    mask = np.swapaxes(np.atleast_2d(mask), -1, -2)
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "own softmax without the empty row",
    "wrong",
    "The softmax was replaced by an own one that makes nan of a row of nothing but -inf.",
)
def mended_w9(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    similarity = np.where(mask, similarity, -np.inf)
    with np.errstate(invalid="ignore"):
        share = np.exp(similarity - similarity.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "einsum letters of one batch",
    "wrong",
    "While mending, '...' was replaced by 'b': other numbers of dimensions raise an error.",
)
def mended_w10(query, key, value, mask):
    similarity = np.einsum("bid,bjd->bij", query, key) / query.shape[-1] ** 0.5
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return np.einsum("bij,bjd->bid", share, value), share


@answer(
    "masked_attention",
    "numpy",
    "causal mask built in",
    "wrong",
    "The mask is replaced by a causal one of the right shape: every other mask is ignored.",
)
def mended_w11(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    T, S = similarity.shape[-2:]
    mask = np.tri(T, S, dtype=bool)
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


# ----------------------------------------------------------------------------------------------------------------------
# Task 10: masked_attention_torch
# ----------------------------------------------------------------------------------------------------------------------


@answer("masked_attention", "torch", "empty rows opened, then emptied", "right")
def torch_r1(query, key, value, mask):
    scores = torch.einsum("...td,...sd->...ts", query, key) / math.sqrt(query.shape[-1])
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~(mask | empty), float("-inf"))
    weights = torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer("masked_attention", "torch", "exponentials by hand", "right")
def torch_r2(query, key, value, mask):
    s = query @ key.mT * query.size(-1) ** -0.5
    s = torch.where(mask, s, torch.full_like(s, -math.inf))
    with torch.no_grad():
        top = F.pad(s, (1, 0), value=-math.inf).amax(-1, keepdim=True)
        top = top.masked_fill(top.isneginf(), 0)
    e = (s - top).exp()
    below = e.sum(-1, keepdim=True)
    weights = e / below.masked_fill(below == 0, 1)
    return weights @ value, weights


@answer("masked_attention", "torch", "lowest finite number times mask", "right")
def torch_r3(query, key, value, mask):
    scores = torch.matmul(query, key.transpose(-2, -1)).div(math.sqrt(key.shape[-1]))
    scores.masked_fill_(~mask, torch.finfo(scores.dtype).min / 2)  # in place, but in our own tensor
    attention = F.softmax(scores, dim=-1) * mask
    return attention.matmul(value), attention


@answer("masked_attention", "torch", "softmax of the rows that have a key", "right")
def torch_r5(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    mask = mask.broadcast_to(scores.shape)
    alive = mask.any(dim=-1)
    weights = torch.zeros_like(scores)
    weights[alive] = scores[alive].masked_fill(~mask[alive], -math.inf).softmax(dim=-1)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "nan_to_num, but masked_fill before",
    "right",
    "The text warns of it, yet all numbers are right: the backward pass of masked_fill puts 0 in place of the nan of an empty row.",
)
def torch_r4(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "masked_fill of the true ones",
    "wrong",
    "Upside down: masked_fill fills where its mask is True, and ~ is missing.",
)
def torch_w1(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    empty = mask.all(-1, keepdim=True)
    scores = scores.masked_fill(mask & ~empty, float("-inf"))
    weights = torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "Annotated Transformer",
    "wrong",
    "masked_fill(mask == 0, -1e9), from the Annotated Transformer: an empty row gets equal weights.",
)
def torch_w2(query, key, value, mask):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


@answer(
    "masked_attention",
    "torch",
    "nan_to_num at the end",
    "wrong",
    "The mask is added and the nan of the empty row is mended after the softmax: the numbers are right, the gradients of queries and keys are nan.",
)
def torch_w3(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores + bias, dim=-1), nan=0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "where at the end",
    "wrong",
    "log(mask) is added; torch.where picks 0 for the empty row, but the backward pass still goes through the nan of the softmax.",
)
def torch_w4(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5 + torch.log(mask.to(query.dtype))
    weights = torch.softmax(scores, dim=-1)
    weights = torch.where(mask.any(-1, keepdim=True), weights, torch.zeros_like(weights))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "by way of NumPy",
    "wrong",
    "detach().numpy() and back: the numbers are right, but no gradient flows.",
)
def torch_w5(query, key, value, mask):
    q, k, v, m = (t.detach().cpu().numpy() for t in (query, key, value, mask))
    s = np.where(m, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    n = e.sum(-1, keepdims=True)
    w = (e / np.where(n == 0, 1, n)).astype(q.dtype)
    return torch.from_numpy(w @ v), torch.from_numpy(w)


@answer(
    "masked_attention",
    "torch",
    "numpy called on leaves",
    "wrong",
    "np.exp on a tensor that requires grad: RuntimeError, 'Can't call numpy() on Tensor that requires grad'.",
)
def torch_w6(query, key, value, mask):
    scores = torch.where(mask, query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), -torch.inf)
    top = scores.max(dim=-1, keepdim=True).values
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    e = torch.as_tensor(np.exp((scores - top).numpy()))
    total = e.sum(dim=-1, keepdim=True)
    weights = e / torch.where(total == 0, torch.ones_like(total), total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "softmax over dimension 1",
    "wrong",
    "dim=1 is the keys only for two dimensions; with a batch in front it is heads or queries.",
)
def torch_w7(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = F.softmax(scores, dim=1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "mask inverted in place",
    "wrong",
    "logical_not_() turns the caller's own mask round: the second call sees the opposite.",
)
def torch_w8(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    forbidden = mask.logical_not_()
    empty = forbidden.all(-1, keepdim=True)
    scores = scores.masked_fill(forbidden & ~empty, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "empty rows opened in the caller's mask",
    "wrong",
    "mask[empty] = True is written into the caller's mask.",
)
def torch_w9(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    empty = ~mask.any(-1)
    mask[empty] = True
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1) * (~empty).unsqueeze(-1)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "last two dimensions fixed",
    "wrong",
    "key.transpose(1, 2) is the transpose only for (B, S, D); for (S, D) or (B, H, S, D) it is not.",
)
def torch_w10(query, key, value, mask):
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "weights detached",
    "wrong",
    "The context is averaged with detached weights: queries and keys get no gradient from it.",
)
def torch_w11(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
    return weights.detach() @ value, weights


@answer(
    "masked_attention",
    "torch",
    "softmax of a new tensor",
    "wrong",
    "torch.tensor(scores) makes a copy without history: the gradients of queries and keys are lost.",
)
def torch_w12(query, key, value, mask):
    scores = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).tolist()
    scores = torch.tensor(scores, dtype=query.dtype)
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "no_grad",
    "wrong",
    "Everything runs under no_grad: there is nothing to send a gradient through.",
)
@torch.no_grad()
def torch_w13(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    empty = ~mask.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask & ~empty, float("-inf")), -1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "zero times nan",
    "wrong",
    "The nan of the empty row is multiplied by 0, and stays nan.",
)
def torch_w14(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    weights = weights * mask.any(dim=-1, keepdim=True)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "query scaled in place",
    "wrong",
    "query.mul_() changes the argument; for a leaf that requires grad it is a RuntimeError.",
)
def torch_w15(query, key, value, mask):
    scores = query.mul_(query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "max returns a pair",
    "wrong",
    "max(dim=...) returns values AND indices: TypeError in the subtraction.",
)
def torch_w16(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -1e30)
    e = torch.exp(scores - scores.max(dim=-1, keepdim=True)) * mask
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "dropout left in",
    "wrong",
    "F.dropout is on by default: one weight in ten is 0, the others are larger, other ones at each call.",
)
def torch_w17(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = F.dropout(torch.softmax(scores, -1).masked_fill(empty, 0.0), 0.1)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "one call of torch",
    "right",
    "scaled_dot_product_attention does the task in one call, which the notebook forbids.",
)
def torch_w18(query, key, value, mask):
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    eye = torch.eye(key.shape[-2], dtype=value.dtype).expand(*key.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(query, key, eye, attn_mask=mask)
    return torch.nan_to_num(context), torch.nan_to_num(weights)


@answer(
    "masked_attention",
    "torch",
    "exp without maximum",
    "wrong",
    "torch.exp of large scores is inf, and inf / inf is nan.",
)
def torch_w19(query, key, value, mask):
    e = torch.exp(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])) * mask
    total = e.sum(dim=-1, keepdim=True)
    weights = e / torch.where(total > 0, total, torch.ones_like(total))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "width taken from the front",
    "wrong",
    "query.size(1) is D only for a query (T, D); with a batch in front it is T or H.",
)
def torch_w20(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(1))
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & ~empty, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "additive mask with a zero times infinity",
    "wrong",
    "(1 - mask) * -inf is nan where the mask is True: 0 times infinity.",
)
def torch_w21(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores + (1 - mask.to(scores.dtype)) * float("-inf")
    weights = torch.softmax(scores, -1)
    return weights @ value, weights


# ----------------------------------------------------------------------------------------------------------------------
# Task 11: KVCache
# ----------------------------------------------------------------------------------------------------------------------


@answer("KVCache", "numpy", "list of chunks", "right")
class CacheR1:
    def __init__(self):
        self.chunks = []

    @property
    def length(self):
        return sum(k.shape[-2] for k, _ in self.chunks)

    def append(self, key, value):
        self.chunks.append((np.array(key), np.array(value)))
        keys, values = zip(*self.chunks)
        return np.concatenate(keys, axis=-2), np.concatenate(values, axis=-2)


@answer("KVCache", "numpy", "buffer that doubles", "right")
class CacheR2:
    def __init__(self):
        self.length = 0
        self._room = None

    @staticmethod
    def _grown(old, new, used, total):
        if old is None or old.shape[-2] < total:
            dtype = new.dtype if old is None else np.result_type(old, new)
            bigger = np.zeros((*new.shape[:-2], 2 * total, new.shape[-1]), dtype=dtype)
            if old is not None:
                bigger[..., :used, :] = old[..., :used, :]
            old = bigger
        elif np.result_type(old, new) != old.dtype:
            old = old.astype(np.result_type(old, new))
        old[..., used:total, :] = new
        return old

    def append(self, key, value):
        total = self.length + key.shape[-2]
        keys, values = self._room or (None, None)
        self._room = (
            self._grown(keys, key, self.length, total),
            self._grown(values, value, self.length, total),
        )
        self.length = total
        return tuple(part[..., :total, :].copy() for part in self._room)


@answer("KVCache", "numpy", "one array for both", "right")
class CacheR3:
    """Keys and values side by side in one array, cut apart when they are returned."""

    def __init__(self):
        self.length = 0
        self.both = None

    def append(self, key, value):
        new = np.concatenate([key, value], axis=-1)
        self.both = new if self.both is None else np.concatenate([self.both, new], axis=-2)
        self.length += key.shape[-2]
        width = key.shape[-1]
        return self.both[..., :width].copy(), self.both[..., width:].copy()


@answer("KVCache", "numpy", "starts with nothing, keyword arguments", "right")
class CacheR4:
    def __init__(self):
        self.length = 0
        self.kept = {}

    def append(self, key, value):
        for name, new in dict(keys=key, values=value).items():
            old = self.kept.get(name, new[..., :0, :])
            self.kept[name] = np.append(old, new, axis=-2)
        self.length = self.kept["keys"].shape[-2]
        return self.kept["keys"], self.kept["values"]


class _Start:
    """The start that the notebook gives."""

    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None


@answer("KVCache", "numpy", "axis 0", "wrong", "Joined along the first dimension: with (B, H, T, D) that is the batch.")
class CacheW1(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key])
            self.values = np.concatenate([self.values, value])
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "axis 2",
    "wrong",
    "Axis 2 is the positions only for four dimensions; (T, D) and (B, T, D) go wrong.",
)
class CacheW2(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate((self.keys, key), axis=2)
            self.values = np.concatenate((self.values, value), axis=2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@answer("KVCache", "numpy", "axis -1", "wrong", "Joined along the width: the vectors become longer, not more.")
class CacheW3(_Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate([self.keys, key], axis=-1)
        self.values = value if self.values is None else np.concatenate([self.values, value], axis=-1)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer("KVCache", "numpy", "new ones first", "wrong", "The new positions are put in front; they belong at the end.")
class CacheW4(_Start):
    def append(self, key, value):
        if self.length:
            key_all = np.concatenate([key, self.keys], axis=-2)
            value_all = np.concatenate([value, self.values], axis=-2)
        else:
            key_all, value_all = key, value
        self.keys, self.values = key_all, value_all
        self.length = key_all.shape[-2]
        return key_all, value_all


@answer(
    "KVCache",
    "numpy",
    "length counts calls",
    "wrong",
    "length goes up by 1 for each call; a prompt of several words counts as one.",
)
class CacheW5(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length += 1
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "length is len",
    "wrong",
    "len(keys) is the first dimension, the batch, not the number of positions.",
)
class CacheW6(_Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate([self.keys, key], axis=-2)
        self.values = value if self.values is None else np.concatenate([self.values, value], axis=-2)
        self.length = len(self.keys)
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "prompt not counted",
    "wrong",
    "length is raised only from the second call on: the first chunk is not counted.",
)
class CacheW7(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys = key
            self.values = value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
            self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache", "numpy", "length of the last chunk", "wrong", "length is overwritten with the T of the newest chunk."
)
class CacheW8(_Start):
    def append(self, key, value):
        self.length = key.shape[-2]
        if self.keys is not None:
            key = np.concatenate([self.keys, key], axis=-2)
            value = np.concatenate([self.values, value], axis=-2)
        self.keys, self.values = key, value
        return key, value


@answer(
    "KVCache",
    "numpy",
    "returns the new ones only",
    "wrong",
    "All positions are kept, but only the new keys and values are returned.",
)
class CacheW9(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length += key.shape[-2]
        return key, value


@answer(
    "KVCache",
    "numpy",
    "shared by all caches",
    "wrong",
    "The lists belong to the class, not to the object: all layers write into one cache.",
)
class CacheW10:
    keys = []
    values = []

    @property
    def length(self):
        return sum(k.shape[-2] for k in self.keys)

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        return np.concatenate(self.keys, axis=-2), np.concatenate(self.values, axis=-2)


@answer(
    "KVCache",
    "numpy",
    "mutable default argument",
    "wrong",
    "The default list of __init__ is made once and shared: a second cache starts with the content of the first.",
)
class CacheW11:
    def __init__(self, parts=[]):  # noqa: B006
        self.parts = parts
        self.length = 0

    def append(self, key, value):
        self.parts.append([key, value])
        keys = np.concatenate([p[0] for p in self.parts], axis=-2)
        values = np.concatenate([p[1] for p in self.parts], axis=-2)
        self.length = keys.shape[-2]
        return keys, values


@answer("KVCache", "numpy", "keys in the values", "wrong", "Copy and paste: the values are joined with the new KEYS.")
class CacheW12(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, key], axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "length is a method",
    "wrong",
    "length has to be called; the task asks for a number that can be read.",
)
class CacheW13:
    def __init__(self):
        self.keys = self.values = None

    def length(self):
        return 0 if self.keys is None else self.keys.shape[-2]

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key.copy(), value.copy()
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "room for eight",
    "wrong",
    "A buffer of 8 positions is never enlarged: the ninth does not fit in (ValueError).",
)
class CacheW14(_Start):
    def append(self, key, value, room=8):
        if self.keys is None:
            self.keys = np.zeros((*key.shape[:-2], room, key.shape[-1]))
            self.values = np.zeros((*value.shape[:-2], room, value.shape[-1]))
        end = self.length + key.shape[-2]
        self.keys[..., self.length : end, :] = key
        self.values[..., self.length : end, :] = value
        self.length = end
        return self.keys[..., :end, :], self.values[..., :end, :]


@answer(
    "KVCache",
    "numpy",
    "the empty room is returned, too",
    "wrong",
    "The whole buffer is returned, with zeros behind the last position.",
)
class CacheW15(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys = np.zeros((*key.shape[:-2], 4096, key.shape[-1]))
            self.values = np.zeros((*value.shape[:-2], 4096, value.shape[-1]))
        T = key.shape[-2]
        self.keys[..., self.length : self.length + T, :] = key
        self.values[..., self.length : self.length + T, :] = value
        self.length += T
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "one word only",
    "wrong",
    "Only the last position of each chunk is kept: right for single words, wrong for a prompt.",
)
class CacheW16:
    def __init__(self):
        self.length = 0
        self._k, self._v = [], []

    def append(self, key, value):
        self._k.append(key[..., -1, :])
        self._v.append(value[..., -1, :])
        self.length = len(self._k)
        return np.stack(self._k, axis=-2), np.stack(self._v, axis=-2)


@answer("KVCache", "numpy", "append without an axis", "wrong", "np.append without an axis flattens everything.")
class CacheW17(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.append(self.keys, key)
            self.values = np.append(self.values, value)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "room for the values of the width of the keys",
    "wrong",
    "The values get an array of the shape of the KEYS; it fails where D_v is not D.",
)
class CacheW18(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys = self.values = np.empty((*key.shape[:-2], 0, key.shape[-1]))
        self.keys = np.concatenate([self.keys, key], axis=-2)
        self.values = np.concatenate([self.values, value], axis=-2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "first call returns nothing",
    "wrong",
    "The return stands in the else branch only: the first append returns None.",
)
class CacheW19(_Start):
    def append(self, key, value):
        self.length += key.shape[-2]
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
            return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "repeated words skipped",
    "wrong",
    "If a key equals the last one that was kept, it is not appended; a word may come twice in a row.",
)
class CacheW20(_Start):
    def append(self, key, value):
        T = key.shape[-2]
        if self.keys is None:
            self.keys, self.values = key, value
        elif not np.array_equal(self.keys[..., -T:, :], key):
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "joined arrays not kept",
    "wrong",
    "The joined arrays are returned, but not kept: the third call has forgotten the second.",
)
class CacheW21(_Start):
    def append(self, key, value):
        self.length += key.shape[-2]
        if self.keys is None:
            self.keys, self.values = key, value
            return key, value
        keys = np.concatenate([self.keys, key], axis=-2)
        values = np.concatenate([self.values, value], axis=-2)
        return keys, values


@answer(
    "KVCache",
    "numpy",
    "torch.cat",
    "wrong",
    "torch.cat does not take NumPy arrays, and this notebook's cache gets NumPy arrays (TypeError).",
)
class CacheW22(_Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = torch.cat([self.keys, key], dim=-2)
            self.values = torch.cat([self.values, value], dim=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "window of the last 16",
    "wrong",
    "Only the last 16 positions are kept (a rolling cache); ALL positions so far are asked for.",
)
class CacheW23(_Start):
    window = 16

    def append(self, key, value):
        if self.keys is not None:
            key = np.concatenate([self.keys, key], axis=-2)
            value = np.concatenate([self.values, value], axis=-2)
        self.keys = key[..., -self.window :, :]
        self.values = value[..., -self.window :, :]
        self.length = self.keys.shape[-2]
        return self.keys, self.values
