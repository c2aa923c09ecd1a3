"""The layers of a transformer, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of them.

What a layer is built from (``Linear``, ``LayerNorm``, ...) are attributes that those two modules supply; the names of
all parts, and so the keys of the state_dict, are torch's. All layers are batch first and are called as

    layer(query, key=None, value=None, attn_mask=None, *, is_causal=False, cache=None, need_weights=False,
          rope_tables=None)

and return ``out``, or ``(out, weights)``. A boolean mask is True where a query **may attend** (the masks of
``torch.nn.MultiheadAttention`` mean the opposite).

Dimensions: B batch, H heads, T queries, S keys, E width of the vectors (embed_dim), D = E / H width per head.
"""

import math
from collections.abc import Callable
from functools import reduce
from inspect import signature
from numbers import Real
from typing import Any, NamedTuple

from attnlib._arrays import (
    Array,
    array_namespace,
    at_least_float32,
    check_int,
    check_probability,
    is_torch,
    namespace_and_device,
    require_mask,
    require_sequence,
    shape,
)
from attnlib._instead import explain_torch_names
from attnlib._lengths import check_offset
from attnlib._mask_rule import MaskRule
from attnlib.cache import KVCache, MemoryCache
from attnlib.heads import merge, split
from attnlib.masks import combine_masks
from attnlib.positions import apply_rope
from attnlib.positions import rope_tables as tables_of
from attnlib.sdpa import Window, check_softcap, check_window, scaled_dot_product_attention
from attnlib.similarity import check_scale

Tables = tuple[Array, Array]  # the cosines and the sines of rotary positions


class AcceptsRopeTables:
    """A layer whose call takes ``rope_tables``, unless a subclass has a ``forward`` without that argument.

    A stack shares its tables only among layers that accept them: all others compute their own.
    """

    accepts_rope_tables: bool
    forward: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        parameters = signature(cls.forward).parameters.values()
        cls.accepts_rope_tables = any(p.name == "rope_tables" or p.kind is p.VAR_KEYWORD for p in parameters)


