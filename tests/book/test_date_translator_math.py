"""The date translator of the page, run in Node, against the chapter's own Python on random texts and random weights."""

import json
import subprocess
from functools import cache

import numpy as np
import pytest
from _ext.dependencies import CELL_OPTIONS, CODE_CELL
from _tools.date_translator import packed
from pages import source
from test_explorer_math import MODULE, NODE

FOLDER = MODULE.parent
DEFINED = ("FORMS =", "def remember(", "def translate(", "def parameters(")  # what the translator needs of the chapter
RUN = """
import { matrices, translate } from "./translator.js";
let text = "";
for await (const part of process.stdin) text += part;
const { shapes, numbers, reads, writes, texts } = JSON.parse(text);
const bytes = Uint8Array.from(atob(numbers), (byte) => byte.charCodeAt(0));
const model = { weights: matrices(shapes, new Float32Array(bytes.buffer)), reads, writes };
console.log(JSON.stringify(texts.map((one) => [false, true].map((equal) => translate(model, one, equal)))));
"""


@cache
def chapter():
    """The functions of the chapter that make and run the translator, from its own cells."""
    import datetime

    import torch
    from torch.nn import functional as F

    import attnlib

    cells = [CELL_OPTIONS.sub("", cell) for _, cell in CODE_CELL.findall(source("book/context-vectors"))]
    chosen = [next(cell for cell in cells if start in cell) for start in DEFINED]
    defined = {"np": np, "torch": torch, "F": F, "datetime": datetime, "attnlib": attnlib}
    for cell in chosen:
        exec(cell, defined)
    return defined


def random_model(seed=0):
    """Parameters of the chapter's shapes, with biases, which are 0 before training."""
    torch = chapter()["torch"]
    generator = torch.Generator().manual_seed(seed)
    params = chapter()["parameters"](True, seed)
    for part in ("right", "left", "decoder"):
        for name in ("b_ih", "b_hh"):
            params[part][name] = 0.3 * torch.randn(params[part][name].shape, generator=generator)
    return params


def random_texts(count):
    """Dates of the chapter, and as many texts of random characters, of every length that can be typed."""
    rng = np.random.default_rng(0)
    dates, _ = chapter()["draw"](rng, chapter()["unseen"], count // 2)
    known = chapter()["IN"][1:]
    return dates + ["".join(rng.choice(known, 1 + n % 40)) for n in range(count - len(dates))]


def by_python(params, texts, equal):
    torch, decoder = chapter()["torch"], params["decoder"]
    if equal:  # the chapter's control: all scores are equal where v is 0
        params = params | {"decoder": decoder | {"v": torch.zeros_like(decoder["v"])}}
    with torch.no_grad():
        scores, alignment = chapter()["translate"](params, *chapter()["encoded"](texts))
        return scores.log_softmax(-1).numpy(), alignment.numpy()


def in_node(params, texts, folder=FOLDER):
    shapes, numbers = packed(params)
    given = {"shapes": shapes, "numbers": numbers, "reads": "".join(chapter()["IN"]), "writes": chapter()["OUT"]}
    command = [NODE, "--input-type=module", "-e", RUN]
    done = subprocess.run(
        command, input=json.dumps(given | {"texts": texts}), cwd=folder, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def largest_difference(texts, folder=FOLDER):
    """By how much Node and the chapter differ: in log-probabilities and in weights, both ways to weigh."""
    params = random_model()
    found = in_node(params, texts, folder)
    most = 0
    for equal in (False, True):
        for text, both, right, alignment in zip(texts, found, *by_python(params, texts, equal), strict=True):
            ours, weights = (np.array([step[name] for step in both[equal]]) for name in ("probabilities", "weights"))
            most = max(most, abs(np.log(ours) - right).max(), abs(weights - alignment[:, : len(text)]).max())
    return most


@pytest.mark.slow
def test_it_computes_what_the_chapter_computes():
    texts = random_texts(240)
    assert {len(text) for text in texts} >= {*range(1, 41)}
    assert largest_difference(texts) < 1e-4


FAULTS = {
    "the second direction is not turned back": ("[...characters].reverse()).reverse()", "[...characters].reverse())"),
    "the gate keeps what it should replace": ("(1 - update) * candidate", "update * candidate"),
    "the reset gate is forgotten": ("reset * fromH[2 * D + i]", "fromH[2 * D + i]"),
    "the control weighs like the model": ("equal ? 0 : score(key)", "score(key)"),
    "what it wrote is not read": ("w.out[last]", "w.out[0]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault, tmp_path):
    right, wrong = FAULTS[fault]
    text = (FOLDER / "translator.js").read_text(encoding="utf-8")
    assert text.count(right) == 1
    (tmp_path / "translator.js").write_text(text.replace(right, wrong), encoding="utf-8")
    assert largest_difference(random_texts(8), tmp_path) > 1e-3
