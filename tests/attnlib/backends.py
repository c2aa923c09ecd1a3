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
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


class OnMeta(TorchDispatchMode):
    """Every operation inside must make tensors on the meta device alone, and read no value back from it."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        results = operation(*args, **(kwargs or {}))
        made = [x.device.type for x in tree_leaves(results) if isinstance(x, torch.Tensor)]
        assert made == ["meta"] * len(made), f"{operation} made a tensor on {made}"
        took = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        assert made or not took, f"{operation} waits for a value"
        return results


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


def cell_weights(gates, width, state):
    """The shapes of a recurrent cell's parameters."""
    rows = gates * state
    return {"w_ih": (rows, width), "w_hh": (rows, state), "b_ih": (rows,), "b_hh": (rows,)}


def encode_with_gru(x, h0, w_ih, w_hh, b_ih, b_hh, lengths=None):
    """`encode` with the arrays alone as arguments."""
    return attnlib.encode(attnlib.gru_cell, x, h0, w_ih, w_hh, b_ih, b_hh, lengths=lengths)


def rolled_out(first, second):
    """`attention_rollout` with the layers as arguments of their own."""
    return attnlib.attention_rollout([first, second])


def bahdanau(y, state, memory, mask=None, **params):
    """`bahdanau_step` with the parameters as arguments of their own."""
    return attnlib.bahdanau_step(y, state, memory, params, mask=mask)


def luong(y, state, memory, score, mask=None, **params):
    """`luong_step` with the parameters as arguments of their own."""
    return attnlib.luong_step(y, state, memory, params, score=score, mask=mask)


STATE, MEMORY = D_K, D_V  # widths of a decoder's state and of an encoder's
HIDDEN = {"w_query": (STATE, D_A), "w_key": (MEMORY, D_A), "v": (D_A,)}
STEP = {"y": (B, D), "state": (B, STATE), "memory": (B, S, MEMORY)}
ENCODED = {"x": (B, T, D), "h0": (B, D_K)} | cell_weights(3, D, D_K)
BAHDANAU = Call(bahdanau, STEP | HIDDEN | cell_weights(3, D + MEMORY, STATE), ((B, STATE), (B, MEMORY), (B, S)))
LUONG = {
    "dot": {"memory": (B, S, STATE), "w_c": (2 * STATE, T)},
    "general": {"weight": (STATE, MEMORY), "w_c": (MEMORY + STATE, T)},
    "concat": HIDDEN | {"w_c": (MEMORY + STATE, T)},
}


def luong_call(score, more):
    """A step of Luong's decoder with this score, its parameters' shapes given."""
    shapes = STEP | more | cell_weights(3, D, STATE)
    return Call(luong, shapes, ((B, STATE), (B, T), (B, S)), {"score": score})


