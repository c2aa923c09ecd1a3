"""The first use of a term on a page leads to the glossary and shows the definition; the glossary leads back."""

import io
from pathlib import Path

import pytest
from _ext import glossary_links
from _tools.chromium import new_context
from _tools.reading_time import parse
from bs4 import BeautifulSoup
from pages import text as built
from served import served
from sphinx.application import Sphinx
from sphinx.util.console import strip_colors
from sphinx.util.docutils import docutils_namespace

pytestmark = pytest.mark.slow

STYLE = Path(glossary_links.__file__).parents[1] / "_static"
GLOSSARY = """\
# Glossary

:::{glossary}
causal mask
  The mask that lets a query see the past. It has $T^2$ entries.

mask
  A table of what each query may attend to.

byte pair encoding (BPE)
  Merging the pair that occurs *most* often.

logits
  $z$ is what they are called.

NaN
  Not a number.
:::
"""
PAGE = """\
# Causal masks

A mask of a face. Two **causal masks** and `BPE` code. Causal masks again, with BPE; not unBPE, causal mask-like or nan.

A **mask** and [NaN](#nan), then NaN.

| logits |
|---|
| BPE |

(nan)=
## Logits

- The logits of *masks*.
"""
CONFIG = {
    "extensions": ["myst_parser", "_ext.glossary_links"],
    "source_suffix": {".md": "markdown"},  # Sphinx's own dictionary keeps what earlier builds of a process added
    "myst_enable_extensions": ["colon_fence", "dollarmath"],
    "html_theme": "basic",
    "html_static_path": [str(STYLE)],
    "html_css_files": ["course.css"],
    "html_js_files": ["course.js"],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book of a glossary and two pages, of which one is built, written in the order of the alphabet."""
    folder = tmp_path_factory.mktemp("book")
    pages = {"index": "# Book\n\n:::{toctree}\nbook/masks\nbook/a-page\nbook/glossary\n:::\n", "book/masks": PAGE}
    pages |= {"book/glossary": GLOSSARY, "book/a-page": "# Page\n\nA causal mask.\n"}
    for name, text in pages.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).with_suffix(".md").write_text(text)
    warnings = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, docutils_namespace():
        patch.setattr(glossary_links, "SOURCE", folder / "book" / "glossary.md")
        for cached in (glossary_links.glossary, glossary_links.terms, glossary_links.expression):
            cached.cache_clear()
        Sphinx(folder, None, folder / "html", folder / "trees", "html", CONFIG, io.StringIO(), warnings).build()
    for cached in (glossary_links.glossary, glossary_links.terms, glossary_links.expression):
        cached.cache_clear()
    assert strip_colors(warnings.getvalue()) == ""
    return folder / "html"


def parsed(site, name):
    return BeautifulSoup((site / "book" / f"{name}.html").read_text(), "html.parser")


def test_the_first_use_of_each_term_is_linked_with_its_definition(site):
    links = parsed(site, "masks").select("a.glossary-term")
    assert [(link.text, link.get("data-definition"), link["href"].partition("#")[0]) for link in links] == [
        ("causal masks", "The mask that lets a query see the past.", "glossary.html"),
        ("BPE", "Merging the pair that occurs most often.", "glossary.html"),
        ("mask", "A table of what each query may attend to.", "glossary.html"),  # the first one in bold
        ("NaN", "Not a number.", "glossary.html"),
        ("logits", None, "glossary.html"),  # in words, nothing is said before the formula
    ]
    assert all(parsed(site, "glossary").find(id=link["href"].partition("#")[2]) for link in links)
    assert not any(link.get("title") for link in links)


def test_the_glossary_names_the_pages_that_use_a_term_in_the_order_of_the_book(site):
    said = {
        item.find_previous("dt").text.rstrip("¶"): item.text for item in parsed(site, "glossary").select(".used-in")
    }
    assert said == {
        "causal mask": "Used in: Causal masks, Page",
        "mask": "Used in: Causal masks",
        "byte pair encoding (BPE)": "Used in: Causal masks",
        "logits": "Used in: Causal masks",
        "NaN": "Used in: Causal masks",
    }


def test_every_ordinary_word_is_a_term_of_the_glossary():
    assert glossary_links.terms().keys() >= glossary_links.ORDINARY_WORDS
    assert "grouped-query attention (GQA)" in glossary_links.terms()
    assert not [name for name in glossary_links.terms() if name.startswith("kernel (")]  # of kernel regression, too


def test_every_term_has_a_definition_to_show():
    assert [name for name, term in glossary_links.glossary().items() if not term.definition] == []


def test_the_glossary_names_a_page_for_every_term():
    entries = parse(built("book/glossary.html")).select("dl.glossary > dt")
    unused = [entry.find(string=True) for entry in entries if not entry.find_next_sibling("dd").select(".used-in")]
    assert len(entries) > 50
    assert unused == []


@pytest.mark.browser
def test_the_definition_shows_for_pointer_and_focus_until_escape_and_fits_the_page(site, browser):
    shown = "getComputedStyle(document.activeElement, '::after').content"
    with served(site) as address, new_context(browser, viewport={"width": 320, "height": 600}) as context:
        page = context.new_page()
        page.goto(f"{address}book/masks.html")
        page.evaluate(
            "document.body.innerHTML = `<div class='bd-article'>${document.querySelector('.body').innerHTML}`"
        )
        link = page.locator("a.glossary-term").first
        for look in (link.hover, link.focus):
            look()
            assert "lets a query see" in link.evaluate("link => getComputedStyle(link, '::after').content")
            assert page.evaluate("document.documentElement.scrollWidth") <= 320
        page.keyboard.press("Escape")
        assert page.evaluate(shown) == "none"
        link.evaluate("link => link.blur()")
        page.mouse.move(0, 599)
        page.keyboard.press("Tab")
        link.focus()
        assert "lets a query see" in page.evaluate(shown)
