"""softmax: exp(x_i) / sum_j exp(x_j), never overflowing, and 0 where nothing may be chosen."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.special
import torch
from backends import B, S, T, dtype_name, examples
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from attnlib import softmax

INF, NAN = np.inf, np.nan
scores = hnp.arrays(np.float64, (T, S), elements=st.floats(-1e3, 1e3))


def softmax_of(backend, x, dtype="float64", **axis):
    return backend.numpy(softmax(backend.array(x, dtype), **axis))


# Worked by hand


def test_scores_zero_and_one_give_one_and_e_over_one_plus_e(backend):
    assert_allclose(softmax_of(backend, [0, 1]), np.array([1, np.e]) / (1 + np.e), rtol=1e-15)


def test_softmax_of_logarithms_is_their_arguments_normalised(backend):
    assert_allclose(softmax_of(backend, np.log([1, 2, 3, 4])), [0.1, 0.2, 0.3, 0.4], rtol=1e-14)


def test_equal_scores_share_equally(backend):
    assert_allclose(softmax_of(backend, np.full((T, S), 3.0)), np.full((T, S), 1 / S), rtol=1e-15)


def test_a_single_choice_is_certain(backend):
    assert_array_equal(softmax_of(backend, [[-40.0], [0.0], [700.0]]), [[1], [1], [1]])


def test_axis_0_normalises_the_columns(backend):
    # exp gives 1 over 3 and 4 over 1.
    x = np.log([[1, 4], [3, 1]])
    assert_allclose(softmax_of(backend, x, axis=0), [[1 / 4, 4 / 5], [3 / 4, 1 / 5]], rtol=1e-14)


# Against other libraries


@pytest.mark.parametrize("axis", range(-3, 3))
def test_softmax_agrees_with_torch_and_scipy_along_every_axis(backend, rng, axis):
    x = 5 * rng.standard_normal((B, T, S))
    ours = softmax_of(backend, x, axis=axis)
    assert_allclose(ours, torch.softmax(torch.from_numpy(x), axis).numpy(), rtol=1e-12)
    assert_allclose(ours, scipy.special.softmax(x, axis), rtol=1e-12)


def test_the_axis_is_the_last_one_unless_told(backend, rng):
    x = rng.standard_normal((B, T, S))
    assert_array_equal(softmax_of(backend, x), softmax_of(backend, x, axis=2))


def test_the_axis_may_be_given_by_position(backend, rng):
    x = rng.standard_normal((B, T, S))
    assert_array_equal(backend.numpy(softmax(backend.array(x), 1)), softmax_of(backend, x, axis=1))


# What is true of every softmax


@examples
@given(scores)
def test_rows_are_probabilities(backend, x):
    weights = softmax_of(backend, x)
    assert (weights >= 0).all()
    assert (weights <= 1).all()
    assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)


@examples
@given(scores, st.floats(-1e3, 1e3))
def test_adding_a_constant_to_a_row_changes_nothing(backend, x, constant):
    assert_allclose(softmax_of(backend, x + constant), softmax_of(backend, x), rtol=1e-9, atol=1e-300)


@examples
@given(scores)
def test_a_higher_score_never_gets_a_lower_weight(backend, x):
    weights = np.take_along_axis(softmax_of(backend, x), np.argsort(x), axis=-1)
    assert (np.diff(weights) >= 0).all()


@examples
@given(scores, st.permutations(range(S)))
def test_permuting_the_scores_permutes_the_weights(backend, x, order):
    assert_allclose(softmax_of(backend, x[:, order]), softmax_of(backend, x)[:, order], rtol=1e-12, atol=1e-300)


@examples
@given(scores)
def test_the_ratio_of_two_weights_is_exp_of_the_difference_of_their_scores(backend, x):
    x = x / 100  # differences up to 20: nothing underflows
    weights = softmax_of(backend, x)
    assert_allclose(weights[:, 0] / weights[:, 1], np.exp(x[:, 0] - x[:, 1]), rtol=1e-12)


# Infinities and NaN


def test_minus_infinity_is_never_chosen(backend):
    assert_array_equal(softmax_of(backend, [0, -INF, 0]), [0.5, 0, 0.5])


def test_a_row_of_minus_infinities_chooses_nothing(typed):
    backend, dtype = typed
    x = [[-INF, -INF, -INF], [0, -INF, 0], [-INF, -INF, 9]]
    assert_array_equal(softmax_of(backend, x, dtype), [[0, 0, 0], [0.5, 0, 0.5], [0, 0, 1]])


def test_a_column_of_minus_infinities_chooses_nothing(backend):
    assert_array_equal(softmax_of(backend, [[-INF, 2], [-INF, 2]], axis=0), [[0, 0.5], [0, 0.5]])


def test_nan_spoils_its_own_row_and_no_other(typed):
    backend, dtype = typed
    x = [[NAN, 0, 0], [0, 0, -INF], [-INF, NAN, -INF], [NAN, NAN, NAN]]
    expected = [[NAN] * 3, [0.5, 0.5, 0], [NAN] * 3, [NAN] * 3]
    assert_array_equal(softmax_of(backend, x, dtype), expected)


def test_no_rows_give_no_rows(backend):
    assert softmax_of(backend, np.zeros((0, S))).shape == (0, S)


# Range and precision


@pytest.mark.parametrize("top", [1e4, 6e4])
def test_large_scores_do_not_overflow_in_any_dtype(typed, top):
    # In float16 the largest number is 65504: both exp(top) and top - (-top) are beyond it.
    backend, dtype = typed
    assert_array_equal(softmax_of(backend, [top, -top, top, -INF], dtype), [0.5, 0, 0.5, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_of_1e30_do_not_overflow(backend, dtype):
    assert_array_equal(softmax_of(backend, [1e30, -1e30, 1e30], dtype), [0.5, 0, 0.5])


def test_neighbouring_large_scores_keep_their_ratio(typed):
    # 10000 and 9936 are whole numbers of every float's steps there (64 in bfloat16): the ratio is exp(-64).
    backend, dtype = typed
    big = backend.numpy(backend.array([10000, 9936], dtype))
    assert_allclose(softmax_of(backend, big, dtype), scipy.special.softmax(big), rtol=1e-2, atol=1e-7)


def test_the_result_has_the_dtype_and_shape_of_the_input(typed, rng):
    backend, dtype = typed
    x = backend.array(rng.standard_normal((B, T, S)), dtype)
    assert dtype_name(softmax(x)) == dtype
    assert softmax(x).shape == x.shape


def test_softmax_is_as_exact_as_its_dtype(typed, rng):
    # Computed in float32 inside: half a step from the rounding to the input's dtype, and a little for float32 itself.
    # Computed in float16, the error of x - max alone is 2^-8 of the weight.
    backend, dtype = typed
    half_step = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}[dtype]
    inner = max(half_step if dtype == "float64" else 2**-24, 2**-53)
    x = backend.array(rng.uniform(-8, 0, (T, 4099)), dtype)
    exact = scipy.special.softmax(backend.numpy(x), axis=-1)
    tiny = 2**-25 if dtype == "float16" else 0  # half a step of float16's subnormals
    assert_allclose(backend.numpy(softmax(x)), exact, rtol=half_step + 64 * inner, atol=tiny)


# Gradients


def test_the_gradient_is_the_numerical_one(rng):
    x = torch.tensor(rng.standard_normal((B, T, S)), requires_grad=True)
    for axis in (0, 1, -1):
        assert torch.autograd.gradcheck(lambda x, axis=axis: softmax(x, axis), x)


def test_the_gradient_is_the_numerical_one_beside_a_row_of_minus_infinities(rng):
    x = rng.standard_normal((T, S))
    x[1], x[3, 2] = -INF, -INF
    assert torch.autograd.gradcheck(softmax, torch.tensor(x, requires_grad=True))


def test_a_row_of_minus_infinities_has_gradient_zero(rng):
    x = rng.standard_normal((T, S))
    x[1] = -INF
    x = torch.tensor(x, requires_grad=True)
    (softmax(x) ** 2).sum().backward()
    assert x.grad.isfinite().all()
    assert (x.grad[1] == 0).all()
    assert (x.grad[0] != 0).all()


def test_the_jacobian_is_diag_p_minus_p_p_transposed(rng):
    x = torch.tensor(rng.standard_normal(S))
    p = torch.softmax(x, -1)
    torch.testing.assert_close(torch.func.jacrev(softmax)(x), torch.diag(p) - torch.outer(p, p))


# torch: as few operations as possible, but no branching on values where they could change


class Functions(TorchFunctionMode):
    """Collect the names of torch's functions that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(function.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_scores_without_an_empty_row_take_one_operation_on_all_of_them(requires_grad):
    x = torch.randn(T, S, requires_grad=requires_grad)
    with Functions() as functions:
        softmax(x, -1)
    assert functions.names.count("softmax") == 1
    assert not {"eq", "all", "any", "where", "masked_fill", "amax", "max"} & set(functions.names)


