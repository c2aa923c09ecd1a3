"""A language model's layers in torch without calling their modules: the same numbers, and only where nobody can tell.

Each test compares with the layers as they are called: a hook on one module makes the model call them.
"""

import copy
import pickle
import warnings
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
import torch
from backends import Torch, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import HEADS, LAYERS, VARIANTS, E, build, config, tokens_of
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils import parametrize
from torch.utils.flop_counter import FlopCounterMode

from attnlib import RopeScaling
from attnlib._torch_fast_layers import BLOCK
from attnlib.cache import KVCache
from attnlib.sliding_window_cache import SlidingWindowCache
from attnlib.static_cache import StaticCache
from attnlib.torch import CausalLM, CausalLMLayer, FeedForward, MultiHeadAttention

CPU = Torch("cpu")
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 0.1, "float16": 0.02}
CACHES = {
    "its own": lambda model: model.new_cache(),
    "all positions": lambda model: [KVCache() for _ in model.layers],
    "a window": lambda model: [SlidingWindowCache(6, num_sink_tokens=1) for _ in model.layers],
    "static": lambda model: [StaticCache(20) for _ in model.layers],
    "none": lambda model: None,
}


def watched(model):
    """Make the model call its layers from now on."""
    model.layers[0].ff.up_proj.register_forward_hook(lambda *_: None)
    return model


def is_fast(monkeypatch, call):
    """Make a call, and tell whether it did without calling the layers."""
    seen, original = [], CausalLM._call_layers
    with monkeypatch.context() as patch:
        patch.setattr(CausalLM, "_call_layers", lambda *given: seen.append(1) or original(*given))
        call()
    return not seen


@torch.no_grad()
def logits_of(model, tokens, cache, chunks, positions=None):
    """The logits of a text that is read in pieces of these lengths."""
    bounds = np.cumsum([0, *chunks]).tolist()
    outs = []
    for a, b in pairwise(bounds):
        own = {} if positions is None else {"positions": positions[..., a:b]}
        outs.append(model(tokens[:, a:b], cache=cache, **own))
    return torch.cat(outs, dim=1)


# The same numbers

options = st.fixed_dictionaries({
    "num_kv_heads": st.sampled_from([None, 1, 2, 3]), "head_dim": st.sampled_from([None, 2, 10]),
    "norm": st.sampled_from(["rms_norm", "offset_rms_norm", "layer_norm"]), "norm_eps": st.sampled_from([1e-5, 0.1]),
    "post_norm": st.booleans(), "qk_norm": st.booleans(), "gated": st.booleans(),
    "activation": st.sampled_from(["silu", "gelu", "gelu_tanh", "relu"]),
    "qkv_bias": st.booleans(), "out_bias": st.booleans(), "ff_bias": st.booleans(), "tied": st.booleans(),
    "rope_base": st.sampled_from([None, 20.0]), "max_positions": st.sampled_from([None, 31]),
    "windows": st.sampled_from([None, (4, None, 2), (3, 3, 3)]), "scale": st.sampled_from([None, 0.4]),
    "attn_softcap": st.sampled_from([None, 1.5]), "logit_softcap": st.sampled_from([None, 2.0]),
    "embed_scale": st.sampled_from([1.0, 5.0]),
})  # fmt: skip


@pytest.mark.slow
@settings(examples, max_examples=150)
@given(
    variant=options, scaled=st.booleans(), dtype=st.sampled_from([*TOLERANCE]), batch=st.integers(1, 3),
    chunks=st.lists(st.integers(1, 5), min_size=1, max_size=4), kind=st.sampled_from([*CACHES]),
    positions=st.sampled_from(["default", "of all texts", "of each text"]),
)  # fmt: skip
def test_every_option_gives_the_numbers_of_the_layers(variant, scaled, dtype, batch, chunks, kind, positions):
    if scaled and variant["rope_base"]:
        variant["rope_scaling"] = RopeScaling(8.0, original_length=40)
    if kind == "a window":
        variant["windows"] = (4, 6, 2)
    model = build(CPU, config(**variant), dtype)
    chunks = [sum(chunks)] if kind == "none" else chunks
    tokens = tokens_of(CPU, batch, sum(chunks))
    places = {"default": None, "of all texts": torch.arange(sum(chunks)) + 3}
    places["of each text"] = torch.arange(batch)[:, None] + places["of all texts"]
    ours = logits_of(model, tokens, CACHES[kind](model), chunks, places[positions])
    watched(model)
    theirs = logits_of(model, tokens, CACHES[kind](model), chunks, places[positions])
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE[dtype] * max(theirs.abs().max().item(), 1), rtol=0)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_model_as_it_was_made_does_without_calls(monkeypatch, variant):
    model, tokens = build(CPU, config(**variant)), tokens_of(CPU, 2, 5)
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            assert is_fast(monkeypatch, lambda: model(tokens, cache=model.new_cache()))
            assert is_fast(monkeypatch, lambda: model(tokens[:, :1]))


