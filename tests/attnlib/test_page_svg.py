"""In a picture for a page, words are text that has the page's font, and formulas are outlines."""

import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from attnlib.plotting import COLOURS, show, use_style

WIDTH, HEIGHT = 144, 72  # points
X, Y = 0.25 * WIDTH, 0.5 * HEIGHT  # where the text is placed
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        use_style()
        yield


def drawn(line, **look):
    """The picture of a text, as a tree."""
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    figure.text(0.25, 0.5, line, **look)
    html = show(figure, "a picture")._repr_mimebundle_()["text/html"]
    return ET.fromstring(re.search(r"<svg.*</svg>", html, re.DOTALL).group())


def words(line, **look):
    """The attributes of the only text element."""
    (text,) = drawn(line, **look).iter(f"{SVG}text")
    return text.attrib


def lines_of(tree):
    return [text.text for text in tree.iter(f"{SVG}text")]


def outlines(tree):
    return len([*tree.iter(f"{SVG}use")])


def test_words_are_text_in_the_font_of_the_page():
    tree = drawn("the cat")
    assert lines_of(tree) == ["the cat"]
    assert outlines(tree) == 0
    assert words("the cat").keys() == {"x", "y", "font-size", "fill"}


def test_formulas_are_outlines():
    tree = drawn(r"$QK^\top$")
    assert lines_of(tree) == []
    assert outlines(tree) == 3


def test_the_tick_labels_of_a_logarithmic_axis_are_text():
    figure = Figure(figsize=(3, 3))
    figure.subplots().set(xscale="log", xlim=(1e-12, 1e3), yticks=[])
    tree = ET.fromstring(re.search(r"<svg.*</svg>", show(figure, "an axis")._html(), re.DOTALL).group())
    assert {"10⁻¹¹", "10⁻⁸", "10⁻²", "10¹"} <= {*lines_of(tree)}
    assert "scale(" not in ET.tostring(tree, encoding="unicode"), "there are outlines"
    places = {text.text: float(text.get("x")) for text in tree.iter(f"{SVG}text")}
    assert places["10¹"] - places["10⁻²"] == pytest.approx(places["10⁻⁸"] - places["10⁻¹¹"], abs=0.02)


def test_only_the_lines_with_formulas_are_outlines():
    tree = drawn("scores\n$QK$\nof words")
    assert lines_of(tree) == ["scores", "of words"]
    assert outlines(tree) == 2


@pytest.mark.parametrize("line", ["<pad> & “x”", 'url(#a) id="b" href="#c"', "$5", "a -> b --"])
def test_a_label_is_shown_as_it_is(line):
    assert lines_of(drawn(line)) == [line]


@pytest.mark.parametrize(("line", "shown"), [("a  b   c", "a \xa0b \xa0\xa0c"), (" a ", "\xa0a\xa0")])
def test_spaces_that_svg_would_leave_out_are_kept(line, shown):
    assert lines_of(drawn(line)) == [shown]


@pytest.mark.parametrize(
    ("look", "found"),
    [
        ({"size": 8.5}, {"font-size": "8.5"}),
        ({"weight": "bold"}, {"font-weight": "700"}),
        ({"weight": 600}, {"font-weight": "600"}),
        ({"style": "italic"}, {"font-style": "italic"}),
        ({"family": "monospace"}, {"font-family": "monospace"}),
        ({}, {"fill": "currentColor"}),
        ({"color": COLOURS[1]}, {"fill": COLOURS[1]}),
        ({"alpha": 0.25}, {"fill": "currentColor", "fill-opacity": "0.25"}),
        ({"color": (*mpl.colors.to_rgb(COLOURS[1]), 0.5)}, {"fill": COLOURS[1], "fill-opacity": "0.5"}),
    ],
)
def test_text_has_the_look_of_the_label(look, found):
    plain = words("a")
    assert words("a", **look) == plain | found


