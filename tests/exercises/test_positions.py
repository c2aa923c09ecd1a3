"""What the notebook on positions says holds: its numbers by hand, its claims, its bug, its pointers into the book."""

import math
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

import attnlib
from attnlib.checks import examine
from attnlib.checks.catalogue.positions.questions import QUESTIONS

FILE = Path(__file__).parents[2] / "exercises" / "06-positions" / "positions.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(FILE, as_version=4).cells}
BUILT = {name: getattr(attnlib, name) for name in ("sinusoidal_positions", "apply_rope", "alibi_bias")}


def gap(f, x, order):
    return float(np.abs(f(x[order]) - f(x)[order]).max())


def namespace(**more):
    """What a student has after running the given cells, with attnlib's functions for their own."""
    names = {"equivariance_gap": gap, **BUILT, **more}
    for cell in ("imports", "example"):
        exec(CELLS[cell], names)
    return names


def run(cell, capsys, **more):
    names = namespace(**more)
    capsys.readouterr()
    exec(CELLS[cell], names)
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))


def not_written(*arguments, **options):
    raise NotImplementedError


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_has_the_options_that_are_explained(question):
    text = next(CELLS[f"{cell[:-6]}-options"] for cell in CELLS if f'check_choice("{question.name}"' in CELLS[cell])
    assert text == f'show_options("{question.name}")'


# Task 1 --------------------------------------------------------------------------------------------------------------

PREDICTIONS = {"good_without": "same", "mean_without": "same", "mean_with": "new"}


@pytest.mark.parametrize("missing", PREDICTIONS)
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    assert run("predict-run", capsys, **PREDICTIONS | {missing: None}).startswith("First fill in all three predictions")


def test_right_predictions_are_confirmed(capsys):
    assert run("predict-run", capsys, **PREDICTIONS).count("as you predicted") == 3


def test_wrong_predictions_are_explained(capsys):
    said = run("predict-run", capsys, good_without="new", mean_without="new", mean_with="same")
    assert said.count("you predicted") == 3
    assert "as you predicted" not in said


# Numbers by hand -----------------------------------------------------------------------------------------------------


def test_the_gap_by_hand():
    x, order = np.array([[10.0], [20.0], [50.0]]), np.array([2, 0, 1])

    def f(x):
        return x + np.arange(3)[:, None]

    np.testing.assert_array_equal(f(x[order])[:, 0], [50, 11, 22])
    np.testing.assert_array_equal(f(x)[order][:, 0], [52, 10, 21])
    assert gap(f, x, order) == 2


def test_sinusoids_by_hand():
    by_hand = [[0, 1, 0, 1], [0.841, 0.540, 0.100, 0.995], [0.909, -0.416, 0.199, 0.980]]
    np.testing.assert_allclose(attnlib.sinusoidal_positions(3, 4, base=100.0), by_hand, atol=5.1e-4)
    assert 10000.0 ** (-2 / 4) == 0.01


def test_rope_by_hand():
    x, cos, sin = np.array([[10.0, 20, -5, 5]]), np.array([[0.8, 0.6]]), np.array([[0.6, 0.8]])
    np.testing.assert_allclose(attnlib.apply_rope(x, cos, sin), [[11, 8, 2, 19]])
    np.testing.assert_allclose(attnlib.apply_rope(x, cos, sin, interleaved=True), [[-4, 22, -7, -1]])
    assert 11**2 + 2**2 == 10**2 + 5**2


def test_alibi_by_hand():
    np.testing.assert_array_equal(-16 * attnlib.alibi_bias(2, 3, 5)[0, 1], [1, 0, 1, 2, 3])
    assert attnlib.alibi_bias(4, 1, 6, q_offset=5)[:, 0, 5].tolist() == [0] * 4
    for H, slopes in ((2, [1 / 16, 1 / 256]), (3, [1 / 16, 1 / 256, 1 / 4])):
        assert attnlib.alibi_slopes(H).tolist() == slopes
    assert attnlib.alibi_slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert attnlib.alibi_slopes(4).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256]


# Measurements --------------------------------------------------------------------------------------------------------


def test_attention_has_no_gap_and_positions_and_a_causal_mask_open_one(capsys):
    gaps = [float(line.split()[-1]) for line in run("gap-measure", capsys).splitlines()]
    assert gaps[0] == gaps[3] == 0
    assert min(gaps[1:3]) > 0.1


def test_dot_products_of_positions_depend_on_the_distance_alone(capsys):
    lines = run("distances", capsys).splitlines()
    products = [float(line.split()[-1]) for line in lines[:5]]
    assert products[0] == products[1] == products[2] != products[3] == products[4]


def test_44_steps_are_nearly_7_turns_of_the_fastest_hand_and_far_from_whole_turns_of_the_others():
    turns = 44 * 100.0 ** (-np.arange(0, 8, 2) / 8) / (2 * math.pi)
    off = np.abs(turns - turns.round())
    assert round(turns[0]) == 7
    assert off[0] < 0.003
    assert off[1:].min() > 0.2


def rope_scores(query, key, first):
    cos, sin = attnlib.rope_tables(np.arange(len(query)) + first, query.shape[-1])
    return attnlib.apply_rope(query, cos, sin) @ attnlib.apply_rope(key, cos, sin).T


