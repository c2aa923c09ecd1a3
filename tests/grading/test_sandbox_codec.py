"""What goes into the box, or comes out of it, arrives as it was sent, or is refused by its one error."""

import base64
import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnlib.checks.catalogue import CATALOGUE
from grading.graded_cell import GradedCell
from grading.judge import Judge
from grading.sandbox.inside import codec, frames
from grading.sandbox.inside.codec import ARRAY_DTYPES, array, decode, encode
from grading.sandbox.inside.frames import MessageError, pack, unpack

SLOW_HERE = settings(max_examples=80, suppress_health_check=list(HealthCheck))
ARRAYS = st.sampled_from(sorted(ARRAY_DTYPES)).flatmap(
    lambda kind: arrays.arrays(np.dtype(kind), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    PLAIN | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
JSON = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["array", "tuple", "dict", "x"]) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def through(x):
    """Send a value, as bytes, and return what arrives."""
    body = pack({"x": encode(x)})
    (length,) = frames.LENGTH.unpack(body[: frames.LENGTH.size])
    assert length == len(body) - frames.LENGTH.size
    return decode(unpack(body[frames.LENGTH.size :])["x"])


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        assert repr(one) == repr(other)  # NaN too


@SLOW_HERE
@given(VALUES)
def test_every_kind_of_value_arrives_as_it_was(x):
    assert_same(through(x), x)


@SLOW_HERE
@given(ARRAYS, st.randoms())
def test_the_order_in_memory_is_kept(x, random):
    axes = list(range(x.ndim))
    random.shuffle(axes)
    turned = x.copy(order="C").transpose(axes)
    arrived = through(turned)
    assert_same(arrived, turned)
    assert (arrived.flags.c_contiguous, arrived.flags.f_contiguous) == (
        turned.flags.c_contiguous,
        turned.flags.f_contiguous,
    )
    if x.size:
        large = [n for n in range(x.ndim) if turned.shape[n] > 1]
        assert [arrived.strides[n] for n in large] == [turned.strides[n] for n in large]


def test_arrays_that_are_parts_of_others_arrive_with_what_they_show():
    x = np.arange(24.0).reshape(2, 3, 4)
    for view in (x[::-1], x[:, ::2], x[..., -1], np.broadcast_to(x[0], (5, 3, 4)), x.astype(">f8"), x.T[::2]):
        assert np.array_equal(through(view), view)


@pytest.mark.parametrize("x", [object(), {1, 2}, b"bytes", np.array([None]), np.array(["a"]), 1j])
def test_what_cannot_be_sent_is_refused_on_the_way_out_or_in(x):
    with pytest.raises((TypeError, MessageError)):
        through(x)


CASES = [(name, backend) for name, exercise in CATALOGUE.items() for backend in exercise.backends]


@pytest.mark.parametrize(("name", "backend"), CASES, ids=[f"{name}-{backend}" for name, backend in CASES])
def test_every_case_of_every_exercise_arrives_as_it_was(name, backend):
    probe = Judge(11).probe(GradedCell("cell", "answer", 1.0, exercise=CATALOGUE[name], backend=backend))
    assert backend in probe.cases
    for case in probe.cases[backend]:
        body = pack({"case": case})[frames.LENGTH.size :]
        assert len(body) < frames.MAX_MESSAGE_BYTES
        arrived = unpack(body)["case"]
        assert arrived == json.loads(json.dumps(case))
        assert_same(decode(encode(decode(arrived))), decode(arrived))


@SLOW_HERE
@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused_by_the_one_error(body):
    with suppress(MessageError):
        assert isinstance(unpack(body), dict)


@SLOW_HERE
@given(JSON)
def test_any_json_is_a_message_or_refused(x):
    body = json.dumps(x).encode()
    if isinstance(x, dict):
        assert repr(unpack(body)) == repr(json.loads(body))
    else:
        with pytest.raises(MessageError):
            unpack(body)
    with suppress(MessageError):
        assert isinstance(array(x), np.ndarray)


PART = (
    JSON
    | st.sampled_from(sorted(ARRAY_DTYPES))
    | st.lists(st.integers(), max_size=20)
    | st.binary().map(base64.b64encode)
)


@SLOW_HERE
@given(st.lists(PART.map(lambda x: x.decode() if isinstance(x, bytes) else x), min_size=3, max_size=5))
def test_an_array_of_any_parts_is_sound_or_refused(parts):
    try:
        found = array({"array": parts})
    except MessageError:
        return
    assert found.dtype.str in ARRAY_DTYPES
    assert found.nbytes <= codec.MAX_ARRAY_BYTES


@SLOW_HERE
@given(ARRAYS, st.integers(0, 3), PART)
def test_an_array_with_one_part_exchanged_is_sound_or_refused(x, at, part):
    parts = encode(x)["array"]
    parts[at] = part.decode() if isinstance(part, bytes) else part
    with suppress(MessageError):
        assert array({"array": parts}).nbytes <= codec.MAX_ARRAY_BYTES


@pytest.mark.parametrize(
    "parts",
    [
        ["|O", [1], [0], "AAAAAAAAAAA="],
        [">f8", [1], [0], "AAAAAAAAAAA="],
        ["<f8", [1 << 40, 0], [0, 1], ""],
        ["<f8", [10**6], [0], "AAAA"],
        ["<f8", [1] * 17, list(range(17)), "AAAAAAAAAAA="],
        ["<f8", [2], [0], "AAAAAAAAAAA="],
        ["<f8", [-1], [0], ""],
        ["<f8", [True], [0], "AAAAAAAAAAA="],
        ["<f8", [1], ["0"], "AAAAAAAAAAA="],
        ["<f8", [1], [0], "AAAAAAAAAAA"],
        ["<f8", [1], [0], "AAAAAAAAAAA=\n"],
        ["<f8", [1], [0], None],
        ["<f8", [1], [0]],
    ],
    ids=lambda parts: str(parts)[:24],
)
def test_arrays_that_a_student_might_forge_are_refused(parts):
    with pytest.raises(MessageError):
        array({"array": parts})


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b"\xff", b"{" * 100, b"[" * 100_000),
        b'{"x": 1' + b"0" * 5000 + b"}",
        b'{"x":[' + b"0," * 40_000 + b"0]}",
    ],
    ids=["empty", "list", "null", "not UTF-8", "half", "deep", "digits", "many"],
)
def test_malformed_messages_are_refused_by_the_one_error(body):
    with pytest.raises(MessageError):
        unpack(body)


def test_a_value_of_no_kind_is_refused():
    for x in ({}, {"x": 1}, {"tuple": 3}, {"array": [1], "tuple": []}):
        with pytest.raises(MessageError):
            decode(x)
