"""Feedback pages: nbconvert's page with our own look, and formulas as MathML. ``feedback_scores.py`` adds scores."""

import re
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from grading._nbconvert import Highlight2HTML, InvalidNotebook, IPythonRenderer, MarkdownWithMath, TemplateExporter
from grading._untyped import NotebookNode
from grading.mathml import with_formulas
from grading.page_exporter import PageExporter
from grading.sanitize import safe_html, unknown_as_text

# Matches an image that has, or may have, no description, and any page written with nbconvert's lab template instead of
# our own.
UNFINISHED = re.compile(r"<img\b(?![^>]*\salt=)|jp-Notebook")


class FeedbackExporter(PageExporter):
    """Writes the page that a student gets back.

    It is a class of its own because Formgrader uses a different template.
    """

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[Any, Any]:
        """Return the page and the resources.

        After writing a page, nbconvert's own method parses it to add missing descriptions of images and, with the lab
        template, to make cells reachable by keyboard. Parsing takes twice as long as writing, so it is skipped if
        nothing is missing.
        """
        language = nb.metadata.get("language_info", {})
        lexer = language.get("pygments_lexer", language.get("name"))
        highlight = Highlight2HTML(pygments_lexer=lexer, parent=self)  # type: ignore[no-untyped-call]
        self.register_filter("highlight_code", highlight)  # type: ignore[no-untyped-call]
        prepared = self._init_resources(resources)  # type: ignore[no-untyped-call]
        page, prepared = TemplateExporter.from_notebook_node(self, nb, prepared, **options)
        if UNFINISHED.search(page):
            return super().from_notebook_node(nb, resources, **options)
        return page, prepared


class _Renderer(IPythonRenderer):
    def block_html(self, html: str) -> str:
        return str(super().block_html(unknown_as_text(html)))

    def inline_html(self, html: str) -> str:
        return str(super().inline_html(unknown_as_text(html)))

    def _embed_image_or_attachment(self, src: str) -> str:
        try:
            address: str = super()._embed_image_or_attachment(src)
        except InvalidNotebook:  # the picture is missing, so its description is shown
            return ""
        return address


@pass_context
def markdown(context: Context, source: str) -> str:
    """Return Markdown as HTML that runs no code and loads nothing from other hosts. This is a filter for templates."""
    attachments = context.get("cell", {}).get("attachments", {})
    renderer = _Renderer(
        escape=False, allow_harmful_protocols=False, exclude_anchor_links=True, attachments=attachments
    )
    return with_formulas(safe_html(MarkdownWithMath(renderer=renderer).render(source)))
