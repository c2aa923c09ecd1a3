"""The pages that students get back: one file each, made from the executed notebook and the gradebook as it is now."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from logging import Logger
from multiprocessing import get_context
from pathlib import Path

from grading._untyped import GenerateFeedback, notebook_of
from grading.course import Course, GradingError, log_file, quiet
from grading.feedback import FeedbackExporter
from grading.insight.written import MOST_BYTES

NO_PAGE = "no feedback page: "
ALONE = 40  # pages: more are worth the seconds that it takes to start processes for them


class Pages:
    """Makes pages for one assignment. The look of them is configured where nbgrader's own feedback is."""

    def __init__(self, course: Course, assignment: str, log: Logger) -> None:
        self.course, self.assignment, self.log = course, assignment, log
        config = course.config()
        self._url = config.CourseDirectory.db_url
        self._exporter = FeedbackExporter(config=config)  # type: ignore[no-untyped-call]
        for step in config.GenerateFeedback.preprocessors or GenerateFeedback.preprocessors.default_args[0]:
            self._exporter.register_preprocessor(step, enabled=True)  # type: ignore[no-untyped-call]

    def make(self, student: str) -> str:
        """Write a student's pages, or say in words why there are none. Grades stand, whatever happens here."""
        folder = self.course.feedback(student, self.assignment)
        try:
            with quiet():
                autograded = self.course.autograded(student, self.assignment)
                for name in self.course.files.names(autograded, ".ipynb"):
                    page = self._page(student, autograded / name)
                    self.course.files.write((folder / name).with_suffix(".html"), page.encode())
        except Exception as error:
            self.log.exception("no feedback page for %s", student)
            self.course.files.remove(folder)
            return f"{NO_PAGE}{type(error).__name__}: {error}"
        return ""

    def _page(self, student: str, file: Path) -> str:
        known = {"student": student, "assignment": self.assignment, "notebook": file.stem, "db_url": self._url}
        notebook = notebook_of(self.course.files.read(file, MOST_BYTES))
        page, _ = self._exporter.from_notebook_node(notebook, {"nbgrader": known, "unique_key": file.stem})
        return str(page)


def make_pages(course: Course, assignment: str, students: Sequence[str], jobs: int) -> Iterator[tuple[str, str]]:
    """Make the pages of many students, and yield for each the name, and why there is no page, if there is none."""
    if jobs == 1 or len(students) <= ALONE:
        yield from ((student, _make(course, assignment, student)) for student in students)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        made = pool.map(_make, *zip(*((course, assignment, student) for student in students), strict=True), chunksize=4)
        try:
            yield from zip(students, made, strict=True)
        except BrokenProcessPool:
            said = f"a process that made feedback pages died. `python -m grading report {assignment}` makes them again"
            raise GradingError(said) from None


def _make(course: Course, assignment: str, student: str) -> str:
    return _pages(course, assignment).make(student)


@lru_cache(maxsize=1)
def _pages(course: Course, assignment: str) -> Pages:
    return Pages(course, assignment, log_file(course, assignment))
