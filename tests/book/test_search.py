"""The search finds what stands in the book: from a server, and from a folder without one."""

import pytest
from pages import HTML
from playwright.sync_api import expect

HITS = "#search-results li a"


def search(page, words):
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill(words)
    page.keyboard.press("Enter")
    expect(page.locator("#search-results .search-summary")).to_contain_text("found", timeout=300_000)


@pytest.mark.parametrize(
    ("words", "chapter"),
    [
        ("softmax", "Self-attention without parameters"),
        ("sliding window", "Generating, one word at a time"),
        ("bahdanau", "Bibliography"),
    ],
)
def test_a_search_lists_the_page_that_it_should(opened, words, chapter):
    page, wrong = opened("book/notation.html")
    search(page, words)
    page.wait_for_load_state("networkidle")
    assert chapter in page.locator(HITS).all_inner_texts()
    assert not wrong


def test_an_excerpt_is_from_the_text_of_the_page(opened):
    page, wrong = opened("search.html?q=causal+mask")
    page.wait_for_selector("#search-results li .context")
    expect(page.locator("#search-results .search-summary")).to_contain_text("found", timeout=300_000)
    excerpts = page.locator("#search-results .context").all_inner_texts()
    assert any("causal" in one.lower() for one in excerpts)
    assert not [one for one in excerpts if "Contents" in one or ".pdf" in one]
    assert not wrong


def test_a_hit_opens_with_the_word_highlighted(opened):
    page, wrong = opened("index.html")
    search(page, "softmax")
    page.locator(HITS, has_text="Self-attention without parameters").first.click()
    page.wait_for_selector(".bd-article .highlighted")
    words = page.locator(".bd-article .highlighted").all_text_contents()
    assert {word.lower() for word in words} == {"softmax"}
    assert not wrong


def test_a_word_that_is_nowhere_is_not_found(opened):
    page, _ = opened("search.html?q=rhododendron")
    expect(page.locator("#search-results")).to_contain_text("did not match any documents")


def test_the_search_works_from_a_folder(browser):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((HTML / "book" / "masks.html").as_uri())
        search(page, "softmax")
        hit = page.locator(HITS, has_text="Self-attention without parameters").first
        hit.click()
        page.wait_for_selector(".bd-article .highlighted")
        assert page.url.startswith((HTML / "book" / "self-attention.html").as_uri())
