"""The mathematics of the explorer, run in Node, compared with attnlib on random inputs for every option."""

import functools
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import playwright
import pytest
from _tools.explorer import SETTINGS, attended, checked_options
from pages import ROOT

MODULE = ROOT / "book" / "_explorer" / "attention.js"
NODE = Path(playwright.__file__).parent / "driver" / "node"  # Playwright brings its own
RUN = """
import { explore } from "./attention.js";
let text = "";
for await (const part of process.stdin) text += part;
const plain = ({ heads, context, q, k, v }) => ({ heads, context, q, k, v });
const minus = (_, x) => (x === -Infinity ? "-inf" : Number.isNaN(x) ? "nan" : x);
console.log(JSON.stringify(JSON.parse(text).map((state) => plain(explore(state))), minus));
"""
SIMILARITIES = [
    {"similarity": "dot"},
    {"similarity": "scaled_dot"},
    {"similarity": "scaled_dot", "scale": -0.7},
    {"similarity": "cosine"},
    {"similarity": "gaussian", "bandwidth": 1.7},
    {"similarity": "scaled_dot", "temperature": 0.6},
]
MASKS = [
    {"mask": "none"},
    {"mask": "causal"},
    {"mask": "padding", "length": 3},
    {"mask": "both", "length": 2},
    {"mask": "padding", "length": 0},
    {"mask": "causal", "flips": [[0, 3], [2, 1], [4, 4]]},
]
POSITIONS = ["none", "sinusoidal", "rope", "alibi"]
DEFAULTS = {"similarity": "scaled_dot", "scale": None, "bandwidth": 1.0, "heads": 1, "mask": "none", "length": None}
# Words, width of x, width of a head of the queries, of the values: all different. RoPE and sinusoids need even ones.
T, D, D_K, D_V = 5, 8, 4, 3


