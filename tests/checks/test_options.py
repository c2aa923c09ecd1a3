"""Each student sees options in an order of their own, the same everywhere, and is graded by what they saw."""

import json
import math
import os
import re
import subprocess
import sys
from itertools import permutations
from string import Formatter

import pytest

from attnlib.checks import check_choice, set_student, show_options
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.options import Options, option_texts
from attnlib.checks.questions import Choice
from attnlib.checks.report import MIME_TYPE
from attnlib.checks.student import STUDENT_VARIABLE, current_student
from grading.answer_keys import answer_key

CLASS = [f"student-{n}" for n in range(50)]
QUESTION = QUESTIONS["shift-or-stretch"]
KEY = answer_key(QUESTION.name)
ORDERS = """
import json
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.options import Options
print(json.dumps([str(Options(question, "ada")) for question in QUESTIONS.values()]))
"""


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    monkeypatch.setenv(STUDENT_VARIABLE, "")


def seen(question, student):
    """Return the options that a student sees, by their letters."""
    return dict(re.findall(r"^- \*\*(.)\.\*\* (.*)$", Options(question, student).markdown(), re.MULTILINE))


def right_text(question, student):
    return Options(question, student).filled(option_texts()[question.name][answer_key(question.name).right])


def right_letter(question, student):
    """Return the letter that a student sees for the right option, looked up by its text."""
    right = right_text(question, student)
    (letter,) = (letter for letter, text in seen(question, student).items() if text == right)
    return letter


def graded(answer, student, **known):
    return Choice(QUESTION, answer, 1.0, KEY, student=student, **known)


def test_every_option_is_shown_once_and_students_see_them_in_different_orders():
    for question in QUESTIONS.values():
        texts = option_texts()[question.name].values()
        for student in CLASS:
            shown = seen(question, student)
            assert list(shown) == list("PQRS")
            assert set(shown.values()) == set(map(Options(question, student).filled, texts))
        orders = {tuple(Options(question, student).letters.values()) for student in CLASS}
        assert len(orders) > 12, "of 24"
    assert len({tuple(Options(question, "ada").letters.values()) for question in QUESTIONS.values()}) > 12


@pytest.mark.slow
def test_the_order_is_the_same_in_three_processes():
    here = json.dumps([str(Options(question, "ada")) for question in QUESTIONS.values()])
    for seed in ("1", "2"):
        command = [sys.executable, "-c", ORDERS]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == here


def test_the_right_letter_is_uniform_over_a_class_of_fifty():
    counts = []
    for question in QUESTIONS.values():
        letters = [right_letter(question, student) for student in CLASS]
        counts.append([letters.count(letter) for letter in "PQRS"])
        assert min(counts[-1]) >= 3, question.name
    expected = len(CLASS) * len(QUESTIONS) / 4
    assert sum((sum(column) - expected) ** 2 / expected for column in zip(*counts, strict=True)) < 16.3  # p = 0.001


def test_a_letter_copied_from_a_neighbour_earns_what_chance_gives():
    right = {student: right_letter(QUESTION, student) for student in CLASS}
    assert all(graded(right[student], student).score == 1 for student in CLASS)
    copied = [graded(right[a], b).score for a, b in permutations(CLASS, 2)]
    assert 0.18 < sum(copied) / len(copied) < 0.32


@pytest.mark.parametrize("letter", "ABCD")
def test_the_letters_of_the_written_order_mean_the_same_for_everybody(letter):
    for student in ("", *CLASS[:4]):
        assert graded(letter, student).letter == letter
        assert graded(letter, student).score == (letter == KEY.right)


def test_spaces_and_capitals_in_an_id_make_no_difference():
    assert Options(QUESTION, " ADA ").letters == Options(QUESTION, "ada").letters != Options(QUESTION, "bela").letters
    assert Options(QUESTION, "\u200bA\u2060da\ufeff").letters == Options(QUESTION, "ada").letters
    assert list(Options(QUESTION, " \u200e ").letters) == list("ABCD")


@pytest.mark.parametrize("student", ["a\0da", "ad\ud800a"])
def test_an_id_that_no_student_can_have_is_refused_with_what_to_do(student):
    with pytest.raises(ValueError, match="Type the id by hand"):
        set_student(student)


def test_the_check_repeats_the_chosen_option_and_in_whose_order_it_was_read(monkeypatch, capsys):
    check_choice("shift-or-stretch", "B")
    assert f"You chose B: {option_texts()[QUESTION.name]['B']}\n" in capsys.readouterr().out
    monkeypatch.setenv(STUDENT_VARIABLE, "bela")
    for letter, whose, options in (("Q", "in the order of 'bela'", seen(QUESTION, "bela")),
                                   ("B", "as the options were written", option_texts()[QUESTION.name])):  # fmt: skip
        check_choice("shift-or-stretch", letter)
        assert f"You chose {letter} {whose}: {options[letter]}\n" in capsys.readouterr().out


@pytest.mark.parametrize(("stated", "letters"), [("ada", ["P", "Q", "R", "S"]), ("", ["A", "B", "C", "D"])])
@pytest.mark.parametrize("answer", [None, "E"])
def test_a_missing_answer_is_told_the_letters_that_the_notebook_shows(answer, stated, letters):
    choice = graded(answer, "ada", stated=stated)
    assert list(choice.options.letters) == letters
    assert f'one of "{letters[0]}", "{letters[1]}"' in choice.message


