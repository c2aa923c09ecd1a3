"""The static types of arrays. Only type checkers read them, so no library is imported for them.

A function with arguments of type ``ArrayT`` takes arrays of one library and returns arrays of that library, so a
type checker notices when two libraries are mixed. If no array is passed (``like=None``), the result is a NumPy array.
NumPy comes last because it is always installed, and mypy takes the last of several types that fit equally well. If
torch is not installed, ``Tensor`` counts as ``Any``.

The layers are generic classes: ``A`` is the type of the arrays that a layer takes and returns, and ``W`` that of the
attention weights of one layer of a stack.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # If JAX is not installed, `from jax import Array` would make Array stand for any type, and ArrayT for any mixture
    # of arrays. `from jax import *` imports nothing then, so that Array is the class below, to which no array belongs.
    # If JAX is installed, Array is JAX's: mypy takes the first of several definitions, and pyright the last.
    from jax import *  # noqa: F403

    class Array:  # type: ignore[no-redef]
        """Stands in for JAX's class of arrays."""

    import numpy as np
    import torch
    from jax import *  # noqa: F403
    from numpy.typing import NDArray
    from torch import Tensor
    from typing_extensions import TypeVar

    ArrayT = TypeVar("ArrayT", Array, Tensor, NDArray[Any], default=NDArray[Any])
    Stored = NDArray[Any] | Tensor  # what layers and caches hold
    Index = NDArray[np.integer[Any]] | Tensor
    Device = str | int | torch.device
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT")
    Stored, Index, Device = TypeVar("Stored"), TypeVar("Index"), TypeVar("Device")

A = TypeVar("A", bound=Any)
W = TypeVar("W")
