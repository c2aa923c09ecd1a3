"""Answers to the notebook self-attention, as students might write them."""

import math

import numpy as np
import torch
import torch.nn.functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# Stand-ins for what a student has built in earlier tasks.
def _softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _dot(query, key):
    return query @ np.swapaxes(key, -1, -2)


# ---------------------------------------------------------------- softmax


@answer(
    "softmax",
    "numpy",
    "subtract the mean",
    "wrong",
    "subtracts the mean in place of the maximum, so that one large score among small ones still overflows",
)
def softmax_mean(x, axis=-1):
    centred = x - np.mean(x, axis=axis, keepdims=True)
    e = np.exp(centred)
    return e / np.sum(e, axis=axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "double transpose",
    "wrong",
    "transposes before and after the division in place of keepdims: fits the last axis only, not axis=0",
)
def softmax_double_transpose(x, axis=-1):
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    total = e.sum(axis=axis)
    return (e.T / total.T).T


@answer(
    "softmax",
    "numpy",
    "shape insert",
    "wrong",
    "list.insert(-1, 1) puts the new axis before the last one, so the sums stand under the wrong scores",
)
def softmax_insert(x, axis=-1):
    def with_axis(small):
        shape = list(small.shape)
        shape.insert(axis, 1)
        return small.reshape(shape)

    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / with_axis(e.sum(axis))


@answer(
    "softmax",
    "numpy",
    "buffer like x",
    "wrong",
    "the result is stored in an array of the dtype of x: for integer scores all weights are cut to 0 or 1",
)
def softmax_empty_like(x, axis=-1):
    moved = np.moveaxis(x, axis, -1)
    out = np.empty_like(moved)
    for index in np.ndindex(moved.shape[:-1]):
        row = moved[index]
        e = np.exp(row - row.max())
        out[index] = e / e.sum()
    return np.moveaxis(out, -1, axis)


@answer(
    "softmax",
    "numpy",
    "clip at 700",
    "wrong",
    "clips the scores against overflow in place of shifting them: 1000 and 1000 + log 3 become equal",
)
def softmax_clip(x, axis=-1):
    e = np.exp(np.clip(x, -700, 700))
    # halve first, so that the sum cannot overflow
    e = e / e.max(axis, keepdims=True)
    return e / e.sum(axis, keepdims=True)


@answer(
    "softmax",
    "numpy",
    "one maximum for all",
    "wrong",
    "one maximum for the whole array: a row that lies far below it has only zeros, and 0 / 0 is nan",
)
def softmax_global(x, axis=-1):
    stable = np.exp(x - np.amax(x))
    return np.divide(stable, np.expand_dims(stable.sum(axis), axis))


@answer("softmax", "numpy", "logaddexp", "right")
def softmax_logaddexp(x, axis=-1):
    log_total = np.logaddexp.reduce(x, axis=axis, keepdims=True)
    return np.exp(x - log_total)


# ---------------------------------------------------------------- dot


@answer(
    "dot",
    "numpy",
    "tensordot",
    "wrong",
    "tensordot pairs every batch entry with every other one: the result has the batch twice",
)
def dot_tensordot(query, key):
    return np.tensordot(query, key, axes=([-1], [-1]))


@answer(
    "dot",
    "numpy",
    "sum without axis",
    "wrong",
    "np.sum without an axis adds up the batch as well, so all batch entries get the same scores",
)
def dot_loops(query, key):
    T, S = query.shape[-2], key.shape[-2]
    scores = np.zeros(query.shape[:-2] + (T, S))
    for i in range(T):
        for j in range(S):
            scores[..., i, j] = np.sum(query[..., i, :] * key[..., j, :])
    return scores


@answer(
    "dot",
    "numpy",
    "reshape as transpose",
    "wrong",
    "reshape to (..., D, S) does not transpose: it deals out the numbers in another order",
)
def dot_reshape(query, key):
    *front, S, D = key.shape
    return np.matmul(query, key.reshape(*front, D, S))


@answer("dot", "numpy", "outer products", "right")
def dot_outer(query, key):
    columns = (query[..., :, d, None] * key[..., None, :, d] for d in range(query.shape[-1]))
    total = next(columns)
    for table in columns:
        total = total + table
    return total


