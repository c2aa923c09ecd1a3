"""Answers to the exercises of chapter 4, many heads: written from the notebook alone."""

import math

import numpy as np
import torch
from torch import nn

ANSWERS = []


def softmax(x, axis=-1):
    """Stand-in for the softmax that the notebook imports."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def split(x, num_heads):
    """Stand-in for attnlib.split_heads, arrays and tensors."""
    x = x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)
    return x.swapaxes(-2, -3)


def merge(x):
    """Stand-in for attnlib.merge_heads, arrays and tensors."""
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def add(name, backend, label, verdict, implementation, sentence=""):
    ANSWERS.append((name, backend, label, verdict, implementation, sentence))


# ------------------------------------------------------------------ split_heads


def split_w1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, num_heads, T, D)


def split_w2(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D)


def split_w3(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D).swapaxes(0, 1)


def split_w4(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, D, num_heads).swapaxes(-1, -2).swapaxes(-2, -3)


def split_w5(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.moveaxis(x.reshape(*leading, T, num_heads, D), -2, 0)


def split_w6(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = x.reshape(*leading, T, num_heads, D)
    return heads.transpose(1, 0, 2) if not leading else heads.transpose(0, 3, 2, 1).swapaxes(1, 3)


def split_w7(x, num_heads):
    return np.array(np.split(x, num_heads, axis=-1))


def split_w8(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.stack([x[..., h : h + D] for h in range(num_heads)], axis=-3)


def split_w9(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D).transpose(0, 2, 1, 3)


def split_w10(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.swapaxes(-1, -2).reshape(*leading, num_heads, T, D)


def split_w11(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.stack([x[..., -(h + 1) * D :][..., :D] for h in range(num_heads)], axis=-3)


def split_r1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.swapaxes(x.reshape(*leading, T, num_heads, D), -2, -3)


def split_r2(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=-3)


def split_r3(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = np.empty((*leading, num_heads, T, D), dtype=x.dtype)
    for h in range(num_heads):
        for d in range(D):
            heads[..., h, :, d] = x[..., h * D + d]
    return heads


def split_r4(x, num_heads):
    columns = np.arange(x.shape[-1]).reshape(num_heads, 1, -1)  # (H, 1, D)
    rows = np.arange(x.shape[-2])[:, None]  # (T, 1)
    return x[..., rows, columns]


N = "split_heads"
add(
    N,
    "numpy",
    "one-reshape",
    "wrong",
    split_w1,
    "a single reshape mixes the words: wrong for more than one word and head",
)
add(N, "numpy", "no-swap", "wrong", split_w2, "the heads stay behind the words: (..., T, H, D)")
add(
    N,
    "numpy",
    "swap-0-1",
    "wrong",
    split_w3,
    "swaps the axes 0 and 1, which with a batch are others than words and heads",
)
add(N, "numpy", "strided", "wrong", split_w4, "head h gets every H-th column instead of a contiguous strip")
add(N, "numpy", "heads-first-of-all", "wrong", split_w5, "the heads come before the batch as well")
add(
    N,
    "numpy",
    "transpose-muddle",
    "wrong",
    split_w6,
    "with one leading size T and H are not exchanged, and two leading sizes fail",
)
add(
    N,
    "numpy",
    "np-split",
    "wrong",
    split_w7,
    "np.split gives a list that is stacked in front of the batch: right only without leading sizes",
)
add(N, "numpy", "overlapping", "wrong", split_w8, "head h starts at column h and not at h*D, so the strips overlap")
add(
    N,
    "numpy",
    "batch-of-one-axis",
    "wrong",
    split_w9,
    "transpose with four axes: fails without a batch and with two leading sizes",
)
add(
    N,
    "numpy",
    "swap-then-reshape",
    "wrong",
    split_w10,
    "turns words and columns first, so the strips hold the right numbers in the wrong places",
)
add(N, "numpy", "last-head-first", "wrong", split_w11, "the heads come in reversed order")
add(N, "numpy", "plain", "right", split_r1)
add(N, "numpy", "split-and-stack", "right", split_r2)
add(N, "numpy", "loops", "right", split_r3)
add(N, "numpy", "fancy-index", "right", split_r4)

# ------------------------------------------------------------------ merge_heads


def merge_w1(x):
    *leading, H, T, D = x.shape
    return x.reshape(*leading, T, H * D)


def merge_w2(x):
    return np.concatenate(list(x), axis=-1)


def merge_w3(x):
    *leading, H, T, D = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, T, H * D)


def merge_w4(x):
    H, T, D = x.shape[-3:]
    return x.swapaxes(-2, -3).reshape(-1, T, H * D)


def merge_w5(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(-1, -2).reshape(*leading, T, H * D)


def merge_w6(x):
    return x.sum(axis=-3)


def merge_w7(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(0, 1).reshape(*leading, T, H * D)


def merge_w8(x):
    *leading, H, T, D = x.shape
    return np.concatenate([x[..., h, :, :] for h in reversed(range(H))], axis=-1)


def merge_w9(x):
    *leading, H, T, D = x.shape
    return np.concatenate([x[..., h, :, :] for h in range(H)], axis=-2).reshape(*leading, T, H * D)


def merge_w10(x):
    return np.concatenate([x[..., 0, :, :], x[..., 1, :, :]], axis=-1)


def merge_w11(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, H * D).astype(int)


def merge_r1(x):
    *leading, H, T, D = x.shape
    return np.swapaxes(x, -2, -3).reshape(*leading, T, H * D)


def merge_r2(x):
    return np.concatenate([x[..., h, :, :] for h in range(x.shape[-3])], axis=-1)


def merge_r3(x):
    *leading, H, T, D = x.shape
    merged = np.zeros((*leading, T, H * D), dtype=x.dtype)
    for column in range(H * D):
        h, d = divmod(column, D)
        merged[..., column] = x[..., h, :, d]
    return merged


N = "merge_heads"
add(N, "numpy", "one-reshape", "wrong", merge_w1, "a single reshape: undoes the wrong splitting, but mixes the words")
add(N, "numpy", "list-of-x", "wrong", merge_w2, "takes the first axis for the heads, which with a batch is the batch")
add(N, "numpy", "heads-innermost", "wrong", merge_w3, "the numbers of the heads alternate, instead of head 0 first")
add(
    N,
    "numpy",
    "minus-one",
    "wrong",
    merge_w4,
    "all leading sizes become one: wrong without a batch and with two leading sizes",
)
add(N, "numpy", "wrong-swap", "wrong", merge_w5, "exchanges words and numbers instead of heads and words")
add(N, "numpy", "summed", "wrong", merge_w6, "adds the heads instead of putting them side by side")
add(N, "numpy", "swap-0-1", "wrong", merge_w7, "exchanges the axes 0 and 1: right only without a batch")
add(N, "numpy", "reversed", "wrong", merge_w8, "the last head comes first")
add(N, "numpy", "below-each-other", "wrong", merge_w9, "puts the heads below each other and then reshapes")
add(
    N, "numpy", "two-heads", "wrong", merge_w10, "made for the two heads of the example: fails for one, loses the third"
)
add(N, "numpy", "whole-numbers", "wrong", merge_w11, "turns everything into whole numbers, as in the numbered example")
add(N, "numpy", "plain", "right", merge_r1)
add(N, "numpy", "concatenate", "right", merge_r2)
add(N, "numpy", "loops", "right", merge_r3)

# ------------------------------------------------------------------ multi_head_attention


def mha_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    return merge(softmax(scores) @ v) @ w_o


def mha_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(w_q.shape[-1])
    return merge(softmax(scores) @ v) @ w_o


def mha_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(v.shape[-1])
    return merge(softmax(scores) @ v) @ w_o


def mha_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(key @ w_v, num_heads)
    return merge(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v) @ w_o


def mha_w5(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    return merge(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v)


def mha_w6(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q.T, num_heads), split(key @ w_k.T, num_heads), split(value @ w_v.T, num_heads)
    return merge(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v) @ w_o.T


def mha_w7(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = query @ w_q, key @ w_k, value @ w_v
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1] // num_heads))
    return weights @ v @ w_o


def mha_w8(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), axis=-2) @ v
    return merge(heads) @ w_o


def mha_w9(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    # the colleague's, not mended
    def cut(w):
        return w.reshape(num_heads, w.shape[0], -1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


def mha_w10(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    # mended in w_q and w_k, but "a line that looks much like it" mended as well
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q, k, v = (x[..., None, :, :] @ cut(w) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(-1, num_heads, w_o.shape[-1]).swapaxes(0, 1)
    return (heads @ bands).sum(axis=-3)


def mha_w11(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    # cut mended with the head strided over the columns
    def cut(w):
        return w.reshape(w.shape[0], -1, num_heads).transpose(2, 0, 1)

    q, k, v = (x[..., None, :, :] @ cut(w) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


def mha_w12(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    # cut mended for queries and keys, forgotten for values
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q, k = query[..., None, :, :] @ cut(w_q), key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ w_v.reshape(num_heads, w_v.shape[0], -1)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return (heads @ w_o.reshape(num_heads, -1, w_o.shape[-1])).sum(axis=-3)


def mha_w13(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).mean(axis=-3)


def mha_w14(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    width = w_q.shape[1] // num_heads
    heads = []
    for h in range(num_heads):
        here = slice(h * width, (h + 1) * width)
        q, k, v = query @ w_q[:, here], key @ w_k[:, here], value @ w_v[:, here]
        heads.append(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(width)) @ v)
    return np.concatenate(heads, axis=-1) @ w_o


def mha_w15(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    *leading, H, T, D_v = heads.shape
    return heads.reshape(*leading, T, H * D_v) @ w_o


def mha_w16(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(key @ w_q, num_heads), split(query @ w_k, num_heads), split(value @ w_v, num_heads)
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])).swapaxes(-1, -2)
    return merge(weights @ v) @ w_o


def mha_w17(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    return merge(softmax(q @ k.swapaxes(-1, -2)) @ v) @ w_o


def mha_r1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split(query @ w_q, num_heads), split(key @ w_k, num_heads), split(value @ w_v, num_heads)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return merge(softmax(scores) @ v) @ w_o


def mha_r2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    H = num_heads
    a, b, c = (w.reshape(w.shape[0], H, -1) for w in (w_q, w_k, w_v))
    scores = np.einsum("...te,ehd,fhd,...sf->...hts", query, a, b, key, optimize=True) / np.sqrt(a.shape[-1])
    bands = w_o.reshape(H, -1, w_o.shape[-1])
    return np.einsum("...hts,...sg,ghv,hvo->...to", softmax(scores), value, c, bands, optimize=True)


def mha_r3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D, D_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    out = 0
    for h in range(num_heads):
        narrow, wide = slice(h * D, (h + 1) * D), slice(h * D_v, (h + 1) * D_v)
        q, k, v = query @ w_q[:, narrow], key @ w_k[:, narrow], value @ w_v[:, wide]
        s = q @ np.swapaxes(k, -1, -2) * D**-0.5
        out = out + np.exp(s - np.logaddexp.reduce(s, axis=-1, keepdims=True)) @ v @ w_o[wide]
    return out


def mha_r4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    """The colleague's, mended."""

    def cut(w):  # (E, H*D) -> (H, E, D)
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


