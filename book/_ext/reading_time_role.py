"""A Sphinx extension: each page says how long it takes to read, as ``_tools/reading_time.py`` measures it.

``{reading-time}`minutes` `` becomes "28 minutes", and the build prints a line for each page. What is timed is the core
path, so the page has to say that questions and exercises come on top.
"""

import re
from typing import Any

from _tools.reading_time import Reading, measure, parse
from bs4.element import Tag
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

LOGGER = logging.getLogger(__name__)
UNIT = "minutes"
READING_TIME_SPAN = re.compile(r'(?<=<span class="reading-time">)[^<]*(?=</span>)')


class ReadingTime(SphinxRole):
    """The role that marks where the minutes will be."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the mark, which has as many words as what will replace it."""
        if self.text != UNIT:
            wrong = f"the reading time is in minutes: write {{reading-time}}`{UNIT}` instead of `{self.text}`"
            return [], [self.inliner.reporter.error(wrong, line=self.lineno)]
        return [nodes.inline("", f"… {UNIT}", classes=["reading-time"])], []


def fill_in(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], doctree: Any) -> None:
    """Replace the marks in the body of a page, which in singlehtml contains all pages."""
    if doctree is None:  # a page without a source, such as the index
        return
    body = parse(context["body"])
    if app.builder.name == "html":
        LOGGER.info("%s: %s", pagename, whole := measure(body))
        readings = [whole for _ in body.select(".reading-time")]
    else:
        readings = [measure(page_of(mark) or body) for mark in body.select(".reading-time")]
    minutes = map(in_words, readings)
    context["body"] = READING_TIME_SPAN.sub(lambda _: next(minutes), context["body"])


def page_of(mark: Tag) -> Tag | None:
    """Return the page that contains a mark, if the pages are all in one."""
    return mark.find_parent(lambda tag: tag.parent and "toctree-wrapper" in tag.parent.get("class", []))


def in_words(reading: Reading) -> str:
    """Return the minutes with their unit."""
    return f"{reading.minutes} {UNIT if reading.minutes > 1 else UNIT.removesuffix('s')}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_role("reading-time", ReadingTime())
    app.connect("html-page-context", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
