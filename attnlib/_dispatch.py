"""The choice of the kernels that compute with an array: the only place where the libraries diverge."""

from types import ModuleType

import numpy as np

from attnlib._arrays import Array, is_torch


def kernels_for(x: Array) -> ModuleType:
    """Return the module whose kernels compute with ``x``. It is imported when the first such array arrives."""
    if is_torch(x):
        from attnlib import _torch_kernels

        return _torch_kernels
    if isinstance(x, np.ndarray):
        from attnlib import _numpy_kernels

        return _numpy_kernels
    from attnlib import _array_api_kernels

    return _array_api_kernels
