"""The longer figures of the page *Many heads*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE


def plane_of_averages(kept, A, B) -> Figure:
    """Draw all points with the average 1/2, and two sentences among them."""
    figure = plt.figure(figsize=(4.8, 3.8))
    ax = figure.add_subplot(projection="3d")
    ax.add_collection3d(Poly3DCollection([kept], alpha=0.25, facecolor=COLOURS[0], edgecolor=COLOURS[0]))
    for point, name, colour, shift in ((A, "A", COLOURS[1], [0, -0.16, 0.02]), (B, "B", COLOURS[2], [0, 0.08, 0.04])):
        ax.scatter(*point, color=colour, s=60, depthshade=False)
        ax.text(*(point + shift), name, fontsize=13, fontweight="bold")
    ax.text(*(kept.mean(axis=0) - [0, 0.1, 0.1]), "average = 1/2", ha="center", fontsize=11)
    ax.set(
        xlim=(0, 1.4),
        ylim=(0, 1.5),
        zlim=(0, 1.35),
        xlabel="name\n$c_1$",
        ylabel="trait\n$c_2$",
        zlabel="pronoun\n$c_3$",
    )
    ax.set_xticks([0, 0.5, 1]), ax.set_yticks([0, 0.5, 1, 1.5]), ax.set_zticks([0, 0.5, 1])
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((0, 0, 0, 0))
    ax.grid(False)
    ax.view_init(22, 35)
    ax.set_box_aspect(None, zoom=0.9)
    return figure


def right_and_wrong_split(D, x, T, H, right, wrong) -> Figure:
    """Draw how a table is cut into heads, in the right and in a wrong way."""
    figure, ax = plt.subplots(figsize=(6.6, 4.6))

    def grid(left, top, numbers, colour, title):
        for i, line in enumerate(numbers):
            for j, number in enumerate(line):
                ax.add_patch(Rectangle((left + j, top + i), 1, 1, facecolor=colour(number), alpha=0.45, lw=0))
                ax.add_patch(Rectangle((left + j, top + i), 1, 1, fill=False, edgecolor=INK, lw=0.7))
                ax.text(left + j + 0.5, top + i + 0.5, f"{number:02d}", ha="center", va="center")
        ax.text(left + len(numbers[0]) / 2, top - 0.25, title, ha="center", va="bottom")

    def of_head(number):
        return COLOURS[(number % 10) // D]

    grid(0, 3.7, x, of_head, "x: (4, 6)")
    for t in range(T):
        ax.text(-0.25, 4.2 + t, f"word {t}", ha="right", va="center")
    for h in range(H):
        grid(8.6 + 2.9 * h, 0.6, right[h], of_head, f"head {h}")
        grid(8.6 + 2.9 * h, 7.3, wrong[h], of_head, f"head {h}")
    ax.text(12.4, -0.85, "right: reshape(T, H, D).swapaxes(0, 1)", ha="center", va="bottom", fontweight="bold")
    ax.text(12.4, 6.05, "wrong: reshape(H, T, D)", ha="center", va="bottom", fontweight="bold")
    for target in (2.6, 9.3):
        ax.add_patch(FancyArrowPatch((6.3, 5.7), (8.3, target), arrowstyle="-|>", mutation_scale=14, color=INK))
    ax.set(xlim=(-2.3, 16.7), ylim=(11.5, -1.5), aspect="equal")
    ax.axis("off")
    return figure


def multi_head_attention() -> Figure:
    """Draw multi-head attention with the shape of every step."""
    figure, ax = plt.subplots(figsize=(6.2, 6.4))

    for place, name, length, colour in ((1.5, "query", "T", QUERY), (5.0, "key", "S", KEY), (8.5, "value", "S", VALUE)):
        letter = name[0].upper()
        tensor_box(ax, place, 0.4, f"{name}  ({length}, E)", colour)
        flow_arrow(ax, (place, 0.76), (place, 1.54), f"$W^{letter}$")
        tensor_box(ax, place, 1.9, f"({length}, H·D)", colour)
        flow_arrow(ax, (place, 2.26), (place, 2.86), "split")
        tensor_box(ax, place, 3.45, f"(H, {length}, D)", colour, stack=2)
    flow_arrow(ax, (1.5, 3.85), (2.5, 4.4))
    flow_arrow(ax, (5.0, 3.85), (4.0, 4.4))
    tensor_box(ax, 3.25, 5.2, "$QK^\\top/\\sqrt{D}$\nsoftmax  (H, T, S)", width=4.3, height=1.1, stack=2)
    flow_arrow(ax, (4.1, 5.78), (4.8, 6.1))
    flow_arrow(ax, (8.5, 3.85), (7.2, 6.1))
    tensor_box(ax, 5.8, 6.7, "weights × values  (H, T, D)", width=5.2, stack=2)
    flow_arrow(ax, (5.8, 7.1), (5.8, 7.8), "merge")
    tensor_box(ax, 5.8, 8.2, "(T, H·D)", width=3)
    flow_arrow(ax, (5.8, 8.56), (5.8, 9.3), "$W^O$")
    tensor_box(ax, 5.8, 9.7, "output  (T, E)", width=3)
    ax.set(xlim=(-0.1, 10.3), ylim=(10.2, -0.1))
    ax.axis("off")
    return figure


def tensor_box(ax, x, y, text, colour=INK, width=2.6, height=0.72, stack=0):
    """Draw a box, with the edges of as many boxes behind it as the stack has."""
    left, right_, top_, low = x - width / 2, x + width / 2, y - height / 2, y + height / 2
    ax.add_patch(Rectangle((left, top_), width, height, lw=1.5, facecolor="none", edgecolor=colour))
    for n in range(1, stack + 1):
        dx, dy = 0.13 * n, 0.1 * n
        ax.plot(
            [left + dx, left + dx, right_ + dx, right_ + dx, right_ + dx - 0.13],
            [top_ - dy + 0.1, top_ - dy, top_ - dy, low - dy, low - dy],
            color=colour,
            lw=1.2,
        )
    ax.text(x, y, text, ha="center", va="center")


def flow_arrow(ax, start, end, text="", side=0.12):
    """Draw an arrow, with a text beside it."""
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, color=INK, lw=1.1, shrinkA=0, shrinkB=0)
    )
    if text:
        ax.text(max(start[0], end[0]) + side, (start[1] + end[1]) / 2, text, va="center", ha="left", fontsize=10)


def sum_of_heads() -> Figure:
    """Draw the output projection as a sum over the heads."""
    figure, ax = plt.subplots(figsize=(6.8, 2.7))

    def block(x, y, width, height, colour, text):
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=0.4, lw=0))
        ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, lw=1))
        ax.text(x + width / 2, y + height / 2, text, ha="center", va="center")

    for h in range(3):
        block(1.55 * h, 1.15, 1.55, 2.2, COLOURS[h], f"head {h}")
        block(5.4, 1.5 * h, 4.5, 1.5, COLOURS[h], f"$W^O_{h}$")
    ax.text(5.02, 2.25, "×", ha="center", va="center", fontsize=15)
    ax.text(10.4, 2.25, "=", ha="center", va="center", fontsize=15)
    ax.text(2.25, 0.95, "merged: T × HD", ha="center")
    ax.text(7.65, -0.2, "$W^O$: HD × E", ha="center")
    for h in range(3):
        top = 1.75 * h - 0.35
        block(11.0, top, 1.7, 1.4, COLOURS[h], f"head {h}")
        ax.text(13.05, top + 0.7, "×", ha="center", va="center")
        block(13.4, top + 0.2, 3.2, 1.0, COLOURS[h], f"$W^O_{h}$")
        if h < 2:
            ax.text(13.05, top + 1.57, "+", ha="center", va="center", fontsize=14)
    ax.set(xlim=(-0.1, 16.7), ylim=(4.7, -0.9))
    ax.axis("off")
    return figure


def training_curves(losses) -> Figure:
    """Draw the training loss of models with different numbers of heads, and the floor of each."""
    figure, ax = plt.subplots(figsize=(6.0, 3.8))
    for (heads, loss), colour in zip(losses.items(), (COLOURS[1], COLOURS[3], COLOURS[2]), strict=True):
        floor = (3 - heads) / 3
        curve = np.convolve(loss, np.ones(10) / 10, "valid")
        ax.plot(np.arange(len(curve)) + 10, curve, color=colour, lw=1.8)
        ax.axhline(floor, color=INK, ls="--", lw=0.9, alpha=0.7)
        ax.annotate(f"{heads} head{'s' * (heads > 1)}", (500, floor + 0.05), ha="right", color=INK)
    ax.set(xlabel="training step", ylabel="mean squared error", ylim=(-0.03, 1.25), xlim=(0, 510))
    ax.set_yticks([0, 1 / 3, 2 / 3, 1], ["0", "1/3", "2/3", "1"])
    return figure


def sharpness(counts, lines) -> Figure:
    """Draw among how many keys a head divides its attention, for three ways of scaling its scores."""
    figure, ax = plt.subplots(figsize=(6.0, 3.9))
    for (name, line), marker, colour in zip(lines.items(), "osv", (COLOURS[2], COLOURS[1], COLOURS[3]), strict=True):
        label = "not divided" if "not" in name else f"divided {name}"
        ax.plot(counts, line, marker=marker, color=colour, label=label)
    ax.axhline(64, color=INK, ls="--", lw=0.9)
    ax.text(1, 65, "64: a plain average", va="bottom")
    ax.set_xscale("log", base=2)
    ax.set_xticks(counts, [f"{h}\n{512 // h}" for h in counts])
    ax.minorticks_off()
    ax.set(xlabel="number of heads (above) and width of each (below)", ylabel="effective number of keys", ylim=(0, 72))
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.36))
    return figure


def switched_off(single, best, trained) -> Figure:
    """Draw the error without each of six heads, and with the best few of them."""
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.4), sharey=True)
    axes[0].bar(range(6), single, color=COLOURS[0])
    axes[0].set(xlabel="head switched off", ylabel="error (1: answering 0)", xticks=range(6))
    axes[1].plot(range(7), best, "o-", color=COLOURS[1], label="switched off")
    axes[1].plot([0, 1, 2, 3, 6], [1, *(trained[h] for h in (1, 2, 3, 6))], "s--", color=COLOURS[2], label="trained")
    axes[1].set(xlabel="heads kept (best set)", xticks=range(7))
    axes[1].legend()
    return figure
