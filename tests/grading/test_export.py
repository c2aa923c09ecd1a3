"""The table for a spreadsheet, and what Canvas imports."""

import csv
import io
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.class_report import export as exporting
from grading.class_report.canvas import Gradebook, _number, _score, changes, csv_of, preview, read
from grading.class_report.export import csv_text, export
from grading.course import Course, GradingError
from grading.outcome import Finding, Outcome
from grading.report import Row, cell

NAME = "02-self-attention"
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Notes,Quiz 1 (11),02-self-attention (42),Current Score,Final Score
,,,,,,,Manual Posting,,
    Points Possible,,,,,,10.00,7.00,(read only),(read only)
"Lovelace, Ada",1001,S1,ada,Monday,likes proofs,9.00,5.50,91.00,91.00
"Bartók, Béla",1002,S2,bela@uni.edu,Monday,,8.00,,80.00,80.00
"Doe, Chloe",1003,S3,chloe,"Monday, Tuesday",,,6.00,,
"Doe, Dmitri",1004,S4,dmitri,Monday,,,EX,,
"Doe, Emeka",1005,S5,emeka,Monday,,,N/A,,
"Student, Test",1099,,test,Monday,,,,,
"""


def row(student, score, verdict="graded", flags=(), to_read=0, points=7.0):
    return Row(Outcome(student, verdict, flags=flags), {"a": (score, points)}, to_read, ())


CLASS = [row("ada", 5.5), row("Bela@uni.edu", 6.125), row("S3", 7.0), row("dmitri", 1.0), row("emeka", 2.0)]


def book(tmp_path, text=CANVAS) -> Gradebook:
    file = tmp_path / "canvas.csv"
    file.write_text(text, encoding="utf-8")
    return read(file)


def written(found):
    return list(csv.reader(io.StringIO(csv_of(found), newline="")))


def test_only_what_changes_is_written_and_nothing_that_canvas_calculates(tmp_path):
    assert written(changes(CLASS, NAME, book(tmp_path))) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "02-self-attention (42)"],
        ["    Points Possible", "", "", "", "", "7.00"],
        ["Bartók, Béla", "1002", "S2", "bela@uni.edu", "Monday", "6.13"],
        ["Doe, Chloe", "1003", "S3", "chloe", "Monday, Tuesday", "7.00"],
    ]


def test_the_preview_says_what_would_change_and_who_is_left_out(tmp_path):
    assert preview(changes([*CLASS, row("zoe", 3)], NAME, book(tmp_path))).splitlines() == [
        "02-self-attention (42): 2 would change, 1 would not.",
        "  Bela@uni.edu  – → 6.13",
        "  S3  6.00 → 7.00",
        "",
        "Graded here, but left out (3):",
        "  dmitri: excused in Canvas",
        "  emeka: not assigned to this student in Canvas",
        "  zoe: no row in Canvas has this name as SIS Login ID, SIS User ID or ID",
        "",
        "In Canvas, but left unchanged (3 of 6):",
        "  Doe, Dmitri (1004)",
        "  Doe, Emeka (1005)",
        "  Student, Test (1099)",
    ]


def test_the_preview_names_everybody_in_a_large_class(tmp_path):
    rows = "".join(f'"Doe, S{i}",{2000 + i},T{i},s{i},Monday,,,,,\n' for i in range(50))
    shown = preview(changes([row(f"s{i}", 1) for i in range(25)], NAME, book(tmp_path, CANVAS + rows)))
    assert all(f"  s{i}  – → 1.00\n" in shown for i in range(25))
    assert all(f"  Doe, S{i} ({2000 + i})" in shown.splitlines() for i in range(25, 50))
    assert "more" not in shown


@pytest.mark.parametrize("name", ["ada", "ADA", "S1", "1001"])
def test_a_student_is_known_by_login_by_sis_id_or_by_number(tmp_path, name):
    (line,) = changes([row(name, 1)], NAME, book(tmp_path)).lines
    assert (line.row[0], line.before, line.score) == ("Lovelace, Ada", "5.50", "1.00")


def test_the_login_counts_before_a_number_that_happens_to_be_the_same(tmp_path):
    (line,) = changes([row("1002", 1)], NAME, book(tmp_path, CANVAS.replace(",ada,", ",1002,"))).lines
    assert line.row[0] == "Lovelace, Ada"


def test_where_it_is_not_clear_who_is_meant_nobody_gets_the_grade(tmp_path):
    found = changes([row("ada", 1), row("1001", 2)], NAME, book(tmp_path))
    assert not found.lines
    assert {reason for _, reason in found.left_out} == {"another student here has the same row in Canvas"}
    twice = changes([row("chloe", 1)], NAME, book(tmp_path, CANVAS.replace(",ada,", ",chloe,")))
    assert twice.left_out == (("chloe", "2 rows in Canvas have this name"),)


@pytest.mark.parametrize("failed", [row("ada", 0, "infrastructure"), Row(Outcome("ada", "graded"), {}, 0, ())])
def test_what_is_not_known_is_not_written(tmp_path, failed):
    assert changes([failed], NAME, book(tmp_path)).left_out == (
        ("ada", "the grader failed: run it again for this student"),
    )


@pytest.mark.parametrize("before", ["5.5", "5.50", "5,50", "5.499", " 5.50 "])
def test_a_score_is_the_same_to_two_decimals(tmp_path, before):
    text = CANVAS.replace("9.00,5.50", f'9.00,"{before}"')
    assert not changes([row("ada", 5.5)], NAME, book(tmp_path, text)).lines


@pytest.mark.parametrize(
    ("score", "text"),
    [(0, "0.00"), (5.5, "5.50"), (6.125, "6.13"), (2.675, "2.68"), (2 / 3, "0.67"), (29.0, "29.00"), (1e-9, "0.00")],
)
def test_numbers_are_written_as_canvas_writes_them(score, text):
    assert _score(score) == text


@settings(max_examples=50, derandomize=True, database=None)
@given(st.decimals(0, 1000, places=2), st.sampled_from([".", ","]))
def test_numbers_are_read_as_canvas_reads_them(number, mark):
    assert _number(str(number).replace(".", mark)) == number


@pytest.mark.parametrize("text", ["", "EX", "N/A", "-", "1" * 5_000, "٣", "nan", "1e9"])
def test_what_is_no_number_is_none(text):
    assert _number(text) is None


def test_semicolons_a_byte_order_mark_and_first_names_are_read(tmp_path):
    text = "\ufeffLastName;FirstName;ID;SIS Login ID;Section;02 Self-Attention (42)\n"
    text += "    Points Possible;;;;;7,00\nLovelace;Ada;1001;ada;Monday;5,50\n"
    found = changes([row("ada", 6.5)], NAME, book(tmp_path, text))
    assert written(found)[0][0] == "LastName"
    assert written(found)[-1] == ["Lovelace", "Ada", "1001", "ada", "Monday", "6.50"]
    assert not found.warnings


def test_a_note_says_what_there_is_to_know_and_keeps_what_a_person_wrote(tmp_path):
    stopped = [row("ada", 5.5, "timeout", ("look",)), row("chloe", 6)]
    found = changes(stopped, NAME, book(tmp_path))
    head, _, ada = written(found)
    assert dict(zip(head, ada, strict=True)) == {
        "Student": "Lovelace, Ada",
        "ID": "1001",
        "SIS User ID": "S1",
        "SIS Login ID": "ada",
        "Section": "Monday",
        "Notes": "likes proofs [02-self-attention: timeout, to look at]",
        "02-self-attention (42)": "5.50",
    }


def test_the_note_of_an_earlier_export_is_replaced_and_taken_back(tmp_path):
    noted = book(tmp_path, CANVAS.replace("likes proofs", "likes proofs [02-self-attention: timeout] [other: x]"))
    (line,) = changes([row("ada", 5.5, "crashed")], NAME, noted).lines
    assert line.note == "likes proofs [other: x] [02-self-attention: crashed]"
    (line,) = changes([row("ada", 5.5)], NAME, noted).lines
    assert line.note == "likes proofs [other: x]"
    again = book(tmp_path, CANVAS.replace("likes proofs", "likes proofs [02-self-attention: timeout]"))
    assert not changes([row("ada", 5.5, "timeout")], NAME, again).lines


@pytest.mark.parametrize(
    ("old", "new"), [("likes proofs", "=1+1"), ("likes proofs", '"a; =b"'), (",,,,,,10.00", ",,,,,(read only),10.00")]
)
def test_notes_that_cannot_be_written_as_they_are_stay_away(tmp_path, old, new):
    found = changes([row("ada", 1, "timeout")], NAME, book(tmp_path, CANVAS.replace(old, new)))
    assert "Notes" not in written(found)[0]
    assert any("'Notes' is not written" in warning for warning in found.warnings)


def test_a_difference_in_the_points_and_waiting_answers_are_said(tmp_path):
    found = changes([row("ada", 1, to_read=2, points=29.0)], NAME, book(tmp_path))
    assert found.warnings[:2] == (
        "In Canvas, this assignment is worth 7.00, but here it is worth 29.00. Change it in Canvas.",
        "2 answers are still to be marked by hand. Until then, an answer without a mark counts as 0.",
    )
    assert written(found)[1][-1] == "7.00", "an import must not change what the assignment counts for"


def test_one_waiting_answer_is_told_of_in_the_singular(tmp_path):
    found = changes([row("ada", 1, to_read=1, points=7.0)], NAME, book(tmp_path))
    assert found.warnings[0].startswith("1 answer is still to be marked by hand.")


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@A1", "＝1", "＠A", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(tmp_path, formula):
    quoted = f'"{formula}"'
    text = CANVAS.replace('"Lovelace, Ada"', quoted).replace("S1", quoted).replace("Monday,likes", f"{quoted},likes")
    found = written(changes([row("ada", 1, "timeout")], NAME, book(tmp_path, text)))
    assert [cell[:1] for cell in found[2][:5]] == ["'", "1", "'", "a", "'"]


def test_no_line_of_a_cell_is_a_formula_and_different_texts_stay_different():
    texts = ["".join(text) for n in range(5) for text in itertools.product("a\n\r;'=@ ", repeat=n)]
    safe = [str(cell(text)) for text in texts]
    assert len(set(safe)) == len(texts)
    assert not [text for text in safe if any(line.strip(" ")[:1] in {"=", "@"} for line in re.split("[\n\r;]", text))]
    assert cell("a\n=1+1") == "a\n'=1+1"
    assert cell("a\r@x") == "a\r'@x"


def test_a_terminal_gets_no_control_characters(tmp_path):
    text = preview(changes([row("a\x1b[2J", 1), row("ada", 1)], NAME, book(tmp_path)))
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "begins with nothing"),
        ("a,b\n1,2\n", "begins with a, b"),
        (CANVAS.replace("Points Possible", "Points"), "no row 'Points Possible'"),
        (CANVAS.replace("02-self-attention", "03-other"), "no columns for '02-self-attention'"),
        (CANVAS.replace("Quiz 1", "02 SELF attention"), "2 columns for '02-self-attention'"),
        (CANVAS.replace("10.00,7.00", "10.00,(read only)"), "is read-only. Make sure"),
        ('Student,ID,Section\n"' + "x" * 200_000, "is not a CSV file"),
    ],
)
def test_a_file_that_does_not_fit_says_why(tmp_path, text, says):
    with pytest.raises(GradingError, match=says):
        changes(CLASS, NAME, book(tmp_path, text))


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(GradingError, match="cannot be read"):
        read(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("Bartók".encode("latin-1"))
    with pytest.raises(GradingError, match="cannot be read"):
        read(tmp_path / "latin.csv")


def test_what_was_written_changes_nothing_when_it_comes_back(tmp_path):
    found = changes(CLASS, NAME, book(tmp_path))
    after = CANVAS.replace("Monday,,8.00,,", "Monday,,8.00,6.13,").replace(",,,6.00,", ",,,7.00,")
    again = changes(CLASS, NAME, book(tmp_path, after))
    assert (len(again.lines), again.same) == (0, found.same + len(found.lines))


# ---- the table for a spreadsheet


def test_the_table_has_a_column_for_each_question():
    found = (Finding("softmax", "first-axis", "=the axis"), Finding("=dot", None, "wrong; numbers"))
    first = Outcome("=1+1", "graded", "@x", found, "", ("+flag", "second"), lateness="handed in late")
    rows = [
        Row(first, {"a": (1.5, 4.0), "b": (0.0, 3.0)}, 1, (), penalty=0.5),
        Row(Outcome("zoe", "missing", "there is nothing"), {}, 0, ()),
    ]
    formula, zoe = csv.DictReader(io.StringIO(csv_text(rows), newline=""))
    assert formula == {
        "student": "'=1+1",
        "last name": "",
        "first name": "",
        "score": "1.0",
        "points": "7.0",
        "penalty": "0.5",
        "handed in": "handed in late",
        "to read": "1",
        "verdict": "graded",
        "reason": "'@x",
        "mistakes": "softmax: first-axis (=the axis); '=dot: wrong, numbers",
        "look at": "'+flag; second",
        "a": "1.5",
        "b": "0.0",
    }
    assert (zoe["a"], zoe["reason"]) == ("", "there is nothing")
    assert float(formula["score"]) == float(formula["a"]) + float(formula["b"]) - float(formula["penalty"])


# ---- the command


@pytest.fixture
def course(tmp_path, monkeypatch) -> Course:
    course = Course(tmp_path, tmp_path / "class")
    course.reports(NAME).mkdir(parents=True)
    monkeypatch.setattr(exporting, "rows", lambda course, assignment: CLASS)
    return course


def test_without_canvas_everything_is_written(course):
    said = export(course, NAME, canvas=None, out=None)
    assert said == f"5 students, 1 question\nTable: {course.reports(NAME) / 'grades.csv'}"
    assert (course.reports(NAME) / "grades.csv").read_text().count("\n") == 6


def test_with_canvas_the_changes_are_written_and_shown(course, tmp_path):
    (file := tmp_path / "from.csv").write_text(CANVAS, encoding="utf-8")
    said = export(course, NAME, canvas=file, out=tmp_path / "to.csv")
    assert "S3  6.00 → 7.00" in said
    assert said.endswith(f"For Canvas: {tmp_path / 'to.csv'}")
    assert (tmp_path / "to.csv").read_text(encoding="utf-8").count("\n") == 4


def test_where_nothing_changes_there_is_no_file(course, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "rows", lambda course, assignment: [row("ada", 5.5)])
    (file := tmp_path / "from.csv").write_text(CANVAS, encoding="utf-8")
    assert "no file was written" in export(course, NAME, canvas=file, out=None)
    assert not (course.reports(NAME) / "canvas.csv").exists()


def test_canvas_own_export_is_never_written_over(course, tmp_path):
    (file := tmp_path / "from.csv").write_text(CANVAS, encoding="utf-8")
    with pytest.raises(GradingError, match="choose another file"):
        export(course, NAME, canvas=file, out=Path(file.parent / "." / "from.csv"))
    assert file.read_text(encoding="utf-8") == CANVAS


def test_an_answer_that_nobody_has_marked_is_no_zero(tmp_path, monkeypatch):
    scores = {"a": (0.0, 4.0), "essay": (0.0, 3.0)}
    found = [Row(Outcome("ada", "graded"), scores, 1, (), ("essay",)), Row(Outcome("bela", "graded"), scores, 0, ())]
    lines = list(csv.DictReader(io.StringIO(csv_text(found), newline="")))
    assert [(line["a"], line["essay"], line["to read"]) for line in lines] == [("0.0", "", "1"), ("0.0", "0.0", "0")]
    monkeypatch.setattr(exporting, "rows", lambda course, assignment: found)
    said = export(Course.at(tmp_path), NAME, out=tmp_path / "grades.csv")
    assert "1 answer is still to be marked by hand. Until then, an answer without a mark counts as 0." in said
    found.pop(0)
    assert "by hand" not in export(Course.at(tmp_path), NAME, out=tmp_path / "grades.csv")
