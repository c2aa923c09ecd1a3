"""From a configuration and parameters to a model in one of the two libraries."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlib._arrays import Array, shape
from attnlib._causal_lm import CausalLM, CausalLMConfig

if TYPE_CHECKING:
    from attnlib._types import Device

Weights = Iterator[tuple[str, Array]]
DTYPES = {"numpy": ("float16", "float32", "float64"), "torch": ("float16", "bfloat16", "float32", "float64")}


def build_model(
    config: CausalLMConfig, weights: Weights, backend: str, dtype: str, device: "Device | None"
) -> CausalLM[Any]:
    """Return a model with the given parameters, in which each of them is held once.

    Args:
        config: the sizes and variants.
        weights: names and arrays of the library.
        backend: ``"numpy"`` or ``"torch"``.
        dtype: one of :data:`DTYPES`.
        device: where torch keeps the parameters.

    Returns:
        The model, ready to compute.

    Raises:
        KeyError: a parameter is missing, or unknown.
        TypeError: a parameter is not floating point.
        ValueError: a parameter has the wrong shape.
    """
    if backend == "torch":
        return _torch_model(config, weights, dtype, device)
    with import_module("attnlib._numpy_modules").skip_init():
        model = import_module("attnlib.numpy").CausalLM(config)
    state = _checked_state(weights, model.state_dict(), lambda x: np.array(x, dtype))
    return model._cast(dtype, state)


def _torch_model(config: CausalLMConfig, weights: Weights, dtype: str, device: "Device | None") -> CausalLM[Any]:
    torch = import_module("torch")
    with torch.device("meta"):  # parameters without memory, because others will replace them
        model = import_module("attnlib.torch").CausalLM(config)
    options = {"device": device or "cpu", "dtype": getattr(torch, dtype)}
    state = _checked_state(weights, model.state_dict(), lambda x: x.to(copy=True, **options))
    model.load_state_dict(state, assign=True)
    return model.eval().requires_grad_(False)


def checked_dtype(dtype: object, backend: str) -> str:
    """Return the name of a dtype of either library, after checking that the backend computes in it."""
    name = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    if name not in DTYPES[backend]:
        raise ValueError(f"dtype is {name!r}, but with backend={backend!r} {' or '.join(DTYPES[backend])} is needed")
    return name


def check_device(device: "Device | None", backend: str) -> None:
    """Raise ValueError unless the backend can use a device; None is the default."""
    if backend == "numpy" and device is not None:
        raise ValueError(f"device is {device!r}, but NumPy has none: leave it None, or use backend='torch'")
    if device is not None:
        try:
            import_module("torch").empty(0, device=device)
        except (AssertionError, RuntimeError) as error:
            raise ValueError(f"device is {device!r}, but torch cannot use it: {error}") from None


def _checked_state(weights: Weights, wanted: Mapping[str, Array], copied: Callable[[Array], Array]) -> dict[str, Array]:
    """Return a copy of each parameter by name; one that does not fit raises an error before the rest are read."""
    state: dict[str, Array] = {}
    for name, x in weights:
        if name not in wanted:
            raise KeyError(f"the checkpoint has a parameter {name}, but a model with this config.json does not")
        if tuple(x.shape) != tuple(wanted[name].shape):
            raise ValueError(f"{name} has shape {shape(x)} in the checkpoint, but {shape(wanted[name])} is needed")
        if "float" not in str(x.dtype):
            raise TypeError(f"{name} has dtype {x.dtype}, but floating point is needed: is the checkpoint quantized?")
        state[name] = copied(x)
    if missing := wanted.keys() - state.keys():
        raise KeyError(f"the checkpoint lacks {', '.join(sorted(missing))}, which this config.json asks for")
    return state
