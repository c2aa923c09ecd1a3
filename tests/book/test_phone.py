"""What is cut off on a phone of 390 pixels is found, and what a page prints fits.

Whether anything is cut off is tested where each page is opened (``test_browser.py``).
"""

import pytest
from _tools.reading_time import parse
from browser_tab import tab
from cut_off import OPEN_ALL, WIDTH, cut_off
from open_element import come_near
from pages import lessons, parsed

PRINTED = 46  # characters that fit into a line of printed results
TOO_WIDE = """[...document.querySelectorAll('.cell_output pre')].filter(one => one.scrollWidth > one.clientWidth)
    .map(one => one.textContent)"""


@pytest.fixture(scope="module")
def page(browser, site):
    with tab(browser, site, "book/changelog.html", width=WIDTH) as (page, *_):
        yield page


@pytest.mark.parametrize(
    ("plant", "tag"),
    [
        ("<div style='overflow: hidden'><table><tr><td>{}</td></tr></table></div>", "TABLE"),
        ("<div style='overflow: clip'><pre style='overflow: visible; width: 500px'>{}</pre></div>", "PRE"),
        ("<pre style='overflow: visible; width: max-content'>{}</pre>", "PRE"),
        ("<details class=shut><pre style='overflow: visible; width: max-content'>{}</pre></details>", "PRE"),
        ("<div style='overflow: auto'><table><tr><td>{}</td></tr></table></div>", None),
        ("<pre style='white-space: pre-wrap; overflow-wrap: anywhere'>{}</pre>", None),
    ],
)
def test_a_planted_cut_is_found(page, plant, tag):
    planted = plant.format("x" * 100)
    page.evaluate(f'document.querySelector(".bd-article").insertAdjacentHTML("beforeend", `{planted}`)')
    assert [one.split()[0] for one in cut_off(page)] == ([tag] if tag else [])
    assert page.locator(".shut[open]").count() == 0
    page.evaluate("document.querySelector('.bd-article').lastElementChild.remove()")


@pytest.mark.parametrize("name", ["api", "api-layers", "api-models", "bibliography", "glossary", "notation"])
def test_a_page_of_definitions_fits_the_narrowest_screen(opened, name):
    page, _ = opened(f"book/{name}.html", width=320)  # what is 1,280 pixels wide, at 400 percent
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def wide_lines(page):
    """The lines printed by the cells of a page that are too long for a phone."""
    printed = [line for one in page.select(".cell_output div.highlight pre") for line in one.get_text().splitlines()]
    return [line for line in printed if len(line) > PRINTED]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*lessons(), "book/install", "book/from-torch"])
def test_what_a_cell_prints_fits_a_phone(name):
    assert wide_lines(parsed(f"{name}.html")) == [], "print fewer decimals or shorter names, or break the line"


def test_printed_lines_of_the_greatest_length_fit_and_longer_ones_are_found(opened):
    page, _ = opened("book/self-attention.html", width=WIDTH)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(TOO_WIDE) == []
    longest = "document.querySelector('.cell_output pre').textContent = 'm'.repeat({})"
    page.evaluate(longest.format(PRINTED))
    assert page.evaluate(TOO_WIDE) == []
    page.evaluate(longest.format(PRINTED + 5))
    assert page.evaluate(TOO_WIDE) == ["m" * (PRINTED + 5)]
    assert wide_lines(parse(page.content())) == ["m" * (PRINTED + 5)]


def test_a_number_that_is_never_below_0_has_the_keypad_of_digits(opened):
    page, _ = opened("book/self-attention.html", width=WIDTH)
    come_near(page, "attention-explorer")
    for name, mode in (("Bandwidth", "decimal"), ("Scale", "text")):
        assert page.get_by_label(name, exact=True).first.get_attribute("inputmode") == mode
