"""Attention in torch from the scores of all pairs, for what its fused kernel does not return or compute.

Dimensions: H heads, T queries, S keys, D width of queries and keys, D_v of values.
"""

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib._arrays import at_least_float32, is_autocast_enabled
from attnlib._head_groups import group_heads, is_grouped
from attnlib._spec import AttentionSpec
from attnlib._torch_steps import masked_scores, softmax_inplace
from attnlib._torch_tracing import may_be_recorded

Results = tuple[Tensor, Tensor | None, Tensor | None]  # the context, the weights and the log-sums

MIN_SCORES_FOR_LOOP = 2**17  # scores of a head from which a loop over the heads is faster than one product of them all
ROWS_PER_BLOCK = 512  # queries at a time in that loop: their scores stay in the cache until they are used


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, spec: AttentionSpec) -> Results:
    """Return context and weights and, if needed, log-sums. ``mask`` includes that of ``spec`` and its window."""
    dtype = at_least_float32(torch, query.dtype)
    q, k, v = query.to(dtype), key.to(dtype), value.to(dtype)
    if in_groups := is_grouped(query, key):
        q, k, v, mask = group_heads(q, k, v, mask)
    scores, empty = masked_scores(_scores(q, k, spec), mask)
    lse = _log_sums(scores, empty) if spec.need_lse else None
    weights = softmax_inplace(scores)
    weights = weights if empty is None else weights.masked_fill(empty, 0.0)
    weights = F.dropout(weights, spec.dropout_p) if spec.dropout_p else weights
    out = weights @ v

    result = out.dtype if is_autocast_enabled(query) else query.dtype
    rows = out.shape[:-1]

    def returned(x: Tensor) -> Tensor:
        x = x.expand(*rows, x.shape[-1])  # the values may have more batches
        return (x.flatten(-4, -3) if in_groups else x).to(result)

    return returned(out), returned(weights), None if lse is None else returned(lse).squeeze(-1)


def _scores(query: Tensor, key: Tensor, spec: AttentionSpec) -> Tensor:
    """Return the scores (..., T, S) before the mask."""
    scores = _scaled(query, spec.scale) @ key.transpose(-1, -2)
    return scores if spec.softcap is None else spec.softcap * torch.tanh(scores / spec.softcap)


def _scaled(query: Tensor, scale: float) -> Tensor:
    """Return the queries times ``scale``, contiguous in memory.

    The queries of a head are not, if the heads were split from wider vectors. A copy costs less time than the product
    then saves.
    """
    if may_be_recorded(query):
        return (query * scale).contiguous()
    return torch.mul(query, scale, out=query.new_empty(query.shape))


def _log_sums(scores: Tensor, empty: Tensor | None) -> Tensor:
    """Return the log-sums (..., T, 1): -inf for queries that may attend to nothing."""
    lse = torch.logsumexp(scores, dim=-1, keepdim=True)
    return lse if empty is None else lse.masked_fill(empty, -torch.inf)


def prefer_head_loop(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, spec: AttentionSpec) -> bool:
    """Tell whether it is faster, on one core, to go through long heads one by one, and whether that is possible."""
    if mask is not None or spec.dropout_p or spec.softcap or spec.need_lse:
        return False
    if may_be_recorded(query, key, value) or is_autocast_enabled(query):
        return False
    if query.device.type != "cpu" or torch.finfo(query.dtype).bits < 32:
        return False
    long = query.shape[-2] * key.shape[-2] >= MIN_SCORES_FOR_LOOP and torch.get_num_threads() == 1
    return long and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]


def attend_head_by_head(query: Tensor, key: Tensor, value: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return context and weights, from some rows of one head at a time: their scores stay in the processor's cache."""
    *lead, T, _ = query.shape
    weights = query.new_empty((*lead, T, key.shape[-2]))
    # In memory, the contexts of all heads lie side by side, as merge_heads needs them.
    context = query.new_empty((*lead[:-1], T, *lead[-1:], value.shape[-1]))
    context = context.transpose(-3, -2) if lead else context
    for head in product(*map(range, lead)):
        keys, values = key[head].T, value[head]
        parts = (torch.split(x[head], ROWS_PER_BLOCK) for x in (query, weights, context))
        for queries, scores, out in zip(*parts, strict=True):
            torch.addmm(scores, queries, keys, beta=0, alpha=scale, out=scores)
            torch.softmax(scores, dim=-1, out=scores)
            torch.mm(scores, values, out=out)
    return context, weights
