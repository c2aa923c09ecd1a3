"""An IPython shell without a kernel: cells run in it directly, and what they show goes to a sink."""

import ast
import base64
import builtins
import contextlib
import gc
import getpass
import io
import os
import sys
import tokenize
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from grading.sandbox.inside.refusals import Withheld
from grading.sandbox.inside.solver_guard import PRELOAD

BACKEND = "module://matplotlib_inline.backend_inline"
MAX_TRACEBACK_LENGTH = 20_000  # characters
Sink = Callable[[dict[str, Any]], None]

# One of everything that is slow the first time, such as an error, an expression, a figure and a tensor.
WARM_UP_CELLS = [
    "1/0",
    "1 +",
    "1 + 1",
    "import numpy as np; np.ones(3)",
    "import torch, attnlib; torch.softmax(torch.ones(2, 3), -1) @ torch.ones(3, 2)",
    "x = torch.ones(1, 2, 4, requires_grad=True); (torch.softmax(x @ x.mT, -1) @ x).sum().backward()",
    "torch.nn.functional.scaled_dot_product_attention(x, x, x)",
    "torch.nn.MultiheadAttention(4, 2)(*[torch.ones(1, 2, 4)] * 3)",
    "import matplotlib.pyplot as plt; plt.figure(figsize=(1, 1)); plt.imshow([[1, 2], [3, 4]]); plt.title('$x_1$')\n"
    "plt.plot([0, 1], label='one'); plt.legend(); plt.show()",
    "from IPython.display import display, HTML; display(HTML('<b>x</b>'))",
]
IMPORTED_FIRST = (
    *("attnlib", "attnlib.numpy", "attnlib.torch", "attnlib.plotting", "attnlib.checks"),
    "attnlib.checks.calling.call_submission",
    "grading.sandbox.inside.cell_runner",
)


class _Publisher(DisplayPublisher):
    """Send what is displayed to the shell's sink."""

    shell: "Shell"

    def publish(self, data: Any, metadata: Any = None, **options: Any) -> None:  # type: ignore[override]
        """Send a display, or new content for an earlier one."""
        kind = "update_display_data" if options.get("update") else "display_data"
        name = (options.get("transient") or {}).get("display_id")
        self.shell.sink({"output_type": kind, "data": _as_text(data), "metadata": {}, "display_id": name})

    def clear_output(self, wait: bool = False) -> None:
        """Take back what the cell has shown so far."""
        self.shell.sink({"output_type": "clear_output"})


class _Hook(DisplayHook):
    """Send the value of a cell's last expression to the shell's sink."""

    shell: "Shell"

    def quiet(self) -> bool:
        """Return whether the cell asks for silence, by a semicolon at its end."""
        try:
            quiet: Any = self.semicolon_at_end_of_expression(self.shell.source)  # type: ignore[no-untyped-call]
            return bool(quiet)
        except (SyntaxError, tokenize.TokenError):  # it is a magic, or Python with magics in it
            return self.shell.source.rstrip().endswith(";")

    def start_displayhook(self) -> None:
        """Write no prompt."""

    write_output_prompt = start_displayhook
    finish_displayhook = start_displayhook

    def write_format_data(self, format_dict: Mapping[str, Any], md_dict: Any = None) -> None:
        """Send the value in every format that it offers."""
        self.shell.sink({"output_type": "execute_result", "data": _as_text(format_dict), "metadata": {}})


class Shell(InteractiveShell):
    """The shell. ``sink`` takes outputs as dictionaries in the notebook's format."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    sink: Sink = staticmethod(lambda output: None)
    source = ""

    def run_through(self, source: str) -> None:
        """Run a cell. If it calls a withheld part of attnlib, continue with the next statement.

        A comparison with attnlib's own function works at home. Here its failure must not keep later names from being
        defined.
        """
        error = self.run_cell(source, store_history=False).error_in_exec  # type: ignore[no-untyped-call]
        if not isinstance(error, Withheld):
            return
        calls = traceback.walk_tb(error.__traceback__)
        place = next((call for call in calls if call[0].f_globals is self.user_ns), None)
        if place is None:  # the student's code has cleared the traceback, so nothing says where the cell stopped
            return
        file, line = place[0].f_code.co_filename, place[1]
        for statement in ast.parse(self.transform_cell(source)).body:  # type: ignore[no-untyped-call]
            if statement.lineno > line:
                try:
                    exec(compile(ast.Module([statement], []), file, "exec"), self.user_ns)
                except Exception:
                    self.showtraceback()

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing, as there is no screen."""

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        lines = stb if isinstance(stb, list) else [str(stb)]
        text = "\n".join(map(str, lines))
        kept = (
            text if len(text) <= MAX_TRACEBACK_LENGTH else f"{text[: MAX_TRACEBACK_LENGTH // 2]}\n[…]\n{text[-5000:]}"
        )
        name, value = getattr(etype, "__name__", "Error"), _said(evalue)
        self.sink({"output_type": "error", "ename": str(name), "evalue": value, "traceback": kept.split("\n")})


def _said(error: Any) -> str:
    try:
        return str(error)[:MAX_TRACEBACK_LENGTH]
    except Exception as another:
        return f"(its text cannot be shown: {type(another).__name__})"


def _as_text(data: Mapping[str, Any]) -> dict[str, str]:
    """Return a bundle that holds only text, with pictures in base64."""
    texts = {str(kind): base64.b64encode(x).decode() if isinstance(x, bytes) else x for kind, x in data.items()}
    return {kind: x for kind, x in texts.items() if isinstance(x, str)}


def warmed() -> Shell:
    """Return a shell in which everything slow has happened once, without leaving a trace."""
    os.environ["MPLBACKEND"] = BACKEND
    import torch

    torch.set_num_threads(1)
    for name in (*IMPORTED_FIRST, *PRELOAD):
        with contextlib.suppress(ImportError):
            __import__(name)
    config = Config({"HistoryManager": {"enabled": False}, "Shell": {"colors": "Linux"}})
    shell: Shell = Shell.instance(config=config)
    shell.InteractiveTB.set_mode("Plain")  # the other modes read the sources of all imported modules
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        for source in WARM_UP_CELLS:
            shell.run_cell(source, store_history=False)  # type: ignore[no-untyped-call]
    gc.freeze()  # resetting collects garbage, and there is none among the imported modules
    shell.reset(new_session=False)  # type: ignore[no-untyped-call]
    _ask_nobody()
    return shell


def _ask_nobody() -> None:
    """Make everything that would wait for a person fail at once."""

    def nobody(*_: object, **__: object) -> str:
        raise EOFError("input() cannot be used here: while a notebook is graded, nobody is there to answer")

    def no_debugger(*_: object, **__: object) -> None:
        raise EOFError("breakpoint() cannot be used here: while a notebook is graded, nobody is there to debug it")

    builtins.input = nobody
    getpass.getpass = nobody
    sys.breakpointhook = no_debugger