class MultiHeadAttention(AcceptsRopeTables):
    r"""Several heads attend, each in a projection of its own, and what they found is joined.

    .. math:: \mathrm{head}_h = \operatorname{Attention}(Q W^Q_h,\; K W^K_h,\; V W^V_h), \qquad
              O = [\mathrm{head}_1; \dots; \mathrm{head}_H]\, W^O

    Its parameters are those of four linear layers: ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, each with a
    ``weight`` (width out, width in) and, with ``bias``, a ``bias`` (width out).

    Args:
        embed_dim: E, the width of what comes in and goes out.
        num_heads: H, how many heads the queries have; it divides E.
        num_kv_heads: how many heads keys and values have (grouped queries); it divides H. ``None`` means H.
        bias: whether the projections add a bias.
        dropout: the probability with which a weight is dropped while training (torch; NumPy's layers do not train).
        rope: the base of rotary positions, a number, or ``True`` for 10000.0; ``None`` or ``False`` for none. Queries
            and keys are rotated by their positions, half-split as in GPT-NeoX; positions continue where the cache ends.
        window: ``(left, right)``, how many positions before and after its own a query may attend to; ``None`` for all.
        num_sink_tokens: the number of positions at the beginning that a query may attend to even if they lie further
            back than the window: attention sinks.
        softcap: scores s become ``softcap * tanh(s / softcap)``; ``None`` leaves them unchanged.
        scale: the factor by which dot products are multiplied; ``None`` means ``1 / sqrt(D)``.
        attn_bias: a function of the positions that is added to the scores. It is called as
            ``attn_bias(H, T, S, q_offset=..., like=query)`` and returns an array that broadcasts to ``(B, H, T, S)``.
            It can be :func:`attnlib.alibi_bias`, for example, or a module with parameters.

    Returns:
        From the call, ``(B, T, E)``, or that and the weights ``(B, H, T, S)`` with ``need_weights``. ``key`` is the
        query if not given, ``value`` the key; ``attn_mask`` broadcasts to ``(B, H, T, S)``. With a
        :class:`~attnlib.cache.KVCache`, the new keys and values are added to it, and queries attend to all it holds.
        A :class:`~attnlib.cache.MemoryCache` keeps the projections for as long as the same ``key`` and ``value`` are
        passed. With ``rope``, ``rope_tables`` is a pair ``(cos, sin)`` as :func:`attnlib.rope_tables` returns it, for
        positions other than the default ones; queries and keys share it.

    Raises:
        ValueError: ``num_heads`` does not divide E, ``num_kv_heads`` does not divide H, a head's width is odd with
            ``rope``, or a call gets an array of the wrong rank or width, one whose batch differs from the query's, or
            ``rope_tables`` without ``rope``.
        TypeError: an argument is not a whole number, ``rope`` is not a number, or a call gets an array whose library
            or dtype differs from that of the parameters.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.2; grouped queries: Ainslie et al. (2023);
        attention sinks: Xiao et al. (2023), "Efficient Streaming Language Models with Attention Sinks".
    """

    Linear: Any
    training: bool

    @explain_torch_names
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rope: float | bool | None = None,
        window: Window | None = None,
        num_sink_tokens: int = 0,
        softcap: float | None = None,
        scale: float | None = None,
        attn_bias: Callable[..., Array] | None = None,
    ) -> None:
        super().__init__()
        self.embed_dim = embed_dim = check_int("embed_dim", embed_dim, 1)
        self.num_heads = num_heads = check_int("num_heads", num_heads, 1)
        self.num_kv_heads = num_heads if num_kv_heads is None else check_int("num_kv_heads", num_kv_heads, 1)
        if embed_dim % num_heads:
            raise ValueError(f"num_heads={num_heads} does not divide embed_dim={embed_dim}")
        if num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads={num_kv_heads} does not divide num_heads={num_heads}")
        self.head_dim = embed_dim // num_heads
        self.dropout, self.rope = check_probability("dropout", dropout), _base(rope)
        if self.rope is not None and self.head_dim % 2:
            raise ValueError(f"rope rotates pairs, but a head is {embed_dim}/{num_heads} = {self.head_dim} wide")
        self.window, self.num_sink_tokens = check_window(window), check_int("num_sink_tokens", num_sink_tokens, 0)
        self.softcap, self.attn_bias = check_softcap(softcap), attn_bias
        self.scale = check_scale(scale, self.head_dim)
        self.ablated: tuple[int, ...] = ()
        kv_dim = self.num_kv_heads * self.head_dim
        self.q_proj = self.Linear(embed_dim, embed_dim, bias=bias)
        self.k_proj = self.Linear(embed_dim, kv_dim, bias=bias)
        self.v_proj = self.Linear(embed_dim, kv_dim, bias=bias)
        self.out_proj = self.Linear(embed_dim, embed_dim, bias=bias)

    @explain_torch_names
    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        attn_mask: Array | None = None,
        *,
        is_causal: bool = False,
        cache: KVCache | MemoryCache | None = None,
        need_weights: bool = False,
        rope_tables: Tables | None = None,
    ) -> Any:
        """Attend: see the class."""
        self._check(query, key, value)
        key = query if key is None else key
        value = key if value is None else value
        q = self._projected("q_proj", query, self.num_heads)  # (B, H, T, D)
        if isinstance(cache, MemoryCache):
            k, v = cache.project_once(key, value, self._keys_and_values)  # (B, H_kv, S, D)
            cache = None
        else:
            k, v = self._keys_and_values(key, value)
        offset = self._offset(cache, q, k, attn_mask)
        if self.rope is not None or rope_tables is not None:
            q, k = self._turned(q, k, offset, rope_tables)
        options = self._options(cache, q, k, attn_mask, is_causal)
        if cache is not None:
            k, v = cache.append(k, v)
        result = scaled_dot_product_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.0, **options,
            enable_gqa=self.num_kv_heads < self.num_heads, return_weights=need_weights,
        )  # fmt: skip
        context, *weights = result if need_weights else (result,)
        if self.ablated:
            context = _without_heads(context, self.ablated)
        out = self.out_proj(merge(context))
        return (out, *weights) if need_weights else out

    def ablate(self, *heads: int) -> None:
        """Make these heads, counted from 0, contribute nothing from now on; a call without heads restores them all.

        Their weights are still computed, and returned with ``need_weights``.

        Raises:
            TypeError: a head is not a whole number.
            ValueError: there is no such head.

        Source:
            Michel, Levy and Neubig (2019), "Are Sixteen Heads Really Better than One?", section 2.3.

        Example:
            >>> import numpy as np
            >>> from attnlib.numpy import Encoder
            >>> encoder, x = Encoder(embed_dim=8, num_heads=2, ff_dim=16, num_layers=3), np.eye(8, dtype=np.float32)
            >>> before, effect = encoder(x), {}
            >>> for n, layer in enumerate(encoder.layers):  # one head of the stack at a time
            ...     for head in range(2):
            ...         layer.self_attn.ablate(head)
            ...         effect[n, head] = float(np.abs(encoder(x) - before).max())
            ...     layer.self_attn.ablate()
            >>> len(effect), min(effect.values()) > 0, bool((encoder(x) == before).all())
            (6, True, True)
        """
        for head in heads:
            if check_int("head", head, 0) >= self.num_heads:
                raise ValueError(f"head is {head}, but there are {self.num_heads} heads: 0 to {self.num_heads - 1}")
        self.ablated = heads

    def _options(
        self, cache: KVCache | None, q: Array, k: Array, attn_mask: Array | None, is_causal: bool
    ) -> dict[str, Any]:
        """Return the options for attention, left at their defaults where possible so that it takes its fastest path."""
        T, S, offset = q.shape[-2], k.shape[-2], 0
        if cache is not None:
            S, offset = cache.columns(T), cache.length
        if self.attn_bias is not None:
            bias = self.attn_bias(self.num_heads, T, S, q_offset=offset, like=q)
            attn_mask = combine_masks(attn_mask, bias)
        rule = MaskRule.of(is_causal, self.window, self.num_sink_tokens)
        options = rule.options(T, S, 0, attn_mask, q) if cache is None else cache.options(rule, T, attn_mask, q)
        scale = None if self.scale == self.head_dim**-0.5 else self.scale
        return options | {"softcap": self.softcap, "scale": scale}

    def _check(self, query: Array, key: Array | None = None, value: Array | None = None) -> None:
        inputs = {"query": query} | {n: x for n, x in (("key", key), ("value", value)) if x is not None}
        if key is not None:
            _refuse_mask_as_key(query, key)
        own = {"weight": self.q_proj.weight} if type(self.q_proj) is self.Linear else {}  # others do their own checks
        array_namespace(**inputs, **own)
        require_sequence(**inputs)
        for name, x in inputs.items():
            if x.shape[-1] != self.embed_dim:
                raise ValueError(f"{name} has shape {shape(x)}, but (B, T, {self.embed_dim}) is needed: embed_dim wide")
            if x.shape[:-2] != query.shape[:-2]:
                raise ValueError(
                    f"query has shape {shape(query)} and {name} {shape(x)}: all but the last two dimensions must be "
                    "equal; repeat one of them (numpy.broadcast_to, torch.Tensor.expand)"
                )
        keys = "query" if key is None else "key"
        if value is not None and value.shape[-2] != inputs[keys].shape[-2]:
            asked = " (the key, as none was given: pass key with value)" if key is None else ""
            raise ValueError(
                f"{keys} has shape {shape(inputs[keys])}{asked} and value {shape(value)}: there must be as many "
                f"values as keys, S={inputs[keys].shape[-2]}"
            )

    def _keys_and_values(self, key: Array, value: Array) -> tuple[Array, Array]:
        return self._projected("k_proj", key, self.num_kv_heads), self._projected("v_proj", value, self.num_kv_heads)

    def _projected(self, name: str, x: Array, heads: int) -> Array:
        """Return the projection of x, split into heads. The layer may have been replaced, so its output is checked."""
        out = getattr(self, name)(x)
        wanted = (*x.shape[:-1], heads * self.head_dim)
        if out.shape != wanted:
            raise ValueError(
                f"{name} turned shape {shape(x)} into {shape(out)}, but {wanted} is needed: {heads} heads of "
                f"D={self.head_dim}"
            )
        return split(out, heads)

    def _offset(self, cache: KVCache | None, q: Array, k: Array, attn_mask: Array | None) -> int:
        """Return how many positions the cache holds, after checking whatever could fail once these are added."""
        if cache is None:
            return 0
        if not isinstance(cache, KVCache):
            raise TypeError(
                f"cache is a {type(cache).__name__}, but a KVCache is needed (only a stack takes a list of them)"
            )
        if attn_mask is not None:
            require_mask("attn_mask", attn_mask, (*q.shape[:-1], cache.columns(q.shape[-2])), q)
        return cache.length

    def _turned(self, q: Array, k: Array, offset: int, tables: Tables | None) -> tuple[Array, Array]:
        """Return q and k, each rotated by its positions, which start at the offset unless tables are given."""
        if self.rope is None:
            raise ValueError("rope_tables were given, but this layer has no rotary positions: create it with rope=True")
        of_q = of_k = self._rope_tables(q, offset, self.rope) if tables is None else tables
        if tables is None and k.shape[-2] != q.shape[-2]:
            of_k = self._rope_tables(k, offset, self.rope)
        return apply_rope(q, *of_q), apply_rope(k, *of_k)

    def _rope_tables(self, x: Array, offset: int, base: float) -> Tables:
        """Return the tables for the positions of x ``(..., T, width)``, which start at the offset."""
        if getattr(x, "is_nested", False):
            raise TypeError(
                "rope needs padded tensors, but got a nested one: pass torch.nested.to_padded_tensor(x, 0.0), and "
                "padding_mask(lengths, S) as attn_mask"
            )
        xp, device = namespace_and_device(x)
        positions = xp.arange(x.shape[-2], dtype=at_least_float32(xp, x.dtype), device=device) + offset
        return tables_of(positions, self.head_dim, base=base)


