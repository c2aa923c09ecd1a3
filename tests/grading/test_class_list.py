"""The report names who is on the class list and handed in nothing, and who handed in without being on it."""

import argparse

import pytest
from nbgrader.api import Gradebook

from grading.__main__ import _show
from grading.class_list import Differences, differences
from grading.course import log_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.release import register
from grading.run import How, run

pytestmark = pytest.mark.slow


@pytest.fixture
def course(tiny, tmp_path):
    """A class of its own: its gradebook knows the assignment, and nobody yet."""
    course = type(tiny)(tiny.root, tmp_path / "class")
    register(course, "tiny", log_file(course, "tiny"))
    return course


def enlist(course, *students, **described):
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        for student in students:
            gradebook.update_or_create_student(student, **described)


def hand_in(course, *students):
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        for student in students:
            gradebook.record_nothing(student)


def test_whoever_is_absent_and_whoever_is_unlisted_is_named(course):
    enlist(course, "ada", "bela", "cem")  # as from a list with nothing but ids
    hand_in(course, "ada", "zoe")
    hand_in(course, "zoe")
    assert differences(course, "tiny", ["ada", "zoe"]) == Differences(("bela", "cem"), ("zoe",))


def test_without_a_class_list_nothing_is_missed(course):
    hand_in(course, "ada", "zoe")
    assert differences(course, "tiny", ["ada"]) == Differences()


def test_whoever_gets_a_name_after_the_run_is_on_the_list(course):
    enlist(course, "ada")
    hand_in(course, "ada", "zoe")
    enlist(course, "zoe", last_name="Doe")
    assert differences(course, "tiny", ["ada", "zoe"]) == Differences()


def test_whoever_waits_to_be_graded_or_is_left_out_on_purpose_is_not_absent(course, monkeypatch):
    enlist(course, "ada", "bela", "cem", "a*")
    course.submit("bela")
    course.submit("a*")
    monkeypatch.setattr(type(course), "excluded", lambda self: {"cem"})
    assert differences(course, "tiny", ["ada"]) == Differences()


def test_the_terminal_and_the_report_name_them(course, boxes, capsys):
    enlist(course, "ada", "bela", "cem")
    course.submit("ada")
    course.submit("zoe")
    run(course, "tiny", how=How(pages=False), pool=boxes)
    capsys.readouterr()
    _show(course, argparse.Namespace(assignment="tiny"))
    said, page = capsys.readouterr().out, (course.reports("tiny") / "grades.html").read_text()
    assert "On the class list, but nothing handed in (2): bela, cem\n" in said
    assert "Handed in, but not on the class list (1): zoe\n" in said
    assert "On the class list, but nothing handed in</th><td><bdi>bela</bdi>, <bdi>cem</bdi></td>" in page
    assert "Handed in, but not on the class list</th><td><bdi>zoe</bdi></td>" in page
