"""The versions of the engine and of the exercises: digests of their source, so that any change is noticed."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
CATALOGUE_FOLDER = "attnlib/checks/catalogue"
ANSWER_KEYS = "solutions/answers.toml"
# Files that no score depends on. If they change, nobody is graded again. All files not named here count.
NOT_COUNTED = (
    # these attack the sandbox, or make examples
    "grading/sandbox/selftest",
    "grading/sample",
    # these read commands and files, or check and copy what was graded
    "grading/__main__.py",
    "grading/csv_file.py",
    "grading/class_settings.py",
    "grading/roster",
    "grading/submission_folders.py",
    "grading/gradebook/students.py",
    "grading/verify.py",
    "grading/gradebook/migrate.py",
    "grading/handout.py",
    "grading/bundle.py",
    "grading/new_course.py",
    "grading/doctor_course.py",
    "grading/exchange.py",
    # these show what was graded: feedback pages, which `report` makes again, tables, and the book's figures
    "grading/class_report",
    "grading/report.py",
    "grading/pages.py",
    "grading/feedback.py",
    "grading/feedback_scores.py",
    "grading/gradebook/notebook_marks.py",
    "grading/mathml.py",
    "attnlib/plotting.py",
    "attnlib/_page_svg.py",
)


@lru_cache(maxsize=1)
def engine() -> str:
    """Return the digest of everything that runs, judges and stores an answer, except the exercises."""
    return _digest(file for file in _sources() if not _is_in(file, CATALOGUE_FOLDER, *NOT_COUNTED))


@lru_cache(maxsize=1)
def catalogue() -> str:
    """Return the digest of the exercises, with their references, known mistakes and the keys of the questions."""
    keys = [(ROOT / ANSWER_KEYS, ANSWER_KEYS)] if (ROOT / ANSWER_KEYS).is_file() else []
    return _digest([*(file for file in _sources() if _is_in(file, CATALOGUE_FOLDER)), *keys])


def version() -> str:
    """Return one digest of both."""
    return sha256(f"{engine()} {catalogue()}".encode()).hexdigest()


def _sources() -> Iterator[tuple[Path, str]]:
    """Yield every source file of the two packages, with its path below the folder that holds both."""
    for name in ("attnlib", "grading"):
        for file in sorted((ROOT / name).rglob("*.py")):
            yield file, file.relative_to(ROOT).as_posix()


def _is_in(file: tuple[Path, str], *paths: str) -> bool:
    return any(file[1] == path or file[1].startswith(f"{path}/") for path in paths)


def _digest(files: Iterable[tuple[Path, str]]) -> str:
    digest = sha256()
    for file, name in files:
        digest.update(f"{name} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
