"""The figures of the page *A transformer you can read*, drawn from what the page has computed."""

from itertools import pairwise

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE


def box(ax, x, y, text, colour=INK, w=1.7, h=0.62):
    ax.add_patch(
        FancyBboxPatch((x - w / 2, y - h / 2), w, h, boxstyle="round,pad=0.04", fc=colour + "33", ec=colour, lw=1.4)
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=10)


def arrow(ax, points, lw=1.2):
    for (x0, y0), (x1, y1) in pairwise(points[:-1]):
        ax.plot([x0, x1], [y0, y1], color=INK, lw=lw)
    ax.annotate("", points[-1], points[-2], arrowprops=dict(arrowstyle="-|>", color=INK, lw=lw, shrinkA=0, shrinkB=0))


def plus(ax, x, y):
    ax.plot(x, y, "o", ms=15, mfc="none", mec=INK)
    ax.text(x, y - 0.02, "+", ha="center", va="center", fontsize=13)


def pre_and_post_norm() -> Figure:
    """Draw a block with its norms before the branches, and one with its norms after them."""
    figure, axes = plt.subplots(1, 2, figsize=(5, 5.2))
    for ax, kind in zip(axes, ("pre", "post")):
        ax.set(xlim=(-0.9, 3.3), ylim=(-0.6, 9.2), title=f"{kind}-norm")
        ax.axis("off")
        ax.text(0, -0.45, "X in", ha="center")
        if kind == "pre":
            for base, part, colour in ((0.4, "attention", COLOURS[0]), (4.4, "feed-forward", VALUE)):
                arrow(ax, [(0, base), (2, base), (2, base + 0.55)])
                box(ax, 2, base + 0.9, "norm")
                arrow(ax, [(2, base + 1.25), (2, base + 1.75)])
                box(ax, 2, base + 2.1, part, colour)
                arrow(ax, [(2, base + 2.45), (2, base + 3.1), (0.2, base + 3.1)])
                plus(ax, 0, base + 3.1)
            stops = [(0, -0.15), (0, 3.3), (0, 3.7), (0, 7.3), (0, 7.7), (0, 8.6)]
            for a, b in zip(stops[::2], stops[1::2]):
                ax.plot(*zip(a, b), color=INK, lw=3)
        else:
            for base, part, colour in ((0.4, "attention", COLOURS[0]), (4.4, "feed-forward", VALUE)):
                arrow(ax, [(0, base), (2, base), (2, base + 0.75)])
                box(ax, 2, base + 1.1, part, colour)
                arrow(ax, [(2, base + 1.45), (2, base + 2.1), (0.2, base + 2.1)])
                plus(ax, 0, base + 2.1)
                box(ax, 0, base + 3.1, "norm", w=1.3)
            for a, b in (
                ((0, -0.15), (0, 2.3)),
                ((0, 2.7), (0, 3.14)),
                ((0, 3.86), (0, 6.3)),
                ((0, 6.7), (0, 7.14)),
                ((0, 7.86), (0, 8.6)),
            ):
                ax.plot(*zip(a, b), color=INK, lw=3)
        ax.text(0, 8.75, "Y out", ha="center")
    return figure


def lengths(pres, angles, DEPTH, adds, posts) -> Figure:
    """Plot the length of the rows after each block."""
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    ax.plot(pres, "o-", ms=4, label="pre-norm: the stream")
    ax.plot(angles, ":", color=INK, lw=1.6, label="if at right angles")
    ax.plot(range(1, DEPTH + 1), adds, "s--", ms=4, label="pre-norm: what the block adds")
    ax.plot(posts, "^-", ms=4, label="post-norm: the stream")
    ax.set(xlabel="after block", ylabel="length of a row", ylim=(0, None))
    ax.legend(loc="upper left")
    ax.grid(True)
    return figure


def collapse_of_rows(collapse) -> Figure:
    """Plot how different the rows still are after each block."""
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    for (name, values), mark in zip(collapse.items(), "os^v"):
        ax.semilogy(np.maximum(values, 1e-17), marker=mark, ms=4, label=name)
    ax.set(xlabel="after block", ylabel="difference between rows", ylim=(1e-18, 20))
    ax.legend(loc="center right")
    ax.grid(True)
    return figure


