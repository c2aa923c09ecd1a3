"""What attention layers do beside the usual: windows, caps, scales, biases, and heads that are left out."""

import numpy as np
import pytest
import torch
from backends import B, S, T
from modules import FF, HEADS, LAYERS, E, Layer, W, attention_by_loops, library, on_device
from numpy.testing import assert_allclose, assert_array_equal
from oracle import attend

import attnlib
import attnlib.torch
from attnlib.cache import KVCache

LENGTH = 7
OPTIONS = {
    "window": {"window": (2, 1)},
    "window to the left": {"window": (2, 0)},
    "softcap": {"softcap": 0.7},
    "scale": {"scale": 0.9},
    "all": {"window": (None, 1), "softcap": 0.7, "scale": -0.4},
}


def built(backend, **options):
    return Layer("MultiHeadAttention", (E, HEADS), options).build(backend)


def states(backend, *shape, seed=4):
    return backend.array(np.random.default_rng(seed).standard_normal(shape))


def by_hand(backend, module, query, key, mask=None, **options):
    """The layer from its parameters, by the oracle's loops."""
    state = {name: backend.numpy(x) for name, x in module.state_dict().items()}

    def heads(x, name):
        out = backend.numpy(x) @ state[f"{name}.weight"].T + state[f"{name}.bias"]
        return np.stack([out[..., h * W : (h + 1) * W] for h in range(HEADS)], axis=-3)

    context, weights, _ = attend(heads(query, "q_proj"), heads(key, "k_proj"), heads(key, "v_proj"), mask, **options)
    joined = np.concatenate([context[..., h, :, :] for h in range(HEADS)], axis=-1)
    return joined @ state["out_proj.weight"].T + state["out_proj.bias"], weights


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_layer_passes_its_options_to_attention(backend, options):
    module, x = built(backend, **options), states(backend, B, T, E)
    out, weights = module(x, need_weights=True)
    wanted, wanted_weights = by_hand(backend, module, x, x, **options)
    assert_allclose(backend.numpy(out), wanted, atol=1e-10)
    assert_allclose(backend.numpy(weights), wanted_weights, atol=1e-12)
    assert_allclose(backend.numpy(module(x)), wanted, atol=1e-10)


@pytest.mark.parametrize("options", [OPTIONS["window to the left"], OPTIONS["all"], {"attn_bias": attnlib.alibi_bias}])
def test_decoding_with_options_is_the_whole_pass(backend, options):
    module, x, cache = built(backend, **options), states(backend, B, LENGTH, E), KVCache()
    whole = backend.numpy(module(x, is_causal=True))
    for first, n in ((0, 3), (3, 1), (4, 3)):
        out = module(x[:, first : first + n], is_causal=True, cache=cache)
        assert_allclose(backend.numpy(out), whole[:, first : first + n], atol=1e-10)


@pytest.mark.parametrize("masked", [None, "bool", "float64"])
def test_a_bias_is_added_to_the_scores(backend, masked):
    module, x = built(backend, attn_bias=attnlib.alibi_bias), states(backend, B, T, E)
    mask = np.tri(T) if masked is None else np.tri(T, k=1)
    bias = attnlib.alibi_bias(HEADS, T, T)
    given = None if masked is None else backend.array(mask, masked)
    added = bias if masked is None else bias + (np.where(mask, 0, -np.inf) if masked == "bool" else mask)
    assert_allclose(backend.numpy(module(x, attn_mask=given)), by_hand(backend, module, x, x, added)[0], atol=1e-10)


