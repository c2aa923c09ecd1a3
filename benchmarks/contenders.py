"""The two contenders, which grade the same class: `nbgrader autograde` as it comes, and `python -m grading run`."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
import timing
from tqdm import tqdm

from grading._nbgrader import Gradebook
from grading.course import Course, log_file
from grading.release import register

ROOT = Path(__file__).parents[1]
TICK = 1.0  # seconds between looks at how far a run is: they take time that is measured
MEMORY_TICK = 0.1  # the same where the memory is looked at, too
PLAIN = """c = get_config()
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = {root!r}
"""
Marks = dict[str, dict[str, float | None]]  # student -> cell -> score; None for what a person has to read


@dataclass(frozen=True)
class Contender:
    """One way to grade the class in ``folder``: a command, and a pattern of files of which each submission has one."""

    name: str
    folder: Path
    assignment: str
    command: tuple[str, ...]
    done: str

    @property
    def database(self) -> Path:
        return self.folder / "gradebook.db"

    @property
    def _fresh(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.fresh")

    def keep(self) -> None:
        """Remember how things are now: the assignment is known, the submissions are there, nothing is graded."""
        shutil.rmtree(self._fresh, ignore_errors=True)
        shutil.copytree(self.folder, self._fresh)

    def reset(self) -> None:
        """Make everything as it was remembered."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._fresh, self.folder)

    def graded(self) -> int:
        return sum(1 for _ in self.folder.glob(self.done))

    def marks(self) -> Marks:
        """Return what each student earned without a person, cell by cell."""
        with Gradebook(f"sqlite:///{self.database}", "attention") as gradebook:
            return {
                submission.student_id: {
                    grade.name: grade.auto_score for n in submission.notebooks for grade in n.grades
                }
                for submission in gradebook.assignment_submissions(self.assignment)
            }

    def output(self, student: str, cell: str) -> str:
        """Return the last that a graded cell showed, in a few words."""
        for file in (self.folder / "autograded" / student / self.assignment).glob("*.ipynb"):
            for one in nbformat.read(file, 4).cells:
                if one.metadata.get("nbgrader", {}).get("grade_id") == cell and one.get("outputs"):
                    last = one.outputs[-1]
                    said = last.get("evalue") or last.get("text") or last.get("data", {}).get("text/plain", "")
                    return f"{last.output_type}: {' '.join(said.split())[:70]}"
        return "nothing"


@dataclass(frozen=True)
class Measured:
    """Seconds of a run; the most memory in MB that it took with all its processes, and that its own process took."""

    seconds: float
    family: float
    own: float


def ours(folder: Path, assignment: str, *options: str) -> Contender:
    command = [sys.executable, "-m", "grading", "run", assignment, "--course", str(folder), "--jobs", "2", *options]
    return Contender("ours", folder, assignment, tuple(command), f"reports/{assignment}/outcomes/*.json")


def stock(folder: Path, assignment: str) -> Contender:
    command = (sys.executable, "-m", "nbgrader", "autograde", assignment)
    return Contender("nbgrader", folder, assignment, command, f"autograded/*/{assignment}")


def register_ours(contender: Contender) -> float:
    """Tell our gradebook of the assignment, and return the seconds."""
    course = Course.at(ROOT, contender.folder)
    begin = time.perf_counter()
    register(course, contender.assignment, log_file(course, contender.assignment))
    return time.perf_counter() - begin


def register_stock(contender: Contender) -> None:
    """Make a course with nbgrader's own settings, and tell its gradebook of the assignment."""
    shutil.copytree(ROOT / "solutions" / contender.assignment, contender.folder / "source" / contender.assignment)
    (contender.folder / "nbgrader_config.py").write_text(PLAIN.format(root=str(contender.folder)), encoding="utf-8")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", contender.assignment]
    subprocess.run(command, cwd=contender.folder, env=environment(), check=True, capture_output=True)


def environment() -> dict[str, str]:
    """Return the environment of a run: one thread each, and the tools of this Python on the path."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return timing.environment(1) | {"PATH": beside}


def run(contender: Contender, total: int, label: str, *, memory: bool = False) -> Measured:
    """Run a contender on its class, show how far it is, and return what it took.

    Raises:
        RuntimeError: it failed. (nbgrader ends with 1 where it could not grade somebody; that is no failure here.)
    """
    bar = tqdm(total=total, desc=f"{contender.name}, {label}", unit="student", dynamic_ncols=True, leave=False)
    said = contender.folder.with_name(f"{contender.folder.name}.said")
    where = ROOT if contender.name == "ours" else contender.folder
    with bar, said.open("wb") as stream:
        begin = time.perf_counter()
        process = subprocess.Popen(contender.command, cwd=where, env=environment(), stdout=stream, stderr=stream)
        family = own = 0.0
        while not _ended(process, MEMORY_TICK if memory else TICK):
            bar.update(contender.graded() - bar.n)
            if memory:
                resident = _resident(process.pid)
                family, own = max(family, sum(resident)), max([own, *resident[:1]])
        seconds = time.perf_counter() - begin
    if process.returncode not in ((0,) if contender.name == "ours" else (0, 1)):
        raise RuntimeError(
            f"{contender.command} ended with {process.returncode}: {said.read_text(errors='replace')[-2000:]}"
        )
    return Measured(seconds, family, own)


def _ended(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Wait so long, or until a process has ended; return whether it has."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _resident(pid: int) -> Sequence[float]:
    """Return the resident memory, in MB, of a process and of each of its descendants."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return []
    sizes = []
    for one in family:
        try:
            sizes.append(one.memory_info().rss / 1e6)
        except psutil.Error:  # it ended in between
            continue
    return sizes
