"""The gradebook writes what nbgrader would write, row by row; in one transaction; and with few statements."""

import gc
import os
import signal
import sqlite3
import threading
from pathlib import Path
from unittest import TestCase

import pytest
from gradebooks import (
    ASSIGNMENT,
    DUE,
    LATE,
    STORIES,
    Fault,
    Gradebooks,
    Graded,
    both,
    contents,
    handed_in,
    marked,
    raise_fault,
    released,
    rich_course,
    tell,
)
from nbgrader.api import Comment, Grade, Gradebook, SubmittedNotebook
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from tiny import REPOSITORY

from grading.course import Course, GradingError, quiet

FEW = 16  # statements for a submission to 04-multi-head, BEGIN included


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    course = rich_course(tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("class"))
    return both(course, ASSIGNMENT, tmp_path_factory.mktemp("gradebooks"))


@pytest.fixture(scope="module")
def nbgraders(ways):
    return ways[0]


@pytest.fixture(scope="module")
def ours(ways):
    return ways[1]


@pytest.fixture(scope="module")
def notebooks(ours):
    return handed_in(released(ours.course, ASSIGNMENT), 0.5)


def grade(way, student, cell, notebook="first"):
    """Return the automatic score, a person's, the extra credit, and whether a person has to look."""
    with Gradebook(way.url) as gradebook:
        row = gradebook.find_grade(cell, notebook, ASSIGNMENT, student)
        return row.auto_score, row.manual_score, row.extra_credit, row.needs_manual_grade


@pytest.mark.slow
@pytest.mark.parametrize("student", STORIES)
def test_every_row_is_nbgraders(nbgraders, ours, student):
    for way in (nbgraders, ours):
        with quiet():
            tell(student, STORIES[student], way)
    assert contents(ours.url) == contents(nbgraders.url)
    assert student in str(contents(ours.url)["grade"])


def test_the_comparison_sees_every_column_that_grading_writes(ours):
    tell("compared", [Graded(0.5, LATE)], ours)
    before = contents(ours.url)
    changes = ["grade SET auto_score = 0.125", "grade SET needs_manual_grade = 1", "comment SET auto_comment = 'x'"]
    changes += ["submitted_notebook SET late_submission_penalty = 9", "submitted_assignment SET timestamp = NULL"]
    for change in changes:
        connection = create_engine(ours.url).raw_connection()
        connection.execute(f"UPDATE {change}")
        connection.commit()
        assert contents(ours.url) != before, change
        tell("compared", [Graded(0.5, LATE)], ours)


# Where nbgrader keeps what belongs to an earlier submission -----------------------------------------------------------


def test_a_task_waits_for_a_person_whenever_it_comes(ours, nbgraders):
    def read(gradebook, student):
        task = gradebook.find_grade("task", "first", ASSIGNMENT, student)
        task.manual_score, task.needs_manual_grade = 4.0, False

    seen = {}
    for way in (nbgraders, ours):
        with quiet():
            tell("task-marked", [Graded(1), read, Graded(0.5)], way)
            tell("task-missing-first", [Graded(1, without="first"), Graded(1)], way)
        seen[way] = [grade(way, student, "task") for student in ("task-marked", "task-missing-first")]
    assert seen[nbgraders] == [(None, 4, None, False), (0, None, None, False)]
    assert seen[ours] == [(None, 4, None, True), (None, None, None, True)]


def test_what_is_no_longer_there_keeps_a_persons_marks_alone(ours):
    tell("withdrawn", [Graded(None, LATE, answered=False), marked], ours)
    with ours.open() as gradebook:
        gradebook.record_nothing("withdrawn")
    assert grade(ours, "withdrawn", "check-one") == (0, 0.25, 1.5, True)
    assert grade(ours, "withdrawn", "check-two") == (0, None, None, False)
    assert grade(ours, "withdrawn", "essay") == (0, 2, None, True)
    with Gradebook(ours.url) as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, "withdrawn")
        assert submission.timestamp == LATE
        assert [notebook.late_submission_penalty for notebook in submission.notebooks] == [None, None]
        comments = [comment for notebook in submission.notebooks for comment in notebook.comments]
        assert {comment.auto_comment for comment in comments} == {None}
        assert {comment.manual_comment for comment in comments} == {None, "Well thought."}


def test_nothing_from_somebody_unknown_is_a_row_of_zeros(ours):
    with ours.open() as gradebook:
        gradebook.record_nothing("unheard-of", DUE)
    with Gradebook(ours.url) as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, "unheard-of")
        assert (submission.timestamp, submission.score, submission.needs_manual_grade) == (DUE, 0, False)
        assert len([grade for notebook in submission.notebooks for grade in notebook.grades]) == 5


# What comes in --------------------------------------------------------------------------------------------------------


def test_what_ran_without_a_sandbox_is_flagged_and_a_flag_stays(ours, notebooks):
    with ours.open() as gradebook:
        gradebook.record("free", {"first": notebooks["first"]}, None, unsandboxed=True)
        gradebook.record("free", notebooks, None)
    with Gradebook(ours.url) as gradebook:
        flags = {row.name: row.flagged for row in gradebook.find_submission(ASSIGNMENT, "free").notebooks}
    assert flags == {"first": True, "second": False}


