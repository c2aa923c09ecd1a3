"""The drawing of the residual stream: one word on its way through a transformer block.

The element ``<attention-residual>`` is in ``_explorer/residual.js``, and the computation of the block is in
``_explorer/transformer_block.js``.
"""

import html
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from _tools.elements import ExplorerElement
from attnlib.plotting import Picture

CAPTION = "One word passes through a transformer block"
PROJECTIONS = [f"self_attn.{name}_proj" for name in ("q", "k", "v", "out")]
ZEROS = [f"{name}.bias" for name in (*PROJECTIONS, "linear1", "linear2", "norm1", "norm2")]
ONES = ["norm1.weight", "norm2.weight"]


def residual_stream(
    rows: Mapping[str, ArrayLike],
    params: Mapping[str, ArrayLike],
    *,
    follow: str,
    shown: Mapping[str, Sequence[float]],
    picture: Picture,
) -> ExplorerElement:
    """Return a drawing in which a reader can follow a word through a block, step by step.

    Args:
        rows: the row (E,) of each word.
        params: of a block with one head, under torch's names. The formulas of the drawing have no place for biases and
            gains.
        follow: the word that is followed at first.
        shown: its row after each step, by the name of the step, for readers without JavaScript.
        picture: of the block, for the same readers.

    Raises:
        ValueError: there is no such word, or a bias is not 0 or a gain not 1.
    """
    if follow not in rows:
        raise ValueError(f"follow is {follow!r}, but a word of the sentence is needed: {' '.join(rows)}")
    for name, needed in [*((name, 0) for name in ZEROS), *((name, 1) for name in ONES)]:
        if not np.all(np.asarray(params[name]) == needed):
            raise ValueError(f"{name} is {np.asarray(params[name]).tolist()}, but {needed} is needed everywhere")
    config = {
        "caption": CAPTION, "words": list(rows), "rows": [np.asarray(row, float).tolist() for row in rows.values()],
        "params": {name: np.asarray(numbers, float).tolist() for name, numbers in params.items()}, "follow": follow,
    }  # fmt: skip
    return ExplorerElement("attention-residual", config, picture._html() + _steps_table(follow, shown), CAPTION)


def _steps_table(word: str, shown: Mapping[str, Sequence[float]]) -> str:
    """Write the rows of a word as a table with a line for each step."""
    lines = "".join(
        f'<tr><th scope="row">{html.escape(step)}</th>' + "".join(f"<td>{x:.2f}</td>" for x in row) + "</tr>"
        for step, row in shown.items()
    )
    title = html.escape(f"“{word}” passes through the block on the left")
    return f'<table class="attn-table"><caption>{title}</caption><tbody>{lines}</tbody></table>'
