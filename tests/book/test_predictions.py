"""Nothing in view answers a prediction: neither a number that was quoted before, nor what follows the folded answer."""

import re

import pytest
from _tools.reading_time import parse
from pages import lessons, parsed, source
from test_lessons import CELL

BOX = re.compile(r"^:::\{admonition\} Predict\n:class: predict\n.*?^:::$", re.MULTILINE | re.DOTALL)
ANSWER_END = ":::{fold-end}\n:::\n"
FOLDED = re.compile(r"^:::\{fold\}([^\n]*)\n:::$.*?(?=^:::\{fold-end\}|^#+ |\Z)", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"\{glue:text\}`(\w+)")
MEASURED = re.compile(r"(?<![\w.,])\d+(?:\.\d+%?|%)")  # numbers that nobody has by chance: 0.45, 45%
NEXT_SCREEN = 100  # words: about 400 pixels of a page
# Numbers quoted earlier with which an answer compares its own.
KNOWN = {"fx_new", "lq_even", "rm_w_margin"}


def predictions(page):
    """Each prediction of a page: the box, its answer, and what is in view before and after them."""
    page = CELL.sub("", page)
    places = [(box.start(), box.end(), page.index(ANSWER_END, box.end())) for box in BOX.finditer(page)]
    for begin, answer, end in places:
        yield page[begin:answer], page[answer:end], in_view(page[:begin]), in_view(page[end:])


def in_view(part):
    """What a reader sees without opening answers or folds."""
    shut = re.sub(rf"({BOX.pattern}).*?{re.escape(ANSWER_END)}", r"\1\n", part, flags=re.MULTILINE | re.DOTALL)
    return FOLDED.sub(r"\1", shut)


def given_away(page):
    """The numbers of answers, by the names that the page gives to them, that are in view outside of the answers."""
    found = set()
    for box, answer, before, after in predictions(page):
        near = f"{before} {' '.join(after.split()[:NEXT_SCREEN])}"
        found |= set(QUOTED.findall(answer)) & set(QUOTED.findall(near)) - set(QUOTED.findall(box))
    return found - KNOWN


@pytest.mark.parametrize("name", lessons())
def test_no_number_of_an_answer_is_quoted_in_view(name):
    assert given_away(source(name)) == set()


def shut(element):
    """The text of an element while everything in it that opens is closed."""
    if element.name == "details":
        return element.summary.get_text(" ")
    return "".join(shut(child) if child.name else child for child in element.children) + " "


def words_after(element, most):
    """The first words that are in view after an element."""
    return " ".join(" ".join(map(shut, element.find_next_siblings())).split()[:most])


def shown(page):
    """The measured numbers in an answer of a built page that are also in view right after it."""
    found = {}
    for box in page.select(".predict"):
        answer = box.find_next_sibling()
        assert answer.name == "details", box.get_text()
        assert "open" not in answer.attrs, box.get_text()
        numbers = set(MEASURED.findall(" ".join(p.get_text(" ") for p in answer.select("p:not(table p)"))))
        numbers -= set(MEASURED.findall(box.get_text(" ")))
        if seen := numbers & set(MEASURED.findall(words_after(answer, NEXT_SCREEN))):
            found[box.get_text(" ", strip=True)] = seen
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons())
def test_what_follows_an_answer_on_the_page_does_not_show_its_numbers(name):
    assert shown(parsed(f"{name}.html")) == {}


PAGE = """\
It was {glue:text}`mean:.2f` at first.

:::{admonition} Predict
:class: predict
Is it more than {glue:text}`half:.1f`?
:::

```{code-cell} ipython3
print(1)
```

It is {glue:text}`answer:.2f`, more than {glue:text}`half:.1f`.

:::{fold-end}
:::

Now go on.
"""


@pytest.mark.parametrize("before", [":::{fold} Go deeper\n:::\n\n{glue:text}`answer`\n\n:::{fold-end}\n:::\n\n", ""])
def test_a_number_that_is_given_away_is_found(before):
    assert given_away(before + PAGE) == set()
    assert given_away(before + PAGE.replace("`mean:", "`answer:")) == {"answer"}
    assert given_away(before + PAGE + "\nAs {glue:text}`answer:.0%` shows.\n") == {"answer"}
    assert given_away(before + PAGE + "word " * NEXT_SCREEN + "{glue:text}`answer`") == set()
    assert given_away(PAGE + PAGE.replace("answer", "second")) == set()


BUILT = """<div class="predict admonition"><p>About 10%?</p></div>
<details class="answer fold"><summary>Show the answer</summary><p>It is 45%, not 10%.</p></details>
<section><p>So 10% was wrong.</p><details class="fold"><summary>More</summary><p>45%</p></details></section>"""


def test_a_number_that_a_built_page_shows_is_found():
    assert shown(parse(BUILT)) == {}
    assert list(shown(parse(BUILT.replace("was wrong", "is not 45%"))).values()) == [{"45%"}]
    assert list(shown(parse(BUILT.replace("More", "45% and more"))).values()) == [{"45%"}]
