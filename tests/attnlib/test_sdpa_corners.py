"""scaled_dot_product_attention where it once went wrong, or would: each of these was a fault, found from outside."""

import numpy as np
import pytest
import torch
from backends import B, D, H, S, T, assert_error_names, dtype_name, sizes
from numpy.testing import assert_allclose
from oracle import attend
from sdpa_cases import ALL, INF, QKV, run

import attnlib
from attnlib import scaled_dot_product_attention as sdpa


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("keys", [1024, 1100])
def test_padding_on_the_left_and_far_negative_scores_after_it_leave_a_row_its_values(backend, dtype, keys):
    # The first tile of keys is hidden altogether, and the scores after it are far below those of the hidden ones.
    query, key, mask = np.ones((256, 1)), np.zeros((keys, 1)), np.ones((256, keys), bool)
    key[512:], mask[0, :512] = -1000, False
    mask[1:100, :300] = False
    value = np.where(np.arange(keys) < 512, 1.0, 3.0)[:, None]
    out, lse = run(backend, query, key, value, dtype=dtype, attn_mask=mask, scale=1.0, return_lse=True)
    assert_allclose(out[0], 3, rtol=1e-3)
    assert_allclose(lse[0], np.log(keys - 512) - 1000, rtol=1e-3)
    assert_allclose(out[1:], 1, rtol=1e-3)


@pytest.mark.parametrize("scale", [0.0, -0.3])
@pytest.mark.parametrize("options", [{"is_causal": True}, {"window": (None, 0)}, {"window": (1, 0)}], ids=str)
@pytest.mark.parametrize("more", [{}, ALL], ids=["alone", "all"])
def test_a_causal_scale_may_be_0_or_negative(backend, rng, scale, options, more):
    arrays = [rng.standard_normal(shape) for shape in QKV]
    ours = run(backend, *arrays, scale=scale, **options, **more)
    theirs = attend(*arrays, scale=scale, **options)
    assert_allclose(ours[0] if more else ours, theirs[0], atol=1e-12)


@pytest.mark.parametrize(
    "mask_shape", [(B, 1, T, S), (B, H, 1, S), (1, 1, T, S), (B, H, T, S), (H, T, S), (2, B, 1, 1, S)]
)
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("options", [{}, {"window": (2, None)}, {"is_causal": True}], ids=str)
def test_a_mask_with_batches_serves_more_batches(backend, rng, mask_shape, kind, options):
    arrays = [rng.standard_normal((2, *shape)) for shape in QKV]
    mask = rng.random(mask_shape) < 0.7
    mask = mask if kind == "bool" else np.where(mask, rng.standard_normal(mask_shape), -INF)
    ours = run(backend, *arrays, attn_mask=mask, **options)
    assert_allclose(ours, attend(*arrays, mask, **options)[0], atol=1e-12)


@pytest.mark.parametrize(
    ("queries", "keys"), [((2,), (1,)), ((1,), (2,)), ((6,), (1,)), ((3, 1), (1, 2)), ((), (2,))], ids=str
)
@pytest.mark.parametrize("more", [{}, {"is_causal": True, "q_offset": S}, {"return_weights": True}], ids=str)
def test_grouped_queries_may_share_the_keys_of_another_batch(backend, rng, queries, keys, more):
    arrays = [rng.standard_normal(shape) for shape in ((*queries, 6, T, D), (*keys, 2, S, D), (*keys, 2, S, D))]
    ours = run(backend, *arrays, enable_gqa=True, **more)
    lead = np.broadcast_shapes(queries, keys)
    query, *shared = (np.broadcast_to(x, (*lead, *x.shape[-3:])) for x in arrays)
    theirs = attend(query, *(np.repeat(x, 3, axis=-3) for x in shared))
    assert_allclose(ours[0] if "return_weights" in more else ours, theirs.context, atol=1e-12)


@pytest.mark.parametrize("size", [1e30, 1e-36, 0.0], ids=str)
@pytest.mark.parametrize("score", [20.0, -20.0])
@pytest.mark.parametrize("queries", [3, 300])
def test_values_of_any_size_are_averaged_without_loss(backend, size, score, queries):
    query, key, value = np.ones((queries, 1)), np.full((700, 1), score), np.full((700, 1), size)
    out = run(backend, query, key, value, dtype="float32", scale=1.0)
    assert_allclose(out, np.float32(size), rtol=3e-6)


@pytest.mark.parametrize("gap", [0.0, 20.0, 50.0, 60.0])
def test_small_weights_keep_their_digits(backend, gap):
    value = np.eye(2)
    _, weights = run(backend, np.ones((1, 1)), np.array([[0.0], [-gap]]), value, scale=1.0, return_weights=True)
    assert_allclose(weights[0, 1], np.exp(-gap) / (1 + np.exp(-gap)), rtol=1e-12)


