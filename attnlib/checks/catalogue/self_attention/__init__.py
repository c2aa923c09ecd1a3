"""The exercises of the assignment 02-self-attention: one file each, with inputs, reference and mistakes."""

from attnlib.checks.catalogue.self_attention import (
    attention,
    cosine,
    dot,
    gaussian,
    gaussian_without_differences,
    self_attention,
    softmax,
)
from attnlib.checks.catalogue.self_attention import sections as sections
from attnlib.checks.catalogue.self_attention.questions import QUESTIONS as QUESTIONS
from attnlib.checks.exercise import Exercise

_MODULES = (softmax, dot, cosine, gaussian, gaussian_without_differences, attention, self_attention)
EXERCISES: tuple[Exercise, ...] = tuple(module.EXERCISE for module in _MODULES)
