"""Figures: every cell says its number, every axis says what it is, and the ink follows the page."""

import base64
import itertools
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import attnlib.torch
from attnlib import plotting
from attnlib.plotting import (
    COLOURS,
    INK,
    KEY,
    MAX_SHADE,
    QUERY,
    VALUE,
    describe,
    describe_heads,
    head_grid,
    head_view,
    heatmap,
    show,
    use_style,
)

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


def test_axis_labels_keep_a_distance_from_tick_labels(figure):
    figure.draw_without_rendering()
    ax = figure.axes[0]
    for axis, side in ((ax.xaxis, "y"), (ax.yaxis, "x")):
        name, labels = axis.label.get_window_extent(), [label.get_window_extent() for label in axis.get_ticklabels()]
        ends = [getattr(box, f"{side}{end}") for box in labels for end in (0, 1)]
        gap = name.y0 - max(ends) if side == "y" else min(ends) - name.x1
        assert gap / figure.dpi * 72 > 5  # points; about half the height of the letters


def test_a_larger_weight_has_a_stronger_shade(figure):
    shades = [patch.get_alpha() for patch in figure.axes[0].patches]
    assert np.argsort(shades).tolist() == np.argsort(WEIGHTS.ravel(), kind="stable").tolist()
    assert max(shades) == pytest.approx(MAX_SHADE)


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
    cell = MAX_SHADE * np.array(to_rgb(shade)) + (1 - MAX_SHADE) * np.array(to_rgb(paper))
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


@pytest.mark.parametrize(
    ("alt", "spoken"),
    [
        (r"divided by $\sqrt{H}$ or $\sqrt{HD}$", "divided by √H or √(HD)"),
        ("no $W^Q$: 1.50", "no W^Q: 1.50"),
        (r"a price of $5, or \$x\$", r"a price of $5, or \$x\$"),
    ],
)
def test_a_description_is_read_without_the_signs_of_tex(figure, alt, spoken):
    assert f'aria-label="{spoken}"' in svg_of(show(figure, alt))


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


