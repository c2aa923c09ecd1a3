"""The figure of the page *How grading works*: the path of one submission."""

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from attnlib.plotting import INK, KEY, VALUE


def engine() -> Figure:
    """Draw what happens to a submission, in the trusted process and in the sandbox."""
    figure, ax = plt.subplots(figsize=(7.4, 5.2))

    def step(x, y, title, words, colour=INK, width=3.5):
        ax.add_patch(Rectangle((x, y - 0.36), width, 0.72, facecolor=colour, alpha=0.1, edgecolor="none"))
        ax.add_patch(Rectangle((x, y - 0.36), width, 0.72, fill=False, edgecolor=colour, lw=1.3))
        ax.text(x + 0.12, y + 0.12, title, fontsize=10, weight="bold", va="center")
        ax.text(x + 0.12, y - 0.16, words, fontsize=8.5, va="center")

    def arrow(start, end, words=""):
        ax.add_patch(
            FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, lw=1.2, color=INK, shrinkA=0, shrinkB=0)
        )
        if words:
            ax.text((start[0] + end[0]) / 2, start[1] + 0.1, words, fontsize=8.5, ha="center", va="bottom")

    ax.add_patch(Rectangle((5.4, 1.48), 3.8, 2.24, fill=False, edgecolor=KEY, lw=1.6, ls="--"))
    ax.text(7.3, 3.8, "box: not trusted", ha="center", va="bottom", fontsize=10)
    ax.text(1.75, 5.55, "your process: trusted", ha="center", va="bottom", fontsize=10)
    step(0, 5.1, "1  submitted file", "bytes from a student, nothing more")
    step(0, 4.1, "2  repair", "your cells, the student's answers", VALUE)
    step(0, 3.1, "3  probes", "inputs, drawn from a secret seed", VALUE)
    step(5.55, 3.1, "4  fork in a sandbox", "runs the cells, calls the answers", KEY)
    step(5.55, 2.1, "5  raw answers", "arrays: numbers and a shape", KEY)
    step(0, 2.1, "6  judge", "compares; names the mistake", VALUE)
    step(0, 1.1, "7  gradebook", "one writer, one transaction each", VALUE)
    step(0, 0.1, "8  feedback, report, export", "made from the gradebook", VALUE)
    for y in (4.74, 3.74, 1.74, 0.74):
        arrow((1.75, y), (1.75, y - 0.28))
    arrow((3.5, 3.1), (5.55, 3.1), "cells and inputs")
    arrow((7.3, 2.74), (7.3, 2.46))
    arrow((5.55, 2.1), (3.5, 2.1), "bare arrays")
    ax.set(xlim=(-0.1, 9.3), ylim=(-0.35, 5.95))
    ax.axis("off")
    return figure
