"""Every letter in the formulas of a lesson stands in one of the tables of the page on notation."""

import re

import pytest
from pages import ROOT, lessons, source

FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+)\$", re.DOTALL)
CODE = re.compile(r"^(`{3,})\{code.*?^\1", re.DOTALL | re.MULTILINE)
WORDS = re.compile(r"\\(text|texttt|mathrm|operatorname|mathtt|tag|begin|end)\*?\{[^{}]*\}")
COMMAND = re.compile(r"\\([a-zA-Z]+)")
GREEK = {"alpha", "beta", "gamma", "varepsilon", "theta", "lambda", "mu", "sigma", "tau", "varphi", "omega", "ell"}
NUMBERS_AND_SETS = {"e", "d", "pi", "i", "j", "t"}  # constants, the differential, and indices


def letters(text):
    found = set()
    for formula in FORMULA.finditer(CODE.sub("", text)):
        formula = WORDS.sub(" ", formula[1] or formula[2])
        found |= GREEK & set(COMMAND.findall(formula))
        found |= set(re.findall("[A-Za-z]", COMMAND.sub(" ", formula)))
    return found - NUMBERS_AND_SETS


KNOWN = letters((ROOT / "book" / "notation.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lesson", lessons(), ids=str)
def test_every_letter_of_a_lesson_is_in_the_notation(lesson):
    assert letters(source(lesson)) - KNOWN == set()


def test_letters_are_found_in_formulas_and_nowhere_else():
    text = "a $x_i W^Q$ costs \\$5 $$\n\\operatorname{softmax}(\\alpha_{ij}) \\text{of } k\n$$ b\n"
    text += "```{code-cell}\n$G$\n```\n"
    assert letters(text) == {"x", "W", "Q", "alpha", "k"}
