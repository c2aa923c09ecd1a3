"""What a public function checks before it computes: backends, dtypes and shapes.

torch is never imported here. A torch tensor can only arrive once its owner has imported torch, so looking in
``sys.modules`` is enough (einops does the same). No other library is imported either: arrays from JAX and all
others that follow the array API standard provide their own functions (``__array_namespace__``).

Dimensions: T queries, S keys, D width.
"""

import sys
from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from attnlib._extras import explain_missing

# A result comes from the same library as the arguments. Where annotations cannot express this and say only Array, the
# checks below enforce it.
ARRAY_TYPES = "numpy.ndarray, a torch.Tensor or an array from a library that follows the array API (such as JAX)"
WRAPPED = ("cupy.", "dask.array.")  # modules whose arrays get their namespace from array-api-compat
NO_OTHER_ARRAYS = (np.ndarray, np.generic, type)  # these have the attribute too
Array = Any
# The devices on which torch.is_autocast_enabled raises. torch.amp.is_autocast_available would tell, but torch.compile
# cannot trace it in torch 2.9 and 2.10.
NO_AUTOCAST = ("meta", "lazy", "vulkan")
LONGEST = 60  # characters of a value in a message
NATIVE = tuple(map(np.dtype, (np.float32, np.float64, np.float16)))  # in native byte order

_torch: Any = sys.modules.get("torch")


def imported_torch() -> Any:
    """Return torch if it has been imported, or else None.

    The module is cached, because torch.compile would otherwise have to trace every lookup among thousands of modules.
    """
    global _torch
    if _torch is None:
        _torch = sys.modules.get("torch")
    return _torch


def is_torch(x: object) -> bool:
    """Tell whether ``x`` is a torch tensor, without importing torch."""
    torch = _torch or imported_torch()
    return torch is not None and isinstance(x, torch.Tensor)


def is_array(x: object) -> bool:
    """Tell whether ``x`` is an array of a library that attnlib can compute with."""
    return isinstance(x, np.ndarray) or is_torch(x) or _has_array_api(x)


def is_autocast_enabled(x: object) -> bool:
    """Tell whether torch.autocast is enabled on the device of ``x``: torch chooses dtypes, mixed ones are allowed."""
    if not is_torch(x):
        return False
    kind = x.device.type  # type: ignore[attr-defined]
    return kind not in NO_AUTOCAST and bool(imported_torch().is_autocast_enabled(kind))


def is_floating(x: Array) -> bool:
    """Tell whether an array holds floating point numbers."""
    if isinstance(x, np.ndarray):
        return bool(x.dtype.kind == "f")
    return bool(x.dtype.is_floating_point) if is_torch(x) else bool(namespace(x).isdtype(x.dtype, "real floating"))


def array_namespace(**arrays: Array) -> ModuleType:
    """Return the array API namespace of the named arrays, after checking that they share it and a floating-point dtype.

    Raises:
        TypeError: an argument is not an array, is not floating point, or differs in backend or dtype from the first.
    """
    first_name, first = next(iter(arrays.items()))
    if plainly_agree(first, arrays.values()):
        return namespace(first)
    for name, x in arrays.items():
        if type(x) is not np.ndarray and not is_torch(x):
            _require_array(name, x)
        if not same_library(first, x):
            raise TypeError(
                f"{first_name} is {describe_type(first)} but {name} is {describe_type(x)}: convert one of them"
            )
        if not is_floating(x):
            raise TypeError(f"{name} has dtype {x.dtype}, but attention needs floating point: use float32 or float64")
        if isinstance(x, np.ndarray) and not x.dtype.isnative:
            raise TypeError(
                f"{name} has dtype {x.dtype}, not in native byte order: use x.astype(x.dtype.newbyteorder('='))"
            )
        if x.dtype != first.dtype and not is_autocast_enabled(first):
            raise TypeError(
                f"{first_name} has dtype {first.dtype} but {name} has {x.dtype}: cast one; nothing is upcast silently"
            )
        require_same_device(first_name, first, name, x)
    return namespace(first)


