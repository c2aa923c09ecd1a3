"""Still more answers to the exercises of chapter 3, queries, keys and values: written from the notebook alone."""

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
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def scaled_dot(query, key, *, scale=None):
    """Stand-in: a right answer to task 2, which later tasks may use."""
    if scale is None:
        scale = 1 / np.sqrt(query.shape[-1])
    return query @ np.swapaxes(key, -1, -2) * scale


# ---------------------------------------------------------------- scaled_dot


@answer(
    "scaled_dot",
    "numpy",
    "scale or default",
    "wrong",
    "With scale=0 the factor that was chosen is replaced by the default, since 0 counts as false.",
)
def scaled_dot_w1(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    return products * (scale or query.shape[-1] ** -0.5)


@answer(
    "scaled_dot",
    "numpy",
    "precedence of the minus one half",
    "wrong",
    "D ** -1 / 2 is one over 2 D, not one over the root of D.",
)
def scaled_dot_w2(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)  # (..., T, S)
    D = query.shape[-1]
    if scale is None:
        scale = D**-1 / 2
    return scale * products


@answer(
    "scaled_dot",
    "numpy",
    "root of whole number part",
    "wrong",
    "The root is cut to a whole number, which is right only where D is a square.",
)
def scaled_dot_w3(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        return products / int(np.sqrt(key.shape[-1]))
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "root and scale both",
    "wrong",
    "With a scale the products are still divided by the root, though they should be multiplied by scale and nothing else.",
)
def scaled_dot_w4(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scores = products / np.sqrt(query.shape[-1])
    if scale is not None:
        scores = scores * scale
    return scores


@answer(
    "scaled_dot",
    "numpy",
    "second axis of the shape",
    "wrong",
    "shape[1] is the width only without a batch; with a batch it is the number of queries.",
)
def scaled_dot_w5(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    D = query.shape[1]
    factor = 1 / np.sqrt(D) if scale is None else scale
    return products * factor


@answer("scaled_dot", "numpy", "width out of the size", "wrong", "size divided by T counts the batch into the width.")
def scaled_dot_w6(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    T = query.shape[-2]
    D = query.size // T
    if scale is None:
        scale = 1.0 / np.sqrt(D)
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "only positive scales count",
    "wrong",
    "A scale that is negative or 0 was chosen too, but is ignored.",
)
def scaled_dot_w7(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    use_default = scale is None or not scale > 0
    return products / np.sqrt(query.shape[-1]) if use_default else products * scale


@answer(
    "scaled_dot",
    "numpy",
    "scales the query in place",
    "wrong",
    "The query of whoever called is changed by the in-place multiplication.",
)
def scaled_dot_w8(query, key, *, scale=None):
    query *= 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    products = query @ np.swapaxes(key, -1, -2)
    return products


@answer(
    "scaled_dot",
    "numpy",
    "divides in place, whole numbers crash",
    "wrong",
    "With whole numbers, such as the query (1, 0, 2) of the example, products /= root cannot be stored and raises.",
)
def scaled_dot_w9(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        products /= np.sqrt(query.shape[-1])
    else:
        products = products * scale
    return products


@answer(
    "scaled_dot",
    "numpy",
    "shifted by the maximum",
    "wrong",
    "The scores are shifted, which a softmax would not mind, but the function has to return the scores themselves.",
)
def scaled_dot_w10(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = products * scale
    return scores - scores.max(axis=-1, keepdims=True)


@answer(
    "scaled_dot",
    "numpy",
    "one return only",
    "wrong",
    "The return stands in the branch for None, so with a scale the function returns None.",
)
def scaled_dot_w11(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
        return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "one means not chosen",
    "wrong",
    "scale=1 is a choice (plain dot products), but is treated like None.",
)
def scaled_dot_w12(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scale = 1 if scale is None else scale
    if scale == 1:
        scale = 1 / np.sqrt(query.shape[-1])
    return products * scale


@answer("scaled_dot", "numpy", "einsum over the width", "right")
def scaled_dot_r1(query, key, *, scale=None):
    D = np.shape(key)[-1]
    scores = np.einsum("...td,...sd->...ts", query, key)
    return np.multiply(scores, D**-0.5) if scale is None else np.multiply(scores, scale)


@answer("scaled_dot", "numpy", "one list per query", "right")
def scaled_dot_r2(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    *_, width = query.shape
    columns = []
    for s in range(key.shape[-2]):
        columns.append((query * key[..., s : s + 1, :]).sum(-1))
    scores = np.stack(columns, axis=-1)
    assert scores.shape == products.shape
    if scale is None:
        return scores / math.sqrt(width)
    return scale * scores


# ---------------------------------------------------------------- scaled_dot_product_attention, NumPy


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "scale is not passed on",
    "wrong",
    "scale arrives at this function and goes no further: scaled_dot uses its default.",
)
def sdpa_w1(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key))
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "scale passed by position",
    "wrong",
    "scale of scaled_dot can be given by name only: TypeError.",
)
def sdpa_w2(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale)
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "divided by the root again",
    "wrong",
    "scaled_dot has divided by the root of D already; the formula has the root once.",
)
def sdpa_w3(query, key, value, *, scale=None):
    d = query.shape[-1]
    scores = scaled_dot(query, key, scale=scale)
    weights = softmax(scores / np.sqrt(d)) if scale is None else softmax(scores)
    return weights @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "scores of query and value",
    "wrong",
    "The queries are compared with the values and the keys are averaged: key and value are in each other's place.",
)
def sdpa_w4(query, key, value, *, scale=None):
    scores = scaled_dot(query, value, scale=scale)
    return softmax(scores) @ key


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "softmax over the whole table",
    "wrong",
    "All weights together sum to 1 instead of those of each query.",
)
def sdpa_w5(query, key, value, *, scale=None):
    s = scaled_dot(query, key, scale=scale)
    e = np.exp(s - np.max(s))
    return (e / np.sum(e)) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "sum without keepdims",
    "wrong",
    "The row sums lose their axis, so they are divided into the columns, or do not fit.",
)
def sdpa_w6(query, key, value, *, scale=None):
    s = scaled_dot(query, key, scale=scale)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    alpha = e / e.sum(axis=-1)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "softmax written without the maximum",
    "wrong",
    "exp of a large score overflows and gives nan; the imported softmax does not.",
)
def sdpa_w7(query, key, value, *, scale=None):
    e = np.exp(scaled_dot(query, key, scale=scale))
    return e @ value / e.sum(axis=-1, keepdims=True)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "output as wide as the query",
    "wrong",
    "The output is made D wide, but it has the width of the values.",
)
def sdpa_w8(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key, scale=scale))
    out = np.zeros(query.shape)
    for index in np.ndindex(query.shape[:-1]):
        for s in range(key.shape[-2]):
            out[index] += alpha[index][s] * value[index[:-1]][s]
    return out


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "two cases: matrix or batch",
    "wrong",
    "Only none or one dimension in front is handled; two dimensions in front fail.",
)
def sdpa_w9(query, key, value, *, scale=None):
    if query.ndim == 2:
        return softmax(scaled_dot(query, key, scale=scale)) @ value
    b, t, _ = query.shape
    out = np.empty((b, t, value.shape[-1]))
    for n in range(b):
        out[n] = softmax(scaled_dot(query[n], key[n], scale=scale)) @ value[n]
    return out


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "causal, as in a GPT tutorial",
    "wrong",
    "Later keys are masked though no mask was asked for.",
)
def sdpa_w10(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    T, S = scores.shape[-2:]
    scores = np.where(np.tril(np.ones((T, S))) == 1, scores, -1e9)
    return softmax(scores) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended with len of the last query",
    "wrong",
    "query[-1] is one vector only without a batch; with a batch its length is the number of queries.",
)
def sdpa_w11(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(len(query[-1])) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended with the width of the values",
    "wrong",
    "The root is taken of the width of the values; the sum of a score runs over the width of the keys.",
)
def sdpa_w12(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(value.shape[-1]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended by dropping copies of keys",
    "wrong",
    "Equal keys are kept once, but each copy in the list counts, and its value as well.",
)
def sdpa_w13(query, key, value, *, scale=None):
    # keys that come a hundred times are thrown out
    if key.ndim == 2:
        _, first = np.unique(key, axis=0, return_index=True)
        key, value = key[np.sort(first)], value[np.sort(first)]
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    return softmax(query @ turned * factor) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended on the first axis",
    "wrong",
    "turned.shape[0] is D only without a batch, otherwise it is the size of the batch.",
)
def sdpa_w14(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[0]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "factor outside of the softmax",
    "wrong",
    "The weights are multiplied by the factor after the softmax, and the scores not at all.",
)
def sdpa_w15(query, key, value, *, scale=None):
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    return softmax(query @ np.swapaxes(key, -1, -2)) * factor @ value


