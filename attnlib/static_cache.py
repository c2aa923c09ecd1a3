"""A cache of fixed capacity: its memory is allocated once, and every step writes into it in place.

Dimensions: B batch, H heads, S keys held, T new ones, D width per head, D_v width per head of the values.
"""

from typing import Any

from attnlib._arrays import Array, check_int, imported_torch, is_torch, namespace_and_device
from attnlib._mask_rule import MaskOptions, MaskRule
from attnlib._types import ArrayT, Index
from attnlib.cache import KVCache, select_sequences
from attnlib.masks import combine_masks, within_window


class StaticCache(KVCache):
    """A :class:`~attnlib.cache.KVCache` with memory for ``max_cache_len`` positions, which the first call allocates.

    With torch, no shape or address changes from the second call on, and nothing waits for the device, so a decoding
    step is compiled only once and can be captured in a CUDA graph::

        model(prompt, is_causal=True, cache=cache)  # allocates
        step = torch.compile(model, mode="reduce-overhead", fullgraph=True, dynamic=False)

    To make this possible, attention covers all ``max_cache_len`` positions and masks those not yet written; the weights
    have as many columns. ``length`` becomes a zero-dimensional tensor on the device, which each call advances in place
    (``clone()`` it to keep a value; ``int()`` waits for the device). In the first call, and always in NumPy, attention
    covers only the positions held, and ``length`` is a whole number. A mask passed to a layer needs ``max_cache_len``
    columns in every call, and so does the result of ``attn_bias``, whose ``q_offset`` is ``length``.

    No gradients flow through the cache: use it under ``torch.no_grad()`` or ``torch.inference_mode()``.

    If new positions do not fit, an error is raised and nothing is added. In compiled code and on devices other than the
    CPU, however, the number of positions held is not known without waiting for the device: there, torch raises its own
    error about an index out of range, on CUDA during some later operation.

    Args:
        max_cache_len: the number of positions to allocate memory for.

    Raises:
        TypeError: ``max_cache_len`` is not a whole number.
        ValueError: ``max_cache_len`` is below 1.

    Source:
        transformers' ``StaticCache``; PyTorch Labs (2023), "Accelerating Generative AI with PyTorch II: GPT, Fast",
        step 1, whose ``input_pos`` is ``length`` here.

    Example:
        >>> import numpy as np
        >>> cache = StaticCache(max_cache_len=4)
        >>> for token in range(3):
        ...     keys, values = cache.append(np.ones((1, 2, 1, 4)), np.ones((1, 2, 1, 4)))
        >>> cache.length, keys.shape
        (3, (1, 2, 3, 4))
    """

    length: Any  # a whole number, or a tensor

    def __init__(self, max_cache_len: int) -> None:
        super().__init__()
        self.max_cache_len = check_int("max_cache_len", max_cache_len, 1)

    def append(self, key: ArrayT, value: ArrayT) -> tuple[ArrayT, ArrayT]:
        """Add the keys and values of T new positions in place, and return those of all positions.

        Args:
            key: ``(..., T, D)``, usually ``(B, H, T, D)``.
            value: ``(..., T, D_v)``.

        Returns:
            Keys ``(..., S, D)`` and values ``(..., S, D_v)``, views of the memory: do not write to them. With torch,
            S is ``max_cache_len`` from the second call on, and positions not yet written hold arbitrary finite
            numbers. Otherwise S is ``length``.

        Raises:
            TypeError: backends or dtypes differ, from each other or from what is kept.
            ValueError: shapes do not match each other or what is kept, or the positions do not fit.
            RuntimeError: torch records gradients of ``key`` or ``value``.
        """
        self._check(key, value)
        self._refuse_gradients(key, value)
        T, first = key.shape[-2], self._keys is None
        self._require_room(T)
        if first:
            self._keys, self._values = self._memory(key), self._memory(value)
        if is_torch(self.length):
            self._write(key, value)
            return self._keys, self._values
        end = self.length + T
        self._keys[..., self.length : end, :] = key
        self._values[..., self.length : end, :] = value
        self.length = self._position(key, end)
        return self._keys[..., :end, :], self._values[..., :end, :]

    def columns(self, T: int) -> int:
        """Return how many keys a layer's ``attn_mask`` and ``attn_bias`` must cover when T more positions come."""
        return self.max_cache_len

    def options(self, rule: MaskRule, T: int, attn_mask: ArrayT | None, like: ArrayT) -> MaskOptions[ArrayT]:
        """Return a layer's rule and mask as options of attention for the keys held after T more positions."""
        if not is_torch(self.length):
            end = self.length + T
            attn_mask = attn_mask[..., :end] if attn_mask is not None and attn_mask.ndim else attn_mask
            return rule.options(T, end, self.length, attn_mask, like)
        xp, device = namespace_and_device(like)
        i = xp.arange(T, device=device)[:, None] + self.length
        j = xp.arange(self.max_cache_len, device=device)[None, :]
        mask = within_window(i, j, *rule)
        if rule.right != 0:  # otherwise no query sees past its own position
            mask = mask & (j < self.length + T)
        return {"attn_mask": combine_masks(attn_mask, mask)}

    def truncate(self, length: int) -> None:
        """Forget all positions from ``length`` on; ``truncate(0)`` makes the memory ready for a new text.

        Raises:
            TypeError: ``length`` is not a whole number.
            ValueError: ``length`` is negative, or more than the cache holds (or, where that is not known without
                waiting for the device, more than it can hold).
        """
        length, held = check_int("length", length, 0), self._known_length()
        if length > (self.max_cache_len if held is None else held):
            holds = f"can hold {self.max_cache_len}" if held is None else f"holds {held}"
            raise ValueError(f"length is {length}, but the cache {holds} positions")
        if is_torch(self.length):
            self.length.fill_(length)
        else:
            self.length = length

    def reorder(self, index: Index) -> None:
        """Select sequences of the batch by index, with repeats, as beam search does; their number must not change.

        Args:
            index: ``(B,)``, integers: for each sequence, which of them it continues.

        Raises:
            TypeError: ``index`` is not an array of integers from the cache's library.
            ValueError: the length of ``index`` is not the batch size for which memory was allocated.
            IndexError: ``index`` contains a negative number, or names a sequence that does not exist. (Where reading
                the index would make the program wait for a device, and in compiled code, torch raises its own error.)
        """
        index = self._checked_index(index)
        if self._keys is not None:
            B = self._keys.shape[0]
            if index.shape[0] != B:
                raise ValueError(
                    f"index names {index.shape[0]} sequences, but there is memory for {B}: name exactly {B}"
                )
            self._keys[...] = select_sequences(self._keys, index)
            self._values[...] = select_sequences(self._values, index)
        self.memory.clear()

    def _require_room(self, T: int) -> None:
        held = self._known_length()
        if (held or 0) + T > self.max_cache_len:
            holds = f"has memory for {self.max_cache_len}" if held is None else f"holds {held} of {self.max_cache_len}"
            raise ValueError(
                f"{T} more positions do not fit: the cache {holds}. Create it with a larger max_cache_len, or use a "
                "SlidingWindowCache, which forgets old positions"
            )

    def _known_length(self) -> int | None:
        """Return how many positions are held, or None if that is not known without waiting for the device."""
        if is_torch(self.length) and (_is_compiling() or self.length.device.type != "cpu"):
            return None
        return int(self.length)

    def _refuse_gradients(self, key: Array, value: Array) -> None:
        if is_torch(key) and imported_torch().is_grad_enabled() and (key.requires_grad or value.requires_grad):
            raise RuntimeError(
                "a StaticCache is written in place, so no gradients can flow through it: call the model under "
                "torch.no_grad() or torch.inference_mode(), or train with a KVCache"
            )

    def _memory(self, new: Array) -> Array:
        """Return zeros for all positions for which there will be memory."""
        xp, device = namespace_and_device(new)
        shape = (*new.shape[:-2], self.max_cache_len, new.shape[-1])
        return _static(lambda: xp.zeros(shape, dtype=new.dtype, device=device), new)

    def _position(self, new: Array, length: int) -> Any:
        """Return a length in the form in which it is kept from the first call on."""
        if not is_torch(new):
            return length
        xp, device = namespace_and_device(new)
        return _static(lambda: xp.full((), length, dtype=xp.int64, device=device), new)

    def _write(self, key: Array, value: Array) -> None:
        """Write at the position that the tensor ``length`` holds, and advance it."""
        xp, device = namespace_and_device(key)
        rows = xp.arange(key.shape[-2], device=device) + self.length
        self._keys.index_copy_(-2, rows, key.to(self._keys.dtype))
        self._values.index_copy_(-2, rows, value.to(self._values.dtype))
        self.length += key.shape[-2]


def _static(make: Any, like: Array) -> Array:
    """Make an array that every call can write to, in and out of inference mode, and from CUDA graphs."""
    if not is_torch(like) or _is_compiling():
        return make()
    torch = imported_torch()
    with torch.inference_mode(False):
        made = make()
    if made.device.type == "cuda":
        torch._dynamo.mark_static_address(made)  # otherwise torch.compile copies what a CUDA graph writes to
    return made


def _is_compiling() -> bool:
    return bool(imported_torch().compiler.is_compiling())
