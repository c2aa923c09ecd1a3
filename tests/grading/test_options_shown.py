"""What a notebook says about whose options it shows: the id that it states, and the options it was saved with."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.options import Options
from grading.options_shown import OptionsShown, stated_student

QUESTION, WITH_NUMBERS = QUESTIONS["shift-or-stretch"], QUESTIONS["spread-of-scores"]


@pytest.mark.parametrize(
    ("cells", "stated"),
    [
        (['set_student("ada")'], "ada"),
        (['set_student( "ada" )'], "ada"),
        (["import attnlib.checks as checks\nif True:\n    checks.set_student(student='ada')"], "ada"),
        (['set_student("q\\"uote")'], 'q"uote'),
        (["set_student('back\\\\slash\\n')"], "back\\slash\n"),
        (['set_student("ada"); set_student("bela")', '"""\nset_student("cleo")\n"""', "# set_student('dora')"], "bela"),
        (['set_student("ada")', 'set_student("bela"', "set_student(7)", "set_student(who)"], "ada"),
        (['set_student("ada")', "(" * 5000 + 'set_student("bela")'], "ada"),
        (['set_student("' + "x" * 10_000 + '")'], "x" * 200),
        ([], ""),
    ],
)
def test_an_id_is_what_the_code_states_last_as_a_literal(cells, stated):
    text = new_markdown_cell('set_student("markdown")')
    assert stated_student(new_notebook(cells=[*map(new_code_cell, cells), text])) == stated


def test_a_stated_id_counts_only_if_it_is_one_of_the_students_own_names():
    names = {"1815", "ada", "ada@uni.edu"}
    assert OptionsShown("1815", names, " ADA\u200b").order == " ADA\u200b"
    assert [*OptionsShown("1815", names, " ADA\u200b").flags([QUESTION])] == []
    for stated in ("", "bela", "uni.edu"):
        assert OptionsShown("1815", names, stated).order == "1815"
    assert len([*OptionsShown("1815", names, "bela").flags([QUESTION])]) == 1


@pytest.mark.parametrize("question", [QUESTION, WITH_NUMBERS])
def test_saved_options_differ_if_they_are_those_of_another_student(question):
    def differs(saved):
        return OptionsShown("ada", saved={question.name: saved}).differs(question)

    assert differs(str(Options(question, "bela")))
    assert differs(f"before\n{Options(question, 'bela')}\nP. What P says depends on the student.\n") is False
    for same in (str(Options(question, "ada")), str(Options(question)), "", "P. An option that was worded otherwise"):
        assert not differs(same)
