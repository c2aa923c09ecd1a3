"""Formulas as MathML, which browsers show by themselves: a feedback page loads no script and asks no other host."""

import html
import re
import xml.etree.ElementTree as ET

from latex2mathml.converter import convert_to_element

# Code, and every tag: a formula inside an attribute would bring quotes of its own into it.
CODE_OR_TAG = re.compile(r"""(<(?:code|pre)\b.*?</(?:code|pre)>|<(?:"[^"]*"|'[^']*'|[^'">])*>)""", re.DOTALL)
TEX_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
MATHML_ATTRIBUTES = {"columnalign", "columnspacing", "display", "displaystyle", "fence", "mathvariant", "movablelimits"}
MATHML_ATTRIBUTES |= {"rowspacing", "scriptlevel", "separator", "stretchy", "width", "xmlns"}


def with_formulas(page: str) -> str:
    """Turn ``$…$`` and ``$$…$$`` in HTML, outside of code, into MathML. What is no formula stays as it is."""
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
    except Exception:  # the converter gives up on broken LaTeX in many ways
        return match.group()
