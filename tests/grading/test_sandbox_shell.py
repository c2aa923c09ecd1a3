"""A cell shows in the box what it shows in a notebook: compared with a real kernel, which nbclient runs."""

import os
import re
import sys
from base64 import b64decode
from collections.abc import Iterator

import nbformat
import pytest
from nbclient import NotebookClient

from grading.sandbox import bubblewrap
from grading.sandbox.execute import execute
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.task import Step, Task

pytestmark = pytest.mark.slow

SANDBOXED = sys.platform == "linux" and bubblewrap.shutil.which("bwrap") is not None and bubblewrap.why_not() is None
CELLS = {
    "print": "print('one'); print('two')",
    "both streams": "import sys\nfor f in (sys.stdout, sys.stderr, sys.stdout): print('a', file=f, flush=True)",
    "no newline": "print('x', end='')\nprint('y')",
    "expression": "6 * 7",
    "semicolon": "6 * 7;",
    "semicolon and comment": "6 * 7;  # quiet",
    "none": "None",
    "unicode": "print('Größe → 大 😀'); 'é'",
    "array": "import numpy as np\nnp.eye(3)",
    "tensor": "import torch\ntorch.ones(2)",
    "long list": "list(range(5000))",
    "huge text": "'x' * 30_000",
    "display": "from IPython.display import HTML, Latex, display\ndisplay(HTML('<b>b</b>')); display(Latex('x'))",
    "display and value": "print('before')\ndisplay(3)\nprint('after')\n4",
    "update": "handle = display('old', display_id='here')\nprint('between')\nhandle.update('new')",
    "clear": "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')",
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "figure without show": "%matplotlib inline\nplt.plot([1, 2]);",
    "figure and print": "plt.plot([1, 3])\nprint('text')",
    "error": "def f(x):\n    return 1 / x\nf(0)",
    "error after print": "print('so far')\nraise ValueError('wrong')",
    "syntax": "print('never'\n",
    "name": "undefined_name",
    "await": "import asyncio\nawait asyncio.sleep(0)\nprint('awaited')",
    "magic": "%%capture caught\nprint('caught')",
    "magic's result": "print(caught.stdout)",
    "system": "!echo shell",
    "last": "_ = 5\nprint(_)",
    "repr with html": "class A:\n    def _repr_html_(self): return '<i>'\n    def __repr__(self): return 'a'\nA()",
    "exit": "raise SystemExit('left')",
}


@pytest.fixture(scope="module")
def box(request) -> Iterator[Host]:
    if SANDBOXED:
        yield request.getfixturevalue("host")
    else:
        with Host(Limits(), sandboxed=False) as bare:
            yield bare


@pytest.fixture(scope="module")
def here(box) -> dict[str, list]:
    """What the cells show in the box, all run in one process."""
    result = execute(box, Task(tuple(Step(name, source) for name, source in CELLS.items()), Limits()))
    assert result.stops == {}
    return {name: result.outputs[i] for i, name in enumerate(CELLS)}


