"""Links from a notebook to the sections of the book that its hints say to reread.

A hint has the heading of a section in brackets, and the last lines of its cell say where the section is::

    Reread [“Padding, causal, both”].

    [“Padding, causal, both”]: ../../_build/html/book/masks.html#padding-causal-both

That is the book that ``make`` builds, seen from a folder in ``work/``. A class that has published the book hands out
notebooks that lead there.
"""

import json
import re

# No part of a pattern may match any number of times at each place of a text: students write what is searched.
PLACE = re.compile(r"^(\[“[^”\n]{1,200}”\]: )\S*/(book/[\w-]+\.html#\S+)(\n?)", re.MULTILINE)
NAME = re.compile(r"\[(“[^”]{1,200}”)\](?!:)")


def relink(source: str, book: str) -> str:
    """Return the text of a cell whose links lead to the book at an address or in a folder; "" removes the links."""
    place = f"{book.rstrip('/')}/"
    return PLACE.sub(lambda found: f"{found[1]}{place}{found[2]}{found[3]}", source) if book else without_links(source)


def without_links(source: str) -> str:
    """Return the text of a cell that names the sections and says nothing of where they are."""
    named = PLACE.sub("", source)
    return source if named == source else NAME.sub(r"\1", named).rstrip("\n")


def relink_notebook(content: bytes, book: str) -> bytes:
    """Return a notebook in which :func:`relink` has changed every cell of text."""
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = relink("".join(cell["source"]), book).splitlines(keepends=True)
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()
