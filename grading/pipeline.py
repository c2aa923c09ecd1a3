"""Grade submissions one after another: read ahead, keep the boxes busy, and save each outcome once it is known."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from signal import SIGINT, signal
from threading import current_thread, main_thread

from grading._untyped import tqdm
from grading.course import GradingError
from grading.gradebook.assignment import AssignmentGradebook
from grading.lateness import Lateness
from grading.outcome import Outcome, plain
from grading.pool import Pool, ResultList
from grading.run_state import RunState
from grading.submission import Submission, Submissions

WAITING_PER_BOX = 2  # enough submissions to keep every box busy
READ_AHEAD = 32  # so many submissions are read before the first is run, because a box takes seconds to start
POLL_SECONDS = 0.5  # how often to check whether somebody has asked the run to stop


class InterruptedRunError(GradingError):
    """Somebody asked the run to stop. Everything that was graded is saved."""

    def __init__(self, done: int, of: int) -> None:
        super().__init__(
            f"stopped: {done} of {of} are graded and saved. Run the same command again to go on from there"
        )


class Pipeline:
    """Takes submissions through reading, running and recording.

    ``regrade`` says whether submissions that have not changed since an earlier run are graded again.
    """

    def __init__(
        self,
        submissions: Submissions,
        run_state: RunState,
        gradebook: AssignmentGradebook,
        lateness: Lateness,
        pool: Pool,
        *,
        regrade: bool,
    ) -> None:
        self._submissions, self._run_state, self._regrade = submissions, run_state, regrade
        self._gradebook, self._lateness, self._pool = gradebook, lateness, pool
        self._read: deque[Submission] = deque()  # not yet given to the pool
        self._running: dict[Future[ResultList], Submission] = {}
        self._outcomes: dict[str, Outcome] = {}

    def grade(self, students: Sequence[str]) -> dict[str, Outcome]:
        """Grade everybody and return the outcomes.

        Raises:
            InterruptedRunError: somebody pressed Ctrl-C.
        """
        with _stop_requests() as stopped, progress_bar(len(students), "student", self._submissions.assignment) as bar:
            self._bar, self._stopped = bar, stopped
            for student in students:
                self._take_in(student)
                if len(self._read) == READ_AHEAD:
                    self._run_next()
                if stopped:
                    break
            while self._read and not stopped:
                self._run_next()
            self._settle_until(0)
            if stopped:
                raise InterruptedRunError(len(self._outcomes), len(students))
        return self._outcomes

    def _take_in(self, student: str) -> None:
        """Keep the outcome of an earlier run if it still holds; otherwise read the submission."""
        stored = self._stored(student)
        before = stored if stored and self._matches_log(stored) else None
        if before and self._submissions.is_up_to_date(student, before):
            outcome = self._lateness.of_old(before)
            if outcome != before:
                self._run_state.store_outcome(outcome)
            self._finish(outcome)
        else:
            graded = before.digest if before else self._run_state.graded_digest(student) if stored else ""
            self._read.append(self._submissions.read(student, graded))

    def _stored(self, student: str) -> Outcome | None:
        if self._regrade or student not in self._gradebook.students:
            return None
        return self._run_state.outcome_of(student)

    def _matches_log(self, stored: Outcome) -> bool:
        """Tell whether a stored outcome is the one in the log, since somebody may have edited the file."""
        matches = self._run_state.matches_log(stored)
        if not matches:
            name = plain(stored.student)
            tqdm.write(f"{name}: the stored outcome does not match the log, so the submission is graded again")
        return matches

    def _run_next(self) -> None:
        """Give the submission that was read first to the pool once there is room."""
        submission = self._read.popleft()
        self._settle_until(WAITING_PER_BOX * self._pool.size - 1)
        if not self._stopped:
            self._running[self._pool.submit(submission.tasks)] = submission

    def _settle_until(self, most: int) -> None:
        """Record finished submissions until at most ``most`` are still running."""
        while len(self._running) > most and not self._stopped:
            for done in wait(self._running, POLL_SECONDS, FIRST_COMPLETED).done:
                submission = self._running.pop(done)
                self._finish(
                    self._submissions.settle(submission, done, self._gradebook, self._lateness, self._run_state)
                )

    def _finish(self, outcome: Outcome) -> None:
        self._outcomes[outcome.student] = outcome
        self._bar.set_postfix_str(outcome.student, refresh=False)
        self._bar.update()


@contextmanager
def _stop_requests() -> Iterator[list[bool]]:
    """Record Ctrl-C in a list, so that what is being written is finished first. A second Ctrl-C interrupts at once."""
    requests: list[bool] = []

    def request(*_: object) -> None:
        if requests:
            raise KeyboardInterrupt
        requests.append(True)
        tqdm.write("Stopping: what is being written is finished first.", file=sys.stderr)

    if current_thread() is not main_thread():  # only the main thread receives Ctrl-C
        yield requests
        return
    before = signal(SIGINT, request)
    try:
        yield requests
    finally:
        signal(SIGINT, before)


def progress_bar(total: int, unit: str, what: str) -> tqdm:
    """Return a progress bar, which is hidden where there is nothing to do, and outside of a terminal."""
    return tqdm(total=total, unit=unit, desc=what, dynamic_ncols=True, disable=None if total else True)
