"""Scores of inf that torch's fused kernel loses: in half precision on the CPU, it returns the context 0, not nan.

If the maximum of a vector of scores is inf, all of its exponentials come out as 0. Because their sum is 0, the kernel
takes the whole row to be masked out. So the result shows where this may have happened, and reading one number from each
of its rows takes little time compared with the kernel.

Dimensions: T queries, S keys, D width of queries and keys.
"""

import torch
from torch import Tensor

from attnlib._torch_tracing import is_eager_on_cpu

HALF = (torch.float16, torch.bfloat16)
LARGEST = torch.finfo(torch.float32).max  # the kernel computes scores in float32


def may_have_lost_infinity(
    out: Tensor, query: Tensor, key: Tensor, mask: Tensor | None = None, scale: float = 1.0
) -> bool:
    """Tell whether a context in the kernel's result is 0 and may belong to a score of inf."""
    if out.dtype not in HALF or not out.numel() or not is_eager_on_cpu(out):
        return False
    firsts = out.select(-1, 0)  # in a lost row: 0, or nan if it was multiplied by a value that is not finite
    if firsts.count_nonzero().item() == firsts.numel() and torch.equal(firsts, firsts):
        return False
    return not _scores_are_finite(query.detach().to(out.dtype), key.detach().to(out.dtype), mask, scale)


def _scores_are_finite(query: Tensor, key: Tensor, mask: Tensor | None, scale: float) -> bool:
    """Tell whether no score can be inf or nan, judging by the largest numbers that scores are made of."""
    if not query.numel() or not key.numel():
        largest = 0.0
    else:
        largest = query.abs().max().item() * key.abs().max().item() * query.shape[-1] * max(1.0, abs(scale))
    if mask is not None and mask.dtype != torch.bool:
        largest += mask.detach().max().clamp(min=0).item()  # the kernel adds it to a product that may be inf
    return largest < LARGEST
