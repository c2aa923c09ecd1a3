"""What the tests of the caches share: keys and values that tell their positions, and decoding in chunks."""

from itertools import pairwise

import numpy as np
from backends import D_V, B, D, H


def pair(backend, first, last, dtype="float64", batch=B):
    """Return keys and values of some positions: all numbers differ, and depend only on the position."""
    at, head = np.arange(first, last, dtype=float)[:, None], np.arange(batch * H).reshape(batch, H, 1, 1)
    key, value = at * 100 + np.arange(D) + 1e4 * head, -at * 100 - np.arange(D_V) - 1e4 * head
    return backend.array(key, dtype), backend.array(value, dtype)


def decoded(module, x, chunks, cache, **options):
    """Return the results of a module for one chunk of a sequence after another."""
    ends = np.cumsum([0, *chunks]).tolist()
    return [module(x[:, a:b], is_causal=True, cache=cache, **options) for a, b in pairwise(ends)]


def joined(backend, outs):
    """Return the results of all chunks as one NumPy array."""
    return np.concatenate([backend.numpy(x) for x in outs], axis=-2)
