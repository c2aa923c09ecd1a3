"""A Sphinx extension: formulas become MathML while the book is built, so a page loads nothing to show them.

Temml converts them (``_vendor/temml.mjs``, run by Deno through ``formulas.js``). A formula that Temml does not
understand fails the build. The TeX stays in the attribute ``alttext``, which the search and the clipboard read.

Screen readers read MathML, except where they announce the head of a column: there, a formula gets a label in words.

The browser draws MathML with a font that has a table for it: STIX Two Math, cut down to the characters of the book.
"""

import json
import os
import re
import subprocess
import unicodedata
from functools import cache
from html import escape, unescape
from pathlib import Path
from xml.etree import ElementTree as Tree

from _tools.font_subset import write_font
from deno import find_deno_bin
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
CONVERTER = Path(__file__).with_name("formulas.js")
FONT = Path(__file__).parents[1] / "_vendor" / "stix-two-math.woff"
FONT_FILE = "_static/formulas.woff"
ENVIRONMENTS = re.compile(r"\\begin\{(\w+\*?)\}.*\\end\{\1\}", re.DOTALL)
MATH_ELEMENT = re.compile(r"<math\b.*?</math>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
WORDS = {"msqrt": "square root of {}", "mfrac": "{} over {}", "msub": "{} sub {}", "msup": "{} to the power {}"}
# A browser draws a name of one letter with the italic letter, which has a code point of its own.
ITALIC_LETTERS = {0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)}
ROOT_SIGN = ord("√")  # is not written in an element <msqrt>


@cache
def converter(_process: int) -> subprocess.Popen[str]:
    """Start the converter for one Sphinx process, given its id; it converts one formula per line."""
    command = [find_deno_bin(), "run", "--quiet", "--no-config", "--no-remote", str(CONVERTER)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def stop_converter(_app: Sphinx, _error: Exception | None) -> None:
    """Stop this process's converter. Each worker's converter ended with its worker."""
    if converter.cache_info().currsize:
        converter(os.getpid()).communicate()
        converter.cache_clear()


@cache
def mathml(tex: str, *, display: bool) -> str:
    """Return a formula as MathML.

    Raises:
        ValueError: Temml does not understand the formula.
    """
    process = converter(os.getpid())
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"tex": aligned(tex), "displayMode": display}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise ValueError(answer["error"])
    return str(answer["mathml"]).replace("<math", f'<math alttext="{escape(" ".join(tex.split()))}"', 1)


def aligned(tex: str) -> str:
    """Return a formula of several lines in the environment that aligns them, unless they are in one already."""
    return rf"\begin{{aligned}}{tex}\end{{aligned}}" if r"\\" in ENVIRONMENTS.sub("", tex) else tex


def add_formula(writer: HTML5Translator, node: nodes.Element, *, display: bool) -> None:
    """Write a formula, or warn with its page, which fails the build of the book."""
    tex = node.astext().strip()
    try:
        formula = mathml(tex, display=display)
    except ValueError as error:
        LOGGER.warning("Temml does not understand the formula %s: %s", tex, error, location=node, type="formula")
    else:
        writer.body.append(labelled(formula) if is_in_head(node) else formula)


def is_in_head(node: nodes.Node) -> bool:
    """Tell whether a node is in the head of a table."""
    return node.parent is not None and (isinstance(node.parent, nodes.thead) or is_in_head(node.parent))


def labelled(formula: str) -> str:
    """Return MathML with a label in words."""
    return formula.replace("<math", f'<math aria-label="{escape(in_words(Tree.fromstring(formula)))}"', 1)


def in_words(element: Tree.Element) -> str:
    """Return MathML as one reads it out."""
    parts = [in_words(child) for child in element]
    if element.tag in WORDS:
        return WORDS[element.tag].format(*parts)
    text = (element.text or "").strip()
    return " ".join(filter(None, [text if text.isprintable() else "", *parts]))


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula that is part of a sentence."""
    add_formula(writer, node, display=False)
    raise nodes.SkipNode


def visit_display(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, with its number if it has one."""
    writer.body.append(writer.starttag(node, "div", "", CLASS="math"))
    add_formula(writer, node, display=True)
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def write_formula_font(app: Sphinx, error: Exception | None) -> None:
    """Write the part of the font that the formulas of all pages need."""
    if error is None and app.builder.format == "html":
        pages = (page.read_text(encoding="utf-8") for page in Path(app.outdir).rglob("*.html"))
        write_font(FONT, Path(app.outdir, FONT_FILE), characters("".join(pages)))


def characters(html: str) -> set[int]:
    """Return the code points that the formulas in HTML are drawn with."""
    used = {ord(sign) for formula in MATH_ELEMENT.findall(html) for sign in unescape(TAG.sub("", formula))}
    return {ROOT_SIGN, *used} | {
        italic for italic in ITALIC_LETTERS if ord(unicodedata.normalize("NFKC", chr(italic))) in used
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.connect("build-finished", stop_converter)
    app.connect("build-finished", write_formula_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
