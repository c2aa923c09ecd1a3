"""Heads of queries that share a head of keys and values (grouped-query attention), and batches that broadcast.

Dimensions: B batch, H heads of queries, H_key heads of keys and values, T queries, S keys, D width.
"""

from collections.abc import Sequence
from math import prod

from attnlib._arrays import Array, broadcast_shape, reshape


def is_grouped(query: Array, key: Array) -> bool:
    """Tell whether each head of keys serves a group of query heads. A single head of keys is broadcast instead."""
    if query.ndim == 2 or key.ndim == 2:
        return False
    return True if 1 < key.shape[-3] < query.shape[-3] else False  # noqa: SIM210 (for symbolic sizes, "<" is not a bool)


def batch_shape(query: Array, key: Array, value: Array) -> tuple[int, ...]:
    """Return the leading dimensions of the context: batches and heads. There are none if all three are matrices."""
    if is_grouped(query, key):
        return (*broadcast_shape(query.shape[:-3], key.shape[:-3], value.shape[:-3]), query.shape[-3])
    return broadcast_shape(query.shape[:-2], key.shape[:-2], value.shape[:-2])


def group_heads(query: Array, key: Array, value: Array, mask: Array | None) -> tuple[Array, Array, Array, Array | None]:
    """Reshape the heads from (H,) to (H_key, H / H_key), so that each key head serves one group of query heads."""
    H_key = key.shape[-3]
    mask = mask if mask is None or mask.ndim < 3 else in_groups(mask, H_key)
    return in_groups(query, H_key), key[..., None, :, :], value[..., None, :, :], mask


def in_groups(x: Array, H_key: int) -> Array:
    """Reshape ``(..., H, T, D)`` to ``(..., H_key, H / H_key, T, D)``; a single head serves all groups."""
    if x.shape[-3] == 1:
        return x[..., None, :, :]
    return reshape(x, (*x.shape[:-3], H_key, x.shape[-3] // H_key, *x.shape[-2:]))


def flatten_batch(x: Array, batch: Sequence[int], heads: int) -> Array:
    """Return a tensor of torch as ``(B, heads, T, D)``, with its batches broadcast to ``batch``; a view if possible."""
    return x.expand(*batch, heads, *x.shape[-2:]).reshape(prod(batch), heads, *x.shape[-2:])
