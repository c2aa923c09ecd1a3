"""Make what a student wrote harmless before it is stored: nothing in it may run in an instructor's browser.

Formgrader and JupyterLab show a notebook at the same address that accepts marks and runs code. So a notebook in
``autograded/`` holds only text, tables, pictures and formulas. HTML is cleaned by nh3. Markdown becomes HTML only
later, in whichever program shows it, so its source is changed by rules that do not depend on how it is parsed.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from copy import copy
from html import escape
from typing import Any

from nh3 import Cleaner, clean

from attnlib.checks.report import MIME_TYPE
from grading._untyped import NotebookNode, as_node
from grading.css_sanitizer import safe_style

# HTML -----------------------------------------------------------------------------------------------------------------

# The tags that Markdown may contain, but only without attributes.
PLAIN_TAGS = {"b", "center", "code", "del", "em", "i", "kbd", "s", "small", "strong", "sub", "sup", "u"}
PLAIN_TAGS |= {"blockquote", "br", "hr", "li", "ol", "p", "pre", "table", "tbody", "td", "th", "thead", "tr", "ul"}
ALLOWED_TAGS = (
    PLAIN_TAGS | {"a", "abbr", "acronym", "caption", "div", "img", "span"} | {f"h{level}" for level in range(1, 7)}
)
REMOVED_TAGS = {"script", "style", "svg", "template", "title"}  # removed with their content, which is not text to read
ALLOWED_ATTRIBUTES = {"align", "aria-label", "class", "colspan", "role", "rowspan", "scope", "style", "title"}
# A class of Formgrader's or Bootstrap's could put text in front of the page, or make a button of it.
# These are the classes of tables and of coloured code.
ALLOWED_CLASSES = re.compile(r"(?:(?:dataframe|highlight|language-\w+|[a-z]{1,2}\d?)(?:\s+|$))*")
LINK_PREFIXES = ("http://", "https://", "mailto:", "#")
OPENED = re.compile(r"<(?=/?([A-Za-z][\w-]*))")
# The time that cleaning takes grows with the square of the number of nested tags.
MAX_TAGS, MAX_TEXT_LENGTH = 3_000, 100_000
MAX_HTML_LENGTH = 300_000
IMAGE_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]{64,}")


def safe_html(html: str) -> str:
    """Return HTML from a notebook without scripts, forms, frames, redirects, external pictures and unknown styles."""
    text = html.encode(errors="replace").decode()  # a lone surrogate cannot be encoded
    rest = IMAGE_DATA_URL.sub("", text)
    if len(rest) > MAX_HTML_LENGTH or rest.count("<") > MAX_TAGS:
        return _as_text(text)
    cleaned = CLEANER.clean(text)
    # HTML repeats an open <b>, with all its attributes, in each paragraph that follows, so the text can grow.
    return cleaned if len(cleaned) <= len(text) + MAX_HTML_LENGTH else _as_text(text)


def _shows_something(html: str) -> bool:
    """Return whether cleaned HTML contains text or a picture. SVG drawings have been removed by then."""
    return bool(clean(html, tags={"img"}).strip())


def unknown_as_text(html: str) -> str:
    """Return HTML in which the tags that :func:`safe_html` removes are text: ``<pad>`` may be meant as a token."""
    return OPENED.sub(lambda match: "<" if match[1].lower() in ALLOWED_TAGS else "&lt;", html)


def _as_text(html: str) -> str:
    return f"<pre>{escape(html[:MAX_TEXT_LENGTH])}</pre>"


def _safe_value(tag: str, name: str, value: str) -> str | None:
    """Return the part of an attribute's value to keep. None, or an exception, removes the attribute."""
    if name == "style":
        return safe_style(value) or None
    if name == "class":
        is_safe = ALLOWED_CLASSES.fullmatch(value) is not None
    elif name == "href":
        is_safe = value.lower().startswith(LINK_PREFIXES)
    else:
        is_safe = name != "src" or value.startswith("data:image/")
    return value if is_safe else None


CLEANER = Cleaner(
    tags=ALLOWED_TAGS,
    clean_content_tags=REMOVED_TAGS,
    attributes={"*": ALLOWED_ATTRIBUTES, "a": {"href"}, "img": {"alt", "height", "src", "width"}},
    attribute_filter=_safe_value,
    url_schemes={"http", "https", "mailto", "data"},
)


# Markdown -------------------------------------------------------------------------------------------------------------

