"""The backward pass of scaled dot-product attention, one block of scores at a time. Arguments have been validated.

The weights of a block are recomputed from its queries and keys, so the forward pass does not have to save anything. The
dQ of a block is complete because the block holds whole rows; its dK and dV are added to those of the other blocks.

Dimensions: H heads of all sequences, T queries, S keys, D width of queries and keys, D_v of values.
"""

from types import ModuleType

import numpy as np

from attnlib._arrays import Array, array_namespace, at_least_float32, is_torch, kernel, swapaxes
from attnlib._blocks import Reach, blocks, grouped, in_groups, within_reach
from attnlib.softmax import softmax

Three = tuple[Array, Array, Array]


def backward(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    scale: float,
    softcap: float | None,
    reach: Reach,
    enable_gqa: bool,
    d_lse: Array | None = None,
) -> Three:
    """Return the gradients of query, key and value, each with the shape and dtype of its input.

    ``d_lse`` is the gradient with respect to the log-sums ``(..., H, T, 1)``; if given, its contribution is added.
    """
    inputs = query, key, value
    if enable_gqa:
        grad, d_lse = (x if x is None else in_groups(x, key.shape[-3]) for x in (grad, d_lse))
        query, key, value, mask = grouped(query, key, value, mask)
    xp = array_namespace(query=query)
    if not is_torch(query):  # whose compiler may keep the sizes symbolic
        reach = reach.binding(query.shape[-2], key.shape[-2])
    if _may_overwrite(grad, query, key, value):
        found = _in_blocks(grad, query, key, value, mask, scale, softcap, reach, d_lse, xp)
    else:
        mask = within_reach(mask, query.shape[-2], key.shape[-2], reach, query)
        found = gradients(grad, query, key, value, mask, scale, softcap, d_lse, xp)
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
    scale: float,
    softcap: float | None,
    d_lse: Array | None,
    xp: ModuleType,
) -> Three:
    """Return the gradients of a single block, not yet summed over the dimensions that were broadcast."""
    work = at_least_float32(xp, query.dtype)
    d_out, q, k, v = (xp.astype(x, work, copy=False) for x in (grad, query, key, value))
    q = scale * q  # so that dK includes the scale too
    weights, slope = _weights(q, k, mask, softcap, xp)  # (..., T, S)
    d_value = swapaxes(weights, -1, -2) @ d_out  # (..., S, D_v)
    d_scores = _through_softmax(weights, d_out @ swapaxes(v, -1, -2), d_lse, xp)  # (..., T, S)
    if slope is not None:
        d_scores = d_scores * slope
    d_query = scale * (d_scores @ k)  # (..., T, D)
    d_key = swapaxes(d_scores, -1, -2) @ q  # (..., S, D)
    return d_query, d_key, d_value


def _weights(
    q: Array, k: Array, mask: Array | None, softcap: float | None, xp: ModuleType
) -> tuple[Array, Array | None]:
    """Return the weights and, if there is a softcap, its derivative for each score."""
    scores, slope = q @ swapaxes(k, -1, -2), None
    if softcap is not None:
        capped = xp.tanh(scores / softcap)
        scores, slope = softcap * capped, 1 - capped * capped
    if mask is not None:
        scores = kernel(q).masked(scores, mask)
    return softmax(scores), slope


def _through_softmax(weights: Array, d_weights: Array, d_lse: Array | None, xp: ModuleType) -> Array:
    """Return the gradient of the scores, given those of the weights and of the log-sums."""
    of_row = xp.sum(weights * d_weights, axis=-1, keepdims=True)
    d_weights = d_weights - (of_row if d_lse is None else of_row - d_lse)
    return weights * d_weights


def _in_blocks(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    scale: float,
    softcap: float | None,
    reach: Reach,
    d_lse: Array | None,
    xp: ModuleType,
) -> Three:
    """Add up the gradients of all blocks."""
    work = at_least_float32(xp, query.dtype)
    d_query, d_key, d_value = (xp.zeros_like(x, dtype=work) for x in (query, key, value))
    for block in blocks(tuple(grad.shape[:-2]), query.shape[-2], key.shape[-2], reach, query):
        d_out, q, k, v = block.of_queries(grad), block.of_queries(query), block.of_keys(key), block.of_keys(value)
        d_rows = d_lse if d_lse is None else block.of_queries(d_lse)
        found = gradients(d_out, q, k, v, block.mask(mask), scale, softcap, d_rows, xp)
        totals = block.of_queries(d_query), block.of_keys(d_key), block.of_keys(d_value)
        for total, part in zip(totals, found, strict=True):
            total += _sum_to(part, total.shape, xp)
        del found, part  # frees the memory before the next block needs it
    return d_query, d_key, d_value


def _may_overwrite(*arrays: Array) -> bool:
    """Tell whether arrays can be overwritten and sizes compared: nothing tracks the operations."""
    if is_torch(arrays[0]):
        return not kernel(arrays[0]).are_followed(*arrays)
    return isinstance(arrays[0], np.ndarray)


def _sum_to(grad: Array, wanted: tuple[int, ...], xp: ModuleType) -> Array:
    """Sum a gradient over the dimensions along which its array was broadcast."""
    ahead = grad.ndim - len(wanted)
    axes = [axis for axis in range(grad.ndim) if axis < ahead or wanted[axis - ahead] != grad.shape[axis]]
    return xp.reshape(xp.sum(grad, axis=tuple(axes), keepdims=True), tuple(wanted)) if axes else grad
