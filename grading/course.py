"""Where things are: the repository's assignments, and the folder that holds everything a class produces."""

import gc
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from grading.safe_files import PUBLIC_MODE, SafeFolder

if TYPE_CHECKING:
    from traitlets.config import Config

CLASS_FOLDER = "class"  # the class's folder in the course's own folder, unless another one is named
FOLDER_VARIABLE = "ATTENTION_CLASS"  # the environment variable that names the class's folder
CONFIG = "nbgrader_config.py"
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"


class GradingError(Exception):
    """The request cannot be met as it stands. The text says what came, what was expected, and what to do."""


@dataclass(frozen=True)
class Course:
    """A repository with ``solutions/`` and ``nbgrader_config.py``, and the folder of one class.

    The two are separate, so that grading never writes into the repository: submissions, grades, feedback, the gradebook
    and the logs all live in ``folder``.
    """

    root: Path
    folder: Path

    @classmethod
    def at(cls, root: Path, folder: Path | None = None) -> "Course":
        """Return the course at ``root``; the class's folder is the one given, or that of the environment."""
        folder = folder or Path(os.environ.get(FOLDER_VARIABLE) or root / CLASS_FOLDER)
        return cls(root.resolve(), folder.resolve())

    @property
    def files(self) -> SafeFolder:
        """The object that reads and writes the files of the class, and follows no links there."""
        return SafeFolder(self.folder)

    def assignments(self) -> list[str]:
        """Return the names of all assignments."""
        return sorted({path.parent.name for path in (self.root / "solutions").glob("*/*.ipynb")})

    def require(self, assignment: str) -> None:
        """Raise a :class:`GradingError` unless there is such an assignment."""
        if assignment not in self.assignments():
            known = ", ".join(self.assignments()) or "none at all"
            folder = self.root / "solutions"
            raise GradingError(f"there is no assignment {assignment!r} in {folder}. The assignments are: {known}")

    def notebooks(self, assignment: str) -> list[str]:
        """Return the file names of an assignment's notebooks: what a complete submission contains."""
        return sorted(path.name for path in (self.root / "solutions" / assignment).glob("*.ipynb"))

    def students(self) -> list[str]:
        """Return everybody who has a folder, or a link to one, among the submissions, whatever is in it."""
        there = self.folder / "submitted"
        return [name for name in self.files.names(there) if (there / name).is_dir()]

    def excluded(self) -> set[str]:
        """Return the students whom nbgrader is configured to leave out, by ``CourseDirectory.student_id_exclude``."""
        names = str(self.config().CourseDirectory.get("student_id_exclude", ""))
        return set(filter(None, map(str.strip, names.split(","))))

    def submitted(self, student: str, assignment: str) -> Path:
        """Return the folder in which a student's notebooks arrive."""
        return self.folder / "submitted" / student / assignment

    def attempts(self, student: str, assignment: str) -> Path:
        """Return the folder with every attempt that was collected from a student."""
        return self.folder / "attempts" / assignment / student

    def autograded(self, student: str, assignment: str) -> Path:
        """Return the folder of a student's executed notebooks."""
        return self.folder / "autograded" / student / assignment

    def feedback(self, student: str, assignment: str) -> Path:
        """Return the folder of the pages that a student gets back."""
        return self.folder / "feedback" / student / assignment

    def reports(self, assignment: str) -> Path:
        """Return the folder of the reports on an assignment."""
        return self.folder / "reports" / assignment

    def returned(self, assignment: str) -> Path:
        """Return the folder of the feedback as it is packed for students."""
        return self.reports(assignment) / "returned"

    def outcomes(self, assignment: str) -> Path:
        """Return the folder of the outcomes, one file per student."""
        return self.reports(assignment) / "outcomes"

    def log(self, assignment: str) -> Path:
        """Return the log of an assignment's grading."""
        return self.folder / "logs" / f"{assignment}.log"

    def config(self) -> "Config":
        """Return nbgrader's configuration for this class, read from the same file as nbgrader's own commands do."""
        from traitlets.config.loader import PyFileConfigLoader

        self.files.require_own(self.folder / "gradebook.db")  # SQLite will open it by name
        with environment(FOLDER_VARIABLE, str(self.folder)):
            config: Config = PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()
        return config


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings that nbgrader's use of SQLAlchemy causes, since nobody here can act on them."""
    from sqlalchemy.exc import SAWarning

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Object of type .* not in session", SAWarning)
        yield


@contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage in this block, nor later among what it imports: modules stay, and are slow to search."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class _LogFile(logging.FileHandler):
    """Writes a log into a class's folder through its :class:`SafeFolder`."""

    def __init__(self, course: Course, assignment: str) -> None:
        self._files, self._path = course.files, course.log(assignment)
        super().__init__(self._path, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        with self._files.file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PUBLIC_MODE) as descriptor:
            return open(os.dup(descriptor), "a", encoding="utf-8")  # noqa: PTH123 (it is a descriptor)


def log_file(course: Course, assignment: str) -> logging.Logger:
    """Return a logger that writes into the class's folder, and nothing to the terminal."""
    log = logging.getLogger(f"grading.{assignment}")
    file = _LogFile(course, assignment)
    file.setFormatter(logging.Formatter(LOG_FORMAT))
    for old in log.handlers:
        old.close()
    log.handlers[:] = [file]
    log.propagate = False
    log.setLevel(logging.INFO)
    return log
