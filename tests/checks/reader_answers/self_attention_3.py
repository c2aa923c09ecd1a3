"""Still more answers to the notebook "self-attention without parameters", by other readers."""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# The student's own functions of the earlier tasks, where a later one uses them.


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def dot(query, key):
    return query @ np.swapaxes(key, -1, -2)


def _attention(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    return weights @ value, weights


attnlib = SimpleNamespace(dot=dot, softmax=softmax)


# ---------------------------------------------------------------- task 2: softmax


@answer(
    "softmax",
    "numpy",
    "one maximum for everything",
    "wrong",
    "The maximum of the whole array is subtracted: a row far below it underflows to zeros, and 0/0 is nan.",
)
def softmax_w2(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / np.sum(e, axis=axis, keepdims=True)


@answer("softmax", "numpy", "max in place", "wrong", "x -= changes the caller's scores.")
def softmax_w3(x, axis=-1):
    x -= x.max(axis=axis, keepdims=True)
    exps = np.exp(x)
    return exps / exps.sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "[..., None] for every axis",
    "wrong",
    "The sum's axis is put back at the end, which is right for axis=-1 only.",
)
def softmax_w4(x, axis=-1):
    m = x.max(axis=axis)[..., None]
    e = np.exp(x - m)
    return e / e.sum(axis=axis)[..., None]


@answer(
    "softmax",
    "numpy",
    "buffer like the scores",
    "wrong",
    "empty_like of integer scores is an integer array: the fractions become 0.",
)
def softmax_w5(x, axis=-1):
    out = np.empty_like(x)
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    out[...] = shifted / np.sum(shifted, axis=axis, keepdims=True)
    return out


@answer(
    "softmax",
    "numpy",
    "clipped to avoid overflow",
    "wrong",
    "Clipping makes all scores above 700 equal, so [1000, 1000 + log 3] gets halves.",
)
def softmax_w6(x, axis=-1):
    e = np.exp(np.clip(x, -700, 700))
    e = e / e.max(axis=axis, keepdims=True)
    return e / e.sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "mean subtracted",
    "wrong",
    "Only the maximum is safe: with the mean, widely spread scores still overflow.",
)
def softmax_w7(x, axis=-1):
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return np.exp(centred) / np.exp(centred).sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "transposed for any other axis",
    "wrong",
    "Whatever axis is named, the first is taken: axis=1 of a matrix is summed along axis 0.",
)
def softmax_w8(x, axis=-1):
    if axis != -1:
        return softmax_w8(x.T).T
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@answer("softmax", "numpy", "by way of the logarithm", "right")
def softmax_r1(x, axis=-1):
    return np.exp(x - np.logaddexp.reduce(np.asarray(x, dtype=float), axis=axis, keepdims=True))


