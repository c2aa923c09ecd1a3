"""The parts of layers for NumPy arrays, with the names of ``torch.nn`` and its names and shapes of parameters.

They compute and do not train. Parameters are float32 to begin with and take the dtype of what is loaded.

Dimensions: E width in, F width out, V entries of a table.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from attnlib._arrays import Array, array_namespace, is_torch, refuse_subclass, shape
from attnlib._types import Stored
from attnlib.rms_norm import rms_norm

Floats = NDArray[np.floating[Any]]

_SKIP_INIT: ContextVar[bool] = ContextVar("_SKIP_INIT", default=False)


@contextmanager
def skip_init() -> Iterator[None]:
    """Create layers whose large parameters take neither time nor memory, because others will replace them."""
    token = _SKIP_INIT.set(True)
    try:
        yield
    finally:
        _SKIP_INIT.reset(token)


def _drawn(draw: Callable[..., Any], size: tuple[int, ...]) -> Floats:
    """Return float32 parameters that are drawn at random, or, under :func:`skip_init`, a view of a single 0."""
    drawn: Floats = np.broadcast_to(np.float32(0), size) if _SKIP_INIT.get() else draw(size=size).astype(np.float32)
    return drawn


class Module:
    """A layer: its parameters, its own layers, and a ``forward``, each an attribute.

    Floating-point arrays are parameters. Other arrays, such as indices and masks, are not: they are never cast, and
    ``state_dict`` does not hold them.
    """

    training = False  # as a torch module after eval()

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the layer's ``forward``."""
        return self.forward(*args, **options)

    def forward(self, *args: Any, **options: Any) -> Any:
        """Compute the layer's result, which each layer defines."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def eval(self) -> Self:
        """Return the module: it always computes as torch's modules do after ``eval()``."""
        return self

    def train(self, mode: bool = True) -> Self:
        """Return the module for ``train(False)``, which is ``eval()``; NotImplementedError for ``train()``."""
        if mode:
            raise NotImplementedError(f"{type(self).__name__} of attnlib.numpy does not train: use attnlib.torch's")
        return self.eval()

    def half(self) -> Self:
        """Cast all parameters to float16; return the module."""
        return self._cast(np.float16)

    def float(self) -> Self:
        """Cast all parameters to float32; return the module."""
        return self._cast(np.float32)

    def double(self) -> Self:
        """Cast all parameters to float64; return the module."""
        return self._cast(np.float64)

    def parameters(self) -> Iterator[Floats]:
        """Yield all parameters: the arrays themselves, not copies."""
        return (x for _, x in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Floats]]:
        """Yield all parameters with their names, such as ``layers.0.norm1.weight``."""
        return ((name, getattr(owner, attribute)) for name, owner, attribute in self._parameters())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """Yield the module, whose name is empty, and all parts with their names, such as ``layers.0.norm1``."""
        yield prefix, self
        start = f"{prefix}." if prefix else ""
        for name, x in vars(self).items():
            parts = {f"{name}.{i}": part for i, part in enumerate(x)} if isinstance(x, ModuleList) else {name: x}
            for path, part in parts.items():
                if isinstance(part, Module):
                    yield from part.named_modules(start + path)

    def state_dict(self) -> dict[str, Floats]:
        """Return all parameters by name: the arrays themselves, not copies."""
        return dict(self.named_parameters())

    def load_state_dict(self, state: Mapping[str, Stored], strict: bool = True) -> Self:
        """Copy the arrays (or tensors) in ``state`` and adopt their dtype; return the module.

        Without ``strict``, parameters that are missing from ``state`` are kept, in the dtype of the others, and
        unknown names are ignored.

        Raises:
            KeyError: a parameter is missing from ``state``, or ``state`` has an unknown name (with ``strict``).
            ValueError: an array has another shape than the parameter.
            TypeError: the arrays are not floating point, or not all of one dtype.
        """
        mine = self.state_dict()
        if not strict:
            state = {name: state[name] for name in mine if name in state}
        require_same_shapes(type(self).__name__, mine if strict else {name: mine[name] for name in state}, state)
        arrays = {name: _as_numpy(x) for name, x in state.items()}
        if arrays:
            array_namespace(**arrays)
            self._cast(next(iter(arrays.values())).dtype, arrays)
        return self

    def _cast(self, dtype: DTypeLike, new: Mapping[str, Floats] | None = None) -> Self:
        """Replace parameters by the new arrays, and cast the others."""
        for name, owner, attribute in list(self._parameters()):
            x = (new or {}).get(name, getattr(owner, attribute))
            setattr(owner, attribute, x.astype(dtype, copy=False))
        return self

    def _parameters(self) -> Iterator[tuple[str, "Module", str]]:
        for path, module in self.named_modules():
            for name, x in vars(module).items():
                if isinstance(x, np.ndarray) and x.dtype.kind == "f":
                    yield f"{path}.{name}" if path else name, module, name


