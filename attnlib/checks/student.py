"""Whose notebook this is. Only the order of the options and the numbers of a question depend on it."""

import os
import unicodedata

# The environment variable that holds the student's id. JupyterHub's own, JUPYTERHUB_USER, is not read: on a public hub,
# it is not the id under which work is handed in.
STUDENT_VARIABLE = "ATTENTION_STUDENT"


def set_student(student: str) -> None:
    """Say whose notebook this is. Its questions then have an order of options, and numbers, of the student's own.

    The same student gets the same ones everywhere: in a browser, on another computer, and when the work is graded.

    Args:
        student: the id that your course site or instructor names. Without one, options are shown in the order in which
            they were written.

    Raises:
        TypeError: the id is not a string.
        ValueError: the id contains a character that no id can have.

    Example:
        >>> set_student("ada")
        >>> current_student()
        'ada'
        >>> set_student("")
    """
    if not isinstance(student, str):
        raise TypeError(f'student is {student!r}, but a string is needed: set_student("ada"), with the quotation marks')
    if odd := [character for character in student if character == "\0" or unicodedata.category(character) == "Cs"]:
        raise ValueError(
            f"student is {student!r}, but an id cannot contain the character {odd[0]!r}. Type the id by hand, as your "
            "course site shows it"
        )
    os.environ[STUDENT_VARIABLE] = student


def current_student() -> str:
    """Return the id that was stated, or ``""`` if none was."""
    return os.environ.get(STUDENT_VARIABLE, "")


def normal(student: str) -> str:
    """Return an id without what goes wrong when it is typed or copied: spaces around it, capitals, invisible marks."""
    visible = (c for c in unicodedata.normalize("NFKC", student) if unicodedata.category(c) != "Cf")
    return "".join(visible).strip().casefold()
