"""A control: how well tokens are predicted by how often they occur, whatever comes before them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class TokenFrequencies(nn.Module):
    """Predict each token with the probability ``(count + 1) / (N + V)``, where N tokens were counted.

    Args:
        tokens: ``(N,)``, the tokens to count.
        vocab_size: V.

    Returns:
        From the call with tokens ``(B, T)``, the logits ``(B, T, V)``, the same at every position.
    """

    def __init__(self, tokens: NDArray[np.int64], vocab_size: int) -> None:
        super().__init__()
        self.counts = torch.from_numpy(np.bincount(tokens, minlength=vocab_size) + 1.0)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits: see the class."""
        return self.counts.log().expand(*tokens.shape, -1)
