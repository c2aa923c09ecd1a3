"""The longer figures of the page *From RNNs to context vectors*, drawn from what the page has computed."""

import numpy as np
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attnlib.plotting import COLOURS, INK, KEY, QUERY, VALUE


def box(ax, x, y, text, colour=INK, width=1.0, height=0.62, fill=0.10, **kw):
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.02,rounding_size=0.1",
            facecolor=(*colors.to_rgb(colour), fill),
            edgecolor=colour,
            lw=1.6,
        )
    )
    ax.text(x, y, text, ha="center", va="center", **kw)


def arrow(ax, start, end, colour=INK, bend=0.0, **kw):
    ax.annotate(
        "",
        end,
        start,
        arrowprops=dict(
            arrowstyle="-|>", color=colour, lw=1.5, shrinkA=0, shrinkB=0, connectionstyle=f"arc3,rad={bend}", **kw
        ),
    )


def bottleneck() -> Figure:
    """Draw three encoder states that hand everything over through one vector."""
    figure, ax = plt.subplots(figsize=(6.2, 3.3))
    for j, word in enumerate(["27", "Nov", "1999"]):
        ax.text(j * 1.15, -0.1, word, ha="center", va="center")
        arrow(ax, (j * 1.15, 0.1), (j * 1.15, 0.62))
        box(ax, j * 1.15, 0.98, f"$h_{j + 1}$", KEY, 0.75)
        if j < 2:
            arrow(ax, (j * 1.15 + 0.42, 0.98), (j * 1.15 + 0.72, 0.98))
    box(ax, 3.45, 0.98, "$c$", COLOURS[7], 0.5, 0.9, 0.25, fontweight="bold")
    arrow(ax, (2.72, 0.98), (3.14, 0.98))
    for t, word in enumerate(["1999", "11", "27"]):
        x0 = 4.6 + t * 1.15
        box(ax, x0, 0.98, f"$s_{t + 1}$", QUERY, 0.75)
        arrow(ax, (x0, 1.33), (x0, 1.85))
        ax.text(x0, 2.05, word, ha="center", va="center")
        arrow(ax, (3.74 if t == 0 else x0 - 0.73, 0.98), (x0 - 0.42, 0.98))
        if t < 2:
            arrow(ax, (x0 + 0.3, 1.9), (x0 + 0.85, 1.33))
    ax.text(1.15, 1.75, "encoder reads", ha="center")
    ax.text(3.45, 0.2, "all that is\nhanded over", ha="center", va="center", color=COLOURS[7])
    ax.text(5.75, 0.2, "decoder writes", ha="center", va="center")
    ax.set(xlim=(-0.5, 7.4), ylim=(-0.35, 2.3))
    ax.axis("off")
    return figure


def order_of_steps() -> Figure:
    """Draw when Bahdanau's decoder attends and when Luong's does."""
    figure, axes = plt.subplots(2, 1, figsize=(5.8, 6.6))
    for ax in axes:
        ax.set(xlim=(-0.75, 6.7), ylim=(-0.55, 3.15))
        ax.axis("off")
    attend_then_step(axes[0])
    step_then_attend(axes[1])
    return figure


