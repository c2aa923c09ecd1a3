"""What the notebook on self-attention says holds: its examples, its pointers into the book, its predictions."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

import attnlib
from attnlib.checks.catalogue import sections
from attnlib.checks.exercise import Section

FILE = Path(__file__).parents[2] / "exercises" / "02-self-attention" / "self-attention.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(FILE, as_version=4).cells}


def run_predictions(capsys, **namespace) -> str:
    exec(CELLS["predict-run"], {"np": np, "self_attention": attnlib.self_attention, **namespace})
    return capsys.readouterr().out


def test_every_section_to_reread_is_one_that_the_checks_know():
    headings = {section.heading for section in vars(sections).values() if isinstance(section, Section)}
    for name, source in CELLS.items():
        named = set(re.findall("“([^”]+)”", " ".join(source.split()))) if name.endswith("-task") else set()
        assert named <= headings


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
    assert said.startswith("Fill in a prediction first")


def test_right_predictions_are_confirmed(capsys):
    said = run_predictions(capsys, late_attends_most_to=1, after_swap="swapped", weights_are_symmetric=False)
    assert said.count("as you predicted") == 3


def test_wrong_predictions_are_explained(capsys):
    said = run_predictions(capsys, late_attends_most_to=0, after_swap="same", weights_are_symmetric=True)
    assert said.count("you predicted") == 3
    assert "as you predicted" not in said
    assert "three times as long" in said
