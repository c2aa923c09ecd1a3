"""What the tests of language models share: small ones with every option, in either library, with the same parameters.

V tokens, E width, HEADS heads of which KV have keys and values, FF width inside a layer, LAYERS layers, P positions.
"""

import numpy as np
import torch
from modules import library, parameter

from attnlib import RopeScaling
from attnlib.numpy import CausalLM, CausalLMConfig

V, E, HEADS, KV, FF, LAYERS, P = 19, 24, 6, 3, 29, 3, 31
SIZES = {"vocab_size": V, "embed_dim": E, "num_layers": LAYERS, "num_heads": HEADS, "ff_dim": FF}
GPT = {"norm": "layer_norm", "activation": "gelu_tanh", "gated": False, "rope_base": None, "max_positions": P}
VARIANTS = {
    "llama": {"tied": False},
    "grouped queries, wide heads": {"num_kv_heads": KV, "head_dim": 10, "rope_base": 100.0},
    "biases": {"qkv_bias": True, "out_bias": True, "ff_bias": True, "norm_eps": 0.1},
    "qwen 3": {"qk_norm": True, "num_kv_heads": 1, "norm_eps": 0.05},
    "windows": {"windows": (4, None, 2), "rope_base": 50.0},
    "scaled rope": {"rope_base": 20.0, "rope_scaling": RopeScaling(8.0, original_length=40)},
    "gemma 2": {"norm": "offset_rms_norm", "post_norm": True, "activation": "gelu_tanh", "scale": 0.4,
                "attn_softcap": 1.5, "logit_softcap": 2.0, "embed_scale": E**0.5, "windows": (3, None, 3)},
    "gpt-2": GPT | {"qkv_bias": True, "out_bias": True, "ff_bias": True},
    "no positions, gated gelu": {"rope_base": None, "activation": "gelu"},
    "relu, not gated": {"activation": "relu", "gated": False},
}  # fmt: skip


def config(**variant):
    """The sizes above, with the options of a variant."""
    return CausalLMConfig(**SIZES | variant)


def state_of(settings, seed=1706):
    """Random parameters by name, the same every time."""
    rng = np.random.default_rng(seed)
    shapes = {name: x.shape for name, x in CausalLM(settings).state_dict().items()}
    return {name: parameter(name, shape, rng) for name, shape in sorted(shapes.items())}


def build(backend, settings, dtype="float64", seed=1706):
    """A model of the backend's library and on its device, with random parameters in it."""
    model = library(backend).CausalLM(settings)
    if isinstance(model, torch.nn.Module):
        model = model.to(backend.device, getattr(torch, dtype)).eval()
    model.load_state_dict({name: backend.array(x, dtype) for name, x in state_of(settings, seed).items()})
    return model


def tokens_of(backend, *shape, seed=3762):
    """Random tokens, the same every time."""
    return backend.array(np.random.default_rng(seed).integers(0, V, shape), "int64")
