"""The decoder on the built page: what it fetches, what it writes, and what happens when something fails."""

import re

import pytest
import stdlib_lm
from axe import ALONE, AXE, ENLARGED, violations_in_every_look
from browser_tab import tab, wait_until
from only_element import address_of
from open_element import HEAR, LOAD, OpenModel, opener
from pages import HTML
from test_decoder_page_math import ours, with_packed_numbers

import attnlib
from attnlib import hf

pytestmark = pytest.mark.slow

CHAPTER = "book/a-model-that-writes.html"
DRAWING = address_of(CHAPTER, "attention-decoder")
CACHE = "book/generating.html"
PROMPT = "def read_lines(path):"
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


# How often the drawing is redrawn as its box becomes taller, narrower, wider and shorter again.
DRAWN = """async () => {
    const decoder = document.querySelector('attention-decoder'), box = decoder.controls.canvas, counts = [];
    const frame = () => new Promise(next => requestAnimationFrame(next));
    decoder.draw = (...rest) => { counts[counts.length - 1] += 1; return decoder.__proto__.draw.apply(decoder, rest) };
    for (const [side, length] of [['height', '2000px'], ['width', '300px'], ['width', ''], ['height', '']]) {
        counts.push(0);
        box.style[side] = length;
        for (let n = 0; n < 3; n++) await frame();
    }
    delete decoder.draw;
    return counts;
}"""


# The most elements added at once to an emptied drawing, whether all of them return, and which <svg> attributes are set.
DRAWN_IN_PARTS = """async () => {
    const decoder = document.querySelector('attention-decoder'), { svg } = decoder, added = [], set = [];
    const count = svg.childElementCount;
    decoder.drawing.show([], 0);
    decoder.shapeLimit = 0;
    const observer = new MutationObserver(changes => {
        added.push(changes.reduce((sum, { addedNodes }) => sum + addedNodes.length, 0));
        for (const { target, attributeName } of changes) if (target === svg && attributeName) set.push(attributeName);
    });
    observer.observe(svg, { childList: true, attributes: true });
    decoder.draw(0);
    while (svg.childElementCount < count) await new Promise(next => requestAnimationFrame(next));
    observer.disconnect();
    return [Math.max(...added), svg.childElementCount === count, set];
}"""


class Decoder(OpenModel):
    """The decoder on an open page."""

    TAG = "attention-decoder"

    def __init__(self, page, wrong=(), loads=()):
        super().__init__(page, wrong, loads)
        self.field = self.element.get_by_label("A prompt")

    def concluded(self, text):
        self.element.locator(".attn-verdict", has_text=text).wait_for()

    def columns(self, count):
        wait_until(self.page, "count => document.querySelectorAll('attention-decoder image').length === count", count)


def tokens_of(written):
    return [64 * DIGITS.index(a) + DIGITS.index(b) for a, b in zip(written[::2], written[1::2], strict=True)]


@pytest.fixture
def at(browser, site):
    """Open the drawing, or another address, on an isolated page with these Playwright options."""
    with opener(browser, site + DRAWING, Decoder) as open_element:
        yield open_element


@pytest.fixture(scope="module")
def kept(browser, site):
    """The decoder, loaded once for the tests that leave it as they found it, and what was fetched before that."""
    with tab(browser, site, CHAPTER, cached=False) as (page, wrong, loads):
        page.emulate_media(reduced_motion="reduce")
        before = [one.url for one in loads]
        size = float(LOAD.match(page.locator("attention-decoder button").inner_text())[1])
        page.evaluate(ALONE, Decoder.TAG)
        decoder = Decoder(page, wrong, loads).load()
        decoder.said("The model has written 40 tokens")
        page.evaluate(HEAR)
        yield decoder, before, size


@pytest.fixture
def decoder(kept):
    decoder, *_ = kept
    decoder.type(PROMPT)
    decoder.said("Token 7 of 7")
    decoder.page.evaluate("window.heard.length = 0")
    yield decoder
    assert not decoder.wrong


