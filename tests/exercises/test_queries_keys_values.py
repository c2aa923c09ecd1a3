"""What the notebook on queries, keys and values says holds: its numbers, its fault, its pointers into the book."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

import attnlib
from attnlib.checks import examine
from attnlib.checks.catalogue.queries_keys_values import QUESTIONS
from attnlib.checks.catalogue.queries_keys_values.attention_cost import attention_cost
from attnlib.checks.catalogue.queries_keys_values.attention_shapes import attention_shapes

FILE = Path(__file__).parents[2] / "exercises" / "03-queries-keys-values" / "queries-keys-values.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(FILE, as_version=4).cells}
BOOK = np.array([[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]])
PREDICTED = {"second_attends_most_to": 2, "divided_by_two": "flatter", "queries_doubled": "sharper"}


def run(cell: str, capsys, **namespace) -> dict:
    """Run a given cell after the example, and return what it defined and, as `said`, what it printed."""
    namespace = {"np": np, "softmax": attnlib.softmax, **namespace}
    exec(CELLS["example"], namespace)
    capsys.readouterr()
    with np.printoptions(precision=4, suppress=True):  # as the notebook's first cell says
        exec(CELLS[cell], namespace)
    return namespace | {"said": capsys.readouterr().out}


def stub(*arguments, **options):
    raise NotImplementedError


def test_every_exercise_and_every_question_of_the_assignment_is_asked():
    asked = set(re.findall(r'check(?:_choice)?\("([\w-]+)"', "\n".join(CELLS.values())))
    assert {question.name for question in QUESTIONS} <= asked
    assert {"scaled_dot", "scaled_dot_product_attention", "attention_shapes", "attention_cost"} <= asked


# Numbers ------------------------------------------------------------------------------------------------------------


def test_the_example_is_that_of_the_chapter(capsys):
    given = run("example", capsys)
    assert given["Q"].tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert given["S"].tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
    assert given["S"][1, 2] == given["Q"][1] @ given["K"][2] == 12
    output = attnlib.scaled_dot_product_attention(given["Q"], given["K"], given["V"])
    np.testing.assert_allclose(output, BOOK, atol=5e-5)
    assert str(BOOK.tolist()) in CELLS["book-run"]


def test_scores_by_hand():
    query, key = np.array([[1.0, 0, 2]]), np.array([[0.0, 1, 1], [4, 4, 0], [2, 3, 1]])
    np.testing.assert_allclose(attnlib.scaled_dot(query, key), [[1.1547, 2.3094, 2.3094]], atol=5e-5)
    np.testing.assert_allclose(attnlib.scaled_dot(query, key, scale=0.5), [[1, 2, 2]])


def test_the_first_word_by_hand(capsys):
    given = run("example", capsys)
    output, weights = attnlib.scaled_dot_product_attention(given["Q"][:1], given["K"], given["V"], return_weights=True)
    np.testing.assert_allclose(weights, [[0.1361, 0.4319, 0.4319]], atol=5e-5)
    by_hand = 0.1361 * np.array([1, 2, 3]) + 0.4319 * np.array([2, 8, 0]) + 0.4319 * np.array([2, 6, 3])
    np.testing.assert_allclose(by_hand, BOOK[0], atol=1e-3)
    np.testing.assert_allclose(output[0], BOOK[0], atol=5e-5)


def test_the_gradient_by_hand_is_the_row_of_weights(capsys):
    given = run("example", capsys)
    query, key, value = (torch.tensor(given[name], requires_grad=True) for name in "QKV")
    attnlib.scaled_dot_product_attention(query, key, value)[0, 0].backward()
    np.testing.assert_allclose(value.grad[:, 0], [0.1361, 0.4319, 0.4319], atol=5e-5)
    assert not value.grad[:, 1:].any()


def test_shapes_and_cost_by_hand():
    assert attention_shapes((2, 8), (5, 8), (5, 6)) == ((2, 5), (2, 6))
    query, key, value = np.ones((2, 8)), np.ones((5, 8)), np.ones((5, 6))
    output, weights = attnlib.scaled_dot_product_attention(query, key, value, return_weights=True)
    assert (weights.shape, output.shape) == ((2, 5), (2, 6))
    assert attention_cost(2, 5, 8, 6) == (80 + 60, 10)


# Questions ----------------------------------------------------------------------------------------------------------


def test_scores_spread_as_the_right_option_says():
    rng = np.random.default_rng(0)
    query, key = 2 * rng.normal(size=(2, 20_000, 64))
    assert (query * key).sum(-1).std() == pytest.approx(32, rel=0.03)
    assert np.sqrt(64 * 4 * 4) == 32


@pytest.mark.parametrize("w", [0.01, 0.5, 0.9])
def test_two_copies_of_a_key_get_what_the_right_option_says(w):
    scores = np.log([w, 1 - w])
    once, twice = attnlib.softmax(scores), attnlib.softmax(scores[[0, 0, 1]])
    assert once[0] == pytest.approx(w)
    assert twice[:2].sum() == pytest.approx(2 * w / (1 + w))
    assert w < twice[:2].sum() < 2 * w


def test_queries_and_keys_must_have_one_width_and_nothing_else_has_to_agree():
    query, key, value = np.ones((7, 4)), np.ones((9, 4)), np.ones((9, 5))
    assert attnlib.scaled_dot_product_attention(query, key, value).shape == (7, 5)
    with pytest.raises(ValueError, match="width"):
        attnlib.scaled_dot_product_attention(np.ones((7, 3)), key, value)


# Predictions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", PREDICTED)
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    text = run("predict-run", capsys, **PREDICTED | {missing: None})["said"]
    assert text.startswith("First fill in all three predictions")


def test_right_predictions_are_confirmed(capsys):
    said = run("predict-run", capsys, **PREDICTED)["said"]
    assert said.count("as you predicted") == 3
    assert "0.0903" in said, "the third key gets about 9 percent"
    in_other_words = {"second_attends_most_to": "2", "divided_by_two": "Flatter", "queries_doubled": "SHARPER"}
    assert run("predict-run", capsys, **in_other_words)["said"].count("as you predicted") == 3


def test_wrong_predictions_are_explained(capsys):
    wrong = {"second_attends_most_to": 1, "divided_by_two": "sharper", "queries_doubled": "twice"}
    said = run("predict-run", capsys, **wrong)["said"]
    assert said.count("you predicted") == 3
    assert "as you predicted" not in said


# The fault ----------------------------------------------------------------------------------------------------------


def test_the_colleague_s_function_agrees_with_the_book_and_is_wrong(capsys):
    given = run("bug", capsys)
    faulty, arrays = given["colleagues_attention"], [given[name] for name in "QKV"]
    np.testing.assert_allclose(faulty(*arrays, np.ones(3)), BOOK, atol=5e-5)
    report = examine("attention_with_counts", faulty, seed=0)
    assert (report.passed, report.score, report.mistake) == (False, 0.0, "scaled-by-keys")


def test_a_hundred_copies_show_the_fault_and_leave_the_right_function_as_it_is(capsys):
    given = run("bug", capsys)
    query, *others = (given[name] for name in "QKV")
    copies = [np.tile(x, (100, 1)) for x in others]
    once = np.ones(300)
    np.testing.assert_allclose(
        given["colleagues_attention"](query, *copies, once)[0], [1.6918, 5.4591, 1.9623], atol=5e-5
    )
    np.testing.assert_allclose(others[1].mean(0), [1.6667, 5.3333, 2], atol=5e-5)
    np.testing.assert_allclose(attnlib.scaled_dot_product_attention(query, *copies), BOOK, atol=5e-5)


# Given cells --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("book-run", ["scaled_dot_product_attention"]),
        ("cost-run", ["attention_cost"]),
        ("train", ["attention_torch"]),
        ("challenge-run", ["attention_with_mask"]),
    ],
)
def test_before_a_function_is_written_its_example_says_so(capsys, cell, names):
    said = run(cell, capsys, torch=torch, library_attention=None, **dict.fromkeys(names, stub))["said"]
    assert re.fullmatch(r"(Optional: w|W)rite .* first, then run this cell again\.\n", said)


def test_a_head_learns_the_party(capsys):
    said = run("train", capsys, torch=torch, attention_torch=attnlib.scaled_dot_product_attention)["said"]
    shares = [int(share) for share in re.findall(r"(\d+)% of the presents", said)]
    assert len(shares) == 4
    assert shares[0] < 50
    assert shares[-1] > 90


def cut_off(query, key, value, *, scale=None):
    return attnlib.scaled_dot_product_attention(query, key, value, scale=scale).detach()


def without_return(query, key, value, *, scale=None):
    attnlib.scaled_dot_product_attention(query, key, value, scale=scale)


@pytest.mark.parametrize("wrong", [cut_off, without_return])
def test_a_function_that_needs_mending_does_not_stop_the_party(capsys, wrong):
    said = run("train", capsys, torch=torch, attention_torch=wrong)["said"]
    assert "The check above does not pass yet" in said
    assert said.count("of the presents are right") == 4


def test_no_label_of_the_party_s_picture_is_cut_off(capsys):
    given = run("train", capsys, torch=torch, attention_torch=stub)
    figure = given["train_a_head"](attnlib.scaled_dot_product_attention, steps=0).figure
    figure.canvas.draw()
    (axes,) = figure.axes
    inside = axes.get_tightbbox()
    assert min(inside.x0, inside.y0) >= 0
    assert inside.x1 <= figure.bbox.width
    assert inside.y1 <= figure.bbox.height


def test_at_every_party_each_guest_gets_what_the_one_on_the_slip_has_brought(capsys):
    given = run("train", capsys, torch=torch, attention_torch=stub)
    x, tags, slips, wanted = given["parties"](50, np.random.default_rng(1))
    x = x.cpu().numpy()
    assert (tags != slips).all()
    for i, j in np.ndindex(tags.shape):
        (owner,) = np.flatnonzero(tags[i] == slips[i, j])
        assert x[i, owner, 16:].argmax() == wanted[i, j]
        assert x[i, j, :8].argmax() == tags[i, j]
        assert x[i, j, 8:16].argmax() == slips[i, j]


def test_the_library_answers_the_challenge(capsys):
    names = {"attention_with_mask": attnlib.scaled_dot_product_attention}
    said = run("challenge-run", capsys, library_attention=attnlib.scaled_dot_product_attention, **names)["said"]
    library, own = said.split("Your function:\n")
    assert library == f"The library:\n{own}"
