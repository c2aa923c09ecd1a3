"""Attention: score, softmax, weighted sum."""

from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from backends import D_V, SIMILARITIES, B, D, H, S, T, as_score, dtype_name, examples, tenths
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from attnlib import attention, cosine, dot, gaussian, scaled_dot, self_attention, softmax

INF, NAN = np.inf, np.nan
every_score = pytest.mark.parametrize("name", SIMILARITIES)


def attention_of(backend, query, key, value, *, mask=None, dtype="float64", **score):
    """Context and weights for NumPy arguments, computed on a backend."""
    arguments = (backend.array(x, dtype) for x in (query, key, value))
    mask = mask if mask is None else backend.array(mask, "bool" if np.asarray(mask).dtype == bool else dtype)
    return tuple(backend.numpy(x) for x in attention(*arguments, mask=mask, **score))


def self_attention_of(backend, x, **options):
    return tuple(backend.numpy(result) for result in self_attention(backend.array(x), **options))


def draw(rng, batch=()):
    """Random query, key and value."""
    return (rng.standard_normal((*batch, *shape)) for shape in ((T, D), (S, D), (S, D_V)))


def tensors(rng, batch=(), requires_grad=True):
    return [torch.tensor(x, requires_grad=requires_grad) for x in draw(rng, batch)]


def some_mask(rng, *shape):
    """A random bool mask in which every query may attend to the last key at least."""
    mask = rng.random(shape) < 0.5
    mask[..., -1] = True
    return mask


# Worked by hand


def test_scores_zero_and_one_weigh_one_and_e(backend):
    context, weights = attention_of(backend, [[1, 0]], [[0, 5], [1, 5]], [[0.0], [10.0]], score=dot)
    assert_allclose(weights, np.array([[1, np.e]]) / (1 + np.e), rtol=1e-15)
    assert_allclose(context, [[10 * np.e / (1 + np.e)]], rtol=1e-15)


def test_attention_scales_the_dot_product_unless_told(backend):
    # D = 4: the dot products 0 and 2 become the scores 0 and 1.
    _, weights = attention_of(backend, [[2, 0, 0, 0]], [[0, 1, 1, 1], [1, 1, 1, 1]], np.eye(2))
    assert_allclose(weights, np.array([[1, np.e]]) / (1 + np.e), rtol=1e-15)


def test_keys_at_the_logarithms_of_1_2_3_4_weigh_as_1_2_3_4(backend):
    # The context is (1*1 + 2*2 + 3*3 + 4*4) / 10 and (1*1 - 2*1 + 3*1 - 4*1) / 10.
    value = [[1, 1], [2, -1], [3, 1], [4, -1]]
    context, weights = attention_of(backend, [[1.0]], np.log([[1], [2], [3], [4]]), value)
    assert_allclose(weights, [[0.1, 0.2, 0.3, 0.4]], rtol=1e-14)
    assert_allclose(context, [[3, -0.2]], rtol=1e-14)


def test_self_attention_of_two_orthogonal_vectors(backend):
    # x x^T = log(3) I, and exp gives 3 against 1.
    x = np.sqrt(np.log(3)) * np.eye(2)
    context, weights = self_attention_of(backend, x, score=dot)
    assert_allclose(weights, [[3 / 4, 1 / 4], [1 / 4, 3 / 4]], rtol=1e-14)
    assert_allclose(context, np.sqrt(np.log(3)) * np.array([[3 / 4, 1 / 4], [1 / 4, 3 / 4]]), rtol=1e-14)


def test_self_attention_of_two_vectors_on_a_line(backend):
    # x x^T = [[0, 0], [0, log 3]]: the zero vector attends to both alike.
    length = np.sqrt(np.log(3))
    context, weights = self_attention_of(backend, [[0.0], [length]])
    assert_allclose(weights, [[1 / 2, 1 / 2], [1 / 4, 3 / 4]], rtol=1e-14)
    assert_allclose(context, [[length / 2], [3 * length / 4]], rtol=1e-14)


def test_gaussian_attention_by_hand(backend):
    # exp(-d^2 / 2) is 1 at d = 0 and 1/2 at d = sqrt(2 log 2).
    _, weights = attention_of(backend, [[4.0]], [[4.0], [4 - np.sqrt(2 * np.log(2))]], [[0.0], [1.0]], score=gaussian)
    assert_allclose(weights, [[2 / 3, 1 / 3]], rtol=1e-14)


