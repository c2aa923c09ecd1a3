"""Whatever else comes with a notebook, or is done by its code, reaches neither the grader nor anybody else's grade."""

import io
import os
from contextlib import redirect_stderr

import pytest
from nbformat.v4 import new_code_cell
from tiny import runs

from grading._untyped import read_notebook
from grading.report import Row, rows
from grading.run import run

NAMES = ["a*b", "[ab]", " space", "two\nlines", "bidi\u202e", os.fsdecode(b"latin\xff"), "x" * 201]
LIES = """from IPython.display import display
def one():
    for report in (3, {"passed": "no"}, {"passed": False}, {"passed": False, "exercise": 1, "backend": [], "title": 2}):
        display({"application/vnd.attnlib.report+json": report}, raw=True)
    kernel = get_ipython().kernel
    for kind, content in (("display_data", {"data": 3}), ("stream", {"text": 5}), ("comm_open", {}), ("status", {})):
        kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent())
    display({"text/html": 3, "image/png": [1], "text/plain": {"a": 1}}, raw=True)
    return 2.0
"""
LEAVES = """import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
def one(): os._exit(0)
"""
FLOODS = """from IPython.display import display
def one():
    handle = display("x", display_id=True)
    for _ in range(300): handle.update("x" * 10_000)
    return 2.0
"""
LISTS = """import os
def one(): return 2.0 if os.listdir() == ["tiny.ipynb"] else 0.0
"""
CLASS = {
    "right": {},
    "kills": {"answer_one": "import os\ndef one(): os.kill(os.getppid(), 9)"},
    "lies": {"answer_one": LIES},
    "leaves": {"answer_one": LEAVES},
    "updates": {"answer_one": FLOODS},
    "brings": {"answer_one": LISTS},
    "writes": {"answer_one": "import os\ndef one():\n    os.symlink('/dev/zero', 'a.html')\n    return 2.0"},
    "wide": {"answer_one": "#" * 500_001},
    "long": {"answer_one": lambda cell: None},
}


def bring(folder) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "a.html").write_text("<script>")
    (folder / "b.ipynb").write_text("{}")
    (folder / "timestamp.txt").write_text("no time")
    (folder / "attnlib").mkdir()
    (folder / "attnlib" / "__init__.py").write_text("1 / 0")


@pytest.fixture(scope="module")
def said(tiny) -> str:
    for student, edits in CLASS.items():
        tiny.submit(student, **edits)
    bring(tiny.submitted("brings", "tiny"))
    with (tiny.submitted("right", "tiny") / "tiny.ipynb").open("rb") as file:
        tiny.submit_text("heavy", file.read().decode() + " " * 20_000_000)
    tiny.submitted("steals", "tiny").mkdir(parents=True)
    (tiny.submitted("steals", "tiny") / "tiny.ipynb").symlink_to(tiny.submitted("right", "tiny") / "tiny.ipynb")
    long = read_notebook(tiny.submitted("long", "tiny") / "tiny.ipynb")
    long.cells += [new_code_cell("1") for _ in range(500)]
    tiny.submit_notebook("long", long)
    for name in NAMES:
        tiny.submit(name)
    with redirect_stderr(io.StringIO()) as stream:
        run(tiny, "tiny", jobs=2, timeout=20)
    return stream.getvalue()


@pytest.fixture(scope="module")
def graded(tiny, said) -> dict[str, Row]:
    return {row.outcome.student: row for row in rows(tiny, "tiny")}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_nbgrader_cannot_take_is_named_and_stops_nobody(said, graded, name):
    assert f"cannot take the folder's name: {name!a}\n" in said
    assert name not in graded


def test_everybody_else_has_a_row(graded):
    assert graded.keys() == CLASS.keys() | {"heavy", "steals"}
    assert [name for name, row in graded.items() if row.outcome.verdict == "infrastructure"] == ["kills"]


def test_who_kills_the_grader_loses_the_own_grade_alone(graded):
    assert "the process that graded it died" in graded["kills"].outcome.reason
    assert graded["kills"].score == 0


@pytest.mark.parametrize("student", ["right", "lies", "updates", "brings", "writes"])
def test_nothing_that_was_brought_or_shown_costs_marks_or_leads_anywhere(tiny, graded, student):
    assert (graded[student].outcome.verdict, graded[student].score) == ("graded", 6)
    assert not graded[student].outcome.reason
    assert os.listdir(tiny.feedback(student, "tiny")) == ["tiny.html"]
    assert os.listdir(tiny.autograded(student, "tiny")) == ["tiny.ipynb"]


def test_no_finding_is_made_of_a_report_that_is_none(graded):
    assert graded["lies"].outcome.findings == ()


def test_a_link_to_the_notebook_of_another_is_no_submission(graded):
    assert (graded["steals"].outcome.verdict, graded["steals"].score) == ("missing", 0)


def test_no_process_outlives_its_notebook(tiny, graded):
    assert graded["leaves"].outcome.verdict == "crashed"
    pid = int(read_notebook(tiny.autograded("leaves", "tiny") / "tiny.ipynb").cells[0].outputs[0].text)
    assert not runs(pid)


@pytest.mark.parametrize(
    ("student", "reason"),
    [("wide", "characters of text"), ("long", "506 cells"), ("heavy", "bytes, more than 20000000")],
)
def test_what_no_person_would_write_is_not_graded(graded, student, reason):
    assert graded[student].outcome.verdict == "unreadable"
    assert reason in graded[student].outcome.reason
