r"""Scaled dot-product attention of NumPy arrays, one tile of scores at a time. Arguments have been validated.

The scores of 4096 queries and 4096 keys take 64 MiB a head, and every step over them reads and writes main memory.
Here, one tile of them at a time is computed, used and overwritten while it is in the cache. The softmax needs the sum
over all keys of a row before it can divide, so the division comes last (Milakov and Gimelshein, 2018; Rabe and Staats,
2021):

.. math:: o_i = \frac{\sum_j e^{s_{ij} - m_i} v_j}{\sum_j e^{s_{ij} - m_i}}

The result does not depend on m, as long as nothing overflows or underflows. Two values are used:

- If all scores have a small absolute value, m = 0 is safe, and no subtraction is needed. Often this is known
  beforehand: by the Cauchy-Schwarz inequality, no score is larger than :math:`\max_i |q_i| \max_j |k_j|`.
- Otherwise, m is the largest score seen so far. When it grows, the sums so far are scaled down.

Scores are taken to base 2 (the scale gets the factor log2 e), since NumPy's exp2 takes half the time of its exp.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values; t and s in a tile.
"""

from collections.abc import Iterator, Sequence
from math import e, log, log2, sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from attnlib._lengths import keys_in_reach
from attnlib._spec import AttentionSpec
from attnlib._threads import run_on_cores

Floats = NDArray[np.floating[Any]]

BLOCK_Q, BLOCK_K = 256, 512  # queries and keys in a tile: 512 KiB of float32, which fit into a core's second cache
EXP_SAFE = 32.0  # scores up to this size give weights between 2**-32 and 2**32 ...
LARGEST_VALUE = 2.0**60  # ... and float32 holds their products with values up to this size, or down to its inverse
TINY = 2.0**-100  # below the row sum of every query that may attend to a key
BELOW_DIAGONAL = np.tri(BLOCK_Q, k=-1, dtype=np.bool_)  # column < row
ON_OR_ABOVE_DIAGONAL = ~BELOW_DIAGONAL


class ScoreSpec(AttentionSpec):
    """The steps from queries and keys to weights. The mask is (H, T, S) after broadcasting."""

    __slots__ = ()

    @property
    def keep_prob(self) -> float:
        """The probability of keeping a weight, by which kept weights are divided; 1 if every weight is dropped."""
        return 1 - self.dropout_p or 1.0

    def dropout(self, weights: Floats) -> None:
        """Overwrite randomly chosen weights with 0."""
        if self.dropout_p:
            weights *= np.random.random_sample(weights.shape) >= self.dropout_p

    @property
    def prescale(self) -> float:
        """The factor by which either keys or queries must be multiplied before they are passed to :meth:`scores`."""
        return self.scale * log2(e) if self.softcap is None else self.scale / self.softcap

    def scores(self, query: Floats, key: Floats, out: Floats) -> None:
        """Write the scores (..., t, s), times log2 e, of queries (..., t, D) and transposed keys (..., D, s)."""
        np.matmul(query, key, out=out)
        if self.softcap is not None:
            np.tanh(out, out=out)
            out *= self.softcap * log2(e)

    @property
    def is_additive(self) -> bool:
        """Whether the mask is added to the scores."""
        return self.mask is not None and self.mask.dtype != np.bool_

    def may_be_exp_safe(self, value: Floats) -> bool:
        """Tell whether the exponentials of small scores are safe to use, given the values that they will weight."""
        if self.is_additive:
            return False
        return not value.size or 1 / LARGEST_VALUE <= max(value.max(), -value.min()) <= LARGEST_VALUE

    def exp_safe(self, query: Floats, key: Floats) -> bool:
        """Tell whether a bound shows that every score is small, before any score is computed."""
        bound = _largest_norm(query) * _largest_norm(key) * abs(self.scale)
        return min(bound, self.softcap or bound) * log2(e) <= EXP_SAFE

    def keys_reached_by(self, begin: int, end: int, first: int, last: int) -> tuple[int, int]:
        """Return the range of the keys ``first:last`` that at least one of the queries ``begin:end`` can reach."""
        return keys_in_reach(begin, end, first, last, *self.window)

    def queries_that_reach(self, first: int, last: int, T: int) -> tuple[int, int]:
        """Return which of T queries can reach one of the keys ``first:last``."""
        left, right, offset = self.window
        begin = 0 if right is None else max(first - offset - right, 0)
        return begin, T if left is None else min(last - offset + left, T)

    def apply_mask(self, tile: Floats, heads: Any, begin: int, first: int, fill: float) -> None:
        """Overwrite what may not be attended to with ``fill``.

        The tile holds the queries from ``begin`` on, and the keys from ``first`` on that they reach. If the mask is
        additive, it is added to the tile, which must then hold scores, and ``fill`` must be -inf.
        """
        (t, s), (left, right, offset) = tile.shape[-2:], self.window
        if right is not None:  # row r reaches the columns c < r + n
            n = begin + offset + right + 1 - first
            if n < s:
                np.copyto(tile[..., max(n, 0) :], fill, where=ON_OR_ABOVE_DIAGONAL[:t, max(-n, 0) : s - n])
        if left is not None:  # row r reaches the columns c >= r - n
            n = first - (begin + offset - left)
            if (columns := min(t - 1 - n, s)) > 0:
                np.copyto(tile[..., :columns], fill, where=BELOW_DIAGONAL[:t, n : n + columns])
        if self.mask is not None:
            self._apply_given_mask(tile, self.mask[heads][..., begin : begin + t, first : first + s], fill)

    def _apply_given_mask(self, tile: Floats, mask: NDArray[Any], fill: float) -> None:
        if not self.is_additive:
            fill_masked(tile, mask, fill)
            return
        with np.errstate(over="ignore"):
            added, least = mask * tile.dtype.type(log2(e)), np.finfo(tile.dtype).min
            if not added.min(initial=0.0) >= least:  # the maximum below takes ten times as long
                np.maximum(added, least, out=added, where=mask > -np.inf)  # finite numbers remain finite
            tile += added


