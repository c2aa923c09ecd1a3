"""Find the options that a submitted notebook was saved with. A student can write anything there."""

from collections.abc import Mapping, Sequence

from grading._untyped import NotebookNode
from grading.options_shown import question_shown
from grading.repair.parse import SubmittedCell


def saved_options(cells: Sequence[SubmittedCell], found: Mapping[int, int], template: NotebookNode) -> dict[str, str]:
    """Return the text saved below each cell that shows the options of a question, by the name of the question."""
    asked = {i: question for i, cell in enumerate(template.cells) if (question := question_shown(cell))}
    return {question: cells[found[i]].saved for i, question in asked.items() if i in found}