class TransformerBlock(AcceptsRopeTables):
    r"""Attend to the sequence, then transform every position on its own; both are added to what came in.

    .. math:: \text{pre: } &x' = x + \operatorname{Attn}(\operatorname{norm}_1 x), \quad
              y = x' + \operatorname{FF}(\operatorname{norm}_2 x') \\
              \text{post: } &x' = \operatorname{norm}_1(x + \operatorname{Attn} x), \quad
              y = \operatorname{norm}_2(x' + \operatorname{FF} x')

    with :math:`\operatorname{FF} x = W_2\, \sigma(W_1 x + b_1) + b_2`. The parts are named as in
    ``torch.nn.TransformerEncoderLayer``: ``self_attn``, ``linear1``, ``linear2``, ``norm1``, ``norm2``.

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers, 4 E as a rule.
        norm: ``"pre"`` (GPT-2 and after) or ``"post"`` (the original transformer, BERT).
        activation: ``"relu"`` or ``"gelu"`` (the exact one).
        layer_norm_eps: what the layer norms add to the variance.
        mha: further arguments of :class:`MultiHeadAttention`; ``dropout`` is also applied to what the two halves of
            the block add, and between the two linear layers.

    Returns:
        From the call, ``(B, T, E)``, or that and the weights ``(B, H, T, S)`` with ``need_weights``. If a ``key``
        ``(B, S, E)`` is given, the block attends to that instead of the sequence itself.

    Raises:
        ValueError: ``norm`` or ``activation`` is unknown; else as for :class:`MultiHeadAttention`.
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
        **mha: Any,
    ) -> None:
        super().__init__()
        self.norm, self.activation = _known("norm", norm, NORMS), _known("activation", activation, self.ACTIVATIONS)
        embed_dim, ff_dim = check_int("embed_dim", embed_dim, 1), check_int("ff_dim", ff_dim, 1)
        self.self_attn = self.Attention(embed_dim, num_heads, **mha)
        self.linear1 = self.Linear(embed_dim, ff_dim)
        self.linear2 = self.Linear(ff_dim, embed_dim)
        self.norm1 = self.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.norm2 = self.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.dropout = self.Dropout(mha.get("dropout", 0.0))

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
        rope_tables: Tables | None = None,
    ) -> Any:
        """Transform a sequence: see the class."""
        self.self_attn._check(query, key, value)
        options = _given(is_causal=is_causal, cache=cache, need_weights=need_weights, rope_tables=rope_tables)

        def attend(x: Array) -> Any:
            return self.self_attn(x, key, value, attn_mask, **options)

        x, *weights = self._add(query, self.norm1, attend)
        x, *_ = self._add(x, self.norm2, self._feed_forward)
        return (x, *weights) if need_weights else x

    def _add(self, x: Array, norm: Any, part: Any) -> tuple[Array, ...]:
        """Add to x what a part of the block makes of it, and normalise before or after; the weights come along."""
        result = part(norm(x) if self.norm == "pre" else x)
        out, *weights = result if isinstance(result, tuple) else (result,)
        x = x + self.dropout(out)
        return (x if self.norm == "pre" else norm(x), *weights)

    def _feed_forward(self, x: Array) -> Array:
        return self.linear2(self.dropout(self.ACTIVATIONS[self.activation](self.linear1(x))))


class DecoderWeights(NamedTuple):
    """The weights of a decoder block's self-attention and cross-attention."""

    self_attn: Array  # (B, H, T, T)
    cross_attn: Array  # (B, H, T, S), to the memory


