"""The exercises of the assignment 04-multi-head: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.multi_head import (
    head_contributions,
    merge_heads,
    multi_head_attention,
    multi_head_attention_module,
    split_heads,
)
from attnlib.checks.catalogue.multi_head import sections as sections
from attnlib.checks.catalogue.multi_head.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

_MODULES = (split_heads, merge_heads, multi_head_attention, head_contributions, multi_head_attention_module)
EXERCISES: tuple[Exercise, ...] = tuple(module.EXERCISE for module in _MODULES)
