"""The contents of the page's sections, as plain data, which the templates escape and turn into HTML."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from urllib.parse import quote

from markupsafe import Markup

from grading.class_report.common_mistakes import CommonMistake
from grading.class_report.figures import bins, histogram, scatter
from grading.class_report.item_analysis import EASY, ENOUGH, HARD, WEAK, Item, readable
from grading.class_report.similarity import SimilarityReport
from grading.report import Row
from grading.text import points
from grading.verdict import Verdict

MIN_COMPARED = 10  # with fewer submissions, nobody can say what is common
ABOUT_QUESTIONS = (
    f"Difficulty is the mean share of the points: a question below {HARD:.2f} is hard, one above {EASY:.2f} is easy. "
    "Discrimination is the correlation with the score on all other questions; it is judged only if there are "
    f"{ENOUGH} answers or more. Answers that still have to be marked by hand are left out, and so are tasks that "
    "were not attempted."
)


@dataclass(frozen=True)
class Plot:
    """A drawing with its caption, and with its numbers if no other table shows them."""

    drawing: Markup
    caption: str
    lines: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Bar:
    """A mistake, the share of the students who made it, and the address of the section to reteach."""

    mistake: CommonMistake
    width: str
    count: str
    address: str


def figures(rows: Sequence[Row], alike: SimilarityReport) -> list[tuple[str, str, str]]:
    """Return the headline figures, each with its name, its value and a note."""
    earned, most = [row.score for row in readable(rows)], max((row.points for row in rows), default=0)
    waiting, unreadable = sum(row.to_read for row in rows), len(rows) - len(earned)
    found = [("Students", str(len(rows)), f"{unreadable} without a readable submission" if unreadable else "")]
    if earned:
        found += [
            (word, f"{of(earned):.1f}", f"of {points(most)} {'point' if most == 1 else 'points'}")
            for word, of in (("Mean", fmean), ("Median", median))
        ]
    found.append(("Answers to read", str(waiting), "to be marked by hand" if waiting else "all are marked"))
    found.append(("Flagged", str(sum(bool(row.outcome.flags) for row in rows)), "to look at"))
    found.append(("Alike", str(len(alike.pairs)), "pair" if len(alike.pairs) == 1 else "pairs"))
    return found


def scores(rows: Sequence[Row]) -> Plot | None:
    """Return how the scores of the readable submissions are spread, as shares of the points."""
    earned = [row.score / row.points for row in readable(rows) if row.points]
    if not earned:
        return None
    waiting = sum(bool(row.unread) for row in readable(rows))
    unmarked = f" {waiting} of them have an answer that is still to be marked by hand; without a mark, it counts as 0."
    caption = f"{len(earned)} readable submissions.{unmarked if waiting else ''}"
    lines = [(f"{10 * i} to {10 * i + 10} %", count) for i, count in enumerate(bins(earned))]
    return Plot(histogram(earned, fmean(earned)), caption, lines)


def fared(numbered: Sequence[tuple[int, Item]]) -> Plot | None:
    """Return the plot of the questions."""
    if not any(item.discrimination is not None for _, item in numbered):
        return None
    missing = [f"{number} ({item.note})" for number, item in numbered if item.discrimination is None]
    left_out = f" Not drawn: {', '.join(missing)}." if missing else ""
    caption = (
        "The numbers are those in the table of questions. A square marks a question that is flagged there. If two "
        "marks would overlap, a line leads to the true place. The band is the range of difficulty that tells students "
        f"apart well. Below the dashed line, at {WEAK:g}, discrimination is low.{left_out}"
    )
    return Plot(scatter(numbered), caption)


def mistakes(found: Sequence[CommonMistake], students: int, book: str) -> list[Bar]:
    """Return the mistakes; ``book`` is the address of the book, or "" for no links."""
    return [_bar(mistake, len(mistake.students), students, book) for mistake in found]


def _bar(mistake: CommonMistake, made: int, students: int, book: str) -> Bar:
    share = made / students
    address = f"{book}/{quote(mistake.link, safe='/#')}" if book and mistake.link else ""
    return Bar(mistake, f"{share:.1%}", f"{made} of {students} ({share:.0%})", address)


def verdicts(rows: Sequence[Row]) -> list[tuple[str, int, str]]:
    """Return how often each verdict was given, and what it means."""
    count = Counter(row.outcome.verdict for row in rows)
    return [(verdict, count[verdict], verdict.text) for verdict in Verdict if verdict in count]


def alike(found: SimilarityReport) -> str:
    """Return how many submissions were compared, and what to make of the pairs that are nearly the same."""
    said = f"Submissions compared: {found.compared}. Pairs that stand out: {len(found.pairs) or 'none'}. "
    if not found.pairs:
        return said
    said += (
        "A pair is a reason to look, not a proof. Code that was handed out, the solution, and whatever more than a "
        "third of the class wrote are ignored, and a pair has to share enough words that hardly anybody else wrote. A "
        "student who copied only one short function is not found."
    )
    if found.compared < MIN_COMPARED:
        said += " The class is small, so code that many would write can look like a copy."
    return said
