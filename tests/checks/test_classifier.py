"""Every known mistake is told by its own name, nothing right is called wrong, and nothing wrong is called right."""

import ast
import inspect
import json
import re
import textwrap
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from correct_solutions import CORRECT_SOLUTIONS
from evaluations import examine_again
from mistakes import of_every_mistake
from unknown_mistakes import IN_TORCH as UNKNOWN_MISTAKES_IN_TORCH
from unknown_mistakes import UNKNOWN_MISTAKES

import attnlib
import attnlib.numpy
from attnlib.checks import examine, exercises
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.crash_mistakes import CRASHES
from attnlib.checks.catalogue.general_mistakes import GENERAL_MISTAKES
from attnlib.checks.evaluation import Evaluation

SOLUTIONS = Path(__file__).parents[2] / "solutions"
OTHERS = [
    pytest.param(name, backend, others, id=f"{name}-{backend}")
    for backend, mistakes in (("numpy", UNKNOWN_MISTAKES), ("torch", UNKNOWN_MISTAKES_IN_TORCH))
    for name, others in mistakes.items()
]
CODE = re.compile(r"\breturn \w+, |\blambda\b|\b(np|torch|attnlib)\.[\w.]+\(|\s@\s*\w+[.(]|\bdef\b")


CORE = (
    "softmax",
    "scaled_dot_product_attention",
    "multi_head_attention",
    "masked_attention",
    "sinusoidal_positions",
    "apply_rope",
    "bahdanau_step",
    "luong_step",
)
CHECKED = re.compile(r'^check\("(\w+)"', re.MULTILINE)


def test_the_exercises_are_those_that_the_notebooks_check_in_their_order():
    notebooks = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(SOLUTIONS.glob("*/*.ipynb"))]
    sources = ["".join(cell["source"]) for notebook in notebooks for cell in notebook["cells"]]
    assert exercises() == tuple(dict.fromkeys(name for source in sources for name in CHECKED.findall(source)))


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_exercise_mirrors_the_library_s_function_or_class_of_its_name(name):
    """Only where the library has none of that name, the exercise has a reference of its own; so has softmax."""
    exercise = CATALOGUE[name]
    ours = getattr(attnlib, name, None) or getattr(attnlib.numpy, name, None)
    assert exercise.name == name
    assert exercise.reference is ours or ours is None or name == "softmax"


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_exercise_knows_many_mistakes_by_unique_names(name):
    ids = [mistake.id for mistake in CATALOGUE[name].mistakes]
    assert len(ids) >= (15 if name in CORE else 6)
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one) for one in ids)


@of_every_mistake
def test_a_mistake_says_what_was_wrong_in_whole_sentences(name, mistake):
    assert mistake.says.endswith(".")
    assert mistake.says[0].isupper() or mistake.says[0] in "`."
    assert mistake.title
    assert not mistake.title.endswith(".")
    assert mistake.hint.endswith(("?", "."))
    assert mistake.more.endswith(("?", "."))


@of_every_mistake
def test_a_hint_is_no_solution(name, mistake):
    lines = {re.sub(r"\s", "", line) for line in _statements(CATALOGUE[name].reference)}
    for hint in (mistake.hint, mistake.more):
        assert not CODE.search(hint), "a hint asks or points, it does not spell out a line of the answer"
        assert hint not in mistake.says
        assert not any(line in re.sub(r"\s", "", hint) for line in lines if len(line) > 12)
    assert mistake.hint != mistake.more


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), CORRECT_SOLUTIONS)
def test_a_right_answer_passes_whatever_its_style(name, backend, seeds):
    for seed in seeds:
        evaluation = Evaluation(CATALOGUE[name], backend, seed)
        for style, implementation in CORRECT_SOLUTIONS[name, backend].items():
            report = evaluation.of(implementation)
            assert report.passed, f"{style}, seed {seed}: {report.message}"
            assert report.remark is None, f"{style}, seed {seed}: {report.message}"
            assert report.score == 1.0
            assert report.mistake is None


@pytest.mark.parametrize(("name", "backend"), [(name, b) for name, e in CATALOGUE.items() for b in e.backends])
def test_at_least_four_styles_are_tried_and_the_reference_passes(name, backend):
    reference = CATALOGUE[name].reference_in(backend)
    assert len(CORRECT_SOLUTIONS[name, backend]) >= 4
    assert examine(name, reference, backend=backend).score == 1.0


GENERAL_MISTAKE_IDS = {mistake.id for mistake, _ in GENERAL_MISTAKES} | {crash.id for _, crash in CRASHES}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend", "others"), OTHERS)
def test_a_wrong_answer_that_nobody_foresaw_fails_and_is_not_called_something_else(name, backend, others, seeds):
    misjudged = {}
    for seed in seeds[:2]:
        for text, (implementation, names) in others.items():
            report = examine_again(name, implementation, backend, seed)
            told = report.remark or report
            right = {*names, *(GENERAL_MISTAKE_IDS if None in names else ())}
            if (report.score == 1 and not report.remark) or told.mistake not in right:
                misjudged[text, seed] = told.message
    assert not misjudged


@pytest.mark.slow
def test_one_maximum_for_the_whole_table_is_found_by_every_seed():
    implementation, _ = UNKNOWN_MISTAKES["attention"]["maximum of the whole table"]
    assert not [seed for seed in range(100) if examine("attention", implementation, seed=seed).passed]


