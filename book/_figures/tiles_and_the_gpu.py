"""The figures of the page *Tiles and the GPU*, drawn from what the page has computed.

They are about five inches wide, so that their letters stay legible on a phone.
"""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import attnlib
from attnlib.plotting import COLOURS, INK, KEY, VALUE


def online_softmax(long_scores, m_, l_, o_, long_values) -> Figure:
    """Plot the running maximum, sum and quotient of one pass over the keys."""
    figure, axes = plt.subplots(3, 1, figsize=(5.0, 5.8), sharex=True)
    axes[0].plot(long_scores, ".", color=KEY, ms=4, label="score")
    axes[0].step(range(100), m_, where="post", color=INK, label="maximum m")
    axes[0].legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, markerscale=2)
    axes[1].plot(l_, color=COLOURS[0])
    axes[2].plot(o_, color=VALUE)
    axes[2].axhline(attnlib.softmax(long_scores) @ long_values, color=INK, ls="--", lw=1)
    axes[0].set_ylabel("score")
    axes[1].set_ylabel("sum\n$l$")
    axes[2].set(ylabel="context\n$o/l$", xlabel="keys seen")
    for ax in axes:
        ax.grid(True)
    return figure


def causal_tiles(visited) -> Figure:
    """Draw the tiles of 1024 words that the causal rule visits, in their order."""
    figure, ax = plt.subplots(figsize=(4.8, 4.8))
    for n, (i, j) in enumerate(visited):
        colour = (*to_rgb(COLOURS[0]), 0.15 if i == j else 0.45)
        ax.add_patch(Rectangle((j, i), 128, 128, facecolor=colour, edgecolor=INK, lw=0.6))
        ax.text(j + 64, i + 64, f"{n + 1}", ha="center", va="center")
    ticks = range(0, 1025, 256)
    ax.set(xlim=(0, 1024), ylim=(1024, 0), aspect="equal", xlabel="key", ylabel="query", xticks=ticks, yticks=ticks)
    ax.spines[["top", "right"]].set_visible(True)
    return figure


def memory_and_time(plain_attention, in_tiles, lengths, memory, times) -> Figure:
    """Plot peak memory and time against the number of words."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(4.8, 6.2))
    for f, name, mark, colour in (
        (plain_attention, "plain", "o-", COLOURS[1]),
        (in_tiles, "in tiles", "s-", COLOURS[0]),
    ):
        top.loglog(lengths, np.array(memory[f]) / 1e6, mark, color=colour, label=name)
        bottom.loglog(lengths, 1e3 * np.array(times[f]), mark, color=colour, label=name)
    top.loglog(lengths, [T * 64 * 4 / 1e6 for T in lengths], ":", color=INK, label="the result")
    top.set(xlabel="words T", ylabel="peak memory (MB)")
    bottom.set(xlabel="words T", ylabel="time (ms)")
    for ax in (top, bottom):
        ax.set_xticks(lengths, map(str, lengths))
        ax.minorticks_off()
        ax.grid(True)
        ax.legend()
    return figure


def roofline(peak_speed, bandwidth, ridge, intensity, reach) -> Figure:
    """Plot the operations per second that each way of computing attention can reach at most."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    axis = np.geomspace(0.4, 6000, 300)
    ax.loglog(axis, np.minimum(peak_speed, axis * bandwidth) / 1e12, color=INK, lw=2)
    ax.axvline(ridge, color=INK, ls=":", lw=1)
    ax.text(ridge * 1.12, 0.62, f"corner:\n{ridge:.0f}", va="bottom")
    marks = {
        "plain": ("o", (9, -10), "left", "center"),
        "tiles of 128": ("s", (-10, 8), "right", "center"),
        "tiles of 256": ("P", (4, -12), "left", "top"),
        "each byte once": ("D", (6, 10), "right", "bottom"),
        "one word": ("^", (10, -6), "left", "center"),
    }
    for (name, (mark, shift, side, height)), colour in zip(marks.items(), COLOURS):
        at = intensity[name], reach[name] / 1e12
        ax.plot(*at, mark, color=colour, ms=9)
        ax.annotate(name, at, xytext=shift, textcoords="offset points", ha=side, va=height)
    ax.set(
        xlabel="operations per byte",
        ylabel="10¹² operations a second, at most",
        xlim=(0.4, 6000),
        ylim=(0.5, 900),
    )
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()
    ax.grid(True)
    return figure
