"""Submissions to write into a gradebook, nbgrader's own way to write them, and all that a gradebook holds."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Base, Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import BasePlugin
from nbgrader.utils import compute_checksum
from sqlalchemy import Connection, UniqueConstraint, create_engine, event, select
from tiny import REPOSITORY, TinyCourse

from attnlib.checks.report import MIME_TYPE
from grading.course import Course, environment
from grading.gradebook import migrate
from grading.gradebook.assignment import AssignmentGradebook
from grading.release import register

LOG = logging.getLogger("test-gradebook")
DUE = datetime(2030, 5, 1, 12)
LATE = DUE + timedelta(hours=1)
ASSIGNMENT = "rich"

Notebooks = dict[str, NotebookNode]


class Lateness(BasePlugin):
    """A plugin such as a course can have: what it asks for is at times more than there is, or less than nothing."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        asked = {"more-than-earned": score + 5, "less-than-nothing": -1.0, "no-penalty": None}
        return asked.get(student_id, total_seconds_late / 3600)


# A course with every kind of cell that nbgrader knows ----------------------------------------------------------------


def rich_course(root: Path, folder: Path) -> TinyCourse:
    config = (REPOSITORY / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text(config + '\nc.AssignLatePenalties.plugin_class = "gradebooks.Lateness"\n')
    (root / "solutions" / ASSIGNMENT).mkdir(parents=True)
    for name, cells in {"first": [*_coded("one"), *_coded("two"), *_read()], "second": _coded("three")}.items():
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(notebook, root / "solutions" / ASSIGNMENT / f"{name}.ipynb")
    return TinyCourse.at(root, folder)


def _coded(name: str) -> list[NotebookNode]:
    source = f"def {name}():\n    ### BEGIN SOLUTION\n    return 2.0\n    ### END SOLUTION"
    answer = new_code_cell(source, id=f"answer-{name}", metadata=_meta(f"answer-{name}", solution=True))
    check = _meta(f"check-{name}", grade=True, locked=True, points=2)
    return [answer, new_code_cell(f"{name}()", id=f"check-{name}", metadata=check)]


def _read() -> list[NotebookNode]:
    essay = new_markdown_cell("Why?", id="essay", metadata=_meta("essay", grade=True, solution=True, points=3))
    return [essay, new_markdown_cell("Do it.", id="task", metadata=_meta("task", task=True, points=4))]


def _meta(name: str, **what: object) -> dict[str, object]:
    meta = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3} | what
    return {"nbgrader": meta | {"grade_id": name}}


def released(course: Course, assignment: str) -> Notebooks:
    files = (course.folder / "release" / assignment).glob("*.ipynb")
    return {file.stem: nbformat.read(file, as_version=4) for file in files}


def handed_in(released: Notebooks, share: float | None, answered: bool = True) -> Notebooks:
    """Return executed and judged notebooks in which every check earned that share of its points; None is an error."""
    notebooks = deepcopy(released)
    for cell in (cell for notebook in notebooks.values() for cell in notebook.cells):
        if answered and cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = "x = 1"
        if cell.metadata.get("nbgrader", {}).get("task"):
            cell.metadata.nbgrader["checksum"] = compute_checksum(cell)  # untouched, as it should be
        if is_check(cell):
            cell.outputs = [new_output("display_data", {MIME_TYPE: {"passed": share == 1}, "text/plain": "a report"})]
            cell.outputs.append(_result(cell, share))
    return notebooks


def is_check(cell: NotebookNode) -> bool:
    meta = cell.metadata.get("nbgrader", {})
    return meta.get("grade") and not meta.get("solution")


def _result(cell: NotebookNode, share: float | None) -> NotebookNode:
    if share is None:
        return new_output("error", ename="CheckFailed", evalue="wrong", traceback=["wrong"])
    points = float(cell.metadata.nbgrader["points"])
    return new_output("execute_result", {"text/plain": str(share * points)}, execution_count=1)


# What happens to one submission, in the order of time ----------------------------------------------------------------


@dataclass(frozen=True)
class Graded:
    share: float | None
    when: datetime | None = None
    answered: bool = True
    without: str = ""


Marked = Callable[[Gradebook, str], None]  # what a person does


def marked(gradebook: Gradebook, student: str) -> None:
    check = gradebook.find_grade("check-one", "first", ASSIGNMENT, student)
    check.manual_score, check.needs_manual_grade, check.extra_credit = 0.25, False, 1.5
    essay = gradebook.find_grade("essay", "first", ASSIGNMENT, student)
    essay.manual_score, essay.needs_manual_grade = 2.0, False
    gradebook.find_comment("answer-two", "first", ASSIGNMENT, student).manual_comment = "Well thought."
    gradebook.find_submission_notebook("second", ASSIGNMENT, student).flagged = True
    gradebook.find_grade("check-three", "second", ASSIGNMENT, student).extra_credit = 0.5


def extended(gradebook: Gradebook, student: str) -> None:
    gradebook.find_submission(ASSIGNMENT, student).extension = timedelta(minutes=45)


STORIES: dict[str, list[Graded | Marked]] = {
    "right": [Graded(1)],
    "half-right": [Graded(0.5, DUE)],
    "unanswered": [Graded(None, answered=False)],
    "answered-later": [Graded(None, answered=False), Graded(1)],
    "late": [Graded(1, LATE)],
    "late-elsewhere": [Graded(1, LATE.replace(tzinfo=timezone(timedelta(hours=-7))))],
    "more-than-earned": [Graded(0.5, LATE)],
    "less-than-nothing": [Graded(1, LATE)],
    "no-penalty": [Graded(1, LATE)],
    "late-then-extended": [Graded(1, LATE), extended, Graded(1)],
    "late-then-in-time": [Graded(1, LATE), Graded(0.5, DUE)],
    "marked-then-better": [Graded(0.5), marked, Graded(1, LATE)],
    "marked-then-unanswered": [Graded(0.5), marked, Graded(None, answered=False)],
    "without-a-notebook": [Graded(1, LATE, without="second")],
    "notebook-comes-later": [Graded(1, without="second"), Graded(1)],
    "notebook-goes": [Graded(1), Graded(0.5, without="first")],
}


