"""A language model, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of it.

Dimensions: B batch, T tokens, S tokens so far, H heads, D width per head, E width of the vectors (embed_dim), V tokens
in the vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, Unpack, overload

from attnlib._arrays import (
    Array,
    at_least_float32,
    check_bool,
    check_choice,
    check_float,
    check_int,
    describe_type,
    integer_indices,
    is_torch,
    namespace_and_device,
    same_library,
    shape,
)
from attnlib._multi_head_attention import RopeTables
from attnlib._types import A
from attnlib.cache import KVCache, require_cache_per_layer
from attnlib.positions import RopeScaling, rope_tables
from attnlib.sliding_window_cache import SlidingWindowCache

NORMS = ("rms_norm", "offset_rms_norm", "layer_norm")
ALWAYS_NUMBERS = ("norm_eps", "embed_scale")  # for the others, None means that there is none


@dataclass(frozen=True, kw_only=True)
class CausalLMConfig:
    """The sizes and variants of a :class:`CausalLM`. The defaults are those of Llama.

    Attributes:
        vocab_size: V.
        embed_dim: E.
        num_layers: the number of layers.
        num_heads: H, the heads of the queries.
        ff_dim: the width of the hidden layer between the projections of a feed-forward layer.
        num_kv_heads: the heads of keys and values; ``None`` means H.
        head_dim: D; ``None`` means ``E / H``.
        norm: ``"rms_norm"``, ``"offset_rms_norm"``, which multiplies by 1 plus its weight (Gemma), or ``"layer_norm"``.
        norm_eps: a small number that the norms add to the mean square or the variance.
        post_norm: whether there is also a norm after each part of a layer, before it is added (Gemma 2).
        qk_norm: whether each head's queries and keys are normalised (Qwen 3).
        activation: ``"silu"``, ``"gelu"``, ``"gelu_tanh"`` or ``"relu"``.
        gated: whether the activation is a gate, by which a second projection is multiplied (SwiGLU, GeGLU).
        qkv_bias: whether the projections to queries, keys and values add a bias.
        out_bias: whether the projection of the contexts adds a bias.
        ff_bias: whether the projections of a feed-forward layer add a bias.
        rope_base: the base of rotary positions; ``None`` for none.
        rope_scaling: how the rotary frequencies are lowered (Llama 3.1); ``None`` leaves them unchanged.
        max_positions: the number of learned positions; ``None`` for none.
        windows: for each layer, the number of positions before its own that a query may attend to, or ``None`` for all
            of them; ``None`` alone means that no layer has a window.
        scale: the factor by which dot products are multiplied; ``None`` means ``1 / sqrt(D)``.
        attn_softcap: the softcap of the attention scores; ``None`` for none.
        logit_softcap: the same for the logits.
        embed_scale: the factor by which the embeddings are multiplied.
        tied: whether the logits are computed with the embeddings' weights.
    """

    vocab_size: int
    embed_dim: int
    num_layers: int
    num_heads: int
    ff_dim: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    norm: str = "rms_norm"
    norm_eps: float = 1e-5
    post_norm: bool = False
    qk_norm: bool = False
    activation: str = "silu"
    gated: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    ff_bias: bool = False
    rope_base: float | None = 10000.0
    rope_scaling: RopeScaling | None = None
    max_positions: int | None = None
    windows: tuple[int | None, ...] | None = None
    scale: float | None = None
    attn_softcap: float | None = None
    logit_softcap: float | None = None
    embed_scale: float = 1.0
    tied: bool = True

    def __post_init__(self) -> None:
        for name in ("vocab_size", "embed_dim", "num_layers", "num_heads", "ff_dim"):
            check_int(name, getattr(self, name), 1)
        for name in ("post_norm", "qk_norm", "gated", "qkv_bias", "out_bias", "ff_bias", "tied"):
            check_bool(name, getattr(self, name))
        for name in ("norm_eps", "rope_base", "scale", "attn_softcap", "logit_softcap", "embed_scale"):
            value = getattr(self, name)
            if (value is not None or name in ALWAYS_NUMBERS) and not 0 < check_float(name, value) < math.inf:
                raise ValueError(f"{name} is {value}, but a positive number is needed")
        if self.norm not in NORMS:
            raise ValueError(f"norm is {self.norm!r}, but {' or '.join(map(repr, NORMS))} is needed")
        if self.max_positions is not None:
            check_int("max_positions", self.max_positions, 1)
        if self.windows is not None:
            _check_windows(self.windows, self.num_layers)


def _check_windows(windows: object, num_layers: int) -> None:
    """Raise unless the windows are a tuple of whole numbers or None, one for each layer."""
    if not isinstance(windows, tuple):
        example = (4, *[None] * (num_layers - 1))
        raise TypeError(
            f"windows is {windows!r}, but a tuple with an entry for each layer is needed, such as {example}"
        )
    if len(windows) != num_layers:
        raise ValueError(f"windows has {len(windows)} entries, but there are {num_layers} layers")
    for n, left in enumerate(windows):
        if left is not None:
            check_int(f"windows[{n}]", left, 0)


class FeedForward(Generic[A]):
    """Transform each position on its own: by two projections with an activation between, or three with a gate.

    Args:
        config: the sizes and variants.

    Returns:
        From the call, ``(..., E)`` for ``(..., E)``.

    Source:
        Shazeer (2020), "GLU Variants Improve Transformer".
    """

    Linear: Any
    ACTIVATIONS: Any

    def __init__(self, config: CausalLMConfig) -> None:
        super().__init__()
        E, hidden, bias = config.embed_dim, config.ff_dim, config.ff_bias
        self.activation = check_choice("activation", config.activation, self.ACTIVATIONS)
        self.gate_proj = self.Linear(E, hidden, bias=bias) if config.gated else None
        self.up_proj = self.Linear(E, hidden, bias=bias)
        self.down_proj = self.Linear(hidden, E, bias=bias)

    def forward(self, x: A) -> A:
        """Transform the vectors: see the class."""
        activation = self.ACTIVATIONS[self.activation]
        if self.gate_proj is None:
            return self.down_proj(activation(self.up_proj(x)))
        return self.down_proj(activation(self.gate_proj(x)) * self.up_proj(x))

    if TYPE_CHECKING:
        __call__ = forward


class CausalLMLayer(Generic[A]):
    r"""One layer: let each position attend up to itself, then transform each on its own; add both results to the input.

    .. math:: x' = x + \operatorname{Attn}(\operatorname{norm}_1 x), \qquad
              y = x' + \operatorname{FF}(\operatorname{norm}_2 x')

    Args:
        config: the sizes and variants.
        index: the layer's number, which decides its window.

    Returns:
        From the call, ``(B, T, E)``, or that and the weights ``(B, H, T, S)`` with ``need_weights``.

    Source:
        Touvron et al. (2023), "LLaMA: Open and Efficient Foundation Language Models", section 2.2.
    """

    Attention: Any
    FeedForward: Any
    NORMS: Any

    def __init__(self, config: CausalLMConfig, index: int) -> None:
        super().__init__()
        left = None if config.windows is None else config.windows[index]
        self.self_attn = self.Attention(
            config.embed_dim, config.num_heads, num_kv_heads=config.num_kv_heads, head_dim=config.head_dim,
            bias=config.qkv_bias, out_bias=config.out_bias, qk_norm=config.qk_norm, norm_eps=config.norm_eps,
            rope=config.rope_base, rope_scaling=config.rope_scaling, scale=config.scale, softcap=config.attn_softcap,
            window=None if left is None else (left, None),
        )  # fmt: skip
        self.ff = self.FeedForward(config)
        new_norm = self.NORMS[config.norm]
        self.norm1, self.norm2 = (new_norm(config.embed_dim, eps=config.norm_eps) for _ in range(2))
        self.post_norm1, self.post_norm2 = (
            new_norm(config.embed_dim, eps=config.norm_eps) if config.post_norm else None for _ in range(2)
        )

    def forward(
        self,
        x: Array,
        attn_mask: Array | None = None,
        *,
        cache: KVCache | None = None,
        rope_tables: RopeTables[Array] | None = None,
        need_weights: bool = False,
    ) -> Any:
        """Transform a sequence: see the class."""
        context = self.self_attn(
            self.norm1(x), None, None, attn_mask, is_causal=True, cache=cache, rope_tables=rope_tables,
            need_weights=need_weights,
        )  # fmt: skip
        context, *weights = context if need_weights else (context,)
        x = x + (context if self.post_norm1 is None else self.post_norm1(context))
        hidden = self.ff(self.norm2(x))
        x = x + (hidden if self.post_norm2 is None else self.post_norm2(hidden))
        return (x, *weights) if need_weights else x

    if TYPE_CHECKING:
        __call__ = forward


class CausalLMOptions(TypedDict, Generic[A], total=False):
    """Arguments of a language model's call that do not affect the number of results."""

    positions: A | None
    cache: Sequence[KVCache] | None  # not list[KVCache]: type checkers would refuse a list[StaticCache]
    logits_to_keep: int | None


