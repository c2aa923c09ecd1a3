"""Erase everything that a class keeps about one student.

The log of an assignment is a chain of digests, from which no entry can be taken. What an erased entry said is therefore
replaced by its digest, so that the chain still holds. A new entry says how many were erased, by whom and why, but not
which student they were about; `verify` compares the two numbers.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from grading._nbgrader import MissingEntry
from grading.class_list import forget
from grading.class_settings import read_roster, write_roster
from grading.course import Course, GradingError
from grading.deadlines.table import forget as forget_grants
from grading.gradebook.create import open_gradebook
from grading.marking.shares import forget as forget_shares
from grading.own_names import NAME, keep_names, other_names
from grading.run_state import RunState, lock
from grading.student_data.export import require_student
from grading.student_data.places import class_places, is_about, log_entries, own_places
from grading.text import counted

MAX_LOG_BYTES = 500_000_000


def kept(course: Course, student: str) -> str:
    """Return what is kept about a student, and where, as text for a terminal.

    Raises:
        GradingError: nothing is kept about the student.
    """
    require_student(course, student)
    lines = [str(place) for place in own_places(course, student)]
    logged = list(log_entries(course, student))
    lines += [f"{course.reports(name) / 'audit.log'}: entry {entry.number}" for name, entry in logged]
    lines += [f"{course.folder / NAME}: other names"] if student in other_names(course) else []
    lines += [f"{place}, about the whole class" for place in class_places(course)]
    return "\n".join([*lines, "the gradebook: the student, with all submissions, marks and comments"])


def erase(course: Course, student: str, by: str, why: str) -> str:
    """Erase everything about a student, and return what was erased, as text for a terminal.

    Raises:
        GradingError: nothing is kept about the student, or an author or a reason is missing.
    """
    require_student(course, student)
    if not (by.strip() and why.strip()):
        raise GradingError("the log records who erased a student's data, and why: pass --by NAME and --why TEXT")
    with lock(course):
        entries = 0
        for assignment in course.assignments():
            audit = RunState(course, assignment).audit
            entries += audit.erase(lambda entry: is_about(entry, student), by.strip(), why.strip())
            forget_shares(course, assignment, student)
            _forget_lines(course, course.log(assignment), _names(student))
        forget_grants(course, student)
        forget(course, student)
        keep_names(course, {}, [student])
        settings = read_roster(course)
        if student in settings.left:
            write_roster(course, replace(settings, left=settings.left - {student}))
        places = [*own_places(course, student), *class_places(course)]
        for place in places:
            course.files.remove(place)
        with open_gradebook(course) as gradebook, suppress(MissingEntry):  # the student was never graded
            gradebook.remove_student(student)
    rows = "the student's rows in the gradebook"
    said = f"{len(places)} folders and files, {counted(entries, 'line')} of the log, and {rows}"
    rest = "Run `report` and `export` to write the tables of the class again"
    return f"Erased: {said}. {rest}. Downloads, backups and the learning management system have not been changed."


def _names(student: str) -> Callable[[str], bool]:
    named = re.compile(rf"(?<!\w){re.escape(student)}(?!\w)")
    return lambda line: named.search(line) is not None


def _forget_lines(course: Course, file: Path, names: Callable[[str], bool]) -> None:
    """Remove from a log of messages the lines that name a student."""
    try:
        lines = course.files.read(file, MAX_LOG_BYTES).decode(errors="replace").splitlines(keepends=True)
    except FileNotFoundError:
        return
    course.files.write(file, "".join(line for line in lines if not names(line)).encode())
