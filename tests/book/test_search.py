"""The search finds the section that explains something: from a server, and from a folder without one."""

import json
import re
from hashlib import sha256

import pytest
from _ext.section_search import entries_of, with_weights
from _tools.chromium import new_context
from axe import AXE, go_dark, violations
from pages import HTML, ROOT, chapters, text
from playwright.sync_api import expect
from search_queries import WANTED

HITS = "#search-results li a"
PAGES = "#search-results li"
LARGEST = 400_000  # bytes, compressed, of all that a search loads and other pages do not
# dist/umd/index.js of minisearch 7.2.0 on npm, without its last line, which names a source map.
MINISEARCH = "4e02b9fa52f244c377d737c7d06cda6bce967d137254e8532d6c79f68469bef3"
PAGE = """<article class="bd-article"><section id="top"><h1>The page<a class="headerlink" href="#top">#</a></h1>
<div class="in-browser"><p>Do it in your browser.</p></div>
<p>It has <strong>weights</strong> of <math alttext="\\sqrt{d_k}"><mi>d</mi></math> and
<code class="literal">softmax</code>.</p>
<section id="part"><h2>A part</h2>
<div class="cell"><div class="cell_input"><pre>print("secret code")</pre></div>
<div class="cell_output"><div class="output"><pre>secret output</pre></div>
<figure><div class="output"><div class="picture">secret drawing</div></div>
<figcaption><p>A caption.</p></figcaption></figure></div></div>
<div class="math"><math alttext="\\operatorname{softmax}(x) \\mathbf{x}"><mi>x</mi></math></div>
<details class="fold answer"><summary>Show the answer</summary><p>Four.</p></details>
<dl class="glossary"><dt id="term-head">head</dt><dd><p>One of several.</p></dd></dl>
<dl class="py"><dt class="sig" id="attnlib.dot"><span class="descname">dot</span>(q, k)</dt>
<dd><p>The product.</p></dd></dl>
<div class="citation" id="id7"><span class="label">[6]</span>
<p>Ada Byron. Notes on a machine. In <em>Memoirs</em>.</p></div>
</section></section></article>"""


def search(page, words):
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill(words)
    page.keyboard.press("Enter")
    expect(page.locator("#search-results .search-summary")).to_contain_text("found")


# Indexing the book takes a second, so one page does all searches with one index.
KEEP_SEARCH = """
    const listen = document.addEventListener;
    document.addEventListener = function (name, act, ...rest) {
        if (document.currentScript?.src.includes("/search.js")) window.searchAgain = act;
        listen.call(this, name, act, ...rest);
    };
"""
SEARCH_AGAIN = """words => {
    MiniSearch.prototype.addAll = () => {};
    history.replaceState(null, "", `?q=${encodeURIComponent(words)}`);
    document.querySelector("#search-results").replaceChildren();
    searchAgain();
}"""


def first_hit(page, words):
    expect(page.locator("#search-results .search-summary")).to_contain_text(f"found for “{words}”")
    hits = page.locator(HITS)
    return re.sub(r"^book/|\?[^#]*", "", hits.first.get_attribute("href")) if hits.count() else None


def test_an_entry_is_a_section_without_code_formulas_and_labels():
    entries = {one["url"]: one for one in entries_of(PAGE, "book/page", "What it is about.")}
    assert set(entries) == {
        "book/page.html",
        *(f"book/page.html#{name}" for name in ("part", "term-head", "attnlib.dot", "id7")),
    }
    top, part = entries["book/page.html"], entries["book/page.html#part"]
    assert (top["title"], top["about"], top["bold"], top["formulas"]) == (
        "The page", "What it is about.", "weights", "sqrt",
    )  # fmt: skip
    assert top["text"] == "It has weights of … and softmax."
    assert (part["title"], part["page"], part["formulas"]) == ("A part", "The page", "softmax")
    assert part["text"] == "A caption. Four."
    assert entries["book/page.html#term-head"]["text"] == "One of several."
    assert entries["book/page.html#attnlib.dot"]["title"] == "dot"
    source = entries["book/page.html#id7"]
    assert (source["title"], source["text"]) == ("Ada Byron", "Notes on a machine. In Memoirs.")


def test_what_repeats_or_is_only_looked_up_weighs_less():
    def entry(url, title):
        return {"url": url, "title": title}

    entries = [
        entry("book/masks.html#nan", "NaN"),
        entry("book/glossary.html#term-nan", "NaN"),
        *(entry(f"book/{name}.html#summary", "Summary") for name in "abcd"),
        entry("exercises/05-masking/masking.html", "Exercises: masks"),
        entry("exercises/05-masking/masking.html#nan", "Find the nan"),
    ]
    weights = {one["url"]: (one["weight"], one["reference"]) for one in with_weights(entries)}
    assert weights["book/masks.html#nan"] == (1, False)
    assert weights["book/glossary.html#term-nan"] == (0.15, True)
    assert weights["book/a.html#summary"] == (0.5, False)
    assert weights["exercises/05-masking/masking.html"] == (0.5, False)
    assert weights["exercises/05-masking/masking.html#nan"] == (0.2, False)


@pytest.mark.slow
def test_every_page_is_searched_and_every_address_is_there():
    script = text("_static/search-entries.js")
    entries = json.loads(script.removeprefix("window.SEARCH_ENTRIES = ").rstrip(";\n"))
    assert {one["url"].partition(".html")[0] for one in entries} == set(chapters())
    for page in ("book/masks", "book/glossary", "book/api-layers"):
        ids = set(re.findall(r'\bid="([^"]+)"', text(f"{page}.html")))
        asked = {one["url"].partition("#")[2] for one in entries if one["url"].startswith(f"{page}.html#")}
        assert len(asked) > 10
        assert asked <= ids
    prose = " ".join(one["text"] for one in entries)
    assert not re.search(r"\\\(|\\frac|\\sqrt|import numpy|Show the answer", prose)


