"""Answers to the notebook "Exercises: the transformer", as students might write them."""

import math

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


# Stand-ins for what the notebook imports from attnlib.
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def split_heads(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def merge_heads(x):
    return x.transpose(-2, -3).flatten(-2)


class LibraryMultiHead(nn.Module):
    """Stand-in for attnlib.torch.MultiHeadAttention."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key=None, value=None):
        q, k, v = self.heads(query, key, value)
        return self.out_proj(merge_heads(torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v))

    def heads(self, query, key=None, value=None):
        """The lines that the notebook gives in task 2."""
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        return q, k, v


# ---------------------------------------------------------------- MultiHeadAttention


@answer(
    "MultiHeadAttention",
    "torch",
    "divided by the root of the number of heads",
    "wrong",
    "q.shape[1] is the number of heads in (B, H, T, D); the scores are divided by the root of D, the last one.",
)
class MultiHeadW1(LibraryMultiHead):
    def forward(self, query, key=None, value=None):
        q, k, v = self.heads(query, key, value)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[1])
        return self.out_proj(merge_heads(torch.softmax(scores, dim=3) @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "residual inside",
    "wrong",
    "The query is added to the result: the plus sign belongs to the block, not to attention.",
)
class MultiHeadW2(LibraryMultiHead):
    def forward(self, query, key=None, value=None):
        q, k, v = self.heads(query, key, value)
        weights = F.softmax(torch.einsum("bhtd,bhsd->bhts", q, k) * q.size(-1) ** -0.5, dim=-1)
        mixed = merge_heads(torch.einsum("bhts,bhsd->bhtd", weights, v))
        return query + self.out_proj(mixed)


@answer(
    "MultiHeadAttention",
    "torch",
    "causal mask from another course",
    "wrong",
    "A causal mask was copied along: here nothing is masked, and every query may look at every key.",
)
class MultiHeadW3(LibraryMultiHead):
    def forward(self, query, key=None, value=None):
        q, k, v = self.heads(query, key, value)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        allowed = torch.tril(torch.ones(att.shape[-2:], dtype=torch.bool, device=att.device))
        att = F.softmax(att.masked_fill(~allowed, float("-inf")), dim=-1)
        return self.out_proj(merge_heads(att @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "softmax of the data",
    "wrong",
    "scores.data is cut off from the graph: the numbers are right, but no gradient reaches the queries and keys.",
)
class MultiHeadW4(LibraryMultiHead):
    def forward(self, query, key=None, value=None):
        q, k, v = self.heads(query, key, value)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores.data, dim=-1)
        return self.out_proj(merge_heads(weights @ v))


@answer("MultiHeadAttention", "torch", "one baddbmm per head, output strips added", "right")
class MultiHeadR1(LibraryMultiHead):
    def forward(self, query, key=None, value=None):
        q, k, v = self.heads(query, key, value)
        strips = self.out_proj.weight.chunk(self.num_heads, dim=1)
        out = self.out_proj.bias.expand(query.shape)
        for h, strip in enumerate(strips):
            scores = torch.bmm(q[:, h], k[:, h].mT) / strip.shape[1] ** 0.5
            weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
            out = torch.baddbmm(out, torch.bmm(weights, v[:, h]), strip.T.expand(len(q), -1, -1))
        return out


# ---------------------------------------------------------------- TransformerBlock


class _Parts(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = LibraryMultiHead(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)


@answer(
    "TransformerBlock",
    "torch",
    "only the query is normalised",
    "wrong",
    "The queries come from the normalised rows, but keys and values from the raw stream.",
)
class BlockW1(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x), x, x)
        return x + self.linear2(torch.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "the first norm twice",
    "wrong",
    "Both halves use norm1; norm2 is made and loaded, but never asked.",
)
class BlockW2(_Parts):
    def forward(self, x):
        between = x + self.self_attn(self.norm1(x))
        hidden = self.linear1(self.norm1(between)).relu()
        return between + self.linear2(hidden)


@answer(
    "TransformerBlock",
    "torch",
    "epsilon of BERT",
    "wrong",
    "The norms have an epsilon of 1e-12, as in BERT; asked for is torch's own 1e-5, and rows with a small spread show it.",
)
class BlockW3(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-12)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-12)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "adds to the normalised rows",
    "wrong",
    "x is overwritten by its normalised copy, so that attention is added to the copy and not to the stream.",
)
class BlockW4(_Parts):
    def forward(self, x):
        x = self.norm1(x)
        x = x + self.self_attn(x)
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "dropout left in",
    "wrong",
    "A dropout of 0.1 stands behind both parts: a fresh block is in training mode and drops numbers at random.",
)
class BlockW5(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.dropout(self.self_attn(self.norm1(x)))
        return x + self.dropout(self.linear2(F.relu(self.linear1(self.norm2(x)))))


@answer("TransformerBlock", "torch", "norms and bend by hand", "right")
class BlockR1(_Parts):
    @staticmethod
    def scaled(norm, rows):
        centred = rows - rows.mean(dim=-1, keepdim=True)
        return norm.weight * centred / (centred.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt() + norm.bias

    def forward(self, x):
        stream = torch.add(self.self_attn(self.scaled(self.norm1, x)), x)
        wide = self.linear1(self.scaled(self.norm2, stream))
        return torch.add(self.linear2(wide * (wide > 0)), stream)


# ---------------------------------------------------------------- attention_backward


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "average over the queries",
    "wrong",
    "The weighted average is summed along the queries; it belongs to each query and runs over the keys.",
)
def backward_w1(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = softmax(c * query @ key.swapaxes(-1, -2))
    dP = grad @ value.swapaxes(-1, -2)
    dS = P * (dP - (P * dP).sum(axis=-2, keepdims=True))
    return c * dS @ key, c * dS.swapaxes(-1, -2) @ query, P.swapaxes(-1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "scale of the values",
    "wrong",
    "c is taken from the width of the values; it is one over the root of D, the width of queries and keys.",
)
def backward_w2(grad, query, key, value):
    scale = 1 / np.sqrt(value.shape[-1])
    p = softmax(scale * np.einsum("...td,...sd->...ts", query, key))
    dv = np.einsum("...ts,...tv->...sv", p, grad)
    dp = np.einsum("...tv,...sv->...ts", grad, value)
    ds = p * (dp - np.einsum("...ts,...ts->...t", p, dp)[..., None])
    return scale * np.einsum("...ts,...sd->...td", ds, key), scale * np.einsum("...ts,...td->...sd", ds, query), dv


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "plain mean subtracted",
    "wrong",
    "The average of dP has to be weighted by P; here it is the plain mean of the row.",
)
def backward_w3(grad, query, key, value):
    def turned(a):
        return np.swapaxes(a, -1, -2)

    c = 1 / math.sqrt(query.shape[-1])
    weights = softmax(c * (query @ turned(key)))
    grad_weights = grad @ turned(value)
    grad_scores = c * weights * (grad_weights - grad_weights.mean(axis=-1, keepdims=True))
    return grad_scores @ key, turned(grad_scores) @ query, turned(weights) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "scores not turned for the keys",
    "wrong",
    "dK needs the transpose of dS: without it the shapes refuse, unless there are as many queries as keys, and then the numbers are wrong.",
)
def backward_w4(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = softmax(c * query @ key.swapaxes(-1, -2))
    dP = grad @ value.swapaxes(-1, -2)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * (dS @ key), c * (dS @ query), P.swapaxes(-1, -2) @ grad


@answer("scaled_dot_product_attention_backward", "numpy", "average from the context", "right")
def backward_r1(grad, query, key, value):
    scaled = query / math.sqrt(query.shape[-1])
    s = scaled @ np.swapaxes(key, -1, -2)
    top = s.max(axis=-1, keepdims=True)
    p = np.exp(s - top - np.log(np.exp(s - top).sum(axis=-1, keepdims=True)))
    delta = (grad * (p @ value)).sum(axis=-1)  # the weighted average of dP
    ds = p * (grad @ np.swapaxes(value, -1, -2) - delta[..., None])
    return (
        ds @ key / math.sqrt(query.shape[-1]),
        np.swapaxes(ds, -1, -2) @ scaled,
        np.swapaxes(p, -1, -2) @ grad,
    )


# ---------------------------------------------------------------- online_softmax


@answer(
    "online_softmax",
    "numpy",
    "divided after every block",
    "wrong",
    "total is divided by norm after each block; the division comes once, at the very end and outside.",
)
def online_w1(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    new_norm = fade * norm + e.sum(axis=-1)
    new_total = (fade[..., None] * total + e @ value) / new_norm[..., None]
    return new_total, new_norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "the old state changed in place",
    "wrong",
    "total *= … and norm += … write into the arrays of the caller, which were to be left as they are.",
)
def online_w2(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    shrink = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., np.newaxis])
    norm *= shrink
    norm += e.sum(-1)
    total *= shrink[..., np.newaxis]
    total += e @ value
    return total, norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "new block measured against its own maximum",
    "wrong",
    "The exponentials of the new block are measured against the block's own maximum, also where the old one is larger.",
)
def online_w3(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    block = np.exp(scores - scores.max(axis=-1, keepdims=True))
    fade = np.exp(maximum - new_maximum)
    new_norm = fade * norm + block.sum(axis=-1)
    new_total = fade[..., None] * total + block @ value
    return new_total, new_norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "fade laid over the columns of total",
    "wrong",
    "fade has one number per query, and NumPy lines it up with the columns of total: an error, or wrong numbers if T equals D_v.",
)
def online_w4(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - np.expand_dims(new_maximum, -1))
    return fade * total + e @ value, fade * norm + np.sum(e, axis=-1), new_maximum


@answer("online_softmax", "numpy", "the old state as one more key", "right")
def online_r1(scores, value, total, norm, maximum):
    everything = np.concatenate([maximum[..., None], scores], axis=-1)
    new_maximum = everything.max(axis=-1)
    e = np.exp(everything - new_maximum[..., None])
    old, new = e[..., :1], e[..., 1:]
    new_total = old * total + np.einsum("...ts,...sv->...tv", new, value)
    return new_total, old[..., 0] * norm + new.sum(axis=-1), new_maximum


# ---------------------------------------------------------------- blocks_mended


@answer(
    "attention_in_blocks",
    "numpy",
    "whole blocks only",
    "wrong",
    "S // size counts the full blocks: the keys left over behind them are never seen.",
)
def blocks_w1(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for n in range(max(key.shape[-2] // size, 1)):
        here = slice(n * size, (n + 1) * size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(top - new), np.exp(s - new)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
        top = new
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "scale or default",
    "wrong",
    "`scale or …` takes 0 for no scale at all: with scale=0 all keys have the same weight, and None alone means the default.",
)
def blocks_w2(query, key, value, scale=None, size=2):
    scale = scale or 1 / math.sqrt(query.shape[-1])
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below, above = np.zeros_like(top), np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "copied one line too late",
    "wrong",
    "The copy is taken after np.maximum has written into top, so before and top are the same again and fade is always 1.",
)
def blocks_w3(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        before = top.copy()
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "keys in blocks of every sentence's first axis",
    "wrong",
    "key[start:…] cuts the first axis, which is the keys only without a batch: with one, sentences are cut apart.",
)
def blocks_w4(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = -np.inf, 0.0, 0.0
    for start in range(0, len(key), size):
        k, v = key[start : start + size], value[start : start + size]
        s = scale * (query @ np.swapaxes(k, -1, -2))
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        e = np.exp(s - top)
        below = np.exp(before - top) * below + e.sum(axis=-1, keepdims=True)
        above = np.exp(before - top) * above + e @ v
    return above / below


@answer("attention_in_blocks", "numpy", "first the log of the sum, then the values", "right")
def blocks_r1(query, key, value, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    size, S = 3, key.shape[-2]

    def blocks():
        for start in range(0, S, size):
            here = slice(start, min(start + size, S))
            yield here, scale * np.einsum("...td,...sd->...ts", query, key[..., here, :])

    log_sum = -np.inf
    for _, s in blocks():
        log_sum = np.logaddexp(log_sum, np.logaddexp.reduce(s, axis=-1))
    return sum(np.exp(s - log_sum[..., None]) @ value[..., here, :] for here, s in blocks())
