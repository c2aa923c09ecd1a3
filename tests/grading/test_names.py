"""Every page, table and file names a student, whatever the name is, and also who is on the class list but absent."""

import argparse
import csv

import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

from grading.__main__ import _show
from grading.class_report.export import export
from grading.course import log_file
from grading.release import register
from grading.report import rows
from grading.run import How, run

pytestmark = pytest.mark.slow

FORMULA = "=cmd|' /C calc'!A0"
NAMES = {
    "ada": ("Ada", "Lovelace"),
    "ada2": ("Ada", "Lovelace"),
    "bela": ("<b>Béla</b>", "O'Neill & Söhne; =1+1"),
    "cem": (FORMULA, "../../\u202eetc\x1b[2J"),
    "dara": ("می\u200cخواهم", ""),
    "emeka": ("Emeka", None),
}
CANVAS = "Student,ID,Section,tiny (42)\n    Points Possible,,,6.00\nx,ada,Monday,\ny,emeka,Monday,\n"


@pytest.fixture(scope="module")
def course(tiny, boxes):
    """A graded class: all but ``zoe`` are on the class list; ``dara`` and ``emeka`` handed in nothing."""
    for student in ("ada", "ada2", "bela", "cem", "zoe"):
        tiny.submit(student)
    tiny.submitted("emeka", "another-assignment").mkdir(parents=True)
    register(tiny, "tiny", log_file(tiny, "tiny"))
    with Gradebook(tiny.config().CourseDirectory.db_url) as gradebook:
        for student, (first, last) in NAMES.items():
            gradebook.add_student(student, first_name=first, last_name=last)
    run(tiny, "tiny", how=How(), pool=boxes)
    return tiny


@pytest.fixture
def shown(course, capsys):
    _show(course, argparse.Namespace(assignment="tiny"))
    return capsys.readouterr().out


def test_everybody_on_the_list_has_a_row_and_who_handed_in_nothing_has_no_points(course):
    found = {row.outcome.student: row for row in rows(course, "tiny")}
    assert list(found) == ["ada", "ada2", "bela", "cem", "zoe", "dara", "emeka"]
    assert [student for student, row in found.items() if row.absent] == ["dara", "emeka"]
    assert (found["emeka"].score, found["emeka"].points, found["emeka"].remarks()) == (0, 6, ["handed in nothing"])
    assert found["emeka"].scores.keys() == found["ada"].scores.keys()


def test_the_terminal_gets_names_with_ids_and_no_control_characters(shown):
    assert "Ada Lovelace (ada) " in shown
    assert "Ada Lovelace (ada2) " in shown
    assert "On the class list, but nothing handed in (2): می\u200cخواهم (dara), Emeka (emeka)\n" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_the_report_names_them_as_text(course, shown):
    page = BeautifulSoup((course.reports("tiny") / "grades.html").read_text(), "html.parser")
    everybody = next(table for table in page.select("table") if table.caption.text == "Everybody")
    heads = [head.get_text() for head in everybody.select("tbody th")]
    assert heads[:3] == ["Ada Lovelace (ada)", "Ada Lovelace (ada2)", "<b>Béla</b> O'Neill & Söhne; =1+1 (bela)"]
    assert heads[3] == f"{FORMULA} ../../\N{REPLACEMENT CHARACTER}etc\N{REPLACEMENT CHARACTER}[2J (cem)"
    assert heads[4:] == ["zoe", "می\u200cخواهم (dara)", "Emeka (emeka)"]
    assert [bdi.text for bdi in everybody.select("tbody th")[0].select("bdi")] == ["Ada Lovelace", "ada"]
    assert not page.select("th b, td b")
    listed = next(table for table in page.select("table") if table.caption.text == "Differences from the class list")
    assert "Emeka (emeka)" in listed.get_text()


def test_the_table_for_a_spreadsheet_has_names_and_no_formulas(course, shown):
    with (course.reports("tiny") / "grades.csv").open(encoding="utf-8", newline="") as file:
        lines = {line["student"]: line for line in csv.DictReader(file)}
    assert [lines["ada"][column] for column in ("last name", "first name", "score")] == ["Lovelace", "Ada", "6.0"]
    assert (lines["cem"]["first name"], lines["cem"]["last name"][:5]) == (f"'{FORMULA}", "../..")
    assert lines["bela"]["last name"] == "O'Neill & Söhne;' =1+1"
    assert (lines["emeka"]["score"], lines["emeka"]["points"]) == ("0.0", "6.0")
    assert (lines["emeka"]["verdict"], lines["emeka"]["reason"]) == ("missing", "handed in nothing")


def test_canvas_gets_no_zero_for_who_handed_in_nothing(course, tmp_path):
    (file := tmp_path / "canvas.csv").write_text(CANVAS, encoding="utf-8")
    said = export(course, "tiny", canvas=file, out=tmp_path / "new.csv")
    assert "  Ada Lovelace (ada)  – → 6.00\n" in said
    assert "In Canvas, but left unchanged (1 of 2):\n  y (emeka)" in said
    assert "emeka" not in (tmp_path / "new.csv").read_text()


@pytest.mark.parametrize(
    ("student", "named", "title"),
    [
        ("ada", "Feedback for Ada Lovelace (ada):", "tiny: feedback for Ada Lovelace"),
        ("bela", "Feedback for <b>Béla</b> O'Neill & Söhne; =1+1 (bela):", "tiny: feedback for <b>Béla</b> O'Neill"),
        ("zoe", "Feedback for zoe:", "tiny: feedback for zoe"),
    ],
)
def test_a_feedback_page_is_addressed_to_a_name(course, student, named, title):
    page = BeautifulSoup((course.feedback(student, "tiny") / "tiny.html").read_text(), "html.parser")
    assert page.main.p.get_text().startswith(named)
    assert page.title.text.startswith(title)
