"""A language model whose norms come after the addition, as in the first transformers."""

from typing import Any

from torch import Tensor, nn

from attnlib.torch import CausalLM, CausalLMConfig, CausalLMLayer


class PostNormLayer(CausalLMLayer):
    r"""A layer with post-norm, for training only: it has neither caches nor weights to return.

    .. math:: x' = \operatorname{norm}_1(x + \operatorname{Attn} x), \qquad
              y = \operatorname{norm}_2(x' + \operatorname{FF} x')

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.1.
    """

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, *, rope_tables: Any = None, **unused: Any) -> Tensor:
        """Transform a sequence ``(B, T, E)``."""
        x = self.norm1(x + self.self_attn(x, None, None, attn_mask, is_causal=True, rope_tables=rope_tables))
        y: Tensor = self.norm2(x + self.ff(x))
        return y


class PostNormLM(CausalLM):
    """A language model of such layers. The last of their norms makes another norm before the logits superfluous."""

    Layer = PostNormLayer

    def __init__(self, config: CausalLMConfig) -> None:
        super().__init__(config)
        self.norm = nn.Identity()
