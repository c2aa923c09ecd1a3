r"""FlashAttention on a GPU: :mod:`attnlib._tiled` in Triton, meant to be read side by side with it.

Names mean the same in both files. A tile of scores is computed, used and overwritten in the fast memory of one of the
GPU's processors, and the division comes last:

.. math:: o_i = \frac{\sum_j 2^{s_{ij} - m_i} v_j}{\sum_j 2^{s_{ij} - m_i}}

Three things differ. All tiles of queries are computed at the same time, each by its own program, so the only loop is
over the keys. The sums over the keys stay in registers. And m is always the largest score so far: a GPU finds it in
less time than it would take to decide whether it is needed.

Source: Dao et al. (2022), "FlashAttention", algorithm 1; with the loops in this order, Dao (2023), "FlashAttention-2",
algorithm 1. There is no backward pass here.

Dimensions: B batch, H heads, T queries, S keys, D width of queries and keys, D_v of values. QUERIES and KEYS are the
sizes of a tile, WIDTH and WIDTH_V are D and D_v, rounded up to sizes that the GPU's matrix units accept.
"""

from math import e, log, log2
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E, LN_2 = tl.constexpr(log2(e)), tl.constexpr(log(2))
SMALLEST = 16  # side of a matrix that Triton can multiply


def attend(query: Tensor, key: Tensor, value: Tensor, rules: dict[str, Any], out: Tensor, lse: Tensor) -> None:
    """Fill the context ``out`` (B, H, T, D_v) and the logarithms of the rows' sums ``lse`` (B, H, T), both contiguous.

    Queries are (B, H, T, D). Keys (B, H_key, S, D) and values (B, H_key, S, D_v) each serve H / H_key heads. ``rules``
    are the numbers ``scale``, ``softcap``, ``left``, ``right`` and ``offset`` of :class:`attnlib._tiled.Rules`.
    """
    B, H, T, D = query.shape
    S, D_v = value.shape[-2:]
    widths = {"WIDTH": triton.next_power_of_2(max(D, SMALLEST)), "WIDTH_V": triton.next_power_of_2(max(D_v, SMALLEST))}
    wide = max(widths.values()) * query.element_size()  # bytes of a row
    side = 64 if wide <= 256 else 32 if wide <= 512 else SMALLEST  # so that the tiles fit into on-chip memory
    sides = {"QUERIES": min(side, max(triton.next_power_of_2(T), SMALLEST)), "KEYS": side}
    grid = (B * H * triton.cdiv(T, sides["QUERIES"]),)
    with torch.cuda.device_of(query):
        _head[grid](
            query, key, value, out, lse, *query.stride(), *key.stride(), *value.stride(),
            H, H // key.shape[1], T, S, D, D_v, **rules, **sides, **widths,
        )  # fmt: skip


