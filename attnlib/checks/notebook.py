"""Run a student's notebook from the shell: its code cells in order, in this process, and the reports of its checks.

The notebook is trusted, as in Jupyter: it is the reader's own. Lines that only IPython understands (``%…``, ``!…``) are
skipped. An error in a cell is shown, and then the next cell runs: later checks might not depend on the one that failed.
Where torch is not installed, what needs it is left out of the cells, and the checks that need it count as not run.
A cell that takes too long is stopped if the system has interval timers (Windows has none).
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
from attnlib._extras import extra_for, install_command
from attnlib.checks import browser
from attnlib.checks.array_text import counted
from attnlib.checks.browser import WithoutTorch
from attnlib.checks.mutation.kill_report import KillReport
from attnlib.checks.questions import Choice
from attnlib.checks.report import Report
from attnlib.checks.time_limit import time_limit

MAGIC_COMMAND = re.compile(r"^(\s*)([%!?].*)$", re.MULTILINE)
CHECK_CALL = re.compile(
    r"^check(?:_choice|_tests)?\((.*)", re.MULTILINE
)  # in the source, which may have a syntax error
CHECK_NAMES = ("check", "check_choice", "check_tests")
POINTS_ARGUMENT = re.compile(r"\bpoints=(\d+(?:\.\d+)?)")
UNQUOTED_ANSWER = re.compile(
    r"^\w*answer *= *([A-Za-z])(?= *(?:#.*)?$)", re.MULTILINE
)  # a letter that is meant as an answer
# Seconds for one cell. The slowest cell of the solutions trains a model, which takes 20 s on a busy machine.
CELL_TIMEOUT = 300
TOO_SLOW = (
    "the cell was stopped after {} s, in the line above. Is there a loop that never ends? "
    "If the cell only needs more time, run the command again with --timeout {}"
)


class CellTimeoutError(BaseException):
    """A cell took too long. This is not an Exception, so a check does not report it as an error in the answer."""


@dataclass(frozen=True)
class Run:
    """The outcome of a notebook: the reports of its checks, in order, and what else went wrong.

    ``missed`` are the points of each check that was not run because of an error, ``broken`` the numbers of the code
    cells that raised an error other than :class:`CheckFailed`.
    """

    reports: tuple[Report | Choice | KillReport, ...]
    missed: tuple[float, ...]
    broken: tuple[int, ...]

    @property
    def passed(self) -> bool:
        """Whether there were checks, all of them passed, no cell failed, and no answer called what grading forbids."""
        passed = all(report.passed for report in self.reports)
        return bool(self.reports) and passed and not (self.missed or self.broken or self.forbidden)

    @property
    def forbidden(self) -> list[str]:
        """The functions that answers called although grading does not allow them."""
        return [report.forbidden for report in self.reports if isinstance(report, Report) and report.forbidden]

    @property
    def summary(self) -> str:
        """One line: how many checks passed, how many of the points they earn, and what else went wrong."""
        known = [report for report in self.reports if not isinstance(report, Choice)]
        questions = [report for report in self.reports if isinstance(report, Choice)]
        passed = sum(report.passed for report in known)
        earned = sum(report.score * (report.points or 0) for report in known)
        points = sum(report.points or 0 for report in known) + sum(self.missed)
        checks, answered = len(known) + len(self.missed), sum(question.is_open for question in questions)
        cells = f"{'cell' if len(self.broken) == 1 else 'cells'} {', '.join(map(str, self.broken))}"
        missed = f"; {len(self.missed)} of the checks could not be run" if self.missed else ""
        broken = f"; {cells} raised an error outside of a check" if self.broken else ""
        forbidden = f"; grading does not allow: {', '.join(self.forbidden)}" if self.forbidden else ""
        to_grade = f"; {answered} of {counted(len(questions), 'question')} answered, to be graded" if questions else ""
        if not self.reports and not self.missed:
            return f"no check was run{broken}"
        earnings = f"{earned:.4g} of {counted(points, 'point')}"
        return f"{passed} of {checks} checks passed, {earnings}{to_grade}{missed}{broken}{forbidden}"


def run(path: Path, seconds: int = CELL_TIMEOUT) -> Run:
    """Run all code cells of a notebook, show what they print and report, and return the outcome.

    Args:
        path: the notebook.
        seconds: the time limit for each cell.

    Raises:
        ValueError: the file is not a notebook.
        OSError: the file cannot be read.
    """
    cells = _cells(path)
    namespace: dict[str, Any] = {"__name__": "__main__", "display": _display}
    reports: list[Report | Choice | KillReport] = []
    missed: list[float] = []
    broken: list[int] = []
    without_torch = WithoutTorch() if browser.without_torch() else None
    for number, (source, counts) in enumerate(cells, 1):
        with _collecting() as shown:
            if not _ran(source, f"<cell {number} of {path.name}>", namespace, seconds, without_torch):
                broken.append(number)
        if counts:
            reports += shown
            missed += _checks(source)[len(shown) :]
    return Run(tuple(reports), tuple(missed), tuple(broken))


def _cells(path: Path) -> list[tuple[str, bool]]:
    """Return the sources of the code cells, and whether their checks count: nbgrader's graded cells, or else all."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        graded = [cell.get("metadata", {}).get("nbgrader", {}).get("grade", False) for cell in cells]
        counts = graded if any(graded) else [True] * len(cells)
        return list(zip(("".join(cell["source"]) for cell in cells), counts, strict=True))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a notebook of nbformat 4: {error!r}") from None


