"""The exercises of the assignment 03-queries-keys-values: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.queries_keys_values import (
    attention_cost,
    attention_shapes,
    attention_with_counts,
    scaled_dot,
    scaled_dot_product_attention,
)
from attnlib.checks.catalogue.queries_keys_values import sections as sections
from attnlib.checks.catalogue.queries_keys_values.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

_MODULES = (scaled_dot, scaled_dot_product_attention, attention_with_counts, attention_shapes, attention_cost)
EXERCISES: tuple[Exercise, ...] = tuple(module.EXERCISE for module in _MODULES)
