"""Multi-head attention as a layer, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of it.

Those two modules supply the parts of a layer (``Linear``, ``LayerNorm``, ...) as attributes. The names of all parts,
and so the keys of the state_dict, are those of torch. All layers are batch first and are called as

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
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, Unpack, overload

from attnlib._arrays import (
    Array,
    array_namespace,
    at_least_float32,
    check_int,
    check_probability,
    namespace_and_device,
    require_mask,
    require_sequence,
    shape,
)
from attnlib._attention_arguments import Window, check_scale, check_softcap, check_window
from attnlib._layer_parts import call_part, refuse_mismatch
from attnlib._mask_rule import MaskRule
from attnlib._nested import refuse_nested, require_jagged_layout
from attnlib._renamed_arguments import explain_torch_names
from attnlib._types import A
from attnlib.cache import KVCache, MemoryCache
from attnlib.heads import merge, split
from attnlib.masks import combine_masks
from attnlib.positions import RopeScaling, apply_rope, rope_tables
from attnlib.sdpa import scaled_dot_product_attention

RopeTables = tuple[A, A]  # the cosines and the sines of rotary positions
INPUTS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "context"}  # which input each one projects


class LayerOptions(TypedDict, Generic[A], total=False):
    """Arguments of any layer's call that do not affect the number of results."""

    is_causal: bool
    rope_tables: RopeTables[A] | None


class AttentionOptions(LayerOptions[A], total=False):
    """The same for an attention layer."""

    cache: KVCache | MemoryCache | None


class AttentionSettings(TypedDict, Generic[A], total=False):
    """Optional arguments of an attention layer's constructor, which blocks and stacks pass on to it."""

    num_kv_heads: int | None
    bias: bool
    dropout: float
    rope: float | bool | None
    window: Window | None
    num_sink_tokens: int
    softcap: float | None
    scale: float | None
    attn_bias: Callable[..., A] | None
    head_dim: int | None
    out_bias: bool | None
    qk_norm: bool
    norm_eps: float
    rope_scaling: RopeScaling | None


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