@pytest.mark.parametrize("name", ["softmax", "dot", "cosine", "attention", "self_attention"])
def test_the_score_follows_the_rubric_and_without_the_first_criterion_nothing_is_earned(name):
    exercise = CATALOGUE[name]
    first = next(iter(exercise.rubric))
    right = exercise.reference

    def without_batches(*arrays, **options):
        return right(*arrays, **options) if arrays[0].ndim <= 2 else None

    def without_matrices(*arrays, **options):
        return right(*arrays, **options) if arrays[0].ndim > 2 else None

    assert 0 < examine(name, without_batches).score < 1
    assert examine(name, without_matrices).score == 0, f"without {first} nothing is earned"


def test_the_seed_fixes_the_inputs_and_none_draws_new_ones():
    seen = []

    def implementation(query, key):
        seen.append(query.copy())
        return attnlib.dot(query, key)

    for seed in (7, 7, None, None):
        examine("dot", implementation, seed=seed)
    first, second, third, fourth = (seen[i * len(seen) // 4 + 1] for i in range(4))
    assert np.array_equal(first, second)
    assert not np.array_equal(third, fourth)


# The common mistakes again, in torch --------------------------------------------------------------------------------


def scores(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


def overflow(query, key, value):
    e = torch.exp(scores(query, key))
    weights = e / e.sum(-1, keepdim=True)
    return weights @ value, weights


def attend(weights, value):
    return weights @ value, weights


IN_TORCH = {
    "no-scale": lambda q, k, v: attend((q @ k.mT).softmax(-1), v),
    "scaled-by-width": lambda q, k, v: attend((q @ k.mT / q.size(-1)).softmax(-1), v),
    "multiplied-by-root": lambda q, k, v: attend((q @ k.mT * q.size(-1) ** 0.5).softmax(-1), v),
    "scaled-by-keys": lambda q, k, v: attend((q @ k.mT / k.size(-2) ** 0.5).softmax(-1), v),
    "scaled-after-softmax": lambda q, k, v: attend((q @ k.mT).softmax(-1) / q.size(-1) ** 0.5, v),
    "softmax-over-queries": lambda q, k, v: attend(scores(q, k).softmax(-2), v),
    "no-softmax": lambda q, k, v: attend(scores(q, k), v),
    "returns-scores": lambda q, k, v: (scores(q, k).softmax(-1) @ v, scores(q, k)),
    "overflow": overflow,
    "averages-keys": lambda q, k, v: attend(scores(q, k).softmax(-1), k),
    "swapped-results": lambda q, k, v: attend(scores(q, k).softmax(-1), v)[::-1],
    "context-only": lambda q, k, v: scores(q, k).softmax(-1) @ v,
    "hard": lambda q, k, v: attend(torch.nn.functional.one_hot(scores(q, k).argmax(-1), k.size(-2)).to(v.dtype), v),
    "full-transpose": lambda q, k, v: attend(
        (q @ k.permute(*reversed(range(k.ndim))) / q.size(-1) ** 0.5).softmax(-1), v
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("identifier", IN_TORCH)
def test_a_mistake_made_in_torch_has_the_same_name(identifier, seeds):
    for seed in seeds:
        report = examine("attention", IN_TORCH[identifier], backend="torch", seed=seed)
        assert report.mistake == identifier, report.message
        assert report.score < 1


def detached(query, key, value):
    return attend(scores(query.detach(), key.detach()).softmax(-1), value.detach())


def without_gradients(query, key, value):
    with torch.no_grad():
        return attend(scores(query, key).softmax(-1), value)


def through_numpy(query, key, value):
    results = attnlib.attention(*(x.detach().numpy() for x in (query, key, value)))
    return tuple(torch.from_numpy(x) for x in results)


@pytest.mark.parametrize("implementation", [detached, without_gradients, through_numpy], ids=lambda f: f.__name__)
def test_numbers_without_gradients_are_told_that_no_gradient_flows(implementation):
    report = examine("attention", implementation, backend="torch", seed=0)
    assert 0 < report.score < 1
    assert "no gradient" in report.message
    assert report.mistake == "no-gradient"


@pytest.mark.parametrize("argument", ["query", "key", "value"])
def test_an_argument_that_no_gradient_reaches_is_named(argument):
    def implementation(**arrays):
        arrays[argument] = arrays[argument].detach()
        return attend(scores(arrays["query"], arrays["key"]).softmax(-1), arrays["value"])

    report = examine("attention", lambda q, k, v: implementation(query=q, key=k, value=v), backend="torch", seed=0)
    assert not report.passed
    assert f"no gradient reaches {argument}" in report.message


def test_a_wrong_gradient_is_found_though_the_numbers_are_right():
    def implementation(query, key, value):
        e = torch.exp(scores(query, key) - scores(query, key).amax(-1, keepdim=True))
        return attend(e / e.sum(-1, keepdim=True).detach(), value)

    report = examine("attention", implementation, backend="torch", seed=0)
    assert 0 < report.score < 1
    assert "gradient of query" in report.message


def test_a_caller_who_switched_gradients_off_costs_no_marks():
    with torch.no_grad():
        assert examine("attention", attnlib.attention, backend="torch", seed=0).passed


@cache
def _statements(function):
    """The statements of a function as source lines, without its docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    body = [node for node in tree.body[0].body if not isinstance(node, ast.Expr)]
    return [line.strip() for node in body for line in ast.unparse(node).split("\n")]
