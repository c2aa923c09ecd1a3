"""Similarity functions: how well each query matches each key.

Each takes queries ``(..., T, D_q)`` and keys ``(..., S, D_k)`` and returns scores ``(..., T, S)``: row i belongs to
query i, column j to key j. Leading dimensions broadcast. The functions are written once, with the array API, for
all libraries.

Dimensions: T queries, S keys, D width of a vector, D_q and D_k where queries and keys differ, D_a hidden width.
"""

import math

from attnlib._arrays import (
    Array,
    array_namespace,
    check_float,
    require_broadcast,
    require_equal_width,
    require_sequence,
    shape,
    swapaxes,
)
from attnlib._attention_arguments import check_scale
from attnlib._nested import require_padded
from attnlib._types import ArrayT


def dot(query: ArrayT, key: ArrayT) -> ArrayT:
    r"""Dot product of every query with every key.

    .. math:: e_{ij} = q_i \cdot k_j = \sum_d q_{id} k_{jd}

    Args:
        query: ``(..., T, D)``.
        key: ``(..., S, D)``.

    Returns:
        Scores ``(..., T, S)``, in the unit of a product of two vector components.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: an array has fewer than 2 dimensions, widths differ, or leading dimensions do not broadcast.

    Source:
        Luong, Pham and Manning (2015), "Effective Approaches to Attention-based Neural Machine Translation",
        section 3.1, "dot".

    Example:
        >>> import numpy as np
        >>> dot(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 4.0], [-2.0, 1.0]]))
        array([[3., 8., 0.]])
    """
    _check_pair(query, key)
    return _dot(query, key)


def scaled_dot(query: ArrayT, key: ArrayT, *, scale: float | None = None) -> ArrayT:
    r"""Dot product times ``scale``, by default :math:`1/\sqrt{D}`.

    .. math:: e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}}

    If the components of both vectors are independent, with mean 0 and variance 1, the dot product has variance D;
    the factor brings the scores back to variance 1, whatever the width.

    Args:
        query: ``(..., T, D)``.
        key: ``(..., S, D)``.
        scale: the factor; ``None`` means ``1 / sqrt(D)``.

    Returns:
        Scores ``(..., T, S)``.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: an array has fewer than 2 dimensions, widths differ, leading dimensions do not broadcast, or
            ``scale`` is not finite.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", eq. 1.

    Example:
        >>> import numpy as np
        >>> q = np.ones((1, 4))
        >>> scaled_dot(q, q), scaled_dot(q, q, scale=0.1)
        (array([[2.]]), array([[0.4]]))
    """
    _check_pair(query, key)
    scale = check_scale(scale, query.shape[-1])
    # Scaling the query first costs T*D products instead of T*S, and keeps float16 from overflowing before the sum does.
    return _dot(query * scale, key)


def general(query: ArrayT, key: ArrayT, weight: ArrayT) -> ArrayT:
    r"""Bilinear similarity: a learned matrix between query and key.

    .. math:: e_{ij} = q_i^\top W k_j

    Args:
        query: ``(..., T, D_q)``.
        key: ``(..., S, D_k)``.
        weight: W, ``(D_q, D_k)``.

    Returns:
        Scores ``(..., T, S)``.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: an array has fewer than 2 dimensions, ``weight`` is not ``(D_q, D_k)``, or leading dimensions do
            not broadcast.

    Source:
        Luong, Pham and Manning (2015), section 3.1, "general".

    Example:
        >>> import numpy as np
        >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> general(np.array([[1.0, 2.0]]), np.array([[10.0, 100.0]]), swap)
        array([[120.]])
    """
    array_namespace(query=query, key=key, weight=weight)
    _check_shapes(query, key)
    if tuple(weight.shape) != (query.shape[-1], key.shape[-1]):
        raise ValueError(
            f"weight has shape {shape(weight)}, but query is {shape(query)} and key {shape(key)}: "
            f"(D_q, D_k) = ({query.shape[-1]}, {key.shape[-1]}) is needed"
        )
    return _dot(query @ weight, key)


def additive(query: ArrayT, key: ArrayT, w_query: ArrayT, w_key: ArrayT, v: ArrayT) -> ArrayT:
    r"""Similarity by a one-layer network: project both, add, squash, and read off one number.

    .. math:: e_{ij} = v^\top \tanh(W_q^\top q_i + W_k^\top k_j)

    Luong's "concat" is the same function: one matrix applied to the concatenation ``[q; k]`` is two matrices applied
    to the parts and added.

    Args:
        query: ``(..., T, D_q)``.
        key: ``(..., S, D_k)``.
        w_query: ``(D_q, D_a)``.
        w_key: ``(D_k, D_a)``.
        v: ``(D_a,)``.

    Returns:
        Scores ``(..., T, S)``. The sum inside tanh takes ``T * S * D_a`` numbers of memory.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: an array has fewer than 2 dimensions, a parameter's shape does not fit, or leading dimensions do
            not broadcast.

    Source:
        Bahdanau, Cho and Bengio (2015), "Neural Machine Translation by Jointly Learning to Align and Translate",
        appendix A.1.2.

    Example:
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> additive(one, one, one, -one, np.array([5.0]))  # tanh(1 - 1) * 5
        array([[0.]])
    """
    xp = array_namespace(query=query, key=key, w_query=w_query, w_key=w_key, v=v)
    _check_shapes(query, key)
    _check_hidden(query, key, w_query, w_key, v)
    q = (query @ w_query)[..., :, None, :]  # (..., T, 1, D_a)
    k = (key @ w_key)[..., None, :, :]  # (..., 1, S, D_a)
    return xp.tanh(q + k) @ v


