"""The memory of a model that writes one word at a time.

Dimensions: B batch, H heads, S keys so far, T new ones, D width per head, D_v width per head of the values.
"""

import sys
from typing import Any

from attnlib._arrays import Array, backend, is_torch, require_sequence, shape


class KVCache:
    """The keys and values of all positions so far, so that a new position computes only its own.

    One cache serves one attention layer. ``length`` is how many positions it holds, and so the ``q_offset`` of the
    next query. Room is doubled when it runs out, so that adding a position copies two on average.

    Attributes:
        length: S, how many positions are kept.

    Source:
        Shazeer (2019), "Fast Transformer Decoding", section 2.4.

    Example:
        >>> import numpy as np
        >>> cache = KVCache()
        >>> for token in range(3):
        ...     keys, values = cache.append(np.ones((1, 2, 1, 4)), np.ones((1, 2, 1, 4)))
        >>> cache.length, keys.shape
        (3, (1, 2, 3, 4))
    """

    def __init__(self) -> None:
        self.length = 0
        self._keys: Array = None
        self._values: Array = None

    def append(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Add the keys and values of T new positions and return all of them.

        Args:
            key: ``(..., T, D)``, as a rule ``(B, H, T, D)``.
            value: ``(..., T, D_v)``.

        Returns:
            Keys ``(..., S + T, D)`` and values ``(..., S + T, D_v)``, to be read only: they may be views of the cache.
            Where torch records gradients they are new tensors, through which gradients flow.

        Raises:
            TypeError: backends or dtypes differ, from each other or from what is kept.
            ValueError: shapes do not go together, or not with what is kept.
        """
        backend(key=key, value=value)
        require_sequence(key=key, value=value)
        if key.shape[:-1] != value.shape[:-1]:
            raise ValueError(f"key has shape {shape(key)} and value {shape(value)}: all but the widths must be equal")
        if self._keys is not None:  # both before either is kept: after an error the cache is as it was
            self._check("key", self._keys, key)
            self._check("value", self._values, value)
        self._keys, self._values = self._extended(self._keys, key), self._extended(self._values, value)
        self.length += key.shape[-2]
        return self._keys[..., : self.length, :], self._values[..., : self.length, :]

    def _check(self, name: str, kept: Array, new: Array) -> None:
        try:
            backend(kept=kept, **{name: new})
        except TypeError as error:
            raise TypeError(
                f"{error}. What is kept came from an earlier call: call the layer in the same dtype, and under "
                "torch.autocast always or never, or begin with a new cache"
            ) from None
        if kept.shape[:-2] != new.shape[:-2] or kept.shape[-1] != new.shape[-1]:
            wanted = str((*kept.shape[:-2], "T", kept.shape[-1])).replace("'", "")
            raise ValueError(f"{name} has shape {shape(new)}, but {wanted} as before: the cache holds {self.length}")

    def _extended(self, kept: Array, new: Array) -> Array:
        """Return an array that begins with what is kept and the new positions, and may have room for more."""
        kept, xp = new[..., :0, :] if kept is None else kept, backend(new=new)
        end = self.length + new.shape[-2]
        if is_torch(new) and _may_not_write(kept):
            return xp.concat([kept[..., : self.length, :], new], axis=-2)
        if end > kept.shape[-2]:
            room = xp.zeros((*new.shape[:-2], 2 * end, new.shape[-1]), dtype=new.dtype, device=new.device)
            room[..., : self.length, :] = kept[..., : self.length, :]
            kept = room
        kept[..., self.length : end, :] = new
        return kept


def _may_not_write(kept: Array) -> bool:
    """Tell whether torch forbids writing into a tensor: what gradients may need, or what was made for inference."""
    torch: Any = sys.modules["torch"]
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return bool(torch.is_grad_enabled())  # a graph cannot ask how a tensor was made
    return bool(kept.is_inference() and not torch.is_inference_mode_enabled())
