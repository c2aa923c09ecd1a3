"""Grading again replaces what was, keeps what a person decided, and leaves alone whoever was not asked for."""

from dataclasses import replace

import pytest
from tiny import ONE_AXIS, ONE_MATRIX, OVERFLOWS

from grading._nbgrader import Gradebook, MissingEntry
from grading.bounded_worker import LostError
from grading.gradebook.notebook_marks import notebook_marks
from grading.report import rows
from grading.run import How, refresh, run
from grading.run_state import RunState
from grading.sandbox.limits import Limits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tiny, boxes):
    def grade(*students, **how):
        run(tiny, "tiny", students or None, How(**how), pool=boxes)

    tiny.grade = grade
    tiny.submit("improves", answer_one=OVERFLOWS)
    tiny.submit("breaks")
    tiny.submit("waits", answer_one=OVERFLOWS)
    grade()
    tiny.submit("improves")
    tiny.submit_text("breaks", "{")
    tiny.submit("waits")
    with Gradebook(tiny.config().CourseDirectory.db_url) as gradebook:
        gradebook.find_grade("check-two", "tiny", "tiny", "improves").manual_score = 0.25
        gradebook.db.commit()
    grade("improv*", "breaks")
    return tiny


def by_name(course):
    return {row.outcome.student: row for row in rows(course, "tiny")}


def read_by_hand(course, student, score):
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade("check-two", "tiny", "tiny", student)
        grade.manual_score, grade.needs_manual_grade = score, False
        gradebook.db.commit()


@pytest.fixture(scope="module")
def graded(course):
    return {row.outcome.student: row for row in rows(course, "tiny")}


def test_the_page_shows_a_mark_that_was_kept_and_says_that_somebody_will_look_again(course, graded):
    page = graded["improves"].feedback[0].read_text()
    assert "<td>0.25 / 2, to be looked at again</td>" in page
    assert "<span>0.25 / 2 points, to be looked at again</span>" in page
    assert "not marked yet" not in page
    assert "4.25 / 6 points" in page


def test_a_better_submission_replaces_the_first(graded):
    assert graded["improves"].scores["check-one"] == (2, 2)


def test_what_a_person_decided_stands_and_waits_to_be_looked_at_again(graded):
    assert graded["improves"].scores["check-two"] == (0.25, 2)
    assert graded["improves"].to_read == 1


def test_a_submission_that_became_unreadable_leaves_nothing_of_the_first(course, graded):
    assert graded["breaks"].score == 0
    assert graded["breaks"].outcome.verdict == "unreadable"
    (page,) = graded["breaks"].feedback
    assert "attention_shapes" not in page.read_text()
    assert not course.autograded("breaks", "tiny").exists()


def test_whoever_was_not_asked_for_keeps_the_old_grade(graded):
    assert graded["waits"].scores["check-one"] == (1.5, 2)


def test_a_person_has_to_read_once_and_the_feedback_page_shows_it(course, graded):
    read_by_hand(course, "improves", 1.125)
    course.submit("waits", answer_three=ONE_AXIS)
    course.grade()
    assert by_name(course)["waits"].scores["check-three"] == pytest.approx((1.2, 2))
    assert by_name(course)["improves"].to_read == 0
    refresh(course, "tiny")
    assert "5.125 / 6 points" in by_name(course)["improves"].feedback[0].read_text()
    course.grade("improves", regrade=True)
    assert by_name(course)["improves"].to_read == 1


def graded_again(course, **how):
    """Grade whoever has to be, and return their names."""
    before = {
        row.outcome.student: (course.autograded(row.outcome.student, "tiny") / "tiny.ipynb")
        for row in rows(course, "tiny")
    }
    times = {student: file.stat().st_mtime_ns for student, file in before.items() if file.exists()}
    course.grade(**how)
    return {student for student, time in times.items() if before[student].stat().st_mtime_ns != time}


@pytest.mark.parametrize("part", ["engine", "catalogue"])
def test_changed_checks_grade_everybody_again_and_marks_stay_marked(course, graded, monkeypatch, part):
    course.submit("waits")
    course.grade()
    read_by_hand(course, "improves", 1.125)
    assert graded_again(course) == set()
    monkeypatch.setattr(f"grading.version.{part}", lambda: "changed")
    assert graded_again(course) == {"improves", "waits"}
    assert by_name(course)["improves"].scores["check-two"] == (1.125, 2)
    assert by_name(course)["improves"].to_read == 0
    assert graded_again(course) == set()


