"""What the class got wrong most often: what to reteach, and which section of the book explains it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from grading.outcome import Finding
from grading.report import Row

MISSING_ANSWER_TITLES = ("not written yet", "not answered yet")  # titles for missing answers, which are not mistakes


@dataclass(frozen=True)
class CommonMistake:
    """A mistake and the students who made it. ``mistake`` is its id, or None if no check has a name for it."""

    question: str
    mistake: str | None
    title: str
    section: str
    link: str
    students: tuple[str, ...]


def common_mistakes(rows: Sequence[Row]) -> list[CommonMistake]:
    """Return all mistakes, the most frequent first. A student who made one twice on a question counts once.

    Wrong answers without a name count as one mistake if they have the same title.
    """
    made: defaultdict[tuple[str, str, str], dict[str, Finding]] = defaultdict(dict)
    for row in rows:
        for finding in (each for each in row.outcome.findings if each.title not in MISSING_ANSWER_TITLES):
            made[_same(finding)].setdefault(row.outcome.student, finding)
    return sorted((_common(by_student) for by_student in made.values()), key=_order)


def _same(finding: Finding) -> tuple[str, str, str]:
    """Return a key that two findings share if they are the same mistake."""
    return finding.question, finding.mistake or "", "" if finding.mistake else finding.title


def _common(by_student: dict[str, Finding]) -> CommonMistake:
    found = next((finding for finding in by_student.values() if finding.section), next(iter(by_student.values())))
    students = tuple(sorted(by_student))
    return CommonMistake(found.question, found.mistake, found.title, found.section, found.link, students)


def _order(mistake: CommonMistake) -> tuple[int, str, str]:
    return -len(mistake.students), mistake.question, mistake.title
