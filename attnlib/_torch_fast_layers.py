"""The layers of a language model in torch on the CPU, with as little as possible around torch's own operations.

One more token of a text is one short vector, so calling a module, and checking what goes in and comes out, takes about
as long as computing. Layers that nobody has changed and that nothing watches need neither. If this
module declines, or torch raises an error, the layers themselves are called, which check everything.

Dimensions: B batch, T tokens, S tokens so far, H heads, H_kv heads of keys and values, D width per head, E width of the
vectors (embed_dim).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib._arrays import at_least_float32, is_autocast_enabled
from attnlib._torch_tracing import in_forward_mode, is_eager_on_cpu
from attnlib._torch_unchanged_layers import (
    GLOBAL_HOOKS,
    Kinds,
    Layer,
    Parameters,
    UnchangedLayers,
    are_unpatched,
    has_own_call,
    hooks_of,
)
from attnlib.cache import KVCache
from attnlib.positions import RopeScaling, rope_tables
from attnlib.sdpa import scaled_dot_product_attention
from attnlib.static_cache import StaticCache

BLOCK = 256  # positions whose rotary tables are computed together
PRECISE = (torch.float32, torch.float64)  # in the other dtypes, torch's norm computes with a wider one


class Rope(NamedTuple):
    """How queries and keys are rotated."""

    D: int
    base: float
    scaling: RopeScaling | None


class Tables(NamedTuple):
    """The cosines and the signed sines by which both halves of queries and keys are multiplied, (..., T, D)."""

    cos: Tensor
    sin: Tensor


class FastLayers:
    """The layers of one model, which are inspected again in each call. A copy of the model begins without them."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._found: UnchangedLayers | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[Kinds]]:
        return type(self), (self._kinds,)

    def run(
        self, stack: nn.ModuleList, x: Tensor, caches: Sequence[KVCache | None], positions: Tensor, rope: Rope | None
    ) -> Tensor | None:
        """Return the states (B, T, E) after all layers; None, with unchanged caches, if they have to be called."""
        if not _is_plain_inference(x):
            return None
        if any([isinstance(own, StaticCache) for own in caches]):  # its length is a tensor that a call changes
            return None
        layers = self._unchanged(stack)
        if layers is None or any([_is_altered(layer.attend, rope) for layer in layers]):
            return None
        before = [0 if own is None else own.length for own in caches]
        try:
            tables = None if rope is None else _tables(positions, rope, x)
            B, T, E = x.shape
            states = x.view(E) if B * T == 1 else x.view(B * T, E)  # torch multiplies a matrix by a vector faster
            for layer, own in zip(layers, caches, strict=True):
                states = _run(layer, states, B, T, own, tables)
            return states.view(x.shape)
        except Exception:  # of any kind: the layers raise it again, and say what is wrong
            for own, length in zip(caches, before, strict=True):
                if own is not None and own.length > length:
                    own.truncate(length)
            return None

    def _unchanged(self, stack: nn.ModuleList) -> list[Layer] | None:
        """Return the layers if they are as the library made them, and nothing watches them."""
        if self._found is None or not self._found.are_current(stack):
            try:
                self._found = UnchangedLayers(stack, self._kinds)
            except LookupError:
                self._found = None
            if self._found is None or not self._found.are_current(stack):
                return None
        return self._found.layers


def normalize(norm: nn.Module, x: Tensor) -> Tensor:
    """Return what a norm makes of the states (B, T, E): briefly for one vector, if nobody has changed the norm."""
    if x.shape[:-1] != (1, 1) or not _is_plain_inference(x) or type(norm) is not nn.RMSNorm:
        return norm(x)
    own = norm.__dict__
    if has_own_call(own) or any(GLOBAL_HOOKS) or any(hooks_of(own)) or not are_unpatched():
        return norm(x)
    return _normed(norm, x.view(-1)).view(x.shape)


def _is_plain_inference(x: Tensor) -> bool:
    """Tell whether nothing watches what is computed with a tensor on the CPU, or changes its dtype."""
    if torch.is_grad_enabled() or in_forward_mode():
        return False
    return is_eager_on_cpu(x) and not is_autocast_enabled(x)


def _is_altered(attend: Any, rope: Rope | None) -> bool:
    """Tell whether an attention layer leaves out heads, has dropout, or does not rotate as its model does."""
    return bool(attend.ablated or attend.dropout or (attend.rope is None) != (rope is None))


def _run(layer: Layer, x: Tensor, B: int, T: int, cache: KVCache | None, tables: Tables | None) -> Tensor:
    """Return what a layer makes of the states (B T, E), or of the state (E,) of a single token."""
    context = _context(layer, _normed(layer.norm1, x), B, T, cache, tables)
    out = _project(context.reshape(*x.shape[:-1], -1), layer.out_proj)  # (B T, E)
    x = x + (out if layer.post_norm1 is None else _normed(layer.post_norm1, out))
    out = _feed_forward(layer, _normed(layer.norm2, x))
    return x + (out if layer.post_norm2 is None else _normed(layer.post_norm2, out))


