"""Exceptions as NumPy, torch and Python raise them are recognised, and no other than the one that is meant."""

import numpy as np
import pytest
import torch
from torch import nn

from attnlib.checks import examine
from attnlib.checks.calling.memory import call_within_memory
from attnlib.checks.catalogue.crash_mistakes import CRASHES

TABLE = np.ones((3, 5))


class WithoutForward(nn.Module):
    pass


def endless(x, axis=-1):
    return endless(x, axis)


def unbound(x):
    if x.size == 0:
        total = 1
    return x / total


def too_large(x):
    return call_within_memory(lambda: np.ones(1000), {}, {}, {"max_bytes": 4000.0})


NUMPY = {
    "too-much-memory": too_large,
    "no-keepdims": lambda x: x / np.ones((3, 5)).sum(-1) + np.ones((3, 5)) / np.ones((3, 5)).sum(-1),
    "new-axis-at-the-end": lambda x: np.ones((2, 3, 5)) * np.ones((3, 5))[..., None],
    "other-room": lambda x: np.zeros((2, 6)).__setitem__(0, np.ones(3)),
    "reshape-to-another-size": lambda x: np.ones(7).reshape(2, 3),
    "joined-axes-differ": lambda x: np.concatenate([np.ones((2, 3)), np.ones((2, 4))], axis=0),
    "joined-dimensions-differ": lambda x: np.concatenate([np.ones((2, 3)), np.ones(3)]),
    "stacked-shapes-differ": lambda x: np.stack([np.ones(3), np.ones(4)]),
    "mixed-libraries": lambda x: torch.cat([np.ones(3)]),
    "number-for-a-tensor": lambda x: torch.sqrt(3),
    "two-dtypes": lambda x: torch.ones(2, 3) @ torch.ones(3, dtype=torch.float64),
    "array-for-a-number": lambda x: __import__("math").exp(np.ones(3)),
    "pair-for-an-array": lambda x: torch.ones(2, 3) - torch.ones(2, 3).max(dim=-1),
    "truth-of-an-array": lambda x: 1 if np.ones(3) == 1 else 2,
    "view-of-a-transpose": lambda x: torch.ones(2, 3).T.view(6),
    "unequal-split": lambda x: np.split(np.ones(7), 2),
    "list-and-tuple": lambda x: [1] + (2,),
    "none-for-a-value": lambda x: x * None,
    "mask-for-an-index": lambda x: np.ones((3, 5))[np.ones((2, 5), bool)],
    "too-many-indices": lambda x: np.ones(3)[:, 0],
    "index-past-the-end": lambda x: np.ones(3)[3],
    "written-in-place": lambda x: torch.ones(3, requires_grad=True).add_(1),
    "real-into-whole": lambda x: np.add(np.ones(3), 0.5, out=np.ones(3, int)),
    "unknown-name": unbound,
    "no-such-attribute": lambda x: x.no_such_thing,
    "other-arguments": lambda x: unbound(x, 1, 2),
    "not-a-function": lambda x: x.shape(),
    "endless-recursion": endless,
    "division-by-zero": lambda x: x * (1 / 0),
    "number-for-a-list": lambda x: [score for row in x for score in row],
    "two-rows": lambda x: np.arange(6) * np.ones(2),
    "dimensions-of-repeat": lambda x: torch.ones(2, 3).repeat(2),
    "third-argument": lambda x: np.dot(np.ones((2, 3)), np.ones((3, 5)), np.ones((5, 2))),
    "no-inverse": lambda x: np.linalg.inv(np.ones((2, 3))),
}


@pytest.mark.parametrize("crash", NUMPY)
def test_an_exception_is_recognised(crash):
    report = examine("softmax", NUMPY[crash], seed=0)
    assert report.mistake == crash, report.message
    assert report.score == 0


@pytest.mark.parametrize(
    ("name", "crash", "kept"),
    [("MultiHeadAttention", "other-parameters", {}), ("TransformerBlock", "no-forward", {})],
)
def test_a_module_that_cannot_be_used_is_recognised(name, crash, kept):
    class Module(nn.Module):
        def __init__(self, embed_dim, num_heads, ff_dim=3, **more):
            super().__init__()
            if crash == "no-forward":
                self.self_attn, self.norm1, self.norm2 = nn.Module(), nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    setattr(self.self_attn, part, nn.Linear(embed_dim, embed_dim))
                self.linear1, self.linear2 = nn.Linear(embed_dim, ff_dim), nn.Linear(ff_dim, embed_dim)

    assert examine(name, Module, seed=0).mistake == crash


def test_every_crash_has_been_raised():
    # The answers in test_reader_answers.py raise these.
    by_others = {"shape-of-a-parameter", "method-for-a-number", "other-parameters", "no-forward"}
    assert {crash.id for _, crash in CRASHES} == {*NUMPY, *by_others}


def test_an_argument_that_is_missing_is_not_called_a_call_in_the_code():
    assert examine("softmax", lambda: None, seed=0).mistake is None