def same_library(one: Array, other: Array) -> bool:
    """Tell whether two arrays come from the same library, even if their classes differ."""
    if type(one) is type(other):
        return True
    if is_torch(one) or is_torch(other):
        return is_torch(one) and is_torch(other)
    return namespace(one) is namespace(other)


def require_same_device(first_name: str, first: Array, name: str, x: Array) -> None:
    """Raise ValueError if two arrays of one library are torch tensors on different devices."""
    if x is not first and is_torch(x) and x.device != first.device:
        moved = "layer" if "." in name else name  # a name such as q_proj.weight belongs to a layer
        raise ValueError(
            f"{first_name} is on {first.device} but {name} is on {x.device}: use {moved}.to({first_name}.device)"
        )


def require_sequence(**arrays: Array) -> None:
    """Raise ValueError unless every named array is at least a matrix ``(..., T, D)``."""
    for name, x in arrays.items():
        if x.ndim < 2:
            raise ValueError(f"{name} has shape {shape(x)}, but (..., T, D) is needed: at least 2 dimensions")


def require_equal_width(query: Array, key: Array) -> None:
    """Raise ValueError unless queries and keys have vectors of the same width D."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has shape {shape(query)} and key {shape(key)}: their widths D={query.shape[-1]} and "
            f"D={key.shape[-1]} must be equal for this similarity (general and additive allow different widths)"
        )


def require_broadcast(**arrays: Array) -> None:
    """Raise ValueError unless the leading dimensions (all but the last two) of the named arrays broadcast together."""
    broadcast_batch_shape(**{name: (x, 2) for name, x in arrays.items()})


def broadcast_batch_shape(**arrays: tuple[Array, int]) -> tuple[int, ...]:
    """Return the leading dimensions of the named arrays, broadcast together.

    Each array comes with its number of last dimensions that are not batch dimensions: pass ``x=(x, 2), h=(h, 1)`` for
    an ``x`` of shape ``(..., T, D)`` and an ``h`` of shape ``(..., D)``. Raise ValueError if an array has too few
    dimensions, or if they do not broadcast.
    """
    for name, (x, own) in arrays.items():
        if x.ndim < own:
            raise ValueError(f"{name} has shape {shape(x)}: too few dimensions, at least {own} needed")
    try:
        return broadcast_shape(*(tuple(x.shape[: x.ndim - own]) for x, own in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {shape(x)}" for name, (x, _) in arrays.items())
        raise ValueError(f"leading dimensions do not broadcast together: {shapes}") from None


def require_shapes(
    parameters: Mapping[str, Array], needed: Mapping[str, tuple[int | str, ...]], **inputs: Array
) -> None:
    """Raise ValueError unless each parameter has the shape that the inputs ask for; a letter stands for any size."""
    for name, x in parameters.items():
        sizes = zip(x.shape, needed[name], strict=False)
        if x.ndim != len(needed[name]) or not all(isinstance(n, str) or size == n for size, n in sizes):
            wanted = str(needed[name]).replace("'", "")
            given = ", ".join(f"{name} {shape(x)}" for name, x in inputs.items())
            raise ValueError(f"{name} has shape {shape(x)}, but {wanted} is needed for {given}")


def check_int(name: str, value: int, minimum: int | None = None) -> int:
    """Return a whole number as Python's int, after checking that it is one and at least ``minimum``.

    A size that torch.compile, torch.export, torch.jit.trace or jax.export keeps symbolic is returned unchanged, because
    ``int`` would freeze it. NumPy's integers are converted, because a small one would wrap around in later arithmetic.
    """
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, int) and (_is_traced_size(value) or is_jax_dimension(value)):
        return value
    if isinstance(value, bool) or not (isinstance(value, int) or _is_symbolic(value)):
        sized = "; for the length of a sequence x, pass x.shape[-2]" if getattr(value, "shape", ()) else ""
        raise TypeError(f"{name} is {_describe_value(value)}, but a whole number is needed{sized}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} is {value}, but at least {minimum} is needed")
    return value


def check_float(name: str, value: float) -> float:
    """Return a number as Python's float, which widens no array, after checking that it is one and no tensor.

    Converting a tensor or a JAX array would lose its gradient and wait for its device.
    """
    if isinstance(value, float) and not isinstance(value, np.floating):  # or of torch.compile, which keeps it symbolic
        return value
    if is_array(value) and not isinstance(value, np.ndarray):
        raise TypeError(
            f"{name} is {describe_type(value)}, but a plain number is needed: to learn it, multiply query or key by it"
        )
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise TypeError(f"{name} is {_describe_value(value)}, but a number is needed")
    refuse_subclass(name, value)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {_describe_value(value)}, but a number is needed") from None


def check_bool(name: str, value: bool) -> bool:
    """Return the value as a bool, after checking that it is True or False, and not a mask."""
    if value is True or value is False or isinstance(value, np.bool_):
        return bool(value)
    masked = "; pass a mask as attn_mask" if getattr(value, "shape", ()) else ""
    raise TypeError(f"{name} is {_describe_value(value)}, but True or False is needed{masked}")


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    """Return a string, after checking that it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, but one of {', '.join(map(repr, choices))} is needed")
    return value


