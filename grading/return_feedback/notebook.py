"""Feedback as a notebook: the executed one, with the points and the comments in a cell at its beginning."""

from collections.abc import Iterator, Mapping

from grading._untyped import notebook_of, notebook_text, text_cell
from grading.course import Course
from grading.report import Row
from grading.text import points

MAX_NOTEBOOK_BYTES = 200_000_000


def with_points(course: Course, assignment: str, row: Row, comments: Mapping[str, str]) -> bytes:
    """Return a student's executed notebook with the points and comments, or nothing if there is none.

    The executed notebooks have been sanitized: nothing that a student wrote runs when one is opened.
    """
    folder = course.autograded(row.outcome.student, assignment)
    for name in course.files.names(folder, ".ipynb")[:1]:
        notebook = notebook_of(course.files.read(folder / name, MAX_NOTEBOOK_BYTES))
        notebook.cells.insert(0, text_cell("\n".join(_lines(row, comments)), "points-and-comments"))
        return notebook_text(notebook).encode()
    return b""


def _lines(row: Row, comments: Mapping[str, str]) -> Iterator[str]:
    yield f"**{points(row.score)} of {points(row.points)} points**\n"
    yield "| question | points | of |\n|---|---|---|"
    yield from (f"| `{name}` | {points(score)} | {points(most)} |" for name, (score, most) in row.scores.items())
    if row.penalty:
        yield f"| handed in late | −{points(row.penalty)} | |"
    yield from (f"\nOn `{name}`:\n\n> " + text.replace("\n", "\n> ") for name, text in comments.items())
