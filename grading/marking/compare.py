"""Compare the marks of answers that two people marked: over all answers, and for each question and criterion.

The table `agreement.csv` among the reports has a row for each.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grading.csv_file import to_csv
from grading.marking.agreement import cohens_kappa
from grading.marking.shares import Share
from grading.outcome import plain
from grading.report import cell
from grading.text import counted, points

MIN_PAIRS = 2  # answers that two assistants have marked, so that there is something to compare
MAX_LISTED = 20
Marks = list[tuple[float, float]]
TITLES = ("question", "criterion", "answers marked twice", "kappa", "kappa with quadratic weights")


@dataclass(frozen=True)
class Given:
    """The points that an assistant gave for an answer, also by criterion if the question has a rubric."""

    points: float
    criteria: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """The points that two assistants gave for the same answer."""

    share: Share
    first: Given
    second: Given


def pairs(shares: Mapping[str, Share], marks: Mapping[str, Given]) -> list[Pair]:
    """Return the answers that two assistants have marked, from the shares and the marks by their codes."""
    marked = [(share, marks[code]) for code, share in shares.items() if code in marks]
    first = {(share.student, share.question): mark for share, mark in marked if not share.second}
    return [
        Pair(share, first[where], mark)
        for share, mark in marked
        if share.second and (where := (share.student, share.question)) in first
    ]


def compared(found: Sequence[Pair]) -> list[str]:
    """Return how well two assistants agree, and where they differ most, as lines for a terminal."""
    if len(found) < MIN_PAIRS:
        return [f"{counted(len(found), 'answer')} marked twice: too few to compare"]
    said = [f"{len(found)} answers marked twice: {_in_words([(one.first.points, one.second.points) for one in found])}"]
    for (question, criterion), marks in _parts(found).items():
        part = plain(f"{question}: {criterion}" if criterion else question)
        said.append(f"  {part} ({counted(len(marks), 'answer')}): {_in_words(marks)}")
    apart = sorted(found, key=lambda one: -abs(one.first.points - one.second.points))
    return said + [
        f"  {plain(one.share.student)}: {plain(one.share.question)}: {points(one.first.points)} and "
        f"{points(one.second.points)}"
        for one in apart[:MAX_LISTED]
        if one.first.points != one.second.points
    ]


def agreement_table(found: Sequence[Pair]) -> bytes:
    """Return `agreement.csv`. A question with a rubric has a row for the whole mark and one for each criterion."""
    rows = [
        (cell(question), cell(criterion), len(marks), *([f"{kappa:.3f}" for kappa in _kappas(marks)] or ["", ""]))
        for (question, criterion), marks in _parts(found).items()
    ]
    return to_csv([TITLES, *rows]).encode()


def _parts(found: Sequence[Pair]) -> dict[tuple[str, str], Marks]:
    """Return both marks for each question, and for each criterion that both used, in a fixed order."""
    parts = defaultdict[tuple[str, str], Marks](list)
    for one in found:
        parts[one.share.question, ""].append((one.first.points, one.second.points))
        for name in one.first.criteria.keys() & one.second.criteria.keys():
            parts[one.share.question, name].append((one.first.criteria[name], one.second.criteria[name]))
    return dict(sorted(parts.items()))


def _kappas(marks: Marks) -> list[float]:
    """Return kappa, unweighted and with quadratic weights, or nothing if there are too few answers."""
    first, second = zip(*marks, strict=True)
    return [cohens_kappa(first, second, weighted=weighted) for weighted in (False, True) if len(marks) >= MIN_PAIRS]


def _in_words(marks: Marks) -> str:
    if not (kappas := _kappas(marks)):
        return "too few to compare"
    return f"Cohen's kappa {kappas[0]:.2f}, with quadratic weights {kappas[1]:.2f}"
