"""Right answers to the exercises of the assignment on transformers."""

import copy
import math

import numpy as np
import torch
import torch.nn.functional as F

import attnlib
import attnlib.numpy
import attnlib.torch
from correct_solutions.styles import style, swap

BACKWARD = "scaled_dot_product_attention_backward"

# TransformerBlock in NumPy ---------------------------------------------------------------------------------------


@style("TransformerBlock", "the library's parts, two lines")
class Block(attnlib.numpy.TransformerBlock):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)

    def forward(self, query):
        x = query + self.self_attn(self.norm1(query))
        return x + self.linear2(np.maximum(self.linear1(self.norm2(x)), 0))


@style("TransformerBlock", "a module of its own, with the library's layers")
class OwnBlock(attnlib.numpy.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        self.self_attn = attnlib.numpy.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = attnlib.numpy.Linear(embed_dim, ff_dim)
        self.linear2 = attnlib.numpy.Linear(ff_dim, embed_dim)
        self.norm1 = attnlib.numpy.LayerNorm(embed_dim)
        self.norm2 = attnlib.numpy.LayerNorm(embed_dim)

    def forward(self, x):
        attended = self.self_attn(self.norm1(x))
        x = np.add(x, attended)
        hidden = self.linear1(self.norm2(x))
        hidden = hidden * (hidden > 0)
        return self.linear2(hidden) + x


def layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = (x**2).mean(-1, keepdims=True) - mean**2
    return weight * (x - mean) / np.sqrt(variance + eps) + bias


def affine(x, p, name):
    return np.einsum("...i,oi->...o", x, p[name + ".weight"]) + p[name + ".bias"]


@style("TransformerBlock", "parameters by name, einsum, one head at a time")
class ByName(OwnBlock):
    def forward(self, x):
        p, heads = self.state_dict(), self.self_attn.num_heads
        y = layer_norm(x, p["norm1.weight"], p["norm1.bias"])
        q, k, v = (np.split(affine(y, p, f"self_attn.{n}_proj"), heads, axis=-1) for n in "qkv")
        found = []
        for one_q, one_k, one_v in zip(q, k, v, strict=True):
            scores = np.einsum("btd,bsd->bts", one_q, one_k) / math.sqrt(one_q.shape[-1])
            e = np.exp(scores - scores.max(-1, keepdims=True))
            found.append(e / e.sum(-1, keepdims=True) @ one_v)
        x = x + affine(np.concatenate(found, -1), p, "self_attn.out_proj")
        y = layer_norm(x, p["norm2.weight"], p["norm2.bias"])
        return x + affine(np.clip(affine(y, p, "linear1"), 0, None), p, "linear2")


@style("TransformerBlock", "float64 inside, on its own copy, in place")
class InPlace(OwnBlock):
    def forward(self, query):
        double = copy.deepcopy(self).double()
        x = query.astype(np.float64)
        x += double.self_attn(double.norm1(x))
        inside = double.linear1(double.norm2(x))
        inside[inside < 0] = 0
        x += double.linear2(inside)
        return x.astype(query.dtype)


@style("TransformerBlock", "token by token after attention")
class TokenByToken(OwnBlock):
    def forward(self, x):
        out = x + self.self_attn(np.stack([[self.norm1(row[None])[0] for row in one] for one in x]))
        for place in np.ndindex(out.shape[:2]):
            row = out[place]
            out[place] = row + self.linear2(np.maximum(0, self.linear1(self.norm2(row[None]))))[0]
        return out


@style("TransformerBlock", "with all the extras, by hand")
class WithExtras(OwnBlock):
    def __init__(self, embed_dim, num_heads, ff_dim, *, norm="pre"):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.order = norm

    def forward(self, x, attn_mask=None, *, is_causal=False, need_weights=False):
        pre = self.order == "pre"
        y = self.norm1(x) if pre else x
        a, weights = self.self_attn(y, attn_mask=attn_mask, is_causal=is_causal, need_weights=True)
        x = x + a if pre else self.norm1(x + a)
        y = self.norm2(x) if pre else x
        f = self.linear2(np.where(self.linear1(y) > 0, self.linear1(y), 0.0).astype(x.dtype))
        x = x + f if pre else self.norm2(x + f)
        return (x, weights) if need_weights else x


# TransformerBlock in torch ---------------------------------------------------------------------------------------


@style("TransformerBlock", "nn.Module with attnlib's attention", backend="torch")
class TorchBlock(torch.nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = torch.nn.Linear(embed_dim, ff_dim)
        self.linear2 = torch.nn.Linear(ff_dim, embed_dim)
        self.norm1 = torch.nn.LayerNorm(embed_dim)
        self.norm2 = torch.nn.LayerNorm(embed_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@style("TransformerBlock", "dropout, a default norm argument and masks", backend="torch")
class TorchExtras(TorchBlock):
    def __init__(self, embed_dim, num_heads, ff_dim, dropout=0.0, norm="pre"):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.dropout, self.norm_first = torch.nn.Dropout(dropout), norm == "pre"

    def forward(self, src, attn_mask=None, is_causal=False):
        def attend(x):
            return self.dropout(self.self_attn(x, attn_mask=attn_mask, is_causal=is_causal))

        def transform(x):
            return self.dropout(self.linear2(self.dropout(self.linear1(x).relu())))

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + transform(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + transform(x))


class Projections(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, torch.nn.Linear(width, width))


@style("TransformerBlock", "attention by hand with view and transpose", backend="torch")
class TorchByHand(TorchBlock):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.heads, self.self_attn = num_heads, Projections(embed_dim)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (
            layer(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.self_attn.q_proj, self.self_attn.k_proj, self.self_attn.v_proj)
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(width // self.heads), -1)
        return self.self_attn.out_proj((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.linear2(torch.clamp(self.linear1(self.norm2(x)), min=0))


class OwnNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias


@style("TransformerBlock", "a layer norm and a relu of its own", backend="torch")
class TorchOwnNorm(TorchBlock):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.norm1, self.norm2 = OwnNorm(embed_dim), OwnNorm(embed_dim)

    def forward(self, x):
        stream = x.clone()
        stream = stream + self.self_attn(self.norm1(stream))
        inside = self.linear1(self.norm2(stream))
        stream = stream + self.linear2(inside * (inside > 0))
        return stream


@style("TransformerBlock", "functional calls with the parameters", backend="torch")
class TorchFunctional(TorchBlock):
    def forward(self, x):
        shape, a = x.shape[-1:], self.self_attn
        y = F.layer_norm(x, shape, self.norm1.weight, self.norm1.bias)
        q, k, v = (
            F.linear(y, p.weight, p.bias).unflatten(-1, (a.num_heads, -1)) for p in (a.q_proj, a.k_proj, a.v_proj)
        )
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        x = x + F.linear(out.transpose(1, 2).flatten(-2), a.out_proj.weight, a.out_proj.bias)
        y = F.layer_norm(x, shape, self.norm2.weight, self.norm2.bias)
        return x + F.linear(
            F.linear(y, self.linear1.weight, self.linear1.bias).clamp_min(0), *self.linear2.parameters()
        )


# The backward pass -----------------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@style(BACKWARD, "the five formulas")
def backward(grad, query, key, value):
    c = 1 / np.sqrt(query.shape[-1])
    p = softmax(query @ swap(key) * c)
    dp = grad @ swap(value)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    return c * ds @ key, c * swap(ds) @ query, swap(p) @ grad


@style(BACKWARD, "the average as a dot product of output and upstream gradient")
def backward_delta(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(query * c @ swap(key))
    delta = (grad * (p @ value)).sum(-1, keepdims=True)
    ds = c * p * (grad @ swap(value) - delta)
    return ds @ key, swap(ds) @ query, swap(p) @ grad


@style(BACKWARD, "the whole Jacobian of the softmax, with einsum")
def backward_jacobian(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    p = softmax(np.einsum("...td,...sd->...ts", query, key) * c)
    jacobian = p[..., None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
    ds = np.einsum("...tj,...tjs->...ts", np.einsum("...tv,...sv->...ts", grad, value), jacobian)
    d_query = np.einsum("...ts,...sd->...td", ds, key) * c
    d_key = np.einsum("...ts,...td->...sd", ds, query) * c
    return [d_query, d_key, np.einsum("...ts,...tv->...sv", p, grad)]


@style(BACKWARD, "loops over queries, with math.exp")
def backward_loops(grad, query, key, value):
    d_query, d_key, d_value = (np.zeros(x.shape) for x in (query, key, value))
    for place in np.ndindex(query.shape[:-2]):
        q, k, v, g = query[place], key[place], value[place], grad[place]
        for i in range(len(q)):
            scores = [float(q[i] @ one) / math.sqrt(q.shape[-1]) for one in k]
            exponentials = [math.exp(s - max(scores)) for s in scores]
            p = np.array(exponentials) / sum(exponentials)
            dp = np.array([g[i] @ one for one in v])
            for j in range(len(k)):
                ds = p[j] * (dp[j] - p @ dp) / math.sqrt(q.shape[-1])
                d_query[place][i] += ds * k[j]
                d_key[place][j] += ds * q[i]
                d_value[place][j] += p[j] * g[i]
    return d_query, d_key, d_value


@style(BACKWARD, "torch's automatic gradients")
def backward_autograd(grad, query, key, value):
    leaves = [torch.tensor(x.astype(np.float64), requires_grad=True) for x in (query, key, value)]
    F.scaled_dot_product_attention(*leaves).backward(torch.tensor(grad.astype(np.float64)))
    return tuple(x.grad.numpy().astype(query.dtype) for x in leaves)


@style(BACKWARD, "scaled queries, float64 inside, masks by hand")
def backward_scaled(grad, query, key, value, attn_mask=None, is_causal=False, *, scale=None, q_offset=0):
    grad, query, key, value = (x.astype(np.float64) for x in (grad, query, key, value))
    root = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    q, k = query * root, key * root
    scores = q @ swap(k)
    if is_causal:
        t, s = scores.shape[-2:]
        scores = np.where(np.arange(s) <= np.arange(t)[:, None] + q_offset, scores, -np.inf)
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + attn_mask
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    p = e / np.maximum(e.sum(-1, keepdims=True), 1e-300)
    dp = grad @ swap(value)
    ds = p * dp - p * (p * dp).sum(-1)[..., None]
    return ds @ k * root, (swap(q) @ ds).swapaxes(-1, -2) * root, swap(swap(grad) @ p)


# One step of the softmax in one pass -----------------------------------------------------------------------------


@style("online_softmax", "shrink, then add")
def online(scores, value, total, norm, maximum):
    new = np.maximum(maximum, scores.max(-1))
    shrink, p = np.exp(maximum - new), np.exp(scores - new[..., None])
    return shrink[..., None] * total + p @ value, shrink * norm + p.sum(-1), new


@style("online_softmax", "the block measured against its own maximum, then both scaled")
def online_two_factors(scores, value, total, norm, maximum):
    own = scores.max(axis=-1, keepdims=True)
    p = np.exp(scores - own)
    old = maximum[..., None]
    new = np.where(old > own, old, own)
    a, b = np.exp(old - new), np.exp(own - new)
    return a * total + b * (p @ value), (a * norm[..., None] + b * p.sum(-1, keepdims=True))[..., 0], new[..., 0]


@style("online_softmax", "one key after the other")
def online_key_by_key(scores, value, total, norm, maximum):
    for j in range(scores.shape[-1]):
        s, v = scores[..., j], value[..., j, :]
        new = np.maximum(maximum, s)
        shrink = np.exp(maximum - new)
        p = np.exp(s - new)
        norm = norm * shrink + p
        total = total * shrink[..., None] + p[..., None] * v[..., None, :]
        maximum = new
    return total, norm, maximum


@style("online_softmax", "loops with math.exp")
def online_loops(scores, value, total, norm, maximum):
    total, norm, maximum = total.copy(), norm.copy(), maximum.copy()
    for place in np.ndindex(norm.shape):
        row, values = scores[place], value[place[:-1]]
        new = max(float(maximum[place]), *(float(s) for s in row), float(row[0]))
        shrink = math.exp(float(maximum[place]) - new)
        weights = [math.exp(float(s) - new) for s in row]
        norm[place] = shrink * norm[place] + math.fsum(weights)
        total[place] = shrink * total[place] + sum(w * v for w, v in zip(weights, values, strict=True))
        maximum[place] = new
    return [total, norm, maximum]


@style("online_softmax", "the state as one more key")
def online_as_a_key(scores, value, total, norm, maximum):
    everything = np.concatenate([maximum[..., None], scores], axis=-1)
    new = everything.max(axis=-1)
    e = np.exp(everything - new[..., None])
    norm_ = (e * np.concatenate([norm[..., None], np.ones_like(scores)], -1)).sum(-1)
    return e[..., :1] * total + np.einsum("...ts,...sv->...tv", e[..., 1:], value), norm_, new


@style("online_softmax", "rescaled only where the maximum rises, float64 inside")
def online_where(scores, value, total, norm, maximum):
    m = maximum.astype(np.float64)
    block = scores.astype(np.float64).max(-1)
    rises = block > m
    new = np.where(rises, block, m)
    with np.errstate(invalid="ignore"):
        shrink = np.where(rises, np.exp(np.minimum(m - new, 0)), 1.0)
    p = np.exp(scores - np.expand_dims(new, -1))
    results = (np.expand_dims(shrink, -1) * total + p @ value, shrink * norm + p.sum(-1), new)
    return tuple(x.astype(scores.dtype) for x in results)
