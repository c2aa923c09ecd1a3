"""Who watches operations on torch tensors: autograd, torch.func, compilers and other modes that record or replace them.

Nothing that is watched may be overwritten, branch on values, or rely on sizes that may differ in another call.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter


def is_traced() -> bool:
    """Tell whether torch.compile or jit.trace is recording operations to run on inputs whose sizes may differ."""
    return torch.compiler.is_compiling() or bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def in_forward_mode() -> bool:
    """Tell whether forward-mode differentiation is active: in torch.func.jvp and jacfwd, and within a dual level.

    All of these enter a dual level, and ``_current_level`` is its number, or -1 outside. torch has no public function.
    """
    return forward_ad._current_level >= 0


def is_transformed(x: Tensor) -> bool:
    """Tell whether torch.func or forward-mode differentiation tracks a tensor."""
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        return True
    return forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]


def is_tracked(*tensors: Tensor) -> bool:
    """Tell whether autograd, torch.func or a compiler tracks any of the tensors."""
    return _requires_grad(tensors) or is_traced() or any(map(is_transformed, tensors))


def may_be_recorded(*tensors: Tensor) -> bool:
    """Tell whether operations may be recorded, which rules out ``out=``, even if no tensor requires a gradient."""
    return torch.is_grad_enabled() or is_tracked(*tensors)


def _requires_grad(tensors: tuple[Tensor, ...]) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def is_eager_on_cpu(x: Tensor) -> bool:
    """Tell whether operations run immediately, on the CPU and without tracing, so that values can be read.

    On other devices, reading a value would make the program wait. Under torch.compile, torch.func, make_fx or
    jit.trace, the recorded operations must be valid for other values too.
    """
    if type(x) not in (Tensor, Parameter) or not x.is_cpu or is_traced():
        return False
    modes = torch._C._len_torch_dispatch_stack()
    return not (modes or torch._C._functorch.is_functorch_wrapped_tensor(x))


def are_fixed(*sizes: int) -> bool:
    """Tell whether sizes are plain numbers, which a loop may depend on: under torch.compile, they may be symbolic."""
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    if not torch.compiler.is_compiling():
        return all(type(n) is int for n in sizes)
    from torch.fx.experimental.symbolic_shapes import has_static_value

    return all(has_static_value(n) for n in sizes)


def holds(comparison: bool) -> bool:
    """Tell whether a comparison holds for all values of sizes that are symbolic; ``bool`` would fix those sizes."""
    if not is_traced():
        return bool(comparison)
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return statically_known_true(comparison)
