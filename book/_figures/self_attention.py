"""The longer figures of the page *Self-attention without parameters*, drawn from what the page has computed."""

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attnlib.plotting import COLOURS


def words_move(seen, start, end, words) -> Figure:
    """Draw each word with an arrow to its context vector."""
    beside = {"station": (4, 8, "left"), "left": (-6, 4, "right"), "time": (8, 0, "left"), "the": (8, 2, "left")}
    figure, ax = plt.subplots(figsize=(6.6, 5.4))
    for n, i in enumerate(seen):
        colour = (*COLOURS, "#8a8f98")[n]
        ax.plot(*start[i], "o", color=colour)
        ax.annotate("", end[i], start[i], arrowprops=dict(arrowstyle="-|>", color=colour, lw=1.8))
        dx, dy, side = beside.get(words[i], (0, 8, "center"))
        ax.annotate(words[i], start[i], xytext=(dx, dy), textcoords="offset points", ha=side)
    ax.set(aspect="equal", xlabel="direction from train to station", ylabel="main direction at right angles to it")
    ax.margins(0.12)
    return figure
