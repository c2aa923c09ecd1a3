"""Grades for Canvas: read its gradebook's export, find the students and the assignment, and write what changes.

The file has the form of Canvas's own export, cut to the columns that say who a student is, the column of the assignment
and the notes, if there are any. Rows and columns without a change are left out, and so are all columns that Canvas
calculates: an import cannot touch what is not in the file.

Source: what Canvas itself writes and reads, lib/gradebook_exporter.rb and lib/gradebook_importer.rb of
https://github.com/instructure/canvas-lms.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from grading.course import GradingError
from grading.csv_file import read_csv, to_csv
from grading.outcome import plain
from grading.report import Row, cell, unmarked
from grading.verdict import Verdict

MAX_CANVAS_BYTES = 50_000_000
POINTS_POSSIBLE = "Points Possible"
READ_ONLY_MARK = "read only"
NOTES_COLUMN = "Notes"  # the title of Canvas's own column for remarks that students do not see
STUDENT_COLUMNS = ("SIS Login ID", "SIS User ID", "ID")  # where a student's name is looked for; the first match counts
ASSIGNMENT_COLUMN = re.compile(r"(?P<title>.*\S)\s+\((?P<id>\d+)\)")
CANVAS_NUMBER = re.compile(r"-?[0-9][0-9.,]{0,15}", re.ASCII)
EXCUSED, NOT_ASSIGNED = "EX", "N/A"  # what Canvas has in place of a score


@dataclass(frozen=True)
class Gradebook:
    """Canvas's gradebook: the header, the row of the points possible, and a row for each student."""

    header: tuple[str, ...]
    possible: tuple[str, ...]
    students: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> int | None:
        """Return the number of a column, or None if there is no such column."""
        return self.header.index(name) if name in self.header else None


@dataclass(frozen=True)
class Line:
    """One student as Canvas knows them: the score and the note that are there, and those that should be."""

    student: str
    row: tuple[str, ...]
    before: str
    score: str
    noted: str = ""
    note: str = ""

    @property
    def is_new(self) -> bool:
        """Whether anything would be new to Canvas, which compares scores to two decimals."""
        return _number(self.before) != _number(self.score) or self.noted != self.note


@dataclass(frozen=True)
class Changes:
    """What would change in Canvas.

    Attributes:
        gradebook: what Canvas has now.
        columns: the numbers of the columns that are written; the last one is that of the assignment.
        lines: the students whose score or note would change.
        same: how many students have the same score and note there as here.
        left_out: the students whose grade is not written, and why.
        untouched: the students in Canvas who have no grade here, or whose grade is not written.
        warnings: what to know before the import, a sentence each.
    """

    gradebook: Gradebook
    columns: tuple[int, ...]
    lines: tuple[Line, ...]
    same: int
    left_out: tuple[tuple[str, str], ...]
    untouched: tuple[str, ...]
    warnings: tuple[str, ...]


def read(file: Path) -> Gradebook:
    """Read what Canvas exported.

    Raises:
        GradingError: it cannot be read, or is not such an export.
    """
    lines = [line.cells for line in read_csv(file, MAX_CANVAS_BYTES, "an export from Canvas")]
    header = tuple(title.strip() for title in lines[0]) if lines else ()
    if not {"ID", "Section"} <= set(header):
        raise GradingError(
            f"{file} begins with {', '.join(map(plain, header[:6])) or 'nothing'}, but a gradebook from Canvas begins "
            "with Student, ID, SIS User ID, SIS Login ID, Section. In Canvas: Grades, Export, Export Entire Gradebook"
        )
    wide = [(line + ("",) * (len(header) - len(line)))[: len(header)] for line in lines[1:]]
    possible = next((i for i, line in enumerate(wide) if POINTS_POSSIBLE in line[0]), None)
    if possible is None:
        raise GradingError(f"{file} has no row {POINTS_POSSIBLE!r}: export it from Canvas again, and leave it as it is")
    return Gradebook(header, wide[possible], tuple(wide[possible + 1 :]))


