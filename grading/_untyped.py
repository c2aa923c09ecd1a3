"""The parts of untyped libraries that this package uses, in one place, so that the rest can be checked strictly."""

import json
from pathlib import Path
from typing import Any

import nbformat
from dateutil.tz import gettz as gettz  # type: ignore[import-untyped]
from flit_core.wheel import make_wheel_in as make_wheel_in  # type: ignore[import-untyped]
from nbconvert.exporters import HTMLExporter as HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook as InvalidNotebook
from nbconvert.filters.markdown_mistune import IPythonRenderer as IPythonRenderer
from nbconvert.filters.markdown_mistune import MarkdownWithMath as MarkdownWithMath
from nbconvert.preprocessors import Preprocessor as Preprocessor
from nbformat import NotebookNode as NotebookNode
from nbgrader.api import Assignment as Assignment
from nbgrader.api import Base as Base
from nbgrader.api import BaseCell as BaseCell
from nbgrader.api import Comment as Comment
from nbgrader.api import Grade as Grade
from nbgrader.api import Gradebook as Gradebook
from nbgrader.api import MissingEntry as MissingEntry
from nbgrader.api import Notebook as Notebook
from nbgrader.api import Student as Student
from nbgrader.api import SubmittedAssignment as SubmittedAssignment
from nbgrader.api import SubmittedNotebook as SubmittedNotebook
from nbgrader.converters import Autograde as Autograde
from nbgrader.converters import GenerateAssignment as GenerateAssignment
from nbgrader.converters import GenerateFeedback as GenerateFeedback
from nbgrader.converters.base import NbGraderException as NbGraderException
from nbgrader.coursedir import CourseDirectory as CourseDirectory
from nbgrader.dbutil import ALEMBIC_DIR as ALEMBIC_DIR
from nbgrader.plugins import BasePlugin as BasePlugin
from nbgrader.preprocessors import AssignLatePenalties as AssignLatePenalties
from nbgrader.preprocessors import GetGrades as GetGrades
from nbgrader.preprocessors import NbGraderPreprocessor as NbGraderPreprocessor
from nbgrader.utils import compute_checksum as compute_checksum
from nbgrader.utils import determine_grade as determine_grade
from nbgrader.utils import is_grade as is_grade
from nbgrader.utils import is_solution as is_solution
from nbgrader.utils import is_task as is_task
from nbgrader.utils import parse_utc as parse_utc
from tinycss2 import parse_blocks_contents as parse_blocks_contents  # type: ignore[import-untyped]
from tinycss2 import serialize as serialize
from tinycss2.ast import Declaration as Declaration  # type: ignore[import-untyped]
from tinycss2.ast import FunctionBlock as FunctionBlock
from tinycss2.ast import Node as Node
from tqdm import tqdm as tqdm


def read_notebook(file: Path) -> NotebookNode:
    """Read a notebook, which may be in an older format."""
    notebook: NotebookNode = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def notebook_of(content: bytes) -> NotebookNode:
    """Read a notebook from the bytes of its file."""
    notebook: NotebookNode = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def notebook_text(notebook: NotebookNode) -> str:
    """Return the text of a notebook's file. It is not validated, because that takes longer than everything else."""
    return json.dumps(notebook, ensure_ascii=False)


def new_output(kind: str, **content: Any) -> NotebookNode:
    """Make an output of a cell."""
    more: dict[str, Any] = {} if kind in ("stream", "error") else {"metadata": {}}
    output: NotebookNode = nbformat.from_dict({"output_type": kind, **more, **content})  # type: ignore[no-untyped-call]
    return output


def as_node(content: dict[str, Any]) -> NotebookNode:
    """Make a part of a notebook."""
    node: NotebookNode = nbformat.from_dict(content)  # type: ignore[no-untyped-call]
    return node


def code_cell(source: str, name: str) -> NotebookNode:
    """Make a code cell with an id."""
    cell: NotebookNode = nbformat.v4.new_code_cell(source, id=name)  # type: ignore[no-untyped-call]
    return cell


def text_cell(source: str, name: str) -> NotebookNode:
    """Make a Markdown cell with an id."""
    cell: NotebookNode = nbformat.v4.new_markdown_cell(source, id=name)  # type: ignore[no-untyped-call]
    return cell
