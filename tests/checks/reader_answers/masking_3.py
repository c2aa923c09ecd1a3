"""Still more answers to the exercises of chapter 5, masks: written from the notebook alone."""

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


def softmax(x, axis=-1):
    """Stand-in for attnlib.softmax: a row of nothing but -inf becomes zeros."""
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    e = np.exp(x - top)
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


# ---------------------------------------------------------------- causal_mask


@answer("causal_mask", "numpy", "np.tri", "right")
def causal_r1(T, S=None, *, q_offset=0):
    return np.tri(T, T if S is None else S, q_offset, dtype=bool)


@answer("causal_mask", "numpy", "ufunc outer on shifted positions", "right")
def causal_r2(T, S=None, *, q_offset=0):
    if S is None:
        S = T
    positions = q_offset + np.arange(T)
    return ~np.less.outer(positions, np.arange(S))


@answer(
    "causal_mask",
    "numpy",
    "offset subtracted",
    "wrong",
    "The offset is added to the query's number; here it is added to the key's.",
)
def causal_w2(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j + q_offset <= i


@answer(
    "causal_mask",
    "numpy",
    "triu True means blocked",
    "wrong",
    "This is torch's convention, True = hidden; in this course True means may attend.",
)
def causal_w4(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.triu(np.ones((T, S), dtype=bool), k=1 + q_offset)


@answer(
    "causal_mask",
    "numpy",
    "slice with negative end",
    "wrong",
    "With an offset of -2 the end of the slice is negative for the first query, and it counts from the back.",
)
def causal_w5(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        mask[i, : i + q_offset + 1] = True
    return mask


@answer(
    "causal_mask",
    "numpy",
    "always bottom right",
    "wrong",
    "The offset is not used: the last query is always laid on the last key.",
)
def causal_w6(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j <= i + (S - T)


@answer(
    "causal_mask", "numpy", "S grows with the offset", "wrong", "If S is left out there are T keys, not T + q_offset."
)
def causal_w7(T, S=None, *, q_offset=0):
    if S is None:
        S = T + q_offset
    return np.arange(S) <= np.arange(T).reshape(-1, 1) + q_offset


@answer(
    "causal_mask",
    "numpy",
    "negative offset clipped",
    "wrong",
    "The offset may have either sign; max(0, o) forgets the negative ones.",
)
def causal_w8(T, S=None, *, q_offset=0):
    S = T if S is None else S
    shift = max(0, q_offset)
    return np.array([[j <= i + shift for j in range(S)] for i in range(T)])


@answer(
    "causal_mask",
    "numpy",
    "additive mask",
    "wrong",
    "The mask is of True and False; this one is of 0 and -inf, to be added to the scores.",
)
def causal_w9(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return np.where(j <= i + q_offset, 0.0, -np.inf)


@answer(
    "causal_mask",
    "numpy",
    "rows are keys",
    "wrong",
    "Rows and columns are exchanged: the mask is (S, T), with the keys in the rows.",
)
def causal_w11(T, S=None, *, q_offset=0):
    S = T if S is None else S
    q, k = np.meshgrid(np.arange(T), np.arange(S))
    return k <= q + q_offset


# ---------------------------------------------------------------- padding_mask


@answer("padding_mask", "numpy", "rows of a staircase", "right")
def padding_r1(lengths, S):
    lengths = np.asarray(lengths).astype(int)
    staircase = np.tri(S + 1, S, -1, dtype=bool)  # row n has n True
    return staircase[lengths].reshape(len(lengths), 1, 1, S)


@answer("padding_mask", "numpy", "nested lists", "right")
def padding_r2(lengths, S):
    rows = [[[[True] * int(n) + [False] * (S - int(n))]] for n in lengths]
    return np.array(rows, dtype=bool)


@answer(
    "padding_mask",
    "numpy",
    "slice from minus zero",
    "wrong",
    "For a full sentence S - n is 0, and -0: is the whole row, so a sentence without padding is hidden altogether.",
)
def padding_w2(lengths, S):
    lengths = np.asarray(lengths)
    mask = np.ones((len(lengths), 1, 1, S), dtype=bool)
    for b, n in enumerate(lengths):
        mask[b, 0, 0, -(S - n) :] = False
    return mask


@answer(
    "padding_mask",
    "numpy",
    "staircase row minus one",
    "wrong",
    "For the length 0 the row is number -1, which is the last one: all True where all should be False.",
)
def padding_w3(lengths, S):
    lengths = np.asarray(lengths)
    return np.tri(S, dtype=bool)[lengths - 1][:, None, None, :]


@answer(
    "padding_mask",
    "numpy",
    "three dimensions",
    "wrong",
    "One dimension is missing: (B, 1, S) over (B, H, T, S) lays the sentences over the heads.",
)
def padding_w4(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return j < lengths[:, None, None]


@answer(
    "padding_mask", "numpy", "hides the queries", "wrong", "The shape is (B, 1, S, 1): that hides queries, not keys."
)
def padding_w6(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    m = j < lengths[:, None]
    return m[:, None, :, None]


@answer(
    "padding_mask",
    "numpy",
    "longest sentence instead of S",
    "wrong",
    "The width is that of the longest sentence, not S.",
)
def padding_w8(lengths, S):
    lengths = np.asarray(lengths)
    S = lengths.max()
    return (np.arange(S)[None, :] < lengths[:, None])[:, np.newaxis, np.newaxis]


@answer(
    "padding_mask",
    "numpy",
    "at least one key",
    "wrong",
    "A sentence of length 0 has a row of False alone; here its first key stays open.",
)
def padding_w9(lengths, S):
    lengths = np.maximum(np.asarray(lengths), 1)  # avoid nan
    j = np.arange(S)
    return j < lengths[:, None, None, None]


@answer(
    "padding_mask",
    "numpy",
    "sorted by length",
    "wrong",
    "The sentences are sorted by length, so the rows belong to other sentences than in the batch.",
)
def padding_w10(lengths, S):
    lengths = np.sort(np.asarray(lengths))[::-1]
    j = np.arange(S)
    return j < lengths[:, None, None, None]


@answer(
    "padding_mask",
    "numpy",
    "squeeze on the way",
    "wrong",
    "squeeze() also drops the batch dimension when there is one sentence, and the result has the wrong shape.",
)
def padding_w11(lengths, S):
    lengths = np.asarray(lengths)
    full = np.zeros((len(lengths), S))
    for b in range(len(lengths)):
        for j in range(lengths[b]):
            full[b, j] = 1
    full = full.squeeze() > 0
    return np.expand_dims(full, (1, 2)) if full.ndim == 2 else full[None, None]


# ---------------------------------------------------------------- masked_attention, numpy (tasks 5 and 7)


@answer("masked_attention", "numpy", "log-sum-exp", "right")
def ma_r1(query, key, value, mask):
    s = np.einsum("...td,...sd->...ts", query, key) / np.sqrt(query.shape[-1])
    s = np.where(mask, s, -np.inf)
    lse = np.full(s.shape[:-1], -np.inf)
    for k in range(s.shape[-1]):
        lse = np.logaddexp(lse, s[..., k])
    empty = np.isneginf(lse)
    weights = np.exp(s - np.where(empty, 0.0, lse)[..., None])
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@answer("masked_attention", "numpy", "loop over every query, allowed keys only", "right")
def ma_r2(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) * query.shape[-1] ** -0.5
    allowed = np.broadcast_to(mask, scores.shape)
    weights = np.zeros(scores.shape)
    for where in np.ndindex(*scores.shape[:-1]):
        ok = np.flatnonzero(allowed[where])
        if len(ok) == 0:
            continue
        picked = scores[where][ok]
        picked = np.exp(picked - picked.max())
        weights[where][ok] = picked / picked.sum()
    return weights @ value, weights


@answer("masked_attention", "numpy", "mended with dimensions in front", "right")
def ma_r3(q, k, v, mask):
    similarity = np.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
    mask = np.asarray(mask)
    while mask.ndim < similarity.ndim:
        mask = mask[None]
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ v, share


@answer(
    "masked_attention",
    "numpy",
    "maximum over forbidden scores too",
    "wrong",
    "The maximum is taken before masking: a large forbidden score makes all allowed exponentials underflow to 0.",
)
def ma_w2(query, key, value, mask):
    d = query.shape[-1]
    scores = np.matmul(query, key.swapaxes(-1, -2)) / np.sqrt(d)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    z = e.sum(axis=-1, keepdims=True)
    w = np.divide(e, z, out=np.zeros_like(e), where=z > 0)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "finfo tiny",
    "wrong",
    "finfo.tiny is the smallest positive number, nearly 0, not the most negative one: nothing is hidden.",
)
def ma_w4(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, np.finfo(np.float64).tiny)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    w = w * np.any(mask, axis=-1, keepdims=True)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "boolean assignment",
    "wrong",
    "scores[~mask] needs a mask of the full shape; one that has to be broadcast raises an IndexError.",
)
def ma_w5(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores[~mask] = -np.inf
    return _finish(scores, value)


def _finish(scores, value):
    top = scores.max(axis=-1, keepdims=True)
    top[np.isneginf(top)] = 0
    e = np.exp(scores - top)
    z = e.sum(axis=-1, keepdims=True)
    z[z == 0] = 1
    return (e / z) @ value, e / z


@answer(
    "masked_attention",
    "numpy",
    "only the context mended",
    "wrong",
    "The context of an empty row is set to 0, but its weights stay uniform.",
)
def ma_w6(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -1e300)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    nothing = ~np.broadcast_to(mask, scores.shape).any(axis=-1)
    context = w @ value
    context[nothing] = 0.0
    return context, w


@answer(
    "masked_attention",
    "numpy",
    "nan_to_num only for the weights",
    "wrong",
    "The context is computed from the weights while they are still nan.",
)
def ma_w7(query, key, value, mask):
    with np.errstate(all="ignore"):
        s = np.where(mask, query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5, -np.inf)
        s = s - s.max(axis=-1, keepdims=True)
        w = np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)
        context = w @ value
    return context, np.nan_to_num(w)


@answer(
    "masked_attention",
    "numpy",
    "one maximum for everything",
    "wrong",
    "One maximum for the whole array: rows with much smaller scores underflow to 0.",
)
def ma_w8(query, key, value, mask):
    s = np.where(mask, query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5, -np.inf)
    biggest = s.max()
    if biggest == -np.inf:
        biggest = 0.0
    e = np.exp(s - biggest)
    z = e.sum(axis=-1, keepdims=True)
    w = e / np.where(z > 0, z, 1)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "rows without keepdims",
    "wrong",
    "Without keepdims the sums are laid along the keys: with T = S each column is divided by the sum of another row.",
)
def ma_w10(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(top == -np.inf, 0, top))
    z = e.sum(axis=-1)
    w = e / np.where(z == 0, 1, z)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "empty means not all allowed",
    "wrong",
    "all instead of any: every query with at least one hidden key is emptied.",
)
def ma_w11(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    filled = np.where(mask, scores, -1e300)
    e = np.exp(filled - filled.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    alive = np.all(np.broadcast_to(mask, w.shape), axis=-1, keepdims=True)
    w = np.where(alive, w, 0)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "lengths from the mask",
    "wrong",
    "Only how many keys are allowed is used, not which: right for causal and right padding only.",
)
def ma_w12(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    valid_lens = np.broadcast_to(mask, scores.shape).sum(axis=-1, keepdims=True)
    scores = np.where(np.arange(scores.shape[-1]) < valid_lens, scores, -np.inf)
    w = softmax(scores)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "caller's mask negated in place",
    "wrong",
    "The caller's mask is turned upside down in place, and the next call gets the wrong one.",
)
def ma_w13(query, key, value, mask):
    hidden = np.logical_not(mask, out=mask)
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(hidden, -np.inf, scores)
    return _finish(scores, value)


@answer(
    "masked_attention",
    "numpy",
    "only if the whole mask is empty",
    "wrong",
    "Only a mask without any True is treated; one empty row among others becomes nan.",
)
def ma_w14(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if not np.any(mask):
        w = np.zeros_like(scores)
        return w @ value, w
    with np.errstate(invalid="ignore"):
        scores = np.where(mask, scores, -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        w = e / e.sum(axis=-1, keepdims=True)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "mended: room before the last two only",
    "wrong",
    "The new dimension is put before the last two each time: (H, T, S) becomes (H, 1, T, S), and (S,) raises an error.",
)
def ma_w15(q, k, v, mask):
    similarity = np.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
    while mask.ndim < similarity.ndim:
        mask = np.expand_dims(mask, -3)
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ v, share


@answer(
    "masked_attention",
    "numpy",
    "mended: padding shape guessed",
    "wrong",
    "A mask of two dimensions is taken for (B, S) whenever its first size is B, so a causal (T, S) mask with T = B is still laid over the sentences.",
)
def ma_w16(q, k, v, mask):
    similarity = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    if mask.ndim == 2 and similarity.ndim >= 3 and mask.shape[0] == similarity.shape[0]:
        mask = mask.reshape(mask.shape[0], *[1] * (similarity.ndim - 2), mask.shape[1])
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ v, share


@answer(
    "masked_attention",
    "numpy",
    "mended: causal mask rebuilt inside",
    "wrong",
    "The mask of the caller is combined with a causal one, which was not asked for: a padding mask alone comes out wrong.",
)
def ma_w17(q, k, v, mask):
    similarity = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    T, S = similarity.shape[-2:]
    mask = np.tri(T, S, dtype=bool) & mask
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ v, share


# ---------------------------------------------------------------- masked_attention, torch


@answer("masked_attention", "torch", "two wheres around a safe softmax", "right")
def mt_r1(query, key, value, mask):
    scores = torch.einsum("...td,...sd->...ts", query, key) / query.size(-1) ** 0.5
    mask = mask.expand_as(scores)
    some = mask.any(dim=-1, keepdim=True)
    safe = scores.masked_fill(~mask & some, float("-inf"))  # empty rows keep their scores
    weights = safe.softmax(-1) * some
    return weights @ value, weights


@answer("masked_attention", "torch", "exp of the rest, clamped sum", "right")
def mt_r2(query, key, value, mask):
    scores = (query / math.sqrt(query.shape[-1])) @ key.mT
    scores = torch.where(mask, scores, torch.full_like(scores, -torch.inf))
    top = scores.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    powers = (scores - top).exp()
    weights = powers / powers.sum(-1, keepdim=True).clamp(min=0.5)  # the largest power is 1, or there is none
    return torch.matmul(weights, value), weights


@answer(
    "masked_attention",
    "torch",
    "additive mask, nan mended at the end",
    "wrong",
    "The nan of an empty row is mended only in the result: its gradients are still nan.",
)
def mt_w1(query, key, value, mask):
    bias = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)) + bias
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "log of the mask",
    "wrong",
    "An empty row is -inf everywhere; where() repairs the output, but nan flows back through the sum into queries and keys.",
)
def mt_w2(query, key, value, mask):
    scores = torch.einsum("...td,...sd->...ts", query, key) * query.shape[-1] ** -0.5
    weights = F.softmax(scores + mask.to(scores.dtype).log(), dim=-1)
    weights = torch.where(mask.any(-1, keepdim=True), weights, torch.zeros_like(weights))
    return weights @ value, weights


@answer(
    "masked_attention", "torch", "zero times infinity", "wrong", "0 * -inf is nan, so every allowed score becomes nan."
)
def mt_w4(query, key, value, mask):
    m = mask.to(query.dtype)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    scores = scores * m + (1 - m) * float("-inf")
    weights = torch.nan_to_num(scores.softmax(-1))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "renormalised after the softmax",
    "wrong",
    "Masked after the softmax and divided again: a large forbidden score leaves 0 for all allowed keys.",
)
def mt_w5(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1) * mask
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)
    return weights @ value, weights


