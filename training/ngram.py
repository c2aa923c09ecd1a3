"""A byte-level n-gram model with Kneser-Ney smoothing: the strongest of the simple models to compare with.

Each probability interpolates the orders 1 to n. A count is lowered by a discount, and the mass that this frees goes to
the next lower order; below order 1, all 256 bytes are equally probable. A lower order does not count how often a
string occurred, but after how many different bytes.

Dimensions: N bytes of the text that is predicted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that all 64 bits take part


@dataclass(frozen=True)
class _Table:
    """Numbers by hash, with 0 for any other hash."""

    keys: Hashes
    values: Floats

    @classmethod
    def of_sums(cls, keys: Hashes, values: Floats) -> "_Table":
        """Add up the values of equal keys."""
        different, index = np.unique(keys, return_inverse=True)
        return cls(different, _sums(index, values))

    def __getitem__(self, keys: Hashes) -> Floats:
        index = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[index] == keys, self.values[index], 0.0)


@dataclass(frozen=True)
class _Order:
    """What is known of the strings of n bytes: ``count`` by string, ``total`` and freed ``mass`` by context."""

    count: _Table
    total: _Table
    mass: _Table
    discounts: Floats


class NGramModel:
    r"""Predict each byte of a text from the n - 1 bytes before it.

    .. math:: p_n(w \mid c) = \frac{\operatorname{count}(cw) - D(cw)
              + p_{n-1}(w \mid c') \sum_v D(cv)}{\sum_v \operatorname{count}(cv)}

    where c' is c without its first byte, and the discount D(cw) is 0 for a count of 0 and one of three numbers for a
    count of 1, of 2, and of 3 or more.

    Args:
        known: the text to learn from.
        order: the largest n.

    Source:
        Chen and Goodman (1999), "An Empirical Study of Smoothing Techniques for Language Modeling", section 3.
    """

    def __init__(self, known: bytes, order: int = 12) -> None:
        hashes = _hashes(known, order)
        counted = np.ones(len(known))
        self.orders = list[_Order]()
        for n in reversed(range(order)):
            learned, counted = _learn(hashes[n], _contexts(hashes, n), counted)
            self.orders.insert(0, learned)

    def probabilities(self, text: bytes, *, adaptive: bool = False) -> Floats:
        """Return the probability ``(N,)`` of each byte, given the bytes before it.

        Args:
            text: what to predict.
            adaptive: whether the model goes on learning from each byte that it has predicted.
        """
        hashes = _hashes(text, len(self.orders))
        p = np.full(len(text), 1 / 256)
        for n in range(len(self.orders)):
            counted = np.zeros(len(text)) if not adaptive else self._counted(hashes, n)
            p = _interpolate(self.orders[n], hashes[n], _contexts(hashes, n), counted, p)
        return p

    def _counted(self, hashes: list[Hashes], n: int) -> Floats:
        """Return 1 where a byte adds to the count of its string, and 0 elsewhere."""
        if n == len(self.orders) - 1:
            return np.ones(len(hashes[n]))
        longer = hashes[n + 1]
        is_first = _sum_before(longer, np.ones(len(longer))) == 0
        return np.where(is_first & (self.orders[n + 1].count[longer] == 0), 1.0, 0.0)


def _hashes(text: bytes, order: int) -> list[Hashes]:
    """Return, for each n, the hash of the n bytes that end at each position (or of fewer, where the text begins)."""
    x = np.frombuffer(text, np.uint8).astype(np.uint64) + np.uint64(1)
    found = [x]
    while len(found) < order:
        found.append(_shifted(found[-1]) * FACTOR + x)
    return found


def _contexts(hashes: list[Hashes], n: int) -> Hashes:
    """Return the hash of the n bytes before each position."""
    return _shifted(hashes[n - 1]) if n else np.zeros_like(hashes[0])


def _shifted(x: Hashes) -> Hashes:
    return np.concatenate([np.zeros(1, np.uint64), x])[: len(x)]


def _learn(strings: Hashes, contexts: Hashes, counted: Floats) -> tuple[_Order, Floats]:
    """Return what is known of one order, and 1 where a byte adds to a count of the order below, and 0 elsewhere."""
    different, first, index = np.unique(strings, return_index=True, return_inverse=True)
    count = _sums(index, counted)
    discounts = _discounts(count)
    mass = _Table.of_sums(contexts[first], _discount(discounts, count))
    is_first = np.zeros(len(strings))
    is_first[first] = 1
    return _Order(_Table(different, count), _Table.of_sums(contexts[first], count), mass, discounts), is_first


def _sums(index: NDArray[np.int64], values: Floats) -> Floats:
    """Return the sum of the values that have the index 0, 1, ..."""
    return np.bincount(index, values).astype(float)


def _discounts(counts: Floats) -> Floats:
    """Return the discounts of the counts 0, 1, 2 and 3 or more, from how many strings have the counts 1 to 4."""
    once, twice, thrice, four = (max(1, int((counts == k).sum())) for k in (1, 2, 3, 4))
    y = once / (once + 2 * twice)
    found = [1 - 2 * y * twice / once, 2 - 3 * y * thrice / twice, 3 - 4 * y * four / thrice]
    return np.array([0.0, *(min(max(d, 0.1), k) for k, d in enumerate(found, 1))])


def _discount(discounts: Floats, counts: Floats) -> Floats:
    found: Floats = discounts[np.minimum(counts, 3).astype(int)]
    return found


def _interpolate(order: _Order, strings: Hashes, contexts: Hashes, counted: Floats, lower: Floats) -> Floats:
    """Return the probabilities ``(N,)`` of one order from those of the order below."""
    count = order.count[strings] + _sum_before(strings, counted)
    discount = _discount(order.discounts, count)
    change = _discount(order.discounts, count + counted) - discount
    total = order.total[contexts] + _sum_before(contexts, counted)
    mass = order.mass[contexts] + _sum_before(contexts, change)
    return np.where(total > 0, (count - discount + mass * lower) / np.maximum(total, 1), lower)


def _sum_before(keys: Hashes, values: Floats) -> Floats:
    """Return, for each position, the sum of the values at earlier positions with the same key."""
    if not values.any():
        return np.zeros(len(keys))
    order = np.argsort(keys, kind="stable")
    before = np.cumsum(values[order]) - values[order]
    begins = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    before -= np.repeat(before[begins], np.diff(begins, append=len(keys)))
    found = np.empty(len(keys))
    found[order] = before
    return found