def gradient_sizes(sizes, depths) -> Figure:
    """Plot the size of the gradient in each block, and in the last block of deeper stacks."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(5, 6.4), gridspec_kw={"hspace": 0.5})
    for kind, mark in (("pre", "o"), ("post", "^")):
        above.plot(range(1, 25), sizes[kind][24], marker=mark, ms=4, label=f"{kind}-norm")
        below.plot(depths, [sizes[kind][d][-1] for d in depths], marker=mark, label=f"{kind}-norm")
    below.plot(depths, [sizes["pre"][3][-1] * (3 / d) ** 0.5 for d in depths], "--", color=INK, lw=1)
    below.set_xscale("log")
    below.set_xticks(depths, map(str, depths))
    below.minorticks_off()
    above.set(xlabel="block (of 24)", title="all blocks")
    below.set(xlabel="number of blocks", title="last block")
    above.legend()
    for ax in (above, below):
        ax.set(ylabel="gradient of $W_2$", ylim=(0, None))
        ax.grid(True)
    return figure


def learning_curve(curve, baselines) -> Figure:
    """Plot the losses on the training text and on the held-out text, with the baselines as dashed lines."""
    figure, ax = plt.subplots(figsize=(5, 3.8))
    ax.plot(curve[:, 0], curve[:, 1], "s-", ms=4, label="training text")
    ax.plot(curve[:, 0], curve[:, 2], "o-", ms=4, label="held-out text")
    for (name, value), colour in zip(baselines.items(), COLOURS[2:]):
        ax.axhline(value, ls="--", lw=1.2, color=colour)
        ax.text(curve[-1, 0], value + 0.05, name, ha="right", va="bottom", fontsize=10)
    ax.set(xlabel="training step", ylabel="loss (nats per token)")
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.86))
    ax.grid(True)
    return figure


def temperatures(dists, names) -> Figure:
    """Plot the probabilities of the next word at several temperatures; top-5 ends at the dotted line."""
    figure, ax = plt.subplots(figsize=(5, 3.6))
    for n, (t, prob) in enumerate(dists.items()):
        ax.bar(
            np.arange(len(names)) + 0.27 * (n - 1),
            prob,
            0.25,
            label=f"temperature {t}",
            color=COLOURS[n],
            hatch=("", "//", "..")[n],
            edgecolor=INK,
            lw=0.4,
        )
    ax.axvline(4.5, color=INK, lw=1, ls=":")
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    ax.set(ylabel="probability", xlabel="next word")
    ax.legend()
    return figure


def encoder_and_decoder() -> Figure:
    """Draw an encoder beside the decoder that reads from it."""
    figure, ax = plt.subplots(figsize=(5, 4.8))
    ax.set(xlim=(-1.3, 6.3), ylim=(-1.0, 6.3))
    ax.axis("off")
    columns = {
        0.0: ("encoder", ["self-attention\n(all)", "feed-forward"], "source"),
        4.4: ("decoder", ["self-attention\n(causal)", "cross-attention", "feed-forward"], "target so far"),
    }
    for x, (title, parts, below) in columns.items():
        heights = [0.9, 2.5, 4.1][: len(parts)]
        ax.text(x, -0.8, below, ha="center", fontsize=10)
        ax.text(x, 5.8, title, ha="center", fontsize=11, fontweight="bold")
        arrow(ax, [(x, -0.45), (x, 0.45)])
        for y, part in zip(heights, parts):
            colour = COLOURS[2] if part == "feed-forward" else COLOURS[4] if part.startswith("cross") else COLOURS[0]
            box(ax, x, y, part, colour, w=2.2, h=0.8)
        for a, b in pairwise(heights):
            arrow(ax, [(x, a + 0.45), (x, b - 0.45)])
    arrow(ax, [(4.4, 4.55), (4.4, 5.0)])
    ax.text(4.4, 5.1, "next token", ha="center", fontsize=10)
    ax.plot([0, 0, 1.75, 1.75], [2.95, 3.5, 3.5, 2.3], color=INK, lw=1.2)
    for height, name, colour in ((2.8, "keys", KEY), (2.3, "values", VALUE)):
        ax.annotate(
            "",
            (3.25, height),
            (1.75, height),
            arrowprops=dict(arrowstyle="-|>", color=colour, lw=1.8, shrinkA=0, shrinkB=0),
        )
        ax.text(2.5, height + 0.08, name, color=colour, fontsize=10, ha="center", va="bottom")
    ax.text(4.5, 1.6, "queries", color=QUERY, fontsize=10, ha="left")
    return figure
