"""A class and a gradebook that does not know it: nothing is rewritten, and all marks can be copied into a new one."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from gradebooks import (
    ASSIGNMENT,
    STORIES,
    Gradebooks,
    contents,
    mark_everything,
    marked_meanwhile,
    rich_course,
    tell,
)
from tiny import OVERFLOWS

from grading import __main__ as command
from grading._nbgrader import Gradebook
from grading.course import GradingError, environment
from grading.gradebook.lookup import connect
from grading.gradebook.migrate import migrate
from grading.report import rows
from grading.run import How, refresh, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graded(tiny, boxes):
    tiny.submit("ada")
    tiny.submit("ben", answer_one=OVERFLOWS)
    run(tiny, "tiny", pool=boxes)
    with Gradebook(tiny.config().CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade("check-two", "tiny", "tiny", "ada")
        grade.manual_score, grade.needs_manual_grade = 0.25, False
        gradebook.find_comment("answer-two", "tiny", "tiny", "ada").manual_comment = "Well argued."
        gradebook.db.commit()
    return tiny


@pytest.fixture
def course(graded, tmp_path):
    """A copy of the graded class, to be spoilt."""
    shutil.copytree(graded.folder, tmp_path / "class")
    return type(graded).at(graded.root, tmp_path / "class")


def scores(course):
    return {row.outcome.student: row.score for row in rows(course, "tiny")}


def files(course):
    """Return what the class's files hold, but for the log, and the lock of a run."""
    there = (path for path in course.folder.rglob("*") if path.is_file() and path.suffix not in (".log", ".lock"))
    return {path: path.read_bytes() for path in there}


def call(course, *arguments):
    before, command.ROOT = command.ROOT, course.root
    try:
        return command.main([*arguments, "--course", str(course.folder)])
    finally:
        command.ROOT = before


@pytest.mark.parametrize("what", ["run", "report", "export"])
def test_with_another_gradebook_a_graded_class_is_refused_and_nothing_rewritten(course, tmp_path, what, capsys):
    assert call(course, "report", "tiny") == 0
    before = files(course)
    with environment("ATTENTION_DB", f"sqlite:///{tmp_path}/new.db"):
        assert call(course, what, "tiny") == 1
    said = capsys.readouterr().err
    assert "who was graded for tiny (2 students)" in said
    assert f"python -m grading migrate --from sqlite:///{course.folder}/gradebook.db" in said
    assert files(course) == before
    assert not (tmp_path / "new.db").exists()


def test_what_is_migrated_is_every_mark_and_comment(course, tmp_path, capsys):
    old, new = f"sqlite:///{course.folder}/gradebook.db", f"sqlite:///{tmp_path}/new.db"
    with environment("ATTENTION_DB", new):
        assert call(course, "migrate", "--from", old) == 0
        assert scores(course) == {"ada": 4.25, "ben": 5.5}
        assert call(course, "report", "tiny") == 0
        assert "Well argued." in (course.feedback("ada", "tiny") / "tiny.html").read_text()
        assert call(course, "migrate", "--from", old) == 1
    assert contents(new) == contents(old)
    said = capsys.readouterr()
    assert "1 marks given by hand" in said.out
    assert "1 comments" in said.out
    assert "is not empty" in said.err


def test_a_migrated_gradebook_of_every_kind_of_cell_is_the_same(tmp_path):
    (tmp_path / "repository").mkdir()
    course = rich_course(tmp_path / "repository", tmp_path / "class")
    ours = Gradebooks(course, ASSIGNMENT, f"sqlite:///{tmp_path}/old.db")
    ours.register()
    for student in ("half-right", "marked-then-better", "without-a-notebook"):
        tell(student, STORIES[student], ours)
    with environment("ATTENTION_DB", f"sqlite:///{tmp_path}/new.db"):
        counts = migrate(course, ours.url)
    assert contents(f"sqlite:///{tmp_path}/new.db") == contents(ours.url)
    assert (counts["student"], counts["marks given by hand"], counts["comments"]) == (3, 2, 1)


def test_a_row_that_is_lost_on_the_way_undoes_everything(course, tmp_path, monkeypatch):
    from grading.gradebook import migrate as module

    whole = module._copy

    def lossy(source, target):
        whole(source, target)
        target.exec_driver_sql("DELETE FROM comment WHERE manual_comment IS NOT NULL")

    monkeypatch.setattr(module, "_copy", lossy)
    new = f"sqlite:///{tmp_path}/new.db"
    with environment("ATTENTION_DB", new), pytest.raises(GradingError, match="nothing was copied"):
        migrate(course, f"sqlite:///{course.folder}/gradebook.db")
    assert not contents(new)["student"]