@answer("scaled_dot_product_attention", "numpy", "one key at a time, running maximum", "right")
def sdpa_r1(query, key, value, *, scale=None):
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    best = np.full(query.shape[:-1] + (1,), -np.inf)
    total = np.zeros_like(best)
    acc = np.zeros(query.shape[:-1] + value.shape[-1:])
    for s in range(key.shape[-2]):
        score = factor * (query * key[..., s, None, :]).sum(axis=-1, keepdims=True)
        new = np.maximum(best, score)
        keep, add = np.exp(best - new), np.exp(score - new)
        total = keep * total + add
        acc = keep * acc + add * value[..., s, None, :]
        best = new
    return acc / total


class _Head:
    """A class for one head; the function below only calls it."""

    def __init__(self, factor):
        self.factor = factor

    def weights(self, q, k):
        s = (q * self.factor) @ k.swapaxes(-2, -1)
        s = s - s.max(-1)[..., None]
        return np.exp(s - np.log(np.exp(s).sum(-1)[..., None]))

    def __call__(self, q, k, v):
        return np.einsum("...ts,...sv->...tv", self.weights(q, k), v)


@answer("scaled_dot_product_attention", "numpy", "a class with log of the sum", "right")
def sdpa_r2(query, key, value, *, scale=None):
    if scale is None:
        scale = np.power(float(key.shape[-1]), -0.5)
    return _Head(scale)(query, key, value)


