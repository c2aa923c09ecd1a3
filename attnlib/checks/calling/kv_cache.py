"""How a key-value cache is called: by making it, and appending one chunk after another.

This runs in the same process as a student's code.
"""

import contextlib
import copy
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib._arrays import namespace_and_device
from attnlib.checks.calling.case import Implementation
from attnlib.checks.calling.conventions import Arguments


def call_kv_cache(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Make a cache, append chunk after chunk, and return its length before and after each, and the last result.

    If there is a chunk named ``other``, it is appended to a second cache after the first chunk.
    """
    chunks = [chunk for name, chunk in inputs.items() if name != "other"]
    other = inputs.get("other")
    with _restored(implementation):
        kind = _isolated(implementation)
        cache, results = kind(), []
        counts = [_length(cache)]
        for number, chunk in enumerate(chunks):
            if number == 1 and other is not None:
                kind().append(other["key"], other["value"])
            results.append(cache.append(chunk["key"], chunk["value"]))
            counts.append(_length(cache))
    keys, values = _last(results)
    xp, _ = namespace_and_device(chunks[0]["key"])
    return (xp.asarray(counts), keys, values), {}


def _last(results: list[Any]) -> tuple[Any, Any]:
    """Return the last result, after checking that each of them is keys and values."""
    wrong = [isinstance(pair, tuple | list) and len(pair) == 2 for pair in results].count(False)
    if wrong:
        odd = next(pair for pair in results if not (isinstance(pair, tuple | list) and len(pair) == 2))
        kind = f"one {type(odd).__name__}" + (f" of {len(odd)}" if isinstance(odd, tuple | list) else "")
        what = "nothing" if any(pair is None for pair in results) else kind
        when = "" if wrong == len(results) else " at first" if results[0] is None else " later on"
        raise TypeError(f"append returned {what}{when}, but two arrays are needed: keys and values")
    keys, values = results[-1]
    return keys, values


def _length(cache: Any) -> int:
    if callable(cache.length):
        raise TypeError("length is a method, but a number is needed: cache.length, without parentheses")
    return int(cache.length)


@contextlib.contextmanager
def _restored(implementation: Implementation) -> Iterator[None]:
    """Restore the attributes of the class afterwards, whatever is assigned to it in between."""
    before = dict(vars(implementation)) if isinstance(implementation, type) else {}
    try:
        yield
    finally:
        for name, x in before.items():
            if vars(implementation).get(name) is not x:
                setattr(implementation, name, x)


def _isolated(implementation: Implementation) -> Implementation:
    """Return a subclass with copies of the mutable class attributes, so that no case sees what another left there."""
    if not isinstance(implementation, type):
        return implementation
    own: dict[str, Any] = {
        name: copy.deepcopy(x)
        for name, x in vars(implementation).items()
        if isinstance(x, list | dict | np.ndarray) and not name.startswith("__")
    }
    init = vars(implementation).get("__init__")
    if isinstance(init, types.FunctionType) and any(isinstance(x, list | dict) for x in init.__defaults__ or ()):
        defaults = copy.deepcopy(init.__defaults__)
        own["__init__"] = types.FunctionType(init.__code__, init.__globals__, init.__name__, defaults, init.__closure__)
    isolated: Implementation = (
        type(implementation)(implementation.__name__, (implementation,), own) if own else implementation
    )
    return isolated
