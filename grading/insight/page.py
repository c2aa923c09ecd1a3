"""What an instructor opens after grading a class: one HTML page with no script, and nothing from elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape
from os.path import relpath
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from grading.class_list import Differences
from grading.insight import sections
from grading.insight.html import link, name
from grading.insight.items import answered, items
from grading.insight.likeness import Likeness
from grading.insight.mistakes import common
from grading.insight.style import STYLE
from grading.report import Row

NOBODY: Mapping[str, str] = MappingProxyType({})
NO_DIFFERENCES = Differences()
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Grades: {assignment}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>Grades: {assignment}</h1>
{figures}
</header>
<main>
<div class="plots">
{plots}
</div>
{body}
</main>
</body>
</html>
"""


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
    feedback = {row.outcome.student: row.feedback[0] for row in rows if row.feedback}

    def named(student: str) -> str:
        shown, page = name(student), feedback.get(student)
        return link(quote(relpath(page, folder)), shown) if page else shown

    body = (
        sections.not_graded(refused),
        sections.class_list(listed),
        sections.mistakes(common(rows), max(1, len(answered(rows))), book.rstrip("/"), named),
        sections.questions(numbered),
        sections.flagged(rows, named),
        sections.alike(likeness, named),
        sections.verdicts(rows),
        sections.students(rows, named),
    )
    return PAGE.format(
        assignment=escape(assignment),
        style=STYLE,
        figures=sections.figures(rows, likeness),
        plots="\n".join((sections.scores(rows), sections.fared(numbered))),
        body="\n".join(filter(None, body)),
    )
