"""The figures of the page *Positions*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure

import attnlib
from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE, heatmap


def two_sentences(weights_one, one, weights_other, other) -> Figure:
    """Draw the attention weights of the same words in two orders."""
    figure, axes = plt.subplots(2, 1, figsize=(3.6, 5.6))
    heatmap(weights_one, one, one, ax=axes[0])
    heatmap(weights_other, other, other, ax=axes[1])
    return figure


def counting(counted) -> Figure:
    """Plot what a causal head receives from the start word at each position."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    ax.plot(counted[:, 0], "o-", ms=3.5, color=VALUE)
    ax.set(xlabel="position of the query", ylabel="value received")
    ax.grid(True)
    return figure


def line_and_circle(place, on_line, on_circle) -> Figure:
    """Plot the weights that queries give to positions on a line and on a circle."""
    figure, axes = plt.subplots(2, 1, figsize=(5.0, 5.0), sharex=True)
    for strength, style in zip((-10, -3, 3, 10), (":", "--", "-.", "-")):
        w = attnlib.softmax(strength * on_line[:, 0])
        axes[0].plot(place, w, style, marker="o", ms=3, label=f"query {strength}")
    for wanted, style in zip((2, 7, 12, 17), (":", "--", "-.", "-")):
        w = attnlib.softmax(60 * on_circle @ on_circle[wanted])
        axes[1].plot(place, w, style, marker="o", ms=3, label=f"towards {wanted}")
    axes[0].set(ylabel="weight", title="a number: i/T")
    axes[1].set(ylabel="weight", title="a point on a circle", xlabel="position of the key")
    axes[1].set_xticks(range(0, 20, 5))
    for ax in axes:
        ax.legend(ncols=2, fontsize=10)
        ax.grid(True)
    axes[1].set_ylim(0, 0.9)
    return figure


def clocks(omega8) -> Figure:
    """Draw the hands of the sinusoidal code as clocks, for the first positions."""
    figure, axes = plt.subplots(4, 5, figsize=(5.0, 4.6))
    around = np.linspace(0, 2 * np.pi, 80)
    for k in range(4):
        for p in range(5):
            ax, angle = axes[k, p], p * omega8[k]
            ax.plot(np.sin(around), np.cos(around), color=INK, lw=0.6, alpha=0.5)
            ax.plot([0, 0], [0.85, 1], color=INK, lw=1)
            ax.annotate(
                "",
                (np.sin(angle), np.cos(angle)),
                (0, 0),
                arrowprops=dict(arrowstyle="-|>", color=COLOURS[k], lw=2, shrinkA=0, shrinkB=0),
            )
            ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if k == 0:
                ax.set_title(str(p), fontsize=11)
            if p == 0:
                ax.set_ylabel(f"hand {k}\n$\\omega={omega8[k]:.2f}$", fontsize=11)
    figure.suptitle("position", fontsize=11)
    return figure


