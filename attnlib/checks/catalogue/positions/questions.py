"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.positions.sections import CLOCKS, PAIRS, STEP
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("why-slow-hands", "ABCD", CLOCKS),
    Question("added-or-turned", "ABCD", STEP),
    Question("other-layout", "ABCD", PAIRS),
)
