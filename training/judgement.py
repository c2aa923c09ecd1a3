"""The figures of a judgement: in a file of comma-separated values, and as tables for the model's card."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).with_name("judgement.csv")
BITS, TOKENS, BYTES = "bits per byte", "tokens", "bytes"
COPYING = {  # what is measured of continuations, and how it is written
    "longest copied run, median": "{:.1f}",
    "longest copied run, largest": "{:.0f}",
    "copied windows of 16 tokens": "{:.1%}",
    "standard error of that": "{:.1%}",
    "texts that begin a program": "{:.0%}",
}


class Figure(NamedTuple):
    """A number that was measured: of which text, with what, and what it counts."""

    text: str
    method: str
    quantity: str
    value: float


def write_figures(figures: Iterable[Figure], path: Path | None = None) -> None:
    """Write the figures, each in a line."""
    with (path or PATH).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Figure._fields)
        table.writerows((*figure[:3], f"{figure.value:.8g}") for figure in figures)


def read_figures(path: Path | None = None) -> list[Figure]:
    """Read the figures that were written."""
    with (path or PATH).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Figure(row["text"], row["method"], row["quantity"], float(row["value"])) for row in rows]


def bits_table(figures: Sequence[Figure]) -> str:
    """Return a table in Markdown with a row for each method and a column for each text."""
    found = {(one.text, one.method): f"{one.value:.3f}" for one in figures if one.quantity == BITS}
    return _table("bits per byte", found)


def sizes_table(figures: Sequence[Figure]) -> str:
    """Return a table in Markdown of how long the texts are."""
    found = {(one.quantity, one.text): f"{one.value:,.0f}" for one in figures if one.quantity in (BYTES, TOKENS)}
    return _table("text", found)


def copying_table(figures: Sequence[Figure]) -> str:
    """Return a table in Markdown with a row for each kind of continuation."""
    found = {
        (one.quantity, one.text): COPYING[one.quantity].format(one.value) for one in figures if one.quantity in COPYING
    }
    return _table("continuation", found)


def loss_table(log: Path, every: int = 300) -> str:
    """Return a table in Markdown of the losses that were logged every so many steps."""
    with log.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) % every == 0 or row["step"] == "50"]
    columns = {"tokens read": "tokens", "loss": "train_loss", "held-out loss": "held_out_loss"}
    formats = {"tokens read": "{:,.0f}", "loss": "{:.3f}", "held-out loss": "{:.3f}"}
    found = {
        (name, row["step"]): formats[name].format(float(row[key])) for row in rows for name, key in columns.items()
    }
    return _table("step", found)


def _table(corner: str, cells: dict[tuple[str, str], str]) -> str:
    """Return a table of cells by column and row, both in the order in which they come first."""
    columns, rows = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    lines = [(corner, *columns), ("---", *["---:"] * len(columns))]
    lines += [(row, *(cells.get((column, row), "") for column in columns)) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
