"""scaled_dot_product_attention: softmax(q k^T / sqrt(D) + M) v with all that models ask of it, and its gradient."""

import functools
import math
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.special
import torch
import torch.nn.functional as F
from backends import D_V, B, D, H, Numpy, S, T, Torch, assert_error_names, dtype_name, examples, sizes, tenths
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from oracle import attend
from peak_memory import numpy_peak, peak_of
from sdpa_cases import ALL, INF, NOTHING, QKV, WAYS, forbidden_rows, heads, lengths, on, random_mask, run

from attnlib import causal_mask, padding_mask, window_mask
from attnlib import scaled_dot_product_attention as sdpa
from attnlib import scaled_dot_product_attention_backward as sdpa_backward

NAN = np.nan
HALF_STEP = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}


# Against the oracle: a table of options


class Case:
    """Random arrays of these shapes, and options; the expected result is found once."""

    def __init__(self, shapes=QKV, mask=None, **options):
        self.shapes, self.mask, self.options = shapes, mask, options

    @functools.cached_property
    def arrays(self):
        """Queries, keys, values, and the mask, if any."""
        rng = np.random.default_rng(1706)
        mask = () if self.mask is None else (random_mask(rng, *self.mask),)
        return tuple(2 * rng.standard_normal(shape) for shape in self.shapes) + mask

    @functools.cached_property
    def expected(self):
        """What the loops say."""
        return attend(*self.arrays, **self.options)


MASKS = [
    *((), (1,), (S,), (1, S), (T, 1), (T, S), (H, 1, 1), (H, T, S), (1, H, 1, S)),
    *((B, 1, 1, 1), (B, 1, 1, S), (B, 1, T, S), (B, H, T, 1), (B, H, T, S)),
]
WINDOWS = [(0, 0), (1, 1), (2, 0), (0, 2), (None, 1), (2, None), (None, None), (None, 0), (9, 9)]
LEADS = {
    "none": ((), (), ()),
    "one": ((H,), (H,), (H,)),
    "three": ((2, B, H), (2, B, H), (2, B, H)),
    "keys for all sequences": ((B, H), (H,), (H,)),
    "keys for all heads": ((B, H), (B, 1), (B, 1)),
    "keys and values differ": ((B, H), (1, H), (B, 1)),
    "values alone have a batch": ((H,), (H,), (B, H)),
    "one query for all": ((), (B, H), (B, H)),
    "one query head": ((B, 1), (B, H), (B, H)),
    "four of them": ((2, 1, B, H), (B, 1), (2, 3, 1, H)),
}
CASES = {
    "plain": Case(),
    **{f"scale {scale}": Case(scale=scale) for scale in (0.0, 1.0, 0.3, -0.5, 1)},
    **{
        f"{kind} mask {shape}{' causal' * causal}": Case(mask=(kind, shape), is_causal=causal)
        for kind in ("bool", "float")
        for shape in MASKS
        for causal in (False, True)
    },
    **{
        f"causal {t}x{s} offset {offset}": Case(lengths(t, s), is_causal=True, q_offset=offset)
        for t, s in ((T, S), (S, T), (T, T), (1, S), (S, 1))
        for offset in sorted({0, 2, -2, s - t, s + 3, -t - 3})
    },
    **{
        f"window {window}{' causal' * causal} offset {offset}": Case(
            lengths(T, S), window=window, is_causal=causal, q_offset=offset
        )
        for window in WINDOWS
        for causal in (False, True)
        for offset in (0, 2, -3)
    },
    "an offset without a rule of position": Case(q_offset=2),
    "a window as a list": Case(window=[1, 2]),
    **{f"softcap {cap}": Case(softcap=cap) for cap in (0, 0.5, 2.0, 30, 1000.0)},
    **{
        f"softcap with {what}": Case(softcap=1.5, **more)
        for what, more in {
            "a bool mask": {"mask": ("bool", (T, S))},
            "a float mask": {"mask": ("float", (B, 1, T, S))},
            "a scale": {"scale": 0.9},
            "causal": {"is_causal": True, "q_offset": -1},
            "all": {"mask": ("float", (S,)), "is_causal": True, "window": (2, 2), "q_offset": 2, "scale": 0.4},
        }.items()
    },
    **{
        f"{n} of {q} heads, {what}": Case(heads(q, n, n), mask, enable_gqa=True, **more)
        for q, n in ((6, 1), (6, 2), (6, 3), (6, 6))
        for what, mask, more in (
            ("plain", None, {}),
            ("a mask by head", ("bool", (6, T, S)), {}),
            ("a padding mask", ("bool", (B, 1, 1, S)), {"is_causal": True}),
            ("a float mask", ("float", (B, 6, 1, S)), {"softcap": 2.0}),
            ("a window", None, {"window": (1, 1), "q_offset": 1}),
        )
    },
    "grouped heads, a mask (T, S)": Case(heads(6, 2, 2), ("float", (T, S)), enable_gqa=True),
    "grouped heads without a batch": Case(heads(6, 2, 2, batch=()), enable_gqa=True),
    "grouped heads, two batches": Case(heads(6, 2, 2, batch=(2, B)), ("bool", (2, 1, 6, T, S)), enable_gqa=True),
    "grouped heads, one batch of keys": Case(((B, 6, T, D), (1, 2, S, D), (B, 2, S, D_V)), enable_gqa=True),
    "grouped heads, keys without a batch": Case(
        ((B, 6, T, D), (2, S, D), (2, S, D_V)), ("bool", (B, 1, T, S)), enable_gqa=True
    ),
    "grouped heads, queries without a batch": Case(((6, T, D), (B, 2, S, D), (1, 2, S, D_V)), enable_gqa=True),
    **{
        f"leading dimensions: {what}": Case(((*q, T, D), (*k, S, D), (*v, S, D_V)), mask, is_causal=causal)
        for what, (q, k, v) in LEADS.items()
        for mask in (None, ("bool", (T, S)), ("float", (1, S)))
        for causal in (False, mask is None)
    },
    **{
        f"values as wide as keys, {t}x{s}: {more}": Case(((B, H, t, D), (B, H, s, D), (B, H, s, D)), **more)
        for t, s in ((T, S), (S, T), (T, T), (T, 0), (1, S))
        for more in (
            {},
            {"is_causal": True},
            {"is_causal": True, "q_offset": 1},
            {"is_causal": True, "enable_gqa": True},
            {"window": (1, 0)},
            {"window": (0, 0)},
            {"window": (None, None)},
            {"scale": 0.0},
            {"softcap": 1.5, "is_causal": True},
        )
    },
    "a mask of five dimensions": Case(heads(H, H, H, batch=(2, B)), ("bool", (2, 1, 1, 1, S))),
    "a mask of five dimensions beside causal": Case(
        heads(H, H, H, batch=(2, B)), ("float", (1, B, 1, T, S)), is_causal=True, q_offset=1
    ),
    "a mask for each head of shared keys": Case(((B, H, T, D), (B, 1, S, D), (S, D_V)), ("bool", (B, H, T, S))),
    **{
        f"{name} = 0": Case(((B, h, t, d), (B, h, s, d), (B, h, s, v)), **more)
        for name, (h, t, s, d, v) in {
            "T": (H, 0, S, D, D_V),
            "S": (H, T, 0, D, D_V),
            "T and S": (H, 0, 0, D, D_V),
            "D": (H, T, S, 0, D_V),
            "D_v": (H, T, S, D, 0),
            "H": (0, T, S, D, D_V),
        }.items()
        for more in ({},)
    },
    "S = 0 and a mask": Case(((B, H, T, D), (B, H, 0, D), (B, H, 0, D_V)), ("bool", (T, 0)), is_causal=True),
    "T = 0 and a window": Case(((B, H, 0, D), (B, H, S, D), (B, H, S, D_V)), window=(1, 1), q_offset=3),
}


def assert_is(ours, expected, rtol=1e-11, atol=1e-12):
    for mine, theirs in zip(ours, expected, strict=True):
        assert mine.shape == theirs.shape
        assert_allclose(mine, theirs, rtol=rtol, atol=atol)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_what_the_loops_say(backend, case):
    assert_is([run(backend, *case.arrays, **case.options)], case.expected[:1])
    assert_is(run(backend, *case.arrays, **case.options, **ALL), case.expected)


