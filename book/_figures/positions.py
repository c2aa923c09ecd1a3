"""The longer figures of the page *Positions*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import attnlib
from attnlib.plotting import COLOURS, INK, KEY, QUERY


def line_and_circle(place, on_line, on_circle) -> Figure:
    """Plot the weights that queries give to positions on a line and on a circle."""
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 4.6), sharex=True)
    for strength, style in zip((-10, -3, 3, 10), (":", "--", "-.", "-")):
        axes[0].plot(
            place, attnlib.softmax(strength * on_line[:, 0]), style, marker="o", ms=3, label=f"query {strength}"
        )
    for wanted, style in zip((2, 7, 12, 17), (":", "--", "-.", "-")):
        w = attnlib.softmax(60 * on_circle @ on_circle[wanted])
        axes[1].plot(place, w, style, marker="o", ms=3, label=f"towards {wanted}")
    axes[0].set(ylabel="weight", title="a number: $i/T$")
    axes[1].set(ylabel="weight", title="a point on a circle", xlabel="position of the key")
    axes[1].set_xticks(range(0, 20, 5))
    for ax in axes:
        ax.legend(ncols=2, fontsize=9)
        ax.grid(True)
    axes[1].set_ylim(0, 0.8)
    return figure


def clocks(omega8) -> Figure:
    """Draw the hands of the sinusoidal code as clocks, for the first positions."""
    figure, axes = plt.subplots(4, 7, figsize=(6.6, 4.3))
    around = np.linspace(0, 2 * np.pi, 80)
    for k in range(4):
        for p in range(7):
            ax, angle = axes[k, p], p * omega8[k]
            ax.plot(np.sin(around), np.cos(around), color=INK, lw=0.6, alpha=0.5)
            ax.plot([0, 0], [0.85, 1], color=INK, lw=1)
            ax.annotate(
                "",
                (np.sin(angle), np.cos(angle)),
                (0, 0),
                arrowprops=dict(arrowstyle="-|>", color=COLOURS[k], lw=2, shrinkA=0, shrinkB=0),
            )
            ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if k == 0:
                ax.set_title(str(p), fontsize=11)
            if p == 0:
                ax.set_ylabel(f"hand {k}\n$\\omega={omega8[k]:.2f}$", fontsize=10)
    figure.suptitle("position", fontsize=11)
    return figure


def turned_arrows(q2, k2, turned) -> Figure:
    """Draw a query and a key before and after they are turned by their positions."""
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.7), sharey=True)
    around = np.linspace(0, 2 * np.pi, 80)
    for ax, (at_q, at_k) in zip(axes, ((1, 3), (6, 8))):
        ax.plot(np.sin(around), np.cos(around), color=INK, lw=0.6, alpha=0.4)
        for x, at, colour, name in ((q2, at_q, QUERY, "query"), (k2, at_k, KEY, "key")):
            y = turned(x, at)
            ax.annotate(
                "",
                x,
                (0, 0),
                arrowprops=dict(arrowstyle="-|>", color=colour, lw=1, alpha=0.55, ls="--", shrinkA=0, shrinkB=0),
            )
            ax.annotate("", y, (0, 0), arrowprops=dict(arrowstyle="-|>", color=colour, lw=2.6, shrinkA=0, shrinkB=0))
            tip = y / np.linalg.norm(y)
            ax.text(*(1.22 * tip), f"{name}\nat {at}", ha="center", va="center", color=INK, fontsize=10)
        ax.set(
            xlim=(-1.6, 1.6),
            ylim=(-1.5, 1.5),
            aspect="equal",
            xlabel="component $a$",
            xticks=[-1, 0, 1],
            yticks=[-1, 0, 1],
        )
        ax.set_title(f"dot product {turned(q2, at_q) @ turned(k2, at_k):.2f}", fontsize=11)
    axes[0].set_ylabel("component $b$")
    return figure


def accuracy_beyond_training(LONG, schemes, result, TRAIN) -> Figure:
    """Plot the accuracy at each position, within and beyond the length of training."""
    figure, axes = plt.subplots(2, 1, figsize=(6.4, 7.0), sharex=True)
    middle = np.arange(LONG // 8) * 8 + 4
    styles = dict(zip(schemes, ((":", "x"), ("--", "s"), ("-.", "v"), ("-", "o"), ("--", "D"), ("-", "^"))))
    for ax, task in zip(axes, ("three back", "latest vowel")):
        for n, scheme in enumerate(schemes):
            line, marker = styles[scheme]
            ax.plot(
                middle, result[task, scheme], line, marker=marker, ms=4.5, markevery=3, color=COLOURS[n], label=scheme
            )
        ax.axvline(TRAIN, ls=":", color=INK)
        ax.set(title=task, ylabel="share of right answers", ylim=(0, 1.05), xlim=(0, LONG))
        ax.grid(True)
    axes[1].set_xlabel("position")
    axes[0].set_title("three back", pad=48)
    axes[0].legend(ncols=3, fontsize=10, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def weights_by_distance(TRAIN, by_distance) -> Figure:
    """Plot the weights of two schemes by distance, near and far beyond the length of training."""
    figure, axes = plt.subplots(2, 1, figsize=(6.2, 5.0), sharex=True)
    for ax, scheme in zip(axes, ("RoPE", "T5")):
        ax.axvspan(0, TRAIN - 1, color=INK, alpha=0.08, lw=0)
        ax.semilogy(by_distance[scheme][200], "-", color=COLOURS[0], lw=1.4, label="query at 200")
        ax.semilogy(by_distance[scheme][20], "o--", color=COLOURS[1], ms=3.5, label="query at 20")
        ax.set(ylabel="weight", title=scheme, ylim=(1e-6, 2))
        ax.grid(True)
    axes[1].legend(fontsize=9, loc="lower right")
    axes[1].set_xlabel("distance from query back to key")
    return figure
