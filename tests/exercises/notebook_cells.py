"""The cells of an assignment's notebook by their ids, as it is released and as it is solved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).parents[2]


def cells_of(folder: str, notebook: str) -> dict[str, str]:
    """Return the source of each cell of a notebook, such as ``"05-masking/masking"`` in ``"solutions"``, by its id."""
    return {cell.id: cell.source for cell in nbformat.read(ROOT / folder / f"{notebook}.ipynb", as_version=4).cells}


def run_cells(cells: Mapping[str, str], names: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Run cells one after the other, and return what they define."""
    found = dict(given)
    for name in names:
        exec(cells[name], found)
    return found
