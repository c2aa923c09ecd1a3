"""A student gets hold of an input that fails, as small as possible, and the same one again until it passes."""

import contextlib
import functools

import numpy as np
import pytest
import torch
from correct_solutions import CORRECT_SOLUTIONS
from torch import nn

import attnlib
import attnlib.torch
from attnlib.checks import CheckFailed, FailingCase, check, examine, failing_case, session, shrinking
from attnlib.checks.calling.conventions import has_argument
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation, SingleCase
from attnlib.checks.smaller_cases import _arrays, count_numbers, is_same

WRONG_ANSWERS = 5  # of each exercise


@pytest.fixture(autouse=True)
def new_session(monkeypatch):
    monkeypatch.setattr(session, "_outcomes", {})


def checked(name, implementation, **options) -> str:
    """Run a check, whatever it earns, and return what it says."""
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda report: said.append(str(report)))
        with contextlib.suppress(CheckFailed):
            check(name, implementation, **options)
    return said[0]


def last_axis(x, axis=-1):
    """A softmax that is right only along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def right_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# What the report says -----------------------------------------------------------------------------------------------


def test_a_report_lists_which_kinds_of_case_are_wrong():
    said = checked("softmax", last_axis, seed=0)
    assert "17 of 20 cases are right." in said
    kinds = "every axis: the case above; a stack of tables with axis=1; a stack of stacks with axis=-2"
    assert f"Wrong, by kind of case:\n  • {kinds}\n" in said
    assert 'case = failing_case("softmax")' in said


def test_a_report_names_three_cases_of_a_kind_and_counts_the_rest():
    said = checked("softmax", lambda x, axis=-1: x, seed=0)
    assert "• the numbers: the case above; a table of 3 rows and 5 columns; a single score; 3 more" in said
    assert "in a second call;" not in said.partition("by kind")[2]


def test_an_examination_offers_nothing():
    report = examine("softmax", last_axis, seed=0)
    assert "failing_case" not in report.message
    assert not failing_case("softmax")


# The case itself ----------------------------------------------------------------------------------------------------


def test_a_case_has_arguments_by_name_and_the_expected_result():
    checked("softmax", last_axis, seed=0)
    case = failing_case("softmax")
    assert set(case.arguments) == {"x", "axis"}
    e = np.exp(case.arguments["x"])
    np.testing.assert_allclose(case.expected, e / e.sum(case.arguments["axis"], keepdims=True))
    assert not np.allclose(last_axis(**case.arguments), case.expected)
    np.testing.assert_allclose(right_softmax(**case.arguments), case.expected)
    np.testing.assert_allclose(case.call(right_softmax), case.expected)
    assert case.arguments["x"].size == 2
    assert "axis = 0" in repr(case)
    assert "last_axis(**case.arguments)" in repr(case)


def test_a_case_of_several_outputs_has_them_by_name():
    def unscaled(query, key, value):
        weights = attnlib.softmax(query @ key.swapaxes(-1, -2))
        return weights @ value, weights

    checked("attention", unscaled)
    case = failing_case("attention")
    context, weights = attnlib.attention(**case.arguments)
    np.testing.assert_allclose(case.expected["context"], context)
    np.testing.assert_allclose(case.expected["weights"], weights)


def test_a_case_for_torch_has_tensors():
    def shifted(query, key):
        return query @ key.mT + 1

    checked("dot", shifted, backend="torch")
    case = failing_case("dot")
    assert all(isinstance(x, torch.Tensor) for x in (*case.arguments.values(), case.expected))
    query, key = case.arguments.values()
    torch.testing.assert_close(case.expected, query @ key.mT)


def test_a_case_about_gradients_has_the_gradient_that_is_sent_back_and_those_expected():
    def detached(query, key):
        return query @ key.detach().mT + 0 * (query.sum() + key.sum())

    checked("dot", detached, backend="torch", seed=0)
    case = failing_case("dot")
    assert "gradient sent back into" in repr(case)
    assert "case.call(detached)" in repr(case)
    right, wrong = case.call(lambda query, key: query @ key.mT), case.call(detached)
    assert case.expected.keys() == right.keys() == wrong.keys()
    for name, expected in case.expected.items():
        np.testing.assert_allclose(right[name], expected.numpy(), err_msg=name)
    assert not np.allclose(wrong["the gradient of key"], case.expected["the gradient of key"])


def test_a_case_for_a_class_is_called_with_its_weights():
    class Unscaled(attnlib.numpy.MultiHeadAttention):
        def forward(self, query, key=None, value=None):
            return 2 * super().forward(query, key, value)

    checked("MultiHeadAttention", Unscaled)
    case = failing_case("MultiHeadAttention")
    assert {"embed_dim", "num_heads", "weights", "query"} <= set(case.arguments)
    assert "case.call(Unscaled)" in repr(case)
    np.testing.assert_allclose(case.call(attnlib.numpy.MultiHeadAttention), case.expected)
    np.testing.assert_allclose(case.call(Unscaled), 2 * case.expected)


def test_an_error_is_raised_where_the_student_calls_the_function():
    def wrong(query, key):
        return query @ key

    checked("dot", wrong)
    with pytest.raises(ValueError, match="matmul"):
        failing_case("dot").call(wrong)


@pytest.mark.parametrize("name", [name for name, one in CATALOGUE.items() if one.call.__name__ == "call_function"])
def test_the_arguments_have_the_names_of_the_library_s_own(name):
    exercise = CATALOGUE[name]
    evaluation = Evaluation(exercise, exercise.backends[0], 0)
    for case in (one for one in evaluation.cases if exercise.grades(one)):
        given = FailingCase(evaluation, case, name)
        returned = exercise.reference(**given.arguments)
        expected = given.expected.values() if isinstance(given.expected, dict) else [given.expected]
        for x, y in zip([returned] if len(expected) == 1 else returned, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


# Shrinking ----------------------------------------------------------------------------------------------------------


def wrong_answers(name):
    """Return a few of the known mistakes of an exercise that cost points, from all over its list."""
    mistakes = CATALOGUE[name].mistakes
    return mistakes[:: max(1, len(mistakes) // WRONG_ANSWERS)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_shrunk_case_fails_still_and_every_right_answer_gets_it_right(name):
    exercise = CATALOGUE[name]
    backend = exercise.backends[0]
    evaluation = Evaluation(exercise, backend, 3)
    for mistake in wrong_answers(name):
        failure = evaluation.of(mistake.implementation).failure
        if failure is None:  # a remark, which costs nothing
            continue
        case = failure.case
        shrunk = shrinking.shrink(evaluation, case, mistake.implementation)
        assert shrunk is not None, mistake.id
        single = SingleCase(evaluation, shrunk)
        assert not single.is_right(single.answer(mistake.implementation)), mistake.id
        assert count_numbers(shrunk) <= count_numbers(case)
        largest = max((n for _, x in _arrays(case) for n in x.shape), default=0)
        assert all(n <= largest for _, x in _arrays(shrunk) for n in x.shape)
        for style, implementation in CORRECT_SOLUTIONS.get((name, backend), {}).items():
            if any(not has_argument(implementation, one) for one in evaluation.needs(shrunk)):
                continue
            assert single.is_right(single.answer(implementation)), f"{mistake.id}, {style}: {shrunk}"


IN_TORCH = {
    "not scaled": lambda q, k, v: ((w := torch.softmax(q @ k.mT, -1)) @ v, w),
    "columns": lambda q, k, v: ((w := torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -2)) @ v, w),
    "the wrong dimensions": lambda q, k, v: ((w := torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1)) @ v, w),
    "one result": lambda q, k, v: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v,
    "cut off": lambda q, k, v: ((w := torch.softmax(q @ k.detach().mT / q.shape[-1] ** 0.5, -1)) @ v, w),
}


@pytest.mark.parametrize("wrong", IN_TORCH)
def test_a_case_for_torch_is_shrunk_as_well(wrong):
    evaluation = Evaluation(CATALOGUE["attention"], "torch", 0)
    failing = evaluation.of(IN_TORCH[wrong]).failure.case
    shrunk = shrinking.shrink(evaluation, failing, IN_TORCH[wrong])
    single = SingleCase(evaluation, shrunk)
    assert not single.is_right(single.answer(IN_TORCH[wrong]))
    assert single.is_sound()
    assert count_numbers(shrunk) < count_numbers(failing)
    assert {x.shape for x in (shrunk.upstream or {}).values()} <= {x.shape for x in single.expected.arrays.values()}


@pytest.mark.parametrize("seed", range(4))
def test_the_same_case_shrinks_to_the_same(seed):
    evaluation = Evaluation(CATALOGUE["softmax"], "numpy", seed)
    failing = evaluation.of(last_axis).failure.case
    one, other = (shrinking.shrink(evaluation, failing, last_axis) for _ in range(2))
    assert is_same(one, other)
    assert one.inputs["x"].size == 2, "one number more would not show it"
    assert np.array_equal(one.inputs["x"], one.inputs["x"].round())


@pytest.mark.parametrize(
    "name", ["attention", "rnn_cell", "grouped_query_attention", "softmax", "multi_head_attention"]
)
def test_shrinking_calls_a_function_at_most_so_often(name):
    exercise = CATALOGUE[name]
    for mistake in wrong_answers(name):
        evaluation, calls = Evaluation(exercise, "numpy", 1), []

        @functools.wraps(mistake.implementation)
        def counting(*given, calls=calls, mistake=mistake, **options):
            calls.append(1)
            return mistake.implementation(*given, **options)

        if failure := evaluation.of(mistake.implementation).failure:
            shrinking.shrink(evaluation, failure.wrong[-1], counting)
            assert 1 <= len(calls) <= shrinking.MAX_CALLS


def test_shrinking_ends_when_its_calls_are_spent(monkeypatch):
    calls = []

    def counting(x, axis=-1):
        calls.append(1)
        return last_axis(x)

    evaluation = Evaluation(CATALOGUE["softmax"], "numpy", 0)
    failing = evaluation.of(last_axis).failure.case
    monkeypatch.setattr(shrinking, "MAX_CALLS", 3)
    assert shrinking.shrink(evaluation, failing, counting) is not None
    assert len(calls) == 3
    monkeypatch.setattr(shrinking, "MAX_SECONDS", -1.0)
    assert shrinking.shrink(evaluation, failing, counting) is failing
    assert len(calls) == 4


def test_no_row_is_hidden_throughout_where_the_exercise_has_no_such_row():
    """A part of a block in which some scores are -inf could be a block of nothing else, which nobody has asked for."""
    exercise = CATALOGUE["online_softmax"]
    (wrong,) = (one.implementation for one in exercise.mistakes if one.id == "hidden-scores-zero")
    for seed in range(5):
        evaluation = Evaluation(exercise, "numpy", seed)
        (hidden,) = (case for case in evaluation.cases if "their scores are -inf" in case.name)
        shrunk = shrinking.shrink(evaluation, hidden, wrong)
        assert np.isneginf(shrunk.inputs["scores"]).any()
        assert np.isfinite(shrunk.inputs["scores"]).any(axis=-1).all()


def test_numbers_are_not_rounded_to_zero():
    def shifted(query, key):
        return attnlib.cosine(query, key) + 1

    checked("cosine", shifted)
    assert all((x != 0).all() or x.size > 2 for x in failing_case("cosine").arguments.values())


# Until it passes ----------------------------------------------------------------------------------------------------


def test_the_same_case_is_tried_first_and_offered_until_it_passes():
    def named(function):
        function.__name__ = "softmax"
        return function

    checked("softmax", named(lambda x, axis=-1: last_axis(x)), seed=0)
    first = failing_case("softmax").arguments
    seen = []

    def still_wrong(x, axis=-1):
        seen.append((x.copy(), axis))
        return last_axis(x)

    said = checked("softmax", named(still_wrong), seed=1)
    assert "The input that failed last time was tried first, and it still fails." in said
    assert said.count("a table with axis=0") <= 2
    assert np.array_equal(seen[0][0], first["x"])
    assert seen[0][1] == first["axis"]
    again = failing_case("softmax").arguments
    assert np.array_equal(again["x"], first["x"])
    assert checked("softmax", named(lambda x, axis=-1: right_softmax(x, axis)), seed=2).startswith("✓")
    assert "The last check of softmax passed" in repr(failing_case("softmax"))
    seen.clear()
    checked("softmax", named(still_wrong), seed=3)
    assert not np.array_equal(seen[0][0], first["x"]), "it is forgotten"


def test_a_case_that_passes_makes_room_for_another_one():
    checked("softmax", last_axis, seed=0)
    assert "axis" in failing_case("softmax").arguments

    def overflows(x, axis=-1):
        return np.exp(x) / np.exp(x).sum(axis, keepdims=True)

    overflows.__name__ = "last_axis"
    said = checked("softmax", overflows, seed=0)
    assert "it still fails" not in said
    assert np.abs(failing_case("softmax").arguments["x"]).max() > 700


def test_an_answer_that_is_right_in_all_other_cases_does_not_pass_while_its_case_fails():
    def wrong_for(marked):
        def dot(query, key):
            return query @ key.swapaxes(-1, -2) + (marked is None or np.array_equal(key, marked))

        return dot

    checked("dot", wrong_for(None), seed=0)
    key = failing_case("dot").arguments["key"]
    said = checked("dot", wrong_for(key), seed=1)
    assert said.startswith("✗ dot")
    assert "with the input that failed last time (found with one query [1, 2] and the keys" in said
    assert "still fails" in said
    assert checked("dot", wrong_for(np.zeros(1)), seed=1).startswith("✓")


def test_a_case_that_fails_still_costs_nothing_more():
    checked("softmax", last_axis, seed=0)
    failing_case("softmax")
    for seed in (4, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("builtins.print", lambda report: None)
            assert check("softmax", last_axis, seed=seed) == examine("softmax", last_axis, seed=seed).score


def test_two_functions_of_one_exercise_have_cases_of_their_own():
    def zero(query, key):
        return 0 * attnlib.dot(query, key)

    checked("dot", zero)
    checked("dot", attnlib.dot)
    assert failing_case("dot").function == "zero"


# Where there is no case ---------------------------------------------------------------------------------------------


def unwritten(x, axis=-1):
    raise NotImplementedError()


def test_without_a_check_there_is_a_reason_and_what_to_do():
    none = failing_case("softmax")
    assert not none
    assert "Run the cell with its check first" in repr(none)
    with pytest.raises(AttributeError, match=r"no failing case, and so no arguments\. No check of softmax has run"):
        _ = none.arguments
    checked("softmax", right_softmax)
    assert "The last check of right_softmax passed" in repr(failing_case("softmax"))
    checked("softmax", unwritten)
    assert "is not written yet" in repr(failing_case("softmax"))
    assert "a multiple-choice question" in repr(failing_case("shift-or-stretch"))
    with pytest.raises(ValueError, match="did you mean 'softmax'"):
        failing_case("sofmax")


def test_without_torch_in_a_browser_it_says_why_a_check_has_no_inputs(monkeypatch):
    for name in ("in_browser", "without_torch"):
        monkeypatch.setattr(f"attnlib.checks.browser.{name}", lambda: True)
    assert check("MultiHeadAttention", attnlib.torch.MultiHeadAttention, backend="torch") == 0
    assert "There is no torch in the browser" in repr(failing_case("MultiHeadAttention"))


def test_an_answer_that_differs_from_call_to_call_is_told_so():
    calls = []

    def second_call(query, key):
        calls.append(1)
        return query @ key.swapaxes(-1, -2) + (len(calls) == 2)

    checked("dot", second_call, seed=0)
    assert "keep something from one call to the next" in repr(failing_case("dot"))


# Hostile functions --------------------------------------------------------------------------------------------------


def small(x) -> bool:
    return x.shape[0] < 3


def changes_its_inputs(x, axis=-1):
    x *= 0
    return x


def raises_when_small(x, axis=-1):
    if small(x):
        raise RuntimeError("too small")
    return last_axis(x) if axis == -1 else x


def exits_when_small(x, axis=-1):
    if small(x):
        raise SystemExit
    return last_axis(x)


def loops_when_small(x, axis=-1):
    while small(x) and x.ndim == 2 and axis == 0:
        pass
    return last_axis(x)


def nonsense_when_small(x, axis=-1):
    return [None, "nan", object(), ..., lambda: 0][x.size % 5] if small(x) else last_axis(x)


@pytest.mark.parametrize(
    "hostile", [changes_its_inputs, raises_when_small, exits_when_small, loops_when_small, nonsense_when_small]
)
def test_a_function_that_misbehaves_while_a_case_is_shrunk_leaves_a_case_that_fails(hostile, monkeypatch):
    monkeypatch.setattr(shrinking, "MAX_CALL_SECONDS", 0.2)
    evaluation = Evaluation(CATALOGUE["softmax"], "numpy", 0)
    failing = next(case for case in evaluation.cases if case.name == "a table with axis=0")
    before = {name: x.copy() for name, x in failing.inputs.items()}
    shrunk = shrinking.shrink(evaluation, failing, hostile)
    assert np.array_equal(failing.inputs["x"], before["x"])
    assert count_numbers(shrunk) <= count_numbers(failing)
    if hostile is changes_its_inputs:
        assert shrunk.inputs["x"].size == 1
        assert shrunk.inputs["x"].all()
    else:
        assert shrunk.inputs["x"].shape[0] >= 3, "smaller ones fail for another reason"
        single = SingleCase(evaluation, shrunk)
        assert not single.is_right(single.answer(hostile))


def test_what_a_function_does_to_its_arguments_is_not_kept():
    checked("softmax", changes_its_inputs)
    case = failing_case("softmax")
    before = case.arguments["x"]
    changes_its_inputs(**case.arguments)
    case.call(changes_its_inputs)
    case.expected[...] = 7
    assert np.array_equal(case.arguments["x"], before)
    assert (case.expected != 7).all()


def test_a_module_of_torch_is_examined_in_torch():
    class Block(nn.Module):
        def __init__(self, embed_dim, num_heads):
            super().__init__()
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                setattr(self, name, nn.Linear(embed_dim, embed_dim))

        def forward(self, query, key=None, value=None):
            return self.out_proj(query)

    checked("MultiHeadAttention", Block)
    case = failing_case("MultiHeadAttention")
    assert case.backend == "torch"
    assert not torch.allclose(case.call(Block), case.expected)
