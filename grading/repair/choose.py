"""Choose the right notebook among the files that came, by its name and by the assignment's cells in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from grading.repair.decode import decode, merge_sides
from grading.repair.files import CandidateFile, CandidateFiles, missing
from grading.repair.match_cells import TemplateCell, match_cells
from grading.repair.messages import SEVERAL_FILES, RefusedError, Repair, UnreadableError, listed, printable
from grading.repair.parse import ParsedNotebook, parse_notebook
from grading.verdict import Verdict

# A file of any name is accepted with more than this share of the assignment's cells. A file of another
# assignment has up to 0.4 of them.
MIN_SHARE_OF_CELLS = 0.5


@dataclass(frozen=True)
class Chosen:
    """A file, what was read from it, and where the assignment's cells are in it; or why it could not be read."""

    file: CandidateFile
    submission: ParsedNotebook | None = None
    found: Mapping[int, int] = field(default_factory=dict)
    answered: int = 0
    repairs: tuple[Repair, ...] = ()
    wrong: str = ""

    def is_meant(self, expected: Sequence[TemplateCell]) -> bool:
        """Tell whether this may be the notebook: by its name, or by its cells."""
        return self.file.fits or len(self.found) > MIN_SHARE_OF_CELLS * len(expected)

    @property
    def rank(self) -> tuple[int | bool, ...]:
        """The key whose largest value wins.

        The file with exactly the expected name counts, unless nothing in it is answered; then the one with the most
        answers, the best name, or the newest.
        """
        exact, top = self.file.exact, not self.file.inside
        named = exact and self.answered > 0
        return (
            named,
            named and top,
            self.answered,
            exact,
            exact and top,
            self.file.fits,
            self.file.changed,
        )


def choose(came: CandidateFiles, name: str, expected: Sequence[TemplateCell]) -> Chosen:
    """Return the right notebook; its repairs include what was done to find it.

    Raises:
        RefusedError: none of the files is the notebook, or it cannot be read.

    """
    looked_into = (_look_into(file, expected) for file in came.files)
    several = sorted((one for one in looked_into if one.is_meant(expected)), key=lambda one: one.rank)
    if not several:
        raise RefusedError(Verdict.MISSING, missing(name, came.there), came.digest)
    *others, taken = several
    if taken.wrong:
        raise RefusedError(Verdict.UNREADABLE, f"{taken.file.entry} {taken.wrong}", came.digest)
    repairs = (*_how_it_was_found(taken, others, name), *taken.repairs)
    return Chosen(taken.file, taken.submission, taken.found, taken.answered, repairs)


def _look_into(file: CandidateFile, expected: Sequence[TemplateCell]) -> Chosen:
    if file.wrong:
        return Chosen(file, wrong=file.wrong)
    try:
        text, decoded = decode(file.data)
        submission = _reading(text, expected)
    except UnreadableError as wrong:
        return Chosen(file, wrong=str(wrong))
    found = match_cells(submission.cells, expected)
    answered = sum(
        expected[i].answer and _is_answered(submission.cells[at].source, expected[i]) for i, at in found.items()
    )
    return Chosen(file, submission, found, answered, (*decoded, *submission.repairs))


def _is_answered(source: str, expected: TemplateCell) -> bool:
    return source.strip() not in ("", expected.source.strip())


def _reading(text: str, expected: Sequence[TemplateCell]) -> ParsedNotebook:
    """Read a notebook; if Git could not merge it, read the side with more of the assignment's cells."""
    try:
        return parse_notebook(text)
    except UnreadableError:
        if (both := merge_sides(text)) is None:
            raise
    ours, theirs = (_or_reason(side) for side in both)
    readings = [side for side in (ours, theirs) if isinstance(side, ParsedNotebook)]
    if not readings:
        raise UnreadableError(
            f"contains unresolved Git merge conflicts, and neither side is a notebook: the first {ours}"
        )
    best = max(readings, key=lambda side: len(match_cells(side.cells, expected)))  # ours on a tie
    taken = "the first side" if best is ours else "the second side"
    repair = Repair("merge-conflict", f"The file contained unresolved Git merge conflicts; {taken} of each was used.")
    return ParsedNotebook(best.cells, best.kernel, (repair, *best.repairs))


def _or_reason(text: str) -> ParsedNotebook | UnreadableError:
    try:
        return parse_notebook(text)
    except UnreadableError as wrong:
        return wrong


def _how_it_was_found(taken: Chosen, others: Sequence[Chosen], wanted: str) -> Iterator[Repair]:
    file = taken.file
    if not file.exact:
        came = printable(file.entry.rpartition("/")[2])
        yield Repair("renamed-file", f"The file is named {came}; it was treated as {wanted}.")
    if file.inside:
        yield Repair("sub-folder", f"The file was in a subfolder: {file.entry}.")
    if others:
        left = listed([other.file.entry for other in others])
        yield Repair(
            "several-files",
            f"{SEVERAL_FILES}{file.entry} was chosen: {_why(taken, others)}. Not graded: {left}.",
        )


def _why(taken: Chosen, others: Sequence[Chosen]) -> str:
    if taken.file.exact:
        return "it has the expected name"
    tied = [other.file for other in others if other.answered == taken.answered]
    if not tied:
        return "it has the most answers"
    if taken.file.fits and not any(file.fits for file in tied):
        return "no other file has more answers, and its name fits best"
    fitting = " and a fitting name" if taken.file.fits else ""
    return f"it is the newest of the files with the most answers{fitting}"
