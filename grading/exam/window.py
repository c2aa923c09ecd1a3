"""When an exam begins and ends, for the class and for students with an extension.

An exam ends at its due date in the gradebook, or later for students to whom `deadlines.csv` grants more time for this
assignment only. What is granted for all assignments is meant for work that takes days, and does not count, nor do late
days. Until an exam has ended for everybody, nobody is told anything about the answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from grading.course import Course, GradingError
from grading.deadlines.extensions import Extensions
from grading.exam.declared import TIME_FORMAT, exam_names, now
from grading.gradebook.lookup import due_date_of

IN_TIME, TOO_EARLY, TOO_LATE, UNKNOWN = "in time", "before the exam began", "after the exam ended", "time unknown"


@dataclass(frozen=True)
class Exam:
    """The time window of an exam, in UTC.

    Attributes:
        assignment: its name.
        begin: when it begins.
        end: when it ends for the class; None if the gradebook has no due date.
        ends: when it ends for students who have an extension.
    """

    assignment: str
    begin: datetime
    end: datetime | None
    ends: Mapping[str, datetime]

    @property
    def last_end(self) -> datetime | None:
        """When it ends for everybody, if that is known."""
        return self.end and max([self.end, *self.ends.values()])

    @property
    def is_over(self) -> bool:
        """Whether it has ended for everybody. An exam without an end is never over."""
        return self.last_end is not None and self.last_end < now()

    def place(self, student: str, came: datetime | None) -> str:
        """Return whether a time is before, within or after a student's window, in words."""
        end = self.ends.get(student, self.end)
        if came is None or end is None:
            return UNKNOWN
        return TOO_EARLY if came < self.begin else TOO_LATE if came > end else IN_TIME

    @property
    def withheld(self) -> str:
        """Why nobody is told anything yet, as a clause for a message."""
        if self.last_end is None:
            command = f"`python -m grading exam {self.assignment} --end DATE`"
            return f"the exam {self.assignment} has no end: set one with {command}"
        return f"the exam {self.assignment} ends for the last student on {self.last_end:{TIME_FORMAT}}"


def exam_of(course: Course, assignment: str) -> Exam | None:
    """Return the window of an exam, or None if the assignment is not an exam.

    Raises:
        GradingError: the settings, or the table of extensions, cannot be read, or the exam ends before it begins.
    """
    begin = exam_names(course).get(assignment)
    if begin is None:
        return None
    end = due_date_of(course.config().CourseDirectory.db_url, assignment)
    if end and end <= begin:
        raise GradingError(
            f"the exam {assignment} begins at {begin:{TIME_FORMAT}} and ends at {end:{TIME_FORMAT}}: set both with "
            f"`python -m grading exam {assignment} --begin DATE --end DATE`"
        )
    granted = Extensions(course).granted(assignment, end) if end else {}
    more = {student: extension for student, extension in granted.items() if extension}  # one of 0 days is revoked
    return Exam(assignment, begin, end, {student: end + extension for student, extension in more.items() if end})


def not_over(course: Course) -> list[str]:
    """Return the names of the exams that have not ended for everybody."""
    return [name for name in exam_names(course) if (exam := exam_of(course, name)) and not exam.is_over]


def require_over(course: Course, assignment: str, what: str) -> None:
    """Check that an assignment is not an exam, or has ended for everybody.

    Raises:
        GradingError: it is an exam that has not ended for everybody. The text begins with ``what``.
    """
    exam = exam_of(course, assignment)
    if exam and not exam.is_over:
        raise GradingError(f"{what}: {exam.withheld}")
