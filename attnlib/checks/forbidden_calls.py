"""Notice when an answer calls a function that solves its exercise, such as ``attnlib.softmax``.

Grading does not allow that. ``check`` warns about it; while a class is graded, those functions raise an error.
"""

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType, ModuleType
from typing import Any


@contextmanager
def watch_calls(names: Sequence[str]) -> Iterator[list[str]]:
    """Collect the names of those functions and classes that are called in this thread, in the order of the calls.

    Python's profiler sees each call, whatever name it is made by. A name whose module is not imported is left out.
    """
    watched: dict[Any, str] = {}
    for name in reversed(names):  # if two names refer to the same function, the first one counts
        watched |= dict.fromkeys(_keys(_find(name)), name)
    codes = {id(key): name for key, name in watched.items()}  # to compare whole code objects would take long
    calls: list[str] = []

    def notice(frame: FrameType, event: str, function: Any) -> None:
        if event == "call":
            name = codes.get(id(frame.f_code))
        elif event == "c_call":
            method = getattr(type(function.__self__), function.__name__, None)
            name = watched.get(function) or watched.get(method)
        else:
            return
        if name:
            calls.append(name)

    before = sys.getprofile()
    if before is not None and not callable(before):  # cProfile is running, which could not be started again
        yield calls
        return
    sys.setprofile(notice)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def _find(name: str) -> Any:
    """Return the object with that name, or None. Nothing is imported."""
    parts = name.split(".")
    imported = [n for n in range(1, len(parts)) if ".".join(parts[:n]) in sys.modules]
    if not imported:
        return None
    found: Any = sys.modules[".".join(parts[: imported[-1]])]
    for part in parts[imported[-1] :]:
        found = vars(found).get(part) if isinstance(found, ModuleType) else getattr(found, part, None)
    return found


def _keys(found: Any) -> Iterator[Any]:
    """Yield what the profiler reports for a call: the code of a Python function, or a function written in C."""
    if isinstance(found, type):
        bodies = [vars(base) for base in found.__mro__ if base.__name__ == found.__name__]
        for method in (x for body in bodies for x in body.values() if isinstance(x, FunctionType)):
            yield inspect.unwrap(method).__code__  # all methods with the same decorator share the wrapper's code
    elif callable(found):
        inner = inspect.unwrap(found)  # all functions with the same decorator share the wrapper's code
        yield inner.__code__ if isinstance(inner, FunctionType) else inner
