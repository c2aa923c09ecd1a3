"""A stack of transformer layers, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of it.

Dimensions: B batch, H heads, T queries, S keys, E width of the vectors (embed_dim).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from attnlib._arrays import Array, check_int, is_torch, namespace_and_device
from attnlib._multi_head_attention import AttentionSettings, LayerOptions, MultiHeadAttention, RopeTables
from attnlib._renamed_arguments import explain_torch_names
from attnlib._transformer_block import DecoderWeights, layer_options
from attnlib._types import A, W
from attnlib.cache import KVCache, require_cache_per_layer


class StackOptions(LayerOptions[A], total=False):
    """Arguments of a stack's call that do not affect the number of results."""

    cache: Sequence[KVCache] | None  # a list, of which type checkers would not accept a list[StaticCache]
    memory_mask: A | None  # in a decoder


class StackSettings(AttentionSettings[A], total=False):
    """Optional arguments of a stack's constructor, which it passes on to its blocks."""

    activation: str


class Encoder(Generic[A, W]):
    """A stack of transformer blocks.

    With ``is_causal`` this is a decoder-only model such as GPT, whose blocks do not attend to a memory.

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers of a block.
        num_layers: the number of blocks.
        norm: ``"pre"``, which adds one more norm after the last block, or ``"post"``.
        layer_norm_eps: a small number that the layer norms add to the variance.
        block: further arguments of :class:`TransformerBlock`.

    Returns:
        From the call, ``(B, T, E)``; with ``need_weights`` also a list of the weights ``(B, H, T, T)`` of all layers.
        Pass the list to :func:`attnlib.attention_rollout`, ``weights[n][b]`` to :func:`attnlib.plotting.head_view`, or
        ``[layer[b] for layer in weights]`` to :func:`attnlib.plotting.head_grid`. ``cache`` is also a list, with one
        cache for each layer: call ``new_cache``, or write ``[StaticCache(max_cache_len) for _ in encoder.layers]``.
        Rotary tables are computed once for all layers, unless a subclass of yours has a ``forward`` without
        ``rope_tables``. You can also pass ``rope_tables`` here.

    Raises:
        ValueError: ``num_layers`` is below 1, or ``cache`` does not hold one cache for each layer; otherwise as for the
            block.
        TypeError: as for the block.

    Source:
        Vaswani et al. (2017), section 3.1, "Encoder".
    """

    Block: Any
    LayerNorm: Any
    ModuleList: Any

    @explain_torch_names
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ff_dim: int,
        num_layers: int,
        *,
        norm: str = "pre",
        layer_norm_eps: float = 1e-5,
        **block: Unpack[StackSettings[A]],
    ) -> None:
        super().__init__()
        embed_dim, count = check_int("embed_dim", embed_dim, 1), check_int("num_layers", num_layers, 1)
        given = {**block, "norm": norm, "layer_norm_eps": layer_norm_eps}
        self.layers = self.ModuleList([self.Block(embed_dim, num_heads, ff_dim, **given) for _ in range(count)])
        self.norm = self.LayerNorm(embed_dim, eps=layer_norm_eps) if norm == "pre" else None

    def new_cache(self) -> list[KVCache]:
        """Return an empty cache for every layer."""
        return [KVCache() for _ in self.layers]

    # fmt: off
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[False] = ..., **options: Unpack[StackOptions[A]]) -> A: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[True], **options: Unpack[StackOptions[A]]) -> tuple[A, list[W]]: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: bool, **options: Unpack[StackOptions[A]]) -> A | tuple[A, list[W]]: ...
    # fmt: on

    @explain_torch_names
    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        attn_mask: Array | None = None,
        *,
        cache: Sequence[KVCache] | None = None,
        need_weights: bool = False,
        **options: Any,
    ) -> Any:
        """Transform a sequence by every block in turn: see the class."""
        if cache is not None:
            require_cache_per_layer(cache, len(self.layers))
        tables: Sequence[RopeTables[Array] | None] = [options.pop("rope_tables", None)] * len(self.layers)
        if tables[0] is None and (key is None or isinstance(self, Decoder)):
            tables = self._rope_tables(query, cache)
        x, weights = query, []
        for i, layer in enumerate(self.layers):
            own = layer_options(cache=None if cache is None else cache[i], rope_tables=tables[i], **options)
            x = layer(x, key, value, attn_mask, need_weights=need_weights, **own)
            if need_weights:
                x, w = x
                weights.append(w)
        x = x if self.norm is None else self.norm(x)
        return (x, weights) if need_weights else x

    if TYPE_CHECKING:
        __call__ = forward

    def _rope_tables(self, query: Array, cache: Sequence[KVCache] | None) -> Sequence[RopeTables[Array] | None]:
        """Return the rotary tables of every layer, computed together, or None for each if it must make its own."""
        separate = [None] * len(self.layers)
        attends: list[Any] = [getattr(layer, "self_attn", None) for layer in self.layers]  # None if it was replaced
        if not all(isinstance(attend, MultiHeadAttention) for attend in attends):
            return separate
        if not all(getattr(layer, "accepts_rope_tables", False) for layer in (*self.layers, *attends)):
            return separate
        ropes = [(attend.rope, attend.head_dim, attend.rope_scaling) for attend in attends]
        starts: list[Any] = [0] if cache is None else [getattr(one, "length", 0) for one in cache]
        if ropes[0][0] is None or any(rope != ropes[0] for rope in ropes):
            return separate
        attends[0]._check(query)
        if not any(is_torch(start) or start != starts[0] for start in starts):
            return [attends[0]._rope_tables(query, starts[0], ropes[0][0])] * len(self.layers)
        if not all(is_torch(start) and start.device == query.device for start in starts):
            return separate
        xp, _ = namespace_and_device(query)  # comparing tensors would wait for the device, so each layer gets its rows
        cos, sin = attends[0]._rope_tables(query, xp.stack(starts)[:, None], ropes[0][0])  # (layers, T, D/2)
        return [*zip(cos, sin, strict=True)]


class Decoder(Encoder[A, DecoderWeights[A]]):
    """A stack of blocks that attend to themselves, causally, and to a memory: the encoder's states.

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers of a block.
        num_layers: the number of blocks.
        block: further arguments of :class:`Encoder`.

    Returns:
        From the call ``decoder(query, memory)``, ``(B, T, E)``; with ``need_weights`` also a list of the ``self_attn``
        and ``cross_attn`` weights of all layers (see :class:`DecoderBlock`).

    Raises:
        ValueError: as for :class:`Encoder` and :class:`DecoderBlock`.
        TypeError: as for :class:`Encoder` and :class:`DecoderBlock`.

    Source:
        Vaswani et al. (2017), section 3.1, "Decoder".
    """
