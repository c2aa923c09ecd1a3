"""The longer figures of the page *Masks*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE


def influences(moved, six) -> Figure:
    """Draw which outputs move when a word changes; a leak is crossed."""
    figure, axes = plt.subplots(2, 2, figsize=(6.0, 6.6))
    for ax, name in zip(axes.flat, ("right", "off_by_one", "zero_after", "centred")):
        for (i, j), m in np.ndenumerate(moved[name]):
            leak = m and j > i
            ax.add_patch(
                Rectangle(
                    (j - 0.5, i - 0.5), 1, 1, lw=0, color=COLOURS[7] if leak else COLOURS[0], alpha=0.5 if m else 0.05
                )
            )
            if leak:
                ax.text(j, i, "×", ha="center", va="center", fontsize=13, fontweight="bold")
        ax.set(xlim=(-0.5, 5.5), ylim=(5.5, -0.5), aspect="equal", title=name)
        ax.set_xticks(range(6), six, rotation=90)
        ax.set_yticks(range(6), six)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xlabel("key: the word changed" if ax in axes[1] else "")
        ax.set_ylabel("query: the output" if ax in axes[:, 0] else "")
    return figure


def cache() -> Figure:
    """Draw what is new and what comes from the cache at each of four steps."""
    figure, ax = plt.subplots(figsize=(6.4, 4.2))
    writes = ["the", "train", "left", "the"]
    for step, word in enumerate(writes):
        for name, x0, colour, row in (("q", 0.0, QUERY, None), ("k", 1.8, KEY, True), ("v", 6.6, VALUE, True)):
            for j in range(step + 1) if row else [step]:
                new = j == step
                at = x0 + (j if row else 0)
                ax.add_patch(
                    Rectangle((at, -step - 0.38), 0.86, 0.76, facecolor=colour, alpha=0.75 if new else 0.22, lw=0)
                )
                if new:
                    ax.add_patch(Rectangle((at, -step - 0.38), 0.86, 0.76, fill=False, edgecolor=INK, lw=1.2))
                ax.text(at + 0.43, -step, f"${name}_{j + 1}$", ha="center", va="center", fontsize=12)
        ax.text(-0.25, -step, f"step {step + 1}\n{word}", ha="right", va="center", fontsize=10)
    for at, name in ((0.43, "query"), (3.7, "keys"), (8.5, "values")):
        ax.text(at, 0.62, name, ha="center", va="bottom")
    ax.set(xlim=(-1.5, 10.6), ylim=(-3.6, 1.1))
    ax.axis("off")
    return figure


def time_for_one_word(sizes, without, with_cache) -> Figure:
    """Plot the time and the multiplications for one more word, with and without a cache."""
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 6.0), sharex=True)
    counts = np.array(sizes)
    axes[0].loglog(sizes, without, "s-", color=COLOURS[1], label="everything again")
    axes[0].loglog(sizes, with_cache, "o-", color=COLOURS[0], label="with a cache")
    axes[1].loglog(sizes, 4 * counts * 64**2 + 2 * counts**2 * 64, "s-", color=COLOURS[1], label="everything again")
    axes[1].loglog(sizes, 4 * 64**2 + 2 * counts * 64, "o-", color=COLOURS[0], label="with a cache")
    shown_ms = [
        ms for ms in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if 0.8 * min(with_cache) < ms < 1.2 * max(without)
    ]
    axes[0].set_yticks(shown_ms, map(str, shown_ms))
    axes[0].set(ylabel="time for one word (ms)")
    axes[1].set(ylabel="multiplications", xlabel="words so far $t$")
    for ax in axes:
        ax.set_xticks(sizes, map(str, sizes))
        ax.minorticks_off()
        ax.grid(True)
        ax.legend(fontsize=10)
    return figure


def pooling_errors(curves, pads) -> Figure:
    """Plot the error of the pooled vector against the number of pads."""
    figure, ax = plt.subplots(figsize=(5.8, 3.8))
    for (name, ys), marker in zip(curves.items(), "os^"):
        ax.plot(pads, ys, marker + "-", ms=4, label=name)
    ax.set(xlabel="pads behind the sentence", ylabel="error / length of the right vector", xticks=range(0, 19, 3))
    ax.legend(fontsize=10)
    ax.grid(True)
    return figure
