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


# Stand-in for attnlib.softmax, and the student's (right) scaled_dot.
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def scaled_dot(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    return products / np.sqrt(query.shape[-1]) if scale is None else products * scale


# ---------------------------------------------------------------- scaled_dot


@answer(
    "scaled_dot",
    "numpy",
    "scale or default",
    "wrong",
    "0 counts as false, so scale=0 is treated as if nobody had chosen.",
)
def scaled_dot_w1(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    return products * (scale or query.shape[-1] ** -0.5)


@answer("scaled_dot", "numpy", "second axis", "wrong", "shape[1] is the width only if there is no batch in front.")
def scaled_dot_w2(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[1])
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "scale on top of the root",
    "wrong",
    "A chosen scale is multiplied in addition to the division by the root.",
)
def scaled_dot_w3(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    D = query.shape[-1]
    scores = products / np.sqrt(D)
    if scale is not None:
        scores = scores * scale
    return scores


@answer(
    "scaled_dot", "numpy", "width of the table", "wrong", "products.shape[-1] is the number of keys, not the width."
)
def scaled_dot_w4(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(products.shape[-1]) if scale is None else scale
    return factor * products


@answer(
    "scaled_dot",
    "numpy",
    "only positive factors",
    "wrong",
    "A negative factor is a choice as well, and so is 0: only None means that nobody has chosen.",
)
def scaled_dot_w5(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is not None and scale > 0:
        return products * scale
    return products / np.sqrt(key.shape[-1])


@answer(
    "scaled_dot",
    "numpy",
    "scale as a divisor",
    "wrong",
    "The products are divided by scale in place of being multiplied.",
)
def scaled_dot_w6(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scale = np.sqrt(query.shape[-1]) if scale is None else scale
    with np.errstate(all="ignore"):
        return products / scale


_FACTOR = {}


@answer(
    "scaled_dot",
    "numpy",
    "factor kept from the first call",
    "wrong",
    "The factor is computed once and kept, so later calls with another width use the root of the first.",
)
def scaled_dot_w7(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = _FACTOR.setdefault("default", 1 / np.sqrt(query.shape[-1]))
    return products * scale


@answer(
    "scaled_dot",
    "numpy",
    "no return when chosen",
    "wrong",
    "The return stands inside the if: with a chosen scale the function returns None.",
)
def scaled_dot_w8(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scores = products / np.sqrt(query.shape[-1])
        return scores
    else:
        scores = products * scale


@answer("scaled_dot", "numpy", "scaled before the product", "right")
def scaled_dot_r1(query, key, *, scale=None):
    match scale:
        case None:
            fourth_root = math.sqrt(math.sqrt(key.shape[-1]))
            return np.einsum("...td,...sd->...ts", query / fourth_root, key / fourth_root)
        case _:
            return np.einsum("...td,...sd->...ts", query, key * scale)


# ---------------------------------------------------------------- scaled_dot_product_attention (tasks 4 and 5)


@answer(
    "scaled_dot_product_attention", "numpy", "scale not handed on", "wrong", "scale is accepted and then forgotten."
)
def sdpa_w1(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key))
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "softmax over the queries",
    "wrong",
    "The softmax runs over the queries: the weights of each key sum to 1.",
)
def sdpa_w2(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    weights = softmax(scores, axis=-2)
    return weights @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "output and weights",
    "wrong",
    "The output alone is to be returned, not a pair.",
)
def sdpa_w3(query, key, value, *, scale=None):
    weights = softmax(scaled_dot(query, key, scale=scale))
    return weights @ value, weights


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "widths named the wrong way round",
    "wrong",
    "The names of the two widths are mixed up: the root is that of the values' width.",
)
def sdpa_w4(query, key, value, *, scale=None):
    d_k, d_v = value.shape[-1], key.shape[-1]
    if scale is None:
        scale = 1.0 / np.sqrt(d_k)
    return np.matmul(softmax(scaled_dot(query, key, scale=scale)), value)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended: first axis of the turned keys",
    "wrong",
    "turned.shape[0] is the width only without a batch; in a batch it is the number of sentences.",
)
def sdpa_w5(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[0]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended: copies are thrown away",
    "wrong",
    "Keys that occur twice are thrown away, with their values: each copy has to keep its share of the weight.",
)
def sdpa_w6(query, key, value, *, scale=None):
    if key.ndim > 2:
        return np.stack([sdpa_w6(q, k, v, scale=scale) for q, k, v in zip(query, key, value)])
    _, first = np.unique(key, axis=0, return_index=True)
    key, value = key[np.sort(first)], value[np.sort(first)]
    factor = 1 / np.sqrt(key.shape[-1]) if scale is None else scale
    return softmax(query @ key.T * factor) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "mended: weights divided by the number of keys",
    "wrong",
    "The weights are divided by the number of keys, so they no longer sum to 1.",
)
def sdpa_w7(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    alpha = softmax(query @ turned * factor) / turned.shape[-1]
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "own softmax without a shift",
    "wrong",
    "The exponential of a large score overflows, and inf / inf is nan.",
)
def sdpa_w8(query, key, value, *, scale=None):
    with np.errstate(all="ignore"):
        powers = np.exp(scaled_dot(query, key, scale=scale))
        return (powers @ value) / powers.sum(-1, keepdims=True)


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "queries scaled in place",
    "wrong",
    "The queries of the caller are changed by *=.",
)
def sdpa_w9(query, key, value, *, scale=None):
    query *= query.shape[-1] ** -0.5 if scale is None else scale
    return softmax(np.einsum("...td,...sd->...ts", query, key)) @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "scaled twice",
    "wrong",
    "The factor is multiplied into the queries, and then scaled_dot divides by the root once more.",
)
def sdpa_w10(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / np.sqrt(query.shape[-1])
    alpha = softmax(scaled_dot(query * scale, key))
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "numpy",
    "np.dot for the average",
    "wrong",
    "After the softmax np.dot multiplies the weights with the values of all batches: (B, T, B, D_v).",
)
def sdpa_w11(query, key, value, *, scale=None):
    alpha = softmax(scaled_dot(query, key, scale=scale))
    return np.dot(alpha, value)


