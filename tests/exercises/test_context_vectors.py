"""What the notebook on context vectors says holds: its examples, its bug, its translator, its headings."""

import datetime
import math
import re

import numpy as np
import pytest
import torch
from notebook_cells import cells_of, run_cells

import attnlib
from attnlib.checks import examine

pytestmark = pytest.mark.slow

CELLS, SOLVED = (cells_of(folder, "01-context-vectors/context-vectors") for folder in ("exercises", "solutions"))
HUMAN, ISO = "Sat, 27 Nov 1999", "1999-11-27"


def run(*names, **namespace):
    """Run cells, those of the solutions, and return what they define."""
    given = {"np": np, "torch": torch, "attnlib": attnlib, "math": math}
    return run_cells(SOLVED, names, namespace | given)


@pytest.fixture(scope="module")
def trained():
    """The notebook's translator, trained once, in few steps: the namespace of its cells."""
    threads = torch.get_num_threads()
    cells = run("bahdanau-torch", "dates", "translator", "training")
    share_right, cells["share_right"] = cells["share_right"], lambda model: 0.0  # not measured while training
    cells["model"] = cells["train"](cells["bahdanau_torch"], seconds=200)
    cells["share_right"] = share_right
    yield cells
    torch.set_num_threads(threads)


# What is named exists --------------------------------------------------------------------------------------------


def test_two_tasks_say_what_to_reread():
    assert all("Reread [“" in CELLS[name] for name in ("additive-task", "luong-task"))


# Task 1 ----------------------------------------------------------------------------------------------------------


def test_the_neuron_does_what_the_chapter_says():
    neuron = run("neuron")["neuron"]
    assert [round(neuron([1, 0, 0][:n], u=0.9), 3) for n in (1, 2, 3)] == [0.762, 0.595, 0.490]


def test_what_is_said_of_the_three_settings_holds():
    cells = run("neuron", "predict", "predict-run")
    neuron, distance = cells["neuron"], cells["distance"]
    assert round(neuron([1], 0.9) - neuron([-1], 0.9), 2) == 1.52
    assert round(distance(0.0, 0.9), 2) == 0.11
    assert distance(0.5, 0.9) < 1e-6
    settled = neuron([1] + 20 * [0.5], 0.9)
    assert round(0.9 * (1 - settled**2), 2) == 0.24
    assert [round(neuron([first] + 20 * [0.0], 1.5), 2) for first in (1, -1)] == [0.86, -0.86]
    assert neuron([1] + 20 * [0.0], 1.5) == pytest.approx(neuron([2] + 20 * [0.0], 1.5), abs=1e-6)


@pytest.mark.parametrize("missing", ["quiet", "busy", "strong"])
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    run("neuron", "predict-run", **{"quiet": "gone", "busy": "gone", "strong": "gone"} | {missing: None})
    assert "First fill in all three predictions" in capsys.readouterr().out


def test_predictions_are_confirmed_or_explained(capsys):
    run("neuron", "predict", "predict-run")
    assert capsys.readouterr().out.count("as you predicted") == 3
    run("neuron", "predict-run", quiet="kept", busy="fading", strong="gone")
    said = capsys.readouterr().out
    assert said.count("you predicted") == 3
    assert "as you predicted" not in said


def test_capitals_do_not_make_a_prediction_wrong(capsys):
    run("neuron", "predict-run", quiet="Fading", busy="GONE", strong=" kept")
    assert capsys.readouterr().out.count("as you predicted") == 3


# By hand ---------------------------------------------------------------------------------------------------------


def test_rnn_cell_by_hand():
    x, h = np.array([2.0, 1.0]), np.array([0.5])
    w_ih, w_hh, b_ih, b_hh = np.array([[1.0, -1.0]]), np.array([[-2.0]]), np.array([0.25]), np.array([-0.25])
    assert (x @ w_ih.T + b_ih, h @ w_hh.T + b_hh) == (1.25, -1.25)
    assert attnlib.rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh) == 0


def test_additive_by_hand():
    query, keys = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    scores = attnlib.additive(query, keys, np.eye(2), np.eye(2), np.array([3.0, 1.0]))
    np.testing.assert_allclose(scores, [[3.046, 0]], atol=5e-4)


