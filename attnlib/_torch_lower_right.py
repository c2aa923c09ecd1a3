"""Causal attention of the last queries: torch's kernels for a GPU can align the ends of queries and keys.

In torch, this rule is the bias ``causal_lower_right(T, S)``, with which no mask (T, S) is made. A long prompt that is
processed in parts needs it, for each part but the first.

Dimensions: B batch, H heads, T queries, S keys, D width of queries and keys, D_v of values.
"""

import torch.nn.functional as F
from torch import Tensor
from torch.backends.cuda import SDPAParams, can_use_efficient_attention, can_use_flash_attention
from torch.utils._python_dispatch import _disable_current_modes

from attnlib._arrays import is_autocast_enabled
from attnlib._spec import AttentionSpec
from attnlib._torch_second_derivatives import explain_second_derivative
from attnlib._torch_tracing import are_fixed, is_traced, is_transformed


def is_at_the_end(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, grouped: bool) -> bool:
    """Tell whether the attention is causal, with the last query at one of the keys, and torch has a kernel for that.

    torch.compile can neither construct the bias nor lower a graph that contains one. Autocast does not cast what comes
    with a bias, and torch.func cannot transform the kernels.
    """
    T, S, (left, right, offset) = query.shape[-2], key.shape[-2], spec.window
    if not query.is_cuda or spec.mask is not None or left is not None or right != 0 or is_traced():
        return False
    if not (are_fixed(T, S, offset) and offset > 0 and T + offset <= S and spec.scale > 0):
        return False
    if is_autocast_enabled(query) or any(map(is_transformed, (query, key, value))):
        return False
    return bool(T) and _has_kernel(*_first_keys(query, key, value, offset), spec, grouped)


def attend_at_the_end(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, grouped: bool) -> Tensor:
    """Return the context (B, H, T, D_v). Keys (B, H, S, D) after the last query are left out."""
    from torch.nn.attention.bias import causal_lower_right  # not at the top: it imports the compiler

    query, key, value = _first_keys(query, key, value, spec.window.offset)
    with _disable_current_modes():  # FakeTensorMode cannot make the bias, which holds no numbers
        bias = causal_lower_right(query.shape[-2], key.shape[-2])
    out = F.scaled_dot_product_attention(query, key, value, bias, spec.dropout_p, scale=spec.scale, enable_gqa=grouped)
    if out.requires_grad:
        explain_second_derivative(out)
    return out


def _first_keys(query: Tensor, key: Tensor, value: Tensor, offset: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, with the keys and values up to the position of the last query."""
    end = query.shape[-2] + offset
    return query, key[..., :end, :], value[..., :end, :]


def _has_kernel(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec, grouped: bool) -> bool:
    """Tell whether torch has a kernel that aligns the ends; otherwise, it would make a mask (T, S) from the bias."""
    call = SDPAParams(query, key, value, None, spec.dropout_p, False, grouped)
    return bool(can_use_flash_attention(call) or can_use_efficient_attention(call))
