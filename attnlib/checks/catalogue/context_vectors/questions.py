"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.context_vectors.sections import ALIGNMENT, BOTTLENECK, OTHER_ORDER
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("bottleneck", "ABCD", BOTTLENECK),
    Question("order-of-steps", "ABCD", OTHER_ORDER),
    Question("reading-an-alignment", "ABCD", ALIGNMENT),
)
