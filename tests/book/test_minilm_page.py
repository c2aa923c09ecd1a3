"""all-MiniLM-L6-v2 on the built page: what it fetches, what its heads show, and what happens when something fails."""

import re

import numpy as np
import pytest
from axe import ALONE, AXE, ENLARGED, violations_in_every_look
from browser_tab import tab, wait_until
from only_element import address_of
from open_element import HEAR, LOAD, OpenModel, opener
from pages import HTML
from test_minilm_page_math import with_packed_numbers

from attnlib.minilm import load_minilm

pytestmark = pytest.mark.slow

CHAPTER = "book/looking-into-a-real-model.html"
DRAWING = address_of(CHAPTER, "attention-minilm")
BLOCKS = "book/transformer.html"
WEIGHTS = HTML / "_static/explorer/minilm.bin"
TRAIN = "the train left the station on time"
OPENED = "Layer 0, head 2: “station” looks most at “the₂”"


class Heads(OpenModel):
    """The heads on an open page."""

    TAG = "attention-minilm"

    def __init__(self, page, wrong=(), loads=()):
        super().__init__(page, wrong, loads)
        self.field = self.element.get_by_label("A sentence")

    def compared(self):
        self.element.locator(".attn-work", has_text="parameters, this head gives").wait_for()

    def numbers(self):
        """The numbers below the words."""
        return self.element.evaluate(
            "one => one.shown && one.results.words.map((_, j) => one.drawing.element(`number-${j}`).textContent)"
        )

    def weights(self, kind="own"):
        """The weights of all heads."""
        return np.array(self.element.evaluate(f"one => one.results.{kind}.map(l => l.map(h => h.map(r => [...r])))"))


@pytest.fixture
def at(browser, site):
    """Open the drawing, or another address, on an isolated page with these Playwright options."""
    with opener(browser, site + DRAWING, Heads) as open_element:
        yield open_element


@pytest.fixture(scope="module")
def kept(browser, site):
    """The heads, loaded once for the tests that leave them as they found them, and what was fetched before that."""
    with tab(browser, site, CHAPTER, cached=False) as (page, wrong, loads):
        page.emulate_media(reduced_motion="reduce")
        before = [one.url for one in loads]
        size = float(LOAD.match(page.locator("attention-minilm button").inner_text())[1])
        page.evaluate(ALONE, Heads.TAG)
        heads = Heads(page, wrong, loads).load()
        heads.said(OPENED)
        heads.compared()
        page.evaluate(HEAR)
        yield heads, before, size


@pytest.fixture
def heads(kept):
    heads, *_ = kept
    before = heads.element.evaluate_handle("one => one.results")
    heads.button(TRAIN).click()
    changed = "([one, before]) => one.results !== before && one.hasControl"
    wait_until(heads.page, changed, [heads.element.element_handle(), before])
    heads.said(OPENED)
    heads.compared()
    heads.page.evaluate("window.heard.length = 0")
    yield heads
    assert not heads.wrong


@pytest.fixture(scope="module")
def encoder():
    """The model in Python, with the weights from the page's file."""
    return with_packed_numbers(WEIGHTS.read_bytes(), load_minilm())


def test_nothing_is_fetched_before_it_is_asked_for_and_its_size_is_said(kept):
    heads, before, size = kept
    fetched = {url.rpartition("/")[2].partition("?")[0]: one for one in heads.loads if (url := one.url) not in before}
    assert {*fetched} >= {"minilm.js", "minilm.bin"}
    assert not [url for url in before if "minilm" in url]
    weights = sum(fetched[name].sizes()["responseBodySize"] for name in ("minilm.js", "minilm.bin"))
    assert weights == pytest.approx(1e6 * size, abs=1e5)
    assert len(heads.page.workers) == 1  # what takes time runs there, and the page never waits for it


