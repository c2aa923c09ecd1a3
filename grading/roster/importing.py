"""Import a roster: read it, check every line, show what changes, and write all of it or nothing."""

from collections.abc import Mapping
from pathlib import Path

from grading.class_list import on_list
from grading.class_settings import RosterSettings, file_of, read_roster, write_roster
from grading.course import Course, GradingError
from grading.csv_file import read_csv
from grading.gradebook.lookup import shown as shown_url
from grading.gradebook.students import students, with_work, written
from grading.outcome import plain
from grading.own_names import keep_names
from grading.roster.changes import Changes, compare, shown
from grading.roster.columns import Columns, columns_of
from grading.roster.read_students import Problem, read_students
from grading.run_state import lock
from grading.text import counted

MAX_ROSTER_BYTES = 20_000_000


def import_roster(
    course: Course, file: Path, told: Mapping[str, str], *, complete: bool = False, dry_run: bool = False
) -> str:
    """Bring the gradebook's students up to date with a file, and return text for a terminal that says what changes.

    Args:
        course: where the gradebook is.
        file: what a learning management system exported, or any other table with titles.
        told: the titles of the columns by what they hold; without any, they are recognised.
        complete: whether the file lists the whole class, so that whoever is not in it has left. Who left and has no
            submission is removed from the gradebook; the others keep their marks, and are listed in the settings.
        dry_run: whether to report the changes without writing anything.

    Raises:
        GradingError: the file cannot be read, or some of its lines are not students. Nothing is written.
    """
    lines = read_csv(file, MAX_ROSTER_BYTES, "a class list")
    if not lines:
        raise GradingError(f"{file} is empty, but the first line of a class list holds the titles of its columns")
    settings, url = read_roster(course), course.config().CourseDirectory.db_url
    columns, source = columns_of(lines[0].cells, told, settings.columns)
    found, problems = read_students(lines, columns)
    known = students(url)
    changes = compare(found, known, on_list(course, known), settings.left)
    _require_none(file, [*problems, *changes.problems])
    if not found:
        raise GradingError(f"{file} lists no students: it has only the titles {', '.join(map(plain, lines[0].cells))}")
    said = f"{counted(len(found), 'student')} in {file.name}. {_used(columns, source)}"
    said += f"\n{shown(changes, complete=complete)}\n"
    if dry_run:
        return f"{said}This was a dry run: nothing was written."
    with lock(course):
        _write(course, changes, RosterSettings(columns.used, settings.left), complete=complete)
    return f"{said}Written to {shown_url(url)}; {file_of(course)} keeps the columns for the next import."


def _used(columns: Columns, source: str) -> str:
    titles = ", ".join(f"{field.replace('_', ' ')} from {plain(title)!r}" for field, title in columns.used.items())
    return f"The columns are those of {source}: {titles}."


def _require_none(file: Path, problems: list[Problem]) -> None:
    if problems:
        lines = [f"  line {line}: {text}" for line, text in sorted(problems)]
        raise GradingError(
            "\n".join([f"nothing was imported from {file}, because {counted(len(lines), 'line')} cannot be:", *lines])
        )


def _write(course: Course, changes: Changes, settings: RosterSettings, *, complete: bool) -> None:
    """Write the changes to the gradebook, and the settings with them."""
    url = course.config().CourseDirectory.db_url
    gone = {entry.id for entry in changes.missing} if complete else set()
    removed = gone - with_work(url) - set(course.students())
    left = (settings.left | gone - removed) - {entry.id for entry in changes.back}
    with written(url, changes.new, [new for _, new in changes.changed], removed):
        write_roster(course, RosterSettings(settings.columns, frozenset(left)))
        keep_names(course, changes.names, removed)
