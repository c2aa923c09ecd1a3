"""Read a submitted notebook, repair it, and flag what its code does.

A bounded child does it, as files may be hostile.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grading import bounded_worker
from grading._untyped import NotebookNode, as_node
from grading.graded_cell import is_students
from grading.notebook_template import NotebookTemplate
from grading.options_shown import stated_student
from grading.repair.messages import RefusedError, Repair
from grading.repair.notebook import RepairedNotebook, digest, repair_notebook
from grading.static_checks.flags import find_flags
from grading.verdict import Verdict

READING_SECONDS = 10  # processor time to repair a notebook and search its code; an honest one takes 0.02 s


@dataclass(frozen=True)
class ReadNotebook:
    """A notebook that is fit to be graded, the id that it states, and why an instructor should look at its code."""

    repaired: RepairedNotebook
    stated: str
    flags: tuple[str, ...]


def read_submission(folder: Path, template: NotebookTemplate) -> ReadNotebook:
    """Read what a student handed in for one notebook of an assignment.

    Raises:
        RefusedError: there is no such notebook, none that can be graded, or none that can be read within bounds.
        LostError: twice, something else on this machine kept it from being read.
    """
    name = f"{template.name}.ipynb"
    forbidden = {c.expression: c.exercise.forbidden for c in template.graded_cells.values() if c.exercise}
    failed = ""
    try:
        came = bounded_worker.values(_read, folder, name, template.released, forbidden, seconds=READING_SECONDS)
    except bounded_worker.ExceededError as reason:
        came, failed = list(reason.values), str(reason)
    if not came:
        said = f"{name} cannot be graded: reading it {failed}. Ask for a notebook with shorter and simpler cells."
        raise RefusedError(Verdict.UNREADABLE, said, digest(folder, name))
    first, *rest = came
    if "refused" in first:
        verdict, *rest = first["refused"]
        raise RefusedError(Verdict(verdict), *rest)
    repairs = tuple(Repair(*repair) for repair in first["repairs"])
    repaired = RepairedNotebook(as_node(first["notebook"]), repairs, first["digest"], first["saved"])
    if len(rest) < 2:
        return ReadNotebook(repaired, "", (f"its code could not be searched: searching it {failed}",))
    stated, flags = rest
    return ReadNotebook(repaired, stated, tuple(flags))


def _read(folder: Path, name: str, template: NotebookNode, forbidden: Mapping[str, Sequence[str]]) -> Iterator[Any]:
    """Yield the notebook, or why there is none, and then the id that it states, and the flags."""
    try:
        repaired = repair_notebook(folder, name, template)
    except RefusedError as refused:
        yield {"refused": [refused.verdict, refused.reason, refused.digest]}
        return
    repairs = [[repair.kind, repair.text] for repair in repaired.repairs]
    yield {"notebook": repaired.notebook, "repairs": repairs, "digest": repaired.digest, "saved": repaired.saved}
    yield stated_student(repaired.notebook)
    cells = [
        (str(cell.id), cell.source)
        for cell in repaired.notebook.cells
        if cell.cell_type == "code" and is_students(cell)
    ]
    found = find_flags(cells, forbidden)
    yield [f"{f.why}: cell {f.cell}, line {f.line}: {f.text}" for f in found if f.level == "suspicious"]
