"""A Sphinx extension: links from a page to its exercise in the browser, which ``book/_tools/lite.py`` builds.

``{in-browser} FOLDER/NOTEBOOK`` puts a link into a chapter. An assignment's own page gets one below its title, and its
notebook stays as students get it. Formats other than HTML have no such links.
"""

from typing import Any
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

EXERCISES_PATH = "exercises/"
NOTEBOOK_PAGE = "lite/notebooks/index.html"
ABOUT_LINK, INSTALL_LINK = "book/start#in-your-browser", "book/start#for-students"


class in_browser(nodes.General, nodes.Element):
    """A mark where the link will be, with the ``notebook`` that it opens."""


class InBrowser(SphinxDirective):
    """The directive that marks the place in a chapter."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the mark."""
        return [in_browser(notebook=self.arguments[0])]


def below_title(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the place on the page of an assignment."""
    page = app.env.docname
    title = doctree.next_node(nodes.title)
    if page.startswith(EXERCISES_PATH) and title is not None:
        mark = in_browser(notebook=page.removeprefix(EXERCISES_PATH))
        title.parent.insert(title.parent.index(title) + 1, mark)


class LinkToExercise(SphinxPostTransform):
    """Replaces the mark by the link and what a reader has to know about it."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replace the marks of a page."""
        for mark in list(self.document.findall(in_browser)):
            mark.replace_self([self.box(mark["notebook"])] if self.app.builder.name == "html" else [])

    def box(self, notebook: str) -> nodes.Node:
        """Return the link, and a paragraph about it."""
        here = self.app.builder.get_target_uri(self.env.docname)
        opens = f"{relative_uri(here, NOTEBOOK_PAGE)}?path={quote(notebook)}.ipynb"
        sentence = nodes.paragraph(
            "",
            "",
            nodes.Text("Python is loaded first, which takes 10 to 20 seconds: from cdn.jsdelivr.net, or from here if "),
            nodes.Text("this site carries it. Your work stays in this browser until you download it to hand it in "),
            nodes.Text("(File ▸ Download). Tasks that need PyTorch need a "),
            self.link(here, INSTALL_LINK, "local install"),
            nodes.Text("; here is "),
            self.link(here, ABOUT_LINK, "how it works"),
            nodes.Text("."),
        )
        title = nodes.reference("", "Do this exercise in your browser", refuri=opens, internal=True)
        return nodes.container("", nodes.paragraph("", "", title), sentence, classes=["in-browser"])

    def link(self, here: str, place: str, text: str) -> nodes.reference:
        """Return a link to a section of the book."""
        page, _, section = place.partition("#")
        address = f"{relative_uri(here, self.app.builder.get_target_uri(page))}#{section}"
        return nodes.reference("", text, refuri=address, internal=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_node(in_browser)
    app.add_directive("in-browser", InBrowser)
    app.add_post_transform(LinkToExercise)
    app.connect("doctree-read", below_title)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
