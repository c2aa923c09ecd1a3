"""The translator of dates on the built page: what it fetches, what it writes, and what happens when something fails."""

import re

import pytest
from axe import ALONE, AXE, ENLARGED, violations, violations_in_every_look
from browser_tab import tab, wait_until
from only_element import address_of
from open_element import HEAR, OpenElement, opener
from pages import HTML

pytestmark = pytest.mark.slow

CHAPTER = "book/context-vectors.html"
DRAWING = address_of(CHAPTER, "attention-dates")
LOAD = re.compile(r"Load the translator \((\d+) kB\)")

# Pause in the very moment in which it says that the second character is written, and note whether that was read aloud.
PAUSE_AT_2 = """() => {
    const element = document.querySelector("attention-dates"), line = element.querySelector(".attn-summary");
    new MutationObserver((_, observer) => {
        if (!line.textContent.startsWith("Character 2 of 10")) return;
        observer.disconnect();
        window.live = line.ariaLive;
        [...element.querySelectorAll("button")].find(one => one.textContent === "Pause").click();
    }).observe(line, { childList: true });
}"""


class Dates(OpenElement):
    """The translator on an open page."""

    TAG = "attention-dates"

    def __init__(self, page, wrong=(), loads=()):
        super().__init__(page, wrong, loads)
        self.field = self.element.get_by_label("A date, as people write it")

    def load(self):
        self.element.get_by_role("button", name=LOAD).click()
        self.element.locator(".attn-canvas svg rect").first.wait_for()
        return self

    def type(self, text):
        self.field.fill(text)
        self.field.press("Enter")

    def button(self, name):
        return self.element.get_by_role("button", name=name)

    def written(self):
        names = self.element.locator("svg [role=button]").evaluate_all("all => all.map(one => one.ariaLabel)")
        return "".join(re.match(r"Character \d+: (.)", name)[1] for name in names)

    def address(self, part):
        wait_until(self.page, "part => decodeURIComponent(location.hash).includes(part)", part)


@pytest.fixture
def at(browser, site):
    """Open the drawing, or another address, on an isolated page with these Playwright options."""
    with opener(browser, site + DRAWING, Dates) as open_element:
        yield open_element


@pytest.fixture(scope="module")
def kept(browser, site):
    """The translator, loaded once for the tests that leave it as they found it, and three values read before that.

    They are the addresses that had been fetched, the size named on the button, and the rows of the chapter's table
    of translations.
    """
    with tab(browser, site, CHAPTER, cached=False) as (page, wrong, loads):
        page.emulate_media(reduced_motion="reduce")
        before = [one.url for one in loads]
        size = int(LOAD.match(page.locator("attention-dates button").inner_text())[1])
        rows = page.locator("table:has-text('with its probability') tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
        )
        page.evaluate(ALONE, Dates.TAG)
        dates = Dates(page, wrong, loads).load()
        page.evaluate(HEAR)
        yield dates, before, size, rows


@pytest.fixture
def dates(kept):
    dates, *_ = kept
    dates.button("3 may 1972").click()
    dates.said("“3 may 1972” becomes 1972-05-03.")
    dates.page.evaluate("window.heard.length = 0")
    yield dates
    assert not dates.wrong


def test_nothing_is_fetched_before_it_is_asked_for_and_its_size_is_said(kept):
    dates, before, size, _ = kept
    fetched = {url.rpartition("/")[2].partition("?")[0]: one for one in dates.loads if (url := one.url) not in before}
    assert "dates.js" in fetched
    assert not [url for url in before if "explorer" in url]
    assert fetched["dates.js"].sizes()["responseBodySize"] == pytest.approx(1000 * size, abs=1000)
    assert len(dates.page.workers) == 1  # what takes time runs there, and the page never waits for it


def test_it_writes_what_the_chapter_says(dates, kept):
    *_, rows = kept
    assert len(rows) == 7
    for text, output, _ in rows:
        dates.type(text)
        dates.said(f"“{text}” becomes {output.partition(',')[0]}")


