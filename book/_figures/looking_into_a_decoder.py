"""The figures of the page *Looking into a model that writes*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.plotting import COLOURS, INK, MAX_SHADE, heatmap


def one_head(weights, labels, title) -> Figure:
    """Shade the weights of one head, and print those of at least 0.05."""
    figure, ax = plt.subplots(figsize=(6.8, 6.6))
    for (i, j), w in np.ndenumerate(weights):
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color=COLOURS[0], alpha=float(w) * MAX_SHADE, lw=0))
        if w >= 0.05:
            ax.text(j, i, f"{w:.1f}".replace("0.", "."), ha="center", va="center", fontsize=12)
    ax.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(labels) - 0.5, -0.5))
    ax.set_xticks(range(len(labels)), labels, rotation=90, fontsize=13)
    ax.set_yticks(range(len(labels)), labels, fontsize=13)
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, linewidth=0.5)
    ax.set_xlabel("key (what is attended to)", fontsize=13)
    ax.set_ylabel("query (who attends)", fontsize=13)
    ax.set_title(title, fontsize=13)
    return figure


def margins(margin) -> Figure:
    """Shade the margin of each head, in a table for each job."""
    figure, axes = plt.subplots(2, 2, figsize=(6.8, 6.4), sharex=True, sharey=True)
    numbers = [str(n) for n in range(6)]
    for ax, (kind, values) in zip(axes.flat, margin.items(), strict=True):
        heatmap((100 * values).round() + 0.0, numbers, numbers, ax=ax, digits=0, vmax=100, title=f"{kind}, in %")
        ax.set(xlabel="", ylabel="")
        for text in (*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.title):
            text.set_fontsize(13)
    figure.supxlabel("head", fontsize=13)
    figure.supylabel("layer", fontsize=13)
    return figure


def rises(costs, winner, of_winner) -> Figure:
    """Mark for each job how much the loss rises without each head."""
    figure, ax = plt.subplots(figsize=(4.8, 4.8))
    for row, (kind, chosen) in enumerate(winner.items()):
        for (layer, head), rise in np.ndenumerate(costs[kind]):
            if (layer, head) == chosen:
                continue
            same = layer == chosen[0]
            ax.plot(rise, row + (0.16 if same else -0.16), "o" if same else "x", color=COLOURS[1] if same else INK,
                    mfc="none", ms=7, alpha=1 if same else 0.6)  # fmt: skip
        found = of_winner[kind]
        ax.plot([found["low"], found["high"]], [row, row], color=COLOURS[0], lw=2)
        ax.plot(found["rise"], row, "o", color=COLOURS[0], ms=10)
        ax.annotate(f"{chosen[0]}.{chosen[1]}", (found["high"], row), (5, -4), textcoords="offset points")
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_yticks(range(len(winner)), winner, fontsize=13)
    ax.margins(x=0.1)
    ax.set(ylim=(len(winner) - 0.5, -0.6), xlabel="rise in the loss\non the job's tokens (nats)")
    ax.xaxis.label.set_fontsize(13)
    ax.tick_params(axis="x", labelsize=12)
    _legend(ax)
    return figure


def _legend(ax) -> None:
    ax.plot([], [], "o-", color=COLOURS[0], ms=10, label="chosen head")
    ax.plot([], [], "o", color=COLOURS[1], mfc="none", ms=7, label="same layer")
    ax.plot([], [], "x", color=INK, ms=7, label="other layers")
    ax.legend(ncols=3, fontsize=10.5, loc="lower right", bbox_to_anchor=(1, 1), columnspacing=1, handletextpad=0.4)


def sets_of_three(together, random, summed) -> Figure:
    """Mark for each job how much the loss rises without its three best heads, and without random sets of three."""
    figure, ax = plt.subplots(figsize=(4.8, 4.4))
    for row, kind in enumerate(together):
        ax.plot(random[kind], np.full(len(random[kind]), row), "x", color=INK, ms=7, alpha=0.6)
        ax.plot(summed[kind], row, "s", color=COLOURS[1], mfc="none", ms=9)
        ax.plot(together[kind], row, "o", color=COLOURS[0], ms=10)
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_yticks(range(len(together)), together, fontsize=13)
    ax.set(ylim=(len(together) - 0.5, -0.6), xlabel="rise in the loss\non the job's tokens (nats)")
    ax.xaxis.label.set_fontsize(13)
    ax.plot([], [], "o", color=COLOURS[0], ms=10, label="best three")
    ax.plot([], [], "s", color=COLOURS[1], mfc="none", ms=9, label="sum of each alone")
    ax.plot([], [], "x", color=INK, ms=7, label="random three")
    ax.legend(ncols=2, fontsize=10.5, loc="lower right", bbox_to_anchor=(1, 1), columnspacing=1, handletextpad=0.4)
    return figure