@pytest.mark.parametrize("what", ["plain", "bool mask (5, 7)", "softcap 2.0", "2 of 6 heads, plain"])
def test_weights_and_log_sums_are_returned_where_asked_for_and_in_this_order(backend, what):
    case = CASES[what]
    call = functools.partial(run, backend, *case.arrays, **case.options)
    context, weights, lse = case.expected
    assert_is([call()], [context])
    assert_is([call(return_weights=False, return_lse=False)], [context])
    assert_is(call(return_weights=True), (context, weights))
    assert_is(call(return_lse=True), (context, lse))
    assert_is(call(return_lse=True, return_weights=True), (context, weights, lse))


def test_results_come_as_an_array_or_a_tuple(backend, rng):
    q, k, v = (backend.array(rng.standard_normal(shape)) for shape in QKV)
    assert type(sdpa(q, k, v)) is type(q)
    assert type(sdpa(q, k, v, return_weights=True)) is tuple
    assert type(sdpa(q, k, v, return_lse=True)) is tuple


def test_the_first_six_arguments_may_be_given_by_position(backend):
    case = CASES["bool mask (5, 7) causal"]
    assert_is([run(backend, *case.arrays, 0.0, True)], case.expected[:1])


# Worked by hand


def test_two_keys_of_scores_log_3_and_0_share_three_to_one(backend):
    q, k, v = np.array([[2.0]]), np.array([[np.log(3)], [0.0]]), np.array([[8.0], [0.0]])
    expected = [[6.0]], [[0.75, 0.25]], [np.log(4)]
    for ours, theirs in zip(run(backend, q, k, v, scale=0.5, **ALL), expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-14)


def test_the_scale_is_one_over_the_root_of_the_width(backend):
    # q k = 4 log 2 over 4 components: divided by 2 it is log 4, so the weights are 4/5 and 1/5.
    q, k = np.ones((1, 4)), np.array([[np.log(2)] * 4, [0.0] * 4])
    assert_allclose(run(backend, q, k, np.array([[1.0], [0.0]])), [[0.8]], rtol=1e-14)


def test_a_running_mean_is_causal_attention_without_scores(backend):
    v = np.arange(1.0, 6.0)[:, None]
    assert_allclose(run(backend, 0 * v, 0 * v, v, is_causal=True)[:, 0], [1, 1.5, 2, 2.5, 3], rtol=1e-14)


def test_a_window_without_scores_is_a_moving_mean(backend):
    v = np.array([[3.0], [6.0], [12.0], [0.0]])
    assert_allclose(run(backend, 0 * v, 0 * v, v, window=(1, 1))[:, 0], [4.5, 7, 6, 6], rtol=1e-14)


def test_consecutive_query_heads_share_a_key_head(backend):
    # Four query heads, two key heads, one key: each head hands on the value of its own.
    one, v = np.ones((4, 1, 1)), np.array([[[1.0]], [[2.0]]])
    out = run(backend, one, one[:2], v, enable_gqa=True)
    assert_array_equal(out.ravel(), [1, 1, 2, 2])


def test_the_cap_holds_for_scores_and_not_for_the_mask(backend):
    # Scores of 1000 and 0 are capped to 2 and 0; the mask then adds 10 to the second.
    q, k, v = np.array([[1.0]]), np.array([[1000.0], [0.0]]), np.array([[1.0], [0.0]])
    out = run(backend, q, k, v, np.array([[0.0, 10.0]]), softcap=2.0)
    assert_allclose(out, [[1 / (1 + np.e**8)]], rtol=1e-12)


# Against torch


TORCH_CASES = {
    "plain": {},
    "causal": {"is_causal": True},
    "bool mask": {"mask": ("bool", (B, 1, T, S))},
    "float mask": {"mask": ("float", (T, S))},
    "scale": {"scale": 0.3},
    "grouped": {"shapes": heads(6, 2, 2), "enable_gqa": True},
    "grouped causal": {"shapes": heads(6, 3, 3), "enable_gqa": True, "is_causal": True},
    "shared keys": {"shapes": ((B, H, T, D), (1, H, S, D), (B, 1, S, D_V))},
    "three dimensions": {"shapes": lengths(T, S), "is_causal": True},
    "two dimensions": {"shapes": ((T, D), (S, D), (S, D_V))},
}


@pytest.mark.parametrize("what", TORCH_CASES)
def test_it_is_torch_s(backend, what):
    case = Case(**TORCH_CASES[what])
    theirs = F.scaled_dot_product_attention(*map(torch.from_numpy, case.arrays), **case.options)
    assert_is([run(backend, *case.arrays, **case.options)], [theirs.numpy()])


# Dtypes: half precisions are computed in float32 and rounded once


def rounded(backend, x, dtype):
    """The values that an array of this dtype has."""
    return x if x.dtype == bool else backend.numpy(backend.array(x, dtype))


DTYPED = ["plain", "bool mask (5, 7) causal", "float mask (2, 1, 5, 7)", "softcap 2.0", "2 of 6 heads, a float mask",
          "window (1, 1) offset 2"]  # fmt: skip


@pytest.mark.parametrize("what", DTYPED)
@pytest.mark.parametrize("wanted", [{}, {"return_weights": True}, {"return_lse": True}, ALL], ids=lambda w: "+".join(w))
def test_the_dtype_is_kept_and_the_error_is_that_of_rounding(backend, what, wanted):
    for dtype in backend.dtypes:
        assert_error_is_that_of_rounding(backend, dtype, CASES[what], wanted)


def assert_error_is_that_of_rounding(backend, dtype, case, wanted):
    arrays = [rounded(backend, x, dtype) for x in case.arrays]
    results = sdpa(*(on(backend, x, dtype) for x in arrays), **case.options, **wanted)
    results = results if isinstance(results, tuple) else (results,)
    expected = attend(*arrays, **case.options)
    chosen = [expected.context, *([expected.weights] * ("return_weights" in wanted)),
              *([expected.lse] * ("return_lse" in wanted))]  # fmt: skip
    step = HALF_STEP[dtype]
    # torch's fused kernel for the CPU rounds the weights, too, before it averages the values: two roundings.
    fused = 2 * step * np.abs(arrays[2]).max() if not wanted and isinstance(backend, Torch) and step > 2**-24 else 0
    inner = 64 * max(2**-53 if dtype == "float64" else 2**-24, 0)
    for ours, exact in zip(results, chosen, strict=True):
        assert dtype_name(ours) == dtype
        assert_allclose(backend.numpy(ours), exact, rtol=step + inner, atol=fused + 8 * inner)


def test_scores_beyond_the_range_of_float16_are_harmless(typed):
    # 300 * 300 * 4 / 2 is 180000, beyond 65504; the other key's score is 0.
    backend, dtype = typed
    q = np.full((1, 4), 300.0)
    out, weights = run(backend, q, np.stack([q[0], 0 * q[0]]), np.array([[3.0] * 4, [5.0] * 4]), dtype=dtype,
                       return_weights=True)  # fmt: skip
    assert_array_equal(weights, [[1, 0]])
    assert_array_equal(out, [[3.0] * 4])
    assert_array_equal(run(backend, q, np.stack([q[0], 0 * q[0]]), np.array([[3.0] * 4, [5.0] * 4]), dtype=dtype), out)


@pytest.mark.parametrize("wanted", [{}, {"return_lse": True}], ids=["context", "lse"])
def test_many_small_weights_are_summed_in_float32(typed, wanted):
    # 4099 equal weights: a sum kept in float16 would stop growing at 2048, one in bfloat16 at 256.
    backend, dtype = typed
    v = np.where(np.arange(4099)[:, None] % 2, 1.0, 3.0)
    results = run(backend, np.zeros((2, 1)), np.zeros((4099, 1)), v, dtype=dtype, **wanted)
    out = results[0] if wanted else results
    few = 4 if HALF_STEP[dtype] > 2**-24 else 256  # a sum of 4099 terms is itself not exact
    assert_allclose(out, v.mean(), rtol=few * HALF_STEP[dtype])
    if wanted:
        assert_allclose(results[1], np.log(4099), rtol=few * HALF_STEP[dtype])


