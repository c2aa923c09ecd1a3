"""Grade submissions in a temporary class of their own. Nothing in the real class changes."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from grading.course import Course, environment
from grading.exam.declared import declare, exam_names
from grading.first_answers import add_first_answers, first_answers
from grading.own_names import keep_names, own_names
from grading.pool import Pool
from grading.repair.files import MAX_NOTEBOOK_BYTES
from grading.report import Row, rows
from grading.run import How, run
from grading.safe_files import SafeFolder
from grading.sandbox.temporary import temporary

OWN_GRADEBOOK = ""  # with this value of ATTENTION_DB, a class keeps its gradebook in its own folder


@contextmanager
def trial_class(course: Course, assignment: str, students: Iterable[str]) -> Iterator[Course]:
    """Make a class in which first answers, students' own names and exams count as they do in the real one.

    Raises:
        GradingError: a student's first answers cannot be read.
    """
    names = own_names(course)
    with temporary("trial") as place, environment("ATTENTION_DB", OWN_GRADEBOOK):
        trial = Course(course.root, place)
        keep_names(trial, names)
        if exams := exam_names(course):
            declare(trial, exams)
        for student in students:
            add_first_answers(trial, assignment, student, first_answers(course, assignment, student))
        yield trial


def trial_run(
    course: Course, trial: Course, assignment: str, folders: Mapping[str, Path], how: How, pool: Pool | None = None
) -> dict[str, Row]:
    """Return what submissions earn with the checks as they are now, without penalties and marks given by hand.

    Args:
        course: the real class.
        trial: the temporary one. Answers of an earlier run there count as first answers.
        assignment: its name.
        folders: the folders of the submissions, inside the real class's folder, by student.
        how: how they are graded.
        pool: where they run; ``None`` makes one.
    """
    for student, folder in folders.items():
        trial.files.remove(trial.submitted(student, assignment))
        _copy(course.files, folder, trial, trial.submitted(student, assignment))
    run(trial, assignment, how=how, pool=pool)
    return {row.outcome.student: row for row in rows(trial, assignment) if row.outcome.student in folders}


def _copy(files: SafeFolder, folder: Path, trial: Course, target: Path) -> None:
    for name in files.names(folder):
        with suppress(OSError):  # a link, a folder or a file that is too large, none of which would be graded
            trial.files.write(target / name, files.read(folder / name, MAX_NOTEBOOK_BYTES))
