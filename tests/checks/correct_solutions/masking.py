"""Right answers to the exercises of the assignment on masks."""

import collections
import math

import numpy as np
import torch
import torch.nn.functional as F

import attnlib
import attnlib.numpy
from correct_solutions.styles import style, swap

# causal_mask -----------------------------------------------------------------------------------------------------


@style("causal_mask", "a comparison of positions")
def causal(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.arange(S)[None, :] <= np.arange(T)[:, None] + q_offset


@style("causal_mask", "np.tri")
def causal_tri(T, S=None, *, q_offset=0):
    return np.tri(T, S, q_offset, dtype=bool)


@style("causal_mask", "np.tril of ones")
def causal_tril(T, S=None, *, q_offset=0):
    return np.tril(np.ones((T, S or T), dtype=np.bool_), k=q_offset)


@style("causal_mask", "not the upper triangle")
def causal_not_triu(T, S=None, q_offset=0):
    return ~np.triu(np.ones((T, T if S is None else S)), 1 + q_offset).astype(bool)


@style("causal_mask", "Python loops")
def causal_loops(T, S=None, *, q_offset=0):
    S = S if S is not None else T
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        for j in range(S):
            if j <= i + q_offset:
                mask[i, j] = True
    return mask


@style("causal_mask", "np.greater_equal.outer")
def causal_outer(T, S=None, *, q_offset=0, like=None):
    return np.greater_equal.outer(np.arange(q_offset, T + q_offset), np.arange(T if S is None else S))


@style("causal_mask", "a slice in each row")
def causal_slices(T, S=None, *, q_offset=0):
    mask = np.full((T, S or T), False)
    for i in range(T):
        mask[i, : max(0, i + q_offset + 1)] = True
    return mask


@style("causal_mask", "np.fromfunction")
def causal_fromfunction(T, S=None, *, q_offset=0):
    return np.fromfunction(lambda i, j: i - j + q_offset >= 0, (T, T if S is None else S))


@style("causal_mask", "a nested list turned into an array")
def causal_list(T, S=None, *, q_offset=0):
    return np.array([[key <= query + q_offset for key in range(S or T)] for query in range(T)])


# padding_mask ----------------------------------------------------------------------------------------------------


@style("padding_mask", "a comparison that broadcasts")
def padding(lengths, S):
    return np.arange(S) < np.asarray(lengths)[:, None, None, None]


@style("padding_mask", "reshape")
def padding_reshape(lengths, S):
    return np.arange(S).reshape(1, 1, 1, S) < np.array(lengths).reshape(-1, 1, 1, 1)


@style("padding_mask", "loops and slices")
def padding_loops(lengths, S):
    mask = np.zeros((len(lengths), 1, 1, S), dtype=bool)
    for b, length in enumerate(lengths):
        mask[b, 0, 0, :length] = True
    return mask


@style("padding_mask", "lists")
def padding_lists(lengths, S):
    return np.array([[[[j < n for j in range(S)]]] for n in lengths])


@style("padding_mask", "expand_dims of a (B, S)")
def padding_expand(lengths, S):
    mask = np.greater.outer(np.array(lengths), np.arange(S))
    return np.expand_dims(mask, axis=(1, 2))


@style("padding_mask", "not the padding")
def padding_not(lengths, S):
    positions = np.tile(np.arange(S), (len(lengths), 1))
    return np.logical_not(positions >= np.asarray(lengths)[:, None])[:, np.newaxis, np.newaxis, :]


@style("padding_mask", "rows of a triangle")
def padding_triangle(lengths, S):
    return np.tri(S + 1, S, -1, dtype=bool)[list(lengths)][:, None, None]


# masked_attention ------------------------------------------------------------------------------------------------


def softmax(scores):
    """With -inf in it, and rows of nothing else."""
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@style("masked_attention", "np.where and a safe softmax")
def masked(query, key, value, mask):
    weights = softmax(np.where(mask, query @ swap(key) / np.sqrt(query.shape[-1]), -np.inf))
    return weights @ value, weights


@style("masked_attention", "nan made 0 in the weights")
def masked_nan_to_num(query, key, value, mask):
    scores = np.where(mask, query @ swap(key) / math.sqrt(query.shape[-1]), -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.nan_to_num(e / e.sum(axis=-1, keepdims=True))
    return weights @ value, weights


@style("masked_attention", "-1e9, and the weights multiplied by the mask once more")
def masked_finite(query, key, value, mask):
    scores = np.where(mask, np.einsum("...td,...sd->...ts", query, key) / query.shape[-1] ** 0.5, -1e9)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True) * mask
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@style("masked_attention", "finfo.min, empty rows set to 0")
def masked_finfo(query, key, value, mask):
    scores = np.where(mask, query @ swap(key) / query.shape[-1] ** 0.5, np.finfo(query.dtype).min)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights = np.where(mask.any(axis=-1, keepdims=True), e / e.sum(-1, keepdims=True), 0)
    return [weights @ value, weights]


@style("masked_attention", "a float mask that is added")
def masked_added(query, key, value, mask):
    bias = np.zeros(mask.shape)
    bias[~mask] = -np.inf
    weights = softmax(query.astype(float) @ swap(key) / query.shape[-1] ** 0.5 + bias)
    return (weights @ value).astype(query.dtype), weights.astype(query.dtype)


@style("masked_attention", "the logarithm of the mask is added")
def masked_log(query, key, value, mask):
    weights = softmax(query @ swap(key) / query.shape[-1] ** 0.5 + np.log(mask))
    return weights @ value, weights


@style("masked_attention", "exponentials times the mask, shifted by the largest allowed score")
def masked_exponentials(query, key, value, mask):
    scores = query @ swap(key) / query.shape[-1] ** 0.5
    top = np.max(scores, axis=-1, keepdims=True, initial=-1e300, where=np.broadcast_to(mask, scores.shape))
    e = np.where(mask, np.exp(np.minimum(scores - top, 0)), 0)
    weights = e / (e.sum(axis=-1, keepdims=True) + 1e-12)
    return weights @ value, weights


@style("masked_attention", "Python loops over the allowed keys")
def masked_loops(query, key, value, mask):
    lead, t, s = query.shape[:-2], query.shape[-2], key.shape[-2]
    mask = np.broadcast_to(mask, (*lead, t, s))
    context, weights = np.zeros((*lead, t, value.shape[-1])), np.zeros((*lead, t, s))
    for place in np.ndindex((*lead, t)):
        lead_place = place[:-1]
        allowed = [j for j in range(s) if mask[(*place, j)]]
        if not allowed:
            continue
        scores = [float(query[place] @ key[(*lead_place, j)]) / math.sqrt(query.shape[-1]) for j in allowed]
        exponentials = [math.exp(x - max(scores)) for x in scores]
        for j, e in zip(allowed, exponentials, strict=True):
            weights[(*place, j)] = e / sum(exponentials)
            context[place] += weights[(*place, j)] * value[(*lead_place, j)]
    return context, weights


@style("masked_attention", "boolean index into a copy, with a broadcast mask")
def masked_index(query, key, value, mask):
    scores = query @ swap(key) * query.shape[-1] ** -0.5
    scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    weights = softmax(scores)
    return weights @ value, weights


@style("masked_attention", "mask before the scale, extra keyword")
def masked_before_scale(query, key, value, mask, *, scale=None):
    scores = np.where(mask, query @ swap(key), -np.inf)
    weights = softmax(scores / (query.shape[-1] ** 0.5 if scale is None else scale))
    return weights @ value, weights


@style("masked_attention", "np.copyto and np.divide with where")
def masked_copyto(query, key, value, mask):
    scores = query @ swap(key) / query.shape[-1] ** 0.5
    np.copyto(scores, -1e30, where=~mask)
    e = np.exp(scores - scores.max(-1, keepdims=True)) * mask
    total = e.sum(-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return weights @ value, weights


@style("masked_attention", "the library's function", backend="numpy")
def masked_library(query, key, value, mask):
    return attnlib.scaled_dot_product_attention(query, key, value, mask, return_weights=True)


@style("masked_attention", "logsumexp over the allowed")
def masked_logsumexp(query, key, value, mask):
    scores = np.where(mask, query @ swap(key) / query.shape[-1] ** 0.5, -np.inf)
    total = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    weights = np.where(np.isneginf(total), 0, np.exp(scores - np.where(np.isneginf(total), 0, total)))
    return weights @ value, weights


@style("masked_attention", "masked_fill and nan_to_num", backend="torch")
def masked_torch(query, key, value, mask):
    scores = (query @ key.mT / query.size(-1) ** 0.5).masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num()
    return weights @ value, weights


@style("masked_attention", "finfo.min, and the mask again", backend="torch")
def masked_torch_finfo(query, key, value, mask):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    weights = F.softmax(scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min), dim=-1)
    weights = weights * mask
    return torch.matmul(weights, value), weights


@style("masked_attention", "torch.where and rows that are empty", backend="torch")
def masked_torch_where(query, key, value, mask):
    scores = torch.einsum("...td,...sd->...ts", query, key) / query.shape[-1] ** 0.5
    scores = torch.where(mask, scores, torch.tensor(-1e9, dtype=scores.dtype))
    weights = torch.where(mask.any(-1, keepdim=True), scores.softmax(-1), torch.zeros_like(scores))
    return [torch.einsum("...ts,...sv->...tv", weights, value), weights]


@style("masked_attention", "F.scaled_dot_product_attention for the context", backend="torch")
def masked_torch_sdpa(query, key, value, mask):
    weights = (query @ key.mT / query.size(-1) ** 0.5).masked_fill(~mask, -1e9).softmax(-1) * mask
    full = mask.expand(weights.shape)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=full), weights


