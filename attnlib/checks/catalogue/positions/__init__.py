"""The exercises of the assignment 06-positions: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.positions import alibi_bias, apply_rope, equivariance_gap, sinusoidal_positions
from attnlib.checks.catalogue.positions import sections as sections
from attnlib.checks.catalogue.positions.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(
    module.EXERCISE for module in (equivariance_gap, sinusoidal_positions, apply_rope, alibi_bias)
)
