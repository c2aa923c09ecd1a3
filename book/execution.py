"""A Sphinx extension: how the code of the pages is executed.

A page is executed again when its own code has changed, or anything that it imports (``imports.py``), and only then.
jupyter-cache finds results by a page's code and its kernel's description; here the description names what is imported.
"""

import re
from pathlib import Path
from typing import Any

import myst_nb.core.execute.cache as executing
from imports import ROOT, digest, documented, files_of
from jupyter_cache import get_cache
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from jupyter_client.manager import AsyncKernelManager
from nbformat import NotebookNode
from sphinx.application import Sphinx
from traitlets import default

KERNEL = re.compile(r"^(  display_name: .*)$", re.MULTILINE)  # in the head of a page that is executed
DOCSTRINGS = re.compile(r"^\.\. auto\w+::", re.MULTILINE)
RESULTS = 60  # executed pages that are kept: a few versions of each
LAST_LINES = 25  # how much of an error is shown
COLOURS = re.compile(r"\x1b\[[\d;]*m")  # escape codes in IPython's tracebacks
INSTRUCTORS = "book/instructors"
STUB = """\
# For instructors

This copy of the course has no `solutions/`, so no class can be graded with it. In a copy that has them, this page
takes you through a whole course, from installation to exporting the grades.
"""


class EncryptedKernel(AsyncKernelManager):
    """A kernel whose connection is encrypted where it can be: ipykernel warns about any other."""

    @default("transport_encryption")
    def _where_it_can_be(self) -> str:
        return "auto"


def execute(*arguments: Any, **options: Any) -> ExecutionResult:
    """Execute a page as jupyter-cache does, and describe any error in a form that suits the terminal."""
    result = single_nb_execution(*arguments, kernel_manager_class=EncryptedKernel, **options)
    if result.err is not None:
        result.exc_string = described(result.nb, result.err)
    return result


def described(page: NotebookNode, error: Exception) -> str:
    """Return a text that says which cell failed, with the last lines of its error."""
    code = [number for number, cell in enumerate(page.cells) if cell.cell_type == "code"]
    failed = ([number for number in code if page.cells[number].execution_count] or code)[-1]
    line = page.metadata.source_map[failed] + 1
    lines = COLOURS.sub("", str(error)).rstrip().splitlines()[-LAST_LINES:]
    return "\n".join([f"The error is in code cell {code.index(failed) + 1}, which begins on line {line}:", *lines])


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Name in a page's head what it imports, and tell Sphinx to read the page again when that changes."""
    if page == INSTRUCTORS and not app.config.with_solutions:
        source[0] = STUB
    elif page.startswith("book/"):
        executed = KERNEL.search(source[0])
        files = files_of(source[0]) if executed else documented() if DOCSTRINGS.search(source[0]) else []
        for file in files:
            app.env.note_dependency(str(file))
        if executed:
            source[0] = KERNEL.sub(rf"\1, with imports {digest(files)}", source[0], count=1)


def limit_cache(app: Sphinx) -> None:
    """Limit how many results the cache keeps."""
    get_cache(app.config.nb_execution_cache_path or Path(app.outdir).parent / ".jupyter_cache").change_cache_limit(
        RESULTS
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    executing.single_nb_execution = execute
    app.add_config_value("with_solutions", (ROOT / "solutions").is_dir(), "env", types=bool)
    app.connect("builder-inited", limit_cache)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
