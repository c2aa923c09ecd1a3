"""Figures of attention, drawn with matplotlib, in which every axis is labelled as that of the queries or the keys.

``use_style()`` makes figures that ``show()`` can put on a page: transparent, with words in the colour and the font of
the page's own text, so that one figure suits light and dark mode.

Dimensions: L layers, H heads, T queries, S keys.
"""

import base64
import hashlib
import html
import io
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlib._arrays import is_torch
from attnlib._extras import explain_missing

with explain_missing("attnlib.plotting"):
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from cycler import cycler
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    from attnlib import _page_svg

TEX_FORMULA, TEX_ROOT = re.compile(r"(?<!\\)\$([^$]+)(?<!\\)\$"), re.compile(r"\\sqrt\{([^{}]+)\}")
SVG_TAG = re.compile(r"<[^>]+>")
PAGE_BACKEND = f"module://{_page_svg.__name__}"
INK = "#22252a"  # a placeholder for the colour of the text, which the page replaces by its own
COLOURS = (  # at least 3:1 on white and on near-black; colour-blind readers can tell the first four apart
    *("#3b82c4", "#d94c6f", "#998708", "#8a2ee5", "#2e9e6b", "#a07848"),
    *("#1f9aa8", "#d0473f", "#6b7fd6", "#b04fb0", "#5f9a2b", "#7d8791"),
)
QUERY, KEY, VALUE = "#9b6bd1", "#c8641c", "#00967d"  # in all figures; colour-blind readers can tell them apart too
LABEL_PAD = 8  # points between the tick labels and the axis label
MAX_SHADE = 0.65  # of a shade: ink on it keeps a contrast of more than 4.5:1, in light and in dark


