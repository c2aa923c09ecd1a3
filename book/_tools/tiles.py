"""The drawing that counts the bytes which attention moves, in tiles or with the whole table.

The element ``<attention-tiles>`` is in ``_explorer/tiles.js``, and what it counts in ``_explorer/tile_traffic.js``.
"""

import html
from collections.abc import Mapping

from _tools.elements import SCORE, ExplorerElement, still

CAPTION = "The bytes that attention moves"
TILE = 128, 64  # queries and keys: the example of _explorer/tile_address.js
SIDE = 192  # pixels of the still picture's table
BAR = 22


def attention_tiles(*, words: int, width: int, capacity: int, moved: Mapping[str, float]) -> ExplorerElement:
    """Return a drawing in which a reader can choose the size of the tiles, and follow them one by one.

    Args:
        words: queries, and as many keys and values; a multiple of 256.
        width: of a query, a key and a value.
        capacity: bytes that the fast memory holds.
        moved: bytes by the name of a method, for readers without JavaScript.
    """
    if words % 256:
        raise ValueError(f"words is {words}, but a multiple of 256 is needed, since the largest tiles have 256 queries")
    head = {"words": words, "width": width, "capacity": capacity}
    title = f"{CAPTION}, for {words} words of width {width}"
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{_megabytes(bytes_)}</td></tr>'
        for name, bytes_ in moved.items()
    )
    table = (
        f'<table class="attn-table"><caption>{title}</caption><thead><tr><th scope="col">How it is computed</th>'
        f'<th scope="col">Bytes moved</th></tr></thead><tbody>{rows}</tbody></table>'
    )
    config = {"caption": title, "head": head}
    return ExplorerElement("attention-tiles", config, still_picture(words, moved) + table, CAPTION)


def still_picture(words: int, moved: Mapping[str, float]) -> str:
    """Draw the table of scores in tiles, one of them coloured, and a bar for the bytes that each method moves."""
    high, wide = (SIDE * size / words for size in TILE)
    lines = "".join(
        [f"M 24 {24 + high * n:g} h {SIDE} " for n in range(words // TILE[0] + 1)]
        + [f"M {24 + wide * n:g} 24 v {SIDE} " for n in range(words // TILE[1] + 1)]
    )
    drawn = [
        f'<path d="{lines}" stroke="currentColor" stroke-opacity="0.5"/>',
        f'<rect x="24" y="24" width="{wide:g}" height="{high:g}" fill="{SCORE}"/>',
        f'<text x="{24 + SIDE / 2:g}" y="16" text-anchor="middle">key →</text>',
        f'<text transform="translate(16 {24 + SIDE / 2:g}) rotate(-90)" text-anchor="middle">← query</text>',
    ]
    for n, (name, bytes_) in enumerate(moved.items()):
        y = SIDE + 40 + (BAR + 8) * n
        width = 276 * bytes_ / max(moved.values())
        drawn += [
            f'<rect x="24" y="{y}" width="{width:g}" height="{BAR}" fill="{SCORE}" fill-opacity="0.35"/>',
            f'<text x="30" y="{y + 15.5}">{html.escape(name)}: {_megabytes(bytes_)}</text>',
        ]
    said = "; ".join(f"{name}, {_megabytes(bytes_)}" for name, bytes_ in moved.items())
    alt = (
        f"Scores of {words} queries and {words} keys, in tiles of {TILE[0]} queries and {TILE[1]} keys; one tile is "
        f"coloured. Bars show how many bytes each method moves: {said}."
    )
    text = f'<g fill="currentColor" font-size="13">{"".join(drawn)}</g>'
    return still(text, 301, SIDE + 40 + (BAR + 8) * len(moved), alt)


def _megabytes(bytes_: float) -> str:
    return f"{bytes_ / 1e6:.2f} MB"
