"""Answers that readers wrote from the notebooks alone, none of whom knew the checks: what is right passes, and no more.

`python benchmarks/reader_answers.py tests/checks/reader_answers/*.py` counts how many of the wrong ones are named.
"""

import importlib.util
from pathlib import Path

import pytest
from evaluations import examine_again

pytestmark = pytest.mark.slow

FILES = sorted((Path(__file__).parent / "reader_answers").glob("*.py"))

# Wrong for inputs that no case has: whole numbers, alone or beside real ones, which attnlib refuses; another device;
# lengths below 1e-5, where torch's own cosine is wrong in the same way, or an epsilon of a millionth; lists in the
# place of tuples.
UNNOTICED = {
    ("rnn_cell", "zeros_like(h)"),
    ("additive", "table of the query's dtype"),
    ("general", "table of the query's dtype"),
    ("bahdanau_step", "GPU only: zeros of the right dtype on the CPU"),
    ("scaled_dot_product_attention_backward", "whole numbers stay whole"),
    ("softmax", "small epsilon below"),
    ("dot", "table of the query's dtype"),
    ("cosine", "1e-8 added"),
    ("cosine", "torch's eps"),
    ("cosine", "short ones called zero"),
    ("cosine", "eps as in torch"),
    ("attention_shapes", "lists"),
    ("apply_rope", "buffer of the type of x"),
    ("apply_rope", "whole numbers stay whole"),
    ("scaled_dot", "divides in place, whole numbers crash"),
    ("scaled_dot_product_attention_backward", "gradients typed like the inputs"),
    ("cosine", "torch's epsilon"),
}


def answers_in(file):
    spec = importlib.util.spec_from_file_location(f"reader_answers_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ANSWERS, getattr(module, "UNASKED", {})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers_written_from_the_notebook_alone_pass_if_they_are_right_and_only_then(file):
    answers, unasked = answers_in(file)
    misjudged = []
    for name, backend, label, kind, implementation, _ in answers:
        passed = examine_again(name, implementation, backend, 0, unasked.get(name)).passed
        if passed != (kind == "right" or (name, label) in UNNOTICED):
            misjudged.append((name, backend, label, kind))
    assert not misjudged
