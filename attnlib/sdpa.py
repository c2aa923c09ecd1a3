"""Scaled dot-product attention with all options that models need, forward and backward.

Dimensions: B batch, H heads, T queries, S keys and values, D width of queries and keys, D_v width of values.
"""

from typing import Any, Literal, TypedDict, Unpack, overload

from attnlib import _fast_paths, _nested
from attnlib._arrays import Array, array_namespace, check_bool, check_probability, is_torch, require_mask, shape
from attnlib._attention_arguments import Window, check_inputs, check_scale, check_softcap, window_spec
from attnlib._backward import backward
from attnlib._dispatch import kernels_for
from attnlib._nested import is_nested, refuse_nested, require_equal_lengths, require_jagged, require_padded
from attnlib._spec import AttentionSpec
from attnlib._types import ArrayT


class _Options(TypedDict, total=False):
    """The arguments that do not affect the number of results."""

    scale: float | None
    enable_gqa: bool
    q_offset: int
    window: Window | None
    softcap: float | None


# fmt: off
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: Literal[False] = ..., return_lse: Literal[False] = ..., **options: Unpack[_Options],
) -> ArrayT: ...
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: Literal[True], return_lse: Literal[False] = ..., **options: Unpack[_Options],
) -> tuple[ArrayT, ArrayT]: ...
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: Literal[False] = ..., return_lse: Literal[True], **options: Unpack[_Options],
) -> tuple[ArrayT, ArrayT]: ...
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: Literal[True], return_lse: Literal[True], **options: Unpack[_Options],
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: bool, return_lse: Literal[False] = ..., **options: Unpack[_Options],
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: Literal[False] = ..., return_lse: bool, **options: Unpack[_Options],
) -> ArrayT | tuple[ArrayT, ArrayT]: ...
@overload
def scaled_dot_product_attention(
    query: ArrayT, key: ArrayT, value: ArrayT, attn_mask: ArrayT | None = ...,
    dropout_p: float = ..., is_causal: bool = ..., *,
    return_weights: bool, return_lse: bool, **options: Unpack[_Options],
) -> ArrayT | tuple[ArrayT, ArrayT] | tuple[ArrayT, ArrayT, ArrayT]: ...
# fmt: on
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    q_offset: int = 0,
    window: Window | None = None,
    softcap: float | None = None,
    return_weights: bool = False,
    return_lse: bool = False,
) -> Any:
    r"""Average the values, weighted by the softmax of the scaled dot products of queries and keys.

    .. math:: O = \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{D}} + M\right) V

    The arguments are those of ``torch.nn.functional.scaled_dot_product_attention``, with the same meaning; those after
    ``enable_gqa`` are additions. Everything that limits which keys a query may attend to is combined with *and*: a key
    counts if the mask, the causal rule and the window all allow it.

    nan and inf: a query's context is nan if the query, or a key or value that it may attend to, contains nan, or if one
    of its scores is inf. (In code that torch.compile compiles or torch.jit.trace or torch.func traces, torch's kernel
    for the CPU may return the context 0 instead: for a score of inf in half precision, and with fewer than 16 keys for
    a query that contains nan.) A score of -inf next to finite ones gives a weight of 0. Keys and values that are masked
    out should be finite, and no bias should be inf where the causal rule or the window masks a key out: otherwise the
    context may be nan, because 0 times nan and inf minus inf are nan.

    torch's fused kernels have no second derivatives. If you need them, pass ``return_weights=True`` and ignore the
    weights, or call this function under ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``. In forward mode
    (``torch.func.jvp``, ``jacfwd`` and ``hessian``), these kernels have no derivatives at all, so they are not used,
    and all scores are held at once.

    With NumPy and torch, the T x S scores are not all held at once unless weights are returned. In torch, there are
    exceptions: torch's kernel for the CPU holds them with dropout, if D differs from D_v, or if the mask requires a
    gradient; and with a softcap or log-sums, they are held where autograd differentiates through dropout or the mask,
    and under torch.func or a compiler.

    Libraries align queries and keys differently when T differs from S: torch, JAX and Keras let query i see the keys
    j <= i (``q_offset=0``); flash-attn aligns the ends (``q_offset=S - T``). With a cache of P earlier keys, pass
    ``q_offset=P``.

    Args:
        query: ``(..., H, T, D)``; any number of leading dimensions, including none.
        key: ``(..., H, S, D)``. The leading dimensions of query, key and value broadcast.
        value: ``(..., H, S, D_v)``.
        attn_mask: broadcasts to ``(..., H, T, S)``. Boolean: True where the query **may attend** to the key.
            Floating point: added to the scores.
        dropout_p: the probability with which each weight is set to 0, the others being divided by ``1 - dropout_p``.
            As in torch it is applied whenever it is not 0. NumPy draws from its global generator (``np.random.seed``).
        is_causal: query i may attend to key j only if ``j <= i + q_offset``.
        scale: the factor by which dot products are multiplied; ``None`` means ``1 / sqrt(D)``.
        enable_gqa: grouped queries: key and value may have fewer heads than the query, each serving the same number
            of consecutive query heads.
        q_offset: the position of the first query, counted from the first key.
        window: ``(left, right)``: query i may attend to key j only if
            ``i + q_offset - left <= j <= i + q_offset + right``; ``None`` leaves a side open.
        softcap: scores s become ``softcap * tanh(s / softcap)`` before the mask; ``None`` or 0 leaves them unchanged.
        return_weights: return the weights too: as many numbers as there are scores.
        return_lse: return the logarithm of the sum of the exponentials of each row's scores too.

    Returns:
        The context ``(..., H, T, D_v)``; with ``return_weights`` also the weights ``(..., H, T, S)`` (after dropout),
        with ``return_lse`` also the log-sums ``(..., H, T)``: ``out``, ``(out, weights)``, ``(out, lse)`` or
        ``(out, weights, lse)``, all of the inputs' dtype and computed in at least float32. A query that may attend to
        nothing has context 0, weights 0 and log-sum -inf, with finite gradients.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, the mask is neither boolean nor floating
            point, an offset or a window is not an integer, another argument is not a number, or nested tensors of
            torch come with a mask, a window, a softcap, or a request for weights or log-sums.
        ValueError: an array has fewer than 2 dimensions, widths D or lengths S differ, leading dimensions do not
            broadcast, the mask does not broadcast to the scores, the number of query heads is not a multiple of the
            number of key heads, or a number is out of its range.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", eq. 1. Grouped queries: Ainslie et al. (2023), "GQA".
        Windows: Beltagy, Peters and Cohan (2020), "Longformer". Softcap: Gemma Team (2024), "Gemma 2", section 2.
        Tiles (NumPy): Rabe and Staats (2021), "Self-attention Does Not Need O(n^2) Memory"; Dao et al. (2022),
        "FlashAttention".

    Example:
        >>> import numpy as np
        >>> query, key = np.array([[2.0]]), np.array([[np.log(3.0)], [0.0]])
        >>> scaled_dot_product_attention(query, key, np.array([[8.0], [0.0]]), scale=0.5)
        array([[6.]])
        >>> _, weights = scaled_dot_product_attention(
        ...     np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 1)), is_causal=True, return_weights=True
        ... )
        >>> weights.round(2)
        array([[1.  , 0.  , 0.  ],
               [0.5 , 0.5 , 0.  ],
               [0.33, 0.33, 0.33]])
    """
    if type(is_causal) is not bool:
        is_causal = check_bool("is_causal", is_causal)
    if type(enable_gqa) is not bool:
        enable_gqa = check_bool("enable_gqa", enable_gqa)
    fast = _fast_paths.sdpa.get(type(query))  # with few scores, the checks would take longer than the computation
    if fast is None and is_torch(query):
        kernels_for(query)  # imports torch's fast path, so that the first call rounds as all others do
        fast = _fast_paths.sdpa.get(type(query))
    if (
        fast
        and window is None
        and softcap is None
        and not return_lse
        and dropout_p == 0.0
        and q_offset == 0
        and type(q_offset) is int
    ):
        found = fast(query, key, value, attn_mask, scale, is_causal, enable_gqa, return_weights)
        if found is not None:
            return found
    if is_nested(query) or is_nested(key) or is_nested(value):
        return _attend_nested(
            query, key, value, dropout_p, is_causal, scale, enable_gqa, attn_mask=attn_mask is not None,
            window=window is not None, softcap=bool(softcap), return_weights=return_weights, return_lse=return_lse,
            q_offset=is_causal and q_offset != 0,
        )  # fmt: skip
    scores_shape = check_inputs(query, key, value, enable_gqa)
    if attn_mask is not None:
        require_mask("attn_mask", attn_mask, scores_shape, query)
    spec = AttentionSpec(
        check_scale(scale, query.shape[-1]), attn_mask, window_spec(is_causal, window, q_offset),
        check_softcap(softcap), check_probability("dropout_p", dropout_p), return_weights, return_lse,
    )  # fmt: skip
    out, weights, lse = kernels_for(query).sdpa(query, key, value, spec)
    if not (return_weights or return_lse):
        return out
    return (out, *([weights] if return_weights else []), *([lse] if return_lse else []))


