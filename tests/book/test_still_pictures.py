"""Without JavaScript, every live element shows a picture and a table of what was computed while the book was built."""

import re

import pytest
from browser_tab import clean_page
from pages import pages, text

pytestmark = pytest.mark.slow

ELEMENT = re.compile(r"<(attention-(?!mutants)[a-z]+)\b")  # <attention-mutants> is a table itself
KINDS = {f"attention-{name}" for name in ("explorer", "heads", "dates", "decoder", "minilm", "tiles", "residual")}
LIVE = [page for page in pages() if "book/" in page and ELEMENT.search(text(page))]
# What an element shows: whether its caption can be seen, the name and place of its picture, and the table cells whose
# words are cut off.
SHOWN = """all => all.map(one => {
    const isSeen = part => part.checkVisibility({ visibilityProperty: true }) && part.getClientRects().length > 0;
    const cells = [...one.querySelectorAll("th, td, caption")];
    const picture = [...one.querySelectorAll("[role=img], img")].find(isSeen);
    const { left, right, height } = picture.getBoundingClientRect();
    return {
        caption: isSeen(one.querySelector("table caption")),
        cut: cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent),
        name: picture.getAttribute("aria-label"), left, right, height,
    };
})"""
# The colours of a picture's words, the colour of the page's text, and the smallest scale of its letters.
LOOK = """one => {
    const words = [...one.querySelectorAll("text")];
    const colours = new Set(words.map(word => getComputedStyle(word).fill));
    const heights = words.map(word => word.getScreenCTM().d || word.getScreenCTM().b).map(Math.abs);
    return {colours: [...colours], page: getComputedStyle(one.parentElement).color, least: Math.min(...heights)};
}"""


def test_every_kind_of_element_is_somewhere():
    assert {kind for page in LIVE for kind in ELEMENT.findall(text(page))} == KINDS


@pytest.fixture(scope="module", params=LIVE)
def still(request, browser, site):
    """A page without JavaScript on a phone, and its name."""
    with clean_page(browser, java_script_enabled=False, viewport={"width": 390, "height": 844}) as tab:
        tab.goto(site + request.param)
        yield tab, request.param


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_and_a_table_are_shown(still, scheme):
    tab, page = still
    tab.emulate_media(color_scheme=scheme)
    elements = tab.locator(", ".join(KINDS)).evaluate_all(SHOWN)
    assert len(elements) == len(ELEMENT.findall(text(page)))
    for shown in elements:
        assert shown["caption"]
        assert shown["cut"] == []
        assert len(shown["name"]) > 40
        assert 0 <= shown["left"] < shown["right"] <= 390
        assert 60 < shown["height"] < 844


def test_the_words_of_a_picture_have_the_colour_of_the_page_and_can_be_read_on_a_phone(still):
    tab, _ = still
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    for picture in tab.locator("svg.attn-still").all():
        look = picture.evaluate(LOOK)
        assert look["colours"] == [look["page"]] != ["rgb(0, 0, 0)"]
        assert look["least"] > 0.6  # of 13 pixels
