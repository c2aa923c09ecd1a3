"""Answers to the notebook self-attention, as students might write them."""

import math

import numpy as np
import torch

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# What the students have written in earlier tasks (right), for the answers that call it.
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def dot(query, key):
    return query @ np.swapaxes(key, -1, -2)


# ---------------------------------------------------------------- softmax


@answer(
    "softmax",
    "numpy",
    "clipped at 700",
    "wrong",
    "Clipping the scores at 700 avoids inf, but makes 1000 and 1000 + log 3 equal, so their weights come out equal.",
)
def softmax_w1(x, axis=-1):
    safe = np.clip(x, -700, 700)  # exp(709) is the largest that fits
    powers = np.exp(safe)
    return powers / powers.sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "one maximum for the whole table",
    "wrong",
    "The maximum of the whole array is subtracted: a row that lies far below underflows to 0/0.",
)
def softmax_w2(x, axis=-1):
    x = x - x.max()
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "transposes for axis 0 only",
    "wrong",
    "Axis 0 is handled by a transposition, but any other axis than 0 and -1 is treated as the last one.",
)
def softmax_w3(x, axis=-1):
    if axis == 0:
        return softmax_w3(x.T).T
    biggest = np.amax(x, axis=-1)[..., np.newaxis]
    numerator = np.exp(x - biggest)
    denominator = np.sum(numerator, axis=-1)[..., np.newaxis]
    return numerator / denominator


@answer(
    "softmax",
    "numpy",
    "row by row into empty_like",
    "wrong",
    "np.empty_like of integer scores is an integer array, so all fractions are cut off to 0.",
)
def softmax_w4(x, axis=-1):
    moved = np.moveaxis(x, axis, -1)
    result = np.empty_like(moved)
    for index in np.ndindex(*moved.shape[:-1]):
        row = moved[index]
        e = np.exp(row - row.max())
        result[index] = e / e.sum()
    return np.moveaxis(result, -1, axis)


@answer(
    "softmax",
    "numpy",
    "subtracts in place through a view",
    "wrong",
    "moveaxis gives a view, and -= writes through it into the caller's scores.",
)
def softmax_w5(x, axis=-1):
    view = np.moveaxis(x, axis, -1)
    view -= view.max(axis=-1, keepdims=True)
    e = np.exp(view)
    return np.moveaxis(e / e.sum(-1, keepdims=True), -1, axis)


@answer(
    "softmax",
    "numpy",
    "max kept, sum not",
    "wrong",
    "The sum loses its axis, so NumPy lines it up with the columns in place of the rows.",
)
def softmax_w6(x, axis=-1):
    m = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - m)
    s = np.sum(e, axis)
    return e / s


@answer(
    "softmax",
    "numpy",
    "the smallest is subtracted",
    "wrong",
    "The minimum is subtracted in place of the maximum, so a spread of more than 709 still overflows.",
)
def softmax_w7(x, axis=-1):
    shifted = x - x.min(axis=axis, keepdims=True)
    exps = np.exp(shifted)
    total = exps.sum(axis=axis, keepdims=True)
    return exps / total


@answer(
    "softmax",
    "numpy",
    "divides by the maximum",
    "wrong",
    "The scores are divided by their maximum in place of being shifted, which changes the weights (and fails for 0).",
)
def softmax_w8(x, axis=-1):
    normalised = x / np.max(np.abs(x), axis=axis, keepdims=True)
    e = np.exp(normalised)
    return e / np.sum(e, axis=axis, keepdims=True)


@answer("softmax", "numpy", "logaddexp", "right")
def softmax_r1(x, axis=-1):
    logs = np.asarray(x, dtype=float)
    return np.exp(logs - np.logaddexp.reduce(logs, axis=axis, keepdims=True))


# ---------------------------------------------------------------- dot


@answer(
    "dot",
    "numpy",
    "np.inner",
    "wrong",
    "np.inner is right for two matrices, but for stacks it pairs every batch with every other: (B, T, B, S).",
)
def dot_w1(query, key):
    return np.inner(query, key)


@answer(
    "dot",
    "numpy",
    "key reshaped",
    "wrong",
    "A reshape to (D, S) is no transposition: it reads the numbers of the keys on in the old order.",
)
def dot_w2(query, key):
    *front, S, D = key.shape
    return np.matmul(query, key.reshape(*front, D, S))


@answer("dot", "numpy", "keys own the rows", "wrong", "The table has a row for each key: it is transposed.")
def dot_w3(query, key):
    return np.einsum("...td,...sd->...st", query, key)


