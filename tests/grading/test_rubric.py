"""A rubric is above the answer, is marked by its criteria, and comes back with the mark; comments have names."""

import csv
import json

import nbformat
import pytest
from gradebooks import ASSIGNMENT, LOG, handed_in, released, rich_course
from nbformat.v4 import new_markdown_cell
from tiny import REPOSITORY

from attnlib.checks.catalogue import ASSIGNMENTS
from grading.course import Course, GradingError
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.lookup import comments_by_hand
from grading.marking.comments import expanded, uses
from grading.marking.rubric import rubrics
from grading.marking.shares import divide, folder_of, read_shares
from grading.marking.sums import different_sums
from grading.marking.take import take
from grading.outcome import Outcome
from grading.pages import Pages
from grading.release import register
from grading.report import rows
from grading.run import refresh
from grading.run_state import RunState
from grading.verdict import Verdict

TABLE = """Say why.

| criterion | what earns the points | points |
|---|---|--:|
| rows | what happens to the rows | 2 |
| reason | =why it happens | 1 |
"""
NAMED = 'no-reason = "You say *what*, but not <b>why</b>."\nsee = "Reread “Masks”."\n'


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Two students, whose essay of 3 points has a rubric, and whose task of 4 points has none."""
    root, folder = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("class")
    course = rich_course(root, folder)
    source = root / "solutions" / ASSIGNMENT / "first.ipynb"
    with_rubric(source, TABLE)
    register(course, ASSIGNMENT, LOG)
    notebooks = handed_in(released(course, ASSIGNMENT), 1)
    with AssignmentGradebook(course, ASSIGNMENT, LOG) as gradebook:
        for student in ("ada", "bela"):
            gradebook.record(student, notebooks, None)
            for name, notebook in notebooks.items():
                file = course.autograded(student, ASSIGNMENT) / f"{name}.ipynb"
                course.files.write(file, nbformat.writes(notebook).encode())
            RunState(course, ASSIGNMENT).store_outcome(Outcome(student, Verdict.GRADED))
    (folder / "comments.toml").write_text(NAMED)
    divide(course, ASSIGNMENT, ["mary"], "student", 0)
    return course


def with_rubric(source, table):
    notebook = nbformat.read(source, as_version=4)
    at = next(i for i, cell in enumerate(notebook.cells) if cell.id == "essay")
    notebook.cells.insert(at, new_markdown_cell(table, id="essay-task"))
    nbformat.write(notebook, source)


def lines(course):
    with (folder_of(course, ASSIGNMENT) / "mary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def marked(course, tmp_path, marks):
    """Return a file in which the answers have marks and comments, by student and criterion."""
    shares, filled = read_shares(course, ASSIGNMENT), lines(course)
    for line in filled:
        share = shares[line["answer"]]
        part = next((name for name in ("rows", "reason") if f": {name} (" in line["question"]), share.question)
        line["mark"], line["comment"] = marks.get((share.student, part), ("", ""))
    with (tmp_path / "mary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, filled[0])
        writer.writeheader()
        writer.writerows(filled)
    return tmp_path / "mary.csv"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (TABLE.replace("| 1 |", "| 2 |"), "has 4 points, but the question is worth 3"),
        (TABLE.replace("reason |", "rows |"), "a name of its own"),
        (TABLE.replace("| 1 |", "| one |"), "each row needs a name of its own, what earns the points"),
        (TABLE.replace("| 2 |", "|"), "each row needs"),
    ],
)
def test_a_rubric_that_does_not_fit_its_question_is_refused(tmp_path, table, says):
    for name in ("root", "class"):
        (tmp_path / name).mkdir()
    course = rich_course(tmp_path / "root", tmp_path / "class")
    with_rubric(tmp_path / "root" / "solutions" / ASSIGNMENT / "first.ipynb", table)
    with pytest.raises(GradingError, match=says):
        rubrics(course, ASSIGNMENT)


@pytest.mark.parametrize(
    ("heading", "last", "refused"),
    [
        ("| Criteria | Description | Weight |", "7", True),
        ("**Aspect** | what | **pts**", "7", True),
        ("| criterion | points |", "1", True),
        ("| Kriterium | wofür | Punkte |", "1", True),  # 2 and 1 add up to the points of the question
        ("| word | vector | length |", "7", False),
        ("| point | x | y |", "7", False),
    ],
)
def test_a_rubric_under_another_heading_is_not_taken_for_none(tmp_path, heading, last, refused):
    for name in ("root", "class"):
        (tmp_path / name).mkdir()
    course = rich_course(tmp_path / "root", tmp_path / "class")
    table = f"Why?\n\n{heading}\n|:--|---|--:|\n| a | b | 2 |\n| c | d | {last} |\n"
    source = tmp_path / "root" / "solutions" / ASSIGNMENT / "first.ipynb"
    with_rubric(source, table)
    if not refused:
        assert rubrics(course, ASSIGNMENT) == {}
        source.write_text(
            source.read_text()
            .replace("| 2 |", "| two |")
            .replace("| 7 |", "| seven |")
            .replace('"points": 3', '"points": 0')
        )
        assert rubrics(course, ASSIGNMENT) == {}, "nothing adds up to no points, and no points are wanted"
        return
    with pytest.raises(GradingError, match="the table above essay looks like a rubric, but its heading is"):
        rubrics(course, ASSIGNMENT)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_each_assignment_has_a_rubric_that_students_see_and_that_is_not_the_marking_scheme(assignment, tmp_path):
    course = Course(REPOSITORY, tmp_path)
    ((question, criteria),) = rubrics(course, assignment).items()
    (name,) = course.notebooks(assignment)
    cells = {cell["id"]: "".join(cell["source"]) for cell in
             json.loads((REPOSITORY / "exercises" / assignment / name).read_text())["cells"]}  # fmt: skip
    for one in criteria:
        assert f"| {one.name} | {one.says} |" in cells[f"{question}-task"]
    assert len(criteria) >= 2


def test_assistants_get_a_line_for_each_criterion_and_cannot_mark_one_alone(course, tmp_path):
    found = [(line["question"], line["points possible"], bool(line["text"])) for line in lines(course)]
    rubric = [("essay: rows (what happens to the rows)", "2", True), ("essay: reason (=why it happens)", "1", False)]
    assert found == [*rubric, *rubric, ("task", "4", True), ("task", "4", True)]
    for marks, says in (
        ({("ada", "rows"): ("1", "")}, "has marks for some criteria, but not for all"),
        (
            {("ada", "rows"): ("2", ""), ("ada", "reason"): ("1.5", "")},
            "the mark is '1.5'; expected a number from 0 to 1",
        ),
        ({("ada", "task"): ("1", "#no-raeson")}, "no comment named 'no-raeson'; known names: no-reason, see"),
    ):
        with pytest.raises(GradingError, match=says):
            take(course, ASSIGNMENT, [marked(course, tmp_path, marks)])
    assert {row.to_read for row in rows(course, ASSIGNMENT)} == {2}, "nothing was written"


@pytest.mark.slow
def test_the_mark_comes_back_by_criterion_with_the_texts_of_named_comments(course, tmp_path):
    marks = {
        ("ada", "rows"): ("2", ""), ("ada", "reason"): ("0,5", "#no-reason And C# is no language here."),
        ("ada", "task"): ("4", "#see #1"),
        ("bela", "rows"): ("1", "#no-reason"), ("bela", "reason"): ("0", "#no-reason"),
    }  # fmt: skip
    said = take(course, ASSIGNMENT, [marked(course, tmp_path, marks)])
    assert "3 new marks, 1 answer still unmarked" in said
    assert {row.outcome.student: row.scores["essay"][0] for row in rows(course, ASSIGNMENT)} == {"ada": 2.5, "bela": 1}
    page = Pages(course, ASSIGNMENT, LOG)
    assert page.make(Outcome("ada", Verdict.GRADED)) == ""
    html = " ".join((course.feedback("ada", ASSIGNMENT) / "first.html").read_text().split())
    assert "<td>what happens to the rows</td>" in html, "the rubric is there with the mark"
    assert "rows: 2 of 2." in html
    assert "reason: 0.5 of 1. You say <em>what</em>, but not" in html
    assert "And C# is no language here." in html
    assert "Reread “Masks”. #1" in html
    told = uses(course, ASSIGNMENT).splitlines()
    assert told[0].startswith("#no-reason: 3 here, 3 in the whole class")
    assert told[1].startswith("#see: 1 here")
    entries = [entry.said for entry in RunState(course, ASSIGNMENT).audit.entries()[0]]
    assert {"rows": 2, "reason": 0.5} in [one.get("criteria") for one in entries]

    again = marks | {("bela", "rows"): ("0", ""), ("bela", "reason"): ("1", "")}
    assert "1 new mark" in take(course, ASSIGNMENT, [marked(course, tmp_path, again)]), (
        "the same sum, divided otherwise"
    )
    assert "0 new marks" in take(course, ASSIGNMENT, [marked(course, tmp_path, again)])


def test_a_mark_that_is_changed_apart_from_its_criteria_is_named(course, tmp_path):
    marks = {("bela", "rows"): ("2", ""), ("bela", "reason"): ("1", "")}
    take(course, ASSIGNMENT, [marked(course, tmp_path, marks)])
    assert list(different_sums(course, ASSIGNMENT)) == []
    with AssignmentGradebook(course, ASSIGNMENT, LOG) as gradebook:
        gradebook.mark("bela", "essay", 2.5)
    assert list(different_sums(course, ASSIGNMENT)) == [
        "bela: essay: the mark is 2.5, but the criteria in its comment add up to 3. Change one of the two"
    ]


def test_a_name_that_is_gone_from_the_file_is_counted_and_stays_as_it_was_written(course):
    with AssignmentGradebook(course, ASSIGNMENT, LOG) as gradebook:
        gradebook.mark("bela", "task", 1, "#gone, #no-reason")
    assert "#gone: 1 use here, but there is no such comment" in uses(course, ASSIGNMENT)
    text = comments_by_hand(course.config().CourseDirectory.db_url, ASSIGNMENT)["bela"]["task"]
    assert expanded(text, {"no-reason": "Why?"}) == "#gone, Why?"
    (course.folder / "comments.toml").write_text('"two words" = "x"\n')
    with pytest.raises(GradingError, match="expected a name such as no-reason"):
        uses(course, ASSIGNMENT)
    (course.folder / "comments.toml").unlink()
    with pytest.raises(GradingError, match="there are no named comments: write lines such as"):
        uses(course, ASSIGNMENT)


@pytest.mark.parametrize("content", ['x = "a"\nx = "b"', 'x = "' + 2_000_000 * "a" + '"', None])
def test_comments_that_cannot_be_read_are_refused_before_any_page_is_touched(course, content):
    file = course.folder / "comments.toml"
    file.unlink(missing_ok=True)
    refresh(course, ASSIGNMENT)
    pages = sorted(course.folder.glob("feedback/**/*.html"))
    assert pages
    file.mkdir() if content is None else file.write_text(content)
    with pytest.raises(GradingError, match=r"comments\.toml cannot be read"):
        refresh(course, ASSIGNMENT)
    assert sorted(course.folder.glob("feedback/**/*.html")) == pages
    file.rmdir() if content is None else file.unlink()
    file.write_text(NAMED)
