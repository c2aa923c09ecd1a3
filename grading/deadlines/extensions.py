"""How much more time each student has for an assignment: what was granted, and the late days that were used.

Every student has a number of late days: days that work may be late, over the whole term, without a penalty. They are
used in the order of the due dates, and a part of a day counts as a whole one.

For an exam, neither late days nor extensions for all assignments count.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grading.class_settings import read_class
from grading.course import Course
from grading.deadlines.table import DAY, EVERY, Grant, in_force, read_table
from grading.exam.declared import exam_names
from grading.gradebook.lookup import Work, extensions, submitted_work
from grading.gradebook.students import students

NOTHING = timedelta(0)


@dataclass(frozen=True)
class Extension:
    """By how much a due date moves, and why: what was granted, if anything was, and how many late days are used."""

    granted: timedelta = NOTHING
    grant: Grant | None = None
    late_days: int = 0

    @property
    def total(self) -> timedelta:
        """By how much the due date moves."""
        return self.granted + self.late_days * DAY

    @property
    def by(self) -> str:
        """Who granted it."""
        return self.grant.by if self.grant else "late days" if self.late_days else "nobody"

    def __str__(self) -> str:
        said = [f"{days(self.granted)} granted by {self.grant.by}: {self.grant.why}"] if self.grant else []
        said += [f"{days(self.late_days * DAY)} from the late days"] if self.late_days else []
        return "; ".join(said) or "nothing is granted"


def days(time: timedelta) -> str:
    """Return a time as a number of days."""
    return f"{time / DAY:.4g} {'day' if time == DAY else 'days'}"


class Extensions:
    """The extensions of a class. If the class has neither a table nor late days, those in the gradebook count."""

    def __init__(self, course: Course, *, proposed: Iterable[Grant] = ()) -> None:
        self._url = url = course.config().CourseDirectory.db_url
        self._exams = exam_names(course).keys()
        self.bank = read_class(course).late_days
        table = read_table(course, students(url).keys())
        self.rows = [*(table or ()), *proposed]
        self.govern = table is not None or bool(self.rows or self.bank)
        self._grants: dict[str, dict[str, Grant]] = {}
        self._work: defaultdict[str, list[Work]] = defaultdict(list)
        for work in submitted_work(url) if self.govern else ():
            self._work[work.student].append(work)

    def of(self, student: str, assignment: str, due: datetime, came: datetime | None, *, late: bool) -> Extension:
        """Return a student's extension for an assignment.

        Args:
            student: the student's id.
            assignment: the assignment.
            due: when it is due for the class.
            came: when the submission was handed in, if that is known.
            late: whether it was late by an unknown time, which then counts as one late day.
        """
        earlier = [work for work in self._work[student] if work.due and (work.due, work.assignment) < (due, assignment)]
        left = self.bank - sum(self._used(earlier))
        return self._extension(Work(student, assignment, due, came), left, late=late)

    def _used(self, works: Sequence[Work]) -> Iterable[int]:
        """Yield the late days that each submission used, in the order of the due dates."""
        left = self.bank
        for work in sorted(works, key=lambda work: (str(work.due), work.assignment)):
            used = self._extension(work, left, late=False).late_days
            left -= used
            yield used

    def _extension(self, work: Work, left: int, *, late: bool) -> Extension:
        assert work.due is not None
        grant = self._in_force(work.assignment).get(work.student)
        granted = grant.extension(work.due) if grant else NOTHING
        over = DAY if late else work.came - work.due - granted if work.came else NOTHING
        needed = max(0, -(-over // DAY))
        return Extension(granted, grant, 0 if work.assignment in self._exams else min(left, needed))

    def _in_force(self, assignment: str) -> dict[str, Grant]:
        """Return the row of the table that counts for each student who has one for an assignment."""
        if assignment not in self._grants:
            rows = (row for row in self.rows if row.assignment != EVERY or assignment not in self._exams)
            self._grants[assignment] = in_force(rows, assignment)
        return self._grants[assignment]

    def granted(self, assignment: str, due: datetime) -> dict[str, timedelta]:
        """Return by how much the due date moves for each student to whom more time was granted."""
        if not self.govern:
            return {student: more for student, name, more in extensions(self._url) if name == assignment}
        return {student: grant.extension(due) for student, grant in self._in_force(assignment).items()}
