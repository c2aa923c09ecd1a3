"""The questions with options to choose from. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.queries_keys_values.sections import LOOKUP, SQUARE_ROOT, TWO
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("spread-of-scores", "ABCD", SQUARE_ROOT),
    Question("a-key-twice", "ABCD", LOOKUP),
    Question("what-must-agree", "ABCD", TWO),
)
