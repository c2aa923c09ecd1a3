"""Attention that a reader can change: what a page needs for its ``<attention-explorer>`` and ``<attention-heads>``.

The elements themselves are in ``_static/explorer``. What is written here is their configuration, and inside it tables
that attnlib computed while the book was built: whoever has no JavaScript reads those.

Dimensions: T words, D numbers a word, H heads, L layers.
"""

import html
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import attnlib

NOTE = "Computed while the book was built. Where JavaScript runs, there is more here to choose and to change."
STEPS = 1000  # weights of heads are kept as whole thousandths
SETTINGS = {
    "similarity": "scaled_dot", "scale": None, "bandwidth": 1.0,
    "heads": 1, "mask": "none", "length": None, "positions": "none",
}  # fmt: skip
OPTIONS = {
    "similarity": ("dot", "scaled_dot", "cosine", "gaussian"),
    "mask": ("none", "causal", "padding", "both"),
    "positions": ("none", "sinusoidal", "rope", "alibi"),
}
CONTROLS = ("similarity", "width", "heads", "mask", "positions")


def explorer(
    words: str,
    tables: Mapping[str, ArrayLike],
    *,
    caption: str,
    controls: Sequence[str],
    query: str,
    predict: bool = False,
    **settings: Any,
) -> "Markup":
    """Return an explorer of one sentence, opened on these vectors.

    Args:
        words: the sentence, words apart by spaces.
        tables: ``{"x"}`` (T, D); with ``"wq", "wk", "wv"`` (D, ...) that make queries, keys and values of it; or
            ``{"q", "k", "v"}``.
        caption: what the page's example is.
        controls: those that the reader has met, of CONTROLS.
        query: the word whose row is looked at first.
        predict: whether the weights are hidden at first, until the reader has guessed.
        settings: where the controls stand at first; the others stay there. See SETTINGS.

    Raises:
        ValueError: there is no such control or setting, or a table does not fit the sentence.
    """
    unknown = {*controls} - {*CONTROLS} | {*settings} - {*SETTINGS}
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))} came, but there are {', '.join([*CONTROLS, *SETTINGS])}")
    for name, options in OPTIONS.items():
        if settings.get(name, SETTINGS[name]) not in options:
            raise ValueError(f"{name} is {settings[name]!r}, but one of {', '.join(options)} is needed")
    numbers = {name: np.asarray(table, float) for name, table in tables.items()}
    labels, settings = words.split(), SETTINGS | settings
    if query not in labels:
        raise ValueError(f"query is {query!r}, but a word of the sentence is needed: {words}")
    for name in {*numbers} & {"x", "q", "k", "v"}:
        if len(numbers[name]) != len(labels):
            raise ValueError(f"{name} has shape {numbers[name].shape}, but there are {len(labels)} words: one row each")
    config = {
        "words": labels, "tables": {name: table.tolist() for name, table in numbers.items()}, "caption": caption,
        "controls": list(controls), "query": labels.index(query), "predict": predict, "settings": settings,
    }  # fmt: skip
    weights, _ = attended(numbers, **settings)
    tables_html = "".join(
        weights_table(head, labels, labels, f"{caption}: weights" + (f" of head {h}" if len(weights) > 1 else ""))
        for h, head in enumerate(weights)
    )
    return Markup("attention-explorer", config, tables_html, caption)


