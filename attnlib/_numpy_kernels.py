"""The NumPy kernels. Arguments have been validated."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib import _numpy_fast_path
from attnlib._head_groups import batch_shape, group_heads, is_grouped
from attnlib._numpy_tiled import BLOCK_K, BLOCK_Q, ScoreSpec, attend, attend_whole_rows
from attnlib._spec import AttentionSpec, WindowSpec

FEW_QUERIES = 32  # for fewer, the scores of a head take less memory than its keys
Floats = NDArray[np.floating[Any]]
Results = tuple[Floats, Floats | None, Floats | None]  # the context, the weights and the log-sums


def softmax(x: Floats, axis: int) -> Floats:
    """Return the softmax of ``x`` along ``axis``; 0 where all is -inf. Computed in at least float32."""
    work = x.astype(np.result_type(x.dtype, np.float32), copy=True)
    top = work.max(axis=axis, keepdims=True, initial=-np.inf)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # to -inf and 0, exact enough; inf - inf to nan
        work -= np.where(np.isneginf(top), 0, top)  # -inf minus -inf would be nan
        np.exp(work, out=work)
    total = work.sum(axis=axis, keepdims=True)
    work /= np.where(total == 0, 1, total)
    return work.astype(x.dtype, copy=False)


def masked(scores: Floats, mask: NDArray[Any]) -> Floats:
    """Return the scores with a boolean mask (True = keep) applied or a float mask added."""
    if mask.dtype == np.bool_:
        return np.where(mask, scores, np.asarray(-np.inf, scores.dtype))
    with np.errstate(over="ignore"):  # the lowest finite number plus a score may well be -inf
        added: Floats = scores + mask.astype(scores.dtype, copy=False)
    return added


def sdpa(query: Floats, key: Floats, value: Floats, spec: AttentionSpec) -> Results:
    """Return the context ``(..., T, D_v)``, and the weights ``(..., T, S)`` and log-sums ``(..., T)`` if needed."""
    work = np.result_type(query.dtype, np.float32)
    q, k, v = (x.astype(work, copy=False) for x in (query, key, value))
    spec = spec._replace(window=binding_window(spec.window, q, k))
    small = _few_scores(q, k, v, spec)
    if small is not None:
        context, weights = (x.astype(query.dtype, copy=False) for x in small)
        return context, weights if spec.need_weights else None, None
    return _many_scores(q, k, v, spec, query.dtype)


def _few_scores(query: Floats, key: Floats, value: Floats, spec: AttentionSpec) -> tuple[Floats, Floats] | None:
    """Return the context and the weights, or None if there are many scores or a case needs special treatment."""
    if spec.need_lse or spec.dropout_p or spec.softcap:
        return None
    if not (spec.window.is_unlimited() or spec.window.is_causal()):
        return None
    causal = spec.window.is_causal()
    return _numpy_fast_path.sdpa(query, key, value, spec.mask, spec.scale, causal, enable_gqa=query.ndim > 2)


def _many_scores(query: Floats, key: Floats, value: Floats, spec: AttentionSpec, dtype: Any) -> Results:
    """Return the results, in the given dtype, from tiles of scores."""
    heads, (T, S) = batch_shape(query, key, value), (query.shape[-2], key.shape[-2])
    q, k, v, mask = _same_heads(query, key, value, spec.mask)
    lead, work = q.shape[:-2], q.dtype
    tiles = ScoreSpec(*spec._replace(mask=mask))
    out = np.empty((*lead, T, v.shape[-1]), work)
    lse = np.empty((*lead, T), work) if spec.need_lse else None
    weights = np.zeros((*lead, T, S), work) if spec.need_weights else None
    if weights is None and T * S > BLOCK_Q * BLOCK_K and T >= FEW_QUERIES:
        attend(q, k, v, tiles, out, lse)
    else:
        attend_whole_rows(q, k, v, tiles, out, lse, weights)

    def returned(x: Floats) -> Floats:
        with np.errstate(over="ignore"):  # a log-sum may be too large for float16
            return x.reshape(*heads, *x.shape[len(lead) :]).astype(dtype, copy=False)

    return returned(out), weights if weights is None else returned(weights), lse if lse is None else returned(lse)


def is_tracked(*arrays: Floats) -> bool:
    """Tell whether anything tracks the operations, which nothing does in NumPy."""
    return False


def binding_window(window: WindowSpec, query: Floats, key: Floats) -> WindowSpec:
    """Return the window without the limits that exclude no key."""
    return window.binding(query.shape[-2], key.shape[-2])


def _same_heads(
    query: Floats, key: Floats, value: Floats, mask: NDArray[Any] | None
) -> tuple[Floats, Floats, Floats, NDArray[Any] | None]:
    """Return views with the same leading dimensions, at least one. Grouped heads have two: (H_key, H / H_key)."""
    T, S, lead = query.shape[-2], key.shape[-2], batch_shape(query, key, value) or (1,)
    if is_grouped(query, key):
        query, key, value, mask = group_heads(query, key, value, mask)
        lead = (*lead[:-1], *query.shape[-4:-2])
    query, key, value = (_broadcast_to(x, (*lead, *x.shape[-2:])) for x in (query, key, value))
    return query, key, value, mask if mask is None else _broadcast_to(mask, (*lead, T, S))


def _broadcast_to(x: NDArray[Any], wanted: tuple[int, ...]) -> NDArray[Any]:
    return x if x.shape == wanted else np.broadcast_to(x, wanted)
