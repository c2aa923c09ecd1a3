"""What the pages of the book share: numbers that the prose quotes, and tables."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # steadier timings, and the same sums on every machine
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["ATTENTION_BOOK"] = ".."  # a report shown on a page of the book links to its other pages

import numpy as np
from IPython.display import Markdown
from myst_nb import glue

from attnlib.plotting import use_style


def begin() -> None:
    """Set the look of figures and of printed arrays."""
    use_style()
    np.set_printoptions(precision=3, suppress=True)


def note(**numbers: object) -> None:
    """Keep numbers under a name, so that the text can quote what was computed: ``{glue:text}`name:.2f```."""
    for name, value in numbers.items():
        plain = value.item() if hasattr(value, "item") else value  # of NumPy's and torch's numbers
        glue(name, plain, display=False)


def table(header: list[str], *rows: list[str]) -> Markdown:
    """Show rows of text as a table; what is in them is Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return Markdown("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines))
