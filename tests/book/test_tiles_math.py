"""What the drawing of tiles counts, run in Node, against pairs counted one by one and the formulas of the chapter."""

import json
import subprocess
from itertools import product

import numpy as np
import pytest
from test_explorer_math import MODULE, NODE

HEAD = {"words": 512, "width": 96, "capacity": 192 * 1024}
SIZES = (64, 128, 256)
SETTINGS = [
    {"method": method, "rows": rows, "columns": columns, "causal": causal}
    for method, rows, columns, causal in product(("tiles", "table"), SIZES, SIZES, (False, True))
]


def in_node(code, *values):
    """The value of an expression, with the modules of the drawing and these values as ``given``."""
    imports = "".join(f'import * as {name} from "./tile_{name}.js"; ' for name in ("traffic", "address", "words"))
    run = f"{imports}const given = JSON.parse(process.argv[1]); console.log(JSON.stringify({code}));"
    command = [NODE, "--input-type=module", "-e", run, "--", json.dumps(values)]
    done = subprocess.run(command, cwd=MODULE.parent, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def counted():
    """The steps of each choice, in the order of SETTINGS."""
    return in_node("given[0].map((settings) => traffic.stepsOf(settings, given[1]))", SETTINGS, HEAD)


def pairs(settings, allowed):
    """How many pairs of each tile are allowed, counted one by one."""
    rows, columns = settings["rows"], settings["columns"]
    return allowed.reshape(len(allowed) // rows, rows, len(allowed) // columns, columns).sum(axis=(1, 3))


def test_exactly_the_tiles_in_which_a_pair_is_allowed_are_computed_and_in_order(counted):
    for settings, steps in zip(SETTINGS, counted, strict=True):
        T = HEAD["words"]
        allowed = np.tri(T) if settings["causal"] and settings["method"] == "tiles" else np.ones((T, T))
        wanted = [[int(i), int(j)] for i, j in np.argwhere(pairs(settings, allowed) > 0)]
        passes = ["tiles"] if settings["method"] == "tiles" else ["scores", "softmax", "values"]
        assert [[one["pass"], one["row"], one["column"]] for one in steps] == [
            [name, *place] for name in passes for place in wanted
        ]


def test_a_tile_is_called_partial_if_the_mask_leaves_some_of_its_pairs():
    for settings in (one for one in SETTINGS if one["causal"]):
        inside = pairs(settings, np.tri(HEAD["words"]))
        code = "given[1].map(([row, column]) => traffic.isPartial(given[0], row, column))"
        places = [[i, j] for i in range(inside.shape[0]) for j in range(inside.shape[1])]
        full = settings["rows"] * settings["columns"]
        assert in_node(code, settings, places) == [0 < inside[i, j] < full for i, j in places]


def test_the_bytes_are_those_of_the_chapter(counted):
    T, d = HEAD["words"], HEAD["width"]
    for settings, steps in zip(SETTINGS, counted, strict=True):
        moved = sum(one["moved"] for one in steps)
        if settings["method"] == "table":
            assert moved == 2 * (4 * T * d + 4 * T**2)
        elif not settings["causal"]:
            assert moved == 2 * 2 * T * d * (1 + T / settings["rows"])
        else:  # the queries and the output once, and two blocks for each tile
            assert moved == 2 * (2 * T * d + 2 * settings["columns"] * d * len(steps))


def test_each_matrix_is_read_and_written_as_often_as_it_must_be(counted):
    for settings, steps in zip(SETTINGS, counted, strict=True):
        rows, columns = (HEAD["words"] // settings[name] for name in ("rows", "columns"))
        times = {part: sum(part in one["read"] + one["written"] for one in steps) for part in "QKVOSP"}
        if settings["method"] == "tiles":
            assert times == {"Q": rows, "O": rows, "K": len(steps), "V": len(steps), "S": 0, "P": 0}
        else:
            tiles = rows * columns
            assert times == {"Q": rows, "O": rows, "K": columns, "V": columns, "S": 2 * tiles, "P": 2 * tiles}


def test_what_is_held_in_fast_memory_by_hand():
    settings = {"method": "tiles", "rows": 128, "columns": 64, "causal": False}
    held = in_node("traffic.heldBy(given[0], given[1], 'tiles')", settings, HEAD | {"width": 128})
    assert {one["part"]: one["bytes"] for one in held} == {
        "Q": 32768, "K": 16384, "V": 16384, "tile": 32768, "O": 65536, "m, l": 1024,
    }  # fmt: skip
    said = in_node("words.heldInWords(given[0], given[1], 'tiles')", settings | {"columns": 128}, HEAD | {"width": 128})
    assert said == "Fast memory: 225 of 192 KB, so this does not fit"


def test_an_address_brings_back_what_it_was_made_from():
    shown = [one | {"step": step} for one in SETTINGS for step in (None, 0, 17)]
    addresses = in_node("given[0].map(address.tileAddress)", shown)
    assert len({*addresses}) == len(shown)
    assert in_node("given[0].map((one) => address.fromTileAddress(one || '#tiles?'))", addresses) == shown


@pytest.mark.parametrize(
    "rest", ["rows=100", "rows=1e400", "columns=-64", "step=0", "step=1.5", "step=99999", "causal=yes"]
)
def test_what_an_address_cannot_mean_is_left_out(rest):
    assert in_node("[address.fromTileAddress(given[0]), address.EXAMPLE]", f"#tiles?{rest}")[0] == {
        "method": "tiles", "rows": 128, "columns": 64, "causal": False, "step": None,
    }  # fmt: skip


def test_another_address_asks_for_nothing():
    assert in_node("address.fromTileAddress('#look?query=1')") is None
