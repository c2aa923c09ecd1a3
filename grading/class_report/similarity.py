"""Find submissions that are nearly the same, even if parts were renamed, moved or reformatted.

Each submission becomes the set of its fingerprints: runs of GRAM words, of which winnowing keeps about 2/(WINDOW + 1).
Runs that were given, or that more than a third of the class wrote, say nothing about a pair, because a small exercise
has one obvious answer. A pair is reported only if enough words remain that hardly anybody else wrote.

A missed copy costs less than a false accusation. So students who copied only one short function are not found, nor is
text that more than a third of the class shares. A pair is a reason to look, not a verdict.

Source: Schleimer, Wilkerson and Aiken, Winnowing: Local Algorithms for Document Fingerprinting (SIGMOD 2003).
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from zlib import crc32

from grading import bounded_worker
from grading.class_report.student_code import CodeCell, NotComparableError, given_code, written_code
from grading.class_report.tokens import Token, tokens
from grading.course import Course
from grading.outcome import plain
from grading.text import counted

GRAM = 10  # words in a run
WINDOW = 5  # of this many runs in a row at least one is kept, so any shared GRAM + WINDOW - 1 words are found
MIN_SIMILARITY = 0.75  # the share of the smaller one's fingerprints that two submissions have in common
MAX_AUTHORS = 10  # a run is rare if at most so many students, and at most a tenth of the class, wrote it
MIN_DISTINCTIVE_WORDS = 80  # words in rare runs that a pair has to share
MAX_PASSAGES = 12  # of a pair; the longest are kept
MAX_PASSAGE_LINES, MAX_LINE_LENGTH = 40, 160  # lines of a passage, and characters of a line, that are kept
TOKENIZING_SECONDS = 10  # processor time to read the code of one submission; an honest one takes 0.02 s


@dataclass(frozen=True)
class Passage:
    """What a pair shares in two cells: their names, and the lines of each from the first shared one to the last."""

    words: int
    first_cell: str
    first: str
    second_cell: str
    second: str


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike.

    Attributes:
        first, second: the students.
        alike: the fingerprints they share, as a share of those that the smaller one has.
        words: how many words they share that were neither given nor written by more than a third of the class.
        distinctive: how many of these hardly anybody else wrote.
        passages: where these words are.
    """

    first: str
    second: str
    alike: float
    words: int
    distinctive: int
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class SimilarityReport:
    """The pairs of a class, how many submissions were compared, and which were not: (student, why)."""

    compared: int
    left_out: tuple[tuple[str, str], ...]
    pairs: tuple[Pair, ...]


def compare_submissions(course: Course, assignment: str, students: Iterable[str]) -> SimilarityReport:
    """Compare what students handed in to an assignment. Each submission is read in a bounded child."""
    texts, left_out = tokenized(course, assignment, students)
    return SimilarityReport(len(texts), tuple(left_out), tuple(_pairs(texts, given_code(course, assignment))))


def tokenized(
    course: Course, assignment: str, students: Iterable[str]
) -> tuple[dict[str, "Tokenized"], list[tuple[str, str]]]:
    """Return the code of each student, and whose was left out, and why."""
    texts: dict[str, Tokenized] = {}
    left_out = []
    for student in students:
        try:
            cells = written_code(course, assignment, student)
            texts[student] = Tokenized(
                cells, bounded_worker.value(_read, [cell.source for cell in cells], seconds=TOKENIZING_SECONDS)
            )
        except (NotComparableError, bounded_worker.LostError) as reason:
            left_out.append((student, str(reason)))
        except bounded_worker.ExceededError as reason:
            left_out.append((student, f"comparing it {reason}"))
    return texts, left_out


Words = tuple[Sequence[int], Sequence[int]]  # the runs of a cell, and the line of each of its words


class Tokenized:
    """A submission: its cells and, for each, the runs of GRAM words in order, and the line of each word.

    All students' submissions are in memory together, so what can be recomputed from a cell's source is not kept.
    """

    def __init__(self, cells: Sequence[CodeCell], words: Iterable[Words] | None = None) -> None:
        words = words or [_words_of(cell.source) for cell in cells]
        self.cells = cells
        self.runs, self.lines = [], []
        for runs, lines in words:
            self.runs.append(array("I", runs))
            self.lines.append(array("I", lines))

    def all_runs(self) -> set[int]:
        """Return the runs of all cells."""
        return {run for runs in self.runs for run in runs}

    def covered(self, wanted: Collection[int]) -> set[tuple[int, int]]:
        """Return the places, (cell, word), of all words that belong to one of the wanted runs."""
        starts = ((cell, i) for cell, runs in enumerate(self.runs) for i, run in enumerate(runs) if run in wanted)
        return {(cell, word) for cell, start in starts for word in range(start, start + GRAM)}