@answer("softmax", "numpy", "row by row in plain Python", "right")
def softmax_r2(x, axis=-1):
    moved = np.moveaxis(np.array(x, dtype=float), axis, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    done = []
    for row in rows.tolist():
        top = max(row)
        positive = [math.exp(score - top) for score in row]
        done.append([p / math.fsum(positive) for p in positive])
    return np.moveaxis(np.array(done).reshape(moved.shape), -1, axis)


# ---------------------------------------------------------------- task 4: dot


@answer(
    "dot",
    "numpy",
    "np.dot for a stack",
    "wrong",
    "np.dot of two stacks pairs every matrix of one with every matrix of the other.",
)
def dot_w1(query, key):
    return np.dot(query, np.swapaxes(key, -1, -2))


@answer(
    "dot",
    "numpy",
    "reshaped in place of transposed",
    "wrong",
    "reshape to (..., D, S) keeps the order of the numbers; it does not exchange the axes.",
)
def dot_w3(query, key):
    S, D = key.shape[-2:]
    return query @ key.reshape(*key.shape[:-2], D, S)


@answer(
    "dot",
    "numpy",
    "einsum for three axes",
    "wrong",
    "The letters name exactly one dimension in front: without one, or with two, einsum raises.",
)
def dot_w4(query, key):
    return np.einsum("btd,bsd->bts", query, key)


@answer(
    "dot",
    "numpy",
    "T by T",
    "wrong",
    "Both loops run over the number of queries: columns are missing, or the index runs out.",
)
def dot_w6(query, key):
    T = query.shape[-2]
    scores = np.zeros(query.shape[:-2] + (T, T))
    for i in range(T):
        for j in range(T):
            scores[..., i, j] = (query[..., i, :] * key[..., j, :]).sum(-1)
    return scores


@answer("dot", "numpy", "outer products added up", "right")
def dot_r1(query, key):
    return sum(query[..., :, d, None] * key[..., None, :, d] for d in range(query.shape[-1]))


@answer("dot", "numpy", "one key at a time", "right")
def dot_r2(query, key):
    columns = [(query @ key[..., j, :, np.newaxis])[..., 0] for j in range(key.shape[-2])]
    return np.stack(columns, axis=-1)


# ---------------------------------------------------------------- task 5: cosine


@answer(
    "cosine",
    "numpy",
    "torch's epsilon",
    "wrong",
    "The product of the lengths is raised to 1e-8, as PyTorch does it: short vectors have a direction as well, and get too small a cosine.",
)
def cosine_w2(query, key):
    q = np.linalg.norm(query, axis=-1)[..., :, None]
    k = np.linalg.norm(key, axis=-1)[..., None, :]
    return dot(query, key) / np.maximum(q * k, 1e-8)


@answer(
    "cosine",
    "numpy",
    "lengths along axis 1",
    "wrong",
    "axis=1 is the vectors' axis for matrices only; in a stack it is the number of queries.",
)
def cosine_w5(query, key):
    def unit(x):
        n = np.sqrt(np.sum(x**2, axis=1, keepdims=True))
        return x / np.where(n > 0, n, 1.0)

    return dot(unit(query), unit(key))


@answer("cosine", "numpy", "normalised in place", "wrong", "/= divides the caller's own vectors by their lengths.")
def cosine_w6(query, key):
    for vectors in (query, key):
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors /= np.where(length == 0, 1.0, length)
    return query @ np.swapaxes(key, -1, -2)


@answer(
    "cosine",
    "numpy",
    "any zero instead of all",
    "wrong",
    "A vector with a single 0 among its numbers is taken for a vector of zeros.",
)
def cosine_w7(query, key):
    zero = (query == 0).any(-1)[..., :, None] | (key == 0).any(-1)[..., None, :]
    lengths = np.sqrt((query**2).sum(-1))[..., :, None] * np.sqrt((key**2).sum(-1))[..., None, :]
    return np.where(zero, 0.0, dot(query, key) / np.where(zero, 1.0, lengths))


@answer(
    "cosine",
    "numpy",
    "only the keys are checked",
    "wrong",
    "A key of zeros is caught, a query of zeros still makes nan.",
)
def cosine_w8(query, key):
    nk = np.linalg.norm(key, axis=-1, keepdims=True)
    nk[nk == 0] = 1
    nq = np.linalg.norm(query, axis=-1, keepdims=True)
    return dot(query / nq, key / nk)


@answer(
    "cosine",
    "numpy",
    "lengths of the keys as a column",
    "wrong",
    "The key's lengths (..., S, 1) are laid along the rows: each fraction gets another key's length.",
)
def cosine_w9(query, key):
    nq = np.linalg.norm(query, axis=-1, keepdims=True)
    nk = np.linalg.norm(key, axis=-1, keepdims=True)
    below = nq * nk
    below = np.where(below == 0, 1.0, below)
    return dot(query, key) / below


@answer("cosine", "numpy", "negative cosines cut off", "wrong", "Opposite directions have the cosine -1, not 0.")
def cosine_w10(query, key):
    def normalise(x):
        n = np.linalg.norm(x, axis=-1, keepdims=True)
        return x / np.where(n == 0, 1, n)

    return np.clip(dot(normalise(query), normalise(key)), 0, 1)


@answer("cosine", "numpy", "zero vectors divided by one", "right")
def cosine_r1(query, key):
    def unit(x):
        length = np.sqrt(np.einsum("...d,...d->...", x, x))
        return x / (length + (length == 0))[..., None]

    return np.einsum("...td,...sd->...ts", unit(query), unit(key))


@answer("cosine", "numpy", "pair by pair with math", "right")
def cosine_r2(query, key):
    front, T, S = query.shape[:-2], query.shape[-2], key.shape[-2]
    out = np.zeros(front + (T, S))
    for place in np.ndindex(*front):
        for i in range(T):
            for j in range(S):
                q, k = query[place][i].tolist(), key[place][j].tolist()
                if any(q) and any(k):
                    lengths = math.hypot(*q), math.hypot(*k)
                    out[place][i, j] = math.fsum((a / lengths[0]) * (b / lengths[1]) for a, b in zip(q, k))
    return out


# ---------------------------------------------------------------- tasks 6 and 7: gaussian


@answer(
    "gaussian",
    "numpy",
    "task 6: times h squared",
    "wrong",
    "a / 2 * h**2 multiplies by h squared: parentheses are missing.",
)
def gaussian_w2(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / 2 * bandwidth**2


@answer("gaussian", "numpy", "task 6: the 2 squared as well", "wrong", "Only h is squared below the fraction, not 2h.")
def gaussian_w3(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(np.square(differences), axis=-1) / (2 * bandwidth) ** 2


@answer(
    "gaussian",
    "numpy",
    "task 6: sum first, then square",
    "wrong",
    "The differences are summed before they are squared, so they cancel.",
)
def gaussian_w7(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -0.5 * (differences.sum(axis=-1) / bandwidth) ** 2


@answer("gaussian", "numpy", "task 6: axis 2", "wrong", "axis=2 is the last axis only without a batch.")
def gaussian_w8(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=2) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "task 7: sum of lengths minus a stretched product",
    "wrong",
    "The dot product is of the unscaled vectors, while the lengths are in bandwidths.",
)
def gaussian_w10(query, key, bandwidth=1.0):
    length_of_query = np.sum((query / bandwidth) ** 2, axis=-1)[..., :, None]
    length_of_key = np.sum((key / bandwidth) ** 2, axis=-1)[..., None, :]
    apart = length_of_query + length_of_key - 2 * dot(query, key)
    return -apart / 2


@answer("gaussian", "numpy", "task 7: scaled in place", "wrong", "query /= changes the caller's queries and keys.")
def gaussian_w11(query, key, bandwidth=1.0):
    query /= bandwidth
    key /= bandwidth
    q = np.sum(query * query, axis=-1)[..., :, None]
    k = np.sum(key * key, axis=-1)[..., None, :]
    return -(q + k - 2 * dot(query, key)) / 2


@answer(
    "gaussian",
    "numpy",
    "task 7: halved as a whole, the product too",
    "wrong",
    "The factor 2 of the product and the 2 below the fraction cancel for the product only; here the lengths lose their half.",
)
def gaussian_w12(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    return attnlib.dot(query, key) - length_of_query - length_of_key


@answer(
    "gaussian",
    "numpy",
    "task 7: both centred on their own mean",
    "wrong",
    "The queries lose their mean and the keys lose theirs: only a shift that is common to both leaves the distances alone.",
)
def gaussian_w13(query, key, bandwidth=1.0):
    query = (query - query.mean(axis=-2, keepdims=True)) / bandwidth
    key = (key - key.mean(axis=-2, keepdims=True)) / bandwidth
    apart = (query**2).sum(-1)[..., :, None] + (key**2).sum(-1)[..., None, :] - 2 * dot(query, key)
    return -np.maximum(apart, 0) / 2


@answer(
    "gaussian",
    "numpy",
    "task 7: lengths without new axes",
    "wrong",
    "The lengths of the keys are (..., S), which stands under the wrong axis once there is a batch.",
)
def gaussian_w14(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    q = np.sum(query * query, axis=-1, keepdims=True)
    k = np.sum(key * key, axis=-1)
    return dot(query, key) - q / 2 - k / 2


@answer(
    "gaussian",
    "numpy",
    "task 7: the queries' length left out",
    "wrong",
    "What is the same for all keys may be left out of a softmax, but the lengths of the queries are part of the score.",
)
def gaussian_w15(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    return dot(query, key) - length_of_key / 2


@answer("gaussian", "numpy", "component by component", "right")
def gaussian_r1(query, key, bandwidth=1.0):
    total = np.zeros(query.shape[:-1] + (key.shape[-2],))
    for d in range(query.shape[-1]):
        total += np.subtract(query[..., :, None, d], key[..., None, :, d]) ** 2 / bandwidth**2
    return -total / 2


@answer("gaussian", "numpy", "task 7: centred on the keys, never above 0", "right")
def gaussian_r2(query, key, bandwidth=1.0):
    centre = key.mean(axis=-2, keepdims=True)
    q, k = (query - centre) / bandwidth, (key - centre) / bandwidth
    ones_q, ones_k = np.ones(q.shape[:-1] + (1,)), np.ones(k.shape[:-1] + (1,))
    half_q, half_k = -(q**2).sum(-1, keepdims=True) / 2, -(k**2).sum(-1, keepdims=True) / 2
    # one product of widened vectors: (q, -|q|²/2, 1) · (k, 1, -|k|²/2)
    wide_q = np.concatenate([q, half_q, ones_q], axis=-1)
    wide_k = np.concatenate([k, ones_k, half_k], axis=-1)
    return np.minimum(dot(wide_q, wide_k), 0)


# ---------------------------------------------------------------- task 9: attention


@answer(
    "attention",
    "numpy",
    "root of the number of keys",
    "wrong",
    "The scores are divided by the root of S; D is the width of a query.",
)
def attention_w1(query, key, value):
    scores = dot(query, key)
    weights = softmax(scores / np.sqrt(scores.shape[-1]))
    return weights @ value, weights


@answer("attention", "numpy", "width of the values", "wrong", "D is the width of queries and keys, not of the values.")
def attention_w2(query, key, value):
    D = value.shape[-1]
    weights = softmax(dot(query, key) / math.sqrt(D))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "shape[1] as the width",
    "wrong",
    "shape[1] is D for a matrix, but T or a batch size as soon as there is a batch.",
)
def attention_w3(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(query.shape[1]), axis=-1)
    return weights @ value, weights


@answer("attention", "numpy", "query scaled in place", "wrong", "query /= changes the caller's queries.")
def attention_w6(query, key, value):
    query /= np.sqrt(query.shape[-1])
    weights = softmax(dot(query, key))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "divided by D",
    "wrong",
    "Both sides are divided by sqrt(D), which makes D below the fraction.",
)
def attention_w7(query, key, value):
    root = np.sqrt(query.shape[-1])
    weights = softmax(dot(query / root, key / root))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "exponentials by hand, without the shift",
    "wrong",
    "The weights are made by a plain exp, which overflows for large scores.",
)
def attention_w9(query, key, value):
    e = np.exp(dot(query, key) / np.sqrt(query.shape[-1]))
    weights = e / e.sum(-1)[..., None]
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@answer(
    "attention",
    "numpy",
    "tensordot for the weighted sum",
    "wrong",
    "tensordot pairs every batch of weights with every batch of values: (B, T, B, D_v).",
)
def attention_w10(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    context = np.tensordot(weights, value, axes=([-1], [-2]))
    return context, weights


@answer("attention", "numpy", "one query after the other", "right")
def attention_r1(query, key, value):
    D = query.shape[-1]
    contexts, rows = [], []
    for i in range(query.shape[-2]):
        q = query[..., i, :]
        row = softmax((key @ q[..., None])[..., 0] * D**-0.5)
        contexts.append((row[..., None] * value).sum(axis=-2))
        rows.append(row)
    return np.stack(contexts, axis=-2), np.stack(rows, axis=-2)


@answer("attention", "numpy", "normalised at the very end", "right")
def attention_r2(query, key, value):
    quarter = query.shape[-1] ** 0.25
    scores = dot(key / quarter, query / quarter)  # (..., S, T), keys own the rows here
    positive = np.exp(scores - scores.max(axis=-2, keepdims=True)).swapaxes(-1, -2)
    with_total = positive @ np.concatenate([value, np.ones(value.shape[:-1] + (1,))], axis=-1)
    total = with_total[..., -1:]
    return with_total[..., :-1] / total, positive / total


# ---------------------------------------------------------------- task 11: self_attention


@answer(
    "self_attention",
    "numpy",
    "root of the length of the sentence",
    "wrong",
    "x.shape[-2] is the number of words, not their width.",
)
def self_attention_w2(x):
    scores = dot(x, x) / math.sqrt(x.shape[-2])
    weights = softmax(scores)
    return weights @ x, weights


@answer("self_attention", "numpy", "T, D = x.shape", "wrong", "Only a single sentence is allowed for; a batch raises.")
def self_attention_w3(x):
    T, D = x.shape
    weights = softmax(x @ x.T / np.sqrt(D))
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "weights transposed in the sum",
    "wrong",
    "The context sums over the words that ask (weights.T), not over those that are asked.",
)
def self_attention_w4(x):
    weights = softmax(dot(x, x) / np.sqrt(x.shape[-1]))
    context = np.einsum("...ij,...id->...jd", weights, x)
    return context, weights


@answer(
    "self_attention",
    "numpy",
    "scaled words are averaged",
    "wrong",
    "x itself is scaled, and the scaled words are averaged: the values must stay as they are.",
)
def self_attention_w5(x):
    x = x / x.shape[-1] ** 0.25
    weights = softmax(dot(x, x))
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "causal mask from a GPT tutorial",
    "wrong",
    "Later words are masked; here every position attends to every position.",
)
def self_attention_w6(x):
    T = x.shape[-2]
    scores = dot(x, x) / np.sqrt(x.shape[-1])
    scores = np.where(np.tril(np.ones((T, T))) == 1, scores, -1e9)
    weights = softmax(scores)
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "not with itself",
    "wrong",
    "The diagonal is shut out, but a word looks at itself as well.",
)
def self_attention_w7(x):
    scores = dot(x, x) / np.sqrt(x.shape[-1])
    scores = scores - 1e9 * np.eye(x.shape[-2])
    weights = softmax(scores)
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "residual",
    "wrong",
    "x is added to the context, as in a transformer block; nothing of that is asked.",
)
def self_attention_w8(x):
    context, weights = _attention(x, x, x)
    return x + context, weights