def _checks(source: str) -> list[float]:
    """Return what each check of a cell can earn, even if the cell cannot be run."""
    try:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    except SyntaxError:
        arguments = CHECK_CALL.findall(source)
    else:
        arguments = [ast.unparse(call) for call in calls if getattr(call.func, "id", "") in CHECK_NAMES]
    points = [POINTS_ARGUMENT.search(text) for text in arguments]
    return [float(found[1]) if found else 1.0 for found in points]


def _ran(
    source: str, filename: str, namespace: dict[str, Any], seconds: int, without_torch: WithoutTorch | None
) -> bool:
    """Run a cell, and return whether it succeeded. A failed check has shown its report; other errors are shown here."""
    try:
        ast.parse(source, filename)
    except SyntaxError:
        source = MAGIC_COMMAND.sub(r"\1pass  # \2", source)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)  # for tracebacks
    try:
        cell = ast.parse(source, filename)
        code = compile(without_torch.visit(cell) if without_torch else cell, filename, "exec")
        with time_limit(seconds, lambda: CellTimeoutError(TOO_SLOW.format(seconds, 10 * seconds))):
            exec(code, namespace)
    except attnlib.checks.CheckFailed:
        return True
    except (Exception, SystemExit, CellTimeoutError) as error:
        if isinstance(error, NotImplementedError) and "raise NotImplementedError" in source:
            return True  # an answer that is not written yet, which the check below will report
        _show_error(error, source, filename)
        return False
    return True


def _show_error(error: BaseException, source: str, filename: str) -> None:
    """Print an error with the lines of the student's code that led to it, but none of ours."""
    shown = traceback.TracebackException.from_exception(error)
    own = [frame for frame in shown.stack if frame.filename.startswith("<cell ")]
    shown.stack = traceback.StackSummary.from_list(own)
    print(f"✗ {filename.strip('<>')}: {''.join(shown.format()).rstrip()}")
    if isinstance(error, ImportError) and (extra := extra_for(error)):
        print(f"To install what is missing, run {install_command(extra)}.")
    unquoted = UNQUOTED_ANSWER.search(source)
    if unquoted and isinstance(error, NameError):
        print(f'An answer to a question is a string: write "{unquoted[1].upper()}", with the quotation marks.')


def _display(*objects: object, **options: object) -> None:
    """Replace IPython's function of this name, which notebooks call without importing it: print."""
    print(*objects, sep="\n")


@contextmanager
def _collecting() -> Iterator[list[Report | Choice | KillReport]]:
    """Keep every report that is shown."""
    reports: list[Report | Choice | KillReport] = []
    attnlib.checks.listeners.append(reports.append)
    try:
        yield reports
    finally:
        attnlib.checks.listeners.remove(reports.append)
