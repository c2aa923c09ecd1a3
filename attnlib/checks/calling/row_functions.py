"""Functions of the rows of an array, which cases pass to an implementation as an argument."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlib


def add_row_number(x: NDArray[Any]) -> NDArray[Any]:
    """Add 0 to the first row, 1 to the second, and so on."""
    return x + np.arange(len(x))[:, None]


def itself(x: NDArray[Any]) -> NDArray[Any]:
    """Return the same array, not a copy."""
    return x


def double(x: NDArray[Any]) -> NDArray[Any]:
    """Multiply each number by 2, whatever its row."""
    return 2 * x


def multiply_by_row_number(x: NDArray[Any]) -> NDArray[Any]:
    """Multiply the first row by 0, the second by 1, and so on."""
    return x * np.arange(len(x))[:, None]


def mean_of_rows_so_far(x: NDArray[Any]) -> NDArray[Any]:
    """Replace each row by the mean of the rows up to it: what a causal mask does."""
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


def attention_alone(x: NDArray[Any]) -> NDArray[Any]:
    """Let the rows attend to each other."""
    context: NDArray[Any] = attnlib.self_attention(x)[0]
    return context


def attention_with_positions(x: NDArray[Any]) -> NDArray[Any]:
    """Add sinusoids, then let the rows attend to each other."""
    positions = np.arange(len(x))[:, None] / 2.0 ** np.arange(x.shape[-1])
    context: NDArray[Any] = attnlib.self_attention(x + np.sin(positions))[0]
    return context
