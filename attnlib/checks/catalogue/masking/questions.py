"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.masking.sections import CACHE, LEAKS, POLARITY
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("mask-polarity", "ABCD", POLARITY),
    Question("zero-weight-leak", "ABCD", LEAKS),
    Question("why-a-cache-works", "ABCD", CACHE),
)
