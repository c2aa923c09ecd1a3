"""What the notebook on many heads says holds: its examples, its pointers, its predictions, and its bug is a bug."""

import re

import numpy as np
import pytest
import torch
from notebook_cells import cells_of, run_cells

import attnlib
import attnlib.torch
from attnlib.checks import examine

CELLS, SOLUTIONS = (cells_of(folder, "04-multi-head/multi-head") for folder in ("exercises", "solutions"))
GIVEN = {"np": np, "softmax": attnlib.softmax, "torch": torch, "nn": torch.nn, "attnlib": attnlib}
HAND = {
    "query": np.array([[1.0, 0.0]]),
    "key": np.array([[np.log(3), 5], [0, -2]]),
    "value": np.array([[8.0, 2], [0, 4]]),
}
W_O = np.array([[1.0, 1], [0, 2]])


def run(*names: str, **namespace) -> dict:
    """Run cells of the released notebook one after the other, and return what they define."""
    return run_cells(CELLS, names, {**GIVEN, **namespace})


def solved(*names: str) -> dict:
    """Run cells of the solutions, and return what they define."""
    return run_cells(SOLUTIONS, names, GIVEN)


def arguments(rng, leading=(), width=12):
    words = [rng.normal(size=(*leading, length, width)) for length in (5, 7, 7)]
    return [*words, *(rng.normal(size=(4, width, width)) / width**0.5)]


def test_every_question_is_asked_with_the_options_that_are_explained():
    asked = {
        re.search(r'check_choice\("([\w-]+)"', source)[1]: name for name, source in CELLS.items() if "choice(" in source
    }
    for question, cell in asked.items():
        assert CELLS[cell.replace("-check", "-options")] == f'show_options("{question}")'
    assert len(asked) == 3


def test_splitting_by_hand():
    table = 10.0 * np.arange(4)[:, None] + np.arange(6)
    heads = attnlib.split_heads(table, 3)
    np.testing.assert_array_equal(heads[2], [[4, 5], [14, 15], [24, 25], [34, 35]])
    assert attnlib.split_heads(np.ones((2, 4, 6)), 3).shape == (2, 3, 4, 2)


def test_merging_by_hand():
    heads = np.array([[[0.0, 1], [10, 11]], [[2, 3], [12, 13]]])
    np.testing.assert_array_equal(attnlib.merge_heads(heads), [[0, 1, 2, 3], [10, 11, 12, 13]])


def test_attention_by_hand():
    eye = np.eye(2)
    merged = attnlib.multi_head_attention(*HAND.values(), eye, eye, eye, eye, num_heads=2)
    np.testing.assert_allclose(merged, [[6, 3]])
    out = attnlib.multi_head_attention(*HAND.values(), eye, eye, eye, W_O, num_heads=2)
    np.testing.assert_allclose(out, [[6, 12]])


def test_the_layer_by_hand():
    layer = attnlib.torch.MultiHeadAttention(2, 2).double()
    matrices = {"q_proj": np.eye(2), "k_proj": np.eye(2), "v_proj": np.eye(2), "out_proj": np.array([[1.0, 0], [1, 2]])}
    state = {f"{name}.weight": torch.tensor(w) for name, w in matrices.items()}
    layer.load_state_dict(state | {f"{name}.bias": torch.zeros(2) for name in matrices})
    out = layer(*(torch.tensor(x)[None] for x in HAND.values()))
    np.testing.assert_allclose(out.detach().numpy(), [[[6, 12]]])
    np.testing.assert_array_equal(matrices["out_proj"].T, W_O)


def test_the_bug_is_one_that_looks_well(capsys):
    found = run("bug")
    said = capsys.readouterr().out
    assert "(3, 5, 12)" in said
    assert said.count("True") == 2
    assert "False" not in said
    report = examine("head_contributions", found["by_matrices"], seed=0)
    assert (report.score, report.mistake) == (0.0, "matrices-reshaped")


