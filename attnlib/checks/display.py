"""Show a report: HTML that reads in light and dark notebooks alike, with no outside resource; numbers as text."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from attnlib.checks.report import Comparison, Report

BOX = "border-left:4px solid {colour};padding:.4em .9em;margin:.3em 0;line-height:1.45;max-width:60em"
CELL = "padding:.1em .6em;text-align:right;font-variant-numeric:tabular-nums"
PRE = "margin:.35em 0;padding:0;font-size:90%;white-space:pre-wrap"
DUST = 1e-12  # what rounding leaves where the exact answer is 0
RIGHT, WRONG = "#2e8540", "#c0392b"


def named(name: str, x: NDArray[Any], digits: int) -> str:
    """Return ``name = [[…], […]]``, its rows below each other, with so many significant digits."""
    text = np.array2string(_dusted(x), formatter={"float_kind": lambda v: f"{v:.{digits}g}"}, max_line_width=100)
    return f"{name} = " + text.replace("\n", "\n" + " " * (len(name) + 3))


def _dusted(x: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.abs(x) < DUST, 0.0, x)


def side_by_side(comparison: "Comparison") -> str:
    """Return what was expected and what came, as text."""
    pairs = (("expected", comparison.expected), ("got     ", comparison.got))
    tables = (named(label, x, comparison.digits) for label, x in pairs)
    return "\n".join([f"first difference at {comparison.first}", *tables])


def html(report: "Report") -> str:
    """Return the report as HTML. All text is escaped; colour never carries meaning alone."""
    box = BOX.format(colour=RIGHT if report.passed else WRONG)
    inputs, comparison = report.inputs(), report.comparison()
    given = f"<pre style='{PRE}'>{escape(inputs)}</pre>" if inputs else ""
    tables = _tables(comparison) if comparison else ""
    body = "".join([*map(_paragraph, report.what()), given, tables, *map(_paragraph, report.next_step())])
    return f"<div style='{box}'><strong>{escape(report.headline())}</strong>{body}</div>"


def _paragraph(text: str) -> str:
    return f"<p style='margin:.35em 0'>{escape(text).replace(chr(10), '<br/>')}</p>"


def _tables(comparison: "Comparison") -> str:
    want, got, differs = map(np.atleast_2d, (comparison.expected, comparison.got, comparison.differs))
    name, digits = escape(comparison.name), comparison.digits
    pair = _table(f"expected {name}", want, np.zeros_like(differs), digits) + _table(
        f"your {name}", got, differs, digits
    )
    note = "<p style='margin:.2em 0;font-size:90%'>The numbers that differ are bold and underlined.</p>"
    return f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start'>{pair}</div>{note}"


def _table(caption: str, x: NDArray[Any], marked: NDArray[Any], digits: int) -> str:
    rows = "".join(
        f"<tr>{''.join(_cell(v, m, digits) for v, m in zip(row, marks, strict=True))}</tr>"
        for row, marks in zip(_dusted(x), marked, strict=True)
    )
    caption = (
        f"<caption style='caption-side:top;text-align:left;font-style:italic;white-space:nowrap'>{caption}</caption>"
    )
    return f"<table style='border-collapse:collapse;margin:.3em 0'>{caption}<tbody>{rows}</tbody></table>"


def _cell(value: float, marked: bool, digits: int) -> str:
    text = escape(f"{value:.{digits}g}")
    return f"<td style='{CELL}'>{f'<b><u>{text}</u></b>' if marked else text}</td>"
