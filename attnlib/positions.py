r"""Positions: attention treats vectors as a set, so their places in the sequence have to be encoded.

There are four ways: add sines to the vectors (sinusoidal), rotate queries and keys (RoPE), lower the scores with
distance (ALiBi), or look up a learned number by distance (T5's buckets).

Everything that depends on positions alone is computed in float64 and rounded once, to the dtype of the result: in
float32, an angle of 10000 radians is already wrong by 0.0005.

Dimensions: T queries, S keys, D width, H heads. Query i is at position ``i + q_offset``, key j at position j.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, SupportsFloat

import numpy as np

from attnlib._arrays import (
    Array,
    array_namespace,
    at_least_float32,
    broadcasts_to,
    check_float,
    check_int,
    describe_type,
    device_of,
    is_array,
    namespace_and_device,
    plainly_agree,
    refuse_subclass,
    require_same_device,
    require_sequence,
    same_library,
    shape,
    widest_float,
)
from attnlib._lengths import check_offset
from attnlib._types import ArrayT


def sinusoidal_positions(
    T: int, D: int, *, base: float = 10000.0, interleaved: bool = True, like: ArrayT | None = None
) -> ArrayT:
    r"""Encode each position by the sines and cosines of D/2 frequencies, like the hands of D/2 clocks.

    .. math:: p_{t,2k} = \sin(t\,\omega_k), \qquad p_{t,2k+1} = \cos(t\,\omega_k), \qquad
              \omega_k = \mathrm{base}^{-2k/D}, \qquad k = 0, \dots, D/2 - 1

    A shift by n positions rotates each pair (sine, cosine) by n times its frequency, whatever the position.

    Args:
        T: number of positions, 0 to T-1.
        D: width, even.
        base: the longest wavelength is almost ``2 pi base`` positions.
        interleaved: True puts each sine next to its cosine, as in the formula and the paper; False puts all sines
            first and then all cosines, as the authors' program did.
        like: a floating point array of any shape, whose library, device and dtype the result has; None means NumPy and
            float64, NumPy's own default. Pass it if you add the result to a float32 array: otherwise, the sum becomes
            float64.

    Returns:
        ``(T, D)``, numbers in [-1, 1].

    Raises:
        TypeError: ``T`` or ``D`` is not a whole number, ``base`` is not a number, or ``like`` is not a floating
            point array.
        ValueError: ``T`` or ``D`` is negative, ``D`` is odd, or ``base`` is not a positive number.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.5.

    Example:
        >>> sinusoidal_positions(3, 4, base=100.0).round(2)
        array([[ 0.  ,  1.  ,  0.  ,  1.  ],
               [ 0.84,  0.54,  0.1 ,  1.  ],
               [ 0.91, -0.42,  0.2 ,  0.98]])
    """
    T = check_int("T", T, 0)
    xp, dtype, device = _floats_like(like)
    angles = _angles(xp.arange(T, device=device), D, base, xp)  # (T, D/2)
    sin, cos = xp.sin(angles), xp.cos(angles)
    table = xp.reshape(xp.stack([sin, cos], axis=-1), (T, D)) if interleaved else xp.concat([sin, cos], axis=-1)
    return xp.astype(table, dtype)


@dataclass(frozen=True)
class RopeScaling:
    r"""Lower the frequencies of RoPE, so that a model can read longer texts than those it was first trained on.

    .. math:: \omega' = \Bigl(\frac{1 - g}{\text{factor}} + g\Bigr)\, \omega, \qquad
              g = \operatorname{clip}\Bigl(\frac{L \omega / 2\pi - \text{low}}{\text{high} - \text{low}},
              \; 0,\; 1\Bigr)

    L is ``original_length``. A pair that turns more than ``high`` times within L positions keeps its frequency, one
    that turns fewer than ``low`` times has it divided by ``factor``, and those in between get a mixture.

    Attributes:
        factor: by how much low frequencies are divided.
        low_freq_factor: low, in turns.
        high_freq_factor: high, in turns.
        original_length: L, in positions.

    Raises:
        TypeError: an attribute is not a number, or ``original_length`` is not whole.
        ValueError: ``factor`` or ``original_length`` is below 1, ``low_freq_factor`` is not positive, or
            ``high_freq_factor`` is not greater.

    Source:
        Llama Team (2024), "The Llama 3 Herd of Models"; the formula is that of the authors' program.

    Example:
        >>> _, sin = rope_tables([1], 4, base=100.0, scaling=RopeScaling(8.0, original_length=128))
        >>> np.arcsin(sin).round(4)  # 1 turns 20 times; 0.1 turns 2.04 times: g = 0.346
        array([[1.    , 0.0428]])
    """

    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_length: int = 8192

    def __post_init__(self) -> None:
        check_int("original_length", self.original_length, 1)
        if not 1 <= check_float("factor", self.factor) < math.inf:
            raise ValueError(f"factor is {self.factor}, but a number of at least 1 is needed")
        low = check_float("low_freq_factor", self.low_freq_factor)
        high = check_float("high_freq_factor", self.high_freq_factor)
        if not 0 < low < high < math.inf:
            raise ValueError(f"low_freq_factor is {low} and high_freq_factor {high}, but 0 < low < high is needed")

    def scaled(self, frequencies: ArrayT) -> ArrayT:
        """Return the lowered frequencies, of the same shape."""
        xp, _ = namespace_and_device(frequencies)
        turns = frequencies * (self.original_length / (2 * math.pi))
        share = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        kept = xp.clip(share, 0.0, 1.0)
        return ((1 - kept) / self.factor + kept) * frequencies


def rope_tables(
    positions: ArrayT | Sequence[SupportsFloat | Sequence[SupportsFloat]],
    D: int,
    *,
    base: float = 10000.0,
    scaling: RopeScaling | None = None,
) -> tuple[ArrayT, ArrayT]:
    r"""Tabulate the cosines and sines of the angles by which RoPE rotates each position.

    .. math:: \cos(t\,\omega_k), \quad \sin(t\,\omega_k), \qquad \omega_k = \mathrm{base}^{-2k/D}, \qquad
              k = 0, \dots, D/2 - 1

    Args:
        positions: ``(..., T)``, the positions t, whole or not: an array of integers or floats, or a list.
        D: the number of components of a vector to rotate, even: its width, or less to leave the rest unchanged.
        base: the larger it is, the more slowly the slowest pair rotates.
        scaling: how the frequencies are lowered for long texts; see :class:`RopeScaling`.

    Returns:
        ``(cos, sin)``, each ``(..., T, D/2)``, in the library and on the device of ``positions`` (NumPy for a list).
        Floating point positions keep their dtype (float16 and bfloat16 hold few whole numbers exactly: up to 2048 and
        256); integers give the library's default, float64 for NumPy and ``torch.get_default_dtype()`` for torch.

    Raises:
        TypeError: ``positions`` is not an array or list of numbers, ``D`` is not a whole number, or ``base`` is not
            a number.
        ValueError: ``positions`` is a scalar or has rows of different lengths, ``D`` is negative or odd, or ``base``
            is not a positive number.

    Source:
        Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding", eq. 15.

    Example:
        >>> cos, sin = rope_tables(np.arange(3), 4, base=100.0)
        >>> sin.round(2)
        array([[0.  , 0.  ],
               [0.84, 0.1 ],
               [0.91, 0.2 ]])
    """
    checked = _checked_positions(positions)
    xp, device = namespace_and_device(checked)
    dtype = checked.dtype
    if not xp.isdtype(dtype, "real floating"):
        dtype = _default_float(xp, device)
    angles = _angles(checked, D, base, xp, scaling)
    return xp.astype(xp.cos(angles), dtype), xp.astype(xp.sin(angles), dtype)


def apply_rope(x: ArrayT, cos: ArrayT, sin: ArrayT, *, interleaved: bool = False) -> ArrayT:
    r"""Turn the pairs of components of every query or key by angles that grow with its position.

    .. math:: \begin{pmatrix} y_a \\ y_b \end{pmatrix} =
              \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
              \begin{pmatrix} x_a \\ x_b \end{pmatrix}, \qquad \theta = t\,\omega_k

    Pair k is components ``(k, k + width)``, half-split as in GPT-NeoX (and in transformers' Llama), or
    ``(2k, 2k + 1)``, interleaved as in RoFormer and GPT-J. If queries and keys are both rotated, their dot product
    depends on positions only through the distance i - j.

    Args:
        x: ``(..., T, D)``.
        cos: ``(..., T, width)``, of :func:`rope_tables`. Leading dimensions broadcast to those of ``x``: tables
            ``(T, width)`` serve all heads; a table for each sequence of ``(B, H, T, D)`` is ``(B, 1, T, width)``.
            With ``width < D/2``, the first ``2*width`` components are rotated and the rest are unchanged.
        sin: like ``cos``.
        interleaved: which components make a pair.

    Returns:
        ``(..., T, D)``, with the shape and dtype of ``x``. The rotation is computed in at least float32, so
        float32 tables serve ``x`` of any dtype; for the full precision of a float64 ``x``, use float64 positions.

    Raises:
        TypeError: libraries differ, dtypes are not floating point, or ``cos`` and ``sin`` differ in dtype.
        ValueError: ``x`` or a table has fewer than 2 dimensions, ``cos`` and ``sin`` differ in shape, are not for T
            positions, rotate more than D components, or do not broadcast to ``x``.

    Source:
        Su et al. (2021), eq. 34; partial: Black et al. (2022), "GPT-NeoX-20B: An Open-Source Autoregressive Language
        Model", section 2.1; half-split: those authors' program, GPT-NeoX.

    Example:
        >>> cos, sin = np.array([[0.0]]), np.array([[1.0]])  # a quarter turn
        >>> apply_rope(np.array([[2.0, 3.0, 5.0]]), cos, sin)
        array([[-3.,  2.,  5.]])
    """
    if _plainly_fit(x, cos, sin):
        return rotate_pairs(x, cos, sin, interleaved)
    xp = _check_tables(x, cos, sin)
    width = 2 * cos.shape[-1]
    if width == x.shape[-1]:
        return rotate_pairs(x, cos, sin, interleaved)
    return xp.concat([rotate_pairs(x[..., :width], cos, sin, interleaved), x[..., width:]], axis=-1)


def rotate_pairs(x: Array, cos: Array, sin: Array, interleaved: bool = False) -> Array:
    """Do the same as :func:`apply_rope`, for checked arguments and tables that rotate every component."""
    xp, _ = namespace_and_device(x)
    width = cos.shape[-1]
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :width], x[..., width:])
    work = at_least_float32(xp, x.dtype)
    a, b, cos, sin = (z if z.dtype == work else xp.astype(z, work) for z in (a, b, cos, sin))
    pair = (a * cos - b * sin, b * cos + a * sin)
    y = xp.reshape(xp.stack(pair, axis=-1), x.shape) if interleaved else xp.concat(pair, axis=-1)
    return y if y.dtype == x.dtype else xp.astype(y, x.dtype)


def alibi_slopes(H: int, *, like: ArrayT | None = None) -> ArrayT:
    r"""Return the slope by which ALiBi lowers the scores of each head with distance: a geometric sequence.

    .. math:: m_h = 2^{-8h/H}, \qquad h = 1, \dots, H \qquad (H \text{ a power of two})

    For any other H, with n the largest power of two below it, the slopes are the n for n heads, then every other one
    of those for 2n heads, beginning with the first.

    Args:
        H: number of heads.
        like: a floating point array of any shape, whose library, device and dtype the result has; None means NumPy and
            float64.

    Returns:
        ``(H,)``, numbers in (0, 1).

    Raises:
        TypeError: ``H`` is not a whole number, or ``like`` is not a floating point array.
        ValueError: ``H`` is below 1.

    Source:
        Press, Smith and Lewis (2022), "Train Short, Test Long: Attention with Linear Biases Enables Input Length
        Extrapolation", section 3; for other H, the authors' program.

    Example:
        >>> alibi_slopes(4)
        array([0.25      , 0.0625    , 0.015625  , 0.00390625])
        >>> alibi_slopes(3)
        array([0.0625    , 0.00390625, 0.25      ])
    """
    xp, dtype, _ = _floats_like(like)
    return xp.astype(_slopes(H, like), dtype)


def alibi_bias(H: int, T: int, S: int, *, q_offset: int = 0, like: ArrayT | None = None) -> ArrayT:
    r"""Lower each score in proportion to the distance between query and key.

    .. math:: b_{hij} = -m_h \, \lvert i + o - j \rvert, \qquad o = \text{q\_offset}

    The result is added to the scores. The paper's bias, for causal attention, is :math:`m_h (j - i)`, which is the same
    wherever key j is not after query i; for keys after it, this is the symmetric form of bidirectional models.

    Args:
        H: number of heads.
        T: number of queries.
        S: number of keys.
        q_offset: position of the first query among the keys, positive or negative: a whole number or, in torch, a
            zero-dimensional tensor.
        like: a floating point array of any shape, whose library, device and dtype the result has; None means NumPy and
            float64.

    Returns:
        Float mask ``(H, T, S)``, at most 0.

    Raises:
        TypeError: a number is not whole, or ``like`` is not a floating point array.
        ValueError: ``H`` is below 1, ``T`` or ``S`` is negative, or ``q_offset`` is beyond 2**62 in size.

    Source:
        Press, Smith and Lewis (2022), section 3 and figure 3.

    Example:
        >>> alibi_bias(8, 3, 3)[0]
        array([[ 0. , -0.5, -1. ],
               [-0.5,  0. , -0.5],
               [-1. , -0.5,  0. ]])
    """
    xp, dtype, device = _floats_like(like)
    work = at_least_float32(xp, dtype)  # float16 holds whole numbers only up to 2048
    T, S, q_offset = check_int("T", T, 0), check_int("S", S, 0), check_offset(q_offset, like)
    i, j = xp.arange(T, device=device)[:, None] + q_offset, xp.arange(S, device=device)[None, :]
    slopes = xp.astype(_slopes(H, like), work)[:, None, None]  # (H, 1, 1)
    # The integer is negated, not the product, which would be -0.0 at distance 0.
    return xp.astype(slopes * xp.astype(-xp.abs(i - j), work), dtype, copy=False)


def relative_buckets(
    T: int,
    S: int,
    *,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
    q_offset: int = 0,
    like: ArrayT | None = None,
) -> ArrayT:
    r"""Sort the distances from queries to keys into T5's buckets: exactly if small, and ever more coarsely if large.

    .. math:: \mathrm{bucket}(d) = \begin{cases} d & d < e \\
              \min\!\left(e + \left\lfloor (n - e) \frac{\ln(d/e)}{\ln(d_{\max}/e)} \right\rfloor,\; n - 1\right)
              & d \ge e \end{cases} \qquad e = \lfloor n/2 \rfloor

    Bidirectional: d is the distance \|j - i\|, n is half of ``num_buckets``, and a key after the query gets n more.
    Otherwise d is i - j, or 0 for a key after the query, and n is ``num_buckets``. The logarithm is taken exactly, by
    comparing powers of whole numbers.

    Args:
        T: number of queries.
        S: number of keys.
        num_buckets: the total number of buckets.
        max_distance: from this distance on, all share the last bucket.
        bidirectional: whether keys after the query have buckets of their own.
        q_offset: position of the first query among the keys, positive or negative: a whole number or, in torch, a
            zero-dimensional tensor.
        like: an array of any shape and dtype, whose library and device the result has; None means NumPy.

    Returns:
        Integers ``(T, S)``, from 0 to ``num_buckets - 1``: the rows of a learned table of biases. They are int64, or
        int32 in JAX unless its 64-bit types are enabled.

    Raises:
        TypeError: a number is not whole, or ``like`` is not an array.
        ValueError: ``T`` or ``S`` is negative, ``q_offset`` is beyond 2**62 in size, ``num_buckets`` is below 2 (4 if
            bidirectional), or ``max_distance`` is not above e.

    Source:
        Raffel et al. (2020), "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
        section 2.1; the formula is that of the authors' program.

    Example:
        >>> relative_buckets(2, 6, num_buckets=8, max_distance=8)
        array([[0, 5, 6, 6, 7, 7],
               [1, 0, 5, 6, 6, 7]])
    """
    T, S, q_offset = check_int("T", T, 0), check_int("S", S, 0), check_offset(q_offset, like)
    limits, half = _bucket_limits(num_buckets, max_distance, bidirectional)
    xp, device = namespace_and_device(like)
    # Buckets depend on j - i alone: they are computed for the T + S possible distances, then arranged as (T, S).
    distance = xp.arange(T + S, device=device) - T - q_offset
    size = xp.abs(distance) if bidirectional else xp.where(distance < 0, -distance, 0)
    bucket = half * xp.astype(distance > 0, distance.dtype)
    for limit in limits:
        bucket = bucket + xp.astype(size >= limit, distance.dtype)
    where = T + xp.arange(S, device=device)[None, :] - xp.arange(T, device=device)[:, None]
    return xp.reshape(xp.take(bucket, xp.reshape(where, (-1,)), axis=0), (T, S))


def _floats_like(like: Array | None) -> tuple[ModuleType, Any, Any]:
    """Return the array namespace, the floating point dtype and the device of ``like``."""
    xp, device = namespace_and_device(like)
    if like is None:
        return xp, xp.float64, device
    array_namespace(like=like)
    return xp, like.dtype, device


def _angles(positions: Array, D: int, base: float, xp: ModuleType, scaling: RopeScaling | None = None) -> Array:
    """Return position times frequency, (..., T) to (..., T, D/2), in float64."""
    if check_int("D", D, 0) % 2:
        raise ValueError(f"D is {D}, but an even number is needed: sines and cosines come in pairs")
    base = check_float("base", base)
    if not 0 < base < math.inf:
        raise ValueError(f"base is {base}, but a positive number is needed")
    device = device_of(positions)
    dtype = widest_float(xp, device)
    exponents = xp.arange(0, D, 2, dtype=dtype, device=device) / D  # 2k/D
    frequencies = base**-exponents
    if scaling is not None:
        frequencies = scaling.scaled(frequencies)
    return xp.astype(positions, dtype)[..., None] * frequencies


def _default_float(xp: ModuleType, device: Any) -> Any:
    if xp is np:
        return np.float64  # NumPy 2.0 has no __array_namespace_info__
    return xp.__array_namespace_info__().default_dtypes(device=device)["real floating"]


def _checked_positions(positions: Array | list[Any]) -> Array:
    refuse_subclass("positions", positions)
    if isinstance(positions, (list, tuple, range)):
        positions = _rows(positions)
    elif not is_array(positions):
        raise TypeError(
            f"positions is {positions!r}, but an array or list of positions is needed: np.arange(T) for 0 to T-1"
        )
    if not namespace_and_device(positions)[0].isdtype(positions.dtype, ("integral", "real floating")):
        raise TypeError(f"positions has dtype {positions.dtype}, but integers or floats are needed")
    if positions.ndim == 0:
        raise ValueError("positions has shape (), but (..., T) is needed: [p] for the single position p")
    return positions


def _rows(positions: list[Any] | tuple[Any, ...] | range) -> Array:
    for n, row in enumerate(() if isinstance(positions, range) else positions):
        refuse_subclass(f"positions[{n}]", row)
    try:
        return np.asarray(positions, None if len(positions) else np.int64)
    except ValueError:
        raise ValueError(f"positions is {positions!r}, but rows of equal length are needed: (..., T)") from None


def _plainly_fit(x: Array, cos: Array, sin: Array) -> bool:
    """Return True if a quick look shows that tables fit all of x; False means that a closer look is needed."""
    if not plainly_agree(x, (cos, sin)):
        return False
    half, whole = cos.shape, x.shape
    return half == sin.shape and len(half) == 2 <= len(whole) and half[0] == whole[-2] and 2 * half[1] == whole[-1]


def _check_tables(x: Array, cos: Array, sin: Array) -> ModuleType:
    """Check x against its tables, which may have a different dtype."""
    array_namespace(cos=cos, sin=sin)
    xp = array_namespace(x=x)
    if not same_library(x, cos):
        raise TypeError(f"x is {describe_type(x)} but cos is {describe_type(cos)}: convert one of them")
    require_same_device("x", x, "cos", cos)
    require_sequence(x=x, cos=cos, sin=sin)
    if tuple(cos.shape) != tuple(sin.shape):
        raise ValueError(f"cos has shape {shape(cos)} and sin {shape(sin)}: the two must be equal")
    *leading, length, width = x.shape
    if cos.shape[-2] != length:
        raise ValueError(f"cos has shape {shape(cos)}, but x is {shape(x)}: (..., T={length}, width) is needed")
    if 2 * cos.shape[-1] > width:
        raise ValueError(
            f"cos has shape {shape(cos)}, but x is {shape(x)}: D={width} components make {width // 2} pairs at most "
            "(of tables that hold every angle twice, pass one half)"
        )
    if not broadcasts_to(cos.shape[:-2], tuple(leading)):
        raise ValueError(
            f"cos has shape {shape(cos)}, whose leading dimensions do not broadcast to those of x {shape(x)}: "
            "a table for each sequence of (B, H, T, D) is (B, 1, T, width)"
        )
    return xp


def _slopes(H: int, like: Array | None) -> Array:
    H = check_int("H", H, 1)
    n = 1
    while 2 * n <= H:
        n = 2 * n
    xp, device = namespace_and_device(like)
    dtype = widest_float(xp, device)
    first = xp.arange(1, n + 1, dtype=dtype, device=device)
    # Number 1, 3, 5, ... of the slopes for 2n heads is number 1/2, 3/2, 5/2, ... of those for n.
    further = xp.arange(H - n, dtype=dtype, device=device) + 0.5
    return 2.0 ** (-8 * xp.concat([first, further]) / n)


def _bucket_limits(num_buckets: int, max_distance: int, bidirectional: bool) -> tuple[list[int], int]:
    """Return the distance at which each bucket after the first begins, and what is added for a key after the query."""
    num_buckets = check_int("num_buckets", num_buckets, 4 if bidirectional else 2)
    n = num_buckets // 2 if bidirectional else num_buckets
    e = n // 2
    if check_int("max_distance", max_distance) <= e:
        raise ValueError(
            f"max_distance is {max_distance}, but more than {e} is needed: up to there each distance has its own bucket"
        )
    limits = list(range(1, e + 1))
    for m in range(1, n - e):
        # Bucket e + m begins at the least d with (n - e) ln(d/e) >= m ln(max/e). Written with powers, this
        # compares whole numbers, so the floating point estimate, which may be off by one, is corrected exactly.
        d = max(math.floor(e * (max_distance / e) ** (m / (n - e))) - 1, 1)
        while d ** (n - e) * e**m < max_distance**m * e ** (n - e):
            d += 1
        limits.append(d)
    return limits, n if bidirectional else 0
