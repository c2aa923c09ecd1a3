"""Smaller cases than a given one: fewer batches, shorter sequences, smaller widths, and then rounder numbers.

A :class:`Domain` says which of them the exercise could have asked: each array has a number of dimensions that it has in
a case of the exercise, no size is below the smallest one there, and no row is hidden or 0 throughout unless one is so
there. Whether the sizes fit together, the reference says.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.calling.case import Case

Path = tuple[str, ...]  # where an argument is: ("inputs", "params", "w_ih")
Move = Callable[[Case], Iterator[Case]]  # yields a few cases, each with something smaller or rounder, the best first
PARTS = ("inputs", "options", "setup")


class Domain:
    """The numbers of dimensions, and the sizes of each dimension, that the cases of an exercise have."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._combinations = set()
        self._dimensions: dict[Path, set[int]] = defaultdict(set)
        self._sizes: dict[object, set[int]] = defaultdict(set)
        self._uniform: dict[Path, set[float]] = defaultdict(set)
        for case in cases:
            self._combinations.add(_dimensions(case))
            for path, x in _arrays(case):
                self._dimensions[path].add(x.ndim)
                self._uniform[path] |= _uniform(x)
            for place, size in _sizes(case):
                self._sizes[place].add(size)

    def has(self, case: Case) -> bool:
        """Tell whether the exercise could have asked the case: no size is odd where all others are even, either."""
        return (
            _dimensions(case) in self._combinations
            and all(_uniform(x) <= self._uniform[path] for path, x in _arrays(case))
            and all(
                size >= min(self._sizes[place]) and (size % 2 == 0 or any(n % 2 for n in self._sizes[place]))
                for place, size in _sizes(case)
            )
        )

    def may_lose_a_dimension(self, path: Path, x: NDArray[Any]) -> bool:
        """Tell whether an array has one dimension fewer in another case."""
        return x.ndim - 1 in self._dimensions[path]


def smaller(case: Case, domain: Domain) -> Iterator[Move]:
    """Yield the ways to make a case smaller: without a dimension of batches, and with smaller sizes and numbers."""
    sizes = sorted({n for _, x in _arrays(case) for n in x.shape}, reverse=True)
    yield from (partial(_without_dimension, size=n, domain=domain) for n in sizes)
    yield from (partial(_shorter, size=n) for n in sizes)
    numbers = [path for path, x in _leaves(case) if type(x) is int and path[0] != "options"]
    yield from (partial(_smaller_number, path=path) for path in numbers)


def rounder(case: Case, unrounded: Sequence[str]) -> Iterator[Move]:
    """Yield the ways to round the numbers of a case: all at once, and then those of one array after another."""
    floats = [path for path, x in _arrays(case) if x.dtype.kind == "f" and path[1] not in unrounded]
    yield from (partial(_rounder, paths=paths) for paths in (floats, *([path] for path in floats)))


def count_numbers(case: Case) -> int:
    """Return how many numbers the arrays of a case hold."""
    return sum(x.size for _, x in _arrays(case))


def is_same(case: Case, other: Case) -> bool:
    """Tell whether two cases that one was made from the other have equal arguments."""
    pairs = zip(_leaves(case), _leaves(other), strict=True)
    return all(x is y or (np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y) for (_, x), (_, y) in pairs)


def with_gradients(case: Case, shapes: Mapping[str, tuple[int, ...]]) -> Case:
    """Return the case with the part of each upstream gradient that belongs to an output of that shape."""
    upstream = {}
    for name, shape in shapes.items():
        x = (case.upstream or {})[name]
        x = x[(0,) * (x.ndim - len(shape))]
        upstream[name] = x[tuple(map(slice, shape))].round(1)
    return replace(case, upstream=upstream)