def require_same_shapes(name: str, mine: Mapping[str, Array], state: Mapping[str, Array]) -> None:
    """Raise unless ``state`` has an array for every parameter, of its shape, and no other."""
    if missing := mine.keys() - state.keys():
        raise KeyError(f"{name} needs {sorted(missing)}, which are not among {sorted(state)}")
    if unknown := state.keys() - mine.keys():
        raise KeyError(f"{name} has no {sorted(unknown)}, only {sorted(mine)}")
    for parameter, x in mine.items():
        refuse_subclass(parameter, state[parameter])
        if tuple(state[parameter].shape) != tuple(x.shape):
            raise ValueError(f"{parameter} has shape {shape(state[parameter])}, but {shape(x)} is needed")


class ModuleList(list[Module]):
    """A list of layers, whose names are their numbers."""


class Linear(Module):
    """``x @ weight.T + bias``: weight ``(F, E)``, bias ``(F,)``, drawn as torch draws them.

    Args:
        in_features: E.
        out_features: F.
        bias: whether a bias is added.

    Returns:
        From the call, ``(..., F)`` for ``(..., E)``.

    Raises:
        TypeError: the array is of another library or dtype than the weight.
        ValueError: the array is not E wide.

    Source:
        ``torch.nn.Linear``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        bound = in_features**-0.5 if in_features else 0.0
        draw = partial(np.random.uniform, -bound, bound)
        self.weight: Floats = _drawn(draw, (out_features, in_features))
        self.bias: Floats | None = _drawn(draw, (out_features,)) if bias else None

    def forward(self, x: Floats) -> Floats:
        """Return ``(..., F)`` for ``(..., E)``."""
        array_namespace(x=x, weight=self.weight)
        if x.shape[-1:] != self.weight.shape[1:]:
            raise ValueError(f"x has shape {shape(x)}, but (..., {self.weight.shape[1]}) is needed")
        out: Floats = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ self.weight.T  # one product for all sequences
        if self.bias is not None:
            out += self.bias
        return out.reshape(*x.shape[:-1], out.shape[-1])

    if TYPE_CHECKING:
        __call__ = forward


class LayerNorm(Module):
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last dimension: weight and bias ``(E,)``.

    Args:
        normalized_shape: E, a whole number.
        eps: a small number that is added to the variance.

    Returns:
        From the call, ``(..., E)``, computed in at least float32.

    Raises:
        TypeError: the array is of another library or dtype than the weight.
        ValueError: the array is not E wide.

    Source:
        Ba, Kiros and Hinton (2016), "Layer Normalization".
    """

    def __init__(self, normalized_shape: int, eps: float = 1e-5) -> None:
        self.weight: Floats = np.ones(normalized_shape, np.float32)
        self.bias: Floats = np.zeros(normalized_shape, np.float32)
        self.eps = eps

    def forward(self, x: Floats) -> Floats:
        """Return the normalised ``(..., E)``."""
        array_namespace(x=x, weight=self.weight)
        if x.shape[-1:] != self.weight.shape:
            raise ValueError(f"x has shape {shape(x)}, but (..., {len(self.weight)}) is needed")
        work = x.astype(np.result_type(x.dtype, np.float32))
        work -= work.mean(axis=-1, keepdims=True)
        variance = np.einsum("...e,...e->...", work, work)[..., None] / x.shape[-1]
        work /= np.sqrt(variance + variance.dtype.type(self.eps))
        work *= self.weight
        work += self.bias
        return work.astype(x.dtype, copy=False)

    if TYPE_CHECKING:
        __call__ = forward


