"""Every page in a real browser: no errors, no other host, no sideways scrolling; small, and open to everybody."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from axe import AXE, ENOUGH, SAME_LOOK, go_dark, violations
from browser_tab import tab
from cut_off import CUT, UNHINTED, cut_off
from fontTools.ttLib import TTFont
from open_element import LOADED_NEAR, come_near
from pages import HTML, lessons, moved, pages, text

# Formulas in view that take no room or were not understood, and TeX that a reader sees.
WRONG_FORMULAS = """[...document.querySelectorAll('math, .bd-article')].flatMap(one => {
    if (one.matches('math')) return one.checkVisibility() && !one.getBoundingClientRect().width ? [one.outerHTML] : [];
    const said = one.cloneNode(true);
    said.querySelectorAll('pre, code, script').forEach(code => code.remove());
    return said.textContent.match(/\\\\[([].{0,80}|\\\\(frac|sqrt|text)\\b.{0,80}/g) ?? [];
})"""
# How far things have jumped since the page began to load. A script that began with the page would begin in the frames
# within it, too, and those without scripts may report an error.
SHIFTED = """new Promise(next => {
    let sum = 0;
    new PerformanceObserver(list => list.getEntries().forEach(one => { sum += one.value }))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => next(sum), 200);
})"""
# What has no size of its own before it is loaded. An SVG that stands in the page itself is there with it.
UNSIZED = """[...document.querySelectorAll('img, video, iframe')].filter(one => {
    const style = one.computedStyleMap(), has = name => String(style.get(name)) !== 'auto';
    return one.checkVisibility() && !(has('width') && has('height')) && !has('aspect-ratio');
}).map(one => one.outerHTML.slice(0, 200))"""
# Code in view that one has to push sideways; what it printed may be wide.
SIDEWAYS_CODE = """[...document.querySelectorAll('.bd-article div.highlight pre')].filter(one =>
    one.checkVisibility() && !one.closest('.cell_output') && one.scrollWidth > one.clientWidth + 1
).map(one => one.textContent.slice(0, 200))"""
# How high an upright phone shows the smallest letters; matplotlib draws them at 100 points and scales them.
SMALLEST_LETTERS = """[...document.querySelectorAll('.picture')].map(picture => {
    const svg = picture.querySelector('svg'), units = svg.viewBox.baseVal.width;
    const outlines = [...svg.innerHTML.matchAll(/scale\\((0\\.\\d+) -0\\.\\d+\\)/g)].map(one => 100 * one[1]);
    const words = [...svg.querySelectorAll('text')].map(one => Number(one.getAttribute('font-size')));
    return [Math.min(...outlines, ...words) * svg.clientWidth / units, picture.ariaLabel.slice(0, 80)];
}).filter(([pixels, _]) => pixels < 7)"""
# The pixels that stay free to the left and right of each picture that is not turned.
EDGES = """[...document.querySelectorAll('.picture:not([data-turns]) svg')].map(one => one.getBoundingClientRect())
    .map(({left, right}) => [left, innerWidth - right])"""
EDGE = 4
# The colours of words in links other than the theme's colour of links. Glossary terms and the links beside
# headings look different on purpose, and the report of a check takes the colour of its surroundings.
ODD_LINKS = """() => {
    const seen = new Set(), other = '.glossary-term, .headerlink, [style*=color]';
    for (const link of document.querySelectorAll('.bd-article a[href]')) {
        if (link.matches(other)) continue;
        const texts = document.createTreeWalker(link, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const one = texts.currentNode.parentElement;
            if (texts.currentNode.data.trim()) seen.add(getComputedStyle(one).color);
        }
    }
    const usual = document.body.appendChild(document.createElement('span'));
    usual.style.color = 'var(--pst-color-link)';
    seen.delete(getComputedStyle(usual).color);
    usual.remove();
    return [...seen];
}"""
# Fields whose letters are so small that a phone zooms in when one of them has the focus.
SMALL_FIELDS = """[...document.querySelectorAll('.bd-article :is(input, select, textarea)')]
    .filter(one => !['checkbox', 'radio', 'range', 'file'].includes(one.type))
    .filter(one => parseFloat(getComputedStyle(one).fontSize) < 16)
    .map(one => [one.localName, one.className, one.ariaLabel, getComputedStyle(one).fontSize].join(' '))"""
# Numbers that are wider than their fields.
HIDDEN_NUMBERS = """[...document.querySelectorAll('.attn-numbers input')].filter(one => one.checkVisibility())
    .filter(one => { one.value = '-1.2345'; return one.scrollWidth > one.clientWidth; }).map(one => one.ariaLabel)"""
# Fields that take negative numbers, but for which a phone shows a keypad without a minus.
NO_MINUS = """[...document.querySelectorAll('.attn-numbers input, .attn-editor, [placeholder^="1/√"]')]
    .filter(one => !['', 'text'].includes(one.inputMode)).map(one => one.ariaLabel ?? one.className)"""
HEAVIEST = 250_000  # bytes, compressed, with nothing in the browser's cache
MOST_SHIFT = 0.1  # what counts as good


@dataclass
class Visit:
    """What was found on a page: read on a phone by day, and at night on a wide screen."""

    wrong: list[str]
    weights: dict[str, int]
    shift: float
    width_on_phone: int
    sideways_code: list[str]
    small_letters: list[tuple[float, str]]
    cut_off: list[str]
    unhinted: list[str]
    formulas_wrong: list[str]
    unsized: list[str]
    found_by_axe: dict[str, list[str]]
    papers: dict[str, int]
    odd_links: dict[str, list[str]]
    edges: list[tuple[float, float]]
    fields_wrong: list[list[str]]


@pytest.fixture(scope="module", params=[page for page in pages() if page not in moved()])
def visit(request, browser, site) -> Iterator[Visit]:
    with tab(browser, site, request.param, width=360, cached=False) as (page, wrong, loads):
        yield look_around(page, wrong, loads)


def look_around(page, wrong, loads) -> Visit:
    weights = {load.url: weight(load.sizes()) for load in loads if load.url.startswith("http")}
    shift, width = page.evaluate(SHIFTED), page.evaluate("document.documentElement.scrollWidth")
    sideways = page.evaluate(SIDEWAYS_CODE)
    formulas_wrong, unsized = page.evaluate(WRONG_FORMULAS), page.evaluate(UNSIZED)
    come_near(page, *LOADED_NEAR)
    page.evaluate(AXE)
    found_by_axe = {"light, phone": violations(page)}
    papers = {"light": brightness(page)}
    odd_links = {"light": page.evaluate(ODD_LINKS)}
    page.set_viewport_size({"width": 1280, "height": 900})
    go_dark(page)
    found_by_axe["dark, wide"] = violations(page, again=True)
    papers["dark"] = brightness(page)
    odd_links["dark"] = page.evaluate(ODD_LINKS)
    page.set_viewport_size({"width": 360, "height": 900})
    on_phone = [UNHINTED, EDGES, SMALLEST_LETTERS, CUT, SMALL_FIELDS, NO_MINUS, HIDDEN_NUMBERS]
    # This draws all pictures, so it comes last: otherwise, axe would check every line in them.
    unhinted, edges, small_letters, cut, *fields_wrong = cut_off(page, f"[{', '.join(on_phone)}]")
    phone = shift, width, sideways, small_letters, cut, unhinted
    found = formulas_wrong, unsized, found_by_axe, papers, odd_links, edges, fields_wrong
    return Visit(list(wrong), weights, *phone, *found)


def weight(sizes: dict[str, int]) -> int:
    """Return the bytes of an answer, as they went over the line."""
    return sizes["responseHeadersSize"] + sizes["responseBodySize"]


def brightness(page) -> int:
    """How light the page is, from 0 to 765."""
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, paper.removeprefix("rgb(").removesuffix(")").split(",")))


def test_a_page_has_no_errors_and_asks_no_other_host(visit):
    assert not visit.wrong


def test_every_formula_is_understood(visit):
    assert visit.formulas_wrong == []


def test_a_page_fits_a_phone(visit):
    assert visit.width_on_phone <= 360
    assert visit.sideways_code == []


def test_the_letters_in_pictures_are_large_enough_on_a_phone(visit):
    assert visit.small_letters == []


def test_nothing_is_cut_off_on_a_phone(visit):
    assert visit.cut_off == []


def test_what_reaches_beyond_a_narrow_phone_shows_that_it_scrolls(visit):
    assert visit.unhinted == []


def test_a_page_is_light(visit):
    total = sum(visit.weights.values())
    heaviest = sorted(visit.weights.items(), key=lambda item: -item[1])[:5]
    assert 10_000 < total < HEAVIEST, f"{total / 1000:.0f} kB; the heaviest: {heaviest}"


def test_nothing_jumps_while_a_page_loads(visit, browser, site, request):
    assert not visit.unsized
    name = request.node.callspec.params["visit"]
    shifts = [visit.shift]
    while shifts[-1] >= MOST_SHIFT and len(shifts) < 3:  # on a busy machine once; what the page itself does, each time
        with tab(browser, site, name, width=360, cached=False) as (page, *_):
            shifts.append(page.evaluate(SHIFTED))
    assert min(shifts) < MOST_SHIFT, shifts


def test_a_planted_jump_is_found(opened):
    page, _ = opened("book/changelog.html")
    assert page.evaluate(SHIFTED) < MOST_SHIFT
    page.evaluate("document.querySelector('.bd-article').prepend(new Image(400, 400))")
    assert page.evaluate(SHIFTED) > MOST_SHIFT


def test_axe_finds_no_violations_in_light_and_in_dark(visit):
    assert visit.papers["light"] > 700
    assert visit.papers["dark"] < 100
    assert visit.found_by_axe == {"light, phone": [], "dark, wide": []}


def test_a_link_has_one_colour_wherever_it_is(visit):
    assert visit.odd_links == {"light": [], "dark": []}


def test_a_figure_fills_the_width_of_a_phone(visit, request):
    page, edges = request.node.callspec.params["visit"], visit.edges
    assert edges or page.removesuffix(".html") not in lessons() or 'class="picture"' not in text(page)
    assert not edges or min(min(one) for one in edges) >= EDGE
    assert not edges or sorted(max(one) for one in edges)[len(edges) // 2] == EDGE


def test_a_phone_neither_zooms_into_a_field_nor_hides_the_minus_key(visit):
    assert visit.fields_wrong == [[], [], []]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_take_the_ink_of_the_page(opened, scheme):
    page, _ = opened("book/self-attention.html", scheme=scheme)
    ink = page.evaluate("getComputedStyle(document.querySelector('.picture')).color")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = [sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) for colour in (ink, paper)]
    assert abs(brightness[0] - brightness[1]) > 450
    card = page.evaluate("getComputedStyle(document.querySelector('.picture').parentElement).backgroundColor")
    assert card == "rgba(0, 0, 0, 0)"


def test_a_formula_is_copied_as_it_was_written(opened):
    page, _ = opened("book/self-attention.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    box = page.locator("p:has(math)").first
    box.evaluate("box => getSelection().selectAllChildren(box)")
    page.keyboard.press("Control+c")
    copied = page.evaluate("navigator.clipboard.readText()")
    source = box.evaluate("box => [...box.querySelectorAll('math')].map(one => one.getAttribute('alttext'))")
    assert re.findall(r"\$(.*?)\$", copied) == source != []
    assert "\n" not in copied.strip()


def test_an_example_is_copied_without_prompts_and_results(opened):
    page, wrong = opened("book/api.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    example = page.locator("div.highlight", has_text=">>> ").first
    lines = example.locator("pre").inner_text().splitlines()
    example.locator("button.copybtn").evaluate("button => button.click()")
    page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied == [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    assert len(copied) < len(lines)
    assert not wrong


HEADINGS = """['h1', 'h2', 'h3'].map(one => getComputedStyle(document.querySelector(`.bd-article ${one}`)))
    .map(one => [parseFloat(one.fontSize), Number(one.fontWeight)])"""


def test_a_heading_is_larger_than_those_below_it_and_as_bold(opened):
    page, _ = opened("book/masks.html")
    assert page.evaluate(HEADINGS) == [[36, 600], [28, 600], [22, 600]]


def test_icons_are_letters_of_a_font_that_has_them(opened):
    page, _ = opened("book/self-attention.html")
    font = TTFont(next((HTML / "_static" / "vendor" / "fontawesome" / "webfonts").iterdir())).getBestCmap()
    drawn = page.evaluate(
        "[...document.querySelectorAll('.fa-solid')].map(one => getComputedStyle(one, '::before'))"
        ".map(style => [style.content, style.fontFamily])"
    )
    assert len(drawn) > 10
    for content, family in drawn:
        assert family == '"Font Awesome 6 Free"'
        assert ord(content.strip('"')) in font


def test_a_wide_formula_begins_at_its_beginning_on_a_phone(opened):
    page, _ = opened("book/self-attention.html", width=360)
    starts = page.locator("div.math").evaluate_all(
        "boxes => boxes.map(box => box.querySelector('math > *').getBoundingClientRect().left"
        " - box.getBoundingClientRect().left)"
    )
    assert len(starts) > 10
    assert min(starts) >= 0


@pytest.mark.parametrize("address", ["no-such-page.html", "book/deeper/still/nothing"])
def test_an_address_that_leads_nowhere_shows_a_page_of_the_book(opened, site, address):
    page, wrong = opened(address)
    assert [one for one in wrong if "404" not in one] == []
    assert page.locator("h1").inner_text() == "This page is not there"
    assert page.evaluate("getComputedStyle(document.querySelector('main')).display") != "block"  # the style is there
    page.locator("article input[name=q]").fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li")
    assert page.url.startswith(f"{site}search.html")


def test_an_address_that_ends_in_a_malformed_escape_is_no_error(opened):
    page, wrong = opened("book/changelog.html#%E0%A4%A")
    assert page.locator(".bd-article h1").is_visible()
    assert not wrong


def test_a_tool_that_looks_for_errors_finds_a_planted_one(opened):
    page, wrong = opened("book/index.html")
    with page.expect_event("pageerror"):
        page.evaluate("setTimeout(() => { throw new Error('planted') })")
    with page.expect_request("http://127.0.0.1:9/"):
        page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    assert any("planted" in one for one in wrong)
    assert any(one.startswith("foreign") for one in wrong)


def test_a_planted_violation_is_found_in_the_scheme_that_it_stands_in(opened):
    page, _ = opened("book/changelog.html")
    page.add_style_tag(content="html[data-theme=dark] .bd-article p { color: #333 }")
    page.add_style_tag(content=".bd-article img { width: auto; height: auto }")
    plant = "document.querySelector('.bd-article').insertAdjacentHTML('beforeend', '<img src=data:,>')"
    page.evaluate(plant)
    page.evaluate(AXE)
    assert [one.split()[0] for one in violations(page)] == ["image-alt"]
    assert len(page.evaluate(UNSIZED)) == 1
    go_dark(page)
    assert [one.split()[0] for one in violations(page)] == ["color-contrast", "image-alt"]


@pytest.mark.parametrize(
    ("where", "planted"),
    [
        ("p", "last.style.color = '#bbb'"),
        ("p", "last.parentElement.style.background = '#777'"),
        ("pre > .k", "last.className = 'planted'"),
    ],
)
def test_a_planted_contrast_is_found_though_many_texts_have_the_look_that_it_had(opened, where, planted):
    page, _ = opened("book/learned-queries.html")
    page.add_style_tag(content=".planted { color: #bbb }")
    page.evaluate(AXE)
    assert violations(page) == []
    last = f"[...document.querySelectorAll('{where}[{SAME_LOOK}]')].findLast(one => one.checkVisibility())"
    page.evaluate(f"() => {{ const last = {last}; {planted} }}")
    assert [one.split()[0] for one in violations(page)] == ["color-contrast"]


def test_planted_low_contrast_is_found_in_a_field_that_has_been_checked_often(opened):
    page, _ = opened("404.html")
    page.evaluate(AXE)
    for _ in range(ENOUGH + 1):
        assert violations(page) == []
    field = page.locator(f"article input[{SAME_LOOK}]")
    field.evaluate("one => { one.style.color = '#bbb' }")
    assert [one.split()[0] for one in violations(page)] == ["color-contrast"]


def test_a_planted_link_without_an_underline_is_found(opened):
    page, _ = opened("book/changelog.html")
    page.add_style_tag(content=".bd-article p a { text-decoration: none !important }")
    page.evaluate(AXE)
    assert [one.split()[0] for one in violations(page)] == ["link-in-text-block"]
