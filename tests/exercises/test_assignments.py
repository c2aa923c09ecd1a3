"""The released notebooks are those that the solutions generate, give nothing away, and can be solved."""

import ast
import logging
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from attnlib.checks import exercises
from attnlib.checks.book_links import LOCAL_BOOK
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.exercise import Section
from attnlib.checks.mutation.targets import TARGETS
from grading.course import Course
from grading.release import release

COURSE = Course.at(Path(__file__).parents[2])
ASSIGNMENTS = COURSE.assignments()
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"

pytestmark = pytest.mark.parametrize("assignment", ASSIGNMENTS)


def read(folder: str, assignment: str) -> NotebookNode:
    (file,) = (COURSE.root / folder / assignment).glob("*.ipynb")
    return nbformat.read(file, as_version=4)


def nbgrader(cell: NotebookNode) -> dict:
    return cell.metadata.get("nbgrader", {})


def checks(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if nbgrader(cell).get("grade") and cell.cell_type == "code"]


def answers(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if nbgrader(cell).get("solution")]


def solution_lines(cell: NotebookNode) -> set[str]:
    """Return what stands between BEGIN and END SOLUTION, or everything where there is no such mark."""
    lines = cell.source.split("\n")
    marks = [i for i, line in enumerate(lines) if "BEGIN SOLUTION" in line or "END SOLUTION" in line]
    inside = lines if not marks else [x for a, b in zip(marks[::2], marks[1::2], strict=True) for x in lines[a + 1 : b]]
    return {line.strip() for line in inside if len(line.strip()) > 3}


def test_exercises_are_what_the_solutions_generate_byte_for_byte(assignment, tmp_path):
    # The class's folder is a temporary one too: reading the configuration makes it.
    made = release(Course.at(COURSE.root, tmp_path / "class"), assignment, tmp_path, logging.getLogger(__name__))
    committed = COURSE.root / "exercises" / assignment
    names = sorted(path.name for path in committed.iterdir() if not path.name.startswith("."))
    assert names == sorted(path.name for path in made.iterdir())
    for name in names:
        assert (made / name).read_bytes() == (committed / name).read_bytes(), (
            f"run: python -m grading release {assignment}"
        )


def test_no_line_of_a_solution_is_released(assignment):
    released = "\n".join(cell.source for cell in read("exercises", assignment).cells)
    given = {line.strip() for line in released.split("\n")}
    for cell in answers(read("solutions", assignment)):
        assert not solution_lines(cell) & given
    assert "SOLUTION" not in released


def test_every_answer_starts_as_a_stub(assignment):
    for cell in answers(read("exercises", assignment)):
        if cell.cell_type == "code":
            assert STUB in re.sub(r"\n +", "\n", cell.source)
            assert cell.source.rstrip().endswith("raise NotImplementedError()")
        else:
            assert cell.source == "YOUR ANSWER HERE"


@pytest.mark.parametrize("folder", ["solutions", "exercises"])
def test_a_notebook_carries_no_outputs_and_no_traces_of_a_machine(assignment, folder):
    notebook = read(folder, assignment)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.keys() == {"kernelspec"}
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert nbgrader(cell).get("grade_id", cell.id) == cell.id


def test_a_check_is_one_call_and_its_points_are_those_of_the_gradebook(assignment):
    for cell in checks(read("solutions", assignment)):
        (statement,) = ast.parse(cell.source).body
        assert isinstance(statement, ast.Expr)
        call = statement.value
        assert isinstance(call, ast.Call)
        known = {"check": exercises(), "check_choice": QUESTIONS, "check_tests": TARGETS}[ast.unparse(call.func)]
        assert ast.literal_eval(call.args[0]) in known
        points = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}["points"]
        assert points == nbgrader(cell)["points"]
        assert nbgrader(cell)["locked"]
        assert not nbgrader(cell)["solution"]


def test_the_title_lists_the_points_of_all_questions(assignment):
    notebook = read("solutions", assignment)
    rows = [line.split("|")[-2].strip() for line in notebook.cells[0].source.split("\n") if line.startswith("| ")]
    listed = [int(points) for points in rows if points.isdecimal()]
    assert listed == [nbgrader(cell)["points"] for cell in notebook.cells if nbgrader(cell).get("grade")]


LENGTH = re.compile(r"^\*(\d+) minutes · (easy|medium|hard)( · optional)?\*$", re.MULTILINE)


def test_every_task_states_minutes_and_difficulty_and_they_sum_to_what_the_title_says(assignment):
    tasks = [cell.source for cell in read("solutions", assignment).cells if re.match(r"## \d+\. ", cell.source)]
    lengths = [LENGTH.findall(source) for source in tasks]
    assert all(len(found) == 1 for found in lengths), "one line below the heading of each task"
    assert all(LENGTH.match(source.split("\n")[2]) for source in tasks)
    (stated,) = re.findall(
        r"Allow about (\d+) minutes", " ".join(read("solutions", assignment).cells[0].source.split())
    )
    assert sum(int(minutes) for ((minutes, _, optional),) in lengths if not optional) == int(stated)


def test_no_single_line_is_worth_three_points(assignment):
    for cell, check in answered(read("solutions", assignment)):
        written = [line for line in solution_lines(cell) if not line.startswith("#")]
        assert len(written) > 1 or nbgrader(check)["points"] < 3, cell.id


def answered(notebook: NotebookNode) -> list[tuple[NotebookNode, NotebookNode]]:
    """Return each answer in code together with the check that comes after it."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    pairs = pairwise(code)
    return [(cell, check) for cell, check in pairs if nbgrader(cell).get("solution") and nbgrader(check).get("grade")]


def test_every_section_to_reread_is_a_link_to_a_heading_of_its_chapter(assignment):
    hints = [cell.source for cell in read("exercises", assignment).cells if "Reread" in cell.source]
    assert len(hints) >= 6
    for hint in hints:
        said = " ".join(hint.partition("Reread")[2].partition("\n\n")[0].split())
        named = re.findall(r"“([^”]+)”", said)
        assert named == re.findall(r"\[“([^”]+)”\]", said), "the heading of a section is in brackets"
        links = dict(re.findall(r"^\[“(.+)”\]: (.+)$", hint, re.MULTILINE))
        assert links.keys() == set(named)
        for heading, link in links.items():
            file = link.removeprefix(LOCAL_BOOK).partition(".html#")[0] + ".md"
            assert link == LOCAL_BOOK + Section(file, "", heading).link
            assert f"# {heading}\n" in (COURSE.root / file).read_text(encoding="utf-8")
