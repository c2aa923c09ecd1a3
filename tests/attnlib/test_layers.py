"""The layers of attnlib.numpy and attnlib.torch: one contract, one state_dict, the same numbers.

`test_load_weights.py` compares them with torch's own modules, `test_cache.py` has decoding.
"""

import copy
import inspect
import itertools
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from backends import B, Numpy, OnMeta, S, T, Torch, assert_error_names, dtype_name, sizes, strided
from fake_cuda import waits_are_errors
from modules import (
    ATTENTIONS,
    BLOCKS,
    DECODERS,
    ENCODERS,
    EVERY,
    FF,
    HEADS,
    KV,
    LAYERS,
    ROPE,
    STACK,
    E,
    Layer,
    P,
    W,
    attention_by_loops,
    leaves,
    library,
    on_device,
)
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import attnlib.numpy
import attnlib.torch
from attnlib import RopeScaling, padding_mask

LIBRARIES = (attnlib.numpy, attnlib.torch)
NAMES = ("MultiHeadAttention", "TransformerBlock", "DecoderBlock", "Encoder", "Decoder", "LearnedPositions")
SELF = ATTENTIONS | BLOCKS | ENCODERS  # one sequence is enough
WITH_WEIGHTS = SELF | DECODERS
TOLERANCE = {"float16": 3e-2, "bfloat16": 0.2, "float32": 1e-6, "float64": 1e-12}

every_layer = pytest.mark.parametrize("layer", EVERY.values(), ids=EVERY)
every_layer_with_weights = pytest.mark.parametrize("layer", WITH_WEIGHTS.values(), ids=WITH_WEIGHTS)
every_layer_of_one_sequence = pytest.mark.parametrize("layer", SELF.values(), ids=SELF)
every_attention = pytest.mark.parametrize("layer", ATTENTIONS.values(), ids=ATTENTIONS)
in_both_libraries = pytest.mark.parametrize("layers", LIBRARIES, ids=["numpy", "torch"])


def run(layer, backend, dtype="float64", **options):
    """All results of a layer for its random inputs, as float64 NumPy arrays."""
    results = layer.build(backend, dtype)(**layer.inputs(backend, dtype), **options)
    return [backend.numpy(x) for x in leaves(results)]


def close(ours, theirs, tolerance=1e-12):
    """Equal, relative to the largest number there is."""
    assert ours.shape == theirs.shape
    assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(np.abs(theirs).max(), 1))


# The contract


