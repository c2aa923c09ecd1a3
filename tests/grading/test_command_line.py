"""What is asked for in vain is answered by what came, what was expected, and what to do."""

import pytest
from sqlalchemy.exc import OperationalError

from grading.__main__ import COMMANDS, main
from grading.course import GradingError
from grading.report import rows
from grading.run import How, run

pytestmark = pytest.mark.slow


def test_an_unknown_assignment_is_answered_by_those_there_are(capsys, tmp_path):
    assert main(["run", "no-such", "--course", str(tmp_path)]) == 1
    assert "no assignment 'no-such'" in (said := capsys.readouterr().err)
    assert "02-self-attention" in said


@pytest.mark.parametrize("command", ["work", "run", "report", "doctor", "export", "verify"])
def test_a_slash_with_which_a_shell_completes_a_name_is_no_part_of_it(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(COMMANDS, command, lambda course, asked: print(asked.assignment) or 0)
    for typed, taken in (("02-self-attention/", "02-self-attention"), ("a", "a"), ("/", "/")):
        main([command, typed, "--course", str(tmp_path)])
        assert capsys.readouterr().out == f"{taken}\n"


def test_without_submissions_it_says_where_they_go(capsys, tmp_path):
    assert main(["run", "02-self-attention", "--course", str(tmp_path)]) == 1
    assert "STUDENT/02-self-attention/self-attention.ipynb" in capsys.readouterr().err


def test_before_a_run_there_is_nothing_to_report(capsys, tmp_path):
    assert main(["report", "02-self-attention", "--course", str(tmp_path)]) == 1
    assert "python -m grading run 02-self-attention" in capsys.readouterr().err


def test_an_assignment_without_a_sample_class_says_which_has_one(tiny):
    from grading.sample import write_class

    with pytest.raises(GradingError, match=r"no sample class.*02-self-attention"):
        write_class(tiny, "tiny")


def test_an_unknown_student_is_answered_by_those_there_are(tiny):
    tiny.submit("ada")
    with pytest.raises(GradingError, match=r"no submission folder for adda.*The folders are: ada"):
        run(tiny, "tiny", ["adda"])


def test_whom_nbgrader_leaves_out_is_left_out_here(tiny, boxes):
    tiny.submit("eve")
    tiny.submit("mallory")
    config = tiny.root / "nbgrader_config.py"
    text = config.read_text()
    config.write_text(f'{text}\nc.CourseDirectory.student_id_exclude = "mallory,trudy"\n')
    run(tiny, "tiny", ["eve", "*"], pool=boxes)
    config.write_text(text)
    assert {row.outcome.student for row in rows(tiny, "tiny")} & {"eve", "mallory"} == {"eve"}


@pytest.fixture
def fresh(tiny, tmp_path, monkeypatch):
    """A class of its own, for the command line."""
    monkeypatch.setattr("grading.__main__.ROOT", tiny.root)
    return type(tiny)(tiny.root, tmp_path / "class")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("31.01.2030 18:00", "is not a date and time such as"),
        ("LATE", "says LATE, but not when"),
        ("2030-01-31 18:00 UTC", ""),
    ],
)
def test_doctor_says_what_is_wrong_with_the_time_of_submission(fresh, text, says, capsys):
    fresh.submit("ada")
    (fresh.submitted("ada", "tiny") / "timestamp.txt").write_text(text)
    assert main(["doctor", "tiny", "--course", str(fresh.folder)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "ada: tiny: as it should be", "that is about the notebook"
    assert [("timestamp.txt" in line, says in line) for line in said[1:]] == ([(True, True)] if says else [])


def test_of_two_copies_the_one_that_was_graded_is_named_in_the_terminal_and_in_the_report(fresh, boxes, capsys):
    fresh.submit("ada", answer_one=None)
    fresh.submit_text("ada", (fresh.submitted("ada", "tiny") / "tiny.ipynb").read_text(), "tiny (1).ipynb")
    run(fresh, "tiny", how=How(pages=False), pool=boxes)
    capsys.readouterr()
    assert main(["report", "tiny", "--course", str(fresh.folder)]) == 0
    chosen = "There are several files, and tiny.ipynb was chosen: it has the expected name. Not graded: tiny (1).ipynb."
    assert chosen in capsys.readouterr().out
    table = (fresh.reports("tiny") / "grades.html").read_text().partition("<caption>Everybody</caption>")[2]
    assert chosen in table


def test_changed_questions_do_not_mix_with_old_grades(tiny, boxes):
    tiny.submit("ada")
    run(tiny, "tiny", pool=boxes)
    notebook = tiny.root / "solutions" / "tiny" / "tiny.ipynb"
    notebook.write_text(notebook.read_text().replace("check-three", "check-four"))
    with pytest.raises(GradingError, match="grade them again in a new folder"):
        run(tiny, "tiny")
    assert rows(tiny, "tiny")[0].score == 6


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device", "/c/x"), ["/c/x: No space left on device. ", "Free some space"]),
        (
            FileNotFoundError(2, "No such file or directory", "/c/x"),
            ["/c/x: No such file", "path is right"],
        ),
        (
            PermissionError(13, "Permission denied", "/c/x", None, "/c/y"),
            ["/c/x -> /c/y: Permission", "change its"],
        ),
        (NotADirectoryError(20, "Not a directory", "/c/x"), ["/c/x: Not a directory", "must be a folder"]),
        (OSError(5, "Input/output error"), ["error: Input/output error. Fix this."]),
        (
            OperationalError("BEGIN", {}, Exception("database is locked")),
            ["database is locked", "close the one that does"],
        ),
    ],
)
@pytest.mark.parametrize("command", ["report", "release"])
def test_what_fails_around_the_program_is_explained(monkeypatch, capsys, tmp_path, command, error, says):
    def failing(*_):
        raise error

    monkeypatch.setitem(COMMANDS, command, failing)
    assert main([command, "tiny", "--course", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert all(words in said for words in says), said
    assert "[Errno" not in said
    assert "run the same command again" in said


def test_a_fault_of_the_program_is_shown_in_full(monkeypatch, tmp_path):
    monkeypatch.setitem(COMMANDS, "report", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["report", "tiny", "--course", str(tmp_path)])


def test_a_file_in_place_of_the_class_is_named(fresh, capsys):
    fresh.folder.write_text("")
    assert main(["doctor", "tiny", "--course", str(fresh.folder)]) == 1
    said = capsys.readouterr().err
    assert str(fresh.folder) in said
    assert "move" in said


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_jobs_is_a_whole_number_from_one_on(jobs, capsys):
    with pytest.raises(SystemExit):
        main(["run", "02-self-attention", "--jobs", jobs])
    assert "--jobs" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    assert "usage: python -m grading" in capsys.readouterr().out