# Range: large scores, infinite and lowest masks, rows of nothing


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("top", [1e4, 1e30])
@pytest.mark.parametrize("options", [{}, ALL, {"is_causal": True, "q_offset": 4}, {"softcap": 50.0}], ids=str)
def test_large_scores_do_not_overflow(backend, dtype, top, options):
    q, k = np.array([[1.0], [-1.0]]), np.array([[top], [-top], [top], [0.0]])
    v = np.array([[1.0], [2.0], [5.0], [9.0]])
    results = run(backend, q, k, v, dtype=dtype, **options)
    out = results[0] if isinstance(results, tuple) else results
    assert_allclose(out, [[3.0], [2.0]], rtol=1e-6)
    if options is ALL:
        assert_allclose(results[2], [top + np.log(2), top], rtol=1e-6)


def test_log_sums_are_natural_logarithms_with_the_maximum_in_them(backend):
    q, k = np.array([[1.0]]), np.array([[1000.0], [1000.0], [999.0]])
    _, lse = run(backend, q, k, k, return_lse=True)
    assert_allclose(lse, [1000 + np.log(2 + np.exp(-1))], rtol=1e-14)


@pytest.mark.parametrize("what", NOTHING)
@pytest.mark.parametrize("way", WAYS)
def test_a_query_that_may_attend_to_nothing_gets_exactly_0(backend, rng, what, way):
    options = NOTHING[what] | WAYS[way]
    q, k, v = (rng.standard_normal(shape) for shape in QKV)
    for dtype in backend.dtypes:
        results = run(backend, q, k, v, dtype=dtype, **options)
        assert_nothing_is_0(results if isinstance(results, tuple) else (results,), options, dtype)


def assert_nothing_is_0(results, options, dtype):
    nothing = forbidden_rows(options)
    assert nothing.any()
    assert (results[0][:, :, nothing] == 0).all()
    assert (results[0][:, :, ~nothing] != 0).all()
    assert all(np.isfinite(x).all() for x in results[:1])
    if "return_weights" in options:
        assert (results[1][:, :, nothing] == 0).all()
        assert_allclose(results[1][:, :, ~nothing].sum(-1), 1, atol=4 * S * HALF_STEP[dtype])
    if "return_lse" in options:
        assert (results[-1][:, :, nothing] == -INF).all()
        assert np.isfinite(results[-1][:, :, ~nothing]).all()


@pytest.mark.parametrize("way", WAYS)
def test_values_that_nobody_may_attend_to_have_no_part_even_if_infinite_scores_belong_to_them(backend, rng, way):
    q, k, v = (rng.standard_normal(shape) for shape in ((T, D), (S, D), (S, D_V)))
    mask = np.arange(S) < 4
    short = run(backend, q, k[:4], v[:4], **WAYS[way])
    k[4:], v[4:] = 1e300, 1e300
    whole = run(backend, q, k, v, mask, **WAYS[way])
    assert_allclose(whole[0] if isinstance(whole, tuple) else whole, short[0] if isinstance(short, tuple) else short)


@pytest.mark.parametrize("way", WAYS)
def test_the_lowest_finite_number_forbids_beside_others(typed, rng, way):
    backend, dtype = typed
    lowest = -float(np.finfo(dtype).max) if dtype != "bfloat16" else float(torch.finfo(torch.bfloat16).min)
    q, k, v = (rng.standard_normal(shape) for shape in ((T, D), (S, D), (S, D_V)))
    allowed = rng.random((T, S)) < 0.6
    allowed[:, 3] = True
    ours = run(backend, q, k, v, np.where(allowed, 0.0, lowest), dtype=dtype, **WAYS[way])
    theirs = run(backend, q, k, v, allowed, dtype=dtype, **WAYS[way])
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    for mine, his in pairs:
        assert_allclose(mine, his, rtol=4 * HALF_STEP[dtype], atol=16 * HALF_STEP[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", WAYS)
def test_a_row_of_lowest_finite_numbers_is_a_row_of_equal_ones_as_in_torch(backend, rng, dtype, way):
    # Such a mask is added like any other. A sum with it is it again, so all keys count alike.
    q, k, v = (rng.standard_normal(shape) for shape in ((T, D), (S, D), (S, D_V)))
    mask = np.zeros((T, S))
    mask[1] = np.finfo(dtype).min
    results = run(backend, q, k, v, mask, dtype=dtype, **WAYS[way])
    out = results[0] if isinstance(results, tuple) else results
    assert_allclose(out[1], v.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mask_of_plus_infinity_or_nan_does_not_pass_unseen(backend, rng, dtype):
    # inf - inf is nan: a row that holds it is lost, the other rows are not.
    q, k, v = (rng.standard_normal(shape) for shape in ((T, D), (S, D), (S, D_V)))
    mask = np.zeros((T, S))
    mask[1, 2] = NAN
    with np.errstate(invalid="ignore"):
        out = run(backend, q, k, v, mask, dtype=dtype)
    assert np.isnan(out[1]).all()
    assert np.isfinite(np.delete(out, 1, axis=0)).all()


# Dropout


def test_dropout_sets_weights_to_0_and_scales_the_others_up(backend):
    # With the identity as values, the context is the weights.
    t, s, p = 40, 50, 0.3
    for wanted in ({}, ALL):
        results = run(backend, np.zeros((t, 1)), np.zeros((s, 1)), np.eye(s), dropout_p=p, **wanted)
        weights = results[0] if wanted else results
        kept = weights != 0
        assert_allclose(weights[kept], 1 / s / (1 - p), rtol=1e-12)
        assert abs(kept.mean() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / (t * s))
        if wanted:
            assert_allclose(results[1], weights, rtol=1e-12)  # the weights returned are those used
            assert_allclose(results[2], np.log(s), rtol=1e-12)  # the log-sums know of no dropout


def test_dropout_changes_nothing_on_average(backend, rng):
    q, k, v = (rng.standard_normal(shape) for shape in ((2000, 1, D), (S, D), (S, D_V)))
    q[:] = q[0]
    exact = run(backend, q, k, v)[0]
    noisy = run(backend, q, k, v, dropout_p=0.25)
    assert (np.abs(noisy.mean(axis=0) - exact) < 5 * noisy.std(axis=0) / math.sqrt(2000)).all()
    assert (noisy.std(axis=0) > 0).all()


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"return_weights": True}], ids=str)
def test_dropout_of_probability_1_leaves_nothing(typed, rng, options):
    backend, dtype = typed
    q, k, v = (rng.standard_normal(shape) for shape in QKV)
    results = run(backend, q, k, v, dtype=dtype, dropout_p=1.0, **options)
    for result in results if isinstance(results, tuple) else [results]:
        assert (result == 0).all()


def test_dropout_of_probability_0_is_none(backend):
    case = CASES["plain"]
    assert_array_equal(run(backend, *case.arrays, dropout_p=0.0), run(backend, *case.arrays))


@pytest.mark.parametrize("options", [{}, {"return_weights": True}, {"softcap": 2.0}], ids=str)
def test_a_seed_repeats_what_dropout_drops(backend, rng, options):
    q, k, v = (rng.standard_normal(shape) for shape in QKV)
    seed = np.random.seed if isinstance(backend, Numpy) else torch.manual_seed

    def context():
        results = run(backend, q, k, v, dropout_p=0.5, **options)
        return results[0] if isinstance(results, tuple) else results

    seed(7)
    first, second = context(), context()
    seed(7)
    assert_array_equal(context(), first)
    assert (first != second).any()


def test_dropout_keeps_masked_weights_at_0(backend, rng):
    q, k, v = (rng.standard_normal(shape) for shape in ((H, T, D), (H, S, D), (H, S, D_V)))
    mask = rng.random((T, S)) < 0.5
    mask[0] = False
    out, weights = run(backend, q, k, v, mask, dropout_p=0.2, return_weights=True)
    assert (weights[:, ~mask] == 0).all()
    assert (out[:, 0] == 0).all()
    assert_allclose(out, weights @ v, rtol=1e-11, atol=1e-13)


def test_dropout_of_long_sequences_sets_weights_to_0_and_scales_the_others_up(backend):
    # All keys are equal, and the values are 0 or 1 to tell them apart: the context counts the weights that are kept.
    t, s, p = 300, 1100, 0.3
    value = np.eye(s)[:, :2]
    context, lse = run(backend, np.zeros((2, t, 1)), np.zeros((2, s, 1)), np.broadcast_to(value, (2, s, 2)),
                       dropout_p=p, return_lse=True)  # fmt: skip
    kept = context != 0
    assert_allclose(context[kept], 1 / s / (1 - p), rtol=1e-12)
    assert abs(kept.mean() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / kept.size)
    assert not (kept[0] == kept[1]).all(), "each head draws its own random numbers"
    assert_allclose(lse, np.log(s), rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"softcap": 2.0}], ids=str)
