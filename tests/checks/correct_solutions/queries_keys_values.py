"""Right answers to the exercises of the assignment on queries, keys and values."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from correct_solutions.styles import style, swap


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# scaled_dot ------------------------------------------------------------------------------------------------------


@style("scaled_dot", "divided at the end")
def scaled_dot(query, key, *, scale=None):
    scores = query @ swap(key)
    return scores / np.sqrt(query.shape[-1]) if scale is None else scores * scale


@style("scaled_dot", "the query scaled first")
def scaled_dot_query_first(query, key, *, scale=None):
    scale = key.shape[-1] ** -0.5 if scale is None else scale
    return (query * scale) @ np.moveaxis(key, -1, -2)


@style("scaled_dot", "einsum")
def scaled_dot_einsum(query, key, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    return scale * np.einsum("...td,...sd->...ts", query, key)


@style("scaled_dot", "broadcasting and a mean")
def scaled_dot_mean(query, key, *, scale=None):
    width = query.shape[-1]
    means = (query[..., :, None, :] * key[..., None, :, :]).mean(-1)
    return means * width**0.5 if scale is None else means * width * scale


@style("scaled_dot", "Python loops")
def scaled_dot_loops(query, key, *, scale=None):
    factor = scale if scale is not None else 1 / math.sqrt(len(query[..., 0, :].T))
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(query.shape[:-2]):
        for i, q in enumerate(query[place].tolist()):
            for j, k in enumerate(key[place].tolist()):
                scores[(*place, i, j)] = factor * sum(a * b for a, b in zip(q, k, strict=True))
    return scores


@style("scaled_dot", "both scaled by the root of the factor")
def scaled_dot_roots(query, key, *, scale=None):
    root = math.sqrt(query.shape[-1] ** -0.5 if scale is None else scale)
    return np.matmul(query * root, swap(key * root))


@style("scaled_dot", "its own copy changed in place, float64 inside, cast back")
def scaled_dot_copy(query, key, *, scale=None):
    own = np.array(query, dtype=np.float64)
    own *= 1 / np.sqrt(own.shape[-1]) if scale is None else scale
    return (own @ swap(key)).astype(query.dtype)


@style("scaled_dot", "recursion over the batch")
def scaled_dot_recursive(query, key, **options):
    if query.ndim > 2:
        return np.stack([scaled_dot_recursive(q, k, **options) for q, k in zip(query, key, strict=True)])
    scale = options.get("scale")
    return np.dot(query, key.T) * (len(query[0]) ** -0.5 if scale is None else scale)


@style("scaled_dot", "mT", backend="torch")
def scaled_dot_torch(query, key, *, scale=None):
    return query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)


@style("scaled_dot", "einsum, and a tensor as the divisor", backend="torch")
def scaled_dot_torch_einsum(query, key, *, scale=None):
    scores = torch.einsum("...td,...sd->...ts", query, key)
    return scores / torch.sqrt(torch.tensor(query.shape[-1])) if scale is None else scores.mul(scale)


@style("scaled_dot", "broadcasting and a sum", backend="torch")
def scaled_dot_torch_broadcast(query, key, *, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    return (query.unsqueeze(-2) * key.unsqueeze(-3) * scale).sum(-1)


@style("scaled_dot", "a loop over keys with torch.stack", backend="torch")
def scaled_dot_torch_stack(query, key, *, scale=None):
    columns = [(query * key[..., j, None, :]).sum(-1) for j in range(key.shape[-2])]
    return torch.stack(columns, dim=-1) * (query.shape[-1] ** -0.5 if scale is None else scale)


@style("scaled_dot", "float64 inside, cast back", backend="torch")
def scaled_dot_torch_cast(query, key, *, scale=None):
    scores = torch.matmul(query.double(), key.double().transpose(-2, -1))
    return (scores / math.sqrt(query.size(-1)) if scale is None else scores * scale).to(query.dtype)


# scaled_dot_product_attention ------------------------------------------------------------------------------------


@style("scaled_dot_product_attention", "three lines")
def attention(query, key, value, *, scale=None):
    scores = query @ swap(key) * (1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    return softmax(scores) @ value


@style("scaled_dot_product_attention", "einsum and log-sum-exp")
def attention_einsum(query, key, value, scale=None):
    scores = scaled_dot_einsum(query, key, scale)
    m = scores.max(-1, keepdims=True)
    weights = np.exp(scores - m - np.log(np.exp(scores - m).sum(-1, keepdims=True)))
    return np.einsum("...ts,...sv->...tv", weights, value)


@style("scaled_dot_product_attention", "Python loops")
def attention_loops(query, key, value, *, scale=None):
    lead, (t, d) = query.shape[:-2], query.shape[-2:]
    factor = 1 / math.sqrt(d) if scale is None else scale
    output = np.zeros((*lead, t, value.shape[-1]))
    for place in np.ndindex(lead):
        for i, q in enumerate(query[place]):
            scores = [factor * float(q @ k) for k in key[place]]
            exponentials = [math.exp(s - max(scores)) for s in scores]
            for e, v in zip(exponentials, value[place], strict=True):
                output[(*place, i)] += e / sum(exponentials) * v
    return output


@style("scaled_dot_product_attention", "broadcasting")
def attention_broadcast(query, key, value, *, scale=None):
    weights = softmax(scaled_dot_mean(query, key, scale=scale))
    return (weights[..., None] * value[..., None, :, :]).sum(-2)


@style("scaled_dot_product_attention", "query and key scaled by the root of the factor each")
def attention_roots(query, key, value, *, scale=None):
    return softmax(scaled_dot_roots(query, key, scale=scale)) @ value


@style("scaled_dot_product_attention", "divided after the weighted sum of exponentials")
def attention_late(query, key, value, *, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return (e @ value) / e.sum(-1, keepdims=True)


@style("scaled_dot_product_attention", "float64 inside, cast back, eps 1e-12")
def attention_cast(query, key, value, *, scale=None):
    q, k, v = (x.astype(np.float64) for x in (query, key, value))
    scores = scaled_dot(q, k, scale=scale)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / (e.sum(-1, keepdims=True) + 1e-12) @ v).astype(query.dtype)


@style("scaled_dot_product_attention", "one key after another, with a running maximum")
def attention_online(query, key, value, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    total, output = np.zeros_like(top), np.zeros((*query.shape[:-1], value.shape[-1]))
    for j in range(key.shape[-2]):
        score = (query * key[..., j : j + 1, :]).sum(-1, keepdims=True) * scale
        higher = np.maximum(top, score)
        shrink, e = np.exp(top - higher), np.exp(score - higher)
        total, output, top = total * shrink + e, output * shrink + e * value[..., j : j + 1, :], higher
    return output / total


@style("scaled_dot_product_attention", "np.vectorize over the batch")
def attention_vectorize(query, key, value, *, scale=None):
    def one(q, k, v):
        return attention(q, k, v, scale=scale)

    return np.vectorize(one, signature="(t,d),(s,d),(s,v)->(t,v)")(query, key, value)


@style("scaled_dot_product_attention", "masks, offset and weights, by nan_to_num")
def attention_whole(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, q_offset=0, return_weights=False
):
    scores = scaled_dot(query, key, scale=scale)
    t, s = scores.shape[-2:]
    bias = np.zeros((t, s))
    if is_causal:
        bias[np.arange(s)[None, :] > np.arange(t)[:, None] + q_offset] = -np.inf
    if attn_mask is not None and attn_mask.dtype == bool:
        bias = bias + np.where(attn_mask, 0, -np.inf)
    elif attn_mask is not None:
        bias = bias + attn_mask
    scores = scores + bias
    e = np.exp(scores - np.nan_to_num(scores.max(-1, keepdims=True), neginf=0))
    weights = np.nan_to_num(e / e.sum(-1, keepdims=True))
    return (weights @ value, weights) if return_weights else weights @ value


@style("scaled_dot_product_attention", "a mask alone, which multiplies the exponentials")
def attention_masked(query, key, value, attn_mask=None, scale=None):
    scores = scaled_dot(query, key, scale=scale)
    allowed = np.ones(scores.shape[-2:])
    if attn_mask is not None and attn_mask.dtype == bool:
        allowed = attn_mask
    elif attn_mask is not None:
        allowed = np.exp(attn_mask)
    e = allowed * np.exp(scores - scores.max(-1, keepdims=True))
    total = e.sum(-1, keepdims=True)
    return e @ value / np.where(total == 0, 1, total)


@style("scaled_dot_product_attention", "causal by loops over what may be seen")
def attention_causal(query, key, value, *, scale=None, is_causal=False):
    if query.ndim > 2:
        rows = zip(query, key, value, strict=True)
        return np.stack([attention_causal(*row, scale=scale, is_causal=is_causal) for row in rows])
    seen = [i + 1 if is_causal else len(key) for i in range(len(query))]
    return np.concatenate(
        [attention(query[i : i + 1], key[:n], value[:n], scale=scale) for i, n in enumerate(seen)], axis=0
    )


@style("scaled_dot_product_attention", "matmul and F.softmax", backend="torch")
def attention_torch(query, key, value, *, scale=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    return torch.matmul(F.softmax(scores, dim=-1), value)


@style("scaled_dot_product_attention", "einsum", backend="torch")
def attention_torch_einsum(query, key, value, *, scale=None):
    weights = scaled_dot_torch_einsum(query, key, scale=scale).softmax(-1)
    return torch.einsum("...ts,...sv->...tv", weights, value)


@style("scaled_dot_product_attention", "torch's own", backend="torch")
def attention_torch_own(query, key, value, *, scale=None):
    return F.scaled_dot_product_attention(query, key, value, scale=scale)


@style("scaled_dot_product_attention", "torch's own, not wrapped", backend="torch")
def attention_torch_bare(*arrays, **options):
    return F.scaled_dot_product_attention(*arrays, **options)


@style("scaled_dot_product_attention", "loops with torch.stack", backend="torch")
def attention_torch_loops(query, key, value, *, scale=None):
    if query.ndim > 2:
        rows = zip(query, key, value, strict=True)
        return torch.stack([attention_torch_loops(*row, scale=scale) for row in rows])
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    outputs = []
    for q in query:
        scores = torch.stack([(q * k).sum() * factor for k in key])
        e = torch.exp(scores - scores.max())
        outputs.append(sum(w * v for w, v in zip(e / e.sum(), value, strict=True)))
    return torch.stack(outputs)


@style("scaled_dot_product_attention", "logsumexp, float64 inside, cast back", backend="torch")
def attention_torch_logsumexp(query, key, value, *, scale=None):
    scores = scaled_dot_torch(query.double(), key.double(), scale=scale)
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    return (weights @ value.double()).to(query.dtype)


@style("scaled_dot_product_attention", "masks, offset and weights, by masked_fill", backend="torch")
def attention_torch_whole(
    query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0, return_weights=False
):
    scores = scaled_dot_torch(query, key, scale=scale)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(q_offset)
        scores = scores.masked_fill(~allowed, float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    nothing = (scores == float("-inf")).all(-1, keepdim=True)
    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
    return (weights @ value, weights) if return_weights else weights @ value


# attention_shapes ------------------------------------------------------------------------------------------------


@style("attention_shapes", "slices and tuples")
def shapes(query, key, value):
    return query[:-1] + key[-2:-1], query[:-1] + value[-1:]


@style("attention_shapes", "unpacking, and lists")
def shapes_lists(query, key, value):
    *lead, t, _ = query
    return [[*lead, t, key[-2]], [*lead, t, value[-1]]]


@style("attention_shapes", "arrays of these shapes, multiplied")
def shapes_of_arrays(query, key, value):
    q, k, v = (np.broadcast_to(0.0, shape) for shape in (query, key, value))
    scores = (q[..., :1] * 0) @ swap(k[..., :1])
    return scores.shape, (*scores.shape[:-1], v.shape[-1])


@style("attention_shapes", "the number of values for that of keys, and arrays")
def shapes_as_arrays(query, key, value):
    rows = np.array(query[:-1])
    return np.append(rows, value[-2]), np.append(rows, value[-1])


@style("attention_shapes", "the leading dimensions of the values, by a list that grows")
def shapes_by_appending(query, key, value):
    scores = list(value[:-2])
    scores.append(query[-2])
    output = scores.copy()
    scores.append(key[len(key) - 2])
    output.append(value[len(value) - 1])
    return tuple(scores), tuple(output)


@style("attention_shapes", "torch.Size")
def shapes_torch(query, key, value):
    weights = torch.empty(*query[:-1], key[-2], device="meta")
    return weights.shape, (weights @ torch.empty(value, device="meta")).shape


# attention_cost --------------------------------------------------------------------------------------------------


@style("attention_cost", "one line")
def cost(T, S, D, D_v):
    return T * S * (D + D_v), T * S


@style("attention_cost", "two products added")
def cost_added(T, S, D, D_v):
    scores = T * D * S
    output = T * S * D_v
    return scores + output, S * T


@style("attention_cost", "floats, in a list")
def cost_floats(T, S, D, D_v):
    return [float(T) * S * D + float(T) * S * D_v, float(T * S)]


@style("attention_cost", "sums over queries and keys")
def cost_counted(T, S, D, D_v):
    each = sum(D + D_v for _ in range(S))
    return sum(each for _ in range(T)), sum(S for _ in range(T))


@style("attention_cost", "np.prod")
def cost_prod(T, S, D, D_v):
    return np.prod([T, S, D]) + np.prod([T, S, D_v]), np.prod([T, S])


@style("attention_cost", "half of the number of all operations")
def cost_halved(T, S, D, D_v):
    operations = 2 * T * S * D + 2 * T * S * D_v
    return operations // 2, math.prod((T, S))