def use_style() -> None:
    """Set matplotlib's defaults to the course's style. Existing figures do not change."""
    mpl.rcParams.update(
        {
            **{name: INK for name in ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor")},
            **{name: INK for name in ("xtick.color", "ytick.color", "legend.labelcolor", "grid.color")},
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "axes.labelpad": LABEL_PAD,
            "savefig.facecolor": "none",
            "legend.frameon": False,
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.alpha": 0.25,
            "font.size": 11,
            "mathtext.fontset": "stix",  # from the same family as the font of the book's formulas
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

    The stronger the shade, the larger the number; negative numbers have another colour. The shades are transparent, so
    that the numbers can be read on a light page and on a dark one.

    Args:
        weights: ``(T, S)``, NumPy or anything that NumPy can read.
        queries: T labels of the rows.
        keys: S labels of the columns.
        ax: where to draw; a new figure by default.
        title: above the table.
        digits: the number of decimals shown.
        vmax: the absolute value that gets the full shade; by default the largest in the table.

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
        ax = Figure(figsize=_table_size(queries, keys)).subplots()
    full = _largest(x) if vmax is None else vmax
    if full < 0:
        raise ValueError(f"vmax is {vmax}, but a number of at least 0 is needed")
    for (i, j), value in np.ndenumerate(x):
        shade = min(abs(value) / full, 1.0) * MAX_SHADE if full and not np.isnan(value) else 0.0
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color=COLOURS[int(value < 0)], alpha=shade, lw=0))
        ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center")
    ax.set(xlim=(-0.5, len(keys) - 0.5), ylim=(len(queries) - 0.5, -0.5))
    _label(ax, queries, keys, title)
    _fit(ax, len(keys))
    return _figure_of(ax)


def head_view(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    heads: Sequence[int] | None = None,
    focus: int | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> Figure:
    """Draw attention as lines from the queries, on the left, to the keys, on the right, in a colour per head.

    The larger a weight, the wider and stronger its line; the largest that is drawn gets the full strength, and those
    below a hundredth of it are left out.

    Args:
        weights: ``(H, T, S)``, none negative.
        queries: T labels.
        keys: S labels.
        heads: which heads to draw, counted from 0 (-1 is the last); by default all, if there are colours for all.
        focus: the only query whose lines are drawn, counted from 0; by default the lines of all queries are drawn.
        ax: where to draw; a new figure by default.
        title: above the drawing.

    Returns:
        The figure that holds the drawing.

    Raises:
        ValueError: the number of labels does not fit the shape of the weights, a weight is negative, or there are more
            heads than colours, or none.
        IndexError: there is no such head or query.

    Source:
        Vig (2019), "A Multiscale Visualization of Attention in the Transformer Model", figure 1.

    Example:
        >>> head_view([[[0.5, 0.5, 0.0]], [[0.0, 0.1, 0.9]]], ["it"], ["the", "cat", "sat"])  # doctest: +ELLIPSIS
        <Figure size ...>
    """
    x = _not_negative(_numbers(weights, queries, keys, "H"))
    chosen = _chosen(heads, x.shape[0])
    rows = range(len(queries)) if focus is None else [_index(focus, len(queries), "focus", "queries")]
    if ax is None:
        ax = Figure(figsize=(5.5, 1.3 + 0.32 * max(len(queries), len(keys), 2))).subplots()
    full = _largest(x[np.ix_(chosen, rows)])
    legend = []
    for place, (head, colour) in enumerate(zip(chosen, COLOURS, strict=False)):
        # Without a shift, heads would hide each other's lines.
        shift = (place - (len(chosen) - 1) / 2) * min(0.12, 0.6 / len(chosen))
        ax.add_collection(_lines(x[head], rows, full, shift, colour))
        legend.append(Line2D([], [], color=colour, lw=3, label=f"head {head}"))
    ax.legend(handles=legend, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=4, handlelength=1.2)
    _label_sides(ax, queries, keys, focus if focus is None else rows[0])
    if title:
        ax.set_title(title, pad=24)
    return _figure_of(ax)


def head_grid(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str = "") -> Figure:
    """Draw the weights of all heads as small tables of shaded cells: a column per head, a row per layer.

    A shade means the same number in all tables. Layers and heads are counted from 0.

    Args:
        weights: ``(H, T, S)``, or for several layers ``(L, H, T, S)`` or a list of L arrays; none negative.
        queries: T labels of the rows of each table.
        keys: S labels of the columns of each table.
        title: above all tables.

    Returns:
        A new figure.

    Raises:
        ValueError: the number of labels does not fit the shape of the weights, or a weight is negative.

    Example:
        >>> import numpy as np
        >>> len(head_grid(np.full((2, 3, 1, 2), 0.5), ["it"], ["the", "cat"]).axes)
        6
        >>> from attnlib.numpy import Encoder
        >>> encoder = Encoder(embed_dim=6, num_heads=3, ff_dim=8, num_layers=2)
        >>> out, weights = encoder(np.ones((1, 2, 6), np.float32), need_weights=True)
        >>> len(head_grid([layer[0] for layer in weights], ["the", "cat"], ["the", "cat"]).axes)
        6
    """
    x = _plain(weights)
    x = _not_negative(_numbers(x, queries, keys, "LH" if x.ndim == 4 else "H"))
    layers = x if x.ndim == 4 else x[None]
    side = 0.5 + 0.15 * len(keys), 0.45 + 0.15 * len(queries)
    size = 1.2 + max(1.2, side[0]) * layers.shape[1], 1.2 + side[1] * layers.shape[0]
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(*layers.shape[:2], sharex=True, sharey=True, squeeze=False)
    for (layer, head), ax in np.ndenumerate(grid):
        shades = np.zeros((len(queries), len(keys), 4)) + to_rgba(COLOURS[0])
        shades[..., 3] = MAX_SHADE * np.nan_to_num(layers[layer, head]) / (_largest(x) or 1.0)
        ax.imshow(shades, aspect="auto", interpolation="nearest")
        ax.set_title(f"layer {layer}, head {head}" if x.ndim == 4 else f"head {head}", fontsize=8)
        ax.set_xticks(range(len(keys)), keys, rotation=90, fontsize=8, parse_math=False)
        ax.set_yticks(range(len(queries)), queries, fontsize=8, parse_math=False)
        ax.tick_params(length=0)
        ax.spines[:].set(visible=True, linewidth=0.4)
        ax.label_outer()
    figure.supxlabel("key (what is attended to)", fontsize=mpl.rcParams["font.size"])
    figure.supylabel("query (who attends)", fontsize=mpl.rcParams["font.size"])
    figure.suptitle(title)
    return figure


def _figure_of(ax: Axes) -> Figure:
    """Return the whole figure, even if the axes are in a subfigure."""
    return ax.figure.figure


def _largest(x: NDArray[np.float64]) -> float:
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


def _numbers(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], leading: str = "") -> NDArray[np.float64]:
    x = _plain(weights)
    if x.ndim != len(leading) + 2 or x.shape[-2:] != (len(queries), len(keys)):
        wanted = ", ".join([*leading, str(len(queries)), str(len(keys))])
        raise ValueError(
            f"weights have shape {x.shape}, but there are {len(queries)} queries and {len(keys)} keys: "
            f"({wanted}) is needed"
        )
    return x


def _plain(weights: ArrayLike) -> NDArray[np.float64]:
    """Return weights as a NumPy array; a list of several layers' weights is stacked."""
    if isinstance(weights, list | tuple) and any(map(is_torch, weights)):
        return np.stack([_plain(layer) for layer in weights])
    # A tensor straight from a model may require a gradient, be bfloat16, or lie on a device that has no float64.
    return np.asarray(weights.detach().cpu().double() if is_torch(weights) else weights, dtype=float)  # type: ignore[union-attr]


def _not_negative(x: NDArray[np.float64]) -> NDArray[np.float64]:
    if (x < 0).any():
        raise ValueError(
            f"weights go down to {np.nanmin(x)}, but 0 is the least that this can draw: heatmap draws less"
        )
    return x


def _index(i: int, count: int, name: str, what: str) -> int:
    if not -count <= i < count:
        raise IndexError(f"{name} is {i}, but there are {count} {what}: 0 to {count - 1}")
    return i % count


def _chosen(heads: Sequence[int] | None, count: int) -> list[int]:
    chosen = [_index(head, count, "a head", "heads") for head in (range(count) if heads is None else heads)]
    if not 1 <= len(chosen) <= len(COLOURS):
        raise ValueError(
            f"{len(chosen)} heads are to be drawn, but there are colours for 1 to {len(COLOURS)}: "
            f"choose some of the {count}, as in heads=[0, 1]"
        )
    return chosen


def _lines(x: NDArray[np.float64], rows: Sequence[int], full: float, shift: float, colour: str) -> LineCollection:
    drawn = [(i, int(j)) for i in rows for j in np.flatnonzero(x[i] > full / 100)]
    strength = [x[ij] / full for ij in drawn]
    ends = [[(0.0, i + shift), (1.0, j + shift)] for i, j in drawn]
    return LineCollection(
        ends, linewidths=[0.5 + 2.5 * w for w in strength], color=[to_rgba(colour, w) for w in strength]
    )


def _label_sides(ax: Axes, queries: Sequence[str], keys: Sequence[str], focus: int | None) -> None:
    ax.set(xlim=(0, 1), ylim=(max(len(queries), len(keys)) - 0.5, -0.5), xticks=[])
    ax.set_yticks(range(len(queries)), queries, parse_math=False)
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(keys)), keys, parse_math=False)
    for side in (ax, right):
        side.tick_params(length=0)
        side.spines[:].set_visible(False)
    if focus is not None:
        ax.get_yticklabels()[focus].set_fontweight("bold")
    ax.text(0, 1.02, "query (who attends)", ha="center", va="bottom", transform=ax.transAxes)
    ax.text(1, 1.02, "key (what is attended to)", ha="center", va="bottom", transform=ax.transAxes)


