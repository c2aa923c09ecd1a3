"""What every page about a class shows: the assignment, the students' names, and links to their feedback pages."""

from collections.abc import Sequence
from os.path import relpath
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from grading.class_report.render import render
from grading.class_report.style import CLASS_REPORT_CSS
from grading.report import Row


def class_page(template: str, rows: Sequence[Row], assignment: str, folder: Path, /, **values: Any) -> Markup:
    """Return a template, filled in with what every page shows and with these values.

    Args:
        template: its name.
        rows: what the class got.
        assignment: its name.
        folder: where the page goes; the links to the feedback pages start there.
        values: what this page shows besides.
    """
    pages = {row.outcome.student: row.feedback[0] for row in rows if row.feedback}
    return render(
        template,
        assignment=assignment,
        style=Markup(CLASS_REPORT_CSS),
        names={row.outcome.student: row.entry.name for row in rows if row.entry.name},
        feedback={student: quote(relpath(path, folder)) for student, path in pages.items()},
        **values,
    )
