"""Masks: which query may attend to which key.

A mask here is boolean and True where the query **may attend**. It broadcasts to the scores ``(..., T, S)``.
One number, ``q_offset``, aligns queries with keys: query i is at position ``i + q_offset`` of the keys. With 0, the
first query is aligned with the first key (top left); with the length of a cache, the queries continue where the cache
ends; with ``S - T``, the last query is aligned with the last key (bottom right).

Dimensions: B batch, T queries, S keys.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import overload

import numpy as np

from attnlib._arrays import (
    Array,
    array_namespace,
    broadcast_shape,
    check_int,
    describe_type,
    is_array,
    namespace_and_device,
    refuse_subclass,
    require_same_device,
    same_library,
    shape,
)
from attnlib._lengths import bits_of_positions, check_lengths, check_offset
from attnlib._types import ArrayT


def causal_mask(T: int, S: int | None = None, *, q_offset: int = 0, like: ArrayT | None = None) -> ArrayT:
    r"""Let every query attend to its own position and to those before it.

    .. math:: m_{ij} = [\, j \le i + o \,], \qquad o = \text{q\_offset}

    Args:
        T: number of queries.
        S: number of keys; None means T.
        q_offset: position of the first query among the keys, positive or negative: a whole number or, in torch, a
            zero-dimensional tensor.
        like: an array whose library and device the result has, of any shape and dtype; None means NumPy.

    Returns:
        Boolean mask ``(T, S)``, True where query i may attend to key j. With a negative ``q_offset`` the first
        queries may attend to nothing.

    Raises:
        TypeError: ``T``, ``S`` or ``q_offset`` is not a whole number, or ``like`` is not an array.
        ValueError: ``T`` or ``S`` is negative, or ``q_offset`` is beyond 2**62 in size.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.3.

    Example:
        >>> causal_mask(2, 3)
        array([[ True, False, False],
               [ True,  True, False]])
        >>> causal_mask(2, 3, q_offset=1)
        array([[ True,  True, False],
               [ True,  True,  True]])
    """
    i, j = _positions(T, T if S is None else S, q_offset, like)
    return j <= i


def window_mask(
    T: int,
    S: int,
    left: int | None,
    right: int | None = 0,
    *,
    num_sink_tokens: int = 0,
    q_offset: int = 0,
    like: ArrayT | None = None,
) -> ArrayT:
    r"""Let every query attend to its own position, to ``left`` positions before it and to ``right`` after it.

    .. math:: m_{ij} = [\, (j \ge i + o - l \;\vee\; j < n) \,\wedge\, j \le i + o + r \,],
              \qquad o = \text{q\_offset}

    Args:
        T: number of queries.
        S: number of keys.
        left: l, how many positions before its own a query sees; None, or more than 2**62 (2**30 in JAX without 64
            bits), means all of them.
        right: r, how many positions after its own a query sees; None, or more than 2**62, means all of them.
        num_sink_tokens: n, the number of keys at the beginning that a query sees even if they lie further back than
            ``left``: attention sinks.
        q_offset: position of the first query among the keys, positive or negative: a whole number or, in torch, a
            zero-dimensional tensor.
        like: an array whose library and device the result has, of any shape and dtype; None means NumPy.

    Returns:
        Boolean mask ``(T, S)``, True where query i may attend to key j.

    Raises:
        TypeError: a number is not whole, or ``like`` is not an array.
        ValueError: ``T``, ``S``, ``left``, ``right`` or ``num_sink_tokens`` is negative, or ``q_offset`` is beyond
            2**62 in size.

    Source:
        Beltagy, Peters and Cohan (2020), "Longformer: The Long-Document Transformer", section 3.1. Sinks: Xiao et al.
        (2023), "Efficient Streaming Language Models with Attention Sinks", section 3.2.

    Example:
        >>> window_mask(4, 4, 1).astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [0, 1, 1, 0],
               [0, 0, 1, 1]])
        >>> window_mask(4, 4, 1, num_sink_tokens=1).astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [1, 1, 1, 0],
               [1, 0, 1, 1]])
    """
    i, j = _positions(T, S, q_offset, like)
    return within_window(i, j, left, right, num_sink_tokens)


def within_window(i: Array, j: Array, left: int | None, right: int | None, num_sink_tokens: int) -> Array:
    """Return :func:`window_mask` for queries at the positions i ``(T, 1)`` and keys at the positions j ``(1, S)``."""
    xp, device = namespace_and_device(j)
    sinks = check_int("num_sink_tokens", num_sink_tokens, 0)
    mask = xp.ones((i.shape[0], j.shape[1]), dtype=xp.bool, device=device)
    if left is not None and _bounds(left := check_int("left", left, 0), j):
        near = i - left <= j
        mask = mask & ((near | (j < sinks)) if sinks else near)
    if right is not None and _bounds(right := check_int("right", right, 0), j):
        mask = mask & (j - right <= i)
    return mask


def padding_mask(lengths: Sequence[int] | ArrayT, S: int) -> ArrayT:
    r"""Keep all queries from attending to the padding after the end of a sequence.

    .. math:: m_{bj} = [\, j < \mathrm{length}_b \,]

    Args:
        lengths: ``(B,)``, how many keys of each sequence are real (they come first): a list, tuple or range of whole
            numbers, or an array of an integer dtype.
        S: number of keys, padding included.

    Returns:
        Boolean mask ``(B, 1, 1, S)``, which broadcasts to scores ``(B, H, T, S)``, True at the real keys; in the
        library and on the device of ``lengths``, NumPy for a list, tuple or range.

    Raises:
        TypeError: a length or ``S`` is not a whole number.
        ValueError: ``lengths`` is not one-dimensional, ``S`` is negative, or a length is not in 0..S. Values of
            arrays other than NumPy's are not checked, because reading them would wait for the device: a length above S
            then means S, and one below 0 means 0.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.3, applied to padding.

    Example:
        >>> padding_mask([2, 3], 3)[:, 0, 0, :]
        array([[ True,  True, False],
               [ True,  True,  True]])
    """
    S = check_int("S", S, 0)
    checked = check_lengths(lengths, S, "S")
    if checked.ndim != 1:
        raise ValueError(f"lengths has shape {shape(checked)}, but (B,) is needed: one length for each sequence")
    xp, device = namespace_and_device(checked)
    return xp.arange(S, device=device) < checked[:, None, None, None]  # (S,) with (B, 1, 1, 1)


@overload
def combine_masks(first: ArrayT, /, *masks: ArrayT | None) -> ArrayT: ...
@overload
def combine_masks(*masks: ArrayT | None) -> ArrayT | None: ...
def combine_masks(*masks: ArrayT | None) -> ArrayT | None:
    r"""Let a query attend only where every mask lets it.

    .. math:: m = m_1 \wedge m_2 \wedge \dots \quad \text{(boolean)}, \qquad
              m = m_1 + m_2 + \dots \quad \text{(floating point, added to the scores)}

    A boolean mask among floating point ones puts exactly -inf where it is False, and changes nothing elsewhere.

    Args:
        masks: arrays whose shapes broadcast together, usually ``(..., T, S)``, boolean or of one floating point
            dtype. None stands for "no mask" and is skipped.

    Returns:
        A new mask of the shape to which the masks broadcast, ``(..., T, S)``: boolean if all masks are, else of
        their floating point dtype. None if there is no mask: nothing is forbidden.

    Raises:
        TypeError: a mask is not an array, contains integers, or differs from another in library or floating point
            dtype.
        ValueError: the shapes do not broadcast together.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.3: a forbidden score is set to -inf.

    Example:
        >>> combine_masks(causal_mask(2), None, window_mask(2, 2, 0, None)).astype(int)
        array([[1, 0],
               [0, 1]])
        >>> combine_masks(causal_mask(2), np.array([0.5, 0.25]))
        array([[0.5 , -inf],
               [0.5 , 0.25]])
    """
    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    xp, device = _check_masks(present)
    # The neutral element of "and", so that the result is always a new array.
    true = xp.ones((), dtype=xp.bool, device=device)
    return reduce(lambda one, other: _both(one, other, xp), present, true)


def _positions(T: int, S: int, q_offset: int, like: Array | None) -> tuple[Array, Array]:
    """Return the positions of the queries among the keys, (T, 1), and those of the keys, (1, S)."""
    T, S, q_offset = check_int("T", T, 0), check_int("S", S, 0), check_offset(q_offset, like)
    xp, device = namespace_and_device(like)
    return xp.arange(T, device=device)[:, None] + q_offset, xp.arange(S, device=device)[None, :]


def _bounds(side: int, like: Array) -> bool:
    """Tell whether a window's side excludes anything: the largest integers, which some pass for "all", do not."""
    return not isinstance(side, int) or side <= 2 ** (bits_of_positions(like) - 2)


