"""Flags in the source of answers: none in honest ones, and the right line in those that go around the checks."""

import ast
from pathlib import Path

import nbformat
import pytest

from attnlib.checks.catalogue import CATALOGUE
from grading.static_checks import scopes
from grading.static_checks.flags import MAX_FLAGS, Flag, find_flags

ROOT = Path(__file__).parents[2]
FORBIDDEN = {
    "softmax": CATALOGUE["softmax"].forbidden,
    "attention": CATALOGUE["attention"].forbidden,
    "KVCache": CATALOGUE["KVCache"].forbidden,
    "backward": CATALOGUE["scaled_dot_product_attention_backward"].forbidden,
}
SOFTMAX = """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
"""


def flags(*cells: str) -> list[Flag]:
    return find_flags([(f"cell-{n}", source) for n, source in enumerate(cells, 1)], FORBIDDEN)


def places(*cells: str, level: str = "suspicious") -> set[str]:
    """Return the cells and lines that are flagged: ``1:2`` is line 2 of the first cell."""
    return {f"{flag.cell.removeprefix('cell-')}:{flag.line}" for flag in flags(*cells) if flag.level == level}


# Honest --------------------------------------------------------------------------------------------------------------

HONEST = {
    "the answer": [SOFTMAX],
    "a comparison in a cell of one's own": [SOFTMAX, "import attnlib\nprint(softmax(x) - attnlib.softmax(x))"],
    "a comparison in a loop": [
        SOFTMAX,
        "for x in rows:\n    a = softmax(x)\n    b = attnlib.softmax(x)\n    print(a - b)",
    ],
    "a comparison by numpy": [SOFTMAX, "np.testing.assert_allclose(softmax(x), attnlib.softmax(x))"],
    "recursion": [
        "def softmax(x, axis=-1):\n    return softmax(x.T, 0).T if axis == 1 else np.exp(x) / np.exp(x).sum(0)"
    ],
    "one's own of another answer": [SOFTMAX, "def attention(q, k, v):\n    w = softmax(q @ k.T)\n    return w @ v, w"],
    "attnlib's softmax where attention is asked": [
        "import attnlib",
        "def attention(q, k, v):\n    w = attnlib.softmax(q @ k.T)\n    return w @ v, w",
    ],
    "torch's softmax where attention is asked": [
        "def attention(q, k, v):\n    w = torch.softmax(q @ k.mT, dim=-1)\n    return w @ v, w"
    ],
    "a method of the same name": [
        "class Maths:\n    def softmax(self, x):\n        return np.exp(x) / np.exp(x).sum()\n",
        "def softmax(x, axis=-1):\n    return Maths().softmax(x)",
    ],
    "an attribute of the same name": [
        "class Maths:\n    def __init__(self):\n        self.softmax = lambda x: np.exp(x) / np.exp(x).sum()\n",
        "def softmax(x, axis=-1):\n    return Maths().softmax(x)",
    ],
    "a name in text": [
        'def softmax(x):\n    """As in attnlib/softmax.py, or sys.modules."""\n    return x  # eval, torch.softmax'
    ],
    "an argument of the same name": ["def softmax(x, attention=None, dot=np.dot):\n    return dot(x, attention)"],
    "dot as a method": ["def attention(q, k, v):\n    return q.dot(k.T).dot(v)"],
    "methods called eval and compile": ["import re\n\ndef softmax(x):\n    model.eval()\n    return re.compile('a')"],
    "one's own eval": ["def eval(x):\n    return x\n\ndef softmax(x):\n    return eval(x)"],
    "a class by super": [
        "class KVCache:\n    def __init__(self):\n        super().__init__()\n        self.__dict__.update(length=0)"
    ],
    "getattr on an object": ["def attention(q, k, v):\n    return [getattr(q, f'{n}_proj') for n in 'qkv']"],
    "a setting of a figure": ["plt.rcParams['figure.dpi'] = 80\nfigure.axes[0].title = 'a'", SOFTMAX],
    "checks": [
        "from attnlib.checks import check, examine\nprint(examine('softmax', softmax, seed=0).message)",
        SOFTMAX,
    ],
    "a picture": ["from IPython.display import display, HTML\ndisplay(HTML('<b>a</b>'))", SOFTMAX],
    "versions": ["import sys\nfor lib in (np, scipy):\n    print(sys.version, lib.__version__)", SOFTMAX],
    "whichever library it is": [
        "def softmax(x):\n    xp = torch if torch.is_tensor(x) else np\n    e = xp.exp(x)\n    return e / e.sum(-1)"
    ],
    "an alias of a module": ["F = torch.nn.functional\nlib = attnlib", SOFTMAX],
    "a library that may be missing": ["try:\n    import torch\nexcept ImportError:\n    torch = None", SOFTMAX],
    "a name of Python's": ["print({'__name__': 1, '__main__': 2})\nprint(torch, dir(attnlib), sys is None)", SOFTMAX],
    "a division over two lines": ["def softmax(x):\n    return (7\n        % x)"],
}