def test_one_key_gets_all_the_attention(backend, rng):
    query, value = rng.standard_normal((T, D)), rng.standard_normal((1, D_V))
    context, weights = attention_of(backend, query, rng.standard_normal((1, D)), value)
    assert_array_equal(weights, np.ones((T, 1)))
    assert_array_equal(context, np.repeat(value, T, axis=0))


def test_a_zero_query_averages_the_values(backend, rng):
    _, key, value = draw(rng)
    context, _ = attention_of(backend, np.zeros((1, D)), key, value)
    assert_allclose(context, value.mean(axis=0, keepdims=True), rtol=1e-12)


# Against other libraries


@pytest.mark.parametrize("scale", [None, 0.7])
def test_attention_agrees_with_torch(backend, rng, scale):
    query, key, value = draw(rng, (B, H))
    context, weights = attention_of(backend, query, key, value, score=partial(scaled_dot, scale=scale))
    theirs = F.scaled_dot_product_attention(*map(torch.tensor, (query, key, value)), scale=scale)
    assert_allclose(context, theirs, rtol=1e-10, atol=1e-12)
    assert_allclose(context, weights @ value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(B, H, T, S), (B, 1, 1, S), (H, 1, S), (T, S), (T, 1), (S,)], ids=str)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_masked_attention_agrees_with_torch(backend, rng, shape, kind):
    query, key, value = draw(rng, (B, H))
    mask = some_mask(rng, *shape) if kind == "bool" else rng.standard_normal(shape)
    context, _ = attention_of(backend, query, key, value, mask=mask)
    full = torch.tensor(np.broadcast_to(mask, (B, H, T, S)).copy())
    theirs = F.scaled_dot_product_attention(*map(torch.tensor, (query, key, value)), attn_mask=full)
    assert_allclose(context, theirs, rtol=1e-10, atol=1e-12)


@every_score
def test_attention_is_the_softmax_of_any_score_times_the_values(backend, rng, name):
    arguments = {n: backend.array(x) for n, x in SIMILARITIES[name].draw(rng).items()}
    score, query, key = as_score(name, arguments)
    value = rng.standard_normal((B, S, D_V))
    context, weights = attention(query, key, backend.array(value), score=score)
    expected = backend.numpy(softmax(score(query, key)))
    assert_allclose(backend.numpy(weights), expected, rtol=1e-12)
    assert_allclose(backend.numpy(context), expected @ value, rtol=1e-10, atol=1e-12)


def test_the_score_may_be_any_function_of_query_and_key(backend, rng):
    query, key, value = draw(rng)
    context, weights = attention_of(backend, query, key, value, score=lambda q, k: 3 * dot(q, k) + 1)
    assert_allclose(weights, torch.softmax(torch.tensor(3 * query @ key.T), -1), rtol=1e-10)
    assert_allclose(context, weights @ value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bandwidth", [0.2, 1.0, 3.0])
def test_gaussian_attention_is_nadaraya_watson_regression(backend, rng, bandwidth):
    # f(x) = sum_i K((x - x_i) / h) y_i / sum_i K((x - x_i) / h), K the standard normal density.
    places, observed_at, observed = rng.uniform(-1, 1, T), rng.uniform(-1, 1, S), rng.standard_normal(S)
    estimates = []
    for x in places:
        numerator = denominator = 0.0
        for x_i, y_i in zip(observed_at, observed, strict=True):
            kernel = np.exp(-(((x - x_i) / bandwidth) ** 2) / 2) / np.sqrt(2 * np.pi)
            numerator += kernel * y_i
            denominator += kernel
        estimates.append(numerator / denominator)
    context, _ = attention_of(
        backend,
        places[:, None],
        observed_at[:, None],
        observed[:, None],
        score=partial(gaussian, bandwidth=bandwidth),
    )
    assert_allclose(context[:, 0], estimates, rtol=1e-11)


def test_a_narrow_bandwidth_finds_the_nearest_key_and_a_wide_one_the_mean(backend, rng):
    query, key, value = draw(rng)
    nearest = np.linalg.norm(query[:, None] - key, axis=-1).argmin(axis=1)
    context, _ = attention_of(backend, query, key, value, score=partial(gaussian, bandwidth=1e-3))
    assert_allclose(context, value[nearest], rtol=1e-12)
    context, _ = attention_of(backend, query, key, value, score=partial(gaussian, bandwidth=1e6))
    assert_allclose(context, np.broadcast_to(value.mean(axis=0), (T, D_V)), rtol=1e-9)


# Self-attention


@every_score
def test_self_attention_is_attention_of_a_sequence_to_itself(backend, rng, name):
    if name in ("general", "additive"):  # square parameters: queries and keys are the same vectors here
        shapes = {"weight": (D, D), "w_query": (D, 3), "w_key": (D, 3), "v": (3,)}
        names = list(SIMILARITIES[name].arguments)[2:]
        score = partial(
            SIMILARITIES[name].function, **{n: backend.array(rng.standard_normal(shapes[n])) for n in names}
        )
    else:
        score = SIMILARITIES[name].function
    x = backend.array(rng.standard_normal((B, T, D)))
    for ours, theirs in zip(self_attention(x, score=score), attention(x, x, x, score=score), strict=True):
        assert_allclose(backend.numpy(ours), backend.numpy(theirs), rtol=1e-12)


def test_self_attention_scales_the_dot_product_unless_told(backend, rng):
    x = rng.standard_normal((T, D))
    for ours, told in zip(self_attention_of(backend, x), self_attention_of(backend, x, score=scaled_dot), strict=True):
        assert_array_equal(ours, told)


def test_with_a_causal_mask_the_first_vector_attends_to_itself_alone(backend, rng):
    x = rng.standard_normal((B, T, D))
    mask = backend.array(np.tri(T), "bool")
    context, weights = self_attention_of(backend, x, mask=mask)
    assert_array_equal(weights[:, 0], np.eye(T)[[0, 0]])
    assert_array_equal(context[:, 0], x[:, 0])
    assert (np.triu(weights, 1) == 0).all()


@examples
@given(tenths(T, D), st.permutations(range(T)))
@pytest.mark.parametrize("score", [scaled_dot, cosine, gaussian])
def test_self_attention_is_equivariant_to_permutations(backend, score, x, order):
    context, weights = self_attention_of(backend, x, score=score)
    permuted_context, permuted_weights = self_attention_of(backend, x[order], score=score)
    assert_allclose(permuted_context, context[order], rtol=1e-9, atol=1e-9)
    assert_allclose(permuted_weights, weights[order][:, order], rtol=1e-9, atol=1e-12)


# What is true of all attention

queries, keys, values = tenths(T, D), tenths(S, D), tenths(S, D_V)


@examples
@given(queries, keys, values)
def test_weights_are_probabilities_over_the_keys(backend, query, key, value):
    _, weights = attention_of(backend, query, key, value)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)


