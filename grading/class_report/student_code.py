"""What a student wrote: the answer cells, and the cells that the student added, taken from the executed notebook."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from grading.course import Course
from grading.safe_files import SafeFolder

MAX_EXECUTED_NOTEBOOK_BYTES = 100_000_000  # enough for the outputs of 500 cells, each cut to its limit
MAX_CODE_LENGTH = 100_000  # characters of code from one student; twenty times a long solution


class CodeCell(NamedTuple):
    """A cell: what it is called, and its source."""

    name: str
    source: str


class NotComparableError(Exception):
    """What a student wrote cannot be compared. The text says why."""


def written_code(course: Course, assignment: str, student: str) -> list[CodeCell]:
    """Return the code cells that a student wrote.

    Raises:
        NotComparableError: there is no executed notebook, it is invalid, or its code exceeds MAX_CODE_LENGTH.
    """
    return _of_kind(course, assignment, student, "code")


def written_text(course: Course, assignment: str, student: str) -> list[CodeCell]:
    """Return the cells of text that a student wrote.

    Raises:
        NotComparableError: as for code.
    """
    return _of_kind(course, assignment, student, "markdown")


def _of_kind(course: Course, assignment: str, student: str, kind: str) -> list[CodeCell]:
    folder = course.autograded(student, assignment)
    found = (_cells(course.files, folder / name, kind) for name in course.notebooks(assignment))
    cells = [cell for notebook in found for cell in _written(notebook)]
    length = sum(len(cell.source) for cell in cells)
    if length > MAX_CODE_LENGTH:
        raise NotComparableError(f"{length} characters of {kind}, more than {MAX_CODE_LENGTH}")
    return cells


def given_code(course: Course, assignment: str) -> list[str]:
    """Return the code that nobody has to write: the released notebooks, and the instructor's solution."""
    places = (course.root / "solutions", course.root / "exercises", course.folder / "release")
    files = [(place, place / assignment / name) for place in places for name in course.notebooks(assignment)]
    return [_source(cell) for place, file in files if file.is_file() for cell in _cells(SafeFolder(place), file)]


def _cells(files: SafeFolder, file: Path, kind: str = "code") -> list[dict[str, object]]:
    """Return the cells of a notebook of one kind, each of which has a source."""
    try:
        notebook = json.loads(files.read(file, MAX_EXECUTED_NOTEBOOK_BYTES))
        cells = notebook["cells"]
        return [cell for cell in cells if cell["cell_type"] == kind and isinstance(_source(cell), str)]
    except FileNotFoundError:
        raise NotComparableError("no executed notebook") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotComparableError(f"{file.name} is not a complete notebook ({type(error).__name__})") from error


def _source(cell: dict[str, object]) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)


def _written(cells: Sequence[dict[str, object]]) -> Iterator[CodeCell]:
    for cell in cells:
        metadata = cell.get("metadata")
        nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        if not isinstance(nbgrader, dict):
            yield CodeCell("a cell of their own", _source(cell))
        elif nbgrader.get("solution"):
            yield CodeCell(str(nbgrader.get("grade_id")), _source(cell))