@style("masked_attention", "a float mask that is added", backend="torch")
def masked_torch_added(query, key, value, mask):
    bias = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    some = mask.any(-1, keepdim=True)
    weights = torch.softmax(query @ key.mT / query.size(-1) ** 0.5 + torch.where(some, bias, 0.0), -1) * some
    return weights @ value, weights


@style("masked_attention", "exponentials in float64, cast back", backend="torch")
def masked_torch_cast(query, key, value, mask):
    q, k, v = query.double(), key.double(), value.double()
    scores = q @ k.mT / q.size(-1) ** 0.5
    top = scores.masked_fill(~mask, -torch.inf).amax(-1, keepdim=True).clamp(min=-1e300).detach()
    e = torch.exp((scores - top).masked_fill(~mask, -torch.inf))
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-12)
    return (weights @ v).to(value.dtype), weights.to(query.dtype)


# KVCache ---------------------------------------------------------------------------------------------------------


@style("KVCache", "concatenated at each call")
class Concatenated:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@style("KVCache", "a list of chunks, with the length as a property")
class Listed:
    def __init__(self):
        self.chunks = []

    @property
    def length(self):
        return sum(key.shape[-2] for key, _ in self.chunks)

    def append(self, key, value):
        self.chunks.append((key.copy(), value.copy()))
        return [np.concatenate(parts, axis=-2) for parts in zip(*self.chunks, strict=True)]


