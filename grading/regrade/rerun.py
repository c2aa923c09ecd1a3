"""Grade the submissions of open requests again, unchanged, and show the old marks beside the new ones."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from grading.collect.attempts import Attempts
from grading.course import Course, GradingError
from grading.exam.declared import exam_names
from grading.outcome import Finding, Outcome, plain
from grading.pool import Pool
from grading.regrade.requests import Request, waiting
from grading.release import notebook_templates
from grading.report import Row, rows
from grading.run import How
from grading.submission import asked, digest_of
from grading.text import points
from grading.trial_run import trial_class, trial_run


def rerun(course: Course, assignment: str, how: How, pool: Pool | None = None) -> str:
    """Grade the submissions of all open requests in a temporary class, and return both results as text for a terminal.

    Raises:
        GradingError: no request is open, or a student's first answers cannot be read.
    """
    requests = list(waiting(course, assignment))
    if not requests:
        raise GradingError(f"there is no open request for {assignment}")
    then = {row.outcome.student: row for row in rows(course, assignment)}
    graded = {student: then[student] for student in {request.student for request in requests} & then.keys()}
    found = {student: graded_folder(course, assignment, row.outcome) for student, row in graded.items()}
    folders = {student: folder for student, (folder, _) in found.items()}
    with trial_class(course, assignment, folders) as trial:
        now = trial_run(course, trial, assignment, folders, how, pool)
    cells = [cell for template in notebook_templates(course, assignment) for cell in template.graded_cells.values()]
    asks = {cell.cell: getattr(cell.exercise or cell.question, "name", "") for cell in cells}
    said: list[str] = []
    for request in requests:
        if request.student in now:
            about = asks.get(request.question, request.question)
            same = found[request.student][1]
            said += _compared(request, then[request.student], now[request.student], about, same=same)
    return "\n".join(said)


def graded_folder(course: Course, assignment: str, outcome: Outcome) -> tuple[Path, bool]:
    """Return the folder with the submission that was graded, and whether it is certain to be the right one.

    It is among the submissions or, if another attempt has replaced it, among the attempts.
    """
    templates = notebook_templates(course, assignment)
    attempts = Attempts(course, assignment)
    kept = [attempts.folder(outcome.student) / attempt.name for attempt in attempts.of(outcome.student)]
    submitted = course.submitted(outcome.student, assignment)
    exam = assignment in exam_names(course)
    wanted = [asked(templates, sandboxed=sandboxed, exam=exam) for sandboxed in (True, False)]
    for folder in (submitted, *kept):
        if outcome.digest in [digest_of(folder, templates, one) for one in wanted]:
            return folder, True
    return submitted, False


def _compared(request: Request, then: Row, now: Row, about: str, *, same: bool) -> Iterator[str]:
    yield f"\n{request}"
    if not same:
        yield "  note: the submission or the assignment has changed since the grading: “now” is about the new version"
    old, most = then.scores[request.question]
    new, _ = now.scores.get(request.question, (0.0, most))
    yield f"  {request.question}: given {points(old)}, now {points(new)} of {points(most)}"
    yield f"    then: {_said(then.outcome.findings, about) or 'nothing was wrong'}"
    yield f"    now:  {_said(now.outcome.findings, about) or 'nothing is wrong'}"
    others = [name for name, (score, _) in now.scores.items() if score != then.scores.get(name, (score, 0))[0]]
    if others := [name for name in others if name != request.question and name not in now.unread]:
        yield f"  other questions that differ: {', '.join(map(plain, others))}"


def _said(findings: Sequence[Finding], about: str) -> str:
    """Return what was wrong with the question about this exercise."""
    return "; ".join(str(one) for one in findings if one.question.partition(" ")[0] == about)
