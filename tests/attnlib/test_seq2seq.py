"""Decoder steps: Bahdanau attends with the last state and then runs the cell, Luong runs the cell and then attends."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from backends import BAHDANAU, D_A, D_K, D_V, LUONG, B, D, H, S, T, assert_error_names, cell_weights, luong_call, sizes
from numpy.testing import assert_allclose, assert_array_equal

from attnlib import bahdanau_step, gru_cell, luong_step

D_Y, D_S, D_M, D_H = D, D_K, D_V, T  # widths: input, decoder's state, encoder's state, h~
LN2, LN3 = np.log(2), np.log(3)  # tanh(ln 2) = 3/5, tanh(ln 3) = 4/5
SCORES = ["dot", "general", "concat"]
every_score = pytest.mark.parametrize("score", SCORES)
both_cells = pytest.mark.parametrize("gates", [1, 3], ids=["rnn", "gru"])


def drawn(call, rng):
    """y, state, memory and the parameters of a step, as NumPy arrays."""
    arguments = {name: x / 2 for name, x in call.draw(rng).items()}
    return *(arguments.pop(name) for name in ("y", "state", "memory")), arguments


def bahdanau_arguments(rng, gates=3):
    y, state, memory, params = drawn(BAHDANAU, rng)
    cut = {name: params[name][: gates * D_S] for name in ("w_ih", "w_hh", "b_ih", "b_hh")}
    return y, state, memory, params | cut


def luong_arguments(rng, score, gates=3):
    y, state, memory, params = drawn(luong_call(score, LUONG[score]), rng)
    cut = {name: params[name][: gates * D_S] for name in ("w_ih", "w_hh", "b_ih", "b_hh")}
    return y, state, memory, params | cut


def on(backend, y, state, memory, params):
    return *map(backend.array, (y, state, memory)), {name: backend.array(x) for name, x in params.items()}


def numpy(backend, results):
    return [backend.numpy(x) for x in results]


# The definitions, for one sequence, number by number


def cell_by_the_definition(x, h, w_ih, w_hh, b_ih=None, b_hh=None):
    D_s, rows = len(h), len(w_ih)
    b_ih, b_hh = (np.zeros(rows) if b is None else b for b in (b_ih, b_hh))
    from_x = [sum(w_ih[i, k] * x[k] for k in range(len(x))) + b_ih[i] for i in range(rows)]
    from_h = [sum(w_hh[i, k] * h[k] for k in range(D_s)) + b_hh[i] for i in range(rows)]
    if rows == D_s:
        return np.array([math.tanh(a + b) for a, b in zip(from_x, from_h, strict=True)])
    new = []
    for i in range(D_s):
        r = 1 / (1 + math.exp(-from_x[i] - from_h[i]))
        z = 1 / (1 + math.exp(-from_x[D_s + i] - from_h[D_s + i]))
        n = math.tanh(from_x[2 * D_s + i] + r * from_h[2 * D_s + i])
        new.append((1 - z) * n + z * h[i])
    return np.array(new)


def score_by_the_definition(s, m, params, score):
    if score == "dot":
        return sum(s[i] * m[i] for i in range(len(s)))
    if score == "general":
        return sum(s[i] * params["weight"][i, j] * m[j] for i in range(len(s)) for j in range(len(m)))
    W_a = np.concatenate([params["w_query"], params["w_key"]])  # one matrix for [s; m]
    both = np.concatenate([s, m])
    inner = [math.tanh(sum(both[i] * W_a[i, a] for i in range(len(both)))) for a in range(W_a.shape[1])]
    return sum(params["v"][a] * inner[a] for a in range(len(inner)))


def attend_by_the_definition(s, memory, params, score, allowed=None):
    allowed = [True] * len(memory) if allowed is None else allowed
    e = [
        math.exp(score_by_the_definition(s, m, params, score)) if a else 0 for m, a in zip(memory, allowed, strict=True)
    ]
    weights = [x / sum(e) for x in e]
    return sum(w * m for w, m in zip(weights, memory, strict=True)), np.array(weights)


def cell_of(params):
    return {name: params[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh") if name in params}


def bahdanau_by_the_definition(y, s, memory, params, allowed=None):
    context, weights = attend_by_the_definition(s, memory, params, "concat", allowed)
    return cell_by_the_definition(np.concatenate([y, context]), s, **cell_of(params)), context, weights


def luong_by_the_definition(y, s, memory, params, score, allowed=None):
    s = cell_by_the_definition(y, s, **cell_of(params))
    context, weights = attend_by_the_definition(s, memory, params, score, allowed)
    both = np.concatenate([context, s])
    h = [math.tanh(sum(both[i] * params["w_c"][i, j] for i in range(len(both)))) for j in range(params["w_c"].shape[1])]
    return s, np.array(h), weights


def assert_rows(results, by_the_definition, y, state, memory):
    for b in range(B):
        for ours, theirs in zip(results, by_the_definition(y[b], state[b], memory[b]), strict=True):
            assert_allclose(ours[b], theirs, rtol=1e-11, atol=1e-13)


# Worked by hand


def test_a_step_of_bahdanau_worked_by_hand(backend):
    # Scores v tanh(s w_q + m w_k): s w_q = ln 2 and m w_k = 0, -2 ln 2 give tanh = 3/5, -3/5; v = ln 3 / 1.2 makes the
    # difference ln 3, so the weights are 3/4 and 1/4. c = 3/4 * 0 + 1/4 * 8 = 2. s' = tanh(1 * 5 - 2 * 2 - 1 + ln 3).
    params = {
        "w_query": [[LN2]], "w_key": [[-LN2 / 4]], "v": [LN3 / 1.2],
        "w_ih": [[1.0, -2.0]], "w_hh": [[-1.0]], "b_ih": [LN3], "b_hh": [0.0],
    }  # fmt: skip
    state, context, weights = numpy(backend, bahdanau_step(*on(backend, [[5.0]], [[1.0]], [[[0.0], [8.0]]], params)))
    assert_allclose(weights, [[3 / 4, 1 / 4]], rtol=1e-14)
    assert_allclose(context, [[2]], rtol=1e-14)
    assert_allclose(state, [[4 / 5]], rtol=1e-14)


def test_a_step_of_luong_worked_by_hand(backend):
    # s' = tanh(ln 2 * 3 - ln 2 * 2) = 3/5; scores 3/5 * 0 and 3/5 * 5/3 ln 3 = ln 3: weights 1/4 and 3/4;
    # c = 3/4 * 5/3 ln 3 = 5/4 ln 3; h~ = (tanh(4/5 c), tanh(ln 2 / 0.6 s')) = (tanh(ln 3), tanh(ln 2)).
    params = {"w_ih": [[LN2]], "w_hh": [[-LN2]], "w_c": [[4 / 5, 0.0], [0.0, LN2 / 0.6]]}
    memory = [[[0.0], [5 / 3 * LN3]]]
    state, attentional, weights = numpy(backend, luong_step(*on(backend, [[3.0]], [[2.0]], memory, params)))
    assert_allclose(state, [[3 / 5]], rtol=1e-14)
    assert_allclose(weights, [[1 / 4, 3 / 4]], rtol=1e-14)
    assert_allclose(attentional, [[4 / 5, 3 / 5]], rtol=1e-14)


def test_general_has_the_state_on_the_left_of_its_matrix(backend):
    # s' = (3/5, 0). With W = [[0, 1], [0, 0]], s W m = 3/5 m_2: only the second number of each m counts.
    eye, none = np.eye(2), np.zeros((2, 2))
    params = {"w_ih": eye, "w_hh": none, "weight": [[0.0, 1.0], [0.0, 0.0]], "w_c": np.ones((4, 1))}
    memory = [[[9.0, 0.0], [0.0, 5 / 3 * LN3]]]
    _, _, weights = luong_step(*on(backend, [[LN2, 0.0]], [[0.0, 0.0]], memory, params), score="general")
    assert_allclose(backend.numpy(weights), [[1 / 4, 3 / 4]], rtol=1e-14)


# Against the definition


@both_cells
@pytest.mark.parametrize("biases", [("b_ih", "b_hh"), ("b_ih",), ("b_hh",), ()], ids=str)
def test_a_step_of_bahdanau_is_its_definition(backend, rng, gates, biases):
    y, state, memory, params = bahdanau_arguments(rng, gates)
    params = {name: x for name, x in params.items() if not name.startswith("b_") or name in biases}
    results = numpy(backend, bahdanau_step(*on(backend, y, state, memory, params)))
    assert_rows(results, lambda *row: bahdanau_by_the_definition(*row, params), y, state, memory)


@both_cells
@every_score
@pytest.mark.parametrize("biases", [("b_ih", "b_hh"), ("b_ih",), ("b_hh",), ()], ids=str)
def test_a_step_of_luong_is_its_definition(backend, rng, gates, score, biases):
    y, state, memory, params = luong_arguments(rng, score, gates)
    params = {name: x for name, x in params.items() if not name.startswith("b_") or name in biases}
    results = numpy(backend, luong_step(*on(backend, y, state, memory, params), score=score))
    assert_rows(results, lambda *row: luong_by_the_definition(*row, params, score), y, state, memory)


def test_the_score_of_luong_is_dot_unless_told(backend, rng):
    arguments = on(backend, *luong_arguments(rng, "dot"))
    for ours, theirs in zip(luong_step(*arguments), luong_step(*arguments, score="dot"), strict=True):
        assert_array_equal(backend.numpy(ours), backend.numpy(theirs))


def test_general_with_the_identity_is_dot(backend, rng):
    y, state, memory, params = luong_arguments(rng, "dot")
    dot_ = luong_step(*on(backend, y, state, memory, params))
    general_ = luong_step(*on(backend, y, state, memory, params | {"weight": np.eye(D_S)}), score="general")
    for ours, theirs in zip(general_, dot_, strict=True):
        assert_allclose(backend.numpy(ours), backend.numpy(theirs), rtol=1e-11, atol=1e-13)


# How the two differ


def test_bahdanau_s_weights_do_not_see_the_input(backend, rng):
    y, state, memory, params = bahdanau_arguments(rng)
    before = numpy(backend, bahdanau_step(*on(backend, y, state, memory, params)))
    after = numpy(backend, bahdanau_step(*on(backend, -y, state, memory, params)))
    assert_array_equal(before[1], after[1])
    assert_array_equal(before[2], after[2])
    assert (np.abs(before[0] - after[0]).max(axis=-1) > 0.01).all()


@every_score
def test_luong_s_weights_see_the_input(backend, rng, score):
    y, state, memory, params = luong_arguments(rng, score)
    before = numpy(backend, luong_step(*on(backend, y, state, memory, params), score=score))
    after = numpy(backend, luong_step(*on(backend, -y, state, memory, params), score=score))
    for one, other in zip(before, after, strict=True):
        assert (np.abs(one - other).max(axis=-1) > 0.001).all()


def test_bahdanau_s_state_sees_the_memory(backend, rng):
    y, state, memory, params = bahdanau_arguments(rng)
    before = numpy(backend, bahdanau_step(*on(backend, y, state, memory, params)))
    after = numpy(backend, bahdanau_step(*on(backend, y, state, -memory, params)))
    assert (np.abs(before[0] - after[0]).max(axis=-1) > 0.01).all()


@every_score
def test_luong_s_state_does_not_see_the_memory(backend, rng, score):
    y, state, memory, params = luong_arguments(rng, score)
    before = numpy(backend, luong_step(*on(backend, y, state, memory, params), score=score))
    after = numpy(backend, luong_step(*on(backend, y, state, -memory, params), score=score))
    assert_array_equal(before[0], after[0])
    expected = gru_cell(y, state, **cell_of(params))
    assert_allclose(before[0], expected, rtol=1e-12, atol=1e-14)


# What is true of every step


def steps(rng):
    """Each kind of step with its arguments: (step(y, state, memory, params, mask=None), arguments)."""
    yield bahdanau_step, bahdanau_arguments(rng)
    for score in SCORES:
        yield lambda *a, score=score, **mask: luong_step(*a, score=score, **mask), luong_arguments(rng, score)


every_step = pytest.mark.parametrize("which", range(4), ids=["bahdanau", *SCORES])


def step_of(which, rng):
    return list(steps(rng))[which]


@every_step
def test_weights_are_probabilities(backend, rng, which):
    step, arguments = step_of(which, rng)
    weights = numpy(backend, step(*on(backend, *arguments)))[2]
    assert (weights > 0).all()
    assert_allclose(weights.sum(-1), 1, rtol=1e-12)


@every_step
def test_the_order_of_the_memory_does_not_matter(backend, rng, which):
    step, (y, state, memory, params) = step_of(which, rng)
    order = rng.permutation(S)
    first, second, weights = numpy(backend, step(*on(backend, y, state, memory, params)))
    permuted = numpy(backend, step(*on(backend, y, state, memory[:, order], params)))
    for ours, expected in zip(permuted, (first, second, weights[:, order]), strict=True):
        assert_allclose(ours, expected, rtol=1e-11, atol=1e-13)


@every_step
@pytest.mark.parametrize("lead", [(), (1,), (H, B)], ids=str)
def test_leading_dimensions_are_a_loop(backend, rng, which, lead):
    step, (y, state, memory, params) = step_of(which, rng)
    y, state, memory = (rng.standard_normal((*lead, *x.shape[1:])) for x in (y, state, memory))
    results = numpy(backend, step(*on(backend, y, state, memory, params)))
    for i in np.ndindex(lead):
        alone = step(*on(backend, y[i], state[i], memory[i], params))
        for ours, theirs in zip(results, alone, strict=True):
            assert_allclose(ours[i], backend.numpy(theirs), rtol=1e-11, atol=1e-13)


@every_step
@pytest.mark.parametrize("shared", range(3), ids=["y", "state", "memory"])
def test_what_the_whole_batch_shares_broadcasts(backend, rng, which, shared):
    step, (*arrays, params) = step_of(which, rng)
    alone, repeated = list(arrays), list(arrays)
    alone[shared], repeated[shared] = arrays[shared][0], np.stack([arrays[shared][0]] * B)
    ours, theirs = (numpy(backend, step(*on(backend, *a, params))) for a in (alone, repeated))
    for one, other in zip(ours, theirs, strict=True):
        assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@every_step
def test_vmap_over_everything_but_the_parameters_is_a_loop(rng, which):
    step, (y, state, memory, params) = step_of(which, rng)
    y, state, memory = map(torch.tensor, (y, state, memory))
    params = {name: torch.tensor(x) for name, x in params.items()}
    mask = torch.tensor(rng.random((B, 1, 1, S)) < 0.6)
    ours = torch.func.vmap(lambda y, s, m, mask: step(y, s, m, params, mask=mask))(y, state, memory, mask)
    torch.testing.assert_close(ours, step(y, state, memory, params, mask=mask))


@every_step
def test_a_step_follows_autocast(rng, which):
    step, arguments = step_of(which, rng)
    y, state, memory, params = arguments
    y, state, memory = (torch.tensor(x, dtype=torch.float32) for x in (y, state, memory))
    params = {name: torch.tensor(x, dtype=torch.float32) for name, x in params.items()}
    exact = step(y, state, memory, params)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = step(y.bfloat16(), state, memory, params)
    for ours, theirs in zip(mixed, exact, strict=True):
        torch.testing.assert_close(ours.float(), theirs, atol=0.1, rtol=0.1)


@pytest.mark.slow
@every_step
def test_the_gradient_through_three_steps_is_the_numerical_one(rng, which):
    D_y, D_s, D_m = 2, 3, 3
    step, (*_, params) = step_of(which, rng)
    small = {
        "w_query": (D_s, 2), "w_key": (D_m, 2), "v": (2,), "weight": (D_s, D_m), "w_c": (D_m + D_s, 2),
        **cell_weights(3, D_y + D_m if step is bahdanau_step else D_y, D_s),
    }  # fmt: skip
    shapes = {"y": (3, 2, D_y), "state": (2, D_s), "memory": (2, 4, D_m)} | {name: small[name] for name in params}
    inputs = [torch.tensor(rng.standard_normal(s) / 2, requires_grad=True) for s in shapes.values()]
    mask = torch.tensor([[True, True, False, True], [False] * 4])

    def three(y, state, memory, *values):
        results = []
        for t in range(3):
            state, *seen = step(y[t], state, memory, dict(zip(params, values, strict=True)), mask=mask)
            results += [state, *seen]
        return tuple(results)

    assert torch.autograd.gradcheck(three, inputs)


@every_step
def test_parameters_may_come_in_any_mapping(rng, which):
    step, (y, state, memory, params) = step_of(which, rng)
    y, state, memory = map(torch.tensor, (y, state, memory))
    tensors = {name: torch.tensor(x) for name, x in params.items()}
    expected = step(y, state, memory, tensors)
    torch.testing.assert_close(step(y, state, memory, torch.nn.ParameterDict(tensors)), expected)
    no_bias, zero_bias = tensors | {"b_hh": None}, tensors | {"b_hh": torch.zeros_like(tensors["b_hh"])}
    torch.testing.assert_close(step(y, state, memory, no_bias), step(y, state, memory, zero_bias))


def test_the_parameters_of_all_three_scores_may_lie_together(backend, rng):
    # One dictionary for a comparison of the scores.
    shapes = {"w_c": (2 * D_S, D_H), "weight": (D_S, D_S), "w_query": (D_S, D_A), "w_key": (D_S, D_A), "v": (D_A,)}
    y, state, memory, params = luong_arguments(rng, "dot")
    params |= {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    for score in SCORES:
        results = numpy(backend, luong_step(*on(backend, y, state, memory, params), score=score))
        assert_rows(results, lambda *row, score=score: luong_by_the_definition(*row, params, score), y, state, memory)


def test_a_step_on_numpy_arrays_does_not_import_torch():
    program = """
