"""KVCache: what was computed for earlier positions is kept, and a model that writes word by word says the same."""

import copy
import inspect
import re

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import D_V, B, D, H, Numpy, S, T, Torch, assert_error_names, dtype_name, examples, sizes
from hypothesis import given
from modules import ATTENTIONS, DECODERS, ENCODERS, EVERY, LAYERS_WITH_MEMORY, E, P, leaves, library
from numpy.testing import assert_allclose, assert_array_equal

import attnlib
from attnlib.cache import KVCache, MemoryCache, select_sequences
from attnlib.static_cache import StaticCache

LENGTH = 7
CHUNKS = {"one by one": [1] * 7, "in chunks": [2, 3, 2], "a prefill, then one by one": [4, 1, 1, 1], "at once": [7]}
every_way = pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)


def pair(backend, length, dtype="float64", first=0.0):
    """Keys and values in which every number is another."""
    key = np.arange(B * H * length * D, dtype=float).reshape(B, H, length, D)
    value = -np.arange(B * H * length * D_V, dtype=float).reshape(B, H, length, D_V)
    return backend.array(first + key, dtype), backend.array(first + value, dtype)


def new_cache(module):
    """An empty cache, as the module takes it."""
    return module.new_cache() if hasattr(module, "new_cache") else KVCache()


def decoded(module, x, chunks, *more, cache=None, **options):
    """What the module says if it gets the sequence piece by piece."""
    cache, outs, first = new_cache(module) if cache is None else cache, [], 0
    for n in chunks:
        outs.append(module(x[:, first : first + n], *more, cache=cache, **options))
        first += n
    return outs


def joined(backend, outs):
    return np.concatenate([backend.numpy(x) for x in outs], axis=-2)


def continued_after_three(backend, cache):
    """A cache with the first three positions of `pair` gets two more, and has the five."""
    results = cache.append(*pair(backend, 2, first=900.0))
    for mine, *parts in zip(results, pair(backend, 3), pair(backend, 2, first=900.0), strict=True):
        assert_array_equal(backend.numpy(mine), joined(backend, parts))


@pytest.mark.parametrize("new", [KVCache, lambda: StaticCache(9)], ids=["KVCache", "StaticCache"])
def test_no_two_layers_of_a_stack_share_a_cache(backend, new):
    module, x, cache = ENCODERS["encoder"].build(backend), ENCODERS["encoder"].inputs(backend)["query"], new()
    words = rf"one {type(cache).__name__} serves several .*\[{type(cache).__name__}\(...\) for _ in range\(2\)\]"
    with pytest.raises(ValueError, match=words):
        module(x, is_causal=True, cache=[cache] * 2)
    assert cache.length == 0


# The cache itself


def test_a_new_cache_is_empty():
    assert KVCache().length == 0


def test_both_libraries_of_layers_have_the_one_cache():
    assert attnlib.numpy.KVCache is attnlib.torch.KVCache is KVCache


def test_what_was_added_first_comes_first(backend):
    cache = KVCache()
    one, two = np.ones((1, 2, 1)), np.full((1, 3, 1), 2.0)
    cache.append(backend.array(one), backend.array(-one))
    keys, values = cache.append(backend.array(two), backend.array(-two))
    assert_array_equal(backend.numpy(keys)[0, :, 0], [1, 1, 2, 2, 2])
    assert_array_equal(backend.numpy(values)[0, :, 0], [-1, -1, -2, -2, -2])
    assert cache.length == 5


@examples
@given(st.lists(st.integers(0, 5), max_size=12), st.sampled_from([(), (B,), (B, H)]))
def test_it_holds_all_that_was_added_in_order(backend, lengths, leading):
    rng, cache = np.random.default_rng(7), KVCache()
    pieces = [(rng.standard_normal((*leading, n, D)), rng.standard_normal((*leading, n, D_V))) for n in lengths]
    for i, (key, value) in enumerate(pieces):
        got = cache.append(backend.array(key), backend.array(value))
        for mine, theirs in zip(got, zip(*pieces[: i + 1], strict=True), strict=True):
            assert_array_equal(backend.numpy(mine), np.concatenate(theirs, axis=-2))
        assert cache.length == sum(lengths[: i + 1])


