"""The NumPy kernels. Arguments have been validated."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


def softmax(x: Floats, axis: int) -> Floats:
    """Return the softmax of ``x`` along ``axis``; 0 where all is -inf. Computed in at least float32."""
    work = x.astype(np.result_type(x.dtype, np.float32), copy=True)
    top = work.max(axis=axis, keepdims=True, initial=-np.inf)
    with np.errstate(over="ignore", under="ignore"):  # to -inf and to 0, which is exact enough
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
        added: Floats = scores + mask
    return added
