"""Combine the attention weights of successive layers.

Dimensions: B batch, H heads, T positions.
"""

from collections.abc import Sequence
from functools import reduce

from attnlib._arrays import array_namespace, at_least_float32, device_of, shape
from attnlib._types import ArrayT


def attention_rollout(weights: Sequence[ArrayT]) -> ArrayT:
    r"""Multiply the weights of all layers: how much each last-layer position draws on each first-layer one.

    .. math:: R = \tilde A_L \cdots \tilde A_1, \qquad \tilde A_l = \tfrac12 \Bigl(\tfrac1H \sum_h A_{lh} + I\Bigr)

    The identity represents the residual connection, which is assumed to contribute half of every vector. The values'
    content, and what the layers do besides attending, are ignored: this is a rough estimate.

    Args:
        weights: the weights ``(..., H, T, T)`` of each layer, starting with the first, as an ``Encoder`` returns them
            with ``need_weights=True``. For a ``Decoder``, pass ``[layer.self_attn for layer in weights]``.

    Returns:
        ``(..., T, T)``, in the weights' dtype, computed in at least float32. Its rows sum to 1 if those of all weights
        do.

    Raises:
        TypeError: the arrays differ in backend or dtype, or are not floating point.
        ValueError: there are none, or they do not all have the same shape ``(..., H, T, T)``.

    Source:
        Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", section 3.

    Example:
        >>> import numpy as np
        >>> previous = np.array([[[1.0, 0.0], [1.0, 0.0]]])  # one head; both positions attend to the first
        >>> attention_rollout([previous, previous])
        array([[1.  , 0.  ],
               [0.75, 0.25]])

        All layers of a stack, applied to identical positions:

        >>> from attnlib.numpy import Encoder
        >>> encoder = Encoder(embed_dim=8, num_heads=2, ff_dim=16, num_layers=3)
        >>> out, weights = encoder(np.ones((1, 2, 8)).astype(np.float32), need_weights=True)
        >>> attention_rollout(weights)[0].round(4)
        array([[0.5625, 0.4375],
               [0.4375, 0.5625]], dtype=float32)
    """
    if len(weights) == 0:
        raise ValueError("weights is empty, but the weights of at least one layer are needed")
    if isinstance(weights[0], tuple):
        raise TypeError(
            "weights[0] is a tuple, as returned by a decoder, but an array is needed: "
            "pass [layer.self_attn for layer in weights]"
        )
    xp = array_namespace(**{f"weights[{n}]": x for n, x in enumerate(weights)})
    first = weights[0].shape
    for n, x in enumerate(weights):
        if x.ndim < 3 or x.shape[-1] != x.shape[-2] or x.shape != first:
            raise ValueError(f"weights[{n}] has shape {shape(x)}, but (..., H, T, T) is needed, the same in all layers")
    dtype = weights[0].dtype
    work = at_least_float32(xp, dtype)
    identity = xp.eye(first[-1], dtype=work, device=device_of(weights[0]))
    layers = [(xp.mean(xp.astype(x, work), axis=-3) + identity) / 2 for x in weights]
    return xp.astype(reduce(lambda so_far, layer: layer @ so_far, layers), dtype)