def test_the_control_is_computed_even_if_a_sentence_is_refused_meanwhile(heads):
    heads.element.evaluate("""one => {
        const { accept } = one;
        one.accept = () => {
            delete one.accept;
            accept.call(one);
            one.controls.field.value = "";
            one.typed();
        };
        one.choose(one.config.examples[1]);
    }""")
    second = "one => one.shown.text === one.config.examples[1].text && one.hasControl"
    wait_until(heads.page, second, heads.element.element_handle())


def test_its_weights_are_those_of_attnlib_and_the_control_has_learned_nothing(heads, encoder):
    tokens, right = encoder.attention_weights(TRAIN)
    assert abs(heads.weights() - right).max() < 1e-4
    assert heads.numbers() == [f"{w:.2f}" for w in right[0, 2, tokens.index("station")]]
    assert heads.weights("random").max() < 0.5 < right.max()
    heads.element.get_by_role("switch", name="Random parameters").check()
    heads.said("Random parameters, layer 0, head 2: “station” looks")
    heads.parts("random=1")
    heads.element.get_by_role("switch", name="Random parameters").uncheck()


def test_a_head_and_a_token_are_chosen_by_click_and_by_key_each_with_one_sentence(heads):
    heads.element.get_by_role("button", name="Layer 3, head 1: ").click()
    heads.said("Layer 3, head 1: “station” looks")
    heads.page.keyboard.press("ArrowRight")
    heads.said("Layer 3, head 2: “station” looks")
    heads.element.get_by_role("button", name="Look from “train”", exact=True).click()
    heads.said("Layer 3, head 2: “train” looks")
    heads.page.keyboard.press("ArrowRight")
    heads.said("Layer 3, head 2: “left” looks")
    assert heads.element.get_by_role("button", name="Look from “left”", exact=True).get_attribute("tabindex") == "0"
    heard = heads.page.evaluate("window.heard")
    assert [re.sub(" looks.*", "", one)[6:] for one in heard] == [
        "3, head 1: “station”", "3, head 2: “station”", "3, head 2: “train”", "3, head 2: “left”",
    ]  # fmt: skip
    assert all(one.endswith("; an equal share would be 0.11.") and one.count(". ") == 0 for one in heard)
    assert heads.parts("token=3") == {"layer": "3", "token": "3"}


HOSTILE = {
    "": "There is no word to look from. Type a sentence, or choose an example.",
    "\u200b\x07": "There is no word to look from.",
    "word " * 200: "The sentence has 202 tokens, but the page shows at most 64. Shorten it.",
    "a" * 5_001: "The text has 5,001 characters, but a sentence may have at most 64 tokens here. Shorten it.",
}


def test_a_sentence_that_cannot_be_read_is_answered_and_the_last_one_stays(heads):
    for text, message in HOSTILE.items():
        heads.type(text)
        heads.complained(message)
        heads.complained(f"Until then, the drawing shows “{TRAIN}”.")
        assert heads.field.get_attribute("aria-invalid") == "true"
    heads.element.get_by_role("button", name="Look from “time”", exact=True).click()
    heads.said("Layer 0, head 2: “time” looks")


def test_any_other_text_is_read(heads, encoder):
    for text in ("🙂\tשלום 日本語", "<img src=x onerror=alert(1)>", "ab " * 30 + "a" * 200):
        count = len(encoder.tokenize(text))
        heads.type(text)
        wait_until(
            heads.page, "count => document.querySelector('attention-minilm').results.words.length === count", count
        )
    assert heads.element.locator("img").count() == 0
    assert heads.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_killed_worker_is_noticed_and_nothing_is_lost(heads):
    heads.page.workers[0].evaluate("self.close()")
    heads.type("My own sentence")
    heads.complained("The model has stopped responding. Start it again")
    heads.button("Start it again").click()
    heads.said("Layer 0, head 2: “[SEP]” looks most at “sentence”")
    assert heads.field.input_value() == "My own sentence"
    assert not heads.button("Start it again").is_visible()
    names = [one.url.rpartition("/")[2] for one in heads.loads]
    assert sum(name.startswith("minilm.bin") for name in names) == 1  # the browser had kept it


