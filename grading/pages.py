"""The pages that students get back: one file each, made from the executed notebook and the gradebook as it is now."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from logging import Logger
from pathlib import Path
from typing import Any

from traitlets.utils.importstring import import_item

from grading import bounded
from grading._untyped import GenerateFeedback, notebook_of
from grading.course import Course, log_file, quiet
from grading.insight.written import MOST_BYTES
from grading.rendering import page_of

NO_PAGE = "no feedback page: "


class Pages:
    """Makes pages for one assignment. The look of them is configured where nbgrader's own feedback is.

    The scores are put into a notebook here, where the gradebook is. It becomes HTML in a bounded child.
    """

    def __init__(self, course: Course, assignment: str, log: Logger) -> None:
        self.course, self.assignment, self.log = course, assignment, log
        self._config = course.config()
        self._url = self._config.CourseDirectory.db_url
        steps = self._config.GenerateFeedback.preprocessors or GenerateFeedback.preprocessors.default_args[0]
        self._steps = [import_item(step) if isinstance(step, str) else step for step in steps]

    def make(self, student: str) -> str:
        """Write a student's pages, or say in words why there are none. Grades stand, whatever happens here."""
        folder = self.course.feedback(student, self.assignment)
        try:
            autograded = self.course.autograded(student, self.assignment)
            for name in self.course.files.names(autograded, ".ipynb"):
                page = self._page(student, autograded / name)
                self.course.files.write((folder / name).with_suffix(".html"), page.encode())
        except bounded.Exceeded as reason:
            self.log.warning("no feedback page for %s: making it %s", student, reason)
            self.course.files.remove(folder)
            return f"{NO_PAGE}making it {reason}"
        except Exception as error:
            self.log.exception("no feedback page for %s", student)
            self.course.files.remove(folder)
            return f"{NO_PAGE}{type(error).__name__}: {error}"
        return ""

    def _page(self, student: str, file: Path) -> str:
        known = {"student": student, "assignment": self.assignment, "notebook": file.stem, "db_url": self._url}
        notebook = notebook_of(self.course.files.read(file, MOST_BYTES))
        resources: dict[str, Any] = {"nbgrader": known, "unique_key": file.stem}
        for step in self._steps:
            notebook, resources = step(config=self._config).preprocess(notebook, resources)
        return page_of(notebook, resources, self._config)


def make_pages(course: Course, assignment: str, students: Sequence[str], jobs: int) -> Iterator[tuple[str, str]]:
    """Make the pages of many students, and yield for each the name, and why there is no page, if there is none."""
    pages = Pages(course, assignment, log_file(course, assignment))
    with quiet(), ThreadPoolExecutor(jobs, "page") as threads:
        yield from zip(students, threads.map(pages.make, students), strict=True)
