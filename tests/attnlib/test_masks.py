"""Masks: True where a query may attend to a key, by position, by length, and all of it together."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import B, H, Numpy, OnMeta, S, T, Torch, assert_error_names, examples, sizes
from hypothesis import given
from numpy.testing import assert_array_equal

from attnlib import attention, causal_mask, combine_masks, encode, padding_mask, window_mask

INF = np.inf
lengths_of_sequences = st.integers(0, 9)
offsets = st.integers(-12, 12)
sides = st.none() | st.integers(0, 12)


def like(backend):
    return backend.array(np.ones((1, 1, 1)), "int64")


def bools(backend, mask):
    """A mask of this backend as a NumPy array, after checking that it is boolean."""
    assert str(mask.dtype).removeprefix("torch.") == "bool"
    return backend.numpy(mask).astype(bool)


def loop(T, S, allowed):
    """The mask by its definition, entry by entry."""
    return np.array([[bool(allowed(i, j)) for j in range(S)] for i in range(T)], bool).reshape(T, S)


# Causal


@pytest.mark.parametrize(
    ("q_offset", "rows"),
    [
        (0, ["1000", "1100", "1110"]),
        (1, ["1100", "1110", "1111"]),
        (-1, ["0000", "1000", "1100"]),
        (3, ["1111", "1111", "1111"]),
        (-3, ["0000", "0000", "0000"]),
    ],
)
def test_a_query_sees_its_own_position_and_those_before_it(backend, q_offset, rows):
    ours = causal_mask(3, 4, q_offset=q_offset, like=like(backend))
    assert_array_equal(bools(backend, ours), [[c == "1" for c in row] for row in rows])


def test_with_one_length_it_is_square_and_lower_triangular(backend):
    assert_array_equal(bools(backend, causal_mask(T, like=like(backend))), np.tril(np.ones((T, T), bool)))


@examples
@given(lengths_of_sequences, lengths_of_sequences, offsets)
def test_causal_is_j_at_most_i_plus_offset(backend, T, S, q_offset):
    ours = causal_mask(T, S, q_offset=q_offset, like=like(backend))
    assert_array_equal(bools(backend, ours), loop(T, S, lambda i, j: j <= i + q_offset))
    assert_array_equal(bools(backend, ours), np.tri(T, S, q_offset, dtype=bool))


def test_offset_0_is_torch_s_causal_mask_and_s_minus_t_aligns_the_ends():
    from torch.nn.attention.bias import causal_lower_right, causal_upper_left

    x = torch.ones(1)
    assert torch.equal(causal_mask(T, S, like=x), causal_upper_left(T, S)._materialize())
    assert torch.equal(causal_mask(T, S, q_offset=S - T, like=x), causal_lower_right(T, S)._materialize())


def test_the_queries_behind_a_cache_have_the_last_rows_of_the_whole_mask(backend):
    whole = bools(backend, causal_mask(S, like=like(backend)))
    for cached in range(S + 1):
        step = causal_mask(S - cached, S, q_offset=cached, like=like(backend))
        assert_array_equal(bools(backend, step), whole[cached:])


def test_no_future_vector_changes_a_past_result(backend, rng):
    x = rng.standard_normal((T, 3))
    changed = x.copy()
    changed[2:] = rng.standard_normal((T - 2, 3))
    mask = causal_mask(T, like=like(backend))
    one, other = (backend.numpy(attention(z, z, z, mask=mask)[0]) for z in map(backend.array, (x, changed)))
    assert_array_equal(one[:2], other[:2])
    assert (one[2:] != other[2:]).all()


# Windows


@pytest.mark.parametrize(
    ("left", "right", "rows"),
    [
        (1, 0, ["1000", "1100", "0110", "0011"]),
        (0, 1, ["1100", "0110", "0011", "0001"]),
        (2, 1, ["1100", "1110", "1111", "0111"]),
        (0, 0, ["1000", "0100", "0010", "0001"]),
        (None, 1, ["1100", "1110", "1111", "1111"]),
        (1, None, ["1111", "1111", "0111", "0011"]),
    ],
)
def test_a_window_reaches_left_and_right_of_the_query(backend, left, right, rows):
    ours = window_mask(4, 4, left, right, like=like(backend))
    assert_array_equal(bools(backend, ours), [[c == "1" for c in row] for row in rows])


@examples
@given(lengths_of_sequences, lengths_of_sequences, sides, sides, offsets, st.integers(0, 3))
def test_a_window_is_its_two_inequalities_and_sinks_are_exempt_from_one(backend, T, S, left, right, q_offset, sinks):
    def allowed(i, j):
        near = left is None or i + q_offset - left <= j
        return (near or j < sinks) and (right is None or j <= i + q_offset + right)

    ours = window_mask(T, S, left, right, num_sink_tokens=sinks, q_offset=q_offset, like=like(backend))
    assert_array_equal(bools(backend, ours), loop(T, S, allowed))


def test_a_window_without_sides_allows_all(backend):
    ours = bools(backend, window_mask(T, S, None, None, like=like(backend)))
    assert ours.shape == (T, S)
    assert ours.all()


@examples
@given(st.integers(0, 9), offsets)
def test_a_window_and_the_causal_mask_are_a_window_without_a_right_side(backend, left, q_offset):
    same = {"q_offset": q_offset, "like": like(backend)}
    both = combine_masks(window_mask(T, S, left, None, **same), causal_mask(T, S, **same))
    assert_array_equal(bools(backend, both), bools(backend, window_mask(T, S, left, 0, **same)))
    assert_array_equal(bools(backend, both), bools(backend, window_mask(T, S, left, **same)))


@examples
@given(offsets)
def test_an_unbounded_window_to_the_left_is_the_causal_mask(backend, q_offset):
    same = {"q_offset": q_offset, "like": like(backend)}
    assert_array_equal(bools(backend, window_mask(T, S, None, **same)), bools(backend, causal_mask(T, S, **same)))


@pytest.mark.parametrize("q_offset", [0, 2, 1000])
def test_the_largest_integer_is_as_good_as_none(backend, q_offset):
    most = np.iinfo(np.int64).max
    ours = window_mask(T, S, most, most, q_offset=q_offset, like=like(backend))
    assert bools(backend, ours).all()


@pytest.mark.parametrize("q_offset", [-(2**62), 2**62])
@pytest.mark.parametrize("side", [2**62 + 1, 2**63 - 1, 2**63, 2**100])
def test_sides_beyond_all_positions_bound_nothing(backend, q_offset, side):
    assert bools(backend, window_mask(2, 3, side, side, like=like(backend))).all()
    sees_all = window_mask(2, 3, side, 0, q_offset=q_offset, like=like(backend))
    assert_array_equal(
        bools(backend, sees_all), bools(backend, causal_mask(2, 3, q_offset=q_offset, like=like(backend)))
    )


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_offset_is_2_to_the_62(backend, sign):
    mask = bools(backend, causal_mask(2, 3, q_offset=sign * 2**62, like=like(backend)))
    assert (mask == (sign > 0)).all()
    for maker in (causal_mask, lambda T, S, **o: window_mask(T, S, 1, **o)):
        with pytest.raises(ValueError, match=rf"q_offset is {sign * (2**62 + 1)}, but from -2\*\*62 to 2\*\*62"):
            maker(2, 3, q_offset=sign * (2**62 + 1), like=like(backend))


def test_small_integers_of_numpy_do_not_wrap_around(backend):
    ours = window_mask(np.uint8(T), np.int8(S), np.uint8(3), np.uint8(0), q_offset=np.uint8(2), like=like(backend))
    assert_array_equal(bools(backend, ours), loop(T, S, lambda i, j: i - 1 <= j <= i + 2))


# Padding


def test_padding_is_worked_by_hand(backend):
    mask = padding_mask(backend.array([2, 0, 3], "int64"), 3)
    assert tuple(mask.shape) == (3, 1, 1, 3)
    assert_array_equal(bools(backend, mask)[:, 0, 0], [[1, 1, 0], [0, 0, 0], [1, 1, 1]])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("S", [0, 7, 200])
def test_every_sequence_has_as_many_true_keys_as_its_length_and_they_come_first(backend, dtype, S):
    lengths = [0, min(1, S), min(5, S), min(S, 127)]
    mask = bools(backend, padding_mask(backend.array(lengths, dtype), S))
    assert_array_equal(mask.sum(axis=-1)[:, 0, 0], lengths)
    assert_array_equal(mask, np.sort(mask, axis=-1)[..., ::-1])


@pytest.mark.parametrize(
    "lengths", [[2, 0, 7], (2, 0, 7), [np.int64(2), np.uint8(0), 7], [np.array(2), np.array(0), 7]]
)
def test_a_list_or_tuple_of_lengths_gives_numpy(lengths):
    ours = padding_mask(lengths, S)
    assert type(ours) is np.ndarray
    assert_array_equal(ours, padding_mask(np.array([2, 0, 7]), S))


def test_a_range_of_lengths_gives_numpy():
    assert_array_equal(padding_mask(range(4), 3)[:, 0, 0], np.tri(4, 3, -1, bool))


@pytest.mark.parametrize(
    "lengths",
    [3, "12", [1.0, 2.0], [True, 2], [[1], [2]], [np.array([1]), 2], np.ones(2), np.ones(2, bool), torch.ones(2),
     [1, 9], [-1, 2], np.array([1, 9]), np.array([2**63, 1], np.uint64), range(-1, 1)], ids=repr,
)  # fmt: skip
def test_lengths_are_refused_with_the_same_words_by_a_mask_and_by_an_encoder(lengths):
    ours = torch.ones if isinstance(lengths, torch.Tensor) else np.ones
    with pytest.raises((TypeError, ValueError), match=r"^lengths") as of_mask:
        padding_mask(lengths, 7)
    with pytest.raises(of_mask.type) as of_encoder:
        encode(lambda x, h: h, ours((2, 7, 3)), ours((2, 3)), lengths=lengths)
    assert str(of_encoder.value).replace("T=7", "S=7") == str(of_mask.value)


def test_no_sequences_have_an_empty_mask(backend):
    assert tuple(padding_mask(backend.array([], "int64"), S).shape) == (0, 1, 1, S)
    assert padding_mask([], S).shape == (0, 1, 1, S)


def test_padding_keys_change_nothing(backend, rng):
    x = rng.standard_normal((B, H, S, 3))
    changed = x.copy()
    changed[0, :, 2:], changed[1, :, 5:] = 99, -99
    query, mask = backend.array(rng.standard_normal((B, H, T, 3))), padding_mask(backend.array([2, 5], "int64"), S)
    one, other = (backend.numpy(attention(query, k, k, mask=mask)[0]) for k in map(backend.array, (x, changed)))
    assert_array_equal(one, other)


def test_lengths_beyond_the_keys_are_cut_in_torch_because_values_are_not_looked_at():
    mask = padding_mask(torch.tensor([-3, 99]), S)
    assert_array_equal(mask.numpy()[:, 0, 0], [[False] * S, [True] * S])


# Combined


def test_boolean_masks_are_anded_with_broadcasting(backend, rng):
    causal, padding = rng.random((T, S)) < 0.7, rng.random((B, 1, 1, S)) < 0.7
    ours = combine_masks(backend.array(causal, "bool"), backend.array(padding, "bool"))
    assert_array_equal(bools(backend, ours), causal & padding)


def test_three_masks_and_nones_are_combined_in_any_order(backend, rng):
    masks = [rng.random(shape) < 0.8 for shape in ((T, S), (B, 1, S), (T, 1))]
    expected = masks[0] & masks[1] & masks[2]
    a, b, c = (backend.array(m, "bool") for m in masks)
    for order in ((a, b, c), (c, None, a, b), (None, b, c, None, a)):
        assert_array_equal(bools(backend, combine_masks(*order)), expected)


@pytest.mark.parametrize("masks", [(), (None,), (None, None)])
def test_no_mask_at_all_is_none(masks):
    assert combine_masks(*masks) is None


def test_one_mask_is_a_copy_of_itself(backend, rng):
    for mask in (backend.array(rng.random((T, S)) < 0.5, "bool"), backend.array(rng.standard_normal((T, S)))):
        ours = combine_masks(None, mask)
        before = backend.numpy(mask).copy()
        assert_array_equal(backend.numpy(ours), before)
        assert ours.dtype == mask.dtype
        mask[...] = backend.array(np.zeros((T, S)), "float64")
        assert_array_equal(backend.numpy(ours), before)


def test_float_masks_are_added(typed):
    backend, dtype = typed
    ours = combine_masks(backend.array([[1.0], [2.0]], dtype), backend.array([0.25, -INF, 4], dtype))
    assert ours.dtype == backend.array([0.0], dtype).dtype
    assert_array_equal(backend.numpy(ours), [[1.25, -INF, 5], [2.25, -INF, 6]])


@pytest.mark.parametrize("order", [1, -1])
def test_a_boolean_mask_puts_exactly_minus_infinity_into_a_float_mask(typed, order):
    backend, dtype = typed
    floats, allowed = backend.array([0.5, -INF, INF, np.nan], dtype), backend.array([[1, 1, 1, 1], [0] * 4], "bool")
    ours = combine_masks(*(floats, allowed)[::order])
    assert ours.dtype == floats.dtype
    assert_array_equal(backend.numpy(ours), [[0.5, -INF, INF, np.nan], [-INF] * 4])


def test_a_bool_between_two_floats_holds_for_their_sum(backend):
    a, b = backend.array([1.0, 2.0]), backend.array([10.0, 20.0])
    no = backend.array([True, False], "bool")
    for order in ((a, no, b), (no, a, b), (a, b, no)):
        assert_array_equal(backend.numpy(combine_masks(*order)), [11, -INF])


def test_the_lowest_numbers_add_up_to_minus_infinity_without_a_warning(typed):
    backend, dtype = typed
    lowest = {"bfloat16": -3.3895313892515355e38}.get(dtype) or float(np.finfo(dtype).min)
    low = backend.array([lowest, 0], dtype)
    assert_array_equal(backend.numpy(combine_masks(low, low)), [-INF, 0])


def test_attention_under_the_combined_mask_is_attention_under_bool_and_bias_together(backend, rng):
    query, key = (backend.array(rng.standard_normal(s)) for s in ((T, 3), (S, 3)))
    allowed, bias = rng.random((T, S)) < 0.6, rng.standard_normal((T, S))
    ours = attention(query, key, key, mask=combine_masks(backend.array(allowed, "bool"), backend.array(bias)))[1]
    by_hand = attention(query, key, key, mask=backend.array(np.where(allowed, bias, -INF)))[1]
    assert_array_equal(backend.numpy(ours), backend.numpy(by_hand))


def test_the_gradient_of_a_float_mask_is_one_where_allowed_and_zero_where_not():
    bias = torch.zeros(T, S, requires_grad=True)
    combined = combine_masks(bias, causal_mask(T, S, like=bias))
    combined.masked_fill(combined == -INF, 0.0).sum().backward()
    assert torch.equal(bias.grad, torch.ones(T, S).tril())


# Libraries, devices, transforms


MAKERS = {
    "causal_mask": lambda x: causal_mask(x.shape[-2], x.shape[-1], q_offset=1, like=x),
    "causal_mask behind a cache": lambda x: causal_mask(x.shape[-2], 2 * x.shape[-2], q_offset=x.shape[-2], like=x),
    "window_mask": lambda x: window_mask(x.shape[-2], x.shape[-1], 2, None, q_offset=1, like=x),
    "window_mask of no side": lambda x: window_mask(x.shape[-2], x.shape[-1], None, None, like=x),
    "padding_mask": lambda x: padding_mask((x[..., 0] > 0).sum(-1), x.shape[-2]),
    "combine_masks": lambda x: combine_masks(
        causal_mask(x.shape[-2], like=x), None, window_mask(x.shape[-2], x.shape[-2], 1, 1, like=x)
    ),
    "combine_masks with floats": lambda x: combine_masks(causal_mask(x.shape[-2], like=x), x[..., :1], x[..., 1:2]),
}
every_maker = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_like_decides_the_library_and_the_device_alone(backend, dtype):
    z = backend.array(np.ones((2, 2)), dtype)
    for mask in (causal_mask(T, S, like=z), window_mask(T, S, 1, like=z)):
        bools(backend, mask)  # which checks them


def test_without_like_it_is_numpy():
    assert type(causal_mask(T)) is np.ndarray
    assert type(window_mask(T, S, None, None)) is np.ndarray


@every_maker
def test_nothing_leaves_the_device(maker):
    x = torch.empty(B, T, S, device="meta")
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

    dynamic, x = ({1: torch.export.Dim("T", min=2, max=64)},), torch.zeros(B, T, S)
    program = torch.export.export(Makers(), (x,), dynamic_shapes=dynamic, strict=strict).module()
    for length in (T, 19):
        x = torch.tensor(rng.standard_normal((B, length, S)), dtype=torch.float32)
        torch.testing.assert_close(program(x), make_all(x))


def test_vmap_over_masks_and_lengths_is_a_loop(rng):
    masks, lengths = torch.tensor(rng.random((B, T, S)) < 0.5), torch.tensor([[1, 2], [3, 4]])
    causal = causal_mask(T, S, like=masks)
    ours = torch.func.vmap(lambda m, n: combine_masks(m, causal, padding_mask(n, S)))(masks, lengths)
    loop = [combine_masks(m, causal, padding_mask(n, S)) for m, n in zip(masks, lengths, strict=True)]
    assert torch.equal(ours, torch.stack(loop))


# Errors


def of(z, *values, dtype="int64"):
    """An array of these values in the library of z."""
    flat = z(len(values), dtype=dtype)
    for n, value in enumerate(values):
        flat[n] = value
    return flat


ERRORS = {
    "causal_mask of a float length": (lambda z: causal_mask(3.0, like=z()), TypeError, ["T", r"3\.0"]),
    "causal_mask of a bool length": (lambda z: causal_mask(True, like=z()), TypeError, ["T", "True"]),
    "causal_mask of a list": (lambda z: causal_mask([3], like=z()), TypeError, ["T", r"\[3\]"]),
    "causal_mask of an array": (lambda z: causal_mask(z(1), like=z()), TypeError, ["T"]),
    "causal_mask of a negative length": (lambda z: causal_mask(-1, like=z()), ValueError, ["T", "-1"]),
    "causal_mask of negative keys": (lambda z: causal_mask(3, -2, like=z()), ValueError, ["S", "-2"]),
    "causal_mask of half an offset": (lambda z: causal_mask(3, q_offset=0.5, like=z()), TypeError, ["q_offset", "0.5"]),
    "causal_mask like a list": (lambda z: causal_mask(3, like=[1.0]), TypeError, ["like", "list"]),
    "causal_mask like a dtype": (lambda z: causal_mask(3, like=np.float32), TypeError, ["like", "type"]),
    "window_mask with a negative left": (lambda z: window_mask(T, S, -1, like=z()), ValueError, ["left", "-1"]),
    "window_mask with a negative right": (lambda z: window_mask(T, S, 1, -2, like=z()), ValueError, ["right", "-2"]),
    "window_mask with a float left": (lambda z: window_mask(T, S, 1.5, like=z()), TypeError, ["left", "1.5"]),
    "window_mask with an infinite right": (lambda z: window_mask(T, S, 1, INF, like=z()), TypeError, ["right", "inf"]),
    "window_mask with half a sink": (
        lambda z: window_mask(T, S, None, num_sink_tokens=0.5, like=z()), TypeError, ["num_sink_tokens", r"0\.5"],
    ),
    "window_mask with a negative number of sinks": (
        lambda z: window_mask(T, S, 1, num_sink_tokens=-1, like=z()), ValueError, ["num_sink_tokens", "-1"],
    ),
    "window_mask without keys": (lambda z: window_mask(T, None, 1, like=z()), TypeError, ["S", "None"]),
    "padding_mask of float lengths": (lambda z: padding_mask(z(B), S), TypeError, ["lengths", "float64"]),
    "padding_mask of a mask": (lambda z: padding_mask(z(B, dtype="bool"), S), TypeError, ["lengths", "bool"]),
    "padding_mask of a number": (lambda z: padding_mask(3, S), TypeError, ["lengths", "int"]),
    "padding_mask of a list of floats": (lambda z: padding_mask([1, 2.0], S), TypeError, [r"lengths\[1\]", r"2\.0"]),
    "padding_mask of a list of bools": (lambda z: padding_mask([True], S), TypeError, [r"lengths\[0\]", "True"]),
    "padding_mask of a list of lists": (lambda z: padding_mask([[1]], S), TypeError, [r"lengths\[0\]", r"\[1\]"]),
    "padding_mask of a matrix": (
        lambda z: padding_mask(z(B, T, dtype="int64"), S), ValueError, [sizes(B, T), r"\(B,\)"],
    ),
    "padding_mask of a single length": (lambda z: padding_mask(z(dtype="int64"), S), ValueError, [sizes()]),
    "padding_mask of a length beyond S": (lambda z: padding_mask([1, 9], S), ValueError, [r"lengths\[1\]", "9", "S=7"]),
    "padding_mask of a negative length": (lambda z: padding_mask((-1, 9), S), ValueError, [r"lengths\[0\]", "-1"]),
    "padding_mask of an array's length beyond S": (
        lambda z: padding_mask(np.array([1, 9]), S), ValueError, [r"lengths\[1\]", "9", "S=7"],
    ),
    "padding_mask of negative keys": (lambda z: padding_mask(of(z, 0), -1), ValueError, ["S", "-1"]),
    "padding_mask of a float S": (lambda z: padding_mask(of(z, 0), 7.0), TypeError, ["S", r"7\.0"]),
    "combine_masks that do not broadcast": (
        lambda z: combine_masks(z(T, S, dtype="bool"), z(S, T, dtype="bool")), ValueError, [sizes(T, S), sizes(S, T)],
    ),
    "combine_masks of integers": (
        lambda z: combine_masks(z(T, S, dtype="int64")), TypeError,
        [r"^masks\[0\] has dtype (torch\.)?int64, but bool \(True .*\) or floating point \(added .*\) is needed$"],
    ),
    "combine_masks of complex numbers": (
        lambda z: combine_masks(z(T, S, dtype="complex64")), TypeError, [r"masks\[0\]", "complex64", "bool"],
    ),
    "combine_masks of integers beside a bool": (
        lambda z: combine_masks(z(T, S, dtype="bool"), z(T, S, dtype="int64")), TypeError, [r"masks\[1\]", "int64"],
    ),
    "combine_masks of two float dtypes": (
        lambda z: combine_masks(z(T, S, dtype="float32"), z(T, S)), TypeError, ["float32", "float64"],
    ),
    "combine_masks of a list": (lambda z: combine_masks(z(T, S), [[0.0]]), TypeError, ["list"]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


@pytest.mark.parametrize(("one", "other"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
def test_masks_of_two_libraries_are_refused(one, other):
    with pytest.raises(TypeError, match=r"ndarray.*Tensor|Tensor.*ndarray"):
        combine_masks(one.array(np.ones((T, S)), "bool"), other.array(np.ones((T, S)), "bool"))
