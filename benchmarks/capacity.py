"""Measure what a class costs on this machine, from which the page *How grading works* computes what larger ones cost.

`python benchmarks/capacity.py` grades classes of two sizes with two jobs, with and without feedback pages, and prints a
line for each run: the seconds it took, the processor seconds of the grading process and of all others, and the most
memory. Processor seconds hardly depend on what else the machine does. Memory that processes share counts once (PSS).
"""

import argparse
import contextlib
import subprocess
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import classroom
import contenders
import psutil
import timing

from grading.course import Course

ASSIGNMENT = "02-self-attention"
SIZES = (20, 60)
TICK = 0.2  # seconds between looks at the memory


@dataclass(frozen=True)
class Cost:
    """What a run took: seconds on the clock, processor seconds, and megabytes."""

    seconds: float
    main: float
    others: float
    main_mb: float
    others_mb: float


def measure(submissions: int, jobs: int, *options: str) -> Cost:
    """Grade a class that was made for this, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="capacity-") as folder:
        mine = contenders.ours(Path(folder) / "class", ASSIGNMENT, "--jobs", str(jobs), *options)
        contenders.register_ours(mine)
        course = Course.at(contenders.ROOT, mine.folder)
        (template,) = (mine.folder / "release" / ASSIGNMENT).glob("*.ipynb")
        names = classroom.hand_in(course, ASSIGNMENT, template, min(submissions, SIZES[0]))
        classroom.multiply(course, ASSIGNMENT, names, submissions)
        return _watched(mine.command)


def _watched(command: tuple[str, ...]) -> Cost:
    """Run a command to its end, and return what it took."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=contenders.ROOT, env=contenders.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    most = [0.0] * 4
    while process.poll() is None:
        most = [max(pair) for pair in zip(most, _so_far(process.pid), strict=True)]
        time.sleep(TICK)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: run it alone to see why")
    return Cost(time.perf_counter() - begin, *most)


def _so_far(pid: int) -> list[float]:
    """Return the processor seconds of a process and of all others that it started, and the memory of both in MB.

    What has ended counts with the process that waited for it.
    """
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        own, ended = _processor_seconds(process)
        others, memory = ended, 0.0
        for one in process.children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it ended in between
                others += sum(_processor_seconds(one))
                memory += one.memory_full_info().pss / 1e6
        return [own, others, process.memory_full_info().pss / 1e6, memory]
    return [0.0] * 4


def _processor_seconds(process: psutil.Process) -> tuple[float, float]:
    """Return the processor seconds of a process, and of the children that it has waited for."""
    times = process.cpu_times()
    return times.user + times.system, times.children_user + times.children_system


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(f"{timing.machine()}; {ASSIGNMENT}\n")
    columns = ("seconds", "CPU s, main", "CPU s, others", "MB, main", "MB, others")
    print(f"submissions  jobs  pages  {'  '.join(f'{column:>13}' for column in columns)}")
    runs = [(n, 2, pages) for pages in (False, True) for n in SIZES]
    for submissions, jobs, pages in [*runs, (SIZES[0], 1, False)]:
        cost = measure(submissions, jobs, *([] if pages else ["--no-feedback"]))
        numbers = "  ".join(f"{number:13.2f}" for number in astuple(cost))
        print(f"{submissions:11}  {jobs:4}  {pages!s:5}  {numbers}", flush=True)


if __name__ == "__main__":
    main()
