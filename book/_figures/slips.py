"""The longer figures of the page *Slips you will meet*, drawn from what the page has computed."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib import softmax
from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE


def plain_table(ax, x, colour, title, digits=0):
    """Draw a table of numbers in cells of one colour."""
    for (i, j), value in np.ndenumerate(x):
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fc=colour, alpha=0.3, lw=0))
        ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center")
    ax.set(xlim=(-0.5, x.shape[1] - 0.5), ylim=(x.shape[0] - 0.5, -0.5), xticks=[])
    ax.set_yticks(range(len(x)), [f"{i + 1}" for i in range(len(x))])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title)


def example(Q, K, V, weights) -> Figure:
    """Draw the tables of the example: queries, keys, values, scores and weights."""
    figure = Figure(figsize=(6.4, 3.9), layout="constrained")
    spec = figure.add_gridspec(2, 6)
    for n, (x, colour, name) in enumerate(((Q, QUERY, "queries $Q$"), (K, KEY, "keys $K$"), (V, VALUE, "values $V$"))):
        plain_table(ax := figure.add_subplot(spec[0, 2 * n : 2 * n + 2]), x, colour, name)
        ax.set_xlabel("component")
        ax.set_ylabel("word")
    for n, (x, name, digits) in enumerate(((Q @ K.T, "$QK^{\\top}$", 0), (weights, "weights", 3))):
        plain_table(ax := figure.add_subplot(spec[1, 3 * n : 3 * n + 3]), x, COLOURS[0], name, digits)
        ax.set_xticks(range(3), ["1", "2", "3"])
        ax.set_xlabel("key")
        ax.set_ylabel("query")
    return figure


def softmax_or_division(base) -> Figure:
    """Plot the weights of the softmax and of a division by the sum, as scores are shifted and scaled."""
    added, factor = np.linspace(0, 10, 60), np.linspace(0.1, 3, 60)
    figure = Figure(figsize=(6.6, 3.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, xs, change, label in (
        (axes[0], added, lambda c: base + c, "added to all scores"),
        (axes[1], factor, lambda c: base * c, "factor on all scores"),
    ):
        soft, plain = np.array([softmax(change(c)) for c in xs]), np.array([change(c) / change(c).sum() for c in xs])
        for n in range(3):
            ax.plot(xs, soft[:, n], color=COLOURS[n], label=f"score {base[n]:.0f}")
        for n in range(3):
            ax.plot(xs, plain[:, n], "--", color=COLOURS[n])
        ax.set(xlabel=label, ylim=(0, 1.02))
        ax.grid(True)
    axes[0].set_ylabel("weight")
    figure.legend(handles=axes[1].lines[:3], loc="outside lower center", ncols=3)
    return figure


def shifted_positions(shifts, moved) -> Figure:
    """Plot how much the output changes when all positions are shifted."""
    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    ax = figure.subplots()
    ax.plot(shifts, moved[True], color=VALUE, ls="--", label="queries, keys and values turned")
    ax.plot(shifts, moved[False], color=QUERY, lw=2.5, label="queries and keys turned")
    ax.set(
        xlabel="position of the first word",
        ylabel="largest difference\nof the output",
        ylim=(-0.1, 1.35 * max(moved[True])),
    )
    ax.legend(loc="upper left")
    ax.grid(True)
    return figure


def checks_passed(verdict, passes, n, CHECKS, WRONG) -> Figure:
    """Draw which wrong versions pass which checks."""
    figure = Figure(figsize=(7.0, 6.0), layout="constrained")
    ax = figure.subplots()
    for i, row in enumerate(verdict.values()):
        for j, passed in enumerate(row.values()):
            if passed:
                ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fc=COLOURS[1], alpha=0.4, lw=0))
                ax.text(j, i, "pass", ha="center", va="center", fontsize=10)
    for j, count in enumerate(passes.values()):
        ax.text(j, n + 0.1, count, ha="center", va="center", fontweight="bold")
    ax.axvline(len(CHECKS) - 1.5, color=INK, lw=1)
    ax.axhline(n - 0.5, color=INK, lw=1)
    ax.set(xlim=(-0.5, len(CHECKS) - 0.5), ylim=(n + 0.6, -0.5), xlabel="check", ylabel="wrong version")
    ax.set_xticks(range(len(CHECKS)), list(CHECKS), rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks([*range(n), n + 0.1], [*WRONG, f"pass, of {n}"])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(len(CHECKS) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", lw=0.6)
    return figure
