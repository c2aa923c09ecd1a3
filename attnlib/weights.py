"""Weights from one module into another: between NumPy and torch, and from torch's own modules."""

import re
from collections.abc import Mapping
from typing import Any

from attnlib._arrays import Array, is_torch
from attnlib._module import Module, require_same_shapes

PARTS = ("q_proj", "k_proj", "v_proj")


def load_weights(module: Any, source: Any) -> Any:
    """Load the weights of ``source`` into ``module``.

    Args:
        module: one of :mod:`attnlib.numpy` or :mod:`attnlib.torch`. Its parameters are replaced (NumPy: in the
            source's dtype; torch: in the module's own dtype and on its device).
        source: such a module, of either library; or one of torch's: ``torch.nn.MultiheadAttention``,
            ``TransformerEncoderLayer``, ``TransformerEncoder``, ``TransformerDecoderLayer``, ``TransformerDecoder``,
            whose names are translated; or the ``state_dict`` of any of them. Shapes are ``(width out, width in)``.

    Returns:
        ``module``.

    Raises:
        KeyError: ``source`` lacks a parameter, or has one that the module has not.
        ValueError: a parameter has another shape.
        TypeError: ``source`` is neither a module nor a mapping, or its arrays are not of one floating point dtype.

    Source:
        The names are those of ``torch.nn.MultiheadAttention``, whose ``in_proj_weight`` holds three matrices.

    Example:
        >>> import attnlib.numpy, attnlib.torch
        >>> trained = attnlib.torch.MultiHeadAttention(8, 2)
        >>> module = load_weights(attnlib.numpy.MultiHeadAttention(8, 2), trained)
        >>> bool((module.q_proj.weight == trained.q_proj.weight.detach().numpy()).all())
        True
    """
    state = source.state_dict() if hasattr(source, "state_dict") else source
    if not isinstance(state, Mapping):
        raise TypeError(f"source is a {type(source).__name__}, but a module or its state_dict is needed")
    state = _translated(state)
    if not isinstance(module, Module):
        import torch  # which a module of torch has imported already

        require_same_shapes(type(module).__name__, module.state_dict(), state)  # torch would load what fits
        state = {name: x if is_torch(x) else torch.tensor(x) for name, x in state.items()}
    module.load_state_dict(state)
    return module


def _translated(state: Mapping[str, Array]) -> dict[str, Array]:
    """Return the state with torch's names for attention replaced by ours."""
    result: dict[str, Array] = {}
    for name, x in state.items():
        name = name.replace("multihead_attn.", "cross_attn.")
        if packed := re.fullmatch(r"(.*)in_proj_(weight|bias)", name):
            E = x.shape[0] // 3
            for n, part in enumerate(PARTS):
                result[f"{packed[1]}{part}.{packed[2]}"] = x[n * E : (n + 1) * E]
        else:
            result[re.sub(r"([qkv]_proj)_weight$", r"\1.weight", name)] = x
    return result
