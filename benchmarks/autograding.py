"""Grading side by side: our engine against stock `nbgrader autograde`, on the same classes, on this machine.

One command, `python benchmarks/autograding.py`, measures everything and prints it; `--only` measures a part, and
`--write` puts the tables into benchmarks/README.md. A class of NumPy and a class of torch submissions are graded by
both contenders in turn, one thread each; where the milliseconds go, what many submissions take, and what a killed run
leaves, follow.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median

import classroom
import contenders
import crash_resume
import timing
from contenders import Contender, Measured
from tqdm import tqdm

from grading.course import Course
from grading.graded_cell import is_autograded
from grading.outcome import Outcome
from grading.release import notebook_templates
from grading.repair.messages import RefusedError
from grading.repair.notebook import repair_notebook

NUMPY, TORCH = "02-self-attention", "04-multi-head"
README = Path(__file__).with_name("README.md")
MOST_RATIO = 1.2  # of the memory, and of the time a submission, of ten times as many submissions
NUMBER = re.compile(r"[\d.]*")
CLOSE = 1e-9  # between two scores that agree
MAIN_AND_BOX = ("main process", "box")  # the tables that stand side by side


@dataclass(frozen=True)
class Asked:
    """How much is to be measured, and in which folder."""

    folder: Path
    submissions: int
    repeats: int
    many: int
    killed: int
    kills: int


def side_by_side(asked: Asked) -> str:
    """Grade both classes by both contenders in turn; return the times, and whether the marks agree."""
    lines = [("assignment", "contender", "seconds", "ms per submission", "times ours")]
    remarks = []
    for assignment in (NUMPY, TORCH):
        pair = _class_of_both(asked, assignment)
        rivals = {"ours": pair[0], "ours, with pages": _with_pages(pair[0]), "nbgrader": pair[1]}
        times: dict[str, list[float]] = {name: [] for name in rivals}
        for turn in range(asked.repeats):
            for name in list(rivals)[:: 1 if turn % 2 else -1]:
                rivals[name].reset()
                label = f"{assignment}, {name}, {turn + 1} of {asked.repeats}"
                times[name].append(contenders.run(rivals[name], asked.submissions, label).seconds)
        remarks += _marks(*pair)  # ours with pages graded the same folder, and shows the same marks
        for name, kept in times.items():
            seconds = median(kept)
            each, ratio = 1000 * seconds / asked.submissions, seconds / median(times["ours"])
            lines.append((assignment, name, f"{seconds:.1f}", f"{each:.0f}", f"{ratio:.1f}"))
    return "\n".join([_table(lines), "", *remarks])


def _with_pages(contender: Contender) -> Contender:
    return replace(contender, command=tuple(word for word in contender.command if word != "--no-feedback"))


def _class_of_both(asked: Asked, assignment: str) -> tuple[Contender, Contender]:
    """Make the same class twice, known to both gradebooks, and nothing graded."""
    mine = _class_of_ours(asked, assignment, asked.submissions)
    theirs = contenders.stock(asked.folder / f"stock-{assignment}", assignment)
    contenders.register_stock(theirs)
    shutil.copytree(mine.folder / "submitted", theirs.folder / "submitted")
    theirs.keep()
    return mine, theirs


def _class_of_ours(asked: Asked, assignment: str, count: int, *options: str) -> Contender:
    mine = contenders.ours(asked.folder / f"ours-{assignment}-{count}", assignment, "--no-feedback", *options)
    course = Course.at(contenders.ROOT, mine.folder)
    seconds = contenders.register_ours(mine)
    (template,) = (mine.folder / "release" / assignment).glob("*.ipynb")
    names = classroom.hand_in(course, assignment, template, min(count, asked.submissions))
    classroom.multiply(course, assignment, names, count)
    (mine.folder / "registered.seconds").write_text(str(seconds))
    mine.keep()
    return mine


def _marks(mine: Contender, theirs: Contender) -> list[str]:
    """Say on how many scores the contenders agree, and list those on which they differ, with what each showed there."""
    ours, stocks = mine.marks(), theirs.marks()
    pairs = [(student, cell) for student, scores in ours.items() for cell in scores]
    apart = [pair for pair in pairs if not _agree(ours[pair[0]][pair[1]], stocks.get(pair[0], {}).get(pair[1]))]
    lines = [f"{mine.assignment}: {len(pairs) - len(apart)} of {len(pairs)} scores of {len(ours)} students agree."]
    for student in dict.fromkeys(student for student, _ in apart):
        outcome = Outcome.from_json(next(mine.folder.glob(mine.done.replace("*", student))).read_bytes())
        cells = [cell for name, cell in apart if name == student]
        if not (theirs.folder / "autograded" / student).exists():
            lines.append(f"  {student}: nbgrader could not grade this; ours: {outcome.verdict}, {outcome.reason[:70]}")
            continue
        for cell in cells:
            scores = f"ours {ours[student][cell]}, nbgrader {stocks[student].get(cell)}"
            shown = f"ours shows {mine.output(student, cell)!r}, nbgrader {theirs.output(student, cell)!r}"
            lines.append(f"  {student}, {cell}: {scores} ({outcome.verdict}; {shown})")
    return lines


def _agree(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < CLOSE


def where_time_goes(asked: Asked) -> str:
    """Return what a submission's milliseconds are spent on, the parts that run once, and the baseline."""
    parts = []
    for assignment in tqdm((NUMPY, TORCH), desc="where the time goes", unit="class", dynamic_ncols=True):
        mine = _class_of_ours(asked, assignment, asked.submissions)
        mine.reset()
        text, whole = _told("profile_grading.py", "", assignment, str(mine.folder))
        profile = json.loads(text)
        baseline = {what: float(_told("baseline.py", json.dumps(cells))[0]) for what, cells in _cells(mine).items()}
        once = {"starting Python and importing modules": whole - profile["seconds"], **profile["once"]}
        once["registering the assignment in a new class"] = float((mine.folder / "registered.seconds").read_text())
        lines = [(f"{assignment}: ms per submission, one box", "main process", "box")]
        tables = [{what: 1000 * s / asked.submissions for what, s in profile[name].items()} for name in MAIN_AND_BOX]
        for what in sorted({*tables[0], *tables[1]}, key=lambda what: -max(table.get(what, 0) for table in tables)):
            lines.append((what, *(f"{table[what]:.1f}" if what in table else "" for table in tables)))
        lines.append(("total", *(f"{sum(table.values()):.1f}" for table in tables)))
        lines += [(f"baseline: {what} in a bare fork", "", f"{1000 * s:.1f}") for what, s in baseline.items()]
        seconds = [("once per run", "seconds"), *((what, f"{s:.2f}") for what, s in sorted(once.items(), key=_second))]
        parts += [_table(lines), _table(seconds)]
    return "\n\n".join(parts)


