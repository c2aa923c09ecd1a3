"""Take what a student handed in, and make of it a notebook that is fit to be graded.

Honest accidents are repaired, and every repair is reported; what is hostile or unreadable is refused with a verdict.
The order of ideas: find the file, read its bytes, make text of them, then cells, recognise among these the cells of the
assignment, and put the notebook together again from the assignment's own.
"""

from dataclasses import dataclass
from pathlib import Path

from grading._untyped import NotebookNode
from grading.doctor.arrival import arrive
from grading.doctor.assemble import assemble
from grading.doctor.cells import Submission, read
from grading.doctor.compare import another_kernel, differences
from grading.doctor.recognise import Asked, asked_cells, recognise
from grading.doctor.repair import Refused as Refused
from grading.doctor.repair import Repair as Repair
from grading.doctor.repair import Unreadable
from grading.doctor.text import decode, sides


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
    try:
        text, decoded = decode(came.data)
        submission = _reading(text, asked)
    except Unreadable as wrong:
        raise Refused("unreadable", f"{came.name} {wrong}", came.digest) from None  # what it came from may be large
    found = recognise(submission.cells, asked)
    repairs = (
        *(*came.repairs, *decoded, *submission.repairs),
        *another_kernel(submission.kernel, template),
        *differences(submission.cells, found, asked),
    )
    return Admitted(assemble(submission.cells, found, asked, template), repairs, came.digest)


def digest(folder: Path, name: str) -> str:
    """Return a digest of what :func:`admit` would read, or of why it would read nothing."""
    try:
        return arrive(folder, name).digest
    except Refused as refused:
        return refused.digest


def _reading(text: str, asked: tuple[Asked, ...]) -> Submission:
    """Read a notebook; of one that git could not merge, the side with more of the assignment's cells."""
    try:
        return read(text)
    except Unreadable:
        if (both := sides(text)) is None:
            raise
    ours, theirs = (_or_reason(side) for side in both)
    readings = [side for side in (ours, theirs) if isinstance(side, Submission)]
    if not readings:
        raise Unreadable(f"holds conflicts that git could not merge, and no side is a notebook: the first {ours}")
    best = max(readings, key=lambda side: len(recognise(side.cells, asked)))  # ours on a tie
    taken = "the first side" if best is ours else "the second side"
    repair = Repair("merge-conflict", f"The file held conflicts that git could not merge; {taken} of each was taken.")
    return Submission(best.cells, best.kernel, (repair, *best.repairs))


def _or_reason(text: str) -> Submission | Unreadable:
    try:
        return read(text)
    except Unreadable as wrong:
        return wrong
