"""How many points honest but slow submissions lose when others keep the machine busy: `python benchmarks/hog.py`.

Twenty students hand in right answers, one of which takes half of the time that a cell has. Four more fork 31 processes
each that never end. Two submissions are graded at a time, first on the machine as it is, and then while eight
unrelated busy processes run on it. Nobody should lose a point.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "grading")]

from attacks.case import Case  # noqa: E402
from attacks.course import NAME, POINTS, RIGHT, hand_in, repository  # noqa: E402

from grading.course import Course  # noqa: E402
from grading.report import Row, rows  # noqa: E402
from grading.run import How, run  # noqa: E402
from grading.sandbox.limits import Limits  # noqa: E402

CELL = 4  # seconds that a cell may take
HONEST, HOGS = 20, 4
SLOW = f"""import time
end = time.process_time() + {CELL / 2}
while time.process_time() < end: pass
{RIGHT["softmax"]}"""
HOG = """import os, time
for _ in range(31):
    if not os.fork():
        while True: pass
time.sleep(3600)
"""
BUSY = "while True: pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--busy",
        type=int,
        default=8,
        help="number of unrelated busy processes (default: %(default)s)",
    )
    given = parser.parse_args()
    print(f"{psutil.cpu_count()} processors, load {psutil.getloadavg()[0]:.1f} before the first run")
    print("other load  hogs  seconds  points lost  verdicts of the honest submissions")
    for busy in (0, given.busy):
        for hogs in (0, HOGS):
            with TemporaryDirectory(prefix="hog-") as folder, _busy(busy):
                print(f"{busy:10}  {hogs:4}  {_graded(Path(folder), hogs)}", flush=True)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Keep so many processes busy."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _graded(place: Path, hogs: int) -> str:
    """Grade a class, and say how long it took, and what the honest lost."""
    repository(place / "repository", "")
    course = Course.at(place / "repository", place / "class")
    for number in range(HONEST):
        hand_in(course, Case(f"student-{number:02}", "is slow", {"softmax": SLOW}, base="right"), "")
    for number in range(hogs):
        name = f"student-{number * HONEST // hogs:02}-is-a-hog"  # it is graded before the next one
        hand_in(course, Case(name, "forks", {"first": HOG}, base="right"), "")
    begin = time.perf_counter()
    run(course, NAME, how=How(jobs=2, limits=Limits().with_cell(CELL), pages=False))
    seconds = time.perf_counter() - begin
    honest = [row for row in rows(course, NAME) if not row.outcome.student.endswith("hog")]
    return f"{seconds:7.0f}  {_lost(honest):11g}  {', '.join(sorted({row.outcome.verdict for row in honest}))}"


def _lost(honest: list[Row]) -> float:
    return HONEST * sum(POINTS.values()) - sum(row.score for row in honest)


if __name__ == "__main__":
    main()
