"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from math import isqrt

from attnlib.checks.catalogue.queries_keys_values.sections import LOOKUP, SQUARE_ROOT, TWO
from attnlib.checks.options import Numbers, Question


def _spread(variance: int, width: int) -> dict[str, int]:
    """Return the numbers of a question about the spread of a dot product. The variance and the width are squares."""
    options = {"A": isqrt(width), "B": isqrt(variance * width), "C": variance * isqrt(width), "D": variance**2 * width}
    return {"variance": variance, "width": width} | options


SPREADS = Numbers(
    "Here, the variance is **{variance}**, and $D = {width}$.",
    tuple(_spread(variance, width) for variance in (4, 9, 16, 25) for width in (64, 16, 100, 256)),
)
QUESTIONS: tuple[Question, ...] = (
    Question("spread-of-scores", "ABCD", SQUARE_ROOT, SPREADS),
    Question("a-key-twice", "ABCD", LOOKUP),
    Question("what-must-agree", "ABCD", TWO),
)
