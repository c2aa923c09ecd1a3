"""The steps of attention in torch: masks, and a softmax that is 0, not nan, in rows without any key."""

import torch
from torch import Tensor

from attnlib._arrays import at_least_float32
from attnlib._spec import WindowSpec
from attnlib._torch_tracing import holds, is_eager_on_cpu, may_be_recorded
from attnlib._torch_tracing import is_tracked as is_tracked  # for the backward pass

FEW_WEIGHTS = 2**11  # from here on, it is faster to check one weight of each row than all weights


def softmax(x: Tensor, axis: int) -> Tensor:
    """Return the softmax along ``axis``, computed in at least float32; 0, with gradient 0, if all scores are -inf."""
    dtype = at_least_float32(torch, x.dtype)
    if is_eager_on_cpu(x) and x.numel():
        weights = torch.softmax(x, axis) if dtype == x.dtype else torch.softmax(x, axis, dtype=dtype)
        # A row of -inf gives a row of nan, which does not equal itself. It takes as long to select one weight of each
        # row as to compare thousands of weights.
        checked = weights if weights.numel() <= FEW_WEIGHTS else weights.select(axis, 0)
        if torch.equal(checked, checked):
            return weights if dtype == x.dtype else weights.to(x.dtype)
    empty = (x == -torch.inf).all(dim=axis, keepdim=True)
    # Empty rows are replaced before the softmax, not after it: a nan that is masked out later still has a nan gradient.
    weights = torch.softmax(x.masked_fill(empty, 0.0), dim=axis, dtype=dtype)
    return weights.masked_fill(empty, 0.0).to(x.dtype)


def softmax_inplace(scores: Tensor) -> Tensor:
    """Return the softmax of each row, in the memory of the scores where possible: half the time for many scores."""
    if may_be_recorded(scores) or torch.finfo(scores.dtype).bits < 32:
        return torch.softmax(scores, dim=-1)
    return torch.softmax(scores, dim=-1, out=scores)


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the scores with a boolean mask (True = keep) applied or a float mask added."""
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask.to(scores.dtype)


def masked_scores(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Apply the mask, except to queries that may attend to nothing; also return which queries those are.

    They go through the softmax without their mask: a nan that is masked out later still has a nan gradient.
    """
    if mask is None:
        return scores, None
    if mask.dtype == torch.bool:
        empty = (~mask).all(dim=-1, keepdim=True)
        return scores.masked_fill(~(mask | empty), -torch.inf), empty
    empty = (mask == -torch.inf).all(dim=-1, keepdim=True)
    return scores + mask.masked_fill(empty, 0.0), empty


def binding_window(window: WindowSpec, query: Tensor, key: Tensor) -> WindowSpec:
    """Return the window without the limits that are known to exclude no key."""
    return window.binding(query.shape[-2], key.shape[-2], holds)