def test_shapes_dtypes_and_devices_are_those_of_what_is_added(typed):
    backend, dtype = typed
    cache = KVCache()
    for n in (1, 3, 1):
        keys, values = cache.append(*pair(backend, n, dtype))
    assert (tuple(keys.shape), tuple(values.shape)) == ((B, H, 5, D), (B, H, 5, D_V))
    assert dtype_name(keys) == dtype_name(values) == dtype
    backend.numpy(keys)  # checks the library and the device


def test_what_was_returned_earlier_never_changes(backend):
    cache, seen = KVCache(), []
    for i in range(20):
        seen.append(cache.append(*pair(backend, 1 + i % 3, first=1000.0 * i)))
        seen[-1] += tuple(backend.numpy(x).copy() for x in seen[-1])
    for keys, values, keys_then, values_then in seen:
        assert_array_equal(backend.numpy(keys), keys_then)
        assert_array_equal(backend.numpy(values), values_then)


@pytest.mark.parametrize(
    "made", [lambda x: x, lambda x: x[..., ::2, :], lambda x: x[..., ::2]], ids=["all", "rows", "columns"]
)
def test_what_was_given_is_copied_and_never_changed(backend, made):
    cache = KVCache()
    for _ in range(3):
        key, value = (made(x) for x in pair(backend, 4))
        before = backend.numpy(key).copy(), backend.numpy(value).copy()
        start = cache.length
        cache.append(key, value)
        assert_array_equal(backend.numpy(key), before[0])
        assert_array_equal(backend.numpy(value), before[1])
        key[...] = 0.0  # the cache must not follow
        value[...] = 0.0
    new = [made(x) for x in pair(backend, 4)]
    keys, values = cache.append(*new)
    assert_array_equal(backend.numpy(keys)[..., start : cache.length - new[0].shape[-2], :], before[0])
    assert_array_equal(backend.numpy(values)[..., start : cache.length - new[0].shape[-2], :], before[1])


def test_room_is_doubled_so_that_buffers_are_few(backend):
    cache, places = KVCache(), set()
    for _ in range(200):
        with torch.no_grad():
            keys, _ = cache.append(*pair(backend, 1))
        places.add(keys.data_ptr() if isinstance(keys, torch.Tensor) else keys.__array_interface__["data"][0])
    assert len(places) <= 9  # a buffer for each power of two up to 200, not for each position


@pytest.mark.parametrize(("context", "lowered"), [(torch.enable_grad, "eager"), (torch.inference_mode, "aot_eager")])
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's, as it looks at what is kept with gradients
def test_decoding_compiles_into_one_graph(context, lowered):
    layer = EVERY["attention with rope and grouped queries"]
    module, x = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"), length=LENGTH)["query"]
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend=lowered)
    whole = module(x, is_causal=True)
    with context():
        outs = decoded(compiled, x, [3, 1, 3], is_causal=True, cache=KVCache())
    torch.testing.assert_close(torch.cat(outs, dim=-2), whole)


def test_a_copy_of_a_cache_goes_its_own_way(backend):
    cache = KVCache()
    cache.append(*pair(backend, 3))
    other = copy.deepcopy(cache)
    cache.append(*pair(backend, 2, first=500.0))
    keys, values = other.append(*pair(backend, 2, first=900.0))
    assert (cache.length, other.length) == (5, 5)
    for mine, parts in zip(
        (keys, values), zip(pair(backend, 3), pair(backend, 2, first=900.0), strict=True), strict=True
    ):
        assert_array_equal(backend.numpy(mine), joined(backend, parts))


def filled(z):
    """A cache of three positions, and what fits it."""
    cache = KVCache()
    cache.append(z(B, H, 3, D), z(B, H, 3, D_V))
    return cache


