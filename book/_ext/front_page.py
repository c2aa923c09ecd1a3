"""A Sphinx extension: the road through the chapters on the front page, and what a reader has done of it.

``{road}`` contains a list with an item for each chapter: a link to it, and what one can do afterwards. Each item gets
a drawing. The scripts record in the reader's browser which chapters have been read, which questions have been
answered and which checks have passed in the browser version of the exercises, and show it on the front page.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from _ext.in_browser import EXERCISES_PATH
from _ext.road_drawings import DRAWINGS

CHAPTER_LINK = re.compile(r"^\d+\. \[\]\(([\w-]+)\.md\)", re.MULTILINE)
QUESTION = re.compile(r"^:class: quiz$", re.MULTILINE)
NOTEBOOK = re.compile(r"^```\{in-browser\} (\S+)$", re.MULTILINE)
CHECK = re.compile(r'^check(?:_tests)?\("(\w+)"(?!.*backend="torch")', re.MULTILINE)  # torch does not run in a browser
PROGRESS_SCRIPT = "progress.js"


class Road(SphinxDirective):
    """The directive that contains the list of chapters."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the list, each item with its drawing and the number of its chapter's questions."""
        box = nodes.container(classes=["road"])
        self.state.nested_parse(self.content, self.content_offset, box)
        here = Path(self.env.doc2path(self.env.docname)).parent
        names = CHAPTER_LINK.findall("\n".join(self.content))
        items = list(box.findall(nodes.list_item))
        if len(names) != len(items):
            raise self.error(
                f"{len(items)} items, but {len(names)} links to chapters: begin each with `1. [](page.md)`"
            )
        for name, item in zip(names, items, strict=True):
            text = (here / f"{name}.md").read_text("utf-8")
            data = f'data-chapter="{name}" data-questions="{len(QUESTION.findall(text))}"{self._checks(text)}'
            item.insert(0, nodes.raw("", self._drawing(name, data), format="html"))
        return [box]

    def _drawing(self, name: str, data: str) -> str:
        if name not in DRAWINGS:
            raise self.error(f"book/_ext/road_drawings.py has no drawing for {name}")
        return f'<svg class="road-drawing" viewBox="0 0 48 48" aria-hidden="true" {data}>{DRAWINGS[name]}</svg>'

    def _checks(self, chapter: str) -> str:
        """Return attributes that name the chapter's notebook and those of its checks that a browser can run."""
        notebook = NOTEBOOK.search(chapter)
        if not notebook:
            return ""
        file = Path(self.env.doc2path(f"{EXERCISES_PATH}{notebook[1]}"))
        self.env.note_dependency(str(file))
        cells = json.loads(file.read_text("utf-8"))["cells"]
        names = CHECK.findall("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
        return f' data-notebook="{notebook[1]}" data-checks="{" ".join(names)}"'


@functools.lru_cache
def chapters_of_road(front_page: Path) -> tuple[str, ...]:
    """Return the names of the chapters that the front page leads to."""
    return tuple(CHAPTER_LINK.findall(front_page.read_text("utf-8")))


def add_scripts(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Add scripts and styles to the front page, and to each chapter what keeps the reader's progress."""
    if app.builder.name != "html":
        return
    if '<div class="road' in context.get("body", ""):
        app.add_css_file("front.css")
        app.add_js_file(PROGRESS_SCRIPT)
        app.add_js_file("front.js")
    folder, _, name = page.rpartition("/")
    root = str(app.config.root_doc)
    if folder == root.rpartition("/")[0] and name in chapters_of_road(Path(app.env.doc2path(root))):
        app.add_js_file(PROGRESS_SCRIPT)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_directive("road", Road)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
