"""nan and inf among queries, keys and values: one rule, whatever path computes.

A query that may attend to nan, in itself, a key or a value, has context nan; so has one with a score of inf. A score of
-inf is a weight of 0 beside others. What is masked out should be finite: else a context is what it would be without, or
nan.
"""

import numpy as np
import pytest
import torch
from backends import D
from numpy.testing import assert_allclose, assert_array_equal
from oracle import attend
from sdpa_cases import INF, on, run
from torch._subclasses.fake_tensor import FakeTensorMode

from attnlib import scaled_dot_product_attention as sdpa

NAN = np.nan
SIZES = {"one key": (3, 1), "few keys": (5, 7), "16 keys": (5, 16), "more keys": (40, 37), "tiles": (130, 1100)}
RULES = {
    "all": {},
    "causal": {"is_causal": True},
    "causal, placed": {"is_causal": True, "q_offset": 2},
    "window": {"window": (3, 1)},
    "weights": {"return_weights": True},
    "log-sums": {"return_lse": True, "is_causal": True},
    "weights, causal": {"return_weights": True, "is_causal": True},
}


def allowed(T, S, is_causal=False, q_offset=0, window=None, **_):
    i, j = np.arange(T)[:, None] + q_offset, np.arange(S)
    left, right = window or (None, None)
    seen = np.ones((T, S), bool)
    seen &= j <= i if is_causal else True
    seen &= j >= i - left if left is not None else True
    return seen & (j <= i + right) if right is not None else seen


def qkv(rng, T, S):
    """Queries and keys that are positive, so that inf times them has a sign; all other scores are moderate.

    The values are as wide as the keys: torch takes its fused kernel for no others.
    """
    return [rng.uniform(0.1, 1, (2, n, D)) for n in (T, S, S)]


def context(result):
    return result[0] if isinstance(result, tuple) else result


def close(dtype):
    return {"rtol": 0, "atol": {"bfloat16": 0.05, "float16": 0.01, "float32": 1e-5}.get(dtype, 1e-11)}


