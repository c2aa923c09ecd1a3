"""Profile grading: how many milliseconds each part takes.

The engine is not changed: its functions are wrapped in clocks, in a process of its own.
`python benchmarks/profile_grading.py ASSIGNMENT FOLDER` grades the class in the folder and prints JSON.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any

from attnlib.checks import evaluation
from grading import pipeline, pool, submission
from grading import run as grading_run
from grading.course import Course
from grading.gradebook.assignment import AssignmentGradebook
from grading.judge import Judge
from grading.notebook_template import NotebookTemplate
from grading.pool import Boxes
from grading.run_state import RunState
from grading.safe_files import SafeFolder
from grading.sandbox import execute
from grading.sandbox.host import Host
from grading.sandbox.submission_process import SubmissionProcess

ROOT = Path(__file__).parents[1]
MAIN, BOX, ONCE = "main process", "box", "once"
FORK = "fork, isolation, and their end"

# What a clock is put around: where it is found, its name there, and the table and the line that it belongs to.
WATCHED: tuple[tuple[Any, str, str, str], ...] = (
    (pool, "require_isolation", ONCE, "testing the sandbox"),
    (grading_run, "register", ONCE, "checking whether the assignment is registered"),
    (grading_run, "notebook_templates", ONCE, "reading the assignment"),
    (AssignmentGradebook, "__init__", ONCE, "opening the gradebook"),
    (Host, "_start", ONCE, "starting the box"),
    (Host, "_hear_that_it_is", ONCE, "starting the box"),
    (evaluation, "call_submission", ONCE, "computing the right answers and those of known mistakes"),
    (Judge, "_evaluation", ONCE, "the rest of the first evaluations"),
    (submission, "read_submission", MAIN, "reading and repairing, in a separate process"),
    (NotebookTemplate, "task", MAIN, "task"),
    (NotebookTemplate, "marked", MAIN, "marking the notebook"),
    (Judge, "outputs", MAIN, "judge"),
    (submission, "findings", MAIN, "findings"),
    (submission, "harmless", MAIN, "sanitizing, in a separate process"),
    (submission, "notebook_text", MAIN, "writing the notebook"),
    (SafeFolder, "write", MAIN, "writing the notebook"),
    (submission, "handed_in", MAIN, "time of submission"),
    (AssignmentGradebook, "record", MAIN, "gradebook"),
    (RunState, "store_outcome", MAIN, "run state"),
    (RunState, "outcome_of", MAIN, "run state"),
    (pipeline, "wait", MAIN, "waiting for the box"),
    (Boxes, "_run", BOX, "everything else"),
    (execute._Run, "_run", BOX, "cells"),
    (execute, "_send_probe", BOX, "answers"),
)


class Clock:
    """The time of one thread, parted among what it does: what is inside of something else counts there alone."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._inside: list[tuple[str, str]] = []
        self._since = 0.0

    def is_once(self) -> bool:
        """Tell whether what is going on happens once a run."""
        return any(table == ONCE for table, _ in self._inside)

    @contextmanager
    def during(self, what: tuple[str, str]) -> Iterator[None]:
        self.tick()
        self._inside.append(what)
        try:
            yield
        finally:
            self.tick()
            self._inside.pop()

    def tick(self) -> None:
        """Put the time since the last tick to what is going on."""
        now = time.perf_counter()
        if self._inside:
            self.seconds[self._inside[-1]] += now - self._since
        self._since = now


class Clocks(threading.local):
    """A clock for each thread."""

    every: list[Clock] = []  # noqa: RUF012 (one list for all threads)

    def __init__(self) -> None:
        self.clock = Clock()
        self.every.append(self.clock)


CLOCKS = Clocks()


def watch() -> None:
    """Put clocks around the engine's functions."""
    for owner, name, table, what in WATCHED:
        setattr(owner, name, _timed(getattr(owner, name), (table, what)))
    Host.submission_process = _timed_process(Host.submission_process)


def _timed(function: Callable[..., Any], what: tuple[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def timed(*given: Any, **options: Any) -> Any:
        with CLOCKS.clock.during(what):
            return function(*given, **options)

    return timed


def _timed_process(process: Callable[..., Any]) -> Callable[..., Any]:
    """Count the beginning and the end of a submission's process as time of the fork, without its cells and answers."""

    @contextmanager
    def timed(host: Host, *given: Any) -> Iterator[SubmissionProcess]:
        clock = CLOCKS.clock
        what = nullcontext() if clock.is_once() else clock.during((BOX, FORK))  # once: to test the sandbox
        with what, process(host, *given) as begun:
            yield begun

    return timed


def ours(assignment: str, folder: Path) -> dict[str, Any]:
    """Grade the class with one box; return the total seconds, and those of each part by table."""
    watch()
    begin = time.perf_counter()
    with redirect_stdout(sys.stderr), CLOCKS.clock.during((MAIN, "everything else")):  # only JSON may go to stdout
        grading_run.run(Course.at(ROOT, folder), assignment, how=grading_run.How(pages=False))
    seconds = time.perf_counter() - begin
    tables: dict[str, dict[str, float]] = {MAIN: {}, BOX: {}, ONCE: {}}
    for clock in CLOCKS.every:
        for (table, what), taken in clock.seconds.items():
            tables[table][what] = tables[table].get(what, 0.0) + taken
    return {"seconds": seconds, **tables}


if __name__ == "__main__":
    _, assignment, folder = sys.argv
    json.dump(ours(assignment, Path(folder)), sys.stdout)
