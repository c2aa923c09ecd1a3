"""NumPy's gelu: the normal distribution by SciPy and by torch, the ends of the line, dtypes and sizes."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from attnlib._gelu import BLOCK_SIZE, gelu


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 5e-3), ("float32", 5e-7), ("float64", 1e-15)])
def test_gelu_is_x_times_the_normal_distribution(dtype, tolerance):
    x = np.linspace(-8, 8, 4001).astype(dtype)
    ours = gelu(x)
    assert ours.dtype == dtype
    assert_allclose(ours.astype(float), x.astype(float) * ndtr(x.astype(float)), rtol=0, atol=tolerance)


def test_float32_is_as_near_to_the_truth_as_torch_is():
    x = np.linspace(-8, 8, 4001, dtype=np.float32)
    truth = x.astype(float) * ndtr(x.astype(float))
    theirs = torch.nn.functional.gelu(torch.from_numpy(x)).numpy()
    assert abs(gelu(x) - truth).max() <= abs(theirs - truth).max()


def test_far_to_the_left_it_is_zero_and_far_to_the_right_the_identity():
    x = np.array([-np.inf, -3e38, -100, 0, 100, 3e38, np.inf, np.nan], np.float32)
    assert_array_equal(gelu(x), np.float32([0, 0, 0, 0, 100, 3e38, np.inf, np.nan]))


def test_underflow_is_no_error():
    with np.errstate(all="raise"):
        assert_array_equal(gelu(np.float32([-14.5, 14.5])), np.float32([0, 14.5]))


@pytest.mark.parametrize("size", [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 2 * BLOCK_SIZE + 3])
def test_every_number_counts_whatever_the_size(size):
    assert_array_equal(gelu(np.full(size, 1.5, np.float32)), np.full(size, gelu(np.float32([1.5]))))


@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7, 11)])
def test_the_shape_stays_and_so_does_the_input(rng, shape):
    x = np.array(rng.standard_normal(shape), np.float32)
    before = x.copy()
    assert gelu(x).shape == shape
    assert_array_equal(x, before)


def test_a_view_with_gaps_gives_what_its_copy_gives(rng):
    x = rng.standard_normal((7, 22)).astype(np.float32)[:, ::2].T
    assert_array_equal(gelu(x), gelu(x.copy()))


def test_in_float64_the_tail_keeps_its_digits():
    x = -np.linspace(0, 37, 1001)
    assert_allclose(gelu(x), x * ndtr(x), rtol=1e-12)
    # -9 Q(9) and -20 Q(20), with Q from tables of the normal distribution
    assert_allclose(gelu(np.array([-9.0, -20.0])), [-9 * 1.128588406e-19, -20 * 2.753624119e-89], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_ends_of_the_line_are_0_and_infinity_without_a_warning(dtype):
    with np.errstate(all="raise"):
        ends = gelu(np.array([-np.inf, np.inf, np.nan, -39, -0.0], dtype))
    assert_array_equal(ends, np.array([0, np.inf, np.nan, 0, 0], dtype))


@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7, 11)])
def test_float64_keeps_its_shape_and_so_does_its_input(rng, shape):
    x = np.array(rng.standard_normal(shape) * 30)
    before = x.copy()
    ours = gelu(x)
    assert (type(ours), ours.shape, ours.dtype) == (np.ndarray, shape, np.float64)
    assert_array_equal(x, before)


def test_no_dtype_needs_scipy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy.special", None)
    for dtype in ("float16", "float32", "float64"):
        assert gelu(np.zeros(1, dtype)) == 0
