"""Without JavaScript, every live element shows a picture and a table of what was computed while the book was built."""

import re

import pytest
from browser_tab import clean_page
from pages import pages, text

pytestmark = pytest.mark.slow

ELEMENT = re.compile(r"<(attention-(?!mutants)[a-z]+)\b")  # <attention-mutants> is a table itself
KINDS = {f"attention-{name}" for name in ("explorer", "heads", "dates", "decoder", "minilm", "tiles", "residual")}
LIVE = [page for page in pages() if "book/" in page and ELEMENT.search(text(page))]
# Cells of a table whose words are cut off.
CUT_WORDS = """one => [...one.querySelectorAll("th, td, caption")].filter(one => one.scrollWidth > one.clientWidth + 1)
    .map(one => one.textContent)"""
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
    elements = tab.locator(", ".join(KINDS)).all()
    assert len(elements) == len(ELEMENT.findall(text(page)))
    for element in elements:
        assert element.locator("table caption").first.is_visible()
        assert element.evaluate(CUT_WORDS) == []
        picture = element.get_by_role("img").first
        assert picture.is_visible()
        assert len(picture.get_attribute("aria-label")) > 40
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert 60 < box["height"] < 844


def test_the_words_of_a_picture_have_the_colour_of_the_page_and_can_be_read_on_a_phone(still):
    tab, _ = still
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    for picture in tab.locator("svg.attn-still").all():
        look = picture.evaluate(LOOK)
        assert look["colours"] == [look["page"]] != ["rgb(0, 0, 0)"]
        assert look["least"] > 0.6  # of 13 pixels
