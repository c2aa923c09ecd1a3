"""Which options of the questions are right: read where answers are judged, from a file that no student gets."""

import tomllib
from functools import lru_cache
from pathlib import Path

from attnlib.checks.questions import AnswerKey
from grading.course import GradingError

FILE = Path(__file__).parents[1] / "solutions" / "answers.toml"


@lru_cache(maxsize=1)
def answer_keys() -> dict[str, AnswerKey]:
    """Return the key of every question, by its name.

    Raises:
        GradingError: the file is missing or cannot be read, or a right option is not among those that are explained.
    """
    try:
        found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GradingError(f"{FILE} cannot be read: {error}. Get it from the course again") from None
    keys = {name: AnswerKey(table.pop("right", ""), table) for name, table in found.items()}
    if odd := [name for name, key in keys.items() if key.right not in key.why]:
        raise GradingError(f"{FILE}: right has to be one of the options in {', '.join(odd)}")
    return keys


def answer_key(question: str) -> AnswerKey:
    """Return the key of a question.

    Raises:
        GradingError: it has none.
    """
    if question not in answer_keys():
        raise GradingError(f"{FILE} does not say which option of {question!r} is right: add the question there")
    return answer_keys()[question]
