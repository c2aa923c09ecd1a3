"""What every chapter has: goals, predictions, questions that explain each option, a summary, sources."""

import ast
import re

import pytest
from pages import ROOT, lessons, source

CHAPTERS = [name for name in lessons() if name != "book/start"]
QUIZ = re.compile(r"^::::\{admonition\} Question\n:class: quiz\n(.*?)^::::$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"^:::\{dropdown\} ([A-Z])\. (.+?)\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
SCREEN = 330  # words


def quizzes(name):
    return [OPTION.findall(body) for body in QUIZ.findall(source(name))]


def prose(name):
    """The text of a chapter between the things to see: code, tables, formulas, boxes, headings."""
    text = re.sub(r"^---\n.*?^---\n", "", source(name), count=1, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *(`{3,}|:{3,}|\$\$).*?^ *\1.*?$", "\n<see>\n", text, flags=re.MULTILINE | re.DOTALL)
    return re.split(r"<see>|^\|.*$|^#+ .*$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_says_what_it_is_for_and_sums_up(name):
    text = source(name)
    assert re.search(r"[Ww]hen you have read", text)
    assert re.search(r"\bminutes\b", text), "how long it takes"
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert {"Summary", "Go deeper"} <= set(headings)
    assert text.split("## Go deeper")[1].count("{cite:") >= 4


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_reader_predicts_before_running(name):
    assert source(name).count(":class: predict") >= 3
    assert source(name).count(":class: why") >= 1


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_asks_and_every_option_is_explained(name):
    assert len(quizzes(name)) >= 4
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


@pytest.mark.parametrize("name", CHAPTERS)
def test_there_is_something_to_see_on_every_screen(name):
    longest = max(prose(name), key=lambda part: len(part.split()))
    assert len(longest.split()) <= SCREEN, longest


def test_every_source_is_cited_and_can_be_found():
    entries = re.findall(r"^@\w+\{([^,]+),(.*?)^\}", (ROOT / "book" / "references.bib").read_text(), re.M | re.S)
    everything = "".join(path.read_text() for path in (ROOT / "book").glob("*.md"))
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


@pytest.mark.parametrize("name", [*lessons(), "book/instructors"])
def test_long_code_of_figures_is_not_on_the_page(name):
    for _, options, code in CELL.findall(source(name)):
        if "figure:" in options:
            lines = [node.end_lineno - node.lineno + 1 for node in drawing(code)]
            assert sum(lines) <= LONGEST_DRAWING, code
