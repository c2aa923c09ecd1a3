"""Turn the text of a notebook, in any format, into cells. Nothing else but the kernel's name is used."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grading.repair.decode import merge_sides, unix_line_ends
from grading.repair.messages import Repair, UnreadableError, printable
from grading.reread_links import without_links
from grading.text import counted

MOST_CELLS, MAX_NOTEBOOK_TEXT = 500, 500_000  # far more than any answer needs, but not too much for a page
MAX_SAVED_TEXT = 5_000  # characters of a cell's output; the options of a question have fewer than 1,000
MAX_JSON_VALUES = 2_000_000  # limits memory, since three bytes of JSON can take seventy

_SURROGATES = re.compile("[\ud800-\udfff]")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# An integer may have any number of digits, so it is read as a float. Only the format's version matters.
_DECODER = json.JSONDecoder(parse_int=float)
_CLEARED = "Ask for it with its outputs cleared."
_KINDS = {"code": "code", "markdown": "markdown", "heading": "markdown", "html": "markdown"}  # any other is raw
_CLEANED = {
    "broken-cell": "{} had no text where text is expected; that part is left out.",
    "line-ends": "{} had Windows line endings.",
    "replaced-characters": "{} contained invalid characters; each is replaced by \N{REPLACEMENT CHARACTER}.",
    "merge-conflict": "{} contained unresolved Git merge conflicts; the first side of each is kept.",
}


@dataclass(frozen=True)
class SubmittedCell:
    """A cell of a notebook: its kind ("code", "markdown" or "raw"), text, id, and the name nbgrader gave to it.

    ``attachments`` are as they came, and may be anything. ``saved`` is the beginning of its output, if that is text.
    """

    kind: str
    source: str
    id: str | None
    name: str | None
    attachments: object = field(default=None, kw_only=True)
    saved: str = field(default="", kw_only=True)

    @cached_property
    def text(self) -> str:
        """Its text without links to the book, which differ between releases and between classes."""
        return without_links(self.source).strip()


@dataclass(frozen=True)
class ParsedNotebook:
    """The cells of a notebook, the name of its kernel, and what was done to read them."""

    cells: tuple[SubmittedCell, ...]
    kernel: object
    repairs: tuple[Repair, ...]


def parse_notebook(text: str) -> ParsedNotebook:
    """Read a notebook from JSON. Raises: UnreadableError: it is not a notebook, or is too large for any answer."""
    data, rest = _parse(text)
    raw = _raw_cells(data)
    cells, cleaned = _cells(raw)
    if (size := sum(len(cell.source) for cell in cells)) > MAX_NOTEBOOK_TEXT:
        asked = "Ask for it without the long text in its cells."
        raise UnreadableError(f"has {size} characters of text in its cells, more than {MAX_NOTEBOOK_TEXT}. {asked}")
    kernel = _within(data, "metadata", "kernelspec", "name")
    return ParsedNotebook(cells, kernel, (*_trailing(rest), *_format(data), *_ids(data, cells), *cleaned))


def _parse(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object that a text begins with, and what follows it."""
    text = text.strip("\ufeff \n\t")
    if not text.startswith("{"):
        begins = f"begins with {printable(text, 20)}" if text else "contains only whitespace"
        raise UnreadableError(f"is not a notebook: it {begins}. Ask for the .ipynb file that Jupyter saves.")
    if (n := sum(map(text.count, "[{,"))) > MAX_JSON_VALUES:  # also counts those within strings
        raise UnreadableError(f"has {n} commas and brackets, more than {MAX_JSON_VALUES}. {_CLEARED}")
    try:
        data, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno} of {text.count(chr(10)) + 1}"
        raise UnreadableError(f"is not a complete notebook ({where}); was it cut off? Ask for it again.") from None
    except RecursionError:
        raise UnreadableError(f"is nested more deeply than any notebook, so it cannot be read. {_CLEARED}") from None
    return data, text[end:].strip()


