"""Assistants mark their shares in files that tell them nothing else; two who mark the same answers are compared."""

import csv
import random

import nbformat
import pytest
from gradebooks import ASSIGNMENT, LOG, handed_in, released, rich_course
from sklearn.metrics import cohen_kappa_score

from grading.course import GradingError
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.lookup import comments_by_hand
from grading.marking.agreement import cohens_kappa
from grading.marking.compare import Given, Pair, agreement_table, compared
from grading.marking.shares import Share, divide, folder_of, read_shares
from grading.marking.take import take
from grading.outcome import Outcome
from grading.release import register
from grading.repair.files import MAX_NOTEBOOK_BYTES
from grading.report import rows
from grading.run_state import RunState
from grading.student_data.erase import erase
from grading.verdict import Verdict

STUDENTS = [f"student{n}" for n in range(6)]


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_kappa_is_that_of_scikit_learn(weights):
    draw = random.Random(3)
    for _ in range(20):
        first = [draw.choice([0, 1, 2, 3]) for _ in range(23)]
        second = [a if draw.random() < 0.6 else draw.choice([0, 1, 2, 3]) for a in first]
        expected = cohen_kappa_score(first, second, weights=weights)
        assert cohens_kappa(first, second, weighted=bool(weights)) == pytest.approx(expected)
    assert cohens_kappa([2, 2], [2, 2]) == 1


@pytest.fixture
def course(tmp_path):
    """Six students, whose essay (3 points) and task (4 points) wait for a mark."""
    for name in ("root", "class"):
        (tmp_path / name).mkdir()
    course = rich_course(tmp_path / "root", tmp_path / "class")
    register(course, ASSIGNMENT, LOG)
    notebooks = handed_in(released(course, ASSIGNMENT), 1)
    with AssignmentGradebook(course, ASSIGNMENT, LOG) as gradebook:
        for student in STUDENTS:
            essay = next(cell for cell in notebooks["first"].cells if cell.id == "essay")
            essay.source = f"=HYPERLINK({student})"
            gradebook.record(student, notebooks, None)
            text = nbformat.writes(notebooks["first"])
            course.files.write(course.autograded(student, ASSIGNMENT) / "first.ipynb", text.encode())
            RunState(course, ASSIGNMENT).store_outcome(Outcome(student, Verdict.GRADED))
    return course


