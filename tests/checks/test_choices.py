"""Multiple-choice questions: every option is explained after grading, and no student can know the right one before."""

import re
from html import escape
from pathlib import Path

import nbformat
import pytest

import attnlib
from attnlib.checks import CheckFailed, Choice, check_choice
from attnlib.checks.catalogue import ASSIGNMENTS, QUESTIONS
from attnlib.checks.options import Options, option_texts
from attnlib.checks.report import MIME_TYPE
from grading.answer_keys import answer_key, answer_keys

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def cells(assignment):
    (file,) = (SOLUTIONS / assignment).glob("*.ipynb")
    return {cell.id: cell.source for cell in nbformat.read(file, as_version=4).cells}


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_an_assignment_asks_two_or_three_questions_with_explained_options(assignment):
    questions = ASSIGNMENTS[assignment].QUESTIONS
    assert len(questions) == 6 if assignment == "09-slips" else 2 <= len(questions) <= 3
    source = "\n".join(cells(assignment).values())
    for question in questions:
        assert source.count(f'check_choice("{question.name}"') == 1
        assert len(question.options) >= 3
        key = answer_key(question.name)
        assert list(key.why) == list(question.options)
        assert all(len(why) > 60 and why.endswith((".", "?")) for why in key.why.values())


def test_there_is_a_key_for_every_question_and_for_nothing_else():
    assert answer_keys().keys() == QUESTIONS.keys()


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_answer_in_the_solutions_is_the_one_of_the_key(assignment):
    source = "\n".join(cells(assignment).values())
    for name, variable in re.findall(r'^check_choice\("([\w-]+)", (\w+),', source, re.MULTILINE):
        (letter,) = re.findall(rf'^{variable} = "([A-Z])"$', source, re.MULTILINE)
        assert letter == answer_key(name).right


def test_nothing_that_is_installed_says_which_option_is_right():
    package = Path(attnlib.__file__).parent
    files = [file for kind in ("*.py", "*.toml") for file in package.rglob(kind)]
    installed = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)
    assert "digest_of_answer" not in installed
    for name, key in answer_keys().items():
        assert f'Question("{name}", "{"".join(key.why)}", ' in installed, "the letters, and where to reread"
        assert not any(why[:50] in installed for why in key.why.values()), name


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_options_in_the_notebook_are_those_that_are_explained(assignment):
    source = list(cells(assignment).values())
    for question in ASSIGNMENTS[assignment].QUESTIONS:
        (place,) = (n for n, text in enumerate(source) if f'check_choice("{question.name}"' in text)
        assert source[place - 2] == f'show_options("{question.name}")', "before the answer and its check"
        assert list(option_texts()[question.name]) == list(question.options)


def test_the_right_letter_is_not_always_the_same():
    letters = [key.right for key in answer_keys().values()]
    assert len(set(letters)) >= 3
    assert max(map(letters.count, letters)) <= len(letters) / 2


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_wrong_option_is_explained_without_the_right_letter(question):
    key, filled = answer_key(question.name), Options(question).filled
    for letter, why in key.why.items():
        if letter != key.right:
            assert not re.search(rf"\b(option|answer) {key.right}\b", why, re.IGNORECASE)
            message = graded(question, letter).message
            assert filled(why) in message
            assert filled(key.why[key.right]) not in message
            assert question.section.link in message


def graded(question, answer, points=None):
    """Return a choice as grading sees it."""
    return Choice(question, answer, points, answer_key(question.name))


def some():
    return next(iter(QUESTIONS.values()))


def a_wrong_option(question):
    return next(letter for letter in question.options if letter != answer_key(question.name).right)


@pytest.mark.parametrize("form", [str, str.lower, " {} ".format, "'{}'".format, ' "{}"\n'.format, "“{}”".format])
def test_the_right_option_earns_the_points_however_it_is_written(form):
    question = some()
    right = answer_key(question.name).right
    choice = graded(question, form(right), 2.0)
    assert (choice.passed, choice.score) == (True, 1.0)
    assert answer_key(question.name).why[right] in choice.message
    assert "2 of 2 points" in choice.message


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_in_a_notebook_every_option_is_told_the_same(question, capsys):
    said = set()
    for letter, text in Options(question).texts.items():
        assert check_choice(question.name, letter, points=2) is None
        chose = f"You chose {letter}: {text}"
        said.add(capsys.readouterr().out.replace(f": {letter},", ": X,").replace(chose, "You chose X"))
        choice = Choice(question, letter, 2.0)
        html = choice._repr_mimebundle_()["text/html"].replace(f": {letter},", ": X,")
        html = html.replace(escape(chose), "You chose X")
        data = {name: x for name, x in choice.data().items() if name not in ("title", "message")}
        said |= {html, str(data)}
    assert len(said) == 3
    assert any("X, to be graded · 2 points" in one and "your feedback explains" in one for one in said)


def test_no_answer_yet_is_told_kindly(capsys):
    with pytest.raises(CheckFailed, match="not answered yet"):
        check_choice(some().name, None)
    said = capsys.readouterr().out
    assert "Set the answer to one of" in said
    assert "with the quotation marks" in said


@pytest.mark.parametrize("answer", ["", "Z", "AB", 3, ["A"], object()])
def test_what_is_no_option_earns_nothing_and_is_told_the_options(answer, capsys):
    with pytest.raises(CheckFailed, match="none of the options"):
        check_choice(some().name, answer)
    assert '"A"' in capsys.readouterr().out


def test_an_unknown_question_and_bad_points_are_refused():
    with pytest.raises(ValueError, match="there is no question 'nothing'"):
        check_choice("nothing", "A")
    with pytest.raises(ValueError, match="positive"):
        check_choice(some().name, "A", points=0)


def test_the_data_tells_the_chosen_letter_where_a_mistake_would_stand():
    question = some()
    wrong, right = a_wrong_option(question), answer_key(question.name).right
    data = graded(question, wrong, 1.0)._repr_mimebundle_()[MIME_TYPE]
    assert (data["exercise"], data["mistake"], data["passed"], data["score"]) == (question.name, wrong, False, 0.0)
    assert graded(question, right)._repr_mimebundle_()[MIME_TYPE]["mistake"] is None


def test_html_is_escaped_and_links_into_the_book(monkeypatch):
    question = some()
    wrong = a_wrong_option(question)
    html = graded(question, wrong)._repr_mimebundle_()["text/html"]
    assert f"href='../../_build/html/{question.section.link}'" in html
    monkeypatch.setenv("ATTENTION_BOOK", "https://example.org/course/")
    assert (
        f"href='https://example.org/course/{question.section.link}'"
        in graded(question, wrong)._repr_mimebundle_()["text/html"]
    )
    monkeypatch.setenv("ATTENTION_BOOK", "")
    html = graded(question, wrong)._repr_mimebundle_()["text/html"]
    assert "href" not in html
    assert question.section.heading in html
    assert "<script" not in graded(question, "<script>")._repr_mimebundle_()["text/html"]
