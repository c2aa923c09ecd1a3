"""The questions of the assignment 09-slips. Its other tasks ask for tests, and for an exercise of 03 mended."""

from attnlib.checks.catalogue.slips import sections as sections
from attnlib.checks.catalogue.slips.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = ()
