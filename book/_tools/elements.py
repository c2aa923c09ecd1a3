"""What the pages' interactive elements share: a configuration and, without JavaScript, a picture and a table."""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from attnlib.plotting import describe

NOTE = "Computed while the book was built. Where JavaScript runs, there is more here to choose and to change."
SCORE = "#3b82c4"  # the colour of weights in the drawings, as in _explorer/colours.js
LETTER = 8  # the width of a letter in pixels, at a font size of 13 pixels
LEAST_SHOWN = 0.005  # a smaller weight could not be told from 0


def weights_picture(weights: NDArray[Any], queries: Sequence[str], keys: Sequence[str], title: str) -> str:
    """Draw weights (T, S) as a grid of squares: the larger a weight, the deeper the colour of its square."""
    cell = 22 if len(keys) <= 12 else 16
    is_turned = max(map(len, keys)) > 1
    left = LETTER * max(map(len, queries)) + 6
    top = LETTER * max(map(len, keys)) + 8 if is_turned else 18
    width, height = cell * len(keys), cell * len(queries)
    squares = "".join(
        f'<rect x="{left + cell * j}" y="{top + cell * i}" width="{cell}" height="{cell}" fill-opacity="{w:.2f}"/>'
        for i, row in enumerate(weights)
        for j, w in enumerate(row)
        if w >= LEAST_SHOWN
    )
    names = [
        f'<text x="{left - 5}" y="{top + cell * (i + 0.5) + 4.5:g}" text-anchor="end">{html.escape(query)}</text>'
        for i, query in enumerate(queries)
    ]
    for j, key in enumerate(keys):
        x = left + cell * (j + 0.5)
        place = (
            f'transform="translate({x + 4.5:g} {top - 5}) rotate(-90)"'
            if is_turned
            else (f'x="{x:g}" y="{top - 5}" text-anchor="middle"')
        )
        names.append(f"<text {place}>{html.escape(key)}</text>")
    frame = f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="currentColor"/>'
    drawn = f'<g fill="{SCORE}">{squares}</g>{frame}<g fill="currentColor" font-size="13">{"".join(names)}</g>'
    return still(drawn, left + width + 1, top + height + 1, f"{title}. {describe(weights, queries, keys)}")


def still(drawn: str, width: float, height: float, alt: str) -> str:
    """Return a still picture in the colours of the page, with a description for screen readers."""
    return (
        f'<svg class="attn-still" role="img" aria-label="{html.escape(alt)}" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}">{drawn}</svg>'
    )


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


class ExplorerElement:
    """An element of a page: its configuration, and what it shows without JavaScript."""

    def __init__(self, tag: str, config: Mapping[str, Any], fallback: str, text: str) -> None:
        self.tag, self.config, self.fallback, self.text = tag, config, fallback, text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self._html(), "text/plain": self.text}

    def _html(self) -> str:
        # A "<" in a word could end the script, so each is escaped.
        data = json.dumps(self.config, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return f'<{self.tag}><script type="application/json">{data}</script>{self.fallback}<p>{NOTE}</p></{self.tag}>'