@answer("self_attention", "numpy", "softmax of the columns of a symmetric table", "right")
def self_attention_r1(x):
    gram = np.einsum("...id,...jd->...ij", x, x) / math.sqrt(x.shape[-1])
    columns = softmax(gram, axis=-2)  # the table is symmetric, so its columns are its rows
    context = (columns[..., :, :, None] * x[..., :, None, :]).sum(axis=-3)
    return context, columns.swapaxes(-1, -2)


@answer("self_attention", "numpy", "recursion over the batch", "right")
def self_attention_r2(x):
    if x.ndim > 2:
        parts = [self_attention_r2(sentence) for sentence in x]
        return np.stack([c for c, _ in parts]), np.stack([w for _, w in parts])
    weights = np.array([softmax(x @ word / len(word) ** 0.5) for word in x])
    return np.array([row @ x for row in weights]), weights


# ---------------------------------------------------------------- task 13: attention, torch


@answer(
    "attention", "torch", "softmax in NumPy", "wrong", "The weights come out of NumPy: query and key get no gradient."
)
def attention_tw1(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = torch.from_numpy(softmax(scores.detach().cpu().numpy())).to(value)
    return weights @ value, weights


@answer("attention", "torch", "weights detached on return", "wrong", "The weights are returned without their gradient.")
def attention_tw2(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.size(-1)), dim=-1)
    return weights @ value, weights.detach()


