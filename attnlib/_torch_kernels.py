"""The torch kernels: imported only when a torch tensor arrives. Arguments have been validated."""

from torch import Tensor

from attnlib import _fast_paths, _torch_fast_path
from attnlib import _torch_fused as fused
from attnlib import _torch_score_blocks as blocks
from attnlib import _torch_unfused as unfused
from attnlib._score_blocks import mask_within_window
from attnlib._spec import AttentionSpec
from attnlib._torch_lost_infinities import may_have_lost_infinity
from attnlib._torch_recurrent import encode
from attnlib._torch_steps import binding_window, is_tracked, masked, softmax

__all__ = [
    "binding_window",
    "encode",
    "is_tracked",
    "masked",
    "sdpa",
    "softmax",
]

_fast_paths.sdpa[Tensor] = _torch_fast_path.sdpa


def sdpa(query: Tensor, key: Tensor, value: Tensor, spec: AttentionSpec) -> unfused.Results:
    """Return the context, and the weights and log-sums if needed: by one fused operation if they are not."""
    mask, window = fused.mask_for_kernel(spec.mask, query), binding_window(spec.window, query, key)
    spec = AttentionSpec(spec.scale, mask, window, *spec[3:])
    if fused.can_fuse(key, spec):
        out = fused.attend(query, key, value, spec)
        if not may_have_lost_infinity(out, query, key, mask, spec.scale):
            return out, None, None
    if blocks.prefer_blocks(query, key, value, spec):
        return blocks.attend(query, key, value, spec)
    mask = mask_within_window(mask, query.shape[-2], key.shape[-2], window, query)
    if unfused.prefer_head_loop(query, key, value, mask, spec):
        return *unfused.attend_head_by_head(query, key, value, spec.scale), None
    return unfused.attend(query, key, value, mask, spec)
