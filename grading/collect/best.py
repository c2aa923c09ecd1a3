"""Put the best attempt of each student among the submissions, where the settings of the class say so."""

from collections.abc import Collection, Mapping, Sequence

from grading.collect.attempts import Attempt, Attempts, that_may_count
from grading.course import Course, log_file
from grading.deadlines.extensions import Extensions
from grading.exam.declared import exam_names
from grading.first_answers import add_first_answers, first_answers
from grading.gradebook.assignment import AssignmentGradebook
from grading.lateness import MIN_LATENESS
from grading.outcome import plain
from grading.pool import Pool
from grading.release import register
from grading.report import Row
from grading.run import How
from grading.run_state import lock
from grading.text import points
from grading.timestamp import handed_in
from grading.trial_run import trial_class, trial_run
from grading.verdict import Verdict


def choose_best(course: Course, assignment: str, how: How, pool: Pool | None = None) -> str:
    """Grade the attempts of everybody who has several, submit the best one, and return text for a terminal.

    The best attempt is the one with the most points after the penalty for its lateness; among equals, it is the first.
    What a person has to mark does not count. In a multiple-choice question, the earliest choice counts in all attempts
    and is kept as the first answer. Otherwise, a student could hand in an attempt for each option.

    Raises:
        GradingError: a student's first answers cannot be read.
    """
    if assignment in exam_names(course):
        return "In an exam, the last attempt in time counts, not the best one."
    attempts = Attempts(course, assignment)
    everything = {student: that_may_count(attempts.of(student)) for student in attempts.students()}
    several = {student: kept for student, kept in everything.items() if len({one.digest for one in kept}) > 1}
    if not several:
        return "No student has more than one attempt."
    with trial_class(course, assignment, several) as trial:
        graded = _graded(course, trial, assignment, several, how, pool)
        first = {student: first_answers(trial, assignment, student) for student in several}
    with lock(course):
        register(course, assignment, log_file(course, assignment))
        failed = {name for name, row in graded.items() if row.outcome.verdict is Verdict.INFRASTRUCTURE}
        scores = {name: row.score for name, row in graded.items()}
        penalties = _penalties(course, assignment, several, scores)
        net = {name: scores.get(name, 0.0) - penalty for name, penalty in penalties.items()}
        said = [_submit_best(attempts, kept, net, failed, first[student]) for student, kept in several.items()]
    return "\n".join([f"The best attempt counts (students with more than one: {len(several)}):", *said])


def _graded(
    course: Course,
    trial: Course,
    assignment: str,
    several: Mapping[str, Sequence[Attempt]],
    how: How,
    pool: Pool | None,
) -> dict[str, Row]:
    """Return what each attempt earns: the first ones of all students, then the second ones, and so on.

    Students keep their ids in each of these runs, since the order of their options depends on them. The order of time
    is that of the first answers.
    """
    attempts, found = Attempts(course, assignment), dict[str, Row]()
    for i in range(max(map(len, several.values()))):
        folders = {
            student: attempts.folder(student) / kept[i].name for student, kept in several.items() if i < len(kept)
        }
        rows = trial_run(course, trial, assignment, folders, how, pool)
        found |= {f"{student}+{i}": row for student, row in rows.items()}
    return found


def _submit_best(
    attempts: Attempts,
    kept: Sequence[Attempt],
    net: Mapping[str, float],
    failed: Collection[str],
    first: Mapping[str, str],
) -> str:
    """Put the best attempt of a student in place, keep the first answers, and return which attempt it is."""
    student = kept[0].student
    names = [f"{student}+{i}" for i in range(len(kept))]
    if not set(names).isdisjoint(failed):
        return f"  {plain(student)}: the grader failed on an attempt, so the last one counts"
    best = max(range(len(kept)), key=lambda i: (net[names[i]], -i))
    add_first_answers(attempts.course, attempts.assignment, student, first)
    there = attempts.submitted(student)
    if there is None or there.digest != kept[best].digest:
        attempts.submit(kept[best])
    shown = ", ".join(points(net[name]) for name in names)
    return f"  {plain(student)}: attempt {best + 1} of {len(kept)} (points after penalties: {shown})"


def _penalties(
    course: Course, assignment: str, several: Mapping[str, Sequence[Attempt]], scores: Mapping[str, float]
) -> dict[str, float]:
    """Return what would be taken off each attempt for its lateness."""
    found = {}
    extensions, attempts = Extensions(course), Attempts(course, assignment)
    with AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        due = gradebook.due_date()
        for student, kept in several.items():
            for i, one in enumerate(kept):
                name, handed = f"{student}+{i}", handed_in(attempts.folder(student) / one.name)
                seconds = 0.0
                if due and (handed.when or handed.late):
                    extension = extensions.of(student, assignment, due, handed.when, late=handed.late)
                    came = handed.when or due + extension.granted + MIN_LATENESS
                    seconds = (came - due - extension.total).total_seconds()
                found[name] = gradebook.penalty(student, scores.get(name, 0.0), seconds)
    return found