def test_general_by_hand():
    query, key, weight = np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(query @ weight, [[0, 1]])
    np.testing.assert_array_equal(key @ weight, [[0, 3]])
    assert attnlib.general(query, key, weight) == 1
    assert run("general-found")["general_as_found"](query, key, weight) == 6


MEMORY = np.array([[0.0, 2.0], [4.0, 0.0]])
PARAMS = {
    "w_query": np.zeros((1, 1)),
    "w_key": np.array([[10.0], [0.0]]),
    "v": np.log([3.0]),
    "w_ih": np.array([[1.0, -1.0, 2.0]]),
    "w_hh": np.ones((1, 1)),
    "b_ih": np.zeros(1),
    "b_hh": np.zeros(1),
}


def test_bahdanau_by_hand():
    state, context, weights = attnlib.bahdanau_step(np.ones(1), np.zeros(1), MEMORY, PARAMS)
    np.testing.assert_allclose(weights, [1 / 4, 3 / 4])
    np.testing.assert_allclose(context, [3, 0.5])
    np.testing.assert_allclose(state, [-0.762], atol=5e-4)


def test_the_gradient_of_the_context_is_the_weight_where_tanh_is_flat():
    memory = torch.from_numpy(MEMORY).requires_grad_()
    params = {name: torch.from_numpy(x) for name, x in PARAMS.items()}
    step = run("bahdanau-torch")["bahdanau_torch"]
    _, context, _ = step(torch.ones(1).double(), torch.zeros(1).double(), memory, params)
    (gradient,) = torch.autograd.grad(context[0], memory)
    assert gradient[1, 0].item() == pytest.approx(3 / 4, abs=1e-9)
    params["w_key"] = params["w_key"] / 10  # where tanh is not flat, the row moves its own weight
    _, context, _ = step(torch.ones(1).double(), torch.zeros(1).double(), memory, params)
    (gradient,) = torch.autograd.grad(context[0], memory)
    assert gradient[1, 0].item() != pytest.approx(3 / 4, abs=1e-4)


def test_luong_by_hand():
    memory = np.array([[2 * np.log(3), 1.0], [0.0, 5.0]])
    params = {
        "w_ih": np.zeros((2, 1)),
        "w_hh": np.zeros((2, 2)),
        "b_ih": np.arctanh([0.5, 0.0]),
        "b_hh": np.zeros(2),
        "w_c": np.array([[0.0], [1.0], [-4.0], [0.0]]),
    }
    state, attentional, weights = attnlib.luong_step(np.ones(1), np.zeros(2), memory, params)
    np.testing.assert_allclose(state, [0.5, 0])
    np.testing.assert_allclose(weights, [3 / 4, 1 / 4])
    np.testing.assert_allclose(weights @ memory, [1.648, 2], atol=5e-4)
    np.testing.assert_allclose(attentional, [0], atol=1e-12)


# Task 5 ----------------------------------------------------------------------------------------------------------


def test_the_bug_is_one_and_its_examples_do_not_show_it():
    cells = run("general-found")
    found, queries, keys = cells["general_as_found"], cells["some_queries"], cells["some_keys"]
    for weight in (np.eye(2), cells["symmetric"]):
        np.testing.assert_array_equal(found(queries, keys, weight), attnlib.general(queries, keys, weight))
    np.testing.assert_array_equal(found(queries, keys, np.eye(2)), attnlib.dot(queries, keys))
    report = examine("general", found)
    assert report.mistake == "weight-transposed"
    assert report.score == 0


def test_the_bug_keeps_the_shape_with_any_numbers_of_queries_and_keys_and_a_batch():
    found = run("general-found")["general_as_found"]
    assert found(np.ones((7, 3, 4)), np.ones((7, 5, 4)), np.ones((4, 4))).shape == (7, 3, 5)


# Tasks 10 to 14 --------------------------------------------------------------------------------------------------


def test_the_characters_are_those_of_all_dates():
    cells = run("dates")
    days = [datetime.date(2001, 1, 1) + datetime.timedelta(n) for n in range(800)]
    seen = {c for day in days for form in cells["FORMS"] for c in cells["written"](day, form)} | set("0123456789")
    assert sorted(seen) == list(cells["READ"])


def test_a_batch_has_dates_of_one_length():
    for pairs in run("dates")["batches"](seed=0, count=20):
        assert len({len(human) for human, _ in pairs}) == 1
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", iso) for _, iso in pairs)


