"""What the notebook on a decoder says holds: its examples, its predictions, its bug, its model."""

import math
import re
import sys

import numpy as np
import pytest
from notebook_cells import cells_of, run_cells

import attnlib
from attnlib.checks import examine
from attnlib.checks.calling.sampling import call_sampler
from attnlib.checks.catalogue.decoder import QUESTIONS
from attnlib.checks.catalogue.decoder.generate_tokens import generate_tokens
from attnlib.checks.catalogue.decoder.grouped_query_attention import grouped_query_attention
from attnlib.checks.catalogue.decoder.rope_attention_with_cache import rope_attention_with_cache
from attnlib.checks.catalogue.decoder.swiglu_feed_forward import swiglu_feed_forward
from grading.answer_keys import answer_key

GIVEN = {"np": np, "attnlib": attnlib}
ANSWERS = ("norm", "gate", "grouped", "mended", "sample", "loop", "decoder")


CELLS, SOLVED = (cells_of(folder, "08-decoder/decoder") for folder in ("exercises", "solutions"))


def run(*names: str, source=None, **namespace) -> dict:
    """Run cells one after the other, and return what they define."""
    return run_cells(source or CELLS, names, {**GIVEN, **namespace})


def test_every_question_is_asked_with_the_options_that_are_explained():
    for question in QUESTIONS:
        (check,) = (cell for cell, source in CELLS.items() if f'check_choice("{question.name}"' in source)
        cell = check.removesuffix("-check")
        assert CELLS[f"{cell}-options"] == f'show_options("{question.name}")'
        assert run(cell, source=SOLVED)[f"{cell}_answer"] == answer_key(question.name).right


# 1 -------------------------------------------------------------------------------------------------------------------

RIGHT = {"ten_times": "the same", "plus_a_hundred": "something else", "at_half_temperature": 5 / 6}


def test_the_row_by_hand_comes_out_as_the_text_says(capsys):
    run("by-hand")
    said = capsys.readouterr().out
    assert "[ 1.4 -0.2]" in said
    np.testing.assert_allclose([float(x) for x in said.split("log 3: [")[1].strip("]\n").split()], [3, 0, -2])
    np.testing.assert_allclose(attnlib.rms_norm(np.array([7.0, -1.0]), eps=0.0), [1.4, -0.2])


@pytest.mark.parametrize("missing", RIGHT)
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    run("predict-run", **RIGHT | {missing: None})
    assert capsys.readouterr().out.startswith("First fill in all three predictions")


@pytest.mark.parametrize("right", [RIGHT, RIGHT | {"ten_times": "The same ", "at_half_temperature": 0.83}])
def test_right_predictions_are_confirmed(capsys, right):
    run("predict-run", **right)
    assert capsys.readouterr().out.count("as you predicted") == 3


def test_wrong_predictions_are_explained(capsys):
    run("predict-run", ten_times="something else", plus_a_hundred="the same", at_half_temperature=5 / 8)
    said = capsys.readouterr().out
    assert said.count("but you predicted") == 3
    assert "as you predicted" not in said


def test_what_the_predictions_show_is_what_the_library_does():
    row = np.array([7.0, -1.0])
    norm = attnlib.rms_norm(row, eps=0.0)
    np.testing.assert_allclose(attnlib.rms_norm(10 * row, eps=0.0), norm)
    assert not np.allclose(attnlib.rms_norm(row + 100, eps=0.0), norm)
    p = attnlib.sampling_probabilities(np.log([1.0, 2.0, 5.0]), temperature=0.5)
    np.testing.assert_allclose(p[-1], RIGHT["at_half_temperature"])


# 2 to 6: the parts of a block ----------------------------------------------------------------------------------------


def test_rms_norm_by_hand():
    norm = attnlib.rms_norm(np.array([7.0, -1.0]), np.array([2.0, 5.0]), eps=0.0)
    np.testing.assert_allclose(norm, [2.8, -1.0])


def test_the_gate_by_hand():
    x, w_gate = np.array([np.log(3.0), 1.0]), np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    w_up = np.array([[0.0, 4.0], [0.0, 7.0], [0.0, 8.0]])
    inside = swiglu_feed_forward(x, w_gate, w_up, np.eye(3))
    np.testing.assert_allclose(inside / np.log(3.0), [3, 0, -2], atol=1e-12)


def test_the_widths_with_as_many_parameters():
    E = 4096
    assert pytest.approx(3 * E * (8 * E / 3)) == 2 * 4 * E * E
    assert math.ceil(8 * E / 3 / 256) * 256 == 11008
    assert (3 * 2 * E * E, 3 * 3 * E * E) == (6 * E**2, 9 * E**2)