def test_a_change_of_one_character_is_translated_at_once_and_marked(dates):
    dates.type("3 may 1973")
    dates.said("“3 may 1973” becomes 1973-05-03; 1 of 10 characters changed.")
    marked = dates.element.locator("svg [aria-label$=', changed']")
    assert marked.evaluate_all("all => all.map(one => one.ariaLabel)") == ["Character 4: 3, changed"]


def test_the_weights_are_a_table_with_the_numbers_that_python_wrote(dates):
    cells = "table => [...table.tBodies[0].rows].map(row => [...row.cells].slice(1).map(cell => cell.textContent))"
    python = dates.page.locator("attention-dates > .attn-scroll table")
    dates.type(re.search("“(.*?)”", python.locator("caption").text_content())[1])
    dates.said("becomes")
    dates.element.get_by_text("Weights as a table").click()
    table = dates.element.locator("details table")
    assert table.evaluate(cells) == python.evaluate(cells)
    table.get_by_role("button", pressed=True).focus()
    dates.page.keyboard.press("ArrowUp")
    dates.said("Character 9 of 10 is")
    assert dates.page.evaluate("document.activeElement.closest('tr').sectionRowIndex") == 8
    dates.page.evaluate(AXE)
    assert violations(dates.page, "attention-dates") == []
    dates.element.get_by_text("Weights as a table").click()


def test_written_characters_are_reached_by_keyboard_and_each_says_one_sentence(dates):
    assert dates.element.locator("svg [tabindex='0']").count() == 1
    dates.element.locator("svg [tabindex='0']").focus()
    dates.page.keyboard.press("Home")
    dates.said("Character 1 of 10 is “1”, with a probability of")
    dates.page.keyboard.press("ArrowRight")
    dates.page.keyboard.press("ArrowRight")
    dates.page.keyboard.press("ArrowRight")
    dates.said("It looks most at “2” (character 10)")
    assert dates.page.evaluate("document.activeElement.ariaLabel") == "Character 4: 2"
    heard = dates.page.evaluate("window.heard")
    assert len(heard) <= 4
    assert all(sentence.startswith("Character ") for sentence in heard)
    dates.address("chosen=4")


def test_it_plays_step_by_step_and_only_the_last_sentence_is_read_aloud(dates):
    dates.page.evaluate(PAUSE_AT_2)
    dates.button("Play").click()
    wait_until(dates.page, "window.live")
    dates.button("Play").wait_for()
    assert dates.page.evaluate("window.live") == "off"
    assert dates.written() == "19"
    dates.button("Step back").wait_for()
    dates.element.get_by_label("Characters written").fill("9")
    assert dates.written() == "1972-05-0"
    dates.said("Character 9 of 10")
    dates.page.evaluate("window.heard.length = 0")
    dates.button("Play").click()
    dates.said("“3 may 1972” becomes")
    assert dates.page.evaluate("window.heard") == ["“3 may 1972” becomes 1972-05-03."]


def test_typing_announces_nothing_before_it_is_done(dates):
    dates.field.fill("")
    dates.page.keyboard.type("27.11.1999")
    dates.said("“27.11.1999” becomes 1999-11-27")
    assert len(dates.page.evaluate("window.heard")) == 1


def test_with_equal_weights_it_writes_no_date(dates):
    dates.element.get_by_role("switch", name="Equal weights").check()
    dates.said(re.compile("With equal weights, “3 may 1972” becomes .*; with its own weights, 1972-05-03."))
    arcs = dates.element.locator("svg path")
    widths = arcs.evaluate_all("all => all.map(one => one.getAttribute('stroke-width'))")
    assert len(widths) == 10
    assert len({*widths}) == 1
    dates.button("14.2.2031").click()
    dates.said("With equal weights, “14.2.2031” becomes")
    dates.element.get_by_role("switch", name="Equal weights").uncheck()


def test_what_it_gets_wrong_is_hidden_until_the_reader_has_predicted_it(dates):
    dates.button("predict first").click()
    dates.said("after your prediction")
    assert dates.written() == ""
    assert dates.element.locator("svg path").count() == 0
    assert dates.element.locator(".attn-player :is(button, input):not(:disabled)").count() == 0
    dates.element.get_by_role("radio", name="1999").check()
    dates.button("Let it write").click()
    dates.element.locator(".attn-verdict", has_text="No: while it writes the year, it gives").wait_for()
    assert "% of its weight to “1999”" in dates.element.locator(".attn-verdict").inner_text()
    assert len(dates.written()) == 10


