"""Answers to the notebook "Exercises: the transformer", as students might write them."""

import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ANSWERS = []
UNASKED = {"MultiHeadAttention": "need_weights"}  # the argument that this notebook does not ask for


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


def softmax(x, axis=-1):
    """Stand-in for attnlib.softmax."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def split_heads(x, num_heads):
    """Stand-in for attnlib.split_heads (tensors)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def merge_heads(x):
    """Stand-in for attnlib.merge_heads (tensors)."""
    return x.transpose(-2, -3).flatten(-2)


class _Layers(nn.Module):
    """What the notebook gives: the four layers, and queries, keys and values cut into heads."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def cut(self, query, key, value):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        return q, k, v


class _LibraryAttention(_Layers):
    """Stand-in for attnlib.torch.MultiHeadAttention."""

    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        return self.out_proj(merge_heads(torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v))


attnlib = SimpleNamespace(torch=SimpleNamespace(MultiHeadAttention=_LibraryAttention), softmax=softmax)


# ---------------------------------------------------------------- MultiHeadAttention


@answer(
    "MultiHeadAttention",
    "torch",
    "tm-softmax-no-dim",
    "wrong",
    "F.softmax without dim takes axis 1 of a tensor with four axes: it normalises over the heads.",
)
class MHA_w1(_Layers):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
        return self.out_proj(merge_heads(weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "tm-nanogpt-tril",
    "wrong",
    "A causal mask, copied from nanoGPT: here nothing is masked.",
)
class MHA_w2(_Layers):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(torch.tril(torch.ones(q.size(2), k.size(2))) == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        B, nh, T, hs = y.size()
        return self.out_proj(y.transpose(1, 2).contiguous().view(B, T, nh * hs))


@answer(
    "MultiHeadAttention",
    "torch",
    "tm-bias-forgotten",
    "wrong",
    "The merged heads are multiplied by the weight of out_proj, but its bias is not added.",
)
class MHA_w3(_Layers):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.shape[-1])
        heads = torch.einsum("bhts,bhsd->bhtd", scores.softmax(-1), v)
        return merge_heads(heads) @ self.out_proj.weight.T


@answer(
    "MultiHeadAttention",
    "torch",
    "tm-scale-e",
    "wrong",
    "The scores are divided by the root of E, the width of the model, not by that of D.",
)
class MHA_w4(_Layers):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        scores = torch.matmul(q, k.mT).div(query.shape[-1] ** 0.5)
        return self.out_proj(merge_heads(torch.matmul(scores.softmax(dim=3), v)))


@answer(
    "MultiHeadAttention",
    "torch",
    "tm-softmax-over-queries",
    "wrong",
    "dim=2 is the axis of the queries; the keys stand on the last one.",
)
class MHA_w5(_Layers):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        scores = q @ k.transpose(2, 3) / q.size(3) ** 0.5
        weights = torch.softmax(scores, dim=2)
        return self.out_proj((weights @ v).permute(0, 2, 1, 3).flatten(2))


@answer("MultiHeadAttention", "torch", "tm-r-explicit-sum", "right")
class MHA_r1(_Layers):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        D = q.shape[-1]
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / D**0.5  # (B, H, T, S)
        top = scores.max(dim=-1, keepdim=True).values.detach()
        e = torch.exp(scores - top)
        heads = torch.matmul(e, v) / e.sum(dim=-1, keepdim=True)
        return self.out_proj(torch.cat([heads[:, h] for h in range(self.num_heads)], dim=-1))


# ---------------------------------------------------------------- TransformerBlock


class _Parts(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)


@answer(
    "TransformerBlock",
    "torch",
    "tb-keys-not-normalised",
    "wrong",
    "Only the queries are normalised, keys and values are taken from the raw stream.",
)
class Block_w1(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x), x, x)
        return x + self.linear2(torch.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "tb-inplace-stream",
    "wrong",
    "x += ... changes the tensor of the caller (and raises an error if it requires gradients).",
)
class Block_w2(_Parts):
    def forward(self, x):
        x += self.self_attn(self.norm1(x))
        x += self.linear2(F.relu(self.linear1(self.norm2(x))))
        return x


@answer(
    "TransformerBlock",
    "torch",
    "tb-parallel",
    "wrong",
    "The feed-forward layer reads the input of the block instead of X', as in GPT-J, so it does not see what attention has added.",
)
class Block_w3(_Parts):
    def forward(self, x):
        attended = self.self_attn(self.norm1(x))
        fed = self.linear2(F.relu(self.linear1(self.norm2(x))))
        return x + attended + fed


@answer(
    "TransformerBlock",
    "torch",
    "tb-eps",
    "wrong",
    "The norms are made with eps=1e-12 as in BERT; for rows with small numbers that gives another result than torch's 1e-5.",
)
class Block_w4(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-12)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-12)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "tb-ff-residual-on-copy",
    "wrong",
    "The feed-forward layer is added to the normalised copy of X', not to X' itself.",
)
class Block_w5(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        x = self.norm2(x)
        x = x + self.linear2(self.linear1(x).clamp(min=0))
        return x


@answer(
    "TransformerBlock",
    "torch",
    "tb-sequential-names",
    "wrong",
    "The feed-forward layer is an nn.Sequential called ff, so the weights linear1 and linear2 cannot be loaded by name.",
)
class Block_w6(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)
        self.ff = nn.Sequential(nn.Linear(embed_dim, ff_dim), nn.ReLU(), nn.Linear(ff_dim, embed_dim))

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.ff(self.norm2(x))


@answer("TransformerBlock", "torch", "tb-norm-reused", "wrong", "norm1 is used for both halves, norm2 is never read.")
class Block_w7(_Parts):
    def forward(self, x):
        for part in (self.self_attn, self.feed):
            x = x + part(self.norm1(x))
        return x

    def feed(self, x):
        return self.linear2(F.relu(self.linear1(x)))


@answer(
    "TransformerBlock",
    "torch",
    "tb-relu-at-the-end",
    "wrong",
    "The ReLU stands behind the second linear layer instead of between the two.",
)
class Block_w8(_Parts):
    def forward(self, x):
        between = x + self.self_attn(self.norm1(x))
        return between + F.relu(self.linear2(self.linear1(self.norm2(between))))


@answer("TransformerBlock", "torch", "tb-r-where-transposed", "right")
class Block_r1(_Parts):
    def forward(self, x):
        normed = self.norm1(x)
        between = torch.add(self.self_attn(normed, normed, normed), x)
        u = torch.einsum("bte,fe->btf", self.norm2(between), self.linear1.weight) + self.linear1.bias
        bent = torch.where(u > 0, u, torch.zeros_like(u))
        return torch.einsum("btf,ef->bte", bent, self.linear2.weight) + (self.linear2.bias + between)


# ---------------------------------------------------------------- attention_backward


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bw-sum-over-queries",
    "wrong",
    "The weighted average runs over the queries (axis -2); it belongs to a row, so it runs over the keys.",
)
def attention_backward_w1(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    P = softmax(c * query @ np.swapaxes(key, -1, -2))
    dV = np.swapaxes(P, -1, -2) @ grad
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - (P * dP).sum(axis=-2, keepdims=True))
    return c * dS @ key, c * np.swapaxes(dS, -1, -2) @ query, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bw-query-scaled-inplace",
    "wrong",
    "query *= c changes the caller's queries.",
)
def attention_backward_w2(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    query *= c
    P = softmax(np.einsum("...td,...sd->...ts", query, key))
    dP = np.einsum("...te,...se->...ts", grad, value)
    dS = P * (dP - np.sum(P * dP, axis=-1, keepdims=True))
    dV = np.einsum("...ts,...te->...se", P, grad)
    dQ = c * np.einsum("...ts,...sd->...td", dS, key)
    dK = np.einsum("...ts,...td->...sd", dS, query)
    return dQ, dK, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bw-no-keepdims",
    "wrong",
    "The sum has lost its last axis, so it is subtracted along the keys instead of along the queries (or does not fit).",
)
def attention_backward_w3(grad, query, key, value):
    c = 1 / np.sqrt(query.shape[-1])
    P = softmax(c * (query @ key.swapaxes(-1, -2)))
    dV = P.swapaxes(-1, -2) @ grad
    dP = grad @ value.swapaxes(-1, -2)
    dS = P * (dP - np.einsum("...ij,...ij->...i", P, dP))
    return c * (dS @ key), c * (dS.swapaxes(-1, -2) @ query), dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bw-order-of-formulas",
    "wrong",
    "The gradients are returned in the order of the formulas, dV first.",
)
def attention_backward_w4(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    flip = lambda a: np.swapaxes(a, -1, -2)
    P = softmax(c * query @ flip(key))
    dV, dP = flip(P) @ grad, grad @ flip(value)
    dS = P * (dP - (P * dP).sum(-1, keepdims=True))
    return dV, c * dS @ key, c * flip(dS) @ query


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bw-dk-from-q-square",
    "wrong",
    "In dK the transpose of dS is missing: with as many keys as queries no error is raised, but the numbers are off.",
)
def attention_backward_w5(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    P = softmax(c * query @ np.swapaxes(key, -1, -2))
    dV = np.swapaxes(P, -1, -2) @ grad
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - (P * dP).sum(-1)[..., None])
    return c * dS @ key, c * dS @ query, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bw-mean",
    "wrong",
    "The plain mean of dP is subtracted, not the average weighted with P.",
)
def attention_backward_w6(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    P = softmax(c * query @ np.swapaxes(key, -1, -2))
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = c * P * (dP - dP.mean(axis=-1, keepdims=True))
    return dS @ key, np.swapaxes(dS, -1, -2) @ query, np.swapaxes(P, -1, -2) @ grad


@answer("scaled_dot_product_attention_backward", "numpy", "bw-r-jacobian", "right")
def attention_backward_r1(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    P = softmax(c * np.einsum("...td,...sd->...ts", query, key))
    S = P.shape[-1]
    jacobian = P[..., :, None] * np.eye(S) - P[..., :, None] * P[..., None, :]  # (..., T, S, S)
    dP = np.einsum("...te,...se->...ts", grad, value)
    dS = c * np.einsum("...tjk,...tk->...tj", jacobian, dP)
    return (
        np.einsum("...ts,...sd->...td", dS, key),
        np.einsum("...ts,...td->...sd", dS, query),
        np.einsum("...ts,...te->...se", P, grad),
    )


# ---------------------------------------------------------------- online_softmax


@answer(
    "online_softmax",
    "numpy",
    "os-quotient-of-exponentials",
    "wrong",
    "exp(m) / exp(m') overflows for large scores and is nan; only exp(m - m') is safe.",
)
def online_softmax_w1(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum) / np.exp(new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return total * fade[..., None] + e @ value, norm * fade + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax", "numpy", "os-total-inplace", "wrong", "total *= and norm *= change the old state of the caller."
)
def online_softmax_w2(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    total *= fade[..., None]
    norm *= fade
    return total + e @ value, norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "os-block-maximum",
    "wrong",
    "The new exponentials are measured against the maximum of their own block, not against the new common one.",
)
def online_softmax_w3(scores, value, total, norm, maximum):
    block = scores.max(axis=-1)
    new_maximum = np.maximum(maximum, block)
    e = np.exp(scores - block[..., np.newaxis])
    fade = np.exp(maximum - new_maximum)
    return fade[..., np.newaxis] * total + e @ value, fade * norm + np.sum(e, axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "os-fade-without-axis",
    "wrong",
    "fade * total multiplies along D_v instead of along the queries (or does not fit).",
)
def online_softmax_w4(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "os-flash-order",
    "wrong",
    "The state is returned as (maximum, norm, total), as in the FlashAttention paper; asked for is (total, norm, maximum).",
)
def online_softmax_w5(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return new_maximum, fade * norm + e.sum(axis=-1), fade[..., None] * total + e @ value


@answer(
    "online_softmax",
    "numpy",
    "os-if-first-block",
    "wrong",
    "'if maximum == -inf' asks a whole array at once: with more than one query that is a ValueError.",
)
def online_softmax_w6(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    e = np.exp(scores - new_maximum[..., None])
    if maximum == -np.inf:
        return e @ value, e.sum(axis=-1), new_maximum
    fade = np.exp(maximum - new_maximum)
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer("online_softmax", "numpy", "os-r-old-as-a-key", "right")
def online_softmax_r1(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    new_norm, new_total = np.exp(maximum - new_maximum) * norm, np.exp(maximum - new_maximum)[..., None] * total
    for j in range(scores.shape[-1]):  # one key after the other
        e = np.exp(scores[..., j] - new_maximum)
        new_norm = new_norm + e
        new_total = new_total + e[..., None] * value[..., j, None, :]
    return new_total, new_norm, new_maximum


# ---------------------------------------------------------------- blocks_mended


@answer(
    "attention_in_blocks",
    "numpy",
    "bm-copy-before-loop",
    "wrong",
    "The copy is made once before the loop, so before stays -inf and every block forgets those before it.",
)
def blocks_mended_w1(query, key, value, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    before = top.copy()
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], 2):
        here = slice(start, start + 2)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "bm-last-block-lost",
    "wrong",
    "Only full blocks are taken: with an odd number of keys the last one is left out.",
)
def blocks_mended_w2(query, key, value, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    size = 2 if key.shape[-2] > 1 else 1
    top, below, above = -np.inf, 0.0, 0.0
    for block in range(key.shape[-2] // size):
        here = slice(block * size, (block + 1) * size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(top - new), np.exp(s - new)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
        top = new
    return above / below


@answer("attention_in_blocks", "numpy", "bm-scale-or", "wrong", "'scale or ...' takes a scale of 0 for none given.")
def blocks_mended_w3(query, key, value, scale=None):
    scale = scale or query.shape[-1] ** -0.5
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], 2):
        here = slice(start, start + 2)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "bm-above-not-faded",
    "wrong",
    "After the rewriting only the sum below is scaled down; the weighted values of earlier blocks keep their old measure.",
)
def blocks_mended_w4(query, key, value, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], 2):
        here = slice(start, start + 2)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        top = np.maximum(before, s.max(axis=-1, keepdims=True))
        e = np.exp(s - top)
        below = np.exp(before - top) * below + e.sum(axis=-1, keepdims=True)
        above = above + e @ value[..., here, :]
    return above / below


@answer("attention_in_blocks", "numpy", "bm-r-one-key-logaddexp", "right")
def blocks_mended_r1(query, key, value, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    log_norm, context = None, None
    for j in range(key.shape[-2]):
        s = scale * np.einsum("...td,...d->...t", query, key[..., j, :])[..., None]  # (..., T, 1)
        v = value[..., j, None, :]  # (..., 1, D_v)
        if log_norm is None:
            log_norm, context = s, np.ones_like(s) * v
            continue
        new = np.logaddexp(log_norm, s)
        context = np.exp(log_norm - new) * context + np.exp(s - new) * v
        log_norm = new
    return context
