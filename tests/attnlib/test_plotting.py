"""Figures: every cell says its number, every axis says what it is, and the ink follows the page."""

import base64
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from attnlib.plotting import COLOURS, INK, STRONGEST, describe, heatmap, show, use_style

QUERIES, KEYS = ["it", "sat"], ["the", "cat", "sat"]
WEIGHTS = np.array([[0.2, 0.7, 0.1], [0.0, 0.25, 0.75]])


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        use_style()
        yield


@pytest.fixture
def figure():
    return heatmap(WEIGHTS, QUERIES, KEYS)


def svg_of(picture):
    return picture._repr_mimebundle_()["text/html"]


def test_every_number_stands_in_its_cell(figure):
    shown = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert shown == {(j, i): f"{WEIGHTS[i, j]:.2f}" for i in range(2) for j in range(3)}


def test_axes_say_who_attends_to_what(figure):
    ax = figure.axes[0]
    assert ax.get_ylabel() == "query (who attends)"
    assert ax.get_xlabel() == "key (what is attended to)"
    assert [label.get_text() for label in ax.get_yticklabels()] == QUERIES
    assert [label.get_text() for label in ax.get_xticklabels()] == KEYS
    assert ax.get_ylim() == (1.5, -0.5), "the first query stands on top"


def test_a_larger_weight_has_a_stronger_shade(figure):
    shades = [patch.get_alpha() for patch in figure.axes[0].patches]
    assert np.argsort(shades).tolist() == np.argsort(WEIGHTS.ravel(), kind="stable").tolist()
    assert max(shades) == pytest.approx(STRONGEST)


def test_a_negative_number_has_another_colour_than_a_positive_one():
    one, other = heatmap([[1.0, -1.0]], ["q"], ["a", "b"]).axes[0].patches
    assert one.get_facecolor()[:3] != other.get_facecolor()[:3]


def test_all_zeros_can_be_drawn():
    assert all(patch.get_alpha() == 0 for patch in heatmap(np.zeros((1, 2)), ["q"], ["a", "b"]).axes[0].patches)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but there are 3 queries and 2 keys"):
        heatmap(WEIGHTS, KEYS, QUERIES)


def contrast(one, other):
    """The contrast ratio of WCAG 2."""

    def luminance(colour):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("ink", "paper"), [(INK, "#ffffff"), ("#ced6dd", "#121212")], ids=["light", "dark"])
@pytest.mark.parametrize("shade", COLOURS[:2])
def test_a_number_on_the_strongest_shade_can_be_read(ink, paper, shade):
    cell = STRONGEST * np.array(to_rgb(shade)) + (1 - STRONGEST) * np.array(to_rgb(paper))
    assert contrast(to_rgb(ink), cell) >= 4.5


@pytest.mark.parametrize("paper", ["#ffffff", "#121212"])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_line_can_be_seen_on_the_page(colour, paper):
    assert contrast(to_rgb(colour), to_rgb(paper)) >= 3


def test_the_ink_of_a_picture_is_that_of_the_page(figure):
    html = svg_of(show(figure, "weights"))
    assert INK not in html
    assert "currentColor" in html


def test_a_picture_is_described_and_its_description_is_escaped(figure):
    html = svg_of(show(figure, 'a "b" <c>\n  & d'))
    assert 'role="img" aria-label="a &quot;b&quot; &lt;c&gt; &amp; d"' in html


def test_ids_of_two_pictures_on_a_page_differ_and_references_hold():
    pictures = [svg_of(show(heatmap(WEIGHTS * k, QUERIES, KEYS), "weights")) for k in (1, 2)]
    ids = [set(re.findall(r'id="([^"]+)"', picture)) for picture in pictures]
    assert not ids[0] & ids[1]
    for picture, known in zip(pictures, ids, strict=True):
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', picture))
        assert used
        assert used <= known


def test_a_picture_is_the_same_on_every_build(figure):
    assert svg_of(show(figure, "weights")) == svg_of(show(heatmap(WEIGHTS, QUERIES, KEYS), "weights"))


def test_a_picture_without_a_description_is_refused(figure):
    with pytest.raises(ValueError, match="description"):
        show(figure, "  ")


def test_words_say_what_the_table_shows():
    assert describe(WEIGHTS, QUERIES, KEYS) == (
        "Rows are queries, columns are keys. it: cat 0.70, the 0.20; sat: sat 0.75, cat 0.25."
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_weights_may_come_straight_from_a_model(dtype):
    weights = torch.tensor([[0.25, 0.75]], dtype=dtype, requires_grad=True)
    (ax,) = heatmap(weights, ["it"], ["a", "b"]).axes
    assert [text.get_text() for text in ax.texts] == ["0.25", "0.75"]
    assert describe(weights, ["it"], ["a", "b"]).endswith("it: b 0.75, a 0.25.")


def test_nan_is_shown_as_nan_and_without_a_shade():
    (ax,) = heatmap([[np.nan, 0.5]], ["it"], ["a", "b"]).axes
    assert [text.get_text() for text in ax.texts] == ["nan", "0.50"]
    assert ax.patches[0].get_alpha() == 0


def test_vmax_makes_two_tables_comparable():
    half, beyond = heatmap([[0.5, 4.0]], ["q"], ["a", "b"], vmax=1.0).axes[0].patches
    assert (half.get_alpha(), beyond.get_alpha()) == pytest.approx((STRONGEST / 2, STRONGEST))


def test_it_draws_where_it_is_told():
    canvas = Figure()
    left, right = canvas.subplots(1, 2)
    assert heatmap(WEIGHTS, QUERIES, KEYS, ax=right, title="head 2") is canvas
    assert not left.patches
    assert right.get_title() == "head 2"


def test_a_picture_asks_no_other_host_and_is_well_formed(figure):
    html = svg_of(show(figure, "weights"))
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)
    assert ET.fromstring(re.search(r"<svg.*</svg>", html, re.DOTALL).group()).get("width") == "100%"


def test_a_picture_is_a_png_for_those_who_show_no_html(figure):
    png = show(figure, "weights")._repr_mimebundle_()["image/png"]
    assert base64.b64decode(png).startswith(b"\x89PNG")


def test_showing_a_pyplot_figure_closes_it():
    drawn, _ = plt.subplots()
    show(drawn, "an empty plot")
    assert not plt.get_fignums()