@in_both_libraries
def test_the_classes_are_made_as_the_design_says(layers):
    def parameters(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    options = {"window": None, "num_sink_tokens": 0, "softcap": None, "scale": None, "attn_bias": None}
    options |= {"head_dim": None, "out_bias": None, "qk_norm": False, "norm_eps": 1e-6, "rope_scaling": None}

    def designed(embed_dim, num_heads, *, num_kv_heads=None, bias=True, dropout=0.0, rope=None): ...

    added = [(name, inspect.Parameter.KEYWORD_ONLY, default) for name, default in options.items()]
    assert parameters(layers.MultiHeadAttention) == parameters(designed) + added
    block = inspect.signature(layers.TransformerBlock).parameters
    assert list(block)[:4] == ["embed_dim", "num_heads", "ff_dim", "norm"]
    assert (block["norm"].kind, block["norm"].default) == (inspect.Parameter.KEYWORD_ONLY, "pre")


@in_both_libraries
@pytest.mark.parametrize("name", ["MultiHeadAttention", "TransformerBlock"])
def test_the_classes_are_called_as_the_design_says(layers, name):
    def parameters(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    def designed(
        self, query, key=None, value=None, attn_mask=None, *,
        is_causal=False, cache=None, need_weights=False, rope_tables=None,
    ): ...  # fmt: skip

    assert parameters(getattr(layers, name).forward) == parameters(designed)


@in_both_libraries
def test_what_is_public_is_listed(layers):
    assert {*NAMES, "KVCache"} <= set(layers.__all__)
    assert layers.__all__ == sorted(layers.__all__)
    assert all(hasattr(layers, name) for name in layers.__all__)


def test_torch_s_layers_are_torch_modules():
    assert all(issubclass(getattr(attnlib.torch, name), nn.Module) for name in NAMES)


@every_layer
def test_both_libraries_have_the_same_parameters_by_name_shape_and_dtype(layer):
    ours, theirs = (
        {n: (tuple(x.shape), dtype_name(x)) for n, x in layer.plain(m).state_dict().items()} for m in LIBRARIES
    )
    assert ours == theirs
    assert {dtype for _, dtype in ours.values()} == {"float32"}


def test_the_parameters_are_named_as_the_documentation_says(backend):
    def shapes(layer):
        return {name: tuple(x.shape) for name, x in layer.plain(library(backend)).state_dict().items()}

    linear = {"q_proj": (E, E), "k_proj": (KV * W, E), "v_proj": (KV * W, E), "out_proj": (E, E)}
    attention = {f"{n}.weight": s for n, s in linear.items()} | {f"{n}.bias": s[:1] for n, s in linear.items()}
    assert shapes(Layer("MultiHeadAttention", (E, HEADS), {"num_kv_heads": KV})) == attention
    norms = {f"norm{n}.{p}": (E,) for n in (1, 2) for p in ("weight", "bias")}
    between = {"linear1.weight": (FF, E), "linear1.bias": (FF,), "linear2.weight": (E, FF), "linear2.bias": (E,)}
    block = {f"self_attn.{n}": s for n, s in attention.items()} | between | norms
    assert shapes(Layer("TransformerBlock", (E, HEADS, FF), {"num_kv_heads": KV})) == block
    stack = {f"layers.{i}.{n}": s for i in range(LAYERS) for n, s in block.items()}
    assert shapes(Layer("Encoder", (E, HEADS, FF, LAYERS), {"num_kv_heads": KV, "norm": "post"})) == stack
    last = {"norm.weight": (E,), "norm.bias": (E,)}
    assert shapes(Layer("Encoder", (E, HEADS, FF, LAYERS), {"num_kv_heads": KV})) == stack | last
    decoder = block | {f"cross_attn.{n}": s for n, s in attention.items()} | {"norm3.weight": (E,), "norm3.bias": (E,)}
    assert shapes(Layer("DecoderBlock", (E, HEADS, FF), {"num_kv_heads": KV})) == decoder
    assert shapes(Layer("LearnedPositions", (P, E))) == {"weight": (P, E)}


def test_without_bias_the_projections_have_none(backend):
    names = Layer("MultiHeadAttention", (E, HEADS), {"bias": False}).plain(library(backend)).state_dict()
    assert set(names) == {f"{n}_proj.weight" for n in ("q", "k", "v", "out")}


def test_numpy_s_integers_are_whole_numbers(backend):
    sizes = np.int64(E), np.int32(HEADS), np.uint8(FF), np.int64(LAYERS)
    module = on_device(backend, library(backend).Encoder(*sizes, num_kv_heads=np.int8(KV)))
    assert len(module.layers) == LAYERS
    assert tuple(module(backend.array(np.ones((B, T, E)), "float32")).shape) == (B, T, E)


def test_numpy_s_small_integers_do_not_overflow(backend):
    layers, eight = library(backend), np.int8  # 4 heads of 40 components are more than int8 holds
    mha = layers.MultiHeadAttention(np.uint8(160), eight(4), num_kv_heads=eight(4), rope=ROPE)
    assert tuple(mha.k_proj.weight.shape) == (160, 160)
    block = layers.TransformerBlock(eight(8), eight(2), eight(100))
    assert tuple(block.linear2.weight.shape) == (8, 100)
    assert {type(n) for n in (mha.embed_dim, mha.head_dim, block.self_attn.embed_dim)} == {int}


@every_layer_with_weights
def test_the_results_have_the_shapes_in_the_documentation(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    out = module(**inputs)
    assert tuple(out.shape) == (B, T, E)
    out, weights = module(**inputs, need_weights=True)
    assert tuple(out.shape) == (B, T, E)
    one = [(B, HEADS, T, T), (B, HEADS, T, S)] if layer.decodes else [(B, HEADS, T, T)]
    deep = layer.name in ("Encoder", "Decoder")
    assert [tuple(w.shape) for w in leaves(weights)] == one * (LAYERS if deep else 1)
    if deep:
        assert type(weights) is list
        assert len(weights) == LAYERS
    if layer.decodes:
        assert all(len(pair) == 2 for pair in (weights if deep else [weights]))


@every_layer_with_weights
def test_asking_for_weights_does_not_change_the_result(backend, layer):
    close(run(layer, backend, need_weights=True)[0], run(layer, backend)[0])


@every_layer_with_weights
def test_weights_are_probabilities(backend, layer):
    for weights in run(layer, backend, need_weights=True)[1:]:
        assert (weights >= 0).all()
        assert_allclose(weights.sum(-1), 1, rtol=1e-12)


@every_layer
def test_a_sequence_alone_is_a_batch_of_one(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    alone = backend.numpy(module(**{name: x[0] for name, x in inputs.items()}))
    close(alone, backend.numpy(module(**inputs))[0])


@every_layer
def test_any_leading_dimensions_are_a_batch(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    deep = {name: x[:, None] for name, x in inputs.items()}  # (B, 1, T, E)
    close(backend.numpy(module(**deep))[:, 0], backend.numpy(module(**inputs)))


@every_layer
def test_shape_dtype_and_device_are_kept(backend, layer):
    exact = run(layer, Numpy())[0]
    for dtype in backend.dtypes:
        module, inputs = layer.build(backend, dtype), layer.inputs(backend, dtype)
        results = [module(**inputs)] + (leaves(module(**inputs, need_weights=True)) if layer.attends else [])
        assert {dtype_name(x) for x in results} == {dtype}
        if dtype != "float64":
            close(backend.numpy(results[0]), exact, max(TOLERANCE[dtype], 1e-5))


@every_layer
def test_inputs_and_parameters_are_never_changed(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    before = {name: backend.numpy(x).copy() for name, x in inputs.items()}
    module(**inputs)
    for name, x in inputs.items():
        assert_array_equal(backend.numpy(x), before[name])
    for name, x in layer.state().items():
        assert_array_equal(backend.numpy(module.state_dict()[name]), x)


@every_layer
def test_inputs_may_be_read_only(layer):
    module, inputs = layer.build(Numpy()), layer.inputs(Numpy())
    for x in (*inputs.values(), *module.state_dict().values()):
        x.setflags(write=False)
    module(**inputs)


@every_layer
def test_a_view_with_gaps_gives_what_its_copy_gives(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    gaps = {name: strided(backend, backend.numpy(x)) for name, x in inputs.items()}
    close(backend.numpy(module(**gaps)), backend.numpy(module(**inputs)))


@every_layer
def test_the_same_twice_is_the_same(backend, layer):
    for a, b in zip(run(layer, backend), run(layer, backend), strict=True):
        assert_array_equal(a, b)


def test_nothing_gives_nothing(backend):
    for layer in SELF.values():
        empty = layer.build(backend)(backend.array(np.ones((B, 0, E))))
        assert tuple(empty.shape) == (B, 0, E)


# NumPy computes what torch computes after eval()


@every_layer
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
def test_both_libraries_agree(layer, dtype, causal):
    options = {"is_causal": causal, "need_weights": True} if layer.attends else {"q_offset": 3 * causal}
    for ours, theirs in zip(
        run(layer, Numpy(), dtype, **options), run(layer, Torch("cpu"), dtype, **options), strict=True
    ):
        close(ours, theirs, 4e-6 if dtype == "float32" else 1e-12)


@every_attention
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_libraries_agree_on_one_attention_to_the_rounding(layer, dtype):
    for ours, theirs in zip(run(layer, Numpy(), dtype), run(layer, Torch("cpu"), dtype), strict=True):
        close(ours, theirs, TOLERANCE[dtype])


# Attention is what loops over heads, queries and keys say


def kinds_of_mask():
    rng = np.random.default_rng(5)
    may = rng.random((T, S)) < 0.6
    may[2] = False  # a query that may attend to nothing
    return {
        "no mask": None,
        "a bool mask": may,
        "a mask for each head": rng.random((HEADS, T, S)) < 0.6,
        "padding": np.arange(S) < np.array([4, S])[:, None, None, None],
        "a float mask": rng.standard_normal((B, HEADS, T, S)),
    }


@every_attention
@pytest.mark.parametrize("mask", kinds_of_mask().values(), ids=kinds_of_mask())
@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
def test_attention_is_what_the_loops_say(backend, rng, layer, mask, is_causal):
    query, key, value = (rng.standard_normal((B, n, E)) for n in (T, S, S))
    given = None if mask is None else backend.array(mask, str(mask.dtype))
    options = {name: x for name, x in layer.options.items() if name != "bias"}
    expected = attention_by_loops(layer.state(), query, key, value, mask, is_causal, **options)
    arrays = [backend.array(x) for x in (query, key, value)]
    ours = layer.build(backend)(*arrays, given, is_causal=is_causal, need_weights=True)
    for mine, theirs in zip(ours, expected, strict=True):
        close(backend.numpy(mine), theirs)
    close(backend.numpy(layer.build(backend)(*arrays, given, is_causal=is_causal)), expected[0])


def test_the_key_is_the_query_and_the_value_the_key_if_not_given(backend):
    module = ATTENTIONS["attention"].build(backend)
    x, z = (backend.array(np.random.default_rng(n).standard_normal((B, T, E))) for n in (1, 2))
    assert_array_equal(backend.numpy(module(x)), backend.numpy(module(x, x, x)))
    assert_array_equal(backend.numpy(module(x, z)), backend.numpy(module(x, z, z)))
    assert_array_equal(backend.numpy(module(x, value=z)), backend.numpy(module(x, x, z)))
    assert np.abs(backend.numpy(module(x, z)) - backend.numpy(module(x))).max() > 0.01


def test_grouped_heads_are_repeated_heads(backend):
    grouped, full = ATTENTIONS["attention with grouped queries"], ATTENTIONS["attention"]
    state = grouped.state()
    for name in ("k_proj", "v_proj"):
        for part in ("weight", "bias"):
            heads = state[f"{name}.{part}"].reshape(KV, W, -1)
            repeated = np.repeat(heads, HEADS // KV, axis=0).reshape(E, -1)
            state[f"{name}.{part}"] = repeated if part == "weight" else repeated[:, 0]
    module = full.build(backend)
    module.load_state_dict({name: backend.array(x) for name, x in state.items()})
    for mine, theirs in zip(
        run(grouped, backend, need_weights=True),
        [backend.numpy(x) for x in module(**grouped.inputs(backend), need_weights=True)],
        strict=True,
    ):
        close(mine, theirs)


# Blocks: what is added to what, and where the norms stand


def normalised(x, eps=1e-5):
    """Layer norm with weight 1 and bias 0."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def silenced(layer, backend, *parts):
    """The layer with norms of weight 1 and bias 0, and no output of the named linear layers."""
    module = layer.build(backend)
    state = {}
    for name, x in layer.state().items():
        if "norm" in name:
            x = np.full(x.shape, float(name.endswith("weight")))
        if any(part in name for part in parts):
            x = np.zeros(x.shape)
        state[name] = backend.array(x)
    module.load_state_dict(state)
    return module


@pytest.mark.parametrize("name", ["block", "block with rope", "decoder block"])
def test_a_pre_norm_block_whose_parts_are_silent_passes_everything_on(backend, name):
    layer = EVERY[name]
    inputs = layer.inputs(backend)
    out = silenced(layer, backend, "out_proj", "linear2")(**inputs)
    assert_array_equal(backend.numpy(out), backend.numpy(inputs["query"]))


def test_a_post_norm_block_whose_parts_are_silent_normalises(backend):
    layer = EVERY["block, post-norm, gelu"]
    inputs = layer.inputs(backend)
    out = silenced(layer, backend, "out_proj", "linear2")(**inputs)
    close(backend.numpy(out), normalised(normalised(backend.numpy(inputs["query"]))))


def test_a_stack_of_silent_pre_norm_blocks_normalises_once_at_its_end(backend):
    inputs = EVERY["encoder"].inputs(backend)
    out = silenced(EVERY["encoder"], backend, "out_proj", "linear2")(**inputs)
    close(backend.numpy(out), normalised(backend.numpy(inputs["query"])))


def test_a_block_given_a_key_attends_to_that_instead(backend):
    x, memory = (np.random.default_rng(n).standard_normal((B, n, E)) for n in (T, S))
    state = EVERY["block"].state() | {
        f"norm{i}.{p}": np.full(E, float(p == "weight")) for i in (1, 2) for p in ("weight", "bias")
    }
    own = {n.removeprefix("self_attn."): p for n, p in state.items() if n.startswith("self_attn.")}
    added, expected = attention_by_loops(own, normalised(x), memory, memory)
    module = silenced(EVERY["block"], backend, "linear2")
    out, weights = module(backend.array(x), backend.array(memory), need_weights=True)
    close(backend.numpy(out), x + added)
    close(backend.numpy(weights), expected)


@in_both_libraries
def test_eps_reaches_every_norm(layers):
    module = layers.Decoder(E, HEADS, FF, 2, layer_norm_eps=0.25)
    norms = [getattr(block, f"norm{i}") for block in module.layers for i in (1, 2, 3)]
    assert {norm.eps for norm in (*norms, module.norm)} == {0.25}


def test_a_decoder_gives_the_weights_of_its_two_attentions_in_order(backend):
    layer = EVERY["decoder block"]
    own, across = run(layer, backend, need_weights=True)[1:]
    assert_array_equal(own, np.tril(np.ones((T, T))) * own)
    assert (across > 0).all()


def test_rope_is_for_a_decoder_s_self_attention_alone(backend):
    layer = EVERY["decoder with rope"]
    module, inputs = layer.build(backend), layer.inputs(backend)
    order = [3, 0, 6, 2, 1, 5, 4]
    close(backend.numpy(module(inputs["query"], inputs["key"][:, order])), backend.numpy(module(**inputs)))


def test_a_memory_s_padding_has_no_influence(backend):
    layer = EVERY["decoder"]
    module, inputs = layer.build(backend), layer.inputs(backend)
    mask = padding_mask(backend.array([4, S], "int64"), S)
    out = backend.numpy(module(**inputs, memory_mask=mask))
    other = backend.numpy(inputs["key"]).copy()
    other[0, 4:] = 1e3
    close(backend.numpy(module(inputs["query"], backend.array(other), memory_mask=mask)), out)
    short = module(inputs["query"][:1], inputs["key"][:1, :4])
    close(backend.numpy(short)[0], out[0])


def test_a_decoder_may_have_values_of_their_own(backend):
    layer = EVERY["decoder block"]
    module, inputs = layer.build(backend), layer.inputs(backend)
    other = backend.array(np.random.default_rng(8).standard_normal((B, S, E)))
    out, (_, across) = module(**inputs, value=other, need_weights=True)
    close(backend.numpy(across), run(layer, backend, need_weights=True)[2])
    assert np.abs(backend.numpy(out) - run(layer, backend)[0]).max() > 0.01


# Order: what sees what


@every_layer_with_weights
def test_a_causal_result_does_not_depend_on_what_comes_later(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    options = {} if layer.decodes else {"is_causal": True}
    out = backend.numpy(module(**inputs, **options))
    for i in (0, 2):
        other = backend.numpy(inputs["query"]).copy()
        other[:, i + 1 :] = 77.0
        changed = backend.numpy(module(**inputs | {"query": backend.array(other)}, **options))
        close(changed[:, : i + 1], out[:, : i + 1])
        assert np.abs(changed[:, i + 1 :] - out[:, i + 1 :]).max() > 0.01


@pytest.mark.parametrize("layer", DECODERS.values(), ids=DECODERS)
def test_a_decoder_that_is_told_so_sees_what_comes_later(backend, layer):
    assert np.abs(run(layer, backend, is_causal=False)[0] - run(layer, backend)[0])[:, 0].max() > 0.01
    assert_array_equal(run(layer, backend, is_causal=True)[0], run(layer, backend)[0])


@every_layer_of_one_sequence
def test_what_stands_in_the_padding_has_no_influence(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    mask = padding_mask(backend.array([3, T], "int64"), T)
    out = backend.numpy(module(**inputs, attn_mask=mask))
    other = backend.numpy(inputs["query"]).copy()
    other[0, 3:] = 1e3
    close(backend.numpy(module(backend.array(other), attn_mask=mask))[0, :3], out[0, :3])
    close(backend.numpy(module(inputs["query"][:1, :3]))[0], out[0, :3])
    assert np.isfinite(out).all()


ORDER = [2, 4, 0, 3, 1]


@every_layer_of_one_sequence
def test_without_positions_the_order_of_the_sequence_is_that_of_the_results(backend, layer):
    module, x = layer.build(backend), layer.inputs(backend)["query"]
    out, permuted = backend.numpy(module(x)), backend.numpy(module(x[:, ORDER]))
    if "rope" in layer.options:
        assert np.abs(permuted - out[:, ORDER]).max() > 0.01
    else:
        close(permuted, out[:, ORDER])


def test_learned_positions_make_the_order_count(backend):
    add, module = EVERY["learned positions"].build(backend), EVERY["encoder"].build(backend)
    x = EVERY["encoder"].inputs(backend)["query"]
    assert np.abs(backend.numpy(module(add(x[:, ORDER]))) - backend.numpy(module(add(x)))[:, ORDER]).max() > 0.01


# Rotary positions


def test_the_first_position_is_not_turned(backend):
    x = backend.array(np.random.default_rng(1).standard_normal((B, 1, E)))
    close(
        backend.numpy(ATTENTIONS["attention with rope"].build(backend)(x)),
        backend.numpy(ATTENTIONS["attention"].build(backend)(x)),
    )


@pytest.mark.parametrize("name", ["attention with rope", "attention with rope and grouped queries"])
def test_rotated_scores_depend_on_the_distance_alone(backend, name):
    # What comes before is hidden by a mask and so only shifts the positions: nothing changes.
    layer = ATTENTIONS[name]
    module, x = layer.build(backend), layer.inputs(backend)["query"]
    out, weights = (backend.numpy(z) for z in module(x, need_weights=True))
    for shift in (1, 4, 1000):
        cache = attnlib.numpy.KVCache()
        prefix = backend.array(np.random.default_rng(2).standard_normal((B, shift, E)))
        module(prefix, cache=cache)
        may = backend.array(np.arange(shift + T) >= shift, "bool")[None]
        shifted, theirs = module(x, attn_mask=may, cache=cache, need_weights=True)
        close(backend.numpy(shifted), out, 1e-10)
        close(backend.numpy(theirs)[..., shift:], weights, 1e-10)


def test_equal_words_have_scores_that_only_the_distance_tells_apart(backend):
    layer = ATTENTIONS["attention with rope"]
    word = np.random.default_rng(3).standard_normal(E)
    _, weights = layer.build(backend)(backend.array(np.tile(word, (1, T, 1))), need_weights=True)
    scores = np.log(backend.numpy(weights)[0])  # up to a constant for each query
    scores = scores - scores[:, range(T), range(T)][..., None]  # distance 0 is the same for all
    for distance in range(-T + 1, T):
        diagonal = np.diagonal(scores, distance, axis1=1, axis2=2)
        close(diagonal, np.repeat(diagonal[:, :1], diagonal.shape[1], axis=1))
    assert np.abs(np.diagonal(scores, 1, axis1=1, axis2=2)).min() > 1e-3


@pytest.mark.parametrize("base", [2.0, 10000.0])
def test_the_base_is_that_of_the_angles(backend, rng, base):
    layer = Layer("MultiHeadAttention", (E, HEADS), {"rope": base})
    x = rng.standard_normal((B, T, E))
    expected = attention_by_loops(layer.state(), x, x, x, rope=base)[0]
    close(backend.numpy(layer.build(backend)(backend.array(x))), expected)


def test_rope_may_be_switched_on_and_off(backend):
    make = library(backend).MultiHeadAttention
    assert make(E, HEADS, rope=True).rope == make(E, HEADS, rope=10000).rope == 10000.0
    assert make(E, HEADS, rope=np.float32(100.0)).rope == ROPE
    assert make(E, HEADS, rope=False).rope is make(E, HEADS, rope=None).rope is None
    assert make(15, 5, rope=False).head_dim == 3


@pytest.fixture
def tables_made(monkeypatch):
    """A list that grows whenever an attention layer computes rotary tables."""
    made, tables = [], attnlib.rope_tables

    def counted(*positions, **base):
        made.append(positions)
        return tables(*positions, **base)

    monkeypatch.setattr("attnlib._multi_head_attention.rope_tables", counted)
    return made


@pytest.mark.parametrize(("keys", "times"), [(None, 1), (T, 1), (S, 2)])
def test_the_angles_are_computed_once_for_each_length(backend, tables_made, keys, times):
    layer = ATTENTIONS["attention with rope"]
    key = {} if keys is None else {"key": backend.array(np.ones((B, keys, E)))}
    layer.build(backend)(**layer.inputs(backend), **key)
    assert len(tables_made) == times


@pytest.mark.parametrize("name", ["encoder with rope", "decoder with rope"])
def test_a_stack_makes_its_rotary_tables_once_a_pass(backend, tables_made, name):
    layer = EVERY[name]
    module, inputs = layer.build(backend), layer.inputs(backend)
    module(**inputs)
    assert len(tables_made) == 1
    cache = module.new_cache()
    for _ in range(3):
        module(**inputs, cache=cache)
    assert len(tables_made) == 4


class Operations(TorchDispatchMode):
    """Collect the names of torch's operations that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.names.append(operation.overloadpacket.__name__)
        return operation(*args, **(kwargs or {}))


def test_rotary_positions_take_few_operations_a_layer():
    found = {}
    for layers, rope in itertools.product((1, 4), (None, ROPE)):
        module, x = attnlib.torch.Encoder(E, HEADS, FF, layers, rope=rope), torch.randn(B, 1, E)
        cache = module.new_cache()
        with torch.no_grad():
            module(torch.randn(B, T, E), cache=cache)
            with Operations() as operations:
                module(x, cache=cache)
        found[layers, rope] = operations.names
        assert operations.names.count("cos") == operations.names.count("sin") == (rope is not None)
    ropes = {n: len(found[n, ROPE]) - len(found[n, None]) for n in (1, 4)}
    # For queries and for keys: two halves, four products, a difference, a sum, and the halves side by side.
    assert ropes[4] - ropes[1] == 3 * 2 * 9


def test_layers_with_other_bases_make_their_own_tables(backend):
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend)["query"]
    module.layers[1].self_attn.rope = 3.0
    expected = module.norm(module.layers[1](module.layers[0](x)))
    assert_array_equal(backend.numpy(module(x)), backend.numpy(expected))


def test_layers_with_other_scalings_make_their_own_tables(backend):
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend)["query"]
    module.layers[1].self_attn.rope_scaling = RopeScaling(8.0, original_length=3)
    expected = module.norm(module.layers[1](module.layers[0](x)))
    assert_array_equal(backend.numpy(module(x)), backend.numpy(expected))
    module.layers[1].self_attn.rope_scaling = None
    assert np.abs(backend.numpy(module(x)) - backend.numpy(expected)).max() > 1e-3


def test_a_wrapped_attention_makes_its_own_tables_whatever_its_attributes(backend):
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend)["query"]
    expected, attend = module(x), module.layers[0].self_attn
    module.layers[0].__dict__["self_attn"] = wrapped = lambda *arguments, **options: attend(*arguments, **options)
    wrapped.rope, wrapped.head_dim, wrapped._check = attend.rope, attend.head_dim, attend._check
    assert_array_equal(backend.numpy(module(x)), backend.numpy(expected))


@pytest.mark.parametrize("name", ["TransformerBlock", "DecoderBlock", "MultiHeadAttention"])
def test_a_subclass_whose_forward_has_no_rope_tables_works_in_a_stack(backend, name):
    layer = EVERY["decoder with rope" if name == "DecoderBlock" else "encoder with rope"]
    module, inputs = layer.build(backend), layer.inputs(backend)
    expected = module(**inputs)
    replaced = module.layers[1].self_attn if name == "MultiHeadAttention" else module.layers[1]

    class Own(type(replaced)):
        def forward(
            self,
            query,
            key=None,
            value=None,
            attn_mask=None,
            *,
            is_causal=name[0] == "D",
            cache=None,
            need_weights=False,
        ):
            options = {"is_causal": is_causal, "cache": cache, "need_weights": need_weights}
            return super().forward(query, key, value, attn_mask, **options)

    replaced.__class__ = Own
    assert_allclose(backend.numpy(module(**inputs)), backend.numpy(expected), rtol=1e-12, atol=1e-14)
    cached = module(**inputs, cache=module.new_cache())
    assert_allclose(backend.numpy(cached), backend.numpy(expected), rtol=1e-12, atol=1e-14)


def test_a_subclass_that_passes_its_options_on_shares_the_tables_of_its_stack(backend, tables_made):
    layer = EVERY["encoder with rope"]
    module, inputs = layer.build(backend), layer.inputs(backend)

    class Own(type(module.layers[0])):
        def forward(self, query, *arguments, **options):
            return super().forward(query, *arguments, **options)

    module.layers[1].__class__ = Own
    module(**inputs)
    assert len(tables_made) == 1


def test_caches_of_different_lengths_have_their_own_positions(backend):
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend)["query"]

    def caches():
        first, second = module.new_cache()
        module.layers[1](x, cache=second)
        return [first, second]

    first, second = caches()
    expected = module.norm(module.layers[1](module.layers[0](x, cache=first), cache=second))
    assert_array_equal(backend.numpy(module(x, cache=caches())), backend.numpy(expected))


def test_keys_of_another_length_have_their_own_positions_in_a_stack(backend, rng):
    layer = EVERY["encoder with rope"]
    module, x, key = layer.build(backend), layer.inputs(backend)["query"], backend.array(rng.standard_normal((B, S, E)))
    expected = module.norm(module.layers[1](module.layers[0](x, key), key))
    assert_array_equal(backend.numpy(module(x, key)), backend.numpy(expected))


@pytest.mark.parametrize("name", ["encoder with rope", "decoder with rope"])
def test_sequences_padded_on_the_left_have_positions_of_their_own(backend, name):
    # The second sequence begins after two words of padding: its result must be the same as without them.
    layer = EVERY[name]
    module, inputs = layer.build(backend), layer.inputs(backend)
    positions = np.arange(T) - np.array([[0], [2]])
    tables = attnlib.rope_tables(backend.array(positions[:, None]), W, base=ROPE)  # (B, 1, T, W/2)
    real = backend.array(positions[:, None, None] >= 0, "bool")  # (B, 1, 1, T)
    together = backend.numpy(module(**inputs, attn_mask=real, is_causal=True, rope_tables=tables))
    alone = module(**{n: x[1:, 2:] if n == "query" else x[1:] for n, x in inputs.items()}, is_causal=True)
    close(together[1:, 2:], backend.numpy(alone))


def test_rope_does_not_lose_digits_far_from_the_start():
    # 603 positions on: float32 tables, not bfloat16's, in which neighbours would be one.
    layer = Layer("MultiHeadAttention", (E, HEADS), {"rope": ROPE})
    exact, rough = (layer.build(Torch("cpu"), dtype) for dtype in ("float64", "bfloat16"))
    x = layer.inputs(Torch("cpu"))["query"]
    outs = []
    for module in (exact, rough):
        cache, dtype = attnlib.torch.KVCache(), module.q_proj.weight.dtype
        module(torch.ones(B, 603, E, dtype=dtype), cache=cache)
        outs.append(module(x.to(dtype), attn_mask=(torch.arange(603 + T) >= 603)[None], cache=cache).double())
    torch.testing.assert_close(outs[1], outs[0], rtol=0, atol=0.05 * float(outs[0].detach().abs().max()))


# Learned positions


@pytest.mark.parametrize("offset", [0, 3, P - T])
def test_the_vectors_of_the_positions_are_added(typed, offset):
    backend, dtype = typed
    layer = EVERY["learned positions"]
    x = layer.inputs(backend, dtype)["x"]
    out = backend.numpy(layer.build(backend, dtype)(x, q_offset=offset))
    expected = backend.numpy(x) + backend.numpy(backend.array(layer.state()["weight"], dtype))[offset : offset + T]
    close(out, expected, {"float16": 2**-10, "bfloat16": 2**-7, "float32": 1e-6, "float64": 0}[dtype])


@pytest.mark.parametrize(("offset", "words"), [(-1, "q_offset is -1"), (P - T + 1, f"vectors for {P} positions")])
def test_an_offset_that_is_a_tensor_names_positions_that_exist(offset, words):
    layer = EVERY["learned positions"]
    module, x = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))["x"]
    assert torch.equal(module(x, q_offset=torch.tensor(3)), module(x, q_offset=3))
    with pytest.raises(ValueError, match=words):
        module(x, q_offset=torch.tensor(offset))


def test_an_offset_may_be_known_only_to_torch():
    layer = EVERY["learned positions"]
    module, x = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))["x"]
    batched = torch.func.vmap(lambda offset: module(x, q_offset=offset))(torch.tensor([0, 3]))
    assert torch.equal(batched, torch.stack([module(x, q_offset=0), module(x, q_offset=3)]))


