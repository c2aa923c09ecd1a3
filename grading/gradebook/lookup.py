"""Look up the students and assignments that a gradebook knows, without changing or creating it."""

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from grading._nbgrader import Assignment, BaseCell, Comment, Grade, SubmittedAssignment, SubmittedNotebook


def connect(url: str) -> Connection | None:
    """Return a connection to a gradebook, or None if there is none, because opening a missing file would create it."""
    parts = make_url(url)
    if parts.get_backend_name() == "sqlite":
        file = Path(parts.database or "")
        if not file.is_file() or not file.stat().st_size:
            return None
    connection = _engine(url).connect()
    if inspect(connection).has_table(Assignment.__tablename__):
        return connection
    connection.close()
    return None


@lru_cache(maxsize=8)
def _engine(url: str) -> Engine:
    """Return a cached engine, which keeps the SQL that it has compiled, but no open connection."""
    return create_engine(url, poolclass=NullPool)


def shown(url: str) -> str:
    """Return the address of a gradebook without its password."""
    return make_url(url).render_as_string(hide_password=True)


def is_registered(url: str, assignment: str) -> bool:
    """Return whether a gradebook knows an assignment."""
    connection = connect(url)
    if connection is None:
        return False
    with closing(connection):
        return connection.scalar(select(Assignment.id).where(Assignment.name == assignment)) is not None


def submitters(url: str, assignment: str) -> set[str]:
    """Return the students who have a submission to an assignment in a gradebook."""
    connection = connect(url)
    if connection is None:
        return set()
    with closing(connection):
        its = select(SubmittedAssignment.student_id).join(Assignment).where(Assignment.name == assignment)
        return set(connection.scalars(its))


def marked_by_hand(url: str, assignment: str) -> set[str]:
    """Return the students to whose submission for an assignment a person has given a mark."""
    connection = connect(url)
    if connection is None:
        return set()
    with closing(connection):
        its = select(SubmittedAssignment.student_id).join(SubmittedNotebook).join(Grade).join(Assignment)
        its = its.where(Assignment.name == assignment, Grade.manual_score.is_not(None))
        return set(connection.scalars(its.distinct()))


def with_due_date(url: str) -> set[str]:
    """Return the assignments for which a gradebook has a due date."""
    connection = connect(url)
    if connection is None:
        return set()
    with closing(connection):
        return set(connection.scalars(select(Assignment.name).where(Assignment.duedate.is_not(None))))


def due_date_of(url: str, assignment: str) -> datetime | None:
    """Return when an assignment is due, in UTC, or None if a gradebook does not say."""
    connection = connect(url)
    if connection is None:
        return None
    with closing(connection):
        return connection.scalar(select(Assignment.duedate).where(Assignment.name == assignment))


@dataclass(frozen=True)
class Work:
    """A student's submission: when it is due for the class, and when it was handed in, if that is known."""

    student: str
    assignment: str
    due: datetime | None
    came: datetime | None


def submitted_work(url: str) -> list[Work]:
    """Return every submission to an assignment that has a due date."""
    connection = connect(url)
    if connection is None:
        return []
    columns = SubmittedAssignment.student_id, Assignment.name, Assignment.duedate, SubmittedAssignment.timestamp
    asked = select(*columns).join(Assignment).where(Assignment.duedate.is_not(None))
    with closing(connection):
        return [Work(*row) for row in connection.execute(asked)]


def extensions(url: str) -> list[tuple[str, str, timedelta]]:
    """Return the students who have an extension, the assignments for which they have it, and how long it is."""
    connection = connect(url)
    if connection is None:
        return []
    asked = select(SubmittedAssignment.student_id, Assignment.name, SubmittedAssignment.extension).join(Assignment)
    with closing(connection):
        return [(*row,) for row in connection.execute(asked.where(SubmittedAssignment.extension.is_not(None)))]


def comments_by_hand(url: str, assignment: str) -> dict[str, dict[str, str]]:
    """Return what people have commented on the answers to an assignment: student -> cell -> text."""
    connection = connect(url)
    if connection is None:
        return {}
    asked = select(SubmittedAssignment.student_id, BaseCell.name, Comment.manual_comment).select_from(Comment)
    asked = asked.join(BaseCell).join(SubmittedNotebook).join(SubmittedAssignment).join(Assignment)
    asked = asked.where(Assignment.name == assignment, Comment.manual_comment.is_not(None))
    found: dict[str, dict[str, str]] = {}
    with closing(connection):
        for student, cell, text in connection.execute(asked):
            found.setdefault(student, {})[cell] = text
    return found
