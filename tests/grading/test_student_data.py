"""What is kept about a student is exported as a whole, and erased as a whole, and the log still tells of any edit."""

import json
import re
import zipfile

import nbformat
import pytest
from gradebooks import ASSIGNMENT, LOG, handed_in, released, rich_course

from grading.class_list import remember
from grading.course import GradingError
from grading.deadlines.table import Grant, add, read_table
from grading.first_answers import first_answers_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.create import open_gradebook
from grading.gradebook.students import students
from grading.marking.shares import divide
from grading.outcome import Outcome
from grading.own_names import keep_names
from grading.release import register
from grading.run_state import RunState
from grading.student_data.erase import erase, kept
from grading.student_data.export import export_student
from grading.verdict import Verdict
from grading.verify import undeclared_erasures

SECRET = "what only Ada would write"


@pytest.fixture
def course(tmp_path):
    """Ada, and Adam, whose id begins with hers: both handed in, were graded and got an extension."""
    for name in ("root", "class"):
        (tmp_path / name).mkdir()
    course = rich_course(tmp_path / "root", tmp_path / "class")
    register(course, ASSIGNMENT, LOG)
    notebooks = handed_in(released(course, ASSIGNMENT), 1)
    run_state = RunState(course, ASSIGNMENT)
    with AssignmentGradebook(course, ASSIGNMENT, LOG) as gradebook:
        for student in ("ada", "adam"):
            essay = next(cell for cell in notebooks["first"].cells if cell.id == "essay")
            essay.source = f"{SECRET.replace('Ada', student)}"
            text = nbformat.writes(notebooks["first"]).encode()
            for folder in (course.submitted, course.attempts, course.autograded):
                course.files.write(folder(student, ASSIGNMENT) / "first.ipynb", text)
            outcome = Outcome(student, Verdict.GRADED, digest="d")
            run_state.announce(outcome, gradebook.automatic_score(notebooks), sandboxed=True)
            gradebook.record(student, notebooks, None)
            gradebook.mark(student, "essay", 2, "Well said.")
            run_state.store_outcome(outcome)
            remember(course, student)
            course.files.write(first_answers_file(course, ASSIGNMENT, student), b'{"choice": "A"}')
            course.files.append(course.log(ASSIGNMENT), f"10:00 {student}: late\n".encode())
    run_state.finish()
    add(course, [Grant(student, "*", "", "1", "E. Noether", "flu") for student in ("ada", "adam")])
    divide(course, ASSIGNMENT, ["mary"], "student", 0)
    keep_names(course, {student: [f"login of {student}"] for student in ("ada", "adam")})
    return course


def mentions(course, student):
    """The files of the class that have a student's id in their path, or hold it as a word, apart from the gradebook."""
    word = re.compile(rf"(?<!\w){student}(?!\w)")
    there = {file: str(file.relative_to(course.folder)) for file in course.folder.rglob("*") if file.is_file()}
    return [
        file
        for file, path in sorted(there.items())
        if file.name != "gradebook.db"
        and (word.search(path) or word.search(file.read_bytes().decode(errors="replace")))
    ]


def test_an_export_holds_everything_about_the_student_and_nothing_about_others(course, tmp_path):
    said = export_student(course, "ada", tmp_path / "ada.zip")
    with zipfile.ZipFile(tmp_path / "ada.zip") as archive:
        content = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {name.split("/")[0] for name in content if "/" in name} == {"submitted", "attempts", "autograded", "reports"}
    (submission,) = json.loads(content["gradebook.json"])
    assert submission["assignment"] == ASSIGNMENT
    assert {mark["name"] for mark in submission["marks"]} == {"check-one", "check-two", "check-three", "essay", "task"}
    assert "Well said." in content["gradebook.json"]
    (entry,) = json.loads(content["log.json"])
    assert entry["student"] == "ada"
    assert said.endswith(", 1 line of the log")
    assert json.loads(content["deadlines.json"])[0]["why"] == "flu"
    assert json.loads(content["student.json"])["other_names"] == ["login of ada"]
    assert not any("adam" in text for text in content.values())
    with pytest.raises(GradingError, match="already exists"):
        export_student(course, "ada", tmp_path / "ada.zip")
    with pytest.raises(GradingError, match="keep nothing about 'bob'"):
        export_student(course, "bob", tmp_path / "bob.zip")


def test_nothing_about_an_erased_student_is_left_and_others_keep_everything(course):
    assert str(course.submitted("ada", ASSIGNMENT).parent) in kept(course, "ada")
    before = mentions(course, "adam")
    assert len(mentions(course, "ada")) == len(before) >= 9, "the test knows where to look"
    with pytest.raises(GradingError, match="--by NAME and --why TEXT"):
        erase(course, "ada", "", "")
    erase(course, "ada", "Registrar", "request of 1 May")
    assert mentions(course, "ada") == []
    assert mentions(course, "adam") == before
    assert students(course.config().CourseDirectory.db_url).keys() == {"adam"}
    with open_gradebook(course) as gradebook:
        assert [one.student.id for one in gradebook.assignment_submissions(ASSIGNMENT)] == ["adam"]
        found = gradebook.find_comment("essay", "first", ASSIGNMENT, "adam").manual_comment
    assert found == "Well said."
    assert [row.student for row in read_table(course, {"adam"})] == ["adam"]
    with pytest.raises(GradingError, match="keep nothing"):
        kept(course, "ada")


def test_the_log_holds_after_an_erasure_and_tells_of_another_one_that_nobody_declared(course):
    audit = RunState(course, ASSIGNMENT).audit
    digests = [entry.digest for entry in audit.entries()[0]]
    erase(course, "ada", "Registrar", "request")
    entries, wrong = RunState(course, ASSIGNMENT).audit.entries()
    assert wrong == []
    assert [entry.digest for entry in entries][: len(digests)] == digests, "a digest that was noted still holds"
    assert (entries[-1].said["erasure"], entries[-1].said["by"]) == (1, "Registrar")
    log = course.reports(ASSIGNMENT) / "audit.log"
    lines = log.read_bytes().splitlines()
    assert list(undeclared_erasures(entries)) == []
    adam = json.loads(lines[1])
    stub = json.dumps({"previous": adam["previous"], "erased": digests[1]}).encode()
    log.write_bytes(b"\n".join([lines[0], stub, *lines[2:], b""]))
    entries, wrong = RunState(course, ASSIGNMENT).audit.entries()
    assert list(undeclared_erasures(entries)) == ["2 entries were erased, but the log says that 1 were"]
    forged = json.dumps(adam | {"score": 99, "erased": digests[1]}).encode()
    log.write_bytes(b"\n".join([lines[0], forged, *lines[2:], b""]))
    assert "does not follow" in " ".join(RunState(course, ASSIGNMENT).audit.entries()[1])
