"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.transformer.sections import INVARIANT, JOBS, SUM_CHECK
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("silent-attention", "ABCD", JOBS),
    Question("upstream-of-ones", "ABCD", SUM_CHECK),
    Question("blocks-in-reverse", "ABCD", INVARIANT),
)
