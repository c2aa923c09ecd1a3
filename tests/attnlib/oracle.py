"""Attention by loops over plain numbers, from the description of ONNX's operator Attention (opsets 23 to 25).

Slow and obvious: nothing here is shared with the library, not even the idea of a matrix. Where the operator says less
than the library promises, the rule is the library's: a window, and any leading dimensions, which broadcast.
"""

import math
from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    """What attention returns, in float64."""

    context: np.ndarray  # (..., H, T, D_v)
    weights: np.ndarray  # (..., H, T, S)
    lse: np.ndarray  # (..., H, T)


def attend(
    query,
    key,
    value,
    mask=None,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
    q_offset=0,
    window=None,
    softcap=None,
):
    """Attention, one query at a time."""
    T, S = query.shape[-2], key.shape[-2]
    lead = _lead(query, key, value, enable_gqa)
    context = np.zeros((*lead, T, value.shape[-1]))
    weights, lse = np.zeros((*lead, T, S)), np.zeros((*lead, T))
    for head in np.ndindex(lead):
        shared = _head_of_the_key(head, query, key) if enable_gqa else head
        q, k, v = _pick(query, head), _pick(key, shared), _pick(value, shared)
        for i in range(T):
            scores = [
                _bias(mask, (*head, i, j), (*lead, T, S)) + _score(q[i], k[j], scale, softcap)
                if _reaches(i + q_offset, j, is_causal, window)
                else -math.inf
                for j in range(S)
            ]
            weights[(*head, i)], lse[(*head, i)] = _softmax(scores)
            for j, weight in enumerate(weights[(*head, i)]):
                if weight > 0:
                    context[(*head, i)] += weight * np.array([float(x) for x in v[j]])
    return Result(context, weights, lse)


def _score(q, k, scale, softcap):
    score = sum(float(a) * float(b) for a, b in zip(q, k, strict=True))
    score *= (1 / math.sqrt(len(q)) if len(q) else 1) if scale is None else scale
    return softcap * math.tanh(score / softcap) if softcap else score


def _reaches(position, j, is_causal, window):
    left, right = window or (None, None)
    return not (
        (is_causal and j > position)
        or (left is not None and j < position - left)
        or (right is not None and j > position + right)
    )


def _bias(mask, index, shape):
    if mask is None:
        return 0.0
    ahead = len(shape) - mask.ndim
    entry = mask[tuple(0 if n == 1 else index[ahead + axis] for axis, n in enumerate(mask.shape))]
    if mask.dtype == bool:
        return 0.0 if entry else -math.inf
    return float(entry)


def _softmax(scores):
    top = max(scores, default=-math.inf)
    if top == -math.inf:
        return [0.0] * len(scores), -math.inf
    powers = [math.exp(s - top) for s in scores]
    return [p / sum(powers) for p in powers], top + math.log(sum(powers))


def _lead(query, key, value, enable_gqa):
    """The leading dimensions of the scores; with grouped heads, those of the query."""
    last = 3 if enable_gqa else 2
    batch = np.broadcast_shapes(*(x.shape[:-last] for x in (query, key, value)))
    return (*batch, query.shape[-3]) if enable_gqa else batch


def _head_of_the_key(head, query, key):
    group = query.shape[-3] // key.shape[-3]
    return (*head[:-1], head[-1] // group)


def _pick(x, head):
    """The matrix of one head; a dimension of size 1, or none, serves all."""
    own = x.shape[:-2]
    ahead = len(head) - len(own)
    return x[tuple(0 if n == 1 else head[ahead + axis] for axis, n in enumerate(own))]
