"""What a gradebook knows about one submitted notebook: its scores and comments, for the student's feedback page."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from grading._nbgrader import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    MissingEntry,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from grading.gradebook.lookup import connect


@dataclass(frozen=True)
class CellMarks:
    """The score of a cell, whether a person still has to mark it, and whether a person has marked it before."""

    score: float
    max_score: float
    needs_marking: bool
    marked: bool


class _ByCell(dict[str, Any]):
    """What the gradebook knows about cells, by their names."""

    def __missing__(self, name: str) -> Any:
        raise MissingEntry(f"the gradebook has no entry for the cell {name} of this submission")


@dataclass(frozen=True)
class NotebookMarks:
    """A notebook's points, the points deducted for lateness, and the marks and comments of its cells, by cell name."""

    score: float
    max_score: float
    penalty: float
    cells: dict[str, CellMarks]
    comments: dict[str, str]


def notebook_marks(url: str, student: str, assignment: str, notebook: str) -> NotebookMarks:
    """Return the marks of a submitted notebook.

    Raises:
        MissingEntry: the gradebook does not know the submission. Looking up an unknown cell raises the same
            error.
    """
    connection = connect(url)
    if connection is None:
        raise MissingEntry(f"there is no gradebook, so {student} has no marks for {assignment}/{notebook}")
    with closing(connection):
        found = connection.execute(_totals(student, assignment, notebook)).one_or_none()
        if found is None:
            raise MissingEntry(f"the gradebook has no submission by {student} for {assignment}/{notebook}")
        its_id, score, max_score, penalty = found
        cells = _ByCell(
            (name, CellMarks(earned, possible, needs_marking, by_hand is not None))
            for name, earned, possible, needs_marking, by_hand in connection.execute(_grades(its_id))
        )
        comments = _ByCell((name, text or "") for name, text in connection.execute(_comments(its_id)))
    return NotebookMarks(score, max_score, penalty or 0, cells, comments)


def _totals(student: str, assignment: str, notebook: str) -> Select[Any]:
    columns = SubmittedNotebook.id, SubmittedNotebook.score, SubmittedNotebook.max_score
    query = select(*columns, SubmittedNotebook.late_submission_penalty)
    query = query.join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
    query = query.join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
    query = query.join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
    conditions = SubmittedAssignment.student_id == student, Assignment.name == assignment, Notebook.name == notebook
    return query.where(*conditions)


def _grades(notebook: str) -> Select[Any]:
    query = select(BaseCell.name, Grade.score, Grade.max_score, Grade.needs_manual_grade, Grade.manual_score)
    return query.select_from(Grade).join(BaseCell, BaseCell.id == Grade.cell_id).where(Grade.notebook_id == notebook)


def _comments(notebook: str) -> Select[Any]:
    query = select(BaseCell.name, Comment.comment).select_from(Comment)
    return query.join(BaseCell, BaseCell.id == Comment.cell_id).where(Comment.notebook_id == notebook)
