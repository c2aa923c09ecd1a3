"""Links from a notebook to the sections of the book that its hints say to reread.

A hint has the heading of a section in brackets, and the last lines of its cell say where the section is::

    Reread [“Padding, causal, both”].

    [“Padding, causal, both”]: ../../_build/html/book/masks.html#padding-causal-both

The link leads to the book that ``make`` builds, seen from a folder in ``work/``. A class that has published the book
hands out notebooks whose links lead to its address.
"""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

# Students write the text that is searched, so a repetition that may begin at any character has a limit: without one,
# a long text could take quadratic time.
PLACE = re.compile(r"^(\[“[^”\n]{1,200}”\]: )\S*/(book/[\w-]+\.html#\S+)(\n?)", re.MULTILINE)
NAME = re.compile(r"\[(“[^”]{1,200}”)\](?!:)")


def relink(source: str, book: str) -> str:
    """Return the text of a cell with links that lead to ``book``, an address or a folder; "" removes the links."""
    place = quote(f"{book.rstrip('/')}/", safe="%/:?#[]@!$&'()*+,;=~")  # a space would end the link
    return PLACE.sub(lambda found: f"{found[1]}{place}{found[2]}{found[3]}", source) if book else without_links(source)


def without_links(source: str) -> str:
    """Return the text of a cell with the names of the sections, but without their links."""
    named = PLACE.sub("", source)
    return source if named == source else NAME.sub(r"\1", named).rstrip("\n")


def relink_notebook(content: bytes, book: str) -> bytes:
    """Return a notebook with :func:`relink` applied to every Markdown cell."""
    notebook = json.loads(content)
    change_text(notebook, lambda source: relink(source, book).splitlines(keepends=True))
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def change_text(notebook: dict[str, Any], change: Callable[[str], str | list[str]]) -> None:
    """Change the text of each Markdown cell of a notebook in place."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = change("".join(cell["source"]))
