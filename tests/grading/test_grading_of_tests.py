"""Tests that students write are graded by what they catch; what they learn otherwise, or forge, earns nothing."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from attacks.on_tests import ATTACKS, HELPERS, source_of

from attnlib.checks.mutation import answers as answers_module
from attnlib.checks.mutation.answers import Answers
from attnlib.checks.mutation.run_tests import report_on_tests
from attnlib.checks.mutation.sample import CORRECT, MUTANTS
from attnlib.checks.mutation.targets import TARGETS
from attnlib.checks.report import MIME_TYPE
from grading import pool
from grading.graded_cell import GradedCell
from grading.judge import Judge
from grading.sandbox import bubblewrap, mutation
from grading.sandbox.execute import execute
from grading.sandbox.inside import codec
from grading.sandbox.limits import MB, Limits
from grading.task import Answered, Result, Step, Task

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(bubblewrap.why_not() is not None, reason="no sandbox can be had here"),
]
LIMITS = Limits(cell=5, notebook=60, grace=0.3, memory=300 * MB)
JUDGE = Judge(20260)
HONEST = """def rows(softmax):
    assert np.allclose(softmax(np.array([[0.0, 0.0], [0.0, np.log(3)]])), [[0.5, 0.5], [0.25, 0.75]])
def large(softmax):
    assert np.allclose(softmax(np.array([[1000.0, 1000.0], [0.0, 0.0]])), 0.5)
def middle(softmax):
    assert np.allclose(softmax(np.zeros((2, 4, 3)), axis=1), 0.25)
"""
DEMANDS_TOO_MUCH = "def exact(softmax):\n    assert (softmax(np.zeros((1, 3))) == 1 / 3).all()\n"


def graded_cell(tests: str) -> GradedCell:
    return GradedCell("check", tests, 10.0, target=TARGETS["softmax"])


def report(result, i, cell):
    """Return what is shown for a graded cell, as a machine reads it; None if it is only an error."""
    outputs = JUDGE.outputs(cell, result.answered.get(i), result.stops.get(i, ("", ""))[1])
    return next((output.data[MIME_TYPE] for output in outputs if MIME_TYPE in output.get("data", {})), None)


def graded(host, *sources_and_tests):
    """Run cells, each with the list of tests that is graded after it, in one notebook; return the reports."""
    steps, cells = [Step("helpers", HELPERS)], {}
    for source, tests in sources_and_tests:
        cell = graded_cell(tests)
        steps += [Step("tests", source), Step("check", probe=JUDGE.probe(cell))]
        cells[len(steps) - 1] = cell
    result = execute(host, Task(tuple(steps), LIMITS))
    assert not result.lost
    return [report(result, i, cell) for i, cell in cells.items()], result


@pytest.fixture(scope="module")
def earned(host):
    """What each attack earned, all of them in one notebook, with an honest answer before them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutation, "SECONDS", 1.0)
        names = [f"attack_{n}" for n in range(len(ATTACKS))]
        sources = [source_of(does, name) for does, name in zip(ATTACKS, names, strict=True)]
        attacks = [("", f"[{name}]") for name in names]  # all in one cell: some attacks spoil the cells after them
        reports, _ = graded(host, (HONEST + "".join(sources), "[rows, large, middle]"), *attacks)
    return dict(zip(["honest", *ATTACKS], reports, strict=True))


def test_there_are_at_least_25_attacks():
    assert len(ATTACKS) >= 25


@pytest.mark.parametrize("does", ATTACKS)
def test_an_attack_earns_nothing(earned, does):
    said = earned[does]
    assert said is None or said["score"] == 0, said


def test_the_honest_earn_what_they_earn_at_home(earned):
    functions: dict[str, object] = {"np": np}
    exec(HONEST, functions)
    seed = JUDGE.probe(graded_cell("[]")).seed
    home = report_on_tests("softmax", [functions[name] for name in ("rows", "large", "middle")], seed=seed, points=10.0)
    assert 0 < home.score < 1
    assert earned["honest"] == json.loads(json.dumps(home.data()))


