"""A notebook as it was released, which turns a submission into a task, and the result into marks and notices."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlib.checks.options import Question
from grading._untyped import NotebookNode, is_grade, is_solution, new_output, read_notebook
from grading.graded_cell import GradedCell, is_autograded, read_graded_cell
from grading.judge import Judge, error
from grading.options_shown import question_shown
from grading.reread_links import change_text, relink
from grading.sandbox.limits import Limits
from grading.task import Answered, Result, Step, Task
from grading.verdict import Verdict

VERDICT_KEY = "grading"  # the key in a notebook's metadata under which the verdict is stored
STOPPED_ERROR = "Stopped"  # the error in a cell that did not finish
MEMORY_ERRORS = ("MemoryError", "can't allocate memory", "Unable to allocate")
UNWRITTEN_ERROR = "NotImplementedError"  # raised by an answer that has not been written
WITHHELD_ERROR = "Withheld"  # raised by a comparison with attnlib's own function before the probe has been answered
# A cell that was handed out with this tag takes a long time and earns nothing, so it is skipped while grading.
DEMONSTRATION_TAG = "demonstration"
CELL_SKIPPED_NOTICE = "[Not run while grading: this cell only shows something, and earns no points.]\n"
OUTPUT_CUT_NOTICE = "[Output cut here: the rest is not kept.]\n"


@dataclass(frozen=True)
class NotebookVerdict:
    """What happened to a notebook, and where."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class NotebookTemplate:
    """A notebook of an assignment: its name, its cells as they were released, and what its graded cells ask."""

    name: str
    released: NotebookNode
    graded_cells: dict[str, GradedCell]

    @classmethod
    def read(cls, file: Path, book: str = "") -> "NotebookTemplate":
        """Read the student's version of a notebook.

        Args:
            file: the notebook.
            book: the address of the book, to which the links will lead; "" removes them, because whoever reads the
                graded notebook does not have the book beside it.

        Raises:
            GradingError: a graded cell cannot be judged outside the sandbox.
        """
        released = read_notebook(file)
        change_text(released, lambda source: relink(source, book))
        graded_cells = [read_graded_cell(cell) for cell in released.cells if is_autograded(cell)]
        return cls(file.stem, released, {graded_cell.cell: graded_cell for graded_cell in graded_cells})

    def task(self, notebook: NotebookNode, judge: Judge, limits: Limits, *, sandboxed: bool) -> Task:
        """Return what to run of a submission: its code cells, with a probe in place of each graded one."""
        steps = []
        for cell in _code(notebook):
            name = _name(cell)
            if is_autograded(cell):
                steps.append(Step(name, probe=judge.probe(self.graded_cells[name])))
            else:
                steps.append(Step(name, "" if _only_shows(cell) else cell.source))
        return Task(tuple(steps), limits, sandboxed)

    def untouched(self, notebook: NotebookNode) -> tuple[str, ...]:
        """Return the graded cells of a submission whose answers were left as they were handed out, or are empty."""
        given = {_name(cell): cell.source.strip() for cell in self.released.cells if is_solution(cell)}
        answers = {_name(cell): cell.source.strip() for cell in notebook.cells if is_solution(cell)}
        open_answers = {name for name, source in answers.items() if source in ("", given[name])}
        return tuple(cell for cell, asked in self._answers().items() if asked and asked <= open_answers)

    def _answers(self) -> dict[str, set[str]]:
        """Return, for each graded cell, the cells in which its answer is to be written.

        These are the cells that define the names it uses or, if there are none, the last answer cell before it.
        """
        made = {_name(cell): _defined(cell.source) for cell in self.released.cells if is_solution(cell)}
        found, last = {}, set[str]()
        for cell in self.released.cells:
            name = _name(cell)
            last = {name} if is_solution(cell) else last
            if is_grade(cell):
                asked = _names(self.graded_cells[name].expression) if name in self.graded_cells else set()
                found[name] = {at for at, names in made.items() if names & asked} or last
        return found

    @property
    def questions(self) -> list[Question]:
        """The multiple-choice questions of the notebook."""
        return [cell.question for cell in self.graded_cells.values() if cell.question]

    def choices(self, notebook: NotebookNode, result: Result) -> Iterator[tuple[GradedCell, Answered]]:
        """Yield the multiple-choice questions, and what came back for each."""
        for i, cell in enumerate(_code(notebook)):
            graded_cell = self.graded_cells.get(_name(cell)) if is_autograded(cell) else None
            if graded_cell and graded_cell.question and i in result.answered:
                yield graded_cell, result.answered[i]

    def marked(self, notebook: NotebookNode, result: Result, judge: Judge) -> tuple[NotebookNode, NotebookVerdict]:
        """Put the results and the marks of each graded cell into the notebook; return it, and the verdict on it."""
        verdicts = []
        choices = self.choices(notebook, result)
        options = {asked.question.name: [judge.options(asked, came)] for asked, came in choices if asked.question}
        for i, cell in enumerate(_code(notebook)):
            verdict, reason = result.stops.get(i, ("", ""))
            if is_autograded(cell):
                cell.outputs, failed = self._judged(cell, i, result, judge)
                verdicts += failed
            else:
                cell.outputs = [_output(output, i + 1) for output in result.outputs.get(i, [])]
                cell.outputs += options.get(question_shown(cell), [])
                cell.outputs += (
                    [new_output("stream", name="stdout", text=CELL_SKIPPED_NOTICE)] if _only_shows(cell) else []
                )
                if reason:
                    cell.outputs.append(error(STOPPED_ERROR, f"This cell {reason}"))
                if i in result.cut:
                    cell.outputs.append(new_output("stream", name="stdout", text=OUTPUT_CUT_NOTICE))
            cell.execution_count = i + 1
            verdicts += [NotebookVerdict(Verdict(verdict), f"the cell {_name(cell)!r} {reason}")] if verdict else []
            verdicts += _noticed(cell, result.answered.get(i), cut=i in result.cut)
        return notebook, worst(verdicts)

    def _judged(
        self, cell: NotebookNode, i: int, result: Result, judge: Judge
    ) -> tuple[list[NotebookNode], list[NotebookVerdict]]:
        """Return the outputs of a graded cell. An answer that makes the judge fail earns nothing, and is reported."""
        reason = result.stops.get(i, ("", ""))[1]
        try:
            return judge.outputs(self.graded_cells[_name(cell)], result.answered.get(i), reason), []
        except Exception as wrong:
            said = f"the judge failed on this answer ({type(wrong).__name__}: {wrong})"
            return [error("Unjudged", said)], [
                NotebookVerdict(Verdict.INFRASTRUCTURE, f"the cell {_name(cell)!r}: {said}")
            ]


