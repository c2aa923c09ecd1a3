"""Helpers that the pages of the book share: the look of figures, numbers that the prose quotes, and tables."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # steadier timings, and the same sums on every machine
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["ATTENTION_BOOK"] = ".."  # reports that a page shows link to other pages of the book, from here

import numpy as np
from IPython.display import Markdown
from myst_nb import glue

from attnlib.plotting import Picture, use_style


def begin() -> None:
    """Set the look of figures and of printed arrays."""
    use_style()
    Picture.with_png = False  # pages show the HTML
    np.set_printoptions(precision=3, suppress=True)


def note(**numbers: object) -> None:
    """Keep numbers under a name, so that the text can quote what was computed: ``{glue:text}`name:.2f```."""
    for name, value in numbers.items():
        plain = value.item() if hasattr(value, "item") else value  # a number of NumPy or torch
        glue(name, plain, display=False)


def table(header: list[str], *rows: list[str]) -> Markdown:
    """Show rows of Markdown as a table."""
    lines = [header, ["---"] * len(header), *rows]
    return Markdown("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines))
