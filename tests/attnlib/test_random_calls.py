"""Run a few of the random calls, and plant faults that they must find."""

import re
import subprocess
import sys

import pytest
import random_calls

import attnlib
import attnlib.numpy
import attnlib.torch

CALLS = {name: max(6, round(200 * share)) for name, (_, share) in random_calls.FAMILIES.items()}


def failures(family, calls):
    return [fault for number in range(calls) if (fault := random_calls.attempt(random_calls.Draw(family, number)))]


@pytest.mark.parametrize("family", random_calls.FAMILIES)
def test_random_calls_give_what_the_formulas_do(family):
    assert failures(family, CALLS[family]) == []


FAULTS = {
    "attention": (attnlib, "scaled_dot_product_attention"),
    "backward": (attnlib, "scaled_dot_product_attention_backward"),
    "softmax": (attnlib, "softmax"),
    "similarity": (attnlib, "additive"),
    "masks": (attnlib, "alibi_bias"),
    "positions": (attnlib, "apply_rope"),
    "recurrent": (attnlib, "encode"),
    "steps": (attnlib, "luong_step"),
}


def enlarged(result):
    """Return the result with every number a thousandth too large."""
    if isinstance(result, tuple):
        return tuple(map(enlarged, result))
    return result * 1.001


@pytest.mark.parametrize("family", FAULTS)
def test_a_result_that_is_a_thousandth_too_large_is_found(family, monkeypatch):
    module, name = FAULTS[family]
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **options: enlarged(right(*args, **options)))
    assert any("differ" in fault for fault in failures(family, CALLS[family]))


@pytest.mark.parametrize("library", [attnlib.numpy, attnlib.torch])
def test_layers_whose_attention_is_a_thousandth_too_large_are_found(library, monkeypatch):
    right = library.MultiHeadAttention.forward

    def forward(self, *args, **options):
        result = right(self, *args, **options)
        return tuple(map(enlarged, result)) if isinstance(result, tuple) else enlarged(result)

    monkeypatch.setattr(library.MultiHeadAttention, "forward", forward)
    assert any("differ" in fault for fault in failures("layers", 30))


@pytest.mark.slow
def test_the_table_counts_the_calls_on_each_library():
    # In a process of its own: JAX reads its settings once, and warns about every later fork.
    command = [sys.executable, random_calls.__file__, "--library", "jax", "--only", "softmax", "--calls", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [re.findall(r"[\w.]+", row) for row in done.stdout.splitlines() if re.search(r"\w", row)]
    assert rows == [["family", "jax.numpy", "failures"], ["softmax", "4", "0"], ["all", "4", "0"]]


def test_a_call_is_drawn_again_by_its_number():
    one, other = (random_calls.Draw("attention", 7) for _ in range(2))
    assert one.floats(3, 5).tolist() == other.floats(3, 5).tolist()
    assert random_calls.Draw("attention", 8).floats(3, 5).tolist() != other.floats(3, 5).tolist()
