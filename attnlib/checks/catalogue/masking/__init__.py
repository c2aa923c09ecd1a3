"""The exercises of the assignment 05-masking: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.masking import (
    attention_with_bias,
    causal_mask,
    kv_cache,
    masked_attention,
    padding_mask,
)
from attnlib.checks.catalogue.masking import sections as sections
from attnlib.checks.catalogue.masking.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(
    module.EXERCISE for module in (causal_mask, padding_mask, masked_attention, attention_with_bias, kv_cache)
)
