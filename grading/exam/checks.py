"""The checks of an exam: they take answers, and say nothing about them.

This file becomes ``attnlib/checks/__init__.py`` in the wheel for an exam (`grading.exam.library`). No other file in
that wheel knows what is right or which mistakes are known, so there is nothing to switch on.
"""

import json
import sys
from pathlib import Path
from typing import Any

from attnlib.checks.options import Numbers, Options, Question
from attnlib.checks.student import current_student, normal, set_student

__all__ = ["CheckFailed", "check", "check_choice", "check_tests", "set_student", "show_options"]

QUESTIONS_FILE = Path(__file__).with_name("questions.json")
TAKEN = "• {} will be graded from the notebook that you hand in."
NO_ID = (
    'State your id first: in a cell above, run `from attnlib.checks import set_student`, then `set_student("…")` with '
    "the id that your course site or instructor names, and then run this cell again."
)


class CheckFailed(AssertionError):
    """An answer cannot be accepted. The text says why."""


def check(name: str, implementation: Any, *, points: float = 1, **options: Any) -> None:
    """Take a function or class as the answer to an exercise.

    Raises:
        TypeError: it cannot be called.
    """
    if not callable(implementation):
        raise TypeError(f"{name} is a {type(implementation).__name__}, but a function or class is needed")
    print(TAKEN.format(name))


def check_tests(name: str, tests: Any, *, points: float = 1, **options: Any) -> None:
    """Take a list of tests.

    Raises:
        TypeError: it is not a list of functions.
    """
    if not isinstance(tests, list | tuple) or not all(map(callable, tests)):
        raise TypeError(f"the tests of {name} are {tests!r}, but a list of functions is needed")
    print(TAKEN.format(f"Your list of tests of {name}"))


def show_options(name: str) -> None:
    """Show the options of a question in the order of the student who has stated an id.

    Raises:
        CheckFailed: nobody has stated an id.
    """
    _display(_options(name))


def check_choice(name: str, answer: str | None, *, points: float = 1) -> None:
    """Take the letter of an option, and repeat which option that is.

    Raises:
        CheckFailed: nobody has stated an id, or the answer is not one of the student's letters.
    """
    options = _options(name)
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if letter not in options.letters:
        letters = ", ".join(f'"{letter}"' for letter in options.letters)
        raise CheckFailed(f"{name}: the answer is {answer!r}; expected one of {letters}, with the quotation marks")
    print(TAKEN.format(f"{name}: {letter}, {options.texts[letter]},"))


def _options(name: str) -> Options:
    if not normal(current_student()):
        raise CheckFailed(NO_ID)
    asked = json.loads(QUESTIONS_FILE.read_text(encoding="utf-8"))[name]
    numbers = Numbers(asked["given"], tuple(asked["sets"])) if asked["sets"] else None
    return Options(Question(name, asked["options"], None, numbers), current_student())


def _display(shown: Options) -> None:
    """Show options as rich output in a notebook, as text elsewhere. IPython is used only if it is running."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(shown)
    else:
        print(shown)
