"""Rules that decide from positions alone which keys a query may attend to.

Dimensions: B batch, H heads, T queries, S keys.
"""

from typing import Generic, NamedTuple, Self, TypedDict

from attnlib._arrays import check_bool
from attnlib._attention_arguments import Window
from attnlib._types import ArrayT
from attnlib.masks import combine_masks, window_mask


class MaskOptions(TypedDict, Generic[ArrayT], total=False):
    """Options of :func:`attnlib.scaled_dot_product_attention` that decide which keys a query may attend to."""

    attn_mask: ArrayT | None
    is_causal: bool
    window: Window | None
    q_offset: int


class MaskRule(NamedTuple):
    """The causal rule, a window and attention sinks, in the terms of :func:`attnlib.window_mask`."""

    left: int | None = None
    right: int | None = None
    num_sink_tokens: int = 0

    @classmethod
    def of(cls, is_causal: bool, window: Window | None, num_sink_tokens: int) -> Self:
        """Return the rule of a layer with this window, which may also be causal."""
        left, right = window or (None, None)
        return cls(left, 0 if check_bool("is_causal", is_causal) else right, num_sink_tokens)

    def options(self, T: int, S: int, q_offset: int, attn_mask: ArrayT | None, like: ArrayT) -> MaskOptions[ArrayT]:
        """Return the rule and a mask as options of attention for T queries and the keys at positions 0 to S - 1."""
        if self.num_sink_tokens and self.left is not None:
            rule = window_mask(T, S, *self[:2], num_sink_tokens=self.num_sink_tokens, q_offset=q_offset, like=like)
            return {"attn_mask": combine_masks(attn_mask, rule)}
        is_causal = self.right == 0
        right = None if is_causal else self.right
        if is_causal and self.left is None and _is_last(T, S, q_offset):
            return {"attn_mask": attn_mask}
        window = None if self.left is None and right is None else (self.left, right)
        return {"attn_mask": attn_mask, "is_causal": is_causal, "window": window, "q_offset": q_offset}


def _is_last(T: int, S: int, q_offset: int) -> bool:
    """Tell whether there is one query, at the position of the last key, so that the causal rule excludes nothing."""
    return type(T) is type(S) is type(q_offset) is int and T == 1 and q_offset + 1 == S