def tell(student: str, story: list[Graded | Marked], way: "Way") -> None:
    for step in story:
        if isinstance(step, Graded):
            notebooks = handed_in(released(way.course, ASSIGNMENT), step.share, step.answered)
            notebooks.pop(step.without, None)
            way.grade(student, notebooks, step.when)
        else:
            with Gradebook(way.url) as gradebook:
                step(gradebook, student)
                gradebook.db.commit()


# The two ways to write it down ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A gradebook, at ``url``, and how it is written."""

    course: Course
    assignment: str
    url: str

    def register(self) -> None:
        with environment("ATTENTION_DB", self.url):
            register(self.course, self.assignment, LOG)
        with Gradebook(self.url, "attention") as gradebook:
            gradebook.update_or_create_assignment(self.assignment, duedate=str(DUE))

    def grade(self, student: str, notebooks: Notebooks, when: datetime | None) -> None:
        raise NotImplementedError


def both(course: Course, assignment: str, folder: Path) -> tuple["Nbgraders", "Gradebooks"]:
    """Return both ways to write, each with an SQLite file of its own, in which the assignment is registered."""
    files = [folder / "nbgraders.db", folder / "ours.db"]
    nbgraders, ours = Nbgraders(course, assignment, _url(files[0])), Gradebooks(course, assignment, _url(files[1]))
    nbgraders.register()
    shutil.copy(*files)
    return nbgraders, ours


def _url(file: Path) -> str:
    return f"sqlite:///{file}"


class Nbgraders(Way):
    """nbgrader's converter, of whose steps only those are left that write into the gradebook."""

    def grade(self, student: str, notebooks: Notebooks, when: datetime | None) -> None:
        folder = self.course.submitted(student, self.assignment)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, notebook in notebooks.items():
            nbformat.write(notebook, folder / f"{name}.ipynb")
        if when:
            (folder / "timestamp.txt").write_text(when.strftime("%Y-%m-%d %H:%M:%S.%f%z"))
        with environment("ATTENTION_DB", self.url):
            config = self.course.config()
        config.CourseDirectory.student_id, config.CourseDirectory.assignment_id = student, self.assignment
        config.BaseConverter.force = True
        config.Autograde.sanitize_preprocessors = []
        steps = ["nbgrader.preprocessors.SaveAutoGrades", "nbgrader.preprocessors.AssignLatePenalties"]
        config.Autograde.autograde_preprocessors = steps
        Autograde(coursedir=CourseDirectory(config=config, log=LOG), config=config, log=LOG).start()


class Gradebooks(Way):
    @contextmanager
    def open(self) -> Iterator[AssignmentGradebook]:
        with environment("ATTENTION_DB", self.url), AssignmentGradebook(self.course, self.assignment, LOG) as gradebook:
            yield gradebook

    def grade(self, student: str, notebooks: Notebooks, when: datetime | None) -> None:
        with self.open() as gradebook:
            gradebook.record(student, notebooks, when)


class Fault:
    """Something happens before the statement with the number ``at``; where there are fewer, before the commit."""

    def __init__(self, gradebook: AssignmentGradebook, happen: Callable[[], object]) -> None:
        self.at, self.happen = 0, happen
        self.statements: list[str] = []
        self.happened = self.committing = False
        event.listen(gradebook._gradebook.engine, "before_cursor_execute", self._execute)
        event.listen(gradebook._gradebook.engine, "commit", self._commit)

    def next(self) -> None:
        self.at += 1
        self.statements.clear()

    def stop(self) -> None:
        self.at = 0

    def _execute(self, connection: object, cursor: object, statement: str, *_: object) -> None:
        self.statements.append(statement)
        if len(self.statements) == self.at:
            self.happened = True
            self.happen()

    def _commit(self, connection: object) -> None:
        if len(self.statements) < self.at:
            self.happened = self.committing = True
            self.happen()


def mark_everything(url: str) -> None:
    """Give every answer a mark, as a person does in another program."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE grade SET manual_score = 1")
    engine.dispose()


def marked_meanwhile(monkeypatch: pytest.MonkeyPatch, mark: Callable[[], None]) -> list[bool]:
    """Have somebody mark after everything was copied and before it is counted; the list tells that it has happened."""
    copy, happened = migrate._copy, []

    def copy_and_mark(source: Connection, target: Connection) -> None:
        copy(source, target)
        mark()
        happened.append(True)

    monkeypatch.setattr(migrate, "_copy", copy_and_mark)
    return happened


def raise_fault() -> None:
    raise RuntimeError("a fault")


def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table, in which an id that was drawn at random gives way to what it stands for."""
    engine = create_engine(url)
    names: dict[object, object] = {None: None}
    tables = {}
    with engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            rows = []
            for row in connection.execute(select(table)).mappings():
                named = {c.name: names[row[c.name]] if c.foreign_keys else row[c.name] for c in table.columns}
                unique = [x for x in table.constraints if isinstance(x, UniqueConstraint)]
                if unique and "id" in named and not table.c.id.unique:
                    del named["id"]
                    names[row["id"]] = (table.name, *(named[c.name] for c in unique[0].columns))
                else:
                    names[row.get("id")] = named.get("id")
                rows.append(tuple(named.items()))
            tables[table.name] = sorted(rows, key=repr)
    engine.dispose()
    return tables
