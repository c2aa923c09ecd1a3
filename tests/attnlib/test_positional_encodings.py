"""Positions: sinusoids, rotations, slopes and buckets, each against its definition and what follows from it."""

import functools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import B, D, H, OnMeta, S, T, assert_error_names, dtype_name, examples, sizes
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from attnlib import (
    RopeScaling,
    alibi_bias,
    alibi_slopes,
    apply_rope,
    attention,
    dot,
    relative_buckets,
    rope_tables,
    sinusoidal_positions,
)
from attnlib._arrays import widest_float

WIDTH = 5  # pairs of components
EVEN = 2 * WIDTH
HALF_STEP = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-52}
layouts = pytest.mark.parametrize("interleaved", [False, True], ids=["half-split", "interleaved"])


def like(backend, dtype="float64"):
    return backend.array(np.ones((1, 1, 1)), dtype)


def angle(t, k, D, base):
    return t / base ** (2 * k / D)


# Sinusoids


def test_sinusoids_worked_by_hand(backend):
    # base 4 and D = 4: frequencies 1 and 1/2
    ours = sinusoidal_positions(3, 4, base=4.0, like=like(backend))
    s, c = math.sin, math.cos
    expected = [[0, 1, 0, 1], [s(1), c(1), s(0.5), c(0.5)], [s(2), c(2), s(1), c(1)]]
    assert_allclose(backend.numpy(ours), expected, rtol=1e-14)
    ours = sinusoidal_positions(3, 4, base=4.0, interleaved=False, like=like(backend))
    assert_allclose(backend.numpy(ours), np.array(expected)[:, [0, 2, 1, 3]], rtol=1e-14)


@pytest.mark.parametrize("base", [10000.0, 10000, 7.5, 1])
def test_sinusoids_are_their_definition(backend, base):
    ours = backend.numpy(sinusoidal_positions(T, EVEN, base=base, like=like(backend)))
    assert ours.shape == (T, EVEN)
    for t in range(T):
        for k in range(WIDTH):
            theta = angle(t, k, EVEN, base)
            assert_allclose(ours[t, 2 * k : 2 * k + 2], [math.sin(theta), math.cos(theta)], rtol=1e-13)


def test_the_base_is_10000_unless_told(backend):
    default, told = (backend.numpy(sinusoidal_positions(T, 4, like=like(backend), **b)) for b in ({}, {"base": 1e4}))
    assert_array_equal(default, told)
    assert_allclose(default[:, 2], np.sin(np.arange(T) / 100), rtol=1e-14)


def test_sines_and_cosines_apart_are_the_same_numbers(backend):
    apart = backend.numpy(sinusoidal_positions(T, EVEN, interleaved=False, like=like(backend)))
    together = backend.numpy(sinusoidal_positions(T, EVEN, like=like(backend)))
    assert_array_equal(apart[:, :WIDTH], together[:, 0::2])
    assert_array_equal(apart[:, WIDTH:], together[:, 1::2])


@examples
@given(st.integers(0, 20), st.integers(0, 20))
def test_moving_on_by_n_is_one_rotation_wherever_one_stands(backend, p, n):
    table = backend.numpy(sinusoidal_positions(41, EVEN, base=100.0, like=like(backend)))
    rotation = np.zeros((EVEN, EVEN))
    for k in range(WIDTH):
        theta = angle(n, k, EVEN, 100.0)
        c, s = math.cos(theta), math.sin(theta)
        rotation[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[c, s], [-s, c]]
    assert_allclose(rotation @ table[p], table[p + n], atol=1e-13)


def test_every_sinusoidal_vector_has_the_same_length(backend):
    table = backend.numpy(sinusoidal_positions(97, EVEN, like=like(backend)))
    assert_allclose((table**2).sum(axis=-1), WIDTH, rtol=1e-13)


def test_far_positions_are_as_exact_as_the_dtype(typed):
    # In float32 the angle 9999 alone is wrong by up to 2^-11, its sine by as much.
    backend, dtype = typed
    ours = backend.numpy(sinusoidal_positions(10000, 4, like=like(backend, dtype)))[-1]
    exact = [math.sin(9999), math.cos(9999), math.sin(99.99), math.cos(99.99)]
    assert_allclose(ours, exact, rtol=HALF_STEP[dtype], atol=1e-12 if dtype == "float64" else 0)


def test_without_like_sinusoids_are_float64_of_numpy():
    table = sinusoidal_positions(T, EVEN)
    assert (type(table), table.dtype) == (np.ndarray, np.float64)


@pytest.mark.parametrize(("length", "width"), [(0, EVEN), (T, 0), (0, 0)])
@pytest.mark.parametrize("interleaved", [True, False])
def test_no_positions_or_no_width_are_an_empty_table(backend, length, width, interleaved):
    table = sinusoidal_positions(length, width, interleaved=interleaved, like=like(backend))
    assert tuple(table.shape) == (length, width)


# Tables of angles


