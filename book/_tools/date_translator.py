"""The translator of dates that runs in the page *From RNNs to context vectors*: its weights, as the page trained them.

The element ``<attention-dates>`` is in ``_explorer/dates.js``. Nothing of it is fetched before the reader asks for it
(``_ext/explorer_assets.py``).
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _tools.elements import ExplorerElement, weights_picture, weights_table

CAPTION = "The date translator"
BY_INPUT = ("start", "read", "w_query", "w_key")  # have a row for each input; all others, for each output


def date_translator(
    params: Mapping[str, Any],
    *,
    reads: Sequence[str],
    writes: str,
    examples: Sequence[str],
    surprise: str,
    shown: tuple[str, str, NDArray[Any]],
) -> ExplorerElement:
    """Return a translator of dates that a reader can try.

    Args:
        params: arrays by name, in dictionaries for ``right``, ``left`` and ``decoder``, as the page has them.
        reads: the characters that it knows, in the order of their vectors; the first one pads.
        writes: the characters that it can write.
        examples: texts to choose from; the first one is shown first.
        surprise: a text that it gets wrong, whose result is hidden until the reader has predicted it.
        shown: a text, its translation and the alignment (10, S), for readers without JavaScript.
    """
    unknown = {character for text in (*examples, surprise) for character in text} - {*reads[1:]}
    if unknown:
        raise ValueError(f"an example has {sorted(unknown)}, but the translator reads {''.join(reads[1:])!r}")
    shapes, numbers = packed(params)
    config = {
        "caption": CAPTION, "shapes": shapes, "numbers": numbers, "reads": "".join(reads), "writes": writes,
        "examples": list(examples), "surprise": surprise,
    }  # fmt: skip
    text, answer, alignment = shown
    characters = [character if character != " " else "␣" for character in text]
    still = alignment, list(answer), characters, f"Weights while “{text}” becomes {answer}"
    return ExplorerElement("attention-dates", config, weights_picture(*still) + weights_table(*still), CAPTION)


def packed(params: Mapping[str, Any]) -> tuple[dict[str, list[int]], str]:
    """Return the shape of each matrix, with a row for each output, and all numbers one after the other, in base64."""
    matrices = dict(_matrices(params))
    numbers = np.concatenate([matrix.ravel() for matrix in matrices.values()]).astype("<f4")
    shapes = {name: list(matrix.shape) for name, matrix in matrices.items()}
    return shapes, base64.b64encode(numbers.tobytes()).decode()


def _matrices(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from _matrices(value, f"{name}.")
        else:
            matrix = np.atleast_2d(np.asarray(value.detach() if hasattr(value, "detach") else value))  # torch's, or not
            yield f"{prefix}{name}", matrix.T if name in BY_INPUT else matrix
