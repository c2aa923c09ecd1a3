"""The longer figures of the page *Slips you will meet*, drawn from what the page has computed."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib import softmax
from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE, heatmap


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
    figure = Figure(figsize=(4.6, 5.8), layout="constrained")
    spec = figure.add_gridspec(3, 2)
    words = (Q, QUERY, "queries Q"), (K, KEY, "keys K"), (V, VALUE, "values V")
    for place, (x, colour, name) in zip((spec[0, 0], spec[0, 1], spec[1, 0]), words, strict=True):
        plain_table(ax := figure.add_subplot(place), x, colour, name)
        ax.set(xlabel="component", ylabel="word")
    for place, (x, name, digits) in zip(
        (spec[1, 1], spec[2, :]), ((Q @ K.T, "$QK^{\\top}$", 0), (weights, "weights", 3)), strict=True
    ):
        plain_table(ax := figure.add_subplot(place), x, COLOURS[0], name, digits)
        ax.set_xticks(range(3), ["1", "2", "3"])
        ax.set(xlabel="key", ylabel="query")
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


def two_axes(over_keys, over_queries, words) -> Figure:
    """Draw the weights of a softmax over the keys and of one over the queries, with the sums of rows and columns."""
    figure = Figure(figsize=(6.6, 3.0), layout="constrained")
    for ax, x, name in zip(
        figure.subplots(1, 2), (over_keys, over_queries), ("over keys", "over queries"), strict=True
    ):
        heatmap(x, words, words, ax=ax, title=f"softmax {name}", vmax=1)
        for i in range(3):
            ax.text(2.65, i, f"{x[i].sum():.2f}", va="center", fontsize=9)
        for j in range(3):
            ax.text(j, 2.75, f"{x[:, j].sum():.2f}", ha="center", fontsize=9)
        ax.text(2.65, 2.75, "sums", fontsize=9, ha="left")
        ax.set(xlim=(-0.5, 3.3), ylim=(3.0, -0.5))
    return figure


def three_masks(tables) -> Figure:
    """Draw the weights under a mask that is used in three ways, with the sums of the rows."""
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    for ax, (name, weights) in zip(figure.subplots(1, 3), tables.items(), strict=True):
        heatmap(weights, ["1", "2", "3"], ["1", "2", "3"], ax=ax, title=name, vmax=1)
        for i in range(3):
            ax.text(2.6, i, f"{weights[i].sum():.2f}", va="center", fontsize=9)
        ax.set(xlim=(-0.5, 3.3), xlabel="key", ylabel="query")
    return figure


def split_or_reshape(x) -> Figure:
    """Draw which numbers of four words of width 4 each of two heads gets, by a split and by a reshape."""
    owners = np.tile([0, 0, 1, 1], (4, 1)), np.repeat([0, 1], 8).reshape(4, 4)
    looks: list[dict[str, Any]] = [
        {"fc": COLOURS[head], "alpha": 0.4, "ec": INK, "lw": 0.5, "hatch": hatch}
        for head, hatch in enumerate(("", ".."))
    ]
    figure = Figure(figsize=(6.2, 2.9), layout="constrained")
    names = "split_heads(x, 2)", "x.reshape(2, 4, 2)"
    for ax, owner, name in zip(figure.subplots(1, 2), owners, names, strict=True):
        for (i, j), head in np.ndenumerate(owner):
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **looks[head]))
            ax.text(j, i, f"{x[i, j]:.0f}", ha="center", va="center")
        ax.set(xlim=(-0.5, 3.5), ylim=(3.5, -0.5), xticks=range(4), xlabel="component", title=name)
        ax.set_yticks(range(4), [f"word {i}" for i in range(1, 5)])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, label=f"head {head}", **look) for head, look in enumerate(looks)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def training(runs, honest) -> Figure:
    """Plot the training losses of the first seed, and below the honest losses of all seeds."""
    figure = Figure(figsize=(5.4, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[3, 2])
    for n, (name, seeds) in enumerate(runs.items()):
        smooth = np.convolve(seeds[0][0], np.ones(10) / 10, mode="valid")
        above.plot(smooth, color=COLOURS[n], ls=("-", ":", "--", "-.")[n], lw=2, label=name)
        below.plot(honest[name], [n] * len(honest[name]), "o", color=COLOURS[n], ms=8, alpha=0.7)
    above.set(xlabel="training step", ylabel="training loss", ylim=(0, 3.6))
    above.legend(fontsize=9)
    below.set_yticks(range(len(runs)), list(runs))
    below.set(xlabel="loss with nothing to the right", ylim=(len(runs) - 0.5, -0.5))
    below.grid(True, axis="x")
    return figure