def check_probability(name: str, value: float) -> float:
    """Return a number as Python's float, after checking that it is one from 0 to 1."""
    value = check_float(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}, but a probability from 0 to 1 is needed")
    return value


def namespace_and_device(like: Array | None) -> tuple[ModuleType, Any]:
    """Return the array namespace and the device of ``like``, of whatever dtype; NumPy's if it is None."""
    if like is None:
        return np, "cpu"
    refuse_subclass("like", like)
    if not is_array(like):
        raise TypeError(f"like must be a {ARRAY_TYPES} or None, which means NumPy, got {type(like).__name__}")
    return namespace(like), device_of(like)


def integer_indices(name: str, x: Array) -> Array:
    """Return integers of any dtype as int64, which torch's tables need; TypeError if they are not integers."""
    if not hasattr(x, "dtype"):
        raise TypeError(f"{name} is a {type(x).__name__}, but an array of integers is needed")
    xp, _ = namespace_and_device(x)
    if x.dtype == xp.int64:
        return x
    if not xp.isdtype(x.dtype, "integral"):
        raise TypeError(f"{name} has dtype {x.dtype}, but integers are needed")
    return xp.astype(x, xp.int64, copy=False)


def device_of(x: Array) -> Any:
    """Return the device for new arrays that are combined with ``x``; None leaves the choice to the library.

    dask's arrays have no device, and neither do JAX's while it traces them. Otherwise JAX moves arrays to the device
    where they are needed, unless they were placed on one explicitly (``committed``). A JAX array may also be spread
    over several devices.
    """
    if isinstance(x, np.ndarray) or is_torch(x):
        return x.device
    device = getattr(x, "device", None)
    left_to_jax = device is not None and (hasattr(device, "device_set") or not getattr(x, "committed", True))
    return None if left_to_jax else device


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the shapes broadcast, as np.broadcast_shapes does; ValueError where they do not.

    NumPy would freeze the sizes that torch.export keeps symbolic.
    """
    result = [1] * max([len(one) for one in shapes])
    for one in shapes:
        for axis in range(-len(one), 0):
            if result[axis] == 1:
                result[axis] = one[axis]
            elif one[axis] != 1 and one[axis] != result[axis]:
                raise ValueError(f"{shapes} do not broadcast together")
    return tuple(result)


def broadcasts_to(one: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Tell whether a shape broadcasts to another without enlarging that."""
    try:
        return broadcast_shape(tuple(one), wanted) == wanted
    except ValueError:
        return False


