"""Regrade requests and the decisions on them. Both are entries of the log of the assignment."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grading.audit_log import AuditLog
from grading.course import Course, GradingError
from grading.outcome import plain
from grading.report import rows
from grading.run_state import RunState, lock
from grading.text import counted

MAX_REASON = 300  # characters


@dataclass(frozen=True)
class Decision:
    """What was decided, by whom, why and when. ``points`` are those of the question, or None if nothing changed."""

    points: float | None
    by: str
    why: str
    time: str


@dataclass(frozen=True)
class Request:
    """A student's request to look at a question again."""

    number: int
    student: str
    question: str
    reason: str
    time: str
    decision: Decision | None = None

    def __str__(self) -> str:
        about = f"{self.number}: {plain(self.student)}: {plain(self.question)}: {plain(self.reason)} ({self.time[:10]})"
        if self.decision is None:
            return f"{about}: open"
        points = "the mark stays" if self.decision.points is None else f"{self.decision.points:g} points"
        return f"{about}: {points}, decided by {plain(self.decision.by)}: {plain(self.decision.why)}"


def requests_of(audit: AuditLog) -> list[Request]:
    """Return all requests, in the order in which they were made."""
    found: dict[int, Request] = {}
    for said in (entry.said for entry in audit.entries()[0]):
        number = int(said.get("request", 0))
        if "reason" in said:
            found[number] = Request(number, said["of"], said["question"], said["reason"], said["time"])
        elif number in found and "by" in said:
            decision = Decision(said["points"], said["by"], said["why"], said["time"])
            found[number] = replace(found[number], decision=decision)
    return list(found.values())


def ask(course: Course, assignment: str, student: str, question: str, reason: str) -> str:
    """Log a request, and return text for a terminal.

    Raises:
        GradingError: the student was not graded, there is no such question, or there is no reason.
    """
    row = next((row for row in rows(course, assignment) if row.outcome.student == student), None)
    if row is None or question not in row.scores:
        known = f"its questions are {', '.join(map(plain, row.scores))}" if row else "nobody of that name was graded"
        raise GradingError(f"there is no question {plain(question)!r} of {plain(student)!r} in {assignment}: {known}")
    if not reason.strip():
        raise GradingError("a request needs the student's reason: pass --why TEXT")
    with lock(course):
        audit = RunState(course, assignment).audit
        number = len(requests_of(audit)) + 1
        about = {"of": student, "question": question, "reason": reason.strip()[:MAX_REASON]}
        audit.noted({"request": number, **about})
    said = f"Request {number}: {row.label}: {plain(question)}"
    return f"{said}. Rerun it with: python -m grading regrade {assignment} --rerun"


def listed(course: Course, assignment: str) -> str:
    """Return all requests as text for a terminal."""
    found = requests_of(RunState(course, assignment).audit)
    waiting = sum(request.decision is None for request in found)
    return "\n".join([f"{counted(len(found), 'request')}, {waiting} open", *map(str, found)])


def request_of(course: Course, assignment: str, number: int) -> Request:
    """Return a request by its number.

    Raises:
        GradingError: there is none.
    """
    found = {request.number: request for request in requests_of(RunState(course, assignment).audit)}
    if number not in found:
        raise GradingError(f"there is no request {number} for {assignment}; the numbers are: {list(found) or 'none'}")
    return found[number]


def waiting(course: Course, assignment: str) -> Iterator[Request]:
    """Yield the requests on which nobody has decided."""
    yield from (request for request in requests_of(RunState(course, assignment).audit) if request.decision is None)
