"""The drawing of one word's attention, on the built pages: steps, numbers in their places, links, pictures, screens."""

import contextlib
import functools
import re
import xml.etree.ElementTree as ET

import pytest
from axe import AXE, ENLARGED, violations_in_every_look
from browser_tab import LAID_OUT, clean_page, listening, tab, wait_until
from cut_off import UNHINTED, cut_off
from only_element import address_of
from open_element import OpenElement

pytestmark = pytest.mark.slow

CHAPTER = "book/queries-keys-values.html"
EXPLORER = "attention-explorer"
DRAWING = address_of(CHAPTER, EXPLORER)
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


class Watch(OpenElement):
    """The drawing on an open page."""

    TAG = EXPLORER

    def __init__(self, page, wrong):
        super().__init__(page, wrong)
        self.element.scroll_into_view_if_needed()
        self.element.locator(".attn-canvas svg rect").first.wait_for()

    def formula(self):
        """The formula below the drawing, in the order in which it is read."""
        texts = self.element.locator("svg text[font-size='17'], svg text[font-size='15']").all_text_contents()
        return "".join(texts)

    def cell(self, label):
        return self.element.locator(f"svg [aria-label='{label}']")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def address(self, part):
        wait_until(self.page, "part => decodeURIComponent(location.hash).includes(part)", part)


@pytest.fixture
def at(browser, site):
    """Open the drawing, or another address, on an isolated page with these Playwright options."""
    with contextlib.ExitStack() as stack:

        def open_watch(address=DRAWING, **options):
            page, wrong = stack.enter_context(clean_page(browser, **options)), []
            stack.enter_context(listening(page, pageerror=lambda error: wrong.append(str(error))))
            page.goto(site + address)
            wait_until(page, LAID_OUT)  # until then, what is laid out above moves the drawing away
            return Watch(page, wrong)

        yield open_watch


@pytest.fixture(scope="module")
def kept(browser, site):
    with contextlib.ExitStack() as tabs:
        open_page = functools.cache(lambda: Watch(*tabs.enter_context(tab(browser, site, DRAWING))[:2]))
        yield open_page


@pytest.fixture
def watch(kept):
    watch = kept()
    watch.page.mouse.move(0, 0)
    watch.element.get_by_role("button", name="Reset").evaluate("button => button.click()")
    return watch


def test_steps_by_keyboard_move_the_row_across_the_keys_and_say_one_sentence_each(watch):
    watch.element.get_by_label("Step", exact=True).focus()
    watch.press("Home")
    assert watch.formula() == "query, component 1:  0·1 + 2·1 + 0·0 + 2·0 = 2"
    watch.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")
    assert watch.formula() == "2·4 + 2·4 + 2·0 = 16"
    watch.said("Dot product for “second” and “second”: 2·4 + 2·4 + 2·0 = 16.")
    watch.page.wait_for_timeout(600)  # the row is on its way
    across = watch.element.locator("svg rect[fill='#9b6bd1']").first.bounding_box()
    key = watch.cell("key of “second”, component 1: 4").bounding_box()
    assert across["x"] < key["x"] < across["x"] + across["width"] < key["x"] + key["width"] + 10
    watch.element.get_by_role("button", name="Step back").click()
    assert watch.formula() == "2·0 + 2·1 + 2·1 = 4"
    watch.element.get_by_role("button", name="Softmax").click()
    assert watch.formula().endswith(" = 0.09")
    watch.said("Softmax for “second” and “third”")
    assert watch.element.locator("svg [aria-label^='weighted value of “third”, component 2:']").count() == 1
    assert not watch.wrong


def test_it_plays_to_the_end_and_speaks_once_a_stage(watch):
    watch.page.emulate_media(reduced_motion="reduce")  # motion is tested above, and would take most of the time here
    watch.said("“second” looks most at “second”")
    watch.page.evaluate("""
        window.heard = [];
        const line = document.querySelector(".attn-summary");
        new MutationObserver(() => window.heard.push(line.textContent)).observe(line, { childList: true });
    """)
    watch.element.get_by_role("button", name="Play").click()
    watch.element.get_by_role("button", name="Pause").wait_for()
    watch.element.get_by_role("button", name="Play").wait_for()
    watch.said("“second” looks most at “second”")
    begins = [sentence.split()[0] for sentence in watch.page.evaluate("window.heard")]
    assert begins == ["Project", "Dot", "Scale", "Softmax", "Weigh", "Add", "“second”"]
    watch.page.emulate_media(reduced_motion="no-preference")
    assert not watch.wrong


