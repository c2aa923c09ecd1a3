"""A course of one tiny assignment, so that a test of the grader takes no NumPy and no exercise of the course."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from grading.course import Course

REPOSITORY = Path(__file__).parents[2]
Edit = str | None | Callable[[NotebookNode], None]  # a cell's new source; None deletes it; a function changes it

QUESTIONS = ("one", "two", "three")  # each asks for a function of that name, worth 2 points


def tiny_notebook() -> NotebookNode:
    cells = []
    for name in QUESTIONS:
        cells.append(_cell(f"answer-{name}", f"def {name}():\n    return 2.0", solution=True))
        cells.append(_cell(f"check-{name}", f"{name}()", grade=True, locked=True, points=2))
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _cell(name: str, source: str, **what: object) -> NotebookNode:
    nbgrader = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3} | what
    return new_code_cell(source, id=name, metadata={"nbgrader": nbgrader | {"grade_id": name}})


class TinyCourse(Course):
    def submit(self, student: str, **edits: Edit) -> None:
        """Hand in the right answers, with edits to cells: ``answer_one="def one(): ..."``."""
        notebook = tiny_notebook()
        for name, edit in edits.items():
            (cell,) = (cell for cell in notebook.cells if cell.id == name.replace("_", "-"))
            if edit is None:
                notebook.cells.remove(cell)
            elif callable(edit):
                edit(cell)
            else:
                cell.source = edit
        self.submit_notebook(student, notebook)

    def submit_edited(self, student: str, edit: Callable[[NotebookNode], None]) -> None:
        edit(notebook := tiny_notebook())
        self.submit_notebook(student, notebook)

    def submit_notebook(self, student: str, notebook: NotebookNode) -> None:
        self.submit_text(student, nbformat.writes(notebook))

    def submit_text(self, student: str, text: str, name: str = "tiny.ipynb") -> None:
        folder = self.submitted(student, "tiny")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def runs(pid: int) -> bool:
    """Tell whether a process still runs: a killed one keeps its number for as long as nobody collects it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
