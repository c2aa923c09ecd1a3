"""Kernels for JAX and every other library that follows the array API. Arguments have been validated.

These kernels use only functions of the standard, overwrite nothing, and never branch on values, so that JAX can trace
all of them. They never compute nan from a row of nothing but -inf: even if that nan were masked out later, its gradient
would still be nan.

Dimensions: H heads, T queries, S keys, D width of queries and keys, D_v of values.
"""

import math
from types import ModuleType

from attnlib._arrays import Array, at_least_float32, describe_type, namespace
from attnlib._head_groups import group_heads, is_grouped
from attnlib._score_blocks import mask_within_window
from attnlib._spec import AttentionSpec, WindowSpec


def softmax(x: Array, axis: int) -> Array:
    """Return the softmax along ``axis``, computed in at least float32; 0, with gradient 0, if all scores are -inf."""
    xp = namespace(x)
    weights, _ = _normalized(xp.astype(x, at_least_float32(xp, x.dtype)), axis, xp)
    return xp.astype(weights, x.dtype)


def masked(scores: Array, mask: Array) -> Array:
    """Return the scores with a boolean mask (True = keep) applied or a float mask added."""
    xp = namespace(scores)
    if mask.dtype == xp.bool:
        return xp.where(mask, scores, -math.inf)
    return scores + xp.astype(mask, scores.dtype)


def sdpa(
    query: Array,
    key: Array,
    value: Array,
    spec: AttentionSpec,
) -> tuple[Array, Array, Array]:
    """Return the context ``(..., T, D_v)``, the weights ``(..., T, S)`` and the log-sums ``(..., T)``.

    All three are always computed: JAX's compiler removes those that are not used.
    """
    if spec.dropout_p:
        raise NotImplementedError(
            f"dropout_p is {spec.dropout_p}, but query is {describe_type(query)}, and the array API cannot draw random "
            "numbers: pass return_weights=True, drop weights with the library's own generator, and multiply the result "
            "by value"
        )
    xp = namespace(query)
    T, S = query.shape[-2], key.shape[-2]
    mask = mask_within_window(spec.mask, T, S, spec.window.binding(T, S), query)
    work = at_least_float32(xp, query.dtype)
    q, k, v = (xp.astype(x, work) for x in (query, key, value))
    if in_groups := is_grouped(query, key):
        q, k, v, mask = group_heads(q, k, v, mask)
    scores = (spec.scale * q) @ xp.matrix_transpose(k)
    if spec.softcap is not None:
        scores = spec.softcap * xp.tanh(scores / spec.softcap)
    weights, lse = _normalized(scores if mask is None else masked(scores, mask), -1, xp)
    out = weights @ v
    weights = xp.broadcast_to(weights, (*out.shape[:-1], S))  # the values may have a larger batch
    lse = xp.broadcast_to(lse[..., 0], out.shape[:-1])
    lead = (*out.shape[:-4], query.shape[-3]) if in_groups else out.shape[:-2]
    results = ((out, (T, v.shape[-1])), (weights, (T, S)), (lse, (T,)))
    return tuple(xp.astype(xp.reshape(x, (*lead, *own)), query.dtype) for x, own in results)


def is_tracked(*arrays: Array) -> bool:
    """Tell whether anything may track the operations, as JAX does."""
    return True


def binding_window(window: WindowSpec, query: Array, key: Array) -> WindowSpec:
    """Return the window without the limits that exclude no key."""
    return window.binding(query.shape[-2], key.shape[-2])


def _normalized(scores: Array, axis: int, xp: ModuleType) -> tuple[Array, Array]:
    """Return the softmax along an axis, and the logarithm of the sum of the exponentials with size 1 along that axis.

    If all scores are -inf, or there are none, the weights are 0 and the logarithm is -inf, both with gradient 0.
    """
    if scores.shape[axis]:
        top = xp.max(scores, axis=axis, keepdims=True)
    else:  # an empty axis has no maximum
        top = xp.sum(scores, axis=axis, keepdims=True) - math.inf
    nothing = top == -math.inf
    top = xp.where(nothing, 0.0, top)  # -inf minus -inf would be nan
    powers = xp.exp(scores - top)
    total = xp.where(nothing, 1.0, xp.sum(powers, axis=axis, keepdims=True))
    return powers / total, xp.where(nothing, -math.inf, xp.log(total) + top)
