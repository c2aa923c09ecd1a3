"""Figures of attention, drawn with matplotlib: every axis says which is the query and which the key.

``use_style()`` makes figures that ``show()`` can put on a page: transparent, with ink in the colour of the page's own
text, so that one figure reads in light and in dark.

Dimensions: T queries, S keys.
"""

import base64
import hashlib
import html
import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from attnlib._arrays import is_torch

INK = "#22252a"  # stands for "the colour of the text": a page replaces it by its own
COLOURS = ("#3b82c4", "#c8641c", "#2e9e6b", "#9b6bd1", "#c9508b")  # at least 3:1 on white and on near-black
STRONGEST = 0.65  # of a shade: ink on it keeps a contrast of more than 4.5:1, in light and in dark


def use_style() -> None:
    """Set matplotlib's defaults to the course's look. Figures made before stay as they are."""
    mpl.rcParams.update(
        {
            **{name: INK for name in ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor")},
            **{name: INK for name in ("xtick.color", "ytick.color", "legend.labelcolor", "grid.color")},
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.frameon": False,
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.alpha": 0.25,
            "font.size": 11,
            "figure.figsize": (7.0, 4.0),
            "figure.constrained_layout.use": True,
            "svg.hashsalt": "attnlib",
        }
    )


def heatmap(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    ax: Axes | None = None,
    title: str = "",
    digits: int = 2,
    vmax: float | None = None,
) -> Figure:
    """Draw weights (or scores) as a table of shaded cells: a row per query, a column per key, a number in each.

    The stronger the shade, the larger the number; negative ones are of another colour. The shades are transparent, so
    that the numbers, in ink, read on a light page and on a dark one.

    Args:
        weights: ``(T, S)``, NumPy or anything that NumPy can read.
        queries: T labels of the rows.
        keys: S labels of the columns.
        ax: where to draw; a new figure by default.
        title: above the table.
        digits: how many decimals the numbers show.
        vmax: the size that gets the full shade; by default the largest in the table.

    Returns:
        The figure that holds the table.

    Raises:
        ValueError: the number of labels does not fit the shape of the weights, or ``vmax`` is negative.

    Example:
        >>> heatmap([[0.5, 0.5, 0.0]], ["it"], ["the", "cat", "sat"])  # doctest: +ELLIPSIS
        <Figure size ...>
    """
    x = _numbers(weights, queries, keys)
    if ax is None:
        ax = Figure(figsize=(1.6 + 0.72 * len(keys), 1.3 + 0.5 * len(queries))).subplots()
    full = float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) if vmax is None else vmax
    if full < 0:
        raise ValueError(f"vmax is {vmax}, but it is a size: a number from 0 on is needed")
    for (i, j), value in np.ndenumerate(x):
        shade = min(abs(value) / full, 1.0) * STRONGEST if full and not np.isnan(value) else 0.0
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color=COLOURS[int(value < 0)], alpha=shade, lw=0))
        ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center")
    ax.set(xlim=(-0.5, len(keys) - 0.5), ylim=(len(queries) - 0.5, -0.5))
    _label(ax, queries, keys, title)
    figure = ax.figure
    assert isinstance(figure, Figure)
    return figure


def _numbers(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str]) -> NDArray[np.float64]:
    # A tensor straight from a model may need a gradient, lie on another device, or be bfloat16.
    x = np.asarray(weights.detach().double().cpu() if is_torch(weights) else weights, dtype=float)  # type: ignore[union-attr]
    if x.shape != (len(queries), len(keys)):
        raise ValueError(
            f"weights have shape {x.shape}, but there are {len(queries)} queries and {len(keys)} keys: "
            f"({len(queries)}, {len(keys)}) is needed"
        )
    return x


def _label(ax: Axes, queries: Sequence[str], keys: Sequence[str], title: str) -> None:
    ax.set_xticks(range(len(keys)), keys)
    ax.set_yticks(range(len(queries)), queries)
    ax.set_xlabel("key (what is attended to)")
    ax.set_ylabel("query (who attends)")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(len(keys) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(queries) + 1) - 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", lw=0.6)
    if title:
        ax.set_title(title)


def describe(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, digits: int = 2) -> str:
    """Say in words what :func:`heatmap` shows: for every query the two keys with the largest weights.

    Args:
        weights: ``(T, S)``.
        queries: T labels.
        keys: S labels.
        digits: how many decimals the numbers show.

    Returns:
        One sentence for all rows, for screen readers.

    Raises:
        ValueError: the number of labels does not fit the shape of the weights.

    Example:
        >>> describe([[0.2, 0.7, 0.1]], ["it"], ["the", "cat", "sat"])
        'Rows are queries, columns are keys. it: cat 0.70, the 0.20.'
    """
    x = _numbers(weights, queries, keys)
    rows = []
    for query, row in zip(queries, x, strict=True):
        best = np.argsort(-row, kind="stable")[:2]
        rows.append(f"{query}: " + ", ".join(f"{keys[j]} {row[j]:.{digits}f}" for j in best))
    return "Rows are queries, columns are keys. " + "; ".join(rows) + "."


class Picture:
    """A figure as it stands on a page: inline SVG in the page's ink, with a text for those who do not see it."""

    def __init__(self, figure: Figure, alt: str) -> None:
        self.figure, self.alt = figure, alt

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self._html(), "image/png": self._png(), "text/plain": self.alt}

    def _html(self) -> str:
        buffer = io.StringIO()
        self.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        svg = buffer.getvalue()
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
        svg = re.sub(r'(<svg[^>]*?) width="([\d.]+)pt"', r'\1 width="100%" style="max-width:\2pt"', svg, count=1)
        svg = svg.replace(INK, "currentColor").replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
        prefix = "p" + hashlib.sha256(svg.encode()).hexdigest()[:8]  # ids must be unique among all pictures of a page
        svg = re.sub(r'(id="|href="#|url\(#)', rf"\1{prefix}-", svg)
        return f'<div class="picture" role="img" aria-label="{html.escape(self.alt)}">{svg}</div>'

    def _png(self) -> str:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=144, facecolor="white")
        return base64.b64encode(buffer.getvalue()).decode()


def show(figure: Figure, alt: str) -> Picture:
    """Return the figure as a :class:`Picture` for the page, described by ``alt``.

    Raises:
        ValueError: ``alt`` is empty: a picture that is not described is lost on some readers.
    """
    if not alt.strip():
        raise ValueError("alt is empty, but every picture needs a description in words")
    plt.close(figure)  # or a notebook would draw it once more at the end of the cell
    return Picture(figure, " ".join(alt.split()))