def test_a_cell_its_pair_and_its_term_are_marked_together(watch):
    cell, term = (
        watch.cell("key of “third”, component 2: 3"),
        watch.element.locator("svg rect[fill='#c8641c'][height='22.95']").nth(1),
    )
    for look_at in (cell.hover, cell.focus, term.hover):
        look_at()
        assert watch.formula() == "2·2 + 2·3 + 2·1 = 12"
        marked = watch.element.locator("svg text[font-weight='700'][font-size='17']").all_text_contents()
        assert "".join(marked).strip(" +") == "2·3"
        strong = watch.element.locator("svg rect[stroke-width='2.5']:not([aria-pressed=true])")
        labels = strong.evaluate_all("all => all.map(one => one.ariaLabel).filter(Boolean)")
        assert labels == [
            "Look from “third”; hold Shift and use the arrow keys to move it",
            "query of “second”, component 2: 2",
            "key of “third”, component 2: 3",
        ]


def test_the_drawing_is_one_tab_stop_and_arrow_keys_lead_through_it(watch):
    assert watch.element.locator("svg [tabindex='0']").count() == 1
    watch.element.locator("svg [tabindex='0']").focus()
    watch.press("ArrowRight", "Enter")
    watch.said("“third” looks most at")
    watch.address("query=2")
    watch.press("ArrowDown", "ArrowDown")
    assert watch.page.evaluate("document.activeElement.ariaLabel") in (
        "key of “third”, component 2: 3",
        "value of “third”, component 2: 6",
    )
    assert watch.element.locator("svg [tabindex='0']").count() == 1


def test_a_number_is_changed_in_its_place_and_nothing_is_said_before_it_is_done(watch):
    cell = watch.cell("word of “second”, component 1: 0")
    cell.focus()
    watch.press("-")
    watch.page.keyboard.type("1e400")
    watch.press("Enter")
    assert "“-1e400” was given" in watch.element.locator(".attn-message").first.inner_text()
    watch.press("Control+a")
    watch.page.keyboard.type("3")
    assert watch.formula().endswith("= 0.27")  # not yet taken
    watch.press("Enter")
    assert watch.page.evaluate("document.activeElement.ariaLabel") == "word of “second”, component 1: 3"
    watch.cell("query of “second”, component 1: 5").wait_for()
    watch.address("x=1,0,1,0;3,2,0,2;1,1,1,1")
    assert not watch.element.locator(".attn-message").first.inner_text()
    watch.press("Enter")
    watch.page.keyboard.type("9")
    watch.press("Escape")
    watch.cell("word of “second”, component 1: 3").wait_for()


def test_a_link_shows_what_was_on_the_screen(at, watch):
    watch.element.get_by_label("Temperature", exact=True).fill("2")
    watch.element.get_by_label("Similarity").select_option("dot")
    watch.element.get_by_label("Step", exact=True).fill("5")
    watch.element.get_by_role("button", name="Copy link").click()
    watch.element.locator(".attn-linked", has_text=re.compile("link is|Link copied")).wait_for()
    address = "book/" + watch.page.url.partition("/book/")[2]
    assert "temperature=2" in address
    other = at(address)
    other.element.locator("svg text", has_text="÷ 2").wait_for()
    assert other.formula() == watch.formula()
    assert other.element.get_by_label("Similarity").input_value() == "dot"
    assert not other.wrong


def test_a_hand_edited_address_is_answered_and_the_rest_of_it_is_used(at):
    hostile = "#look?query=0&x=<b>&temperature=1e400&words=" + "🙂+שלום+" * 6 + "x" * 20 + "&__proto__=1&step=99999"
    watch = at(CHAPTER + hostile)
    message = watch.element.locator(".attn-message", has_text="The address").inner_text()
    assert "“1e400” was given" in message
    assert "The sentence has 13 words" in message
    watch.said("“first” looks")
    other = at(DRAWING + "#look?words=🙂+שלום+<b>x</b>&query=1")
    other.said("“שלום” looks")
    assert other.element.locator("b").count() == 0
    other.follow("#look?query=2")
    other.said("“third” looks")
    assert not watch.wrong + other.wrong


