"""Show a report: HTML that reads in light and dark notebooks alike, with no outside resource; numbers as text."""

import os
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from attnlib.checks.exercise import Section
    from attnlib.checks.report import Comparison, Report

MIME = "application/vnd.attnlib.report+json"
BOOK = "ATTENTION_BOOK"  # the environment variable that says where the book is: an address, a folder, "" for nowhere
LOCAL = "../../_build/html/"  # where it is, seen from a notebook in work/, after `make`
BOX = "border-left:4px solid {colour};padding:.4em .9em;margin:.3em 0;line-height:1.45;max-width:60em"
CELL = "padding:.1em .6em;text-align:right;font-variant-numeric:tabular-nums"
PRE = "margin:.35em 0;padding:0;font-size:90%;white-space:pre-wrap"
DUST = 1e-12  # what rounding leaves where the exact answer is 0
RIGHT, WRONG = "#2e8540", "#c0392b"
BLUE, ORANGE, DARKEST = "70,130,200", "230,130,40", 0.45
MOST = 10  # rows and columns of a table that are shown


def given(name: str, x: Any) -> str:
    """Return an argument of any kind as ``name = …``; a dictionary as an entry a line."""
    if isinstance(x, dict):
        return "\n".join(given(f"{name}[{key!r}]", value) for key, value in x.items())
    if isinstance(x, np.ndarray):
        return named(name, x, 6)
    return f"{name} = {getattr(x, '__name__', None) or repr(x)}"


def named(name: str, x: NDArray[Any], digits: int) -> str:
    """Return ``name = [[…], […]]``, its rows below each other, with so many significant digits."""
    formatter: Any = {"float_kind": lambda v: _written(v, digits), "bool": lambda v: _written(v, digits)}
    text = np.array2string(_dusted(x), formatter=formatter, max_line_width=100)
    return f"{name} = " + text.replace("\n", "\n" + " " * (len(name) + 3))


def _written(value: Any, digits: int) -> str:
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(value)
    return f"{value:.{digits}g}"


def _dusted(x: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.abs(x) < DUST, 0.0, x) if x.dtype.kind == "f" else x


def side_by_side(comparison: "Comparison") -> str:
    """Return what was expected and what came, as text."""
    pairs = (("expected", comparison.expected), ("got     ", comparison.got))
    tables = (named(label, x, comparison.digits) for label, x in pairs)
    return "\n".join([f"first difference at {comparison.first}", *tables])


def html(report: "Report") -> str:
    """Return the report as HTML. All text is escaped; colour never carries meaning alone."""
    return box(report.passed, report.headline(), [block for part in report.shown() for block in _blocks(part)])


def _blocks(report: "Report") -> list[str]:
    inputs, comparison = report.inputs(), report.comparison()
    given = f"<pre style='{PRE}'>{escape(inputs)}</pre>" if inputs else ""
    tables = _tables(comparison) if comparison else ""
    reread = [link(report.section)] if report.section else []
    return [*map(paragraph, report.what()), given, tables, *reread, *map(paragraph, report.next_step())]


def box(passed: bool, headline: str, blocks: list[str]) -> str:
    """Return blocks of HTML below a headline, with a bar at the side that says whether all is well."""
    colour = RIGHT if passed else WRONG
    return f"<div style='{BOX.format(colour=colour)}'><strong>{escape(headline)}</strong>{''.join(blocks)}</div>"


def reread(section: "Section") -> str:
    """Return what to reread, as text."""
    return f"Reread: {section} ({section.link})."


def pointer(section: "Section | None") -> dict[str, str]:
    """Return what to reread, for a machine: its name, and its place in the book; both empty where it is nothing."""
    return {"section": str(section or ""), "link": section.link if section else ""}


def link(section: "Section") -> str:
    """Return what to reread, as a paragraph of HTML with a link into the book."""
    place, book = escape(str(section)), os.environ.get(BOOK, LOCAL)
    if book:
        address = escape(f"{book.rstrip('/')}/{section.link}", quote=True)
        place = f"<a style='color:inherit' href='{address}'>{place}</a>"
    return _paragraph(f"Reread: {place}.")


def paragraph(text: str) -> str:
    """Return a paragraph of HTML from text."""
    return _paragraph(escape(text))


def _paragraph(html: str) -> str:
    return f"<p style='margin:.35em 0'>{html.replace(chr(10), '<br/>')}</p>"


def _tables(comparison: "Comparison") -> str:
    """Return expected and got side by side, shaded as heatmaps on one scale, as far as they are small enough."""
    want, got, differs = map(np.atleast_2d, (comparison.expected, comparison.got, comparison.differs))
    rows, columns = map(_window, want.shape, np.argwhere(differs)[0])
    cut = (rows, columns)
    whole = want[cut].shape == want.shape
    place = "" if whole else f", rows from {rows.start}, columns from {columns.start}"
    dims = " × ".join(comparison.dims)
    name, digits = comparison.name + (f" ({dims})" if dims else "") + place, comparison.digits
    full = float(np.abs(want).max(initial=0)) or 1.0
    expected = _table(f"expected {name}", want[cut], np.zeros_like(differs[cut]), digits, full)
    yours = _table(f"your {name}", got[cut], differs[cut], digits, full)
    note = (
        f"First difference: {comparison.first}. The numbers that differ are bold and underlined; "
        "the further from 0, the darker: blue above, orange below."
    )
    side_by_side = f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start'>{expected}{yours}</div>"
    return f"{side_by_side}<p style='margin:.2em 0;font-size:90%'>{escape(note)}</p>"


def _window(length: int, place: int) -> slice:
    """Return the part of an axis that is shown: all of it, or what lies around the first difference."""
    start = min(max(0, int(place) - MOST // 2), max(0, length - MOST))
    return slice(start, min(length, start + MOST))


def _table(caption: str, x: NDArray[Any], marked: NDArray[Any], digits: int, full: float) -> str:
    rows = "".join(
        f"<tr>{''.join(_cell(v, m, digits, full) for v, m in zip(row, marks, strict=True))}</tr>"
        for row, marks in zip(_dusted(x), marked, strict=True)
    )
    style = "caption-side:top;text-align:left;font-style:italic;white-space:nowrap"
    caption = f"<caption style='{style}'>{escape(caption)}</caption>"
    return f"<table style='border-collapse:collapse;margin:.3em 0;color:inherit'>{caption}<tbody>{rows}</tbody></table>"


def _cell(value: Any, marked: bool, digits: int, full: float) -> str:
    text = escape(_written(value, digits))
    return f"<td style='{CELL}{_shade(value, full)}'>{f'<b><u>{text}</u></b>' if marked else text}</td>"


def _shade(value: Any, full: float) -> str:
    """Return a background that lets the page through, so that text stays readable on light and dark."""
    depth = min(abs(float(value)) / full, 1.0) * DARKEST
    if not depth >= 0.005:  # nan is not shaded either
        return ""
    return f";background-color:rgba({BLUE if value > 0 else ORANGE},{depth:.2f})"
