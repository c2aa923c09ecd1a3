"""A class is collected from downloads, graded, and gets its feedback back in the form that each system takes."""

import csv
import io
import re
import zipfile

import nbformat
import pytest
from tiny import OVERFLOWS, tiny_notebook

from grading.collect.collect import collect
from grading.gradebook.create import open_gradebook
from grading.return_feedback.pack import return_feedback
from grading.run import run
from grading.timestamp import time_zone

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def returned(tiny, boxes, tmp_path_factory):
    place = tmp_path_factory.mktemp("downloads")
    wrong = tiny_notebook()
    wrong.cells[1].source = OVERFLOWS
    right, wrong = nbformat.writes(tiny_notebook()), nbformat.writes(wrong)
    downloads = {
        "canvas.zip": {"lovelaceada_LATE_1815_4711_tiny-1.ipynb": wrong, "x_1_2_tiny.ipynb": right},
        "moodle.zip": {"Aiko Ito_77000_assignsubmission_file_/mine.ipynb": right},
    }
    for name, files in downloads.items():
        with zipfile.ZipFile(place / name, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
    collect(tiny, "tiny", [place / name for name in downloads], time_zone("UTC"))
    run(tiny, "tiny", pool=boxes)
    with open_gradebook(tiny) as gradebook:
        gradebook.find_student("1815").email = "=cmd()@example.org"
        gradebook.find_comment("answer-one", "tiny", "tiny", "1815").manual_comment = "Subtract\nthe maximum."
        gradebook.find_grade("check-two", "tiny", "tiny", "1").needs_manual_grade = True
        gradebook.db.commit()
    said = return_feedback(tiny, "tiny")
    folder = tiny.reports("tiny") / "returned"
    return tiny, folder, said


def files(archive):
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_canvas_finds_the_student_and_the_file_by_the_first_two_numbers(returned):
    _, folder, _ = returned
    ((name, content),) = files(folder / "canvas.zip").items()
    assert [part for part in name.split("_") if re.fullmatch(r"\d+", part)][:2] == ["1815", "4711"]
    notebook = nbformat.reads(content.decode(), as_version=4)  # Canvas shows it under the name of the notebook
    nbformat.validate(notebook)
    first = notebook.cells[0].source
    assert "**5.5 of 6 points**" in first
    assert "| `check-one` | 1.5 | 2 |" in first
    assert "> Subtract\n> the maximum." in first


def test_moodle_finds_the_student_by_the_folder_of_its_own_download(returned):
    course, folder, _ = returned
    page = course.feedback("Aiko Ito_77000", "tiny") / "tiny.html"
    assert files(folder / "moodle.zip") == {"Aiko Ito_77000_assignsubmission_file_/tiny.html": page.read_bytes()}


def test_everybody_has_a_folder_and_a_row_for_mail_merge_unless_a_person_still_has_to_mark(returned):
    course, folder, said = returned
    assert set(files(folder / "folders.zip")) == {"1815/tiny.html", "Aiko Ito_77000/tiny.html"}
    table = list(csv.DictReader(io.StringIO((folder / "mail-merge.csv").read_text())))
    assert {row["student"]: (row["score"], row["points"]) for row in table} == {
        "1815": ("5.5", "6.0"), "Aiko Ito_77000": ("6.0", "6.0")
    }  # fmt: skip
    ada = next(row for row in table if row["student"] == "1815")
    assert ada["email"] == "'=cmd()@example.org", "a formula is no formula in a spreadsheet"
    assert (course.folder / ada["feedback"]).is_file()
    assert "still to be marked (1): 1" in said
    assert "1/tiny.html" not in files(folder / "folders.zip")
    return_feedback(course, "tiny", unfinished=True)
    assert "1/tiny.html" in files(folder / "folders.zip")