def _check_masks(masks: list[Array]) -> tuple[Array, Array]:
    """Check that masks share a library, a floating point dtype if they have one, and broadcast."""
    for mask in masks:
        if not (is_array(mask) and same_library(mask, masks[0])):
            raise TypeError(f"masks must all be arrays from one library, got {', '.join(map(describe_type, masks))}")
    for n, mask in enumerate(masks):
        refuse_subclass(f"masks[{n}]", mask)
        require_same_device("masks[0]", masks[0], f"masks[{n}]", mask)
    xp, device = namespace_and_device(masks[0])
    floating = {f"masks[{n}]": mask for n, mask in enumerate(masks) if mask.dtype != xp.bool}
    for name, mask in floating.items():
        if not xp.isdtype(mask.dtype, "real floating"):
            raise TypeError(
                f"{name} has dtype {mask.dtype}, but bool (True where the query may attend) or floating point "
                "(added to the scores) is needed"
            )
    if floating:
        array_namespace(**floating)
    try:
        broadcast_shape(*(tuple(mask.shape) for mask in masks))
    except ValueError:
        raise ValueError(f"masks do not broadcast together: {', '.join(map(shape, masks))}") from None
    return xp, device


def _both(one: Array, other: Array, xp: Array) -> Array:
    if one.dtype == xp.bool and other.dtype == xp.bool:
        return one & other
    if one.dtype == xp.bool:
        return xp.where(one, other, -math.inf)
    if other.dtype == xp.bool:
        return xp.where(other, one, -math.inf)  # not a sum, which is nan where the float mask is inf or nan
    return _sum(one, other)


def _sum(one: Array, other: Array) -> Array:
    if not isinstance(one, np.ndarray):
        return one + other
    with np.errstate(over="ignore"):  # the sum of two lowest finite numbers overflows to -inf, which both mean
        return one + other