def table(course, assistant):
    with (folder_of(course, ASSIGNMENT) / f"{assistant}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def fill_in(course, assistant, mark):
    lines = table(course, assistant)
    shares = read_shares(course, ASSIGNMENT)
    with (file := folder_of(course, ASSIGNMENT) / f"{assistant}.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, lines[0])
        writer.writeheader()
        writer.writerows(line | {"mark": mark(shares[line["answer"]]), "comment": "Why?"} for line in lines)
    return file


@pytest.mark.parametrize("by", ["student", "question"])
def test_each_answer_is_one_assistants_and_what_belongs_together_stays_together(course, by):
    divide(course, ASSIGNMENT, ["mary", "john"], by, 0.5)
    shares = list(read_shares(course, ASSIGNMENT).values())
    first = [share for share in shares if not share.second]
    assert sorted((s.student, s.question) for s in first) == sorted(
        (student, question) for student in STUDENTS for question in ("essay", "task")
    )
    owners = {(getattr(share, by), share.assistant) for share in first}
    assert len(owners) == len({getattr(share, by) for share in first})
    assert {len([s for s in first if s.assistant == name]) for name in ("mary", "john")} == {6}
    mine = {(share.student, share.question): share.assistant for share in first}
    second = [share for share in shares if share.second]
    assert len(second) == 6
    assert all(share.assistant != mine[share.student, share.question] for share in second)


def test_a_file_says_neither_whose_answer_it_is_nor_that_somebody_else_marks_it_and_holds_no_formula(course):
    divide(course, ASSIGNMENT, ["mary", "john"], "student", 1)
    for line in table(course, "mary"):
        assert list(line) == ["answer", "question", "text", "points possible", "mark", "comment"]
        assert not any(student == line["answer"] for student in STUDENTS)
        assert line["text"].startswith("'=") or line["question"] == "task"
    before = (folder_of(course, ASSIGNMENT) / "mary.csv").read_bytes()
    divide(course, ASSIGNMENT, ["mary", "john", "new"], "student", 1)
    assert (folder_of(course, ASSIGNMENT) / "mary.csv").read_bytes() == before, "what was divided stays divided"


def test_a_long_answer_is_cut_in_the_files_and_keeps_nobodys_marks_from_being_taken(course):
    essay = "=1\n=2\r@3\n" + "x" * 140_000
    file = course.autograded("student0", ASSIGNMENT) / "first.ipynb"
    notebook = nbformat.read(file, 4)
    next(cell for cell in notebook.cells if cell.id == "essay").source = essay
    nbformat.write(notebook, file)
    divide(course, ASSIGNMENT, ["mary"], "student", 0)
    (text,) = (line["text"] for line in table(course, "mary") if "x" * 100 in line["text"])
    assert text.startswith("'=1\n'=2\r'@3\nxxx")
    assert text.endswith("x\n[Only the first 20000 of 140009 characters are shown. Ask the instructor for the rest.]")
    assert len(text) < 20_100
    lines = fill_in(course, "mary", lambda share: 1)
    lines.write_bytes(lines.read_bytes().replace(text.encode(), essay.encode()))  # somebody pasted the whole answer
    before = csv.field_size_limit()
    assert "12 new marks" in take(course, ASSIGNMENT, [lines])
    erase(course, "student1", "E. Noether", "asked for it")
    assert csv.field_size_limit() == before
    assert {share.student for share in read_shares(course, ASSIGNMENT).values()} == {*STUDENTS} - {"student1"}
    assert len(lines.read_text().splitlines()) == 14  # the titles, 9 answers of one line each, and one of 4 lines


def test_a_large_notebook_is_read_and_one_that_cannot_be_read_is_named(course, capsys):
    large, broken = (course.autograded(f"student{n}", ASSIGNMENT) / "first.ipynb" for n in (0, 1))
    large.write_bytes(large.read_bytes() + b" " * MAX_NOTEBOOK_BYTES)
    broken.write_text("{")
    divide(course, ASSIGNMENT, ["mary"], "student", 0)
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: student1: ")
    codes = {share.code: share.student for share in read_shares(course, ASSIGNMENT).values()}
    texts = {codes[line["answer"]]: line["text"] for line in table(course, "mary") if line["question"] == "essay"}
    read = {student: f"'=HYPERLINK({student})" for student in STUDENTS}
    assert texts == read | {"student1": "[This answer could not be read. Ask the instructor for it.]"}


def test_marks_are_written_once_with_their_author_and_second_marks_only_compared(course):
    divide(course, ASSIGNMENT, ["mary", "john"], "student", 1)
    files = [fill_in(course, name, lambda share: 2 if share.second and share.student < "student3" else 1)
             for name in ("mary", "john")]  # fmt: skip
    said = take(course, ASSIGNMENT, files)
    assert "24 new marks, 0 answers still unmarked" in said
    expected = cohen_kappa_score([1] * 12, [2] * 6 + [1] * 6)
    assert f"Cohen's kappa {expected:.2f}" in said
    for row in rows(course, ASSIGNMENT):
        assert (row.scores["essay"][0], row.scores["task"][0], row.to_read) == (1, 1, 0)
    assert comments_by_hand(course.config().CourseDirectory.db_url, ASSIGNMENT)["student1"]["essay"] == "Why?"
    noted = [entry.said for entry in RunState(course, ASSIGNMENT).audit.entries()[0]]
    assert len(noted) == 24
    assert {one["by"] for one in noted} == {"mary", "john"}
    assert "0 new marks" in take(course, ASSIGNMENT, files)
    assert "  essay (6 answers): Cohen's kappa " in said
    assert len((course.reports(ASSIGNMENT) / "agreement.csv").read_text().splitlines()) == 3


def test_agreement_is_told_for_each_question_and_each_criterion_of_a_rubric():
    draw = random.Random(5)
    parts = {"task": (4, ""), "essay": (3, ""), "rows": (2, "essay"), "reason": (1, "essay")}
    said = {
        name: [(draw.choice([0, most]), draw.choice([0, most])) for _ in STUDENTS] for name, (most, _) in parts.items()
    }
    said["essay"] = [(a + b, c + d) for (a, c), (b, d) in zip(said["rows"], said["reason"], strict=True)]
    found = []
    for n, student in enumerate(STUDENTS):
        first, second = ({name: float(said[name][n][who]) for name in ("rows", "reason")} for who in (0, 1))
        for question, criteria in (("task", ({}, {})), ("essay", (first, second))):
            share = Share("code", "john", student, question, 4, second=True)
            both = (Given(points, its) for points, its in zip(said[question][n], criteria, strict=True))
            found.append(Pair(share, *both))
    table = list(csv.DictReader(agreement_table(found).decode().splitlines()))
    names = [("essay", ""), ("essay", "reason"), ("essay", "rows"), ("task", "")]
    assert [(row["question"], row["criterion"]) for row in table] == names
    for row, (question, criterion) in zip(table, names, strict=True):
        marks = said[criterion or question]
        for column, weights in (("kappa", None), ("kappa with quadratic weights", "quadratic")):
            expected = cohen_kappa_score(*zip(*marks, strict=True), weights=weights)
            assert float(row[column]) == pytest.approx(expected, abs=5e-4)
        assert row["answers marked twice"] == "6"
    assert f"  essay: reason (6 answers): Cohen's kappa {float(table[1]['kappa']):.2f}" in "\n".join(compared(found))
    (alone,) = csv.DictReader(agreement_table(found[:1]).decode().splitlines())
    assert (alone["question"], alone["kappa"]) == ("task", ""), "one answer is too few"


def test_a_wrong_line_is_named_and_nothing_is_written(course):
    divide(course, ASSIGNMENT, ["mary"], "student", 0)
    file = fill_in(course, "mary", lambda share: 3.5 if share.question == "essay" else 1)
    with pytest.raises(GradingError, match=r"mary.csv, line 2: the mark is '3.5'; expected a number from 0 to 3"):
        take(course, ASSIGNMENT, [file])
    assert {row.to_read for row in rows(course, ASSIGNMENT)} == {2}
    with pytest.raises(GradingError, match="two or more assistants"):
        divide(course, ASSIGNMENT, ["mary"], "student", 0.2)
    with pytest.raises(GradingError, match="cannot be the name of a file"):
        divide(course, ASSIGNMENT, ["../mary"], "student", 0)
