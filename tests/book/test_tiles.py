"""The drawing of tiles on the built page: what the reader can choose, what is said, and who can use it."""

import re

import pytest
from axe import AXE, ENLARGED, violations_in_every_look
from browser_tab import wait_until
from only_element import address_of
from open_element import HEAR, OpenElement, opener
from pages import HTML

pytestmark = pytest.mark.slow

CHAPTER = "book/tiles-and-the-gpu.html"
DRAWING = address_of(CHAPTER, "attention-tiles")
RESULT = "In tiles, attention moves 4.72 MB; with the whole table, 9.44 MB, which is 2.0 times as much."


class Tiles(OpenElement):
    """The drawing on an open page."""

    TAG = "attention-tiles"

    def __init__(self, page, wrong):
        super().__init__(page, wrong)
        self.element.scroll_into_view_if_needed()

    def choose(self, label, value):
        self.element.get_by_label(label, exact=True).select_option(value)

    def button(self, name):
        return self.element.get_by_role("button", name=name)

    def address(self, part):
        wait_until(self.page, "part => location.hash.includes(part)", part)


@pytest.fixture
def at(browser, site):
    """Open the drawing, or another address, on an isolated page with these Playwright options."""
    with opener(browser, site + DRAWING, Tiles) as open_element:
        yield open_element


def test_the_reader_finds_which_size_decides_about_the_bytes(at):
    tiles = at()
    tiles.said(RESULT)
    tiles.choose("Keys per tile", "256")
    tiles.said(f"{RESULT} But these tiles do not fit into the fast memory: choose smaller ones.")
    tiles.choose("Keys per tile", "64")
    tiles.choose("Queries per tile", "64")
    tiles.said("In tiles, attention moves 8.91 MB; with the whole table, 9.44 MB, which is 1.1 times as much.")
    tiles.address("rows=64")
    tiles.element.get_by_label("Causal mask").check()
    tiles.said("In tiles, attention moves 4.98 MB; with the whole table, 9.44 MB")
    assert not tiles.wrong


def test_it_is_led_by_keyboard_and_says_one_sentence_a_step(at):
    tiles = at()
    tiles.said(RESULT)
    tiles.element.get_by_label("Tile", exact=True).focus()
    tiles.page.keyboard.press("Home")
    tiles.said("Tile 1 of 128: queries 1 to 128 and keys 1 to 64. It reads Q, K and V (64 KB).")
    tiles.page.keyboard.press("ArrowRight")
    tiles.said("Tile 2 of 128: queries 1 to 128 and keys 65 to 128. It reads K and V (32 KB).")
    tiles.address("step=2")
    tiles.choose("Attention", "table")
    tiles.button("Step back").click()
    tiles.said(
        "Pass 3 of 3, the values, tile 127 of 128: queries 897 to 1024 and keys 897 to 960. It reads weights (16 KB)."
    )
    assert not tiles.wrong


def test_it_plays_from_the_beginning_and_speaks_once(at):
    tiles = at()
    tiles.choose("Queries per tile", "256")
    tiles.choose("Keys per tile", "256")
    tiles.said("2.62 MB")
    tiles.page.evaluate(HEAR)
    tiles.button("Play").click()
    tiles.element.locator(".attn-summary[aria-live=off]", has_text=re.compile("Tile [2-9] of 16")).wait_for()
    tiles.said("2.62 MB")
    assert len(tiles.page.evaluate("window.heard")) == 1
    assert tiles.button("Play").is_visible()


def test_pausing_reads_the_step_aloud_and_keeps_it_in_the_address(at):
    tiles = at()
    tiles.button("Play").click()
    tiles.element.locator(".attn-summary[aria-live=off]", has_text=re.compile("Tile [2-9] of")).wait_for()
    tiles.page.evaluate(HEAR)
    tiles.button("Pause").click()
    step = tiles.element.get_by_role("slider").input_value()
    wait_until(tiles.page, "window.heard.length > 0")  # although it may have been written before
    assert re.match(f"Tile {int(step) + 1} of", *tiles.page.evaluate("window.heard"))
    wait_until(tiles.page, f"location.hash.includes('step={int(step) + 1}')")


def test_a_link_shows_what_was_on_the_screen_whatever_else_it_says(at, site):
    tiles = at(f"{site}{CHAPTER}#tiles?method=table&rows=64&columns=128&step=130")
    tiles.said(
        "Pass 2 of 3, the softmax, tile 2 of 128: queries 1 to 64 and keys 129 to 256. "
        "It reads scores and writes weights (32 KB)."
    )
    tiles.follow("#tiles?rows=1e400&step=9999&__proto__=1&method=<b>")
    tiles.said(
        "Tile 128 of 128: queries 897 to 1024 and keys 961 to 1024. It reads K and V and writes the output (64 KB)."
    )
    assert tiles.element.locator("b").count() == 0
    assert not tiles.wrong


def test_axe_finds_no_violations_at_400_percent_zoom_in_dark_mode_or_in_forced_colours(at, site):
    tiles = at(site + CHAPTER, viewport=ENLARGED)
    tiles.page.evaluate(AXE)
    tiles.element.scroll_into_view_if_needed()  # content laid out above it may have pushed it out of view
    tiles.said(RESULT)
    assert tiles.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert violations_in_every_look(tiles.page, "attention-tiles") == []
    assert tiles.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert not tiles.wrong


def test_it_works_from_a_file_and_without_javascript_there_is_a_table(at):
    file = f"file://{HTML / CHAPTER}"
    at(file).said(RESULT)
    rows = at(file, java_script_enabled=False).element.locator("tr").all_inner_texts()
    assert rows[1:] == ["In tiles of 128 queries\t4.72 MB", "With the whole table\t9.44 MB"]
