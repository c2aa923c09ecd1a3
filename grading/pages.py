"""The pages that students get back: one file each, made from the executed notebook and the gradebook as it is now."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from logging import Logger
from pathlib import Path
from typing import Any

from traitlets.utils.importstring import import_item

from grading import bounded_worker
from grading._nbgrader import GenerateFeedback
from grading._untyped import NotebookNode, as_node, notebook_of
from grading.class_report.student_code import MAX_EXECUTED_NOTEBOOK_BYTES
from grading.course import Course, log_file, quiet
from grading.notebook_template import VERDICT_KEY
from grading.outcome import Outcome
from grading.rendering import page_of
from grading.repair.messages import OR_RENAME

NO_PAGE = "no feedback page: "
SENTENCE_END = re.compile(r"(?<=[.?]) ")
NOTEBOOK_FORMAT = {"nbformat": 4, "nbformat_minor": 5}


class Pages:
    """Makes pages for one assignment. Their appearance is configured together with nbgrader's own feedback.

    The scores are put into a notebook here, where the gradebook is available. The notebook becomes HTML in a bounded
    child.
    """

    def __init__(self, course: Course, assignment: str, log: Logger) -> None:
        self.course, self.assignment, self.log = course, assignment, log
        self._config = course.config()
        self._url = self._config.CourseDirectory.db_url
        steps = self._config.GenerateFeedback.preprocessors or GenerateFeedback.preprocessors.default_args[0]
        self._steps = [import_item(step) if isinstance(step, str) else step for step in steps]

    def make(self, outcome: Outcome) -> str:
        """Write a student's pages, or return why there are none. Whatever happens here does not affect grades."""
        student = outcome.student
        folder = self.course.feedback(student, self.assignment)
        try:
            for name, notebook in self._notebooks(outcome):
                page = self._page(student, Path(name).stem, notebook)
                self.course.files.write((folder / name).with_suffix(".html"), page.encode())
        except bounded_worker.ExceededError as reason:
            self.log.warning("no feedback page for %s: making it %s", student, reason)
            self.course.files.remove(folder)
            return f"{NO_PAGE}making it {reason}"
        except Exception as error:
            self.log.exception("no feedback page for %s", student)
            self.course.files.remove(folder)
            return f"{NO_PAGE}{type(error).__name__}: {error}"
        return ""

    def _notebooks(self, outcome: Outcome) -> Iterator[tuple[str, NotebookNode]]:
        """Yield the notebooks to show: those that were executed, or empty ones that say why nothing was run."""
        folder = self.course.autograded(outcome.student, self.assignment)
        executed = self.course.files.names(folder, ".ipynb")
        for name in executed:
            yield name, notebook_of(self.course.files.read(folder / name, MAX_EXECUTED_NOTEBOOK_BYTES))
        if outcome.verdict.refused and not executed:
            refused = {"refused": True, "reason": to_student(outcome.reason.partition(NO_PAGE)[0])}
            for name in self.course.notebooks(self.assignment):
                yield name, as_node({"cells": [], "metadata": {VERDICT_KEY: refused}} | NOTEBOOK_FORMAT)

    def _page(self, student: str, name: str, notebook: NotebookNode) -> str:
        known = {"student": student, "assignment": self.assignment, "notebook": name, "db_url": self._url}
        resources: dict[str, Any] = {"nbgrader": known, "unique_key": name}
        for step in self._steps:
            notebook, resources = step(config=self._config).preprocess(notebook, resources)
        return page_of(notebook, resources, self._config)


def to_student(reason: str) -> str:
    """Rephrase the reason for a refusal, which tells the instructor what to ask for, to address the student.

    Only its last sentence is changed, up to the list of what came instead. The text before and after may contain names
    that a student gave to files, so it stays as it is.
    """
    said, instead, names = reason.partition(OR_RENAME)
    *before, asked = SENTENCE_END.split(said)
    for words in (("Ask for it", "Hand it in"), ("ask for it", "hand it in"), ("Ask for ", "Hand in ")):
        asked = asked.replace(*words, 1)
    return " ".join([*before, asked]) + instead + names


def make_pages(
    course: Course, assignment: str, outcomes: Sequence[Outcome], jobs: int
) -> Iterator[tuple[Outcome, str]]:
    """Make the pages of many students, and yield each outcome with the reason why there is no page, or ''."""
    pages = Pages(course, assignment, log_file(course, assignment))
    with quiet(), ThreadPoolExecutor(jobs, "page") as threads:
        yield from zip(outcomes, threads.map(pages.make, outcomes), strict=True)
