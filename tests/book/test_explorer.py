"""The explorer and the head view on the built pages: every control by keyboard, its numbers against attnlib's, axe."""

import contextlib
import functools
import gzip
import json
import re

import numpy as np
import pytest
from _tools.chromium import new_context
from _tools.explorer import WEIGHT_STEPS, attended, explorer, packed
from axe import AXE, go_dark, violations
from browser_tab import USUAL_SIZE, clean_page, tab
from only_element import address_of
from open_element import come_near
from pages import HTML, pages, text

import attnlib
from attnlib.minilm import load_minilm

pytestmark = pytest.mark.slow

BY_HAND = {"x": [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]}
MATRICES = {
    "wq": [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    "wk": [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
    "wv": [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
}
DOG = {"q": [[0] * 3] * 3 + [[1] * 3], "k": [[6, 0, 0], [0, 6, 0], [0, 0, 6], [0] * 3], "v": [[1] * 3] + [[0] * 3] * 3}
MASKED = {"q": np.log([[2, 3, 1], [1, 2, 5], [1, 3, 4]]), "k": np.eye(3), "v": np.eye(3)}
WHO = {"x": [[2, 0, 1, 0], [0, 1, 0, 1], [1, 1, 2, 0]]}
PLAIN = {"similarity": "scaled_dot", "scale": None, "bandwidth": 1.0, "heads": 1, "mask": "none", "length": None}
PLAIN |= {"positions": "none"}
HEADS = "looking-into-a-real-model"  # the page that shows all heads of a model
EXAMPLES = {  # the numbers of the page's text, and where the controls stand at first
    "self-attention": (BY_HAND, {}),
    "queries-keys-values": (BY_HAND | MATRICES, {}),
    "many-heads": (DOG, {"similarity": "dot"}),
    "masks": (MASKED, {"similarity": "dot", "mask": "causal"}),
    "positions": (WHO, {}),
}
CONTROLS = {
    "self-attention": {"similarity", "width"},
    "queries-keys-values": {"similarity"},
    "many-heads": {"similarity", "heads"},
    "masks": {"similarity", "heads", "mask"},
    "positions": {"similarity", "heads", "mask", "positions"},
}


# The name of a control.
NAME_OF = "const nameOf = one => one.ariaLabel ?? (one.labels?.[0] ?? one).textContent;"


# The arrow keys that move the focus to the control with a given name: none if it has the focus already, some if both
# controls are numbers in the same table, and null if only Tab leads there.
ARROWS_TO = """name => {
  NAME_OF
  if (nameOf(document.activeElement) === name) return [];
  const fields = [...document.activeElement.closest(".attn-numbers")?.querySelectorAll("input") ?? []];
  const place = one => [one.closest("tr").rowIndex, one.closest("td").cellIndex];
  const found = fields.find(one => one.ariaLabel === name);
  if (!found) return null;
  const [from, to] = [place(document.activeElement), place(found)];
  const times = (n, less, more) => Array(Math.abs(n)).fill(n < 0 ? less : more);
  return [...times(to[0] - from[0], "ArrowUp", "ArrowDown"), ...times(to[1] - from[1], "ArrowLeft", "ArrowRight")];
}""".replace("NAME_OF", NAME_OF)


# Focuses the first control with a given name, starting from the field of the sentence.
FOCUS = """(sentence, name) => {
  NAME_OF
  const controls = [...sentence.closest("attention-explorer").querySelectorAll("input, select, button")];
  controls.slice(controls.indexOf(sentence)).find(one => one.checkVisibility() && nameOf(one) === name).focus();
}""".replace("NAME_OF", NAME_OF)


class Explorer:
    """One explorer on an open page, used as a reader does: by the keyboard."""

    def __init__(self, page, wrong, reached=None):
        self.page, self.wrong = page, wrong
        self.reached = set() if reached is None else reached  # the names of the controls that Tab has reached
        self.element = page.locator("attention-explorer")
        come_near(page, "attention-explorer")
        self.element.locator("details").evaluate_all("all => all.forEach(one => (one.open = true))")
        self.sentence = self.element.get_by_label("Sentence")
        self.sentence.focus()

    def tab_to(self, name):
        """Press Tab until the control of that name has the focus; within a table, use the arrow keys.

        Once Tab has reached a control, later calls focus it directly, because pressing Tab takes most of a test's time.
        """
        if name in self.reached:
            self.sentence.evaluate(FOCUS, name)
            return
        self.sentence.focus()
        for _ in range(100):
            keys = self.page.evaluate(ARROWS_TO, name)
            if keys is not None:
                break
            self.page.keyboard.press("Tab")
        else:
            raise AssertionError(f"Tab does not reach {name}")
        for key in keys:
            self.page.keyboard.press(key)
        self.reached.add(name)

    def choose(self, name, option):
        """Go through the options of a control by the arrow keys."""
        self.tab_to(name)
        self.page.keyboard.press("Home")
        chosen = "document.activeElement.selectedOptions[0].textContent"
        for _ in range(12):
            if self.page.evaluate(chosen) == option:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{name} has no {option}")

    def type(self, name, value):
        self.tab_to(name)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")
        keyboard = self.page.keyboard
        enter = keyboard.type if len(str(value)) < 20 else keyboard.insert_text  # long text is pasted
        enter(str(value))

    def reveal(self):
        """Switch "Predict first" off, where it is on."""
        switch = self.element.get_by_role("switch")
        if switch.is_checked():
            switch.focus()
            self.page.keyboard.press("Space")
        return self

    def table(self, caption):
        """The numbers of the table with such a caption, as they are shown."""
        table = self.element.locator("table:visible", has=self.page.locator("caption", has_text=re.compile(caption)))
        rows = table.locator("tbody tr").evaluate_all(
            "rows => rows.map(r => [...r.querySelectorAll('td')].map(c => c.textContent))"
        )
        return np.array([[float(cell.replace("−", "-").replace("∞", "inf")) for cell in row] for row in rows])

    def agrees(self, tables, **settings):
        """Whether weights (their rows sum to 1) and context are those of attnlib, as far as two decimals say."""
        tables = {name: np.asarray(table, float) for name, table in tables.items()}
        weights, context = attended(tables, **PLAIN | settings)
        shown = self.table("^Weights")
        head = int(self.element.get_by_label("Head shown").input_value() if settings.get("heads", 1) > 1 else 0)
        near(shown[:, :-1], weights[head])
        near(shown[:, -1], weights[head].sum(-1))
        near(self.table("^Context"), context)
        assert not self.wrong

    def summary(self, words):
        self.element.locator(".attn-summary", has_text=words).wait_for()

    def message(self):
        return " ".join(self.element.locator(".attn-message").all_text_contents()).strip()

    def vectors(self):
        fields = self.element.locator(".attn-numbers tbody tr")
        return fields.evaluate_all("rows => rows.map(r => [...r.querySelectorAll('input')].map(f => Number(f.value)))")


def near(shown, right):
    np.testing.assert_allclose(shown, right, rtol=0, atol=0.00501)


@pytest.fixture(scope="module")
def kept(browser, site):
    """Pages with only an explorer, or the view of all heads, that stay open from test to test.

    Each comes with the errors on it and the names of the controls that Tab has reached.
    """
    with contextlib.ExitStack() as tabs:

        def open_page(chapter):
            tag = dict(PLACES)[chapter]
            page, wrong, _ = tabs.enter_context(tab(browser, site, address_of(f"book/{chapter}.html", tag)))
            come_near(page, tag)
            return page, wrong, set()

        yield functools.cache(open_page)


@pytest.fixture
def at(kept):
    """The explorer of a chapter, as its page opens it: that Reset brings it back is tested below, on fresh pages."""

    def open_explorer(chapter):
        explorer = Explorer(*kept(chapter))
        explorer.page.mouse.move(0, 0)
        explorer.element.get_by_role("button", name="Reset").evaluate("button => button.click()")
        return explorer

    return open_explorer


@pytest.mark.parametrize("chapter", EXAMPLES)
def test_it_opens_on_the_numbers_of_the_page(at, chapter):
    tables, settings = EXAMPLES[chapter]
    at(chapter).reveal().agrees(tables, **settings)


@pytest.mark.parametrize("chapter", CONTROLS)
def test_it_offers_the_controls_that_the_reader_has_met(at, chapter):
    labels = {"similarity": "Similarity", "width": "Numbers per word", "heads": "Heads", "mask": "Mask"}
    labels["positions"] = "Positions"
    shown = at(chapter).element
    assert {name for name, label in labels.items() if shown.get_by_label(label, exact=True).count()} == CONTROLS[
        chapter
    ]


@pytest.mark.parametrize("chapter", EXAMPLES)
def test_without_javascript_there_is_a_table_of_the_same_weights(browser, site, chapter):
    tables, settings = EXAMPLES[chapter]
    weights, _ = attended({name: np.asarray(table, float) for name, table in tables.items()}, **PLAIN | settings)
    with clean_page(browser, java_script_enabled=False) as page:
        page.goto(site + address_of(f"book/{chapter}.html", "attention-explorer"))
        cells = page.locator("attention-explorer table td").all_inner_texts()
    assert cells[0] == "query ↓ key →"
    near(np.array(cells[1:], float), weights[0].ravel())


@pytest.mark.parametrize(
    ("option", "settings"),
    [
        ("dot product", {"similarity": "dot"}),
        ("scaled dot product", {}),
        ("cosine", {"similarity": "cosine"}),
        ("Gaussian", {"similarity": "gaussian"}),
    ],
)
def test_similarities(at, option, settings):
    explorer = at("self-attention").reveal()
    explorer.choose("Similarity", option)
    explorer.agrees(BY_HAND, **settings)


@pytest.mark.parametrize("scale", [-2.0, 0.0, 0.25])
def test_a_scale_of_ones_own(at, scale):
    explorer = at("self-attention").reveal()
    explorer.type("Scale", scale)
    explorer.agrees(BY_HAND, scale=scale)
    explorer.type("Scale", "")
    explorer.agrees(BY_HAND)


def test_a_bandwidth_of_ones_own(at):
    explorer = at("self-attention").reveal()
    explorer.choose("Similarity", "Gaussian")
    explorer.type("Bandwidth", 3)
    explorer.agrees(BY_HAND, similarity="gaussian", bandwidth=3)
    explorer.type("Bandwidth", 0)
    assert "“0” was given" in explorer.message()
    explorer.agrees(BY_HAND, similarity="gaussian", bandwidth=3)


@pytest.mark.parametrize("width", [1, 3, 8])
def test_vectors_of_another_width(at, width):
    explorer = at("self-attention").reveal()
    explorer.choose("Numbers per word", str(width))
    vectors = np.array(explorer.vectors())
    assert vectors.shape == (3, width)
    np.testing.assert_array_equal(vectors[:, :4], np.array(BY_HAND["x"])[:, :width])
    explorer.agrees({"x": vectors})


def test_an_edited_matrix_of_values_changes_the_context_alone(at):
    explorer = at("queries-keys-values")
    before = explorer.table("^Weights")
    for i, row in enumerate(MATRICES["wv"]):
        for j, value in enumerate(row):
            field = explorer.element.locator("table", has_text="Matrix W_V").locator("input").nth(3 * i + j)
            field.focus()
            explorer.page.keyboard.press("Control+a")
            explorer.page.keyboard.type(str(2 * value))
    np.testing.assert_array_equal(explorer.table("^Weights"), before)
    explorer.agrees(BY_HAND | MATRICES | {"wv": 2 * np.array(MATRICES["wv"])})


def test_an_edited_vector_changes_every_step(at):
    explorer = at("queries-keys-values")
    explorer.type("first, component 2", "−2.5")
    x = np.array(BY_HAND["x"], float)
    x[0, 1] = -2.5
    explorer.agrees({"x": x} | MATRICES)
    for name, matrix in zip(("Queries", "Keys", "Values"), MATRICES.values(), strict=True):
        near(explorer.table(f"^{name}"), x @ matrix)
    near(explorer.table("^Scores"), x @ MATRICES["wq"] @ np.transpose(MATRICES["wk"]) @ x.T / 3**0.5)


def test_heads(at):
    explorer = at("many-heads").reveal()
    explorer.choose("Heads", "3")
    for head in "012":
        explorer.choose("Head shown", head)
        explorer.agrees(DOG, similarity="dot", heads=3)
    explorer.summary("Head 2: “dog” looks most at “he”, with a weight of 0.99.")
    explorer.choose("Heads", "2")
    assert "2 heads cannot share 3 columns evenly" in explorer.message()
    assert explorer.element.get_by_label("Heads", exact=True).get_attribute("aria-invalid") == "true"
    explorer.agrees(DOG, similarity="dot")  # the arrow keys came by 1, which was good
    explorer.choose("Heads", "1")
    assert not explorer.message()
    explorer.agrees(DOG, similarity="dot")


@pytest.mark.parametrize(
    ("option", "mask", "length"),
    [
        ("none", "none", None),
        ("causal", "causal", None),
        ("padding", "padding", 2),
        ("causal and padding", "both", 2),
        ("padding", "padding", 0),
    ],
)
def test_masks(at, option, mask, length):
    explorer = at("masks").reveal()
    explorer.choose("Mask", option)
    if length is not None:
        explorer.type("Words before the padding", length)
    explorer.agrees(MASKED, similarity="dot", mask=mask, length=length)
    weights, _ = attended(
        {name: np.asarray(t, float) for name, t in MASKED.items()},
        **PLAIN | {"similarity": "dot", "mask": mask, "length": length},
    )
    masked = explorer.element.locator("caption", has_text="after the mask")
    assert masked.is_visible() == (mask != "none")  # else it would only repeat the scores
    if mask != "none":
        np.testing.assert_array_equal(np.isneginf(explorer.table("after the mask")), weights[0] == 0)


def test_a_word_that_may_attend_to_nothing_is_said_to(at):
    explorer = at("masks").reveal()
    explorer.choose("Mask", "padding")
    explorer.type("Words before the padding", 0)
    explorer.summary("There is nothing “train” can attend to: all its weights are 0, and so is its context.")
    assert not explorer.table("^Weights").any()
    explorer.type("Words before the padding", 1.5)
    assert "a whole number is needed" in explorer.message()
    explorer.type("Words before the padding", 4)
    assert "a number from 0 to 3 is needed" in explorer.message()


@pytest.mark.parametrize(
    ("option", "positions"),
    [("none", "none"), ("sinusoidal, added", "sinusoidal"), ("RoPE", "rope"), ("ALiBi", "alibi")],
)
@pytest.mark.parametrize("heads", [1, 2])
def test_positions(at, option, positions, heads):
    explorer = at("positions")
    explorer.choose("Heads", str(heads))
    explorer.choose("Positions", option)
    explorer.choose("Mask", "causal")
    explorer.agrees(WHO, positions=positions, heads=heads, mask="causal")


def test_rope_says_that_it_needs_pairs_and_comes_into_force_where_it_gets_them(at):
    explorer = at("positions")
    explorer.choose("Heads", "4")
    explorer.choose("Positions", "RoPE")
    assert "RoPE rotates pairs" in explorer.message()
    explorer.agrees(WHO, heads=4, positions="sinusoidal")  # the arrow keys came by it
    explorer.choose("Heads", "2")
    assert not explorer.message()
    explorer.agrees(WHO, heads=2, positions="rope")


def test_what_positions_make_of_the_words_is_shown(at):
    explorer = at("positions")
    x = np.array(WHO["x"], float)
    explorer.choose("Positions", "sinusoidal, added")
    near(explorer.table("^Words plus positions"), x + attnlib.sinusoidal_positions(*x.shape))
    _, context = attended({"x": x}, **PLAIN | {"positions": "sinusoidal"})
    near(explorer.table("^Context: weights times words plus positions"), context)
    explorer.choose("Positions", "RoPE")
    near(explorer.table("^Words turned"), attnlib.apply_rope(x, *attnlib.rope_tables(np.arange(3), 4)))
    explorer.choose("Positions", "ALiBi")
    assert not explorer.element.locator("caption", has_text="Words ").is_visible()


def test_a_complaint_ends_with_its_field_or_its_cause(at):
    explorer = at("positions")
    explorer.type("Scale", "abc")
    assert "Scale: “abc” was given" in explorer.message()
    explorer.choose("Similarity", "cosine")
    assert not explorer.message()
    explorer.choose("Mask", "padding")
    explorer.type("Words before the padding", 5)
    assert "Words before the padding: “5” was given, but a number from 0 to 3 is needed" in explorer.message()
    explorer.type("Sentence", "a b c d e f")
    assert not explorer.message()
    explorer.agrees({"x": explorer.vectors()}, similarity="cosine", mask="padding", length=5)


def test_a_sentence_that_is_typed_anew_keeps_its_padding_and_the_word_that_is_looked_at(at):
    explorer = at("positions")
    explorer.choose("Mask", "padding")
    explorer.type("Words before the padding", 2)
    explorer.type("Sentence", "man bites dog")  # letter by letter: for a while there is one word
    explorer.agrees({"x": explorer.vectors()}, mask="padding", length=2)
    explorer.summary("“dog” looks most at")


def test_equal_words_are_told_apart(at):
    explorer = at("positions")
    explorer.type("Sentence", "the dog bites the man")
    names = explorer.element.locator("table", has_text="Weights:").locator("tbody button").all_text_contents()
    assert names == [f"query: {word}" for word in ("the₁", "dog", "bites", "the₂", "man")]
    assert explorer.element.get_by_label("the₂, component 1", exact=True).count() == 1


def test_words_keep_their_vectors_when_the_sentence_changes(at):
    explorer = at("positions")
    explorer.type("dog, component 4", 7)
    explorer.type("Sentence", "man bites dog")
    assert explorer.vectors() == [[1, 1, 2, 0], [0, 1, 0, 1], [2, 0, 1, 7]]
    explorer.agrees({"x": explorer.vectors()})


def test_new_words_get_numbers_from_their_letters_and_always_the_same(at):
    explorer = at("positions")
    explorer.type("Sentence", "zebra bites zebra")
    one, bites, other = explorer.vectors()
    assert one == other != bites
    assert bites == [0, 1, 0, 1]
    assert all(-2 <= value <= 2 for value in one)
    again = at("positions")
    again.type("Sentence", "a zebra")
    assert again.vectors()[1] == one
    again.agrees({"x": again.vectors()})


@pytest.mark.parametrize("sentence", ["x", "a b c d e f g h i j k l", '<b>&amp;</b> "q" \' {} ∞ 日本 ??'])
def test_any_sentence_of_one_to_twelve_words(at, sentence):
    explorer = at("positions")
    explorer.type("Sentence", sentence)
    names = explorer.element.locator("table", has_text="Weights:").locator("tbody button").all_text_contents()
    assert names == [f"query: {word}" for word in sentence.split()]
    explorer.agrees({"x": explorer.vectors()})
    assert not explorer.message()


@pytest.mark.parametrize(("sentence", "words"), [("", 0), ("   ", 0), ("a " * 13, 13), ("word " * 200, 200)])
def test_too_few_and_too_many_words(at, sentence, words):
    explorer = at("positions")
    explorer.type("Sentence", sentence)
    assert f"The sentence has {words} words, but it must have 1 to 12." in explorer.message()
    assert explorer.sentence.get_attribute("aria-invalid") == "true"
    explorer.type("Sentence", "dog bites man")
    assert not explorer.message()
    assert explorer.sentence.get_attribute("aria-invalid") is None


def test_a_word_that_is_too_long_is_refused(at):
    explorer = at("positions")
    explorer.type("Sentence", f"dog {'x' * 41}")
    assert "One word has 41 letters, but at most 40 are allowed." in explorer.message()
    explorer.type("Sentence", f"dog {'x' * 40}")
    assert not explorer.message()


@pytest.mark.parametrize("bad", ["abc", "1e308", "", "1,5", "NaN", "Infinity", "--1"])
def test_what_is_no_number_is_marked_and_the_last_good_value_stays(at, bad):
    explorer = at("positions")
    explorer.type("dog, component 1", 3)
    explorer.type("dog, component 1", bad)
    field = explorer.element.get_by_label("dog, component 1", exact=True)
    assert field.get_attribute("aria-invalid") == "true"
    said = explorer.page.locator(f"#{field.get_attribute('aria-describedby')}").inner_text()
    assert (f"“{bad}” was given" if bad else "Nothing was given") in said
    assert (
        f"a number from −1000 to 1000 is needed{', with a decimal point, not a comma' if ',' in bad else ''}." in said
    )
    x = np.array(WHO["x"], float)
    x[0, 0] = {"1e308": 1000, "1,5": 1}.get(bad, 3)  # while they were typed, 1e3 and 1 were good
    explorer.type("dog, component 2", 0)
    explorer.agrees({"x": x})
    explorer.type("dog, component 1", 5)
    assert field.get_attribute("aria-invalid") is None
    assert not explorer.message()


def test_large_numbers_and_a_negative_scale(at):
    explorer = at("positions")
    x = np.array(WHO["x"], float)
    for j, value in enumerate((1000, -1000, 999, 1000)):
        explorer.type(f"dog, component {j + 1}", value)
        x[0, j] = value
    explorer.agrees({"x": x})
    explorer.type("Scale", -3)
    explorer.agrees({"x": x}, scale=-3)


def guess(explorer, word):
    explorer.tab_to("Similarity")
    radio = explorer.element.get_by_role("radio", name=word, exact=True)
    radio.focus()
    explorer.page.keyboard.press("Space")
    explorer.page.keyboard.press("Enter")


def test_scores_and_weights_are_hidden_until_a_guess_and_a_right_one_is_explained(at):
    explorer = at("masks")
    assert explorer.element.locator(".attn-panel:visible caption").all_inner_texts() == []
    explorer.summary("The scores and weights of “train” are hidden until you have guessed.")
    guess(explorer, "train")
    verdict = explorer.element.locator(".attn-verdict")
    assert verdict.inner_text() == (
        "Right: “train” gets 0.67. The next is “the”. The scores are 0.69 and 0.00; "
        "the difference of 0.69 makes one weight e^0.69 = 2.00 times as large as the other."
    )
    explorer.agrees(MASKED, similarity="dot", mask="causal")


def test_a_wrong_guess_is_told_so_with_the_numbers(at):
    explorer = at("masks")
    guess(explorer, "the")
    verdict = explorer.element.locator(".attn-verdict").inner_text()
    assert verdict.startswith("No: “the” gets 0.33, and “train” gets 0.67.")
    assert "e^0.69 = 2.00 times" in verdict


def test_a_guess_that_is_masked_is_told_so(at):
    explorer = at("masks")
    guess(explorer, "left")
    verdict = explorer.element.locator(".attn-verdict").inner_text()
    assert verdict == "No: “left” is masked. Its score is −∞, so its weight is 0; “train” gets 0.67."


def test_of_several_heads_the_one_is_revealed_that_was_guessed(at):
    explorer = at("many-heads")
    explorer.choose("Heads", "3")
    guess(explorer, "Bark")
    verdict = explorer.element.locator(".attn-verdict").inner_text()
    assert "The next are “cute”, “he” and “dog”." in verdict
    explorer.summary("Head 0: “dog” looks most at “Bark”, with a weight of 0.99.")
    assert "Head 1" not in explorer.element.locator(".attn-summary").inner_text()
    _, context = attended(
        {name: np.asarray(t, float) for name, t in DOG.items()}, **PLAIN | {"similarity": "dot", "heads": 3}
    )
    near(explorer.table("^Context of head 0"), context[:, :1])


def test_a_difference_that_no_power_holds_is_told_by_its_length(at):
    explorer = at("self-attention")
    explorer.type("first, component 1", 1000)
    explorer.type("Scale", 1000)
    guess(explorer, "second")
    verdict = explorer.element.locator(".attn-verdict").inner_text()
    assert "Infinity" not in verdict
    assert re.search(r"one weight more than 10\^\d\d\d,\d\d\d times as large as the other", verdict)


def test_either_of_two_that_tie_is_right(at):
    for word in ("second", "third"):
        explorer = at("self-attention")
        guess(explorer, word)
        assert (
            explorer.element.locator(".attn-verdict").inner_text().startswith("Right: “second” and “third” get 0.42.")
        )


def test_nobody_may_be_the_right_answer(at):
    explorer = at("masks")
    explorer.choose("Mask", "padding")
    explorer.type("Words before the padding", 0)
    guess(explorer, "none: there is nothing it can attend to")
    assert explorer.element.locator(".attn-verdict").inner_text().startswith("Right: every score of “train” is −∞")


def test_no_guess_reveals_nothing_and_a_change_asks_again(at):
    explorer = at("masks")
    explorer.element.get_by_role("button", name="Show the weights").focus()
    explorer.page.keyboard.press("Enter")
    assert explorer.element.locator(".attn-verdict").inner_text() == "Choose a word first."
    assert not explorer.element.locator("caption", has_text="Weights:").is_visible()
    guess(explorer, "the")
    assert explorer.element.locator("caption", has_text="Weights:").is_visible()
    explorer.page.keyboard.press("Enter")  # the focus is on the button that asks about the next word
    assert "Which word will “left” give the most weight?" in explorer.element.locator("legend").inner_text()
    assert not explorer.element.locator("caption", has_text="Weights:").is_visible()
    guess(explorer, "left")
    explorer.choose("Mask", "none")
    assert not explorer.element.locator("caption", has_text="Weights:").is_visible()


def test_rows_are_looked_at_by_arrow_keys_and_are_said_in_words(at):
    explorer = at("positions")
    weights = explorer.element.locator("table", has_text="Weights:")
    assert weights.locator("button[tabindex='0']").count() == 1
    weights.locator("button[tabindex='0']").focus()
    explorer.page.keyboard.press("ArrowDown")
    explorer.page.keyboard.press("ArrowDown")
    explorer.page.keyboard.press("ArrowDown")  # there is no further row
    explorer.summary("“man” looks most at “man”, with a weight of 0.69, then “dog” 0.25, “bites” 0.06.")
    looked = explorer.element.locator(".attn-panel:visible .attn-looked th").all_text_contents()
    assert looked == ["query: man"] * 3  # in every table
    explorer.page.keyboard.press("Home")
    explorer.summary("“dog” looks most at “dog”")
    explorer.page.keyboard.press("End")
    explorer.summary("“man” looks most at “man”")


def test_a_row_under_the_pointer_is_looked_at_and_what_is_read_aloud_does_not_chatter(at):
    explorer = at("positions")
    explorer.element.locator("table", has_text="Weights:").locator("tbody tr").nth(1).hover()
    assert explorer.element.locator(".attn-panel:visible .attn-looked").count() == 3
    explorer.summary("“bites” looks most at “bites”")
    explorer.page.evaluate("""
        window.said = 0;
        new MutationObserver(() => window.said++).observe(document.querySelector(".attn-summary"), { childList: true });
        const rows = document.querySelectorAll(".attn-panel:last-child tbody tr");
        for (let n = 0; n < 12; n++) rows[n % 3].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    """)
    explorer.summary("“man” looks most at “man”")
    assert explorer.page.evaluate("window.said") == 1
    explorer.page.mouse.move(0, 0)
    explorer.summary("“dog” looks most at “dog”")  # again the row that was picked


@pytest.fixture
def fresh(opened, kept):
    """The explorer of a chapter, on a page that no other test uses.

    Controls that Tab has already reached on the kept page are focused directly here, without pressing Tab.
    """

    def open_explorer(chapter):
        page, wrong = opened(address_of(f"book/{chapter}.html", "attention-explorer"))
        return Explorer(page, wrong, kept(chapter)[2])

    return open_explorer


def test_reset_brings_back_the_example(fresh):
    explorer = fresh("positions")
    explorer.type("Sentence", "some thing else entirely")
    explorer.choose("Heads", "2")
    explorer.choose("Positions", "ALiBi")
    explorer.choose("Mask", "causal and padding")
    explorer.type("Words before the padding", "x")
    explorer.choose("Similarity", "Gaussian")
    explorer.type("Bandwidth", 2)
    explorer.tab_to("Reset")
    explorer.page.keyboard.press("Enter")
    assert explorer.sentence.input_value() == "dog bites man"
    assert not explorer.message()
    assert not explorer.element.locator("[aria-invalid]").count()
    explorer.agrees(WHO)


def test_what_is_changed_is_kept_in_the_address_alone(fresh):
    explorer = fresh("positions")
    address = explorer.page.url
    explorer.type("Sentence", "man bites dog")
    explorer.page.wait_for_url(f"{address}#look?words=man+bites+dog*")
    kept = "JSON.stringify([Object.keys(localStorage), Object.keys(sessionStorage)])"
    assert "attn" not in explorer.page.evaluate(kept)
    explorer.page.reload()
    explorer = Explorer(explorer.page, explorer.wrong)
    assert explorer.sentence.input_value() == "man bites dog"
    assert explorer.vectors() == [[1, 1, 2, 0], [0, 1, 0, 1], [2, 0, 1, 0]]
    explorer.element.get_by_role("button", name="Reset").click()
    explorer.page.wait_for_url(address)
    assert explorer.sentence.input_value() == "dog bites man"


def test_every_table_and_every_field_has_a_name(at):
    explorer = at("queries-keys-values")
    unnamed = """
        [...document.querySelectorAll("attention-explorer table")].filter(t =>
            !t.caption.textContent || [...t.querySelectorAll("th")].some(th => !th.scope || !th.textContent)).length
    """
    assert explorer.page.evaluate(unnamed) == 0
    heads = explorer.element.locator("table", has_text="Weights:").locator("th").all_text_contents()
    assert heads == ["key: first", "key: second", "key: third", "sum", "query: first", "query: second", "query: third"]


# ---- the head view

SENTENCES = [
    "the train left the station on time",
    "Bark is very cute and he is a dog",
    "I cashed the check at the bank",
    "The cat sat because it was tired",
    "The animal did not cross the street because it was too tired.",
    "The animal did not cross the street because it was too wide.",
]


@pytest.fixture(scope="module")
def minilm():
    return load_minilm()


@pytest.fixture
def view(kept):
    """The view of all heads, as the page first shows it."""
    page, wrong, _ = kept(HEADS)
    heads = page.locator("attention-heads")
    heads.get_by_label("Sentence", exact=True).select_option(label=SENTENCES[0])
    heads.locator(".attn-small").nth(2).click()
    page.mouse.move(0, 0)
    return page, heads, wrong


def numbers(view):
    rows = view.locator(".attn-panel tbody tr").evaluate_all(
        "rows => rows.map(r => [...r.querySelectorAll('td')].map(c => Number(c.textContent)))"
    )
    return np.array(rows)


def test_every_head_of_every_layer_is_chosen_by_keyboard_and_shows_the_models_weights(view, minilm):
    page, heads, wrong = view
    _, weights = minilm.attention_weights(SENTENCES[0])
    heads.locator(".attn-small[tabindex='0']").focus()
    for key, times in (("ArrowUp", 6), ("ArrowLeft", 12)):
        for _ in range(times):
            page.keyboard.press(key)
    for layer in range(6):
        for step in range(12):
            head = step if layer % 2 == 0 else 11 - step
            shown = numbers(heads)
            np.testing.assert_allclose(shown[:, :-1], weights[layer, head], rtol=0, atol=0.0061)
            np.testing.assert_array_equal(shown[:, -1], 1)
            if step < 11:
                page.keyboard.press("ArrowRight" if layer % 2 == 0 else "ArrowLeft")
        page.keyboard.press("ArrowDown")
    assert not wrong


def test_sentences_are_chosen_by_keyboard(view, minilm):
    page, heads, _ = view
    select = heads.get_by_label("Sentence", exact=True)
    select.focus()
    page.keyboard.press("Home")
    for sentence in SENTENCES:
        tokens, weights = minilm.attention_weights(sentence)
        shown = heads.locator(".attn-panel tbody button").all_text_contents()
        assert [re.sub("[₀-₉]+$", "", name) for name in shown] == [f"query: {t}" for t in tokens]
        assert len(set(shown)) == len(tokens)
        np.testing.assert_allclose(numbers(heads)[:, :-1], weights[0, 2], rtol=0, atol=0.0061)
        page.keyboard.press("ArrowDown")


def habits(w):
    """What a head does with its weights, (T, T), measured in NumPy."""
    return {
        "the token itself": np.diagonal(w).mean(), "the token before": np.diagonal(w, -1).mean(),
        "the token after": np.diagonal(w, 1).mean(), "the first token": w[1:, 0].mean(),
        "the last token": w[:-1, -1].mean(),
    }  # fmt: skip


def test_the_name_of_a_head_says_what_it_does(view, minilm):
    _, heads, _ = view
    _, weights = minilm.attention_weights(SENTENCES[0])
    names = heads.locator(".attn-small").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert len(names) == 72
    for name, w in zip(names, weights.reshape(72, *weights.shape[2:]), strict=True):
        strongest, share = max(habits(w).items(), key=lambda one: one[1])
        if share > 0.505:
            assert f"mostly {strongest}, " in name
            assert abs(float(re.search(r"with (\d\.\d+) of the weight", name)[1]) - share) < 0.0061
        elif share < 0.495:
            entropy = -(w * np.log(np.maximum(w, 1e-12))).sum(-1)
            assert abs(float(re.search(r"over ([\d.]+) tokens", name)[1]) - np.exp(entropy).mean()) < 0.15
    assert names[2].startswith("Layer 0, head 2: mostly the token before, with 1.00 of the weight")


def test_a_small_picture_has_a_pixel_for_each_weight(view, minilm):
    _, heads, _ = view
    heads.get_by_label("Sentence", exact=True).select_option(label=SENTENCES[1])
    _, weights = minilm.attention_weights(SENTENCES[1])
    drawn = heads.locator("canvas").evaluate_all(
        "all => all.map(c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data])"
    )
    shades = np.array(drawn).reshape(6, 12, *weights.shape[2:], 4)
    np.testing.assert_allclose(shades[..., 3] / 255, weights, rtol=0, atol=0.006)


def test_on_a_phone_the_corner_of_the_overview_keeps_its_words_whole(opened):
    page, _ = opened(f"book/{HEADS}.html", width=390)
    come_near(page, "attention-heads")
    corner = page.locator(".attn-overview thead td").bounding_box()
    assert corner["width"] > 30  # "layer ↓"
    assert corner["height"] < 60  # not a letter a line


def test_a_token_under_the_pointer_shows_its_row(view):
    _, heads, _ = view
    heads.locator(".attn-panel tbody tr").nth(5).hover()
    heads.locator(".attn-summary", has_text="Layer 0, head 2: “station” looks most at “the₂”").wait_for()
    assert heads.locator(".attn-looked").count() == 1


def test_without_javascript_there_is_a_table_of_one_head(browser, site, minilm):
    _, weights = minilm.attention_weights(SENTENCES[0])
    with clean_page(browser, java_script_enabled=False) as page:
        page.goto(f"{site}book/{HEADS}.html")
        cells = page.locator("attention-heads table td").all_inner_texts()
    near(np.array(cells[1:], float), weights[0, 2].ravel())


def test_packed_weights_still_sum_to_one_and_are_near():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(11, 0.2), size=(3, 7))
    whole = np.array([int(n or 0) for n in packed(weights).split(" ")]).reshape(weights.shape)
    np.testing.assert_array_equal(whole.sum(-1), WEIGHT_STEPS)
    assert abs(whole / WEIGHT_STEPS - weights).max() < 1 / WEIGHT_STEPS


def test_the_weights_of_all_heads_are_few_and_no_part_of_the_page():
    page, file = text(f"book/{HEADS}.html"), f"explorer/book-{HEADS}.js"
    (named,) = re.findall(r'<attention-heads data-scripts="([^"]*)"><script type="application/json"></script>', page)
    scripts = [one.partition("?")[0].removeprefix("../_static/") for one in named.split()]
    assert scripts == [file, "explorer/explorer.js"]
    script = (HTML / "_static" / file).read_text(encoding="utf-8")
    assert len(gzip.compress(script.encode(), 6)) < 100_000
    (data,) = json.loads(re.search(r"const weights = (.*);", script)[1])
    assert len(json.loads(data)["sentences"]) == len(SENTENCES)


# ---- the same for everybody

MODEL_PAGES = (HEADS, "looking-into-a-decoder")
PLACES = [
    *((chapter, "attention-explorer") for chapter in EXAMPLES),
    *((page, "attention-heads") for page in MODEL_PAGES),
]


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def place(request, browser, site):
    """A page with only its interactive element at phone width, together with its errors and the element's tag."""
    chapter, tag = request.param
    with tab(browser, site, address_of(f"book/{chapter}.html", tag), width=360) as (page, wrong, _):
        come_near(page, tag)
        yield page, wrong, tag


def test_a_phone_scrolls_tables_and_not_the_page(place):
    page, wrong, tag = place
    if tag == "attention-explorer":
        explorer = Explorer(page, wrong).reveal()
        explorer.sentence.fill("a sentence of twelve words with incomprehensibilities for a small telephone screen")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.querySelector('.attn-scroll')).overflowX") == "auto"
    sliders = page.locator(f"{tag} input[type=range]:visible").all()
    assert all(slider.bounding_box()["height"] >= 24 for slider in sliders)  # the least that WCAG 2.2 asks for
    assert bool(sliders) == (tag == "attention-explorer")


def test_axe_finds_nothing_in_what_a_reader_has_changed(place):
    """How it opens is looked at with the rest of its page: on a phone by day, wide at night. Here, the other way."""
    page, wrong, tag = place
    page.set_viewport_size(USUAL_SIZE)
    if tag == "attention-explorer":
        page.get_by_role("button", name="Reset", exact=True).click()
        explorer = Explorer(page, wrong).reveal()
        explorer.element.locator(".attn-numbers input").first.fill("nothing good")
    page.locator(f"{tag} .attn-panel:visible tbody button").nth(1).focus()
    page.locator(f"{tag} .attn-panel:visible tbody tr").first.hover()
    page.evaluate(AXE)
    assert violations(page, tag) == []
    page.set_viewport_size({"width": 360, "height": 740})
    go_dark(page)
    assert violations(page, tag, again=True) == []
    assert not wrong


def test_axe_would_find_a_fault(opened):
    page, _ = opened(address_of("book/positions.html", "attention-explorer"))
    come_near(page, "attention-explorer")
    page.locator("attention-explorer details").evaluate_all("all => all.forEach(one => (one.open = true))")
    page.evaluate(AXE)
    page.evaluate("document.querySelector('.attn-numbers input').removeAttribute('aria-label')")
    assert [one.split()[0] for one in violations(page, "attention-explorer")] == ["label"]


@pytest.mark.parametrize(("chapter", "tag"), PLACES)
def test_nothing_moves_by_itself(kept, chapter, tag):
    page, *_ = kept(chapter)
    moving = """
        tag => [...document.querySelectorAll(tag + " *")].map(e => getComputedStyle(e))
            .filter(s => (s.animationName !== "none" && !s.animationTimeline.startsWith("scroll(")) ||
                s.transitionDuration.split(", ").some(t => t !== "0s")).length
    """
    assert page.evaluate(moving, tag) == 0


def test_the_script_is_loaded_where_it_is_needed_and_nowhere_else():
    explorers = {f"book/{place}.html" for place, _ in PLACES}
    tiles, residual = {"book/tiles-and-the-gpu.html"}, {"book/transformer.html"}
    having = {
        r"<attention-(explorer|heads)\b": explorers,
        r"explorer/explorer\.js": explorers,
        r"<attention-tiles\b": tiles,
        r"explorer/tiles\.js": tiles,
        r"<attention-residual\b": residual,
        r"explorer/residual\.js": residual,
    }
    for what, where in having.items():
        assert {name for name in pages() if re.search(what, text(name))} == where, what


def test_all_pages_share_one_script_hold_none_of_it_and_load_it_when_the_reader_comes_near(opened):
    places = {place: text(f"book/{place}.html") for place, _ in PLACES}
    assert {len(re.findall("explorer/explorer.js", page)) for page in places.values()} == {1}
    assert len({re.search(r"explorer\.js\?v=(\w+)", page)[1] for page in places.values()}) == 1
    page, wrong = opened("book/masks.html", width=390)
    loaded = page.locator("script[src*='explorer/']")
    assert page.locator("attention-explorer").bounding_box()["y"] > 2 * 900
    assert loaded.count() == 0
    come_near(page, "attention-explorer")
    assert loaded.count() == 1
    assert not wrong
    assert not [place for place, _ in PLACES if "customElements.define(" in text(f"book/{place}.html")]


@pytest.mark.parametrize(("chapter", "tag"), PLACES[-3:])  # all explorers load in the same way, as tested above
def test_it_starts_on_a_page_that_is_opened_as_a_file(browser, chapter, tag):
    with new_context(browser) as context:
        page = context.new_page()
        page.goto((HTML / "book" / f"{chapter}.html").as_uri(), wait_until="domcontentloaded")
        come_near(page, tag)


# ---- what Python writes


def test_no_word_ends_the_script_that_holds_it():
    html = explorer("</script><b>&", {"x": [[1.0]]}, caption="<i>", controls=[], query="</script><b>&")._html()
    assert html.count("</script>") == 1
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(data)["words"] == ["</script><b>&"]
    assert "<b>" not in html
    assert "<i>" not in html


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"controls": ["colour"]}, "colour is not a setting"),
        ({"sharpness": 2}, "sharpness is not a setting"),
        ({"tables": {"x": [[1.0]]}}, "2 words"),
        ({"similarity": "dott"}, "'dott', but one of dot, scaled_dot, cosine, gaussian"),
        ({"mask": "causl"}, "'causl', but one of none, causal, padding, both"),
        ({"positions": "alibii"}, "'alibii', but one of none, sinusoidal, rope, alibi"),
        ({"query": "z"}, "query is 'z', but a word of the sentence is needed: a b"),
        ({"heads": 5}, "heads is 5, but one of 1, 2, 3, 4 is needed"),
        ({"bandwidth": 0}, "bandwidth is 0, but a number from 0.01 to 1000 is needed"),
        ({"length": 13}, "length is 13, but a number from 0 to 12 is needed"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    right = {"tables": {"x": [[1.0], [2.0]]}, "caption": "Two words", "controls": [], "query": "a"}
    with pytest.raises(ValueError, match=message):
        explorer("a b", **right | wrong)
