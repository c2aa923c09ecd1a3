"""Feedback pages: nbconvert's page with our own look, and formulas as MathML. ``feedback_scores.py`` adds scores."""

from jinja2 import pass_context
from jinja2.runtime import Context

from grading._nbconvert import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from grading.mathml import with_formulas
from grading.page_exporter import PageExporter
from grading.sanitize import safe_html, unknown_as_text


class FeedbackExporter(PageExporter):
    """Writes the page that a student gets back.

    It is a class of its own because Formgrader uses a different template.
    """


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