EMPTY_ROW = torch.tensor([[-INF, -INF], [0.0, -INF]])
RECORDED = {
    "make_fx": lambda x: make_fx(lambda x: softmax(x))(x),
    "make_fx of fake tensors": lambda x: make_fx(lambda x: softmax(x), tracing_mode="fake")(x),
    "compile": lambda x: torch.compile(softmax, fullgraph=True, backend="eager"),
    "jit.trace": lambda x: torch.jit.trace(softmax, x),
    "vmap": lambda x: torch.func.vmap(softmax),
}


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDED.values(), ids=RECORDED)
@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_what_is_recorded_without_an_empty_row_holds_with_one(record):
    recorded = record(torch.zeros(2, 2))
    recorded(torch.zeros(2, 2))
    assert_array_equal(recorded(EMPTY_ROW).numpy(), [[0, 0], [1, 0]])


def test_a_fake_tensor_s_values_are_not_read():
    with FakeTensorMode() as mode:
        assert tuple(softmax(torch.zeros(T, S)).shape) == (T, S)
        assert tuple(softmax(mode.from_tensor(torch.zeros(T, S))).shape) == (T, S)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_under_autocast_an_empty_row_is_0_in_the_dtype_that_came(dtype):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = softmax(EMPTY_ROW.to(getattr(torch, dtype)))
    assert dtype_name(weights) == dtype
    assert_array_equal(weights.float().numpy(), [[0, 0], [1, 0]])


@pytest.mark.parametrize("shape", [(0, S), (T, 0), (0, 0)])
@pytest.mark.parametrize("axis", [0, -1])
def test_no_scores_give_no_weights_along_either_axis(backend, shape, axis):
    assert softmax_of(backend, np.zeros(shape), axis=axis).shape == shape


def test_second_derivatives_beside_a_row_of_minus_infinities(rng):
    x = rng.standard_normal((T, S))
    x[1], x[3, 2] = -INF, -INF
    for scores in (x, np.delete(x, 1, axis=0)):
        assert torch.autograd.gradgradcheck(softmax, torch.tensor(scores, requires_grad=True))
