"""Make a student's notebook harmless, and make a page of it, within bounds of time and memory.

Malicious Markdown, HTML or code can keep a converter or highlighter busy for minutes. Whatever takes too long is shown
as plain text, cut to what a person would read, with the reason.
"""

import re
from collections.abc import Iterator
from copy import copy
from secrets import token_urlsafe
from typing import Any

from traitlets import Bool
from traitlets.config import Config

from grading import bounded_worker
from grading._nbconvert import Preprocessor
from grading._untyped import NotebookNode, as_node, code_cell, new_output, text_cell
from grading.feedback import FeedbackExporter
from grading.graded_cell import is_students
from grading.page_exporter import PageExporter
from grading.page_settings import FEEDBACK_TEMPLATE, FILTERS, TEMPLATES
from grading.sanitize import PICTURE_KINDS, sanitized

RENDERING_SECONDS = 20  # processor time for one notebook; an honest one takes less than a second
MAX_PLAIN_TEXT = 20_000  # characters shown of a text that is shown plainly
LONG_BLANKS = re.compile(r"\s{40,}")  # shortened in such a text
CODE_FENCE = "~" * 12
# A class whose nbgrader_config.py names another template gets the right pages, too, but each of them compiles its own.
FEEDBACK = {
    "HTMLExporter": {"extra_template_basedirs": [str(TEMPLATES)], "filters": FILTERS},
    "FeedbackExporter": {"template_name": FEEDBACK_TEMPLATE},
}
UNBOUNDED = {"Sanitize": {"bounded": False}, "TrialExporter": {"template_name": "basic"}}


def harmless(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook that is safe to store and show: see :func:`grading.sanitize.sanitized`."""
    return _in_time(_sanitized, notebook)


def page_of(notebook: NotebookNode, resources: dict[str, Any], config: Config) -> str:
    """Return the feedback page of a notebook that has its scores.

    Raises:
        ExceededError: not even a plain page can be made.
        LostError: twice, something else on this machine kept it from being made.
    """
    settings = _settings(config)
    try:
        return str(bounded_worker.value(_page, notebook, resources, settings, seconds=RENDERING_SECONDS))
    except bounded_worker.ExceededError as reason:
        page = bounded_worker.value(
            _page, plainly(notebook, f"its page {reason}"), resources, settings, seconds=RENDERING_SECONDS
        )
        return str(page)


class Sanitize(Preprocessor):
    """Sanitizes a notebook before it is stored, and again before it is shown, as something else may have stored it."""

    enabled = Bool(True, help="Whether notebooks are sanitized").tag(config=True)
    bounded = Bool(True, help="Whether to find out in a bounded process if it can be shown in time").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return the sanitized notebook, and the nonce that scripts of the page need to run."""
        resources["nonce"] = token_urlsafe(16)
        made = _in_time(_rendered, nb, _settings(self.config)) if self.bounded else sanitized(nb)
        return made, resources


class TrialExporter(PageExporter):
    """Makes a trial page, to find out whether a notebook can be shown in time."""


def _settings(config: Config) -> dict[str, Any]:
    """Return the parts of a configuration that a child needs. They do not say where the gradebook is."""
    return {name: dict(section) for name, section in config.items() if name.endswith(("Exporter", "Filter"))}


def _in_time(work: bounded_worker.Work, notebook: NotebookNode, *more: Any) -> NotebookNode:
    """Return the result of the work on a notebook or, if that takes too long, on the same notebook in plain text."""
    try:
        return as_node(bounded_worker.value(work, notebook, *more, seconds=RENDERING_SECONDS))
    except bounded_worker.ExceededError as reason:
        return as_node(
            bounded_worker.value(work, plainly(notebook, f"showing it {reason}"), *more, seconds=RENDERING_SECONDS)
        )


def _sanitized(notebook: NotebookNode) -> Iterator[NotebookNode]:
    yield sanitized(notebook)


def _rendered(notebook: NotebookNode, settings: dict[str, Any]) -> Iterator[NotebookNode]:
    made = sanitized(notebook)
    exporter = TrialExporter(config=Config(settings | UNBOUNDED))  # type: ignore[no-untyped-call]
    exporter.from_notebook_node(made)
    yield made


def _page(notebook: NotebookNode, resources: dict[str, Any], settings: dict[str, Any]) -> Iterator[str]:
    exporter = FeedbackExporter(config=Config(settings | UNBOUNDED))  # type: ignore[no-untyped-call]
    page, _ = exporter.from_notebook_node(notebook, resources)
    yield str(page)


def warm_up() -> None:
    """Make a page with a little of everything, so that everything it imports is loaded before a process is forked."""
    shown = new_output("display_data", data={"text/html": "<b>bold</b>", "text/plain": "bold"})
    code = code_cell("print(1)", "code") | {"outputs": [shown], "execution_count": 1}
    cells = [code, text_cell("# A title\n\n`code` and $x$", "text")]
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    whole = as_node({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    list(_rendered(whole, {}))
    list(_page(whole, {"nbgrader": {"student": "", "notebook": "", "score": 0, "max_score": 0}}, FEEDBACK))


# Plain text -----------------------------------------------------------------------------------------------------------


def plainly(notebook: NotebookNode, reason: str) -> NotebookNode:
    """Return a notebook in which what a student wrote, and what cells showed, is plain text, and not too long."""
    made = copy(notebook)
    made.cells = [_plain_cell(cell, f"Shown as plain text, because {reason}.") for cell in notebook.cells]
    return made


def _plain_cell(cell: NotebookNode, why: str) -> NotebookNode:
    made = copy(cell)
    if cell.cell_type == "code":
        # Comment out the code: IPython's magics allow many languages, each with a lexer of its own.
        made.source = "\n# ".join([f"# {why}", *_cut(cell.source).splitlines()]) if is_students(cell) else cell.source
        made.outputs = [_plain_output(output) for output in cell.outputs]
    elif is_students(cell):
        made.source = f"*{why}*\n\n{CODE_FENCE}\n{_cut(cell.source).replace(CODE_FENCE, '')}\n{CODE_FENCE}\n"
        made.pop("attachments", None)
    return made


def _plain_output(output: NotebookNode) -> NotebookNode:
    """Return an output without HTML and Markdown. Pictures stay, because they are bytes in a known format."""
    if "data" not in output:
        kept = {name: output[name] for name in ("name", "ename", "evalue") if name in output}
        kept |= {"text": _cut(output.text)} if "text" in output else {}
        kept |= {"traceback": [_cut("\n".join(output.traceback))]} if "traceback" in output else {}
        return new_output(output.output_type, **kept)
    data = {kind: output.data[kind] for kind in PICTURE_KINDS if kind in output.data}
    data |= {"text/plain": _cut(str(output.data["text/plain"]))} if "text/plain" in output.data else {}
    count = {"execution_count": output.execution_count} if "execution_count" in output else {}
    return new_output(output.output_type, data=data, **count)


def _cut(text: str) -> str:
    short = LONG_BLANKS.sub(lambda blanks: blanks.group()[:40], text)
    return (
        short
        if len(short) <= MAX_PLAIN_TEXT
        else f"{short[:MAX_PLAIN_TEXT]}\n[cut here; the whole text has {len(text)} characters]"
    )
