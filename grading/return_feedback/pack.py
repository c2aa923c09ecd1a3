"""Pack the feedback on an assignment.

Canvas and Moodle attach each file in a zip to a student's submission if it is named as in their own downloads. Canvas
shows it under the name of the file that the student handed in, so it has to be a notebook; Moodle shows the page.
Blackboard has no such upload.

Sources: Canvas, the method infer_comment_context_from_filename of https://github.com/instructure/canvas-lms; Moodle,
mod/assign/feedback/file/importziplib.php of https://github.com/moodle/moodle.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from grading.collect.attempts import Attempt, Attempts
from grading.collect.systems import CANVAS, in_moodle
from grading.course import Course
from grading.csv_file import to_csv
from grading.exam.window import require_over
from grading.gradebook.lookup import comments_by_hand
from grading.marking.comments import expanded, read_comments
from grading.report import Row, cell, rows
from grading.return_feedback.notebook import with_points
from grading.text import counted

MAX_PAGE_BYTES = 200_000_000
FOLDER = "{}_assignsubmission_file_"  # of Moodle's download, and of the zip with feedback that it takes
TABLE = ("student", "first name", "last name", "email", "assignment", "score", "points", "penalty", "feedback")

Files = Iterable[tuple[str, bytes]]


def return_feedback(course: Course, assignment: str, *, unfinished: bool = False) -> str:
    """Write the zips and the table, and return what is in them, as text for a terminal.

    Args:
        course: the class.
        assignment: its name.
        unfinished: whether to return work in which an answer still has to be marked.

    Raises:
        GradingError: there is no such assignment, nobody was graded, or it is an exam that is not over.
    """
    require_over(course, assignment, "no feedback is returned yet")
    graded = [row for row in rows(course, assignment) if not row.absent]
    back = [row for row in graded if row.feedback and (unfinished or not row.to_read)]
    attempts = Attempts(course, assignment)
    came = {row.outcome.student: _attempt(attempts, row.outcome.student) for row in back}
    named, given = read_comments(course), comments_by_hand(course.config().CourseDirectory.db_url, assignment)
    comments = {who: {cell: expanded(text, named) for cell, text in said.items()} for who, said in given.items()}
    out = course.returned(assignment)
    packed = {
        "canvas.zip": list(_for_canvas(course, assignment, back, came, comments)),
        "moodle.zip": list(_for_moodle(course, back, came)),
        "folders.zip": [(f"{row.outcome.student}/{name}", page) for row in back for name, page in _pages(course, row)],
    }
    said = []
    for name, files in packed.items():
        if files:
            course.files.write(out / name, _zip(files))
            said.append(f"{out / name}: {counted(len(files), 'file')}")
        else:
            course.files.remove(out / name)
    course.files.write(out / "mail-merge.csv", _table(course, assignment, back).encode())
    said.append(f"{out / 'mail-merge.csv'}: {counted(len(back), 'student')}")
    waiting = [row.label for row in graded if row.to_read and not unfinished]
    said += (
        [f"Left out, because some answers are still to be marked ({len(waiting)}): {', '.join(waiting)}"]
        if waiting
        else []
    )
    without = [row.label for row in graded if not row.feedback]
    said += [f"Left out, because they have no feedback page ({len(without)}): {', '.join(without)}"] if without else []
    return "\n".join(said)


def _attempt(attempts: Attempts, student: str) -> Attempt | None:
    """Return the attempt that is among the submissions, if it was collected."""
    there = attempts.submitted(student)
    return next((one for one in reversed(attempts.of(student)) if there and one.digest == there.digest), None)


def _for_canvas(
    course: Course,
    assignment: str,
    back: Sequence[Row],
    came: Mapping[str, Attempt | None],
    comments: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, bytes]]:
    for row in back:
        attempt = came[row.outcome.student]
        names = [Path(path).name for path in attempt.files.values()] if attempt and attempt.system == "canvas" else []
        if names := [name for name in names if CANVAS.fullmatch(name)]:
            content = with_points(course, assignment, row, comments.get(row.outcome.student, {}))
            yield from ((name, content) for name in names[:1] if content)


def _for_moodle(course: Course, back: Sequence[Row], came: Mapping[str, Attempt | None]) -> Iterator[tuple[str, bytes]]:
    for row in back:
        attempt = came[row.outcome.student]
        paths = attempt.files.values() if attempt and attempt.system == "moodle" else ()
        matches = [match for path in paths if (match := in_moodle(path.split("/")))]
        for name, page in _pages(course, row) if matches else ():
            yield f"{FOLDER.format(matches[0]['student'])}/{name}", page


def _pages(course: Course, row: Row) -> Iterator[tuple[str, bytes]]:
    yield from ((page.name, course.files.read(page, MAX_PAGE_BYTES)) for page in row.feedback)


def _zip(files: Files) -> bytes:
    with ZipFile(packed := io.BytesIO(), "w", ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return packed.getvalue()


def _table(course: Course, assignment: str, back: Sequence[Row]) -> str:
    lines: list[Iterable[object]] = [TABLE]
    for row in back:
        entry = row.entry
        who = (row.outcome.student, entry.first_name, entry.last_name, entry.email)
        pages = "; ".join(str(page.relative_to(course.folder)) for page in row.feedback)
        lines.append(map(cell, (*who, assignment, row.score, row.points, row.penalty, pages)))
    return to_csv(lines)