@answer(
    "dot",
    "numpy",
    "one batch axis in the einsum",
    "wrong",
    "The einsum demands exactly one batch dimension: it fails for plain matrices and for two dimensions in front.",
)
def dot_w4(query, key):
    return np.einsum("btd,bsd->bts", query, key)


@answer(
    "dot",
    "numpy",
    "loops over the last two",
    "wrong",
    "The sizes T and S are swapped in the loops, so the table is filled correctly only if T equals S.",
)
def dot_w5(query, key):
    S, T = query.shape[-2], key.shape[-2]
    scores = np.zeros(query.shape[:-2] + (T, S))
    for t in range(T):
        for s in range(S):
            scores[..., t, s] = np.sum(query[..., t, :] * key[..., s, :], axis=-1)
    return scores


@answer("dot", "numpy", "column by column", "right")
def dot_r1(query, key):
    columns = []
    for j in range(key.shape[-2]):
        one_key = key[..., j, :, None]  # (..., D, 1)
        columns.append((query @ one_key)[..., 0])
    return np.stack(columns, axis=-1)


# ---------------------------------------------------------------- cosine


@answer(
    "cosine",
    "numpy",
    "any zero vector empties the table",
    "wrong",
    "One zero vector makes the whole table 0, in place of its own row or column.",
)
def cosine_w1(query, key):
    lengths_q = np.linalg.norm(query, axis=-1, keepdims=True)
    lengths_k = np.linalg.norm(key, axis=-1, keepdims=True)
    scores = query @ np.swapaxes(key, -1, -2)
    if (lengths_q == 0).any() or (lengths_k == 0).any():
        return np.zeros_like(scores)
    return scores / (lengths_q * np.swapaxes(lengths_k, -1, -2))


@answer(
    "cosine",
    "numpy",
    "norm of the whole matrix",
    "wrong",
    "np.linalg.norm without an axis is the length of all queries together, not of each.",
)
def cosine_w2(query, key):
    top = dot(query, key)
    bottom = np.linalg.norm(query) * np.linalg.norm(key)
    if bottom == 0:
        return np.zeros(top.shape)
    return top / bottom


@answer(
    "cosine",
    "numpy",
    "zero queries only",
    "wrong",
    "Zero queries are taken care of, but a zero key still gives 0/0 = nan.",
)
def cosine_w3(query, key):
    def unit(v, careful):
        n = np.sqrt((v**2).sum(-1, keepdims=True))
        if careful:
            n = np.where(n == 0, 1, n)
        with np.errstate(all="ignore"):
            return v / n

    return np.einsum("...td,...sd->...ts", unit(query, True), unit(key, False))


@answer(
    "cosine",
    "numpy",
    "epsilon of a blog",
    "wrong",
    "A small number is added to the denominator: every cosine is a bit too small, and those of short vectors are far off.",
)
def cosine_w4(query, key, eps=1e-6):
    dots = np.matmul(query, np.swapaxes(key, -2, -1))
    nq = np.linalg.norm(query, axis=-1)[..., :, None]
    nk = np.linalg.norm(key, axis=-1)[..., None, :]
    return dots / (nq * nk + eps)


@answer(
    "cosine",
    "numpy",
    "normalised in place",
    "wrong",
    "The queries and keys of the caller are normalised in place, so they are changed after the call.",
)
def cosine_w5(query, key):
    for vectors in (query, key):
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors /= np.where(length > 0, length, 1.0)
    return dot(query, key)


@answer(
    "cosine",
    "numpy",
    "squared lengths",
    "wrong",
    "The root is forgotten: the products are divided by the squared lengths.",
)
def cosine_w6(query, key):
    qq = (query * query).sum(axis=-1, keepdims=True)
    kk = (key * key).sum(axis=-1, keepdims=True)
    denominator = qq * np.swapaxes(kk, -1, -2)
    denominator[denominator == 0] = 1.0
    return dot(query, key) / denominator


@answer(
    "cosine",
    "numpy",
    "a zero vector fits itself",
    "wrong",
    "Where the query and the key are both zero the cosine is set to 1, but the task wants 0 for everything.",
)
def cosine_w7(query, key):
    q_len = np.linalg.norm(query, axis=-1)[..., :, None]
    k_len = np.linalg.norm(key, axis=-1)[..., None, :]
    product = q_len * k_len
    out = dot(query, key) / np.where(product == 0, 1, product)
    out = np.where((q_len == 0) & (k_len == 0), 1.0, out)
    return out