def test_grouped_queries_by_hand():
    context, keys, values = grouped_query_attention(
        np.array([[[1.0]], [[-1.0]]]), np.log([[[4.0]]]), np.array([[[8.0]]]), np.log([[[1.0], [2.0]]]),
        np.array([[[1.0], [15.0]]]),
    )  # fmt: skip
    np.testing.assert_allclose(context.ravel(), [9, 6])
    np.testing.assert_allclose(np.exp(keys.ravel()), [1, 2, 4])
    np.testing.assert_allclose(values.ravel(), [1, 15, 8])


# 7: the bug ----------------------------------------------------------------------------------------------------------


def test_the_bug_is_a_bug_that_its_own_tests_do_not_show(capsys):
    attend = run("bug")["attend_with_cache"]
    assert capsys.readouterr().out.count("True") == 4
    assert examine("rope_attention_with_cache", attend, seed=0).mistake == "from-zero"


def test_the_bug_is_that_positions_begin_at_0():
    mended = CELLS["bug"].replace(
        "np.arange(query.shape[-2], dtype=query.dtype)",
        "np.arange(query.shape[-2], dtype=query.dtype) + past_key.shape[-2]",
    )
    assert mended != CELLS["bug"]
    found = dict(GIVEN)
    exec(mended, found)
    assert examine("rope_attention_with_cache", found["attend_with_cache"], seed=0).passed


def test_the_shortest_text_that_shows_the_bug_has_two_tokens_in_two_calls():
    attend = run("bug")["attend_with_cache"]
    rng = np.random.default_rng(1)
    query, key, value = rng.normal(size=(2, 2, 4)), rng.normal(size=(1, 2, 4)), rng.normal(size=(1, 2, 3))
    nothing = np.zeros((1, 0, 4)), np.zeros((1, 0, 3))
    for length in (1, 2):  # a prompt in one call is right
        new = (x[:, :length] for x in (query, key, value))
        right = rope_attention_with_cache(*(x[:, :length] for x in (query, key, value)), *nothing)
        for one, other in zip(attend(*new, *nothing), right, strict=True):
            np.testing.assert_allclose(one, other)
    _, *cache = attend(query[:, :1], key[:, :1], value[:, :1], *nothing)
    context, *_ = attend(query[:, 1:], key[:, 1:], value[:, 1:], *cache)
    assert not np.allclose(context, right[0][:, 1:])


# 8 to 10: from logits to text ----------------------------------------------------------------------------------------


def frequencies(**options):
    sample = run("sample", source=SOLVED)["sample"]
    logits = {"logits": np.log([1.0, 2.0, 5.0])}
    return call_sampler(sample, logits, options, {"draws": 4000, "seed": 3})[0][1]


def test_sampling_by_hand():
    np.testing.assert_allclose(frequencies(), [1 / 8, 2 / 8, 5 / 8], atol=0.03)
    for options in ({"top_k": 2}, {"top_p": 0.7}):
        np.testing.assert_allclose(frequencies(**options), [0, 2 / 7, 5 / 7], atol=0.03)
    np.testing.assert_array_equal(frequencies(top_p=0.6), [0, 0, 1])


def test_the_loop_by_hand():
    answers, calls = {(5, 3): 8, (8,): 2, (2,): 9}, []

    def step(tokens):
        calls.append(tuple(tokens))
        return answers[tuple(tokens)]

    assert generate_tokens(step, [5, 3], 3) == [8, 2, 9]
    assert calls == [(5, 3), (8,), (2,)]
    calls.clear()
    assert generate_tokens(step, [5, 3], 3, stop_token=2) == [8, 2]
    assert len(calls) == 2


# 13: the model -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_model_writes_on_the_student_s_functions_what_it_writes_on_the_library(capsys):
    run(*ANSWERS, "model", source=SOLVED)
    said = capsys.readouterr().out
    assert "the same tokens as the library's: True" in said
    assert float(re.search(r"largest difference of the logits: (\S+)", said)[1]) < 1e-3
    assert said.count("def main(") == 2


def test_without_answers_or_without_the_model_the_cell_says_so(capsys, monkeypatch):
    pytest.importorskip("stdlib_lm")
    run(*ANSWERS, "model")
    assert capsys.readouterr().out.startswith("First write the functions of tasks 2 to 11")
    monkeypatch.setitem(sys.modules, "stdlib_lm", None)
    run(*ANSWERS, "model")
    assert "The model is not on this machine" in capsys.readouterr().out


def test_a_half_written_answer_is_met_with_a_word_and_not_with_a_traceback(capsys):
    pytest.importorskip("stdlib_lm")
    run(*ANSWERS, "model", source=SOLVED | {"decoder": "def decoder_logits(*inputs):\n    return None"})
    assert "Not yet: TypeError" in capsys.readouterr().out


def test_the_challenge_gives_the_distribution_of_the_large_model():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.7, 0.1])
    kept = q * np.minimum(1, p / q)
    rest = np.maximum(0, p - q)
    np.testing.assert_allclose(kept + (1 - kept.sum()) * rest / rest.sum(), p)
