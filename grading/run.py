"""Grade a class: one submission after another, or several at once in processes of their own."""

import logging
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from queue import SimpleQueue

from grading._untyped import tqdm
from grading.course import Course, GradingError
from grading.outcome import Outcome, plain
from grading.release import register
from grading.submission import Grader

LONGEST = 200  # bytes of a student's name; a file is named after it, and 255 is what file systems take
TIMEOUT = 30  # seconds that a cell may take, unless one is asked for
FORMAT = "%(asctime)s %(levelname)s %(message)s"


def run(
    course: Course,
    assignment: str,
    students: Sequence[str] | None = None,
    *,
    jobs: int = 1,
    timeout: int = TIMEOUT,
    again: bool = False,
) -> list[Outcome]:
    """Grade submissions to an assignment, show how far it is, and return the outcomes in the order of ``students``.

    Args:
        course: where the assignment and the submissions are.
        assignment: its name.
        students: whom to grade; ``None`` means everybody who has a folder among the submissions.
        jobs: how many submissions are graded at the same time.
        timeout: seconds that a cell may take.
        again: whether to grade also what was graded before as it is now.

    Raises:
        GradingError: there is no such assignment or student, or nobody has submitted anything.
    """
    course.require(assignment)
    students = _students(course, assignment, students)
    register(course, assignment, log_file(course, assignment))
    with tqdm(total=len(students), unit="student", desc=assignment, dynamic_ncols=True) as bar:
        outcomes = {}
        for outcome in _outcomes(course, assignment, students, jobs, (timeout, again)):
            outcomes[outcome.student] = outcome
            bar.set_postfix_str(outcome.student)
            bar.update()
    return [outcomes[student] for student in students]


def refresh(course: Course, assignment: str) -> None:
    """Write the feedback of everyone graded again, with the scores and comments that a person has given since."""
    files = sorted(course.outcomes(assignment).glob("*.json"))
    if files:
        grader = _grader(course, assignment, TIMEOUT)
        for file in tqdm(files, unit="page", desc=assignment, dynamic_ncols=True):
            grader.refresh(Outcome.load(file))


def _students(course: Course, assignment: str, students: Sequence[str] | None) -> list[str]:
    there = course.students()
    unknown = sorted(set(students or ()) - set(there))
    if unknown:
        raise GradingError(
            f"no submission folder for {', '.join(map(plain, unknown))} in {course.folder / 'submitted'}. "
            f"There are: {', '.join(map(plain, there)) or 'none at all'}"
        )
    if not there:
        raise GradingError(
            f"there are no submissions in {course.folder / 'submitted'}. Put notebooks there as "
            f"STUDENT/{assignment}/{course.notebooks(assignment)[0]}, or try `python -m grading sample {assignment}`"
        )
    wanted = list(dict.fromkeys(students)) if students else there
    refused = [student for student in wanted if not _takes(student)]
    for student in refused:
        print(f"warning: not graded, because nbgrader cannot take the folder's name: {student!a}", file=sys.stderr)
    if len(refused) == len(wanted):
        raise GradingError(f"nobody is left to grade: rename the folders in {course.folder / 'submitted'}")
    return [student for student in wanted if student not in refused]


def _takes(student: str) -> bool:
    """Return whether nbgrader can take a student's name: as text, as a pattern of files, and as a file's name."""
    as_text = student.isprintable() and student == student.strip()
    return as_text and not set(student) & set("*?[]") and len(os.fsencode(student)) <= LONGEST


def _outcomes(
    course: Course, assignment: str, students: list[str], jobs: int, how: tuple[int, bool]
) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (_grade(course, assignment, *how, student) for student in students)
        return
    # Each thread waits for a process of its own: where one dies, it is plain on whose submission.
    free: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()
    for _ in range(jobs):
        free.put(_process())
    with ThreadPoolExecutor(jobs) as pool:
        waiting: dict[Future[Outcome | None], str] = {
            pool.submit(_elsewhere, free, course, assignment, how, student): student for student in students
        }
        try:
            for future in as_completed(waiting):
                yield future.result() or _died(course, assignment, waiting[future])
        finally:
            pool.shutdown(cancel_futures=True)
            while not free.empty():
                free.get().shutdown()


def _process() -> ProcessPoolExecutor:
    # A fresh one: a fork would inherit open sockets and database connections.
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def _elsewhere(
    free: "SimpleQueue[ProcessPoolExecutor]", course: Course, assignment: str, how: tuple[int, bool], student: str
) -> Outcome | None:
    """Grade a submission in a process that is free; return None where the process dies of it."""
    process = free.get()
    try:
        return process.submit(_grade, course, assignment, *how, student).result()
    except BrokenProcessPool:
        process = _process()
        return None
    finally:
        free.put(process)


def _died(course: Course, assignment: str, student: str) -> Outcome:
    return _grader(course, assignment, TIMEOUT).failed(student, "the process that graded it died")


def _grade(course: Course, assignment: str, timeout: int, again: bool, student: str) -> Outcome:
    return _grader(course, assignment, timeout).grade(student, again=again)


@lru_cache(maxsize=1)
def _grader(course: Course, assignment: str, timeout: int) -> Grader:
    return Grader(course, assignment, timeout, log_file(course, assignment))


def log_file(course: Course, assignment: str) -> logging.Logger:
    """Return a logger that writes into the class's folder, and nothing to the terminal."""
    log = logging.getLogger(f"grading.{assignment}")
    course.log(assignment).parent.mkdir(parents=True, exist_ok=True)
    file = logging.FileHandler(course.log(assignment), encoding="utf-8")
    file.setFormatter(logging.Formatter(FORMAT))
    for each in (log, logging.getLogger("traitlets")):  # a kernel manager logs to the latter, whatever it is told
        for old in each.handlers:
            old.close()
        each.handlers[:] = [file]
        each.propagate = False
        each.setLevel(logging.INFO)
    return log
