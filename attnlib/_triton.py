r"""FlashAttention on a GPU: :mod:`attnlib._numpy_tiled` in Triton, meant to be read side by side with it.

Names mean the same in both files. A tile of scores is computed, used and overwritten in the fast memory of one of the
GPU's processors, and the division comes last:

.. math:: o_i = \frac{\sum_j 2^{s_{ij} - m_i} v_j}{\sum_j 2^{s_{ij} - m_i}}

Three things differ from the NumPy version. All tiles of queries are computed at the same time, each by its own program,
so the only loop is over the keys. The sums over the keys stay in registers. And m is always the largest score so far: a
GPU finds it in less time than it would take to decide whether it is needed.

Source: Dao et al. (2022), "FlashAttention", algorithm 1; with the loops in this order, Dao (2023), "FlashAttention-2",
algorithm 1. There is no backward pass here.

Dimensions: B batch, H heads, T queries, S keys, D width of queries and keys, D_v of values. BLOCK_Q and BLOCK_K are the
sizes of a tile, WIDTH and WIDTH_V are D and D_v, rounded up to sizes that the GPU's matrix units accept.
"""

from math import e, log, log2

import torch
import triton
import triton.language as tl
from torch import Tensor

from attnlib._spec import AttentionSpec

LOG2_E, LN_2 = tl.constexpr(log2(e)), tl.constexpr(log(2))
MIN_TILE_SIDE = 16  # side of a matrix that Triton can multiply


def attend(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, out: Tensor, lse: Tensor) -> None:
    """Fill the context ``out`` (B, H, T, D_v) and the log-sums of the rows ``lse`` (B, H, T), both contiguous.

    Queries are (B, H, T, D). Keys (B, H_key, S, D) and values (B, H_key, S, D_v) each serve H / H_key heads. Of
    ``spec``, the scale, the softcap and the window are used.
    """
    B, H, T, D = query.shape
    S, D_v = value.shape[-2:]
    widths = {
        "WIDTH": triton.next_power_of_2(max(D, MIN_TILE_SIDE)),
        "WIDTH_V": triton.next_power_of_2(max(D_v, MIN_TILE_SIDE)),
    }
    row_bytes = max(widths.values()) * query.element_size()
    # Wide rows get smaller tiles, so that these fit into on-chip memory.
    side = 64 if row_bytes <= 256 else 32 if row_bytes <= 512 else MIN_TILE_SIDE
    blocks = {"BLOCK_Q": min(side, max(triton.next_power_of_2(T), MIN_TILE_SIDE)), "BLOCK_K": side}
    grid = (B * H * triton.cdiv(T, blocks["BLOCK_Q"]),)
    with torch.cuda.device_of(query):
        _head[grid](
            query, key, value, out, lse, *query.stride(), *key.stride(), *value.stride(),
            H, H // key.shape[1], T, S, D, D_v, spec.scale, spec.softcap, *spec.window, **blocks, **widths,
        )  # fmt: skip


