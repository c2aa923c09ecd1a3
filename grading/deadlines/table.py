"""The table of extensions, `deadlines.csv` in the class's folder: who got how much more time, from whom, and why.

Rows are only added, and the last one about a student and an assignment counts, so that the table also tells what was
granted before. A row for all assignments (`*`) applies to every assignment that has no row of its own.
"""

from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from grading.course import Course, GradingError
from grading.csv_file import Line, read_csv, to_csv
from grading.outcome import plain
from grading.report import cell
from grading.timestamp import due_date

NAME = "deadlines.csv"
HEADER = ("student", "assignment", "due", "extra days", "granted by", "why", "granted on")
EVERY = "*"  # in place of an assignment: all of them
MAX_BYTES = 10_000_000
DUE_FORMAT = "%Y-%m-%d %H:%M UTC"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Grant:
    """A row of the table. Either ``due`` or ``days`` is given, and the other is "".

    Attributes:
        student: the student's id.
        assignment: the assignment, or `*`.
        due: the new due date.
        days: by how many days the due date moves. 0 takes back what was granted before.
        by: who granted it.
        why: the reason.
        on: the day on which it was granted.
    """

    student: str
    assignment: str
    due: str
    days: str
    by: str
    why: str
    on: str = ""

    def extension(self, due: datetime) -> timedelta:
        """Return by how much this moves a due date, which has no time zone and is in UTC."""
        return due_date(self.due) - due if self.due else float(self.days) * DAY

    @property
    def wrong(self) -> str:
        """What is wrong with the row itself, or "" if nothing is."""
        if bool(self.due) == bool(self.days):
            return "it needs either a due date or a number of extra days"
        if not (self.by and self.why):
            return "it does not say who granted it and why"
        try:
            return (
                "" if abs(self.extension(datetime(2030, 1, 1))) < 36_500 * DAY else "it moves a due date by a century"
            )
        except (GradingError, ValueError, OverflowError) as error:
            return str(error)


def file_of(course: Course) -> Path:
    """Return the file with the table of a class."""
    return course.folder / NAME


def read_table(course: Course, known: Collection[str]) -> list[Grant] | None:
    """Return the rows, or None if the class has no table.

    Raises:
        GradingError: some rows are wrong, or are about a student who is not among the ``known``. All are named.
    """
    file = file_of(course)
    if course.files.changed(file) is None:
        return None
    lines = read_csv(file, MAX_BYTES, "a table of deadlines")
    if not lines or tuple(title.strip().casefold() for title in lines[0].cells) != HEADER:
        raise GradingError(f"{file} should begin with the titles {','.join(HEADER)}")
    rows = [(line.number, _grant(line)) for line in lines[1:]]
    wrong = [f"  line {number}: {why}" for number, row in rows if (why := wrong_grant(course, row, known))]
    if wrong:
        raise GradingError("\n".join([f"nothing was changed, because these rows of {file} are wrong:", *wrong]))
    return [row for _, row in rows]


def wrong_grant(course: Course, row: Grant, known: Collection[str]) -> str:
    """Return what is wrong with a row, or "" if nothing is."""
    if row.student not in known:
        return f"there is no student {plain(row.student)!r} in the gradebook"
    if row.assignment not in (EVERY, *course.assignments()):
        return f"there is no assignment {plain(row.assignment)!r}; expected the name of one, or {EVERY} for all"
    return row.wrong


def _grant(line: Line) -> Grant:
    return Grant(*(text.strip().removeprefix("'") for text in (*line.cells, *[""] * len(HEADER))[: len(HEADER)]))


def add(course: Course, rows: Iterable[Grant]) -> None:
    """Append rows, and write the titles first if there is no table yet."""
    new = course.files.changed(file_of(course)) is None
    dated = [(*astuple(row)[:-1], row.on or f"{datetime.now(UTC):%Y-%m-%d}") for row in rows]
    text = to_csv([*([HEADER] if new else []), *(map(cell, row) for row in dated)])
    course.files.append(file_of(course), text.encode())


def forget(course: Course, student: str) -> None:
    """Remove the rows about a student."""
    file = file_of(course)
    if course.files.changed(file) is not None:
        rows = [line.cells for line in read_csv(file, MAX_BYTES, "a table of deadlines")]
        kept = to_csv(row for row in rows if row[0].strip().removeprefix("'") != student)
        course.files.write(file, kept.encode())


def in_force(rows: Iterable[Grant], assignment: str) -> dict[str, Grant]:
    """Return the row that counts for each student who has one for an assignment."""
    for_all, own = {}, {}
    for row in rows:
        if row.assignment == EVERY:
            for_all[row.student] = row
        elif row.assignment == assignment:
            own[row.student] = row
    return for_all | own
