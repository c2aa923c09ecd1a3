"""``check`` returns what was earned, and nothing that a student's function does can break it."""

import importlib.util
import linecache
import logging
import math
import sys
import textwrap
import warnings

import numpy as np
import pytest
import torch

import attnlib
from attnlib.checks import CheckFailed, Report, check, examine


def right(query, key):
    return query @ np.swapaxes(key, -1, -2)


def overflowing(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def from_source(source, filename="<ipython-input-3-cafe>"):
    """Define a function as a notebook does: the source is in linecache, not in a file."""
    source = textwrap.dedent(source)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {"np": np, "attnlib": attnlib}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["f"]


# What check returns and raises --------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 4, 0.5, np.int64(3), np.float32(2), True])
def test_all_points_are_earned_as_a_plain_float(points, capsys):
    earned = check("dot", right, points=points)
    assert type(earned) is float
    assert earned == float(points)


@pytest.mark.parametrize("points", [1, 4, 7, 0.1, 1e-9])
def test_partial_credit_is_a_plain_float_between_0_and_the_points(points, capsys):
    earned = check("softmax", overflowing, points=points)
    assert type(earned) is float
    assert 0 < earned < points
    assert math.isclose(earned, points * examine("softmax", overflowing).score)


def test_one_point_is_what_a_check_is_worth_by_default(capsys):
    assert check("dot", right) == 1.0


def test_nothing_earned_raises_with_the_report_as_text(capsys):
    with pytest.raises(CheckFailed, match="dot") as caught:
        check("dot", lambda query, key: -right(query, key), points=2, seed=1)
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value).strip() in capsys.readouterr().out, "it has been shown by then"


def test_examine_shows_nothing_and_never_raises_for_a_wrong_answer(capsys):
    report = examine("dot", lambda query, key: None)
    assert isinstance(report, Report)
    assert type(report.score) is float
    assert report.passed is False
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("points", [0, -1, float("nan"), float("inf"), -float("inf")])
def test_points_that_are_no_positive_number_are_refused(points):
    with pytest.raises(ValueError, match="positive"):
        check("dot", right, points=points)


@pytest.mark.parametrize("points", ["4", None, [1]])
def test_points_that_are_no_number_are_refused(points):
    with pytest.raises(TypeError):
        check("dot", right, points=points)


@pytest.mark.parametrize(
    ("name", "near"),
    [("sofmax", "softmax"), ("Softmax", "softmax"), ("self-attention", "self_attention"), ("cosin", "cosine")],
)
def test_a_misspelt_exercise_suggests_the_near_one(name, near):
    with pytest.raises(ValueError, match=f"did you mean '{near}'"):
        check(name, right)


@pytest.mark.parametrize("name", ["zzz", "", 3, ["dot"]])
def test_an_unknown_exercise_lists_those_there_are(name):
    with pytest.raises(ValueError, match=r"softmax, dot, cosine, gaussian, .*, attention, self_attention"):
        examine(name, right)


@pytest.mark.parametrize("backend", ["jax", "Torch", None])
def test_an_unknown_backend_is_refused(backend):
    with pytest.raises(ValueError, match="'numpy' or 'torch'"):
        check("dot", right, backend=backend)


@pytest.mark.parametrize("implementation", [None, np.zeros(3), "dot", right(np.ones((1, 2)), np.ones((1, 2)))])
def test_what_cannot_be_called_is_refused(implementation):
    with pytest.raises(TypeError, match="a function is needed"):
        check("dot", implementation)


# Exceptions ---------------------------------------------------------------------------------------------------------


def test_an_exception_shows_the_student_s_own_line_of_a_notebook():
    f = from_source("""
        def f(query, key):
            scores = query @ key
            return scores
        """)
    message = examine("dot", f, seed=0).message
    assert "ValueError" in message
    assert "line 3: scores = query @ key" in message