# ---------------------------------------------------------------- cosine


@answer(
    "cosine",
    "numpy",
    "zero by sum",
    "wrong",
    "takes a vector for zero if its components sum to 0, so (1, -1) has no direction",
)
def cosine_zero_by_sum(query, key):
    def unit(v):
        length = np.sqrt((v**2).sum(-1, keepdims=True))
        is_zero = np.isclose(v.sum(-1, keepdims=True), 0)
        return np.where(is_zero, 0.0, v / np.where(length == 0, 1, length))

    return unit(query) @ np.swapaxes(unit(key), -1, -2)


@answer(
    "cosine",
    "numpy",
    "norm with ord 1",
    "wrong",
    "the second argument of norm is the order, not the axis: these are sums of absolute values",
)
def cosine_l1(query, key):
    nq = np.linalg.norm(query, 1, axis=-1, keepdims=True)
    nk = np.linalg.norm(key, 1, axis=-1, keepdims=True)
    nq[nq == 0] = 1
    nk[nk == 0] = 1
    return (query / nq) @ np.swapaxes(key / nk, -1, -2)


@answer(
    "cosine",
    "numpy",
    "one zero spoils all",
    "wrong",
    "a single zero vector makes the function return zeros for all pairs",
)
def cosine_all_or_nothing(query, key):
    lengths_q = np.linalg.norm(query, axis=-1)
    lengths_k = np.linalg.norm(key, axis=-1)
    scores = _dot(query, key)
    if (lengths_q == 0).any() or (lengths_k == 0).any():
        return np.zeros_like(scores)
    return scores / (lengths_q[..., :, None] * lengths_k[..., None, :])


@answer(
    "cosine",
    "numpy",
    "length at least one",
    "wrong",
    "np.maximum(length, 1) guards against zero, but leaves all vectors shorter than 1 as they are",
)
def cosine_max_one(query, key):
    q = query / np.maximum(np.linalg.norm(query, axis=-1, keepdims=True), 1.0)
    k = key / np.maximum(np.linalg.norm(key, axis=-1, keepdims=True), 1.0)
    return np.einsum("...td,...sd->...ts", q, k)


@answer(
    "cosine",
    "numpy",
    "hypot of two",
    "wrong",
    "the lengths are those of the first two numbers only: it fits vectors of width 2, as in the example",
)
def cosine_hypot(query, key):
    q_len = np.hypot(query[..., 0], query[..., 1])[..., :, None]
    k_len = np.hypot(key[..., 0], key[..., 1])[..., None, :]
    below = q_len * k_len
    above = _dot(query, key)
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)


@answer(
    "cosine",
    "numpy",
    "colon for ellipsis",
    "wrong",
    "q_len[:, None] puts the new axis second: with a batch the lengths belong to other queries",
)
def cosine_colon(query, key):
    q_len = np.sqrt(np.sum(query**2, axis=-1))
    k_len = np.sqrt(np.sum(key**2, axis=-1))
    q_len = np.where(q_len > 0, q_len, 1)
    k_len = np.where(k_len > 0, k_len, 1)
    return _dot(query, key) / q_len[:, None] / k_len[..., None, :]


@answer("cosine", "numpy", "unit vectors by einsum", "right")
def cosine_einsum(query, key):
    def shrink(v):
        largest = np.abs(v).max(axis=-1, keepdims=True)
        v = v / (largest + (largest == 0))
        square = np.einsum("...d,...d->...", v, v)
        factor = np.zeros_like(square)
        np.power(square, -0.5, out=factor, where=square > 0)
        return v * factor[..., None]

    return np.clip(np.einsum("...td,...sd->...ts", shrink(query), shrink(key)), -1, 1)


# ---------------------------------------------------------------- gaussian, tasks 6 and 7


