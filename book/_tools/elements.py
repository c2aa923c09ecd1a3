"""What the interactive elements of the pages share: a configuration, and a table for readers without JavaScript."""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

NOTE = "Computed while the book was built. Where JavaScript runs, there is more here to choose and to change."


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
