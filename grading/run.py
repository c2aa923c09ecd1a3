"""Grade a class: repair, run, judge, record, make pages. A run can be stopped at any time, and resumes later."""

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib import import_module
from signal import SIGINT, signal
from threading import current_thread, main_thread

from attnlib.checks.book_links import BOOK
from grading._untyped import tqdm
from grading.course import Course, GradingError, environment, importing, log_file, quiet
from grading.exchange import keep_for_exchange
from grading.gradebook.agreement import require_agreement
from grading.gradebook.assignment import AssignmentGradebook
from grading.judge import Judge
from grading.lateness import Lateness
from grading.notebook_template import NotebookTemplate
from grading.outcome import Outcome, plain
from grading.pages import NO_PAGE, make_pages
from grading.pool import Boxes, Cluster, Pool, Results
from grading.release import notebook_templates, register
from grading.roster import not_graded
from grading.run_state import RunState, lock
from grading.sandbox.bubblewrap import require_hidden
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.submission import Submission, Submissions

AHEAD = 2  # submissions that wait for each box: enough that none is idle
EARLY = 32  # submissions that are read before the first of them is run: it takes a box seconds to start
PATIENCE = 0.5  # seconds between looks whether somebody has asked the run to stop


@dataclass(frozen=True)
class How:
    """How a class is to be graded.

    Attributes:
        jobs: how many submissions run at the same time on this machine.
        limits: what a submission may take.
        scheduler: the address of a dask scheduler, whose workers are used in place of this machine.
        regrade: whether what has not changed is graded again.
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
        """Return what runs submissions to a course in this way."""
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
    """Grade submissions to an assignment, show how far it is, and return the outcomes.

    Args:
        course: where the assignment and the submissions are.
        assignment: its name.
        students: whom to grade, as names or patterns; ``None`` means everybody who has a folder among the submissions.
        how: how many at a time, within what limits, and so on.
        pool: what runs the submissions, where it is there already; it stays.

    Raises:
        GradingError: there is no such assignment or student, nobody has submitted anything, a run on this class is in
            progress, or no sandbox can be had.
    """
    how = how or How()
    course.require(assignment)
    if how.sandboxed:
        require_hidden(course)
    students = chosen(course, assignment, students)
    with lock(course), quiet(), ExitStack() as stack:
        pool = pool or stack.enter_context(closing(how.pool(course)))
        # Feedback is read elsewhere: without an address of the book, it names what to reread, and links nowhere.
        stack.enter_context(environment(BOOK, os.environ.get(BOOK, "")))
        log = log_file(course, assignment)
        if not how.regrade:
            require_agreement(course, assignment)
        register(course, assignment, log)
        run_state = RunState(course, assignment)
        judge, asked = Judge(run_state.seed), notebook_templates(course, assignment)
        _import_what_is_asked_for(asked)
        submissions = Submissions(course, assignment, asked, judge, how.limits, log, sandboxed=how.sandboxed)
        with AssignmentGradebook(course, assignment, log) as gradebook:
            lateness = Lateness(course, assignment, gradebook)
            outcomes = _graded(submissions, students, run_state, gradebook, lateness, pool, regrade=how.regrade)
        if how.pages:
            outcomes = _with_pages(course, assignment, outcomes, run_state, pool.size)
        run_state.finish()
    return [outcomes[student] for student in students]


def refresh(course: Course, assignment: str, jobs: int = 1) -> None:
    """Make the feedback of everyone graded again, with the scores and comments that a person has given since."""
    run_state = RunState(course, assignment)
    in_gradebook = require_agreement(course, assignment)
    known = {outcome.student: outcome for outcome in run_state.all()[0] if outcome.student in in_gradebook}
    with lock(course):
        _with_pages(course, assignment, known, run_state, jobs, again=True)


def _import_what_is_asked_for(asked: Sequence[NotebookTemplate]) -> None:
    """Import torch, where the judge is going to need it, now: that takes seconds, in which the box starts."""
    in_torch = (c.exercise for template in asked for c in template.graded_cells.values() if c.backend == "torch")
    if any(exercise and exercise.takes_autograd for exercise in in_torch):
        with importing():
            import_module("torch")


def _graded(
    submissions: Submissions,
    students: Sequence[str],
    run_state: RunState,
    gradebook: AssignmentGradebook,
    lateness: Lateness,
    pool: Pool,
    *,
    regrade: bool,
) -> dict[str, Outcome]:
    """Grade everybody, save each outcome as soon as it is known, and return the outcomes."""
    outcomes: dict[str, Outcome] = {}
    waiting: dict[Future[Results], Submission] = {}
    with _stoppable() as stopped, _bar(len(students), "student", submissions.assignment) as bar:

        def settle(outcome: Outcome) -> None:
            outcomes[outcome.student] = outcome
            bar.set_postfix_str(outcome.student, refresh=False)
            bar.update()

        def settle_some(most: int) -> None:
            while len(waiting) > most and not stopped:
                for done in wait(waiting, PATIENCE, FIRST_COMPLETED).done:
                    settle(submissions.settle(waiting.pop(done), done, gradebook, lateness, run_state))

        def run(submission: Submission) -> None:
            settle_some(AHEAD * pool.size - 1)
            if not stopped:
                waiting[pool.submit(submission.tasks)] = submission

        read: deque[Submission] = deque()
        for student in students:
            stored = None if regrade or student not in gradebook.students else run_state.outcome_of(student)
            before = _known(stored, run_state)
            if before and submissions.is_up_to_date(student, before):
                now = lateness.of_old(before)
                if now != before:
                    run_state.store_outcome(now)
                settle(now)
            else:
                graded = before.digest if before else run_state.graded_digest(student) if stored else ""
                read.append(submissions.read(student, graded))
            if len(read) == EARLY:
                run(read.popleft())
            if stopped:
                break
        while read and not stopped:
            run(read.popleft())
        settle_some(0)
        if stopped:
            raise Interrupted(len(outcomes), len(students))
    return outcomes


def _known(stored: Outcome | None, run_state: RunState) -> Outcome | None:
    """Return the outcome of an earlier run if it matches the log: the stored file may have been edited since."""
    if stored and not run_state.matches_log(stored):
        student = stored.student
        tqdm.write(f"{plain(student)}: the stored outcome does not match the log, so the submission is graded again")
        return None
    return stored


class Interrupted(GradingError):
    """Somebody asked the run to stop, and everything that was graded is saved."""

    def __init__(self, done: int, of: int) -> None:
        super().__init__(
            f"stopped: {done} of {of} are graded and saved. Run the same command again to go on from there"
        )


@contextmanager
def _stoppable() -> Iterator[list[bool]]:
    """Let Ctrl-C put something into a list, and not break off what is being written. A second one does."""
    asked: list[bool] = []

    def ask(*_: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(True)
        tqdm.write("Stopping: what is being written is finished first.", file=sys.stderr)

    if current_thread() is not main_thread():  # nobody can press Ctrl-C on another one
        yield asked
        return
    before = signal(SIGINT, ask)
    try:
        yield asked
    finally:
        signal(SIGINT, before)


def _bar(total: int, unit: str, what: str) -> tqdm:
    return tqdm(total=total, unit=unit, desc=what, dynamic_ncols=True, disable=not total)


def _with_pages(
    course: Course,
    assignment: str,
    outcomes: dict[str, Outcome],
    run_state: RunState,
    jobs: int,
    *,
    again: bool = False,
) -> dict[str, Outcome]:
    """Make the pages that are missing, or older than what they show, and return the updated outcomes."""
    wanted = [outcome for outcome in outcomes.values() if again or _lacks_a_page(course, assignment, outcome)]
    with _bar(len(wanted), "page", "feedback") as bar:
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
    """Return the students who are asked for, by name or pattern, of those that nbgrader can take.

    Raises:
        GradingError: nobody is left, or somebody is not there.
    """
    excluded = course.excluded()
    there = [student for student in course.students() if student not in excluded]
    if not there:
        raise GradingError(
            f"there are no submissions in {course.folder / 'submitted'}. Put notebooks there as "
            f"STUDENT/{assignment}/{course.notebooks(assignment)[0]}, or try `python -m grading sample {assignment}`"
        )
    unknown = [name for name in asked or () if not any(_means(name, student) for student in there)]
    if unknown:
        raise GradingError(
            f"no submission folder for {', '.join(map(plain, unknown))} in {course.folder / 'submitted'}. "
            f"There are: {', '.join(map(plain, there)) or 'none at all'}"
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
