r"""The activation GELU for NumPy arrays: x times the probability that a standard normal number is below x.

.. math:: \operatorname{gelu}(x) = x\, \Phi(x) = \max(x, 0) - |x|\, Q(|x|), \qquad
          Q(a) = 1 - \Phi(a) \approx \tfrac12\, p(t)\, e^{-a^2/2}, \quad t = \frac{1}{1 + c\, a / \sqrt 2}

The last form needs the normal distribution's tail Q alone, so that nothing cancels. With p a polynomial of degree 5,
2 Q is off by at most 1.5e-7, which in float32 is no more than rounding. For float64 that is too much, so
Python's complementary error function is called for each number, which takes many times as long. Nothing cancels there
either:

.. math:: \operatorname{gelu}(x) = \tfrac12\, x \operatorname{erfc}(-x / \sqrt 2)

Sources: Hendrycks and Gimpel (2016), "Gaussian Error Linear Units"; Abramowitz and Stegun (1964), "Handbook of
Mathematical Functions", formula 7.1.26.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

C = 0.3275911
P = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)  # of t, t^2, ...
BLOCK_SIZE = 2**15  # numbers: three arrays of this size stay in a core's cache
MAX_TAIL_ARGUMENT = 15  # beyond it Q is 0 in float32; it keeps squares finite
MIN_GELU_ARGUMENT = -40.0  # beyond it gelu is 0 in float64; it keeps -inf * 0, which is nan, from being formed


def gelu(x: Floats) -> Floats:
    """Return gelu of every number; computed in float32, or in float64 for what is wider than float32."""
    if x.dtype.itemsize > 4:
        return _by_error_function(x)
    out = np.array(x, np.float32, order="C")
    flat = out.reshape(-1)  # a view
    room = np.empty((3, min(BLOCK_SIZE, flat.size)), np.float32)
    with np.errstate(under="ignore"):  # to 0, which is exact enough
        for start in range(0, flat.size, BLOCK_SIZE):
            block = flat[start : start + BLOCK_SIZE]
            _subtract_tail(block, *room[:, : block.size])
    return out.astype(x.dtype, copy=False)


def _by_error_function(x: Floats) -> Floats:
    x = np.maximum(x, MIN_GELU_ARGUMENT)
    with np.errstate(under="ignore"):
        erfc = np.asarray(np.frompyfunc(math.erfc, 1, 1)(-(0.5**0.5) * x), x.dtype)
        return np.asarray(0.5 * x * erfc, x.dtype)


def _subtract_tail(x: Floats, a: Floats, t: Floats, q: Floats) -> None:
    """Overwrite x with gelu(x); a, t and q are buffers of the same size."""
    np.minimum(np.abs(x, out=a), MAX_TAIL_ARGUMENT, out=a)
    np.multiply(a, C * 0.5**0.5, out=t)
    np.reciprocal(np.add(t, 1, out=t), out=t)
    np.multiply(t, P[-1] / 2, out=q)
    for p in P[-2::-1]:  # Horner's rule
        q += p / 2
        q *= t
    np.multiply(a, a, out=t)
    t *= -0.5
    q *= np.exp(t, out=t)
    q *= a
    np.maximum(x, 0, out=x)
    x -= q
