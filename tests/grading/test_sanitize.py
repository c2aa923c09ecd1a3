"""What is stored of a student's notebook: Markdown that survives being rendered, clean HTML, and true pictures."""

import re
import sys
from base64 import b64encode
from io import BytesIO

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from grading import sanitize
from grading.css_sanitizer import safe_style
from grading.sanitize import MAX_NOTEBOOK_HTML, safe_html, safe_markdown, sanitized

# Every way of CommonMark to make a tag or an address, and what other parsers are known to make of one.
HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT\n>alert(1)",
    "<img src=x onerror=alert(1)>",
    "<br onclick=alert(1)>",
    "<b/onclick=alert(1)>",
    "</script ><!--><svg onload=alert(1)>",
    "<?php ?><!DOCTYPE html><![CDATA[x]]>",
    "<javascript:alert(1)>",
    "[x](javascript:alert(1))",
    "[x](  \n JaVaScRiPt:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](<java\tscript:alert(1)>)",
    "[x](< java\tscript:alert(1)>)",
    "[x](javascript&colon;alert(1))",
    "[x](javascript\\:alert(1))",
    "[x](&#x6a;avascript:alert(1))",
    "[x](vbscript:x)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "[x](a](javascript:alert(1)))",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "[x][y]\n\n[y]:\n  javascript:alert(1) 'title'",
    "[x][y]\n\n[y]: <javascript:alert(1)>",
    '[x](https://a.b "x\\" onclick=alert(1)")',
    '![x](https://a.b "\\" onerror=alert(1) y=\\"")',
    "```mermaid\n<img src=x onerror=alert(1)>\n```",
    '``` x"onclick=alert(1)\na\n```',
    "$x$<script>alert(1)</script>$y$",
    "\\begin{x}<script>alert(1)</script>\\end{x}",
    "# <img src=x onerror=alert(1)>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| [x](javascript:alert(1)) |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]
FORMULAS = [
    "$\\href{javascript:alert(1)}{x}$",
    "$$\\style{position:fixed}{x}$$",
    "$\\class{full-credit}{x} \\cssId{score}{x} \\unicode{x41}$",
    "$\\require{html}\\csname href\\endcsname{javascript:alert(1)}{x}$",
    "\\\\(\\htmlData{x=y}{z}\\\\)",
]
WEB = re.compile(r"https?:|mailto:|attachment:|data:image/(png|jpeg|gif|webp);")
PLAIN = {"p", "a", "img", "em", "strong", "code", "pre", "h1", "h2", "ul", "ol", "li", "table", "thead", "tbody", "tr"}
PLAIN |= {"th", "td", "br", "hr", "blockquote", "div", "span", "b", "i", "u", "sub", "sup", "del", "input", "h3", "h4"}
PLAIN |= {"h5", "h6", "dl", "dt", "dd", "s", "small", "center", "kbd"}
TAG = re.compile(r"<(/?[a-zA-Z!?][^\s/>]*)((?:\"[^\"]*\"|'[^']*'|[^>\"'])*)>")


def rendered(source: str) -> str:
    """Return what nbconvert makes of Markdown when nothing holds it back."""
    return MarkdownWithMath(renderer=IPythonRenderer(escape=False)).render(source)


def harm(html: str) -> list[str]:
    """Return the tags and addresses in HTML that could do something."""
    found = []
    for name, attributes in TAG.findall(html):
        if name.strip("/").lower() not in PLAIN or re.search(r"""(?:^|[\s/"'])on\w+\s*=""", unquoted(attributes)):
            found.append(name + attributes)
        for address in re.findall(r"(?:href|src)=[\"']?([^\"'>]*)", attributes):
            if ":" in address and not re.match(
                r"(https?:|mailto:|attachment:|data:image/(png|jpeg|gif|webp);)", address
            ):
                found.append(address)
    return found


def unquoted(attributes: str) -> str:
    return re.sub(r"\"[^\"]*\"|'[^']*'", '""', attributes)


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_markdown_is_harmless_once_it_is_rendered(source):
    assert harm(rendered(safe_markdown(source))) == []


def test_the_cases_do_harm_when_nothing_is_done():
    unharmed = [source for source in HOSTILE if not harm(rendered(source))]
    assert len(HOSTILE) - len(unharmed) >= 20, unharmed


SIGNS = ["<", ">", "](", "][", "]:", ")", "`", '"', "\\", "!", "$", "/", "\n", " "]
FRAGMENTS = st.sampled_from([*SIGNS, "a", "[x", "javascript:", "&#58;", "<b>", "on="])


@given(st.lists(FRAGMENTS, max_size=25).map("".join))
def test_no_mixture_of_fragments_does_harm(source):
    assert harm(rendered(safe_markdown(source))) == []


