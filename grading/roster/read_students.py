"""Turn the rows of a roster into students, and say what is wrong with each row that cannot be one."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from grading.csv_file import Line
from grading.gradebook.students import StudentEntry
from grading.outcome import plain
from grading.roster.columns import Columns
from grading.submission_folders import why_not
from grading.text import JOINERS

MAX_FIELD = 128  # characters: the width of nbgrader's columns
# What sets the direction of text, and a byte order mark. Where a name is shown, it has a direction of its own anyway.
DIRECTION_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF])
EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
PARTICIPANT = re.compile(r"\D*(\d+)")  # "Participant 77000", in any language
SHORTENED = re.compile(r"\d[.,]?\d*E\+?\d+", re.IGNORECASE)  # how a spreadsheet shows a long number
REMOVED_BY_MOODLE = re.compile(r"""[&<>"`|':\\/]|\.\.+""")  # from the name of a file (its PARAM_FILE)
LAST_LINE_OF_HEAD = "Points Possible"  # Canvas puts further lines between the titles and the students
TEST_STUDENTS = ("Student, Test", "_previewuser")  # Canvas's name, and the end of Blackboard's


class Problem(NamedTuple):
    """What is wrong with a line: what came, and what was expected."""

    line: int
    text: str


@dataclass(frozen=True)
class Listed:
    """A student as a line of the file describes them. ``names`` are the login and the like, if the file has them."""

    line: int
    entry: StudentEntry
    names: tuple[str, ...] = ()


def read_students(lines: Sequence[Line], columns: Columns) -> tuple[list[Listed], list[Problem]]:
    """Return the students of a file, whose first line holds the titles, and what is wrong with its other lines.

    A student who is listed twice in the same words counts once.
    """
    header = lines[0].cells
    head = next((i for i, line in enumerate(lines) if LAST_LINE_OF_HEAD in line.cells[0]), 0)
    rows = [line for line in lines[head + 1 :] if not any(cell.endswith(TEST_STUDENTS) for cell in line.cells)]
    at = {field: header.index(title) for field, title in columns.used.items()}
    found: dict[str, Listed] = {}
    problems: list[Problem] = []
    for line in rows:
        listed = _listed(line, at)
        wrong = [*_cells(line, len(header)), *_wrong(listed.entry)]
        earlier = found.setdefault(listed.entry.id.casefold(), listed)
        if not wrong and earlier.entry != listed.entry:
            wrong = [
                f"the id {plain(listed.entry.id)!r} is also that of {plain(earlier.entry.name)!r} on line "
                f"{earlier.line} ({plain(earlier.entry.id)!r}); expected an id of its own for each student"
            ]
        problems += [Problem(line.number, text) for text in wrong]
    return list(found.values()), problems


def _cells(line: Line, expected: int) -> Iterator[str]:
    if any(line.cells[expected:]):
        yield (
            f"it has {len(line.cells)} cells; expected {expected}, as in the first line. Put a cell that contains "
            "the delimiter into quotation marks"
        )


def _listed(line: Line, at: Mapping[str, int]) -> Listed:
    values = {field: _clean(line.cells[i]) if i < len(line.cells) else "" for field, i in at.items()}
    names = tuple(filter(None, (values.pop("login", ""), values.pop("sis_id", ""))))
    name, identifier = values.pop("name", ""), values.pop("moodle_identifier", None)
    if identifier is not None:
        values["id"] = _moodle_id(name, identifier)
    if name and not (values.get("first_name") or values.get("last_name")):
        last, _, first = name.partition(", ")  # without a comma, nobody knows where the last name begins
        values |= {"first_name": first, "last_name": last}
    return Listed(line.number, StudentEntry(**values), names)


def _clean(text: str) -> str:
    """Return a text without direction marks, with single spaces, in the one form that Unicode calls NFC."""
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text.translate(DIRECTION_MARKS))
    return unicodedata.normalize("NFC", re.sub(" +", " ", spaced).strip(" "))


def _moodle_id(name: str, identifier: str) -> str:
    """Return the name of a student's folder in Moodle's download of all submissions, such as "Aiko Lovelace_77000"."""
    number = PARTICIPANT.fullmatch(identifier)
    return f"{REMOVED_BY_MOODLE.sub('', name.replace('_', ' '))}_{number[1]}" if number and name else ""


def _wrong(entry: StudentEntry) -> Iterator[str]:
    """Yield what is wrong with a student, each with what came and what was expected."""
    if wrong := _wrong_id(entry.id):
        yield f"the id {plain(entry.id)!r} {wrong}"
    if not (entry.first_name or entry.last_name):
        yield "it has no name; expected a first name, a last name or both"
    if entry.email and not EMAIL.fullmatch(entry.email):
        yield f"the e-mail address is {plain(entry.email)!r}; expected one like name@example.org, or nothing"
    for what in ("id", "first_name", "last_name", "email", "lms_user_id"):
        text, title = getattr(entry, what), what.replace("_", " ")
        if len(text) > MAX_FIELD:
            yield f"the {title} has {len(text)} characters; expected at most {MAX_FIELD}"
        if odd := [c for c in text if not c.isprintable() and c not in JOINERS]:
            yield f"the {title} {plain(text)!r} contains the control character U+{ord(odd[0]):04X}; expected text"


def _wrong_id(student: str) -> str:
    """Return why an id cannot be the name of a folder, or "" if it can."""
    if not student:
        return "is empty; expected what the learning management system calls the student"
    if SHORTENED.fullmatch(student):
        return "is a number that a spreadsheet has shortened; expected all its digits. Export the file again"
    if student.startswith(".") or {"/", "\\"} & set(student):
        return "begins with a dot, or contains a slash; expected a name that a folder can have"
    if why := why_not(student):
        return f"cannot be the name of a folder: {why}"
    return ""
