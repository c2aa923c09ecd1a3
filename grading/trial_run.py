"""Grade submissions in a temporary class of their own. Nothing in the real class changes."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from grading.course import Course, environment
from grading.pool import Pool
from grading.repair.files import MAX_NOTEBOOK_BYTES
from grading.report import Row, rows
from grading.run import How, run
from grading.safe_files import SafeFolder
from grading.sandbox.temporary import temporary

OWN_GRADEBOOK = ""  # with this value of ATTENTION_DB, a class keeps its gradebook in its own folder


def trial_run(
    course: Course, assignment: str, folders: Mapping[str, Path], how: How, pool: Pool | None = None
) -> dict[str, Row]:
    """Return what submissions earn with the checks as they are now, without penalties and marks given by hand.

    Args:
        course: the class.
        assignment: its name.
        folders: the folders of the submissions, inside the class's folder, by the names to use in the result.
        how: how they are graded.
        pool: where they run; ``None`` makes one.
    """
    with temporary("trial") as place, environment("ATTENTION_DB", OWN_GRADEBOOK):
        trial = Course(course.root, place)
        for name, folder in folders.items():
            _copy(course.files, folder, trial, trial.submitted(name, assignment))
        run(trial, assignment, how=how, pool=pool)
        return {row.outcome.student: row for row in rows(trial, assignment)}


def _copy(files: SafeFolder, folder: Path, trial: Course, target: Path) -> None:
    for name in files.names(folder):
        with suppress(OSError):  # a link, a folder or a file that is too large, none of which would be graded
            trial.files.write(target / name, files.read(folder / name, MAX_NOTEBOOK_BYTES))
