"""The exercises of the assignment 04-multi-head: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.multi_head import (
    merge_heads,
    multi_head_attention,
    multi_head_attention_module,
    split_heads,
)
from attnlib.checks.catalogue.multi_head import sections as sections
from attnlib.checks.catalogue.multi_head.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = tuple(
    file.EXERCISE for file in (split_heads, merge_heads, multi_head_attention, multi_head_attention_module)
)
