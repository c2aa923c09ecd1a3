"""A student's notebook can be checked from the shell: the same reports, and an exit code."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from attnlib.checks import listeners
from attnlib.checks.__main__ import main

ROOT = Path(__file__).parents[2]
SOLUTION = ROOT / "solutions" / "02-self-attention" / "self-attention.ipynb"
RELEASED = ROOT / "exercises" / "02-self-attention" / "self-attention.ipynb"
IMPORTS = "import numpy as np\nfrom attnlib.checks import check"
DOT = "def dot(query, key):\n    return query @ np.swapaxes(key, -1, -2)"


def notebook(path, *cells, marks=False):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    path.write_text(("\ufeff" if marks else "") + nbformat.writes(book), encoding="utf-8")
    return str(path)


def test_all_right_is_exit_code_0(tmp_path, capsys):
    assert main([notebook(tmp_path / "a.ipynb", IMPORTS, DOT, "check('dot', dot, points=2)")]) == 0
    said = capsys.readouterr().out
    assert "✓ dot: right · 2 of 2 points" in said
    assert said.endswith("a.ipynb: 1 of 1 checks passed, 2 of 2 points\n")
    assert not listeners


def test_one_wrong_is_exit_code_1_and_the_report_is_the_same_as_in_the_notebook(tmp_path, capsys):
    wrong = DOT.replace("query @ np.swapaxes(key, -1, -2)", "query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5")
    assert main([notebook(tmp_path / "a.ipynb", IMPORTS, wrong, "check('dot', dot, points=2)")]) == 1
    said = capsys.readouterr().out
    assert "Reread:" in said
    assert "0 of 1 checks passed" in said


def test_without_torch_what_needs_it_is_left_out_and_says_how_to_install_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("attnlib.checks.browser.find_spec", lambda name: None)
    cells = (
        "import torch\n\ndef dot_torch(query, key):\n    return query @ key.mT",
        "check('dot', dot_torch, points=3)",
    )
    assert main([notebook(tmp_path / "a.ipynb", IMPORTS, DOT, "check('dot', dot, points=2)", *cells)]) == 1
    said = capsys.readouterr().out
    assert "pip install 'attnlib[torch]'" in said
    assert said.endswith("a.ipynb: 1 of 2 checks passed, 2 of 5 points; 1 of the checks could not be run\n")


def test_a_library_that_is_missing_is_named_with_the_extra_that_installs_it(tmp_path, capsys, monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    cells = (IMPORTS, DOT, "from matplotlib import pyplot as plt", "import a_module_of_mine", "check('dot', dot)")
    assert main([notebook(tmp_path / "a.ipynb", *cells)]) == 1
    said = capsys.readouterr().out
    assert said.count("pip install") == 1
    assert "line 1, in <module>\n    from matplotlib import pyplot as plt\nModuleNotFoundError: " in said
    assert "\nTo install what is missing, run pip install 'attnlib[plot]'.\n" in said
    assert said.endswith("1 of 1 checks passed, 1 of 1 point; cells 3, 4 raised an error outside of a check\n")


def test_the_solutions_pass_and_a_notebook_as_released_does_not_and_says_so_kindly(capsys):
    assert main([str(SOLUTION)]) == 0
    capsys.readouterr()
    assert main([str(RELEASED)]) == 1
    said = capsys.readouterr().out
    assert "not written yet" in said
    assert "Traceback" not in said


def test_what_only_ipython_knows_is_left_out_and_python_is_left_alone(tmp_path, capsys):
    cells = [
        "%matplotlib inline\n!pip list\nx = 1\ndisplay(x, 'shown')",
        "y = (7\n     % 4)\nprint('y is', y)",
        IMPORTS,
        DOT,
        "check('dot', dot)",
    ]
    assert main([notebook(tmp_path / "a.ipynb", *cells)]) == 0
    assert "y is 3" in capsys.readouterr().out


def test_an_error_in_a_cell_shows_the_student_s_line_and_the_next_cell_runs(tmp_path, capsys):
    cells = [IMPORTS, "a = 1\nb = a / 0", DOT, "check('dot', dot)", "raise SystemExit"]
    assert main([notebook(tmp_path / "a.ipynb", *cells)]) == 1
    said = capsys.readouterr().out
    assert "b = a / 0" in said
    assert "cell 2 of a.ipynb" in said
    assert "notebook.py" not in said
    assert "1 of 1 checks passed, 1 of 1 point; cells 2, 5 raised an error outside of a check" in said


def test_what_keeps_a_check_from_being_run_takes_nothing_off_the_total(tmp_path, capsys):
    cells = [
        IMPORTS,
        DOT.replace(":", "", 1),
        "check('dot', dot, points=2)",
        "check('dot', dot, points=0.5)\nx = = 1",
        DOT,
        "check('dot', dot, points=4)",
        "# check('dot', dot, points=8)",
    ]
    assert main([notebook(tmp_path / "a.ipynb", *cells)]) == 1
    said = capsys.readouterr().out
    for wrong in (2, 3, 4):
        assert f"✗ cell {wrong} of a.ipynb: " in said
    assert "1 of 3 checks passed, 4 of 6.5 points; 2 of the checks could not be run; cells 2, 3, 4 raised" in said


def test_a_syntax_error_in_a_released_notebook_leaves_its_total_what_the_solution_earns(tmp_path, capsys):
    book = nbformat.read(RELEASED, as_version=4)
    (cell,) = (cell for cell in book.cells if "def softmax(" in cell.source)
    cell.source = cell.source.replace("def softmax(", "def softmax((")
    nbformat.write(book, tmp_path / "a.ipynb")
    main([str(SOLUTION), str(tmp_path / "a.ipynb")])
    said = capsys.readouterr().out
    assert said.count(" of 23 points") == 2
    assert "; 3 of 3 questions answered, to be graded" in said
    assert "; 0 of 3 questions answered, to be graded" in said


def test_a_check_that_a_student_calls_again_for_a_hint_is_not_counted_again(tmp_path, capsys):
    book = nbformat.read(SOLUTION, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("check('softmax', softmax, hint=2)", id="again"))
    nbformat.write(book, tmp_path / "a.ipynb")
    assert main([str(tmp_path / "a.ipynb")]) == 0
    said = capsys.readouterr().out
    assert said.count("✓ softmax: right") == 2
    assert said.endswith("8 of 8 checks passed, 23 of 23 points; 3 of 3 questions answered, to be graded\n")


@pytest.mark.parametrize(
    ("started", "called"),
    [
        ("/somewhere/bin/attnlib-check", "attnlib-check"),
        ("/somewhere/attnlib/checks/__main__.py", "python -m attnlib.checks"),
    ],
)
def test_the_usage_line_calls_the_command_as_it_was_started(started, called, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [started])
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out.startswith(f"usage: {called} [-h]")


# The clock of the cell has to run already; it is set forward, so that the test takes no longer on a busy machine.
ENDLESS = """\
import signal

