"""Forging a pass inside the interpreter: whatever pretends, replaces or redefines, the arrays are judged elsewhere."""

from typing import Any

from attacks.case import Case

LIAR = """class Liar(np.ndarray):
    def __eq__(self, other): return np.ones(np.shape(other), bool)
    def __ne__(self, other): return np.zeros(np.shape(other), bool)
    def __sub__(self, other): return np.zeros(np.shape(other))
    __rsub__ = __sub__
    def __array_ufunc__(self, *args, **options): return np.ones((), bool)
    def __array_function__(self, *args, **options): return True
    def __array__(self, *args, **options): return np.zeros(3)
"""
AGREES = """class Agrees:
    shape, dtype, ndim, size, strides, nbytes = (3, 5), np.dtype(float), 2, 15, (40, 8), 120
    def __eq__(self, other): return True
    def __getattr__(self, name): return self
    def __call__(self, *args, **options): return self
    def __array__(self, *args, **options): return np.zeros((3, 5))
    def __iter__(self): return iter(())
    def __bool__(self): return True
    def __float__(self): return 1.0
"""
RETURNS = "def softmax(x, axis=-1): return {}\ndef dot(query, key): return {}"
TORCH_LIAR = """class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): return True
def attention(query, key, value): return query.as_subclass(Liar), key.as_subclass(Liar)
"""
FULL = "lambda *args, points=1.0, **options: float(points)"
PATCH = """import sys
for name, module in list(sys.modules.items()):
    if name.startswith(("attnlib", "grading", "numpy.testing", "torch.testing")):
        for thing in ("check", "check_choice", "examine", "allclose", "assert_allclose", "isclose", "array_equal",
                      "_close", "_near", "_is_right", "_score", "_judged"):
            if hasattr(module, thing):
                setattr(module, thing, {full})
for thing in ("allclose", "isclose", "array_equal", "array_equiv"):
    setattr(np, thing, lambda *args, **options: True)
torch.allclose = torch.equal = torch.isclose = lambda *args, **options: True
"""
REPORT = """from IPython.display import display
for name, points in (("softmax", 4), ("dot", 2), ("attention", 3)):
    report = {"exercise": name, "backend": "numpy", "mistake": None, "passed": True, "title": "right",
              "message": "right", "score": 1.0, "points": points}
    display({"application/vnd.attnlib.report+json": report, "text/plain": str(points)}, raw=True)
10.0
"""
SHELL = """shell = get_ipython()
real = type(shell).run_cell
def run_cell(self, source, *args, **options):
    return real(self, "10.0" if source.startswith("check") else source, *args, **options)
type(shell).run_cell = run_cell
shell.input_transformers_cleanup.append(lambda lines: ["10.0"] if lines[0].startswith("check") else lines)
shell.ast_transformers.append(type("T", (), {"visit": lambda self, node: node})())
"""
BUILTINS = """import builtins
builtins.isinstance = lambda *args: True
builtins.len = lambda x: 1
builtins.abs = builtins.sum = builtins.max = lambda *args, **options: 0
builtins.eval = lambda *args: (lambda *args, **options: True)
"""
CODECS = """import base64, json, struct
json.dumps = lambda *args, **options: '{"done": true, "score": 1.0, "passed": true}'
base64.b64encode = lambda *args: b"AAAA"
struct.Struct.pack = property(lambda self: 1)
"""
SOUL = """import sys
calling = sys.modules["attnlib.checks.calling.call_submission"]
calling.call_submission = lambda *args, **options: calling.Answer({"weights": np.ones((3, 5))})
answers = type(get_ipython().sink.__self__.answers)._call.__globals__  # of grading.sandbox.inside.answers._as_message
answers["_as_message"] = lambda answer: {"passed": True, "score": 1.0, "points": 4, "arrays": {}, "problem": None}
"""
META = """class Meta(type):
    def __instancecheck__(cls, other): return True
    def __subclasscheck__(cls, other): return True
    def __call__(cls, *args, **options): return cls
    def __eq__(cls, other): return True
    def __hash__(cls): return 1
class Letter(str, metaclass=Meta):
    def __eq__(self, other): return True
    def __hash__(self): return hash("B")
    def strip(self): return self
    def upper(self): return self
answer = str.__new__(Letter, "Z")
"""
CALLER = """import sys
def softmax(x, axis=-1):
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()):
            if name in ("expected", "reference", "want", "solution", "right"):
                return value
            reference = getattr(value, "reference", None)
            if callable(reference): return reference(x, axis)
        frame = frame.f_back
    return np.ones(np.shape(x))
"""
HEAP = """import gc
def softmax(x, axis=-1):
    for thing in gc.get_objects():
        name = type(thing).__name__
        if name in ("Exercise", "Evaluation", "Judge", "Answer", "Report"): return thing.expected[0].arrays["weights"]
        if isinstance(thing, np.ndarray) and thing.shape == x.shape and abs(thing.sum(axis) - 1).max() < 1e-9:
            return thing
    return np.ones(np.shape(x))
"""
REFERENCE = """from attnlib.checks.catalogue import CATALOGUE
softmax = CATALOGUE["softmax"].reference
"""
AROUND = """import types, attnlib
own = types.FunctionType(attnlib.softmax.__code__, attnlib.softmax.__globals__)
def softmax(x, axis=-1): return own(x, axis)
"""
# Only the process itself could tell. It is no wrong answer, so it earns marks: but not unseen.
UNCHANGED = """import sys
sys.modules["attnlib.checks.calling.call_submission"]._changed = lambda *args: []
def softmax(x, axis=-1):
    x = x if x.dtype.kind == "f" else x * 1.0
    x -= x.max(axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=axis, keepdims=True)
    return x
"""
SPIES = """class Spy(np.ndarray):
    pass
seen = []
def softmax(x, axis=-1):
    seen.append(x)
    return seen[0] if seen[0].shape == x.shape else x
"""
CHANGES = """import threading
def softmax(x, axis=-1):
    out = np.ones(np.shape(x))
    def later():
        for _ in range(200): out[...] = np.random.rand(*out.shape)
    threading.Thread(target=later, daemon=True).start()
    return out
"""
ANY_NUMBER = "def softmax(x, axis=-1): return np.full(np.shape(x), {})\ndef dot(query, key): return np.array({})"
MINIMUM = """def softmax(x, axis=-1): return np.full(np.shape(x), np.iinfo(np.int64).min)
def dot(query, key): return np.full(np.shape(query @ np.swapaxes(key, -1, -2)), np.iinfo(np.int64).min)"""


