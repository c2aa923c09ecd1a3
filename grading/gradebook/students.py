"""The students in a gradebook: who they are, as nbgrader stores it."""

from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import select

from grading._untyped import Student
from grading.gradebook.lookup import connect
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
