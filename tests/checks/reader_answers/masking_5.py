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


def softmax(x):
    """Stand-in for attnlib.softmax: a row of nothing but -inf becomes zeros."""
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


# ---------------------------------------------------------------- causal_mask


@answer(
    "causal_mask",
    "numpy",
    "slice with a negative end",
    "wrong",
    "For an offset below -1 the end of the slice is negative and counts from the right: rows that see nothing become nearly all True.",
)
def causal_w1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    mask = np.zeros((T, S), dtype=bool)
    for row in range(T):
        mask[row, : row + 1 + q_offset] = True
    return mask


@answer(
    "causal_mask",
    "numpy",
    "offset 0 taken for the end",
    "wrong",
    "With offset 0 the first query meets the first key; this puts the last query beside the last key whenever the offset is 0.",
)
def causal_w2(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    offset = q_offset or S - T
    return j <= i + offset


@answer(
    "causal_mask",
    "numpy",
    "always the first key at least",
    "wrong",
    "With a negative offset the first queries see nothing; here they are allowed to see key 0 all the same.",
)
def causal_w3(T, S=None, *, q_offset=0):
    S = T if S is None else S
    i = np.arange(T)[:, None]
    j = np.arange(S)[None, :]
    return j <= np.maximum(i + q_offset, 0)


@answer("causal_mask", "numpy", "outer difference", "right")
def causal_r1(T, S=None, *, q_offset=0):
    S = T if S is None else S
    ahead = np.subtract.outer(np.arange(T) + q_offset, np.arange(S))
    return ~np.signbit(ahead.astype(float))


# ---------------------------------------------------------------- padding_mask


@answer(
    "padding_mask",
    "numpy",
    "ends at the longest sentence",
    "wrong",
    "The keys are counted up to the longest sentence, not up to S: the mask is too narrow when every sentence has padding.",
)
def padding_w1(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(lengths.max())
    return (j < lengths[:, None])[:, None, None, :]


@answer(
    "padding_mask",
    "numpy",
    "padding cut from the right",
    "wrong",
    "A full sentence has no padding, and length - S is 0 then: the slice [0:] blots out the whole row.",
)
def padding_w2(lengths, S):
    lengths = np.asarray(lengths)
    mask = np.ones((len(lengths), 1, 1, S), dtype=bool)
    for b, length in enumerate(lengths):
        mask[b, 0, 0, length - S :] = False
    return mask


@answer(
    "padding_mask",
    "numpy",
    "sentences where the queries stand",
    "wrong",
    "The shape is (1, 1, B, S): the row of each sentence lies over the queries and not over the batch.",
)
def padding_w3(lengths, S):
    lengths = np.asarray(lengths)
    j = np.arange(S)
    return (j[None, :] < lengths[:, None])[None, None]


@answer(
    "padding_mask",
    "numpy",
    "empty sentences get one word",
    "wrong",
    "A sentence of length 0 has a row of False alone; here its first key is declared real.",
)
def padding_w4(lengths, S):
    lengths = np.asarray(lengths)
    at_least_one = np.where(lengths > 0, lengths, 1)  # no nan in the softmax
    return np.arange(S) < at_least_one.reshape(-1, 1, 1, 1)


# ---------------------------------------------------------------- masked_attention, numpy


@answer(
    "masked_attention",
    "numpy",
    "minus ten thousand added",
    "wrong",
    "A forbidden score of, say, 20000 is still the largest after -10000 has been added: the mask gives way to large scores.",
)
def attention_w1(query, key, value, mask):
    scores = np.einsum("...td,...sd->...ts", query, key) / np.sqrt(query.shape[-1])
    scores = scores + np.where(mask, 0.0, -1e4)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    weights = weights * np.any(np.broadcast_to(mask, weights.shape), axis=-1, keepdims=True)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "only the context is emptied",
    "wrong",
    "For a query that sees nothing the context is set to 0, but its weights come back as 1/S each.",
)
def attention_w2(query, key, value, mask):
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    mask = np.broadcast_to(mask, scores.shape)
    nothing = ~mask.any(axis=-1, keepdims=True)
    masked = np.where(mask, scores, -np.inf)
    masked = np.where(nothing, 0.0, masked)
    e = np.exp(masked - masked.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    context = np.where(nothing, 0.0, weights @ value)
    return context, weights


@answer(
    "masked_attention",
    "numpy",
    "exponential times mask",
    "wrong",
    "The largest allowed score is subtracted, so a large forbidden one overflows to inf before it is multiplied by 0, and that is nan.",
)
def attention_w3(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    top = np.where(mask, scores, -np.inf).max(axis=-1, keepdims=True)
    top = np.where(top == -np.inf, 0, top)
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(scores - top) * mask
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "a row of mask stood up",
    "wrong",
    "A mask of shape (S,) says which keys may be seen; here it is made a column and hides queries.",
)
def attention_w4(query, key, value, mask):
    mask = np.asarray(mask)
    if mask.ndim == 1:
        mask = mask[:, np.newaxis]
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    weights = softmax(np.where(mask, scores, -np.inf))
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "two-dimensional masks guessed",
    "wrong",
    "A (T, S) mask is taken for one row per sentence as soon as there are as many sentences as queries.",
)
def attention_w5(query, key, value, mask):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    if mask.ndim == 2 and similarity.ndim > 2 and mask.shape[0] == similarity.shape[0]:
        mask = mask.reshape(mask.shape[0], *[1] * (similarity.ndim - 2), mask.shape[1])  # one row per sentence
    share = softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@answer(
    "masked_attention",
    "numpy",
    "indexing with a mask that is not broadcast",
    "wrong",
    "Boolean indexing does not broadcast: every mask that has not exactly the shape of the scores raises an IndexError.",
)
def attention_w6(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    scores[~mask] = -np.inf
    weights = softmax(scores)
    return weights @ value, weights


@answer(
    "masked_attention",
    "numpy",
    "a small number below instead of the maximum",
    "wrong",
    "Without subtracting a maximum large scores overflow, and where all scores are far below 0 the 1e-9 in the divisor outweighs the sum.",
)
def attention_w7(query, key, value, mask):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    e = np.where(mask, np.exp(scores), 0.0)
    weights = e / (e.sum(axis=-1, keepdims=True) + 1e-9)
    return weights @ value, weights


@answer("masked_attention", "numpy", "row by row with np.vectorize", "right")
def attention_r1(query, key, value, mask):
    def one_query(q, k, v, allowed):
        weights = np.zeros(len(k))
        seen = np.flatnonzero(allowed)
        if seen.size:
            s = k[seen] @ q / math.sqrt(q.size)
            e = np.exp(s - s.max())
            weights[seen] = e / e.sum()
        return weights @ v, weights

    leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    mask = np.broadcast_to(mask, (*leading, query.shape[-2], key.shape[-2]))
    every = np.vectorize(one_query, otypes=[float, float], signature="(d),(s,d),(s,v),(s)->(v),(s)")
    return every(query, key[..., None, :, :], value[..., None, :, :], mask)


# ---------------------------------------------------------------- masked_attention, torch


@answer(
    "masked_attention",
    "torch",
    "log of the mask added",
    "wrong",
    "The numbers are right, but for an empty row the softmax is nan and its gradient runs through the addition into queries and keys.",
)
def attention_t1(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores + torch.log(mask.to(scores.dtype))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "empty rows opened in the caller's mask",
    "wrong",
    "mask |= empty opens the empty rows in the mask of the caller, who finds it changed after the call.",
)
def attention_t2(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    empty = ~mask.any(dim=-1, keepdim=True)
    mask |= empty  # let empty rows see everything for now
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    weights = weights.masked_fill(empty, 0.0)
    return weights @ value, weights


@answer(
    "masked_attention",
    "torch",
    "one maximum for the whole tensor",
    "wrong",
    "One maximum for all queries, taken before the mask: rows whose allowed scores lie far below it vanish to 0.",
)
def attention_t3(query, key, value, mask):
    scores = torch.einsum("...td,...sd->...ts", query, key) / query.size(-1) ** 0.5
    e = torch.exp(scores - scores.max().detach()) * mask
    total = e.sum(dim=-1, keepdim=True)
    weights = e / torch.where(total > 0, total, torch.ones_like(total))
    return torch.matmul(weights, value), weights


@answer(
    "masked_attention",
    "torch",
    "scores clamped",
    "wrong",
    "clamp makes all scores beyond 50 equal and cuts their gradient: the differences between large scores are lost.",
)
def attention_t4(query, key, value, mask):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    scores = scores.clamp(-50, 50)  # no overflow
    e = torch.where(mask, scores.exp(), torch.zeros_like(scores))
    total = e.sum(-1, keepdim=True)
    weights = e / total.masked_fill(total == 0, 1)
    return weights @ value, weights


@answer("masked_attention", "torch", "masked_fill, softmax, nan_to_num", "right")
def attention_tr1(query, key, value, mask):
    scores = (query / query.shape[-1] ** 0.5) @ key.mT
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1).nan_to_num(nan=0.0)
    return weights @ value, weights


# ---------------------------------------------------------------- KVCache


@answer(
    "KVCache",
    "numpy",
    "length counts the chunks",
    "wrong",
    "length is the number of calls of append; a prompt of four words counts as one.",
)
class CacheW1:
    def __init__(self):
        self.chunks = []

    @property
    def length(self):
        return len(self.chunks)

    def append(self, key, value):
        self.chunks.append((key, value))
        keys, values = zip(*self.chunks)
        return np.concatenate(keys, axis=-2), np.concatenate(values, axis=-2)


@answer(
    "KVCache",
    "numpy",
    "lists of the class",
    "wrong",
    "The two lists belong to the class, so that all caches of all layers share them.",
)
class CacheW2:
    keys, values = [], []

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
    "keys and values in one array",
    "wrong",
    "np.stack needs keys and values of the same shape, but D and D_v may differ.",
)
class CacheW3:
    def __init__(self):
        self.length = 0
        self.both = None

    def append(self, key, value):
        new = np.stack([key, value])
        self.both = new if self.both is None else np.concatenate([self.both, new], axis=-2)
        self.length = self.both.shape[-2]
        return self.both[0], self.both[1]


@answer(
    "KVCache",
    "numpy",
    "first chunk not counted",
    "wrong",
    "The early return of the first call jumps over the line that counts, so length lacks the whole prompt.",
)
class CacheW4:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
            return self.keys, self.values
        self.keys = np.concatenate((self.keys, key), axis=-2)
        self.values = np.concatenate((self.values, value), axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@answer(
    "KVCache",
    "numpy",
    "buffer for 32 positions",
    "wrong",
    "The buffer has room for 32 positions; the text sets no limit, and the 33rd raises an error.",
)
class CacheW5:
    def __init__(self, room=32):
        self.length = 0
        self.room = room
        self.keys = self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys = np.zeros((*key.shape[:-2], self.room, key.shape[-1]))
            self.values = np.zeros((*value.shape[:-2], self.room, value.shape[-1]))
        end = self.length + key.shape[-2]
        self.keys[..., self.length : end, :] = key
        self.values[..., self.length : end, :] = value
        self.length = end
        return self.keys[..., :end, :].copy(), self.values[..., :end, :].copy()


@answer("KVCache", "numpy", "buffers that double", "right")
class CacheR1:
    def __init__(self):
        self.length = 0
        self._room = [None, None]

    def append(self, key, value):
        end = self.length + key.shape[-2]
        result = []
        for n, new in enumerate((key, value)):
            room = self._room[n]
            if room is None or room.shape[-2] < end:
                bigger = np.empty((*new.shape[:-2], 2 * end, new.shape[-1]), dtype=new.dtype)
                if room is not None:
                    bigger[..., : self.length, :] = room[..., : self.length, :]
                self._room[n] = room = bigger
            room[..., self.length : end, :] = new
            result.append(room[..., :end, :].copy())
        self.length = end
        return tuple(result)
