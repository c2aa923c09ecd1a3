"""A class that hands in an assignment: right answers in their variations, the made-up students, and known mistakes."""

import random
import re
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grading.course import Course
from grading.sample import CODE_BLOCK, SAMPLE_FOLDER, write_class

ANSWERS = Path(__file__).with_name("answers")
HEADING = re.compile(r"^## (\S+): (.+)$\n", re.MULTILINE)
SOLUTION = re.compile(r"^ *### (?:BEGIN|END) SOLUTION\n?", re.MULTILINE)
ENDLESS = "ivan"  # of the made-up students: his code never ends, and what is measured would be the limit of time
RIGHT = "right"

Answers = dict[str, list[str]]  # by the id of the cell


def hand_in(course: Course, assignment: str, template: Path, count: int) -> list[str]:
    """Write ``count`` submissions into a course, the same ones every time, and return the names of the students."""
    names = []
    if (SAMPLE_FOLDER / assignment).is_dir():
        names = [name for name in write_class(course, assignment) if name != ENDLESS][:count]
        for left_out in set(course.students()) - set(names):
            shutil.rmtree(course.submitted(left_out, assignment).parent)
    given, solved = nbformat.read(template, 4), _solved(course, assignment)
    right, wrong = _answers(assignment)
    for number in range(len(names), count):
        chance = random.Random(number)
        filled = solved | {cell: chance.choice([solved[cell], *others]) for cell, others in right.items()}
        if number % 5:  # every fifth is right
            cells = chance.sample(sorted(wrong), chance.randint(1, 3))
            filled |= {cell: chance.choice(wrong[cell]) for cell in cells}
        names.append(f"student-{number:04}")
        _write(course.submitted(names[-1], assignment) / template.name, given, filled)
    return names


def multiply(course: Course, assignment: str, names: list[str], count: int) -> None:
    """Have the same submissions handed in again and again, under other names, until there are ``count``."""
    for number in range(len(names), count):
        source = course.submitted(names[number % len(names)], assignment)
        shutil.copytree(source, course.submitted(f"again-{number:04}", assignment))


def _solved(course: Course, assignment: str) -> dict[str, str]:
    """Return the instructor's answers, as a student would have written them."""
    (name,) = course.notebooks(assignment)
    notebook = nbformat.read(course.root / "solutions" / assignment / name, 4)
    answers = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    return {cell.id: SOLUTION.sub("", cell.source) for cell in answers}


def _answers(assignment: str) -> tuple[Answers, Answers]:
    """Return the right and the wrong answers to the cells of an assignment."""
    right: Answers = {}
    wrong: Answers = {}
    _, *parts = HEADING.split((ANSWERS / f"{assignment}.md").read_text(encoding="utf-8"))
    for cell, what, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        code = CODE_BLOCK.search(text)
        assert code, f"no code under {cell}: {what}"
        (right if what.startswith(RIGHT) else wrong).setdefault(cell, []).append(code[1])
    return right, wrong


def _write(file: Path, given: NotebookNode, filled: dict[str, str]) -> None:
    unknown = filled.keys() - {cell.id for cell in given.cells}
    assert not unknown, f"there are no cells {', '.join(sorted(unknown))} in {file.name}"
    for cell in given.cells:
        cell.source = filled.get(cell.id, cell.source)
    file.parent.mkdir(parents=True)
    nbformat.write(given, file)
