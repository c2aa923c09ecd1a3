"""On a phone of 390 pixels, whatever is too wide wraps or scrolls, and what a page prints fits."""

import pytest
from _tools.reading_time import parse
from browser_tab import tab
from pages import lessons, moved, pages, text

WIDTH = 390
PRINTED = 46  # characters that fit into a line of printed results
# Formulas, code, printed results and tables that reach beyond the screen, or beyond a box that cuts them off, although
# nothing around them can be scrolled.
CUT = """[...document.querySelectorAll('.bd-article :is(mjx-math, pre, table, .picture svg)')].filter(one => {
    if (!one.checkVisibility()) return false;
    const right = one.getBoundingClientRect().right;
    for (let box = one; box !== document.documentElement; box = box.parentElement) {
        const overflow = getComputedStyle(box).overflowX, edge = box.getBoundingClientRect().right;
        if (['auto', 'scroll'].includes(overflow)) return edge > innerWidth + 1;
        if (['hidden', 'clip'].includes(overflow) && right > edge + 1) return true;
    }
    return right > innerWidth + 1;
}).map(one => `${one.tagName} ${one.textContent.slice(0, 80)}`)"""
OPEN_ALL = "document.querySelectorAll('.bd-article details').forEach(one => { one.open = true })"
TYPESET = "window.typesetAll?.()"
TOO_WIDE = """[...document.querySelectorAll('.cell_output pre')].filter(one => one.scrollWidth > one.clientWidth)
    .map(one => one.textContent)"""


@pytest.mark.parametrize("name", [page for page in pages() if page not in moved()])
def test_nothing_is_cut_off(name, browser, site):
    with tab(browser, site, name, width=WIDTH) as (page, *_):
        page.evaluate(TYPESET)
        page.evaluate(OPEN_ALL)
        assert page.evaluate(CUT) == []


@pytest.mark.parametrize(
    ("plant", "tag"),
    [
        ("<div style='overflow: hidden'><table><tr><td>{}</td></tr></table></div>", "TABLE"),
        ("<div style='overflow: clip'><pre style='overflow: visible; width: 500px'>{}</pre></div>", "PRE"),
        ("<pre style='overflow: visible; width: max-content'>{}</pre>", "PRE"),
        ("<div style='overflow: auto'><table><tr><td>{}</td></tr></table></div>", None),
        ("<pre style='white-space: pre-wrap; overflow-wrap: anywhere'>{}</pre>", None),
    ],
)
def test_a_planted_cut_is_found(opened, plant, tag):
    page, _ = opened("book/changelog.html", width=WIDTH)
    planted = plant.format("x" * 100)
    page.evaluate(f'document.querySelector(".bd-article").insertAdjacentHTML("beforeend", `{planted}`)')
    assert [one.split()[0] for one in page.evaluate(CUT)] == ([tag] if tag else [])


def wide_lines(page):
    """The lines printed by the cells of a page that are too long for a phone."""
    printed = [line for one in page.select(".cell_output div.highlight pre") for line in one.get_text().splitlines()]
    return [line for line in printed if len(line) > PRINTED]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*lessons(), "book/install", "book/from-torch"])
def test_what_a_cell_prints_fits_a_phone(name):
    assert wide_lines(parse(text(f"{name}.html"))) == [], "print fewer decimals or shorter names, or break the line"


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
