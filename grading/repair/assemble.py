"""Put a notebook together: the assignment's cells with the student's answers, and the student's own between them."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count
from urllib.parse import quote

from grading._untyped import NotebookNode, as_node, code_cell, text_cell
from grading.repair.match_cells import TemplateCell
from grading.repair.parse import SubmittedCell
from grading.repair.pictures import Pictures


def assemble(
    cells: Sequence[SubmittedCell],
    found: Mapping[int, int],
    expected: Sequence[TemplateCell],
    template: NotebookNode,
    pictures: Pictures,
) -> NotebookNode:
    """Return the template with the answers of a submission, and the student's own cells after those they followed.

    A missing answer becomes empty, because the placeholder would be taken for the student's own. ``pictures`` takes
    those that were pasted into an answer or a text.
    """
    notebook = deepcopy(template)
    own: dict[int, list[NotebookNode]] = {}
    fresh = _fresh({cell.id for cell in expected})
    for after, cell in _own(cells, found, expected):
        own.setdefault(after, []).append(_new(cell, next(fresh), pictures))
    answered, notebook.cells = notebook.cells, own.get(-1, [])
    for i, cell in enumerate(answered):
        if expected[i].answer:
            cell.source = cells[found[i]].source if i in found else ""
            _paste(cells[found[i]] if i in found else None, cell, pictures)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        notebook.cells += [cell, *own.get(i, [])]
    return notebook


def _own(
    cells: Sequence[SubmittedCell], found: Mapping[int, int], expected: Sequence[TemplateCell]
) -> Iterator[tuple[int, SubmittedCell]]:
    """Yield the student's own cells, each with the place of the assignment's cell that it followed, or -1."""
    places = {at: i for i, at in found.items()}
    after = -1
    for at, cell in enumerate(cells):
        after = places.get(at, after)
        if at not in places or expected[after].keeps(cell):
            yield after, cell


def _fresh(taken: set[str | None]) -> Iterator[str]:
    """Yield ids that no cell of the assignment has."""
    return (name for name in map("own-{}".format, count(1)) if name not in taken)


def _new(cell: SubmittedCell, name: str, pictures: Pictures) -> NotebookNode:
    """Return a cell of the student's own: code, or text."""
    made = code_cell(cell.source, name) if cell.kind == "code" else text_cell(cell.source, name)
    _paste(cell, made, pictures)
    return made


def _paste(came: SubmittedCell | None, cell: NotebookNode, pictures: Pictures) -> None:
    """Give a cell of text the pictures that came with it."""
    if cell.cell_type == "markdown":
        cell.pop("attachments", None)
        if came and (kept := pictures.kept(came.attachments)):
            # nbconvert looks an attachment up by its name in the address, which Jupyter quotes.
            named = {quoted if (quoted := quote(name)) in cell.source else name: kept[name] for name in kept}
            cell.attachments = as_node(named)
