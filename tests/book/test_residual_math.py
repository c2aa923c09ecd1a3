"""What the drawing of the residual stream computes and says, run in Node, against attnlib and the page."""

import json
import re
import subprocess
from itertools import product

import numpy as np
import pytest
from _tools.residual import residual_stream
from matplotlib import pyplot as plt
from pages import source
from test_explorer_math import MODULE, NODE

from attnlib import numpy as layers
from attnlib.plotting import show

T, E, F = 5, 6, 7  # words, width, hidden units
ROWS = {"train": [5, 5, 1, 1], "station": [1, 1, 5, 5]}
PARTS = ("attention", "feed_forward")
SETTINGS = [
    {"norm": norm, "off": [part for part, is_off in zip(PARTS, off, strict=True) if is_off]}
    for norm, off in product(("pre", "post"), product((False, True), repeat=2))
]


def in_node(code, *values):
    """The value of an expression, with the modules of the drawing and these values as ``given``."""
    modules = ("transformer_block", "residual_words", "residual_address", "residual_scene")
    imports = "".join(f'import * as {name} from "./{name}.js"; ' for name in modules)
    run = f"{imports}const given = JSON.parse(process.argv[1]); console.log(JSON.stringify({code}));"
    command = [NODE, "--input-type=module", "-e", run, "--", json.dumps(values)]
    done = subprocess.run(command, cwd=MODULE.parent, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def random_block(norm, seed):
    """A block of attnlib whose parameters, norms and biases too, are random, and its parameters as lists."""
    rng = np.random.default_rng(seed)
    block = layers.TransformerBlock(E, num_heads=1, ff_dim=F, norm=norm).double()
    block.load_state_dict({name: rng.normal(size=x.shape) for name, x in block.state_dict().items()})
    return block, {name: x.tolist() for name, x in block.state_dict().items()}


def switched_off(block, off):
    """The same block, in which the last matrix and bias of a part are 0."""
    last = {"attention": block.self_attn.out_proj, "feed_forward": block.linear2}
    for part in off:
        last[part].load_state_dict({name: np.zeros(x.shape) for name, x in last[part].state_dict().items()})
    return block


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_block_computes_what_attnlib_computes_and_a_part_that_is_off_adds_nothing(settings):
    block, params = random_block(settings["norm"], seed=3)
    x = np.random.default_rng(4).normal(size=(T, E))
    stages = in_node("transformer_block.blockStages(...given)", x.tolist(), params, settings)
    out, weights = switched_off(block, settings["off"])(x[None], need_weights=True)
    np.testing.assert_allclose(stages[-1]["rows"], out[0], atol=1e-9)
    for stage in (one for one in stages if one["kind"] == "update"):
        assert (np.abs(stage["rows"]).max() == 0) == (stage["part"] in settings["off"])
        if "weights" in stage:
            np.testing.assert_allclose(stage["weights"], weights[0, 0], atol=1e-9)


@pytest.fixture(scope="module")
def config():
    """The block that the page follows by hand, as Python writes it for the drawing."""
    eye, none = np.eye(4), np.zeros(4)
    params = {
        f"self_attn.{n}_proj.{k}": v for n in ("q", "k", "v", "out") for k, v in (("weight", eye), ("bias", none))
    }
    params |= {f"norm{n}.{k}": v for n in (1, 2) for k, v in (("weight", np.ones(4)), ("bias", none))}
    params |= {"self_attn.q_proj.weight": -100 * eye, "linear1.weight": [[0, 0, 1, 1]], "linear1.bias": [0]}
    params |= {"linear2.weight": [[1], [0], [0], [0]], "linear2.bias": none}
    return residual_stream(ROWS, params, follow="station", shown={}, picture=show(plt.figure(), "A block.")).config


def followed(config, word, norm="pre", off=()):
    """What is shown about a word: each stage's row, formula and sentence, and the sentence about the whole block."""
    code = """(() => {
        const [{ words, rows, params }, settings] = given;
        const stages = transformer_block.blockStages(rows, params, settings);
        const passage = { settings, stages, words, word: words.indexOf(settings.follow), params };
        const formula = (n) => residual_words.residualFormula(passage, n).map(({ text }) => text).join("");
        const shown = ({ rows }, n) => [rows[passage.word], formula(n), residual_words.stageInWords(passage, n)];
        return [stages.map(shown), residual_words.outputInWords(passage)];
    })()"""
    return in_node(code, config, {"follow": word, "norm": norm, "off": list(off)})


def test_the_numbers_are_those_of_the_table_on_the_page(config):
    stages, said = followed(config, "station")
    table = re.findall(r"^\|.*\| \$\(([-\d, ]+)\)\$ \|$", source("book/transformer"), re.MULTILINE)
    assert len(table) == len(stages) == 7
    for row, (computed, formula, _) in zip(table, stages, strict=True):
        np.testing.assert_allclose(computed, [float(x) for x in row.split(",")], atol=1e-4)
        assert formula.endswith(f"({row.replace('-', '−')})")
    assert said == (
        "“station” leaves the block as (4, 2, 4, 4): its input, plus an update of length 2 from attention and an "
        "update of length 2 from the feed-forward layer."
    )


def test_each_formula_by_hand(config):
    assert [formula for _, formula, _ in followed(config, "train")[0]] == [
        "x = (5, 5, 1, 1)",
        "norm(x) = ((5, 5, 1, 1) − 3) / 2 = (1, 1, −1, −1)",
        "a = 0 · (1, 1, −1, −1) + 1 · (−1, −1, 1, 1) = (−1, −1, 1, 1)",
        "x′ = (5, 5, 1, 1) + (−1, −1, 1, 1) = (4, 4, 2, 2)",
        "norm(x′) = ((4, 4, 2, 2) − 3) / 1 = (1, 1, −1, −1)",
        "f = max(0, −1 − 1) · (1, 0, 0, 0) = (0, 0, 0, 0)",
        "y = (4, 4, 2, 2) + (0, 0, 0, 0) = (4, 4, 2, 2)",
    ]
    assert [formula for _, formula, _ in followed(config, "station", "post", ["attention"])[0]] == [
        "x = (1, 1, 5, 5)",
        "a = (0, 0, 0, 0)",
        "x + a = (1, 1, 5, 5) + (0, 0, 0, 0) = (1, 1, 5, 5)",
        "x′ = ((1, 1, 5, 5) − 3) / 2 = (−1, −1, 1, 1)",
        "f = max(0, 1 + 1) · (1, 0, 0, 0) = (2, 0, 0, 0)",
        "x′ + f = (−1, −1, 1, 1) + (2, 0, 0, 0) = (1, −1, 1, 1)",
        "y = ((1, −1, 1, 1) − 0.5) / 0.87 = (0.58, −1.73, 0.58, 0.58)",
    ]


def test_each_sentence_gives_the_lengths(config):
    assert [said for *_, said in followed(config, "train", off=["feed_forward"])[0]] == [
        "The row of “train” enters the stream. Its length is 7.21.",
        "The norm makes a copy of the stream for attention to read. The stream stays as it is.",
        "Attention reads the rows of all words, and gives a weight of 0 to “train” and 1 to “station”. "
        "This makes an update of length 2.",
        "The update is added to the stream, whose length goes from 7.21 to 6.32.",
        "The norm makes a copy of the stream for the feed-forward layer to read. The stream stays as it is.",
        "The feed-forward layer is switched off: its update is 0.",
        "The update is 0, so the stream stays as it was, with a length of 6.32.",
    ]


def test_without_both_parts_the_stream_is_what_came_in(config):
    stages, said = followed(config, "station", off=PARTS)
    assert stages[-1][0] == ROWS["station"]
    assert said == "“station” leaves the block as (1, 1, 5, 5), just as it came in: both updates are 0."


def test_a_norm_on_the_stream_can_leave_nothing_of_it(config):
    stages, said = followed(config, "station", "post")
    assert stages[3][1] == "x′ = ((6, 6, 6, 6) − 6) / √ε = (0, 0, 0, 0)"
    assert said.endswith("All components of a sum were equal, so the norm leaves only zeros.")


@pytest.mark.parametrize("room", [250, 559, 560, 900])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_nothing_is_drawn_outside_of_the_room_or_twice(config, room, norm):
    code = """given[3].map((step) => {
        const [{ words, rows, params }, settings, room] = given;
        const stages = transformer_block.blockStages(rows, params, settings);
        return residual_scene.residualScene({ settings, stages, words, word: 1, params }, step, room);
    })"""
    settings = {"follow": "station", "norm": norm, "off": []}
    for scene in in_node(code, config, settings, room, [*range(7)]):
        keys = [shape["key"] for shape in scene["shapes"]]
        assert len({*keys}) == len(keys)
        for shape in (one["attributes"] for one in scene["shapes"] if one["tag"] == "rect"):
            assert 0 <= shape["x"] <= shape["x"] + shape["width"] <= room
            assert 0 <= shape["y"] <= shape["y"] + shape["height"] <= scene["height"]


def test_an_address_brings_back_what_it_was_made_from():
    shown = [one | {"follow": word, "step": step} for one in SETTINGS for word in ROWS for step in (None, 0, 6)]
    addresses = in_node("given[0].map((one) => residual_address.residualAddress(one, 'station'))", shown)
    assert len({*addresses}) == len(shown)
    code = "given[0].map((one) => residual_address.fromResidualAddress(one || '#residual?', given[1], 'station'))"
    assert in_node(code, addresses, [*ROWS]) == shown


@pytest.mark.parametrize(
    "rest", ["follow=bus", "norm=rms", "off=loss", "step=0", "step=1.5", "step=999", "__proto__=1"]
)
def test_what_an_address_cannot_mean_is_left_out(rest):
    code = "residual_address.fromResidualAddress(given[0], ['train', 'station'], 'station')"
    assert in_node(code, f"#residual?{rest}") == {"follow": "station", "norm": "pre", "off": [], "step": None}
    assert in_node(code, f"#tiles?{rest}") is None


def test_python_refuses_a_block_for_which_the_formulas_have_no_place(config):
    params = config["params"] | {"norm1.bias": [0, 0, 1, 0]}
    with pytest.raises(ValueError, match=r"norm1.bias is \[0, 0, 1, 0\], but 0 is needed everywhere"):
        residual_stream(ROWS, params, follow="station", shown={}, picture=show(plt.figure(), "A block."))
    with pytest.raises(ValueError, match="follow is 'bus', but a word of the sentence is needed: train station"):
        residual_stream(ROWS, params, follow="bus", shown={}, picture=show(plt.figure(), "A block."))