@pytest.mark.slow
@examples
@given(queries, keys, values)
def test_the_context_lies_between_the_values(backend, query, key, value):
    context, _ = attention_of(backend, query, key, value)
    assert (context >= value.min(axis=0) - 1e-12).all()
    assert (context <= value.max(axis=0) + 1e-12).all()


@examples
@given(queries, keys, values, st.permutations(range(S)))
def test_the_order_of_keys_with_their_values_does_not_matter(backend, query, key, value, order):
    context, weights = attention_of(backend, query, key, value)
    reordered, reordered_weights = attention_of(backend, query, key[order], value[order])
    assert_allclose(reordered, context, rtol=1e-9, atol=1e-9)
    assert_allclose(reordered_weights, weights[:, order], rtol=1e-9, atol=1e-12)


@examples
@given(queries, keys, values, tenths(D))
def test_shifting_every_key_alike_does_not_change_dot_attention(backend, query, key, value, shift):
    # q.(k + c) = q.k + q.c, and softmax does not see a constant added to its row.
    context, _ = attention_of(backend, query, key, value, score=dot)
    shifted, _ = attention_of(backend, query, key + shift, value, score=dot)
    assert_allclose(shifted, context, rtol=1e-9, atol=1e-9)


@examples
@given(queries, keys, values, tenths(D_V), st.sampled_from([-3.0, 0.1, 2.0]))
def test_the_context_is_affine_in_the_values(backend, query, key, value, shift, factor):
    context, _ = attention_of(backend, query, key, value)
    moved, _ = attention_of(backend, query, key, factor * value + shift)
    assert_allclose(moved, factor * context + shift, rtol=1e-9, atol=1e-9)


@examples
@given(queries, keys, values, st.sets(st.integers(0, S - 1), min_size=1))
def test_a_masked_key_might_as_well_not_be_there(backend, query, key, value, kept):
    kept = sorted(kept)
    mask = np.isin(np.arange(S), kept)
    context, weights = attention_of(backend, query, key, value, mask=mask)
    without, weights_without = attention_of(backend, query, key[kept], value[kept])
    assert_allclose(context, without, rtol=1e-9, atol=1e-9)
    assert_allclose(weights[:, kept], weights_without, rtol=1e-9, atol=1e-12)
    assert (weights[:, ~mask] == 0).all()


# Masks


