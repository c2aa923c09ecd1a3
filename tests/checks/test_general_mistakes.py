"""A mistake that can occur in every exercise is recognised in answers that make it, and only in those."""

import numpy as np
import pytest

import attnlib
from attnlib.checks import examine


def random(query, key, value):
    context, weights = attnlib.attention(query, key, value)
    return context + np.random.default_rng().normal(size=context.shape), weights


class Remembers:
    """A function that keeps what it was asked first."""

    def __init__(self):
        self.first = None

    def __call__(self, query, key):
        scores = query @ np.swapaxes(key, -1, -2)
        if self.first is not None and self.first.shape == scores.shape:
            scores = scores + self.first
        self.first = scores
        return scores


def first_for_all(query, key, value):
    context, weights = attnlib.attention(query, key, value)
    if context.ndim > 2:
        context[1:] = context[:1]
    return context, weights


def rows_wrong_from_the_second_on(x):
    context, weights = attnlib.self_attention(x)
    context[..., 1:, :] += 1
    return context, weights


def last_row_wrong(query, key):
    scores = query @ np.swapaxes(key, -1, -2)
    if scores.shape[-2] > 2:
        scores[..., -1, :] += 7
    return scores


def as_many_columns_as_queries(query, key):
    scores = query @ np.swapaxes(key, -1, -2)
    return np.resize(scores, (*scores.shape[:-1], query.shape[-2]))


def last_query_for_all(query, key, weight):
    rows = query.shape[-2]
    return attnlib.general(query[..., [-1] * rows, :], key, weight)


def rounded_weights(query, key, value):
    weights = attnlib.attention(query, key, value)[1].round(2)
    return weights @ value, weights


def with_columns_to_spare(query, key):
    scores = query @ np.swapaxes(key, -1, -2)
    return np.concatenate([scores, np.zeros((*scores.shape[:-1], 16))], axis=-1)


def at_most_512_rows(T, D, *, base=10000.0):
    return attnlib.sinusoidal_positions(min(T, 512), D, base=base)


def in_32_bits(T, S, D, D_v):
    product = np.array(T * S * (D + D_v), np.int64).astype(np.int32)
    return product, np.array(T * S, np.int64).astype(np.int32)


def first_64_keys(query, key, value, scale=None):
    return attnlib.scaled_dot_product_attention(query, key[..., :64, :], value[..., :64, :], scale=scale)


@pytest.mark.parametrize(
    ("exercise", "implementation", "mistake"),
    [
        ("attention", random, "differs-between-calls"),
        ("dot", Remembers(), "differs-between-calls"),
        ("attention", first_for_all, "first-of-a-batch"),
        ("self_attention", rows_wrong_from_the_second_on, "first-row"),
        ("dot", last_row_wrong, "last-row"),
        ("dot", as_many_columns_as_queries, "size-of-another"),
        ("dot", lambda query, key: 0 * (query @ np.swapaxes(key, -1, -2)), "zeros"),
        ("general", last_query_for_all, "last-row-alone"),
        ("attention", rounded_weights, "inexact"),
        ("scaled_dot_product_attention", first_64_keys, "many-rows"),
        ("sinusoidal_positions", at_most_512_rows, "end-missing"),
        ("attention_cost", in_32_bits, "ends-at-32-bits"),
        ("dot", lambda query, key: (query @ np.swapaxes(key, -1, -2))[None], "unsqueezed"),
        ("dot", lambda query, key: (query @ np.swapaxes(key, -1, -2)).ravel(), "flattened"),
        ("dot", with_columns_to_spare, "more-after-the-end"),
        ("dot", lambda query, key: (query @ np.swapaxes(key, -1, -2))[..., -2:], "beginning-missing"),
    ],
)
def test_a_general_mistake_is_recognised(exercise, implementation, mistake):
    for seed in range(3):
        report = examine(exercise, implementation, seed=seed)
        assert report.mistake == mistake, report.message
        assert report.score < 1


def test_a_position_that_changes_nothing_does_not_make_a_first_row():
    """Position 0 is not rotated, whatever the angles: that it is right tells nothing."""

    def twice_as_fast(x, cos, sin, interleaved=False):
        return attnlib.apply_rope(x, cos * 2, sin * 2, interleaved=interleaved)

    report = examine("apply_rope", twice_as_fast, seed=0)
    assert not report.passed
    assert report.mistake != "first-row"


def test_zeros_in_the_first_case_alone_are_not_called_nothing_but_zeros():
    """In the first case v sums to 0, so that whatever is multiplied by its sum is 0 there."""

    def cancelled(query, key, w_query, w_key, v):
        return attnlib.additive(query, key, w_query, w_key, v) * v.sum()

    report = examine("additive", cancelled, seed=0)
    assert not report.passed
    assert report.mistake is None


def test_a_gradient_alone_says_nothing_of_dimensions():
    def exponentials_changed_in_place(query, key, value):
        scores = query @ key.mT * query.shape[-1] ** -0.5
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights /= weights.sum(-1, keepdim=True)
        return weights @ value, weights

    assert examine("attention", exponentials_changed_in_place, backend="torch").mistake == "written-in-place"
