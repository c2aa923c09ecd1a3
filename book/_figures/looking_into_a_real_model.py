"""The figures of the page *Looking into a real model*, drawn from what the page has computed."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.plotting import COLOURS, INK, head_view, heatmap


def weight_by_head(here, layer_names, head_names) -> Figure:
    """Shade how much weight each head gives to the token before, and to [CLS]."""
    figure, axes = plt.subplots(2, 1, figsize=(6.8, 6.2))
    figure.set_layout_engine("constrained", h_pad=0.15)
    for ax, what in zip(axes, ("the token before", "[CLS]"), strict=True):
        heatmap(100 * here[what], layer_names, head_names, ax=ax, digits=0, vmax=100, title=f"weight on {what}, in %")
        ax.set(xlabel="head", ylabel="layer")
        _enlarge(ax)
    return figure


def _enlarge(ax) -> None:
    """Make the numbers and letters of a table readable on a phone."""
    for text in (*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_fontsize(15)


def four_heads(top, to_bark, weights, tokens) -> Figure:
    """Shade the weights of four heads."""
    chosen = [top("the token before")[:2], top("the token after")[:2], top("[CLS]")[:2], to_bark]
    figure, axes = plt.subplots(2, 2, figsize=(6.8, 7.0), sharex=True, sharey=True)
    for ax, (layer, head) in zip(axes.flat, chosen, strict=True):
        for (i, j), w in np.ndenumerate(weights[layer, head]):
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color=COLOURS[0], alpha=float(w) * 0.9, lw=0))
        ax.set_title(f"layer {layer}, head {head}")
        ax.set(xlim=(-0.5, len(tokens) - 0.5), ylim=(len(tokens) - 0.5, -0.5))
        ax.set_xticks(range(len(tokens)), tokens, rotation=90)
        ax.set_yticks(range(len(tokens)), tokens)
        ax.tick_params(length=0)
        ax.spines[:].set(visible=True, linewidth=0.5)
    figure.supxlabel("key (what is attended to)", fontsize=11)
    figure.supylabel("query (who attends)", fontsize=11)
    return figure


def shares_by_layer(shares_w, shares_c) -> Figure:
    """Plot the shares of [CLS] and [SEP] by layer, of the weights and of what is added."""
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    for n, (token, mark) in enumerate((("[CLS]", "o"), ("[SEP]", "s"))):
        ax.plot(shares_w[:, n], marker=mark, color=COLOURS[n], label=f"{token}: of the weights")
        ax.plot(shares_c[:, n], marker=mark, ls="--", mfc="none", color=COLOURS[n], label=f"{token}: of what is added")
    ax.set(xlabel="layer", ylabel="share", ylim=(0, 0.8))
    ax.legend(ncols=2, fontsize=9)
    ax.grid(True)
    return figure


def sinks(weight, length) -> Figure:
    """Plot for each head the weight on [CLS] against the length of what [CLS] hands over."""
    figure, ax = plt.subplots(figsize=(6.0, 3.9))
    for layer, marker in enumerate("osv^DP"):
        ax.scatter(weight[layer], length[layer], marker=marker, color=COLOURS[layer], s=34, label=f"layer {layer}")
    ax.axhline(1, color=INK, ls="--", lw=0.9)
    ylabel = "length handed over by [CLS],\ncompared with a word"
    ax.set(xlabel="mean weight on [CLS]", ylabel=ylabel, xlim=(0, 1), ylim=(0, 1.1))
    ax.legend(ncols=2, fontsize=10, loc="upper right", bbox_to_anchor=(1, 0.92))
    return figure


def nouns_and_margins(both, margin) -> Figure:
    """Shade the weight that *it* gives to two nouns together, and to the right one minus the wrong one."""
    figure, axes = plt.subplots(2, 1, figsize=(7, 7), gridspec_kw={"hspace": 0.12})
    layers, heads = [str(n) for n in range(6)], [str(n) for n in range(12)]
    titles = ("weight on the two nouns together, in %", "right noun minus wrong noun, in %")
    for ax, values, title in zip(axes, (both, margin), titles, strict=True):
        heatmap((100 * values).reshape(6, 12).round() + 0.0, layers, heads, ax=ax, digits=0, title=title)
        ax.set(xlabel="head", ylabel="layer")
        _enlarge(ax)
    return figure


def attention_of_it(pair, endings) -> Figure:
    """Draw the attention of *it* in layer 3, head 1, for two sentences with different endings."""
    figure, axes = plt.subplots(1, 2, figsize=(7, 4.6), gridspec_kw={"wspace": 0.12})
    for ax, (tokens, weights), ending in zip(axes, pair, endings, strict=True):
        head_view(weights[3, 1][None], tokens, tokens, focus=tokens.index("it"), ax=ax)
        for text in ax.texts:
            text.set_text(text.get_text().split(" (")[0])
        ax.get_legend().remove()
        ax.set_title(f"... {ending}", pad=24)
    return figure


def switched_off(turned, layers, heads) -> Figure:
    """Shade how far the sentence vectors turn without each head."""
    figure, ax = plt.subplots(figsize=(6.8, 3.0))
    heatmap(turned, layers, heads, ax=ax, digits=1)
    ax.set(xlabel="head switched off", ylabel="layer")
    return figure
