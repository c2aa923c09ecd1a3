"""Attention by torch's fused kernel, which never holds the scores of all pairs. Arguments have been validated.

Dimensions: B batch, H heads, T queries, S keys, D width of queries and keys, D_v of values.
"""

from itertools import repeat

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib._arrays import at_least_float32
from attnlib._head_groups import batch_shape, flatten_batch, is_grouped
from attnlib._lengths import FEW_KEYS
from attnlib._score_blocks import MAX_ROWS, mask_within_window, row_blocks
from attnlib._spec import AttentionSpec, WindowSpec
from attnlib._torch_lower_right import attend_at_the_end, is_at_the_end
from attnlib._torch_second_derivatives import explain_second_derivative
from attnlib._torch_tracing import are_fixed, in_forward_mode, is_traced
from attnlib.masks import combine_masks

GPU_ROWS_FACTOR = 8  # times as many queries in a block on a GPU, where launching a kernel takes long
MAX_COMPILED_BLOCKS = 16  # in a compiled graph: every block adds to the time that compiling takes
MAX_OFFSET = 2**61  # under a window: a block's own offset may be larger, but must not exceed 2**62


def can_fuse(key: Tensor, spec: AttentionSpec) -> bool:
    """Tell whether torch's kernel computes what is needed.

    It has no softcap, and returns neither weights nor log-sums. Without any keys, in half precision on a CPU, it
    returns uninitialized memory. It has no derivatives in forward mode. (``_torch_fast_path.sdpa`` does not call this
    function: there, torch's kernel raises an error in forward mode, and the call is left to this path.)
    """
    if spec.softcap is not None or spec.need_weights or spec.need_lse or in_forward_mode():
        return False
    return is_traced() or key.shape[-2] != 0


def attend(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec) -> Tensor:
    """Return the context, for any leading dimensions. The mask has passed :func:`mask_for_kernel`.

    Leading dimensions are reshaped to (B, H): only for those does torch have a fused kernel.
    """
    if query.ndim == key.ndim == value.ndim == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]:
        return _attend(query, key, value, spec, grouped=False)
    grouped = is_grouped(query, key)
    lead = batch_shape(query, key, value)
    *batch, H = lead or (1,)
    mask = spec.mask
    if mask is not None and mask.ndim > 3 and len(batch) > 1:
        mask = flatten_batch(mask.expand(*batch, H, *mask.shape[-2:]), batch, H)
    q = flatten_batch(query, batch, H)
    k, v = (flatten_batch(x, batch, x.shape[-3] if grouped else H) for x in (key, value))
    out = _attend(q, k, v, spec._replace(mask=mask), grouped)
    return out.reshape(*lead, *out.shape[-2:])


def _attend(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, grouped: bool) -> Tensor:
    """Return the context for four dimensions."""
    if is_at_the_end(query, key, value, spec, grouped):
        return attend_at_the_end(query, key, value, spec, grouped)
    kernel = _attend_by_rows if prefer_row_blocks(query, key, spec) else _call_kernel
    return kernel(query, key, value, spec, grouped)


def prefer_row_blocks(query: Tensor, key: Tensor, spec: AttentionSpec) -> bool:
    """Tell whether to call the kernel for some queries at a time, each time with only the keys in their reach.

    Under a window, this leaves out most scores, and a call never needs a mask (T, S).
    """
    if spec.window.is_unlimited() or is_causal_alone(spec):
        return False
    T, S, offset = query.shape[-2], key.shape[-2], spec.window.offset
    if not are_fixed(T, S, offset):
        return False
    return T > 0 and max(T, S) > max_rows(query) and abs(offset) <= MAX_OFFSET


