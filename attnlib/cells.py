"""Recurrent cells, which compute the next state from one input and the last state.

A cell is a function ``(x, h, *weights) -> h'``. Weights have torch's layout, a row for each output (``x @ w.T``).
The cells are written once, with the array API, for all libraries.

Dimensions: D_in width of an input, D_h width of a state.
"""

from collections.abc import Callable
from math import prod
from types import ModuleType

from attnlib._arrays import Array, array_namespace, broadcast_batch_shape, require_shapes
from attnlib._types import ArrayT


def rnn_cell(
    x: ArrayT, h: ArrayT, w_ih: ArrayT, w_hh: ArrayT, b_ih: ArrayT | None = None, b_hh: ArrayT | None = None
) -> ArrayT:
    r"""Elman's cell: the next state is a squashed sum of projections of the input and of the last state.

    .. math:: h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

    Args:
        x: the input, ``(..., D_in)``.
        h: the last state, ``(..., D_h)``. Leading dimensions broadcast.
        w_ih: ``(D_h, D_in)``.
        w_hh: ``(D_h, D_h)``.
        b_ih: ``(D_h,)``; ``None`` means 0.
        b_hh: ``(D_h,)``; ``None`` means 0.

    Returns:
        The next state ``(..., D_h)``, each number between -1 and 1.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: ``x`` or ``h`` has no dimension, a weight's shape does not fit, or leading dimensions do not
            broadcast.

    Source:
        Elman (1990), "Finding Structure in Time"; ``torch.nn.RNNCell`` has the same layout.

    Example:
        >>> import numpy as np
        >>> one = np.ones((1, 1))
        >>> rnn_cell(np.array([2.0]), np.array([2.0]), one, -one)  # tanh(2 - 2)
        array([0.])
    """
    xp = _check(1, x, h, w_ih, w_hh, b_ih, b_hh)
    return _rnn_step(_affine(x, w_ih, b_ih), _affine(h, w_hh, b_hh), h, xp)


def gru_cell(
    x: ArrayT, h: ArrayT, w_ih: ArrayT, w_hh: ArrayT, b_ih: ArrayT | None = None, b_hh: ArrayT | None = None
) -> ArrayT:
    r"""Gated recurrent unit: gates decide how much of the last state to read, and how much of it to keep.

    .. math::
        r &= \sigma(W_{ir} x + b_{ir} + W_{hr} h + b_{hr}) \\
        z &= \sigma(W_{iz} x + b_{iz} + W_{hz} h + b_{hz}) \\
        n &= \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn})) \\
        h' &= (1 - z) \odot n + z \odot h

    ``w_ih`` stacks the three matrices of x in the order r (reset), z (update), n (new), and ``w_hh`` those of h. In
    ONNX the order is z, r, n. Cho et al. apply the reset gate before the matrix product,
    :math:`W_{hn} (r \odot h)`; this cell, like torch and cuDNN, applies it after (ONNX: ``linear_before_reset=1``).

    Args:
        x: the input, ``(..., D_in)``.
        h: the last state, ``(..., D_h)``. Leading dimensions broadcast.
        w_ih: ``(3 * D_h, D_in)``.
        w_hh: ``(3 * D_h, D_h)``.
        b_ih: ``(3 * D_h,)``; ``None`` means 0.
        b_hh: ``(3 * D_h,)``; ``None`` means 0.

    Returns:
        The next state ``(..., D_h)``.

    Raises:
        TypeError: backends or dtypes differ, or are not floating point.
        ValueError: ``x`` or ``h`` has no dimension, a weight's shape does not fit, or leading dimensions do not
            broadcast.

    Source:
        Cho et al. (2014), "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine
        Translation", eq. 5-8, with the reset as in ``torch.nn.GRUCell``.

    Example:
        >>> import numpy as np
        >>> zero = np.zeros((3, 1))
        >>> gru_cell(np.array([7.0]), np.array([2.0]), zero, zero)  # z = 1/2 and n = 0: half of the state is kept
        array([1.])
    """
    xp = _check(3, x, h, w_ih, w_hh, b_ih, b_hh)
    return _gru_step(_affine(x, w_ih, b_ih), _affine(h, w_hh, b_hh), h, xp)


def checked_weights(
    cell: Callable[..., Array], x: Array, h: Array, weights: tuple[Array | None, ...]
) -> tuple[Array, Array, Array | None, Array | None] | None:
    """Return w_ih, w_hh, b_ih and b_hh after checking them against the steps ``(..., T, D_in)`` and the state.

    Return None for a cell from outside this module, or for a wrong number of weights, which the cell will reject.
    """
    if cell not in (rnn_cell, gru_cell) or not 2 <= len(weights) <= 4:
        return None
    w_ih, w_hh, b_ih, b_hh = (*weights, None, None)[:4]
    _check(1 if cell is rnn_cell else 3, x[..., 0, :], h, w_ih, w_hh, b_ih, b_hh)
    return w_ih, w_hh, b_ih, b_hh


def project_inputs(
    cell: Callable[..., Array], x: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None
) -> tuple[Array, Callable[[Array, Array], Array]]:
    """Return W_ih x + b_ih for all steps ``(..., T, gates * D_h)``, and a function that takes one of them and h to h'.

    Inputs do not depend on states, so a single product covers all steps.
    """
    xp, step = array_namespace(x=x), _rnn_step if cell is rnn_cell else _gru_step
    rows = xp.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
    from_x = xp.reshape(_affine(rows, w_ih, b_ih), (*x.shape[:-1], w_ih.shape[0]))
    return from_x, lambda from_x_t, h: step(from_x_t, _affine(h, w_hh, b_hh), h, xp)


def _rnn_step(from_x: Array, from_h: Array, h: Array, xp: ModuleType) -> Array:
    return xp.tanh(from_x + from_h)


def _gru_step(from_x: Array, from_h: Array, h: Array, xp: ModuleType) -> Array:
    D_h = h.shape[-1]
    gates = _sigmoid(from_x[..., : 2 * D_h] + from_h[..., : 2 * D_h], xp)
    r, z = gates[..., :D_h], gates[..., D_h:]
    n = xp.tanh(from_x[..., 2 * D_h :] + r * from_h[..., 2 * D_h :])
    return (1 - z) * n + z * h


def _affine(x: Array, weight: Array, bias: Array | None) -> Array:
    product = x @ weight.T
    return product if bias is None else product + bias


def _check(
    gates: int, x: Array, h: Array, w_ih: Array | None, w_hh: Array | None, b_ih: Array | None, b_hh: Array | None
) -> ModuleType:
    """Return the array namespace after checking all shapes."""
    given = {"w_ih": w_ih, "w_hh": w_hh, "b_ih": b_ih, "b_hh": b_hh}
    given = {name: w for name, w in given.items() if w is not None or name.startswith("w")}
    xp = array_namespace(x=x, h=h, **given)
    broadcast_batch_shape(x=(x, 1), h=(h, 1))
    D_in, D_h = x.shape[-1], h.shape[-1]
    rows = gates * D_h
    needed = {"w_ih": (rows, D_in), "w_hh": (rows, D_h), "b_ih": (rows,), "b_hh": (rows,)}
    require_shapes(given, needed, x=x, h=h)
    return xp


def _sigmoid(x: Array, xp: ModuleType) -> Array:
    return (1 + xp.tanh(x / 2)) / 2  # equal to 1 / (1 + exp(-x)), and never overflows
