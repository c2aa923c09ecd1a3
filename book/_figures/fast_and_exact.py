"""The longer figures of the page *Fast and exact*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

import attnlib
from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE

GRAPH_PLACES = {"Q": (0, 2), "K": (0, 1), "V": (0, 0), "S": (2.1, 1.5), "P": (4.1, 1.5), "O": (6.2, 0.75)}
GRAPH_COLOURS = {"Q": QUERY, "K": KEY, "V": VALUE}
GRAPH_WORDS = {"Q": "queries", "K": "keys", "V": "values", "S": "scores", "P": "weights", "O": "context"}
LABEL_PLACES = {
    ("Q", "S"): (1.25, 2.12),
    ("K", "S"): (1.3, 0.72),
    ("S", "P"): (3.1, 1.62),
    ("P", "O"): (5.55, 1.55),
    ("V", "O"): (3.1, -0.12),
}


def forward_and_backward() -> Figure:
    """Draw how attention is computed from its inputs, and how gradients flow back."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.8, 6.0))
    draw_graph(top, False)
    draw_graph(bottom, True)
    return figure


def draw_graph(ax, backward):
    """Draw the graph of the computation, or of its gradients."""
    labels = {
        ("Q", "S"): r"$dQ = c\,dS\,K$" if backward else "",
        ("K", "S"): r"$dK = c\,dS^\top Q$" if backward else r"$S = c\,QK^\top$",
        ("S", "P"): "softmax,\nbackwards" if backward else "softmax",
        ("P", "O"): r"$dP = dO\,V^\top$" if backward else r"$O = PV$",
        ("V", "O"): r"$dV = P^\top dO$" if backward else "",
    }
    for name, (x, y) in GRAPH_PLACES.items():
        colour = GRAPH_COLOURS.get(name, INK)
        ax.add_patch(
            FancyBboxPatch(
                (x - 0.3, y - 0.25),
                0.6,
                0.5,
                boxstyle="round,pad=0.03",
                fill=False,
                ec=colour,
                lw=2,
                ls="--" if backward else "-",
            )
        )
        ax.text(x, y, f"$d{name}$" if backward else f"${name}$", ha="center", va="center")
        if not backward:
            ax.text(x, y + 0.34, GRAPH_WORDS[name], ha="center", va="bottom", fontsize=9)
    for (a, b), text in labels.items():
        (x0, y0), (x1, y1) = GRAPH_PLACES[a], GRAPH_PLACES[b]
        ends = [(x0 + 0.36, y0), (x1 - 0.36, y1)]
        start, end = ends[::-1] if backward else ends
        ax.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", color=GRAPH_COLOURS.get(a, INK), lw=1.6))
        ax.text(*LABEL_PLACES[a, b], text, ha="center", va="bottom" if (a, b) == ("S", "P") else "center", fontsize=10)
    ax.text(6.6, 2.3, "backwards" if backward else "forwards", ha="right", weight="bold")
    ax.set(xlim=(-0.5, 6.7), ylim=(-0.45, 2.75))
    ax.axis("off")


def online_softmax(long_scores, m_, l_, o_, long_values) -> Figure:
    """Plot the running maximum, sum and quotient of one pass over the keys."""
    figure, axes = plt.subplots(3, 1, figsize=(6.6, 5.6), sharex=True)
    axes[0].plot(long_scores, ".", color=KEY, ms=4, label="score")
    axes[0].step(range(100), m_, where="post", color=INK, label="maximum $m$")
    axes[0].legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, markerscale=2)
    axes[1].plot(l_, color=COLOURS[0])
    axes[2].plot(o_, color=VALUE)
    axes[2].axhline(attnlib.softmax(long_scores) @ long_values, color=INK, ls="--", lw=1)
    axes[0].set_ylabel("score")
    axes[1].set_ylabel("sum $l$")
    axes[2].set(ylabel="context $o/l$", xlabel="keys seen")
    for ax in axes:
        ax.grid(True)
    return figure