def test_a_seed_repeats_the_dropout_of_long_sequences(rng, options):
    q, k, v = (rng.standard_normal((5, n, 4)) for n in (300, 600, 600))
    drawn = []
    for seed in (7, 7, 8):
        np.random.seed(seed)
        drawn.append(sdpa(q, k, v, dropout_p=0.5, **options))
    assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_dropout_of_long_sequences_changes_nothing_on_average(rng):
    q, k, v = np.tile(rng.standard_normal((1, 4)), (2000, 1)), *(rng.standard_normal((700, 4)) for _ in "kv")
    noisy, exact = sdpa(q, k, v, dropout_p=0.25), sdpa(q[:1], k, v)[0]
    assert (np.abs(noisy.mean(axis=0) - exact) < 5 * noisy.std(axis=0) / math.sqrt(2000)).all()
    assert (noisy.std(axis=0) > 0).all()


@pytest.mark.parametrize(("heads", "length"), [(256, 16), (1, 2048)])
def test_dropout_needs_no_more_than_8_mib_beside_the_result(heads, length):
    q, k = np.zeros((heads, length, 8), np.float32), np.zeros((heads, 2048 // min(heads, 4), 8), np.float32)
    assert numpy_peak(lambda: sdpa(q, k, k, dropout_p=0.1)) - q.nbytes <= 8 * 2**20


# Tiles: long sequences go in tiles of 256 queries and 512 keys, with running maxima and sums


def in_one_piece(q, k, v, allowed, bias, scale, softcap):
    """Attention and log-sums by SciPy, all scores at once, in float64."""
    scores = scale * (q @ k.swapaxes(-1, -2))
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    scores = np.where(allowed, scores + bias, -INF)
    with np.errstate(invalid="ignore", divide="ignore"):
        lse = scipy.special.logsumexp(scores, axis=-1)
        return np.exp(scores - np.where(lse == -INF, 0, lse)[..., None]) @ v, lse


def tiled_masks(rng, t, s):
    """Masks by name: booleans that allow, floats that are added."""
    some = rng.random((2, t, s)) < 0.5
    empty, late, early = some.copy(), np.ones((t, s), bool), np.ones((t, s), bool)
    empty[:, :: max(t // 7, 1)] = False
    late[:, : min(512, s - 1)] = False  # the first tile of keys holds nothing
    early[:, min(5, s - 1) :] = False  # the last ones hold nothing
    late[:3], early[-3:] = False, False
    bias = rng.standard_normal((2, 1, s)) * 3
    return {
        "padding": np.arange(s) < np.array([s - 3, s // 2 + 1])[:, None, None],
        "random": some,
        "empty rows": empty,
        "late": late,
        "early": early,
        "by query": (np.arange(t) % 3 > 0)[:, None],
        "bias": bias,
        "bias with empty rows": np.where(empty, bias, -INF),
        "slope": -0.01 * np.abs(np.arange(t)[:, None] - np.arange(s)),
        "rising": np.linspace(-900, 0, s)[None],
        "falling": np.linspace(0, -900, s)[None],
    }


TILED = {
    "plain": {},
    "causal": {"is_causal": True},
    "causal at the end": {"is_causal": True, "q_offset": "S-T"},
    "causal, 100 earlier": {"is_causal": True, "q_offset": -100},
    "causal, 100 later": {"is_causal": True, "q_offset": 100},
    "causal before all keys": {"is_causal": True, "q_offset": -100000},
    "causal, one tile later": {"is_causal": True, "q_offset": 256},
    "narrow window": {"window": (10, 7)},
    "own key alone": {"window": (0, 0), "q_offset": -3},
    "narrow window to the left": {"window": (20, 0), "q_offset": 130},
    "wide window": {"window": (600, 300)},
    "window of a tile": {"window": (511, 256)},
    "window open to the left": {"window": (None, 5), "q_offset": -37},
    "window open to the right": {"window": (5, None), "q_offset": 37},
    "window open to the right, earlier": {"window": (40, None), "q_offset": -300},
    "causal window": {"window": (300, 100), "is_causal": True, "q_offset": 41},
    "window after all keys": {"window": (3, 3), "q_offset": 100000},
    "window that reaches the last keys": {"window": (200, 3), "q_offset": "S-50"},
    "softcap": {"softcap": 3.0},
    "softcap, causal": {"softcap": 3.0, "is_causal": True},
    "scale": {"scale": -0.2},
    "softcap, causal, bias": {"softcap": 3.0, "is_causal": True, "mask": "bias", "q_offset": 5},
    "padding, causal": {"mask": "padding", "is_causal": True},
    "empty rows, window": {"mask": "empty rows", "window": (100, 50)},
    **{f"mask: {name}": {"mask": name} for name in tiled_masks(np.random.default_rng(0), 4, 4)},
}
# All have more than 256 * 512 scores; around the edges of tiles, and the extremes.
SIZES = [(257, 511), (256, 513), (513, 257), (255, 1025), (258, 1024), (1, 131200)]
# How large scores are, and how they run along the keys.
SCORES = {
    "small": lambda rng, s: 0.5 * np.ones(s),
    "of 100": lambda rng, s: 30 * np.ones(s),
    "of 1000": lambda rng, s: 300 * np.ones(s),
    "rising to 1000": lambda rng, s: np.linspace(0, 300, s),
    "falling from 1000": lambda rng, s: np.linspace(300, 0, s),
    "with a peak": lambda rng, s: 300 * np.exp(-(np.linspace(-3, 3, s) ** 2)),
}


def long_arrays(size, scores, seed=3):
    t, s = size
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, t, 8)), rng.standard_normal((2, s, 8))
    k *= SCORES[scores](rng, s)[:, None]
    if "ing" in scores or "peak" in scores:  # one direction, so that the maxima run as the keys' lengths do
        q, k = np.abs(q), np.abs(k)
    return q, k, rng.standard_normal((2, s, 3))


def assert_tiled_is_in_one_piece(backend, dtype, size, what, scores, atol):
    t, s = size
    q, k, v = (rounded(backend, x, dtype) for x in long_arrays(size, scores))
    options = dict(TILED[what])
    for name, value in options.items():
        if isinstance(value, str) and value.startswith("S-"):
            options[name] = s - t if value == "S-T" else s - 50
    mask = tiled_masks(np.random.default_rng(8), t, s)[options.pop("mask")] if "mask" in options else None
    mask = mask if mask is None else rounded(backend, mask, dtype)
    out, lse = run(backend, q, k, v, mask, dtype=dtype, return_lse=True, **options)
    alone = run(backend, q, k, v, mask, dtype=dtype, **options)

    left, right = options.get("window", (None, None))
    right = 0 if options.get("is_causal") else right
    i, j = np.arange(t)[:, None] + options.get("q_offset", 0), np.arange(s)
    allowed = (left is None or j >= i - left) & np.array(right is None or j <= i + right)
    bias = 0.0
    if mask is not None:
        allowed, bias = (allowed & mask, 0.0) if mask.dtype == bool else (allowed, mask)
    scale = options.get("scale", 8**-0.5)
    expected, expected_lse = in_one_piece(q, k, v, allowed, bias, scale, options.get("softcap"))
    assert_allclose(out, expected, rtol=0, atol=atol)
    assert_allclose(alone, expected, rtol=0, atol=atol)
    assert_allclose(lse, expected_lse, rtol=atol, atol=atol)
    nothing = expected_lse == -INF
    assert (out[nothing] == 0).all()
    assert (lse[nothing] == -INF).all()


IN_TILES = [  # each at the first size, with small and large scores, and at one other size in rotation
    *((what, scores, SIZES[0]) for what in TILED for scores in ("small", "of 100")),
    *((what, "small", SIZES[1:][i % 5]) for i, what in enumerate(TILED)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "scores", "size"), IN_TILES, ids=lambda x: str(x).strip("()"))
def test_tiles_give_what_one_piece_gives(what, scores, size):
    # NumPy alone has tiles; both backends meet in the next tests.
    assert_tiled_is_in_one_piece(Numpy(), "float64", size, what, scores, atol=1e-11)


@pytest.mark.parametrize("what", ["plain", "causal at the end", "causal window", "mask: empty rows", "softcap, causal",
                                  "mask: bias with empty rows"])  # fmt: skip
def test_long_sequences_give_what_one_piece_gives(backend, what):
    assert_tiled_is_in_one_piece(backend, "float64", (257, 511), what, "small", atol=1e-11)


MOVING = ("causal", "causal window", "mask: late", "mask: early", "mask: empty rows", "mask: rising", "mask: falling")
STEEP = ("rising to 1000", "falling from 1000", "with a peak")  # the others are in the tests above


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "scores"), [*(("plain", x) for x in SCORES), *((what, x) for what in MOVING for x in STEEP)]
)
def test_running_maxima_may_rise_and_fall(what, scores):
    assert_tiled_is_in_one_piece(Numpy(), "float64", (257, 1537), what, scores, atol=1e-10)


# Scores of 1000 to base 2 have errors of 1e-4 in float32, and so have the weights.
ATOL = {"small": 2e-6, "of 100": 2e-4, "of 1000": 2e-3, "rising to 1000": 4e-3}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("what", ["plain", "causal", "narrow window", "mask: late", "mask: bias with empty rows",
                                  "softcap, causal", "mask: slope"])  # fmt: skip
@pytest.mark.parametrize("scores", ATOL)
def test_tiles_are_as_exact_as_float32(dtype, what, scores):
    half = HALF_STEP[dtype] * 16 if dtype == "float16" else 0  # log-sums up to 16 and values up to 4, relative else
    assert_tiled_is_in_one_piece(Numpy(), dtype, (257, 1025), what, scores, atol=ATOL[scores] + half)


def test_tiles_know_heads_groups_and_batches(backend, rng):
    q, k, v = (rng.standard_normal(shape) for shape in ((2, 6, 257, 4), (1, 3, 511, 4), (2, 3, 511, 5)))
    mask = rng.random((2, 6, 1, 511)) < 0.7
    out, lse = run(backend, q, k, v, mask, enable_gqa=True, is_causal=True, q_offset=200, return_lse=True)
    k, v = (np.repeat(x, 2, axis=-3) for x in (k, v))
    allowed = mask & (np.arange(511) <= np.arange(257)[:, None] + 200)
    assert_is((out, lse), in_one_piece(q, k, v, allowed, 0.0, 0.5, None), rtol=1e-10)


def test_the_weights_of_a_long_sequence_belong_to_its_context(backend, rng):
    q, k, v = (rng.standard_normal(shape) for shape in ((257, 4), (513, 4), (513, 3)))
    out, weights = run(backend, q, k, v, is_causal=True, q_offset=9, return_weights=True)
    assert_allclose(out, run(backend, q, k, v, is_causal=True, q_offset=9), rtol=1e-10, atol=1e-12)
    assert_allclose(weights @ v, out, rtol=1e-10, atol=1e-12)
    assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"is_causal": True}], ids=["plain", "causal"])
