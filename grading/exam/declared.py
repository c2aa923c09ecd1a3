"""Which assignments of a class are exams: the table `[exams]` in `course.toml`, with the time at which each begins."""

from datetime import UTC, datetime

from grading.class_settings import file_of, read_settings, write_table
from grading.course import Course, GradingError
from grading.timestamp import due_date

TABLE = "exams"
ABOUT = """\
The assignments that are exams, each with the time at which it begins. An exam ends at its due date in the gradebook."""
TIME_FORMAT = "%Y-%m-%d %H:%M UTC"


def exam_names(course: Course) -> dict[str, datetime]:
    """Return the assignments that the settings declare as exams, and when each begins, in UTC.

    Raises:
        GradingError: an assignment does not exist, or a time cannot be read.
    """
    where = f"[{TABLE}] in {file_of(course)}"
    table = read_settings(course).get(TABLE, {})
    if not isinstance(table, dict):
        raise GradingError(f"{where} should be a table, with a line for each exam; found {TABLE} = {table!r}")
    for name, begin in table.items():
        if name not in course.assignments():
            known = ", ".join(course.assignments())
            raise GradingError(f"{where}: there is no assignment {name!r}. The assignments are: {known}")
        if not isinstance(begin, str):
            raise GradingError(f'{where}: {name} is {begin}; expected a time such as "2030-01-31 09:00 UTC"')
    return {name: due_date(begin) for name, begin in table.items()}


def now() -> datetime:
    """Return the time in UTC, without a time zone, as nbgrader stores it."""
    return datetime.now(UTC).replace(tzinfo=None)


def not_begun(course: Course) -> dict[str, datetime]:
    """Return the exams whose notebooks must not be handed out yet, and when each begins."""
    return {name: begin for name, begin in exam_names(course).items() if begin > now()}


def declare(course: Course, begins: dict[str, datetime]) -> None:
    """Write into the settings of a class which assignments are exams, and when each begins."""
    write_table(course, TABLE, ABOUT, {name: f"{time:{TIME_FORMAT}}" for name, time in begins.items()})
