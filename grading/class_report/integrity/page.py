"""The page that puts evidence side by side: whose work is alike, known texts, shortcuts, and fast answers."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grading.class_report.class_page import class_page
from grading.class_report.integrity.fast import Fast, fast_students
from grading.class_report.integrity.known_texts import KnownTexts, Match, known_texts
from grading.class_report.integrity.shared_code import shared_code
from grading.class_report.integrity.shared_text import shared_text
from grading.class_report.sections import alike
from grading.class_report.similarity import SimilarityReport
from grading.class_settings import read_class
from grading.course import Course
from grading.options_shown import ANOTHER_ORDER
from grading.report import Row
from grading.text import counted

PROCESS = "book/teaching/academic-integrity.html"  # in the book
# A place in a student's code that is flagged (grading/static_checks), or options of another student.
SHORTCUT = re.compile(rf": cell .+?, line \d+: |{re.escape(ANOTHER_ORDER.partition('{')[0])}")


@dataclass
class Evidence:
    """The evidence of each kind about one student."""

    student: str
    alike: list[str] = field(default_factory=list)
    known: list[Match] = field(default_factory=list)
    shortcuts: list[str] = field(default_factory=list)
    fast: Fast | None = None

    @property
    def kinds(self) -> int:
        """How many kinds of evidence there are."""
        return sum(map(bool, (self.alike, self.known, self.shortcuts, self.fast)))


def integrity_page(
    course: Course, assignment: str, rows: Sequence[Row], similarity: SimilarityReport, folder: Path, book: str
) -> str:
    """Return the page.

    Args:
        course: the class.
        assignment: its name.
        rows: the results of the class.
        similarity: which submissions are nearly the same.
        folder: where the page goes; the links to the feedback pages start there.
        book: the address of the built book, or "" for no link to the process to follow.
    """
    students = [row.outcome.student for row in rows if not row.absent]
    fast, about_fast = fast_students(course, assignment, rows)
    known = known_texts(course, assignment)
    found = evidence(rows, similarity, matches(course, assignment, students, known), fast)
    return class_page(
        "integrity.html.j2",
        rows,
        assignment,
        folder,
        title=read_class(course).title,
        found=found,
        similarity=similarity,
        about_similarity=alike(similarity),
        about_fast=about_fast,
        known=known,
        process=f"{book.rstrip('/')}/{PROCESS}" if book else "",
        students=counted(len(students), "submission"),
    )


def matches(course: Course, assignment: str, students: Sequence[str], known: KnownTexts) -> list[Match]:
    """Return what students have in common with known texts, the most words first."""
    where = (course, assignment, students, known.texts)
    return sorted([*shared_text(*where), *shared_code(*where)], key=lambda one: (-one.words, one.student, one.source))


def evidence(
    rows: Sequence[Row], similarity: SimilarityReport, shared: Iterable[Match], fast: Iterable[Fast]
) -> list[Evidence]:
    """Return the evidence about each student for whom there is any, most kinds first."""
    found = _Found()
    for pair in similarity.pairs:
        found[pair.first].alike.append(pair.second)
        found[pair.second].alike.append(pair.first)
    for match in shared:
        found[match.student].known.append(match)
    for row in rows:
        if flags := [flag for flag in row.outcome.flags if SHORTCUT.search(flag)]:
            found[row.outcome.student].shortcuts = flags
    for one in fast:
        found[one.student].fast = one
    return sorted(found.values(), key=lambda each: (-each.kinds, each.student))


class _Found(defaultdict[str, Evidence]):
    def __missing__(self, student: str) -> Evidence:
        return self.setdefault(student, Evidence(student))
