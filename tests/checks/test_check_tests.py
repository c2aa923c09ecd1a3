"""Tests that students write: correct versions have to pass them, and what they catch is counted by how hard it is."""

import numpy as np
import pytest

from attnlib.checks import CheckFailed, check_tests, examine
from attnlib.checks.calling.tested import Implementation, Outcome
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation
from attnlib.checks.mutation.answers import Answers, CallRefusedError, refuse_large
from attnlib.checks.mutation.kill_matrix import KillMatrix
from attnlib.checks.mutation.kill_report import KillReport
from attnlib.checks.mutation.mutants import mutants_of
from attnlib.checks.mutation.run_tests import MAX_CALLS, report_on_tests
from attnlib.checks.mutation.sample import CORRECT, MUTANTS, draw_sample
from attnlib.checks.mutation.targets import TARGETS


def compares_with_the_reference(target, seed):
    """Return a test that compares all results, and the arguments afterwards, with those of the catalogue's cases."""
    evaluation = Evaluation(CATALOGUE[target.exercise], "numpy", seed)

    def test_cases(implementation):
        for case, expected in zip(evaluation.cases, evaluation.expected, strict=True):
            arguments, options = target.case(case)
            try:
                refuse_large(arguments, options)
            except CallRefusedError:
                continue
            if not evaluation.exercise.grades(case):
                continue
            before = [np.copy(x) if isinstance(x, np.ndarray) else x for x in arguments]
            got = implementation(*arguments, **options)
            got = got if isinstance(got, tuple | list) else (got,)
            assert len(got) == len(expected.arrays)
            for x, want in zip(got, expected.arrays.values(), strict=True):
                assert x.shape == want.shape
                assert (x.dtype == bool) == (want.dtype == bool)
                np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-5)
            for x, was in zip(arguments, before, strict=True):
                assert not isinstance(x, np.ndarray) or np.array_equal(x, was)

    return test_cases


@pytest.mark.parametrize("name", TARGETS)
def test_correct_versions_pass_the_check_of_the_exercise(name):
    target = TARGETS[name]
    assert len(target.correct) >= CORRECT
    assert len({version.style for version in target.correct}) == len(target.correct)
    for version in target.correct:
        report = examine(target.exercise, version.implementation, seed=1)
        assert report.passed, f"{version.style}: {report.message}"


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_comparison_with_the_reference_on_every_case_catches_every_mutant_and_rejects_nothing(name):
    target = TARGETS[name]
    test = compares_with_the_reference(target, seed=5)
    everything = [version.implementation for version in target.correct]
    everything += [mutant.mistake.implementation for mutant in mutants_of(target)]
    for number, implementation in enumerate(everything):
        answers = Answers(target, [implementation])

        def ask(arguments, options, answers=answers):
            answer = answers.answer(0, arguments, options)
            return answer.value, answer.error, answer.changed

        caught = False
        try:
            test(Implementation(ask))
        except Exception:
            caught = True
        assert caught == (number >= len(target.correct)), getattr(implementation, "__name__", implementation)


@pytest.mark.parametrize("name", TARGETS)
def test_samples_are_of_one_size_and_differ_from_seed_to_seed(name):
    samples = [draw_sample(TARGETS[name], seed) for seed in range(4)]
    assert {(len(sample.correct), len(sample.mutants)) for sample in samples} == {(CORRECT, MUTANTS)}
    drawn = [frozenset(mutant.mistake.id for mutant in sample.mutants) for sample in samples]
    assert all(len(ids) == MUTANTS for ids in drawn)
    assert len(set(drawn)) == len(samples)


def test_the_weight_says_how_hard_a_mutant_is_to_catch_and_the_kind_what_it_takes():
    known = {mutant.mistake.id: (mutant.weight, mutant.kind.name) for mutant in mutants_of(TARGETS["softmax"])}
    assert known["no-exponential"] == (1, "ordinary inputs")
    assert known["no-shift"] == (3, "scores beyond 700 or below -700")
    assert known["first-or-last"] == (3, "an axis that is neither the first nor the last")
    assert known["in-place"] == (3, "a comparison of the arguments before and after the call")


def matrix(kills, rejecting=()):
    """Return the matrix of tests that kill these mutants, by number, and of tests that reject a correct version."""
    sample = draw_sample(TARGETS["softmax"], 0)
    tests = [f"test_{n}" for n in range(len(kills))]
    outcomes = {
        i: [Outcome(test, "AssertionError" if i == 0 and n in rejecting else None) for n, test in enumerate(tests)]
        for i in range(CORRECT)
    }
    for i in range(MUTANTS):
        outcomes[CORRECT + i] = [Outcome(t, "E" if i in dead else None) for t, dead in zip(tests, kills, strict=True)]
    return sample, KillMatrix(sample, outcomes)


def test_the_score_is_the_weight_of_what_is_caught():
    sample, found = matrix([{0, 1}, {1, 13}])
    weights = [mutant.weight for mutant in sample.mutants]
    assert found.score() == pytest.approx((weights[0] + weights[1] + weights[13]) / sum(weights))
    assert weights[0] < weights[13]