@given(st.lists(FRAGMENTS, max_size=25).map("".join))
def test_what_is_safe_stays_as_it_is(source):
    safe = safe_markdown(source)
    assert safe_markdown(safe) == safe


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_keeps_no_macro_that_makes_links_styles_or_names(formula):
    assert not re.search(r"\\(href|style|class|cssId|unicode|require|csname|html)", safe_markdown(formula))


@pytest.mark.parametrize(
    "source",
    [
        "Because $a < b$ and **so** on: `x[1:](y)`, and [the paper](https://arxiv.org/abs/1706.03762).",
        "![a drawing](attachment:image.png)\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "Two<br>lines, x<sup>2</sup>, <b>bold</b>.\n\n```python\nif a < b:\n    d[0]: int = 1\n```",
        "[1]: see below\n\n[^1]: a note\n\n[x](#section) [y](mailto:a@b.c)",
        "$$\\frac{\\exp(x_i)}{\\sum_j \\exp(x_j)} \\quad \\text{for } i \\le n$$",
    ],
)
def test_an_honest_answer_is_kept_letter_by_letter(source):
    assert safe_markdown(source) == source


@pytest.mark.parametrize("flood", ["](" * 200_000, "<" * 400_000, "[" * 400_000, "]:" + "a" * 400_000, "\\" * 400_000])
def test_a_flood_is_read_once(flood):
    assert len(safe_markdown(flood)) >= len(flood)


# HTML -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    ["<b>" * 5_000, "x" * 400_000, f"<p><b title='{'A' * 10_000}'>" + "<p>x" * 1_000],
    ids=["tags", "text", "attributes that HTML repeats in each paragraph"],
)
def test_what_grows_or_takes_long_to_clean_is_shown_as_text(html):
    assert safe_html(html).startswith("<pre>")


@pytest.mark.parametrize(
    "html",
    ["<p" + "".join(f" a{i}" for i in range(20_000)) + ">x</p>", f"<p style='color:{'rgb(' * 20_000}'>x</p>"],
    ids=["attributes", "brackets in a style"],
)
def test_what_has_too_much_in_a_tag_loses_it(html):
    assert safe_html(html) == "<p>x</p>"


def test_a_large_picture_in_html_is_kept_as_it_is():
    html = f'<img src="data:image/png;base64,{"A" * 1_000_000}">'
    assert safe_html(html) == html


@pytest.mark.parametrize("address", ["x.png", "https://a.b/x.png", "//a.b/x.png", "data:text/html;base64,AAAA", ""])
def test_a_picture_from_elsewhere_loses_its_address(address):
    assert safe_html(f'<img alt="x" src="{address}">') == '<img alt="x">'


@pytest.mark.parametrize("address", ["/x", "x.html", "//a.b", "ftp://a.b", "javascript:x", " https://a.b", "data:,x"])
def test_a_link_leads_to_the_web_or_nowhere(address):
    assert "href" not in safe_html(f'<a href="{address}">x</a>')
    assert "href" in safe_html('<a href="https://a.b">x</a>')