# What opens a tag, unless it is one of these, without attributes. A space after it makes it an ordinary character.
OPENS_TAG = re.compile(rf"<(?=[a-z/!?])(?!/?(?:{'|'.join(sorted(PLAIN_TAGS))})\s?/?>)", re.IGNORECASE)
# What ends the text of a link, or the name in a link's definition, unless a harmless address follows. An address
# without a scheme is harmless as long as nothing in it can become a scheme.
ENDS_LINK = re.compile(
    r"\](?=[(:])(?![(:]\s{0,8}+(?!\s)(?:https?://|mailto:|attachment:|#|data:image/(?:png|jpeg|gif|webp);base64,"
    r"|[^\s:&\\<)\]]{0,200}(?:[\s)]|\Z)))",
    re.IGNORECASE,
)
# Macros that give a formula a link, a style or an id, or load something, and macros that construct others.
UNSAFE_TEX = re.compile(
    r"\\(?=(?:href|url|style|class|cssId|data|unicode|require|includegraphics|bbox|mmlToken|texttip|action|csname"
    r"|html[A-Za-z]*)(?![A-Za-z]))"
)


def safe_markdown(source: str) -> str:
    """Return Markdown whose only HTML is plain tags, whose links lead only to the web, and whose formulas are inert.

    It looks the same as before, except that forbidden parts are shown as the text that was written.
    """
    source = OPENS_TAG.sub("< ", source)
    source = ENDS_LINK.sub(r"]\\", source)
    return UNSAFE_TEX.sub(r"\\backslash ", source)


# Notebooks ------------------------------------------------------------------------------------------------------------

MAX_NOTEBOOK_HTML = 600_000  # characters of HTML in a notebook that are cleaned; the rest is shown as text
PICTURE_KINDS = {"image/png": b"\x89PNG\r\n", "image/jpeg": b"\xff\xd8\xff"}
NOTEBOOK_METADATA = {"grading", "kernelspec", "language_info"}  # metadata that is kept, of a notebook and of a cell
CELL_METADATA = {"nbgrader", "tags"}
SVG_IMAGE = '<img alt="A figure" src="data:image/svg+xml;base64,{}">'  # an image neither runs nor loads anything


def sanitized(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook that shows what is harmless in this one. Its code is unchanged, because it is only text."""
    made, left = copy(notebook), [MAX_NOTEBOOK_HTML]
    made.metadata = _only(NOTEBOOK_METADATA, notebook.metadata)
    made.cells = [_cell(cell, left) for cell in notebook.cells]
    return made


def _cell(cell: NotebookNode, left: list[int]) -> NotebookNode:
    made = copy(cell)
    made.metadata = _only(CELL_METADATA, cell.metadata)
    if cell.cell_type == "code":
        made.outputs = [_output(output, left) for output in cell.outputs]
    else:
        made.source = safe_markdown(cell.source)
    if "attachments" in cell:
        files = {name: _pictures(kinds) for name, kinds in cell.attachments.items()}
        made.attachments = as_node({name: kinds for name, kinds in files.items() if kinds})
    return made


def _output(output: NotebookNode, left: list[int]) -> NotebookNode:
    if "data" not in output:
        return output  # a stream or an error is text, which every page escapes
    made = copy(output)
    made.data, made.metadata = as_node(_bundle(output.data, left)), as_node({})
    return made


def _bundle(data: NotebookNode, left: list[int]) -> dict[str, Any]:
    """Return the data in the formats that are kept. ``left`` is how many characters of HTML may still be cleaned."""
    kept: dict[str, Any] = {kind: data[kind] for kind in ("text/plain", MIME_TYPE) if kind in data} | _pictures(data)
    if "text/html" in data:
        html = str(data["text/html"])
        left[0] -= len(IMAGE_DATA_URL.sub("", html))
        cleaned = safe_html(html) if left[0] >= 0 else _as_text(html)
        if _shows_something(cleaned) or not kept.keys() & PICTURE_KINDS.keys():
            kept["text/html"] = cleaned
    elif "image/svg+xml" in data and not kept.keys() & PICTURE_KINDS.keys():
        kept["text/html"] = SVG_IMAGE.format(b64encode(str(data["image/svg+xml"]).encode()).decode())
    for kind in ("text/markdown", "text/latex"):  # both may hold formulas
        if kind in data:
            kept.setdefault("text/markdown", safe_markdown(str(data[kind])))
    return kept


def _pictures(data: NotebookNode) -> dict[str, str]:
    """Return the pictures among these data, re-encoded. Text that only claims to be a picture is left out."""
    found = {}
    for kind, begins in PICTURE_KINDS.items():
        try:
            picture = b64decode("".join(str(data.get(kind, "")).split()), validate=True)
        except (NotBase64, ValueError):
            continue
        if picture.startswith(begins):
            found[kind] = b64encode(picture).decode()
    return found


def _only(names: set[str], metadata: NotebookNode) -> NotebookNode:
    return as_node({name: value for name, value in metadata.items() if name in names})
