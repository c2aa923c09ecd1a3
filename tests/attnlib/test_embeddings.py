"""Word vectors: a lookup that says what is missing, and counting that agrees with counting by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.linalg import sqrtm

from attnlib.embeddings import KeyedVectors, ppmi_vectors, small_town

TOY = [s.split() for s in ("a b c", "a b", "b c d", "d a", "c a b d", "d d c")]


@pytest.fixture(scope="module")
def town():
    return ppmi_vectors(small_town())


def ppmi_by_hand(sentences, window, smoothing):
    """PPMI from the definition, pair by pair, with dictionaries."""
    pairs = Counter()
    for sentence in sentences:
        for i, a in enumerate(sentence):
            for j, b in enumerate(sentence):
                if i != j and abs(i - j) <= window:
                    pairs[a, b] += 1
    words = sorted({a for a, _ in pairs}, key=lambda w: (-sum(s.count(w) for s in sentences), w))
    total = sum(pairs.values())
    row = {a: sum(n for (x, _), n in pairs.items() if x == a) for a in words}
    smoothed = {b: sum(n for (_, y), n in pairs.items() if y == b) ** smoothing for b in words}
    table = np.zeros((len(words), len(words)))
    for (a, b), n in pairs.items():
        chance = row[a] / total * smoothed[b] / sum(smoothed.values())
        table[words.index(a), words.index(b)] = max(0.0, math.log(n / total / chance))
    return words, table


@pytest.mark.parametrize("window", [1, 2, 8])
def test_vectors_of_full_width_have_the_dot_products_of_the_table_counted_by_hand(window):
    words, table = ppmi_by_hand(TOY, window, 0.75)
    vectors = ppmi_vectors(TOY, len(words), window=window, min_count=1)
    assert vectors.words == words
    wanted = np.real(sqrtm(table @ table.T))  # U S U^T, where table = U S V^T
    got = vectors.vectors @ vectors.vectors.T
    scale = np.trace(wanted) / np.trace(got)  # the one number that all vectors are divided by
    np.testing.assert_allclose(scale * got, wanted, atol=1e-6)


def test_components_have_mean_square_1(town):
    assert np.mean(town.vectors**2) == pytest.approx(1)


def test_the_same_text_gives_the_same_similarities(town):
    again = ppmi_vectors(sentence for sentence in small_town())
    np.testing.assert_array_equal(again.vectors @ again.vectors.T, town.vectors @ town.vectors.T)


def test_station_goes_with_what_is_found_at_a_station(town):
    near = {word for word, _ in town.most_similar("station", topn=6)}
    assert near & {"platform", "passengers", "railway"}


def test_rare_words_are_left_out(town):
    counts = Counter(word for sentence in small_town() for word in sentence)
    assert set(town.words) == {word for word, count in counts.items() if count >= 3}


def test_a_text_too_small_for_the_width_is_refused():
    with pytest.raises(ValueError, match="only 4 words occur 1 times or more: too few for vectors of width 5"):
        ppmi_vectors(TOY, 5, min_count=1)


def test_a_list_of_words_gives_rows_in_its_order():
    kv = KeyedVectors(["x", "y", "z"], np.eye(3))
    np.testing.assert_array_equal(kv[["z", "x", "z"]], np.eye(3)[[2, 0, 2]])
    assert len(kv) == 3


def test_an_unknown_word_is_named():
    with pytest.raises(KeyError, match="'bird' is not among the 1 words"):
        KeyedVectors(["x"], np.eye(1))["bird"]


@pytest.mark.parametrize(
    ("words", "vectors", "said"),
    [
        (["x", "y"], np.eye(3), r"2 words need vectors of shape \(2, D\), got \(3, 3\)"),
        (["x", "x"], np.eye(2), "'x' comes more than once"),
    ],
)
def test_words_and_vectors_that_do_not_fit_are_refused(words, vectors, said):
    with pytest.raises(ValueError, match=said):
        KeyedVectors(words, vectors)


def test_the_most_similar_are_ordered_by_cosine_and_leave_out_the_word_itself():
    kv = KeyedVectors(["a", "near", "far", "against"], np.array([[1, 0], [9, 1], [1, 1], [-1, 0.0]]))
    assert [word for word, _ in kv.most_similar("a")] == ["near", "far", "against"]
    assert kv.most_similar("a", topn=1)[0][1] == pytest.approx(9 / math.sqrt(82))


def test_a_vector_of_zeros_has_cosine_zero_with_every_word():
    kv = KeyedVectors(["a", "b", "zero"], np.array([[1.0, 0], [0.6, 0.8], [0, 0]]))
    assert kv.most_similar("a") == [("b", pytest.approx(0.6)), ("zero", 0.0)]
    assert [cosine for _, cosine in kv.most_similar("zero")] == [0, 0]


def test_words_with_the_same_neighbours_have_the_same_direction():
    # x and y stand beside p and q alike; z stands beside r alone.
    kv = ppmi_vectors([["p", "x", "q"], ["p", "y", "q"], ["r", "z", "r"]] * 3, width=4, window=1)
    assert kv.most_similar("x", topn=1) == [("y", pytest.approx(1))]
    assert dict(kv.most_similar("x"))["z"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("sentences", "options", "said"),
    [
        (TOY, {"width": 0}, "width is 0"),
        (TOY, {"window": 0}, "window is 0"),
        ([["a"], ["b"]], {}, "nothing to count"),
    ],
)
def test_what_cannot_be_counted_is_refused(sentences, options, said):
    with pytest.raises(ValueError, match=said):
        ppmi_vectors(sentences, **{"width": 2, "min_count": 1} | options)
