"""The multiple-choice questions. Which option is right is written in ``solutions/answers.toml``."""

from attnlib.checks.catalogue.decoder.sections import GROUPS, PREFILL, SWIGLU
from attnlib.checks.options import Numbers, Question


def _width(times: int) -> dict[str, int]:
    """Return the numbers of a question about a layer that is so many times as wide inside as the model."""
    return {"A": times, "B": times // 2, "thirds": 2 * times, "D": 3 * times // 4}


WIDTHS = Numbers("The old layer is ${A}E$ wide inside.", tuple(map(_width, (4, 8, 16, 20))))
QUESTIONS: tuple[Question, ...] = (
    Question("swiglu-width", "ABCD", SWIGLU, WIDTHS),
    Question("what-groups-save", "ABCD", GROUPS),
    Question("prefill-is-fast", "ABCD", PREFILL),
)