@answer("cosine", "numpy", "np.divide with out and where", "right")
def cosine_r1(query, key):
    def directions(v):
        lengths = np.linalg.norm(v, axis=-1, keepdims=True)
        return np.divide(v, lengths, out=np.zeros(v.shape), where=lengths > 0)

    return (directions(query)[..., :, np.newaxis, :] * directions(key)[..., np.newaxis, :, :]).sum(-1)


# ---------------------------------------------------------------- gaussian (tasks 6 and 7)


@answer(
    "gaussian",
    "numpy",
    "precedence of the fraction",
    "wrong",
    "/ 2 * h ** 2 multiplies by the squared bandwidth: the denominator needs parentheses.",
)
def gaussian_w1(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=-1) / 2 * bandwidth**2


@answer(
    "gaussian",
    "numpy",
    "logarithm of the density",
    "wrong",
    "The normalising constant of the normal distribution is added (from Wikipedia); the score has no such term.",
)
def gaussian_w2(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    squared = np.square(differences).sum(axis=-1)
    return -squared / (2 * bandwidth**2) - np.log(bandwidth * np.sqrt(2 * np.pi))


@answer(
    "gaussian",
    "numpy",
    "two is squared as well",
    "wrong",
    "(2h)^2 stands below the fraction in place of 2h^2: the scores are half as large.",
)
def gaussian_w3(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    u = differences / (2 * bandwidth)
    return -(u * u).sum(-1)


@answer(
    "gaussian",
    "numpy",
    "already exponentiated",
    "wrong",
    "The exponential belongs to the softmax: the function returns the bell curve, not the score.",
)
def gaussian_w4(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    distance = np.linalg.norm(differences, axis=-1)
    return np.exp(-((distance / bandwidth) ** 2) / 2)


@answer(
    "gaussian",
    "numpy",
    "sums over the keys",
    "wrong",
    "axis=2 is D for plain matrices, but in a batch it is the axis of the keys.",
)
def gaussian_w5(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.sum(differences**2, axis=2) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "mended: rooted and squared",
    "wrong",
    "The root of a distance that rounding has made slightly negative is nan, as for a query that equals a key.",
)
def gaussian_w6(query, key, bandwidth=1.0):
    a = (query**2).sum(-1)[..., :, None]
    b = (key**2).sum(-1)[..., None, :]
    with np.errstate(invalid="ignore"):
        distance = np.sqrt(a + b - 2 * dot(query, key))
    return -0.5 * (distance / bandwidth) ** 2


@answer(
    "gaussian",
    "numpy",
    "mended: the product in other units",
    "wrong",
    "The lengths are measured in bandwidths, the dot product is not.",
)
def gaussian_w7(query, key, bandwidth=1.0):
    q, k = query / bandwidth, key / bandwidth
    length_of_query = np.sum(q * q, axis=-1)[..., :, None]
    length_of_key = np.sum(k * k, axis=-1)[..., None, :]
    return -(length_of_query + length_of_key - 2 * dot(query, key)) / 2


@answer(
    "gaussian",
    "numpy",
    "mended: centred at the first query",
    "wrong",
    "The query is moved to the origin but the colleague's formula is kept: only the first query is really at the origin.",
)
def gaussian_w8(query, key, bandwidth=1.0):
    origin = query[..., :1, :]
    query, key = (query - origin) / bandwidth, (key - origin) / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    return -(length_of_query + length_of_key - dot(query, key)) / 2


@answer(
    "gaussian",
    "numpy",
    "mended: scaled in place",
    "wrong",
    "/= divides the caller's own queries and keys by the bandwidth.",
)
def gaussian_w9(query, key, bandwidth=1.0):
    query /= bandwidth
    key /= bandwidth
    squares = (query**2).sum(-1)[..., None] + (key**2).sum(-1)[..., None, :]
    return np.minimum(dot(query, key) - squares / 2, 0)


@answer("gaussian", "numpy", "one width at a time", "right")
def gaussian_r1(query, key, bandwidth=1.0):
    total = 0.0
    for d in range(query.shape[-1]):
        column = query[..., :, d, None] - key[..., None, :, d]  # (..., T, S)
        total = total + (column / bandwidth) ** 2
    return total / -2


# ---------------------------------------------------------------- attention


@answer(
    "attention",
    "numpy",
    "root precedence",
    "wrong",
    "D ** 1 / 2 is D / 2, not the root of D (for D = 4 it is the same).",
)
def attention_w1(query, key, value):
    d = query.shape[-1]
    scores = dot(query, key) / (d**1 / 2)
    weights = softmax(scores)
    return weights @ value, weights


@answer("attention", "numpy", "width of the values", "wrong", "The width under the root is that of the values.")
def attention_w2(query, key, value):
    d_k = value.shape[-1]
    weights = softmax(dot(query, key) / math.sqrt(d_k), axis=-1)
    return np.matmul(weights, value), weights


@answer(
    "attention",
    "numpy",
    "weights of a key sum to one",
    "wrong",
    "The softmax runs over the queries, so the weights of each key sum to 1 and not those of each query.",
)
def attention_w3(query, key, value):
    s = dot(key, query) / np.sqrt(key.shape[-1])  # (..., S, T)
    weights = np.swapaxes(softmax(s), -1, -2)
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@answer(
    "attention",
    "numpy",
    "returns the scores",
    "wrong",
    "The second thing that is returned are the scores, not the weights.",
)
def attention_w4(query, key, value):
    weights = dot(query, key) / np.sqrt(query.shape[-1])
    context = softmax(weights) @ value
    return context, weights


@answer(
    "attention",
    "numpy",
    "loop over one batch axis",
    "wrong",
    "A loop over one batch axis: with two dimensions in front the width is read off the wrong axis.",
)
def attention_w5(query, key, value):
    if query.ndim == 2:
        w = softmax(query @ key.T / np.sqrt(query.shape[1]))
        return w @ value, w
    contexts, all_weights = [], []
    for q, k, v in zip(query, key, value):
        w = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[1]))
        contexts.append(w @ v)
        all_weights.append(w)
    return np.array(contexts), np.array(all_weights)


@answer(
    "attention",
    "numpy",
    "divided after the softmax",
    "wrong",
    "The division by the root comes after the softmax, and the weights no longer sum to 1.",
)
def attention_w6(query, key, value):
    similarity = softmax(dot(query, key))
    weights = similarity / np.sqrt(query.shape[-1])
    return weights @ value, weights


@answer("attention", "numpy", "query by query", "right")
def attention_r1(query, key, value):
    rows, contexts = [], []
    for t in range(query.shape[-2]):
        q = query[..., t, :] / np.sqrt(query.shape[-1])
        s = (key @ q[..., None]).squeeze(-1)  # (..., S)
        e = np.exp(s - s.max(-1, keepdims=True))
        w = e / e.sum(-1, keepdims=True)
        rows.append(w)
        contexts.append((w[..., None] * value).sum(-2))
    return np.stack(contexts, -2), np.stack(rows, -2)


# ---------------------------------------------------------------- self_attention


@answer(
    "self_attention",
    "numpy",
    "length of the sequence under the root",
    "wrong",
    "x.shape[-2] is the number of words, not their width.",
)
def self_attention_w1(x):
    n, d = x.shape[-1], x.shape[-2]
    weights = softmax(x @ np.swapaxes(x, -1, -2) / np.sqrt(d))
    return weights @ x, weights


@answer(
    "self_attention", "numpy", "not itself", "wrong", "A word may attend to itself: the diagonal must not be removed."
)
def self_attention_w2(x):
    scores = dot(x, x) / np.sqrt(x.shape[-1])
    T = x.shape[-2]
    scores = np.where(np.eye(T, dtype=bool) & (T > 1), -1e9, scores)
    weights = softmax(scores)
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "columns are averaged",
    "wrong",
    "The weights are right, but the context is built with their columns: the row of the word that asks is meant.",
)
def self_attention_w3(x):
    weights = softmax(dot(x, x) / np.sqrt(x.shape[-1]))
    context = np.einsum("...ij,...id->...jd", weights, x)
    return context, weights


