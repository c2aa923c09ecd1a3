"""Attention in torch, one block of scores at a time, with a backward pass that recomputes the weights.

Dimensions: H heads, T queries, S keys, D width of queries and keys, D_v of values.
"""

from math import prod
from typing import Any

import torch
from torch import Tensor

from attnlib import _torch_steps
from attnlib._arrays import is_autocast_enabled
from attnlib._backward import backward
from attnlib._head_groups import batch_shape, group_heads, is_grouped
from attnlib._score_blocks import blocks, max_scores
from attnlib._spec import AttentionSpec
from attnlib._torch_tracing import is_traced, is_tracked, is_transformed, may_be_recorded
from attnlib._torch_unfused import Results
from attnlib._torch_unfused import attend as attend_unfused


def prefer_blocks(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec) -> bool:
    """Tell whether to compute block by block: there are many scores, and they need not all be held."""
    if is_traced() or _must_hold_scores(query, key, value, spec):
        return False
    return prod((*batch_shape(query, key, value), query.shape[-2], key.shape[-2])) > max_scores(query)


def _must_hold_scores(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec) -> bool:
    """Tell whether all scores must be held.

    That is so where they can be overwritten with the requested weights; where autograd differentiates through dropout,
    the weights or the mask; and under torch.func or forward-mode differentiation.
    """
    mask, need_weights = spec.mask, spec.need_weights
    given = [x for x in (query, key, value, mask) if x is not None]
    if any(map(is_transformed, given)):
        return True
    if need_weights and spec.softcap is None and torch.finfo(query.dtype).bits >= 32 and not may_be_recorded(query):
        return True
    differentiated = spec.dropout_p or need_weights or (mask is not None and mask.requires_grad)
    return bool(differentiated) and is_tracked(*given)


def attend(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec) -> Results:
    """Return the context, and the weights and log-sums if needed, in a form that autograd can differentiate."""
    if is_tracked(query, key, value):
        given = query, key, value, spec.mask, spec._replace(mask=None)
        out, lse = _Attention.apply(*given)  # type: ignore[no-untyped-call]
        return out, None, lse
    return _attend(query, key, value, spec)


def _attend(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec) -> Results:
    """Fill the results block by block."""
    T, S, mask = query.shape[-2], key.shape[-2], spec.mask
    lead = heads = batch_shape(query, key, value)
    dtype = _result_dtype(query)
    if is_grouped(query, key):
        query, key, value, mask = group_heads(query, key, value, mask)
        heads = (*lead[:-1], *query.shape[-4:-2])
    out = query.new_zeros((*heads, T, value.shape[-1]), dtype=dtype)
    weights = query.new_zeros((*heads, T, S), dtype=dtype) if spec.need_weights else None
    lse = query.new_full((*heads, T, 1), -torch.inf, dtype=dtype) if spec.need_lse else None
    for block in blocks(heads, T, S, spec.window, query):
        q, k, v = block.of_queries(query), block.of_keys(key), block.of_keys(value)
        found = attend_unfused(q, k, v, block.mask(mask), spec)
        block.of_queries(out).copy_(found[0])
        if weights is not None:
            block.of_scores(weights).copy_(found[1])
        if lse is not None and found[2] is not None:
            block.of_queries(lse).copy_(found[2][..., None])
    out = out.reshape(*lead, *out.shape[-2:])
    weights = weights if weights is None else weights.reshape(*lead, T, S)
    return out, weights, lse if lse is None else lse.reshape(*lead, T)


class _Attention(torch.autograd.Function):
    """Context and log-sums, computed block by block; the backward pass recomputes the weights."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, spec: AttentionSpec
    ) -> tuple[Tensor, Tensor | None]:
        out, _, lse = _attend(query, key, value, spec._replace(mask=mask))
        ctx.save_for_backward(query, key, value, mask, lse)
        ctx.spec = spec
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        query, key, value, mask, lse = ctx.saved_tensors
        if d_lse is not None:  # the gradient of a log-sum of -inf may be nan, and nan times a weight of 0 is nan
            d_lse = d_lse.masked_fill(lse == -torch.inf, 0.0)[..., None]
        spec = ctx.spec._replace(mask=mask)
        return *backward(d_out, query, key, value, spec, _torch_steps, d_lse), None, None


def _result_dtype(query: Tensor) -> torch.dtype:
    """Return the dtype of the context: under autocast, that of matrix products, except for float64."""
    if is_autocast_enabled(query) and query.dtype != torch.float64:
        return torch.get_autocast_dtype(query.device.type)
    return query.dtype