@pytest.mark.parametrize("cells", HONEST.values(), ids=HONEST)
def test_honest_work_is_not_flagged(cells):
    assert flags(*cells) == []


@pytest.mark.parametrize("path", sorted((ROOT / "solutions").glob("*/*.ipynb")), ids=lambda path: path.parent.name)
def test_the_answers_of_the_solutions_are_not_flagged(path):
    cells, forbidden, count = [], {}, 0
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution"):
            cells.append((cell.id, cell.source))
        if cell.cell_type == "code" and cell.source.startswith("check("):
            call = ast.parse(cell.source).body[0].value
            forbidden[ast.unparse(call.args[1])] = CATALOGUE[call.args[0].value].forbidden
        count += cell.cell_type == "code" and cell.source.startswith(("check(", "check_tests("))
    assert count >= 3
    assert find_flags(cells, forbidden) == []


# Mild ----------------------------------------------------------------------------------------------------------------

MILD = {
    "an import that is not used": (["import os\nimport ctypes", SOFTMAX], {"1:1", "1:2"}),
    "a file in a cell of one's own": (["text = open('notes.txt').read()", SOFTMAX], {"1:1"}),
    "the machine in a cell of one's own": (["import os\nprint(os.cpu_count())", SOFTMAX], {"1:1", "1:2"}),
    "a magic": (["%matplotlib inline\nx = 1\n!pip list", SOFTMAX], {"1:1", "1:3"}),
    "a question": (["x = 1\nsoftmax?", SOFTMAX], {"1:2"}),
    "a switch of torch": (["torch.backends.mkldnn.enabled = False", SOFTMAX], {"1:1"}),
    "an import that one's own definition hides": (["from attnlib import softmax", SOFTMAX], {"1:1"}),
    "a library that is returned": (
        [
            "def softmax(x):\n    return of(x).exp(x)",
            "def of(x):\n    return torch if isinstance(x, torch.Tensor) else np",
        ],
        {"2:2"},
    ),
    "a library as an argument": (["def softmax(q):\n    return stable(q, torch) + _exp(q, lib=torch)"], {"1:2"}),
    "either library": (
        ["def softmax(x):\n    for xp, kind in ((np, np.ndarray), (torch, torch.Tensor)):\n        print(xp, kind)"],
        {"1:2"},
    ),
    "a library in an attribute": (["class KVCache:\n    def __init__(self):\n        self.F = F"], {"1:3"}),
    "getattr in a cell of one's own": (["for n in names:\n    print(getattr(np, n))", SOFTMAX], {"1:2"}),
}


@pytest.mark.parametrize(("cells", "where"), MILD.values(), ids=MILD)
def test_what_may_be_honest_is_a_notice(cells, where):
    assert places(*cells, level="notice") == where
    assert places(*cells) == set()


# Solved by something else --------------------------------------------------------------------------------------------

