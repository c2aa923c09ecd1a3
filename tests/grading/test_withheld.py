"""What answers an exercise is not in the box before the answers have been collected, and is there afterwards."""

import ast
import json
import marshal
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import nbformat
import pytest
from _tools.forked_python import forked_python
from tiny import QUESTIONS

import attnlib
import attnlib.numpy
from attnlib.checks.catalogue import CATALOGUE
from grading.graded_cell import is_autograded, read_graded_cell
from grading.report import rows
from grading.run import run
from grading.sandbox import payload
from grading.sandbox.withheld import ALL_WITHHELD, ANSWERS, parts, stand_ins, withheld

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "solutions").glob("*/*.ipynb"))

# A program that runs where the box's attnlib is on the path, and gets what a test wants to know.
BEGIN = """
import ast, dis, importlib, inspect, json, sys
import numpy as np
import attnlib, attnlib.numpy
from grading.sandbox.inside.refusals import Withheld
from grading.sandbox.inside.install_withheld import install

told = json.loads(sys.stdin.read())

def find(name):
    module, _, name = name.partition(".")
    return getattr(importlib.import_module(f"attnlib.{module}"), name)
"""


@pytest.fixture(scope="module")
def in_the_box() -> Iterator[Callable[[str, object], list[str]]]:
    """A function that runs a program with the box's attnlib, and nothing else from the repository, on its path."""
    with payload.packed_payload() as folder, forked_python("torch") as python:
        yield partial(lines_of, python, folder)


