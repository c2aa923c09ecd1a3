"""The attempts at an exam: which one counts, and an entry in the log for each.

The last attempt within the student's window counts. If there is none, the last one of unknown time does, then the last
one from before the exam began, which is flagged, and otherwise the last late one, which earns nothing. An attempt of
unknown time that was collected before the student's window closed is on time. Canvas marks what came after its own due
date as late, which does not say whether the attempt of a student with an extension came within the extension.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from grading.audit_log import AuditLog, Entry
from grading.collect.attempts import NOT_WORK, Attempt, Attempts, digest
from grading.course import Course
from grading.exam.window import IN_TIME, TOO_EARLY, TOO_LATE, UNKNOWN, Exam
from grading.outcome import plain
from grading.repair.files import MAX_NOTEBOOK_BYTES

RANK = {TOO_LATE: 0, TOO_EARLY: 1, UNKNOWN: 2, IN_TIME: 3}


def window_of(exam: Exam, attempt: Attempt) -> str:
    """Return whether an attempt came within the student's window, in words."""
    if attempt.late and attempt.student not in exam.ends:
        return TOO_LATE
    if attempt.when:
        return exam.place(attempt.student, datetime.fromisoformat(attempt.when))
    collected = datetime.fromisoformat(attempt.received) if attempt.received else None
    return IN_TIME if exam.place(attempt.student, collected) == IN_TIME else UNKNOWN


def rank(exam: Exam | None, attempt: Attempt) -> tuple[int, tuple[str, int]]:
    """Return the key of an attempt. The attempt with the largest key counts."""
    return RANK[window_of(exam, attempt)] if exam else 0, attempt.place


def log_attempts(attempts: Attempts, exam: Exam, audit: AuditLog) -> None:
    """Log the attempts that are kept and not in the log yet, each with its digest and when it came."""
    logged = {(said["of"], said["attempt"]) for entry in audit.entries()[0] if "attempt" in (said := entry.said)}
    for student in attempts.students():
        for one in attempts.of(student):
            if (student, one.name) not in logged:
                came = {"came": one.when, "collected": one.received, "window": window_of(exam, one)}
                audit.noted({"of": student, "attempt": one.name, "content": one.digest, **came})


def changed_attempts(course: Course, assignment: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Yield which attempts in the log have been removed or changed."""
    attempts = Attempts(course, assignment)
    for said in (entry.said for entry in entries if "attempt" in entry.said):
        student, name = str(said["of"]), str(said["attempt"])
        if _digest(attempts, student, name) != said.get("content"):
            yield f"{plain(student)}: the attempt {plain(name)} was removed or changed after it was collected"


def _digest(attempts: Attempts, student: str, name: str) -> str:
    folder, files = attempts.folder(student) / name, attempts.course.files
    try:
        names = [name for name in files.names(folder) if name not in NOT_WORK]
        return digest({name: files.read(folder / name, MAX_NOTEBOOK_BYTES) for name in names})
    except OSError:
        return ""
