"""The parts of the page: each takes what is known and returns HTML, or nothing where there is nothing to say."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from urllib.parse import quote

from grading.class_list import Differences
from grading.insight.figures import bins, histogram, scatter
from grading.insight.html import bullets, details, link, name, paragraph, section, table, text
from grading.insight.items import EASY, ENOUGH, HARD, WEAK, Item, answered
from grading.insight.likeness import Likeness, Pair, Passage
from grading.insight.mistakes import Common
from grading.outcome import VERDICTS
from grading.report import Row, points

FIRST = 10  # mistakes that are open to view; the others are a click away
FEW = 10  # submissions of which nobody can say what is common
Name = Callable[[str], str]  # a student's name as HTML, which leads to the feedback page where there is one


def shares(rows: Sequence[Row]) -> list[float]:
    """Return the share of the points that each readable submission earned."""
    return [row.score / row.points for row in answered(rows) if row.points]


def figures(rows: Sequence[Row], alike: Likeness) -> str:
    """Return the headline figures."""
    earned, most = [row.score for row in answered(rows)], max((row.points for row in rows), default=0)
    waiting, unreadable = sum(row.to_read for row in rows), len(rows) - len(earned)
    found = [("Students", str(len(rows)), f"{unreadable} without a readable submission" if unreadable else "")]
    if earned:
        found += [
            (word, f"{of(earned):.1f}", f"of {points(most)} points")
            for word, of in (("Mean", fmean), ("Median", median))
        ]
    found.append(("Answers to read", str(waiting), "to be marked by hand" if waiting else "all are marked"))
    found.append(("Flagged", str(sum(bool(row.outcome.flags) for row in rows)), "to look at"))
    found.append(("Alike", str(len(alike.pairs)), "pair" if len(alike.pairs) == 1 else "pairs"))
    boxes = "".join(f"<div><dt>{term}</dt><dd>{value} <small>{note}</small></dd></div>" for term, value, note in found)
    return f'<dl class="figures">{boxes}</dl>'


def scores(rows: Sequence[Row]) -> str:
    """Return how the scores are spread."""
    earned = shares(rows)
    if not earned:
        return ""
    waiting = sum(bool(row.unread) for row in answered(rows))
    unmarked = f" {waiting} of them have an answer that is still to be marked by hand; without a mark, it counts as 0."
    note = unmarked if waiting else ""
    lines = [(f"{10 * i} to {10 * i + 10} %", str(count)) for i, count in enumerate(bins(earned))]
    numbers = details(
        "The same in numbers", table("Students by score", ("Share of the points", "Students"), lines, (1,))
    )
    figure = _figure(histogram(earned, fmean(earned)), f"{len(earned)} readable submissions.{note}")
    return section("Score distribution", figure, numbers)


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"


def fared(numbered: Sequence[tuple[int, Item]]) -> str:
    """Return the plot of the questions."""
    if not any(item.discrimination is not None for _, item in numbered):
        return ""
    missing = [f"{number} ({item.note})" for number, item in numbered if item.discrimination is None]
    left_out = f" Not drawn: {text(', '.join(missing))}." if missing else ""
    caption = (
        "The numbers are those of the table of questions. A square is flagged there; where two would cover each other, "
        "a line leads to the true place. The band is the difficulty that "
        f"tells students apart well; below the dashed line, {WEAK:g}, a question does not go with the rest.{left_out}"
    )
    return section("Difficulty and discrimination", _figure(scatter(numbered), caption))


def mistakes(found: Sequence[Common], students: int, book: str, named: Name) -> str:
    """Return the mistakes as bars, each with the section to reteach, where ``book`` is the address of the book."""
    lines = [_mistake(mistake, students, book, named) for mistake in found]
    first, others = lines[:FIRST], lines[FIRST:]
    more = details(f"Less common: {len(others)}", _bars(others)) if others else ""
    return section("Most common mistakes", _bars(first) if first else "", more)


def _bars(lines: Sequence[str]) -> str:
    return f'<ol class="bars">{"".join(lines)}</ol>'


def _mistake(mistake: Common, students: int, book: str, named: Name) -> str:
    who, share = mistake.students, len(mistake.students) / students
    bar = '<rect class="space" width="100%" height="100%"/>' + f'<rect class="bar" width="{share:.1%}" height="100%"/>'
    count = f"{len(who)} of {students} ({share:.0%})"
    return (
        f'<li><strong>{text(mistake.title)}</strong> <span class="quiet">{text(mistake.question)}'
        f"{f', {text(mistake.mistake)}' if mistake.mistake else ''}</span>"
        f'<div class="track"><svg aria-hidden="true">{bar}</svg><span>{count}</span></div>{_reteach(mistake, book)}'
        f"{details('Who', ', '.join(map(named, who)))}</li>"
    )


def _reteach(mistake: Common, book: str) -> str:
    if not mistake.section:
        return ""
    place = text(mistake.section)
    address = f"{book}/{quote(mistake.link, safe='/#')}"
    return f"Reteach {link(address, place) if book and mistake.link else place}."


def questions(numbered: Sequence[tuple[int, Item]]) -> str:
    """Return the table of the questions."""
    head = ("No.", "Question", "Points", "Answers", "Not attempted", "Difficulty", "Discrimination", "Look at")
    meaning = (
        f"Difficulty is the mean share of the points: below {HARD:.2f} it is hard, above {EASY:.2f} easy. "
        "Discrimination is the correlation with the score on all other questions; it is judged only with "
        f"{ENOUGH} answers or more. Answers that are still to be marked by hand are left out, and so are "
        "tasks that were left as they were handed out."
    )
    lines = [_item(number, item) for number, item in numbered]
    body = [paragraph(meaning), table("Each question", head, lines, (0, 2, 3, 4, 5, 6))] if lines else []
    return section("Questions", *body)


def _item(number: int, item: Item) -> list[str]:
    look = f'<span class="look">{text("; ".join(item.flags))}</span>' if item.flags else ""
    note = f'<span class="quiet">{text(item.note)}</span>' if item.note else ""
    numbers = (_number(item.difficulty), _number(item.discrimination))
    return [
        str(number),
        text(item.question),
        points(item.points),
        str(item.n),
        str(item.untried or ""),
        *numbers,
        "<br>".join(filter(None, (look, note))),
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def verdicts(rows: Sequence[Row]) -> str:
    """Return how often each verdict was given, and what it means."""
    count = Counter(row.outcome.verdict for row in rows)
    order = [*(verdict for verdict in VERDICTS if verdict in count), *sorted(count.keys() - VERDICTS.keys())]
    lines = [(text(verdict), str(count[verdict]), text(VERDICTS.get(verdict, ""))) for verdict in order]
    return section("Verdicts", table("How the submissions ran", ("Verdict", "Students", "Meaning"), lines, (1,)))


def flagged(rows: Sequence[Row], named: Name) -> str:
    """Return the submissions that an instructor should look at, and why."""
    found = [(row.outcome.student, row.outcome.flags) for row in rows if row.outcome.flags]
    lines = [(named(student), bullets(map(text, flags))) for student, flags in found]
    return section("To look at", table("Flagged submissions", ("Student", "Why"), lines) if lines else "")


def not_graded(refused: Mapping[str, str]) -> str:
    """Return the folders that could not be graded, and why."""
    lines = [(name(folder), text(why)) for folder, why in refused.items()]
    return section("Not graded", table("Folders that were left out", ("Folder", "Why"), lines) if lines else "")


def class_list(listed: Differences) -> str:
    """Return the students on the class list who handed in nothing, and those who handed in without being on it."""
    lines = [(text(what), ", ".join(map(name, who))) for what, who in listed.named()]
    return section("Class list", table("Differences from the class list", ("What", "Students"), lines) if lines else "")


def alike(found: Likeness, named: Name) -> str:
    """Return the pairs that are nearly the same, side by side, and who was not compared."""
    said = f"Submissions compared: {found.compared}. Pairs that stand out: {len(found.pairs) or 'none'}."
    meaning = (
        "A pair is a reason to look and no proof: code that was given, the solution, and what a third of the class "
        "wrote count for nothing, and a pair has to share enough words that hardly anybody else wrote. "
        "Somebody who copied one short function is not found."
    )
    if found.compared < FEW:
        meaning += " The class is small, so what many would write can look like a copy."
    left_out = [f"{name(student)}: {text(reason)}" for student, reason in found.left_out]
    absent = details(f"Not compared: {len(left_out)}", bullets(left_out)) if left_out else ""
    body = "\n".join(_pair(pair, named) for pair in found.pairs)
    return section("Nearly the same", paragraph(f"{said} {meaning if found.pairs else ''}"), body, absent)


def _pair(pair: Pair, named: Name) -> str:
    summary = (
        f"<strong>{name(pair.first)} and {name(pair.second)}</strong>: {pair.alike:.0%} alike, {pair.words} words in "
        f"common, {pair.distinctive} of them written by hardly anybody else"
    )
    who = paragraph(f"Feedback: {named(pair.first)}, {named(pair.second)}.")
    body = "".join(_passage(passage, pair) for passage in pair.passages)
    return f'<div class="pair">{details(summary, who + body)}</div>'


def _passage(passage: Passage, pair: Pair) -> str:
    sides = ((pair.first, passage.first_cell, passage.first), (pair.second, passage.second_cell, passage.second))
    return f'<div class="passage">{"".join(_side(*side) for side in sides)}</div>'


def _side(student: str, cell: str, code: str) -> str:
    lines = "\n".join(map(text, code.split("\n")))
    return f"<figure><figcaption>{name(student)}, {text(cell)}</figcaption><pre>{lines}</pre></figure>"


def students(rows: Sequence[Row], named: Name) -> str:
    """Return the table of everybody."""
    head = ("Student", "Score", "To read", "Verdict", "Mistakes")
    lines = [
        (
            named(row.outcome.student),
            f"{points(row.score)} / {points(row.points)}",
            str(row.to_read or ""),
            text(row.outcome.verdict),
            bullets(map(text, row.remarks())),
        )
        for row in rows
    ]
    lead = paragraph("A name leads to the feedback.") if any(row.feedback for row in rows) else ""
    return section("Students", lead, table("Everybody", head, lines, (1, 2)))