def test_what_is_marked_while_a_gradebook_is_copied_is_not_copied_by_halves(course, tmp_path, monkeypatch):
    old, new = course.folder / "gradebook.db", f"sqlite:///{tmp_path}/new.db"
    with closing(sqlite3.connect(old)) as db:
        db.execute("PRAGMA journal_mode = WAL")  # in which a reader keeps nobody from writing
    copied = marked_meanwhile(monkeypatch, lambda: mark_everything(f"sqlite:///{old}"))
    with environment("ATTENTION_DB", new):
        assert migrate(course, f"sqlite:///{old}")["marks given by hand"] == 1
        assert copied == [True]
        assert scores(course) == {"ada": 4.25, "ben": 5.5}


@pytest.mark.parametrize("name", ["missing.db", "empty.db"])
def test_no_gradebook_is_made_by_asking_for_one(course, tmp_path, name):
    (tmp_path / "empty.db").touch()
    with environment("ATTENTION_DB", f"sqlite:///{tmp_path}/new.db"), pytest.raises(GradingError, match="no gradebook"):
        migrate(course, f"sqlite:///{tmp_path}/{name}")
    assert connect(f"sqlite:///{tmp_path}/{name}") is None
    assert not (tmp_path / "new.db").exists()
    assert not (tmp_path / "missing.db").exists()


def test_a_deleted_gradebook_is_refused_until_somebody_asks_to_grade_again(course, boxes):
    (course.folder / "gradebook.db").unlink()
    for attempt in (lambda: rows(course, "tiny"), lambda: refresh(course, "tiny"), lambda: run(course, "tiny")):
        with pytest.raises(GradingError, match=r"knows none of them.*run tiny --regrade"):
            attempt()
    run(course, "tiny", how=How(regrade=True), pool=boxes)
    assert scores(course) == {"ada": 6, "ben": 5.5}


def test_a_deleted_release_is_made_again(course, boxes):
    shutil.rmtree(course.folder / "release" / "tiny")
    course.submit("cleo")
    run(course, "tiny", pool=boxes)
    assert scores(course)["cleo"] == 6


def test_a_gradebook_that_is_deleted_before_anybody_was_graded_is_made_again(course, boxes):
    (course.folder / "gradebook.db").unlink()
    shutil.rmtree(course.outcomes("tiny"))
    run(course, "tiny", pool=boxes)
    assert scores(course) == {"ada": 6, "ben": 5.5}


@pytest.mark.parametrize("name", ["notes.txt", "cleo.json"])
def test_a_stray_file_among_the_outcomes_is_told_and_left_out(course, name, capsys):
    stray = course.outcomes("tiny") / name
    stray.write_text("{")
    assert scores(course) == {"ada": 4.25, "ben": 5.5}
    assert capsys.readouterr().err == (
        f"warning: {stray} is not the outcome of a submission, so it was left out. Run the assignment again. If "
        "that does not replace the file, remove it\n"
    )
    assert stray.read_text() == "{"


@pytest.mark.parametrize("command", ["report", "export"])
def test_a_submission_without_an_outcome_is_told_by_name(course, command, capsys):
    (course.outcomes("tiny") / "ben.json").unlink()
    course.submit("cleo")
    assert call(course, command, "tiny") == 0
    told = "left out, because their submissions have not been graded: ben, cleo. Run `python -m grading run tiny`"
    assert told in capsys.readouterr().err


def test_a_log_that_is_deleted_is_told(course, capsys):
    (course.reports("tiny") / "audit.log").unlink()
    assert call(course, "verify", "tiny") == 1
    assert "the log is gone, though there are outcomes" in capsys.readouterr().err


def test_a_student_who_is_removed_has_no_row_and_is_graded_again_by_the_next_run(course, boxes, capsys):
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        gradebook.remove_student("ben")
    assert call(course, "report", "tiny") == 0
    assert "left out, because they are no longer in the gradebook: ben" in capsys.readouterr().err
    assert "ben" not in (course.reports("tiny") / "grades.csv").read_text()
    refresh(course, "tiny")
    assert "MissingEntry" not in (course.outcomes("tiny") / "ben.json").read_text()
    run(course, "tiny", pool=boxes)
    assert scores(course) == {"ada": 4.25, "ben": 5.5}


def test_the_report_and_the_feedback_name_the_course(course):
    (course.folder / "course.toml").write_text('name = "Attention"\nterm = "Autumn <2030>"\n')
    assert call(course, "report", "tiny") == 0
    for page in (course.reports("tiny") / "grades.html", course.feedback("ada", "tiny") / "tiny.html"):
        assert '<p class="quiet">Attention, Autumn &lt;2030&gt;</p>' in page.read_text()
