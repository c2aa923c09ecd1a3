"""The front page: the sentence shows the model's own weights, the road leads everywhere, and progress is kept."""

import ast
import json
import re

import numpy as np
import pytest
from browser_tab import clean_page, tab, wait_until
from bs4 import BeautifulSoup
from pages import ROOT, build_small, lessons, text

from attnlib.minilm import load_minilm

FRONT, CHAPTER = "book/index.html", "book/self-attention.html"
KEY = "attention-course-progress"
NOTEBOOKS = sorted(f"{path.parent.name}/{path.stem}" for path in ROOT.glob("exercises/*/*.ipynb"))


@pytest.fixture
def front(opened):
    page, wrong = opened(FRONT)
    page.locator(".attending-stage svg path").first.wait_for(state="attached")
    yield page
    assert not wrong


def shares(page):
    return [int(one.split()[-1].rstrip("%")) for one in page.locator(".attending-word").all_inner_texts()]


@pytest.mark.slow
def test_the_sentence_shows_the_weights_of_the_model():
    data = json.loads(BeautifulSoup(text(FRONT), "html.parser").select_one(".attending script").string)
    model = load_minilm()
    for one, ending in zip(data["endings"], ("thirsty", "warm"), strict=True):
        tokens, weights = model.attention_weights(f"The cat drank the milk because it was {ending}")
        assert [word.lower() for word in one["words"]][1:-1] == tokens[1:-1]
        assert np.allclose(one["weights"], weights[3, 1], atol=6e-4)


def test_another_ending_and_another_word_change_the_arcs_and_what_is_said(front):
    data = json.loads(BeautifulSoup(text(FRONT), "html.parser").select_one(".attending script").string)
    rows = [np.array(one["weights"]) for one in data["endings"]]
    it = data["endings"][0]["words"].index("it")
    assert shares(front) == [round(100 * w + 1e-9) for w in rows[0][it]]
    paths = front.locator(".arc:not(.flowing)").count()
    assert paths == (np.delete(rows[0][it], it) >= 0.02).sum()
    front.get_by_role("radio", name="warm", exact=True).check()
    assert shares(front) == [round(100 * w + 1e-9) for w in rows[1][it]]
    assert "“it” gives" in front.locator(".attending-said").inner_text()
    front.locator(".attending-word.asking input").focus()
    front.keyboard.press("ArrowLeft")
    assert "“because” gives" in front.locator(".attending-said").inner_text()
    assert front.locator(".attending-word.asking").inner_text().startswith("because")


def test_nothing_goes_on_moving(front):
    wait_until(front, "!document.querySelector('.flowing')")
    assert front.evaluate("document.getAnimations().filter(one => one.timeline === document.timeline).length") == 0


def test_without_motion_nothing_flows(opened):
    page, _ = opened(FRONT)
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("radio", name="warm", exact=True).check()
    assert page.locator(".flowing").first.evaluate("one => getComputedStyle(one).display") == "none"


def test_without_javascript_both_sentences_and_their_shares_are_there(browser, site):
    with clean_page(browser, java_script_enabled=False) as page:
        page.goto(site + FRONT)
        sentences = page.locator(".attending-words").all_inner_texts()
    assert [ending in one for one, ending in zip(sentences, ("thirsty", "warm"), strict=True)] == [True, True]
    assert all(one.count("%") == 11 for one in sentences)


@pytest.mark.slow
def test_it_says_how_many_chapters_and_notebooks_there_are_and_how_long_they_take():
    said = " ".join(BeautifulSoup(text(FRONT), "html.parser").article.get_text().split())
    chapters, notebooks = len(lessons()), len(list(ROOT.glob("solutions/*/*.ipynb")))
    assert f"Each of its {chapters} chapters takes at most half an hour" in said
    assert f"each of its {notebooks} notebooks one and a half to three hours" in said
    assert f"about {(chapters + 3 * notebooks) // 2} to {(chapters + 6 * notebooks) // 2} hours in all" in said


@pytest.mark.slow
def test_the_road_leads_to_every_chapter_in_order_and_counts_its_questions():
    road = BeautifulSoup(text(FRONT), "html.parser").select(".road li")
    assert [f"book/{item.svg['data-chapter']}" for item in road] == lessons()
    for item in road:
        name = item.svg["data-chapter"]
        assert item.a["href"] == f"{name}.html"
        quizzes = re.findall(r'<div class="[^"]*\bquiz\b', text(f"book/{name}.html"))
        assert int(item.svg["data-questions"]) == len(quizzes)


