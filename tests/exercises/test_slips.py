"""What the notebook on slips says holds: its tests catch everything and reject nothing, and its listings are wrong."""

import re

import numpy as np
import pytest
from notebook_cells import cells_of, run_cells

import attnlib
from attnlib.checks import check_tests
from attnlib.checks.calling.tested import Implementation, run_test
from attnlib.checks.catalogue.slips import QUESTIONS
from attnlib.checks.mutation.answers import Answers
from attnlib.checks.mutation.mutants import mutants_of
from attnlib.checks.mutation.run_tests import MAX_CALLS
from attnlib.checks.mutation.targets import TARGETS
from attnlib.checks.options import option_texts
from grading.answer_keys import answer_key

GIVEN = {"np": np, "attnlib": attnlib, "check_tests": check_tests}
CELLS, SOLVED = (cells_of(folder, "09-slips/slips") for folder in ("exercises", "solutions"))
LISTINGS = {name: text for name, text in CELLS.items() if name.startswith("listing-") and name.endswith("-task")}
TESTS = {
    "softmax": "softmax",
    "attention": "scaled_dot_product_attention",
    "mask": "causal_mask",
    "heads": "multi_head_attention",
    "rope": "apply_rope",
    "cache": "kv_cache",
}


def asking(target, implementation, calls):
    answers = Answers(target, [implementation])

    def ask(arguments, options):
        calls.append(arguments)
        answer = answers.answer(0, arguments, options)
        return answer.value, answer.error, answer.changed

    return ask


def rejecting(tests, target, implementation):
    """Return the tests that reject an implementation, and how often they called it."""
    calls = []
    proxy = Implementation(asking(target, implementation, calls))
    return [outcome for outcome in (run_test(test, proxy) for test in tests) if outcome.error], len(calls)


@pytest.mark.slow
@pytest.mark.parametrize("cell", TESTS)
def test_the_solutions_catch_every_mutant_and_reject_no_correct_version(cell):
    target = TARGETS[TESTS[cell]]
    tests = run_cells(SOLVED, (cell,), GIVEN)[f"{cell}_tests"]
    for version in target.correct:
        rejected, calls = rejecting(tests, target, version.implementation)
        assert rejected == [], version.style
        assert calls <= MAX_CALLS
    survivors = [m.mistake.id for m in mutants_of(target) if not rejecting(tests, target, m.mistake.implementation)[0]]
    assert survivors == []


def test_the_first_test_catches_some_mistakes_and_not_all(capsys):
    assert 0 < run_cells(CELLS, ("first",), GIVEN)["earned"] < 1.5
    assert "of 14 mistakes caught" in capsys.readouterr().out


def listed(name):
    """Return the code of a listing without the numbers of its lines."""
    (block,) = re.findall(r"```text\n(.*?)\n```", LISTINGS[f"{name}-task"], re.DOTALL)
    return re.sub(r"^\d  ", "", block, flags=re.MULTILINE)


def defined(name):
    (made,) = (
        x for x in run_cells({"code": listed(name)}, ("code",), GIVEN).items() if x[0] not in (*GIVEN, "__builtins__")
    )
    return made[1]


def line_of(question):
    """Return the line that the right option names."""
    text = option_texts()[question.name][answer_key(question.name).right]
    return listed(question.name).split("\n")[int(re.match(r"Line (\d)", text)[1]) - 1].strip()


@pytest.mark.parametrize(
    ("name", "line", "mended"),
    [
        ("listing-softmax", "shifted = x - x.max()", "shifted = x - x.max(axis=axis, keepdims=True)"),
        (
            "listing-attention",
            "scores = scores / np.sqrt(query.shape[1])",
            "scores = scores / np.sqrt(query.shape[-1])",
        ),
        ("listing-mask", "return keys + q_offset <= queries", "return keys <= queries + q_offset"),
        (
            "listing-heads",
            "q, k, v = (z.reshape(H, len(x), -1) for z in (q, k, v))",
            "q, k, v = (attnlib.split_heads(z, H) for z in (q, k, v))",
        ),
        ("listing-rope", "x[..., half:] = x[..., :half] * sin + x[..., half:] * cos", None),
        ("listing-cache", "chunks = []", None),
    ],
)
def test_the_line_that_the_right_option_names_is_the_slip(name, line, mended):
    (question,) = (question for question in QUESTIONS if question.name == name)
    assert line_of(question) == line
    if mended:
        source = listed(name).replace(line, mended)
        assert source != listed(name)
        found = run_cells({"code": source}, ("code",), GIVEN)
        assert wrong(name, defined(name))
        assert not wrong(name, next(x for key, x in found.items() if key not in (*GIVEN, "__builtins__")))
    else:
        assert wrong(name, defined(name))


def wrong(name, found):
    """Tell whether a listing gives another result than the library."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 6))
    if name == "listing-softmax":
        rows = np.array([[0.0, 1.0], [-2000.0, -2001.0]])
        with np.errstate(all="ignore"):
            return not np.allclose(found(rows), attnlib.softmax(rows))
    if name == "listing-attention":
        batch = rng.normal(size=(2, 3, 5))
        assert np.allclose(found(x, x, x), attnlib.attention(x, x, x)[0])  # which is right for one sentence
        return not np.allclose(found(batch, batch, batch), attnlib.attention(batch, batch, batch)[0])
    if name == "listing-mask":
        return not (found(2, 5, 1) == attnlib.causal_mask(2, 5, q_offset=1)).all()
    if name == "listing-heads":
        w = rng.normal(size=(4, 6, 6))
        return not np.allclose(found(x, *w, 3), attnlib.multi_head_attention(x, x, x, *w, 3))
    if name == "listing-rope":
        cos, sin = attnlib.rope_tables(np.arange(4), 6)
        return not np.allclose(found(x.copy(), cos, sin), attnlib.apply_rope(x, cos, sin))
    one, other = found(), found()
    one.append(x, x)
    return len(other.append(x, x)[0]) != len(x)


def test_what_the_page_prints_is_no_output_and_the_mended_function_gives_the_library_s():
    cells = run_cells(SOLVED, ("mend-found", "mend"), GIVEN)
    q, k, v = (cells[name] for name in "QKV")
    printed = cells["as_published"](q, k, v)
    np.testing.assert_allclose(printed.sum(axis=-1), 1)
    np.testing.assert_allclose(printed @ v, attnlib.scaled_dot_product_attention(q, k, v, scale=0.5))
    weights, output = cells["mended"](q, k, v)
    np.testing.assert_allclose(output[0], [1.8639, 6.3194, 1.7042], atol=5e-5)
    np.testing.assert_allclose(weights @ v, output)
