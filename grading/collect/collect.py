"""Collect an assignment from downloads: keep every attempt, put the one that counts in place, and say what happened."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

from grading._untyped import tqdm
from grading.class_list import differences, on_list
from grading.collect.attempts import Attempt, Attempts, that_may_count
from grading.collect.final_answers import stay_final
from grading.collect.read_sources import Collected, Reading
from grading.collect.students import KnownStudents
from grading.collect.systems import Asked, in_moodle
from grading.course import Course, GradingError
from grading.exam.attempts import log_attempts, rank, window_of
from grading.exam.window import IN_TIME, Exam, exam_of
from grading.first_answers import forget_first_answers
from grading.gradebook.lookup import marked_by_hand
from grading.gradebook.students import StudentEntry, students
from grading.outcome import plain
from grading.run_state import RunState, lock
from grading.text import counted

NAMES = {
    "canvas": "a download from Canvas",
    "moodle": "a download from Moodle",
    "blackboard": "a download from Blackboard",
    "nbgrader": "nbgrader's exchange",
    "folders": "folders of students",
}
RECLAIMED = "Of these, replacing another account's files: the answers in them are no longer final"
UNDECIDED = (
    "Of these, replacing another account's files after feedback on them: the answers in them stay final, and a person "
    "has to decide. If the student had no part in those files, remove reports/ASSIGNMENT/first-answers/STUDENT.json "
    "before you grade"
)
MAX_LISTED = 20  # files or students in one list, so that a class of 300 can be read


@dataclass
class Changes:
    """What collecting changes: the attempts that count now.

    Attributes:
        first: those of students who had not handed in anything before.
        other: those that replace another one, each with the number of attempts.
        same: how many students there are for whom nothing changes.
        earlier: the new attempts that do not count, because there is a later one.
        not_own: those that do not count, because another account owns them, and there is one that the student owns.
        reclaimed: the students' own attempts that replace another account's, each with the name of that account.
        undecided: the same, where the replaced answers stay final because feedback on them may have been written.
    """

    first: list[Attempt] = field(default_factory=list)
    other: list[tuple[Attempt, int]] = field(default_factory=list)
    same: int = 0
    earlier: list[Attempt] = field(default_factory=list)
    not_own: list[Attempt] = field(default_factory=list)
    reclaimed: list[tuple[Attempt, str]] = field(default_factory=list)
    undecided: list[tuple[Attempt, str]] = field(default_factory=list)


def collect(
    course: Course,
    assignment: str,
    sources: Sequence[Path],
    zone: tzinfo,
    *,
    told: str = "",
    unlisted: bool = False,
    dry_run: bool = False,
) -> str:
    """Collect an assignment, and return what was done, as text for a terminal.

    The last attempt of each student counts; in an exam, the last one that came in time.

    Args:
        course: the class.
        assignment: its name.
        sources: folders, or zips from Canvas, Moodle or Blackboard.
        zone: the time zone of times that are given without one.
        told: the system that named the files; "" to recognise it.
        unlisted: whether to collect from students who are not on the class list as well.
        dry_run: whether to report the changes without writing anything.

    Raises:
        GradingError: there is no such assignment, a source or a student's first answers cannot be read, or a run on
            this class is in progress.
    """
    course.require(assignment)
    url = course.config().CourseDirectory.db_url
    known = students(url)
    who = KnownStudents(known, on_list(course, known))
    attempts, exam = Attempts(course, assignment), exam_of(course, assignment)
    asked = Asked(assignment, course.assignments(), who.ids, zone)
    with nullcontext() if dry_run else lock(course):
        before = {student: attempts.of(student) for student in attempts.students()}
        keep, notebooks = _not_kept if dry_run else attempts.keep, course.notebooks(assignment)
        reading = Reading(
            asked, who, keep, notebooks=notebooks, numbered=_numbered(before), told=told, unlisted=unlisted
        )
        for source in tqdm(sources, unit="source", desc="collect", disable=None):
            _require_elsewhere(source, course)
            reading.read(source)
        changes = _changed(attempts, reading.collected.attempts, before, exam)
        if not dry_run:
            _write(attempts, changes, exam)
    marked = marked_by_hand(url, assignment)
    said = [*_shown(reading.collected, changes, marked, known)]
    said += _outside(exam, [one for new in reading.collected.attempts.values() for one in new], known) if exam else []
    absent = differences(course, assignment, [attempt.student for attempt in changes.first]).absent
    said += _block("On the class list, but nothing handed in", [_label(student, known) for student in absent])
    said.append("This was a dry run: nothing was written." if dry_run else f"Next: python -m grading run {assignment}")
    return "\n".join(said)


def _write(attempts: Attempts, changes: Changes, exam: Exam | None) -> None:
    """Put the attempts that count now in place."""
    course, assignment = attempts.course, attempts.assignment
    audit = RunState(course, assignment).audit
    for attempt, owner in changes.reclaimed:
        forget_first_answers(course, assignment, attempt.student, owner, audit)
    for attempt in (*changes.first, *(attempt for attempt, _ in changes.other)):
        attempts.submit(attempt)
    if exam:
        log_attempts(attempts, exam, audit)


def _not_kept(attempt: Attempt, contents: Mapping[str, bytes]) -> None:
    """Keep nothing: this is a dry run."""


def _numbered(before: Mapping[str, Sequence[Attempt]]) -> set[str]:
    """Return the students who have an attempt from Moodle with the number that is in their id."""
    paths = ((student, path) for student, kept in before.items() for one in kept for path in one.files.values())
    return {student for student, path in paths if (match := in_moodle(path.split("/"))) and match["student"] == student}


def _require_elsewhere(source: Path, course: Course) -> None:
    if source.resolve().is_relative_to(course.folder):
        raise GradingError(f"{source} is in the class's folder; expected a download outside it")


def _changed(
    attempts: Attempts,
    came: Mapping[str, Sequence[Attempt]],
    before: Mapping[str, Sequence[Attempt]],
    exam: Exam | None,
) -> Changes:
    """Return what changes if the last attempt of each student counts, or the last one that came in time for an exam."""
    changes = Changes()
    for student, new in sorted(came.items()):
        there, old = attempts.submitted(student), before.get(student, [])
        by_hand = [there] if there and there.digest not in {one.digest for one in old} else []
        # Of one name, the student's own attempt counts, and of these the old one, which knows when it was received.
        own_last = sorted((*by_hand, *new, *old), key=lambda one: not one.other_owner)
        everything = {one.name: one for one in own_last}
        may_count = that_may_count(everything.values())
        last = max(may_count, key=lambda one: rank(exam, one))
        if there is None:
            changes.first.append(last)
        elif there.digest != last.digest or (_other_owner(there.digest, (*by_hand, *old)) and not last.other_owner):
            changes.other.append((last, len(may_count)))
            if (owner := _other_owner(there.digest, everything.values())) and not last.other_owner:
                final = stay_final(attempts.course, attempts.assignment, student)
                (changes.undecided if final else changes.reclaimed).append((last, owner))
        else:
            changes.same += 1
            known = {there.digest, *(one.digest for one in old)}
            kept = [one for one in new if one.digest not in known]
            changes.earlier += [one for one in kept if one in may_count]
            changes.not_own += [one for one in kept if one not in may_count]
    return changes


def _other_owner(content: str, attempts: Iterable[Attempt]) -> str:
    """Return which other account owned all attempts with a digest, or "" if the student owned one."""
    owners = [one.other_owner for one in attempts if one.digest == content]
    return owners[0] if owners and all(owners) else ""


def _shown(
    collected: Collected, changes: Changes, by_hand: Collection[str], known: Mapping[str, StudentEntry]
) -> Iterator[str]:
    for source, system in collected.systems.items():
        yield f"{plain(source)}: recognised as {NAMES[system]}"
    yield from _block(
        "Collected for the first time", [_label(one.student, known) + _when(one) for one in changes.first]
    )
    other = [f"{_label(one.student, known)}: the last of {n}{_when(one)}" for one, n in changes.other]
    yield from _block("Another attempt counts now", other)
    marked = [_label(one.student, known) for one, _ in changes.other if one.student in by_hand]
    yield from _block("Of these, marked by hand: the marks stay, and Formgrader lists them for another look", marked)
    yield from _replaced_or_kept(changes, known)
    yield f"The same as before: {counted(changes.same, 'student')}."
    unknown = [f"{plain(text)}: {counted(n, 'file')}" for text, n in sorted(collected.unknown.items())]
    yield from _block("Not on the class list, so not collected (--unlisted collects them)", unknown)
    yield from _block("Refused", [f"{plain(file)}: it {why}" for file, why in collected.refused])
    if collected.by_name:
        yield f"Recognised by name, because Moodle's numbers differ: {counted(len(collected.by_name), 'student')}."
    yield from _block("Notes", map(plain, collected.notes))
    if collected.ignored:
        kinds = ", ".join(f"{n} {plain(kind)}" for kind, n in collected.ignored.most_common(10))
        yield f"Left out, because only notebooks and zips of them are collected: {kinds}."


def _replaced_or_kept(changes: Changes, known: Mapping[str, StudentEntry]) -> Iterator[str]:
    """Yield whose own attempts replace those of another account, and which attempts are kept but do not count."""
    for title, own in ((RECLAIMED, changes.reclaimed), (UNDECIDED, changes.undecided)):
        named = [f"{_label(one.student, known)}: {plain(owner)} owned the earlier files" for one, owner in own]
        yield from _block(title, named)
    later = [_label(one.student, known) + _when(one) for one in changes.earlier]
    yield from _block("Kept, but a later attempt counts", later)
    others = [f"{_label(one.student, known)}, owned by {plain(one.other_owner)}" for one in changes.not_own]
    yield from _block("Kept, but an attempt that the student owns counts", others)


def _outside(exam: Exam, came: Iterable[Attempt], known: Mapping[str, StudentEntry]) -> list[str]:
    """Return the attempts that did not, or may not, come within the window of an exam."""
    windows = [(one, window_of(exam, one)) for one in came]
    lines = [f"{_label(one.student, known)}: {window}{_when(one)}" for one, window in windows if window != IN_TIME]
    return _block("Outside the window of the exam, or at an unknown time", lines)


def _block(title: str, lines: Iterable[str]) -> list[str]:
    listed = [f"  {line}" for line in lines]
    more = [f"  and {len(listed) - MAX_LISTED} more"] if len(listed) > MAX_LISTED else []
    return [f"{title} ({len(listed)}):", *listed[:MAX_LISTED], *more] if listed else []


def _label(student: str, known: Mapping[str, StudentEntry]) -> str:
    entry = known.get(student)
    return f"{entry.name} ({plain(student)})" if entry and entry.name else plain(student)


def _when(attempt: Attempt) -> str:
    return f", handed in {attempt.timestamp}" if attempt.timestamp else ""
