"""What is folded away: the siblings between two marks, whatever they are, with everything that refers to them."""

import io
import re

import nbformat
import pytest
from _ext.section_search import entries_of
from axe import AXE, go_dark, violations
from browser_tab import tab
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pages import build_small
from playwright.sync_api import expect
from served import served
from sphinx.application import Sphinx
from sphinx.util.console import strip_colors
from sphinx.util.docutils import docutils_namespace

pytestmark = pytest.mark.slow

END = ":::{fold-end}\n:::\n\n"
PREDICT = ":::{admonition} Predict\n:class: predict\n\nHow many?\n:::\n\n"
CODE = "print(6 * 7)"
CONFIG = {
    "extensions": ["myst_nb", "_ext.folds"],
    "nb_execution_mode": "off",
    "myst_enable_extensions": ["colon_fence", "dollarmath"],
    "myst_heading_anchors": 3,
    "numfig": True,
    "html_theme": "basic",  # shows the contents of the page
}


def fold(title):
    return f":::{{fold}} {title}\n:::\n\n"


SECTIONS = {  # text, and a cell of code with its output wherever there is None
    "between": ["Before.\n\n" + fold("Go *deeper*: $x$"), "Inside.", None, END + "After."],
    "below-heading": [fold("All of it") + "Text.\n\n### Part\n\nMore."],
    "prediction": [PREDICT, None, "It is 42.\n\n" + END + "On we go."],
    "without-end": [PREDICT, None, PREDICT + "Two.", fold("Deeper") + "Text."],
    "nothing-to-hide": [PREDICT + END + "Three."],
    "nested": [fold("Deeper") + "Text.\n\n" + PREDICT, None, END, "Still deep.", END + "Out."],
}
REFERENCES = f"""\
# References

[To the part](#part), {{eq}}`a-formula`, {{numref}}`a-figure` [there](#a-place), [all](#a-fold).

(a-figure-before)=
:::{{figure}} nothing.png
A caption.
:::

:::{{toctree}}
sections
:::

## Part

(a-fold)=
{fold("Reservoirs")}(a-place)=
A place with a hydrant.

:::{{math}}
:label: a-formula
x = 1
:::

(a-figure)=
:::{{figure}} nothing.png
A caption.
:::

### Subsection

Text.
"""
WRONG = f"""\
# Page

## One

Text.

{END}
## Two

{fold("Outer")}
Text.

{fold("Inner")}
Text.

## Three

Text.

{fold("Empty")}{END}
## Four

Text.

{fold("Empty at the end")}
"""


def sphinx(folder, builder="html", **pages):
    """Build pages, given as text or as a notebook; return the folder of the results and the warnings."""
    for name, page in pages.items():
        suffix, text = (".md", page) if isinstance(page, str) else (".ipynb", nbformat.writes(page))
        (folder / name).with_suffix(suffix).write_text(text)
    (folder / "nothing.png").write_bytes(b"")
    warnings = io.StringIO()
    with docutils_namespace():
        trees, out = folder / "trees", folder / builder
        Sphinx(folder, None, out, trees, builder, CONFIG, io.StringIO(), warnings, freshenv=True).build()
    return out, strip_colors(warnings.getvalue())


def notebook():
    """A notebook that has been executed, with a section for each of SECTIONS."""
    about = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    cells = [new_markdown_cell("# Page")]
    for name, parts in SECTIONS.items():
        cells.append(new_markdown_cell(f"## {name}"))
        output = [new_output("stream", text="42")]
        cells += [new_markdown_cell(part) if part else new_code_cell(CODE, outputs=output) for part in parts]
    return new_notebook(metadata=about, cells=cells)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out, warnings = sphinx(tmp_path_factory.mktemp("book"), index=REFERENCES, sections=notebook())
    assert warnings == ""
    return out


def parsed(file):
    return BeautifulSoup(file.read_text(), "html.parser")


@pytest.fixture
def section(built):
    return lambda name: parsed(built / "sections.html").select_one(f"section#{name}")


def text(element):
    return " ".join(element.get_text(" ").split())


def paragraphs(element):
    return [one.get_text() for one in element.find_all("p", recursive=False)]


def test_a_fold_contains_what_is_between_its_marks(section):
    (details,) = section("between").select("details.fold")
    summary = details.select_one("summary")
    assert details.find(True) is summary
    assert summary.get_text() == r"Go deeper: \(x\)"
    assert summary.select("em, span.math")
    assert paragraphs(details) == ["Inside."]
    assert text(details.select_one(".cell_input")) == "print ( 6 * 7 )"
    assert text(details.select_one(".cell_output")) == "42"
    assert paragraphs(details.parent) == ["Before.", "After."]


def test_a_fold_below_a_heading_contains_the_rest_of_its_section_and_its_subsections(section):
    (details,) = section("below-heading").select("details.fold")
    assert details.parent["id"] == "below-heading"
    assert paragraphs(details) == ["Text."]
    assert paragraphs(details.select_one("section#part")) == ["More."]


def test_a_prediction_hides_its_answer(section):
    (answer,) = section("prediction").select("details.fold")
    assert "answer" in answer["class"]
    assert "open" not in answer.attrs
    assert answer.select_one("summary").get_text() == "Show the answer"
    assert paragraphs(answer) == ["It is 42."]
    assert text(answer.select_one(".cell_output")) == "42"
    assert "predict" in answer.find_previous_sibling()["class"]
    assert paragraphs(answer.parent) == ["On we go."]


