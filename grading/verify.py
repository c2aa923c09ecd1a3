"""Check that the log of a class's gradings is consistent and agrees with the outcomes, gradebook and submissions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from grading.audit_log import Entry, allowed, is_of_run
from grading.course import Course, GradingError
from grading.exam.attempts import changed_attempts
from grading.exam.declared import exam_names
from grading.gradebook.assignment import AssignmentGradebook
from grading.hand_marks import differences
from grading.outcome import Outcome, plain
from grading.release import notebook_templates
from grading.run_state import RunState, agree
from grading.submission import asked, digest_of
from grading.submission_folders import gradable

POINTS_TOLERANCE = 1e-4  # in points
NAN = float("nan")  # stands for a score that is not a number, and differs from every score


@dataclass(frozen=True)
class Checked:
    """How many entries and students the log has, what is wrong, other remarks, and the last digest."""

    entries: int
    students: int
    wrong: tuple[str, ...]
    notes: tuple[str, ...]
    last: str


def verify(course: Course, assignment: str, gradebook: AssignmentGradebook, known: str = "") -> Checked:
    """Check the log of an assignment, and return what does not agree with it.

    Args:
        course: the class.
        assignment: its name.
        gradebook: the gradebook.
        known: the digest of an entry that was written down elsewhere; "" for none.

    Raises:
        GradingError: there is no log.
    """
    run_state = RunState(course, assignment)
    entries, wrong = run_state.audit.entries()
    if not entries:
        why = "the log is gone, though there are outcomes" if run_state.all()[0] else "nobody has been graded yet"
        raise GradingError(f"there is no grading log for {assignment} in {course.folder}: {why}")
    if known and all(entry.digest != known for entry in entries):
        wrong.append(f"there is no entry {known}: the end of the log was cut off, or the log was rewritten")
    wrong += [*_seeds(entries), *undeclared_erasures(entries), *changed_attempts(course, assignment, entries)]
    known_to_log, there, scores = allowed(entries), gradable(course), gradebook.automatic_scores()
    wrong += _disagreements(course, assignment, known_to_log, run_state.all()[0], scores)
    logged = [entry for entry in entries if str(entry.said.get("of")) in scores]
    changed, unknown = differences(logged, gradebook.manual_scores())
    wrong += changed
    withdrawn = (_withdrawn(student, student in scores) for student in sorted(known_to_log.keys() - there))
    notes = (*_cut_off(entries), *withdrawn, *_unfinished(entries), *unknown)
    return Checked(len(entries), len(known_to_log), tuple(wrong), notes, entries[-1].digest)


def _disagreements(
    course: Course,
    assignment: str,
    known_to_log: Mapping[str, Sequence[dict[str, Any]]],
    stored: Sequence[Outcome],
    scores: Mapping[str, float],
) -> Iterator[str]:
    """Yield how the outcomes, the scores and the submissions of all students differ from what the log says of them."""
    outcomes = {outcome.student: outcome for outcome in stored}
    notebooks, there = notebook_templates(course, assignment), gradable(course)
    exam = assignment in exam_names(course)

    def submitted(student: str, sandboxed: bool) -> str:
        return digest_of(
            course.submitted(student, assignment), notebooks, asked(notebooks, sandboxed=sandboxed, exam=exam)
        )

    for student, said in sorted(known_to_log.items()):
        if student in there or student in scores:
            score, look = scores.get(student, 0.0), submitted if student in there else None
            yield from _differences(student, said, outcomes.get(student), score, look)
    for student in sorted(outcomes.keys() - known_to_log.keys()):
        yield f"{plain(student)}: there is an outcome, but no log entry"


def _cut_off(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        if not entry.said:
            cause = "as happens when the power fails or the disk is full"
            yield f"entry {entry.number} is incomplete: it was cut off, {cause}"


def _unfinished(entries: Sequence[Entry]) -> Iterator[str]:
    last = next((entry for entry in reversed(entries) if is_of_run(entry)), None)
    if last and "revealed" not in last.said:
        yield "the last run did not finish: run it again. Until then, its submissions may keep their earlier results"


def _withdrawn(student: str, is_in_gradebook: bool) -> str:
    """Return a note on a graded student whose submission is gone, and on what that means for the grade."""
    gone = f"{plain(student)}: there is no longer a submission that `run` would grade, so nothing was compared"
    if not is_in_gradebook:
        return f"{gone}. The gradebook holds no grade for it either"
    return (
        f"{gone}. Its grade stands. If the student has left the class, `nbgrader db student remove ID --force` removes "
        "the student with the grades of every assignment"
    )


def _seeds(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a line for each entry of a run that was made under a different seed from the one it revealed."""
    since: list[Entry] = []
    for entry in entries:
        if "student" in entry.said:
            since.append(entry)
        elif "revealed" in entry.said:
            commitment = sha256(str(entry.said["revealed"]).encode()).hexdigest()
            for one in since:
                if one.said.get("seed") != commitment:
                    revealed = f"the one that entry {entry.number} reveals"
                    yield f"entry {one.number} was made under a different seed from {revealed}"
            since = []


def undeclared_erasures(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a line if more entries were erased than the log says."""
    gone = sum("erased" in entry.said for entry in entries)
    said = sum(int(entry.said["erasure"]) for entry in entries if "erasure" in entry.said)
    if gone > said:
        yield f"{gone} entries were erased, but the log says that {said} were"


def _points(said: dict[str, Any]) -> float:
    score = said.get("score", 0.0)
    return float(score) if isinstance(score, int | float) else NAN


def _changed(outcome: Outcome | None, said: dict[str, Any]) -> str:
    there = outcome.verdict if outcome else "gone"
    if outcome and (outcome.digest, there) == (said.get("submission"), said.get("verdict")):
        return "its reason, findings, flags or version were changed"
    return f"it is {there}, but the log says {said.get('verdict')}"


def _differences(
    student: str,
    allowed: Sequence[dict[str, Any]],
    outcome: Outcome | None,
    score: float,
    submitted: Callable[[str, bool], str] | None,
) -> Iterator[str]:
    """Yield how a student's outcome, score and submission differ from what the log says of them.

    What to do about it is added only if there is a submission that can be graded.
    """
    name, last = plain(student), allowed[-1]
    agrees = [said for said in allowed if agree(said, outcome)]
    if not agrees:
        again = ". The next `run` grades it again" if submitted else ""
        yield f"{name}: the outcome is not the one in the log: {_changed(outcome, last)}{again}"
    if not any(abs(score - _points(said)) <= POINTS_TOLERANCE for said in allowed):
        again = ". `run --regrade` grades it again" if submitted else ""
        yield f"{name}: the gradebook's automatic score is {score:g}, but the log says {last.get('score')}{again}"
    for said in agrees[-1:]:
        if submitted and said.get("submission") and submitted(student, bool(said.get("walled"))) != said["submission"]:
            yield f"{name}: the submission, or the assignment, is not what was graded. The next `run` grades it again"
