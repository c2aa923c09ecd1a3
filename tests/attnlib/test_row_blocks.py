"""Long windows in torch: the fused kernel gets some queries at a time with the keys in reach, and no mask (T, S)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from oracle import attend
from torch.overrides import TorchFunctionMode

import attnlib._torch_fused as fused
from attnlib import scaled_dot_product_attention as sdpa
from attnlib import window_mask

B, HEADS, KEY_HEADS, T, S, D, D_V = 2, 6, 3, 13, 17, 5, 7
CASES = {
    "window": {"window": (2, 1)},
    "window beyond the last key": {"window": (2, 1), "q_offset": 11},
    "window before the first key": {"window": (1, 0), "q_offset": -6},
    "window past all keys": {"window": (1, 0), "q_offset": 40},
    "causal with an offset": {"is_causal": True, "q_offset": 4},
    "causal with a negative scale": {"is_causal": True, "scale": -0.5},
    "no limit to the left": {"window": (None, 2)},
    "no limit to the right": {"window": (2, None)},
}
MASKS = {
    "none": None,
    "bool": (B, 1, T, S),
    "float": (HEADS, T, S),
    "keys alone": (B, 1, 1, S),
    "queries alone": (T, 1),
}


@pytest.fixture
def four_rows(monkeypatch):
    monkeypatch.setattr(fused, "MAX_ROWS", 4)


def inputs(rng, mask):
    shapes = ((B, HEADS, T, D), (B, KEY_HEADS, S, D), (B, KEY_HEADS, S, D_V))
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if MASKS[mask] is None:
        return arrays, None
    return arrays, rng.standard_normal(MASKS[mask]) if mask == "float" else rng.random(MASKS[mask]) < 0.7


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("four_rows")
def test_blocks_of_queries_agree_with_the_oracle(rng, case, mask):
    arrays, given = inputs(rng, mask)
    tensors = [None if x is None else torch.tensor(x) for x in (*arrays, given)]
    found = sdpa(*tensors, enable_gqa=True, **CASES[case])
    exact = attend(*arrays, given, enable_gqa=True, **CASES[case]).context
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("four_rows")
def test_gradients_are_those_of_one_call_with_a_mask(rng, case):
    arrays, mask = inputs(rng, "float")
    options = dict(CASES[case])
    left, right = options.get("window", (None, 0))
    allowed = window_mask(T, S, left, right, q_offset=options.get("q_offset", 0))
    scale = {"scale": options["scale"]} if "scale" in options else {}

    def gradients(attn_mask, options):
        leaves = [torch.tensor(x, requires_grad=True) for x in (*arrays, attn_mask)]
        sdpa(*leaves, enable_gqa=True, **options).square().sum().backward()
        return [x.grad for x in leaves]

    exact = gradients(np.where(allowed, mask, -np.inf), scale)
    for found, expected in zip(gradients(mask, options), exact, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("shape", [(2, 5), (3, 1, 2, 5), (3, 4, 2, 5), ()])
@pytest.mark.parametrize("length", [1, 3, 9])
@pytest.mark.usefixtures("four_rows")
def test_few_queries_and_any_leading_dimensions(rng, shape, length):
    arrays = [rng.standard_normal((*shape, n, width)) for n, width in ((length, D), (S, D), (S, D_V))]
    allowed = rng.random((length, S)) < 0.7
    options = {"window": (2, 1), "q_offset": S - length}
    found = sdpa(*map(torch.tensor, (*arrays, allowed)), **options)
    np.testing.assert_allclose(found.numpy(), attend(*arrays, allowed, **options).context, rtol=1e-12, atol=1e-13)


def test_no_queries_and_no_keys_within_reach_of_any():
    q, k = torch.ones(2, 0, D), torch.ones(2, 1000, D, requires_grad=True)
    assert sdpa(q, k, k, window=(1, 1)).shape == (2, 0, D)
    q = torch.ones(2, 600, D)
    out = sdpa(q, k, k, window=(1, 1), q_offset=5000)
    out.sum().backward()
    assert not out.any()
    assert not k.grad.any()


class Calls(TorchFunctionMode):
    """Record how many entries the mask has in each call of torch's kernel, and how many keys there are."""

    def __init__(self):
        super().__init__()
        self.masks, self.keys = [], []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.scaled_dot_product_attention:
            self.masks.append(0 if args[3] is None else args[3].numel())
            self.keys.append(args[1].shape[-2])
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("queries", "keys", "options"),
    [
        (1000, 1000, {"window": (10, 0)}),
        (1000, 1000, {"is_causal": True, "q_offset": 5}),
        (500, 1100, {"is_causal": True, "q_offset": 600}),
        (700, 1000, {"window": (30, 20), "q_offset": 100}),
        (1, 2000, {"window": (40, 0), "q_offset": 1999}),
        (20, 2000, {"window": (40, 0), "q_offset": 1980}),
    ],
)
def test_keys_out_of_reach_are_left_out_and_no_mask_of_all_pairs_is_made(queries, keys, options):
    q, k, v = (torch.ones(1, 1, n, 3) for n in (queries, keys, keys))
    with Calls() as calls:
        sdpa(q, k, v, **options)
    rows = min(queries, fused.MAX_ROWS)
    assert len(calls.keys) == -(-queries // fused.MAX_ROWS)
    assert max(calls.masks) <= rows * max(calls.keys)
    if "window" in options:
        assert max(calls.keys) <= rows + sum(options["window"])