class MultiHeadAttention(AcceptsRopeTables, Generic[A]):
    r"""Let several heads attend, each in a projection of its own, and join their contexts.

    .. math:: \mathrm{head}_h = \operatorname{Attention}(Q W^Q_h,\; K W^K_h,\; V W^V_h), \qquad
              O = [\mathrm{head}_1; \dots; \mathrm{head}_H]\, W^O

    Its parameters are those of four linear layers: ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, each with a
    ``weight`` (width out, width in) and, with ``bias``, a ``bias`` (width out).

    Args:
        embed_dim: E, the width of the inputs and of the output.
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
        head_dim: D, the width of a head; ``None`` means ``E / H``.
        out_bias: whether the last projection adds a bias; ``None`` means what ``bias`` says.
        qk_norm: whether each head's queries and keys are normalised, before they are rotated, by an RMS norm with a
            weight for each component: ``q_norm`` and ``k_norm``.
        norm_eps: a small number that these norms add to the mean square.
        rope_scaling: how the rotary frequencies are lowered for texts longer than those in training; see
            :class:`attnlib.RopeScaling`; ``None`` leaves them unchanged.

    Returns:
        From the call, ``(B, T, E)``, or that and the weights ``(B, H, T, S)`` with ``need_weights``. ``key`` is the
        query if not given, ``value`` the key; ``attn_mask`` broadcasts to ``(B, H, T, S)``. With a
        :class:`~attnlib.cache.KVCache`, the new keys and values are added to it, and queries attend to all it holds.
        A :class:`~attnlib.cache.MemoryCache` keeps the projections for as long as the same ``key`` and ``value`` are
        passed. With ``rope``, ``rope_tables`` is a pair ``(cos, sin)`` as :func:`attnlib.rope_tables` returns it, for
        positions other than the default ones; queries and keys share it.

    Raises:
        ValueError: ``num_heads`` does not divide E and ``head_dim`` is not given, ``num_kv_heads`` does not divide H, a
            head's width is odd with ``rope``, a call gets an array of the wrong rank or width, or one whose batch
            differs from the query's, or ``rope_scaling`` or ``rope_tables`` are given without ``rope``.
        TypeError: an argument is not a whole number, ``rope`` is not a number, ``rope_scaling`` is not a RopeScaling,
            or a call gets an array whose library or dtype differs from that of the parameters.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.2; grouped queries: Ainslie et al. (2023);
        attention sinks: Xiao et al. (2023), "Efficient Streaming Language Models with Attention Sinks"; normalised
        queries and keys: Henry et al. (2020), "Query-Key Normalization for Transformers".
    """

    Linear: Any
    RMSNorm: Any
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
        attn_bias: Callable[..., A] | None = None,
        head_dim: int | None = None,
        out_bias: bool | None = None,
        qk_norm: bool = False,
        norm_eps: float = 1e-6,
        rope_scaling: RopeScaling | None = None,
    ) -> None:
        super().__init__()
        self.embed_dim = embed_dim = check_int("embed_dim", embed_dim, 1)
        self.num_heads = num_heads = check_int("num_heads", num_heads, 1)
        self.num_kv_heads = num_heads if num_kv_heads is None else check_int("num_kv_heads", num_kv_heads, 1)
        if head_dim is None and embed_dim % num_heads:
            raise ValueError(f"num_heads={num_heads} does not divide embed_dim={embed_dim}")
        if num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads={num_kv_heads} does not divide num_heads={num_heads}")
        self.head_dim = embed_dim // num_heads if head_dim is None else check_int("head_dim", head_dim, 1)
        self.dropout, self.rope = check_probability("dropout", dropout), _rope_base(rope)
        if self.rope is not None and self.head_dim % 2:
            raise ValueError(f"rope rotates pairs, but a head is {self.head_dim} wide")
        self.rope_scaling = _checked_scaling(rope_scaling, self.rope)
        self.window, self.num_sink_tokens = check_window(window), check_int("num_sink_tokens", num_sink_tokens, 0)
        self.softcap, self.attn_bias = check_softcap(softcap), attn_bias
        self.scale = check_scale(scale, self.head_dim)
        self.ablated: tuple[int, ...] = ()
        q_dim, kv_dim = num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        self.q_proj = self.Linear(embed_dim, q_dim, bias=bias)
        self.k_proj = self.Linear(embed_dim, kv_dim, bias=bias)
        self.v_proj = self.Linear(embed_dim, kv_dim, bias=bias)
        self.out_proj = self.Linear(q_dim, embed_dim, bias=bias if out_bias is None else out_bias)
        self.q_norm = self.RMSNorm(self.head_dim, eps=norm_eps) if qk_norm else None
        self.k_norm = self.RMSNorm(self.head_dim, eps=norm_eps) if qk_norm else None

    # fmt: off
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[False] = ..., **options: Unpack[AttentionOptions[A]]) -> A: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: Literal[True], **options: Unpack[AttentionOptions[A]]) -> tuple[A, A]: ...
    @overload
    def forward(self, query: A, key: A | None = ..., value: A | None = ..., attn_mask: A | None = ..., *,
                need_weights: bool, **options: Unpack[AttentionOptions[A]]) -> A | tuple[A, A]: ...
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
        cache: KVCache | MemoryCache | None = None,
        need_weights: bool = False,
        rope_tables: RopeTables[Array] | None = None,
    ) -> Any:
        """Attend: see the class."""
        require_jagged_layout("query", query)
        self._check(query, key, value)
        sinks, bias = self.num_sink_tokens > 0, self.attn_bias is not None
        refuse_nested("query", query, cache=isinstance(cache, KVCache), num_sink_tokens=sinks, attn_bias=bias)
        key = query if key is None else key
        value = key if value is None else value
        q = self._project("q_proj", query, self.num_heads)  # (B, H, T, D)
        q = q if self.q_norm is None else self.q_norm(q)
        if isinstance(cache, MemoryCache):
            k, v = cache.project_once(key, value, self._project_keys_and_values)  # (B, H_kv, S, D)
            cache = None
        else:
            k, v = self._project_keys_and_values(key, value)
        offset = self._check_cache(cache, q, k, attn_mask)
        if self.rope is not None or rope_tables is not None:
            q, k = self._rotate(q, k, offset, rope_tables)
        options = self._attention_options(cache, q, k, attn_mask, is_causal)
        if cache is not None:
            k, v = cache.append(k, v)
        result = scaled_dot_product_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.0, **options,
            enable_gqa=self.num_kv_heads < self.num_heads, return_weights=need_weights,
        )  # fmt: skip
        context, *weights = result if need_weights else (result,)
        if self.ablated:
            context = _zero_heads(context, self.ablated)
        out = self._output_of("out_proj", merge(context), self.embed_dim)
        return (out, *weights) if need_weights else out

    if TYPE_CHECKING:
        __call__ = forward

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

    def _attention_options(
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
        return {**options, "softcap": self.softcap, "scale": scale}

    def _check(self, query: Array, key: Array | None = None, value: Array | None = None) -> None:
        given = {name: x for name, x in (("key", key), ("value", value)) if x is not None}
        inputs = {"query": query, **given}
        for name in ("key", "value"):
            if name in inputs:
                _refuse_mask(name, inputs[name], query)
        array_namespace(**inputs)
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

    def _project_keys_and_values(self, key: Array, value: Array) -> tuple[Array, Array]:
        k, v = self._project("k_proj", key, self.num_kv_heads), self._project("v_proj", value, self.num_kv_heads)
        return k if self.k_norm is None else self.k_norm(k), v

    def _project(self, name: str, x: Array, heads: int) -> Array:
        """Return the projection of x, split into heads."""
        return split(self._output_of(name, x, heads * self.head_dim), heads)

    def _output_of(self, name: str, x: Array, width: int) -> Array:
        """Return what a projection makes of x. The layer may have been replaced, so its output is checked."""
        part = getattr(self, name)
        out = call_part(name, part, INPUTS[name], x)
        if getattr(x, "is_meta", False):  # torch multiplies it by a weight on any device
            refuse_mismatch(name, part, INPUTS[name], x)
        wanted = (*x.shape[:-1], width)
        if getattr(out, "shape", None) == wanted:
            return out
        came = shape(out) if hasattr(out, "shape") else f"a {type(out).__name__}"
        heads = "embed_dim" if name == "out_proj" else f"{width // self.head_dim} heads of D={self.head_dim}"
        raise ValueError(f"{name} turned shape {shape(x)} into {came}, but {wanted} is needed: {heads}")

    def _check_cache(self, cache: KVCache | None, q: Array, k: Array, attn_mask: Array | None) -> int:
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

    def _rotate(self, q: Array, k: Array, offset: int, tables: RopeTables[Array] | None) -> tuple[Array, Array]:
        """Return q and k, each rotated by its positions, which start at the offset unless tables are given."""
        if self.rope is None:
            raise ValueError("rope_tables were given, but this layer has no rotary positions: create it with rope=True")
        of_q = of_k = self._rope_tables(q, offset, self.rope) if tables is None else tables
        if tables is None and k.shape[-2] != q.shape[-2]:
            of_k = self._rope_tables(k, offset, self.rope)
        return apply_rope(q, *of_q), apply_rope(k, *of_k)

    def _rope_tables(self, x: Array, offset: int, base: float) -> RopeTables[Array]:
        """Return the tables for the positions of x ``(..., T, width)``, which start at the offset."""
        refuse_nested("query", x, rope=True)
        xp, device = namespace_and_device(x)
        positions = xp.arange(x.shape[-2], dtype=at_least_float32(xp, x.dtype), device=device) + offset
        return rope_tables(positions, self.head_dim, base=base, scaling=self.rope_scaling)


def _zero_heads(context: Array, heads: tuple[int, ...]) -> Array:
    """Return the contexts (B, H, T, D) with those of some heads set to 0, even where they were nan."""
    xp, device = namespace_and_device(context)
    numbers = xp.arange(context.shape[-3], device=device)[:, None, None]
    kept = reduce(lambda mask, head: mask & (numbers != head), heads, numbers >= 0)
    return xp.where(kept, context, xp.zeros((), dtype=context.dtype, device=device))


def _refuse_mask(name: str, x: Array, query: Array) -> None:
    """Raise TypeError if x looks like a mask: the second argument of torch's encoders, the third of its decoders."""
    came, wanted = (tuple(getattr(one, "shape", ())) for one in (x, query))
    square = came != wanted and came[-2:] == wanted[-2:-1] * 2  # (..., T, T), but not a key that has query's shape
    if square or str(getattr(x, "dtype", "")).endswith("bool"):
        raise TypeError(
            f"{name} has shape {shape(x)} and dtype {x.dtype}, like a mask. Pass masks by name: attn_mask=mask "
            "(boolean: True = may attend; in torch.nn's layers it means the opposite, so attn_mask=~mask)"
        )


def _checked_scaling(scaling: RopeScaling | None, base: float | None) -> RopeScaling | None:
    """Return the scaling of rotary frequencies, after checking that it is one and there are any."""
    if scaling is not None and not isinstance(scaling, RopeScaling):
        raise TypeError(f"rope_scaling is {scaling!r}, but a RopeScaling is needed, such as RopeScaling(factor=8.0)")
    if scaling is not None and base is None:
        raise ValueError("rope_scaling was given, but this layer has no rotary positions: create it with rope=True")
    return scaling


def _rope_base(rope: float | bool | None) -> float | None:
    """Return the base of the angles, or None if there are no rotary positions."""
    if rope is None or isinstance(rope, bool):
        return 10000.0 if rope else None
    if not isinstance(rope, Real):
        raise TypeError(f"rope is {rope!r}, but a number is needed, the base of the angles (or True, or None)")
    if not 0 < rope < math.inf:
        raise ValueError(f"rope is {rope}, but a positive number is needed, the base of the angles (or None)")
    return float(rope)
