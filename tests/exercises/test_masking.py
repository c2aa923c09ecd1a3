"""What the notebook on masks says holds: its examples, its claims, its bug, its pointers into the book."""

import numpy as np
import pytest
import torch
from notebook_cells import cells_of, run_cells

import attnlib
import attnlib.numpy
from attnlib.checks import examine
from attnlib.checks.catalogue.masking import QUESTIONS
from grading.answer_keys import answer_key

CELLS, SOLUTIONS = (cells_of(folder, "05-masking/masking") for folder in ("exercises", "solutions"))
LIBRARY = {
    "np": np,
    "attnlib": attnlib,
    "causal_mask": attnlib.causal_mask,
    "padding_mask": attnlib.padding_mask,
    "KVCache": attnlib.numpy.KVCache,
    "left_padding_mask": lambda lengths, S: attnlib.padding_mask(lengths, S)[..., ::-1],
    "masked_attention": lambda query, key, value, mask: attnlib.attention(query, key, value, mask=mask),
}


def said(capsys, cell, **namespace) -> str:
    exec(CELLS[cell], LIBRARY | namespace)
    return capsys.readouterr().out


def solved(cell) -> dict:
    return run_cells(SOLUTIONS, (cell,), LIBRARY)


def stub(cell) -> dict:
    namespace = dict(LIBRARY)
    exec(CELLS[cell], namespace)
    return namespace


def test_every_question_has_its_options_in_the_notebook():
    for question in QUESTIONS:
        (check,) = (cell for cell, source in CELLS.items() if f'check_choice("{question.name}"' in source)
        assert f'show_options("{question.name}")' == CELLS[check.removesuffix("-check") + "-options"]
        namespace = {}
        exec(SOLUTIONS[check.removesuffix("-check")], namespace)
        assert answer_key(question.name).right in namespace.values()


# 1 ---------------------------------------------------------------------------------------------------------------

PREDICTIONS = {"sum_after_zeroing": 3 / 8, "weight_of_train": 1 / 4, "who_moves": "zeroed"}


@pytest.mark.parametrize("missing", PREDICTIONS)
def test_without_a_prediction_it_asks_for_one(capsys, missing):
    text = said(capsys, "predict-run", **PREDICTIONS | {missing: None})
    assert text.startswith("First fill in all three predictions")


@pytest.mark.parametrize("rounded", [PREDICTIONS, {**PREDICTIONS, "sum_after_zeroing": 0.38, "who_moves": "Zeroed"}])
def test_right_predictions_are_confirmed(capsys, rounded):
    assert said(capsys, "predict-run", **rounded).count("as you predicted") == 3


def test_wrong_predictions_are_explained(capsys):
    text = said(capsys, "predict-run", sum_after_zeroing=1, weight_of_train=2 / 3, who_moves="neither")
    assert text.count("but you predicted") == 3
    assert "as you predicted" not in text


# 2, 3 ------------------------------------------------------------------------------------------------------------


def test_causal_by_hand():
    assert attnlib.causal_mask(3).sum(axis=1).tolist() == [1, 2, 3]
    assert attnlib.causal_mask(2, 5, q_offset=3).sum(axis=1).tolist() == [4, 5]
    assert not attnlib.causal_mask(3, q_offset=-1)[0].any()


def test_padding_by_hand():
    mask = attnlib.padding_mask([3, 5], 5)
    assert mask[:, 0, 0].astype(int).tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert not attnlib.padding_mask([0], 5).any()


def test_the_wrong_polarity_gives_finite_numbers_as_question_4_says():
    layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    words = torch.from_numpy(attnlib.padding_mask([3, 2], 5)[:, 0, 0])
    with torch.no_grad():
        out, weights = layer(x, x, x, key_padding_mask=words)
    assert out.isfinite().all()
    assert not weights[0, :, :3].any()
    assert not weights[1, :, :2].any()


# 5 ---------------------------------------------------------------------------------------------------------------


def by_hand():
    key, value = np.log([[1.0], [2.0], [5.0]]), np.array([[3.0], [6.0], [9.0]])
    return np.array([[1.0], [-1.0]]), key, value, np.array([[True, True, False], [True, False, True]])


