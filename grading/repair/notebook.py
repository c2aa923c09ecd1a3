"""Repair one notebook: all steps from a student's folder to a notebook that is fit to be graded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grading._untyped import NotebookNode
from grading.repair.assemble import assemble
from grading.repair.choose import choose
from grading.repair.differences import another_kernel, differences
from grading.repair.files import find_candidates
from grading.repair.match_cells import template_cells
from grading.repair.messages import RefusedError, Repair
from grading.repair.pictures import Pictures
from grading.repair.saved_options import saved_options


@dataclass(frozen=True)
class RepairedNotebook:
    """A notebook that is fit to be graded, what was repaired, and the SHA-256 digest of the bytes that came.

    ``saved`` holds the options that the notebook was saved with, by the name of the question.
    """

    notebook: NotebookNode
    repairs: tuple[Repair, ...]
    digest: str
    saved: Mapping[str, str]


def repair_notebook(folder: Path, name: str, template: NotebookNode) -> RepairedNotebook:
    """Return the notebook ``name`` from a student's ``folder``, repaired to match the assignment's ``template``.

    Everything but the answers is the template's, including the order, metadata and ids. The template needs format 4.5
    or newer. The student's own cells stay after the cell that they followed. Outputs are removed.

    Raises:
        RefusedError: there is no such notebook, or none that can be graded.

    """
    came = find_candidates(folder, name)
    expected = template_cells(template)
    chosen = choose(came, name, expected)
    assert chosen.submission is not None
    cells, kernel = chosen.submission.cells, chosen.submission.kernel
    pictures = Pictures()
    notebook = assemble(cells, chosen.found, expected, template, pictures)
    different = differences(cells, chosen.found, expected)
    repairs = (*chosen.repairs, *another_kernel(kernel, template), *different, *pictures.repairs())
    return RepairedNotebook(notebook, repairs, came.digest, saved_options(cells, chosen.found, template))


def digest(folder: Path, name: str) -> str:
    """Return a digest of what :func:`repair_notebook` would read, or of why it would read nothing."""
    try:
        return find_candidates(folder, name).digest
    except RefusedError as refused:
        return refused.digest
