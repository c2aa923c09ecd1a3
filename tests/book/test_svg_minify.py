"""A picture made small looks as matplotlib drew it, and shares its page with others."""

import io
import re
from html import unescape

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _ext.html_fixes import fix_markup
from _tools.chromium import new_context
from _tools.svg_minify import OUTLINE_TRANSFORM, minify_pictures
from pages import ROOT, pages, text

from attnlib.plotting import Picture, head_grid, head_view, heatmap, use_style

CSS = (ROOT / "book" / "_static" / "course.css").read_text(encoding="utf-8")


def html(figure):
    return Picture(figure, "a picture")._repr_mimebundle_()["text/html"]


def curves():
    figure, ax = plt.subplots(figsize=(5, 3))
    ax.plot([0, 1, 2.5], [1, 0.123456, 0.7], marker="o", linestyle="--", linewidth=7, label=r"$x_i^{2}$ of two words")
    ax.fill_between([0, 1, 2.5], [0.2, 0.1, 0.4], hatch="//", alpha=0.4)
    ax.fill_between(np.linspace(0, 2, 60), np.repeat([0.6, 0.9, 0.5], 20), 0.8, step="post")
    ax.set(title="√2 — a − b", xlabel="no  letters", yscale="log")
    ax.legend()
    return figure


@pytest.fixture(params=["table", "many small tables", "lines", "curves"])
def figure(request):
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 4))
    words = ["the", "cat", "has", "slept"], ["der", "Kater", "hat", "sehr", "“gut”"]
    with plt.rc_context():
        use_style()
        drawn = {
            "table": lambda: heatmap(weights[0, 0], *words, title="a table").figure,
            "many small tables": lambda: head_grid(weights, *words),
            "lines": lambda: head_view(weights[0], *words).figure,
            "curves": curves,
        }[request.param]()
        yield drawn
        plt.close(drawn)


def seen(browser, picture):
    look = {"viewport": {"width": 700, "height": 900}, "device_scale_factor": 2}
    with new_context(browser, **look, java_script_enabled=False) as context:
        page = context.new_page()
        page.set_content(f"<!doctype html><style>{CSS}</style>{picture}")
        return plt.imread(io.BytesIO(page.locator(".picture").screenshot()))[..., :3]


def test_a_small_picture_looks_the_same(browser, figure):
    whole = html(figure)
    small = fix_markup(whole)
    assert len(small) < 0.75 * len(whole)
    before, after = seen(browser, whole), seen(browser, small)
    assert before.shape == after.shape
    assert before.std() > 0.05, "there is something to see"
    difference = abs(before - after)
    assert difference.mean() < 0.002  # a place moves by a two-hundredth of a point
    assert (difference.max(axis=-1) > 0.25).mean() < 0.0005


@pytest.mark.parametrize(("width", "height", "turned"), [(390, 844, True), (844, 390, False), (1280, 900, False)])
def test_an_upright_phone_turns_a_wide_picture_and_shows_it_larger(browser, width, height, turned):
    wide, tall = (drawing(*size) for size in ((7, 3), (4, 4)))
    with new_context(browser, viewport={"width": width, "height": height}, java_script_enabled=False) as context:
        page = context.new_page()
        page.set_content(f"<!doctype html><style>{CSS}</style>{wide}{tall}")
        boxes = [page.locator(selector).bounding_box() for selector in (".picture >> nth=0", ".picture svg >> nth=0")]
        assert boxes[0] == pytest.approx(boxes[1], abs=1) or not turned, "the box is as large as what is in it"
        assert (boxes[1]["height"] > boxes[1]["width"]) == turned
        assert max(boxes[1]["height"], boxes[1]["width"]) > 500
        square = page.locator(".picture svg >> nth=1").bounding_box()
        assert square["width"] == pytest.approx(square["height"], abs=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("line", "short"),
    [
        ("M 0 0 L 0 0 L 1 0 L 2 0 L 2 5", "M 0 0 l 2 0 0 5"),
        ("M 0 0 L 0 5 L 0 3", "M 0 0 l 0 5 0 -2"),  # it turns back, so its point is a corner
        ("M 1 1 L 1 1", "M 1 1 l 0 0"),  # a dot
        ("M 0.1 0.2 L 0.3 0.1 L 1 1 z", "M 0.1 0.2 l 0.2 -0.1 0.7 0.9 z"),
        ("M 1 2 L 3 4 M 9 9 L 8 8 C 1 2 3 4 5 6 L 5 5", "M 1 2 l 2 2 M 9 9 l -1 -1 C 1 2 3 4 5 6 L 5 5"),
    ],
)
def test_a_line_keeps_its_corners_as_steps(line, short):
    picture = f'<div class="picture"><svg xmlns="http://www.w3.org/2000/svg"><path d="{line}"/></svg></div>'
    assert re.findall(r' d="([^"]*)"', minify_pictures(picture)) == [short]


