"""Formulas as MathML, which browsers show without a script: a feedback page loads nothing from elsewhere."""

import html
import re
import xml.etree.ElementTree as ET

from latex2mathml.converter import convert_to_element

# Matches code, and every tag, since a formula inside an attribute would bring its own quotes into it.
CODE_OR_TAG = re.compile(r"""(<(?:code|pre)\b.*?</(?:code|pre)>|<(?:"[^"]*"|'[^']*'|[^'">])*>)""", re.DOTALL)
TEX_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
MATHML_ATTRIBUTES = {"columnalign", "columnspacing", "display", "displaystyle", "fence", "mathvariant", "movablelimits"}
MATHML_ATTRIBUTES |= {"rowspacing", "scriptlevel", "separator", "stretchy", "width", "xmlns"}


def with_formulas(page: str) -> str:
    """Turn ``$…$`` and ``$$…$$`` in HTML, outside code, into MathML. What is not a formula stays unchanged."""
    parts = CODE_OR_TAG.split(page)
    parts[::2] = [TEX_FORMULA.sub(_formula, part) for part in parts[::2]]
    return "".join(parts)


def _formula(match: re.Match[str]) -> str:
    display, inline = match.groups()
    try:
        root = convert_to_element(html.unescape(display or inline), display="block" if display else "inline")
        for element in root.iter():
            # The converter leaves entities for later unescaping, which would let a student's text become markup.
            element.text = element.text and html.unescape(element.text)
            element.attrib = {name: value for name, value in element.attrib.items() if name in MATHML_ATTRIBUTES}
        return ET.tostring(root, encoding="unicode", short_empty_elements=False)
    except Exception:  # the converter raises many kinds of exceptions on broken LaTeX
        return match.group()