class DecoderBlock(TransformerBlock):
    r"""A transformer block that, between its two halves, attends to a memory: the encoder's states.

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
        ValueError: there is no ``key``; else as for :class:`TransformerBlock`.
        TypeError: as for :class:`TransformerBlock`.

    Source:
        Vaswani et al. (2017), section 3.1, "Decoder".
    """

    @explain_torch_names
    def __init__(self, embed_dim: int, num_heads: int, ff_dim: int, *, layer_norm_eps: float = 1e-5, **block: Any):
        super().__init__(embed_dim, num_heads, ff_dim, layer_norm_eps=layer_norm_eps, **block)
        embed_dim = self.self_attn.embed_dim
        mha = {name: x for name, x in block.items() if name in ("num_kv_heads", "bias", "dropout", "softcap", "scale")}
        self.cross_attn = self.Attention(embed_dim, num_heads, **mha)
        self.norm3 = self.LayerNorm(embed_dim, eps=layer_norm_eps)

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
        rope_tables: Tables | None = None,
        memory_mask: Array | None = None,
    ) -> Any:
        """Transform a sequence in the light of a memory: see the class."""
        if key is None:
            raise ValueError("key is None, but a decoder attends to a memory (B, S, E): pass the encoder's states")
        self.cross_attn._check(query, key, value)  # before anything is added to the cache
        options = _given(is_causal=is_causal, cache=cache, need_weights=need_weights, rope_tables=rope_tables)

        def attend(x: Array) -> Any:
            return self.self_attn(x, attn_mask=attn_mask, **options)

        def look_up(x: Array) -> Any:
            kept = None if cache is None else cache.memory
            return self.cross_attn(x, key, value, memory_mask, cache=kept, need_weights=need_weights)

        x, *own = self._add(query, self.norm1, attend)
        x, *across = self._add(x, self.norm2, look_up)
        x, *_ = self._add(x, self.norm3, self._feed_forward)
        return (x, DecoderWeights(*own, *across)) if need_weights else x


