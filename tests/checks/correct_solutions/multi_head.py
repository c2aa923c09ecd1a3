"""Right answers to the exercises of the assignment on many heads."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import attnlib.numpy
from correct_solutions.styles import style, swap

# split_heads -----------------------------------------------------------------------------------------------------


@style("split_heads", "reshape and swapaxes")
def split_heads(x, num_heads):
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-3, -2)


@style("split_heads", "np.split and np.stack")
def split_stack(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=-3)


@style("split_heads", "Python loops, one number after the other")
def split_loops(x, num_heads):
    *leading, length, width = x.shape
    out = np.zeros((*leading, num_heads, length, width // num_heads), x.dtype)
    for place in np.ndindex(x.shape):
        h, d = divmod(place[-1], width // num_heads)
        out[(*place[:-2], h, place[-2], d)] = x[place]
    return out


@style("split_heads", "moveaxis, and a copy")
def split_moveaxis(x, num_heads):
    return np.ascontiguousarray(np.moveaxis(x.reshape((*x.shape[:-1], num_heads, -1)), -2, -3))


@style("split_heads", "transpose all, reshape, transpose back")
def split_transpose(x, num_heads):
    columns = swap(x)  # (..., H*D, T)
    return swap(columns.reshape(*columns.shape[:-2], num_heads, -1, columns.shape[-1]))


@style("split_heads", "a matrix that picks the columns of a head, an extra keyword")
def split_picking(x, num_heads, *, heads_first=True):
    pick = np.eye(x.shape[-1]).reshape(x.shape[-1], num_heads, -1)
    return np.einsum("...tc,chd->...htd", x.astype(np.float64), pick).astype(x.dtype)


@style("split_heads", "recursion over the batch")
def split_recursive(x, num_heads):
    if x.ndim > 2:
        return np.array([split_recursive(one, num_heads) for one in x])
    width = x.shape[1] // num_heads
    return np.array([x[:, h * width : (h + 1) * width] for h in range(num_heads)])


@style("split_heads", "fancy indexing")
def split_fancy(x, num_heads):
    columns = np.arange(x.shape[-1]).reshape(num_heads, 1, -1)
    return x[..., np.arange(x.shape[-2])[:, None], columns]


@style("split_heads", "view and transpose", backend="torch")
def split_torch(x, num_heads):
    return x.view(*x.shape[:-1], num_heads, -1).transpose(-3, -2)


@style("split_heads", "chunk and stack", backend="torch")
def split_torch_chunk(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=-3)


@style("split_heads", "unflatten and movedim", backend="torch")
def split_torch_unflatten(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)


@style("split_heads", "unfold", backend="torch")
def split_torch_unfold(x, num_heads):
    width = x.size(-1) // num_heads
    return x.unfold(-1, width, width).transpose(-2, -3).contiguous()


@style("split_heads", "a loop over heads", backend="torch")
def split_torch_loop(x, num_heads):
    width = x.shape[-1] // num_heads
    return torch.cat([x[..., h * width : (h + 1) * width].unsqueeze(-3) for h in range(num_heads)], dim=-3)


# merge_heads -----------------------------------------------------------------------------------------------------


@style("merge_heads", "swapaxes and reshape")
def merge_heads(x):
    x = x.swapaxes(-3, -2)
    return x.reshape(*x.shape[:-2], -1)


@style("merge_heads", "np.concatenate of the heads")
def merge_concatenate(x):
    return np.concatenate([x[..., h, :, :] for h in range(x.shape[-3])], axis=-1)


@style("merge_heads", "Python loops, one number after the other")
def merge_loops(x):
    *leading, heads, length, width = x.shape
    out = np.empty((*leading, length, heads * width))
    for place in np.ndindex(x.shape):
        out[(*place[:-3], place[-2], place[-3] * width + place[-1])] = x[place]
    return out


@style("merge_heads", "np.dstack after moveaxis, for any batch")
def merge_moveaxis(x):
    return np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1)


@style("merge_heads", "transpose, reshape, transpose back")
def merge_transpose(x):
    columns = swap(x)  # (..., H, D, T)
    return swap(columns.reshape(*columns.shape[:-3], -1, columns.shape[-1]))


@style("merge_heads", "einsum in float64, cast back")
def merge_einsum(x):
    heads, _, width = x.shape[-3:]
    place = np.eye(heads * width).reshape(heads, width, -1)
    return np.einsum("...htd,hdc->...tc", x.astype(np.float64), place).astype(x.dtype)


@style("merge_heads", "a list of rows for each sentence")
def merge_recursive(x):
    if x.ndim > 3:
        return np.stack([merge_recursive(one) for one in x])
    return np.array([np.concatenate(x[:, t]) for t in range(x.shape[1])])


@style("merge_heads", "transpose, contiguous and view", backend="torch")
def merge_torch(x):
    x = x.transpose(-3, -2).contiguous()
    return x.view(*x.shape[:-2], -1)


@style("merge_heads", "flatten", backend="torch")
def merge_torch_flatten(x):
    return x.movedim(-3, -2).flatten(-2)


@style("merge_heads", "cat of unbind", backend="torch")
def merge_torch_cat(x):
    return torch.cat(x.unbind(-3), dim=-1)


@style("merge_heads", "transpose and reshape", backend="torch")
def merge_torch_reshape(x):
    return x.transpose(-2, -3).reshape(*x.shape[:-3], x.size(-2), -1)


@style("merge_heads", "a place for each head", backend="torch")
def merge_torch_places(x):
    width = x.size(-1)
    pads = [F.pad(one, (h * width, (x.size(-3) - 1 - h) * width)) for h, one in enumerate(x.unbind(-3))]
    return torch.stack(pads).sum(0)


# multi_head_attention --------------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def split_all(arrays, num_heads):
    return [split_heads(x, num_heads) for x in arrays]


@style("multi_head_attention", "split, attend, merge")
def multi_head_attention(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = split_all((query @ w_q, key @ w_k, value @ w_v), num_heads)
    weights = softmax(q @ swap(k) / np.sqrt(q.shape[-1]))
    return merge_heads(weights @ v) @ w_o


@style("multi_head_attention", "a loop over heads with slices of the matrices")
def mha_slices(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    heads = []
    for h in range(num_heads):
        q, k = query @ w_q[:, h * d : (h + 1) * d], key @ w_k[:, h * d : (h + 1) * d]
        weights = softmax(q @ swap(k) / math.sqrt(d))
        heads.append(weights @ (value @ w_v[:, h * d_v : (h + 1) * d_v]))
    return np.concatenate(heads, axis=-1) @ w_o


@style("multi_head_attention", "the heads added up, each multiplied by its own rows of w_o")
def mha_added(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    parts = (np.split(w, num_heads, axis=axis) for w, axis in ((w_q, 1), (w_k, 1), (w_v, 1), (w_o, 0)))
    out = 0
    for a, b, c, d in zip(*parts, strict=True):
        out = out + softmax((query @ a / a.shape[1] ** 0.25) @ swap(key @ b / b.shape[1] ** 0.25)) @ value @ c @ d
    return out


@style("multi_head_attention", "einsum throughout, heads as the last axis but one")
def mha_einsum(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (
        np.einsum("...te,ehd->...thd", x, w.reshape(len(w), num_heads, -1))
        for x, w in ((query, w_q), (key, w_k), (value, w_v))
    )
    weights = softmax(np.einsum("...thd,...shd->...hts", q, k) * q.shape[-1] ** -0.5)
    context = np.einsum("...hts,...shd->...thd", weights, v)
    return np.einsum("...thd,hde->...te", context, w_o.reshape(num_heads, -1, w_o.shape[1]))


@style("multi_head_attention", "math.exp and loops over everything")
def mha_loops(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    if query.ndim > 2:
        rows = [mha_loops(*x, w_q, w_k, w_v, w_o, num_heads) for x in zip(query, key, value, strict=True)]
        return np.array(rows)
    d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    q, k, v = query @ w_q, key @ w_k, value @ w_v
    merged = np.zeros((len(q), num_heads * d_v))
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)
        for t in range(len(q)):
            scores = [float(q[t, own] @ k[s, own]) / math.sqrt(d) for s in range(len(k))]
            exponentials = [math.exp(x - max(scores)) for x in scores]
            for s, e in enumerate(exponentials):
                merged[t, h * d_v : (h + 1) * d_v] += e / sum(exponentials) * v[s, h * d_v : (h + 1) * d_v]
    return merged @ w_o


@style("multi_head_attention", "masks as well, float64 inside, cast back")
def mha_masks(query, key, value, w_q, w_k, w_v, w_o, num_heads, *, attn_mask=None, is_causal=False):
    arrays = [x.astype(np.float64) for x in (query @ w_q, key @ w_k, value @ w_v)]
    q, k, v = split_all(arrays, num_heads)
    scores = q @ swap(k) / math.sqrt(q.shape[-1])
    allowed = np.ones(scores.shape, bool)
    if attn_mask is not None:
        allowed &= attn_mask
    if is_causal:
        allowed &= np.tril(np.ones(scores.shape[-2:], bool))
    e = np.where(allowed, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    total = e.sum(-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return (merge_concatenate(weights @ v) @ w_o).astype(query.dtype)


@style("multi_head_attention", "attnlib's attention between an own split and merge, one mask")
def mha_library(query, key, value, w_q, w_k, w_v, w_o, num_heads, *, is_causal=False):
    q, k, v = (split_stack(x, num_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    return merge_moveaxis(attnlib.scaled_dot_product_attention(q, k, v, is_causal=is_causal)) @ w_o


@style("multi_head_attention", "the matrices of a head multiplied first, as W_q W_k^T and W_v W_o")
def mha_circuits(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    wq, wk, wv = (split_heads(w, num_heads) for w in (w_q, w_k, w_v))  # (H, E, D)
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    scores = query[..., None, :, :] @ (wq @ swap(wk)) @ swap(key[..., None, :, :]) / math.sqrt(wq.shape[-1])
    return (softmax(scores) @ value[..., None, :, :] @ (wv @ bands)).sum(axis=-3)


@style("multi_head_attention", "split, F.scaled_dot_product_attention, merge", backend="torch")
def mha_torch(query, key, value, w_q, w_k, w_v, w_o, num_heads, attn_mask=None, is_causal=False):
    q, k, v = (split_torch(x, num_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    if is_causal:
        causal = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril()
        attn_mask = causal if attn_mask is None else causal & attn_mask
    return merge_torch(F.scaled_dot_product_attention(q, k, v, attn_mask)) @ w_o


@style("multi_head_attention", "matmul and softmax", backend="torch")
def mha_torch_matmul(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_torch_chunk(x, num_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    weights = torch.softmax(torch.matmul(q, k.mT) / math.sqrt(q.size(-1)), dim=-1)
    return merge_torch_flatten(weights @ v) @ w_o


@style("multi_head_attention", "F.linear with transposed matrices, a loop over heads", backend="torch")
def mha_torch_loop(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    projected = (F.linear(x, w.T) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    heads = []
    for q, k, v in zip(*(x.chunk(num_heads, -1) for x in projected), strict=True):
        scores = torch.einsum("...td,...sd->...ts", q, k) / q.shape[-1] ** 0.5
        heads.append(F.softmax(scores, -1) @ v)
    return torch.cat(heads, -1) @ w_o


@style("multi_head_attention", "einsum throughout", backend="torch")
def mha_torch_einsum(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = torch.einsum("...te,ehd->...htd", query, w_q.unflatten(1, (num_heads, -1)))
    k = torch.einsum("...te,ehd->...htd", key, w_k.unflatten(1, (num_heads, -1)))
    v = torch.einsum("...te,ehd->...htd", value, w_v.unflatten(1, (num_heads, -1)))
    weights = (q @ k.transpose(-1, -2)).div(q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("...hts,...hsd,hde->...te", weights, v, w_o.unflatten(0, (num_heads, -1)))


@style("multi_head_attention", "logsumexp, float64 inside, cast back", backend="torch")
def mha_torch_cast(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    dtype = query.dtype
    query, key, value, w_q, w_k, w_v, w_o = (x.double() for x in (query, key, value, w_q, w_k, w_v, w_o))
    q, k, v = (split_torch_loop(x, num_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    scores = q @ k.mT * q.size(-1) ** -0.5
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return (merge_torch_cat(weights @ v) @ w_o).to(dtype)


# MultiHeadAttention ----------------------------------------------------------------------------------------------


class Layers(attnlib.numpy.Module):
    """Four layers of NumPy arrays."""

    def __init__(self, embed_dim, num_heads):
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, attnlib.numpy.Linear(embed_dim, embed_dim))

    def projected(self, query, key, value):
        key = query if key is None else key
        value = key if value is None else value
        return self.q_proj(query), self.k_proj(key), self.v_proj(value)


@style("MultiHeadAttention", "a subclass of attnlib's Module")
class Plain(Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = split_all(self.projected(query, key, value), self.num_heads)
        weights = softmax(q @ swap(k) / math.sqrt(q.shape[-1]))
        out = self.out_proj(merge_heads(weights @ v))
        return (out, weights) if need_weights else out


@style("MultiHeadAttention", "attnlib.scaled_dot_product_attention, the weights as attention over an identity")
class OverIdentity(Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = (split_stack(x, self.num_heads) for x in self.projected(query, key, value))
        out = self.out_proj(merge_concatenate(attnlib.scaled_dot_product_attention(q, k, v)))
        return (out, attnlib.scaled_dot_product_attention(q, k, np.eye(k.shape[-2]))) if need_weights else out


@style("MultiHeadAttention", "a class of its own, with __call__ and a dictionary of parameters")
class OwnParameters:
    def __init__(self, embed_dim, num_heads):
        self.heads = num_heads
        names = [f"{part}_proj.{kind}" for part in ("q", "k", "v", "out") for kind in ("weight", "bias")]
        self.parameters = {n: np.zeros((embed_dim,) * (2 if n.endswith("weight") else 1)) for n in names}

    def eval(self):
        return self

    def named_parameters(self):
        return self.parameters.items()

    def state_dict(self):
        return self.parameters

    def load_state_dict(self, state):
        self.parameters = dict(state)

    def __call__(self, query, key=None, value=None, *, need_weights=False):
        p = self.parameters
        inputs = query, query if key is None else key, value
        inputs = (*inputs[:2], inputs[1] if value is None else value)
        q, k, v = (x @ p[f"{n}_proj.weight"].T + p[f"{n}_proj.bias"] for n, x in zip("qkv", inputs, strict=True))
        tables, out = [], []
        for one in range(self.heads):
            own = slice(one * q.shape[-1] // self.heads, (one + 1) * q.shape[-1] // self.heads)
            scores = np.einsum("btd,bsd->bts", q[..., own], k[..., own]) / (q.shape[-1] / self.heads) ** 0.5
            tables.append(softmax(scores))
            out.append(tables[-1] @ v[..., own])
        result = np.concatenate(out, -1) @ p["out_proj.weight"].T + p["out_proj.bias"]
        return [result, np.stack(tables, 1)] if need_weights else result


@style("MultiHeadAttention", "with masks and more arguments")
class WithMasks(Layers):
    def __init__(self, embed_dim, num_heads, bias=True, dropout=0.0):
        super().__init__(embed_dim, num_heads)

    def forward(self, query, key=None, value=None, attn_mask=None, is_causal=False, need_weights=False):
        q, k, v = split_all(self.projected(query, key, value), self.num_heads)
        scores = q @ swap(k) * q.shape[-1] ** -0.5
        if attn_mask is not None:
            scores = np.where(attn_mask, scores, -1e9)
        if is_causal:
            scores = scores + np.triu(np.full(scores.shape[-2:], -1e9), k=1)
        weights = softmax(scores)
        out = self.out_proj(merge_moveaxis(weights @ v))
        return (out, weights) if need_weights else out


@style("MultiHeadAttention", "the function of the exercise before, biases appended to the matrices")
class FromFunction(Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        layers = (self.q_proj, self.k_proj, self.v_proj)
        matrices = [np.vstack([layer.weight.T, layer.bias]) for layer in layers]
        ones = [np.concatenate([x, np.ones_like(x[..., :1])], -1) for x in (query, key, value)]
        out = mha_slices(*ones, *matrices, self.out_proj.weight.T, self.num_heads) + self.out_proj.bias
        if not need_weights:
            return out
        q, k = (split_heads(x @ w, self.num_heads) for x, w in zip(ones[:2], matrices[:2], strict=True))
        return out, softmax(q @ swap(k) / q.shape[-1] ** 0.5)


class FourLayers(nn.Module):
    """Four layers of torch."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def heads(self, query, key, value):
        key = query if key is None else key
        value = key if value is None else value
        batch = query.size(0)
        pairs = (self.q_proj, query), (self.k_proj, key), (self.v_proj, value)
        return [p(x).view(batch, -1, self.num_heads, self.head_dim).transpose(1, 2) for p, x in pairs]


