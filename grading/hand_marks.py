"""Marks given by hand: compare those in the gradebook with those that the log attributes to somebody.

Formgrader does not say who gives a mark. The person who marked then logs the marks with
`python -m grading report --by NAME`.
"""

from collections.abc import Iterator, Mapping, Sequence

from grading.audit_log import Entry
from grading.course import Course, log_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.outcome import plain
from grading.run_state import RunState, lock
from grading.text import counted

Marks = Mapping[tuple[str, str], float | None]  # by student and question; None where there is no mark


def logged_marks(entries: Sequence[Entry]) -> dict[tuple[str, str], float | None]:
    """Return the last mark of each answer that the log attributes to somebody."""
    found: dict[tuple[str, str], float | None] = {}
    for said in (entry.said for entry in entries):
        kept = "request" in said and said.get("points") is None
        if {"of", "question", "points"} <= said.keys() and not (kept or said.get("second")):
            found[str(said["of"]), str(said["question"])] = said["points"]
    return found


def unlogged(logged: Marks, given: Marks) -> list[tuple[str, str]]:
    """Return the answers whose mark in the gradebook is not the one in the log."""
    return sorted(which for which in {*logged, *given} if logged.get(which) != given.get(which))


def log_marks(course: Course, assignment: str, by: str) -> str:
    """Log who gave the marks that are not in the log, and return text for a terminal."""
    with lock(course), AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        audit, given = RunState(course, assignment).audit, gradebook.manual_scores()
        logged = logged_marks(audit.entries()[0])
        new = unlogged(logged, given)
        for student, question in new:
            was, now = logged.get((student, question)), given.get((student, question))
            audit.noted({"of": student, "question": question, "from": was, "points": now, "by": by})
    return f"{counted(len(new), 'mark')} logged as given or changed by {plain(by)}"


def differences(entries: Sequence[Entry], given: Marks) -> tuple[list[str], Iterator[str]]:
    """Return which marks differ from those in the log, and a note if some are not in the log at all."""
    logged = logged_marks(entries)
    new = unlogged(logged, given)
    changed = [which for which in new if which in logged]
    advice = "If somebody changed it on purpose, log that with `report --by NAME`"
    wrong = [
        f"{plain(who)}: {plain(question)}: the mark given by hand is {given.get((who, question))}, but the log says "
        f"{logged[who, question]}. {advice}"
        for who, question in changed
    ]
    n = len(new) - len(changed)
    said = (
        f"{counted(n, 'mark')} given by hand without an author in the log: run `report --by NAME` to log who gave them"
    )
    return wrong, iter([said] if n else [])
