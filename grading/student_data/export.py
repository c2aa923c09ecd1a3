"""Export everything that a class keeps about one student, as a zip that may be given to the student.

About an exam that is not over, the zip contains only what the student handed in and any extension.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from sqlalchemy import select

from grading._nbgrader import Assignment, BaseCell, Comment, Grade, SubmittedAssignment, SubmittedNotebook
from grading.course import Course, GradingError
from grading.deadlines.table import read_table
from grading.exam.window import not_over
from grading.gradebook.create import open_gradebook
from grading.gradebook.students import StudentEntry, students
from grading.outcome import plain
from grading.own_names import other_names
from grading.student_data.places import log_entries, own_places
from grading.text import counted

MAX_FILE_BYTES = 500_000_000


def require_student(course: Course, student: str) -> StudentEntry:
    """Return what the gradebook knows of a student.

    Raises:
        GradingError: the class keeps nothing about such a student.
    """
    entry = students(course.config().CourseDirectory.db_url, student).get(student)
    if entry is None and not own_places(course, student):
        raise GradingError(
            f"{course.folder} and its gradebook keep nothing about {plain(student)!r}; expected the id of a student"
        )
    return entry or StudentEntry(student)


def export_student(course: Course, student: str, out: Path) -> str:
    """Write the zip, and return what is in it, as text for a terminal.

    Raises:
        GradingError: nothing is kept about such a student, or the file already exists.
    """
    entry, withheld = require_student(course, student), not_over(course)
    said = {
        "student.json": asdict(entry) | {"other_names": other_names(course).get(student, [])},
        "gradebook.json": [one for one in _submissions(course, student) if one["assignment"] not in withheld],
        "log.json": [
            {"assignment": name, **one.said} for name, one in log_entries(course, student) if name not in withheld
        ],
        "deadlines.json": [asdict(row) for row in _grants(course, student)],
    }
    try:
        with out.open("xb") as stream, ZipFile(stream, "w", ZIP_DEFLATED) as archive:
            for name, content in said.items():
                archive.writestr(name, json.dumps(content, indent=1, default=str, ensure_ascii=False))
            files = [file for file in _files(course, student) if not _is_withheld(course, file, withheld)]
            for file in files:
                with suppress(OSError):  # a link, or something else that is not the student's own file
                    archive.writestr(str(file.relative_to(course.folder)), course.files.read(file, MAX_FILE_BYTES))
    except FileExistsError:
        raise GradingError(f"{out} already exists: choose another file to write to") from None
    kept = f"{counted(len(files), 'file')}, {counted(len(said['gradebook.json']), 'submission')} in the gradebook"
    left_out = f"\nFor exams that are not over, only submissions and extensions are included: {', '.join(withheld)}"
    return f"{out}: {kept}, {counted(len(said['log.json']), 'line')} of the log" + (left_out if withheld else "")


def _is_withheld(course: Course, file: Path, withheld: Collection[str]) -> bool:
    """Return whether a file is about an exam that is not over, and is not what the student handed in."""
    kind, *folders = file.relative_to(course.folder).parts
    return kind not in ("submitted", "attempts") and not set(withheld).isdisjoint(folders)


def _files(course: Course, student: str) -> Iterator[Path]:
    for place in own_places(course, student):
        if place.is_dir() and not place.is_symlink():
            for folder, _, names in os.walk(place):
                yield from (Path(folder, name) for name in sorted(names))
        else:
            yield place


def _grants(course: Course, student: str) -> list[Any]:
    known = students(course.config().CourseDirectory.db_url).keys()
    return [row for row in read_table(course, known) or () if row.student == student]


def _submissions(course: Course, student: str) -> Iterator[dict[str, Any]]:
    with open_gradebook(course) as gradebook:
        columns = SubmittedAssignment.id, Assignment.name, SubmittedAssignment.timestamp, SubmittedAssignment.extension
        its = select(*columns).join(Assignment).where(SubmittedAssignment.student_id == student)
        for submission, name, came, extension in gradebook.db.execute(its).all():
            marks = _rows(gradebook, Grade, (Grade.auto_score, Grade.manual_score, Grade.extra_credit), submission)
            comments = _rows(gradebook, Comment, (Comment.auto_comment, Comment.manual_comment), submission)
            about = {"assignment": name, "handed in": came, "extension": extension}
            yield about | {"marks": marks, "comments": comments}


def _rows(gradebook: Any, kind: Any, columns: tuple[Any, ...], submission: str) -> list[dict[str, Any]]:
    asked = select(BaseCell.name, *columns).select_from(kind).join(BaseCell).join(SubmittedNotebook)
    return [
        dict(row) for row in gradebook.db.execute(asked.where(SubmittedNotebook.assignment_id == submission)).mappings()
    ]
