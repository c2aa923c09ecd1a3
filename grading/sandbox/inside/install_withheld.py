"""Put the withheld parts of attnlib in their places once they no longer answer any question.

A stand-in becomes the real thing: the same object gets the real code, so that every reference to it stays valid.
"""

import functools
import marshal
import sys
from base64 import b64decode
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

UNCHANGED_LAYERS = "attnlib._torch_unchanged_layers"


def install(parts: list[dict[str, Any]]) -> None:
    """Give stand-ins their real code.

    attnlib's fast layers switch themselves off if a class of layers no longer has the ``forward`` that they remember.
    So they remember the real one here, except for a class that the student has patched.
    """
    layers = sys.modules.get(UNCHANGED_LAYERS)
    unpatched = layers.unpatched_classes() if layers else []
    _replace(parts)
    if layers:
        layers.remember(*unpatched)


def _replace(parts: list[dict[str, Any]]) -> None:
    """Replace the code of stand-ins."""
    for part in parts:
        module = import_module(part["module"])
        made: dict[str, Any] = {}
        exec(marshal.loads(b64decode(part["code"])), vars(module), made)
        stand_in, real = vars(module)[part["name"]], made[part["name"]]
        if isinstance(real, FunctionType):
            for function, its_real in zip(_functions(stand_in), _functions(real), strict=True):
                function.__code__ = its_real.__code__
            continue
        for name in part["methods"]:
            attribute = vars(real)[name]
            for function in _functions(attribute):
                _belong(function, stand_in)
            setattr(stand_in, name, attribute)


def _functions(attribute: Any) -> Iterator[FunctionType]:
    """Yield the function behind a class attribute, and the functions that its decorators wrap."""
    if isinstance(attribute, property):
        attribute = attribute.fget
    elif isinstance(attribute, functools.cached_property):
        attribute = attribute.func
    elif isinstance(attribute, staticmethod | classmethod):
        attribute = attribute.__func__
    while isinstance(attribute, FunctionType):
        yield attribute
        attribute = getattr(attribute, "__wrapped__", None)


def _belong(function: FunctionType, owner: type) -> None:
    """Let ``super()`` in a method mean the class that the method is given to."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name == "__class__":
            cell.cell_contents = owner
