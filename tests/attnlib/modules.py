"""What the tests of the layers share: every class with its options, and the same random weights for either library.

The weights are set through `state_dict`s of plain arrays; `attnlib.load_weights` is not used here.

E width, HEADS heads of W components each, KV heads of keys and values, FF the width inside a block, P positions.
"""

from typing import NamedTuple

import numpy as np
import torch
from backends import B, S, T
from oracle import attend

import attnlib.numpy
import attnlib.torch

E, HEADS, KV, W, FF, LAYERS, P = 24, 6, 3, 4, 29, 2, 23
ROPE = 100.0  # so small that even the slowest pair of four components turns visibly


class Layer(NamedTuple):
    """A class of `attnlib.numpy` and `attnlib.torch`, and what it is made with."""

    name: str
    arguments: tuple
    options: dict = {}  # noqa: RUF012

    @property
    def decodes(self):
        """Whether it attends to a memory, and so needs a key."""
        return self.name.startswith("Decoder")

    @property
    def attends(self):
        """Whether it has weights to show."""
        return self.name != "LearnedPositions"

    def plain(self, library):
        """A fresh module of the library."""
        return getattr(library, self.name)(*self.arguments, **self.options)

    def state(self):
        """Random parameters by name, the same every time."""
        rng = np.random.default_rng(1706)
        return {
            name: parameter(name, x.shape, rng) for name, x in sorted(self.plain(attnlib.numpy).state_dict().items())
        }

    def build(self, backend, dtype="float64"):
        """A module of the backend's library and on its device, with the random parameters in it, and evaluating."""
        module = self.plain(library(backend))
        state = {name: backend.array(x, dtype) for name, x in self.state().items()}
        if isinstance(module, torch.nn.Module):
            module = module.to(backend.device, getattr(torch, dtype)).eval()
        module.load_state_dict(state)
        return module

    def inputs(self, backend, dtype="float64", length=T):
        """A batch of sequences and, for a decoder, a memory."""
        rng = np.random.default_rng(3762)
        shapes = {"query" if self.attends else "x": (B, length, E)} | ({"key": (B, S, E)} if self.decodes else {})
        return {name: backend.array(rng.standard_normal(shape), dtype) for name, shape in shapes.items()}


def parameter(name, shape, rng):
    """Random numbers of about the size that training gives."""
    x = rng.standard_normal(shape)
    if len(shape) == 2:
        return x * shape[1] ** -0.5 * 1.5
    return 1 + 0.3 * x if "norm" in name and name.endswith("weight") else 0.3 * x


def on_device(backend, module):
    """A module, with its parameters on the device of the backend."""
    return module.to(backend.device) if isinstance(module, torch.nn.Module) else module


def library(backend):
    """The module of layers for a backend."""
    return attnlib.numpy if str(backend) == "numpy" else attnlib.torch


MHA, BLOCK = (E, HEADS), (E, HEADS, FF)
STACK = (*BLOCK, LAYERS)
ATTENTIONS = {
    "attention": Layer("MultiHeadAttention", MHA),
    "attention without bias": Layer("MultiHeadAttention", MHA, {"bias": False}),
    "attention with grouped queries": Layer("MultiHeadAttention", MHA, {"num_kv_heads": KV}),
    "attention with one head of keys": Layer("MultiHeadAttention", MHA, {"num_kv_heads": 1, "bias": False}),
    "attention with rope": Layer("MultiHeadAttention", MHA, {"rope": ROPE}),
    "attention with rope and grouped queries": Layer("MultiHeadAttention", MHA, {"rope": ROPE, "num_kv_heads": KV}),
}
BLOCKS = {
    "block": Layer("TransformerBlock", BLOCK),
    "block, post-norm, gelu": Layer("TransformerBlock", BLOCK, {"norm": "post", "activation": "gelu"}),
    "block with rope": Layer("TransformerBlock", BLOCK, {"rope": ROPE, "num_kv_heads": KV, "bias": False}),
}
ENCODERS = {
    "encoder": Layer("Encoder", STACK),
    "encoder, post-norm": Layer("Encoder", STACK, {"norm": "post", "layer_norm_eps": 0.1}),
    "encoder with rope": Layer("Encoder", STACK, {"rope": ROPE, "num_kv_heads": KV, "activation": "gelu"}),
}
DECODERS = {
    "decoder block": Layer("DecoderBlock", BLOCK),
    "decoder block, post-norm": Layer("DecoderBlock", BLOCK, {"norm": "post", "bias": False, "num_kv_heads": KV}),
    "decoder": Layer("Decoder", STACK),
    "decoder, post-norm, gelu": Layer("Decoder", STACK, {"norm": "post", "activation": "gelu", "layer_norm_eps": 0.1}),
    "decoder with rope": Layer("Decoder", STACK, {"rope": ROPE}),
}
POSITIONS = {"learned positions": Layer("LearnedPositions", (P, E))}
LAYERS_WITH_MEMORY = ATTENTIONS | BLOCKS | ENCODERS  # those that KVCache alone serves
EVERY = LAYERS_WITH_MEMORY | DECODERS | POSITIONS


def leaves(result):
    """All arrays of a result, in order: of arrays, tuples and lists."""
    return [x for part in result for x in leaves(part)] if isinstance(result, tuple | list) else [result]


def turned(x, base, start=0):
    """Rotary positions as complex numbers: component k and component k + W/2 are one number, times a power of e."""
    half = x.shape[-1] // 2
    position, k = np.arange(start, start + x.shape[-2])[:, None], np.arange(half)
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * position * base ** (-k / half))
    return np.concatenate([z.real, z.imag], axis=-1)


def attention_by_loops(state, query, key, value, mask=None, is_causal=False, num_kv_heads=HEADS, rope=None, start=0):
    """Multi-head attention from the parameters of a MultiHeadAttention: (out, weights)."""

    def projected(x, name):
        return x @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0.0)

    def heads(x, number):
        return np.stack([x[..., h * W : (h + 1) * W] for h in range(number)], axis=-3)

    q = heads(projected(query, "q_proj"), HEADS)
    k, v = heads(projected(key, "k_proj"), num_kv_heads), heads(projected(value, "v_proj"), num_kv_heads)
    if rope is not None:
        q, k = turned(q, rope, start), turned(k, rope, start)
    context, weights, _ = attend(q, k, v, mask, is_causal, enable_gqa=True)
    joined = np.concatenate([context[..., h, :, :] for h in range(HEADS)], axis=-1)
    return projected(joined, "out_proj"), weights