@answer("masked_attention", "torch", "mask flipped in place", "wrong", "logical_not_ changes the mask of the caller.")
def mt_w6(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(mask.logical_not_(), float("-inf"))
    weights = torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "weights computed under no_grad",
    "wrong",
    "Under no_grad the weights are constants: queries and keys get no gradient.",
)
def mt_w8(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    with torch.no_grad():
        scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "mask unsqueezed for the heads",
    "wrong",
    "unsqueeze(1), as for (B, T, S) masks with heads in other people's code, shifts a mask that already fits.",
)
def mt_w9(query, key, value, mask):
    if mask.dim() > 2:
        mask = mask.unsqueeze(1)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(mask == 0, -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "transpose of dimensions 1 and 2",
    "wrong",
    "transpose(1, 2) is right only for exactly one batch dimension.",
)
def mt_w10(query, key, value, mask):
    scores = torch.matmul(query, key.transpose(1, 2)) / query.shape[-1] ** 0.5
    scores = torch.where(mask, scores, -torch.inf)
    weights = torch.nan_to_num(F.softmax(scores, dim=2))
    return torch.matmul(weights, value), weights


# ---------------------------------------------------------------- KVCache


@answer("KVCache", "numpy", "list of chunks", "right")
class CacheR1:
    def __init__(self):
        self._chunks = []

    @property
    def length(self):
        return sum(k.shape[-2] for k, _ in self._chunks)

    def append(self, key, value):
        self._chunks.append((np.array(key), np.array(value)))
        keys, values = zip(*self._chunks)
        return np.concatenate(keys, axis=-2), np.concatenate(values, axis=-2)


