"""A CUDA device without a GPU: torch's FakeTensorMode computes the shapes and devices of results, but no values.

Reading a value from a fake tensor is an error. On a GPU it would make the program wait for the device.
"""

import ctypes
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class OnCuda(TorchDispatchMode):
    """Check that every operation creates its tensors on CUDA."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        results = operation(*args, **(kwargs or {}))
        devices = {x.device.type for x in tree_leaves(results) if isinstance(x, torch.Tensor)}
        assert devices <= {"cuda"}, f"{operation} made a tensor on {', '.join(sorted(devices))}"
        return results


class Made(TorchDispatchMode):
    """Record the size and the dtype of each tensor that an operation makes; views do not count."""

    def __init__(self):
        super().__init__()
        self.tensors = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        results = operation(*args, **(kwargs or {}))
        if not operation.is_view:
            self.tensors += [(x.numel(), x.dtype) for x in tree_leaves(results) if isinstance(x, torch.Tensor)]
        return results

    def largest(self, *dtypes):
        """How many numbers the largest tensor holds, among all or those of some dtypes; 0 if there are none."""
        return max((size for size, dtype in self.tensors if not dtypes or dtype in dtypes), default=0)


@contextmanager
def fake_cuda() -> Iterator[None]:
    """Make tensors on CUDA fake, so that no value can be read, and forbid tensors on the CPU.

    Gradients are not recorded: without CUDA, torch cannot run a backward pass for it.
    """
    guard = nullcontext() if torch.backends.cuda.is_built() else _cuda_guard()
    with guard, torch.no_grad(), FakeTensorMode(), OnCuda():
        yield


@contextmanager
def waits_are_errors() -> Iterator[None]:
    """On a real GPU, raise RuntimeError if the program waits for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@contextmanager
def _cuda_guard() -> Iterator[None]:
    """Give a CPU build of torch a device guard for CUDA that does nothing, like the guard of meta tensors.

    Indexing and ``copy_`` select the device before anything else. A CUDA build on a machine without a GPU gets such a
    guard from FakeTensorMode itself; a CPU build has none, and raises "PyTorch is not linked with support for cuda".
    """
    library = Path(torch.__file__).parent / "lib" / ("libc10.dylib" if sys.platform == "darwin" else "libc10.so")
    kinds = torch.autograd.DeviceType
    guards = (ctypes.c_void_p * (int(kinds.Meta) + 1)).in_dll(
        ctypes.CDLL(str(library)), "_ZN3c104impl26device_guard_impl_registryE"
    )
    guards[int(kinds.CUDA)] = guards[int(kinds.Meta)]
    try:
        yield
    finally:
        guards[int(kinds.CUDA)] = None
