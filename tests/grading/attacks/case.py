"""What one attack is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUESTIONS = ("softmax", "dot", "choice", "attention")


@dataclass(frozen=True)
class Case:
    """An attack, and what it must come to.

    Attributes:
        name: the student's name.
        does: what it does, in one sentence.
        cells: the new source of cells by their names; ``first`` and ``last`` are cells of the student's own.
        base: the honest submission that it is made of, ``wrong`` or ``right``, and that it has to score as.
        loses: the questions that earn nothing, whatever they earn in the base.
        verdicts: those that it may get.
        edit: changes the notebook as it stands in the file.
        put: hands something else in, given the path of the notebook.
        harmless: whether it may be tried where nothing keeps it from the machine.
        flagged: whether the instructor has to be pointed at it.
        computes: whether it computes until it is stopped; if so, it is given less processor time.
        imports_many_modules: whether one of its cells imports so many modules that it is given more processor time.
    """

    name: str
    does: str
    cells: Mapping[str, str] = field(default_factory=dict)
    base: str = "wrong"
    loses: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ("graded",)
    edit: Callable[[dict[str, Any]], None] | None = None
    put: Callable[[Path], None] | None = None
    harmless: bool = False
    flagged: bool = False
    computes: bool = False
    imports_many_modules: bool = False
