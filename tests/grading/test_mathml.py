from html.parser import HTMLParser

import pytest

from grading.mathml import with_formulas
from grading.sanitize import safe_html


class Attributes(HTMLParser):
    """Lists a page's tags with their attributes, as a browser would find them."""

    @classmethod
    def of(cls, page: str) -> list:
        parser = cls()
        parser.tags = []
        parser.feed(page)
        return parser.tags

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))


def test_a_formula_becomes_mathml():
    page = with_formulas(r"<p>The weights are $\frac{1}{4}$.</p>")
    assert page.startswith("<p>The weights are <math")
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>4</mn></mrow></mfrac>" in page


def test_a_displayed_formula_is_displayed():
    assert 'display="block"' in with_formulas(r"$$\sum_j a_{ij} = 1$$")
    assert "∑" in with_formulas(r"$$\sum_j a_{ij} = 1$$")


@pytest.mark.parametrize("page", ["<code>$HOME and $PATH</code>", "<pre>a $b$ c</pre>", "it costs 5 $", r"$\frac{$"])
def test_what_is_no_formula_stays_as_it_is(page):
    assert with_formulas(page) == page


@pytest.mark.parametrize(
    "formula",
    [
        r"\text{<script>alert(1)</script>}",
        r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\text{<img src=x onerror=alert(1)>}",
    ],
)
def test_no_formula_smuggles_in_markup(formula):
    page = with_formulas(safe_html(f"<p>${formula}$</p>"))
    assert "<script" not in page
    assert "onerror" not in page
    assert "src=" not in page
    assert "href=" not in page


def test_a_formula_in_an_attribute_is_none():
    assert with_formulas(page := '<p title="costs $5 or $6">x</p>') == page


def test_no_formula_in_an_attribute_brings_attributes():
    payload = r"""<p title='a" $\text{&#39; style=position:fixed onmouseover=alert(1) y=}$'>"""
    (tag,) = [part for part in Attributes.of(with_formulas(safe_html(payload))) if part[0] == "p"]
    assert [name for name, _ in tag[1]] == ["title"]