def test_masked_attention_by_hand():
    query, key, value, mask = by_hand()
    context, weights = attnlib.attention(query, key, value, mask=mask)
    np.testing.assert_allclose(weights, [[1 / 3, 2 / 3, 0], [5 / 6, 0, 1 / 6]])
    np.testing.assert_allclose(context, [[5], [4]])


def test_the_gradient_by_hand():
    query, key, value, mask = map(torch.from_numpy, by_hand())
    value.requires_grad_()
    solved("torch")["masked_attention_torch"](query, key, value, mask)[0][0, 0].backward()
    np.testing.assert_allclose(value.grad[:, 0], [1 / 3, 2 / 3, 0])


def test_the_gradients_of_the_solution_are_finite_where_a_row_is_empty():
    query, key, value, _ = (
        x.requires_grad_() if x.is_floating_point() else x for x in map(torch.from_numpy, by_hand())
    )
    mask = torch.tensor([[True, True, False], [False, False, False]])
    context, weights = solved("torch")["masked_attention_torch"](query, key, value, mask)
    (context.sum() + weights.square().sum()).backward()
    assert all(x.grad.isfinite().all() for x in (query, key, value))


# 6 ---------------------------------------------------------------------------------------------------------------


def test_both_sides_of_padding(capsys):
    text = said(capsys, "sides-run", empty_on_the_right=0, empty_on_the_left=2)
    assert text.count("as they do alone: True") == 2
    assert text.count("as you predicted") == 2
    assert text.count("Any nan: False") == 2


def test_wrong_numbers_of_empty_rows_are_told(capsys):
    assert said(capsys, "sides-run", empty_on_the_right=2, empty_on_the_left=0).count("but you predicted") == 2


def test_without_numbers_or_functions_it_says_what_to_fill_in(capsys):
    assert "first" in said(capsys, "sides-run", empty_on_the_right=None, empty_on_the_left=0)
    unwritten = {"left_padding_mask": stub("left-padding")["left_padding_mask"]}
    text = said(capsys, "sides-run", empty_on_the_right=0, empty_on_the_left=0, **unwritten)
    assert "First write causal_mask" in text


def test_predictions_are_not_judged_by_a_wrong_mask(capsys):
    upside_down = {"left_padding_mask": lambda lengths, S: ~attnlib.padding_mask(lengths, S)}
    text = said(capsys, "sides-run", empty_on_the_right=0, empty_on_the_left=2, **upside_down)
    assert "padding on the left: the mask is not correct yet" in text
    assert text.count("as you predicted") == 1
    assert "but you predicted" not in text


NOTHING = {
    "sides-run": {"empty_on_the_right": 0, "empty_on_the_left": 2, "masked_attention": lambda *inputs: None},
    "leaks-run": {"leaks": lambda attend: True},
    "decode": {"masked_attention": lambda *inputs: None},
    "challenge-run": {"packed_mask": lambda lengths: None},
}


@pytest.mark.parametrize("cell", NOTHING)
def test_a_function_that_is_half_written_is_met_with_a_word_and_not_with_a_traceback(capsys, cell):
    assert (
        said(capsys, cell, **NOTHING[cell])
        .splitlines()[-1 if cell in ("leaks-run", "challenge-run") else -2]
        .startswith("Not yet: ")
    )


# 7 ---------------------------------------------------------------------------------------------------------------


def test_the_bug_is_a_bug_that_its_output_does_not_show(capsys):
    text = said(capsys, "bug")
    assert text.count("True") == 2
    assert "37.5% of the weights are 0; in the mask 37.5% are False" in text
    attend = stub("bug")["attend_in_batch"]
    report = examine("attention_with_bias", attend, seed=0)
    assert (report.score, report.mistake) == (0.0, "dimensions-after-first")


def test_the_bug_lays_rows_over_sentences_and_needs_as_many_words_as_sentences():
    attend = stub("bug")["attend_in_batch"]
    x, mask = np.random.default_rng(1).normal(size=(4, 4, 3)), attnlib.causal_mask(4)
    _, weights = attend(x, x, x, mask)
    assert (weights[-1] > 0).all()
    assert (weights[0, :, 1:] == 0).all()
    x = np.random.default_rng(1).normal(size=(4, 5, 3))
    with pytest.raises(ValueError, match="broadcast"):
        attend(x, x, x, attnlib.causal_mask(5))


