"""Extensions and late days: one table says who granted what and why, and a dry run shows which marks would change."""

import csv
from datetime import datetime, timedelta

import pytest
from tiny import OVERFLOWS, REPOSITORY

from grading.__main__ import main
from grading.course import Course, GradingError, log_file, quiet
from grading.deadlines.extensions import Extensions
from grading.deadlines.table import HEADER, Grant, add, file_of, read_table
from grading.deadlines.update import update
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.create import open_gradebook
from grading.gradebook.lookup import extensions
from grading.report import rows
from grading.run import run
from grading.run_state import RunState
from grading.verify import verify

FIRST, SECOND = datetime(2030, 1, 10, 12), datetime(2030, 1, 20, 12)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory) -> Course:
    """A class whose gradebook knows two assignments, and when Ada handed in: 30 hours and 50 hours late."""
    course = Course(REPOSITORY, tmp_path_factory.mktemp("class"))
    with quiet(), open_gradebook(course) as gradebook:
        for name, due, late in (("02-self-attention", FIRST, 30 * HOUR), ("03-queries-keys-values", SECOND, 50 * HOUR)):
            gradebook.update_or_create_assignment(name, duedate=due)
            gradebook.update_or_create_student("ada")
            gradebook.update_or_create_submission(name, "ada", timestamp=due + late)
    return course


@pytest.fixture
def course(handed_in) -> Course:
    for name in ("course.toml", "deadlines.csv"):
        (handed_in.folder / name).unlink(missing_ok=True)
    return handed_in


def settings(course, **values):
    lines = [f"{key} = {value}\n" for key, value in values.items()]
    (course.folder / "course.toml").write_text("".join(lines))


@pytest.mark.parametrize(
    ("bank", "expected"),
    [(0, (0, 0)), (1, (1, 0)), (3, (2, 1)), (4, (2, 2)), (9, (2, 3))],
)
def test_late_days_are_used_in_the_order_of_the_due_dates_and_a_day_that_has_begun_counts(course, bank, expected):
    settings(course, late_days=bank)
    found = Extensions(course)
    first = found.of("ada", "02-self-attention", FIRST, FIRST + 30 * HOUR, late=False)
    second = found.of("ada", "03-queries-keys-values", SECOND, SECOND + 50 * HOUR, late=False)
    assert (first.late_days, second.late_days) == expected
    assert Extensions(course).govern == bool(bank)


def test_what_is_granted_comes_before_late_days_and_the_last_row_counts(course):
    settings(course, late_days=2)
    add(course, [
        Grant("ada", "*", "", "1", "Disability office", "certificate"),
        Grant("ada", "02-self-attention", "2030-01-15 12:00 UTC", "", "Prof. Noether", "flu"),
        Grant("ada", "02-self-attention", "", "0.5", "Prof. Noether", "half a day, after all"),
    ])  # fmt: skip
    found = Extensions(course)
    first = found.of("ada", "02-self-attention", FIRST, FIRST + 30 * HOUR, late=False)
    second = found.of("ada", "03-queries-keys-values", SECOND, SECOND + 50 * HOUR, late=False)
    assert (first.granted, first.late_days, first.by) == (12 * HOUR, 1, "Prof. Noether")
    assert (second.granted, second.late_days, second.by) == (DAY, 1, "Disability office"), "one of two was used before"
    unknown = found.of("ada", "02-self-attention", FIRST, None, late=True)
    assert unknown.late_days == 1, "late by an unknown time is one day"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("bob", "*", "", "1", "x", "y"), "there is no student 'bob' in the gradebook"),
        (("ada", "99", "", "1", "x", "y"), "no assignment '99'"),
        (("ada", "*", "", "1", "", "y"), "who granted it and why"),
        (("ada", "*", "", "", "x", "y"), "either a due date or a number"),
        (("ada", "*", "2030-01-15", "1", "x", "y"), "either a due date or a number"),
        (("ada", "*", "15.1.2030", "", "x", "y"), "expected one like 2030-01-31"),
        (("ada", "*", "", "two", "x", "y"), "could not convert"),
        (("ada", "*", "", "nan", "x", "y"), "cannot convert"),
        (("ada", "*", "", "1e5", "x", "y"), "by a century"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused_with_its_line(course, row, says):
    with file_of(course).open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, ("ada", "*", "", "1", "x", "y", ""), (*row, "")])
    with pytest.raises(GradingError, match=f"line 3: .*({says})"):
        read_table(course, {"ada"})