def test_a_correct_version_that_is_refused_is_named_and_a_missing_test_is_an_error(host):
    (said, missing), result = graded(host, (DEMANDS_TOO_MUCH, "[exact]"), ("", "[nowhere]"))
    assert said["score"] == 0
    assert "exact rejects a correct version" in said["message"]
    assert missing is None
    (output,) = JUDGE.outputs(graded_cell("[nowhere]"), result.answered[4], "")
    assert (output.ename, output.evalue) == ("NameError", "name 'nowhere' is not defined")


def test_nothing_is_earned_if_an_implementation_is_missing_or_the_lists_of_tests_differ():
    caught = [{"test": "t", "error": "AssertionError", "line": None}]
    passed = [{"test": "t", "error": None, "line": None}]
    full = {n: passed if n < CORRECT else caught for n in range(CORRECT + MUTANTS)}
    cell = graded_cell("[t]")
    scores = []
    for tests in (full, {n: full[n] for n in range(CORRECT + MUTANTS - 1)}, full | {2: passed * 2}, full | {9: []}, {}):
        answered = {1: Answered(tests=tests)}
        scores.append(report(Result(answered=answered), 1, cell)["score"])
    assert scores == [1, 0, 0, 0, 0]
    assert (
        report(Result(answered={1: Answered(tests=full)}, stops={1: ("timeout", "took long.")}), 1, cell)["score"] == 0
    )


@pytest.mark.parametrize("number", range(3))
def test_the_first_call_runs_every_implementation_and_a_repeated_one_none(number):
    ran = []
    answers = Answers(TARGETS["softmax"], [lambda x, axis=-1, n=n: ran.append(n) or x for n in range(3)])
    for x in (np.zeros(2), np.zeros(2), np.zeros((1, 2)), np.zeros(2, np.float32)):
        answers.answer(number, [x], {})
    assert ran == [0, 1, 2] * 3
    answers.answer(number, [np.zeros(2)], {"axis": 0})
    assert ran == [0, 1, 2] * 4


def test_a_repeated_call_waits_as_long_as_the_first_one_took(monkeypatch):
    slept = []
    monkeypatch.setattr(mutation, "sleep", slept.append)
    tested = mutation._Tested(JUDGE.probe(graded_cell("[t]")), Answered())
    monkeypatch.setattr(answers_module, "perf_counter", iter([100.0, 107.0]).__next__)  # the first call took 7 seconds
    call = [codec.encode([np.zeros((2, 3))]), codec.encode({})]
    for implementation in (4, 9):
        tested._reply(implementation, call)
    assert [round(seconds) for seconds in slept] == [7, 7]


def test_the_order_is_another_for_every_submission():
    probe = JUDGE.probe(graded_cell("[t]"))
    orders = {tuple(mutation._Tested(probe, Answered())._order) for _ in range(5)}
    assert len(orders) == 5
    assert all(sorted(order) == list(range(CORRECT + MUTANTS)) for order in orders)


def test_the_box_is_told_neither_the_target_nor_the_seed(host, monkeypatch):
    sent = []
    monkeypatch.setattr(mutation.SubmissionProcess, "ask", _recorded(mutation.SubmissionProcess.ask, sent))
    monkeypatch.setattr(mutation, "MUTANTS", 1 - CORRECT)  # a single round
    monkeypatch.setattr(mutation, "draw_sample", lambda target, seed: _Short())
    graded(host, ("def t(f):\n    pass", "[t]"))
    asked = [message for message in sent if "test" in message]
    assert len(asked) == 1
    assert set(asked[0]) == {"test", "nonce"}
    assert asked[0]["test"] == "[t]"


class _Short:
    target, implementations = TARGETS["softmax"], (TARGETS["softmax"].correct[0].implementation,)


def _recorded(ask, sent):
    def recorded(self, message, *args, **options):
        sent.append(message)
        return ask(self, message, *args, **options)

    return recorded


def test_outcomes_come_back_from_a_cluster_as_they_were():
    result = Result(answered={3: Answered({"a": 1}, {}, {0: [{"test": "t", "error": None, "line": None}]}, {"plain"})})
    packed = json.dumps(pool._plain(result))
    assert asdict(pool._result(json.loads(packed))) == asdict(result)