@pytest.mark.parametrize("base", [10000.0, 500000, 3.5])
@pytest.mark.parametrize("shape", [(T,), (B, 1, T), (0,)])
def test_tables_hold_the_cosines_and_sines_of_the_angles(backend, rng, base, shape):
    positions = rng.integers(0, 50, shape)
    cos, sin = rope_tables(backend.array(positions, "float64"), EVEN, base=base)
    assert tuple(cos.shape) == tuple(sin.shape) == (*shape, WIDTH)
    for k in range(WIDTH):
        theta = angle(positions, k, EVEN, base)
        assert_allclose(backend.numpy(cos)[..., k], np.cos(theta), rtol=1e-12, atol=1e-14)
        assert_allclose(backend.numpy(sin)[..., k], np.sin(theta), rtol=1e-12, atol=1e-14)


def test_the_base_of_tables_is_10000_unless_told(backend):
    _, sin = rope_tables(backend.array([1.0]), 4)
    assert_allclose(backend.numpy(sin), [[math.sin(1), math.sin(0.01)]], rtol=1e-14)


def test_tables_are_sinusoids_apart(backend):
    cos, sin = (backend.numpy(t) for t in rope_tables(backend.array(np.arange(T)), EVEN))
    table = backend.numpy(sinusoidal_positions(T, EVEN, interleaved=False, like=like(backend)))
    assert_allclose(np.concatenate([sin, cos], -1), table, rtol=1e-14)


def test_positions_may_be_fractions_and_negative(backend):
    cos, sin = rope_tables(backend.array([-1.5, 0.25]), 2)
    assert_allclose(backend.numpy(cos), [[math.cos(1.5)], [math.cos(0.25)]], rtol=1e-14)
    assert_allclose(backend.numpy(sin), [[-math.sin(1.5)], [math.sin(0.25)]], rtol=1e-14)


@pytest.mark.parametrize("positions", [[0, 1, 2], (0, 1, 2), range(3), [0.0, 1.0, 2.0]])
def test_a_list_of_positions_gives_numpy(positions):
    for ours, theirs in zip(rope_tables(positions, EVEN), rope_tables(np.arange(3), EVEN), strict=True):
        assert (type(ours), ours.dtype) == (np.ndarray, np.float64)
        assert_array_equal(ours, theirs)


def test_an_empty_list_of_positions_gives_empty_tables():
    assert [t.shape for t in rope_tables([], EVEN)] == [(0, WIDTH)] * 2


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integer_positions_give_the_library_s_default_dtype(backend, dtype):
    expected = "float64" if str(backend) == "numpy" else "float32"
    assert [dtype_name(t) for t in rope_tables(backend.array([1, 200], dtype), EVEN)] == [expected] * 2


def test_integer_positions_need_nothing_that_numpy_2_0_lacks(monkeypatch):
    monkeypatch.delattr(np, "__array_namespace_info__")
    cos, _ = rope_tables(np.arange(3), EVEN)
    assert cos.dtype == np.float64


def test_the_default_dtype_of_torch_can_be_set():
    torch.set_default_dtype(torch.float64)
    try:
        cos, _ = rope_tables(torch.arange(T), EVEN)
    finally:
        torch.set_default_dtype(torch.float32)
    assert cos.dtype == torch.float64


def test_far_positions_in_tables_are_as_exact_as_the_dtype():
    cos, sin = rope_tables(torch.tensor([100003]), 4)
    for ours, function in ((cos, math.cos), (sin, math.sin)):
        assert_allclose(ours[0].double().numpy(), [function(100003), function(1000.03)], rtol=2**-24)


# Frequencies for long texts


def test_scaled_frequencies_worked_by_hand(backend):
    # Within L = 1 position these pairs turn 16, 8, 4 and 2 times; the third is a quarter of the way from 3 to 7 turns.
    scaling = RopeScaling(5.0, low_freq_factor=3.0, high_freq_factor=7.0, original_length=1)
    frequencies = backend.array([16.0, 8.0, 4.0, 2.0]) * (2 * math.pi)
    turned = [16.0, 8.0, (0.75 / 5 + 0.25) * 4.0, 2.0 / 5]
    assert_allclose(backend.numpy(scaling.scaled(frequencies)), np.array(turned) * 2 * math.pi, rtol=1e-14)


def llama3_frequency(frequency, factor, low, high, length):
    """The authors' program: llama-models, models/llama3/model.py, apply_scaling."""
    wavelength = 2 * math.pi / frequency
    if wavelength < length / high:
        return frequency
    if wavelength > length / low:
        return frequency / factor
    smooth = (length / wavelength - low) / (high - low)
    return (1 - smooth) * frequency / factor + smooth * frequency


@pytest.mark.parametrize("length", [17, 64, 8192])
def test_scaled_tables_are_those_of_the_authors_program(backend, rng, length):
    positions = rng.integers(0, 50, (B, T))
    scaling = RopeScaling(8.0, 1.5, 5.0, length)
    cos, sin = rope_tables(backend.array(positions, "float64"), EVEN, base=100.0, scaling=scaling)
    frequencies = np.array([llama3_frequency(100.0 ** (-k / WIDTH), 8.0, 1.5, 5.0, length) for k in range(WIDTH)])
    assert_allclose(backend.numpy(cos), np.cos(positions[..., None] * frequencies), rtol=1e-12)
    assert_allclose(backend.numpy(sin), np.sin(positions[..., None] * frequencies), rtol=1e-12, atol=1e-15)


