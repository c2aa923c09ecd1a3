"""Grade a class: repair, run, judge, record, and make pages. A run can be stopped at any time, and resumed later."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib import import_module
from logging import Logger

from attnlib.checks.book_links import BOOK_VARIABLE
from grading._untyped import tqdm
from grading.class_list import absent
from grading.class_settings import book_address
from grading.course import Course, GradingError, environment, importing, log_file, quiet
from grading.exam.window import exam_of
from grading.exchange import keep_for_exchange
from grading.gradebook.agreement import require_agreement
from grading.gradebook.assignment import AssignmentGradebook
from grading.judge import Judge
from grading.lateness import Lateness
from grading.marking.comments import read_comments
from grading.notebook_template import NotebookTemplate
from grading.outcome import Outcome, plain
from grading.pages import NO_PAGE, make_pages
from grading.pipeline import Pipeline, progress_bar
from grading.pool import Boxes, Cluster, Pool
from grading.release import notebook_templates, register
from grading.run_state import RunState, lock
from grading.sandbox.bubblewrap import require_hidden
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.submission import Submissions
from grading.submission_folders import not_graded


@dataclass(frozen=True)
class How:
    """How a class is to be graded.

    Attributes:
        jobs: how many submissions run at the same time on this machine.
        limits: what a submission may take.
        scheduler: the address of a dask scheduler, whose workers are used in place of this machine.
        regrade: whether submissions that have not changed are graded again.
        sandboxed: whether there is a sandbox; without one, every result is marked.
        pages: whether feedback pages are made.
    """

    jobs: int = 1
    limits: Limits = field(default_factory=Limits)
    scheduler: str | None = None
    regrade: bool = False
    sandboxed: bool = True
    pages: bool = True

    def pool(self, course: Course | None = None) -> Pool:
        """Return the pool that runs submissions in this way."""
        if self.scheduler:
            return Cluster(self.scheduler)
        return Boxes(self.jobs, Host(self.limits, sandboxed=self.sandboxed), course)


def run(
    course: Course,
    assignment: str,
    students: Sequence[str] | None = None,
    how: How | None = None,
    *,
    pool: Pool | None = None,
) -> list[Outcome]:
    """Grade submissions to an assignment, show the progress, and return the outcomes.

    Args:
        course: where the assignment and the submissions are.
        assignment: its name.
        students: whom to grade, as names or patterns; ``None`` means everybody who has a folder among the submissions.
        how: how many at a time, within what limits, and so on.
        pool: an existing pool to run the submissions in, which stays open; ``None`` makes one for this run.

    Raises:
        GradingError: there is no such assignment or student, nobody has submitted anything, a run on this class is in
            progress, or no sandbox can be had.
    """
    how = how or How()
    course.require(assignment)
    if how.sandboxed:
        require_hidden(course)
    students = chosen(course, assignment, students)
    if how.pages:
        read_comments(course)  # before everybody is graded: no page can be made without it
    with lock(course), quiet(), ExitStack() as stack:
        pool = pool or stack.enter_context(closing(how.pool(course)))
        # Feedback is read elsewhere. Without the book's address, it names the sections to reread, but has no links.
        stack.enter_context(environment(BOOK_VARIABLE, book_address(course)))
        log = log_file(course, assignment)
        if not how.regrade:
            require_agreement(course, assignment)
        register(course, assignment, log)
        run_state = RunState(course, assignment)
        outcomes = _graded(course, assignment, students, how, pool, run_state, log)
        if how.pages:
            outcomes = _with_pages(course, assignment, outcomes, run_state, pool.size)
        run_state.finish()
    return [outcomes[student] for student in students]


def _graded(
    course: Course,
    assignment: str,
    students: Sequence[str],
    how: How,
    pool: Pool,
    run_state: RunState,
    log: Logger,
) -> dict[str, Outcome]:
    judge, templates = Judge(run_state.seed), notebook_templates(course, assignment)
    _import_libraries(templates)
    submissions = Submissions(course, assignment, templates, judge, how.limits, log, sandboxed=how.sandboxed)
    with AssignmentGradebook(course, assignment, log) as gradebook:
        lateness = Lateness(course, assignment, gradebook, run_state.audit)
        tqdm.write(lateness.about)
        return Pipeline(submissions, run_state, gradebook, lateness, pool, regrade=how.regrade).grade(students)


def refresh(course: Course, assignment: str, jobs: int = 1) -> None:
    """Remake the feedback of everyone who was graded, with the scores and comments given by hand since."""
    run_state = RunState(course, assignment)
    read_comments(course)  # if it cannot be read, the pages stay as they are
    in_gradebook = require_agreement(course, assignment)
    known = {outcome.student: outcome for outcome in run_state.all()[0] if outcome.student in in_gradebook}
    with lock(course):
        _with_pages(course, assignment, known, run_state, jobs, again=True)


def _import_libraries(templates: Sequence[NotebookTemplate]) -> None:
    """Import torch now if the judge is going to need it. That takes seconds, in which the box can start."""
    in_torch = (c.exercise for template in templates for c in template.graded_cells.values() if c.backend == "torch")
    if any(exercise and exercise.takes_autograd for exercise in in_torch):
        with importing():
            import_module("torch")


def _with_pages(
    course: Course,
    assignment: str,
    outcomes: dict[str, Outcome],
    run_state: RunState,
    jobs: int,
    *,
    again: bool = False,
) -> dict[str, Outcome]:
    """Make the pages that are missing or out of date, and return the updated outcomes. None before an exam is over."""
    exam = exam_of(course, assignment)
    if exam and not exam.is_over:
        tqdm.write(f"No feedback pages: {exam.withheld}.")
        for student in outcomes:
            course.files.remove(course.feedback(student, assignment))
        return outcomes
    wanted = [outcome for outcome in outcomes.values() if again or _lacks_a_page(course, assignment, outcome)]
    with progress_bar(len(wanted), "page", "feedback") as bar:
        for outcome, wrong in make_pages(course, assignment, wanted, jobs):
            reason = " ".join(filter(None, [outcome.reason.partition(NO_PAGE)[0].strip(), wrong]))
            if reason != outcome.reason:
                outcomes[outcome.student] = replace(outcome, reason=reason)
                run_state.store_outcome(outcomes[outcome.student])
            bar.update()
    for student in outcomes:
        keep_for_exchange(course, assignment, student)
    return outcomes


def _lacks_a_page(course: Course, assignment: str, outcome: Outcome) -> bool:
    folder = course.feedback(outcome.student, assignment)
    autograded = course.autograded(outcome.student, assignment)
    executed = course.files.names(autograded, ".ipynb")
    if outcome.verdict.refused and not executed:
        return not course.files.names(folder, ".html")
    for name in executed:
        page = course.files.changed((folder / name).with_suffix(".html"))
        notebook = course.files.changed(autograded / name)
        if page is None or notebook is None or page < notebook:
            return True
    return False


def chosen(course: Course, assignment: str, asked: Sequence[str] | None) -> list[str]:
    """Return the requested students, by name or pattern, among those that nbgrader accepts.

    Without a request, students on the class list who handed in nothing for this assignment are left out: they are
    absent, even if they handed in others.

    Raises:
        GradingError: nobody is left, or a requested student is missing.
    """
    excluded = course.excluded() if asked else course.excluded() | absent(course, assignment)
    there = [student for student in course.students() if student not in excluded]
    if not there:
        raise GradingError(
            f"there are no submissions to {assignment} in {course.folder / 'submitted'}. Put notebooks there as "
            f"STUDENT/{assignment}/{course.notebooks(assignment)[0]}, or try `python -m grading sample {assignment}`"
        )
    unknown = [name for name in asked or () if not any(_means(name, student) for student in there)]
    if unknown:
        raise GradingError(
            f"no submission folder for {', '.join(map(plain, unknown))} in {course.folder / 'submitted'}. "
            f"The folders are: {', '.join(map(plain, there)) or 'none at all'}"
        )
    wanted = [student for student in there if asked is None or any(_means(name, student) for name in asked)]
    refused = not_graded(course)
    for student in wanted:
        if student in refused:
            print(f"warning: not graded: {student!a}: {refused[student]}", file=sys.stderr)
    if refused.keys() >= set(wanted):
        raise GradingError(f"nobody is left to grade: rename the folders in {course.folder / 'submitted'}")
    return [student for student in wanted if student not in refused]


def _means(asked: str, student: str) -> bool:
    return asked == student or fnmatchcase(student, asked)
