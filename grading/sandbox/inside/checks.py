"""The stand-in for ``attnlib.checks`` in the box. An assignment's checks are answered outside, where the answers are.

A notebook imports the names and may call them; nothing is examined here, because nothing is known here.
"""

from typing import Any

__all__ = [
    "CheckFailed",
    "check",
    "check_choice",
    "check_tests",
    "examine",
    "exercises",
    "failing_case",
    "set_student",
    "show_options",
]

NOT_EXAMINED = "is not examined here: while a notebook is being graded, only the assignment's own checks are answered."
listeners: list[Any] = []


class CheckFailed(AssertionError):  # noqa: N818 (notebooks import it by this name, as from attnlib.checks)
    """Nothing was earned."""


class NotExamined:
    """Stands in for a report."""

    passed, score, mistake = False, 0.0, None

    def __init__(self, name: object) -> None:
        self.message = f"{name!s:.80} {NOT_EXAMINED}"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self.message


def examine(name: str, implementation: Any, **options: Any) -> NotExamined:
    """Say that nothing is examined here."""
    return NotExamined(name)


def check(name: str, implementation: Any, **options: Any) -> None:
    """Say that nothing is examined here."""
    print(NotExamined(name))


check_choice = check_tests = check


def failing_case(name: str) -> NotExamined:
    """Return what is false and says that nothing is examined here."""
    return NotExamined(name)


def show_options(name: str) -> None:
    """Show nothing: the options are put into the feedback outside, as the student saw them."""


def set_student(student: str) -> None:
    """Do nothing: who handed the work in is known outside."""


def exercises() -> tuple[str, ...]:
    """Return no names: the exercises are known outside."""
    return ()
