"""The exercises of the assignment 07-transformer: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.transformer import backward, block, online
from attnlib.checks.catalogue.transformer import sections as sections
from attnlib.checks.catalogue.transformer.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(module.EXERCISE for module in (block, backward, online))