def test_a_rejected_correct_version_costs_everything_and_is_explained():
    sample, found = matrix([set(range(MUTANTS)), {0}], rejecting={0})
    report = KillReport(sample.target, found, points=4)
    assert report.score == 0
    assert f"test_0 rejects a correct version, written in this style: {sample.correct[0].style}" in report.message
    assert found.kills[0] == [False] * MUTANTS  # what it raises says nothing about a mistake
    assert found.kills[1][0]


@pytest.mark.parametrize(
    ("kills", "smallest"),
    [
        ([{0, 1, 2}, {2, 3}, {0}, {3, 4, 5}], ["test_0", "test_3"]),
        ([{0, 1}, {1, 2}, {0, 2}], ["test_0", "test_1"]),
        ([set(), set()], []),
    ],
)
def test_the_smallest_set_of_tests_that_catches_as_much(kills, smallest):
    assert matrix(kills)[1].smallest() == smallest


def shares_of_one_row(softmax):
    assert np.allclose(softmax(np.array([0.0, np.log(3)])), [0.25, 0.75])


def test_the_kinds_that_survive_are_named_and_no_mutant_is(capsys):
    with pytest.raises(TypeError):
        check_tests("softmax", [shares_of_one_row], point=2)
    assert 0 < check_tests("softmax", [shares_of_one_row], points=2) < 1
    said = capsys.readouterr().out
    assert "None of your tests uses that" in said
    assert "Mistakes that show only with scores beyond 700 or below -700: 4 of 4 survived" in said
    for mutant in draw_sample(TARGETS["softmax"], 0).mutants:
        assert mutant.mistake.id not in said
        assert mutant.mistake.title not in said


def test_the_page_has_a_row_for_each_mutant_and_a_column_for_each_test():
    def other(softmax): ...

    html = report_on_tests("softmax", [shares_of_one_row, other], seed=0)._repr_mimebundle_()["text/html"]
    assert html.count("<th scope='col'") == 3
    assert html.count("<th scope='row'") == MUTANTS
    assert html.count(">caught</td>") + html.count(">·</td>") == 2 * MUTANTS
    assert "<script" not in html


def test_a_test_that_demands_equality_to_the_last_digit_is_rejected():
    def exact(softmax):
        assert (softmax(np.zeros((1, 4))) == 0.25).all()

    with pytest.raises(CheckFailed, match=r"(?s)exact rejects a correct version.*leaves open how numbers are rounded"):
        check_tests("softmax", [exact])


def test_the_last_digits_of_a_result_say_nothing():
    answers = Answers(TARGETS["softmax"], [lambda x, axis=-1: np.full(x.shape, 1 / 3)])
    one, other = (answers.answer(0, [np.zeros((5, 3))], {}).value for _ in range(2))
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, 1 / 3, rtol=1e-9)


def test_an_error_is_told_by_its_type_alone():
    def with_a_telling_name(x, axis=-1):
        return np.sum(x, axis=7)

    caught = []

    def test(softmax):
        for arguments, options in (((np.zeros(2),), {}), ((np.zeros(2),), {"temperature": 2}), ((), {})):
            try:
                softmax(*arguments, **options)
            except (TypeError, ValueError) as error:
                caught.append(f"{type(error).__name__}: {error}")

    answers = Answers(TARGETS["softmax"], [with_a_telling_name])

    def ask(arguments, options):
        answer = answers.answer(0, arguments, options)
        return answer.value, answer.error, answer.changed

    test(Implementation(ask))
    said = "the implementation raised an error with these arguments"
    assert caught == [f"ValueError: {said}", f"TypeError: {said}", f"TypeError: {said}"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda softmax: softmax(np.zeros((65, 2))), r"an array of shape \(65, 2\)"),
        (lambda softmax: softmax(np.zeros((6, 2, 2))), r"an array of shape \(6, 2, 2\)"),
        (lambda softmax: softmax(np.zeros((1, 1, 1, 1, 1))), r"an array of shape"),
        (lambda softmax: softmax(np.array([object()])), "an array of dtype object"),
        (lambda softmax: softmax("text"), "a value of type str"),
        (lambda softmax: softmax(np.zeros(2), axis=10**400), "a huge number"),
        (lambda softmax: [softmax(np.zeros(2)) for _ in range(MAX_CALLS + 1)], f"more than {MAX_CALLS} times"),
    ],
)
def test_calls_that_take_too_much_are_refused_and_earn_nothing(call, said):
    def quiet(softmax):
        try:
            call(softmax)
        except ValueError:
            raise SystemExit from None

    with pytest.raises(CheckFailed, match=said):
        check_tests("softmax", [quiet])


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (shares_of_one_row, "a list of tests is needed"),
        ([1], "a list of tests is needed"),
        ([], "there are 0 tests"),
        (None, "not written yet"),
        ([shares_of_one_row] * 13, "there are 13 tests in the list, but between 1 and 12 are needed"),
    ],
)
def test_what_is_not_a_list_of_tests_is_refused_with_a_reason(tests, said):
    with pytest.raises(CheckFailed, match=said):
        check_tests("softmax", tests)


def test_an_unknown_target_is_named_with_those_that_exist():
    with pytest.raises(ValueError, match=r"no function 'sofmax'.*softmax, scaled_dot_product_attention"):
        check_tests("sofmax", [shares_of_one_row])