def test_numpy_needs_no_more_than_2_mib_beside_the_result(options):
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 8, 4096, 64), np.float32)
    sdpa(q[..., :300, :], k, v, **options)  # what is made once is not counted
    tracemalloc.start()
    try:
        out = sdpa(q, k, v, **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - out.nbytes <= 2 * 2**20


# What is true of every attention


few = st.integers(-3, 3)
reach = st.one_of(st.none(), st.integers(0, 4))


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), few, st.tuples(reach, reach), st.booleans())
def test_weights_are_probabilities_and_the_context_is_their_average(backend, q, k, v, offset, window, causal):
    options = {"q_offset": offset, "window": window, "is_causal": causal}
    out, weights = run(backend, q, k, v, return_weights=True, **options)
    assert (weights >= 0).all()
    total = weights.sum(axis=-1)
    assert_allclose(total[total > 0], 1, rtol=1e-12)
    assert_allclose(out, weights @ v, rtol=1e-10, atol=1e-12)
    assert_allclose(run(backend, q, k, v, **options), out, rtol=1e-10, atol=1e-12)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), tenths(S, 2), tenths(S, 3), st.integers(0, T - 1), few)
def test_what_comes_later_changes_nothing_before(backend, q, k, v, other_k, other_v, i, offset):
    visible = np.arange(S) <= i + offset
    changed_k, changed_v = np.where(visible[:, None], k, other_k), np.where(visible[:, None], v, other_v)
    options = {"is_causal": True, "q_offset": offset}
    ours, changed = run(backend, q, k, v, **options), run(backend, q, changed_k, changed_v, **options)
    assert_allclose(changed[: i + 1], ours[: i + 1], rtol=1e-11, atol=1e-13)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), few, reach, reach)
def test_window_and_causal_are_the_window_cut_off_at_the_query(backend, q, k, v, offset, left, right):
    both = run(backend, q, k, v, is_causal=True, window=(left, right), q_offset=offset)
    assert_allclose(both, run(backend, q, k, v, window=(left, 0), q_offset=offset), rtol=1e-11, atol=1e-13)
    mask = window_mask(T, S, left, right, q_offset=offset) & causal_mask(T, S, q_offset=offset)
    assert_allclose(both, run(backend, q, k, v, mask), rtol=1e-11, atol=1e-13)


@examples
@given(tenths(6, T, 2), tenths(2, S, 2), tenths(2, S, 3), st.booleans())
def test_grouped_heads_are_repeated_heads(backend, q, k, v, causal):
    repeated = [np.repeat(x, 3, axis=0) for x in (k, v)]
    ours = run(backend, q, k, v, is_causal=causal, enable_gqa=True, **ALL)
    assert_is(ours, run(backend, q, *repeated, is_causal=causal, **ALL))
    assert_allclose(run(backend, q, k, v, is_causal=causal, enable_gqa=True), ours[0], rtol=1e-11, atol=1e-12)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), tenths(T, S), st.permutations(range(S)))
def test_the_order_of_keys_does_not_matter(backend, q, k, v, mask, order):
    ours = run(backend, q, k[order], v[order], mask[:, order])
    assert_allclose(ours, run(backend, q, k, v, mask), rtol=1e-10, atol=1e-12)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), tenths(T, S), st.permutations(range(T)))
def test_permuting_the_queries_permutes_the_results(backend, q, k, v, mask, order):
    ours = run(backend, q[order], k, v, mask[order])
    assert_allclose(ours, run(backend, q, k, v, mask)[order], rtol=1e-10, atol=1e-12)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), tenths(T, S), st.floats(-1e3, 1e3))
def test_a_constant_added_to_a_mask_changes_the_log_sums_alone(backend, q, k, v, mask, constant):
    out, weights, lse = run(backend, q, k, v, mask, **ALL)
    shifted = run(backend, q, k, v, mask + constant, **ALL)
    assert_is(shifted, (out, weights, lse + constant), rtol=1e-8, atol=1e-10)
    assert_allclose(run(backend, q, k, v, mask + constant), out, rtol=1e-8, atol=1e-10)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3), st.integers(0, S), few, reach)
def test_two_halves_of_the_keys_merge_by_their_log_sums(backend, q, k, v, cut, offset, left):
    # exp(lse) are the halves' total weights; the second half begins at key `cut`.
    options = {"is_causal": True, "window": (left, None), "return_lse": True}
    one = run(backend, q, k[:cut], v[:cut], q_offset=offset, **options)
    two = run(backend, q, k[cut:], v[cut:], q_offset=offset - cut, **options)
    with np.errstate(divide="ignore"):
        lse = np.logaddexp(one[1], two[1])
    shares = [np.exp(part[1] - np.where(lse == -INF, 0, lse))[:, None] for part in (one, two)]
    merged = shares[0] * one[0] + shares[1] * two[0]
    assert_is((merged, lse), run(backend, q, k, v, q_offset=offset, **options), rtol=1e-10, atol=1e-11)


@examples
@given(tenths(H, S, 2), tenths(H, S, 2), tenths(H, S, 3), reach)
def test_decoding_one_query_at_a_time_is_the_whole_pass(backend, q, k, v, left):
    window = None if left is None else (left, None)
    whole = run(backend, q, k, v, is_causal=True, window=window)
    for i in range(S):
        step = run(backend, q[:, i : i + 1], k[:, : i + 1], v[:, : i + 1], is_causal=True, window=window, q_offset=i)
        assert_allclose(step, whole[:, i : i + 1], rtol=1e-10, atol=1e-12)