def scaled_dot_product_attention_backward(
    grad: ArrayT,
    query: ArrayT,
    key: ArrayT,
    value: ArrayT,
    attn_mask: ArrayT | None = None,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    q_offset: int = 0,
    window: Window | None = None,
    softcap: float | None = None,
) -> tuple[ArrayT, ArrayT, ArrayT]:
    r"""Send the gradient of a loss back through :func:`scaled_dot_product_attention`, by hand.

    With weights :math:`P = \operatorname{softmax}(S)`, scores :math:`S = c\, Q K^\top + M` and scale c, the rules of
    the matrix product give the first two lines, the softmax the third (its Jacobian, for one row p of P, is
    :math:`\operatorname{diag}(p) - p p^\top`), and the matrix product again the last two. (FlashAttention writes the
    sum in the third line as :math:`dO_i \cdot O_i`, which does not need a whole row of P.)

    .. math::
        dV &= P^\top dO \\
        dP &= dO\, V^\top \\
        dS_{ij} &= P_{ij} \Bigl(dP_{ij} - \sum_k P_{ik}\, dP_{ik}\Bigr) \\
        dQ &= c\, dS\, K \\
        dK &= c\, dS^\top Q

    With a softcap r, :math:`S = r \tanh(c\, Q K^\top / r) + M`, and the last two lines use
    :math:`dS \odot (1 - \tanh^2(c\, Q K^\top / r))` in place of dS.

    With NumPy and torch, the weights are recomputed for one block of queries at a time, so that the T x S scores are
    never all held at once (except under autograd, torch.func or a compiler that tracks this function itself).

    Args:
        grad: dO, the gradient with respect to the context, ``(..., H, T, D_v)``.
        query: ``(..., H, T, D)``; any number of leading dimensions, including none.
        key: ``(..., H, S, D)``.
        value: ``(..., H, S, D_v)``.
        attn_mask: as in the forward pass; broadcasts to ``(..., H, T, S)``.
        is_causal: as in the forward pass.
        scale: as in the forward pass; ``None`` means ``1 / sqrt(D)``.
        enable_gqa: as in the forward pass: key and value may have fewer heads than the query.
        q_offset: as in the forward pass.
        window: as in the forward pass.
        softcap: as in the forward pass.

    Returns:
        ``(grad_query, grad_key, grad_value)``, each with the shape of its input, ``(..., H, T, D)``, ``(..., H, S, D)``
        and ``(..., H, S, D_v)``: if an input was broadcast, or a key head served several query heads, its gradient is
        summed. They have the inputs' dtype, and are computed in at least float32. A query that may attend to nothing
        has gradient 0 and contributes nothing to the others.

    Raises:
        TypeError: as for the forward pass; ``grad`` counts among the inputs.
        ValueError: as for the forward pass, or ``grad`` does not have the shape of the context.

    Source:
        Dao et al. (2022), "FlashAttention", appendix B.2. Softcap: Gemma Team (2024), "Gemma 2", section 2.

    Example:
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> query, key, value = np.array([[0.0]]), np.array([[1.0], [3.0]]), np.array([[2.0], [6.0]])
        >>> grad_query, grad_key, grad_value = scaled_dot_product_attention_backward(one, query, key, value)
        >>> grad_query, grad_value.T  # half of both: (1 - 2) * (2 - 4) / 2 + (3 - 2) * (6 - 4) / 2 = 2
        (array([[2.]]), array([[0.5, 0.5]]))
    """
    require_padded("scaled_dot_product_attention_backward", grad=grad, query=query, key=key, value=value)
    scores_shape: tuple[int, ...] = check_inputs(query, key, value, check_bool("enable_gqa", enable_gqa))
    if attn_mask is not None:
        require_mask("attn_mask", attn_mask, scores_shape, query)
    array_namespace(query=query, grad=grad)
    context_shape = (*scores_shape[:-1], value.shape[-1])
    if tuple(grad.shape) != context_shape:
        raise ValueError(f"grad has shape {shape(grad)}, but the context has {context_shape}: one number for each")
    reach = window_spec(is_causal, window, q_offset)
    spec = AttentionSpec(check_scale(scale, query.shape[-1]), attn_mask, reach, check_softcap(softcap))
    return backward(grad, query, key, value, spec, kernels_for(query))


def _attend_nested(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    **unsupported: bool,
) -> Array:
    """Return the context of nested tensors, after checking that no unsupported option is used."""
    refuse_nested("query", query, **unsupported)
    require_jagged(query=query, key=key, value=value)
    require_equal_lengths(key, value)
    check_inputs(query, key, value, enable_gqa)
    dropout_p, factor = check_probability("dropout_p", dropout_p), check_scale(scale, query.shape[-1])
    return _nested.sdpa(query, key, value, dropout_p, is_causal, factor, enable_gqa)
