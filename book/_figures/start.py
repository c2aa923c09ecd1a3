"""The longer figures of the page *Start here*, drawn from what the page has computed."""

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from attnlib.plotting import KEY, QUERY, VALUE


def one_query(weights, value, context) -> Figure:
    """Draw one query, three keys and three values, with arrows as wide as the weights."""
    figure, ax = plt.subplots(figsize=(6.6, 3.0))

    def box(x, y, text, colour):
        ax.add_patch(Rectangle((x - 0.75, y - 0.28), 1.5, 0.56, facecolor=colour, alpha=0.3, edgecolor="none"))
        ax.add_patch(Rectangle((x - 0.75, y - 0.28), 1.5, 0.56, fill=False, edgecolor=colour, lw=1.6))
        ax.text(x, y, text, ha="center", va="center", fontsize=10)

    box(0, 1, "query", QUERY)
    for j, (share, number) in enumerate(zip(weights[0], value[:, 0])):
        y = 2 - j
        box(3.1, y, f"key {j + 1}", KEY)
        box(5.2, y, f"value {number:.0f}", VALUE)
        ax.add_patch(
            FancyArrowPatch((0.8, 1), (2.3, y), arrowstyle="-|>", mutation_scale=10, lw=0.8 + 5 * share, color=QUERY)
        )
        ax.text(1.45, 1 + 0.5 * (y - 1) + (0.2, 0.13, -0.34)[j], f"{share:.3f}", ha="center", fontsize=9)
        ax.add_patch(
            FancyArrowPatch((6.0, y), (7.3, 1), arrowstyle="-|>", mutation_scale=10, lw=0.8 + 5 * share, color=VALUE)
        )
    box(8.25, 1, f"context\n{context[0, 0]:.2f}", VALUE)
    ax.set(xlim=(-0.9, 9.15), ylim=(-0.45, 2.45))
    ax.axis("off")
    return figure
