"""A class is set up as a whole or not at all, from options or answers, and what is missing is said with what to do."""

from datetime import datetime

import pytest
from nbgrader.api import Gradebook
from tiny import REPOSITORY

from grading.__main__ import main
from grading._nbgrader import AssignLatePenalties
from grading.class_settings import ClassSettings, book_address, file_of, read_class, read_roster, write_class
from grading.course import Course, GradingError
from grading.doctor_course import examine
from grading.late_penalty import SharePerDay
from grading.new_course import Answers, new_course

ROSTER = "id,first_name,last_name\nada,Ada,Lovelace\n"
NAMES = {"name": 'Attention "A"\\', "term": "Herbst 2030 \N{HEAVY CHECK MARK}", "book": "https://example.org/b"}


@pytest.fixture
def course(tmp_path, monkeypatch) -> Course:
    monkeypatch.delenv("ATTENTION_BOOK", raising=False)
    return Course(REPOSITORY, tmp_path / "class")


@pytest.fixture
def roster(tmp_path):
    (file := tmp_path / "roster.csv").write_text(ROSTER)
    return file


def due_dates(course):
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        return {assignment.name: assignment.duedate for assignment in gradebook.assignments}


def test_what_is_written_is_read_again_and_is_commented(course):
    settings = ClassSettings(**NAMES, late_penalty_per_day=0.25)
    write_class(course, settings)
    assert read_class(course) == settings
    lines = file_of(course).read_text(encoding="utf-8").splitlines()
    for key in vars(settings):
        (place,) = (i for i, line in enumerate(lines) if line.startswith(f"{key} = "))
        assert key == "term" or lines[place - 1].startswith("# ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = 3", "name is 3; expected a text"),
        ('term = "a\\u0007"', "term is .*on one line"),
        ('book = "example.org"', "expected an address like https"),
        ("late_penalty_per_day = 10", "is 10; expected a share from 0 to 1"),
        ("late_penalty_per_day = true", "is True; expected a share"),
        ("late_penalty = 0.1", "has late_penalty; expected only name, term, book, late_penalty_per_day"),
        ("name = ", "cannot be read"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_and_the_doctor_says_so(course, text, says):
    course.files.write(file_of(course), text.encode())
    with pytest.raises(GradingError, match=says):
        read_class(course)
    (finding,) = examine(course)
    assert str(finding).startswith(f"missing: settings: {file_of(course)}")


def test_the_environment_names_the_book_before_the_settings(course, monkeypatch):
    write_class(course, ClassSettings(**NAMES))
    assert book_address(course) == NAMES["book"]
    monkeypatch.setenv("ATTENTION_BOOK", "https://example.org/other")
    assert book_address(course) == "https://example.org/other"


@pytest.mark.parametrize(("seconds", "off"), [(1, 2.0), (86_400, 2.0), (86_401, 4.0), (5 * 86_400, 8.0), (1e9, 8.0)])
def test_each_day_that_has_begun_costs_a_share_and_never_more_than_there_is(course, seconds, off):
    write_class(course, ClassSettings(late_penalty_per_day=0.25))
    penalties = AssignLatePenalties(config=course.config())
    penalties.init_plugin()
    assert isinstance(penalties.plugin_inst, SharePerDay)
    assert penalties.plugin_inst.late_submission_penalty("ada", 8.0, seconds) == off


def test_without_a_penalty_late_work_costs_nothing(course):
    penalties = AssignLatePenalties(config=course.config())
    penalties.init_plugin()
    assert not penalties.plugin_inst.late_submission_penalty("ada", 8.0, 1e9)


@pytest.mark.slow
class TestNewCourse:
    def test_options_set_up_everything_and_the_doctor_is_content(self, course, roster, capsys):
        dates = [f"--due={name}=2030-01-31 23:59 UTC" for name in course.assignments()]
        options = ["--name=A", "--term=B", "--book=https://example.org", "--penalty=0.1", f"--roster={roster}"]
        where = ["--course", str(course.folder)]
        assert main(["doctor-course", *where]) == 1
        assert main(["new-course", str(course.folder), *options, *dates]) == 0
        assert main(["bundle", *where]) == 0
        capsys.readouterr()
        assert main(["doctor-course", *where]) == 0
        said = capsys.readouterr().out
        assert "missing" not in said
        assert "class list (1 student)" in said
        assert due_dates(course) == dict.fromkeys(course.assignments(), datetime(2030, 1, 31, 23, 59))
        assert read_class(course) == ClassSettings("A", "B", "https://example.org", 0.1)
        assert read_roster(course).columns["id"] == "id"

    def test_what_the_options_do_not_say_is_asked(self, course, roster):
        asked = []

        def ask(question):
            asked.append(question)
            answers = {
                "02-self-attention": "2030-01-31 23:59+02:00",
                "What is": " A ",
                "What share": "0.5",
                "In": str(roster),
            }
            return next((answer for words, answer in answers.items() if words in question), "")

        new_course(course, Answers({"term": "B"}, ask), [], None)
        assert len(asked) == 3 + len(course.assignments()) + 1
        assert read_class(course) == ClassSettings("A", "B", "", 0.5)
        assert due_dates(course) == {"02-self-attention": datetime(2030, 1, 31, 21, 59)}

    def test_the_doctor_says_what_is_missing_and_what_to_do(self, course):
        found = {str(finding).split(": ")[1]: finding.missing for finding in examine(course)}
        assert "new-course" in found["settings"]
        assert "grading roster FILE.csv" in found["class list (0 students)"]
        assert "grading bundle" in found["bundle for students"]
        assert any("--duedate" in hint for hint in found.values())


@pytest.mark.parametrize(
    ("given", "due", "says"),
    [
        ({"penalty": "10%"}, [], "the penalty is '10%'; expected a share"),
        ({"penalty": "2"}, [], "late_penalty_per_day is 2.0; expected a share from 0 to 1"),
        ({"penalty": "nan"}, [], "expected a share from 0 to 1"),
        ({"book": "example.org"}, [], "expected an address"),
        (
            {},
            ["02-self-attention=31.01.2030"],
            "the date is '31.01.2030'; expected one like 2030-01-31 23:59 UTC",
        ),
        ({}, ["no-such=2030-01-31"], "no assignment 'no-such'"),
        ({}, ["2030-01-31"], "no assignment ''"),
    ],
)
def test_a_wrong_answer_is_answered_and_nothing_is_written(course, given, due, says):
    with pytest.raises(GradingError, match=says):
        new_course(course, Answers(given), due, None)
    assert not course.folder.exists() or not list(course.folder.iterdir())


def test_a_bad_class_list_stops_all_of_it(course, roster):
    roster.write_text(f"{ROSTER}..,x,y\n")
    with pytest.raises(GradingError, match="line 3: the id"):
        new_course(course, Answers({}), [], roster)
    assert not file_of(course).exists()


def test_input_that_ends_at_a_question_writes_nothing(course):
    def ask(question):
        raise EOFError

    with pytest.raises(GradingError, match="the input ended before all questions were answered"):
        new_course(course, Answers({"term": "B"}, ask), [], None)
    assert not file_of(course).exists()


def test_a_class_is_never_set_up_twice(course):
    write_class(course, ClassSettings("mine"))
    with pytest.raises(GradingError, match="already exists"):
        new_course(course, Answers({}), [], None)
    assert read_class(course).name == "mine"