def test_the_picture_that_is_saved_is_complete_in_itself(watch):
    with watch.page.expect_download() as download:
        watch.element.get_by_role("button", name="Save picture").click()
    assert download.value.suggested_filename == "attention.svg"
    root = ET.parse(download.value.path()).getroot()
    assert "background: rgb" in root.get("style")
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"first", "second", "third", "0.91"} <= set(texts)
    assert not [one for one in root.iter() if one.get("tabindex")]


def test_weights_are_frozen_and_out_of_sight_until_the_reader_has_guessed(at):
    watch = at(address_of("book/self-attention.html", EXPLORER))
    assert watch.element.locator(".attn-stages button:disabled, .attn-player button:disabled").count() >= 8
    assert watch.element.locator("input[type=range]:not(:disabled)").count() == 0
    texts = watch.element.locator("svg text").all_text_contents()
    assert texts.count("?") == 3 * 3
    assert not [one for one in texts if "." in one]
    widths = watch.element.locator("svg path[stroke='#9b6bd1'][stroke-linecap]").evaluate_all(
        "all => all.map(one => one.getAttribute('stroke-width'))"
    )
    assert len(set(widths)) == 1
    assert "not yet known" in watch.cell("weight of “first”: not yet known").get_attribute("aria-label")
    watch.element.get_by_role("radio", name="second").check()
    watch.element.get_by_role("button", name="Show the weights").click()
    assert "0.42" in watch.element.locator("svg text").all_text_contents()


def moments(watch):
    """How many positions a shape takes on its way to the next step."""
    return watch.page.evaluate("""async () => {
        const seen = new Set();
        document.querySelector("[aria-label='Step back']").click();
        for (let n = 0; n < 12; n++) {
            await new Promise(requestAnimationFrame);
            const texts = [...document.querySelectorAll(".attn-canvas text[font-size='17']")];
            seen.add(texts.map(one => one.getAttribute("y")).join());
        }
        return seen.size;
    }""")


def test_steps_move_and_snap_for_those_who_want_less_motion(at):
    assert moments(at()) > 1  # how many more depends on how busy the machine is
    assert moments(at(reduced_motion="reduce")) == 1


def test_a_phone_shows_one_stage_and_a_swipe_leads_to_the_next(at):
    watch = at(CHAPTER, **PHONE)
    assert watch.page.evaluate("document.documentElement.scrollWidth") <= 390
    watch.element.locator(".attn-stages button", has_text="Dot product").tap()
    names = ("q · k", "÷ √3", "softmax")
    shown = lambda: [name for name in names if name in watch.element.locator("svg text").all_text_contents()]  # noqa: E731
    assert shown() == ["q · k"]
    swipe = """dx => {
        const svg = document.querySelector(".attn-canvas svg"), finger = { bubbles: true, pointerType: "touch" };
        svg.dispatchEvent(new PointerEvent("pointerdown", { ...finger, clientX: 200, clientY: 300 }));
        svg.dispatchEvent(new PointerEvent("pointerup", { ...finger, clientX: 200 + dx, clientY: 305 }));
    }"""
    watch.page.evaluate(swipe, -90)
    assert shown() == ["q · k", "÷ √3"]
    assert "second" in watch.element.locator("svg text").all_text_contents()  # the words stay
    watch.page.evaluate(swipe, 90)
    assert shown() == ["q · k"]
    watch.element.get_by_label("Sentence", exact=True).fill(
        "a sentence of twelve words that is wider than a telephone screen"
    )
    watch.element.locator(".attn-canvas.attn-wide").wait_for()
    assert not [one for one in cut_off(watch.page, UNHINTED) if "attn-canvas" in one]
    assert not watch.wrong


def drag(page, grip, by):
    """Press on the middle of an element, move by some pixels, and let go."""
    box = grip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by[0] / 2, y + by[1] / 2)
    page.mouse.move(x + by[0], y + by[1])
    page.wait_for_timeout(100)  # a frame
    page.mouse.up()