def cosine(query: ArrayT, key: ArrayT) -> ArrayT:
    r"""Cosine of the angle between every query and every key: the dot product of their directions.

    .. math:: e_{ij} = \frac{q_i \cdot k_j}{\lVert q_i \rVert \, \lVert k_j \rVert} \in [-1, 1]

    A zero vector has no direction; its cosine with anything is defined as 0, with gradient 0.

    Args:
        query: ``(..., T, D)``.
        key: ``(..., S, D)``.

    Returns:
        Scores ``(..., T, S)``, without unit, from -1 to 1 up to rounding.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: an array has fewer than 2 dimensions, widths differ, or leading dimensions do not broadcast.

    Source:
        Graves, Wayne and Danihelka (2014), "Neural Turing Machines", eq. 6.

    Example:
        >>> import numpy as np
        >>> cosine(np.array([[3.0, 4.0]]), np.array([[30.0, 40.0], [-3.0, -4.0], [0.0, 0.0]]))
        array([[ 1., -1.,  0.]])
    """
    xp = _check_pair(query, key)
    return _dot(_unit(query, xp), _unit(key, xp))


def gaussian(query: ArrayT, key: ArrayT, *, bandwidth: float = 1.0) -> ArrayT:
    r"""Negative squared distance, the logarithm of a Gaussian kernel.

    .. math:: e_{ij} = -\frac{\lVert q_i - k_j \rVert^2}{2 h^2}

    The softmax of these scores makes attention the Nadaraya-Watson kernel regression of the values at the query.

    Args:
        query: ``(..., T, D)``.
        key: ``(..., S, D)``.
        bandwidth: h > 0, in the unit of the vectors: only keys within about h of the query matter.

    Returns:
        Scores ``(..., T, S)``, at most 0. The differences take ``T * S * D`` numbers of memory: expanding the square
        would take less, and lose the distance of near neighbours to rounding.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: an array has fewer than 2 dimensions, widths differ, leading dimensions do not broadcast, or
            ``bandwidth`` is not a positive number.

    Source:
        Nadaraya (1964), "On Estimating Regression", and Watson (1964), "Smooth Regression Analysis".

    Example:
        >>> import numpy as np
        >>> gaussian(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [6.0, 8.0]]), bandwidth=5.0)
        array([[-0.5, -2. ]])
    """
    xp = _check_pair(query, key)
    bandwidth = check_float("bandwidth", bandwidth)
    if not 0 < bandwidth < math.inf:
        raise ValueError(f"bandwidth is {bandwidth}, but a positive number is needed (the width of the kernel)")
    difference = (query[..., :, None, :] - key[..., None, :, :]) / bandwidth  # (..., T, S, D)
    return -0.5 * xp.sum(difference * difference, axis=-1, dtype=difference.dtype)


def _dot(query: Array, key: Array) -> Array:
    return query @ swapaxes(key, -1, -2)


def _unit(x: Array, xp: Array) -> Array:
    # Dividing by the largest component first keeps the squares from overflowing or vanishing. The largest component
    # is a constant for the gradient (it cancels), and zero vectors are divided by 1, so no 0/0 is ever formed.
    if x.shape[-1] == 0:
        return x
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    largest = getattr(largest, "detach", lambda: largest)()
    zero = largest == 0
    x = xp.where(zero, xp.zeros_like(x), x / xp.where(zero, xp.ones_like(largest), largest))
    squares = xp.sum(x * x, axis=-1, keepdims=True, dtype=x.dtype)
    return x / xp.sqrt(xp.where(zero, xp.ones_like(squares), squares))


def _check_pair(query: Array, key: Array) -> Array:
    xp = array_namespace(query=query, key=key)
    _check_shapes(query, key)
    require_equal_width(query, key)
    return xp


def _check_shapes(query: Array, key: Array) -> None:
    require_padded("a similarity", query=query, key=key)
    require_sequence(query=query, key=key)
    require_broadcast(query=query, key=key)


def _check_hidden(query: Array, key: Array, w_query: Array, w_key: Array, v: Array) -> None:
    hidden = v.shape[0] if v.ndim == 1 else "D_a"
    wanted_query, wanted_key = (query.shape[-1], hidden), (key.shape[-1], hidden)
    if (tuple(w_query.shape), tuple(w_key.shape)) != (wanted_query, wanted_key):
        raise ValueError(
            f"w_query has shape {shape(w_query)}, w_key {shape(w_key)} and v {shape(v)}; for query {shape(query)} "
            f"and key {shape(key)}, w_query ({query.shape[-1]}, D_a), w_key ({key.shape[-1]}, D_a), v (D_a,) are needed"
        )