def test_an_unknown_notebook_is_left_out(ours, notebooks):
    with ours.open() as gradebook, TestCase().assertLogs() as logs:
        gradebook.record("more", notebooks | {"evil\x1b[2J": notebooks["first"]}, None)
    message = "more: evil\N{REPLACEMENT CHARACTER}[2J is not a notebook of rich, so it is left out"
    assert message in [record.getMessage() for record in logs.records]
    assert grade(ours, "more", "check-one")[0] == 1


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda cells: cells.pop(1), "Unknown or duplicate: none; missing: check-one"),
        (lambda cells: cells.append(cells[1]), "Unknown or duplicate: check-one; missing: none"),
        (lambda cells: cells[1].metadata.nbgrader.update(grade_id="x"), "Unknown or duplicate: x; missing: check-one"),
        (lambda cells: cells.pop(0), "Unknown or duplicate: none; missing: answer-one"),
    ],
)
def test_cells_that_are_not_the_gradebooks_are_refused_and_nothing_is_written(ours, edit, said):
    wrong = handed_in(released(ours.course, ASSIGNMENT), 1)
    edit(wrong["first"].cells)
    before = contents(ours.url)
    with ours.open() as gradebook, pytest.raises(GradingError, match=said):
        gradebook.record("mismatched", wrong, None)
    assert contents(ours.url) == before


def test_an_assignment_has_to_be_registered(ours):
    with pytest.raises(GradingError, match="'other' is not in the gradebook yet: grade it with `run`"):
        Gradebooks(ours.course, "other", ours.url).open().__enter__()


# One transaction ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["new", "known"])
def student(request, ours):
    name = f"{request.param}-{request.function.__name__}"
    if request.param == "known":
        tell(name, [Graded(1, DUE), marked], ours)
    return name


def everything(way):
    return Path(way.url.removeprefix("sqlite:///")).read_bytes(), contents(way.url)


def test_a_fault_at_any_statement_leaves_everything_as_it_was(ours, notebooks, student):
    before = everything(ours)
    with ours.open() as gradebook:
        fault = Fault(gradebook, raise_fault)
        while not fault.committing:
            fault.next()
            with pytest.raises(RuntimeError, match="a fault"):
                gradebook.record(student, notebooks, LATE)
            assert everything(ours) == before, fault.statements
        assert len(fault.statements) > 5
        fault.stop()
        gradebook.record(student, notebooks, LATE)
    assert grade(ours, student, "check-two")[0] == 1


@pytest.mark.slow
def test_a_kill_at_any_statement_leaves_everything_as_it_was(ours, notebooks, student, tmp_path):
    before, committing = everything(ours), tmp_path / "committing"
    n = 0
    while not committing.exists():
        n += 1
        if (child := os.fork()) == 0:
            killed_at(n, ours, student, notebooks, committing)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert contents(ours.url) == before[1]
    assert n > 5
    assert everything(ours) == before


def killed_at(n, ours, student, notebooks, committing):
    def kill():
        if fault.committing:
            committing.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        with ours.open() as gradebook:
            fault = Fault(gradebook, kill)
            fault.at = n
            gradebook.record(student, notebooks, LATE)
    finally:
        os._exit(1)


# How much it takes ----------------------------------------------------------------------------------------------------


def test_a_submission_to_a_real_assignment_takes_few_statements(tmp_path):
    course = Course.at(REPOSITORY, tmp_path)
    nbgraders, ours = both(course, "04-multi-head", tmp_path)
    with ours.open() as gradebook:
        watched = Fault(gradebook, raise_fault)
        for share, answered, when in [(1, True, DUE), (0.5, True, LATE), (None, False, None)]:
            notebooks = handed_in(released(course, "04-multi-head"), share, answered)
            with quiet():
                nbgraders.grade("ada", notebooks, when)
            watched.statements.clear()
            gradebook.record("ada", notebooks, when)
            assert len(watched.statements) <= FEW, watched.statements
            assert contents(ours.url) == contents(nbgraders.url)


@pytest.mark.slow
def test_nothing_of_a_submission_stays_in_memory(ours, notebooks):
    def alive():
        gc.collect()
        return sum(type(thing) in (SubmittedNotebook, Grade, Comment) for thing in gc.get_objects())

    before = alive()  # log records that the tests keep may hold some
    with ours.open() as gradebook:
        for student in ("first", "second"):
            gradebook.record(student, notebooks, LATE)
            assert alive() == before


# Beside other programs ------------------------------------------------------------------------------------------------


def test_another_program_is_waited_for(ours, notebooks):
    other = sqlite3.connect(ours.url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    with ours.open() as gradebook:
        for begin in ("BEGIN IMMEDIATE", "BEGIN"):  # one that writes, and one that reads for long
            other.execute(begin)
            other.execute("SELECT count(*) FROM grade").fetchone()
            release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
            release.start()
            gradebook.record("patient", notebooks, LATE)
            release.join()
        with gradebook._gradebook.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000
    other.close()
    assert grade(ours, "patient", "check-one")[0] == 1


def test_a_program_that_never_ends_stops_one_submission_and_changes_nothing(ours, notebooks, monkeypatch):
    monkeypatch.setattr("grading.gradebook.sqlite.BUSY_TIMEOUT", 0.02)
    before = contents(ours.url)
    with ours.open() as gradebook, sqlite3.connect(ours.url.removeprefix("sqlite:///")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="database is locked"):
            gradebook.record("hasty", notebooks, LATE)
        other.rollback()
        assert contents(ours.url) == before
        gradebook.record("hasty", notebooks, LATE)
    other.close()
    assert grade(ours, "hasty", "check-one")[0] == 1


def test_a_person_marks_before_a_submission_is_written_or_after_and_not_meanwhile(ours, notebooks):
    tell("marked-meanwhile", [Graded(1)], ours)
    other = sqlite3.connect(ours.url.removeprefix("sqlite:///"), timeout=0)

    def mark():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("UPDATE grade SET manual_score = 1, needs_manual_grade = 0")

    with ours.open() as gradebook:
        fault = Fault(gradebook, mark)
        fault.at = 5
        gradebook.record("marked-meanwhile", notebooks, None)
        assert fault.happened
    other.close()
