"""A cache that keeps only the most recent positions, so that a text can be arbitrarily long.

Dimensions: B batch, H heads, S keys held, T new ones, D width per head, D_v width per head of the values.
"""

from attnlib._arrays import Array, array_namespace, check_int, is_torch, namespace_and_device
from attnlib._mask_rule import MaskOptions, MaskRule
from attnlib._types import ArrayT
from attnlib.cache import KVCache, may_not_write
from attnlib.masks import combine_masks, within_window


class SlidingWindowCache(KVCache):
    """A :class:`~attnlib.cache.KVCache` of bounded size: it keeps the last ``left`` positions and any attention sinks.

    Decoding gives the same results as attention over the whole sequence with ``window=(left, 0)`` and
    ``num_sink_tokens``, even if the layer has no window. If the layer has one, it must not reach further back.

    All positions, including those of the sinks, are positions in the original sequence, so decoding agrees with
    training and with :func:`attnlib.window_mask`. Xiao et al. count positions within the cache instead: a query is then
    never further from a sink than the cache is long, so a model with rotary positions sees no distance that is new to
    it. Their method is not equivalent to a mask over the whole sequence, and it must rotate every key again at each
    step.

    ``length`` counts all positions so far; a mask passed to a layer needs a column for each of them. The keys that a
    layer attends to, and the columns of its weights, are the sinks followed by the most recent positions, in order:
    the cache holds those that the first of the T newest positions may attend to, and these T themselves. Its storage
    is never more than four times as large. An ``attn_bias`` is computed for all positions so far.

    Args:
        left: how many positions before its own a query may attend to.
        num_sink_tokens: how many positions at the beginning are always kept.

    Raises:
        TypeError: a number is not whole.
        ValueError: a number is negative.

    Source:
        Jiang et al. (2023), "Mistral 7B", section 2 ("rolling buffer cache"); sinks: Xiao et al. (2023), "Efficient
        Streaming Language Models with Attention Sinks", section 3.2.

    Example:
        >>> import numpy as np
        >>> cache = SlidingWindowCache(left=2, num_sink_tokens=1)
        >>> for token in range(6):
        ...     keys, values = cache.append(np.full((1, 1), float(token)), np.zeros((1, 1)))
        >>> keys.T, cache.length  # the sink; two positions before the last; the last
        (array([[0., 3., 4., 5.]]), 6)
    """

    def __init__(self, left: int, *, num_sink_tokens: int = 0) -> None:
        super().__init__()
        self.left, self.num_sink_tokens = check_int("left", left, 0), check_int("num_sink_tokens", num_sink_tokens, 0)
        self._begin = self._end = 0  # the rows of the storage that are in use: sinks, then the last positions

    def append(self, key: ArrayT, value: ArrayT) -> tuple[ArrayT, ArrayT]:
        """Forget positions that none of the T new ones may attend to, add the new ones, and return all that are held.

        Args:
            key: ``(..., T, D)``, usually ``(B, H, T, D)``.
            value: ``(..., T, D_v)``.

        Returns:
            Keys ``(..., S, D)`` and values ``(..., S, D_v)`` with S at most ``num_sink_tokens + left + T``. They may be
            views of the cache: do not write to them, and do not use them after the next call. While torch records
            gradients, they are new tensors through which gradients flow.

        Raises:
            TypeError: backends or dtypes differ, from each other or from what is kept.
            ValueError: shapes do not match each other or what is kept.
        """
        self._check(key, value)
        sinks, recent = self._counts_in_reach()
        size = sinks + recent + key.shape[-2]
        in_place = self._has_room(key, size)
        extended = self._extend_in_place if in_place else self._extend_in_new_storage
        self._keys, self._values = (
            extended(x, new, sinks, recent) for x, new in ((self._keys, key), (self._values, value))
        )
        self._begin = self._end - recent - sinks if in_place else 0
        self._end = self._begin + size
        self.length += key.shape[-2]
        return self._keys[..., self._begin : self._end, :], self._values[..., self._begin : self._end, :]

    def options(self, rule: MaskRule, T: int, attn_mask: ArrayT | None, like: ArrayT) -> MaskOptions[ArrayT]:
        """Return a layer's rule and mask as options of attention for the keys held after T more positions.

        Raises:
            ValueError: the layer's window reaches further back than the cache's, or the layer has more sinks.
        """
        sinks, recent = self._counts_in_reach()
        forgotten = self.length - sinks - recent
        own = MaskRule(self.left, rule.right, self.num_sink_tokens)
        rule = self._effective_rule(rule, own)
        if not forgotten:
            return rule.options(T, self.length + T, self.length, attn_mask, like)
        if attn_mask is not None and attn_mask.ndim and attn_mask.shape[-1] > 1:
            xp, _ = namespace_and_device(attn_mask)
            attn_mask = xp.concat([attn_mask[..., :sinks], attn_mask[..., sinks + forgotten :]], axis=-1)
        if not sinks:
            return rule.options(T, recent + T, recent, attn_mask, like)
        if T == 1 and rule == own:  # it may attend to everything that is held
            return {"attn_mask": attn_mask}
        xp, device = namespace_and_device(like)
        i = xp.arange(self.length, self.length + T, device=device)[:, None]
        j = xp.concat([xp.arange(sinks, device=device), xp.arange(sinks + forgotten, self.length + T, device=device)])
        return {"attn_mask": combine_masks(attn_mask, within_window(i, j[None, :], *rule))}

    def truncate(self, length: int) -> None:
        """Forget all positions from ``length`` on. Positions added by the last call can always be removed.

        Raises:
            TypeError: ``length`` is not a whole number.
            ValueError: ``length`` is negative or more than the cache holds, or positions that are needed before it have
                already been forgotten.
        """
        held = self._end - self._begin
        first = self.length - held + min(self.num_sink_tokens, held)  # the first position that is not a sink
        if first > self.num_sink_tokens and check_int("length", length, 0) < first + self.left:
            raise ValueError(
                f"length is {length}, but at least {first + self.left} is needed: the {self.left} positions before it "
                f"must still be held, and those before {first} have been forgotten, except for "
                f"{self.num_sink_tokens} attention sinks"
            )
        before = self.length
        super().truncate(length)
        self._end -= before - self.length

    def _counts_in_reach(self) -> tuple[int, int]:
        """Return how many sinks, and how many of the last positions, the next query may attend to."""
        held = self._end - self._begin
        sinks = min(self.num_sink_tokens, held)
        return sinks, min(self.left, held - sinks)

    def _effective_rule(self, rule: MaskRule, own: MaskRule) -> MaskRule:
        """Return the layer's rule, or the cache's own if the layer has no window."""
        if rule.left is None:
            return own
        if rule.left > self.left or rule.num_sink_tokens > self.num_sink_tokens:
            raise ValueError(
                f"the layer's window reaches {rule.left} positions back and the layer has {rule.num_sink_tokens} "
                f"attention sinks, but the cache keeps {self.left} positions and {self.num_sink_tokens} sinks: use "
                f"SlidingWindowCache({rule.left}, num_sink_tokens={rule.num_sink_tokens})"
            )
        return rule

    def _has_room(self, new: Array, size: int) -> bool:
        """Tell whether new positions fit behind those held; storage that is far too large is abandoned."""
        kept = self._keys
        if kept is None or (is_torch(new) and may_not_write(kept)):
            return False
        return bool(self._end + new.shape[-2] < kept.shape[-2] <= 4 * size)

    def _extend_in_place(self, kept: Array, new: Array, sinks: int, recent: int) -> Array:
        """Write the new positions after the last, and move the sinks to just before the positions that are kept."""
        begin, xp = self._end - recent - sinks, array_namespace(new=new)
        if begin > self._begin:  # through a copy, because the two ranges may overlap
            kept[..., begin : begin + sinks, :] = xp.concat([kept[..., self._begin : self._begin + sinks, :]], axis=-2)
        kept[..., self._end : self._end + new.shape[-2], :] = new
        return kept

    def _extend_in_new_storage(self, kept: Array, new: Array, sinks: int, recent: int) -> Array:
        """Return new storage, larger than needed, with the positions that are kept and the new ones."""
        xp, kept = array_namespace(new=new), new[..., :0, :] if kept is None else kept
        first = kept[..., self._begin : self._begin + sinks, :]
        pieces = [first, kept[..., self._end - recent : self._end, :], new]
        size = sinks + recent + new.shape[-2]
        rows = size + min(size, self.num_sink_tokens + self.left) + 1
        room = xp.zeros((*new.shape[:-2], rows, new.shape[-1]), dtype=new.dtype, device=new.device)
        room[..., :size, :] = xp.concat(pieces, axis=-2)
        return room