@answer(
    "attention", "torch", "dim=1", "wrong", "dim=1 is the keys for a matrix, but the queries for a batch of matrices."
)
def attention_tw3(query, key, value):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    p_attn = F.softmax(scores, dim=1)
    return torch.matmul(p_attn, value), p_attn


@answer(
    "attention",
    "torch",
    "dropout of the Annotated Transformer",
    "wrong",
    "Dropout throws weights away at random: they do not sum to 1, and each call gives another result.",
)
def attention_tw4(query, key, value):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = F.dropout(scores.softmax(dim=-1), p=0.1)
    return torch.matmul(p_attn, value), p_attn


@answer("attention", "torch", "bmm of d2l", "wrong", "bmm wants exactly three dimensions.")
def attention_tw5(query, key, value):
    d = query.shape[-1]
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(d)
    weights = F.softmax(scores, dim=-1)
    return torch.bmm(weights, value), weights


@answer(
    "attention",
    "torch",
    "query scaled in place",
    "wrong",
    "div_ changes the caller's queries, and raises on a leaf that wants a gradient.",
)
def attention_tw6(query, key, value):
    query = query.div_(math.sqrt(query.shape[-1]))
    weights = (query @ key.transpose(-1, -2)).softmax(-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "float() everywhere",
    "wrong",
    "float() turns float64 into float32: the results lose half of their digits, and weights @ value raises.",
)
def attention_tw7(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query.float(), key.float()) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "keys detached", "wrong", "key.data is the key without its history: it gets no gradient.")
def attention_tw8(query, key, value):
    k = key.data.transpose(-2, -1)
    weights = torch.softmax(query @ k / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "own softmax, denominator detached",
    "wrong",
    "The denominator is taken as a constant: the numbers are right, but the gradients of query and key are not.",
)
def attention_tw9(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    with torch.no_grad():
        total = e.sum(dim=-1, keepdim=True)
    weights = e / total
    return weights @ value, weights


@answer("attention", "torch", "logsumexp and broadcasting", "right")
def attention_tr1(query, key, value):
    s = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(dim=-1).mul(query.size(-1) ** -0.5)
    weights = s.sub(s.logsumexp(dim=-1, keepdim=True)).exp()
    return (weights.unsqueeze(-1) * value.unsqueeze(-3)).sum(dim=-2), weights


@answer("attention", "torch", "filled row by row", "right")
def attention_tr2(query, key, value):
    T, D = query.shape[-2:]
    context = value.new_zeros(query.shape[:-1] + value.shape[-1:])
    weights = []
    for i in range(T):
        row = torch.einsum("...d,...sd->...s", query[..., i, :] / math.sqrt(D), key)
        e = torch.exp(row - row.max(dim=-1, keepdim=True)[0])
        weights.append(e / e.sum(-1, keepdim=True))
        context[..., i, :] = torch.einsum("...s,...sv->...v", weights[-1], value)
    return context, torch.stack(weights, dim=-2)
