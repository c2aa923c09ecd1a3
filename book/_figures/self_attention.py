"""The figures of the page *Self-attention without parameters*, drawn from what the page has computed."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attnlib.plotting import COLOURS, INK

Numbers = NDArray[np.float64]


def one_query(words: Sequence[str], shares: Mapping[str, Numbers], query: str) -> Figure:
    """Draw how one query divides its attention: a group of bars for each key, one bar for each kind of vectors."""
    figure, ax = plt.subplots(figsize=(4.8, 4.4))
    places, height = np.arange(len(words)), 0.8 / len(shares)
    for n, (name, weights) in enumerate(shares.items()):
        ax.barh(places + (n - (len(shares) - 1) / 2) * height, weights, height, color=COLOURS[n], label=name)
    ax.axvline(1 / len(words), color=INK, ls="--", lw=1, label="plain average")
    ax.set_yticks(places, words)
    ax.invert_yaxis()
    ax.set(xlabel=f"weight (the query is {query})", ylabel="key", xlim=(0, 1))
    ax.legend(loc="upper right")
    return figure


def arrows(vectors: Mapping[str, Numbers]) -> Figure:
    """Draw arrows from the origin, each with its dot product with the first of them."""
    figure, ax = plt.subplots(figsize=(4.8, 4.4))
    first, u = next(iter(vectors.items()))
    for (name, arrow), colour in zip(vectors.items(), COLOURS, strict=False):
        style = {"lw": 2.5 / len(name), "ls": "--" if len(name) > 1 else "-"}
        x, y = arrow
        ax.annotate(
            "", (x, y), (0, 0), zorder=3 - len(name), arrowprops={"arrowstyle": "-|>", "color": colour, **style}
        )
        beside = 0.75 * np.sign(arrow[0]) if name in "vw" else 0.0
        label = f"${name}$   ${first}\\cdot {name}={u @ arrow:.0f}$"
        ax.annotate(label, (1 + 0.36 / np.linalg.norm(arrow)) * arrow + [beside, 0], ha="center", va="center")
    ax.set(xlim=(-3.6, 3.6), ylim=(-1.8, 4.8), aspect="equal", xlabel="first component", ylabel="second component")
    ax.grid(True)
    return figure


def words_move(seen: Sequence[int], start: Numbers, end: Numbers, words: Sequence[str]) -> Figure:
    """Draw each word with an arrow to its context vector."""
    beside = {"station": (4, 8, "left"), "left": (-6, 4, "right"), "time": (8, 0, "left"), "the": (8, 2, "left")}
    figure, ax = plt.subplots(figsize=(4.9, 4.6))
    for n, i in enumerate(seen):
        colour = (*COLOURS, "#8a8f98")[n]
        ax.plot(*start[i], "o", color=colour)
        ax.annotate("", end[i], start[i], arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.8})
        dx, dy, side = beside.get(words[i], (0, 8, "center"))
        ax.annotate(words[i], start[i], xytext=(dx, dy), textcoords="offset points", ha=side)
    ax.set(aspect="equal", xlabel="direction from train to station", ylabel="main direction at right angles to it")
    ax.margins(0.12)
    return figure


def cost(lengths: Sequence[int], milliseconds: Sequence[float]) -> Figure:
    """Draw time against the number of words, beside a line that is proportional to its square."""
    figure, ax = plt.subplots(figsize=(4.8, 4.3))
    ax.loglog(lengths, milliseconds, "o-", label="measured")
    guide = [milliseconds[2] * (n / lengths[2]) ** 2 for n in lengths]
    ax.loglog(lengths, guide, "--", label="proportional to T²")
    ax.set(xlabel="number of words T", ylabel="time (ms)")
    ax.set_xticks(lengths, [str(n) for n in lengths])
    ax.minorticks_off()
    ax.legend()
    ax.grid(True)
    return figure
