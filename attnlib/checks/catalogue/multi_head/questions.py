"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.multi_head.sections import ONE_AVERAGE, OUTPUT_PROJECTION, SCALE
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("wider-or-more", "ABCD", ONE_AVERAGE),
    Question("more-heads", "ABCD", SCALE),
    Question("without-w-o", "ABCD", OUTPUT_PROJECTION),
)
