"""One layer of a transformer, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of it.

Dimensions: B batch, H heads, T queries, S keys, E width of the vectors (embed_dim).
"""

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Unpack, overload

from attnlib._arrays import Array, check_choice, check_int, require_mask
from attnlib._layer_parts import call_part, refuse_mismatch
from attnlib._multi_head_attention import AcceptsRopeTables, AttentionSettings, LayerOptions, RopeTables
from attnlib._nested import is_nested
from attnlib._renamed_arguments import explain_torch_names
from attnlib._types import A, W
from attnlib.cache import KVCache

NORMS = ("pre", "post")


class BlockSettings(AttentionSettings[A], total=False):
    """Optional arguments of a block's constructor, which stacks pass on to it."""

    norm: str
    activation: str


class BlockOptions(LayerOptions[A], total=False):
    """Arguments of a block's call that do not affect the number of results."""

    cache: KVCache | None


class DecoderOptions(BlockOptions[A], total=False):
    """The same for a decoder's block."""

    memory_mask: A | None


class TransformerBlock(AcceptsRopeTables, Generic[A, W]):
    r"""Attend to the sequence, then transform every position on its own; add both results to the input.

    .. math:: \text{pre: } &x' = x + \operatorname{Attn}(\operatorname{norm}_1 x), \quad
              y = x' + \operatorname{FF}(\operatorname{norm}_2 x') \\
              \text{post: } &x' = \operatorname{norm}_1(x + \operatorname{Attn} x), \quad
              y = \operatorname{norm}_2(x' + \operatorname{FF} x')

    with :math:`\operatorname{FF} x = W_2\, \sigma(W_1 x + b_1) + b_2`. The parts are named as in
    ``torch.nn.TransformerEncoderLayer``: ``self_attn``, ``linear1``, ``linear2``, ``norm1``, ``norm2``.

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers, usually 4 E.
        norm: ``"pre"`` (GPT-2 and after) or ``"post"`` (the original transformer, BERT).
        activation: ``"relu"`` or ``"gelu"`` (the exact one).
        layer_norm_eps: a small number that the layer norms add to the variance.
        mha: further arguments of :class:`MultiHeadAttention`; ``dropout`` is also applied to what the two halves of
            the block add, and between the two linear layers.

    Returns:
        From the call, ``(B, T, E)``, or that and the weights ``(B, H, T, S)`` with ``need_weights``. If a ``key``
        ``(B, S, E)`` is given, the block attends to that instead of the sequence itself.

    Raises:
        ValueError: ``norm`` or ``activation`` is unknown; otherwise as for :class:`MultiHeadAttention`.
        TypeError: as for :class:`MultiHeadAttention`.

    Source:
        Vaswani et al. (2017), section 3.1; pre-norm: Xiong et al. (2020), "On Layer Normalization in the Transformer
        Architecture".
    """

    Attention: Any
    Linear: Any
    LayerNorm: Any
    Dropout: Any
    ACTIVATIONS: Any

    @explain_torch_names
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ff_dim: int,
        *,
        norm: str = "pre",
        activation: str = "relu",
        layer_norm_eps: float = 1e-5,
        **mha: Unpack[AttentionSettings[A]],
    ) -> None:
        super().__init__()
        self.norm = check_choice("norm", norm, NORMS)
        self.activation = check_choice("activation", activation, self.ACTIVATIONS)
        embed_dim, ff_dim = check_int("embed_dim", embed_dim, 1), check_int("ff_dim", ff_dim, 1)
        self.self_attn = self.Attention(embed_dim, num_heads, **mha)
        self.linear1 = self.Linear(embed_dim, ff_dim)
        self.linear2 = self.Linear(ff_dim, embed_dim)
        self.norm1 = self.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.norm2 = self.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.dropout = self.Dropout(mha.get("dropout", 0.0))

    # fmt: off
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[False] = ..., **options: Unpack[BlockOptions[A]]) -> A: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[True], **options: Unpack[BlockOptions[A]]) -> tuple[A, W]: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: bool, **options: Unpack[BlockOptions[A]]) -> A | tuple[A, W]: ...
    # fmt: on

    @explain_torch_names
    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        attn_mask: Array | None = None,
        *,
        is_causal: bool = False,
        cache: KVCache | None = None,
        need_weights: bool = False,
        rope_tables: RopeTables[Array] | None = None,
    ) -> Any:
        """Transform a sequence: see the class."""
        self.self_attn._check(query, key, value)
        options = layer_options(is_causal=is_causal, cache=cache, need_weights=need_weights, rope_tables=rope_tables)

        def attend(x: Array) -> Any:
            return self.self_attn(x, key, value, attn_mask, **options)

        x, *weights = self._add(query, "norm1", attend)
        x, *_ = self._add(x, "norm2", self._feed_forward)
        return (x, *weights) if need_weights else x

    if TYPE_CHECKING:
        __call__ = forward

    def _add(self, x: Array, norm_name: str, part: Any) -> tuple[Array, ...]:
        """Add the output of a part of the block to x, and normalise before or after; return its weights too."""

        def norm(x: Array) -> Array:
            return call_part(norm_name, getattr(self, norm_name), "query", x)

        result = part(norm(x) if self.norm == "pre" else x)
        out, *weights = result if isinstance(result, tuple) else (result,)
        total = x + self.dropout(out)
        if total.dtype != x.dtype:
            # A norm that was replaced may have cast x to the wider dtype of the projections.
            refuse_mismatch("q_proj", self.self_attn.q_proj, "query", x)
        return (total if self.norm == "pre" else norm(total), *weights)

    def _feed_forward(self, x: Array) -> Array:
        hidden = self.ACTIVATIONS[self.activation](call_part("linear1", self.linear1, "x", x))  # (B, T, ff_dim)
        return call_part("linear2", self.linear2, "x", self.dropout(hidden))


