"""What stands in a feedback page: scores, text, tables and pictures. Nothing that runs, and nothing from elsewhere."""

from html import escape
from typing import Any

from grading._untyped import ALLOWED_TAGS, CSSSanitizer, GetGrades, NotebookNode, clean

WORDS = {"br", "hr", "img", "p", "pre", "small", "span", "sub", "sup", "u"}
TABLES = {"caption", "div", "table", "tbody", "td", "th", "thead", "tr"}
TAGS = ALLOWED_TAGS | WORDS | TABLES | {f"h{level}" for level in range(1, 7)}
ATTRIBUTES = {"align", "aria-label", "class", "colspan", "role", "rowspan", "scope", "style", "title"}
LETTERS = {"color", "font-family", "font-size", "font-style", "font-variant-numeric", "font-weight", "line-height"}
BOXES = {"border", "border-collapse", "border-left", "display", "flex-wrap", "gap", "margin", "max-width", "padding"}
PLACES = {"align-items", "background-color", "caption-side", "text-align", "vertical-align", "white-space", "width"}
MOST_TAGS, MOST_TEXT = 3_000, 100_000  # cleaning takes minutes for what no person would ever read
STYLES = CSSSanitizer(allowed_css_properties=LETTERS | BOXES | PLACES)


def safe_html(html: str) -> str:
    """Return HTML from a notebook without scripts, forms, frames, redirections, outside pictures and unknown styles."""
    if html.count("<") > MOST_TAGS:
        return f"<pre>{escape(html[:MOST_TEXT])}</pre>"
    protocols = ["http", "https", "mailto", "data"]
    cleaned: str = clean(html, tags=TAGS, attributes=_is_safe, protocols=protocols, css_sanitizer=STYLES)
    return cleaned


def _is_safe(tag: str, name: str, value: str) -> bool:
    if tag == "img":
        return name in {"alt", "width", "height"} or (name == "src" and value.startswith("data:image/"))
    return name in ATTRIBUTES or (tag == "a" and name == "href" and not value.startswith("data:"))


class Scores(GetGrades):  # type: ignore[misc]
    """Put the scores of the gradebook into the cells, and say of those that a person has not read yet that it is so."""

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        place = (cell.metadata.nbgrader["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        cell.metadata.nbgrader["unread"] = self.gradebook.find_grade(*place).needs_manual_grade
