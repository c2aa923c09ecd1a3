"""Keep lateness up to date with the due date and `timestamp.txt`, even for submissions that were graded before.

What late work costs is set in `nbgrader_config.py`.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from grading._untyped import tqdm
from grading.audit_log import AuditLog
from grading.course import Course
from grading.deadlines.extensions import Extension, Extensions
from grading.exam.declared import exam_names
from grading.gradebook.assignment import AssignmentGradebook, SubmissionTime
from grading.outcome import BEFORE_EXAM, IN_TIME, LATENESS_CHANGED, NO_DUE_DATE, RENEWED, TIME_UNKNOWN, Outcome, plain
from grading.text import points_off
from grading.timestamp import LATE_MARK, TIMESTAMP_FILE, HandedIn, handed_in
from grading.verdict import Verdict

NOT_KNOWN = SubmissionTime(None, None, 0.0)
MIN_LATENESS = timedelta(seconds=1)  # the lateness assumed for a submission that is late by an unknown time
TIME_FORMAT = "%Y-%m-%d %H:%M:%S UTC"
LATE_BUT_EXTENDED = (  # in an exam, where a second costs the whole score
    "{file} says {mark}, according to the due date in Canvas, but here the student has until {due}, so nothing "
    "is taken off. Write the date and time into that file."
)
WHY_BEFORE = "either the clock was wrong, or the student had the questions early. The submission still counts."


class Lateness:
    """When the submissions to an assignment were due, when they came, and what is taken off for it."""

    def __init__(
        self,
        course: Course,
        assignment: str,
        gradebook: AssignmentGradebook,
        audit: AuditLog,
        extensions: Extensions | None = None,
    ) -> None:
        self.course, self.assignment, self.gradebook, self.audit = course, assignment, gradebook, audit
        self._known, self._due = gradebook.submission_times(), gradebook.due_date()
        self._extensions = extensions or Extensions(course)
        self._exam_begins = exam_names(course).get(assignment)

    @property
    def about(self) -> str:
        """When the assignment is due, as a sentence for a terminal."""
        return f"Due: {self._due:%d %B %Y, %H:%M} UTC" if self._due else "No due date is set, so nobody is late."

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

    def preview(self, student: str) -> "Change | None":
        """Return what the next update would change for a student, without writing it, or None if nothing changes."""
        before = self._known.get(student, NOT_KNOWN)
        _, after, extension = self._update(student, dry_run=True)
        same = (before.extension, before.penalty) == (after.extension, after.penalty)
        return None if same or extension is None else Change(before, after, extension)

    def _now(self, outcome: Outcome) -> "Known":
        """Bring the gradebook up to date, and return what is known now."""
        student = outcome.student
        before = self._known.get(student, NOT_KNOWN)
        handed, time, extension = self._update(student)
        if extension and time.extension != before.extension:
            moved = {"from": str(before.extension), "to": str(time.extension)}
            self.audit.noted({"extension": student, **moved, "by": extension.by, "why": str(extension)})
        early = self._exam_begins is not None and handed.when is not None and handed.when < self._exam_begins
        return Known(handed, time, early)

    def _update(self, student: str, *, dry_run: bool = False) -> tuple[HandedIn, SubmissionTime, Extension | None]:
        """Bring the gradebook up to date, and return when the submission came and is due, and the extension, if any."""
        handed = handed_in(self.course.submitted(student, self.assignment))
        time = self._known.get(student, NOT_KNOWN)
        extension = self._extension(student, handed)
        before = time.due or self._due  # a submission that is graded for the first time is due when the assignment is
        due = before if extension is None else self._due and self._due + extension.total
        base = before if extension is None or self._due is None else self._due + extension.granted
        if self._exam_begins and handed.late and base and self._due and base > self._due:
            said = LATE_BUT_EXTENDED.format(file=TIMESTAMP_FILE, mark=LATE_MARK, due=f"{base:{TIME_FORMAT}}")
            handed = HandedIn(problem=said)
        when = base + MIN_LATENESS if handed.late and base else handed.when
        if (
            student not in self._known
            or (time.came, time.due) != (when, due)
            or time.penalty
            or SubmissionTime(due, when, 0.0).seconds_late
        ):
            there = self.course.files.names(self.course.autograded(student, self.assignment), ".ipynb")
            names = [name.removesuffix(".ipynb") for name in there]
            moved = extension.total if extension else None
            time = self.gradebook.record_time(student, when, names, extension=moved, dry_run=dry_run)
        return handed, time, extension

    def _extension(self, student: str, handed: HandedIn) -> Extension | None:
        if self._due is None or not self._extensions.govern:
            return None
        return self._extensions.of(student, self.assignment, self._due, handed.when, late=handed.late)

    def _with(self, outcome: Outcome, now: "Known", *more: str) -> Outcome:
        kept = (flag for flag in outcome.flags if not flag.startswith(RENEWED))
        return replace(outcome, lateness=now.text, flags=(*kept, *more, *now.problems))


@dataclass(frozen=True)
class Change:
    """What an update changes for one student: the times before and after, and the extension with its reasons."""

    before: SubmissionTime
    after: SubmissionTime
    extension: Extension


@dataclass(frozen=True)
class Known:
    """What a submission's folder and the gradebook say about its time, and whether that is before an exam began."""

    handed: HandedIn
    time: SubmissionTime
    early: bool

    @property
    def problems(self) -> list[str]:
        """What an instructor should look at."""
        unknown = [f"{TIME_UNKNOWN}{self.handed.problem}"] if self.handed.problem else []
        return unknown + ([f"{BEFORE_EXAM}{WHY_BEFORE}"] if self.early else [])

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
        if self.early:
            return ", before the exam began"
        if due is None:
            return NO_DUE_DATE
        seconds = self.time.seconds_late
        if not seconds:
            return IN_TIME
        return f", late by {timedelta(seconds=round(seconds))}{self._taken_off()}"

    def _taken_off(self) -> str:
        return f", {points_off(self.time.penalty)}" if self.time.penalty else ", nothing taken off"
