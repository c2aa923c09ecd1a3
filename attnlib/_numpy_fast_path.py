"""Scaled dot-product attention for NumPy arrays with few scores: all of them at once, in as few steps as possible.

With so few scores, everything stays in the processor's cache, and most of the time is spent on the overhead of calling
NumPy rather than on arithmetic.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib import _fast_paths
from attnlib._arrays import Array, broadcasts_to
from attnlib._attention_arguments import check_scale
from attnlib._numpy_tiled import TINY

Floats = NDArray[np.floating[Any]]

MAX_SCORES_AT_ONCE = 2**17  # scores of all heads: 512 KiB of float32
MAX_CAUSAL_LENGTH = 512  # queries or keys, where the attention is causal
ABOVE_DIAGONAL = np.tri(MAX_CAUSAL_LENGTH, k=-1, dtype=np.bool_).T  # column > row
LOWEST_FLOAT = {np.dtype(t): float(np.finfo(t).min) for t in (np.float32, np.float64)}  # in native byte order


def sdpa(
    query: Array, key: Array, value: Array, mask: Array | None, scale: float | None, causal: bool, enable_gqa: bool
) -> tuple[Array, Array] | None:
    """Return the context and the weights, or None if :func:`attend` does not fit. Nothing has to be validated."""
    grouped = enable_gqa and is_grouped(query, key)
    q = query.reshape(*key.shape[:-2], -1, query.shape[-1]) if grouped else query  # heads of a group become rows
    if not fits(q, key, value, causal) or (enable_gqa and q.ndim < 3) or (grouped and (causal or mask is not None)):
        return None
    if mask is not None and not mask_fits(mask, q, key):
        return None
    factor = q.shape[-1] ** -0.5 if scale is None else check_scale(scale, q.shape[-1])
    context, weights = attend(q, key, value, factor, causal, mask)
    if not grouped:
        return context, weights
    return context.reshape(*query.shape[:-1], value.shape[-1]), weights.reshape(*query.shape[:-1], key.shape[-2])


def is_grouped(query: object, key: object) -> bool:
    """Tell whether several neighbouring heads of queries share a head of keys."""
    if not type(query) is type(key) is np.ndarray or not query.size:
        return False
    q, k = query.shape, key.shape
    return len(q) == len(k) > 2 and q[:-3] == k[:-3] and 0 < k[-3] < q[-3] and q[-3] % k[-3] == 0 and q[-1] == k[-1]


def fits(query: object, key: object, value: object, causal: bool) -> bool:
    """Tell whether these are arrays that fit each other, need no conversion, and have few scores."""
    if not type(query) is type(key) is type(value) is np.ndarray:
        return False
    q, k, v, dtype = query.shape, key.shape, value.shape, query.dtype
    return (
        len(q) > 1
        and (
            q == k == v
            or (len(q) == len(k) == len(v) and q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] and k[-2] == v[-2])
        )
        and 0 < query.size * k[-2] <= MAX_SCORES_AT_ONCE * q[-1]
        and dtype == key.dtype == value.dtype
        and dtype in LOWEST_FLOAT
        and not (causal and max(q[-2], k[-2]) > MAX_CAUSAL_LENGTH)
    )


def mask_fits(mask: object, query: Floats, key: Floats) -> bool:
    """Tell whether a mask, boolean or floating point, broadcasts to the scores of arrays that fit each other."""
    if type(mask) is not np.ndarray or mask.dtype.kind not in "bf":
        return False
    T, S = query.shape[-2], key.shape[-2]
    return mask.shape == (T, S) or broadcasts_to(mask.shape, (*query.shape[:-1], S))


@np.errstate(over="ignore", invalid="ignore")  # from inf, which makes a row nan
def attend(
    query: Array, key: Array, value: Array, scale: float, causal: bool, mask: Array | None = None
) -> tuple[Array, Array]:
    """Return the context (..., T, D_v) and the weights (..., T, S), for at least one key.

    The arrays have the same leading dimensions and are float32 or float64. ``causal`` aligns the first query with the
    first key. The mask is boolean, or floating point and added to the scores. A query without any key has context and
    weights 0, because its largest score is taken to be finite, and TINY is added to the sum of its weights. That
    changes no other sum, which is at least 1.
    """
    weights: Floats = np.matmul(query * scale, key.mT)
    if causal:
        T, S = weights.shape[-2:]
        np.copyto(weights, -np.inf, where=ABOVE_DIAGONAL[:T, :S])
    if mask is not None:
        _apply(mask, weights)
    # The ufuncs do what max() and sum() do, with less overhead.
    weights -= np.maximum.reduce(weights, axis=-1, keepdims=True, initial=LOWEST_FLOAT[weights.dtype])
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=-1, keepdims=True, initial=TINY)
    return np.matmul(weights, value), weights


def _apply(mask: NDArray[Any], scores: Floats) -> None:
    """Add a mask to the scores, or lower them to -inf where it is False; a nan that is kept becomes inf."""
    if mask.dtype != np.bool_:
        scores += mask
        return
    limit = mask.astype(scores.dtype)
    limit -= 0.5
    limit *= np.inf  # without branches, many of which a processor would mispredict
    np.fmin(scores, limit, out=scores)


def _fast_path(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    scale: float | None,
    causal: bool,
    enable_gqa: bool,
    return_weights: bool,
) -> Array | tuple[Array, Array] | None:
    both = sdpa(query, key, value, mask, scale, causal, enable_gqa)
    return both if both is None or return_weights else both[0]


_fast_paths.sdpa[np.ndarray] = _fast_path
