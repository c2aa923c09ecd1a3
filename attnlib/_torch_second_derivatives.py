"""A second derivative of torch's fused kernels, which have none, raises an error that says what to do.

Torch's own error names an internal function, and is raised long after the call. A hook on the recorded operation puts a
better one in its place, but not under torch.func, where there is no recorded operation to watch.
"""

import torch
from torch import Tensor

MESSAGE = (
    "torch's fused attention kernel has a first derivative, but no second one. "
    "For second derivatives, call scaled_dot_product_attention(..., return_weights=True)[0], "
    "or make the call under torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"
)
VIEWS = ("SliceBackward0", "TransposeBackward0")  # views of the kernel's output, which autograd may have recorded


def explain_second_derivative(out: Tensor) -> None:
    """Watch an output of the fused kernel, or a view of it, for which autograd has recorded an operation."""
    node = out.grad_fn
    while node is not None and node.name() in VIEWS:
        node = node.next_functions[0][0]
    if node is not None:
        node.register_hook(_watch_gradients)


def _watch_gradients(gradients: tuple[Tensor | None, ...], _: tuple[Tensor, ...]) -> None:
    """Watch first derivatives that autograd has recorded, which it does only if a second one may follow."""
    for gradient in gradients if torch.is_grad_enabled() else ():
        node = None if gradient is None else gradient.grad_fn
        if node is not None and node.name().endswith("NotImplemented"):
            node.register_prehook(_raise)


def _raise(_: tuple[Tensor, ...]) -> None:
    raise RuntimeError(MESSAGE)
