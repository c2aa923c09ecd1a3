"""Attention that a reader can change: what a page needs for its ``<attention-explorer>`` and ``<attention-heads>``.

The elements themselves are in ``_explorer``, and so is ``options.json``, which says what can be set. This module writes
their configuration, and inside it a picture and tables that attnlib computed while the book was built: a reader without
JavaScript sees those.

Dimensions: T words, D numbers a word, H heads, L layers.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import attnlib
from _tools.elements import ExplorerElement, still, weights_picture, weights_table
from attnlib.plotting import QUERY

WORD_WIDTH = 110  # pixels of the still picture
WEIGHT_STEPS = 1000  # weights of heads are kept as whole thousandths
SCORES: dict[str, Callable[..., Any]] = {
    "dot": attnlib.dot,
    "scaled_dot": attnlib.scaled_dot,
    "cosine": attnlib.cosine,
    "gaussian": attnlib.gaussian,
}


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return what ``options.json`` holds.

    Raises:
        ValueError: the similarities are not those that attnlib computes here, a default is none of its options, or a
            field belongs to an option that does not exist.
    """
    controls = options["controls"]
    if {*controls["similarity"]["options"]} != {*SCORES}:
        raise ValueError(f"options.json offers {[*controls['similarity']['options']]}, but there are {[*SCORES]}")
    for name, control in controls.items():
        if "default" in control and control["default"] not in choices(control):
            raise ValueError(f"{name} is {control['default']!r} by default, but the options are {choices(control)}")
    for name, field in options["fields"].items():
        unknown = {*field["when"]} - {*choices(controls[field["control"]])} if field["control"] else None
        if unknown:
            raise ValueError(f"{name} is shown for {sorted(unknown)}, which {field['control']} does not offer")
    return options


def choices(control: dict[str, Any]) -> list[Any]:
    """Return the options of a control, or the numbers that it offers."""
    return [*control["options"]] if "options" in control else [*range(1, control["largest"] + 1)]


OPTIONS = checked_options(json.loads((Path(__file__).parents[1] / "_explorer" / "options.json").read_text("utf-8")))
OWN_FIELDS = [name for name, field in OPTIONS["fields"].items() if not field["control"]]  # controls of their own
CONTROLS: tuple[str, ...] = (*OPTIONS["controls"], *OWN_FIELDS)
SETTINGS: dict[str, Any] = {
    name: entry["default"]
    for kind in ("controls", "fields")
    for name, entry in OPTIONS[kind].items()
    if "default" in entry
}


def explorer(
    words: str,
    tables: Mapping[str, ArrayLike],
    *,
    caption: str,
    controls: Sequence[str],
    query: str,
    predict: bool = False,
    **settings: Any,
) -> ExplorerElement:
    """Return an explorer of one sentence, opened on these vectors.

    Args:
        words: the sentence, words apart by spaces.
        tables: ``{"x"}`` (T, D); with ``"wq", "wk", "wv"`` (D, ...) that make queries, keys and values of it; or
            ``{"q", "k", "v"}``.
        caption: what the page's example is.
        controls: those that the reader has met, of CONTROLS.
        query: the word whose row is looked at first.
        predict: whether the weights are hidden at first, until the reader has guessed.
        settings: what the controls and fields are set to at first; the rest is as in SETTINGS.

    Raises:
        ValueError: there is no such control or setting, or a table does not fit the sentence.
    """
    _check_settings(controls, settings)
    numbers = {name: np.asarray(table, float) for name, table in tables.items()}
    labels, settings = words.split(), SETTINGS | settings
    _check_sentence(labels, numbers, query)
    config = {
        "words": labels, "tables": {name: table.tolist() for name, table in numbers.items()}, "caption": caption,
        "controls": list(controls), "query": labels.index(query), "predict": predict, "settings": settings,
    }  # fmt: skip
    weights, _ = attended(numbers, **settings)
    tables_html = "".join(
        weights_table(head, labels, labels, f"{caption}: weights" + (f" of head {h}" if len(weights) > 1 else ""))
        for h, head in enumerate(weights)
    )
    picture = still_picture(labels, weights[0][labels.index(query)], labels.index(query))
    return ExplorerElement("attention-explorer", config, picture + tables_html, caption)


def still_picture(words: Sequence[str], weights: NDArray[Any], query: int) -> str:
    """Draw the words and an arc from the query to each of them, as thick as its weight in ``weights`` (T,)."""
    places = [WORD_WIDTH * (j + 0.5) for j in range(len(words))]
    start = places[query]
    arcs = []
    for end, weight in zip(places, weights, strict=True):
        left, right = (start - 26, start + 26) if end == start else (start, end)
        high = 70 - min(62, 30 + 0.2 * abs(end - start))
        arcs.append(
            f'<path d="M {start:g} 70 C {left:g} {high:g} {right:g} {high:g} {end:g} 70" fill="none" stroke="{QUERY}" '
            f'stroke-opacity="0.6" stroke-width="{0.5 + 12 * weight:.2f}"/>'
        )
    names = [
        f'<text x="{x:g}" y="88" text-anchor="middle" fill="currentColor">{html.escape(word)}</text>'
        for x, word in zip(places, words, strict=True)
    ]
    said = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, weights, strict=True))
    alt = f"Arcs from {words[query]} to every word; the larger the weight, the thicker the arc: {said}."
    return still(f'<g font-size="14">{"".join(arcs + names)}</g>', WORD_WIDTH * len(words), 100, alt)


