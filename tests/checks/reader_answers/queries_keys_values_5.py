"""Answers to the notebook queries, keys and values, as students might write them."""

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


def softmax(x, axis=-1):
    """Stand-in for attnlib.softmax."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _scaled_dot(query, key, *, scale=None):
    """Stand-in for the student's own scaled_dot."""
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    return query @ np.swapaxes(key, -1, -2) * factor


# ---------------------------------------------------------------- scaled_dot


@answer("scaled_dot", "numpy", "power before division", "wrong", "D ** 1 / 2 is D / 2, not the root of D")
def scaled_dot_power(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / (query.shape[-1] ** 1 / 2)
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "positive scales only",
    "wrong",
    "takes a scale of 0 or below for no scale at all; only None means that nobody has chosen",
)
def scaled_dot_positive(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None or scale <= 0:
        return products / np.sqrt(key.shape[-1])
    return products * scale


@answer(
    "scaled_dot", "numpy", "scale of one", "wrong", "takes scale=1 for the default and divides by the root all the same"
)
def scaled_dot_one(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale in (None, 1):
        scale = query.shape[-1] ** -0.5
    return scale * products


@answer(
    "scaled_dot",
    "numpy",
    "whole root",
    "wrong",
    "math.isqrt cuts the root to a whole number: right for D = 4 or 9 only",
)
def scaled_dot_isqrt(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    D = key.shape[-1]
    return products / math.isqrt(D) if scale is None else products * scale


@answer(
    "scaled_dot",
    "numpy",
    "root of the second size",
    "wrong",
    "query.shape[1] is the width only without a batch; with one it is T",
)
def scaled_dot_shape1(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    d = query.shape[1]
    return products * (scale if scale is not None else 1 / np.sqrt(d))


@answer("scaled_dot", "numpy", "scale on both sides", "right")
def scaled_dot_both_sides(query, key, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    left = query * math.sqrt(abs(factor))
    right = key * math.copysign(math.sqrt(abs(factor)), factor)
    return np.einsum("...td,...sd->...ts", left, right)


# ---------------------------------------------------------------- scaled_dot_product_attention, tasks 4 and 5


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "axis 1",
    "wrong",
    "softmax over axis 1: the keys without a batch, the queries with one",
)
def sdpa_axis1(query, key, value, *, scale=None):
    weights = softmax(_scaled_dot(query, key, scale=scale), axis=1)
    return weights @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "scale swallowed",
    "wrong",
    "accepts a scale and does not hand it on to scaled_dot",
)
def sdpa_swallowed(query, key, value, *, scale=None):
    def weights():
        return softmax(_scaled_dot(query, key))

    return weights() @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "divided once more",
    "wrong",
    "scaled_dot has divided by the root already; here it is done a second time",
)
def sdpa_twice(query, key, value, *, scale=None):
    scores = _scaled_dot(query, key, scale=scale)
    if scale is None:
        scores = scores / np.sqrt(query.shape[-1])
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "np.dot",
    "wrong",
    "np.dot of two stacks pairs every batch entry with every other one",
)
def sdpa_npdot(query, key, value, *, scale=None):
    A = softmax(_scaled_dot(query, key, scale=scale))
    return np.dot(A, value)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "divided by the largest",
    "wrong",
    "divides the exponentials by the largest of them: the weights of a query do not sum to 1",
)
def sdpa_largest(query, key, value, *, scale=None):
    e = np.exp(_scaled_dot(query, key, scale=scale))
    return e / e.max(axis=-1, keepdims=True) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "zip of the rows",
    "wrong",
    "zip walks over queries and keys together: each query meets one key only, and the rest is lost",
)
def sdpa_zip(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = []
    for q, k in zip(np.moveaxis(query, -2, 0), np.moveaxis(key, -2, 0)):
        scores.append((q * k).sum(-1) * factor)
    weights = softmax(np.stack(scores, axis=-1))
    return weights[..., None] * value[..., : weights.shape[-1], :]


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "both returned",
    "wrong",
    "returns output and weights; the task asks for the output alone",
)
def sdpa_both(query, key, value, *, scale=None):
    weights = softmax(_scaled_dot(query, key, scale=scale))
    return weights @ value, weights


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended with turned.shape[0]",
    "wrong",
    "turned.shape[0] is D without a batch only; with one it is the number of batch entries",
)
def mended_first_size(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[0]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended with the width of the values",
    "wrong",
    "takes the width of the values under the root; the scores come from queries and keys of width D",
)
def mended_value_width(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(value.shape[-1]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended, but key.T",
    "wrong",
    "mends the root, but key.T turns all axes around, so a batch no longer fits",
)
def mended_full_transpose(query, key, value, *, scale=None):
    turned = key.T
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended by distinct keys",
    "wrong",
    "takes the root of the number of distinct keys: copies no longer count, but it is still not the width",
)
def mended_distinct(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    distinct = len(np.unique(key.reshape(-1, key.shape[-1]), axis=0))
    factor = 1 / np.sqrt(distinct) if scale is None else scale
    return softmax(query @ turned * factor) @ value


@answer("scaled_dot_product_attention", "numpy", "query by query", "right")
def sdpa_query_by_query(query, key, value, *, scale=None):
    factor = scale if scale is not None else math.pow(key.shape[-1], -0.5)
    rows = []
    for i in range(query.shape[-2]):
        s = (key * query[..., i : i + 1, :]).sum(axis=-1, keepdims=True) * factor  # (..., S, 1)
        w = np.exp(s - np.logaddexp.reduce(s, axis=-2, keepdims=True))
        rows.append((w * value).sum(axis=-2))
    return np.stack(rows, axis=-2)


# ---------------------------------------------------------------- attention_shapes


@answer(
    "attention_shapes",
    "numpy",
    "list plus tuple",
    "wrong",
    "the starred name is a list, and a list and a tuple do not add: TypeError",
)
def shapes_list(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return leading + (T, S), leading + (T, D_v)


@answer("attention_shapes", "numpy", "first of the batch sizes", "wrong", "keeps only one of the dimensions in front")
def shapes_one_batch(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    if leading:
        B = leading[0]
        return (B, T, S), (B, T, D_v)
    return (T, S), (T, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "batch flattened",
    "wrong",
    "multiplies the dimensions in front into one; they stay as they are",
)
def shapes_flat(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    front = (math.prod(leading),) if leading else ()
    return front + (T, S), front + (T, D_v)


@answer(
    "attention_shapes", "numpy", "output without the batch", "wrong", "forgets the dimensions in front of the output"
)
def shapes_output_bare(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores = *leading, T, S
    output = T, D_v
    return scores, output


@answer("attention_shapes", "numpy", "slices", "right")
def shapes_slices(query, key, value):
    asks = query[:-1]
    return asks + key[-2:-1], asks + value[-1:]


# ---------------------------------------------------------------- attention_cost


@answer(
    "attention_cost",
    "numpy",
    "additions too",
    "wrong",
    "counts the additions as well, 2 D - 1 operations for a score; only multiplications were asked for",
)
def cost_flops(T, S, D, D_v):
    return T * S * (2 * D - 1) + T * D_v * (2 * S - 1), T * S


@answer(
    "attention_cost",
    "numpy",
    "formula of the paper",
    "wrong",
    "the n² d of self-attention: takes the number of queries for that of the keys, and D for D_v",
)
def cost_paper(T, S, D, D_v):
    n = T
    return 2 * n**2 * D, n**2


@answer(
    "attention_cost",
    "numpy",
    "int32",
    "wrong",
    "the products overflow in 32 bits: for 100 000 words the cost comes out wrong",
)
def cost_int32(T, S, D, D_v):
    def product(*sizes):
        return np.prod(np.array(sizes, dtype=np.int32), dtype=np.int32)

    return int(product(T, S, D) + product(T, S, D_v)), int(product(T, S))


@answer(
    "attention_cost",
    "numpy",
    "terms of the output",
    "wrong",
    "takes the width of the values for the number of terms in each number of the output: T D_v² in place of T D_v S",
)
def cost_value_terms(T, S, D, D_v):
    table = T * S
    one_score, one_number = D, D_v
    return table * one_score + T * D_v * one_number, table


@answer("attention_cost", "numpy", "from the shapes", "right")
def cost_shapes(T, S, D, D_v):
    def product(a, b):
        (rows, inner), (inner_too, columns) = a, b
        assert inner == inner_too
        return rows * inner * columns, (rows, columns)

    first, scores = product((T, D), (D, S))
    second, _ = product(scores, (S, D_v))
    return first + second, math.prod(scores)


# ---------------------------------------------------------------- attention, torch


@answer(
    "scaled_dot_product_attention",
    "torch",
    "log_softmax",
    "wrong",
    "log_softmax gives the logarithms of the weights, all negative",
)
def sdpa_torch_log(query, key, value, *, scale=None):
    scale = query.size(-1) ** -0.5 if scale is None else scale
    return F.log_softmax(query @ key.transpose(-1, -2) * scale, dim=-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "copied by torch.tensor",
    "wrong",
    "builds new tensors from lists of numbers: the values are right, and the gradients of all three are lost",
)
def sdpa_torch_copies(query, key, value, *, scale=None):
    q, k, v = (torch.tensor(t.tolist(), dtype=t.dtype, requires_grad=True) for t in (query, key, value))
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    return torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * scale, -1) @ v


@answer(
    "scaled_dot_product_attention",
    "torch",
    "scale or root",
    "wrong",
    "`scale or ...` replaces a scale of 0 by the default; only None means that nobody has chosen",
)
def sdpa_torch_or(query, key, value, *, scale=None):
    factor = scale or 1 / math.sqrt(query.size(-1))
    weights = torch.einsum("...td,...sd->...ts", query, key).mul(factor).softmax(dim=-1)
    return torch.einsum("...ts,...sv->...tv", weights, value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "bmm",
    "wrong",
    "torch.bmm wants exactly one batch dimension: matrices without one, or with two, raise a RuntimeError",
)
def sdpa_torch_bmm(query, key, value, *, scale=None):
    if scale is None:
        scale = 1.0 / math.sqrt(key.size(-1))
    attn = F.softmax(torch.bmm(query, key.transpose(1, 2)) * scale, dim=-1)
    return torch.bmm(attn, value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "small weights removed",
    "wrong",
    "sets weights below a hundredth to 0 without being asked; the others do not sum to 1 then",
)
def sdpa_torch_threshold(query, key, value, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    alpha = torch.softmax(query @ key.mT * scale, dim=-1)
    return torch.where(alpha < 0.01, torch.zeros_like(alpha), alpha) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "maximum over everything",
    "wrong",
    "shifts by one maximum for the whole table: a query with far lower scores gets 0 / 0, which is nan",
)
def sdpa_torch_global_max(query, key, value, *, scale=None):
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = factor * (query @ key.transpose(-1, -2))
    e = torch.exp(scores - scores.max())
    return (e / e.sum(-1, keepdim=True)) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "weights from data",
    "wrong",
    "the weights are made from .data, so no gradient reaches query and key",
)
def sdpa_torch_data(query, key, value, *, scale=None):
    if scale is None:
        scale = math.sqrt(1 / query.size(-1))
    attn = F.softmax(query.data @ key.data.transpose(-2, -1) * scale, dim=-1)
    return attn @ value


@answer("scaled_dot_product_attention", "torch", "logsumexp", "right")
def sdpa_torch_logsumexp(query, key, value, *, scale=None):
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * factor
    alpha = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    return (alpha.unsqueeze(-1) * value.unsqueeze(-3)).sum(-2)
