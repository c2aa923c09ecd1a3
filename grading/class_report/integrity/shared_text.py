"""Find what written answers have in common with known texts, word for word, apart from what was given."""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

from grading.class_report.integrity.known_texts import KnownText, Match
from grading.class_report.similarity import MAX_PASSAGE_LINES, Passage
from grading.class_report.student_code import NotComparableError, written_text
from grading.course import Course
from grading.outcome import plain

RUN = 12  # words in a row that have to be the same
MIN_WORDS = 24  # of a written answer that have to be in such runs: about two lines
MAX_PASSAGES, EXCERPT_WIDTH = 5, 100
A_WORD = re.compile(r"[^\W_]+")

Place = tuple[int, int]  # the number of a known text, and of the word in it with which a run begins


@dataclass(frozen=True)
class Words:
    """A text without invisible characters, the places of its words, and its runs."""

    text: str
    places: Sequence[tuple[int, int]]
    runs: Sequence[int]

    @classmethod
    def of(cls, text: str) -> "Words":
        """Split a text."""
        visible = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
        words = A_WORD.findall(visible.casefold())
        runs = [hash(tuple(words[i : i + RUN])) for i in range(len(words) - RUN + 1)]
        return cls(visible, [match.span() for match in A_WORD.finditer(visible)], runs)

    def excerpt(self, first: int, last: int) -> str:
        """Return the text from one word to another, in short lines."""
        lines = wrap(self.text[self.places[first][0] : self.places[last][1]], EXCERPT_WIDTH)
        return "\n".join(map(plain, lines[:MAX_PASSAGE_LINES]))


def shared_text(
    course: Course, assignment: str, students: Iterable[str], texts: Sequence[KnownText]
) -> Iterator[Match]:
    """Yield what students' written answers have in common with known texts."""
    ignored = {run for cell in _released(course, assignment) for run in Words.of(cell).runs}
    sources = [Words.of(known.text) for known in texts]
    index = {run: (n, at) for n, words in enumerate(sources) for at, run in enumerate(words.runs) if run not in ignored}
    for student in students:
        try:
            cells = [(cell.name, Words.of(cell.source)) for cell in written_text(course, assignment, student)]
        except NotComparableError:
            continue  # there is no executed notebook, or far too much text; the verdict says so
        shared = defaultdict[int, list[Passage]](list)
        for name, words in cells:
            for n, passage in _passages(name, words, index, sources):
                shared[n].append(passage)
        for n, found in shared.items():
            if (total := sum(passage.words for passage in found)) >= MIN_WORDS:
                longest = sorted(found, key=lambda passage: -passage.words)[:MAX_PASSAGES]
                yield Match(student, texts[n].name, "text", total, tuple(longest))


def _passages(
    name: str, words: Words, index: Mapping[int, Place], sources: Sequence[Words]
) -> Iterator[tuple[int, Passage]]:
    """Yield the stretches of a cell that are in a known text, each with the number of that text."""
    hits = [(i, *index[run]) for i, run in enumerate(words.runs) if run in index]
    for (n, _), group in groupby(hits, key=lambda hit: (hit[1], hit[2] - hit[0])):  # equally far apart in both
        stretch = list(group)
        (i, _, at), length = stretch[0], stretch[-1][0] - stretch[0][0] + RUN
        here, there = words.excerpt(i, i + length - 1), sources[n].excerpt(at, at + length - 1)
        yield n, Passage(length, plain(name), here, "the known text", there)


def _released(course: Course, assignment: str) -> Iterator[str]:
    """Yield the text of the cells that were given."""
    for name in course.notebooks(assignment):
        file = course.folder / "release" / assignment / name
        if file.is_file():
            yield from ("".join(cell["source"]) for cell in json.loads(file.read_text(encoding="utf-8"))["cells"])
