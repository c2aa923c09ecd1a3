"""Every assignment through nbgrader: the solutions earn everything, an untouched notebook nothing, and it is told so.

``nbgrader validate``, which students run themselves, has to agree with the grading.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from _tools.forked_python import forked_python
from nbformat import NotebookNode

from attnlib.checks.report import MIME_TYPE
from grading._untyped import is_grade
from grading.course import Course
from grading.graded_cell import is_autograded
from grading.report import Row, rows
from grading.run import How, run
from grading.sandbox.limits import Limits

# On a very busy machine, grading a whole assignment can take more than a quarter of an hour.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = Course.at(ROOT).assignments()
CPU_SECONDS = 120  # seconds of processor time that a notebook may take, or its verdict is not "graded"
STUDENTS = ("blank", "solver")
# Together, these have every kind of check: for NumPy and for torch, of a function, a choice, a class and tests. All
# assignments are graded in this file, and the NumPy half of each also runs in test_in_a_browser.py.
ALSO_VALIDATED = ("02-self-attention", "07-transformer", "09-slips")
VALIDATED = re.compile(r"VALIDATION FAILED ON (\d+) CELL|(Success)! Your notebook passes all the tests")
# Modules that notebooks take long to import, except pyplot, which adapts itself to the notebook that imports it.
IMPORTED = ("torch", "matplotlib.figure", "matplotlib.backends.backend_agg", "attnlib.checks", "ipykernel.kernelapp")
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


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory) -> dict[str, Course]:
    """A class for each assignment, in which nothing has been graded yet."""
    return {assignment: submissions(assignment, tmp_path_factory.mktemp(assignment)) for assignment in ASSIGNMENTS}


def submissions(assignment: str, folder: Path) -> Course:
    course = Course.at(ROOT, folder)
    (name,) = course.notebooks(assignment)
    released = nbformat.read(ROOT / "exercises" / assignment / name, as_version=4)
    solved = {
        cell.id: cell.source for cell in nbformat.read(ROOT / "solutions" / assignment / name, as_version=4).cells
    }
    for student in STUDENTS:
        folder = course.submitted(student, assignment)
        folder.mkdir(parents=True)
        for cell in released.cells:
            if student == "solver" and cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = solved[cell.id]
        nbformat.write(released, folder / name)
    return course


@pytest.fixture(scope="module", params=ASSIGNMENTS)
def graded(request, handed_in, boxes) -> Graded:
    assignment, course = request.param, handed_in[request.param]
    run(course, assignment, how=How(limits=Limits(cell=CPU_SECONDS, notebook=CPU_SECONDS), pages=False), pool=boxes)
    return Graded(course, assignment, {row.outcome.student: row for row in rows(course, assignment)})


@pytest.fixture(scope="module")
def validated(handed_in, tmp_path_factory) -> dict[str, list[str]]:
    """What ``nbgrader validate`` says about both notebooks of an assignment: how many cells fail, or that none do."""
    folder = tmp_path_factory.mktemp("validated")
    files = []
    for assignment in ALSO_VALIDATED:
        for student in STUDENTS:
            (file,) = handed_in[assignment].submitted(student, assignment).glob("*.ipynb")
            files.append(shutil.copy(file, folder / f"{assignment}-{student}.ipynb"))
    # On a busy machine, a cell may take longer than the 30 seconds that nbgrader gives it.
    command = [sys.executable, "-m", "nbgrader", "validate", "--Execute.timeout=600", *(file.name for file in files)]
    with forked_python(*IMPORTED) as python:
        kernel = {"argv": [*python, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}
        (folder / "kernels" / "python3").mkdir(parents=True)
        (folder / "kernels" / "python3" / "kernel.json").write_text(json.dumps(kernel | {"display_name": "Python 3"}))
        environment = os.environ | {"JUPYTER_PATH": str(folder)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    said = [failed or success for failed, success in VALIDATED.findall(done.stdout)]
    assert len(said) == len(files), done.stdout + done.stderr
    return {assignment: [said.pop(0) for _ in STUDENTS] for assignment in ALSO_VALIDATED}


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


@pytest.mark.parametrize("assignment", ALSO_VALIDATED)
def test_nbgrader_validate_agrees(assignment, handed_in, validated):
    (file,) = handed_in[assignment].submitted("blank", assignment).glob("*.ipynb")
    graded = [cell for cell in nbformat.read(file, as_version=4).cells if is_grade(cell)]
    assert validated[assignment] == [str(len(graded)), "Success"]
