"""In a folder where every account can write, nobody hands in for somebody else or stops the others."""

from datetime import UTC, datetime

import pytest
from test_collect import ADA, HOMEWORK, download, gather
from tiny import REPOSITORY

from grading.collect import archive_members
from grading.collect.attempts import Attempts
from grading.collect.best import choose_best
from grading.course import Course
from grading.exam.command import set_window
from grading.first_answers import add_first_answers, first_answers
from grading.gradebook.students import StudentEntry, written
from grading.run import How
from grading.run_state import RunState


@pytest.fixture
def course(tmp_path) -> Course:
    course = Course(REPOSITORY, tmp_path / "class")
    with written(course.config().CourseDirectory.db_url, [ADA, StudentEntry("mallory")], [], []):
        return course


@pytest.fixture
def inbound(tmp_path, monkeypatch):
    """Return a function that puts a notebook into the exchange, as a file of an account, and returns the folder."""
    folder, owners = tmp_path / "inbound", {}

    def put(path, owner):
        (file := folder / path).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{path} of {owner}")
        owners[file.stat().st_ino] = owner
        return folder

    monkeypatch.setattr(archive_members, "owner_of", lambda about: owners[about.st_ino])
    return put


def at(student, time):
    return f"{student}+{HOMEWORK}+{time} UTC+random/work.ipynb"


def counts(course, student="ada"):
    """Return the notebook that is among the submissions."""
    return (course.submitted(student, HOMEWORK) / "work.ipynb").read_text()


@pytest.mark.parametrize("higher", ["", "inbound/"])
def test_the_exchange_is_recognised_however_many_files_in_it_are_named_as_in_a_download(course, inbound, higher):
    inbound(higher + at("ada", "2026-01-31 23:59:00"), "ada")
    for n in range(100):
        folder = inbound(f"{higher}x/HW_ada_attempt_2026-01-31-23-59-00_{n}.ipynb", "mallory")
    assert "recognised as nbgrader's exchange" in gather(course, folder)
    assert counts(course).endswith("of ada")
    assert len(Attempts(course, HOMEWORK).of("ada")) == 1


def test_a_file_of_another_student_is_refused_whatever_system_names_it(course, inbound):
    inbound("HW_ada_attempt_2026-01-30-23-59-00_work.ipynb", "ada")
    folder = inbound("HW_ada_attempt_2026-01-31-23-59-00_work.ipynb", "mallory")
    said = gather(course, folder)
    assert "31-23-59-00_work.ipynb: it was handed in under the name of ada, but is owned by mallory" in said
    assert counts(course).endswith("of ada")


def test_a_student_cannot_turn_a_download_into_the_exchange(course, inbound):
    """A name may contain a slash, but Canvas and Blackboard write something in front of it."""
    for n in range(9):
        inbound(f"lovelaceada_1815_471{n}_work.ipynb", "")
    inbound(f"x_1881_4720_/{at('m', '2026-01-31 23:59:00')}", "")
    inbound(f"x_1881_4712_{at('m', '2026-01-31 23:59:00')}", "")
    folder = inbound(f"HW_m_attempt_2026-01-31-23-59-00_{at('', '2026-01-31 23:59:00')}", "")
    assert "recognised as a download from Canvas" in gather(course, folder)


def test_what_another_account_handed_in_counts_until_the_student_does_and_fixes_no_answers(course, inbound):
    forged = f"ada+{HOMEWORK}+9999-12-31 23:59:59 UTC+x/work.ipynb"
    folder = inbound(forged, "stranger")
    said = gather(course, folder)
    assert "stranger owns the files of ada. They count only until" in said
    assert "9999-12-31 23:59:59 UTC, is in the future. The time that counts is" in said
    assert counts(course).endswith("of stranger")
    (kept,) = Attempts(course, HOMEWORK).of("ada")
    assert datetime.fromisoformat(kept.when) <= datetime.now(UTC).replace(tzinfo=None)
    add_first_answers(course, HOMEWORK, "ada", {"choice": "A"})

    inbound(at("ada", "2026-01-31 23:59:00"), "ada")
    said = gather(course, folder)
    assert "replacing another account's files: the answers in them are no longer final (1)" in said
    assert counts(course).endswith("of ada")
    assert first_answers(course, HOMEWORK, "ada") == {}
    (entry,) = RunState(course, HOMEWORK).audit.entries()[0]
    assert entry.said.items() >= {"of": "ada", "forgotten": {"choice": "A"}, "owner": "stranger"}.items()

    add_first_answers(course, HOMEWORK, "ada", {"choice": "B"})
    for file in folder.rglob("*.ipynb"):
        file.unlink()
    said = gather(course, inbound(at("ada", "2026-02-01 23:59:00"), "stranger"))
    assert "Kept, but an attempt that the student owns counts (1):\n  Ada Lovelace (ada), owned by stranger" in said
    assert counts(course).endswith("of ada")
    assert first_answers(course, HOMEWORK, "ada") == {"choice": "B"}
    assert choose_best(course, HOMEWORK, How()) == "No student has more than one attempt."


