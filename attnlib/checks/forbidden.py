"""Notice when an answer calls what would solve its exercise, such as ``attnlib.softmax``: grading does not allow that.

Whoever runs a check is told so here. While a class is graded, those functions raise an error instead.
"""

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType, ModuleType
from typing import Any


@contextmanager
def watch_calls(names: Sequence[str]) -> Iterator[list[str]]:
    """Collect which of the functions and classes of these names are called in this thread, in the order of the calls.

    Python's profiler sees each call, by whatever name it is made. A name whose module nobody has imported is left out.
    """
    watched: dict[Any, str] = {}
    for name in reversed(names):  # where two names share a function, the first one counts
        watched |= dict.fromkeys(_keys(_find(name)), name)
    calls: list[str] = []

    def notice(frame: FrameType, event: str, function: Any) -> None:
        if event == "call":
            name = watched.get(frame.f_code)
        elif event == "c_call":
            method = getattr(type(function.__self__), function.__name__, None)
            name = watched.get(function) or watched.get(method)
        else:
            return
        if name:
            calls.append(name)

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def _find(name: str) -> Any:
    """Return the thing of that name, or None. Nothing is imported."""
    parts = name.split(".")
    imported = [n for n in range(1, len(parts)) if ".".join(parts[:n]) in sys.modules]
    if not imported:
        return None
    found: Any = sys.modules[".".join(parts[: imported[-1]])]
    for part in parts[imported[-1] :]:
        found = vars(found).get(part) if isinstance(found, ModuleType) else getattr(found, part, None)
    return found


def _keys(found: Any) -> Iterator[Any]:
    """Yield what the profiler shows of a call: the code of a Python function, or the function in C."""
    if isinstance(found, type):
        bodies = [vars(base) for base in found.__mro__ if base.__name__ == found.__name__]
        for method in (x for body in bodies for x in body.values() if isinstance(x, FunctionType)):
            yield method.__code__
    elif callable(found):
        inner = inspect.unwrap(found)  # the code of a decorator is that of all that it decorates
        yield inner.__code__ if isinstance(inner, FunctionType) else inner
