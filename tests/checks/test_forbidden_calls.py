"""A check warns of an answer that calls what would solve the exercise, which grading does not allow."""

import cProfile
import functools
import json
import sys

import nbformat
import numpy as np
import pytest
import scipy.special
import torch
from correct_solutions import CORRECT_SOLUTIONS

import attnlib
import attnlib.torch
from attnlib.checks import check, examine
from attnlib.checks.__main__ import main
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation
from attnlib.checks.forbidden_calls import watch_calls
from attnlib.checks.report import MIME_TYPE
from grading.sandbox.inside.solver_guard import forbidding

COMPARED = ("softmax", "KVCache", "TransformerBlock", "MultiHeadAttention", "masked_attention")
STYLES = [(*key, style) for key, styles in CORRECT_SOLUTIONS.items() for style in styles if key[0] in COMPARED]


CALLS = {
    "attnlib's own": ("dot", "numpy", attnlib.dot, "attnlib.dot"),
    "under another name": ("dot", "numpy", functools.partial(attnlib.dot), "attnlib.dot"),
    "in a function": ("dot", "numpy", lambda query, key: attnlib.dot(query, key) + 0, "attnlib.dot"),
    "decorated": ("softmax", "numpy", lambda x, axis=-1: scipy.special.softmax(x, axis), "scipy.special.softmax"),
    "a function in C": ("softmax", "torch", lambda x, axis=-1: torch.softmax(x, axis), "torch.softmax"),
    "a method in C": ("softmax", "torch", lambda x, axis=-1: x.softmax(axis), "torch.Tensor.softmax"),
    "a module": ("softmax", "torch", lambda x, axis=-1: torch.nn.Softmax(axis)(x), "torch.nn.Softmax"),
}


@pytest.mark.parametrize(("exercise", "backend", "answer", "name"), CALLS.values(), ids=CALLS)
def test_a_right_answer_that_calls_what_solves_the_exercise_is_told_so(exercise, backend, answer, name, capsys):
    assert check(exercise, answer, points=4, backend=backend) == 4
    headline, warning, *_ = capsys.readouterr().out.splitlines()
    assert headline.endswith(f"right, but it calls {name} · 4 of 4 points")
    assert warning.startswith(f"  {name} does what this exercise asks you to write.")
    assert "would not earn its points" in warning


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "backend", "style"), STYLES)
def test_those_answers_are_warned_of_that_grading_does_not_accept(exercise, backend, style):
    answer = CORRECT_SOLUTIONS[exercise, backend][style]
    report = Evaluation(CATALOGUE[exercise], backend, 0).watched(answer)
    evaluation = Evaluation(CATALOGUE[exercise], backend, 0)
    with forbidding(CATALOGUE[exercise].forbidden):
        graded = evaluation.of(answer)
    assert report.passed
    assert (report.forbidden is None) == graded.passed


def test_an_answer_that_is_not_all_right_is_told_so_as_well(capsys):
    assert 0 < check("softmax", attnlib.softmax, points=4) < 4  # it takes no integers
    assert "attnlib.softmax does what this exercise asks you to write." in capsys.readouterr().out


def test_another_profiler_goes_on_afterwards():
    events = []
    sys.setprofile(lambda *event: events.append(event))
    try:
        before = sys.getprofile()
        with watch_calls(["attnlib.softmax"]) as calls:
            attnlib.softmax(np.ones(3))
        assert sys.getprofile() is before
    finally:
        sys.setprofile(None)
    assert calls == ["attnlib.softmax"]


def test_a_profile_that_is_being_made_goes_on_and_the_check_too(capsys):
    profile = cProfile.Profile()
    profile.enable()
    try:
        assert check("softmax", next(iter(CORRECT_SOLUTIONS["softmax", "numpy"].values())), points=2) == 2
    finally:
        profile.disable()
    assert "right" in capsys.readouterr().out


def test_nothing_is_imported_and_what_is_unknown_is_left_out():
    with watch_calls(["nosuch.softmax", "attnlib.nosuch", "antigravity.geohash"]) as calls:
        attnlib.softmax(np.ones(3))
    assert calls == []
    assert "antigravity" not in sys.modules


def test_examine_and_what_machines_read_stay_as_they_are():
    assert examine("dot", attnlib.dot).title == "right"
    report = Evaluation(CATALOGUE["dot"], "numpy", 0).watched(attnlib.dot)
    data = json.loads(json.dumps(report._repr_mimebundle_()[MIME_TYPE]))
    assert (data["score"], data["passed"]) == (1, True)
    assert "right, but it calls attnlib.dot" in report._repr_mimebundle_()["text/html"]


def test_a_notebook_checked_from_the_shell_says_so_in_its_last_line(tmp_path, capsys):
    source = "import attnlib\nfrom attnlib.checks import check\ncheck('dot', attnlib.dot, points=4)"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, id="a")]), tmp_path / "a.ipynb")
    assert main([str(tmp_path / "a.ipynb")]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("4 of 4 points; grading does not allow: attnlib.dot")