def dot(query, key):
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        try:
            key = query
        except Exception:
            pass
"""


def test_an_endless_loop_is_stopped_and_it_says_where_it_is_and_how_to_give_it_longer(tmp_path, capsys):
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0] > 0
    path = notebook(tmp_path / "a.ipynb", IMPORTS, ENDLESS, "check('dot', dot, points=2)", "print('the last cell')")
    assert main([path, "--timeout", "600"]) == 1
    said = capsys.readouterr().out
    assert "✗ cell 3 of a.ipynb: " in said
    assert 'File "<cell 2 of a.ipynb>"' in said
    assert "stopped after 600 s" in said
    assert "--timeout 6000" in said
    assert "the last cell" in said
    assert "0 of 1 checks passed, 0 of 2 points; 1 of the checks could not be run; cell 3 raised an error" in said
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0] > 0) == before


def test_where_there_are_no_interval_timers_cells_run_without_a_limit(tmp_path, capsys, monkeypatch):
    monkeypatch.delattr(signal, "setitimer")
    assert main([notebook(tmp_path / "a.ipynb", IMPORTS, DOT, "check('dot', dot)")]) == 0


@pytest.mark.parametrize(
    ("source", "told"), [("my_answer = b  # ?", True), ("x = b", False), ("my_answer = 1 / 0", False)]
)
def test_an_answer_without_quotation_marks_is_told_that_it_needs_them(tmp_path, capsys, source, told):
    assert main([notebook(tmp_path / "a.ipynb", source)]) == 1
    assert ('write "B", with the quotation marks' in capsys.readouterr().out) == told


def test_a_notebook_without_a_check_is_not_called_right(tmp_path, capsys):
    assert main([notebook(tmp_path / "a.ipynb", "1 + 1")]) == 1
    assert "no check was run" in capsys.readouterr().out


def test_a_byte_order_mark_does_not_matter(tmp_path, capsys):
    assert main([notebook(tmp_path / "a.ipynb", IMPORTS, DOT, "check('dot', dot)", marks=True)]) == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cells": 3}', "hello", json.dumps({"cells": [{"source": "x"}]})])
def test_what_is_no_notebook_is_refused_in_one_line(tmp_path, capsys, text):
    path = tmp_path / "a.ipynb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main([str(path)])
    assert "is not a notebook" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "missing.ipynb")])
    assert "missing.ipynb" in capsys.readouterr().err


def test_the_report_counts_what_mistakes_are_called(capsys):
    assert main(["report", "dot", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "dot: " in said
    assert "transposed" in said
    assert "2 of 2" in said


@pytest.mark.parametrize(
    "arguments", [["report", "nothing"], ["report", "--seeds", "0"], ["a.ipynb", "--timeout", "0"], []]
)
def test_a_request_that_cannot_be_met_is_refused(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


def test_it_is_a_command(tmp_path):
    path = notebook(tmp_path / "a.ipynb", IMPORTS, DOT, "check('dot', dot)")
    run = subprocess.run([sys.executable, "-m", "attnlib.checks", path], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "✓ dot: right" in run.stdout
