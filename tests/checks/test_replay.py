"""A table of answers that was recorded under one seed earns nothing under another."""

import numpy as np
import pytest

from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation

ASKED = [(name, backend) for name, exercise in CATALOGUE.items() for backend in exercise.backends]
RECORDED = range(5)  # the seeds under which the table was made
UNKNOWN = Answer(problem="raised", error="KeyError: not in the table")


def given(case):
    """All that an implementation is given, as a key of a table."""
    return _key({"inputs": case.inputs, "options": case.options, "setup": case.setup, "upstream": case.upstream})


def _key(x):
    if isinstance(x, dict):
        return tuple((name, _key(value)) for name, value in x.items())
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype.str, x.tobytes()
    return tuple(map(_key, x)) if isinstance(x, list | tuple) else x


def record(exercise, backend, seeds):
    """Return a table of the right answers in these evaluations, keyed by what is given."""
    table = {}
    for evaluation in (Evaluation(exercise, backend, seed) for seed in seeds):
        table |= dict(zip(map(given, evaluation.cases), evaluation.expected, strict=True))
    return table


def replay(exercise, backend, seed, table):
    """Answer an evaluation from the table alone."""
    evaluation = Evaluation(exercise, backend, seed)
    return evaluation.report({i: table.get(given(case), UNKNOWN) for i, case in enumerate(evaluation.cases)})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), ASKED)
def test_answers_recorded_under_another_seed_earn_nothing(name, backend):
    exercise = CATALOGUE[name]
    recorded = record(exercise, backend, RECORDED)
    assert replay(exercise, backend, RECORDED[-1], recorded).score == 1, "answers to the same inputs should be right"
    for seed in (101, 102):
        assert replay(exercise, backend, seed, recorded).score == 0
