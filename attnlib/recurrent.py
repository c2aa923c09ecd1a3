"""Recurrent networks: the cells, the encoder that runs one along a sequence, and the decoders that attend to it.

A cell is a function ``(x, h, *weights) -> h'``: it computes the next state from one input and the last state. The
encoder runs any such function. It is written once, with the array API, for all libraries.

Dimensions: B batch, T steps, D_in width of an input, D_h width of a state.
"""

from collections.abc import Callable, Sequence

from attnlib._arrays import (
    Array,
    array_namespace,
    broadcast_batch_shape,
    device_of,
    is_jax_dimension,
    is_torch,
    shape,
)
from attnlib._dispatch import kernels_for
from attnlib._lengths import Lengths, check_lengths
from attnlib._nested import is_nested
from attnlib._types import ArrayT
from attnlib.cells import checked_weights, project_inputs
from attnlib.cells import gru_cell as gru_cell
from attnlib.cells import rnn_cell as rnn_cell
from attnlib.seq2seq import bahdanau_step as bahdanau_step
from attnlib.seq2seq import luong_step as luong_step

Cell = Callable[..., ArrayT]


def encode(
    cell: Cell[ArrayT], x: ArrayT, h0: ArrayT, *weights: ArrayT | None, lengths: Sequence[int] | ArrayT | None = None
) -> tuple[ArrayT, ArrayT]:
    r"""Run a recurrent cell along a sequence and keep every state.

    .. math:: h_t = \mathrm{cell}(x_t, h_{t-1}), \qquad t = 1, \dots, T

    Args:
        cell: a function ``(x, h, *weights) -> h'``: :func:`rnn_cell`, :func:`gru_cell`, or your own.
        x: the sequence ``(B, T, D_in)``, or ``(..., T, D_in)``.
        h0: the state before the first step, ``(B, D_h)``, or ``(..., D_h)``. Leading dimensions broadcast.
        weights: passed on to the cell at every step.
        lengths: ``(B,)``, or ``(...)``: how many steps of each sequence are real, from 0 to T; the rest is padding,
            which has no influence; its gradient is 0. A list, tuple, range or array of integers. Values of arrays
            other than NumPy's are not checked, because reading them would wait for the device. ``None`` means that
            all T are real.

    Returns:
        ``(states, last)``: states ``(B, T, D_h)``, 0 in the padding as torch's ``pad_packed_sequence`` has it, and
        last ``(B, D_h)``, the state after the last real step: ``h0`` if there is none.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, ``cell`` is not callable, ``lengths`` are not
            integers, or T is symbolic (in ``jax.export``).
        ValueError: ``x`` has fewer than 2 dimensions or ``h0`` none, leading dimensions do not broadcast, the cell
            returns a shape other than that of the state, or ``lengths`` have a shape other than the leading
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
    xp = array_namespace(x=x, h0=h0)
    if not callable(cell):
        raise TypeError(f"cell is {cell!r}, but a function (x, h, *weights) -> h is needed, e.g. attnlib.gru_cell")
    if is_nested(x):
        raise TypeError("x is a nested tensor: pass torch.nested.to_padded_tensor(x, 0.0), and its lengths as lengths")
    lead: tuple[int, ...] = broadcast_batch_shape(x=(x, 2), h0=(h0, 1))
    if is_jax_dimension(x.shape[-2]):
        raise TypeError(
            f"x has shape {shape(x)}, but the length T must be a fixed number: the loop over the steps is unrolled. "
            "Export the function for each length, or pad to one length and pass lengths"
        )
    h = h0 + xp.zeros((*lead, h0.shape[-1]), dtype=h0.dtype, device=device_of(h0))  # a copy: the last state may be h0
    if lengths is None:
        return _run(cell, x, h, weights, xp)
    real = _real_steps(lengths, lead, x, xp)  # (..., T, 1)
    # Padding is replaced before the cell, not only after it: nan times a gradient of 0 is nan.
    return _run(cell, xp.where(real, x, xp.zeros_like(x)), h, weights, xp, real)


def _run(
    cell: Cell[Array], x: Array, h: Array, weights: tuple[Array | None, ...], xp: Array, real: Array | None = None
) -> tuple[Array, Array]:
    own = checked_weights(cell, x, h, weights) if x.shape[-2] else None
    if own is not None:
        found = kernels_for(x).encode(cell, x, h, *own, real) if is_torch(x) else None
        if found is not None:
            return found
    inputs, step = (x, _any_step(cell, weights)) if own is None else project_inputs(cell, x, *own)
    states = []
    for t in range(x.shape[-2]):
        new = step(inputs[..., t, :], h)
        h = new if real is None else xp.where(real[..., t, :], new, h)
        states.append(h)
    all_states = xp.stack(states, axis=-2) if states else h[..., None, :][..., :0, :]  # (..., T, D_h)
    if real is not None:
        all_states = xp.where(real, all_states, xp.zeros_like(all_states))
    return all_states, h


def _any_step(cell: Cell[Array], weights: tuple[Array | None, ...]) -> Cell[Array]:
    """Return a function that takes an input and the state to the next state, and checks the result."""
    return lambda x, h: _checked_state(cell(x, h, *weights), h)


def _real_steps(lengths: Lengths, lead: tuple[int, ...], x: Array, xp: Array) -> Array:
    """Tell which steps are not padding: bool ``(..., T, 1)``."""
    lengths = check_lengths(lengths, x.shape[-2], "T", like=x)
    if tuple(lengths.shape) != lead:
        raise ValueError(f"lengths has shape {shape(lengths)}, but x is {shape(x)}: {lead} is needed, one a sequence")
    return (xp.arange(x.shape[-2], device=device_of(x)) < lengths[..., None])[..., None]


def _checked_state(new: Array, h: Array) -> Array:
    array_namespace(h0=h, state=new)
    if new.shape != h.shape:
        raise ValueError(
            f"cell returned shape {shape(new)}, but the state before it has {shape(h)}: they must be equal"
        )
    return new
