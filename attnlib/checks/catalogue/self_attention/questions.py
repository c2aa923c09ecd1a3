"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.self_attention.sections import SCALE, SIMILARITIES, SOFTMAX
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("shift-or-stretch", "ABCD", SOFTMAX),
    Question("moved-together", "ABCD", SIMILARITIES),
    Question("forgotten-root", "ABCD", SCALE),
)