def _second(pair: tuple[str, float]) -> float:
    return -pair[1]


def _told(program: str, given: str, *arguments: str) -> tuple[str, float]:
    """Return what a process that measures itself prints, and the seconds that it took as a whole."""
    command = [sys.executable, str(Path(__file__).with_name(program)), *arguments]
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=contenders.environment(), input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, time.perf_counter() - begin


def _cells(contender: Contender) -> dict[str, list[list[str]]]:
    """Return the cells of each submission that can be read: those that nobody grades, and all of them."""
    course = Course.at(contenders.ROOT, contender.folder)
    (template,) = notebook_templates(course, contender.assignment)
    found: dict[str, list[list[str]]] = {"cells": [], "cells and checks": []}
    for student in course.students():
        try:
            came = repair_notebook(
                course.submitted(student, contender.assignment), f"{template.name}.ipynb", template.released
            )
        except RefusedError:
            continue
        code = [cell for cell in came.notebook.cells if cell.cell_type == "code"]
        found["cells"].append([cell.source for cell in code if not is_autograded(cell)])
        found["cells and checks"].append([cell.source for cell in code])
    return found


def many(asked: Asked) -> str:
    """Return what a class of ten times as many takes: time and memory, and how many times those of the smaller one."""
    counts = (max(1, asked.many // 10), asked.many)
    found: list[Measured] = []
    for count in counts:
        mine = _class_of_ours(asked, NUMPY, count)
        found.append(contenders.run(mine, count, f"{count} submissions", memory=True))
        assert mine.graded() == count, f"{mine.graded()} of {count} are graded"
        shutil.rmtree(mine.folder)
    lines = [("submissions", "seconds", "ms per submission", "MB, all processes", "MB, main process")]
    values = [(m.seconds, 1000 * m.seconds / n, m.family, m.own) for n, m in zip(counts, found, strict=True)]
    lines += [(str(n), *(f"{x:.1f}" for x in row)) for n, row in zip(counts, values, strict=True)]
    ratios = [large / small for small, large in zip(*values, strict=True)]
    lines.append(("ratio", *(f"{ratio:.2f}" for ratio in ratios)))
    kept = all(ratio <= MOST_RATIO for ratio in ratios[1:])
    return f"{_table(lines)}\n\nAll ratios but the first {'are' if kept else 'SHOULD BE'} at most {MOST_RATIO}."


def kills(asked: Asked) -> str:
    """Return how a run that was killed and resumed differs from one that nobody disturbed."""
    mine = _class_of_ours(asked, NUMPY, asked.killed)
    seconds, found = crash_resume.kill(mine, asked.killed, asked.kills)
    lines = [("killed after s", "graded by then", "processes left behind", "what differs in the end")]
    for one in sorted(found, key=lambda one: one.seconds):
        differs = ", ".join(one.differences) or "nothing"
        lines.append((f"{one.seconds:.2f}", str(one.graded), str(one.left_behind), differs))
    same = sum(not one.differences for one in found)
    runs = f"{same} of {len(found)} runs of {asked.killed} submissions, killed (SIGKILL) and resumed"
    summary = f"{runs}, left the same gradebook and verdicts. Undisturbed, a run took {seconds:.1f} s."
    return f"{_table(lines)}\n\n{summary}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    """Return lines as text in columns, words to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    words = [not NUMBER.fullmatch("".join(column[1:])) for column in zip(*lines, strict=True)]
    rows = []
    for line in lines:
        cells = zip(line, widths, words, strict=True)
        rows.append("  ".join(text.ljust(w) if left else text.rjust(w) for text, w, left in cells).rstrip())
    return "\n".join([rows[0], "-" * max(map(len, rows)), *rows[1:]])


def write(part: str, text: str) -> None:
    """Put a table into the README, between its two markers."""
    begin, end = (f"<!-- {word} of autograding: {part} -->\n" for word in ("begin", "end"))
    before, found, rest = README.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise RuntimeError(
            f"{README} has no pair of lines {begin.strip()} and {end.strip()}: put them where the table belongs"
        )
    README.write_text(f"{before}{begin}\n```\n{text}\n```\n\n{end}{after}", encoding="utf-8")


PARTS: dict[str, Callable[[Asked], str]] = {
    "stock": side_by_side,
    "profile": where_time_goes,
    "large": many,
    "kill": kills,
}

SIZED = ("stock", "profile")  # the parts whose classes have the size that --submissions gives


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="measure only this part (can be repeated)")
    parser.add_argument("--submissions", type=int, default=40, help="submissions in each class (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="run each contender only once")
    parser.add_argument("--many", type=int, default=1000, help="submissions in the large class (default: %(default)s)")
    parser.add_argument("--killed", type=int, default=20, help="submissions in each killed run (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=30, help="number of runs that are killed (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="autograding-") as folder:
        repeats = 1 if given.quick else given.repeats
        for part in given.only or PARTS:
            place = Path(folder) / part
            place.mkdir()
            asked = Asked(place, given.submissions, repeats, given.many, given.killed, given.kills)
            size = f", {given.submissions} submissions per class" if part in SIZED else ""
            head = f"{date.today()}, {timing.machine()}; one thread each{size}"
            text = f"{head}\n\n{PARTS[part](asked)}"
            print(f"\n{text}", flush=True)
            if given.write:
                write(part, text)


if __name__ == "__main__":
    main()
