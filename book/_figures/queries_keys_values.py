"""The figures of the page *Queries, keys and values*, drawn from what the page has computed.

They are about five inches wide, so that their letters stay legible on a phone.
"""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE, heatmap

LANES = (
    (2.0, QUERY, "Q", "queries", "d_k"),
    (6.5, KEY, "K", "keys", "d_k"),
    (11.0, VALUE, "V", "values", "d_v"),
)  # where the ways to queries, keys and values are drawn, and what they are called


def box(ax, x, y, rows, columns, colour, title, numbers=None, digits=0, sizes=None, unit=(1.0, 0.8), fontsize=11):
    """Draw a table with its centre at (x, y): shaded, with numbers in it or its name."""
    width, height = columns * unit[0], rows * unit[1]
    left, top = x - width / 2, y + height / 2
    ax.add_patch(
        Rectangle((left, top - height), width, height, facecolor=colour, alpha=0.06 if colour == INK else 0.22, lw=0)
    )
    ax.add_patch(Rectangle((left, top - height), width, height, facecolor="none", edgecolor=colour, lw=1.6))
    if numbers is None:
        ax.text(x, y, title, ha="center", va="center", fontsize=fontsize)
    else:
        ax.text(x, top + 0.15, title, ha="center", va="bottom", fontsize=fontsize)
        for (i, j), value in np.ndenumerate(numbers):
            ax.text(
                left + (j + 0.5) * unit[0],
                top - (i + 0.5) * unit[1],
                f"{value:.{digits}f}",
                ha="center",
                va="center",
                fontsize=fontsize,
            )
    if sizes:
        ax.text(left - 0.12, y, sizes[0], ha="right", va="center", fontsize=10)
        ax.text(x, top - height - 0.08, sizes[1], ha="center", va="top", fontsize=10)


def arrow(ax, start, end, colour=INK, label="", at=(0, 0), ha="center"):
    ax.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", color=colour, lw=1.6))
    if label:
        ax.text(
            (start[0] + end[0]) / 2 + at[0], (start[1] + end[1]) / 2 + at[1], label, ha=ha, va="center", fontsize=10
        )


def temperature(temperatures, lines, mean) -> Figure:
    """Plot the answers of a soft lookup against its temperature, a line for each query."""
    figure, ax = plt.subplots(figsize=(4.8, 4.3))
    for (word, line), colour in zip(lines.items(), COLOURS):
        is_key = word == "bakery"
        ax.semilogx(temperatures, line, "--" if is_key else "-", color=colour, lw=2)
        aside = {"bread": 0.22, "bakery": -0.22}.get(word, 0)  # both end at the same value
        ax.text(temperatures[0] * 0.8, line[0] + aside, word, color=colour, ha="right", va="center")
    ax.axhline(mean, color=INK, lw=0.8, ls=":")
    ax.set(xlabel="temperature", ylabel="answer (hour)", xlim=(1.2e-4, 40), yticks=[5, 6, 7, 8, 9, 10])
    ax.grid(True)
    return figure


def guests(n_names, n_presents, guest_vectors, names, presents, guests) -> Figure:
    """Draw the guests' vectors, with the parts that become key, query and value."""

    def bands(ax, at=-0.9):
        """Name the three parts of a guest's vector along the horizontal axis."""
        for start, length, label, colour in (
            (0, n_names, "tag\n(key)", KEY),
            (n_names, n_names, "slip\n(query)", QUERY),
            (2 * n_names, n_presents, "present\n(value)", VALUE),
        ):
            ax.plot(
                [start - 0.4, start + length - 0.6], [at, at], color=colour, lw=4, clip_on=False, solid_capstyle="butt"
            )
            ax.text(start + length / 2 - 0.5, at - 0.25, label, ha="center", va="bottom")

    figure, ax = plt.subplots(figsize=(5.2, 3.3))
    for (i, j), x in np.ndenumerate(guest_vectors):
        colour = KEY if j < n_names else QUERY if j < 2 * n_names else VALUE
        ax.add_patch(
            Rectangle((j - 0.44, i - 0.44), 0.88, 0.88, facecolor=colour if x else "none", edgecolor=colour, lw=0.8)
        )
    bands(ax)
    ax.set(xlim=(-0.6, guest_vectors.shape[1] - 0.4), ylim=(len(guest_vectors) - 0.4, -3.0))
    ax.set_xticks(range(guest_vectors.shape[1]), [*names, *names, *presents], rotation=90, fontsize=9)
    ax.set_yticks(range(len(guest_vectors)), [name for name, *_ in guests])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="place in the vector", ylabel="guest")
    return figure