SOLVED = {
    "by its name": (["import attnlib\n\ndef softmax(x):\n    return attnlib.softmax(x)"], {"1:4"}),
    "without an import of one's own": (["def softmax(x):\n    return attnlib.softmax(x)"], {"1:2"}),
    "by an alias of the module": (["import attnlib as a", "def softmax(x):\n    return a.softmax(x)"], {"2:2"}),
    "by an alias of the function": (
        ["from attnlib import softmax as s", "def softmax(x):\n    return s(x)"],
        {"1:1", "2:2"},
    ),
    "by an assignment": (["softmax = attnlib.softmax"], {"1:1"}),
    "by several": (["lib = attnlib\ns = lib.softmax\ndef softmax(x):\n    return s(x)"], {"1:2", "1:4"}),
    "by a helper in another cell": (["def help_me(x):\n    return attnlib.softmax(x)", "softmax = help_me"], {"1:2"}),
    "by a helper of a helper": (
        ["def softmax(x):\n    return one(x)", "def one(x):\n    return two(x)", "two = lambda x: attnlib.softmax(x)"],
        {"3:1"},
    ),
    "over itself": (["from attnlib import softmax", "s = softmax", "def softmax(x):\n    return s(x)"], {"2:1", "3:2"}),
    "functional": (["import torch.nn.functional as F\n\ndef softmax(x):\n    return F.softmax(x, -1)"], {"1:4"}),
    "functional, given": (["def softmax(x):\n    return nn.functional.softmax(torch.tensor(x))"], {"1:2"}),
    "a method": (["def softmax(x):\n    return torch.from_numpy(x).softmax(-1).numpy()"], {"1:2"}),
    "a class": (["from torch import nn\n\ndef softmax(x):\n    return nn.Softmax(dim=-1)(x)"], {"1:4"}),
    "scipy, inside": (["def softmax(x):\n    from scipy.special import softmax as s\n    return s(x)"], {"1:2", "1:3"}),
    "a star": (["from scipy.special import *", "def softmax(x):\n    return log_softmax(x)"], {"2:2"}),
    "the module of the function": (["from attnlib.softmax import softmax"], {"1:1"}),
    "getattr": (["def softmax(x):\n    return getattr(attnlib, 'soft' + 'max')(x)"], {"1:2"}),
    "getattr, computed": (["def softmax(x):\n    return getattr(attnlib, name)(x)"], {"1:2"}),
    "the dictionary of a module": (["def softmax(x):\n    return vars(attnlib)['softmax'](x)"], {"1:2"}),
    "a default": (["def attention(q, lib=attnlib):\n    return lib.attention(q)"], {"1:2"}),
    "a walrus": (["def softmax(x):\n    return (s := attnlib.softmax)(x)"], {"1:2"}),
    "a line further down": (["def softmax(x):\n    return (\n        attnlib\n        .softmax(x)\n    )"], {"1:4"}),
    "a class of attnlib": (["class KVCache(attnlib.numpy.KVCache):\n    pass"], {"1:1"}),
    "a call of a part": (["def attention(q, k, v):\n    return attnlib.attention.__call__(q, k, v)"], {"1:2"}),
    "a table": (["table = {}\ntable['s'] = attnlib.softmax", "def softmax(x):\n    return table['s'](x)"], {"1:2"}),
    "a list": (["kept = []\nkept.append(attnlib.softmax)", "def softmax(x):\n    return kept[0](x)"], {"1:2"}),
    "a list, in a function": (
        ["kept = []\ndef put():\n    kept.append(attnlib.softmax)\nput()", "def softmax(x):\n    return kept[0](x)"],
        {"1:3"},
    ),
    "an attribute of one's own": (
        ["class A: pass\nA.run = attnlib.softmax", "def softmax(x):\n    return A.run(x)"],
        {"1:2"},
    ),
    "a global": (["def set_it():\n    global s\n    s = attnlib.softmax", "def softmax(x):\n    return s(x)"], {"1:3"}),
    "a global that is read": (
        ["s = attnlib.softmax", "def softmax(x):\n    global s\n    s = s\n    return s(x)"],
        {"1:1", "2:3", "2:4"},
    ),
    "a decorator": (["def softmax(x):\n    return x\nsoftmax = functools.wraps(softmax)(attnlib.softmax)"], {"1:3"}),
    "autograd": (["def backward(g, q):\n    o.backward(g)\n    return torch.autograd.grad(o, q)"], {"1:2", "1:3"}),
    "a name that is never bound": (["if 0:\n    attnlib = 1\ndef softmax(x):\n    return attnlib.softmax(x)"], {"1:4"}),
    "a private part of attnlib": (["def softmax(x):\n    return attnlib._numpy_kernels.softmax(x, -1)"], {"1:2"}),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "where"), SOLVED.values(), ids=SOLVED)