def _table_size(queries: Sequence[str], keys: Sequence[str]) -> tuple[float, float]:
    """Return the size of a figure for a table, in inches. With more than ten a side, cells shrink."""
    width, height = (
        size * max(0.5, min(1.0, 10 / max(len(labels), 1))) for size, labels in ((0.72, keys), (0.5, queries))
    )
    longest_query, longest_key = (0.09 * max(map(len, labels), default=0) for labels in (queries, keys))
    slanted = 0.7 * longest_key if longest_key > width else 0.0
    return 0.6 + max(1.0, longest_query) + len(keys) * width, 1.3 + slanted + len(queries) * height


def _fit(ax: Axes, columns: int) -> None:
    """Slant the labels of the columns if they would run into each other, and shrink the numbers if they would."""
    _figure_of(ax).draw_without_rendering()
    room = ax.get_window_extent().width / max(columns, 1)
    if any(label.get_window_extent().width > 0.95 * room for label in ax.get_xticklabels()):
        for label in ax.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")
    widest = max((text.get_window_extent().width for text in ax.texts), default=0.0)
    if widest > 0.9 * room:
        for text in ax.texts:
            text.set_fontsize(float(text.get_fontsize()) * 0.9 * room / widest)


def _label(ax: Axes, queries: Sequence[str], keys: Sequence[str], title: str) -> None:
    ax.set_xticks(range(len(keys)), keys, parse_math=False)
    ax.set_yticks(range(len(queries)), queries, parse_math=False)
    ax.set_xlabel("key (what is attended to)", labelpad=LABEL_PAD)
    ax.set_ylabel("query (who attends)", labelpad=LABEL_PAD)
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
    """Describe in words what :func:`heatmap` shows: for every query the two keys with the largest weights.

    Args:
        weights: ``(T, S)``.
        queries: T labels.
        keys: S labels.
        digits: the number of decimals shown.

    Returns:
        One sentence for all rows, for screen readers.

    Raises:
        ValueError: the number of labels does not fit the shape of the weights.

    Example:
        >>> describe([[0.2, 0.7, 0.1]], ["it"], ["the", "cat", "sat"])
        'Rows are queries, columns are keys. it: cat 0.70, the 0.20.'
    """
    x = _numbers(weights, queries, keys)
    return f"Rows are queries, columns are keys. {_strongest(x, queries, keys, digits)}."


