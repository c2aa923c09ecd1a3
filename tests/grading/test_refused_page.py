"""Whoever handed in what cannot be graded reads on a page of their own why, and what to do."""

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_markdown_cell

from grading.repair.parse import MAX_NOTEBOOK_TEXT
from grading.report import rows
from grading.run import How, refresh, run

HOSTILE = "<img src=x onerror=alert(1)>.txt"
ASKS = "What to do. Ask for it, or ask for me.txt"


@pytest.fixture(scope="module")
def course(tiny, boxes):
    tiny.submit_text("broken", '{"cells": [')
    tiny.submit_text("other", "", HOSTILE)
    tiny.submit_edited("long", lambda notebook: notebook.cells.append(new_markdown_cell("x" * MAX_NOTEBOOK_TEXT)))
    tiny.submit_text("asks", "", ASKS)
    tiny.submit_text("asks-too", '{"cells": [')
    folder = tiny.submitted("asks-too", "tiny")
    (folder / "Ask for it").mkdir()
    (folder / "tiny.ipynb").rename(folder / "Ask for it" / "tiny.ipynb")
    tiny.submitted("empty", "tiny").mkdir(parents=True)
    tiny.submit("good")
    run(tiny, "tiny", how=How(), pool=boxes)
    return tiny


def page_of(course, student):
    (row,) = (row for row in rows(course, "tiny") if row.outcome.student == student)
    (page,) = row.feedback
    return page.read_text()


def said(page):
    return " ".join(BeautifulSoup(page, "html.parser").main.text.split())


EXPECTED = {
    "broken": "tiny.ipynb is not a complete notebook (Expecting value, line 1 of 1); was it cut off? Hand it in again.",
    "long": f"characters of text in its cells, more than {MAX_NOTEBOOK_TEXT}. "
    "Hand it in without the long text in its cells.",
    "asks": f"There is no file named tiny.ipynb. Hand it in, or rename what was submitted: {ASKS}.",
    "asks-too": "Ask for it/tiny.ipynb is not a complete notebook (Expecting value, line 1 of 1); was it cut off? Hand",
    "empty": "There is no file named tiny.ipynb, and the folder is empty. Hand it in.",
    "other": "There is no file named tiny.ipynb. Hand it in, or rename what was submitted: <img src=x",
}


@pytest.mark.slow
@pytest.mark.parametrize("student", EXPECTED)
def test_the_page_says_what_was_wrong_and_what_to_do(course, student):
    text = said(page_of(course, student))
    assert f"Feedback for {student}: 0 / 6 points. Your submission could not be graded: " in text
    assert EXPECTED[student] in text
    assert ("Ask for" in text) == student.startswith("asks"), "which stands in a name"
    assert "Not everything in the notebook worked" not in text
    assert "Points for each question" not in text


def test_a_name_that_the_page_shows_is_text(course):
    page = page_of(course, "other")
    assert not BeautifulSoup(page, "html.parser").find_all("img")
    assert "&lt;img" in page


def test_the_pages_of_the_others_are_as_before(course):
    assert "could not be graded" not in page_of(course, "good")


def test_a_page_is_made_once_and_again_by_the_report(course, boxes):
    (page,) = (row.feedback[0] for row in rows(course, "tiny") if row.outcome.student == "broken")
    page.write_text("as it was")
    run(course, "tiny", how=How(), pool=boxes)
    assert page.read_text() == "as it was"
    refresh(course, "tiny")
    assert "could not be graded" in page.read_text()


def test_a_page_goes_once_there_is_another_submission(course, boxes):
    course.submit("broken")
    run(course, "tiny", how=How(), pool=boxes)
    assert "6 / 6 points" in page_of(course, "broken")