def memory_and_time(plain_attention, in_tiles, lengths, memory, times) -> Figure:
    """Plot peak memory and time against the number of words."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.5))
    for f, name, mark, colour in (
        (plain_attention, "plain", "o-", COLOURS[1]),
        (in_tiles, "in tiles", "s-", COLOURS[0]),
    ):
        left.loglog(lengths, np.array(memory[f]) / 1e6, mark, color=colour, label=name)
        right.loglog(lengths, 1e3 * np.array(times[f]), mark, color=colour, label=name)
    left.loglog(lengths, [T * 64 * 4 / 1e6 for T in lengths], ":", color=INK, label="the result")
    left.set(xlabel="words $T$", ylabel="peak memory (MB)")
    right.set(xlabel="words $T$", ylabel="time (ms)")
    for ax in (left, right):
        ax.set_xticks(lengths[::2], map(str, lengths[::2]))
        ax.minorticks_off()
        ax.grid(True)
        ax.legend()
    return figure


def shared_heads() -> Figure:
    """Draw which query heads share key and value heads in MHA, GQA and MQA."""
    figure, axes = plt.subplots(3, 1, figsize=(6.6, 7.2))
    for ax, groups, name in zip(axes, (8, 2, 1), ("MHA: 8 key heads", "GQA: 2 key heads", "MQA: 1 key head")):
        size = 8 // groups
        for h in range(8):
            centre = (h // size + 0.5) * size - 0.5
            ax.plot([h, centre], [1.72, 1.28], color=INK, lw=1, alpha=0.7)
            ax.text(
                h,
                2,
                f"{h}",
                ha="center",
                va="center",
                fontsize=10,
                bbox=dict(boxstyle="round,pad=0.35", fc="none", ec=QUERY, lw=2),
            )
        for g in range(groups):
            centre = (g + 0.5) * size - 0.5
            ax.plot([centre, centre], [0.72, 0.28], color=INK, lw=1, ls=":")
            for y, colour in ((1, KEY), (0, VALUE)):
                ax.text(
                    centre,
                    y,
                    f"{g}",
                    ha="center",
                    va="center",
                    fontsize=10,
                    bbox=dict(boxstyle="round,pad=0.35", fc="none", ec=colour, lw=2),
                )
        for y, what in ((2, "queries"), (1, "keys"), (0, "values")):
            ax.text(-0.75, y, what, ha="right", va="center")
        ax.set(xlim=(-2.0, 7.5), ylim=(-0.35, 2.95))
        ax.text(-2.0, 2.75, name, weight="bold", ha="left", va="center")
        ax.axis("off")
    return figure


def roofline(peak_speed, bandwidth, ridge, intensity, reach) -> Figure:
    """Plot the operations per second that each way of computing attention can reach at most."""
    figure, ax = plt.subplots(figsize=(6.8, 4.4))
    axis = np.geomspace(0.4, 6000, 300)
    ax.loglog(axis, np.minimum(peak_speed, axis * bandwidth) / 1e12, color=INK, lw=2)
    ax.axvline(ridge, color=INK, ls=":", lw=1)
    ax.text(ridge * 1.08, 0.62, f"corner:\n{ridge:.0f} operations\nper byte", va="bottom")
    marks = {
        "plain": ("o", (8, -10), "left"),
        "tiled, keys read again": ("s", (-12, 8), "right"),
        "tiled, each byte once": ("D", (0, -18), "center"),
        "writing one word": ("^", (10, -6), "left"),
        "writing, groups of 4": ("v", (10, -6), "left"),
    }
    for (name, (mark, shift, side)), colour in zip(marks.items(), COLOURS):
        ax.plot(intensity[name], reach[name] / 1e12, mark, color=colour, ms=9)
        shown = name.replace(", ", ",\n") if name == "tiled, each byte once" else name
        ax.annotate(
            shown,
            (intensity[name], reach[name] / 1e12),
            xytext=shift,
            textcoords="offset points",
            ha=side,
            va="top" if side == "center" else "center",
        )
    ax.set(
        xlabel="arithmetic intensity (operations per byte)",
        ylabel="10¹² operations a second, at most",
        xlim=(0.4, 6000),
        ylim=(0.5, 700),
    )
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()
    ax.grid(True)
    return figure


def patches(pixels, chosen, looks, guess) -> Figure:
    """Draw digits and the patches that the class token attends to."""
    figure, axes = plt.subplots(3, 5, figsize=(6.9, 4.5))
    for n in range(5):
        tables = (pixels[1300 + chosen[n]].reshape(8, 8) / 16, *(layer[n] / layer[n].max() for layer in looks))
        for row, (ax, shades) in enumerate(zip(axes[:, n], tables)):
            side = 8 / len(shades)
            for (i, j), strength in np.ndenumerate(shades.numpy()):
                ax.add_patch(
                    Rectangle(
                        (j * side, i * side),
                        side,
                        side,
                        lw=0,
                        color=COLOURS[0] if row else INK,
                        alpha=float(0.85 * strength),
                    )
                )
            for line in (0, 2, 4, 6, 8):
                ax.plot([line, line], [0, 8], color=INK, lw=0.5, alpha=0.5)
                ax.plot([0, 8], [line, line], color=INK, lw=0.5, alpha=0.5)
            ax.set(xlim=(-0.1, 8.1), ylim=(8.1, -0.1), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        axes[0, n].set_title(f"says {guess[n].argmax().item()}", fontsize=10)
    for row, name in enumerate(("image", "layer 1", "layer 2")):
        axes[row, 0].set_ylabel(name)
    return figure