@pytest.mark.parametrize(("name", "last"), [("without-end", "Two."), ("nothing-to-hide", "Three.")])
def test_a_prediction_without_an_end_or_with_nothing_before_it_hides_nothing(section, name, last):
    assert section(name).select(".predict")
    assert not section(name).select("details.answer")
    assert paragraphs(section(name)) == [last]


def test_a_prediction_inside_a_fold_hides_its_answer_there(section):
    outer, inner = section("nested").select("details.fold")
    assert inner.parent is outer
    assert text(inner.select_one(".cell_output")) == "42"
    assert paragraphs(outer) == ["Text.", "Still deep."]
    assert paragraphs(outer.parent) == ["Out."]


def test_what_is_folded_keeps_its_numbers_and_its_place_in_the_contents(built):
    page = parsed(built / "index.html")
    links = {link["href"]: text(link) for link in page.select("section > p a.reference")}
    assert links == {
        "#part": "To the part",
        "#equation-a-formula": "(1)",
        "#a-figure": "Fig. 2",
        "#a-place": "there",
        "#a-fold": "all",
    }
    for address in ("equation-a-formula", "a-figure", "a-place", "subsection"):
        assert page.select_one(f"details.fold [id={address}]"), address
    assert page.select_one("details.fold#a-fold")
    assert page.select_one(".sphinxsidebar a[href='#subsection']")


def test_what_is_folded_is_found_by_the_search(built):
    entries = entries_of((built / "index.html").read_text(), "index", "")
    assert any("Reservoirs" in one["text"] for one in entries), "the title of a fold"
    assert any("hydrant" in one["text"] for one in entries), "what is in a fold"


def test_other_formats_show_everything(tmp_path):
    out, warnings = sphinx(tmp_path, "text", index=notebook())
    assert warnings == ""
    words = (out / "index.txt").read_text()
    assert "Inside." in words
    assert "Still deep." in words


def test_a_wrong_order_is_a_warning_with_file_and_line(tmp_path):
    _, warnings = sphinx(tmp_path, index=WRONG)
    lines = WRONG.splitlines()
    expected = {
        lines.index(":::{fold-end}") + 1: "nothing to end",
        lines.index(":::{fold} Inner") + 1: "begins inside another",
        lines.index(":::{fold} Empty") + 1: "contains nothing",
        lines.index(":::{fold} Empty at the end") + 1: "contains nothing",
    }
    found = re.findall(r"index\.md:(\d+): WARNING: (.*)", warnings)
    assert [int(line) for line, _ in found] == list(expected)
    for (_, message), problem in zip(found, expected.values(), strict=True):
        assert problem in message


PAGE = f"""\
# A page

This takes {{reading-time}}`minutes`. [Into the fold](#deep).

{PREDICT}
It is $6 \\cdot 7$.

{END}
{fold("Go deeper: `x`")}
Some.

::::{{dropdown}} More
(deep)=
Deep.
::::
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory, browser):
    """A book of one page, built as make builds the real one."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "_build" / "released").mkdir(parents=True)
    (folder / "book").mkdir()
    done = build_small(folder, PAGE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "book/index: 21 words, 1 min; 3 words are folded away" in done.stdout
    with served(folder / "_build" / "html") as address:
        yield address


def test_an_answer_opens_by_mouse_and_by_keyboard_and_nothing_bars_anybody_from_it(browser, site):
    with tab(browser, site, "book/index.html", width=390) as (page, wrong, _):
        expect(page.locator(".reading-time")).to_have_text("1 minute")
        answer, formula = page.locator("details.answer"), page.locator("details.answer math")
        expect(formula).to_be_hidden()
        page.evaluate(AXE)
        assert violations(page) == []
        answer.locator("summary").click()
        expect(formula).to_be_visible()
        page.keyboard.press("Enter")
        expect(formula).to_be_hidden()
        page.keyboard.press("Space")
        expect(formula).to_be_visible()
        go_dark(page)
        assert violations(page) == []
        assert not wrong


FOLLOW = "history.replaceState(null, '', '#deep'); dispatchEvent(new HashChangeEvent('hashchange'))"


def test_a_link_into_a_fold_opens_it(browser, site):
    with tab(browser, site, "book/index.html#deep") as (page, *_):
        expect(page.get_by_text("Deep.", exact=True)).to_be_in_viewport()
    with tab(browser, site, "book/index.html") as (page, wrong, _):
        deep = page.get_by_text("Deep.", exact=True)
        expect(deep).to_be_hidden()
        page.evaluate(FOLLOW)  # where the browser itself opens nothing
        expect(deep).to_be_in_viewport()
        expect(page.locator("details.answer math")).to_be_hidden()
        page.reload()
        page.get_by_text("Into the fold").click()
        expect(deep).to_be_in_viewport()
        assert not wrong


def test_on_paper_everything_is_open_and_the_line_that_showed_the_answer_is_gone(browser, site):
    with tab(browser, site, "book/index.html") as (page, *_):
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        for words in ("Deep.", "Some.", "Go deeper"):
            expect(page.locator("details").get_by_text(words).last).to_be_visible()
        expect(page.get_by_text("Show the answer")).to_be_hidden()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details.fold[open]").count() == 0
