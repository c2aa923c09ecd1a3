"""Checks of the arguments of scaled dot-product attention.

Dimensions: H heads, T queries, S keys and values, D width of queries and keys.
"""

import math

from attnlib._arrays import (
    Array,
    array_namespace,
    broadcast_batch_shape,
    check_bool,
    check_float,
    check_int,
    require_sequence,
    shape,
)
from attnlib._spec import WindowSpec

Window = tuple[int | None, int | None]  # how many keys to the left and to the right a query may attend to


def check_inputs(query: Array, key: Array, value: Array, enable_gqa: bool) -> tuple[int, ...]:
    """Check that queries, keys and values fit each other, and return the shape of their scores."""
    array_namespace(query=query, key=key, value=value)
    q, k, v = query.shape, key.shape, value.shape
    if min(len(q), len(k), len(v)) < 2:
        require_sequence(query=query, key=key, value=value)
    if q[-1] != k[-1]:
        raise ValueError(
            f"query has shape {shape(query)} and key {shape(key)}: widths D={q[-1]} and {k[-1]} must be equal"
        )
    if k[-2] != v[-2]:
        raise ValueError(f"key has shape {shape(key)} and value {shape(value)}: S={k[-2]} keys need as many values")
    if enable_gqa:
        return (*_grouped_batches(query, key, value), q[-2], k[-2])
    if not q[:-2] == k[:-2] == v[:-2]:
        return (*_broadcast_batches(query, key, value), q[-2], k[-2])
    return (*q[:-1], k[-2])


def _broadcast_batches(query: Array, key: Array, value: Array) -> tuple[int, ...]:
    """Return the leading dimensions, broadcast together; if they do not, the error says what grouped queries need."""
    try:
        return broadcast_batch_shape(query=(query, 2), key=(key, 2), value=(value, 2))
    except ValueError as error:
        H, H_key = (x.shape[-3] if x.ndim > 2 else 1 for x in (query, key))
        grouped = H_key and H_key != H and H % H_key == 0
        hint = f"; {H} query heads for {H_key} key heads need enable_gqa=True" if grouped else ""
        raise ValueError(f"{error}{hint}") from None


def _grouped_batches(query: Array, key: Array, value: Array) -> tuple[int, ...]:
    """Return the leading dimensions of grouped queries, the heads last."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ValueError(
            f"enable_gqa needs heads, (..., H, T, D), but query has shape {shape(query)}, key {shape(key)}, "
            f"value {shape(value)}"
        )
    H, H_key, H_value = query.shape[-3], key.shape[-3], value.shape[-3]
    if H_key != H_value or H_key < 1 or H % H_key:
        raise ValueError(
            f"query has {H} heads, key {H_key} and value {H_value}: key and value need the same number of heads, and "
            f"the query a multiple of it"
        )
    return (*broadcast_batch_shape(query=(query, 3), key=(key, 3), value=(value, 3)), H)


def check_window(window: Window | None) -> Window | None:
    """Return a window, or None, after checking that it is a pair of whole numbers; None leaves a side open."""
    if window is None:
        return None
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise TypeError(f"window is {window!r}, but a pair (left, right) is needed, with None for an open side")
    left, right = (None if n is None else check_int(f"window[{side}]", n, 0) for side, n in enumerate(window))
    return left, right


def window_spec(is_causal: bool, window: Window | None, q_offset: int) -> WindowSpec:
    """Return which keys a query may attend to by position, after checking these arguments."""
    is_causal = check_bool("is_causal", is_causal)
    left, right = check_window(window) or (None, None)
    return WindowSpec(left, 0 if is_causal else right, check_int("q_offset", q_offset))


def check_softcap(softcap: float | None) -> float | None:
    """Return the cap on scores as a float, or None for no cap, after checking that it is a positive number."""
    softcap = 0.0 if softcap is None else check_float("softcap", softcap)
    if not 0 <= softcap < math.inf:
        raise ValueError(f"softcap is {softcap}, but a positive number is needed (None or 0 means no cap)")
    return softcap or None


def check_scale(scale: float | None, width: int) -> float:
    """Return the factor by which dot products are multiplied: ``1 / sqrt(width)`` if ``scale`` is None."""
    if scale is None:
        return float(max(width, 1) ** -0.5)
    scale = check_float("scale", scale)
    if not -math.inf < scale < math.inf:
        raise ValueError(f"scale is {scale}, but a finite number is needed (None means 1/sqrt(D))")
    return scale
