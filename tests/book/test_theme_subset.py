"""What is left out of the theme's style sheet, and of code, is what no page can need."""

import re

import pytest
from _ext.html_fixes import PLAIN_PYGMENTS_CLASSES
from _tools import theme_subset
from _tools.theme_subset import FONTS, STYLE_SHEET, THEME, THEME_JS, all_styles, cut, trim, used_rules, without_stops
from browser_tab import wait_until
from pages import HTML, moved, pages, text
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("style", "words", "left"),
    [
        (".a{x:1}.b{x:2}", {"a"}, ".a{x:1}"),
        (".a,.b .c,p{x:1}", {"b", "c"}, ".b .c,p{x:1}"),
        ("@media (min-width:9px){.a{x:1}}p{x:2}", set(), "p{x:2}"),
        ("@media (min-width:9px){.a{x:1}.b{x:2}}", {"b"}, "@media (min-width:9px){.b{x:2}}"),
        ("p:not(.a){x:1}", set(), "p:not(.a){x:1}"),
        (".a:is(.b,.c) .d{x:1}", {"a", "d"}, ".a:is(.b,.c) .d{x:1}"),
        (":is(.a,.b:not(.c)) p{x:1}.b{x:2}", {"a"}, ":is(.a,.b:not(.c)) p{x:1}"),
        ('a[href$=".pdf"]{x:1}', set(), 'a[href$=".pdf"]{x:1}'),
        (".bs-tip-auto{x:1}.bs-other{x:2}", {"bs-tip", "bs"}, ".bs-tip-auto{x:1}"),
        (".-Color-Red{x:1}.-Color-Blue{x:2}", {"Color-Red"}, ".-Color-Red{x:1}"),
        ("@keyframes turn{0%{x:1}to{x:2}}", set(), "@keyframes turn{0%{x:1}to{x:2}}"),
        ('@font-face{src:url("a.woff")}', set(), '@font-face{src:url("a.woff")}'),
        ("/*! by a.com, b */.a,.b{x:1}", {"b"}, "/*! by a.com, b */.b{x:1}"),
        ("@supports (x:1){@media print{.a{x:1}}}", set(), ""),
    ],
)
def test_rules_stay_whose_classes_occur(style, words, left):
    assert used_rules(style, words) == left


def test_a_style_sheet_is_cut_again_only_when_it_or_a_word_that_matters_has_changed(tmp_path, monkeypatch):
    sheet, calls = tmp_path / "a.css", []

    def counted(style, words):
        calls.append(words)
        return used_rules(style, words)

    monkeypatch.setattr(theme_subset, "used_rules", counted)
    sheet.write_text(".a{x:1}.bs-tip-auto{x:2}")
    for words, left, cuts in [
        ({"a", "prose"}, ".a{x:1}", 1),
        ({"a", "other"}, ".a{x:1}", 1),
        ({"a", "bs-tip"}, ".a{x:1}.bs-tip-auto{x:2}", 2),
        ({"a"}, ".a{x:1}", 2),
    ]:
        assert cut(sheet, words, tmp_path / "cache") == left
        assert len(calls) == cuts
    sheet.write_text(".a{x:3}")
    assert cut(sheet, {"a"}, tmp_path / "cache") == ".a{x:3}"


@pytest.mark.parametrize("style", ["a11y-high-contrast-light", "a11y-high-contrast-dark"])
def test_what_is_left_without_an_element_in_code_has_the_colour_of_text(style):
    colours = {name: get_style_by_name(style).style_for_token(token) for token, name in STANDARD_TYPES.items()}
    assert all(colours[name] == colours[""] for name in PLAIN_PYGMENTS_CLASSES)
    sheet = (HTML / "_static" / STYLE_SHEET).read_text().lower()
    assert f".highlight .n {{ color: #{colours['n']['color'].lower()} }}" in sheet
    code = "".join(re.findall(r'<div class="highlight">.*?</div>', text("book/masks.html"), re.DOTALL))
    assert len(re.findall('<span class="[a-z0-9]+">', code)) > 500
    assert not re.findall(f'<span class="(?:{"|".join(PLAIN_PYGMENTS_CLASSES)})">', code)


