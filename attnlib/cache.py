"""The memory of a model that writes one word at a time.

Dimensions: B batch, H heads, S keys so far, T new ones, D width per head, D_v width per head of the values.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlib._arrays import (
    Array,
    array_namespace,
    check_int,
    describe_type,
    imported_torch,
    is_autocast_enabled,
    is_torch,
    plainly_agree,
    refuse_subclass,
    require_sequence,
    shape,
)
from attnlib._mask_rule import MaskOptions, MaskRule
from attnlib._nested import require_padded
from attnlib._types import ArrayT, Index


class MemoryCache:
    """The projected keys and values of a memory, which a decoder attends to besides its own sequence.

    One cache serves one attention layer, which takes it as its ``cache``.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.3.

    Example:
        >>> import numpy as np
        >>> cache, calls = MemoryCache(), []
        >>> memory = np.ones((2, 5, 8))
        >>> def project(key, value):
        ...     calls.append(key)
        ...     return 2 * key, 3 * value
        >>> for token in range(3):
        ...     key, value = cache.project_once(memory, memory, project)
        >>> len(calls)
        1
    """

    def __init__(self) -> None:
        self._known: tuple[Array, Array, tuple[Any, ...], Any, tuple[Array, Array]] | None = None

    def project_once(
        self, key: ArrayT, value: ArrayT, project: Callable[[ArrayT, ArrayT], tuple[ArrayT, ArrayT]]
    ) -> tuple[ArrayT, ArrayT]:
        """Return ``project(key, value)``, computed only once for as long as the same arguments are passed.

        Args:
            key: ``(..., S, E)``, the memory that a decoder attends to. If you change it in place between calls,
                :meth:`clear` the cache: a change is noticed only in ordinary torch tensors and uncompiled code.
            value: ``(..., S, E)``.
            project: maps these to the keys ``(..., S, D)`` and values ``(..., S, D_v)`` of one layer.

        Returns:
            The two arrays that ``project`` returned. They are computed again if torch's gradient recording, inference
            mode or autocast has been switched on or off since.
        """
        conditions = _conditions(key, value)
        known = self._known
        if known is None or known[0] is not key or known[1] is not value or known[2:4] != (conditions, project):
            refuse_subclass("key", key)
            refuse_subclass("value", value)
            self._known = known = key, value, conditions, project, project(key, value)
        return known[4]

    def clear(self) -> None:
        """Forget the projections."""
        self._known = None


class KVCache:
    """The keys and values of all positions so far, so that only those of a new position have to be computed.

    One cache serves one layer: its self-attention and, through ``memory``, a decoder's attention to a memory.
    ``length`` is how many positions it holds, and so the ``q_offset`` of the next query. The storage doubles when it
    runs out, so that each added position costs two copies on average. Use a cache with one model only, and do not
    change the model's weights while you use it.

    Attributes:
        length: S, how many positions are kept.
        memory: the :class:`MemoryCache` of a decoder layer.

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
        self.memory = MemoryCache()

    def append(self, key: ArrayT, value: ArrayT) -> tuple[ArrayT, ArrayT]:
        """Add the keys and values of T new positions and return all of them.

        Args:
            key: ``(..., T, D)``, usually ``(B, H, T, D)``.
            value: ``(..., T, D_v)``.

        Returns:
            Keys ``(..., S + T, D)`` and values ``(..., S + T, D_v)``. Do not write to them: they may be views of the
            cache. Where torch records gradients they are new tensors, through which gradients flow.

        Raises:
            TypeError: backends or dtypes differ, from each other or from what is kept.
            ValueError: shapes do not match each other or what is kept.
        """
        self._check(key, value)
        self._keys, self._values = self._extended(self._keys, key), self._extended(self._values, value)
        self.length += key.shape[-2]
        return self._keys[..., : self.length, :], self._values[..., : self.length, :]

    def columns(self, T: int) -> int:
        """Return how many keys a layer's ``attn_mask`` and ``attn_bias`` must cover when T more positions come."""
        return self.length + T

    def options(self, rule: MaskRule, T: int, attn_mask: ArrayT | None, like: ArrayT) -> MaskOptions[ArrayT]:
        """Return a layer's rule and mask as options of attention for the keys held after T more positions.

        Raises:
            ValueError: the cache does not keep all positions that the rule needs.
        """
        return rule.options(T, self.length + T, self.length, attn_mask, like)

    def truncate(self, length: int) -> None:
        """Forget all positions from ``length`` on, for example when speculative decoding rejects a draft.

        Raises:
            TypeError: ``length`` is not a whole number.
            ValueError: ``length`` is negative, or more than the cache holds.
        """
        length = check_int("length", length, 0)
        if length > self.length:
            raise ValueError(f"length is {length}, but the cache holds {self.length} positions")
        self.length = length

    def reorder(self, index: Index) -> None:
        """Select sequences of the batch by index, with repeats, as beam search does to continue its best candidates.

        Args:
            index: ``(B',)``, integers: for each sequence of the new batch, which of the B sequences it continues. A
                decoder's memory is projected again at the next call, which has to pass it for the new batch.

        Raises:
            TypeError: ``index`` is not an array of integers from the cache's library.
            IndexError: ``index`` contains a negative number, or names a sequence that does not exist. (Where reading
                the index would make the program wait for a device, and in compiled code, torch raises its own error.)
        """
        index = self._checked_index(index)
        if self._keys is not None:
            self._keys, self._values = select_sequences(self._keys, index), select_sequences(self._values, index)
        self.memory.clear()

    def _checked_index(self, index: Array) -> Array:
        """Check the new order of the sequences, and return it as an index for arrays."""
        refuse_subclass("index", index)
        if is_torch(index):
            integers = not (index.is_floating_point() or index.is_complex() or "bool" in str(index.dtype))
        else:
            integers = isinstance(index, np.ndarray) and index.dtype.kind in "iu"
        if not integers or index.ndim != 1 or (self._keys is not None and is_torch(index) != is_torch(self._keys)):
            came = (
                f"an array of shape {shape(index)} and dtype {index.dtype}" if hasattr(index, "dtype") else repr(index)
            )
            raise TypeError(f"index is {came}, but an array of integers (B,) from the cache's library is needed")
        if self._keys is not None:
            _require_existing(index, self._keys.shape[0])
        return index.long() if is_torch(index) else index  # torch would read uint8 as a mask

    def _check(self, key: Array, value: Array) -> None:
        """Check new keys and values before either is kept, so that an error leaves the cache unchanged."""
        if (
            _plainly_continue(self._keys, key)
            and _plainly_continue(self._values, value)
            and key.shape[-2] == value.shape[-2]
        ):
            return
        array_namespace(key=key, value=value)
        require_padded("a cache", key=key, value=value)
        require_sequence(key=key, value=value)
        if not (isinstance(key, np.ndarray) or is_torch(key)):
            raise TypeError(
                f"key is {describe_type(key)}, but a cache writes into a numpy.ndarray or torch.Tensor: convert it"
            )
        if key.shape[:-1] != value.shape[:-1]:
            raise ValueError(f"key has shape {shape(key)} and value {shape(value)}: all but the widths must be equal")
        if self._keys is not None:
            self._check_against("key", self._keys, key)
            self._check_against("value", self._values, value)

    def _check_against(self, name: str, kept: Array, new: Array) -> None:
        try:
            array_namespace(kept=kept, **{name: new})
        except TypeError as error:
            raise TypeError(
                f"{error}. The cached arrays are from an earlier call: use the same dtype in every call, and "
                "torch.autocast in all calls or in none, or begin with a new cache"
            ) from None
        if kept.shape[:-2] != new.shape[:-2] or kept.shape[-1] != new.shape[-1]:
            wanted = str((*kept.shape[:-2], "T", kept.shape[-1])).replace("'", "")
            raise ValueError(f"{name} has shape {shape(new)}, but {wanted} is needed, as in earlier calls")

    def _extended(self, kept: Array, new: Array) -> Array:
        """Return an array that begins with what is kept and the new positions, and may have room for more."""
        kept = new[..., :0, :] if kept is None else kept
        end = self.length + new.shape[-2]
        if is_torch(new) and may_not_write(kept):
            return array_namespace(new=new).concat([kept[..., : self.length, :], new], axis=-2)
        if end > kept.shape[-2]:
            size = (*new.shape[:-2], 2 * end, new.shape[-1])
            room = array_namespace(new=new).zeros(size, dtype=new.dtype, device=new.device)
            room[..., : self.length, :] = kept[..., : self.length, :]
            kept = room
        kept[..., self.length : end, :] = new
        return kept


