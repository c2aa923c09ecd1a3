"""Questions with options: every option is explained, and a wrong one does not learn which is right."""

import re
from pathlib import Path

import nbformat
import pytest

from attnlib.checks import CheckFailed, Choice, check_choice
from attnlib.checks.catalogue import ASSIGNMENTS, QUESTIONS
from attnlib.checks.report import MIME_TYPE

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
        assert len(question.why) >= 3
        assert question.right in question.why
        assert all(len(why) > 60 and why.endswith((".", "?")) for why in question.why.values())


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_options_in_the_notebook_are_those_that_are_explained(assignment):
    source = list(cells(assignment).values())
    for question in ASSIGNMENTS[assignment].QUESTIONS:
        (place,) = (n for n, text in enumerate(source) if f'check_choice("{question.name}"' in text)
        asked = next(text for text in reversed(source[:place]) if "**A.**" in text)
        assert re.findall(r"\*\*([A-Z])\.\*\*", asked) == list(question.why)


def test_the_right_letter_is_not_always_the_same():
    letters = [question.right for question in QUESTIONS.values()]
    assert len(set(letters)) >= 3
    assert max(map(letters.count, letters)) <= len(letters) / 2


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_wrong_option_is_explained_without_the_right_letter(question):
    for letter, why in question.why.items():
        if letter != question.right:
            assert not re.search(rf"\b(option|answer) {question.right}\b", why, re.IGNORECASE)
            message = Choice(question, letter).message
            assert why in message
            assert question.why[question.right] not in message
            assert question.section.link in message


def some():
    return next(iter(QUESTIONS.values()))


@pytest.mark.parametrize("form", [str, str.lower, " {} ".format, "'{}'".format, ' "{}"\n'.format, "“{}”".format])
def test_the_right_option_earns_the_points_however_it_is_written(form, capsys):
    question = some()
    earned = check_choice(question.name, form(question.right), points=2)
    assert (earned, type(earned)) == (2.0, float)
    said = capsys.readouterr().out
    assert question.why[question.right] in said
    assert "2 of 2 points" in said


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
    wrong = next(letter for letter in question.why if letter != question.right)
    data = Choice(question, wrong, 1.0)._repr_mimebundle_()[MIME_TYPE]
    assert (data["exercise"], data["mistake"], data["passed"], data["score"]) == (question.name, wrong, False, 0.0)
    assert Choice(question, question.right)._repr_mimebundle_()[MIME_TYPE]["mistake"] is None


def test_html_is_escaped_and_links_into_the_book(monkeypatch):
    question = some()
    wrong = next(letter for letter in question.why if letter != question.right)
    html = Choice(question, wrong)._repr_mimebundle_()["text/html"]
    assert f"href='../../_build/html/{question.section.link}'" in html
    monkeypatch.setenv("ATTENTION_BOOK", "https://example.org/course/")
    assert (
        f"href='https://example.org/course/{question.section.link}'"
        in Choice(question, wrong)._repr_mimebundle_()["text/html"]
    )
    monkeypatch.setenv("ATTENTION_BOOK", "")
    html = Choice(question, wrong)._repr_mimebundle_()["text/html"]
    assert "href" not in html
    assert question.section.heading in html
    assert "<script" not in Choice(question, "<script>")._repr_mimebundle_()["text/html"]