@answer("KVCache", "numpy", "buffer that doubles", "right")
class CacheR2:
    def __init__(self):
        self.length = 0
        self.room = 0
        self.store = [None, None]

    def _grow(self, arrays, needed):
        self.room = max(2 * self.room, needed)
        for n, new in enumerate(arrays):
            bigger = np.zeros((*new.shape[:-2], self.room, new.shape[-1]), dtype=new.dtype)
            if self.store[n] is not None:
                bigger = bigger.astype(np.result_type(new, self.store[n]))
                bigger[..., : self.length, :] = self.store[n][..., : self.length, :]
            self.store[n] = bigger

    def append(self, key, value):
        arrays = np.asarray(key, dtype=float), np.asarray(value, dtype=float)
        end = self.length + arrays[0].shape[-2]
        if end > self.room or self.store[0] is None:
            self._grow(arrays, end)
        for kept, new in zip(self.store, arrays):
            kept[..., self.length : end, :] = new
        self.length = end
        return tuple(kept[..., :end, :].copy() for kept in self.store)


@answer(
    "KVCache",
    "numpy",
    "axis 2",
    "wrong",
    "Axis 2 is the positions only if two dimensions stand in front; count from the back.",
)
class CacheW1:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=2)
            self.values = np.concatenate([self.values, value], axis=2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "lists on the class",
    "wrong",
    "The lists belong to the class, so all caches share their keys and values.",
)
class CacheW3:
    keys = []
    values = []

    def __init__(self):
        self.length = 0

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        self.length += key.shape[-2]
        return np.concatenate(self.keys, axis=-2), np.concatenate(self.values, axis=-2)


