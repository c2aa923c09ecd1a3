"""No mask (T, S) is made where torch's kernel knows the rule, or where the rule forbids nothing."""

import pytest
import torch
import torch.nn.functional as F
from modules import HEADS, E
from torch.overrides import TorchFunctionMode

import attnlib.torch
from attnlib import scaled_dot_product_attention as sdpa
from attnlib import window_mask


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
