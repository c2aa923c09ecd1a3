"""Take the marks of assistants from their files: check, write and log them, and compare where two people marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grading.audit_log import AuditLog
from grading.course import Course, GradingError, log_file
from grading.csv_file import read_csv
from grading.gradebook.assignment import AssignmentGradebook
from grading.marking.agreement import cohens_kappa
from grading.marking.shares import MAX_SHARES_BYTES, TITLES, Share, read_shares
from grading.outcome import plain
from grading.run_state import RunState, lock
from grading.text import counted, points

MIN_PAIRS = 2  # answers that two have marked, so that there is something to compare
MAX_LISTED = 20


@dataclass(frozen=True)
class Mark:
    """What an assistant wrote about an answer."""

    share: Share
    points: float
    comment: str


def take(course: Course, assignment: str, files: Sequence[Path]) -> str:
    """Write the marks in the files to the gradebook and the log, and return what they are, as text for a terminal.

    A second mark goes only to the log, where it is compared with the first one.

    Raises:
        GradingError: a line does not hold a valid mark. All such lines are named, and nothing is written.
    """
    shares, marks, wrong = read_shares(course, assignment), [], []
    for file in files:
        found, problems = _read(file, shares)
        marks += found
        wrong += problems
    if wrong:
        raise GradingError("\n".join(["nothing was written, because these lines are wrong:", *wrong[:MAX_LISTED]]))
    with lock(course), AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        audit = RunState(course, assignment).audit
        before = logged(audit)
        new = [mark for mark in marks if before.get(mark.share.code) != mark.points]
        for mark in new:
            share = mark.share
            about = {"of": share.student, "question": share.question, "by": share.assistant, "points": mark.points}
            audit.noted({"marked": share.code, "second": share.second, **about})
            if not share.second:
                gradebook.mark(share.student, share.question, mark.points, mark.comment)
        pairs = _pairs(shares, logged(audit))
    unmarked = len(shares) - len(logged(audit))
    said = [f"{counted(len(new), 'new mark')}, {counted(unmarked, 'answer')} without one"]
    return "\n".join([*said, *_compared(pairs)])


def logged(audit: AuditLog) -> dict[str, float]:
    """Return the last mark that the log has for each code."""
    said = [entry.said for entry in audit.entries()[0]]
    return {str(one["marked"]): float(one["points"]) for one in said if "marked" in one}


def _read(file: Path, shares: Mapping[str, Share]) -> tuple[list[Mark], list[str]]:
    lines = read_csv(file, MAX_SHARES_BYTES, "a file of marks")
    if not lines or lines[0].cells[: len(TITLES)] != TITLES:
        raise GradingError(f"{file} should begin with the titles {','.join(TITLES)}")
    marks, wrong = [], []
    for line in lines[1:]:
        code, _, _, _, mark, comment = (*line.cells, *[""] * len(TITLES))[: len(TITLES)]
        share, value = shares.get(code), _number(mark)
        if share is None:
            wrong.append(f"  {file.name}, line {line.number}: no answer has the code {plain(code)!r}")
        elif mark.strip() and (value is None or not 0 <= value <= share.most):
            expected = f"a number from 0 to {points(share.most)}"
            wrong.append(f"  {file.name}, line {line.number}: the mark is {plain(mark)!r}; expected {expected}")
        elif value is not None:
            marks.append(Mark(share, value, comment.strip().removeprefix("'")))
    return marks, wrong


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def _pairs(shares: Mapping[str, Share], marks: Mapping[str, float]) -> list[tuple[Share, float, float]]:
    """Return the answers that two have marked, with both marks."""
    first = {
        (one.student, one.question): marks[code] for code, one in shares.items() if not one.second and code in marks
    }
    second = [(one, marks[code]) for code, one in shares.items() if one.second and code in marks]
    return [(one, first[where], mark) for one, mark in second if (where := (one.student, one.question)) in first]


def _compared(pairs: Sequence[tuple[Share, float, float]]) -> list[str]:
    if len(pairs) < MIN_PAIRS:
        return [f"{counted(len(pairs), 'answer')} marked by two: too few to compare"]
    first, second = [a for _, a, _ in pairs], [b for _, _, b in pairs]
    plainly, weighted = cohens_kappa(first, second), cohens_kappa(first, second, weighted=True)
    said = [f"{len(pairs)} answers marked by two: Cohen's kappa {plainly:.2f}, with quadratic weights {weighted:.2f}"]
    apart = sorted(pairs, key=lambda pair: -abs(pair[1] - pair[2]))
    return said + [
        f"  {plain(share.student)}: {plain(share.question)}: {points(a)} and {points(b)}"
        for share, a, b in apart[:MAX_LISTED]
        if a != b
    ]
