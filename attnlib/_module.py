"""What layers of NumPy arrays are built from: named after ``torch.nn``, with its parameters' names and shapes.

They compute and do not train. Parameters are float32 to begin with and take the dtype of what is loaded.

Dimensions: E width in, F width out, V entries of a table.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import Array, backend, is_torch, shape

Floats = NDArray[np.floating[Any]]


class Module:
    """A layer: parameters (arrays) and further layers, by name, and a ``forward``."""

    training = False  # as a torch module after eval()

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute, by the layer's ``forward``."""
        return self.forward(*args, **options)

    def forward(self, *args: Any, **options: Any) -> Any:
        """Compute: each layer says what."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def state_dict(self) -> dict[str, Floats]:
        """Return all parameters by name, ``layers.0.norm1.weight`` say: the arrays themselves, not copies."""
        return {name: getattr(owner, attribute) for name, owner, attribute in self._parameters("")}

    def load_state_dict(self, state: Mapping[str, Array]) -> Self:
        """Take copies of the arrays (or tensors) in ``state``, and their dtype; return the module.

        Raises:
            KeyError: a parameter is missing from ``state``, or something in it is none.
            ValueError: an array has another shape than the parameter.
            TypeError: the arrays are not floating point, or not all of one dtype.
        """
        mine = {name: (owner, attribute) for name, owner, attribute in self._parameters("")}
        require_same_shapes(type(self).__name__, self.state_dict(), state)
        arrays = {name: _as_numpy(x) for name, x in state.items()}
        backend(**arrays)
        for name, (owner, attribute) in mine.items():
            setattr(owner, attribute, arrays[name])
        return self

    def _parameters(self, prefix: str) -> Iterator[tuple[str, "Module", str]]:
        for name, x in vars(self).items():
            if isinstance(x, np.ndarray):
                yield prefix + name, self, name
            elif isinstance(x, Module):
                yield from x._parameters(f"{prefix}{name}.")
            elif isinstance(x, ModuleList):
                for i, module in enumerate(x):
                    yield from module._parameters(f"{prefix}{name}.{i}.")


def require_same_shapes(name: str, mine: Mapping[str, Array], state: Mapping[str, Array]) -> None:
    """Raise unless ``state`` has an array for every parameter, of its shape, and nothing else."""
    if missing := mine.keys() - state.keys():
        raise KeyError(f"{name} needs {sorted(missing)}, which are not among {sorted(state)}")
    if unknown := state.keys() - mine.keys():
        raise KeyError(f"{name} has no {sorted(unknown)}, only {sorted(mine)}")
    for parameter, x in mine.items():
        if tuple(state[parameter].shape) != tuple(x.shape):
            raise ValueError(f"{parameter} has shape {shape(state[parameter])}, but {shape(x)} is needed")


class ModuleList(list[Module]):
    """Layers by number."""


class Linear(Module):
    """``x @ weight.T + bias``: weight ``(F, E)``, bias ``(F,)``, drawn as torch draws them.

    Args:
        in_features: E.
        out_features: F.
        bias: whether something is added.

    Returns:
        From the call, ``(..., F)`` for ``(..., E)``.

    Raises:
        TypeError: the array is of another library or dtype than the weight.
        ValueError: the array is not E wide.

    Source:
        ``torch.nn.Linear``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        reach = in_features**-0.5
        self.weight: Floats = np.random.uniform(-reach, reach, (out_features, in_features)).astype(np.float32)
        self.bias: Floats | None = np.random.uniform(-reach, reach, out_features).astype(np.float32) if bias else None

    def forward(self, x: Floats) -> Floats:
        """Return ``(..., F)`` for ``(..., E)``."""
        backend(x=x, weight=self.weight)
        if x.shape[-1:] != self.weight.shape[1:]:
            raise ValueError(f"x has shape {shape(x)}, but (..., {self.weight.shape[1]}) is needed")
        out: Floats = x.reshape(-1, x.shape[-1]) @ self.weight.T  # one product, not one a sequence
        if self.bias is not None:
            out += self.bias
        return out.reshape(*x.shape[:-1], out.shape[-1])


class LayerNorm(Module):
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last dimension: weight and bias ``(E,)``.

    Args:
        width: E.
        eps: what is added to the variance.

    Returns:
        From the call, ``(..., E)``, computed in at least float32.

    Raises:
        TypeError: the array is of another library or dtype than the weight.
        ValueError: the array is not E wide.

    Source:
        Ba, Kiros and Hinton (2016), "Layer Normalization".
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        self.weight: Floats = np.ones(width, np.float32)
        self.bias: Floats = np.zeros(width, np.float32)
        self.eps = eps

    def forward(self, x: Floats) -> Floats:
        """Return the normalised ``(..., E)``."""
        backend(x=x, weight=self.weight)
        if x.shape[-1:] != self.weight.shape:
            raise ValueError(f"x has shape {shape(x)}, but (..., {len(self.weight)}) is needed")
        work = x.astype(np.result_type(x.dtype, np.float32))
        work -= work.mean(axis=-1, keepdims=True)
        variance = np.einsum("...e,...e->...", work, work)[..., None] / x.shape[-1]
        work /= np.sqrt(variance + variance.dtype.type(self.eps))
        work *= self.weight
        work += self.bias
        return work.astype(x.dtype, copy=False)


class Embedding(Module):
    """A table with a vector for every index: weight ``(V, E)``.

    Args:
        num_embeddings: V.
        embedding_dim: E.

    Returns:
        From the call, ``(..., E)`` for indices ``(...)``.

    Raises:
        TypeError: the indices are no array of integers.
        ValueError: an index is not in 0..V-1.

    Source:
        ``torch.nn.Embedding``.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self.weight: Floats = np.random.standard_normal((num_embeddings, embedding_dim)).astype(np.float32)

    def forward(self, index: NDArray[np.integer[Any]]) -> Floats:
        """Return ``(..., E)`` for indices ``(...)``."""
        if not isinstance(index, np.ndarray) or not np.issubdtype(index.dtype, np.integer):
            kind = getattr(index, "dtype", type(index).__name__)
            raise TypeError(f"index is {kind}, but an array of integers is needed")
        rows = len(self.weight)
        if index.size and not 0 <= index.min() <= index.max() < rows:
            raise ValueError(f"indices go from {index.min()} to {index.max()}, but the table has {rows} rows")
        found: Floats = self.weight[index]
        return found


class Dropout(Module):
    """Nothing: these layers do not train."""

    def __init__(self, p: float = 0.0) -> None:
        self.p = p

    def forward(self, x: Floats) -> Floats:
        """Return ``x``."""
        return x


def relu(x: Floats) -> Floats:
    """Return x where it is positive, else 0."""
    return np.maximum(x, 0)


def _as_numpy(x: Array) -> Floats:
    if not is_torch(x):
        return np.array(x)
    x = x.detach().cpu()
    return np.array((x if str(x.dtype) != "torch.bfloat16" else x.float()).numpy())  # NumPy has no bfloat16