@style("KVCache", "a buffer whose capacity doubles")
class Doubling:
    def __init__(self):
        self.length, self.room, self.k, self.v = 0, 0, None, None

    def _grown(self, old, new):
        grown = np.zeros((*new.shape[:-2], self.room, new.shape[-1]))
        if old is not None:
            grown[..., : self.length, :] = old[..., : self.length, :]
        return grown

    def append(self, key, value):
        end = self.length + key.shape[-2]
        if end > self.room:
            self.room = 2 * end
            self.k, self.v = self._grown(self.k, key), self._grown(self.v, value)
        self.k[..., self.length : end, :], self.v[..., self.length : end, :] = key, value
        self.length = end
        return self.k[..., :end, :], self.v[..., :end, :]


@style("KVCache", "empty arrays to begin with, length as a numpy integer")
class FromEmpty:
    def __init__(self):
        self.kept = {}
        self.length = np.int64(0)

    def append(self, key, value):
        for name, new in (("key", key), ("value", value)):
            old = self.kept.get(name, new[..., :0, :])
            self.kept[name] = np.append(old, new, axis=new.ndim - 2)
        self.length = np.int64(self.kept["key"].shape[-2])
        return tuple(self.kept.values())


@style("KVCache", "token by token in a deque")
class TokenByToken:
    def __init__(self, maximum=None):
        self.tokens = collections.deque(maxlen=maximum)

    @property
    def length(self):
        return len(self.tokens)

    def append(self, key, value):
        for t in range(key.shape[-2]):
            self.tokens.append((key[..., t, :], value[..., t, :]))
        return np.stack([k for k, _ in self.tokens], -2), np.stack([v for _, v in self.tokens], -2)