# ---------------------------------------------------------------- attention_shapes


@answer(
    "attention_shapes",
    "numpy",
    "one list grows for both",
    "wrong",
    "Both names stand for the same list, so the output begins with the shape of the scores.",
)
def attention_shapes_w1(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores = leading
    scores += [T, S]
    output = leading
    output += [T, D_v]
    return tuple(scores), tuple(output)


@answer(
    "attention_shapes",
    "numpy",
    "list plus tuple",
    "wrong",
    "leading is a list, and a list and a tuple cannot be added: TypeError.",
)
def attention_shapes_w2(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return leading + (T, S), leading + (T, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "leading as one element",
    "wrong",
    "The star is missing, so the sizes in front stand in a list inside the tuple.",
)
def attention_shapes_w3(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (leading, T, S), (leading, T, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "output as wide as the query",
    "wrong",
    "The output has the width of the values, not that of the queries.",
)
def attention_shapes_w4(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, T, S), query


@answer(
    "attention_shapes",
    "numpy",
    "batch only in front of the scores",
    "wrong",
    "The output loses the dimensions in front.",
)
def attention_shapes_w5(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores = tuple(leading) + (T, S)
    output = (T, D_v)
    return scores, output


@answer(
    "attention_shapes",
    "numpy",
    "one number in front",
    "wrong",
    "Exactly one dimension in front is taken over: of two or more only the first is left.",
)
def attention_shapes_w6(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    if len(query) > 2:
        return (query[0], T, S), (query[0], T, D_v)
    return (T, S), (T, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "keys by queries",
    "wrong",
    "The rows of the scores belong to the queries: (T, S), not (S, T).",
)
def attention_shapes_w7(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, S, T), (*leading, T, D_v)


@answer("attention_shapes", "numpy", "slices of the shapes", "right")
def attention_shapes_r1(query, key, value):
    front = tuple(query[:-1])
    return front + tuple(key[-2:-1]), front + tuple(value[-1:])


# ---------------------------------------------------------------- attention_cost


@answer(
    "attention_cost",
    "numpy",
    "values times width of the keys",
    "wrong",
    "The weighted sum takes T * S * D_v multiplications; T is missing and D too much.",
)
def attention_cost_w1(T, S, D, D_v):
    return T * S * D + S * D * D_v, T * S


@answer(
    "attention_cost",
    "numpy",
    "additions counted as well",
    "wrong",
    "Only multiplications were asked for; the additions of the sums are counted too.",
)
def attention_cost_w2(T, S, D, D_v):
    scores = T * S * (D + D - 1)
    out = T * D_v * (S + S - 1)
    return scores + out, T * S


@answer(
    "attention_cost",
    "numpy",
    "division counted as well",
    "wrong",
    "The division by the root is to be left out, but counts T * S here.",
)
def attention_cost_w3(T, S, D, D_v):
    table = T * S
    return table * D + table + table * D_v, table


@answer(
    "attention_cost", "numpy", "overflow of 32 bits", "wrong", "With 100000 words the counts do not fit into 32 bits."
)
def attention_cost_w4(T, S, D, D_v):
    T, S, D, D_v = np.array([T, S, D, D_v], dtype=np.int32)
    table = T * S
    return int(table * (D + D_v)), int(table)


@answer(
    "attention_cost",
    "numpy",
    "shape in place of the number",
    "wrong",
    "The second result is the shape of the table, not how many numbers it holds.",
)
def attention_cost_w5(T, S, D, D_v):
    return T * S * D + T * D_v * S, (T, S)


def _product_cost(rows, inner, columns):
    return rows * inner * columns


@answer("attention_cost", "numpy", "both products in one factor", "right")
def attention_cost_r1(T, S, D, D_v):
    cost = _product_cost(T, D, S)
    cost += _product_cost(rows=T, inner=S, columns=D_v)
    return cost, _product_cost(T, 1, S)


# ---------------------------------------------------------------- scaled_dot_product_attention, torch


@answer(
    "scaled_dot_product_attention",
    "torch",
    "softmax without dim",
    "wrong",
    "Without dim torch guesses the axis: the second for tables, but the first for three dimensions.",
)
def attention_torch_w1(query, key, value, *, scale=None):
    import warnings

    scale = query.shape[-1] ** -0.5 if scale is None else scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alpha = F.softmax(query @ key.transpose(-2, -1) * scale)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "weights detached",
    "wrong",
    "The weights are cut off, so that no gradient reaches query and key.",
)
def attention_torch_w2(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    weights = torch.softmax(scale * query @ key.mT, dim=-1).detach()
    return weights @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "transpose of axes 1 and 2",
    "wrong",
    "transpose(1, 2) needs exactly one dimension in front; without a batch it raises.",
)
def attention_torch_w3(query, key, value, *, scale=None):
    d_k = query.size(-1)
    factor = 1 / math.sqrt(d_k) if scale is None else scale
    scores = torch.matmul(query, key.transpose(1, 2)) * factor
    return torch.matmul(torch.softmax(scores, dim=-1), value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "dropout as in a tutorial",
    "wrong",
    "Dropout with its default is active, and changes the output at random.",
)
def attention_torch_w4(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    p_attn = (torch.matmul(query, key.transpose(-2, -1)) * scale).softmax(dim=-1)
    p_attn = F.dropout(p_attn, 0.1)
    return torch.matmul(p_attn, value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "one maximum for the whole table",
    "wrong",
    "One maximum is subtracted from all rows: rows that lie far below it become 0 / 0.",
)
def attention_torch_w5(query, key, value, *, scale=None):
    scale = 1 / query.shape[-1] ** 0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * scale
    e = torch.exp(scores - scores.max())
    return (e / e.sum(-1, keepdim=True)) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "detour through NumPy for the softmax",
    "wrong",
    "The softmax goes through NumPy, which loses the gradients of query and key.",
)
def attention_torch_w6(query, key, value, *, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-1, -2) * float(scale)
    alpha = torch.from_numpy(softmax(scores.detach().cpu().numpy())).to(value)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "new parameters",
    "wrong",
    "Parameters made from the inputs are new leaves: the gradients end there and never reach the inputs.",
)
def attention_torch_w7(query, key, value, *, scale=None):
    query, key, value = (torch.nn.Parameter(x) for x in (query, key, value))
    factor = scale if scale is not None else 1 / math.sqrt(query.shape[-1])
    return torch.softmax(query @ key.transpose(-1, -2) * factor, -1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "number of keys under the root",
    "wrong",
    "size(-2) of the key is the number of keys, not their width.",
)
def attention_torch_w8(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(key.size(-2))
    scores = torch.einsum("...td,...sd->...ts", query, key) * scale
    return torch.einsum("...ts,...sv->...tv", scores.softmax(-1), value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "softmax over the queries",
    "wrong",
    "dim=-2 lets the weights of each key sum to 1 rather than those of each query.",
)
def attention_torch_w9(query, key, value, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    alpha = torch.softmax(query @ key.transpose(-2, -1) * scale, dim=-2)
    return alpha @ value


@answer("scaled_dot_product_attention", "torch", "logsumexp and broadcasting", "right")
def attention_torch_r1(query, key, value, *, scale=None):
    factor = key.size(-1) ** -0.5 if scale is None else scale
    scores = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1).mul(factor)
    scores = scores - scores.amax(-1, keepdim=True).detach()
    log_alpha = scores - scores.logsumexp(dim=-1, keepdim=True)
    return (log_alpha.exp().unsqueeze(-1) * value.unsqueeze(-3)).sum(-2)


@answer("scaled_dot_product_attention", "torch", "query by query, stacked", "right")
def attention_torch_r2(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    rows = []
    for q in query.unbind(-2):
        s = torch.matmul(key, q.unsqueeze(-1)).squeeze(-1) * scale
        e = torch.exp(s - s.amax(-1, keepdim=True).detach())
        w = e / e.sum(-1, keepdim=True)
        rows.append(torch.matmul(w.unsqueeze(-2), value).squeeze(-2))
    return torch.stack(rows, dim=-2)
