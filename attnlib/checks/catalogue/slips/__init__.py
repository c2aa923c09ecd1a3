"""The questions of 09-slips, and the exercise of its published example. Its other tasks ask for tests."""

from attnlib.checks.catalogue.slips import sections as sections
from attnlib.checks.catalogue.slips import weights_and_output
from attnlib.checks.catalogue.slips.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = (weights_and_output.EXERCISE,)