@examples
@given(tenths(T, 2), tenths(S, 2), tenths(S, 3))
def test_a_huge_cap_is_none_and_a_tiny_one_makes_all_alike(backend, q, k, v):
    assert_allclose(run(backend, q, k, v, softcap=1e8), run(backend, q, k, v), rtol=1e-6, atol=1e-9)
    tiny = run(backend, q, k, v, softcap=1e-9)
    assert_allclose(tiny, np.broadcast_to(v.mean(axis=0), tiny.shape), rtol=1e-6, atol=1e-6)


def test_padding_is_as_if_it_were_not_there(backend, rng):
    q, k, v = (rng.standard_normal(shape) for shape in QKV)
    for b, out in enumerate(run(backend, q, k, v, padding_mask([3, S], S))):
        length = (3, S)[b]
        assert_allclose(out, run(backend, q[b], k[b, :, :length], v[b, :, :length]), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("what", ["plain", "bool mask (5, 7) causal", "2 of 6 heads, a padding mask"])
def test_neither_inputs_nor_masks_are_changed(backend, what):
    case = CASES[what]
    arrays = [on(backend, x) for x in case.arrays]
    sdpa(*arrays, **case.options)
    sdpa(*arrays, **case.options, **ALL)
    for ours, x in zip(arrays, case.arrays, strict=True):
        assert_array_equal(backend.numpy(ours), x.astype(float))


# The gradient by hand


GRADIENTS = {
    "plain": {},
    "scale": {"scale": 0.7},
    "causal": {"is_causal": True},
    "causal, later": {"is_causal": True, "q_offset": 2},
    "causal with empty rows": {"is_causal": True, "q_offset": -2},
    "bool mask with empty rows": {"mask": ("bool", (T, S))},
    "padding mask": {"mask": ("bool", (B, 1, 1, S))},
    "float mask with empty rows": {"mask": ("float", (B, H, T, S))},
    "mask of one dimension": {"mask": ("float", (S,))},
    "bool mask and causal": {"mask": ("bool", (T, S)), "is_causal": True, "q_offset": 1},
    "float mask and causal": {"mask": ("float", (H, 1, S)), "is_causal": True},
    "one matrix each": {"shapes": ((T, D), (S, D), (S, D_V)), "is_causal": True},
    "three leading dimensions": {"shapes": heads(H, H, H, batch=(2, B))},
    "keys for all sequences": {"shapes": ((B, H, T, D), (H, S, D), (1, H, S, D_V))},
    "keys for all heads": {"shapes": ((B, H, T, D), (B, 1, S, D), (B, 1, S, D_V)), "is_causal": True},
    "one query for all": {"shapes": ((T, D), (B, H, S, D), (H, S, D_V)), "mask": ("bool", (B, 1, T, S))},
    "values alone have a batch": {"shapes": ((H, T, D), (1, S, D), (B, H, S, D_V))},
    "no keys": {"shapes": ((H, T, D), (H, 0, D), (H, 0, D_V))},
    "no queries": {"shapes": ((H, 0, D), (H, S, D), (H, S, D_V)), "is_causal": True},
    "no width": {"shapes": ((H, T, 0), (H, S, 0), (H, S, D_V))},
    "window": {"window": (1, 2), "q_offset": 1},
    "window to the left, causal": {"window": (2, None), "is_causal": True},
    "window with empty rows": {"window": (0, 1), "q_offset": 4},
    "window and bool mask": {"window": (None, 2), "mask": ("bool", (B, 1, T, S))},
    "softcap": {"softcap": 1.5},
    "softcap, float mask with empty rows, causal": {"softcap": 0.8, "mask": ("float", (T, S)), "is_causal": True},
    "grouped": {"shapes": heads(6, 2, 2), "enable_gqa": True},
    "grouped, all options": {
        **{"shapes": heads(6, 3, 3), "enable_gqa": True, "mask": ("float", (B, 6, T, S)), "window": (3, 1)},
        **{"softcap": 2.0, "scale": 0.4, "q_offset": -1},
    },
    "grouped, a mask for all heads": {"shapes": heads(6, 2, 2), "enable_gqa": True, "mask": ("bool", (B, 1, 1, S))},
    "grouped, one key head": {"shapes": heads(6, 1, 1), "enable_gqa": True, "is_causal": True},
    "grouped, keys of another batch": {
        "shapes": ((B, 6, T, D), (1, 2, S, D), (2, S, D_V)), "enable_gqa": True, "mask": ("bool", (6, T, 1)),
    },
}  # fmt: skip
SMALL_BLOCKS = {"MAX_SCORES": 3 * S, "MAX_ROWS": 2}  # three queries, or two where their reach is limited


def gradients(backend, grad, arrays, options, dtype="float64"):
    q, k, v, *mask = (on(backend, x, dtype) for x in arrays)
    return sdpa_backward(on(backend, grad, dtype), q, k, v, *mask, **options)


def by_autograd(grad, arrays, options):
    """Return the gradients of query, key and value by torch's autograd, from plain operations in float64.

    The last array can be a mask. Empty rows are left out of the loss.
    """
    q, k, v, *mask = (torch.tensor(x, requires_grad=n < 3) for n, x in enumerate(arrays))
    keys, values = k, v
    if options.get("enable_gqa"):
        keys, values = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3) for x in (k, v))
    scores = q @ keys.mT * options.get("scale", max(q.shape[-1], 1) ** -0.5)
    if cap := options.get("softcap"):
        scores = cap * torch.tanh(scores / cap)
    i, j = torch.arange(q.shape[-2])[:, None] + options.get("q_offset", 0), torch.arange(k.shape[-2])
    left, right = options.get("window") or (None, None)
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool)
    for limit in ([j >= i - left] if left is not None else []) + ([j <= i + right] if right is not None else []):
        allowed = allowed & limit
    allowed = allowed & (j <= i) if options.get("is_causal") else allowed
    bias = torch.zeros(scores.shape, dtype=torch.float64).masked_fill(~allowed, -INF)
    if mask:
        bias = bias.masked_fill(~mask[0], -INF) if mask[0].dtype == torch.bool else bias + mask[0]
    nothing = (bias == -INF).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores + bias.masked_fill(nothing, 0.0), dim=-1).masked_fill(nothing, 0.0)
    return torch.autograd.grad(weights @ values, (q, k, v), torch.tensor(grad))


def assert_gradients_are_autograd_s(backend, grad, arrays, options):
    ours = gradients(backend, grad, arrays, options)
    assert type(ours) is tuple
    for mine, theirs in zip(ours, by_autograd(grad, arrays, options), strict=True):
        assert tuple(mine.shape) == tuple(theirs.shape)
        assert_allclose(backend.numpy(mine), theirs.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("what", GRADIENTS)
@pytest.mark.parametrize("blocks", [{}, SMALL_BLOCKS], ids=["one block", "small blocks"])
def test_the_gradient_by_hand_is_torch_s(backend, rng, monkeypatch, what, blocks):
    for name, size in blocks.items():
        monkeypatch.setattr(f"attnlib._score_blocks.{name}", size)
    case = Case(**GRADIENTS[what])
    grad = rng.standard_normal(case.expected.context.shape)
    assert_gradients_are_autograd_s(backend, grad, case.arrays, case.options)


@st.composite
def backward_cases(draw):
    """Shapes of grad, query, key, value and mask, and options: leading dimensions broadcast, heads may be grouped."""
    t, s, groups, H_key = (draw(st.integers(1, most)) for most in (9, 9, 3, 3))
    options = {
        "enable_gqa": draw(st.booleans()),
        "is_causal": draw(st.booleans()),
        "q_offset": draw(st.integers(-4, 4)),
        "window": draw(st.none() | st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(0, 4))),
        "softcap": draw(st.none() | st.sampled_from([0.7, 5.0])),
        "scale": draw(st.sampled_from([0.5, -0.3, 1.0])),
    }
    heads_of = [draw(st.sampled_from([1, 3])) for _ in "qkv"]
    if options["enable_gqa"]:
        heads_of = [groups * H_key, H_key, H_key]
    batches = [draw(st.sampled_from([(), (1,), (2,)])) for _ in "qkv"]
    lengths_and_widths = (t, 2), (s, 2), (s, 3)
    shapes = [(*b, h, *rest) for b, h, rest in zip(batches, heads_of, lengths_and_widths, strict=True)]
    lead = (*np.broadcast_shapes(*batches), max(heads_of))
    full = (*lead, t, s)
    mask = tuple(draw(st.sampled_from([1, n])) for n in full)[draw(st.integers(0, len(full))) :]
    kind = draw(st.sampled_from([None, "bool", "float"]))
    return [(*lead, t, 3), *shapes], kind and (kind, mask), options, draw(st.sampled_from([2, 9, 40]))