@answer(
    "self_attention",
    "numpy",
    "with a residual",
    "wrong",
    "The word itself is added to its context, as in a transformer block; the task does not.",
)
def self_attention_w4(x):
    d = x.shape[-1]
    weights = softmax(dot(x, x) / d**0.5)
    return x + weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "sum never reset",
    "wrong",
    "The running context is not set back to zero for the next word, so the contexts add up.",
)
def self_attention_w5(x):
    weights = softmax(dot(x, x) / np.sqrt(x.shape[-1]))
    context = np.zeros(x.shape)
    acc = np.zeros_like(x[..., 0, :])
    for i in range(x.shape[-2]):
        for j in range(x.shape[-2]):
            acc = acc + weights[..., i, j, None] * x[..., j, :]
        context[..., i, :] = acc
    return context, weights


@answer("self_attention", "numpy", "fourth roots on both sides", "right")
def self_attention_r1(x):
    y = x * x.shape[-1] ** -0.25
    s = np.einsum("...id,...jd->...ij", y, y)
    logs = s - s.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.log(np.exp(logs).sum(axis=-1, keepdims=True)))
    return np.einsum("...ij,...jd->...id", weights, x), weights


# ---------------------------------------------------------------- attention, torch


@answer(
    "attention",
    "torch",
    "softmax along dim 1",
    "wrong",
    "dim=1 is the axis of the keys for plain matrices, but the axis of the queries in a batch.",
)
def attention_torch_w1(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    weights = torch.softmax(scores, dim=1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "weights through torch.tensor",
    "wrong",
    "torch.tensor of a list of numbers is a new tensor without history: query and key get no gradient.",
)
def attention_torch_w2(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key) / math.sqrt(query.shape[-1])
    weights = torch.tensor(torch.softmax(scores, -1).tolist(), dtype=value.dtype, device=value.device)
    return weights @ value, weights


@answer(
    "attention", "torch", "capital T", "wrong", "key.T turns round all axes: right for a matrix, wrong for a batch."
)
def attention_torch_w3(query, key, value):
    d_k = query.shape[-1]
    p_attn = (query @ key.T / math.sqrt(d_k)).softmax(dim=-1)
    return p_attn @ value, p_attn


@answer(
    "attention",
    "torch",
    "dropout as in the annotated transformer",
    "wrong",
    "Dropout was copied along: the numbers are random, and the weights do not sum to 1.",
)
def attention_torch_w4(query, key, value, dropout=torch.nn.Dropout(0.1)):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = dropout(scores.softmax(dim=-1))
    return torch.matmul(p_attn, value), p_attn


@answer(
    "attention",
    "torch",
    "torch.sqrt of a number",
    "wrong",
    "torch.sqrt wants a tensor; of a plain number like query.shape[-1] it raises a TypeError.",
)
def attention_torch_w5(query, key, value):
    scores = torch.matmul(query, key.mT) / torch.sqrt(query.shape[-1])
    weights = torch.nn.functional.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


@answer(
    "attention",
    "torch",
    "exponentials without a shift",
    "wrong",
    "The softmax is written out without subtracting the maximum, so large scores give inf / inf = nan.",
)
def attention_torch_w6(query, key, value):
    scores = (query @ key.transpose(-1, -2)).div(query.shape[-1] ** 0.5)
    e = scores.exp()
    weights = e / e.sum(dim=-1, keepdim=True)
    return weights.matmul(value), weights


@answer("attention", "torch", "logsumexp and broadcasting", "right")
def attention_torch_r1(query, key, value):
    s = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * query.shape[-1] ** -0.5
    weights = (s - torch.logsumexp(s, dim=-1, keepdim=True)).exp()
    context = (weights.unsqueeze(-1) * value.unsqueeze(-3)).sum(dim=-2)
    return context, weights


# ---------------------------------------------------------------- some more right ones


@answer("softmax", "numpy", "one over the sum of ratios", "right")
def softmax_r2(x, axis=-1):
    x = np.moveaxis(np.asarray(x, dtype=float), axis, -1)
    with np.errstate(over="ignore"):  # a ratio of inf is a weight of 0, as it should be
        ratios = np.exp(x[..., None, :] - x[..., :, None])  # e^(x_k - x_j) at [j, k]
    return np.moveaxis(1.0 / ratios.sum(axis=-1), -1, axis)


@answer("gaussian", "numpy", "mended: three products and a minimum", "right")
def gaussian_r2(query, key, bandwidth=1.0):
    q, k = query / bandwidth, key / bandwidth
    lengths = [np.einsum("...nd,...nd->...n", v, v) for v in (q, k)]
    table = dot(q, k)
    table -= lengths[0][..., :, None] / 2
    table -= lengths[1][..., None, :] / 2
    return np.minimum(table, 0.0)


@answer("self_attention", "numpy", "recursive over the batch", "right")
def self_attention_r2(x):
    if x.ndim > 2:
        pairs = [self_attention_r2(sentence) for sentence in x]
        return tuple(np.stack(part) for part in zip(*pairs))
    width = len(x[0])
    context, weights = [], []
    for word in x:
        scores = [sum(a * b for a, b in zip(word, other)) / math.sqrt(width) for other in x]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        row = [p / sum(powers) for p in powers]
        weights.append(row)
        context.append(sum(w * other for w, other in zip(row, x)))
    return np.array(context), np.array(weights)


@answer("attention", "torch", "one query after the other", "right")
def attention_torch_r2(query, key, value):
    rows = []
    for q in query.unbind(dim=-2):
        rows.append(torch.softmax(torch.einsum("...d,...sd->...s", q / math.sqrt(q.shape[-1]), key), dim=-1))
    weights = torch.stack(rows, dim=-2)
    return torch.stack([(w[..., None] * value).sum(dim=-2) for w in rows], dim=-2), weights
