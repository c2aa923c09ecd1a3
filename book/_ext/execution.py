"""A Sphinx extension that executes the code of the pages.

A page is executed again only when its own code has changed, or something that it imports (``dependencies.py``).
jupyter-cache finds results by a page's code and its kernel's description; here the description names the imports.

Sphinx reads the pages one by one. Before it begins, all pages that have to be executed are run, one on each processor.
Their kernels are forks of one process, which has imported what most of them need (``_tools/forked_python.py``).
"""

import functools
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import myst_nb.core.execute.cache as executing
from _tools.forked_python import forked_python
from jupyter_cache import get_cache
from jupyter_cache.base import JupyterCacheAbstract
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from tqdm import tqdm
from traitlets import default

from _ext.dependencies import ROOT, digest, documented, files_of

KERNEL_NAME = re.compile(r"^(  display_name: .*)$", re.MULTILINE)  # only in the head of a page that is executed
DOCSTRINGS = re.compile(r"^\.\. auto\w+::", re.MULTILINE)
MAX_CACHED_RESULTS = 60  # how many executed pages the cache keeps: a few versions of each
LAST_LINES = 25  # how much of an error is shown
COLOUR_CODES = re.compile(r"\x1b\[[\d;]*m")  # escape codes in IPython's tracebacks
TEACHING = "book/teaching/"
WITHOUT_SOLUTIONS = """

This copy of the course has no `solutions/`, so no class can be graded with it. In a copy that has them, this page and
its neighbours take an instructor through a whole course, from installation to exporting the grades.
"""
TITLE = re.compile(r"^# .+$", re.MULTILINE)
files_once = functools.cache(files_of)  # called before pages are executed, and again when Sphinx reads them


class ForkedKernel(AsyncKernelManager):
    """A kernel that starts at once, and whose connection is encrypted where that is possible.

    ipykernel warns about any other connection.
    """

    python: ClassVar = [sys.executable]  # the beginning of a command line

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Return the command that starts the kernel."""
        _, *arguments = super().format_kernel_cmd(extra_arguments)
        return [*self.python, *arguments]

    @default("transport_encryption")
    def _encrypt_if_possible(self) -> str:
        return "auto"


EXECUTED: dict[str, ExecutionResult] = {}  # results by code and kernel, kept until Sphinx reads the page


def execute_all(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Execute the pages that Sphinx is about to read and whose results are not in the cache."""
    cache = get_cache(cache_folder(app))
    config = env.mystnb_config  # type: ignore[attr-defined] # by MyST-NB
    options = {"allow_errors": config.execution_allow_errors, "timeout": config.execution_timeout}
    waiting = []
    for page in pages:
        path = env.doc2path(page)
        source, files = with_imports(app, page, Path(path).read_text(encoding="utf-8"))
        if not KERNEL_NAME.search(source):
            continue
        reader = create_nb_reader(path, env.myst_config, config, source)  # type: ignore[attr-defined] # by MyST-NB
        notebook = reader and reader.read(source)
        if notebook and not is_known(cache, notebook):
            waiting.append((len(files), len(source), str(Path(path).parent), notebook))
    # The slowest begin: pages that grade a class import the most files, and after these, long pages take longest.
    waiting.sort(key=lambda entry: entry[:2], reverse=True)
    if not waiting:
        return
    with ExitStack() as stack:
        ForkedKernel.python = stack.enter_context(forked_python("_tools.kernel_modules"))
        stack.callback(setattr, ForkedKernel, "python", [sys.executable])
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count()))
        futures = {
            pool.submit(run, notebook, cwd=cwd, **options): result_key(notebook) for *_, cwd, notebook in waiting
        }
        what = "executing pages, the longest first"
        for future in tqdm(as_completed(futures), what, len(futures), unit="page"):
            EXECUTED[futures[future]] = future.result()


def is_known(cache: JupyterCacheAbstract, notebook: NotebookNode) -> bool:
    """Tell whether the cache has the results of a page."""
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True


def result_key(notebook: NotebookNode) -> str:
    """Return what the results of a page depend on: its code and its kernel."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return json.dumps([code, notebook.metadata.get("kernelspec")])


def execute(notebook: NotebookNode, **options: Any) -> ExecutionResult:
    """Return the results of a page and put them into its notebook; execute the page if that has not been done yet."""
    result = EXECUTED.pop(result_key(notebook), None) or run(notebook, **options)
    notebook.update(result.nb)
    return result


def run(notebook: NotebookNode, **options: Any) -> ExecutionResult:
    """Execute a page as jupyter-cache does, and describe any error in a form that suits the terminal."""
    result = single_nb_execution(notebook, kernel_manager_class=ForkedKernel, **options)
    if result.err is not None:
        result.exc_string = describe_error(result.nb, result.err)
    return result


def describe_error(page: NotebookNode, error: Exception) -> str:
    """Say which cell failed, with the last lines of its error."""
    code = [number for number, cell in enumerate(page.cells) if cell.cell_type == "code"]
    failed = ([number for number in code if page.cells[number].execution_count] or code)[-1]
    line = page.metadata.source_map[failed] + 1
    lines = COLOUR_CODES.sub("", str(error)).rstrip().splitlines()[-LAST_LINES:]
    return "\n".join([f"The error is in code cell {code.index(failed) + 1}, which begins on line {line}:", *lines])


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Tell Sphinx to read a page again when something that it imports has changed."""
    source[0], files = with_imports(app, page, source[0])
    for file in files:
        app.env.note_dependency(str(file))


def with_imports(app: Sphinx, page: str, source: str) -> tuple[str, list[Path]]:
    """Return the text of a page, to whose head a digest of its imports is added, and the files that it imports."""
    if page.startswith(TEACHING) and not app.config.with_solutions:
        return "".join(TITLE.findall(source)[:1]) + WITHOUT_SOLUTIONS, []
    if not page.startswith("book/"):
        return source, []
    executed = KERNEL_NAME.search(source)
    files = files_once(source) if executed else documented() if DOCSTRINGS.search(source) else []
    return (KERNEL_NAME.sub(rf"\1, with imports {digest(files)}", source, count=1) if executed else source), files


def cache_folder(app: Sphinx) -> str | Path:
    """Return where the results of executed pages are kept."""
    return app.config.nb_execution_cache_path or Path(app.outdir).parent / ".jupyter_cache"


def limit_cache(app: Sphinx) -> None:
    """Limit how many results the cache keeps."""
    get_cache(cache_folder(app)).change_cache_limit(MAX_CACHED_RESULTS)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    executing.single_nb_execution = execute
    app.add_config_value("with_solutions", (ROOT / "solutions").is_dir(), "env", types=bool)
    app.connect("builder-inited", limit_cache)
    app.connect("env-before-read-docs", execute_all)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
