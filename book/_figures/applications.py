"""The figures of the page *What attention is used for*, drawn from what the page has computed.

They are about five inches wide, so that their letters stay legible on a phone.
"""

from itertools import product

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.plotting import COLOURS, INK, heatmap


def two_ways_to_read(tables, words) -> Figure:
    """Shade the weights of the same model, in both directions and causally."""
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 9.0))
    figure.set_layout_engine("constrained", h_pad=0.16)
    for ax, weights, name in zip(axes, tables, ("as BERT: both directions", "as GPT: only what came before")):
        heatmap(weights, words, words, ax=ax, title=name, vmax=0.6)
    return figure


def shade_squares(ax, strengths, side, colour):
    """Fill a square per number, the stronger the larger the number."""
    for (i, j), strength in np.ndenumerate(strengths):
        square = Rectangle((j * side, i * side), side, side, lw=0, color=colour, alpha=float(0.85 * strength))
        ax.add_patch(square)


def draw_grid(ax, width):
    """Draw the lines between patches, on an image of 8 rows of pixels."""
    for line in range(0, width + 1, 2):
        ax.plot([line, line], [0, 8], color=INK, lw=0.5, alpha=0.5)
    for line in range(0, 9, 2):
        ax.plot([0, width], [line, line], color=INK, lw=0.5, alpha=0.5)
    ax.set(xlim=(-0.1, width + 0.1), ylim=(8.1, -0.1), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def patches(pixels, chosen, looks, guess) -> Figure:
    """Draw digits and the patches that the class token attends to."""
    figure, axes = plt.subplots(3, 5, figsize=(5.4, 3.8))
    for n in range(5):
        image = pixels[1300 + chosen[n]].reshape(8, 8) / 16
        for row, (ax, shades) in enumerate(zip(axes[:, n], (image, *(layer[n] / layer[n].max() for layer in looks)))):
            shade_squares(ax, shades.numpy(), 8 / len(shades), COLOURS[0] if row else INK)
            draw_grid(ax, 8)
        axes[0, n].set_title(f"says {guess[n].argmax().item()}", fontsize=11)
    for ax, name in zip(axes[:, 0], ("image", "layer 1", "layer 2")):
        ax.set_ylabel(name)
    return figure


def segments(x, y, answers) -> Figure:
    """Draw pairs of digits with the answer of each patch: with attention, and without."""
    figure, axes = plt.subplots(3, len(x), figsize=(5.0, 4.2))
    for n, column in enumerate(axes.T):
        image = x[n].reshape(4, 8, 2, 2).transpose(1, 2).reshape(8, 16).numpy()
        shade_squares(column[0], image, 1, INK)
        for ax, answer in zip(column[1:], answers):
            write_answers(ax, answer[n].reshape(4, 8), y[n].reshape(4, 8))
        for ax in column:
            draw_grid(ax, 16)
    for ax, name in zip(axes[:, 0], ("image", "attention", "control")):
        ax.set_ylabel(name)
    return figure


def write_answers(ax, answer, right):
    """Write the digit that each patch names, with a frame where it is wrong."""
    for i, j in product(range(4), range(8)):
        if answer[i, j] < 10:
            ax.text(2 * j + 1, 2 * i + 1.05, f"{answer[i, j]}", ha="center", va="center", fontsize=9)
        if answer[i, j] != right[i, j]:
            ax.add_patch(Rectangle((2 * j + 0.15, 2 * i + 0.15), 1.7, 1.7, fill=False, ec=COLOURS[1], lw=1.4))
