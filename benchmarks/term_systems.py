"""The learning management systems of a simulated term, as far as files go in and out: Canvas, Moodle, the exchange.

Each writes what it lets instructors download, under the names that it gives to files, and reads what they upload.
"""

import csv
import io
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
from term_marks import CANVAS, EXCHANGE, MOODLE, days_late, system_of
from term_plan import Attempt, Homework, Plan, Student, Work, filled_in

FIRST_DUE = datetime(2030, 1, 11, 23, 59, tzinfo=UTC)
TIME = "%Y-%m-%d %H:%M:%S UTC"
Files = Mapping[str, str | bytes]


def due(number: int) -> datetime:
    """Return when an assignment is due: every week."""
    return FIRST_DUE + timedelta(weeks=number)


def class_list(plan: Plan, number: int) -> str:
    """Return the university's list of who is in the class when an assignment is set, as CSV."""
    there = [one for one in plan.students if one.first <= number <= one.last]
    titles = ("id", "first_name", "last_name", "email", "lms_user_id")
    return _csv(titles, [(one.id, one.first_name, one.last_name, one.email, str(one.number)) for one in there])


def write_download(plan: Plan, homework: Homework, released: Path, folder: Path, *, last: bool) -> Path:
    """Write the submissions as their system does, either before the due date or at the end, and return where.

    Canvas and Moodle give the last attempt of each student, and the exchange gives all of them.
    """
    system, given = system_of(plan, homework), nbformat.read(released, 4)
    files: dict[str, str] = {}
    for student, work in plan.handed_in(homework).items():
        attempts = work.attempts if last else work.attempts[:-1]
        for attempt in attempts if system == EXCHANGE else attempts[-1:]:
            name = _name(system, plan, homework, student, work, attempt)
            files[name] = _notebook(given, filled_in(homework, work, attempt))
    target = folder / f"{homework.name}-{system}-{'end' if last else 'early'}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target


def _name(system: str, plan: Plan, homework: Homework, student: Student, work: Work, attempt: Attempt) -> str:
    number, turn = plan.homework.index(homework), work.attempts.index(attempt)
    if system == CANVAS:
        late = "LATE_" if days_late(attempt, work, system) else ""
        name = f"{student.last_name}{student.first_name}".lower()
        return (
            f"{name}_{late}{student.number}_{900_000 + 10_000 * number + 2 * student.number + turn}_{homework.notebook}"
        )
    if system == MOODLE:
        return f"{student.name}_{participant(student, number)}_assignsubmission_file_/{homework.notebook}"
    came = due(number) + timedelta(days=attempt.days, minutes=turn - 30)
    return f"{student.id}+{homework.name}+{came.strftime(TIME)}/{homework.notebook}"


def participant(student: Student, number: int) -> int:
    """Return Moodle's number of a student in one assignment: it numbers them anew each time."""
    return 10_000 * (number + 1) + student.number % 10_000


def _notebook(given: nbformat.NotebookNode, filled: Mapping[str, str]) -> str:
    before = [cell.source for cell in given.cells]
    for cell in given.cells:
        cell.source = filled.get(cell.id, cell.source)
    text = nbformat.writes(given)
    for cell, source in zip(given.cells, before, strict=True):
        cell.source = source
    return text


def gradebook(plan: Plan, homework: Homework) -> str:
    """Return what Canvas or Moodle exports for grades to be filled in, as CSV."""
    number, possible = plan.homework.index(homework), sum(task.points for task in homework.tasks) + homework.most
    if system_of(plan, homework) == CANVAS:
        titles = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{homework.name} ({4000 + number})")
        rows = [("    Points Possible", "", "", "", "", f"{possible:.2f}")]
        rows += [(f"{s.last_name}, {s.first_name}", str(s.number), "", s.id, "1", "") for s in plan.students]
        return _csv(titles, rows)
    titles = ("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade", "Grade can be changed")
    rows = [
        (f"Participant {participant(s, number)}", s.name, s.email, "Submitted", "", f"{possible:.2f}", "Yes", "-")
        for s in plan.students
    ]
    return _csv((*titles, "Last modified (grade)"), rows)


def uploaded(plan: Plan, homework: Homework, text: str) -> dict[tuple[str, str], float]:
    """Return the marks that Canvas or Moodle takes from an uploaded file, by its own numbers."""
    number, canvas = plan.homework.index(homework), system_of(plan, homework) == CANVAS
    numbers = {str(s.number) if canvas else f"Participant {participant(s, number)}": s.id for s in plan.students}
    key, column = ("ID", f"{homework.name} ({4000 + number})") if canvas else ("Identifier", "Grade")
    lines = [line for line in csv.DictReader(io.StringIO(text, newline="")) if line[key]]
    return {(numbers[line[key]], homework.name): float(line[column]) for line in lines}


def _csv(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerows([titles, *rows])
    return stream.getvalue()
