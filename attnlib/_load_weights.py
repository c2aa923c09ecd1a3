"""Load weights from one module into another: between NumPy and torch, and from torch's own modules."""

import re
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from attnlib._arrays import Array, is_torch, refuse_subclass
from attnlib._types import Stored

INPUT_PROJECTIONS = ("q_proj", "k_proj", "v_proj")
LAYER_SETTINGS = (
    "num_heads",
    "num_kv_heads",
    "rope",
    "rope_scaling",
    "window",
    "num_sink_tokens",
    "softcap",
    "scale",
    "add_zero_attn",
    "norm",
    "activation",
    "eps",
    "weight_offset",
    "embed_scale",
    "logit_softcap",
)


class HasWeights(Protocol):
    """A NumPy or torch module."""

    def state_dict(self) -> Mapping[str, Stored]:
        """Return the parameters by name."""

    def load_state_dict(self, state: Mapping[str, Stored], /) -> object:
        """Load the parameters by name."""


ModuleT = TypeVar("ModuleT", bound=HasWeights)


def load_weights(module: ModuleT, source: HasWeights | Mapping[str, Stored]) -> ModuleT:
    """Load the weights of ``source`` into ``module``.

    Args:
        module: one of :mod:`attnlib.numpy` or :mod:`attnlib.torch`. Its parameters are replaced (NumPy: in the
            source's dtype; torch: in the module's own dtype and on its device).
        source: such a module, of either library; or one of torch's: ``torch.nn.MultiheadAttention``,
            ``TransformerEncoderLayer``, ``TransformerEncoder``, ``TransformerDecoderLayer``, ``TransformerDecoder``,
            whose names are translated; or the ``state_dict`` of any of them. Shapes are ``(width out, width in)``.
            A module must also have the same settings as the target: heads, rotary positions, norms, activation and
            scales. A ``state_dict`` does not contain these, so they are not compared.

    Returns:
        ``module``.

    Raises:
        KeyError: ``source`` lacks a parameter, or has one that the module does not have.
        ValueError: a parameter has another shape, or ``source`` is a module that computes differently.
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
    from attnlib._numpy_modules import Module, require_same_shapes  # here, since most programs need no layers

    if not hasattr(module, "load_state_dict") or (_is_ours(source) and not _is_ours(module)):
        raise TypeError(
            f"module is a {type(module).__name__} and source is a {type(source).__name__}, but the module that "
            "receives the weights comes first: load_weights(module, source)"
        )
    state = source.state_dict() if hasattr(source, "state_dict") else source
    if not isinstance(state, Mapping):
        raise TypeError(f"source is a {type(source).__name__}, but a module or its state_dict is needed")
    if hasattr(source, "named_modules"):
        _require_same_settings(module, source)
    state = _translated(state)
    if not isinstance(module, Module):
        import torch  # which a module of torch has imported already

        require_same_shapes(type(module).__name__, module.state_dict(), state)  # torch would load what fits
        state = {name: x if is_torch(x) else torch.tensor(x) for name, x in state.items()}
    module.load_state_dict(state)
    return module


def _is_ours(module: Any) -> bool:
    """Tell whether a module's class is one of attnlib's, or inherits from one."""
    return any(kind.__module__.startswith("attnlib.") for kind in type(module).__mro__)


def _require_same_settings(module: Any, source: Any) -> None:
    """Raise ValueError if a setting that a part has in both modules differs between them."""
    parts = {path.replace("multihead_attn", "cross_attn"): part for path, part in source.named_modules()}
    for path, part in module.named_modules():
        mine, theirs = _settings(part), _settings(parts.get(path))
        for name in mine:
            if name in theirs and mine[name] != theirs[name]:
                place = f"{path}.{name}" if path else name
                raise ValueError(
                    f"{place} is {mine[name]!r} in the module, but {theirs[name]!r} in the source: make them equal, "
                    "or load source.state_dict(), which is not compared"
                )


def _settings(part: Any) -> dict[str, Any]:
    """Return the settings of a part under our names."""
    found = {name: getattr(part, name) for name in LAYER_SETTINGS if hasattr(part, name)}
    if hasattr(part, "attn_bias"):
        found["attn_bias"] = part.attn_bias is not None  # functions cannot be compared
    if "eps" in found:  # of a norm, whose weight most multiply by as it is
        found = {"weight_offset": 0.0} | found
    if "num_heads" in found:  # an option of torch's attention that ours does not have
        found = {"add_zero_attn": False} | found
    if hasattr(part, "norm_first"):
        found["norm"] = "pre" if part.norm_first else "post"
    if not isinstance(found.get("norm", ""), str):  # the last norm of a stack
        del found["norm"]
    if "activation" in found and not isinstance(found["activation"], str):
        found["activation"] = _activation(found["activation"])
    return found


def _activation(function: Any) -> str:
    """Return the name of a function or a module of torch: F.gelu and nn.GELU() are "gelu"."""
    name = getattr(function, "__name__", type(function).__name__).lower()
    return f"{name} ({function.approximate})" if getattr(function, "approximate", "none") != "none" else name


def _translated(state: Mapping[str, Array]) -> dict[str, Array]:
    """Return the state with torch's names for attention replaced by ours."""
    result: dict[str, Array] = {}
    for name, x in state.items():
        refuse_subclass(name, x)
        name = name.replace("multihead_attn.", "cross_attn.")
        if packed := re.fullmatch(r"(.*)in_proj_(weight|bias)", name):
            E = x.shape[0] // 3
            for n, part in enumerate(INPUT_PROJECTIONS):
                result[f"{packed[1]}{part}.{packed[2]}"] = x[n * E : (n + 1) * E]
        else:
            result[re.sub(r"([qkv]_proj)_weight$", r"\1.weight", name)] = x
    return result
