"""The first graded answer to each multiple-choice question counts, so that feedback is no way to find the right one.

An option is noted by the letter under which it was written, whichever letter the student saw. Until an exam is over,
there is no feedback, and students may hand in another answer. The last one graded is kept in a separate file, and
becomes the first answer when feedback is made.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from grading.audit_log import AuditLog
from grading.course import Course, GradingError
from grading.exam.window import exam_of
from grading.graded_cell import GradedCell
from grading.read_choice import read_choice
from grading.task import Answered

MAX_BYTES = 100_000


def keep_first_answers(
    course: Course, assignment: str, student: str, choices: Iterable[tuple[GradedCell, Answered]]
) -> None:
    """Note the options that a student chose for the first time, and put earlier ones, and who chose, into what came.

    Raises:
        GradingError: the file with the student's first answers cannot be read.
    """
    before, found = first_answers(course, assignment, student), dict[str, str]()
    for graded_cell, answered in choices:
        answered.student, answered.first = answered.student or student, before.get(graded_cell.cell)
        found[graded_cell.cell] = read_choice(graded_cell, answered).letter or ""
    exam = exam_of(course, assignment)
    if exam and not exam.is_over:
        file = exam_answers_file(course, assignment, student)
        course.files.write(file, json.dumps(_read(course, file) | found).encode())
    else:
        _write(course, assignment, student, before, found)


def settle_exam_answers(course: Course, assignment: str, student: str) -> None:
    """Make the answers that were graded in an exam the first ones, because the student gets feedback now."""
    file = exam_answers_file(course, assignment, student)
    add_first_answers(course, assignment, student, _read(course, file))
    course.files.remove(file)


def add_first_answers(course: Course, assignment: str, student: str, chosen: Mapping[str, str]) -> None:
    """Note options that a student chose, by graded cell; where an earlier choice is known, it stays.

    Raises:
        GradingError: the file with the student's first answers cannot be read.
    """
    _write(course, assignment, student, first_answers(course, assignment, student), chosen)


def forget_first_answers(course: Course, assignment: str, student: str, owner: str, audit: AuditLog) -> None:
    """Forget the options that were graded, because another account chose them, and note them in the log.

    Raises:
        GradingError: a file with the student's answers cannot be read.
    """
    for file in (first_answers_file(course, assignment, student), exam_answers_file(course, assignment, student)):
        if found := _read(course, file):
            audit.noted({"of": student, "forgotten": found, "owner": owner})
        course.files.remove(file)


def _write(course: Course, assignment: str, student: str, before: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    """Write the first answers that were known before, and new ones, if there are any. A letter "" is no answer."""
    new = {cell: letter for cell, letter in chosen.items() if letter}
    if new.keys() - before.keys():
        content = json.dumps({**new, **before}, indent=1)
        course.files.write(first_answers_file(course, assignment, student), content.encode())


def first_answers_file(course: Course, assignment: str, student: str) -> Path:
    """Return where the first answers of a student are kept."""
    return course.reports(assignment) / "first-answers" / f"{student}.json"


def exam_answers_file(course: Course, assignment: str, student: str) -> Path:
    """Return where the answers of a student are kept until an exam is over."""
    return course.reports(assignment) / "exam-answers" / f"{student}.json"


def first_answers(course: Course, assignment: str, student: str) -> dict[str, str]:
    """Return the options that a student chose first, by graded cell.

    Raises:
        GradingError: the file with the student's first answers cannot be read.
    """
    return _read(course, first_answers_file(course, assignment, student))


def _read(course: Course, file: Path) -> dict[str, str]:
    if course.files.changed(file) is None:
        return {}
    try:
        found = json.loads(course.files.read(file, MAX_BYTES))
    except ValueError as error:
        raise GradingError(
            f"{file} should hold the student's first answers, but cannot be read: {error}. Restore it from a backup "
            "or remove it: then the next answers that are graded count as the first"
        ) from None
    return {str(cell): str(letter) for cell, letter in found.items()}