def lines_of(python: list[str], folder: Path, program: str, told: object) -> list[str]:
    """Run a program with a folder on its path, and return the lines that it prints."""
    (folder / "program.py").write_text(BEGIN + program)
    done = subprocess.run(
        [*python, "-m", "program"],
        input=json.dumps(told),
        env={"PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


CALLING = """
import pkgutil
from pathlib import Path
import attnlib.checks.calling as calling

for module in pkgutil.iter_modules(calling.__path__, "attnlib.checks.calling."):
    importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.startswith("attnlib.checks")))
print(*sorted(path.name for path in Path("attnlib/checks").iterdir() if path.name != "__pycache__"))
"""


def test_of_the_checks_only_the_folder_that_calls_an_implementation_is_in_the_box(in_the_box):
    modules, files = in_the_box(CALLING, None)
    ours = {f"attnlib.checks.calling.{file.stem}" for file in (ROOT / "attnlib/checks/calling").glob("[!_]*.py")}
    assert set(modules.split()) == {"attnlib.checks", "attnlib.checks.calling", *ours}, "it needs nothing else"
    assert files.split() == ["__init__.py", "calling"]


def functions(code) -> set[tuple[bytes, tuple[str, ...]]]:
    """Return the instructions of all functions within code (classes are none), and the names that they use."""
    inner = [one for one in code.co_consts if hasattr(one, "co_code")]
    own = {(one.co_code, one.co_names) for one in inner if len(one.co_names) > 2 and "__qualname__" not in one.co_names}
    return own.union(*map(functions, inner))


# What is withheld ----------------------------------------------------------------------------------------------------


def test_every_exercise_says_what_of_attnlib_answers_it():
    assert set(ANSWERS) == set(CATALOGUE)
    assert len(parts(ALL_WITHHELD)) == len(ALL_WITHHELD)


def test_what_attnlib_has_of_the_exercises_own_name_is_withheld():
    for exercise in CATALOGUE.values():
        thing = getattr(attnlib, exercise.name, None) or getattr(attnlib.numpy, exercise.name, None)
        answered = {name.rpartition(".")[2] for name in ANSWERS[exercise.name]}
        delegates = exercise.name == "scaled_dot_product_attention"  # it checks, and calls what is withheld
        assert thing is None or exercise.name in answered or delegates, exercise.name


@pytest.mark.parametrize("module", sorted({name.partition(".")[0] for name in ALL_WITHHELD}))
def test_a_module_with_stand_ins_can_be_read_and_keeps_its_overloads(module):
    source = (ROOT / "attnlib" / f"{module}.py").read_text()
    made = ast.unparse(ast.parse(stand_ins(module, source)))
    assert "raise Withheld(" in made
    assert made.count(":\n        ...") == ast.unparse(ast.parse(source)).count(":\n        ...")


def test_no_code_of_an_answer_is_in_the_box():
    """Compiled anew, no code object of the box is that of an answer: nothing is there for dis, or for marshal."""
    answers = set().union(*(functions(marshal.loads(b64decode(part["code"]))) for part in parts(ALL_WITHHELD)))
    with payload.packed_payload() as folder:
        there = set().union(*(functions(compile(file.read_text(), "x", "exec")) for file in folder.rglob("*.py")))
        assert not list(folder.rglob("*.pyc"))
    assert len(answers) > 60
    assert not answers & there


CALLS = """
for name in told:
    thing = find(name)
    if inspect.isclass(thing):
        methods = [inspect.unwrap(m) for m in vars(thing).values() if inspect.isfunction(m)]
        ran = [m for m in methods if m.__module__ == thing.__module__ and "Withheld" in m.__code__.co_names]
        print(name, bool(ran))
        continue
    given = inspect.signature(thing).parameters.values()
    wanted = [p for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    try:
        named = {p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY}
        thing(*[None] * (len(wanted) - len(named)), **named)
    except Withheld as error:
        print(name, "until your own answer" in str(error))
"""


def test_what_is_withheld_raises_and_says_why(in_the_box):
    names = sorted(name for name in ALL_WITHHELD if not name.startswith("_torch_kernels"))
    assert in_the_box(CALLS, names) == [f"{name} True" for name in names]


# What comes back -----------------------------------------------------------------------------------------------------

WHOLE = """
before = find("softmax.softmax"), attnlib.numpy.KVCache, attnlib.numpy.TransformerBlock
install(told)
x = np.arange(6.0).reshape(2, 3)
assert before[0] is attnlib.softmax
print(attnlib.softmax(np.log([1.0, 3.0])).tolist())
print(attnlib.self_attention(np.eye(2), mask=attnlib.causal_mask(2))[1][0].tolist())
print(attnlib.multi_head_attention(*[np.eye(4)] * 7, num_heads=2).shape)
cache = before[1]()
cache.append(x[None], x[None])
print(cache.append(x[None], x[None])[0].shape, cache.length)
block = before[2](8, 2, 16)
print(block(np.ones((1, 3, 8), np.float32)).shape)
print(attnlib.alibi_slopes(2).tolist(), attnlib.sinusoidal_positions(3, 4).shape)
print(np.isfinite(attnlib.scaled_dot_product_attention(*[np.ones((600, 4))] * 3)).all())
"""


def test_everything_works_once_it_is_there(in_the_box):
    assert in_the_box(WHOLE, parts(ALL_WITHHELD)) == [
        "[0.25, 0.75]", "[1.0, 0.0]", "(4, 4)", "(1, 4, 3) 4", "(1, 3, 8)", "[0.0625, 0.00390625] (3, 4)", "True"
    ]  # fmt: skip


FAST_LAYERS = """
from attnlib.torch import MultiHeadAttention
from attnlib._torch_unchanged_layers import are_unpatched

stand_in = MultiHeadAttention.forward
install(told)
print(MultiHeadAttention.forward is stand_in, are_unpatched())
MultiHeadAttention.forward = print
install(told)
print(are_unpatched())
"""


def test_the_fast_layers_stay_on_unless_the_student_has_patched_a_layer(in_the_box):
    assert in_the_box(FAST_LAYERS, parts(ALL_WITHHELD)) == ["False True", "False"]


def test_what_another_exercise_asks_stays_withheld(in_the_box):
    free = ALL_WITHHELD - withheld(["attention"])
    (said,) = in_the_box("install(told)\nattnlib.softmax(np.ones(2))\ntry:\n    attnlib.attention(*[np.eye(2)] * 3)\n"
                         "except Withheld as error:\n    print(error)", parts(free))  # fmt: skip
    assert said.startswith("attnlib's attention answers a question in this notebook")


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.parent.name)
def test_no_answer_is_sent_before_the_last_check_of_its_exercise(file):
    cells = [cell for cell in nbformat.read(file, as_version=4).cells if is_autograded(cell)]
    names = [graded_cell.exercise.name if graded_cell.exercise else "" for graded_cell in map(read_graded_cell, cells)]
    for i, name in enumerate(names):
        assert not (ALL_WITHHELD - withheld(names[i:])) & set(ANSWERS.get(name, ()))


# In a graded notebook ------------------------------------------------------------------------------------------------

RIGHT = QUESTIONS["one"][1]
FOLDER = "pathlib.Path(attnlib.__path__[0])"
OURS = "isinstance(f, types.FunctionType) and f.__module__ == 'attnlib._numpy_kernels' and f.__name__ == 'softmax'"
LOOKS = {
    "source": "import inspect\nprint('LOOKED', inspect.getsource(attnlib.softmax))\n",
    "code": "import dis\nprint('LOOKED'); dis.dis(attnlib._numpy_kernels.softmax)\n",
    "files": f"import pathlib\nprint('LOOKED', *[f.read_text() for f in {FOLDER}.glob('*softmax.py')])\n",
    "memory": f"import gc, types\nprint('LOOKED', [f.__code__.co_names for f in gc.get_objects() if {OURS}])\n",
}
COPIES = """import attnlib, pathlib, shutil, sys
shutil.copytree(attnlib.__path__[0], "mine")
for file in pathlib.Path("mine").rglob("*.py"):
    file.write_text(file.read_text().replace("attnlib", "mine"))
sys.path.insert(0, ".")
from mine import softmax as one
"""
COMPARES = "\nimport attnlib\nassert np.allclose(one(np.ones(3)), attnlib.softmax(np.ones(3)))\n"
COMPARES_FIRST = "import attnlib, numpy as np\nattnlib.softmax(np.ones(3))\n"
# After this the error of a cell has no traceback any more, which would say where the cell stopped.
CLEARS = """
def show(shell, kind, error, tb, tb_offset=None):
    error.with_traceback(None)
get_ipython().set_custom_exc((Exception,), show)
"""
HONEST = {
    "compares-then-defines": RIGHT.replace("def one", "def helper")
    + COMPARES.replace("one(", "helper(")
    + "one = helper\n",
    "compares-at-the-end": RIGHT + COMPARES,
    "compares-later": RIGHT,
    "compares-before-others": COMPARES_FIRST + RIGHT,
    "clears-the-traceback": RIGHT + CLEARS + COMPARES,
}


@pytest.fixture(scope="module")
def graded(tiny, boxes):
    for student, source in LOOKS.items():
        tiny.submit(student, answer_one=f"import attnlib\n{source}{RIGHT}")
    tiny.submit("copies", answer_one=COPIES)
    for student, source in HONEST.items():
        later = QUESTIONS["two"][1] + (COMPARES if student == "compares-later" else "")
        tiny.submit(student, answer_one=source, answer_two=later)
    run(tiny, "tiny", pool=boxes)
    return {row.outcome.student: row for row in rows(tiny, "tiny")}


def shown(tiny, student: str) -> str:
    (file,) = tiny.autograded(student, "tiny").glob("*.ipynb")
    return json.dumps([cell.get("outputs", []) for cell in nbformat.read(file, as_version=4).cells])


@pytest.mark.parametrize("student", LOOKS)
def test_who_looks_for_the_source_finds_the_stand_in_and_is_flagged(tiny, graded, student):
    found = shown(tiny, student)
    assert "LOOKED" in found
    assert "Withheld" in found
    assert "keepdims" not in found
    assert graded[student].outcome.flags


def test_a_copy_of_the_library_earns_nothing_and_is_flagged(graded):
    assert graded["copies"].scores["check-one"] == (0, 2)
    assert graded["copies"].outcome.flags


@pytest.mark.parametrize("student", HONEST)
def test_who_compares_with_the_library_loses_nothing(graded, student):
    assert graded[student].outcome.verdict == "graded"
    assert graded[student].score == 6


def test_a_comparison_after_the_check_runs_and_one_before_says_when_it_would(tiny, graded):
    assert "until your own answer" not in shown(tiny, "compares-later")
    assert "until your own answer" in shown(tiny, "compares-at-the-end")