@pytest.mark.parametrize(
    ("look", "anchor"),
    [
        ({"ha": "left"}, None),
        ({"ha": "center"}, "middle"),
        ({"ha": "right"}, "end"),
        ({"ha": "right", "rotation": 180, "rotation_mode": "anchor"}, "end"),
        ({"ha": "left", "rotation": 45, "rotation_mode": "anchor"}, None),
        ({"ha": "right", "rotation": 35, "rotation_mode": "anchor"}, "end"),
        ({"ha": "center", "rotation": 90, "rotation_mode": "anchor"}, "middle"),
        ({"va": "bottom", "rotation": 90}, None),
        ({"va": "center", "rotation": 90}, "middle"),
        ({"va": "top", "rotation": 90}, "end"),
        ({"va": "top", "rotation": 270}, None),
        ({"va": "bottom", "rotation": 270}, "end"),
    ],
)
def test_a_label_keeps_the_point_that_it_is_aligned_by(look, anchor):
    found = words("some words", **look)
    assert found.get("text-anchor") == anchor
    place, at = ("y", Y) if look.get("rotation", 0) in (90, 270) else ("x", X)
    if look.get("rotation_mode") != "anchor" or look["rotation"] == 180:
        assert float(found[place]) == pytest.approx(at, abs=0.02)


def test_right_aligned_lines_stay_aligned_one_below_the_other():
    texts = [text.attrib for text in drawn("one\nof two lines", ha="right").iter(f"{SVG}text")]
    assert [text["text-anchor"] for text in texts] == ["end", "end"]
    assert [float(text["x"]) for text in texts] == pytest.approx([X, X], abs=0.02)
    assert float(texts[1]["y"]) - float(texts[0]["y"]) > 11


@pytest.mark.parametrize(("ha", "anchor"), [("left", None), ("center", "middle"), ("right", "end")])
def test_words_beside_a_line_with_a_formula_keep_their_side(ha, anchor):
    found = words("scores of words\n$QK$", ha=ha)
    assert found.get("text-anchor") == anchor
    assert float(found["x"]) == pytest.approx(X, abs=0.02)


def test_a_label_is_rotated_about_its_anchor():
    found = words("some words", rotation=45, rotation_mode="anchor")
    assert found["transform"] == f"rotate(-45 {found['x']} {found['y']})"


def test_clipped_text_stays_an_outline():
    figure = Figure(figsize=(2, 1))
    ax = figure.subplots()
    ax.set_axis_off()
    ax.text(0.5, 0.5, "ab", clip_on=True)
    html = show(figure, "a picture")._repr_mimebundle_()["text/html"]
    assert "<text" not in html
    assert html.count("<use") == 2


def test_so_does_text_that_is_clipped_by_a_circle_and_a_link():
    figure = Figure(figsize=(2, 1))
    ax = figure.add_subplot(projection="polar")
    ax.set_axis_off()
    ax.text(0, 5, "ab", clip_on=True)
    figure.text(0.5, 0.5, "cd", url="https://example.org")
    html = show(figure, "a picture")._repr_mimebundle_()["text/html"]
    assert "<text" not in html
    assert html.count("<use") == 4
    assert html.count("<a ") == 1


@pytest.mark.parametrize(("line", "size"), [("$x$", 11.5), ("$x$ $y$", 11.5), ("words $x$", 10), ("$x$: 1", 10)])
def test_formulas_are_larger_than_words_unless_they_share_a_line(line, size):
    (scale,) = re.findall(r"scale\(([\d.]+) -", ET.tostring(drawn(line, size=10), encoding="unicode"))
    assert 100 * float(scale) == pytest.approx(size)


def test_a_formula_is_placed_by_its_size():
    starts = [
        float(
            re.search(r"translate\(([\d.]+) [\d.]+\) scale", ET.tostring(drawn("$HK$", ha=side), encoding="unicode"))[1]
        )
        for side in ("left", "right")
    ]
    width, *_ = text_to_path.get_text_width_height_descent("$HK$", FontProperties(size=1.15 * 11), True)
    assert starts[0] - starts[1] == pytest.approx(width, abs=0.02)


def test_the_figure_stays_as_it_was():
    figure = Figure(figsize=(2, 1), dpi=123)
    canvas = figure.canvas
    show(figure, "a picture")._repr_mimebundle_()
    assert (figure.dpi, figure.canvas) == (123, canvas)