def worst(verdicts: Sequence[NotebookVerdict]) -> NotebookVerdict:
    """Return the first of the most severe verdicts; if there are none, everything was graded."""
    return max(verdicts, key=lambda each: each.verdict.severity, default=NotebookVerdict(Verdict.GRADED))


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _name(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "?"))


def _names(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def _defined(source: str) -> set[str]:
    """Return the names that code binds outside of functions and classes; none if it is not valid Python."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return set()
    named = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = [node for line in body if isinstance(line, ast.Assign | ast.AnnAssign) for node in ast.walk(line)]
    return named | {node.id for node in assigned if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _only_shows(cell: NotebookNode) -> bool:
    """Return whether a cell that was handed out is a demonstration. Tags on a student's own cells do not count."""
    return DEMONSTRATION_TAG in cell.metadata.get("tags", []) and "nbgrader" in cell.metadata and not is_solution(cell)


def _output(output: dict[str, object], count: int) -> NotebookNode:
    kept = {name: x for name, x in output.items() if name not in ("output_type", "display_id")}
    kind = str(output["output_type"])
    return new_output(kind, **kept, **({"execution_count": count} if kind == "execute_result" else {}))


def _noticed(cell: NotebookNode, answered: Answered | None, *, cut: bool) -> list[NotebookVerdict]:
    """Return the problems that a finished cell's outputs show: an error, lack of memory, or too much output."""
    where = f"the cell {_name(cell)!r}"
    found = [NotebookVerdict(Verdict.OUTPUT_LIMIT, f"{where} produced more output than is kept.")] if cut else []
    answers = answered.answers.values() if answered else ()
    if any(
        words in str(answer.get("error")) for answer in answers if isinstance(answer, dict) for words in MEMORY_ERRORS
    ):
        found.append(NotebookVerdict(Verdict.OUT_OF_MEMORY, f"{where} needed more memory than there is."))
    for output in cell.outputs:
        if output.output_type == "error" and output.ename not in (
            STOPPED_ERROR,
            UNWRITTEN_ERROR,
            WITHHELD_ERROR,
            "CheckFailed",
        ):
            said = f"{output.ename}: {output.evalue}"
            if any(words in said for words in MEMORY_ERRORS):
                found.append(NotebookVerdict(Verdict.OUT_OF_MEMORY, f"{where} needed more memory than there is."))
            elif not is_autograded(cell):
                found.append(NotebookVerdict(Verdict.STUDENT_ERROR, f"{where} raised {said.splitlines()[0][:120]}"))
    return found