@triton.jit
def _head(
    query, key, value, out, lse,
    query_b, query_h, query_t, query_d, key_b, key_h, key_s, key_d, value_b, value_h, value_s, value_d,
    H, group, T, S, D, D_v, scale, softcap, left, right, offset,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr, WIDTH_V: tl.constexpr,
):  # fmt: skip
    """Compute one tile of queries of one head: the sums over all keys of the weights and of the weighted values."""
    tiles = tl.cdiv(T, QUERIES)
    n = (tl.program_id(0) // tiles).to(tl.int64)  # counts the heads of all sequences
    b, h = n // H, n % H
    begin = tl.program_id(0) % tiles * QUERIES
    end = tl.minimum(begin + QUERIES, T)
    q = _rows(query + b * query_b + h * query_h, begin, end, D, query_t, query_d, QUERIES, WIDTH)  # (t, D)
    key += b * key_b + h // group * key_h
    value += b * value_b + h // group * value_h

    total = tl.zeros((QUERIES,), tl.float32)
    top = tl.full((QUERIES,), float("-inf"), tl.float32)
    context = tl.zeros((QUERIES, WIDTH_V), tl.float32)
    first, last = _keys_of(begin, end, S, left, right, offset)
    for a in range(first, last, KEYS):
        k = _rows(key, a, last, D, key_s, key_d, KEYS, WIDTH)  # (s, D)
        v = _rows(value, a, last, D_v, value_s, value_d, KEYS, WIDTH_V)  # (s, D_v)
        tile = _scores(q, k, scale, softcap)  # (t, s)
        tile = _hide(tile, begin, a, last, left, right, offset, QUERIES, KEYS)
        higher = tl.maximum(top, tl.max(tile, axis=1))
        shrink = _exp2(top, higher)
        tile = _exp2(tile, higher[:, None])
        total = total * shrink + tl.sum(tile, axis=1)
        context = context * shrink[:, None] + tl.dot(tile.to(v.dtype), v, input_precision="ieee")
        top = higher

    t = begin + tl.arange(0, QUERIES)
    d = tl.arange(0, WIDTH_V)[None, :]
    there = (t < T)[:, None] & (d < D_v)
    tl.store(out + n * T * D_v + t.to(tl.int64)[:, None] * D_v + d, _divide(context, total[:, None]), mask=there)
    tl.store(lse + n * T + t, _log_sum(total, top), mask=t < T)


@triton.jit
def _rows(x, first, last, width, stride, stride_d, COUNT: tl.constexpr, WIDTH: tl.constexpr):
    """Load the rows ``first:last`` of a matrix, (COUNT, WIDTH), with zeros for those that do not exist."""
    row = (first + tl.arange(0, COUNT)).to(tl.int64)[:, None]
    d = tl.arange(0, WIDTH)[None, :]
    return tl.load(x + row * stride + d * stride_d, mask=(row < last) & (d < width), other=0.0)


@triton.jit
def _scores(query, key, scale, softcap):
    """Return the scores (t, s), times log2 e."""
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    if softcap is not None:
        scores = softcap * _tanh(scores / softcap)
    return scores * LOG2_E


@triton.jit
def _keys_of(begin, end, S, left, right, offset):
    """Return the range of S keys that at least one of the queries ``begin:end`` can reach."""
    a, b = 0, S
    if left is not None:
        a = tl.minimum(tl.maximum(begin + offset - left, 0), S)
    if right is not None:
        b = tl.maximum(tl.minimum(end + offset + right, S), a)
    return a, b


@triton.jit
def _hide(tile, begin, first, last, left, right, offset, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """Put -inf where attention is forbidden, in a tile of queries from ``begin`` on and of keys ``first:last``."""
    position = begin + offset + tl.arange(0, QUERIES)[:, None]
    j = first + tl.arange(0, KEYS)[None, :]
    kept = j < last
    if right is not None:
        kept = kept & (j <= position + right)
    if left is not None:
        kept = kept & (j >= position - left)
    return tl.where(kept, tile, float("-inf"))


@triton.jit
def _exp2(x, top):
    """Return 2 to the power x - top, for x no larger than top; 0 where x is -inf."""
    return tl.exp2(x - tl.where(top == float("-inf"), 0.0, top))  # -inf minus -inf would be nan


@triton.jit
def _divide(x, total):
    """Return x divided by the rows' sums; empty rows stay 0."""
    return x / tl.where(total == 0.0, 1.0, total)


@triton.jit
def _log_sum(total, top):
    """Return the natural logarithm of the sum of the exponentials of a row's scores: -inf if there are none."""
    return (tl.log2(tl.where(total == 0.0, 1.0, total)) + top) * LN_2


@triton.jit
def _tanh(x):
    """Return the hyperbolic tangent, which Triton has only for some GPUs; near 0, its series keeps full precision."""
    power = tl.exp2(tl.abs(x) * (-2 * LOG2_E))  # e to the power -2 |x|, which cannot overflow
    far = (1 - power) / (1 + power)
    square = x * x
    near = x * (1 - square * (1 / 3 - square * (2 / 15 - square * (17 / 315))))
    return tl.where(tl.abs(x) < 0.2, near, tl.where(x < 0, -far, far))


INTERPRETED = not isinstance(_head, triton.JITFunction)  # with TRITON_INTERPRET=1, which needs no GPU
