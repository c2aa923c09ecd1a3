"""Similarities: one score for each pair of a query and a key."""

from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from backends import D_K, SIMILARITIES, B, D, H, S, T, as_score, dtype_name, examples, tenths
from hypothesis import assume, given
from numpy.testing import assert_allclose, assert_array_equal

import attnlib
from attnlib import additive, cosine, dot, gaussian, general, scaled_dot, softmax

# The textbook formula for one query q and one key k.
ONE_PAIR = {
    "dot": lambda q, k: sum(q * k),
    "scaled_dot": lambda q, k: sum(q * k) / len(q) ** 0.5,
    "general": lambda q, k, weight: q @ weight @ k,
    "additive": lambda q, k, w_query, w_key, v: sum(v * np.tanh(q @ w_query + k @ w_key)),
    "cosine": lambda q, k: sum(q * k) / (sum(q * q) ** 0.5 * sum(k * k) ** 0.5),
    "gaussian": lambda q, k: -sum((q - k) ** 2) / 2,
}
every_similarity = pytest.mark.parametrize("name", SIMILARITIES)


def similarity_of(backend, name, arguments):
    """The scores of a similarity for NumPy arguments, computed on a backend."""
    return backend.numpy(getattr(attnlib, name)(**{name: backend.array(x) for name, x in arguments.items()}))


def draw(name, rng, batch=()):
    """Random arguments of a similarity; the queries and keys have the leading dimensions `batch`."""
    arguments = SIMILARITIES[name].draw(rng)
    query = rng.standard_normal((*batch, T, D))
    key = rng.standard_normal((*batch, S, arguments["key"].shape[-1]))
    return arguments | {"query": query, "key": key}


# Worked by hand


def test_dot_by_hand(backend):
    query, key = backend.array([[1, 2], [3, 4]]), backend.array([[5, 6], [0, 1], [1, -1]])
    assert_array_equal(backend.numpy(dot(query, key)), [[17, 2, -1], [39, 4, -1]])


def test_scaled_dot_divides_by_the_root_of_the_width(backend):
    # D = 4: the dot products 2 and 6 are halved.
    query, key = backend.array([[2, 0, 0, 1]]), backend.array([[1, 5, 5, 0], [1, 5, 5, 4]])
    assert_array_equal(backend.numpy(scaled_dot(query, key)), [[1, 3]])


@pytest.mark.parametrize("scale", [1, 0.25, 0, -2.0])
def test_scaled_dot_multiplies_by_the_scale_it_is_given(backend, rng, scale):
    arguments = draw("dot", rng)
    query, key = backend.array(arguments["query"]), backend.array(arguments["key"])
    expected = scale * backend.numpy(dot(query, key))
    assert_allclose(backend.numpy(scaled_dot(query, key, scale=scale)), expected, rtol=1e-12)


def test_general_by_hand(backend):
    # (1, 2) W = (9, 12, 15).
    query, key = backend.array([[1, 2]]), backend.array([[1, 0, -1], [0, 1, 0]])
    weight = backend.array([[1, 2, 3], [4, 5, 6]])
    assert_array_equal(backend.numpy(general(query, key, weight)), [[-6, 12]])


def test_general_puts_the_query_on_the_left_of_its_weight(backend):
    # The only entry of W couples the first component of the query with the second of the key.
    query, key = backend.array([[1, 2]]), backend.array([[10, 100]])
    assert_array_equal(backend.numpy(general(query, key, backend.array([[0, 1], [0, 0]]))), [[1 * 100]])


def test_additive_by_hand(backend):
    # tanh(log 2) = 3/5 and tanh(log 3) = 4/5; the query brings one unit's logarithm, the key the other's.
    query, key = backend.array([[np.log(2)]]), backend.array([[np.log(3), 0], [0, -np.log(3)]])
    w_query, w_key = backend.array([[1, 0]]), backend.array([[0, 1], [0, 1]])
    scores = additive(query, key, w_query, w_key, backend.array([5, 10]))
    assert_allclose(backend.numpy(scores), [[3 + 8, 3 - 8]], rtol=1e-14)