def test_a_factor_of_1_changes_nothing(backend):
    positions = backend.array(np.arange(T))
    plain, scaled = rope_tables(positions, EVEN), rope_tables(positions, EVEN, scaling=RopeScaling(1.0))
    for one, other in zip(plain, scaled, strict=True):
        assert_allclose(backend.numpy(one), backend.numpy(other), rtol=1e-14)


def test_scaling_keeps_the_order_of_the_frequencies_and_lowers_them_by_no_more_than_the_factor():
    frequencies = np.geomspace(1e-6, 1.0, 4001)
    scaled = RopeScaling(8.0).scaled(frequencies)
    assert (np.diff(scaled) > 0).all()
    assert (scaled <= frequencies).all()
    assert (scaled >= frequencies / 8 * (1 - 1e-14)).all()


@pytest.mark.parametrize(
    ("changes", "exception", "words"),
    [
        ({"factor": 0.5}, ValueError, "factor is 0.5"),
        ({"factor": math.inf}, ValueError, "factor is inf"),
        ({"factor": "8"}, TypeError, "factor is '8'"),
        ({"low_freq_factor": 4.0}, ValueError, "low_freq_factor is 4.0 and high_freq_factor 4.0"),
        ({"low_freq_factor": 0.0}, ValueError, "low_freq_factor is 0.0"),
        ({"high_freq_factor": math.nan}, ValueError, "high_freq_factor nan"),
        ({"original_length": 0}, ValueError, "original_length is 0"),
        ({"original_length": 8.5}, TypeError, "original_length is 8.5"),
    ],
)
def test_impossible_scaling_is_refused(changes, exception, words):
    with pytest.raises(exception, match=words):
        RopeScaling(**{"factor": 8.0} | changes)


# Rotations