def test_a_longer_time_grades_those_again_for_whom_a_shorter_one_was_too_short(course, graded):
    course.submit("waits")
    course.grade()
    run_state = RunState(course, "tiny")
    late = replace(run_state.outcome_of("waits"), timeout=20.0)
    run_state.announce(late, 6.0, sandboxed=True)  # as the run did in which time ran out
    run_state.store_outcome(late)
    assert graded_again(course, limits=Limits(cell=20.0)) == set()
    assert graded_again(course, limits=Limits(cell=21.0)) == {"waits"}
    assert graded_again(course, limits=Limits(cell=22.0)) == set(), "time no longer ran out"


def test_where_no_page_can_be_written_the_grade_stays(course, graded, monkeypatch):
    monkeypatch.setattr("grading.pages.Pages._page", lambda *given: 1 / 0)
    course.submit("waits", answer_two=ONE_MATRIX)
    course.grade("waits")
    row = by_name(course)["waits"]
    assert (row.outcome.verdict, row.score, row.feedback) == ("graded", pytest.approx(4 + 4 / 3), ())
    assert row.outcome.reason.startswith("no feedback page: ZeroDivisionError")


def test_the_error_names_a_cell_that_the_gradebook_does_not_know(course, graded):
    marks = notebook_marks(course.config().CourseDirectory.db_url, "waits", "tiny", "tiny")
    with pytest.raises(MissingEntry, match="no entry for the cell other"):
        marks.cells["other"]


def test_a_notebook_has_one_limit_of_time_for_all_cells(course, graded):
    course.grade("waits", regrade=True, limits=Limits(notebook=0.0001, clock=1e6))  # the clock alone ends nothing here
    assert by_name(course)["waits"].outcome.verdict == "timeout"
    assert by_name(course)["waits"].outcome.timeout == Limits().cell
    assert "did not finish within 0.0001 seconds of processor time" in by_name(course)["waits"].outcome.reason
    assert by_name(course)["waits"].score == 0


def test_where_the_grader_fails_no_earlier_grade_remains_and_the_next_run_mends_it(course, graded, monkeypatch):
    read_by_hand(course, "improves", 1.125)
    with monkeypatch.context() as broken:
        broken.setattr("grading.submission.Submissions._settled", lambda *given: 1 / 0)
        course.grade("improves", regrade=True)
    row = by_name(course)["improves"]
    assert (row.outcome.verdict, row.score, row.feedback) == ("infrastructure", 1.125, ())
    assert row.to_read == 1, "what a person gave stands, to be looked at again"
    course.grade("improves")
    assert by_name(course)["improves"].outcome.verdict == "graded"
    assert by_name(course)["improves"].scores["check-one"] == (2, 2)
    assert by_name(course)["improves"].to_read == 1, "--regrade asked for it"


def lost(*given):
    raise LostError("something else ended it")


@pytest.mark.parametrize("answers", ["unchanged", "changed"])
@pytest.mark.parametrize(
    ("fails", "how"), [("submission.Submissions._settled", lambda *given: 1 / 0), ("bounded_worker._values", lost)]
)
def test_where_the_grader_fails_marks_of_unchanged_answers_stay_confirmed(
    course, graded, monkeypatch, answers, fails, how
):
    course.submit("improves")
    course.grade("improves")
    read_by_hand(course, "improves", 1.125)
    if answers == "changed":
        course.submit("improves", answer_one=OVERFLOWS)
    monkeypatch.setattr("grading.version.engine", lambda: "after an update")
    for _ in range(2):
        with monkeypatch.context() as broken:
            broken.setattr(f"grading.{fails}", how)
            course.grade("improves")
        row = by_name(course)["improves"]
        assert (row.outcome.verdict, row.score, row.feedback) == ("infrastructure", 1.125, ())
    course.grade("improves")
    row = by_name(course)["improves"]
    assert (row.outcome.verdict, row.scores["check-two"]) == ("graded", (1.125, 2))
    assert row.scores["check-one"] == ((2, 2) if answers == "unchanged" else (1.5, 2))
    assert row.to_read == (answers == "changed")


def test_marks_stay_open_where_the_gradebook_failed_on_changed_answers(course, graded, monkeypatch):
    course.submit("improves")
    course.grade("improves")
    read_by_hand(course, "improves", 1.125)
    course.submit("improves", answer_one=OVERFLOWS)
    with monkeypatch.context() as broken:
        broken.setattr("grading.gradebook.assignment.AssignmentGradebook.record", lambda *given, **how: 1 / 0)
        course.grade("improves")
    assert by_name(course)["improves"].to_read == 0, "nothing could be written"
    course.grade("improves")
    assert by_name(course)["improves"].to_read == 1


def test_a_run_writes_nothing_beside_the_solutions(course):
    assert {path.name for path in course.root.iterdir()} == {"solutions", "nbgrader_config.py"}