FORBID = "CacheStorage.prototype.open = () => Promise.reject(new Error());"


def test_a_model_that_does_not_arrive_is_tried_again_and_one_that_is_not_kept_works(at):
    heads = at()
    route, unroute = heads.page.context.route, heads.page.context.unroute
    beginning = WEIGHTS.read_bytes()[:500_000]
    route("**/minilm.bin*", lambda route: route.fulfill(body=beginning))
    heads.load()
    heads.element.get_by_text("Only part of the model arrived").wait_for()
    unroute("**/minilm.bin*")
    route("**/minilm.bin*", lambda route: route.abort())
    heads.button("Try again").click()
    heads.element.get_by_text("The model could not be loaded. Check your connection.").wait_for()
    unroute("**/minilm.bin*")
    heads.element.evaluate(f"one => (one.worker.script = `{FORBID}` + one.worker.script)")
    heads.button("Try again").click()
    heads.element.get_by_text("Your browser could not store the model").wait_for()
    heads.said(OPENED)
    assert not heads.wrong


def test_a_link_shows_what_was_on_the_screen_whatever_else_it_says(at, site):
    heads = at(f"{site}{CHAPTER}#minilm?text=a+dog+barks&layer=99&head=1e400&token=2&random=1&__proto__=1")
    assert heads.element.get_by_role("button", name=LOAD).is_visible()  # megabytes wait for the reader
    heads.load().said("Random parameters, layer 5, head 2: “dog” looks")
    assert heads.element.get_by_role("switch", name="Random parameters").is_checked()
    heads.button("Copy link").click()
    assert heads.parts("token=2") == {"text": "a dog barks", "layer": "5", "token": "2", "random": "1"}
    heads.follow("#minilm?text=<b>y</b>&token=-1&head=%00")
    heads.said("Layer 0, head 2: “<₂” looks")
    assert heads.element.locator("b").count() == 0
    heads.follow("#minilm?text=" + "ab+" * 600)
    heads.complained("The sentence has 602 tokens, but the page shows at most 64")
    assert not heads.wrong


def test_axe_finds_no_violations_at_400_percent_zoom_in_dark_mode_or_in_forced_colours(at, site):
    heads = at(site + CHAPTER, viewport=ENLARGED)
    heads.page.evaluate(AXE)
    assert heads.element.get_by_text("which may cost money on mobile data").is_visible()
    heads.load().said(OPENED)
    assert heads.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert violations_in_every_look(heads.page, "attention-minilm") == []
    assert heads.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert not heads.wrong


def test_the_chapter_on_the_transformer_has_the_heads_too(at, site):
    heads = at(site + BLOCKS)
    fetched = heads.fetched()
    heads.element.scroll_into_view_if_needed()
    assert float(LOAD.match(heads.element.get_by_role("button").text_content())[1]) > 20
    assert not heads.element.get_by_text("which may cost money on mobile data").is_visible()  # on a wide screen
    assert not {"minilm.js", "minilm.bin"} & {*fetched}
    heads.load().said(OPENED)
    assert {"minilm.js", "minilm.bin"} <= {*fetched}
    assert heads.element.locator(".attn-small").count() == 72
    heads.type("my cat sleeps because it is tired")
    heads.said("Layer 0, head 2: “it” looks most at “because”")
    assert not heads.wrong


def test_from_a_file_it_says_what_to_do_and_without_javascript_there_is_a_table(at):
    file = f"file://{HTML / CHAPTER}"
    at(file).load().element.get_by_text("A page that was opened as a file cannot read the model").wait_for()
    still = at(file, java_script_enabled=False)
    assert "Weights of layer 0, head 2" in still.element.locator("caption").inner_text()
    assert still.element.get_by_role("button").count() == 0