def test_the_command_adds_a_row_and_keeps_what_the_gradebook_had(course, capsys):
    with open_gradebook(course) as gradebook:
        gradebook.find_submission("03-queries-keys-values", "ada").extension = timedelta(hours=6)
        gradebook.db.commit()
    command = ["deadlines", "--course", str(course.folder), "--grant", "ada", "--days", "2", "--by", "X"]
    assert main(command) == 1
    assert "who granted it and why" in capsys.readouterr().err
    assert main([*command, "--why", "certificate"]) == 0
    table = [(row.assignment, row.days, row.by) for row in read_table(course, {"ada"})]
    assert table == [("03-queries-keys-values", "0.25", "unknown"), ("*", "2", "X")]


def test_a_formula_in_a_reason_is_no_formula_in_a_spreadsheet_and_is_read_as_it_was(course):
    add(course, [Grant("ada", "*", "", "1", "x", "=1+1")])
    assert "'=1+1" in file_of(course).read_text()
    assert [row.why for row in read_table(course, {"ada"})] == ["=1+1"]


@pytest.mark.slow
def test_marks_follow_the_table_as_the_dry_run_said_and_the_log_says_who_did_it(tiny, boxes):
    settings(tiny, late_penalty_per_day=0.25)
    with quiet(), open_gradebook(tiny) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate=FIRST)
    for student, answer in (("ada", None), ("bela", OVERFLOWS)):
        tiny.submit(student, **({"answer_one": answer} if answer else {}))
        (tiny.submitted(student, "tiny") / "timestamp.txt").write_text("2030-01-12 11:00:00 UTC")  # 47 hours late
    run(tiny, "tiny", pool=boxes)
    assert scores(tiny) == {"ada": 3.0, "bela": 2.75}

    grant = Grant("ada", "tiny", "", "1", "Prof. Noether", "flu")
    before = file_state(tiny)
    said = update(tiny, grant, dry_run=True)
    assert (
        "tiny: ada: extension 0 days → 1 day (1 day granted by Prof. Noether: flu); penalty 3 → 1.5; score 3 → 4.5"
        in said
    )
    assert "bela" not in said
    assert file_state(tiny) == before
    update(tiny, grant, dry_run=False)
    assert scores(tiny) == {"ada": 4.5, "bela": 2.75}
    assert not list(tiny.feedback("ada", "tiny").glob("*.html")), "the old page shows the old penalty"
    assert "No student's mark changes." in update(tiny, dry_run=True)

    settings(tiny, late_penalty_per_day=0.25, late_days=5)
    update(tiny, dry_run=False)
    assert scores(tiny) == {"ada": 6.0, "bela": 5.5}
    run(tiny, "tiny", pool=boxes)
    assert scores(tiny) == {"ada": 6.0, "bela": 5.5}, "a run agrees with the command"
    noted = [entry.said for entry in RunState(tiny, "tiny").audit.entries()[0] if "extension" in entry.said]
    assert [(one["extension"], one["by"]) for one in noted] == [
        ("ada", "Prof. Noether"), ("ada", "Prof. Noether"), ("bela", "late days")
    ]  # fmt: skip
    with AssignmentGradebook(tiny, "tiny", log_file(tiny, "tiny")) as gradebook:
        assert verify(tiny, "tiny", gradebook).wrong == ()


def scores(course):
    return {row.outcome.student: row.score for row in rows(course, "tiny")}


def file_state(course):
    return scores(course), extensions(course.config().CourseDirectory.db_url), file_of(course).exists()
