"""SwiGLU: worked by hand, against torch's silu, and at the extremes."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from backends import B, D, S, T, assert_error_names, examples, sizes, tenths
from hypothesis import given
from numpy.testing import assert_allclose

from attnlib import swiglu

PRECISION = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 1e-6, "float64": 1e-14}


def test_worked_by_hand(backend):
    # the gate of ln 3 is 3/4 open, that of -ln 4 is 1/5 open, and that of 0 lets 0 through
    gate, up = backend.array([math.log(3), -math.log(4), 0.0]), backend.array([4.0, 5.0, 7.0])
    assert_allclose(backend.numpy(swiglu(gate, up)), [3 * math.log(3), -math.log(4), 0.0], rtol=1e-14)


def test_it_is_torch_s_silu_times_the_other_projection(typed, rng):
    backend, dtype = typed
    gate, up = (backend.array(3 * rng.standard_normal((B, T, D)), dtype) for _ in range(2))
    theirs = F.silu(torch.tensor(backend.numpy(gate))) * torch.tensor(backend.numpy(up))
    assert_allclose(backend.numpy(swiglu(gate, up)), theirs, rtol=PRECISION[dtype], atol=PRECISION[dtype])


@examples
@given(tenths(T, D))
def test_the_odd_half_of_silu_is_half_of_x_and_the_even_half_a_tanh(backend, x):
    """The gates of x and -x sum to 1, and differ by tanh(x / 2)."""
    one = backend.array(np.ones((T, D)))
    plus, minus = (backend.numpy(swiglu(backend.array(z), one)) for z in (x, -x))
    assert_allclose(plus - minus, x, atol=1e-14)
    assert_allclose(plus + minus, x * np.tanh(x / 2), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nothing_overflows(backend, dtype):
    large = float(np.finfo(dtype).max)
    gate, up = backend.array([large, -large], dtype), backend.array([0.5, 0.5], dtype)
    with np.errstate(all="raise", under="ignore"):
        assert_allclose(backend.numpy(swiglu(gate, up)), [large / 2, 0.0])


def test_half_precision_is_rounded_once(backend):
    gate, up = backend.array([60000.0], "float16"), backend.array([2.0**-20], "float16")
    assert_allclose(backend.numpy(swiglu(gate, up)), 60000 * 2.0**-20, rtol=2**-11)


def test_the_gradient_is_the_derivative(rng):
    gate, up = (torch.tensor(rng.standard_normal((T, D)), requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(swiglu, (gate, up))


def test_the_slope_at_0_is_one_half():
    gate = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    swiglu(gate, torch.ones(3, dtype=torch.float64)).sum().backward()
    assert_allclose(gate.grad, 0.5)


ERRORS = {
    "two widths": (lambda z: swiglu(z(T, D), z(T, S)), ValueError, [sizes(T, D), sizes(T, S)]),
    "one that would broadcast": (lambda z: swiglu(z(T, D), z(1, D)), ValueError, [sizes(T, D), sizes(1, D)]),
    "integers": (lambda z: swiglu(z(T, dtype="int64"), z(T, dtype="int64")), TypeError, ["int64"]),
    "two dtypes": (lambda z: swiglu(z(T), z(T, dtype="float32")), TypeError, ["float32", "float64"]),
}


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)
