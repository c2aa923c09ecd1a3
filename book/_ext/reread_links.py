"""A Sphinx extension: on an assignment's page, what a hint says to reread is a link to another page of this book.

In the notebook, the links lead to a folder beside it, or to the address of a class. Here, they become links to sources
of the book, which Sphinx checks: one that leads to no heading fails the build.
"""

import json
import re

from sphinx.application import Sphinx

from _ext.in_browser import EXERCISES_PATH
from grading.reread_links import NAME, relink

ROOT = "../.."  # the root of the book, seen from the notebook of an assignment
PLACE = re.compile(rf"^\[(“[^”\n]+”)\]: ({re.escape(ROOT)}/book/[\w-]+)\.html(#\S+)\n?", re.MULTILINE)


def read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Change the links of an assignment's notebook before it is read."""
    if not page.startswith(EXERCISES_PATH):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = linked("".join(cell["source"]))
    source[0] = json.dumps(notebook)


def linked(source: str) -> str:
    """Return the text of a cell in which each link says itself where it leads.

    On a page, two cells that name the same section would say it twice, which MyST warns about.
    """
    source = relink(source, ROOT)
    places = {name: f"({file}.md{section})" for name, file, section in PLACE.findall(source)}
    return NAME.sub(lambda named: named[0] + places.get(" ".join(named[1].split()), ""), PLACE.sub("", source))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
