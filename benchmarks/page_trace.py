"""Processor time in a page, from Chromium's own trace: other programs affect it less than the time by the clock."""

import json
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "book"), str(ROOT / "book")]  # the server and the browser of the book's tests

from _tools.chromium import chromium  # noqa: E402
from pages import HTML  # noqa: E402
from served import served  # noqa: E402

__all__ = ["HTML", "Event", "chromium", "frames", "served", "tasks", "trace_of"]

THREADS = {"CrRendererMain": "page", "DedicatedWorker thread": "worker"}
CATEGORIES = ["toplevel", "devtools.timeline", "__metadata"]
FRAME = ("AnimationFrame", "b")  # where one begins

Event = dict[str, Any]
Times = tuple[float, float]  # milliseconds, by the processor and by the clock


def trace_of(browser: Any, tab: Any, act: Callable[[], object]) -> list[Event]:
    """Return the events of Chromium's trace while something happens."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        browser.start_tracing(page=tab, path=file, categories=CATEGORIES)
        act()
        browser.stop_tracing()
        return list(json.loads(file.read_text(encoding="utf-8"))["traceEvents"])


def _threads(events: list[Event]) -> dict[tuple[int, int], str]:
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    return {thread: THREADS[name] for thread, name in names.items() if name in THREADS}


def _run(events: list[Event]) -> list[tuple[str, Event]]:
    """Return the tasks of the page and of its workers, in order, each with its thread."""
    threads = _threads(events)
    found = [
        (threads[one["pid"], one["tid"]], one)
        for one in events
        if one["name"] == "ThreadControllerImpl::RunTask" and one["ph"] == "X" and (one["pid"], one["tid"]) in threads
    ]
    return sorted(found, key=lambda entry: entry[1]["ts"])


def tasks(events: list[Event]) -> dict[str, list[Times]]:
    """Return how long each task of the page and of its workers took."""
    found: dict[str, list[Times]] = {name: [] for name in THREADS.values()}
    for thread, one in _run(events):
        found[thread].append((one.get("tdur", 0) / 1000, one["dur"] / 1000))
    return found


def frames(events: list[Event]) -> list[float]:
    """Return the milliseconds of processor time that the page took from the beginning of each frame to the next."""
    threads = _threads(events)
    begins = sorted(
        one["ts"]
        for one in events
        if (one["name"], one["ph"]) == FRAME and threads.get((one["pid"], one["tid"])) == "page"
    )
    run = [(one["ts"] + one["dur"], one.get("tdur", 0) / 1000) for thread, one in _run(events) if thread == "page"]
    return [sum(spent for end, spent in run if begin < end <= after) for begin, after in pairwise(begins)]
