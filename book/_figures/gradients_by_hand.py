"""The figures of the page *Gradients by hand*.

They are about five inches wide, so that their letters stay legible on a phone.
"""

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE

GRAPH_PLACES = {"Q": (0, 2), "K": (0, 1), "V": (0, 0), "S": (1.75, 1.5), "P": (3.5, 1.5), "O": (5.2, 0.75)}
GRAPH_COLOURS = {"Q": QUERY, "K": KEY, "V": VALUE}
LABEL_PLACES = {
    ("Q", "S"): (1.25, 2.15),
    ("K", "S"): (1.3, 0.76),
    ("S", "P"): (2.6, 1.68),
    ("P", "O"): (4.75, 1.55),
    ("V", "O"): (2.9, -0.12),
}


def one_row_backwards(weights, values) -> Figure:
    """Draw the weights of a row, its values beside their average, and the slopes that follow."""
    figure, axes = plt.subplots(3, 1, figsize=(4.8, 6.0), sharex=True)
    keys = range(1, len(weights) + 1)
    average = weights @ values
    slopes = weights * (values - average)
    names = ("weight\n$p_j$", "value\n$v_j$", "slope\n$ds_j$")
    for ax, heights, colour, name in zip(axes, (weights, values, slopes), (COLOURS[0], VALUE, COLOURS[1]), names):
        ax.bar(keys, heights, 0.5, color=colour)
        ax.set_ylabel(name)
        ax.grid(True, axis="y")
    axes[1].axhline(average, color=INK, ls="--", lw=1.2)
    axes[2].axhline(0, color=INK, lw=0.8)
    axes[2].set_xticks(keys, [f"key {key}" for key in keys])
    return figure


def forward_and_backward() -> Figure:
    """Draw how attention is computed from its inputs, and how gradients flow back."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.2, 5.8))
    draw_graph(top, False)
    draw_graph(bottom, True)
    return figure


def draw_graph(ax, backward):
    """Draw the graph of the computation, or of its gradients."""
    labels = {
        ("Q", "S"): r"$dQ = c\,dS\,K$" if backward else "",
        ("K", "S"): r"$dK = c\,dS^\top Q$" if backward else r"$S = c\,QK^\top$",
        ("S", "P"): "" if backward else "softmax",
        ("P", "O"): r"$dP = dO\,V^\top$" if backward else r"$O = PV$",
        ("V", "O"): r"$dV = P^\top dO$" if backward else "",
    }
    for name, (x, y) in GRAPH_PLACES.items():
        box = FancyBboxPatch(
            (x - 0.3, y - 0.25),
            0.6,
            0.5,
            boxstyle="round,pad=0.03",
            fill=False,
            ec=GRAPH_COLOURS.get(name, INK),
            lw=2,
            ls="--" if backward else "-",
        )
        ax.add_patch(box)
        ax.text(x, y, f"$d{name}$" if backward else f"${name}$", ha="center", va="center")
    for (a, b), text in labels.items():
        (x0, y0), (x1, y1) = GRAPH_PLACES[a], GRAPH_PLACES[b]
        ends = [(x0 + 0.36, y0), (x1 - 0.36, y1)]
        start, end = ends[::-1] if backward else ends
        ax.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", color=GRAPH_COLOURS.get(a, INK), lw=1.6))
        ax.text(*LABEL_PLACES[a, b], text, ha="center", va="bottom" if (a, b) == ("S", "P") else "center", fontsize=11)
    ax.text(5.6, 2.4, "backwards" if backward else "forwards", ha="right", weight="bold")
    ax.set(xlim=(-0.5, 5.7), ylim=(-0.45, 2.75))
    ax.axis("off")