def test_nothing_is_fetched_before_it_is_asked_for_and_its_size_is_said(kept):
    decoder, before, size = kept
    fetched = {url.rpartition("/")[2].partition("?")[0]: one for one in decoder.loads if (url := one.url) not in before}
    assert {*fetched} >= {"decoder.js", "stdlib_lm.js"}
    assert not [url for url in before if "explorer" in url]
    weights = sum(fetched[name].sizes()["responseBodySize"] for name in ("decoder.js", "stdlib_lm.js"))
    assert weights == pytest.approx(1e6 * size, abs=1e5)
    assert len(decoder.page.workers) == 1  # what takes time runs there, and the page never waits for it


def test_greedily_it_writes_what_attnlib_writes(decoder):
    model = with_packed_numbers(ours()[0], hf.load(stdlib_lm.FOLDER).model)
    prompt = hf.load(stdlib_lm.FOLDER).tokenizer.encode(PROMPT).ids
    right = [one.token for one in attnlib.generate(model, prompt, max_new_tokens=100, temperature=0)]
    decoder.element.get_by_label("Temperature").fill("0")
    decoder.button("Play").click()
    decoder.said("The model has written 100 tokens")
    assert tokens_of(decoder.parts("temperature=0", r"written=\w")["written"]) == right
    decoder.columns(107)
    decoder.element.locator("svg text", has_text="cache: 107 tokens × 3 KiB = 321 KiB").wait_for()
    assert len(decoder.page.evaluate("window.heard")) == 1  # not one for each token
    decoder.follow("#decoder?written=ERFpvr")
    decoder.said("The model has written 3 tokens: “")  # and no speed, since these came with the link
    decoder.element.get_by_label("Temperature").fill("0.8")


def test_it_is_drawn_again_when_its_width_changes_and_not_for_the_height_that_it_gives_itself(decoder):
    assert decoder.page.evaluate(DRAWN) == [0, 1, 1, 0]


def test_its_elements_are_made_in_parts_and_its_size_is_not_set_again(decoder):
    assert decoder.page.evaluate(DRAWN_IN_PARTS) == [100, True, []]


def test_each_token_is_reached_by_keyboard_and_says_one_sentence(decoder):
    decoder.element.get_by_role("slider", name="The token that looks").focus()
    decoder.page.keyboard.press("Home")
    decoder.said("Token 1 of 7 is “\u2068def\u2069”. From there, head 2 of layer 5 looks most at")
    decoder.page.keyboard.press("ArrowRight")
    decoder.said("Token 2 of 7 is “\u2068␣read\u2069”, to which the model gave a probability of")
    heard = decoder.page.evaluate("window.heard")
    assert [sentence[:9] for sentence in heard] == ["Token 1 o", "Token 2 o"]
    decoder.parts("chosen=2")
    decoder.element.get_by_label("Head", exact=True).select_option("4")
    decoder.said("head 4 of layer 5 looks")


def at_layer(decoder, layer, part):
    """Return the point under token 4 in a layer of the cache, with ``part`` from 0 at its top to 1 at its bottom."""
    row = decoder.element.evaluate(f"one => one.drawing.element('layer-{layer}').getBoundingClientRect().toJSON()")
    column = decoder.element.evaluate("one => one.drawing.element('kept-3').getBoundingClientRect().toJSON()")
    return column["x"] + column["width"] / 2, row["y"] + part * row["height"]