def describe_heads(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    heads: Sequence[int] | None = None,
    focus: int | None = None,
    digits: int = 2,
) -> str:
    """Describe in words what :func:`head_view` shows: for every head and query the two keys with the largest weights.

    Args:
        weights: ``(H, T, S)``.
        queries: T labels.
        keys: S labels.
        heads: which heads, counted from 0; by default all.
        focus: the only query to describe, counted from 0; by default all.
        digits: the number of decimals shown.

    Returns:
        A sentence for each head, for screen readers.

    Raises:
        ValueError: the number of labels does not fit the shape of the weights, or there are more heads than colours.
        IndexError: there is no such head or query.

    Example:
        >>> describe_heads([[[0.2, 0.7, 0.1]], [[0.9, 0.1, 0.0]]], ["it"], ["the", "cat", "sat"])
        'Lines run from queries to keys. Head 0: it: cat 0.70, the 0.20. Head 1: it: the 0.90, cat 0.10.'
    """
    x = _numbers(weights, queries, keys, "H")
    chosen = _chosen(heads, x.shape[0])
    if focus is not None:
        row = _index(focus, len(queries), "focus", "queries")
        x, queries = x[:, [row]], [queries[row]]
    sentences = [f"Head {head}: {_strongest(x[head], queries, keys, digits)}." for head in chosen]
    return " ".join(["Lines run from queries to keys.", *sentences])


def _strongest(x: NDArray[np.float64], queries: Sequence[str], keys: Sequence[str], digits: int) -> str:
    rows = []
    for query, row in zip(queries, x, strict=True):
        best = np.argsort(-row, kind="stable")[:2]
        rows.append(f"{query}: " + ", ".join(f"{keys[j]} {row[j]:.{digits}f}" for j in best))
    return "; ".join(rows)


class Picture:
    """A figure on a page: inline SVG in the page's colour and font, described for readers who cannot see it."""

    with_png = True  # for notebook viewers that cannot show HTML

    def __init__(self, figure: Figure, alt: str) -> None:
        self.figure, self.alt = figure, alt

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        shown = {"text/html": self._html(), "text/plain": self.alt}
        return shown | {"image/png": self._png()} if self.with_png else shown

    def _html(self) -> str:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="svg", backend=PAGE_BACKEND, metadata={"Date": None, "Creator": None})
        svg = buffer.getvalue().decode()
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
        svg = re.sub(r'(<svg[^>]*?) width="([\d.]+)pt"', r'\1 width="100%" style="max-width:\2pt"', svg, count=1)
        svg = svg.replace(INK, "currentColor").replace(
            "<svg", '<svg aria-hidden="true" focusable="false" direction="ltr"', 1
        )
        prefix = "p" + hashlib.sha256(svg.encode()).hexdigest()[:8]  # ids must be unique among all pictures of a page
        svg = SVG_TAG.sub(lambda tag: re.sub(r'(id="|href="#|url\(#)', rf"\1{prefix}-", tag[0]), svg)
        return f'<div class="picture" role="img" aria-label="{html.escape(self.alt)}">{svg}</div>'

    def _png(self) -> str:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=144, facecolor="white")
        return base64.b64encode(buffer.getvalue()).decode()


def show(figure: Figure, alt: str) -> Picture:
    """Return the figure as a :class:`Picture` for the page, described by ``alt``.

    Raises:
        ValueError: ``alt`` is empty. Readers who cannot see the figure would be left with nothing.
    """
    if not alt.strip():
        raise ValueError("alt is empty, but every picture needs a description in words")
    plt.close(figure)  # otherwise a notebook would draw it again at the end of the cell
    return Picture(figure, TEX_FORMULA.sub(_spoken, " ".join(alt.split())))


def _spoken(formula: re.Match[str]) -> str:
    r"""Return a short formula as a screen reader can read it: ``\sqrt{HD}`` becomes √(HD)."""
    return TEX_ROOT.sub(lambda root: f"√{root[1]}" if len(root[1]) == 1 else f"√({root[1]})", formula[1])
