"""The torch kernels: imported only when a torch tensor arrives. Arguments have been validated."""

from itertools import product
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from attnlib._arrays import at_least_float32, broadcast_shape, is_autocast_enabled
from attnlib._backward import backward
from attnlib._blocks import Reach, blocks, grouped, most_scores, within_reach
from attnlib._extras import explain_missing
from attnlib._lengths import FEW_KEYS, binding_sides
from attnlib.cells import rnn_cell

with explain_missing("attnlib with torch"):
    import array_api_compat.torch

ARRAY_API = array_api_compat.torch  # torch under the names of the array API
LONG = 2**17  # scores of a head from which a loop over the heads is faster than one product of them all
ROWS = 512  # of scores that are made, used and left while they lie in the cache


def softmax(x: Tensor, axis: int) -> Tensor:
    """Return the softmax along ``axis``, computed in at least float32; 0, with gradient 0, if all scores are -inf."""
    dtype = at_least_float32(torch, x.dtype)
    if _is_eager_on_cpu(x) and x.numel():
        weights = torch.softmax(x, dim=axis, dtype=dtype)
        first = weights.select(axis, 0)
        if torch.equal(first, first):  # no nan: a row of -inf would consist of nan
            return weights if dtype == x.dtype else weights.to(x.dtype)
    empty = (x == -torch.inf).all(dim=axis, keepdim=True)
    # Empty rows are replaced before the softmax, not after it: a nan that is masked out later still has a nan gradient.
    weights = torch.softmax(x.masked_fill(empty, 0.0), dim=axis, dtype=dtype)
    return weights.masked_fill(empty, 0.0).to(x.dtype)


def _is_eager_on_cpu(x: Tensor) -> bool:
    """Tell whether operations run immediately, on the CPU and without tracing, so that values can be read.

    On other devices, reading a value would make the program wait. Under torch.compile, torch.func, make_fx or
    jit.trace, the recorded operations must be valid for other values too.
    """
    if type(x) not in (Tensor, Parameter) or not x.is_cpu or is_traced():
        return False
    modes = torch._C._len_torch_dispatch_stack()
    return not (modes or torch._C._functorch.is_functorch_wrapped_tensor(x))


def encode(
    cell: object,
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """Return the states (..., T, D_h) and the last real ones (..., D_h) by torch's own loop; None if it is unsuitable.

    torch runs the steps from C++, in a third of the time. Use it only on the CPU, where it has second derivatives.
    """
    given = [z for z in (x, h, w_ih, w_hh, b_ih, b_hh) if z is not None]
    if is_autocast_enabled(x) or not all(map(_is_eager_on_cpu, given)) or not (x.numel() and h.numel()):
        return None
    if torch.finfo(x.dtype).bits < 32:
        return None
    biases = [w_ih.new_zeros(w_ih.shape[0]) if b is None else b for b in (b_ih, b_hh)] if len(given) > 4 else []
    steps = x.expand(*h.shape[:-1], *x.shape[-2:]).reshape(-1, *x.shape[-2:])
    loop = torch.rnn_tanh if cell is rnn_cell else torch.gru
    weights = [w_ih, w_hh, *biases]
    states, last = loop(steps, h.reshape(1, -1, h.shape[-1]), weights, bool(biases), 1, 0.0, False, False, True)
    states = states.reshape(*h.shape[:-1], x.shape[-2], h.shape[-1])
    if real is None:
        return states, last.reshape(h.shape)
    count = real.sum(dim=-2)  # (..., 1)
    at = (count - 1).clamp(min=0).unsqueeze(-2).expand(*h.shape[:-1], 1, h.shape[-1])
    last = torch.where(count > 0, states.gather(-2, at).squeeze(-2), h)
    return torch.where(real, states, torch.zeros_like(states)), last


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the scores with a boolean mask (True = keep) applied or a float mask added."""
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask.to(scores.dtype)


def sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    left: int | None,
    right: int | None,
    offset: int,
    scale: float,
    softcap: float | None,
    want_weights: bool,
    want_lse: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the context, and the weights and log-sums if wanted: by one fused operation if they are not."""
    if mask is not None:
        mask = _mask_for_kernel(mask, query)
    step_by_step = softcap is not None or want_weights or want_lse or _has_no_keys(key)
    left, right = _binding_sides(query, key, left, right, offset)
    causal = False
    if step_by_step and _go_by_blocks(query, key, value, mask, dropout_p, softcap, want_weights):
        reach = Reach(left, right, offset)
        if are_followed(query, key, value):
            given = query, key, value, mask, scale, softcap, reach, want_lse
            out, lse = _Blocks.apply(*given)  # type: ignore[no-untyped-call]
            return out, None, lse
        return _block_by_block(query, key, value, mask, dropout_p, scale, softcap, reach, want_weights, want_lse)
    if not step_by_step and mask is None and left is None and right == 0 and offset == 0 and scale > 0:
        causal = True
    elif not (left is None and right is None):
        mask = within_reach(mask, query.shape[-2], key.shape[-2], Reach(left, right, offset), query)
    if step_by_step:
        if mask is None and not (dropout_p or softcap or want_lse) and _worth_a_loop(query, key, value):
            return *_head_by_head(query, key, value, scale), None
        return _step_by_step(query, key, value, mask, dropout_p, scale, softcap, want_lse)
    if mask is None and _has_few_keys(query, key):
        mask, causal = _mask_of_zeros(query, key, causal), False
    if query.ndim == key.ndim == value.ndim == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]:
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, causal, scale=scale), None, None
    return _fused(query, key, value, mask, dropout_p, causal, scale), None, None


