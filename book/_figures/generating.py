"""The figures of the page on generating, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from _figures.masks import grid
from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE


def cache() -> Figure:
    """Draw what is new and what comes from the cache at each of four steps."""
    figure, ax = plt.subplots(figsize=(4.8, 3.6))
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
    figure, axes = plt.subplots(2, 1, figsize=(4.8, 5.6), sharex=True)
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
    axes[1].set(ylabel="multiplications", xlabel="words so far (t)")
    for ax in axes:
        ax.set_xticks(sizes, map(str, sizes))
        ax.minorticks_off()
        ax.grid(True)
        ax.legend(fontsize=10)
    return figure


def shared_heads() -> Figure:
    """Draw which query heads share key and value heads in MHA, GQA and MQA."""
    figure, axes = plt.subplots(3, 1, figsize=(4.8, 6.6))
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
        ax.set(xlim=(-2.4, 7.5), ylim=(-0.35, 2.95))
        ax.text(-2.4, 2.75, name, weight="bold", ha="left", va="center")
        ax.axis("off")
    return figure


def cache_sizes(tokens, gib) -> Figure:
    """Plot the size of a cache in GiB, given for each pair of a length and a number of key heads."""
    figure, ax = plt.subplots(figsize=(4.8, 3.8))
    kinds = ((32, "MHA, 32 key heads", "o-"), (8, "GQA, 8 key heads", "s-"), (1, "MQA, 1 key head", "^-"))
    for (heads, name, style), colour in zip(kinds, (COLOURS[1], COLOURS[0], COLOURS[2]), strict=True):
        ax.loglog(tokens, [gib[n, heads] for n in tokens.tolist()], style, color=colour, label=name)
    ax.axhline(40e9 / 2**30, color=INK, ls="--", lw=1)
    ax.text(1024, 42e9 / 2**30, "40 GB card", va="bottom")
    ax.set(xlabel="tokens so far", ylabel="cache (GiB)")
    ax.set_xticks(tokens[::2], [f"{n:,}" for n in tokens[::2]])
    ax.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    ax.minorticks_off()
    ax.grid(True)
    ax.legend(loc="lower right")
    return figure


def reaches(masks, w: int) -> Figure:
    """Draw from where something reaches each word, for four numbers of layers with a window of w words."""
    figure, axes = plt.subplots(2, 2, figsize=(4.8, 5.4))
    for ax, (L, mask) in zip(axes.flat, masks.items(), strict=True):
        places = [str(i) for i in range(len(mask))]
        grid(ax, mask, places, places, f"{L} layer{'s' * (L > 1)}: reach {min(len(mask) - 1, w * L)}")
        for cross in ax.texts:
            cross.set_alpha(0.25)
        ax.tick_params(labelsize=9)
        ax.set(xlabel="key" if ax in axes[1] else "", ylabel="query" if ax in axes[:, 0] else "")
    return figure