def test_pointing_at_a_row_of_the_cache_or_at_a_number_shows_that_head(decoder):
    decoder.element.get_by_label("Layer", exact=True).select_option("5")
    decoder.element.get_by_label("Head", exact=True).select_option("2")
    shown = lambda title: decoder.element.locator("svg text", has_text=title).wait_for()  # noqa: E731
    looked_at = lambda: decoder.element.evaluate("one => [one.shown.layer, one.shown.head, one.shown.chosen]")  # noqa: E731
    decoder.element.locator(".attn-canvas").scroll_into_view_if_needed()
    decoder.page.mouse.move(*at_layer(decoder, 1, 0.1))  # the keys that heads 0 to 2 read
    shown("layer 1, head 2: where “lines” looks")
    decoder.page.mouse.move(*at_layer(decoder, 3, 0.9))  # the values that heads 3 to 5 read
    shown("layer 3, head 5: where “lines” looks")
    head = decoder.element.evaluate("one => one.drawing.element('head-4-0').getBoundingClientRect().toJSON()")
    decoder.page.mouse.move(head["x"] + 5, head["y"] + 5)
    shown("layer 4, head 0: where “):” looks")
    weights = decoder.element.evaluate("one => [...one.found[6].weights.subarray(24 * 7, 25 * 7)]")
    most = weights.index(max(weights))
    drawn = decoder.element.evaluate(f"one => one.drawing.element('weight-{most}').height.baseVal.value")
    assert drawn == pytest.approx(56 * weights[most], abs=0.01)
    decoder.page.mouse.move(0, 0)
    shown("layer 5, head 2: where “):” looks")
    assert looked_at() == [5, 2, None]
    decoder.page.mouse.click(*at_layer(decoder, 3, 0.9))
    decoder.said("Token 4 of 7 is “\u2068lines\u2069”")
    decoder.said("head 5 of layer 3 looks")
    decoder.page.mouse.move(0, 0)
    shown("layer 3, head 5: where “lines” looks")
    assert looked_at() == [3, 5, 3]
    assert decoder.element.get_by_label("Layer", exact=True).input_value() == "3"
    assert decoder.element.get_by_label("Head", exact=True).input_value() == "5"
    decoder.parts("layer=3", "head=5", "chosen=4")
    decoder.page.mouse.move(*at_layer(decoder, 4, 0.9))
    shown("layer 4, head 5: where “lines” looks")
    decoder.element.get_by_label("Layer", exact=True).select_option("5")
    decoder.element.get_by_label("Head", exact=True).select_option("2")
    shown("layer 5, head 2: where “lines” looks")  # although the pointer still rests on another head


def test_a_finger_chooses_a_head_and_its_row(at):
    decoder = at(viewport={"width": 390, "height": 844}, has_touch=True).load()
    decoder.said("The model has written 40 tokens")
    head = decoder.element.locator("svg rect[cursor=pointer]").nth(6 * 2 + 4)
    head.scroll_into_view_if_needed()
    head.tap()
    decoder.said("head 4 of layer 2 looks")
    decoder.page.touchscreen.tap(*at_layer(decoder, 0, 0.9))
    decoder.said("head 4 of layer 0 looks")
    assert not decoder.wrong


def test_the_chapter_on_generating_shows_a_cache_that_fills(at, site):
    decoder = at(site + CACHE)
    fetched = decoder.fetched()
    decoder.element.scroll_into_view_if_needed()
    assert float(LOAD.match(decoder.element.get_by_role("button").text_content())[1]) > 1
    assert not decoder.element.get_by_text("which may cost money on mobile data").is_visible()  # on a wide screen
    assert fetched == []
    decoder.load().said("The model has written 40 tokens")
    assert {"decoder.js", "stdlib_lm.js"} <= {*fetched}
    assert decoder.field.input_value() == PROMPT  # an example of this chapter, not of the other one
    decoder.columns(47)
    decoder.element.locator("svg text", has_text="cache: 47 tokens × 3 KiB = 141 KiB").wait_for()
    decoder.button("Read everything again, without the cache").click()
    decoder.concluded("46 times as many")  # as the chapter says, slightly less than 47
    assert not decoder.wrong


def test_a_step_writes_one_token_and_a_step_back_shows_it_again(decoder):
    decoder.button("Step forwards").click()
    decoder.said("Token 8 of 8")
    first = decoder.parts(r"written=\w")["written"]
    decoder.button("Step forwards").click()
    decoder.said("Token 9 of 9")
    decoder.button("Step back").click()
    decoder.said("Token 8 of 8")
    decoder.columns(8)
    assert decoder.parts("shown=1")["written"][:2] == first
    decoder.element.get_by_label("Temperature").fill("0")
    decoder.element.get_by_label("Temperature").fill("0.8")
    assert len(decoder.page.evaluate("document.querySelector('attention-decoder').shown.written")) == 1


