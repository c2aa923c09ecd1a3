"""What the notebook on transformers says holds: its examples, its pointers, its predictions, its bug, its model."""

import math
import re

import numpy as np
import pytest
import torch
from notebook_cells import cells_of, run_cells

import attnlib
import attnlib.torch
from attnlib.checks import examine
from attnlib.checks.catalogue.transformer import transformer_block
from attnlib.checks.catalogue.transformer.online_softmax import online_softmax
from attnlib.minilm import load_minilm
from grading.answer_keys import answer_key

BACKWARD = "scaled_dot_product_attention_backward"
GIVEN = {
    "math": math,
    "np": np,
    "torch": torch,
    "nn": torch.nn,
    "attnlib": attnlib,
    "split_heads": attnlib.split_heads,
    "merge_heads": attnlib.merge_heads,
}


CELLS, SOLVED = (cells_of(folder, "07-transformer/transformer") for folder in ("exercises", "solutions"))


def run(*names: str, source=None, **namespace) -> dict:
    """Run cells one after the other, and return what they define."""
    return run_cells(source or CELLS, names, {**GIVEN, **namespace})


def test_every_question_is_asked_with_the_options_that_are_explained():
    for name, cell in (
        ("silent-attention", "silent"),
        ("upstream-of-ones", "upstream"),
        ("blocks-in-reverse", "order"),
    ):
        assert f'"{name}"' in CELLS[f"{cell}-check"]
        assert CELLS[f"{cell}-options"] == f'show_options("{name}")'
        answer = run(cell, source=SOLVED)[f"{cell}_answer"]
        assert answer == answer_key(name).right


# 1 to 4: the block ---------------------------------------------------------------------------------------------------


def test_the_row_by_hand_comes_out_as_its_comments_say(capsys):
    found = run("by-hand")
    for name, want in (
        ("normalised", [-1, 1]), ("attended", [2, 3]), ("between", [3, 8]), ("again", [-1, 1]), ("wide", [2, -1, 3]),
        ("bent", [2, 0, 3]), ("narrow", [2, -3]),
    ):  # fmt: skip
        np.testing.assert_allclose(found[name], want)
    assert "[5. 5.]" in capsys.readouterr().out


def test_the_first_case_of_the_check_is_the_row_by_hand():
    library = attnlib.numpy.TransformerBlock(2, 1, 3)
    library.load_state_dict(transformer_block.by_hand())
    np.testing.assert_allclose(library(np.array([[[1.0, 5.0]]])), [[[5, 5]]], atol=1e-4)


RIGHT = {
    "attention_adds": "the same",
    "lengths_after_post_norm": "equal",
    "rows_after_24_blocks": "longer",
}


@pytest.mark.parametrize("missing", RIGHT)
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    run("predict-run", **RIGHT | {missing: None})
    assert capsys.readouterr().out.startswith("First fill in all three predictions")


@pytest.mark.parametrize("seed", range(10))
def test_predictions_are_compared_with_what_happens_whatever_is_drawn(capsys, seed):
    torch.manual_seed(seed)
    run("predict-run", **RIGHT)
    assert capsys.readouterr().out.count("as you predicted") == 3
    run("predict-run", **dict.fromkeys(RIGHT, "a wrong guess"))
    assert "as you predicted" not in capsys.readouterr().out


def test_one_head_by_hand():
    query, key = np.array([[2.0]]), np.array([[np.log(3.0)], [0.0]])
    context, weights = attnlib.attention(query, key, np.array([[6.0], [2.0]]))
    np.testing.assert_allclose(weights, [[0.9, 0.1]])
    np.testing.assert_allclose(context, [[5.6]])


def test_attention_that_says_nothing_leaves_every_row_to_itself():
    library = attnlib.numpy.TransformerBlock(6, 2, 9).double()
    for x in library.self_attn.out_proj.parameters():
        x[...] = 0
    rows = np.random.default_rng(0).normal(size=(1, 4, 6))
    out = library(rows)
    other = rows.copy()
    other[0, 1] += 1
    changed = np.abs(library(other) - out).max(-1)[0] > 1e-9
    assert changed.tolist() == [False, True, False, False]
    assert not np.allclose(out, 0)
    assert not np.allclose(out, library.norm1(rows))


# 5 and 6: the backward pass ------------------------------------------------------------------------------------------


def test_the_backward_pass_by_hand():
    key, value = np.array([[np.log(3.0) / 2] * 4, [0.0] * 4]), np.array([[4.0, 0], [0, 8]])
    gradients = attnlib.scaled_dot_product_attention_backward(np.ones((1, 2)), np.ones((1, 4)), key, value)
    np.testing.assert_allclose(gradients[2], [[3 / 4] * 2, [1 / 4] * 2])
    np.testing.assert_allclose(gradients[1], [[-3 / 8] * 4, [3 / 8] * 4])
    np.testing.assert_allclose(gradients[0], [[-3 / 8 * np.log(3) / 2] * 4])


def test_only_a_mix_up_of_columns_hides_behind_an_upstream_gradient_of_ones():
    rng = np.random.default_rng(0)
    query, key, value = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    right = attnlib.scaled_dot_product_attention_backward

    def hidden(wrong, grad):
        pairs = zip(wrong(grad, query, key, value), right(grad, query, key, value), strict=True)
        return all(a.shape == b.shape and np.allclose(a, b) for a, b in pairs)

    columns_mixed = lambda grad, *arrays: right(grad[:, ::-1], *arrays)  # noqa: E731
    assert hidden(columns_mixed, np.ones((3, 2)))
    assert not hidden(columns_mixed, rng.normal(size=(3, 2)))
    catalogue = {mistake.id: mistake.implementation for mistake in _mistakes(BACKWARD)}
    for others in ("no-scale-for-query", "no-subtraction", "results-swapped"):
        assert not hidden(catalogue[others], np.ones((3, 2)))