def test_the_translator_learns_and_its_figure_answers_the_question(trained):
    assert trained["share_right"](trained["model"]) > 0.9
    iso, alignment = trained["translate"](trained["model"], HUMAN)
    assert (iso, alignment.shape) == (ISO, (10, 16))
    np.testing.assert_allclose(alignment.sum(-1), 1, atol=1e-5)
    places = run("watched")["most_watched"](alignment)
    assert [int(place) for place in places[-2:]] == [5, 6] == [HUMAN.index("2"), HUMAN.index("7")]
    assert alignment[-1, 6] > 0.7
    assert max(alignment[4].max(), alignment[7].max()) < alignment[-1].max()
    assert HUMAN[12:14] == "19"
    assert ISO[8:] == "27"


def test_one_row_of_memory_is_a_decoder_without_attention(trained):
    step = run("challenge", bahdanau_torch=trained["bahdanau_torch"])["last_row_only"]
    model = trained["Translator"](step)
    _, alignment = model(torch.zeros(3, 12, dtype=torch.long))
    assert torch.equal(alignment, torch.ones(3, 10, 1))


def test_the_figure_has_a_row_for_each_character_that_was_written():
    (axes,) = run("draw")["draw_alignment"]("ab", "x z", np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "␣", "z"]
    assert run("watched")["most_watched"](np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])).tolist() == [1, 0]


def test_training_stops_where_a_step_is_slow(capsys):
    cells = run("bahdanau-torch", "dates", "translator", "training")
    cells["train"](cells["bahdanau_torch"], seconds=0)
    assert "Stopped after 0 of 160 batches" in capsys.readouterr().out


def stub(*arguments):
    raise NotImplementedError()


def wrong(y, state, memory, params):
    new, context, weights = attnlib.bahdanau_step(y, state, memory, params)
    return new, 2 * context, weights


@pytest.mark.parametrize(
    ("step", "said", "steps"), [(stub, "Write bahdanau_torch first", 0), (wrong, "attnlib's step is trained", 1)]
)
def test_a_step_that_is_missing_or_wrong_does_not_stop_the_notebook(capsys, step, said, steps):
    given = []

    def train(step):
        given.append(step)

    cells = run("train-run", bahdanau_torch=step, train=train, translate=lambda *_: (ISO, None))
    assert said in capsys.readouterr().out
    assert given == [attnlib.bahdanau_step] * steps
    assert cells["translator"] is None


def test_without_a_translator_the_later_cells_say_so(capsys):
    run("alignment-run", "challenge-run", translator=None)
    assert capsys.readouterr().out.count("Train the translator first") == 2


def test_after_a_name_that_does_not_exist_the_later_cells_still_say_what_to_do(capsys):
    cells = {"np": np, "torch": torch, "attnlib": attnlib}
    with pytest.raises(NameError, match="bahdanau_torch"):
        exec(CELLS["train-run"], cells)
    exec(CELLS["alignment-run"], cells)
    assert "Train the translator first" in capsys.readouterr().out


def test_without_the_challenge_it_is_the_challenge_that_is_asked_for(capsys):
    cells = run("bahdanau-torch", "dates", "translator", "training", translator=object(), last_row_only=stub)
    capsys.readouterr()
    exec(CELLS["challenge-run"], cells)
    assert capsys.readouterr().out == "Optional: write last_row_only first; then run this cell again.\n"


@pytest.mark.parametrize(
    ("watched", "said"),
    [
        (lambda weights: weights.argmax(0), "10 whole numbers"),
        (lambda weights: weights.max(-1), "10 whole numbers"),
        (lambda weights: None, "Does it end with a return statement?"),
    ],
)
def test_places_that_are_none_are_explained(capsys, watched, said):
    given = {"translator": object(), "iso": ISO, "human": HUMAN, "alignment": np.full((10, 16), 1 / 16)}
    run("alignment-run", draw_alignment=stub, most_watched=watched, **given)
    assert said in capsys.readouterr().out


def test_without_the_functions_the_figure_is_asked_for(capsys):
    weights = np.full((10, 16), 1 / 16)
    given = {"translator": object(), "iso": ISO, "human": HUMAN, "alignment": weights}
    exec(CELLS["draw"], given)
    exec(CELLS["watched"], given)
    run("alignment-run", **given)
    said = capsys.readouterr().out
    assert "Write draw_alignment first" in said
    assert "Write most_watched first" in said
