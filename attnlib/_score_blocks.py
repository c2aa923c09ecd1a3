"""Blocks of scores: each covers some heads, some of their queries, and the keys that these queries can reach.

Code that computes one block after another never holds all T x S scores. A block has whole rows, so its softmax is
complete.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from attnlib._arrays import Array, is_torch
from attnlib._lengths import keys_in_reach
from attnlib._spec import WindowSpec
from attnlib.masks import combine_masks, window_mask

MAX_SCORES = 2**18  # in a block, 1 MiB of float32: fewer make matrix products slow, and more do not fit into the cache
MAX_ROWS = 256  # queries in a block, or in a call of torch's kernel, under a window: more would reach too many keys
GPU_FACTOR = 64  # times as many scores on a GPU, where launching an operation takes as long as computing many scores
WHOLE_AXIS = slice(None)
Index = int | slice


class Block(NamedTuple):
    """A block's position, and a mask (t, s) of the keys that its queries can reach; None if all can reach all."""

    heads: tuple[Index, ...]
    queries: slice
    keys: slice
    reached: Array | None

    def of_queries(self, x: Array) -> Array:
        """Return a view of the block's part of an array (..., H, T, D)."""
        return _part(x, (*self.heads, self.queries, WHOLE_AXIS))

    def of_keys(self, x: Array) -> Array:
        """Return a view of the block's part of an array (..., H, S, D)."""
        return _part(x, (*self.heads, self.keys, WHOLE_AXIS))

    def of_scores(self, x: Array) -> Array:
        """Return a view of the block's part of an array (..., H, T, S)."""
        return _part(x, (*self.heads, self.queries, self.keys))

    def mask(self, mask: Array | None) -> Array | None:
        """Return the block's part of a mask (..., H, T, S), combined with the mask of reachable keys."""
        if mask is None:
            return self.reached
        return combine_masks(self.of_scores(mask), self.reached)


def blocks(heads: tuple[int, ...], T: int, S: int, window: WindowSpec, like: Array) -> Iterator[Block]:
    """Divide the scores ``(*heads, T, S)`` into blocks, leaving out keys that no query of a block can reach."""
    left, right, _ = window
    width = S if left is None or right is None else min(S, left + right + MAX_ROWS)
    most = max_scores(like)
    rows = max(most // max(width, 1), 1)
    heads_together = most // max(min(rows, T) * width, 1)
    rows = rows if window.is_unlimited() else min(rows, MAX_ROWS)
    for queries, keys, inside in row_blocks(T, S, window, rows):
        t, s = queries.stop - queries.start, keys.stop - keys.start
        reached = mask_within_window(None, t, s, inside, like)
        for chosen in _heads(heads, heads_together) if s else ():
            yield Block(chosen, queries, keys, reached)


def row_blocks(T: int, S: int, window: WindowSpec, rows: int) -> Iterator[tuple[slice, slice, WindowSpec]]:
    """Divide T queries into blocks, each with the keys that it can reach, perhaps none, and the window among them."""
    left, right, offset = window
    for begin in range(0, T, rows):
        end = min(begin + rows, T)
        a, b = keys_in_reach(begin, end, 0, S, left, right, offset)
        inside = WindowSpec(left, right, begin + offset - a).binding(end - begin, b - a)
        yield slice(begin, end), slice(a, b), inside


def max_scores(like: Array) -> int:
    """Return the maximum number of scores in a block."""
    return MAX_SCORES * GPU_FACTOR if is_torch(like) and like.device.type != "cpu" else MAX_SCORES


def _heads(heads: tuple[int, ...], together: int) -> Iterator[tuple[Index, ...]]:
    """Yield indices of single heads, whose arrays are then matrices, or of ``together`` neighbours at a time."""
    if together < 2 or not heads:
        yield from np.ndindex(heads)
        return
    for outer in np.ndindex(heads[:-1]):
        for n in range(0, heads[-1], together):
            yield (*outer, slice(n, n + together))


def mask_within_window(mask: Array | None, T: int, S: int, window: WindowSpec, like: Array) -> Array | None:
    """Return a mask combined with that of a window; None if there is neither."""
    left, right, offset = window
    if window.is_unlimited():
        return mask
    return combine_masks(mask, window_mask(T, S, left, right, q_offset=offset, like=like))


def _part(x: Array, index: tuple[Index, ...]) -> Array:
    """Return a view of an array that may lack leading dimensions of the index; those of size 1 serve all."""
    own = zip(x.shape, index[len(index) - x.ndim :], strict=True)
    chosen = ((0 if isinstance(part, int) else WHOLE_AXIS) if n == 1 else part for n, part in own)
    return x[(..., *chosen)]  # with an ellipsis, even a result without dimensions is an array
