"""The figures of the page *Learned queries*, drawn from what the page has computed.

They are about five inches wide, so that their letters stay legible on a phone.
"""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attnlib.plotting import COLOURS, INK, KEY, QUERY, heatmap


def shades(ax, x):
    full = np.abs(x).max()
    picture = np.zeros((*x.shape, 4))
    for sign, colour in ((1, COLOURS[0]), (-1, COLOURS[1])):
        rgb = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        here = np.sign(x) == sign
        picture[here, :3] = rgb
    picture[..., 3] = np.abs(x) / full
    ax.imshow(picture, interpolation="nearest", aspect="auto")
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, linewidth=0.5)


def saturation(largest, slope, widths) -> Figure:
    """Plot the largest weight and the size of the Jacobian against the width."""
    figure, axes = plt.subplots(2, 1, figsize=(5.0, 6.4))
    for measured, ax in zip((largest, slope), axes):
        for name, colour, style in (("divided", COLOURS[0], "o-"), ("not divided", COLOURS[7], "s--")):
            low, middle, high = np.array([measured[name, d] for d in widths]).T
            ax.plot(widths, middle, style, color=colour, label=name)
            ax.fill_between(widths, np.maximum(low, 1e-5), high, color=colour, alpha=0.18, lw=0)
        ax.set_xscale("log", base=4)
        ax.set_xticks(widths, [str(d) for d in widths])
        ax.set_xlabel("width of queries and keys")
        ax.grid(True)
    axes[0].set(ylabel="largest of 16 weights", ylim=(0, 1.02))
    axes[1].set(ylabel="norm of the Jacobian", yscale="log", ylim=(1e-5, 1))
    axes[0].legend(loc="upper left", fontsize=10)
    return figure


def learned_matrices(n_names, D, W_Q, M) -> Figure:
    """Shade the learned W_Q and the product of W_Q and W_K."""
    blocks = [(0, n_names, "tag"), (n_names, 2 * n_names, "slip"), (2 * n_names, D, "present")]
    middles = [(a + b - 1) / 2 for a, b, _ in blocks]
    figure, axes = plt.subplots(1, 2, figsize=(5.2, 3.9), width_ratios=[1, 2.4])
    shades(axes[0], W_Q)
    shades(axes[1], M)
    axes[0].set(xlabel="column", ylabel="the asking guest (query)", xticks=[], title="$W^Q$")
    axes[1].set(xlabel="the guest asked (key)", title="$M = W^Q\\,(W^K)^\\top$")
    axes[1].set_xticks(middles, [name for *_, name in blocks])
    for ax in axes:
        ax.set_yticks(middles, [name for *_, name in blocks], rotation=90, va="center")
        for _, b, _ in blocks[:-1]:
            ax.axhline(b - 0.5, color=INK, lw=0.6)
    for _, b, _ in blocks[:-1]:
        axes[1].axvline(b - 0.5, color=INK, lw=0.6)
    return figure


def queries_and_keys_in_a_plane(names, q2, k2) -> Figure:
    """Draw the queries of slips and the keys of tags as arrows in a plane."""
    figure, ax = plt.subplots(figsize=(4.8, 5.2))
    for name, q, k in zip(names, q2, k2):
        ax.annotate("", k, (0, 0), arrowprops=dict(arrowstyle="-|>", color=KEY, lw=2))
        ax.annotate("", 0.82 * q, (0, 0), arrowprops=dict(arrowstyle="-|>", color=QUERY, lw=2, ls="--"))
        ax.text(*(1.16 * k), name, ha="center", va="center")  # type: ignore[call-arg]
    ax.plot([], [], color=KEY, lw=2, label="key of a tag")
    ax.plot([], [], color=QUERY, lw=2, ls="--", label="query of a slip")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xlabel="first component", ylabel="second component")
    return figure


def weights_of_he(rows, row_names, dog) -> Figure:
    """Shade the weights of *he*, without parameters and for each start of the training."""
    figure, ax = plt.subplots(figsize=(6.0, 4.6))
    heatmap(rows, row_names, dog, ax=ax, vmax=1)
    ax.set_ylabel("he (query)")
    return figure


def losses(curves, blind) -> Figure:
    """Plot the loss of each head during training, averaged over five steps, beside that of guessing blindly."""
    figure, ax = plt.subplots(figsize=(5.0, 4.2))
    for (name, each), colour, style in zip(curves.items(), COLOURS, ("-.", "--", ":", "-")):
        ax.plot(np.convolve(each, np.ones(5) / 5, "valid"), style, color=colour, lw=2.2, label=name)
    ax.axhline(blind, color=INK, lw=0.8, ls=":")
    ax.set(xlabel="step (64 parties each)", ylabel="loss (mean of 5 steps)", ylim=(0, 2))
    ax.legend(fontsize=10, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    ax.grid(True)
    return figure
