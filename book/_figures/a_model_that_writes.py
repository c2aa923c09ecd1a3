"""The figures of the page on a model that writes, drawn from what the page has computed."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attnlib.plotting import COLOURS, INK, MAX_SHADE

Floats = NDArray[np.float64]
HATCHES = ("", "//", "..")


def temperatures(shares: Mapping[float, Floats], names: Sequence[str]) -> Figure:
    """Draw the probabilities of the first tokens, and of all others together, at several temperatures."""
    figure, ax = plt.subplots(figsize=(4.8, 4.4))
    places = np.arange(len(names))
    for n, (tau, share) in enumerate(shares.items()):
        ax.barh(
            places + 0.27 * (n - 1), share, 0.25,
            color=COLOURS[n], hatch=HATCHES[n], edgecolor=INK, lw=0.4, label=f"temperature {tau}",
        )  # fmt: skip
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set(xlabel="probability", ylabel="next token")
    ax.legend()
    return figure


def cuts(contexts: Mapping[str, Floats], kept: Mapping[str, Mapping[str, int]]) -> Figure:
    """Plot the probabilities of two contexts in decreasing order, and where each rule cuts them off."""
    figure, axes = plt.subplots(2, 1, figsize=(4.8, 6.2), sharex=True)
    for ax, (context, p) in zip(axes, contexts.items(), strict=True):
        ranks = np.arange(1, len(p) + 1)
        ax.loglog(ranks, np.sort(p)[::-1], color=INK, lw=1.5)
        for n, (rule, count) in enumerate(kept[context].items()):
            ax.axvline(count + 0.5, color=COLOURS[n], ls=("-", "--", ":")[n], lw=2, label=f"{rule} keeps {count}")
        ax.set(ylabel="probability", ylim=(1e-8, 1.5))
        ax.set_title(context, loc="left", family="monospace", fontsize=10)
        ax.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1], ["10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1"])
        ax.legend(loc="lower left", fontsize=10)
    axes[1].set(xlabel="rank of the token")
    axes[1].set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    for ax in axes:
        ax.minorticks_off()
        ax.grid(True)
    return figure


def choices(steps: Sequence[tuple[int, Floats]], label: Callable[[int], str], shown: int = 30) -> Figure:
    """Draw, for each token that was written, the distribution it was drawn from, cut into the tokens' shares."""
    figure, ax = plt.subplots(figsize=(4.8, 0.36 * len(steps) + 0.9))
    for row, (chosen, p) in enumerate(steps):
        order = np.argsort(-p, kind="stable")
        left = 0.0
        ax.barh(row, 1, 0.8, color=COLOURS[0], alpha=0.25, lw=0, zorder=0)
        for rank, token in enumerate(order):
            drawn = token == chosen
            if rank < shown or drawn:
                start = p[order[:rank]].sum() if drawn else left
                ax.barh(
                    row, p[token], 0.8, start, color=COLOURS[1] if drawn else COLOURS[0],
                    alpha=MAX_SHADE if drawn else 0.15, edgecolor=INK, lw=0.4, zorder=2 if drawn else 1,
                )  # fmt: skip
                if p[token] > 0.13:
                    ax.text(start + p[token] / 2, row, label(token), ha="center", va="center", fontsize=8, zorder=3)
                left += p[token]
    ax.set_yticks(range(len(steps)), [label(token) for token, _ in steps], family="monospace")
    ax.invert_yaxis()
    ax.set(xlabel="probability, the most probable tokens first", ylabel="token that was written", xlim=(0, 1))
    return figure


def intensities(counts: NDArray[np.int64], lines: Mapping[str, Floats], ridge: float) -> Figure:
    """Plot operations per byte against the number of tokens that one call reads."""
    figure, ax = plt.subplots(figsize=(4.8, 3.8))
    for n, (name, line) in enumerate(lines.items()):
        ax.loglog(counts, line, ("o-", "s-")[n], color=COLOURS[n], label=name, markersize=4)
    ax.axhline(ridge, color=INK, ls="--", lw=1)
    ax.text(counts[0], ridge * 1.15, "A100: arithmetic is the limit above", va="bottom", fontsize=10)
    ax.set(xlabel="tokens read by one call", ylabel="operations per byte", ylim=(0.3, 2000))
    ax.set_xticks(counts[::2], [f"{n}" for n in counts[::2]])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.minorticks_off()
    ax.grid(True)
    ax.legend(loc="lower right")
    return figure


def acceptance(p: Floats, q: Floats, names: Sequence[str]) -> Figure:
    """Draw two distributions: what both have in common, what only the draft has, and what only the model has."""
    figure, ax = plt.subplots(figsize=(4.8, 3.4))
    places, both = np.arange(len(names)), np.minimum(p, q)
    parts = (
        ("accepted: min(p, q)", both, 0 * both, COLOURS[2], ""),
        ("rejected: q above p", q - both, both, COLOURS[1], "//"),
        ("drawn instead: p above q", p - both, both, COLOURS[0], ".."),
    )
    for name, height, bottom, colour, hatch in parts:
        ax.bar(places, height, 0.6, bottom, color=colour, hatch=hatch, edgecolor=INK, lw=0.4, label=name, alpha=0.8)
    ax.set_xticks(places, names)
    ax.set(ylabel="probability", xlabel="token", ylim=(0, 0.95))
    ax.legend(loc="upper right", fontsize=10)
    return figure
