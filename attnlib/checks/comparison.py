"""The expected array and the returned one, side by side."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.array_text import format_array


@dataclass(frozen=True)
class Comparison:
    """One array as expected and as returned, cut to the two dimensions around the first difference.

    Attributes:
        name: the array's name.
        expected: the expected numbers.
        got: the returned numbers.
        differs: where the two differ.
        first: the first of these places, as ``name[0, 2]``.
        dims: the names of the dimensions.
    """

    name: str
    expected: NDArray[Any]
    got: NDArray[Any]
    differs: NDArray[np.bool_]
    first: str
    dims: tuple[str, ...] = ()

    @property
    def digits(self) -> int:
        """How many significant digits it takes to see the difference."""
        want, got = self.expected[self.differs].flat[0], self.got[self.differs].flat[0]
        return next((n for n in range(4, 10) if f"{want:.{n}g}" != f"{got:.{n}g}"), 10)

    def __str__(self) -> str:
        pairs = (("expected", self.expected), ("got     ", self.got))
        tables = (format_array(label, x, self.digits) for label, x in pairs)
        return "\n".join([f"first difference at {self.first}", *tables])


def first_difference(
    name: str, want: NDArray[Any], got: NDArray[Any], tolerance: float, dims: tuple[str, ...]
) -> Comparison | None:
    """Compare two arrays of the same shape, and return them around the first difference, or None if there is none."""
    differs = ~np.isclose(got, want, rtol=tolerance, atol=tolerance)
    differs |= (got.dtype.kind == "b") != (want.dtype.kind == "b")
    if not differs.any():
        return None
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    first = f"{name}[{', '.join(map(str, place))}]" if place else name
    leading = place[:-2]
    return Comparison(name, want[leading], got[leading], differs[leading], first, dims[-want.ndim :])
