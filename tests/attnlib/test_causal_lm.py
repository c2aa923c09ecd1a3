"""CausalLM: against a model written out with loops over heads, and what a cache, masks and positions must not change.

`test_hf.py` compares it with the models of transformers.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from backends import BACKENDS, B, Numpy, T, Torch
from language_models import FF, HEADS, KV, LAYERS, VARIANTS, E, P, V, build, config, state_of, tokens_of
from modules import library
from numpy.testing import assert_allclose, assert_array_equal
from oracle import attend

from attnlib import RopeScaling, padding_mask
from attnlib.cache import KVCache
from attnlib.sliding_window_cache import SlidingWindowCache
from attnlib.static_cache import StaticCache

LENGTH = 11
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
ACTIVATIONS = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


def close(ours, theirs, tolerance=1e-11):
    assert ours.shape == theirs.shape
    assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(np.abs(theirs).max(), 1))


# The numbers


class ByHand:
    """A model from torch.nn.functional and attention by loops: its logits and weights for tokens (B, T)."""

    def __init__(self, settings, state):
        self.settings, self.state = settings, {name: torch.tensor(x) for name, x in state.items()}

    def __call__(self, tokens):
        x = self.state["embed_tokens.weight"][tokens] * self.settings.embed_scale
        if self.settings.max_positions is not None:
            x = x + self.state["embed_positions.weight"][: tokens.shape[1]]
        seen = []
        for n, left in enumerate(self.settings.windows or [None] * LAYERS):
            context, weights = self.attention(f"layers.{n}.self_attn", self.norm(f"layers.{n}.norm1", x), left)
            seen.append(weights)
            x = x + self.post_norm(f"layers.{n}.post_norm1", context)
            hidden = self.feed_forward(f"layers.{n}.ff", self.norm(f"layers.{n}.norm2", x))
            x = x + self.post_norm(f"layers.{n}.post_norm2", hidden)
        logits = self.norm("norm", x) @ self.state["embed_tokens.weight" if self.settings.tied else "lm_head.weight"].T
        cap = self.settings.logit_softcap
        return (logits if cap is None else cap * torch.tanh(logits / cap)).numpy(), seen

    def norm(self, name, x):
        weight, eps = self.state[f"{name}.weight"], self.settings.norm_eps
        if self.settings.norm == "layer_norm":
            return F.layer_norm(x, weight.shape, weight, self.state[f"{name}.bias"], eps)
        return F.rms_norm(x, weight.shape, weight + (self.settings.norm == "offset_rms_norm"), eps)

    def post_norm(self, name, x):
        return self.norm(name, x) if self.settings.post_norm else x

    def linear(self, name, x):
        return F.linear(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"))

    def feed_forward(self, name, x):
        activation, up = ACTIVATIONS[self.settings.activation], self.linear(f"{name}.up_proj", x)
        inner = activation(self.linear(f"{name}.gate_proj", x)) * up if self.settings.gated else activation(up)
        return self.linear(f"{name}.down_proj", inner)

    def attention(self, name, x, left):
        width = self.settings.head_dim or E // HEADS
        q, k, v = (torch.stack(self.linear(f"{name}.{one}_proj", x).split(width, -1), 1) for one in "qkv")
        if self.settings.qk_norm:
            q, k = self.norm(f"{name}.q_norm", q), self.norm(f"{name}.k_norm", k)
        context, weights, _ = attend(
            self.rotated(q.numpy()), self.rotated(k.numpy()), v.numpy(), is_causal=True, enable_gqa=True,
            scale=self.settings.scale, softcap=self.settings.attn_softcap,
            window=None if left is None else (left, None),
        )  # fmt: skip
        joined = torch.tensor(np.concatenate(list(np.moveaxis(context, 1, 0)), -1))
        return self.linear(f"{name}.out_proj", joined), weights

    def rotated(self, x):
        base, scaling, half = self.settings.rope_base, self.settings.rope_scaling, x.shape[-1] // 2
        if base is None:
            return x
        frequencies = base ** (-np.arange(half) / half)
        frequencies = frequencies if scaling is None else scaling.scaled(frequencies)
        z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * np.arange(x.shape[-2])[:, None] * frequencies)
        return np.concatenate([z.real, z.imag], axis=-1)


@every_variant
def test_logits_and_weights_are_those_of_a_model_written_out(backend, variant):
    settings = config(**variant)
    tokens = tokens_of(Numpy(), B, T)
    theirs, weights = ByHand(settings, state_of(settings))(tokens)
    ours, seen = build(backend, settings)(backend.array(tokens, "int64"), need_weights=True)
    close(backend.numpy(ours), theirs)
    assert len(seen) == LAYERS
    for mine, its in zip(seen, weights, strict=True):
        close(backend.numpy(mine), its)


def test_one_layer_worked_by_hand(backend):
    """Without feed-forward and attention, tied logits are dot products of normalised embeddings."""
    settings = config(vocab_size=2, embed_dim=2, num_layers=1, num_heads=1, ff_dim=1, norm_eps=1e-9)
    state = {name: np.zeros(x.shape) for name, x in state_of(settings).items()}
    state |= {"embed_tokens.weight": np.array([[7.0, -1.0], [0.0, 3.0]]), "norm.weight": np.array([1.0, 10.0])}
    model = build(backend, settings)
    model.load_state_dict({name: backend.array(x) for name, x in state.items()})
    logits = backend.numpy(model(backend.array([[0, 1]], "int64")))
    # (7, -1) / 5 * (1, 10) = (1.4, -2) and (0, 3) / sqrt(4.5) * (1, 10) = (0, 10 sqrt 2)
    root = math.sqrt(2)
    assert_allclose(logits, [[[11.8, -6.0], [-10 * root, 30 * root]]], rtol=1e-8)


@every_variant
def test_both_libraries_have_the_same_parameters_and_numbers(variant):
    settings = config(**variant)
    shapes = [{n: tuple(x.shape) for n, x in library(b).CausalLM(settings).state_dict().items()} for b in BACKENDS]
    assert all(one == shapes[0] for one in shapes)
    source = library(Torch("cpu")).CausalLM(settings)  # as torch initializes it
    copy = library(Numpy()).CausalLM(settings)
    copy.load_state_dict(source.state_dict())
    tokens = tokens_of(Numpy(), B, T)
    with torch.no_grad():
        assert_allclose(copy(tokens), source(torch.tensor(tokens)), atol=2e-5 * E)


def test_parameters_are_named_as_the_documentation_says():
    def names(**variant):
        return {name for name in state_of(config(num_layers=1, **variant)) if not name.startswith("layers")}

    assert names() == {"embed_tokens.weight", "norm.weight"}
    assert names(tied=False) == {"embed_tokens.weight", "norm.weight", "lm_head.weight"}
    assert names(max_positions=P, norm="layer_norm") == {
        *("embed_tokens.weight", "embed_positions.weight", "norm.weight", "norm.bias")
    }
    layer = state_of(config(num_layers=1, num_kv_heads=KV, qk_norm=True, head_dim=10, post_norm=True))
    assert {name.removeprefix("layers.0."): x.shape for name, x in layer.items() if name.startswith("layers")} == {
        "norm1.weight": (E,), "norm2.weight": (E,), "post_norm1.weight": (E,), "post_norm2.weight": (E,),
        "self_attn.q_proj.weight": (10 * HEADS, E), "self_attn.k_proj.weight": (10 * KV, E),
        "self_attn.v_proj.weight": (10 * KV, E), "self_attn.out_proj.weight": (E, 10 * HEADS),
        "self_attn.q_norm.weight": (10,), "self_attn.k_norm.weight": (10,),
        "ff.gate_proj.weight": (FF, E), "ff.up_proj.weight": (FF, E), "ff.down_proj.weight": (E, FF),
    }  # fmt: skip


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.03), ("bfloat16", 0.2), ("float32", 1e-5)])
@every_variant
def test_other_dtypes_are_close_to_float64(backend, variant, dtype, tolerance):
    if dtype in backend.dtypes:
        settings, tokens = config(**variant), tokens_of(backend, B, T)
        ours, exact = (backend.numpy(build(backend, settings, d)(tokens)) for d in (dtype, "float64"))
        close(ours, exact, tolerance)


@every_variant
def test_every_parameter_has_a_gradient(variant):
    model = build(Torch("cpu"), config(**variant))
    tokens = tokens_of(Torch("cpu"), B, LENGTH)
    F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("variant", ["gemma 2", "gpt-2"])
def test_it_compiles_to_one_graph(variant):
    model = build(Torch("cpu"), config(**VARIANTS[variant]), "float32")
    tokens = tokens_of(Torch("cpu"), B, T)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(tokens), model(tokens), atol=1e-5, rtol=1e-5)


# What comes later does not matter, and what has been read need not be read again


@every_variant
def test_a_token_does_not_change_the_logits_before_it(backend, variant):
    model, tokens = build(backend, config(**variant)), tokens_of(backend, B, T)
    other = tokens_of(backend, B, T)
    other[:, 3:] = (other[:, 3:] + 1) % V
    close(backend.numpy(model(other))[:, :3], backend.numpy(model(tokens))[:, :3], 1e-13)


@pytest.mark.parametrize("chunks", [(1,) * LENGTH, (4, 1, 6)], ids=str)
@every_variant
def test_a_cache_changes_nothing(backend, variant, chunks):
    model, tokens = build(backend, config(**variant)), tokens_of(backend, B, LENGTH)
    cache, whole = model.new_cache(), backend.numpy(model(tokens))
    for a, b in pairwise(np.cumsum([0, *chunks]).tolist()):
        with torch.inference_mode():
            close(backend.numpy(model(tokens[:, a:b], cache=cache)), whole[:, a:b])
        assert [one.length for one in cache] == [b] * LAYERS


@pytest.mark.parametrize("variant", ["windows", "gpt-2"])
def test_other_caches_serve_as_well(backend, variant):
    model, tokens = build(backend, config(**VARIANTS[variant])), tokens_of(backend, B, LENGTH)
    whole = backend.numpy(model(tokens))
    for cache in ([KVCache() for _ in range(LAYERS)], [StaticCache(LENGTH) for _ in range(LAYERS)]):
        with torch.inference_mode():
            outs = [model(tokens[:, t : t + 1], cache=cache) for t in range(LENGTH)]
        close(np.concatenate([backend.numpy(x) for x in outs], axis=1), whole)


def test_layers_with_a_window_keep_no_more_than_that(backend):
    model = build(backend, config(windows=(4, None, 2)))
    cache = model.new_cache()
    assert [getattr(one, "left", None) for one in cache] == [4, None, 2]
    assert [type(one) for one in cache] == [SlidingWindowCache, KVCache, SlidingWindowCache]
    tokens = tokens_of(backend, B, LENGTH)
    for t in range(LENGTH):
        _, weights = model(tokens[:, t : t + 1], cache=cache, need_weights=True)
    assert [w.shape[-1] for w in weights] == [5, LENGTH, 3]


def test_a_text_in_a_window_model_may_begin_with_padding(backend):
    """Padding on the left, a mask over all positions so far, and caches that have forgotten most of them."""
    model = build(backend, config(windows=(4, None, 2)))
    tokens, pads = tokens_of(backend, 1, 9), 6
    padded = backend.array(np.concatenate([np.zeros((1, pads)), backend.numpy(tokens)], axis=1), "int64")
    real = np.arange(pads + 9) >= pads
    mask = backend.array(real[None, None, None], "bool")
    positions = backend.array(np.clip(np.arange(pads + 9) - pads, 0, None), "int64")
    alone, cache = backend.numpy(model(tokens)), model.new_cache()
    close(backend.numpy(model(padded, mask, positions=positions))[:, pads:], alone)
    outs = [
        model(padded[:, a:b], mask[..., :b], positions=positions[a:b], cache=cache)
        for a, b in pairwise([0, pads + 2, *range(pads + 3, pads + 10)])
    ]
    close(np.concatenate([backend.numpy(x) for x in outs], axis=1)[:, pads:], alone)


@every_variant
def test_padding_on_the_right_changes_nothing(backend, variant):
    model, tokens = build(backend, config(**variant)), tokens_of(backend, B, T)
    lengths = [T, T - 2]
    mask = backend.array(padding_mask(lengths, T), "bool")
    both = backend.numpy(model(tokens, mask))
    close(both[1, : lengths[1]], backend.numpy(model(tokens[1:, : lengths[1]]))[0])


def test_rotary_positions_count_by_their_distance_and_learned_ones_by_their_number(backend):
    tokens, positions = tokens_of(backend, B, T), backend.array(np.arange(T) + 4, "int64")
    rope, learned = build(backend, config()), build(backend, config(**VARIANTS["gpt-2"]))
    close(backend.numpy(rope(tokens, positions=positions)), backend.numpy(rope(tokens)))
    assert abs(backend.numpy(learned(tokens, positions=positions)) - backend.numpy(learned(tokens))).max() > 0.01


@pytest.mark.parametrize("variant", ["llama", "gpt-2"])
def test_each_text_may_have_positions_of_its_own(backend, variant):
    model, tokens = build(backend, config(**VARIANTS[variant])), tokens_of(backend, B, T)
    positions = np.array([np.arange(T), 2 * np.arange(T)])
    both = backend.numpy(model(tokens, positions=backend.array(positions, "int64")))
    for text in range(B):
        alone = model(tokens[text : text + 1], positions=backend.array(positions[text], "int64"))
        close(both[text], backend.numpy(alone)[0])


@pytest.mark.parametrize("count", [1, 3, T, T + 4])
def test_only_the_last_logits_may_be_computed(backend, count):
    model, tokens = build(backend, config()), tokens_of(backend, B, T)
    logits, weights = model(tokens, logits_to_keep=count, need_weights=True)
    close(backend.numpy(logits), backend.numpy(model(tokens))[:, -count:])
    assert [tuple(w.shape) for w in weights] == [(B, HEADS, T, T)] * LAYERS


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_tokens_may_be_integers_of_any_size(backend, dtype):
    model, tokens = build(backend, config()), tokens_of(backend, B, T)
    other = backend.array(backend.numpy(tokens), dtype)
    assert_array_equal(backend.numpy(model(other)), backend.numpy(model(tokens)))


# Errors

CALLS = {
    "one text without a batch": (lambda m, x: m(x[0]), ValueError, r"tokens has shape \(5,\), but \(B, T\)"),
    "floats": (lambda m, x: m(x / 2), TypeError, "tokens has dtype .*float"),
    "a list": (lambda m, x: m([[1, 2]]), TypeError, "tokens is a list"),
    "positions of another length": (
        lambda m, x: m(x, positions=x[0, 1:]), ValueError, r"positions has shape \(4,\), but \(5,\) or \(2, 5\)",
    ),
    "positions of the other library": (
        lambda m, x: m(x, positions=np.arange(5) if isinstance(x, torch.Tensor) else torch.arange(5)), TypeError,
        "positions is a .*, but tokens is a ",
    ),
    "a cache of a layer that is none": (
        lambda m, x: m(x, cache=[*m.new_cache()[:-1], None]), TypeError, r"cache\[2\] is a NoneType",
    ),
    "positions that are fractions": (lambda m, x: m(x, positions=x[0] / 2), TypeError, "positions has dtype"),
    "one cache for all layers": (lambda m, x: m(x, cache=KVCache()), TypeError, "KVCache, but a list.*new_cache"),
    "too few caches": (lambda m, x: m(x, cache=[KVCache()]), ValueError, "cache holds 1, but there are 3 layers"),
    "a cache that two layers share": (
        lambda m, x: m(x, cache=[KVCache(), *[StaticCache(9)] * 2]), ValueError, r"one StaticCache serves several of",
    ),
    "no logits": (lambda m, x: m(x, logits_to_keep=0), ValueError, "logits_to_keep is 0, but at least 1"),
    "a mask of another size": (lambda m, x: m(x, x[:, :3] > 0), ValueError, r"attn_mask has shape \(2, 3\)"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), CALLS.values(), ids=CALLS)
def test_a_wrong_call_is_explained(backend, call, exception, words):
    with pytest.raises(exception, match=words):
        call(build(backend, config()), tokens_of(backend, B, T))


def test_a_text_longer_than_the_learned_positions_is_refused_with_and_without_a_cache(backend):
    model = build(backend, config(**VARIANTS["gpt-2"]))
    tokens, words = tokens_of(backend, B, P + 1), f"the text has {P + 1} tokens, but the model has only {P} learned"
    model(tokens[:, :P])
    with pytest.raises(ValueError, match=words):
        model(tokens)
    cache = model.new_cache()
    model(tokens[:, :P], cache=cache)
    with pytest.raises(ValueError, match=words):
        model(tokens[:, P:], cache=cache)


@pytest.mark.parametrize("place", [P, P + 7, -1])
def test_a_learned_position_that_there_is_not_is_named(backend, place):
    model, tokens = build(backend, config(**VARIANTS["gpt-2"])), tokens_of(backend, B, T)
    positions = np.arange(T)
    positions[2] = place
    words = f"go from {positions.min()} to {positions.max()}, but .* {P} "
    with pytest.raises(ValueError, match=words):
        model(tokens, positions=backend.array(positions, "int64"))


SETTINGS = [
    ({"vocab_size": 0}, ValueError, "vocab_size is 0"),
    ({"num_layers": 2.0}, TypeError, "num_layers is 2.0"),
    ({"embed_dim": 25}, ValueError, "num_heads=6 does not divide embed_dim=25"),
    ({"head_dim": 5}, ValueError, "rope rotates pairs, but a head is 5 wide"),
    ({"num_kv_heads": 4}, ValueError, "num_kv_heads=4 does not divide num_heads=6"),
    ({"norm": "batch_norm"}, ValueError, "norm is 'batch_norm', but 'rms_norm' or 'offset_rms_norm' or 'layer_norm'"),
    ({"norm_eps": 0.0}, ValueError, "norm_eps is 0.0, but a positive number"),
    ({"norm_eps": math.nan}, ValueError, "norm_eps is nan, but a positive number"),
    ({"norm_eps": None}, TypeError, "norm_eps is None, but a number is needed"),
    ({"embed_scale": None}, TypeError, "embed_scale is None, but a number is needed"),
    ({"qk_norm": "no"}, TypeError, "qk_norm is 'no', but True or False"),
    ({"activation": "tanh"}, ValueError, "activation is 'tanh', but one of 'relu'"),
    ({"rope_base": True}, TypeError, "rope_base is True"),
    ({"rope_base": -1.0}, ValueError, "rope_base is -1.0"),
    ({"attn_softcap": math.inf}, ValueError, "attn_softcap is inf"),
    ({"logit_softcap": "30"}, TypeError, "logit_softcap is '30'"),
    ({"max_positions": 0}, ValueError, "max_positions is 0"),
    ({"windows": (4, None)}, ValueError, "windows has 2 entries, but there are 3 layers"),
    ({"windows": (4, None, -1)}, ValueError, r"windows\[2\] is -1"),
    ({"windows": (4, 2.0, None)}, TypeError, r"windows\[1\] is 2.0, but a whole number"),
    ({"windows": 5}, TypeError, r"windows is 5, but a tuple with an entry for each layer.*\(4, None, None\)"),
    ({"scale": np.ma.masked_array([0.5], [True])}, TypeError, "scale is a numpy.ma.MaskedArray"),
    ({"tied": "no"}, TypeError, "tied is 'no', but True or False"),
]


@pytest.mark.parametrize(("changes", "exception", "words"), SETTINGS, ids=[str(one[0]) for one in SETTINGS])
def test_an_impossible_setting_is_refused(backend, changes, exception, words):
    with pytest.raises(exception, match=words):
        library(backend).CausalLM(config(**changes))


def test_a_configuration_can_be_compared_changed_and_used_as_a_key():
    one = config(windows=(4, None, 2), rope_scaling=RopeScaling(8.0))
    assert one == replace(one) != replace(one, tied=False)
    assert len({one, replace(one)}) == 1