def two_tables(plain, with_matrices, tags) -> Figure:
    """Shade the weights of the party without parameters, above, and with three matrices, below."""
    figure, axes = plt.subplots(2, 1, figsize=(4.6, 6.8))
    figure.set_layout_engine("constrained", h_pad=0.12)
    heatmap(plain, tags, tags, ax=axes[0], title="no parameters", vmax=1)
    heatmap(with_matrices, tags, tags, ax=axes[1], title="slip asks, tag answers", vmax=1)
    for ax in axes:
        ax.set(xlabel="key (attended to)", ylabel="query")
    return figure


def queries_keys_values() -> Figure:
    """Draw the way from the words to queries, keys and values, and from there to the output."""
    figure, ax = plt.subplots(figsize=(5.0, 5.8))
    box(ax, 6.5, 15.2, 2.4, 4.4, INK, "$X$\none row per word", sizes=("$T$", "$D$"))
    for x, colour, letter, word, width in LANES:
        arrow(ax, (6.5 + (x - 6.5) * 0.42, 13.3 if x == 6.5 else 13.9), (x, 12.3), colour)
        box(ax, x, 10.6, 3.6, 2.2, colour, f"$W^{letter}$", sizes=("$D$", f"${width}$"))
        arrow(ax, (x, 8.4), (x, 7.35), colour)
        box(ax, x, 6.2, 2.4, 2.4, colour, f"${letter}$\n{word}", sizes=("$T$", f"${width}$"))
    box(ax, 2.0, 1.5, 2.4, 2.4, INK, "scores\n$QK^\\top$", sizes=("$T$", "$T$"))
    box(ax, 6.5, 1.5, 2.4, 2.4, INK, "weights\n$\\alpha$", sizes=("$T$", "$T$"))
    box(ax, 11.0, 1.5, 2.4, 2.4, VALUE, "output\n$A=\\alpha V$", sizes=("$T$", "$d_v$"))
    arrow(ax, (2.0, 4.6), (2.0, 2.6), QUERY)
    arrow(ax, (5.2, 5.4), (3.0, 2.6), KEY)
    arrow(ax, (3.3, 1.5), (4.75, 1.5), INK, "$/\\sqrt{d_k}$\nsoftmax", (0, 0.95))
    arrow(ax, (7.8, 1.5), (9.25, 1.5), INK, "weighted\nsum", (0, 0.95))
    arrow(ax, (11.0, 4.6), (11.0, 2.6), VALUE)
    ax.set(xlim=(0.0, 12.8), ylim=(-0.4, 16.4))
    ax.axis("off")
    return figure


def worked_by_hand(X, W_Q, W_K, W_V, Q, K, V, S, S_scaled, weights, output) -> Figure:
    """Draw the tables of the example that is worked by hand."""
    figure, ax = plt.subplots(figsize=(5.0, 8.2))
    unit = (1.12, 0.82)
    box(ax, 6.5, 17.0, 3, 4, INK, "$X$", X, unit=unit)
    for (x, colour, letter, *_), W, product in zip(LANES, (W_Q, W_K, W_V), (Q, K, V)):
        arrow(ax, (6.5 + (x - 6.5) * 0.45, 15.6), (x, 14.75), colour)
        box(ax, x, 12.15, 4, 3, colour, f"$W^{letter}$", W, unit=unit)
        arrow(ax, (x, 10.4), (x, 9.5), colour)
        box(ax, x, 7.35, 3, 3, colour, f"${letter} = XW^{letter}$", product, unit=unit)
    box(ax, 2.0, 1.9, 3, 3, INK, r"$S = QK^\top$", S, unit=unit)
    box(ax, 6.5, 1.9, 3, 3, INK, r"$S' = S/\sqrt{3}$", S_scaled, 2, unit=unit)
    box(ax, 6.5, -3.2, 3, 3, INK, r"$\alpha$", weights, 2, unit=unit)
    box(ax, 11.0, -3.2, 3, 3, VALUE, r"$A = \alpha V$", output, 2, unit=unit)
    arrow(ax, (2.0, 6.0), (2.0, 4.1), QUERY)
    arrow(ax, (5.4, 6.0), (3.4, 4.1), KEY)
    arrow(ax, (3.75, 1.9), (4.75, 1.9))
    arrow(ax, (6.5, 0.55), (6.5, -1.1), INK, "softmax", (0.25, 0), ha="left")
    arrow(ax, (8.25, -3.2), (9.25, -3.2))
    arrow(ax, (11.0, 6.0), (11.0, -1.1), VALUE)
    ax.set(xlim=(0.0, 13.0), ylim=(-4.7, 19.2))
    ax.axis("off")
    return figure