def test_true_means_may_attend(backend):
    mask = np.array([[True, False], [False, True], [True, True]])
    context, weights = attention_of(backend, np.zeros((3, 1)), [[1.0], [1.0]], [[4.0], [8.0]], mask=mask)
    assert_array_equal(weights, [[1, 0], [0, 1], [0.5, 0.5]])
    assert_array_equal(context, [[4], [8], [6]])


def test_a_float_mask_is_added_to_the_scores(backend):
    # Adding log 3 to one of two equal scores makes it weigh 3 to 1.
    _, weights = attention_of(backend, [[0.0]], [[1.0], [2.0]], [[0.0], [1.0]], mask=np.array([[np.log(3), 0]]))
    assert_allclose(weights, [[3 / 4, 1 / 4]], rtol=1e-14)


def test_zero_and_minus_infinity_are_true_and_false(backend, rng):
    query, key, value = draw(rng, (B, H))
    mask = some_mask(rng, B, 1, T, S)
    as_bool = attention_of(backend, query, key, value, mask=mask)
    as_float = attention_of(backend, query, key, value, mask=np.where(mask, 0, -INF))
    for ours, theirs in zip(as_bool, as_float, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_the_most_negative_number_masks_too(backend, rng):
    # What many models write instead of -inf; adding it to a score must not overflow.
    query, key, value = draw(rng)
    mask = some_mask(rng, T, S)
    lowest = np.where(mask, 0, np.finfo(np.float32).min)
    _, weights = attention_of(backend, query, key, value, mask=lowest, dtype="float32")
    assert (weights[~mask] == 0).all()
    assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)


NOTHING = {"bool": (True, False), "float": (0.0, -INF)}


@pytest.mark.parametrize("kind", NOTHING)
def test_a_query_that_may_attend_to_nothing_gets_zero(typed, rng, kind):
    backend, dtype = typed
    query, key, value = draw(rng, (B,))
    allowed, forbidden = NOTHING[kind]
    mask = np.full((B, T, S), allowed)
    mask[0, 1], mask[1, 3:] = forbidden, forbidden
    context, weights = attention_of(backend, query, key, value, mask=mask, dtype=dtype)
    nothing = (mask == forbidden).all(axis=-1)
    assert (weights[nothing] == 0).all()
    assert (context[nothing] == 0).all()
    plain, plain_weights = attention_of(backend, query, key, value, dtype=dtype)
    assert_allclose(context[~nothing], plain[~nothing], rtol=1e-6, atol=1e-6)
    assert_allclose(weights[~nothing], plain_weights[~nothing], rtol=1e-6, atol=1e-6)


@every_score
@pytest.mark.parametrize("kind", NOTHING)
def test_a_mask_that_forbids_everything_gives_zero_whatever_the_score(backend, rng, name, kind):
    arguments = {n: backend.array(x) for n, x in SIMILARITIES[name].draw(rng).items()}
    score, query, key = as_score(name, arguments)
    value = backend.array(rng.standard_normal((B, S, D_V)))
    mask = backend.array(np.full((1, S), NOTHING[kind][1]), "bool" if kind == "bool" else "float64")
    for result in attention(query, key, value, score=score, mask=mask):
        assert (backend.numpy(result) == 0).all()


def test_nan_in_a_query_spoils_its_own_row_and_no_other(backend, rng):
    query, key, value = draw(rng)
    clean = attention_of(backend, query, key, value)
    query[1, 2] = NAN
    for spoilt, fine in zip(attention_of(backend, query, key, value), clean, strict=True):
        assert np.isnan(spoilt[1]).all()
        assert_allclose(np.delete(spoilt, 1, 0), np.delete(fine, 1, 0), rtol=1e-12)


# Leading dimensions