def at_least_float32(xp: ModuleType, dtype: Any) -> Any:
    """Return the dtype to compute in: float32 for the half precisions, else ``dtype`` itself."""
    return xp.float32 if xp.finfo(dtype).bits < 32 else dtype


def widest_float(xp: ModuleType, device: Any) -> Any:
    """Return the most precise floating-point dtype: Apple's Metal devices have no float64, and in JAX it is opt-in."""
    if xp is np:
        return np.float64
    if getattr(device, "type", device) == "mps":
        return xp.float32
    if xp.__name__ == "array_api_compat.torch":
        return xp.float64
    return xp.__array_namespace_info__().dtypes(kind="real floating").get("float64", xp.float32)


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """Return ``x`` in a different shape, by its method if it has one, which takes half as long as the function."""
    return x.reshape(shape) if hasattr(x, "reshape") else namespace(x).reshape(x, shape)


def swapaxes(x: Array, one: int, other: int) -> Array:
    """Return ``x`` with two dimensions swapped, by its method if it has one, as in :func:`reshape`."""
    if hasattr(x, "swapaxes"):
        return x.swapaxes(one, other)
    axes = [*range(x.ndim)]
    axes[one], axes[other] = axes[other], axes[one]
    return namespace(x).permute_dims(x, tuple(axes))


def require_mask(name: str, mask: Array, scores_shape: tuple[int, ...], like: Array) -> None:
    """Raise unless a mask is boolean or floating point, and broadcasts to the scores' shape ``(..., T, S)``."""
    refuse_subclass(name, mask)
    if not ((is_array(mask) or isinstance(mask, np.generic)) and same_library(mask, like)):
        raise TypeError(f"{name} is {describe_type(mask)}, but the scores are {describe_type(like)}: convert it")
    if not (str(mask.dtype).endswith("bool") or is_floating(mask)):
        wanted = "bool (True = may attend) or floating point (added)"
        raise TypeError(f"{name} has dtype {mask.dtype}, but {wanted} is needed")
    if not broadcasts_to(mask.shape, scores_shape):
        raise ValueError(
            f"{name} has shape {shape(mask)}, but scores are {scores_shape}: "
            f"T={scores_shape[-2]} queries, S={scores_shape[-1]} keys; it must broadcast to them"
            f"{_missing_axes(name, tuple(mask.shape), scores_shape)}"
        )
    require_same_device("query", like, name, mask)


def _missing_axes(name: str, mask: tuple[int, ...], scores: tuple[int, ...]) -> str:
    """Return what to pass if this looks like one mask for each sequence of a batch, or for each of its heads, or ''."""
    missing = len(scores) - len(mask)
    folded = len(scores) == 4 and len(mask) == 3 and mask[0] == scores[0] * scores[1]
    if folded and broadcasts_to(mask[1:], scores[-2:]):
        heads = f"{name}.reshape{(*scores[:2], *mask[1:])}"
        return f". If it is torch.nn.MultiheadAttention's mask for each head, pass {heads}, with ~ in front if boolean"
    if missing < 1 or not mask or mask[0] != scores[0]:
        return ""
    for kind, last in (("for the keys of each sequence", 1), ("for each sequence", 2)):
        if len(mask) == 1 + last and broadcasts_to(mask[1:], scores[-last:]):
            return f". If it is one mask {kind}, insert axes: {name}[:, {'None, ' * missing}{':, ' * (last - 1)}:]"
    return ""


def shape(x: Array) -> str:
    """Return the shape as NumPy prints it, for arrays of every library."""
    return str(tuple(x.shape))


def plainly_agree(first: Array, arrays: Iterable[Array]) -> bool:
    """Return True if a quick look shows that the arrays agree; False means only that a closer look is needed."""
    dtype = getattr(first, "dtype", None)
    if type(first) is np.ndarray:
        if dtype not in NATIVE:
            return False
        for x in arrays:  # noqa: SIM110 (a generator takes twice as long)
            if type(x) is not np.ndarray or x.dtype != dtype:
                return False
        return True
    if not (is_torch(first) and first.is_floating_point()):
        return False
    for x in arrays:
        if x is not first and not (is_torch(x) and x.dtype is dtype and x.device == first.device):
            return False
    return True


