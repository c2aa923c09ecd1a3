"""Lateness follows the due date and timestamp.txt at the next run, without grading anybody again."""

import sqlite3
from contextlib import closing, contextmanager

import pytest

from grading._nbgrader import Gradebook
from grading.course import GradingError
from grading.outcome import LATENESS_CHANGED, TIME_UNKNOWN
from grading.report import rows
from grading.run import How, run

PLUGIN = """
from nbgrader.plugins import BasePlugin


class Tenth(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 0.1 * score
"""
DUE, BEFORE, AFTER = "2030-01-31 18:00 UTC", "2030-01-31 17:00 UTC", "2030-02-01 19:00:30 UTC"


@pytest.fixture(scope="module")
def course(tiny, boxes):
    (tiny.root / "tenth_late.py").write_text(PLUGIN)
    config = tiny.root / "nbgrader_config.py"
    config.write_text(config.read_text() + '\nc.AssignLatePenalties.plugin_class = "tenth_late.Tenth"\n')
    tiny.grade = lambda **how: run(tiny, "tiny", how=How(**how), pool=boxes)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tiny.root))
        yield tiny


@pytest.fixture
def ada(course):
    """A submission that was graded, and in which a person marked an answer, before anything was known of its time."""
    folder = course.submitted("ada", "tiny")
    (folder / "timestamp.txt").unlink(missing_ok=True)
    due(course, None)
    course.submit("ada")
    course.grade(regrade=True)
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade("check-two", "tiny", "tiny", "ada")
        grade.manual_score, grade.needs_manual_grade = 1.0, False
        gradebook.db.commit()
    return folder / "timestamp.txt"


def due(course, when):
    if (course.folder / "gradebook.db").exists():
        with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
            gradebook.update_or_create_assignment("tiny", duedate=when)


def row(course, student="ada"):
    (found,) = (row for row in rows(course, "tiny") if row.outcome.student == student)
    return found


def changes(course):
    return [flag for flag in row(course).outcome.flags if flag.startswith(LATENESS_CHANGED)]


@pytest.mark.slow
def test_what_arrives_changes_and_goes_is_followed_and_told_and_marks_stay(course, ada, capsys):
    steps = [
        (AFTER, None, 0.0, "handed in 2030-02-01 19:00:30 UTC, and no due date is set"),
        (AFTER, DUE, 0.5, "handed in 2030-02-01 19:00:30 UTC, late by 1 day, 1:00:30, 0.5 points off"),
        (BEFORE, DUE, 0.0, "handed in 2030-01-31 17:00:00 UTC, in time"),
        (BEFORE, "2030-01-31 16:59:59 UTC", 0.5, "handed in 2030-01-31 17:00:00 UTC, late by 0:00:01, 0.5 points off"),
        (None, "2030-01-31 16:59:59 UTC", 0.0, ""),
    ]
    said = ""
    for stamp, when, penalty, expected in steps:
        ada.write_text(stamp) if stamp else ada.unlink()
        due(course, when)
        capsys.readouterr()
        course.grade()
        found = row(course)
        assert (found.penalty, found.outcome.lateness) == (penalty, expected)
        assert changes(course) == [
            f"{LATENESS_CHANGED}{said or 'nothing was known'} → {expected or 'nothing is known'}"
        ]
        assert f"ada: {changes(course)[0]}" in capsys.readouterr().out
        assert (found.score, found.to_read) == (5 - penalty, 0), "what a person marked stands, and is not reopened"
        assert (f"{penalty} for lateness" in found.feedback[0].read_text()) == bool(penalty)
        assert found.feedback[0].read_text().lower().count("late") == bool(penalty)
        assert sum("points off" in remark for remark in found.remarks()) == bool(penalty)
        said = expected
    capsys.readouterr()
    course.grade()
    assert "ada" not in capsys.readouterr().out, "what has not changed is not told"


def test_a_due_date_that_goes_takes_the_penalty_along(course, ada):
    ada.write_text(AFTER)
    due(course, DUE)
    course.grade()
    assert row(course).penalty == 0.5
    due(course, None)
    course.grade()
    assert row(course).penalty == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("text", ["31.01.2030 18:00", "yesterday", "LATE"])
def test_a_date_that_cannot_be_read_is_told_and_never_counts_silently_as_in_time(course, ada, text):
    due(course, DUE)
    ada.write_text(text)
    course.grade()
    found = row(course)
    assert any(flag.startswith(TIME_UNKNOWN) and "timestamp.txt" in flag for flag in found.outcome.flags)
    assert any("not known" in remark or "late, by an unknown amount of time" in remark for remark in found.remarks())
    assert found.penalty == (0.5 if text == "LATE" else 0.0)


def test_what_is_late_by_an_unknown_time_is_penalized_by_the_first_run(course, ada):
    due(course, DUE)
    course.submit("bela")
    (course.submitted("bela", "tiny") / "timestamp.txt").write_text("LATE")
    course.grade()
    found = row(course, "bela")
    assert found.penalty == pytest.approx(0.6)
    assert found.outcome.lateness == "late, by an unknown amount of time, 0.6 points off"


def test_the_due_date_in_effect_is_shown_as_it_was_understood(course, ada, capsys):
    due(course, "01.02.2030 18:00")  # dateutil, and so nbgrader, takes the month first
    capsys.readouterr()
    course.grade()
    assert "Due: 02 January 2030, 18:00 UTC" in capsys.readouterr().out


def test_a_due_date_that_is_none_is_refused(course, ada):
    with (
        raw_due(course, "'31.01.2030 18:00'"),
        pytest.raises(GradingError, match=r"due date of tiny .* cannot be read"),
    ):
        course.grade()


@contextmanager
def raw_due(course, value):
    """Have the gradebook hold a value that nbgrader itself would not write."""
    _set_due(course, value)
    try:
        yield
    finally:
        _set_due(course, "NULL")


def _set_due(course, value):
    with closing(sqlite3.connect(course.folder / "gradebook.db")) as db:
        db.execute(f"UPDATE assignment SET duedate = {value}")
        db.commit()
