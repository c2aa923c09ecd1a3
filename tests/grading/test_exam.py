"""An exam has a window, tells nobody what is right until it is over, and takes only letters of a student's own."""

import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import datetime, timedelta

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from tiny import OVERFLOWS, REPOSITORY, TinyCourse, nbgrader_cell

from attnlib.checks.catalogue import CATALOGUE, QUESTIONS
from attnlib.checks.options import Options
from grading.__main__ import main
from grading.answer_keys import answer_key
from grading.bundle import bundle
from grading.class_report.export import export
from grading.collect.attempts import iso
from grading.collect.best import choose_best
from grading.collect.collect import collect
from grading.course import Course, GradingError, log_file
from grading.deadlines.extensions import Extensions
from grading.deadlines.table import Grant, add
from grading.exam import declared, library, window
from grading.exam.command import set_window, shown
from grading.exam.window import exam_of
from grading.exam.withhold import Withhold
from grading.first_answers import first_answers
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.create import open_gradebook
from grading.handout import RELEASED_FOLDER, hand_out
from grading.lateness import Lateness
from grading.lti.passback import send_grades
from grading.outcome import Outcome
from grading.release import register
from grading.report import rows
from grading.return_feedback.pack import return_feedback
from grading.run import How, run
from grading.run_state import RunState
from grading.student_data.export import export_student
from grading.timestamp import time_zone
from grading.verify import verify

QUESTION = QUESTIONS["shift-or-stretch"]
RIGHT = answer_key(QUESTION.name).right
BEGIN, END = datetime(2030, 1, 31, 9), datetime(2030, 1, 31, 11)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TIMES = {"begin": "2030-01-31 09:00 UTC", "end": "2030-01-31 11:00 UTC"}


def notebook(answer, softmax=OVERFLOWS):
    cells = [
        nbgrader_cell("imports", "import numpy as np\nfrom attnlib.checks import check, check_choice, show_options",
                      locked=True),
        nbgrader_cell("answer-one", softmax, solution=True),
        nbgrader_cell("check-one", 'check("softmax", one, points=2)', grade=True, locked=True, points=2),
        nbgrader_cell("options", f'show_options("{QUESTION.name}")', locked=True),
        nbgrader_cell("answer", f'answer = "{answer}"', solution=True),
        nbgrader_cell("check", f'check_choice("{QUESTION.name}", answer, points=2)', grade=True, locked=True, points=2),
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture
def clock(monkeypatch):
    """Return a function that sets the time."""

    def set_time(time):
        for module in (declared, window):
            monkeypatch.setattr(module, "now", lambda: time)

    set_time(BEGIN - HOUR)
    return set_time


@pytest.fixture
def course(tiny, tmp_path, clock) -> TinyCourse:
    """A class with an exam and three students; nothing has been handed in."""
    nbformat.write(notebook(RIGHT), tiny.root / "solutions" / "tiny" / "tiny.ipynb")
    course = TinyCourse.at(tiny.root, tmp_path / "class")
    with open_gradebook(course) as gradebook:
        for student in ("ada", "bela", "cleo"):
            gradebook.add_student(student)
    set_window(course, "tiny", **TIMES)
    return course


def own(student):
    """Return the right letter in the order of a student."""
    return Options(QUESTION, student).label(RIGHT)


def test_an_exam_ends_later_for_whom_it_was_extended_and_only_by_what_was_granted_for_it(course, clock):
    course.folder.joinpath("course.toml").write_text(
        "late_days = 3\n" + course.folder.joinpath("course.toml").read_text()
    )
    add(course, [
        Grant("ada", "tiny", "2030-01-31 11:30 UTC", "", "Prof. Noether", "certificate"),
        Grant("bela", "*", "", "2", "Disability office", "homework"),
    ])  # fmt: skip
    exam = exam_of(course, "tiny")
    assert (exam.begin, exam.end, exam.ends) == (BEGIN, END, {"ada": END + 30 * MINUTE})
    assert exam.place("ada", END + 30 * MINUTE) == "in time"
    assert exam.place("bela", END + MINUTE) == "after the exam ended"
    assert Extensions(course).of("bela", "tiny", END, END + HOUR, late=False).total == timedelta(0)
    said = shown(course, "tiny")
    assert "ada: until 2030-01-31 11:30 UTC" in said
    assert "more time for all assignments to bela. This does not count" in said
    assert "Late days do not count" in said
    clock(END + 29 * MINUTE)
    assert not exam.is_over
    clock(END + 31 * MINUTE)
    assert exam.is_over


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('exams = "tiny"\n', "should be a table"),
        ('[exams]\ntinny = "2030-01-31 09:00 UTC"\n', "no assignment 'tinny'"),
        ("[exams]\ntiny = 2030-01-31\n", "expected a time such as"),
        ('[exams]\ntiny = "31.01.2030"\n', "expected one like 2030-01-31"),
        ('[exams]\ntiny = "2030-01-31 11:00 UTC"\n', "begins at 2030-01-31 11:00 UTC and ends at 2030-01-31 11:00 UTC"),
    ],
)
def test_a_wrong_declaration_is_named_and_not_taken_for_homework(course, table, says):
    (course.folder / "course.toml").write_text(table)
    with pytest.raises(GradingError, match=says):
        exam_of(course, "tiny")
    assert main(["doctor-course", "--course", str(course.folder)]) == 1


