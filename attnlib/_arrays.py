"""What a public function checks before it computes: which backend came, which dtypes, which shapes.

torch is never imported here. A torch tensor can only arrive once its owner has imported torch, so looking in
``sys.modules`` is enough (einops does the same).

Dimensions: T queries, S keys, D width.
"""

import sys
from types import ModuleType
from typing import Any

import array_api_compat.numpy as of_numpy
import numpy as np

# NumPy arrays in, NumPy arrays out; torch tensors in, torch tensors out. The array API has no static type for
# "one of the two, the same throughout", so annotations say Array and the checks below enforce it.
ARRAY_TYPES = "numpy.ndarray or torch.Tensor"
Array = Any


def is_torch(x: object) -> bool:
    """Tell whether ``x`` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def autocasts(x: object) -> bool:
    """Tell whether torch.autocast is on where ``x`` lies: torch then chooses dtypes, and mixed ones are no mistake."""
    return is_torch(x) and bool(sys.modules["torch"].is_autocast_enabled(x.device.type))  # type: ignore[attr-defined]


def backend(**arrays: Array) -> ModuleType:
    """Return the array namespace that all named arrays share, after checking that they share one and one float dtype.

    Raises:
        TypeError: an argument is no array, is not floating point, or differs in backend or dtype from the first.
    """
    first_name, first = next(iter(arrays.items()))
    torch_first = is_torch(first)
    for name, x in arrays.items():
        if not (isinstance(x, np.ndarray) or is_torch(x)):
            raise TypeError(
                f"{name} must be a {ARRAY_TYPES}, got {type(x).__name__}: wrap it in np.asarray or torch.tensor"
            )
        if is_torch(x) != torch_first:
            raise TypeError(f"{first_name} is a {_kind(first)} but {name} is a {_kind(x)}: convert one of them")
        if not _is_floating(x):
            raise TypeError(f"{name} has dtype {x.dtype}, but attention needs floating point: use float32 or float64")
        if x.dtype != first.dtype and not autocasts(first):
            raise TypeError(
                f"{first_name} has dtype {first.dtype} but {name} has {x.dtype}: cast one, nothing is upcast silently"
            )
    return _namespace(first)


def require_sequence(**arrays: Array) -> None:
    """Raise ValueError unless every named array is at least a matrix ``(..., T, D)``."""
    for name, x in arrays.items():
        if x.ndim < 2:
            raise ValueError(f"{name} has shape {shape(x)}, but (..., T, D) is needed: at least 2 dimensions")


def require_equal_width(query: Array, key: Array) -> None:
    """Raise ValueError unless queries and keys have vectors of the same width D."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has shape {shape(query)} and key {shape(key)}: their widths D={query.shape[-1]} and "
            f"D={key.shape[-1]} must be equal for this similarity (general and additive allow different widths)"
        )


def require_broadcast(**arrays: Array) -> None:
    """Raise ValueError unless the leading dimensions (all but the last two) of the named arrays broadcast together."""
    try:
        np.broadcast_shapes(*(tuple(x.shape[:-2]) for x in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {shape(x)}" for name, x in arrays.items())
        raise ValueError(f"leading dimensions do not broadcast together: {shapes}") from None


def shape(x: Array) -> str:
    """Return the shape as NumPy prints it, for NumPy and torch alike."""
    return str(tuple(x.shape))


def _namespace(x: Array) -> ModuleType:
    if not is_torch(x):
        return of_numpy
    import array_api_compat.torch as of_torch  # which imports torch, so not at the top

    return of_torch


def _kind(x: Array) -> str:
    return "torch.Tensor" if is_torch(x) else "numpy.ndarray"


def _is_floating(x: Array) -> bool:
    return bool(x.dtype.is_floating_point) if is_torch(x) else bool(np.issubdtype(x.dtype, np.floating))
