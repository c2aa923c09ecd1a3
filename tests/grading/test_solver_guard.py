"""What would solve an exercise by itself raises while the exercise is asked, and whatever else stays as it is."""

import ast
import functools
import importlib
import queue
import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

import attnlib
import attnlib.numpy
import attnlib.torch
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation
from grading.sandbox.inside import solver_guard
from grading.sandbox.inside.refusals import Forbidden
from grading.sandbox.inside.solver_guard import forbidding

ROOT = Path(__file__).parents[2]
NAMES = sorted({name for exercise in CATALOGUE.values() for name in exercise.forbidden})

for module in (*solver_guard.PRELOAD, *solver_guard.LATE_MODULES):
    importlib.import_module(module)

X = torch.ones(2, 3)
HEADS = torch.ones(1, 1, 2, 3)
IN_C = {  # what a function that is written in C is called with: it looks at its arguments before anybody can refuse
    "cosine_similarity": (X, X),
    "pdist": (X,),
    "rnn_tanh": (X[None], X[None], [torch.ones(3, 3)] * 2, False, 1, 0.0, False, False, False),
    "rnn_tanh_cell": (X, X, torch.ones(3, 3), torch.ones(3, 3)),
    "scaled_dot_product_attention": (HEADS, HEADS, HEADS),
    "softmax": (X, -1),
    "log_softmax": (X, -1),
    "logsumexp": (X, -1),
    "multinomial": (X, 1),
    "rms_norm": (X, [3]),
    "cdist": (X, X),
}