def _mask_for_kernel(mask: Tensor, query: Tensor) -> Tensor:
    """Return the mask with at least two dimensions and in a dtype that torch's kernel handles correctly.

    Besides bool and the queries' own dtype, that is float32 for half precision. With float64 queries, the kernel
    misreads a float32 mask.
    """
    if mask.ndim < 2:
        mask = mask.reshape(1, -1)
    work = at_least_float32(torch, query.dtype)
    return mask if mask.dtype in (torch.bool, work, query.dtype) else mask.to(work)


def _has_no_keys(key: Tensor) -> bool:
    """Tell whether there are no keys: in half precision, torch's CPU kernel then returns uninitialized memory."""
    return not is_traced() and key.shape[-2] == 0


def _has_few_keys(query: Tensor, key: Tensor) -> bool:
    """Tell whether torch's kernel would return 0, not nan, for a query that contains nan: on the CPU, without a mask.

    The kernel processes 16 scores at a time. If there are fewer and all are nan, it takes their maximum to be -inf, as
    if all were masked out.
    """
    return not is_traced() and key.shape[-2] < FEW_KEYS and query.device.type == "cpu"


def _mask_of_zeros(query: Tensor, key: Tensor, causal: bool) -> Tensor:
    """Return an additive mask of zeros, with -inf above the diagonal if the attention is causal."""
    if not causal:
        return query.new_zeros(1, 1)
    T, S = query.shape[-2], key.shape[-2]
    return query.new_full((T, S), -torch.inf).triu(1)


def sdpa_of_few_keys(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    """Return the context of queries, keys and values (B, H, T, D), and nothing else, when there are few keys."""
    return F.scaled_dot_product_attention(query, key, value, _mask_of_zeros(query, key, is_causal))


def small_sdpa(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> tuple[Tensor, Tensor] | None:
    """Return context and weights for (B, H, T, D), or None if there are many scores or a case needs special treatment.

    With few scores, most of the time goes into launching operations, so this function uses as few as possible.
    """
    (T, D), S = query.shape[2:], key.shape[2]
    if is_traced() or is_autocast_enabled(query) or not query.device == key.device == value.device:
        return None
    if not 0 < query.numel() * S < LONG * D or torch.finfo(query.dtype).bits < 32:
        return None
    scores = (query * D**-0.5) @ key.mT
    if is_causal:
        scores = scores.masked_fill(scores.new_ones((T, S), dtype=torch.bool).triu_(1), -torch.inf)
    weights = torch.softmax(scores, -1)
    return weights @ value, weights


def _binding_sides(
    query: Tensor, key: Tensor, left: int | None, right: int | None, offset: int
) -> tuple[int | None, int | None]:
    """Return the sides of the window that forbid any key, or might, and None for the others."""
    if left is None and right is None:
        return None, None
    return binding_sides(left, right, offset, query.shape[-2], key.shape[-2], _holds if is_traced() else bool)


def _holds(comparison: bool) -> bool:
    """Tell whether a comparison holds for all values of sizes that are symbolic; ``bool`` would fix those sizes."""
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return statically_known_true(comparison)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, causal: bool, scale: float
) -> Tensor:
    """Use torch's kernel for any leading dimensions: it is fused for (B, H, T, D) alone, so they are seen as such."""
    grouped = _is_grouped(query, key)
    *batch, H = _lead(query, key, value)

    def seen(x: Tensor, heads: int) -> Tensor:
        return x.expand(*batch, heads, *x.shape[-2:]).reshape(prod(batch), heads, *x.shape[-2:])

    if mask is not None and mask.ndim > 3 and len(batch) > 1:
        mask = seen(mask.expand(*batch, H, *mask.shape[-2:]), H)
    q = seen(query, H)
    k, v = (seen(x, x.shape[-3] if grouped else H) for x in (key, value))
    out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal, scale=scale, enable_gqa=grouped)
    return out.reshape(*batch, *([H] if max(query.ndim, key.ndim, value.ndim) > 2 else []), *out.shape[-2:])


