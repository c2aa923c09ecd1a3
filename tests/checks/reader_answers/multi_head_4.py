"""Answers to the notebook "Exercises: many heads", as students might write them."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


def softmax(x, axis=-1):
    """Stand-in for attnlib.softmax."""
    top = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


def _split(x, num_heads):
    *leading, T, width = x.shape
    return x.reshape(*leading, T, num_heads, width // num_heads).swapaxes(-2, -3)


def _merge(x):
    *leading, H, T, D = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, H * D)


def _tsplit(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)


def _tmerge(x):
    return x.transpose(-2, -3).flatten(-2)


# ---------------------------------------------------------------- split_heads


@answer(
    "split_heads",
    "numpy",
    "sh-columns-modulo",
    "wrong",
    "The columns are dealt out like cards (head h gets h, h+H, ...) instead of in neighbouring strips.",
)
def split_heads_w1(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    pieces = x.reshape(*leading, T, D, num_heads)
    return np.moveaxis(pieces, -1, -3)


@answer(
    "split_heads",
    "numpy",
    "sh-step-is-h",
    "wrong",
    "Each strip is num_heads wide instead of D wide, so it is only right if the two are equal.",
)
def split_heads_w2(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    parts = []
    for start in range(0, width, num_heads):
        parts.append(x[..., start : start + num_heads])
    return np.stack(parts, axis=-3)


@answer(
    "split_heads",
    "numpy",
    "sh-front-stack",
    "wrong",
    "The heads are stacked in front of everything; with a batch they have to stand behind it, just before the words.",
)
def split_heads_w3(x, num_heads):
    *leading, T, width = x.shape
    return np.array(np.split(x, num_heads, axis=-1))


@answer(
    "split_heads",
    "numpy",
    "sh-shape-assigned",
    "wrong",
    "x.shape is assigned to, so the array of the caller has another shape after the call.",
)
def split_heads_w4(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    x.shape = (*leading, T, num_heads, D)
    return x.swapaxes(-3, -2)


@answer(
    "split_heads",
    "numpy",
    "sh-swap-t-d",
    "wrong",
    "It swaps the last two axes instead of words and heads: (..., T, D, H) is then reshaped back into the right shape with the numbers mixed up.",
)
def split_heads_w5(x, num_heads):
    *leading, T, width = x.shape
    D = width // num_heads
    cut = x.reshape(*leading, T, num_heads, D)
    return cut.swapaxes(-1, -2).reshape(*leading, num_heads, T, D)


@answer("split_heads", "numpy", "sh-r-index-table", "right")
def split_heads_r1(x, num_heads):
    width = x.shape[-1]
    columns = np.arange(width).reshape(num_heads, width // num_heads)  # which columns belong to which head
    picked = np.take(x, columns, axis=-1)  # (..., T, H, D)
    return np.einsum("...thd->...htd", picked).copy()


# ---------------------------------------------------------------- merge_heads


@answer(
    "merge_heads",
    "numpy",
    "mh-list-concat",
    "wrong",
    "Iterating over x goes over the first axis, which is the batch and not the heads as soon as there is one.",
)
def merge_heads_w1(x):
    return np.concatenate(list(x), axis=-1)


@answer(
    "merge_heads",
    "numpy",
    "mh-d-major",
    "wrong",
    "The head axis is moved to the very end, so the columns of the heads alternate: head 0, head 1, head 0, ...",
)
def merge_heads_w2(x):
    *leading, H, T, D = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "mh-names-swapped",
    "wrong",
    "H and T are read in the wrong order from the shape, so the result is a plain reshape into (H, T*D) rows.",
)
def merge_heads_w4(x):
    *leading, T, H, D = x.shape
    turned = np.swapaxes(x, -2, -3)
    return turned.reshape(*leading, T, H * D)


@answer(
    "merge_heads",
    "numpy",
    "mh-batch-lost",
    "wrong",
    "reshape(T, -1) throws the dimensions in front away: sentences of a batch end up side by side.",
)
def merge_heads_w5(x):
    H, T, D = x.shape[-3:]
    return np.swapaxes(x, -3, -2).reshape(T, -1)


@answer(
    "merge_heads",
    "numpy",
    "mh-reversed",
    "wrong",
    "The heads are put together from the last to the first: head 0 has to stand on the left.",
)
def merge_heads_w6(x):
    H = x.shape[-3]
    out = x[..., 0, :, :]
    for h in range(1, H):
        out = np.concatenate([x[..., h, :, :], out], axis=-1)
    return out


@answer("merge_heads", "numpy", "mh-r-fill", "right")
def merge_heads_r1(x):
    *front, H, T, D = x.shape
    table = np.zeros((*front, T, H * D), dtype=x.dtype)
    for column in range(H * D):
        h, d = divmod(column, D)
        table[..., column] = x[..., h, :, d]
    return table


# ---------------------------------------------------------------- multi_head_attention


@answer(
    "multi_head_attention",
    "numpy",
    "mha-scale-e-by-h",
    "wrong",
    "D is taken as E // H from the width of the query; the width of a head is that of w_q divided by H, and E may be another.",
)
def mha_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = query.shape[-1] // num_heads
    q, k, v = _split(query @ w_q, num_heads), _split(key @ w_k, num_heads), _split(value @ w_v, num_heads)
    weights = softmax(q @ np.swapaxes(k, -1, -2) / math.sqrt(D))
    return _merge(weights @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mha-scale-dv",
    "wrong",
    "It divides by the root of the width of a value, D_v, but a score sums over D products.",
)
def mha_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (_split(a @ w, num_heads) for a, w in ((query, w_q), (key, w_k), (value, w_v)))
    d = v.shape[-1]
    scores = np.einsum("...htd,...hsd->...hts", q, k) * d**-0.5
    heads = np.einsum("...hts,...hsd->...htd", softmax(scores), v)
    return _merge(heads) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mha-loop-shadow",
    "wrong",
    "Inside the loop q, k and v are overwritten by the part of the first head, so the other heads find nothing left.",
)
def mha_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = query @ w_q, key @ w_k, value @ w_v
    D, Dv = q.shape[-1] // num_heads, v.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        q = q[..., h * D : (h + 1) * D]
        k = k[..., h * D : (h + 1) * D]
        v = v[..., h * Dv : (h + 1) * Dv]
        a = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(D))
        heads.append(a @ v)
    return np.concatenate(heads, axis=-1) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mha-w-scaled-inplace",
    "wrong",
    "w_q /= sqrt(D) changes the matrix of the caller: a second call gives another result.",
)
def mha_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D = w_q.shape[-1] // num_heads
    w_q /= np.sqrt(D)
    q = _split(query @ w_q, num_heads)
    k = _split(key @ w_k, num_heads)
    v = _split(value @ w_v, num_heads)
    return _merge(softmax(q @ k.swapaxes(-1, -2)) @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mha-one-table-of-weights",
    "wrong",
    "The scores of all heads are averaged before the softmax, so that every head looks at the same words.",
)
def mha_w7(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q = _split(query @ w_q, num_heads)
    k = _split(key @ w_k, num_heads)
    v = _split(value @ w_v, num_heads)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = softmax(scores.mean(axis=-3, keepdims=True))
    return _merge(weights @ v) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mha-head-t",
    "wrong",
    "k.T turns all axes around: with a batch in front the shapes no longer fit.",
)
def mha_w8(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    qs = np.split(query @ w_q, num_heads, axis=-1)
    ks = np.split(key @ w_k, num_heads, axis=-1)
    vs = np.split(value @ w_v, num_heads, axis=-1)
    heads = [softmax(q @ k.T / np.sqrt(k.shape[-1])) @ v for q, k, v in zip(qs, ks, vs)]
    return np.hstack(heads) @ w_o


@answer(
    "multi_head_attention",
    "numpy",
    "mended-bands-too",
    "wrong",
    "The columns of w_q, w_k and w_v are cut rightly now, but w_o is cut by columns as well: its bands are rows.",
)
def mended_w1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    heads = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    bands = w_o.reshape(-1, num_heads, w_o.shape[-1]).swapaxes(0, 1)
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended-values-left",
    "wrong",
    "Queries and keys are mended, but w_v is still cut by a single reshape.",
)
def mended_w2(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.stack(np.split(w, num_heads, axis=1))

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ w_v.reshape(num_heads, w_v.shape[0], -1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    heads = softmax(scores) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended-cut-strided",
    "wrong",
    "cut gives head h the columns h, h+H, h+2H, ... instead of a strip of neighbours.",
)
def mended_w3(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.array([w[:, h::num_heads] for h in range(num_heads)])

    q = query[..., None, :, :] @ cut(w_q)
    k = key[..., None, :, :] @ cut(w_k)
    v = value[..., None, :, :] @ cut(w_v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    heads = softmax(scores) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return (heads @ bands).sum(axis=-3)


@answer(
    "multi_head_attention",
    "numpy",
    "mended-sum-axis-0",
    "wrong",
    "The heads are added up along axis 0, which is the batch when there is one.",
)
def mended_w4(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.moveaxis(w.reshape(w.shape[0], num_heads, -1), 1, 0)

    q, k, v = (a[..., None, :, :] @ cut(w) for a, w in ((query, w_q), (key, w_k), (value, w_v)))
    heads = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return np.sum(heads @ bands, axis=0)


@answer("multi_head_attention", "numpy", "mended-r-loop", "right")
def mended_r1(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    D, Dv = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    out = 0
    for h in range(num_heads):
        mine, mine_v = slice(h * D, h * D + D), slice(h * Dv, h * Dv + Dv)
        both = w_q[:, mine] @ w_k[:, mine].T / np.sqrt(D)  # (E, E_k): one matrix for the scores
        scores = query @ both @ np.swapaxes(key, -1, -2)
        out = out + softmax(scores) @ (value @ (w_v[:, mine_v] @ w_o[mine_v]))
    return out


# ---------------------------------------------------------------- MultiHeadAttention


class _Layers(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-weights-averaged",
    "wrong",
    "The weights are averaged over the heads as torch's own module does; a table for each head is asked for.",
)
class MHA_w1(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            _tsplit(self.q_proj(query), self.num_heads),
            _tsplit(self.k_proj(key), self.num_heads),
            _tsplit(self.v_proj(value), self.num_heads),
        )
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        out = self.out_proj(_tmerge(weights @ v))
        return (out, weights.mean(dim=1)) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-dropout",
    "wrong",
    "A dropout on the weights, copied from the Annotated Transformer: a layer in training mode gives random results.",
)
class MHA_w3(_Layers):
    def __init__(self, embed_dim, num_heads, dropout=0.1):
        super().__init__(embed_dim, num_heads)
        self.d_k = embed_dim // num_heads
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.num_heads, self.d_k).transpose(1, 2)
            for lin, x in zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value))
        ]
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        p_attn = self.dropout(scores.softmax(dim=-1))
        x = torch.matmul(p_attn, value).transpose(1, 2).contiguous().view(nbatches, -1, self.num_heads * self.d_k)
        return (self.out_proj(x), p_attn) if need_weights else self.out_proj(x)


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-w-not-transposed",
    "wrong",
    "The output is multiplied by out_proj.weight itself; a linear layer multiplies by its transpose.",
)
class MHA_w4(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = _tsplit(self.q_proj(query), self.num_heads)
        k = _tsplit(self.k_proj(key), self.num_heads)
        v = _tsplit(self.v_proj(value), self.num_heads)
        weights = torch.softmax(torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.size(-1)), -1)
        out = _tmerge(torch.einsum("bhts,bhsd->bhtd", weights, v)) @ self.out_proj.weight + self.out_proj.bias
        if need_weights:
            return out, weights
        return out


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-detached-weights",
    "wrong",
    "The weights are detached before they are used, so q_proj and k_proj learn nothing.",
)
class MHA_w5(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            _tsplit(p(x), self.num_heads) for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        weights = scores.softmax(-1).detach()
        out = self.out_proj(_tmerge(weights @ v))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-value-from-query",
    "wrong",
    "Without a value the query is taken as the value; it has to be the key.",
)
class MHA_w6(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = query
        q = _tsplit(self.q_proj(query), self.num_heads)
        k = _tsplit(self.k_proj(key), self.num_heads)
        v = _tsplit(self.v_proj(value), self.num_heads)
        w = ((q @ k.mT) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        o = self.out_proj(_tmerge(w @ v))
        return (o, w) if need_weights else o


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-view-without-transpose",
    "wrong",
    "After attention the heads are viewed as (B, T, E) without bringing the words to the front: words and heads are mixed up.",
)
class MHA_w8(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        q = _tsplit(self.q_proj(query), self.num_heads)
        k = _tsplit(self.k_proj(key), self.num_heads)
        v = _tsplit(self.v_proj(value), self.num_heads)
        weights = F.softmax(q @ k.transpose(2, 3) / (E // self.num_heads) ** 0.5, dim=3)
        out = self.out_proj((weights @ v).contiguous().view(B, T, E))
        return (out, weights) if need_weights else out


@answer(
    "MultiHeadAttention",
    "torch",
    "layer-q-bias-twice",
    "wrong",
    "The bias of the queries is added once by the linear layer and once more by hand.",
)
class MHA_w9(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = _tsplit(self.q_proj(query) + self.q_proj.bias, self.num_heads)
        k = _tsplit(self.k_proj(key), self.num_heads)
        v = _tsplit(self.v_proj(value), self.num_heads)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(_tmerge(weights @ v))
        return (out, weights) if need_weights else out


@answer("MultiHeadAttention", "torch", "layer-always-pair", "wrong", "It returns a pair even if need_weights is False.")
class MHA_w10(_Layers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q = _tsplit(self.q_proj(query), self.num_heads)
        k = _tsplit(self.k_proj(key), self.num_heads)
        v = _tsplit(self.v_proj(value), self.num_heads)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        out = self.out_proj(_tmerge(weights @ v))
        if not need_weights:
            weights = None
        return out, weights


@answer("MultiHeadAttention", "torch", "layer-r-head-by-head", "right")
class MHA_r1(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads, self.width = num_heads, embed_dim // num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim))

    def forward(self, query, key=None, value=None, *, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = key
        result, tables = self.out_proj.bias, []
        for h in range(self.heads):
            rows = slice(h * self.width, (h + 1) * self.width)
            q = F.linear(query, self.q_proj.weight[rows], self.q_proj.bias[rows])
            k = F.linear(key, self.k_proj.weight[rows], self.k_proj.bias[rows])
            v = F.linear(value, self.v_proj.weight[rows], self.v_proj.bias[rows])
            scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.width)
            scores = scores - scores.amax(dim=2, keepdim=True).detach()
            e = scores.exp()
            w = e / e.sum(dim=2, keepdim=True)
            tables.append(w)
            result = result + F.linear(torch.bmm(w, v), self.out_proj.weight[:, rows])
        return (result, torch.stack(tables, dim=1)) if need_weights else result


@answer("MultiHeadAttention", "torch", "layer-r-fold-heads-into-batch", "right")
class MHA_r2(_Layers):
    def _fold(self, x):
        B, L, E = x.shape
        return (
            x.reshape(B, L, self.num_heads, E // self.num_heads).permute(0, 2, 1, 3).reshape(B * self.num_heads, L, -1)
        )

    def forward(self, query, key=None, value=None, *, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        B, T, E = query.shape
        D = E // self.num_heads
        q, k, v = self._fold(self.q_proj(query)), self._fold(self.k_proj(key)), self._fold(self.v_proj(value))
        logits = torch.baddbmm(q.new_zeros(q.shape[0], T, k.shape[1]), q, k.transpose(1, 2), alpha=1 / math.sqrt(D))
        weights = torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))
        heads = torch.bmm(weights, v).view(B, self.num_heads, T, D)
        out = self.out_proj(heads.permute(0, 2, 1, 3).reshape(B, T, E))
        if need_weights:
            return out, weights.view(B, self.num_heads, T, -1)
        return out
