"""Bring extensions and penalties up to date for the whole class, or show what that would change."""

from collections.abc import Iterator

from grading.course import Course, GradingError, log_file
from grading.deadlines.extensions import Extensions, days
from grading.deadlines.table import DAY, Grant, add, file_of, wrong_grant
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.lookup import extensions, with_due_date
from grading.gradebook.students import students
from grading.lateness import Change, Lateness
from grading.report import rows
from grading.run_state import RunState, lock
from grading.text import counted, points

ADOPTED = "entered in the gradebook before there was a table"


def update(course: Course, proposed: Grant | None = None, *, dry_run: bool) -> str:
    """Write to the gradebook what the table and the late days grant, and return what changes, as text for a terminal.

    Args:
        course: the class.
        proposed: a row to add to the table first.
        dry_run: whether to report the changes without writing anything.

    Raises:
        GradingError: the table or the new row is wrong, or a run on this class is in progress.
    """
    url = course.config().CourseDirectory.db_url
    new = [*_adopted(course, url)] if proposed else []
    if proposed:
        if wrong := wrong_grant(course, proposed, students(url).keys()):
            raise GradingError(f"nothing was granted: {wrong}")
        new.append(proposed)
    with lock(course):
        found = Extensions(course, proposed=new)
        if new and not dry_run:
            add(course, new)
        said = [line for name in sorted(with_due_date(url)) for line in _of(course, name, found, dry_run=dry_run)]
    said = said or ["No student's mark changes."]
    counts = f"{counted(len(found.rows), 'row')} in {file_of(course)}, {counted(found.bank, 'late day')} for everybody."
    end = "This was a dry run: nothing was written." if dry_run else "Run `report` to write the feedback pages again."
    return "\n".join([counts, *said, end])


def _adopted(course: Course, url: str) -> Iterator[Grant]:
    """Yield a row for each extension in the gradebook, if there is no table yet."""
    if course.files.changed(file_of(course)) is None:
        for student, assignment, extension in extensions(url):
            if assignment in course.assignments():
                yield Grant(student, assignment, "", f"{extension / DAY:g}", "unknown", ADOPTED)


def _of(course: Course, assignment: str, found: Extensions, *, dry_run: bool) -> Iterator[str]:
    """Yield what changes in one assignment: the extension, the penalty and the score of each student."""
    run_state = RunState(course, assignment)
    outcomes = run_state.all()[0]
    if not outcomes:
        return
    graded = {row.outcome.student: row for row in rows(course, assignment)}
    with AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        lateness = Lateness(course, assignment, gradebook, run_state.audit, found)
        for outcome in outcomes:
            if change := lateness.preview(outcome.student):
                row = graded[outcome.student]
                yield f"{assignment}: {row.label}: {_said(change, row.score)}"
                if not dry_run:
                    run_state.store_outcome(lateness.of_old(outcome))


def _said(change: Change, score: float) -> str:
    after = score + change.before.penalty - change.after.penalty
    moved = f"extension {days(change.before.extension)} → {days(change.extension.total)} ({change.extension}); "
    extension = moved if change.before.extension != change.extension.total else ""
    penalty = f"penalty {points(change.before.penalty)} → {points(change.after.penalty)}"
    return f"{extension}{penalty}; score {points(score)} → {points(after)}"
