"""Answers to the notebook "Exercises: masks", as students might write them."""

import math

import numpy as np
import torch

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


def softmax(x, axis=-1):
    """Stand-in for attnlib.softmax: a row of nothing but -inf becomes zeros."""
    top = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


# ---------------------------------------------------------------- causal_mask


@answer(
    "causal_mask",
    "numpy",
    "cm-bottom-right",
    "wrong",
    "The staircase is always pushed into the lower right corner (S - T); q_offset is not used.",
)
def causal_mask_w1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j <= i + (S - T)


@answer(
    "causal_mask",
    "numpy",
    "cm-negative-clipped",
    "wrong",
    "A negative offset is cut off at 0, so the first query sees a key although it should see nothing.",
)
def causal_mask_w3(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        mask[i, : max(i + q_offset, 0) + 1] = True
    return mask


@answer(
    "causal_mask",
    "numpy",
    "cm-negative-slice",
    "wrong",
    "With a negative offset the end of the slice gets negative and counts from the back: rows that should be empty are not.",
)
def causal_mask_w4(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        mask[i, : i + q_offset + 1] = True
    return mask


@answer(
    "causal_mask",
    "numpy",
    "cm-additive",
    "wrong",
    "It returns numbers to be added to the scores (0 and -inf); a mask of True and False is asked for.",
)
def causal_mask_w5(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return np.where(j > i + q_offset, -np.inf, 0.0)


@answer("causal_mask", "numpy", "cm-r-counts", "right")
def causal_mask_r1(T, S=None, *, q_offset=0):
    if S is None:
        S = T
    rows = []
    for i in range(T):
        seen = min(max(i + q_offset + 1, 0), S)
        rows.append([True] * seen + [False] * (S - seen))
    return np.array(rows, dtype=bool).reshape(T, S)


# ---------------------------------------------------------------- padding_mask


@answer(
    "padding_mask",
    "numpy",
    "pm-minus-slice",
    "wrong",
    "[-(S - n):] is [0:] for a full sentence, so a sentence without padding loses all its words.",
)
def padding_mask_w1(lengths, S):
    lengths = np.asarray(lengths)
    mask = np.ones((len(lengths), 1, 1, S), dtype=bool)
    for b, n in enumerate(lengths):
        mask[b, 0, 0, -(S - n) :] = False
    return mask


@answer(
    "padding_mask",
    "numpy",
    "pm-queries-instead",
    "wrong",
    "The words stand along the axis of the queries (B, 1, S, 1): that hides the queries on padding, not the keys.",
)
def padding_mask_w2(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return (j[None, :] < lengths[:, None])[:, None, :, None]


@answer(
    "padding_mask",
    "numpy",
    "pm-list-crash",
    "wrong",
    "The line with np.asarray was deleted; a list of lengths has no reshape.",
)
def padding_mask_w3(lengths, S):
    j = np.arange(S)
    return j < lengths.reshape(-1, 1, 1, 1)


@answer("padding_mask", "numpy", "pm-longest", "wrong", "The mask is as wide as the longest sentence instead of S.")
def padding_mask_w4(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(lengths.max())
    return (j < lengths[:, None])[:, None, None, :]


@answer("padding_mask", "numpy", "pm-r-outer", "right")
def padding_mask_r1(lengths, S):
    steps = np.eye(S + 1, dtype=int)[np.asarray(lengths, dtype=int)]  # a 1 where the padding begins
    return (np.cumsum(steps, axis=1)[:, :S] == 0)[:, np.newaxis, np.newaxis]


# ---------------------------------------------------------------- masked_attention, NumPy (tasks 5 and 7)


@answer(
    "masked_attention",
    "numpy",
    "ma-zero-times-inf",
    "wrong",
    "(1 - mask) * -inf is 0 * -inf = nan at every allowed place.",
)
def masked_attention_w1(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = scores + (1 - mask) * -np.inf
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    e = np.exp(scores - top)
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "ma-max-of-all",
    "wrong",
    "The maximum is taken before masking: a large forbidden score pushes all allowed exponentials to 0, and the row comes out as if empty.",
)
def masked_attention_w2(query, key, value, mask):
    scores = np.einsum("...td,...sd->...ts", query, key) / math.sqrt(query.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    total = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "ma-opens-mask",
    "wrong",
    "Empty rows are opened in the caller's own mask, which is not the same after the call.",
)
def masked_attention_w4(query, key, value, mask):
    empty = ~mask.any(axis=-1)
    mask[empty] = True  # so that the softmax has something
    scores = np.where(mask, query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    weights = np.where(empty[..., None], 0.0, weights)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "ma-minus-fifty",
    "wrong",
    "Forbidden scores become -50: if the allowed ones are lower still, the maximum is a forbidden one and the row is lost.",
)
def masked_attention_w5(query, key, value, mask):
    s = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    s = np.where(mask, s, -50.0)
    e = np.where(mask, np.exp(s - s.max(-1, keepdims=True)), 0.0)
    norm = e.sum(-1, keepdims=True)
    w = e / np.where(norm > 0, norm, 1.0)
    return w @ value, w


@answer(
    "masked_attention",
    "numpy",
    "ma-global-max",
    "wrong",
    "The largest score of the whole table is subtracted, not that of the row: rows that lie far below it underflow to nothing.",
)
def masked_attention_w6(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    top = scores.max() if np.any(mask) else 0.0
    e = np.exp(scores - top)
    total = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total != 0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "ma-context-only-mended",
    "wrong",
    "Only the context is mended at the end; the weights of an empty row are still nan.",
)
def masked_attention_w9(query, key, value, mask):
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(mask, query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]), -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = e / e.sum(axis=-1, keepdims=True)
        return np.nan_to_num(weights @ value), weights


@answer(
    "masked_attention",
    "numpy",
    "mended-none-none",
    "wrong",
    "mask[None, None] adds dimensions to the result too: for a single sentence it comes out as (1, 1, T, S).",
)
def attend_mended_w1(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    share = softmax(np.where(mask[None, None], similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "mended-guess-padding",
    "wrong",
    "A mask (T, S) with as many rows as there are sentences is taken for a padding mask: for 4 sentences of 4 words it is laid over the batch as before.",
)
def attend_mended_w2(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    if mask.ndim == 2 and similarity.ndim > 2 and mask.shape[0] == similarity.shape[0]:
        mask = mask.reshape(mask.shape[0], *[1] * (similarity.ndim - 2), mask.shape[1])
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "mended-tile",
    "wrong",
    "np.tile repeats the mask by the sizes of the batch without looking whether it has these dimensions already: a (B, 1, 1, S) mask gets B*B sentences.",
)
def attend_mended_w3(query, key, value, mask):
    similarity = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if similarity.ndim > 2:
        mask = np.tile(mask, (*similarity.shape[:-2], 1, 1))
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer("masked_attention", "numpy", "ma-r-compress", "right")
def masked_attention_r1(query, key, value, mask):
    scores = np.einsum("...td,...sd->...ts", query, key) / math.sqrt(query.shape[-1])
    mask = np.broadcast_to(np.asarray(mask, dtype=bool), scores.shape)
    weights = np.zeros_like(scores)
    for place in np.ndindex(*scores.shape[:-1]):
        allowed = np.flatnonzero(mask[place])
        if allowed.size:
            s = scores[place][allowed]
            e = np.exp(s - s.max())
            weights[place][allowed] = e / e.sum()
    return np.matmul(weights, value), weights


# ---------------------------------------------------------------- masked_attention, torch


@answer(
    "masked_attention",
    "torch",
    "mt-additive-nan-to-num",
    "wrong",
    "An added -inf and nan_to_num at the end: the numbers are right, but an empty row sends nan into the gradients.",
)
def masked_attention_torch_w1(query, key, value, mask):
    bias = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    scores = query @ key.mT / math.sqrt(query.shape[-1]) + bias
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "mt-inplace-weights",
    "wrong",
    "The result of the softmax is changed in place although its backward pass needs it: backward() raises an error.",
)
def masked_attention_torch_w2(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores.masked_fill(~mask, -1e30), dim=-1)
    weights.masked_fill_(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "mt-logical-not",
    "wrong",
    "logical_not_ with the underscore turns the caller's mask upside down.",
)
def masked_attention_torch_w3(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    hidden = mask.logical_not_()
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1).masked_fill(hidden, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "mt-numpy-detour",
    "wrong",
    "A detour over NumPy: tensors that require gradients raise an error there, and no gradient flows.",
)
def masked_attention_torch_w4(query, key, value, mask):
    scores = (query @ key.mT).numpy() / np.sqrt(query.shape[-1])
    weights = softmax(np.where(mask.numpy(), scores, -np.inf))
    weights = torch.from_numpy(weights)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "mt-row-from-mask",
    "wrong",
    "The weights are multiplied row by row with mask.any(-1), without keepdim: queries and keys are mixed up.",
)
def masked_attention_torch_w6(query, key, value, mask):
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~mask, -1e30)
    weights = torch.softmax(scores, dim=-1) * mask.any(dim=-1)
    return weights @ value, weights


@answer("masked_attention", "torch", "mt-r-lse", "right")
def masked_attention_torch_r1(query, key, value, mask):
    scores = torch.einsum("...td,...sd->...ts", query, key) / math.sqrt(query.shape[-1])
    mask = mask.expand(scores.shape)
    some = mask.any(dim=-1, keepdim=True)
    open_mask = mask | ~some  # an empty row may look at all, for now
    safe = torch.where(open_mask, scores, torch.full_like(scores, float("-inf")))
    weights = torch.exp(safe - safe.logsumexp(dim=-1, keepdim=True))
    weights = torch.where(mask, weights, torch.zeros_like(weights))
    return weights @ value, weights


# ---------------------------------------------------------------- KVCache


@answer(
    "KVCache",
    "numpy",
    "kv-class-lists",
    "wrong",
    "The lists belong to the class, so all caches share them: the second layer gets the keys of the first.",
)
class KVCache_w1:
    length = 0
    keys = []
    values = []

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        self.length += key.shape[-2]
        return np.concatenate(self.keys, axis=-2), np.concatenate(self.values, axis=-2)


@answer("KVCache", "numpy", "kv-calls-counted", "wrong", "length counts the calls of append, not the positions.")
class KVCache_w2:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key.copy(), value.copy()
        else:
            self.keys = np.concatenate((self.keys, key), axis=-2)
            self.values = np.concatenate((self.values, value), axis=-2)
        self.length += 1
        return self.keys, self.values


@answer("KVCache", "numpy", "kv-np-append-flat", "wrong", "np.append without an axis makes everything flat.")
class KVCache_w3:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.length == 0:
            self.keys = key
            self.values = value
        else:
            self.keys = np.append(self.keys, key)
            self.values = np.append(self.values, value)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache", "numpy", "kv-axis-two", "wrong", "axis=2 is the positions only if exactly two dimensions stand in front."
)
class KVCache_w4:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is not None:
            key = np.concatenate([self.keys, key], axis=2)
            value = np.concatenate([self.values, value], axis=2)
        self.keys, self.values = key, value
        self.length = key.shape[2]
        return key, value


@answer(
    "KVCache",
    "numpy",
    "kv-room-for-sixteen",
    "wrong",
    "There is room for 16 positions only, and the values get as many columns as the keys.",
)
class KVCache_w5:
    def __init__(self):
        self.length = 0
        self.keys = None

    def append(self, key, value):
        if self.keys is None:
            self.keys = np.zeros((*key.shape[:-2], 16, key.shape[-1]))
            self.values = np.zeros((*key.shape[:-2], 16, key.shape[-1]))
        end = self.length + key.shape[-2]
        self.keys[..., self.length : end, :] = key
        self.values[..., self.length : end, :] = value
        self.length = end
        return self.keys[..., :end, :].copy(), self.values[..., :end, :].copy()


@answer(
    "KVCache", "numpy", "kv-first-returns-none", "wrong", "The first call stores keys and values, but returns nothing."
)
class KVCache_w7:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        self.length += key.shape[-2]
        if self.keys is None:
            self.keys = key
            self.values = value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
            return self.keys, self.values


@answer("KVCache", "numpy", "kv-r-chunks-property", "right")
class KVCache_r1:
    def __init__(self):
        self._chunks = []

    @property
    def length(self):
        return sum(key.shape[-2] for key, _ in self._chunks)

    def append(self, key, value):
        self._chunks.append((np.array(key), np.array(value)))
        all_keys, all_values = zip(*self._chunks)
        return np.concatenate(all_keys, axis=-2), np.concatenate(all_values, axis=-2)
