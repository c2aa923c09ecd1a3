"""How an implementation is called: a function once; a class by making an object, loading its weights, and calling it.

This runs in the same process as a student's code, with inputs in the backend's arrays. It returns the results, and by
name the arrays whose gradients can be requested.
"""

import inspect
from collections.abc import Callable, Mapping, Set
from typing import Any

from attnlib._arrays import is_torch

Given = Mapping[str, Any]
Call = Callable[[Callable[..., Any], Given, Given, Given, bool], tuple[Any, dict[str, Any]]]


def of_function(
    implementation: Callable[..., Any],
    inputs: Given,
    options: Given,
    setup: Given,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Call a function once: inputs by position, options by keyword."""
    return implementation(*inputs.values(), **options), leaves(inputs)


def of_module(
    implementation: Callable[..., Any],
    inputs: Given,
    options: Given,
    setup: Given,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Make a module (numbers of the setup by position), load its weights, which are the first input, and call it.

    It is called in training mode or in evaluation mode. An input named ``earlier`` holds the arguments of an earlier
    call, which must not affect this one.
    """
    if hasattr(implementation, "forward") and not isinstance(implementation, type):
        raise TypeError(f"an object of the class {type(implementation).__name__} came: pass the class itself")
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
    return returned, leaves(arrays) | parameters


def leaves(given: Given) -> dict[str, Any]:
    """Return the arrays in given inputs by name, those of a dictionary as ``params['v']``."""
    found = {}
    for name, x in given.items():
        nested = {f"{name}[{key!r}]": value for key, value in x.items()} if isinstance(x, Mapping) else {name: x}
        found.update({key: value for key, value in nested.items() if hasattr(value, "dtype")})
    return found


def takes(implementation: Callable[..., Any], argument: str) -> bool:
    """Tell whether an implementation has an argument of that name: a function, or a class when made or called."""
    called = [implementation]
    if isinstance(implementation, type):
        called = [implementation, getattr(implementation, "forward", implementation.__call__)]
    try:
        return any(argument in inspect.signature(one).parameters for one in called)
    except (TypeError, ValueError):  # for example written in C: nothing is known about its arguments
        return False


def _load(module: Any, weights: Given) -> dict[str, Any]:
    """Give a module its weights, in their dtype, and return its parameters by name."""
    if not hasattr(module, "load_state_dict"):
        raise TypeError("the class has no load_state_dict: derive it from torch.nn.Module (or attnlib.numpy.Module)")
    some = next(iter(weights.values()))
    module = module.to(some.dtype) if is_torch(some) else module
    module.eval()
    own = dict(module.named_parameters())
    missing, unknown = _listed(weights.keys() - own.keys(), weights), _listed(own.keys() - weights.keys(), own)
    if missing or unknown:
        faults = [f"{what} {names}" for what, names in (("no", missing), ("an unexpected", unknown)) if names]
        raise AttributeError(f"the class has {' and '.join(faults)} among its parameters")
    for name, x in weights.items():
        if tuple(own[name].shape) != tuple(x.shape):
            raise ValueError(f"{name} has shape {tuple(own[name].shape)}, but {tuple(x.shape)} is needed")
    module.load_state_dict({**module.state_dict(), **weights})
    return dict(module.named_parameters())


def _listed(names: Set[str], of: Given) -> str:
    """Return the parameters' names as text; if all parameters of a part are listed, name the part instead."""
    parts: dict[str, set[str]] = {}
    for name in of:
        parts.setdefault(name.rpartition(".")[0] or name, set()).add(name)
    whole = {part for part, own in parts.items() if own <= names}
    single = {name for name in names if (name.rpartition(".")[0] or name) not in whole}
    return ", ".join(sorted(whole | single))
