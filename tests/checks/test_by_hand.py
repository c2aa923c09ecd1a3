"""The gradients that are worked out by hand are those of autograd, and whoever uses them needs no torch."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.gradients import GRADIENTS
from attnlib.checks.examiner import Examination

BY_HAND = [name for name, exercise in CATALOGUE.items() if exercise.by_hand]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", BY_HAND)
def test_gradients_by_hand_are_those_of_autograd(name, seed):
    ours = Examination(CATALOGUE[name], "torch", seed)
    theirs = Examination(replace(CATALOGUE[name], by_hand=None), "torch", seed)
    numbers = [i for i, case in enumerate(ours.cases) if case.part == GRADIENTS]
    assert numbers
    for number in numbers:
        got, want = ours.expected[number].arrays, theirs.expected[number].arrays
        assert list(got) == list(want)
        for array in want:
            np.testing.assert_allclose(got[array], want[array], rtol=0, atol=1e-12)


EXAMINING = """
import sys
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.examiner import Examination

for name in sys.argv[1:]:
    examination = Examination(CATALOGUE[name], "torch", 0)
    examination.report(dict(enumerate(examination.expected)))
    examination.report({i: examination._answer(CATALOGUE[name].mistakes[0], i) for i in (0, 1)})
print("torch" in sys.modules)
"""


@pytest.mark.parametrize("names", [BY_HAND, ["rnn_cell"]], ids=["by hand", "by autograd"])
def test_to_judge_what_is_worked_out_by_hand_takes_no_torch(names):
    done = subprocess.run([sys.executable, "-c", EXAMINING, *names], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(names != BY_HAND)