def in_node(states, folder=MODULE.parent):
    """Compute each state with the module in a folder."""
    plain = [state | {"tables": {name: table.tolist() for name, table in state["tables"].items()}} for state in states]
    for state in plain:
        if state["length"] is None:
            del state["length"]
    command = [NODE, "--input-type=module", "-e", RUN]
    done = subprocess.run(
        command, input=json.dumps(plain), cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return [{name: numbers(value) for name, value in one.items()} for one in json.loads(done.stdout)]


def numbers(value):
    if isinstance(value, list) and value and isinstance(value[0], dict):  # the heads
        return {name: np.array([head[name] for head in value], float) for name in value[0]}
    return np.array(value, float)


def tables(kind, heads, rng):
    """Random tables: words alone, words and matrices, or queries, keys and values."""
    if kind == "x":
        return {"x": rng.normal(size=(T, 12 if heads == 3 else D))}
    if kind == "x and matrices":
        widths = {"wq": heads * D_K, "wk": heads * D_K, "wv": heads * D_V}
        return {"x": rng.normal(size=(T, D))} | {name: rng.normal(size=(D, n)) for name, n in widths.items()}
    return {name: rng.normal(size=(T, heads * n)) for name, n in (("q", D_K), ("k", D_K), ("v", D_V))}


@functools.cache
def every_state(seed):
    """Each combination of settings, with random tables and with the weights and the context that attnlib computes."""
    return [(state, attended(state["tables"], **settings_of(state))) for state in states(seed)]


def settings_of(state):
    return {name: value for name, value in state.items() if name != "tables"}


def states(seed):
    rng = np.random.default_rng(seed)
    kinds = ["x", "x and matrices", "q, k, v"]
    for kind, similar, mask, positions, heads in itertools.product(kinds, SIMILARITIES, MASKS, POSITIONS, [1, 2, 3]):
        if not (kind == "q, k, v" and positions == "sinusoidal"):  # they are added to the words, which are not given
            yield DEFAULTS | similar | mask | {
                "positions": positions, "heads": heads, "tables": tables(kind, heads, rng)
            }  # fmt: skip


def differences(cases, folder=MODULE.parent):
    """By how much Node and attnlib differ in each state: weights and context."""
    states, right = zip(*cases, strict=True)
    for (weights, context), ours in zip(right, in_node(states, folder), strict=True):
        assert ours["heads"]["weights"].shape == weights.shape
        assert ours["context"].shape == context.shape
        yield max(abs(ours["heads"]["weights"] - weights).max(), abs(ours["context"] - context).max())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_every_option_computes_what_attnlib_computes(seed):
    assert len(every_state(seed)) == (3 * 4 - 1) * 6 * 6 * 3
    assert max(differences(every_state(seed))) < 1e-12  # 1e-6 would be enough


FAULTS = {
    "the scale is forgotten": ("factor * inner(q, k)", "inner(q, k)"),
    "the scale is that of all heads": ("Math.sqrt(query[0].length)", "Math.sqrt(2 * query[0].length)"),
    "the mask is shifted": ("(i, j) => j <= i,", "(i, j) => j < i,"),
    "a painted pair is turned around": ("`${i},${j}`", "`${j},${i}`"),
    "the temperature is forgotten": ("s / temperature", "s"),
    "ALiBi favours what is far": ("s - slope", "s + slope"),
    "RoPE turns the other way for one half": ("-row[d + half]", "row[d + half]"),
    "slopes of three heads are those of four": (
        "2 ** Math.floor(Math.log2(heads))",
        "2 ** Math.ceil(Math.log2(heads))",
    ),
    "heads are cut wrongly": ("row.slice(h * width, (h + 1) * width)", "row.filter((_, d) => d % heads === h)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault, tmp_path):
    right, wrong = FAULTS[fault]
    text = MODULE.read_text()
    assert text.count(right) == 1
    (tmp_path / "attention.js").write_text(text.replace(right, wrong))
    some = every_state(0)[::7]  # still covers each option: no setting has a multiple of 7 options
    assert max(differences(some, tmp_path)) > 1e-3


def by_hand(**settings):
    x = np.array([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
    (found,) = in_node([DEFAULTS | {"positions": "none", "tables": {"x": x}} | settings])
    return found


def test_three_words_worked_by_hand():
    found = by_hand()
    e = np.e
    assert found["heads"]["scores"][0].tolist() == [[1, 0, 1], [0, 4, 2], [1, 2, 2]]
    np.testing.assert_allclose(found["heads"]["weights"][0][0], np.array([e, 1, e]) / (2 * e + 1), rtol=1e-14)
    np.testing.assert_allclose(found["context"][0], np.array([2 * e, 2 + e, 2 * e, 2 + e]) / (2 * e + 1), rtol=1e-14)


def test_a_sentence_of_padding_attends_to_nothing():
    found = by_hand(mask="padding", length=0)
    assert not found["heads"]["weights"].any()
    assert not found["context"].any()
    assert (found["heads"]["masked"] == -np.inf).all()


def test_large_scores_do_not_overflow_and_vectors_of_zeros_have_a_cosine():
    found = by_hand(similarity="dot", tables={"x": np.array([[1000.0, 0], [0, 1000]])})
    assert found["heads"]["weights"][0].tolist() == [[1, 0], [0, 1]]
    zeros = by_hand(similarity="cosine", tables={"x": np.array([[0.0, 0], [1e200, 1e200]])})
    np.testing.assert_allclose(zeros["heads"]["scores"][0], [[0, 0], [0, 1]], atol=1e-15)


def test_what_cannot_be_computed_is_said_in_words(tmp_path):
    shutil.copy(MODULE, tmp_path)
    x = {"x": [[1, 2, 3]]}
    states = [
        {"tables": x, "heads": 2},
        {"tables": x, "positions": "sinusoidal"},
        {"tables": x, "heads": 3, "positions": "rope"},
        {"tables": x, "heads": 3},
    ]
    run = (
        'import {problem} from "./attention.js"; console.log(JSON.stringify(JSON.parse(process.argv[1]).map(problem)))'
    )
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", run, "--", json.dumps(states)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    uneven, odd, narrow, fine = json.loads(done.stdout)
    assert uneven == "2 heads cannot share 3 columns evenly: choose a number of heads that divides 3"
    assert "3 numbers" in odd
    assert "1 wide" in narrow
    assert fine is None


# ---- the options, which Python and JavaScript read from one file


def options():
    return json.loads((MODULE.parent / "options.json").read_text(encoding="utf-8"))


def changed(path, value):
    """The options, with another value in one place."""
    changed = place = options()
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return changed


WRONG_OPTIONS = {
    "a similarity that nobody computes": (["controls", "similarity", "options", "euclidean"], "Euclid's"),
    "a field of an option that does not exist": (["fields", "length", "when"], ["pading"]),
}


@pytest.mark.parametrize("fault", WRONG_OPTIONS)
def test_python_and_javascript_both_refuse_options_that_they_cannot_compute(fault, tmp_path):
    path, value = WRONG_OPTIONS[fault]
    wrong = changed(path, value)
    with pytest.raises(ValueError, match=r"euclidean|pading"):
        checked_options(wrong)
    for name in ("attention.js", "options.js"):
        shutil.copy(MODULE.with_name(name), tmp_path)
    for content, status in ((options(), 0), (wrong, 1)):
        (tmp_path / "options.json").write_text(json.dumps(content))
        done = load_options(tmp_path, "{}")
        assert done.returncode == status, done.stderr
    assert re.search("options.json .*(euclidean|pading)", done.stderr)


@pytest.mark.parametrize(("setting", "value"), [("similarity", "dott"), ("mask", None), ("heads", 5)])
def test_javascript_refuses_a_page_with_a_setting_that_is_none_of_the_options(setting, value):
    for settings, status in ((SETTINGS, 0), (SETTINGS | {setting: value}, 1)):
        done = load_options(MODULE.parent, f"checkedSettings({json.dumps(settings)})")
        assert done.returncode == status, done.stderr
    assert f"{setting} is {json.dumps(value).strip(chr(34))}, but the options are" in done.stderr


def load_options(folder, then):
    code = f'import {{ checkedSettings }} from "./options.js"; {then};'
    command = [NODE, "--input-type=module", "-e", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
