"""The activation of the feed-forward layers in today's language models."""

from attnlib._arrays import Array, array_namespace, at_least_float32, shape
from attnlib._types import ArrayT


def swiglu(gate: ArrayT, up: ArrayT) -> ArrayT:
    r"""Multiply one projection of the input by a smooth gate, which is computed from another.

    .. math:: y = \operatorname{silu}(g) \odot u, \qquad \operatorname{silu}(g) = \frac{g}{1 + e^{-g}}

    In a feed-forward layer, :math:`g = W_{\text{gate}}\, x` and :math:`u = W_{\text{up}}\, x`, and the result is
    multiplied by :math:`W_{\text{down}}`.

    Args:
        gate: g, an array of any shape ``(...)``.
        up: u, of the same shape.

    Returns:
        ``(...)``, with the dtype of the arguments, computed in at least float32.

    Raises:
        TypeError: an argument is not a floating point array, or they differ in library or dtype.
        ValueError: their shapes differ.

    Source:
        Shazeer (2020), "GLU Variants Improve Transformer", eq. 5 and 6.

    Example:
        >>> import numpy as np
        >>> swiglu(np.array([0.0, np.log(3.0)]), np.array([5.0, 4.0]))  # 4 * ln 3 * 3/4
        array([0.        , 3.29583687])
    """
    xp = array_namespace(gate=gate, up=up)
    if tuple(gate.shape) != tuple(up.shape):
        raise ValueError(f"gate has shape {shape(gate)} and up {shape(up)}: they must be equal")
    work = at_least_float32(xp, gate.dtype)
    y = silu(xp.astype(gate, work, copy=False)) * xp.astype(up, work, copy=False)
    return xp.astype(y, gate.dtype, copy=False)


def silu(x: Array) -> Array:
    """Return x / (1 + exp(-x)) for every number, computed in at least float32, in a form in which nothing overflows."""
    xp = array_namespace(x=x)
    work = xp.astype(x, at_least_float32(xp, x.dtype), copy=False)
    e = xp.exp(-xp.abs(work))
    return xp.astype(xp.where(work < 0, work * e, work) / (1 + e), x.dtype, copy=False)