STYLES = {
    "color:red;position:fixed": "color:red;",
    "c\\6flor:r\\65 d;p\\6fsition:fixed": "color:red;",
    "background-color:url(https://a.b/x);width:1px": "width:1px;",
    "background-color:u\\72l(https://a.b/x);width:1px": "width:1px;",
    "width:expression(alert(1));color:rgb(1,2,url(x))": "",
    "color:rgba(70,130,200,0.45)": "color:rgba(70,130,200,0.45);",
    "color:red;x{color:red}@import 'x';width:1px": "color:red;width:1px;",
    "color:image-set('x');font-family:\"a'b\",serif": 'font-family:"a\'b",serif;',
    "color/**/:red/*;position:fixed": "color:red;",
    "--x:url(y);color:var(--x)": "",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_style_keeps_simple_values_of_known_properties(style):
    assert safe_style(style) == STYLES[style]


def test_a_value_that_cannot_be_judged_is_left_out(monkeypatch):
    def fails(style):
        raise RecursionError

    monkeypatch.setattr(sanitize, "safe_style", fails)
    monkeypatch.setattr(sys, "unraisablehook", lambda error: None)
    assert safe_html("<p style='color:red'>x</p>") == "<p>x</p>"


MARKUP = [
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<table>",
    "<td>",
    "</table>",
    "<a href='https://a.b'>",
    "</a>",
    "<svg>",
    "</svg>",
]
MARKUP += [
    "<math>",
    "<mtext>",
    "<style>",
    "</style>",
    "<!--",
    "-->",
    "<img title='",
    "'>",
    '">',
    "&lt;",
    "&",
    "x",
    "\n",
]
MARKUP += ["<select>", "<noscript>", "<script>", "</script>", "\0", "<img src=x onerror=alert(1)>", "onclick=x"]


@given(st.lists(st.sampled_from(MARKUP), max_size=20))
def test_of_any_mixture_of_markup_only_known_tags_are_left(parts):
    cleaned = safe_html("".join(parts))
    for html in (cleaned, safe_html(cleaned)):
        for tag in BeautifulSoup(html, "html.parser").find_all(True):
            assert tag.name in {"p", "b", "table", "tbody", "tr", "td", "a", "img"}
            assert tag.attrs.keys() <= {"href", "rel", "title"}


@pytest.mark.parametrize("name", ["full-credit", "modal fade in", "nbgrader_cell", "score"])
def test_no_class_is_kept_that_formgrader_knows(name):
    assert "class" not in safe_html(f'<div class="{name}">x</div>')


def test_the_table_of_a_data_frame_stays_as_it_is_and_its_style_sheet_is_no_text():
    table = '<table class="dataframe"><tbody><tr style="text-align: right;"><td>1</td></tr></tbody></table>'
    assert safe_html(table) == table
    assert safe_html(f"<style scoped>.dataframe td {{ vertical-align: top; }}</style>{table}") == table


# Notebooks ------------------------------------------------------------------------------------------------------------


def picture(kind: str) -> str:
    Image.new("RGB", (2, 3)).save(file := BytesIO(), kind)
    return b64encode(file.getvalue()).decode()


def shown(**data: str) -> dict[str, object]:
    """Return the data that is stored of an output."""
    output = new_output(
        "display_data", {name.replace("_", "/").replace("svg", "svg+xml"): x for name, x in data.items()}
    )
    output.metadata["text/html"] = {"isolated": True}
    (cell,) = sanitized(new_notebook(cells=[new_code_cell("x", outputs=[output])])).cells
    assert cell.outputs[0].metadata == {}
    return dict(cell.outputs[0].data)


def test_true_pictures_are_kept_and_others_left_out():
    png, jpeg = picture("png"), picture("jpeg")
    assert shown(image_png=png, image_jpeg=jpeg, text_plain="x") == {
        "image/png": png,
        "image/jpeg": jpeg,
        "text/plain": "x",
    }
    assert shown(image_png=png[:40] + "\n" + png[40:]) == {"image/png": png}
    assert shown(image_png=png + '"><script>', image_jpeg=png, text_plain="x") == {"text/plain": "x"}


def test_svg_becomes_a_picture_in_which_nothing_runs():
    (html,) = shown(image_svg="<svg onload='alert(1)'/>").values()
    assert re.fullmatch(r'<img alt="A figure" src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+">', html)


def test_a_drawing_within_html_is_shown_by_the_picture_that_came_with_it():
    drawing, png = "<div role='img' aria-label='x'><svg><text>1</text></svg></div>", picture("png")
    assert shown(text_html=drawing, image_png=png, text_plain="x") == {"image/png": png, "text/plain": "x"}
    assert "text/html" in shown(text_html=f"<p>A figure:</p>{drawing}", image_png=png)
    assert "text/html" in shown(text_html=drawing, text_plain="x")


def test_formulas_are_kept_as_markdown():
    assert shown(text_latex="$x<y$ \\href{javascript:x}{y}") == {
        "text/markdown": "$x< y$ \\backslash href{javascript:x}{y}"
    }


def test_a_picture_pasted_into_an_answer_is_kept_and_what_only_claims_to_be_one_is_not():
    png = picture("png")
    cell = new_markdown_cell("![x](attachment:a.png)")
    cell.attachments = {"a.png": {"image/png": png}, "b.png": {"text/html": "<script>", "image/png": "<script>"}}
    assert sanitized(new_notebook(cells=[cell])).cells[0].attachments == {"a.png": {"image/png": png}}


def test_metadata_that_pages_act_on_is_left_out_and_code_is_untouched():
    cell = new_code_cell("a<b", metadata={"nbgrader": {"grade_id": "x"}, "widgets": 1, "nbsphinx": 2})
    notebook = sanitized(new_notebook(cells=[cell], metadata={"title": "<script>", "widgets": {}, "grading": {"x": 1}}))
    assert notebook.metadata == {"grading": {"x": 1}}
    assert notebook.cells[0].metadata == {"nbgrader": {"grade_id": "x"}}
    assert notebook.cells[0].source == "a<b"
    assert "widgets" in cell.metadata  # the notebook that came is left as it was


def test_beyond_a_bound_html_is_no_longer_cleaned():
    output = new_output("display_data", {"text/html": "<b>x</b>" + "x" * 200_000})
    (cell,) = sanitized(new_notebook(cells=[new_code_cell("x", outputs=[output] * 5)])).cells
    texts = [output.data["text/html"].startswith("<pre>") for output in cell.outputs]
    assert texts == sorted(texts)
    assert texts.count(False) == MAX_NOTEBOOK_HTML // 200_008
