"""The rubric of a question that a person marks: a table above the answer, which students see as they write.

The table is in the notebook itself, in the cell above the answer, and has three columns: a name for each criterion,
what earns its points, and the number of points. Students see it while they write, it is on the feedback page, and
Formgrader shows it to whoever marks. The assignment's own notebook is read, never a submission.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from grading.course import Course, GradingError
from grading.text import points

TABLE = re.compile(r"^(.*\|.*)\n[-:| \t]*-[-:| \t]*\n((?:.*\|.*(?:\n|$))+)", re.MULTILINE)  # the heading, and the rows
RUBRIC_WORD = re.compile(r"\b(?:criterion|criteria|rubric|points|pts|marks)\b", re.IGNORECASE)
HEADER = re.compile(r"^\| *criterion *\|[^|\n]*\| *points *\| *\n\|[ :|-]+\n((?:\|.*(?:\n|$))+)", re.MULTILINE)


@dataclass(frozen=True)
class Criterion:
    """A row of a rubric."""

    name: str
    says: str
    points: float


def rubrics(course: Course, assignment: str) -> dict[str, tuple[Criterion, ...]]:
    """Return the criteria of each question that has a rubric.

    Raises:
        GradingError: a row does not have three cells, a name occurs twice, the points do not add up, or a table looks
            like a rubric but has a different heading.
    """
    found = {}
    for name in course.notebooks(assignment):
        file = course.root / "solutions" / assignment / name
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        for above, cell in pairwise(cells):
            about = cell["metadata"].get("nbgrader", {})
            if above["cell_type"] != "markdown" or not (about.get("grade") and about.get("solution")):
                continue
            text, where = "".join(above["source"]), f"{assignment}/{name}"
            if table := HEADER.search(text):
                found[about["grade_id"]] = _checked(list(_criteria(table[1])), about, where)
            else:
                _require_no_rubric(text, about, where)
    return found


def _require_no_rubric(text: str, about: Mapping[str, Any], where: str) -> None:
    """Check that no table has a word for marks in its heading, or a last column that adds up to the points."""
    for heading, rows in TABLE.findall(text):
        last = [_number(row.strip().strip("|").rpartition("|")[2].strip()) for row in rows.strip().splitlines()]
        if RUBRIC_WORD.search(heading) or (about["points"] and sum(last) == float(about["points"])):
            raise GradingError(
                f"{where}: the table above {about['grade_id']} looks like a rubric, but its heading is "
                f"{heading.strip()}; expected three columns, as in | criterion | what earns the points | points |. "
                "If it is not a rubric, move it to a cell further up"
            )


def _criteria(rows: str) -> Iterator[Criterion]:
    for row in rows.strip().splitlines():
        name, says, worth = (*(cell.strip() for cell in row.strip().strip("|").split("|")), "", "")[:3]
        yield Criterion(name, says, _number(worth))


def _number(text: str) -> float:
    return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else 0.0


def _checked(criteria: Sequence[Criterion], about: Mapping[str, Any], where: str) -> tuple[Criterion, ...]:
    names, total = [one.name for one in criteria], sum(one.points for one in criteria)
    if len(set(names)) < len(names) or not all(one.name and one.points for one in criteria):
        raise GradingError(
            f"{where}: in the rubric of {about['grade_id']}, each row needs a name of its own, what earns the points, "
            f"and the points; found the names {', '.join(names)}"
        )
    if abs(total - float(about["points"])) > 1e-9:
        raise GradingError(
            f"{where}: the rubric of {about['grade_id']} has {points(total)} points, but the question is worth "
            f"{points(about['points'])}"
        )
    return tuple(criteria)


def title(question: str, criterion: Criterion) -> str:
    """Return what a criterion is called in the files of assistants."""
    return f"{question}: {criterion.name} ({criterion.says})"


def as_text(criteria: Sequence[Criterion], marks: Mapping[str, tuple[float, str]]) -> str:
    """Return the mark and the comment for each criterion as a list in Markdown."""
    lines = ((one, *marks[one.name]) for one in criteria)
    return "\n".join(
        f"- {one.name}: {points(mark)} of {points(one.points)}. {said}".rstrip() for one, mark, said in lines
    )