class Learned(torch.nn.Module):
    """A number for each head and distance."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(HEADS, 2 * LENGTH))

    def forward(self, H, T, S, *, q_offset, like):
        """Look it up."""
        assert H == HEADS
        distance = torch.arange(T)[:, None] + q_offset - torch.arange(S)
        return self.weight.to(like.dtype)[:, distance + LENGTH]


def test_a_bias_with_parameters_is_learned_with_the_layer():
    torch.manual_seed(0)
    module = attnlib.torch.MultiHeadAttention(E, HEADS, attn_bias=Learned())
    assert "attn_bias.weight" in module.state_dict()
    module(torch.randn(B, LENGTH, E)).square().sum().backward()
    assert (module.attn_bias.weight.grad != 0).any()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("window", [(2, 0), (1, 1), (1, None), (None, 0)], ids=str)
def test_attention_sinks_are_seen_from_beyond_the_window(backend, window, masked):
    module, x = built(backend, window=window, num_sink_tokens=2), states(backend, B, LENGTH, E)
    left, right = window
    may = np.array(
        [
            [(left is None or j >= i - left or j < 2) and (right is None or j <= i + right) for j in range(LENGTH)]
            for i in range(LENGTH)
        ]
    )
    given = np.arange(LENGTH) != 1 if masked else None
    mask = None if given is None else backend.array(given[None], "bool")
    wanted, _ = by_hand(backend, module, x, x, may if given is None else may & given)
    assert_allclose(backend.numpy(module(x, attn_mask=mask)), wanted, atol=1e-10)


def test_the_options_reach_the_layers_of_a_stack_and_the_memory_gets_those_that_fit(backend):
    options = {"window": (1, 0), "softcap": 3.0, "scale": 0.5, "attn_bias": attnlib.alibi_bias}
    stack = library(backend).Decoder(E, HEADS, FF, LAYERS, **options)
    for layer in stack.layers:
        assert (layer.self_attn.window, layer.self_attn.softcap, layer.self_attn.scale) == ((1, 0), 3.0, 0.5)
        assert (layer.cross_attn.window, layer.cross_attn.softcap, layer.cross_attn.scale) == (None, 3.0, 0.5)
        assert layer.self_attn.attn_bias is attnlib.alibi_bias
        assert layer.cross_attn.attn_bias is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": 3}, TypeError),
        ({"window": (-1, 0)}, ValueError),
        ({"window": (1.0, 0)}, TypeError),
        ({"num_sink_tokens": -1}, ValueError),
        ({"num_sink_tokens": 1.0}, TypeError),
        ({"softcap": -1.0}, ValueError),
        ({"scale": float("nan")}, ValueError),
        ({"scale": "large"}, TypeError),
    ],
    ids=str,
)
def test_options_are_checked_when_the_layer_is_built(backend, options, error):
    with pytest.raises(error, match=next(iter(options))):
        library(backend).MultiHeadAttention(E, HEADS, **options)


def test_a_window_goes_with_rotary_positions(backend):
    module, x = built(backend, window=(1, 1), rope=100.0), states(backend, B, T, E)
    near = np.abs(np.arange(T)[:, None] - np.arange(T)) <= 1
    state = {name: backend.numpy(p) for name, p in module.state_dict().items()}
    wanted, _ = attention_by_loops(state, *[backend.numpy(x)] * 3, near, rope=100.0)
    assert_allclose(backend.numpy(module(x)), wanted, atol=1e-10)


@pytest.mark.parametrize("option", ["window", "num_sink_tokens", "softcap", "scale"])
def test_weights_are_not_loaded_into_a_layer_that_computes_otherwise(backend, option):
    one = built(backend, **{option: (OPTIONS["all"] | {"num_sink_tokens": 1})[option]})
    with pytest.raises(ValueError, match=option):
        attnlib.load_weights(one, built(backend))


def test_weights_of_a_layer_with_a_bias_are_not_loaded_into_one_without(backend):
    one, other = built(backend, attn_bias=attnlib.alibi_bias), built(backend)
    with pytest.raises(ValueError, match="attn_bias"):
        attnlib.load_weights(other, one)
    attnlib.load_weights(one, built(backend, attn_bias=attnlib.alibi_bias))


# Heads that are left out


@pytest.mark.parametrize("heads", [(1,), (0, 4), tuple(range(HEADS))], ids=str)
def test_heads_that_are_ablated_contribute_nothing(backend, heads):
    module, x = built(backend), states(backend, B, T, E)
    before = backend.numpy(module(x)).copy()
    state = {name: backend.numpy(p) for name, p in module.state_dict().items()}
    values = backend.numpy(x) @ state["v_proj.weight"].T + state["v_proj.bias"]
    _, weights = by_hand(backend, module, x, x)
    module.ablate(*heads)
    out, shown = module(x, need_weights=True)
    lost = 0
    for h in heads:
        columns = slice(h * W, (h + 1) * W)
        lost += weights[:, h] @ values[..., columns] @ state["out_proj.weight"][:, columns].T
    assert_allclose(backend.numpy(out), before - lost, atol=1e-10)
    assert_allclose(backend.numpy(shown), weights, atol=1e-12)
    module.ablate()
    assert_array_equal(backend.numpy(module(x)), before)


@pytest.mark.parametrize(("head", "error"), [(HEADS, ValueError), (-1, ValueError), (0.0, TypeError), ([0], TypeError)])
def test_there_is_no_such_head(backend, head, error):
    module = built(backend)
    with pytest.raises(error, match="head"):
        module.ablate(head)
    assert module.ablated == ()


def test_gradients_pass_by_a_head_that_is_ablated():
    module = attnlib.torch.MultiHeadAttention(E, HEADS)
    module.ablate(2)
    module(torch.randn(B, T, E)).sum().backward()
    rows = (module.v_proj.weight.grad != 0).any(1).reshape(HEADS, W).any(1)
    assert rows.tolist() == [h != 2 for h in range(HEADS)]


# All layers together


def test_rollout_is_the_product_of_what_the_layers_hand_on(backend, rng):
    layers = [rng.dirichlet(np.ones(T), (B, HEADS, T)) for _ in range(3)]
    wanted = np.zeros((B, T, T))
    for b in range(B):
        so_far = np.eye(T)
        for layer in layers:
            so_far = (0.5 * np.eye(T) + 0.5 * sum(layer[b, h] for h in range(HEADS)) / HEADS) @ so_far
        wanted[b] = so_far
    out = backend.numpy(attnlib.attention_rollout([backend.array(x) for x in layers]))
    assert_allclose(out, wanted, atol=1e-12)
    assert_allclose(out.sum(-1), 1)


def test_rollout_takes_what_a_stack_returns_and_keeps_causality(backend):
    stack, x = on_device(backend, library(backend).Encoder(E, HEADS, FF, 3)), states(backend, B, T, E)
    stack = stack.double() if hasattr(stack, "double") else stack
    _, weights = stack(x, is_causal=True, need_weights=True)
    out = backend.numpy(attnlib.attention_rollout(weights))
    assert out.shape == (B, T, T)
    assert_array_equal(np.triu(out, 1), 0)
    assert (np.diagonal(out, axis1=-2, axis2=-1) >= 0.125 - 1e-12).all(), "a half of a half of a half is handed on"


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([], ["at least one layer"]),
        ([(T, T)], [r"weights\[0\]", r"\(5, 5\)"]),
        ([(HEADS, T, S)], [r"weights\[0\]", r"\(6, 5, 7\)"]),
        ([(HEADS, T, T), (HEADS, S, S)], [r"weights\[1\]", r"\(6, 7, 7\)"]),
        ([(B, HEADS, T, T), (HEADS, T, T)], [r"weights\[1\]", r"\(6, 5, 5\)"]),
    ],
    ids=str,
)
def test_rollout_says_which_layer_does_not_fit(backend, shapes, words):
    with pytest.raises(ValueError, match=".*".join(words)):
        attnlib.attention_rollout([backend.array(np.ones(shape)) for shape in shapes])


def test_the_weights_of_a_decoder_are_named_and_those_of_its_self_attention_can_be_rolled_out(backend):
    layer = Layer("Decoder", (E, HEADS, FF, LAYERS))
    stack, x, memory = layer.build(backend), states(backend, B, T, E), states(backend, B, S, E, seed=5)
    _, weights = stack(x, memory, need_weights=True)
    for n, (own, across) in enumerate(weights):
        assert weights[n].self_attn is own
        assert weights[n].cross_attn is across
        assert (tuple(own.shape), tuple(across.shape)) == ((B, HEADS, T, T), (B, HEADS, T, S))
    averages = [backend.numpy(layer.self_attn).mean(1) / 2 + np.eye(T) / 2 for layer in weights]
    out = backend.numpy(attnlib.attention_rollout([layer.self_attn for layer in weights]))
    assert_allclose(out, averages[1] @ averages[0], atol=1e-12)
    with pytest.raises(TypeError, match=r"pass \[layer\.self_attn for layer in weights\]"):
        attnlib.attention_rollout(weights)


def test_the_heads_of_a_stack_are_ablated_layer_by_layer(backend):
    layer = Layer("Encoder", (E, HEADS, FF, LAYERS))
    stack, x = layer.build(backend), states(backend, B, T, E)
    whole, weights = stack(x, need_weights=True)
    stack.layers[1].self_attn.ablate(2)
    out, shown = stack(x, need_weights=True)
    assert np.abs(backend.numpy(out) - backend.numpy(whole)).max() > 1e-3
    for before, after in zip(
        weights, shown, strict=True
    ):  # the last layer's weights come before its heads are left out
        assert_array_equal(backend.numpy(before), backend.numpy(after))
    stack.layers[0].self_attn.ablate(2)
    assert np.abs(backend.numpy(stack(x, need_weights=True)[1][1]) - backend.numpy(weights[1])).max() > 1e-3
    for one in stack.layers:
        one.self_attn.ablate()
    assert_allclose(backend.numpy(stack(x)), backend.numpy(whole), atol=1e-12)