def changes(rows: Sequence[Row], assignment: str, gradebook: Gradebook) -> Changes:
    """Return what would change in Canvas's gradebook if it had the grades of these rows.

    Raises:
        GradingError: the assignment has no column there, or more than one.
    """
    column = _column(gradebook, assignment)
    matched, left_out = _match(rows, gradebook, column)
    notes = _notes(gradebook, [place for _, place in matched])
    lines = [_line(row, place, assignment, column, notes) for row, place in matched]
    who = range(gradebook.header.index("Section") + 1)
    noted = [notes] if notes is not None and any(line.note != line.noted for line in lines) else []
    return Changes(
        gradebook,
        (*who, *noted, column),
        tuple(line for line in lines if line.is_new),
        sum(not line.is_new for line in lines),
        tuple(left_out),
        tuple(_untouched(gradebook, {place for _, place in matched})),
        tuple(_warnings(rows, gradebook, column, matched)),
    )


def _column(gradebook: Gradebook, assignment: str) -> int:
    """Return the number of the column whose title is the assignment's name, whatever the case, spaces and dashes."""
    titles = {
        i: match["title"] for i, name in enumerate(gradebook.header) if (match := ASSIGNMENT_COLUMN.fullmatch(name))
    }
    found = [i for i, title in titles.items() if _letters(title) == _letters(assignment)]
    if len(found) != 1:
        known = ", ".join(plain(gradebook.header[i]) for i in titles) or "none at all"
        raise GradingError(
            f"Canvas's export has {len(found) or 'no'} columns for {assignment!r}, but exactly one is needed. Give one "
            f"assignment in Canvas this name, publish it, and export again. Its assignments are: {known}"
        )
    if READ_ONLY_MARK in gradebook.possible[found[0]]:
        raise GradingError(
            f"Canvas's column {plain(gradebook.header[found[0]])!r} is read-only. Make sure that you may grade this "
            "assignment in Canvas, and export again"
        )
    return found[0]


def _letters(title: str) -> str:
    return "".join(c for c in title.casefold() if c.isalnum())


Match = tuple[Row, tuple[str, ...]]  # a student here, and the row of the same one in Canvas


def _match(rows: Sequence[Row], gradebook: Gradebook, column: int) -> tuple[list[Match], list[tuple[str, str]]]:
    """Return which grade goes to which row, and which grades are left out, and why."""
    places: defaultdict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
    for who in STUDENT_COLUMNS:
        number = gradebook.column(who)
        for place in gradebook.students if number is not None else ():
            places[who, place[number or 0].casefold()].append(place)
    found = {row.outcome.student: _places(row.outcome.student, places) for row in rows}
    claimed = Counter(place for some in found.values() for place in some)
    matched, left_out = [], []
    for row in rows:
        some = found[row.outcome.student]
        reason = _reason(row, some, claimed, column)
        if reason:
            left_out.append((row.label, reason))
        else:
            matched.append((row, some[0]))
    return matched, left_out


