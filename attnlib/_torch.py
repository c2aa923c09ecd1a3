"""The torch kernels: imported only when a torch tensor arrives. Arguments have been validated."""

import torch


def softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the softmax along ``axis``, computed in at least float32; 0, with gradient 0, where all is -inf."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    empty = (x == -torch.inf).all(dim=axis, keepdim=True)
    # Empty rows are replaced before the softmax, not after it: a nan that is masked out later still has a nan gradient.
    weights = torch.softmax(x.masked_fill(empty, 0.0), dim=axis, dtype=dtype)
    return weights.masked_fill(empty, 0.0).to(x.dtype)


def masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the scores with a boolean mask (True = keep) applied or a float mask added."""
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask
