"""A Sphinx extension: an assignment's page shows the options of its questions, in the order in which they were written.

The notebook shows them when it is run. The book does not run it, so a list takes the place of the cell that would.
"""

import json
from typing import Any

from sphinx.application import Sphinx

from _ext.in_browser import EXERCISES_PATH
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.options import FILE, Options, question_in


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the options into the notebook of an assignment before it is read."""
    if not page.startswith(EXERCISES_PATH):
        return
    app.env.note_dependency(str(FILE))
    notebook = json.loads(source[0])
    notebook["cells"] = [with_options(cell) for cell in notebook["cells"]]
    source[0] = json.dumps(notebook)


def with_options(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell, or the list of options that it shows."""
    question = question_in("".join(cell["source"]))
    if cell["cell_type"] != "code" or not question:
        return cell
    text = Options(QUESTIONS[question]).markdown()
    return {"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": text}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