def max_rows(query: Tensor) -> int:
    """Return the maximum number of queries in a block under a window."""
    rows = MAX_ROWS if query.is_cpu else MAX_ROWS * GPU_ROWS_FACTOR
    return max(rows, -(-query.shape[-2] // MAX_COMPILED_BLOCKS)) if is_traced() else rows


def is_causal_alone(spec: AttentionSpec) -> bool:
    """Tell whether the kernel's own causal mask is all that is needed."""
    if spec.mask is not None or not spec.window.is_causal():
        return False
    return True if spec.scale > 0 else False  # noqa: SIM210 (a bool, even if the scale is symbolic)


def _attend_by_rows(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, grouped: bool) -> Tensor:
    """Return the context from blocks of queries. Autograd needs less time and memory for a split than for slices."""
    T, S, rows = query.shape[-2], key.shape[-2], max_rows(query)
    masks = repeat(spec.mask) if spec.mask is None or spec.mask.shape[-2] == 1 else torch.split(spec.mask, rows, -2)
    blocks = zip(torch.split(query, rows, -2), masks, row_blocks(T, S, spec.window, rows), strict=False)
    found = []
    known, reached = None, None
    for q, rows_of_mask, (_, keys, window) in blocks:
        excluded = None
        if keys.start == keys.stop:  # the kernel needs a key, even if a mask excludes it
            keys, window, excluded = slice(0, 1), WindowSpec(), key.new_zeros(1, 1, dtype=torch.bool)
        mask = combine_masks(_of_keys(rows_of_mask, keys), excluded)
        block = AttentionSpec(spec.scale, mask, window, dropout_p=spec.dropout_p)
        if not is_causal_alone(block):
            rule = q.shape[-2], keys.stop - keys.start, window
            if rule != known:  # all but the first and the last blocks under a window share one mask
                known, reached = rule, mask_within_window(None, *rule, query)
            block = block._replace(mask=combine_masks(mask, reached), window=WindowSpec())
        found.append(_call_kernel(q, key[..., keys, :], value[..., keys, :], block, grouped))
    return torch.cat(found, dim=-2)


def _of_keys(mask: Tensor | None, keys: slice) -> Tensor | None:
    """Return the part of a mask for some keys."""
    if mask is None or mask.shape[-1] == 1:
        return mask
    return mask[..., keys] if mask.is_cpu else mask[..., keys].clone()  # kernels for GPUs may need it aligned in memory


def _call_kernel(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, grouped: bool) -> Tensor:
    """Call the kernel for four dimensions. A second derivative of the result raises an error that says what to do."""
    mask, causal = spec.mask, is_causal_alone(spec)
    if not causal and not spec.window.is_unlimited():
        mask = mask_within_window(mask, query.shape[-2], key.shape[-2], spec.window, query)
    if mask is None and needs_mask(key):
        mask, causal = zero_mask(query, key, causal), False
    out = F.scaled_dot_product_attention(
        query, key, value, mask, spec.dropout_p, causal, scale=spec.scale, enable_gqa=grouped
    )
    if out.requires_grad and not is_traced():
        explain_second_derivative(out)
    return out


def mask_for_kernel(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """Return the mask with at least two dimensions and in a dtype that torch's kernel handles correctly.

    Besides bool and the queries' own dtype, that is float32 for half precision. With float64 queries, the kernel
    misreads a float32 mask.
    """
    if mask is None:
        return None
    if mask.ndim < 2:
        mask = mask.reshape(1, -1)
    work = at_least_float32(torch, query.dtype)
    return mask if mask.dtype in (torch.bool, work, query.dtype) else mask.to(work)


def needs_mask(key: Tensor) -> bool:
    """Tell whether torch's kernel would return 0, not nan, for a query that contains nan unless it is given a mask.

    On the CPU, the kernel processes 16 scores at a time. If there are fewer and all are nan, it takes their maximum to
    be -inf, as if all were masked out.
    """
    return key.is_cpu and not is_traced() and key.shape[-2] < FEW_KEYS


def zero_mask(query: Tensor, key: Tensor, causal: bool) -> Tensor:
    """Return an additive mask of zeros, with -inf above the diagonal if the attention is causal."""
    if not causal:
        return query.new_zeros(1, 1)
    T, S = query.shape[-2], key.shape[-2]
    return query.new_full((T, S), -torch.inf).triu(1)
