"""The model all-MiniLM-L6-v2, packed so that it runs in a page, and the element that shows its heads there.

The element ``<attention-minilm>`` is in ``_explorer/minilm.js``. None of it is fetched before the reader asks for it
(``_ext/explorer_assets.py``).
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from _tools.elements import ExplorerElement, weights_picture, weights_table
from _tools.packing import quantized

if TYPE_CHECKING:
    from attnlib.minilm import SentenceEncoder

CAPTION = "All 72 heads on any sentence"
GROUP = 128  # numbers that share a scale
MOST_TOKENS = 64  # of a sentence in the page, where each token has a column
WORDS, POSITIONS, TYPES = (f"{kind}_embeddings.weight" for kind in ("word", "position", "token_type"))
NAMES = {
    "self_attn.q_proj": "q", "self_attn.k_proj": "k", "self_attn.v_proj": "v", "self_attn.out_proj": "out",
    "linear1": "up", "linear2": "down",
}  # fmt: skip


def live_heads(examples: Sequence[Mapping[str, Any]], *, shown: tuple[Sequence[str], NDArray[Any]]) -> ExplorerElement:
    """Return the element in which a reader can try the model.

    Args:
        examples: sentences to choose from, each ``{"text": ..., "layer": ..., "head": ..., "token": ...}`` with the
            head and the token, counted from 0, that are looked at first. The first sentence is shown first.
        shown: the tokens of the first sentence and its weights (L, H, T, T); readers without JavaScript see one head.
    """
    config = {"caption": CAPTION, "examples": [dict(one) for one in examples]}
    tokens, weights = shown
    first = examples[0]
    title = f"Weights of layer {first['layer']}, head {first['head']} on “{first['text']}”"
    still = weights[first["layer"], first["head"]], tokens, tokens, title
    return ExplorerElement("attention-minilm", config, weights_picture(*still) + weights_table(*still), CAPTION)


def packed(encoder: "SentenceEncoder[Any]") -> bytes:
    """Return a model in 8 bits for each number of a matrix, as ``minilm_file.js`` reads it.

    The compressed content is the number of bytes of the head, the head, then all vectors, scales and matrices.
    """
    model: Any = encoder.model
    state = model.state_dict()
    arrays = {_short(name): np.atleast_2d(_shortened(name, array)) for name, array in state.items() if name != WORDS}
    matrices = [state[WORDS], *(array for array in arrays.values() if len(array) > 1)]
    vectors = [array for array in arrays.values() if len(array) == 1]
    numbers, scales = quantized(np.concatenate([array.ravel() for array in matrices]), GROUP)
    head = {
        "config": _sizes(model),
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
        "group": GROUP,
        "vocabulary": [word for word, _ in sorted(encoder.tokenizer.get_vocab().items(), key=lambda one: one[1])],
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    parts = [np.array(len(text), "<u4").tobytes(), text, np.concatenate(vectors, axis=1).astype("<f4").tobytes()]
    return gzip.compress(b"".join([*parts, scales.tobytes(), numbers.tobytes()]), 6, mtime=0)


def _sizes(model: Any) -> dict[str, float]:
    """Return what JavaScript has to know about a model."""
    layers = model.encoder.layers
    return {
        "layers": len(layers), "heads": layers[0].self_attn.num_heads, "width": model.norm.weight.size,
        "context": MOST_TOKENS, "eps": model.norm.eps,
    }  # fmt: skip


def _shortened(name: str, array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the part of a parameter that a single sentence of the page needs."""
    return array[: {POSITIONS: MOST_TOKENS, TYPES: 1}.get(name)]


def _short(name: str) -> str:
    """Shorten a parameter's name: encoder.layers.0.self_attn.q_proj.weight becomes 0.q, and its bias 0.q.bias."""
    name = name.removesuffix(".weight").removeprefix("encoder.layers.").removesuffix("_embeddings")
    number, _, rest = name.partition(".")
    part = rest.removesuffix(".bias")
    return f"{number}.{NAMES[part]}{rest.removeprefix(part)}" if part in NAMES else name
