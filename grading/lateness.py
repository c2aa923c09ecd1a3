"""Keep lateness up to date with the due date and `timestamp.txt`, even for submissions that were graded before.

What late work costs is set in `nbgrader_config.py`.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from grading._untyped import tqdm
from grading.course import Course
from grading.gradebook.assignment import AssignmentGradebook, SubmissionTime
from grading.outcome import IN_TIME, LATENESS_CHANGED, NO_DUE_DATE, TIME_UNKNOWN, Outcome, plain
from grading.text import points_off
from grading.timestamp import HandedIn, handed_in
from grading.verdict import Verdict

MIN_LATENESS = timedelta(seconds=1)  # the lateness assumed for a submission that is late by an unknown time
TIME_FORMAT = "%Y-%m-%d %H:%M:%S UTC"


class Lateness:
    """When the submissions to an assignment were due, when they came, and what is taken off for it."""

    def __init__(self, course: Course, assignment: str, gradebook: AssignmentGradebook) -> None:
        self.course, self.assignment, self.gradebook = course, assignment, gradebook
        self._known = gradebook.submission_times()
        due = gradebook.due_date()
        tqdm.write(f"Due: {due:%d %B %Y, %H:%M} UTC" if due else "No due date is set, so nobody is late.")

    def of_new(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a submission that has just been graded, with its lateness."""
        return self._with(outcome, self._now(outcome))

    def of_old(self, outcome: Outcome) -> Outcome:
        """Return the outcome of an earlier run with its lateness as it is now, and say what has changed."""
        if outcome.verdict is Verdict.INFRASTRUCTURE:
            return outcome
        now = self._now(outcome)
        if now.text == outcome.lateness:
            return outcome
        change = f"{LATENESS_CHANGED}{outcome.lateness or 'nothing was known'} → {now.text or 'nothing is known'}"
        tqdm.write(f"{plain(outcome.student)}: {change}")
        # the old page shows the old penalty
        self.course.files.remove(self.course.feedback(outcome.student, self.assignment))
        return self._with(outcome, now, change)

    def _now(self, outcome: Outcome) -> "Known":
        """Bring the gradebook up to date, and return what is known now."""
        student = outcome.student
        handed = handed_in(self.course.submitted(student, self.assignment))
        time = self._known.get(student, SubmissionTime(None, None, 0.0))
        when = handed.when
        if handed.late and time.due:
            when = time.due + MIN_LATENESS
        if (
            student not in self._known
            or time.came != when
            or time.penalty
            or SubmissionTime(time.due, when, 0.0).seconds_late
        ):
            there = self.course.files.names(self.course.autograded(student, self.assignment), ".ipynb")
            time = self.gradebook.record_time(student, when, [name.removesuffix(".ipynb") for name in there])
        return Known(handed, time)

    def _with(self, outcome: Outcome, now: "Known", *more: str) -> Outcome:
        kept = (flag for flag in outcome.flags if not flag.startswith((LATENESS_CHANGED, TIME_UNKNOWN)))
        return replace(outcome, lateness=now.text, flags=(*kept, *more, *now.problems))


@dataclass(frozen=True)
class Known:
    """What a submission's folder and the gradebook say about its time."""

    handed: HandedIn
    time: SubmissionTime

    @property
    def problems(self) -> list[str]:
        """What an instructor should look at, because the lateness cannot be known without it."""
        return [f"{TIME_UNKNOWN}{self.handed.problem}"] if self.handed.problem else []

    @property
    def text(self) -> str:
        """What is known, in words, or "" if nothing is known."""
        if self.handed.problem and not self.handed.late:
            return f"{TIME_UNKNOWN}{self.handed.problem}"
        if self.handed.late:
            return f"late, by an unknown amount of time{self._taken_off()}"
        if self.handed.when is None:
            return ""
        return f"handed in {self.handed.when.strftime(TIME_FORMAT)}{self._how_late(self.time.due)}"

    def _how_late(self, due: datetime | None) -> str:
        if due is None:
            return NO_DUE_DATE
        seconds = self.time.seconds_late
        if not seconds:
            return IN_TIME
        return f", late by {timedelta(seconds=round(seconds))}{self._taken_off()}"

    def _taken_off(self) -> str:
        return f", {points_off(self.time.penalty)}" if self.time.penalty else ", nothing taken off"