@style("MultiHeadAttention", "view and transpose", backend="torch")
class TorchPlain(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.heads(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.head_dim), dim=-1)
        out = self.out_proj((weights @ v).transpose(1, 2).contiguous().view(query.shape))
        return (out, weights) if need_weights else out


@style("MultiHeadAttention", "F.scaled_dot_product_attention, the weights on demand", backend="torch")
class TorchFused(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.heads(query, key, value)
        out = self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return (out, torch.softmax(q @ k.mT / self.head_dim**0.5, dim=-1)) if need_weights else out


@style("MultiHeadAttention", "masks with masked_fill, and dropout", backend="torch")
class TorchMasks(FourLayers):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__(embed_dim, num_heads)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, attn_mask=None, is_causal=False, need_weights=False):
        q, k, v = self.heads(query, key, value)
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) * self.head_dim**-0.5
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        weights = scores.softmax(-1)
        out = torch.einsum("bhts,bhsd->bthd", self.dropout(weights), v).reshape(query.shape)
        return (self.out_proj(out), weights) if need_weights else self.out_proj(out)


@style("MultiHeadAttention", "a loop over heads", backend="torch")
class TorchLoop(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        out, tables = [], []
        for a, b, c in zip(*(x.split(self.head_dim, -1) for x in (q, k, v)), strict=True):
            tables.append(F.softmax(torch.bmm(a, b.mT) / self.head_dim**0.5, -1))
            out.append(torch.bmm(tables[-1], c))
        result = self.out_proj(torch.cat(out, -1))
        return (result, torch.stack(tables, 1)) if need_weights else result


@style("MultiHeadAttention", "a ModuleDict's worth of parameters and torch's function", backend="torch")
class TorchFunctional(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        biases = torch.cat([self.q_proj.bias, self.k_proj.bias, self.v_proj.bias])
        out, weights = F.multi_head_attention_forward(
            *(x.transpose(0, 1) for x in (query, key, value)), query.size(-1), self.num_heads, None, biases, None, None,
            False, 0.0, self.out_proj.weight, self.out_proj.bias, use_separate_proj_weight=True,
            q_proj_weight=self.q_proj.weight, k_proj_weight=self.k_proj.weight, v_proj_weight=self.v_proj.weight,
            average_attn_weights=False,
        )  # fmt: skip
        return (out.transpose(0, 1), weights) if need_weights else out.transpose(0, 1)
