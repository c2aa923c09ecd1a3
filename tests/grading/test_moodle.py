"""Grades go back to Moodle in its own grading worksheet, to the students whom its ids, numbers and addresses name."""

import csv
import io

import pytest

from grading.class_report.moodle import fill_in
from grading.course import GradingError
from grading.gradebook.students import StudentEntry
from grading.outcome import Outcome
from grading.report import Row

WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade),Feedback text
Participant 77000,Aiko Lovelace,aiko@uni.edu,Submitted,,"7,00",Yes,-,=1+1
Participant 77001,Aiko Lovelace,aiko2@uni.edu,Submitted,"3,50","7,00",Yes,"Monday, 1 January",
Participant 77002,=Miles O'Brien,miles@uni.edu,Submitted,,"7,00",Yes,-,
Participant 77003,Zoë Doe,zoe@uni.edu,Submitted,,"7,00",No,-,
"""
KNOWN = {
    "Miles OBrien_60001": StudentEntry(
        "Miles OBrien_60001", "", "Miles O'Brien", "miles@uni.edu"
    ),  # of another worksheet
}


def row(student, score, verdict="graded"):
    return Row(Outcome(student, verdict), {"a": (score, 7.0)}, 0, ())


def filled(tmp_path, *rows, text=WORKSHEET):
    (file := tmp_path / "worksheet.csv").write_text(text, encoding="utf-8-sig")
    table, said = fill_in(rows, file, KNOWN)
    return list(csv.DictReader(io.StringIO(table, newline=""))), said


def test_two_with_the_same_name_are_told_apart_by_the_number_of_the_participant(tmp_path):
    lines, said = filled(tmp_path, row("Aiko Lovelace_77001", 5.25), row("Aiko Lovelace_77000", 7))
    assert [(line["Identifier"], line["Grade"]) for line in lines] == [
        ("Participant 77001", "5,25"),
        ("Participant 77000", "7"),
    ]
    assert said.splitlines() == ["  Aiko Lovelace_77001  3,50 → 5,25", "  Aiko Lovelace_77000  – → 7"]


def test_whose_id_is_of_another_worksheet_is_found_by_address_and_no_cell_is_a_formula(tmp_path):
    (line,), _ = filled(tmp_path, row("Miles OBrien_60001", 2))
    assert (line["Identifier"], line["Full name"], line["Grade"]) == ("Participant 77002", "'=Miles O'Brien", "2")
    assert "Feedback text" not in line, "an import would write them over"


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        (row("Nobody_1", 1), "no row of the worksheet"),
        (row("Zoë Doe_77003", 1), "cannot be changed"),
        (row("Aiko Lovelace_77000", 0, "infrastructure"), "the grader failed"),
    ],
)
def test_a_grade_that_cannot_be_written_is_left_out_with_the_reason(tmp_path, left_out, why):
    lines, said = filled(tmp_path, left_out)
    assert not lines
    assert why in said


def test_a_decimal_point_stays_one_and_another_maximum_is_said(tmp_path):
    (line,), said = filled(tmp_path, row("Aiko Lovelace_77000", 5.5), text=WORKSHEET.replace('"7,00"', "100.00"))
    assert line["Grade"] == "5.5"
    assert said.endswith("of 7, but the maximum in Moodle is 100.00: change it there")


def test_another_file_is_refused(tmp_path):
    with pytest.raises(GradingError, match="begins with a, b, but a grading worksheet has the columns Identifier"):
        filled(tmp_path, text="a,b\n1,2\n")
