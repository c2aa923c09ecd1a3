"""attnlib: attention, exact and readable, for NumPy arrays and torch tensors.

The conventions:

- NumPy arrays in, NumPy arrays out; torch tensors in, torch tensors out, on the same device, with the same dtype.
- The functions also take arrays from JAX and other libraries that follow the array API; the layers and caches do not.
- Sequences are ``(..., T, D)``: any leading dimensions, then one row per position.
- A boolean mask is True where a query **may attend**; a float mask is added to the scores.
- A query that may attend to nothing gets 0, with finite gradients.
- Under ``torch.autocast`` torch chooses the dtypes.
- Inputs are never changed. Wrong input raises an error that says what was given and what was expected.

Importing attnlib needs NumPy alone; torch is used, through array-api-compat, only when a torch tensor arrives.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from attnlib._load_weights import load_weights
from attnlib.attention import attention, self_attention
from attnlib.cells import gru_cell, rnn_cell
from attnlib.generation import generate
from attnlib.heads import merge_heads, multi_head_attention, split_heads
from attnlib.masks import causal_mask, combine_masks, padding_mask, window_mask
from attnlib.positions import (
    RopeScaling,
    alibi_bias,
    alibi_slopes,
    apply_rope,
    relative_buckets,
    rope_tables,
    sinusoidal_positions,
)
from attnlib.recurrent import encode
from attnlib.rms_norm import rms_norm
from attnlib.rollout import attention_rollout
from attnlib.sampling import sampling_probabilities
from attnlib.sdpa import scaled_dot_product_attention, scaled_dot_product_attention_backward
from attnlib.seq2seq import bahdanau_step, luong_step
from attnlib.similarity import additive, cosine, dot, gaussian, general, scaled_dot
from attnlib.softmax import softmax
from attnlib.speculative import generate_speculatively
from attnlib.swiglu import swiglu

__version__ = "0.6.0"

__all__ = [
    "RopeScaling",
    "additive",
    "alibi_bias",
    "alibi_slopes",
    "apply_rope",
    "attention",
    "attention_rollout",
    "bahdanau_step",
    "causal_mask",
    "combine_masks",
    "cosine",
    "dot",
    "encode",
    "gaussian",
    "general",
    "generate",
    "generate_speculatively",
    "gru_cell",
    "load_weights",
    "luong_step",
    "merge_heads",
    "multi_head_attention",
    "padding_mask",
    "relative_buckets",
    "rms_norm",
    "rnn_cell",
    "rope_tables",
    "sampling_probabilities",
    "scaled_dot",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "self_attention",
    "sinusoidal_positions",
    "softmax",
    "split_heads",
    "swiglu",
    "window_mask",
]

LAZY_MODULES = ("checks", "embeddings", "hf", "minilm", "numpy", "plotting", "static_cache", "torch", "triton")

if TYPE_CHECKING:  # a type checker that sees a __getattr__ accepts every misspelt name
    from attnlib import checks as checks
    from attnlib import embeddings as embeddings
    from attnlib import hf as hf
    from attnlib import minilm as minilm
    from attnlib import numpy as numpy
    from attnlib import plotting as plotting
    from attnlib import static_cache as static_cache
    from attnlib import torch as torch
    from attnlib import triton as triton
else:

    def __getattr__(name: str) -> ModuleType:
        """Import a part of the library when it is first used, because it may need more than NumPy."""
        if name in LAZY_MODULES:
            return import_module(f"attnlib.{name}")
        raise AttributeError(f"module 'attnlib' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List the parts that are not imported yet, too, so that editors and notebooks complete their names."""
        return sorted({*globals(), *LAZY_MODULES})
