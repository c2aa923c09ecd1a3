"""The static types of arrays. Only type checkers read them, so no library is imported for them.

A function with arguments of type ``ArrayT`` takes arrays of one library and returns arrays of that library, so a
type checker notices when two libraries are mixed. If no array is passed (``like=None``), the result is a NumPy array.
A library that is not installed counts as ``Any``. NumPy comes last because it is always installed, and mypy takes the
last of several types that fit equally well.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from jax import Array as JaxArray
    from numpy.typing import NDArray
    from torch import Tensor
    from typing_extensions import TypeVar

    ArrayT = TypeVar("ArrayT", JaxArray, Tensor, NDArray[Any], default=NDArray[Any])
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT")
