"""Mistakes that a check cannot tell apart are found. (test_report.py tests that each mistake gets its own name.)"""

from collections import defaultdict
from dataclasses import replace

import pytest
from told_apart import confused

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.confusion_matrix import confusion_matrix
from attnlib.checks.evaluation import Evaluation


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
