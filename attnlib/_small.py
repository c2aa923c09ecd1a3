"""Scaled dot-product attention for NumPy arrays with few scores: all of them at once, in as few steps as possible.

With so few scores, everything stays in the processor's cache, and most of the time is spent on the overhead of calling
NumPy rather than on arithmetic.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import Array
from attnlib._tiled import keep

Floats = NDArray[np.floating[Any]]

FEW = 2**17  # scores of all heads: 512 KiB of float32
LONGEST = 512  # queries or keys, where the attention is causal
AFTER = np.tri(LONGEST, k=-1, dtype=np.bool_).T  # column > row
DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # in native byte order


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
        and 0 < query.size * k[-2] <= FEW * q[-1]
        and dtype == key.dtype == value.dtype
        and dtype in DTYPES
        and not (causal and max(q[-2], k[-2]) > LONGEST)
    )


@np.errstate(over="ignore", invalid="ignore")  # from inf, which makes a row nan
def attend(
    query: Array, key: Array, value: Array, scale: float, causal: bool, mask: Array | None = None
) -> tuple[Array, Array]:
    """Return the context (..., T, D_v) and the weights (..., T, S), for at least one key.

    The arrays have the same leading dimensions and are float32 or float64. ``causal`` aligns the first query with the
    first key. The mask is boolean, or has the arrays' dtype and is added to the scores.
    """
    weights: Floats = np.matmul(query * scale, key.mT)
    if causal:
        T, S = weights.shape[-2:]
        np.copyto(weights, -np.inf, where=AFTER[:T, :S])
    if mask is not None:
        return _attend_masked(weights, mask, value)
    weights -= np.maximum.reduce(weights, axis=-1, keepdims=True)  # as max() does, with less overhead
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis=-1, keepdims=True)
    return np.matmul(weights, value), weights


def _attend_masked(scores: Floats, mask: NDArray[Any], value: Floats) -> tuple[Floats, Floats]:
    """Return the context and the weights, which are 0 for a query without any key; overwrite the scores."""
    if mask.dtype == np.bool_:
        keep(scores, mask, by=-np.inf)
    else:
        scores += mask
    top = np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.copyto(top, 0, where=top == -np.inf)  # -inf minus -inf would be nan
    scores -= top
    np.exp(scores, out=scores)
    total = np.add.reduce(scores, axis=-1, keepdims=True)
    np.copyto(total, 1, where=total == 0)
    scores /= total
    return np.matmul(scores, value), scores