def _places(student: str, places: Mapping[tuple[str, str], list[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """Return the rows of a student in Canvas, found by the first of the three names that any row has."""
    return next((places[who, student.casefold()] for who in STUDENT_COLUMNS if (who, student.casefold()) in places), [])


def _reason(row: Row, places: Sequence[tuple[str, ...]], claimed: Mapping[tuple[str, ...], int], column: int) -> str:
    """Return why a student's grade is not written, or "" if it is."""
    if not places:
        return f"no row in Canvas has this name as {', '.join(STUDENT_COLUMNS[:-1])} or {STUDENT_COLUMNS[-1]}"
    if len(places) > 1:
        return f"{len(places)} rows in Canvas have this name"
    if claimed[places[0]] > 1:
        return "another student here has the same row in Canvas"
    if row.outcome.verdict is Verdict.INFRASTRUCTURE or not row.scores:
        return "the grader failed: run it again for this student"
    there = places[0][column].strip().upper()
    return {EXCUSED: "excused in Canvas", NOT_ASSIGNED: "not assigned to this student in Canvas"}.get(there, "")


def _notes(gradebook: Gradebook, places: Sequence[tuple[str, ...]]) -> int | None:
    """Return the number of the column of notes, or None if no notes can be written.

    A note that must be escaped in a table would come back into Canvas escaped, so then no notes are written.
    """
    column = gradebook.column(NOTES_COLUMN)
    if column is None or READ_ONLY_MARK in gradebook.possible[column]:
        return None
    return column if all(cell(place[column]) == place[column] for place in places) else None


def _line(row: Row, place: tuple[str, ...], assignment: str, column: int, notes: int | None) -> Line:
    noted = "" if notes is None else place[notes]
    note = "" if notes is None else _note(row, assignment, noted)
    return Line(row.label, place, place[column].strip(), _score(row.score), noted, note)


def _note(row: Row, assignment: str, noted: str) -> str:
    """Return a note with the remarks on this assignment, in brackets, after what a person wrote."""
    rest = re.sub(rf" *\[{re.escape(assignment)}: [^\]]*\]", "", noted)
    said = [str(row.outcome.verdict)] if row.outcome.verdict is not Verdict.GRADED else []
    said += ["to look at"] if row.outcome.flags else []
    return f"{rest} [{assignment}: {', '.join(said)}]".strip() if said else rest


def _warnings(rows: Sequence[Row], gradebook: Gradebook, column: int, matched: Sequence[Match]) -> list[str]:
    found = []
    ours, theirs = _score(max((row.points for row in rows), default=0.0)), gradebook.possible[column]
    if _number(ours) != _number(theirs):
        found.append(
            f"In Canvas, this assignment is worth {plain(theirs) or 'nothing'}, but here it is worth {ours}. "
            "Change it in Canvas."
        )
    found += unmarked([row for row, _ in matched])
    notes = gradebook.column(NOTES_COLUMN)
    if notes is not None and _notes(gradebook, [place for _, place in matched]) is None:
        found.append(
            f"The column {NOTES_COLUMN!r} is not written: it is read-only, or contains text that looks like a formula."
        )
    return found


def _untouched(gradebook: Gradebook, written: Collection[tuple[str, ...]]) -> Iterator[str]:
    """Yield the name and the Canvas id of each student in Canvas for whom nothing is written."""
    number = gradebook.header.index("ID")
    for place in gradebook.students:
        if place not in written:
            yield f"{', '.join(place[:number])} ({place[number]})"


def _score(value: float) -> str:
    """Return a number as Canvas writes it: with two decimals, halves rounded up."""
    return str(Decimal(repr(float(value))).quantize(Decimal("0.01"), ROUND_HALF_UP))


def _number(text: str) -> Decimal | None:
    """Read a number as Canvas does: the last comma or point is the decimal one. Return None for anything else."""
    if not CANVAS_NUMBER.fullmatch(text.strip()):
        return None
    *whole, last = re.split("[.,]", text.strip())
    number = Decimal(f"{''.join(whole)}.{last}" if whole else last)
    return number.quantize(Decimal("0.01"), ROUND_HALF_UP)


def csv_of(found: Changes) -> str:
    """Return what changes, in the form that Canvas imports."""
    book, others = found.gradebook, found.columns[:-1]
    notes = book.column(NOTES_COLUMN)
    titles = [[cell(row[i]) for i in found.columns] for row in (book.header, book.possible)]
    lines = [[*(cell(line.note if i == notes else line.row[i]) for i in others), line.score] for line in found.lines]
    return to_csv([*titles, *lines])


def preview(found: Changes) -> str:
    """Return text for a terminal: what would change, who is left out on either side, and any warnings."""
    title, book = plain(found.gradebook.header[found.columns[-1]]), found.gradebook
    blocks = [f"{title}: {len(found.lines)} would change, {found.same} would not."]
    blocks += [f"  {_change(line)}" for line in found.lines]
    if found.left_out:
        blocks += ["", f"Graded here, but left out ({len(found.left_out)}):"]
        blocks += [f"  {plain(student)}: {reason}" for student, reason in found.left_out]
    if found.untouched:
        blocks += ["", f"In Canvas, but left unchanged ({len(found.untouched)} of {len(book.students)}):"]
        blocks += [f"  {plain(student)}" for student in found.untouched]
    return "\n".join([*blocks, *([""] if found.warnings else []), *found.warnings])


def _change(line: Line) -> str:
    note = f"  note: {plain(line.note) or 'none'}" if line.note != line.noted else ""
    return f"{plain(line.student)}  {plain(line.before) or '–'} → {line.score}{note}"
