"""A course of one tiny assignment: three small exercises in one notebook, so that a test of grading takes no time."""

from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from grading.course import Course

REPOSITORY = Path(__file__).parents[2]
Edit = str | None | Callable[[NotebookNode], None]  # a cell's new source; None deletes it; a function changes it

# Each asks for a function of that name, worth 2 points: the exercise, and a right answer.
QUESTIONS = {
    "one": ("softmax", "def one(x, axis=-1):\n    return np.exp(x - (m := x.max(axis, keepdims=True))) / "
            "np.exp(x - m).sum(axis, keepdims=True)"),
    "two": ("dot", "def two(query, key):\n    return query @ np.swapaxes(key, -1, -2)"),
    "three": ("attention_shapes", "def three(q, k, v):\n    return (*q[:-1], k[-2]), (*q[:-1], v[-1])"),
}  # fmt: skip
# Wrong answers, with what they earn.
OVERFLOWS = "def one(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)"  # 1.5
ONE_MATRIX = "def two(query, key):\n    return query @ key.T"  # 4/3
ONE_AXIS = "def three(q, k, v):\n    return (q[0], k[0]), (q[0], v[-1])"  # 1.2

# One submission of each kind that another way of grading might treat differently.
ELSEWHERE: dict[str, dict[str, "Edit"]] = {
    "right": {},
    "partly": {"answer_one": OVERFLOWS, "answer_two": ONE_MATRIX},
    "other": {"answer_three": ONE_AXIS},
    "exits": {"answer_two": "import os\ndef two(query, key): os._exit(0)"},
    "forges": {"answer_one": "import attnlib.checks as c\nc.check = lambda *a, **k: 2.0\ndef one(x, axis=1): return x"},
    "shows": {"answer_one": "from IPython.display import HTML\nHTML('<b>seen</b><script>1</script>')"},
    "draws": {"answer_one": "import base64; print(base64.b64encode(bytes(200)))"},
}  # fmt: skip


def tiny_notebook() -> NotebookNode:
    cells = [nbgrader_cell("imports", "import numpy as np\n\nfrom attnlib.checks import check", locked=True)]
    for name, (exercise, answer) in QUESTIONS.items():
        cells.append(nbgrader_cell(f"answer-{name}", answer, solution=True))
        check = f'check("{exercise}", {name}, points=2)'
        cells.append(nbgrader_cell(f"check-{name}", check, grade=True, locked=True, points=2))
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def nbgrader_cell(name: str, source: str, **what: object) -> NotebookNode:
    """Return a cell of code with nbgrader's metadata, in which ``what`` is set."""
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