@pytest.mark.parametrize("start", [BLOCK - 2, 7 * BLOCK - 1, 10**6])
def test_a_position_far_into_a_text_has_its_own_rotation(start):
    """The tables of a single position come from a block of them."""
    model, tokens = build(CPU, config()), tokens_of(CPU, 1, 4)
    positions = torch.arange(4) + start
    with torch.no_grad():
        together = model(tokens, positions=positions)
    ours = logits_of(model, tokens, model.new_cache(), (1, 1, 1, 1), positions)
    torch.testing.assert_close(ours, together, atol=1e-9, rtol=0)


def test_what_was_computed_in_inference_mode_serves_outside_of_it():
    model, tokens = build(CPU, config(rope_base=77.0)), tokens_of(CPU, 1, 3)
    with torch.inference_mode():
        model(tokens[:, :1], cache=model.new_cache())
    one = logits_of(model, tokens, model.new_cache(), (1, 1, 1))
    torch.testing.assert_close(one, model(tokens), atol=1e-11, rtol=0)


# Only where nobody can tell


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Zeros(nn.Module):
    def forward(self, weight):
        return 0 * weight


def replace_forward(model):
    part = model.layers[1].ff.down_proj
    part.forward = lambda x: 3 * nn.Linear.forward(part, x)


def replace_linear(model):
    old = model.layers[2].self_attn.k_proj
    model.layers[2].self_attn.k_proj = Doubled(old.in_features, old.out_features, bias=False).double()


CHANGES = {
    "a hook of a linear layer": lambda m: m.layers[1].self_attn.q_proj.register_forward_hook(lambda *a: 2 * a[-1]),
    "a hook of a norm": lambda m: m.layers[2].norm2.register_forward_hook(lambda *a: 2 * a[-1]),
    "a hook before a layer": lambda m: m.layers[0].register_forward_pre_hook(lambda m, x: (2 * x[0], *x[1:])),
    "a hook of an attention layer": lambda m: m.layers[0].self_attn.register_forward_hook(lambda *a: 2 * a[-1]),
    "a hook of a feed-forward layer": lambda m: m.layers[0].ff.register_forward_hook(lambda *a: 2 * a[-1]),
    "another class": replace_linear,
    "another norm": lambda m: setattr(m.layers[0], "norm1", nn.Identity()),
    "another activation": lambda m: setattr(m.layers[0], "ff", nn.Identity()),
    "a call of its own": replace_forward,
    "a parametrization": lambda m: parametrize.register_parametrization(m.layers[1].ff.up_proj, "weight", Zeros()),
    "an ablated head": lambda m: m.layers[1].self_attn.ablate(2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("early", [True, False], ids=["before the first call", "after a call"])
def test_a_changed_layer_is_called(monkeypatch, change, early):
    model, tokens = build(CPU, config()), tokens_of(CPU, 2, 5)
    with torch.no_grad():
        before = build(CPU, config())(tokens)
        if not early:
            model(tokens)
        change(model)
        assert not is_fast(monkeypatch, lambda: model(tokens))
        torch.testing.assert_close(model(tokens), model(tokens, torch.ones(5, 5, dtype=torch.bool)), atol=1e-9, rtol=0)
        assert (model(tokens) - before).abs().max() > 0.01


def test_a_hook_of_all_modules_is_called_until_it_is_removed(monkeypatch):
    model, tokens, seen = build(CPU, config()), tokens_of(CPU, 1, 3), []
    handle = nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module)))
    with torch.no_grad(), handle:
        model(tokens)
    assert seen.count(nn.Linear) == 7 * LAYERS
    with torch.no_grad():
        assert is_fast(monkeypatch, lambda: model(tokens))