def test_scores_of_rope_do_not_move_and_those_with_added_sinusoids_do(capsys):
    turned, added = (
        float(line.split()[-1]) for line in run("measure-run", capsys, rope_scores=rope_scores).splitlines()
    )
    assert turned == 0
    assert added > 1


def test_with_equal_contents_the_scores_are_constant_along_diagonals():
    rng = np.random.default_rng(1)
    S = rope_scores(np.tile(rng.normal(size=8), (6, 1)), np.tile(rng.normal(size=8), (6, 1)), 0)
    np.testing.assert_allclose(S[1:, 1:], S[:-1, :-1])


def test_with_the_other_layout_a_word_s_score_with_itself_is_right_and_the_others_are_not():
    rng = np.random.default_rng(2)
    query, key = rng.normal(size=(2, 6, 8))
    tables = attnlib.rope_tables(np.arange(6), 8)
    one, other = (
        attnlib.apply_rope(query, *tables, interleaved=layout) @ attnlib.apply_rope(key, *tables, interleaved=layout).T
        for layout in (True, False)
    )
    np.testing.assert_allclose(np.diag(one), np.diag(other))
    assert np.abs(one - other)[~np.eye(6, dtype=bool)].min() > 1e-3


def test_pictures_are_drawn(capsys):
    for cell in ("clocks", "alibi-run"):
        assert "first" not in run(cell, capsys)


def test_one_matrix_moves_all_sinusoids_on_and_none_moves_random_numbers(capsys):
    def move_on(table, n):
        matrix = np.linalg.lstsq(table[:-n], table[n:], rcond=None)[0]
        return matrix, float(np.abs(table[:-n] @ matrix - table[n:]).max())

    lines = run("challenge-run", capsys, move_on=move_on).splitlines()
    sinusoids, random = (float(line.split()[-1]) for line in lines[:2])
    assert sinusoids == 0
    assert random > 1
    assert lines[-1].endswith("True")


@pytest.mark.parametrize(
    ("cell", "missing"),
    [
        ("gap-measure", "equivariance_gap"),
        ("clocks", "sinusoidal_positions"),
        ("distances", "sinusoidal_positions"),
        ("measure-run", "rope_scores"),
        ("alibi-run", "alibi_bias"),
        ("challenge-run", "move_on"),
    ],
)
def test_a_cell_that_needs_a_function_says_so_while_there_is_none(capsys, cell, missing):
    said = run(cell, capsys, **{missing: not_written})
    assert re.search(f"Fill in .*{missing}", said)


@pytest.mark.parametrize(
    ("cell", "half_written"),
    [
        ("gap-measure", "equivariance_gap"),
        ("clocks", "sinusoidal_positions"),
        ("distances", "sinusoidal_positions"),
        ("measure-run", "rope_scores"),
        ("alibi-run", "alibi_bias"),
        ("challenge-run", "move_on"),
    ],
)
def test_a_cell_that_gets_nothing_from_a_function_answers_with_a_word_and_not_with_a_traceback(
    capsys, cell, half_written
):
    said = run(cell, capsys, **{half_written: lambda *arguments, **options: None})
    assert re.search("^Not yet: ", said, re.MULTILINE)


def test_a_prediction_may_be_written_with_a_capital(capsys):
    assert (
        run("predict-run", capsys, good_without="Same", mean_without="SAME", mean_with="New").count("as you predicted")
        == 3
    )


# The bug -------------------------------------------------------------------------------------------------------------


def colleagues(capsys):
    names = namespace()
    exec(CELLS["bug"], names)
    return names["colleagues_rope"], capsys.readouterr().out


def test_the_bug_passes_her_three_tests(capsys):
    _, said = colleagues(capsys)
    assert "a quarter turn of (2, 3) is [-3.0, 2.0]" in said
    assert said.count("True") == 2
    assert "False" not in said


def test_the_bug_is_in_the_layout_that_she_says_and_earns_nothing(capsys):
    wrong, _ = colleagues(capsys)
    report = examine("apply_rope", wrong, backend="torch", seed=0)
    assert report.mistake == "spread-alternating"
    assert report.score == 0
    x, tables = torch.randn(5, 8), attnlib.rope_tables(torch.arange(5.0), 8)
    right = attnlib.apply_rope(x, *tables)
    assert torch.equal(wrong(x, *tables)[0], right[0])
    assert not torch.isclose(wrong(x, *tables), right)[1:].all(-1).any()


def test_the_bug_is_mended_by_laying_the_angles_out_for_halves(capsys):
    wrong, _ = colleagues(capsys)
    source = CELLS["bug"].split("quarter_turn")[0]
    for table in ("cos", "sin"):
        spread = f"{table}.repeat_interleave(2, dim=-1)"
        assert source.count(spread) == 1
        source = source.replace(spread, f"({spread} if interleaved else {table}.repeat(1, 2))")
    names = {"torch": torch}
    exec(source, names)
    assert examine("apply_rope", names["colleagues_rope"], backend="torch").passed
    assert not examine("apply_rope", wrong, backend="torch").passed