def _mistakes(name):
    from attnlib.checks.catalogue import CATALOGUE

    return CATALOGUE[name].mistakes


# 7 and 8: the softmax in one pass ------------------------------------------------------------------------------------


def test_two_blocks_by_hand():
    state = np.zeros((1, 1)), np.zeros(1), np.full(1, -np.inf)
    state = online_softmax(np.log([[1.0, 2.0]]), np.array([[16.0], [8.0]]), *state)
    np.testing.assert_allclose([float(x.item()) for x in state], [16, 1.5, np.log(2)])
    state = online_softmax(np.log([[5.0, 8.0]]), np.array([[0.0], [4.0]]), *state)
    np.testing.assert_allclose([float(x.item()) for x in state], [8, 2, np.log(8)])


def test_the_blocks_may_come_in_any_order():
    rng = np.random.default_rng(1)
    scores, value = rng.normal(size=(3, 12)), rng.normal(size=(12, 2))
    ends = []
    for order in (range(0, 12, 3), range(9, -1, -3)):
        state = np.zeros((3, 2)), np.zeros(3), np.full(3, -np.inf)
        for start in order:
            state = online_softmax(scores[:, start : start + 3], value[start : start + 3], *state)
        ends.append(state)
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other)


def test_many_blocks_agree_with_all_keys_at_once_and_a_stub_is_told_so(capsys):
    run("online-run", online_softmax=online_softmax)
    said = capsys.readouterr().out
    assert float(said.split(": ")[1]) < 1e-12
    run("online", "online-run")
    assert capsys.readouterr().out.startswith("Fill in online_softmax first")


# 9 and 10: the bug, and the numbers of the written question ---------------------------------------------------------


def test_the_bug_is_a_bug_that_its_own_example_does_not_show(capsys):
    found = run("bug")
    in_blocks, at_once = found["in_blocks"], found["at_once"]
    np.testing.assert_allclose(in_blocks, at_once)
    assert examine("attention_in_blocks", found["attention_in_blocks"]).mistake == "blocks-never-rescaled"
    arrays = found["some_queries"], found["some_keys"][::-1], found["some_values"][::-1]
    assert np.abs(found["attention_in_blocks"](*arrays) - at_once).max() > 0.1
    np.testing.assert_allclose(attnlib.scaled_dot_product_attention(*arrays), at_once)


def test_the_bug_is_that_the_old_maximum_is_overwritten():
    source = CELLS["bug"].replace("before = top\n", "before = top.copy()\n")
    assert source != CELLS["bug"]
    found = dict(GIVEN)
    exec(source, found)
    assert examine("attention_in_blocks", found["attention_in_blocks"]).passed


def test_the_mended_function_is_right():
    assert examine("attention_in_blocks", run("mended", source=SOLVED)["blocks_mended"]).passed


def test_the_numbers_of_the_written_question():
    assert 4096 * 4096 == 16_777_216
    assert 4096 * (64 + 2) == 270_336
    assert round(16_777_216 / 270_336) == 62


# 11 and 12: the model ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_model_runs_on_the_student_s_attention(capsys):
    torch.set_num_threads(1)
    shown = []
    found = run("multi-head", source=SOLVED) | {"display": shown.append}
    exec(CELLS["model"], found)
    assert float(capsys.readouterr().out.split(": ")[1]) < 1e-5
    assert len(shown) == 1
    vectors = load_minilm(backend="torch").encode(found["SENTENCES"])
    alike = (vectors @ vectors.T).numpy()
    pairs = sorted(((float(alike[i, j]), i + 1, j + 1) for i in range(5) for j in range(i)), reverse=True)
    assert [pair[1:] for pair in pairs[:3]] == [(5, 4), (2, 1), (3, 1)]


def test_words_that_the_alike_sentences_share():
    words = [set(re.findall("[a-z]+", s.lower())) for s in re.findall(r'^    "(.*)",$', CELLS["model"], re.MULTILINE)]
    assert words[0] & words[1] == {"the"}
    assert words[3] & words[4] == {"its"}


def test_without_attention_or_without_the_model_the_cell_says_so(capsys, monkeypatch):
    run("multi-head", "model")
    assert capsys.readouterr().out.startswith("Write MultiHeadAttention")
    monkeypatch.setattr("attnlib.minilm.find_spec", lambda name: None)
    run("multi-head", "model")
    assert "The model is not on this machine" in capsys.readouterr().out


def test_the_model_has_22_million_parameters():
    assert round(sum(x.size for x in load_minilm().model.parameters()) / 1e6, 1) == 22.6


def test_the_challenge_can_be_done():
    bert = load_minilm(backend="torch").model
    layer, rows = bert.encoder.layers[0], torch.randn(1, 5, 384)
    own = attnlib.torch.TransformerBlock(384, 12, 1536, norm="post", activation="gelu", layer_norm_eps=1e-12)
    own.load_state_dict(layer.state_dict())
    torch.testing.assert_close(own(rows), layer(rows))