def write_and_pause(decoder):
    """Let the decoder write for a moment, pause it, and return how many tokens it has written."""
    decoder.element.get_by_label("Speed").select_option(label="8 tokens a second")
    before = decoder.element.evaluate("one => one.shown.count")
    decoder.button("Play").click()
    wait_until(decoder.page, "count => document.querySelector('attention-decoder').shown.count > count + 2", before)
    decoder.button("Pause").click()
    return decoder.element.evaluate("one => one.shown.count")


def test_pausing_draws_and_announces_what_has_been_written_and_keeps_it_in_the_address(decoder):
    written = write_and_pause(decoder)
    decoder.said(f"The model has written {written} tokens")
    decoder.columns(7 + written)
    decoder.parts(rf"written=[\w-]{{{2 * written}}}")
    assert decoder.element.locator(".attn-summary").get_attribute("aria-live") == "polite"
    decoder.button("Step back").click()
    decoder.columns(6 + written)


def test_a_reader_can_choose_the_next_token_and_sees_what_top_p_cuts_off(decoder):
    decoder.element.get_by_role("slider", name="Top-p").fill("0.05")
    decoder.element.get_by_role("button", name="cut off by top-p").first.wait_for()
    bars = decoder.element.locator("svg [role=button]")
    assert bars.count() == 8
    assert decoder.element.locator("svg [role=button][tabindex='0']").count() == 1
    bars.first.focus()
    decoder.page.keyboard.press("ArrowDown")
    name = re.match("Continue with (.*), ", decoder.page.evaluate("document.activeElement.ariaLabel"))[1]
    decoder.page.keyboard.press("Enter")
    decoder.said(f"Token 8 of 8 is “\u2068{name}\u2069”")
    decoder.element.get_by_role("slider", name="Top-p").fill("0.9")


def test_with_equal_weights_the_text_falls_apart(decoder):
    decoder.button("Step forwards").click()
    decoder.said("Token 8 of 8")
    decoder.element.get_by_role("switch", name="Equal weights").check()
    decoder.said(re.compile("With equal weights, the model wrote .*; with its own weights, it wrote “\u2068.+"))
    equal = tokens_of(decoder.parts("equal=1", r"written=\w")["written"])
    decoder.columns(7 + len(equal))
    heights = decoder.element.locator("svg rect[fill='#3b82c4'][y]:not([rx])").evaluate_all(
        "all => all.map(one => one.getAttribute('height'))"
    )
    assert len(heights) == 7 + len(equal)
    assert len({*heights}) == 1
    decoder.element.get_by_role("switch", name="Equal weights").uncheck()
    decoder.said(re.compile("^The model has written"))


def test_without_the_cache_it_gives_the_same_logits_for_more_work(decoder):
    decoder.button("Read everything again, without the cache").click()
    decoder.concluded("Reading everything again gives the same logits, but takes 22 million multiplications")
    decoder.concluded("7 times as many")
    assert "took 3.2 million multiplications" in decoder.element.locator(".attn-work").inner_text()


HOSTILE = {
    "": "There is nothing to continue. Type the beginning of a program, or choose an example.",
    "attention " * 600: "tokens, but the model reads at most 512. Shorten it.",
    "a" * 20_001: "The prompt has 20,001 characters, but the model reads at most 512 tokens",
}


def test_a_prompt_that_cannot_be_read_is_answered_and_the_last_one_stays(decoder):
    for text, message in HOSTILE.items():
        decoder.type(text)
        decoder.complained(message)
        decoder.complained(f"Until then, the drawing shows “{PROMPT}”.")
        assert decoder.field.get_attribute("aria-invalid") == "true"
    decoder.columns(7)
    decoder.field.fill(PROMPT)  # clears the complaint at once, even while the reader may still be typing
    wait_until(decoder.page, "!document.querySelector('attention-decoder .attn-message').textContent")
    assert decoder.field.get_attribute("aria-invalid") == "false"
    decoder.button("Step forwards").click()
    decoder.said("Token 8 of 8")


