"""Recurrent cells and the encoder: h' = cell(x, h), step after step; padding counts for nothing."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import D_K, B, D, H, Numpy, T, assert_error_names, cell_weights, dtype_name, examples, sizes, tenths
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

import attnlib
import attnlib.recurrent
from attnlib import encode, gru_cell, rnn_cell

D_H = D_K
LN2, LN3 = np.log(2), np.log(3)  # tanh(ln 2) = 3/5, tanh(ln 3) = 4/5, sigmoid(ln 3) = 3/4
LENGTHS = [3, T]

CELLS = [
    pytest.param(rnn_cell, 1, torch.nn.RNNCell, torch.nn.RNN, id="rnn"),
    pytest.param(gru_cell, 3, torch.nn.GRUCell, torch.nn.GRU, id="gru"),
]
both_cells = pytest.mark.parametrize(("cell", "gates", "theirs", "theirs_along"), CELLS)


def weights_of(rng, gates, width=D, state=D_H):
    """w_ih, w_hh, b_ih, b_hh, large enough to bend the curves and small enough not to flatten them."""
    return [rng.standard_normal(shape) / 2 for shape in cell_weights(gates, width, state).values()]


def loaded(module, weights):
    """A recurrent module of torch with these weights."""
    for parameter, value in zip(module.parameters(), weights, strict=True):
        parameter.data.copy_(torch.tensor(value))
    return module


def on(backend, *arrays, dtype="float64"):
    return [backend.array(x, dtype) for x in arrays]


# The definitions, number by number


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def affine(w, x, b, row):
    return sum(w[row, k] * x[k] for k in range(len(x))) + b[row]


def rnn_by_the_definition(x, h, w_ih, w_hh, b_ih, b_hh):
    return [math.tanh(affine(w_ih, x, b_ih, j) + affine(w_hh, h, b_hh, j)) for j in range(len(h))]


def gru_by_onnx(X, H_1, w_ih, w_hh, b_ih, b_hh):
    """ONNX operator GRU, linear_before_reset=1: W[zrh], R[zrh], Wb[zrh], Rb[zrh], and its equations in its letters."""
    N = len(H_1)
    z_, r_, h_ = slice(N, 2 * N), slice(0, N), slice(2 * N, 3 * N)  # where they stand in torch's order
    W, R, Wb, Rb = (np.concatenate([p[z_], p[r_], p[h_]]) for p in (w_ih, w_hh, b_ih, b_hh))
    Ht = []
    for j in range(N):
        zt = sigmoid(affine(W, X, Wb, j) + affine(R, H_1, Rb, j))
        rt = sigmoid(affine(W, X, Wb, N + j) + affine(R, H_1, Rb, N + j))
        ht = math.tanh(affine(W, X, Wb, 2 * N + j) + rt * affine(R, H_1, Rb, 2 * N + j))
        Ht.append((1 - zt) * ht + zt * H_1[j])
    return Ht


ORACLES = {rnn_cell: rnn_by_the_definition, gru_cell: gru_by_onnx}


# Worked by hand


def test_an_elman_cell_worked_by_hand(backend):
    # Row 1: ln 2 * 3 - ln 2 * 2 = ln 2. Row 2: 0 * 3 + ln 3 * 1 + 1 * 5 - 5 = ln 3.
    x, h = [3.0, 1.0], [2.0, 5.0]
    w_ih, w_hh = [[LN2, 0], [0, LN3]], [[-LN2, 0], [0, 1]]
    result = rnn_cell(*on(backend, x, h, w_ih, w_hh, [1.0, -2.0], [-1.0, -3.0]))
    assert_allclose(backend.numpy(result), [3 / 5, 4 / 5], rtol=1e-14)


def test_a_gated_cell_worked_by_hand(backend):
    # r = sigmoid(ln 3) = 3/4, z = sigmoid(-ln 3) = 1/4, n = tanh(ln2/4 + 3/4 (ln2/2 + ln2/2)) = tanh(ln 2) = 3/5,
    # h' = 3/4 * 3/5 + 1/4 * 2 = 19/20.
    w_ih, w_hh = [[LN3], [0], [LN2 / 4]], [[0], [-LN3 / 2], [LN2 / 4]]
    result = gru_cell(*on(backend, [1.0], [2.0], w_ih, w_hh, [0.0, 0, 0], [0, 0, LN2 / 2]))
    assert_allclose(backend.numpy(result), [19 / 20], rtol=1e-14)


def test_encoding_worked_by_hand(backend):
    # tanh(ln 2) = 3/5; tanh(ln 3) = 4/5, where the input makes up for the state: x_2 = ln 3 - 3/5.
    x, one, none = [[[LN2], [LN3 - 3 / 5]]], [[1.0]], [[0.0]]
    states, last = encode(rnn_cell, *on(backend, x, none, one, one))
    assert_allclose(backend.numpy(states), [[[3 / 5], [4 / 5]]], rtol=1e-14)
    assert_allclose(backend.numpy(last), [[4 / 5]], rtol=1e-14)


# Cells, against torch and against the definition


@both_cells
def test_a_cell_is_torch_s(backend, rng, cell, gates, theirs, theirs_along):
    x, h, weights = rng.standard_normal((B, D)), rng.standard_normal((B, D_H)), weights_of(rng, gates)
    expected = loaded(theirs(D, D_H).double(), weights)(torch.tensor(x), torch.tensor(h))
    assert_allclose(backend.numpy(cell(*on(backend, x, h, *weights))), expected.detach(), rtol=1e-12, atol=1e-14)


@both_cells
def test_a_cell_without_biases_is_torch_s(backend, rng, cell, gates, theirs, theirs_along):
    x, h, weights = rng.standard_normal((B, D)), rng.standard_normal((B, D_H)), weights_of(rng, gates)[:2]
    expected = loaded(theirs(D, D_H, bias=False).double(), weights)(torch.tensor(x), torch.tensor(h))
    assert_allclose(backend.numpy(cell(*on(backend, x, h, *weights))), expected.detach(), rtol=1e-12, atol=1e-14)


@both_cells
def test_a_cell_is_its_definition(backend, rng, cell, gates, theirs, theirs_along):
    x, h, weights = rng.standard_normal(D), rng.standard_normal(D_H), weights_of(rng, gates)
    expected = ORACLES[cell](x, h, *weights)
    assert_allclose(backend.numpy(cell(*on(backend, x, h, *weights))), expected, rtol=1e-12, atol=1e-14)


@both_cells
@pytest.mark.parametrize("absent", ["b_ih", "b_hh"])
def test_a_bias_that_is_absent_is_0(backend, rng, cell, gates, theirs, theirs_along, absent):
    x, h, (w_ih, w_hh, b_ih, b_hh) = rng.standard_normal(D), rng.standard_normal(D_H), weights_of(rng, gates)
    biases = {"b_ih": b_ih, "b_hh": b_hh}
    expected = ORACLES[cell](x, h, w_ih, w_hh, **(biases | {absent: np.zeros(gates * D_H)}))
    there = {name: None if name == absent else backend.array(b) for name, b in biases.items()}
    ours = cell(*on(backend, x, h, w_ih, w_hh), **there)
    assert_allclose(backend.numpy(ours), expected, rtol=1e-12, atol=1e-14)


@both_cells
@pytest.mark.parametrize("lead", [(), (B,), (H, B), (0,)])
def test_leading_dimensions_are_a_loop(backend, rng, cell, gates, theirs, theirs_along, lead):
    x, h, weights = rng.standard_normal((*lead, D)), rng.standard_normal((*lead, D_H)), weights_of(rng, gates)
    ours = backend.numpy(cell(*on(backend, x, h, *weights)))
    assert ours.shape == (*lead, D_H)
    for i in np.ndindex(lead):
        assert_allclose(ours[i], ORACLES[cell](x[i], h[i], *weights), rtol=1e-12, atol=1e-14)


@both_cells
def test_one_state_for_the_whole_batch_broadcasts(backend, rng, cell, gates, theirs, theirs_along):
    x, h, weights = rng.standard_normal((B, D)), rng.standard_normal(D_H), weights_of(rng, gates)
    alone = backend.numpy(cell(*on(backend, x, h, *weights)))
    repeated = backend.numpy(cell(*on(backend, x, np.stack([h] * B), *weights)))
    assert_allclose(alone, repeated, rtol=1e-12, atol=1e-14)


# What is true of every cell


@examples
@given(tenths(2, 3), tenths(2, 5), tenths(15, 3), tenths(15, 5))
def test_a_state_within_1_stays_within_1(backend, x, h, w_ih, w_hh):
    h = h / 5
    for cell, rows in ((rnn_cell, 5), (gru_cell, 15)):
        state = backend.numpy(cell(*on(backend, x, h, w_ih[:rows], w_hh[:rows])))
        assert (np.abs(state) <= 1).all()


@examples
@given(tenths(3), tenths(5), tenths(15, 3), tenths(15, 5))
def test_each_number_lies_between_the_new_one_and_the_last_one(backend, x, h, w_ih, w_hh):
    # With the update gate shut (z = 0), h' is n; with the gate as it is, h' is on the way from n to h.
    b = np.zeros(15)
    shut = np.where(np.arange(15) // 5 == 1, -1e4, 0.0)
    n = backend.numpy(gru_cell(*on(backend, x, h, w_ih, w_hh, shut, b)))
    state = backend.numpy(gru_cell(*on(backend, x, h, w_ih, w_hh, b, b)))
    assert (np.minimum(n, h) - 1e-12 <= state).all()
    assert (state <= np.maximum(n, h) + 1e-12).all()


def test_an_open_update_gate_keeps_the_state(typed, rng):
    backend, dtype = typed
    x, h, w_ih, w_hh = on(
        backend, rng.standard_normal(D), rng.standard_normal(D_H), *weights_of(rng, 3)[:2], dtype=dtype
    )
    keep = backend.array(np.where(np.arange(3 * D_H) // D_H == 1, 1e4, 0), dtype)
    assert_array_equal(backend.numpy(gru_cell(x, h, w_ih, w_hh, keep)), backend.numpy(h))


def test_a_shut_reset_gate_makes_the_new_state_blind_to_the_last_one(backend, rng):
    x, (w_ih, w_hh, b_ih, b_hh) = rng.standard_normal(D), weights_of(rng, 3)
    b_ih = b_ih + np.repeat([-1e4, -1e4, 0], D_H)  # r = 0 and z = 0
    expected = np.tanh(w_ih[2 * D_H :] @ x + b_ih[2 * D_H :])
    for _ in range(2):
        h = rng.standard_normal(D_H)
        ours = gru_cell(*on(backend, x, h, w_ih, w_hh, b_ih, b_hh))
        assert_allclose(backend.numpy(ours), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("sign", [1, -1])
def test_gates_of_any_dtype_do_not_overflow(typed, sign):
    # exp(6e4) is beyond every dtype.
    backend, dtype = typed
    x, h, one = on(backend, [sign * 6e4], [0.5], np.ones((1, 1)), dtype=dtype)
    three, none = on(backend, np.ones((3, 1)), np.zeros((3, 1)), dtype=dtype)
    assert_array_equal(backend.numpy(rnn_cell(x, h, one, one)), [sign])
    assert_array_equal(backend.numpy(gru_cell(x, h, three, none)), [0.5 if sign > 0 else -1])


@both_cells
def test_the_gradient_of_a_cell_is_the_numerical_one(rng, cell, gates, theirs, theirs_along):
    inputs = [rng.standard_normal((B, 3)), rng.standard_normal((B, 2)), *weights_of(rng, gates, 3, 2)]
    assert torch.autograd.gradcheck(cell, [torch.tensor(x, requires_grad=True) for x in inputs])


@both_cells
def test_a_cell_follows_autocast(rng, cell, gates, theirs, theirs_along):
    x, h, weights = rng.standard_normal((B, D)), rng.standard_normal((B, D_H)), weights_of(rng, gates)
    x, h, *weights = (torch.tensor(a, dtype=torch.float32) for a in (x, h, *weights))
    exact = cell(x, h, *weights)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = cell(x.bfloat16(), h, *weights)
        states, last = encode(cell, x[:, None].bfloat16(), h, *weights, lengths=[1] * B)
    for ours in (mixed, states[:, 0], last):
        torch.testing.assert_close(ours.float(), exact, atol=0.1, rtol=0.1)


# The encoder, against torch and against a loop


def sequence(rng, gates, lead=(B,)):
    return rng.standard_normal((*lead, T, D)), rng.standard_normal((*lead, D_H)), weights_of(rng, gates)


@both_cells
def test_encoding_is_torch_s(backend, rng, cell, gates, theirs, theirs_along):
    x, h0, weights = sequence(rng, gates)
    module = loaded(theirs_along(D, D_H, batch_first=True).double(), weights)
    expected, last = module(torch.tensor(x), torch.tensor(h0)[None])
    ours = encode(cell, *on(backend, x, h0, *weights))
    assert_allclose(backend.numpy(ours[0]), expected.detach(), rtol=1e-11, atol=1e-13)
    assert_allclose(backend.numpy(ours[1]), last[0].detach(), rtol=1e-11, atol=1e-13)


@both_cells
@pytest.mark.parametrize("lengths", [[3, 5, 1], [5, 5, 5], [1, 2, 3], [4, 1, 1]], ids=str)
def test_encoding_with_lengths_is_torch_s_packed(backend, rng, cell, gates, theirs, theirs_along, lengths):
    x, h0, weights = sequence(rng, gates, (3,))
    module = loaded(theirs_along(D, D_H, batch_first=True).double(), weights)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(x), torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    packed, last = module(packed, torch.tensor(h0)[None])
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=T)
    ours = encode(cell, *on(backend, x, h0, *weights), lengths=lengths)
    assert_allclose(backend.numpy(ours[0]), expected.detach(), rtol=1e-11, atol=1e-13)
    assert_allclose(backend.numpy(ours[1]), last[0].detach(), rtol=1e-11, atol=1e-13)


@both_cells
def test_encoding_is_a_loop_over_the_real_steps(backend, rng, cell, gates, theirs, theirs_along):
    lengths = [3, 0, T]
    x, h0, weights = sequence(rng, gates, (3,))
    states, last = map(backend.numpy, encode(cell, *on(backend, x, h0, *weights), lengths=lengths))
    for b, length in enumerate(lengths):
        h = h0[b]
        for t in range(length):
            h = ORACLES[cell](x[b, t], np.array(h), *weights)
            assert_allclose(states[b, t], h, rtol=1e-11, atol=1e-13)
        assert_array_equal(states[b, length:], np.zeros((T - length, D_H)))
        assert_allclose(last[b], h, rtol=1e-11, atol=1e-13)


@both_cells
def test_encoding_without_biases_or_with_one_is_encoding_with_zeros(backend, rng, cell, gates, theirs, theirs_along):
    x, h0, (w_ih, w_hh, b_ih, _) = sequence(rng, gates)
    x, h0, w_ih, w_hh, b_ih, zero = on(backend, x, h0, w_ih, w_hh, b_ih, np.zeros(gates * D_H))
    for given_, full in (((), (zero, zero)), ((b_ih,), (b_ih, zero)), ((None, b_ih), (zero, b_ih))):
        ours, expected = encode(cell, x, h0, w_ih, w_hh, *given_), encode(cell, x, h0, w_ih, w_hh, *full)
        for mine, theirs_ in zip(ours, expected, strict=True):
            assert_allclose(backend.numpy(mine), backend.numpy(theirs_), rtol=1e-12, atol=1e-14)


def test_any_cell_will_do(backend):
    # Running products, the weight a factor of each step: 2 * 3, 2 * 3 * 2 * 5.
    states, last = encode(lambda x, h, w: w * x * h, *on(backend, [[[3.0], [5.0]]], [[1.0]], [2.0]))
    assert_array_equal(backend.numpy(states), [[[6], [60]]])
    assert_array_equal(backend.numpy(last), [[60]])


def test_a_module_of_torch_is_a_cell(rng):
    module = torch.nn.GRUCell(D, D_H).double()
    x, h0 = torch.tensor(rng.standard_normal((B, T, D))), torch.zeros(B, D_H, dtype=torch.float64)
    theirs = encode(module, x, h0)
    ours = encode(gru_cell, x, h0, *module.parameters())
    torch.testing.assert_close(ours, theirs)


# What is true of every encoding


@pytest.mark.parametrize("cut", range(T + 1))
def test_encoding_in_two_parts_is_encoding_at_once(backend, rng, cut):
    x, h0, weights = sequence(rng, 3)
    x, h0, *weights = on(backend, x, h0, *weights)
    states, last = encode(gru_cell, x, h0, *weights)
    first, middle = encode(gru_cell, x[:, :cut], h0, *weights)
    second, end = encode(gru_cell, x[:, cut:], middle, *weights)
    parts = np.concatenate([backend.numpy(first), backend.numpy(second)], axis=1)
    assert_allclose(parts, backend.numpy(states), rtol=1e-12, atol=1e-14)
    assert_allclose(backend.numpy(end), backend.numpy(last), rtol=1e-12, atol=1e-14)


def test_no_state_depends_on_a_later_input(rng):
    x, h0, weights = sequence(rng, 3, (1,))
    h0, *weights = (torch.tensor(a) for a in (h0, *weights))
    states = torch.func.jacrev(lambda x: encode(gru_cell, x, h0, *weights)[0][0].sum(-1))(torch.tensor(x))
    depends = (states[:, 0] != 0).any(-1)  # (T, T): does state i depend on input j?
    assert (depends == torch.ones(T, T).tril().bool()).all()


@both_cells
def test_full_lengths_are_no_lengths(backend, rng, cell, gates, theirs, theirs_along):
    x, h0, weights = sequence(rng, gates)
    arguments = on(backend, x, h0, *weights)
    for ours, plain in zip(encode(cell, *arguments, lengths=[T] * B), encode(cell, *arguments), strict=True):
        assert_array_equal(backend.numpy(ours), backend.numpy(plain))


@examples
@given(st.lists(st.integers(0, T), min_size=1, max_size=4))
def test_a_padded_sequence_is_the_sequence_cut_short(backend, lengths):
    rng = np.random.default_rng(len(lengths))
    x, h0, weights = sequence(rng, 3, (len(lengths),))
    states, last = map(backend.numpy, encode(gru_cell, *on(backend, x, h0, *weights), lengths=lengths))
    for b, length in enumerate(lengths):
        alone, end = encode(gru_cell, *on(backend, x[b, :length], h0[b], *weights))
        assert_allclose(states[b, :length], backend.numpy(alone), rtol=1e-12, atol=1e-14)
        assert (states[b, length:] == 0).all()
        assert_allclose(last[b], backend.numpy(end), rtol=1e-12, atol=1e-14)


@both_cells
@pytest.mark.parametrize("padding", [1e30, np.nan, np.inf], ids=str)
def test_the_content_of_the_padding_has_no_influence(backend, rng, cell, gates, theirs, theirs_along, padding):
    x, h0, weights = sequence(rng, gates)
    spoilt = x.copy()
    spoilt[0, LENGTHS[0] :] = padding
    plain = encode(cell, *on(backend, x, h0, *weights), lengths=LENGTHS)
    ours = encode(cell, *on(backend, spoilt, h0, *weights), lengths=LENGTHS)
    for mine, expected in zip(ours, plain, strict=True):
        assert_array_equal(backend.numpy(mine), backend.numpy(expected))


@both_cells
@pytest.mark.parametrize("padding", [2.0, np.nan, np.inf], ids=str)
def test_the_padding_has_gradient_0_and_spoils_no_other(rng, cell, gates, theirs, theirs_along, padding):
    x, h0, weights = sequence(rng, gates)
    x[0, LENGTHS[0] :] = padding
    arguments = [torch.tensor(a, requires_grad=True) for a in (x, h0, *weights)]
    states, last = encode(cell, *arguments, lengths=LENGTHS)
    (states.square().sum() + last.sum()).backward()
    assert (arguments[0].grad[0, LENGTHS[0] :] == 0).all()
    assert (arguments[0].grad[0, : LENGTHS[0]] != 0).all()
    for argument in arguments:
        assert argument.grad.isfinite().all()
        assert (argument.grad != 0).any()


def test_a_sequence_without_a_real_step_hands_its_first_state_on(backend, rng):
    x, h0, weights = sequence(rng, 3)
    states, last = encode(gru_cell, *on(backend, x, h0, *weights), lengths=[0, 0])
    assert_array_equal(backend.numpy(states), np.zeros((B, T, D_H)))
    assert_array_equal(backend.numpy(last), h0)


@pytest.mark.parametrize("lengths", [None, [0] * B], ids=str)
def test_a_sequence_of_no_steps_has_no_states(typed, rng, lengths):
    backend, dtype = typed
    x, h0, *weights = on(backend, np.zeros((B, 0, D)), np.ones((B, D_H)), *weights_of(rng, 3), dtype=dtype)
    states, last = encode(gru_cell, x, h0, *weights, lengths=lengths)
    assert tuple(states.shape) == (B, 0, D_H)
    assert dtype_name(states) == dtype_name(last) == dtype
    assert_array_equal(backend.numpy(last), np.ones((B, D_H)))
    h0[...] = 7
    assert_array_equal(backend.numpy(last), np.ones((B, D_H)))  # a copy


def test_the_last_state_is_a_copy_of_the_last_of_the_states(backend, rng):
    x, h0, weights = sequence(rng, 3)
    states, last = encode(gru_cell, *on(backend, x, h0, *weights))
    before = backend.numpy(states).copy()
    assert_array_equal(backend.numpy(last), before[:, -1])
    last[...] = 7
    assert_array_equal(backend.numpy(states), before)


@pytest.mark.parametrize("lead", [(), (H, B), (0,)])
def test_there_may_be_no_batch_or_several_dimensions_of_it(backend, rng, lead):
    x, h0, weights = sequence(rng, 3, lead)
    lengths = rng.integers(0, T, lead, endpoint=True)
    states, last = map(backend.numpy, encode(gru_cell, *on(backend, x, h0, *weights), lengths=np.array(lengths)))
    assert states.shape == (*lead, T, D_H)
    assert last.shape == (*lead, D_H)
    for i in np.ndindex(lead):
        alone, end = encode(gru_cell, *on(backend, x[i], h0[i], *weights), lengths=np.array(lengths[i]))
        assert_allclose(states[i], backend.numpy(alone), rtol=1e-12, atol=1e-14)
        assert_allclose(last[i], backend.numpy(end), rtol=1e-12, atol=1e-14)


def test_one_first_state_for_the_whole_batch_broadcasts(backend, rng):
    x, h0, weights = sequence(rng, 3)
    shared = encode(gru_cell, *on(backend, x, h0[0], *weights), lengths=LENGTHS)
    repeated = encode(gru_cell, *on(backend, x, np.stack([h0[0]] * B), *weights), lengths=LENGTHS)
    for ours, theirs in zip(shared, repeated, strict=True):
        assert_allclose(backend.numpy(ours), backend.numpy(theirs), rtol=1e-12, atol=1e-14)


# Lengths


def test_a_wrong_length_of_a_batch_of_batches_is_named_by_its_place():
    with pytest.raises(ValueError, match=r"lengths\[1, 0\] is 9, but T=5 positions allow lengths from 0 to 5"):
        encode(lambda x, h: h, np.ones((2, 2, 5, 3)), np.ones((2, 2, 3)), lengths=np.array([[1, 2], [9, 3]]))
    with pytest.raises(ValueError, match=r"lengths is 9, but T=5"):
        encode(lambda x, h: h, np.ones((5, 3)), np.ones(3), lengths=np.array(9))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_lengths_may_be_a_list_or_an_array_of_any_integers(backend, rng, dtype):
    x, h0, weights = sequence(rng, 3)
    arguments = on(backend, x, h0, *weights)
    expected = encode(gru_cell, *arguments, lengths=LENGTHS)
    lists = tuple(LENGTHS), range(3, 7, 2), list(np.array(LENGTHS, dtype)), [np.array(n, dtype) for n in LENGTHS]
    for lengths in (*lists, np.array(LENGTHS, dtype), backend.array(LENGTHS, dtype)):
        for ours, theirs in zip(encode(gru_cell, *arguments, lengths=lengths), expected, strict=True):
            assert_array_equal(backend.numpy(ours), backend.numpy(theirs))


def test_lengths_on_the_cpu_serve_a_sequence_elsewhere():
    x, h0 = torch.empty(B, T, D, device="meta"), torch.empty(B, D_H, device="meta")
    weights = [torch.empty(s, device="meta") for s in cell_weights(3, D, D_H).values()]
    for lengths in (LENGTHS, np.array(LENGTHS), torch.tensor(LENGTHS), torch.tensor(LENGTHS, device="meta")):
        states, last = encode(gru_cell, x, h0, *weights, lengths=lengths)
        assert (states.device.type, tuple(states.shape)) == ("meta", (B, T, D_H))
        assert (last.device.type, tuple(last.shape)) == ("meta", (B, D_H))


def test_vmap_over_lengths_is_a_loop(rng):
    x, h0, weights = sequence(rng, 3)
    x, h0, *weights = (torch.tensor(a) for a in (x, h0, *weights))
    lengths = torch.tensor(LENGTHS)
    ours = torch.func.vmap(lambda x, h, n: encode(gru_cell, x, h, *weights, lengths=n))(x, h0, lengths)
    torch.testing.assert_close(ours, encode(gru_cell, x, h0, *weights, lengths=lengths))


@pytest.mark.parametrize(("dynamic", "lowered"), [(None, "aot_eager"), (True, "eager")], ids=["static", "dynamic"])
def test_torch_compile_sees_one_graph_whatever_the_lengths(rng, dynamic, lowered):
    x, h0, weights = sequence(rng, 3)
    x, h0, *weights = (torch.tensor(a) for a in (x, h0, *weights))
    torch._dynamo.reset()
    compiled = torch.compile(encode, fullgraph=True, backend=lowered, dynamic=dynamic)
    lists = () if dynamic else (LENGTHS,)  # test_contract.py compiles it with a list and dynamic sizes
    for lengths in (torch.tensor(LENGTHS), torch.tensor([0, 1]), *lists):
        ours = compiled(gru_cell, x, h0, *weights, lengths=lengths)
        torch.testing.assert_close(ours, encode(gru_cell, x, h0, *weights, lengths=lengths))


@both_cells
@pytest.mark.parametrize("lengths", [None, [1, 3], [0, 2]], ids=str)
def test_the_gradient_of_encoding_is_the_numerical_one(rng, cell, gates, theirs, theirs_along, lengths):
    inputs = [rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 3)), *weights_of(rng, gates, 2, 3)]
    inputs = [torch.tensor(x, requires_grad=True) for x in inputs]
    assert torch.autograd.gradcheck(lambda *inputs: encode(cell, *inputs, lengths=lengths), inputs)


# torch's own loop, on the CPU


@both_cells
@pytest.mark.parametrize("absent", [(), (2,), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("lengths", [None, [0, 3], [1, T]], ids=str)
def test_torch_s_loop_is_ours(rng, monkeypatch, cell, gates, theirs, theirs_along, absent, lengths):
    x, h0, weights = sequence(rng, gates)
    arrays = [x, h0, *(None if i in absent else w for i, w in enumerate(weights))]

    def results():
        inputs = [z if z is None else torch.tensor(z, requires_grad=True) for z in arrays]
        states, last = encode(cell, *inputs, lengths=lengths)
        loss = states.square().sum() + last.sum()
        return states, last, *torch.autograd.grad(loss, [z for z in inputs if z is not None])

    fused = results()
    monkeypatch.setattr("attnlib._torch_recurrent.is_eager_on_cpu", lambda x: False)
    torch.testing.assert_close(fused, results(), rtol=1e-12, atol=1e-13)


@both_cells
def test_leading_dimensions_go_through_torch_s_loop_too(rng, monkeypatch, cell, gates, theirs, theirs_along):
    x, h0, weights = (
        torch.tensor(rng.standard_normal((H, 1, T, D))),
        torch.zeros(B, D_H).double(),
        weights_of(rng, gates),
    )
    arrays = [x, h0, *map(torch.tensor, weights)]
    fused = encode(cell, *arrays)
    monkeypatch.setattr("attnlib._torch_recurrent.is_eager_on_cpu", lambda x: False)
    torch.testing.assert_close(fused, encode(cell, *arrays), rtol=1e-12, atol=1e-13)


@both_cells
@pytest.mark.parametrize("lengths", [None, [0, 2]], ids=str)
def test_the_second_derivative_of_encoding_is_the_numerical_one(rng, cell, gates, theirs, theirs_along, lengths):
    inputs = [rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 2)), *weights_of(rng, gates, 2, 2)]
    inputs = [torch.tensor(x, requires_grad=True) for x in inputs]
    assert torch.autograd.gradgradcheck(lambda *inputs: encode(cell, *inputs, lengths=lengths), inputs)


def test_all_of_recurrence_is_found_in_one_module_and_in_the_package():
    for name in ("rnn_cell", "gru_cell", "encode", "bahdanau_step", "luong_step"):
        assert getattr(attnlib.recurrent, name) is getattr(attnlib, name)


# Errors


def cell_errors(cell, gates):
    """The errors that both cells share."""
    name, rows = cell.__name__, gates * D_H

    def called(z, x=(B, D), h=(B, D_H), w_ih=(rows, D), w_hh=(rows, D_H), b_ih=(rows,), b_hh=(rows,)):
        return cell(z(*x), z(*h), z(*w_ih), z(*w_hh), z(*b_ih), z(*b_hh))

    return {
        f"{name} of a number": (lambda z: called(z, x=()), ValueError, ["x", sizes()]),
        f"{name} of a state that is a number": (lambda z: called(z, h=()), ValueError, ["h", sizes()]),
        f"{name} of another batch": (
            lambda z: called(z, h=(H, D_H)), ValueError, [sizes(B, D), sizes(H, D_H)],
        ),
        f"{name} with w_ih transposed": (
            lambda z: called(z, w_ih=(D, rows)), ValueError, ["w_ih", sizes(D, rows), sizes(rows, D), sizes(B, D)],
        ),
        f"{name} with w_hh of another width": (
            lambda z: called(z, w_hh=(rows, D)), ValueError, ["w_hh", sizes(rows, D), sizes(rows, D_H), sizes(B, D_H)],
        ),
        f"{name} with w_ih of too many rows": (
            lambda z: called(z, w_ih=(2 * rows, D)), ValueError, ["w_ih", sizes(2 * rows, D), sizes(rows, D)],
        ),
        f"{name} with a vector as w_ih": (
            lambda z: called(z, w_ih=(D,)), ValueError, ["w_ih", sizes(D), sizes(rows, D)],
        ),
        f"{name} with a bias of 1 that would broadcast": (
            lambda z: called(z, b_ih=(1,)), ValueError, ["b_ih", sizes(1), sizes(rows)],
        ),
        f"{name} with a bias that is a row": (
            lambda z: called(z, b_hh=(1, rows)), ValueError, ["b_hh", sizes(1, rows), sizes(rows)],
        ),
        f"{name} without a matrix": (
            lambda z: cell(z(B, D), z(B, D_H), None, z(rows, D_H)), TypeError, ["w_ih", "None"],
        ),
    }  # fmt: skip


def encoded(z, x=(B, T, D), h0=(B, D_H), cell=gru_cell, **options):
    weights = (z(*shape) for shape in cell_weights(3, D, D_H).values())
    return encode(cell, z(*x), z(*h0), *weights, **options)


ERRORS = {
    **cell_errors(rnn_cell, 1), **cell_errors(gru_cell, 3),
    "gru_cell with the weights of an Elman cell": (
        lambda z: gru_cell(z(B, D), z(B, D_H), z(D_H, D), z(D_H, D_H)),
        ValueError, ["w_ih", sizes(D_H, D), sizes(3 * D_H, D)],
    ),
    "encode of a vector": (lambda z: encoded(z, x=(D,)), ValueError, ["x", sizes(D)]),
    "encode from a state that is a number": (lambda z: encoded(z, h0=()), ValueError, ["h0", sizes()]),
    "encode of another batch": (
        lambda z: encoded(z, h0=(H, D_H)), ValueError, [sizes(B, T, D), sizes(H, D_H)],
    ),
    "encode of another width than the weights": (
        lambda z: encoded(z, x=(B, T, D + 1)), ValueError, ["w_ih", sizes(B, D + 1), sizes(3 * D_H, D + 1)],
    ),
    "encode with the name of a cell": (lambda z: encoded(z, cell="gru"), TypeError, ["cell", "'gru'", "function"]),
    "encode with a cell that returns the input": (
        lambda z: encoded(z, cell=lambda x, h, *weights: x), ValueError, ["cell", sizes(B, D), sizes(B, D_H)],
    ),
    "encode with a cell that returns two things": (
        lambda z: encoded(z, cell=lambda x, h, *weights: (h, h)), TypeError, ["state", "tuple"],
    ),
    "encode with a cell that changes the dtype": (
        lambda z: encoded(z, cell=lambda x, h, *weights: z(B, D_H, dtype="float32")), TypeError,
        ["state", "float32", "float64"],
    ),
    "encode with a length beyond the end": (
        lambda z: encoded(z, lengths=[1, T + 1]), ValueError, [r"lengths\[1\]", str(T + 1), f"T={T}"],
    ),
    "encode with a negative length": (
        lambda z: encoded(z, lengths=np.array([-1, 2])), ValueError, ["lengths", "-1", f"T={T}"],
    ),
    "encode with lengths for another batch": (
        lambda z: encoded(z, lengths=[1, 2, 3]), ValueError, ["lengths", sizes(3), sizes(B, T, D), sizes(B)],
    ),
    "encode with one length for all": (lambda z: encoded(z, lengths=3), TypeError, ["lengths is 3", "list"]),
    "encode with lengths as a column": (
        lambda z: encoded(z, lengths=np.array([[1], [2]])), ValueError, ["lengths", sizes(B, 1), sizes(B)],
    ),
    "encode with lengths that are no whole numbers": (
        lambda z: encoded(z, lengths=[1.0, 2.0]), TypeError, [r"lengths\[0\]", r"1\.0", "whole number"],
    ),
    "encode with an array of lengths that are no whole numbers": (
        lambda z: encoded(z, lengths=z(B)), TypeError, ["lengths", "float64", "integers"],
    ),
    "encode with a mask as lengths": (
        lambda z: encoded(z, lengths=z(B, dtype="bool")), TypeError, ["lengths", "bool", "integers"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came_to_a_cell(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


def test_lengths_of_torch_for_a_sequence_of_numpy_are_refused(rng):
    x, h0, weights = sequence(rng, 3)
    with pytest.raises(TypeError, match=r"lengths is a torch\.Tensor but x is a numpy\.ndarray"):
        encode(gru_cell, *on(Numpy(), x, h0, *weights), lengths=torch.tensor(LENGTHS))
