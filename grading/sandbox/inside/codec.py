"""Encode values for messages between the grader and the box: as JSON, with arrays as a type, a shape and raw bytes.

Both sides use it, and the grader trusts nothing that it reads. Anything malformed raises a
:class:`~grading.sandbox.inside.frames.MessageError`.
"""

import base64
import binascii
import importlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grading.sandbox.inside.frames import MessageError

MAX_ARRAY_BYTES = 4_000_000  # bytes of one array; the largest of any exercise has a few thousand
MAX_DIMENSIONS = 16
MAX_DEPTH = 8  # of what the box sends
ARRAY, TUPLE, DICT, FUNCTION = "array", "tuple", "dict", "function"
ARRAY_DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}


def encode(x: Any) -> Any:
    """Return a value in a form that JSON can express; arrays keep their memory layout."""
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
        flat = np.ascontiguousarray(x.transpose(axes)).astype(x.dtype.newbyteorder("<"), copy=False)
        data = base64.b64encode(flat.tobytes()).decode()
        return {ARRAY: [flat.dtype.str, list(x.shape), axes, data]}
    if isinstance(x, tuple):
        return {TUPLE: [encode(value) for value in x]}
    if isinstance(x, list):
        return [encode(value) for value in x]
    if isinstance(x, dict):
        return {DICT: [[str(name), encode(value)] for name, value in x.items()]}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if getattr(x, "__module__", "").split(".")[0] == "attnlib":
        return {FUNCTION: [x.__module__, x.__name__]}
    raise TypeError(
        f"{type(x).__name__} cannot be sent: arrays, numbers, text, their tuples, lists and dictionaries can"
    )


def decode(x: Any) -> Any:
    """Return the value that was encoded. It imports what it is told to, so use it only for the grader's messages."""
    if isinstance(x, list):
        return [decode(value) for value in x]
    if not isinstance(x, dict):
        return x
    if len(x) == 1 and ARRAY in x:
        return array(x)
    if len(x) == 1 and isinstance(parts := next(iter(x.values())), list):
        if TUPLE in x:
            return tuple(decode(value) for value in parts)
        if DICT in x:
            return {name: decode(value) for name, value in parts}
        if FUNCTION in x:
            module, name = parts
            return getattr(importlib.import_module(module), name)
    raise MessageError("a value of no known kind")


def data(x: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a value that the box has encoded: arrays, numbers, text, and tuples, lists and dictionaries of these."""
    if not depth:
        raise MessageError("a value that is nested too deeply")
    if isinstance(x, list):
        return [data(value, depth - 1) for value in x]
    if not isinstance(x, dict):
        return x
    if ARRAY in x:
        return array(x)
    if isinstance(parts := x.get(TUPLE), list):
        return tuple(data(value, depth - 1) for value in parts)
    if isinstance(parts := x.get(DICT), list) and all(isinstance(part, list) and len(part) == 2 for part in parts):
        return {str(name): data(value, depth - 1) for name, value in parts}
    raise MessageError("a value of no known kind")


def array(x: Any) -> NDArray[Any]:
    """Return an encoded array, after checking its type, shape and size."""
    parts = x.get(ARRAY) if isinstance(x, dict) else None
    if not isinstance(parts, list) or len(parts) != 4:
        raise MessageError("no array")
    kind, shape, axes, data = parts
    if not (
        isinstance(kind, str) and kind in ARRAY_DTYPES and isinstance(data, str) and len(data) <= 2 * MAX_ARRAY_BYTES
    ):
        raise MessageError(f"an array of type {str(kind)[:20]!r}")
    if not (_are_sizes(shape) and _are_sizes(axes) and sorted(axes) == list(range(len(shape)))):
        raise MessageError("an array without a sound shape")
    dtype = np.dtype(kind)
    if math.prod(shape) * dtype.itemsize > MAX_ARRAY_BYTES:
        raise MessageError("an array that is too large")
    try:
        raw = base64.b64decode(data, validate=True)
        stored = np.frombuffer(raw, dtype).reshape([shape[axis] for axis in axes])
    except (ValueError, binascii.Error):
        raise MessageError("an array whose bytes do not fit its shape") from None
    order = sorted(range(len(axes)), key=axes.__getitem__)  # where each axis of the array lies in what is stored
    return np.array(stored.transpose(order), order="K")


def _are_sizes(numbers: Any) -> bool:
    """Tell whether this is a list of integers whose length and values are allowed in an array's shape."""
    few = isinstance(numbers, list) and len(numbers) <= MAX_DIMENSIONS
    return few and all(type(n) is int and 0 <= n <= MAX_ARRAY_BYTES for n in numbers)
