"""What a graded cell earned. Only a plain number between 0 and its points counts; silence earns nothing.

nbgrader gives full marks to a cell that shows no result, or one that it cannot read (``nan``, ``True``,
``np.float64(2.5)``), none to a cell that warned, and no grade at all to a notebook in which a result is too large.
"""

import re
from typing import Any

from grading._untyped import NbGraderPreprocessor, NotebookNode, is_grade, is_solution
from grading.execute import error

FLOAT = re.compile(r"\d+\.\d+(e[+-]\d+)?|\d+e[+-]\d+", re.ASCII)  # the repr of a finite float that is not negative


def refusal(outputs: list[NotebookNode], points: float) -> str | None:
    """Return why the outputs of a graded cell earn nothing, or None where they say how much they earn."""
    results = [output.data.get("text/plain", "") for output in outputs if output.output_type == "execute_result"]
    if not results:
        return "The cell showed no result, so it earns nothing. It has to end in a number of points."
    if len(results) > 1:
        return f"The cell showed {len(results)} results, so it earns nothing. It has to show one number of points."
    result = str(results[0])
    if not FLOAT.fullmatch(result):
        return f"The cell's result is {result[:80]}, which is no plain number of points, so it earns nothing."
    if float(result) > points:
        return f"The cell's result is {result}, but it has only {points:g} points to give, so it earns nothing."
    return None


def is_autograded(cell: NotebookNode) -> bool:
    """Return whether a cell's outputs decide its score: it is graded, and not by a person."""
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


class Judge(NbGraderPreprocessor):  # type: ignore[misc]
    """Rewrite the outputs of graded cells so that nbgrader reads exactly what they earned."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        """Turn warnings into plain text, and a result that does not count into an error that says why."""
        if is_autograded(cell):
            _demote(cell, "stream")
            failed = any(output.output_type == "error" for output in cell.outputs)
            reason = None if failed else refusal(cell.outputs, float(cell.metadata.nbgrader["points"]))
            if failed or reason:
                _demote(cell, "execute_result")
            if reason:
                cell.outputs.append(error("NoMarks", reason))
        return cell, resources


def _demote(cell: NotebookNode, kind: str) -> None:
    """Keep outputs of a kind for the reader, but as such that nbgrader takes no notice of."""
    for output in cell.outputs:
        if output.output_type == kind == "stream":
            output.name = "stdout"
        elif output.output_type == kind:
            output.output_type = "display_data"
            del output["execution_count"]
