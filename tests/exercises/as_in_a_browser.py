"""Run notebooks as Python in a browser does: without torch, and without what is not carried there.

``python as_in_a_browser.py PLATFORM NOTEBOOK…`` prints a line of JSON for each notebook: a list of {id, said, earned,
error}, one for each cell. Each notebook runs in a process of its own, which is forked after the slow imports, and after
attnlib has detected a browser. The platform of a browser is emscripten.
"""

import contextlib
import io
import json
import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy  # noqa: F401 (what a browser has is imported while this is still another platform)
from IPython.core.interactiveshell import InteractiveShell
from matplotlib import pyplot  # noqa: F401
from traitlets.config import Config

CARRIED = {"attnlib", "numpy", "matplotlib", "mpl_toolkits", "IPython", "comm"}
DEPENDED_ON = {  # by those, in Pyodide too
    *("PIL", "contourpy", "cycler", "dateutil", "fontTools", "kiwisolver", "packaging", "pyparsing", "six"),
    *("asttokens", "decorator", "executing", "jedi", "matplotlib_inline", "parso", "prompt_toolkit", "pure_eval"),
    *("pygments", "stack_data", "traitlets", "wcwidth", "ipython_pygments_lexers", "psutil"),
}
THERE = CARRIED | DEPENDED_ON | sys.stdlib_module_names
WORKER = "https://example.org/course/lite/extensions/@jupyterlite/pyodide-kernel-extension/static/comlink.worker.js"


class Carried:
    """Finds installed distributions as usual, but only those modules that a browser has."""

    find_distributions = staticmethod(PathFinder.find_distributions)

    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, path, target) if name.partition(".")[0] in THERE else None


def in_a_browser(platform: str) -> InteractiveShell:
    """Make this process look like a browser's Python, and return the shell that notebooks run in."""
    matplotlib.use("agg")
    os.environ.pop("ATTENTION_BOOK", None)
    sys.meta_path[:] = [Carried if finder is PathFinder else finder for finder in sys.meta_path]
    sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in str(one).lower()]
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.modules["js"] = SimpleNamespace(location=SimpleNamespace(href=WORKER))
    sys.platform = platform
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))  # a fork loses threads
    import_module("attnlib.checks")
    return shell


def ran(shell: InteractiveShell, source: str) -> dict[str, object]:
    """Run a cell; return what it said, the number that it ended in, and the error that it raised."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        result = shell.run_cell(source)
    error = result.error_before_exec or result.error_in_exec
    earned = result.result if isinstance(result.result, float) else None
    return {"said": said.getvalue(), "earned": earned, "error": error and type(error).__name__}


def run(shell: InteractiveShell, notebook: Path) -> None:
    """Run a notebook's cells, and print what came of them."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    print(json.dumps([{"id": cell["id"], **ran(shell, "".join(cell["source"]))} for cell in codes]), flush=True)


if __name__ == "__main__":
    _, platform, *names = sys.argv
    shell = in_a_browser(platform)
    for name in names:
        child = os.fork()
        if child == 0:
            run(shell, Path(name))
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{name} did not get to its end")