@answer(
    "KVCache",
    "numpy",
    "compared with None by ==",
    "wrong",
    "keys == None compares element by element: the second append raises 'truth value of an array is ambiguous'.",
)
class CacheW4:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys == None:  # noqa: E711
            self.keys = key
            self.values = value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "a prompt starts over",
    "wrong",
    "Every chunk of more than one position throws away what was kept.",
)
class CacheW5:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None or key.shape[-2] > 1:  # a prompt
            self.keys, self.values = key, value
        else:  # a single word
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache", "numpy", "first chunk not counted", "wrong", "The early return for the first chunk leaves length at 0."
)
class CacheW6:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
            return self.keys, self.values
        self.keys = np.concatenate([self.keys, key], axis=-2)
        self.values = np.concatenate([self.values, value], axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "room for ten words",
    "wrong",
    "The buffer has room for ten positions, and the eleventh raises an error.",
)
class CacheW7:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys = np.zeros(key.shape[:-2] + (10, key.shape[-1]))
            self.values = np.zeros(value.shape[:-2] + (10, value.shape[-1]))
        n = key.shape[-2]
        self.keys[..., self.length : self.length + n, :] = key
        self.values[..., self.length : self.length + n, :] = value
        self.length += n
        return self.keys[..., : self.length, :], self.values[..., : self.length, :]