@answer("scaled_dot_product_attention", "numpy", "mended: running softmax", "right")
def sdpa_r1(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full(query.shape[:-1] + (1,), -np.inf)
    total = np.zeros(top.shape)
    out = np.zeros(query.shape[:-1] + value.shape[-1:])
    for j in range(key.shape[-2]):
        score = factor * np.sum(query * key[..., j : j + 1, :], axis=-1, keepdims=True)
        new_top = np.maximum(top, score)
        shrink, now = np.exp(top - new_top), np.exp(score - new_top)
        total = total * shrink + now
        out = out * shrink + now * value[..., j : j + 1, :]
        top = new_top
    return out / total


@answer("scaled_dot_product_attention", "numpy", "transposed all the way", "right")
def sdpa_r2(query, key, value, *, scale=None):
    def turn(table):
        return np.swapaxes(table, -1, -2)

    scores_t = scaled_dot(key, query, scale=scale)  # (..., S, T); both have the same width
    return turn(turn(value) @ softmax(scores_t, axis=-2))


# ---------------------------------------------------------------- attention_shapes


@answer(
    "attention_shapes",
    "numpy",
    "width of the query in the output",
    "wrong",
    "The output has the width of the values, not of the queries.",
)
def attention_shapes_w1(query, key, value):
    *leading, T, D = query
    S, D_v = value[-2:]
    return (*leading, T, S), (*leading, T, D)


@answer("attention_shapes", "numpy", "lists", "wrong", "Lists are returned in place of tuples.")
def attention_shapes_w2(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores = leading + [T, S]
    output = leading + [T, D_v]
    return scores, output


@answer(
    "attention_shapes",
    "numpy",
    "leading as one entry",
    "wrong",
    "The leading sizes are put in as one list in place of being unpacked.",
)
def attention_shapes_w3(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    if not leading:
        return (T, S), (T, D_v)
    return (leading, T, S), (leading, T, D_v)


@answer("attention_shapes", "numpy", "only the first leading size", "wrong", "Only one dimension in front is kept.")
def attention_shapes_w4(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    batch = tuple(leading[:1])
    return batch + (T, S), batch + (T, D_v)


@answer(
    "attention_shapes",
    "numpy",
    "output has a row for each key",
    "wrong",
    "The output has a row for each query: T rows, not S.",
)
def attention_shapes_w5(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    front = tuple(leading)
    return (*front, T, S), (*front, *value[-2:])


@answer("attention_shapes", "numpy", "slices of the tuples", "right")
def attention_shapes_r1(query, key, value):
    rows = query[:-1]
    return rows + (key[-2],), rows + (value[-1],)


# ---------------------------------------------------------------- attention_cost


@answer(
    "attention_cost",
    "numpy",
    "factor two for both products",
    "wrong",
    "2TSD assumes that the values are as wide as the queries.",
)
def attention_cost_w1(T, S, D, D_v):
    return 2 * T * S * D, T * S


@answer(
    "attention_cost", "numpy", "flops", "wrong", "The additions are counted too; the task counts multiplications only."
)
def attention_cost_w2(T, S, D, D_v):
    scores = T * S * (2 * D - 1)
    output = T * D_v * (2 * S - 1)
    return scores + output, T * S


@answer(
    "attention_cost",
    "numpy",
    "with the projections",
    "wrong",
    "The projections cost nothing here: queries, keys and values are given.",
)
def attention_cost_w3(T, S, D, D_v):
    projections = T * D * D + S * D * D + S * D_v * D_v
    return projections + T * S * D + T * S * D_v, T * S


@answer(
    "attention_cost",
    "numpy",
    "table of the outputs",
    "wrong",
    "The table of scores has T * S numbers; the output is not part of it.",
)
def attention_cost_w4(T, S, D, D_v):
    multiplications = T * S * (D + D_v)
    numbers = T * S + T * D_v
    return multiplications, numbers


@answer(
    "attention_cost", "numpy", "square table", "wrong", "The table is T by T only if there are as many keys as queries."
)
def attention_cost_w5(T, S, D, D_v):
    return T * S * D + T * S * D_v, T**2


@answer("attention_cost", "numpy", "counted in loops", "right")
def attention_cost_r1(T, S, D, D_v):
    table = sum(S for _ in range(T))
    count = 0
    for width in (D, D_v):
        count += table * width
    return count, table


# ---------------------------------------------------------------- scaled_dot_product_attention, torch


@answer(
    "scaled_dot_product_attention",
    "torch",
    "scale or",
    "wrong",
    "scale=0 is a choice (all weights equal), but `or` replaces it.",
)
def sdpa_torch_w1(query, key, value, *, scale=None):
    scale = scale or query.size(-1) ** -0.5
    return torch.softmax(query @ key.mT * scale, dim=-1) @ value


@answer("scaled_dot_product_attention", "torch", "bmm", "wrong", "torch.bmm demands exactly one batch dimension.")
def sdpa_torch_w2(query, key, value, *, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    attn = F.softmax(torch.bmm(query, key.transpose(1, 2)) * scale, dim=-1)
    return torch.bmm(attn, value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "weights detached",
    "wrong",
    "The weights are detached, so query and key get no gradient.",
)
def sdpa_torch_w3(query, key, value, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.einsum("...td,...sd->...ts", query, key) * scale
    alpha = scores.softmax(-1).detach().clone()
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "softmax without dim",
    "wrong",
    "Without dim torch guesses: for three dimensions it takes the first, so the weights sum to 1 over the batch.",
)
def sdpa_torch_w4(query, key, value, *, scale=None):
    import warnings

    factor = 1 / query.shape[-1] ** 0.5 if scale is None else scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alpha = F.softmax(query @ key.transpose(-1, -2) * factor)
    return alpha @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "weights as float",
    "wrong",
    "The weights are turned into float32, and their product with float64 values raises an error.",
)
def sdpa_torch_w5(query, key, value, *, scale=None):
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    alpha = torch.softmax((query @ key.mT * factor).float(), dim=-1)
    return torch.matmul(alpha, value)


@answer(
    "scaled_dot_product_attention",
    "torch",
    "numpy for the scores",
    "wrong",
    "The scores take a detour through NumPy, which fails or loses the gradient of query and key.",
)
def sdpa_torch_w6(query, key, value, *, scale=None):
    q, k = query.detach().cpu().numpy(), key.detach().cpu().numpy()
    scores = torch.from_numpy(scaled_dot(q, k, scale=scale)).to(value)
    return torch.softmax(scores, dim=-1) @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "masked like GPT",
    "wrong",
    "A causal mask was copied along; nobody asked for one.",
)
def sdpa_torch_w7(query, key, value, *, scale=None):
    T, S = query.size(-2), key.size(-2)
    att = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(key.size(-1)) if scale is None else scale)
    att = att.masked_fill(torch.tril(torch.ones(T, S, device=att.device)) == 0, float("-inf"))
    att = F.softmax(att, dim=-1)
    return att @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "root of size(1)",
    "wrong",
    "key.size(1) is the width only for plain matrices; in a batch it is the number of keys.",
)
def sdpa_torch_w8(query, key, value, *, scale=None):
    if scale is None:
        scale = key.size(1) ** -0.5
    weights = torch.softmax(scale * (query @ key.transpose(-2, -1)), -1)
    return weights @ value


@answer(
    "scaled_dot_product_attention",
    "torch",
    "one maximum for all scores",
    "wrong",
    "The maximum of all scores is subtracted: a query whose scores lie far below gets 0/0.",
)
def sdpa_torch_w9(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    s = query @ key.mT * factor
    e = torch.exp(s - s.max().detach())
    return (e / e.sum(-1, keepdim=True)) @ value


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s):
        e = torch.exp(s - s.amax(-1, keepdim=True))
        a = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(a)
        return a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return a * (grad - (grad * a).sum(-1, keepdim=True))


@answer("scaled_dot_product_attention", "torch", "own backward pass", "right")
def sdpa_torch_r1(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return _Softmax.apply(torch.matmul(query * factor, key.transpose(-1, -2))).matmul(value)


# ---------------------------------------------------------------- some more right ones


@answer("scaled_dot_product_attention", "numpy", "mended: flattened batch", "right")
def sdpa_r3(query, key, value, *, scale=None):
    front, T, D = query.shape[:-2], *query.shape[-2:]
    S, D_v = value.shape[-2:]
    factor = scale if scale is not None else 1 / np.sqrt(D)
    out = []
    for q, k, v in zip(query.reshape(-1, T, D), key.reshape(-1, S, D), value.reshape(-1, S, D_v)):
        alpha = softmax(factor * (k @ q.T), axis=0)  # (S, T): the keys run down
        out.append(alpha.T @ v)
    return np.array(out).reshape(*front, T, D_v)


@answer("attention_shapes", "numpy", "one tuple is grown", "right")
def attention_shapes_r2(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return tuple(tuple([*leading, T] + [last]) for last in (S, D_v))


@answer("scaled_dot_product_attention", "torch", "bmm on a flattened batch", "right")
def sdpa_torch_r2(query, key, value, *, scale=None):
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    scores = torch.bmm(q, k.transpose(1, 2))
    scores = scores / q.shape[2] ** 0.5 if scale is None else scores * scale
    out = torch.bmm(scores.log_softmax(dim=2).exp(), v)
    return out.reshape(query.shape[:-1] + value.shape[-1:])