class Encoder:
    """A stack of transformer blocks.

    With ``is_causal`` it is what is called a decoder-only model: GPT's blocks attend to no memory.

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers of a block.
        num_layers: how many blocks.
        norm: ``"pre"``, which adds one more norm after the last block, or ``"post"``.
        layer_norm_eps: what the layer norms add to the variance.
        block: further arguments of :class:`TransformerBlock`.

    Returns:
        From the call, ``(B, T, E)``; with ``need_weights`` also a list of the weights ``(B, H, T, T)`` of all layers.
        Pass the list to :func:`attnlib.attention_rollout`, ``weights[n][b]`` to :func:`attnlib.plotting.head_view`, or
        ``[layer[b] for layer in weights]`` to :func:`attnlib.plotting.head_grid`. ``cache`` is also a list, with one
        cache for each layer: call ``new_cache``, or write ``[StaticCache(max_cache_len) for _ in encoder.layers]``.
        Rotary tables are computed once and shared by all layers, except with a ``StaticCache`` in torch, or if a
        subclass of yours has a ``forward`` without ``rope_tables``. You can also pass ``rope_tables`` here.

    Raises:
        ValueError: ``num_layers`` is below 1, or ``cache`` has not one cache a layer; else as for the block.
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
        **block: Any,
    ) -> None:
        super().__init__()
        block |= {"norm": norm, "layer_norm_eps": layer_norm_eps}
        embed_dim, count = check_int("embed_dim", embed_dim, 1), check_int("num_layers", num_layers, 1)
        self.layers = self.ModuleList([self.Block(embed_dim, num_heads, ff_dim, **block) for _ in range(count)])
        self.norm = self.LayerNorm(embed_dim, eps=layer_norm_eps) if norm == "pre" else None

    def new_cache(self) -> list[KVCache]:
        """Return an empty cache for every layer."""
        return [KVCache() for _ in self.layers]

    @explain_torch_names
    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        attn_mask: Array | None = None,
        *,
        cache: list[KVCache] | None = None,
        need_weights: bool = False,
        **options: Any,
    ) -> Any:
        """Transform a sequence by every block in turn: see the class."""
        if cache is not None and not isinstance(cache, list):
            raise TypeError(f"cache is a {type(cache).__name__}, but a list is needed, one for each layer: new_cache()")
        if cache is not None and len(cache) != len(self.layers):
            raise ValueError(f"cache holds {len(cache)}, but there are {len(self.layers)} layers: use new_cache()")
        if "rope_tables" not in options and (key is None or isinstance(self, Decoder)):
            options |= _given(rope_tables=self._shared_rope_tables(query, cache))
        x, weights = query, []
        for i, layer in enumerate(self.layers):
            own = None if cache is None else cache[i]
            x = layer(x, key, value, attn_mask, cache=own, need_weights=need_weights, **options)
            if need_weights:
                x, w = x
                weights.append(w)
        x = x if self.norm is None else self.norm(x)
        return (x, weights) if need_weights else x

    def _shared_rope_tables(self, query: Array, cache: list[KVCache] | None) -> Tables | None:
        """Return the rotary tables that all layers share, or None if there are none or each layer must make its own."""
        attends: list[Any] = [getattr(layer, "self_attn", None) for layer in self.layers]  # None if it was replaced
        if not all(isinstance(attend, MultiHeadAttention) for attend in attends):
            return None
        if not all(getattr(layer, "accepts_rope_tables", False) for layer in (*self.layers, *attends)):
            return None
        ropes = [(attend.rope, attend.head_dim) for attend in attends]
        starts = [0] if cache is None else [getattr(one, "length", 0) for one in cache]
        if ropes[0][0] is None or any(rope != ropes[0] for rope in ropes):
            return None
        if any(is_torch(n) or n != starts[0] for n in starts):  # comparing tensors would wait for the device
            return None
        attends[0]._check(query)
        tables: Tables = attends[0]._rope_tables(query, starts[0], ropes[0][0])
        return tables


class Decoder(Encoder):
    """A stack of blocks that attend to themselves, causally, and to a memory: the encoder's states.

    Args:
        embed_dim: E.
        num_heads: H.
        ff_dim: the width between the two linear layers of a block.
        num_layers: how many blocks.
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


