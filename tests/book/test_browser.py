"""Every page in a real browser: no errors, no requests to other hosts, no sideways scrolling on a phone."""

import pytest
from pages import pages


@pytest.mark.parametrize("address", pages())
def test_a_page_has_no_errors_asks_no_other_host_and_fits_a_phone(opened, address):
    page, wrong = opened(address)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 740})
    page.evaluate("window.MathJax?.startup?.promise")  # until every formula is typeset
    assert not wrong
    assert page.locator("mjx-merror").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_take_the_ink_of_the_page(opened, scheme):
    page, _ = opened("book/self-attention.html", scheme=scheme)
    ink = page.evaluate("getComputedStyle(document.querySelector('.picture')).color")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = [sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) for colour in (ink, paper)]
    assert abs(brightness[0] - brightness[1]) > 450
    card = page.evaluate("getComputedStyle(document.querySelector('.picture').parentElement).backgroundColor")
    assert card == "rgba(0, 0, 0, 0)"


def test_formulas_are_typeset(opened):
    page, _ = opened("book/self-attention.html")
    page.wait_for_selector("mjx-container")
    assert page.locator("mjx-container").count() > 30


def test_a_tool_that_looks_for_errors_finds_a_planted_one(opened, site):
    page, wrong = opened("book/index.html")
    page.evaluate("setTimeout(() => { throw new Error('planted') })")
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.wait_for_timeout(200)
    assert any("planted" in one for one in wrong)
    assert any(one.startswith("foreign") for one in wrong)
