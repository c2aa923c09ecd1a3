"""The layers of a transformer for NumPy arrays; :mod:`attnlib.torch` has the same as torch modules.

They compute what the torch modules compute after ``eval()``, and have the same ``state_dict``: they do not train.

Example:
    >>> import numpy as np
    >>> attend = MultiHeadAttention(embed_dim=8, num_heads=2)
    >>> out, weights = attend(np.ones((3, 5, 8), np.float32), is_causal=True, need_weights=True)
    >>> out.shape, weights.shape
    ((3, 5, 8), (3, 2, 5, 5))
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib import (
    _bert,
    _causal_lm,
    _learned_positions,
    _multi_head_attention,
    _numpy_modules,
    _transformer_block,
    _transformer_stack,
)
from attnlib._causal_lm import CausalLMConfig
from attnlib._gelu import gelu
from attnlib._numpy_modules import (
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
    OffsetRMSNorm,
    RMSNorm,
)
from attnlib.cache import KVCache, MemoryCache
from attnlib.sliding_window_cache import SlidingWindowCache
from attnlib.static_cache import StaticCache
from attnlib.swiglu import silu

__all__ = [
    "BertEncoder",
    "CausalLM",
    "CausalLMConfig",
    "Decoder",
    "DecoderBlock",
    "Dropout",
    "Embedding",
    "Encoder",
    "KVCache",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "MemoryCache",
    "Module",
    "ModuleList",
    "MultiHeadAttention",
    "RMSNorm",
    "SlidingWindowCache",
    "StaticCache",
    "TransformerBlock",
]


class _Parts(Module):
    """What the layers are built from."""

    Linear, LayerNorm, RMSNorm, Dropout, ModuleList = Linear, LayerNorm, RMSNorm, Dropout, ModuleList
    NORMS = {"layer_norm": LayerNorm, "rms_norm": RMSNorm, "offset_rms_norm": OffsetRMSNorm}  # noqa: RUF012
    ACTIVATIONS = {  # noqa: RUF012
        "relu": _numpy_modules.relu, "gelu": gelu, "gelu_tanh": _numpy_modules.gelu_tanh, "silu": silu,
    }  # fmt: skip

    def new_parameter(self, shape: tuple[int, ...], spread: float) -> _numpy_modules.Floats:
        return (spread * np.random.standard_normal(shape)).astype(np.float32)


class MultiHeadAttention(_multi_head_attention.MultiHeadAttention[NDArray[Any]], _Parts):
    __doc__ = _multi_head_attention.MultiHeadAttention.__doc__


class TransformerBlock(_transformer_block.TransformerBlock[NDArray[Any], NDArray[Any]], _Parts):
    __doc__ = _transformer_block.TransformerBlock.__doc__
    Attention = MultiHeadAttention


class DecoderBlock(_transformer_block.DecoderBlock[NDArray[Any]], _Parts):
    __doc__ = _transformer_block.DecoderBlock.__doc__
    Attention = MultiHeadAttention


class Encoder(_transformer_stack.Encoder[NDArray[Any], NDArray[Any]], _Parts):
    __doc__ = _transformer_stack.Encoder.__doc__
    Block = TransformerBlock


class Decoder(_transformer_stack.Decoder[NDArray[Any]], _Parts):
    __doc__ = _transformer_stack.Decoder.__doc__
    Block = DecoderBlock


class LearnedPositions(_learned_positions.LearnedPositions[NDArray[Any]], _Parts):
    __doc__ = _learned_positions.LearnedPositions.__doc__


class BertEncoder(_bert.BertEncoder[NDArray[Any]], _Parts):
    __doc__ = _bert.BertEncoder.__doc__
    Embedding, LearnedPositions, Encoder = Embedding, LearnedPositions, Encoder


class FeedForward(_causal_lm.FeedForward[NDArray[Any]], _Parts):
    __doc__ = _causal_lm.FeedForward.__doc__


class CausalLMLayer(_causal_lm.CausalLMLayer[NDArray[Any]], _Parts):
    __doc__ = _causal_lm.CausalLMLayer.__doc__
    Attention, FeedForward = MultiHeadAttention, FeedForward


class CausalLM(_causal_lm.CausalLM[NDArray[Any]], _Parts):
    __doc__ = _causal_lm.CausalLM.__doc__
    Embedding, Layer = Embedding, CausalLMLayer
