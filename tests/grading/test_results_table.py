import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.outcome import Finding, Outcome
from grading.report import Row, cell, table
from grading.text import points

FOUND = (Finding("softmax", "wrong-axis", "the axis is <wrong>"), Finding("dot", None, "raised an exception"))
ROWS = [
    Row(Outcome("ada", "graded"), {"a": (4.0, 4.0), "b": (0.0, 3.0)}, 1, (Path("/class/feedback/ada/x y.html"),)),
    Row(Outcome("=1+1", "graded", findings=FOUND), {"a": (1.5, 4.0), "b": (0.0, 3.0)}, 0, ()),
    Row(Outcome("zoe", "missing", "there is nothing"), {}, 0, ()),
]


def test_the_table_has_a_line_for_each_student_and_each_further_remark():
    lines = table(ROWS).splitlines()
    assert lines[2].split() == ["ada", "4", "/", "7", "1", "graded"]
    assert "softmax: wrong-axis (the axis is <wrong>)" in lines[3]
    assert lines[4].strip() == "dot: raised an exception"
    assert lines[5].endswith("missing  there is nothing")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", "＠A1", "\t=1", "\r"])
def test_no_spreadsheet_takes_a_cell_for_a_formula(text):
    assert cell(text) == f"'{text}"


TEXTS = st.text(alphabet="ab;,=+-@'＝ \t\r\n", max_size=8)


@given(TEXTS)
def test_where_semicolons_or_line_breaks_part_cells_no_text_makes_a_formula(text):
    for part in re.split(r"[;\r\n]", cell(text)):
        assert not part.lstrip(" ").startswith(("=", "+", "-", "@", "＝", "\t"))


@given(TEXTS, TEXTS)
def test_different_texts_stay_different(one, other):
    assert (cell(one) == cell(other)) == (one == other)


def test_a_name_with_a_semicolon_is_not_that_with_a_comma():
    assert (cell("a;b"), cell("a,b")) == ("a;b", "a,b")
    assert (cell("a;=1+1"), cell("'=1")) == ("a;'=1+1", "''=1")


@pytest.mark.parametrize(
    ("value", "text"), [(17.125, "17.125"), (22.0, "22"), (0, "0"), (2 / 3, "0.667"), (100, "100")]
)
def test_points_are_not_rounded_more_than_needed(value, text):
    assert points(value) == text


def test_what_a_student_wrote_is_printable_and_short():
    found = Finding("dot\x1b[2J", None, "x" * 1000)
    assert found.question == "dot\N{REPLACEMENT CHARACTER}[2J"
    assert len(found.title) == 300
    assert Outcome("ada", "graded", "\u202eabc").reason == "\N{REPLACEMENT CHARACTER}abc"


def test_numbers_stay_numbers():
    assert cell(-1.5) == -1.5


def test_an_outcome_reads_back_as_it_was_saved():
    assert Outcome.from_json(ROWS[1].outcome.to_json()) == ROWS[1].outcome
