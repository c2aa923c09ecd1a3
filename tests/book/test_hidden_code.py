"""Code that a page hides is only text until the reader opens it; then it is like any other code."""

import pytest
from browser_tab import clean_page

pytestmark = pytest.mark.slow

PAGE = "book/context-vectors.html"
HIDDEN = "details.above-input"
OPEN = "all => all.forEach(one => { one.open = true })"
# The code that a browser without scripts shows, cell by cell.
SOURCES = "cells => cells.map(cell => cell.querySelector('pre').textContent)"


@pytest.fixture(scope="module")
def sources(browser, site):
    with clean_page(browser, java_script_enabled=False) as page:
        page.goto(site + PAGE)
        found = page.locator(HIDDEN).evaluate_all(SOURCES)
        assert len(found) > 2
        page.locator(f"{HIDDEN} > summary").first.click()
        assert page.locator(f"{HIDDEN} pre").first.is_visible()
        return found


def test_hidden_code_has_no_elements_until_the_reader_opens_it_and_is_copied_by_its_own_button(opened, sources):
    page, wrong = opened(PAGE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("details.fold").evaluate_all(OPEN)
    cells = page.locator(HIDDEN)
    for number, source in enumerate(sources):
        cell = cells.nth(number)
        assert cell.locator("pre, span").count() == 0
        cell.locator("summary").click()
        cell.locator("pre").wait_for()
        assert cell.locator("pre").text_content() == source
        cell.locator("summary").click()
        cell.locator("pre").wait_for(state="hidden")
        cell.locator("summary").click()
        assert cell.locator("pre").count() == 1
        cell.locator("pre").hover()
        cell.locator(".copybtn").click()
        assert page.evaluate("navigator.clipboard.readText()").strip() == source.strip()
    assert not wrong


def test_the_tab_key_reaches_code_that_is_wider_than_its_box(opened):
    page, _ = opened(PAGE, width=320)
    page.add_style_tag(content="pre { white-space: pre !important }")  # on narrow screens, the course wraps its code
    page.locator("details").evaluate_all(OPEN)
    page.locator(f"{HIDDEN} pre[tabindex='0']").first.wait_for()


def test_screen_readers_call_the_bar_what_it_reads(opened):
    page, _ = opened(PAGE)
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    names = {node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "DisclosureTriangle"}
    assert "Show code cell source" in names
    assert not {name for name in names if "toggle" in name.lower()}
