"""Before grading: find the assignment's cells among those of a submission, whatever a student did to the others."""

from typing import Any

from grading._untyped import Gradebook, NbGraderPreprocessor, NotebookNode, new_answer


class Reassemble(NbGraderPreprocessor):  # type: ignore[misc]
    """A cell that was copied, split, renamed or invented is the student's own; an answer that was deleted is empty.

    nbgrader would grade nothing of a notebook in which a cell stands twice, or an answer and its check are gone.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Leave each of the assignment's cells once, and in place of a deleted answer an empty one."""
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(place["notebook"], place["assignment"])
            names = [cell.name for cell in notebook.source_cells]
            graded = {cell.name for cell in notebook.grade_cells}
        found = _claim(nb, names)
        at = 0
        for name in names:
            if name in found:
                at = next(i for i, cell in enumerate(nb.cells) if cell is found[name]) + 1
            elif name not in graded:  # nbgrader brings back graded cells, but only behind the one that is before
                nb.cells.insert(at, new_answer(name, nb.nbformat_minor))
                at += 1
        return nb, resources


def _claim(nb: NotebookNode, names: list[str]) -> dict[str, NotebookNode]:
    """Return the assignment's cells by name; all others lose the name that they bear."""
    found: dict[str, NotebookNode] = {}
    for cell in reversed(nb.cells):  # of several the last one counts: it is what Python would remember
        given = cell.metadata.get("nbgrader")
        name = given.get("grade_id") if isinstance(given, dict) else None
        if isinstance(name, str) and name in names and name not in found:
            found[name] = cell
        else:
            cell.metadata.pop("nbgrader", None)
    return found