def checks_without_torch(notebook):
    """The names of a notebook's checks that can run in a browser, where there is no torch."""
    cells = json.loads((ROOT / "exercises" / f"{notebook}.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    calls = [ast.parse(source).body[0].value for source in sources if source.startswith(("check(", "check_tests("))]
    return [call.args[0].value for call in calls if "backend" not in {keyword.arg for keyword in call.keywords}]


@pytest.mark.slow
def test_the_road_lists_every_check_that_a_browser_can_run():
    drawings = BeautifulSoup(text(FRONT), "html.parser").select(".road svg")
    listed = {one["data-notebook"]: one["data-checks"].split() for one in drawings if one.has_attr("data-notebook")}
    assert sorted(listed) == NOTEBOOKS
    for notebook, names in listed.items():
        assert names == checks_without_torch(notebook)
        assert len(set(names)) == len(names) > 0


@pytest.mark.slow
def test_a_chapter_without_a_drawing_or_a_link_fails_the_build(tmp_path):
    wrong = "# Front\n\n:::{road}\n1. [](nowhere.md) One.\n1. Two.\n:::\n"
    done = build_small(tmp_path, wrong)
    assert done.returncode
    assert "2 items, but 1 links to chapters" in done.stdout + done.stderr


def save_and_erase(page, file):
    """Save the progress as a file, erase it, and return what was saved."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    download.value.save_as(file)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Erase").click()
    return json.loads(file.read_text())


def test_what_was_read_and_answered_is_kept_shown_saved_loaded_and_erased(browser, site, tmp_path):
    with tab(browser, site, CHAPTER) as (page, wrong, _):
        options = page.locator(".quiz").first.locator("details")
        options.nth(0).evaluate("one => { one.open = true }")
        page.wait_for_function(f"JSON.parse(localStorage.getItem('{KEY}'))?.answers['self-attention']")
        options.nth(1).evaluate("one => { one.open = true }")  # a second look is no second answer
        page.get_by_label("I have read this chapter").check()
        kept = json.loads(page.evaluate(f"localStorage.getItem('{KEY}')"))
        assert list(kept["read"]) == ["self-attention"]
        assert kept["answers"] == {"self-attention": {"0": False}}  # B is right
        page.goto(site + FRONT)
        said = page.locator(".progress-so-far p").first
        assert said.inner_text().startswith("You have read 1 of 18 chapters and answered 1 of ")
        assert "read · 1 of 7 questions answered" in page.locator(".road li.done").inner_text()
        assert save_and_erase(page, tmp_path / "mine.json") == kept
        assert said.inner_text().startswith("You have read 0 of 18")
        (tmp_path / "other.json").write_text('{"read": 3}')
        for name, outcome in (
            ("other.json", "is not a progress file saved from this page"),
            ("mine.json", "Loaded mine.json"),
        ):
            page.locator("input[type=file]").set_input_files(tmp_path / name)
            page.get_by_text(outcome).wait_for()
        assert said.inner_text().startswith("You have read 1 of 18")
        assert not wrong


NOTEBOOK = "02-self-attention/self-attention"
PASSED = {"softmax": True, "dot": True, "cosine": False, "no check of this notebook": True}


def test_checks_passed_in_the_browser_version_are_counted_saved_loaded_and_erased(browser, site, tmp_path):
    older = {"read": {"masks": "2026-01-02"}, "answers": {}}
    kept = {**older, "checks": {NOTEBOOK: PASSED, "no/notebook": {"softmax": True}}}
    store = f"localStorage.getItem('{KEY}') ?? localStorage.setItem('{KEY}', {json.dumps(json.dumps(kept))})"
    with tab(browser, site, FRONT, before=store) as (page, wrong, _):
        said = page.locator(".progress-so-far p").first
        passed = f" you have passed 2 of {sum(len(checks_without_torch(one)) for one in NOTEBOOKS)} checks."
        assert said.inner_text().endswith(passed)
        item = page.locator(".road li", has=page.locator(f"svg[data-notebook='{NOTEBOOK}']"))
        here = f"2 of {len(checks_without_torch(NOTEBOOK))} checks passed"
        assert item.locator(".stage-state").inner_text() == here
        assert page.locator(".stage-state").all_inner_texts() == [here, "read"]
        assert "Only the checks that you pass in the browser version" in page.locator(".progress-so-far").inner_text()
        assert save_and_erase(page, tmp_path / "mine.json") == kept
        assert said.inner_text().startswith("You have read 0 of 18")
        assert "checks" not in said.inner_text()
        (tmp_path / "older.json").write_text(json.dumps(older))
        for name, ending in (("older.json", "first try."), ("mine.json", passed)):
            page.locator("input[type=file]").set_input_files(tmp_path / name)
            page.get_by_text(f"Loaded {name}").wait_for()
            assert said.inner_text().startswith("You have read 1 of 18")
            assert said.inner_text().endswith(ending)
        assert not wrong


@pytest.fixture(scope="module")
def said_of(browser, site):
    """A function that returns what the front page says when the given text is stored as the reader's progress."""
    with tab(browser, site, FRONT) as (page, wrong, _):

        def said(kept):
            page.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [KEY, kept])
            page.reload()
            words = page.locator(".progress-so-far p").first.inner_text()
            assert not wrong
            return words

        yield said


@pytest.mark.parametrize("checks", ["7", "[]", "null", '{"X": 1}', '{"X": {"softmax": "yes"}}', '{"X": ["softmax"]}'])
def test_damaged_checks_are_dropped_and_the_rest_of_the_progress_is_kept(said_of, checks):
    said = said_of(f'{{"read": {{"masks": "2026-01-02"}}, "answers": {{}}, "checks": {checks.replace("X", NOTEBOOK)}}}')
    assert said.startswith("You have read 1 of 18")
    assert said.endswith("first try.")


@pytest.mark.parametrize(
    "kept",
    [
        *("{", "[]", '{"read": [], "answers": {}}', '{"read": {"masks": 7}, "answers": {"x": 1}}'),
        '{"read": {}, "answers": {}, "checks": {"__proto__": {"softmax": true}, "constructor": {"dot": true}}}',
    ],
)
def test_damaged_progress_is_no_progress(said_of, kept):
    assert said_of(kept).startswith("You have read 0 of 18")


def test_a_browser_that_keeps_nothing_says_so(browser, site):
    full = f"""const set = Storage.prototype.setItem; Storage.prototype.setItem = function (key, value) {{
        if (key === "{KEY}") throw new DOMException("full", "QuotaExceededError");
        set.call(this, key, value);
    }}"""
    with tab(browser, site, CHAPTER, before=full) as (page, wrong, _):
        page.get_by_label("I have read this chapter").check()
        assert "does not allow" in page.locator(".chapter-read [role=status]").inner_text()
        assert not wrong
