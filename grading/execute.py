"""Run a notebook's cells until it ends or has to be stopped. What it earned before it was stopped stays earned."""

import os
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from traitlets import Integer, default

from grading._untyped import Execute, NotebookNode, is_grade, new_output

VERDICT = "grading"  # the key in a notebook's metadata under which the verdict stands
STOPPED, NOT_RUN = "Stopped", "NotRun"  # the errors in the cell that stopped a notebook, and in those after it

CELLS = 10  # a notebook may take as long as so many cells, each just within its own limit
MESSAGE = 100  # characters that even an empty message counts for


def error(name: str, reason: str) -> NotebookNode:
    """Return an error output: nbgrader gives no marks for it, and the feedback shows the reason."""
    return new_output("error", ename=name, evalue=reason, traceback=[f"{name}: {reason}"])


class StoppingExecute(Execute):  # type: ignore[misc]
    """Execute cells one after another; after a cell that never ends, or a kernel that dies, execute no more.

    nbgrader interrupts such a cell and goes on, so code that catches the interrupt keeps the grader waiting, and
    later cells run in a kernel whose state nobody knows. Here the kernel is killed, with all of its process group.
    """

    max_output = Integer(
        1_000_000,
        help="How many characters of each kind of output (printed text, figures, results) are kept of one cell.",
    ).tag(config=True)

    sockets: str
    group: int | None

    @default("interrupt_on_timeout")
    def _never_interrupt(self) -> bool:
        return False

    @default("store_widget_state")
    def _keep_no_widgets(self) -> bool:
        return False  # no page shows them, and they would take any amount of memory

    @default("shutdown_kernel")
    def _kill(self) -> str:
        return "immediate"

    def create_kernel_manager(self) -> Any:
        """Reach the kernel through sockets in a folder of its own: of free ports, two runs may choose the same."""
        manager = super().create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{self.sockets}/kernel"
        return manager

    def start_new_kernel(self, **kwargs: Any) -> None:
        """Start a kernel that cannot write into the grader's own terminal, nor into the folder of what it grades."""
        shutil.copytree(self.resources["metadata"]["path"], work := Path(self.sockets) / "work")
        super().start_new_kernel(stdout=DEVNULL, stderr=DEVNULL, cwd=str(work), **kwargs)
        self.group = self.km.provisioner.pgid

    def preprocess(self, nb: NotebookNode, resources: Any, km: Any = None) -> tuple[NotebookNode, Any]:
        """Execute the notebook, and leave the verdict in its metadata."""
        self.stopped = ""
        self.size: Counter[tuple[int, str]] = Counter()
        self.deadline = monotonic() + CELLS * self.timeout
        self.group = None
        nb.metadata[VERDICT] = {"verdict": "graded", "reason": ""}
        with TemporaryDirectory(prefix="kernel-", ignore_cleanup_errors=True) as self.sockets:
            try:
                executed: tuple[NotebookNode, Any] = super().preprocess(nb, resources, km)
            finally:
                self._kill_the_rest()
        return executed

    def _kill_the_rest(self) -> None:
        """Kill what the kernel started: a kernel that has ended by itself takes none of it along."""
        if self.group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, SIGKILL)

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        """Execute a cell, unless the notebook was stopped before it."""
        if self.stopped:
            if cell.cell_type == "code" and is_grade(cell):
                cell.outputs = [error(NOT_RUN, self.stopped)]
            return cell, resources
        if cell.cell_type == "code" and monotonic() > self.deadline:
            self._stop(cell, "timeout", f"was not reached within {CELLS * self.timeout} seconds. Is a cell very slow?")
            return cell, resources
        try:
            executed: tuple[NotebookNode, Any] = super().preprocess_cell(cell, resources, index)
            return executed
        except CellTimeoutError:
            self._stop(cell, "timeout", f"did not end within {self.timeout} seconds. Is there a loop that never ends?")
        except DeadKernelError:
            self._stop(cell, "crashed", "ended the Python process that it ran in.")
        return cell, resources

    def _stop(self, cell: NotebookNode, verdict: str, what: str) -> None:
        name = cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "?")
        reason = f"the cell {name!r} {what}"
        self.nb.metadata[VERDICT] = {"verdict": verdict, "reason": reason}
        self.stopped = f"Not run, because {reason} What came before it is counted."
        cell.outputs.append(error(STOPPED, f"T{reason[1:]} It and all cells after it earn nothing."))

    def output(self, outs: list[NotebookNode], msg: dict[str, Any], display_id: Any, cell_index: int) -> Any:
        """Keep an output if it fits: a loop that prints would otherwise fill the grader's memory.

        Each kind of message has an allowance of its own, so that no amount of printing crowds out a cell's result.
        """
        before = self.size[cell_index, msg["msg_type"]]
        if self._fits(msg, cell_index):
            return super().output(outs, msg, display_id, cell_index) if _is_sound(msg["content"]) else None
        if before <= self.max_output:
            text = f"[Output cut here: more than {self.max_output} characters.]\n"
            outs.append(new_output("stream", name="stdout", text=text))
        return None

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> Any:
        """Take in a message, unless it is about widgets, which no page shows, or is none: student code can send any."""
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            return None if msg["msg_type"].startswith("comm") else self._take(msg, cell, cell_index)

    def _take(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> Any:
        data = msg["content"].get("data")
        if msg["msg_type"] in ("display_data", "execute_result", "update_display_data") and isinstance(data, dict):
            sound = {kind: value for kind, value in data.items() if isinstance(value, str) or kind.endswith("json")}
            msg["content"]["data"] = sound
        if msg["msg_type"] == "update_display_data" and not self._fits(msg, cell_index):
            return None
        return super().process_message(msg, cell, cell_index)

    def _fits(self, msg: dict[str, Any], cell_index: int) -> bool:
        kind = (cell_index, msg["msg_type"])
        self.size[kind] += MESSAGE + _length(msg["content"])
        return self.size[kind] <= self.max_output


def _is_sound(content: dict[str, Any]) -> bool:
    """Return whether an output holds text where there has to be text: a student's code can send any message."""
    lines = content.get("traceback", [])
    texts = [content.get(name, "") for name in ("name", "text", "ename", "evalue")]
    return isinstance(lines, list) and all(isinstance(text, str) for text in [*texts, *lines])


def _length(content: Any) -> int:
    """Return the number of characters in a message, however deep they lie."""
    if isinstance(content, dict):
        return sum(map(_length, content.values()))
    if isinstance(content, list):
        return sum(map(_length, content))
    return len(str(content))
