"""Take what a student handed in, and make of it a notebook that is fit to be graded.

Honest accidents are repaired, and every repair is reported; what is hostile or unreadable is refused with a verdict.
The order of ideas: find the files that came, read their bytes, make text of them, then cells, recognise among these the
cells of the assignment, choose the file that is meant, and put the notebook together again from the assignment's own.
"""

from dataclasses import dataclass
from pathlib import Path

from grading._untyped import NotebookNode
from grading.doctor.arrival import arrive
from grading.doctor.assemble import assemble
from grading.doctor.choose import choose
from grading.doctor.compare import another_kernel, differences
from grading.doctor.pictures import Pictures
from grading.doctor.recognise import asked_cells
from grading.doctor.repair import Refused as Refused
from grading.doctor.repair import Repair as Repair


@dataclass(frozen=True)
class Admitted:
    """A notebook that is fit to be graded, what was repaired, and the SHA-256 digest of the bytes that came."""

    notebook: NotebookNode
    repairs: tuple[Repair, ...]
    digest: str


def admit(folder: Path, name: str, template: NotebookNode) -> Admitted:
    """Return the notebook ``name`` that came into a student's ``folder``, repaired after the assignment's ``template``.

    Order, metadata, ids and all but the answers are the template's, which has to be of format 4.5 at least. The
    student's own cells stay behind the cell that they followed. Outputs are gone.

    Raises:
        Refused: there is no such notebook, or none that can be graded.

    """
    came = arrive(folder, name)
    asked = asked_cells(template)
    chosen = choose(came, name, asked)
    assert chosen.submission is not None
    cells, kernel = chosen.submission.cells, chosen.submission.kernel
    pictures = Pictures()
    notebook = assemble(cells, chosen.found, asked, template, pictures)
    different = differences(cells, chosen.found, asked)
    repairs = (*chosen.repairs, *another_kernel(kernel, template), *different, *pictures.repairs())
    return Admitted(notebook, repairs, came.digest)


def digest(folder: Path, name: str) -> str:
    """Return a digest of what :func:`admit` would read, or of why it would read nothing."""
    try:
        return arrive(folder, name).digest
    except Refused as refused:
        return refused.digest
