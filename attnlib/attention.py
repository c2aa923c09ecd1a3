"""Attention is one idea: score, softmax, weighted sum.

Dimensions: T queries, S keys and values, D width of queries and keys, D_v width of values.
"""

from collections.abc import Callable

import numpy as np

from attnlib._arrays import (
    Array,
    autocasts,
    backend,
    broadcast_shape,
    is_torch,
    require_broadcast,
    require_sequence,
    shape,
)
from attnlib.similarity import scaled_dot

Score = Callable[[Array, Array], Array]


def softmax(x: Array, axis: int = -1) -> Array:
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
        TypeError: ``x`` is no array or not floating point, or ``axis`` is no integer.
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
    backend(x=x)
    if x.ndim == 0:
        raise ValueError("x has shape (): a single number has no axis, at least 1 dimension is needed")
    if not isinstance(axis, int | np.integer):
        raise TypeError(f"axis is {axis!r}, but one integer is needed")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}, but x has shape {shape(x)}: use an axis from {-x.ndim} to {x.ndim - 1}")
    return kernel(x).softmax(x, axis)


def attention(
    query: Array, key: Array, value: Array, *, score: Score = scaled_dot, mask: Array | None = None
) -> tuple[Array, Array]:
    r"""Average the values, each weighted by how well its key matches the query.

    .. math:: \alpha_{ij} = \operatorname{softmax}_j(\mathrm{score}(q_i, k_j)), \qquad
              c_i = \sum_j \alpha_{ij} v_j

    Args:
        query: ``(..., T, D)``.
        key: ``(..., S, D)``.
        value: ``(..., S, D_v)``. Leading dimensions of the three broadcast.
        score: a similarity ``(query, key) -> (..., T, S)``: one of :mod:`attnlib.similarity`, or your own. Bind
            parameters first: ``functools.partial(gaussian, bandwidth=0.5)``.
        mask: broadcasts to the scores ``(..., T, S)``. Boolean: True where the query **may attend** to the key.
            Floating point, of the scores' dtype: added to the scores.

    Returns:
        ``(context, weights)``: context ``(..., T, D_v)`` and weights ``(..., T, S)``, whose rows sum to 1. A query
        that may attend to nothing has weights 0 and context 0, with finite gradients. Scores have the inputs' dtype:
        beyond its range (65504 in float16) they become infinite, and a row of -inf counts as nothing to attend to.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, ``score`` is not callable, or ``mask`` is
            neither boolean nor of the scores' dtype.
        ValueError: an array has fewer than 2 dimensions, key and value differ in length S, ``score`` returns
            another shape than ``(..., T, S)``, or ``mask`` does not broadcast to it.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2; for any score, Luong, Pham and Manning
        (2015), section 3.1, eq. 7.

    Example:
        >>> import numpy as np
        >>> query, key = np.array([[1.0]]), np.array([[np.log(3.0)], [0.0]])
        >>> context, weights = attention(query, key, np.array([[8.0], [0.0]]))
        >>> weights, context
        (array([[0.75, 0.25]]), array([[6.]]))
    """
    backend(query=query, key=key, value=value)
    require_sequence(query=query, key=key, value=value)
    require_broadcast(query=query, key=key, value=value)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has shape {shape(key)} and value {shape(value)}: "
            f"S={key.shape[-2]} keys need S={key.shape[-2]} values, one each, not {value.shape[-2]}"
        )
    if not callable(score):
        raise TypeError(f"score is {score!r}, but a function (query, key) -> scores is needed, e.g. attnlib.dot")
    scores = _checked_scores(score(query, key), query, key)
    if mask is not None:
        require_mask("mask", mask, tuple(scores.shape), scores)
        scores = kernel(scores).masked(scores, mask)
    weights = softmax(scores)  # (..., T, S)
    return weights @ value, weights


def self_attention(x: Array, *, score: Score = scaled_dot, mask: Array | None = None) -> tuple[Array, Array]:
    r"""Let every position of one sequence attend to every position of it, without parameters.

    .. math:: \alpha_{ij} = \operatorname{softmax}_j(\mathrm{score}(x_i, x_j)), \qquad a_i = \sum_j \alpha_{ij} x_j

    The same vectors are queries, keys and values, so nothing is learned; reordering the positions of ``x`` reorders
    the result in the same way (permutation equivariance).

    Args:
        x: ``(..., T, D)``.
        score: a similarity ``(query, key) -> (..., T, T)``.
        mask: broadcasts to ``(..., T, T)``; as for :func:`attention`.

    Returns:
        ``(context, weights)``: context ``(..., T, D)`` and weights ``(..., T, T)``; row i belongs to query i.

    Raises:
        TypeError: as for :func:`attention`.
        ValueError: as for :func:`attention`.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2, with all projections the identity.

    Example:
        >>> import numpy as np
        >>> context, weights = self_attention(np.zeros((2, 4)))
        >>> weights
        array([[0.5, 0.5],
               [0.5, 0.5]])
    """
    return attention(x, x, x, score=score, mask=mask)


def kernel(x: Array) -> Array:
    """Choose the module that computes: the only place where the two backends part."""
    if is_torch(x):
        from attnlib import _torch

        return _torch
    from attnlib import _numpy

    return _numpy


def _checked_scores(scores: Array, query: Array, key: Array) -> Array:
    backend(query=query, scores=scores)
    leading = broadcast_shape(tuple(query.shape[:-2]), tuple(key.shape[:-2]))
    wanted = (*leading, query.shape[-2], key.shape[-2])
    if tuple(scores.shape) != wanted:
        raise ValueError(
            f"score returned shape {shape(scores)} for query {shape(query)} and key {shape(key)}, but "
            f"{wanted} is needed: T={query.shape[-2]} queries, S={key.shape[-2]} keys"
        )
    return scores


def require_mask(name: str, mask: Array, scores_shape: tuple[int, ...], like: Array) -> None:
    """Raise unless a mask is boolean, or of the scores' dtype, and broadcasts to their shape ``(..., T, S)``."""
    if is_torch(mask) != is_torch(like) or not hasattr(mask, "dtype"):
        raise TypeError(f"{name} is a {type(mask).__name__}, but the scores are a {type(like).__name__}: convert it")
    if not str(mask.dtype).endswith("bool") and mask.dtype != like.dtype and not autocasts(like):
        raise TypeError(
            f"{name} has dtype {mask.dtype}, but bool (True = may attend) or {like.dtype} (added) is needed"
        )
    try:
        fits = broadcast_shape(tuple(mask.shape), scores_shape) == scores_shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} has shape {shape(mask)}, but scores are {scores_shape}: "
            f"T={scores_shape[-2]} queries, S={scores_shape[-1]} keys; it must broadcast to them"
        )
