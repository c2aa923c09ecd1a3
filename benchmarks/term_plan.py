"""What the made-up students of a simulated term do, drawn once; nothing here knows how it is graded.

A task is a cell in which students write, and is named after it. A task is done right, answered wrongly (with a function
that returns nothing, or with another option) or left as it was handed out. A student who misses a task also
leaves every task whose code uses it, so what an attempt earns follows from the list of tasks.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import nbformat
from classroom import SOLUTION

LETTERS = "ABCD"


@dataclass(frozen=True)
class Task:
    """A cell to fill in, with its code in the solution.

    Attributes:
        cell: the cell's id.
        source: the right answer.
        name: what the graded cell takes from it.
        graded: the id of the graded cell.
        points: what it is worth.
        is_choice: whether it is a multiple-choice question.
        uses: the cells that define what its code uses.
    """

    cell: str
    source: str
    name: str
    graded: str
    points: int
    is_choice: bool
    uses: frozenset[str]


@dataclass(frozen=True)
class Homework:
    """An assignment: its tasks, the cell with the written answer, and the graded cell and points of that answer."""

    name: str
    notebook: str
    tasks: tuple[Task, ...]
    written: str
    most: int


@dataclass(frozen=True)
class Attempt:
    """Which tasks are left undone or answered wrongly, and how many days after the due date it is handed in."""

    undone: frozenset[str]
    wrong: frozenset[str]
    days: int


@dataclass(frozen=True)
class Work:
    """What one student does in one assignment, and what people decide about it.

    Attributes:
        attempts: what is handed in, in order of time.
        written: the points that an assistant gives to the written answer.
        extension: the days that are granted.
        disputed: the task about which the student asks for a regrade, or "".
        granted: whether that task then earns all its points.
    """

    attempts: tuple[Attempt, ...]
    written: int
    extension: int = 0
    disputed: str = ""
    granted: bool = False


@dataclass(frozen=True)
class Student:
    """Who it is, and the numbers of the first and of the last assignment while the student is in the class."""

    id: str
    number: int
    first_name: str
    last_name: str
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def email(self) -> str:
        return f"{self.id}@example.org"


@dataclass(frozen=True)
class Plan:
    """The whole term. ``work`` has an entry for each student and assignment for which something is handed in."""

    homework: tuple[Homework, ...]
    students: tuple[Student, ...]
    work: Mapping[tuple[str, str], Work]

    def handed_in(self, homework: Homework) -> dict[Student, Work]:
        """Return who handed in something, and what."""
        return {one: self.work[one.id, homework.name] for one in self.students if (one.id, homework.name) in self.work}


def read_homework(solutions: Path, name: str) -> Homework:
    """Read the tasks of an assignment from the notebook with the solutions."""
    (file,) = (solutions / name).glob("*.ipynb")
    cells = nbformat.read(file, 4).cells
    written = next(cell for cell in cells if cell.cell_type == "markdown" and _nbgrader(cell, "grade"))
    graded = [cell for cell in cells if cell.cell_type == "code" and _nbgrader(cell, "grade")]
    answers = [cell for cell in cells if cell.cell_type == "code" and _nbgrader(cell, "solution")]
    defined = {cell.id: _names(cell.source, ast.Store) for cell in answers}
    tasks = []
    for cell in answers:
        for check in graded:
            for target in _names(check.source, ast.Load) & defined[cell.id]:
                read, points = _names(cell.source, ast.Load), int(check.metadata.nbgrader["points"])
                uses = frozenset(other for other, names in defined.items() if names & read and other != cell.id)
                choice = check.source.startswith("check_choice")
                tasks.append(Task(cell.id, SOLUTION.sub("", cell.source), target, check.id, points, choice, uses))
    return Homework(name, file.name, tuple(tasks), written.id, int(written.metadata.nbgrader["points"]))


def _nbgrader(cell: nbformat.NotebookNode, key: str) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get(key))


def _names(source: str, context: type[ast.expr_context]) -> set[str]:
    """Return the names that code reads (``ast.Load``) or, at the top level, defines (``ast.Store``)."""
    tree = ast.parse(source)
    if context is ast.Load:
        return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return functions | {target.id for target in targets if isinstance(target, ast.Name)}


def draw_plan(homework: Sequence[Homework], count: int, seed: int) -> Plan:
    """Draw a class and its term. About a tenth joins in the middle, and one in fifty leaves then."""
    chance, middle, end = Random(seed), len(homework) // 2, len(homework) - 1
    students = []
    for i in range(count):
        first = middle if i % 10 == 3 else 0
        last = middle - 1 if i % 50 == 4 else end
        students.append(Student(f"s{i:04}", 70_000 + i, f"Student{i}", f"Number{count - i}", first, last))
    work = {}
    for student in students:
        skill = chance.uniform(0.5, 1)
        for number, one in enumerate(homework):
            if student.first <= number <= student.last and chance.random() < 0.95:
                work[student.id, one.name] = _draw_work(one, skill, chance)
    return Plan(tuple(homework), tuple(students), work)


def _draw_work(homework: Homework, skill: float, chance: Random) -> Work:
    days = chance.choices(range(-1, 5), (10, 60, 12, 8, 5, 5))[0]
    attempts = [_draw_attempt(homework, skill, days, chance)]
    if chance.random() < 0.3:
        attempts.insert(0, _draw_attempt(homework, skill * 0.8, min(days, 0), chance))
    failed = frozenset.intersection(*(one.undone | one.wrong for one in attempts))
    disputed = chance.choice(sorted(failed)) if failed and chance.random() < 0.03 else ""
    extension = chance.choice((1, 2, 3)) if chance.random() < 0.08 else 0
    return Work(tuple(attempts), chance.randint(0, homework.most), extension, disputed, chance.random() < 0.5)


def _draw_attempt(homework: Homework, skill: float, days: int, chance: Random) -> Attempt:
    undone, wrong = set[str](), set[str]()
    for task in homework.tasks:  # a task comes after those that it uses
        if task.uses & (undone | wrong):
            undone.add(task.cell)
        elif chance.random() > skill:
            (wrong if task.is_choice or chance.random() < 0.5 else undone).add(task.cell)
    return Attempt(frozenset(undone), frozenset(wrong), days)


def filled_in(homework: Homework, work: Work, attempt: Attempt) -> dict[str, str]:
    """Return what a student writes into the cells; the others stay as they were handed out."""
    cells = {task.cell: task.source for task in homework.tasks if task.cell not in attempt.undone}
    cells |= {task.cell: _wrong(task) for task in homework.tasks if task.cell in attempt.wrong}
    return cells | {homework.written: f"An answer that is worth {work.written} of {homework.most} points."}


def _wrong(task: Task) -> str:
    if not task.is_choice:
        return f"{task.name} = lambda *inputs, **options: None"
    right = LETTERS.index(ast.literal_eval(ast.parse(task.source).body[-1].value))
    return f'{task.name} = "{LETTERS[right - 1]}"'
