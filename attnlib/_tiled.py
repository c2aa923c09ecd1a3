r"""Scaled dot-product attention of NumPy arrays, one tile of scores at a time. Arguments have been validated.

The scores of 4096 queries and 4096 keys take 64 MiB a head, and every step over them reads and writes main memory.
Here a tile of them is made, used and overwritten while it lies in the cache. The softmax needs the sum over all keys
of a row before it can divide, so the division comes last (Milakov and Gimelshein, 2018; Rabe and Staats, 2021):

.. math:: o_i = \frac{\sum_j e^{s_{ij} - m_i} v_j}{\sum_j e^{s_{ij} - m_i}}

Any m does, as long as nothing overflows or vanishes. Two are used:

- Where all scores are small enough, of either sign, m = 0 is safe: nothing is subtracted from each score. Often that is
  known beforehand: by the Cauchy-Schwarz inequality none is larger than :math:`\max_i |q_i| \max_j |k_j|`.
- Else m is the largest score seen so far; when it grows, what was summed with the smaller one is scaled down.

Scores are taken to base 2 (the scale gets the factor log2 e), since NumPy's exp2 takes half the time of its exp.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values; t and s in a tile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import e, log, log2, sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from attnlib._lengths import keys_in_reach
from attnlib._threads import share_out

Floats = NDArray[np.floating[Any]]

QUERIES, KEYS = 256, 512  # of a tile: 512 KiB of float32, which the second cache of a core holds
HARMLESS = 32.0  # weights between 2**-32 and 2**32 ...
USUAL = 2.0**60  # ... times values of at most this, and at least 1 / this, are far from the ends of float32
NOTHING = 2.0**-100  # less than the sum of any row that may attend to something
BEFORE = np.tri(QUERIES, k=-1, dtype=np.bool_)  # column < row
NOT_BEFORE = ~BEFORE


@dataclass(frozen=True)
class Rules:
    """How scores are formed, which keys a query may attend to, and the probability of dropping a weight."""

    scale: float
    softcap: float | None
    mask: NDArray[Any] | None  # (H, T, S) after broadcasting; bool (True = may attend), or added to the scores
    left: int | None  # key j is in reach of query i if i + offset - left <= j <= i + offset + right
    right: int | None
    offset: int
    dropout_p: float

    @property
    def kept(self) -> float:
        """The factor for a row's sum that makes the weights that are kept grow; 1 if none are kept."""
        return 1 - self.dropout_p or 1.0

    def drop(self, weights: Floats) -> None:
        """Overwrite random weights with 0."""
        if self.dropout_p:
            weights *= np.random.random_sample(weights.shape) >= self.dropout_p

    @property
    def factor(self) -> float:
        """What the keys, or the queries, are multiplied by before :meth:`scores`."""
        return self.scale * log2(e) if self.softcap is None else self.scale / self.softcap

    def scores(self, query: Floats, key: Floats, out: Floats) -> None:
        """Write the scores (..., t, s), times log2 e; the keys (..., D, s) come transposed, and ``factor`` in."""
        np.matmul(query, key, out=out)
        if self.softcap is not None:
            np.tanh(out, out=out)
            out *= self.softcap * log2(e)

    @property
    def adds(self) -> bool:
        """Whether the mask is added to the scores."""
        return self.mask is not None and self.mask.dtype != np.bool_

    def may_be_harmless(self, value: Floats) -> bool:
        """Tell whether small scores need no maximum subtracted: that also depends on the values they will weigh."""
        return not self.adds and (not value.size or 1 / USUAL <= max(value.max(), -value.min()) <= USUAL)

    def harmless(self, query: Floats, key: Floats) -> bool:
        """Tell whether every score is known to be small, without having seen it."""
        bound = _longest(query) * _longest(key) * abs(self.scale)
        return min(bound, self.softcap or bound) * log2(e) <= HARMLESS

    def keys_of(self, begin: int, end: int, first: int, last: int) -> tuple[int, int]:
        """Return the range of the keys ``first:last`` that at least one of the queries ``begin:end`` can reach."""
        return keys_in_reach(begin, end, first, last, self.left, self.right, self.offset)

    def queries_of(self, first: int, last: int, T: int) -> tuple[int, int]:
        """Return which of T queries can reach one of the keys ``first:last``."""
        begin = 0 if self.right is None else max(first - self.offset - self.right, 0)
        return begin, T if self.left is None else min(last - self.offset + self.left, T)

    def hide(self, tile: Floats, heads: Any, begin: int, first: int, by: float) -> None:
        """Overwrite what may not be attended to, in a tile of queries from ``begin`` on and their :meth:`keys_of`.

        A mask that is added is added, so that ``by`` has to be -inf, and the tile to hold scores.
        """
        t, s = tile.shape[-2:]
        if self.right is not None:  # row r reaches the columns c < r + n
            n = begin + self.offset + self.right + 1 - first
            if n < s:
                np.copyto(tile[..., max(n, 0) :], by, where=NOT_BEFORE[:t, max(-n, 0) : s - n])
        if self.left is not None:  # row r reaches the columns c >= r - n
            n = first - (begin + self.offset - self.left)
            if (columns := min(t - 1 - n, s)) > 0:
                np.copyto(tile[..., :columns], by, where=BEFORE[:t, n : n + columns])
        if self.mask is not None:
            self._apply_mask(tile, self.mask[heads][..., begin : begin + t, first : first + s], by)

    def _apply_mask(self, tile: Floats, mask: NDArray[Any], by: float) -> None:
        if not self.adds:
            keep(tile, mask, by)
            return
        with np.errstate(over="ignore"):
            added, least = mask * tile.dtype.type(log2(e)), np.finfo(tile.dtype).min
            if not added.min(initial=0.0) >= least:  # the maximum below takes ten times as long
                np.maximum(added, least, out=added, where=mask > -np.inf)  # what is finite remains so
            tile += added


