"""Recurrent cells, and the encoder that runs one along a sequence.

A cell is a function ``(x, h, *weights) -> h'``: one input and the last state in, the next state out. Weights have
torch's layout, a row for each output (``x @ w.T``). They are written once, against the array API, for NumPy and torch.

Dimensions: B batch, T steps, D_in width of an input, D_h width of a state.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlib._arrays import Array, backend, is_torch, leading, require_shapes, shape

Cell = Callable[..., Array]


def rnn_cell(
    x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    r"""Elman's cell: the next state is a squashed sum of what comes in and what was.

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
    from_x, from_h = _affine(1, x, h, w_ih, w_hh, b_ih, b_hh)
    return backend(x=x).tanh(from_x + from_h)


def gru_cell(
    x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    r"""Gated recurrent unit: gates decide how much of the last state to read, and how much of it to keep.

    .. math::
        r &= \sigma(W_{ir} x + b_{ir} + W_{hr} h + b_{hr}) \\
        z &= \sigma(W_{iz} x + b_{iz} + W_{hz} h + b_{hz}) \\
        n &= \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn})) \\
        h' &= (1 - z) \odot n + z \odot h

    The three matrices of x stand in ``w_ih`` one below the other in the order r (reset), z (update), n (new), those
    of h in ``w_hh``. ONNX has the order z, r, n. Cho et al. apply the reset gate before the matrix product,
    :math:`W_{hn} (r \odot h)`; this cell, as torch and cuDNN, applies it after (ONNX: ``linear_before_reset=1``).

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
    from_x, from_h = _affine(3, x, h, w_ih, w_hh, b_ih, b_hh)
    x_r, x_z, x_n = _thirds(from_x)
    h_r, h_z, h_n = _thirds(from_h)
    xp = backend(x=x)
    r = _sigmoid(x_r + h_r, xp)
    z = _sigmoid(x_z + h_z, xp)
    n = xp.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


def encode(cell: Cell, x: Array, h0: Array, *weights: Array | None, lengths: Any = None) -> tuple[Array, Array]:
    r"""Run a recurrent cell along a sequence and keep every state.

    .. math:: h_t = \mathrm{cell}(x_t, h_{t-1}), \qquad t = 1, \dots, T

    Args:
        cell: a function ``(x, h, *weights) -> h'``: :func:`rnn_cell`, :func:`gru_cell`, or your own.
        x: the sequence ``(B, T, D_in)``, or ``(..., T, D_in)``.
        h0: the state before the first step, ``(B, D_h)``, or ``(..., D_h)``. Leading dimensions broadcast.
        weights: passed on to the cell at every step.
        lengths: ``(B,)``, or ``(...)``: how many steps of each sequence are real, from 0 to T; the rest is padding,
            whose content has no influence and gradient 0. A list or an array of integers; the values of a torch
            tensor are not checked, so that nothing waits for the device. ``None`` means that all T are real.

    Returns:
        ``(states, last)``: states ``(B, T, D_h)``, 0 in the padding as torch's ``pad_packed_sequence`` has it, and
        last ``(B, D_h)``, the state after the last real step: ``h0`` where there is none.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, ``cell`` is not callable, or ``lengths`` are
            not integers.
        ValueError: ``x`` has fewer than 2 dimensions or ``h0`` none, leading dimensions do not broadcast, the cell
            returns another shape than that of the state, or ``lengths`` have another shape than the leading
            dimensions or are out of range.

    Source:
        Cho et al. (2014), section 2.2, the encoder; Elman (1990).

    Example:
        >>> import numpy as np
        >>> x = np.array([[[1.0], [2.0], [9.0]], [[3.0], [4.0], [5.0]]])
        >>> states, last = encode(lambda x, h: x + h, x, np.zeros((2, 1)), lengths=[2, 3])  # running sums
        >>> states[:, :, 0]
        array([[ 1.,  3.,  0.],
               [ 3.,  7., 12.]])
        >>> last
        array([[ 3.],
               [12.]])
    """
    xp = backend(x=x, h0=h0)
    if not callable(cell):
        raise TypeError(f"cell is {cell!r}, but a function (x, h, *weights) -> h is needed, e.g. attnlib.gru_cell")
    lead = leading(x=(x, 2), h0=(h0, 1))
    h = h0 + xp.zeros((*lead, h0.shape[-1]), dtype=h0.dtype, device=h0.device)  # a copy: last may be h0 itself
    if lengths is None:
        return _run(cell, x, h, weights, xp)
    real = _real_steps(lengths, lead, x, xp)  # (..., T, 1)
    # Padding is replaced before the cell, not only after it: nan times a gradient of 0 is nan.
    return _run(cell, xp.where(real, x, xp.zeros_like(x)), h, weights, xp, real)


def _run(
    cell: Cell, x: Array, h: Array, weights: tuple[Array | None, ...], xp: Array, real: Array | None = None
) -> tuple[Array, Array]:
    states = []
    for t in range(x.shape[-2]):
        new = _checked_state(cell(x[..., t, :], h, *weights), h)
        h = new if real is None else xp.where(real[..., t, :], new, h)
        states.append(h)
    all_states = xp.stack(states, axis=-2) if states else h[..., None, :][..., :0, :]  # (..., T, D_h)
    if real is not None:
        all_states = xp.where(real, all_states, xp.zeros_like(all_states))
    return all_states, h


def _real_steps(lengths: Any, lead: tuple[int, ...], x: Array, xp: Array) -> Array:
    """Tell which steps are no padding: bool ``(..., T, 1)``."""
    lengths = _checked_tensor(lengths, x) if is_torch(lengths) else _checked_values(lengths, x, xp)
    if tuple(lengths.shape) != lead:
        raise ValueError(f"lengths has shape {shape(lengths)}, but x is {shape(x)}: {lead} is needed, one a sequence")
    return (xp.arange(x.shape[-2], device=x.device) < lengths[..., None])[..., None]


def _checked_tensor(lengths: Array, x: Array) -> Array:
    if not is_torch(x):
        raise TypeError("lengths is a torch.Tensor but x is a numpy.ndarray: convert one of them")
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or str(lengths.dtype) == "torch.bool":
        raise TypeError(f"lengths has dtype {lengths.dtype}, but integers are needed")
    return lengths.to(x.device)


def _checked_values(lengths: Any, x: Array, xp: Array) -> Array:
    # In plain Python, so that torch.compile takes a list without a graph break.
    if isinstance(lengths, np.ndarray):
        values, came = lengths.ravel().tolist(), lengths.shape
    elif isinstance(lengths, list | tuple):
        values, came = list(lengths), (len(lengths),)
    else:
        raise TypeError(f"lengths is {lengths!r}, but a list or an array of integers is needed")
    T = x.shape[-2]
    for n in values:
        if isinstance(n, bool) or not isinstance(n, int | np.integer):
            raise TypeError(f"lengths has {n!r}, but integers are needed")
        if not 0 <= n <= T:
            raise ValueError(f"lengths has {n}, but x has shape {shape(x)}: from 0 to T={T} steps can be real")
    return xp.reshape(xp.asarray(values, dtype=xp.int64, device=x.device), came)


def _checked_state(new: Array, h: Array) -> Array:
    backend(h0=h, state=new)
    if new.shape != h.shape:
        raise ValueError(
            f"cell returned shape {shape(new)}, but the state before it has {shape(h)}: they must be equal"
        )
    return new


def _affine(
    gates: int, x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None
) -> tuple[Array, Array]:
    """Return W_ih x + b_ih and W_hh h + b_hh, each ``(..., gates * D_h)``, after checking all shapes."""
    given = {"w_ih": w_ih, "w_hh": w_hh, "b_ih": b_ih, "b_hh": b_hh}
    given = {name: w for name, w in given.items() if w is not None or name.startswith("w")}
    backend(x=x, h=h, **given)
    leading(x=(x, 1), h=(h, 1))
    D_in, D_h = x.shape[-1], h.shape[-1]
    rows = gates * D_h
    needed = {"w_ih": (rows, D_in), "w_hh": (rows, D_h), "b_ih": (rows,), "b_hh": (rows,)}
    require_shapes(given, needed, x=x, h=h)
    from_x, from_h = x @ w_ih.T, h @ w_hh.T
    return from_x if b_ih is None else from_x + b_ih, from_h if b_hh is None else from_h + b_hh


def _thirds(x: Array) -> tuple[Array, Array, Array]:
    D_h = x.shape[-1] // 3
    return x[..., :D_h], x[..., D_h : 2 * D_h], x[..., 2 * D_h :]


def _sigmoid(x: Array, xp: Array) -> Array:
    return (1 + xp.tanh(x / 2)) / 2  # equal to 1 / (1 + exp(-x)), and never overflows
