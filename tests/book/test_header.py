"""The header of a page: its buttons show the focus and can always be clicked, and its dialogs have names."""

import pytest
from browser_tab import tab

pytestmark = pytest.mark.slow

PAGE = "book/masks.html"
# What can have the focus in the header and its open menu, and the search button in the sidebar.
CONTROLS = ".bd-header-article :is(button, a, [tabindex]), .bd-sidebar-primary .search-button-field"
RING = """one => {
    one.focus({focusVisible: true});
    const style = getComputedStyle(one), ring = style.outlineStyle === "solid" && parseFloat(style.outlineWidth);
    return {has: document.activeElement === one && one.matches(":focus-visible"), ring, colour: style.outlineColor};
}"""
ACCENT = """() => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = "var(--pst-color-accent)";
    return getComputedStyle(probe).color;
}"""
AT_ITS_CENTRE = """button => {
    const inside = (box, x, y) => box.left < x && x < box.right && box.top < y && y < box.bottom;
    const box = button.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
    const tooltip = document.querySelector(".tooltip-inner").getBoundingClientRect();
    return {covered: inside(tooltip, x, y), usable: button.contains(document.elementFromPoint(x, y))};
}"""
MENU = ".dropdown-download-buttons > button"


@pytest.fixture(scope="module")
def page(browser, site):
    with tab(browser, site, PAGE) as (page, *_):
        yield page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_each_button_and_each_item_of_the_menu_shows_the_focus(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.locator(f"html[data-theme={scheme}]").wait_for()
    page.locator(MENU).click()
    page.locator(".dropdown-menu.show").wait_for()
    shown = [one for one in page.locator(CONTROLS).all() if one.is_visible()]
    assert len(shown) >= 6
    without = []
    for one in shown:
        found = one.evaluate(RING)
        if not found["has"] or found["ring"] < 2 or found["colour"] != page.evaluate(ACCENT):
            without.append((one.get_attribute("class"), found))
    assert without == []
    page.locator(MENU).click()
    page.locator(".dropdown-menu.show").wait_for(state="hidden")


def test_a_button_can_be_used_while_a_tooltip_covers_it(opened):
    page, wrong = opened(PAGE, width=390)
    page.locator(".bd-header-article .secondary-toggle").focus()
    page.locator(".tooltip.show").wait_for()
    assert page.locator(MENU).evaluate(AT_ITS_CENTRE) == {"covered": True, "usable": True}
    assert not wrong


def dialogs(page):
    """The names of the dialogs that a screen reader finds on a page."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    return [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "dialog"]


@pytest.mark.parametrize(
    ("button", "name"),
    [(".primary-toggle", "Chapters"), (".secondary-toggle", "Contents"), (".search-button", "Search")],
)
def test_the_dialog_that_a_button_opens_on_a_phone_has_a_name(opened, button, name):
    page, wrong = opened(PAGE, width=390)
    assert dialogs(page) == []
    page.locator(f".bd-header-article {button}").click()
    page.locator("dialog[open]").wait_for()
    assert dialogs(page) == [name]
    assert not wrong