def test_answers_stay_final_when_an_attempt_put_in_place_by_hand_is_replaced(course, inbound):
    (there := course.submitted("ada", HOMEWORK)).mkdir(parents=True)
    (there / "work.ipynb").write_text("mailed")
    (there / "timestamp.txt").write_text("2026-01-01 12:00:00 UTC")
    add_first_answers(course, HOMEWORK, "ada", {"choice": "A"})
    gather(course, inbound(at("ada", "2026-01-31 23:59:00"), "ada"))
    assert counts(course).endswith("of ada")
    assert first_answers(course, HOMEWORK, "ada") == {"choice": "A"}


def test_in_an_exam_too_what_the_student_handed_in_counts_before_what_another_account_did(course, inbound):
    set_window(course, HOMEWORK, "2026-01-31 09:00 UTC", "2026-01-31 11:00 UTC")
    gather(course, inbound(at("ada", "2026-01-31 10:00:00"), "stranger"))
    gather(course, inbound(at("ada", "2026-01-31 11:30:00"), "ada"))
    assert counts(course).endswith("of ada")


def test_a_number_without_an_account_is_not_the_grader(monkeypatch):
    monkeypatch.setattr(archive_members.pwd, "getpwuid", {}.__getitem__)
    assert archive_members.account_name(101_815) == "uid 101815"


def test_a_time_before_the_file_was_written_is_named_however_the_folder_spells_the_student(course, inbound):
    assert f"ADA+{HOMEWORK}+2026-01-31 23:59:00 UTC+random/work.ipynb: the time of submission is" in gather(
        course, inbound(at("ADA", "2026-01-31 23:59:00"), "ada")
    )


@pytest.mark.parametrize("names", [["ada/work.ipynb", "b/work.ipynb"], ["x_1815_1_work.ipynb", "x_1881_2_work.ipynb"]])
def test_an_attempt_in_a_download_that_two_people_unpacked_is_the_students_own(course, inbound, tmp_path, names):
    gather(course, download(tmp_path, {names[0]: b"of the first week"}))
    inbound(names[0], "ta")
    folder = inbound(names[1], "somebody")
    assert "owns the files" not in gather(course, folder)
    assert counts(course).endswith("of ta")


def test_the_students_own_attempt_replaces_the_same_one_of_another_account(course, inbound, tmp_path):
    mine, later = at("ada", "2026-01-30 23:59:00"), at("ada", "2026-01-31 23:59:00")
    inbound(mine.replace("work.ipynb", "submission_secret.txt"), "stranger")
    folder = inbound(mine, "stranger")
    gather(course, folder)
    add_first_answers(course, HOMEWORK, "ada", {"choice": "A"})
    content = (folder / mine).read_bytes()
    gather(course, download(tmp_path, {mine: content}))  # nobody owns what is in a zip
    (kept,) = Attempts(course, HOMEWORK).of("ada")
    assert not kept.other_owner
    assert not (course.submitted("ada", HOMEWORK) / "submission_secret.txt").exists()

    gather(course, folder)
    said = gather(course, download(tmp_path, {mine: content, later: b"later"}))
    assert counts(course) == "later"
    assert "no longer final" not in said
    assert first_answers(course, HOMEWORK, "ada") == {"choice": "A"}


def test_the_same_content_does_not_keep_the_time_at_which_another_account_says_it_came(course, inbound, tmp_path):
    early, late = at("ada", "2026-01-01 12:00:00"), at("ada", "2026-01-31 23:59:00")
    folder = inbound(early, "stranger")
    assert "the time of submission is 2026-01-01 12:00:00 UTC, but the file was written at" in gather(course, folder)
    add_first_answers(course, HOMEWORK, "ada", {"choice": "A"})
    own = download(tmp_path, {late: (folder / early).read_bytes()})
    assert "Another attempt counts now (1)" in gather(course, own)
    assert (course.submitted("ada", HOMEWORK) / "timestamp.txt").read_text() == "2026-01-31 23:59:00 UTC"
    assert first_answers(course, HOMEWORK, "ada") == {"choice": "A"}
    assert "The same as before: 1 student" in gather(course, own)


@pytest.mark.parametrize("page", [True, False])
def test_nobody_learns_the_right_answers_from_feedback_on_what_a_second_account_handed_in(course, inbound, page):
    """The page of an attempt is there or, as after a second one from which none could be made, it was removed."""
    gather(course, inbound(at("ada", "2026-01-30 23:59:00"), "uid 101815"))
    add_first_answers(course, HOMEWORK, "ada", {"choice": "A"})
    if page:
        course.files.write(course.feedback("ada", HOMEWORK) / "work.html", b"It was B.")
    else:
        about = {"student": "ada", "submission": "", "verdict": "graded", "outcome": "", "score": 0, "seed": 1}
        RunState(course, HOMEWORK).audit.graded(**about, sandboxed=True)
        RunState(course, HOMEWORK).audit.graded(**about, sandboxed=True)
    said = gather(course, inbound(at("ada", "2026-01-31 23:59:00"), "ada"))
    assert counts(course).endswith("of ada")
    assert "the answers in them stay final" in said
    assert "Ada Lovelace (ada): uid 101815 owned the earlier files" in said
    assert first_answers(course, HOMEWORK, "ada") == {"choice": "A"}
