"""The longer figures of the page *Queries, keys and values*, drawn from what the page has computed."""

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


def shades(ax, x):
    full = np.abs(x).max()
    picture = np.zeros((*x.shape, 4))
    for sign, colour in ((1, COLOURS[0]), (-1, COLOURS[1])):
        rgb = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        here = np.sign(x) == sign
        picture[here, :3] = rgb
    picture[..., 3] = np.abs(x) / full
    ax.imshow(picture, interpolation="nearest", aspect="auto")
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, linewidth=0.5)


def guests(n_names, n_presents, guest_vectors, names, presents, guests) -> Figure:
    """Draw the guests' vectors, with the parts that become key, query and value."""

    def bands(ax, at=-0.9):
        """Name the three parts of a guest's vector along the horizontal axis."""
        for start, length, label, colour in (
            (0, n_names, "tag (key)", KEY),
            (n_names, n_names, "slip (query)", QUERY),
            (2 * n_names, n_presents, "present (value)", VALUE),
        ):
            ax.plot(
                [start - 0.4, start + length - 0.6], [at, at], color=colour, lw=4, clip_on=False, solid_capstyle="butt"
            )
            ax.text(start + length / 2 - 0.5, at - 0.25, label, ha="center", va="bottom")

    figure, ax = plt.subplots(figsize=(7.0, 3.0))
    for (i, j), x in np.ndenumerate(guest_vectors):
        colour = KEY if j < n_names else QUERY if j < 2 * n_names else VALUE
        ax.add_patch(
            Rectangle((j - 0.44, i - 0.44), 0.88, 0.88, facecolor=colour if x else "none", edgecolor=colour, lw=0.8)
        )
    bands(ax)
    ax.set(xlim=(-0.6, guest_vectors.shape[1] - 0.4), ylim=(len(guest_vectors) - 0.4, -2.1))
    ax.set_xticks(range(guest_vectors.shape[1]), [*names, *names, *presents], rotation=90, fontsize=9)
    ax.set_yticks(range(len(guest_vectors)), [name for name, *_ in guests])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="place in the vector", ylabel="guest")
    return figure


def queries_keys_values() -> Figure:
    """Draw the way from the words to queries, keys and values, and from there to the output."""
    figure, ax = plt.subplots(figsize=(7.0, 6.6))
    box(ax, 6.5, 15.2, 2.4, 3.6, INK, "$X$\none row a word", sizes=("$T$", "$D$"))
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


def worked_by_hand(X, W_Q, W_K, W_V, Q, K, V, S, weights, output) -> Figure:
    """Draw the tables of the example that is worked by hand."""
    figure, ax = plt.subplots(figsize=(7.0, 8.2))
    unit = (1.12, 0.82)
    box(ax, 6.5, 17.0, 3, 4, INK, "$X$", X, unit=unit)
    for (x, colour, letter, *_), W, product in zip(LANES, (W_Q, W_K, W_V), (Q, K, V)):
        arrow(ax, (6.5 + (x - 6.5) * 0.45, 15.6), (x, 14.65), colour)
        box(ax, x, 12.15, 4, 3, colour, f"$W^{letter}$", W, unit=unit)
        arrow(ax, (x, 10.4), (x, 9.45), colour)
        box(ax, x, 7.35, 3, 3, colour, f"${letter} = XW^{letter}$", product, unit=unit)
    box(ax, 2.0, 1.9, 3, 3, INK, "$S = QK^\\top$", S, unit=unit)
    box(ax, 6.5, 1.9, 3, 3, INK, "$\\alpha$", weights, 2, unit=unit)
    box(ax, 11.0, 1.9, 3, 3, VALUE, "$A = \\alpha V$", output, 2, unit=unit)
    arrow(ax, (2.0, 6.0), (2.0, 4.0), QUERY)
    arrow(ax, (5.6, 6.0), (3.2, 4.0), KEY)
    arrow(ax, (3.75, 1.9), (4.75, 1.9))
    arrow(ax, (8.25, 1.9), (9.25, 1.9))
    arrow(ax, (11.0, 6.0), (11.0, 4.0), VALUE)
    ax.set(xlim=(0.0, 13.0), ylim=(0.4, 19.2))
    ax.axis("off")
    return figure


def saturation(largest, slope, widths) -> Figure:
    """Plot the largest weight and the size of the Jacobian against the width."""
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.6))
    for measured, ax in zip((largest, slope), axes):
        for name, colour, style in (("divided", COLOURS[0], "o-"), ("not divided", COLOURS[7], "s--")):
            low, middle, high = np.array([measured[name, d] for d in widths]).T
            ax.plot(widths, middle, style, color=colour, label=name)
            ax.fill_between(widths, np.maximum(low, 1e-5), high, color=colour, alpha=0.18, lw=0)
        ax.set_xscale("log", base=4)
        ax.set_xticks(widths, [str(d) for d in widths])
        ax.set_xlabel("width $d_k$")
        ax.grid(True)
    axes[0].set(ylabel="largest of 16 weights", ylim=(0, 1.02))
    axes[1].set(ylabel="norm of the Jacobian", yscale="log", ylim=(1e-5, 1))
    axes[0].legend(loc="upper left", fontsize=10)
    return figure


def learned_matrices(n_names, D, W_Q, M) -> Figure:
    """Shade the learned W_Q and the product of W_Q and W_K."""
    blocks = [(0, n_names, "tag"), (n_names, 2 * n_names, "slip"), (2 * n_names, D, "present")]
    middles = [(a + b - 1) / 2 for a, b, _ in blocks]
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 4.4), width_ratios=[1, 2.4])
    shades(axes[0], W_Q)
    shades(axes[1], M)
    axes[0].set(xlabel="column, 1 to 8", ylabel="the asking guest's (query)", xticks=[], title="$W^Q$")
    axes[1].set(xlabel="the asked guest's (key)", title="$M = W^Q\\,(W^K)^\\top$")
    axes[1].set_xticks(middles, [name for *_, name in blocks])
    for ax in axes:
        ax.set_yticks(middles, [name for *_, name in blocks], rotation=90, va="center")
        for _, b, _ in blocks[:-1]:
            ax.axhline(b - 0.5, color=INK, lw=0.6)
    for _, b, _ in blocks[:-1]:
        axes[1].axvline(b - 0.5, color=INK, lw=0.6)
    return figure


def queries_and_keys_in_a_plane(names, q2, k2) -> Figure:
    """Draw the queries of slips and the keys of tags as arrows in a plane."""
    figure, ax = plt.subplots(figsize=(5.2, 5.2))
    for name, q, k in zip(names, q2, k2):
        ax.annotate("", k, (0, 0), arrowprops=dict(arrowstyle="-|>", color=KEY, lw=2))
        ax.annotate("", 0.82 * q, (0, 0), arrowprops=dict(arrowstyle="-|>", color=QUERY, lw=2, ls="--"))
        ax.text(*(1.16 * k), name, ha="center", va="center")  # type: ignore[call-arg]
    ax.plot([], [], color=KEY, lw=2, label="key of a tag")
    ax.plot([], [], color=QUERY, lw=2, ls="--", label="query of a slip")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xlabel="first component", ylabel="second component")
    return figure


def weights_of_he(rows, row_names, dog) -> Figure:
    """Shade the weights of *he*, without parameters and for each start of the training."""
    figure, ax = plt.subplots(figsize=(7.0, 4.2))
    heatmap(rows, row_names, dog, ax=ax, vmax=1)
    ax.set_ylabel("he (query)")
    return figure