def test_cosine_by_hand(backend):
    query, key = backend.array([[3, 4]]), backend.array([[4, 3], [-4, 3], [-6, -8], [0.3, 0.4]])
    assert_allclose(backend.numpy(cosine(query, key)), [[24 / 25, 0, -1, 1]], rtol=1e-14, atol=1e-16)


def test_gaussian_by_hand(backend):
    # The distances are 5, 0 and 1.
    query, key = backend.array([[1, 1]]), backend.array([[4, 5], [1, 1], [1, 2]])
    assert_allclose(backend.numpy(gaussian(query, key)), [[-12.5, 0, -0.5]], rtol=1e-14)
    assert_allclose(backend.numpy(gaussian(query, key, bandwidth=5)), [[-0.5, 0, -0.02]], rtol=1e-14)


# Against the formula and other libraries


@every_similarity
def test_each_score_is_the_formula_of_its_pair(backend, rng, name):
    arguments = draw(name, rng)
    queries, keys, *parameters = arguments.values()
    expected = [[ONE_PAIR[name](q, k, *parameters) for k in keys] for q in queries]
    assert_allclose(similarity_of(backend, name, arguments), expected, rtol=1e-12)


def test_cosine_agrees_with_torch(backend, rng):
    arguments = draw("cosine", rng, (B, H))
    query, key = map(torch.tensor, arguments.values())
    theirs = F.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1)
    assert_allclose(similarity_of(backend, "cosine", arguments), theirs, rtol=1e-12)


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 4])
def test_gaussian_agrees_with_the_distances_of_torch(backend, rng, bandwidth):
    query, key = draw("gaussian", rng, (B, H)).values()
    ours = gaussian(backend.array(query), backend.array(key), bandwidth=bandwidth)
    theirs = -(torch.cdist(torch.tensor(query), torch.tensor(key)) ** 2) / (2 * bandwidth**2)
    assert_allclose(backend.numpy(ours), theirs, rtol=1e-11)


def test_general_agrees_with_torch_bilinear(backend, rng):
    arguments = draw("general", rng, (B,))
    query, key, weight = map(torch.tensor, arguments.values())
    theirs = F.bilinear(
        query[:, :, None].expand(B, T, S, D).contiguous(),
        key[:, None].expand(B, T, S, D_K).contiguous(),
        weight[None],
    )[..., 0]
    assert_allclose(similarity_of(backend, "general", arguments), theirs, rtol=1e-11, atol=1e-12)


def test_general_with_the_identity_is_dot(backend, rng):
    query, key = (backend.array(x) for x in draw("dot", rng).values())
    ours = general(query, key, backend.array(np.eye(D)))
    assert_allclose(backend.numpy(ours), backend.numpy(dot(query, key)), rtol=1e-12)


# Leading dimensions


@every_similarity
@pytest.mark.parametrize("batch", [(B,), (B, H), (B, H, 23)], ids=len)
def test_a_batch_is_each_of_its_items(backend, rng, name, batch):
    arguments = draw(name, rng, batch)
    scores = similarity_of(backend, name, arguments)
    assert scores.shape == (*batch, T, S)
    for i in np.ndindex(*batch[:2]):
        item = arguments | {"query": arguments["query"][i], "key": arguments["key"][i]}
        assert_allclose(scores[i], similarity_of(backend, name, item), rtol=1e-11, atol=1e-12)


