"""The backward pass of scaled dot-product attention, one block of scores at a time. Arguments have been validated.

The weights of a block are recomputed from its queries and keys, so the forward pass does not have to save anything. The
dQ of a block is complete because the block holds whole rows; its dK and dV are added to those of the other blocks.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values.
"""

from types import ModuleType
from typing import Protocol

from attnlib._arrays import Array, at_least_float32, namespace, swapaxes
from attnlib._head_groups import group_heads, in_groups, is_grouped
from attnlib._score_blocks import blocks, mask_within_window
from attnlib._spec import AttentionSpec, WindowSpec

Gradients = tuple[Array, Array, Array]  # of query, key and value


class Kernels(Protocol):
    """What the backward pass needs of a library's kernels."""

    def softmax(self, x: Array, axis: int, /) -> Array:
        """Return the softmax along an axis; 0 where all scores are -inf."""

    def masked(self, scores: Array, mask: Array, /) -> Array:
        """Return the scores with a mask applied."""

    def is_tracked(self, *arrays: Array) -> bool:
        """Tell whether anything tracks the operations, so that nothing may be overwritten."""

    def binding_window(self, window: WindowSpec, query: Array, key: Array, /) -> WindowSpec:
        """Return the window without the limits that exclude no key."""


def backward(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    spec: AttentionSpec,
    kernels: Kernels,
    d_lse: Array | None = None,
) -> Gradients:
    """Return the gradients of query, key and value, each with the shape and dtype of its input.

    ``d_lse`` is the gradient with respect to the log-sums ``(..., H, T, 1)``; if given, its contribution is added.
    """
    inputs, mask = (query, key, value), spec.mask
    if is_grouped(query, key):
        grad, d_lse = (x if x is None else in_groups(x, key.shape[-3]) for x in (grad, d_lse))
        query, key, value, mask = group_heads(query, key, value, mask)
    xp = namespace(query)
    spec = AttentionSpec(spec.scale, mask, kernels.binding_window(spec.window, query, key), spec.softcap)
    if kernels.is_tracked(grad, query, key, value):
        mask = mask_within_window(mask, query.shape[-2], key.shape[-2], spec.window, query)
        found = gradients(grad, query, key, value, mask, spec, d_lse, kernels)
    else:
        found = _in_blocks(grad, query, key, value, spec, d_lse, kernels)
    d_query, d_key, d_value = (
        xp.astype(xp.reshape(_sum_to(d, x.shape, xp), given.shape), given.dtype, copy=False)
        for d, x, given in zip(found, (query, key, value), inputs, strict=True)
    )
    return d_query, d_key, d_value


def gradients(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    spec: AttentionSpec,
    d_lse: Array | None,
    kernels: Kernels,
) -> Gradients:
    """Return the gradients of a single block, not yet summed over the dimensions that were broadcast.

    ``mask`` includes the window.
    """
    xp, scale = namespace(query), spec.scale
    work = at_least_float32(xp, query.dtype)
    d_out, q, k, v = (xp.astype(x, work, copy=False) for x in (grad, query, key, value))
    q = scale * q  # so that dK includes the scale too
    weights, slope = _weights(q, k, mask, spec.softcap, kernels)  # (..., T, S)
    d_value = swapaxes(weights, -1, -2) @ d_out  # (..., S, D_v)
    d_scores = _through_softmax(weights, d_out @ swapaxes(v, -1, -2), d_lse, xp)  # (..., T, S)
    if slope is not None:
        d_scores = d_scores * slope
    d_query = scale * (d_scores @ k)  # (..., T, D)
    d_key = swapaxes(d_scores, -1, -2) @ q  # (..., S, D)
    return d_query, d_key, d_value


def _weights(
    q: Array, k: Array, mask: Array | None, softcap: float | None, kernels: Kernels
) -> tuple[Array, Array | None]:
    """Return the weights and, if there is a softcap, its derivative for each score."""
    scores, slope = q @ swapaxes(k, -1, -2), None
    if softcap is not None:
        capped = namespace(q).tanh(scores / softcap)
        scores, slope = softcap * capped, 1 - capped * capped
    if mask is not None:
        scores = kernels.masked(scores, mask)
    return kernels.softmax(scores, -1), slope


def _through_softmax(weights: Array, d_weights: Array, d_lse: Array | None, xp: ModuleType) -> Array:
    """Return the gradient of the scores, given those of the weights and of the log-sums."""
    row_sum = xp.sum(weights * d_weights, axis=-1, keepdims=True)
    d_weights = d_weights - (row_sum if d_lse is None else row_sum - d_lse)
    return weights * d_weights


def _in_blocks(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    spec: AttentionSpec,
    d_lse: Array | None,
    kernels: Kernels,
) -> Gradients:
    """Add up the gradients of all blocks."""
    xp = namespace(query)
    work = at_least_float32(xp, query.dtype)
    d_query, d_key, d_value = (xp.zeros_like(x, dtype=work) for x in (query, key, value))
    for block in blocks(tuple(grad.shape[:-2]), query.shape[-2], key.shape[-2], spec.window, query):
        d_out, q, k, v = block.of_queries(grad), block.of_queries(query), block.of_keys(key), block.of_keys(value)
        d_rows = d_lse if d_lse is None else block.of_queries(d_lse)
        found = gradients(d_out, q, k, v, block.mask(spec.mask), spec, d_rows, kernels)
        totals = block.of_queries(d_query), block.of_keys(d_key), block.of_keys(d_value)
        for total, part in zip(totals, found, strict=True):
            total += _sum_to(part, total.shape, xp)
        del found, part  # frees the memory before the next block needs it
    return d_query, d_key, d_value


def _sum_to(grad: Array, wanted: tuple[int, ...], xp: ModuleType) -> Array:
    """Sum a gradient over the dimensions along which its array was broadcast."""
    ahead = grad.ndim - len(wanted)
    axes = [axis for axis in range(grad.ndim) if axis < ahead or wanted[axis - ahead] != grad.shape[axis]]
    return xp.reshape(xp.sum(grad, axis=tuple(axes), keepdims=True), tuple(wanted)) if axes else grad
