"""Formulas are MathML when a page arrives, in a font that has their signs."""

import io
import re
from hashlib import sha256

import pytest
from _ext.formulas import FONT, aligned, characters
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from pages import HTML, ROOT, pages, text
from sphinx.application import Sphinx
from sphinx.util.console import strip_colors
from sphinx.util.docutils import docutils_namespace

# On npm: dist/temml.mjs of temml 0.13.5, and the WOFF file of @fontsource/stix-two-math 5.3.0.
TEMML = "49753197751c1ff7fa2c76c3b8503b6cee03774c7c92ccd71c3c4b7fa5b31fe1"
STIX = "794b8382140b9a061229bcdb5f3786c00e0bad91376d060fa1565184c90bf7c4"
PAGE = r"""# Roots of $x^2 < 2$

By {eq}`pair`, or by {math}`\alpha`.

| $\sqrt{d_k} = \frac12$ | $\sin x^2$ |
|---|---|
| $y$ | $z$ |

$$
a &= 1 \\
b &= \begin{pmatrix} 2 \\ 3 \end{pmatrix}
$$ (pair)

$$ {} $$
"""


def built(folder, formula):
    """Build a page; return it, and the warnings."""
    (folder / "index.md").write_text(PAGE.replace("{} $$", f"{formula} $$"))
    config = {
        "extensions": ["myst_parser", "_ext.formulas"],
        "myst_enable_extensions": ["dollarmath"],
        "html_math_renderer": "mathml",
        "source_suffix": {".md": "markdown"},  # Sphinx's own dictionary keeps what earlier builds of a process added
    }
    warnings = io.StringIO()
    with docutils_namespace():
        out = folder / "html"
        Sphinx(folder, None, out, folder / "trees", "html", config, io.StringIO(), warnings, freshenv=True).build()
    return BeautifulSoup((out / "index.html").read_text(), "html.parser"), strip_colors(warnings.getvalue())


@pytest.mark.slow
def test_a_page_has_mathml_with_its_tex_numbers_and_a_font(tmp_path):
    page, warnings = built(tmp_path, r"\frac{1}{2}")
    assert warnings == ""
    square, pair, half = page.select("h1 math")[0], *page.select("div.math > math")
    assert [one.name for one in square.find_all(True)] == ["mrow", "msup", "mi", "mn", "mo", "mn"]
    assert (square.get_text(), square["alttext"]) == ("x2<2", "x^2 < 2")
    assert [len(rows.find_all("mtr", recursive=False)) for rows in pair.find_all("mtable")] == [2, 2]
    assert (half.get_text(), half.get("display"), square.get("display")) == ("12", "block", None)
    labels = [one.get("aria-label") for one in page.select("math")]
    assert list(filter(None, labels)) == ["square root of d sub k = 1 over 2", "sin x to the power 2"]
    link = page.find("a", string="(1)")
    assert page.select_one(link["href"]).select_one(".eqno").get_text().startswith("(1)")
    with TTFont(tmp_path / "html" / "_static" / "formulas.woff") as font:
        drawn = font.getBestCmap()
    assert {ord(sign) for sign in "𝑥𝑎𝑏𝛼<=123()"} <= drawn.keys()
    assert ord("w") not in drawn


@pytest.mark.slow
def test_a_formula_that_is_not_understood_is_reported_with_its_place(tmp_path):
    _, warnings = built(tmp_path, r"\sqrtt{7}")
    assert re.search(
        r"index\.md:14: WARNING: Temml does not understand the formula \\sqrtt\{7\}: .*: \\sqrtt at", warnings
    )


@pytest.mark.parametrize(
    ("tex", "wrapped"),
    [
        (r"a \\ b", True),
        (r"a = b", False),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", False),
        (r"\begin{aligned} A &= \begin{cases} 1 \\ 2 \end{cases} \\ B &= 3 \end{aligned}", False),
        (r"A = \begin{pmatrix} 1 \\ 2 \end{pmatrix} \\ B = 1", True),
    ],
)
def test_rows_are_aligned_once(tex, wrapped):
    assert aligned(tex) == (rf"\begin{{aligned}}{tex}\end{{aligned}}" if wrapped else tex)


def test_a_font_needs_the_italic_letters_of_names_and_the_root_sign():
    found = characters("<p>z</p><math alttext='q'><mi>h</mi><mi>B</mi><mo>&lt;</mo><mn>1</mn></math>")
    assert found == {ord(sign) for sign in "hB<1ℎ𝐵√"}


@pytest.mark.slow
def test_the_font_of_the_book_has_every_sign_and_its_table_for_formulas():
    with TTFont(HTML / "_static" / "formulas.woff") as font, TTFont(FONT) as whole:
        drawn, could = font.getBestCmap(), whole.getBestCmap()
        heights = [one["MATH"].table.MathConstants.RadicalVerticalGap.Value for one in (font, whole)]
        licence = font["name"].getDebugName(14)
    signs = {sign for page in pages() for one in re.findall(r"<math.*?</math>", text(page), re.DOTALL) for sign in one}
    assert {sign for sign in signs if ord(sign) > 127 and ord(sign) in could} <= {chr(code) for code in drawn}
    assert {"𝑥", "√", "∑", "⊙"} <= {chr(code) for code in drawn}
    assert len(set(heights)) == 1
    assert len(drawn) < len(could) / 10
    assert licence == "https://scripts.sil.org/OFL"


def test_what_is_not_ours_is_what_npm_publishes():
    vendored = (ROOT / "book" / "_vendor" / "temml.mjs").read_bytes()
    head, _, rest = vendored.partition(b" */\n")
    assert b"Permission is hereby granted" in head
    assert sha256(rest).hexdigest() == TEMML
    assert sha256(FONT.read_bytes()).hexdigest() == STIX