def _step_by_step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    scale: float,
    softcap: float | None,
    want_lse: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Form the scores and the weights, which a fused operation never does."""
    dtype = at_least_float32(torch, query.dtype)
    q, k, v = query.to(dtype), key.to(dtype), value.to(dtype)
    if in_groups := _is_grouped(query, key):
        q, k, v, mask = grouped(q, k, v, mask)
    scores = _scaled(q, scale) @ k.transpose(-1, -2)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores, nothing = _masked_scores(scores, mask)
    lse = torch.logsumexp(scores, dim=-1) if want_lse else None
    weights = _softmax_of_own(scores)
    if nothing is not None:
        weights = weights.masked_fill(nothing, 0.0)
        lse = lse if lse is None else lse.masked_fill(nothing.squeeze(-1), -torch.inf)
    weights = F.dropout(weights, dropout_p) if dropout_p else weights
    out = weights @ v
    if in_groups:
        out, weights = out.flatten(-4, -3), weights.flatten(-4, -3)
        lse = lse if lse is None else lse.flatten(-3, -2)
    weights = weights.expand(*out.shape[:-1], weights.shape[-1])  # the values may have brought more batches
    lse = lse if lse is None else lse.expand(out.shape[:-1])
    result = out.dtype if is_autocast_enabled(query) else query.dtype
    return out.to(result), weights.to(result), lse if lse is None else lse.to(result)


def _masked_scores(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Apply the mask, but to the queries that may attend to nothing; return which those are too.

    They go through the softmax without their mask: a nan that is masked out later still has a nan gradient.
    """
    if mask is None:
        return scores, None
    if mask.dtype == torch.bool:
        nothing = (~mask).all(dim=-1, keepdim=True)
        return scores.masked_fill(~(mask | nothing), -torch.inf), nothing
    nothing = (mask == -torch.inf).all(dim=-1, keepdim=True)
    return scores + mask.masked_fill(nothing, 0.0), nothing


def _go_by_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    softcap: float | None,
    want_weights: bool,
) -> bool:
    """Tell whether to compute block by block: there are many scores, and they need not all be held.

    They must be held where they can be overwritten with the requested weights; where autograd differentiates through
    dropout, the weights or the mask; and under torch.func, forward-mode differentiation or a compiler.
    """
    given = [x for x in (query, key, value, mask) if x is not None]
    if is_traced() or any(map(_is_transformed, given)):
        return False
    if want_weights and softcap is None and torch.finfo(query.dtype).bits >= 32 and not _followed(query):
        return False
    if are_followed(*given) and (dropout_p or want_weights or (mask is not None and mask.requires_grad)):
        return False
    return prod((*_lead(query, key, value), query.shape[-2], key.shape[-2])) > most_scores(query)


def _is_transformed(x: Tensor) -> bool:
    """Tell whether torch.func or forward-mode differentiation tracks a tensor."""
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        return True
    return forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]


def _block_by_block(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    scale: float,
    softcap: float | None,
    reach: Reach,
    want_weights: bool,
    want_lse: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Run :func:`_step_by_step` on one block of scores after another."""
    T, S = query.shape[-2], key.shape[-2]
    lead = heads = _lead(query, key, value) if max(query.ndim, key.ndim, value.ndim) > 2 else ()
    dtype = _result_dtype(query)
    if _is_grouped(query, key):
        query, key, value, mask = grouped(query, key, value, mask)
        heads = (*lead[:-1], *query.shape[-4:-2])
    out = query.new_zeros((*heads, T, value.shape[-1]), dtype=dtype)
    weights = query.new_zeros((*heads, T, S), dtype=dtype) if want_weights else None
    lse = query.new_full((*heads, T, 1), -torch.inf, dtype=dtype) if want_lse else None
    for block in blocks(heads, T, S, reach, query):
        q, k, v = block.of_queries(query), block.of_keys(key), block.of_keys(value)
        found = _step_by_step(q, k, v, block.mask(mask), dropout_p, scale, softcap, want_lse)
        block.of_queries(out).copy_(found[0])
        if weights is not None:
            block.of_scores(weights).copy_(found[1])
        if lse is not None and found[2] is not None:
            block.of_queries(lse).copy_(found[2][..., None])
    out = out.reshape(*lead, *out.shape[-2:])
    weights = weights if weights is None else weights.reshape(*lead, T, S)
    return out, weights, lse if lse is None else lse.reshape(*lead, T)


class _Blocks(torch.autograd.Function):
    """Context and log-sums, computed block by block; the backward pass recomputes the weights."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scale: float,
        softcap: float | None,
        reach: Reach,
        want_lse: bool,
    ) -> tuple[Tensor, Tensor | None]:
        out, _, lse = _block_by_block(query, key, value, mask, 0.0, scale, softcap, reach, False, want_lse)
        ctx.save_for_backward(query, key, value, mask, lse)
        ctx.options = scale, softcap, reach
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        query, key, value, mask, lse = ctx.saved_tensors
        scale, softcap, reach = ctx.options
        if d_lse is not None:  # the gradient of a log-sum of -inf may be nan, and nan times a weight of 0 is nan
            d_lse = d_lse.masked_fill(lse == -torch.inf, 0.0)[..., None]
        enable_gqa = _is_grouped(query, key)
        gradients = backward(d_out, query, key, value, mask, scale, softcap, reach, enable_gqa, d_lse)
        return *gradients, None, None, None, None, None