def _without_dimension(case: Case, size: int, domain: Domain) -> Iterator[Case]:
    """Take the first element, or the last, of all arrays whose first dimension has that size and may be missing."""
    leading = [(path, x) for path, x in _arrays(case) if x.ndim and x.shape[0] == size]
    paths = [path for path, x in leading if domain.may_lose_a_dimension(path, x)]
    if paths:
        yield from (_changed(case, paths, itemgetter(i)) for i in (0, -1))


def _shorter(case: Case, size: int) -> Iterator[Case]:
    """Shorten all dimensions of that size, at the end or at the start, and the whole numbers that are equal to it."""
    paths = [path for path, x in _arrays(case) if size in x.shape]
    numbers = [path for path, x in _leaves(case) if type(x) is int and x == size and path[0] != "options"]
    for to in _below(size):
        for part in (slice(to), slice(size - to, None)):
            one = _changed(case, paths, partial(_part, size=size, part=part))
            yield one
            if numbers:
                yield _changed(one, numbers, partial(_number, to=to))


def _smaller_number(case: Case, path: Path) -> Iterator[Case]:
    (number,) = (x for place, x in _leaves(case) if place == path)
    yield from (_changed(case, [path], partial(_number, to=to)) for to in _below(number))


def _part(x: NDArray[Any], size: int, part: slice) -> NDArray[Any]:
    """Return a part of an array, along each dimension of that size."""
    return x[tuple(part if n == size else slice(None) for n in x.shape)]


def _number(_: int, to: int) -> int:
    return to


def _rounder(case: Case, paths: Sequence[Path]) -> Iterator[Case]:
    yield from (_changed(case, paths, partial(_rounded, decimals=decimals)) for decimals in (0, 1))


def _rounded(x: NDArray[Any], decimals: int) -> NDArray[Any]:
    """Round an array so that no number becomes 0 or changes its sign."""
    rounded = x.round(decimals)
    lost = (rounded == 0) & (x != 0)
    return np.where(lost, np.sign(x) * 10.0**-decimals, rounded).astype(x.dtype)


def _below(n: int) -> list[int]:
    """Return smaller numbers to try, the smallest first."""
    return sorted({k for k in (1, 2, 3, 4, n // 2, n - 1) if 0 < k < n})


def _dimensions(case: Case) -> tuple[tuple[Path, int | None], ...]:
    return tuple((path, x.ndim if isinstance(x, np.ndarray) else None) for path, x in _leaves(case))


def _uniform(x: NDArray[Any]) -> set[float]:
    """Return what some row of an array consists of throughout, if that is special: -inf, 0, or False."""
    return {special for special in (-np.inf, 0.0) if x.ndim and (x == special).all(axis=-1).any()}


def _sizes(case: Case) -> Iterator[tuple[object, int]]:
    """Yield the sizes of a case and its whole numbers, each with its place; dimensions are counted from the end."""
    for path, x in _leaves(case):
        if isinstance(x, np.ndarray):
            yield from (((path, axis), n) for axis, n in enumerate(x.shape[::-1]))
        elif type(x) is int and path[0] != "options":
            yield path, x


def _arrays(case: Case) -> Iterator[tuple[Path, NDArray[Any]]]:
    return ((path, x) for path, x in _leaves(case) if isinstance(x, np.ndarray))


def _leaves(case: Case) -> Iterator[tuple[Path, Any]]:
    for part in PARTS:
        yield from _leaves_of((part,), getattr(case, part))


def _leaves_of(path: Path, x: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(x, Mapping):
        for name, value in x.items():
            yield from _leaves_of((*path, name), value)
    else:
        yield path, x


def _changed(case: Case, paths: Sequence[Path], change: Callable[[Any], Any]) -> Case:
    """Return the case with some of its arguments changed."""
    return replace(case, **{part: _changed_in((part,), getattr(case, part), paths, change) for part in PARTS})


def _changed_in(path: Path, x: Any, paths: Sequence[Path], change: Callable[[Any], Any]) -> Any:
    if isinstance(x, Mapping):
        return {name: _changed_in((*path, name), value, paths, change) for name, value in x.items()}
    return change(x) if path in paths else x
