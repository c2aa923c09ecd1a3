"""The multiple-choice questions, which ask for the line of a listing that is wrong, and why.

Which line is wrong is written in ``solutions/answers.toml``.
"""

from attnlib.checks.catalogue.slips.sections import CACHE, OFFSET, SHIFT, SPLIT, TURN, WRONG_ROOT
from attnlib.checks.options import Question

QUESTIONS: tuple[Question, ...] = (
    Question("listing-softmax", "ABCD", SHIFT),
    Question("listing-attention", "ABCD", WRONG_ROOT),
    Question("listing-mask", "ABCD", OFFSET),
    Question("listing-heads", "ABCD", SPLIT),
    Question("listing-rope", "ABCD", TURN),
    Question("listing-cache", "ABCD", CACHE),
)