def test_the_bug_does_not_show_in_a_single_sentence_and_the_leak_test_finds_it_in_a_batch():
    attend, leaks = stub("bug")["attend_in_batch"], solved("leaks")["leaks"]
    others = np.random.default_rng(5).normal(size=(3, 4, 3))

    def last_of_a_batch(x):
        batch = np.concatenate([others, x[None]])
        return attend(batch, batch, batch, attnlib.causal_mask(4))[0][-1]

    x = np.random.default_rng(6).normal(size=(4, 3))
    assert not leaks(lambda x: attend(x, x, x, attnlib.causal_mask(4))[0], x)
    assert leaks(last_of_a_batch, x)


def test_the_mended_function_is_right():
    assert examine("attention_with_bias", solved("bug-mended")["attend_mended"], seed=0).passed


# 9 ---------------------------------------------------------------------------------------------------------------


def leaks_run(capsys, leaks) -> str:
    """Return what the cell says that tries a leak test on five functions, one of which stands in an earlier cell."""
    attend = stub("bug")["attend_in_batch"]
    capsys.readouterr()
    return said(capsys, "leaks-run", leaks=leaks, attend_in_batch=attend)


def test_the_leak_test_tells_the_five_apart(capsys):
    text = leaks_run(capsys, solved("leaks")["leaks"])
    assert text.count("\n") == 5
    assert "look again" not in text


@pytest.mark.parametrize(("answer", "wrong"), [(True, 2), (False, 3)])
def test_a_leak_test_that_always_says_the_same_is_asked_to_look_again(capsys, answer, wrong):
    assert leaks_run(capsys, lambda attend, x: answer).count("look again") == wrong


def test_an_unwritten_leak_test_is_asked_for(capsys):
    assert leaks_run(capsys, stub("leaks")["leaks"]) == "First write leaks; then run this cell again.\n"


# 11, 12 ----------------------------------------------------------------------------------------------------------


def test_the_cache_by_hand():
    cache = solved("cache")["KVCache"]()
    assert cache.length == 0
    keys, _ = cache.append(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 1)))
    assert (len(keys), cache.length) == (2, 2)
    keys, _ = cache.append(np.array([[5.0, 6.0]]), np.zeros((1, 1)))
    assert (keys.tolist(), cache.length) == ([[1, 2], [3, 4], [5, 6]], 3)


def test_decoding_with_the_library_and_with_the_solutions_is_the_full_pass(capsys):
    own = {name: solved(cell)[name] for cell, name in (("cache", "KVCache"), ("masked", "masked_attention"))}
    for namespace in ({}, own):
        text = said(capsys, "decode", **namespace)
        assert text.rstrip().endswith("the same")
        assert "not the same" not in text
        assert "scores per sentence: 61; without a cache, with every word recomputed at each step: 371" in text


def test_decoding_with_a_wrong_mask_is_not_the_same(capsys):
    assert "not the same" in said(
        capsys, "decode", causal_mask=lambda T, S=None, *, q_offset=0: attnlib.causal_mask(T, S)
    )


def test_decoding_without_a_cache_asks_for_one(capsys):
    assert "First write causal_mask" in said(capsys, "decode", KVCache=stub("cache")["KVCache"])


# 14, 15 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "mask"), [([0.0, 1.0, 1000.0], [1, 1, 0]), ([0.0, 1.0, 2.0], [0, 0, 0])])
def test_dividing_by_the_new_sum_goes_wrong_in_both_situations(row, mask):
    weights = attnlib.softmax(np.array(row)) * mask
    assert weights.sum() == 0


def test_packed_sentences_stay_apart(capsys):
    text = said(capsys, "challenge-run", packed_mask=solved("challenge")["packed_mask"])
    assert "shape (7, 7), 16 True" in text
    assert text.count("as it does alone: True") == 2
    assert said(capsys, "challenge-run", packed_mask=stub("challenge")["packed_mask"]).startswith("Optional")
