"""A page lays out what is far below the screen part by part, and nobody notices otherwise."""

import pytest
from _tools.chromium import new_context
from browser_tab import LAID_OUT, wait_until

pytestmark = pytest.mark.slow

PAGE = "book/transformer.html"
LOOK = {"viewport": {"width": 390, "height": 844}}
SECTIONS = ".bd-article > section > section"
SHOWN = f"""[...document.querySelectorAll('{SECTIONS}')].map(one =>
    one.firstElementChild.checkVisibility({{ contentVisibilityAuto: true }}))"""
BOXES = """[...document.querySelectorAll('.bd-article section section :is(pre, .table-wrapper)')]
    .filter(one => !one.closest("details:not([open])"))
    .map(one => one.firstElementChild.checkVisibility({ contentVisibilityAuto: true }))"""
PLACE = f"[...document.querySelectorAll('{SECTIONS}')].at(-2).getBoundingClientRect().top"
TOPS = "[...document.querySelectorAll('.bd-article :is(h1, h2, h3)')].map(one => one.getBoundingClientRect().top)"
# Without any idle time, nothing but what is near the screen is laid out. What waits for it is kept.
NEVER_IDLE = "window.waiting = []; requestIdleCallback = (act) => waiting.push(act)"
IDLE_AT_LAST = """new Promise((done) => {
    const next = () => {
        if (!waiting.length) return done();
        waiting.shift()();
        requestAnimationFrame(next);
    };
    requestAnimationFrame(() => requestAnimationFrame(next));
})"""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# The page as it is without any of this.
WHOLE = """addEventListener("DOMContentLoaded", () => document.documentElement.classList.remove("from-top"))"""


@pytest.fixture
def busy(browser, site):
    """The page in a browser that has something else to do all the time."""
    with new_context(browser, **LOOK) as context:
        page = context.new_page()
        page.add_init_script(NEVER_IDLE)
        page.goto(site + PAGE)
        yield page


@pytest.fixture
def two_pages(browser):
    """A page that lays itself out in parts, and one that does not."""
    with new_context(browser, **LOOK) as context:
        lazy, whole = context.new_page(), context.new_page()
        whole.add_init_script(WHOLE)
        yield lazy, whole


def test_at_first_only_what_is_near_the_screen_is_laid_out(busy):
    shown = busy.evaluate(SHOWN)
    assert shown[0]
    assert shown.count(False) > len(shown) / 2


def test_boxes_far_below_the_screen_in_a_long_section_are_laid_out_later(busy):
    busy.locator(SECTIONS).evaluate_all("sections => sections.forEach(one => one.classList.add('laid-out'))")
    busy.evaluate(FRAMES)
    assert all(busy.evaluate(SHOWN))
    shown = busy.evaluate(BOXES)
    assert shown.count(False) > len(shown) / 2
    busy.evaluate(IDLE_AT_LAST)
    assert all(busy.evaluate(BOXES))


def test_what_the_reader_scrolls_to_is_laid_out(busy):
    busy.locator(SECTIONS).last.scroll_into_view_if_needed()
    busy.wait_for_function(f"{SHOWN}.at(-1)")


def test_words_far_below_the_screen_are_found(busy):
    section = busy.locator(SECTIONS).nth(-2)
    words = section.locator("h2").evaluate("title => title.firstChild.textContent")
    assert busy.evaluate("words => find(words, false, true)", words)  # from the end: the contents have these words, too
    assert section.evaluate("one => one.contains(getSelection().anchorNode)")


def test_a_moment_later_everything_is_where_it_is_on_a_page_laid_out_at_once(two_pages, site):
    places = []
    for page in two_pages:
        page.bring_to_front()  # hidden tabs are hardly ever idle
        page.goto(site + PAGE)
        page.wait_for_load_state("networkidle")
        wait_until(page, LAID_OUT)
        assert all(page.evaluate(SHOWN))
        assert all(page.evaluate(BOXES))
        places.append(page.evaluate(TOPS))
    assert len(places[0]) > 20
    assert places[0] == pytest.approx(places[1], abs=1)


def test_what_is_read_stays_in_place_while_what_is_above_it_is_laid_out(busy):
    title = busy.locator(f"{SECTIONS} > h2").nth(-3)
    before = title.evaluate("title => { title.scrollIntoView(); return title.getBoundingClientRect().top }")
    high = busy.evaluate("document.documentElement.scrollHeight")
    busy.wait_for_load_state()
    busy.evaluate(IDLE_AT_LAST)
    assert abs(busy.evaluate("document.documentElement.scrollHeight") - high) > 1000
    assert title.bounding_box()["y"] == pytest.approx(before, abs=1)


def test_a_link_a_reload_and_the_way_back_lead_to_the_same_place_as_on_a_page_laid_out_at_once(two_pages, site):
    def visit(page):
        page.goto(f"{site}{PAGE}")
        name = page.locator(SECTIONS).nth(-2).get_attribute("id")
        page.evaluate("name => { location.hash = name }", name)
        page.wait_for_function(f"Math.abs({PLACE}) < innerHeight")
        yield
        page.goto("about:blank")
        page.goto(f"{site}{PAGE}#{name}")
        yield
        page.evaluate("scrollBy(0, -500)")
        page.wait_for_function("scrollY > 500")
        for move in (page.reload, lambda: (page.goto("about:blank"), page.go_back())):
            move()
            page.wait_for_load_state()
            yield

    lazy, whole = two_pages
    lazy.add_init_script(NEVER_IDLE)
    for _ in zip(visit(lazy), visit(whole), strict=True):
        whole.bring_to_front()  # a browser restores the place frame by frame, and a hidden tab has no frames
        whole.evaluate(FRAMES)
        place = whole.evaluate(PLACE)
        lazy.bring_to_front()
        lazy.wait_for_function(f"place => Math.abs({PLACE} - place) <= 1", arg=place)


GAPS = """[...document.querySelectorAll('.bd-article section > section:has(> h2:first-child, > h3:first-child)')]
    .map(one => one.firstElementChild.getBoundingClientRect().top
        - one.previousElementSibling.getBoundingClientRect().bottom)"""


def test_the_gap_above_a_section_is_the_same_everywhere(opened):
    page, _ = opened("book/masks.html")
    assert {round(gap) for gap in page.evaluate(GAPS)} == {44}


@pytest.mark.parametrize("change", ["print", "no JavaScript"])
def test_paper_and_a_browser_without_javascript_show_everything(browser, site, change):
    with new_context(browser, **LOOK, java_script_enabled=change == "print") as context:
        page = context.new_page()
        page.add_init_script(NEVER_IDLE)
        page.goto(site + PAGE)
        if change == "print":
            page.emulate_media(media="print")
        assert all(page.evaluate(SHOWN))
