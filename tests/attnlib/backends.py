"""What every test of attnlib shares: the backends behind one small face, the sizes, the calls under contract.

The sizes are pairwise distinct primes, so that a mixed-up axis cannot pass:
B batch, H heads, T queries, S keys, D width of a query, D_K of a key, D_V of a value, D_A of additive attention.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import settings

import attnlib

B, H, T, S, D, D_V, D_K, D_A = 2, 3, 5, 7, 11, 13, 17, 19


class Numpy:
    """Arrays of NumPy."""

    dtypes = ("float16", "float32", "float64")

    def __str__(self):
        return "numpy"

    def array(self, x, dtype="float64"):
        """A fresh array of this backend."""
        return np.array(x, dtype)

    def numpy(self, x):
        """A result as a float64 NumPy array; it must be an array of this backend."""
        assert type(x) is np.ndarray
        return x.astype(np.float64)


class Torch:
    """Tensors of torch, on one device."""

    dtypes = ("float16", "bfloat16", "float32", "float64")

    def __init__(self, device):
        self.device = torch.device(device)

    def __str__(self):
        return f"torch-{self.device.type}"

    def array(self, x, dtype="float64"):
        """A fresh tensor on this device."""
        return torch.tensor(np.array(x).tolist(), dtype=getattr(torch, dtype), device=self.device).reshape(np.shape(x))

    def numpy(self, x):
        """A result as a float64 NumPy array; it must be a tensor on this device."""
        assert type(x) is torch.Tensor
        assert x.device.type == self.device.type
        return x.detach().to("cpu", torch.float64).numpy()


DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
BACKENDS = [Numpy(), *map(Torch, DEVICES)]
TYPED = [(backend, dtype) for backend in BACKENDS for dtype in backend.dtypes]


def dtype_name(x):
    """The name of an array's dtype, without its library."""
    return str(x.dtype).removeprefix("torch.")


def strided(backend, x):
    """The values of x as a view that skips every other element along each axis."""
    every_other = (slice(None, None, 2),) * x.ndim
    apart = np.full([2 * n for n in x.shape], 99.0)
    apart[every_other] = x
    return backend.array(apart)[every_other]


class Call(NamedTuple):
    """A public function with the shapes of its array arguments and of its results."""

    function: Callable
    arguments: dict
    results: tuple
    options: Mapping = MappingProxyType({})  # arguments that are no arrays of floats

    def draw(self, rng):
        """Random arguments, as float64 NumPy arrays."""
        return {name: rng.standard_normal(shape) for name, shape in self.arguments.items()}

    def __call__(self, **arguments):
        """The results, always as a tuple."""
        results = self.function(**arguments, **self.options)
        return results if isinstance(results, tuple) else (results,)


def assert_error_names(backend, call, exception, words):
    """`call(ones)`, where `ones(*sizes, dtype=...)` makes an array, must raise an error that names what came.

    Each word is a regular expression that the message must contain.
    """

    def ones(*sizes, dtype="float64"):
        return backend.array(np.ones(sizes), dtype)

    with pytest.raises(exception) as caught:
        call(ones)
    for word in words:
        assert re.search(word, str(caught.value)), f"{word} is not in: {caught.value}"


def sizes(*shape):
    """The shape as a message has it, as a regular expression."""
    return re.escape(str(shape))


PAIR = {"query": (B, T, D), "key": (B, S, D)}
WIDE = {"query": (B, T, D), "key": (B, S, D_K)}
SIMILARITIES = {
    "dot": Call(attnlib.dot, PAIR, ((B, T, S),)),
    "scaled_dot": Call(attnlib.scaled_dot, PAIR, ((B, T, S),)),
    "general": Call(attnlib.general, WIDE | {"weight": (D, D_K)}, ((B, T, S),)),
    "additive": Call(attnlib.additive, WIDE | {"w_query": (D, D_A), "w_key": (D_K, D_A), "v": (D_A,)}, ((B, T, S),)),
    "cosine": Call(attnlib.cosine, PAIR, ((B, T, S),)),
    "gaussian": Call(attnlib.gaussian, PAIR, ((B, T, S),)),
}
ATTENTION = Call(attnlib.attention, PAIR | {"value": (B, S, D_V)}, ((B, T, D_V), (B, T, S)))
CALLS = SIMILARITIES | {
    "softmax": Call(attnlib.softmax, {"x": (B, T, S)}, ((B, T, S),)),
    "attention": ATTENTION,
    "attention_with_float_mask": ATTENTION._replace(arguments=ATTENTION.arguments | {"mask": (T, S)}),
    "self_attention": Call(attnlib.self_attention, {"x": (B, T, D)}, ((B, T, D), (B, T, T))),
}


def as_score(name, arguments):
    """A similarity with its parameters bound, as `attention` takes it, and the query and the key apart."""
    query, key, *parameters = arguments
    bound = {parameter: arguments[parameter] for parameter in parameters}
    return partial(SIMILARITIES[name].function, **bound), arguments[query], arguments[key]


# The same examples in every run, and nothing written to disk.
examples = settings(deadline=None, max_examples=25, derandomize=True, database=None)


def tenths(*shape):
    """Matrices of numbers in [-5, 5] that are whole tenths: zeros and ties come up, underflow does not."""
    return hnp.arrays(np.float64, shape, elements=st.integers(-50, 50).map(lambda n: n / 10))
