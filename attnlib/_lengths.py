"""Whole numbers that say where a sequence begins and how much of it is real.

Dimensions: B batch, T queries, S keys.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from attnlib._arrays import (
    Array,
    check_int,
    describe_type,
    is_array,
    is_jax_dimension,
    is_torch,
    namespace,
    namespace_and_device,
    refuse_subclass,
    same_library,
)

Lengths = Sequence[int] | Array
FEW_KEYS = 16  # with fewer, torch's CPU kernel needs a mask to return nan where it should: see attnlib._torch_fused


def check_lengths(lengths: Lengths, most: int, letter: str, like: Array | None = None) -> Array:
    """Return lengths as integers, after checking that they are whole numbers from 0 to ``most``, called ``letter``.

    The result has the library and the device of ``like``; None means those of ``lengths``, or NumPy for a list.
    Values of arrays other than NumPy's are not checked, because reading them would wait for the device.
    """
    if is_array(lengths) and not isinstance(lengths, np.ndarray):
        return _unread(lengths, like)
    values: Array = lengths
    if isinstance(lengths, (list, tuple, range)):
        values = [_item(b, length) for b, length in enumerate(lengths)]
        places = [(b,) for b in range(len(values))]
        came: tuple[int, ...] = (len(values),)
    elif isinstance(lengths, np.ndarray):
        refuse_subclass("lengths", lengths)
        _check_integers(lengths)
        values, places, came = lengths.ravel().tolist(), [*np.ndindex(lengths.shape)], lengths.shape
    else:
        raise TypeError(f"lengths is {lengths!r}, but a list, tuple, range or array of integers is needed")
    for place, n in zip(places, values, strict=True):
        if not 0 <= n <= most:
            name = f"lengths{[*place] or ''}"
            raise ValueError(f"{name} is {n}, but {letter}={most} positions allow lengths from 0 to {most}")
    xp, device = namespace_and_device(like)
    return xp.reshape(xp.asarray(values, dtype=_integers(xp), device=device), came)


def check_offset(q_offset: Any, like: Array | None) -> Any:
    """Return an offset as Python's int, after checking that positions moved by it do not wrap around.

    A zero-dimensional tensor, such as the length of a :class:`attnlib.static_cache.StaticCache`, is returned unchanged:
    reading its value would wait for the device.
    """
    if (
        is_torch(q_offset)
        and q_offset.ndim == 0
        and namespace_and_device(q_offset)[0].isdtype(q_offset.dtype, "integral")
    ):
        if not is_torch(like):
            raise TypeError("q_offset is a torch.Tensor, but like is not: pass a tensor on the same device as like")
        return q_offset
    q_offset = check_int("q_offset", q_offset)
    bits = bits_of_positions(like)
    if isinstance(q_offset, int) and abs(q_offset) > 2 ** (bits - 2):  # what torch keeps symbolic comes from a size
        wanted = f"from -2**{bits - 2} to 2**{bits - 2} is needed"
        raise ValueError(f"q_offset is {q_offset}, but {wanted}: positions have {bits} bits")
    return q_offset


def bits_of_positions(like: Array | None) -> int:
    """Return how many bits a position has: 64, but 32 in JAX unless 64 bits are enabled.

    A position and an offset of at most ``2 ** (bits - 2)`` add up to no more than these bits hold.
    """
    if like is None or isinstance(like, np.ndarray) or is_torch(like):
        return 64
    xp, _ = namespace_and_device(like)
    return int(xp.iinfo(_integers(xp)).bits)


def _item(b: int, length: int) -> int:
    if isinstance(length, np.ndarray) and length.ndim == 0:
        length = length[()]  # the number in an array of no dimensions
    return check_int(f"lengths[{b}]", length)


def _unread(lengths: Array, like: Array | None) -> Array:
    """Return the lengths without reading their values, which may be on a device that would have to be waited for."""
    if not (like is None or same_library(lengths, like)):
        raise TypeError(f"lengths is {describe_type(lengths)} but x is {describe_type(like)}: convert one of them")
    _check_integers(lengths)
    xp = namespace(lengths)
    if is_torch(lengths):
        return lengths.to(lengths.device if like is None else like.device, xp.int64)
    return xp.astype(lengths, _integers(xp))


def _integers(xp: ModuleType) -> Any:
    """Return the dtype of positions: int64, but int32 in JAX unless 64 bits are enabled."""
    if xp is np:
        return np.int64  # NumPy 2.0 has no __array_namespace_info__
    return xp.__array_namespace_info__().default_dtypes()["indexing"]


def _check_integers(lengths: Array) -> None:
    if not namespace_and_device(lengths)[0].isdtype(lengths.dtype, "integral"):
        raise TypeError(f"lengths has dtype {lengths.dtype}, but integers are needed: how many positions are real")


def binding_sides(
    left: int | None, right: int | None, offset: int, T: int, S: int, holds: Callable[[bool], bool] = bool
) -> tuple[int | None, int | None]:
    """Return the sides of a window that keep any of T queries from any of S keys, and None for the others.

    ``holds`` tells whether a comparison is known to be true. If it is not, the side is kept. Sizes that jax.export
    keeps symbolic are not compared, because an undecided comparison raises an error there.
    """
    if is_jax_dimension(T) or is_jax_dimension(S) or is_jax_dimension(offset):
        return left, right
    if left is not None and holds(T - 1 + offset - left <= 0):  # even the last query sees the first key
        left = None
    if right is not None and holds(offset + right >= S - 1):  # even the first query sees the last key
        right = None
    return left, right


def keys_in_reach(
    begin: int, end: int, first: int, last: int, left: int | None, right: int | None, offset: int
) -> tuple[int, int]:
    """Return the range of the keys ``first:last`` that at least one of the queries ``begin:end`` can reach."""
    a = first if left is None else min(max(begin + offset - left, first), last)
    b = last if right is None else max(min(end + offset + right, last), a)
    return a, b