def _result_dtype(query: Tensor) -> torch.dtype:
    """Return the dtype of the context: under autocast, that of matrix products, except for float64."""
    if is_autocast_enabled(query) and query.dtype != torch.float64:
        return torch.get_autocast_dtype(query.device.type)
    return query.dtype


def _worth_a_loop(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Tell whether heads are so long that one at a time is faster, on one core, and nobody would notice."""
    if _followed(query, key, value) or is_autocast_enabled(query):
        return False
    if query.device.type != "cpu" or torch.finfo(query.dtype).bits < 32:
        return False
    long = query.shape[-2] * key.shape[-2] >= LONG and torch.get_num_threads() == 1
    return long and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]


def _head_by_head(query: Tensor, key: Tensor, value: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return context and weights: of some rows of a head at a time, whose scores stay in the processor's cache."""
    *lead, T, _ = query.shape
    weights = query.new_empty((*lead, T, key.shape[-2]))
    # In memory the contexts of all heads stand side by side, as merge_heads puts them.
    context = query.new_empty((*lead[:-1], T, *lead[-1:], value.shape[-1]))
    context = context.transpose(-3, -2) if lead else context
    for head in product(*map(range, lead)):
        keys, values = key[head].T, value[head]
        parts = (torch.split(x[head], ROWS) for x in (query, weights, context))
        for queries, scores, out in zip(*parts, strict=True):
            torch.addmm(scores, queries, keys, beta=0, alpha=scale, out=scores)
            torch.softmax(scores, dim=-1, out=scores)
            torch.mm(scores, values, out=out)
    return context, weights


def _scaled(query: Tensor, scale: float) -> Tensor:
    """Return the queries times ``scale``, one after the other in memory.

    Those of a head lie apart where heads were cut from wide vectors: a copy costs less than the product then gains.
    """
    if _followed(query):
        return (query * scale).contiguous()
    return torch.mul(query, scale, out=query.new_empty(query.shape))


def _softmax_of_own(scores: Tensor) -> Tensor:
    """Return the softmax, in the memory of the scores where nobody can notice: half the time, if they are many."""
    if _followed(scores) or torch.finfo(scores.dtype).bits < 32:
        return torch.softmax(scores, dim=-1)
    return torch.softmax(scores, dim=-1, out=scores)


def _followed(*tensors: Tensor) -> bool:
    """Tell whether autograd, torch.func or a compiler tracks operations, which rules out ``out``."""
    return torch.is_grad_enabled() or is_traced() or any(map(_is_transformed, tensors))


def are_followed(*tensors: Tensor) -> bool:
    """Tell whether autograd, torch.func or a compiler tracks any of the tensors."""
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return recorded or is_traced() or any(map(_is_transformed, tensors))


def is_traced() -> bool:
    """Tell whether torch.compile or jit.trace is recording operations to run on inputs whose sizes may differ."""
    return torch.compiler.is_compiling() or bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def _is_grouped(query: Tensor, key: Tensor) -> bool:
    """Tell whether each head of the keys serves several of the queries'; a single one is broadcast."""
    if query.ndim == 2 or key.ndim == 2:
        return False
    return True if 1 < key.shape[-3] < query.shape[-3] else False  # noqa: SIM210 (for symbolic sizes, "<" is not a bool)


def _lead(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """Return the leading dimensions of the context, at least one: batches and heads."""
    if _is_grouped(query, key):
        return (*broadcast_shape(query.shape[:-3], key.shape[:-3], value.shape[:-3]), query.shape[-3])
    return broadcast_shape(query.shape[:-2], key.shape[:-2], value.shape[:-2], (1,))
