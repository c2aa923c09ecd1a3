"""Say how a submission differs from the assignment, apart from its answers. Each difference is repaired."""

from collections.abc import Iterator, Mapping, Sequence

from grading._untyped import NotebookNode
from grading.repair.match_cells import TemplateCell
from grading.repair.messages import Repair, listed, printable
from grading.repair.parse import SubmittedCell
from grading.text import counted

IN_THE_BROWSER = "python"  # the kernel of JupyterLite: the language is the same, so it is not reported


def another_kernel(came: object, template: NotebookNode) -> Iterator[Repair]:
    """Report a kernel that is not the assignment's."""
    wanted = template.metadata.get("kernelspec", {}).get("name")
    if came not in (wanted, IN_THE_BROWSER):
        named = f"the kernel {printable(came)}" if isinstance(came, str) else "no kernel"
        yield Repair("kernelspec", f"The notebook names {named}; it is graded with {wanted}.")


def differences(
    cells: Sequence[SubmittedCell], found: Mapping[int, int], expected: Sequence[TemplateCell]
) -> Iterator[Repair]:
    """Report what happened to the assignment's cells."""
    if not found:
        yield Repair(
            "another-notebook", "It contains none of this assignment's cells. Does it belong to another assignment?"
        )
        return
    pairs = [(expected[i], cells[found[i]]) for i in sorted(found)]
    yield from _copies(cells, found, expected)
    yield from _gone([cell for i, cell in enumerate(expected) if i not in found])
    order = [found[i] for i in sorted(found)]
    if order != sorted(order):
        yield Repair("moved-cell", "The cells were in a different order; the assignment's order is restored.")
    yield from _changed(pairs)
    yield from _renamed(pairs)


def _copies(
    cells: Sequence[SubmittedCell], found: Mapping[int, int], expected: Sequence[TemplateCell]
) -> Iterator[Repair]:
    taken = set(found.values())
    claimed = {name for at, cell in enumerate(cells) if at not in taken for name in (cell.name, cell.id) if name}
    if copied := [str(cell) for i, cell in enumerate(expected) if i in found and {cell.name, cell.id} & claimed]:
        text = "The last of each counts, and the others are kept as the student's own cells"
        yield Repair("duplicated-cell", f"Some cells occurred more than once: {listed(copied)}. {text}.")


def _gone(gone: Sequence[TemplateCell]) -> Iterator[Repair]:
    if answers := [str(cell) for cell in gone if cell.answer]:
        yield Repair("missing-answer", f"No cell was found for the answer {listed(answers)}; it counts as empty.")
    if others := [str(cell) for cell in gone if not cell.answer]:
        yield Repair("missing-cell", f"Cells of the assignment were missing and are restored: {listed(others)}.")


def _changed(pairs: Sequence[tuple[TemplateCell, SubmittedCell]]) -> Iterator[Repair]:
    if code := [str(expected) for expected, cell in pairs if expected.changed(cell) and not expected.keeps(cell)]:
        text = "The assignment's versions are restored"
        yield Repair("edited-cell", f"Cells that must not be edited were changed: {listed(code)}. {text}.")
    if words := [str(expected) for expected, cell in pairs if expected.keeps(cell)]:
        text = "It is restored, and the changed text follows it"
        yield Repair("edited-text", f"The assignment's text was changed: {listed(words)}. {text}.")
    if kinds := [str(expected) for expected, cell in pairs if expected.kind != cell.kind]:
        yield Repair("cell-type", f"Cells had the wrong type, which is corrected: {listed(kinds)}.")


def _renamed(pairs: Sequence[tuple[TemplateCell, SubmittedCell]]) -> Iterator[Repair]:
    nameless = [(expected, cell) for expected, cell in pairs if expected.name and cell.name != expected.name]
    placed = [str(expected) for expected, cell in nameless if expected.answer and cell.id != expected.id]
    if placed:
        text = "It was recognised by its place and by what it defines"
        yield Repair("found-by-place", f"The cell of the answer {listed(placed)} was not marked as such. {text}.")
    known = [(expected, cell) for expected, cell in nameless if str(expected) not in placed]
    if renamed := [str(expected) for expected, cell in known if cell.name is not None]:
        yield Repair("renamed-cell", f"Cells had lost their names, which are restored: {listed(renamed)}.")
    if lost := [expected for expected, cell in known if cell.name is None]:
        yield Repair("no-metadata", f"{counted(len(lost), 'cell')} had lost nbgrader's metadata, which is restored.")