@pytest.mark.slow
@settings(examples, max_examples=150)
@given(backward_cases())
def test_the_gradient_by_hand_is_torch_s_under_any_options(backend, case):
    shapes, mask, options, scores = case
    rng = np.random.default_rng(scores)
    grad, *arrays = (rng.standard_normal(shape) for shape in shapes)
    if mask:
        arrays.append(random_mask(rng, *mask))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("attnlib._score_blocks.MAX_SCORES", scores)
        patched.setattr("attnlib._score_blocks.MAX_ROWS", 2)
        assert_gradients_are_autograd_s(backend, grad, arrays, options)


@pytest.mark.parametrize(
    "what", ["plain", "causal with empty rows", "float mask with empty rows", "keys for all sequences", "scale"]
)
def test_the_gradient_by_hand_is_that_of_the_forward_pass(rng, what):
    case = Case(**GRADIENTS[what])
    q, k, v, *mask = (torch.tensor(x) for x in case.arrays)
    for x in (q, k, v):
        x.requires_grad_()
    context = sdpa(q, k, v, *mask, **case.options)
    grad = rng.standard_normal(context.shape)
    context.backward(torch.tensor(grad))
    for mine, x in zip(gradients(Torch("cpu"), grad, case.arrays, case.options), (q, k, v), strict=True):
        torch.testing.assert_close(mine, x.grad)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True, "q_offset": 1},
        {"is_causal": True, "q_offset": -1, "scale": 0.9},
        {"attn_mask": np.array([[True, False, True, True], [False] * 4, [True, True, False, True]])},
        {"attn_mask": np.array([0.5, -1.0, 0.0, -INF])},
        {"window": (1, 0), "q_offset": 1, "softcap": 0.9},
    ],
    ids=["plain", "causal", "scale", "bool", "float", "window and softcap"],
)
@pytest.mark.parametrize("lead", [((), (), ()), ((2,), (), (1,))], ids=["alone", "broadcast"])
def test_the_gradient_by_hand_is_the_numerical_one(backend, rng, options, lead):
    arrays = [rng.standard_normal((*n, *shape)) for n, shape in zip(lead, ((3, 2), (4, 2), (4, 3)), strict=True)]
    grad = rng.standard_normal((*lead[0], 3, 3))
    by_hand = {name: on(backend, x) for name, x in options.items()}
    ours = sdpa_backward(*(on(backend, x) for x in (grad, *arrays)), **by_hand)
    step = 1e-5
    for n, mine in enumerate(ours):
        numerical = np.zeros(arrays[n].shape)
        for index in np.ndindex(numerical.shape):
            moved = [x.copy() for x in arrays]
            moved[n][index] += step
            ahead = (grad * run(backend, *moved, **options)).sum()
            moved[n][index] -= 2 * step
            numerical[index] = (ahead - (grad * run(backend, *moved, **options)).sum()) / (2 * step)
        assert_allclose(backend.numpy(mine), numerical, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("what", ["plain", "bool mask and causal", "keys for all heads"])
def test_the_gradient_by_hand_keeps_the_dtype_and_is_computed_in_float32(typed, rng, what):
    backend, dtype = typed
    case = Case(**GRADIENTS[what])
    arrays = [rounded(backend, x, dtype) for x in case.arrays]
    grad = rounded(backend, rng.standard_normal((B, H, T, D_V)), dtype)
    ours = gradients(backend, grad, arrays, case.options, dtype)
    exact = gradients(Numpy(), grad, arrays, case.options)
    for mine, theirs in zip(ours, exact, strict=True):
        assert dtype_name(mine) == dtype
        inner = 256 * max(2**-53 if dtype == "float64" else 2**-24, 0)
        # The weights go through softmax in the dtype of the work, float32; the result is rounded once.
        assert_allclose(backend.numpy(mine), theirs, rtol=HALF_STEP[dtype] + inner, atol=4 * inner)


@pytest.mark.parametrize("top", [1e4, 1e15])
def test_the_gradient_by_hand_of_large_scores_is_finite(backend, top):
    q, k = np.array([[top], [-top]]), np.array([[1.0], [-1.0], [1.0]])
    for x in gradients(backend, np.ones((2, 1)), (q, k, np.array([[1.0], [2.0], [4.0]])), {}, "float32"):
        assert np.isfinite(backend.numpy(x)).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"softcap": 5.0}, {"window": (100, 100)}], ids=str)
@pytest.mark.parametrize("backend", [Numpy(), Torch("cpu")], ids=str)  # a GPU computes so many scores at a time
def test_the_gradient_by_hand_needs_no_more_than_8_mib_beside_the_results(backend, options):
    arrays = [backend.array(np.zeros((1, 2048, 64)), "float32")] * 4
    peak = peak_of(backend, lambda: sdpa_backward(*arrays, **options))
    assert peak - 3 * 2**19 <= 8 * 2**20, "all scores are 16 MiB"


def test_the_gradient_by_hand_of_a_softcap_is_worked_by_hand(backend):
    # Scores 0 and 2 atanh(1/2) are capped by 2 to 0 and 1; the weights are p = 1 / (1 + e) and 1 - p.
    # dS = -/+ p (1 - p) for values 0 and 1, and the slope of the cap at the second is 1 - (1/2)^2 = 3/4.
    q, k, v = np.array([[2 * np.arctanh(0.5)]]), np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])
    d_query, d_key, d_value = gradients(backend, np.ones((1, 1)), (q, k, v), {"softcap": 2.0})
    p = 1 / (1 + np.e)
    assert_allclose(backend.numpy(d_value).ravel(), [p, 1 - p], rtol=1e-12)
    assert_allclose(backend.numpy(d_query).ravel(), [0.75 * p * (1 - p)], rtol=1e-12)
    assert_allclose(backend.numpy(d_key).ravel(), [-p * (1 - p) * q[0, 0], 0.75 * p * (1 - p) * q[0, 0]], rtol=1e-12)


# Errors


def forward(z, mask=None, query=(B, H, T, D), key=(B, H, S, D), value=(B, H, S, D_V), **options):
    return sdpa(z(*query), z(*key), z(*value), mask, **options)


def backward(z, mask=None, grad=(B, H, T, D_V), query=(B, H, T, D), key=(B, H, S, D), value=(B, H, S, D_V), **options):
    return sdpa_backward(z(*grad), z(*query), z(*key), z(*value), mask, **options)


SCORES_SHAPE = sizes(B, H, T, S)


