"""Say what is missing before a class can be graded, and what to do about each."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from grading.bundle import NAME
from grading.class_list import on_list
from grading.class_settings import book_address, file_of, read_class, read_roster
from grading.course import Course, GradingError
from grading.exam.declared import TIME_FORMAT, exam_names
from grading.exam.window import exam_of
from grading.gradebook.lookup import with_due_date
from grading.gradebook.students import students
from grading.marking.rubric import rubrics
from grading.sandbox.bubblewrap import require_hidden
from grading.submission_folders import not_graded
from grading.text import counted


@dataclass(frozen=True)
class Finding:
    """What was looked at, and what to do; "" if nothing is missing."""

    what: str
    missing: str = ""

    def __str__(self) -> str:
        return f"missing: {self.what}: {self.missing}" if self.missing else f"ok: {self.what}"


def examine(course: Course) -> list[Finding]:
    """Return what was found about a class, in the order in which an instructor needs it."""
    try:
        return list(_examined(course))
    except GradingError as error:  # wrong settings hide everything else
        return [Finding("settings", str(error))]


def _examined(course: Course) -> Iterator[Finding]:
    settings, left = read_class(course), read_roster(course).left
    if file_of(course).exists():
        yield Finding(f"settings in {file_of(course)} ({settings.name or 'no name'}, {settings.term or 'no term'})")
    else:
        yield Finding("settings", f"run `python -m grading new-course {course.folder}`")
    yield _sandbox(course)
    listed = on_list(course, students(course.config().CourseDirectory.db_url)) - left
    hint = "run `python -m grading roster FILE.csv` with the file that your learning management system exports"
    yield Finding(f"class list ({counted(len(listed), 'student')})", "" if listed else hint)
    yield _due_dates(course)
    for name in exam_names(course):
        if exam := exam_of(course, name):
            yield Finding(f"exam {name} from {exam.begin:{TIME_FORMAT}}", "" if exam.end else exam.withheld)
    hint = f"enter its address as `book` in {file_of(course)}, once it is published; until then, feedback has no links"
    yield Finding("address of the book", "" if book_address(course) else hint)
    there = (course.folder / NAME).exists()
    yield Finding("bundle for students", "" if there else "run `python -m grading bundle`, and give students the file")
    yield _rubrics(course)
    for folder, why in not_graded(course).items():
        yield Finding(f"submission folder {folder!a} that can be graded", why)


def _sandbox(course: Course) -> Finding:
    if shutil.which("bwrap") is None:
        return Finding("sandbox", "install bubblewrap, for example with `sudo apt-get install bubblewrap`")
    try:
        require_hidden(course)
    except GradingError as error:
        return Finding("sandbox", str(error))
    return Finding("sandbox: bubblewrap is installed; `python -m grading selftest` attacks it")


def _rubrics(course: Course) -> Finding:
    try:
        found = [question for name in course.assignments() for question in rubrics(course, name)]
    except GradingError as error:
        return Finding("rubrics", str(error))
    return Finding(f"rubrics of {counted(len(found), 'question')}")


def _due_dates(course: Course) -> Finding:
    known = with_due_date(course.config().CourseDirectory.db_url)
    without = [name for name in course.assignments() if name not in known]
    if not without:
        return Finding("due dates of all assignments")
    command = f'.venv/bin/nbgrader db assignment add {without[0]} --duedate "2030-01-31 23:59 UTC"'
    hint = f"without one, nobody is late. Set it in Formgrader, or with {command}"
    return Finding(f"due dates ({', '.join(without)})", hint)
