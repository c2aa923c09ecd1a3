"""No mask (T, S) is made where torch's kernel knows the rule, where the rule forbids nothing, or for a long window."""

import pytest
import torch
import torch.nn.functional as F
from modules import HEADS, E
from torch.overrides import TorchFunctionMode

import attnlib.torch
from attnlib import scaled_dot_product_attention as sdpa
from attnlib import window_mask
from attnlib._mask_rule import MaskRule


class Kernel(TorchFunctionMode):
    """Record the mask and the flag `is_causal` that torch's kernel receives."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.scaled_dot_product_attention:
            self.mask, self.is_causal = args[3], args[5]
        return function(*args, **(kwargs or {}))


def qkv(T, S):
    torch.manual_seed(0)
    return [torch.randn(2, 3, n, 8) for n in (T, S, S)]


RULES = {  # T, S, options, and whether only torch's own causal rule remains
    "one query at the last key": (1, 23, {"is_causal": True, "q_offset": 22}, False),
    "a window that all keys are in": (1, 23, {"window": (30, 0), "q_offset": 22}, False),
    "a window wider than the sequence": (21, 21, {"window": (30, 5), "is_causal": True}, True),
    "a window wider than the sequence, and fewer queries": (19, 21, {"window": (30, 0)}, True),
}


@pytest.mark.slow
@pytest.mark.parametrize(("T", "S", "options", "causal"), RULES.values(), ids=RULES)
def test_a_rule_that_needs_no_mask_gets_none(T, S, options, causal):
    window = options.get("window", (None, None))
    window = (window[0], 0 if options.get("is_causal") else window[1])
    allowed = window_mask(T, S, *window, q_offset=options.get("q_offset", 0), like=torch.ones(1))
    exact = F.scaled_dot_product_attention(*qkv(T, S), allowed)
    for run in (sdpa, torch.compile(sdpa, backend="eager", fullgraph=True, dynamic=False)):
        with Kernel() as kernel:
            out = run(*qkv(T, S), **options)
        assert (kernel.mask, kernel.is_causal) == (None, causal)
        torch.testing.assert_close(out, exact)


LONG = {  # T, S and options
    "window": (1000, 1000, {"window": (30, 0)}),
    "window on both sides, later": (700, 1100, {"window": (30, 20), "q_offset": 350}),
    "causal, the last query at the last key": (600, 1300, {"is_causal": True, "q_offset": 700}),
}


@pytest.mark.parametrize(
    ("what", "gradients"), [("window", False), ("window", True), *((what, False) for what in [*LONG][1:])]
)
def test_a_compiled_window_gets_no_mask_of_all_pairs(monkeypatch, what, gradients):
    T, S, options = LONG[what]
    monkeypatch.setattr("attnlib._torch_fused.MAX_COMPILED_BLOCKS", 3)
    seen = []

    def keep(graph, _):
        seen.extend(node for node in graph.graph.nodes if isinstance(node.meta.get("example_value"), torch.Tensor))
        return graph

    inputs = [x.requires_grad_(gradients) for x in qkv(T, S)]
    torch._dynamo.reset()
    out = torch.compile(sdpa, backend=keep, fullgraph=True, dynamic=False)(*inputs, **options)
    torch.testing.assert_close(out, sdpa(*inputs, **options))
    largest = max(node.meta["example_value"].numel() for node in seen if node.meta["example_value"].dtype == torch.bool)
    assert largest < T * S / 2 + T
    calls = sum(node.target is F.scaled_dot_product_attention for node in seen)
    assert calls == 3


def test_a_compiled_window_serves_all_lengths():
    """Sizes that are symbolic stay so: a loop over blocks would compile for every length."""
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(sdpa, backend=keep, fullgraph=True, dynamic=True)
    for length in (400, 700, 900):
        inputs = qkv(length, length + 11)
        torch.testing.assert_close(compiled(*inputs, window=(5, 3)), sdpa(*inputs, window=(5, 3)))
    assert len(graphs) == 1


def test_compiled_decoding_makes_no_mask_and_compiles_twice():
    """Once for the first token, and once for all lengths."""
    torch.manual_seed(0)
    layer, x, graphs = attnlib.torch.MultiHeadAttention(E, HEADS, rope=True), torch.randn(1, 13, E), []

    def keep(graph, _):
        graphs.append(graph.graph)
        return graph

    compiled, cache = torch.compile(layer, backend=keep, fullgraph=True), attnlib.torch.KVCache()
    with torch.no_grad():
        exact = layer(x, is_causal=True)
        layer(x[:, :8], is_causal=True, cache=cache)  # 8 more positions still fit
        for t in range(8, 13):
            out = compiled(x[:, t : t + 1], is_causal=True, cache=cache)
            torch.testing.assert_close(out, exact[:, t : t + 1])
    assert len(graphs) == 2
    for graph in graphs:
        (attention,) = (node for node in graph.nodes if node.target is F.scaled_dot_product_attention)
        assert attention.args[3] is None


def test_the_causal_rule_is_left_out_for_the_last_position_alone():
    (query, _, _), causal = qkv(1, 23), MaskRule(right=0)
    assert causal.options(1, 23, 22, None, query) == {"attn_mask": None}
    for T, offset in ((2, 21), (1, 21)):
        assert causal.options(T, 23, offset, None, query) == {
            "attn_mask": None, "is_causal": True, "window": None, "q_offset": offset,
        }  # fmt: skip
