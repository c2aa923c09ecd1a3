"""Every known mistake fails, and is named as itself, whatever the seed."""

import pytest

from attnlib.checks.calling.conventions import has_argument
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.confusion_matrix import confusion_matrix
from attnlib.checks.evaluation import Evaluation

SEEDS = range(50)
ASKED_AGAIN = 5  # seeds for which a mistake is asked once as a student's and once as the known one; else once as both


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_known_mistake_fails_and_is_named_as_itself_whatever_the_seed(name):
    exercise, scores = CATALOGUE[name], {}
    for seed in SEEDS:
        evaluation = Evaluation(exercise, exercise.backends[0], seed)
        for mistake in exercise.mistakes:
            if seed < ASKED_AGAIN:
                report = evaluation.of(mistake.implementation)
            else:
                has = {name for name in exercise.optional if has_argument(mistake.implementation, name)}
                asked = evaluation.asked(has)
                report = evaluation.report({i: evaluation._answer(mistake, i) for i in asked})
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


def test_the_confusion_matrix_shows_a_mistake_that_is_given_another_name(monkeypatch):
    exercise = CATALOGUE["dot"]
    one, other = exercise.mistakes[:2]
    twin = type(one)("twin", one.title, one.says, one.hint, one.more, one.section, one.implementation)
    passes = type(one)("passes", one.title, one.says, one.hint, one.more, one.section, exercise.reference)
    planted = type(exercise)(**vars(exercise) | {"mistakes": (one, other, twin, passes)})
    monkeypatch.setitem(CATALOGUE, "dot", planted)
    found = confusion_matrix("dot", range(2))
    assert not found.perfect
    assert [row.confused for row in found.rows] == [{"(unnamed)": 2}, {}, {"(unnamed)": 2}, {"(passed)": 2}]
    assert (found.named, found.tried, found.accepted) == (2, 8, {"numpy": 2, "torch": 2})
    assert "twin" in str(found)
