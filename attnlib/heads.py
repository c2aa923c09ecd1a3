"""Heads: a wide vector is several narrow vectors side by side, and each head attends with one of them.

Dimensions: H heads, T positions or queries, S keys, D width per head, D_v width per head of the values, E width of the
vectors that come in.
"""

from attnlib._arrays import (
    Array,
    array_namespace,
    check_int,
    require_sequence,
    require_shapes,
    reshape,
    shape,
    swapaxes,
)
from attnlib._types import ArrayT
from attnlib.sdpa import scaled_dot_product_attention


def split_heads(x: ArrayT, num_heads: int) -> ArrayT:
    r"""Cut every vector into ``num_heads`` parts of equal width and give each part a head of its own.

    .. math:: y_{h,t,d} = x_{t,\,hD + d}

    Args:
        x: ``(..., T, H*D)``.
        num_heads: H, how many heads.

    Returns:
        ``(..., H, T, D)``: head h has components ``h*D`` to ``(h+1)*D - 1`` of each vector. It may be a view of ``x``.

    Raises:
        TypeError: ``x`` is not an array or not floating point, or ``num_heads`` is not a whole number.
        ValueError: ``x`` has fewer than 2 dimensions, ``num_heads`` is below 1, or does not divide the width.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.2.

    Example:
        >>> import numpy as np
        >>> split_heads(np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), 2)
        array([[[1., 2.],
                [5., 6.]],
        <BLANKLINE>
               [[3., 4.],
                [7., 8.]]])
    """
    array_namespace(x=x)
    require_sequence(x=x)
    num_heads = check_int("num_heads", num_heads, 1)
    if x.shape[-1] % num_heads:
        raise ValueError(f"x has shape {shape(x)}: num_heads={num_heads} does not divide its width {x.shape[-1]}")
    return split(x, num_heads)


def merge_heads(x: ArrayT) -> ArrayT:
    r"""Put the heads' vectors side by side again: the inverse of :func:`split_heads`.

    .. math:: y_{t,\,hD + d} = x_{h,t,d}

    Args:
        x: ``(..., H, T, D)``.

    Returns:
        ``(..., T, H*D)``. It may be a view of ``x``.

    Raises:
        TypeError: ``x`` is not an array or not floating point.
        ValueError: ``x`` has fewer than 3 dimensions.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.2, "Concat".

    Example:
        >>> import numpy as np
        >>> merge_heads(np.array([[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]))
        array([[1., 2., 3., 4.],
               [5., 6., 7., 8.]])
    """
    array_namespace(x=x)
    if x.ndim < 3:
        raise ValueError(f"x has shape {shape(x)}, but (..., H, T, D) is needed: at least 3 dimensions")
    return merge(x)


def split(x: Array, num_heads: int) -> Array:
    """Do the same as :func:`split_heads`, for an array that has been checked."""
    *leading, length, width = x.shape
    return swapaxes(reshape(x, (*leading, length, num_heads, width // num_heads)), -3, -2)


def merge(x: Array) -> Array:
    """Do the same as :func:`merge_heads`, for an array that has been checked."""
    *leading, heads, length, width = x.shape
    return reshape(swapaxes(x, -3, -2), (*leading, length, heads * width))


def multi_head_attention(
    query: ArrayT,
    key: ArrayT,
    value: ArrayT,
    w_q: ArrayT,
    w_k: ArrayT,
    w_v: ArrayT,
    w_o: ArrayT,
    num_heads: int,
    *,
    attn_mask: ArrayT | None = None,
    is_causal: bool = False,
) -> ArrayT:
    r"""Let several heads attend, each in a projection of its own, and join their contexts.

    .. math:: \mathrm{head}_h = \operatorname{Attention}(Q W^Q_h,\; K W^K_h,\; V W^V_h), \qquad
              O = [\mathrm{head}_1; \dots; \mathrm{head}_H]\, W^O

    Each of ``w_q``, ``w_k`` and ``w_v`` holds the projections of all heads side by side: head h has the columns
    ``h*D`` to ``(h+1)*D - 1`` of ``w_q``. (torch's ``nn.Linear`` keeps the transposes: ``w_q`` is its ``weight.T``.)

    Args:
        query: ``(..., T, E)``.
        key: ``(..., S, E_k)``.
        value: ``(..., S, E_v)``.
        w_q: ``(E, H*D)``.
        w_k: ``(E_k, H*D)``.
        w_v: ``(E_v, H*D_v)``.
        w_o: ``(H*D_v, E_out)``.
        num_heads: H.
        attn_mask: broadcasts to the scores ``(..., H, T, S)``; as for :func:`attnlib.scaled_dot_product_attention`.
        is_causal: query i may attend to key j only if ``j <= i``.

    Returns:
        ``(..., T, E_out)``, of the inputs' dtype.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, or ``num_heads`` is not a whole number.
        ValueError: an array has fewer than 2 dimensions, a matrix does not fit, ``num_heads`` does not divide the
            width of a projection, or the mask does not broadcast to the scores.

    Source:
        Vaswani et al. (2017), "Attention Is All You Need", section 3.2.2.

    Example:
        >>> import numpy as np
        >>> x, eye = np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2)
        >>> multi_head_attention(x, x, x, 0 * eye, eye, eye, eye, num_heads=2)  # no scores: both heads average
        array([[2., 3.],
               [2., 3.]])
    """
    array_namespace(query=query, key=key, value=value, w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o)
    require_sequence(query=query, key=key, value=value)
    width, width_v = (w.shape[1] if w.ndim == 2 else name for w, name in ((w_q, "H*D"), (w_v, "H*D_v")))
    needed = {
        "w_q": (query.shape[-1], "H*D"),
        "w_k": (key.shape[-1], width),
        "w_v": (value.shape[-1], "H*D_v"),
        "w_o": (width_v, "E_out"),
    }
    weights = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
    require_shapes(weights, needed, query=query, key=key, value=value)
    q, k, v = (split_heads(x @ w, num_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v)))
    return merge_heads(scaled_dot_product_attention(q, k, v, attn_mask, is_causal=is_causal)) @ w_o
