"""The matrices of a model, packed into 8 bits a number so that a page can fetch them."""

import numpy as np
from numpy.typing import NDArray

MOST = 127  # the largest signed byte


def quantized(numbers: NDArray[np.float32], group: int) -> tuple[NDArray[np.int8], NDArray[np.uint16]]:
    """Return numbers as bytes, and for each group of them the upper half of the float32 that scales them."""
    groups = numbers.reshape(-1, group)
    largest = np.maximum(np.abs(groups).max(axis=1) / MOST, np.finfo(np.float32).tiny)
    halves = (largest.view(np.uint32) >> 16) + 1  # rounded up, so that no byte is too large
    scales = (halves << 16).view(np.float32)
    return np.round(groups / scales[:, None]).astype(np.int8).ravel(), halves.astype("<u2")