def test_new_positions_are_small_and_differ(backend):
    module = on_device(backend, library(backend).LearnedPositions(97, 101))
    weight = backend.numpy(module.state_dict()["weight"])
    assert 0.015 < weight.std() < 0.025
    assert abs(weight.mean()) < 0.002
    assert len(np.unique(weight[:, 0])) == 97


# Dropout: in training alone


def dropping(layer, p):
    """The layer, in torch, with dropout."""
    module = layer._replace(options=layer.options | {"dropout": p}).plain(attnlib.torch).double()
    module.load_state_dict({name: torch.tensor(x) for name, x in layer.state().items()})
    return module


@every_layer_with_weights
def test_dropout_is_for_training_alone(layer):
    inputs, module = layer.inputs(Torch("cpu")), dropping(layer, 0.5)
    expected = layer.build(Torch("cpu"))(**inputs)
    torch.testing.assert_close(module.eval()(**inputs), expected, rtol=0, atol=0)
    module.train()
    torch.manual_seed(0)
    first, second = module(**inputs), module(**inputs)
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(module(**inputs), first)
    torch.testing.assert_close(module.eval()(**inputs), expected, rtol=0, atol=0)


@every_layer_with_weights
def test_dropout_of_0_is_none_in_training_too(layer):
    inputs, module = layer.inputs(Torch("cpu")), layer.build(Torch("cpu"))
    assert torch.equal(module.train()(**inputs), module.eval()(**inputs))