def test_any_other_text_is_read(decoder):
    for text in ("🙂\t\x07 שלום", "<img src=x onerror=alert(1)>", "word " * 200):
        count = len(ours()[1].tokenizer.encode(text).ids)
        decoder.type(text)
        decoder.said(f"Token {count} of {count}")
        decoder.columns(count)
    assert decoder.element.locator("img").count() == 0


def test_a_killed_worker_is_noticed_and_nothing_is_lost(decoder):
    decoder.button("Step forwards").click()
    decoder.said("Token 8 of 8")
    written = decoder.parts(r"written=\w")["written"]
    decoder.page.workers[0].evaluate("self.close()")
    decoder.button("Step forwards").click()
    decoder.complained("The model has stopped responding. Start it again")
    decoder.button("Start it again").click()
    decoder.said("Token 9 of 9")
    assert decoder.parts("written=" + written)["written"][:2] == written
    assert not decoder.button("Start it again").is_visible()
    names = [one.url.rpartition("/")[2] for one in decoder.loads]
    assert sum(name.startswith("stdlib_lm.js") for name in names) == 1  # the browser had kept it


FORBID = "CacheStorage.prototype.open = () => Promise.reject(new Error());"


def test_a_model_that_does_not_arrive_is_tried_again_and_one_that_is_not_kept_works(at):
    decoder = at()
    half = (HTML / "_static/explorer/stdlib_lm.js").read_text()[:2_000_000]
    route, unroute = decoder.page.context.route, decoder.page.context.unroute
    route("**/stdlib_lm.js*", lambda route: route.fulfill(body=half, content_type="text/javascript"))
    decoder.load()
    decoder.element.get_by_text("Only part of the model arrived").wait_for()
    unroute("**/stdlib_lm.js*")
    route("**/stdlib_lm.js*", lambda route: route.abort())
    decoder.button("Try again").click()
    decoder.element.get_by_text("The model could not be loaded. Check your connection.").wait_for()
    unroute("**/stdlib_lm.js*")
    decoder.element.evaluate(f"one => (one.worker.script = `{FORBID}` + one.worker.script)")
    decoder.button("Try again").click()
    decoder.element.get_by_text("Your browser could not store the model").wait_for()
    decoder.said("The model has written 40 tokens")
    assert not decoder.wrong


def test_a_link_shows_what_was_on_the_screen_whatever_else_it_says(at, site):
    link = f"{site}{CHAPTER}#decoder?prompt=x+%3D&written=ERFpvr&shown=2&chosen=3&temperature=1.2&layer=99&head=1e400"
    decoder = at(link)
    assert decoder.element.get_by_role("button", name=LOAD).is_visible()  # megabytes wait for the reader
    decoder.load().said("Token 3 of 4")
    assert decoder.element.get_by_label("Layer", exact=True).input_value() == "5"
    assert decoder.field.input_value() == "x ="
    decoder.button("Copy link").click()
    assert decoder.parts("chosen=3")["written"] == "ERFpvr"
    decoder.follow("#decoder?prompt=<b>y</b>&written=%00!A&top-p=-1&seed=1e9&__proto__=1")
    decoder.said("Token 7 of 7")
    assert decoder.element.locator("b").count() == 0
    decoder.follow("#decoder?prompt=y&written=" + "ab" * 600)
    decoder.complained("The prompt has 1 token and its continuation 600, but the model reads at most 512")
    assert not decoder.wrong


def test_axe_finds_no_violations_at_400_percent_zoom_in_dark_mode_or_in_forced_colours(at, site):
    decoder = at(site + CHAPTER, viewport=ENLARGED)
    decoder.page.evaluate(AXE)
    assert decoder.element.get_by_text("which may cost money on mobile data").is_visible()
    decoder.load().said("The model has written 40 tokens")
    assert decoder.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert violations_in_every_look(decoder.page, "attention-decoder") == []
    assert decoder.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert not decoder.wrong


def test_it_works_from_a_file_and_without_javascript_there_is_a_table(at):
    file = f"file://{HTML / CHAPTER}"
    at(file).load().said("The model has written 40 tokens")
    still = at(file, java_script_enabled=False)
    assert "Weights of head 2 in layer 5" in still.element.locator("caption").inner_text()
    assert still.element.get_by_role("button").count() == 0
