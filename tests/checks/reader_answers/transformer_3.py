"""Answers to the exercises of chapter 7, the transformer: a third set, written from the notebook alone."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWERS = []
UNASKED = {"MultiHeadAttention": "need_weights"}  # the argument that this notebook does not ask for


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ---------------------------------------------------------------- stand-ins for attnlib


def split_heads(x, num_heads):
    """(..., T, E) -> (..., H, T, D)"""
    *lead, t, e = x.shape
    return x.reshape(*lead, t, num_heads, e // num_heads).swapaxes(-3, -2)


def merge_heads(x):
    """(..., H, T, D) -> (..., T, E)"""
    *lead, h, t, d = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, t, h * d)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


class Given(nn.Module):
    """The given half of task 2."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def qkv(self, query, key, value):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        return q, k, v


class LibraryAttention(Given):
    """attnlib.torch.MultiHeadAttention, as far as task 3 needs it."""

    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        p = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(p @ v))


# ---------------------------------------------------------------- MultiHeadAttention


@answer("MultiHeadAttention", "torch", "head by head, sum of strips of W^O", "right")
class MhaR1(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        d = q.shape[-1]
        out = self.out_proj.bias
        for h in range(self.num_heads):
            p = torch.softmax(torch.einsum("btd,bsd->bts", q[:, h], k[:, h]) * d**-0.5, dim=2)
            out = out + p @ v[:, h] @ self.out_proj.weight[:, h * d : (h + 1) * d].T
        return out


@answer("MultiHeadAttention", "torch", "heads in the batch", "right")
class MhaR2(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        b, h, t, d = q.shape
        root = d**0.25
        s = torch.bmm((q / root).flatten(0, 1), (k / root).flatten(0, 1).mT)
        p = (s - s.logsumexp(-1, keepdim=True)).exp()
        heads = torch.bmm(p, v.flatten(0, 1)).unflatten(0, (b, h))
        return self.out_proj(torch.cat(heads.unbind(1), dim=-1))


@answer(
    "MultiHeadAttention",
    "torch",
    "divided by the root of H",
    "wrong",
    "q.shape[1] is the number of heads; the scale needs the last dimension, D.",
)
class MhaW2(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / q.shape[1] ** 0.5
        return self.out_proj(merge_heads(scores.softmax(-1) @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "flattened without going back",
    "wrong",
    "The heads are reshaped to (B, T, E) without a transpose before: heads and tokens are mixed up.",
)
class MhaW3(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        heads = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v
        b, h, t, d = heads.shape
        return self.out_proj(heads.contiguous().view(b, t, h * d))


@answer(
    "MultiHeadAttention",
    "torch",
    "heads interleaved",
    "wrong",
    "permute(0, 2, 3, 1) puts number 1 of every head first: the heads should stand side by side, one after the other.",
)
class MhaW4(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        heads = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v
        return self.out_proj(heads.permute(0, 2, 3, 1).reshape(query.shape))


@answer(
    "MultiHeadAttention",
    "torch",
    "dropout on the weights",
    "wrong",
    "Dropout, as in the Annotated Transformer, was not asked for: a fresh module is in training mode and drops weights at random.",
)
class MhaW6(Given):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        p_attn = self.dropout((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1))
        return self.out_proj(merge_heads(p_attn @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "output bias twice",
    "wrong",
    "out_proj adds its bias already; here it is added once more.",
)
class MhaW7(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        o = merge_heads(w @ v)
        return self.out_proj(o) + self.out_proj.bias


@answer(
    "MultiHeadAttention",
    "torch",
    "exp without a maximum",
    "wrong",
    "The softmax is written out without subtracting the maximum: large scores overflow to inf / inf.",
)
class MhaW8(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        e = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
        return self.out_proj(merge_heads(e / e.sum(-1, keepdim=True) @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "weight matrix on the wrong side",
    "wrong",
    "nn.Linear multiplies with the transpose of its weight; here W itself is used, and the shapes do not object.",
)
class MhaW9(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return merge_heads(w @ v) @ self.out_proj.weight + self.out_proj.bias


@answer(
    "MultiHeadAttention",
    "torch",
    "weights kept for plotting, detached too early",
    "wrong",
    "The detached weights are used to go on: queries and keys get no gradient and are never trained.",
)
class MhaW10(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        self.last_weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1).detach()
        return self.out_proj(merge_heads(self.last_weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "T for the keys as well",
    "wrong",
    "The loop over the keys runs to T, the number of queries: with more keys the rest is not seen.",
)
class MhaW11(Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.qkv(query, key, value)
        B, H, T, D = q.shape
        scores = torch.stack([(q * k[:, :, j : j + 1]).sum(-1) for j in range(T)], dim=-1) / D**0.5
        return self.out_proj(merge_heads(torch.softmax(scores, -1) @ v[:, :, :T]))


# ---------------------------------------------------------------- TransformerBlock


class Parts(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = LibraryAttention(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)


@answer("TransformerBlock", "torch", "functional, one sum at the end", "right")
class BlockR1(Parts):
    def forward(self, x):
        delta = self.self_attn(self.norm1(x))
        u = self.linear1(self.norm2(x + delta))
        return torch.stack([x, delta, self.linear2(u * (u > 0))]).sum(0)


@answer("TransformerBlock", "torch", "parts registered in a loop, sublayers as closures", "right")
class BlockR2(nn.Module):
    def __init__(self, E, H, F_):
        super().__init__()
        shapes = {"linear1": (E, F_), "linear2": (F_, E)}
        for n in (2, 1):
            self.add_module(f"norm{n}", nn.LayerNorm(E))
            self.add_module(f"linear{n}", nn.Linear(*shapes[f"linear{n}"]))
        self.add_module("self_attn", LibraryAttention(E, H))

    def forward(self, x):
        bend = lambda u: u.masked_fill(u <= 0, 0.0)
        halves = [
            lambda r: self.self_attn(self.norm1(r)),
            lambda r: self.linear2(bend(self.linear1(self.norm2(r)))),
        ]
        for half in halves:
            x = x + half(x)
        return x


@answer(
    "TransformerBlock",
    "torch",
    "second half adds to the normalised copy",
    "wrong",
    "Y adds to norm2(X') instead of X'.",
)
class BlockW2(Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        h = self.norm2(x)
        return h + self.linear2(F.relu(self.linear1(h)))


@answer(
    "TransformerBlock",
    "torch",
    "in parallel",
    "wrong",
    "The feed-forward layer reads norm2(X), the stream before attention: both parts run side by side.",
)
class BlockW3(Parts):
    def forward(self, x):
        attended = self.self_attn(self.norm1(x))
        fed = self.linear2(F.relu(self.linear1(self.norm2(x))))
        return x + attended + fed


@answer(
    "TransformerBlock",
    "torch",
    "skips from X",
    "wrong",
    "The second plus adds to X, not to X': what attention added is lost.",
)
class BlockW4(Parts):
    def forward(self, x):
        residual = x
        x = residual + self.self_attn(self.norm1(x))
        return residual + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "values from the raw stream",
    "wrong",
    "Only the queries are normalised; keys and values are read from the raw stream.",
)
class BlockW5(Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x), x, x)
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer("TransformerBlock", "torch", "added in place", "wrong", "x += changes the input of the caller.")
class BlockW6(Parts):
    def forward(self, x):
        x += self.self_attn(self.norm1(x))
        x += self.linear2(F.relu(self.linear1(self.norm2(x))))
        return x


@answer(
    "TransformerBlock",
    "torch",
    "norm after the part",
    "wrong",
    "The norm is applied to what the part returns, not to what it reads.",
)
class BlockW7(Parts):
    def forward(self, x):
        x = x + self.norm1(self.self_attn(x))
        return x + self.norm2(self.linear2(F.relu(self.linear1(x))))


@answer(
    "TransformerBlock",
    "torch",
    "Annotated Transformer's LayerNorm",
    "wrong",
    "This norm divides by (unbiased deviation + eps) with eps 1e-6; torch's divides by sqrt(biased variance + 1e-5).",
)
class BlockW8(Parts):
    @staticmethod
    def layer_norm(norm, x, eps=1e-6):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return norm.weight * (x - mean) / (std + eps) + norm.bias

    def forward(self, x):
        x = x + self.self_attn(self.layer_norm(self.norm1, x))
        return x + self.linear2(F.relu(self.linear1(self.layer_norm(self.norm2, x))))


@answer(
    "TransformerBlock",
    "torch",
    "epsilon of BERT",
    "wrong",
    "eps is 1e-12, as in BERT, where 1e-5 is asked for: rows whose numbers are nearly equal come out differently.",
)
class BlockW9(Parts):
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
    "norm2 is norm1",
    "wrong",
    "Both halves use the same norm object, so the weights of norm2 overwrite those of norm1 when they are loaded.",
)
class BlockW12(Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.norm1 = self.norm2 = nn.LayerNorm(embed_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "four times E",
    "wrong",
    "ff_dim is ignored: the feed-forward layer always has 4 E numbers inside.",
)
class BlockW13(Parts):
    def __init__(self, embed_dim, num_heads, ff_dim=None):
        super().__init__(embed_dim, num_heads, 4 * embed_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "one head",
    "wrong",
    "num_heads is not passed on; all parameters have the same shape with one head, so nothing complains.",
)
class BlockW14(Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.self_attn = LibraryAttention(embed_dim, 1)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


# ---------------------------------------------------------------- attention_backward


def _weights(query, key):
    return softmax(query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1]))


@answer("scaled_dot_product_attention_backward", "numpy", "Jacobian of every row", "right")
def back_r1(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    J = P[..., :, None] * np.eye(P.shape[-1]) - P[..., :, None] * P[..., None, :]  # (..., T, S, S)
    dS = np.einsum("...tij,...td,...jd->...ti", J, grad, value)
    dQ = c * np.einsum("...ts,...sd->...td", dS, key)
    dK = c * np.einsum("...ts,...td->...sd", dS, query)
    dV = np.einsum("...ts,...td->...sd", P, grad)
    return dQ, dK, dV


@answer("scaled_dot_product_attention_backward", "numpy", "one query at a time with delta from the context", "right")
def back_r2(grad, query, key, value):
    c = 1 / math.sqrt(query.shape[-1])
    gq, gk, gv = (np.zeros(a.shape) for a in (query, key, value))
    for t in range(query.shape[-2]):
        q, do = query[..., t, :], grad[..., t, :]
        s = c * (key @ q[..., None])[..., 0]  # (..., S)
        p = softmax(s)
        o = (p[..., None] * value).sum(-2)
        delta = (o * do).sum(-1)[..., None]
        ds = p * ((value @ do[..., None])[..., 0] - delta)
        gv += p[..., None] * do[..., None, :]
        gk += c * ds[..., None] * q[..., None, :]
        gq[..., t, :] = c * (ds[..., None] * key).sum(-2)
    return gq, gk, gv


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "plain mean subtracted",
    "wrong",
    "The average in dS has to be weighted by P; here it is the plain mean over the keys.",
)
def back_w1(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - dP.mean(axis=-1, keepdims=True))
    return c * dS @ key, c * np.swapaxes(dS, -1, -2) @ query, np.swapaxes(P, -1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "derivative of the sigmoid",
    "wrong",
    "P (1 - P) dP is only the diagonal of the softmax's Jacobian; the other weights of the row are forgotten.",
)
def back_w2(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dS = P * (1 - P) * (grad @ np.swapaxes(value, -1, -2))
    return c * dS @ key, c * np.swapaxes(dS, -1, -2) @ query, np.swapaxes(P, -1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "scale twice",
    "wrong",
    "c is in dS already and is multiplied in again for dQ and dK.",
)
def back_w4(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = c * P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * (dS @ key), c * (np.swapaxes(dS, -1, -2) @ query), np.swapaxes(P, -1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "T for transposed",
    "wrong",
    ".T turns all dimensions around; with a batch in front the shapes no longer fit.",
)
def back_w6(grad, query, key, value):
    c = 1 / np.sqrt(query.shape[-1])
    S = c * (query @ key.T)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    dV = P.T @ grad
    dP = grad @ value.T
    dS = P * (dP - np.sum(P * dP, axis=-1, keepdims=True))
    return c * dS @ key, c * dS.T @ query, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "weights summed over the batch",
    "wrong",
    "The sum subtracted in dS runs over the whole array instead of over the keys of one row.",
)
def back_w7(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - np.sum(P * dP))
    return c * dS @ key, c * np.swapaxes(dS, -1, -2) @ query, np.swapaxes(P, -1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "dV in the einsum without the batch",
    "wrong",
    "The einsum sums dV over everything in front; with a batch dV has too few dimensions.",
)
def back_w8(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dP = np.einsum("...td,...sd->...ts", grad, value)
    dS = P * (dP - (P * dP).sum(-1, keepdims=True))
    dV = np.tensordot(P, grad, axes=(tuple(range(P.ndim - 1)), tuple(range(P.ndim - 1))))
    return c * dS @ key, c * np.swapaxes(dS, -1, -2) @ query, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "keys scaled in place",
    "wrong",
    "key *= c changes the caller's keys: the gradients are right, the argument is not left as it was.",
)
def back_w9(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    key *= c
    P = softmax(query @ np.swapaxes(key, -1, -2))
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return dS @ key, c * np.swapaxes(dS, -1, -2) @ query, np.swapaxes(P, -1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "dK transposes the query",
    "wrong",
    "dS is not transposed: dK = dS Q is right in its shape only for T = S, and wrong in its numbers.",
)
def back_w10(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * dS @ query, np.swapaxes(P, -1, -2) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "differences from one side",
    "wrong",
    "Differences with a step of 0.001 from one side are no gradients: the error is as large as the step.",
)
def back_w11(grad, query, key, value, step=1e-3):
    arrays = [np.array(a, dtype=float) for a in (query, key, value)]

    def loss():
        return float((grad * (_weights(arrays[0], arrays[1]) @ arrays[2])).sum())

    grads, base = [], loss()
    for a in arrays:
        g = np.zeros_like(a)
        for n in np.ndindex(*a.shape):
            old = a[n]
            a[n] = old + step
            g[n] = (loss() - base) / step
            a[n] = old
        grads.append(g)
    return tuple(grads)


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "gradients typed like the inputs",
    "wrong",
    "The gradients get the dtype of the inputs: for whole numbers as inputs they are cut off to whole numbers.",
)
def back_w12(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = _weights(query, key)
    dP = grad @ np.swapaxes(value, -1, -2)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    grad_query, grad_key, grad_value = np.empty_like(query), np.empty_like(key), np.empty_like(value)
    grad_query[...] = c * dS @ key
    grad_key[...] = c * np.swapaxes(dS, -1, -2) @ query
    grad_value[...] = np.swapaxes(P, -1, -2) @ grad
    return grad_query, grad_key, grad_value


# ---------------------------------------------------------------- online_softmax


@answer("online_softmax", "numpy", "key by key", "right")
def online_r1(scores, value, total, norm, maximum):
    for j in range(scores.shape[-1]):
        s, v = scores[..., j], value[..., j, None, :]
        top = np.maximum(maximum, s)
        still_empty = np.isneginf(top)
        safe = np.where(still_empty, 0.0, top)
        old, new = np.exp(maximum - safe), np.exp(s - safe)
        total = old[..., None] * total + new[..., None] * v
        norm = old * norm + new
        maximum = top
    return total, norm, maximum


@answer("online_softmax", "numpy", "old state as one more key", "right")
def online_r2(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    both = np.concatenate([maximum[..., None], scores], axis=-1)
    e = np.exp(both - new_maximum[..., None])
    fade, e = np.split(e, [1], axis=-1)
    ones = np.ones((*value.shape[:-1], 1))
    new = e @ np.concatenate([value, ones], axis=-1) + fade * np.concatenate([total, norm[..., None]], axis=-1)
    return new[..., :-1], new[..., -1], new_maximum


@answer(
    "online_softmax",
    "numpy",
    "old maximum overwritten too early",
    "wrong",
    "maximum is overwritten before the factor is computed, so the factor is always 1.",
)
def online_w1(scores, value, total, norm, maximum):
    maximum = np.maximum(maximum, scores.max(axis=-1))
    e = np.exp(scores - maximum[..., None])
    rescale = np.exp(maximum - maximum)
    norm = rescale * norm + e.sum(axis=-1)
    total = rescale[..., None] * total + e @ value
    return total, norm, maximum


@answer(
    "online_softmax",
    "numpy",
    "factor without a new axis",
    "wrong",
    "fade (T,) is laid along the width of total, not along its queries.",
)
def online_w2(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "state updated in place",
    "wrong",
    "*= and += change the old total and norm, which should be left as they are.",
)
def online_w3(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    total *= fade[..., None]
    total += e @ value
    norm *= fade
    norm += e.sum(axis=-1)
    return total, norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "divided at every step",
    "wrong",
    "total is divided by norm in every step; the division comes once, at the very end.",
)
def online_w4(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    new_norm = fade * norm + e.sum(axis=-1)
    new_total = ((fade * norm)[..., None] * total + e @ value) / new_norm[..., None]
    return new_total, new_norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "block measured against its own maximum",
    "wrong",
    "The new exponentials are measured against the maximum of the block, not against the new maximum of all.",
)
def online_w5(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "only the maximum of this block",
    "wrong",
    "The maximum of the earlier blocks is forgotten: what comes back is not the largest score so far.",
)
def online_w6(scores, value, total, norm, maximum):
    new_maximum = scores.max(axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        fade = np.exp(maximum - new_maximum)
        e = np.exp(scores - new_maximum[..., None])
        return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "minus infinity replaced by zero",
    "wrong",
    "0 in place of the first -inf: if all scores are below -710, the factor is inf, and inf * 0 is nan.",
)
def online_w7(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    old = np.where(np.isinf(maximum), 0.0, maximum)  # avoid -inf
    fade = np.exp(old - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "value broadcast by hand",
    "wrong",
    "value lacks an axis for the queries: with a batch in front, its sentences are laid over the queries.",
)
def online_w8(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    o = (e[..., None] * value).sum(axis=-2)
    return fade[..., None] * total + o, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "forbidden keys count one",
    "wrong",
    "A score of -inf is replaced by 0 'against nan', so a key that should have no part gets a weight.",
)
def online_w10(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    scores = np.where(np.isfinite(scores), scores, 0.0)
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


# ---------------------------------------------------------------- blocks_mended


@answer("attention_in_blocks", "numpy", "halves merged by recursion", "right")
def blocks_r1(query, key, value, scale=None):
    if scale is None:
        scale = query.shape[-1] ** -0.5

    def state(lo, hi):
        if hi - lo == 1:
            s = scale * np.einsum("...td,...d->...t", query, key[..., lo, :])[..., None]
            return s, np.ones_like(s), np.ones_like(s) * value[..., lo, None, :]
        mid = (lo + hi) // 2
        (m1, l1, o1), (m2, l2, o2) = state(lo, mid), state(mid, hi)
        m = np.maximum(m1, m2)
        a, b = np.exp(m1 - m), np.exp(m2 - m)
        return m, a * l1 + b * l2, a * o1 + b * o2

    _, below, above = state(0, key.shape[-2])
    return above / below


@answer("attention_in_blocks", "numpy", "two passes over the blocks", "right")
def blocks_r2(query, key, value, scale=None, size=3):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    starts = range(0, key.shape[-2], size)
    table = lambda n: scale * (query @ np.swapaxes(key[..., n : n + size, :], -1, -2))
    top = None
    for n in starts:
        here = table(n).max(axis=-1, keepdims=True)
        top = here if top is None else np.where(here > top, here, top)
    below, above = 0.0, 0.0
    for n in starts:
        e = np.exp(table(n) - top)
        below = below + e.sum(axis=-1, keepdims=True)
        above = above + e @ value[..., n : n + size, :]
    return above / below


def _begin(query, value):
    top = np.full((*query.shape[:-1], 1), -np.inf)
    return top, np.zeros_like(top), np.zeros((*query.shape[:-1], value.shape[-1]))


@answer(
    "attention_in_blocks",
    "numpy",
    "copied with a slice",
    "wrong",
    "top[:] is a view in NumPy, not a copy: before still changes together with top.",
)
def blocks_w1(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = _begin(query, value)
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top[:]
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "copied after the update",
    "wrong",
    "The copy is taken after top was updated, so it is the new maximum and fade is 1.",
)
def blocks_w2(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = _begin(query, value)
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
    "keys sorted first",
    "wrong",
    "The keys are sorted by the first query, so that its maximum comes first; the other queries and sentences have theirs elsewhere.",
)
def blocks_w3(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    first = query.reshape(-1, query.shape[-1])[0]
    order = np.argsort(-scale * (key.reshape(-1, *key.shape[-2:])[0] @ first))
    key, value = key[..., order, :], value[..., order, :]
    top, below, above = _begin(query, value)
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "last block dropped",
    "wrong",
    "S // size leaves out an incomplete last block: with an odd number of keys the last one is not seen.",
)
def blocks_w4(query, key, value, scale=None):
    size = min(2, key.shape[-2])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = _begin(query, value)
    for n in range(key.shape[-2] // size):
        k, v = key[..., n * size : (n + 1) * size, :], value[..., n * size : (n + 1) * size, :]
        s = scale * (query @ k.swapaxes(-1, -2))
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(top - new), np.exp(s - new)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ v
        top = new
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "top starts at zero",
    "wrong",
    "The maximum starts at 0: if all scores are far below, every exponential underflows and the result is 0 / 0.",
)
def blocks_w5(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = np.zeros((*query.shape[:-1], 1)), 0.0, 0.0
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        new_top = np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(top - new_top), np.exp(s - new_top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
        top = new_top
    with np.errstate(invalid="ignore", divide="ignore"):
        return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "scale or default",
    "wrong",
    "`scale or ...` takes a scale of 0 for none: equal weights are asked for, and others come out.",
)
def blocks_w6(query, key, value, scale=None, size=2):
    scale = scale or query.shape[-1] ** -0.5
    top, below, above = _begin(query, value)
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
    "divided by the scale",
    "wrong",
    "A given scale is divided by, while the text says that the dot products are multiplied by it.",
)
def blocks_w7(query, key, value, scale=None, size=2):
    scale = math.sqrt(query.shape[-1]) if scale is None else scale
    top, below, above = _begin(query, value)
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = query @ np.swapaxes(key[..., here, :], -1, -2) / scale
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "query scaled in place",
    "wrong",
    "query *= scale changes the argument: the next call with the same queries gets other numbers.",
)
def blocks_w8(query, key, value, scale=None, size=2):
    query *= query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = _begin(query, value)
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = query @ np.swapaxes(key[..., here, :], -1, -2)
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "above as wide as the query",
    "wrong",
    "above is made with the width of the queries; with values of another width the sum raises an error.",
)
def blocks_w10(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros(top.shape)
    above = np.zeros(query.shape)
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below
