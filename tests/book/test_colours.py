"""What captions say of colours holds in light and in dark mode, and code is louder than its comments in both."""

import re

import pytest
from pages import ROOT, lessons, source

from attnlib.plotting import COLOURS

CSS = (ROOT / "book" / "_static" / "course.css").read_text(encoding="utf-8")
CAPTION = re.compile(r"^( +)caption: \|\n((?:\1 .*\n)+)", re.MULTILINE)
ALT = re.compile(r"\balt=(.*(?:\n +f?\".*)*)")
SHADE = re.compile(r"\b(?:dark|bright|light|pale|black|white)r?(?:er|est)?\b", re.IGNORECASE)
UNMARKED = re.compile(r"(?<![\[.])\b(?:blue|red)\b", re.IGNORECASE)
LIGHTNESS = """() => {
    const parts = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = colour => parts(colour).reduce((sum, one, i) => sum + [0.2126, 0.7152, 0.0722][i] * one, 0);
    const of = selector => light(getComputedStyle(document.querySelector(selector)).color);
    const pre = '.bd-article .cell_input pre', frame = document.querySelector('.bd-article .cell_input:has(.c1)');
    return {paper: light(getComputedStyle(document.querySelector(pre)).backgroundColor), code: of(pre),
        comment: of(`${pre} .c1`), frame: light(getComputedStyle(frame).borderTopColor)};
}"""


def shades(text):
    """What captions and descriptions of figures call dark or light: in the other scheme it is the opposite."""
    said = [caption for _, caption in CAPTION.findall(text)] + ALT.findall(text)
    return [found for one in said for found in SHADE.findall(one)]


@pytest.mark.parametrize("name", lessons())
def test_a_caption_says_what_holds_in_light_and_in_dark(name):
    assert shades(source(name)) == [], "say what is coloured, faint or strong"
    captions = "\n".join(caption for _, caption in CAPTION.findall(source(name)))
    assert UNMARKED.findall(captions) == [], "write [red]{.red}, which has the colour"


def test_a_planted_shade_is_found():
    text = '    caption: |\n      The dark blocks.\n---\nshow(figure, alt="One row. "\n     f"Two paler cells.")\n'
    assert shades(text) == ["dark", "paler"]


def test_a_colour_that_a_caption_names_is_that_of_the_figures():
    named = dict(re.findall(r"\.bd-article \.(blue|red) \{ text-decoration-color: (#\w+); \}", CSS))
    assert named == {"blue": COLOURS[0], "red": COLOURS[1]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_comments_are_quieter_than_code(opened, scheme):
    page, _ = opened("book/many-heads.html", scheme=scheme)
    found = page.evaluate(LIGHTNESS)
    assert abs(found["comment"] - found["paper"]) < abs(found["code"] - found["paper"])
    assert abs(found["frame"] - found["paper"]) < 0.5 * abs(found["code"] - found["paper"])