@every_similarity
@pytest.mark.parametrize(("of_query", "of_key"), [((B, 1), (H,)), ((), (B, H)), ((B, H), ()), ((1, H), (B, 1))])
def test_leading_dimensions_broadcast(backend, rng, name, of_query, of_key):
    arguments = draw(name, rng, of_query) | {"key": draw(name, rng, of_key)["key"]}
    full = arguments | {
        "query": np.broadcast_to(arguments["query"], (B, H, T, D)),
        "key": np.broadcast_to(arguments["key"], (B, H, *arguments["key"].shape[-2:])),
    }
    scores = similarity_of(backend, name, arguments)
    assert_allclose(np.broadcast_to(scores, (B, H, T, S)), similarity_of(backend, name, full), rtol=1e-11, atol=1e-12)
    assert scores.shape == (*np.broadcast_shapes(of_query, of_key), T, S)


# What is true of all vectors

vectors, factors = tenths(S, D), st.sampled_from([1e-3, 0.5, 1.0, 7.0, 1e3])


@examples
@given(tenths(T, D), vectors)
def test_cosine_lies_between_minus_one_and_one(backend, query, key):
    scores = similarity_of(backend, "cosine", {"query": query, "key": key})
    assert (abs(scores) <= 1 + 1e-12).all()


@examples
@given(vectors)
def test_the_cosine_of_a_vector_with_itself_is_one_or_zero_for_the_zero_vector(backend, x):
    scores = similarity_of(backend, "cosine", {"query": x, "key": x})
    assert_allclose(np.diagonal(scores), np.any(x, axis=-1), rtol=1e-12)


@examples
@given(tenths(T, D), vectors, factors, factors)
def test_positive_factors_leave_cosine_as_it_is_and_multiply_dot(backend, query, key, a, b):
    plain, scaled = {"query": query, "key": key}, {"query": a * query, "key": b * key}
    assert_allclose(
        similarity_of(backend, "cosine", scaled), similarity_of(backend, "cosine", plain), rtol=1e-9, atol=1e-12
    )
    assert_allclose(
        similarity_of(backend, "dot", scaled), a * b * similarity_of(backend, "dot", plain), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("factor", [1e-200, 1e-10, 1e10, 1e200])
def test_cosine_knows_no_length_however_short_or_long(backend, factor):
    query, key = np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]])
    for arguments in ({"query": factor * query, "key": key}, {"query": query, "key": factor * key}):
        assert_allclose(similarity_of(backend, "cosine", arguments), [[24 / 25]], rtol=1e-12)


@examples
@given(vectors)
@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "gaussian"])
def test_without_parameters_a_similarity_is_symmetric(backend, name, x):
    scores = similarity_of(backend, name, {"query": x, "key": x})
    assert_allclose(scores, scores.T, rtol=1e-12, atol=1e-12)


@examples
@given(tenths(T, D), vectors, tenths(D))
def test_gaussian_looks_at_differences_only(backend, query, key, shift):
    moved = {"query": query + shift, "key": key + shift}
    expected = similarity_of(backend, "gaussian", {"query": query, "key": key})
    assert_allclose(similarity_of(backend, "gaussian", moved), expected, rtol=1e-9, atol=1e-9)


@examples
@given(vectors)
def test_gaussian_is_zero_for_a_vector_with_itself_and_never_positive(backend, x):
    scores = similarity_of(backend, "gaussian", {"query": x, "key": x})
    assert_allclose(np.diagonal(scores), 0, atol=1e-12)
    assert (scores <= 1e-12).all()


@examples
@given(vectors)
def test_gaussian_over_vectors_of_one_length_ranks_as_cosine(backend, x):
    # |q - k|^2 = 2 - 2 q.k when |q| = |k| = 1.
    assume(np.any(x, axis=-1).all())
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    arguments = {"query": unit, "key": unit}
    assert_allclose(
        similarity_of(backend, "gaussian", arguments),
        similarity_of(backend, "cosine", arguments) - 1,
        rtol=1e-9,
        atol=1e-12,
    )


def test_gaussian_tells_neighbours_apart_far_from_the_origin(backend):
    # Julian days of 2024: float32 holds them and their differences exactly, but their squares to 2^19 only.
    days = backend.array([[2460310], [2460311], [2460312], [2460314]], "float32")
    scores = gaussian(days, days)
    assert_allclose(backend.numpy(scores)[1], [-0.5, 0, -0.5, -4.5], rtol=1e-6)


