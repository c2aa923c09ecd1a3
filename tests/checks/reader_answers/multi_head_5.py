"""Answers to the notebook "Exercises: many heads", as students might write them."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# Stand-ins for what the notebook imports from attnlib.
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def np_split(x, num_heads):
    *leading, T, width = x.shape
    return x.reshape(*leading, T, num_heads, width // num_heads).swapaxes(-2, -3)


def np_merge(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, H * D)


def t_split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def t_merge(x):
    return x.transpose(-2, -3).flatten(-2)


# ---------------------------------------------------------------- split_heads


@answer(
    "split_heads",
    "numpy",
    "head index runs fastest",
    "wrong",
    "The columns are dealt out like cards: head h gets columns h, h+H, h+2H … instead of a band of D neighbours.",
)
def split_heads_w1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    pieces = x.reshape(*leading, T, D, num_heads)
    return np.moveaxis(pieces, -1, -3)


@answer(
    "split_heads",
    "numpy",
    "heads in front of the batch",
    "wrong",
    "moveaxis to 0 brings the heads to the very front, before the batch, and not just before the words.",
)
def split_heads_w2(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.moveaxis(x.reshape(*leading, T, num_heads, D), -2, 0)


@answer(
    "split_heads",
    "numpy",
    "np.split into D pieces",
    "wrong",
    "np.split is told the number of pieces, which is num_heads and not D; it fits only if H equals D.",
)
def split_heads_w3(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.stack(np.split(x, D, axis=-1), axis=-3)


@answer(
    "split_heads",
    "numpy",
    "transposed, then reshaped to H T D",
    "wrong",
    "After the transpose the last axis holds words, so the reshape to (H, T, D) draws borders through the wrong numbers.",
)
def split_heads_w4(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    columns = x.swapaxes(-1, -2)  # (..., width, T)
    return columns.reshape(*leading, num_heads, T, D)


@answer(
    "split_heads",
    "numpy",
    "integer buffer",
    "wrong",
    "The buffer has whole numbers, as the numbered table had: everything after the decimal point is cut off.",
)
def split_heads_w5(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = np.zeros((*leading, num_heads, T, D), dtype=int)
    for h in range(num_heads):
        heads[..., h, :, :] = x[..., h * D : h * D + D]
    return heads


@answer("split_heads", "numpy", "recursion", "right")
def split_heads_r1(x, num_heads):
    if num_heads == 1:
        return x[..., None, :, :]
    D = x.shape[-1] // num_heads
    first, rest = x[..., :D], x[..., D:]
    return np.concatenate([first[..., None, :, :], split_heads_r1(rest, num_heads - 1)], axis=-3)


# ---------------------------------------------------------------- merge_heads


@answer(
    "merge_heads",
    "numpy",
    "head count from the first axis",
    "wrong",
    "x.shape[0] is the number of heads only if nothing stands in front; with a batch it is the batch size.",
)
def merge_heads_w1(x):
    return np.concatenate([x[..., h, :, :] for h in range(x.shape[0])], axis=-1)


@answer(
    "merge_heads",
    "numpy",
    "heads moved behind the width",
    "wrong",
    "With the heads moved to the last place the numbers of the heads alternate instead of standing side by side.",
)
def merge_heads_w2(x):
    *leading, H, T, D = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "all but the words flattened",
    "wrong",
    "reshape(T, -1) throws the leading dimensions into the rows: a batch comes back as one table.",
)
def merge_heads_w3(x):
    T = x.shape[-2]
    side_by_side = np.swapaxes(x, -3, -2)
    return side_by_side.reshape(T, -1)


@answer(
    "merge_heads",
    "numpy",
    "exactly one batch dimension",
    "wrong",
    "Unpacking B, H, T, D needs exactly four dimensions: one sentence alone or two leading dimensions raise a ValueError.",
)
def merge_heads_w4(x):
    B, H, T, D = x.shape
    out = np.empty((B, T, H * D), dtype=x.dtype)
    for b in range(B):
        for h in range(H):
            out[b, :, h * D : (h + 1) * D] = x[b, h]
    return out


@answer("merge_heads", "numpy", "moveaxis and concatenate over the first axis", "right")
def merge_heads_r1(x):
    return np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1)


# ---------------------------------------------------------------- multi_head_attention


@answer(
    "multi_head_attention",
    "numpy",
    "scale of the values' width",
    "wrong",
    "The scores sum over the D products of queries and keys; here they are divided by the root of the values' width.",
)
def mha_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = w_v.shape[-1] // num_heads
    q, k, v = (np_split(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(np.einsum("...td,...sd->...ts", q, k) / D**0.5)
    return np_merge(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "values cut in steps of D",
    "wrong",
    "A head's values have the width D_v; cutting them with the D of the queries takes the wrong columns when the two differ.",
)
def mha_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = w_q.shape[1] // num_heads
    found = []
    for h in range(num_heads):
        band = slice(h * D, (h + 1) * D)
        q, k, v = query @ w_q[:, band], key @ w_k[:, band], value @ w_v[:, band]
        found.append(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(D)) @ v)
    return np.concatenate(found, axis=-1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mended only queries and keys",
    "wrong",
    "w_q and w_k are cut into columns now, but w_v is still cut by a bare reshape, into rows.",
)
def mha_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ w_v.reshape(num_heads, w_v.shape[0], -1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return ((softmax(scores) @ v) @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended the bands too",
    "wrong",
    "The line for w_o was right: its rows belong to the heads band by band. Treated like the others it deals the rows out in turn.",
)
def mha_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.stack(np.split(w, num_heads, axis=1))

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    bands = w_o.reshape(-1, num_heads, w_o.shape[-1]).swapaxes(0, 1)
    return ((softmax(scores) @ v) @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "heads added over axis 0",
    "wrong",
    "axis=0 is the heads only for a single sentence; with a batch in front the sentences are added up instead.",
)
def mha_w5(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).transpose(1, 0, 2)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return np.sum((weights @ v) @ bands, axis=0)


@answer(
    "multi_head_attention",
    "numpy",
    "softmax of the transposed scores",
    "wrong",
    "The scores are made with the keys as rows, so the softmax along the last axis runs over the queries; turning it afterwards is too late.",
)
def mha_w6(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = np_split(query @ w_q, num_heads), np_split(key @ w_k, num_heads), np_split(value @ w_v, num_heads)
    scores = k @ q.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    weights = softmax(scores).swapaxes(-1, -2)
    return np_merge(weights @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "sum kept in a buffer of the query's shape",
    "wrong",
    "The result has the width E_out of w_o, not that of the query: the in-place sum cannot be broadcast when they differ.",
)
def mha_w7(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D, D_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    out = np.zeros_like(query)
    for h in range(num_heads):
        q = query @ w_q[:, h * D : (h + 1) * D]
        k = key @ w_k[:, h * D : (h + 1) * D]
        v = value @ w_v[:, h * D_v : (h + 1) * D_v]
        out += softmax(q @ np.swapaxes(k, -1, -2) / D**0.5) @ v @ w_o[h * D_v : (h + 1) * D_v]
    return out


@answer("multi_head_attention", "numpy", "one einsum per step, matrices in three dimensions", "right")
def mha_r1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1)

    q = np.einsum("...te,ehd->...thd", query, cut(w_q))
    k = np.einsum("...se,ehd->...shd", key, cut(w_k))
    v = np.einsum("...se,ehd->...shd", value, cut(w_v))
    s = np.einsum("...thd,...shd->...hts", q, k) * q.shape[-1] ** -0.5
    s = np.exp(s - s.max(-1, keepdims=True))
    s = s / s.sum(-1, keepdims=True)
    found = np.einsum("...hts,...shd->...thd", s, v)
    return np.einsum("...thd,hdo->...to", found, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer("multi_head_attention", "numpy", "one matrix for q and k, one for v and o", "right")
def mha_r2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    total = 0.0
    for a, b, c, d in zip(
        np.split(w_q, num_heads, axis=1),
        np.split(w_k, num_heads, axis=1),
        np.split(w_v, num_heads, axis=1),
        np.split(w_o, num_heads, axis=0),
    ):
        compare = a @ b.T / math.sqrt(a.shape[1])  # (E, E_k)
        weights = softmax(query @ compare @ np.swapaxes(key, -1, -2))
        total = total + weights @ (value @ (c @ d))
    return total


# ---------------------------------------------------------------- MultiHeadAttention


class _Layers(nn.Module):
    """The __init__ that the notebook gives."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)


