"""RMS norm: worked by hand, against torch's, and what follows from its definition."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from backends import B, D, T, assert_error_names, examples, sizes, tenths
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from attnlib import rms_norm

PRECISION = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 1e-6, "float64": 1e-14}


def test_worked_by_hand(backend):
    x = backend.array([[7.0, -1.0], [0.0, 0.0], [1.0, 1.0]])  # mean squares 25, 0 and 1
    ours = rms_norm(x, backend.array([10.0, 2.0]), eps=11.0)
    root = np.sqrt([[36.0], [11.0], [12.0]])
    assert_allclose(backend.numpy(ours), np.array([[70.0, -2.0], [0.0, 0.0], [10.0, 2.0]]) / root, rtol=1e-14)


@pytest.mark.parametrize("weighted", [False, True], ids=["without weight", "with weight"])
def test_it_is_torch_s(typed, rng, weighted):
    backend, dtype = typed
    x, weight = rng.standard_normal((B, T, D)), rng.standard_normal(D) if weighted else None
    arrays = [None if z is None else backend.array(z, dtype) for z in (x, weight)]
    rounded = [None if z is None else torch.tensor(backend.numpy(z)) for z in arrays]
    theirs = F.rms_norm(rounded[0], (D,), rounded[1], eps=0.02)
    assert_allclose(backend.numpy(rms_norm(*arrays, eps=0.02)), theirs, rtol=2 * PRECISION[dtype], atol=1e-6)


def test_eps_is_1e_6_unless_told(backend):
    x = backend.array([[0.001, 0.001]])  # the mean square is 1e-6 as well
    assert_allclose(backend.numpy(rms_norm(x)), 0.5**0.5, rtol=1e-12)


@examples
@given(tenths(T, D), st.sampled_from([2.0**-9, 3.0, 1000.0]))
def test_without_eps_the_length_of_a_vector_does_not_matter_and_the_mean_square_is_1(backend, x, factor):
    x[:, 0] = 1.0  # no vector is 0
    ours, scaled = (backend.numpy(rms_norm(backend.array(z), eps=0.0)) for z in (x, factor * x))
    assert_allclose(ours, scaled, rtol=1e-12)
    assert_allclose((ours**2).mean(axis=-1), 1.0, rtol=1e-12)


def test_half_precision_squares_large_numbers_without_overflow(backend):
    x = backend.array([[300.0, -300.0, 60000.0]], "float16")  # 300 ** 2 is beyond float16
    ours = backend.numpy(rms_norm(x))
    assert_allclose(ours, np.array([[300.0, -300.0, 60000.0]]) / np.sqrt((2 * 300.0**2 + 60000.0**2) / 3), rtol=1e-3)


def test_no_vectors_or_no_components_stay_empty(backend):
    for shape in ((0, D), (T, 0)):
        with np.errstate(invalid="raise"):
            assert tuple(rms_norm(backend.array(np.ones(shape))).shape) == shape


def test_the_gradient_is_the_derivative(rng):
    x, weight = (torch.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((T, D), (D,)))
    assert torch.autograd.gradcheck(lambda x, weight: rms_norm(x, weight, eps=0.1), (x, weight))


def test_a_vector_of_zeros_has_finite_gradients():
    x = torch.zeros(2, D, requires_grad=True)
    rms_norm(x).sum().backward()
    assert_array_equal(torch.isfinite(x.grad), True)


ERRORS = {
    "a weight of another width": (lambda z: rms_norm(z(T, D), z(T)), ValueError, [sizes(T), sizes(T, D)]),
    "a weight for each position": (lambda z: rms_norm(z(T, D), z(T, D)), ValueError, [sizes(T, D), rf"\({D},\)"]),
    "a weight of 1 that would broadcast": (lambda z: rms_norm(z(T, D), z(1)), ValueError, [sizes(1), sizes(T, D)]),
    "a number": (lambda z: rms_norm(z()), ValueError, [sizes(), r"\(\.\.\., E\)"]),
    "a negative eps": (lambda z: rms_norm(z(T, D), eps=-1.0), ValueError, ["eps is -1.0"]),
    "an eps that is nan": (lambda z: rms_norm(z(T, D), eps=np.nan), ValueError, ["eps is nan"]),
    "an eps that is a word": (lambda z: rms_norm(z(T, D), eps="small"), TypeError, ["eps is 'small'"]),
    "integers": (lambda z: rms_norm(z(T, D, dtype="int64")), TypeError, ["int64"]),
    "a list": (lambda z: rms_norm([1.0, 2.0]), TypeError, ["list"]),
}


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)