def namespace(x: Array) -> ModuleType:
    """Return the functions of an array's library, under the names of the array API."""
    if isinstance(x, np.ndarray):
        return np  # it has followed the array API since 2.1
    if is_torch(x):
        from attnlib._torch_namespace import ARRAY_API  # not at the top, because it imports torch

        return ARRAY_API
    if _is_wrapped(x):
        with explain_missing("attnlib with arrays of dask or CuPy"):
            import array_api_compat
        return array_api_compat.array_namespace(x)
    library: ModuleType = x.__array_namespace__()
    return library


def describe_type(x: Array) -> str:
    """Return an object's type, with its article, for use in messages."""
    if is_torch(x):
        return "a torch.Tensor"
    if _has_array_api(x):
        return f"an array of {namespace(x).__name__.removeprefix('array_api_compat.').partition('.')[0]}"
    return "a numpy.ndarray" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"


def _has_array_api(x: object) -> bool:
    """Tell whether an object is an array of a library other than NumPy and torch."""
    if isinstance(x, NO_OTHER_ARRAYS):
        return False
    return hasattr(x, "__array_namespace__") or _is_wrapped(x)


def _is_wrapped(x: object) -> bool:
    return f"{type(x).__module__}.".startswith(WRAPPED)


def _describe_value(value: object) -> str:
    """Describe a value for a message: an array by its type and shape, anything else by the beginning of its repr."""
    if getattr(value, "shape", ()):
        return f"a {type(value).__module__.split('.')[0]}.{type(value).__name__} of shape {shape(value)}"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _require_array(name: str, x: Array) -> None:
    """Raise TypeError unless ``x`` is an array that attnlib can compute with."""
    refuse_subclass(name, x)
    if f"{type(x).__module__}.".startswith(("scipy.sparse.", "sparse.")):
        dense = "toarray" if hasattr(x, "toarray") else "todense"
        raise TypeError(f"{name} is a sparse {type(x).__name__}, but attention is dense: pass {name}.{dense}()")
    if not is_array(x):
        raise TypeError(
            f"{name} must be a {ARRAY_TYPES}, got {type(x).__name__}: wrap it in np.asarray or torch.tensor"
        )


def refuse_subclass(name: str, x: Array) -> None:
    """Raise TypeError for an array subclass that gives the usual operations a meaning that attention would ignore."""
    if type(x) is np.ndarray or not isinstance(x, (np.ma.MaskedArray, np.matrix)):
        return
    if isinstance(x, np.ma.MaskedArray):
        counted = ", and use attn_mask (True = may attend) to say which keys count"
        raise TypeError(
            f"{name} is a numpy.ma.MaskedArray, whose mask would be ignored: pass {name}.filled(0)"
            f"{counted if name in ('query', 'key', 'value') else ''}"
        )
    raise TypeError(f"{name} is a numpy.matrix, but a numpy.ndarray is needed: pass np.asarray({name})")


def _is_traced_size(value: object) -> bool:
    """Tell whether a value is a size recorded by torch.jit.trace, which makes it a tensor without dimensions."""
    return is_torch(value) and value.ndim == 0 and imported_torch().jit.is_tracing()  # type: ignore[attr-defined]


def is_jax_dimension(value: object) -> bool:
    """Tell whether a value is a size that jax.export keeps symbolic, which may be impossible to compare."""
    if isinstance(value, int):
        return False
    export = sys.modules.get("jax.export")
    return export is not None and bool(export.is_symbolic_dim(value))


def _is_symbolic(value: object) -> bool:
    torch = imported_torch()
    return torch is not None and isinstance(value, torch.SymInt)
