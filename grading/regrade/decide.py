"""Decide on a regrade request: write the mark, if it changes, and log who decided it and why."""

from grading.course import Course, GradingError, log_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.outcome import plain
from grading.regrade.requests import request_of
from grading.run_state import RunState, lock
from grading.text import points


def decide(course: Course, assignment: str, number: int, new: float | None, by: str, why: str) -> str:
    """Write a decision, and return text for a terminal.

    Args:
        course: the class.
        assignment: its name.
        number: the number of the request.
        new: the points that the question earns from now on, as a mark given by hand; ``None`` leaves the mark.
        by: who decided.
        why: the reason.

    Raises:
        GradingError: there is no such request, it has already been decided, an author or reason is missing, or the
            points cannot be given.
    """
    request = request_of(course, assignment, number)
    if request.decision:
        raise GradingError(
            f"this request has already been decided: {request}. To change the decision, make a new request"
        )
    if not (by.strip() and why.strip()):
        raise GradingError("a decision needs an author and a reason: pass --by NAME and --why TEXT")
    with lock(course), AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        before = gradebook.score(request.student, request.question)
        after = before if new is None else new
        about = {"of": request.student, "question": request.question, "from": before, "to": after}
        if new is not None:
            gradebook.require_possible(request.student, request.question, new)
        # The log comes first, so that there is no mark without an author.
        RunState(course, assignment).audit.noted(
            {"request": number, "points": new, "by": by.strip(), "why": why.strip(), **about}
        )
        if new is not None:
            gradebook.mark(request.student, request.question, new)
    said = f"{plain(request.student)}: {plain(request.question)}: {points(before)} → {points(after)} points"
    return f"{said}, decided by {plain(by)}. Run `python -m grading report {assignment}` to write the feedback again"
