"""The figures of the page *Masks*, drawn from what the page has computed."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.plotting import COLOURS, INK, heatmap


def grid(
    ax: Axes, mask, rows: Sequence[str], columns: Sequence[str], title: str = "", colour: str = COLOURS[0]
) -> None:
    """Draw a boolean mask: a filled cell may be attended to, a cross may not."""
    for (i, j), allowed in np.ndenumerate(np.asarray(mask)):
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, lw=0, color=colour, alpha=0.55 if allowed else 0.06))
        if not allowed:
            ax.text(j, i, "×", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(len(columns)), columns, rotation=0 if max(map(len, columns)) < 3 else 90)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title, fontsize=11)


def steps(words, scores, masked, weights) -> Figure:
    """Draw the four steps from scores to masked weights."""
    figure, axes = plt.subplots(2, 2, figsize=(4.8, 5.0))
    figure.set_layout_engine("constrained", h_pad=0.12)
    tables = {"scores": scores, "masked scores": masked, "exponentials": np.exp(masked), "weights": weights}
    for ax, (name, numbers) in zip(axes.flat, tables.items(), strict=True):
        heatmap(numbers, words, words, ax=ax, title=name)
        ax.set(xlabel="key", ylabel="query" if ax in axes[:, 0] else "")
    return figure


def broadcast(padding, causal, both) -> Figure:
    """Draw the padding mask and the causal mask of two sentences, and what they make together."""
    labels = [["the", "train", "left", "pad", "pad"], ["the", "train", "left", "the", "station"]]
    figure, axes = plt.subplots(2, 3, figsize=(4.8, 5.0))
    for b in range(2):
        grid(axes[b, 0], padding[b, 0], ["all"], labels[b], f"padding {b}\n(1, 1, S)", COLOURS[1])
        grid(axes[b, 1], causal, labels[b], labels[b], "and causal\n(T, S)", COLOURS[2])
        grid(axes[b, 2], both[b, 0], labels[b], labels[b], "= both\n(1, T, S)")
        axes[b, 0].set_ylabel("query")
        axes[b, 2].set_yticks([])
        for ax in axes[b]:
            ax.set_xlabel("key")
    return figure


def inverted(words, right, wrong) -> Figure:
    """Draw the weights under a mask and under its inverse."""
    figure, axes = plt.subplots(1, 2, figsize=(4.8, 2.8))
    heatmap(right, words, words, ax=axes[0], title="attn_mask=~keep")
    heatmap(wrong, words, words, ax=axes[1], title="attn_mask=keep")
    axes[0].set(xlabel="key", ylabel="query")
    axes[1].set(xlabel="key", ylabel="")
    return figure


def training_curves(honest, cheat, guessing: float) -> Figure:
    """Plot the loss of a model with the causal mask, and of one without it, as trained and without peeking."""
    figure, ax = plt.subplots(figsize=(4.8, 4.2))
    ax.plot(*honest[:, :2].T, "o-", ms=4, label="causal mask")
    ax.plot(*cheat[:, :2].T, "s-", ms=4, label="no mask, as trained")
    ax.plot(cheat[:, 0], cheat[:, 2], "^--", ms=4, label="no mask, asked without peeking")
    ax.axhline(guessing, color=INK, lw=1, ls=":")
    ax.text(60, guessing - 0.15, "guessing", ha="right", va="top")
    ax.set(xlabel="steps of training", ylabel="loss (nats per word)", ylim=(0, None))
    ax.legend(fontsize=10)
    ax.grid(True)
    return figure


def influences(moved, six) -> Figure:
    """Draw which outputs move when a word changes; a leak is crossed."""
    figure, axes = plt.subplots(2, 2, figsize=(4.8, 5.6))
    for ax, name in zip(axes.flat, ("right", "off_by_one", "zero_after", "centred")):
        for (i, j), m in np.ndenumerate(moved[name]):
            leak = m and j > i
            ax.add_patch(
                Rectangle(
                    (j - 0.5, i - 0.5), 1, 1, lw=0, color=COLOURS[7] if leak else COLOURS[0], alpha=0.5 if m else 0.05
                )
            )
            if leak:
                ax.text(j, i, "×", ha="center", va="center", fontsize=13, fontweight="bold")
        ax.set(xlim=(-0.5, 5.5), ylim=(5.5, -0.5), aspect="equal", title=name)
        ax.set_xticks(range(6), six, rotation=90)
        ax.set_yticks(range(6), six)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_xlabel("key: the word\nthat changed" if ax in axes[1] else "")
        ax.set_ylabel("query: the output" if ax in axes[:, 0] else "")
    return figure


def alignments(causal_mask: Callable[..., np.ndarray]) -> Figure:
    """Draw the causal rule for fewer and for more queries than keys, aligned top-left and bottom-right."""
    figure, axes = plt.subplots(2, 2, figsize=(4.8, 5.0), gridspec_kw={"height_ratios": [2, 5]})
    figure.set_layout_engine("constrained", h_pad=0.12)
    for row, (T, S) in zip(axes, ((2, 5), (5, 2)), strict=True):
        for ax, name, offset in zip(row, ("top-left", "bottom-right"), (0, S - T), strict=True):
            queries, keys = [f"q{i}" for i in range(T)], [f"k{j}" for j in range(S)]
            grid(ax, causal_mask(T, S, q_offset=offset), queries, keys, f"{name}, o = {offset}".replace(" -", " −"))
            ax.set(xlabel="key", ylabel="query")
    return figure


def pooling_errors(curves, pads) -> Figure:
    """Plot the error of the pooled vector against the number of pads."""
    figure, ax = plt.subplots(figsize=(4.8, 4.2))
    for (name, ys), marker in zip(curves.items(), "os^"):
        ax.plot(pads, ys, marker + "-", ms=4, label=name)
    ax.set(xlabel="pads behind the sentence", ylabel="error / length of the right vector", xticks=range(0, 19, 3))
    ax.legend(fontsize=10)
    ax.grid(True)
    return figure
