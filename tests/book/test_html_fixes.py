"""What is put right on every page after Sphinx has written it."""

import re

import pytest
from _ext.html_fixes import description, plain_text
from _ext.number_columns import align_numbers, is_numeric
from bs4 import BeautifulSoup
from pages import moved, pages, text

LINK = r'<a class="[^"]*\binternal\b[^"]*"[^>]*>((?:(?!</a>).)*)</a>'
ARROW = re.compile(LINK + r'<details[^>]*><summary aria-label="([^"]*)"', re.DOTALL)
# Numbers as they appear in tables: 860, 6.76, −0.02, 4e-16, 30.9%, 4.72 MB.
PLAIN_NUMBER = re.compile(r"[+\-−]?(?=[\d,]*\d)[\d,]+(?:\.\d+)?(?:e-\d+)?(?: ?(?:%|×|[kKMG]i?B|m?s|min))?")
LONG = "A paragraph that is long enough to say what its page is about."


@pytest.mark.slow
def test_each_arrow_in_the_contents_names_what_it_opens():
    for page in pages():
        for name, label in ARROW.findall(text(page)):
            assert label == f"Below: {plain_text(name)}", page
    assert len(ARROW.findall(text("book/masks.html"))) >= 1


@pytest.mark.parametrize(
    ("body", "about"),
    [
        (f"<p>{LONG}</p>", LONG),
        (f"<p>Short one.</p><pre>import numpy</pre><script>alert()</script><p>{LONG}</p>", LONG),
        (f'<div class="in-browser docutils container"><p>{LONG[2:]}</p>\n<p>It loads.</p></div><p>{LONG}</p>', LONG),
        ("<p>Short one.</p>", ""),
        ("", ""),
        (f"<p>{'word ' * 50}</p>", "word " * 34 + "word…"),
    ],
)
def test_a_page_that_does_not_describe_itself_is_described_by_its_first_long_paragraph(body, about):
    assert description("a", {"body": body}) == about


@pytest.mark.parametrize("language", ["", ' lang="en"'])
def test_what_a_page_says_of_itself_is_taken(language):
    tag = f'<meta content="Of &lt;attention&gt;."{language} name="description" />'
    assert description("a", {"metatags": tag, "body": f"<p>{LONG}</p>"}) == "Of <attention>."


@pytest.mark.parametrize(
    ("column", "numeric"),
    [
        (["6.76", "860"], True),
        (["0.0%", "100%"], True),
        (["12", "–", "1–2"], True),
        (["+0.37", "-0.02", "−4"], True),
        (["128,256", "4,096"], True),
        (["4e-16", "0"], True),
        (["36 KiB", "12 ms", "0.4 min"], True),
        (["6 of 6", "66% (46%)", "94% (86% to 100%)", "0.69 (5, 11)"], True),
        (["–", ""], False),
        (["4, 3", "5, 2"], False),  # layer and head
        (["12 × 12 × 64"], False),
        (["1999-09-27"], False),
        (["4,096", "llama"], False),
        (["2 of many", "3 to 8"], False),
    ],
)
def test_a_column_is_one_of_numbers_if_each_cell_is_a_number_or_empty(column, numeric):
    assert is_numeric(column) == numeric


def test_a_column_of_numbers_is_aligned_with_its_header():
    table = (
        '<table class="table">\n<thead>\n<tr><th class="head"><p>a</p></th><td class="head"></td></tr>\n'
        '</thead>\n<tbody>\n<tr><td><p>b</p></td>\n<td class="text-left"><p><strong>1</strong>.5</p></td></tr>\n'
        "</tbody>\n</table>"
    )
    aligned = BeautifulSoup(align_numbers(f"<p>1</p>{table}<p>2</p>"), "html.parser")
    assert [cell.get_text() for cell in aligned.select(".text-right")] == ["", "1.5"]
    spanning = table.replace("<td><p>b", '<td colspan="1"><p>b')
    assert align_numbers(spanning) == spanning
    uneven = '<table class="table"><tbody><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></tbody></table>'
    assert align_numbers(uneven) == uneven


def columns(page):
    """The columns of the tables of a page, each as its header and its other cells."""
    for html in re.findall(r"<table.*?</table>", text(page), re.DOTALL):
        table = BeautifulSoup(html, "html.parser").select_one("table.table, table.dataframe")
        rows = [row.find_all(["td", "th"]) for row in table.select("tr")] if table else []
        yield from ((cells[0], cells[1:]) for cells in zip(*rows, strict=True))


@pytest.mark.slow
def test_numbers_are_aligned_to_the_right_in_all_tables():
    aligned = 0
    for page in sorted({*pages()} - {*moved()}):
        for header, cells in columns(page):
            said = {" ".join(cell.get_text().split()) for cell in cells} - {"", "–"}
            if said and all(map(PLAIN_NUMBER.fullmatch, said)):
                left = [cell for cell in (header, *cells) if "text-right" not in cell.get("class", [])]
                assert not left, f"{page}: {header.get_text()}"
                aligned += 1
    assert aligned > 100


@pytest.mark.slow
def test_tooltips_contain_no_tex():
    titles = {title for page in pages() for title in re.findall(r'\btitle="([^"]*)"', text(page))}
    assert len(titles) > 100
    assert {title for title in titles if re.search(r"\$|\\\w|[\^_]\{", title)} == set()
