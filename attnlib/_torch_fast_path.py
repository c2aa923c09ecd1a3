"""Attention of torch tensors with few options: as little as possible around torch's own operations.

A short call spends most of its time on overhead: asking for a shape takes a tenth of a microsecond, and for most other
properties half of that. Dtypes and devices are not compared, because torch does so. What this module declines, and
where torch raises an error, is left to the general path, which checks everything.

Dimensions: B batch, H heads, T queries, S keys, D width of queries and keys.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from attnlib import _torch_unfused as unfused
from attnlib._arrays import is_autocast_enabled
from attnlib._lengths import FEW_KEYS
from attnlib._torch_fused import zero_mask
from attnlib._torch_lost_infinities import may_have_lost_infinity
from attnlib._torch_second_derivatives import explain_second_derivative


def sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float | None,
    is_causal: bool,
    enable_gqa: bool,
    return_weights: bool,
) -> Tensor | tuple[Tensor, Tensor] | None:
    """Return the result for (B, H, T, D) tensors of the same B and H that nothing traces; None in any other case."""
    if mask is not None or scale is not None or is_dynamo_compiling():
        return None
    try:
        q, k, v = query.shape, key.shape, value.shape
        if not (q == k == v or (k == v and q[0] == k[0] and q[3:] == k[3:])) or len(q) != 4:
            return None
        S, grouped = k[2], q[1] != k[1]
        if type(S) is not int:  # a size that is traced, or one of nested tensors
            return None
        if grouped and (return_weights or not enable_gqa or not k[1] or q[1] % k[1]):
            return None
        if return_weights:
            return _with_weights(query, key, value, is_causal)
        if S < FEW_KEYS and key.is_cpu:
            if not S:
                return None
            zeros = zero_mask(query, key, is_causal)
            out = F.scaled_dot_product_attention(query, key, value, zeros, enable_gqa=grouped)
        elif is_causal or grouped:
            out = F.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=grouped)
        else:
            out = F.scaled_dot_product_attention(query, key, value)
        return _checked(out, query, key)
    except (AttributeError, TypeError, RuntimeError):
        return None  # the checks say what is wrong, or else the general path raises the same error


def _checked(out: Tensor, query: Tensor, key: Tensor) -> Tensor | None:
    """Return the result of torch's kernel; None if it may contain a 0 that ought to be nan."""
    if may_have_lost_infinity(out, query, key):
        return None
    if out.requires_grad:
        explain_second_derivative(out)
    return out


def _with_weights(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> tuple[Tensor, Tensor] | None:
    """Return context and weights, unless there are many scores."""
    (T, D), S = query.shape[2:], key.shape[2]
    if is_autocast_enabled(query) or not query.device == key.device == value.device:
        return None
    if not 0 < query.numel() * S < unfused.MIN_SCORES_FOR_LOOP * D or torch.finfo(query.dtype).bits < 32:
        return None
    scores = (query * D**-0.5) @ key.mT
    if is_causal:
        scores = scores.masked_fill(scores.new_ones((T, S), dtype=torch.bool).triu_(1), -torch.inf)
    weights = torch.softmax(scores, -1)
    return weights @ value, weights
