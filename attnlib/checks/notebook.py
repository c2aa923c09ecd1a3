"""Run a student's notebook from the shell: its code cells in order, in this process, and the reports of its checks.

The notebook is trusted, as in Jupyter: it is the reader's own. Lines that only IPython knows (``%…``, ``!…``) are left
out. What goes wrong in a cell is shown, and the next one runs: a check further down may have nothing to do with it.
"""

import ast
import json
import linecache
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attnlib.checks
from attnlib.checks.questions import Choice
from attnlib.checks.report import Report

MAGIC = re.compile(r"^(\s*)([%!?].*)$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """What came of a notebook: the reports of its checks, in order, and how many cells raised something else."""

    reports: tuple[Report | Choice, ...]
    broken: int

    @property
    def passed(self) -> bool:
        """Whether there were checks, all are happy, and no cell failed."""
        return bool(self.reports) and not self.broken and all(report.passed for report in self.reports)

    @property
    def summary(self) -> str:
        """One line: how many checks are happy, what they earn, what else went wrong."""
        happy = sum(report.passed for report in self.reports)
        earned = sum(report.score * (report.points or 0) for report in self.reports)
        points = sum(report.points or 0 for report in self.reports)
        cells = "1 cell" if self.broken == 1 else f"{self.broken} cells"
        broken = f"; {cells} raised an error outside of a check" if self.broken else ""
        if not self.reports:
            return f"no check was run{broken}"
        return f"{happy} of {len(self.reports)} checks are happy, {earned:.4g} of {points:g} points{broken}"


def run(path: Path) -> Run:
    """Run all code cells of a notebook, show what they print and report, and return what came of it.

    Raises:
        ValueError: the file is no notebook.
        OSError: the file cannot be read.
    """
    cells = _cells(path)
    namespace: dict[str, Any] = {"__name__": "__main__", "display": _display}
    broken = 0
    with _collecting() as reports:
        for number, source in enumerate(cells, 1):
            broken += not _ran(source, f"<cell {number} of {path.name}>", namespace)
    return Run(tuple(reports), broken)


def _cells(path: Path) -> list[str]:
    """Return the sources of the code cells."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        return ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no notebook of nbformat 4: {error!r}") from None


def _ran(source: str, filename: str, namespace: dict[str, Any]) -> bool:
    """Run a cell, and return whether it went well. A check that earns nothing has said so; other errors are shown."""
    try:
        ast.parse(source, filename)
    except SyntaxError:
        source = MAGIC.sub(r"\1pass  # \2", source)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)  # for tracebacks
    try:
        exec(compile(source, filename, "exec"), namespace)
    except attnlib.checks.CheckFailed:
        return True
    except (Exception, SystemExit) as error:
        if isinstance(error, NotImplementedError) and "raise NotImplementedError" in source:
            return True  # an answer that is not written yet, as the check below it will say
        shown = traceback.TracebackException.from_exception(error)
        shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if frame.filename == filename])
        print(f"✗ {filename.strip('<>')}: {''.join(shown.format()).rstrip()}")
        return False
    return True


def _display(*objects: object, **options: object) -> None:
    """Take the place of IPython's function of this name, which notebooks call without importing it: print."""
    print(*objects, sep="\n")


@contextmanager
def _collecting() -> Iterator[list[Report | Choice]]:
    """Keep every report that is shown."""
    reports: list[Report | Choice] = []
    attnlib.checks.listeners.append(reports.append)
    try:
        yield reports
    finally:
        attnlib.checks.listeners.remove(reports.append)
