"""The words in figures are in the font of the page, and they fit whether that font is wide or narrow."""

import re

import pytest
from cut_off import DRAW_PICTURES
from pages import ROOT, lessons, text

from attnlib._page_svg import FORMULA_SIZE

DRAWN_PAGES = [name for name in lessons() if 'class="picture"' in text(f"{name}.html")]
USUAL = "DejaVu Sans"  # the font that matplotlib measures with
# This makes words a tenth narrower, as in Roboto. The usual font is about as wide as any system font.
NARROW = ".picture text { letter-spacing: -0.06em }"
IN_USUAL_FONT = f":root {{ --pst-font-family-base: '{USUAL}' !important }}"
OPEN_FOLDED = "document.querySelectorAll('.bd-article details:has(.picture)').forEach(one => { one.open = true })"
ALL_VISIBLE = "* { content-visibility: visible !important }"
FONTS = """selector => [...new Set(
    [...document.querySelectorAll(selector)].map(one => getComputedStyle(one).fontFamily))]"""
# For each picture, the labels that extend beyond it and the pairs of labels that overlap, by more than a pixel each.
PLACES = """[...document.querySelectorAll('.picture > svg')].map((picture, number) => {
    const frame = picture.getBoundingClientRect();
    const labels = [...picture.querySelectorAll('text, g[transform*="scale("]')].map((one, i) => {
        const name = `${number}: ${i} ${one.textContent || 'a formula'}`;
        return {name, box: one.getBoundingClientRect()};
    });
    const leaves = ({box}) => box.left < frame.left - 1 || box.right > frame.right + 1 ||
        box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    const shared = (one, other, from, to) => Math.min(one[to], other[to]) - Math.max(one[from], other[from]) > 1;
    const overlap = (one, other) => shared(one, other, 'left', 'right') && shared(one, other, 'top', 'bottom');
    const pairs = labels.flatMap((one, i) => labels.slice(i + 1).filter(other => overlap(one.box, other.box))
        .map(other => `${one.name} | ${other.name}`));
    return {outside: labels.filter(leaves).map(({name}) => name), pairs};
})"""

PLANT = """document.querySelector('.picture > svg').insertAdjacentHTML('beforeend',
    '<text x=-9 y=60>far out</text><text x=60 y=60>planted</text><text x=70 y=60>planted</text>')"""


def open_all(opened, name):
    page, _ = opened(f"{name}.html")
    page.evaluate(OPEN_FOLDED)
    page.evaluate(DRAW_PICTURES)
    page.add_style_tag(content=ALL_VISIBLE + IN_USUAL_FONT)
    return page


def faults(page):
    """The labels that extend beyond their pictures, and the pairs that overlap."""
    found = page.evaluate(PLACES)
    return [[one for picture in found for one in picture[kind]] for kind in ("outside", "pairs")]


@pytest.mark.parametrize("name", ["book/masks", "book/a-model-that-writes"])
def test_the_words_of_figures_have_the_font_of_the_page(opened, name):
    page, _ = opened(f"{name}.html")
    page.evaluate(DRAW_PICTURES)
    (of_page,) = page.evaluate(FONTS, ".bd-article > section > p")
    assert page.evaluate(FONTS, ".picture text:not([font-family])") == [of_page]
    assert page.locator(".picture text").count() > 50


def test_code_in_figures_has_the_font_of_code(opened):
    page, _ = opened("book/a-model-that-writes.html")
    page.evaluate(DRAW_PICTURES)
    (of_code,) = page.evaluate(FONTS, ".bd-article pre")
    assert page.evaluate(FONTS, ".picture text[font-family]") == [of_code]


def test_formulas_are_enlarged_as_much_as_on_the_page():
    css = (ROOT / "book" / "_static" / "formulas.css").read_text(encoding="utf-8")
    assert re.search(r"\nmath \{[^}]*font-size: ([\d.]+)em", css)[1] == str(FORMULA_SIZE)


def test_planted_labels_that_extend_beyond_their_picture_or_overlap_are_found(opened):
    page = open_all(opened, "book/masks")
    assert faults(page)[0] == []
    before = faults(page)[1]
    page.evaluate(PLANT)
    outside, pairs = faults(page)
    assert [one.split(" ", 2)[2] for one in outside] == ["far out"]
    assert [one.count("planted") for one in {*pairs} - {*before}].count(2) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN_PAGES)
def test_labels_fit_in_a_wide_font_and_in_a_narrow_one(opened, name):
    page = open_all(opened, name)
    outside, pairs = faults(page)
    assert outside == []
    page.add_style_tag(content=NARROW)
    outside, now = faults(page)
    assert outside == []
    assert {*now} - {*pairs} == set()
