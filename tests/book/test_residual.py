"""The drawing of the residual stream on the built page: what can be chosen, what is said, and who can use it."""

import pytest
from axe import AXE, ENLARGED, violations_in_every_look
from browser_tab import wait_until
from only_element import address_of
from open_element import HEAR, OpenElement, opener
from pages import HTML

pytestmark = pytest.mark.slow

CHAPTER = "book/transformer.html"
DRAWING = address_of(CHAPTER, "attention-residual")
RESULT = "“station” leaves the block as (4, 2, 4, 4): its input, plus an update of length 2 from attention and"


class Residual(OpenElement):
    """The drawing on an open page."""

    TAG = "attention-residual"

    def __init__(self, page, wrong):
        super().__init__(page, wrong)
        self.element.scroll_into_view_if_needed()

    def address(self, part):
        wait_until(self.page, "part => location.hash.includes(part)", part)


@pytest.fixture
def at(browser, site):
    """Open the drawing, or another address, on an isolated page with these Playwright options."""
    with opener(browser, site + DRAWING, Residual) as open_element:
        yield open_element


def test_the_reader_follows_another_word_and_switches_parts_off(at):
    residual = at()
    residual.said(RESULT)
    residual.element.get_by_label("Follow").select_option("train")
    residual.said("“train” leaves the block as (4, 4, 2, 2): its input, plus an update of length 2 from attention.")
    residual.element.get_by_label("Attention", exact=True).uncheck()
    residual.said("“train” leaves the block as (5, 5, 1, 1), just as it came in: both updates are 0.")
    residual.element.get_by_label("Norm").select_option("post")
    residual.said("“train” leaves the block as (1, 1, −1, −1). Each sum went through a norm")
    residual.address("norm=post&off=attention")
    assert not residual.wrong


def test_it_is_led_by_keyboard_and_says_a_sentence_a_step(at):
    residual = at()
    residual.said(RESULT)
    residual.element.get_by_label("Step", exact=True).focus()
    residual.page.keyboard.press("Home")
    residual.said("The row of “station” enters the stream. Its length is 7.21.")
    for _ in range(3):
        residual.page.keyboard.press("ArrowRight")
    residual.said("The update is added to the stream, whose length goes from 7.21 to 6.32.")
    residual.address("step=4")
    residual.page.keyboard.press("ArrowLeft")
    residual.said("Attention reads the rows of all words, and gives a weight of 1 to “train” and 0 to “station”.")
    drawn = residual.element.locator("svg text").all_text_contents()
    assert "attention adds: 2" in drawn
    assert "feed-forward adds: not yet known" in drawn
    assert not residual.wrong


def test_it_plays_all_steps_and_speaks_once(at):
    residual = at()
    residual.said(RESULT)
    residual.page.evaluate(HEAR)
    residual.element.get_by_role("button", name="Play").click()
    residual.element.locator(".attn-summary[aria-live=off]", has_text="The norm makes a copy").wait_for()
    residual.said(RESULT)
    assert len(residual.page.evaluate("window.heard")) == 1
    assert residual.element.get_by_role("button", name="Play").is_visible()


def test_a_link_shows_what_was_on_the_screen_whatever_else_it_says(at, site):
    residual = at(f"{site}{CHAPTER}#residual?follow=train&norm=post&off=feed_forward&step=5")
    residual.said("The feed-forward layer is switched off: its update is 0.")
    residual.follow("#residual?follow=<b>&step=99&norm=1e400&off=__proto__")
    residual.said("The update is added to the stream, whose length goes from 6.32 to 7.21.")
    assert residual.element.locator("b").count() == 0
    assert not residual.wrong


def test_axe_finds_no_violations_at_400_percent_zoom_in_dark_mode_or_in_forced_colours(at, site):
    residual = at(site + CHAPTER, viewport=ENLARGED)
    residual.page.evaluate(AXE)
    residual.element.scroll_into_view_if_needed()  # content laid out above it may have pushed it out of view
    residual.said(RESULT)
    assert residual.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert violations_in_every_look(residual.page, "attention-residual") == []
    assert residual.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert not residual.wrong


def test_it_works_from_a_file_and_without_javascript_there_are_a_picture_and_a_table(at):
    file = f"file://{HTML / CHAPTER}"
    at(file).said(RESULT)
    still = at(file, java_script_enabled=False).element
    assert still.locator(".picture svg").is_visible()
    assert still.locator("tr").all_inner_texts()[-2:] == [
        "feed-forward adds\t2.00\t0.00\t0.00\t0.00",
        "output\t4.00\t2.00\t4.00\t4.00",
    ]