def of_both(function, name):
    """The errors that the forward and the backward pass share."""
    return {
        f"{name}: a query that is a vector": (lambda z: function(z, query=(D,)), ValueError, [sizes(D)]),
        f"{name}: a key that is a vector": (lambda z: function(z, key=(D,)), ValueError, [sizes(D)]),
        f"{name}: a value that is a vector": (lambda z: function(z, value=(S,)), ValueError, [sizes(S)]),
        f"{name}: a query that is a number": (lambda z: function(z, query=()), ValueError, [sizes()]),
        f"{name}: two widths": (
            lambda z: function(z, key=(B, H, S, D_V)), ValueError, [sizes(B, H, T, D), sizes(B, H, S, D_V)],
        ),
        f"{name}: a width 1 that would broadcast": (
            lambda z: function(z, key=(B, H, S, 1)), ValueError, [sizes(B, H, T, D), sizes(B, H, S, 1)],
        ),
        f"{name}: more values than keys": (
            lambda z: function(z, value=(B, H, T, D_V)), ValueError, [sizes(B, H, S, D), sizes(B, H, T, D_V)],
        ),
        f"{name}: one value that would broadcast": (
            lambda z: function(z, value=(B, H, 1, D_V)), ValueError, [sizes(B, H, S, D), sizes(B, H, 1, D_V)],
        ),
        f"{name}: one key and many values": (
            lambda z: function(z, key=(B, H, 1, D)), ValueError, [sizes(B, H, 1, D), sizes(B, H, S, D_V)],
        ),
        f"{name}: batches of the key that do not broadcast": (
            lambda z: function(z, key=(5, H, S, D)), ValueError, [sizes(B, H, T, D), sizes(5, H, S, D)],
        ),
        f"{name}: heads of the value that do not broadcast": (
            lambda z: function(z, value=(B, 5, S, D_V)), ValueError, [sizes(B, 5, S, D_V)],
        ),
        f"{name}: fewer key heads without enable_gqa": (
            lambda z: function(z, query=(B, 6, T, D), key=(B, 2, S, D), value=(B, 2, S, D_V)), ValueError,
            [sizes(B, 6, T, D), sizes(B, 2, S, D)],
        ),
        **{
            f"{name}: a {kind} mask {shape}": (
                lambda z, kind=kind, shape=shape: function(z, z(*shape, dtype=kind)), ValueError,
                [sizes(*shape), SCORES_SHAPE],
            )
            for kind in ("bool", "float64")
            for shape in [(D,), (T,), (T, D), (D, S), (S, T), (B, S), (B, T, S), (5, 1, T, S), (B, 5, T, S),
                          (H, 1, 1, S), (B, H, D, S), (B, H, T, D), (1, B, H, T, S), (5, B, H, T, S), (0,)]
        },
        f"{name}: a mask that enlarges a batch of 1": (
            lambda z: function(z, z(B, 1, T, S, dtype="bool"), query=(1, H, T, D), key=(1, H, S, D),
                               value=(1, H, S, D_V)), ValueError, [sizes(B, 1, T, S), sizes(1, H, T, S)],
        ),
        f"{name}: a mask that adds heads": (
            lambda z: function(z, z(H, T, S, dtype="bool"), query=(T, D), key=(S, D), value=(S, D_V)), ValueError,
            [sizes(H, T, S), sizes(T, S)],
        ),
        f"{name}: a mask for more queries than one": (
            lambda z: function(z, z(T, S, dtype="bool"), query=(1, D), key=(S, D), value=(S, D_V)), ValueError,
            [sizes(T, S), sizes(1, S)],
        ),
        f"{name}: a mask for more keys than one": (
            lambda z: function(z, z(T, S), query=(T, D), key=(1, D), value=(1, D_V)), ValueError,
            [sizes(T, S), sizes(T, 1)],
        ),
        **{
            f"{name}: a mask of {dtype}": (
                lambda z, dtype=dtype: function(z, z(T, S, dtype=dtype)), TypeError, ["mask", dtype],
            )
            for dtype in ("int64", "uint8")
        },
        f"{name}: a mask that is a list": (lambda z: function(z, [[True] * S] * T), TypeError, ["mask", "list"]),
        f"{name}: scale NaN": (lambda z: function(z, scale=NAN), ValueError, ["scale", "nan"]),
        f"{name}: an infinite scale": (lambda z: function(z, scale=-INF), ValueError, ["scale", "inf"]),
        f"{name}: half an offset": (
            lambda z: function(z, is_causal=True, q_offset=0.5), TypeError, ["q_offset", r"0\.5"],
        ),
        f"{name}: half an offset that nothing needs": (
            lambda z: function(z, q_offset=0.5), TypeError, ["q_offset", r"0\.5"],
        ),
        f"{name}: a bool as offset": (
            lambda z: function(z, is_causal=True, q_offset=True), TypeError, ["q_offset", "True"],
        ),
        f"{name}: integers as query": (
            lambda z: function(lambda *s, **o: z(*s, **({"dtype": "int64"} | o) if s == (B, H, T, D) else o)),
            TypeError, ["query", "int64"],
        ),
    }  # fmt: skip


def grouped(z, q, k, v, mask=None, **options):
    return forward(z, mask, query=(*q, T, D), key=(*k, S, D), value=(*v, S, D_V), enable_gqa=True, **options)


ERRORS = {
    **of_both(forward, "forward"),
    **of_both(backward, "backward"),
    "query heads that are no multiple": (lambda z: grouped(z, (B, 5), (B, 2), (B, 2)), ValueError, ["5", "2", "head"]),
    "more key heads than query heads": (lambda z: grouped(z, (B, 2), (B, 6), (B, 6)), ValueError, ["2", "6", "head"]),
    "keys and values of different heads": (
        lambda z: grouped(z, (B, 6), (B, 2), (B, 3)), ValueError, ["6", "2", "3", "head"],
    ),
    "grouped heads without heads": (
        lambda z: grouped(z, (), (), ()), ValueError, ["enable_gqa|heads", sizes(T, D)],
    ),
    "grouped heads without heads of the key": (
        lambda z: grouped(z, (6,), (), ()), ValueError, ["enable_gqa|heads", sizes(S, D)],
    ),
    "no key heads": (lambda z: grouped(z, (B, 6), (B, 0), (B, 0)), ValueError, ["6", "0", "head"]),
    "grouped batches that do not broadcast": (
        lambda z: grouped(z, (B, 6), (5, 2), (5, 2)), ValueError, [sizes(B, 6, T, D), sizes(5, 2, S, D)],
    ),
    "a mask for the key heads of grouped queries": (
        lambda z: grouped(z, (B, 6), (B, 2), (B, 2), z(B, 2, T, S, dtype="bool")), ValueError,
        [sizes(B, 2, T, S), sizes(B, 6, T, S)],
    ),
    **{
        f"dropout_p {p}": (lambda z, p=p: forward(z, dropout_p=p), ValueError, ["dropout_p", str(p)])
        for p in (-0.1, 1.5, NAN)
    },
    **{
        f"softcap {cap}": (lambda z, cap=cap: forward(z, softcap=cap), ValueError, ["softcap", str(cap)])
        for cap in (-1.0, NAN, INF)
    },
    **{
        f"window {window!r}": (lambda z, w=window: forward(z, window=w), error, ["window", word])
        for window, error, word in (
            (3, TypeError, "3"),
            ("ab", TypeError, "ab"),
            ((1,), (TypeError, ValueError), "1"),
            ((1, 2, 3), (TypeError, ValueError), "1, 2, 3"),
            ((-1, 0), ValueError, "-1"),
            ((0, -2), ValueError, "-2"),
            ((0.5, 0), TypeError, r"0\.5"),
            ((0, 1.0), TypeError, r"1\.0"),
            ((True, 0), TypeError, "True"),
        )
    },
    **{
        f"{name} {value!r}, values as wide as keys": (
            lambda z, name=name, value=value: forward(z, value=(B, H, S, D), **{name: value}), error, [name, word],
        )
        for name, value, error, word in (
            ("window", (), (TypeError, ValueError), r"\(\)"),
            ("window", 0, TypeError, "0"),
            ("window", (-1, 0), ValueError, "-1"),
            ("q_offset", 0.0, TypeError, r"0\.0"),
            ("q_offset", False, TypeError, "False"),
            ("scale", NAN, ValueError, "nan"),
            ("dropout_p", 2.0, ValueError, r"2\.0"),
            ("softcap", -1.0, ValueError, r"-1\.0"),
        )
    },
    **{
        f"a gradient of shape {shape}": (
            lambda z, shape=shape: backward(z, grad=shape), ValueError, ["grad", sizes(*shape), sizes(B, H, T, D_V)],
        )
        for shape in [(B, H, T, D), (T, D_V), (B, H, S, D_V), (1, H, T, D_V), (B, H, T, 1), (), (1, B, H, T, D_V)]
    },
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


@pytest.mark.parametrize(("one", "other"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
@pytest.mark.parametrize("kind", ["bool", "float64"])
def test_a_mask_of_the_other_library_is_refused(one, other, kind):
    q, k, v, grad = (one.array(np.ones(shape)) for shape in ((T, D), (S, D), (S, D_V), (T, D_V)))
    mask = other.array(np.ones((T, S)), kind)
    for call in (lambda: sdpa(q, k, v, mask), lambda: sdpa_backward(grad, q, k, v, mask)):
        with pytest.raises(TypeError, match=r"ndarray.*Tensor|Tensor.*ndarray"):
            call()
