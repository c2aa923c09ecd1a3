"""A function that draws is examined by how often it draws each token: what is right passes, whatever it draws with."""

import math
import random

import numpy as np
import pytest
from correct_solutions.decoder import sample

from attnlib.checks import examine
from attnlib.checks.calling.sampling import call_distribution, call_sampler
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.decoder.sample import DRAWS, TOLERANCE, sampler
from attnlib.checks.evaluation import Evaluation
from attnlib.checks.exercise import Exercise

EXERCISE = CATALOGUE["sample"]
THIRDS = {"logits": np.log([1.0, 2.0, 1.0])}


def draws(implementation, logits=THIRDS, count=2000, **options):
    """Return which tokens were drawn, and how often."""
    return call_sampler(implementation, logits, options, {"draws": count, "seed": 0})[0]


def failure_bound(evaluation: Evaluation) -> float:
    """Return a bound for the probability that a right answer fails: the sum of the bounds of all events in it."""
    bound = 0.0
    for case, expected in zip(evaluation.cases, evaluation.expected, strict=True):
        assert case.tolerance == TOLERANCE
        assert case.setup["draws"] == DRAWS
        for p in expected.arrays["frequencies"]:
            if 0 < p < 1:  # others are never or always drawn
                bound += 2 * math.exp(-2 * DRAWS * TOLERANCE**2) + (1 - p) ** DRAWS
    return bound


def test_a_right_answer_fails_less_than_once_in_a_million_checks():
    assert all(failure_bound(Evaluation(EXERCISE, "numpy", seed)) < 1e-6 for seed in range(20))


def test_tokens_are_counted():
    drawn, frequencies = draws(lambda logits, rng: int(rng.choice(3, p=[0.25, 0.75, 0.0])))
    assert drawn.tolist() == [True, True, False]
    np.testing.assert_allclose(frequencies, [0.25, 0.75, 0.0], atol=0.05)
    assert frequencies.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.array])
def test_a_token_is_any_kind_of_whole_number(kind):
    drawn, _ = draws(lambda logits, rng: kind(2))
    assert drawn.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (np.array([2]), r"an array of shape \(1,\), but one token is needed"),
        (1.0, "1.0 of type float, but one token is needed"),
        (None, "None of type NoneType"),
        (3, "returned 3, but a token from 0 to 2 is needed"),
        (-1, "returned -1, but a token from 0 to 2 is needed"),
    ],
)
def test_what_is_no_token_is_refused(result, says):
    with pytest.raises((TypeError, ValueError), match=says):
        draws(lambda logits, rng: result)


def test_the_first_draw_shows_a_change_of_the_logits_and_the_others_are_not_spoilt_by_it():
    seen = []

    def changes(logits, rng):
        seen.append(logits.copy())
        logits /= 2
        return 0

    logits = {"logits": np.array([4.0, 2.0])}
    draws(changes, logits, count=3)
    assert [x.tolist() for x in seen] == [[4.0, 2.0]] * 3
    assert logits["logits"].tolist() == [2.0, 1.0]


def test_the_exact_distribution_is_what_the_draws_approach():
    known = sampler(lambda logits, **options: np.array([0.5, 0.3, 0.2, 0.0]))
    logits = {"logits": np.zeros(4)}
    (drawn, p), _ = call_distribution(known, logits, {}, {})
    assert p.tolist() == [0.5, 0.3, 0.2, 0.0]
    assert drawn.tolist() == [True, True, True, False]
    np.testing.assert_allclose(draws(known, logits)[1], p, atol=0.05)


def test_other_exercises_are_called_exactly_as_their_answers_are():
    softmax = CATALOGUE["softmax"]
    assert softmax.exact is softmax
    exact = EXERCISE.exact
    assert isinstance(exact, Exercise)
    assert (exact.call, EXERCISE.call) == (call_distribution, call_sampler)


def own_numbers(logits, rng, **options):
    """Draw with a generator that nobody has seeded, and not with the one that is passed."""
    return sample(logits, np.random.default_rng(random.randrange(2**32)), **options)


@pytest.mark.slow
def test_random_numbers_of_ones_own_pass_and_are_never_called_different_at_every_call():
    assert examine("sample", own_numbers, seed=0).passed

    def wrong(logits, rng, *, temperature=1.0, **options):
        return own_numbers(logits, rng, temperature=temperature, **{"top_k": 2} | options)

    report = examine("sample", wrong, seed=0)
    assert not report.passed
    assert report.mistake is None


def mostly_right(logits, rng, *, top_k=None, **options):
    """Return a token that top-k excludes, one time in fifty."""
    leaks = top_k is not None and rng.random() < 0.02
    return sample(logits, rng, **options) if leaks else sample(logits, rng, top_k=top_k, **options)


@pytest.mark.slow
def test_a_token_that_should_never_come_is_found_though_it_is_rare():
    report = examine("sample", mostly_right, seed=0)
    assert not report.passed
    assert "drawn" in report.message
    assert 0.5 < report.score < 1
