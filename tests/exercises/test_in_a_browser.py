"""In a browser there is no torch: every notebook runs there from top to bottom, and says what it leaves out."""

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grading.course import Course

pytestmark = pytest.mark.slow

COURSE = Course.at(Path(__file__).parents[2])
NOTEBOOKS = sorted(COURSE.root.glob("solutions/*/*.ipynb"))
TORCH_TASKS = {
    "01-context-vectors": {"bahdanau-torch-check"},
    "02-self-attention": {"torch-attention-check"},
    "03-queries-keys-values": {"torch-attention-check"},
    "04-multi-head": {"module-check"},
    "05-masking": {"torch-check"},
    "06-positions": {"bug-check"},
    "07-transformer": {"multi-head-check", "block-check"},
    "08-decoder": set(),
    "09-slips": set(),
}
SAYS = "There is no PyTorch in a browser."
READ = "from attnlib.checks import check, examine"


def in_a_browser(*notebooks: Path, platform: str = "emscripten") -> list[dict[str, dict]]:
    command = [sys.executable, Path(__file__).with_name("as_in_a_browser.py"), platform, *notebooks]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [{cell["id"]: cell for cell in json.loads(line)} for line in result.stdout.splitlines()]


# Small notebooks, keyed by what they test.
SMALL = {
    "left out": (
        "import numpy as np\nfrom attnlib.checks import check",
        "import math, torch\nx = torch.ones(3)\nprint('e is', round(math.e, 2))",
        "def twice(y):\n    return y + x\n\ndef thrice(x):\n    return 3 * x\n\nprint(thrice(2))",
        "twice(1)",
        "x = 5\nprint('x is', x)",
        "print(x + 1)",
        "try:\n    import torch\nexcept ImportError:\n    print('without')",
        "from attnlib import softmax, torch",
        "def broken(:",
        "x, x = 1, lambda a, a: 2",
    ),
    "not carried": ("import scipy", "import nbgrader", "from matplotlib import pyplot; pyplot.subplots()"),
    "torch": (READ, "check('softmax', lambda x, axis=-1: x, backend='torch', points=3)"),
    "links": (READ, "print(examine('softmax', lambda x, axis=-1: x)._repr_mimebundle_()['text/html'])"),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> dict[Path | str, dict[str, dict]]:
    """The results of every notebook, with right answers and as released, and of the small ones."""
    small = {what: written(tmp_path_factory.mktemp("small"), *cells) for what, cells in SMALL.items()}
    every = {path: path for path in (*NOTEBOOKS, *map(released, NOTEBOOKS))} | small
    return dict(zip(every, in_a_browser(*every.values()), strict=True))


def released(solution: Path) -> Path:
    return COURSE.root / "exercises" / solution.relative_to(COURSE.root / "solutions")


def written(folder: Path, *cells: str) -> Path:
    made = [nbformat.v4.new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(cells)]
    nbformat.write(nbformat.v4.new_notebook(cells=made), folder / "some.ipynb")
    return folder / "some.ipynb"


def graded(notebook: Path) -> dict[str, float]:
    cells = nbformat.read(notebook, as_version=4).cells
    wanted = [c for c in cells if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("grade")]
    return {cell.id: cell.metadata.nbgrader.points for cell in wanted}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_right_answers_earn_all_points_but_those_for_torch_which_say_why(notebook, ran):
    cells = ran[notebook]
    assert {name: cell["error"] for name, cell in cells.items() if cell["error"]} == {}
    torch_tasks = TORCH_TASKS[notebook.parent.name]
    for name, points in graded(notebook).items():
        if name in torch_tasks:
            assert SAYS in cells[name]["said"], name
            assert not cells[name]["earned"]
        else:
            assert SAYS not in cells[name]["said"], name
            if cells[name]["earned"] is None:
                assert "to be graded" in cells[name]["said"], "a multiple-choice question, which only grading answers"
            else:
                assert cells[name]["earned"] == points


def test_the_book_lists_the_tasks_that_are_left_out(ran):
    start = (COURSE.root / "book" / "start.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[\]\(\.\./exercises/(\S+)\) \| ([^(|]*)(?:\([^)]*\))?([^|]*) \|$", start, re.MULTILINE)
    listed = {name: numbers(before + after) for name, before, after in rows}
    assert listed == {str(path.relative_to(path.parents[1])): left_out(path, ran[path]) for path in NOTEBOOKS}


def numbers(listed: str) -> set[int]:
    """Return 1, 2, 3 and 7 for the text "1 to 3, 7"."""
    return {n for a, b in re.findall(r"\b(\d+)(?: to (\d+))?", listed) for n in range(int(a), int(b or a) + 1)}


def left_out(notebook: Path, cells: dict[str, dict]) -> set[int]:
    """Return the numbers of the tasks of which something is left out."""
    found, task = set(), 0
    for cell in nbformat.read(notebook, as_version=4).cells:
        heading = re.match(r"## (\d+)\.", cell.source)
        task = int(heading[1]) if heading else task
        if SAYS in cells.get(cell.id, {"said": ""})["said"]:
            found.add(task)
    return found


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_as_released_misses_its_answers_and_nothing_else(notebook, ran):
    cells = ran[released(notebook)]
    assert {cell["error"] for cell in cells.values()} <= {None, "NotImplementedError", "CheckFailed"}
    for name in TORCH_TASKS[notebook.parent.name]:
        assert cells[name]["error"] is None
        assert SAYS in cells[name]["said"]


def test_what_needs_what_is_not_there_is_left_out_and_the_rest_of_a_cell_runs(ran):
    cells = list(ran["left out"].values())
    texts = [cell["said"] for cell in cells]
    assert [SAYS in text for text in texts] == [False, True, True, True, False, False, False, True, False, False]
    assert "A part of this cell is left out" in texts[1]
    assert texts[1].endswith("e is 2.72\n")
    assert texts[2].endswith("6\n")
    assert "This cell is left out" in texts[3]
    assert texts[4:7] == ["x is 5\n", "6\n", "without\n"]
    assert [cell["error"] for cell in cells] == [None] * 8 + ["SyntaxError"] * 2


def test_what_the_site_does_not_carry_is_not_there(ran):
    errors = [cell["error"] for cell in ran["not carried"].values()]
    assert errors == ["ModuleNotFoundError", "ModuleNotFoundError", None]


def test_a_check_in_torch_says_so_whatever_it_is_given(ran):
    (_, cell) = ran["torch"].values()
    assert (cell["earned"], cell["error"]) == (0.0, None)
    assert cell["said"].startswith(SAYS)


def test_reports_link_to_the_book_that_the_notebook_was_opened_from(ran):
    (_, cell) = ran["links"].values()
    assert "href='https://example.org/course/book/self-attention.html#" in cell["said"]


def test_where_torch_is_not_installed_the_sentence_says_how_to_install_it(tmp_path):
    (cells,) = in_a_browser(written(tmp_path, READ, "import torch\nprint(torch.ones(2))"), platform="linux")
    (_, cell) = cells.values()
    assert cell["error"] is None
    assert cell["said"].startswith("PyTorch is not installed here. This cell is left out, without an error")
    assert "run make torch in the folder of the course, or pip install 'attnlib[torch]'" in cell["said"]


def test_where_there_is_torch_nothing_is_left_out():
    shown = "from attnlib.checks import browser; import IPython; print(browser.without_torch())"
    made = "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance(); "
    after = "import attnlib.checks; print(s.ast_transformers)"
    command = [sys.executable, "-c", f"{made}{after}; {shown}"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["[]", "False"]
