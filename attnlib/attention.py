"""Attention is one idea: score, softmax, weighted sum.

Dimensions: T queries, S keys and values, D width of queries and keys, D_v width of values.
"""

from collections.abc import Callable

from attnlib import _numpy_fast_path
from attnlib._arrays import (
    Array,
    array_namespace,
    broadcast_shape,
    require_broadcast,
    require_mask,
    require_sequence,
    shape,
)
from attnlib._dispatch import kernels_for
from attnlib._nested import require_padded
from attnlib._types import ArrayT
from attnlib.sdpa import scaled_dot_product_attention as scaled_dot_product_attention
from attnlib.sdpa import scaled_dot_product_attention_backward as scaled_dot_product_attention_backward
from attnlib.similarity import scaled_dot
from attnlib.softmax import softmax as softmax

Score = Callable[[ArrayT, ArrayT], ArrayT]


def attention(
    query: ArrayT, key: ArrayT, value: ArrayT, *, score: Score[ArrayT] = scaled_dot, mask: ArrayT | None = None
) -> tuple[ArrayT, ArrayT]:
    r"""Average the values, each weighted by how well its key matches the query.

    .. math:: \alpha_{ij} = \operatorname{softmax}_j(\mathrm{score}(q_i, k_j)), \qquad
              c_i = \sum_j \alpha_{ij} v_j

    Args:
        query: ``(..., T, D)``.
        key: ``(..., S, D)``.
        value: ``(..., S, D_v)``. Leading dimensions of the three broadcast.
        score: a similarity ``(query, key) -> (..., T, S)``, for example :func:`attnlib.dot`, or your own. Bind
            parameters first: ``functools.partial(gaussian, bandwidth=0.5)``.
        mask: broadcasts to the scores ``(..., T, S)``. Boolean: True where the query **may attend** to the key.
            Floating point: added to the scores.

    Returns:
        ``(context, weights)``: context ``(..., T, D_v)`` and weights ``(..., T, S)``, whose rows sum to 1. A query
        that may attend to nothing has weights 0 and context 0, with finite gradients. Scores have the inputs' dtype:
        beyond its range (65504 in float16) they become infinite, and a row of -inf counts as nothing to attend to.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, ``score`` is not callable, or ``mask`` is
            neither boolean nor floating point.
        ValueError: an array has fewer than 2 dimensions, key and value differ in length S, ``score`` returns
            a shape other than ``(..., T, S)``, or ``mask`` does not broadcast to it.

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
    if score is scaled_dot and mask is None and _numpy_fast_path.fits(query, key, value, causal=False):
        return _numpy_fast_path.attend(query, key, value, query.shape[-1] ** -0.5, causal=False)
    array_namespace(query=query, key=key, value=value)
    require_padded("attention", query=query, key=key, value=value)
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
        scores = kernels_for(scores).masked(scores, mask)
    weights = softmax(scores)  # (..., T, S)
    return weights @ value, weights


def self_attention(
    x: ArrayT, *, score: Score[ArrayT] = scaled_dot, mask: ArrayT | None = None
) -> tuple[ArrayT, ArrayT]:
    r"""Let every position of a sequence attend to all positions, itself included, without parameters.

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


def _checked_scores(scores: Array, query: Array, key: Array) -> Array:
    array_namespace(query=query, scores=scores)
    leading = broadcast_shape(tuple(query.shape[:-2]), tuple(key.shape[:-2]))
    wanted = (*leading, query.shape[-2], key.shape[-2])
    if tuple(scores.shape) != wanted:
        raise ValueError(
            f"score returned shape {shape(scores)} for query {shape(query)} and key {shape(key)}, but "
            f"{wanted} is needed: T={query.shape[-2]} queries, S={key.shape[-2]} keys"
        )
    return scores
