"""The students in a gradebook: read them, and write those of a roster."""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass

from sqlalchemy import create_engine, delete, insert, select, update
from sqlalchemy.pool import NullPool

from grading._nbgrader import Student, SubmittedAssignment
from grading.gradebook.create import create_tables
from grading.gradebook.lookup import connect
from grading.gradebook.sqlite import wait_and_lock
from grading.text import JOINERS, printable


@dataclass(frozen=True)
class StudentEntry:
    """One student. What is not known is the empty string."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""

    @property
    def is_described(self) -> bool:
        """Whether more than the id is known."""
        return any((self.first_name, self.last_name, self.email, self.lms_user_id))

    @property
    def name(self) -> str:
        """The first and the last name, as far as they are known, without unprintable characters."""
        return printable(" ".join(filter(None, (self.first_name, self.last_name))), JOINERS)


def students(url: str, student: str | None = None) -> dict[str, StudentEntry]:
    """Return the students in a gradebook by id: all of them, or only the one who is asked for."""
    connection = connect(url)
    if connection is None:
        return {}
    asked = select(Student.id, Student.first_name, Student.last_name, Student.email, Student.lms_user_id)
    if student is not None:
        asked = asked.where(Student.id == student)
    with closing(connection):
        return {row.id: StudentEntry(*(value or "" for value in row)) for row in connection.execute(asked)}


def with_work(url: str) -> set[str]:
    """Return the students who have a submission to any assignment in the gradebook."""
    connection = connect(url)
    if connection is None:
        return set()
    with closing(connection):
        return set(connection.scalars(select(SubmittedAssignment.student_id).distinct()))


@contextmanager
def written(
    url: str, new: Collection[StudentEntry], changed: Collection[StudentEntry], removed: Collection[str]
) -> Iterator[None]:
    """Write students in one transaction, which ends with the block: if the block fails, nothing is written."""
    create_tables(url)
    engine = create_engine(url, poolclass=NullPool)
    wait_and_lock(engine)
    with engine.begin() as connection:
        for entry in changed:
            connection.execute(update(Student).where(Student.id == entry.id).values(**_values(entry)))
        if new:
            connection.execute(insert(Student), [_values(entry) for entry in new])
        for student in removed:
            connection.execute(delete(Student).where(Student.id == student))
        yield


def _values(entry: StudentEntry) -> dict[str, str | None]:
    return {column: text or None for column, text in asdict(entry).items()}