@answer(
    "MultiHeadAttention",
    "torch",
    "weights averaged over the heads",
    "wrong",
    "The weights come back averaged over the heads, as torch's own module gives them; asked for is one table per head.",
)
class MultiHeadW1(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = t_split(self.q_proj(query), self.num_heads)
        k = t_split(self.k_proj(key), self.num_heads)
        v = t_split(self.v_proj(value), self.num_heads)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        out = self.out_proj(t_merge(weights @ v))
        return (out, weights.mean(dim=1)) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "missing value becomes the query",
    "wrong",
    "Without a value the key is the value; here it is the query, which fails or goes wrong when a key is given.",
)
class MultiHeadW2(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = query
        heads = [
            t_split(layer(x), self.num_heads)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        ]
        q, k, v = heads
        weights = F.softmax(torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(t_merge(weights @ v))
        if need_weights:
            return out, weights
        return out


@answer(
    "MultiHeadAttention",
    "torch",
    "the power binds tighter",
    "wrong",
    "embed_dim // num_heads ** -0.5 is computed as embed_dim // (num_heads ** -0.5): not one over the root of D.",
)
class MultiHeadW3(_Layers):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.scale = embed_dim // num_heads**-0.5

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (t_split(p, self.num_heads) for p in (self.q_proj(query), self.k_proj(key), self.v_proj(value)))
        weights = torch.softmax(self.scale * (q @ k.transpose(-1, -2)), dim=-1)
        out = self.out_proj(t_merge(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "keys viewed with the queries' length",
    "wrong",
    "The keys and values are cut with T, the number of queries: when S differs, view raises an error.",
)
class MultiHeadW4(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        H, D = self.num_heads, E // self.num_heads
        q = self.q_proj(query).view(B, T, H, D).transpose(1, 2)
        k = self.k_proj(key).view(B, T, H, D).transpose(1, 2)
        v = self.v_proj(value).view(B, T, H, D).transpose(1, 2)
        att = (q @ k.transpose(-2, -1) / math.sqrt(D)).softmax(dim=-1)
        y = self.out_proj((att @ v).transpose(1, 2).reshape(B, T, E))
        return (y, att) if need_weights else y


@answer(
    "MultiHeadAttention",
    "torch",
    "no output projection beside the weights",
    "wrong",
    "When the weights are asked for, the merged heads are returned before they went through out_proj.",
)
class MultiHeadW5(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = t_split(self.q_proj(query), self.num_heads)
        k = t_split(self.k_proj(key), self.num_heads)
        v = t_split(self.v_proj(value), self.num_heads)
        weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5, dim=-1)
        merged = t_merge(torch.matmul(weights, v))
        if need_weights:
            return merged, weights
        return self.out_proj(merged)


@answer(
    "MultiHeadAttention",
    "torch",
    "weights made under no_grad",
    "wrong",
    "The weights are computed without gradients, so that nothing flows back to the queries and keys and their layers.",
)
class MultiHeadW6(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        with torch.no_grad():
            q = t_split(self.q_proj(query), self.num_heads)
            k = t_split(self.k_proj(key), self.num_heads)
            weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(t_merge(weights @ t_split(self.v_proj(value), self.num_heads)))
        return (out, weights) if need_weights else out


@answer("MultiHeadAttention", "torch", "strips of the weights, head after head", "right")
class MultiHeadR1(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        D = query.shape[-1] // self.num_heads
        out, tables = self.out_proj.bias, []
        for h in range(self.num_heads):
            strip = slice(h * D, (h + 1) * D)
            q, k, v = (
                x @ layer.weight[strip].T + layer.bias[strip]
                for x, layer in ((query, self.q_proj), (key, self.k_proj), (value, self.v_proj))
            )
            tables.append(torch.softmax((q / math.sqrt(D)) @ k.mT, dim=-1))
            out = out + tables[-1] @ v @ self.out_proj.weight[:, strip].T
        return (out, torch.stack(tables, dim=1)) if need_weights else out
