"""A chapter on paper: its text, its figures, its answers, and nothing that would be clicked."""

import io
import re
from html import unescape

import pytest
from pages import text
from pypdf import PdfReader

CHAPTER = "book/self-attention.html"
PAPER = {"format": "A4", "tagged": True}
WIDTH = 718  # of A4, in a browser's pixels, less the margins


@pytest.fixture(scope="module")
def pdf(browser, site):
    with browser.new_context(color_scheme="dark") as context:
        page = context.new_page()
        page.goto(site + CHAPTER)
        page.wait_for_load_state("networkidle")
        page.evaluate("window.MathJax.startup.promise")
        page.evaluate("addEventListener('beforeprint', () => { window.ink = getComputedStyle(document.body).color })")
        printed = PdfReader(io.BytesIO(page.pdf(**PAPER)))
        printed.ink, printed.theme = page.evaluate("[window.ink, document.documentElement.dataset.theme]")
        printed.closed = page.locator("details:not([open])").count()
        yield printed


@pytest.fixture(scope="module")
def words(pdf):
    return " ".join(" ".join(page.extract_text() for page in pdf.pages).split())


def test_the_text_of_the_chapter_is_printed_once(words):
    for heading in re.findall(r"<h2>(.*?)<a class", text(CHAPTER)):
        assert words.count(unescape(re.sub("<[^>]+>", "", heading))) >= 1
    assert len(re.findall(r"Words as vectors", words)) == 1


def test_nothing_that_leads_elsewhere_is_printed(words):
    assert "Slips you will meet" not in words  # in the contents of the book
    assert "On this page" not in words
    assert "Search" not in words
    assert "Back to top" not in words
    assert "next\n" not in words


def figures(element):
    """The descriptions of the figures in the tree of a tagged PDF."""
    element = element.get_object()
    if isinstance(element, list):
        return [alt for child in element for alt in figures(child)]
    if not isinstance(element, dict):
        return []
    own = [str(element["/Alt"])] if element.get("/S") == "/Figure" and "/Alt" in element else []
    return own + (figures(element["/K"]) if "/K" in element else [])


def test_every_figure_is_printed(pdf):
    described = [unescape(alt) for alt in re.findall(r'class="picture" role="img" aria-label="([^"]*)"', text(CHAPTER))]
    assert len(described) > 5
    assert set(described) <= set(figures(pdf.trailer["/Root"]["/StructTreeRoot"]))


def test_no_figure_is_cut_at_the_edge_of_the_paper(opened):
    page, _ = opened(CHAPTER, width=WIDTH)
    page.emulate_media(media="print")
    too_wide = "[...document.querySelectorAll('.picture')].filter(one => one.scrollWidth > one.clientWidth).length"
    assert page.evaluate(too_wide) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH


def test_answers_are_open_on_paper_and_closed_again_on_the_screen(pdf, words):
    explained = re.search(
        r'<details class="sd-sphinx-override[^>]*>.*?<p class="sd-card-text">(.*?)</p>', text(CHAPTER), re.DOTALL
    )
    opening = " ".join(re.sub(r"<[^>]+>.*", "", explained[1], flags=re.DOTALL).split())
    assert len(opening) > 20
    assert opening in words
    assert pdf.closed > 10


def test_a_page_that_is_dark_on_the_screen_is_printed_with_dark_ink(pdf):
    assert sum(map(int, re.findall(r"\d+", pdf.ink))) < 200
    assert pdf.theme == "dark"
