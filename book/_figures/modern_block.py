"""The figures of the page *The modern block*, drawn from what the page has computed."""

from math import erf, sqrt

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from _figures.transformer import arrow, box, plus
from attnlib.plotting import COLOURS, INK

CHANGED = COLOURS[1]


def two_blocks() -> Figure:
    """Draw the block of 2017 and today's beside it, with what has changed in another colour."""
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 5.6))
    for ax, title in zip(axes, ("2017", "today"), strict=True):
        ax.set(xlim=(-1.1, 3.9), ylim=(-0.9, 9.2), title=title)
        ax.axis("off")
        ax.text(0, 8.75, "Y out", ha="center")
    _old_block(axes[0])
    _modern_block(axes[1])
    return figure


def _old_block(ax: Axes) -> None:
    ax.text(0, -0.75, "words + positions", ha="center", fontsize=10)
    for base, part in ((0.2, "attention,\n8 key heads"), (4.2, "ReLU layer,\n2 matrices")):
        arrow(ax, [(0, base), (2.4, base), (2.4, base + 0.75)])
        box(ax, 2.4, base + 1.25, part, w=2.2, h=1.0)
        arrow(ax, [(2.4, base + 1.8), (2.4, base + 2.3), (0.2, base + 2.3)])
        plus(ax, 0, base + 2.3)
        box(ax, 0, base + 3.2, "LayerNorm", w=1.9)
    _line(ax, (-0.3, 2.3), (2.7, 3.0), (3.8, 6.3), (6.7, 7.0), (7.8, 8.6))


def _modern_block(ax: Axes) -> None:
    ax.text(0, -0.75, "words", ha="center", fontsize=10)
    for base, part in ((0.2, "attention, RoPE,\n2 key heads"), (4.2, "SwiGLU layer,\n3 matrices")):
        arrow(ax, [(0, base), (2.4, base), (2.4, base + 0.4)])
        box(ax, 2.4, base + 0.75, "RMSNorm", CHANGED, w=1.9)
        arrow(ax, [(2.4, base + 1.1), (2.4, base + 1.5)])
        box(ax, 2.4, base + 2.05, part, CHANGED, w=2.6, h=1.0)
        arrow(ax, [(2.4, base + 2.6), (2.4, base + 3.2), (0.2, base + 3.2)])
        plus(ax, 0, base + 3.2)
    _line(ax, (-0.3, 3.2), (3.6, 7.2), (7.6, 8.6))


def _line(ax: Axes, *pieces: tuple[float, float]) -> None:
    for piece in pieces:
        ax.plot([0, 0], piece, color=INK, lw=3)


def activations() -> Figure:
    """Plot ReLU, GELU and SiLU, and a SwiGLU unit against its gate for four numbers that it multiplies."""
    figure, axes = plt.subplots(2, 1, figsize=(4.8, 6.0), sharex=True)
    g = np.linspace(-4, 4, 161)
    silu = g / (1 + np.exp(-g))
    gelu = g * np.array([0.5 * (1 + erf(x / sqrt(2))) for x in g])
    for y, name, style in ((np.maximum(g, 0), "ReLU", "--"), (gelu, "GELU", "-."), (silu, "SiLU", "-")):
        axes[0].plot(g, y, style, label=name)
    for u, style in ((2, "-"), (1, "--"), (-1, "-."), (-2, ":")):
        axes[1].plot(g, silu * u, style, label=f"$u = {u}$")
    axes[0].set(ylabel="activation")
    axes[1].set(xlabel="gate g", ylabel=r"$\mathrm{SiLU}(g)\, u$")
    for ax in axes:
        ax.grid(True)
        ax.legend(fontsize=10)
    return figure


def differences(panels: list[dict[str, np.ndarray]], intervals: dict[str, float]) -> Figure:
    """Plot the differences of each variant, seed by seed, with their mean and its interval; a panel for each scale."""
    sizes = [len(panel) for panel in panels]
    figure, axes = plt.subplots(len(panels), 1, figsize=(5.2, 1.1 + 0.52 * sum(sizes)), height_ratios=sizes)
    for ax, panel in zip(np.atleast_1d(axes), panels, strict=True):
        ax.axvline(0, color=INK, lw=1)
        for y, (name, found) in enumerate(panel.items()):
            ax.plot(found, np.full(len(found), y + 0.22), "o", ms=4, color=COLOURS[0], alpha=0.6)
            ax.errorbar(found.mean(), y, xerr=intervals[name], fmt="D", ms=6, capsize=4, color=CHANGED)
        ax.set_yticks(range(len(panel)), list(panel))
        ax.set(ylim=(len(panel) - 0.5, -0.5))
        ax.locator_params(axis="x", nbins=6)
        ax.grid(True, axis="x")
    np.atleast_1d(axes)[-1].set(xlabel="loss minus that of the modern block\n(nats per token; right is worse)")
    return figure


def tuning(losses: dict[str, dict[float, float]], control: float) -> Figure:
    """Plot the loss of each variant against the learning rate, with that of a control."""
    figure, ax = plt.subplots(figsize=(4.8, 5.2))
    for (name, found), mark in zip(losses.items(), "os^vDPX", strict=True):
        ax.plot(list(found), list(found.values()), f"{mark}-", ms=6, label=name)
    ax.axhline(control, color=INK, ls=":")
    rates = sorted({rate for found in losses.values() for rate in found})
    ax.set_xscale("log")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set(xlabel="peak learning rate", ylabel="held-out loss (nats per token)")
    ax.grid(True)
    figure.legend(loc="outside lower center", ncols=2, fontsize=10)
    return figure
