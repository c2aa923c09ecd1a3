"""Answers to the exercises of chapter 5, masks: written from the notebook alone."""

import math

import numpy as np
import torch

ANSWERS = []


def softmax(x, axis=-1):
    """Stand-in for attnlib.softmax: a row of nothing but -inf becomes zeros."""
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    below = e.sum(axis=axis, keepdims=True)
    return e / np.where(below == 0, 1, below)


def add(name, backend, label, verdict, implementation, sentence=""):
    ANSWERS.append((name, backend, label, verdict, implementation, sentence))


# ------------------------------------------------------------------ causal_mask


def causal_w1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return j < i + q_offset


def causal_w2(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return j <= i - q_offset


def causal_w3(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return j >= i + q_offset


def causal_w4(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return j > i + q_offset


def causal_w5(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return np.where(j <= i + q_offset, 0.0, -np.inf)


def causal_w6(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.tri(T, S, q_offset)


def causal_w7(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return j <= i + (q_offset or S - T)


def causal_w8(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return j <= i + max(q_offset, 0)


def causal_w9(T, S=None, *, q_offset=0):
    S = S or T
    i, j = np.arange(T), np.arange(S)
    return (i[:, None] + q_offset >= j).T


def causal_w10(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return (j <= i + q_offset)[None, None]


def causal_w11(T, S=None, *, q_offset=0):
    return np.tril(np.ones((T, T if S is None else S), dtype=bool))


def causal_w12(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i, j = np.arange(T)[:, None], np.arange(S)[None, :]
    return (j <= i + q_offset) & (j >= q_offset)


def causal_r1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.arange(S)[None, :] <= np.arange(T)[:, None] + q_offset


def causal_r2(T, S=None, *, q_offset=0):
    return np.tri(T, T if S is None else S, k=q_offset, dtype=bool)


def causal_r3(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        mask[i, : max(0, i + q_offset + 1)] = True
    return mask


def causal_r4(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return ~np.triu(np.ones((T, S)), k=1 + q_offset).astype(bool)


N = "causal_mask"
add(N, "numpy", "strict", "wrong", causal_w1, "a word may not look at itself")
add(N, "numpy", "offset-sign", "wrong", causal_w2, "a larger offset moves the staircase the wrong way")
add(N, "numpy", "upside-down", "wrong", causal_w3, "everybody looks ahead instead of back")
add(N, "numpy", "true-is-forbidden", "wrong", causal_w4, "True means 'forbidden', as in torch's key_padding_mask")
add(N, "numpy", "additive", "wrong", causal_w5, "returns 0 and minus infinity instead of True and False")
add(N, "numpy", "floats", "wrong", causal_w6, "returns the numbers 0. and 1. instead of True and False")
add(
    N,
    "numpy",
    "aligned-at-the-end",
    "wrong",
    causal_w7,
    "without an offset the last query is aligned with the last key: wrong if S != T and q_offset is 0",
)
add(N, "numpy", "negative-offset", "wrong", causal_w8, "a negative offset is taken for 0")
add(N, "numpy", "transposed", "wrong", causal_w9, "the mask is (S, T), with the queries along the columns")
add(N, "numpy", "four-dimensions", "wrong", causal_w10, "the mask is (1, 1, T, S) instead of (T, S)")
add(N, "numpy", "offset-forgotten", "wrong", causal_w11, "q_offset is not used")
add(N, "numpy", "cache-hidden", "wrong", causal_w12, "the keys before the offset are forbidden too")
add(N, "numpy", "plain", "right", causal_r1)
add(N, "numpy", "tri", "right", causal_r2)
add(N, "numpy", "rows", "right", causal_r3)
add(N, "numpy", "not-triu", "right", causal_r4)

# ------------------------------------------------------------------ padding_mask


def padding_w1(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return j <= lengths[:, None, None, None]


def padding_w2(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return j < lengths[:, None]


def padding_w3(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return (j < lengths[:, None])[None, None]


def padding_w4(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return j >= lengths[:, None, None, None]


def padding_w5(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return j[:, None] < lengths[:, None, None, None]


def padding_w6(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    real = (j < lengths[:, None]).astype(bool)
    return (real[:, :, None] & real[:, None, :])[:, None]


def padding_w7(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return (j >= S - lengths[:, None])[:, None, None, :]


def padding_w8(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    lengths = np.maximum(lengths, 1)
    return (j < lengths[:, None])[:, None, None, :]


def padding_w9(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return (j[:, None] < lengths).reshape(len(lengths), 1, 1, S)


def padding_w10(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(lengths.max())
    return (j < lengths[:, None])[:, None, None, :]


def padding_w11(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return np.where(j < lengths[:, None, None, None], 1, 0)


def padding_w12(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return (j < lengths[:, None])[:, None, :]


def padding_r1(lengths, S):
    lengths, j = np.asarray(lengths), np.arange(S)
    return j < lengths[:, None, None, None]


def padding_r2(lengths, S):
    rows = [[[[True] * int(n) + [False] * (S - int(n))]] for n in lengths]
    return np.array(rows, dtype=bool)


def padding_r3(lengths, S):
    mask = np.zeros((len(lengths), 1, 1, S), dtype=bool)
    for b, n in enumerate(lengths):
        mask[b, ..., :n] = True
    return mask


def padding_r4(lengths, S):
    table = np.less.outer(np.arange(S), np.asarray(lengths))  # (S, B)
    return np.expand_dims(table.T, (1, 2))


N = "padding_mask"
add(N, "numpy", "one-too-many", "wrong", padding_w1, "the first place behind the sentence counts as a word")
add(
    N,
    "numpy",
    "two-dimensions",
    "wrong",
    padding_w2,
    "the mask is (B, S), which laid over the scores means queries and keys",
)
add(
    N,
    "numpy",
    "ones-in-front",
    "wrong",
    padding_w3,
    "the mask is (1, 1, B, S): the sentences stand where the queries are",
)
add(N, "numpy", "true-is-padding", "wrong", padding_w4, "True at the padding")
add(N, "numpy", "over-queries", "wrong", padding_w5, "the mask is (B, 1, S, 1), so it hides queries and not keys")
add(N, "numpy", "queries-too", "wrong", padding_w6, "the mask is (B, 1, S, S), and padding may not look either")
add(N, "numpy", "left", "wrong", padding_w7, "the last keys are real instead of the first")
add(N, "numpy", "never-empty", "wrong", padding_w8, "a sentence of length 0 gets one key")
add(
    N,
    "numpy",
    "reshape",
    "wrong",
    padding_w9,
    "the table (S, B) is reshaped instead of turned, which mixes the sentences",
)
add(N, "numpy", "longest", "wrong", padding_w10, "as many keys as the longest sentence has, instead of S")
add(N, "numpy", "numbers", "wrong", padding_w11, "returns 1 and 0 instead of True and False")
add(
    N,
    "numpy",
    "three-dimensions",
    "wrong",
    padding_w12,
    "the mask is (B, 1, S): laid over (B, H, T, S) its sentences stand where the heads are",
)
add(N, "numpy", "plain", "right", padding_r1)
add(N, "numpy", "lists", "right", padding_r2)
add(N, "numpy", "slices", "right", padding_r3)
add(N, "numpy", "outer", "right", padding_r4)

# ------------------------------------------------------------------ masked_attention, numpy


def masked_w1(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -1e9)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


def masked_w2(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


def masked_w3(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.where(mask, np.exp(scores), 0)
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


def masked_w4(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


def masked_w5(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = softmax(scores) * mask
    return weights @ value, weights


def masked_w6(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, 0.0)
    weights = softmax(scores) * mask.any(axis=-1, keepdims=True)
    return weights @ value, weights


def masked_w7(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = softmax(np.where(mask, -np.inf, scores))
    return weights @ value, weights


def masked_w8(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores[np.broadcast_to(~mask, scores.shape)] = -np.inf
    top = scores.max(axis=-1, keepdims=True)
    top[np.isinf(top)] = 0
    e = np.exp(scores - top)
    weights = e / (e.sum(axis=-1, keepdims=True) + 1e-3)
    return weights @ value, weights


def masked_w9(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores[~mask] = -np.inf
    weights = softmax(scores)
    return weights @ value, weights


def masked_w10(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    while mask.ndim < scores.ndim:
        mask = np.expand_dims(mask, 1)
    weights = softmax(np.where(mask, scores, -np.inf))
    return weights @ value, weights


def masked_w11(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = softmax(np.where(mask, scores, -np.inf))
    return weights, weights @ value


def masked_w12(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -1e3)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True) * np.any(mask, axis=-1, keepdims=True)
    return weights @ value, weights


def masked_w13(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.nan_to_num(weights @ value), weights


def masked_w14(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    top = scores.max()
    e = np.exp(scores - (top if np.isfinite(top) else 0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


def masked_w15(query, key, value, mask):
    scores = np.where(mask, query @ key.swapaxes(-1, -2), -np.inf)
    weights = softmax(scores)
    return weights @ value, weights


def masked_w16(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(key.shape[-2])
    weights = softmax(np.where(mask, scores, -np.inf))
    return weights @ value, weights


def masked_w17(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    if mask.ndim == 2 and similarity.ndim == 3:
        mask = mask[:, None, :] if mask.shape[0] == similarity.shape[0] else mask[None]
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


def masked_r1(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


def masked_r2(query, key, value, mask):
    scores = np.einsum("...td,...sd->...ts", query, key) * query.shape[-1] ** -0.5
    mask = np.broadcast_to(mask, scores.shape)
    nobody = ~mask.any(axis=-1, keepdims=True)
    s = np.where(mask | nobody, scores, -np.inf)
    log_weights = s - np.logaddexp.reduce(s, axis=-1, keepdims=True)
    weights = np.where(nobody, 0.0, np.exp(log_weights))
    return np.einsum("...ts,...sv->...tv", weights, value), weights


def masked_r3(query, key, value, mask):
    scores = query @ np.moveaxis(key, -1, -2) / np.sqrt(query.shape[-1])
    mask = np.broadcast_to(mask, scores.shape)
    weights = np.zeros_like(scores)
    for place in np.ndindex(*scores.shape[:-1]):
        seen = np.flatnonzero(mask[place])
        if len(seen):
            e = np.exp(scores[place][seen] - scores[place][seen].max())
            weights[place][seen] = e / e.sum()
    return weights @ value, weights


def masked_r4(query, key, value, mask):
    """The colleague's, mended: NumPy lines the mask up from the right by itself."""
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


def masked_r5(query, key, value, mask, dropout=None):
    scores = np.matmul(query, np.swapaxes(key, -2, -1)) / math.sqrt(query.shape[-1])
    scores = np.ma.masked_array(scores, mask=~np.broadcast_to(mask, scores.shape))
    with np.errstate(all="ignore"):
        e = np.ma.exp(scores - scores.max(axis=-1, keepdims=True)).filled(0.0)
        p_attn = np.nan_to_num(e / e.sum(axis=-1, keepdims=True))
    if dropout is not None:
        p_attn = dropout(p_attn)
    return np.matmul(p_attn, value), p_attn


N = "masked_attention"
add(
    N,
    "numpy",
    "minus-1e9",
    "wrong",
    masked_w1,
    "a large negative number: a query that may look at nothing gets equal weights instead of 0",
)
add(
    N,
    "numpy",
    "nan-rows",
    "wrong",
    masked_w2,
    "minus infinity minus minus infinity: a query that may look at nothing gets nan",
)
add(
    N,
    "numpy",
    "no-maximum",
    "wrong",
    masked_w3,
    "the exponentials overflow for large scores, since no maximum is subtracted",
)
add(
    N,
    "numpy",
    "maximum-of-forbidden",
    "wrong",
    masked_w4,
    "the maximum is taken over forbidden scores too: if one is huge, all allowed exponentials are 0",
)
add(
    N,
    "numpy",
    "zero-afterwards",
    "wrong",
    masked_w5,
    "the weights are set to 0 after the softmax, so a row does not sum to 1",
)
add(N, "numpy", "score-0", "wrong", masked_w6, "the forbidden score becomes 0, which is not the weight 0")
add(N, "numpy", "upside-down", "wrong", masked_w7, "forbids where the mask is True")
add(
    N,
    "numpy",
    "epsilon",
    "wrong",
    masked_w8,
    "a small number is added to the sum that divides, so the rows do not quite sum to 1",
)
add(
    N,
    "numpy",
    "index-with-mask",
    "wrong",
    masked_w9,
    "indexes the scores with the mask, which fails for a mask that has to be broadcast",
)
add(
    N,
    "numpy",
    "colleague",
    "wrong",
    masked_w10,
    "the colleague's function: new dimensions go in at place 1, so a (T, S) mask lies over the batch",
)
add(N, "numpy", "order", "wrong", masked_w11, "returns the weights first and the context second")
add(
    N,
    "numpy",
    "minus-1000",
    "wrong",
    masked_w12,
    "minus 1000 in place of minus infinity: not small if the allowed scores are large and negative",
)
add(
    N, "numpy", "nan-in-weights", "wrong", masked_w13, "only the context is mended, the weights of an empty row are nan"
)
add(
    N,
    "numpy",
    "one-maximum-for-all",
    "wrong",
    masked_w14,
    "one maximum for the whole array: rows with far smaller scores underflow to weights of 0",
)
add(N, "numpy", "no-root", "wrong", masked_w15, "the scores are not divided by the root of D")
add(N, "numpy", "root-of-S", "wrong", masked_w16, "divides by the root of the number of keys")
add(
    N,
    "numpy",
    "guess-by-size",
    "wrong",
    masked_w17,
    "a (T, S) mask is taken for (B, S) if T happens to equal B, as in 4 sentences of 4 words",
)
add(N, "numpy", "plain", "right", masked_r1)
add(N, "numpy", "logaddexp", "right", masked_r2)
add(N, "numpy", "row-by-row", "right", masked_r3)
add(N, "numpy", "colleague-mended", "right", masked_r4)
add(N, "numpy", "masked-array", "right", masked_r5)

# ------------------------------------------------------------------ masked_attention, torch


def tmasked_w1(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return torch.nan_to_num(weights @ value), torch.nan_to_num(weights)


def tmasked_w2(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores.masked_fill(mask == 0, -1e9), dim=-1)
    return weights @ value, weights


def tmasked_w3(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    nobody = ~mask.any(dim=-1, keepdim=True)
    mask |= nobody
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1).masked_fill(nobody, 0.0)
    return weights @ value, weights


def tmasked_w4(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    scores.data.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1) * mask.any(dim=-1, keepdim=True)
    return weights @ value, weights.detach()


def tmasked_w5(query, key, value, mask):
    scores = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).masked_fill(~mask, -torch.inf)
    top = scores.amax(dim=-1, keepdim=True)
    e = torch.exp(scores - torch.where(torch.isinf(top), 0.0, top))
    total = e.sum(dim=-1, keepdim=True)
    weights = e / torch.where(total == 0, 1.0, total).detach()
    return weights @ value, weights


def tmasked_w6(query, key, value, mask):
    context, weights = masked_r1(query.detach().numpy(), key.detach().numpy(), value.detach().numpy(), mask.numpy())
    return torch.tensor(context, requires_grad=True), torch.tensor(weights)


def tmasked_w7(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    bias = torch.zeros(mask.shape).masked_fill_(~mask, float("-inf"))
    weights = torch.softmax(scores + bias, dim=-1)
    return weights @ value, weights


def tmasked_w8(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    e = torch.exp(scores) * mask
    weights = e / e.sum(dim=-1, keepdim=True).clamp(min=1e-12)
    return weights @ value, weights


def tmasked_w9(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if not mask.any():
        return torch.zeros(*query.shape[:-1], value.shape[-1]), torch.zeros_like(scores)
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return weights @ value, weights


def tmasked_w10(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1) * mask
    total = weights.sum(dim=-1, keepdim=True)
    weights = weights / torch.where(total > 0, total, torch.ones_like(total))
    return weights @ value, weights


def tmasked_w11(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    nobody = ~mask.any(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask & ~nobody, -torch.inf), dim=-1)
    return (weights @ value).masked_fill(nobody, 0.0), weights


def tmasked_w12(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    nobody = ~mask.any(dim=-1, keepdim=True)
    scores = torch.where(mask | nobody, scores, torch.full_like(scores, -torch.inf))
    weights = torch.where(nobody, 0.0, torch.softmax(scores, dim=1))
    return weights @ value, weights


def tmasked_r1(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    nobody = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(nobody, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(nobody, 0.0)
    return weights @ value, weights


def tmasked_r2(query, key, value, mask):
    scores = (query @ key.mT * query.shape[-1] ** -0.5).masked_fill(~mask, -torch.inf)
    top = scores.detach().amax(dim=-1, keepdim=True)
    e = torch.exp(scores - top.masked_fill(top == -torch.inf, 0.0))
    total = e.sum(dim=-1, keepdim=True)
    weights = e / total.masked_fill(total == 0, 1.0)
    return weights @ value, weights


def tmasked_r3(query, key, value, mask):
    s = torch.einsum("...td,...sd->...ts", query, key) / query.shape[-1] ** 0.5
    mask = torch.broadcast_to(mask, s.shape)
    empty = mask.logical_not().all(-1, keepdim=True)
    s = torch.where(mask, s, torch.finfo(s.dtype).min)
    weights = torch.where(empty, torch.zeros_like(s), (s - torch.logsumexp(s, -1, keepdim=True)).exp())
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


def tmasked_r4(query, key, value, mask):
    # masked_fill lets no gradient through where it fills, so the nan of an empty row stops there
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = torch.nan_to_num(torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1))
    return weights @ value, weights


N = "masked_attention"
add(
    N,
    "torch",
    "nan-mended-at-the-end",
    "wrong",
    tmasked_w1,
    "nan_to_num on the context and the weights at the very end: the numbers are right, the gradient of the values is nan",
)
add(
    N,
    "torch",
    "minus-1e9",
    "wrong",
    tmasked_w2,
    "as in the Annotated Transformer: an empty row gets equal weights instead of 0",
)
add(
    N,
    "torch",
    "mask-changed",
    "wrong",
    tmasked_w3,
    "changes the caller's mask in place (and fails if it has no entry for each row)",
)
add(
    N,
    "torch",
    "weights-detached",
    "wrong",
    tmasked_w4,
    "the returned weights are detached: no gradient flows through them",
)
add(
    N,
    "torch",
    "normaliser-detached",
    "wrong",
    tmasked_w5,
    "the sum that divides is detached: right numbers, wrong gradients for queries and keys",
)
add(N, "torch", "through-numpy", "wrong", tmasked_w6, "a detour through NumPy: no gradients reach the inputs")
add(N, "torch", "additive", "wrong", tmasked_w7, "adds minus infinity: an empty row becomes nan")
add(N, "torch", "no-maximum", "wrong", tmasked_w8, "no maximum is subtracted: large scores overflow to inf and nan")
add(
    N,
    "torch",
    "all-or-nothing",
    "wrong",
    tmasked_w9,
    "only a mask without any True is taken care of: a single empty row is nan",
)
add(
    N,
    "torch",
    "zero-and-renormalise",
    "wrong",
    tmasked_w10,
    "zeroes after the softmax and renormalises: a huge forbidden score leaves 0 for the allowed ones",
)
add(N, "torch", "context-only", "wrong", tmasked_w11, "an empty row has context 0, but equal weights")
add(N, "torch", "dim-1", "wrong", tmasked_w12, "softmax along dim 1 is over the keys only without a batch")
add(N, "torch", "fill-twice", "right", tmasked_r1)
add(N, "torch", "by-hand", "right", tmasked_r2)
add(N, "torch", "einsum-logsumexp", "right", tmasked_r3)
add(N, "torch", "nan-to-num-behind-masked-fill", "right", tmasked_r4)

# ------------------------------------------------------------------ KVCache


class Start:
    """What the notebook gives."""

    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None


class CacheW1(Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate([self.keys, key], axis=-2)
        self.values = value if self.values is None else np.concatenate([self.values, value], axis=-2)
        self.length += 1
        return self.keys, self.values


class CacheW2(Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate([self.keys, key], axis=1)
        self.values = value if self.values is None else np.concatenate([self.values, value], axis=1)
        self.length = self.keys.shape[1]
        return self.keys, self.values


class CacheW3(Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate([key, self.keys], axis=-2)
        self.values = value if self.values is None else np.concatenate([value, self.values], axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


class CacheW4(Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate([self.keys, key], axis=-2)
        self.values = value if self.values is None else np.concatenate([self.values, value], axis=-2)
        self.length = len(self.keys)
        return self.keys, self.values


class CacheW5:
    length = 0
    chunks = []

    def append(self, key, value):
        self.chunks.append((key, value))
        keys, values = (np.concatenate(parts, axis=-2) for parts in zip(*self.chunks))
        self.length = keys.shape[-2]
        return keys, values


class CacheW6(Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length += key.shape[-2]
        return key, value


class CacheW7(Start):
    def append(self, key, value):
        if self.keys is not None:
            key = np.concatenate([self.keys, key], axis=-2)
            value = np.concatenate([self.values, value], axis=-2)
        self.keys, self.values = key, value
        self.length += key.shape[-2]
        return key, value


class CacheW8(Start):
    def append(self, key, value):
        if self.length == 0:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
            self.length += key.shape[-2]
        self.length = self.length or key.shape[-2]
        return self.values, self.keys


class CacheW9(Start):
    def append(self, key, value):
        old = self.keys if self.keys is not None else np.zeros((*key.shape[:-2], 0, key.shape[-1]))
        self.keys = np.concatenate([old, key], axis=-2)
        old = self.values if self.values is not None else np.zeros((*key.shape[:-2], 0, key.shape[-1]))
        self.values = np.concatenate([old, value], axis=-2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


class CacheW10(Start):
    def append(self, key, value):
        if self.keys is None:
            self.keys = np.empty((*key.shape[:-2], 0, key.shape[-1]))
            self.values = np.empty((*value.shape[:-2], 0, value.shape[-1]))
        self.keys = np.concatenate([self.keys, key[..., -1:, :]], axis=-2)
        self.values = np.concatenate([self.values, value[..., -1:, :]], axis=-2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


class CacheW11(Start):
    def append(self, key, value):
        self.keys = key if self.keys is None else np.vstack([self.keys, key])
        self.values = value if self.values is None else np.vstack([self.values, value])
        self.length += len(key)
        return self.keys, self.values


class CacheW12(Start):
    def __init__(self):
        super().__init__()
        self.size = 8

    def append(self, key, value):
        keys = key if self.keys is None else np.concatenate([self.keys, key], axis=-2)
        values = value if self.values is None else np.concatenate([self.values, value], axis=-2)
        self.keys, self.values = keys[..., -self.size :, :], values[..., -self.size :, :]
        self.length += key.shape[-2]
        return self.keys, self.values


class CacheR1(Start):
    def append(self, key, value):
        if self.keys is not None:
            key = np.concatenate([self.keys, key], axis=-2)
            value = np.concatenate([self.values, value], axis=-2)
        self.keys, self.values, self.length = key, value, key.shape[-2]
        return key, value


class CacheR2:
    def __init__(self):
        self.chunks = []

    @property
    def length(self):
        return sum(key.shape[-2] for key, _ in self.chunks)

    def append(self, key, value):
        self.chunks.append((np.array(key), np.array(value)))
        keys, values = zip(*self.chunks)
        return np.concatenate(keys, axis=-2), np.concatenate(values, axis=-2)


class CacheR3:
    """Room is doubled when it runs out; copies are handed out."""

    def __init__(self):
        self.length = 0
        self.room = {}

    def _put(self, name, new):
        end = self.length + new.shape[-2]
        room = self.room.get(name)
        if room is None or room.shape[-2] < end:
            larger = np.empty((*new.shape[:-2], 2 * end, new.shape[-1]), dtype=new.dtype)
            if room is not None:
                larger[..., : self.length, :] = room[..., : self.length, :]
            self.room[name] = room = larger
        room[..., self.length : end, :] = new
        return room[..., :end, :].copy()

    def append(self, key, value):
        both = self._put("key", key), self._put("value", value)
        self.length += key.shape[-2]
        return both


N = "KVCache"
add(N, "numpy", "length-counts-calls", "wrong", CacheW1, "length counts the calls of append and not the positions")
add(
    N,
    "numpy",
    "axis-1",
    "wrong",
    CacheW2,
    "axis 1 is not the positions if no batch, or batch and heads, stand in front",
)
add(N, "numpy", "new-in-front", "wrong", CacheW3, "the new positions come first instead of last")
add(N, "numpy", "length-by-len", "wrong", CacheW4, "len() of the keys is the batch if there is one")
add(
    N,
    "numpy",
    "class-list",
    "wrong",
    CacheW5,
    "the list belongs to the class, so all caches share their keys and values",
)
add(N, "numpy", "returns-new-only", "wrong", CacheW6, "returns only the new keys and values instead of all")
add(
    N,
    "numpy",
    "length-of-joined",
    "wrong",
    CacheW7,
    "length is raised by all keys at each call, because the name key was reused",
)
add(N, "numpy", "order", "wrong", CacheW8, "returns the values first and the keys second")
add(
    N,
    "numpy",
    "value-width",
    "wrong",
    CacheW9,
    "the empty table of values has the width of the keys: fails if D_v != D",
)
add(N, "numpy", "last-only", "wrong", CacheW10, "of a chunk only the last position is kept: a prompt is lost")
add(N, "numpy", "vstack", "wrong", CacheW11, "vstack joins along the first axis, which is the batch if there is one")
add(N, "numpy", "window", "wrong", CacheW12, "keeps a window of the last 8 positions only")
add(N, "numpy", "plain", "right", CacheR1)
add(N, "numpy", "list-and-property", "right", CacheR2)
add(N, "numpy", "growing-room", "right", CacheR3)