@answer(
    "gaussian",
    "numpy",
    "precedence",
    "wrong",
    "/ 2 * bandwidth**2 multiplies by the square of the bandwidth in place of dividing by it",
)
def gaussian_precedence(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    squared = np.sum(differences**2, axis=-1)
    return -squared / 2 * bandwidth**2


@answer(
    "gaussian",
    "numpy",
    "square of the sum",
    "wrong",
    "adds up the differences before squaring, so that opposite signs cancel",
)
def gaussian_square_of_sum(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -np.square(differences.sum(-1)) / (2 * bandwidth**2)


@answer(
    "gaussian",
    "numpy",
    "two inside the square",
    "wrong",
    "squares 2h as a whole, so the distances are halved twice over",
)
def gaussian_two_inside(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    norm = np.linalg.norm(differences, axis=-1)
    return -((norm / (2 * bandwidth)) ** 2)


@answer(
    "gaussian",
    "numpy",
    "log density",
    "wrong",
    "adds the log of the normalising factor of the bell curve, which the formula does not have",
)
def gaussian_log_density(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    exponent = -0.5 * (differences / bandwidth) ** 2
    return exponent.sum(-1) - math.log(bandwidth * math.sqrt(2 * math.pi))


@answer(
    "gaussian",
    "numpy",
    "mended, half gone",
    "wrong",
    "puts the 2 before the product and takes it away below the fraction: all scores are doubled",
)
def gaussian_half_gone(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    apart = length_of_query + length_of_key - 2 * _dot(query, key)
    return -apart


@answer(
    "gaussian",
    "numpy",
    "mended, bandwidth left on product",
    "wrong",
    "renames the scaled vectors, but multiplies the unscaled ones: only right for bandwidth 1",
)
def gaussian_unscaled_product(query, key, bandwidth=1.0):
    q, k = query / bandwidth, key / bandwidth
    apart = (q**2).sum(-1)[..., :, None] + (k**2).sum(-1)[..., None, :] - 2 * _dot(query, key)
    return -apart / 2


@answer(
    "gaussian",
    "numpy",
    "mended, lengths not squared",
    "wrong",
    "takes the lengths in place of their squares, so this is no multiplied-out square",
)
def gaussian_norms(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    nq = np.linalg.norm(query, axis=-1, keepdims=True)
    nk = np.linalg.norm(key, axis=-1, keepdims=True)
    return -(nq + np.swapaxes(nk, -1, -2) - 2 * _dot(query, key)) / 2


@answer("gaussian", "numpy", "mended, centred", "right")
def gaussian_centred(query, key, bandwidth=1.0):
    centre = key.mean(axis=-2, keepdims=True)
    q, k = (query - centre) / bandwidth, (key - centre) / bandwidth
    half_q = 0.5 * np.einsum("...td,...td->...t", q, q)[..., :, None]
    half_k = 0.5 * np.einsum("...sd,...sd->...s", k, k)[..., None, :]
    return np.minimum(_dot(q, k) - half_q - half_k, 0)


# ---------------------------------------------------------------- attention


@answer(
    "attention",
    "numpy",
    "len of first row",
    "wrong",
    "len(query[0]) is the width only without a batch; with one it is the number of queries",
)
def attention_len(query, key, value):
    width = len(query[0])
    weights = _softmax(_dot(query, key) / np.sqrt(width))
    return weights @ value, weights


@answer(
    "attention",
    "numpy",
    "mean after weighting",
    "wrong",
    "takes the mean of the weighted values: the weights sum to 1 already, so this divides by S once more",
)
def attention_mean(query, key, value):
    weights = _softmax(_dot(query, key) / math.sqrt(query.shape[-1]))
    weighted = weights[..., :, :, None] * value[..., None, :, :]
    return weighted.mean(axis=-2), weights


@answer(
    "attention",
    "numpy",
    "scores returned",
    "wrong",
    "the softmax is only in the line of the context; what is returned second are the scores",
)
def attention_scores(query, key, value):
    weights = _dot(query, key) * query.shape[-1] ** -0.5
    context = _softmax(weights) @ value
    return context, weights


@answer(
    "attention",
    "numpy",
    "naive exponential",
    "wrong",
    "writes the softmax again without the shift by the maximum: large scores overflow to nan",
)
def attention_naive(query, key, value):
    s = np.exp(np.einsum("...td,...sd->...ts", query, key) / np.sqrt(key.shape[-1]))
    s /= s.sum(-1, keepdims=True)
    return np.einsum("...ts,...sv->...tv", s, value), s


@answer(
    "attention",
    "numpy",
    "queries of length one",
    "wrong",
    "divides each query by its length in place of the root of the width",
)
def attention_unit_queries(query, key, value):
    scores = _dot(query, key) / np.linalg.norm(query, axis=-1, keepdims=True)
    weights = _softmax(scores)
    return weights @ value, weights


@answer("attention", "numpy", "one key after the other", "right")
def attention_online(query, key, value):
    root = math.sqrt(query.shape[-1])
    scores = [(query * key[..., j : j + 1, :]).sum(-1) / root for j in range(key.shape[-2])]
    best = scores[0]
    for s in scores[1:]:
        best = np.maximum(best, s)
    shares = [np.exp(s - best) for s in scores]
    total = sum(shares)
    context = sum(share[..., None] * value[..., j : j + 1, :] for j, share in enumerate(shares)) / total[..., None]
    return context, np.stack([share / total for share in shares], axis=-1)


# ---------------------------------------------------------------- self_attention


@answer(
    "self_attention",
    "numpy",
    "weights of the last sentence",
    "wrong",
    "the loop over the batch collects the contexts, but keeps only the weights of the last sentence",
)
def self_attention_last(x):
    if x.ndim == 2:
        weights = _softmax(x @ x.T / np.sqrt(x.shape[1]))
        return weights @ x, weights
    contexts = []
    for sentence in x:
        context, weights = self_attention_last(sentence)
        contexts.append(context)
    return np.stack(contexts), weights


@answer(
    "self_attention",
    "numpy",
    "not with itself",
    "wrong",
    "forbids each word to look at itself; every position attends to every position, the own one too",
)
def self_attention_no_self(x):
    scores = _dot(x, x) / np.sqrt(x.shape[-1])
    scores = scores + np.where(np.eye(x.shape[-2], dtype=bool), -1e9, 0.0)
    weights = _softmax(scores)
    return weights @ x, weights


@answer(
    "self_attention",
    "numpy",
    "context of the keys",
    "wrong",
    "sums over the words that ask in place of those that are asked: the weights are used transposed",
)
def self_attention_transposed(x):
    weights = _softmax(np.einsum("...id,...jd->...ij", x, x) / np.sqrt(x.shape[-1]))
    context = np.einsum("...ij,...id->...jd", weights, x)
    return context, weights


@answer(
    "self_attention",
    "numpy",
    "with residual",
    "wrong",
    "adds x to the context as a transformer block does; the context is the weighted sum alone",
)
def self_attention_residual(x):
    def attend(q, k, v):
        w = _softmax(_dot(q, k) / math.sqrt(q.shape[-1]))
        return w @ v, w

    mixed, w = attend(x, x, x)
    return x + mixed, w


# ---------------------------------------------------------------- attention, torch


@answer(
    "attention",
    "torch",
    "exp in place",
    "wrong",
    "divides in place what exp_ has kept for its gradient: backward raises a RuntimeError",
)
def attention_torch_in_place(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores - scores.max(dim=-1, keepdim=True).values
    weights.exp_()
    weights /= weights.sum(-1, keepdim=True)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "dim 1",
    "wrong",
    "softmax over dim=1: these are the keys only without a batch, with one they are the queries",
)
def attention_torch_dim1(query, key, value):
    d_k = query.size(-1)
    p_attn = F.softmax(torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k), dim=1)
    return torch.matmul(p_attn, value), p_attn


@answer(
    "attention",
    "torch",
    "dropout",
    "wrong",
    "drops a tenth of the weights at random and enlarges the others: nothing in the text asks for it",
)
def attention_torch_dropout(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key) / math.sqrt(query.shape[-1])
    weights = F.dropout(F.softmax(scores, dim=-1), p=0.1)
    return weights @ value, weights


@answer(
    "attention",
    "torch",
    "no_grad scores",
    "wrong",
    "the scores are computed under no_grad, so that query and key get no gradient",
)
def attention_torch_no_grad(query, key, value):
    with torch.no_grad():
        weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@answer("attention", "torch", "maximum detached", "right")
def attention_torch_detached_max(query, key, value):
    quarter = query.shape[-1] ** -0.25
    scores = (query * quarter) @ (key * quarter).transpose(-1, -2)
    e = (scores - scores.amax(-1, keepdim=True).detach()).exp()
    total = e.sum(-1, keepdim=True)
    return (e @ value) / total, e / total
