"""Still more answers to the notebook "multi-head attention", by other readers."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWERS = []


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
    """Stand-in: right, for arrays and tensors."""
    *leading, T, width = x.shape
    return x.reshape(*leading, T, num_heads, width // num_heads).swapaxes(-2, -3)


def merge_heads(x):
    """Stand-in: right, for arrays and tensors."""
    *leading, H, T, D = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, H * D)


# ---------------------------------------------------------------- split_heads


@answer(
    "split_heads",
    "numpy",
    "one reshape for all",
    "wrong",
    "A single reshape draws new borders: a head gets whole words instead of its columns of every word.",
)
def split_heads_w1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.reshape(x, tuple(leading) + (num_heads, T, D))


@answer(
    "split_heads",
    "numpy",
    "every H-th column",
    "wrong",
    "Head h gets the columns h, h + H, and so on, instead of D neighbours.",
)
def split_heads_w2(x, num_heads):
    *leading, T, width = x.shape
    heads = [x[..., h::num_heads] for h in range(num_heads)]
    return np.stack(heads, axis=-3)


@answer(
    "split_heads",
    "numpy",
    "new axis always in front",
    "wrong",
    "np.stack puts the heads before the batch: right without a batch only.",
)
def split_heads_w3(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.stack([x[..., h * D : (h + 1) * D] for h in range(num_heads)])


@answer(
    "split_heads",
    "numpy",
    "axes 1 and 2 swapped",
    "wrong",
    "Axes 1 and 2 are words and heads only with exactly one dimension in front.",
)
def split_heads_w4(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D).swapaxes(1, 2)


@answer(
    "split_heads",
    "numpy",
    "the shape of the argument is set",
    "wrong",
    "x.shape = ... cuts the caller's own array, which has another shape after the call.",
)
def split_heads_w5(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    x.shape = (*leading, T, num_heads, D)
    return np.moveaxis(x, -2, -3)


@answer(
    "split_heads",
    "numpy",
    "squeezed",
    "wrong",
    "squeeze removes every axis of length 1, also that of a single head, a single word or a batch of one.",
)
def split_heads_w6(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    parts = [x[..., None, :, i : i + D] for i in range(0, width, D)]
    return np.concatenate(parts, axis=-3).squeeze()


@answer(
    "split_heads",
    "numpy",
    "D pieces instead of H",
    "wrong",
    "np.split is told to make D pieces; there have to be H pieces of width D.",
)
def split_heads_w7(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.stack(np.split(x, D, axis=-1), axis=-3)


@answer(
    "split_heads",
    "numpy",
    "table of whole numbers",
    "wrong",
    "The heads are made for whole numbers, so that everything behind the point is lost.",
)
def split_heads_w8(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = np.zeros((*leading, num_heads, T, D), dtype=int)
    for c in range(width):
        heads[..., c // D, :, c % D] = x[..., c]
    return heads


@answer(
    "split_heads",
    "numpy",
    "batch flattened to one axis",
    "wrong",
    "All that stands in front becomes one axis, which is wrong with two or none.",
)
def split_heads_w9(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    x = x.reshape(-1, T, num_heads, D)
    return x.transpose(0, 2, 1, 3)


@answer(
    "split_heads",
    "numpy",
    "head and component swapped",
    "wrong",
    "The wrong two axes are swapped (head and component), and the reshape then hides that the words never changed places.",
)
def split_heads_w10(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    cut = x.reshape(*leading, T, num_heads, D)
    return np.swapaxes(cut, -1, -2).reshape(*leading, num_heads, T, D)


@answer("split_heads", "numpy", "one fancy index", "right")
def split_heads_r1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    columns = np.arange(width).reshape(num_heads, 1, D)  # (H, 1, D)
    rows = np.arange(T)[:, None]  # (T, 1)
    return x[..., rows, columns]


@answer("split_heads", "numpy", "reshape of the transposed table", "right")
def split_heads_r2(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    xt = np.swapaxes(x, -1, -2)  # (..., H*D, T): the columns lie one below the other
    return np.swapaxes(xt.reshape(*leading, num_heads, D, T), -1, -2)


# ---------------------------------------------------------------- merge_heads


@answer(
    "merge_heads",
    "numpy",
    "reshape without a swap",
    "wrong",
    "The words of a head are put side by side, instead of the heads of a word.",
)
def merge_heads_w1(x):
    *leading, H, T, D = x.shape
    return x.reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "concatenate over the first axis",
    "wrong",
    "The pieces are those of the first axis: with a batch the sentences are put side by side, not the heads.",
)
def merge_heads_w2(x):
    return np.concatenate(list(x), axis=-1)


@answer(
    "merge_heads",
    "numpy",
    "interleaved",
    "wrong",
    "The heads go behind the components, so that column d*H + h instead of h*D + d belongs to head h.",
)
def merge_heads_w3(x):
    *leading, H, T, D = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "names of the axes mixed up",
    "wrong",
    "The shape of the argument is read as if the words stood before the heads, so the result has a row for each head.",
)
def merge_heads_w4(x):
    *leading, T, H, D = x.shape
    y = x.swapaxes(-3, -2)
    return y.reshape(*leading, T, H * D)


@answer(
    "merge_heads", "numpy", "three axes only", "wrong", "transpose(1, 0, 2) fits three axes; with a batch it raises."
)
def merge_heads_w5(x):
    H, T, D = x.shape[-3:]
    return x.transpose(1, 0, 2).reshape(*x.shape[:-3], T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "heads below one another",
    "wrong",
    "The heads are joined along the words instead of along the width.",
)
def merge_heads_w6(x):
    H = x.shape[-3]
    return np.concatenate([x[..., h, :, :] for h in range(H)], axis=-2)


@answer(
    "merge_heads",
    "numpy",
    "last head first",
    "wrong",
    "Each head is put before those that are there already, so the order is reversed.",
)
def merge_heads_w7(x):
    merged = x[..., 0, :, :]
    for h in range(1, x.shape[-3]):
        merged = np.concatenate([x[..., h, :, :], merged], axis=-1)
    return merged


@answer("merge_heads", "numpy", "batch lost in minus one", "wrong", "reshape(T, -1) takes the batch into the width.")
def merge_heads_w8(x):
    T = x.shape[-2]
    return np.swapaxes(x, -2, -3).reshape(T, -1)


@answer("merge_heads", "numpy", "filled in column by column", "right")
def merge_heads_r1(x):
    *leading, H, T, D = x.shape
    y = np.empty([*leading, T, H * D], dtype=x.dtype)
    for h in range(H):
        for d in range(D):
            y[..., h * D + d] = x[..., h, :, d]
    return y


@answer("merge_heads", "numpy", "split along the heads, joined along the width", "right")
def merge_heads_r2(x):
    pieces = np.split(x, x.shape[-3], axis=-3)  # each (..., 1, T, D)
    return np.concatenate(pieces, axis=-1).squeeze(axis=-3)


# ---------------------------------------------------------------- multi_head_attention, task 5


@answer(
    "multi_head_attention",
    "numpy",
    "root of the width of the words",
    "wrong",
    "A score of one head sums over D products, but the root is taken of the width E of the query.",
)
def mha_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    return merge_heads(softmax(scores) @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "root of all heads together",
    "wrong",
    "The root is taken before the split, of H * D instead of D.",
)
def mha_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = query @ w_q / np.sqrt(w_q.shape[-1])
    q, k, v = split_heads(q, num_heads), split_heads(key @ w_k, num_heads), split_heads(value @ w_v, num_heads)
    alpha = softmax(np.einsum("...td,...sd->...ts", q, k))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "without the last matrix",
    "wrong",
    "The merged heads are returned as they are: w_o is never used.",
)
def mha_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (
        split_heads(query @ w_q, num_heads),
        split_heads(key @ w_k, num_heads),
        split_heads(value @ w_v, num_heads),
    )
    heads = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v
    return merge_heads(heads)


@answer(
    "multi_head_attention",
    "numpy",
    "root of the width of a value",
    "wrong",
    "The root is taken of D_v, the width of a value in a head, which may differ from D.",
)
def mha_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def attend(q, k, v):
        return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(v.shape[-1])) @ v

    q, k, v = (
        split_heads(query @ w_q, num_heads),
        split_heads(key @ w_k, num_heads),
        split_heads(value @ w_v, num_heads),
    )
    return merge_heads(attend(q, k, v)) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "one band for all three",
    "wrong",
    "The columns of the values are cut with the D of the queries; D_v may be another.",
)
def mha_w5(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = w_q.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        band = slice(h * D, (h + 1) * D)
        q, k, v = query @ w_q[:, band], key @ w_k[:, band], value @ w_v[:, band]
        heads.append(softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D)) @ v)
    return np.concatenate(heads, axis=-1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "values from the keys",
    "wrong",
    "w_v is applied to the key, as in self-attention where both are the same; value is never used.",
)
def mha_w6(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = split_heads(query @ w_q, num_heads)
    k, v = split_heads(key @ w_k, num_heads), split_heads(key @ w_v, num_heads)
    d = q.shape[-1]
    return merge_heads(softmax(q @ k.swapaxes(-2, -1) / d**0.5) @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "output matrix turned, as in torch",
    "wrong",
    "w_o is (H*D_v, E_out) here and meets the heads as it is; the transpose belongs to torch's layers.",
)
def mha_w7(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (
        split_heads(query @ w_q, num_heads),
        split_heads(key @ w_k, num_heads),
        split_heads(value @ w_v, num_heads),
    )
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return merge_heads(heads) @ w_o.T


@answer(
    "multi_head_attention",
    "numpy",
    "split before the projection",
    "wrong",
    "The words are cut before they are projected, so that head h sees its slice of the word alone.",
)
def mha_w8(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def project(x, w):
        E, out = w.shape
        e, d = E // num_heads, out // num_heads
        return np.stack(
            [x[..., h * e : (h + 1) * e] @ w[h * e : (h + 1) * e, h * d : (h + 1) * d] for h in range(num_heads)],
            axis=-3,
        )

    q, k, v = project(query, w_q), project(key, w_k), project(value, w_v)
    return merge_heads(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "scale folded into w_q in place",
    "wrong",
    "w_q /= ... changes the matrix of the caller, so that the next call is scaled twice.",
)
def mha_w9(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    w_q /= np.sqrt(w_q.shape[-1] / num_heads)
    q, k, v = (
        split_heads(query @ w_q, num_heads),
        split_heads(key @ w_k, num_heads),
        split_heads(value @ w_v, num_heads),
    )
    return merge_heads(softmax(q @ k.swapaxes(-1, -2)) @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "loop that keeps the last head",
    "wrong",
    "In the second loop v is still that of the last head: all heads average the values of head H - 1.",
)
def mha_w10(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D, D_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    weights, heads = [], []
    for h in range(num_heads):
        q = query @ w_q[:, h * D : h * D + D]
        k = key @ w_k[:, h * D : h * D + D]
        v = value @ w_v[:, h * D_v : h * D_v + D_v]
        weights.append(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(D)))
    for alpha in weights:
        heads.append(alpha @ v)
    return np.concatenate(heads, axis=-1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "T used for the keys too",
    "wrong",
    "Keys and values are cut as if there were as many as queries; S may differ from T.",
)
def mha_w11(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    *leading, T, _ = query.shape

    def heads_of(y):
        return y.reshape(*leading, T, num_heads, -1).swapaxes(-2, -3)

    q, k, v = heads_of(query @ w_q), heads_of(key @ w_k), heads_of(value @ w_v)
    out = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return out.swapaxes(-2, -3).reshape(*leading, T, -1) @ w_o


# ---------------------------------------------------------------- multi_head_attention, task 7


@answer(
    "multi_head_attention",
    "numpy",
    "mended: the bands as well",
    "wrong",
    "Not only the first three matrices but also w_o is cut into columns; its bands were rows, and right.",
)
def mended_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    heads = softmax(scores) @ v
    bands = w_o.reshape(-1, num_heads, w_o.shape[-1]).swapaxes(0, 1)
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended: every H-th column",
    "wrong",
    "The axes are in order now, but head h gets every H-th column instead of the columns hD to hD + D - 1.",
)
def mended_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], -1, num_heads).transpose(2, 0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (softmax(scores) @ v @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended: mean of the heads",
    "wrong",
    "The heads are to be added, each through its band; the mean is too small by the number of heads.",
)
def mended_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.stack(np.split(w, num_heads, axis=1))

    q, k, v = (x[..., None, :, :] @ cut(w) for x, w in zip((query, key, value), (w_q, w_k, w_v)))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    bands = np.stack(np.split(w_o, num_heads, axis=0))
    return (softmax(scores) @ v @ bands).mean(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended: only queries and keys",
    "wrong",
    "w_v is still cut by the single reshape, so that the heads average the wrong values.",
)
def mended_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).transpose(1, 0, 2)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ w_v.reshape(num_heads, w_v.shape[0], -1)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended: sum over the first axis",
    "wrong",
    "The first axis is that of the heads only without a batch; with one, the sentences are added up.",
)
def mended_w5(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.array(np.hsplit(w, num_heads))

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=0)


@answer(
    "multi_head_attention",
    "numpy",
    "mended: one width for all",
    "wrong",
    "All matrices are cut with the width of the query; E_k and E_v may be others.",
)
def mended_w6(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    E = query.shape[-1]

    def cut(w):
        return w.reshape(E, num_heads, -1).transpose(1, 0, 2)

    q, k, v = query[..., None, :, :] @ cut(w_q), key[..., None, :, :] @ cut(w_k), value[..., None, :, :] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return (heads @ w_o.reshape(num_heads, -1, w_o.shape[-1])).sum(axis=-3)


@answer("multi_head_attention", "numpy", "one einsum with named axes", "right")
def mha_r1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    H, D = num_heads, w_q.shape[1] // num_heads
    D_v = w_v.shape[1] // H
    q = np.einsum("...te,ehd->...htd", query, w_q.reshape(-1, H, D))
    k = np.einsum("...se,ehd->...hsd", key, w_k.reshape(-1, H, D))
    v = np.einsum("...se,ehv->...hsv", value, w_v.reshape(-1, H, D_v))
    alpha = softmax(np.einsum("...htd,...hsd->...hts", q, k) * D**-0.5)
    return np.einsum("...hts,...hsv,hvo->...to", alpha, v, w_o.reshape(H, D_v, -1), optimize=True)


@answer("multi_head_attention", "numpy", "products of matrices multiplied in advance", "right")
def mha_r2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def bands(w, axis):
        return np.split(w, num_heads, axis=axis)

    out = 0
    for a, b, c, o in zip(bands(w_q, 1), bands(w_k, 1), bands(w_v, 1), bands(w_o, 0)):
        scores = query @ (a @ b.T) @ np.swapaxes(key, -1, -2)  # one matrix (E, E_k) for queries and keys
        out = out + softmax(scores / np.sqrt(a.shape[1])) @ (value @ (c @ o))
    return out


# ---------------------------------------------------------------- MultiHeadAttention


class _Base(nn.Module):
    """The part that the notebook gives; the answers below fill in forward."""

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
    "The weights are the mean of all heads, as torch's module gives them; one table for each head was asked for.",
)
class MultiHeadAttentionW1(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            split_heads(p(x), self.num_heads)
            for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        w = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        out = self.out_proj(merge_heads(w @ v))
        return (out, w.mean(dim=1)) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "root of embed_dim",
    "wrong",
    "The root is taken of the whole width E instead of E / H.",
)
class MultiHeadAttentionW2(_Base):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.scale = embed_dim**-0.5

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query) * self.scale, self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        w = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
        out = self.out_proj(merge_heads(w @ v))
        if need_weights:
            return out, w
        return out


@answer(
    "MultiHeadAttention",
    "torch",
    "keys cut with T",
    "wrong",
    "The view of keys and values uses the number of queries: with other lengths it raises.",
)
class MultiHeadAttentionW3(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        H, D = self.num_heads, E // self.num_heads
        q = self.q_proj(query).view(B, T, H, D).transpose(1, 2)
        k = self.k_proj(key).view(B, T, H, D).transpose(1, 2)
        v = self.v_proj(value).view(B, T, H, D).transpose(1, 2)
        w = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(D), dim=-1)
        out = self.out_proj((w @ v).transpose(1, 2).contiguous().view(B, T, E))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "merged by view alone",
    "wrong",
    "The heads are not swapped back before the view, so that words and heads are mixed up.",
)
class MultiHeadAttentionW4(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        H = self.num_heads
        q, k, v = (
            split_heads(self.q_proj(query), H),
            split_heads(self.k_proj(key), H),
            split_heads(self.v_proj(value), H),
        )
        w = torch.softmax(torch.einsum("bhtd,bhsd->bhts", q, k) / q.shape[-1] ** 0.5, dim=-1)
        heads = torch.matmul(w, v).contiguous()
        out = self.out_proj(heads.view(query.shape))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "softmax over the heads",
    "wrong",
    "dim=1 is the axis of the heads: the weights of one query do not sum to 1 over the keys.",
)
class MultiHeadAttentionW5(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        H = self.num_heads
        q, k, v = (
            split_heads(self.q_proj(query), H),
            split_heads(self.k_proj(key), H),
            split_heads(self.v_proj(value), H),
        )
        w = F.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=1)
        out = self.out_proj(merge_heads(w @ v))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "memory of the first call",
    "wrong",
    "Keys and values of the first call are kept and used for every later call.",
)
class MultiHeadAttentionW6(_Base):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.k = self.v = None

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        if self.k is None:
            self.k = split_heads(self.k_proj(key), self.num_heads)
            self.v = split_heads(self.v_proj(value), self.num_heads)
        w = torch.softmax(q @ self.k.mT * q.shape[-1] ** -0.5, dim=-1)
        out = self.out_proj(merge_heads(w @ self.v))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "scores returned as weights",
    "wrong",
    "The second result are the scores before the softmax, not the weights.",
)
class MultiHeadAttentionW7(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        attn = q @ k.mT / math.sqrt(k.shape[-1])
        out = self.out_proj(merge_heads(attn.softmax(dim=-1) @ v))
        if need_weights:
            return out, attn
        return out


@answer(
    "MultiHeadAttention",
    "torch",
    "layers without biases",
    "wrong",
    "The layers are made without biases, though each has one.",
)
class MultiHeadAttentionW8(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim, bias=False))

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        w = (q @ k.mT / math.sqrt(k.shape[-1])).softmax(dim=-1)
        out = self.out_proj(merge_heads(w @ v))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "missing value is the query",
    "wrong",
    "Without a value the key is the value, but here it is the query: attend(x, memory) goes wrong.",
)
class MultiHeadAttentionW9(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        if value is None:
            value = query
        if key is None:
            key = query
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        w = torch.softmax(q @ k.mT * k.shape[-1] ** -0.5, dim=-1)
        out = self.out_proj(merge_heads(w @ v))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "weights without gradient",
    "wrong",
    "The weights are made under no_grad, so that query, key and their layers get no gradients.",
)
class MultiHeadAttentionW10(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        with torch.no_grad():
            q = split_heads(self.q_proj(query), self.num_heads)
            k = split_heads(self.k_proj(key), self.num_heads)
            w = torch.softmax(q @ k.mT * k.shape[-1] ** -0.5, dim=-1)
        v = split_heads(self.v_proj(value), self.num_heads)
        out = self.out_proj(merge_heads(w @ v))
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "last matrix not turned",
    "wrong",
    "heads @ out_proj.weight lacks the transpose by which a linear layer of torch multiplies.",
)
class MultiHeadAttentionW11(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        w = torch.softmax(q @ k.mT * k.shape[-1] ** -0.5, dim=-1)
        out = merge_heads(w @ v) @ self.out_proj.weight + self.out_proj.bias
        return (out, w) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "batch and heads in one axis",
    "wrong",
    "The result is right, but the weights come as (B*H, T, S), the way d2l computes them.",
)
class MultiHeadAttentionW12(_Base):
    def transpose_qkv(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
        X = X.permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (self.transpose_qkv(x) for x in (self.q_proj(query), self.k_proj(key), self.v_proj(value)))
        w = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), dim=-1)
        o = torch.bmm(w, v).reshape(-1, self.num_heads, q.shape[1], q.shape[2]).permute(0, 2, 1, 3)
        out = self.out_proj(o.reshape(o.shape[0], o.shape[1], -1))
        return (out, w) if need_weights else out


@answer("MultiHeadAttention", "torch", "bands of the weights, head by head", "right")
class MultiHeadAttentionR1(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        D = query.shape[-1] // self.num_heads
        out, tables = self.out_proj.bias, []
        for h in range(self.num_heads):
            rows = slice(h * D, (h + 1) * D)
            q, k, v = (
                F.linear(x, p.weight[rows], p.bias[rows])
                for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
            )
            tables.append(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D), dim=2))
            out = out + torch.bmm(tables[-1], v) @ self.out_proj.weight[:, rows].T
        if not need_weights:
            return out
        return out, torch.stack(tables, dim=1)


@answer("MultiHeadAttention", "torch", "unflatten and einsum", "right")
class MultiHeadAttentionR2(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = key
        sizes = (self.num_heads, self.head_dim)
        q = self.q_proj(query).unflatten(-1, sizes)
        k = self.k_proj(key).unflatten(-1, sizes)
        v = self.v_proj(value).unflatten(-1, sizes)
        scores = torch.einsum("bthd,bshd->bhts", q * self.head_dim**-0.5, k)
        weights = F.softmax(scores, dim=3)
        out = self.out_proj(torch.einsum("bhts,bshd->bthd", weights, v).flatten(-2))
        return (out, weights) if need_weights else out
