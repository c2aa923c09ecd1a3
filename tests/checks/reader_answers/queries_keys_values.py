"""Answers to the exercises of chapter 3, queries, keys and values: written from the notebook alone."""

import math

import numpy as np
import torch

ANSWERS = []


def softmax(x, axis=-1):
    """Stand-in for the softmax that the notebook imports."""
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    below = e.sum(axis=axis, keepdims=True)
    return e / np.where(below == 0, 1, below)


def add(name, backend, label, verdict, implementation, sentence=""):
    ANSWERS.append((name, backend, label, verdict, implementation, sentence))


# ------------------------------------------------------------------ scaled_dot


def scaled_dot_w1(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scale = scale or 1 / np.sqrt(query.shape[-1])
    return products * scale


def scaled_dot_w2(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / np.sqrt(products.shape[-1])
    return scale * products


def scaled_dot_w3(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        return products / np.sqrt(query.shape[1])
    return products * scale


def scaled_dot_w4(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    scores = products / np.sqrt(key.shape[-1])
    if scale is not None:
        scores = scores * scale
    return scores


def scaled_dot_w5(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = math.sqrt(query.shape[-1])
    return products / scale


def scaled_dot_w6(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    D = query.shape[-1]
    factor = 1 / D**1 / 2 if scale is None else scale
    return products * factor


def scaled_dot_w7(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    return products / np.sqrt(3) if scale is None else products * scale


def scaled_dot_w8(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    return products / math.isqrt(query.shape[-1]) if scale is None else products * scale


def scaled_dot_w9(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if not isinstance(scale, float):
        scale = query.shape[-1] ** -0.5
    return products * scale


def scaled_dot_w10(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None or scale <= 0:
        scale = query.shape[-1] ** -0.5
    return products * scale


def scaled_dot_w11(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is not None:
        return (scale * query) @ np.swapaxes(scale * key, -1, -2)
    return products / np.sqrt(query.shape[-1])


def scaled_dot_r1(query, key, *, scale=None):
    products = query @ np.swapaxes(key, -1, -2)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    return products * scale


def scaled_dot_r2(query, key, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return np.einsum("...td,...sd->...ts", query * factor, key)


def scaled_dot_r3(query, key, *, scale=None):
    *_, D = key.shape
    factor = {True: 1.0 / D**0.5}.get(scale is None, scale)
    columns = [(query * key[..., j : j + 1, :]).sum(axis=-1) for j in range(key.shape[-2])]
    return np.stack(columns, axis=-1) * factor


add(
    "scaled_dot",
    "numpy",
    "scale-or",
    "wrong",
    scaled_dot_w1,
    "scale=0 is taken for 'not chosen': the scores should be 0",
)
add(
    "scaled_dot",
    "numpy",
    "root-of-S",
    "wrong",
    scaled_dot_w2,
    "divides by the root of the number of keys: differs as soon as S != D",
)
add(
    "scaled_dot",
    "numpy",
    "shape-1",
    "wrong",
    scaled_dot_w3,
    "reads the width at axis 1, which is T as soon as a batch stands in front",
)
add(
    "scaled_dot",
    "numpy",
    "scale-on-top",
    "wrong",
    scaled_dot_w4,
    "a chosen scale is multiplied on top of 1/sqrt(D) and not instead of it",
)
add(
    "scaled_dot",
    "numpy",
    "divides-by-scale",
    "wrong",
    scaled_dot_w5,
    "a chosen scale divides the products instead of multiplying them",
)
add(
    "scaled_dot",
    "numpy",
    "precedence",
    "wrong",
    scaled_dot_w6,
    "1 / D ** 1 / 2 is 1/(2D) and not the root: right only for D = 4",
)
add("scaled_dot", "numpy", "root-three", "wrong", scaled_dot_w7, "the root of the example's width 3 is hard-coded")
add(
    "scaled_dot",
    "numpy",
    "isqrt",
    "wrong",
    scaled_dot_w8,
    "the root is rounded down to a whole number: right only for square D",
)
add(
    "scaled_dot",
    "numpy",
    "float-only",
    "wrong",
    scaled_dot_w9,
    "a scale that is a whole number, such as scale=2, is ignored",
)
add(
    "scaled_dot",
    "numpy",
    "positive-only",
    "wrong",
    scaled_dot_w10,
    "a scale of 0 or a negative one is replaced by the default",
)
add(
    "scaled_dot",
    "numpy",
    "scale-on-both",
    "wrong",
    scaled_dot_w11,
    "a chosen scale goes on queries and keys, so that it counts squared",
)
add("scaled_dot", "numpy", "plain", "right", scaled_dot_r1)
add("scaled_dot", "numpy", "einsum", "right", scaled_dot_r2)
add("scaled_dot", "numpy", "columns", "right", scaled_dot_r3)

# ------------------------------------------------------------------ scaled_dot_product_attention, numpy


def sdpa_w1(query, key, value, *, scale=None):
    scores = scaled_dot_r1(query, key)
    return softmax(scores) @ value


def sdpa_w2(query, key, value, *, scale=None):
    scores = scaled_dot_r1(query, key, scale=scale)
    return softmax(scores, axis=-2) @ value


def sdpa_w3(query, key, value, *, scale=None):
    scores = scaled_dot_r1(query, key, scale=scale)
    return softmax(scores, axis=1) @ value


def sdpa_w4(query, key, value, *, scale=None):
    scores = scaled_dot_r1(query, key, scale=scale)
    weights = softmax(scores)
    return weights, weights @ value


def sdpa_w5(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(value.shape[-1]) if scale is None else scale
    return softmax(query @ turned * factor) @ value


def sdpa_w6(query, key, value, *, scale=None):
    turned = key.T
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    return softmax(query @ turned * factor) @ value


def sdpa_w7(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[-1]) if scale is None else scale
    return softmax(query @ turned * factor) @ value


def sdpa_w8(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[0]) if scale is None else scale
    return softmax(query @ turned * factor) @ value


def sdpa_w9(query, key, value, *, scale=None):
    D = query.shape[-1]
    scale = 1 / np.sqrt(D) if scale is None else scale
    weights = softmax(query @ np.swapaxes(key, -1, -2)) * scale
    return weights @ value


def sdpa_w10(query, key, value, *, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * scale
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e / e.sum()) @ value


def sdpa_w11(query, key, value, *, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * scale
    return np.einsum("...ts,...sv->...tv", softmax(scores), value * scale)


def sdpa_w12(query, key, value, *, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * scale
    return np.einsum("...ts,...sv->...sv", softmax(scores), value)


def sdpa_w13(query, key, value, *, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = np.einsum("...td,...sd->...ts", query, key) * scale
    weights = softmax(scores).round(4)
    return weights @ value


def sdpa_w14(query, key, value, *, scale=None):
    length = query.shape[-1] if scale is None else 1 / scale
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(length)
    return softmax(scores) @ value


def sdpa_w15(query, key, value, *, scale=None):
    if scale is None:
        scale = 1 / np.sqrt(query.shape[-1])
    out = np.zeros_like(query)
    width = min(query.shape[-1], value.shape[-1])
    out[..., :width] = (softmax(query @ np.swapaxes(key, -1, -2) * scale) @ value)[..., :width]
    return out


def sdpa_w16(query, key, value, *, scale=None):
    # hers, with the divisor read from the other side, but a loop that stops one key early
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    alpha = softmax(query @ np.swapaxes(key, -1, -2) * scale)
    out = 0
    for j in range(max(1, key.shape[-2] - 1)):
        out = out + alpha[..., j : j + 1] * value[..., j : j + 1, :]
    return out


def sdpa_w17(query, key, value, *, scale=None):
    # hers, mended for the pair of sizes at hand
    T, S, D = query.shape[-2], key.shape[-2], query.shape[-1]
    factor = 1 / np.sqrt(min(S, D)) if scale is None else scale
    return softmax(query @ np.swapaxes(key, -1, -2) * factor) @ value


def sdpa_w18(query, key, value, *, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = np.tensordot(query, key, axes=(-1, -1)) * scale
    return np.tensordot(softmax(scores), value, axes=(-1, -2))


def sdpa_r1(query, key, value, *, scale=None):
    return softmax(scaled_dot_r1(query, key, scale=scale)) @ value


def sdpa_r2(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    s = factor * np.einsum("...td,...sd->...ts", query, key)
    log_weights = s - np.logaddexp.reduce(s, axis=-1, keepdims=True)
    return np.einsum("...ts,...sv->...tv", np.exp(log_weights), value)


def sdpa_r3(query, key, value, *, scale=None):
    leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    q = np.broadcast_to(query, leading + query.shape[-2:])
    k = np.broadcast_to(key, leading + key.shape[-2:])
    v = np.broadcast_to(value, leading + value.shape[-2:])
    T, D = q.shape[-2:]
    if scale is None:
        scale = 1 / math.sqrt(D)
    out = np.empty(leading + (T, v.shape[-1]), dtype=np.result_type(q, k, v, np.float32))
    for place in np.ndindex(*leading):
        for t in range(T):
            scores = [scale * float(q[place][t] @ row) for row in k[place]]
            top = max(scores)
            e = np.array([math.exp(score - top) for score in scores])
            out[place][t] = (e[:, None] * v[place]).sum(0) / e.sum()
    return out


def sdpa_r4(query, key, value, *, scale=None):
    turned = np.swapaxes(key, -1, -2)  # (..., D, S)
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    alpha = softmax(query @ turned * factor)
    return alpha @ value


def sdpa_r5(query, key, value, mask=None, dropout=None, *, scale=None):
    """As in the Annotated Transformer, with its optional arguments."""
    d_k = query.shape[-1]
    scores = np.matmul(query, np.swapaxes(key, -2, -1)) * (1 / math.sqrt(d_k) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    p_attn = softmax(scores)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return np.matmul(p_attn, value)


def sdpa_r6(query, key, value, *, scale=None):
    """One key at a time, with a running maximum."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    top = below = above = None
    for j in range(key.shape[-2]):
        s = factor * (query * key[..., j : j + 1, :]).sum(axis=-1, keepdims=True)
        v = value[..., j : j + 1, :]
        if top is None:
            top, below, above = s, np.ones_like(s), np.ones_like(s) * v
            continue
        new = np.maximum(top, s)
        fade, e = np.exp(top - new), np.exp(s - new)
        below, above, top = fade * below + e, fade * above + e * v, new
    return above / below


N = "scaled_dot_product_attention"
add(
    N,
    "numpy",
    "scale-not-passed-on",
    "wrong",
    sdpa_w1,
    "the argument scale never arrives at scaled_dot: wrong for every chosen scale",
)
add(
    N,
    "numpy",
    "softmax-over-queries",
    "wrong",
    sdpa_w2,
    "the softmax runs over the queries, so the weights of a query do not sum to 1",
)
add(
    N,
    "numpy",
    "softmax-axis-1",
    "wrong",
    sdpa_w3,
    "axis 1 is the keys only without a batch; with one it is the queries",
)
add(
    N,
    "numpy",
    "returns-pair",
    "wrong",
    sdpa_w4,
    "returns the pair (weights, output) where the output alone is asked for",
)
add(N, "numpy", "root-of-D_v", "wrong", sdpa_w5, "divides by the root of the width of the values: wrong if D_v != D")
add(
    N,
    "numpy",
    "key-T",
    "wrong",
    sdpa_w6,
    "key.T turns all axes around, so with a batch it fails or pairs the wrong sentences",
)
add(
    N,
    "numpy",
    "colleague",
    "wrong",
    sdpa_w7,
    "the colleague's function unchanged: after the swap the last axis is S, so it divides by the root of S",
)
add(
    N,
    "numpy",
    "turned-shape-0",
    "wrong",
    sdpa_w8,
    "reads D at axis 0 of the swapped keys, which is the batch if there is one",
)
add(
    N,
    "numpy",
    "scale-after-softmax",
    "wrong",
    sdpa_w9,
    "the factor comes after the softmax, so the weights sum to the factor",
)
add(
    N,
    "numpy",
    "sum-of-all",
    "wrong",
    sdpa_w10,
    "the exponentials are divided by the sum of the whole array: wrong for more than one query",
)
add(N, "numpy", "values-scaled", "wrong", sdpa_w11, "the factor is applied to the values a second time")
add(
    N,
    "numpy",
    "einsum-letters",
    "wrong",
    sdpa_w12,
    "the einsum sums over the queries and keeps the keys, so the values are not averaged",
)
add(N, "numpy", "rounded-weights", "wrong", sdpa_w13, "the weights are rounded to four digits, as in the example")
add(
    N,
    "numpy",
    "root-of-scale",
    "wrong",
    sdpa_w14,
    "a chosen scale goes under the root as well: right for None and 1 only",
)
add(
    N,
    "numpy",
    "shaped-like-query",
    "wrong",
    sdpa_w15,
    "the output gets the width of the query: cut or padded if D_v != D",
)
add(N, "numpy", "last-key-lost", "wrong", sdpa_w16, "the weighted sum stops before the last key")
add(
    N,
    "numpy",
    "min-of-S-and-D",
    "wrong",
    sdpa_w17,
    "takes the smaller of S and D, which stops her hundredfold example from failing but is wrong for S < D",
)
add(
    N,
    "numpy",
    "tensordot",
    "wrong",
    sdpa_w18,
    "tensordot pairs every batch with every other: right only without leading dimensions",
)
add(N, "numpy", "plain", "right", sdpa_r1)
add(N, "numpy", "logaddexp-einsum", "right", sdpa_r2)
add(N, "numpy", "loops", "right", sdpa_r3)
add(N, "numpy", "colleague-mended", "right", sdpa_r4)
add(N, "numpy", "annotated-transformer", "right", sdpa_r5)
add(N, "numpy", "running-maximum", "right", sdpa_r6)

# ------------------------------------------------------------------ attention_shapes


def shapes_w1(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, T, S), (*leading, S, D_v)


def shapes_w2(query, key, value):
    *leading, T, D = query
    S, D_v = value[-2:]
    return (*leading, T, S), (*leading, T, D)


def shapes_w3(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (T, S), (T, D_v)


def shapes_w4(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return leading + [T, S], leading + [T, D_v]


def shapes_w5(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, T, D_v), (*leading, T, S)


def shapes_w6(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, S, T), (*leading, T, D_v)


def shapes_w7(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (leading, T, S), (leading, T, D_v)


def shapes_w8(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading[:1], T, S), (*leading[:1], T, D_v)


def shapes_w9(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, T, T), (*leading, T, D_v)


def shapes_w10(query, key, value):
    return (*query[:-1], key[0]), (*query[:-1], value[-1])


def shapes_w11(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading[::-1], T, S), (*leading[::-1], T, D_v)


def shapes_r1(query, key, value):
    *leading, T, _ = query
    S, D_v = value[-2:]
    return (*leading, T, S), (*leading, T, D_v)


def shapes_r2(query, key, value):
    return tuple(query[:-1]) + (key[-2],), tuple(query[:-1]) + (value[-1],)


def shapes_r3(query, key, value):
    q, v = (np.lib.stride_tricks.as_strided(np.zeros(()), s, (0,) * len(s)) for s in (query, value))
    front = q.shape[:-2]
    scores = front + (q.shape[-2], v.shape[-2])
    return scores, scores[:-1] + (v.shape[-1],)


N = "attention_shapes"
add(N, "numpy", "output-per-key", "wrong", shapes_w1, "the output gets a row for each key instead of each query")
add(
    N,
    "numpy",
    "output-width-D",
    "wrong",
    shapes_w2,
    "the output gets the width of the queries instead of that of the values",
)
add(
    N, "numpy", "leading-lost", "wrong", shapes_w3, "what stands in front is dropped: wrong as soon as there is a batch"
)
add(N, "numpy", "lists", "wrong", shapes_w4, "returns lists, where the text says tuples")
add(N, "numpy", "order", "wrong", shapes_w5, "the output comes first, the scores second")
add(N, "numpy", "transposed", "wrong", shapes_w6, "the scores are (S, T): wrong if T != S")
add(
    N, "numpy", "leading-not-unpacked", "wrong", shapes_w7, "the list of leading sizes stands in the tuple as one entry"
)
add(N, "numpy", "one-leading", "wrong", shapes_w8, "only the first leading size is kept: wrong with batch and heads")
add(
    N, "numpy", "self-attention", "wrong", shapes_w9, "the scores are (T, T): wrong if there are more keys than queries"
)
add(N, "numpy", "key-0", "wrong", shapes_w10, "S is read at place 0 of the keys' shape: right only without a batch")
add(
    N,
    "numpy",
    "leading-reversed",
    "wrong",
    shapes_w11,
    "the leading sizes come in reversed order: wrong for two unequal ones",
)
add(N, "numpy", "plain", "right", shapes_r1)
add(N, "numpy", "slices", "right", shapes_r2)
add(N, "numpy", "empty-arrays", "right", shapes_r3)

# ------------------------------------------------------------------ attention_cost


def cost_w1(T, S, D, D_v):
    return T * S * D + T * S * D, T * S


def cost_w2(T, S, D, D_v):
    return T * S * D * D_v, T * S


def cost_w3(T, S, D, D_v):
    return T * S * D + T * D_v, T * S


def cost_w4(T, S, D, D_v):
    return 2 * T * S * (D + D_v), T * S


def cost_w5(T, S, D, D_v):
    return T * S * (D + D_v), T * T


def cost_w6(T, S, D, D_v):
    return T * S, T * S * (D + D_v)


def cost_w7(T, S, D, D_v):
    return T * S * (D + D_v) + T * S, T * S


def cost_w8(T, S, D, D_v):
    return T * S * D + S * S * D_v, T * S


def cost_w9(T, S, D, D_v):
    return T * S * (D + D_v), T * S + T * D_v


def cost_w10(T, S, D, D_v):
    return T * S * D, T * S * D_v, T * S


def cost_w11(T, S, D, D_v):
    return T * S * (D - 1 + D_v), T * S


def cost_w12(T, S, D, D_v):
    return int(np.int32(T) * np.int32(S) * np.int32(D + D_v)), T * S


def cost_r1(T, S, D, D_v):
    return T * S * (D + D_v), T * S


def cost_r2(T, S, D, D_v):
    per_score, per_number = D, S
    scores, numbers = T * S, T * D_v
    return scores * per_score + numbers * per_number, scores


def cost_r3(T, S, D, D_v):
    def product(rows, inner, columns):
        return math.prod((rows, inner, columns))

    return sum([product(T, D, S), product(T, S, D_v)]), math.prod([T, S])


N = "attention_cost"
add(N, "numpy", "D-twice", "wrong", cost_w1, "the second product is counted with D in place of D_v")
add(N, "numpy", "multiplied", "wrong", cost_w2, "the two products are multiplied together instead of added")
add(N, "numpy", "S-missing", "wrong", cost_w3, "each number of the output takes S multiplications, here it takes one")
add(N, "numpy", "flops", "wrong", cost_w4, "counts additions as well, twice the number of multiplications")
add(N, "numpy", "table-T-T", "wrong", cost_w5, "the table is counted as T times T: wrong if S != T")
add(N, "numpy", "order", "wrong", cost_w6, "returns the two numbers in the wrong order")
add(N, "numpy", "division-counted", "wrong", cost_w7, "the scaling is counted too, though it is left out by the text")
add(N, "numpy", "output-per-key", "wrong", cost_w8, "counts the output with S rows instead of T")
add(N, "numpy", "output-in-memory", "wrong", cost_w9, "counts the numbers of the output along with those of the table")
add(N, "numpy", "three-numbers", "wrong", cost_w10, "returns the two products one by one instead of together")
add(N, "numpy", "additions", "wrong", cost_w11, "counts D - 1 for one score, which is the number of additions")
add(N, "numpy", "int32", "wrong", cost_w12, "computes in 32 bits and overflows for the notebook's own 100,000 words")
add(N, "numpy", "plain", "right", cost_r1)
add(N, "numpy", "in-words", "right", cost_r2)
add(N, "numpy", "prod", "right", cost_r3)

# ------------------------------------------------------------------ scaled_dot_product_attention, torch


def tsdpa_w1(query, key, value, *, scale=None):
    out = sdpa_r1(query.detach().numpy(), key.detach().numpy(), value.detach().numpy(), scale=scale)
    return torch.from_numpy(np.asarray(out))


def tsdpa_w2(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    alpha = torch.softmax(query @ key.transpose(-1, -2) * factor, dim=-1)
    return alpha.detach() @ value


def tsdpa_w3(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    scores = scores - scores.data.max(dim=-1, keepdim=True).values
    e = scores.exp()
    return e / e.data.sum(dim=-1, keepdim=True) @ value


def tsdpa_w4(query, key, value, *, scale=None):
    if not scale:
        scale = 1 / math.sqrt(query.size(-1))
    return torch.softmax(query @ key.transpose(-2, -1) * scale, dim=-1) @ value


def tsdpa_w5(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    out = torch.zeros(*scores.shape[:-1], value.shape[-1])
    for j in range(key.shape[-2]):
        out += torch.softmax(scores, -1)[..., j : j + 1] * value[..., j : j + 1, :]
    return out


def tsdpa_w6(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    return torch.softmax(scores, dim=1) @ value


def tsdpa_w7(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(0, 1) * factor
    return torch.softmax(scores, dim=-1) @ value


def tsdpa_w8(query, key, value, *, scale=None):
    with torch.no_grad():
        factor = query.shape[-1] ** -0.5 if scale is None else scale
        scores = query @ key.mT * factor
    return torch.softmax(scores, dim=-1) @ value


def tsdpa_w9(query, key, value, *, scale=None):
    factor = torch.rsqrt(torch.tensor(query.shape[-2])) if scale is None else scale
    return torch.softmax(query @ key.mT * factor, dim=-1) @ value


def tsdpa_w10(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.tensor((query @ key.mT).tolist(), dtype=query.dtype) * factor
    return torch.softmax(scores, dim=-1) @ value


def tsdpa_w11(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    alpha = torch.softmax((query @ key.mT * factor).half(), dim=-1).to(value.dtype)
    return alpha @ value


def tsdpa_w12(query, key, value, *, scale=None):
    query = query * (query.shape[-1] ** -0.5)
    scores = query @ key.mT
    if scale is not None:
        scores = scores * scale
    return torch.softmax(scores, dim=-1) @ value


def tsdpa_r1(query, key, value, *, scale=None):
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    return torch.softmax(query @ key.transpose(-2, -1) * factor, dim=-1) @ value


def tsdpa_r2(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    s = torch.einsum("...td,...sd->...ts", query, key) * factor
    return torch.einsum("...ts,...sv->...tv", (s - s.logsumexp(-1, keepdim=True)).exp(), value)


def tsdpa_r3(query, key, value, mask=None, dropout=None, *, scale=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1))
    scores = scores / math.sqrt(d_k) if scale is None else scores * scale
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value)


def tsdpa_r4(query, key, value, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    rows = []
    for one in query.unbind(-2):  # (..., D)
        s = (one.unsqueeze(-2) * key).sum(-1) * factor  # (..., S)
        e = torch.exp(s - s.amax(-1, keepdim=True).detach())
        rows.append(((e / e.sum(-1, keepdim=True)).unsqueeze(-1) * value).sum(-2))
    return torch.stack(rows, dim=-2)


N = "scaled_dot_product_attention"
add(N, "torch", "through-numpy", "wrong", tsdpa_w1, "a detour through NumPy: right numbers, no gradients")
add(N, "torch", "weights-detached", "wrong", tsdpa_w2, "the weights are detached, so queries and keys get no gradient")
add(
    N,
    "torch",
    "normaliser-data",
    "wrong",
    tsdpa_w3,
    "the sum that divides is read from .data, so the gradients of queries and keys lack a term; the numbers are right",
)
add(N, "torch", "not-scale", "wrong", tsdpa_w4, "scale=0 is taken for 'not chosen'")
add(
    N,
    "torch",
    "default-dtype-and-inplace",
    "wrong",
    tsdpa_w5,
    "sums into a new float32 tensor: for float64 the result has the wrong dtype and few digits",
)
add(N, "torch", "dim-1", "wrong", tsdpa_w6, "softmax along dim 1 is over the keys only without a batch")
add(N, "torch", "transpose-0-1", "wrong", tsdpa_w7, "transpose(0, 1) turns the keys only without a batch")
add(
    N,
    "torch",
    "scores-no-grad",
    "wrong",
    tsdpa_w8,
    "the scores are computed under no_grad, so queries and keys get no gradient",
)
add(N, "torch", "root-of-T", "wrong", tsdpa_w9, "divides by the root of the number of queries")
add(N, "torch", "tolist", "wrong", tsdpa_w10, "the scores go through a list into a new tensor, which cuts the graph")
add(N, "torch", "half", "wrong", tsdpa_w11, "the softmax is computed in float16: three digits are left")
add(N, "torch", "scale-on-top", "wrong", tsdpa_w12, "a chosen scale comes on top of 1/sqrt(D)")
add(N, "torch", "plain", "right", tsdpa_r1)
add(N, "torch", "logsumexp-einsum", "right", tsdpa_r2)
add(N, "torch", "annotated-transformer", "right", tsdpa_r3)
add(N, "torch", "row-by-row", "right", tsdpa_r4)
