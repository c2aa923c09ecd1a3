"""From logits to a distribution: worked by hand, against transformers' processors of logits, and at the extremes."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import B, Numpy, S, T, assert_error_names, dtype_name, examples, sizes, tenths
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

import attnlib.sampling
from attnlib import sampling_probabilities, softmax
from attnlib.sampling import draw

P = np.array([0.15, 0.4, 0.05, 0.3, 0.1])  # whose order is 1, 3, 0, 4, 2
Z = np.log(P)


def probabilities(backend, logits, **settings):
    return backend.numpy(sampling_probabilities(backend.array(logits), **settings))


def share(*kept):
    """The probabilities of these tokens of P, scaled to sum to 1."""
    p = np.zeros(len(P))
    p[list(kept)] = P[list(kept)]
    return p / p.sum()


# Worked by hand

BY_HAND = [
    ({}, P),
    ({"temperature": 0.5}, P**2 / (P**2).sum()),
    ({"temperature": 2}, P**0.5 / (P**0.5).sum()),
    ({"temperature": 0}, share(1)),
    ({"top_k": 1}, share(1)),
    ({"top_k": 3}, share(0, 1, 3)),
    ({"top_k": 5}, P),
    ({"top_k": 999}, P),
    ({"top_p": 0.0}, share(1)),
    ({"top_p": 0.39}, share(1)),
    ({"top_p": 0.41}, share(1, 3)),
    ({"top_p": 0.84}, share(0, 1, 3)),
    ({"top_p": 1.0}, P),
    ({"min_p": 0.0}, P),
    ({"min_p": 0.3}, share(0, 1, 3)),
    ({"min_p": 1.0}, share(1)),
    ({"top_k": 3, "top_p": 0.8}, share(1, 3)),  # 0.7 / 0.85 is more than 0.8: of what top_k keeps
    ({"top_p": 0.8}, share(0, 1, 3)),
    ({"top_p": 0.84, "min_p": 0.5}, share(1, 3)),
]


@pytest.mark.parametrize(("settings", "expected"), BY_HAND, ids=[str(one[0]) for one in BY_HAND])
def test_worked_by_hand(backend, settings, expected):
    assert_allclose(probabilities(backend, Z, **settings), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"temperature": 0}, [0, 1, 0, 0, 0]),  # the first of several
        ({"top_k": 2}, [0, 1 / 3, 1 / 3, 1 / 3, 0]),  # all that are as probable as the last one kept
        ({"top_p": 0.5}, [0, 0.5, 0.5, 0, 0]),  # the lower numbers first
        ({"min_p": 1.0}, [0, 1 / 3, 1 / 3, 1 / 3, 0]),
    ],
    ids=str,
)
def test_ties_worked_by_hand(backend, settings, expected):
    assert_allclose(probabilities(backend, np.log([0.05, 0.3, 0.3, 0.3, 0.05]), **settings), expected)


def test_each_distribution_of_a_batch_is_its_own(backend, rng):
    logits, settings = 3 * rng.standard_normal((B, T, S)), {"temperature": 0.8, "top_k": 5, "top_p": 0.9, "min_p": 0.1}
    together = probabilities(backend, logits, **settings)
    for index in np.ndindex(B, T):
        assert_allclose(together[index], probabilities(backend, logits[index], **settings), rtol=1e-12)


# Another library

MANY = 101
WARPERS = [
    ({"top_k": 7}, lambda: [TopKLogitsWarper(7)]),
    ({"top_p": 0.8}, lambda: [TopPLogitsWarper(0.8)]),
    ({"min_p": 0.07}, lambda: [MinPLogitsWarper(0.07)]),
    ({"temperature": 0.6}, lambda: [TemperatureLogitsWarper(0.6)]),
    (
        {"temperature": 1.7, "top_k": 40, "top_p": 0.9, "min_p": 0.1},
        lambda: [TemperatureLogitsWarper(1.7), TopKLogitsWarper(40), TopPLogitsWarper(0.9), MinPLogitsWarper(0.1)],
    ),
]


@pytest.mark.parametrize(("settings", "warpers"), WARPERS, ids=[str(one[0]) for one in WARPERS])
def test_they_are_those_of_transformers(backend, rng, settings, warpers):
    logits = 3 * rng.standard_normal((29, MANY))
    scores = torch.tensor(logits)
    for warper in warpers():
        scores = warper(None, scores)
    assert_allclose(probabilities(backend, logits, **settings), scores.softmax(-1), rtol=1e-9)


# Properties


@examples
@given(tenths(T, S), st.integers(1, S), st.sampled_from([0.1, 0.5, 0.9, 0.999]))
def test_each_rule_keeps_the_fewest_that_it_may(backend, logits, k, top_p):
    p = probabilities(backend, logits)
    kept = probabilities(backend, logits, top_k=k) > 0
    assert (kept.sum(-1) >= k).all()
    assert all((row[~keep] < row[keep].min()).all() for row, keep in zip(p, kept, strict=True))
    nucleus = probabilities(backend, logits, top_p=top_p) > 0
    for row, keep in zip(p, nucleus, strict=True):
        assert row[keep].sum() > top_p - 1e-9
        assert row[keep].sum() - row[keep].min() < top_p + 1e-9  # without the last one, it is not enough


@examples
@given(tenths(T, S), st.sampled_from([0.3, 1.0, 2.0]), st.integers(-40, 40))
def test_a_constant_added_to_all_logits_changes_nothing(backend, logits, temperature, constant):
    settings = {"temperature": temperature, "min_p": 0.01}
    one, other = (probabilities(backend, z, **settings) for z in (logits, logits + 64.0 * constant))
    assert_allclose(one, other, rtol=1e-9)


def test_without_settings_it_is_softmax(typed, rng):
    backend, dtype = typed
    logits = backend.array(rng.standard_normal((T, S)), dtype)
    ours, theirs = sampling_probabilities(logits), softmax(logits)
    assert dtype_name(ours) == dtype
    assert_allclose(
        backend.numpy(ours), backend.numpy(theirs), rtol={"float16": 1e-3, "bfloat16": 1e-2}.get(dtype, 1e-6)
    )


def test_top_p_1_keeps_tokens_that_are_smaller_than_rounding_errors(backend):
    p = probabilities(backend, [0.0, 0.1, 0.2, *[-39.0] * 4], top_p=1.0)  # exp(-39) is less than 2^-53
    assert (p > 0).all()


# Extremes


@pytest.mark.parametrize("widest", ["float32", "float64"])
def test_no_temperature_overflows(monkeypatch, typed, widest):
    backend, dtype = typed
    monkeypatch.setattr(attnlib.sampling, "widest_float", lambda xp, device: getattr(xp, widest))  # as on the device
    z = [1.0, 3000.0, -math.inf, 3000.0, -20000.0]
    cold, hot = [0, 0.5, 0, 0.5, 0], [0.25, 0.25, 0, 0.25, 0.25]
    for temperature in (5e-324, 1e-300, 1e-46, 1e-5, 1e5, 1e46, 1e300, 1.7e308):
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            p = backend.numpy(sampling_probabilities(backend.array(z, dtype), temperature=temperature))
        assert_allclose(p, cold if temperature < 1 else hot, atol=0.06)


def test_an_excluded_token_stays_excluded(backend):
    for settings in ({}, {"top_k": 3}, {"top_p": 1.0}, {"min_p": 0.0}, {"temperature": 1e300}):
        assert_array_equal(probabilities(backend, [1.0, -math.inf, 2.0], **settings)[1], 0.0)


def test_where_all_tokens_are_excluded_the_probabilities_are_0(backend):
    for settings in ({}, {"top_k": 1}, {"top_p": 0.5}, {"min_p": 0.5}):
        assert_array_equal(probabilities(backend, [[-math.inf] * 3, [0.0] * 3], **settings)[0], 0.0)


def test_a_vocabulary_of_one_token(backend):
    for settings in ({}, {"temperature": 0}, {"top_k": 1}, {"top_p": 0.0}, {"min_p": 1.0}):
        assert_array_equal(probabilities(backend, [[7.0], [-3.0]], **settings), 1.0)


ERRORS = {
    "a number": (lambda z: sampling_probabilities(z()), ValueError, [sizes(), r"\(\.\.\., V\)"]),
    "no tokens": (lambda z: sampling_probabilities(z(T, 0)), ValueError, [sizes(T, 0)]),
    "integers": (lambda z: sampling_probabilities(z(S, dtype="int64")), TypeError, ["int64"]),
    "a negative temperature": (
        lambda z: sampling_probabilities(z(S), temperature=-0.5), ValueError, ["temperature is -0.5"],
    ),
    "a temperature of nan": (
        lambda z: sampling_probabilities(z(S), temperature=math.nan), ValueError, ["temperature is nan"],
    ),
    "an infinite temperature": (
        lambda z: sampling_probabilities(z(S), temperature=math.inf), ValueError, ["temperature is inf"],
    ),
    "a temperature in words": (
        lambda z: sampling_probabilities(z(S), temperature="hot"), TypeError, ["temperature is 'hot'"],
    ),
    "top_k of 0": (lambda z: sampling_probabilities(z(S), top_k=0), ValueError, ["top_k is 0", "at least 1"]),
    "half a token": (lambda z: sampling_probabilities(z(S), top_k=0.5), TypeError, ["top_k is 0.5"]),
    "top_p above 1": (lambda z: sampling_probabilities(z(S), top_p=90), ValueError, ["top_p is 90", "0 to 1"]),
    "a negative min_p": (lambda z: sampling_probabilities(z(S), min_p=-0.1), ValueError, ["min_p is -0.1"]),
    "min_p of nan": (lambda z: sampling_probabilities(z(S), min_p=math.nan), ValueError, ["min_p is nan"]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


# Drawing


def test_tokens_are_drawn_with_their_probabilities():
    rng, count = np.random.default_rng(0), 20000
    counts = np.bincount([draw(P, rng) for _ in range(count)], minlength=len(P))
    chi_square = ((counts - count * P) ** 2 / (count * P)).sum()
    assert chi_square < 18.47  # exceeded with probability 0.001 by a chi-square variable of 4 degrees of freedom


class Fixed:
    """A generator of one number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


@pytest.mark.parametrize(("number", "token"), [(0.0, 1), (0.249, 1), (0.25, 3), (0.99, 3), (1 - 2**-53, 3)], ids=str)
def test_a_token_of_probability_0_is_never_drawn(number, token):
    for scale in (1.0, 1 - 2**-53, 1 + 2**-52, 0.3, 7.0):
        assert draw(scale * np.array([0.0, 0.25, 0.0, 0.75, 0.0]), Fixed(number)) == token


def test_numpy_s_results_are_numpy_s_own(rng):
    assert type(sampling_probabilities(rng.standard_normal(S), temperature=0)) is np.ndarray
    assert Numpy().numpy(sampling_probabilities(rng.standard_normal(S), top_k=2)).sum() == pytest.approx(1)
