"""The NumPy kernels. Arguments have been validated."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib import _small
from attnlib._lengths import binding_sides
from attnlib._tiled import BLOCK_K, BLOCK_Q, ScoreSpec, attend, attend_whole_rows

FEW = 32  # queries: for fewer, all scores of a head at a time take less memory than the keys
Floats = NDArray[np.floating[Any]]


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


def sdpa(
    query: Floats,
    key: Floats,
    value: Floats,
    mask: NDArray[Any] | None,
    dropout_p: float,
    left: int | None,
    right: int | None,
    offset: int,
    scale: float,
    softcap: float | None,
    want_weights: bool,
    want_lse: bool,
) -> tuple[Floats, Floats | None, Floats | None]:
    """Return the context ``(..., T, D_v)``, the weights ``(..., T, S)`` and the log-sums ``(..., T)`` if wanted."""
    work = np.result_type(query.dtype, np.float32)
    q, k, v = (x.astype(work, copy=False) for x in (query, key, value))
    left, right = binding_sides(left, right, offset, q.shape[-2], k.shape[-2])
    if not (want_lse or dropout_p or softcap or left is not None) and (right is None or right == offset == 0):
        found = _small.sdpa(q, k, v, mask, scale, right == 0, enable_gqa=q.ndim > 2)
        if found is not None:
            small, its_weights = (x.astype(query.dtype, copy=False) for x in found)
            return small, its_weights if want_weights else None, None
    q, k, v, mask, heads = _same_heads(q, k, v, mask)
    spec = ScoreSpec(scale, softcap, mask, left, right, offset, dropout_p)
    (T, S), lead = (q.shape[-2], k.shape[-2]), q.shape[:-2]
    out = np.empty((*lead, T, v.shape[-1]), work)
    lse = np.empty((*lead, T), work) if want_lse else None
    weights = np.zeros((*lead, T, S), work) if want_weights else None
    if weights is None and T * S > BLOCK_Q * BLOCK_K and T >= FEW:
        attend(q, k, v, spec, out, lse)
    else:
        attend_whole_rows(q, k, v, spec, out, lse, weights)
    results = (out, weights, lse)
    return tuple(x if x is None else _returned(x, heads, len(lead), query.dtype) for x in results)  # type: ignore[return-value]


def _returned(x: Floats, heads: tuple[int, ...], lead: int, dtype: Any) -> Floats:
    with np.errstate(over="ignore"):  # a log-sum may be too large for float16
        return x.reshape(*heads, *x.shape[lead:]).astype(dtype, copy=False)


def _same_heads(
    query: Floats, key: Floats, value: Floats, mask: NDArray[Any] | None
) -> tuple[Floats, Floats, Floats, NDArray[Any] | None, tuple[int, ...]]:
    """Return views of equal leading dimensions, at least one; and those that the result shall have.

    Where the keys serve groups of query heads, the heads (H,) are seen as (H_key, H / H_key).
    """
    (T, S), (H, H_key) = (query.shape[-2], key.shape[-2]), (x.shape[-3] if x.ndim > 2 else 1 for x in (query, key))
    if 1 < H_key < H:
        heads = (*np.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3]), H)
        query = query.reshape(*query.shape[:-3], H_key, H // H_key, *query.shape[-2:])
        key, value = key[..., None, :, :], value[..., None, :, :]
        lead = (*heads[:-1], H_key, H // H_key)
    else:
        heads = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        lead = heads or (1,)
    query, key, value = (_stretch(x, (*lead, *x.shape[-2:])) for x in (query, key, value))
    if mask is not None:
        mask = _stretch(mask, (*heads, T, S)).reshape(*lead, T, S)  # of a stretched array, a view like the others
    return query, key, value, mask, heads


def _stretch(x: NDArray[Any], wanted: tuple[int, ...]) -> NDArray[Any]:
    return x if x.shape == wanted else np.broadcast_to(x, wanted)
