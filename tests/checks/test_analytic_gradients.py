"""Analytic gradients are those of autograd, and an exercise that has them is graded without importing torch."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.gradients import GRADIENTS
from attnlib.checks.evaluation import Evaluation

ANALYTIC = [name for name, exercise in CATALOGUE.items() if exercise.analytic_gradients]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ANALYTIC)
def test_analytic_gradients_are_those_of_autograd(name, seed):
    ours = Evaluation(CATALOGUE[name], "torch", seed)
    theirs = Evaluation(replace(CATALOGUE[name], analytic_gradients=None), "torch", seed)
    numbers = [i for i, case in enumerate(ours.cases) if case.criterion == GRADIENTS]
    assert numbers
    for number in numbers:
        got, want = ours.expected[number].arrays, theirs.expected[number].arrays
        assert list(got) == list(want)
        for array in want:
            np.testing.assert_allclose(got[array], want[array], rtol=0, atol=1e-12)


EVALUATING = """
import sys
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation

for name in sys.argv[1:]:
    evaluation = Evaluation(CATALOGUE[name], "torch", 0)
    evaluation.report(dict(enumerate(evaluation.expected)))
    evaluation.report({i: evaluation._answer(CATALOGUE[name].mistakes[0], i) for i in (0, 1)})
print("torch" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize("names", [ANALYTIC, ["rnn_cell"]], ids=["analytic", "autograd"])
def test_an_exercise_with_analytic_gradients_needs_no_torch_to_be_graded(names):
    done = subprocess.run([sys.executable, "-c", EVALUATING, *names], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(names != ANALYTIC)
