"""Answers to the exercises of chapter 7, the transformer: a second set, written from the notebook alone."""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWERS = []
UNASKED = {"MultiHeadAttention": "need_weights"}  # the argument that this notebook does not ask for


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ----------------------------------------------------------------------------------------------------------------------
# Stand-ins for what the notebook imports from attnlib
# ----------------------------------------------------------------------------------------------------------------------


def split_heads(x, num_heads):
    """(B, T, E) -> (B, H, T, D)"""
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).transpose(-3, -2)


def merge_heads(x):
    """(B, H, T, D) -> (B, T, E)"""
    x = x.transpose(-3, -2)
    return x.reshape(*x.shape[:-2], -1)


class _Given(nn.Module):
    """What the notebook gives of MultiHeadAttention: four linear layers, and queries, keys and values cut into heads."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def cut(self, query, key, value):
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, T, D)
        k = split_heads(self.k_proj(key), self.num_heads)  # (B, H, S, D)
        v = split_heads(self.v_proj(value), self.num_heads)
        return q, k, v


class _LibraryAttention(_Given):
    """Stand-in for attnlib.torch.MultiHeadAttention."""

    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        return self.out_proj(merge_heads(torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v))


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


attnlib = SimpleNamespace(torch=SimpleNamespace(MultiHeadAttention=_LibraryAttention), softmax=_softmax)


# ----------------------------------------------------------------------------------------------------------------------
# Task 2: MultiHeadAttention
# ----------------------------------------------------------------------------------------------------------------------


@answer("MultiHeadAttention", "torch", "head by head through strips of the output projection", "right")
class HeadsR1(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        D = q.shape[-1]
        out = self.out_proj.bias
        for h, strip in enumerate(self.out_proj.weight.split(D, dim=1)):  # (E, D)
            p = (q[:, h] @ k[:, h].mT / D**0.5).softmax(dim=-1)
            out = out + p @ v[:, h] @ strip.T
        return out


@answer("MultiHeadAttention", "torch", "einsum and logsumexp", "right")
class HeadsR2(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        s = torch.einsum("bhtd,bhsd->bhts", q, k) * q.size(-1) ** -0.5
        p = (s - s.logsumexp(dim=3, keepdim=True)).exp()
        o = torch.einsum("bhts,bhsd->bthd", p, v).flatten(start_dim=2)
        return self.out_proj(o)


@answer("MultiHeadAttention", "torch", "bmm over sequences and heads", "right")
class HeadsR3(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = (t.flatten(0, 1) for t in self.cut(query, key, value))
        B, H = query.shape[0], self.num_heads
        scores = torch.bmm(k, q.transpose(1, 2)) / math.sqrt(q.shape[2])  # (BH, S, T): keys first
        weights = F.softmax(scores, dim=1)
        heads = torch.bmm(weights.transpose(1, 2), v).unflatten(0, (B, H))
        return self.out_proj(torch.cat(heads.unbind(dim=1), dim=-1))


@answer("MultiHeadAttention", "torch", "everything cut anew", "right")
class HeadsR4(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim))

    def one_head(self, q, k, v):
        scale = 1 / math.sqrt(q.shape[-1])
        return torch.softmax(scale * torch.matmul(q, k.transpose(-1, -2)), dim=-1) @ v

    def forward(self, query, key=None, value=None):
        if key is None:
            key = query
        if value is None:
            value = key
        strips = [
            proj(x).chunk(self.num_heads, dim=-1)
            for proj, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        ]
        return self.out_proj(torch.cat([self.one_head(*qkv) for qkv in zip(*strips)], dim=-1))


@answer("MultiHeadAttention", "torch", "dot products by broadcasting", "right")
class HeadsR5(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(dim=-1).div(math.sqrt(q.size(3)))
        weights = torch.exp(F.log_softmax(scores, dim=3))
        heads = (weights.unsqueeze(4) * v.unsqueeze(2)).sum(dim=3)
        return self.out_proj(heads.movedim(1, 2).contiguous().view(*query.shape))


@answer(
    "MultiHeadAttention",
    "torch",
    "scale of the whole width",
    "wrong",
    "Divided by sqrt(E); a score sums over D numbers.",
)
class HeadsW1(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(query.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ v))


@answer("MultiHeadAttention", "torch", "no scale", "wrong", "The scores are not divided by sqrt(D).")
class HeadsW2(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = (q @ k.transpose(-2, -1)).softmax(-1)
        return self.out_proj(merge_heads(weights @ v))


@answer("MultiHeadAttention", "torch", "divided by D", "wrong", "Divided by D instead of its root.")
class HeadsW3(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        head_dim = q.size(-1)
        weights = torch.softmax(torch.matmul(q, k.mT) / head_dim, dim=-1)
        return self.out_proj(merge_heads(weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "softmax over the queries",
    "wrong",
    "dim=-2 is the axis of the queries; the weights of one query have to sum to 1 over the keys.",
)
class HeadsW4(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-2)
        return self.out_proj(merge_heads(weights @ v))


@answer("MultiHeadAttention", "torch", "softmax over the heads", "wrong", "dim=1 is the axis of the heads.")
class HeadsW5(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
        return self.out_proj(merge_heads(F.softmax(scores, dim=1) @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "no output projection",
    "wrong",
    "The heads are put side by side, and returned without the output projection.",
)
class HeadsW6(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return merge_heads(weights @ v)


@answer(
    "MultiHeadAttention",
    "torch",
    "reshape without transpose",
    "wrong",
    "(B, H, T, D) is reshaped to (B, T, E) without transposing: heads and positions are mixed up.",
)
class HeadsW7(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj((weights @ v).reshape(query.shape))


@answer(
    "MultiHeadAttention",
    "torch",
    "heads interleaved",
    "wrong",
    "The heads are merged number by number (all first numbers, then all second ones), not strip by strip.",
)
class HeadsW8(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        together = torch.stack((weights @ v).unbind(1), dim=-1)  # (B, T, D, H)
        return self.out_proj(together.flatten(2))


@answer("MultiHeadAttention", "torch", "keys averaged", "wrong", "The keys are averaged in place of the values.")
class HeadsW9(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ k))


@answer(
    "MultiHeadAttention",
    "torch",
    "residual inside",
    "wrong",
    "The query is added to the result; the plus sign belongs to the block.",
)
class HeadsW10(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return query + self.out_proj(merge_heads(weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "causal as in GPT",
    "wrong",
    "A causal mask was copied along; here nothing is masked.",
)
class HeadsW11(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        tril = torch.tril(torch.ones(att.shape[-2:], dtype=torch.bool, device=att.device))
        att = F.softmax(att.masked_fill(~tril, float("-inf")), dim=-1)
        return self.out_proj(merge_heads(att @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "weights returned, too",
    "wrong",
    "It returns a pair, as torch's own module does; only the output is asked for.",
)
class HeadsW12(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ v)), weights


@answer(
    "MultiHeadAttention",
    "torch",
    "as many keys as queries",
    "wrong",
    "The merged result is shaped with the number of KEYS: an error as soon as T is not S.",
)
class HeadsW13(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        B, H, S, D = k.shape
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(D), dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(B, S, H * D))


@answer(
    "MultiHeadAttention",
    "torch",
    "queries and keys exchanged",
    "wrong",
    "k q^T: the keys ask and the queries answer; with T = S nothing complains.",
)
class HeadsW14(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ v))


@answer("MultiHeadAttention", "torch", "scaled twice", "wrong", "Both q and the scores are divided by sqrt(D).")
class HeadsW15(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        q = q * q.shape[-1] ** -0.5
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return self.out_proj(merge_heads(scores.softmax(-1) @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "bias of the output forgotten",
    "wrong",
    "The output projection is written out by hand, without its bias.",
)
class HeadsW16(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return merge_heads(weights @ v) @ self.out_proj.weight.T


@answer(
    "MultiHeadAttention",
    "torch",
    "weight of the output not transposed",
    "wrong",
    "nn.Linear keeps its weight as (out, in): here it is used without the transpose, and the square shape hides it.",
)
class HeadsW17(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return merge_heads(weights @ v) @ self.out_proj.weight + self.out_proj.bias


@answer(
    "MultiHeadAttention",
    "torch",
    "dropout of ten percent",
    "wrong",
    "Dropout was added: a fresh module is in training mode, and one weight in ten is lost.",
)
class HeadsW18(_Given):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(self.dropout(weights) @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "only the first head's weights",
    "wrong",
    "The index of the loop is not used for the weights: every head attends as head 0 does.",
)
class HeadsW19(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores[:, 0], dim=-1)
        heads = []
        for h in range(self.num_heads):
            heads.append(weights @ v[:, h])
        return self.out_proj(torch.cat(heads, dim=-1))


@answer(
    "MultiHeadAttention",
    "torch",
    "value from the query",
    "wrong",
    "The given line was changed: a missing value becomes the query, not the key.",
)
class HeadsW20(_Given):
    def forward(self, query, key=None, value=None):
        key = query if key is None else key
        value = query if value is None else value
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "mean of the heads",
    "wrong",
    "The heads are averaged (and repeated to fill the width) instead of put side by side.",
)
class HeadsW21(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        mean = (weights @ v).mean(dim=1)
        return self.out_proj(mean.repeat(1, 1, self.num_heads))


@answer(
    "MultiHeadAttention",
    "torch",
    "head width of 64",
    "wrong",
    "sqrt(64) is written into the code, from a blog about BERT.",
)
class HeadsW22(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        weights = torch.softmax(q @ k.transpose(-2, -1) / 8.0, dim=-1)
        return self.out_proj(merge_heads(weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "exp by hand, no maximum",
    "wrong",
    "exp of large scores is inf, and inf / inf is nan.",
)
class HeadsW23(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        e = torch.exp(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
        weights = e / e.sum(dim=-1, keepdim=True)
        return self.out_proj(merge_heads(weights @ v))


@answer(
    "MultiHeadAttention",
    "torch",
    "all heads together",
    "wrong",
    "The heads are merged before the scores: it is one head of width E.",
)
class HeadsW24(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = (merge_heads(t) for t in self.cut(query, key, value))
        D = q.shape[-1] // self.num_heads
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(D), dim=-1)
        return self.out_proj(weights @ v)


@answer(
    "MultiHeadAttention",
    "torch",
    "weights without history",
    "wrong",
    "The weights are made a new tensor: no gradient reaches the projections of queries and keys.",
)
class HeadsW25(_Given):
    def forward(self, query, key=None, value=None):
        q, k, v = self.cut(query, key, value)
        with torch.no_grad():
            weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ v))


# ----------------------------------------------------------------------------------------------------------------------
# Task 3: TransformerBlock
# ----------------------------------------------------------------------------------------------------------------------


@answer("TransformerBlock", "torch", "two steps in methods", "right")
class BlockR1(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.norm2, self.norm1 = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)

    def think(self, x):
        return self.linear2(self.linear1(x).clamp(min=0))

    def forward(self, x):
        for part in (lambda u: self.self_attn(self.norm1(u)), lambda u: self.think(self.norm2(u))):
            x = x + part(x)
        return x


@answer("TransformerBlock", "torch", "parts from a table", "right")
class BlockR2(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        parts = {
            "self_attn": attnlib.torch.MultiHeadAttention(embed_dim, num_heads),
            "linear1": nn.Linear(embed_dim, ff_dim),
            "linear2": nn.Linear(ff_dim, embed_dim),
        }
        parts.update((f"norm{n}", nn.LayerNorm(embed_dim)) for n in (1, 2))
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        stream = x.clone()
        stream += self.self_attn(self.norm1(x))
        u = self.linear1(self.norm2(stream))
        return torch.add(stream, self.linear2(torch.where(u > 0, u, torch.zeros_like(u))))


@answer("TransformerBlock", "torch", "linear layers written out", "right")
class BlockR3(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, ff_dim: int) -> None:
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = nn.LayerNorm(normalized_shape=(embed_dim,), eps=1e-05, bias=True)
        self.norm2 = nn.LayerNorm(normalized_shape=(embed_dim,), eps=1e-05, bias=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.self_attn(self.norm1(x)) + x
        hidden = self.norm2(x) @ self.linear1.weight.T + self.linear1.bias
        hidden = (hidden + hidden.abs()) / 2
        return hidden @ self.linear2.weight.T + self.linear2.bias + x


@answer("TransformerBlock", "torch", "nn.ReLU in place, the change and the stream apart", "right")
class BlockR4(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        E, H, F_ = embed_dim, num_heads, ff_dim
        self.self_attn = attnlib.torch.MultiHeadAttention(E, H)
        self.linear1, self.linear2 = nn.Linear(E, F_), nn.Linear(F_, E)
        self.norm1, self.norm2 = (nn.LayerNorm(E) for _ in range(2))
        self.bend = nn.ReLU(inplace=True)

    def forward(self, x):
        said = self.self_attn(self.norm1(x))
        thought = self.linear2(self.bend(self.linear1(self.norm2(x + said))))
        return x + said + thought


class _Parts(nn.Module):
    """The five parts, as most students make them."""

    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)


@answer("TransformerBlock", "torch", "functional", "right")
class BlockR5(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.width = embed_dim
        self.norm1 = nn.LayerNorm(embed_dim)
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)

    def normalise(self, x, norm):
        return F.layer_norm(x, (self.width,), norm.weight, norm.bias)

    def forward(self, x):
        x2 = x + self.self_attn(self.normalise(x, self.norm1))
        hidden = F.threshold(F.linear(self.normalise(x2, self.norm2), self.linear1.weight, self.linear1.bias), 0.0, 0.0)
        return x2 + F.linear(hidden, self.linear2.weight, self.linear2.bias)


@answer("TransformerBlock", "torch", "post-norm", "wrong", "The older order: the norm comes after the plus sign.")
class BlockW1(_Parts):
    def forward(self, x):
        x = self.norm1(x + self.self_attn(x))
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))


@answer("TransformerBlock", "torch", "norm1 twice", "wrong", "The feed-forward layer reads norm1 instead of norm2.")
class BlockW2(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm1(x))))


@answer(
    "TransformerBlock",
    "torch",
    "added to the normalised copy",
    "wrong",
    "x is overwritten by its normalised copy: attention adds to that, not to the stream.",
)
class BlockW3(_Parts):
    def forward(self, x):
        x = self.norm1(x)
        x = x + self.self_attn(x)
        y = self.norm2(x)
        return x + self.linear2(F.relu(self.linear1(y)))


@answer(
    "TransformerBlock",
    "torch",
    "feed-forward adds to its normalised copy",
    "wrong",
    "In the second line the plus sign adds to norm2(X'), not to X'.",
)
class BlockW4(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        x = self.norm2(x)
        x = x + self.linear2(torch.relu(self.linear1(x)))
        return x


@answer(
    "TransformerBlock",
    "torch",
    "second plus sign missing",
    "wrong",
    "The feed-forward layer replaces the stream instead of adding to it.",
)
class BlockW5(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "first plus sign missing",
    "wrong",
    "Attention replaces the stream instead of adding to it.",
)
class BlockW6(_Parts):
    def forward(self, x):
        attended = self.self_attn(self.norm1(x))
        return attended + self.linear2(F.relu(self.linear1(self.norm2(attended))))


@answer(
    "TransformerBlock", "torch", "norm2 forgotten", "wrong", "The feed-forward layer reads X' as it is, without norm2."
)
class BlockW7(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        x = x + self.linear2(F.relu(self.linear1(x)))
        return x


@answer(
    "TransformerBlock",
    "torch",
    "second plus adds to X",
    "wrong",
    "The second sum starts from X, not from X': what attention said is lost on the way up.",
)
class BlockW8(_Parts):
    def forward(self, x):
        x_prime = x + self.self_attn(self.norm1(x))
        y = x + self.linear2(F.relu(self.linear1(self.norm2(x_prime))))
        return y


@answer(
    "TransformerBlock",
    "torch",
    "both parts side by side",
    "wrong",
    "The feed-forward layer reads X, not X': a parallel block, as in GPT-J.",
)
class BlockW9(_Parts):
    def forward(self, x):
        return x + self.self_attn(self.norm1(x)) + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer("TransformerBlock", "torch", "no bend", "wrong", "The ReLU between the two linear layers is missing.")
class BlockW10(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(self.linear1(self.norm2(x)))


@answer("TransformerBlock", "torch", "GELU", "wrong", "GELU, as in BERT and GPT; ReLU is asked for.")
class BlockW11(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "bend at the end",
    "wrong",
    "The ReLU comes after the second linear layer: the block can only add.",
)
class BlockW12(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + F.relu(self.linear2(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "other names",
    "wrong",
    "The parts have other names (attn, ff, ln_1, ln_2): weights cannot be loaded by name.",
)
class BlockW13(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.ln_1 = nn.LayerNorm(embed_dim)
        self.attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.ln_2 = nn.LayerNorm(embed_dim)
        self.ff = nn.Sequential(nn.Linear(embed_dim, ff_dim), nn.ReLU(), nn.Linear(ff_dim, embed_dim))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.ff(self.ln_2(x))


@answer(
    "TransformerBlock",
    "torch",
    "epsilon of BERT",
    "wrong",
    "eps=1e-12 is BERT's; the task asks for the norm as torch makes it, 1e-5.",
)
class BlockW14(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-12)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-12)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock", "torch", "only the queries normalised", "wrong", "Keys and values are made from the raw stream."
)
class BlockW15(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x), x, x)
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "a norm at the end",
    "wrong",
    "A norm is laid over the result, as behind the last block of a stack.",
)
class BlockW16(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        x = x + self.linear2(F.relu(self.linear1(self.norm2(x))))
        return self.norm2(x)


@answer("TransformerBlock", "torch", "no return", "wrong", "forward has no return: it gives None.")
class BlockW17(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        x = x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "dropout as in the paper",
    "wrong",
    "Dropout of 0.1 behind both parts, on in a fresh module; the task says: no dropout.",
)
class BlockW18(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim, dropout=0.1):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout1(self.self_attn(self.norm1(x)))
        return x + self.dropout2(self.linear2(F.relu(self.linear1(self.norm2(x)))))


@answer("TransformerBlock", "torch", "input changed in place", "wrong", "x += ... writes into the caller's tensor.")
class BlockW19(_Parts):
    def forward(self, x):
        x += self.self_attn(self.norm1(x))
        x += self.linear2(F.relu(self.linear1(self.norm2(x))))
        return x


@answer(
    "TransformerBlock",
    "torch",
    "torch's own attention",
    "wrong",
    "self_attn is nn.MultiheadAttention: its weights have other names, and attnlib's cannot be loaded.",
)
class BlockW20(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.self_attn = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, x):
        n = self.norm1(x)
        x = x + self.self_attn(n, n, n, need_weights=False)[0]
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "one norm with two names",
    "wrong",
    "norm2 = norm1 is the same module: both lines share one set of weights.",
)
class BlockW21(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = self.norm2 = nn.LayerNorm(embed_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "only the first sentence's attention",
    "wrong",
    "[0] is copied from torch's module, which returns a pair; here it takes the first sequence, and broadcasting hides it.",
)
class BlockW22(_Parts):
    def forward(self, x):
        attended = self.self_attn(self.norm1(x))[0]
        x = x + attended
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "four times the width",
    "wrong",
    "ff_dim is not used: the feed-forward layer is always 4 E wide.",
)
class BlockW23(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, 4 * embed_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "forward inside of __init__",
    "wrong",
    "forward is indented too far: it is a local function of __init__, and the module has no forward.",
)
class BlockW24(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.self_attn = attnlib.torch.MultiHeadAttention(embed_dim, num_heads)
        self.linear1 = nn.Linear(embed_dim, ff_dim)
        self.linear2 = nn.Linear(ff_dim, embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)

        def forward(self, x):
            x = x + self.self_attn(self.norm1(x))
            return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "norms exchanged",
    "wrong",
    "norm2 stands before attention and norm1 before the feed-forward layer.",
)
class BlockW25(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm2(x))
        return x + self.linear2(F.relu(self.linear1(self.norm1(x))))


@answer(
    "TransformerBlock",
    "torch",
    "linear layers the wrong way round",
    "wrong",
    "linear1 goes from F to E and linear2 from E to F: the shapes refuse.",
)
class BlockW26(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.linear1 = nn.Linear(ff_dim, embed_dim)
        self.linear2 = nn.Linear(embed_dim, ff_dim)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "stream detached",
    "wrong",
    "The stream is detached before the second plus sign: no gradient flows along it.",
)
class BlockW27(_Parts):
    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x.detach() + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "no biases in the linear layers",
    "wrong",
    "bias=False: b_1 and b_2 of the formula are missing.",
)
class BlockW28(_Parts):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.linear1 = nn.Linear(embed_dim, ff_dim, bias=False)
        self.linear2 = nn.Linear(ff_dim, embed_dim, bias=False)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.relu(self.linear1(self.norm2(x))))


@answer(
    "TransformerBlock",
    "torch",
    "normalised by hand with the unbiased deviation",
    "wrong",
    "The norms are written by hand with x.std(), which divides by E - 1 in torch, and with eps outside of the root.",
)
class BlockW29(_Parts):
    @staticmethod
    def normalise(x, norm):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return norm.weight * (x - mean) / (std + norm.eps) + norm.bias

    def forward(self, x):
        x = x + self.self_attn(self.normalise(x, self.norm1))
        return x + self.linear2(F.relu(self.linear1(self.normalise(x, self.norm2))))


# ----------------------------------------------------------------------------------------------------------------------
# Task 5: attention_backward
# ----------------------------------------------------------------------------------------------------------------------


@answer("scaled_dot_product_attention_backward", "numpy", "average from the context, as FlashAttention has it", "right")
def backward_r1(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    P = np.einsum("...td,...sd->...ts", query, key) * c
    P = np.exp(P - P.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    context = P @ value
    delta = np.sum(grad * context, axis=-1)[..., None]
    dS = P * (np.einsum("...tv,...sv->...ts", grad, value) - delta)
    return (
        c * np.einsum("...ts,...sd->...td", dS, key),
        c * np.einsum("...ts,...td->...sd", dS, query),
        np.einsum("...ts,...tv->...sv", P, grad),
    )


@answer("scaled_dot_product_attention_backward", "numpy", "query by query", "right")
def backward_r2(grad, query, key, value):
    c = 1 / np.sqrt(query.shape[-1])
    dq, dk, dv = np.zeros(query.shape), np.zeros(key.shape), np.zeros(value.shape)
    for place in np.ndindex(query.shape[:-1]):
        lead = place[:-1]
        q, g, k, v = query[place], grad[place], key[lead], value[lead]
        s = c * (k @ q)
        p = np.exp(s - s.max())
        p = p / p.sum()
        dp = v @ g
        ds = p * (dp - p @ dp)
        dq[place] = c * ds @ k
        dk[lead] += c * np.outer(ds, q)
        dv[lead] += np.outer(p, g)
    return dq, dk, dv


@answer("scaled_dot_product_attention_backward", "numpy", "with the whole Jacobian", "right")
def backward_r3(grad, query, key, value):
    T_ = lambda a: np.swapaxes(a, -1, -2)  # noqa: E731
    root = math.sqrt(key.shape[-1])
    s = query @ T_(key) / root
    s = s - np.max(s, axis=-1, keepdims=True)
    P = np.exp(s - np.log(np.exp(s).sum(axis=-1, keepdims=True)))
    eye = np.eye(P.shape[-1])
    J = P[..., :, None] * eye - P[..., :, None] * P[..., None, :]  # (..., T, S, S)
    dP = grad @ T_(value)
    dS = (J @ dP[..., None])[..., 0]
    return dS @ key / root, T_(dS) @ query / root, T_(P) @ grad


@answer("scaled_dot_product_attention_backward", "numpy", "scale put into the query", "right")
def backward_r4(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    scaled = query * c
    P = attnlib.softmax(scaled @ np.moveaxis(key, -1, -2))
    dP = np.matmul(grad, np.moveaxis(value, -1, -2))
    W = P * dP
    dS = W - P * W.sum(-1, keepdims=True)
    grad_scaled = dS @ key
    return grad_scaled * c, np.moveaxis(dS, -1, -2) @ scaled, np.moveaxis(P, -1, -2) @ grad


@answer("scaled_dot_product_attention_backward", "numpy", "itself for each sentence", "right")
def backward_r5(grad, query, key, value):
    if query.ndim > 2:
        results = [backward_r5(*one) for one in zip(grad, query, key, value)]
        return tuple(np.stack(parts) for parts in zip(*results))
    c = len(query[0]) ** -0.5
    P = attnlib.softmax(c * np.inner(query, key))
    dP = np.inner(grad, value)
    dS = P * (dP - np.average(dP, axis=1, weights=P)[:, np.newaxis])
    return c * dS.dot(key), c * dS.T.dot(query), P.T.dot(grad)


def _start(query, key):
    c = 1 / np.sqrt(query.shape[-1])
    s = c * (query @ np.swapaxes(key, -1, -2))
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return c, e / e.sum(axis=-1, keepdims=True)


def t(a):
    return np.swapaxes(a, -1, -2)


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "scale missing in both",
    "wrong",
    "c is used in the softmax, but missing in dQ and dK.",
)
def backward_w1(grad, query, key, value):
    _, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return dS @ key, t(dS) @ query, t(P) @ grad


@answer("scaled_dot_product_attention_backward", "numpy", "scale missing in dK", "wrong", "c is missing in dK only.")
def backward_w2(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "average not subtracted",
    "wrong",
    "dS is P * dP: the weighted average is not subtracted.",
)
def backward_w3(grad, query, key, value):
    c, P = _start(query, key)
    dS = P * (grad @ t(value))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "average over the queries",
    "wrong",
    "The sum runs over the queries (axis -2), not over the keys.",
)
def backward_w4(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-2, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "P not transposed in dV",
    "wrong",
    "dV = P dO without the transpose: only a square table does not complain.",
)
def backward_w5(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, P @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "dS not transposed in dK",
    "wrong",
    "dK = c dS Q without the transpose.",
)
def backward_w6(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * dS @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "sum without keepdims",
    "wrong",
    "Without keepdims the sums (T,) stand below the keys: an error, or for T = S the wrong numbers.",
)
def backward_w7(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    average = np.sum(P * dP, axis=-1)
    dS = P * (dP - average)
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "bracket forgotten",
    "wrong",
    "P * dP - sum: the sum is not multiplied by P.",
)
def backward_w8(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * dP - (P * dP).sum(axis=-1, keepdims=True)
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "plain mean",
    "wrong",
    "The plain mean of dP is subtracted, not the average weighted by P.",
)
def backward_w9(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - dP.mean(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "softmax without scale",
    "wrong",
    "P is the softmax of Q K^T without c; c only stands in dQ and dK.",
)
def backward_w10(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    s = query @ t(key)
    P = np.exp(s - s.max(axis=-1, keepdims=True))
    P = P / P.sum(axis=-1, keepdims=True)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "order of the formulas",
    "wrong",
    "Returned as dV, dQ, dK, the order of the formulas; asked for is query, key, value.",
)
def backward_w11(grad, query, key, value):
    c, P = _start(query, key)
    dV = t(P) @ grad
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    dQ = c * dS @ key
    dK = c * t(dS) @ query
    return dV, dQ, dK


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "keys and queries exchanged",
    "wrong",
    "Returned as (grad_key, grad_query, grad_value).",
)
def backward_w12(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * t(dS) @ query, c * dS @ key, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    ".T for batches",
    "wrong",
    ".T turns all dimensions round: right for tables, wrong with a batch in front.",
)
def backward_w13(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    s = c * query @ key.T
    P = np.exp(s - s.max(axis=-1, keepdims=True))
    P = P / P.sum(axis=-1, keepdims=True)
    dP = grad @ value.T
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * dS.T @ query, P.T @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "upstream of ones",
    "wrong",
    "The upstream gradient is ignored in dP: it is taken for ones.",
)
def backward_w14(grad, query, key, value):
    c, P = _start(query, key)
    dP = np.ones_like(grad) @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "loop that overwrites",
    "wrong",
    "In the loop over the queries dK and dV are set, not added to: only the last query counts.",
)
def backward_w15(grad, query, key, value):
    c, P = _start(query, key)
    dQ, dK, dV = np.zeros(query.shape), np.zeros(key.shape), np.zeros(value.shape)
    for i in range(query.shape[-2]):
        p, g = P[..., i, :], grad[..., i, :]
        dp = np.einsum("...v,...sv->...s", g, value)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True))
        dQ[..., i, :] = c * np.einsum("...s,...sd->...d", ds, key)
        dK = c * ds[..., :, None] * query[..., i, None, :]
        dV = p[..., :, None] * g[..., None, :]
    return dQ, dK, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "whole numbers stay whole",
    "wrong",
    "zeros_like(query) is of whole numbers if the query is, as in the example by hand: the gradients are cut off.",
)
def backward_w16(grad, query, key, value):
    c, P = _start(query, key)
    dQ, dK, dV = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    dQ[...] = c * dS @ key
    dK[...] = c * t(dS) @ query
    dV[...] = t(P) @ grad
    return dQ, dK, dV


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "no maximum",
    "wrong",
    "exp without subtracting the maximum: for large scores P is inf / inf, nan.",
)
def backward_w17(grad, query, key, value):
    c = query.shape[-1] ** -0.5
    e = np.exp(c * query @ t(key))
    P = e / e.sum(axis=-1, keepdims=True)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "scale of the values",
    "wrong",
    "c is made from the width of the values; it only shows where D_v is not D.",
)
def backward_w18(grad, query, key, value):
    c = 1 / math.sqrt(value.shape[-1])
    s = c * query @ t(key)
    P = np.exp(s - s.max(axis=-1, keepdims=True))
    P = P / P.sum(axis=-1, keepdims=True)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "upstream changed",
    "wrong",
    "grad is scaled in place: the caller's array changes.",
)
def backward_w19(grad, query, key, value):
    c, P = _start(query, key)
    grad_value = t(P) @ grad
    grad *= c  # so that c need not be written twice below
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return dS @ key, t(dS) @ query, grad_value


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "derivative of a sigmoid",
    "wrong",
    "P (1 - P) dP: the diagonal of the Jacobian alone, the other weights of the row are forgotten.",
)
def backward_w20(grad, query, key, value):
    c, P = _start(query, key)
    dS = P * (1 - P) * (grad @ t(value))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "average without weights of the row",
    "wrong",
    "The sum of dP is subtracted, without the P inside of it.",
)
def backward_w21(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - dP.sum(axis=-1, keepdims=True))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "sum over everything",
    "wrong",
    "The sum has no axis: one number for all queries of all sentences.",
)
def backward_w22(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - np.sum(P * dP))
    return c * dS @ key, c * t(dS) @ query, t(P) @ grad


@answer(
    "scaled_dot_product_attention_backward",
    "numpy",
    "batch summed away",
    "wrong",
    "In the einsum for dK and dV the batch letter is missing on the right: the gradients of all sentences are added up.",
)
def backward_w23(grad, query, key, value):
    c, P = _start(query, key)
    dP = grad @ t(value)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    if query.ndim == 3:
        dK = c * np.einsum("bts,btd->sd", dS, query)
        dV = np.einsum("bts,btv->sv", P, grad)
    else:
        dK, dV = c * t(dS) @ query, t(P) @ grad
    return c * dS @ key, dK, dV


# ----------------------------------------------------------------------------------------------------------------------
# Task 7: online_softmax
# ----------------------------------------------------------------------------------------------------------------------


@answer("online_softmax", "numpy", "block on its own, then merged", "right")
def online_r1(scores, value, total, norm, maximum):
    block_maximum = scores.max(axis=-1)
    new_maximum = np.maximum(maximum, block_maximum)
    e = np.exp(scores - block_maximum[..., None])
    old, new = np.exp(maximum - new_maximum), np.exp(block_maximum - new_maximum)
    new_norm = old * norm + new * e.sum(axis=-1)
    new_total = old[..., None] * total + new[..., None] * (e @ value)
    return new_total, new_norm, new_maximum


@answer("online_softmax", "numpy", "the old state as one more key", "right")
def online_r2(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    row = np.concatenate([maximum[..., None], scores], axis=-1)
    e = np.exp(row - np.expand_dims(new_maximum, -1))
    first, rest = e[..., :1], e[..., 1:]
    counts = np.concatenate([norm[..., None], np.ones(scores.shape)], axis=-1)
    return first * total + np.matmul(rest, value), (e * counts).sum(-1), new_maximum


@answer("online_softmax", "numpy", "query by query", "right")
def online_r3(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    new_total, new_norm = np.zeros(total.shape), np.zeros(norm.shape)
    for place in np.ndindex(norm.shape):
        m, m_new = maximum[place], new_maximum[place]
        fade = 0.0 if m == -np.inf else math.exp(m - m_new)
        e = np.array([math.exp(s - m_new) for s in scores[place]])
        new_norm[place] = fade * norm[place] + e.sum()
        new_total[place] = fade * total[place] + e @ value[place[:-1]]
    return new_total, new_norm, new_maximum


@answer("online_softmax", "numpy", "key by key", "right")
def online_r4(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    new_norm = norm * fade
    new_total = np.einsum("...t,...td->...td", fade, total)
    for j in range(scores.shape[-1]):
        e = np.exp(scores[..., j] - new_maximum)
        new_norm = new_norm + e
        new_total = new_total + np.einsum("...t,...d->...td", e, value[..., j, :])
    return new_total, new_norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "old sums not rescaled",
    "wrong",
    "norm and total are measured against the old maximum, and not rescaled.",
)
def online_w1(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    e = np.exp(scores - new_maximum[..., None])
    return total + e @ value, norm + e.sum(axis=-1), new_maximum


@answer("online_softmax", "numpy", "total not rescaled", "wrong", "Only norm is rescaled; total is not.")
def online_w2(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer("online_softmax", "numpy", "norm not rescaled", "wrong", "Only total is rescaled; norm is not.")
def online_w3(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)[..., None]
    e = np.exp(scores - new_maximum[..., None])
    return fade * total + e @ value, norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "factor upside down",
    "wrong",
    "exp(new - old): the factor has to shrink the old sums, and in the first block it is inf times 0.",
)
def online_w4(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    with np.errstate(invalid="ignore"):
        grow = np.exp(new_maximum - maximum)
        e = np.exp(scores - new_maximum[..., None])
        return grow[..., None] * total + e @ value, grow * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "factor along the wrong dimension",
    "wrong",
    "fade (T,) is laid over total (T, D_v) without a new axis: an error, or for T = D_v each column gets the factor of a query.",
)
def online_w5(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "maximum along the wrong dimension",
    "wrong",
    "new_maximum (T,) is subtracted without a new axis: it meets the keys.",
)
def online_w6(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum)
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "total divided",
    "wrong",
    "total is divided by norm already; that comes at the very end, and only there.",
)
def online_w7(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    new_norm = fade * norm + e.sum(axis=-1)
    new_total = fade[..., None] * total + e @ value
    return new_total / new_norm[..., None], new_norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "order of the paper",
    "wrong",
    "Returned as (maximum, norm, total), as papers write it; asked for is total, norm, maximum.",
)
def online_w8(scores, value, total, norm, maximum):
    m_new = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - m_new)
    p = np.exp(scores - m_new[..., None])
    l_new = fade * norm + p.sum(axis=-1)
    o_new = fade[..., None] * total + p @ value
    return m_new, l_new, o_new


@answer(
    "online_softmax",
    "numpy",
    "measured against the block",
    "wrong",
    "The exponentials of the block are measured against the block's own maximum, not the new one.",
)
def online_w9(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "old state changed",
    "wrong",
    "norm *= and total *= write into the old state, which is to stay as it is.",
)
def online_w10(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    norm *= fade
    norm += e.sum(axis=-1)
    total *= fade[..., None]
    total += e @ value
    return total, norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "quotient of exponentials",
    "wrong",
    "exp(m) / exp(m') overflows for large scores, although the difference is harmless.",
)
def online_w11(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum) / np.exp(new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "old maximum returned",
    "wrong",
    "The old maximum is returned instead of the new one: the next step rescales wrongly.",
)
def online_w12(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    total = fade[..., None] * total + e @ value
    norm = fade * norm + e.sum(axis=-1)
    return total, norm, maximum


@answer(
    "online_softmax",
    "numpy",
    "one maximum for all queries",
    "wrong",
    "The maximum is taken over all queries together; each query has its own.",
)
def online_w13(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, np.full(maximum.shape, scores.max()))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "rescaled only if all rise",
    "wrong",
    "The old sums are rescaled only if the maximum of EVERY query rises.",
)
def online_w14(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    e = np.exp(scores - new_maximum[..., None])
    if (new_maximum > maximum).all():
        fade = np.exp(maximum - new_maximum)
        total, norm = fade[..., None] * total, fade * norm
    return total + e @ value, norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "factor over the new block, too",
    "wrong",
    "The factor stands outside of the bracket: the new block is scaled down as well.",
)
def online_w15(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * (total + e @ value), fade * (norm + e.sum(axis=-1)), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "truth of an array",
    "wrong",
    "`if maximum == -np.inf` asks for the truth of an array: ValueError for more than one query.",
)
def online_w16(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    if maximum == -np.inf:
        fade = np.zeros_like(new_maximum)
    else:
        fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "kept dimension",
    "wrong",
    "keepdims everywhere: norm and maximum come back as (..., T, 1).",
)
def online_w17(scores, value, total, norm, maximum):
    m = maximum.reshape(*total.shape[:-1], 1)
    norm = norm.reshape(m.shape)
    new_maximum = np.maximum(m, scores.max(axis=-1, keepdims=True))
    fade = np.exp(m - new_maximum)
    e = np.exp(scores - new_maximum)
    return fade * total + e @ value, fade * norm + e.sum(axis=-1, keepdims=True), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "tables only",
    "wrong",
    "The einsum knows two dimensions; with a batch in front it raises an error.",
)
def online_w18(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    new_total = np.einsum("t,td->td", fade, total) + np.einsum("ts,sd->td", e, value)
    return new_total, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax", "numpy", "scaled once more", "wrong", "The scores are divided by a root again; they come scaled."
)
def online_w19(scores, value, total, norm, maximum):
    scores = scores / math.sqrt(value.shape[-1])
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


@answer(
    "online_softmax",
    "numpy",
    "update of FlashAttention 1",
    "wrong",
    "The update of the first FlashAttention paper, where total is divided by norm in every step; here it is divided at the very end only.",
)
def online_w20(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1))
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    new_norm = fade * norm + e.sum(axis=-1)
    new_total = ((norm * fade)[..., None] * total + e @ value) / new_norm[..., None]
    return new_total, new_norm, new_maximum


@answer(
    "online_softmax",
    "numpy",
    "written into the maximum",
    "wrong",
    "np.maximum(..., out=maximum) overwrites the old maximum: the factor is always 1, and the argument has changed.",
)
def online_w21(scores, value, total, norm, maximum):
    new_maximum = np.maximum(maximum, scores.max(axis=-1), out=maximum)
    fade = np.exp(maximum - new_maximum)
    e = np.exp(scores - new_maximum[..., None])
    return fade[..., None] * total + e @ value, fade * norm + e.sum(axis=-1), new_maximum


# ----------------------------------------------------------------------------------------------------------------------
# Task 9: blocks_mended
# ----------------------------------------------------------------------------------------------------------------------


@answer("attention_in_blocks", "numpy", "one key at a time, backwards", "right")
def blocks_r1(query, key, value, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full(query.shape[:-1], -np.inf)
    below = np.zeros(query.shape[:-1])
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for s in reversed(range(key.shape[-2])):
        score = scale * np.einsum("...td,...d->...t", query, key[..., s, :])
        new_top = np.maximum(top, score)
        fade, e = np.exp(top - new_top), np.exp(score - new_top)
        below = below * fade + e
        above = above * fade[..., None] + e[..., None] * value[..., s, None, :]
        top = new_top
    return above / below[..., None]


@answer("attention_in_blocks", "numpy", "halves merged", "right")
def blocks_r2(query, key, value, scale=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale

    def state(start, stop):
        if stop - start <= 3:
            s = scale * (query @ np.swapaxes(key[..., start:stop, :], -1, -2))
            m = s.max(axis=-1, keepdims=True)
            e = np.exp(s - m)
            return m, e.sum(axis=-1, keepdims=True), e @ value[..., start:stop, :]
        middle = (start + stop) // 2
        (m1, l1, o1), (m2, l2, o2) = state(start, middle), state(middle, stop)
        m = np.maximum(m1, m2)
        f1, f2 = np.exp(m1 - m), np.exp(m2 - m)
        return m, f1 * l1 + f2 * l2, f1 * o1 + f2 * o2

    _, below, above = state(0, key.shape[-2])
    return above / below


@answer("attention_in_blocks", "numpy", "two passes", "right")
def blocks_r3(query, key, value, scale=None, size=4):
    if scale is None:
        scale = query.shape[-1] ** -0.5
    blocks = [slice(i, i + size) for i in range(0, key.shape[-2], size)]

    def scores(block):
        return np.einsum("...td,...sd->...ts", query, key[..., block, :]) * scale

    top = np.max(np.stack([scores(b).max(axis=-1) for b in blocks]), axis=0)[..., None]
    numerator, denominator = 0.0, 0.0
    for b in blocks:
        e = np.exp(scores(b) - top)
        denominator = denominator + e.sum(axis=-1)[..., None]
        numerator = numerator + e @ value[..., b, :]
    return numerator / denominator


@answer("attention_in_blocks", "numpy", "running average with logaddexp", "right")
def blocks_r4(query, key, value, scale=None):
    c = query.shape[-1] ** -0.5 if scale is None else scale
    lse, context = None, None
    for k, v in zip(
        np.array_split(key, range(2, key.shape[-2], 2), axis=-2),
        np.array_split(value, range(2, key.shape[-2], 2), axis=-2),
    ):
        s = c * (query @ np.swapaxes(k, -1, -2))
        here = np.logaddexp.reduce(s, axis=-1, keepdims=True)
        mean = np.exp(s - here) @ v
        if context is None:
            lse, context = here, mean
        else:
            both = np.logaddexp(lse, here)
            context = np.exp(lse - both) * context + np.exp(here - both) * mean
            lse = both
    return context


@answer("attention_in_blocks", "numpy", "a copy, three at a time", "right")
def blocks_r5(query, key, value, scale=None, size=3):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "left as it was",
    "wrong",
    "`before` and `top` are still the same array: out=top overwrites both, and the factor is always 1.",
)
def blocks_w1(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "a slice is no copy",
    "wrong",
    "top[:] is a view, not a copy (with lists it would be one): the bug is still there.",
)
def blocks_w2(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top[:]
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer("attention_in_blocks", "numpy", "copied too late", "wrong", "The copy is made after top was overwritten.")
def blocks_w3(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        before = top.copy()
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "only a larger block",
    "wrong",
    "The block was made so large that most texts fit into one; with more than 64 keys the bug is back.",
)
def blocks_w4(query, key, value, scale=None, size=64):
    return blocks_w1(query, key, value, scale, size)


@answer(
    "attention_in_blocks",
    "numpy",
    "largest keys first",
    "wrong",
    "The keys are sorted so that the maximum comes first: for the first query only, other queries have other orders.",
)
def blocks_w5(query, key, value, scale=None):
    first = np.einsum("...d,...sd->...s", query[..., 0, :], key)
    order = np.argsort(-first, axis=-1)[..., None]
    key = np.take_along_axis(key, order, axis=-2)
    value = np.take_along_axis(value, order, axis=-2)
    return blocks_w1(query, key, value, scale, 2)


def _mended(query, key, value, scale, size=2):
    """A right step, for mistakes elsewhere."""
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "scale of zero",
    "wrong",
    "`scale or ...` takes a scale of 0 for none; all weights should be equal then.",
)
def blocks_w6(query, key, value, scale=None):
    scale = scale or query.shape[-1] ** -0.5
    return _mended(query, key, value, scale)


@answer("attention_in_blocks", "numpy", "scale ignored", "wrong", "The argument scale is never looked at.")
def blocks_w7(query, key, value, scale=None):
    scale = 1 / math.sqrt(query.shape[-1])
    return _mended(query, key, value, scale)


@answer(
    "attention_in_blocks",
    "numpy",
    "divided by the scale",
    "wrong",
    "The dot products are divided by scale (sqrt(D) if it is missing); they are multiplied by it.",
)
def blocks_w8(query, key, value, scale=None):
    scale = math.sqrt(query.shape[-1]) if scale is None else scale
    return _mended(query / scale, key, value, 1.0)


@answer(
    "attention_in_blocks",
    "numpy",
    "only the numerator fades",
    "wrong",
    "The factor is mended for `above`, and dropped for `below`.",
)
def blocks_w9(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        e = np.exp(s - new)
        below = below + e.sum(axis=-1, keepdims=True)
        above = np.exp(top - new) * above + e @ value[..., here, :]
        top = new
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "starts at zero",
    "wrong",
    "The maximum starts at 0, not at -inf: if all scores are very negative every exponential is 0, and 0 / 0 is nan.",
)
def blocks_w10(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.zeros((*query.shape[:-1], 1))
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "maximum of the block alone",
    "wrong",
    "top is the maximum of the newest block, which may be smaller than before: the factor grows, and overflows for large scores.",
)
def blocks_w11(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below, above = 0.0, 0.0
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        before, top = top, s.max(axis=-1, keepdims=True)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "last block dropped",
    "wrong",
    "The number of blocks is rounded down: if S is odd the last key is never seen.",
)
def blocks_w12(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    whole = max(key.shape[-2] // size, 1) * size
    return _mended(query, key[..., :whole, :], value[..., :whole, :], scale, size)


@answer(
    "attention_in_blocks",
    "numpy",
    "filled up with zeros",
    "wrong",
    "The last block is filled up with keys of zeros, which get weight exp(0).",
)
def blocks_w13(query, key, value, scale=None, size=4):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    missing = -key.shape[-2] % size
    pad = [(0, 0)] * (key.ndim - 2) + [(0, missing), (0, 0)]
    return _mended(query, np.pad(key, pad), np.pad(value, pad), scale, size)


@answer(
    "attention_in_blocks",
    "numpy",
    "not divided",
    "wrong",
    "The last division is missing: the numerator is returned.",
)
def blocks_w14(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        s = scale * (query @ np.swapaxes(key[..., start : start + size, :], -1, -2))
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        above = np.exp(before - top) * above + np.exp(s - top) @ value[..., start : start + size, :]
    return above


@answer(
    "attention_in_blocks",
    "numpy",
    "divided in every block",
    "wrong",
    "`above` is divided inside of the loop, so the next block is added to an average instead of a sum.",
)
def blocks_w15(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = (fade * above + e @ value[..., here, :]) / below
    return above


@answer(
    "attention_in_blocks",
    "numpy",
    "blocks of the batch",
    "wrong",
    "key[here] cuts the first dimension: with a batch in front that is the sentences, not the keys.",
)
def blocks_w16(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below, above = np.zeros(top.shape), np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, len(key), size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[here], -1, -2))
        before, top = top, np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[here]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "mean of the blocks",
    "wrong",
    "Softmax within each block, then the mean of the blocks: a block of weak keys counts as much as one of strong keys.",
)
def blocks_w17(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    contexts = []
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        contexts.append(attnlib.softmax(s) @ value[..., here, :])
    return np.mean(contexts, axis=0)


@answer(
    "attention_in_blocks",
    "numpy",
    "no maximum at all",
    "wrong",
    "The maximum was thrown out, and the bug with it; now large scores overflow.",
)
def blocks_w18(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        e = np.exp(scale * (query @ np.swapaxes(key[..., here, :], -1, -2)))
        below += e.sum(axis=-1, keepdims=True)
        above += e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "query scaled in place",
    "wrong",
    "query *= scale changes the caller's queries: a second call gives other numbers.",
)
def blocks_w19(query, key, value, scale=None):
    query *= query.shape[-1] ** -0.5 if scale is None else scale
    return _mended(query, key, value, 1.0)


@answer(
    "attention_in_blocks",
    "numpy",
    "default scale from the values",
    "wrong",
    "Without a scale the width of the VALUES is used.",
)
def blocks_w20(query, key, value, scale=None):
    if scale is None:
        scale = value.shape[-1] ** -0.5
    return _mended(query, key, value, scale, size=3)


@answer(
    "attention_in_blocks",
    "numpy",
    "factor upside down",
    "wrong",
    "Mended with a copy, but the factor is now exp(top - before).",
)
def blocks_w21(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -1e30)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        top = np.maximum(top, s.max(axis=-1, keepdims=True))
        fade = np.exp(top - before) if start else np.zeros_like(top)
        e = np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@answer(
    "attention_in_blocks",
    "numpy",
    "one maximum for all queries",
    "wrong",
    "The running maximum is one number for all queries: a query with much smaller scores gets 0 / 0.",
)
def blocks_w22(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = -np.inf
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        before, top = top, max(top, s.max())
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below
