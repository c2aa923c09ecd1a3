"""The exceptions that refuse a call to code that would answer an exercise.

They are raised by code that runs with the globals of a library, and imports them from here. Of the grader's modules,
this is the only one that student code can find among those that have been imported.
"""


class Forbidden(RuntimeError):  # noqa: N818 (students read this name in their feedback)
    """An answer called a function that would solve its exercise."""


class Withheld(RuntimeError):  # noqa: N818 (students read this name in their feedback)
    """A cell called a part of attnlib that answers a question that has not been asked yet."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"attnlib's {name} answers a question in this notebook. While the notebook is being graded, it is not "
            "available until your own answer to that question has been collected."
        )