class _Comparison:
    """All submissions, and which of their runs are informative."""

    def __init__(self, texts: Mapping[str, Tokenized], released: Iterable[str]) -> None:
        self.texts = texts
        count = Counter(run for text in self.texts.values() for run in text.all_runs())
        n = len(self.texts)
        self.ignored = {run for source in released for run in _runs(tokens(source))}
        self.ignored |= {run for run, students in count.items() if students > max(2, n / 3)}
        self.rare = {
            run for run, students in count.items() if students <= max(2, min(MAX_AUTHORS, n // 10))
        } - self.ignored
        self.fingerprints = {student: self._fingerprints(text) for student, text in self.texts.items()}

    def _fingerprints(self, text: Tokenized) -> "array[int]":
        parts = (part for runs in text.runs for part in _parts(runs, self.ignored))
        return array("I", {run for part in parts for run in winnow(part)})

    def candidates(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs that share enough rare fingerprints, without looking at all other pairs."""
        who: defaultdict[int, list[str]] = defaultdict(list)
        for student in sorted(self.texts):
            for run in self.rare.intersection(self.fingerprints[student]):
                who[run].append(student)
        shared = Counter(pair for students in who.values() for pair in combinations(students, 2))
        yield from (pair for pair, times in shared.items() if times >= MIN_DISTINCTIVE_WORDS // (GRAM + WINDOW - 1))

    def pair(self, first: str, second: str) -> Pair | None:
        """Return what two students share, or None if it is too little to report."""
        one, other = set(self.fingerprints[first]), set(self.fingerprints[second])
        alike = len(one & other) / min(len(one), len(other))
        if alike < MIN_SIMILARITY:
            return None
        texts = self.texts[first], self.texts[second]
        common = (texts[0].all_runs() & texts[1].all_runs()) - self.ignored
        words, distinctive = (min(self._words(text, runs) for text in texts) for runs in (common, common & self.rare))
        if distinctive < MIN_DISTINCTIVE_WORDS:
            return None
        return Pair(first, second, alike, words, distinctive, passages(*texts, common))

    def _words(self, text: Tokenized, runs: Collection[int]) -> int:
        """Return how many words belong to one of the runs, and to no run that is ignored."""
        return len(text.covered(runs) - text.covered(self.ignored))


def pairs(everybody: Mapping[str, Sequence[CodeCell]], released: Iterable[str]) -> list[Pair]:
    """Return the pairs of students who wrote nearly the same, the most alike first.

    Args:
        everybody: the cells that each student wrote.
        released: code that nobody had to write: what was released, and the solution.
    """
    return _pairs({student: Tokenized(cells) for student, cells in everybody.items()}, released)


def _pairs(texts: Mapping[str, Tokenized], released: Iterable[str]) -> list[Pair]:
    whole = _Comparison(texts, released)
    found = filter(None, (whole.pair(first, second) for first, second in whole.candidates()))
    return sorted(found, key=lambda pair: (-pair.alike, -pair.distinctive, pair.first, pair.second))


def _read(sources: Sequence[str]) -> Iterator[list[Words]]:
    yield [_words_of(source) for source in sources]


def _words_of(source: str) -> Words:
    words = tokens(source)
    return _runs(words), [word.line for word in words]


def _runs(words: Sequence[Token]) -> list[int]:
    """Return a number for each run of GRAM words, the same in every process."""
    texts = [word.text for word in words]
    return [crc32(" ".join(texts[i : i + GRAM]).encode("utf-8", "replace")) for i in range(len(texts) - GRAM + 1)]


def _parts(runs: Sequence[int], ignored: Collection[int]) -> Iterator[list[int]]:
    """Yield the stretches of runs between those that are ignored."""
    for is_ignored, part in groupby(runs, lambda run: run in ignored):
        if not is_ignored:
            yield list(part)


def winnow(runs: Sequence[int]) -> list[int]:
    """Return the smallest of every WINDOW runs in a row, the last one in case of ties, and each choice only once."""
    kept: list[int] = []
    for start in range(max(1, len(runs) - WINDOW + 1)):
        window = runs[start : start + WINDOW]
        at = min(range(len(window)), key=lambda i: (window[i], -i)) + start
        if not kept or kept[-1] != at:
            kept.append(at)
    return [runs[at] for at in kept]


def passages(first: Tokenized, second: Tokenized, common: Collection[int]) -> tuple[Passage, ...]:
    """Return where two submissions share runs, by the cells that contain them, the longest first."""
    where = {run: (cell, i) for cell, runs in enumerate(second.runs) for i, run in enumerate(runs) if run in common}
    places: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for cell, runs in enumerate(first.runs):
        for i, run in enumerate(runs):
            if run in where:
                other, j = where[run]
                places[cell, other].append((i, j))
    found = (_passage(first, second, cells, starts) for cells, starts in places.items())
    return tuple(sorted(found, key=lambda passage: -passage.words)[:MAX_PASSAGES])


def _passage(first: Tokenized, second: Tokenized, cells: tuple[int, int], starts: list[tuple[int, int]]) -> Passage:
    here, there = zip(*starts, strict=True)
    words = len({word for start in here for word in range(start, start + GRAM)})
    names = [plain(text.cells[cell].name) for text, cell in zip((first, second), cells, strict=True)]
    return Passage(words, names[0], _lines(first, cells[0], here), names[1], _lines(second, cells[1], there))


def _lines(text: Tokenized, cell: int, starts: Sequence[int]) -> str:
    """Return the lines of a cell from the first to the last of the runs that start there."""
    first, last = text.lines[cell][min(starts)], text.lines[cell][max(starts) + GRAM - 1]
    lines = text.cells[cell].source.splitlines()[first - 1 : last]
    more = [f"… {counted(over, 'more line')}"] if (over := len(lines) - MAX_PASSAGE_LINES) > 0 else []
    return "\n".join([*(plain(line.expandtabs(4)[:MAX_LINE_LENGTH]) for line in lines[:MAX_PASSAGE_LINES]), *more])
