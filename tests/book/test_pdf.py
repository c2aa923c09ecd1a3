"""A chapter on paper: its text, its figures, its answers, and nothing that would be clicked."""

import io
import re
import unicodedata
from html import unescape

import pytest
from _tools.chromium import new_context
from pages import text
from pypdf import PdfReader

CHAPTER = "book/self-attention.html"
OPEN = "[...document.querySelectorAll('details')].map(one => one.open)"
PAPER = {"format": "A4", "tagged": True}
WIDTH = 718  # of A4, in a browser's pixels, less the margins


@pytest.fixture(scope="module")
def pdf(browser, site):
    with new_context(browser, color_scheme="dark") as context:
        page = context.new_page()
        page.goto(site + CHAPTER)
        page.wait_for_load_state("networkidle")
        before = page.evaluate(OPEN)
        page.evaluate("addEventListener('beforeprint', () => { window.ink = getComputedStyle(document.body).color })")
        printed = PdfReader(io.BytesIO(page.pdf(**PAPER)))
        printed.ink, printed.theme = page.evaluate("[window.ink, document.documentElement.dataset.theme]")
        printed.open = [before, page.evaluate(OPEN)]
        yield printed


@pytest.fixture(scope="module")
def words(pdf):
    """The text on paper, without ligatures."""
    text = " ".join(page.extract_text() for page in pdf.pages)
    return " ".join(unicodedata.normalize("NFKC", text).split())


def test_the_text_of_the_chapter_is_printed(words):
    headings = re.findall(r"<h2>(.*?)<a class", text(CHAPTER))
    assert len(headings) > 5
    for heading in headings:
        assert words.count(unescape(re.sub("<[^>]+>", "", heading))) >= 1
    assert len(re.findall(r"Words as vectors", words)) == 1
    assert not re.search(r"\\[(\[]|\\(frac|sum|sqrt)\b", words)  # a formula as it was typed


def test_nothing_that_leads_elsewhere_is_printed(words):
    assert "Slips you will meet" not in words  # in the contents of the book
    assert "On this page" not in words
    assert "Search" not in words
    assert "Back to top" not in words


def test_every_figure_is_printed_and_none_is_cut(opened, words):
    figures = text(CHAPTER).count('<div class="picture"')
    numbers = re.findall(r'caption-number">Fig\. (\d+)', text(CHAPTER))
    assert re.findall(r"Fig\. (\d+) [A-Z]", words) == numbers
    page, _ = opened(CHAPTER, width=WIDTH)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # what is folded opens
    boxes = [picture.bounding_box() for picture in page.locator(".picture svg").all()]
    assert len(boxes) == figures
    for box in boxes:
        assert box["width"] > 150
        assert box["height"] > 100
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= WIDTH
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH


def bare(prose: str) -> str:
    """Return text without its spaces and ligatures, which a PDF need not keep."""
    return "".join(unicodedata.normalize("NFKC", prose).split())


def test_answers_are_open_on_paper_and_closed_again_on_the_screen(pdf, words):
    openings = re.findall(r'class="sd-card-text"><strong>No\.</strong>\s*([^<]{20,})<', text(CHAPTER))
    assert openings
    assert [opening for opening in openings if bare(unescape(opening)) not in bare(words)] == []
    before, after = pdf.open
    assert len(before) > len(openings)
    assert not all(before)
    assert after == before


def test_a_page_that_is_dark_on_the_screen_is_printed_with_dark_ink(pdf):
    assert sum(map(int, re.findall(r"\d+", pdf.ink))) < 200
    assert pdf.theme == "dark"
