"""Find the assignment's cells in a submission, whatever the student did to the others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grading._untyped import NotebookNode, is_solution
from grading.repair.parse import SubmittedCell

# Names that a cell binds at its top level, found line by line, since a student's code need not be valid Python.
_BOUND = re.compile(r"^(?:async +)?(?:def|class) +(\w+)|^(\w+) *=(?!=)", re.MULTILINE)


@dataclass(frozen=True)
class TemplateCell(SubmittedCell):
    """A cell of the assignment. ``answer`` says whether it is to be written by the student."""

    answer: bool

    def __str__(self) -> str:
        return str(self.name or self.id)

    def changed(self, cell: SubmittedCell) -> bool:
        """Tell whether a student's ``cell`` differs from a cell that must not be edited."""
        return not self.answer and cell.text != self.text

    def keeps(self, cell: SubmittedCell) -> bool:
        """Tell whether the student's version is kept as well, since text may be an answer in the wrong place."""
        return self.changed(cell) and self.kind == "markdown" and bool(cell.source.strip())


def template_cells(template: NotebookNode) -> tuple[TemplateCell, ...]:
    """Return the cells of an assignment."""
    return tuple(
        TemplateCell(cell.cell_type, cell.source, cell.id, given.get("grade_id"), is_solution(cell))
        for cell in template.cells
        for given in (cell.metadata.get("nbgrader", {}),)
    )


def match_cells(cells: Sequence[SubmittedCell], expected: Sequence[TemplateCell]) -> dict[int, int]:
    """Return the position in the submission of each of the assignment's cells that is found.

    A cell is recognised by the name that nbgrader gave to it, or else by its id; text and code that must not be edited,
    by its source; and a retyped answer, by its place.
    """
    found = _by_name(cells, expected)
    _by_source(found, cells, expected)
    for i in range(len(expected)):
        if i not in found and (at := _by_place(i, found, cells, expected)) is not None:
            found[i] = at
    return found


def _by_name(cells: Sequence[SubmittedCell], expected: Sequence[TemplateCell]) -> dict[int, int]:
    """Find cells by name and id. If there are several, the last one counts, as it would in Python."""
    names = {cell.name: i for i, cell in enumerate(expected) if cell.name}
    ids = {cell.id: i for i, cell in enumerate(expected) if cell.id}
    claims: dict[int, list[int]] = {}
    for at, cell in enumerate(cells):
        if (i := names.get(cell.name or "", ids.get(cell.id or ""))) is not None:
            claims.setdefault(i, []).append(at)
    # An empty one is what is left when a cell was split at its end.
    return {i: max(several, key=lambda at: (bool(cells[at].source.strip()), at)) for i, several in claims.items()}


def _by_source(found: dict[int, int], cells: Sequence[SubmittedCell], expected: Sequence[TemplateCell]) -> None:
    """Add to ``found`` the cells that must not be edited and were not, in order."""
    waiting: dict[str, list[int]] = {}
    for i, cell in enumerate(expected):
        if i not in found and not cell.answer:
            waiting.setdefault(cell.text, []).append(i)
    taken = set(found.values())
    for at, one in enumerate(cells):
        if at not in taken and (same := waiting.get(one.text)):
            found[same.pop(0)] = at


def _by_place(
    i: int, found: dict[int, int], cells: Sequence[SubmittedCell], expected: Sequence[TemplateCell]
) -> int | None:
    """Find a cell between the neighbours that are known.

    Code is recognised if it binds all the names that the assignment's cell binds, and a written answer if both of its
    neighbours are known. Anything else there is the student's own, and is kept as such.
    """
    before = max((j for j in found if j < i), default=-1)
    after = min((j for j in found if j > i), default=len(expected))
    taken = set(found.values())
    between = range(found.get(before, -1) + 1, found.get(after, len(cells)))
    near = [at for at in between if at not in taken and _may_be(cells[at], expected[i], expected)]
    if expected[i].kind == "code":
        wanted = _bound(expected[i])
        return next((at for at in reversed(near) if wanted and wanted <= _bound(cells[at])), None)
    alone = expected[i].answer and (before, after) == (i - 1, i + 1)
    return near[0] if alone and near else None


def _may_be(cell: SubmittedCell, wanted: TemplateCell, expected: Sequence[TemplateCell]) -> bool:
    """Tell whether a cell may be the wanted one: it has the same kind, is not empty, and is not a copy of another."""
    others = (other.text for other in expected if other.source != wanted.source)
    return cell.kind == wanted.kind and cell.text != "" and cell.text not in others


def _bound(cell: SubmittedCell) -> set[str]:
    """Return the names that a cell of code binds at its top level."""
    return {name for groups in _BOUND.findall(cell.source) for name in groups if name}
