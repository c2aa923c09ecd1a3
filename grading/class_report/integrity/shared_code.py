"""Find what students' code has in common with the files of an instructor, whatever the names in it are.

Chapters of the book are there to be used, so code is not compared with them. What was given is ignored, and so is what
the solution has, and what more than a third of the class wrote.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from grading.class_report.integrity.known_texts import KnownText, Match
from grading.class_report.similarity import Tokenized, passages, tokenized
from grading.class_report.student_code import CodeCell, given_code
from grading.course import Course

MIN_WORDS = 60  # about eight lines
MAX_PASSAGES = 5


def shared_code(
    course: Course, assignment: str, students: Iterable[str], texts: Sequence[KnownText]
) -> Iterator[Match]:
    """Yield what students' code has in common with the files of an instructor."""
    sources = {known.name: Tokenized([CodeCell("the known text", known.text)]) for known in texts if not known.given}
    if not sources:
        return
    written, _ = tokenized(course, assignment, students)  # the report on similarity says whose was left out
    ignored = _ignored(written.values(), given_code(course, assignment))
    for student, text in written.items():
        for name, source in sources.items():
            common = (text.all_runs() & source.all_runs()) - ignored
            if (words := len(text.covered(common))) >= MIN_WORDS:
                yield Match(student, name, "code", words, passages(text, source, common)[:MAX_PASSAGES])


def _ignored(written: Collection[Tokenized], given: Iterable[str]) -> set[int]:
    """Return the runs that are no evidence: those that were given, or that many students wrote."""
    count = Counter(run for text in written for run in text.all_runs())
    common = {run for run, authors in count.items() if authors > max(2, len(written) / 3)}
    return common.union(*(Tokenized([CodeCell("", source)]).all_runs() for source in given))