class LearnedPositions:
    """A vector for every position, learned like a word's, and added.

    Args:
        num_positions: how many positions there are.
        embed_dim: E.

    Returns:
        From the call, ``(B, T, E)``: what came in, with the vectors of the positions ``q_offset`` to
        ``q_offset + T - 1`` added.

    Raises:
        ValueError: a position is beyond the last, or the widths differ.
        TypeError: an argument is not a whole number, or the array differs from the vectors in library or dtype.

    Source:
        Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", section 3.1; Vaswani et al. (2017),
        section 3.5.
    """

    new_parameter: Any

    def __init__(self, num_positions: int, embed_dim: int) -> None:
        super().__init__()
        shape = (check_int("num_positions", num_positions, 1), check_int("embed_dim", embed_dim, 1))
        self.weight = self.new_parameter(shape, 0.02)  # the spread of GPT-2's

    def forward(self, x: Array, *, q_offset: int = 0) -> Array:
        """Add the positions' vectors: see the class."""
        array_namespace(x=x, weight=self.weight)
        require_sequence(x=x)
        T, (known, width) = x.shape[-2], self.weight.shape
        if x.shape[-1] != width:
            raise ValueError(f"x has shape {shape(x)}, but (B, T, {width}) is needed: embed_dim wide")
        if is_torch(q_offset):
            xp, device = namespace_and_device(x)
            return x + self.weight[xp.arange(T, device=device) + check_offset(q_offset, x)]
        first = check_int("q_offset", q_offset, 0)
        if first + T > known:
            raise ValueError(f"x has shape {shape(x)} and q_offset is {first}: there are vectors for {known} positions")
        return x + self.weight[first : first + T]


