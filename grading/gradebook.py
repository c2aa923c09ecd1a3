"""Whom a gradebook knows, asked without changing it or making one; and whether that is whom the class's files know.

The gradebook and the outcomes of a class are written together, but kept apart. Where ATTENTION_DB names another
gradebook than the one that a class was graded with, or that one is gone, everybody would seem to have earned nothing.
"""

from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, create_engine, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from grading._untyped import Assignment, SubmittedAssignment
from grading.course import Course, GradingError
from grading.run_state import RunState


def connect(url: str) -> Connection | None:
    """Return a connection to a gradebook that is there, or None; opening a file that is not would make one."""
    parts = make_url(url)
    if parts.get_backend_name() == "sqlite":
        file = Path(parts.database or "")
        if not file.is_file() or not file.stat().st_size:
            return None
    connection = create_engine(url, poolclass=NullPool).connect()
    if inspect(connection).has_table(Assignment.__tablename__):
        return connection
    connection.close()
    return None


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
    """Return the students of whom a gradebook has a submission to an assignment."""
    connection = connect(url)
    if connection is None:
        return set()
    with closing(connection):
        its = select(SubmittedAssignment.student_id).join(Assignment).where(Assignment.name == assignment)
        return set(connection.scalars(its))


def require_agreement(course: Course, assignment: str) -> set[str]:
    """Return the students of whom the class's gradebook has a submission, where that is what the class's files say.

    Raises:
        GradingError: students were graded, and the gradebook knows none of them.
    """
    url = course.config().CourseDirectory.db_url
    outcomes, known = RunState(course, assignment).all()[0], submitters(url, assignment)
    graded = {outcome.student for outcome in outcomes if outcome.verdict != "infrastructure"}  # that writes no grades
    if graded and not graded & known:
        raise GradingError(
            f"{course.outcomes(assignment)} says that {len(graded)} submissions to {assignment} were graded, but the "
            f"gradebook {shown(url)} knows none of them, so nothing was changed. If their marks are in another "
            f"gradebook, copy them into this one: `python -m grading migrate --from {_former(course)}`; or set "
            f"ATTENTION_DB to that one's address, or unset it to use the class's own. If the marks are lost, "
            f"`python -m grading run {assignment} --regrade` grades everybody again"
        )
    return known


def _former(course: Course) -> str:
    """Return the address to migrate from, where it can be guessed: the file that is used without ATTENTION_DB."""
    file = course.folder / "gradebook.db"
    own = f"sqlite:///{file}"
    return own if file.is_file() and own != course.config().CourseDirectory.db_url else "URL"
