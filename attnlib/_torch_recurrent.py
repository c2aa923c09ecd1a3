"""The loop over the steps of a sequence, run by torch from C++.

Dimensions: T steps, D_h hidden width.
"""

import torch
from torch import Tensor

from attnlib._arrays import is_autocast_enabled
from attnlib._torch_tracing import is_eager_on_cpu
from attnlib.cells import rnn_cell


def encode(
    cell: object,
    x: Tensor,
    h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """Return the states (..., T, D_h) and the last real ones (..., D_h) by torch's own loop; None if it is unsuitable.

    torch runs the steps from C++, in a third of the time. Use it only on the CPU, where it has second derivatives.
    """
    given = [z for z in (x, h, w_ih, w_hh, b_ih, b_hh) if z is not None]
    if is_autocast_enabled(x) or not all(map(is_eager_on_cpu, given)) or not (x.numel() and h.numel()):
        return None
    if torch.finfo(x.dtype).bits < 32:
        return None
    biases = [w_ih.new_zeros(w_ih.shape[0]) if b is None else b for b in (b_ih, b_hh)] if len(given) > 4 else []
    steps = x.expand(*h.shape[:-1], *x.shape[-2:]).reshape(-1, *x.shape[-2:])
    loop = torch.rnn_tanh if cell is rnn_cell else torch.gru
    weights = [w_ih, w_hh, *biases]
    states, last = loop(steps, h.reshape(1, -1, h.shape[-1]), weights, bool(biases), 1, 0.0, False, False, True)
    states = states.reshape(*h.shape[:-1], x.shape[-2], h.shape[-1])
    if real is None:
        return states, last.reshape(h.shape)
    count = real.sum(dim=-2)  # (..., 1)
    at = (count - 1).clamp(min=0).unsqueeze(-2).expand(*h.shape[:-1], 1, h.shape[-1])
    last = torch.where(count > 0, states.gather(-2, at).squeeze(-2), h)
    return torch.where(real, states, torch.zeros_like(states)), last