def mha_r5(query, key, value, w_q, w_k, w_v, w_o, num_heads, mask=None):
    matrices = (np.stack(np.split(w, num_heads, axis=1)) for w in (w_q, w_k, w_v))
    q, k, v = (x[..., None, :, :] @ w for x, w in zip((query, key, value), matrices))
    scores = q @ np.moveaxis(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return sum(head @ band for head, band in zip(np.moveaxis(softmax(scores) @ v, -3, 0), np.split(w_o, num_heads)))


N = "multi_head_attention"
add(
    N,
    "numpy",
    "root-of-E",
    "wrong",
    mha_w1,
    "divides by the root of the width of the words instead of that of one head",
)
add(
    N,
    "numpy",
    "root-of-HD",
    "wrong",
    mha_w2,
    "divides by the root of the width of all heads together: right only for one head",
)
add(N, "numpy", "root-of-D_v", "wrong", mha_w3, "divides by the root of the width of a value: wrong if D_v != D")
add(N, "numpy", "values-from-key", "wrong", mha_w4, "the values are projected from the keys' input")
add(N, "numpy", "no-w_o", "wrong", mha_w5, "the last projection is missing")
add(N, "numpy", "transposed-weights", "wrong", mha_w6, "multiplies by the transposes, as torch's linear layers do")
add(N, "numpy", "never-split", "wrong", mha_w7, "the vectors are never split: one table of weights for all heads")
add(N, "numpy", "softmax-over-queries", "wrong", mha_w8, "the softmax runs over the queries")
add(
    N,
    "numpy",
    "colleague",
    "wrong",
    mha_w9,
    "the colleague's function: the matrices are cut by one reshape, which mixes rows",
)
add(
    N, "numpy", "bands-mended-too", "wrong", mha_w10, "the bands of w_o, which were right, are cut with strides as well"
)
add(
    N,
    "numpy",
    "strided-columns",
    "wrong",
    mha_w11,
    "head h gets every H-th column of the matrices instead of a contiguous strip",
)
add(N, "numpy", "w_v-not-mended", "wrong", mha_w12, "the matrix of the values is still cut by one reshape")
add(N, "numpy", "mean-of-heads", "wrong", mha_w13, "averages the heads' contributions instead of adding them")
add(N, "numpy", "one-slice", "wrong", mha_w14, "cuts w_v with the slice of w_q: wrong if D_v != D")
add(
    N,
    "numpy",
    "merge-by-reshape",
    "wrong",
    mha_w15,
    "merges by a single reshape, without bringing the words to the front",
)
add(
    N,
    "numpy",
    "query-and-key-swapped",
    "wrong",
    mha_w16,
    "w_q meets the key and w_k the query, which fits if all widths are equal",
)
add(N, "numpy", "no-scale", "wrong", mha_w17, "the scores are not divided at all: right only for heads of width 1")
add(N, "numpy", "plain", "right", mha_r1)
add(N, "numpy", "einsum", "right", mha_r2)
add(N, "numpy", "head-by-head", "right", mha_r3)
add(N, "numpy", "colleague-mended", "right", mha_r4)
add(N, "numpy", "matrices-split-mask", "right", mha_r5)

# ------------------------------------------------------------------ MultiHeadAttention


class Given(nn.Module):
    """What the notebook gives: the four layers."""

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
        H = self.num_heads
        return split(self.q_proj(query), H), split(self.k_proj(key), H), split(self.v_proj(value), H)


class MHAW1(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(query.shape[-1]), dim=-1)
        out = self.out_proj(merge(weights @ v))
        return (out, weights) if need_weights else out


class MHAW2(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(merge(weights @ v))
        return (out, weights.mean(dim=1)) if need_weights else out


class MHAW3(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge(weights @ v)), weights


class MHAW4(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = merge(weights @ v) @ self.out_proj.weight + self.out_proj.bias
        return (out, weights) if need_weights else out


class MHAW5(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = merge(weights @ v) @ self.out_proj.weight.T
        return (out, weights) if need_weights else out


class MHAW6(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=1)
        out = self.out_proj(merge(weights @ v))
        return (out, weights) if need_weights else out


class MHAW7(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = query if value is None else value
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(merge(weights @ v))
        return (out, weights) if need_weights else out


class MHAW8(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj((weights @ v).reshape(query.shape))
        return (out, weights) if need_weights else out


class MHAW9(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1).detach()
        out = self.out_proj(merge(weights @ v))
        return (out, weights) if need_weights else out


class MHAW10(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        out = self.out_proj(merge(torch.softmax(scores, dim=-1) @ v))
        return (out, scores) if need_weights else out


class MHAW11(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        q = self.q_proj(query).view(B, T, self.num_heads, -1).transpose(1, 2)
        k = self.k_proj(key).view(B, T, self.num_heads, -1).transpose(1, 2)
        v = self.v_proj(value).view(B, T, self.num_heads, -1).transpose(1, 2)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(E // self.num_heads), dim=-1)
        out = self.out_proj((weights @ v).transpose(1, 2).reshape(B, T, E))
        return (out, weights) if need_weights else out


class MHAW12(Given):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(merge(self.dropout(weights) @ v))
        return (out, weights) if need_weights else out


class MHAW13(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(merge(weights @ v)) + query
        return (out, weights) if need_weights else out


class MHAR1(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(merge(weights @ v))
        return (out, weights) if need_weights else out


class MHAR2(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        B, _, E = query.shape
        d_k = E // self.num_heads
        q, k, v = (
            layer(x).view(B, -1, self.num_heads, d_k).transpose(1, 2)
            for layer, x in zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value))
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        p_attn = scores.softmax(dim=-1)
        x = torch.matmul(p_attn, v).transpose(1, 2).contiguous().view(B, -1, E)
        out = self.out_proj(x)
        if need_weights:
            return out, p_attn
        return out


class MHAR3(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        H = self.num_heads
        a, b, c = (p.weight.unflatten(0, (H, -1)) for p in (self.q_proj, self.k_proj, self.v_proj))  # (H, D, E)
        d, e, f = (p.bias.unflatten(0, (H, -1)) for p in (self.q_proj, self.k_proj, self.v_proj))  # (H, D)
        q = torch.einsum("bte,hde->bhtd", query, a) + d[:, None]
        k = torch.einsum("bse,hde->bhsd", key, b) + e[:, None]
        v = torch.einsum("bse,hde->bhsd", value, c) + f[:, None]
        s = torch.einsum("bhtd,bhsd->bhts", q, k) * q.shape[-1] ** -0.5
        weights = (s - s.logsumexp(dim=-1, keepdim=True)).exp()
        out = torch.einsum("bhts,bhsd,ohd->bto", weights, v, self.out_proj.weight.unflatten(1, (H, -1)))
        out = out + self.out_proj.bias
        return (out, weights) if need_weights else out


class MHAR4(Given):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        strips = (
            p(x).chunk(self.num_heads, dim=-1)
            for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        found, tables = [], []
        for q, k, v in zip(*strips):
            table = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / k.shape[-1] ** 0.5, dim=2)
            tables.append(table)
            found.append(torch.bmm(table, v))
        out = self.out_proj(torch.cat(found, dim=-1))
        return (out, torch.stack(tables, dim=1)) if need_weights else out


N = "MultiHeadAttention"
add(N, "torch", "root-of-E", "wrong", MHAW1, "divides by the root of E instead of that of the width of one head")
add(N, "torch", "averaged-weights", "wrong", MHAW2, "returns the mean of the heads' tables, as torch's own module does")
add(N, "torch", "always-a-pair", "wrong", MHAW3, "returns a pair even without need_weights")
add(N, "torch", "out-not-transposed", "wrong", MHAW4, "multiplies by the output weight without transposing it")
add(N, "torch", "out-bias-lost", "wrong", MHAW5, "the bias of the output layer is left out")
add(N, "torch", "softmax-over-heads", "wrong", MHAW6, "the softmax runs over the heads, dim 1")
add(N, "torch", "value-from-query", "wrong", MHAW7, "without a value it takes the query instead of the key")
add(N, "torch", "merge-by-reshape", "wrong", MHAW8, "merges by a single reshape, which mixes words and heads")
add(N, "torch", "weights-detached", "wrong", MHAW9, "the weights are detached: q_proj and k_proj get no gradient")
add(N, "torch", "scores-returned", "wrong", MHAW10, "returns the scores in place of the weights")
add(
    N,
    "torch",
    "keys-as-many",
    "wrong",
    MHAW11,
    "takes the number of keys to be that of the queries: fails or mixes for S != T",
)
add(
    N, "torch", "dropout", "wrong", MHAW12, "adds a dropout that the text does not have: other numbers in training mode"
)
add(
    N, "torch", "plus-query", "wrong", MHAW13, "adds the query to the result, a residual that the text does not ask for"
)
add(N, "torch", "plain", "right", MHAR1)
add(N, "torch", "annotated-transformer", "right", MHAR2)
add(N, "torch", "einsum-on-weights", "right", MHAR3)
add(N, "torch", "strip-by-strip", "right", MHAR4)
