"""The interactive sentence on the front page, and the weights that one head of a real model gives to its words."""

import html
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlib.minilm import SentenceEncoder

LAYER, HEAD = 3, 1
BEGINNING, ENDINGS = "The cat drank the milk because it was", ("thirsty", "warm")
FIRST_QUERY = "it"  # the word whose weights are shown at the beginning, and without JavaScript


def weights_of_head(model: SentenceEncoder[Any]) -> dict[str, tuple[list[str], np.ndarray]]:
    """Return, for each ending of the sentence, its tokens and the weights (T, T) of the head, one row per query."""
    found = {}
    for ending in ENDINGS:
        tokens, weights = model.attention_weights(f"{BEGINNING} {ending}")  # weights (layers, heads, T, T)
        words = ["[CLS]", *BEGINNING.split(), ending, "[SEP]"]
        assert tokens[1:-1] == [word.lower() for word in words[1:-1]]  # one token per word
        found[ending] = words, np.asarray(weights[LAYER, HEAD], np.float64)
    return found


def weight_of(found: dict[str, tuple[list[str], np.ndarray]], ending: str, key: str, query: str = FIRST_QUERY) -> float:
    """Return the weight that a query gives to a key."""
    words, weights = found[ending]
    return float(weights[words.index(query), words.index(key)])


def sentence(found: dict[str, tuple[list[str], np.ndarray]]) -> str:
    """Return the sentence with each ending, its words shaded by their weights; front.js makes it interactive."""
    data = {
        "query": FIRST_QUERY,
        "endings": [
            {"ending": ending, "words": words, "weights": [[round(float(w), 3) for w in row] for row in weights]}
            for ending, (words, weights) in found.items()
        ],
    }
    shaded = "".join(_shaded(words, weights) for words, weights in found.values())
    said = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return f'<div class="attending">{shaded}<script type="application/json">{said}</script></div>'


def _kind(word: str) -> str:
    return " asking" if word == FIRST_QUERY else " special" if word.startswith("[") else ""


def _shaded(words: Sequence[str], weights: np.ndarray) -> str:
    """Return a sentence whose words are shaded by the weights that the first query gives them, with the numbers."""
    row = weights[words.index(FIRST_QUERY)]
    shown = "".join(
        f'<span class="attending-word{_kind(word)}" style="--weight:{w:.3f}">'
        f"{html.escape(word)} <small>{w:.0%}</small></span> "
        for word, w in zip(words, row, strict=True)
    )
    return f'<p class="attending-words">{shown}</p>'
