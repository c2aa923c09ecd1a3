"""The n-gram model: numbers worked by hand, a plain implementation with dictionaries, and sums to 1."""

from collections import Counter

import numpy as np
import pytest

from training.ngram import NGramModel

RNG = np.random.default_rng(3)
KNOWN = bytes(RNG.choice(list(b"abcde"), 300, p=[0.5, 0.2, 0.15, 0.1, 0.05]))
TEXT = bytes(RNG.choice(list(b"abcdefg"), 70))


def test_probabilities_are_those_worked_by_hand():
    """After "aab", with ^ for the beginning: the bigrams ^a, aa and ab once each, so a follows 2 bytes and b follows 1.

    Order 1 has one string with count 1 and one with count 2, so its discounts are 1/3 and 1, which frees 4/3. In order
    2, three strings have count 1, so the discount is 1 - 2 * 0.6 / 3 = 0.6.
    """
    a = (2 - 1 + 4 / 3 / 256) / 3
    b = (1 - 1 / 3 + 4 / 3 / 256) / 3
    model = NGramModel(b"aab", 2)
    expected = [1 - 0.6 + 0.6 * a, (1 - 0.6 + 1.2 * b) / 2, b, a]  # a after ^, b after a, b after b, a after b
    np.testing.assert_allclose(model.probabilities(b"abba"), expected, rtol=1e-12)


def test_a_model_that_learns_on_counts_what_it_has_read():
    """The second b of "bb" follows a b, which nothing has followed yet; by now, b follows 2 bytes of 4."""
    b = (1 - 1 / 3 + 4 / 3 / 256) / 3
    found = NGramModel(b"aab", 2).probabilities(b"bb", adaptive=True)
    np.testing.assert_allclose(found, [0.6 * b, (2 - 1 + 2 / 256) / 4], rtol=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("order", [1, 2, 5])
def test_probabilities_sum_to_one(order, adaptive):
    model = NGramModel(KNOWN, order)
    for context in (b"", KNOWN[50:60] + TEXT[:3]):
        total = sum(model.probabilities(context + bytes([one]), adaptive=adaptive)[-1] for one in range(256))
        assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("order", [1, 3, 4])
def test_probabilities_are_those_of_a_plain_implementation(order, adaptive):
    model = NGramModel(KNOWN, order)
    discounts = [one.discounts for one in model.orders]
    expected = plain_probabilities(discounts, KNOWN, TEXT, adaptive)
    np.testing.assert_allclose(model.probabilities(TEXT, adaptive=adaptive), expected, rtol=1e-10)


def plain_probabilities(discounts, known, text, adaptive):
    """Count strings one after the other, each from the longest to the shortest; "^" marks where a text begins."""
    order, counts = len(discounts), [Counter() for _ in discounts]

    def learn(string):
        for n in reversed(range(order)):
            counts[n][string[-n - 1 :]] += 1
            if counts[n][string[-n - 1 :]] > 1:
                break  # a lower order counts only how many different bytes come before a string

    def probability(string, n):
        if n < 0:
            return 1 / 256
        context, last, lower = string[-n - 1 : -1], string[-1], probability(string, n - 1)
        following = {one[-1]: count for one, count in counts[n].items() if one[:-1] == context}
        freed = sum(discounts[n][min(count, 3)] for count in following.values())
        count = following.get(last, 0)
        discounted = count - discounts[n][min(count, 3)]
        return (discounted + freed * lower) / sum(following.values()) if following else lower

    for string in strings(known, order):
        learn(string)
    found = []
    for string in strings(text, order):
        found.append(probability(string, order - 1))
        if adaptive:
            learn(string)
    return found


def strings(text, order):
    padded = ("^",) * (order - 1) + tuple(text)
    return [padded[start : start + order] for start in range(len(text))]


def test_more_bytes_of_context_predict_better_and_learning_on_too():
    text = KNOWN[20:90]  # it has been learned from
    bits = [-np.log2(NGramModel(KNOWN, order).probabilities(text)).sum() for order in (1, 3, 6)]
    assert bits == sorted(bits, reverse=True)
    model, repeated = NGramModel(KNOWN, 6), b"xyzzy" * 20
    static, adaptive = (-np.log2(model.probabilities(repeated, adaptive=on)).sum() for on in (False, True))
    assert adaptive < static / 3
