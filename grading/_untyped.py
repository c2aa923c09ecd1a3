"""The parts of untyped libraries that this package uses, in one place, so that the rest can be checked strictly.

Those of nbconvert and nbgrader, which are slow to import, have modules of their own.
"""

import json
from pathlib import Path
from typing import Any

import nbformat
from dateutil.tz import gettz as gettz  # type: ignore[import-untyped]
from flit_core.wheel import make_wheel_in as make_wheel_in  # type: ignore[import-untyped]
from nbformat import NotebookNode as NotebookNode
from tinycss2 import parse_blocks_contents as parse_blocks_contents  # type: ignore[import-untyped]
from tinycss2 import serialize as serialize
from tinycss2.ast import Declaration as Declaration  # type: ignore[import-untyped]
from tinycss2.ast import FunctionBlock as FunctionBlock
from tinycss2.ast import Node as Node
from tqdm import tqdm as tqdm


def is_grade(cell: NotebookNode) -> bool:
    """Tell whether a cell earns points. nbgrader has the same function, but takes more than a second to import."""
    return _is("grade", cell)


def is_solution(cell: NotebookNode) -> bool:
    """Tell whether a student is meant to change a cell."""
    return _is("solution", cell)


def is_task(cell: NotebookNode) -> bool:
    """Tell whether a cell describes a task that a person marks."""
    return _is("task", cell)


def _is(kind: str, cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get(kind, False))


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
