"""The inputs of an attention layer with a cache, for the exercises that are given one."""

from typing import Any

import numpy as np


def random_heads(
    rng: np.random.Generator,
    leading: tuple[int, ...],
    H: int,
    H_kv: int,
    T: int,
    past: int,
    D: int,
    D_v: int,
    dtype: Any = np.float64,
) -> dict[str, Any]:
    """Return T new tokens for H query heads and H_kv key heads, and the keys and values of the tokens before."""
    shapes = {
        "query": (H, T, D),
        "key": (H_kv, T, D),
        "value": (H_kv, T, D_v),
        "past_key": (H_kv, past, D),
        "past_value": (H_kv, past, D_v),
    }
    return {name: rng.normal(size=(*leading, *shape)).astype(dtype) for name, shape in shapes.items()}


def grown(key: Any, value: Any, past_key: Any, past_value: Any) -> tuple[Any, Any]:
    """Return all keys and values so far."""
    return np.concatenate([past_key, key], axis=-2), np.concatenate([past_value, value], axis=-2)