@pytest.mark.parametrize(
    "similarity", [partial(scaled_dot, scale=np.float64(0.3)), partial(gaussian, bandwidth=np.float64(0.3))]
)
def test_a_number_of_numpy_as_parameter_does_not_widen_the_dtype(typed, rng, similarity):
    # 1 / np.sqrt(D) and np.median(distances) are such numbers; NumPy would make the product with them float64.
    backend, dtype = typed
    query, key = (backend.array(x, dtype) for x in draw("dot", rng).values())
    assert dtype_name(similarity(query, key)) == dtype


# Zero vectors and NaN


def test_the_cosine_of_a_zero_vector_is_zero(typed):
    backend, dtype = typed
    query, key = backend.array([[0, 0], [3, 4]], dtype), backend.array([[0, 0], [3, 4], [1, 0]], dtype)
    scores = cosine(query, key)
    assert dtype_name(scores) == dtype
    assert_allclose(backend.numpy(scores), [[0, 0, 0], [0, 1, 0.6]], rtol=1e-2)


@every_similarity
def test_nan_in_a_query_spoils_its_own_row_and_no_other(backend, rng, name):
    arguments = draw(name, rng)
    clean = similarity_of(backend, name, arguments)
    arguments["query"][1, 2] = np.nan
    scores = similarity_of(backend, name, arguments)
    assert np.isnan(scores[1]).all()
    assert_allclose(np.delete(scores, 1, axis=0), np.delete(clean, 1, axis=0), rtol=1e-12)


# Gradients


@every_similarity
def test_the_gradient_is_the_numerical_one(rng, name):
    arguments = draw(name, rng)
    tensors = [torch.tensor(x, requires_grad=True) for x in arguments.values()]
    assert torch.autograd.gradcheck(getattr(attnlib, name), tensors)


@every_similarity
def test_the_gradient_is_the_numerical_one_where_queries_are_keys(rng, name):
    # The distance of a vector to itself is 0, where a square root would have no derivative.
    arguments = {n: torch.tensor(x, requires_grad=True) for n, x in SIMILARITIES[name].draw(rng).items()}
    score, _, _ = as_score(name, arguments)
    width = slice(None, D)  # the query's width; a key is wider for some
    x = torch.tensor(rng.standard_normal((T, D_K)), requires_grad=True)
    key_width = arguments["key"].shape[-1]
    assert torch.autograd.gradcheck(lambda x: score(x[:, width], x[:, :key_width]), x)


def test_the_cosine_of_a_zero_vector_has_a_finite_gradient(rng):
    query, key = rng.standard_normal((T, D)), rng.standard_normal((S, D))
    query[1], key[2] = 0, 0
    query, key = torch.tensor(query, requires_grad=True), torch.tensor(key, requires_grad=True)
    softmax(cosine(query, key)).square().sum().backward()
    assert query.grad.isfinite().all()
    assert key.grad.isfinite().all()
    assert (query.grad[0] != 0).any()


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "gaussian"])
@pytest.mark.parametrize("empty", [(0, S, D), (T, 0, D), (T, S, 0)], ids=["no queries", "no keys", "no width"])
def test_a_dimension_may_be_empty(backend, name, empty):
    t, s, d = empty
    scores = getattr(attnlib, name)(backend.array(np.zeros((t, d))), backend.array(np.zeros((s, d))))
    assert_array_equal(backend.numpy(scores), np.zeros((t, s)))


def test_the_cosine_of_a_zero_vector_has_gradient_zero():
    query, key = torch.zeros(T, D, requires_grad=True), torch.ones(S, D, requires_grad=True)
    gradients = torch.autograd.grad(cosine(query, key).sum(), (query, key))
    assert all((gradient == 0).all() for gradient in gradients)
