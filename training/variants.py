"""The blocks that are compared: the modern one, and variants in which one of its parts, or all five, are changed back.

The modern block has a norm before each part, RMSNorm, SwiGLU, rotary positions and grouped queries.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from attnlib.torch import CausalLM, CausalLMConfig
from training.post_norm import PostNormLM

MODERN = CausalLMConfig(vocab_size=1024, embed_dim=96, num_layers=3, num_heads=8, num_kv_heads=2, ff_dim=256)


@dataclass(frozen=True)
class Variant:
    """A block: the sizes and options of its model, and what makes the model."""

    config: CausalLMConfig
    new_model: Callable[[CausalLMConfig], CausalLM] = CausalLM


def redrawn(config: CausalLMConfig) -> CausalLM:
    """Return a model with initial weights other than those that CausalLM(config) would draw next."""
    torch.rand(())
    return CausalLM(config)


def variants(modern: CausalLMConfig, context: int) -> dict[str, Variant]:
    """Return all variants of a modern block, by name.

    The width of the feed-forward layer changes so that it and attention together need as many multiplications in all
    variants: with two projections instead of three, it is wider by half, and with all key heads, it is narrower.
    """
    E, H = modern.embed_dim, modern.num_heads
    head_dim, kv_heads = modern.head_dim or E // H, modern.num_kv_heads or H
    more = 2 * E * head_dim * (H - kv_heads)  # parameters of the further key and value heads
    gelu: dict[str, Any] = {"gated": False, "activation": "gelu"}
    learned: dict[str, Any] = {"rope_base": None, "max_positions": context}
    full: dict[str, Any] = {"num_kv_heads": None}
    norm: dict[str, Any] = {"norm": "layer_norm"}
    gated_width, plain_width = modern.ff_dim - more // (3 * E), (3 * modern.ff_dim) // 2
    all_five = {**gelu, **learned, **full, **norm, "ff_dim": plain_width - more // (2 * E)}
    return {
        "modern": Variant(modern),
        "post-norm": Variant(modern, PostNormLM),
        "LayerNorm": Variant(replace(modern, **norm)),
        "GELU": Variant(replace(modern, **gelu, ff_dim=plain_width)),
        "learned positions": Variant(replace(modern, **learned)),
        "full heads": Variant(replace(modern, **full, ff_dim=gated_width)),
        "all five": Variant(replace(modern, **all_five), PostNormLM),
        "modern, redrawn": Variant(modern, redrawn),
    }