def require_cache_per_layer(cache: Sequence[KVCache], layers: int) -> None:
    """Raise unless the cache of a stack is a list with a cache of its own for each layer."""
    if not isinstance(cache, list):
        raise TypeError(f"cache is a {type(cache).__name__}, but a list is needed, one for each layer: new_cache()")
    if len(cache) != layers:
        raise ValueError(f"cache holds {len(cache)}, but there are {layers} layers: use new_cache()")
    own = [one for one in cache if isinstance(one, KVCache)]
    if len(set(own)) < len(own):  # id() would make torch.compile compile again for every new cache
        kind = type(max(own, key=own.count)).__name__
        raise ValueError(
            f"one {kind} serves several of the {layers} layers, but each layer needs its own: use new_cache(), or "
            f"[{kind}(...) for _ in range({layers})] instead of [{kind}(...)] * {layers}"
        )


def select_sequences(kept: Array, index: Array) -> Array:
    """Return the sequences that an index names. Brackets would make torch count negative numbers from the end."""
    return kept.index_select(0, index) if is_torch(kept) else kept[index]


def _require_existing(index: Array, B: int) -> None:
    """Raise unless an index names sequences of a batch of B.

    Where reading its values would make the program wait, or is impossible, torch checks them.
    """
    if is_torch(index):
        from attnlib._torch_tracing import is_eager_on_cpu

        if not is_eager_on_cpu(index):
            return
    if index.shape[0] and not 0 <= index.min() <= index.max() < B:
        wrong = int(index.min() if index.min() < 0 else index.max())
        raise IndexError(f"index names the sequence {wrong}, but the cache holds {B} sequences, 0 to {B - 1}")


