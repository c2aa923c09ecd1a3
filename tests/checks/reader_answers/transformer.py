"""Answers to the exercises of chapter 7, the transformer: written from the notebook alone."""

import math

import numpy as np
import torch
from torch import nn

ANSWERS = []
UNASKED = {"MultiHeadAttention": "need_weights"}  # the argument that this notebook does not ask for


def add(name, backend, label, verdict, implementation, sentence=""):
    ANSWERS.append((name, backend, label, verdict, implementation, sentence))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------ scaled_dot_product_attention_backward


def back_w1(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return ds @ key, ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_w2(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * dp
    return c * ds @ key, c * ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_w3(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-2, keepdims=True))
    return c * ds @ key, c * ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_w4(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * (dp - dp.mean(axis=-1, keepdims=True))
    return c * ds @ key, c * ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_w5(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return c * ds.swapaxes(-1, -2) @ query, c * ds @ key, p.swapaxes(-1, -2) @ grad


def back_w6(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.T)
    dp = grad @ value.T
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return c * ds @ key, c * ds.T @ query, p.T @ grad


def back_w7(grad, query, key, value):
    c = value.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return c * ds @ key, c * ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_w8(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = np.ones_like(grad) @ value.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return c * ds @ key, c * ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_r1(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(c * query @ key.swapaxes(-1, -2))
    dp = grad @ value.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return c * ds @ key, c * ds.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ grad


def back_r2(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    s = c * np.einsum("...td,...sd->...ts", query, key)
    p = np.exp(s - np.logaddexp.reduce(s, axis=-1, keepdims=True))
    out = np.einsum("...ts,...sv->...tv", p, value)
    ds = c * p * (np.einsum("...tv,...sv->...ts", grad, value) - (grad * out).sum(-1)[..., None])
    return (
        np.einsum("...ts,...sd->...td", ds, key),
        np.einsum("...ts,...td->...sd", ds, query),
        np.einsum("...ts,...tv->...sv", p, grad),
    )


N = "scaled_dot_product_attention_backward"
add(N, "numpy", "no-c", "wrong", back_w1, "the factor c is missing in the gradients of queries and keys")
add(N, "numpy", "no-average", "wrong", back_w2, "the weighted average is not subtracted in dS")
add(N, "numpy", "sum-over-queries", "wrong", back_w3, "the weighted average runs over the queries")
add(N, "numpy", "plain-mean", "wrong", back_w4, "the plain mean is subtracted instead of the weighted one")
add(N, "numpy", "order", "wrong", back_w5, "returns the gradient of the keys first")
add(N, "numpy", "T-for-all-axes", "wrong", back_w6, ".T turns all axes: wrong with a batch")
add(N, "numpy", "root-of-D_v", "wrong", back_w7, "c is taken from the width of the values")
add(
    N,
    "numpy",
    "upstream-ones",
    "wrong",
    back_w8,
    "takes the upstream gradient for ones in dP: right for output.sum() only",
)
add(N, "numpy", "plain", "right", back_r1)
add(N, "numpy", "delta-einsum", "right", back_r2)

# ------------------------------------------------------------------ online_softmax


def online_w1(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e = np.exp(scores - new[..., None])
    return total + e @ value, norm + e.sum(axis=-1), new


def online_w2(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores - new[..., None]), np.exp(new - maximum)
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new


def online_w3(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores - new[..., None]), np.exp(maximum - new)
    return total + e @ value, fade * norm + e.sum(axis=-1), new


def online_w4(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores - new[..., None]), np.exp(maximum - new)
    norm = fade * norm + e.sum(axis=-1)
    return (fade[..., None] * total + e @ value) / norm[..., None], norm, new


def online_w5(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores - new[..., None]), np.exp(maximum - new)
    total *= fade[..., None]
    norm *= fade
    total += e @ value
    norm += e.sum(axis=-1)
    return total, norm, new


def online_w6(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    fade = np.exp(maximum - new)
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new


def online_w7(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores - new[..., None]), np.exp(maximum - new)
    return fade * norm + e.sum(axis=-1), fade[..., None] * total + e @ value, new


def online_w8(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores), np.exp(maximum)
    below = np.exp(new)
    return (fade[..., None] * total + e @ value) / below[..., None], (fade * norm + e.sum(-1)) / below, new


def online_r1(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(axis=-1))
    e, fade = np.exp(scores - new[..., None]), np.exp(maximum - new)
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new


def online_r2(scores, value, total, norm, maximum):
    m, l, o = maximum, norm, total
    for j in range(scores.shape[-1]):
        top = np.maximum(m, scores[..., j])
        safe = np.where(np.isneginf(top), 0.0, top)
        fade, e = np.exp(m - safe), np.exp(scores[..., j] - safe)
        o = fade[..., None] * o + e[..., None] * value[..., j, None, :]
        l, m = fade * l + e, top
    return o, l, m


N = "online_softmax"
add(N, "numpy", "no-fade", "wrong", online_w1, "the old sums are not rescaled to the new maximum")
add(N, "numpy", "fade-upside-down", "wrong", online_w2, "rescales by exp(m' - m), which is infinite in the first block")
add(N, "numpy", "total-not-faded", "wrong", online_w3, "only norm is rescaled, total is not")
add(N, "numpy", "divided-already", "wrong", online_w4, "total is divided by norm at each block")
add(N, "numpy", "in-place", "wrong", online_w5, "changes the old state in place")
add(
    N,
    "numpy",
    "maximum-of-block",
    "wrong",
    online_w6,
    "the new block is measured against its own maximum instead of the new one",
)
add(N, "numpy", "order", "wrong", online_w7, "returns norm first and total second")
add(
    N,
    "numpy",
    "no-maximum",
    "wrong",
    online_w8,
    "exponentials without a maximum, divided later: overflows for large scores",
)
add(N, "numpy", "plain", "right", online_r1)
add(N, "numpy", "key-by-key", "right", online_r2)

# ------------------------------------------------------------------ attention in blocks


def blocks(query, key, value, scale, size, copy=True, fade_above=True, stop=0):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below, above = np.zeros_like(top), np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, max(1, key.shape[-2] - stop), size):
        here, before = slice(start, start + size), top.copy() if copy else top
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = (fade if fade_above else 1) * above + e @ value[..., here, :]
    return above / below


def blocks_w1(query, key, value, scale=None):
    return blocks(query, key, value, scale, 2, copy=False)


def blocks_w2(query, key, value, scale=None):
    return blocks(query, key, value, scale, 2, fade_above=False)


def blocks_w3(query, key, value, scale=None):
    return blocks(query, key, value, scale, 2, stop=1)


def blocks_w4(query, key, value, scale=None):
    return blocks(query, key, value, scale, 64, copy=False)


def blocks_w5(query, key, value, scale=None):
    return blocks(query, key, value, scale or None, 2)


def blocks_r1(query, key, value, scale=None):
    return blocks(query, key, value, scale, 2)


def blocks_r2(query, key, value, scale=None, size=3):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    state = (
        np.zeros((*query.shape[:-1], value.shape[-1])),
        np.zeros(query.shape[:-1]),
        np.full(query.shape[:-1], -np.inf),
    )
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        state = online_r1(s, value[..., here, :], *state)
    return state[0] / state[1][..., None]


N = "attention_in_blocks"
add(
    N,
    "numpy",
    "colleague",
    "wrong",
    blocks_w1,
    "before is the same array as top, so nothing is ever rescaled: wrong if the maximum rises after the first block",
)
add(N, "numpy", "above-not-faded", "wrong", blocks_w2, "the old maximum is copied, but above is not rescaled")
add(
    N,
    "numpy",
    "last-key-lost",
    "wrong",
    blocks_w3,
    "a last block of a single key is left out: wrong for an odd number of keys",
)
add(
    N,
    "numpy",
    "larger-blocks",
    "wrong",
    blocks_w4,
    "the alias is still there, only the blocks are of 64 keys: wrong for more than 64 keys",
)
add(N, "numpy", "scale-or", "wrong", blocks_w5, "scale=0 is taken for 'not chosen'")
add(N, "numpy", "copied", "right", blocks_r1)
add(N, "numpy", "with-online-softmax", "right", blocks_r2)

# ------------------------------------------------------------------ MultiHeadAttention and TransformerBlock


class Heads(nn.Module):
    """The notebook's module; the variants change one thing each. Also a stand-in for attnlib.torch's."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def attend(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v

    def join(self, heads):
        return heads.transpose(1, 2).flatten(2)

    def forward(self, query, key=None, value=None):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            p(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        return self.out_proj(self.join(self.attend(q, k, v)))


class HeadsW1(Heads):
    def attend(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.q_proj.out_features), dim=-1) @ v


class HeadsW2(Heads):
    def attend(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=1) @ v


class HeadsW3(Heads):
    def attend(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=2) @ v


class HeadsW4(Heads):
    def join(self, heads):
        B, H, T, D = heads.shape
        return heads.reshape(B, T, H * D)


class HeadsW5(Heads):
    def attend(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


class HeadsW6(Heads):
    def attend(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1).detach() @ v


class HeadsR1(Heads):
    pass


class HeadsR2(Heads):
    def attend(self, q, k, v):
        s = torch.einsum("bhtd,bhsd->bhts", q, k) * q.shape[-1] ** -0.5
        return torch.einsum("bhts,bhsd->bthd", (s - s.logsumexp(-1, keepdim=True)).exp(), v)

    def join(self, heads):
        return heads.flatten(-2)


N = "MultiHeadAttention"
add(N, "torch", "root-of-E", "wrong", HeadsW1, "divides by the root of E instead of D")
add(N, "torch", "softmax-over-heads", "wrong", HeadsW2, "the softmax runs over the heads")
add(N, "torch", "softmax-over-queries", "wrong", HeadsW3, "the softmax runs over the queries")
add(N, "torch", "merge-by-reshape", "wrong", HeadsW4, "merges by a single reshape")
add(N, "torch", "no-scale", "wrong", HeadsW5, "the scores are not divided: right only for heads of width 1")
add(N, "torch", "weights-detached", "wrong", HeadsW6, "the weights are detached, so q_proj and k_proj get no gradient")
add(N, "torch", "plain", "right", HeadsR1)
add(N, "torch", "einsum", "right", HeadsR2)


class Parts(nn.Module):
    eps, bend = 1e-5, staticmethod(torch.relu)

    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = Heads(embed_dim, num_heads)  # stand-in for attnlib.torch.MultiHeadAttention
        self.linear1, self.linear2 = nn.Linear(embed_dim, ff_dim), nn.Linear(ff_dim, embed_dim)
        self.norm1, self.norm2 = nn.LayerNorm(embed_dim, eps=self.eps), nn.LayerNorm(embed_dim, eps=self.eps)

    def feed(self, x):
        return self.linear2(self.bend(self.linear1(x)))

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.feed(self.norm2(x))


class BlockW1(Parts):
    def forward(self, x):
        x = self.norm1(x + self.self_attn(x))
        return self.norm2(x + self.feed(x))


class BlockW2(Parts):
    def forward(self, x):
        n = self.norm1(x)
        x = n + self.self_attn(n)
        n = self.norm2(x)
        return n + self.feed(n)


class BlockW3(Parts):
    def forward(self, x):
        between = x + self.self_attn(self.norm1(x))
        return x + self.feed(self.norm2(between))


class BlockW4(Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.feed(self.norm1(x))


class BlockW5(Parts):
    bend = staticmethod(torch.nn.functional.gelu)


class BlockW6(Parts):
    def forward(self, x):
        return x + self.self_attn(self.norm1(x)) + self.feed(self.norm2(x))


class BlockW7(Parts):
    eps = 1e-12


class BlockW8(Parts):
    def forward(self, x):
        x += self.self_attn(self.norm1(x.clone()))
        return x + self.feed(self.norm2(x))


class BlockW9(Parts):
    def forward(self, x):
        n = self.norm1(x)
        x = x + self.self_attn(n, x)
        return x + self.feed(self.norm2(x))


class BlockR1(Parts):
    pass


class BlockR2(Parts):
    def forward(self, x, mask=None):
        normed = self.norm1(x)
        between = torch.add(self.self_attn(normed, normed, normed), x)
        wide = torch.nn.functional.linear(self.norm2(between), self.linear1.weight, self.linear1.bias)
        return between + torch.where(wide > 0, wide, 0.0) @ self.linear2.weight.T + self.linear2.bias


N = "TransformerBlock"
add(N, "torch", "post-norm", "wrong", BlockW1, "the older order: normalises the sums")
add(N, "torch", "adds-to-the-copy", "wrong", BlockW2, "adds to the normalised copy instead of the stream")
add(N, "torch", "second-adds-to-X", "wrong", BlockW3, "the second plus adds to X and not to X'")
add(
    N,
    "torch",
    "norm1-twice",
    "wrong",
    BlockW4,
    "norm1 is used twice: a fresh block shows no difference, one with trained norms does",
)
add(N, "torch", "gelu", "wrong", BlockW5, "bends with the GELU instead of the ReLU")
add(N, "torch", "parallel", "wrong", BlockW6, "the feed-forward layer reads X instead of X'")
add(N, "torch", "eps", "wrong", BlockW7, "an epsilon of 1e-12 instead of torch's 1e-5: shows for small inputs")
add(N, "torch", "in-place", "wrong", BlockW8, "changes the caller's x in place")
add(N, "torch", "keys-not-normalised", "wrong", BlockW9, "keys and values are read from the stream without the norm")
add(N, "torch", "plain", "right", BlockR1)
add(N, "torch", "functional", "right", BlockR2)
