"""Small pieces of HTML. All text is escaped here, and what a student made is printable and short."""

from collections.abc import Iterable, Sequence
from html import escape

from grading.outcome import plain


def text(value: object) -> str:
    """Return any text as HTML: printable, not too long, escaped."""
    return escape(plain(str(value)))


def name(value: object) -> str:
    """Return a name as HTML, in a direction of its own: one in Hebrew turns nothing around that stands beside it."""
    return f"<bdi>{text(value)}</bdi>"


def link(address: str, label: str) -> str:
    """Return a link with a label of HTML."""
    return f'<a href="{escape(address, quote=True)}">{label}</a>'


def section(title: str, *blocks: str) -> str:
    """Return a section with a heading; nothing at all where it has nothing to say."""
    body = "\n".join(filter(None, blocks))
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>" if body else ""


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph from HTML."""
    return f'<p class="{kind}">{words}</p>' if kind else f"<p>{words}</p>"


def bullets(lines: Iterable[str]) -> str:
    """Return a list from lines of HTML; nothing where there are none."""
    body = "".join(f"<li>{line}</li>" for line in lines)
    return f"<ul>{body}</ul>" if body else ""


def details(summary: str, body: str) -> str:
    """Return what opens at a click."""
    return f"<details><summary>{summary}</summary>\n{body}\n</details>"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table from HTML: the first cell of a row names it, and the columns in ``numbers`` are set to the right.

    On a narrow screen it is the table that scrolls, and not the page.
    """
    heads = "".join(f'<th scope="col"{_kind(i in numbers)}>{cell}</th>' for i, cell in enumerate(head))
    body = "\n".join(_row(row, numbers) for row in rows)
    label = escape(caption, quote=True)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>\n<caption>{escape(caption)}'
        f"</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _row(row: Sequence[str], numbers: Sequence[int]) -> str:
    first, *others = row
    cells = "".join(f"<td{_kind(i in numbers)}>{cell}</td>" for i, cell in enumerate(others, 1))
    return f'<tr><th scope="row"{_kind(0 in numbers)}>{first}</th>{cells}</tr>'


def _kind(is_number: bool) -> str:
    return ' class="number"' if is_number else ""
