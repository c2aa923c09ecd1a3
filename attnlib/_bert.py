"""BERT, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of it.

Dimensions: B batch, T tokens, H heads, E width of the vectors (embed_dim).
"""

from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from attnlib._arrays import Array, check_int, integer_indices, shape
from attnlib._types import A


class BertEncoder(Generic[A]):
    r"""Turn each token into a vector, and let all of them attend to each other in the layers of a post-norm encoder.

    .. math:: x_t = \operatorname{norm}(W_{w_t} + P_t + S_{s_t}), \qquad h = \operatorname{Encoder}(x)

    with word vectors W, learned positions P, and S for the sentence, first or second, that a token belongs to.
    The parts are ``word_embeddings``, ``position_embeddings``, ``token_type_embeddings``, ``norm`` and ``encoder``.

    Args:
        vocabulary: the number of different tokens.
        embed_dim: E.
        num_heads: H, in each layer.
        ff_dim: the width between a layer's two linear layers, usually 4 E.
        num_layers: the number of layers.
        max_length: the number of positions that have a vector.
        token_types: the number of kinds of sentences.
        layer_norm_eps: a small number that the layer norms add to the variance.

    Returns:
        From the call with ids ``(B, T)``, the states ``(B, T, E)``; with ``need_weights`` the states and a list of the
        weights ``(B, H, T, T)`` of each layer. ``attn_mask`` broadcasts to ``(B, H, T, T)``; padding is masked by
        ``padding_mask(lengths, T)``. ``token_types`` ``(B, T)`` says which sentence each token belongs to; None
        means the first.

    Raises:
        TypeError: the ids are not integers, or a size is not a whole number.
        ValueError: the ids do not have shape ``(B, T)``, T is above ``max_length``, the token types have another shape,
            or, in NumPy, an id is not in the vocabulary.

    Source:
        Devlin et al. (2019), "BERT: Pre-training of Deep Bidirectional Transformers", section 3 and figure 2.
    """

    Embedding: Any
    LearnedPositions: Any
    LayerNorm: Any
    Encoder: Any

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int,
        num_heads: int,
        ff_dim: int,
        num_layers: int,
        *,
        max_length: int = 512,
        token_types: int = 2,
        layer_norm_eps: float = 1e-12,
    ) -> None:
        super().__init__()
        embed_dim = check_int("embed_dim", embed_dim, 1)
        self.word_embeddings = self.Embedding(check_int("vocabulary", vocabulary, 1), embed_dim)
        self.position_embeddings = self.LearnedPositions(max_length, embed_dim)
        self.token_type_embeddings = self.Embedding(check_int("token_types", token_types, 1), embed_dim)
        self.norm = self.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.encoder = self.Encoder(
            embed_dim, num_heads, ff_dim, num_layers, norm="post", activation="gelu", layer_norm_eps=layer_norm_eps
        )

    # fmt: off
    @overload
    def forward(self, ids: A, attn_mask: A | None = ..., *, token_types: A | None = ...,
                need_weights: Literal[False] = ...) -> A: ...
    @overload
    def forward(self, ids: A, attn_mask: A | None = ..., *, token_types: A | None = ...,
                need_weights: Literal[True]) -> tuple[A, list[A]]: ...
    @overload
    def forward(self, ids: A, attn_mask: A | None = ..., *, token_types: A | None = ...,
                need_weights: bool) -> A | tuple[A, list[A]]: ...
    # fmt: on

    def forward(
        self,
        ids: Array,
        attn_mask: Array | None = None,
        *,
        token_types: Array | None = None,
        need_weights: bool = False,
    ) -> Any:
        """Turn tokens into states: see the class."""
        ids = integer_indices("ids", ids)
        types = ids * 0 if token_types is None else integer_indices("token_types", token_types)
        if ids.ndim != 2:
            raise ValueError(f"ids has shape {shape(ids)}, but (B, T) is needed")
        if tuple(types.shape) != tuple(ids.shape):
            raise ValueError(
                f"token_types has shape {shape(types)}, but ids {shape(ids)}: one for each token is needed"
            )
        x = self.position_embeddings(self.word_embeddings(ids) + self.token_type_embeddings(types))  # (B, T, E)
        return self.encoder(self.norm(x), attn_mask=attn_mask, need_weights=need_weights)

    if TYPE_CHECKING:
        __call__ = forward