def test_an_exception_shows_the_student_s_own_line_of_a_file(tmp_path):
    path = tmp_path / "homework.py"
    path.write_text("def helper(x):\n    return x.no_such_thing\n\n\ndef f(query, key):\n    return helper(query)\n")
    spec = importlib.util.spec_from_file_location("homework", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    message = examine("dot", module.f, seed=0).message
    assert "AttributeError" in message
    assert "no_such_thing" in message
    assert "line 2: " in message


@pytest.mark.parametrize(
    "line",
    [
        "np.apply_along_axis(lambda v: v.foo, -1, query)",
        "np.linalg.norm(query, axis=7)",
        "np.concatenate([query, key], axis=5)",
        "__import__('statistics').mean([])",
        "__import__('json').loads('{')",
        "attnlib.dot(query, key[..., :1])",
    ],
    ids=["numpy-callback", "numpy-linalg", "numpy", "statistics", "json", "attnlib"],
)
def test_the_line_shown_is_the_student_s_though_a_library_raised(line):
    f = from_source(f"def f(query, key):\n    out = {line}\n    return out\n", filename=f"<ipython-input-{len(line)}>")
    message = examine("dot", f, seed=0).message
    assert "line 2: " in message
    assert line in message


def test_a_line_that_is_not_known_is_left_out():
    namespace = {}
    exec("def f(query, key):\n    return query @ key\n", namespace)
    message = examine("dot", namespace["f"], seed=0).message
    assert "ValueError" in message
    assert "None" not in message


@pytest.mark.parametrize(
    "error", ["NotImplementedError", "NotImplementedError()", "NotImplementedError('YOUR CODE HERE')"]
)
def test_the_untouched_stub_is_told_that_it_is_not_written_yet(error):
    report = examine("dot", from_source(f"def f(query, key):\n    raise {error}\n"), seed=0)
    assert report.title == "not written yet"
    assert report.score == 0
    assert report.mistake is None


def test_an_operation_that_torch_does_not_implement_is_not_an_empty_stub():
    def f(query, key, value):
        return (query @ key.mT).long().softmax(-1), value

    report = examine("attention", f, backend="torch", seed=0)
    assert "not implemented for 'Long'" in report.message
    assert report.title != "not written yet"


def test_endless_recursion_is_an_exception_like_any_other():
    def f(query, key):
        return f(query, key)

    report = examine("dot", f, seed=0)
    assert report.score == 0
    assert "RecursionError" in report.message
    assert len(report.message) < 2000


class CannotBeShownError(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    "error", [CannotBeShownError(), ExceptionGroup("two", [ValueError("a")]), MemoryError(), StopIteration()]
)
def test_an_exception_of_any_kind_is_reported(error):
    def f(query, key):
        raise error

    report = examine("dot", f, seed=0)
    assert report.score == 0
    assert type(error).__name__ in report.message


def test_leaving_the_program_is_a_mistake_and_does_not_end_the_notebook():
    def f(query, key):
        sys.exit(1)

    report = examine("dot", f, seed=0)
    assert report.score == 0
    assert "SystemExit" in report.message


def test_whoever_interrupts_a_check_is_obeyed():
    def f(query, key):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine("dot", f)


def test_one_argument_too_many_or_too_few_is_told_in_python_s_words():
    assert "missing 1 required positional argument" in examine("dot", lambda query, key, value: query).message
    assert "2 were given" in examine("dot", lambda: 1).message
    assert "unexpected keyword argument 'axis'" in examine("softmax", lambda x: attnlib.softmax(x)).message


# Warnings and the caller's settings ---------------------------------------------------------------------------------


def noisy(query, key):
    warnings.warn("a student's warning", stacklevel=1)
    np.log(np.zeros(2))
    np.exp(np.full(2, 1e9))
    np.zeros(1) / np.zeros(1)
    return right(query, key)


def test_warnings_never_cost_marks():
    assert examine("dot", noisy).passed


def test_nor_do_they_when_the_caller_makes_them_errors():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert examine("dot", noisy).passed
        assert examine("softmax", overflowing).mistake == "no-shift"


@pytest.mark.parametrize("size", [1e308, 3e307, 1e-320, 5e-324, -1e308])
def test_numbers_at_the_edge_of_floating_point_break_no_report(size):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        reports = [
            examine("softmax", lambda x, axis=-1: np.full_like(x, size)),
            examine("dot", lambda query, key: np.full_like(attnlib.dot(query, key), size)),
            examine("attention", lambda q, k, v: tuple(np.full_like(x, size) for x in attnlib.attention(q, k, v))),
        ]
        assert [report.score for report in reports] == [0, 0, 0]
        assert all(report._repr_mimebundle_()["text/html"] for report in reports)


def test_the_caller_s_settings_are_left_as_they_were():
    def f(query, key):
        np.seterr(all="ignore")
        warnings.simplefilter("ignore")
        return right(query, key)

    before, filters = np.geterr(), list(warnings.filters)
    examine("dot", f)
    assert np.geterr() == before
    assert list(warnings.filters) == filters


def test_a_student_who_makes_warnings_errors_is_heard():
    def f(query, key):
        with np.errstate(all="raise"):
            return right(query, key) * np.exp(np.float64(1e9))

    assert "FloatingPointError" in examine("dot", f).message


def test_printing_and_global_state_cost_no_marks(capsys):
    calls = []

    def f(query, key):
        calls.append(query.shape)
        np.random.seed(0)
        print("working on it")
        return right(query, key)

    assert examine("dot", f).passed
    assert len(calls) > 5


def test_what_a_function_writes_to_stderr_costs_no_marks(capsys):
    """Stock nbgrader gives 0 to a cell with any output on stderr, whatever number the cell returns."""

    def f(query, key):
        print("debugging", file=sys.stderr)
        logging.warning("more debugging")
        with np.errstate(all="print"):
            np.exp(np.full(2, 1e9))
        return right(query, key)

    assert check("dot", f) == 1
    assert capsys.readouterr().err == ""


def test_a_report_itself_writes_nothing_to_stderr(recwarn):
    def right_for_matrices_alone(x, axis=-1):
        return attnlib.softmax(x, axis) if x.ndim < 3 and axis == -1 and x.max() < 50 else np.full_like(x, 1e308)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert 0 < examine("softmax", right_for_matrices_alone).score < 1
    assert not recwarn.list


def test_what_a_function_keeps_and_changes_later_is_its_own():
    kept = []

    def f(query, key):
        for x in kept:
            x += 1
        kept.append(right(query, key))
        return kept[-1]

    assert examine("dot", f).passed


# What comes back ----------------------------------------------------------------------------------------------------


ATTENTION = {
    "None": (lambda c, w: None, "None"),
    "a tuple of 3": (lambda c, w: (c, w, w), "tuple of 3"),
    "a tuple of 1": (lambda c, w: (c,), "tuple of 1"),
    "an empty tuple": (lambda c, w: (), "tuple of 0"),
    "one array": (lambda c, w: c, "2 arrays"),
    "a dictionary": (lambda c, w: {"context": c, "weights": w}, "dict"),
    "a generator": (lambda c, w: (x for x in (c, w)), "generator"),
    "a string": (lambda c, w: "cw", "str"),
    "nested lists": (lambda c, w: [c.tolist(), w.tolist()], "list"),
    "None for the weights": (lambda c, w: (c, None), "None"),
    "objects": (lambda c, w: (c.astype(object), w), "object"),
    "complex numbers": (lambda c, w: (c + 0j, w), "complex"),
    "text": (lambda c, w: (c.astype(str), w), "<U"),
    "dates": (lambda c, w: (c.astype("datetime64[s]"), w), "datetime64"),
    "NaN": (lambda c, w: (c, w * np.nan), "nan"),
    "infinity": (lambda c, w: (c + np.inf, w), "infinity"),
    "another shape": (lambda c, w: (c[None], w), "shape"),
    "0-d": (lambda c, w: (c.sum(), w), "shape ()"),
    "a number": (lambda c, w: (3.0, w), "float"),
    "nothing in it": (lambda c, w: (c[:0], w), "shape"),
    "tensors": (lambda c, w: (torch.from_numpy(c), torch.from_numpy(w)), "Tensor"),
    "a class": (lambda c, w: np.ndarray, "type"),
}


@pytest.mark.parametrize("label", ATTENTION)
def test_anything_but_the_arrays_asked_for_is_described(label):
    change, told = ATTENTION[label]
    report = examine("attention", lambda q, k, v: change(*attnlib.attention(q, k, v)), seed=0)
    assert report.score == 0
    assert told in report.message
    assert report._repr_mimebundle_()["text/html"]


def test_nan_for_nan_is_no_agreement():
    assert examine("cosine", lambda q, k: attnlib.cosine(q, k) * np.nan).score == 0


def test_true_and_false_are_shown_as_a_table_like_numbers():
    report = examine("dot", lambda query, key: right(query, key) > 0, seed=0)
    assert report.score == 0
    assert "<table" in report._repr_mimebundle_()["text/html"]


class Mine(np.ndarray):
    """An array of a student's own class."""


@pytest.mark.parametrize(
    "change",
    [
        np.ma.masked_array,
        lambda x: x.view(Mine),
        np.asfortranarray,
        lambda x: np.broadcast_to(x, x.shape),
        np.longdouble,
    ],
    ids=lambda f: f.__name__,
)
def test_right_numbers_in_another_kind_of_array_are_right(change):
    assert examine("dot", lambda query, key: change(right(query, key))).passed


def test_np_matrix_is_right_for_matrices_and_told_why_not_for_batches():
    report = examine("dot", lambda query, key: np.matrix(query) @ np.matrix(key).T)
    assert 0 < report.score < 1
    assert "matrix" in report.message


def test_an_object_that_can_be_called_is_a_function():
    class Dot:
        def __call__(self, query, key):
            return right(query, key)

    assert examine("dot", Dot()).passed


@pytest.mark.parametrize("name", ["softmax", "dot", "cosine", "attention", "self_attention"])
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_changing_an_input_changes_no_question_and_no_expected_answer(name, backend):
    def f(*arrays, **options):
        answer = getattr(attnlib, name)(*arrays, **options)
        if not any(getattr(x, "requires_grad", False) for x in arrays):
            for x in arrays:
                x[...] = 7
        return answer

    report = examine(name, f, backend=backend, seed=0)
    assert report.failure.case.criterion == "inputs unchanged", report.message


def test_the_inputs_are_fresh_copies_so_that_changing_them_costs_only_its_own_part():
    def f(query, key):
        scores = right(query, key)
        query[...] = 0
        key.fill(7)
        return scores

    report = examine("dot", f)
    assert 0 < report.score < 1
    assert "changed its argument query" in report.message
