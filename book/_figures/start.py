"""The longer figures of the page *Start here*, drawn from what the page has computed."""

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from attnlib.plotting import KEY, QUERY, VALUE


def one_query(weights, value, context) -> Figure:
    """Draw one query, three keys and three values, from top to bottom, with arrows as wide as the weights."""
    figure, ax = plt.subplots(figsize=(4.4, 4.4))

    def box(x, y, text, colour, width=1.6):
        ax.add_patch(Rectangle((x - width / 2, y - 0.25), width, 0.5, facecolor=colour, alpha=0.3, edgecolor="none"))
        ax.add_patch(Rectangle((x - width / 2, y - 0.25), width, 0.5, fill=False, edgecolor=colour, lw=1.6))
        ax.text(x, y, text, ha="center", va="center", fontsize=11)

    def arrow(start, end, share, colour):
        ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10, lw=0.8 + 5 * share, color=colour))

    box(1.9, 4.2, "query", QUERY)
    for j, (share, number) in enumerate(zip(weights[0], value[:, 0])):
        x = 1.9 * j
        box(x, 2.65, f"key {j + 1}", KEY)
        box(x, 2.1, f"value {number:.0f}", VALUE)
        arrow((1.9 + 0.25 * (x - 1.9), 3.9), (x, 2.95), share, QUERY)
        ax.text((0.35, 2.32, 3.45)[j], (3.6, 3.4, 3.6)[j], f"{share:.3f}", ha="center", va="center", fontsize=11)
        arrow((x, 1.8), (1.9 + 0.4 * (x - 1.9), 0.75), share, VALUE)
    box(1.9, 0.45, f"context {context[0, 0]:.2f}", VALUE, 2.6)
    ax.set(xlim=(-0.9, 4.7), ylim=(0.1, 4.55))
    ax.axis("off")
    return figure