class CausalLM(Generic[A]):
    r"""A decoder-only language model: for each position, one logit for each token that could come next.

    .. math:: x^0_t = W_{w_t}, \qquad x^{n+1} = \operatorname{Layer}_n(x^n), \qquad
              \text{logits}_t = U \operatorname{norm}(x^N_t)

    with the embeddings W and, where ``tied``, U = W. The parts are ``embed_tokens``, ``layers``, ``norm`` and, unless
    tied, ``lm_head``, as in transformers' ``LlamaForCausalLM``.

    Args:
        config: the sizes and variants.

    Returns:
        From the call with tokens ``(B, T)``, the logits ``(B, T, V)``; with ``need_weights`` also a list of the weights
        ``(B, H, T, S)`` of all layers. ``attn_mask`` broadcasts to ``(B, H, T, S)`` and restricts the causal attention
        further: :func:`attnlib.padding_mask` excludes padding. ``positions`` ``(T,)`` or ``(B, T)`` are those of the
        tokens; ``None`` means that they continue where the cache ends. ``cache`` is a list with one cache for each
        layer, which ``new_cache`` returns. ``logits_to_keep`` is the number of positions at the end whose logits
        are computed; ``None`` means all.

    Raises:
        TypeError: the tokens or positions are not integers, or ``cache`` is not a list.
        ValueError: the tokens do not have shape ``(B, T)`` or, in NumPy, a token is not in the vocabulary; the
            positions have another shape, or more learned ones are needed than there are; ``cache`` does not hold one
            cache for each layer; or ``logits_to_keep`` is below 1.

    Source:
        Radford et al. (2018), "Improving Language Understanding by Generative Pre-Training"; Touvron et al. (2023),
        "LLaMA: Open and Efficient Foundation Language Models", section 2.2.

    Example:
        >>> import numpy as np
        >>> from attnlib.numpy import CausalLM, CausalLMConfig
        >>> model = CausalLM(CausalLMConfig(vocab_size=7, embed_dim=8, num_layers=3, num_heads=2, ff_dim=12))
        >>> tokens, cache = np.array([[3, 1, 4, 1, 5]]), model.new_cache()
        >>> logits = model(tokens)
        >>> first, rest = model(tokens[:, :2], cache=cache), model(tokens[:, 2:], cache=cache)
        >>> logits.shape, bool(np.allclose(logits[:, 2:], rest, atol=1e-6))
        ((1, 5, 7), True)
    """

    Linear: Any
    Embedding: Any
    ModuleList: Any
    Layer: Any
    NORMS: Any
    parameters: Any  # a method of the modules of either library

    def __init__(self, config: CausalLMConfig) -> None:
        super().__init__()
        self.config = config
        self.head_dim = config.head_dim or config.embed_dim // config.num_heads
        self.embed_scale, self.logit_softcap = config.embed_scale, config.logit_softcap
        self.embed_tokens = self.Embedding(config.vocab_size, config.embed_dim)
        learned = config.max_positions
        self.embed_positions = None if learned is None else self.Embedding(learned, config.embed_dim)
        self.layers = self.ModuleList([self.Layer(config, n) for n in range(config.num_layers)])
        self.norm = self.NORMS[config.norm](config.embed_dim, eps=config.norm_eps)
        self.lm_head = None if config.tied else self.Linear(config.embed_dim, config.vocab_size, bias=False)

    def new_cache(self) -> list[KVCache]:
        """Return an empty cache for every layer, which keeps no more positions than the layer's window needs."""
        windows = self.config.windows or (None,) * len(self.layers)
        return [KVCache() if left is None else SlidingWindowCache(left) for left in windows]

    # fmt: off
    @overload
    def forward(self, tokens: A, attn_mask: A | None = ..., *, need_weights: Literal[False] = ...,
                **options: Unpack[CausalLMOptions[A]]) -> A: ...
    @overload
    def forward(self, tokens: A, attn_mask: A | None = ..., *, need_weights: Literal[True],
                **options: Unpack[CausalLMOptions[A]]) -> tuple[A, list[A]]: ...
    @overload
    def forward(self, tokens: A, attn_mask: A | None = ..., *, need_weights: bool,
                **options: Unpack[CausalLMOptions[A]]) -> A | tuple[A, list[A]]: ...
    # fmt: on

    def forward(
        self,
        tokens: Array,
        attn_mask: Array | None = None,
        *,
        positions: Array | None = None,
        cache: Sequence[KVCache] | None = None,
        logits_to_keep: int | None = None,
        need_weights: bool = False,
    ) -> Any:
        """Predict the next token at each position: see the class."""
        tokens = integer_indices("tokens", tokens)
        if tokens.ndim != 2:
            raise ValueError(f"tokens has shape {shape(tokens)}, but (B, T) is needed: one text is tokens[None, :]")
        caches = self._checked_caches(cache)
        kept = slice(None) if logits_to_keep is None else slice(-check_int("logits_to_keep", logits_to_keep, 1), None)
        positions = self._positions(tokens, positions, cache)
        x = self._embed(tokens, positions)  # (B, T, E)
        plainly = attn_mask is None and not need_weights
        states = self._run_fast(x, caches, positions) if plainly else None
        weights: list[Array] = []
        if states is None:
            states, weights = self._call_layers(x, attn_mask, caches, positions, need_weights)
        logits = self._logits(states[:, kept])
        return (logits, weights) if need_weights else logits

    if TYPE_CHECKING:
        __call__ = forward

    def _checked_caches(self, cache: Sequence[KVCache] | None) -> Sequence[KVCache | None]:
        """Return the cache of each layer, or None for each."""
        if cache is None:
            return [None] * len(self.layers)
        require_cache_per_layer(cache, len(self.layers))
        for n, one in enumerate(cache):
            if not isinstance(one, KVCache):
                raise TypeError(f"cache[{n}] is a {type(one).__name__}, but a KVCache is needed: use new_cache()")
        return cache

    def _run_fast(self, x: Array, caches: Sequence[KVCache | None], positions: Array) -> Array | None:
        """Return the states after all layers without calling them, where a library has a shorter way; else None."""
        return None

    def _call_layers(
        self,
        x: Array,
        attn_mask: Array | None,
        caches: Sequence[KVCache | None],
        positions: Array,
        need_weights: bool,
    ) -> tuple[Array, list[Array]]:
        """Return the states after all layers, and the weights of each if they are needed."""
        tables = self._rope_tables(positions, x)
        weights: list[Array] = []
        for layer, own in zip(self.layers, caches, strict=True):
            x = layer(x, attn_mask, cache=own, rope_tables=tables, need_weights=need_weights)
            if need_weights:
                x, w = x
                weights.append(w)
        return x, weights

    def _positions(self, tokens: Array, positions: Array | None, cache: Sequence[KVCache] | None) -> Array:
        """Return the positions of the tokens, ``(T,)`` or ``(B, T)``."""
        B, T = tokens.shape
        if positions is not None:
            positions = integer_indices("positions", positions)
            if not same_library(tokens, positions):
                raise TypeError(f"positions is {describe_type(positions)}, but tokens is {describe_type(tokens)}")
            if tuple(positions.shape) not in ((T,), (B, T)):
                raise ValueError(f"positions has shape {shape(positions)}, but {(T,)} or {(B, T)} is needed")
            return positions
        start, learned = 0 if cache is None else cache[0].length, self.config.max_positions
        if learned is not None and not is_torch(start) and start + T > learned:
            raise ValueError(
                f"the text has {start + T} tokens, but the model has only {learned} learned positions: use a shorter "
                "text, or generate fewer tokens"
            )
        xp, device = namespace_and_device(tokens)
        return xp.arange(T, device=device) + start if is_torch(start) else xp.arange(start, start + T, device=device)

    def _embed(self, tokens: Array, positions: Array) -> Array:
        """Return the vectors (B, T, E) of the tokens, with those of the positions added if there are any."""
        x = self.embed_tokens(tokens)
        if self.embed_scale != 1:
            xp, device = namespace_and_device(x)
            x = x * xp.asarray(self.embed_scale, dtype=x.dtype, device=device)
        if self.embed_positions is None:
            return x
        try:
            return x + self.embed_positions(positions)
        except IndexError:  # torch's, on the CPU, does not say which
            raise ValueError(
                f"positions go from {int(positions.min())} to {int(positions.max())}, but the model has only "
                f"{self.config.max_positions} learned positions, which are counted from 0"
            ) from None

    def _rope_tables(self, positions: Array, x: Array) -> RopeTables[Array] | None:
        """Return the rotary tables of the positions, which all layers share."""
        base = self.config.rope_base
        if base is None:
            return None
        xp, _ = namespace_and_device(x)
        positions = xp.astype(positions, at_least_float32(xp, x.dtype))
        if positions.ndim == 2:
            positions = positions[:, None, :]  # (B, 1, T), the same for all heads
        return rope_tables(positions, self.head_dim, base=base, scaling=self.config.rope_scaling)

    def _normalize(self, x: Array) -> Array:
        """Return the final norm of the states (B, T, E)."""
        return self.norm(x)

    def _logits(self, x: Array) -> Array:
        """Return the logits (B, T, V) for the states (B, T, E) of the last layer."""
        x = self._normalize(x)
        logits = x @ self.embed_tokens.weight.T if self.lm_head is None else self.lm_head(x)
        cap = self.logit_softcap
        if cap is None:
            return logits
        xp, _ = namespace_and_device(logits)
        return xp.tanh(logits / cap) * cap