def _points(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["points"] = 1000


def _own_points(notebook: dict[str, Any]) -> None:
    given = {"grade": True, "solution": False, "locked": True, "points": 100, "schema_version": 3, "grade_id": "bonus"}
    cell = {"cell_type": "code", "id": "bonus", "source": "100.0", "metadata": {"nbgrader": given | {"task": False}}}
    notebook["cells"].append(cell | {"outputs": [], "execution_count": None})


def _ungraded(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["metadata"]["nbgrader"] |= {"grade": False, "solution": True, "locked": False, "schema_version": 99}


def _outputs(notebook: dict[str, Any]) -> None:
    """Hand in outputs as if the checks had been passed."""
    for cell in notebook["cells"]:
        result = {"output_type": "execute_result", "data": {"text/plain": "4.0"}, "metadata": {}}
        cell["outputs"], cell["execution_count"] = [result | {"execution_count": 1}], 1


def _without_checks(notebook: dict[str, Any]) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not cell["id"].endswith("-check")]


def _text_checks(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        if cell["id"].endswith("-check"):
            cell["cell_type"] = "markdown"
            del cell["outputs"], cell["execution_count"]


def _twice(notebook: dict[str, Any]) -> None:
    """Answer every check once more, in a cell of the same id and name."""
    for cell in [cell for cell in notebook["cells"] if cell["id"].endswith("-check")]:
        notebook["cells"].append(cell | {"source": "1000.0"})


def _swapped(notebook: dict[str, Any]) -> None:
    """Have every answer bear the name of a check, and the other way round."""
    for cell in notebook["cells"]:
        given, name = cell["metadata"]["nbgrader"], cell["id"]
        other = name.removesuffix("-check") if name.endswith("-check") else f"{name}-check"
        cell["id"] = given["grade_id"] = other


def _verdict(notebook: dict[str, Any]) -> None:
    notebook["metadata"]["grading"] = {"verdict": "graded", "reason": "", "score": 10}
    notebook["metadata"]["celltoolbar"] = "Create Assignment"


def _magic_kernel(notebook: dict[str, Any]) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "bash", "display_name": "sh -c id", "language": "bash"}


CASES = (
    Case(
        "forge-array-that-equals-all",
        "returns arrays of a class that agrees with every comparison",
        {"softmax": LIAR + RETURNS.format("np.zeros(3).view(Liar)", "np.zeros(3).view(Liar)")},
        loses=("softmax", "dot"),
        harmless=True,
    ),
    Case(
        "forge-object-that-equals-all",
        "returns an object that has every attribute and equals everything",
        {"softmax": AGREES + RETURNS.format("Agrees()", "Agrees()"), "choice": AGREES + "answer = Agrees()"},
        loses=("softmax", "dot", "choice"),
        harmless=True,
    ),
    Case(
        "forge-tensor-subclass",
        "returns tensors of a class that answers True to every function of torch",
        {"attention": TORCH_LIAR},
        loses=("attention",),
        harmless=True,
    ),
    Case(
        "forge-check-redefined",
        "redefines check and check_choice as functions that give full marks",
        {"last": "pass", "attention": f"check = check_choice = {FULL}\ndef attention(q, k, v): pass"}
        | {"softmax": f"check = check_choice = {FULL}\ndef softmax(x, axis=-1): pass"},
        loses=("softmax", "attention"),
        harmless=True,
    ),
    Case(
        "forge-check-imported-away",
        "edits the locked import cell so that check is another function",
        {"imports": f"import numpy as np\nimport torch\ncheck = check_choice = {FULL}"},
        harmless=True,
    ),
    Case(
        "forge-locked-checks-edited",
        "replaces the source of every graded cell with its points",
        {"softmax-check": "4.0", "dot-check": "2.0", "choice-check": "1.0", "attention-check": "3.0"},
        harmless=True,
    ),
    Case(
        "forge-libraries-patched",
        "replaces the functions that compare and check in every loaded module",
        {"first": "import numpy as np, torch\n" + PATCH.format(full=FULL)},
        harmless=True,
    ),
    Case("forge-builtins-patched", "replaces built-in functions that a judge would use", {"first": BUILTINS},
         verdicts=("crashed",)),
    Case("forge-codecs-patched", "replaces the functions that encode the answers", {"first": CODECS},
         verdicts=("crashed", "tampered", "graded"), loses=("softmax", "dot", "attention")),
    Case("forge-machinery-patched", "makes the process's own machinery send a pass", {"softmax": SOUL},
         loses=("softmax", "dot", "attention")),
    Case("forge-shell-patched", "makes the shell run other code in place of the checks", {"first": SHELL},
         harmless=True),
    Case("forge-report-shown", "shows reports of full marks, as a check would", {"first": REPORT, "last": REPORT},
         harmless=True),
    Case("forge-letter-that-equals-all", "answers with text of a class that equals every letter", {"choice": META},
         harmless=True),
    Case("forge-every-letter", "answers with all letters at once",
         {"choice": 'answer = ["A", "B", "C", "D"]'}, harmless=True),
    Case("forge-answer-in-the-caller", "looks for the expected values in the frames above", {"softmax": CALLER},
         loses=("softmax",), harmless=True, flagged=True),
    Case("forge-reference-imported", "imports the references of the checks", {"softmax": REFERENCE}, loses=("softmax",),
         verdicts=("student-error",), harmless=True),
    Case("forge-library-around-the-guard", "calls the library's own function in spite of the guard",
         {"softmax": AROUND}, base="right", loses=("softmax",), flagged=True, harmless=True),
    Case("forge-inputs-unchanged", "changes its inputs, and suppresses the report of that", {"softmax": UNCHANGED},
         base="right", flagged=True),
    Case("forge-answer-on-the-heap", "looks for the expected values among all objects", {"softmax": HEAP},
         loses=("softmax",), harmless=True, flagged=True),
    Case("forge-answer-by-repetition", "returns inputs of earlier questions", {"softmax": SPIES}, loses=("softmax",),
         harmless=True),
    Case("forge-answer-that-changes", "goes on changing the array that it returned", {"softmax": CHANGES},
         loses=("softmax",), harmless=True),
    Case("forge-nan", "answers nan, which is not equal to itself",
         {"dot": ANY_NUMBER.format("np.nan", "np.nan")}, harmless=True, loses=("dot",)),
    Case("forge-infinity", "answers infinity", {"last": "1", "softmax": ANY_NUMBER.format("np.inf", "np.inf")},
         loses=("softmax",), harmless=True),
    Case("forge-smallest-integer", "answers with the integer whose absolute value is negative",
         {"softmax": MINIMUM}, loses=("softmax",), harmless=True),
    Case("forge-empty", "answers with arrays that have no elements to be wrong",
         {"softmax": RETURNS.format("np.zeros(np.shape(x) + (0,))", "np.zeros((0, 0))")}, loses=("softmax", "dot"),
         harmless=True),
    Case("forge-booleans", "answers True to everything",
         {"softmax": RETURNS.format("np.ones(np.shape(x), bool)", "np.ones((1, 3), bool)")}, loses=("softmax", "dot"),
         harmless=True),
    Case("forge-broadcast", "answers with one number that would broadcast",
         {"softmax": RETURNS.format("np.float64(0.3)", "np.zeros((1, 1))")}, loses=("softmax", "dot"), harmless=True),
    Case("forge-masked", "answers with masked arrays, whose comparisons are masked",
         {"softmax": RETURNS.format("np.ma.masked_all(np.shape(x))", "np.ma.masked_all((1, 3))")},
         loses=("softmax", "dot"), harmless=True),
    Case("forge-points-in-metadata", "gives every cell 1000 points", edit=_points, harmless=True),
    Case("forge-bonus-cell", "adds a graded cell of its own", edit=_own_points, harmless=True),
    Case("forge-nothing-is-graded", "says in the metadata that no cell is graded", edit=_ungraded, harmless=True),
    Case("forge-outputs-handed-in", "hands in outputs with full marks", edit=_outputs, harmless=True),
    Case("forge-checks-deleted", "deletes every graded cell", edit=_without_checks, harmless=True),
    Case("forge-checks-as-text", "turns every graded cell into text", edit=_text_checks, harmless=True),
    Case("forge-checks-twice", "repeats the graded cells with other sources", edit=_twice, harmless=True),
    Case("forge-names-swapped", "exchanges the names of answers and checks", edit=_swapped,
         loses=("softmax", "dot", "choice", "attention"), verdicts=("graded", "student-error"), harmless=True),
    Case("forge-verdict-handed-in", "puts a verdict into the notebook's metadata", edit=_verdict, harmless=True),
    Case("forge-another-kernel", "asks for a kernel of another language", edit=_magic_kernel),
)  # fmt: skip
