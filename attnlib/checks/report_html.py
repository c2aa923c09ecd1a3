"""Reports as HTML that reads well in light and dark notebooks and needs nothing from elsewhere.

The functions take texts and arrays, and escape every text. Colour never carries meaning alone.
"""

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.array_text import format_number, zero_rounding_errors
from attnlib.checks.comparison import Comparison

BOX_STYLE = "border-left:4px solid {colour};padding:.4em .9em;margin:.3em 0;line-height:1.45;max-width:60em"
CELL_STYLE = "padding:.1em .6em;text-align:right;font-variant-numeric:tabular-nums"
PRE_STYLE = "margin:.35em 0;padding:0;font-size:90%;white-space:pre-wrap"
PASSED_COLOUR, FAILED_COLOUR, OPEN_COLOUR = "#2e8540", "#c0392b", "#6b7280"
POSITIVE_RGB, NEGATIVE_RGB, MAX_SHADE = "70,130,200", "230,130,40", 0.45
MAX_LENGTH = 10  # rows and columns of a table that are shown


def box(passed: bool | None, headline: str, blocks: Iterable[str], check: str = "") -> str:
    """Return blocks of HTML below a headline, with a bar at the side whose colour says whether the check passed.

    The browser version of the exercises records which checks have passed (book/_static/lite.js), so the HTML names
    the ``check`` if it has passed.
    """
    colour = OPEN_COLOUR if passed is None else PASSED_COLOUR if passed else FAILED_COLOUR
    name = f" data-passed='{escape(check, quote=True)}'" if passed and check else ""
    style = BOX_STYLE.format(colour=colour)
    return f"<div style='{style}'{name}><strong>{escape(headline)}</strong>{''.join(blocks)}</div>"


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return _paragraph(escape(text))


def preformatted(text: str) -> str:
    """Return text whose spaces and line breaks count."""
    return f"<pre style='{PRE_STYLE}'>{escape(text)}</pre>"


def reread(section: str, address: str | None) -> str:
    """Return the advice to reread a section as a paragraph, with a link if there is an address."""
    place = escape(section)
    if address:
        place = f"<a style='color:inherit' href='{escape(address, quote=True)}'>{place}</a>"
    return _paragraph(f"Reread: {place}.")


def _paragraph(html: str) -> str:
    return f"<p style='margin:.35em 0'>{html.replace(chr(10), '<br/>')}</p>"


def tables(comparison: Comparison) -> str:
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
    start = min(max(0, int(place) - MAX_LENGTH // 2), max(0, length - MAX_LENGTH))
    return slice(start, min(length, start + MAX_LENGTH))


def _table(caption: str, x: NDArray[Any], marked: NDArray[Any], digits: int, full: float) -> str:
    rows = "".join(
        f"<tr>{''.join(_cell(v, m, digits, full) for v, m in zip(row, marks, strict=True))}</tr>"
        for row, marks in zip(zero_rounding_errors(x), marked, strict=True)
    )
    style = "caption-side:top;text-align:left;font-style:italic;white-space:nowrap"
    caption = f"<caption style='{style}'>{escape(caption)}</caption>"
    return f"<table style='border-collapse:collapse;margin:.3em 0;color:inherit'>{caption}<tbody>{rows}</tbody></table>"


def _cell(value: Any, marked: bool, digits: int, full: float) -> str:
    text = escape(format_number(value, digits))
    return f"<td style='{CELL_STYLE}{_shade(value, full)}'>{f'<b><u>{text}</u></b>' if marked else text}</td>"


def _shade(value: Any, full: float) -> str:
    """Return a background that lets the page through, so that text stays readable on light and dark."""
    depth = min(abs(float(value)) / full, 1.0) * MAX_SHADE
    if not depth >= 0.005:  # nan is not shaded either
        return ""
    return f";background-color:rgba({POSITIVE_RGB if value > 0 else NEGATIVE_RGB},{depth:.2f})"
