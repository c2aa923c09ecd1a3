"""A class of made-up students: one file each, with the cells that the student filled in.

A student's file is Markdown. The first heading says who it is and what is special; each further heading is the id of
a cell, and the block of code below it (or, where there is none, the text) is what the student wrote there.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from grading._untyped import notebook_text, read_notebook
from grading.course import Course, GradingError, log_file
from grading.release import release

SAMPLE_FOLDER = Path(__file__).parent
CELL_HEADING = re.compile(r"^## (.+)$\n", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
FILE_ENDS = "(the file ends here)"  # in place of a cell's id: the notebook was cut off while it was saved


def write_class(course: Course, assignment: str) -> list[str]:
    """Write a submission for each student of an assignment's sample class, and return their names."""
    course.require(assignment)
    files = sorted((SAMPLE_FOLDER / assignment).glob("*.md"))
    if not files:
        known = ", ".join(sorted(path.name for path in SAMPLE_FOLDER.glob("*/"))) or "none"
        raise GradingError(f"{assignment!r} has no sample class; there are some for: {known}")
    with TemporaryDirectory(prefix="released-") as made:
        folder = release(course, assignment, Path(made), log_file(course, assignment))
        for file in files:
            _write(course, assignment, folder, file)
    return [file.stem for file in files]


def _write(course: Course, assignment: str, released: Path, file: Path) -> None:
    (name,) = course.notebooks(assignment)
    cells = read(file)
    notebook = read_notebook(released / name)
    unknown = cells.keys() - {cell.id for cell in notebook.cells} - {FILE_ENDS}
    if unknown:
        raise GradingError(f"{file.name} fills in {', '.join(sorted(unknown))}, but {name} has no such cells")
    for cell in notebook.cells:
        cell.source = cells.get(cell.id, cell.source)
    text = notebook_text(notebook)
    target = course.submitted(file.stem, assignment) / name
    course.files.write(target, (text[: len(text) // 2] if FILE_ENDS in cells else text).encode())


def read(file: Path) -> dict[str, str]:
    """Return what a student wrote, by the id of the cell."""
    _, *parts = CELL_HEADING.split(file.read_text(encoding="utf-8"))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {cell: fence[1] if (fence := CODE_BLOCK.search(text)) else text.strip() for cell, text in pairs}