def attend(query: Floats, key: Floats, value: Floats, spec: ScoreSpec, out: Floats, lse: Floats | None) -> None:
    """Fill the context ``out`` (H, T, D_v) and, unless it is None, ``lse`` (H, T) with the log-sum of each row."""
    heads, T, D_v = list(np.ndindex(out.shape[:-2])), out.shape[-2], out.shape[-1]

    def pieces_for(cores: int) -> list[tuple[Any, ...]]:
        """Return pieces of work: the heads, split into ranges of queries if there are fewer heads than cores."""
        stretch = -(-T // -(-cores // max(len(heads), 1)))
        return [(*head, slice(n, min(n + stretch, T))) for head in heads for n in range(0, T, stretch)]

    def work(pieces: Sequence[tuple[Any, ...]]) -> None:
        workspace = Workspace.allocate(key.shape[-1], D_v, out.dtype)
        for *head, rows in pieces:
            h = tuple(head)
            mask = None if spec.mask is None else spec.mask[h][rows]
            window = spec.window._replace(offset=spec.window.offset + rows.start)
            mine = spec._replace(mask=mask, window=window)
            head_of_rows = _Head(query[h][rows], key[h], value[h], mine, out[h][rows], workspace)
            head_of_rows.run(None if lse is None else lse[h][rows])

    if spec.dropout_p:  # one core draws the random numbers, always in the same order
        run_on_cores(lambda all_pieces: work(all_pieces[0]), lambda cores: [pieces_for(1)])
    else:
        run_on_cores(work, pieces_for)


class Workspace(NamedTuple):
    """Arrays that every tile reuses, so that they stay in the cache."""

    tile: Floats  # of scores, (t, s)
    keys: Floats  # of a tile, transposed, (D, s)
    part: Floats  # of the context, (t, D_v)

    @classmethod
    def allocate(cls, D: int, D_v: int, dtype: Any) -> Self:
        """Return arrays for a tile of the largest size."""
        return cls(np.empty(BLOCK_Q * BLOCK_K, dtype), np.empty((D, BLOCK_K), dtype), np.empty((BLOCK_Q, D_v), dtype))


class _Head:
    """One head: the sums of the weights and of the weighted values, over the keys seen so far."""

    def __init__(
        self, query: Floats, key: Floats, value: Floats, spec: ScoreSpec, context: Floats, workspace: Workspace
    ) -> None:
        self.query, self.key, self.value = query, key, value  # (T, D), (S, D), (S, D_v)
        self.spec, self.workspace = spec, workspace
        self.context = context  # (T, D_v)
        self.row_sum = np.zeros(len(query), context.dtype)
        self.row_max = np.full((len(query), 1), -np.inf, context.dtype)
        self.unshifted = np.full(len(query), spec.may_be_exp_safe(value))  # rows without a subtracted maximum so far
        self.exp_safe = bool(self.unshifted.all()) and spec.exp_safe(query, key)

    def run(self, lse: Floats | None) -> None:
        self.context[...] = 0
        for first in range(0, len(self.key), BLOCK_K):
            self._add_keys(first, min(first + BLOCK_K, len(self.key)))
        divide(self.context, self.row_sum[:, None] * self.spec.keep_prob)
        if lse is not None:
            lse[...] = log_sum_exp(self.row_sum[:, None], self.row_max)

    def _add_keys(self, first: int, last: int) -> None:
        """Add the keys ``first:last`` to the sums of all queries that can reach one of them."""
        keys = np.multiply(self.key[first:last].T, self.spec.prescale, out=self.workspace.keys[:, : last - first])
        ones = np.ones(last - first, keys.dtype)
        start, stop = self.spec.queries_that_reach(first, last, len(self.query))
        for begin in range(start, stop, BLOCK_Q):
            rows = slice(begin, min(begin + BLOCK_Q, stop))
            a, b = self.spec.keys_reached_by(begin, rows.stop, first, last)
            t = rows.stop - begin
            tile = self.workspace.tile[: t * (b - a)].reshape(t, b - a)
            self.spec.scores(self.query[rows], keys[:, a - first : b - first], tile)
            self._exponentiate(tile, rows, a)
            self.row_sum[rows] += tile @ ones[: b - a]  # a third of the time that sum() takes
            self.spec.dropout(tile)
            self.context[rows] += np.matmul(tile, self.value[a:b], out=self.workspace.part[:t])

    def _exponentiate(self, tile: Floats, rows: slice, first: int) -> None:
        """Turn scores into weights, relative to the largest score so far; scale the sums down if that grows."""
        if self.exp_safe or (self.unshifted[rows].all() and _all_exp_safe(tile)):
            np.exp2(tile, out=tile)
            self.spec.apply_mask(tile, (), rows.start, first, fill=0)
            self.row_max[rows] = 0
            return
        self.unshifted[rows] = False
        self.spec.apply_mask(tile, (), rows.start, first, fill=-np.inf)
        self.row_max[rows][self.row_sum[rows] == 0] = -np.inf  # no key was seen yet, so 0 is not a maximum
        row_max = np.maximum(self.row_max[rows], tile.max(axis=-1, keepdims=True))
        rescale = exp2(self.row_max[rows].copy(), row_max)
        self.row_sum[rows] *= rescale[:, 0]
        self.context[rows] *= rescale
        self.row_max[rows] = row_max
        exp2(tile, row_max)


def attend_whole_rows(
    query: Floats,
    key: Floats,
    value: Floats,
    spec: ScoreSpec,
    out: Floats,
    lse: Floats | None,
    weights: Floats | None,
) -> None:
    """Do the same as :func:`attend`, with all keys of some queries at a time.

    Unless it is None, ``weights`` (H, T, S), which contains zeros, is filled too.
    """
    T, S = out.shape[-2], key.shape[-2]
    exp_safe = spec.may_be_exp_safe(value)
    for heads in _head_groups(out.shape[:-2], min(T, BLOCK_Q) * S):
        for begin in range(0, T, BLOCK_Q):
            rows = (*heads, slice(begin, begin + BLOCK_Q))
            a, b = spec.keys_reached_by(begin, min(begin + BLOCK_Q, T), 0, S)
            q, k, v = query[rows], key[(*heads, slice(a, b))], value[(*heads, slice(a, b))]
            tile = np.empty((*q.shape[:-1], b - a), q.dtype) if weights is None else weights[rows][..., a:b]
            spec.scores(q * spec.prescale, k.swapaxes(-1, -2), tile)
            row_max = _exponentiate(tile, spec, exp_safe, heads, begin, a)
            row_sum = (tile @ np.ones(b - a, tile.dtype))[..., None]
            if lse is not None:
                lse[rows] = log_sum_exp(row_sum, row_max)
            if weights is not None:
                divide(tile, row_sum * spec.keep_prob)
            spec.dropout(tile)
            np.matmul(tile, v, out=out[rows])
            if weights is None:
                divide(out[rows], row_sum * spec.keep_prob)


def _exponentiate(tile: Floats, spec: ScoreSpec, exp_safe: bool, heads: Any, begin: int, first: int) -> Floats | float:
    """Turn scores into weights relative to the largest score of each row; return it, or 0 if nothing was subtracted."""
    if exp_safe and _all_exp_safe(tile):
        np.exp2(tile, out=tile)
        spec.apply_mask(tile, heads, begin, first, fill=0)
        return 0.0
    spec.apply_mask(tile, heads, begin, first, fill=-np.inf)
    row_max: Floats = tile.max(axis=-1, keepdims=True, initial=-np.inf)
    exp2(tile, row_max)
    return row_max


def _head_groups(heads: tuple[int, ...], size: int) -> Iterator[tuple[Any, ...]]:
    """Yield indices of neighbouring heads: as many at a time as fit into one tile with ``size`` scores each."""
    together = max(BLOCK_Q * BLOCK_K // max(size, 1), 1)
    for outer in np.ndindex(heads[:-1]):
        for n in range(0, heads[-1], together):
            yield (*outer, slice(n, n + together))


def fill_masked(x: Floats, mask: NDArray[np.bool_], fill: float) -> None:
    """Overwrite x with ``fill``, which is 0 or -inf, where the mask is False. If it is 0, x must be finite.

    ``np.copyto(x, fill, where=~mask)`` takes ten times as long, because the processor cannot predict the branches that
    a mask causes.
    """
    if fill == 0:
        x *= mask
        return
    if x.dtype.itemsize > 8:  # no integer is as wide as an extended-precision float
        np.copyto(x, fill, where=~mask)
        return
    integers: Any = np.int32 if x.dtype.itemsize == 4 else np.int64
    bits, kept = x.view(integers), mask.astype(integers)
    np.negative(kept, out=kept)  # all bits, or none
    bits &= kept
    np.invert(kept, out=kept)
    kept &= np.array(fill, x.dtype).view(integers)
    bits |= kept


def exp2(x: Floats, row_max: Floats) -> Floats:
    """Overwrite x with 2 to the power x - row_max, where no x is above row_max. The smallest results become 0.

    Subnormal numbers take a hundred times as long to compute. No exponent is therefore taken below ``least``, and 2 to
    the power ``least`` is subtracted from all results: that is too little to change any but the smallest.
    """
    least = float(np.finfo(x.dtype).minexp + 6)  # -120 for float32
    with np.errstate(over="ignore", invalid="ignore"):  # to -inf; inf minus inf to nan
        x -= np.where(np.isneginf(row_max), 0, row_max)  # -inf minus -inf would be nan
    np.maximum(x, least, out=x)
    np.exp2(x, out=x)
    x -= x.dtype.type(2) ** least
    return x


def divide(x: Floats, row_sum: Floats) -> None:
    """Divide x by the row sums; empty rows stay 0."""
    x /= np.maximum(row_sum, TINY)


def log_sum_exp(row_sum: Floats, row_max: Floats | float) -> Floats:
    """Return the natural logarithm of the sum of the exponentials of a row's scores: -inf if the row is empty."""
    with np.errstate(divide="ignore"):
        lse: Floats = np.log(row_sum[..., 0])
    return lse if isinstance(row_max, float) else lse + row_max[..., 0] * log(2)


def _all_exp_safe(tile: Floats) -> bool:
    """Tell whether all scores are small enough for exp; this takes less time than the maximum of each row."""
    return bool(tile.max(initial=0.0) <= EXP_SAFE and tile.min(initial=0.0) >= -EXP_SAFE)


def _largest_norm(x: Floats) -> float:
    """Return the largest norm of the vectors in ``x`` (..., D); inf or nan if it cannot be computed."""
    with np.errstate(over="ignore", invalid="ignore"):
        return sqrt(np.vecdot(x, x).max(initial=0.0))
