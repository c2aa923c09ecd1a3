"""How a function is called, and how a class: by making an object, loading its weights, and calling the object.

This runs in the same process as a student's code, with inputs in the backend's arrays. Each calling convention returns
the results, and the arrays whose gradients can be requested, by name.
"""

import inspect
from collections.abc import Callable, Mapping, Set
from typing import Any

from attnlib._arrays import is_torch
from attnlib.checks.calling.case import Implementation

Arguments = Mapping[str, Any]
CallingConvention = Callable[[Implementation, Arguments, Arguments, Arguments, bool], tuple[Any, dict[str, Any]]]


def call_function(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Call a function once: inputs by position, options by keyword."""
    return implementation(*inputs.values(), **options), named_arrays(inputs)


def call_module(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Make a module (with whole numbers of the setup by position), load its weights (the first input), and call it.

    It is called in training mode or in evaluation mode. An input named ``earlier`` holds the arguments of an earlier
    call, which must not affect this one.
    """
    if hasattr(implementation, "forward") and not isinstance(implementation, type):
        raise TypeError(f"an object of the class {type(implementation).__name__} was passed: pass the class itself")
    (_, weights), *others = inputs.items()
    numbers = [x for x in setup.values() if type(x) is int]
    module = implementation(*numbers, **{name: x for name, x in setup.items() if type(x) is not int})
    parameters = _load(module, weights)
    if training:
        module.train()
    arrays = dict(others)
    if "earlier" in arrays:
        module(*arrays.pop("earlier").values())
    returned = module(*arrays.values(), **options)
    return returned, named_arrays(arrays) | parameters


def named_arrays(arguments: Arguments) -> dict[str, Any]:
    """Return the arrays among arguments by name, those in a dictionary as ``params['v']``."""
    found = {}
    for name, x in arguments.items():
        nested = {f"{name}[{key!r}]": value for key, value in x.items()} if isinstance(x, Mapping) else {name: x}
        found.update({key: value for key, value in nested.items() if hasattr(value, "dtype")})
    return found


def has_argument(implementation: Implementation, argument: str) -> bool:
    """Return whether a function, or a class when it is made or called, has an argument of that name."""
    called: list[Implementation] = [implementation]
    if isinstance(implementation, type):
        called = [implementation, getattr(implementation, "forward", implementation.__call__)]
    try:
        return any(argument in inspect.signature(one).parameters for one in called)
    except (TypeError, ValueError):  # a function written in C, for example, tells nothing about its arguments
        return False


def _load(module: Any, weights: Arguments) -> dict[str, Any]:
    """Give a module its weights, in their dtype, and return its parameters by name."""
    if not hasattr(module, "load_state_dict"):
        raise TypeError("the class has no load_state_dict: derive it from torch.nn.Module (or attnlib.numpy.Module)")
    some = next(iter(weights.values()))
    module = module.to(some.dtype) if is_torch(some) else module
    module.eval()
    own = dict(module.named_parameters())
    if weights.keys() != own.keys():
        missing, unknown = _listed(weights.keys() - own.keys(), weights), _listed(own.keys() - weights.keys(), own)
        faults = [f"{what} {names}" for what, names in (("no", missing), ("an unexpected", unknown)) if names]
        raise AttributeError(f"the class has {' and '.join(faults)} among its parameters")
    for name, x in weights.items():
        if tuple(own[name].shape) != tuple(x.shape):
            raise ValueError(f"{name} has shape {tuple(own[name].shape)}, but {tuple(x.shape)} is needed")
    module.load_state_dict({**module.state_dict(), **weights})
    return dict(module.named_parameters())


def _listed(names: Set[str], of: Arguments) -> str:
    """Return the parameters' names as text; if all parameters of a part are listed, name the part instead."""
    parts: dict[str, set[str]] = {}
    for name in of:
        parts.setdefault(name.rpartition(".")[0] or name, set()).add(name)
    whole = {part for part, own in parts.items() if own <= names}
    single = {name for name in names if (name.rpartition(".")[0] or name) not in whole}
    return ", ".join(sorted(whole | single))
