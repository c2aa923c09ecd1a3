"""The exercises of the assignment 01-context-vectors: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.context_vectors import additive, bahdanau_step, general, luong_step, rnn_cell
from attnlib.checks.catalogue.context_vectors import sections as sections
from attnlib.checks.catalogue.context_vectors.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(
    module.EXERCISE for module in (rnn_cell, additive, general, bahdanau_step, luong_step)
)