def sinusoid_table(positions) -> Figure:
    """Draw a table of sinusoidal positions as an image."""
    ends = [to_rgba(COLOURS[c], alpha) for c, alpha in ((1, 0.95), (1, 0.0), (0, 0.0), (0, 0.95))]
    signed = LinearSegmentedColormap.from_list("signed", ends)
    figure, ax = plt.subplots(figsize=(5.0, 4.6))
    picture = ax.imshow(positions, cmap=signed, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    bar = figure.colorbar(picture, ax=ax, ticks=[-1, 0, 1], label="value")
    bar.outline.set_visible(False)
    ax.set(xlabel="component (even: sine, odd: cosine)", ylabel="position")
    return figure


def binary_counter(bits) -> Figure:
    """Draw the bits of the numbers 0 to 15, and the waves whose signs they are."""
    figure, axes = plt.subplots(4, 1, figsize=(5.0, 4.4), sharex=True)
    fine = np.linspace(0, 16, 400)
    for k, ax in enumerate(axes):
        steps = [bits[min(int(x), 15), k] for x in fine]
        ax.fill_between(fine, 0, steps, color=COLOURS[k], alpha=0.3, lw=0, step="mid")
        ax.plot(fine, 0.5 - 0.5 * np.sin(fine * 2 * np.pi / 2 ** (k + 1)), color=COLOURS[k])
        ax.set_ylabel(f"bit {k}", rotation=0, ha="right", va="center")
        ax.set_yticks([0, 1])
    axes[-1].set(xlabel="number", xlim=(0, 16))
    axes[-1].set_xticks(np.arange(16) + 0.5, range(16))
    return figure


def dot_products(positions) -> Figure:
    """Plot the dot products of all positions with position 60 and with position 100."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    for centre, style, colour in ((60, "--", COLOURS[1]), (100, "-", COLOURS[0])):
        ax.plot(positions @ positions[centre], style, color=colour, label=f"with position {centre}")
        ax.axvline(centre, color=colour, lw=0.8, alpha=0.6)
    ax.set(xlabel="position", ylabel="dot product")
    ax.legend(fontsize=10, loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    ax.grid(True)
    return figure


def turned_arrows(q2, k2, turned) -> Figure:
    """Draw a query and a key before and after they are rotated by their positions."""
    figure, axes = plt.subplots(2, 1, figsize=(3.8, 7.2), sharex=True)
    around = np.linspace(0, 2 * np.pi, 80)
    for ax, (at_q, at_k) in zip(axes, ((1, 3), (6, 8))):
        ax.plot(np.sin(around), np.cos(around), color=INK, lw=0.6, alpha=0.4)
        for x, at, colour, name in ((q2, at_q, QUERY, "query"), (k2, at_k, KEY, "key")):
            y = turned(x, at)
            ax.annotate(
                "",
                x,
                (0, 0),
                arrowprops=dict(arrowstyle="-|>", color=colour, lw=1, alpha=0.55, ls="--", shrinkA=0, shrinkB=0),
            )
            ax.annotate("", y, (0, 0), arrowprops=dict(arrowstyle="-|>", color=colour, lw=2.6, shrinkA=0, shrinkB=0))
            tip = y / np.linalg.norm(y)
            ax.text(*(1.25 * tip), f"{name}\nat {at}", ha="center", va="center", color=INK, fontsize=11)
        ax.set(xlim=(-1.6, 1.6), ylim=(-1.5, 1.5), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.set_ylabel("component b")
        ax.set_title(f"dot product {turned(q2, at_q) @ turned(k2, at_k):.2f}", fontsize=11)
    axes[1].set_xlabel("component a")
    return figure


def alibi_reach(slopes) -> Figure:
    """Plot how the weights of ALiBi's heads fall with distance if all contents match equally."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    distance = np.arange(0, 129)
    styles = {2: "--", 4: "-.", 6: ":"}
    for h in (0, 2, 4, 6, 7):
        label = f"$m=1/{1 / slopes[h]:.0f}$"
        ax.plot(distance, np.exp(-slopes[h] * distance), color=COLOURS[h], label=label, ls=styles.get(h, "-"))
    ax.set(xlabel="distance from query back to key", ylabel="relative weight", ylim=(0, 1.03))
    ax.legend(fontsize=10, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ax.grid(True)
    return figure


def alibi_biases(symmetric, causal, names) -> Figure:
    """Draw what ALiBi adds to the scores of one head, without and with a causal mask."""
    figure, axes = plt.subplots(2, 1, figsize=(3.8, 6.6))
    heatmap(symmetric, names, names, ax=axes[0], digits=1)
    heatmap(causal, names, names, ax=axes[1], digits=1)
    return figure


def taken_apart(widths, apart) -> Figure:
    """Plot how often a sum of word and position is taken apart correctly, by width."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    names = ("word", "position", "position ± 1")
    for values, style, marker, label in zip(apart.T, ("-", "--", ":"), "os^", names):
        ax.plot(widths, values, style, marker=marker, ms=5, label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(widths, map(str, widths))
    ax.set(xlabel="width D", ylabel="share guessed right", ylim=(0, 1.04))
    ax.legend(fontsize=10, loc="lower center", ncols=3, bbox_to_anchor=(0.5, 1.0), columnspacing=1.0)
    ax.grid(True)
    return figure


def bucket_stairs(stairs) -> Figure:
    """Plot the bucket of each distance."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    ax.step(range(len(stairs)), stairs, where="mid")
    ax.axvline(15.5, ls=":", lw=1, color=INK)
    ax.text(18, 2, "from here on shared", fontsize=10, bbox=dict(facecolor="none", edgecolor="none"))
    ax.set(xlabel="distance from query back to key", ylabel="bucket")
    ax.grid(True)
    return figure


def accuracy_beyond_training(LONG, schemes, result, TRAIN) -> Figure:
    """Plot the accuracy at each position, within and beyond the length of training."""
    figure, axes = plt.subplots(2, 1, figsize=(5.4, 6.8), sharex=True)
    middle = np.arange(LONG // 8) * 8 + 4
    styles = dict(zip(schemes, ((":", "x"), ("--", "s"), ("-.", "v"), ("-", "o"), ("--", "D"), ("-", "^"))))
    for ax, task in zip(axes, ("three back", "latest vowel")):
        for n, scheme in enumerate(schemes):
            line, marker = styles[scheme]
            ax.plot(
                middle, result[task, scheme], line, marker=marker, ms=4.5, markevery=3, color=COLOURS[n], label=scheme
            )
        ax.axvline(TRAIN, ls=":", color=INK)
        ax.set(title=task, ylabel="share of right answers", ylim=(0, 1.05), xlim=(0, LONG))
        ax.grid(True)
    axes[1].set_xlabel("position")
    axes[0].set_title("three back", pad=48)
    axes[0].legend(ncols=3, fontsize=10, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def weights_by_distance(TRAIN, by_distance) -> Figure:
    """Plot the weights of two schemes by distance, near and far beyond the length of training."""
    figure, axes = plt.subplots(2, 1, figsize=(5.0, 5.0), sharex=True)
    for ax, scheme in zip(axes, ("RoPE", "T5")):
        ax.axvspan(0, TRAIN - 1, color=INK, alpha=0.08, lw=0)
        ax.semilogy(by_distance[scheme][200], "-", color=COLOURS[0], lw=1.4, label="query at 200")
        ax.semilogy(by_distance[scheme][20], "o--", color=COLOURS[1], ms=3.5, label="query at 20")
        ax.set(ylabel="weight", title=scheme, ylim=(1e-6, 2))
        ax.grid(True)
    axes[1].legend(fontsize=10, loc="lower right")
    axes[1].set_xlabel("distance from query back to key")
    return figure
