"""Read what came from a student's process as the answer to a multiple-choice question."""

from attnlib.checks.questions import Choice
from grading.answer_keys import answer_key
from grading.graded_cell import GradedCell
from grading.task import Answered


def read_choice(graded_cell: GradedCell, answered: Answered) -> Choice:
    """Return what came for a multiple-choice question, with the key.

    The text is read as it came, just as the check in a student's notebook reads it: a text that was shortened or made
    printable could name another option, or none. Feedback shows it only with its unprintable characters escaped.
    """
    question = graded_cell.question
    assert question is not None
    value = (answered.facts or {}).get("value")
    chosen, key = value if isinstance(value, str) else None, answer_key(question.name)
    whose = (answered.student, answered.stated, answered.differs, answered.exam)
    return Choice(question, chosen, graded_cell.points, key, answered.first, *whose)