class OnMac(torch.Tensor):
    """A tensor that behaves as if it were on a Mac's GPU, which has no float64."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def double(self):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")


def test_weights_may_come_from_a_device_without_float64():
    (ax,) = heatmap(torch.tensor([[0.25, 0.75]]).as_subclass(OnMac), ["it"], ["a", "b"]).axes
    assert [text.get_text() for text in ax.texts] == ["0.25", "0.75"]


def test_axes_in_a_subfigure_belong_to_the_whole_figure():
    figure = Figure()
    left, right = figure.subfigures(1, 2)
    assert heatmap(WEIGHTS, QUERIES, KEYS, ax=left.subplots()) is figure
    assert head_view([WEIGHTS], QUERIES, KEYS, ax=right.subplots()) is figure


def test_nan_is_shown_as_nan_and_without_a_shade():
    (ax,) = heatmap([[np.nan, 0.5]], ["it"], ["a", "b"]).axes
    assert [text.get_text() for text in ax.texts] == ["nan", "0.50"]
    assert ax.patches[0].get_alpha() == 0


def test_vmax_makes_two_tables_comparable():
    half, beyond = heatmap([[0.5, 4.0]], ["q"], ["a", "b"], vmax=1.0).axes[0].patches
    assert (half.get_alpha(), beyond.get_alpha()) == pytest.approx((MAX_SHADE / 2, MAX_SHADE))


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


def test_a_picture_is_drawn_once_where_all_readers_see_html(figure, monkeypatch):
    monkeypatch.setattr(plotting.Picture, "with_png", False)
    assert {*show(figure, "weights")._repr_mimebundle_()} == {"text/html", "text/plain"}


def test_showing_a_pyplot_figure_closes_it():
    drawn, _ = plt.subplots()
    assert plt.fignum_exists(drawn.number)
    show(drawn, "an empty plot")
    assert not plt.fignum_exists(drawn.number)


# Large tables and long words

LONG = ["internationalization", "of", "extraordinarily", "long", "$5 and $6", "responsibilities"]


def boxes(figure, texts):
    """Where the texts stand once the figure is laid out."""
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts]


def test_labels_that_fit_stand_upright(figure):
    assert [label.get_rotation() for label in figure.axes[0].get_xticklabels()] == [0, 0, 0]


def test_labels_that_would_run_into_each_other_are_slanted():
    (ax,) = heatmap(np.zeros((2, 6)), ["a", "b"], LONG).axes
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {45}


@pytest.mark.slow
@pytest.mark.parametrize(("digits", "size"), [(2, 20), (2, 11), (4, 9)])
def test_numbers_stay_in_their_cells(digits, size):
    labels = (LONG * 4)[:size]
    figure = heatmap(np.full((size, size), -0.5), labels, labels, digits=digits)
    (ax,) = figure.axes
    cell = ax.get_window_extent().width / size
    assert max(box.width for box in boxes(figure, ax.texts)) <= cell
    assert min(text.get_fontsize() for text in ax.texts) >= 7
    assert figure.get_figwidth() <= 10


def test_numbers_stay_in_the_cells_of_a_small_canvas():
    figure, (_, ax) = plt.subplots(1, 2, figsize=(4, 2))
    heatmap(np.zeros((2, 6)), ["a", "b"], LONG, ax=ax)
    assert max(box.width for box in boxes(figure, ax.texts)) <= ax.get_window_extent().width / 6
    plt.close(figure)


def test_dollars_are_dollars_and_no_mathematics():
    label = heatmap([[1.0]], ["q"], ["$5 and $6"]).axes[0].get_xticklabels()[0]
    assert not label.get_parse_math()


# Many heads

T, S, H = 2, 3, 5
HEADS = np.random.default_rng(1).dirichlet(np.ones(S), (H, T))


def lines(figure):
    """What is drawn: {(head's colour, query, key): (width, opacity)}."""
    drawn = {}
    for collection in figure.axes[0].collections:
        paths, widths, colours = collection.get_paths(), collection.get_linewidths(), collection.get_colors()
        for path, width, colour in zip(paths, widths, colours, strict=True):
            (x0, y0), (x1, y1) = path.vertices
            assert (x0, x1) == (0, 1), "queries stand on the left, keys on the right"
            drawn[tuple(colour[:3]), round(y0), round(y1)] = (width, colour[3])
    return drawn


def test_a_line_runs_from_every_query_to_every_key_in_the_colour_of_its_head():
    drawn = lines(head_view(HEADS, QUERIES, KEYS))
    assert set(drawn) == {(to_rgb(COLOURS[h]), i, j) for h in range(H) for i in range(T) for j in range(S)}


def test_a_larger_weight_has_a_stronger_and_wider_line():
    drawn = lines(head_view(HEADS, QUERIES, KEYS))
    weights = [HEADS[COLOURS.index(next(c for c in COLOURS if to_rgb(c) == key[0])), key[1], key[2]] for key in drawn]
    for measure in zip(*drawn.values(), strict=True):
        assert np.argsort(measure).tolist() == np.argsort(weights).tolist()
    opacities = [opacity for _, opacity in drawn.values()]
    np.testing.assert_allclose(opacities, weights / HEADS.max())


def test_chosen_heads_are_drawn_and_named():
    figure = head_view(HEADS, QUERIES, KEYS, heads=[3, -5])
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["head 3", "head 0"]
    drawn = lines(figure)
    full = HEADS[[3, 0]].max()
    assert drawn[to_rgb(COLOURS[0]), 1, 2][1] == pytest.approx(HEADS[3, 1, 2] / full)
    assert drawn[to_rgb(COLOURS[1]), 1, 2][1] == pytest.approx(HEADS[0, 1, 2] / full)
    shown = [line.get_color() for line in figure.axes[0].get_legend().get_lines()]
    assert shown == list(COLOURS[:2])


@pytest.mark.parametrize("focus", [1, -1])
def test_the_focus_has_the_only_lines_and_they_have_full_strength(focus):
    figure = head_view(HEADS, QUERIES, KEYS, heads=[2], focus=focus)
    drawn = lines(figure)
    assert {query for _, query, _ in drawn} == {1}
    assert max(opacity for _, opacity in drawn.values()) == 1
    assert [label.get_fontweight() for label in figure.axes[0].get_yticklabels()] == ["normal", "bold"]


def test_a_weight_of_zero_has_no_line():
    assert len(lines(head_view([[[0.0, 1.0, np.nan]]], ["q"], KEYS))) == 1
    assert not lines(head_view(np.zeros((1, 1, 3)), ["q"], KEYS))


def test_heads_do_not_hide_each_other():
    figure = head_view(np.ones((5, 1, 1)), ["q"], ["k"])
    starts = [collection.get_paths()[0].vertices[0, 1] for collection in figure.axes[0].collections]
    assert len(set(starts)) == 5
    assert max(np.abs(starts)) < 0.5


def test_the_sides_say_which_is_the_query_and_which_the_key():
    figure = head_view(HEADS, QUERIES, KEYS, title="layer 3")
    ax = figure.axes[0]
    (right,) = ax.child_axes
    assert [label.get_text() for label in ax.get_yticklabels()] == QUERIES
    assert [label.get_text() for label in right.get_yticklabels()] == KEYS
    assert right.get_yticks().tolist() == [0, 1, 2]
    assert {text.get_text(): text.get_position()[0] for text in ax.texts} == {
        "query (who attends)": 0,
        "key (what is attended to)": 1,
    }
    assert ax.get_ylim() == (2.5, -0.5), "the first stands on top, and the longer side fits"
    assert ax.get_title() == "layer 3"


def test_heads_are_drawn_where_it_is_told():
    canvas = Figure()
    left, right = canvas.subplots(1, 2)
    assert head_view(HEADS, QUERIES, KEYS, ax=right) is canvas
    assert not left.collections
    assert right.collections


def test_words_say_what_the_heads_show():
    weights = [WEIGHTS, WEIGHTS[::-1]]
    assert describe_heads(weights, QUERIES, KEYS, heads=[1]) == (
        "Lines run from queries to keys. Head 1: it: sat 0.75, cat 0.25; sat: cat 0.70, the 0.20."
    )
    assert describe_heads(weights, QUERIES, KEYS, focus=-1, digits=1) == (
        "Lines run from queries to keys. Head 0: sat: sat 0.8, cat 0.2. Head 1: sat: cat 0.7, the 0.2."
    )


@pytest.mark.slow
@pytest.mark.parametrize("layers", [0, 2], ids=["heads", "layers"])
def test_a_grid_has_a_table_for_each_head_of_each_layer(layers):
    weights = np.stack([HEADS, HEADS[::-1]]) if layers else HEADS
    figure = head_grid(weights, QUERIES, KEYS, title="all")
    titles = [ax.get_title() for ax in figure.axes]
    if layers:
        assert titles == [f"layer {layer}, head {head}" for layer in range(2) for head in range(H)]
    else:
        assert titles == [f"head {head}" for head in range(H)]
    for ax, table in zip(figure.axes, weights.reshape(-1, T, S), strict=True):
        shades = ax.images[0].get_array()
        np.testing.assert_allclose(shades[..., 3], MAX_SHADE * table / HEADS.max())
        np.testing.assert_allclose(shades[..., :3], np.broadcast_to(to_rgba(COLOURS[0])[:3], (T, S, 3)))
    assert (figure.get_supylabel(), figure.get_supxlabel()) == ("query (who attends)", "key (what is attended to)")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == QUERIES
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == KEYS
    assert figure.get_suptitle() == "all"


def test_a_grid_of_zeros_and_nan_is_drawn():
    (ax,) = head_grid([[[0.0, np.nan]]], ["q"], ["a", "b"]).axes
    assert not ax.images[0].get_array()[..., 3].any()


@pytest.mark.slow
@pytest.mark.parametrize("draw", [head_view, head_grid])
def test_weights_of_heads_may_come_straight_from_a_model(draw):
    weights = torch.tensor(HEADS, dtype=torch.bfloat16, requires_grad=True)
    assert "currentColor" in svg_of(show(draw(weights, QUERIES, KEYS), "heads"))


HEAD_ERRORS = {
    "rank_of_a_view": (lambda: head_view(WEIGHTS, QUERIES, KEYS), ValueError, r"shape \(2, 3\), .* \(H, 2, 3\) is"),
    "labels_of_a_view": (lambda: head_view(HEADS, KEYS, QUERIES), ValueError, "3 queries and 2 keys"),
    "rank_of_a_grid": (lambda: head_grid(WEIGHTS, QUERIES, KEYS), ValueError, r"\(H, 2, 3\) is needed"),
    "labels_of_a_grid": (lambda: head_grid(HEADS[None], KEYS, KEYS), ValueError, r"\(L, H, 3, 3\) is needed"),
    "rank_in_words": (lambda: describe_heads(WEIGHTS, QUERIES, KEYS), ValueError, r"\(H, 2, 3\) is needed"),
    "unknown_head": (lambda: head_view(HEADS, QUERIES, KEYS, heads=[5]), IndexError, "head is 5, .* 5 heads: 0 to 4"),
    "unknown_head_in_words": (lambda: describe_heads(HEADS, QUERIES, KEYS, heads=[-6]), IndexError, "a head is -6"),
    "unknown_query": (lambda: head_view(HEADS, QUERIES, KEYS, focus=2), IndexError, "focus is 2, .* 2 queries: 0 to 1"),
    "no_heads": (lambda: head_view(HEADS, QUERIES, KEYS, heads=[]), ValueError, "0 heads are to be drawn"),
    "too_many_heads": (lambda: head_view(np.ones((13, 1, 1)), ["q"], ["k"]), ValueError, "13 heads .* choose some"),
    "negative": (lambda: head_view(-HEADS, QUERIES, KEYS), ValueError, "weights go down to -0"),
    "negative_in_a_grid": (lambda: head_grid(-HEADS, QUERIES, KEYS), ValueError, "weights go down to -0"),
}


@pytest.mark.parametrize(("call", "exception", "said"), HEAD_ERRORS.values(), ids=HEAD_ERRORS)
def test_heads_that_cannot_be_drawn_are_refused(call, exception, said):
    with pytest.raises(exception, match=said):
        call()


def test_every_head_up_to_twelve_has_a_colour_of_its_own():
    assert len(set(COLOURS)) == len(COLOURS) == 12


# Colours of query, key and value

CONES = {  # what is left of a colour: Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ np.clip(rgb, 0, 1)
    f = np.cbrt(xyz / [0.9505, 1.0, 1.0890])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("cones", CONES)
def test_query_key_and_value_are_far_apart_for_every_eye(cones):
    seen = [lab(np.array(CONES[cones]) @ linear(colour)) for colour in (QUERY, KEY, VALUE)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 40


@pytest.mark.parametrize("cones", CONES)
def test_four_heads_are_far_apart_for_every_eye(cones):
    seen = [lab(np.array(CONES[cones]) @ linear(colour)) for colour in COLOURS[:4]]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 25


def test_no_head_has_the_colour_of_query_key_or_value():
    roles = [lab(linear(colour)) for colour in (QUERY, KEY, VALUE)]
    heads = [lab(linear(colour)) for colour in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in itertools.product(heads[:4], roles)) > 14
    assert not {*COLOURS} & {QUERY, KEY, VALUE}


@pytest.mark.parametrize("colour", [QUERY, KEY, VALUE, *COLOURS])
@pytest.mark.parametrize("paper", ["#ffffff", "#121212"])
def test_every_colour_stands_out_on_white_and_on_near_black(colour, paper):
    low, high = sorted(float(np.dot([0.2126, 0.7152, 0.0722], linear(c))) for c in (colour, paper))
    assert (high + 0.05) / (low + 0.05) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_weights_of_all_layers_of_a_torch_model_are_drawn_as_they_come(dtype):
    encoder = attnlib.torch.Encoder(8, 2, 12, 3).to(dtype)
    _, weights = encoder(torch.randn(1, 4, 8, dtype=dtype), need_weights=True)
    assert weights[0].requires_grad
    figure = head_grid([layer[0] for layer in weights], list("abcd"), list("abcd"))
    assert [ax.get_title() for ax in figure.axes] == [f"layer {n}, head {h}" for n in range(3) for h in range(2)]
    alpha = figure.axes[3].images[0].get_array()[..., 3]
    largest = max(layer.detach().max().item() for layer in weights)
    assert_allclose(alpha, 0.65 * weights[1][0, 1].detach().float().numpy() / largest, rtol=1e-5)
    head_view(weights[1][0], list("abcd"), list("abcd"))