def rotated(x, positions, D, base, interleaved):
    """RoPE by its definition as a product of complex numbers, pair by pair; x (..., T, D)."""
    y = np.array(x)
    for k in range(D // 2):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + D // 2)
        turn = np.exp(1j * positions / base ** (2 * k / D))
        z = (x[..., a] + 1j * x[..., b]) * turn
        y[..., a], y[..., b] = z.real, z.imag
    return y


def test_a_quarter_turn_worked_by_hand(backend):
    x, cos, sin = (backend.array(z) for z in ([[1.0, 2, 3, 4]], [[0.0, 1]], [[1.0, 0]]))
    assert_array_equal(backend.numpy(apply_rope(x, cos, sin)), [[-3, 2, 1, 4]])
    assert_array_equal(backend.numpy(apply_rope(x, cos, sin, interleaved=True)), [[-2, 1, 3, 4]])


@layouts
@pytest.mark.parametrize("leading", [(), (B,), (B, H)])
def test_rope_multiplies_pairs_by_complex_numbers(backend, rng, interleaved, leading):
    x = rng.standard_normal((*leading, T, EVEN))
    positions = rng.permutation(50)[:T]
    cos, sin = rope_tables(backend.array(positions, "float64"), EVEN, base=77.0)
    ours = apply_rope(backend.array(x), cos, sin, interleaved=interleaved)
    assert_allclose(backend.numpy(ours), rotated(x, positions, EVEN, 77.0, interleaved), rtol=1e-11, atol=1e-13)


def test_half_split_is_the_formula_of_llama(backend, rng):
    # x * cos + rotate_half(x) * sin, with tables that hold every angle twice
    x, theta = rng.standard_normal((T, EVEN)), rng.standard_normal((T, WIDTH))
    twice = np.concatenate([theta, theta], -1)
    rotate_half = np.concatenate([-x[:, WIDTH:], x[:, :WIDTH]], -1)
    ours = apply_rope(*(backend.array(z) for z in (x, np.cos(theta), np.sin(theta))))
    assert_allclose(backend.numpy(ours), x * np.cos(twice) + rotate_half * np.sin(twice), rtol=1e-11, atol=1e-13)


@layouts
def test_a_narrow_table_turns_the_first_components_and_passes_the_rest(backend, rng, interleaved):
    x = rng.standard_normal((B, T, D))
    for width in range(D // 2 + 1):
        cos, sin = rope_tables(backend.array(np.arange(T)), 2 * width)
        ours = backend.numpy(apply_rope(backend.array(x), cos, sin, interleaved=interleaved))
        first = rotated(x[..., : 2 * width], np.arange(T), 2 * width, 10000.0, interleaved)
        assert_allclose(ours[..., : 2 * width], first, rtol=1e-11, atol=1e-13)
        assert_array_equal(ours[..., 2 * width :], x[..., 2 * width :])


def test_the_two_layouts_are_permutations_of_each_other(backend, rng):
    x = rng.standard_normal((B, T, EVEN))
    cos, sin = rope_tables(backend.array(np.arange(T)), EVEN)
    order = [*range(0, EVEN, 2), *range(1, EVEN, 2)]  # first components of the pairs, then second ones
    half = backend.numpy(apply_rope(backend.array(x[..., order]), cos, sin))
    pairs = backend.numpy(apply_rope(backend.array(x), cos, sin, interleaved=True))
    assert_allclose(half, pairs[..., order], rtol=1e-14)


@layouts
@examples
@given(st.integers(0, 1000))
def test_scores_depend_on_distances_only(backend, interleaved, shift):
    rng = np.random.default_rng(shift)
    query, key = (backend.array(rng.standard_normal((n, D))) for n in (T, S))

    def scores(first):
        q = apply_rope(query, *rope_tables(backend.array(first + np.arange(T)), EVEN), interleaved=interleaved)
        k = apply_rope(key, *rope_tables(backend.array(first + np.arange(S)), EVEN), interleaved=interleaved)
        return backend.numpy(dot(q, k))

    assert_allclose(scores(shift), scores(0), rtol=1e-9, atol=1e-11)


@layouts
def test_turning_on_by_n_positions_twice_is_turning_by_2n(backend, rng, interleaved):
    x = backend.array(rng.standard_normal((T, EVEN)))
    once, twice = (rope_tables(backend.array(np.full(T, n)), EVEN) for n in (3.0, 6.0))
    again = apply_rope(apply_rope(x, *once, interleaved=interleaved), *once, interleaved=interleaved)
    ours = apply_rope(x, *twice, interleaved=interleaved)
    assert_allclose(backend.numpy(again), backend.numpy(ours), rtol=1e-12, atol=1e-14)


@layouts
def test_rotations_keep_lengths_and_position_0_stays(backend, rng, interleaved):
    x = rng.standard_normal((B, T, EVEN))
    cos, sin = rope_tables(backend.array(np.arange(T)), EVEN)
    ours = backend.numpy(apply_rope(backend.array(x), cos, sin, interleaved=interleaved))
    assert_allclose(np.linalg.norm(ours, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-13)
    assert_array_equal(ours[:, 0], x[:, 0])
    assert (ours[:, 1:] != x[:, 1:]).all()


@pytest.mark.parametrize("leading", [(), (1,), (H,), (1, 1), (B, 1), (1, H), (B, H)])
def test_tables_broadcast_to_the_leading_dimensions(backend, rng, leading):
    x, theta = rng.standard_normal((B, H, T, D)), rng.standard_normal((*leading, T, WIDTH))
    ours = apply_rope(*(backend.array(z) for z in (x, np.cos(theta), np.sin(theta))))
    full = np.broadcast_to(theta, (B, H, T, WIDTH))
    for b in range(B):
        for h in range(H):
            one = apply_rope(*(backend.array(z) for z in (x[b, h], np.cos(full[b, h]), np.sin(full[b, h]))))
            assert_allclose(backend.numpy(ours)[b, h], backend.numpy(one), rtol=1e-14)


def test_every_sequence_may_have_positions_of_its_own(backend, rng):
    x, positions = rng.standard_normal((B, H, T, EVEN)), rng.permutation(B * T).reshape(B, 1, T)
    ours = apply_rope(backend.array(x), *rope_tables(backend.array(positions, "float64"), EVEN))
    assert_allclose(backend.numpy(ours), rotated(x, positions, EVEN, 1e4, False), rtol=1e-11, atol=1e-13)


def test_one_new_vector_is_turned_as_in_the_whole_sequence(backend, rng):
    x = rng.standard_normal((B, T, EVEN))
    cos, sin = rope_tables(backend.array(np.arange(T)), EVEN)
    whole = backend.numpy(apply_rope(backend.array(x), cos, sin))
    step = apply_rope(backend.array(x[:, 3:4]), *rope_tables(backend.array([3.0]), EVEN))
    assert_allclose(backend.numpy(step), whole[:, 3:4], rtol=1e-14)


@pytest.mark.parametrize("tables", ["float16", "float32", "float64"])
def test_tables_may_have_another_dtype_than_what_they_turn(typed, rng, tables):
    backend, dtype = typed
    x, theta = rng.standard_normal((B, T, EVEN)), rng.uniform(-3, 3, (T, WIDTH))
    x, cos, sin = backend.array(x, dtype), *(backend.array(f(theta), tables) for f in (np.cos, np.sin))
    ours = apply_rope(x, cos, sin)
    assert dtype_name(ours) == dtype
    a, b, c, s = *np.split(backend.numpy(x), 2, axis=-1), backend.numpy(cos), backend.numpy(sin)
    exact = np.concatenate([a * c - b * s, b * c + a * s], -1)
    # One rounding to the dtype of x, and float32's own beside it: in float16 throughout it would be several.
    assert_allclose(
        backend.numpy(ours), exact, rtol=1.01 * HALF_STEP[dtype], atol=16 * max(2**-53, min(HALF_STEP[dtype], 2**-24))
    )


def test_nothing_to_turn_is_nothing(backend):
    cos = backend.array(np.ones((0, WIDTH)))
    assert tuple(apply_rope(backend.array(np.ones((B, 0, EVEN))), cos, cos).shape) == (B, 0, EVEN)


@layouts
def test_the_gradient_is_the_rotation_back(rng, interleaved):
    x = torch.tensor(rng.standard_normal((B, T, D)), requires_grad=True)
    cos, sin = rope_tables(torch.arange(T, dtype=torch.float64), EVEN)
    assert torch.autograd.gradcheck(lambda x, c, s: apply_rope(x, c, s, interleaved=interleaved), (x, cos, sin))
    grad = torch.tensor(rng.standard_normal((B, T, D)))
    (ours,) = torch.autograd.grad(apply_rope(x, cos, sin, interleaved=interleaved), x, grad)
    torch.testing.assert_close(ours, apply_rope(grad, cos, -sin, interleaved=interleaved))


def test_autocast_may_mix_dtypes():
    x, table = torch.ones(T, EVEN), torch.zeros(T, WIDTH, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert apply_rope(x, table, table).dtype == torch.float32


# ALiBi


def slopes_of_the_authors(H):
    """The program of Press, Smith and Lewis, rewritten: a geometric sequence, or two of them interleaved."""
    if math.log2(H).is_integer():
        start = 2 ** (-(2 ** -(math.log2(H) - 3)))
        return [start ** (h + 1) for h in range(H)]
    closest = 2 ** math.floor(math.log2(H))
    return slopes_of_the_authors(closest) + slopes_of_the_authors(2 * closest)[0::2][: H - closest]


@pytest.mark.parametrize(
    ("H", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
        (16, [h / 2 for h in range(1, 17)]),
    ],
)
def test_slopes_worked_by_hand(typed, H, exponents):
    backend, dtype = typed
    ours = alibi_slopes(H, like=like(backend, dtype))
    assert dtype_name(ours) == dtype
    assert_allclose(backend.numpy(ours), [2.0**-e for e in exponents], rtol=HALF_STEP[dtype])


def test_slopes_are_those_of_the_authors_program(backend):
    for heads in range(1, 70):
        ours = backend.numpy(alibi_slopes(heads, like=like(backend)))
        assert_allclose(ours, slopes_of_the_authors(heads), rtol=1e-13)


def test_the_bias_of_the_paper_s_figure(backend):
    # Figure 3: minus the distance, times the slope; for one head the slope is 2^-8.
    ours = backend.numpy(alibi_bias(1, 3, 3, like=like(backend)))[0] * 2**8
    assert_array_equal(np.tril(ours), [[0, 0, 0], [-1, 0, 0], [-2, -1, 0]])


@examples
@given(st.integers(1, 7), st.integers(0, 6), st.integers(0, 6), st.integers(-9, 9))
def test_the_bias_is_minus_slope_times_distance(backend, H, T, S, q_offset):
    ours = backend.numpy(alibi_bias(H, T, S, q_offset=q_offset, like=like(backend)))
    assert ours.shape == (H, T, S)
    for h, slope in enumerate(slopes_of_the_authors(H)):
        for i in range(T):
            for j in range(S):
                assert_allclose(ours[h, i, j], -slope * abs(i + q_offset - j), rtol=1e-13)


def test_wherever_the_key_is_not_after_the_query_it_is_the_paper_s_slope_times_j_minus_i(backend):
    ours = backend.numpy(alibi_bias(H, S, S, like=like(backend)))
    for i in range(S):
        for j in range(i + 1):
            assert_allclose(ours[:, i, j], np.array(slopes_of_the_authors(H)) * (j - i), rtol=1e-13)


def test_the_bias_on_the_diagonal_is_plain_zero_and_elsewhere_symmetric_and_negative(typed):
    backend, dtype = typed
    ours = backend.numpy(alibi_bias(H, T, T, like=like(backend, dtype)))
    diagonal = ours[:, range(T), range(T)]
    assert_array_equal(diagonal, 0)
    assert not np.signbit(diagonal).any()
    assert_array_equal(ours, ours.swapaxes(-1, -2))
    assert (ours[:, ~np.eye(T, dtype=bool)] < 0).all()


def test_the_queries_behind_a_cache_have_the_last_rows_of_the_whole_bias(backend):
    whole = backend.numpy(alibi_bias(H, S, S, like=like(backend)))
    for cached in range(S + 1):
        step = alibi_bias(H, S - cached, S, q_offset=cached, like=like(backend))
        assert_array_equal(backend.numpy(step), whole[:, cached:])


@pytest.mark.parametrize(("H", "distance"), [(8, 100001), (12, 4099)])
def test_far_distances_are_as_exact_as_the_dtype(typed, H, distance):
    # 100001 is beyond float16, half of it is not; 4099 lies between two float16, and so does a slope of 1/sqrt(2).
    backend, dtype = typed
    ours = backend.numpy(alibi_bias(H, 1, 1, q_offset=distance, like=like(backend, dtype)))
    exact = -distance * np.array(slopes_of_the_authors(H))
    assert_allclose(ours[:, 0, 0], exact, rtol=HALF_STEP[dtype] + (1e-13 if dtype == "float64" else 2**-23))


def test_the_bias_serves_as_a_mask_of_attention(typed, rng):
    backend, dtype = typed
    query, key = (backend.array(rng.standard_normal((B, H, n, D)), dtype) for n in (T, S))
    _, weights = attention(query, key, key, mask=alibi_bias(H, T, S, like=query))
    assert tuple(weights.shape) == (B, H, T, S)


def test_without_like_alibi_is_float64_of_numpy():
    for ours in (alibi_slopes(H), alibi_bias(H, T, S)):
        assert (type(ours), ours.dtype) == (np.ndarray, np.float64)


# T5's buckets


@functools.cache
def bucket_of_t5(relative, num_buckets, max_distance, bidirectional):
    """The authors' formula for one distance, in float32 as their program takes it."""
    bucket, n = 0, num_buckets
    if bidirectional:
        n //= 2
        bucket = n if relative > 0 else 0
        distance = abs(relative)
    else:
        distance = max(-relative, 0)
    exact = n // 2
    if distance < exact:
        return bucket + distance
    logarithm = log_of_t5(distance, exact) / math.log(max_distance / exact)
    return bucket + min(exact + int(logarithm * (n - exact)), n - 1)


@functools.cache
def log_of_t5(distance, exact):
    """The logarithm in the authors' formula, which keys before and after the query and every maximum share."""
    return torch.log(torch.tensor(float(distance)) / exact)


def test_buckets_worked_by_hand(backend):
    # 16 buckets a side, 8 of them for one distance each; the others begin at 8 * 2^(m/2).
    starts = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    buckets = backend.numpy(relative_buckets(1, 200, like=like(backend)))[0]  # keys after the query
    assert_array_equal(np.flatnonzero(np.diff(buckets)) + 1, starts[1:])
    assert_array_equal(buckets[starts], [0, *range(17, 32)])
    before = backend.numpy(relative_buckets(200, 1, like=like(backend)))[:, 0]
    assert_array_equal(before[starts], range(16))
    assert before[199] == 15


def test_causal_buckets_worked_by_hand(backend):
    # 8 buckets, 4 of them for one distance each; the others begin at 4 * 4^(m/4): 4, 5.66, 8, 11.3.
    ours = relative_buckets(14, 2, num_buckets=8, max_distance=16, bidirectional=False, like=like(backend))
    ours = backend.numpy(ours)
    assert_array_equal(ours[:, 0], [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7])
    assert_array_equal(ours[:, 1], [0, *ours[:-1, 0]])  # the key after the query is in bucket 0


NUMBERS, DISTANCES = [4, 5, 7, 8, 16, 31, 32, 64, 128], [64 + 1, 100, 128, 200, 256, 1000]


@pytest.mark.slow
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"),
    [(n, DISTANCES[(i + shift) % 6]) for i, n in enumerate(NUMBERS) for shift in (0, 3)],  # each with two distances
)
def test_buckets_are_t5_s_for_every_distance_up_to_1000(backend, num_buckets, max_distance, bidirectional):
    options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    expected = [bucket_of_t5(r, **options) for r in range(-1000, 1001)]
    before = relative_buckets(1001, 1, **options, like=like(backend))
    after = relative_buckets(1, 1001, **options, like=like(backend))
    assert_array_equal(backend.numpy(before)[::-1, 0], expected[:1001])
    assert_array_equal(backend.numpy(after)[0], expected[1000:])


@pytest.mark.parametrize(("num_buckets", "bidirectional"), [(2, False), (3, False), (4, True), (5, True)])
@pytest.mark.parametrize("max_distance", [2, 3, 5])
def test_few_buckets_are_t5_s_too(backend, num_buckets, max_distance, bidirectional):
    options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    ours = backend.numpy(relative_buckets(T, S, **options, like=like(backend)))
    assert_array_equal(ours, [[bucket_of_t5(j - i, **options) for j in range(S)] for i in range(T)])


@examples
@given(st.integers(0, 9), st.integers(0, 9), st.integers(-200, 200), st.booleans())
def test_buckets_are_laid_out_by_query_and_key(backend, T, S, q_offset, bidirectional):
    options = {"bidirectional": bidirectional, "q_offset": q_offset, "like": like(backend)}
    ours = relative_buckets(T, S, **options)
    assert str(ours.dtype).endswith("int64")
    expected = [[bucket_of_t5(j - i - q_offset, 32, 128, bidirectional) for j in range(S)] for i in range(T)]
    assert_array_equal(backend.numpy(ours), np.array(expected).reshape(T, S))


@examples
@given(st.integers(2, 40), st.integers(21, 90))
def test_causal_buckets_never_fall_with_distance_and_use_the_whole_range(backend, num_buckets, max_distance):
    options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": False}
    ours = backend.numpy(relative_buckets(200, 1, **options, like=like(backend)))[:, 0]
    assert (np.diff(ours) >= 0).all()
    assert (ours[0], ours[-1]) == (0, num_buckets - 1)
    assert (ours[max_distance:] == num_buckets - 1).all()


def test_buckets_index_a_learned_table(backend, rng):
    table = backend.array(rng.standard_normal((32, H)))
    assert tuple(table[relative_buckets(T, S, like=table)].shape) == (T, S, H)


def test_without_like_buckets_are_numpy_s():
    ours = relative_buckets(T, S)
    assert (type(ours), ours.dtype) == (np.ndarray, np.int64)


# Devices, transforms


def rope(x, **options):
    return apply_rope(x, *rope_tables(torch.arange(x.shape[-2], device=x.device), EVEN), **options)


MAKERS = {
    "sinusoidal_positions": lambda x: sinusoidal_positions(x.shape[-2], x.shape[-1] - 1, like=x),
    "sinusoidal_positions apart": lambda x: sinusoidal_positions(x.shape[-2], EVEN, interleaved=False, like=x),
    "apply_rope": rope,
    "apply_rope to bfloat16": lambda x: rope(x.bfloat16(), interleaved=True),
    "apply_rope with a table for each sequence": lambda x: apply_rope(
        x, *rope_tables(torch.arange(x.shape[-2], device=x.device).expand(x.shape[0], 1, -1), EVEN)
    ),
    "alibi_slopes": lambda x: alibi_slopes(x.shape[-3], like=x),
    "alibi_bias": lambda x: alibi_bias(H, x.shape[-2], 2 * x.shape[-2], q_offset=x.shape[-2], like=x),
    "relative_buckets": lambda x: relative_buckets(x.shape[-2], x.shape[-2], q_offset=1, like=x),
    "relative_buckets of its own": lambda x: relative_buckets(
        x.shape[-2], x.shape[-2], num_buckets=20, max_distance=55, bidirectional=False, like=x
    ),
}
every_maker = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


@every_maker
def test_nothing_leaves_the_device(maker):
    x = torch.empty(B, H, T, D, device="meta")
    with OnMeta():
        maker(x)


def make_all(x):
    """Call all makers in one graph, because torch takes a long time to start one."""
    return {what: maker(x) for what, maker in MAKERS.items()}


@pytest.mark.parametrize("strict", [False, True])  # if True, it is traced as torch.compile would
def test_export_keeps_the_length_dynamic(strict, rng):
    class Makers(torch.nn.Module):
        def forward(self, x):
            return make_all(x)

    dynamic, x = ({2: torch.export.Dim("T", min=2, max=64)},), torch.zeros(B, H, T, D)
    program = torch.export.export(Makers(), (x,), dynamic_shapes=dynamic, strict=strict).module()
    for length in (T, 19):
        x = torch.tensor(rng.standard_normal((B, H, length, D)), dtype=torch.float32)
        torch.testing.assert_close(program(x), make_all(x))


def make_with_numbers(x, number):
    return {
        "relative_buckets": relative_buckets(T, S, num_buckets=number, max_distance=4 * number, like=x),
        "alibi_slopes": alibi_slopes(number, like=x),
        "rope_tables": rope_tables(x, number, base=10.0 * number)[1],
        "sinusoidal_positions": sinusoidal_positions(number, number, base=10.0 * number, like=x),
    }


def test_torch_compile_takes_parameters_that_are_numbers():
    torch._dynamo.reset()
    compiled = torch.compile(make_with_numbers, fullgraph=True, backend="aot_eager", dynamic=True)
    for number in (6, 16):
        torch.testing.assert_close(compiled(torch.ones(T), number), make_with_numbers(torch.ones(T), number))


def test_angles_are_float64_but_where_the_device_has_none():
    import array_api_compat.torch as xp

    assert widest_float(xp, torch.device("cuda")) == torch.float64
    assert widest_float(xp, torch.device("mps")) == torch.float32
    assert widest_float(np, "cpu") == np.float64


# Errors


ERRORS = {
    "sinusoids of an odd width": (lambda z: sinusoidal_positions(T, D, like=z()), ValueError, ["D", "11", "even"]),
    "sinusoids of a negative width": (lambda z: sinusoidal_positions(T, -2, like=z()), ValueError, ["D", "-2"]),
    "sinusoids of a negative length": (lambda z: sinusoidal_positions(-1, 4, like=z()), ValueError, ["T", "-1"]),
    "sinusoids of a float length": (lambda z: sinusoidal_positions(2.0, 4, like=z()), TypeError, ["T", r"2\.0"]),
    "sinusoids of a list": (lambda z: sinusoidal_positions([0, 1], 4, like=z()), TypeError, ["T", r"\[0, 1\]"]),
    "sinusoids with base 0": (lambda z: sinusoidal_positions(T, 4, base=0, like=z()), ValueError, ["base", "0"]),
    "sinusoids with base NaN": (lambda z: sinusoidal_positions(T, 4, base=np.nan, like=z()), ValueError, ["nan"]),
    "sinusoids with a word as base": (
        lambda z: sinusoidal_positions(T, 4, base="a", like=z()), TypeError, ["^base is 'a'", "number"],
    ),
    "tables with a word as base": (lambda z: rope_tables(z(T), 4, base="a"), TypeError, ["^base is 'a'", "number"]),
    "tables with no base": (lambda z: rope_tables(z(T), 4, base=None), TypeError, ["^base is None", "number"]),
    "tables of ragged rows": (
        lambda z: rope_tables([[0, 1], [2]], 4), ValueError, [r"^positions is \[\[0, 1\], \[2\]\]", "equal length"],
    ),
    "distances beyond 64 bits": (
        lambda z: alibi_bias(2, T, S, q_offset=2**62 + 1, like=z()), ValueError, ["^q_offset is", r"2\*\*62"],
    ),
    "buckets beyond 64 bits": (
        lambda z: relative_buckets(T, S, q_offset=-(2**63), like=z()), ValueError, ["^q_offset is", r"2\*\*62"],
    ),
    "sinusoids like integers": (lambda z: sinusoidal_positions(T, 4, like=z(1, dtype="int64")), TypeError, ["int64"]),
    "sinusoids like a list": (lambda z: sinusoidal_positions(T, 4, like=[1.0]), TypeError, ["like", "list"]),
    "tables of an odd width": (lambda z: rope_tables(z(T), D), ValueError, ["D", "11", "even"]),
    "tables of a float width": (lambda z: rope_tables(z(T), 4.0), TypeError, ["D", r"4\.0"]),
    "tables with a negative base": (lambda z: rope_tables(z(T), 4, base=-1.0), ValueError, ["base", "-1"]),
    "tables with an infinite base": (lambda z: rope_tables(z(T), 4, base=np.inf), ValueError, ["base", "inf"]),
    "tables of a number": (lambda z: rope_tables(5, 4), TypeError, ["positions", "5", "arange"]),
    "tables of an array without dimension": (lambda z: rope_tables(z(), 4), ValueError, ["positions", sizes()]),
    "tables of bools": (lambda z: rope_tables(z(T, dtype="bool"), 4), TypeError, ["positions", "bool"]),
    "tables of words": (lambda z: rope_tables(["a"], 4), TypeError, ["positions", "<U1"]),
    "tables that differ in shape": (
        lambda z: apply_rope(z(T, D), z(T, 5), z(T, 3)), ValueError, [sizes(T, 5), sizes(T, 3)],
    ),
    "tables for other positions": (
        lambda z: apply_rope(z(B, T, D), z(S, 5), z(S, 5)), ValueError, [sizes(S, 5), sizes(B, T, D), "T=5"],
    ),
    "tables for one position that would broadcast": (
        lambda z: apply_rope(z(B, T, D), z(1, 5), z(1, 5)), ValueError, [sizes(1, 5), sizes(B, T, D)],
    ),
    "tables that hold every angle twice": (
        lambda z: apply_rope(z(T, EVEN), z(T, EVEN), z(T, EVEN)), ValueError, [sizes(T, EVEN), "5 pairs", "half"],
    ),
    "tables for each sequence without a dimension for the heads": (
        lambda z: apply_rope(z(B, H, T, D), z(B, T, 5), z(B, T, 5)), ValueError,
        [sizes(B, T, 5), sizes(B, H, T, D), r"\(B, 1, T, width\)"],
    ),
    "tables that would add a leading dimension": (
        lambda z: apply_rope(z(T, D), z(B, T, 5), z(B, T, 5)), ValueError, [sizes(B, T, 5), sizes(T, D)],
    ),
    "tables that would enlarge a leading dimension of 1": (
        lambda z: apply_rope(z(1, T, D), z(B, T, 5), z(B, T, 5)), ValueError, [sizes(B, T, 5), sizes(1, T, D)],
    ),
    "a vector to turn": (lambda z: apply_rope(z(D), z(T, 5), z(T, 5)), ValueError, [sizes(D)]),
    "a vector as table": (lambda z: apply_rope(z(T, D), z(5), z(5)), ValueError, [sizes(5)]),
    "tables of two dtypes": (
        lambda z: apply_rope(z(T, D), z(T, 5), z(T, 5, dtype="float32")), TypeError, ["cos", "sin", "float32"],
    ),
    "integers to turn": (lambda z: apply_rope(z(T, D, dtype="int64"), z(T, 5), z(T, 5)), TypeError, ["int64"]),
    "slopes of no heads": (lambda z: alibi_slopes(0, like=z()), ValueError, ["H", "0"]),
    "slopes of half a head": (lambda z: alibi_slopes(0.5, like=z()), TypeError, ["H", "0.5"]),
    "slopes like integers": (lambda z: alibi_slopes(4, like=z(1, dtype="int64")), TypeError, ["like", "int64"]),
    "a bias of no heads": (lambda z: alibi_bias(0, T, S, like=z()), ValueError, ["H", "0"]),
    "a bias of negative length": (lambda z: alibi_bias(H, -1, S, like=z()), ValueError, ["T", "-1"]),
    "a bias of negative keys": (lambda z: alibi_bias(H, T, -1, like=z()), ValueError, ["S", "-1"]),
    "a bias with half an offset": (lambda z: alibi_bias(H, T, S, q_offset=0.5, like=z()), TypeError, ["q_offset"]),
    "buckets of negative length": (lambda z: relative_buckets(-1, S, like=z()), ValueError, ["T", "-1"]),
    "buckets of a float length": (lambda z: relative_buckets(T, 7.0, like=z()), TypeError, ["S", r"7\.0"]),
    "too few buckets for two sides": (
        lambda z: relative_buckets(T, S, num_buckets=3, like=z()), ValueError, ["num_buckets", "3", "4"],
    ),
    "too few buckets for one side": (
        lambda z: relative_buckets(T, S, num_buckets=1, bidirectional=False, like=z()), ValueError, ["num_buckets"],
    ),
    "half a bucket": (lambda z: relative_buckets(T, S, num_buckets=8.5, like=z()), TypeError, ["num_buckets", "8.5"]),
    "a largest distance among the exact ones": (
        lambda z: relative_buckets(T, S, max_distance=8, like=z()), ValueError, ["max_distance", "8"],
    ),
    "buckets like a list": (lambda z: relative_buckets(T, S, like=[1.0]), TypeError, ["like", "list"]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)