def run_with_mask(backend, arrays, dtype, options, mask=None):
    return context(run(backend, *arrays, dtype=dtype, **options, **({} if mask is None else {"attn_mask": mask})))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_query_that_attends_to_nan_has_context_nan(backend, rng, size, rule, dtype):
    (T, S), options = SIZES[size], RULES[rule]
    arrays = qkv(rng, T, S)
    clean = run_with_mask(backend, arrays, dtype, options)
    for place, x in zip(("query", "key", "value"), arrays, strict=True):
        at = (0, len(x[0]) // 2, 2)
        before, x[at] = x[at], NAN
        assert_nan_spreads(
            place, run_with_mask(backend, arrays, dtype, options), clean, allowed(T, S, **options), dtype
        )
        x[at] = before


def assert_nan_spreads(place, out, clean, seen, dtype):
    """Compare ``out``, computed with a nan halfway down this array in column 2, with ``clean``, computed without it."""
    T, S = seen.shape
    at = (T if place == "query" else S) // 2
    lost = np.zeros((2, T, D), bool)
    if place == "query":
        lost[0, at] = seen[at].any()
    else:
        lost[0, seen[:, at], 2 if place == "value" else slice(None)] = True
    assert np.isnan(out[lost]).all()
    masked = np.zeros_like(lost) if place == "query" else np.broadcast_to(~seen[:, at], (2, T))[..., None] & ~lost
    masked = masked & (np.arange(2) == 0)[:, None, None]
    assert_allclose(out[~lost & ~masked], clean[~lost & ~masked], **close(dtype))
    same = np.abs(out - clean) <= close(dtype)["atol"]
    assert (same | np.isnan(out))[masked].all(), "what is masked out is ignored or spreads, and does nothing else"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rule", RULES)
def test_a_score_of_inf_is_nan_and_one_of_minus_inf_no_weight(backend, rng, size, rule):
    (T, S), options = SIZES[size], RULES[rule]
    arrays = qkv(rng, T, S)
    at, seen = S // 2, allowed(T, S, **options)
    arrays[1][0, at, 2] = 0
    without = attend(*(x[:1] for x in arrays), seen & (np.arange(S) != at)).context if S < 100 else None
    others = seen.sum(-1) > 1
    for dtype in backend.dtypes:
        arrays[1][0, at, 2] = INF
        out = run_with_mask(backend, arrays, dtype, options)
        assert np.isnan(out[0, seen[:, at]]).all(), dtype
        assert np.isfinite(out[1]).all(), dtype
        arrays[1][0, at, 2] = -INF
        out = run_with_mask(backend, arrays, dtype, options)
        if without is not None:
            assert_allclose(out[0, others], without[0, others], **close(dtype))
        assert np.isfinite(out[0, others]).all(), dtype
        assert np.isfinite(out[1]).all(), dtype


@pytest.mark.parametrize("kind", ["bool", "float", "wide"])
@pytest.mark.parametrize("S", [3, 17, 40, 300])
def test_a_score_of_inf_is_nan_beside_a_mask(typed, rng, kind, S):
    backend, dtype = typed
    arrays = qkv(rng, T := 5, S)
    mask = rng.random((T, S)) < 0.7
    mask[:, 1], mask[2:, 1], mask[3] = True, False, False
    clean = attend(*arrays, mask).context
    arrays[1][0, 1, 2] = INF
    given = on(backend, mask if kind == "bool" else np.where(mask, 0.0, -INF), dtype)
    given = on(backend, np.where(mask, 0.0, -INF), "float32") if kind == "wide" and dtype != "float64" else given
    out = backend.numpy(sdpa(*(on(backend, x, dtype) for x in arrays), given))
    assert np.isnan(out[0, :2]).all()
    masked = np.isnan(out[0, 2:]) | (np.abs(out[0, 2:] - clean[0, 2:]) <= close(dtype)["atol"])
    assert masked.all()
    assert_allclose(out[1], clean[1], **close(dtype))


@pytest.mark.parametrize("S", [3, 17, 40, 300])
def test_a_bias_of_inf_is_nan(typed, rng, S):
    backend, dtype = typed
    arrays, mask = qkv(rng, T := 5, S), np.zeros((5, S))
    mask[3, 1] = INF
    out = run(backend, *arrays, dtype=dtype, attn_mask=mask)
    assert np.isnan(out[:, 3]).all()
    assert np.isfinite(out[:, np.arange(T) != 3]).all()


@pytest.mark.parametrize("special", [NAN, INF])
@pytest.mark.parametrize("column", [0, 2])
def test_a_score_of_inf_is_nan_in_all_columns_beside_a_value_that_is_not_finite(typed, rng, special, column):
    backend, dtype = typed
    arrays = qkv(rng, 5, 40)
    arrays[1][:, 1, 2], arrays[2][:, 3, column] = INF, special
    assert np.isnan(run(backend, *arrays, dtype=dtype)).all()


def test_a_context_of_0_is_kept_in_half_precision(typed):
    # torch's kernel returns 0 for a score of inf too, so a 0 makes us look at the scores.
    backend, dtype = typed
    ones = np.ones((2, 17, D))
    assert (run(backend, ones, ones, 0 * ones, dtype=dtype) == 0).all()
    assert (run(backend, ones, ones, ones, dtype=dtype, attn_mask=np.tri(17, k=-1).astype(bool))[:, 0] == 0).all()
    assert (run(backend, *(x[..., :0] for x in (ones, ones)), 0 * ones, dtype=dtype) == 0).all()


def test_scores_beyond_float32_are_inf_in_bfloat16_too():
    large = torch.full((1, 2, 17, D), 2.0**120, dtype=torch.bfloat16)
    assert sdpa(large, large, torch.ones_like(large)).isnan().all()


def test_a_negative_mask_does_not_make_a_lost_score_finite():
    # 4 * 1e19 * 1.2e19 = 4.8e38 is beyond float32, and -3e38 more would not be: but the product comes first.
    query, key = torch.full((1, 2, 5, 4), 1e19), torch.zeros(1, 2, 20, 4)
    key[..., 3, :] = 1.2e19
    query, key, value = query.bfloat16(), key.bfloat16(), torch.ones(1, 2, 20, 4).bfloat16()
    assert sdpa(query, key, value, torch.full((5, 20), -3e38), scale=1.0).isnan().all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_infinite_value_is_an_infinite_context(backend, rng, size, rule, dtype):
    (T, S), options = SIZES[size], RULES[rule]
    arrays = qkv(rng, T, S)
    at, seen = S // 2, allowed(T, S, **options)
    arrays[2][0, at, 1] = -INF
    with np.errstate(invalid="ignore"):  # of a weight 0 times inf, where the value is masked out
        out = run_with_mask(backend, arrays, dtype, options)
    assert (out[0, seen[:, at], 1] == -INF).all()
    assert np.isfinite(out[0][:, [0, *range(2, D)]]).all()
    assert not (out[0, ~seen[:, at], 1] == INF).any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_nan_that_may_attend_to_nothing_stays_alone(backend, rng, size, kind, dtype):
    T, S = SIZES[size]
    arrays = qkv(rng, T, S)
    mask = np.ones((T, S), bool)
    mask[1] = False
    arrays[0][0, :2] = NAN
    given = mask if kind == "bool" else np.where(mask, 0.0, -INF)
    out = run_with_mask(backend, arrays, dtype, {}, given)
    assert np.isnan(out[0, 0]).all()
    assert ((out[0, 1] == 0) | np.isnan(out[0, 1])).all()
    assert (out[1, 1] == 0).all()
    assert np.isfinite(out[:, 2:]).all()


@pytest.mark.parametrize("size", ["one key", "few keys", "16 keys", "more keys"])
@pytest.mark.parametrize("rule", RULES)
def test_a_batch_of_heads_follows_the_same_rule(backend, rng, size, rule):
    # (B, H, T, D) takes code paths of its own.
    (T, S), options = SIZES[size], RULES[rule]
    for place in range(3):
        arrays = qkv(rng, T, S)
        arrays[place][0, len(arrays[place][0]) // 2, 2] = NAN
        expected = run_with_mask(backend, arrays, "float64", options)
        out = run_with_mask(backend, [x[None] for x in arrays], "float64", options)[0]
        assert_array_equal(np.isnan(out), np.isnan(expected))
        assert_allclose(out, expected, **close("float64"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
def test_without_keys_the_context_is_0_whatever_memory_held(dtype, causal):
    for _ in range(200):  # what torch's kernel returned depended on the memory it was given
        torch.full((1, 2, 64, 8), NAN, dtype=getattr(torch, dtype))
        query, key, value = (torch.ones((1, 2, n, 8), dtype=getattr(torch, dtype)) for n in (3, 0, 0))
        assert (sdpa(query, key, value, is_causal=causal) == 0).all()
        assert (sdpa(query[0], key[0], value[0], is_causal=causal) == 0).all()


def test_fake_tensors_of_few_keys_need_no_mode():
    x = FakeTensorMode().from_tensor(torch.ones(1, 2, 5, 8))
    assert sdpa(x, x, x, is_causal=True).shape == (1, 2, 5, 8)
