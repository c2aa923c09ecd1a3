"""The questions with options to choose from. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.decoder.sections import GROUPS, PREFILL, SWIGLU
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("swiglu-width", "ABCD", SWIGLU),
    Question("what-groups-save", "ABCD", GROUPS),
    Question("prefill-is-fast", "ABCD", PREFILL),
)
