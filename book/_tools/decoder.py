"""The course's language model, packed so that it runs in a page, and the element that shows it there.

The element ``<attention-decoder>`` is in ``_explorer/decoder.js``. None of it is fetched before the reader asks for
it (``_ext/explorer_assets.py``).
"""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _tools.elements import ExplorerElement, weights_picture, weights_table
from _tools.packing import quantized

CAPTION = "The model writes"
GROUP = 64  # numbers that share a scale
NAMES = {
    "embed_tokens": "embed", "self_attn.q_proj": "q", "self_attn.k_proj": "k", "self_attn.v_proj": "v",
    "self_attn.out_proj": "out", "ff.gate_proj": "gate", "ff.up_proj": "up", "ff.down_proj": "down",
}  # fmt: skip


def decoder(
    examples: Sequence[str], *, layer: int, head: int, shown: tuple[Sequence[str], NDArray[Any]]
) -> ExplorerElement:
    """Return the element in which a reader can try the model.

    Args:
        examples: prompts to choose from; the first one is continued first.
        layer: the layer, counted from 0, whose weights are shown first.
        head: its head.
        shown: the tokens of a text, and that head's weights (S, S), for readers without JavaScript.
    """
    config = {"caption": CAPTION, "examples": list(examples), "layer": layer, "head": head}
    tokens, weights = shown
    still = weights, tokens, tokens, f"Weights of head {head} in layer {layer}"
    return ExplorerElement("attention-decoder", config, weights_picture(*still) + weights_table(*still), CAPTION)


def packed(folder: Path) -> dict[str, Any]:
    """Return a checkpoint in 8 bits for each number of a matrix, as ``unpacked`` in ``decoder_file.js`` reads it."""
    from attnlib import hf  # not needed by a page that only shows the element

    model: Any = hf.load(folder).model
    arrays = {_short(name): np.atleast_2d(array).astype(np.float32) for name, array in model.state_dict().items()}
    bytes_, scales = quantized(np.concatenate([array.ravel() for array in arrays.values() if len(array) > 1]), GROUP)
    return {
        "config": _sizes(model.config, folder),
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
        "group": GROUP,
        "numbers": _base64(bytes_),
        "scales": _base64(scales),
        "norms": _base64(np.concatenate([array.ravel() for array in arrays.values() if len(array) == 1]).astype("<f4")),
        "merges": _base64(merges(folder)),
    }


def merges(folder: Path) -> NDArray[np.uint16]:
    """Return the pairs of tokens (N, 2) that the tokenizer joins, in their order; each makes the next token."""
    model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    vocabulary: Mapping[str, int] = model["vocab"]
    pairs = [(vocabulary[a], vocabulary[b]) for a, b in model["merges"]]
    made = [vocabulary[a + b] for a, b in model["merges"]]
    if made != [*range(len(vocabulary) - len(pairs), len(vocabulary))]:
        raise ValueError(f"{folder / 'tokenizer.json'} does not number its tokens in the order of its merges")
    return np.array(pairs, "<u2")


def _sizes(config: Any, folder: Path) -> dict[str, float]:
    """Return what JavaScript has to know of a model."""
    context = json.loads((folder / "config.json").read_text(encoding="utf-8"))["max_position_embeddings"]
    return {
        "layers": config.num_layers, "heads": config.num_heads, "kvHeads": config.num_kv_heads or config.num_heads,
        "headDim": config.head_dim or config.embed_dim // config.num_heads, "context": context, "eps": config.norm_eps,
        "base": config.rope_base,
    }  # fmt: skip


def _short(name: str) -> str:
    """Shorten a parameter's name: layers.0.self_attn.q_proj.weight becomes 0.q."""
    name = name.removesuffix(".weight").removeprefix("layers.")
    number, _, rest = name.partition(".")
    return NAMES.get(name) or (f"{number}.{NAMES.get(rest, rest)}" if rest else name)


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()