def attend_then_step(ax):
    """Draw a step of Bahdanau's decoder."""
    ax.set_title("Bahdanau: attend, then step", loc="left", fontweight="bold")
    box(ax, 0, 0.4, "$s_{t-1}$", QUERY, 0.9)
    box(ax, 1.75, 2.6, "memory\n$m_1 \\ldots m_S$", KEY, 2.5)
    box(ax, 1.75, 1.5, "score, softmax", INK, 1.9, fill=0.04)
    box(ax, 3.75, 1.5, "$c_t$", VALUE, 0.7)
    box(ax, 3.75, 0.4, "cell", INK, 0.9, fill=0.04)
    box(ax, 5.0, 0.4, "$s_t$", QUERY, 0.7)
    arrow(ax, (0.2, 0.75), (0.8, 1.3), QUERY)
    ax.text(0.2, 1.2, "query", color=QUERY, ha="center")
    arrow(ax, (1.4, 2.25), (1.4, 1.85), KEY)
    ax.text(1.3, 2.05, "keys", color=KEY, ha="right", va="center")
    arrow(ax, (2.72, 1.5), (3.36, 1.5), VALUE)
    arrow(ax, (3.05, 2.55), (3.7, 1.86), VALUE, bend=-0.2)
    ax.text(3.65, 2.4, "values", color=VALUE)
    arrow(ax, (3.75, 1.15), (3.75, 0.75), VALUE)
    arrow(ax, (0.47, 0.4), (3.26, 0.4))
    arrow(ax, (4.22, 0.4), (4.62, 0.4))
    arrow(ax, (5.37, 0.4), (5.75, 0.4))
    ax.text(6.2, 0.4, "output", ha="center", va="center")
    ax.text(3.0, -0.1, "$y_{t-1}$", ha="center", va="center")
    arrow(ax, (3.2, -0.05), (3.5, 0.07))


def step_then_attend(ax):
    """Draw a step of Luong's decoder."""
    ax.set_title("Luong: step, then attend", loc="left", fontweight="bold")
    box(ax, 0, 0.4, "$s_{t-1}$", QUERY, 0.9)
    box(ax, 1.3, 0.4, "cell", INK, 0.9, fill=0.04)
    box(ax, 2.5, 0.4, "$s_t$", QUERY, 0.7)
    box(ax, 2.5, 2.6, "memory\n$m_1 \\ldots m_S$", KEY, 2.5)
    box(ax, 2.5, 1.5, "score, softmax", INK, 1.9, fill=0.04)
    box(ax, 4.55, 1.5, "$c_t$", VALUE, 0.7)
    box(ax, 4.55, 0.4, "$\\tilde h_t$", INK, 0.8, fill=0.04)
    arrow(ax, (0.47, 0.4), (0.82, 0.4))
    arrow(ax, (1.77, 0.4), (2.12, 0.4))
    arrow(ax, (2.5, 0.75), (2.5, 1.15), QUERY)
    ax.text(2.4, 0.95, "query", color=QUERY, ha="right", va="center")
    arrow(ax, (2.2, 2.25), (2.2, 1.85), KEY)
    ax.text(2.1, 2.05, "keys", color=KEY, ha="right", va="center")
    arrow(ax, (3.47, 1.5), (4.16, 1.5), VALUE)
    arrow(ax, (3.8, 2.55), (4.5, 1.86), VALUE, bend=-0.2)
    ax.text(4.45, 2.4, "values", color=VALUE)
    arrow(ax, (4.55, 1.15), (4.55, 0.75), VALUE)
    arrow(ax, (2.87, 0.4), (4.11, 0.4))
    arrow(ax, (4.98, 0.4), (5.6, 0.4))
    ax.text(6.1, 0.4, "output", ha="center", va="center")
    ax.text(0.55, -0.1, "$y_{t-1}$", ha="center", va="center")
    arrow(ax, (0.75, -0.05), (1.05, 0.07))


def learning_and_length(curve_with, curve_without, by_length) -> Figure:
    """Plot the share of dates that are right while training, and that of copies by their number of digits."""
    figure, (ax, bx) = plt.subplots(2, 1, figsize=(5.0, 6.6))
    looks = {"with attention": (COLOURS[0], "o"), "plain average": (COLOURS[2], "^"), "without": (COLOURS[1], "s")}
    for name, curve in {"with attention": curve_with, "without": curve_without}.items():
        ax.plot(*zip(*curve), looks[name][1] + "-", color=looks[name][0], ms=5, label=name)
    for name, right in by_length.items():
        bx.plot(range(1, len(right) + 1), right, looks[name][1] + "-", color=looks[name][0], ms=5, label=name)
    ax.set(xlabel="batches of 64 dates", ylabel="dates right", ylim=(-0.03, 1.05))
    ax.legend(loc="lower right")
    bx.legend(loc="center right", bbox_to_anchor=(1, 0.6))
    bx.set(xlabel="digits to copy", ylabel="copies right", ylim=(-0.03, 1.05))
    ax.grid(True)
    bx.grid(True)
    return figure


