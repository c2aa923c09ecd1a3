"""Numbers and arrays as text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING_ERROR = 1e-12  # what may be left where the exact answer is 0


def format_argument(name: str, x: Any) -> str:
    """Return an argument of any kind as ``name = …``; a dictionary has one line for each entry."""
    if isinstance(x, dict):
        return "\n".join(format_argument(f"{name}[{key!r}]", value) for key, value in x.items())
    if isinstance(x, np.ndarray):
        return format_array(name, x, 6)
    return f"{name} = {getattr(x, '__name__', None) or repr(x)}"


def format_array(name: str, x: NDArray[Any], digits: int) -> str:
    """Return ``name = [[…], […]]``, its rows below each other, with so many significant digits."""
    formatter: Any = {"float_kind": lambda v: format_number(v, digits), "bool": lambda v: format_number(v, digits)}
    text = np.array2string(zero_rounding_errors(x), formatter=formatter, max_line_width=100)
    return f"{name} = " + text.replace("\n", "\n" + " " * (len(name) + 3))


def format_number(value: Any, digits: int) -> str:
    """Return a number with so many significant digits; True, False and whole numbers as they are."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(value)
    return f"{value:.{digits}g}"


def counted(n: float, noun: str) -> str:
    """Return "1 point", "2.5 points"."""
    return f"{n:g} {noun}" if n == 1 else f"{n:g} {noun}s"


def zero_rounding_errors(x: NDArray[Any]) -> NDArray[Any]:
    """Return the array with 0 in place of what only rounding has left."""
    return np.where(np.abs(x) < ROUNDING_ERROR, 0.0, x) if x.dtype.kind == "f" else x
