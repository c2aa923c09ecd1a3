"""The exceptions that refuse a call to code that would answer an exercise.

The code that raises them runs with the globals of a library, so it has to import them from here. This is therefore the
only one of the grader's modules that stays in ``sys.modules`` while student code runs.
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
