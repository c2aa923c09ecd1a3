"""Put a notebook together: the assignment's cells with the student's answers, and the student's own between them."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count

from grading._untyped import NotebookNode, code_cell, text_cell
from grading.doctor.cells import Cell
from grading.doctor.recognise import Asked


def assemble(
    cells: Sequence[Cell], found: Mapping[int, int], asked: Sequence[Asked], template: NotebookNode
) -> NotebookNode:
    """Return the template with the answers of a submission, and the student's own cells behind those they followed.

    An answer that is not there is empty: the placeholder would be taken for what the student wrote.
    """
    notebook = deepcopy(template)
    own: dict[int, list[NotebookNode]] = {}
    fresh = _fresh({cell.id for cell in asked})
    for after, cell in _own(cells, found, asked):
        own.setdefault(after, []).append(_new(cell, next(fresh)))
    answered, notebook.cells = notebook.cells, own.get(-1, [])
    for i, cell in enumerate(answered):
        if asked[i].answer:
            cell.source = cells[found[i]].source if i in found else ""
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        notebook.cells += [cell, *own.get(i, [])]
    return notebook


def _own(cells: Sequence[Cell], found: Mapping[int, int], asked: Sequence[Asked]) -> Iterator[tuple[int, Cell]]:
    """Yield the student's own cells, each with the place of the assignment's cell that it followed, or -1."""
    places = {at: i for i, at in found.items()}
    after = -1
    for at, cell in enumerate(cells):
        after = places.get(at, after)
        if at not in places or asked[after].keeps(cell):
            yield after, cell


def _fresh(taken: set[str | None]) -> Iterator[str]:
    """Yield ids that no cell of the assignment has."""
    return (name for name in map("own-{}".format, count(1)) if name not in taken)


def _new(cell: Cell, name: str) -> NotebookNode:
    """Return a cell of the student's own: code, or text."""
    return code_cell(cell.source, name) if cell.kind == "code" else text_cell(cell.source, name)
