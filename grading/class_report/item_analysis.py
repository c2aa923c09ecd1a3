"""How each question fared: how hard it was, and whether those who did well elsewhere did well on it too.

Source: Crocker and Algina, Introduction to Classical and Modern Test Theory (1986), chapter 14.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import correlation, fmean

from grading.report import Row
from grading.text import counted

HARD, EASY = 0.30, 0.80  # the band of difficulty in which a question tells students apart well
WEAK = 0.10  # discrimination below which a question measures something different from the others
ENOUGH = 30  # with fewer answers, a good question (0.4) falls below WEAK by chance in more than one class in twenty
SHARE_TOLERANCE = 1e-9  # shares of the points that differ by less count as equal, because of rounding


@dataclass(frozen=True)
class Item:
    """One question.

    Attributes:
        question: its name in the gradebook.
        points: what it can earn.
        n: how many answers count: those in readable submissions that were attempted and are not still to be marked by
            hand.
        difficulty: the mean share of the points, 0 (nobody) to 1 (everybody); None if there is no answer.
        discrimination: the correlation, from -1 to 1, of its score with the share of the points that the same student
            earned on all **other** questions; None if it is undefined.
        flags: what an instructor should look at.
        note: why the discrimination is undefined, or was not judged; "" if there is nothing to say.
        untried: the number of readable submissions in which it was left as it was handed out.
    """

    question: str
    points: float
    n: int
    difficulty: float | None
    discrimination: float | None
    flags: tuple[str, ...] = ()
    note: str = ""
    untried: int = 0


def analyse_items(rows: Sequence[Row]) -> list[Item]:
    """Return what is known about each question that earns points, in the order of the assignment."""
    known = readable(rows)
    worth = {question: most for row in rows for question, (_, most) in row.scores.items() if most > 0}
    return [_item(question, most, known) for question, most in worth.items()]


def readable(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of submissions that could be read: the others say nothing about any question."""
    return [row for row in rows if row.outcome.verdict.informs]


def _item(question: str, most: float, rows: Sequence[Row]) -> Item:
    untried = sum(question in row.not_attempted for row in rows)
    read = [row for row in rows if _counts(row, question)]
    shares = [row.scores[question][0] / most for row in read]
    difficulty = fmean(shares) if shares else None
    discrimination, note = _discrimination(shares, [_rest(row, question) for row in read])
    if not note and len(shares) < ENOUGH:
        note = f"not judged: {counted(len(shares), 'answer')}, fewer than {ENOUGH}"
    flags = _difficulty_flags(difficulty)
    if not note and discrimination is not None and discrimination < WEAK:
        flags.append("low discrimination")
    return Item(question, most, len(shares), difficulty, discrimination, tuple(flags), note, untried)


def _counts(row: Row, question: str) -> bool:
    """Tell whether a question was attempted, and is not still to be marked by hand."""
    return question in row.scores and question not in row.unread and question not in row.not_attempted


def _difficulty_flags(difficulty: float | None) -> list[str]:
    if difficulty is None or HARD <= difficulty <= EASY:
        return []
    return ["hard" if difficulty < HARD else "easy"]


def _rest(row: Row, question: str) -> float | None:
    """Return the share of the points of all other questions that a student earned, or None if there are none."""
    others = [pair for name, pair in row.scores.items() if name != question and _counts(row, name)]
    most = fsum(points for _, points in others)
    return fsum(score for score, _ in others) / most if most > 0 else None


def _discrimination(shares: Sequence[float], rests: Sequence[float | None]) -> tuple[float | None, str]:
    """Return the correlation, or None and why there is none."""
    pairs = [(share, rest) for share, rest in zip(shares, rests, strict=True) if rest is not None]
    if len(pairs) < 2:
        return None, "undefined: fewer than two answers to compare"
    own, others = zip(*pairs, strict=True)
    if max(own) - min(own) < SHARE_TOLERANCE:
        return None, "undefined: everybody earned the same"
    if max(others) - min(others) < SHARE_TOLERANCE:
        return None, "undefined: everybody earned the same on the rest"
    return max(-1.0, min(1.0, correlation(own, others))), ""
