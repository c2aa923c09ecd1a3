"""A Sphinx extension: on an assignment's page, link the sections that a hint says to reread.

In the notebook, the links lead to the book that ``make`` builds, or to the address where a class has published it.
Here, they become links to source files of the book, which Sphinx checks: one that leads to no heading fails the build.
"""

import json
import re

from sphinx.application import Sphinx

from _ext.in_browser import EXERCISES_PATH
from grading.reread_links import NAME, change_text, relink

ROOT = "../.."  # the root of the book, seen from the notebook of an assignment
PLACE = re.compile(rf"^\[(“[^”\n]+”)\]: ({re.escape(ROOT)}/book/[\w-]+)\.html(#\S+)\n?", re.MULTILINE)


def read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Change the links of an assignment's notebook before it is read."""
    if not page.startswith(EXERCISES_PATH):
        return
    notebook = json.loads(source[0])
    change_text(notebook, linked)
    source[0] = json.dumps(notebook)


def linked(source: str) -> str:
    """Return the text of a cell with inline links instead of link definitions.

    If two cells of a page named the same section, the page would define its link twice, and MyST warns about that.
    """
    source = relink(source, ROOT)
    places = {name: f"({file}.md{section})" for name, file, section in PLACE.findall(source)}
    return NAME.sub(lambda named: named[0] + places.get(" ".join(named[1].split()), ""), PLACE.sub("", source))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
