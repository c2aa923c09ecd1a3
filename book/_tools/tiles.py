"""The drawing that counts the bytes which attention moves, in tiles or with the whole table.

The element ``<attention-tiles>`` is in ``_explorer/tiles.js``, and what it counts in ``_explorer/tile_traffic.js``.
"""

import html
from collections.abc import Mapping

from _tools.elements import ExplorerElement

CAPTION = "The bytes that attention moves"


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
        f'<tr><th scope="row">{html.escape(name)}</th><td>{bytes_ / 1e6:.2f} MB</td></tr>'
        for name, bytes_ in moved.items()
    )
    table = f'<table class="attn-table"><caption>{title}</caption><tbody>{rows}</tbody></table>'
    return ExplorerElement("attention-tiles", {"caption": title, "head": head}, table, CAPTION)