class RMSNorm(Module):
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dimension: weight ``(E,)``.

    Args:
        normalized_shape: E, a whole number.
        eps: a small number that is added to the mean of the squares.

    Returns:
        From the call, ``(..., E)``, computed in at least float32.

    Raises:
        TypeError: the array is of another library or dtype than the weight.
        ValueError: the array is not E wide.

    Source:
        Zhang and Sennrich (2019), "Root Mean Square Layer Normalization".
    """

    def __init__(self, normalized_shape: int, eps: float = 1e-6) -> None:
        self.weight: Floats = np.ones(normalized_shape, np.float32)
        self.eps = eps

    def forward(self, x: Floats) -> Floats:
        """Return the normalised ``(..., E)``."""
        return rms_norm(x, self.weight, eps=self.eps)

    if TYPE_CHECKING:
        __call__ = forward


class OffsetRMSNorm(RMSNorm):
    """``x / sqrt(mean(x**2) + eps) * (1 + weight)``: the weight is 0 to begin with, so it is kept with more digits.

    Args:
        normalized_shape: E, a whole number.
        eps: a small number that is added to the mean of the squares.

    Returns:
        From the call, ``(..., E)``, computed in at least float32: in half precision, 1 + weight would be rounded.

    Raises:
        TypeError: the array is of another library or dtype than the weight.
        ValueError: the array is not E wide.

    Source:
        Gemma Team (2024), "Gemma: Open Models Based on Gemini Research and Technology"; the 1 is in their program.
    """

    weight_offset = 1.0

    def __init__(self, normalized_shape: int, eps: float = 1e-6) -> None:
        super().__init__(normalized_shape, eps)
        self.weight = np.zeros(normalized_shape, np.float32)

    def forward(self, x: Floats) -> Floats:
        """Return the normalised ``(..., E)``."""
        array_namespace(x=x, weight=self.weight)
        work = np.result_type(x.dtype, np.float32)
        weight = self.weight_offset + self.weight.astype(work, copy=False)
        return rms_norm(x.astype(work, copy=False), weight, eps=self.eps).astype(x.dtype, copy=False)

    if TYPE_CHECKING:
        __call__ = forward


class Embedding(Module):
    """A table with a vector for every index: weight ``(V, E)``.

    Args:
        num_embeddings: V.
        embedding_dim: E.

    Returns:
        From the call, ``(..., E)`` for indices ``(...)``.

    Raises:
        TypeError: the indices are not an array of integers.
        ValueError: an index is not in 0..V-1.

    Source:
        ``torch.nn.Embedding``.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self.weight: Floats = _drawn(np.random.standard_normal, (num_embeddings, embedding_dim))

    def forward(self, index: NDArray[np.integer[Any]]) -> Floats:
        """Return ``(..., E)`` for indices ``(...)``."""
        if not isinstance(index, np.ndarray) or not np.issubdtype(index.dtype, np.integer):
            kind = getattr(index, "dtype", type(index).__name__)
            raise TypeError(f"index is {kind}, but an array of integers is needed")
        refuse_subclass("index", index)
        rows = len(self.weight)
        if index.size and not 0 <= index.min() <= index.max() < rows:
            raise ValueError(f"indices go from {index.min()} to {index.max()}, but the table has {rows} rows")
        found: Floats = self.weight[index]
        return found

    if TYPE_CHECKING:
        __call__ = forward


class Dropout(Module):
    """Return the input unchanged, because these layers do not train."""

    def __init__(self, p: float = 0.0) -> None:
        self.p = p

    def forward(self, x: Floats) -> Floats:
        """Return ``x``."""
        return x

    if TYPE_CHECKING:
        __call__ = forward


def relu(x: Floats) -> Floats:
    """Return x where it is positive, and 0 elsewhere."""
    return np.maximum(x, 0)


def gelu_tanh(x: Floats) -> Floats:
    r"""Return the approximation of gelu that GPT-2 uses: ``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))``."""
    work = x.astype(np.result_type(x.dtype, np.float32), copy=False)
    inner = math.sqrt(2 / math.pi) * (work + 0.044715 * work * work * work)
    return (0.5 * work * (1 + np.tanh(inner))).astype(x.dtype, copy=False)


def _as_numpy(x: Array) -> Floats:
    if not is_torch(x):
        return np.array(x)
    x = x.detach().cpu()
    return np.array((x if str(x.dtype) != "torch.bfloat16" else x.float()).numpy())  # NumPy has no bfloat16
