"""The exercises of the assignment 07-transformer: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.transformer import (
    attention_in_blocks,
    online_softmax,
    scaled_dot_product_attention_backward,
    transformer_block,
)
from attnlib.checks.catalogue.transformer import sections as sections
from attnlib.checks.catalogue.transformer.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(
    module.EXERCISE
    for module in (transformer_block, scaled_dot_product_attention_backward, online_softmax, attention_in_blocks)
)
