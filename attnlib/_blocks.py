"""Blocks of scores: each covers some heads, some of their queries, and the keys that these queries can reach.

Code that computes one block after another never holds all T x S scores. A block has whole rows, so its softmax is
complete.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from attnlib._arrays import Array, is_torch, reshape
from attnlib._lengths import binding_sides, keys_in_reach
from attnlib.masks import combine_masks, window_mask

SCORES = 2**18  # in a block, 1 MiB of float32: fewer make matrix products slow, and more do not fit into the cache
ROWS = 256  # queries in a block whose reach is limited: with more, more scores would be computed only to be masked
ON_DEVICE = 64  # times as many scores on a GPU, where launching an operation takes as long as computing many scores
ALL = slice(None)
Index = int | slice


class Reach(NamedTuple):
    """Which keys query i can reach: those from ``i + offset - left`` to ``i + offset + right``; None means no limit."""

    left: int | None
    right: int | None
    offset: int

    def binding(self, T: int, S: int) -> "Reach":
        """Return the reach without the limits that keep none of T queries from any of S keys."""
        return Reach(*binding_sides(self.left, self.right, self.offset, T, S), self.offset)


class Block(NamedTuple):
    """A block's position, and a mask (t, s) of the keys that its queries can reach; None if all can reach all."""

    heads: tuple[Index, ...]
    queries: slice
    keys: slice
    reached: Array | None

    def of_queries(self, x: Array) -> Array:
        """Return a view of the block's part of an array (..., H, T, D)."""
        return _part(x, (*self.heads, self.queries, ALL))

    def of_keys(self, x: Array) -> Array:
        """Return a view of the block's part of an array (..., H, S, D)."""
        return _part(x, (*self.heads, self.keys, ALL))

    def of_scores(self, x: Array) -> Array:
        """Return a view of the block's part of an array (..., H, T, S)."""
        return _part(x, (*self.heads, self.queries, self.keys))

    def mask(self, mask: Array | None) -> Array | None:
        """Return the block's part of a mask (..., H, T, S), combined with the mask of reachable keys."""
        if mask is None:
            return self.reached
        return combine_masks(self.of_scores(mask), self.reached)


def blocks(heads: tuple[int, ...], T: int, S: int, reach: Reach, like: Array) -> Iterator[Block]:
    """Divide the scores ``(*heads, T, S)`` into blocks of about ``SCORES``, without keys that no query can reach."""
    left, right, offset = reach
    limited = not (left is None and right is None)
    width = S if left is None or right is None else min(S, left + right + ROWS)
    most = most_scores(like)
    rows = max(most // max(width, 1), 1)
    together = most // max(min(rows, T) * width, 1)
    rows = min(rows, ROWS) if limited else rows
    for begin in range(0, T, rows):
        end = min(begin + rows, T)
        a, b = keys_in_reach(begin, end, 0, S, left, right, offset)
        inside = Reach(left, right, begin + offset - a).binding(end - begin, b - a)
        reached = within_reach(None, end - begin, b - a, inside, like)
        for chosen in _heads(heads, together) if a < b else ():
            yield Block(chosen, slice(begin, end), slice(a, b), reached)


def most_scores(like: Array) -> int:
    """Return the maximum number of scores in a block."""
    return SCORES * ON_DEVICE if is_torch(like) and like.device.type != "cpu" else SCORES


def _heads(heads: tuple[int, ...], together: int) -> Iterator[tuple[Index, ...]]:
    """Yield indices of single heads, whose arrays are then matrices, or of ``together`` neighbours at a time."""
    if together < 2 or not heads:
        yield from np.ndindex(heads)
        return
    for outer in np.ndindex(heads[:-1]):
        for n in range(0, heads[-1], together):
            yield (*outer, slice(n, n + together))


def within_reach(mask: Array | None, T: int, S: int, reach: Reach, like: Array) -> Array | None:
    """Return a mask combined with the limits on distance; None if there is neither."""
    left, right, offset = reach
    if left is None and right is None:
        return mask
    return combine_masks(mask, window_mask(T, S, left, right, q_offset=offset, like=like))


def grouped(query: Array, key: Array, value: Array, mask: Array | None) -> tuple[Array, Array, Array, Array | None]:
    """Reshape the heads from (H,) to (H_key, H / H_key), so that each key head serves one group of query heads."""
    H_key = key.shape[-3]
    mask = mask if mask is None or mask.ndim < 3 else in_groups(mask, H_key)
    return in_groups(query, H_key), key[..., None, :, :], value[..., None, :, :], mask


def in_groups(x: Array, H_key: int) -> Array:
    """Reshape ``(..., H, T, D)`` to ``(..., H_key, H / H_key, T, D)``; a single head serves all groups."""
    if x.shape[-3] == 1:
        return x[..., None, :, :]
    return reshape(x, (*x.shape[:-3], H_key, x.shape[-3] // H_key, *x.shape[-2:]))


def _part(x: Array, index: tuple[Index, ...]) -> Array:
    """Return a view of an array that may lack leading dimensions of the index; those of size 1 serve all."""
    own = zip(x.shape, index[len(index) - x.ndim :], strict=True)
    chosen = ((0 if isinstance(part, int) else ALL) if n == 1 else part for n, part in own)
    return x[(..., *chosen)]  # with an ellipsis, even a result without dimensions is an array
