"""What is used of packages without type hints, imported in one place so that all else can be checked strictly."""

from pathlib import Path
from typing import Any

import nbformat
from bleach import clean as clean  # type: ignore[import-untyped]
from bleach.css_sanitizer import CSSSanitizer as CSSSanitizer  # type: ignore[import-untyped]
from bleach.sanitizer import ALLOWED_TAGS as ALLOWED_TAGS  # type: ignore[import-untyped]
from nbformat import NotebookNode as NotebookNode
from nbgrader.api import Gradebook as Gradebook
from nbgrader.api import MissingEntry as MissingEntry
from nbgrader.converters import Autograde as Autograde
from nbgrader.converters import GenerateAssignment as GenerateAssignment
from nbgrader.converters import GenerateFeedback as GenerateFeedback
from nbgrader.converters.base import NbGraderException as NbGraderException
from nbgrader.coursedir import CourseDirectory as CourseDirectory
from nbgrader.preprocessors import Execute as Execute
from nbgrader.preprocessors import GetGrades as GetGrades
from nbgrader.preprocessors import NbGraderPreprocessor as NbGraderPreprocessor
from nbgrader.utils import is_grade as is_grade
from nbgrader.utils import is_solution as is_solution
from tqdm import tqdm as tqdm


def read_notebook(file: Path) -> NotebookNode:
    """Read a notebook, of an older format as well."""
    notebook: NotebookNode = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def notebook_text(notebook: NotebookNode) -> str:
    """Return a notebook as it stands in a file."""
    text: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    return text


def new_output(kind: str, **content: Any) -> NotebookNode:
    """Return an output of a cell."""
    output: NotebookNode = nbformat.v4.new_output(kind, **content)  # type: ignore[no-untyped-call]
    return output


def new_answer(name: str, minor: int) -> NotebookNode:
    """Return an empty cell for an answer, for a notebook of that minor version of the format."""
    meta = {"grade": False, "locked": False, "solution": True, "task": False, "schema_version": 3, "grade_id": name}
    cell: NotebookNode = nbformat.v4.new_code_cell("", metadata={"nbgrader": meta})  # type: ignore[no-untyped-call]
    if minor < 5:  # cells have had an id since then
        del cell["id"]
    return cell
