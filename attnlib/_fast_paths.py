"""Functions that answer short calls of attention without checks, by the type of the array.

Each module of kernels adds its own when it is imported. A function returns None where the arguments need checks.
"""

from collections.abc import Callable
from typing import Any

sdpa: dict[type, Callable[..., Any]] = {}