def checks():
    """Yield (assignment, exercise, expression, backend, unasked) for each autograded check of the course."""
    for path in sorted((ROOT / "solutions").glob("*/*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and cell.source.startswith("check("):
                call = ast.parse(cell.source).body[0].value
                options = {option.arg: option.value.value for option in call.keywords}
                asked = options.get("backend", "numpy"), options.get("unasked")
                yield path.parent.name, call.args[0].value, ast.unparse(call.args[1]), *asked


@functools.cache
def solved(assignment: str) -> dict:
    """Return what the answers of a solution define."""
    (path,) = (ROOT / "solutions" / assignment).glob("*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    namespace: dict = {"__name__": "answers"}
    for cell in cells:
        nbgrader = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or not nbgrader or nbgrader["grade"]:
            continue
        source = ast.parse(cell.source)
        if not nbgrader["solution"]:  # of what is given, what the answers call
            source.body = [one for one in source.body if isinstance(one, ast.Import | ast.ImportFrom)]
        exec(compile(source, cell.id, "exec"), namespace)
    return namespace


def examined(assignment, exercise, expression, backend, forbidden, unasked=None):
    """Examine an answer under the guard; what is expected of it is worked out before."""
    implementation = eval(expression, solved(assignment))
    if isinstance(implementation, type) and issubclass(implementation, torch.nn.Module):
        backend = "torch"
    evaluation = Evaluation(CATALOGUE[exercise].without(unasked), backend, seed=0)
    with forbidding(forbidden):
        return evaluation.of(implementation)


def cheat(name, found):
    """Call a function with whatever it takes, so that only the guard can be what raises."""
    found(*IN_C.get(name.rpartition(".")[2], ()))


# The data ----------------------------------------------------------------------------------------------------------


def test_every_forbidden_name_is_that_of_something_that_can_be_called():
    assert [name for name in NAMES if not callable(solver_guard._find(name)[1])] == []


PRELOADING = """
import importlib, sys
from grading.sandbox.inside import solver_guard

def missing(without):
    sys.modules.update(dict.fromkeys(without))  # as if they were not installed
    for name in (*solver_guard.PRELOAD, *solver_guard.LATE_MODULES):
        if name.partition(".")[0] not in without:
            importlib.import_module(name)
    gone = (name for name in sys.argv[1:] if solver_guard._find(name)[1] is None)
    return [name for name in gone if name.partition(".")[0] not in without]

print(missing(["sklearn"]))
del sys.modules["sklearn"]
print(missing([]))
"""


@pytest.mark.slow
def test_what_is_loaded_beforehand_brings_all_that_is_installed():
    command = [sys.executable, "-c", PRELOADING, *NAMES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


IMPORTING_LATE = """
import sys
from grading.sandbox.inside import solver_guard

for name in solver_guard.LATE_MODULES:
    assert name not in sys.modules, name
    with solver_guard.forbidding([f"{name}.something"]):
        try:
            __import__(name)
        except ImportError:
            print("refused")
    assert name not in sys.modules, name
with solver_guard.forbidding([]):
    import sklearn.metrics.pairwise
"""


@pytest.mark.slow
def test_what_takes_too_long_to_be_loaded_beforehand_cannot_be_imported_meanwhile():
    done = subprocess.run([sys.executable, "-c", IMPORTING_LATE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused"] * len(solver_guard.LATE_MODULES)


def test_attnlibs_own_is_always_forbidden_where_there_is_one():
    for name, exercise in CATALOGUE.items():
        for part in (attnlib, attnlib.numpy, attnlib.torch):
            if name in part.__all__:
                assert f"{part.__name__}.{name}" in exercise.forbidden
    assert CATALOGUE["equivariance_gap"].forbidden == ()


# Answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("assignment", "exercise", "expression", "backend", "unasked"), list(checks()))
def test_the_answers_of_the_solutions_pass_under_the_guard(assignment, exercise, expression, backend, unasked):
    report = examined(assignment, exercise, expression, backend, CATALOGUE[exercise].forbidden, unasked)
    assert report.passed, str(report)


def test_an_answer_that_uses_what_is_forbidden_does_not_pass():
    check = ("03-queries-keys-values", "scaled_dot_product_attention", "scaled_dot_product_attention", "numpy")
    report = examined(*check, ("attnlib.softmax",))
    assert report.score == 0
    assert "Forbidden: attnlib's softmax does what this exercise asks you to write" in report.message


@pytest.mark.parametrize("name", NAMES)
def test_a_cheat_raises_by_a_reference_that_was_taken_before(name):
    _, found = solver_guard._find(name)
    for exercise in CATALOGUE.values():
        if name in exercise.forbidden:
            with forbidding(exercise.forbidden), pytest.raises(Forbidden, match="does what this exercise asks"):
                cheat(name, found)


def gradient_of_logsumexp():
    x = X.clone().requires_grad_()
    torch.logsumexp(x, -1).sum().backward()
    return x.grad


def test_numpys_softmax_is_not_to_be_had_from_anywhere():
    import scipy.special
    from scipy.special import softmax as taken_before

    x, partial, layer = np.ones(3), functools.partial(attnlib.softmax, axis=0), torch.nn.Softmax(-1)
    shortcuts = [
        lambda: attnlib.softmax(x),
        lambda: partial(x),
        lambda: taken_before(x),
        lambda: scipy.special.softmax(x),
        lambda: np.exp(scipy.special.log_softmax(x)),
        lambda: importlib.import_module("scipy.special").softmax(x),
        lambda: torch.from_numpy(x).softmax(-1).numpy(),
        lambda: torch.Tensor.softmax(X, -1),
        lambda: torch.ops.aten.softmax.int(X, -1),
        lambda: torch._softmax(X, -1, False),
        lambda: layer(X),
        lambda: torch.distributions.Categorical(logits=X).probs,
        lambda: torch._C._VariableFunctions.softmax(X, -1),
        lambda: torch.ops.aten._softmax.default(X, -1, False),
        lambda: torch.ops.aten._safe_softmax(X, -1),
        lambda: torch.sparse.softmax(X.to_sparse(), 1),
        lambda: torch.masked.softmax(X, -1),
        lambda: torch._masked_softmax(X, X > 2, 1),
        lambda: torch.func.vmap(lambda row: row.softmax(-1))(X),
        lambda: torch.nn.functional.cross_entropy(X, torch.zeros(2, dtype=torch.long)),
        lambda: torch.logsumexp(X, -1),
        lambda: np.exp(x - scipy.special.logsumexp(x)),
        gradient_of_logsumexp,
        lambda: torch.nn.functional.scaled_dot_product_attention(X, X, torch.eye(3)[:2]),
        lambda: attnlib.attention(np.eye(3), np.eye(3), np.eye(3))[1],
    ]
    for shortcut in shortcuts:
        shortcut()
        with forbidding(CATALOGUE["softmax"].forbidden), pytest.raises(Forbidden):
            shortcut()
        shortcut()


SCRIPT = """
def weigh(x):
    return torch.softmax(x, -1)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch would have us use its compiler
def test_neither_a_script_nor_another_thread_gets_past():
    unit = torch.jit.CompilationUnit(SCRIPT)
    traced = torch.jit.trace(lambda x: torch.softmax(x, -1), X)
    with ThreadPoolExecutor(1) as pool:
        shortcuts = [lambda: unit.weigh(X), lambda: traced(X), lambda: pool.submit(torch.softmax, X, -1).result()]
        for shortcut in shortcuts:
            before = shortcut()
            with forbidding(CATALOGUE["softmax"].forbidden), pytest.raises(RuntimeError, match="asks you to write"):
                shortcut()
            assert torch.equal(shortcut(), before)


def test_work_that_goes_on_in_another_thread_is_stopped_too():
    asked, answered = queue.Queue(), queue.Queue()

    def serve():
        while (x := asked.get()) is not None:
            try:
                answered.put(torch.softmax(x, -1))
            except RuntimeError as error:
                answered.put(error)

    thread = threading.Thread(target=serve)
    thread.start()
    with forbidding(CATALOGUE["softmax"].forbidden):
        asked.put(X)
        assert isinstance(answered.get(timeout=600), Forbidden)
    asked.put(X)
    assert torch.is_tensor(answered.get(timeout=600))
    asked.put(None)
    thread.join()


def test_attention_and_distances_are_stopped_below_their_names():
    shortcuts = {
        "attention": [
            lambda: torch.ops.aten.scaled_dot_product_attention(HEADS, HEADS, HEADS),
            lambda: torch.ops.aten._scaled_dot_product_attention_math(HEADS, HEADS, HEADS),
            lambda: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(HEADS, HEADS, HEADS),
            lambda: torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()(*[torch.ones(1, 2, 4)] * 3),
            lambda: torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()(torch.ones(1, 2, 4)),
        ],
        "gaussian": [
            lambda: torch.cdist(X, X),
            lambda: torch.cdist(X, X, compute_mode="donot_use_mm_for_euclid_dist"),
            lambda: torch.ops.aten._euclidean_dist(X, X),
            lambda: torch.nn.functional.pdist(X),
        ],
    }
    for exercise, ways in shortcuts.items():
        for way in ways:
            way()
            with forbidding(CATALOGUE[exercise].forbidden), pytest.raises(Forbidden):
                way()
            way()


def test_what_an_exercise_allows_works_meanwhile():
    with forbidding(CATALOGUE["attention"].forbidden):
        assert torch.softmax(X, -1).sum() == 2


def test_what_was_made_before_raises_as_well():
    cache, attend = attnlib.numpy.KVCache(), attnlib.torch.MultiHeadAttention(4, 2)
    append = cache.append
    x = np.ones((1, 2))
    with forbidding(CATALOGUE["KVCache"].forbidden):
        for call in (append, cache.append):
            with pytest.raises(Forbidden, match="attnlib's KVCache"):
                call(x, x)
    assert append(x, x)[0].shape == (1, 2)
    with forbidding(CATALOGUE["MultiHeadAttention"].forbidden), pytest.raises(Forbidden):
        attend(torch.ones(1, 2, 4))


def test_a_class_that_only_inherits_raises_and_one_that_only_has_the_name_does_not():
    class KVCache(attnlib.numpy.KVCache):
        pass

    class MultiHeadAttention(torch.nn.Module):
        pass

    with forbidding(CATALOGUE["KVCache"].forbidden), pytest.raises(Forbidden):
        KVCache()
    with forbidding(CATALOGUE["MultiHeadAttention"].forbidden):
        MultiHeadAttention()


# Everything else stays as it is ------------------------------------------------------------------------------------


def state():
    """Return all that the guard may change: codes of functions, what modules hold, who serves torch's operators."""
    found = [solver_guard._find(name)[1] for name in NAMES]
    codes = [function.__code__ for thing in found for function in solver_guard._functions(thing)]
    return found, codes, [torch._C._dispatch_dump(f"aten::{name}") for name in ("_softmax", "_cdist_forward")]


def test_all_is_restored_after_any_end_however_nested():
    before = state()
    for exercise in CATALOGUE.values():
        with pytest.raises(KeyError), forbidding(exercise.forbidden), forbidding(NAMES):
            raise KeyError("of the student's own")
        assert state() == before
    with forbidding(["attnlib.softmax"]):
        with forbidding(["attnlib.softmax", "attnlib.dot"]), pytest.raises(Forbidden):
            attnlib.dot(np.eye(2), np.eye(2))
        attnlib.dot(np.eye(2), np.eye(2))
        with pytest.raises(Forbidden):
            attnlib.softmax(np.ones(2))
    assert state() == before


def test_the_guard_does_change_something():
    before = state()
    with forbidding(NAMES):
        assert state() != before


def test_gradients_and_modules_work_meanwhile():
    layer = torch.nn.Linear(2, 2)
    with forbidding(CATALOGUE["softmax"].forbidden):
        layer.double().load_state_dict(layer.state_dict())
        loss = layer(torch.ones(1, 2, dtype=torch.float64)).exp().sum()
        assert torch.autograd.grad(loss, layer.weight)[0].shape == (2, 2)
        layer(torch.ones(1, 2, dtype=torch.float64)).sum().backward()


def test_a_function_in_c_is_replaced_in_its_module(monkeypatch):
    module = types.ModuleType("written_in_c")
    module.solve = len
    monkeypatch.setitem(sys.modules, "written_in_c", module)
    with forbidding(["written_in_c.solve"]):
        assert len("abc") == 3
        with pytest.raises(Forbidden, match="written_in_c's solve"):
            module.solve("abc")
    assert module.solve is len


def test_functions_around_variables_raise_too(monkeypatch):
    module = types.ModuleType("wrapped")
    module.solve = (lambda a, b, c: lambda x, *, y=1: (a, b, c, x, y))(1, 2, 3)
    monkeypatch.setitem(sys.modules, "wrapped", module)
    with forbidding(["wrapped.solve"]), pytest.raises(Forbidden) as raised:
        module.solve(4)
    raised.traceback[-1].frame.f_locals  # noqa: B018 (a debugger looks at them)
    assert module.solve(4, y=5) == (1, 2, 3, 4, 5)


def test_a_module_that_is_not_there_is_not_imported():
    with forbidding(["there_is_no_such.module", "wave.open", "attnlib.no_such.thing"]):
        pass
    assert "wave" not in sys.modules