ERRORS = {
    "keys and values of different lengths": (
        lambda z, c: c.append(z(B, H, T, D), z(B, H, S, D_V)), ValueError, [sizes(B, H, T, D), sizes(B, H, S, D_V)],
    ),
    "keys and values of different heads": (
        lambda z, c: c.append(z(B, H, T, D), z(B, 1, T, D_V)), ValueError, [sizes(B, H, T, D), sizes(B, 1, T, D_V)],
    ),
    "another width of the keys": (
        lambda z, c: c.append(z(B, H, 1, D + 1), z(B, H, 1, D_V)), ValueError,
        ["key", sizes(B, H, 1, D + 1), rf"\({B}, {H}, T, {D}\)"],
    ),
    "another width of the values": (
        lambda z, c: c.append(z(B, H, 1, D), z(B, H, 1, D_V + 1)), ValueError,
        ["value", sizes(B, H, 1, D_V + 1), rf"\({B}, {H}, T, {D_V}\)"],
    ),
    "keys of width 1 that would broadcast": (
        lambda z, c: c.append(z(B, H, 1, 1), z(B, H, 1, D_V)), ValueError, ["key", sizes(B, H, 1, 1)],
    ),
    "another batch": (
        lambda z, c: c.append(z(1, H, 1, D), z(1, H, 1, D_V)), ValueError,
        [sizes(1, H, 1, D), rf"\({B}, {H}, T, {D}\)"],
    ),
    "another number of heads": (
        lambda z, c: c.append(z(B, 1, 1, D), z(B, 1, 1, D_V)), ValueError,
        [sizes(B, 1, 1, D), rf"\({B}, {H}, T, {D}\)"],
    ),
    "no heads": (
        lambda z, c: c.append(z(B, 1, D), z(B, 1, D_V)), ValueError, [sizes(B, 1, D), rf"\({B}, {H}, T, {D}\)"],
    ),
    "a vector": (lambda z, c: c.append(z(D), z(D_V)), ValueError, [sizes(D)]),
    "another dtype": (
        lambda z, c: c.append(z(B, H, 1, D, dtype="float32"), z(B, H, 1, D_V, dtype="float32")), TypeError,
        ["float32", "float64"],
    ),
    "keys and values of different dtypes": (
        lambda z, c: c.append(z(B, H, 1, D), z(B, H, 1, D_V, dtype="float32")), TypeError, ["float32", "float64"],
    ),
    "integers": (
        lambda z, c: c.append(z(B, H, 1, D, dtype="int64"), z(B, H, 1, D_V, dtype="int64")), TypeError, ["int64"],
    ),
    "a list": (lambda z, c: c.append([[1.0]], z(B, H, 1, D_V)), TypeError, ["key", "list"]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, lambda z: call(z, filled(z)), exception, words)


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_after_an_error_the_cache_is_as_it_was(backend, call, exception, words):
    cache = KVCache()
    cache.append(*pair(backend, 3))
    assert_error_names(backend, lambda z: call(z, cache), exception, words)
    assert cache.length == 3
    continued_after_three(backend, cache)


@pytest.mark.parametrize(("one", "other"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
def test_a_cache_of_one_library_refuses_the_other_and_is_as_it_was(one, other):
    cache = KVCache()
    cache.append(*pair(one, 3))
    for new in (pair(other, 1), (pair(one, 1)[0], pair(other, 1)[1])):
        with pytest.raises(TypeError, match=r"ndarray.*Tensor|Tensor.*ndarray"):
            cache.append(*new)
    assert cache.length == 3
    assert_array_equal(one.numpy(cache.append(*pair(one, 0))[0]), one.numpy(pair(one, 3)[0]))


def test_an_error_with_the_first_keys_leaves_the_cache_empty(backend):
    cache = KVCache()
    with pytest.raises(ValueError, match="must be equal"):
        cache.append(pair(backend, 3)[0], pair(backend, 4)[1])
    assert cache.length == 0
    assert tuple(cache.append(*pair(backend, 2))[0].shape) == (B, H, 2, D)


# Decoding


@pytest.mark.parametrize("layer", LAYERS_WITH_MEMORY.values(), ids=LAYERS_WITH_MEMORY)
@every_way
def test_decoding_is_the_causal_pass(backend, layer, chunks):
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    whole = backend.numpy(module(x, is_causal=True))
    outs = decoded(module, x, chunks, is_causal=True)
    assert_allclose(joined(backend, outs), whole, rtol=1e-10, atol=1e-12)
    with torch.no_grad():
        outs = decoded(module, x, chunks, is_causal=True)
    assert_allclose(joined(backend, outs), whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layer", DECODERS.values(), ids=DECODERS)
@every_way
def test_decoding_beside_a_memory_is_the_whole_pass(backend, layer, chunks):
    module, inputs = layer.build(backend), layer.inputs(backend, length=LENGTH)
    for context in (torch.enable_grad(), torch.no_grad()):
        with context:
            outs = decoded(module, inputs["query"], chunks, inputs["key"])
        assert_allclose(joined(backend, outs), backend.numpy(module(**inputs)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layer", LAYERS_WITH_MEMORY.values(), ids=LAYERS_WITH_MEMORY)
def test_one_position_at_a_time_needs_no_causal_rule(backend, layer):
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    outs = decoded(module, x, [1] * LENGTH)
    assert_allclose(joined(backend, outs), backend.numpy(module(x, is_causal=True)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layer", LAYERS_WITH_MEMORY.values(), ids=LAYERS_WITH_MEMORY)
def test_weights_while_decoding_are_the_rows_of_the_causal_pass(backend, layer):
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    whole = [backend.numpy(w) for w in leaves(module(x, is_causal=True, need_weights=True)[1])]
    first = 0
    for n, out in zip([2, 3, 2], decoded(module, x, [2, 3, 2], is_causal=True, need_weights=True), strict=True):
        for mine, theirs in zip(leaves(out[1]), whole, strict=True):
            assert_allclose(backend.numpy(mine), theirs[..., first : first + n, : first + n], rtol=1e-10, atol=1e-12)
        first += n


def test_without_the_causal_rule_a_chunk_sees_itself_and_all_before(backend):
    layer = ATTENTIONS["attention with rope and grouped queries"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    outs = decoded(module, x, [3, 4])
    may = np.ones((LENGTH, LENGTH), dtype=bool)
    may[:3, 3:] = False
    assert_allclose(joined(backend, outs), backend.numpy(module(x, attn_mask=backend.array(may, "bool"))), rtol=1e-10)


@pytest.mark.parametrize("layer", LAYERS_WITH_MEMORY.values(), ids=LAYERS_WITH_MEMORY)
def test_a_mask_while_decoding_is_over_all_that_the_cache_holds(backend, layer):
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    real = np.ones((B, 1, 1, LENGTH), dtype=bool)
    real[1, ..., :2] = False  # the shorter sequence is padded on the left, as one does for decoding
    whole = backend.numpy(module(x, attn_mask=backend.array(real, "bool"), is_causal=True))
    cache = new_cache(module)
    for first, n in ((0, 3), (3, 1), (4, 3)):
        mask = backend.array(real[..., : first + n], "bool")
        out = module(x[:, first : first + n], attn_mask=mask, is_causal=True, cache=cache)
        assert_allclose(backend.numpy(out), whole[:, first : first + n], rtol=1e-10, atol=1e-12)


def test_the_length_is_the_offset_of_the_next_query(backend):
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = module.new_cache()
    assert [c.length for c in cache] == [0, 0]
    for n, total in ((3, 3), (1, 4), (2, 6)):
        module(x[:, :n], cache=cache)
        assert [c.length for c in cache] == [total, total]


def test_every_layer_of_a_stack_gets_a_cache_of_its_own(backend):
    for name in ("Encoder", "Decoder"):
        cache = getattr(library(backend), name)(E, 2, 3, 5).new_cache()
        assert len(cache) == len({id(c) for c in cache}) == 5
        assert all(type(c) is KVCache for c in cache)


@pytest.mark.parametrize("name", ["attention", "block", "encoder", "decoder"])
def test_a_call_of_another_batch_leaves_the_cache_as_it_was(backend, name):
    module, cache = EVERY[name].build(backend), new_cache(EVERY[name].build(backend))
    x, keys = backend.array(np.ones((B, T, E))), backend.array(np.ones((1, T, E)))
    with pytest.raises(ValueError, match=rf"query has shape {sizes(B, T, E)} and key {sizes(1, T, E)}"):
        module(x, keys, cache=cache)
    with pytest.raises(ValueError, match=rf"query has shape {sizes(B, T, E)} and value {sizes(1, T, E)}"):
        module(x, x, keys, cache=cache)
    assert [c.length for c in leaves(cache)] == [0] * len(leaves(cache))


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_stack_refuses_another_number_of_caches(backend, number):
    layer = EVERY["encoder"]
    with pytest.raises(ValueError, match=rf"{number}\b.*2 layers"):
        layer.build(backend)(**layer.inputs(backend), cache=[KVCache() for _ in range(number)])


def test_learned_positions_go_on_where_the_cache_ends(backend):
    add, module = EVERY["learned positions"].build(backend), EVERY["encoder"].build(backend)
    x = EVERY["encoder"].inputs(backend, length=LENGTH)["query"]
    whole = backend.numpy(module(add(x), is_causal=True))
    cache, outs = module.new_cache(), []
    for i in range(LENGTH):
        outs.append(module(add(x[:, i : i + 1], q_offset=cache[0].length), cache=cache))
    assert_allclose(joined(backend, outs), whole, rtol=1e-10, atol=1e-12)
    assert add.weight.shape[0] == P


def test_decoding_without_a_batch(backend):
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = module.new_cache()
    outs = [module(x[0, i : i + 1], cache=cache) for i in range(LENGTH)]
    assert_allclose(joined(backend, outs), backend.numpy(module(x, is_causal=True))[0], rtol=1e-10, atol=1e-12)


def test_decoding_keeps_the_dtype(typed):
    backend, dtype = typed
    layer = EVERY["encoder with rope"]
    module, x = layer.build(backend, dtype), layer.inputs(backend, dtype, length=LENGTH)["query"]
    outs = decoded(module, x, [3, 1, 3], is_causal=True)
    assert {dtype_name(out) for out in outs} == {dtype}
    whole = backend.numpy(module(x, is_causal=True))
    tolerance = {"float16": 2e-2, "bfloat16": 0.15, "float32": 1e-5, "float64": 1e-12}[dtype]
    assert_allclose(joined(backend, outs), whole, atol=tolerance * np.abs(whole).max())


# An error of the layer leaves its cache as it was

WRONG_CALLS = {
    "a wrong width": (lambda m, z, c: m(z(B, 1, E + 1), cache=c), ValueError),
    "another batch": (lambda m, z, c: m(z(B + 1, 1, E), cache=c), ValueError),
    "another dtype": (lambda m, z, c: m(z(B, 1, E, dtype="float32"), cache=c), TypeError),
    "a mask of another length": (
        lambda m, z, c: m(z(B, 1, E), attn_mask=z(1, 3, dtype="bool"), cache=c), ValueError,
    ),
    "a mask of integers": (
        lambda m, z, c: m(z(B, 1, E), attn_mask=z(1, 4, dtype="int64"), cache=c), TypeError,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "layer", [EVERY["attention with rope"], EVERY["block"], EVERY["encoder"]], ids=lambda x: x.name
)
@pytest.mark.parametrize(("call", "exception"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_call_leaves_the_cache_as_it_was(backend, layer, call, exception):
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = new_cache(module)
    module(x[:, :3], is_causal=True, cache=cache)
    with pytest.raises(exception):
        call(module, lambda *s, dtype="float64": backend.array(np.ones(s), dtype), cache)
    assert [c.length for c in (cache if isinstance(cache, list) else [cache])] == [3] * len(leaves([cache]))
    out = module(x[:, 3:], is_causal=True, cache=cache)
    assert_allclose(backend.numpy(out), backend.numpy(module(x, is_causal=True))[:, 3:], rtol=1e-10, atol=1e-12)


# Gradients


def gradients(module, x, run):
    """The gradients of a loss that weighs every number of the output differently, by name."""
    module.zero_grad()
    x = x.clone().requires_grad_()
    out = run(x)
    (out * torch.arange(out.numel()).reshape(out.shape).cos()).sum().backward()
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None} | {"x": x.grad}


@pytest.mark.parametrize("layer", LAYERS_WITH_MEMORY.values(), ids=LAYERS_WITH_MEMORY)
@every_way
def test_gradients_through_decoding_are_those_of_the_causal_pass(layer, chunks):
    backend = Torch("cpu")
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    ours = gradients(module, x, lambda x: torch.cat(decoded(module, x, chunks, is_causal=True), dim=1))
    theirs = gradients(module, x, lambda x: module(x, is_causal=True))
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("trained", ["q_proj", "k_proj", "v_proj", "out_proj"])
def test_gradients_are_right_where_one_projection_alone_is_trained(trained):
    backend, layer = Torch("cpu"), ATTENTIONS["attention with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    module.requires_grad_(False)
    getattr(module, trained).requires_grad_(True)

    def gradient(run):
        module.zero_grad()
        run().square().sum().backward()
        return getattr(module, trained).weight.grad.clone()

    ours = gradient(lambda: torch.cat(decoded(module, x, [2, 1, 1, 3], is_causal=True), dim=1))
    torch.testing.assert_close(ours, gradient(lambda: module(x, is_causal=True)), rtol=1e-8, atol=1e-10)


def test_gradients_reach_a_prompt_from_what_follows_without_any_of_its_own():
    backend, layer = Torch("cpu"), ATTENTIONS["attention with rope"]
    module, x = layer.build(backend).requires_grad_(False), layer.inputs(backend, length=LENGTH)["query"]

    def gradient(run):
        prompt = x[:, :3].clone().requires_grad_()
        run(prompt).square().sum().backward()
        return prompt.grad

    def decode(prompt):
        cache = KVCache()
        first = module(prompt, is_causal=True, cache=cache)
        return torch.cat([first, *(module(x[:, i : i + 1], cache=cache) for i in range(3, LENGTH))], dim=1)

    whole = gradient(lambda prompt: module(torch.cat([prompt, x[:, 3:]], dim=1), is_causal=True))
    torch.testing.assert_close(gradient(decode), whole, rtol=1e-8, atol=1e-10)


def test_a_prompt_without_gradients_and_then_training_on_what_follows():
    backend, layer = Torch("cpu"), EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = module.new_cache()
    with torch.no_grad():
        module(x[:, :3], is_causal=True, cache=cache)
    outs = [module(x[:, i : i + 1], cache=cache) for i in range(3, LENGTH)]
    torch.cat(outs, dim=1).square().sum().backward()
    whole = module(x, is_causal=True)[:, 3:]
    torch.testing.assert_close(torch.cat(outs, dim=1), whole, rtol=1e-10, atol=1e-12)
    assert all(p.grad.isfinite().all() for p in module.parameters())


def test_training_first_and_then_decoding_without_gradients_does_not_touch_the_graph():
    backend, layer = Torch("cpu"), EVERY["block with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = KVCache()
    first = module(x[:, :3], is_causal=True, cache=cache)
    with torch.no_grad():
        rest = [module(x[:, i : i + 1], cache=cache) for i in range(3, LENGTH)]
    first.sum().backward()
    outs = torch.cat([first, *rest], dim=1)
    torch.testing.assert_close(outs, module(x, is_causal=True), rtol=1e-10, atol=1e-12)


def test_going_back_without_gradients_does_not_touch_the_graph_of_what_was_returned():
    backend, layer = Torch("cpu"), EVERY["attention with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = KVCache()
    first = module(x[:, :3], is_causal=True, cache=cache)
    cache.truncate(2)
    with torch.no_grad():
        again = module(x[:, 2:3], cache=cache)
    first.sum().backward()
    torch.testing.assert_close(again, first[:, 2:], rtol=1e-10, atol=1e-12)


def test_a_prompt_in_inference_mode_and_then_decoding_outside_it():
    backend, layer = Torch("cpu"), EVERY["encoder with rope"]
    module, x = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"]
    cache = module.new_cache()
    with torch.inference_mode():
        first = module(x[:, :3], is_causal=True, cache=cache)
    with torch.no_grad():
        rest = [module(x[:, i : i + 1], cache=cache) for i in range(3, LENGTH)]
        whole = module(x, is_causal=True)
    torch.testing.assert_close(torch.cat([first, *rest], dim=1), whole, rtol=1e-10, atol=1e-12)


def test_under_autocast_decoding_is_the_causal_pass():
    backend, layer = Torch("cpu"), EVERY["encoder with rope"]
    module = layer.build(backend, "float32")
    x = layer.inputs(backend, "float32", length=LENGTH)["query"]
    exact = module(x, is_causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        outs = decoded(module, x, [3, 1, 3], is_causal=True)
    torch.testing.assert_close(torch.cat(outs, dim=1).float(), exact, atol=0.15, rtol=0.1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_on_cuda_decoding_keeps_device_and_dtype(dtype):
    backend, layer = Torch("cuda"), EVERY["encoder with rope"]
    module, x = layer.build(backend, dtype), layer.inputs(backend, dtype, length=LENGTH)["query"]
    with torch.no_grad():
        for out in decoded(module, x, [3, 1, 3], is_causal=True):
            assert (out.device.type, dtype_name(out)) == ("cuda", dtype)


# Documentation


def test_the_docstrings_have_their_sections():
    assert re.search(r"^Source:", inspect.getdoc(KVCache), re.MULTILINE)
    for section in ("Args", "Returns", "Raises"):
        assert re.search(rf"^{section}:", inspect.getdoc(KVCache.append), re.MULTILINE)


# What a decoder attends to


class Counted(torch.nn.Linear):
    """A linear layer that counts its calls."""

    calls = 0

    def forward(self, x):
        """Count, and compute."""
        type(self).calls += 1
        return super().forward(x)


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(Counted, "calls", 0)
    return Counted


def decoder_of_counted(num_layers=5):
    module = attnlib.torch.Decoder(E, 2, 3, num_layers).eval()
    for layer in module.layers:
        layer.cross_attn.k_proj = Counted(E, E)
    return module


@pytest.mark.parametrize("grad", [False, True])
def test_a_memory_is_projected_once_for_all_steps(counted, grad):
    module, x, memory = decoder_of_counted(), torch.randn(B, LENGTH, E), torch.randn(B, S, E)
    with torch.set_grad_enabled(grad):
        decoded(module, x, [1] * LENGTH, memory)
    assert counted.calls == 5, "once in each layer"


def test_another_memory_is_projected_anew(counted):
    module, x, cache = decoder_of_counted(), torch.randn(B, 1, E), None
    cache = module.new_cache()
    for memory in (torch.randn(B, S, E), torch.randn(B, S, E), torch.randn(B, T, E)):
        wanted = module(x, memory)
        for layer in cache:
            layer.truncate(0)
        torch.testing.assert_close(module(x, memory, cache=cache), wanted)


@torch.no_grad()
def test_a_memory_that_was_changed_in_place_is_projected_anew():
    module, x, memory = decoder_of_counted(), torch.randn(B, 1, E), torch.randn(B, S, E)
    cache = module.new_cache()
    module(x, memory, cache=cache)
    memory.mul_(-2)
    for layer in cache:
        layer.truncate(0)
    torch.testing.assert_close(module(x, memory, cache=cache), module(x, memory))


def test_gradients_flow_to_a_memory_that_was_first_seen_without():
    module, x = decoder_of_counted(), torch.randn(B, 2, E)
    memory, cache = torch.randn(B, S, E, requires_grad=True), module.new_cache()
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            module(x[:, :1], memory, cache=cache)
        for layer in cache:
            layer.truncate(0)
    module(x, memory, cache=cache).sum().backward()
    mine, memory.grad = memory.grad, None
    module(x, memory).sum().backward()
    torch.testing.assert_close(mine, memory.grad)


def test_a_memory_seen_under_autocast_is_projected_anew_outside():
    attend, x, cache = attnlib.torch.MultiHeadAttention(E, 2), torch.randn(B, T, E), MemoryCache()
    memory = torch.randn(B, S, E)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attend(x, memory, cache=cache)
    torch.testing.assert_close(attend(x, memory, cache=cache), attend(x, memory))


def test_one_attention_takes_a_cache_for_its_memory(backend):
    layer = ATTENTIONS["attention with rope and grouped queries"]
    module, x, cache = layer.build(backend), layer.inputs(backend, length=LENGTH)["query"], MemoryCache()
    memory = backend.array(np.random.default_rng(3).standard_normal((B, S, E)))
    wanted = backend.numpy(module(x, memory))
    for _ in range(2):
        assert_allclose(backend.numpy(module(x, memory, cache=cache)), wanted, rtol=1e-12)


def test_a_compiled_decoder_projects_its_memory_once_too(counted):
    module, x, memory = decoder_of_counted(2), torch.randn(B, LENGTH, E), torch.randn(B, S, E)
    with torch.no_grad():
        wanted = module(x, memory)
        outs = decoded(torch.compile(module, backend="eager"), x, [4, 3], memory, cache=module.new_cache())
    torch.testing.assert_close(torch.cat(outs, 1), wanted)


@torch.no_grad()
def test_a_compiled_layer_projects_a_memory_anew_when_autocast_ends():
    attend, x, cache = attnlib.torch.MultiHeadAttention(E, 2), torch.randn(B, T, E), MemoryCache()
    memory, compiled = torch.randn(B, S, E), torch.compile(attend, backend="eager")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        compiled(x, memory, cache=cache)
    torch.testing.assert_close(compiled(x, memory, cache=cache), attend(x, memory))


# Going back, and going on from the best


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_what_is_truncated_is_forgotten(backend, kept):
    cache = KVCache()
    before = cache.append(*pair(backend, 5))
    cache.truncate(kept)
    assert cache.length == kept
    wanted = [backend.numpy(x)[..., :kept, :].copy() for x in before]
    news = pair(backend, 2, first=900.0)
    for mine, old, new in zip(cache.append(*news), wanted, news, strict=True):
        assert_array_equal(backend.numpy(mine), np.concatenate([old, backend.numpy(new)], -2))


@pytest.mark.parametrize(("length", "error"), [(-1, ValueError), (4, ValueError), (1.0, TypeError)])
def test_a_cache_is_not_truncated_to_what_it_never_held(backend, length, error):
    cache = KVCache()
    cache.append(*pair(backend, 3))
    with pytest.raises(error, match=str(length)):
        cache.truncate(length)
    assert cache.length == 3


def test_sequences_go_on_from_those_that_are_named(backend):
    cache, index = KVCache(), [1, 1, 0]
    before = [backend.numpy(x).copy() for x in cache.append(*pair(backend, 3))]
    cache.reorder(backend.array(np.array(index), "int64"))
    news = [x[backend.array(np.array(index), "int64")] for x in pair(backend, 1, first=900.0)]
    for mine, old, new in zip(cache.append(*news), before, news, strict=True):
        assert_array_equal(backend.numpy(mine), np.concatenate([old[index], backend.numpy(new)], -2))
    assert cache.length == 4


def test_beams_that_are_reordered_decode_as_if_they_had_been_alone(backend):
    layer = DECODERS["decoder"]
    module, inputs = layer.build(backend), layer.inputs(backend, length=LENGTH)
    x, memory, index = inputs["query"], inputs["key"], backend.array(np.array([1, 0]), "int64")
    cache = new_cache(module)
    module(x[:, :3], memory, cache=cache)
    for one in leaves(cache):
        one.reorder(index)
    out = module(x[index][:, 3:], memory[index], cache=cache)
    assert_allclose(backend.numpy(out), backend.numpy(module(x, memory))[[1, 0], 3:], rtol=1e-10, atol=1e-12)


def test_bytes_are_numbers_of_sequences_and_no_mask():
    cache = KVCache()
    cache.append(torch.arange(6.0).reshape(3, 1, 2), torch.ones(3, 1, 1))
    cache.reorder(torch.tensor([0, 2, 1, 1], dtype=torch.uint8))
    keys, _ = cache.append(torch.ones(4, 1, 2), torch.ones(4, 1, 1))
    assert keys[:, 0].tolist() == [[0, 1], [4, 5], [2, 3], [2, 3]]


def test_a_cache_that_two_layers_share_gives_none_the_others_projections():
    one, other = (attnlib.torch.MultiHeadAttention(E, 2) for _ in range(2))
    x, memory, cache = torch.randn(B, T, E), torch.randn(B, S, E), MemoryCache()
    for layer in (one, other, one):
        torch.testing.assert_close(layer(x, memory, cache=cache), layer(x, memory))


@pytest.mark.parametrize("wrong", [[1, 0], 1.0, None, np.array([0.5]), np.array([[1, 0]]), np.array([True])], ids=repr)
def test_an_order_is_an_array_of_integers(backend, wrong):
    cache = KVCache()
    cache.append(*pair(backend, 3))
    with pytest.raises(TypeError, match="array of integers"):
        cache.reorder(wrong)
    with pytest.raises(TypeError, match="array of integers"):
        cache.reorder(backend.array(np.array([[1, 0]]), "int64"))


@pytest.mark.parametrize("wrong", [-1, B])
@pytest.mark.parametrize("new", [KVCache, lambda: StaticCache(5)], ids=["KVCache", "StaticCache"])
def test_an_order_names_sequences_that_exist(backend, new, wrong):
    cache = new()
    cache.append(*pair(backend, 3))
    with pytest.raises(IndexError, match=f"sequence {wrong}, but the cache holds {B} sequences, 0 to {B - 1}"):
        cache.reorder(backend.array(np.array([0, wrong]), "int64"))


def test_where_an_order_cannot_be_read_torch_refuses_negative_numbers():
    with pytest.raises(IndexError):
        select_sequences(torch.ones(B, 1), torch.tensor([-1]))


def test_an_order_comes_from_the_library_of_the_cache():
    cache = KVCache()
    cache.append(*pair(Numpy(), 3))
    with pytest.raises(TypeError, match="from the cache's library"):
        cache.reorder(torch.tensor([0]))
