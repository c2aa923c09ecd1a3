"""A Sphinx extension: parts of a page that are folded away until the reader opens them.

Code cells cannot be inside a directive, so the beginning and the end of a fold are two empty directives, and everything
between them is folded: text, code with its results, figures, subsections::

    :::{fold} Go deeper: reservoirs
    :::

    Text and code cells.

    :::{fold-end}
    :::

Without a ``{fold-end}``, a fold ends with the section that it begins in. Directly below a heading, ``{fold}`` therefore
folds the whole section. One ``{fold}`` cannot begin inside another of the same section.

A box of class ``predict`` hides its answer: what follows the box is folded up to the next ``{fold-end}``. Without one,
or where it follows at once, nothing is hidden.

In HTML a fold is a ``<details>`` element, which needs no JavaScript. Other formats show everything.
"""

from collections.abc import Sequence

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
SHOW_ANSWER = "Show the answer"


class fold(nodes.General, nodes.Element):
    """A fold: its title, and then what is folded. As the directive writes it, it contains only the title."""


class fold_title(nodes.General, nodes.TextElement):
    """The line that opens a fold."""


class fold_end(nodes.Invisible, nodes.Element):
    """The place where a fold ends."""


class Fold(SphinxDirective):
    """``{fold} TITLE`` begins a fold."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return a fold that contains nothing yet."""
        text, messages = self.parse_inline(self.arguments[0], lineno=self.lineno)
        return [fold("", fold_title("", "", *text), *messages)]


class FoldEnd(SphinxDirective):
    """``{fold-end}`` ends a fold, or the answer to a prediction."""

    def run(self) -> list[nodes.Node]:
        """Return the mark."""
        return [fold_end()]


class MoveIntoFolds(SphinxPostTransform):
    """Moves what belongs to a fold into it, once the contents and all references of the page are known."""

    default_priority = 200  # when the outputs have been chosen and the hidden cells have their bars

    def run(self, **_: object) -> None:
        """Change each section that has a fold."""
        marks = list(self.document.findall(lambda node: isinstance(node, fold | fold_end)))
        for parent in {id(mark.parent): mark.parent for mark in marks}.values():
            children = parent.children
            parent.clear()
            if self.app.builder.format == "html":
                fold_siblings(parent, children)
            else:
                parent.extend(child for child in children if not isinstance(child, fold | fold_end))


def fold_siblings(parent: nodes.Element, children: Sequence[nodes.Node]) -> None:
    """Put the children of a section back into it, those that are folded into their folds."""
    into = [parent]  # the section, and the folds that are open at this place
    for position, child in enumerate(children):
        if isinstance(child, fold_end):
            if len(into) > 1:
                into.pop()
            elif not is_prediction(children[position - 1]):
                warn(child, "this {fold-end} has nothing to end: no {fold} and no prediction is open in this section")
            continue
        if isinstance(child, fold) and len(into) > 1:
            warn(child, "this {fold} begins inside another: put a {fold-end} before it")
        into[-1].append(child)
        if hides_answer(children, position):
            child = fold("", fold_title("", "", nodes.Text(SHOW_ANSWER)), classes=["answer"])
            into[-1].append(child)
        if isinstance(child, fold):
            into.append(child)
    for begun in children:
        if isinstance(begun, fold) and len(begun) == 1:
            warn(begun, "this {fold} contains nothing: its section ends, or a {fold-end} follows at once")


def hides_answer(siblings: Sequence[nodes.Node], position: int) -> bool:
    """Tell whether a prediction is here whose answer ends before anything else is folded."""
    following = siblings[position + 1 :]
    marks = (node for node in following if isinstance(node, fold | fold_end) or is_prediction(node))
    end = next(marks, None)
    return is_prediction(siblings[position]) and isinstance(end, fold_end) and end is not following[0]


def is_prediction(node: nodes.Node) -> bool:
    """Tell whether this is a box that asks the reader to predict something."""
    return isinstance(node, nodes.admonition) and "predict" in node["classes"]


def warn(mark: nodes.Node, message: str) -> None:
    """Warn with the file and the line of a mark, which makes the build of the book fail."""
    LOGGER.warning(message, location=mark, type="fold")


def visit_fold(writer: HTML5Translator, node: fold) -> None:
    """Begin the element that opens and closes."""
    writer.body.append(writer.starttag(node, "details", CLASS="fold"))


def depart_fold(writer: HTML5Translator, _node: fold) -> None:
    """End it."""
    writer.body.append("</details>\n")


def visit_title(writer: HTML5Translator, node: fold_title) -> None:
    """Begin the line that is always in view."""
    writer.body.append(writer.starttag(node, "summary", ""))


def depart_title(writer: HTML5Translator, _node: fold_title) -> None:
    """End it."""
    writer.body.append("</summary>\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_node(fold_title, html=(visit_title, depart_title))
    app.add_node(fold_end)
    app.add_directive("fold", Fold)
    app.add_directive("fold-end", FoldEnd)
    app.add_post_transform(MoveIntoFolds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
