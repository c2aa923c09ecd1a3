"""Other ways to grade: through nbgrader's own command, which gives the same grades, and on a dask cluster.

test_cluster_faults.py tests that a cluster gives the same grades.
"""

import os
import shutil
import subprocess
import sys

import pytest
from tiny import ELSEWHERE

from grading import pool
from grading._untyped import read_notebook
from grading.report import rows
from grading.run import How, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def here(tiny, boxes):
    """The class, graded on this machine."""
    for student, edits in ELSEWHERE.items():
        tiny.submit(student, **edits)
    run(tiny, "tiny", pool=boxes)
    return tiny, grades(tiny)


def grades(course):
    return {
        row.outcome.student: (row.outcome.verdict, row.scores, row.outcome.findings) for row in rows(course, "tiny")
    }


def test_what_is_sent_to_a_worker_is_a_notebook_and_inputs(here, boxes, monkeypatch):
    course, _ = here
    packed = []
    monkeypatch.setattr(pool.Boxes, "submit", lambda self, tasks: packed.append(pool._packed(tasks)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(course, "tiny", ["right"], How(regrade=True), pool=boxes)
    assert "query @ np.swapaxes" in packed[0]
    for secret in ("expected", "mistake", "points", "hint", "By hand", "worked by hand", str(course.folder)):
        assert secret not in packed[0]


def test_without_a_scheduler_it_says_how_to_start_one(tiny):
    from grading.course import GradingError

    tiny.submit("right")
    with pytest.raises(GradingError, match="dask scheduler"):
        run(tiny, "tiny", how=How(scheduler="tcp://127.0.0.1:9"))


def test_nbgraders_own_command_gives_the_same_grades(here, tmp_path):
    course, expected = here
    folder = tmp_path / "class"
    shutil.copytree(course.folder, folder)
    for made in ("autograded", "feedback"):
        shutil.rmtree(folder / made)
    (folder / "submitted" / "partly" / "tiny" / "page.html").write_text("<script>1</script>")
    for name in (".stray.ipynb", "[a]/stray.ipynb"):  # which nbgrader copies, and sanitizes none of them
        stray = folder / "submitted" / "partly" / "tiny" / name
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("{}")
    root = tmp_path / "repository"
    shutil.copytree(course.root, root)
    (root / "exercises" / "tiny").mkdir(parents=True)
    (root / "exercises" / "tiny" / "tiny.ipynb").write_text("somebody's work, which is no template")
    place = os.environ | {"ATTENTION_CLASS": str(folder)}
    nbgrader = [sys.executable, "-m", "nbgrader"]
    for command in ("autograde", "generate_feedback"):
        done = subprocess.run(
            [*nbgrader, command, "tiny", "--force"], cwd=root, env=place, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    again = type(course).at(root, folder)
    assert {name: each[1] for name, each in grades(again).items()} == {name: each[1] for name, each in expected.items()}
    stored = [path for path in (folder / "autograded").rglob("*") if path.is_file()]
    assert {path.name for path in stored} == {"tiny.ipynb"}
    shown = [
        output
        for cell in read_notebook(folder / "autograded" / "shows" / "tiny" / "tiny.ipynb").cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert shown[0].data["text/html"] == "<b>seen</b>"
    assert "full-transpose" in (folder / "autograded" / "partly" / "tiny" / "tiny.ipynb").read_text()
    assert "1.5 of 2 points" in (folder / "feedback" / "partly" / "tiny" / "tiny.html").read_text()