def test_a_dragged_arrow_takes_everything_with_it_and_shift_moves_it_by_keyboard(watch):
    grip = watch.element.locator("svg [aria-label^='Key of “third” at 2, 3.']")
    grip.scroll_into_view_if_needed()
    drag(watch.page, grip, (-17, 0))
    moved = watch.element.locator("svg [aria-label^='Key of “third” at']").get_attribute("aria-label")
    across = float(re.search(r"at (\S+), 3\.", moved)[1].replace("−", "-"))
    assert across < 1.9
    watch.cell(f"key of “third”, component 1: {across:.2f}").wait_for()
    watch.address("x=1,0,1,0;0,2,0,2;")
    watch.element.locator("svg [aria-label^='Query of “second”']").focus()
    before = watch.element.locator("svg text", has_text="0.").all_text_contents()
    watch.press("Shift+ArrowLeft", "Shift+ArrowDown")
    assert watch.element.locator("svg text", has_text="0.").all_text_contents() != before
    assert watch.page.evaluate("document.activeElement.ariaLabel").startswith("Query of “second” at 1.")
    watch.element.get_by_role("button", name="Reset").click()
    watch.element.locator("svg [aria-label^='Up: component 2']").click()
    assert watch.element.locator("svg [aria-label^='Up: component 3']").count() == 1
    watch.element.locator("svg [aria-label^='Key of “third” at 2, 1.']").wait_for()
    assert not watch.wrong


def test_words_are_carried_to_another_place_and_rope_turns_them_by_it(at):
    watch = at(address_of("book/positions.html", EXPLORER))
    chip = lambda word: watch.element.locator(f"svg [aria-label^='Look from “{word}”']")  # noqa: E731
    sentence = watch.element.get_by_label("Sentence")
    chip("dog").scroll_into_view_if_needed()
    drag(watch.page, chip("dog"), (chip("man").bounding_box()["x"] - chip("dog").bounding_box()["x"], 0))
    assert sentence.input_value() == "bites man dog"
    watch.cell("key of “dog”, component 1: 2").wait_for()  # its numbers went with it
    watch.said("“dog” looks most at “dog”")
    chip("dog").focus()
    watch.press("Shift+ArrowLeft")
    assert sentence.input_value() == "bites dog man"
    assert watch.page.evaluate("document.activeElement.ariaLabel").startswith("Look from “dog”")
    watch.element.get_by_label("Positions", exact=True).select_option("rope")
    texts = watch.element.locator("svg text")
    assert "query at position 1: 57°" in texts.all_text_contents()  # one radian
    watch.press("Shift+ArrowRight")
    chip("dog").focus()
    watch.press("Shift+ArrowRight")
    assert sentence.input_value() == "bites man dog"
    assert "query at position 2: 115°" in texts.all_text_contents()
    watch.address("words=bites+man+dog")
    assert not watch.wrong


def middle(grip):
    """Return the middle of an element, in pixels of the window."""
    box = grip.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def touch(page, place, by):
    """Put a finger on a place, move it by some pixels in small steps, and lift it."""
    x, y = place
    finger = page.context.new_cdp_session(page)

    def send(kind, *places):
        points = [{"x": x, "y": y} for x, y in places]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.evaluate("new Promise(requestAnimationFrame)")

    send("touchStart", (x, y))
    for n in range(1, 11):
        send("touchMove", (x + by[0] * n / 10, y + by[1] * n / 10))
    send("touchEnd")
    finger.detach()


def test_a_finger_drags_an_arrow_in_the_plane(at):
    watch = at(CHAPTER, **PHONE)
    watch.element.locator(".attn-stages button", has_text="Dot product").tap()
    grip = watch.element.locator("svg [aria-label^='Key of “third” at 2, 3.']")
    grip.scroll_into_view_if_needed()
    before = watch.page.evaluate("scrollY")
    touch(watch.page, middle(grip), (-17, 20))
    moved = watch.element.locator("svg [aria-label^='Key of “third” at']").get_attribute("aria-label")
    across, up = (float(one.replace("−", "-")) for one in re.search(r"at (\S+), (\S+)\. ", moved).groups())
    assert across < 1.9
    assert up < 2.9
    assert watch.page.evaluate("scrollY") == before
    assert not watch.wrong