def _context(layer: Layer, x: Tensor, B: int, T: int, cache: KVCache | None, tables: Tables | None) -> Tensor:
    """Return the contexts (B, T, H, D), or (B, H, 1, D) if T is 1, for the normalised states (B T, E)."""
    attend = layer.attend
    H, H_kv, D = attend.num_heads, attend.num_kv_heads, attend.head_dim
    q = _split(_project(x, layer.q_proj), B, T, H, D)  # (B, H, T, D)
    k = _split(_project(x, layer.k_proj), B, T, H_kv, D)  # (B, H_kv, T, D)
    v = _split(_project(x, layer.v_proj), B, T, H_kv, D)
    q = q if layer.q_norm is None else _normed(layer.q_norm, q)
    k = k if layer.k_norm is None else _normed(layer.k_norm, k)
    if tables is not None and T > 1:
        q, k = _rotated(q, *tables), _rotated(k, *tables)
    elif tables is not None:  # the calls take longer than the computation
        both = _rotated(torch.cat((q, k), 1), *tables)
        q, k = both.narrow(1, 0, H), both.narrow(1, H, H_kv)
    if T == 1 and type(cache) is KVCache and _reads_everything(attend):
        k, v = _append(cache, k, v)  # (B, H_kv, S, D)
        return scaled_dot_product_attention(q, k, v, enable_gqa=H_kv < H)
    options = attend._attention_options(cache, q, k, None, True)
    if cache is not None:
        k, v = cache.append(k, v)
    context = scaled_dot_product_attention(q, k, v, **options, enable_gqa=H_kv < H)
    return context if T == 1 else context.transpose(1, 2)


def _reads_everything(attend: Any) -> bool:
    """Tell whether the last query attends to all positions, by scores that nothing changes."""
    if attend.window is not None or attend.attn_bias is not None or attend.softcap is not None:
        return False
    return bool(attend.scale == attend.head_dim**-0.5)


def _append(cache: KVCache, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Add the key and the value of one token to a cache, and return all of them: briefly, where they plainly fit."""
    start = cache.length
    keys, values = _write(cache._keys, key, start), _write(cache._values, value, start)
    if keys is None or values is None:
        return cache.append(key, value)
    cache.length = start + 1
    return keys, values


def _write(kept: Tensor | None, new: Tensor, start: int) -> Tensor | None:
    """Write the row (B, H_kv, 1, D) at the position `start`, and return all rows up to it; None if it may not fit."""
    if kept is None or kept.dtype is not new.dtype or kept.requires_grad or kept.device != new.device:
        return None
    B, H, room, D = kept.shape
    if start >= room or new.shape != (B, H, 1, D):
        return None
    kept.narrow(2, start, 1).copy_(new)
    return kept.narrow(2, 0, start + 1)


def _feed_forward(layer: Layer, x: Tensor) -> Tensor:
    activation = layer.feed_forward.ACTIVATIONS[layer.feed_forward.activation]
    hidden = _project(x, layer.up_proj)  # (B T, ff_dim)
    gate = layer.gate_proj
    hidden = activation(hidden) if gate is None else activation(_project(x, gate)) * hidden
    return _project(hidden, layer.down_proj)  # (B T, E)


def _project(x: Tensor, linear: Parameters) -> Tensor:
    weight, bias = linear["weight"], linear["bias"]
    if x.ndim == 1 and bias is None:
        return torch.mv(weight, x)  # what linear calls for one vector, after several other functions
    return F.linear(x, weight, bias)


def _split(x: Tensor, B: int, T: int, heads: int, D: int) -> Tensor:
    """Return the heads (B, heads, T, D) of vectors (B T, heads D) or, for a single token, (heads D,)."""
    return x.view(B, heads, 1, D) if T == 1 else x.view(B, T, heads, D).transpose(1, 2)


def _normed(norm: Any, x: Tensor) -> Tensor:
    if type(norm) is nn.RMSNorm:
        own = norm.__dict__
        width, weight, eps = own["normalized_shape"], own["_parameters"]["weight"], own["eps"]
        known = weight is not None and eps is not None
        if known and x.ndim == 1 and x.dtype is weight.dtype and x.dtype in PRECISE:
            return _normed_vector(x, weight, eps)
        return torch.rms_norm(x, width, weight, eps)
    y: Tensor = norm.forward(x)
    return y


def _normed_vector(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return the RMS norm of one vector (E,): torch's own function makes six passes over it and takes twice as long."""
    mean_square = torch.dot(x, x).item() / x.shape[0]
    return (x * weight).mul_((mean_square + eps) ** -0.5)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate queries or keys (B, H, T, D): the halves a, b become (a cos - b sin, b cos + a sin)."""
    wide = x if x.dtype is cos.dtype else x.to(cos.dtype)
    y = torch.addcmul(wide * cos, wide.roll(x.shape[-1] // 2, -1), sin)
    return y if y.dtype is x.dtype else y.to(x.dtype)


def _tables(positions: Tensor, rope: Rope, x: Tensor) -> Tables:
    """Return the tables for the positions (T,) or (B, T), broadcastable to (B, H, T, D)."""
    dtype = at_least_float32(torch, x.dtype)
    if positions.shape == (1,):
        block, row = divmod(int(positions), BLOCK)
        cos, sin = _tables_of_block(block, rope, dtype)
        return Tables(cos[row : row + 1], sin[row : row + 1])
    positions = positions if positions.ndim == 1 else positions[:, None, :]  # (B, 1, T): the same for all heads
    return _of_both_halves(positions.to(dtype), rope)


@lru_cache(maxsize=32)
def _tables_of_block(block: int, rope: Rope, dtype: torch.dtype) -> Tables:
    """Return the tables for BLOCK neighbouring positions, on the CPU."""
    with torch.inference_mode(False):  # the tables are used outside inference mode as well
        positions = torch.arange(block * BLOCK, (block + 1) * BLOCK, dtype=dtype, device="cpu")
        return _of_both_halves(positions, rope)


def _of_both_halves(positions: Tensor, rope: Rope) -> Tables:
    cos, sin = rope_tables(positions, rope.D, base=rope.base, scaling=rope.scaling)  # (..., T, D/2)
    return Tables(torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1))
