"""Say in what a submission differs from the assignment, beyond its answers: each difference is repaired."""

from collections.abc import Iterator, Mapping, Sequence

from grading._untyped import NotebookNode
from grading.doctor.cells import Cell
from grading.doctor.recognise import Asked
from grading.doctor.repair import Repair, counted, listed, printable

IN_THE_BROWSER = "python"  # the kernel of JupyterLite, which is the same language: nothing to tell the instructor of


def another_kernel(came: object, template: NotebookNode) -> Iterator[Repair]:
    """Report a kernel that is not the assignment's."""
    wanted = template.metadata.get("kernelspec", {}).get("name")
    if came not in (wanted, IN_THE_BROWSER):
        named = f"the kernel {printable(came)}" if isinstance(came, str) else "no kernel"
        yield Repair("kernelspec", f"The notebook names {named}; it is graded with {wanted}.")


def differences(cells: Sequence[Cell], found: Mapping[int, int], asked: Sequence[Asked]) -> Iterator[Repair]:
    """Report what happened to the assignment's cells."""
    if not found:
        yield Repair("another-notebook", "None of the assignment's cells is there. Is it the notebook of another?")
        return
    pairs = [(asked[i], cells[found[i]]) for i in sorted(found)]
    yield from _copies(cells, found, asked)
    yield from _gone([cell for i, cell in enumerate(asked) if i not in found])
    order = [found[i] for i in sorted(found)]
    if order != sorted(order):
        yield Repair("moved-cell", "The cells stood in another order; they stand in the assignment's again.")
    yield from _changed(pairs)
    yield from _renamed(pairs)


def _copies(cells: Sequence[Cell], found: Mapping[int, int], asked: Sequence[Asked]) -> Iterator[Repair]:
    taken = set(found.values())
    claimed = {name for at, cell in enumerate(cells) if at not in taken for name in (cell.name, cell.id) if name}
    if copied := [str(cell) for i, cell in enumerate(asked) if i in found and {cell.name, cell.id} & claimed]:
        text = "Of each the last one counts, and the others are kept as the student's own"
        yield Repair("duplicated-cell", f"Cells stood there more than once: {listed(copied)}. {text}.")


def _gone(gone: Sequence[Asked]) -> Iterator[Repair]:
    if answers := [str(cell) for cell in gone if cell.answer]:
        yield Repair("missing-answer", f"No cell was found for the answer {listed(answers)}; it counts as empty.")
    if others := [str(cell) for cell in gone if not cell.answer]:
        yield Repair("missing-cell", f"Cells of the assignment were gone, and are there again: {listed(others)}.")


def _changed(pairs: Sequence[tuple[Asked, Cell]]) -> Iterator[Repair]:
    if code := [str(asked) for asked, cell in pairs if asked.changed(cell) and not asked.keeps(cell)]:
        text = "They are the assignment's again"
        yield Repair("edited-cell", f"Cells that are not for editing were changed: {listed(code)}. {text}.")
    if words := [str(asked) for asked, cell in pairs if asked.keeps(cell)]:
        text = "It is the assignment's again, and the changed one follows it"
        yield Repair("edited-text", f"The assignment's text was changed: {listed(words)}. {text}.")
    if kinds := [str(asked) for asked, cell in pairs if asked.kind != cell.kind]:
        yield Repair("cell-type", f"Cells were of another type, and are of their own again: {listed(kinds)}.")


def _renamed(pairs: Sequence[tuple[Asked, Cell]]) -> Iterator[Repair]:
    nameless = [(asked, cell) for asked, cell in pairs if asked.name and cell.name != asked.name]
    placed = [str(asked) for asked, cell in nameless if asked.answer and cell.id != asked.id]
    if placed:
        text = "It was recognised by its place and what it defines"
        yield Repair("found-by-place", f"The cell of the answer {listed(placed)} was not marked as such. {text}.")
    known = [(asked, cell) for asked, cell in nameless if str(asked) not in placed]
    if renamed := [str(asked) for asked, cell in known if cell.name is not None]:
        yield Repair("renamed-cell", f"Cells had lost their names, and have them again: {listed(renamed)}.")
    if lost := [asked for asked, cell in known if cell.name is None]:
        yield Repair("no-metadata", f"{counted(len(lost), 'cell')} had lost nbgrader's metadata, and have them again.")
