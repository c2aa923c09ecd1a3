"""Every assignment through nbgrader: the solutions earn everything, an untouched notebook nothing, and it is told so.

``nbgrader validate``, which students run themselves, has to agree with the grading.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from attnlib.checks.report import MIME_TYPE
from grading.course import Course
from grading.graded_cell import is_autograded
from grading.report import Row, rows
from grading.run import How, run
from grading.sandbox.limits import Limits

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = Course.at(ROOT).assignments()
CPU_SECONDS = 120  # seconds of processor time that a notebook may take, or its verdict is not "graded"
UNDONE = {"not written yet", "not answered yet"}


@dataclass(frozen=True)
class Graded:
    """An assignment that two have handed in: one with the solutions in it, one as it was released."""

    course: Course
    assignment: str
    rows: dict[str, Row]

    def notebook(self, student: str) -> NotebookNode:
        (file,) = self.course.autograded(student, self.assignment).glob("*.ipynb")
        return nbformat.read(file, as_version=4)

    def submitted(self, student: str) -> Path:
        (file,) = self.course.submitted(student, self.assignment).glob("*.ipynb")
        return file


@pytest.fixture(scope="module", params=ASSIGNMENTS)
def graded(request, tmp_path_factory, boxes) -> Graded:
    assignment = request.param
    course = Course.at(ROOT, tmp_path_factory.mktemp(assignment))
    (name,) = course.notebooks(assignment)
    released = nbformat.read(ROOT / "exercises" / assignment / name, as_version=4)
    solved = {
        cell.id: cell.source for cell in nbformat.read(ROOT / "solutions" / assignment / name, as_version=4).cells
    }
    for student in ("blank", "solver"):
        folder = course.submitted(student, assignment)
        folder.mkdir(parents=True)
        for cell in released.cells:
            if student == "solver" and cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = solved[cell.id]
        nbformat.write(released, folder / name)
    run(course, assignment, how=How(limits=Limits(cell=CPU_SECONDS, notebook=CPU_SECONDS)), pool=boxes)
    return Graded(course, assignment, {row.outcome.student: row for row in rows(course, assignment)})


def test_the_solutions_earn_every_point_that_no_person_gives(graded):
    row = graded.rows["solver"]
    assert row.outcome.verdict == "graded"
    assert row.outcome.findings == ()
    checked = [cell for cell in graded.notebook("solver").cells if is_autograded(cell)]
    assert checked
    for cell in checked:
        (report,) = (output.data[MIME_TYPE] for output in cell.outputs if MIME_TYPE in output.get("data", {}))
        assert report["passed"], report["message"]
        assert row.scores[cell.metadata.nbgrader["grade_id"]] == (cell.metadata.nbgrader["points"],) * 2


def test_the_solutions_run_without_an_error_and_without_a_warning(graded):
    outputs = [output for cell in graded.notebook("solver").cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.output_type == "stream" and "Warning" in output.text]


def test_an_untouched_notebook_earns_nothing_and_is_told_so_kindly(graded):
    row = graded.rows["blank"]
    assert row.outcome.verdict == "graded"
    assert row.score == 0
    assert row.outcome.findings
    assert {finding.title for finding in row.outcome.findings} == UNDONE & {f.title for f in row.outcome.findings}


def test_given_cells_survive_answers_that_are_not_there(graded):
    for cell in graded.notebook("blank").cells:
        nbgrader = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and nbgrader.get("locked") and not nbgrader.get("grade"):
            errors = [output.evalue for output in cell.outputs if output.output_type == "error"]
            assert not errors, f"{cell.id} raises: {errors}"


def test_nbgrader_validate_agrees(graded, tmp_path):
    students = ("blank", "solver")
    for student in students:
        shutil.copy(graded.submitted(student), tmp_path / f"{student}.ipynb")
    command = [sys.executable, "-m", "nbgrader", "validate", *(f"{student}.ipynb" for student in students)]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    blank, success, after = said.partition("Success! Your notebook passes all the tests.")
    failed = re.findall(r"VALIDATION FAILED ON (\d+) CELL", blank)
    cells = graded.notebook("blank").cells
    assert failed == [str(sum(cell.metadata.get("nbgrader", {}).get("grade", False) for cell in cells))]
    assert success
    assert not after.strip()
