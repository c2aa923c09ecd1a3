"""From scores to weights."""

from attnlib._arrays import Array, array_namespace, check_int, is_torch, shape
from attnlib._dispatch import kernels_for
from attnlib._types import ArrayT


def softmax(x: ArrayT, axis: int = -1) -> ArrayT:
    r"""Turn scores into positive weights that sum to 1 along ``axis``.

    .. math:: \operatorname{softmax}(x)_j = \frac{e^{x_j - m}}{\sum_k e^{x_k - m}}, \qquad m = \max_k x_k

    Subtracting the maximum changes nothing in exact arithmetic and keeps the exponential from overflowing. Where
    every score along the axis is ``-inf`` there is nothing to choose from: the weights are 0, with gradient 0.

    Args:
        x: scores of any shape ``(...)``, at least one dimension.
        axis: the dimension whose weights sum to 1.

    Returns:
        Weights of the same shape ``(...)`` and dtype as ``x``, computed in at least float32.

    Raises:
        TypeError: ``x`` is not an array or not floating point, or ``axis`` is not an integer.
        ValueError: ``x`` has no dimension, or ``axis`` is out of range.

    Source:
        Bridle (1990), "Probabilistic Interpretation of Feedforward Classification Network Outputs"; the shift by the
        maximum: Blanchard, Higham and Higham (2021), "Accurately Computing the Log-Sum-Exp and Softmax Functions".

    Example:
        >>> import numpy as np
        >>> softmax(np.log(np.array([1.0, 2.0, 5.0])))
        array([0.125, 0.25 , 0.625])
        >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
        array([0.5, 0.5, 0. ])
    """
    # For a tensor of floats, this check would take as long as the softmax of a few scores.
    if not (is_torch(x) and x.is_floating_point()):  # type: ignore[attr-defined]
        array_namespace(x=x)
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        axis = _check_axis(axis, x)
    return kernels_for(x).softmax(x, axis)


def _check_axis(axis: int, x: Array) -> int:
    """Return the axis as Python's int, after checking that it is an integer and that x has such an axis."""
    if x.ndim == 0:
        raise ValueError("x has shape (): a single number has no axis, at least 1 dimension is needed")
    axis = check_int("axis", axis)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}, but x has shape {shape(x)}: use an axis from {-x.ndim} to {x.ndim - 1}")
    return axis