@pytest.mark.parametrize("kind", [CausalLMLayer, MultiHeadAttention, FeedForward, nn.Linear, nn.RMSNorm])
@pytest.mark.parametrize("length", [1, 5])
def test_a_class_that_is_patched_is_called_until_it_is_restored(monkeypatch, kind, length):
    model, tokens, seen, original = build(CPU, config()), tokens_of(CPU, 1, length), [], kind.forward
    with torch.no_grad():
        model(tokens)
        with monkeypatch.context() as patch:
            patch.setattr(kind, "forward", lambda *given, **options: seen.append(1) or original(*given, **options))
            model(tokens)
        calls = sum(type(part) is kind for part in model.modules())
        assert len(seen) == calls > 0
        assert is_fast(monkeypatch, lambda: model(tokens))


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # which torch's own rules use
def test_forward_mode_sees_every_layer():
    """With a single token, whose norm is otherwise computed with Python numbers, which carry no derivatives."""
    model, tokens = build(CPU, config()), tokens_of(CPU, 1, 1)
    weight = model.embed_tokens.weight.detach()
    with torch.no_grad(), forward_ad.dual_level():
        dual = {"embed_tokens.weight": forward_ad.make_dual(weight, weight)}
        ours = forward_ad.unpack_dual(torch.func.functional_call(model, dual, tokens)).tangent
        more, less = (
            torch.func.functional_call(model, {"embed_tokens.weight": w * weight}, tokens) for w in (1 + 1e-6, 1 - 1e-6)
        )
    torch.testing.assert_close(ours, (more - less) / 2e-6, rtol=0, atol=1e-6)


def replace_norm_call(model):
    norm = model.norm
    norm.forward = lambda x: 2 * nn.RMSNorm.forward(norm, x)


FINAL_NORMS = {
    "a hook": lambda m: m.norm.register_forward_hook(lambda *a: 2 * a[-1]),
    "a call of its own": replace_norm_call,
    "another norm": lambda m: setattr(m, "norm", nn.LayerNorm(E, dtype=torch.float64)),
    "another weight": lambda m: m.norm.weight.add_(1),
    "no eps": lambda m: setattr(m, "norm", nn.RMSNorm(E, dtype=torch.float64)),
    "no weight": lambda m: setattr(m, "norm", nn.RMSNorm(E, 1e-5, elementwise_affine=False)),
}


@pytest.mark.parametrize("change", FINAL_NORMS.values(), ids=FINAL_NORMS)
def test_a_changed_final_norm_counts_for_a_single_token(change):
    model, tokens = build(CPU, config()), tokens_of(CPU, 1, 5)
    with torch.no_grad():
        before = model(tokens[:, :1])
        change(model)
        after, all_tokens = model(tokens[:, :1]), model(tokens)
    torch.testing.assert_close(after, all_tokens[:, :1], atol=1e-9, rtol=0)
    assert (after - before).abs().max() > 0.01


def test_parameters_and_layers_that_replace_others_count_at_once(monkeypatch):
    model, tokens = build(CPU, config(num_kv_heads=2, qkv_bias=True)), tokens_of(CPU, 2, 5)
    other = build(CPU, config(num_kv_heads=2, qkv_bias=True), seed=5)
    changes = [
        lambda: setattr(model.layers[0].self_attn.v_proj, "weight", other.layers[0].self_attn.v_proj.weight),
        lambda: setattr(model.layers[1].self_attn.q_proj, "bias", None),
        lambda: setattr(model.layers[1].ff, "gate_proj", other.layers[1].ff.gate_proj),
        lambda: model.layers.__setitem__(2, other.layers[2]),
        lambda: model.load_state_dict(other.state_dict(), strict=False, assign=True),
        lambda: setattr(model.layers[0].ff, "activation", "relu"),
    ]
    with torch.no_grad():
        last = model(tokens)
        for change in changes:
            change()
            assert is_fast(monkeypatch, lambda: model(tokens))
            now = model(tokens)
            assert (now - last).abs().max() > 1e-3
            torch.testing.assert_close(now, model(tokens, torch.ones(5, 5, dtype=torch.bool)), atol=1e-11, rtol=0)
            last = now


