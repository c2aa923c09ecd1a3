"""Which cells of a notebook show the options of a question, and in whose order."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from attnlib.checks.options import OWN_LETTERS, Options, Question, option_texts, question_in
from attnlib.checks.student import normal
from grading._untyped import NotebookNode, is_solution
from grading.graded_cell import GradedCell
from grading.task import Answered

OPTION = re.compile(rf"^([{OWN_LETTERS}])\. (.+)$", re.MULTILINE)  # as the options of a question are shown as text
MAX_STATED = 200  # characters of an id, none of which is longer
ANOTHER_ORDER = "its options were shown in the order of another student: {!r}"
SAVED_ORDER = "the options saved in it are not in the order of {!r}, in which its answers were read"


def question_shown(cell: NotebookNode) -> str:
    """Return the question whose options a cell of the assignment shows, or "" if it does not show any."""
    return question_in(cell.source) if "nbgrader" in cell.metadata and not is_solution(cell) else ""


def stated_student(notebook: NotebookNode) -> str:
    """Return the id that a notebook states last, or "" if it states none. A cell that is not Python states none."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return next((stated for source in reversed(code) for stated in reversed([*_stated(source)])), "")


def _stated(source: str) -> Iterator[str]:
    """Yield the ids that calls of ``set_student`` in a cell state as a literal, in order."""
    if "set_student" not in source:
        return
    try:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "set_student" and len(arguments) == 1:
            stated = arguments[0].value if isinstance(arguments[0], ast.Constant) else None
            if isinstance(stated, str):
                yield stated[:MAX_STATED]


@dataclass(frozen=True)
class OptionsShown:
    """In whose order a student's answers are read, and what the notebook itself says about it.

    Attributes:
        student: the id under which the notebook was handed in.
        names: the student's own names on the class list, as :func:`normal` returns them.
        stated: the id that the notebook states, or "".
        saved: the text that was saved below each cell that shows options, by question. It raises flags, nothing else.
        exam: whether only letters of that order count.
    """

    student: str
    names: Collection[str] = ()
    stated: str = ""
    saved: Mapping[str, str] = field(default_factory=dict)
    exam: bool = False

    @property
    def order(self) -> str:
        """The id in whose order answers are read: the stated one if it is the student's own."""
        return self.stated if normal(self.stated) in self.names else self.student

    def differs(self, question: Question) -> bool:
        """Tell whether the notebook was saved with the options of a question in another order, or other numbers.

        Options that are no longer written as they were saved say nothing.
        """
        shown = dict(OPTION.findall(self.saved.get(question.name, "")))
        own = Options(question, self.order)
        return bool(shown) and shown != own.texts and set(shown.values()) <= set(_every_text(question))

    def flags(self, questions: Iterable[Question]) -> Iterator[str]:
        """Yield why an instructor should look at the notebook."""
        if normal(self.stated) not in ("", normal(self.order)):
            yield ANOTHER_ORDER.format(self.stated)
        elif any(map(self.differs, questions)):
            yield SAVED_ORDER.format(self.order)

    def tell(self, choices: Iterable[tuple[GradedCell, Answered]]) -> None:
        """Put into what came how it is to be read."""
        for graded_cell, answered in choices:
            assert graded_cell.question is not None
            answered.student, answered.stated, answered.exam = self.order, self.stated, self.exam
            answered.differs = self.differs(graded_cell.question)


def _every_text(question: Question) -> Iterator[str]:
    """Yield the text of each option, with all numbers that a student may get."""
    sets = question.numbers.sets if question.numbers else ()
    for text in option_texts()[question.name].values():
        yield from (text.format(**numbers) for numbers in sets) if sets else (text,)
