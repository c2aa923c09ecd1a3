"""Right-align the columns of a table that contain only numbers, including their headers.

Markdown can ask for it (``--:``), but tables that code writes cannot, and authors forget it. This works on
the HTML of a page, because the numbers that a page computes appear as text only there.
"""

import re
from html import unescape

TABLE = re.compile(r'<table class="(?:[^"]* )?(?:table|dataframe)(?: [^"]*)?".*?</table>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<(t[hd])\b([^>]*)>(.*?)</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")

EMPTY = {"", "–", "-"}
UNIT = r"%|×|(?:[kKMGT]i?)?B(?:/s)?|[mµn]?s|min|h|px"
QUANTITY = rf"[+\-−±≈<>≤≥]?\s?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?:e[+\-−]?\d+)?(?:\s?(?:{UNIT}))?"
# 5; 1–2; 6 of 8; 66% (46%); 94% (86% to 100%)
NUMBER = re.compile(rf"{QUANTITY}(?:(?:–| of ){QUANTITY})?(?: \({QUANTITY}(?:(?: to |, ){QUANTITY})?\))?")


def align_numbers(body: str) -> str:
    """Return the body of a page with its columns of numbers aligned to the right."""
    return TABLE.sub(lambda table: _aligned(table[0]), body)


def is_numeric(texts: list[str]) -> bool:
    """Tell whether all cells of a column, given as text, are numbers, ignoring those without content."""
    said = [text for text in texts if text not in EMPTY]
    return bool(said) and all(map(NUMBER.fullmatch, said))


def _aligned(table: str) -> str:
    """Return a table with its columns of numbers aligned, or unchanged if it has merged cells or uneven rows."""
    rows = [[_text(cell[3]) for cell in CELL.finditer(row)] for row in ROW.findall(table.partition("<tbody")[2])]
    if "colspan=" in table or "rowspan=" in table or len({*map(len, rows)}) != 1:
        return table
    numeric = [is_numeric(list(column)) for column in zip(*rows, strict=True)]
    return ROW.sub(lambda row: _with_class(row[0], numeric), table) if any(numeric) else table


def _text(html: str) -> str:
    return " ".join(unescape(TAG.sub("", html)).split())


def _with_class(row: str, numeric: list[bool]) -> str:
    """Return a row whose cells in columns of numbers have the class that the theme's style sheet aligns."""
    columns = iter(numeric)
    return CELL.sub(lambda cell: _right(cell[0]) if next(columns, False) else cell[0], row)


def _right(cell: str) -> str:
    """Return a cell with the class ``text-right``."""
    start, end, rest = cell.partition(">")
    if "text-right" in start:
        return cell
    if 'class="' in start:
        return start.replace('class="', 'class="text-right ') + end + rest
    return f'{start} class="text-right"{end}{rest}'