NORMS = ("pre", "post")


def _given(**options: Any) -> dict[str, Any]:
    """Return the options, without rope_tables if it is None: a layer that replaces ours need not accept it."""
    return {name: x for name, x in options.items() if x is not None or name != "rope_tables"}


def _without_heads(context: Array, heads: tuple[int, ...]) -> Array:
    """Return the contexts (B, H, T, D) with those of some heads set to 0, even where they were nan."""
    xp, device = namespace_and_device(context)
    numbers = xp.arange(context.shape[-3], device=device)[:, None, None]
    kept = reduce(lambda mask, head: mask & (numbers != head), heads, numbers >= 0)
    return xp.where(kept, context, xp.zeros((), dtype=context.dtype, device=device))


def _refuse_mask_as_key(query: Array, key: Array) -> None:
    """Raise TypeError if the key looks like a mask, which is the second argument of torch's encoders."""
    T = getattr(query, "shape", (0, 0))[-2:][0]
    square = getattr(key, "shape", None) == (T, T) != getattr(query, "shape", None)
    if square or str(getattr(key, "dtype", "")).endswith("bool"):
        raise TypeError(
            f"key has shape {shape(key)} and dtype {key.dtype}, like a mask. Pass masks by name: attn_mask=mask "
            "(boolean: True = may attend)"
        )


def _base(rope: float | bool | None) -> float | None:
    """Return the base of the angles, or None if there are no rotary positions."""
    if rope is None or isinstance(rope, bool):
        return 10000.0 if rope else None
    if not isinstance(rope, Real):
        raise TypeError(f"rope is {rope!r}, but a number is needed, the base of the angles (or True, or None)")
    if not 0 < rope < math.inf:
        raise ValueError(f"rope is {rope}, but a positive number is needed, the base of the angles (or None)")
    return float(rope)


def _known(name: str, value: str, known: Any) -> str:
    if value not in known:
        raise ValueError(f"{name} is {value!r}, but one of {', '.join(map(repr, known))} is needed")
    return value