def _plainly_continue(kept: Array, new: Array) -> bool:
    """Return True if a quick look shows that an array fits what is kept; False means that a closer look is needed."""
    if kept is None or not plainly_agree(kept, (new,)) or getattr(new, "is_nested", False):
        return False
    old, shape = kept.shape, new.shape
    return len(old) == len(shape) and old[:-2] == shape[:-2] and old[-1] == shape[-1]


def _conditions(key: Array, value: Array) -> tuple[Any, ...]:
    """Return what else a memory's projections depend on: torch's grad mode and autocast, and the tensors' versions."""
    if not is_torch(key):
        return ()
    torch = imported_torch()
    recorded = torch.is_grad_enabled()
    if torch.compiler.is_compiling():  # a compiled graph cannot query the rest
        return recorded, is_autocast_enabled(key)
    versions = [None if x.is_inference() else x._version for x in (key, value)]
    return recorded, torch.is_inference_mode_enabled(), is_autocast_enabled(key), *versions


def may_not_write(kept: Array) -> bool:
    """Tell whether torch forbids writing into a tensor: what gradients may need, or what was made for inference."""
    torch = imported_torch()
    if torch.is_grad_enabled() or kept.requires_grad or torch.compiler.is_compiling():
        return bool(torch.is_grad_enabled() or kept.requires_grad)  # a graph cannot query how a tensor was created
    return bool(kept.is_inference() and not torch.is_inference_mode_enabled())