import sys, numpy as np, attnlib
one = np.ones((1, 1))
cell = dict(w_ih=one, w_hh=one)
attnlib.luong_step(one, one, one[None], dict(cell, w_c=np.ones((2, 1))), mask=one > 0)
hidden = dict(w_query=one, w_key=one, v=one[0])
attnlib.bahdanau_step(one, one, one[None], dict(cell, w_ih=np.ones((1, 2)), **hidden))
attnlib.encode(attnlib.gru_cell, one[None], one, np.ones((3, 1)), np.ones((3, 1)), lengths=[1])
print("torch" in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


# Masks

ALLOWED = np.array([[True, True, False, True, False, False, True], [False, True, True, True, True, True, False]])


@every_step
@pytest.mark.parametrize("form", ["(B, S)", "(B, 1, S)", "(B, 1, 1, S)", "added"])
def test_a_mask_leaves_only_what_it_allows(backend, rng, which, form):
    step, (y, state, memory, params) = step_of(which, rng)
    mask = {
        "(B, S)": backend.array(ALLOWED, "bool"),
        "(B, 1, S)": backend.array(ALLOWED[:, None, :], "bool"),
        "(B, 1, 1, S)": backend.array(ALLOWED[:, None, None, :], "bool"),
        "added": backend.array(np.where(ALLOWED, 0.0, -np.inf)),
    }[form]
    results = numpy(backend, step(*on(backend, y, state, memory, params), mask=mask))
    for b in range(B):
        kept = memory[b : b + 1, ALLOWED[b]]
        alone = numpy(backend, step(*on(backend, y[b : b + 1], state[b : b + 1], kept, params)))
        assert_allclose(results[0][b], alone[0][0], rtol=1e-11, atol=1e-13)
        assert_allclose(results[1][b], alone[1][0], rtol=1e-11, atol=1e-13)
        assert_allclose(results[2][b, ALLOWED[b]], alone[2][0], rtol=1e-11, atol=1e-13)
        assert (results[2][b, ~ALLOWED[b]] == 0).all()


@every_step
def test_a_mask_for_one_query_serves_a_step_without_a_batch(backend, rng, which):
    step, (y, state, memory, params) = step_of(which, rng)
    arguments = on(backend, y[0], state[0], memory[0], params)
    expected = step(*arguments, mask=backend.array(ALLOWED[0], "bool"))
    for mask in (ALLOWED[:1], ALLOWED[:1][None]):
        for ours, theirs in zip(step(*arguments, mask=backend.array(mask, "bool")), expected, strict=True):
            assert_array_equal(backend.numpy(ours), backend.numpy(theirs))


@every_step
def test_one_mask_for_the_whole_batch_broadcasts(backend, rng, which):
    step, arguments = step_of(which, rng)
    arguments = on(backend, *arguments)
    expected = step(*arguments, mask=backend.array(np.stack([ALLOWED[0]] * B), "bool"))
    for mask in (ALLOWED[0], ALLOWED[:1], ALLOWED[:1][:, None], ALLOWED[:1][:, None, None]):
        results = step(*arguments, mask=backend.array(mask, "bool"))
        for ours, theirs in zip(results, expected, strict=True):
            assert_array_equal(backend.numpy(ours), backend.numpy(theirs))


@every_step
def test_a_float_mask_is_added_to_the_scores(backend, rng, which):
    # Weights are exp(score + mask), normalised.
    step, arguments = step_of(which, rng)
    arguments = on(backend, *arguments)
    bias = rng.standard_normal((B, S))
    plain = backend.numpy(step(*arguments)[2]) * np.exp(bias)
    weights = backend.numpy(step(*arguments, mask=backend.array(bias))[2])
    assert_allclose(weights, plain / plain.sum(-1, keepdims=True), rtol=1e-11)


@every_step
def test_with_nothing_to_attend_to_the_context_is_0(backend, rng, which):
    step, (y, state, memory, params) = step_of(which, rng)
    mask = backend.array([[False] * S, [True] * S], "bool")
    ours = numpy(backend, step(*on(backend, y, state, memory, params), mask=mask))
    empty = numpy(backend, step(*on(backend, y, state, 0 * memory, params)))  # whose context is 0 as well
    assert_array_equal(ours[2][0], np.zeros(S))
    assert_allclose(ours[0][0], empty[0][0], rtol=1e-12, atol=1e-14)
    assert_allclose(ours[1][0], empty[1][0], rtol=1e-12, atol=1e-14)


@every_step
def test_with_nothing_to_attend_to_gradients_are_finite(rng, which):
    step, (y, state, memory, params) = step_of(which, rng)
    inputs = [torch.tensor(x, requires_grad=True) for x in (y, state, memory)]
    params = {name: torch.tensor(x, requires_grad=True) for name, x in params.items()}
    mask = torch.tensor([[False] * S, [True] * S])
    sum(x.square().sum() for x in step(*inputs, params, mask=mask)).backward()
    for x in (*inputs, *params.values()):
        assert x.grad.isfinite().all()
    assert (inputs[2].grad[0] == 0).all()
    assert (inputs[2].grad[1] != 0).any()


def test_a_memory_of_no_states_gives_nothing_to_attend_to(backend, rng):
    y, state, memory, params = bahdanau_arguments(rng)
    _, context, weights = numpy(backend, bahdanau_step(*on(backend, y, state, memory[:, :0], params)))
    assert weights.shape == (B, 0)
    assert_array_equal(context, np.zeros((B, D_M)))


# Errors


def bahdanau(z, y=(B, D_Y), state=(B, D_S), memory=(B, S, D_M), mask=None, without=(), **changed):
    params = {name: shape for name, shape in BAHDANAU.arguments.items() if name not in ("y", "state", "memory")}
    params = {name: z(*shape) for name, shape in (params | changed).items() if name not in without}
    return bahdanau_step(z(*y), z(*state), z(*memory), params, mask=mask)


def luong(z, score="general", y=(B, D_Y), state=(B, D_S), memory=(B, S, D_M), mask=None, without=(), **changed):
    params = LUONG.get(score, {}) | cell_weights(3, D_Y, D_S)
    params = {name: z(*shape) for name, shape in (params | changed).items() if name not in (*without, "memory")}
    return luong_step(z(*y), z(*state), z(*memory), params, score=score, mask=mask)


ERRORS = {
    # names
    "bahdanau without a parameter": (
        lambda z: bahdanau(z, without=("w_key",)), ValueError,
        [r"missing \['w_key'\]", r"bahdanau_step needs \['w_query', 'w_key', 'v', 'w_ih', 'w_hh'\]", "got .*'w_query'"],
    ),
    "bahdanau without any parameter": (
        lambda z: bahdanau_step(z(B, D_Y), z(B, D_S), z(B, S, D_M), {}), ValueError, ["missing .*'v'.*'w_hh'"],
    ),
    "bahdanau with a parameter that nobody knows": (
        lambda z: bahdanau(z, w_c=(D_M, D_M)), ValueError, [r"unknown \['w_c'\]", "'w_query'", "'b_ih'"],
    ),
    "bahdanau with parameters in a list": (
        lambda z: bahdanau_step(z(B, D_Y), z(B, D_S), z(B, S, D_M), [z(D_S, D_A)]), TypeError,
        ["params", "list", "mapping"],
    ),
    "luong without a parameter of its score": (
        lambda z: luong(z, without=("weight",)), ValueError, [r"missing \['weight'\]", "'general'", "luong_step"],
    ),
    "luong without w_c": (
        lambda z: luong(z, without=("w_c",)), ValueError, [r"missing \['w_c'\]"],
    ),
    "luong with a parameter misspelt": (
        lambda z: luong(z, without=("weight",), weights=(D_S, D_M)), ValueError,
        [r"missing \['weight'\], unknown \['weights'\]"],
    ),
    "luong with an unknown score": (
        lambda z: luong(z, score="cosine"), ValueError, ["score", "'cosine'", "'dot'", "'general'", "'concat'"],
    ),
    "luong with a function as score": (
        lambda z: luong(z, score=max), ValueError, ["score", "max", "'dot'"],
    ),
    # shapes
    "bahdanau of a number": (lambda z: bahdanau(z, y=()), ValueError, ["y", sizes()]),
    "bahdanau from a state that is a number": (lambda z: bahdanau(z, state=()), ValueError, ["state", sizes()]),
    "bahdanau with one state as memory": (lambda z: bahdanau(z, memory=(D_M,)), ValueError, ["memory", sizes(D_M)]),
    "bahdanau of another batch": (
        lambda z: bahdanau(z, y=(H, D_Y)), ValueError, [sizes(H, D_Y), sizes(B, D_S), sizes(B, S, D_M)],
    ),
    "bahdanau with the memory of another batch": (
        lambda z: bahdanau(z, memory=(H, S, D_M)), ValueError, [sizes(B, D_S), sizes(H, S, D_M)],
    ),
    "bahdanau with w_query transposed": (
        lambda z: bahdanau(z, w_query=(D_A, D_S)), ValueError,
        ["w_query", sizes(D_A, D_S), sizes(D_S, D_A), sizes(B, D_S)],
    ),
    "bahdanau with w_key of another width": (
        lambda z: bahdanau(z, w_key=(D_S, D_A)), ValueError, ["w_key", sizes(D_S, D_A), sizes(D_M, D_A)],
    ),
    "bahdanau with v as a column": (
        lambda z: bahdanau(z, v=(D_A, 1)), ValueError, ["^v ", sizes(D_A, 1), r"\(D_a,\)"],
    ),
    "bahdanau with a cell that has no place for the context": (
        lambda z: bahdanau(z, w_ih=(3 * D_S, D_Y)), ValueError,
        ["w_ih", sizes(3 * D_S, D_Y), sizes(3 * D_S, D_Y + D_M), sizes(B, D_Y), sizes(B, S, D_M)],
    ),
    "bahdanau with a w_ih for gates and a w_hh without": (
        lambda z: bahdanau(z, w_hh=(D_S, D_S)), ValueError, ["w_hh", sizes(D_S, D_S), sizes(3 * D_S, D_S)],
    ),
    "bahdanau with a bias of 1 that would broadcast": (
        lambda z: bahdanau(z, b_ih=(1,)), ValueError, ["b_ih", sizes(1), sizes(3 * D_S)],
    ),
    "luong with dot of two widths": (
        lambda z: luong(z, score="dot"), ValueError,
        [sizes(B, D_S), sizes(B, S, D_M), "'dot'", f"D_s={D_S}", f"D_m={D_M}", "'general'"],
    ),
    "luong with its weight transposed": (
        lambda z: luong(z, weight=(D_M, D_S)), ValueError, ["weight", sizes(D_M, D_S), sizes(D_S, D_M)],
    ),
    "luong with w_c for the context alone": (
        lambda z: luong(z, w_c=(D_M, D_H)), ValueError, ["w_c", sizes(D_M, D_H), r"\(30, D_h\)"],
    ),
    "luong with a vector as w_c": (
        lambda z: luong(z, w_c=(D_M + D_S,)), ValueError, ["w_c", sizes(D_M + D_S), r"\(30, D_h\)"],
    ),
    "luong with a cell that expects the context": (
        lambda z: luong(z, w_ih=(3 * D_S, D_Y + D_M)), ValueError, ["w_ih", sizes(3 * D_S, D_Y)],
    ),
    "luong of another batch": (
        lambda z: luong(z, state=(H, D_S)), ValueError, [sizes(B, D_Y), sizes(H, D_S)],
    ),
    # masks
    "bahdanau with a mask of another S": (
        lambda z: bahdanau(z, mask=z(B, T, dtype="bool")), ValueError,
        ["mask", sizes(B, T), sizes(B, S), "padding_mask"],
    ),
    "bahdanau with a mask of another batch": (
        lambda z: bahdanau(z, mask=z(H, S, dtype="bool")), ValueError, ["mask", sizes(H, S), sizes(B, S)],
    ),
    "bahdanau with a mask for several queries": (
        lambda z: bahdanau(z, mask=z(B, T, S, dtype="bool")), ValueError,
        ["mask", sizes(B, T, S), sizes(B, S), r"\(B, 1, S\)"],
    ),
    "luong with a mask for one query of another batch": (
        lambda z: luong(z, mask=z(H, 1, S, dtype="bool")), ValueError, ["mask", sizes(H, 1, S), sizes(B, S)],
    ),
    "bahdanau with a mask for heads": (
        lambda z: bahdanau(z, mask=z(B, H, 1, S, dtype="bool")), ValueError, ["mask", sizes(B, H, 1, S), sizes(B, S)],
    ),
    "bahdanau with a mask that would enlarge the batch": (
        lambda z: bahdanau(z, y=(1, D_Y), state=(1, D_S), memory=(1, S, D_M), mask=z(B, S, dtype="bool")), ValueError,
        ["mask", sizes(B, S), sizes(1, S)],
    ),
    "bahdanau with a number as mask": (
        lambda z: bahdanau(z, mask=z(dtype="bool")), ValueError, ["mask", sizes(), sizes(B, S)],
    ),
    "luong with a mask of another S": (
        lambda z: luong(z, mask=z(B, T, dtype="bool")), ValueError, ["mask", sizes(B, T), sizes(B, S)],
    ),
    "luong with a mask of integers": (
        lambda z: luong(z, mask=z(B, S, dtype="int64")), TypeError, ["mask", "int64"],
    ),
    "luong with a list as mask": (
        lambda z: luong(z, mask=[[True] * S] * B), TypeError, ["mask", "list"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came_to_a_step(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)