@triton.jit
def _head(
    query, key, value, out, lse,
    query_b, query_h, query_t, query_d, key_b, key_h, key_s, key_d, value_b, value_h, value_s, value_d,
    H, group, T, S, D, D_v, scale, softcap, left, right, offset,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WIDTH: tl.constexpr, WIDTH_V: tl.constexpr,
):  # fmt: skip
    """Compute one tile of queries of one head: the sums over all keys of the weights and of the weighted values."""
    tiles = tl.cdiv(T, BLOCK_Q)
    n = (tl.program_id(0) // tiles).to(tl.int64)  # counts the heads of all sequences
    b, h = n // H, n % H
    begin = tl.program_id(0) % tiles * BLOCK_Q
    end = tl.minimum(begin + BLOCK_Q, T)
    q = _rows(query + b * query_b + h * query_h, begin, end, D, query_t, query_d, BLOCK_Q, WIDTH)  # (t, D)
    key += b * key_b + h // group * key_h
    value += b * value_b + h // group * value_h

    row_sum = tl.zeros((BLOCK_Q,), tl.float32)
    row_max = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    context = tl.zeros((BLOCK_Q, WIDTH_V), tl.float32)
    first, last = _keys_reached_by(begin, end, S, left, right, offset)
    for a in range(first, last, BLOCK_K):
        k = _rows(key, a, last, D, key_s, key_d, BLOCK_K, WIDTH)  # (s, D)
        v = _rows(value, a, last, D_v, value_s, value_d, BLOCK_K, WIDTH_V)  # (s, D_v)
        tile = _scores(q, k, scale, softcap)  # (t, s)
        tile = _apply_mask(tile, begin, a, last, left, right, offset, BLOCK_Q, BLOCK_K)
        new_max = tl.maximum(row_max, tl.max(tile, axis=1))
        rescale = _exp2(row_max, new_max)
        tile = _exp2(tile, new_max[:, None])
        row_sum = row_sum * rescale + tl.sum(tile, axis=1)
        context = context * rescale[:, None] + tl.dot(tile.to(v.dtype), v, input_precision="ieee")
        row_max = new_max

    t = begin + tl.arange(0, BLOCK_Q)
    d = tl.arange(0, WIDTH_V)[None, :]
    there = (t < T)[:, None] & (d < D_v)
    tl.store(out + n * T * D_v + t.to(tl.int64)[:, None] * D_v + d, _divide(context, row_sum[:, None]), mask=there)
    tl.store(lse + n * T + t, _log_sum_exp(row_sum, row_max), mask=t < T)


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
def _keys_reached_by(begin, end, S, left, right, offset):
    """Return the range of S keys that at least one of the queries ``begin:end`` can reach."""
    a, b = 0, S
    if left is not None:
        a = tl.minimum(tl.maximum(begin + offset - left, 0), S)
    if right is not None:
        b = tl.maximum(tl.minimum(end + offset + right, S), a)
    return a, b


@triton.jit
def _apply_mask(tile, begin, first, last, left, right, offset, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    """Put -inf where attention is forbidden, in a tile of queries from ``begin`` on and of keys ``first:last``."""
    position = begin + offset + tl.arange(0, BLOCK_Q)[:, None]
    j = first + tl.arange(0, BLOCK_K)[None, :]
    kept = j < last
    if right is not None:
        kept = kept & (j <= position + right)
    if left is not None:
        kept = kept & (j >= position - left)
    return tl.where(kept, tile, float("-inf"))


@triton.jit
def _exp2(x, row_max):
    """Return 2 to the power x - row_max, for x no larger than row_max; 0 where x is -inf."""
    return tl.exp2(x - tl.where(row_max == float("-inf"), 0.0, row_max))  # -inf minus -inf would be nan


@triton.jit
def _divide(x, row_sum):
    """Return x divided by the row sums; empty rows stay 0."""
    return x / tl.where(row_sum == 0.0, 1.0, row_sum)


@triton.jit
def _log_sum_exp(row_sum, row_max):
    """Return the natural logarithm of the sum of the exponentials of a row's scores: -inf if the row is empty."""
    return (tl.log2(tl.where(row_sum == 0.0, 1.0, row_sum)) + row_max) * LN_2


@triton.jit
def _tanh(x):
    """Return the hyperbolic tangent, which Triton has only for some GPUs; near 0, its series keeps full precision."""
    power = tl.exp2(tl.abs(x) * (-2 * LOG2_E))  # e to the power -2 |x|, which cannot overflow
    far = (1 - power) / (1 + power)
    square = x * x
    near = x * (1 - square * (1 / 3 - square * (2 / 15 - square * (17 / 315))))
    return tl.where(tl.abs(x) < 0.2, near, tl.where(x < 0, -far, far))


INTERPRETED = not isinstance(_head, triton.JITFunction)  # with TRITON_INTERPRET=1, which needs no GPU
