"""Simulate a term from the first day to the last grade, and compare every mark with an independent computation.

`python benchmarks/term.py` makes up a class of 300 students, who hand in eight assignments through Canvas, Moodle and
nbgrader's exchange. Some join late or leave, hand in twice, are late, get extensions or ask for a regrade. An
instructor with five assistants does the rest with the commands of the book's page *The term*; one run is killed in the
middle and started again. `term_plan.py` draws what everybody does, `term_systems.py` plays the learning management
systems, and `term_marks.py` computes what the marks have to be.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from signal import SIGKILL

import term_marks
import term_systems
import timing
from term_marks import EXCHANGE, MOODLE, system_of
from term_plan import Homework, Plan, Work, draw_plan, read_homework
from tqdm import tqdm

from grading._nbgrader import Gradebook
from grading.course import Course

ROOT = Path(__file__).parents[1]
ASSISTANTS = ("mary", "john", "ana", "li", "omar")
SECOND = "0.1"  # the share of the written answers that two assistants mark
UPLOADED = 0.005  # points: Canvas has two decimals
Call = Callable[[Sequence[str]], str]


def shell(folder: Path) -> Call:
    """Return what runs a command on the class in a folder, as a shell would, and returns what it prints."""

    def call(arguments: Sequence[str]) -> str:
        done = subprocess.run(_command(arguments), cwd=ROOT, env=_environment(folder), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    return call


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "grading", *arguments]


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"ATTENTION_CLASS": str(folder), "OMP_NUM_THREADS": "1"}


class Term:
    """The instructor's side of a term. ``typed`` has the commands, and ``edited`` counts lines changed in files."""

    def __init__(self, plan: Plan, place: Path, call: Call | None = None, *, jobs: int = 2) -> None:
        self.plan, self.place, self.jobs = plan, place, str(jobs)
        self.course = Course.at(ROOT, place / "class")
        self._call = call or shell(self.course.folder)
        self.typed: list[str] = []
        self.edited = 0
        self.seconds: dict[str, float] = {}
        self.uploads: dict[tuple[str, str], float] = {}
        self.faults: list[str] = []

    def type(self, command: str, *arguments: object) -> str:
        """Type a command, and return what it prints."""
        self.typed.append(" ".join(map(str, (command, *arguments))))
        begin = time.perf_counter()
        said = self._call([command, *map(str, arguments)])
        self.seconds[command] = self.seconds.get(command, 0.0) + time.perf_counter() - begin
        return said

    def stages(self) -> Iterator[Callable[[], None]]:
        """Yield what happens in the term, one thing after another."""
        yield self.set_up
        for number, homework in enumerate(self.plan.homework):
            for stage in (self.collect, self.grade, self.mark, self.regrade, self.give_back):
                yield partial(stage, homework)
            if number + 1 == len(self.plan.homework) // 2:
                yield self.renew_class_list

    def set_up(self) -> None:
        """Set up the class, where students have late days and the best attempt counts, and make the students' file."""
        dates = [
            f"--due={one.name}={term_systems.due(i):%Y-%m-%d %H:%M} UTC" for i, one in enumerate(self.plan.homework)
        ]
        about = (
            "--name",
            "Attention",
            "--term",
            "Spring 2030",
            "--book",
            "https://example.org/book",
            "--penalty",
            float(term_marks.PENALTY),
        )
        self.type("new-course", self.course.folder, *about, *dates, "--roster", self._class_list(0))
        settings = self.course.folder / "course.toml"
        text = settings.read_text(encoding="utf-8").replace('attempts = "last"', 'attempts = "best"')
        text = text.replace("late_days = 0", f"late_days = {term_marks.LATE_DAYS}")
        settings.write_text(text, encoding="utf-8")
        self.edited += 2
        self.type("bundle")

    def _class_list(self, number: int) -> Path:
        file = self.place / f"class-list-{number}.csv"
        file.write_text(term_systems.class_list(self.plan, number), encoding="utf-8")
        return file

    def renew_class_list(self) -> None:
        """Import the class list in the middle of the term: some have joined, and some have left."""
        self.type("roster", self._class_list(len(self.plan.homework) // 2), "--complete")

    def collect(self, homework: Homework) -> None:
        """Grant the extensions, and collect a download from before the due date and one from the end."""
        granted = [(s, work.extension) for s, work in self.plan.handed_in(homework).items() if work.extension]
        for student, days in granted[:1]:
            why = ("--days", days, "--by", "E. Noether", "--why", "illness")
            self.type("deadlines", "--grant", student.id, "--assignment", homework.name, *why)
        rows = [(s.id, homework.name, "", days, "E. Noether", "illness", "2030-01-05") for s, days in granted[1:]]
        if rows:
            with (self.course.folder / "deadlines.csv").open("a", encoding="utf-8", newline="") as table:
                csv.writer(table).writerows(rows)
        self.edited += len(rows)
        released = ROOT / "exercises" / homework.name / homework.notebook
        for last in (False, True):
            download = term_systems.write_download(self.plan, homework, released, self.place, last=last)
            if zipfile.ZipFile(download).namelist():
                self.type("collect", homework.name, download)

    def grade(self, homework: Homework) -> None:
        """Grade; in the middle of the term, the run is killed and started again."""
        command = ("run", homework.name, "--jobs", self.jobs)
        if homework == self.plan.homework[len(self.plan.homework) // 2]:
            self.typed.append(" ".join(command))
            self._kill(command, len(self.plan.handed_in(homework)) // 2)
        self.type(*command)

    def _kill(self, command: Sequence[str], after: int) -> None:
        """Start a command and kill it once so many submissions are graded."""
        place, quiet = _environment(self.course.folder), subprocess.DEVNULL
        process = subprocess.Popen(_command(command), cwd=ROOT, env=place, stdout=quiet, stderr=quiet)
        outcomes = self.course.reports(command[1]) / "outcomes"
        while process.poll() is None and len(list(outcomes.glob("*.json"))) < after:
            time.sleep(0.02)
        process.send_signal(SIGKILL)
        process.wait()

    def mark(self, homework: Homework) -> None:
        """Divide the written answers among the assistants, who mark each as the student's text says.

        An answer has a line for each criterion of its rubric. The first criteria earn what there is to earn.
        """
        self.type("marking", homework.name, "--assistants", *ASSISTANTS, "--second", SECOND)
        files = sorted((self.course.reports(homework.name) / "marking").glob("*.csv"))
        for file in files:
            lines = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
            text, most, mark = map(lines[0].index, ("text", "points possible", "mark"))
            left = 0.0
            for line in lines[1:]:
                left = float(line[text].split("worth ")[1].split()[0]) if line[text] else left
                earned = min(left, float(line[most]))
                line[mark], left = f"{earned:g}", left - earned
            with file.open("w", encoding="utf-8", newline="") as stream:
                csv.writer(stream).writerows(lines)
        self.type("marking", homework.name, "--take", *files)

    def regrade(self, homework: Homework) -> None:
        """Log the requests, grade their submissions again, and decide."""
        asked = [(s, work) for s, work in self.plan.handed_in(homework).items() if work.disputed]
        graded = {task.cell: task for task in homework.tasks}
        for student, work in asked:
            question = graded[work.disputed].graded
            self.type("regrade", homework.name, "--request", student.id, "--question", question, "--why", "I think so")
        if asked:
            self.type("regrade", homework.name, "--rerun")
        for number, (_, work) in enumerate(asked, 1):
            self._decide(homework, number, work, graded[work.disputed].points)

    def _decide(self, homework: Homework, number: int, work: Work, most: int) -> None:
        points = ("--points", most) if work.granted else ()
        why = ("--by", "E. Noether", "--why", "after reading it again")
        self.type("regrade", homework.name, "--decide", number, *points, *why)

    def give_back(self, homework: Homework) -> None:
        """Pack the feedback, export the grades to where they came from, and verify the log."""
        self.type("return", homework.name)
        system, name = system_of(self.plan, homework), homework.name
        if system == EXCHANGE:
            self.type("export", name)
        else:
            export = self.place / f"{name}-{system}.csv"
            export.write_text(term_systems.gradebook(self.plan, homework), encoding="utf-8")
            self.type("export", name, f"--{system}", export)
            text = (self.course.reports(name) / f"{system}.csv").read_text(encoding="utf-8")
            self.uploads |= term_systems.uploaded(self.plan, homework, text)
            self._check_feedback(homework, system)
        self.type("verify", name)

    def _check_feedback(self, homework: Homework, system: str) -> None:
        """Check that the zip with feedback has a file for each download, where the system looks for it."""
        packed = zipfile.ZipFile(self.course.reports(homework.name) / "returned" / f"{system}.zip").namelist()
        places = {name.rpartition("/")[0] if system == MOODLE else name for name in packed}
        known: set[str] = set()
        for file in self.place.glob(f"{homework.name}-{system}-*.zip"):
            known |= {one.rpartition("/")[0] if system == MOODLE else one for one in zipfile.ZipFile(file).namelist()}
        if not places <= known or len(packed) != len(self.plan.handed_in(homework)):
            self.faults.append(
                f"{homework.name}: {len(packed)} files for {len(self.plan.handed_in(homework))} students"
            )

    def marks(self) -> dict[tuple[str, str], float]:
        """Return the marks in nbgrader's gradebook of all who handed in something."""
        found = {}
        with Gradebook(f"sqlite:///{self.course.folder / 'gradebook.db'}", "attention") as gradebook:
            for homework in self.plan.homework:
                for one in gradebook.assignment_submissions(homework.name):
                    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in one.notebooks)
                    found[one.student_id, homework.name] = one.score - penalty
        return found

    def differences(self) -> list[str]:
        """Return a line for each mark that is not what it has to be, in the gradebook and in what was uploaded."""
        expected = term_marks.expected_marks(self.plan)
        systems = {one.name: system_of(self.plan, one) for one in self.plan.homework}
        to_upload = {key: mark for key, mark in expected.items() if systems[key[1]] != EXCHANGE}
        lines = term_marks.differences(expected, self.marks(), 1e-6)
        return [*lines, *term_marks.differences(to_upload, self.uploads, UPLOADED), *self.faults]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--assignments", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0, help="of what the students do")
    asked = parser.parse_args()
    names = Course.at(ROOT).assignments()[: asked.assignments]
    plan = draw_plan([read_homework(ROOT / "solutions", name) for name in names], asked.students, asked.seed)
    with tempfile.TemporaryDirectory(prefix="term-") as place:
        term, begin = Term(plan, Path(place), jobs=asked.jobs), time.perf_counter()
        stages = list(term.stages())
        for stage in tqdm(stages, desc=f"{asked.students} students", unit="stage", dynamic_ncols=True):
            stage()
        _report(term, time.perf_counter() - begin)


def _report(term: Term, seconds: float) -> None:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    attempts = sum(len(work.attempts) for work in term.plan.work.values())
    print(f"{timing.machine()}\n")
    print(f"{len(term.plan.students)} students, {len(term.plan.homework)} assignments, {attempts} attempts")
    processor = (spent.ru_utime + spent.ru_stime) / 60  # without what is killed in a box
    print(f"minutes: {seconds / 60:.1f} on the clock, at least {processor:.1f} of processor time")
    print(f"typed: {len(term.typed)} commands, {term.edited} lines in files")
    for command, took in sorted(term.seconds.items(), key=lambda one: -one[1]):
        count = sum(line.split()[0] == command for line in term.typed)
        print(f"  {command:13} {count:4} times {took / 60:7.1f} minutes")
    wrong = term.differences()
    print("\n".join([f"marks compared: {len(term.plan.work)} in the gradebook, {len(term.uploads)} uploaded",
                     f"differences: {len(wrong)}", *wrong]))  # fmt: skip
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
