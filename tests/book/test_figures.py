"""Figures are drawn where the reader is; on a phone, they take the whole width, and a tap enlarges them."""

import pytest
from _tools.chromium import new_context
from axe import AXE, violations
from browser_tab import clean_page, tab
from cut_off import DRAW_PICTURES, OPEN_ALL, UNHINTED, cut_off
from pages import HTML
from playwright.sync_api import expect

PAGE = "book/many-heads.html"
PHONE = 360
SCROLLING = "pre.planted"
PLANT = """document.querySelector('.bd-article').insertAdjacentHTML('afterbegin',
    `<pre class=planted style='overflow: auto; white-space: pre'>${'x'.repeat(300)}</pre>`)"""
FADES = f"""() => {{ const style = getComputedStyle(document.querySelector('{SCROLLING}'));
    return [style.maskImage !== 'none',
        ...['--fade-left', '--fade-right'].map(side => parseFloat(style.getPropertyValue(side)) > 0)] }}"""
ROOMS = """[...document.querySelectorAll('.picture')].map(one => one.getBoundingClientRect())
    .map(({width, height}) => [width, height])"""


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_a_figure_is_drawn_when_the_reader_comes_near_it_and_nothing_moves(opened, width):
    page, wrong = opened(PAGE, width=width)
    page.evaluate(OPEN_ALL)
    page.add_style_tag(content=".picture { content-visibility: visible !important }")
    assert page.locator(".picture svg").count() < page.locator(".picture").count() / 2
    rooms = page.evaluate(ROOMS)
    page.locator(".picture").last.scroll_into_view_if_needed()
    expect(page.locator(".picture").last.locator("svg")).to_be_visible()
    page.evaluate(DRAW_PICTURES)
    assert page.locator(".picture > svg").count() == len(rooms)
    assert page.evaluate(ROOMS) == [pytest.approx(room, abs=0.5) for room in rooms]
    assert not wrong


def test_without_javascript_all_figures_are_there(browser, site):
    with clean_page(browser, java_script_enabled=False) as page:
        page.goto(site + PAGE)
        assert page.locator(".picture svg").count() == page.locator(".picture").count() > 5


@pytest.mark.parametrize("colours", ["none", "active"])
@pytest.mark.parametrize("javascript", [True, False])
def test_what_scrolls_fades_where_something_is_hidden(browser, site, colours, javascript):
    look = {"viewport": {"width": PHONE, "height": 800}, "forced_colors": colours}
    with clean_page(browser, **look, java_script_enabled=javascript) as page:
        page.goto(site + PAGE)
        page.evaluate(PLANT)
        for place, fades in ((0, [True, False, True]), (500, [True, True, True]), (9999, [True, True, False])):
            page.evaluate(f"document.querySelector('{SCROLLING}').scrollLeft = {place}")
            # Where JavaScript is off, wait_for_function looks only once, so this asks again.
            asked = (page.evaluate(FADES) for _ in range(1000))
            assert next((found for found in asked if found == fades), None), page.evaluate(FADES)


@pytest.fixture(scope="module")
def planted(browser, site):
    """A page on a phone, with a box that scrolls."""
    with tab(browser, site, PAGE, width=PHONE) as (page, *_):
        page.evaluate(PLANT)
        yield page


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (".bd-article pre { animation: none !important }", "PRE"),
        (".picture svg { min-width: 27rem }", "DIV"),
        (".bd-article pre { mask-image: none !important }", "PRE"),
        (".bd-article pre { color: inherit }", None),
    ],
)
def test_a_planted_box_without_a_hint_is_found(planted, fault, found):
    style = planted.add_style_tag(content=fault)
    assert {one.split()[0] for one in cut_off(planted, UNHINTED)} == ({found} if found else set())
    style.evaluate("one => one.remove()")


@pytest.fixture(scope="module")
def phone(browser, site):
    """A page at phone width and what went wrong on it, for tests that close whatever they enlarge."""
    with tab(browser, site, PAGE, width=PHONE) as (page, wrong, _):
        yield page, wrong


@pytest.mark.parametrize("close", ["Escape", "button", "tap"])
def test_a_tap_enlarges_a_figure_and_the_focus_returns(phone, close):
    page, wrong = phone
    picture, button = page.locator(".picture").first, page.locator(".enlarge").first
    picture.scroll_into_view_if_needed()
    before = picture.locator("svg").bounding_box()
    picture.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_have_accessible_name("Fig. 25, enlarged")
    expect(dialog.get_by_role("img")).to_have_accessible_name(picture.get_attribute("aria-label"))
    assert dialog.locator("svg").bounding_box()["width"] > 1.5 * before["width"]
    if close == "Escape":
        page.keyboard.press("Escape")
    else:
        (dialog.get_by_role("button") if close == "button" else dialog.locator(".picture")).click()
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    assert not wrong


def test_the_keyboard_enlarges_a_figure_and_scrolls_it(opened):
    page, _ = opened(PAGE, width=PHONE)
    button = page.locator(".enlarge").nth(2)
    expect(button).to_have_accessible_name("Enlarge Fig. 27")
    button.press("Enter")
    box = page.locator("dialog > div")
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('dialog > div').scrollLeft > 0")
    page.evaluate(AXE)
    assert violations(page, "dialog") == []
    drawn = page.locator("dialog svg").bounding_box()
    assert drawn["width"] > drawn["height"], "this figure is turned on the page, and upright here"


def test_a_wide_screen_shows_figures_at_their_size_and_enlarges_none(opened):
    page, _ = opened(PAGE)
    expect(page.locator(".enlarge").first).to_be_hidden()
    page.locator(".picture").first.click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_figure_works_from_a_folder(browser):
    with new_context(browser, viewport={"width": PHONE, "height": 800}) as context:
        page = context.new_page()
        page.goto((HTML / PAGE).as_uri())
        page.locator(".picture").first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