@pytest.mark.parametrize("letter", "PQRS")
def test_feedback_explains_the_option_as_the_student_saw_it_and_statistics_use_the_written_letter(letter):
    texts = option_texts()[QUESTION.name].items()
    (written,) = (name for name, text in texts if text == seen(QUESTION, "ada")[letter])
    bundle = graded(letter.lower(), "ada")._repr_mimebundle_()
    assert bundle["text/plain"].startswith(("✓", "✗")[written != KEY.right] + f" shift-or-stretch: {letter}, ")
    assert KEY.why[written] in bundle["text/plain"]
    data = bundle[MIME_TYPE]
    assert data["mistake"] == (None if written == KEY.right else written)
    assert data["title"].startswith(f"{written}, ")


def test_a_first_answer_is_named_by_the_letter_that_the_student_sees_now():
    wrong = next(letter for letter in "ABCD" if letter != KEY.right)
    choice = graded(right_letter(QUESTION, "ada"), "ada", first=wrong)
    assert choice.score == 0
    assert f"it was {Options(QUESTION, 'ada').label(wrong)}." in choice.message
    assert f"it was {wrong}." in graded(KEY.right, "ada", first=wrong).message


def test_who_states_the_id_of_another_is_read_by_their_own_and_told_so():
    letter = right_letter(QUESTION, "bela")
    said = graded(letter, "ada", stated="bela")
    assert said.letter == Options(QUESTION, "ada").letters[letter] != KEY.right
    assert "shows the options in the order of 'bela', but 'ada' handed it in, so your letter" in said.message
    for same in (graded(letter, "ada", stated=" Ada"), graded("C", "ada", stated="bela")):
        assert "handed it in" not in same.message


def test_in_a_notebook_the_order_is_that_of_the_student_who_was_stated(monkeypatch, capsys):
    show_options("shift-or-stretch")
    assert capsys.readouterr().out.startswith("A. Nothing, both times")
    monkeypatch.setenv(STUDENT_VARIABLE, "bela")
    for student in ("bela", "ada"):
        show_options("shift-or-stretch")
        assert capsys.readouterr().out.strip() == str(Options(QUESTION, student))
        set_student("ada")
    assert current_student() == "ada"
    for letter in "PQRSABCD":
        check_choice("shift-or-stretch", letter)
        assert f"{letter}, to be graded" in capsys.readouterr().out
    with pytest.raises(TypeError, match="a string is needed"):
        set_student(7)


def spread(given):
    """Return the exact deviation of a dot product of components that are plus or minus one number."""
    variance, width = map(int, re.findall(r"\d+", given))
    products = [(math.comb(width, n) / 2**width, variance * (2 * n - width)) for n in range(width + 1)]
    return sum(p * x**2 for p, x in products) ** 0.5


def swiglu_width(given):
    """Return the width at which three matrices have as many numbers as two had, in widths of the model."""
    old = int(re.findall(r"\$(\d+)E", given)[0])
    model = 24
    (new,) = (width for width in range(1, 40 * model) if 3 * model * width == 2 * model * (old * model))
    return new / model


@pytest.mark.parametrize(
    ("name", "computed", "sets"), [("spread-of-scores", spread, 10), ("swiglu-width", swiglu_width, 4)]
)
def test_students_get_numbers_of_their_own_and_the_right_option_is_right_for_them(name, computed, sets):
    question = QUESTIONS[name]
    assert len({Options(question, student).given for student in CLASS}) >= sets
    for student in ("", *CLASS):
        options = seen(question, student)
        assert len(set(options.values())) == 4
        right = right_text(question, student)
        found = re.fullmatch(r"(\d+)|\$\\tfrac\{(\d+)\}\{3\} E\$\.", right)
        assert float(found[1] or int(found[2]) / 3) == pytest.approx(computed(Options(question, student).given))


def test_a_student_gets_no_number_that_neither_the_question_nor_an_option_states():
    for question in filter(lambda question: question.numbers, QUESTIONS.values()):
        texts = [question.numbers.given, *option_texts()[question.name].values()]
        stated = {field for text in texts for _, field, _, _ in Formatter().parse(text) if field}
        assert all(numbers.keys() == stated for numbers in question.numbers.sets), question.name


def test_an_explanation_has_the_numbers_of_the_student():
    question = QUESTIONS["spread-of-scores"]
    for student in CLASS[:5]:
        variance, width = re.findall(r"\d+", Options(question, student).given)
        letter = right_letter(question, student)
        said = Choice(question, letter, 1.0, answer_key(question.name), student=student).message
        assert f"the variance {variance} times {variance}" in said
        assert f"The sum of {width} has" in said
        assert f"its root is {right_text(question, student)}." in said
    as_written = Choice(question, "C", 1.0, answer_key(question.name), student=student).message
    assert "The sum of 64 has 1024, and its root is 32." in as_written


def test_options_come_as_a_list_that_says_how_to_get_an_order_of_ones_own():
    shown = Options(QUESTION)._repr_mimebundle_()["text/markdown"]
    assert shown.startswith("- **A.** Nothing, both times")
    assert "set_student" in shown
    assert "set_student" not in str(Options(QUESTION, "ada")._repr_mimebundle_())
