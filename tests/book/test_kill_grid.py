"""The table of mistakes whose test a reader chooses: by keyboard, without a script, with the catalogue's numbers."""

import numpy as np
import pytest
from _tools.chromium import new_context
from _tools.kill_grid import CHOICES, MISTAKES, START, KillGrid, inputs, states
from _tools.reading_time import measure, parse
from axe import AXE, violations

from attnlib.checks.catalogue import CATALOGUE

VISIBLE = "[...document.querySelectorAll('tbody')].filter((b) => b.offsetHeight).map((b) => b.className)"


@pytest.fixture(scope="module")
def grid() -> KillGrid:
    return KillGrid()


@pytest.fixture
def page(browser, grid):
    with new_context(browser, java_script_enabled=True) as context:
        page = context.new_page()
        html = grid._repr_mimebundle_()["text/html"]
        page.set_content(f"<!doctype html><html lang=en><title>Grid</title><main><h1>Grid</h1>{html}</main>")
        yield page


def test_each_choice_has_the_sizes_that_it_names():
    for chosen in states():
        (query, key, value), options = inputs(chosen)
        assert (query.shape[-2], key.shape[-2], value.shape[-1]) == ((4, 4, 4), (3, 5, 2))[chosen[0]]
        assert query.ndim == 2 + chosen[1]
        assert list(options) == [[], ["attn_mask"], ["is_causal"]][chosen[3]]
        largest = np.abs(query @ key.swapaxes(-1, -2)).max()
        assert (largest == 0, 0 < largest < 20, largest > 2000)[chosen[2]]


@pytest.mark.parametrize("chosen", [START, (1, 1, 1, 1), (0, 0, 0, 0)])
def test_a_mistake_survives_exactly_where_its_numbers_are_those_of_torch(grid, chosen):
    torch = pytest.importorskip("torch")
    arrays, options = inputs(chosen)
    options = {name: torch.tensor(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    want = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, arrays), **options).numpy()
    known = {mistake.id: mistake.implementation for mistake in CATALOGUE["scaled_dot_product_attention"].mistakes}
    for name, caught in zip(MISTAKES, grid.caught[chosen], strict=True):
        if not caught:
            np.testing.assert_allclose(known[name](*inputs(chosen)[0], **inputs(chosen)[1]), want, atol=1e-4)
    assert grid.survivors(*chosen) == grid.caught[chosen].count(False)


def test_the_element_runs_no_script_and_loads_nothing(grid):
    html = grid._repr_mimebundle_()["text/html"]
    assert "<script" not in html
    assert "url(" not in html
    assert "src=" not in html
    assert html.count("<tbody") == len(states()) == 36


def test_its_words_count_neither_for_the_reading_time_nor_for_the_search(grid):
    assert measure(parse(f"<p>two words</p>{grid._repr_mimebundle_()['text/html']}")) == (2, 0)


@pytest.mark.browser
def test_the_choices_are_made_by_keyboard_and_one_part_of_the_table_is_shown(page, grid):
    assert page.evaluate(VISIBLE) == ["s" + "".join(map(str, START))]
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # the sizes differ
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # a boolean mask
    assert page.evaluate(VISIBLE) == ["s1011"]
    assert f"{grid.survivors(1, 0, 1, 1)} of {len(MISTAKES)} mistakes survive" in page.inner_text("tbody.s1011")
    for legend in CHOICES:
        assert page.get_by_role("group", name=legend).count() == 1


@pytest.mark.browser
def test_the_element_is_accessible(page):
    page.evaluate(AXE)
    assert violations(page) == []
