"""What an instructor opens after grading a class: one HTML page with no script, and nothing from elsewhere."""

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from markupsafe import Markup

from grading.class_list import Differences
from grading.insight import sections
from grading.insight.items import answered, items
from grading.insight.likeness import Likeness
from grading.insight.mistakes import common
from grading.insight.render import render
from grading.insight.style import STYLE
from grading.report import Row

NOBODY: Mapping[str, str] = MappingProxyType({})
NO_DIFFERENCES = Differences()
FIRST = 10  # mistakes that are visible at first; the others are a click away


def page(
    rows: Sequence[Row],
    assignment: str,
    folder: Path,
    likeness: Likeness,
    *,
    book: str = "",
    refused: Mapping[str, str] = NOBODY,
    listed: Differences = NO_DIFFERENCES,
) -> str:
    """Return the page.

    Args:
        rows: what the class got.
        assignment: its name.
        folder: where the page goes; the links to the feedback pages start there.
        likeness: which submissions are nearly the same.
        refused: the folders among the submissions that could not be graded, and why.
        listed: the differences between the class list and the students who handed in.
        book: the address of the built book, to which the sections to reteach are links; "" for no links.
    """
    numbered = list(enumerate(items(rows), 1))
    pages = {row.outcome.student: row.feedback[0] for row in rows if row.feedback}
    return render(
        "page.html.j2",
        assignment=assignment,
        style=Markup(STYLE),
        feedback={student: quote(relpath(path, folder)) for student, path in pages.items()},
        rows=rows,
        figures=sections.figures(rows, likeness),
        scores=sections.scores(rows),
        fared=sections.fared(numbered),
        refused=refused,
        differences=listed.named(),
        mistakes=sections.mistakes(common(rows), max(1, len(answered(rows))), book.rstrip("/")),
        first=FIRST,
        questions=numbered,
        about_questions=sections.ABOUT_QUESTIONS,
        flagged=[row.outcome for row in rows if row.outcome.flags],
        likeness=likeness,
        about_likeness=sections.alike(likeness),
        verdicts=sections.verdicts(rows),
    )
