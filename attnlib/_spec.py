"""What the kernels of all libraries are told about a call, besides its queries, keys and values.

Dimensions: H heads, T queries, S keys.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from attnlib._lengths import binding_sides


class WindowSpec(NamedTuple):
    """The keys in reach of query i: those from ``i + offset - left`` to ``i + offset + right``; None means no limit."""

    left: int | None = None
    right: int | None = None
    offset: int = 0

    def binding(self, T: int, S: int, holds: Callable[[bool], bool] = bool) -> "WindowSpec":
        """Return the window without the limits that keep none of T queries from any of S keys.

        ``holds`` tells whether a comparison is known to be true. If it is not, the limit is kept.
        """
        if self.is_unlimited():
            return self
        return WindowSpec(*binding_sides(self.left, self.right, self.offset, T, S, holds), self.offset)

    def is_unlimited(self) -> bool:
        """Tell whether every query can reach every key."""
        return self.left is None and self.right is None

    def is_causal(self) -> bool:
        """Tell whether query i can reach exactly the keys j <= i."""
        return self.left is None and self.right == 0 and self.offset == 0


class AttentionSpec(NamedTuple):
    """How scores are computed, which keys a query may attend to, and which results are needed."""

    scale: float  # the factor by which dot products are multiplied
    mask: Any = None  # broadcasts to (..., H, T, S): boolean (True = may attend), or added to the scores
    window: WindowSpec = WindowSpec()  # with the causal rule: 0 to the right
    softcap: float | None = None  # scores s become softcap * tanh(s / softcap); None leaves them unchanged
    dropout_p: float = 0.0  # the probability of dropping a weight
    need_weights: bool = False  # return the weights (..., H, T, S) too
    need_lse: bool = False  # return the log-sums (..., H, T) too
