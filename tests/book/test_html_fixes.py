"""What is put right on every page after Sphinx has written it."""

import re

import pytest
from _ext.html_fixes import description, plain_text
from pages import pages, text

LINK = r'<a class="[^"]*\binternal\b[^"]*"[^>]*>((?:(?!</a>).)*)</a>'
ARROW = re.compile(LINK + r'<details[^>]*><summary aria-label="([^"]*)"', re.DOTALL)
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