@style("KVCache", "attributes of the class as defaults that are replaced")
class ClassDefaults:
    keys = None
    values = None
    length = 0

    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate((self.keys, key), -2)
        self.values = value if self.values is None else np.concatenate((self.values, value), -2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@style("KVCache", "positions moved to the front")
class Moved:
    def __init__(self):
        self.keys, self.values, self.length = [], [], 0

    def append(self, key, value):
        self.keys.extend(np.moveaxis(key, -2, 0))
        self.values.extend(np.moveaxis(value, -2, 0))
        self.length = len(self.keys)
        return np.moveaxis(np.array(self.keys), 0, -2), np.moveaxis(np.array(self.values), 0, -2)


@style("KVCache", "the library's own, inherited")
class Inherited(attnlib.numpy.KVCache):
    pass


@style("KVCache", "torch.cat", backend="torch")
class TorchCat:
    def __init__(self):
        self.keys = self.values = None
        self.length = 0

    def append(self, key, value):
        self.keys = key if self.keys is None else torch.cat([self.keys, key], dim=-2)
        self.values = value if self.values is None else torch.cat([self.values, value], dim=-2)
        self.length = self.keys.size(-2)
        return self.keys, self.values


@style("KVCache", "a module with buffers", backend="torch")
class TorchModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", None)
        self.register_buffer("values", None)

    @property
    def length(self):
        return 0 if self.keys is None else self.keys.shape[-2]

    def append(self, key, value):
        self.keys = key if self.keys is None else torch.cat((self.keys, key), -2)
        self.values = value if self.values is None else torch.cat((self.values, value), -2)
        return self.keys, self.values


@style("KVCache", "detached clones in lists", backend="torch")
class TorchDetached:
    def __init__(self):
        self.keys, self.values, self.length = [], [], 0

    def append(self, key, value):
        self.keys.append(key.detach().clone())
        self.values.append(value.detach().clone())
        self.length += key.shape[-2]
        return torch.cat(self.keys, dim=-2), torch.cat(self.values, dim=-2)


@style("KVCache", "without gradients, into room that is made before", backend="torch")
class TorchRoom:
    def __init__(self, room=4096):
        self.room, self.length = room, 0

    @torch.no_grad()
    def append(self, key, value):
        if self.length == 0:
            self.keys = key.new_zeros((*key.shape[:-2], self.room, key.shape[-1]))
            self.values = value.new_zeros((*value.shape[:-2], self.room, value.shape[-1]))
        end = self.length + key.shape[-2]
        self.keys[..., self.length : end, :] = key
        self.values[..., self.length : end, :] = value
        self.length = end
        return self.keys.narrow(-2, 0, end), self.values.narrow(-2, 0, end)


@style("KVCache", "a list of pairs, the length a tensor", backend="torch")
class TorchTensorLength:
    def __init__(self):
        self.pairs, self.length = [], torch.tensor(0)

    def append(self, key, value):
        self.pairs.append((key, value))
        self.length = self.length + key.shape[-2]
        return [torch.cat([pair[n] for pair in self.pairs], dim=-2) for n in (0, 1)]
