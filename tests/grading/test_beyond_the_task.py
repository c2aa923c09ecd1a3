"""An optional argument that the task does not ask for costs nothing, whatever it does; at most it is remarked upon."""

import shutil
import sys
from dataclasses import replace

import pytest

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.report import MIME_TYPE
from grading.graded_cell import GradedCell
from grading.judge import Judge
from grading.sandbox import bubblewrap
from grading.sandbox.execute import execute
from grading.sandbox.limits import Limits
from grading.static_checks.flags import find_flags
from grading.task import Step, Task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("bwrap") is None or bubblewrap.why_not() is not None,
        reason="no sandbox can be had here",
    ),
]
LIMITS = Limits(cell=20, notebook=60)
QUICK = replace(LIMITS, cell=0.75)

OF_THE_ANNOTATED_TRANSFORMER = """
import math
import torch

def attention(query, key, value, mask=None, dropout=None):
    width = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(width)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return torch.matmul(weights, value), weights
"""
OF_TORCH_S_DOCUMENTATION = """
import math
import torch

def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    T, S = query.size(-2), key.size(-2)
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    bias = torch.zeros(T, S, dtype=query.dtype, device=query.device)
    if is_causal:
        assert attn_mask is None
        bias.masked_fill_(torch.ones(T, S, dtype=torch.bool).tril(diagonal=0).logical_not(), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            bias.masked_fill_(attn_mask.logical_not(), float("-inf"))
        else:
            bias = attn_mask + bias
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    weights = torch.softmax(query @ key.transpose(-2, -1) * factor + bias, dim=-1)
    return torch.dropout(weights, dropout_p, train=True) @ value
"""
MASK_OF_A_LATER_TASK = """
import numpy as np

def attention(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if mask is not None:
        {on_a_mask}
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights
"""
INVERTED = MASK_OF_A_LATER_TASK.format(on_a_mask="scores = np.where(mask, -np.inf, scores)")
PASTES = {
    "the Annotated Transformer": ("attention", "torch", OF_THE_ANNOTATED_TRANSFORMER, "mask"),
    "torch's documentation": ("scaled_dot_product_attention", "torch", OF_TORCH_S_DOCUMENTATION, "attn_mask"),
    "the mask of a later task": ("attention", "numpy", INVERTED, "mask"),
}
BREAKDOWNS = {
    "ends the process": "import os; os._exit(0)",
    "loops": "while True: pass",
    "is deaf to the interrupt": "\n        ".join(
        ("while True:", "    try:", "        while True: pass", "    except BaseException: pass")
    ),
    "asks for too much memory": "np.ones((1 << 40,))",
}


def graded(host, name, backend, source, limits=LIMITS):
    """Grade an answer in the sandbox; return the result of the run, and the outputs of the graded cell."""
    cell, judge = GradedCell("it", name, 4.0, CATALOGUE[name], backend=backend), Judge(17)
    after = Step("after", "print('the next cell')")
    result = execute(host, Task((Step("answer", source), Step("it", probe=judge.probe(cell)), after), limits))
    return result, judge.outputs(cell, result.answered[1], result.stops.get(1, ("", ""))[1])


@pytest.mark.parametrize("source", PASTES)
def test_what_others_published_earns_everything_and_is_not_flagged(host, source):
    name, backend, answer, argument = PASTES[source]
    result, outputs = graded(host, name, backend, answer)
    assert not result.stops
    assert float(outputs[-1].data["text/plain"]) == 4
    data = outputs[0].data[MIME_TYPE]
    assert data["passed"]
    assert f"costs no points. Your function also takes {argument}" in data["message"]
    assert not find_flags([("answer", answer)], {name: CATALOGUE[name].forbidden})


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("breakdown", BREAKDOWNS)
def test_an_argument_beyond_the_task_may_break_down_and_nothing_is_lost(host, breakdown, backend):
    source = MASK_OF_A_LATER_TASK.format(on_a_mask=BREAKDOWNS[breakdown])
    if backend == "torch":
        source += "\nfor_arrays = attention\n" + IN_TORCH
    result, outputs = graded(host, "attention", backend, source, QUICK)
    assert not result.stops, "no verdict"
    assert float(outputs[-1].data["text/plain"]) == 4
    assert result.outputs[2][0]["text"] == "the next cell\n"


IN_TORCH = """
import torch

def attention(query, key, value, mask=None):
    if mask is not None:
        for_arrays(query.numpy(), key.numpy(), value.numpy(), mask)
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
    return weights @ value, weights
"""


@pytest.mark.parametrize("breakdown", BREAKDOWNS)
def test_what_the_task_asks_for_may_not_break_down(host, breakdown):
    hidden = MASK_OF_A_LATER_TASK.format(on_a_mask="pass").replace(
        "mask is not None", "query.ndim == 3"
    )  # in a batch, which the task asks for
    _, outputs = graded(host, "attention", "numpy", hidden.replace("pass", BREAKDOWNS[breakdown]), QUICK)
    assert not outputs[0].data[MIME_TYPE]["passed"]