def test_a_window_is_moved_as_a_whole_or_not_at_all(course):
    with pytest.raises(GradingError, match="nothing was changed"):
        set_window(course, "tiny", "", "2030-01-31 08:00 UTC")
    set_window(course, "tiny", "", "2030-01-31 12:00 UTC")
    exam = exam_of(course, "tiny")
    assert (exam.begin, exam.end) == (BEGIN, END + HOUR)
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate=None)
    assert not exam_of(course, "tiny").is_over, "an exam without an end is never over"


def test_the_notebook_is_not_released_before_the_exam_begins_nor_with_checks_that_name_mistakes(
    course, clock, tmp_path
):
    with pytest.raises(GradingError, match="not released: the exam tiny begins at 2030-01-31 09:00"):
        hand_out(course, "tiny")
    assert hand_out(course) == ["tiny: not released: the exam begins at 2030-01-31 09:00 UTC"]
    assert not list((course.root / RELEASED_FOLDER).rglob("*.ipynb"))
    clock(BEGIN)
    assert hand_out(course, "tiny") == ["exercises/tiny/tiny.ipynb: released"]
    for name in ("requirements.txt", "pyproject.toml", "README.md", "LICENSE"):
        (course.root / name).write_bytes((REPOSITORY / name).read_bytes())
    (course.root / "attnlib").symlink_to(REPOSITORY / "attnlib")
    assert "Left out, because they are exams that are not over: tiny" in bundle(course, tmp_path / "term.zip")
    assert not [name for name in zipfile.ZipFile(tmp_path / "term.zip").namelist() if name.endswith(".ipynb")]


USE = """
import attnlib
from attnlib.checks import CheckFailed, check, check_choice, check_tests, set_student, show_options

for name, wrong in (("show_options", ()), ("check_choice", ("Q",))):
    try:
        globals()[name]("shift-or-stretch", *wrong)
    except CheckFailed as error:
        assert "State your id first" in str(error)
    else:
        raise SystemExit(name + " took somebody without an id")
check("softmax", lambda x: 0 / 0, points=4, hint=2)
check_tests("softmax", [print])
set_student(" ADA")
show_options("swiglu-width")
try:
    check_choice("swiglu-width", "A")
except CheckFailed as error:
    assert 'expected one of "P"' in str(error)
else:
    raise SystemExit("A was taken")
check_choice("swiglu-width", "q")
"""