def _raw_cells(data: dict[str, Any]) -> list[Any]:
    """Return the cells of a notebook, or of the worksheets of one in an older format."""
    sheets = [data] if "cells" in data else data.get("worksheets")
    lists = [_within(sheet, "cells") for sheet in sheets] if isinstance(sheets, list) else []
    whole = [cells for cells in lists if isinstance(cells, list)]
    if not whole or len(whole) < len(lists):
        raise UnreadableError("is not a notebook: it has no list of cells. Ask for the .ipynb file that Jupyter saves.")
    if (n := sum(map(len, whole))) > MOST_CELLS:
        raise UnreadableError(
            f"has {n} cells, more than {MOST_CELLS}. Ask for it without the cells that it does not need."
        )
    return [cell for cells in whole for cell in cells]


def _cells(raw: list[Any]) -> tuple[tuple[SubmittedCell, ...], list[Repair]]:
    """Return the cells, and for each kind of repair, how many cells needed it."""
    cells, cleaned = [], Counter[str]()
    for cell in raw:
        source, kinds = _clean(_source(cell))
        cleaned.update(kinds)
        if isinstance(cell, dict):
            kind = _KINDS.get(_text(cell.get("cell_type")) or "", "raw")
            name = _within(cell, "metadata", "nbgrader", "grade_id")
            about = (kind, source, _text(cell.get("id")), _text(name))
            saved = _saved(cell.get("outputs"))
            cells.append(SubmittedCell(*about, attachments=cell.get("attachments"), saved=saved))
    repairs = [Repair(kind, _CLEANED[kind].format(counted(n, "cell"))) for kind, n in sorted(cleaned.items())]
    return tuple(cells), repairs


def _saved(outputs: object) -> str:
    """Return the beginning of the text in a cell's outputs."""
    found = []
    for output in outputs if isinstance(outputs, list) else ():
        came = _within(output, "data", "text/plain") or _within(output, "text")
        found.append("".join(filter(_text, came)) if isinstance(came, list) else _text(came) or "")
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", "\n".join(found)[:MAX_SAVED_TEXT])


def _source(cell: object) -> list[object]:
    """Return the lines of a cell's text as they came. Format 3 called them input, and had headings."""
    if not isinstance(cell, dict):
        return [None]
    came = cell.get("source", cell.get("input"))
    lines = came if isinstance(came, list) else [came]
    if cell.get("cell_type") == "heading" and cell.get("level") in range(1, 7):
        return ["#" * int(cell["level"]), " ", *lines]
    return lines


def _clean(lines: list[object]) -> tuple[str, set[str]]:
    """Return text that can be stored, and the kinds of repair that this took."""
    texts = [line for line in lines if isinstance(line, str)]
    kinds = {"broken-cell"} if len(texts) < len(lines) else set()
    source = "".join(texts)
    if "\r" in source:
        source, kinds = unix_line_ends(source), kinds | {"line-ends"}
    if _SURROGATES.search(source):
        source, kinds = _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", source), kinds | {"replaced-characters"}
    if both := merge_sides(source):
        source, kinds = both[0], kinds | {"merge-conflict"}
    return source, kinds


def _within(data: object, *keys: str) -> Any:
    """Return the value at nested keys, or None if there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _trailing(rest: str) -> Iterator[Repair]:
    if rest:
        text = f"What followed the end of the notebook ({counted(len(rest), 'character')}) is left out."
        yield Repair("trailing-text", text)


def _has_ids(data: dict[str, Any]) -> bool:
    """Tell whether a notebook is of a format whose cells have ids."""
    minor = data.get("nbformat_minor")
    return data.get("nbformat") == 4 and isinstance(minor, float) and minor >= 5


def _format(data: dict[str, Any]) -> Iterator[Repair]:
    if not _has_ids(data):
        numbers = (data.get(key) for key in ("nbformat", "nbformat_minor"))
        version = ".".join(f"{number:g}" for number in numbers if isinstance(number, float))
        yield Repair("old-format", f"The notebook has format {version or 'unknown'}, not 4.5.")


def _ids(data: dict[str, Any], cells: tuple[SubmittedCell, ...]) -> Iterator[Repair]:
    """Say how many cells of a format with ids have none of their own."""
    ids = {cell.id for cell in cells if cell.id and _ID.fullmatch(cell.id)}
    if _has_ids(data) and (n := len(cells) - len(ids)):
        yield Repair("cell-ids", f"{counted(n, 'cell')} had no valid id of {'its' if n == 1 else 'their'} own.")
