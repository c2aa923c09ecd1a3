"""The formulas below the drawing and the state in the address, run in Node, against attnlib and hostile input."""

import json
import re
import subprocess

import numpy as np
import pytest
from test_explorer_math import DEFAULTS, MODULE, NODE

import attnlib

X = np.array([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
W = {
    "wq": [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    "wk": [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
    "wv": [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
}
EXAMPLE = DEFAULTS | {"positions": "none", "temperature": 1, "length": 3, "words": ["first", "second", "third"]}
EXAMPLE["tables"] = {"x": X.tolist()} | W


def in_node(code, *values):
    """The value of an expression, with the modules of the explorer and these values as ``given``."""
    modules = ("attention", "steps", "address", "plane")
    imports = "".join(f'import * as {name} from "./{name}.js"; ' for name in modules)
    run = f"{imports}const given = JSON.parse(process.argv[1]); console.log(JSON.stringify({code}));"
    command = [NODE, "--input-type=module", "-e", run, "--", json.dumps(values)]
    done = subprocess.run(command, cwd=MODULE.parent, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def formulas(query, **settings):
    """Each step of one query, with its formula: {("dot", 1): "2·4 + 2·4 + 2·0 = 16"}."""
    steps = in_node(
        "given.map((state) => { const look = steps.lookOf(state, attention.explore(state), state.query, 0);"
        "return steps.stepsOf(look).map((step) => [step.stage, step.at,"
        "steps.formulaOf(look, step).map(({ text }) => text).join('')]); })[0]",
        EXAMPLE | settings | {"query": query},
    )
    return {(stage, at): formula for stage, at, formula in steps}


def test_the_example_of_the_page_step_by_step():
    found = formulas(1)
    assert found["project", 0] == "query, component 1:  0·1 + 2·1 + 0·0 + 2·0 = 2"
    assert found["dot", 1] == "2·4 + 2·4 + 2·0 = 16"
    assert found["scale", 1] == "16 / √3 = 9.24"
    assert found["softmax", 2] == "e^(6.93 − 9.24) / (0.00 + 1.00 + 0.10) = 0.09"
    assert found["weigh", 2] == "0.09 · (2, 6, 3) = (0.18, 0.54, 0.27)"
    assert list(found)[-1] == ("add", 2)


@pytest.mark.parametrize(
    ("settings", "score"),
    [
        ({"similarity": "dot"}, attnlib.dot),
        ({"similarity": "cosine"}, attnlib.cosine),
        ({"similarity": "gaussian", "bandwidth": 2}, lambda q, k: attnlib.gaussian(q, k, bandwidth=2)),
        ({"temperature": 0.5}, lambda q, k: attnlib.scaled_dot(q, k) / 0.5),
        ({"scale": 0.3, "mask": "causal"}, lambda q, k: attnlib.scaled_dot(q, k, scale=0.3)),
    ],
)
def test_each_formula_ends_in_the_number_of_attnlib(settings, score):
    q, k, v = (X @ np.array(W[name]) for name in ("wq", "wk", "wv"))
    mask = attnlib.causal_mask(3) if "mask" in settings else None
    context, weights = attnlib.attention(q, k, v, score=score, mask=mask)
    for query in range(3):
        found = formulas(query, **settings)
        last = {step: re.split("= ", formula)[-1].replace("−", "-") for step, formula in found.items()}
        scored = "scale" if ("scale", 0) in last else "dot"
        for j in range(3):
            assert float(last[scored, j]) == pytest.approx(score(q, k)[query, j], abs=0.00501)
            assert float(last["softmax", j]) == pytest.approx(weights[query, j], abs=0.00501)
            assert float(last["add", j]) == pytest.approx(context[query, j], abs=0.00501)
        hidden = [at for (stage, at), formula in found.items() if stage == "mask" and "is hidden from" in formula]
        assert hidden == (list(range(query + 1, 3)) if "mask" in settings else [])


def on_screen(**changed):
    settings = {name: EXAMPLE[name] for name in ("similarity", "scale", "temperature", "bandwidth", "mask", "length")}
    screen = {"words": EXAMPLE["words"], "tables": EXAMPLE["tables"], "query": 1, "head": 0, "step": None, "flips": []}
    return screen | {"settings": settings | changed.pop("settings", {}), "predict": False} | changed


CONTROLS = ["similarity", "temperature", "mask"]


def test_an_address_holds_what_differs_and_is_read_back():
    assert in_node("address.addressOf(...given)", on_screen(), on_screen()) == ""
    settings = {"similarity": "cosine", "temperature": 0.25, "length": 2, "scale": -1.5}
    x = [[0.5, -2, 1e-3, 0], [9, 8, 7, 6], [1, 1, 1, 1]]
    words = ["naïve", "日本", "a;b,c&d='e'"]
    now = on_screen(words=words, tables=EXAMPLE["tables"] | {"x": x}, query=2, step=7, flips=[[0, 2], [1, 1]])
    now |= {"predict": True, "settings": now["settings"] | settings}
    address = in_node("address.addressOf(...given)", now, on_screen())
    assert address.startswith("#look?words=")
    assert ";9,8,7,6;" in address
    assert "wq" not in address
    found = in_node("address.fromAddress(...given)", address, on_screen(), CONTROLS)
    assert found["problems"] == []
    asked = found["asked"]
    assert (asked["words"], asked["tables"], asked["settings"]) == (words, {"x": x}, settings)
    assert (asked["query"], asked["step"], asked["predict"], asked["flips"]) == (2, 7, 1, [[0, 2], [1, 1]])


WRONG_PARTS = {
    "similarity=dott": "“dott” was given, but one of dot, scaled_dot, cosine, gaussian is needed",
    "words=" + "a+" * 200: "The sentence has 200 words, but it must have 1 to 12",
    "words=+": "The sentence has 0 words",
    "x=1e400,0,0,0;1,1,1,1;1,1,1,1": "“1e400” was given",
    "x=1,2;3": "A table of 3 rows of 4 numbers is needed",
    "x=<img src=x onerror=alert(1)>": "<img",
    "query=3": "a number from 0 to 2 is needed",
    "query=1.5": "a whole number is needed",
    "temperature=0": "a number from 0.01 to 1000 is needed",
    "heads=2": "“heads” is not a setting of this page",
    "__proto__=1": "“__proto__” is not a setting",
    "flips=0,3": "Pairs of word positions from 0 to 2 are needed, such as 0,1",
    "%E0%A4%A=&&==": "is not a setting",
}


def test_what_a_hand_edited_address_gets_wrong_is_said_and_left_as_it_was():
    code = "given[0].map((part) => address.fromAddress(`#look?${part}&mask=causal`, given[1], given[2]))"
    for (part, message), found in zip(
        WRONG_PARTS.items(), in_node(code, list(WRONG_PARTS), on_screen(), CONTROLS), strict=True
    ):
        assert any(message in problem for problem in found["problems"])
        assert found["asked"] == {"settings": {"mask": "causal"}, "tables": {}}, part


def test_an_address_of_another_place_of_the_page_asks_for_nothing():
    assert in_node("address.fromAddress(...given)", "#other-similarities", on_screen(), CONTROLS) is None


@pytest.mark.parametrize("arrow", [{"of": "query", "word": 1}, {"of": "key", "word": 0}])
@pytest.mark.parametrize("given", ["x", "x and matrices", "q, k, v"])
def test_a_dragged_arrow_is_where_it_was_dragged_to(arrow, given):
    tables = {"x": X.tolist()} | (W if given == "x and matrices" else {})
    if given == "q, k, v":
        tables = {"q": X.tolist(), "k": (2 * X).tolist(), "v": X.tolist()}
    code = """(() => {
        const [state, arrow, axes, wanted] = given;
        const edits = plane.editsFor(steps.lookOf(state, attention.explore(state), 1, 0), arrow, axes, wanted);
        return edits?.map(({ table, row, column, value }) => [table, row, column, value]) ?? null;
    })()"""
    for name, row, column, value in in_node(code, EXAMPLE | {"tables": tables}, arrow, [0, 2], [-1.5, 2.2]):
        tables[name][row][column] = value
    letter = arrow["of"][0]
    vectors = np.array(tables.get(letter, tables.get("x")), float)
    moved = (vectors @ tables[f"w{letter}"] if f"w{letter}" in tables else vectors)[arrow["word"]]
    np.testing.assert_allclose(moved[[0, 2]], [-1.5, 2.2], rtol=0, atol=0.003)
    if given == "x and matrices":  # the word's vector was changed by as little as possible
        change = np.array(tables["x"], float)[arrow["word"]] - X[arrow["word"]]
        columns = np.array(W[f"w{letter}"], float)[:, [0, 2]]
        least = np.linalg.lstsq(columns.T, columns.T @ change, rcond=None)[0]
        np.testing.assert_allclose(change, least, rtol=0, atol=0.003)


def test_an_arrow_that_a_matrix_of_zeros_makes_cannot_be_dragged():
    state = EXAMPLE | {"tables": EXAMPLE["tables"] | {"wq": np.zeros((4, 3)).tolist()}}
    code = "plane.editsFor(steps.lookOf(given[0], attention.explore(given[0]), 1, 0), given[1], [0, 1], [1, 1])"
    assert in_node(code, state, {"of": "query", "word": 1}) is None