HEADED = {"query": (B, T, D), "key": (B, S, D_K), "value": (B, S, D_V)} | {
    "w_q": (D, H * T),
    "w_k": (D_K, H * T),
    "w_v": (D_V, H * B),
    "w_o": (H * B, D_A),
}
ROPE = Call(attnlib.apply_rope, {"x": (B, T, D), "cos": (T, D // 2), "sin": (T, D // 2)}, ((B, T, D),))
ATTENTION = Call(attnlib.attention, PAIR | {"value": (B, S, D_V)}, ((B, T, D_V), (B, T, S)))
QKV = PAIR | {"value": (B, S, D_V)}
SDPA = Call(attnlib.scaled_dot_product_attention, QKV, ((B, T, D_V),))
SDPA_BACKWARD = Call(attnlib.scaled_dot_product_attention_backward, {"grad": (B, T, D_V)} | QKV, tuple(QKV.values()))
SCALING = attnlib.RopeScaling(8.0, original_length=41)
SAMPLING = {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.05}
CALLS = SIMILARITIES | {
    "softmax": Call(attnlib.softmax, {"x": (B, T, S)}, ((B, T, S),)),
    "attention": ATTENTION,
    "attention_with_float_mask": ATTENTION._replace(arguments=ATTENTION.arguments | {"mask": (T, S)}),
    "scaled_dot_product_attention": SDPA,
    "scaled_dot_product_attention_with_float_mask": SDPA._replace(arguments=SDPA.arguments | {"attn_mask": (T, S)}),
    "scaled_dot_product_attention_with_all_options": SDPA._replace(
        options={"is_causal": True, "q_offset": 2, "window": (4, 1), "scale": 0.3, "softcap": 2.0}
        | {"return_weights": True, "return_lse": True},
        results=((B, T, D_V), (B, T, S), (B, T)),
    ),
    "scaled_dot_product_attention_backward": SDPA_BACKWARD,
    "scaled_dot_product_attention_backward_with_all_options": SDPA_BACKWARD._replace(
        options={"is_causal": True, "q_offset": 2, "window": (4, 1), "scale": 0.3, "softcap": 2.0}
    ),
    "attention_rollout": Call(rolled_out, {"first": (B, H, T, T), "second": (B, H, T, T)}, ((B, T, T),)),
    "self_attention": Call(attnlib.self_attention, {"x": (B, T, D)}, ((B, T, D), (B, T, T))),
    "rnn_cell": Call(attnlib.rnn_cell, {"x": (B, T, D), "h": (T, D_K)} | cell_weights(1, D, D_K), ((B, T, D_K),)),
    "gru_cell": Call(attnlib.gru_cell, {"x": (B, T, D), "h": (T, D_K)} | cell_weights(3, D, D_K), ((B, T, D_K),)),
    "encode": Call(encode_with_gru, ENCODED, ((B, T, D_K), (B, D_K))),
    "encode_with_lengths": Call(encode_with_gru, ENCODED, ((B, T, D_K), (B, D_K)), {"lengths": [3, 5]}),
    "bahdanau_step": BAHDANAU,
    "bahdanau_step_with_float_mask": BAHDANAU._replace(arguments=BAHDANAU.arguments | {"mask": (B, S)}),
    "split_heads": Call(attnlib.split_heads, {"x": (B, T, H * D)}, ((B, H, T, D),), {"num_heads": H}),
    "merge_heads": Call(attnlib.merge_heads, {"x": (B, H, T, D)}, ((B, T, H * D),)),
    "multi_head_attention": Call(attnlib.multi_head_attention, HEADED, ((B, T, D_A),), {"num_heads": H}),
    "rope_tables": Call(attnlib.rope_tables, {"positions": (B, 1, T)}, ((B, 1, T, D_K),) * 2, {"D": 2 * D_K}),
    "rope_tables_scaled": Call(
        attnlib.rope_tables, {"positions": (B, 1, T)}, ((B, 1, T, D_K),) * 2, {"D": 2 * D_K, "scaling": SCALING}
    ),
    "apply_rope": ROPE,
    "apply_rope_interleaved": ROPE._replace(options={"interleaved": True}),
    "rms_norm": Call(attnlib.rms_norm, {"x": (B, T, D)}, ((B, T, D),)),
    "rms_norm_with_weight": Call(attnlib.rms_norm, {"x": (B, T, D), "weight": (D,)}, ((B, T, D),), {"eps": 0.1}),
    "swiglu": Call(attnlib.swiglu, {"gate": (B, T, D), "up": (B, T, D)}, ((B, T, D),)),
    "sampling_probabilities": Call(attnlib.sampling_probabilities, {"logits": (B, T, D)}, ((B, T, D),)),
    "sampling_probabilities_with_all_options": Call(
        attnlib.sampling_probabilities, {"logits": (B, T, D)}, ((B, T, D),), SAMPLING
    ),
    **{f"luong_step_{score}": luong_call(score, more) for score, more in LUONG.items()},
}


def as_score(name, arguments):
    """A similarity with its parameters bound, as `attention` takes it, and the query and the key apart."""
    query, key, *parameters = arguments
    bound = {parameter: arguments[parameter] for parameter in parameters}
    return partial(SIMILARITIES[name].function, **bound), arguments[query], arguments[key]


# The same examples in every run, and nothing written to disk.
examples = settings(max_examples=25, derandomize=True, database=None)


def tenths(*shape):
    """Matrices of numbers in [-5, 5] that are whole tenths: zeros and ties come up, underflow does not."""
    return hnp.arrays(np.float64, shape, elements=st.integers(-50, 50).map(lambda n: n / 10))
