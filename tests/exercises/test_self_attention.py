"""What the notebook on self-attention says holds: its examples, its pointers into the book, its predictions."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

import attnlib
from attnlib.checks import examine

FILE = Path(__file__).parents[2] / "exercises" / "02-self-attention" / "self-attention.ipynb"
SIMILARITIES = (attnlib.dot, attnlib.cosine, attnlib.gaussian)
CELLS = {cell.id: cell.source for cell in nbformat.read(FILE, as_version=4).cells}


def run_predictions(capsys, **namespace) -> str:
    exec(CELLS["predict-run"], {"np": np, "self_attention": attnlib.self_attention, **namespace})
    return capsys.readouterr().out


def test_softmax_by_hand():
    scores = np.array([[0, np.log(3)], [1000, 1000 + np.log(3)]])
    np.testing.assert_allclose(attnlib.softmax(scores), [[1 / 4, 3 / 4]] * 2)


def test_dot_by_hand():
    queries, keys = np.array([[1.0, 2], [0, 1]]), np.array([[3.0, 1], [1, 0], [-1, 2]])
    np.testing.assert_array_equal(attnlib.dot(queries, keys), [[5, 1, 3], [1, 0, 2]])


def test_cosine_by_hand():
    keys = np.array([[6.0, 8], [4, -3], [-3, -4], [0, 0]])
    np.testing.assert_allclose(attnlib.cosine(np.array([[3.0, 4]]), keys), [[1, 0, -1, 0]], atol=1e-15)


def test_attention_by_hand():
    keys, values = np.array([[np.log(3) / 2] * 4, [0.0] * 4]), np.array([[4.0, 0], [0, 8]])
    context, weights = attnlib.attention(np.ones((1, 4)), keys, values)
    np.testing.assert_allclose(weights, [[3 / 4, 1 / 4]])
    np.testing.assert_allclose(context, [[3, 2]])


def test_self_attention_by_hand():
    context, _ = attnlib.self_attention(np.eye(2))
    np.testing.assert_allclose(context[0], [0.67, 0.33], atol=0.005)


@pytest.mark.parametrize("missing", ["late_attends_most_to", "after_swap", "weights_are_symmetric"])
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    predictions = {"late_attends_most_to": 1, "after_swap": "swapped", "weights_are_symmetric": False}
    said = run_predictions(capsys, **predictions | {missing: None})
    assert said.startswith("First fill in all three predictions")


def test_right_predictions_are_confirmed(capsys):
    said = run_predictions(capsys, late_attends_most_to=1, after_swap=" Swapped", weights_are_symmetric=False)
    assert said.count("as you predicted") == 3


def test_wrong_predictions_are_explained(capsys):
    said = run_predictions(capsys, late_attends_most_to=0, after_swap="same", weights_are_symmetric=True)
    assert said.count("you predicted") == 3
    assert "as you predicted" not in said
    assert "three times as long" in said


def run(cell: str, capsys, **namespace) -> str:
    exec(CELLS[cell], {"np": np, **namespace})
    return capsys.readouterr().out


def test_the_first_example_comes_to_four(capsys):
    weights = attnlib.softmax(np.log([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(weights, [1 / 8, 2 / 8, 5 / 8])
    np.testing.assert_allclose(weights @ [16.0, 8.0, 0.0], 4.0)
    said = run("example", capsys)
    assert "sums of 'positive' and 'share': 8.000 and 1.000" in said
    assert "the weighted average: 4.000" in said


def test_gaussian_by_hand():
    query, key = np.array([[2.0, 1.0]]), np.array([[5.0, 5.0]])
    np.testing.assert_allclose(attnlib.gaussian(query, key), [[-12.5]])
    np.testing.assert_allclose(attnlib.gaussian(query, key, bandwidth=5.0), [[-0.5]])


def test_the_bug_shows_what_was_seen_and_nothing_at_the_origin(capsys):
    said = run("mended-given", capsys)
    assert "[[-12.5 -50. ]]" in said
    for hour, best in ((0, 0), (12, 6), (20, 10)):
        assert f"hour {hour:2}: the largest score goes to hour {best}\n" in said


def test_the_bug_earns_nothing_and_is_named():
    namespace = {"np": np}
    exec(CELLS["mended-given"], namespace)
    report = examine("gaussian_without_differences", namespace["gaussian_of_a_colleague"], seed=0)
    assert (report.score, report.mistake) == (0, "single-mixed-term")


def test_shift_or_stretch():
    scores = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(attnlib.softmax(scores + 5), attnlib.softmax(scores))
    assert attnlib.softmax(3 * scores)[2] > attnlib.softmax(scores)[2]


def test_only_the_gaussian_does_not_see_where_the_origin_is():
    rng = np.random.default_rng(0)
    query, key, c = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=4)
    same = {f.__name__: np.allclose(f(query + c, key + c), f(query, key)) for f in SIMILARITIES}
    assert same == {"dot": False, "cosine": False, "gaussian": True}


def test_without_the_root_wide_vectors_give_nearly_all_to_one_key():
    rng = np.random.default_rng(0)
    largest = {}
    for width in (16, 1024):
        scores = attnlib.dot(rng.normal(size=(200, 1, width)), rng.normal(size=(200, 10, width)))
        weights = attnlib.softmax(scores)
        np.testing.assert_allclose(scores.std(), width**0.5, rtol=0.1)
        np.testing.assert_allclose(weights.sum(-1), 1)
        largest[width] = np.median(weights.max(-1))
    assert largest[16] < largest[1024]
    assert largest[1024] > 0.99


@pytest.mark.parametrize("cell", ["predict-run", "smooth-run"])
def test_what_uses_a_function_that_is_still_a_stub_says_so(cell, capsys):
    def stub(*arguments):
        raise NotImplementedError

    predictions = {"late_attends_most_to": 1, "after_swap": "swapped", "weights_are_symmetric": False}
    said = run(cell, capsys, self_attention=stub, smooth=stub, **predictions)
    assert re.fullmatch(r"First write \w+ and the functions it uses; then run this cell again\.\n", said)