def test_the_bug_only_gives_the_entries_other_places(capsys):
    """So a model that is trained from the start learns as well, and trained weights make nonsense."""
    by_matrices = run("bug")["by_matrices"]
    query, key, value, *matrices, w_o = arguments(np.random.default_rng(1))
    moved = [attnlib.split_heads(w, 3).reshape(w.shape) for w in matrices]
    right = attnlib.multi_head_attention(query, key, value, *matrices, w_o, num_heads=3)
    np.testing.assert_allclose(by_matrices(query, key, value, *moved, w_o, 3).sum(axis=-3), right)
    assert not np.allclose(by_matrices(query, key, value, *matrices, w_o, 3).sum(axis=-3), right, atol=0.1)


def test_one_swap_mends_it():
    mended = solved("mended")["mended"]
    assert examine("head_contributions", mended, seed=0).passed
    assert "np.swapaxes(w.reshape" in SOLUTIONS["mended"]


RIGHT_ROWS = {"right_row": [23, 24, 25], "reshaped_row": [13, 14, 15], "back_again": True}


@pytest.mark.parametrize("missing", RIGHT_ROWS)
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    run("predict-run", **RIGHT_ROWS | {missing: None})
    assert capsys.readouterr().out.startswith("First fill in all three predictions")


def test_right_predictions_are_confirmed_and_wrong_ones_explained(capsys):
    run("predict-run", **RIGHT_ROWS)
    assert capsys.readouterr().out.count("as you predicted") == 3
    run("predict-run", right_row=[20, 21, 22], reshaped_row=[30, 31, 32], back_again=False)
    said = capsys.readouterr().out
    assert "as you predicted" not in said
    assert said.count("but you predicted") == 3


def test_a_prediction_is_not_wrong_because_of_how_it_is_written(capsys):
    run("predict-run", right_row=(23, 24, 25), reshaped_row=np.array([13, 14, 15]), back_again=True)
    assert capsys.readouterr().out.count("as you predicted") == 3


COUNTS = {"parameters": 1_050_624, "with_64_heads": "as many", "numbers_of_weights": 800}


def test_right_counts_are_confirmed(capsys):
    run("predict-run", "count-run", **RIGHT_ROWS, **COUNTS, MultiHeadAttention=attnlib.torch.MultiHeadAttention)
    assert capsys.readouterr().out.count("as you predicted") == 6


@pytest.mark.parametrize("missing", COUNTS)
def test_without_a_count_it_asks_for_one(capsys, missing):
    run("count-run", **COUNTS | {missing: None})
    assert capsys.readouterr().out.startswith("First fill in all three predictions")


def test_an_unwritten_layer_is_met_with_a_friendly_word(capsys):
    found = run("module")
    run("count-run", **COUNTS, MultiHeadAttention=found["MultiHeadAttention"])
    assert "cannot be counted yet" in capsys.readouterr().out
    run("challenge", "challenge-run", MultiHeadAttention=found["MultiHeadAttention"])
    assert "first write MultiHeadAttention and moved" in capsys.readouterr().out


def test_the_challenge_agrees_with_torch(capsys):
    found = solved("module", "challenge", "challenge-run")
    assert capsys.readouterr().out.count("True") == 2
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True)
    by_library = attnlib.load_weights(attnlib.torch.MultiHeadAttention(12, 3), theirs).state_dict()
    moved = found["moved"](theirs)
    assert moved.keys() == by_library.keys()
    assert all(torch.equal(moved[name], x) for name, x in by_library.items())


def test_more_heads_have_a_smaller_root_and_more_tables():
    assert 512 // 16 == 32
    assert 512 // 8 == 64
    _, tables = attnlib.torch.MultiHeadAttention(512, 16)(torch.zeros(1, 3, 512), need_weights=True)
    assert tables.shape == (1, 16, 3, 3)


def test_heads_that_change_places_with_their_bands_change_nothing():
    query, key, value, w_q, w_k, w_v, w_o = arguments(np.random.default_rng(2), leading=(2,))
    order = np.arange(12).reshape(3, 4)[[1, 0, 2]].ravel()
    before = attnlib.multi_head_attention(query, key, value, w_q, w_k, w_v, w_o, num_heads=3)
    matrices = (w_q[:, order], w_k[:, order], w_v[:, order], w_o[order])
    np.testing.assert_allclose(attnlib.multi_head_attention(query, key, value, *matrices, num_heads=3), before)
