"""The layers of a transformer as torch modules; :mod:`attnlib.numpy` has the same for NumPy arrays.

They use attnlib's own functions. You can train, move, compile and save them like any ``nn.Module``.

Example:
    >>> import torch
    >>> attend = MultiHeadAttention(embed_dim=8, num_heads=2)
    >>> out, weights = attend(torch.ones(3, 5, 8), is_causal=True, need_weights=True)
    >>> tuple(out.shape), tuple(weights.shape)
    ((3, 5, 8), (3, 2, 5, 5))
"""

from collections.abc import Sequence

from attnlib import _bert, _causal_lm, _learned_positions, _multi_head_attention, _transformer_block, _transformer_stack
from attnlib._arrays import at_least_float32
from attnlib._causal_lm import CausalLMConfig
from attnlib._extras import explain_missing
from attnlib.cache import KVCache, MemoryCache
from attnlib.sliding_window_cache import SlidingWindowCache
from attnlib.static_cache import StaticCache

with explain_missing("attnlib.torch"):
    from functools import partial

    import torch
    import torch.nn.functional as F
    from torch import Tensor, empty, nn, zeros

    from attnlib._torch_fast_layers import FastLayers, Rope, normalize
    from attnlib._torch_unchanged_layers import Kinds, remember

__all__ = [
    "BertEncoder",
    "CausalLM",
    "CausalLMConfig",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "KVCache",
    "LearnedPositions",
    "MemoryCache",
    "MultiHeadAttention",
    "SlidingWindowCache",
    "StaticCache",
    "TransformerBlock",
]


class OffsetRMSNorm(nn.Module):
    """Normalise like the module of this name in ``attnlib.numpy``, which says why: multiply by 1 + weight."""

    weight_offset = 1.0

    def __init__(self, normalized_shape: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(zeros(normalized_shape)), eps

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised ``(..., E)``."""
        work = at_least_float32(torch, x.dtype)
        weight = self.weight_offset + self.weight.to(work)
        return F.rms_norm(x.to(work), weight.shape, weight, self.eps).to(x.dtype)


class _Parts(nn.Module):
    """What the layers are built from."""

    Linear, LayerNorm, RMSNorm, Dropout, ModuleList = nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Dropout, nn.ModuleList
    NORMS = {"layer_norm": nn.LayerNorm, "rms_norm": nn.RMSNorm, "offset_rms_norm": OffsetRMSNorm}  # noqa: RUF012
    ACTIVATIONS = {  # noqa: RUF012
        "relu": F.relu, "gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh"), "silu": F.silu,
    }  # fmt: skip

    def new_parameter(self, shape: tuple[int, ...], spread: float) -> nn.Parameter:
        return nn.Parameter(nn.init.normal_(empty(shape), std=spread))


class MultiHeadAttention(_multi_head_attention.MultiHeadAttention[Tensor], _Parts):
    __doc__ = _multi_head_attention.MultiHeadAttention.__doc__


class TransformerBlock(_transformer_block.TransformerBlock[Tensor, Tensor], _Parts):
    __doc__ = _transformer_block.TransformerBlock.__doc__
    Attention = MultiHeadAttention


class DecoderBlock(_transformer_block.DecoderBlock[Tensor], _Parts):
    __doc__ = _transformer_block.DecoderBlock.__doc__
    Attention = MultiHeadAttention


class Encoder(_transformer_stack.Encoder[Tensor, Tensor], _Parts):
    __doc__ = _transformer_stack.Encoder.__doc__
    Block = TransformerBlock


class Decoder(_transformer_stack.Decoder[Tensor], _Parts):
    __doc__ = _transformer_stack.Decoder.__doc__
    Block = DecoderBlock


class LearnedPositions(_learned_positions.LearnedPositions[Tensor], _Parts):
    __doc__ = _learned_positions.LearnedPositions.__doc__


class BertEncoder(_bert.BertEncoder[Tensor], _Parts):
    __doc__ = _bert.BertEncoder.__doc__
    Embedding, LearnedPositions, Encoder = nn.Embedding, LearnedPositions, Encoder


class FeedForward(_causal_lm.FeedForward[Tensor], _Parts):
    __doc__ = _causal_lm.FeedForward.__doc__


class CausalLMLayer(_causal_lm.CausalLMLayer[Tensor], _Parts):
    __doc__ = _causal_lm.CausalLMLayer.__doc__
    Attention, FeedForward = MultiHeadAttention, FeedForward


KINDS = Kinds(CausalLMLayer, MultiHeadAttention, FeedForward, frozenset(_Parts.NORMS.values()))
remember(CausalLMLayer, MultiHeadAttention, FeedForward, nn.Linear, *KINDS.norms)


class CausalLM(_causal_lm.CausalLM[Tensor], _Parts):
    __doc__ = _causal_lm.CausalLM.__doc__
    Embedding, Layer = nn.Embedding, CausalLMLayer

    def __init__(self, config: CausalLMConfig) -> None:
        super().__init__(config)
        self._fast_layers = FastLayers(KINDS)

    def _run_fast(self, x: Tensor, caches: Sequence[KVCache | None], positions: Tensor) -> Tensor | None:
        c = self.config
        rope = None if c.rope_base is None else Rope(self.head_dim, c.rope_base, c.rope_scaling)
        return self._fast_layers.run(self.layers, x, caches, positions, rope)

    def _normalize(self, x: Tensor) -> Tensor:
        return normalize(self.norm, x)