def test_what_solves_it_is_flagged_where_it_stands(cells, where):
    assert places(*cells) == where


def test_the_same_without_the_forbidden_names_is_not_flagged():
    cells = [("a", "def softmax(x):\n    return attnlib.softmax(x)")]
    assert find_flags(cells, {"softmax": ("attnlib.softmax",)})
    assert find_flags(cells, {"softmax": ("attnlib.dot",)}) == []
    assert find_flags(cells, {}) == []


# Ways around ---------------------------------------------------------------------------------------------------------

AROUND = [
    "import sys\nx = sys.modules['attnlib']",
    "from sys import modules as m\nx = m",
    "import importlib\nx = importlib.import_module('attnlib.softmax')",
    "x = 1\ny = __import__('attnlib')",
    "x = 1\nexec('import attnlib')",
    "run = 1\nrun = eval",
    "x = 1\nx = attnlib.softmax.__code__",
    "x = 1\nx = softmax.__globals__['np']",
    "x = 1\nx = getattr(softmax, '__clo' + 'sure__')",
    "x = 1\nx = ().__class__.__base__.__subclasses__()",
    "import inspect\nprint(inspect.getsource(attnlib.softmax))",
    "import ctypes\nctypes.string_at(0)",
    "import gc\ngc.get_objects()",
    "import sys\nsys.settrace(print)",
    "import sys\nx = sys._getframe(1)",
    "x = 1\ny = error.__traceback__.tb_frame.f_back",
    "x = 1\nnp.exp = print",
    "x = 1\nsetattr(torch, 'exp', print)",
    "x = 1\ntorch.Tensor.exp = print",
    "x = 1\ndel attnlib.softmax",
    "x = 1\nvars(attnlib)['softmax'] = print",
    "x = 1\nwith torch._C.DisableTorchFunction(): pass",
    "from grading.sandbox.inside import solver_guard\nsolver_guard.Forbidden = None",
    "x = 1\nfrom attnlib.checks.catalogue import CATALOGUE",
    "x = 1\nprint(open('/lib/python3/site-packages/attnlib/softmax.py').read())",
    "x = 1\nprint(open(attnlib.__file__).read())",
    "x = 1\n!cat /lib/site-packages/attnlib/softmax.py",
    "x = 1\nx = __builtins__",
    "x = 1\nname = 'grading.sandbox.inside.answers'",
    "at = getattr\nat(softmax, n := '__globals__')",
    "import sys\nsys.stdout._runner.answers = 1",
    "import gc\nx = vars(gc)",
    "import sys\nx = getattr(sys, name)",
    "x = 1\nx = print.__self__",
    "from contextlib import ExitStack\nExitStack.callback = print",
    "box = Box()\nsys in box",  # whose class has a __contains__ that keeps it
    "box = Box()\nbox == sys",
    "box = Box()\nisinstance(sys, Box)",
    "import collections\nx = collections._sys.modules",
    "import enum\nx = enum.bltns",
    "x = 1\nx = object.__getattribute__(softmax, name)",
]
# Ways to give modules other names, by which the guard could be switched off if it were still in sys.modules.
BOUND = {
    "for": "for t, m in [(torch, sys)]: pass",
    "a tuple": "t, m = torch, sys",
    "two targets": "t = u = torch; m = n = sys",
    "a dictionary": "d = {'t': torch, 'm': sys}; t, m = d['t'], d['m']",
    "a class": "class A: t = torch; m = sys\nt, m = A.t, A.m",
    "an attribute": "def A(): pass\nA.t, A.m = torch, sys\nt, m = A.t, A.m",
    "a default": "f = lambda t=torch, m=sys: (t, m)\nt, m = f()",
    "an argument": "f = lambda *both: both\nt, m = f(torch, sys)",
    "a walrus": "(t := torch) and (m := sys)\nt, m = [t, m]",
    "an annotation": "t: object = torch; m: object = sys",
    "a global": "def f():\n    global t, m\n    t = torch; m = sys\nf()",
    "with": "with contextlib.nullcontext((torch, sys)) as (t, m): pass",
    "a condition": "t = torch if 1 else np; m = np if 0 else sys; t, m = (t, m)",
    "the module of a module": "import warnings\nt, m = warnings.torch, warnings.sys",
}
OFF = "g = m.modules['grading' + '.' + 'sandbox.inside.solver_' + 'guard']\ng._stop = g._dispatch_to_refusals = print\n"
SOLVERS = {
    "softmax": "t.softmax(x, -1)",
    "scaled_dot_product_attention": "t.nn.functional.scaled_dot_product_attention(x, y, z)",
    "cosine": "t.nn.functional.cosine_similarity(x, y, -1)",
}