def test_a_copy_looks_at_its_own_layers(monkeypatch):
    model, tokens = build(CPU, config()), tokens_of(CPU, 2, 5)
    with torch.no_grad():
        expected = model(tokens)
        for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert is_fast(monkeypatch, lambda: torch.testing.assert_close(copied(tokens), expected))  # noqa: B023
            copied.layers[0].ff.down_proj.weight.zero_()
            assert (copied(tokens) - expected).abs().max() > 0.01
            watched(copied)
            assert not is_fast(monkeypatch, lambda: copied(tokens))  # noqa: B023
        assert is_fast(monkeypatch, lambda: torch.testing.assert_close(model(tokens), expected))


CALLS = {
    "gradients": (lambda m, x: m(x), nullcontext),
    "a mask": (lambda m, x: m(x, torch.ones(5, 5, dtype=torch.bool)), torch.no_grad),
    "weights": (lambda m, x: m(x, need_weights=True), torch.no_grad),
    "autocast": (lambda m, x: m.float()(x), lambda: torch.autocast("cpu", torch.bfloat16)),
    "no device": (lambda m, x: m.to("meta")(x.to("meta")), torch.no_grad),
}


@pytest.mark.parametrize(("call", "mode"), CALLS.values(), ids=CALLS)
def test_other_calls_go_through_the_layers(monkeypatch, call, mode):
    model, tokens = build(CPU, config()), tokens_of(CPU, 2, 5)
    with mode(), torch.set_grad_enabled(mode is nullcontext):
        assert not is_fast(monkeypatch, lambda: call(model, tokens))


@pytest.mark.slow
def test_modes_and_transformations_of_torch_see_every_layer():
    model, tokens = build(CPU, config(), "float32"), tokens_of(CPU, 2, 5)
    with torch.no_grad():
        expected = model(tokens)
        with FlopCounterMode(display=False) as counter:
            model(tokens)
        with warnings.catch_warnings(action="ignore"):  # torch says that it has no rule for a kernel
            torch.testing.assert_close(torch.func.vmap(lambda x: model(x[None])[0])(tokens), expected)
        torch._dynamo.reset()
        compiled = torch.compile(model, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(tokens), expected)
    assert "CausalLM.layers.2.ff.up_proj" in counter.get_flop_counts()


# Errors


def wider(model):
    model.layers[1].self_attn.out_proj.weight = nn.Parameter(torch.zeros(E, E + 1, dtype=torch.float64))


def half(model):
    model.layers[1].self_attn.v_proj.half()


def fewer_heads(model):
    model.layers[2].self_attn.k_proj.weight = nn.Parameter(torch.zeros(E - HEADS, E, dtype=torch.float64))


@pytest.mark.parametrize("spoil", [wider, half, fewer_heads])
@pytest.mark.parametrize("kind", ["its own", "static", "a window", "none"])
def test_an_error_is_that_of_the_layers_and_so_is_what_the_caches_hold_then(spoil, kind):
    found = []
    for hooked in (False, True):
        model, tokens = build(CPU, config()), tokens_of(CPU, 1, 6)
        cache = CACHES[kind](model)
        logits_of(model, tokens, cache, (3, 1))
        spoil(model)
        if hooked:
            watched(model)
        with pytest.raises((RuntimeError, TypeError, ValueError)) as caught, torch.no_grad():
            model(tokens[:, :1], cache=cache)
        found.append((type(caught.value), str(caught.value), [int(one.length) for one in cache or ()]))
    assert found[0] == found[1]


def test_a_cache_of_another_batch_is_refused_as_the_layers_do():
    model, tokens = build(CPU, config()), tokens_of(CPU, 3, 5)
    cache = model.new_cache()
    with torch.no_grad():
        model(tokens[:2], cache=cache)
        with pytest.raises(ValueError, match=r"key has shape \(3, 6, 5, 4\), but \(2, 6, T, 4\) is needed"):
            model(tokens, cache=cache)
        with pytest.raises(ValueError, match=r"key has shape \(1, 6, 1, 4\), but \(2, 6, T, 4\) is needed"):
            model(tokens[:1, :1], cache=cache)  # one sequence, which copying would repeat
    assert [one.length for one in cache] == [5] * LAYERS