@pytest.fixture(scope="module")
def there() -> dict[str, list]:
    """What the same cells show in a kernel."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    # A kernel shows figures where nobody has chosen another backend for it.
    own = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute(env=own)
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def normal(outputs) -> list:
    """Return outputs in the form that both ways have: streams joined, pictures by their kind, addresses hidden."""
    found: list = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream" and found and found[-1][:2] == (kind, output["name"]):
            found[-1] = (*found[-1][:2], found[-1][2] + output["text"])
        elif kind == "stream":
            found.append((kind, output["name"], output["text"]))
        elif kind == "error":
            found.append((kind, output["ename"], re.sub(r"\(\S+, line", "(WHERE, line", output["evalue"])))
        else:
            texts = {name: re.sub(r"0x[0-9a-f]+", "…", text) for name, text in output["data"].items()}
            found.append((kind, texts | {name: "picture" for name in texts if name == "image/png"}))
    return found


@pytest.mark.parametrize("name", [name for name in CELLS if name != "exit"])
def test_a_cell_shows_what_it_shows_in_a_notebook(here, there, name):
    assert normal(here[name]) == normal(there[name])


WRONG = {"error": "return 1 / x", "error after print": "raise ValueError('wrong')", "name": "undefined_name"}


@pytest.mark.parametrize("name", WRONG)
def test_a_traceback_shows_the_line_and_the_error_that_it_shows_in_a_notebook(here, there, name):
    for outputs in (here[name], there[name]):
        lines = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(outputs[-1]["traceback"])).strip().splitlines()
        assert lines[-1] == f"{outputs[-1]['ename']}: {outputs[-1]['evalue']}"
        assert any(WRONG[name] in line for line in lines)


def test_the_outputs_are_a_valid_notebook(here):
    cells = []
    for name, outputs in here.items():
        kept = [{k: v for k, v in output.items() if k != "display_id"} for output in outputs]
        kept = [o | {"execution_count": 1} if o["output_type"] == "execute_result" else o for o in kept]
        kept = [o if o["output_type"] in ("stream", "error") else {"metadata": {}} | o for o in kept]
        cells.append(nbformat.v4.new_code_cell(CELLS[name], outputs=[nbformat.from_dict(o) for o in kept]))
    nbformat.validate(nbformat.v4.new_notebook(cells=cells))


def test_figures_are_pictures(here):
    for name in ("figure", "figure without show", "figure and print"):
        (picture,) = (o["data"]["image/png"] for o in here[name] if "image/png" in o.get("data", {}))
        assert b64decode(picture).startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def asked(box):
    sources = {
        "input": "input()",
        "getpass": "import getpass\ngetpass.getpass()",
        "breakpoint": "breakpoint()",
        "stdin": "import sys\nprint(repr(sys.stdin.read()))",
        "child": "import subprocess\nprint('one', flush=True)\nsubprocess.run(['echo', 'two'])\nprint('three')",
        "written": "import os\nos.write(1, b'past python\\n'); os.write(2, b'and errors\\n')",
        "bytes": "os.write(1, b'\\xff\\xfe')",
        "bad repr": "class Bad:\n    def __repr__(self): raise ValueError('no text')\nBad()",
        "bad error": "class Worse(Exception):\n    def __str__(self): raise ValueError('none')\nraise Worse",
        "deep": "def f(): return f()\nf()",
        "deep chain": "try:\n    f()\nexcept RecursionError as error: raise ValueError('x') from error",
        "not text": "import sys\nsys.stdout.write(3)",
        "surrogate": "print('\\ud800')",
        "after": "print('after')",
    }
    result = execute(box, Task(tuple(Step(name, source) for name, source in sources.items()), Limits(cell=20)))
    assert result.stops == {}
    return {name: result.outputs[i] for i, name in enumerate(sources)}


@pytest.mark.parametrize("name", ["input", "getpass", "breakpoint"])
def test_whoever_waits_for_a_person_fails_at_once(asked, name):
    (error,) = asked[name]
    assert error["ename"] == "EOFError"
    assert "cannot be used here" in error["evalue"]


def test_what_children_and_libraries_write_is_shown(asked):
    text = "".join(o["text"] for o in asked["child"] if o["output_type"] == "stream")
    assert sorted(text.split()) == ["one", "three", "two"]
    assert "past python\nand errors\n" in "".join(o.get("text", "") for o in asked["written"])
    assert "\N{REPLACEMENT CHARACTER}" in asked["bytes"][-1].get("text", "") + asked["bytes"][0].get("text", "")


def test_there_is_nothing_to_be_read(asked):
    assert normal(asked["stdin"]) == [("stream", "stdout", "''\n")]


def test_what_cannot_be_shown_is_an_error_and_stops_nothing(asked):
    assert asked["bad repr"][-1]["output_type"] in ("error", "stream", "execute_result")
    assert asked["bad error"][-1]["ename"] == "Worse"
    assert asked["deep"][-1]["ename"] == "RecursionError"
    assert asked["deep chain"][-1]["ename"] == "ValueError"
    assert asked["not text"][-1]["ename"] == "TypeError"
    assert normal(asked["after"]) == [("stream", "stdout", "after\n")]