@pytest.mark.parametrize("exercise", SOLVERS)
@pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND)
def test_what_switches_the_guard_off_is_flagged_however_its_modules_are_bound(bound, exercise):
    answer = f"def answer(x, y=0, z=0):\n    return {SOLVERS[exercise]}"
    for cells in ([f"{bound}\n{OFF}{answer}"], [f"{bound}\n{OFF}", answer], [f"y = !ls\n{bound}\n{OFF}", answer]):
        found = find_flags(list(enumerate(cells)), {"answer": CATALOGUE[exercise].forbidden})
        assert "suspicious" in [flag.level for flag in found]


IN_AN_ANSWER = [
    "import os\ndef softmax(x):\n    os.kill(1, 9)",
    "import subprocess as s\ndef softmax(x):\n    s.run('ls')",
    "from signal import alarm\ndef softmax(x):\n    alarm(0)",
    "import threading\ndef softmax(x):\n    threading.Thread(target=print)",
    "x = 1\ndef softmax(x):\n    return open('answers').read()",
    "import random\ndef softmax(x):\n    random._os.fork()",
    "import _posixsubprocess\ndef softmax(x):\n    _posixsubprocess.fork_exec()",
    "x = 1\ndef softmax(x):\n    get_ipython().user_ns.clear()",
]


@pytest.mark.parametrize("source", AROUND)
def test_a_way_around_is_flagged_in_any_cell(source):
    found = places(source, SOFTMAX)
    assert "1:2" in found
    assert found <= {"1:1", "1:2"}


@pytest.mark.parametrize("source", IN_AN_ANSWER)
def test_a_tool_is_suspicious_in_an_answer_and_a_notice_elsewhere(source):
    assert "1:3" in places(source)
    elsewhere = source.replace("softmax", "mine")
    assert places(elsewhere, SOFTMAX) == set()
    assert "1:3" in places(elsewhere, SOFTMAX, level="notice")


# What cannot be parsed, and what is meant to hurt --------------------------------------------------------------------


def test_broken_code_is_read_word_by_word():
    broken = (
        'import attnlib as a\ndef softmax(x):\n    text = "torch.softmax" # torch.softmax\n    return a.softmax(x\n'
    )
    assert places(broken) == {"1:4"}
    assert places("x = !ls\ny = sys.modules['a']\nimport sys\n(", SOFTMAX) == {"1:2"}
    assert places("def softmax(x:\n    return np.exp(x) / np.exp(x).sum()\n") == set()


