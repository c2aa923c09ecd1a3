"""How long a page takes to read: counted here by hand."""

import re

import pytest
from _ext.reading_time_role import fill_in
from _tools.reading_time import Reading, measure, parse

# Each piece of a page, the words of it that are in view, and those that are folded away.
PIECES = {
    "a heading with its link": (
        '<h1>One two<a class="headerlink">#</a></h1><p>Three <em>four</em>.</p>',
        4,
        0,
    ),
    "a name of two parts is one word": ("<p><code><span>self</span>-<span>attention</span></code>, then</p>", 2, 0),
    "neighbouring blocks": ("<ul><li>one</li><li>two</li></ul><dl><dt>three</dt><dd>four</dd></dl>", 4, 0),
    "code": ('<div class="cell_input"><pre><span>x</span> <span>=</span> softmax(a, b)\ny</pre></div>', 5, 0),
    "printed": ('<div class="cell_output"><pre>the state is 0.5</pre></div>', 4, 0),
    "a table": ("<table><caption>Two words</caption><tr><th>a</th><td>1</td><td>2</td></tr></table>", 5, 0),
    "a formula on a line of its own": ("<div class='math'><math><mi>a</mi><mo>=</mo><mi>b</mi></math></div>", 5, 0),
    "formulas in a sentence": ("<p>If <math><mi>x</mi> <mo>=</mo> <mi>y</mi></math>, so.</p>", 3, 0),
    "a figure": ("<figure><svg><text>not this</text></svg><figcaption>Only this one.</figcaption></figure>", 3, 0),
    "an explorer": ("<attention-explorer><script>{}</script><p>Nobody reads it.</p></attention-explorer>", 0, 0),
    "a fold": ('<details class="fold"><summary>Go deeper</summary><p>one two three</p></details>', 2, 3),
    "an answer": ('<details class="answer fold"><summary>Show it</summary><p>one two three</p></details>', 5, 0),
    "an answer in a fold": (
        '<details class="fold"><summary>More</summary><p>one</p>'
        '<details class="answer fold"><summary>Show it</summary><p>two</p></details></details>',
        1,
        4,
    ),
    "a fold in an answer": (
        '<details class="answer fold"><summary>Show it</summary><p>two</p>'
        '<details class="sd-dropdown"><summary>More</summary><p>of the same</p></details></details>',
        4,
        3,
    ),
    "hidden code": (
        '<details class="admonition hide above-input"><summary><p class="collapsed admonition-title">Show code</p>'
        "</summary><pre>x = 1</pre></details>",
        0,
        3,
    ),
    "a question": (
        '<div class="quiz admonition"><p class="admonition-title">Question</p><p>Which one?</p>'
        '<details class="sd-dropdown"><summary><span>A. This one.</span></summary><div><p>No, it is not.</p></div>'
        "</details></div>",
        6,
        4,
    ),
    "a toggle": (
        '<div class="admonition dropdown note"><p class="admonition-title">A note</p><p>Not now.</p></div>',
        2,
        2,
    ),
    "a way to an exercise": ('<div class="in-browser docutils container"><p>Do this exercise</p></div>', 0, 0),
    "sources": ('<section><h2>Go deeper<a class="headerlink">#</a></h2><p>A book.</p></section>', 0, 0),
    "tasks": (
        '<section><h2>Check yourself</h2><p>Well?</p><section><h3>One</h3><details class="fold"><summary>A</summary>'
        "B</details></section></section>",
        0,
        0,
    ),
    "a section whose title only begins so": ("<section><h2>Exercises in style</h2><p>One.</p></section>", 4, 0),
    "pages below this one": ('<div class="toctree-wrapper"><section><h1>Next</h1></section></div>', 0, 0),
}


@pytest.mark.parametrize("piece", PIECES)
def test_words_in_view_are_counted(piece):
    html, words, folded = PIECES[piece]
    assert measure(parse(html)) == (words, folded)


def test_a_page_has_the_words_of_its_pieces_and_what_is_around_it_does_not_count():
    words, folded = (sum(numbers) for numbers in list(zip(*PIECES.values(), strict=True))[1:])
    body = "\n".join(html for html, *_ in PIECES.values())
    page = f'<title>Title</title><nav>Contents</nav><article class="bd-article"><section>{body}</section></article>Foot'
    assert measure(parse(page)) == (words, folded)


@pytest.mark.parametrize(("words", "minutes"), [(0, 1), (150, 1), (151, 2), (4500, 30), (4501, 31)])
def test_minutes_are_rounded_up(words, minutes):
    assert Reading(words, 7).minutes == minutes


class Html:
    """As much of a Sphinx application as a page is written with."""

    def __init__(self, builder):
        self.builder = self
        self.name = builder


MARK = '<span class="reading-time">… minutes</span>'


def filled(body, builder="html"):
    context = {"body": body}
    fill_in(Html(builder), "book/page", "page.html", context, object())
    return context["body"]


def test_the_page_says_its_minutes():
    words = "word " * 300
    assert filled(f"<p>It takes {MARK}.</p>{words}") == (
        f'<p>It takes <span class="reading-time">3 minutes</span>.</p>{words}'
    )
    assert ">1 minute<" in filled(f"<p>It takes {MARK}.</p>")


def test_where_all_pages_are_in_one_each_says_its_own_minutes():
    inner = f'<div class="toctree-wrapper"><section><h1>B</h1>{MARK} {"word " * 400}</section></div>'
    outer = f'<div class="toctree-wrapper"><section><h1>A</h1>{MARK} {"word " * 200}{inner}</section></div>'
    body = filled(f"<section><h1>Book</h1>{MARK} {outer}</section>", "singlehtml")
    assert re.findall(r'"reading-time">(.*?)<', body) == ["1 minute", "2 minutes", "3 minutes"]
