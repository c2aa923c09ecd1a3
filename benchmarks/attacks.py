"""The attacks of tests/grading/attacks on stock nbgrader and on this grader: `python benchmarks/attacks.py`.

Stock nbgrader gets the same notebooks and its default settings; the graded cells call the course's checks in the
student's kernel. Since nothing protects the machine there, only harmless attacks are tried. All files are written to a
temporary folder. A full run takes ten minutes. `--only 'forge-*'` tries some of the attacks, and `--write` keeps the
table in attacks.md.
"""

import argparse
import html
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import timing
from tqdm import tqdm

REPOSITORY = Path(__file__).parents[1]
TESTS = REPOSITORY / "tests" / "grading"
sys.path[:0] = [str(REPOSITORY), str(TESTS)]

from attacks.case import Case  # noqa: E402
from attacks.course import NAME, POINTS, hand_in, repository  # noqa: E402
from attacks.table import FAMILIES  # noqa: E402
from nbgrader.api import Gradebook, MissingEntry  # noqa: E402

from grading.course import Course  # noqa: E402

RUN_TIMEOUT = 60.0  # seconds until a run on one submission counts as hung
FULL = float(sum(POINTS.values()))
NOT_TRIED = "not tried"
KEPT = REPOSITORY / "benchmarks" / "attacks.md"
HEAD = """# Attacks

`python benchmarks/attacks.py --write` made this table on {date} ({machine}).

Each attack starts from an honest submission, right or wrong, to a small assignment worth {full:g} points. It
changes this submission to earn more, or to harm the grader. The number in parentheses is what the attack earned:

- **FORGED**: it earned more than the honest submission that it was made from.
- **survived**: it did not.
- **run stopped**: `nbgrader autograde` ended with an error and gave no mark.
- **not tried**: on stock nbgrader, it could harm the machine, does not hand in a notebook, or uses a part of this
  grader that nbgrader does not have.
"""
STOCK = """c = get_config()
c.CourseDirectory.root = {folder!r}
c.CourseDirectory.source_directory = {source!r}
c.CourseDirectory.course_id = "stock"
"""


@dataclass(frozen=True)
class Came:
    """What came of one submission: points, or in words why there are none."""

    score: float | None
    why: str = ""

    def beside(self, honest: float) -> str:
        """Return it in words, beside what an honest submission earns."""
        if self.score is None:
            return self.why
        if self.score > honest:
            return f"FORGED {self.score:g} of {FULL:g}" if self.score < FULL else f"FORGED full marks ({FULL:g})"
        return f"survived ({self.score:g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of attacks (default: all)")
    parser.add_argument("--write", action="store_true", help="keep the table in benchmarks/attacks.md")
    given = parser.parse_args()
    families = {
        family: [case for case in cases if fnmatchcase(case.name, given.only)] for family, cases in FAMILIES.items()
    }
    with TemporaryDirectory(prefix="attacks-") as folder:
        ours = by_ours(Path(folder) / "ours", [case for cases in families.values() for case in cases])
        stock = by_stock(
            Path(folder) / "stock", [case for cases in families.values() for case in cases if case.harmless]
        )
    text = "\n".join(table(families, ours, stock))
    print(f"\n{text}")
    if given.write:
        head = HEAD.format(date=date.today(), machine=timing.machine(), full=FULL)
        KEPT.write_text(f"{head}\n{text}\n", encoding="utf-8")


def honest() -> list[Case]:
    """Return the honest submissions: each attack is one of them, changed."""
    return [Case("right", "answers everything right", base="right"), Case("wrong", "answers wrong", base="wrong")]


def by_ours(place: Path, cases: Sequence[Case]) -> dict[str, Came]:
    """Grade all of them as one class, in boxes."""
    course = Course.at(repository(place / "repository", "mark"), place / "class")
    for case in [*cases, *honest()]:
        hand_in(course, case)
    line = [sys.executable, "-m", "attacks.drive", str(course.root), str(course.folder)]
    path = os.pathsep.join([str(REPOSITORY), str(TESTS)])
    done = subprocess.run(line, env=os.environ | {"PYTHONPATH": path}, check=False)
    if done.returncode:
        return {case.name: Came(None, "run stopped") for case in [*cases, *honest()]}
    return dict(_scores(f"sqlite:///{course.folder / 'gradebook.db'}", "attention", [*cases, *honest()]))


def _scores(url: str, name: str, cases: Sequence[Case]) -> Iterator[tuple[str, Came]]:
    with Gradebook(url, name) as gradebook:
        for case in cases:
            try:
                yield case.name, Came(float(gradebook.find_submission(NAME, case.name).score))
            except MissingEntry:
                yield case.name, Came(None, "not graded")


def by_stock(place: Path, cases: Sequence[Case]) -> dict[str, Came]:
    """Have nbgrader autograde one submission after the other, with nothing configured but the folders."""
    course = Course(repository(place / "repository", "mark"), place)
    for case in [*cases, *honest()]:
        hand_in(course, case)
    settings = STOCK.format(folder=str(place), source=str(course.root / "solutions"))
    (place / "nbgrader_config.py").write_text(settings)
    _nbgrader(place, "generate_assignment", NAME, "--create")
    came = {}
    for case in tqdm([*cases, *honest()], desc="stock nbgrader", unit="student"):
        came[case.name] = _autograded(place, case)
    return came


def _autograded(place: Path, case: Case) -> Came:
    code = _nbgrader(place, "autograde", NAME, "--student", case.name)
    if code is None:
        return Came(None, f"hung (killed after {RUN_TIMEOUT:g} s)")
    if code:
        return Came(None, "run stopped")
    ((_, came),) = _scores(f"sqlite:///{place / 'gradebook.db'}", "stock", [case])
    return came


def _nbgrader(place: Path, *arguments: str) -> int | None:
    """Run one of nbgrader's commands; return how it ended, or None where it did not and was killed."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    known = os.environ | {"PATH": beside, "HOME": str(place), "PYTHONPATH": str(REPOSITORY)}
    line = [sys.executable, "-m", "nbgrader", *arguments]
    with (place / "log.txt").open("a") as log:
        process = subprocess.Popen(line, cwd=place, env=known, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            return process.wait(RUN_TIMEOUT)
        except subprocess.TimeoutExpired:
            family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
            for one in family:
                one.kill()
            process.wait()
            return None


def table(families: dict[str, list[Case]], ours: dict[str, Came], stock: dict[str, Came]) -> Iterator[str]:
    """Yield the rows of a table, and below it how many attacks came to what."""
    yield "| attack | what it does | stock nbgrader | this grader |\n|---|---|---|---|"
    forged, tried = {"stock nbgrader": 0, "this grader": 0}, 0
    for cases in families.values():
        for case in cases:
            words = []
            for name, came in (("stock nbgrader", stock), ("this grader", ours)):
                best = came[case.base].score or 0.0
                word = came[case.name].beside(best) if case.name in came else NOT_TRIED
                forged[name] += word.startswith("FORGED")
                words.append(word)
            tried += case.harmless
            yield f"| {html.escape(case.name, quote=False)} | {case.does} | {' | '.join(words)} |"
    yield f"\nForged on stock nbgrader: {forged['stock nbgrader']} of {tried} tried."
    yield f"Forged on this grader: {forged['this grader']} of {sum(map(len, families.values()))}."


if __name__ == "__main__":
    main()
