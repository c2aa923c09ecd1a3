"""What solves an exercise by itself earns nothing, in whatever way; the rest of its library may be used."""

import nbformat
import pytest
from tiny import QUESTIONS

from grading.report import rows
from grading.run import run

pytestmark = pytest.mark.slow

RIGHT = QUESTIONS["one"][1]
WRITTEN = "does what this exercise asks you to write"
SHORTCUTS = {
    "attnlib": ("import attnlib\none = attnlib.softmax", f"attnlib's softmax {WRITTEN}"),
    "torch-in-c": (
        "import torch\ndef one(x, axis=-1):\n    return torch.from_numpy(x).softmax(axis).numpy()",
        f"torch's softmax {WRITTEN}",
    ),
    "torch-taken-before": (
        "import torch\nf = torch.softmax\ndef one(x, axis=-1):\n    return f(torch.from_numpy(x), axis).numpy()",
        f"torch's softmax {WRITTEN}",
    ),
    "scipy": ("from scipy.special import softmax as one", f"scipy's softmax {WRITTEN}"),
    "scipy-inside": (
        "def one(x, axis=-1):\n    from scipy.special import softmax\n    return softmax(x, axis)",
        f"scipy's softmax {WRITTEN}",
    ),
    "scipy-unsaid": (
        "import importlib\ndef one(x, axis=-1):\n"
        "    return importlib.import_module('sci' + 'py.special').softmax(x, axis)",
        "import of scipy.special halted",
    ),
}
HONEST = {
    "other-of-scipy": "from scipy.special import expit\n" + RIGHT.replace("):\n    ", "):\n    expit(0.0)\n    "),
    "other-of-scipy-inside": RIGHT.replace("):\n    ", "):\n    from scipy.special import expit\n    expit(0.0)\n    "),
    "other-of-torch": "import torch\n" + RIGHT.replace("):\n    ", "):\n    torch.ones(2).exp().sum()\n    "),
}


@pytest.fixture(scope="module")
def graded(tiny, boxes):
    for student, (source, _) in SHORTCUTS.items():
        tiny.submit(student, answer_one=source)
    for student, source in HONEST.items():
        tiny.submit(student, answer_one=source)
    run(tiny, "tiny", pool=boxes)
    return {row.outcome.student: row for row in rows(tiny, "tiny")}


@pytest.mark.parametrize("student", SHORTCUTS)
def test_a_shortcut_earns_nothing_and_is_told_why(tiny, graded, student):
    assert graded[student].outcome.verdict == "graded"
    assert graded[student].scores["check-one"] == (0, 2)
    assert graded[student].scores["check-two"] == (2, 2)
    (file,) = tiny.autograded(student, "tiny").glob("*.ipynb")
    (cell,) = (cell for cell in nbformat.read(file, as_version=4).cells if cell.id == "check-one")
    assert SHORTCUTS[student][1] in cell.outputs[0].data["text/plain"]


@pytest.mark.parametrize("student", HONEST)
def test_what_else_is_in_the_same_library_may_be_used(graded, student):
    assert graded[student].scores["check-one"] == (2, 2)