@pytest.fixture(scope="module")
def exam_files(tmp_path_factory):
    """The files for an exam of two questions, and those in the wheel, which is unpacked in ``installed``."""
    root, place = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("files")
    for name in ("requirements.txt", "pyproject.toml", "README.md", "LICENSE", "nbgrader_config.py"):
        (root / name).write_bytes((REPOSITORY / name).read_bytes())
    (root / "attnlib").symlink_to(REPOSITORY / "attnlib")
    (root / "solutions" / "midterm").mkdir(parents=True)
    asked = notebook(RIGHT)
    asked.cells[3].source += "\nshow_options('swiglu-width')"
    nbformat.write(asked, root / "solutions" / "midterm" / "midterm.ipynb")
    course = Course.at(root, place / "class")
    set_window(course, "midterm", **TIMES)
    assert "Hand it out at 2030-01-31 09:00 UTC" in bundle(course, exam="midterm")
    with zipfile.ZipFile(course.folder / "attention-exam-midterm.zip") as archive:
        files = {name.removeprefix("attention/"): archive.read(name) for name in archive.namelist()}
    (wheel,) = (content for name, content in files.items() if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as inner:
        inner.extractall(place / "installed")
        inside = {name: inner.read(name) for name in inner.namelist()}
    return files, inside, place / "installed"


@pytest.mark.slow
def test_what_students_get_for_an_exam_can_neither_judge_nor_explain(exam_files):
    files, inside, _ = exam_files
    kinds = sorted(re.sub(r"attnlib-[^/]*", "attnlib", name) for name in files)
    assert kinds == ["README.md", "attnlib", "constraints.txt", "requirements.txt", "work/midterm/midterm.ipynb"]
    kept = {f"attnlib/{name}" for name in library.KEPT}
    made = {"__init__.py", "checks/__init__.py", "checks/questions.json", "checks/catalogue/options.toml"}
    assert not any(name.endswith("entry_points.txt") for name in inside)
    assert {name for name in inside if "dist-info" not in name} == kept | {f"attnlib/{name}" for name in made}
    everything = " ".join(" ".join(c.decode("utf-8", "replace").split()) for c in (*inside.values(), *files.values()))
    known = [mistake for exercise in CATALOGUE.values() for mistake in exercise.mistakes]
    assert len(known) > 200
    told = [t for mistake in known for t in (mistake.says, mistake.hint, mistake.more)]
    told += [why for name in QUESTIONS for why in answer_key(name).why.values()]
    assert [text for text in told if " ".join(text.split())[:60] in everything] == []
    assert not re.search(
        r"def (softmax|examine|attention|failing_case)\b|import_module|os\.environ\.get\((?!STUDENT)", everything
    )
    options = inside["attnlib/checks/catalogue/options.toml"].decode()
    assert re.findall(r"^\[(.*)\]$", options, re.MULTILINE) == [QUESTION.name, "swiglu-width"]


@pytest.mark.slow
def test_the_checks_of_an_exam_take_answers_and_show_each_student_the_options_that_are_graded(exam_files):
    place = str(exam_files[2])
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {place!r})\n{USE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    softmax, tests, *shown, chosen = done.stdout.splitlines()
    assert softmax == "• softmax will be graded from the notebook that you hand in."
    assert tests.startswith("• Your list of tests of softmax will be graded")
    ours = Options(QUESTIONS["swiglu-width"], "ada")
    assert "\n".join(shown) == str(ours)
    assert chosen == f"• swiglu-width: Q, {ours.texts['Q']}, will be graded from the notebook that you hand in."


@pytest.mark.parametrize(
    "code", ["import attnlib", "from attnlib import softmax", "from attnlib.checks import examine",
             "from attnlib.checks.evaluation import examine", "import attnlib.checks as c"]
)  # fmt: skip
def test_a_notebook_that_needs_what_gives_answers_away_is_not_bundled(code):
    def content(source):
        return {"midterm.ipynb": nbformat.writes(new_notebook(cells=[new_code_cell(source)])).encode()}

    with pytest.raises(GradingError, match=r"imports attnlib.*because it contains answers or judges them"):
        library.require_silent(content(code))
    assert (
        library.require_silent(content("from attnlib.plotting import heatmap\nfrom attnlib.checks import check")) == []
    )


def exchange(folder, student, time, answer):
    """Put an attempt where nbgrader's exchange would."""
    place = folder / f"{student}+tiny+2030-01-31 {time}:00 UTC" if time else folder / student / "tiny"
    place.mkdir(parents=True)
    nbformat.write(notebook(answer), place / "tiny.ipynb")


def test_the_last_attempt_in_time_counts_and_each_is_in_the_log(course, tmp_path):
    for time, answer in (("08:00", "P"), ("10:00", "Q"), ("10:59", "R"), ("11:01", "S")):
        exchange(tmp_path / "inbound", "ada", time, answer)
    exchange(tmp_path / "inbound", "bela", "11:01", "P")
    exchange(tmp_path / "folders", "cleo", "", "P")
    said = collect(course, "tiny", [tmp_path / "inbound"], time_zone("UTC"))
    said += collect(course, "tiny", [tmp_path / "folders"], time_zone("UTC"))
    assert (course.submitted("ada", "tiny") / "timestamp.txt").read_text() == "2030-01-31 10:59:00 UTC"
    assert (course.submitted("bela", "tiny") / "timestamp.txt").read_text() == "2030-01-31 11:01:00 UTC"
    for line in ("ada: before the exam began", "ada: after the exam ended", "cleo: time unknown"):
        assert f"  {line}" in said
    collect(course, "tiny", [tmp_path / "inbound"], time_zone("UTC"))
    entries = RunState(course, "tiny").audit.entries()[0]
    assert sorted((e.said["of"], e.said["window"]) for e in entries) == [
        ("ada", "after the exam ended"), ("ada", "before the exam began"), ("ada", "in time"), ("ada", "in time"),
        ("bela", "after the exam ended"), ("cleo", "time unknown"),
    ]  # fmt: skip
    assert "Attempts in the log: 6" in shown(course, "tiny")
    assert choose_best(course, "tiny", How()) == "In an exam, the last attempt in time counts, not the best one."


def hand_in(course, student, stamp):
    """Put a submission with a time in place, and return its lateness and the flags about it."""
    files, folder = course.files, course.submitted(student, "tiny")
    files.write(folder / "tiny.ipynb", nbformat.writes(notebook(RIGHT)).encode())
    files.write(folder / "timestamp.txt", stamp.encode())
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        found = Lateness(course, "tiny", gradebook, RunState(course, "tiny").audit).of_new(Outcome(student, "graded"))
    return found.lateness, found.flags


def test_an_attempt_from_before_the_exam_counts_only_if_there_is_no_other_in_time_and_is_flagged(
    course, tmp_path, clock
):
    clock(END + MINUTE)
    exchange(tmp_path / "early", "ada", "08:59", "P")
    exchange(tmp_path / "unknown", "ada", "", "Q")
    for source in ("early", "unknown"):
        collect(course, "tiny", [tmp_path / source], time_zone("UTC"))
        read = nbformat.read(course.submitted("ada", "tiny") / "tiny.ipynb", as_version=4)
        assert ('answer = "P"' in read.cells[4].source) == (source == "early")
    register(course, "tiny", log_file(course, "tiny"))
    lateness, (flag,) = hand_in(course, "ada", "2030-01-31 08:59:59 UTC")
    assert lateness == "handed in 2030-01-31 08:59:59 UTC, before the exam began"
    assert flag.startswith("it was handed in before the exam began: ")
    assert hand_in(course, "ada", "2030-01-31 09:00:00 UTC") == ("handed in 2030-01-31 09:00:00 UTC, in time", ())


@pytest.mark.parametrize("collected", ["in the extension", "later"])
def test_canvas_marks_as_late_what_came_in_an_extension_that_only_we_granted(course, tmp_path, monkeypatch, collected):
    until = END + 30 * MINUTE
    add(course, [Grant("12", "tiny", "2030-01-31 11:30 UTC", "", "Prof. Noether", "certificate")])
    add(course, [Grant("14", "tiny", "", days, "Prof. Noether", "an error") for days in ("1", "0")])  # and revoked
    with open_gradebook(course) as gradebook:
        for student in ("12", "13", "14"):
            gradebook.add_student(student)
    time = until - MINUTE if collected == "in the extension" else until + MINUTE
    monkeypatch.setattr("grading.collect.read_sources.now", lambda: iso(time))
    folder = tmp_path / "canvas"
    folder.mkdir()
    for name in ("adaada_LATE_12_1_tiny.ipynb", "bobbob_LATE_13_2_tiny.ipynb", "cyacya_LATE_14_3_tiny.ipynb"):
        nbformat.write(notebook(RIGHT), folder / name)
    collect(course, "tiny", [folder], time_zone("UTC"))
    windows = {e.said["of"]: e.said["window"] for e in RunState(course, "tiny").audit.entries()[0]}
    expected = "in time" if collected == "in the extension" else "time unknown"
    assert windows == {"12": expected, "13": "after the exam ended", "14": "after the exam ended"}
    register(course, "tiny", log_file(course, "tiny"))
    lateness, flags = hand_in(course, "12", "LATE")
    assert lateness.startswith(
        "its time of submission is not known: timestamp.txt says LATE, according to the due date in Canvas"
    )
    assert flags == (lateness,)
    assert "until 2030-01-31 11:30:00 UTC, so nothing is taken off" in lateness
    assert hand_in(course, "13", "LATE")[0].startswith("late, by an unknown amount of time")


def test_what_students_could_get_is_withdrawn_when_an_assignment_becomes_an_exam(course, clock, monkeypatch):
    page, packed = course.feedback("ada", "tiny") / "tiny.html", course.returned("tiny") / "folders.zip"
    notebook = course.root / RELEASED_FOLDER / "tiny" / "tiny.ipynb"

    def put():
        clock(BEGIN)
        hand_out(course)
        for file in (page, packed):
            course.files.write(file, b"page")

    put()
    clock(BEGIN - HOUR)
    assert "which other classes may use" in set_window(course, "tiny", **TIMES)[1]  # the class's folder is elsewhere
    assert [file.exists() for file in (page, packed, notebook)] == [False, False, True]
    put()
    clock(BEGIN - HOUR)
    monkeypatch.setattr("grading.exam.command.CLASS_FOLDER", str(course.folder))
    said = set_window(course, "tiny", **TIMES)
    assert [line.partition(":")[0] for line in said] == [
        "Removed, until the exam is over", "Removed from _build/released, until the exam begins",
    ]  # fmt: skip
    assert not any(file.exists() for file in (page, packed, notebook))
    put()
    assert len(set_window(course, "tiny", **TIMES)) == 1, "it has begun, so its notebook may stay"
    assert [file.exists() for file in (page, packed, notebook)] == [False, False, True]
    put()
    clock(END + MINUTE)
    assert set_window(course, "tiny", **TIMES) == []
    assert all(file.exists() for file in (page, packed, notebook))
    clock(BEGIN - HOUR)  # the table in course.toml may also be edited by hand
    shutil.copytree(course.root / "solutions" / "tiny", course.root / "solutions" / "other")
    try:
        hand_out(course, "other")
    finally:
        shutil.rmtree(course.root / "solutions" / "other")
    assert not notebook.exists()


def test_an_export_during_an_exam_holds_only_what_the_student_handed_in(course, clock, tmp_path):
    hand_in(course, "ada", "2030-01-31 10:00:00 UTC")
    for place in (course.autograded("ada", "tiny"), course.feedback("ada", "tiny"), course.attempts("ada", "tiny")):
        course.files.write(place / "tiny.ipynb", b"{}")
    course.files.write(course.outcomes("tiny") / "ada.json", b"{}")
    course.files.write(course.autograded("ada", "other") / "tiny.ipynb", b"{}")
    RunState(course, "tiny").audit.noted({"of": "ada", "points": 3})

    def exported(name):
        said = export_student(course, "ada", tmp_path / name)
        with zipfile.ZipFile(tmp_path / name) as archive:
            logged = [archive.read(about).decode() for about in ("log.json", "gradebook.json")]
            return said, sorted(n for n in archive.namelist() if "/" in n), [bool(json.loads(text)) for text in logged]

    clock(END)
    said, files, about = exported("during.zip")
    assert "For exams that are not over, only submissions and extensions are included: tiny" in said
    mine = ["attempts/tiny/ada/tiny.ipynb", "submitted/ada/tiny/timestamp.txt", "submitted/ada/tiny/tiny.ipynb"]
    assert files == sorted([*mine, "autograded/ada/other/tiny.ipynb"])
    assert about == [False, False]
    clock(END + MINUTE)
    said, files, about = exported("after.zip")
    assert "not over" not in said
    assert len(files) == 7
    assert about == [True, True]


@pytest.mark.slow
def test_nothing_is_told_before_the_end_and_a_letter_of_no_student_earns_nothing(
    course, clock, boxes, tmp_path, capsys
):
    (course.folder / "course.toml").write_text(
        "late_penalty_per_day = 0.1\n" + (course.folder / "course.toml").read_text()
    )
    for student, time, answer in (
        ("ada", "10:00", own("ada")),
        ("bela", "10:00", RIGHT),
        ("cleo", "11:01", own("cleo")),
    ):
        exchange(tmp_path / "inbound", student, time, answer)
    exchange(tmp_path / "folders", "dora", "", own("dora"))
    (tmp_path / "folders" / "dora" / "tiny" / "timestamp.txt").write_text("LATE")  # as Canvas marks what came late
    for source in ("inbound", "folders"):
        collect(course, "tiny", [tmp_path / source], time_zone("UTC"), unlisted=True)
    clock(END - MINUTE)
    run(course, "tiny", pool=boxes)
    lateness = {row.outcome.student: (row.score, row.outcome.lateness) for row in rows(course, "tiny")}
    assert lateness["dora"] == (0, "late, by an unknown amount of time, 3.5 points off"), "graded first"
    assert (
        "No feedback pages: the exam tiny ends for the last student on 2030-01-31 11:00 UTC" in capsys.readouterr().out
    )
    assert not list(course.folder.rglob("feedback/**/*.html"))
    assert not first_answers(course, "tiny", "ada"), "who hands in again may answer again"
    with pytest.raises(GradingError, match="no feedback is returned yet: the exam tiny ends"):
        return_feedback(course, "tiny", unfinished=True)
    with pytest.raises(GradingError, match="no scores are written for students yet"):
        export(course, "tiny", moodle=tmp_path / "worksheet.csv")
    with pytest.raises(GradingError, match="no scores are sent yet: the exam tiny ends"):
        send_grades(course, "tiny", tmp_path / "lti.toml")
    place = {
        "student": "ada",
        "assignment": "tiny",
        "notebook": "tiny",
        "db_url": course.config().CourseDirectory.db_url,
    }
    with pytest.raises(GradingError, match="no feedback page is made yet"):  # by nbgrader's own command
        Withhold(config=course.config()).preprocess(notebook(RIGHT), {"nbgrader": place})

    clock(END + MINUTE)
    run(course, "tiny", pool=boxes)
    assert first_answers(course, "tiny", "ada") == {"check": RIGHT}, "feedback is out, so this answer stays"
    graded = {row.outcome.student: row for row in rows(course, "tiny")}
    assert {student: row.score for student, row in graded.items()} == {"ada": 3.5, "bela": 1.5, "cleo": 0, "dora": 0}
    assert f"{QUESTION.name}: {RIGHT}, which earns nothing in an exam" in graded["bela"].remarks()
    assert "3.5 points off" in graded["cleo"].outcome.lateness
    page = (course.feedback("bela", "tiny") / "tiny.html").read_text()
    assert "the letters A, B, C, D earn nothing, because they are the same for all students" in page
    assert "overflow" in (course.feedback("ada", "tiny") / "tiny.html").read_text()
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        assert verify(course, "tiny", gradebook).wrong == ()
        kept = next((course.attempts("ada", "tiny")).iterdir()) / "tiny.ipynb"
        kept.write_text(kept.read_text().replace("answer", "ANSWER"))
        assert "ada: the attempt" in verify(course, "tiny", gradebook).wrong[0]