def _check_settings(controls: Sequence[str], settings: Mapping[str, Any]) -> None:
    unknown = {*controls} - {*CONTROLS} | {*settings} - {*SETTINGS}
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]} is not a setting; there are {', '.join([*CONTROLS, *SETTINGS])}")
    for name, value in settings.items():
        if name not in OPTIONS["controls"]:
            _check_field(name, value)
        elif value not in choices(OPTIONS["controls"][name]):
            needed = ", ".join(map(str, choices(OPTIONS["controls"][name])))
            raise ValueError(f"{name} is {value!r}, but one of {needed} is needed")


def _check_field(name: str, value: float | None) -> None:
    if value is None:
        return
    field = OPTIONS["fields"][name]
    lowest, highest = field["lowest"], field.get("highest", OPTIONS["words"])
    if not lowest <= value <= highest:
        raise ValueError(f"{name} is {value!r}, but a number from {lowest} to {highest} is needed")


def _check_sentence(words: Sequence[str], tables: Mapping[str, NDArray[np.float64]], query: str) -> None:
    if len(words) > OPTIONS["words"]:
        raise ValueError(f"the sentence has {len(words)} words, but there is room for {OPTIONS['words']}")
    if query not in words:
        raise ValueError(f"query is {query!r}, but a word of the sentence is needed: {' '.join(words)}")
    for name in {*tables} & {"x", "q", "k", "v"}:
        if len(tables[name]) != len(words):
            raise ValueError(f"{name} has shape {tables[name].shape}, but there are {len(words)} words: one row each")


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
    temperature: float = 1.0,
    flips: Sequence[tuple[int, int]] = (),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute with attnlib what the element does with the same settings: weights (H, T, T) and context (T, H*D).

    For the pairs of query and key in ``flips``, the mask is turned over.
    """
    fields: dict[str, dict[str, Any]] = {"scaled_dot": {"scale": scale}, "gaussian": {"bandwidth": bandwidth}}
    similar = partial(SCORES[similarity], **fields.get(similarity, {}))
    q, k, v = (attnlib.split_heads(table, heads) for table in _projected(tables, positions))  # (H, T, D)
    T = q.shape[-2]
    if positions == "rope":
        cos, sin = attnlib.rope_tables(np.arange(T), q.shape[-1])
        q, k = attnlib.apply_rope(q, cos, sin), attnlib.apply_rope(k, cos, sin)
    allowed = np.ones((T, T), bool)
    if mask in ("causal", "both"):
        allowed &= attnlib.causal_mask(T)
    if mask in ("padding", "both"):
        allowed &= attnlib.padding_mask([T if length is None else length], T)[0, 0]
    for i, j in flips:
        allowed[i, j] ^= True
    bias = attnlib.alibi_bias(heads, T, T) if positions == "alibi" else None

    def score(query: Any, key: Any) -> Any:
        return similar(query, key) / temperature

    context, weights = attnlib.attention(q, k, v, score=score, mask=attnlib.combine_masks(allowed, bias))
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
) -> ExplorerElement:
    """Return a view of all heads of a model, opened on the first sentence and one head.

    Args:
        attended_to: for each sentence its T tokens and its weights (L, H, T, T).
        caption: which model and which sentences.
        layer: of the head shown first, and in the picture and the table for readers without JavaScript.
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
        "steps": WEIGHT_STEPS,
        "sentences": sentences,
    }
    (first, (tokens, weights)), *_ = attended_to.items()
    title = f"Weights of layer {layer}, head {head} on “{first}”"
    shown = np.asarray(weights)[layer, head], tokens, tokens, title
    return ExplorerElement("attention-heads", config, weights_picture(*shown) + weights_table(*shown), caption)


def packed(weights: NDArray[Any]) -> str:
    """Write weights (..., T) as whole thousandths whose rows still sum to 1: the largest remainders are rounded up."""
    exact = weights.astype(float) * WEIGHT_STEPS
    whole = np.floor(exact)
    missing = np.rint(exact.sum(-1) - whole.sum(-1)).astype(int)[..., None]
    place = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1)
    thousandths = (whole + (place < missing)).astype(int)
    return " ".join(str(n) if n else "" for n in thousandths.ravel())  # nothing for 0, which most of them are
