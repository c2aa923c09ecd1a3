"""Grades for Moodle: fill in the grading worksheet that it exports for an assignment.

Source: what Moodle reads, mod/assign/feedback/offline/importgradeslib.php of https://github.com/moodle/moodle. It finds
a student by the column Identifier, and skips a grade that was changed in Moodle after the worksheet was exported.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grading.class_list import MAX_CLASS_LIST_BYTES
from grading.course import GradingError
from grading.csv_file import Line, read_csv, to_csv
from grading.gradebook.students import StudentEntry
from grading.outcome import plain
from grading.report import Row, cell
from grading.roster.changes import identified
from grading.roster.columns import WORKSHEET, columns_of
from grading.roster.read_students import read_students
from grading.text import points
from grading.verdict import Verdict

GRADE, MAXIMUM, CAN_BE_CHANGED = "Grade", "Maximum Grade", "Grade can be changed"
WRITTEN = ("Identifier", "Full name", "Email address", GRADE, MAXIMUM, "Last modified (grade)")


def fill_in(rows: Sequence[Row], file: Path, known: Mapping[str, StudentEntry]) -> tuple[str, str]:
    """Return the worksheet with the grades, as CSV, and text for a terminal that says what changes.

    Args:
        rows: the grades; students who handed in nothing are left as they are.
        file: the worksheet as Moodle exported it.
        known: the students in the gradebook, of whom some may have an id from another worksheet.

    Raises:
        GradingError: it is not such a worksheet.
    """
    lines = read_csv(file, MAX_CLASS_LIST_BYTES, "a grading worksheet from Moodle")
    header = lines[0].cells if lines else ()
    if GRADE not in header or "Identifier" not in header:
        raise GradingError(
            f"{file} begins with {', '.join(map(plain, header[:6])) or 'nothing'}, but a grading worksheet has the "
            f"columns Identifier and {GRADE}. In Moodle, in English: the assignment, Submissions, Download grading "
            "worksheet"
        )
    columns, _ = columns_of(header, {}, {field: title for field, title in WORKSHEET.used.items() if title in header})
    found, _ = read_students(lines, columns)
    places = {student: listed.line for student, listed in identified(found, known)[0].items()}
    return _filled({line.number: line for line in lines[1:]}, header, places, rows)


def _filled(
    lines: Mapping[int, Line], header: Sequence[str], places: Mapping[str, int], rows: Sequence[Row]
) -> tuple[str, str]:
    kept = [title for title in WRITTEN if title in header]
    written: list[Iterable[object]] = [kept]
    said = []
    for row in rows:
        there = lines.get(places.get(row.outcome.student, 0))
        values = dict(zip(header, there.cells, strict=False)) if there else {}
        if why := _left_out(row, values):
            said.append(f"  {row.label}: left out: {why}")
            continue
        grade = points(row.score).replace(".", "," if "," in values.get(MAXIMUM, "") else ".")
        said.append(f"  {row.label}  {plain(values[GRADE]) or '–'} → {grade}{_warning(row, values)}")
        written.append([cell(values.get(title, "")) if title != GRADE else grade for title in kept])
    return to_csv(written), "\n".join(said)


def _left_out(row: Row, values: Mapping[str, str]) -> str:
    """Return why a student's grade is not written, or "" if it is."""
    if not values:
        return "no row of the worksheet has this id, number or e-mail address"
    if row.outcome.verdict is Verdict.INFRASTRUCTURE or not row.scores:
        return "the grader failed: run it again for this student"
    return "Moodle says that the grade cannot be changed" if values.get(CAN_BE_CHANGED) == "No" else ""


def _warning(row: Row, values: Mapping[str, str]) -> str:
    most = values.get(MAXIMUM, "").replace(",", ".")
    try:
        same = not most or float(most) == row.points
    except ValueError:
        same = False
    return "" if same else f" of {points(row.points)}, but the maximum in Moodle is {plain(most)}: change it there"
