"""The overhead of a short call, counted as the number of attnlib's functions that it calls.

A time would depend on the machine and on its load; `benchmarks/short.py` measures times.
"""

import subprocess
import sys

import numpy as np
import pytest
import torch
from backends import D_K, B, D, Torch
from modules import ATTENTIONS

import attnlib

FEW_SCORES = {
    "no mask": {},
    "scale": {"scale": 0.5},
    "boolean mask": {"attn_mask": np.eye(3, dtype=bool)},
    "bias": {"attn_mask": np.eye(3)},
    "grouped queries": {"enable_gqa": True},
}


def calls(function):
    """Return how many of attnlib's functions one call of this function calls."""
    found = []

    def note(frame, event, _):
        if event == "call" and "attnlib" in frame.f_globals.get("__name__", "").split("."):
            found.append(frame.f_code.co_name)

    function()  # fills caches and imports modules
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(found)


def test_attention_with_weights_of_a_few_words(backend):
    layer = ATTENTIONS["attention"]
    module, inputs = layer.build(backend), layer.inputs(backend)
    most = 50 if isinstance(backend, Torch) else 70  # in NumPy, the linear layers are attnlib's too
    assert calls(lambda: module(**inputs, need_weights=True)) <= most


@pytest.mark.parametrize("options", FEW_SCORES.values(), ids=FEW_SCORES)
def test_numpy_attention_of_few_scores(options):
    query, key = np.ones((4, 3, 5)), np.ones((2 if "enable_gqa" in options else 4, 3, 5))
    assert calls(lambda: attnlib.scaled_dot_product_attention(query, key, key, **options)) <= 8


def test_torch_softmax_of_few_scores():
    x = torch.ones(3, 5)
    assert calls(lambda: attnlib.softmax(x)) <= 8


@pytest.mark.parametrize("cell", [attnlib.rnn_cell, attnlib.gru_cell])
def test_a_step_of_encoding(backend, rng, cell):
    rows = D_K if cell is attnlib.rnn_cell else 3 * D_K
    shapes = ((B, D_K), (rows, D), (rows, D_K), (rows,), (rows,))
    h0, *weights = (backend.array(rng.standard_normal(shape)) for shape in shapes)
    short, long = (
        calls(lambda n=n: attnlib.encode(cell, backend.array(np.ones((B, n, D))), h0, *weights)) for n in (2, 12)
    )
    # On the CPU torch runs the whole loop; in NumPy a step is a product with the state, followed by the gates.
    assert long - short <= (0 if isinstance(backend, Torch) and str(backend) == "torch-cpu" else 10 * 6)


FIRST_CALL = """
import sys, torch, attnlib
x, called = torch.ones(1, 1, 17, 4), set()
sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
attnlib.scaled_dot_product_attention(x, x, x)
sys.setprofile(None)
assert "check_inputs" not in called, "it took the general path"
"""


@pytest.mark.slow
def test_the_first_call_in_a_process_takes_the_path_of_all_others():
    """Otherwise it could be rounded differently, and a training run that resumes would not repeat the same bits."""
    subprocess.run([sys.executable, "-c", FIRST_CALL], check=True)
