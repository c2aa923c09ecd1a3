"""Normalisation of vectors by their root mean square.

Dimensions: E width of the vectors.
"""

from attnlib._arrays import array_namespace, at_least_float32, check_float, shape
from attnlib._types import ArrayT


def rms_norm(x: ArrayT, weight: ArrayT | None = None, *, eps: float = 1e-6) -> ArrayT:
    r"""Divide every vector by the root mean square of its components, and multiply by learned weights.

    .. math:: y_e = w_e \, \frac{x_e}{\sqrt{\frac1E \sum_k x_k^2 + \epsilon}}

    Unlike layer normalisation, it does not subtract the mean first and adds no bias.

    Args:
        x: ``(..., E)``.
        weight: w, ``(E,)``; ``None`` means 1 for each component.
        eps: a small number that is added to the mean of the squares.

    Returns:
        ``(..., E)``, with the dtype of ``x``, computed in at least float32.

    Raises:
        TypeError: an argument is not a floating point array, ``weight`` differs from ``x`` in library or dtype, or
            ``eps`` is not a number.
        ValueError: ``x`` has no dimension, ``weight`` is not ``(E,)``, or ``eps`` is negative.

    Source:
        Zhang and Sennrich (2019), "Root Mean Square Layer Normalization", eq. 4.

    Example:
        >>> import numpy as np
        >>> rms_norm(np.array([[3.0, 3.0], [7.0, -1.0]]), eps=0.0)  # the mean square of (7, -1) is 25
        array([[ 1. ,  1. ],
               [ 1.4, -0.2]])
    """
    given = {} if weight is None else {"weight": weight}
    xp = array_namespace(x=x, **given)
    if x.ndim == 0:
        raise ValueError("x has shape (), but (..., E) is needed: at least 1 dimension")
    if weight is not None and tuple(weight.shape) != tuple(x.shape[-1:]):
        raise ValueError(f"weight has shape {shape(weight)}, but x has {shape(x)}: ({x.shape[-1]},) is needed")
    eps = check_float("eps", eps)
    if not eps >= 0:
        raise ValueError(f"eps is {eps}, but a number of at least 0 is needed")
    work = xp.astype(x, at_least_float32(xp, x.dtype), copy=False)
    mean_square = xp.sum(work * work, axis=-1, keepdims=True) / max(x.shape[-1], 1)
    y = work / xp.sqrt(mean_square + eps)
    if weight is not None:
        y = y * xp.astype(weight, y.dtype, copy=False)
    return xp.astype(y, x.dtype, copy=False)