class DecoderWeights(NamedTuple, Generic[A]):
    """The weights of a decoder block's self-attention and cross-attention."""

    self_attn: A  # (B, H, T, T)
    cross_attn: A  # (B, H, T, S), to the memory


class DecoderBlock(TransformerBlock[A, DecoderWeights[A]]):
    r"""A transformer block that also attends to a memory, the encoder's states, between its two halves.

    The parts are those of :class:`TransformerBlock` plus ``cross_attn`` and ``norm3``, as in
    ``torch.nn.TransformerDecoderLayer`` (which calls the former ``multihead_attn``).

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers.
        block: further arguments of :class:`TransformerBlock`. Rotary positions, ``window`` and ``attn_bias``
            apply to self-attention only.

    Returns:
        From the call, ``(B, T, E)``; with ``need_weights`` also the weights, a named tuple of ``self_attn``
        ``(B, H, T, T)`` and ``cross_attn`` ``(B, H, T, S)``, to the memory. ``key`` is the memory ``(B, S, E)``,
        ``value`` the same if not given; ``attn_mask`` is for the self-attention, ``memory_mask`` for the memory. The
        self-attention is causal unless ``is_causal=False`` is passed.

    Raises:
        ValueError: ``key`` is missing; otherwise as for :class:`TransformerBlock`.
        TypeError: as for :class:`TransformerBlock`.

    Source:
        Vaswani et al. (2017), section 3.1, "Decoder".
    """

    @explain_torch_names
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ff_dim: int,
        *,
        layer_norm_eps: float = 1e-5,
        **block: Unpack[BlockSettings[A]],
    ) -> None:
        super().__init__(embed_dim, num_heads, ff_dim, layer_norm_eps=layer_norm_eps, **block)
        embed_dim = self.self_attn.embed_dim
        mha = {name: x for name, x in block.items() if name in ("num_kv_heads", "bias", "dropout", "softcap", "scale")}
        self.cross_attn = self.Attention(embed_dim, num_heads, **mha)
        self.norm3 = self.LayerNorm(embed_dim, eps=layer_norm_eps)

    # fmt: off
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[False] = ..., **options: Unpack[DecoderOptions[A]]) -> A: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[True], **options: Unpack[DecoderOptions[A]],
                ) -> tuple[A, DecoderWeights[A]]: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: bool, **options: Unpack[DecoderOptions[A]],
                ) -> A | tuple[A, DecoderWeights[A]]: ...
    # fmt: on

    @explain_torch_names
    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        attn_mask: Array | None = None,
        *,
        is_causal: bool = True,
        cache: KVCache | None = None,
        need_weights: bool = False,
        rope_tables: RopeTables[Array] | None = None,
        memory_mask: Array | None = None,
    ) -> Any:
        """Transform a sequence that also attends to a memory: see the class."""
        if key is None:
            raise ValueError("key is None, but a decoder attends to a memory (B, S, E): pass the encoder's states")
        self.cross_attn._check(query, key, value)  # before anything is added to the cache
        if memory_mask is not None and not is_nested(query):
            scores = (*query.shape[:-2], self.cross_attn.num_heads, query.shape[-2], key.shape[-2])
            require_mask("memory_mask", memory_mask, scores, query)
        options = layer_options(is_causal=is_causal, cache=cache, need_weights=need_weights, rope_tables=rope_tables)

        def attend(x: Array) -> Any:
            return self.self_attn(x, attn_mask=attn_mask, **options)

        def cross_attend(x: Array) -> Any:
            kept = None if cache is None else cache.memory
            return self.cross_attn(x, key, value, memory_mask, cache=kept, need_weights=need_weights)

        x, *own = self._add(query, "norm1", attend)
        x, *across = self._add(x, "norm2", cross_attend)
        x, *_ = self._add(x, "norm3", self._feed_forward)
        return (x, DecoderWeights(*own, *across)) if need_weights else x

    if TYPE_CHECKING:
        __call__ = forward


def layer_options(**options: Any) -> dict[str, Any]:
    """Return the options, without rope_tables if it is None: a layer that replaces ours need not accept it."""
    return {name: x for name, x in options.items() if x is not None or name != "rope_tables"}
