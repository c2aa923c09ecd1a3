"""Each folder that cannot be graded is named, with the reason, in the run's output and in the report."""

import argparse
import os

import pytest

from grading.__main__ import _show
from grading.course import GradingError
from grading.report import rows
from grading.run import How, chosen, run
from grading.submission_folders import not_graded

ODD = {
    "a*": "nbgrader takes for a pattern",
    "b?": "nbgrader takes for a pattern",
    "c[1]": "nbgrader takes for a pattern",
    " d": "begins or ends with a space",
    "e ": "begins or ends with a space",
    "f\n": "cannot be printed",
    "g\x1b[31m": "cannot be printed",
    os.fsdecode(b"h\xff"): "cannot be printed",
    "i" * 201: "201 bytes, more than 200",
    "ä" * 101: "202 bytes, more than 200",
    "link": "it is a link",
}


@pytest.fixture(scope="module")
def course(tiny):
    for name in ODD:
        if name != "link":
            tiny.submit(name)
    (tiny.folder / "submitted" / "link").symlink_to(tiny.folder / "submitted" / " d")
    return tiny


def test_where_nobody_is_left_each_name_is_told(course, capsys):
    with pytest.raises(GradingError, match="nobody is left to grade"):
        chosen(course, "tiny", None)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(ODD)
    for name, why in ODD.items():
        assert any(line.startswith(f"warning: not graded: {name!a}: ") and why in line for line in said)


def test_output_and_report_name_each_folder_and_the_others_are_graded(course, boxes, capsys):
    course.submit("zoë")
    course.submit("an odd, but fine; name")
    run(course, "tiny", how=How(pages=False), pool=boxes)
    capsys.readouterr()
    _show(course, argparse.Namespace(assignment="tiny"))
    assert {row.outcome.student for row in rows(course, "tiny")} == {"zoë", "an odd, but fine; name"}
    said, page = capsys.readouterr().out, (course.reports("tiny") / "grades.html").read_text()
    assert not_graded(course).keys() == ODD.keys()
    for name, why in ODD.items():
        assert any(line.startswith(f"Not graded: {name!a}: ") and why in line for line in said.splitlines())
        assert why in page
    assert "Folders that were left out" in page
    assert page.count("pattern: rename it") == 3
    assert "c[1]" in page