@pytest.mark.parametrize("mask_dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("keys", [16, 33, 70])
def test_a_float_mask_of_another_dtype_is_read_as_it_is(typed, rng, mask_dtype, keys):
    backend, dtype = typed
    arrays = [backend.array(rng.standard_normal((2, n, D)), dtype) for n in (T, keys, keys)]
    mask = backend.array(rng.standard_normal((T, keys)), mask_dtype)
    exact = attend(*map(backend.numpy, arrays), backend.numpy(mask)).context
    assert_allclose(
        backend.numpy(sdpa(*arrays, mask)), exact, atol={"bfloat16": 0.05, "float16": 0.01}.get(dtype, 1e-5)
    )


@pytest.mark.parametrize("mask_dtype", ["float32", "float64"])
def test_a_float_mask_may_have_another_dtype_and_the_result_keeps_the_inputs(typed, rng, mask_dtype):
    backend, dtype = typed
    arrays = [backend.array(rng.standard_normal(shape), dtype) for shape in QKV]
    mask = np.where(rng.random((T, S)) < 0.7, rng.standard_normal((T, S)).round(1), -INF)
    exact = attend(*map(backend.numpy, arrays), mask)
    for more in ({}, {"return_weights": True}, {"is_causal": True, "softcap": 3.0}):
        result = sdpa(*arrays, backend.array(mask, mask_dtype), **more)
        out = result[0] if "return_weights" in more else result
        assert dtype_name(out) == dtype
        if "softcap" not in more:
            assert_allclose(backend.numpy(out), exact[0], atol={"bfloat16": 0.05, "float16": 0.01}.get(dtype, 1e-5))
    context, _ = attnlib.attention(*arrays, mask=backend.array(mask, mask_dtype))
    assert dtype_name(context) == dtype


@pytest.mark.parametrize("queries", [1, 5, 40])
def test_a_few_queries_see_very_many_keys(backend, rng, queries):
    query, key, value = (
        rng.standard_normal((queries, D)),
        rng.standard_normal((9001, D)),
        rng.standard_normal((9001, 3)),
    )
    scores = query @ key.T / np.sqrt(D)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert_allclose(run(backend, query, key, value), weights @ value, atol=1e-12)


def test_a_row_of_lowest_numbers_is_a_row_of_equals(backend, rng):
    arrays = [rng.standard_normal(shape) for shape in QKV]
    mask = np.full((T, S), float(np.finfo(np.float32).min))
    out = run(backend, *arrays, dtype="float32", attn_mask=mask)
    assert_allclose(out, np.broadcast_to(arrays[2].mean(-2, keepdims=True), out.shape), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("keys", [1, S])
@pytest.mark.parametrize("size", [1, 100], ids=["small scores", "large scores"])
def test_extended_precision_gives_what_float64_gives(rng, keys, size):
    arrays = [size * rng.standard_normal((n, D)) for n in (T, keys, keys)]
    mask = rng.random((T, keys)) < 0.7
    expected = sdpa(*arrays, mask, return_weights=True, return_lse=True)
    found = sdpa(*(x.astype(np.longdouble) for x in arrays), mask, return_weights=True, return_lse=True)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == np.longdouble
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_numbers_of_numpy_are_numbers(backend, rng):
    arrays = [rng.standard_normal(shape) for shape in QKV]
    plain = run(backend, *arrays, scale=0.25, softcap=2.0, dropout_p=0.0, q_offset=1, window=(2, 3))
    of_numpy = run(
        backend, *arrays, scale=np.float32(0.25), softcap=np.float16(2.0), dropout_p=np.float64(0), q_offset=np.int8(1),
        window=(np.int8(2), np.uint8(3)),
    )  # fmt: skip
    assert_allclose(of_numpy, plain, rtol=1e-12)


ERRORS = {
    "a scale that could be learned": (
        lambda z: sdpa(z(T, D), z(S, D), z(S, D), scale=torch.tensor(0.5)), TypeError, ["scale", "Tensor", "multiply"],
    ),
    "a bandwidth that could be learned": (
        lambda z: attnlib.gaussian(z(T, D), z(S, D), bandwidth=torch.tensor(0.5)), TypeError, ["bandwidth", "Tensor"],
    ),
    "a scale in words": (
        lambda z: sdpa(z(T, D), z(S, D), z(S, D), scale="small"), TypeError, ["scale", "'small'", "number"],
    ),
    "a softcap in words": (
        lambda z: sdpa(z(T, D), z(S, D), z(S, D), softcap="x"), TypeError, ["softcap", "'x'", "number"],
    ),
    "softcap that is masked": (
        lambda z: sdpa(z(T, D), z(S, D), z(S, D), softcap=np.ma.masked_array([3.0], [True])), TypeError,
        ["softcap", "MaskedArray", "filled"],
    ),
    "scale that is masked": (
        lambda z: sdpa(z(T, D), z(S, D), z(S, D), scale=np.ma.masked_array(0.5)), TypeError,
        ["scale", "MaskedArray", "filled"],
    ),
    "enable_gqa that is no flag": (
        lambda z: sdpa(z(B, 6, T, D), z(B, 3, S, D), z(B, 3, S, D), enable_gqa="x"), TypeError,
        ["enable_gqa", "'x'", "True or False"],
    ),
    "enable_gqa that is no flag, backward": (
        lambda z: attnlib.scaled_dot_product_attention_backward(*[z(T, D)] * 4, enable_gqa=1), TypeError,
        ["enable_gqa", "1", "True or False"],
    ),
    "no dropout": (
        lambda z: sdpa(z(T, D), z(S, D), z(S, D), dropout_p=None), TypeError, ["dropout_p", "None", "number"],
    ),
    "fewer heads of keys without the flag": (
        lambda z: sdpa(z(B, 6, T, D), z(B, 3, S, D), z(B, 3, S, D)), ValueError, [sizes(B, 3, S, D), "enable_gqa=True"],
    ),
    "an axis that is a truth value": (
        lambda z: attnlib.softmax(z(T, S), axis=True), TypeError, ["axis", "True"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


def test_numbers_in_the_byte_order_of_another_machine_are_refused():
    x = np.ones((T, D), np.dtype("float32").newbyteorder("S"))
    for call in (attnlib.self_attention, attnlib.softmax, lambda x: sdpa(x, x, x)):
        with pytest.raises(TypeError, match=r"byte order.*newbyteorder"):
            call(x)


def test_infinite_scores_warn_no_more_in_numpy_than_in_torch(backend):
    weights = backend.numpy(attnlib.softmax(backend.array([INF, 1.0])))
    assert np.isnan(weights[0])
