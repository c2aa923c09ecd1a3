"""Random queries, keys and values."""

from typing import Any

import numpy as np


def draw_qkv(
    rng: np.random.Generator, leading: tuple[int, ...], t: int, s: int, d: int, d_v: int, dtype: Any = np.float64
) -> dict[str, Any]:
    """Return random query, key and value: T queries, S keys of width D, S values of width D_v."""
    shapes = {"query": (t, d), "key": (s, d), "value": (s, d_v)}
    return {name: rng.normal(size=(*leading, *shape)).astype(dtype) for name, shape in shapes.items()}
