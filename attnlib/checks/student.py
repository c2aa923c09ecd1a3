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
        student: the id under which you hand in your work. Without one, options are shown in the order in which they
            were written.

    Raises:
        TypeError: the id is not a string.

    Example:
        >>> set_student("ada")
        >>> current_student()
        'ada'
        >>> set_student("")
    """
    if not isinstance(student, str):
        raise TypeError(f'student is {student!r}, but a string is needed: set_student("ada"), with the quotation marks')
    os.environ[STUDENT_VARIABLE] = student


def current_student() -> str:
    """Return the id that was stated, or ``""`` if none was."""
    return os.environ.get(STUDENT_VARIABLE, "")


def normal(student: str) -> str:
    """Return an id without what people get wrong when they type it: spaces around it, and capital letters."""
    return unicodedata.normalize("NFKC", student).strip().casefold()
