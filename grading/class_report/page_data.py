"""The page that an instructor opens after grading a class: one HTML file without scripts or external content."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from grading.class_list import Differences
from grading.class_report import sections
from grading.class_report.class_page import class_page
from grading.class_report.common_mistakes import common_mistakes
from grading.class_report.item_analysis import analyse_items, readable
from grading.class_report.similarity import SimilarityReport
from grading.report import Row

NO_NAMES: Mapping[str, str] = MappingProxyType({})
NO_DIFFERENCES = Differences()
VISIBLE_MISTAKES = 10  # mistakes that are visible at first; the others are a click away


def page(
    rows: Sequence[Row],
    assignment: str,
    folder: Path,
    similarity: SimilarityReport,
    *,
    title: str = "",
    book: str = "",
    refused: Mapping[str, str] = NO_NAMES,
    listed: Differences = NO_DIFFERENCES,
) -> str:
    """Return the page.

    Args:
        rows: what the class got.
        assignment: its name.
        folder: where the page goes; the links to the feedback pages start there.
        similarity: which submissions are nearly the same.
        refused: the folders among the submissions that could not be graded, and why.
        listed: the differences between the class list and the students who handed in.
        title: the name and the term of the course; "" for no such line.
        book: the address of the built book, to which the sections to reteach are links; "" for no links.
    """
    return class_page(
        "page.html.j2",
        rows,
        assignment,
        folder,
        title=title,
        rows=rows,
        refused=refused,
        differences=listed.named(),
        first=VISIBLE_MISTAKES,
        flagged=[row.outcome for row in rows if row.outcome.flags],
        similarity=similarity,
        **_sections(rows, similarity, book.rstrip("/")),
    )


def _sections(rows: Sequence[Row], similarity: SimilarityReport, book: str) -> dict[str, Any]:
    """Return what the page's sections show about the class as a whole."""
    numbered = list(enumerate(analyse_items(rows), 1))
    return {
        "figures": sections.figures(rows, similarity),
        "scores": sections.scores(rows),
        "fared": sections.fared(numbered),
        "mistakes": sections.mistakes(common_mistakes(rows), max(1, len(readable(rows))), book),
        "questions": numbered,
        "about_questions": sections.ABOUT_QUESTIONS,
        "about_similarity": sections.alike(similarity),
        "verdicts": sections.verdicts(rows),
    }
