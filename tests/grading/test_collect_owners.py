"""In a folder where every account can write, nobody hands in for somebody else or stops the others."""

import pytest
from test_collect import ADA, HOMEWORK, gather
from tiny import REPOSITORY

from grading.collect import archive_members
from grading.collect.attempts import Attempts
from grading.course import Course
from grading.gradebook.students import StudentEntry, written


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


def test_the_exchange_is_recognised_however_many_files_in_it_are_named_as_in_a_download(course, inbound):
    inbound(at("ada", "2026-01-31 23:59:00"), "ada")
    for n in range(100):
        folder = inbound(f"x/HW_ada_attempt_2026-01-31-23-59-00_{n}.ipynb", "mallory")
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
    for n in range(3):
        inbound(f"lovelaceada_1815_471{n}_work.ipynb", "")
    inbound(f"x_1881_4712_{at('m', '2026-01-31 23:59:00')}", "")
    folder = inbound(f"HW_m_attempt_2026-01-31-23-59-00_{at('', '2026-01-31 23:59:00')}", "")
    assert "recognised as a download from Canvas" in gather(course, folder)
