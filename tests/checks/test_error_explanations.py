"""Errors of NumPy and torch are told in the reader's words, where their cause is known."""

import numpy as np
import pytest
import torch

from attnlib.checks import examine
from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.error_explanations import explain_error

A, B = np.ones((3, 4)), np.ones((2, 5))
TENSOR = torch.ones(3, 4)

SAID = {
    "adding": (lambda: A + B, "", "arrays of shapes (3, 4) and (2, 5) do not fit together"),
    "a product": (lambda: A @ B, "", "on the left has 4 columns and the one on the right has 2 rows"),
    "np.dot": (lambda: np.dot(A, B), "", "on the left has 4 columns and the one on the right has 2 rows"),
    "transpose": (
        lambda: A.transpose(0, 2, 1),
        "line 2: out = x.transpose(0, 2, 1)",
        "your transpose names three axes, but the array has a different number of them. Without a batch there is one",
    ),
    "np.transpose": (
        lambda: np.transpose(A, (0, 2, 1, 3)),
        "line 2: np.transpose(x, (0, 2, 1, 3))",
        "your transpose names four axes",
    ),
    "axes in a variable": (
        lambda: A.transpose((0, 2, 1)),
        "line 2: x.transpose(order)",
        "your transpose does not name as many axes as the array has. Without",
    ),
    "swapaxes": (lambda: A.swapaxes(1, 2), "", "there is no axis 2: the array has two axes, numbered from 0"),
    "a sum": (lambda: A.sum(axis=3), "", "there is no axis 3: the array has two axes, numbered from 0"),
    "reshape": (lambda: A.reshape(2, 5), "", "12 numbers cannot be arranged as (2, 5)"),
    "unpacking a shape": (lambda: _unpack(A), "line 2: B, T, D = x.shape", "you unpack a shape into three sizes"),
    "a size too many": (lambda: A.shape[2], "line 2: D = x.shape[2]", "an axis that the array does not have"),
    "einsum": (lambda: np.einsum("btd,bsd->bts", A, A), "", "An ellipsis (...) stands for all leading axes"),
    "if": (lambda: 1 if A else 2, "", "use `is None`"),
    "torch: adding": (lambda: TENSOR + torch.ones(2, 5), "", "one has 4 entries and the other has 5"),
    "torch: a product": (
        lambda: TENSOR @ torch.ones(2, 5),
        "",
        "on the left has 4 columns and the one on the right has 2 rows",
    ),
    "torch: batched": (
        lambda: torch.ones(2, 3, 4) @ torch.ones(2, 5, 6),
        "",
        "on the left has 4 columns and the one on the right has 5 rows",
    ),
    "torch: permute": (
        lambda: TENSOR.permute(0, 2, 1),
        "",
        "your transpose names three axes, but the array has two axes",
    ),
    "torch: transpose": (lambda: TENSOR.transpose(1, 2), "", "there is no axis 2"),
    "torch: view": (lambda: TENSOR.view(2, 5), "", "12 numbers cannot be arranged as (2, 5)"),
    "torch: dtypes": (
        lambda: TENSOR @ torch.ones(4, 2, dtype=torch.float64),
        "",
        "you combine a float32 tensor with a float64 one",
    ),
    "torch: if": (lambda: 1 if TENSOR else 2, "", "use `is None`"),
}


def _unpack(x):
    B, T, D = x.shape
    return B, T, D


@pytest.mark.parametrize("label", SAID)
def test_an_error_whose_cause_is_known_is_told_in_words(label):
    work, line, words = SAID[label]
    with pytest.raises((ValueError, IndexError, RuntimeError)) as caught:
        work()
    error = f"{type(caught.value).__name__}: {caught.value}"
    said = explain_error(Answer(problem="raised", error=error, line=line))
    assert said.startswith(type(caught.value).__name__)
    assert words in said
    assert str(caught.value) not in said


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("KeyError: 'w_q'", "line 2: params['w_q']"),
        ("ValueError: not enough values to unpack (expected 2, got 1)", "line 2: context, weights = mine(q)"),
        ("IndexError: tuple index out of range", "line 2: pair[2]"),
        ("ValueError: an error of my own", None),
    ],
)
def test_an_error_whose_cause_is_not_known_is_told_as_it_came(error, line):
    assert explain_error(Answer(problem="raised", error=error, line=line)) == error


def test_a_transpose_that_counts_on_a_batch_is_told_so():
    report = examine("dot", lambda query, key: query @ key.transpose(0, 2, 1), seed=0)
    assert "Without a batch there is one axis fewer" in report.message
    assert "axes don't match array" not in report.message
