"""Every known mistake fails, and is named as itself, whatever the seed."""

from collections import defaultdict
from dataclasses import replace

import pytest
from told_apart import confused

from attnlib.checks.calling.conventions import has_argument
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.confusion_matrix import confusion_matrix
from attnlib.checks.evaluation import Evaluation

REPORTED = 3  # each seed reports every third mistake, starting one mistake later than the previous seed


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_known_mistake_fails_and_is_named_as_itself_whatever_the_seed(name, seeds):
    exercise, scores = CATALOGUE[name], {}
    options = exercise.ungraded_options
    has = {one.id: {n for n in options if has_argument(one.implementation, n)} for one in exercise.mistakes}
    for seed in seeds:
        evaluation = Evaluation(exercise, exercise.backends[0], seed)
        assert not confused(evaluation, has), f"seed {seed}"
        for mistake in exercise.mistakes[seed % REPORTED :: REPORTED]:
            report = evaluation.of(mistake.implementation)
            assert not report.passed or report.remark, mistake.id
            assert report.score < 1 or report.remark
            report = report.remark or report
            assert report.mistake == mistake.id, f"seed {seed}: {mistake.id} is called\n{report.message}"
            assert scores.setdefault(mistake.id, report.score) == report.score, "the same mistake earns the same"


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_known_mistake_takes_the_arguments_that_it_is_given(name):
    """A mistake that fails over its own signature is named as itself as well, but no student makes it."""
    exercise = CATALOGUE[name]
    evaluation = Evaluation(exercise, exercise.backends[0], 0)
    errors = {mistake.id: evaluation._answer(mistake, 0).error for mistake in exercise.mistakes}
    assert not {one: error for one, error in errors.items() if "unexpected keyword argument" in (error or "")}


@pytest.fixture
def faulty():
    """Return an exercise with two mistakes, a third that is the first by another name, and one that is right."""
    exercise = CATALOGUE["dot"]
    one, other = exercise.mistakes[:2]
    twin = replace(one, id="twin")
    passes = replace(one, id="passes", implementation=exercise.reference)
    return replace(exercise, mistakes=(one, other, twin, passes))


def test_mistakes_that_no_case_tells_apart_are_found_and_so_is_one_that_passes(faulty):
    evaluation, (one, _, twin, passes) = Evaluation(faulty, "numpy", 0), faulty.mistakes
    assert confused(evaluation, defaultdict(set)) == {one.id: {twin.id}, twin.id: {one.id}, passes.id: set()}


def test_a_case_that_a_mistake_is_not_asked_does_not_tell_it_apart():
    exercise = CATALOGUE["scaled_dot_product_attention"]
    right, some = exercise.reference, exercise.mistakes[0]

    def causal(*arrays, scale=None, is_causal=False):
        return -right(*arrays, scale=scale, is_causal=is_causal)

    def never_causal(*arrays, scale=None, is_causal=False):
        return -right(*arrays, scale=scale)

    one, other = (replace(some, id=f.__name__, implementation=f) for f in (causal, never_causal))
    evaluation = Evaluation(replace(exercise, mistakes=(one, other)), "numpy", 0)
    assert not confused(evaluation, {one.id: {"is_causal"}, other.id: {"is_causal"}})
    assert confused(evaluation, {one.id: {"is_causal"}, other.id: set()}) == {other.id: {one.id}}


def test_the_confusion_matrix_shows_a_mistake_that_is_given_another_name(monkeypatch, faulty):
    monkeypatch.setitem(CATALOGUE, "dot", faulty)
    found = confusion_matrix("dot", range(2))
    assert not found.perfect
    assert [row.confused for row in found.rows] == [{"(unnamed)": 2}, {}, {"(unnamed)": 2}, {"(passed)": 2}]
    assert (found.named, found.tried, found.accepted) == (2, 8, {"numpy": 2, "torch": 2})
    assert "twin" in str(found)