@pytest.mark.parametrize("batch", [(B,), (B, H), (B, H, 23)], ids=len)
def test_a_batch_is_each_of_its_items(backend, rng, batch):
    query, key, value = draw(rng, batch)
    mask = some_mask(rng, *batch, T, S)
    context, weights = attention_of(backend, query, key, value, mask=mask)
    assert context.shape == (*batch, T, D_V)
    assert weights.shape == (*batch, T, S)
    for i in np.ndindex(*batch):
        alone = attention_of(backend, query[i], key[i], value[i], mask=mask[i])
        assert_allclose(context[i], alone[0], rtol=1e-9, atol=1e-12)
        assert_allclose(weights[i], alone[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "batches",
    [((B, 1), (H,), (1, H)), ((B, H), (), ()), ((), (B, H), ()), ((), (), (B, H)), ((B, 1), (B, H), (1,))],
    ids=str,
)
def test_leading_dimensions_of_query_key_and_value_broadcast(backend, rng, batches):
    arguments = [rng.standard_normal((*b, *m)) for b, m in zip(batches, ((T, D), (S, D), (S, D_V)), strict=True)]
    full = [np.broadcast_to(x, (B, H, *x.shape[-2:])) for x in arguments]
    context, weights = attention_of(backend, *arguments)
    expected, expected_weights = attention_of(backend, *full)
    assert_allclose(context, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(np.broadcast_to(weights, (B, H, T, S)), expected_weights, rtol=1e-10, atol=1e-12)


# Dtypes


def test_context_and_weights_have_the_dtype_of_the_inputs(typed, rng):
    backend, dtype = typed
    query, key, value = (backend.array(x, dtype) for x in draw(rng, (B,)))
    masks = None, backend.array(np.ones((T, S)), "bool"), backend.array(np.zeros((T, S)), dtype)
    for mask in masks:
        assert [dtype_name(x) for x in attention(query, key, value, mask=mask)] == [dtype, dtype]


def test_a_narrow_dtype_gives_nearly_what_a_wide_one_gives(typed, rng):
    backend, dtype = typed
    tolerance = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    query, key, value = draw(rng, (B, H))
    exact = attention_of(backend, query, key, value)
    for ours, theirs in zip(attention_of(backend, query, key, value, dtype=dtype), exact, strict=True):
        assert_allclose(ours, theirs, atol=tolerance)


# Gradients


@pytest.mark.slow
@every_score
def test_the_gradient_is_the_numerical_one_for_every_score(rng, name):
    drawn = SIMILARITIES[name].draw(rng) | {"value": rng.standard_normal((B, S, D_V))}
    inputs = [torch.tensor(x[0] if x.ndim == 3 else x, requires_grad=True) for x in drawn.values()]
    mask = torch.tensor(some_mask(rng, T, S))
    mask[1] = False

    def attend(*inputs):
        *arguments, value = inputs
        score, query, key = as_score(name, dict(zip(drawn, arguments, strict=False)))
        return attention(query, key, value, score=score, mask=mask)

    assert torch.autograd.gradcheck(attend, inputs)


def test_the_gradient_is_the_numerical_one_under_a_float_mask(rng):
    mask = torch.tensor(rng.standard_normal((T, S)))
    mask[1] = -INF
    mask[2, 3] = -INF
    assert torch.autograd.gradcheck(
        lambda q, k, v, m: attention(q, k, v, mask=m), [*tensors(rng), mask.requires_grad_()]
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_query_that_may_attend_to_nothing_has_gradient_zero(rng, dtype):
    query, key, value = (x.detach().to(dtype).requires_grad_() for x in tensors(rng))
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1] = False
    context, weights = attention(query, key, value, mask=mask)
    (context.square().sum() + weights.square().sum()).backward()
    assert all(x.grad.isfinite().all() for x in (query, key, value))
    assert (query.grad[1] == 0).all()
    assert (query.grad[0] != 0).any()


def test_a_masked_key_and_its_value_have_gradient_zero(rng):
    query, key, value = tensors(rng)
    mask = torch.ones(S, dtype=torch.bool)
    mask[2] = False
    attention(query, key, value, mask=mask)[0].square().sum().backward()
    assert (key.grad[2] == 0).all()
    assert (value.grad[2] == 0).all()
    assert (key.grad[1] != 0).any()


@pytest.mark.parametrize("bandwidth", [0.8, 2.0])
def test_the_slope_of_kernel_regression_is_the_covariance_of_values_and_keys(rng, bandwidth):
    # With the weights w of one query: d context / d query = Cov_w(value, key) / bandwidth^2.
    query, key, value = tensors(rng, requires_grad=False)
    query = query[:1]
    kernel = partial(gaussian, bandwidth=bandwidth)
    context, weights = attention(query, key, value, score=kernel)
    covariance = (weights[0, :, None] * (value - context)).T @ (key - weights @ key)
    slope = torch.func.jacrev(lambda q: attention(q, key, value, score=kernel)[0])(query)
    torch.testing.assert_close(slope[0, :, 0], covariance / bandwidth**2)


def test_without_keys_every_query_gets_zero(typed):
    backend, dtype = typed
    arrays = (backend.array(np.zeros(shape), dtype) for shape in ((B, T, D), (B, 0, D), (B, 0, D_V)))
    context, weights = attention(*arrays)
    assert (tuple(weights.shape), dtype_name(context)) == ((B, T, 0), dtype)
    assert_array_equal(backend.numpy(context), np.zeros((B, T, D_V)))