HOSTILE = {
    "": "There is nothing to read. Type a date such as 3 may 1972",
    "3 may " * 100: "The text has 600 characters, but the model reads at most 40. Shorten the text",
    "3 🙂 1972": "The model has never seen “\u2068🙂\u2069”",
    "שלום 1972": "Remove what it does not know",
    "<img src=x onerror=alert(1)>": "never seen “\u2068<\u2069”",
}


def test_hostile_text_is_answered_and_the_last_translation_stays(dates):
    for text, message in HOSTILE.items():
        dates.type(text)
        dates.complained(message)
        dates.complained("Until then, the drawing shows “3 may 1972”.")
        assert dates.field.get_attribute("aria-invalid") == "true"
    assert dates.written() == "1972-05-03"
    assert dates.element.locator("img").count() == 0
    dates.type("14.2.2031")
    dates.said("“14.2.2031” becomes 2031-02-14")
    dates.element.locator(".attn-message:empty").wait_for(state="attached")


def test_a_killed_worker_is_noticed_and_started_again(dates):
    dates.page.workers[0].evaluate("self.close()")
    dates.type("the 23rd of June 1912")
    dates.complained("The translator has stopped responding. Start it again")
    dates.button("Start it again").click()
    dates.said("“the 23rd of June 1912” becomes 1912-06-23")
    assert not dates.button("Start it again").is_visible()


def test_weights_cut_off_half_way_or_no_connection_are_said_and_tried_again(at):
    dates = at()
    offer = dates.element.get_by_role("button", name=LOAD)
    half = (HTML / "_static/explorer/dates.js").read_text()[:60_000]
    faults = {
        "Only part of the translator arrived": lambda route: route.fulfill(body=half, content_type="text/javascript"),
        "could not be fetched": lambda route: route.abort(),
    }
    for message, answer in faults.items():
        dates.page.route("**/dates.js*", answer)
        offer.click()
        dates.element.locator(".attn-offer", has_text=message).wait_for()
        dates.page.unroute("**/dates.js*")
    dates.load()
    dates.said("becomes 1972-05-03")


def test_a_link_shows_what_was_on_the_screen_whatever_else_it_says(at, site):
    first = at(f"{site}{CHAPTER}#dates?text=14.2.2031&written=6&chosen=2&equal=0")
    first.said("Character 2 of 10 is “0”")
    assert first.written() == "2031-0"
    first.button("Copy link").click()
    first.address("text=14.2.2031&written=6&chosen=2")
    first.follow("#dates?text=<b>x</b>🙂&written=1e400&chosen=-1&__proto__=1")
    first.complained("The model has never seen “\u2068<\u2069”")
    assert first.element.locator("b").count() == 0
    assert not first.wrong


def test_it_moves_only_for_those_who_want_motion(at):
    dates = at(reduced_motion="no-preference").load()
    dates.button("Pause").wait_for()
    assert len(dates.written()) < 10


def test_axe_finds_no_violations_at_400_percent_zoom_in_dark_mode_or_in_forced_colours(at, site):
    dates = at(site + CHAPTER, viewport=ENLARGED)
    dates.page.evaluate(AXE)
    dates.load()
    dates.type("Wednesday the 30th of September, 1998.")
    dates.said("Wednesday the 30th")
    assert dates.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert violations_in_every_look(dates.page, "attention-dates") == []
    assert dates.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert not dates.wrong


def test_it_works_from_a_file_and_without_javascript_there_is_a_table(at):
    file = f"file://{HTML / CHAPTER}"
    at(file).load().said("“3 may 1972” becomes 1972-05-03")
    still = at(file, java_script_enabled=False)
    assert "“Sat, 27 Nov 1999” becomes 1999-11-27" in still.element.locator("caption").inner_text()
    assert still.element.get_by_role("button").count() == 0
