"""Attention by a Triton kernel, for cases in which torch has no fused kernel for a GPU.

You have to call it yourself: :func:`attnlib.scaled_dot_product_attention` never does. The kernel,
``attnlib/_triton.py``, is meant to be read side by side with its NumPy counterpart, ``attnlib/_numpy_tiled.py``.
"""

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from attnlib._arrays import Array, imported_torch, is_torch
from attnlib._attention_arguments import Window, check_inputs, check_scale, check_softcap, window_spec
from attnlib._head_groups import flatten_batch
from attnlib._spec import AttentionSpec

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["scaled_dot_product_attention"]

DTYPES = ("torch.float16", "torch.bfloat16", "torch.float32")


class _Options(TypedDict, total=False):
    """The arguments that do not affect the number of results."""

    is_causal: bool
    scale: float | None
    enable_gqa: bool
    q_offset: int
    window: Window | None
    softcap: float | None


# fmt: off
@overload
def scaled_dot_product_attention(
    query: "Tensor", key: "Tensor", value: "Tensor", *, return_lse: Literal[False] = ..., **options: Unpack[_Options],
) -> "Tensor": ...
@overload
def scaled_dot_product_attention(
    query: "Tensor", key: "Tensor", value: "Tensor", *, return_lse: Literal[True], **options: Unpack[_Options],
) -> "tuple[Tensor, Tensor]": ...
@overload
def scaled_dot_product_attention(
    query: "Tensor", key: "Tensor", value: "Tensor", *, return_lse: bool, **options: Unpack[_Options],
) -> "Tensor | tuple[Tensor, Tensor]": ...
# fmt: on
def scaled_dot_product_attention(
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    q_offset: int = 0,
    window: Window | None = None,
    softcap: float | None = None,
    return_lse: bool = False,
) -> Any:
    r"""Average the values, weighted by the softmax of the scores, without ever storing the scores of all pairs.

    .. math:: O = \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{D}} + M\right) V

    The arguments and the result are those of :func:`attnlib.scaled_dot_product_attention`; M is -inf where the causal
    rule or the window forbids attention. The kernel needs no memory beyond the result, and skips keys that no query of
    a tile can reach. torch's fused kernel has neither ``softcap`` nor ``return_lse``, and needs a mask for a
    ``window``.

    The kernel has no backward pass, masks or dropout. On an NVIDIA H200 it takes up to twice as long as torch's kernel
    for full and causal attention, and half as long as :func:`attnlib.scaled_dot_product_attention`, compiled, for a
    window.

    Args:
        query: ``(..., H, T, D)``, a torch tensor on a GPU, in float16, bfloat16 or float32.
        key: ``(..., H, S, D)``. The leading dimensions of query, key and value broadcast.
        value: ``(..., H, S, D_v)``.
        is_causal: query i may attend to key j only if ``j <= i + q_offset``.
        scale: the factor by which dot products are multiplied; ``None`` means ``1 / sqrt(D)``.
        enable_gqa: grouped queries: key and value may have fewer heads than the query, each serving the same number
            of consecutive query heads.
        q_offset: the position of the first query, counted from the first key.
        window: ``(left, right)``: query i may attend to key j only if
            ``i + q_offset - left <= j <= i + q_offset + right``; ``None`` leaves a side open.
        softcap: scores s become ``softcap * tanh(s / softcap)``; ``None`` or 0 leaves them unchanged.
        return_lse: also return the logarithm of the sum of the exponentials of each row's scores.

    Returns:
        The context ``(..., H, T, D_v)``; with ``return_lse`` also the log-sums ``(..., H, T)``, of the inputs' dtype,
        both computed in float32. A query that may attend to nothing has context 0 and log-sum -inf.

    Raises:
        TypeError: as for :func:`attnlib.scaled_dot_product_attention`, or the inputs are not torch tensors of
            one of these dtypes.
        ValueError: as for :func:`attnlib.scaled_dot_product_attention`, the tensors are not on a GPU, or torch would
            record a gradient.
        ModuleNotFoundError: Triton is not installed. It comes with torch for CUDA, on Linux.

    Source:
        Dao et al. (2022), "FlashAttention", algorithm 1; Dao (2023), "FlashAttention-2", algorithm 1.

    Example:
        >>> import torch
        >>> x = torch.ones(1, 4, 1000, 64, device="cuda", dtype=torch.bfloat16)  # doctest: +SKIP
        >>> out, lse = scaled_dot_product_attention(x, x, x, softcap=30.0, return_lse=True)  # doctest: +SKIP
        >>> out.shape, lse.shape  # doctest: +SKIP
        (torch.Size([1, 4, 1000, 64]), torch.Size([1, 4, 1000]))
    """
    *lead, T, S = check_inputs(query, key, value, enable_gqa)
    reach = window_spec(is_causal, window, q_offset).binding(T, S)
    spec = AttentionSpec(check_scale(scale, query.shape[-1]), None, reach, check_softcap(softcap))
    _check_tensors(query=query, key=key, value=value)
    from attnlib import _triton  # not at the top, because it imports Triton

    _check_device(query, _triton.INTERPRETED)
    *batch, H = lead or [1]
    q, k, v = (flatten_batch(x, batch, x.shape[-3] if enable_gqa else H) for x in (query, key, value))
    out, lse = query.new_empty((*lead, T, value.shape[-1])), query.new_empty((*lead, T))
    if lse.numel():
        _triton.attend(q, k, v, spec, out, lse)
    return (out, lse) if return_lse else out


def _check_tensors(**inputs: Array) -> None:
    """Raise unless the inputs are torch tensors that share a dtype the kernel supports, and need no gradient."""
    first = next(iter(inputs.values()))
    for name, x in inputs.items():
        if not is_torch(x):
            raise TypeError(
                f"{name} is a {type(x).__name__}, but a torch.Tensor on a GPU is needed: "
                "for other arrays, use attnlib.scaled_dot_product_attention"
            )
        if str(x.dtype) not in DTYPES or x.dtype != first.dtype:
            raise TypeError(f"{name} has dtype {x.dtype}, but one of {', '.join(DTYPES)} is needed, the same for all")
        if x.requires_grad and imported_torch().is_grad_enabled():
            raise ValueError(
                f"{name} requires a gradient, but this kernel has no backward pass: call it under torch.no_grad(), or "
                "use attnlib.scaled_dot_product_attention"
            )


def _check_device(query: Array, interpreted: bool) -> None:
    """Raise unless the kernel can run where the query is."""
    if query.device.type == "cpu" and not interpreted:
        raise ValueError(
            "query is on the cpu, but the kernel needs a GPU: use attnlib.scaled_dot_product_attention, or, to "
            "try the kernel slowly, set TRITON_INTERPRET=1 before Triton is imported"
        )
    if interpreted and "bfloat16" in str(query.dtype):
        raise TypeError(
            "query has dtype torch.bfloat16, which Triton's interpreter multiplies incorrectly: use float16 or float32"
        )