HOSTILE = {
    "deep": "-" * 23_000 + "1",
    "brackets": "(" * 29_000,
    "attributes": "a" + ".b" * 14_000,
    "sum": "1" + "+1" * 14_000,
    "calls": "f" + "()" * 14_000,
    "subscripts": "a" + "[0]" * 9_000,
    "lambdas": "lambda: " * 3_000 + "1",
    "branches": "if 1: pass\n" + "elif 1: pass\n" * 2_300,
    "nested": "".join(" " * n + "if 1:\n" for n in range(99)) + " " * 99 + "x",
    "null": "x = 'a\0b'",
    "half a pair": "x = '\ud800'\nsys.modules",
    "an escape that warns": "x = '\\d' is 'a'",
    "quotes": "'''" * 9_001,
    "comparison": "a" + "<a" * 14_000,
    "long": "attnlib.softmax\n" * 200_000,
    "aliases": "np = np.a\n" * 2_900,
    "spaces": ("a" + " " * 500) * 59,
    "a blank line": "(\n" + " " * 29_000 + "x",
    "a number": "9" * 9_000,
    "empty": "",
    "line ends": "x = 1\r\ny = sys.modules\rz = 2",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_hostile_source_does_no_harm(source):
    for flag in flags(source, SOFTMAX, "x = 1\nx = sys.modules"):
        assert flag.text.isprintable()
        assert len(flag.text) <= 120
    assert "3:2" in places(source, SOFTMAX, "x = 1\nx = sys.modules")


def test_the_flags_are_few_and_the_suspicious_first():
    found = flags("import os\n" * 1000, "x = sys.modules\n" * (MAX_FLAGS - 50))
    assert len(found) == MAX_FLAGS
    assert [flag.level for flag in found] == ["suspicious"] * (MAX_FLAGS - 50) + ["notice"] * 50


def test_a_flag_shows_the_line():
    (flag,) = flags("x = 1\r\n  \n# \nx = attnlib.softmax.__code__  # \x1b[31m\u202e<b>" + 200 * "a")
    assert (flag.cell, flag.line, flag.level, len(flag.text)) == ("cell-1", 4, "suspicious", 120)
    assert flag.text.startswith("x = attnlib.softmax.__code__  # �[31m�<b>aaa")
    assert flag.why == "looks inside a function"
    (flag,) = flags("softmax = attnlib.softmax")
    assert flag.why == "uses attnlib.softmax, which would solve the exercise"


CHAINS = {
    "dictionaries": ('"x"', '.__dict__["a"]'),
    "attributes": ("x", ".a"),
    "calls": ("x", ".a()"),
    "subscripts": ("x", "[0].a"),
    "additions": ("x", ' + "a"'),
}
NESTED = {
    "getattr": 'getattr({}, "a")',
    "getattr, computed": "getattr({}, n)",
    "vars": 'vars({})["a"]',
    "setattr": "setattr({}, 'a', 1)",
}


def work(monkeypatch, source: str) -> int:
    """Return how many attribute accesses are followed to read a cell."""
    steps, real = [0], scopes._attribute_access

    def counted(node, scope):
        steps[0] += 1
        return real(node, scope)

    monkeypatch.setattr(scopes, "_attribute_access", counted)
    find_flags([("a", source)], FORBIDDEN)
    monkeypatch.undo()
    return steps[0]


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_of_twice_the_length_takes_twice_the_work(monkeypatch, chain):
    start, link = CHAINS[chain]
    short, long = (work(monkeypatch, start + n * link) for n in (40, 80))
    assert long <= 2 * short + 5


@pytest.mark.parametrize("call", NESTED)
def test_calls_nested_twice_as_deep_take_twice_the_work(monkeypatch, call):
    def nested(depth: int) -> str:
        source = "x"
        for _ in range(depth):
            source = NESTED[call].format(source)
        return source

    short, long = (work(monkeypatch, nested(n)) for n in (20, 40))
    assert long <= 2 * short + 5