def test_the_library_is_the_one_that_npm_publishes():
    vendored = (ROOT / "book" / "_static" / "vendor" / "minisearch.js").read_bytes()
    assert b"MIT" in vendored or b"Permission is hereby granted" in vendored
    assert sha256(vendored.partition(b"*/\n")[2]).hexdigest() == MINISEARCH


@pytest.mark.slow
def test_the_section_that_a_reader_wants_comes_first(opened):
    page, wrong = opened("search.html", before=KEEP_SEARCH)
    some, *others = WANTED
    page.locator(".bd-search-container input").fill(some)
    page.keyboard.press("Enter")
    first = {some: first_hit(page, some)}
    page.route("**/search-entries.js", lambda route: route.fulfill(body=""))  # the page keeps the entries it has loaded
    for words in others:
        page.evaluate(SEARCH_AGAIN, words)
        first[words] = first_hit(page, words)
    missed = {words: hit for words, hit in first.items() if hit not in WANTED[words]}
    assert missed == {}
    assert not wrong


def test_a_search_also_finds_the_bibliography(opened):
    page, wrong = opened("book/notation.html")
    search(page, "bahdanau")
    assert any("Bibliography" in one for one in page.locator(PAGES).all_inner_texts())
    assert not wrong


def test_an_excerpt_is_from_the_text_of_the_page(opened):
    page, wrong = opened("search.html?q=causal+mask")
    page.wait_for_selector("#search-results li .context")
    excerpts = page.locator("#search-results .context").all_inner_texts()
    assert any("causal" in one.lower() for one in excerpts)
    assert not [one for one in excerpts if "Contents" in one or ".pdf" in one]
    marked = {one.lower() for one in page.locator("#search-results mark").all_inner_texts()}
    assert {"causal", "mask"} <= marked
    assert not wrong


@pytest.mark.parametrize("where", ["this tab", "a new tab"])
def test_a_hit_opens_its_section_with_the_word_highlighted(opened, where):
    page, wrong = opened("index.html")
    search(page, "softmax")
    hit = page.locator(PAGES, has_text="Self-attention without parameters").locator("a").first
    if where == "this tab":
        hit.click()
    else:
        with page.context.expect_page() as new:
            hit.click(button="middle")
        page = new.value
    page.wait_for_selector(".bd-article .highlighted")
    words = page.locator(".bd-article .highlighted").all_text_contents()
    assert {word.lower() for word in words if word} == {"softmax"}  # in a drawing, a rectangle lies behind the word
    assert page.evaluate("document.getElementById(location.hash.slice(1)).tagName") == "SECTION"
    assert "highlight" not in page.url
    assert not wrong


def test_a_word_that_occurs_nowhere_is_neither_found_nor_inserted_as_html(opened):
    words = "<img rhododendron=rhododendron>"
    page, wrong = opened(f"search.html?q={words}")
    expect(page.locator("#search-results")).to_contain_text(f"Nothing was found for “{words}”")
    assert page.locator(HITS).count() == page.locator("#search-results img").count() == 0
    assert not wrong


def test_the_search_works_from_a_folder(browser):
    with new_context(browser) as context:
        page = context.new_page()
        page.goto((HTML / "book" / "masks.html").as_uri())
        search(page, "softmax")
        hit = page.locator(PAGES, has_text="Self-attention without parameters").first
        expect(hit.locator(".context")).to_contain_text("softmax", ignore_case=True)
        hit.locator("a").click()
        page.wait_for_selector(".bd-article .highlighted")
        assert page.url.partition("#")[0] == (HTML / "book" / "self-attention.html").as_uri()


def test_results_are_announced_and_reached_by_keyboard(opened):
    page, _ = opened("search.html?q=softmax")
    expect(page.get_by_role("status")).to_contain_text("sections found for “softmax”")
    first = page.get_by_role("list", name="Sections found").get_by_role("link").first
    page.locator(".bd-search-container input").focus()
    page.keyboard.press("Tab")
    expect(first).to_be_focused()
    page.evaluate(AXE)
    assert violations(page) == []
    go_dark(page)
    assert violations(page) == []


def test_a_search_loads_little_and_other_pages_load_nothing_of_it(opened, browser, site):
    ours = ("search-entries.js", "minisearch.js", "language_data.js", "search.js")
    with new_context(browser) as context:
        page, loads = context.new_page(), []
        page.on("requestfinished", lambda request: loads.append(request))
        page.goto(f"{site}book/masks.html")
        page.wait_for_load_state("networkidle")
        assert not [load.url for load in loads if load.url.partition("?")[0].endswith(ours)]
        page.goto(f"{site}search.html")
        page.wait_for_load_state("networkidle")
        assert not [load.url for load in loads if load.url.endswith("search-entries.js")]
        page.goto(f"{site}search.html?q=softmax")
        page.wait_for_selector(HITS)
        bytes_loaded = {load.url: load.sizes()["responseBodySize"] for load in loads if load.url.endswith(ours)}
        assert len(bytes_loaded) == len(ours)
        assert 10_000 < sum(bytes_loaded.values()) < LARGEST


def test_a_reader_is_told_when_the_index_does_not_arrive(browser, site):
    with new_context(browser) as context:
        page = context.new_page()
        page.route("**/search-entries.js", lambda route: route.abort())
        page.goto(f"{site}search.html?q=softmax")
        expect(page.get_by_role("status")).to_contain_text("could not be loaded")
