"""What the tests of scaled_dot_product_attention share: shapes, masks, and the call with its arrays of a backend."""

import numpy as np
from backends import D_V, B, D, H, S, T

from attnlib import causal_mask, scaled_dot_product_attention, window_mask

INF = np.inf
ALL = {"return_weights": True, "return_lse": True}
QKV = ((B, H, T, D), (B, H, S, D), (B, H, S, D_V))


def on(backend, x, dtype="float64"):
    """An array of the backend; bools stay bools, options stay as they are."""
    if not isinstance(x, np.ndarray):
        return x
    return backend.array(x, "bool" if x.dtype == bool else dtype)


def run(backend, *arrays, dtype="float64", **options):
    """The library's results, as float64 NumPy arrays: one, or a tuple."""
    options = {name: on(backend, x, dtype) for name, x in options.items()}
    results = scaled_dot_product_attention(*(on(backend, x, dtype) for x in arrays), **options)
    return tuple(map(backend.numpy, results)) if isinstance(results, tuple) else backend.numpy(results)


def random_mask(rng, kind, shape):
    """A mask that forbids some, and all to its second row; a float mask prefers others too."""
    allowed = np.array(rng.random(shape) < 0.6)
    if allowed.ndim > 1 and allowed.shape[-2] > 1:
        allowed[..., 1, :] = False
    return allowed if kind == "bool" else np.where(allowed, rng.standard_normal(shape), -INF)


def heads(*numbers, batch=(B,)):
    """Shapes with so many heads of queries, of keys, of values."""
    q, k, v = numbers
    return ((*batch, q, T, D), (*batch, k, S, D), (*batch, v, S, D_V))


def lengths(T, S):
    """Shapes of T queries and S keys."""
    return ((H, T, D), (H, S, D), (H, S, D_V))


def empty_rows(kind, dtype="float64"):
    """A mask whose rows 0 and 3 forbid everything, in four ways to say so."""
    allowed = np.random.default_rng(5).random((T, S)) < 0.7
    allowed[:, 2], allowed[[0, 3]] = True, False
    return allowed if kind == "bool" else np.where(allowed, 0.5, -INF)


NOTHING = {
    "bool mask": {"attn_mask": empty_rows("bool")},
    "float mask": {"attn_mask": empty_rows("float")},
    "bool mask and causal": {"attn_mask": empty_rows("bool"), "is_causal": True, "q_offset": -1},
    "a negative offset": {"is_causal": True, "q_offset": -2},
    "a window beyond the keys": {"window": (1, 1), "q_offset": 4},
    "a window before the keys": {"window": (None, 0), "q_offset": -3},
    "mask and window": {"attn_mask": np.tri(T, S, -1, dtype=bool), "window": (0, 3)},
    "every row": {"attn_mask": np.zeros((1, S), bool)},
    "every row by -inf": {"attn_mask": np.full((T, S), -INF)},
}
WAYS = {"fused": {}, "weights": {"return_weights": True}, "lse": {"return_lse": True}, "softcap": {"softcap": 3.0},
        "all": {**ALL, "softcap": 3.0}}  # fmt: skip


def forbidden_rows(options):
    """Which queries may attend to nothing, from the masks."""
    allowed = np.ones((T, S), bool)
    if (mask := options.get("attn_mask")) is not None:
        allowed = allowed & (mask if mask.dtype == bool else mask > -INF)
    window, offset = options.get("window", (None, None)), options.get("q_offset", 0)
    if options.get("is_causal"):
        allowed = allowed & causal_mask(T, S, q_offset=offset)
    return ~(allowed & window_mask(T, S, *window, q_offset=offset)).any(axis=-1)
