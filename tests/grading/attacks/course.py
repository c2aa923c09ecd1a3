"""A course of one small assignment, asked as the real ones are, and the honest submissions to it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from tiny import nbgrader_cell

from attacks.case import Case
from grading.course import Course

REPOSITORY = Path(__file__).parents[3]
NAME = "small"
IMPORTS = "import numpy as np\nimport torch\n\nfrom attnlib.checks import check, check_choice"

RIGHT = {
    "softmax": """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)""",
    "dot": "def dot(query, key):\n    return query @ np.swapaxes(key, -1, -2)",
    "choice": 'answer = "B"',
    "attention": """def attention(query, key, value):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return weights @ value, weights""",
}
WRONG = {
    "softmax": "def softmax(x, axis=-1):\n    e = np.exp(x)\n    return e / e.sum(axis=axis, keepdims=True)",
    "dot": "def dot(query, key):\n    return key @ np.swapaxes(query, -1, -2)",
    "choice": 'answer = "A"',
    "attention": "def attention(query, key, value):\n    weights = query @ key.transpose(-1, -2)\n"
    "    return weights @ value, weights",
}
BASES = {"right": RIGHT, "wrong": WRONG}
CHECKS = {
    "softmax": 'check("softmax", softmax, points=4)',
    "dot": 'check("dot", dot, points=2)',
    "choice": 'check_choice("shift-or-stretch", answer, points=1)',
    "attention": 'check("attention", attention, backend="torch", points=3)',
}
POINTS = {"softmax": 4, "dot": 2, "choice": 1, "attention": 3}


def repository(root: Path, mark: str) -> Path:
    """Write a repository with the assignment; the instructor's solution holds a mark that nobody else is to see."""
    root.mkdir(parents=True, exist_ok=True)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    cells = [nbgrader_cell("imports", IMPORTS)]
    for name, source in RIGHT.items():
        hidden = f"{source}\n### BEGIN SOLUTION\n# {mark}\n### END SOLUTION"
        cells += [nbgrader_cell(name, hidden, solution=True), _check(name)]
    _write(root / "solutions" / NAME / f"{NAME}.ipynb", cells)
    return root


def submission(sources: Mapping[str, str], first: str = "", last: str = "") -> dict[str, Any]:
    """Return a notebook with these answers, as it stands in a file; ``first`` and ``last`` are cells of one's own."""
    cells = [nbgrader_cell("imports", sources.get("imports", IMPORTS))]
    for name in RIGHT:
        check = _check(name)
        check.source = sources.get(f"{name}-check", check.source)
        cells += [nbgrader_cell(name, sources[name], solution=True), check]
    own = [[new_code_cell(source, id=name)] if source else [] for name, source in (("first", first), ("last", last))]
    notebook = new_notebook(cells=[*own[0], *cells, *own[1]], metadata=_kernel())
    data: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return data


def hand_in(course: Course, case: Case, mark: str = "") -> None:
    """Put a case's submission into the class; where it says ``MARK``, a mark stands that nobody else is to see."""
    folder = course.submitted(case.name, NAME)
    folder.mkdir(parents=True)
    cells = {name: source.replace("MARK", mark) for name, source in case.cells.items()}
    data = submission(BASES[case.base] | cells, cells.get("first", ""), cells.get("last", ""))
    if case.edit:
        case.edit(data)
    file = folder / f"{NAME}.ipynb"
    if case.put:
        case.put(file)
    else:
        file.write_text(json.dumps(data), encoding="utf-8")


def _check(name: str) -> NotebookNode:
    return nbgrader_cell(f"{name}-check", CHECKS[name], grade=True, locked=True, points=POINTS[name])


def _kernel() -> dict[str, Any]:
    return {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}


def _write(file: Path, cells: list[NotebookNode]) -> None:
    file.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells, metadata=_kernel()), file)
