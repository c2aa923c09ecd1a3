"""What every chapter has: goals, predictions, questions that explain each option, a summary, sources."""

import ast
import re

import pytest
from _tools.reading_time import measure
from pages import ROOT, chapters, lessons, parsed, part, source, text

CHAPTERS = [name for name in part("The course") if name != "book/start"]
QUIZ = re.compile(r"^::::\{admonition\} Question\n:class: quiz\n(.*?)^::::$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"^:::\{dropdown\} ([A-Z])\. (.+?)\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
SCREEN = 330  # words
MOST_MINUTES = 30
MOST_BARS = 5


def quizzes(name):
    return [OPTION.findall(body) for body in QUIZ.findall(source(name))]


def prose(name):
    """The text of a chapter between the things to see: code, tables, formulas, boxes, headings."""
    text = re.sub(r"^---\n.*?^---\n", "", source(name), count=1, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^:::\{fold(?:-end)?\}.*\n:::$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(`{3,}|:{3,}|\$\$).*?^ *\1.*?$", "\n<see>\n", text, flags=re.MULTILINE | re.DOTALL)
    return re.split(r"<see>|^\|.*$|^#+ .*$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_says_what_it_is_for_and_sums_up(name):
    text = source(name)
    assert re.search(r"After reading this (chapter|page), you will be able to", text)
    assert re.search(r"\bminutes\b", text), "how long it takes"
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert {"Summary", "Go deeper"} <= set(headings)
    assert text.split("## Go deeper")[1].count("{cite:") >= 4


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_reader_predicts_before_running(name):
    assert source(name).count(":class: predict") >= 3
    assert source(name).count(":class: why") >= 1


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_asks(name):
    assert len(quizzes(name)) >= 4


@pytest.mark.parametrize("name", lessons())
def test_every_option_of_a_question_is_explained(name):
    for options in quizzes(name):
        assert [letter for letter, _, _ in options] == list("ABCDEFG"[: len(options)])
        assert len(options) >= 3
        answers = [re.match(r"\*\*(Yes|No)\.\*\* (?=\S)", body) for _, _, body in options]
        assert all(answers), options
        assert {answer.group(1) for answer in answers} == {"Yes", "No"}
        assert all(len(body.split()) >= 6 for _, _, body in options), "an option says why"


def test_the_right_answer_is_not_always_the_same_letter():
    right = [
        letter for name in CHAPTERS for options in quizzes(name) for letter, _, body in options if body[:4] == "**Ye"
    ]
    assert all(right.count(letter) < 0.5 * len(right) for letter in "ABCD")


@pytest.mark.parametrize("name", lessons())
def test_there_is_something_to_see_on_every_screen(name):
    longest = max(prose(name), key=lambda part: len(part.split()))
    assert len(longest.split()) <= SCREEN, longest


def test_every_source_is_cited_and_can_be_found():
    entries = re.findall(r"^@\w+\{([^,]+),(.*?)^\}", (ROOT / "book" / "references.bib").read_text(), re.M | re.S)
    everything = "".join(map(source, (name for name in chapters() if name.startswith("book/"))))
    cited = {key for group in re.findall(r"\{cite:\w+\}`([^`]+)`", everything) for key in group.split(",")}
    assert {key for key, _ in entries} == cited
    assert len({key for key, _ in entries}) == len(entries)
    nowhere = {key for key, body in entries if not re.search(r"\b(doi|isbn|url) =", body)}
    assert nowhere <= {"firth1957", "watson1964"}  # before there were such numbers


CELL = re.compile(r"^(`{3,})\{code-cell\}[^\n]*\n(---\n.*?^---\n|(?::[^\n]*\n)*)(.*?)^\1$", re.MULTILINE | re.DOTALL)
DRAWS = re.compile(r"\b(?:ax|axes\[[^]]*\]|axis|bx|figure|left|right)\.\w+")
LONGEST_DRAWING = 15  # lines


def drawing(code):
    """The statements of a cell that draw, with what they contain."""
    return [node for node in ast.parse(code).body if DRAWS.search(ast.unparse(node))]


@pytest.mark.parametrize("name", [*lessons(), *part("Teaching")])
def test_long_code_of_figures_is_not_on_the_page(name):
    for _, options, code in CELL.findall(source(name)):
        if "figure:" in options:
            lines = [node.end_lineno - node.lineno + 1 for node in drawing(code)]
            assert sum(lines) <= LONGEST_DRAWING, code


BAR = re.compile(r"\bhide-(?:input|cell)\b")
MARK = re.compile(r"^:::\{(fold(?:-end)?)\}|^:class: (predict)\b|^(#)+ ", re.MULTILINE)


def bars(page):
    """The cells of a page whose code is hidden behind a bar."""
    return [code for _, options, code in CELL.findall(page) if BAR.search(options)]


def answers_in_view(page):
    """The predictions of a page, by line, whose answer is not folded: something else comes before the end of a fold."""
    page = CELL.sub(lambda cell: "\n" * cell[0].count("\n"), page)  # a comment in code is no heading
    marks = [(found[0], page.count("\n", 0, found.start()) + 1) for found in MARK.finditer(page)]
    following = [mark for mark, _ in marks[1:]] + [""]
    return [
        line
        for (mark, line), after in zip(marks, following, strict=True)
        if mark == ":class: predict" and after != ":::{fold-end}"
    ]


@pytest.mark.parametrize("name", lessons())
def test_a_page_hides_little_code(name):
    assert len(bars(source(name))) <= MOST_BARS


@pytest.mark.parametrize("name", lessons())
def test_the_answers_to_predictions_are_folded(name):
    assert answers_in_view(source(name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons())
def test_the_core_path_takes_half_an_hour_and_the_page_says_how_long(name):
    page = text(f"{name}.html")
    reading = measure(parsed(f"{name}.html"))
    assert reading.minutes <= MOST_MINUTES, str(reading)
    assert re.findall(r'<span class="reading-time">(\d+) minutes', page) == [f"{reading.minutes}"]


CHAPTER = """\
## One

:::{admonition} Predict
:class: predict

How many?
:::

```{code-cell} ipython3
:tags: [hide-input]

print(42)
```

:::{fold-end}
:::

:::{admonition} Predict
:class: predict

And now?
:::

## Two

```{code-cell} ipython3
---
tags: [hide-cell]
mystnb:
  figure:
    caption: Tags such as hide-output are none.
---
draw()
```

```{code-cell} ipython3
:tags: [hide-output]

print("hide-input")
```
"""


def test_hidden_code_and_an_answer_in_view_are_found():
    assert bars(CHAPTER) == ["\nprint(42)\n", "draw()\n"]
    assert answers_in_view(CHAPTER) == [19]
    assert answers_in_view(CHAPTER.replace("\n## Two", "\n:::{fold-end}\n:::\n\n## Two")) == []
    assert answers_in_view(CHAPTER.replace("print(42)", "# six times seven\nprint(42)")) == [20]