def attended(
    tables: Mapping[str, NDArray[np.float64]],
    *,
    similarity: str,
    scale: float | None,
    bandwidth: float,
    heads: int,
    mask: str,
    length: int | None,
    positions: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute with attnlib what the element does with the same settings: weights (H, T, T) and context (T, H*D)."""
    score = {
        "scaled_dot": partial(attnlib.scaled_dot, scale=scale),
        "gaussian": partial(attnlib.gaussian, bandwidth=bandwidth),
    }.get(similarity) or {"dot": attnlib.dot, "cosine": attnlib.cosine}[similarity]
    q, k, v = (attnlib.split_heads(table, heads) for table in _projected(tables, positions))  # (H, T, D)
    T = q.shape[-2]
    if positions == "rope":
        cos, sin = attnlib.rope_tables(np.arange(T), q.shape[-1])
        q, k = attnlib.apply_rope(q, cos, sin), attnlib.apply_rope(k, cos, sin)
    masks = {
        "alibi": attnlib.alibi_bias(heads, T, T) if positions == "alibi" else None,
        "causal": attnlib.causal_mask(T) if mask in ("causal", "both") else None,
        "padding": attnlib.padding_mask([T if length is None else length], T)[0]
        if mask in ("padding", "both")
        else None,
    }
    context, weights = attnlib.attention(q, k, v, score=score, mask=attnlib.combine_masks(*masks.values()))
    return weights, attnlib.merge_heads(context)


def _projected(tables: Mapping[str, NDArray[np.float64]], positions: str) -> list[NDArray[np.float64]]:
    if "x" not in tables:
        return [tables[name] for name in "qkv"]
    x = tables["x"]
    if positions == "sinusoidal":
        x = x + attnlib.sinusoidal_positions(*x.shape)
    return [x @ tables[f"w{name}"] if f"w{name}" in tables else x for name in "qkv"]


def heads(
    attended_to: Mapping[str, tuple[Sequence[str], ArrayLike]], *, caption: str, layer: int, head: int
) -> "Markup":
    """Return a view of all heads of a model, opened on the first sentence and one head.

    Args:
        attended_to: for each sentence its T tokens and its weights (L, H, T, T).
        caption: which model and which sentences.
        layer: of the head shown first, and in the table of those who have no JavaScript.
        head: of the head shown first.
    """
    sentences = [
        {"sentence": sentence, "tokens": list(tokens), "weights": packed(np.asarray(weights))}
        for sentence, (tokens, weights) in attended_to.items()
    ]
    L, H = np.shape(next(iter(attended_to.values()))[1])[:2]
    config = {
        "caption": caption,
        "layers": L,
        "heads": H,
        "layer": layer,
        "head": head,
        "steps": STEPS,
        "sentences": sentences,
    }
    (first, (tokens, weights)), *_ = attended_to.items()
    title = f"Weights of layer {layer}, head {head} on “{first}”"
    table = weights_table(np.asarray(weights)[layer, head], tokens, tokens, title)
    return Markup("attention-heads", config, table, caption)


def packed(weights: NDArray[Any]) -> str:
    """Write weights (..., T) as whole thousandths whose rows still sum to 1: the largest remainders are rounded up."""
    exact = weights.astype(float) * STEPS
    whole = np.floor(exact)
    missing = np.rint(exact.sum(-1) - whole.sum(-1)).astype(int)[..., None]
    place = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1)
    thousandths = (whole + (place < missing)).astype(int)
    return " ".join(str(n) if n else "" for n in thousandths.ravel())  # most are 0


def weights_table(weights: NDArray[Any], queries: Sequence[str], keys: Sequence[str], title: str) -> str:
    """Write weights (T, S) as a table whose rows and columns say what they are."""
    head = "".join(f'<th scope="col">{html.escape(key)}</th>' for key in keys)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(query)}</th>' + "".join(f"<td>{w:.2f}</td>" for w in row) + "</tr>"
        for query, row in zip(queries, weights, strict=True)
    )
    return (
        f'<div class="attn-scroll" tabindex="0" role="group" aria-label="{html.escape(title)}">'
        '<table class="attn-table">'
        f"<caption>{html.escape(title)}. Rows are queries, columns are keys.</caption>"
        f"<thead><tr><td>query ↓ key →</td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


class Markup:
    """An element as it stands on a page: its configuration, and what it shows without JavaScript."""

    def __init__(self, tag: str, config: Mapping[str, Any], fallback: str, text: str) -> None:
        self.tag, self.config, self.fallback, self.text = tag, config, fallback, text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self._html(), "text/plain": self.text}

    def _html(self) -> str:
        # Nothing in JSON ends a script but "<": escaped, no word of a sentence can.
        data = json.dumps(self.config, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return f'<{self.tag}><script type="application/json">{data}</script>{self.fallback}<p>{NOTE}</p></{self.tag}>'
