"""The grades as files: a table for a spreadsheet, and what Canvas imports into its gradebook."""

from collections.abc import Sequence
from pathlib import Path

from grading.class_report.canvas import changes, csv_of, preview, read
from grading.class_report.moodle import fill_in
from grading.course import Course, GradingError
from grading.csv_file import to_csv
from grading.exam.window import require_over
from grading.gradebook.students import students
from grading.report import Row, cell, rows, unmarked
from grading.text import JOINERS, counted, printable


def export(
    course: Course, assignment: str, *, canvas: Path | None = None, moodle: Path | None = None, out: Path | None = None
) -> str:
    """Write the grades of an assignment and return what is in the file, as text for a terminal.

    Args:
        course: where the grades are.
        assignment: its name.
        canvas: the gradebook as Canvas exports it; then only what differs from it is written, for Canvas to import.
            ``None`` asks for a table with everything.
        moodle: the grading worksheet as Moodle exports it, in which the grades are then filled in.
        out: where the file goes; ``None`` means next to the other reports.

    Raises:
        GradingError: there is no such assignment, nobody was graded, the export of Canvas or Moodle does not fit, or
            scores of an exam that is not over would go there.
    """
    if canvas or moodle:
        require_over(course, assignment, "no scores are written for students yet")
    found = rows(course, assignment)
    folder = course.reports(assignment)
    if moodle:
        return _for_moodle(course, found, moodle, out or folder / "moodle.csv")
    if canvas is None:
        file = out or folder / "grades.csv"
        _write(course, file, csv_text(found))
        what = f"{counted(len(found), 'student')}, {counted(len(_questions(found)), 'question')}"
        return "\n".join([what, *unmarked(found), f"Table: {file}"])
    file = out or folder / "canvas.csv"
    _require_another(file, canvas)
    new = changes([row for row in found if not row.absent], assignment, read(canvas))
    if new.lines:
        _write(course, file, csv_of(new))
    where = f"For Canvas: {file}" if new.lines else "There is nothing to import, so no file was written."
    return f"{preview(new)}\n\n{where}"


def _for_moodle(course: Course, found: Sequence[Row], worksheet: Path, file: Path) -> str:
    _require_another(file, worksheet)
    handed_in = [row for row in found if not row.absent]
    text, said = fill_in(handed_in, worksheet, students(course.config().CourseDirectory.db_url))
    _write(course, file, text)
    return f"{said}\n\nFor Moodle (Upload grading worksheet): {file}"


def _require_another(file: Path, source: Path) -> None:
    if file.resolve() == source.resolve():
        raise GradingError(f"{file} is the export itself: choose another file to write to")


def _write(course: Course, file: Path, text: str) -> None:
    """Write a file. In the class's folder no links are followed; elsewhere the instructor's path is used as it is."""
    file = file.absolute()
    if file.is_relative_to(course.folder):
        course.files.write(file, text.encode())
    else:
        file.write_text(text, encoding="utf-8", newline="")


def csv_text(rows: Sequence[Row]) -> str:
    """Return the rows for a spreadsheet, with a column for each question.

    The score is the sum of these minus the penalty. A cell is empty where nobody has marked an answer yet.
    """
    questions = _questions(rows)
    about = ["student", "last name", "first name", "score", "points", "penalty", "handed in"]
    header = [*about, "to read", "verdict", "reason", "mistakes", "look at", *questions]
    lines = ([*_about(row), *(_known(row, question) for question in questions)] for row in rows)
    return to_csv([map(cell, header), *lines])


def _known(row: Row, question: str) -> float | str:
    return "" if question in row.unread or question not in row.scores else row.scores[question][0]


def _questions(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(question for row in rows for question in row.scores))


def _about(row: Row) -> list[object]:
    """Return what is known about a student. Semicolons separate the entries of a cell; no entry begins a formula."""
    outcome = row.outcome
    found, flags = (_entries(many) for many in (outcome.findings, outcome.flags))
    names = (printable(name, JOINERS) for name in (row.entry.last_name, row.entry.first_name))
    line = [outcome.student, *names, row.score, row.points, row.penalty, outcome.lateness, row.to_read]
    return [*map(cell, [*line, outcome.verdict, outcome.reason]), found, flags]


def _entries(many: Sequence[object]) -> str:
    return "; ".join(str(cell(str(one).replace(";", ","))) for one in many)