def test_dropout_drops_weights_of_attention():
    layer = ATTENTIONS["attention with grouped queries"]
    module, (x,) = dropping(layer, 0.5).train(), layer.inputs(Torch("cpu")).values()
    torch.manual_seed(0)
    weights = module(x, need_weights=True)[1]
    exact = module.eval()(x, need_weights=True)[1]
    kept = weights != 0
    assert 0.3 < kept.double().mean() < 0.7
    torch.testing.assert_close(weights[kept], 2 * exact[kept])


def test_if_all_weights_are_dropped_the_last_bias_is_left():
    module = dropping(ATTENTIONS["attention"], 1.0).train()
    out = module(torch.ones(B, T, E, dtype=torch.float64))
    torch.testing.assert_close(out, module.out_proj.bias.expand(B, T, E))


def test_a_block_drops_what_its_parts_add():
    x = EVERY["block"].inputs(Torch("cpu"))["query"]
    assert torch.equal(dropping(EVERY["block"], 1.0).train()(x), x)
    inputs = EVERY["decoder block"].inputs(Torch("cpu"))
    assert torch.equal(dropping(EVERY["decoder block"], 1.0).train()(**inputs), inputs["query"])


def test_a_block_drops_between_its_linear_layers():
    module, (x,) = dropping(EVERY["block, post-norm, gelu"], 0.5).train(), EVERY["block"].inputs(Torch("cpu")).values()
    seen = []
    module.linear1.register_forward_hook(lambda part, given, out: seen.append(nn.functional.gelu(out)))
    module.linear2.register_forward_hook(lambda part, given, out: seen.append(given[0]))
    torch.manual_seed(0)
    module(x)
    whole, dropped = seen
    kept = dropped != 0
    assert 0.3 < kept.double().mean() < 0.7
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


@every_layer_with_weights
def test_numpy_s_layers_never_drop(layer):
    module = layer._replace(options=layer.options | {"dropout": 0.9}).build(Numpy())
    assert_array_equal(module(**layer.inputs(Numpy())), run(layer, Numpy())[0])


# Errors