def attend(query: Floats, key: Floats, value: Floats, rules: Rules, out: Floats, lse: Floats | None) -> None:
    """Fill the context ``out`` (H, T, D_v) and, if wanted, the logarithms of the rows' sums ``lse`` (H, T)."""
    heads, T, D_v = list(np.ndindex(out.shape[:-2])), out.shape[-2], out.shape[-1]

    def divided(cores: int) -> list[tuple[Any, ...]]:
        """Return pieces of work: the heads, cut into stretches of queries if there are fewer of them than cores."""
        stretch = -(-T // -(-cores // max(len(heads), 1)))
        return [(*head, slice(n, min(n + stretch, T))) for head in heads for n in range(0, T, stretch)]

    def work(pieces: Sequence[tuple[Any, ...]]) -> None:
        room = Room.of(key.shape[-1], D_v, out.dtype)
        for *head, rows in pieces:
            h = tuple(head)
            mask = None if rules.mask is None else rules.mask[h][rows]
            mine = replace(rules, mask=mask, offset=rules.offset + rows.start)
            _Head(query[h][rows], key[h], value[h], mine, out[h][rows], room).run(None if lse is None else lse[h][rows])

    if rules.dropout_p:  # one core draws the random numbers, always in the same order
        share_out(lambda all_pieces: work(all_pieces[0]), lambda cores: [divided(1)])
    else:
        share_out(work, divided)


class Room(NamedTuple):
    """Memory that is used over and over: it stays in the cache."""

    tile: Floats  # of scores, (t, s)
    keys: Floats  # of a tile, transposed, (D, s)
    part: Floats  # of the context, (t, D_v)

    @classmethod
    def of(cls, D: int, D_v: int, dtype: Any) -> Self:
        """Return room for a tile of the largest size."""
        return cls(np.empty(QUERIES * KEYS, dtype), np.empty((D, KEYS), dtype), np.empty((QUERIES, D_v), dtype))


class _Head:
    """One head: the sums over the keys seen so far, of the weights and of the values times the weights."""

    def __init__(self, query: Floats, key: Floats, value: Floats, rules: Rules, context: Floats, room: Room) -> None:
        self.query, self.key, self.value = query, key, value  # (T, D), (S, D), (S, D_v)
        self.rules, self.room = rules, room
        self.context = context  # (T, D_v)
        self.total = np.zeros(len(query), context.dtype)
        self.top = np.full((len(query), 1), -np.inf, context.dtype)
        self.plain = np.full(len(query), rules.may_be_harmless(value))  # no maximum was subtracted in this row so far
        self.harmless = bool(self.plain.all()) and rules.harmless(query, key)

    def run(self, lse: Floats | None) -> None:
        self.context[...] = 0
        for first in range(0, len(self.key), KEYS):
            self._take(first, min(first + KEYS, len(self.key)))
        divide(self.context, self.total[:, None] * self.rules.kept)
        if lse is not None:
            lse[...] = log_sum(self.total[:, None], self.top)

    def _take(self, first: int, last: int) -> None:
        """Let all queries that can reach one of the keys ``first:last`` see those."""
        keys = np.multiply(self.key[first:last].T, self.rules.factor, out=self.room.keys[:, : last - first])
        ones = np.ones(last - first, keys.dtype)
        start, stop = self.rules.queries_of(first, last, len(self.query))
        for begin in range(start, stop, QUERIES):
            rows = slice(begin, min(begin + QUERIES, stop))
            a, b = self.rules.keys_of(begin, rows.stop, first, last)
            t = rows.stop - begin
            tile = self.room.tile[: t * (b - a)].reshape(t, b - a)
            self.rules.scores(self.query[rows], keys[:, a - first : b - first], tile)
            self._weigh(tile, rows, a)
            self.total[rows] += tile @ ones[: b - a]  # a third of the time that sum() takes
            self.rules.drop(tile)
            self.context[rows] += np.matmul(tile, self.value[a:b], out=self.room.part[:t])

    def _weigh(self, tile: Floats, rows: slice, first: int) -> None:
        """Turn scores into weights, relative to the largest score so far; scale the sums down if that grows."""
        if self.harmless or (self.plain[rows].all() and _all_small(tile)):
            np.exp2(tile, out=tile)
            self.rules.hide(tile, (), rows.start, first, by=0)
            self.top[rows] = 0
            return
        self.plain[rows] = False
        self.rules.hide(tile, (), rows.start, first, by=-np.inf)
        self.top[rows][self.total[rows] == 0] = -np.inf  # nothing was seen yet: 0 was no maximum
        top = np.maximum(self.top[rows], tile.max(axis=-1, keepdims=True))
        shrink = exp2(self.top[rows].copy(), top)
        self.total[rows] *= shrink[:, 0]
        self.context[rows] *= shrink
        self.top[rows] = top
        exp2(tile, top)


def attend_at_once(
    query: Floats,
    key: Floats,
    value: Floats,
    rules: Rules,
    out: Floats,
    lse: Floats | None,
    weights: Floats | None,
) -> None:
    """As :func:`attend`, with a few rows of all keys at a time; fill ``weights`` (H, T, S), zeros so far, if wanted."""
    T, S = out.shape[-2], key.shape[-2]
    harmless = rules.may_be_harmless(value)
    for heads in _groups(out.shape[:-2], min(T, QUERIES) * S):
        for begin in range(0, T, QUERIES):
            rows = (*heads, slice(begin, begin + QUERIES))
            a, b = rules.keys_of(begin, min(begin + QUERIES, T), 0, S)
            q, k, v = query[rows], key[(*heads, slice(a, b))], value[(*heads, slice(a, b))]
            tile = np.empty((*q.shape[:-1], b - a), q.dtype) if weights is None else weights[rows][..., a:b]
            rules.scores(q * rules.factor, k.swapaxes(-1, -2), tile)
            top = _weigh(tile, rules, harmless, heads, begin, a)
            total = (tile @ np.ones(b - a, tile.dtype))[..., None]
            if lse is not None:
                lse[rows] = log_sum(total, top)
            if weights is not None:
                divide(tile, total * rules.kept)
            rules.drop(tile)
            np.matmul(tile, v, out=out[rows])
            if weights is None:
                divide(out[rows], total * rules.kept)


def _weigh(tile: Floats, rules: Rules, harmless: bool, heads: Any, begin: int, first: int) -> Floats | float:
    """Turn scores into weights, relative to the largest of each row; return that, or 0 if nothing was subtracted."""
    if harmless and _all_small(tile):
        np.exp2(tile, out=tile)
        rules.hide(tile, heads, begin, first, by=0)
        return 0.0
    rules.hide(tile, heads, begin, first, by=-np.inf)
    top: Floats = tile.max(axis=-1, keepdims=True, initial=-np.inf)
    exp2(tile, top)
    return top


def _groups(heads: tuple[int, ...], size: int) -> Iterator[tuple[Any, ...]]:
    """Index the heads: as many neighbours at a time as have room for ``size`` scores each in one tile."""
    together = max(QUERIES * KEYS // max(size, 1), 1)
    for outer in np.ndindex(heads[:-1]):
        for n in range(0, heads[-1], together):
            yield (*outer, slice(n, n + together))


def keep(x: Floats, mask: NDArray[np.bool_], by: float) -> None:
    """Overwrite x with 0 or -inf where the mask is False. If it is 0, x must be finite.

    ``np.copyto(x, by, where=~mask)`` takes ten times as long, because the processor cannot predict the branches that a
    mask causes.
    """
    if by == 0:
        x *= mask
        return
    integers: Any = np.int32 if x.dtype.itemsize == 4 else np.int64
    bits, kept = x.view(integers), mask.astype(integers)
    np.negative(kept, out=kept)  # all bits, or none
    bits &= kept
    np.invert(kept, out=kept)
    kept &= np.array(by, x.dtype).view(integers)
    bits |= kept


def exp2(x: Floats, top: Floats) -> Floats:
    """Overwrite x by 2 to the power x - top, where no x is above top: by 0 where that is next to nothing, or x is -inf.

    Subnormal numbers take a hundred times as long, so what is near them is first raised to the power ``least`` and then
    taken away from all: no other weight notices, but those that are as good as 0 themselves.
    """
    least = float(np.finfo(x.dtype).minexp + 6)  # -120 for float32
    with np.errstate(over="ignore", invalid="ignore"):  # to -inf; inf minus inf to nan
        x -= np.where(np.isneginf(top), 0, top)  # -inf minus -inf would be nan
    np.maximum(x, least, out=x)
    np.exp2(x, out=x)
    x -= x.dtype.type(2) ** least
    return x


def divide(x: Floats, total: Floats) -> None:
    """Divide x by the rows' sums; rows of nothing stay 0."""
    x /= np.maximum(total, NOTHING)


def log_sum(total: Floats, top: Floats | float) -> Floats:
    """Return the natural logarithm of the sum of the exponentials of a row's scores: -inf if there are none."""
    with np.errstate(divide="ignore"):
        lse: Floats = np.log(total[..., 0])
    return lse if isinstance(top, float) else lse + top[..., 0] * log(2)


def _all_small(tile: Floats) -> bool:
    """Tell whether all scores are so small that no maximum has to be subtracted; a maximum of each row takes longer."""
    return bool(tile.max(initial=0.0) <= HARMLESS and tile.min(initial=0.0) >= -HARMLESS)


def _longest(x: Floats) -> float:
    """Return the length of the longest vector in ``x`` (..., D); inf or nan if it cannot be told."""
    with np.errstate(over="ignore", invalid="ignore"):
        return sqrt(np.vecdot(x, x).max(initial=0.0))