def drawing(wide, high, points=10, label="letters"):
    with plt.rc_context({"figure.constrained_layout.use": False}):
        figure = plt.figure(figsize=(wide, high))
        figure.add_axes((0, 0, 1, 1)).set(xticks=[], yticks=[])
        figure.text(0.5, 0.5, label, size=points)
        plt.close(figure)
        return fix_markup(html(figure))


@pytest.mark.parametrize("label", ["letters", "$l$ in a formula", "large: 99\n$l$ in a formula"])
@pytest.mark.parametrize(("size", "turned"), [((7, 3, 10.5), True), ((7, 3, 11), False), ((7, 6.5, 8), False)])
def test_a_picture_is_turned_where_its_letters_would_be_too_small(size, turned, label):
    # Upright, 504 points become 382 pixels: 10.5 points 7.96, and 11 points 8.3. The last would gain nothing.
    assert (" data-turns " in drawing(*size, label)) == turned


@pytest.mark.parametrize("label", ["<pad> & “x”", "a  b", "two\nlines"])
def test_words_stay_as_they_are(label):
    words = re.findall("<text[^>]*>([^<]*)</text>", drawing(4, 3, label=label))
    assert [unescape(line).replace("\xa0", " ") for line in words] == label.split("\n")


def test_two_pictures_share_their_letters_and_nothing_else():
    with plt.rc_context():
        use_style()
        table = heatmap([[1.0]], ["cat"], ["cat"], title=r"$x_i^{2}$ of two words, $QK^\top$")
        both = minify_pictures("<p>" + html(curves()) + html(table) + "</p>")
        plt.close("all")
    outlines = re.findall(rf'<path id="(letter-\d+)" d="([^"]+)" transform="{re.escape(OUTLINE_TRANSFORM)}"/>', both)
    assert len({d for _, d in outlines}) == len(outlines) == both.count(OUTLINE_TRANSFORM) > 10
    assert both.startswith("<svg")
    assert len(re.findall(r'<div class="picture"[^>]*><noscript><svg\b.*?</svg></noscript>', both, re.DOTALL)) == 2
    assert not re.search("<style|<!--|xlink|metadata", both)
    sound(both)


@pytest.mark.slow
def test_on_every_page_what_pictures_refer_to_is_there():
    assert sum(sound(text(page)) for page in pages()) > 10_000


def sound(page):
    """Look whether all that is named is there, once; return how often something is named."""
    names = re.findall(r'\bid="([^"]+)"', "".join(re.findall(r"<svg\b.*?</svg>", page, re.DOTALL)))
    assert len(set(names)) == len(names)
    wanted = re.findall(r'<use\b[^>]* href="([^"]*)"', page) + re.findall(r"url\((#[^)]+)\)", page)
    assert {name.removeprefix("#") for name in wanted} <= set(names)
    return len(wanted)


def test_a_page_without_pictures_stays_as_it_is():
    assert minify_pictures("<p>No <svg></svg> of ours.</p>") == "<p>No <svg></svg> of ours.</p>"


def test_a_picture_that_styles_the_whole_page_is_refused():
    with pytest.raises(ValueError, match="would hold for the whole page"):
        minify_pictures(
            '<div class="picture"><svg xmlns="http://www.w3.org/2000/svg"><style>p {color: red}</style></svg></div>'
        )