@answer(
    "KVCache",
    "numpy",
    "half precision to save memory",
    "wrong",
    "The kept numbers are rounded to float16, so the cache does change the result.",
)
class CacheW8:
    def __init__(self):
        self.length = 0
        self.parts = []

    def append(self, key, value):
        self.parts.append((key.astype(np.float16), value.astype(np.float16)))
        self.length += key.shape[-2]
        k = np.concatenate([p[0] for p in self.parts], axis=-2)
        v = np.concatenate([p[1] for p in self.parts], axis=-2)
        return k.astype(float), v.astype(float)


@answer(
    "KVCache",
    "numpy",
    "one position at a time",
    "wrong",
    "Only the last position of each chunk is kept; of a prompt all have to be.",
)
class CacheW10:
    def __init__(self):
        self.length = 0
        self.keys, self.values = [], []

    def append(self, key, value):
        self.keys.append(key[..., -1, :])
        self.values.append(value[..., -1, :])
        self.length += 1
        return np.stack(self.keys, axis=-2), np.stack(self.values, axis=-2)


@answer(
    "KVCache",
    "numpy",
    "length by len",
    "wrong",
    "len() counts the first dimension, which is the batch as soon as something stands in front.",
)
class CacheW11:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        old = [(self.keys, key), (self.values, value)]
        self.keys, self.values = (b if a is None else np.concatenate([a, b], -2) for a, b in old)
        self.length = len(self.keys)
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "doubled once",
    "wrong",
    "The buffer is doubled at most once, so a chunk longer than that does not fit.",
)
class CacheW12:
    def __init__(self):
        self.length = 0
        self.capacity = 4
        self.keys = self.values = None

    def append(self, key, value):
        T = key.shape[-2]
        if self.keys is None:
            self.keys = np.empty((*key.shape[:-2], self.capacity, key.shape[-1]))
            self.values = np.empty((*value.shape[:-2], self.capacity, value.shape[-1]))
        if self.length + T > self.capacity:
            self.capacity *= 2
            self.keys = np.concatenate([self.keys, np.empty_like(self.keys)], axis=-2)
            self.values = np.concatenate([self.values, np.empty_like(self.values)], axis=-2)
        self.keys[..., self.length : self.length + T, :] = key
        self.values[..., self.length : self.length + T, :] = value
        self.length += T
        return self.keys[..., : self.length, :].copy(), self.values[..., : self.length, :].copy()
