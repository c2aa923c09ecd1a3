"""Which cells of a notebook show the options of a question, and in whose order."""

import re

from grading._untyped import NotebookNode, is_solution

SHOWS_OPTIONS = re.compile(r"""show_options\(["']([\w-]+)["']\)""")
STATES_STUDENT = re.compile(r"""^set_student\((["'])(.{1,100}?)\1\)""", re.MULTILINE)


def question_shown(cell: NotebookNode) -> str:
    """Return the question whose options a cell of the assignment shows, or "" if it does not show any."""
    found = SHOWS_OPTIONS.fullmatch(cell.source.strip())
    return found[1] if found and "nbgrader" in cell.metadata and not is_solution(cell) else ""


def stated_student(notebook: NotebookNode) -> str:
    """Return the id that a notebook states last, or "" if it states none."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    found = [student for source in code for _, student in STATES_STUDENT.findall(source)]
    return found[-1] if found else ""
