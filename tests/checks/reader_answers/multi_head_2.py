"""More answers to the notebook "multi-head attention", by other readers."""

import math
import types

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


# ---- stand-ins for what the notebook has at this point -------------------------------------------------------------


def softmax(x, axis=-1):
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def split_heads(x, num_heads):
    *leading, T, width = x.shape
    return x.reshape(*leading, T, num_heads, width // num_heads).swapaxes(-3, -2)


def merge_heads(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, T, H * D)


attnlib = types.SimpleNamespace(split_heads=split_heads, merge_heads=merge_heads, softmax=softmax)

# =====================================================================================================================
# Task 2: split_heads
# =====================================================================================================================


@answer(
    "split_heads",
    "numpy",
    "one reshape",
    "wrong",
    "A single reshape draws new borders: heads get whole words instead of columns.",
)
def sp_w1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, num_heads, T, D)


@answer(
    "split_heads",
    "numpy",
    "heads innermost",
    "wrong",
    "Neighbouring columns go to different heads: head h has the columns h, h + H, ...",
)
def sp_w2(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.moveaxis(x.reshape(*leading, T, D, num_heads), -1, -3)


@answer(
    "split_heads",
    "numpy",
    "axes from the front",
    "wrong",
    "swapaxes(0, 1) swaps batch and words as soon as a batch stands in front.",
)
def sp_w3(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D).swapaxes(0, 1)


@answer(
    "split_heads", "numpy", "not brought forward", "wrong", "The words are cut, but the heads stay behind the words."
)
def sp_w4(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D)


@answer(
    "split_heads",
    "numpy",
    "np.split stacked in front",
    "wrong",
    "np.array puts the heads in front of the batch, not between batch and words.",
)
def sp_w5(x, num_heads):
    return np.array(np.split(x, num_heads, axis=-1))


@answer(
    "split_heads",
    "numpy",
    "four axes wanted",
    "wrong",
    "transpose(0, 2, 1, 3) needs exactly one batch axis; a single table crashes.",
)
def sp_w6(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(*leading, T, num_heads, D).transpose(0, 2, 1, 3)


@answer(
    "split_heads",
    "numpy",
    "slices of one step",
    "wrong",
    "x[..., h : h + D] forgets to multiply h by D: the heads overlap.",
)
def sp_w7(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return np.stack([x[..., h : h + D] for h in range(num_heads)], axis=-3)


@answer("split_heads", "numpy", "last head missing", "wrong", "range(num_heads - 1) leaves the last head out.")
def sp_w8(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = np.zeros((*leading, num_heads, T, D), dtype=x.dtype)
    for h in range(num_heads - 1):
        heads[..., h, :, :] = x[..., h * D : (h + 1) * D]
    return heads


@answer(
    "split_heads",
    "numpy",
    "every H-th column",
    "wrong",
    "x[..., h::H] takes columns far apart; a head has neighbouring ones.",
)
def sp_w9(x, num_heads):
    return np.stack([x[..., h::num_heads] for h in range(num_heads)], axis=-3)


@answer(
    "split_heads", "numpy", "sets the shape of the argument", "wrong", "x.shape = ... changes the array of the caller."
)
def sp_w10(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    x.shape = (*leading, T, num_heads, D)
    return x.swapaxes(-3, -2)


@answer("split_heads", "numpy", "d2l batch of heads", "wrong", "Batch and heads are glued to one axis, as in d2l.")
def sp_w11(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = x.reshape(*leading, T, num_heads, D).swapaxes(-3, -2)
    return heads.reshape(-1, T, D)


@answer(
    "split_heads",
    "numpy",
    "table of whole numbers",
    "wrong",
    "The buffer has whole numbers, so everything after the point is cut off.",
)
def sp_w12(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = np.zeros((*leading, num_heads, T, D), dtype=int)
    for h in range(num_heads):
        heads[..., h, :, :] = x[..., h * D : h * D + D]
    return heads


@answer(
    "split_heads",
    "numpy",
    "words cut instead of columns",
    "wrong",
    "Reads the pieces from the transposed table, so a head has (D, T).",
)
def sp_w13(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.swapaxes(-1, -2).reshape(*leading, num_heads, D, T)


@answer("split_heads", "numpy", "last head first", "wrong", "The heads come in the reversed order.")
def sp_w14(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    heads = []
    for h in range(num_heads):
        heads.insert(0, x[..., h * D : (h + 1) * D])
    return np.stack(heads, axis=-3)


@answer(
    "split_heads",
    "numpy",
    "always a batch",
    "wrong",
    "reshape(-1, ...) adds a batch axis to a single table, and glues several in front to one.",
)
def sp_w15(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    return x.reshape(-1, T, num_heads, D).swapaxes(1, 2)


@answer("split_heads", "numpy", "a table of column numbers", "right")
def sp_r1(x, num_heads):
    D = x.shape[-1] // num_heads
    columns = np.arange(num_heads)[:, None] * D + np.arange(D)  # (H, D)
    return np.moveaxis(x[..., columns], -2, -3)


@answer("split_heads", "numpy", "split, then stack at -3", "right")
def sp_r2(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=-3)


@answer("split_heads", "numpy", "einsum as a transposition", "right")
def sp_r3(x, num_heads):
    *leading, T, width = x.shape
    return np.einsum("...thd->...htd", x.reshape((*leading, T, num_heads, width // num_heads)))


# =====================================================================================================================
# Task 3: merge_heads
# =====================================================================================================================


@answer("merge_heads", "numpy", "one reshape", "wrong", "Reshapes without bringing the words to the front first.")
def mg_w1(x):
    *leading, H, T, D = x.shape
    return x.reshape(*leading, T, H * D)


@answer("merge_heads", "numpy", "transpose(1, 0, 2)", "wrong", "Three axes are built in: a batch crashes.")
def mg_w2(x):
    *leading, H, T, D = x.shape
    return x.transpose(1, 0, 2).reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "concatenate over the first axis",
    "wrong",
    "np.concatenate(x) walks along the first axis, which is the batch if there is one.",
)
def mg_w3(x):
    return np.concatenate(list(x), axis=-1)


@answer(
    "merge_heads",
    "numpy",
    "heads innermost",
    "wrong",
    "Component d of all heads stands together, instead of all components of one head.",
)
def mg_w4(x):
    *leading, H, T, D = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, T, D * H)


@answer(
    "merge_heads", "numpy", "one below the other", "wrong", "The heads are put one below the other, not side by side."
)
def mg_w5(x):
    *leading, H, T, D = x.shape
    return np.concatenate([x[..., h, :, :] for h in range(H)], axis=-2)


@answer("merge_heads", "numpy", "heads added", "wrong", "The heads are added up; merging puts them side by side.")
def mg_w6(x):
    return x.sum(axis=-3)


@answer(
    "merge_heads", "numpy", "last head first", "wrong", "Each head is put in front of what is there: head 0 comes last."
)
def mg_w7(x):
    merged = x[..., 0, :, :]
    for h in range(1, x.shape[-3]):
        merged = np.concatenate([x[..., h, :, :], merged], axis=-1)
    return merged


@answer("merge_heads", "numpy", "batch flattened", "wrong", "reshape(T, -1) throws the batch and the words together.")
def mg_w8(x):
    H, T, D = x.shape[-3:]
    return x.swapaxes(-3, -2).reshape(T, -1)


@answer("merge_heads", "numpy", "number of heads of the example", "wrong", "The two heads of the example are built in.")
def mg_w9(x):
    return np.concatenate([x[..., 0, :, :], x[..., 1, :, :]], axis=-1)


@answer("merge_heads", "numpy", "words and components swapped", "wrong", "Swaps T and D instead of H and T.")
def mg_w10(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(-1, -2).reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "lengths mixed up",
    "wrong",
    "Unpacks the shape as (T, H, D), so rows and heads trade sizes: with T different from H the shape is wrong.",
)
def mg_w11(x):
    *leading, T, H, D = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, T, H * D)


@answer("merge_heads", "numpy", "no return", "wrong", "The merged table is printed, not returned.")
def mg_w12(x):
    *leading, H, T, D = x.shape
    merged = np.swapaxes(x, -2, -3).reshape(*leading, T, H * D)
    print(merged.shape)


@answer("merge_heads", "numpy", "a buffer, band by band", "right")
def mg_r1(x):
    *leading, H, T, D = x.shape
    merged = np.empty((*leading, T, H * D), dtype=x.dtype)
    for h in range(H):
        merged[..., h * D : (h + 1) * D] = x[..., h, :, :]
    return merged


@answer("merge_heads", "numpy", "every number by its formula", "right")
def mg_r2(x):
    H, _, D = x.shape[-3:]
    column = np.arange(H * D)
    heads, components = column // D, column % D
    # advanced indices apart from each other move to the front, so bring them back
    picked = x[..., heads, :, components]
    return np.moveaxis(picked, 0, -1)


# =====================================================================================================================
# Task 5: multi_head_attention
# =====================================================================================================================


@answer(
    "multi_head_attention",
    "numpy",
    "root of E",
    "wrong",
    "Divides by the root of the width of the words, not of one head.",
)
def mh_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = split_heads(query @ w_q, num_heads)
    k = split_heads(key @ w_k, num_heads)
    v = split_heads(value @ w_v, num_heads)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    return merge_heads(softmax(scores) @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "scaled before the split",
    "wrong",
    "Divides by the root of H*D, the width before the splitting.",
)
def mh_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    Q, K, V = query @ w_q, key @ w_k, value @ w_v
    Q = Q / np.sqrt(Q.shape[-1])
    Q, K, V = (split_heads(each, num_heads) for each in (Q, K, V))
    A = softmax(np.einsum("...td,...sd->...ts", Q, K))
    return merge_heads(A @ V) @ w_o


@answer("multi_head_attention", "numpy", "no output projection", "wrong", "w_o is never used.")
def mh_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return merge_heads(alpha @ v)


@answer(
    "multi_head_attention", "numpy", "w_q for the keys", "wrong", "The keys are projected with w_q; w_k is not used."
)
def mh_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = split_heads(query @ w_q, num_heads)
    k = split_heads(key @ w_q, num_heads)
    v = split_heads(value @ w_v, num_heads)
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "values from the keys",
    "wrong",
    "The values are projected from key instead of value.",
)
def mh_w5(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = split_heads(query @ w_q, num_heads)
    k = split_heads(key @ w_k, num_heads)
    v = split_heads(key @ w_v, num_heads)
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "self-attention only",
    "wrong",
    "Everything is projected from the query; key and value are ignored.",
)
def mh_w6(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = [split_heads(query @ w, num_heads) for w in (w_q, w_k, w_v)]
    alpha = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "softmax over the heads",
    "wrong",
    "The weights of the heads sum to 1, instead of those of the keys.",
)
def mh_w7(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), axis=-3)
    return merge_heads(alpha @ v) @ w_o


@answer("multi_head_attention", "numpy", "merged by a reshape", "wrong", "The heads are merged by a single reshape.")
def mh_w8(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    heads = alpha @ v
    return heads.reshape(*query.shape[:-1], -1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "matrices as in torch",
    "wrong",
    "Multiplies by the transposes of the matrices: fits silently if they are square.",
)
def mh_w9(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w.T, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return merge_heads(alpha @ v) @ w_o.T


@answer(
    "multi_head_attention",
    "numpy",
    "root of the value width",
    "wrong",
    "Divides by the root of D_v, the width of a value in one head.",
)
def mh_w10(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(v.shape[-1]))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "words cut before the projection",
    "wrong",
    "Each head sees only its part of the words: the words are cut before they are projected.",
)
def mh_w11(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    E, E_k, E_v = query.shape[-1], key.shape[-1], value.shape[-1]
    results = []
    for h in range(num_heads):

        def part(x, w, width):
            rows = slice(h * width // num_heads, (h + 1) * width // num_heads)
            D = w.shape[-1] // num_heads
            return x[..., rows] @ w[rows, h * D : (h + 1) * D]

        q, k, v = part(query, w_q, E), part(key, w_k, E_k), part(value, w_v, E_v)
        results.append(softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v)
    return np.concatenate(results, axis=-1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "late closures",
    "wrong",
    "All functions of the list see the last h: every head is the last one.",
)
def mh_w12(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    D = q.shape[-1]
    heads = [
        lambda: softmax(q[..., h, :, :] @ np.swapaxes(k[..., h, :, :], -1, -2) / np.sqrt(D)) @ v[..., h, :, :]
        for h in range(num_heads)
    ]
    return np.concatenate([head() for head in heads], axis=-1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "D for the values too",
    "wrong",
    "Cuts w_v into bands of width D: the width of a value may be another.",
)
def mh_w13(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = w_q.shape[1] // num_heads
    out = 0
    for h in range(num_heads):
        band = slice(h * D, (h + 1) * D)
        q, k, v = query @ w_q[:, band], key @ w_k[:, band], value @ w_v[:, band]
        out = out + softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D)) @ v @ w_o[band]
    return out


@answer(
    "multi_head_attention",
    "numpy",
    "scale folded into the caller's w_q",
    "wrong",
    "w_q /= ... changes the matrix of the caller; the next call divides once more.",
)
def mh_w14(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    w_q /= np.sqrt(w_q.shape[1] // num_heads)
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    return merge_heads(softmax(q @ np.swapaxes(k, -1, -2)) @ v) @ w_o


@answer(
    "multi_head_attention", "numpy", "one big head", "wrong", "The projections are never split: one head of full width."
)
def mh_w15(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = query @ w_q, key @ w_k, value @ w_v
    D = q.shape[-1] // num_heads
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D)) @ v @ w_o


@answer("multi_head_attention", "numpy", "no scale", "wrong", "The division by the root is missing.")
def mh_w16(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def project(x, w):
        return split_heads(x @ w, num_heads)

    alpha = softmax(project(query, w_q) @ project(key, w_k).swapaxes(-2, -1))
    return merge_heads(alpha @ project(value, w_v)) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "key.T of each head",
    "wrong",
    "k[h].T and x[h] count the axes from the front: with a batch, h picks sentences.",
)
def mh_w17(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    heads = []
    for h in range(num_heads):
        heads.append(softmax(q[h] @ k[h].T / np.sqrt(q.shape[-1])) @ v[h])
    return np.hstack(heads) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mean of the heads",
    "wrong",
    "Every head is multiplied by its band of w_o, but then averaged instead of added.",
)
def mh_w18(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    heads = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).mean(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "D from the words",
    "wrong",
    "Takes E // H for the width of a head; the projected width may be another.",
)
def mh_w19(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = query.shape[-1] // num_heads
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "split_heads by T of the query",
    "wrong",
    "The keys are cut with the number of queries as their length: crashes if T and S differ.",
)
def mh_w20(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    *leading, T, _ = query.shape

    def cut(x, w):
        return (x @ w).reshape(*leading, T, num_heads, w.shape[1] // num_heads).swapaxes(-3, -2)

    q, k, v = cut(query, w_q), cut(key, w_k), cut(value, w_v)
    alpha = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return merge_heads(alpha @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "root of the number of heads",
    "wrong",
    "Divides by the root of the number of heads.",
)
def mh_w21(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    alpha = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(num_heads))
    return merge_heads(alpha @ v) @ w_o


@answer("multi_head_attention", "numpy", "one einsum per step", "right")
def mh_r1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def bands(w):  # (in, H*d) -> (in, H, d): the columns of a head are neighbours
        return w.reshape(w.shape[0], num_heads, w.shape[1] // num_heads)

    q = np.einsum("...te,ehd->...htd", query, bands(w_q))
    k = np.einsum("...se,ehd->...hsd", key, bands(w_k))
    v = np.einsum("...se,ehd->...hsd", value, bands(w_v))
    alpha = softmax(np.einsum("...htd,...hsd->...hts", q, k) * q.shape[-1] ** -0.5)
    found = np.einsum("...hts,...hsd->...htd", alpha, v)
    return np.einsum("...htd,hdo->...to", found, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer("multi_head_attention", "numpy", "sum over heads with low-rank matrices", "right")
def mh_r2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    """Scores by x (W_q W_k^T) y^T and outputs by y (W_v W_o): the projections are never made."""
    D, D_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    total = 0.0
    for h in range(num_heads):
        own, own_v = slice(h * D, h * D + D), slice(h * D_v, h * D_v + D_v)
        compare = w_q[:, own] @ w_k[:, own].T  # (E, E_k)
        carry = w_v[:, own_v] @ w_o[own_v]  # (E_v, E_out)
        weights = softmax(query @ compare @ np.swapaxes(key, -1, -2) / np.sqrt(D))
        total = total + weights @ (value @ carry)
    return total


class _OneHead:
    def __init__(self, *matrices):
        self.w_q, self.w_k, self.w_v = matrices

    def __call__(self, query, key, value):
        q, k, v = query @ self.w_q, key @ self.w_k, value @ self.w_v
        scores = np.matmul(q, np.swapaxes(k, -2, -1)) / np.sqrt(k.shape[-1])
        return softmax(scores) @ v


@answer("multi_head_attention", "numpy", "a list of head objects", "right")
def mh_r3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    cut = [np.hsplit(w, num_heads) for w in (w_q, w_k, w_v)]
    heads = [_OneHead(*matrices) for matrices in zip(*cut)]
    return np.concatenate([head(query, key, value) for head in heads], axis=-1) @ w_o


# =====================================================================================================================
# Task 7: mended
# =====================================================================================================================


def _by_matrices(query, key, value, cut, w_q, w_k, w_v, bands):
    """The part of the colleague's function that several answers keep."""
    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    heads = softmax(scores) @ v
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "not brought forward",
    "wrong",
    "The heads are cut from the columns, but stay the second axis.",
)
def bm_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1)

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer(
    "multi_head_attention",
    "numpy",
    "transposed and reshaped",
    "wrong",
    "w.T.reshape(H, E, D) has the right shape and the numbers in the wrong places.",
)
def bm_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.T.reshape(num_heads, w.shape[0], -1)

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer(
    "multi_head_attention",
    "numpy",
    "every H-th column",
    "wrong",
    "A head gets the columns h, h + H, ... instead of neighbours.",
)
def bm_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], -1, num_heads).transpose(2, 0, 1)

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer(
    "multi_head_attention",
    "numpy",
    "bands of w_o mended too",
    "wrong",
    "The line that was right is changed too: the bands of w_o are cut in strides.",
)
def bm_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.moveaxis(w.reshape(w.shape[0], num_heads, -1), 1, 0)

    bands = w_o.reshape(-1, num_heads, w_o.shape[-1]).swapaxes(0, 1)
    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, bands)


@answer(
    "multi_head_attention",
    "numpy",
    "values forgotten",
    "wrong",
    "Queries and keys are cut rightly, the values as before.",
)
def bm_w5(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ w_v.reshape(num_heads, w_v.shape[0], -1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    heads = softmax(scores) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "sum over the first axis",
    "wrong",
    "sum(axis=0) adds up the heads without a batch only; with one it adds up the sentences.",
)
def bm_w6(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=0)


@answer(
    "multi_head_attention",
    "numpy",
    "axis in front of the batch",
    "wrong",
    "query[None] puts the axis of the heads before the batch: right for a single sentence only.",
)
def bm_w7(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.stack(np.split(w, num_heads, axis=1))

    q, k, v = query[None] @ cut(w_q), key[None] @ cut(w_k), value[None] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return (heads @ w_o.reshape(num_heads, -1, w_o.shape[-1])).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "scale mended instead",
    "wrong",
    "Suspects the scale, and divides by the root of the whole width; the cutting is still wrong.",
)
def bm_w8(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(num_heads, w.shape[0], -1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(w_q.shape[-1])
    heads = softmax(scores) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "rows cut",
    "wrong",
    "Cuts the rows of the matrices: then a head has (E/H, H*D), and the products crash.",
)
def bm_w9(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.array(np.split(w, num_heads, axis=0))

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer(
    "multi_head_attention",
    "numpy",
    "all cut to the width of the query",
    "wrong",
    "The three matrices are cut with the E of w_q; E_k and E_v may be others.",
)
def bm_w10(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    E = w_q.shape[0]

    def cut(w):
        return w.reshape(E, num_heads, -1).swapaxes(0, 1)

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer(
    "multi_head_attention",
    "numpy",
    "cut twice reversed",
    "wrong",
    "The heads are cut rightly but in the reversed order, while the bands of w_o are not.",
)
def bm_w11(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        D = w.shape[1] // num_heads
        return np.stack([w[:, w.shape[1] - (h + 1) * D : w.shape[1] - h * D] for h in range(num_heads)])

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer("multi_head_attention", "numpy", "transposed twice", "right")
def bm_r1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):  # the transpose has the columns as rows, and rows may be cut by reshape
        return w.T.reshape(num_heads, -1, w.shape[0]).swapaxes(-1, -2)

    return _by_matrices(query, key, value, cut, w_q, w_k, w_v, w_o.reshape(num_heads, -1, w_o.shape[-1]))


@answer("multi_head_attention", "numpy", "zeros instead of cuts", "right")
def bm_r2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    """Each head keeps the full width, with all foreign columns set to zero."""
    D = w_q.shape[-1] // num_heads
    heads = np.arange(num_heads)[:, None, None]

    def keep(w):  # (E, H*D) -> (H, E, H*D)
        return np.where(np.arange(w.shape[-1]) // (w.shape[-1] // num_heads) == heads, w, 0.0)

    q = np.expand_dims(query, -3) @ keep(w_q)
    k = np.expand_dims(key, -3) @ keep(w_k)
    v = np.expand_dims(value, -3) @ keep(w_v)
    found = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D)) @ v  # (..., H, T, H*D_v), zero in foreign columns
    return np.sum(found, axis=-3) @ w_o


# =====================================================================================================================
# Task 8: MultiHeadAttention
# =====================================================================================================================


class _Base(nn.Module):
    """What the notebook gives: the constructor."""

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
    "k_proj for the values",
    "wrong",
    "The values go through k_proj; v_proj is never used.",
)
class ModuleW1(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            attnlib.split_heads(x, self.num_heads) for x in (self.q_proj(query), self.k_proj(key), self.k_proj(value))
        )
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        out = self.out_proj(attnlib.merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer("MultiHeadAttention", "torch", "no out_proj", "wrong", "The merged heads are returned without the last layer.")
class ModuleW2(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)), dim=-1)
        out = merge_heads(weights @ v)
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "root of embed_dim",
    "wrong",
    "Divides by the root of E instead of the width of a head.",
)
class ModuleW3(_Base):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.scale = embed_dim**-0.5

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = (q @ k.transpose(-1, -2) * self.scale).softmax(-1)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "averaged weights",
    "wrong",
    "Returns the mean of the tables, as torch's module does; one table for each head was asked for.",
)
class ModuleW4(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        out = self.out_proj(merge_heads(weights @ v))
        if need_weights:
            return out, weights.mean(dim=1)
        return out


@answer("MultiHeadAttention", "torch", "always a pair", "wrong", "Returns the weights even if nobody asked for them.")
class ModuleW5(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        out = self.out_proj(merge_heads(weights @ v))
        return out, weights if need_weights else None


@answer("MultiHeadAttention", "torch", "view without transpose", "wrong", "view(B, H, T, D) mixes words and heads.")
class ModuleW6(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        S, H = key.shape[1], self.num_heads
        q = self.q_proj(query).view(B, H, T, E // H)
        k = self.k_proj(key).view(B, H, S, E // H)
        v = self.v_proj(value).view(B, H, S, E // H)
        weights = F.softmax(q @ k.transpose(2, 3) / (E // H) ** 0.5, dim=-1)
        out = self.out_proj((weights @ v).view(B, T, E))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "T for the keys",
    "wrong",
    "The keys are cut with the length of the query: a crash if S differs from T.",
)
class ModuleW7(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        D = E // self.num_heads

        def cut(x):
            return x.view(B, T, self.num_heads, D).transpose(1, 2)

        q, k, v = cut(self.q_proj(query)), cut(self.k_proj(key)), cut(self.v_proj(value))
        weights = F.softmax(q @ k.transpose(2, 3) / D**0.5, dim=-1)
        out = self.out_proj((weights @ v).transpose(1, 2).reshape(B, T, E))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "view of a transposed tensor",
    "wrong",
    "view after transpose: 'view size is not compatible with input tensor's size and stride'.",
)
class ModuleW8(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        D = E // self.num_heads
        q = self.q_proj(query).view(B, -1, self.num_heads, D).transpose(1, 2)
        k = self.k_proj(key).view(B, -1, self.num_heads, D).transpose(1, 2)
        v = self.v_proj(value).view(B, -1, self.num_heads, D).transpose(1, 2)
        weights = F.softmax(q @ k.transpose(2, 3) / math.sqrt(D), dim=-1)
        out = self.out_proj((weights @ v).transpose(1, 2).view(B, T, E))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "merged by reshape",
    "wrong",
    "The heads are merged without bringing the words to the front.",
)
class ModuleW9(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            split_heads(layer(x), self.num_heads)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        weights = F.softmax(q @ k.mT * k.size(-1) ** -0.5, dim=-1)
        out = self.out_proj((weights @ v).reshape(query.shape))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention", "torch", "scores for weights", "wrong", "need_weights returns the scores before the softmax."
)
class ModuleW10(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = q @ k.mT / math.sqrt(q.size(-1))
        out = self.out_proj(merge_heads(F.softmax(weights, dim=-1) @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "value defaults to the query",
    "wrong",
    "Without a value the value is the key, not the query.",
)
class ModuleW11(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = query
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "weights without the biases",
    "wrong",
    "Multiplies by the weights of the layers and leaves the biases out.",
)
class ModuleW12(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(query @ self.q_proj.weight.T, self.num_heads)
        k = split_heads(key @ self.k_proj.weight.T, self.num_heads)
        v = split_heads(value @ self.v_proj.weight.T, self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = merge_heads(weights @ v) @ self.out_proj.weight.T
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "weights not transposed",
    "wrong",
    "A linear layer multiplies by the transpose of its weight; here by the weight itself.",
)
class ModuleW13(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value

        def apply(layer, x):
            return x @ layer.weight + layer.bias

        q = split_heads(apply(self.q_proj, query), self.num_heads)
        k = split_heads(apply(self.k_proj, key), self.num_heads)
        v = split_heads(apply(self.v_proj, value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = apply(self.out_proj, merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "bias added again",
    "wrong",
    "The layer has added its bias already; out_proj.bias is added a second time.",
)
class ModuleW14(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(merge_heads(weights @ v)) + self.out_proj.bias
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "key or query",
    "wrong",
    "`key or query` asks a tensor for its truth: a crash as soon as a key is given.",
)
class ModuleW15(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = key or query
        value = value or key
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "remembers the last key",
    "wrong",
    "Without a key, what was the key in an earlier call is used instead of the query.",
)
class ModuleW16(_Base):
    memory = None

    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is not None or self.memory is None:
            self.memory = query if key is None else key
        key = self.memory
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "softmax over queries",
    "wrong",
    "softmax(dim=2) of (B, H, T, S) runs over the queries.",
)
class ModuleW17(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=2)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "residual connection",
    "wrong",
    "Adds the query to the result, as a transformer block does around the layer.",
)
class ModuleW18(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = query + self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "layers without bias",
    "wrong",
    "The layers are made again without biases; each was to have one.",
)
class ModuleW19(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim, bias=False) for _ in range(4)
        )

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "keys cut from the graph",
    "wrong",
    "The keys are detached: k_proj and the input of the keys get no gradient through the scores.",
)
class ModuleW20(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads).detach()
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "weights head first",
    "wrong",
    "The weights come back as (H, B, T, S): the loop over heads is stacked in front.",
)
class ModuleW21(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        D = query.shape[-1] // self.num_heads
        pieces = zip(*(x.split(D, dim=-1) for x in (self.q_proj(query), self.k_proj(key), self.v_proj(value))))
        heads, tables = [], []
        for q, k, v in pieces:
            tables.append(torch.softmax(q @ k.transpose(1, 2) / D**0.5, dim=-1))
            heads.append(tables[-1] @ v)
        out = self.out_proj(torch.cat(heads, dim=-1))
        return (out, torch.stack(tables)) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "dropout on weights",
    "wrong",
    "Drops a tenth of the weights at random while training; not asked for.",
)
class ModuleW22(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)
        k = split_heads(self.k_proj(key), self.num_heads)
        v = split_heads(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
        weights = F.dropout(weights, 0.1, training=self.training)
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@answer("MultiHeadAttention", "torch", "loop over heads, split tensors", "right")
class ModuleR1(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = key
        D = self.out_proj.in_features // self.num_heads
        out, tables = self.out_proj.bias, []
        q_all, k_all, v_all = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        for h in range(self.num_heads):
            own = slice(h * D, (h + 1) * D)
            scores = torch.einsum("btd,bsd->bts", q_all[..., own], k_all[..., own]) / math.sqrt(D)
            tables.append(scores.softmax(dim=-1))
            out = out + tables[-1] @ v_all[..., own] @ self.out_proj.weight[:, own].T
        return (out, torch.stack(tables, dim=1)) if need_weights else out


@answer("MultiHeadAttention", "torch", "five-letter einsums", "right")
class ModuleR2(_Base):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = self.q_proj(query).unflatten(-1, (self.num_heads, -1))
        k = self.k_proj(key).unflatten(-1, (self.num_heads, -1))
        v = self.v_proj(value).unflatten(-1, (self.num_heads, -1))
        scores = torch.einsum("bthd,bshd->bhts", q * q.shape[-1] ** -0.5, k)
        log_weights = scores - scores.logsumexp(dim=-1, keepdim=True)
        weights = log_weights.exp()
        out = self.out_proj(torch.einsum("bhts,bshd->bthd", weights, v).flatten(-2))
        return (out, weights) if need_weights else out


@answer("MultiHeadAttention", "torch", "batch and heads glued with bmm", "right")
class ModuleR3(_Base):
    def _glue(self, layer, x):
        B, length, E = x.shape
        x = F.linear(x, layer.weight, layer.bias).reshape(B, length, self.num_heads, E // self.num_heads)
        return x.permute(0, 2, 1, 3).reshape(B * self.num_heads, length, E // self.num_heads)

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        q, k, v = self._glue(self.q_proj, query), self._glue(self.k_proj, key), self._glue(self.v_proj, value)
        weights = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(q.size(2))).softmax(2)
        found = torch.bmm(weights, v).reshape(B, self.num_heads, T, -1)
        out = self.out_proj(found.permute(0, 2, 1, 3).reshape(B, T, E))
        if not need_weights:
            return out
        return out, weights.reshape(B, self.num_heads, T, k.shape[1])


# =====================================================================================================================


# =====================================================================================================================
# More right answers
# =====================================================================================================================


@answer("split_heads", "numpy", "recursive over the batch", "right")
def sp_r4(x, num_heads):
    if x.ndim > 2:
        return np.stack([sp_r4(sentence, num_heads) for sentence in x])
    return np.stack(np.hsplit(x, num_heads))


@answer("split_heads", "numpy", "rows of the transpose", "right")
def sp_r5(x, num_heads):
    *front, T, width = x.shape
    turned = np.swapaxes(x, -1, -2)  # (..., H*D, T): now the heads are bands of rows
    return np.swapaxes(turned.reshape(*front, num_heads, width // num_heads, T), -1, -2)


@answer("merge_heads", "numpy", "concatenate the moved heads", "right")
def mg_r3(x):
    return np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1)


@answer("merge_heads", "numpy", "one-hot bands added up", "right")
def mg_r4(x):
    H, D = x.shape[-3], x.shape[-1]
    place = np.eye(H * D).reshape(H, D, H * D)  # number d of head h goes to column h*D + d
    return np.einsum("...htd,hdc->...tc", x, place)


@answer("multi_head_attention", "numpy", "exp and a division at the very end", "right")
def mh_r4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    Q, K, V = np.matmul(query, w_q), np.matmul(key, w_k), np.matmul(value, w_v)
    d, d_v = Q.shape[-1] // num_heads, V.shape[-1] // num_heads
    merged = np.empty((*Q.shape[:-1], V.shape[-1]))
    for head in range(num_heads):
        scores = np.einsum("...td,...sd->...ts", Q[..., head * d :][..., :d], K[..., head * d :][..., :d]) / d**0.5
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        found = e @ V[..., head * d_v : head * d_v + d_v]
        merged[..., head * d_v : head * d_v + d_v] = found / e.sum(axis=-1)[..., None]
    return merged @ w_o


@answer("multi_head_attention", "numpy", "bands of columns by take", "right")
def bm_r3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def columns(w, h):
        D = w.shape[1] // num_heads
        return w.take(range(h * D, (h + 1) * D), axis=1)

    def head(h):
        q, k, v = (x @ columns(w, h) for x, w in zip((query, key, value), (w_q, w_k, w_v)))
        band = np.split(w_o, num_heads)[h]
        return softmax(q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])) @ v @ band

    return sum(map(head, range(num_heads)))


@answer("MultiHeadAttention", "torch", "one product for all projections of a self-attention", "right")
class ModuleR4(_Base):
    def _project(self, query, key, value):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        if key is query and value is query:
            weight = torch.cat([layer.weight for layer in layers])
            bias = torch.cat([layer.bias for layer in layers])
            return (query @ weight.T + bias).chunk(3, dim=-1)
        return [layer(x) for layer, x in zip(layers, (query, key, value))]

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (attnlib.split_heads(x, self.num_heads) for x in self._project(query, key, value))
        alpha = torch.exp(torch.log_softmax((q / math.sqrt(q.shape[-1])) @ k.mT, dim=-1))
        result = self.out_proj(attnlib.merge_heads(alpha @ v))
        return {False: result, True: (result, alpha)}[bool(need_weights)]