LINK = re.compile(r'<link\b(?=[^>]*rel="stylesheet")(?![^>]*media="print")[^>]*href="[^"]*?([^"/]+)"')


def test_a_page_waits_for_one_style_sheet_and_the_front_page_also_for_its_own():
    found = [LINK.findall(text(page)) for page in {*pages()} - {"index.html", *moved()}]
    names = {tuple(one.partition("?")[0] for one in links) for links in found}
    assert names == {(STYLE_SHEET,), (STYLE_SHEET, "front.css")}
    assert len({shared for shared, *_ in found}) == 1  # they have the same version of it


@pytest.fixture
def static(tmp_path):
    """The style sheets of a site with one page, of which each has a rule of its own."""
    static = tmp_path / "_static"
    static.mkdir()
    for number, name in enumerate(["formulas", "course", "mystnb.1f", "copybutton", "pygments", "basic"]):
        (static / f"{name}.css").write_text(f"p{{x:{number}}}.unused{{x:{number}}}")
    (static / "print.css").write_text("p{x:paper}")
    return static


def test_style_sheets_keep_their_order_and_ours_are_not_cut(static):
    text = all_styles(static, set(), static.parent / "cache")
    assert re.findall(r"([.\w]+)\{x:(\d)\}", text) == [
        ("p", "5"),
        *[("p", "4"), (".unused", "4"), ("p", "3"), (".unused", "3"), ("p", "2")],
        *[("p", "1"), (".unused", "1"), ("p", "0"), (".unused", "0")],
    ]
    assert text.startswith('@charset "UTF-8";')


def test_a_version_of_the_style_sheet_belongs_to_what_is_in_it(static):
    for folder in ("scripts", FONTS):
        (static / folder).mkdir(parents=True)
    page = static.parent / "page.html"
    page.write_text('<link href="_static/styles.css"><a href="_static/other.css">')
    found = []
    for word in ("", "", "<p class=unused>"):
        page.write_text(page.read_text() + word)
        trim(static.parent, static.parent / "cache")
        found.append((re.search(r'styles\.css\?v=(\w+)">', page.read_text())[1], (static / STYLE_SHEET).read_text()))
    assert found[0] == found[1] != found[2]
    assert found[1][0] != found[2][0]
    assert found[1][1].count("unused") < found[2][1].count("unused")
    assert 'href="_static/other.css"' in page.read_text()


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_an_address_that_would_lead_nowhere_is_refused(static, quote):
    (static / "course.css").write_text(f"p{{background:url({quote}../picture.png{quote})}}")
    with pytest.raises(ValueError, match=r"begins with \.\./"):
        trim(static.parent, static.parent / "cache")


def test_the_themes_script_loses_one_function_and_runs(opened):
    theirs = (THEME / THEME_JS).read_text(encoding="utf-8")
    ours = (HTML / "_static" / THEME_JS).read_text(encoding="utf-8")
    assert ours == without_stops(theirs)
    assert 300 < len(theirs) - len(ours) < 600
    page, wrong = opened("book/masks.html")
    page.locator(".theme-switch-button:visible").first.click()
    assert page.evaluate("document.documentElement.dataset.mode") in ("light", "dark")
    assert not wrong


def test_another_script_of_the_theme_is_refused():
    with pytest.raises(ValueError, match="0 functions that make stops of the tab key"):
        without_stops("function other(){}")


BOXES = """[...document.querySelectorAll('pre')].filter(box => !box.closest('details:not([open])'))
    .map(box => [box.scrollWidth > box.clientWidth, box.tabIndex === 0])"""


def test_what_scrolls_is_a_stop_of_the_tab_key_and_what_does_not_is_none(opened):
    page, _ = opened("book/masks.html", width=360)

    def scrolls():
        wait_until(page, f"{BOXES}.every(([wide, stop]) => wide === stop)")
        return [wide for wide, _ in page.evaluate(BOXES)]

    narrow = scrolls()
    assert any(narrow)
    assert not all(narrow)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    opened_up = scrolls()
    assert sum(opened_up) > sum(narrow)
    page.set_viewport_size({"width": 1500, "height": 900})
    assert sum(scrolls()) < sum(opened_up)