def gradient_reach(relative, gap) -> Figure:
    """Plot the length of the gradient against the distance, for networks by name."""
    figure, ax = plt.subplots(figsize=(5.2, 4.8))
    for (name, values), style in zip(relative.items(), ["-", "--", ":", "-", "--"]):
        colour = COLOURS[0] if "tanh" in name else COLOURS[1]
        ax.semilogy(values, style, color=colour, lw=2.2, label=name)
    ax.axvline(gap, color=INK, lw=1, alpha=0.5)
    ax.text(gap + 0.8, 2e6, "27 ... 1999", va="center")
    ax.set(xlabel="distance back, in steps", ylabel="gradient (1 at distance 0)", ylim=(1e-22, 1e8))
    ax.grid(True)
    ax.legend(loc="lower left", fontsize=10)
    return figure


def digits_held(recalled) -> Figure:
    """Plot the share of digits that are read back from the last state, by how long ago they came."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    for (width, right), style in zip(recalled.items(), ["-o", "-s", "-^"]):
        ax.plot(range(len(right)), right, style, ms=5, label=f"state of {width}")
    ax.axhline(1, ls=":", color=INK, label="all states kept")
    ax.axhline(0.1, lw=1, color=INK, alpha=0.4)
    ax.text(0, 0.03, "guessing", fontsize=10)
    ax.set(xlabel="how many digits ago", ylabel="share read back", ylim=(0, 1.08))
    ax.grid(True)
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.68), fontsize=10)
    return figure


def mixture(memory, weights, context) -> Figure:
    """Draw three rows of the memory, and the context vector that is mixed from them."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    ax.fill(*memory.T, color=VALUE, alpha=0.10, lw=0)
    places = [(0, -0.11), (-0.06, 0.1), (0.02, 0.1)]
    for row, name, weight, place in zip(memory, ["27", "Nov", "1999"], weights, places):
        ax.plot(*zip(row, context), color=VALUE, lw=1 + 8 * weight, alpha=0.55, solid_capstyle="round")
        ax.plot(*row, "o", color=KEY, ms=10)
        x, y = row + place
        ax.text(x, y, f"{name}, weight {weight:.3f}", ha="center", va="center")
    ax.plot(*context, "D", color=VALUE, ms=9)
    ax.annotate(
        f"context\n({context[0]:.3f}, {context[1]:.3f})",
        context,
        (0.18, 0.55),
        ha="center",
        va="center",
        arrowprops=dict(arrowstyle="-", color=INK, lw=0.8),
    )
    ax.set(xlim=(-0.35, 1.35), ylim=(-0.25, 1.25), aspect="equal", xlabel="first component", ylabel="second component")
    ax.grid(True)
    return figure


def shade(ax, alignment, answer, keys):
    """Shade the weights of one alignment, a row per output character."""
    shades = np.zeros((*alignment.shape, 4)) + colors.to_rgba(COLOURS[0])
    shades[..., 3] = 0.8 * alignment
    ax.imshow(shades, aspect="auto", interpolation="nearest")
    ax.set_xticks(range(len(keys)), keys, parse_math=False)
    ax.set_yticks(range(len(answer)), list(answer))
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, linewidth=0.4)
    ax.set_ylabel("query (output)", color=QUERY)


def one_alignment(alignment, answer, keys) -> Figure:
    """Shade which characters of one date the decoder attends to."""
    figure, ax = plt.subplots(figsize=(5.0, 4.4))
    shade(ax, alignment, answer, keys)
    ax.set_xlabel("key (input character)", color=KEY)
    return figure


def alignments(examples, look, shown) -> Figure:
    """Shade which characters of four dates the decoder attends to."""
    figure, axes = plt.subplots(4, 1, figsize=(5.6, 12))
    for ax, text in zip(axes, examples):
        answer, alignment, _ = look(text)
        shade(ax, alignment, answer, shown(text))
    axes[-1].set_xlabel("key (input character)", color=KEY)
    return figure
