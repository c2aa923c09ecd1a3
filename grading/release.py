"""The student's version of an assignment, generated from the instructor's; and its entry in the gradebook."""

from hashlib import sha256
from logging import Logger
from pathlib import Path

from traitlets.config import Config

from grading._nbgrader import CourseDirectory, GenerateAssignment, NbGraderException
from grading.class_settings import book_address
from grading.course import Course, GradingError
from grading.gradebook.create import create_tables
from grading.gradebook.lookup import is_registered
from grading.notebook_template import NotebookTemplate

MAX_STAMP_BYTES = 1000  # much more than a digest takes


def release(course: Course, assignment: str, destination: Path, log: Logger) -> Path:
    """Write the student's version into ``destination`` and return its folder. The same input gives the same bytes."""
    config = Config({"SaveCells": {"enabled": False}, "GenerateAssignment": {"no_database": True}})
    return _generate(course, assignment, destination, config, log)


def register(course: Course, assignment: str, log: Logger) -> None:
    """Tell the class's gradebook which cells an assignment has, and what they are worth, if it does not know yet.

    If the gradebook or the released notebooks have been deleted since, both are made again.
    """
    folder = course.folder / "release"
    stamp, now = folder / f"{assignment}.registered", _digest(course, assignment)
    is_new = course.files.changed(stamp) is not None and course.files.read(stamp, MAX_STAMP_BYTES) == now.encode()
    is_whole = all((folder / assignment / name).is_file() for name in course.notebooks(assignment))
    if is_new and is_whole and is_registered(course.config().CourseDirectory.db_url, assignment):
        return
    course.files.require_own(stamp.parent / assignment)
    create_tables(course.config().CourseDirectory.db_url)
    _generate(course, assignment, folder, Config(), log)
    course.files.write(stamp, now.encode())


def notebook_templates(course: Course, assignment: str) -> list[NotebookTemplate]:
    """Return the notebooks of a registered assignment, as handed out, with links to the class's book if there is one.

    Raises:
        GradingError: a graded cell cannot be judged outside the student's process.
    """
    folder = course.folder / "release" / assignment
    for name in course.notebooks(assignment):
        course.files.require_own(folder / name)
    book = book_address(course)
    book = book if book.startswith(("http://", "https://")) else ""  # the only links that feedback keeps
    return [NotebookTemplate.read(folder / name, book) for name in course.notebooks(assignment)]


def _digest(course: Course, assignment: str) -> str:
    """Return a digest of the assignment's notebooks, and of the gradebook that has to know them."""
    digest = sha256(course.config().CourseDirectory.db_url.encode())
    for name in course.notebooks(assignment):
        digest.update((course.root / "solutions" / assignment / name).read_bytes())
    return digest.hexdigest()


def _generate(course: Course, assignment: str, destination: Path, extra: Config, log: Logger) -> Path:
    course.require(assignment)
    config = course.config()
    config.merge(extra)
    config.CourseDirectory.release_directory = str(destination)
    config.CourseDirectory.assignment_id = assignment
    config.BaseConverter.force = True
    try:
        GenerateAssignment(coursedir=CourseDirectory(config=config, log=log), config=config, log=log).start()
    except NbGraderException as failure:
        raise GradingError(
            f"nbgrader could not generate {assignment!r}; its log says why. If cells were added or removed since "
            f"submissions were graded in {course.folder}, grade them again in a new folder"
        ) from failure
    return destination / assignment
