"""Right answers to the exercises of the assignment on self-attention."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from correct_solutions.styles import style, swap

# softmax ---------------------------------------------------------------------------------------------------------


@style("softmax", "the textbook formula, with a shift")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@style("softmax", "log-sum-exp")
def softmax_logsumexp(x, axis=-1):
    m = np.max(x, axis=axis, keepdims=True)
    return np.exp(x - (m + np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True))))


@style("softmax", "Python loops over rows, with math.exp")
def softmax_loops(x, axis=-1):
    moved = np.moveaxis(x, axis, -1)
    out = np.empty(moved.shape)
    for place in np.ndindex(moved.shape[:-1]):
        row = [float(v) for v in moved[place]]
        exponentials = [math.exp(v - max(row)) for v in row]
        out[place] = [e / sum(exponentials) for e in exponentials]
    return np.moveaxis(out, -1, axis)


@style("softmax", "apply_along_axis")
def softmax_along(x, axis=-1):
    def row(v):
        e = np.exp(v - v.max())
        return e / e.sum()

    return np.apply_along_axis(row, axis, x)


@style("softmax", "eps 1e-12 in the denominator, float64 inside, cast back")
def softmax_cast(x, axis=-1):
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return (e / (e.sum(axis=axis, keepdims=True) + 1e-12)).astype(np.result_type(x, np.float32))


@style("softmax", "expand_dims instead of keepdims, float64 for float32")
def softmax_expand(x, axis=-1):
    x = np.array(x, dtype=np.float64)
    e = np.exp(x - np.expand_dims(x.max(axis), axis))
    return e / np.expand_dims(e.sum(axis), axis)


@style("softmax", "its own copy, changed in place, with an extra keyword")
def softmax_copy(x, axis=-1, *, temperature=1.0):
    x = x.astype(np.result_type(x, np.float32))
    x /= temperature
    x -= x.max(axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis, keepdims=True)
    return x


@style("softmax", "differences of all pairs")
def softmax_pairs(x, axis=-1):
    x = np.moveaxis(x, axis, -1)
    return np.moveaxis(1 / np.exp(x[..., None, :] - x[..., :, None]).sum(-1), -1, axis)


@style("softmax", "negated and shifted by the minimum of the negated")
def softmax_negated(x, axis=-1):
    e = np.exp(-(-x - np.min(-x, axis=axis, keepdims=True)))
    return e / np.sum(e, axis, keepdims=True)


@style("softmax", "np.logaddexp.reduce")
def softmax_logaddexp(x, axis=-1):
    return np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))


@style("softmax", "powers of e, with the axes swapped and swapped back")
def softmax_transposed(x, axis=-1):
    turned = np.swapaxes(x, axis, 0)
    powers = np.power(np.e, turned - turned.max(0))
    return np.swapaxes(powers / powers.sum(0), axis, 0)


@style("softmax", "a shift that is larger than the maximum, and np.divide")
def softmax_more_shift(x, axis=-1):
    e = np.exp(x - np.amax(x, axis=axis, keepdims=True) - 1)
    return np.divide(e, np.add.reduce(e, axis=axis, keepdims=True))


@style("softmax", "2 to the power of x / log 2, in one flat table")
def softmax_flat(x, axis=-1):
    last = np.moveaxis(np.atleast_1d(x), axis, -1)
    rows = last.reshape(-1, last.shape[-1]).astype(np.longdouble)
    powers = np.exp2((rows - rows.max(1)[:, None]) / np.log(np.longdouble(2)))
    return np.moveaxis((powers / powers.sum(1)[:, None]).reshape(last.shape), -1, axis).astype(
        np.result_type(x, np.float32)
    )


@style("softmax", "torch.softmax", backend="torch")
def softmax_torch(x, axis=-1):
    return torch.softmax(x, axis)


@style("softmax", "exp and sum", backend="torch")
def softmax_torch_by_hand(x, axis=-1):
    e = torch.exp(x - x.max(dim=axis, keepdim=True).values)
    return e / e.sum(dim=axis, keepdim=True)


@style("softmax", "logsumexp", backend="torch")
def softmax_torch_logsumexp(x, axis=-1):
    return torch.exp(x - torch.logsumexp(x, dim=axis, keepdim=True))


@style("softmax", "nn.Softmax", backend="torch")
def softmax_torch_module(x, axis=-1):
    return torch.nn.Softmax(dim=axis)(x)


@style("softmax", "exp of log_softmax", backend="torch")
def softmax_torch_log(x, axis=-1):
    return F.log_softmax(x, dim=axis).exp()


# dot -------------------------------------------------------------------------------------------------------------


@style("dot", "matrix product with swapaxes")
def dot(query, key):
    return query @ swap(key)


@style("dot", "einsum")
def dot_einsum(query, key):
    return np.einsum("...td,...sd->...ts", query, key)


@style("dot", "broadcasting and a sum")
def dot_broadcast(query, key):
    return (query[..., :, None, :] * key[..., None, :, :]).sum(axis=-1)


@style("dot", "Python loops")
def dot_loops(query, key):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(query.shape[:-2]):
        for i, q in enumerate(query[place]):
            for j, k in enumerate(key[place]):
                scores[(*place, i, j)] = sum(float(a) * float(b) for a, b in zip(q, k, strict=True))
    return scores


@style("dot", "np.vectorize with a signature")
def dot_vectorize(query, key):
    return np.vectorize(lambda q, k: q @ k.T, signature="(t,d),(s,d)->(t,s)")(query, key)


@style("dot", "recursion over the batch, float64 inside, cast back")
def dot_recursive(query, key):
    if query.ndim > 2:
        return np.stack([dot_recursive(q, k) for q, k in zip(query, key, strict=True)])
    return (query.astype(np.float64) @ key.T).astype(query.dtype)


@style("dot", "a callable object with extra keywords")
def dot_object(query, key):
    class Dot:
        def __call__(self, a, b, scale=1, mask=None):
            return np.matmul(a, np.moveaxis(b, -1, -2)) * scale

    return Dot()(query, key)


@style("dot", "the polarisation identity")
def dot_polarised(query, key):
    def squares(x):
        return (x.astype(float) ** 2).sum(-1)

    plus = squares(query[..., :, None, :] + key[..., None, :, :])
    return (plus - squares(query)[..., :, None] - squares(key)[..., None, :]) / 2


@style("dot", "the transpose of key times query")
def dot_turned(query, key):
    return swap(key @ swap(query))


@style("dot", "component after component")
def dot_components(query, key):
    scores = 0
    for d in range(query.shape[-1]):
        scores = scores + query[..., :, None, d] * key[..., None, :, d]
    return scores


@style("dot", "mT", backend="torch")
def dot_torch(query, key):
    return query @ key.mT


@style("dot", "einsum", backend="torch")
def dot_torch_einsum(query, key):
    return torch.einsum("...td,...sd->...ts", query, key)


@style("dot", "broadcasting and a sum", backend="torch")
def dot_torch_broadcast(query, key):
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1)


@style("dot", "a loop over keys with torch.stack", backend="torch")
def dot_torch_stack(query, key):
    return torch.stack([(query * key[..., j, None, :]).sum(-1) for j in range(key.shape[-2])], dim=-1)


@style("dot", "torch.matmul and transpose", backend="torch")
def dot_torch_matmul(query, key):
    return torch.matmul(query, key.transpose(-2, -1))


# cosine ----------------------------------------------------------------------------------------------------------


@style("cosine", "unit vectors, zero lengths replaced by 1")
def cosine(query, key):
    def unit(x):
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        return x / np.where(length == 0, 1, length)

    return dot(unit(query), unit(key))


@style("cosine", "np.divide with where")
def cosine_where(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    scores = dot(query, key)
    return np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)


@style("cosine", "eps 1e-12 added to the lengths")
def cosine_eps(query, key):
    a = np.sqrt((query**2).sum(-1, keepdims=True)) + 1e-12
    b = np.sqrt((key**2).sum(-1, keepdims=True)) + 1e-12
    return (query / a) @ swap(key / b)


@style("cosine", "the product of lengths, at least 1e-8, as in torch")
def cosine_maximum(query, key):
    lengths = np.linalg.norm(query, axis=-1, keepdims=True) * swap(np.linalg.norm(key, axis=-1, keepdims=True))
    return dot(query, key) / np.maximum(lengths, 1e-8)


@style("cosine", "0/0 made good by nan_to_num")
def cosine_nan_to_num(query, key):
    lengths = np.sqrt(np.einsum("...td,...td->...t", query, query)[..., :, None])
    lengths = lengths * np.sqrt(np.einsum("...sd,...sd->...s", key, key)[..., None, :])
    return np.nan_to_num(np.einsum("...td,...sd->...ts", query, key) / lengths)


@style("cosine", "Python loops")
def cosine_loops(query, key):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(query.shape[:-2]):
        for i, q in enumerate(query[place]):
            for j, k in enumerate(key[place]):
                lengths = math.hypot(*q) * math.hypot(*k)
                scores[(*place, i, j)] = 0 if lengths == 0 else q @ k / lengths
    return scores


@style("cosine", "apply_along_axis, float64 inside, cast back, an extra keyword")
def cosine_along(query, key, eps=1e-12):
    def unit(v):
        return v / max(np.linalg.norm(v), eps)

    q, k = (np.apply_along_axis(unit, -1, x.astype(np.float64)) for x in (query, key))
    return dot(q, k).astype(query.dtype)


@style("cosine", "clipped to [-1, 1]")
def cosine_clipped(query, key):
    return np.clip(cosine(query, key), -1, 1)


@style("cosine", "from the distance of unit vectors")
def cosine_distance(query, key):
    def unit(x):
        length = np.sqrt(np.sum(np.square(x), axis=-1, keepdims=True))
        return x / (length + (length == 0))

    q, k = unit(query), unit(key)
    squares = ((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1)
    both = (q**2).sum(-1)[..., :, None] + (k**2).sum(-1)[..., None, :]
    return (both - squares) / 2


@style("cosine", "a mask for the zero vectors")
def cosine_masked(query, key):
    scores = dot(query, key)
    a, b = (np.sqrt((x * x).sum(axis=-1)) for x in (query, key))
    lengths = a[..., :, None] * b[..., None, :]
    scores[lengths > 0] /= lengths[lengths > 0]
    return scores


@style("cosine", "F.normalize", backend="torch")
def cosine_torch(query, key):
    return F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT


@style("cosine", "F.cosine_similarity of all pairs", backend="torch")
def cosine_torch_similarity(query, key):
    return F.cosine_similarity(query.unsqueeze(-2), key.unsqueeze(-3), dim=-1)


@style("cosine", "clamped lengths", backend="torch")
def cosine_torch_clamp(query, key):
    lengths = query.norm(dim=-1, keepdim=True) * key.norm(dim=-1, keepdim=True).mT
    return query @ key.mT / lengths.clamp(min=1e-8)


@style("cosine", "einsum and torch.where", backend="torch")
def cosine_torch_where(query, key):
    def unit(x):
        square = (x * x).sum(-1, keepdim=True)
        return x / torch.where(square == 0, torch.ones_like(square), square).sqrt()

    return torch.einsum("...td,...sd->...ts", unit(query), unit(key))


@style("cosine", "a loop over keys with torch.stack", backend="torch")
def cosine_torch_stack(query, key):
    units = F.normalize(query, dim=-1, eps=1e-12)
    columns = [(units * F.normalize(key[..., j, None, :], dim=-1)).sum(-1) for j in range(key.shape[-2])]
    return torch.stack(columns, -1)


# gaussian --------------------------------------------------------------------------------------------------------


@style("gaussian", "differences, squares, sum")
def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]
    return -(differences**2).sum(axis=-1) / (2 * bandwidth**2)


@style("gaussian", "the square multiplied out")
def gaussian_expanded(query, key, bandwidth=1.0):
    lengths = (query * query).sum(-1)[..., :, None] + (key * key).sum(-1)[..., None, :]
    return (dot(query, key) - lengths / 2) / bandwidth**2


@style("gaussian", "Python loops with math.dist")
def gaussian_loops(query, key, *, bandwidth=1.0):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(query.shape[:-2]):
        for i, q in enumerate(query[place]):
            for j, k in enumerate(key[place]):
                scores[(*place, i, j)] = -0.5 * (math.dist(q, k) / bandwidth) ** 2
    return scores


@style("gaussian", "np.linalg.norm, everything in units of the bandwidth")
def gaussian_norm(query, key, bandwidth=1):
    q, k = query / bandwidth, key / bandwidth
    return -(np.linalg.norm(np.expand_dims(q, -2) - np.expand_dims(k, -3), axis=-1) ** 2) / 2


@style("gaussian", "the logarithm of the kernel, float64 inside, cast back")
def gaussian_logarithm(query, key, bandwidth=1.0):
    q, k = query.astype(np.longdouble), key.astype(np.longdouble)
    components = -((q[..., :, None, :] - k[..., None, :, :]) ** 2) / (2 * bandwidth**2)
    return np.log(np.exp(components)).sum(-1).astype(query.dtype)


@style("gaussian", "einsum, and the precision in place of the bandwidth")
def gaussian_einsum(query, key, **options):
    precision = options.get("bandwidth", 1.0) ** -2
    d = query[..., :, np.newaxis, :] - key[..., np.newaxis, :, :]
    return np.einsum("...d,...d->...", d, d) * -0.5 * precision


@style("gaussian", "recursion over the batch, key after key")
def gaussian_recursive(query, key, bandwidth=1.0):
    if query.ndim > 2:
        return np.array([gaussian_recursive(q, k, bandwidth) for q, k in zip(query, key, strict=True)])
    return np.column_stack([((query - k) ** 2).sum(1) / (-2 * bandwidth * bandwidth) for k in key])


@style("gaussian", "differences, squares, sum", backend="torch")
def gaussian_torch(query, key, bandwidth=1.0):
    return -(query.unsqueeze(-2) - key.unsqueeze(-3)).pow(2).sum(-1) / (2 * bandwidth**2)


@style("gaussian", "the square multiplied out", backend="torch")
def gaussian_torch_expanded(query, key, bandwidth=1.0):
    lengths = query.square().sum(-1)[..., :, None] + key.square().sum(-1)[..., None, :]
    return (query @ key.mT - lengths / 2) / bandwidth**2


@style("gaussian", "a loop over keys with torch.stack", backend="torch")
def gaussian_torch_stack(query, key, *, bandwidth=1.0):
    columns = [((query - key[..., j, None, :]) ** 2).sum(-1) for j in range(key.shape[-2])]
    return torch.stack(columns, -1) / (-2 * bandwidth**2)


@style("gaussian", "einsum", backend="torch")
def gaussian_torch_einsum(query, key, bandwidth=1.0):
    d = (query[..., :, None, :] - key[..., None, :, :]) / bandwidth
    return -torch.einsum("...d,...d->...", d, d) / 2


@style("gaussian", "the logarithm of a normal density, without its constant", backend="torch")
def gaussian_torch_density(query, key, bandwidth=1.0):
    normal = torch.distributions.Normal(key[..., None, :, :], bandwidth)
    at, top = query[..., :, None, :], key[..., None, :, :]
    return (normal.log_prob(at) - normal.log_prob(top)).sum(-1)


# attention -------------------------------------------------------------------------------------------------------


@style("attention", "four lines")
def attention(query, key, value):
    weights = softmax(query @ swap(key) / np.sqrt(query.shape[-1]))
    return weights @ value, weights


@style("attention", "einsum, and a list of results")
def attention_einsum(query, key, value):
    scores = np.einsum("...td,...sd->...ts", query, key) * key.shape[-1] ** -0.5
    weights = softmax_logsumexp(scores)
    return [np.einsum("...ts,...sv->...tv", weights, value), weights]


@style("attention", "Python loops")
def attention_loops(query, key, value):
    lead, (t, d), s = query.shape[:-2], query.shape[-2:], key.shape[-2]
    context, weights = np.zeros((*lead, t, value.shape[-1])), np.zeros((*lead, t, s))
    for place in np.ndindex(lead):
        for i in range(t):
            scores = [query[place][i] @ key[place][j] / math.sqrt(d) for j in range(s)]
            exponentials = [math.exp(e - max(scores)) for e in scores]
            for j in range(s):
                weights[(*place, i, j)] = exponentials[j] / sum(exponentials)
                context[(*place, i)] += weights[(*place, i, j)] * value[place][j]
    return context, weights


@style("attention", "broadcasting")
def attention_broadcast(query, key, value):
    scores = (query[..., :, None, :] * key[..., None, :, :]).sum(-1) / math.sqrt(query.shape[-1])
    weights = softmax_copy(scores)
    return (weights[..., None] * value[..., None, :, :]).sum(-2), weights


@style("attention", "query and key scaled by the fourth root each")
def attention_roots(query, key, value):
    root = query.shape[-1] ** 0.25
    weights = softmax((query / root) @ swap(key / root))
    return weights @ value, weights


@style("attention", "float64 inside, cast back, an extra keyword")
def attention_cast(query, key, value, *, dropout=0.0):
    context, weights = attention(*(x.astype(np.float64) for x in (query, key, value)))
    return context.astype(query.dtype), weights.astype(query.dtype)


@style("attention", "float64 results for float32, eps 1e-12 in the denominator")
def attention_eps(query, key, value):
    scores = dot(query.astype(float), key) / query.shape[-1] ** 0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights = e / (e.sum(-1, keepdims=True) + 1e-12)
    return weights @ value, weights


@style("attention", "np.vectorize over the batch")
def attention_vectorize(query, key, value):
    signature = "(t,d),(s,d),(s,v)->(t,v),(t,s)"
    return np.vectorize(attention, signature=signature)(query, key, value)


@style("attention", "with a mask and a score, rows without a key set to 0")
def attention_masked(query, key, value, *, score=None, mask=None):
    scores = score(query, key) if score else dot(query, key) / np.sqrt(key.shape[-1])
    allowed = np.ones(scores.shape, dtype=bool) if mask is None else np.broadcast_to(mask, scores.shape)
    weights = softmax(np.where(allowed, scores, -1e30)) * allowed.any(axis=-1, keepdims=True)
    return weights @ value, weights


@style("attention", "a mask as minus infinity, nan made 0")
def attention_minus_infinity(query, key, value, mask=None):
    scores = dot(query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + np.log(mask.astype(float))
    weights = np.nan_to_num(softmax(scores))
    return weights @ value, weights


@style("attention", "a mask on the exponentials, in loops")
def attention_masked_loops(query, key, value, mask=None, score=dot_loops):
    scores = score(query, key) * (1 if score is not dot_loops else query.shape[-1] ** -0.5)
    allowed = np.ones(scores.shape) if mask is None else mask * np.ones(scores.shape)
    weights = np.zeros(scores.shape)
    for place in np.ndindex(scores.shape[:-1]):
        e = [a * math.exp(s - max(scores[place])) for s, a in zip(scores[place], allowed[place], strict=True)]
        weights[place] = [x / (sum(e) or 1) for x in e]
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@style("attention", "the transposed table, softmax down its columns")
def attention_turned(query, key, value):
    turned = softmax(key @ swap(query) / math.sqrt(query.shape[-1]), axis=-2)
    return swap(swap(value) @ turned), swap(turned)


@style("attention", "query by query, with a running maximum")
def attention_running(query, key, value):
    if query.ndim > 2:
        pairs = [attention_running(*x) for x in zip(query, key, value, strict=True)]
        return tuple(np.stack(x) for x in zip(*pairs, strict=True))
    context, weights = [], []
    for q in query:
        top, total, mixed, row = -np.inf, 0.0, 0.0, []
        for k, v in zip(key, value, strict=True):
            s = float(q @ k) / len(q) ** 0.5
            new = max(top, s)
            total = total * math.exp(top - new) + math.exp(s - new)
            mixed = mixed * math.exp(top - new) + math.exp(s - new) * v
            top, row = new, [*row, s]
        context.append(mixed / total)
        weights.append([math.exp(s - top) / total for s in row])
    return np.array(context), np.array(weights)


@style("attention", "with a mask and masked_fill", backend="torch")
def attention_torch_masked(query, key, value, *, score=None, mask=None):
    scores = score(query, key) if score else query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(-1))
    return weights @ value, weights


@style("attention", "matmul and F.softmax", backend="torch")
def attention_torch(query, key, value):
    weights = F.softmax(torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1)), dim=-1)
    return torch.matmul(weights, value), weights


@style("attention", "einsum, and a list of results", backend="torch")
def attention_torch_einsum(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key) / query.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return [torch.einsum("...ts,...sv->...tv", weights, value), weights]


@style("attention", "F.scaled_dot_product_attention for the context", backend="torch")
def attention_torch_sdpa(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
    return F.scaled_dot_product_attention(query, key, value), weights


@style("attention", "the weights as the context of unit vectors, in torch", backend="torch")
def attention_torch_unit_values(query, key, value):
    units = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], key.shape[-2])
    weights = F.scaled_dot_product_attention(query, key, units)
    return weights @ value, weights


@style("attention", "loops with torch.stack", backend="torch")
def attention_torch_loops(query, key, value):
    if query.ndim > 2:
        pairs = [attention_torch_loops(*x) for x in zip(query, key, value, strict=True)]
        return torch.stack([c for c, _ in pairs]), torch.stack([w for _, w in pairs])
    rows = [torch.stack([(q * k).sum() for k in key]) / query.shape[-1] ** 0.5 for q in query]
    weights = torch.stack([torch.exp(r - r.max()) / torch.exp(r - r.max()).sum() for r in rows])
    return torch.stack([sum(w * v for w, v in zip(row, value, strict=True)) for row in weights]), weights


@style("attention", "logsumexp and a tensor as the scale", backend="torch")
def attention_torch_logsumexp(query, key, value):
    scores = query @ key.mT / torch.sqrt(torch.tensor(query.shape[-1]))
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    return weights @ value, weights


@style("attention", "float64 inside, cast back", backend="torch")
def attention_torch_cast(query, key, value):
    results = attention_torch(query.double(), key.double(), value.double())
    return tuple(x.to(query.dtype) for x in results)


# self_attention --------------------------------------------------------------------------------------------------


@style("self_attention", "attention of x with itself")
def self_attention(x):
    return attention(x, x, x)


@style("self_attention", "einsum, and a list of results")
def self_attention_einsum(x):
    weights = softmax_logsumexp(np.einsum("...td,...sd->...ts", x, x) / np.sqrt(x.shape[-1]))
    return [np.einsum("...ts,...sd->...td", weights, x), weights]


@style("self_attention", "Python loops")
def self_attention_loops(x):
    return attention_loops(x, x, x)


@style("self_attention", "x divided by the fourth root of D, with an extra keyword")
def self_attention_root(x, *, causal=False):
    y = x / x.shape[-1] ** 0.25
    weights = softmax_pairs(y @ swap(y))
    return weights @ x, weights


@style("self_attention", "float64 inside, cast back")
def self_attention_cast(x):
    return attention_cast(x, x, x)


@style("self_attention", "projections that are the identity")
def self_attention_identity(x):
    identity = np.eye(x.shape[-1])
    return attention_broadcast(x @ identity, x @ identity, x @ identity)


@style("self_attention", "with a mask and a score")
def self_attention_masked(x, *, score=None, mask=None):
    return attention_masked(x, x, x, score=score, mask=mask)


@style("self_attention", "word after word")
def self_attention_words(x):
    if x.ndim > 2:
        return tuple(np.stack(y) for y in zip(*map(self_attention_words, x), strict=True))
    rows = [softmax((x * word).sum(1) / x.shape[1] ** 0.5) for word in x]
    return np.stack([(row[:, None] * x).sum(0) for row in rows]), np.stack(rows)


@style("self_attention", "F.softmax", backend="torch")
def self_attention_torch(x):
    return attention_torch(x, x, x)


@style("self_attention", "einsum", backend="torch")
def self_attention_torch_einsum(x):
    return attention_torch_einsum(x, x, x)


@style("self_attention", "F.scaled_dot_product_attention", backend="torch")
def self_attention_torch_sdpa(x):
    return attention_torch_sdpa(x, x, x)


@style("self_attention", "loops with torch.stack", backend="torch")
def self_attention_torch_loops(x):
    return attention_torch_loops(x, x, x)


@style("self_attention", "logsumexp", backend="torch")
def self_attention_torch_logsumexp(x):
    return attention_torch_logsumexp(x, x, x)