def test_a_finger_carries_a_word(at):
    watch = at("book/positions.html", **PHONE)
    chip = lambda word: watch.element.locator(f"svg [aria-label^='Look from “{word}”']")  # noqa: E731
    chip("dog").scroll_into_view_if_needed()
    dog, man = middle(chip("dog")), middle(chip("man"))
    touch(watch.page, dog, (man[0] - dog[0], 0))
    assert watch.element.get_by_label("Sentence").input_value() == "bites man dog"
    watch.said("“dog” looks most at “dog”")
    assert not watch.wrong


def test_a_finger_swipes_to_another_stage_and_scrolls_the_page(at):
    watch = at(CHAPTER, **PHONE)
    stage = lambda: watch.element.locator(".attn-stages [aria-current]").inner_text()  # noqa: E731
    watch.element.locator(".attn-stages button", has_text="Dot product").tap()
    canvas = watch.element.locator(".attn-canvas")
    canvas.scroll_into_view_if_needed()
    place = middle(canvas)
    assert stage().endswith("Dot product")
    touch(watch.page, place, (-120, 4))
    assert stage().endswith("Scale")
    touch(watch.page, place, (120, 4))
    assert stage().endswith("Dot product")
    before = watch.page.evaluate("scrollY")
    touch(watch.page, place, (4, -200))
    watch.page.wait_for_function("before => scrollY > before + 100", arg=before)
    assert stage().endswith("Dot product")
    assert not watch.wrong


def test_each_head_has_a_pane_that_leads_to_it(at):
    watch = at(address_of("book/many-heads.html", EXPLORER) + "#look?predict=0&heads=3")
    watch.element.locator("svg [aria-label='Head 2: “dog” looks at “he”: 0.99']").click()
    assert watch.element.get_by_label("Head shown").input_value() == "2"
    watch.cell("weight of “he”: 0.99").wait_for()
    watch.address("head=2")
    assert not watch.wrong


def test_a_mask_is_painted_by_pointer_and_by_keyboard(at):
    watch = at(address_of("book/masks.html", EXPLORER) + "#look?predict=0")
    pair = lambda i, j: watch.element.locator(f"svg [aria-label^='“{i}” looks at “{j}”:']")  # noqa: E731
    pair("train", "the").scroll_into_view_if_needed()
    pair("train", "the").click()
    watch.cell("mask, “the”: −∞").wait_for()
    watch.said("“train” looks most at “train”, with a weight of 1.00.")
    watch.address("flips=1,0")
    pair("the", "left").focus()
    watch.press("Enter")
    assert "hidden" not in pair("the", "left").get_attribute("aria-label")
    drag(
        watch.page,
        pair("left", "the"),
        (pair("left", "left").bounding_box()["x"] - pair("left", "the").bounding_box()["x"], 0),
    )
    assert [("hidden" in pair("left", j).get_attribute("aria-label")) for j in ("the", "left")] == [True, True]
    other = at("book/" + watch.page.url.partition("/book/")[2] + "&heads=4")
    other.cell("mask, “the”: −∞").wait_for()
    other.element.locator(".attn-message", has_text="4 heads cannot share").wait_for()
    longer = at(address_of("book/masks.html", EXPLORER) + "#look?predict=0&mask=padding&words=a+b+c+d")
    assert not [one for one in longer.element.locator("svg text").all_text_contents() if "∞" in one]
    assert not watch.wrong + other.wrong + longer.wrong


def test_nothing_is_lost_at_400_percent_or_in_forced_colours(at):
    watch = at(CHAPTER, viewport=ENLARGED)
    assert watch.page.evaluate("document.documentElement.scrollWidth") <= 320
    watch.element.get_by_role("button", name="Step back").click()
    assert re.search(r"= 7\.8\d$", watch.formula())
    watch.page.evaluate(AXE)
    assert violations_in_every_look(watch.page, EXPLORER) == []
    assert watch.page.evaluate("document.documentElement.scrollWidth") <= 1280