def made(z, layer, dtype="float64"):
    """A layer of the library, and on the device, of the arrays that z makes."""
    x = z(1)
    return layer.build(Torch(x.device.type) if isinstance(x, torch.Tensor) else Numpy(), dtype)


def plain(z, name, *arguments, **options):
    """What an unknown or impossible option gives."""
    like = z(1)
    if not isinstance(like, torch.Tensor):
        return getattr(attnlib.numpy, name)(*arguments, **options)
    with like.device:
        return getattr(attnlib.torch, name)(*arguments, **options)


MHA, BLOCK, ENCODER, DECODER = EVERY["attention"], EVERY["block"], EVERY["encoder"], EVERY["decoder"]
ADD = EVERY["learned positions"]
ERRORS = {
    # making
    "heads that do not divide the width": (
        lambda z: plain(z, "MultiHeadAttention", E, 5), ValueError, ["num_heads=5", f"embed_dim={E}"],
    ),
    "more heads than components": (
        lambda z: plain(z, "MultiHeadAttention", E, 2 * E), ValueError, [f"num_heads={2 * E}", f"embed_dim={E}"],
    ),
    "heads of keys that do not divide the heads": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, num_kv_heads=4), ValueError,
        ["num_kv_heads=4", f"num_heads={HEADS}"],
    ),
    "more heads of keys than heads": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, num_kv_heads=12), ValueError, ["num_kv_heads=12"],
    ),
    "no heads of keys": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, num_kv_heads=0), ValueError, ["num_kv_heads", "0"],
    ),
    "no heads": (lambda z: plain(z, "MultiHeadAttention", E, 0), ValueError, ["num_heads", "0"]),
    "no width": (lambda z: plain(z, "MultiHeadAttention", 0, 1), ValueError, ["embed_dim", "0"]),
    "half a head": (lambda z: plain(z, "MultiHeadAttention", E, 1.5), TypeError, ["num_heads", r"1\.5"]),
    "a width that is no number": (lambda z: plain(z, "MultiHeadAttention", "E", 1), TypeError, ["embed_dim", "'E'"]),
    "rotary tables for a layer without rope": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS)(z(B, T, E, dtype="float32"), rope_tables=(z(T, 1),) * 2),
        ValueError, ["rope_tables", "rope=True"],
    ),
    "rotary tables for another length": (
        lambda z: plain(z, "Encoder", *STACK, rope=ROPE)(z(B, T, E, dtype="float32"), rope_tables=(z(S, 2),) * 2),
        ValueError, ["cos", sizes(S, 2), f"T={T}"],
    ),
    "rope with heads of odd width": (
        lambda z: plain(z, "MultiHeadAttention", 15, 5, rope=ROPE), ValueError, ["rope", r"\b3\b"],
    ),
    "rope in a block with heads of odd width": (
        lambda z: plain(z, "TransformerBlock", 15, 5, FF, rope=ROPE), ValueError, ["rope", r"\b3\b"],
    ),
    "rope of no number": (lambda z: plain(z, "MultiHeadAttention", E, HEADS, rope="llama"), TypeError, ["rope.*llama"]),
    "rope of an array": (
        lambda z: plain(z, "TransformerBlock", E, HEADS, FF, rope=z(1)), TypeError, ["rope", "number"],
    ),
    "a scaling that is a number": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, rope=ROPE, rope_scaling=8.0), TypeError,
        [r"rope_scaling is 8\.0", r"RopeScaling\(factor"],
    ),
    "a scaling without rope": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, rope_scaling=RopeScaling(8.0)), ValueError,
        ["rope_scaling", "rope=True"],
    ),
    "rope of base 0": (lambda z: plain(z, "MultiHeadAttention", E, HEADS, rope=0), ValueError, ["rope is 0"]),
    "rope of an infinite base": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, rope=np.inf), ValueError, ["rope is inf"],
    ),
    "dropout above 1": (
        lambda z: plain(z, "MultiHeadAttention", E, HEADS, dropout=1.5), ValueError, [r"dropout.*1\.5"],
    ),
    "dropout below 0": (lambda z: plain(z, "TransformerBlock", E, HEADS, FF, dropout=-0.5), ValueError, [r"-0\.5"]),
    "an unknown norm": (
        lambda z: plain(z, "TransformerBlock", E, HEADS, FF, norm="middle"), ValueError,
        ["'middle'", "'pre'", "'post'"],
    ),
    "an unknown norm of a stack": (
        lambda z: plain(z, "Encoder", E, HEADS, FF, 2, norm="Pre"), ValueError, ["'Pre'", "'pre'", "'post'"],
    ),
    "an unknown activation": (
        lambda z: plain(z, "TransformerBlock", E, HEADS, FF, activation="tanh"), ValueError,
        ["'tanh'", "'relu'", "'gelu'"],
    ),
    "an unknown option": (
        lambda z: plain(z, "Encoder", E, HEADS, FF, 2, droppout=0.5), TypeError, ["droppout"],
    ),
    "no width inside a block": (lambda z: plain(z, "TransformerBlock", E, HEADS, 0), ValueError, ["ff_dim", "0"]),
    "no layers": (lambda z: plain(z, "Encoder", E, HEADS, FF, 0), ValueError, ["num_layers", "0"]),
    "half a layer": (lambda z: plain(z, "Decoder", E, HEADS, FF, 0.5), TypeError, ["num_layers", r"0\.5"]),
    "no positions": (lambda z: plain(z, "LearnedPositions", 0, E), ValueError, ["num_positions", "0"]),
    # calling
    "a wrong width": (lambda z: made(z, MHA)(z(B, T, E + 1)), ValueError, ["query", sizes(B, T, E + 1), str(E)]),
    "a width of 1": (lambda z: made(z, MHA)(z(B, T, 1)), ValueError, ["query", sizes(B, T, 1), str(E)]),
    "a wrong width of the key": (
        lambda z: made(z, MHA)(z(B, T, E), z(B, S, E + 1)), ValueError, ["key", sizes(B, S, E + 1), str(E)],
    ),
    "a wrong width of the value": (
        lambda z: made(z, MHA)(z(B, T, E), z(B, S, E), z(B, S, 1)), ValueError, ["value", sizes(B, S, 1), str(E)],
    ),
    "a wrong width for a block": (lambda z: made(z, BLOCK)(z(B, T, E - 1)), ValueError, ["query", sizes(B, T, E - 1)]),
    "a wrong width for a stack": (lambda z: made(z, ENCODER)(z(B, T, 1)), ValueError, ["query", sizes(B, T, 1)]),
    "a wrong width of the memory": (
        lambda z: made(z, DECODER)(z(B, T, E), z(B, S, 1)), ValueError, ["key", sizes(B, S, 1)],
    ),
    "a vector": (lambda z: made(z, MHA)(z(E)), ValueError, ["query", sizes(E)]),
    "a vector for a block": (lambda z: made(z, BLOCK)(z(E)), ValueError, ["query", sizes(E)]),
    "more values than keys": (
        lambda z: made(z, MHA)(z(B, T, E), z(B, S, E), z(B, T, E)), ValueError, [str(S), str(T)],
    ),
    "batches that do not broadcast": (
        lambda z: made(z, MHA)(z(2, T, E), z(3, S, E)), ValueError, [r"\(2, ", r"\(3, "],
    ),
    "one query for a batch of keys": (
        lambda z: made(z, MHA)(z(1, T, E), z(B, S, E)), ValueError,
        [f"query has shape {sizes(1, T, E)}", f"key {sizes(B, S, E)}", "must be equal"],
    ),
    "a batch of queries for one key": (
        lambda z: made(z, BLOCK)(z(B, T, E), z(1, S, E)), ValueError,
        [f"query has shape {sizes(B, T, E)}", f"key {sizes(1, S, E)}", "must be equal"],
    ),
    "a sequence without a batch for a batch of keys": (
        lambda z: made(z, ENCODER)(z(T, E), z(B, S, E)), ValueError,
        [f"query has shape {sizes(T, E)}", f"key {sizes(B, S, E)}", "must be equal"],
    ),
    "one memory for a batch": (
        lambda z: made(z, DECODER)(z(B, T, E), z(1, S, E)), ValueError,
        [f"query has shape {sizes(B, T, E)}", f"key {sizes(1, S, E)}", "must be equal"],
    ),
    "one value for a batch of keys": (
        lambda z: made(z, MHA)(z(B, T, E), z(B, S, E), z(1, S, E)), ValueError,
        [f"query has shape {sizes(B, T, E)}", f"value {sizes(1, S, E)}", "must be equal"],
    ),
    "values of another length without keys": (
        lambda z: made(z, MHA)(z(B, T, E), value=z(B, S, E)), ValueError,
        [f"query has shape {sizes(B, T, E)}", "none was given: pass key", f"value {sizes(B, S, E)}"],
    ),
    "a mask of another length": (
        lambda z: made(z, MHA)(z(B, T, E), z(B, S, E), attn_mask=z(S, T, dtype="bool")), ValueError,
        ["attn_mask", sizes(S, T), sizes(B, HEADS, T, S)],
    ),
    "a padding mask without its middle dimensions": (
        lambda z: made(z, BLOCK)(z(B, T, E), attn_mask=z(B, T, dtype="bool")), ValueError,
        ["attn_mask", sizes(B, T), sizes(B, HEADS, T, T)],
    ),
    "a mask of integers": (
        lambda z: made(z, ENCODER)(z(B, T, E), attn_mask=z(T, T, dtype="int64")), TypeError, ["attn_mask", "int64"],
    ),
    "a memory mask of another length": (
        lambda z: made(z, DECODER)(z(B, T, E), z(B, S, E), memory_mask=z(T, T, dtype="bool")), ValueError,
        [sizes(T, T), sizes(B, HEADS, T, S)],
    ),
    "a decoder without a memory": (lambda z: made(z, DECODER)(z(B, T, E)), ValueError, ["key", "memory"]),
    "integers": (lambda z: made(z, MHA)(z(B, T, E, dtype="int64")), TypeError, ["query", "int64"]),
    "integers for a block": (lambda z: made(z, BLOCK)(z(B, T, E, dtype="int64")), TypeError, ["query", "int64"]),
    "integers as memory": (
        lambda z: made(z, DECODER)(z(B, T, E), z(B, S, E, dtype="int64")), TypeError, ["key", "int64"],
    ),
    "float64 for float32 weights": (
        lambda z: made(z, MHA, "float32")(z(B, T, E)), TypeError, ["query", "float64", "weight", "float32"],
    ),
    "float64 for a float32 block": (
        lambda z: made(z, BLOCK, "float32")(z(B, T, E)), TypeError, ["query", "float64", "weight", "float32"],
    ),
    "float64 for a float32 stack": (
        lambda z: made(z, ENCODER, "float32")(z(B, T, E)), TypeError, ["query", "float64", "weight", "float32"],
    ),
    "float32 for float64 weights": (
        lambda z: made(z, MHA)(z(B, T, E, dtype="float32")), TypeError, ["query", "float64", "weight", "float32"],
    ),
    "a list": (lambda z: made(z, MHA)([[1.0] * E]), TypeError, ["query", "list"]),
    "a list for a stack": (lambda z: made(z, ENCODER)([[1.0] * E]), TypeError, ["query", "list"]),
    "an unknown option of a call": (lambda z: made(z, ENCODER)(z(B, T, E), causal=True), TypeError, ["causal"]),
    # learned positions
    "a sequence longer than there are positions": (
        lambda z: made(z, ADD)(z(B, P + 1, E)), ValueError, [sizes(B, P + 1, E), str(P)],
    ),
    "an offset beyond the last position": (
        lambda z: made(z, ADD)(z(B, T, E), q_offset=P - T + 1), ValueError, [sizes(B, T, E), str(P - T + 1), str(P)],
    ),
    "a negative offset": (lambda z: made(z, ADD)(z(B, T, E), q_offset=-1), ValueError, ["q_offset", "-1"]),
    "half an offset": (lambda z: made(z, ADD)(z(B, T, E), q_offset=0.5), TypeError, ["q_offset", r"0\.5"]),
    "positions of another width": (lambda z: made(z, ADD)(z(B, T, E + 1)), ValueError, [sizes(B, T, E + 1), str(E)]),
    "positions of width 1": (lambda z: made(z, ADD)(z(B, T, 1)), ValueError, [sizes(B, T, 1), str(E)]),
    "positions for a vector": (lambda z: made(z, ADD)(z(E)), ValueError, [sizes(E)]),
    "positions for integers": (lambda z: made(z, ADD)(z(B, T, E, dtype="int64")), TypeError, ["int64"]),
    "positions for float64": (
        lambda z: made(z, ADD, "float32")(z(B, T, E)), TypeError, ["float32", "float64"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


@every_layer
@pytest.mark.parametrize(("one", "other"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
def test_arrays_of_the_other_library_are_refused(layer, one, other):
    for given in ({}, {"key": layer.inputs(one).get("key")}) if layer.decodes else ({},):
        with pytest.raises(TypeError, match=r"ndarray.*Tensor|Tensor.*ndarray"):
            layer.build(one)(**layer.inputs(other) | given)


@pytest.mark.parametrize(("one", "other"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
def test_a_mask_of_the_other_library_is_refused(one, other):
    with pytest.raises(TypeError, match=r"ndarray.*Tensor|Tensor.*ndarray"):
        MHA.build(one)(**MHA.inputs(one), attn_mask=other.array(np.ones((T, T)), "bool"))


# What NumPy's layers are built from: torch.nn's


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(E,), (T, E), (B, T, E), (0, E), (B, 2, T, E)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_torch_s(rng, dtype, shape, bias):
    theirs = nn.Linear(E, FF, bias=bias, dtype=getattr(torch, dtype))
    ours = attnlib.numpy.Linear(E, FF, bias=bias)
    ours.load_state_dict(theirs.state_dict())
    x = rng.standard_normal(shape).astype(dtype)
    out = ours(x)
    assert out.dtype == np.dtype(dtype)
    assert_allclose(
        out, theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5 if dtype == "float32" else 1e-13
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("eps", [1e-5, 0.5])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_layer_norm_is_torch_s(rng, dtype, eps, shift):
    theirs = nn.LayerNorm(E, eps=eps, dtype=torch.float64)
    nn.init.normal_(theirs.weight), nn.init.normal_(theirs.bias)
    ours = attnlib.numpy.LayerNorm(E, eps=eps)
    ours.load_state_dict(theirs.to(getattr(torch, dtype)).state_dict())
    x = (shift + rng.standard_normal((B, T, E))).astype(dtype)
    before = x.copy()
    out = ours(x)
    expected = theirs.double()(torch.tensor(x).double()).detach().numpy()
    assert out.dtype == np.dtype(dtype)
    assert_array_equal(x, before)
    assert_allclose(out, expected, rtol=0, atol={"float16": 3e-3, "float32": 1e-4, "float64": 1e-12}[dtype])


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
@pytest.mark.parametrize("layers", [attnlib.numpy, nn], ids=["numpy", "torch"])
def test_norms_take_their_width_by_the_name_that_torch_gives_it(layers, name):
    assert getattr(layers, name)(normalized_shape=E, eps=0.5).weight.shape == (E,)


def test_layer_norm_of_equal_numbers_is_its_bias():
    norm = attnlib.numpy.LayerNorm(E)
    norm.load_state_dict({"weight": np.ones(E), "bias": np.arange(E, dtype=float)})
    assert_array_equal(norm(np.full((T, E), 7.0)), np.tile(np.arange(E), (T, 1)))


def test_layer_norm_of_large_float16_numbers_does_not_overflow():
    norm = attnlib.numpy.LayerNorm(4)
    norm.load_state_dict({"weight": np.ones(4, np.float16), "bias": np.zeros(4, np.float16)})
    assert_array_equal(norm(np.array([[6e4, -6e4, 6e4, -6e4]], np.float16)), [[1, -1, 1, -1]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gelu_is_torch_s_exact_one(dtype):
    x = np.concatenate([np.linspace(-6, 6, 101), [0.0, -0.0, 30.0, -30.0]]).astype(dtype)
    before = x.copy()
    out = attnlib.numpy.TransformerBlock.ACTIVATIONS["gelu"](x)
    expected = nn.functional.gelu(torch.tensor(x).double()).numpy()
    assert out.dtype == np.dtype(dtype)
    assert_array_equal(x, before)
    assert_allclose(out, expected, rtol=0, atol={"float16": 3e-3, "float32": 1e-6, "float64": 1e-15}[dtype])


def test_relu_is_torch_s_and_leaves_its_input():
    x = np.array([-2.0, -0.0, 0.0, 3.0], np.float32)
    out = attnlib.numpy.TransformerBlock.ACTIVATIONS["relu"](x)
    assert_array_equal(out, nn.functional.relu(torch.tensor(x)).numpy())
    assert_array_equal(x, [-2, 0, 0, 3])
    assert out.dtype == x.dtype


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(T,), (B, T), (0,), ()], ids=str)
def test_embedding_is_torch_s(rng, kind, shape):
    theirs = nn.Embedding(P, E)
    ours = attnlib.numpy.Embedding(P, E)
    ours.load_state_dict(theirs.state_dict())
    index = np.array(rng.integers(0, P, shape), kind)
    expected = theirs(torch.tensor(index.astype("int64"))).detach().numpy()
    assert_array_equal(ours(index), expected)
    assert ours(index).dtype == np.float32


@pytest.mark.parametrize(("index", "exception", "words"), [
    (np.array([0, P]), ValueError, [str(P)]),
    (np.array([-1]), ValueError, ["-1", str(P)]),
    (np.array([1.0]), TypeError, ["float64", "integers"]),
    (np.array([True]), TypeError, ["bool", "integers"]),
    ([1, 2], TypeError, ["list", "integers"]),
])  # fmt: skip
def test_embedding_refuses_what_is_no_index(index, exception, words):
    with pytest.raises(exception) as caught:
        attnlib.numpy.Embedding(P, E)(index)
    assert all(word in str(caught.value) for word in words)


def test_what_embedding_returns_is_no_view_of_its_table():
    table = attnlib.numpy.Embedding(P, E)
    before = table.weight.copy()
    table(np.arange(T))[...] = 0.0
    assert_array_equal(table.weight, before)


class Reordered(attnlib.numpy.Module):
    """A layer with indices, which are an array but not a parameter."""

    def __init__(self):
        self.linear, self.order = attnlib.numpy.Linear(E, 3), np.array([2, 0, 1])

    def forward(self, x):
        return self.linear(x)[..., self.order]


def test_only_floating_point_arrays_of_a_numpy_module_are_parameters(rng):
    module = Reordered().double()
    assert list(module.state_dict()) == ["linear.weight", "linear.bias"]
    module.load_state_dict(module.state_dict())
    x = rng.standard_normal((T, E))
    assert_array_equal(module(x), module.linear(x)[:, [2, 0, 1]])


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # torch warns about width 0
@pytest.mark.parametrize(("width", "shape"), [(0, (2, 5)), (E, (0, 5)), (0, (0,))])
def test_a_linear_layer_of_width_0_or_without_positions_agrees_with_torch(width, shape):
    ours, theirs = attnlib.numpy.Linear(width, 3), nn.Linear(width, 3)
    theirs.load_state_dict({name: torch.tensor(x) for name, x in ours.state_dict().items()})
    x = np.ones((*shape, width), np.float32)
    assert_allclose(ours(x), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["Linear", "LayerNorm"])
def test_numpy_s_parts_refuse_other_dtypes_and_integers(name):
    part = attnlib.numpy.Linear(E, FF) if name == "Linear" else attnlib.numpy.LayerNorm(E)
    with pytest.raises(TypeError, match=r"float64.*float32|float32.*float64"):
        part(np.ones((T, E)))
    with pytest.raises(TypeError, match="int64"):
        part(np.ones((T, E), np.int64))
    with pytest.raises(ValueError, match=str(E)):
        part(np.ones((T, E + 1), np.float32))
    with pytest.raises(ValueError, match=str(E)):
        part(np.ones((T, 1), np.float32))


def test_new_linear_layers_are_drawn_as_torch_draws_them():
    ours, theirs = attnlib.numpy.Linear(400, 300), nn.Linear(400, 300)
    for mine, torchs in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
        torchs = torchs.detach().numpy()
        assert np.abs(mine).max() <= 1 / 20
        assert mine.std() == pytest.approx(torchs.std(), rel=0.15)


def test_numpy_takes_the_dtype_of_what_is_loaded():
    for dtype in ("float16", "float32", "float64"):
        module = ENCODER.build(Numpy(), dtype)
        assert {str(x.dtype) for x in module.state_dict().values()} == {dtype}


def test_loading_copies_and_the_state_dict_does_not():
    module, state = MHA.build(Numpy()), MHA.state()
    module.load_state_dict(state)
    state["q_proj.weight"][...] = 0.0
    assert_array_equal(module.q_proj.weight, MHA.state()["q_proj.weight"])
    assert module.state_dict()["q_proj.weight"] is module.q_proj.weight


@pytest.mark.parametrize(
    ("change", "exception", "named"),
    [
        (lambda s: {n: x for n, x in s.items() if n != "layers.1.norm2.bias"}, KeyError, r"layers\.1\.norm2\.bias"),
        (lambda s: s | {"layers.2.norm2.bias": np.zeros(E)}, KeyError, r"layers\.2\.norm2\.bias"),
        (lambda s: s | {"norm.bias": np.zeros(E + 1)}, ValueError, rf"norm\.bias.*\({E + 1},\).*\({E},\)"),
        (lambda s: s | {"norm.bias": np.zeros(1)}, ValueError, r"norm\.bias.*\(1,\)"),
        (lambda s: s | {"norm.bias": np.zeros((1, E))}, ValueError, rf"norm\.bias.*\(1, {E}\)"),
    ],
    ids=["missing", "unknown", "misshapen", "that would broadcast", "of another rank"],
)
def test_numpy_refuses_a_state_that_does_not_fit_and_is_as_it_was(change, exception, named):
    module = ENCODER.build(Numpy())
    state = {name: np.full(x.shape, 7.0) for name, x in ENCODER.state().items()}
    with pytest.raises(exception, match=named):
        module.load_state_dict(change(state))
    for name, x in module.state_dict().items():
        assert_array_equal(x, ENCODER.state()[name])


@every_layer
def test_numpy_s_modules_name_their_parts_and_parameters_as_torch_s(layer):
    ours, theirs = (layer.plain(m) for m in LIBRARIES)
    shapes = {name: tuple(x.shape) for name, x in theirs.named_parameters()}
    assert {name: x.shape for name, x in ours.named_parameters()} == shapes
    assert [x.shape for x in ours.parameters()] == [x.shape for _, x in ours.named_parameters()]
    assert all(x is ours.state_dict()[name] for name, x in ours.named_parameters())
    lists = {name for name, part in theirs.named_modules() if isinstance(part, nn.ModuleList)}
    assert {name for name, _ in ours.named_modules()} == {name for name, _ in theirs.named_modules()} - lists


def test_numpy_s_modules_are_cast_as_torch_s(backend):
    module = EVERY["encoder"].build(backend)
    for name, dtype in (("half", "float16"), ("double", "float64"), ("float", "float32")):
        assert getattr(module, name)() is module
        assert {dtype_name(x) for x in module.parameters()} == {dtype}
    close(backend.numpy(module(**ENCODER.inputs(backend, "float32"))), run(ENCODER, backend)[0], 2e-2)


def test_numpy_s_modules_always_evaluate():
    module = ENCODER.build(Numpy())
    assert module.eval() is module
    assert module.train(False) is module
    with pytest.raises(NotImplementedError, match=r"Encoder of attnlib\.numpy does not train"):
        module.train()


def test_a_state_of_some_parameters_is_loaded_if_it_need_not_be_all(backend):
    state = {"norm1.bias": np.full(E, 7.0), "surplus": np.ones(3)}
    module = BLOCK.build(backend)
    module.load_state_dict({name: backend.array(x) for name, x in state.items()}, strict=False)
    module.load_state_dict({}, strict=False)
    for name, x in BLOCK.state().items():
        assert_array_equal(backend.numpy(module.state_dict()[name]), state.get(name, x))
    with pytest.raises((ValueError, RuntimeError), match=r"norm1\.bias"):
        module.load_state_dict({"norm1.bias": backend.array(np.ones(E + 1))}, strict=False)


def test_numpy_s_modules_keep_to_one_dtype_when_a_part_is_loaded():
    module = BLOCK.build(Numpy())
    module.load_state_dict({"norm1.bias": np.ones(E, np.float32)}, strict=False)
    assert {x.dtype for x in module.parameters()} == {np.dtype("float32")}


def test_a_module_without_a_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module"):
        attnlib.numpy.Module()(1)


# Copies and files


@every_layer
def test_copies_and_pickles_compute_the_same_and_share_nothing(backend, layer):
    module, inputs = layer.build(backend), layer.inputs(backend)
    expected = backend.numpy(module(**inputs)).copy()
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert type(other) is type(module)
        assert_array_equal(backend.numpy(other(**inputs)), expected)
        for x in other.state_dict().values():
            x[...] = 0.0
        assert_array_equal(backend.numpy(module(**inputs)), expected)


@every_layer
def test_torch_s_files_keep_modules_and_states(tmp_path, layer):
    module, inputs = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))
    torch.save(module, tmp_path / "module.pt")
    torch.save(module.state_dict(), tmp_path / "state.pt")
    whole = torch.load(tmp_path / "module.pt", weights_only=False)
    fresh = layer.plain(attnlib.torch).double().eval()
    fresh.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for other in (whole, fresh):
        assert torch.equal(other(**inputs), module(**inputs))


def test_numpy_s_files_keep_a_state(tmp_path):
    np.savez(tmp_path / "state.npz", **ENCODER.state())
    module = ENCODER.plain(attnlib.numpy)
    with np.load(tmp_path / "state.npz") as state:
        module.load_state_dict(state)
    assert_array_equal(module(**ENCODER.inputs(Numpy())), run(ENCODER, Numpy())[0])


@every_layer
def test_torch_s_modules_show_their_parts(layer):
    text = repr(layer.plain(attnlib.torch))
    assert text.startswith(layer.name)
    if layer.attends:
        assert text.count("(q_proj): Linear(in_features=24, out_features=24") >= 1
        assert len(text.splitlines()) > 3


# What torch's transforms ask


def options_of(layer):
    return {} if layer.decodes or not layer.attends else {"is_causal": True}


@every_layer
def test_nothing_leaves_the_meta_device_and_nothing_is_read_back(layer):
    with torch.device("meta"):
        module = layer.plain(attnlib.torch)
    assert {x.device.type for x in module.state_dict().values()} == {"meta"}
    inputs = {name: x.to("meta", torch.float32) for name, x in layer.inputs(Torch("cpu")).items()}
    for options in ({}, options_of(layer), {"need_weights": True} if layer.attends else {"q_offset": 2}):
        with OnMeta():
            results = leaves(module(**inputs, **options))
        assert {(x.device.type, x.dtype) for x in results} == {("meta", torch.float32)}


@pytest.mark.parametrize("name", ["attention with rope", "block", "encoder with rope"])
def test_decoding_stays_on_the_meta_device(name):
    layer = EVERY[name]
    with torch.device("meta"):
        module = layer.plain(attnlib.torch)
    cache = module.new_cache() if layer.name == "Encoder" else attnlib.torch.KVCache()
    with torch.no_grad(), OnMeta():
        for n in (3, 1, 1):
            out = module(torch.empty(B, n, E, device="meta"), cache=cache, is_causal=True)
    assert tuple(out.shape) == (B, 1, E)


@pytest.mark.parametrize(
    ("name", "dynamic", "lowered"),
    [
        ("encoder", None, "aot_eager"),
        ("decoder block", True, "eager"),  # the export test lowers symbolic shapes
        ("learned positions", None, "aot_eager"),
        ("learned positions", True, "eager"),
    ],
)
def test_torch_compile_sees_one_graph(name, dynamic, lowered):
    layer = EVERY[name]
    module = layer.build(Torch("cpu")).requires_grad_(False)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend=lowered, dynamic=dynamic)
    for length in (T, 11) if dynamic else (T,):
        inputs = layer.inputs(Torch("cpu"), length=length)
        torch.testing.assert_close(compiled(**inputs, **options_of(layer)), module(**inputs, **options_of(layer)))


def test_torch_compile_trains():
    layer = EVERY["block with rope"]
    module, x = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))["query"]
    module(x, is_causal=True).square().sum().backward()
    expected = {name: p.grad.clone() for name, p in module.named_parameters()}
    module.zero_grad()
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    compiled(x, is_causal=True).square().sum().backward()
    for name, p in module.named_parameters():
        torch.testing.assert_close(p.grad, expected[name])


def test_torch_compile_takes_weights_and_masks():
    layer = EVERY["block with rope"]
    module, x = layer.build(Torch("cpu")).requires_grad_(False), layer.inputs(Torch("cpu"))["query"]
    mask = padding_mask(torch.tensor([3, T]), T)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    ours, theirs = (leaves(m(x, attn_mask=mask, need_weights=True)) for m in (compiled, module))
    for mine, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, wanted)


class Causal(nn.Module):
    """A layer that is always causal: torch.export takes arguments by position."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, is_causal=True)


@pytest.mark.parametrize(
    ("name", "causal"),
    [("attention with rope and grouped queries", True), ("block", False), ("encoder with rope", True)],
)
def test_export_keeps_batch_and_length_dynamic(name, causal):
    layer = EVERY[name]
    module = layer.build(Torch("cpu"))
    module = Causal(module) if causal else module
    x = layer.inputs(Torch("cpu"))["query"]
    dynamic = ({0: torch.export.Dim("B", min=2, max=64), 1: torch.export.Dim("T", min=2, max=512)},)
    program = torch.export.export(module, (x,), dynamic_shapes=dynamic).module()
    for batch, length in ((B, T), (3, 19), (7, 2)):
        z = torch.randn(batch, length, E, dtype=torch.float64)
        torch.testing.assert_close(program(z), module(z))


@pytest.mark.parametrize("name", ["attention with rope and grouped queries", "block", "encoder, post-norm", "decoder"])
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's, of its own fused operation
def test_vmap_over_parameters_is_a_loop(name):
    layer = EVERY[name]
    module, inputs = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))
    torch.manual_seed(0)
    many = {n: torch.stack([x, torch.randn_like(x), 2 * x]) for n, x in module.state_dict().items()}

    def one(parameters):
        return torch.func.functional_call(module, parameters, (), inputs)

    loop = torch.stack([one({n: x[i] for n, x in many.items()}) for i in range(3)])
    torch.testing.assert_close(torch.func.vmap(one)(many), loop)


@pytest.mark.parametrize("name", ["attention with rope", "block", "decoder block"])
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_over_the_batch_is_the_batch(name):
    layer = EVERY[name]
    module, inputs = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))
    ours = torch.func.vmap(lambda *x: module(*x))(*inputs.values())
    torch.testing.assert_close(ours, module(**inputs))


@pytest.mark.parametrize("name", ["attention with rope and grouped queries", "block, post-norm, gelu", "decoder block"])
def test_the_gradient_is_the_numerical_one(name):
    layer = EVERY[name]
    module = layer.build(Torch("cpu"))
    inputs = tuple(x[:1, :2].clone().requires_grad_() for x in layer.inputs(Torch("cpu")).values())
    assert torch.autograd.gradcheck(module, inputs)
    with_weights = torch.autograd.gradcheck(lambda *x: tuple(leaves(module(*x, need_weights=True))), inputs)
    assert with_weights


@every_layer
def test_gradients_reach_every_parameter(layer):
    module, inputs = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"))
    out = module(**inputs)
    (out * torch.arange(out.numel()).reshape(out.shape).cos()).sum().backward()
    for name, p in module.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name
        # The softmax does not see what is added to all scores of a row, and so no bias of the keys without positions.
        if name.endswith("k_proj.bias") and ("rope" not in layer.options or "cross_attn" in name):
            torch.testing.assert_close(p.grad, torch.zeros_like(p.grad), rtol=0, atol=1e-10)
        else:
            assert p.grad.abs().max() > 1e-8, name


def test_a_query_that_may_attend_to_nothing_spoils_no_gradient():
    module, inputs = ENCODER.build(Torch("cpu")), ENCODER.inputs(Torch("cpu"))
    mask = torch.zeros(T, T, dtype=torch.bool)
    mask[0, 0] = True
    for need_weights in (False, True):
        module.zero_grad()
        result = module(**inputs, attn_mask=mask, need_weights=need_weights)
        leaves(result)[0].square().sum().backward()
        assert all(p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("layer", (SELF | DECODERS).values(), ids=SELF | DECODERS)
def test_autocast_runs_and_trains(layer):
    module, inputs = layer.build(Torch("cpu"), "float32"), layer.inputs(Torch("cpu"), "float32")
    exact = module(**inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = module(**inputs)
        with_weights = leaves(module(**inputs, need_weights=True))[0]
    torch.testing.assert_close(out.float(), exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))
    torch.testing.assert_close(with_weights.float(), exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))
    out.float().square().sum().backward()
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in module.parameters())


def test_a_model_learns():
    # To repeat the word before: without attention the best guess is chance.
    torch.manual_seed(0)
    words, T_long = 5, 8
    table, model = nn.Embedding(words, E), attnlib.torch.Encoder(E, 4, FF, 1, rope=100.0)
    read = nn.Linear(E, words)
    optimiser = torch.optim.Adam([*table.parameters(), *model.parameters(), *read.parameters()], lr=1e-2)
    for _ in range(120):
        x = torch.randint(words, (32, T_long))
        loss = nn.functional.cross_entropy(
            read(model(table(x), is_causal=True))[:, 1:].flatten(0, 1), x[:, :-1].flatten()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.2  # chance is log(5) = 1.6


on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@on_cuda
@every_layer
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_on_cuda_device_dtype_and_results_are_kept(layer, dtype):
    module, inputs = layer.build(Torch("cuda"), dtype), layer.inputs(Torch("cuda"), dtype)
    exact = torch.tensor(run(layer, Numpy())[0])
    out = module(**inputs)
    assert (out.device.type, dtype_name(out)) == ("cuda", dtype)
    atol = max(TOLERANCE[dtype], 1e-5) if dtype != "float64" else 1e-11
    torch.testing.assert_close(out.detach().cpu().double(), exact, rtol=0, atol=atol * float(exact.abs().max()))


@on_cuda
@every_layer
def test_on_cuda_nothing_waits_for_the_device(layer):
    module, inputs = layer.build(Torch("cuda"), "float32"), layer.inputs(Torch("cuda"), "float32")
    module(**inputs)
    options = options_of(layer)
    with waits_are_errors():
        module(**inputs, **options)


# Imports and documentation


def in_a_fresh_python(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    ).stdout


HEAVY = "print(sorted({'torch', 'matplotlib', 'scipy', 'pandas', 'IPython'} & set(sys.modules)))"


def test_importing_numpy_s_layers_imports_numpy_alone():
    assert in_a_fresh_python(f"import sys, attnlib.numpy; {HEAVY}") == "[]\n"


def test_computing_with_numpy_s_layers_imports_numpy_alone():
    program = """
import sys, numpy, attnlib.numpy as layers
from attnlib import load_weights
x = numpy.ones((2, 5, 24), numpy.float32)
encoder, decoder = layers.Encoder(24, 6, 29, 2, rope=100.0), layers.Decoder(24, 6, 29, 2)
load_weights(layers.Encoder(24, 6, 29, 2, rope=100.0), encoder)
decoder(layers.LearnedPositions(7, 24)(x), encoder(x, cache=encoder.new_cache(), is_causal=True), need_weights=True)
"""
    assert in_a_fresh_python(program + HEAVY) == "[]\n"


@in_both_libraries
@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_has_its_sections(layers, name):
    text = inspect.getdoc(getattr(layers, name))
    for section in ("Args", "Returns", "Raises", "Source"):
        assert re.search(rf"^{section}:", text, re.MULTILINE), section


@in_both_libraries
@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_explains_every_argument(layers, name):
    text = inspect.getdoc(getattr(layers, name))
    parameters = inspect.signature(getattr(layers, name)).parameters.values()
    for parameter in parameters:
        if parameter.name in ("norm", "layer_norm_eps") and "Decoder" in name:
            continue  # further arguments of what a decoder is made of, and explained there
        assert re.search(rf"^\s+{parameter.name}\b.*:", text, re.MULTILINE), parameter.name


@pytest.mark.parametrize("name", ["Linear", "LayerNorm", "Embedding"])
@pytest.mark.parametrize("section", ["Args", "Returns", "Raises"])
def test_the_docstrings_of_numpy_s_parts_have_their_sections(name, section):
    assert re.search(rf"^{section}:", inspect.getdoc(getattr(attnlib.numpy, name)), re.MULTILINE)
